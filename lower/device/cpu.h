/* cpu.h - the device tile library of the CPU: what emitted kernels call.
 *
 * A tile is dense, row after row, in memory of its task; the compiler sees its shape as constants
 * and makes vector code of the plain loops here.  Only products spell vectors out (cpu_product.h).
 * Elements beyond an array's extents are filled on load and left out on store.
 *
 * Plain C of gcc and clang with their vector extension; no other library is needed to compile or to
 * run what includes it.  Nothing here depends on how many threads run tasks.
 */
#ifndef BB_DEVICE_CPU_H
#define BB_DEVICE_CPU_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "bb_cpu_call.h"

/* What most of a kernel gains beyond -O2, in less time to compile than -O3 takes: small loops unrolled whole, so
 * that what they add up stays in registers, and vectors wherever they may pay. */
#ifndef __clang__
#pragma GCC optimize("peel-loops", "vect-cost-model=dynamic")
#endif

#define BB_INLINE static inline __attribute__((always_inline, unused))
#define BB_FUNCTION static __attribute__((unused))
/* Compiled once, whatever it is called with. */
#ifdef __clang__
#define BB_ALONE BB_FUNCTION __attribute__((noinline))
#else
#define BB_ALONE BB_FUNCTION __attribute__((noinline, noclone))
#endif
/* Iterations of the loop that follows touch no memory in common. */
#ifdef __clang__
#define BB_VECTOR _Pragma("clang loop vectorize(assume_safety)")
#define BB_SHORT_VECTOR BB_VECTOR
#else
#define BB_VECTOR _Pragma("GCC ivdep")
#define BB_SHORT_VECTOR _Pragma("GCC ivdep") _Pragma("GCC unroll 1")
#endif
/* Nothing is known of the pointer from here on: what lies near it is addressed from it. */
#define BB_HIDE(pointer) __asm__("" : "+r"(pointer))
/* The loop that follows over rows or vectors is made straight, or sums would lie in memory; who includes this may
 * define it as nothing. */
#if defined(BB_STRAIGHT)
#elif defined(__clang__)
#define BB_STRAIGHT _Pragma("clang loop unroll(full)")
#else
#define BB_STRAIGHT _Pragma("GCC unroll 16")
#endif
#define BB_ALIGN(bytes) (((bytes) + 63) & ~(int64_t)63)

#if defined(__AVX512F__)
#define BB_VECTOR_BYTES 64
#elif defined(__AVX__)
#define BB_VECTOR_BYTES 32
#else
#define BB_VECTOR_BYTES 16
#endif

#define BB_INTEGER BB_INLINE
#include "integer.h"

/* A source of many kernels may be compiled in parts: this one has those from BB_FROM on, up to BB_TO. */
#ifndef BB_FROM
#define BB_FROM 0
#define BB_TO INT32_MAX
#endif
#define BB_HAS(kernel) ((kernel) >= BB_FROM && (kernel) < BB_TO)
#define BB_KERNEL __attribute__((visibility("hidden"))) const bb_cpu_kernel

/* In vectors of eight. */
BB_INLINE int64_t bb_whole(int64_t count) {
  return (count + 7) / 8 * 8;
}

/* --- narrow floats --- */

BB_INLINE uint32_t bb_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}
BB_INLINE float bb_float(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}
BB_INLINE float bb_from_bf16(uint16_t bits) {
  return bb_float((uint32_t)bits << 16);
}
BB_INLINE uint16_t bb_to_bf16(float value) {
  uint32_t bits = bb_bits(value);
  if (value != value) return (uint16_t)(bits >> 16 | 0x40);
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
BB_INLINE float bb_from_f16(uint16_t bits) {
  uint32_t exponent = bits >> 10 & 31, fraction = bits & 1023,
           sign = (uint32_t)(bits & 0x8000) << 16;
  if (exponent == 31) return bb_float(sign | 0x7f800000 | fraction << 13);
  if (exponent) return bb_float(sign | (exponent + 112) << 23 | fraction << 13);
  float value = (float)fraction * 0x1p-24f;
  return sign ? -value : value;
}
BB_INLINE uint16_t bb_to_f16(float value) {
  uint32_t bits = bb_bits(value), sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffff;
  if (rest > 0x7f800000) return (uint16_t)(sign | 0x7e00);
  if (rest >= 0x477ff000) return (uint16_t)(sign | 0x7c00); /* 65520 and more */
  if (rest < 0x38800000) /* subnormal: adding 0.5 leaves the multiples of 2^-24 */
    return (uint16_t)(sign | (bb_bits(bb_float(rest) + 0.5f) - 0x3f000000));
  rest += 0xfff + (rest >> 13 & 1);
  return (uint16_t)(sign | (rest - 0x38000000) >> 13);
}
/* As the narrow number: a sum with a number that is larger by so many bits leaves those that it has room for.  Arithmetic
 * alone, for vectors. */
BB_INLINE float bb_round_f16(float value) {
  float size = fabsf(value), power = bb_float(bb_bits(value) & 0x7f800000);
  float large = (power > 0x1p-14f ? power : 0x1p-14f) * 0x1.8p13f;
  float rounded = copysignf((value + large) - large, value);
  return size >= 65520.0f ? copysignf(INFINITY, value) : rounded;
}
BB_INLINE float bb_round_bf16(float value) {
  return bb_from_bf16(bb_to_bf16(value));
}

#include "bb_cpu_narrow.h"

/* --- vector math: f32 --- */

/* e^(x - n ln 2), which is near 1. */
BB_INLINE float bb_exp_rest_f32(float x, float n) {
  float r = (x - n * 0.693145752f) - n * 1.42860677e-6f;
  float p = 0.0013814611f;
  p = p * r + 0.00836871004f;
  p = p * r + 0.0416683874f;
  p = p * r + 0.166665207f;
  p = p * r + 0.499999935f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  return p;
}

/* e^x, within 1 ulp, below 2^-126 as near as numbers are there.  x = n ln 2 + r, a polynomial in r, and 2^n as
 * two powers of half the exponent, which lie in the low bits of a sum that rounds to n + 254.  Beyond -104 all
 * is 0, beyond 89 infinite.  NaN stays NaN.  There is one comparison of floats, at the end: paths that a bound on
 * x divides are compiled apart before they become vectors, and joined by many instructions. */
BB_INLINE float bb_exp_f32(float x) {
  float sum = x * 1.44269504f + 12583166.0f;
  int32_t bits = (int32_t)bb_bits(sum), most = 0x4B400000 + 382;
  bits = bits < most ? bits : most;
  float n = bb_float((uint32_t)bits) - 12583166.0f;
  int32_t half = bits >> 1;
  float p = bb_exp_rest_f32(x, n) * bb_float((uint32_t)half << 23) *
            bb_float((uint32_t)(bits - half) << 23);
  return x < -104.0f ? 0.0f : p;
}

/* e^x of what is between -87 and 88: 2^n is one number. */
BB_INLINE float bb_exp_near_f32(float x) {
  float sum = x * 1.44269504f + 12583039.0f, n = sum - 12583039.0f;
  return bb_exp_rest_f32(x, n) * bb_float(bb_bits(sum) << 23);
}

/* e^x of what is at most 0, but for rounding, within 2 ulp: a power of two is added to the exponent, and is 1 at most.
 * Below e^-87 all is 0.  Most of the time goes to multiply-adds: there are two fewer than in the others. */
BB_INLINE float bb_exp_below_f32(float x) {
  uint32_t bits = bb_bits(x * 1.44269504f + 12582912.0f), most = 0x4B400000;
  bits = bits < most ? bits : most; /* less than 0 and NaN are more, too */
  float n = bb_float(bits) - 12582912.0f;
  float r = (x - n * 0.693145752f) - n * 1.42860677e-6f;
  float p = 0.00829030667f;
  p = p * r + 0.0418979302f;
  p = p * r + 0.166676357f;
  p = p * r + 0.499991506f;
  p = p * r + 0.999999702f;
  p = p * r + 1.0f;
  p = bb_float(bb_bits(p) + (bits << 23));
  return x < -87.0f ? 0.0f : p;
}

/* Within 2 ulp. */
BB_INLINE float bb_tanh_f32(float x) {
  float a = fabsf(x), z = x * x;
  float p = -0.00571703655f;
  p = p * z + 0.020650579f;
  p = p * z + -0.0537434953f;
  p = p * z + 0.133314912f;
  p = p * z + -0.333332839f;
  float small = x + x * (z * p);
  float large = 1.0f - 2.0f / (bb_exp_near_f32(2.0f * a) + 1.0f);
  large = copysignf(a > 10.0f ? 1.0f : large, x);
  return a < 0.625f ? small : large;
}

/* Within 2 ulp. */
BB_INLINE float bb_erf_f32(float x) {
  float a = fabsf(x), z = x * x;
  float p = 8.05462737e-05f;
  p = p * z + -0.000806510577f;
  p = p * z + 0.00519393683f;
  p = p * z + -0.0268564408f;
  p = p * z + 0.112836406f;
  p = p * z + -0.376126301f;
  p = p * z + 0.128379166f;
  float small = x + x * p;
  float q = 2.32073894e-06f;
  q = q * a + -3.6966716e-05f;
  q = q * a + 0.000234445174f;
  q = q * a + -0.000572085683f;
  q = q * a + -0.00168030692f;
  q = q * a + 0.0211017618f;
  q = q * a + -0.10405315f;
  q = q * a + -0.63614581f;
  q = q * a + -1.12845572f;
  float large = 1.0f - bb_exp_near_f32(q * a);
  large = copysignf(a > 4.0f ? 1.0f : large, x);
  return a < 0.9375f ? small : large;
}

#define BB_MATH(name)                                                                              \
  BB_INLINE float bb_##name##_f32(float x) {                                                       \
    return name##f(x);                                                                             \
  }
BB_MATH(log)
BB_MATH(sin)
BB_MATH(atan)
BB_MATH(cos)
BB_MATH(sqrt)
BB_MATH(floor)
BB_MATH(ceil)
BB_MATH(rint)
BB_MATH(fabs)
#undef BB_MATH
#define BB_MATH(name)                                                                              \
  BB_INLINE double bb_##name##_f64(double x) {                                                     \
    return name(x);                                                                                \
  }
BB_MATH(exp)
BB_INLINE double bb_exp_below_f64(double x) {
  return exp(x);
}
BB_MATH(tanh)
BB_MATH(erf)
BB_MATH(log)
BB_MATH(sin)
BB_MATH(atan)
BB_MATH(cos)
BB_MATH(sqrt)
BB_MATH(floor)
BB_MATH(ceil)
BB_MATH(rint)
BB_MATH(fabs)
#undef BB_MATH

/* --- loads and stores of a tile --- */

/* to[i * to_row + j * to_col] = from[i * from_row + j * from_col]: one stride of each is 1, of `to` and
 * `from` not the same one.  Eight columns at a time, so that lines of both stay in the cache. */
#define BB_ACROSS(suffix, to_type, from_type, convert)                                             \
  BB_FUNCTION void bb_across_##suffix(to_type *to, int64_t to_row, int64_t to_col,                 \
                                      const from_type *from, int64_t from_row, int64_t from_col,   \
                                      int64_t rows, int64_t cols) {                                \
    for (int64_t j0 = 0; j0 < cols; j0 += 8)                                                       \
      for (int64_t i = 0; i < rows; i++)                                                           \
        for (int64_t j = j0; j < j0 + 8 && j < cols; j++)                                          \
          to[i * to_row + j * to_col] = convert(from[i * from_row + j * from_col]);                \
  }

/* to: rows of `pitch` elements; from: as its strides say, `r` x `c` of it inside the extents. */
#define BB_LOAD(suffix, element, tile, line, across)                                               \
  BB_FUNCTION void bb_load_##suffix(tile *to, int64_t pitch, int64_t rows, int64_t cols,           \
                                    const element *from, int64_t row_stride, int64_t col_stride,   \
                                    int64_t r, int64_t c, tile pad) {                              \
    if (r < rows || c < cols)                                                                      \
      for (int64_t i = 0; i < rows; i++)                                                           \
        for (int64_t j = 0; j < cols; j++) to[i * pitch + j] = pad;                                \
    if (col_stride != 1) {                                                                         \
      across(to, pitch, 1, from, row_stride, col_stride, r, c);                                    \
      return;                                                                                      \
    }                                                                                              \
    for (int64_t i = 0; i < r; i++) {                                                              \
      for (int64_t j = 0; j < c; j += 64 / (int64_t)sizeof(element))                               \
        __builtin_prefetch(from + (i + 4) * row_stride + j);                                       \
      line(to + i * pitch, from + i * row_stride, c);                                              \
    }                                                                                              \
  }
#define BB_STORE(suffix, element, tile, line, across)                                              \
  BB_FUNCTION void bb_store_##suffix(element *to, int64_t row_stride, int64_t col_stride,          \
                                     const tile *from, int64_t pitch, int64_t r, int64_t c) {      \
    if (col_stride != 1) {                                                                         \
      across(to, row_stride, col_stride, from, pitch, 1, r, c);                                    \
      return;                                                                                      \
    }                                                                                              \
    for (int64_t i = 0; i < r; i++) line(to + i * row_stride, from + i * pitch, c);                \
  }
#define BB_COPY(name, to_type, from_type, convert)                                                 \
  BB_INLINE void bb_copy_##name(to_type *to, const from_type *from, int64_t n) {                   \
    BB_VECTOR                                                                                      \
    for (int64_t i = 0; i < n; i++) to[i] = convert(from[i]);                                      \
  }
#define BB_MEMORY(suffix, element, tile, in, out)                                                  \
  BB_ACROSS(in_##suffix, tile, element, in)                                                        \
  BB_ACROSS(out_##suffix, element, tile, out)                                                      \
  BB_COPY(in_##suffix, tile, element, in)                                                          \
  BB_COPY(out_##suffix, element, tile, out)                                                        \
  BB_LOAD(suffix, element, tile, bb_copy_in_##suffix, bb_across_in_##suffix)                       \
  BB_STORE(suffix, element, tile, bb_copy_out_##suffix, bb_across_out_##suffix)
/* Lines of them are made wide and narrow by vectors. */
#define BB_NARROW_MEMORY(kind)                                                                     \
  BB_ACROSS(in_##kind, float, uint16_t, bb_from_##kind)                                            \
  BB_ACROSS(out_##kind, uint16_t, float, bb_to_##kind)                                             \
  BB_LOAD(kind, uint16_t, float, bb_widen_##kind, bb_across_in_##kind)                             \
  BB_STORE(kind, uint16_t, float, bb_narrow_##kind, bb_across_out_##kind)
#define BB_SAME(x) (x)
#define BB_TRUTH(x) ((x) != 0)
BB_MEMORY(f64, double, double, BB_SAME, BB_SAME)
BB_ACROSS(f64, double, double, BB_SAME)
BB_NARROW_MEMORY(f16)
BB_NARROW_MEMORY(bf16)
BB_MEMORY(i64, int64_t, int64_t, BB_SAME, BB_SAME)
BB_MEMORY(i32, int32_t, int32_t, BB_SAME, BB_SAME)
BB_MEMORY(u32, uint32_t, int64_t, BB_SAME, (uint32_t))
BB_MEMORY(u16, uint16_t, int32_t, BB_SAME, (uint16_t))
BB_MEMORY(i16, int16_t, int32_t, BB_SAME, (int16_t))
BB_MEMORY(u8, uint8_t, int32_t, BB_SAME, (uint8_t))
BB_MEMORY(i8, int8_t, int32_t, BB_SAME, (int8_t))
BB_MEMORY(b8, uint8_t, uint8_t, BB_TRUTH, BB_TRUTH)

/* Narrow floats as they lie, for products that take them so. */
BB_ACROSS(narrow, uint16_t, uint16_t, BB_SAME)
BB_COPY(narrow, uint16_t, uint16_t, BB_SAME)
BB_LOAD(narrow, uint16_t, uint16_t, bb_copy_narrow, bb_across_narrow)

/* f32: eight rows and columns at a time change places in registers. */
typedef float bb_eight __attribute__((vector_size(32)));
typedef float bb_eight_loose __attribute__((vector_size(32), aligned(4), may_alias));

/* to[j * to_pitch + i] = from[i * from_pitch + j] for 8 x 8. */
BB_INLINE void bb_turn_eight(float *to, int64_t to_pitch, const float *from, int64_t from_pitch) {
  bb_eight a[8], b[8];
  for (int i = 0; i < 8; i++) a[i] = *(const bb_eight_loose *)(from + i * from_pitch);
  for (int i = 0; i < 8; i += 2) {
    b[i] = __builtin_shufflevector(a[i], a[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    b[i + 1] = __builtin_shufflevector(a[i], a[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
  for (int i = 0; i < 8; i += 4)
    for (int k = 0; k < 2; k++) {
      a[i + 2 * k] = __builtin_shufflevector(b[i + k], b[i + 2 + k], 0, 1, 8, 9, 4, 5, 12, 13);
      a[i + 2 * k + 1] =
          __builtin_shufflevector(b[i + k], b[i + 2 + k], 2, 3, 10, 11, 6, 7, 14, 15);
    }
  for (int i = 0; i < 4; i++) {
    *(bb_eight_loose *)(to + i * to_pitch) =
        __builtin_shufflevector(a[i], a[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    *(bb_eight_loose *)(to + (i + 4) * to_pitch) =
        __builtin_shufflevector(a[i], a[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
}

/* to[j * to_pitch + i] = from[i * from_pitch + j]. */
BB_FUNCTION void bb_turn_f32(float *to, int64_t to_pitch, const float *from, int64_t from_pitch,
                             int64_t rows, int64_t cols) {
  int64_t j = 0;
  for (; j + 8 <= cols; j += 8) {
    int64_t i = 0;
    for (; i + 8 <= rows; i += 8)
      bb_turn_eight(to + j * to_pitch + i, to_pitch, from + i * from_pitch + j, from_pitch);
    for (; i < rows; i++)
      for (int64_t k = j; k < j + 8; k++) to[k * to_pitch + i] = from[i * from_pitch + k];
  }
  for (; j < cols; j++)
    for (int64_t i = 0; i < rows; i++) to[j * to_pitch + i] = from[i * from_pitch + j];
}

BB_FUNCTION void bb_across_f32(float *to, int64_t to_row, int64_t to_col, const float *from,
                               int64_t from_row, int64_t from_col, int64_t rows, int64_t cols) {
  if (to_col == 1 && from_row == 1)
    bb_turn_f32(to, to_row, from, from_col, cols, rows);
  else if (to_row == 1 && from_col == 1)
    bb_turn_f32(to, to_col, from, from_row, rows, cols);
  else
    for (int64_t i = 0; i < rows; i++)
      for (int64_t j = 0; j < cols; j++)
        to[i * to_row + j * to_col] = from[i * from_row + j * from_col];
}
BB_COPY(f32, float, float, BB_SAME)
BB_LOAD(f32, float, float, bb_copy_f32, bb_across_f32)
BB_STORE(f32, float, float, bb_copy_f32, bb_across_f32)

/* --- folds of integers: plain loops along the columns --- */

#define BB_FOLD(suffix, name, tile, first, next)                                                   \
  BB_FUNCTION void bb_fold_##name##_##suffix(tile *to, const tile *from, int64_t stride,           \
                                             int64_t rows, int64_t cols) {                         \
    for (int64_t i = 0; i < rows; i++) {                                                           \
      tile held = first;                                                                           \
      for (int64_t j = 0; j < cols; j++) {                                                         \
        tile x = from[i * stride + j];                                                             \
        held = next;                                                                               \
      }                                                                                            \
      to[i] = held;                                                                                \
    }                                                                                              \
  }
#define BB_FOLDS(suffix, tile, least, most)                                                        \
  BB_FOLD(suffix, sum, tile, 0, (tile)(held + x))                                                  \
  BB_FOLD(suffix, prod, tile, 1, (tile)(held * x))                                                 \
  BB_FOLD(suffix, max, tile, least, held > x ? held : x)                                           \
  BB_FOLD(suffix, min, tile, most, held < x ? held : x)
BB_FOLDS(i64, int64_t, INT64_MIN, INT64_MAX)
BB_FOLDS(i32, int32_t, INT32_MIN, INT32_MAX)
BB_FOLDS(b8, uint8_t, 0, 1)

#define BB_PREFIX_SUM(suffix, tile)                                                                \
  BB_FUNCTION void bb_prefix_sum_##suffix(tile *to, int64_t pitch, const tile *from,               \
                                          int64_t stride, int64_t rows, int64_t cols) {            \
    for (int64_t i = 0; i < rows; i++) {                                                           \
      tile sum = 0;                                                                                \
      for (int64_t j = 0; j < cols; j++)                                                           \
        to[i * pitch + j] = sum = (tile)(sum + from[i * stride + j]);                              \
    }                                                                                              \
  }
BB_PREFIX_SUM(i64, int64_t)
BB_PREFIX_SUM(i32, int32_t)

/* The largest (smallest) element of each row and its place: `limit` and beyond are not asked, and a
 * row without elements has place -1.  A NaN beats every number; among equals the first or last. */
#define BB_PLACE(suffix, tile, least, most)                                                        \
  BB_FUNCTION void bb_place_##suffix(tile *to, int64_t *place, const tile *from, int64_t stride,   \
                                     int64_t rows, int64_t cols, bool largest, bool last,          \
                                     int64_t start, int64_t limit) {                               \
    int64_t count = bb_clip(start, cols, limit);                                                   \
    for (int64_t i = 0; i < rows; i++) {                                                           \
      tile held = largest ? least : most;                                                          \
      int64_t at = -1;                                                                             \
      for (int64_t j = 0; j < count; j++) {                                                        \
        tile x = from[i * stride + j];                                                             \
        bool nan_held = held != held, nan_x = x != x;                                              \
        bool next = at < 0               ? true                                                    \
                    : nan_held != nan_x  ? nan_x                                                   \
                    : nan_x || x == held ? last                                                    \
                    : largest            ? x > held                                                \
                                         : x < held;                                                          \
        if (next) held = x, at = start + j;                                                        \
      }                                                                                            \
      to[i] = held;                                                                                \
      place[i] = at;                                                                               \
    }                                                                                              \
  }
BB_PLACE(f32, float, -INFINITY, INFINITY)
BB_PLACE(f64, double, -INFINITY, INFINITY)
BB_PLACE(i64, int64_t, INT64_MIN, INT64_MAX)
BB_PLACE(i32, int32_t, INT32_MIN, INT32_MAX)

/* Products of integers. */
#define BB_PRODUCT(suffix, tile)                                                                   \
  BB_FUNCTION void bb_dot_##suffix(tile *to, int64_t pitch, const tile *a, int64_t a_row,          \
                                   int64_t a_col, const tile *b, int64_t b_row, int64_t b_col,     \
                                   int64_t m, int64_t n, int64_t k, bool add) {                    \
    for (int64_t i = 0; i < m; i++)                                                                \
      for (int64_t j = 0; j < n; j++) {                                                            \
        tile sum = add ? to[i * pitch + j] : 0;                                                    \
        for (int64_t p = 0; p < k; p++)                                                            \
          sum = (tile)(sum + a[i * a_row + p * a_col] * b[j * b_row + p * b_col]);                 \
        to[i * pitch + j] = sum;                                                                   \
      }                                                                                            \
  }
BB_PRODUCT(i64, int64_t)
BB_PRODUCT(i32, int32_t)
BB_PRODUCT(b8, uint8_t)

/* In place of the stride between columns of a product's left operand: it lies as bb_bundle() leaves it, and the
 * stride between rows is the depth of the product. */
enum { BB_BUNDLED = -1 };

#define BB_PASTE_(a, b) a##b
#define BB_PASTE(a, b) BB_PASTE_(a, b)
#define BB_NAME(name) BB_PASTE(name, BB_SUFFIX)

/* Products are the same for all kernels, and take longer to compile than those do: they are an object of their own,
 * of a source that defines BB_PRODUCTS_F32 or BB_PRODUCTS_F64. */
#define BB_PRODUCTS_OF __attribute__((visibility("hidden")))

#define BB_REAL float
#define BB_SUFFIX _f32
#ifdef BB_PRODUCTS_F32
#define BB_PRODUCTS
#endif
#include "bb_cpu_real.h"
#undef BB_PRODUCTS
#undef BB_REAL
#undef BB_SUFFIX

/* The same where b lies in memory in floats of 16 bits, as numbers or, packed, as panels of them. */
#define BB_PRODUCTS_WITH(kind)                                                                     \
  BB_PRODUCTS_OF void bb_dot_##kind(                                                               \
      float *to, int64_t pitch, const float *a, int64_t a_row, int64_t a_col, const uint16_t *b,   \
      int64_t b_row, int64_t b_col, int64_t m, int64_t n, int64_t k, bool add, float *panel);      \
  BB_PRODUCTS_OF void bb_dot_panels_##kind(                                                        \
      float *to, int64_t pitch, const float *a, int64_t a_row, int64_t a_col, const uint16_t *b,   \
      int64_t m, int64_t n, int64_t k, bool add, float *edge);                                     \
  BB_PRODUCTS_OF void bb_pack_block_##kind(uint16_t *panel, const float *b, int64_t b_row,         \
                                           int64_t b_col, int64_t n, int64_t k);
BB_PRODUCTS_WITH(f16)
BB_PRODUCTS_WITH(bf16)
#ifdef BB_PRODUCTS_F32
#define BB_NARROW(name) BB_PASTE(name, BB_KIND)
#define BB_KIND _f16
#include "bb_cpu_narrow_product.h"
#undef BB_KIND
#define BB_KIND _bf16
#include "bb_cpu_narrow_product.h"
#undef BB_KIND
#endif

#define BB_REAL double
#define BB_SUFFIX _f64
#ifdef BB_PRODUCTS_F64
#define BB_PRODUCTS
#endif
#include "bb_cpu_real.h"
#undef BB_PRODUCTS
#undef BB_REAL
#undef BB_SUFFIX

#endif
