/* misc_found.c - reference kernels whose results are as long as data decides: places of elements that are not zero, elements
 * without those that stood before, boxes that no better one covers.
 */
#include "misc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- places --- */

/* Of elements that are not zero, row by row: [rank, count]. */
void bb_misc_non_zero(const bb_kernel *k) {
  const bb_misc_value *data = bb_misc_in(k, 0);
  size_t count = bb_misc_product(k, data->rank, data->shape), found = 0, place = 0;
  int64_t at[8] = {0};
  for (size_t i = 0; i < count; i++) found += data->data[i] != 0;
  int64_t shape[2] = {data->rank, (int64_t)found};
  bb_misc_value *out = bb_misc_out(k, 0, BB_I64, 2, shape);
  for (size_t i = 0; i < count; i++) {
    for (uint32_t a = 0; data->data[i] != 0 && a < data->rank; a++)
      out->data[a * found + place] = (double)at[a];
    place += data->data[i] != 0;
    bb_misc_step(data->rank, data->shape, at);
  }
}

/* --- parts --- */

/* Part `index` of an axis, whose parts are as long as the second operand says, one behind the other. */
void bb_misc_part(const bb_kernel *k) {
  const bb_misc_value *data = bb_misc_in(k, 0), *lengths = bb_misc_in(k, 1);
  uint32_t axis = bb_misc_axis(k, bb_misc_int(k, "axis", 0), data->rank);
  int64_t which = bb_misc_int(k, "index", 0), from = 0, extent = data->shape[axis], shape[8];
  if (lengths->rank != 1 || which < 0 || which >= lengths->shape[0])
    bb_fail(k->ctx, BB_ERROR_INPUT, "operands' shapes do not fit each other");
  double all = 0;
  for (int64_t i = 0; i < lengths->shape[0]; i++) {
    if (!(lengths->data[i] >= 0 && lengths->data[i] <= (double)extent))
      bb_fail(k->ctx, BB_ERROR_INPUT, "length %lld is %g, of an axis of %lld", (long long)i,
              lengths->data[i], (long long)extent);
    if (i < which) from += (int64_t)lengths->data[i];
    all += lengths->data[i];
  }
  if (all != (double)extent)
    bb_fail(k->ctx, BB_ERROR_INPUT, "the lengths are %.0f together, of an axis of %lld", all,
            (long long)extent);
  memcpy(shape, data->shape, sizeof shape);
  shape[axis] = (int64_t)lengths->data[which];
  double *to = bb_misc_out(k, 0, data->dtype, data->rank, shape)->data;
  size_t outer = bb_misc_product(k, axis, shape);
  size_t inner = bb_misc_product(k, data->rank - axis - 1, shape + axis + 1);
  size_t run = (size_t)shape[axis] * inner;
  for (size_t o = 0; run && o < outer; o++)
    memcpy(to + o * run, data->data + (o * (size_t)extent + (size_t)from) * inner,
           run * sizeof *to);
}

/* --- without repetition --- */

/* Slices along an axis, each of outer x inner elements. */
typedef struct slices {
  const double *data;
  size_t outer, inner;
  int64_t extent;
} slices;

typedef struct slice {
  const slices *of;
  int64_t at;
} slice;

static int compare_elements(const slice *a, const slice *b) {
  const slices *s = a->of;
  for (size_t o = 0; o < s->outer; o++)
    for (size_t i = 0; i < s->inner; i++) {
      const double *row = s->data + o * (size_t)s->extent * s->inner + i;
      int order = bb_misc_order(row[(size_t)a->at * s->inner], row[(size_t)b->at * s->inner]);
      if (order) return order;
    }
  return 0;
}

/* By elements, then by place. */
static int compare_slices(const void *left, const void *right) {
  const slice *a = left, *b = right;
  int order = compare_elements(a, b);
  return order ? order : (a->at > b->at) - (a->at < b->at);
}

/* One of equal slices: where it first stands, and how often. */
typedef struct kind {
  int64_t first, times;
  int64_t sorted; /* its number in ascending order */
} kind;

static int compare_first(const void *left, const void *right) {
  const kind *a = left, *b = right;
  return (a->first > b->first) - (a->first < b->first);
}

/* inverse[place] is the number of its kind in ascending order.  How many there are. */
static int64_t find_kinds(const bb_kernel *k, const slices *s, kind *found, int64_t *inverse) {
  slice *all = BB_NEW(k->arena, slice, (size_t)s->extent + 1);
  int64_t kinds = 0;
  for (int64_t i = 0; i < s->extent; i++) all[i] = (slice){s, i};
  qsort(all, (size_t)s->extent, sizeof *all, compare_slices);
  for (int64_t i = 0; i < s->extent; i++) {
    if (i == 0 || compare_elements(&all[i - 1], &all[i]) != 0) {
      found[kinds] = (kind){all[i].at, 0, kinds};
      kinds++;
    }
    found[kinds - 1].times++;
    inverse[all[i].at] = kinds - 1;
  }
  return kinds;
}

static void put_kinds(const slices *s, int64_t kinds, const kind *found, double *to) {
  for (size_t o = 0; o < s->outer; o++)
    for (int64_t u = 0; u < kinds; u++) {
      const double *from = s->data + (o * (size_t)s->extent + (size_t)found[u].first) * s->inner;
      memcpy(to + (o * (size_t)kinds + (size_t)u) * s->inner, from, s->inner * sizeof *to);
    }
}

/* Elements, or slices along an axis: each kind once, where it first stood, of which kind each was, and how often it stood. */
void bb_misc_unique(const bb_kernel *k) {
  const bb_misc_value *data = bb_misc_in(k, 0);
  bool sorted = bb_misc_int(k, "sorted", 1) != 0,
       flat = bb_misc_int(k, "axis", INT64_MIN) == INT64_MIN;
  size_t count = bb_misc_product(k, data->rank, data->shape);
  slices s = {.data = data->data, .outer = 1, .inner = 1, .extent = (int64_t)count};
  int64_t shape[8] = {0};
  uint32_t axis = 0;
  if (!flat) {
    axis = bb_misc_axis(k, bb_misc_int(k, "axis", 0), data->rank);
    memcpy(shape, data->shape, sizeof shape);
    s.outer = bb_misc_product(k, axis, shape);
    s.inner = bb_misc_product(k, data->rank - axis - 1, shape + axis + 1);
    s.extent = shape[axis];
  }
  kind *found = BB_NEW(k->arena, kind, (size_t)s.extent + 1);
  int64_t *inverse = BB_NEW(k->arena, int64_t, (size_t)s.extent + 1);
  int64_t kinds = find_kinds(k, &s, found, inverse);
  int64_t *number = BB_NEW(k->arena, int64_t, (size_t)kinds + 1);
  if (!sorted) qsort(found, (size_t)kinds, sizeof *found, compare_first);
  for (int64_t u = 0; u < kinds; u++) number[found[u].sorted] = u;
  shape[axis] = kinds;
  put_kinds(&s, kinds, found, bb_misc_out(k, 0, data->dtype, flat ? 1 : data->rank, shape)->data);
  double *first = k->nout > 1 ? bb_misc_out(k, 1, BB_I64, 1, &kinds)->data : NULL;
  double *which = k->nout > 2 ? bb_misc_out(k, 2, BB_I64, 1, &s.extent)->data : NULL;
  double *times = k->nout > 3 ? bb_misc_out(k, 3, BB_I64, 1, &kinds)->data : NULL;
  for (int64_t u = 0; u < kinds; u++) {
    if (first) first[u] = (double)found[u].first;
    if (times) times[u] = (double)found[u].times;
  }
  for (int64_t i = 0; which && i < s.extent; i++) which[i] = (double)number[inverse[i]];
}

/* --- boxes --- */

typedef struct box {
  double low[2], high[2], area;
} box;

/* Two opposite corners, or a middle and how wide and high: (y, x, y, x) and (x, y, width, height). */
static box box_of(const double *at, bool centred) {
  box b;
  for (int a = 0; a < 2; a++) {
    double from = centred ? at[a] - at[a + 2] / 2 : at[a],
           to = centred ? at[a] + at[a + 2] / 2 : at[a + 2];
    b.low[a] = fmin(from, to);
    b.high[a] = fmax(from, to);
  }
  b.area = (b.high[0] - b.low[0]) * (b.high[1] - b.low[1]);
  return b;
}

/* Do they have more than this part of what they cover together in common?  Asked of floats, as boxes and the part are. */
static bool overlaps(const box *a, const box *b, double most) {
  double common = 1;
  for (int i = 0; i < 2; i++)
    common *= fmax(0, fmin(a->high[i], b->high[i]) - fmax(a->low[i], b->low[i]));
  if (!(a->area > 0 && b->area > 0 && common > 0)) return false;
  return (float)(common / (a->area + b->area - common)) > (float)most;
}

typedef struct scored {
  double score;
  int64_t index;
} scored;

/* The best first, and of equal ones the one that stands first. */
static int compare_scores(const void *left, const void *right) {
  const scored *a = left, *b = right;
  if (a->score != b->score) return a->score < b->score ? 1 : -1;
  return (a->index > b->index) - (a->index < b->index);
}

typedef struct wanted {
  int64_t boxes, most; /* most: of one class in one image */
  double overlap, score;
  bool centred, all; /* whatever their scores are */
} wanted;

/* Those of one class that stay: their numbers, the best first.  How many. */
static int64_t pick_boxes(const wanted *w, const double *corners, const double *score, scored *line,
                          box *kept, int64_t *index) {
  int64_t count = 0, stay = 0;
  for (int64_t i = 0; i < w->boxes; i++)
    if (score[i] > w->score || (w->all && !isnan(score[i]))) line[count++] = (scored){score[i], i};
  qsort(line, (size_t)count, sizeof *line, compare_scores);
  for (int64_t i = 0; i < count && stay < w->most; i++) {
    box b = box_of(corners + 4 * line[i].index, w->centred);
    bool covered = false;
    for (int64_t j = 0; j < stay && !covered; j++) covered = overlaps(&b, &kept[j], w->overlap);
    if (covered) continue;
    kept[stay] = b;
    index[stay++] = line[i].index;
  }
  return stay;
}

static double number_or(const bb_kernel *k, uint32_t i, double otherwise) {
  const bb_misc_value *v = bb_misc_optional(k, i);
  if (!v) return otherwise;
  if (bb_misc_product(k, v->rank, v->shape) != 1)
    bb_fail(k->ctx, BB_ERROR_INPUT, "operand %u is no number", i);
  return v->data[0];
}

/* boxes [images, n, 4] and scores [images, classes, n]: image, class and number of each box that stays. */
void bb_misc_boxes(const bb_kernel *k) {
  const bb_misc_value *boxes = bb_misc_in(k, 0), *scores = bb_misc_in(k, 1);
  bool fits = boxes->rank == 3 && scores->rank == 3 && boxes->shape[2] == 4 &&
              boxes->shape[0] == scores->shape[0] && boxes->shape[1] == scores->shape[2];
  if (!fits) bb_fail(k->ctx, BB_ERROR_INPUT, "operands' shapes do not fit each other");
  double most = number_or(k, 2, 0);
  int64_t images = scores->shape[0], classes = scores->shape[1], n = boxes->shape[1];
  wanted w = {.boxes = n,
              .most = !(most > 0)        ? 0
                      : most < (double)n ? (int64_t)most
                                         : n,
              .overlap = number_or(k, 3, 0),
              .score = number_or(k, 4, 0),
              .all = !bb_misc_optional(k, 4),
              .centred = bb_misc_int(k, "center_point_box", 0) != 0};
  size_t lines = bb_misc_product(k, 3, (int64_t[]){images, classes, w.most});
  int64_t *index = BB_NEW(k->arena, int64_t, lines + 1);
  int64_t *stay = BB_NEW(k->arena, int64_t, bb_misc_product(k, 2, scores->shape) + 1), all = 0;
  scored *line = BB_NEW(k->arena, scored, (size_t)n + 1);
  box *kept = BB_NEW(k->arena, box, (size_t)w.most + 1);
  for (int64_t c = 0; c < images * classes; c++) {
    stay[c] = pick_boxes(&w, boxes->data + 4 * n * (c / classes), scores->data + n * c, line, kept,
                         index + all);
    all += stay[c];
  }
  double *to = bb_misc_out(k, 0, BB_I64, 2, (int64_t[]){all, 3})->data;
  for (int64_t c = 0, at = 0; c < images * classes; c++)
    for (int64_t i = 0; i < stay[c]; i++, at++) {
      to[3 * at] = (double)(c / classes);
      to[3 * at + 1] = (double)(c % classes);
      to[3 * at + 2] = (double)index[at];
    }
}
