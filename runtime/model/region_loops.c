/* region_loops.c - the loops of region.h.
 *
 * Compiled once for every instruction set that is tried; LOOPS is the name of the result.
 */
#include "region.h"

#include <math.h>
#include <string.h>

enum { LANES = BB_REGION_LANES };
typedef float lanes __attribute__((vector_size(4 * LANES)));
typedef float loose __attribute__((vector_size(4 * LANES), aligned(sizeof(float)), may_alias));

/* Columns x .. x + LANES - 1 of rows that are weighed. */
static inline void weigh_lanes(const bb_region_look *l, const float *map, const bb_region_tap *tap,
                               int64_t taps, int64_t x) {
  lanes sum = *(const loose *)(map + tap[0].at[0] * l->wide + x) * tap[0].part[0];
  for (int64_t t = 1; t < taps; t++)
    sum += *(const loose *)(map + tap[t].at[0] * l->wide + x) * tap[t].part[0];
  *(loose *)(l->row + x) = sum;
}

/* The last lanes may go over columns that the ones before them did; a row of fewer is taken one by one. */
static void weigh_rows(const bb_region_look *l, const float *map, const bb_region_tap *tap,
                       int64_t taps) {
  const int64_t end = l->from + l->count;
  for (int64_t x = l->from; x + LANES <= end; x += LANES) weigh_lanes(l, map, tap, taps, x);
  if (l->count >= LANES) {
    if (l->count % LANES) weigh_lanes(l, map, tap, taps, end - LANES);
    return;
  }
  for (int64_t x = l->from; x < end; x++) {
    float sum = 0;
    for (int64_t t = 0; t < taps; t++) sum += map[tap[t].at[0] * l->wide + x] * tap[t].part[0];
    l->row[x] = sum;
  }
}

static void weigh_columns(const bb_region_look *l, float *to) {
  const bb_region_taps *c = &l->columns;
  const bb_region_tap *tap = c->tap;
  for (int64_t b = 0; b < c->bins; b++) {
    const bb_region_tap *end = c->tap + c->first[b + 1];
    float sum = 0;
    for (; tap < end; tap++) sum += l->row[tap->at[0]] * tap->part[0];
    to[b] = sum;
  }
}

static void average(const bb_region_look *l, const float *map, float *to) {
  const bb_region_taps *r = &l->rows;
  for (int64_t b = 0; b < r->bins; b++, to += l->columns.bins) {
    const int64_t taps = r->first[b + 1] - r->first[b];
    if (!taps || !l->count) {
      memset(to, 0, (size_t)l->columns.bins * sizeof *to);
      continue;
    }
    weigh_rows(l, map, r->tap + r->first[b], taps);
    weigh_columns(l, to);
  }
}

static inline float larger(float a, float b) {
  return a > b ? a : b;
}

/* The greatest part that a sample has of an element, NaN where one is. */
static float greatest(const bb_region_look *l, const float *map, int64_t row, int64_t column) {
  const bb_region_taps *r = &l->rows, *c = &l->columns;
  const int64_t from = c->first[column], to = c->first[column + 1];
  const bool outside = r->outside[row] || c->outside[column];
  float most = outside ? 0 : -INFINITY;
  int none = 0;
  if (r->first[row] == r->first[row + 1] || from == to) return 0;
  for (int64_t i = r->first[row]; i < r->first[row + 1]; i++) {
    const float *low = map + r->tap[i].at[0] * l->wide, *high = map + r->tap[i].at[1] * l->wide;
    const float part[2] = {r->tap[i].part[0], r->tap[i].part[1]};
    for (int64_t j = from; j < to; j++) {
      const int32_t *at = c->tap[j].at;
      const float *of = c->tap[j].part;
      const float a = low[at[0]] * (part[0] * of[0]), b = low[at[1]] * (part[0] * of[1]);
      const float d = high[at[0]] * (part[1] * of[0]), e = high[at[1]] * (part[1] * of[1]);
      none |= isunordered(a, b) | isunordered(d, e);
      most = larger(larger(larger(a, b), larger(d, e)), most);
    }
  }
  return none ? NAN : most;
}

void LOOPS(const bb_region_look *l, bool max) {
  const int64_t rows = l->rows.bins, columns = l->columns.bins;
  for (int64_t k = 0; k < l->channels; k++) {
    const float *map = l->map + k * l->place;
    float *to = l->to + k * rows * columns;
    if (!max) average(l, map, to);
    for (int64_t b = 0; max && b < rows * columns; b++)
      to[b] = greatest(l, map, b / columns, b % columns);
  }
}
