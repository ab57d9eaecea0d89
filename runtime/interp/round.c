/* round.c - dtypes as the interpreter sees them: rounding of doubles, and little-endian bytes. */
#include "interp.h"

#include <math.h>
#include <string.h>

/* --- rounding --- */

/* To the nearest value with `digits` bits after the leading one and least exponent `least`, ties to
 * even; beyond `largest` to infinity.  Straight from double: going through float would round
 * twice. */
static double round_binary(double value, int digits, int least, double largest) {
  if (value == 0 || !isfinite(value)) return value;
  if (fabs(value) >= 2 * largest) return copysign(INFINITY, value);
  int exponent;
  frexp(value, &exponent);
  exponent = exponent - 1 < least ? least : exponent - 1;
  /* Adding 1.5 * 2^(quantum + 52) leaves exactly the multiples of the quantum. */
  double anchor = ldexp(1.5, exponent - digits + 52);
  double rounded = (fabs(value) + anchor) - anchor;
  if (rounded > largest) rounded = INFINITY;
  return copysign(rounded, value);
}

static double to_integer(double value, double low, double high) {
  if (isnan(value)) return 0;
  value = trunc(value);
  return value < low ? low : value > high ? high : value;
}

double bb_round_to(bb_dtype dtype, double value) {
  switch (dtype) {
  case BB_F32: return (double)(float)value;
  case BB_F16: return round_binary(value, 10, -14, 65504.0);
  case BB_BF16: return round_binary(value, 7, -126, 0x1.fep127);
  case BB_I64: return to_integer(value, -0x1p63, 0x1p63);
  case BB_I32: return to_integer(value, -2147483648.0, 2147483647.0);
  case BB_BOOL: return value != 0;
  case BB_F64: return value;
  default: return bb_dtype_wrap(dtype, value);
  }
}

double bb_interp_times(bb_dtype dtype, double a, double b) {
  if (dtype != BB_I32) return a * b;
  return (int32_t)((uint32_t)(int32_t)a * (uint32_t)(int32_t)b);
}

/* --- bytes --- */

static double half_to_double(uint16_t bits) {
  int exponent = bits >> 10 & 31, fraction = bits & 1023;
  double value = exponent == 31  ? (fraction ? NAN : INFINITY)
                 : exponent == 0 ? ldexp(fraction, -24)
                                 : ldexp(fraction + 1024, exponent - 25);
  return bits & 0x8000 ? -value : value;
}

/* `value` is representable. */
static uint16_t double_to_half(double value) {
  uint16_t sign = signbit(value) ? 0x8000 : 0;
  value = fabs(value);
  if (isnan(value)) return sign | 0x7e00;
  if (isinf(value)) return sign | 0x7c00;
  if (value < 0x1p-14) return sign | (uint16_t)ldexp(value, 24);
  int exponent;
  double fraction = frexp(value, &exponent); /* in [0.5, 1) */
  return sign | (uint16_t)((exponent + 14) << 10) | ((uint16_t)ldexp(fraction, 11) & 1023);
}

static double bfloat_to_double(uint16_t bits) {
  uint32_t wide = (uint32_t)bits << 16;
  float value;
  memcpy(&value, &wide, sizeof value);
  return value;
}

static uint16_t double_to_bfloat(double value) {
  float narrow = (float)value; /* exact */
  uint32_t bits;
  memcpy(&bits, &narrow, sizeof bits);
  return isnan(value) ? (uint16_t)(bits >> 16 | 0x40) : (uint16_t)(bits >> 16);
}

/* Bytes may be unaligned: one memcpy for each element. */
static double whole_to_double(int64_t value) {
  double held = (double)value;
  if (value == INT64_MAX) return held;
  return held < 0x1p63 && (int64_t)held == value ? held : NAN;
}

static int64_t double_to_whole(double value) {
  return value >= 0x1p63 ? INT64_MAX : (int64_t)value;
}

void bb_interp_check(bb_context *ctx, const char *what, bb_dtype dtype, const double *data,
                     size_t count) {
  if (dtype != BB_I64) return;
  for (size_t i = 0; i < count; i++)
    if (isnan(data[i]))
      bb_fail(ctx, BB_ERROR_UNSUPPORTED,
              "%s: element %zu is an integer beyond 2^53 that no double holds", what, i);
}

void bb_interp_load(bb_dtype dtype, const void *bytes, size_t count, double *out) {
  const char *at = bytes;
#define LOAD(type, convert)                                                                        \
  for (size_t i = 0; i < count; i++) {                                                             \
    type element;                                                                                  \
    memcpy(&element, at + i * sizeof element, sizeof element);                                     \
    out[i] = convert(element);                                                                     \
  }                                                                                                \
  break
  switch (dtype) {
  case BB_F64: LOAD(double, );
  case BB_F32: LOAD(float, (double));
  case BB_F16: LOAD(uint16_t, half_to_double);
  case BB_BF16: LOAD(uint16_t, bfloat_to_double);
  case BB_I64: LOAD(int64_t, whole_to_double);
  case BB_I32: LOAD(int32_t, (double));
  case BB_BOOL: LOAD(uint8_t, 0 !=);
  case BB_U32: LOAD(uint32_t, (double));
  case BB_U16: LOAD(uint16_t, (double));
  case BB_I16: LOAD(int16_t, (double));
  case BB_U8: LOAD(uint8_t, (double));
  case BB_I8: LOAD(int8_t, (double));
  default: break;
  }
#undef LOAD
}

void bb_interp_store(bb_dtype dtype, const double *in, size_t count, void *bytes) {
  char *at = bytes;
#define STORE(type, convert)                                                                       \
  for (size_t i = 0; i < count; i++) {                                                             \
    type element = convert(bb_round_to(dtype, in[i]));                                             \
    memcpy(at + i * sizeof element, &element, sizeof element);                                     \
  }                                                                                                \
  break
  switch (dtype) {
  case BB_F64: STORE(double, );
  case BB_F32: STORE(float, (float));
  case BB_F16: STORE(uint16_t, double_to_half);
  case BB_BF16: STORE(uint16_t, double_to_bfloat);
  case BB_I64: STORE(int64_t, double_to_whole);
  case BB_I32: STORE(int32_t, (int32_t));
  case BB_BOOL: STORE(uint8_t, (uint8_t));
  case BB_U32: STORE(uint32_t, (uint32_t));
  case BB_U16: STORE(uint16_t, (uint16_t));
  case BB_I16: STORE(int16_t, (int16_t));
  case BB_U8: STORE(uint8_t, (uint8_t));
  case BB_I8: STORE(int8_t, (int8_t));
  default: break;
  }
#undef STORE
}
