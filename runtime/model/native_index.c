/* native_index.c - native kernels that read or write at indices from data: gathers, scatters, places and parts.  They move bytes, or
 * fold floats; what they do not know is left to the reference kernels.  Threads share what is gathered; one that meets an index out of
 * range says so, and the first of such indices is looked for once all have ended.
 */
#include "native.h"

#include <stdatomic.h>
#include <string.h>

enum { ELEMENTS = 1 << 12, BYTES = 1 << 14 }; /* worth a task of a thread */

static bool is_index(const bb_native_array *a) {
  return !a->absent && !a->room && (a->dtype == BB_I64 || a->dtype == BB_I32);
}

static int64_t integer_at(const bb_native_array *a, size_t i) {
  return a->dtype == BB_I64 ? ((const int64_t *)a->data)[i] : ((const int32_t *)a->data)[i];
}

/* Where an index of operand 1 points, negative ones counted from the end; false: out of range. */
static bool find_place(const bb_native_call *call, size_t i, int64_t extent, size_t *place) {
  const int64_t at = integer_at(&call->in[1], i);
  *place = (size_t)(at < 0 ? at + extent : at);
  return at >= -extent && at < extent;
}

/* at: where it lies; i: which it is. */
static _Noreturn void refuse_place(const bb_native_call *call, size_t at, size_t i,
                                   int64_t extent) {
  bb_fail(call->ctx, BB_ERROR_INPUT,
          "index %lld (element %zu of the indices) is out of range for an axis of %lld",
          (long long)integer_at(&call->in[1], at), i, (long long)extent);
}

static size_t place_of(const bb_native_call *call, size_t i, int64_t extent) {
  size_t place;
  if (!find_place(call, i, extent, &place)) refuse_place(call, i, i, extent);
  return place;
}

/* Things of so many bytes that are worth a task. */
static size_t each_of(size_t bytes) {
  return bytes < BYTES ? BYTES / (bytes + 1) + 1 : 1;
}

/* --- slices and elements --- */

#define INLINE static inline __attribute__((always_inline))

/* An operand's indices along an axis, of which the kernel is made for each type. */
typedef struct indices {
  const void *at;
  int64_t extent;
} indices;

/* Where index i points, negative ones counted from the end; beyond the extent where it is out of range. */
INLINE size_t meant(const indices *x, const bool wide, size_t i) {
  int64_t at = wide ? ((const int64_t *)x->at)[i] : ((const int32_t *)x->at)[i];
  return (size_t)(at < 0 ? at + x->extent : at);
}

/* Names the first index that is out of range. */
static void refuse_places(const bb_native_call *call, size_t count, int64_t extent) {
  for (size_t i = 0; i < count; i++) place_of(call, i, extent);
}

INLINE void copy_slices_of(const size_t size, const size_t *place, size_t count, const char *from,
                           char *to) {
  for (size_t i = 0; i < count; i++) memcpy(to + i * size, from + place[i] * size, size);
}

/* Short slices are copied by instructions, not by calls. */
static void copy_slices(size_t size, const size_t *place, size_t count, const char *from,
                        char *to) {
  switch (size) {
  case 1: copy_slices_of(1, place, count, from, to); return;
  case 2: copy_slices_of(2, place, count, from, to); return;
  case 4: copy_slices_of(4, place, count, from, to); return;
  case 8: copy_slices_of(8, place, count, from, to); return;
  case 16: copy_slices_of(16, place, count, from, to); return;
  case 32: copy_slices_of(32, place, count, from, to); return;
  default: copy_slices_of(size, place, count, from, to); return;
  }
}

/* Slices at `count` places, of each of what lies outside the axis. */
typedef struct slices {
  indices index;
  bool wide;
  size_t count, size, pieces; /* pieces: that the places are divided into */
  size_t *place;
  const char *from;
  char *to;
  atomic_bool refused;
} slices;

static void find_places(void *user, size_t from, size_t to, uint32_t thread) {
  slices *s = user;
  size_t beyond = 0;
  (void)thread;
  for (size_t i = from; i < to; i++) {
    s->place[i] = s->wide ? meant(&s->index, true, i) : meant(&s->index, false, i);
    beyond += s->place[i] >= (size_t)s->index.extent;
  }
  if (beyond) atomic_store_explicit(&s->refused, true, memory_order_relaxed);
}

static void copy_pieces(void *user, size_t from, size_t to, uint32_t thread) {
  const slices *s = user;
  (void)thread;
  for (size_t task = from; task < to; task++) {
    const size_t outer = task / s->pieces, piece = task % s->pieces;
    const size_t first = s->count * piece / s->pieces, end = s->count * (piece + 1) / s->pieces;
    copy_slices(s->size, s->place + first, end - first,
                s->from + outer * (size_t)s->index.extent * s->size,
                s->to + (outer * s->count + first) * s->size);
  }
}

bool bb_native_gather(const bb_native_call *call) {
  if (call->nin != 2 || call->nout != 1) return false;
  const bb_native_array *data = &call->in[0], *index = &call->in[1], *out = &call->out[0];
  if (data->absent || index->absent || data->dtype != out->dtype) return false;
  if (index->dtype != BB_I64 && index->dtype != BB_I32) return false;
  if (data->room || index->room || out->room) return false;
  int64_t axis = bb_native_int(call, "axis", 0);
  if (axis < 0) axis += data->rank;
  if (axis < 0 || axis >= (int64_t)data->rank) return false;
  uint32_t along = (uint32_t)axis;
  size_t outer = bb_native_product(0, along, data->shape),
         count = bb_native_product(0, index->rank, index->shape);
  size_t slice = bb_native_product(along + 1, data->rank, data->shape);
  if (bb_native_product(0, out->rank, out->shape) != outer * count * slice) return false;
  slices s = {.index = {index->data, data->shape[along]},
              .wide = index->dtype == BB_I64,
              .count = count,
              .size = slice * bb_dtype_bytes(data->dtype),
              .from = data->data,
              .to = out->data};
  s.place = BB_NEW(call->arena, size_t, count + 1);
  if (outer) bb_native_share(call, count, ELEMENTS, find_places, &s);
  if (atomic_load(&s.refused)) refuse_places(call, count, s.index.extent);
  if (!count || !s.size) return true;
  s.pieces = (count - 1) / each_of(s.size) + 1;
  bb_native_share(call, outer * s.pieces, each_of(count * s.size), copy_pieces, &s);
  return true;
}

/* A row of elements of one size: element i is the one at from[place of index i * stride + i * step].  Several are loaded before any
 * is stored: one by one they take 1.1 to 1.6 times as long.  False: an index is out of
 * range. */
#define GATHER_ROW(element)                                                                        \
  INLINE bool gather_##element(const bool wide, const indices *x, size_t count, size_t stride,     \
                               size_t step, const void *data, void *result) {                      \
    const element *from = data;                                                                    \
    element *to = result;                                                                          \
    const size_t extent = (size_t)x->extent;                                                       \
    size_t i = 0;                                                                                  \
    for (; i + 4 <= count; i += 4, from += 4 * step) {                                             \
      const size_t a = meant(x, wide, i), b = meant(x, wide, i + 1), c = meant(x, wide, i + 2),    \
                   d = meant(x, wide, i + 3);                                                      \
      if ((a >= extent) | (b >= extent) | (c >= extent) | (d >= extent)) return false;             \
      const element at_a = from[a * stride], at_b = from[b * stride + step],                       \
                    at_c = from[c * stride + 2 * step], at_d = from[d * stride + 3 * step];        \
      to[i] = at_a, to[i + 1] = at_b, to[i + 2] = at_c, to[i + 3] = at_d;                          \
    }                                                                                              \
    for (; i < count; i++, from += step) {                                                         \
      const size_t a = meant(x, wide, i);                                                          \
      if (a >= extent) return false;                                                               \
      to[i] = from[a * stride];                                                                    \
    }                                                                                              \
    return true;                                                                                   \
  }
typedef uint8_t __attribute__((may_alias)) bits8;
typedef uint16_t __attribute__((may_alias)) bits16;
typedef uint32_t __attribute__((may_alias)) bits32;
typedef uint64_t __attribute__((may_alias)) bits64;
GATHER_ROW(bits8)
GATHER_ROW(bits16)
GATHER_ROW(bits32)
GATHER_ROW(bits64)
#undef GATHER_ROW

INLINE bool gather_row(size_t size, const bool wide, const indices *x, size_t count, size_t stride,
                       size_t step, const char *from, char *to) {
  switch (size) {
  case 1: return gather_bits8(wide, x, count, stride, step, from, to);
  case 2: return gather_bits16(wide, x, count, stride, step, from, to);
  case 4:
    if (stride == 1 && step == 0) return gather_bits32(wide, x, count, 1, 0, from, to);
    return gather_bits32(wide, x, count, stride, step, from, to);
  default: return gather_bits64(wide, x, count, stride, step, from, to);
  }
}

/* Elements each of which has its own index along an axis, by rows of the last axis. */
typedef struct elements {
  const bb_native_array *data, *index;
  char *to;
  uint32_t along, last;
  size_t data_step[8], index_step[8];
  size_t count, pieces; /* of a row; that it is divided into */
  atomic_bool refused;
} elements;

/* Where a row's elements lie, but for the axis and the last, and where its indices do. */
static void find_base(const elements *e, const size_t *at, size_t *data, size_t *index) {
  *data = *index = 0;
  for (uint32_t i = 0; i < e->last; i++) {
    if (i != e->along) *data += at[i] * e->data_step[i];
    *index += at[i] * e->index_step[i];
  }
}

static void find_row(const elements *e, size_t row, size_t *at) {
  for (uint32_t i = e->last; i-- > 0; row /= (size_t)e->index->shape[i])
    at[i] = row % (size_t)e->index->shape[i];
}

static void next_row(const elements *e, size_t *at) {
  for (uint32_t i = e->last; i-- > 0; at[i] = 0)
    if (++at[i] < (size_t)e->index->shape[i]) return;
}

static void gather_rows(void *user, size_t from, size_t to, uint32_t thread) {
  elements *e = user;
  const size_t size = bb_dtype_bytes(e->data->dtype), wide = bb_dtype_bytes(e->index->dtype);
  const size_t step = e->along != e->last ? e->data_step[e->last] : 0;
  const size_t stride = e->data_step[e->along];
  size_t place[8];
  (void)thread;
  find_row(e, from / e->pieces, place);
  for (size_t task = from; task < to; task++) {
    const size_t row = task / e->pieces, piece = task % e->pieces;
    const size_t first = e->count * piece / e->pieces;
    const size_t count = e->count * (piece + 1) / e->pieces - first;
    size_t base, of_index;
    find_base(e, place, &base, &of_index);
    const indices x = {(const char *)e->index->data + (of_index + first) * wide,
                       e->data->shape[e->along]};
    const char *data = (const char *)e->data->data + (base + first * step) * size;
    char *result = e->to + (row * e->count + first) * size;
    const bool fits = wide == sizeof(int64_t)
                          ? gather_row(size, true, &x, count, stride, step, data, result)
                          : gather_row(size, false, &x, count, stride, step, data, result);
    if (!fits) atomic_store_explicit(&e->refused, true, memory_order_relaxed);
    if (piece + 1 == e->pieces) next_row(e, place);
  }
}

static void take_steps(const bb_native_array *a, size_t *step) {
  int64_t dense = 1;
  for (uint32_t i = a->rank; i-- > 0; dense *= a->shape[i])
    step[i] = (size_t)(a->steps ? a->step[i] : dense);
}

/* Names the first index that is out of range. */
static void refuse_elements(const bb_native_call *call, const elements *e, size_t rows) {
  const int64_t extent = e->data->shape[e->along];
  size_t place[8] = {0}, base, of_index, named;
  for (size_t row = 0; row < rows; row++, next_row(e, place)) {
    find_base(e, place, &base, &of_index);
    for (size_t i = 0; i < e->count; i++)
      if (!find_place(call, of_index + i, extent, &named))
        refuse_place(call, of_index + i, row * e->count + i, extent);
  }
}

/* Each element of the result has its own index along the axis, and its own place along the others. */
bool bb_native_gather_elements(const bb_native_call *call) {
  if (call->nin != 2 || call->nout != 1) return false;
  const bb_native_array *data = &call->in[0], *index = &call->in[1], *out = &call->out[0];
  if (data->absent || index->absent || data->dtype != out->dtype) return false;
  if (data->data == out->data || index->data == out->data) return false;
  if (index->dtype != BB_I64 && index->dtype != BB_I32) return false;
  if (data->room || index->room || out->room) return false;
  if (!data->rank || index->rank != data->rank || out->rank != data->rank) return false;
  int64_t axis = bb_native_int(call, "axis", 0);
  if (axis < 0) axis += data->rank;
  if (axis < 0 || axis >= (int64_t)data->rank) return false;
  elements e = {.data = data,
                .index = index,
                .to = out->data,
                .along = (uint32_t)axis,
                .last = data->rank - 1,
                .count = (size_t)index->shape[data->rank - 1]};
  take_steps(data, e.data_step);
  take_steps(index, e.index_step);
  for (uint32_t i = 0; i <= e.last; i++) {
    if (out->shape[i] != index->shape[i]) return false;
    if (i != e.along && index->shape[i] > data->shape[i]) return false;
  }
  const size_t rows = bb_native_product(0, e.last, index->shape);
  if (!e.count) return true;
  e.pieces = (e.count - 1) / ELEMENTS + 1;
  bb_native_share(call, rows * e.pieces, ELEMENTS / (e.count + 1) + 1, gather_rows, &e);
  if (atomic_load(&e.refused)) refuse_elements(call, &e, rows);
  return true;
}

/* --- points --- */

/* Indices whose last axis holds a point in axes batch.. of operand 0. */
typedef struct points {
  uint32_t batch, depth;
  size_t count, inner, per_batch; /* points; elements at one; points in a batch */
} points;

static bool find_points(const bb_native_call *call, int64_t batch, points *p) {
  const bb_native_array *data = &call->in[0], *index = &call->in[1];
  if (data->absent || data->room || !is_index(index)) return false;
  if (!index->rank || batch < 0 || batch >= (int64_t)index->rank) return false;
  int64_t depth = index->shape[index->rank - 1];
  if (batch + depth > (int64_t)data->rank) return false;
  for (uint32_t i = 0; i < (uint32_t)batch; i++)
    if (index->shape[i] != data->shape[i]) return false;
  *p = (points){.batch = (uint32_t)batch, .depth = (uint32_t)depth};
  p->count = bb_native_product(0, index->rank - 1, index->shape);
  p->per_batch = bb_native_product(p->batch, index->rank - 1, index->shape);
  p->inner = bb_native_product(p->batch + p->depth, data->rank, data->shape);
  return true;
}

/* Where point i lies; false: one of its indices is out of range. */
static bool find_point(const bb_native_call *call, const points *p, size_t i, size_t *point) {
  size_t at = p->per_batch ? i / p->per_batch : 0;
  for (uint32_t d = 0; d < p->depth; d++) {
    const int64_t extent = call->in[0].shape[p->batch + d];
    size_t place;
    if (!find_place(call, i * p->depth + d, extent, &place)) return false;
    at = at * (size_t)extent + place;
  }
  *point = at * p->inner;
  return true;
}

static void refuse_points(const bb_native_call *call, const points *p) {
  for (size_t i = 0; i < p->count; i++)
    for (uint32_t d = 0; d < p->depth; d++)
      place_of(call, i * p->depth + d, call->in[0].shape[p->batch + d]);
}

typedef struct gathered {
  const bb_native_call *call;
  const points *points;
  atomic_bool refused;
} gathered;

static void gather_points(void *user, size_t from, size_t to, uint32_t thread) {
  gathered *g = user;
  const size_t size = bb_dtype_bytes(g->call->in[0].dtype), run = g->points->inner * size;
  (void)thread;
  for (size_t i = from; i < to; i++) {
    size_t at;
    if (!find_point(g->call, g->points, i, &at)) {
      atomic_store_explicit(&g->refused, true, memory_order_relaxed);
      return;
    }
    memcpy((char *)g->call->out[0].data + i * run, (const char *)g->call->in[0].data + at * size,
           run);
  }
}

bool bb_native_gather_nd(const bb_native_call *call) {
  const bb_native_array *data = &call->in[0], *out = &call->out[0];
  points p;
  if (call->nin != 2 || call->nout != 1 || out->absent || out->room) return false;
  if (out->dtype != data->dtype || out->data == data->data) return false;
  if (!find_points(call, bb_native_int(call, "batch_dims", 0), &p)) return false;
  if (bb_native_product(0, out->rank, out->shape) != p.count * p.inner) return false;
  if (!p.inner) return true;
  gathered g = {.call = call, .points = &p};
  bb_native_share(call, p.count, each_of(p.inner * bb_dtype_bytes(data->dtype)) / 4 + 1,
                  gather_points, &g);
  if (atomic_load(&g.refused)) refuse_points(call, &p);
  return true;
}

/* --- scatters --- */

typedef enum update { UPDATE_NONE, UPDATE_ADD, UPDATE_MUL, UPDATE_OTHER } update;

static update update_of(const bb_native_call *call) {
  static const char *const names[] = {"none", "add", "mul"};
  for (uint32_t i = 0; i < call->misc->count; i++) {
    const bb_attribute *a = &call->misc->attribute[i];
    if (strcmp(a->name, "reduction") != 0 || a->kind != BB_ATTR_TEXT) continue;
    for (int k = 0; k < 3; k++)
      if (strcmp(a->text, names[k]) == 0) return (update)k;
    return UPDATE_OTHER;
  }
  return UPDATE_NONE;
}

/* Elements from `at` on, and the same of what they become or are folded with. */
static void put(update how, size_t count, size_t size, void *to, const void *with) {
  float *sum = to;
  const float *more = with;
  if (how == UPDATE_NONE)
    memcpy(to, with, count * size);
  else if (how == UPDATE_ADD)
    for (size_t i = 0; i < count; i++) sum[i] += more[i];
  else
    for (size_t i = 0; i < count; i++) sum[i] *= more[i];
}

/* Operands of one type, of which results begin as operand 0. */
static bool begin_scatter(const bb_native_call *call, update how) {
  if (call->nin != 3 || call->nout != 1) return false;
  const bb_native_array *data = &call->in[0], *with = &call->in[2], *out = &call->out[0];
  if (data->absent || with->absent || out->absent || data->room || with->room || out->room)
    return false;
  if (how == UPDATE_OTHER || (how != UPDATE_NONE && data->dtype != BB_F32)) return false;
  if (data->dtype != with->dtype || data->dtype != out->dtype || data->rank != out->rank)
    return false;
  for (uint32_t i = 0; i < data->rank; i++)
    if (data->shape[i] != out->shape[i]) return false;
  return with->data != out->data && call->in[1].data != out->data;
}

static void copy_bytes(void *user, size_t from, size_t to, uint32_t thread) {
  const bb_native_call *call = user;
  (void)thread;
  memcpy((char *)call->out[0].data + from, (const char *)call->in[0].data + from, to - from);
}

static void copy_data(const bb_native_call *call) {
  const bb_native_array *data = &call->in[0];
  size_t bytes = bb_native_product(0, data->rank, data->shape) * bb_dtype_bytes(data->dtype);
  if (bytes && call->out[0].data != data->data)
    bb_native_share(call, bytes, 4 * BYTES, copy_bytes, (void *)call);
}

/* What is scattered at points: threads have columns of all of them, since points may be the same. */
typedef struct scattered {
  const bb_native_call *call;
  const points *points;
  update how;
  size_t *at;
} scattered;

static void scatter_columns(void *user, size_t from, size_t to, uint32_t thread) {
  const scattered *s = user;
  const size_t size = bb_dtype_bytes(s->call->in[2].dtype), inner = s->points->inner;
  const char *with = s->call->in[2].data;
  char *out = s->call->out[0].data;
  (void)thread;
  for (size_t i = 0; i < s->points->count; i++)
    put(s->how, to - from, size, out + (s->at[i] + from) * size, with + (i * inner + from) * size);
}

bool bb_native_scatter_nd(const bb_native_call *call) {
  update how = update_of(call);
  points p;
  if (!begin_scatter(call, how) || !find_points(call, 0, &p)) return false;
  const bb_native_array *with = &call->in[2];
  if (bb_native_product(0, with->rank, with->shape) != p.count * p.inner) return false;
  scattered s = {.call = call, .points = &p, .how = how};
  s.at = BB_NEW(call->arena, size_t, p.count + 1);
  for (size_t i = 0; i < p.count && p.inner; i++)
    if (!find_point(call, &p, i, &s.at[i])) refuse_points(call, &p);
  copy_data(call);
  if (!p.count || !p.inner) return true;
  const size_t each = ELEMENTS / p.count + 1;
  bb_native_share(call, p.inner, each < 64 ? 64 : each, scatter_columns, &s);
  return true;
}

/* Each element has its own index along the axis, and its own place along the others. */
bool bb_native_scatter_elements(const bb_native_call *call) {
  update how = update_of(call);
  if (!begin_scatter(call, how) || !is_index(&call->in[1])) return false;
  const bb_native_array *data = &call->in[0], *index = &call->in[1], *with = &call->in[2];
  int64_t axis = bb_native_int(call, "axis", 0), at[8] = {0};
  if (axis < 0) axis += data->rank;
  if (axis < 0 || axis >= (int64_t)data->rank) return false;
  if (index->rank != data->rank || with->rank != data->rank) return false;
  for (uint32_t i = 0; i < data->rank; i++)
    if (with->shape[i] != index->shape[i] ||
        (i != (uint32_t)axis && index->shape[i] > data->shape[i]))
      return false;
  size_t count = bb_native_product(0, index->rank, index->shape),
         size = bb_dtype_bytes(data->dtype);
  copy_data(call);
  for (size_t i = 0; i < count; i++) {
    size_t place = 0;
    for (uint32_t a = 0; a < data->rank; a++) {
      size_t here = a == (uint32_t)axis ? place_of(call, i, data->shape[a]) : (size_t)at[a];
      place = place * (size_t)data->shape[a] + here;
    }
    put(how, 1, size, (char *)call->out[0].data + place * size,
        (const char *)with->data + i * size);
    for (uint32_t a = data->rank; a-- > 0;) {
      if (++at[a] < index->shape[a]) break;
      at[a] = 0;
    }
  }
  return true;
}

/* --- as long as data decides --- */

static bool is_set(const bb_native_array *a, size_t i) {
  switch (a->dtype) {
  case BB_BOOL: return ((const uint8_t *)a->data)[i] != 0;
  case BB_F32: return ((const float *)a->data)[i] != 0;
  case BB_I32: return ((const int32_t *)a->data)[i] != 0;
  default: return ((const int64_t *)a->data)[i] != 0;
  }
}

/* Places of elements that are not zero. */
bool bb_native_non_zero(const bb_native_call *call) {
  const bb_native_array *data = &call->in[0], *out = &call->out[0];
  if (call->nin != 1 || call->nout != 1 || !call->told || data->absent || data->room) return false;
  if (data->dtype != BB_BOOL && data->dtype != BB_F32 && !is_index(data)) return false;
  if (out->absent || out->room || out->dtype != BB_I64) return false;
  if (out->rank != 2 || out->shape[0] != (int64_t)data->rank) return false;
  size_t count = bb_native_product(0, data->rank, data->shape), found = 0, at = 0;
  for (size_t i = 0; i < count; i++) found += is_set(data, i);
  if ((int64_t)found > out->shape[1]) return false; /* the results have no room for them */
  *call->told = (int64_t)found;
  int64_t *to = out->data;
  for (size_t i = 0; i < count && at < found; i++) {
    if (!is_set(data, i)) continue;
    size_t rest = i;
    for (uint32_t a = data->rank; a-- > 0; rest /= (size_t)data->shape[a])
      to[a * found + at] = (int64_t)(rest % (size_t)data->shape[a]);
    at++;
  }
  return true;
}

/* Part `index` of an axis, whose parts are as long as operand 1 says, one behind the other. */
bool bb_native_part(const bb_native_call *call) {
  const bb_native_array *data = &call->in[0], *lengths = &call->in[1], *out = &call->out[0];
  if (call->nin != 2 || call->nout != 1 || data->absent || data->room || !is_index(lengths))
    return false;
  if (out->absent || out->room || out->dtype != data->dtype || out->data == data->data)
    return false;
  int64_t axis = bb_native_int(call, "axis", 0), which = bb_native_int(call, "index", 0);
  if (axis < 0 || axis >= (int64_t)data->rank || lengths->rank != 1 || out->rank != data->rank)
    return false;
  int64_t extent = data->shape[axis], left = extent, from = 0, length = 0;
  if (which < 0 || which >= lengths->shape[0]) return false;
  for (int64_t i = 0; i < lengths->shape[0]; i++) {
    int64_t one = integer_at(lengths, (size_t)i);
    if (one < 0 || one > left) return false; /* the reference kernel says what is wrong */
    left -= one;
    if (i < which) from += one;
    if (i == which) length = one;
  }
  bool fits = call->told ? length <= out->shape[axis] : length == out->shape[axis];
  for (uint32_t i = 0; i < data->rank; i++)
    fits &= i == (uint32_t)axis || out->shape[i] == data->shape[i];
  if (left || !fits) return false;
  if (call->told) *call->told = length;
  size_t outer = bb_native_product(0, (uint32_t)axis, data->shape);
  size_t inner =
      bb_native_product((uint32_t)axis + 1, data->rank, data->shape) * bb_dtype_bytes(data->dtype);
  size_t run = (size_t)length * inner;
  for (size_t o = 0; o < outer && run; o++)
    memcpy((char *)out->data + o * run,
           (const char *)data->data + (o * (size_t)extent + (size_t)from) * inner, run);
  return true;
}
