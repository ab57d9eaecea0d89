/* native_region.c - averages and maxima of bins of regions of a map: what bins look at is found out once for all channels of a
 * region, which threads share.
 */
#include "../interp/region.h"
#include "native.h"
#include "region.h"

#include <math.h>
#include <string.h>

enum { MOST_TAPS = 1 << 22, CHANNELS_APART = 16, NEAR = 1 << 21 }; /* NEAR: bytes of a map */

/* What one thread works with. */
typedef struct room {
  bb_region_tap *tap[2];
  int64_t *first[2];
  bool *outside[2];
  float *row;
} room;

typedef struct regions {
  const bb_native_call *call;
  bb_regions what;
  const float *map, *corner;
  const int64_t *image;
  float *to;
  int64_t count, channels, extent[2];
  int64_t parts; /* of the channels of a region */
  bb_region_loops *loops;
  room *room; /* by thread */
} regions;

/* --- what bins look at --- */

/* One element more of a bin's average.  Samples go on along the axis, so that only the last few can be the same.  One that has no
 * part is kept apart: no part of infinity is NaN. */
static void add_element(bb_region_tap *tap, int64_t from, int64_t *taps, int64_t at, float part) {
  for (int64_t t = *taps; t-- > from && t >= *taps - 4;)
    if (tap[t].at[0] == at && (tap[t].part[0] == 0) == (part == 0)) {
      tap[t].part[0] += part;
      return;
    }
  tap[(*taps)++] = (bb_region_tap){{(int32_t)at, 0}, {part, 0}};
}

static bb_region_taps look_along(const regions *r, const bb_region *region, int axis, room *own) {
  bb_region_tap *tap = own->tap[axis];
  int64_t *first = own->first[axis], taps = 0;
  for (int64_t b = 0; b < r->what.bins[axis]; b++) {
    int64_t from, to;
    bb_region_span(region, b, &from, &to);
    first[b] = taps;
    own->outside[axis][b] = (double)(to - from) < region->samples;
    for (int64_t i = from; i < to; i++) {
      bb_region_sample s;
      if (!bb_region_at(region, b, i, &s)) {
        own->outside[axis][b] = true;
        continue;
      }
      if (r->what.max) {
        tap[taps++] = (bb_region_tap){{(int32_t)s.at[0], (int32_t)s.at[1]},
                                      {(float)s.part[0], (float)s.part[1]}};
        continue;
      }
      for (int e = 0; e < 2; e++)
        add_element(tap, first[b], &taps, s.at[e], (float)(s.part[e] / region->samples));
    }
  }
  first[r->what.bins[axis]] = taps;
  return (bb_region_taps){r->what.bins[axis], first, own->outside[axis], tap};
}

/* The columns that an average takes anything of, a whole vector of them where the map has one. */
static void find_columns(bb_region_look *l) {
  const bb_region_taps *c = &l->columns;
  int64_t low = l->wide, high = 0;
  for (int64_t t = 0; t < c->first[c->bins]; t++) {
    if (c->tap[t].at[0] < low) low = c->tap[t].at[0];
    if (c->tap[t].at[0] >= high) high = c->tap[t].at[0] + 1;
  }
  if (high > low && high - low < BB_REGION_LANES) high = low + BB_REGION_LANES;
  if (high > l->wide) {
    low = low > high - l->wide ? low - (high - l->wide) : 0;
    high = l->wide;
  }
  l->from = low;
  l->count = high > low ? high - low : 0;
}

/* --- regions --- */

static void fill(float *to, int64_t count, float with) {
  for (int64_t i = 0; i < count; i++) to[i] = with;
}

static void look_at_region(void *user, int64_t task, uint32_t thread) {
  const regions *r = user;
  room *own = &r->room[thread];
  const int64_t i = task % r->count, part = task / r->count;
  const int64_t first = r->channels * part / r->parts;
  const int64_t end = r->channels * (part + 1) / r->parts;
  const int64_t bins = r->what.bins[0] * r->what.bins[1], place = r->extent[0] * r->extent[1];
  const float *at = r->corner + 4 * i;
  const double corner[4] = {(double)at[0], (double)at[1], (double)at[2], (double)at[3]};
  bb_region along[2];
  bb_region_look l = {.map = r->map + (r->image[i] * r->channels + first) * place,
                      .to = r->to + (i * r->channels + first) * bins,
                      .channels = end - first,
                      .place = place,
                      .wide = r->extent[1],
                      .row = own->row};
  if (isnan(at[0]) || isnan(at[1]) || isnan(at[2]) || isnan(at[3])) {
    fill(l.to, l.channels * bins, NAN);
    return;
  }
  for (int a = 0; a < 2; a++) bb_region_along(&r->what, a, corner, r->extent[a], &along[a]);
  l.rows = look_along(r, &along[0], 0, own);
  l.columns = look_along(r, &along[1], 1, own);
  if (!r->what.max) find_columns(&l);
  r->loops(&l, r->what.max);
}

/* False: one is of no image, or too large, which the reference kernel says. */
static bool are_sane(const regions *r, int64_t images) {
  for (int64_t i = 0; i < r->count; i++) {
    bb_region along;
    double corner[4];
    for (int c = 0; c < 4; c++) corner[c] = (double)r->corner[4 * i + c];
    if (r->image[i] < 0 || r->image[i] >= images) return false;
    for (int a = 0; a < 2; a++)
      if (!bb_region_along(&r->what, a, corner, r->extent[a], &along)) return false;
  }
  return true;
}

/* --- the kernel --- */

static bool is_plain(const bb_native_array *a, bb_dtype dtype, uint32_t rank) {
  return !a->absent && !a->room && a->dtype == dtype && a->rank == rank;
}

/* False: more than is worth to have. */
static bool make_room(regions *r, int64_t threads) {
  const bb_native_call *call = r->call;
  int64_t taps[2];
  for (int a = 0; a < 2; a++) {
    int64_t each = 2 * (r->what.samples ? r->what.samples : 2 * r->extent[a] + 8);
    if (r->what.bins[a] > MOST_TAPS / each) return false;
    taps[a] = r->what.bins[a] * each;
  }
  r->room = BB_NEW(call->arena, room, (size_t)threads);
  for (int64_t t = 0; t < threads; t++) {
    room *own = &r->room[t];
    for (int a = 0; a < 2; a++) {
      own->tap[a] = bb_arena_array(call->arena, (size_t)taps[a], sizeof *own->tap[a]);
      own->first[a] = bb_arena_array(call->arena, (size_t)r->what.bins[a] + 1, sizeof(int64_t));
      own->outside[a] = bb_arena_array(call->arena, (size_t)r->what.bins[a], sizeof(bool));
    }
    own->row = bb_arena_array(call->arena, (size_t)r->extent[1], sizeof(float));
  }
  return true;
}

/* Channels are divided where a part of the map is what stays near while all regions look at it, or regions are fewer than
 * threads. */
static int64_t parts_of(const regions *r, int64_t threads) {
  const int64_t most = (r->channels + CHANNELS_APART - 1) / CHANNELS_APART;
  const int64_t each = r->extent[0] * r->extent[1] * (int64_t)sizeof(float);
  int64_t parts = each > NEAR / CHANNELS_APART ? most : r->channels * each / NEAR + 1;
  const int64_t wanted = threads > 1 ? (2 * threads + r->count - 1) / r->count : 1;
  if (parts < wanted) parts = wanted;
  return parts < most ? parts : most;
}

bool bb_region_run(const bb_native_call *call, bb_region_loops *loops) {
  if (call->nin != 3 || call->nout != 1) return false;
  const bb_native_array *map = &call->in[0], *corners = &call->in[1], *image = &call->in[2];
  const bb_native_array *out = &call->out[0];
  regions r = {.call = call, .loops = loops};
  if (!is_plain(map, BB_F32, 4) || !is_plain(corners, BB_F32, 2) || !is_plain(image, BB_I64, 1) ||
      !is_plain(out, BB_F32, 4))
    return false;
  bb_regions_read(&(bb_kernel){.ctx = call->ctx, .arena = call->arena, .misc = call->misc},
                  &r.what);
  r.count = corners->shape[0], r.channels = map->shape[1];
  r.extent[0] = map->shape[2], r.extent[1] = map->shape[3];
  const int64_t shape[4] = {r.count, r.channels, r.what.bins[0], r.what.bins[1]};
  if (corners->shape[1] != 4 || image->shape[0] != r.count ||
      memcmp(out->shape, shape, sizeof shape) != 0)
    return false;
  if (r.extent[0] > INT32_MAX - 8 || r.extent[1] > INT32_MAX - 8) return false;
  if (out->data == map->data || out->data == corners->data || out->data == image->data)
    return false;
  r.map = map->data, r.corner = corners->data, r.image = image->data, r.to = out->data;
  if (!are_sane(&r, map->shape[0])) return false;
  if (!r.count || !r.channels) return true;
  const int64_t threads = call->class->threads(call->queue);
  if (!make_room(&r, threads)) return false;
  r.parts = parts_of(&r, threads);
  call->class->spread(call->queue, r.count * r.parts, look_at_region, &r);
  return true;
}

/* --- the processor --- */

bb_region_loops *bb_region_loops_here(void) {
  bb_region_loops *loops = bb_region_loops_plain;
#ifdef __x86_64__
  if (bb_native_set() == BB_SET_AVX2) loops = bb_region_loops_avx2;
  if (bb_native_set() == BB_SET_AVX512) loops = bb_region_loops_avx512;
#endif
  return loops;
}

bool bb_native_region_align(const bb_native_call *call) {
  return bb_region_run(call, bb_region_loops_here());
}
