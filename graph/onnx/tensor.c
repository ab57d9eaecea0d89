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

/* What is read of a type: nothing, constants alone, or every tensor. */
typedef enum reading { NEVER, CONSTANTS, EVERYWHERE } reading;

/* A float of few bits. */
typedef struct small_float {
  uint32_t fraction; /* bits of it */
  int bias;
  /* which codes are no numbers: none, all but the fraction set, all ones of both, minus zero, as IEEE 754 has it */
  enum { NONE, ALL_ONES, MINUS_ZERO, IEEE } special;
} small_float;

/* How the file holds an element type, how it is computed with here, and how inputs and outputs hold it. */
typedef struct format {
  const char *name;
  uint32_t bits; /* in raw data; fewer than 8: packed, the low ones of a byte come first */
  typed_field
      field; /* the typed field that may hold it; packed as raw data are, a byte an element */
  reading held;
  bb_dtype dtype, stored;
  small_float few; /* a float of 8 bits or less */
} format;

/* The types that the schema here does not know yet. */
enum {
  FLOAT8E4M3FN = ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16 + 1,
  FLOAT8E4M3FNUZ,
  FLOAT8E5M2,
  FLOAT8E5M2FNUZ,
  UINT4,
  INT4,
  FLOAT4E2M1,
  FLOAT8E8M0,
  UINT2,
  INT2
};

static const format formats[] = {
    [0] = {"undefined", 0, RAW_ONLY, NEVER, BB_F32, BB_F32, {0}},
    [ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT] =
        {"float32", 32, FLOATS, EVERYWHERE, BB_F32, BB_F32, {0}},
    [ONNX__TENSOR_PROTO__DATA_TYPE__UINT8] = {"uint8", 8, INT32S, EVERYWHERE, BB_I32, BB_U8, {0}},
    [ONNX__TENSOR_PROTO__DATA_TYPE__INT8] = {"int8", 8, INT32S, EVERYWHERE, BB_I32, BB_I8, {0}},
    [ONNX__TENSOR_PROTO__DATA_TYPE__UINT16] =
        {"uint16", 16, INT32S, EVERYWHERE, BB_I64, BB_U16, {0}},
    [ONNX__TENSOR_PROTO__DATA_TYPE__INT16] = {"int16", 16, INT32S, EVERYWHERE, BB_I32, BB_I16, {0}},
    [ONNX__TENSOR_PROTO__DATA_TYPE__INT32] = {"int32", 32, INT32S, EVERYWHERE, BB_I32, BB_I32, {0}},
    [ONNX__TENSOR_PROTO__DATA_TYPE__INT64] = {"int64", 64, INT64S, EVERYWHERE, BB_I64, BB_I64, {0}},
    [ONNX__TENSOR_PROTO__DATA_TYPE__STRING] = {"string", 0, RAW_ONLY, NEVER, BB_F32, BB_F32, {0}},
    [ONNX__TENSOR_PROTO__DATA_TYPE__BOOL] = {"bool", 8, INT32S, EVERYWHERE, BB_BOOL, BB_BOOL, {0}},
    [ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16] =
        {"float16", 16, INT32S, EVERYWHERE, BB_F16, BB_F16, {0}},
    [ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE] =
        {"float64", 64, DOUBLES, EVERYWHERE, BB_F64, BB_F64, {0}},
    [ONNX__TENSOR_PROTO__DATA_TYPE__UINT32] =
        {"uint32", 32, UINT64S, EVERYWHERE, BB_I64, BB_U32, {0}},
    [ONNX__TENSOR_PROTO__DATA_TYPE__UINT64] = {"uint64", 64, UINT64S, NEVER, BB_I64, BB_I64, {0}},
    [ONNX__TENSOR_PROTO__DATA_TYPE__COMPLEX64] =
        {"complex64", 64, FLOATS, NEVER, BB_F32, BB_F32, {0}},
    [ONNX__TENSOR_PROTO__DATA_TYPE__COMPLEX128] =
        {"complex128", 128, DOUBLES, NEVER, BB_F64, BB_F64, {0}},
    [ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16] =
        {"bfloat16", 16, INT32S, EVERYWHERE, BB_BF16, BB_BF16, {0}},
    [FLOAT8E4M3FN] = {"float8e4m3fn", 8, INT32S, CONSTANTS, BB_F32, BB_F32, {3, 7, ALL_ONES}},
    [FLOAT8E4M3FNUZ] = {"float8e4m3fnuz", 8, INT32S, CONSTANTS, BB_F32, BB_F32, {3, 8, MINUS_ZERO}},
    [FLOAT8E5M2] = {"float8e5m2", 8, INT32S, CONSTANTS, BB_F32, BB_F32, {2, 15, IEEE}},
    [FLOAT8E5M2FNUZ] =
        {"float8e5m2fnuz", 8, INT32S, CONSTANTS, BB_F32, BB_F32, {2, 16, MINUS_ZERO}},
    [UINT4] = {"uint4", 4, INT32S, CONSTANTS, BB_I32, BB_U8, {0}},
    [INT4] = {"int4", 4, INT32S, CONSTANTS, BB_I32, BB_I8, {0}},
    [FLOAT4E2M1] = {"float4e2m1", 4, INT32S, CONSTANTS, BB_F32, BB_F32, {1, 1, NONE}},
    [FLOAT8E8M0] = {"float8e8m0", 8, INT32S, NEVER, BB_F32, BB_F32, {0}},
    [UINT2] = {"uint2", 2, INT32S, CONSTANTS, BB_I32, BB_U8, {0}},
    [INT2] = {"int2", 2, INT32S, CONSTANTS, BB_I32, BB_I8, {0}},
};

static const format *format_of(int32_t data_type) {
  bool known = data_type > 0 && (size_t)data_type < sizeof formats / sizeof *formats;
  return known ? &formats[data_type] : &formats[0];
}

const char *bb_onnx_dtype_name(int32_t data_type) {
  return format_of(data_type)->name;
}

bool bb_onnx_dtype(int32_t data_type, bb_dtype *dtype) {
  *dtype = format_of(data_type)->dtype;
  return format_of(data_type)->held == EVERYWHERE;
}

bb_dtype bb_onnx_stored(int32_t data_type) {
  return format_of(data_type)->stored;
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

/* The elements of a typed field in the layout of raw data.  Types of less than a byte are packed there, too. */
static const void *pack_typed(bb_onnx *m, const Onnx__TensorProto *t, const format *f,
                              uint64_t count, const char *where) {
  uint32_t bytes = f->bits < 8 ? 1 : f->bits / 8;
  if (f->bits < 8) count = (count * f->bits + 7) / 8;
  if (typed_count(t, f->field) != count)
    bb_fail(m->ctx, BB_ERROR_INPUT, "%s: %zu elements of data where its shape needs %llu", where,
            typed_count(t, f->field), (unsigned long long)count);
  if (f->field == FLOATS) return t->float_data;
  if (f->field == DOUBLES) return t->double_data;
  if (f->field == INT64S) return t->int64_data;
  uint8_t *packed = BB_NEW(m->program->arena, uint8_t, count * bytes);
  for (size_t i = 0; i < count; i++) {
    int64_t value = typed_element(t, f->field, i); /* little-endian: the low bytes come first */
    memcpy(packed + i * bytes, &value, bytes);
  }
  return packed;
}

static double float_of(const small_float *f, uint32_t bits, uint32_t code) {
  uint32_t magnitude = code & ((1u << (bits - 1)) - 1),
           fraction = magnitude & ((1u << f->fraction) - 1);
  int exponent = (int)(magnitude >> f->fraction), most = (1 << (bits - 1 - f->fraction)) - 1;
  bool negative = code >> (bits - 1);
  if (f->special == MINUS_ZERO && negative && !magnitude) return NAN;
  if (f->special == ALL_ONES && magnitude == (1u << (bits - 1)) - 1) return NAN;
  double value = exponent ? ldexp((double)(fraction + (1u << f->fraction)),
                                  exponent - f->bias - (int)f->fraction)
                          : ldexp((double)fraction, 1 - f->bias - (int)f->fraction);
  if (f->special == IEEE && exponent == most) value = fraction ? NAN : INFINITY;
  return negative ? -value : value;
}

/* The bits of element i, as a number without a sign. */
static uint32_t code_of(const format *f, const uint8_t *raw, uint64_t i) {
  uint32_t code = 0;
  if (f->bits >= 8)
    memcpy(&code, raw + i * (f->bits / 8), f->bits / 8);
  else
    code = raw[i * f->bits / 8] >> (i * f->bits % 8) & ((1u << f->bits) - 1);
  return code;
}

/* Elements of few bits are held in the wider type that keeps every value. */
static const void *widen(bb_onnx *m, const format *f, const uint8_t *raw, uint64_t count) {
  uint32_t bytes = bb_dtype_bytes(f->dtype);
  uint8_t *wide = BB_NEW(m->program->arena, uint8_t, count * bytes);
  bool is_signed = bb_dtype_wrap(f->stored, -1) < 0;
  for (uint64_t i = 0; i < count; i++) {
    uint32_t code = code_of(f, raw, i);
    int64_t value = code;
    if (is_signed && code >> (f->bits - 1)) value -= (int64_t)1 << f->bits;
    float number = bb_dtype_is_float(f->dtype) ? (float)float_of(&f->few, f->bits, code) : 0;
    memcpy(wide + i * bytes, bb_dtype_is_float(f->dtype) ? (void *)&number : (void *)&value, bytes);
  }
  return wide;
}

/* The bytes of a tensor: little-endian, contiguous, as long as the program lives. */
static const void *tensor_bytes(bb_onnx *m, const Onnx__TensorProto *t, const char *where,
                                size_t *bytes) {
  const format *f = format_of(t->data_type);
  uint64_t count = element_count(m, t, where), expect = (count * f->bits + 7) / 8;
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
  if (f->bits != 8 * bb_dtype_bytes(f->dtype)) data = widen(m, f, data, count);
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
  const format *f = format_of(t->data_type);
  size_t bytes;
  if (f->held == NEVER)
    bb_fail(m->ctx, BB_ERROR_INPUT, "%s: tensors of %s are not read", where, f->name);
  uint64_t count = element_count(m, t, where);
  const bb_extent **shape = BB_NEW(m->program->arena, const bb_extent *, t->n_dims);
  for (size_t i = 0; i < t->n_dims; i++) shape[i] = bb_onnx_number(m, t->dims[i]);
  bb_onnx_value *v = bb_onnx_value_new(m, f->dtype, (uint32_t)t->n_dims, shape);
  const void *data = tensor_bytes(m, t, where, &bytes);
  v->stored = f->stored;
  if (f->held == CONSTANTS) v->bits = f->bits;
  v->name = name;
  v->data = data;
  v->bytes = bytes;
  note_elements(m, v, data, count);
  return v;
}
