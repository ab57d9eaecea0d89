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
/* Where its loops lie in lines of code does not depend on what is linked before a function: products over 64 took up to
 * 4 % longer where a loop began at the end of a line. */
#define BB_ON_A_LINE __attribute__((aligned(64)))
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

/* A source of many kernels may be compiled in parts: this one has those from BB_FROM on, up to BB_TO.  The source says
 * these, as the library is preprocessed before anybody knows. */
#define BB_HAS(kernel) ((kernel) >= BB_FROM && (kernel) < BB_TO)
#define BB_KERNEL __attribute__((visibility("hidden"))) const bb_cpu_kernel

/* In vectors of eight. */
BB_INLINE int64_t bb_whole(int64_t count) {
  return (count + 7) / 8 * 8;
}

/* A float brought between two numbers about 0, as an integer; NaN gives 0. */
BB_INLINE int32_t bb_between(float x, const float least, const float most) {
  float y = least == 0 || x == x ? x : 0;
  y = y > least ? y : least;
  return (int32_t)(y < most ? y : most);
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

#include "bb_cpu_math.h"
#include "bb_cpu_memory.h"
#include "bb_cpu_lanes.h"

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
  }                                                                                                \
  BB_FUNCTION void bb_prefix_before_##suffix(tile *to, int64_t pitch, const tile *from,            \
                                             int64_t stride, int64_t rows, int64_t cols) {         \
    for (int64_t i = 0; i < rows; i++) {                                                           \
      tile sum = 0;                                                                                \
      for (int64_t j = 0; j < cols; j++) {                                                         \
        tile x = from[i * stride + j];                                                             \
        to[i * pitch + j] = sum;                                                                   \
        sum = (tile)(sum + x);                                                                     \
      }                                                                                            \
    }                                                                                              \
  }
BB_PREFIX_SUM(i64, int64_t)
BB_PREFIX_SUM(i32, int32_t)

/* Products of truths. */
BB_FUNCTION void bb_dot_b8(uint8_t *to, int64_t pitch, const uint8_t *a, int64_t a_row,
                           int64_t a_col, const uint8_t *b, int64_t b_row, int64_t b_col, int64_t m,
                           int64_t n, int64_t k, bool add) {
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) {
      uint8_t sum = add ? to[i * pitch + j] : 0;
      for (int64_t p = 0; p < k; p++)
        sum = (uint8_t)(sum + a[i * a_row + p * a_col] * b[j * b_row + p * b_col]);
      to[i * pitch + j] = sum;
    }
}

#define BB_PASTE_(a, b) a##b
#define BB_PASTE(a, b) BB_PASTE_(a, b)
#define BB_NAME(name) BB_PASTE(name, BB_SUFFIX)

/* Products of integers of 64 bits. */
#define BB_SIGNED int64_t
#define BB_WHOLE uint64_t
#define BB_SUFFIX _i64
#include "bb_cpu_integer_product.h"
#undef BB_SIGNED
#undef BB_WHOLE
#undef BB_SUFFIX
/* In place of the stride between columns of a product's left operand: it lies as bb_bundle() leaves it, and the
 * stride between rows is the depth that it was bundled with, which may be more than the product's. */
enum { BB_BUNDLED = -1 };

/* Products are the same for all kernels, and take longer to compile than those do: they are an object of their own,
 * of a source that defines BB_PRODUCTS_F32, BB_PRODUCTS_F64 or BB_PRODUCTS_I32. */
#define BB_PRODUCTS_OF __attribute__((visibility("hidden")))

/* As those of floats below.  `room` has 4 (m + 64) (k / 4 + 4) bytes, rounded up where they are divided, beyond 64; a block is
 * what bb_pack_block_i32() leaves, in the room of k + 1 rows of whole panels. */
BB_PRODUCTS_OF void bb_dot_i32(int32_t *to, int64_t pitch, const int32_t *a, int64_t a_row,
                               int64_t a_col, const int32_t *b, int64_t b_row, int64_t b_col,
                               int64_t m, int64_t n, int64_t k, bool add, void *room);
BB_PRODUCTS_OF void bb_dot_panels_i32(int32_t *to, int64_t pitch, const int32_t *a, int64_t a_row,
                                      int64_t a_col, const int32_t *block, int64_t m, int64_t n,
                                      int64_t k, bool add, void *room);
BB_PRODUCTS_OF void bb_pack_block_i32(int32_t *block, const int32_t *b, int64_t b_row,
                                      int64_t b_col, int64_t n, int64_t k);
#ifdef BB_PRODUCTS_I32
#define BB_SIGNED int32_t
#define BB_WHOLE uint32_t
#define BB_SUFFIX _w32
#include "bb_cpu_integer_product.h"
#undef BB_SIGNED
#undef BB_WHOLE
#undef BB_SUFFIX
#include "bb_cpu_byte_product.h"
#endif

#define BB_REAL float
#define BB_ODD int32_t
#define BB_SUFFIX _f32
#ifdef BB_PRODUCTS_F32
#define BB_PRODUCTS
#endif
#include "bb_cpu_real.h"
#undef BB_PRODUCTS
#undef BB_REAL
#undef BB_ODD
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
/* The same products by tiles, where there are units for them; `room` is as `panel` of those, and has room for what
 * bb_tiles_room says. */
#define BB_PRODUCTS_BY_TILES(kind, element)                                                        \
  BB_PRODUCTS_OF void bb_tiles_##kind(                                                             \
      float *to, int64_t pitch, const float *a, int64_t a_row, int64_t a_col, const element *b,    \
      int64_t b_row, int64_t b_col, int64_t m, int64_t n, int64_t k, bool add, void *room);        \
  BB_PRODUCTS_OF void bb_tiles_panels_##kind(                                                      \
      float *to, int64_t pitch, const float *a, int64_t a_row, int64_t a_col, const element *b,    \
      int64_t m, int64_t n, int64_t k, bool add, void *room);
/* The same with operands that were packed before: `a_ahead` and `b_ahead` are NULL, or what bb_tiles_ahead_f32() made of that
 * operand, or of one with more lines and a greater depth.  columns: it is b. */
BB_PRODUCTS_OF void bb_tiles_with_f32(float *to, int64_t pitch, const float *a, int64_t a_row,
                                      int64_t a_col, const void *a_ahead, const float *b,
                                      int64_t b_row, int64_t b_col, const void *b_ahead, int64_t m,
                                      int64_t n, int64_t k, bool add, void *room);
BB_PRODUCTS_OF void bb_tiles_ahead_f32(void *to, const float *from, int64_t line, int64_t depth,
                                       int64_t lines, int64_t k, bool columns);
BB_PRODUCTS_BY_TILES(f32, float)
BB_PRODUCTS_BY_TILES(f16, uint16_t)
BB_PRODUCTS_BY_TILES(bf16, uint16_t)
#ifdef BB_PRODUCTS_F32
#define BB_NARROW(name) BB_PASTE(name, BB_KIND)
#define BB_KIND _f16
#include "bb_cpu_narrow_product.h"
#undef BB_KIND
#define BB_KIND _bf16
#include "bb_cpu_narrow_product.h"
#undef BB_KIND
#include "bb_cpu_tiles.h"
#endif

#define BB_REAL double
#define BB_ODD int64_t
#define BB_SUFFIX _f64
#ifdef BB_PRODUCTS_F64
#define BB_PRODUCTS
#endif
#include "bb_cpu_real.h"
#undef BB_PRODUCTS
#undef BB_REAL
#undef BB_ODD
#undef BB_SUFFIX

/* The largest (smallest) element of each row and its place: `limit` and beyond are not asked, and a
 * row without elements has place -1.  A NaN beats every number; among equals the first or last.  It is found by
 * a fold, and then looked for, 32 elements at a time; of few elements one after the other is asked. */
#define BB_PLACE(suffix, tile)                                                                     \
  BB_INLINE int64_t bb_place_of_##suffix(const tile *row, const int64_t count, const tile value,   \
                                         const bool last) {                                        \
    enum { LANES = 32 };                                                                           \
    for (int64_t k = 0; k < count; k += LANES) {                                                   \
      const int64_t left = bb_min(count - k, LANES), j = last ? count - k - left : k;              \
      uint32_t found = 0;                                                                          \
      if (left == LANES) {                                                                         \
        for (int64_t l = 0; l < LANES; l++) {                                                      \
          const tile x = row[j + l];                                                               \
          found |= (uint32_t)((x == value) | ((x != x) & (value != value))) << l;                  \
        }                                                                                          \
      } else {                                                                                     \
        for (int64_t l = 0; l < left; l++) {                                                       \
          const tile x = row[j + l];                                                               \
          found |= (uint32_t)((x == value) | ((x != x) & (value != value))) << l;                  \
        }                                                                                          \
      }                                                                                            \
      if (found) return j + (last ? 31 - __builtin_clz(found) : __builtin_ctz(found));             \
    }                                                                                              \
    return -1;                                                                                     \
  }                                                                                                \
  BB_INLINE int64_t bb_place_of_few_##suffix(const tile *row, const int64_t count,                 \
                                             const bool largest, const bool last) {                \
    int64_t at = 0;                                                                                \
    for (int64_t j = 1; j < count; j++) {                                                          \
      const tile x = row[j], held = row[at];                                                       \
      const bool nan_held = held != held, nan_x = x != x;                                          \
      const bool next = nan_held != nan_x    ? nan_x                                               \
                        : nan_x || x == held ? last                                                \
                        : largest            ? x > held                                            \
                                             : x < held;                                                      \
      at = next ? j : at;                                                                          \
    }                                                                                              \
    return at;                                                                                     \
  }                                                                                                \
  BB_FUNCTION void bb_place_##suffix(tile *to, int64_t *place, const tile *from, int64_t stride,   \
                                     int64_t rows, int64_t cols, bool largest, bool last,          \
                                     int64_t start, int64_t limit) {                               \
    enum { FEW = 16 };                                                                             \
    const int64_t count = bb_clip(start, cols, limit);                                             \
    for (int64_t i = 0; count > 0 && count < FEW && i < rows; i++) {                               \
      const tile *row = from + i * stride;                                                         \
      const int64_t at = bb_place_of_few_##suffix(row, count, largest, last);                      \
      to[i] = row[at], place[i] = start + at;                                                      \
    }                                                                                              \
    if (count > 0 && count < FEW) return;                                                          \
    if (largest)                                                                                   \
      bb_fold_max_##suffix(to, from, stride, rows, count);                                         \
    else                                                                                           \
      bb_fold_min_##suffix(to, from, stride, rows, count);                                         \
    for (int64_t i = 0; i < rows; i++) {                                                           \
      const tile *row = from + i * stride;                                                         \
      const int64_t at = last ? bb_place_of_##suffix(row, count, to[i], true)                      \
                              : bb_place_of_##suffix(row, count, to[i], false);                    \
      place[i] = at < 0 ? -1 : start + at;                                                         \
    }                                                                                              \
  }
BB_PLACE(f32, float)
BB_PLACE(f64, double)
BB_PLACE(i64, int64_t)
BB_PLACE(i32, int32_t)
#undef BB_PLACE

#include "bb_cpu_beside.h"

#endif
