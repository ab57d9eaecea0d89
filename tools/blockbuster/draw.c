/* draw.c - elements for runs that nobody gave inputs for.
 */
#include "tool.h"

#include <stdlib.h>
#include <string.h>

const char *numpy_type(bb_dtype dtype) {
  static const char *const name[] = {
      [BB_F64] = "<f8", [BB_F32] = "<f4", [BB_F16] = "<f2",  [BB_BF16] = "|V2",
      [BB_I64] = "<i8", [BB_I32] = "<i4", [BB_BOOL] = "|b1", [BB_U32] = "<u4",
      [BB_U16] = "<u2", [BB_I16] = "<i2", [BB_U8] = "|u1",   [BB_I8] = "|i1"};
  return name[dtype];
}

size_t element_bytes(bb_dtype dtype) {
  return (size_t)(numpy_type(dtype)[2] - '0');
}

/* Floats between -1 and 1; of the narrow ones only the upper half of such a float's bits is kept. */
static void fill(bb_dtype dtype, size_t count, void *data) {
  uint64_t state = 1;
  memset(data, 0, count * element_bytes(dtype));
  for (size_t i = 0; i < count; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    double value = (double)(int64_t)(state >> 11) / (double)(1ll << 52) - 1;
    float narrow = (float)value;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    if (dtype == BB_BOOL) ((char *)data)[i] = value < 0;
    if (dtype == BB_F64) ((double *)data)[i] = value;
    if (dtype == BB_F32) ((float *)data)[i] = narrow;
    if (dtype == BB_BF16) ((uint16_t *)data)[i] = (uint16_t)(bits >> 16);
    if (dtype == BB_F16)
      ((uint16_t *)data)[i] = (uint16_t)((bits >> 31 << 15) | 0x3800 | (bits & 1023));
  }
}

void *draw_elements(bb_dtype dtype, size_t count) {
  void *data = count <= SIZE_MAX / 16 ? malloc(count * element_bytes(dtype) + 1) : NULL;
  if (data) fill(dtype, count, data);
  return data;
}
