/* integer.h - the arithmetic of whole numbers in kernels, the same on every device.
 *
 * Nothing is undefined: what does not fit saturates or wraps, a quotient by zero is zero.  BB_INTEGER is what a
 * device writes before a function that is always inlined.  C and C++.
 */

/* How many of `size` indices from `start` on lie below `extent`. */
BB_INTEGER int64_t bb_clip(int64_t start, int64_t size, int64_t extent) {
  int64_t left = extent - start;
  return left < 0 ? 0 : left < size ? left : size;
}

BB_INTEGER int64_t bb_min(int64_t a, int64_t b) {
  return a < b ? a : b;
}
BB_INTEGER int64_t bb_max(int64_t a, int64_t b) {
  return a > b ? a : b;
}
/* Toward zero; by zero gives zero. */
BB_INTEGER int64_t bb_quotient(int64_t a, int64_t b) {
  return b == 0 ? 0 : b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}
BB_INTEGER int64_t bb_remainder(int64_t a, int64_t b) {
  return b == 0 || b == -1 ? 0 : a % b;
}
BB_INTEGER int64_t bb_modulo(int64_t a, int64_t b) {
  int64_t rest = bb_remainder(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
BB_INTEGER int64_t bb_and(int64_t a, int64_t b) {
  return a & b;
}
BB_INTEGER int64_t bb_sign(int64_t a) {
  return (a > 0) - (a < 0);
}
BB_INTEGER int64_t bb_abs(int64_t a) {
  return a < 0 ? (int64_t)(0 - (uint64_t)a) : a;
}
/* A float that does not fit saturates, NaN gives 0. */
BB_INTEGER int64_t bb_to_i64(double a) {
  return a != a ? 0 : a >= 0x1p63 ? INT64_MAX : a < -0x1p63 ? INT64_MIN : (int64_t)a;
}
BB_INTEGER int64_t bb_to_i32(double a) {
  return a != a ? 0 : a >= 2147483647.0 ? INT32_MAX : a < -2147483648.0 ? INT32_MIN : (int32_t)a;
}
/* The low 32 bits. */
BB_INTEGER int64_t bb_narrow(int64_t a) {
  return (int32_t)(uint32_t)(uint64_t)a;
}
/* Exact, by squares, as a device's pow() need not be; `size`: about what it is, which says whether it fits.  Of a negative
 * exponent toward zero, as a quotient. */
BB_INTEGER int64_t bb_power(int64_t a, int64_t b) {
  int negative = a < 0 && (b & 1);
  if (b < 0) return a == 0 ? INT64_MAX : a == 1 || a == -1 ? (negative ? -1 : 1) : 0;
  uint64_t bits = 1, square = (uint64_t)a;
  double size = 1, square_size = a < 0 ? -(double)a : (double)a;
  for (; b; b >>= 1) {
    if (b & 1) bits *= square, size *= square_size;
    square *= square, square_size *= square_size;
  }
  if (size < 0x1p63) return (int64_t)bits;
  return negative ? INT64_MIN : INT64_MAX;
}
