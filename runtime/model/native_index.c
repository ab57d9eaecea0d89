/* native_index.c - native kernels that read or write at indices from data: gathers, scatters, places and parts.  They move bytes, or
 * fold floats; what they do not know is left to the reference kernels.
 */
#include "native.h"

#include <string.h>

static bool is_index(const bb_native_array *a) {
  return !a->absent && !a->room && (a->dtype == BB_I64 || a->dtype == BB_I32);
}

static int64_t integer_at(const bb_native_array *a, size_t i) {
  return a->dtype == BB_I64 ? ((const int64_t *)a->data)[i] : ((const int32_t *)a->data)[i];
}

/* An index of operand 1, negative ones counted from the end. */
static size_t place_of(const bb_native_call *call, size_t i, int64_t extent) {
  int64_t at = integer_at(&call->in[1], i);
  if (at < -extent || at >= extent)
    bb_fail(call->ctx, BB_ERROR_INPUT,
            "index %lld (element %zu of the indices) is out of range for an axis of %lld",
            (long long)at, i, (long long)extent);
  return (size_t)(at < 0 ? at + extent : at);
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

static bool find_places(const indices *x, bool wide, size_t count, size_t *place) {
  for (size_t i = 0; i < count; i++) {
    place[i] = wide ? meant(x, true, i) : meant(x, false, i);
    if (place[i] >= (size_t)x->extent) return false;
  }
  return true;
}

/* Names the first index that is out of range, of `count` from `first` on. */
static void refuse_places(const bb_native_call *call, size_t first, size_t count, int64_t extent) {
  for (size_t i = 0; i < count; i++) place_of(call, first + i, extent);
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
  slice *= bb_dtype_bytes(data->dtype);
  char *to = out->data;
  const char *from = data->data;
  const indices x = {index->data, data->shape[along]};
  size_t *place = BB_NEW(call->arena, size_t, count + 1);
  if (outer && !find_places(&x, index->dtype == BB_I64, count, place))
    refuse_places(call, 0, count, x.extent);
  for (size_t o = 0; o < outer && slice; o++) {
    copy_slices(slice, place, count, from, to);
    from += (size_t)x.extent * slice;
    to += count * slice;
  }
  return true;
}

/* A row of elements of `size` bytes: element i is the one at from[places of index i * stride + i * step]. False: an index is out of
 * range. */
INLINE bool gather_row_of(const size_t size, const bool wide, const indices *x, size_t count,
                          size_t stride, size_t step, const char *from, char *to) {
  for (size_t i = 0; i < count; i++) {
    const size_t place = meant(x, wide, i);
    if (place >= (size_t)x->extent) return false;
    memcpy(to + i * size, from + (place * stride + i * step) * size, size);
  }
  return true;
}

INLINE bool gather_row(size_t size, const bool wide, const indices *x, size_t count, size_t stride,
                       size_t step, const char *from, char *to) {
  switch (size) {
  case 1: return gather_row_of(1, wide, x, count, stride, step, from, to);
  case 2: return gather_row_of(2, wide, x, count, stride, step, from, to);
  case 4:
    if (stride == 1 && step == 0) return gather_row_of(4, wide, x, count, 1, 0, from, to);
    return gather_row_of(4, wide, x, count, stride, step, from, to);
  default: return gather_row_of(8, wide, x, count, stride, step, from, to);
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
  uint32_t along = (uint32_t)axis, last = data->rank - 1;
  size_t stride[8];
  stride[last] = 1;
  for (uint32_t i = last; i > 0; i--) stride[i - 1] = stride[i] * (size_t)data->shape[i];
  for (uint32_t i = 0; i <= last; i++) {
    if (out->shape[i] != index->shape[i]) return false;
    if (i != along && index->shape[i] > data->shape[i]) return false;
  }
  const size_t size = bb_dtype_bytes(data->dtype), count = (size_t)index->shape[last];
  const int64_t extent = data->shape[along];
  size_t rows = bb_native_product(0, last, index->shape);
  int64_t at[8] = {0};
  for (size_t r = 0; r < rows && count; r++) {
    size_t base = 0;
    for (uint32_t i = 0; i < last; i++)
      if (i != along) base += (size_t)at[i] * stride[i];
    const size_t first = r * count;
    const indices x = {(const char *)index->data + first * bb_dtype_bytes(index->dtype), extent};
    const char *from = (const char *)data->data + base * size;
    char *to = (char *)out->data + first * size;
    bool fits = (index->dtype == BB_I64
                     ? gather_row(size, true, &x, count, stride[along], along != last, from, to)
                     : gather_row(size, false, &x, count, stride[along], along != last, from, to));
    if (!fits) refuse_places(call, first, count, extent);
    for (uint32_t i = last; i-- > 0;) {
      if (++at[i] < index->shape[i]) break;
      at[i] = 0;
    }
  }
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

static size_t point_at(const bb_native_call *call, const points *p, size_t i) {
  size_t at = p->per_batch ? i / p->per_batch : 0;
  for (uint32_t d = 0; d < p->depth; d++) {
    int64_t extent = call->in[0].shape[p->batch + d];
    at = at * (size_t)extent + place_of(call, i * p->depth + d, extent);
  }
  return at * p->inner;
}

bool bb_native_gather_nd(const bb_native_call *call) {
  const bb_native_array *data = &call->in[0], *out = &call->out[0];
  points p;
  if (call->nin != 2 || call->nout != 1 || out->absent || out->room) return false;
  if (out->dtype != data->dtype || out->data == data->data) return false;
  if (!find_points(call, bb_native_int(call, "batch_dims", 0), &p)) return false;
  if (bb_native_product(0, out->rank, out->shape) != p.count * p.inner) return false;
  size_t size = bb_dtype_bytes(data->dtype), run = p.inner * size;
  for (size_t i = 0; i < p.count && run; i++)
    memcpy((char *)out->data + i * run, (const char *)data->data + point_at(call, &p, i) * size,
           run);
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

static void copy_data(const bb_native_call *call) {
  const bb_native_array *data = &call->in[0];
  size_t bytes = bb_native_product(0, data->rank, data->shape) * bb_dtype_bytes(data->dtype);
  if (bytes && call->out[0].data != data->data) memcpy(call->out[0].data, data->data, bytes);
}

bool bb_native_scatter_nd(const bb_native_call *call) {
  update how = update_of(call);
  points p;
  if (!begin_scatter(call, how) || !find_points(call, 0, &p)) return false;
  const bb_native_array *with = &call->in[2];
  if (bb_native_product(0, with->rank, with->shape) != p.count * p.inner) return false;
  size_t size = bb_dtype_bytes(with->dtype);
  copy_data(call);
  for (size_t i = 0; i < p.count && p.inner; i++)
    put(how, p.inner, size, (char *)call->out[0].data + point_at(call, &p, i) * size,
        (const char *)with->data + i * p.inner * size);
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
