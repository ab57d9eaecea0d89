/* dtype.c - element types: names and sizes. */
#include "type.h"

#include <string.h>

static const struct {
  const char *name;
  uint32_t bytes;
  bool is_float;
} dtypes[] = {
#define BB_DTYPE(id, name, bytes, is_float) [BB_##id] = {name, bytes, is_float},
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
  return dtypes[dtype].is_float;
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
#define BB_DTYPE(id, name, bytes, is_float) NUMBER_##id,
#include "dtype.def"
#undef BB_DTYPE
};
#define BB_DTYPE(id, name, bytes, is_float)                                                        \
  _Static_assert((int)BB_##id == (int)NUMBER_##id, "element types are numbered as dtype.def "      \
                                                   "says");
#include "dtype.def"
#undef BB_DTYPE
