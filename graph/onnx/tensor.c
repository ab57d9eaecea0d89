/* tensor.c - the tensors of the file: bytes in the message, in typed fields, or in a file beside the
 * model, mapped and never copied.
 */
#include "import.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- element types --- */

typedef enum typed_field { RAW_ONLY, FLOATS, INT32S, INT64S, DOUBLES, UINT64S } typed_field;

/* How the file holds an element type, how it is computed with here, and how inputs and outputs hold it. */
typedef struct format {
  const char *name;
  uint32_t bytes;    /* in raw data */
  typed_field field; /* the typed field that may hold it */
  bool held;
  bb_dtype dtype, stored;
} format;

static const format formats[] = {
    [0] = {"undefined", 0, RAW_ONLY, false, BB_F32, BB_F32},
    [ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT] = {"float32", 4, FLOATS, true, BB_F32, BB_F32},
    [ONNX__TENSOR_PROTO__DATA_TYPE__UINT8] = {"uint8", 1, INT32S, true, BB_I32, BB_U8},
    [ONNX__TENSOR_PROTO__DATA_TYPE__INT8] = {"int8", 1, INT32S, true, BB_I32, BB_I8},
    [ONNX__TENSOR_PROTO__DATA_TYPE__UINT16] = {"uint16", 2, INT32S, true, BB_I64, BB_U16},
    [ONNX__TENSOR_PROTO__DATA_TYPE__INT16] = {"int16", 2, INT32S, true, BB_I32, BB_I16},
    [ONNX__TENSOR_PROTO__DATA_TYPE__INT32] = {"int32", 4, INT32S, true, BB_I32, BB_I32},
    [ONNX__TENSOR_PROTO__DATA_TYPE__INT64] = {"int64", 8, INT64S, true, BB_I64, BB_I64},
    [ONNX__TENSOR_PROTO__DATA_TYPE__STRING] = {"string", 0, RAW_ONLY, false, BB_F32, BB_F32},
    [ONNX__TENSOR_PROTO__DATA_TYPE__BOOL] = {"bool", 1, INT32S, true, BB_BOOL, BB_BOOL},
    [ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16] = {"float16", 2, INT32S, true, BB_F16, BB_F16},
    [ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE] = {"float64", 8, DOUBLES, true, BB_F64, BB_F64},
    [ONNX__TENSOR_PROTO__DATA_TYPE__UINT32] = {"uint32", 4, UINT64S, true, BB_I64, BB_U32},
    [ONNX__TENSOR_PROTO__DATA_TYPE__UINT64] = {"uint64", 8, UINT64S, false, BB_I64, BB_I64},
    [ONNX__TENSOR_PROTO__DATA_TYPE__COMPLEX64] = {"complex64", 8, FLOATS, false, BB_F32, BB_F32},
    [ONNX__TENSOR_PROTO__DATA_TYPE__COMPLEX128] = {"complex128", 16, DOUBLES, false, BB_F64,
                                                   BB_F64},
    [ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16] = {"bfloat16", 2, INT32S, true, BB_BF16, BB_BF16},
};

static const format *format_of(int32_t data_type) {
  bool known = data_type > 0 && (size_t)data_type < sizeof formats / sizeof *formats;
  return known ? &formats[data_type] : &formats[0];
}

const char *bb_onnx_dtype_name(int32_t data_type) {
  return data_type > ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16 ? "an 8-bit or 4-bit type"
                                                             : format_of(data_type)->name;
}

bool bb_onnx_dtype(int32_t data_type, bb_dtype *dtype) {
  *dtype = format_of(data_type)->dtype;
  return format_of(data_type)->held;
}

bb_dtype bb_onnx_stored(int32_t data_type) {
  return format_of(data_type)->stored;
}

bool bb_onnx_dtype_widened(int32_t data_type) {
  const format *f = format_of(data_type);
  return f->held && f->bytes != bb_dtype_bytes(f->dtype);
}

/* --- external data --- */

static const char *entry(const Onnx__TensorProto *t, const char *key) {
  for (size_t i = 0; i < t->n_external_data; i++)
    if (t->external_data[i]->key && strcmp(t->external_data[i]->key, key) == 0)
      return t->external_data[i]->value;
  return NULL;
}

static bool decimal(const char *text, uint64_t *value) {
  char *end;
  if (!text || *text < '0' || *text > '9') return false;
  errno = 0;
  *value = strtoull(text, &end, 10);
  return errno == 0 && *end == '\0';
}

/* A path that stays inside the model's folder: relative, and no part of it is "..". */
static bool stays_inside(const char *location) {
  if (!location || !location[0] || location[0] == '/') return false;
  for (const char *part = location; part; part = strchr(part, '/')) {
    part += *part == '/';
    size_t length = strcspn(part, "/");
    if (length == 2 && part[0] == '.' && part[1] == '.') return false;
  }
  return true;
}

/* Refuses links that lead out of the folder. */
static const char *resolve_path(bb_onnx *m, const char *location, const char *where) {
  char *path = bb_arena_printf(m->arena, "%s/%s", m->folder, location);
  char folder[PATH_MAX], file[PATH_MAX];
  if (!realpath(m->folder, folder) || !realpath(path, file))
    bb_fail(m->ctx, BB_ERROR_IO, "%s: external data %s: no such file", where,
            bb_onnx_quote(m->arena, location));
  size_t length = strlen(folder);
  if (length == 1) length = 0; /* the root folder */
  if (strncmp(file, folder, length) != 0 || file[length] != '/')
    bb_fail(m->ctx, BB_ERROR_INPUT, "%s: external data %s leads out of the model's folder", where,
            bb_onnx_quote(m->arena, location));
  return path;
}

static const void *map_external(bb_onnx *m, const Onnx__TensorProto *t, const char *where,
                                uint64_t expect) {
  const char *location = entry(t, "location"), *offset_text = entry(t, "offset");
  const char *length_text = entry(t, "length");
  uint64_t offset = 0, length = expect;
  if (!m->folder)
    bb_fail(m->ctx, BB_ERROR_INPUT, "%s: external data, but the model has no folder", where);
  if (!stays_inside(location))
    bb_fail(m->ctx, BB_ERROR_INPUT,
            "%s: external data location %s is not inside the model's folder", where,
            bb_onnx_quote(m->arena, location));
  if (offset_text && !decimal(offset_text, &offset))
    bb_fail(m->ctx, BB_ERROR_INPUT, "%s: bad external data offset %s", where,
            bb_onnx_quote(m->arena, offset_text));
  if (length_text && !decimal(length_text, &length))
    bb_fail(m->ctx, BB_ERROR_INPUT, "%s: bad external data length %s", where,
            bb_onnx_quote(m->arena, length_text));
  if (length != expect)
    bb_fail(m->ctx, BB_ERROR_INPUT, "%s: %llu bytes of external data where its shape needs %llu",
            where, (unsigned long long)length, (unsigned long long)expect);
  return bb_program_map_file(m->program, resolve_path(m, location, where), offset, length);
}

/* --- bytes --- */

static uint64_t element_count(bb_onnx *m, const Onnx__TensorProto *t, const char *where) {
  uint64_t count = 1;
  if (t->n_dims > BB_ONNX_RANK)
    bb_fail(m->ctx, BB_ERROR_INPUT, "%s: rank %zu; at most %d is read", where, t->n_dims,
            BB_ONNX_RANK);
  for (size_t i = 0; i < t->n_dims; i++) {
    if (t->dims[i] < 0)
      bb_fail(m->ctx, BB_ERROR_INPUT, "%s: extent %lld is negative", where, (long long)t->dims[i]);
    if (__builtin_mul_overflow(count, (uint64_t)t->dims[i], &count) || count >> 48)
      bb_fail(m->ctx, BB_ERROR_INPUT, "%s: the shape is too large", where);
  }
  return count;
}

static int64_t typed_element(const Onnx__TensorProto *t, typed_field field, size_t i) {
  return field == INT32S   ? t->int32_data[i]
         : field == INT64S ? t->int64_data[i]
                           : (int64_t)t->uint64_data[i];
}

static size_t typed_count(const Onnx__TensorProto *t, typed_field field) {
  switch (field) {
  case FLOATS: return t->n_float_data;
  case INT32S: return t->n_int32_data;
  case INT64S: return t->n_int64_data;
  case DOUBLES: return t->n_double_data;
  case UINT64S: return t->n_uint64_data;
  default: return 0;
  }
}

/* The elements of a typed field in the layout of raw data. */
static const void *pack_typed(bb_onnx *m, const Onnx__TensorProto *t, const format *f,
                              uint64_t count, const char *where) {
  if (typed_count(t, f->field) != count)
    bb_fail(m->ctx, BB_ERROR_INPUT, "%s: %zu elements of data where its shape needs %llu", where,
            typed_count(t, f->field), (unsigned long long)count);
  if (f->field == FLOATS) return t->float_data;
  if (f->field == DOUBLES) return t->double_data;
  if (f->field == INT64S) return t->int64_data;
  uint8_t *packed = BB_NEW(m->program->arena, uint8_t, count * f->bytes);
  for (size_t i = 0; i < count; i++) {
    int64_t value = typed_element(t, f->field, i); /* little-endian: the low bytes come first */
    memcpy(packed + i * f->bytes, &value, f->bytes);
  }
  return packed;
}

static int64_t widened(int32_t data_type, const uint8_t *p) {
  int16_t i16;
  uint16_t u16;
  uint32_t u32;
  switch (data_type) {
  case ONNX__TENSOR_PROTO__DATA_TYPE__UINT8: return *p;
  case ONNX__TENSOR_PROTO__DATA_TYPE__INT8: return (int8_t)*p;
  case ONNX__TENSOR_PROTO__DATA_TYPE__INT16: memcpy(&i16, p, 2); return i16;
  case ONNX__TENSOR_PROTO__DATA_TYPE__UINT16: memcpy(&u16, p, 2); return u16;
  default: memcpy(&u32, p, 4); return u32;
  }
}

/* Narrow integers are held in the wider type that keeps every value. */
static const void *widen(bb_onnx *m, int32_t data_type, const uint8_t *raw, uint64_t count) {
  const format *f = format_of(data_type);
  uint32_t bytes = bb_dtype_bytes(f->dtype);
  uint8_t *wide = BB_NEW(m->program->arena, uint8_t, count * bytes);
  for (uint64_t i = 0; i < count; i++) {
    int64_t value = widened(data_type, raw + i * f->bytes);
    memcpy(wide + i * bytes, &value, bytes);
  }
  return wide;
}

/* The bytes of a tensor: little-endian, contiguous, as long as the program lives. */
static const void *tensor_bytes(bb_onnx *m, const Onnx__TensorProto *t, const char *where,
                                size_t *bytes) {
  const format *f = format_of(t->data_type);
  uint64_t count = element_count(m, t, where), expect = count * f->bytes;
  const void *data;
  if (t->segment) bb_fail(m->ctx, BB_ERROR_INPUT, "%s: a tensor in segments is not read", where);
  if (t->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL) {
    data = map_external(m, t, where, expect);
  } else if (t->has_raw_data && (t->raw_data.len || !count)) {
    if (t->raw_data.len != expect)
      bb_fail(m->ctx, BB_ERROR_INPUT, "%s: %zu bytes of data where its shape needs %llu", where,
              t->raw_data.len, (unsigned long long)expect);
    data = t->raw_data.data;
  } else {
    data = pack_typed(m, t, f, count, where);
  }
  if (bb_onnx_dtype_widened(t->data_type)) data = widen(m, t->data_type, data, count);
  *bytes = (size_t)count * bb_dtype_bytes(f->dtype);
  return data;
}

/* --- values --- */

static double float_of_half(uint16_t bits) {
  int exponent = bits >> 10 & 31, fraction = bits & 1023;
  double value = exponent == 31 ? (fraction ? NAN : INFINITY)
                 : exponent     ? ldexp(1024 + fraction, exponent - 25)
                                : ldexp(fraction, -24);
  return bits >> 15 ? -value : value;
}

static double load(bb_dtype dtype, const uint8_t *p) {
  uint16_t u16 = 0;
  uint32_t u32;
  int32_t i32;
  int64_t i64;
  float f32;
  double f64;
  switch (dtype) {
  case BB_F64: memcpy(&f64, p, 8); return f64;
  case BB_F32: memcpy(&f32, p, 4); return f32;
  case BB_F16: memcpy(&u16, p, 2); return float_of_half(u16);
  case BB_BF16:
    memcpy(&u16, p, 2);
    u32 = (uint32_t)u16 << 16;
    memcpy(&f32, &u32, 4);
    return f32;
  case BB_I64: memcpy(&i64, p, 8); return (double)i64;
  case BB_I32: memcpy(&i32, p, 4); return i32;
  default: return *p != 0;
  }
}

enum { FLOAT_ELEMENTS = 16 }; /* scales, pairs of bounds: longer ones are tensors */

/* Keeps the elements of a small tensor as expressions, and a single one as a closed form. */
static void note_elements(bb_onnx *m, bb_onnx_value *v, const uint8_t *bytes, uint64_t count) {
  bool wanted = count <= (bb_dtype_is_float(v->dtype) ? FLOAT_ELEMENTS : BB_ONNX_ELEMENTS);
  if (!wanted) return;
  const bb_expr **element = BB_NEW(m->arena, const bb_expr *, count);
  for (uint64_t i = 0; i < count; i++)
    element[i] =
        bb_expr_const(m->program, v->dtype, load(v->dtype, bytes + i * bb_dtype_bytes(v->dtype)));
  v->elements = (uint32_t)count;
  v->element = element;
  if (count == 1) v->form = element[0];
}

bb_onnx_value *bb_onnx_value_of_tensor(bb_onnx *m, const char *name, const Onnx__TensorProto *t,
                                       const char *where) {
  bb_dtype dtype;
  size_t bytes;
  if (!bb_onnx_dtype(t->data_type, &dtype))
    bb_fail(m->ctx, BB_ERROR_INPUT, "%s: tensors of %s are not read", where,
            bb_onnx_dtype_name(t->data_type));
  uint64_t count = element_count(m, t, where);
  const bb_extent **shape = BB_NEW(m->program->arena, const bb_extent *, t->n_dims);
  for (size_t i = 0; i < t->n_dims; i++) shape[i] = bb_onnx_number(m, t->dims[i]);
  bb_onnx_value *v = bb_onnx_value_new(m, dtype, (uint32_t)t->n_dims, shape);
  const void *data = tensor_bytes(m, t, where, &bytes);
  v->stored = bb_onnx_stored(t->data_type);
  v->name = name;
  v->data = data;
  v->bytes = bytes;
  note_elements(m, v, data, count);
  return v;
}
