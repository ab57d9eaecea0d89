/* dtype.c - element types: names and sizes. */
#include "type.h"

#include <float.h>
#include <math.h>
#include <string.h>

typedef enum kind { FLOAT, WHOLE, STORED } kind;

static const struct {
  const char *name;
  uint32_t bytes;
  kind kind;
} dtypes[] = {
#define BB_DTYPE(id, name, bytes, kind) [BB_##id] = {name, bytes, kind},
#include "dtype.def"
#undef BB_DTYPE
};

const char *bb_dtype_name(bb_dtype dtype) {
  return dtypes[dtype].name;
}
uint32_t bb_dtype_bytes(bb_dtype dtype) {
  return dtypes[dtype].bytes;
}
bool bb_dtype_is_float(bb_dtype dtype) {
  return dtypes[dtype].kind == FLOAT;
}
bool bb_dtype_is_stored(bb_dtype dtype) {
  return dtypes[dtype].kind == STORED;
}

double bb_dtype_largest(bb_dtype dtype) {
  switch (dtype) {
  case BB_F16: return 65504;
  case BB_BF16: return 3.3895313892515355e38;
  case BB_F32: return FLT_MAX;
  default: return DBL_MAX;
  }
}

bool bb_dtype_has_range(bb_dtype dtype, bb_dtype of) {
  if (!bb_dtype_is_float(of)) return bb_dtype_bytes(of) == 1 || bb_dtype_largest(dtype) > 0x1p64;
  return bb_dtype_largest(dtype) >= bb_dtype_largest(of) / 2;
}

double bb_dtype_wrap(bb_dtype dtype, double value) {
  if (isnan(value)) return 0;
  value = value < -0x1p63                ? -0x1p63
          : value > 0x1.fffffffffffffp62 ? 0x1.fffffffffffffp62
                                         : trunc(value);
  switch (dtype) {
  case BB_U32: return (uint32_t)(int64_t)value;
  case BB_U16: return (uint16_t)(int64_t)value;
  case BB_I16: return (int16_t)(int64_t)value;
  case BB_U8: return (uint8_t)(int64_t)value;
  case BB_I8: return (int8_t)(int64_t)value;
  default: return value;
  }
}

bool bb_dtype_parse(const char *name, size_t length, bb_dtype *dtype) {
  for (uint32_t i = 0; i < BB_DTYPE_COUNT; i++) {
    if (strlen(dtypes[i].name) != length || memcmp(dtypes[i].name, name, length) != 0) continue;
    *dtype = (bb_dtype)i;
    return true;
  }
  return false;
}

/* The public header numbers them; the table must agree. */
enum {
#define BB_DTYPE(id, name, bytes, kind) NUMBER_##id,
#include "dtype.def"
#undef BB_DTYPE
};
#define BB_DTYPE(id, name, bytes, kind)                                                            \
  _Static_assert((int)BB_##id == (int)NUMBER_##id, "element types are numbered as dtype.def "      \
                                                   "says");
#include "dtype.def"
#undef BB_DTYPE
