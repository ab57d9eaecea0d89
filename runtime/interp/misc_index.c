/* misc_index.c - reference kernels that read or write at indices from data: gathers, scatters, and
 * the largest elements.
 */
#include "misc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static _Noreturn void refuse_shapes(const bb_kernel *k) {
  bb_fail(k->ctx, BB_ERROR_INPUT, "operands' shapes do not fit each other");
}

/* --- the same elements under another shape --- */

/* The shape is the program's (an operand that gives it at run time would make it dynamic). */
void bb_misc_reshape(const bb_kernel *k) {
  const bb_misc_value *data = bb_misc_in(k, 0);
  if (k->nout != 1) bb_fail(k->ctx, BB_ERROR_INPUT, "result 0 is missing");
  size_t count = bb_misc_product(k, data->rank, data->shape);
  if (bb_misc_product(k, k->out[0].rank, k->out[0].shape) != count) refuse_shapes(k);
  k->out[0].dtype = data->dtype;
  k->out[0].data = data->data;
}

/* --- one after the other --- */

/* Parts whose lengths along the axis only the run tells. */
void bb_misc_concat(const bb_kernel *k) {
  const bb_misc_value *first = bb_misc_in(k, 0);
  uint32_t axis = bb_misc_axis(k, bb_misc_int(k, "axis", 0), first->rank);
  int64_t shape[8];
  for (uint32_t i = 0; i < first->rank; i++) shape[i] = i == axis ? 0 : first->shape[i];
  for (uint32_t p = 0; p < k->nin; p++) {
    const bb_misc_value *part = bb_misc_in(k, p);
    if (part->rank != first->rank) refuse_shapes(k);
    for (uint32_t i = 0; i < first->rank; i++)
      if (i != axis && part->shape[i] != shape[i]) refuse_shapes(k);
    if (__builtin_add_overflow(shape[axis], part->shape[axis], &shape[axis])) refuse_shapes(k);
  }
  double *to = bb_misc_out(k, 0, first->dtype, first->rank, shape)->data;
  size_t outer = bb_misc_product(k, axis, shape);
  size_t inner = bb_misc_product(k, first->rank - axis - 1, shape + axis + 1);
  for (size_t o = 0; o < outer; o++)
    for (uint32_t p = 0; p < k->nin; p++) {
      size_t run = (size_t)k->in[p].shape[axis] * inner;
      if (run) memcpy(to, k->in[p].data + o * run, run * sizeof *to);
      to += run;
    }
}

/* Rows behind those that are there: of [B, heads, P, D], [B, heads, S, D] and how many there are with
 * the new ones, by batch.  Beyond these stand zeros. */
void bb_misc_append(const bb_kernel *k) {
  const bb_misc_value *past = bb_misc_in(k, 0), *rows = bb_misc_in(k, 1),
                      *length = bb_misc_in(k, 2);
  bool fits = past->rank == 4 && rows->rank == 4 && length->rank == 1;
  for (uint32_t a = 0; fits && a < 4; a++) fits = a == 2 || past->shape[a] == rows->shape[a];
  if (!fits || length->shape[0] != past->shape[0]) refuse_shapes(k);
  int64_t shape[4] = {past->shape[0], past->shape[1], past->shape[2] + rows->shape[2],
                      past->shape[3]};
  double *to = bb_misc_out(k, 0, past->dtype, 4, shape)->data;
  size_t width = (size_t)shape[3], old = (size_t)past->shape[2] * width,
         fresh = (size_t)rows->shape[2] * width;
  for (int64_t b = 0; b < shape[0]; b++) {
    int64_t at = bb_misc_row_of(k->ctx, length->data[b], past->shape[2], rows->shape[2]);
    for (int64_t h = 0; h < shape[1]; h++, to += old + fresh) {
      size_t head = (size_t)(b * shape[1] + h);
      if (at) memcpy(to, past->data + head * old, (size_t)at * width * sizeof *to);
      if (fresh) memcpy(to + (size_t)at * width, rows->data + head * fresh, fresh * sizeof *to);
    }
  }
}

/* --- gathers --- */

/* data[..., index, ...]: the axis is replaced by the axes of the indices. */
void bb_misc_gather(const bb_kernel *k) {
  const bb_misc_value *data = bb_misc_in(k, 0), *index = bb_misc_in(k, 1);
  uint32_t axis = bb_misc_axis(k, bb_misc_int(k, "axis", 0), data->rank), rank = 0;
  int64_t shape[16];
  for (uint32_t i = 0; i < axis; i++) shape[rank++] = data->shape[i];
  for (uint32_t i = 0; i < index->rank; i++) shape[rank++] = index->shape[i];
  for (uint32_t i = axis + 1; i < data->rank; i++) shape[rank++] = data->shape[i];
  bb_misc_value *out = bb_misc_out(k, 0, data->dtype, rank, shape);
  size_t outer = bb_misc_product(k, axis, data->shape);
  size_t inner = bb_misc_product(k, data->rank - axis - 1, data->shape + axis + 1);
  size_t count = bb_misc_product(k, index->rank, index->shape), extent = (size_t)data->shape[axis];
  double *to = out->data;
  for (size_t o = 0; o < outer; o++)
    for (size_t i = 0; i < count; i++, to += inner) {
      size_t at = (size_t)bb_misc_index(k, index->data[i], i, (int64_t)extent);
      if (inner) memcpy(to, data->data + (o * extent + at) * inner, inner * sizeof *to);
    }
}

/* Where element `place` of `index`, at `at`, points to in a tensor: its own place, but for `axis`.
 */
static size_t place_along(const bb_kernel *k, const bb_misc_value *data, const bb_misc_value *index,
                          uint32_t axis, const int64_t *at, size_t place, const int64_t *stride) {
  size_t offset = 0;
  for (uint32_t i = 0; i < data->rank; i++) {
    int64_t here = at[i];
    if (i == axis) here = bb_misc_index(k, index->data[place], place, data->shape[axis]);
    offset += (size_t)(here * stride[i]);
  }
  return offset;
}

static void check_along(const bb_kernel *k, const bb_misc_value *data, const bb_misc_value *index,
                        uint32_t axis) {
  if (data->rank != index->rank) refuse_shapes(k);
  for (uint32_t i = 0; i < data->rank; i++)
    if (i != axis && index->shape[i] > data->shape[i]) refuse_shapes(k);
}

void bb_misc_gather_elements(const bb_kernel *k) {
  const bb_misc_value *data = bb_misc_in(k, 0), *index = bb_misc_in(k, 1);
  uint32_t axis = bb_misc_axis(k, bb_misc_int(k, "axis", 0), data->rank);
  check_along(k, data, index, axis);
  bb_misc_value *out = bb_misc_out(k, 0, data->dtype, index->rank, index->shape);
  int64_t at[8] = {0}, stride[8];
  bb_dense_strides(data->rank, data->shape, stride);
  size_t count = bb_misc_product(k, index->rank, index->shape);
  for (size_t i = 0; i < count; i++) {
    out->data[i] = data->data[place_along(k, data, index, axis, at, i, stride)];
    bb_misc_step(index->rank, index->shape, at);
  }
}

/* Indices whose last axis holds a point in axes batch.. of the data. */
typedef struct points {
  uint32_t batch, depth;
  size_t count, inner; /* points; elements at one */
  size_t per_batch;
} points;

static points points_of(const bb_kernel *k, const bb_misc_value *data, const bb_misc_value *index,
                        int64_t batch) {
  if (index->rank == 0 || batch < 0 || batch >= index->rank) refuse_shapes(k);
  int64_t depth = index->shape[index->rank - 1];
  if (depth < 0 || batch + depth > data->rank) refuse_shapes(k);
  for (uint32_t i = 0; i < batch; i++)
    if (index->shape[i] != data->shape[i]) refuse_shapes(k);
  points p = {.batch = (uint32_t)batch, .depth = (uint32_t)depth};
  p.count = bb_misc_product(k, index->rank - 1, index->shape);
  p.per_batch = bb_misc_product(k, index->rank - 1 - p.batch, index->shape + p.batch);
  p.inner = bb_misc_product(k, data->rank - p.batch - p.depth, data->shape + p.batch + p.depth);
  return p;
}

/* The first element that point i stands for. */
static size_t place_of_point(const bb_kernel *k, const points *p, const bb_misc_value *data,
                             const bb_misc_value *index, size_t i) {
  size_t at = p->per_batch ? i / p->per_batch : 0; /* number of the batch */
  for (uint32_t d = 0; d < p->depth; d++) {
    size_t place = i * p->depth + d;
    int64_t extent = data->shape[p->batch + d];
    at = at * (size_t)extent + (size_t)bb_misc_index(k, index->data[place], place, extent);
  }
  return at * p->inner;
}

void bb_misc_gather_nd(const bb_kernel *k) {
  const bb_misc_value *data = bb_misc_in(k, 0), *index = bb_misc_in(k, 1);
  points p = points_of(k, data, index, bb_misc_int(k, "batch_dims", 0));
  int64_t shape[16];
  uint32_t rank = 0;
  for (uint32_t i = 0; i + 1 < index->rank; i++) shape[rank++] = index->shape[i];
  for (uint32_t i = p.batch + p.depth; i < data->rank; i++) shape[rank++] = data->shape[i];
  bb_misc_value *out = bb_misc_out(k, 0, data->dtype, rank, shape);
  for (size_t i = 0; i < p.count && p.inner; i++)
    memcpy(out->data + i * p.inner, data->data + place_of_point(k, &p, data, index, i),
           p.inner * sizeof(double));
}

/* --- scatters --- */

typedef enum update { UPDATE_NONE, UPDATE_ADD, UPDATE_MUL, UPDATE_MAX, UPDATE_MIN } update;

static update update_of(const bb_kernel *k) {
  static const char *const names[] = {"none", "add", "mul", "max", "min"};
  const char *name = bb_misc_text(k, "reduction", "none");
  for (int i = 0; i < 5; i++)
    if (strcmp(names[i], name) == 0) return (update)i;
  bb_fail(k->ctx, BB_ERROR_INPUT, "reduction \"%s\" is unknown", name);
}

static double updated(update how, double old, double with) {
  switch (how) {
  case UPDATE_ADD: return old + with;
  case UPDATE_MUL: return old * with;
  case UPDATE_MAX: return isnan(old) || old > with ? old : with;
  case UPDATE_MIN: return isnan(old) || old < with ? old : with;
  default: return with;
  }
}

static bb_misc_value *copy_of(const bb_kernel *k, const bb_misc_value *data) {
  bb_misc_value *out = bb_misc_out(k, 0, data->dtype, data->rank, data->shape);
  size_t count = bb_misc_product(k, data->rank, data->shape);
  if (count) memcpy(out->data, data->data, count * sizeof(double));
  return out;
}

void bb_misc_scatter_elements(const bb_kernel *k) {
  const bb_misc_value *data = bb_misc_in(k, 0), *index = bb_misc_in(k, 1), *with = bb_misc_in(k, 2);
  uint32_t axis = bb_misc_axis(k, bb_misc_int(k, "axis", 0), data->rank);
  check_along(k, data, index, axis);
  if (with->rank != index->rank) refuse_shapes(k);
  for (uint32_t i = 0; i < index->rank; i++)
    if (with->shape[i] != index->shape[i]) refuse_shapes(k);
  update how = update_of(k);
  bb_misc_value *out = copy_of(k, data);
  int64_t at[8] = {0}, stride[8];
  bb_dense_strides(data->rank, data->shape, stride);
  size_t count = bb_misc_product(k, index->rank, index->shape);
  for (size_t i = 0; i < count; i++) {
    double *to = &out->data[place_along(k, data, index, axis, at, i, stride)];
    *to = bb_round_to(out->dtype, updated(how, *to, with->data[i]));
    bb_misc_step(index->rank, index->shape, at);
  }
}

void bb_misc_scatter_nd(const bb_kernel *k) {
  const bb_misc_value *data = bb_misc_in(k, 0), *index = bb_misc_in(k, 1), *with = bb_misc_in(k, 2);
  points p = points_of(k, data, index, 0);
  size_t count;
  if (__builtin_mul_overflow(p.count, p.inner, &count) ||
      bb_misc_product(k, with->rank, with->shape) != count)
    refuse_shapes(k);
  update how = update_of(k);
  bb_misc_value *out = copy_of(k, data);
  for (size_t i = 0; i < p.count; i++) {
    double *to = out->data + place_of_point(k, &p, data, index, i);
    for (size_t e = 0; e < p.inner; e++)
      to[e] = bb_round_to(out->dtype, updated(how, to[e], with->data[i * p.inner + e]));
  }
}

/* --- the largest or smallest elements --- */

typedef struct ranked {
  double value;
  int64_t index;
} ranked;

/* The earlier of two equals comes first. */
static int earlier(const ranked *a, const ranked *b) {
  return (a->index > b->index) - (a->index < b->index);
}

static int descending(const void *left, const void *right) {
  const ranked *a = left, *b = right;
  int order = bb_misc_order(b->value, a->value);
  return order ? order : earlier(a, b);
}

static int ascending(const void *left, const void *right) {
  const ranked *a = left, *b = right;
  int order = bb_misc_order(a->value, b->value);
  return order ? order : earlier(a, b);
}

typedef int order(const void *left, const void *right);

/* Of a heap whose root comes last of all, where the root alone may be out of place. */
static void sift(ranked *heap, int64_t count, order *compare) {
  for (int64_t at = 0, next; (next = 2 * at + 1) < count; at = next) {
    if (next + 1 < count && compare(&heap[next + 1], &heap[next]) > 0) next++;
    if (compare(&heap[at], &heap[next]) >= 0) return;
    const ranked kept = heap[at];
    heap[at] = heap[next];
    heap[next] = kept;
  }
}

/* The first `kept` of a line, sorted. Few of many are held in a heap, which most of the others do not enter. */
static void pick_first(ranked *line, int64_t extent, int64_t kept, order *compare) {
  if (kept > extent / 4) {
    qsort(line, (size_t)extent, sizeof *line, compare);
    return;
  }
  qsort(line, (size_t)kept, sizeof *line, compare);
  for (int64_t i = 0; i < kept / 2; i++) { /* the other way round it is a heap */
    const ranked first = line[i];
    line[i] = line[kept - 1 - i];
    line[kept - 1 - i] = first;
  }
  for (int64_t e = kept; e < extent && kept; e++) {
    if (compare(&line[e], &line[0]) >= 0) continue;
    line[0] = line[e];
    sift(line, kept, compare);
  }
  qsort(line, (size_t)kept, sizeof *line, compare);
}

/* Always sorted, which is allowed also where it was not asked for. */
void bb_misc_top_k(const bb_kernel *k) {
  const bb_misc_value *data = bb_misc_in(k, 0), *many = bb_misc_in(k, 1);
  uint32_t axis = bb_misc_axis(k, bb_misc_int(k, "axis", -1), data->rank);
  bool largest = bb_misc_int(k, "largest", 1) != 0;
  if (bb_misc_product(k, many->rank, many->shape) != 1) refuse_shapes(k);
  double wanted = many->data[0];
  if (!(wanted >= 0 && wanted <= (double)data->shape[axis]))
    bb_fail(k->ctx, BB_ERROR_INPUT, "the %.0f largest of %lld elements", wanted,
            (long long)data->shape[axis]);
  int64_t shape[8], extent = data->shape[axis], kept = (int64_t)wanted;
  memcpy(shape, data->shape, sizeof shape);
  shape[axis] = kept;
  bb_misc_value *values = bb_misc_out(k, 0, data->dtype, data->rank, shape);
  bb_misc_value *indices = k->nout > 1 ? bb_misc_out(k, 1, BB_I64, data->rank, shape) : NULL;
  size_t outer = bb_misc_product(k, axis, shape);
  size_t inner = bb_misc_product(k, data->rank - axis - 1, shape + axis + 1);
  ranked *line = BB_NEW(k->arena, ranked, (size_t)extent);
  for (size_t o = 0; o < outer; o++)
    for (size_t i = 0; i < inner; i++) {
      const double *from = data->data + o * (size_t)extent * inner + i;
      for (int64_t e = 0; e < extent; e++) line[e] = (ranked){from[(size_t)e * inner], e};
      pick_first(line, extent, kept, largest ? descending : ascending);
      for (int64_t e = 0; e < kept; e++) {
        size_t to = (o * (size_t)kept + (size_t)e) * inner + i;
        values->data[to] = line[e].value;
        if (indices) indices->data[to] = (double)line[e].index;
      }
    }
}
