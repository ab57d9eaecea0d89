/* price_lanes.h - numbers in lanes of the widest vectors of an instruction set, for price_points.c alone.
 *
 * A lane gets what the same operation would give a number by itself, to the last bit.
 */
#ifndef BB_SELECT_PRICE_LANES_H
#define BB_SELECT_PRICE_LANES_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#ifdef __AVX2__
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
enum { BYTES = 64 };
#elif defined(__AVX2__)
enum { BYTES = 32 };
#else
enum { BYTES = 16 };
#endif
enum { LANES = BYTES / (int)sizeof(double) };

typedef double lanes __attribute__((vector_size(BYTES)));
typedef int64_t mask __attribute__((vector_size(BYTES))); /* by lane: all bits, or none */
typedef double kept __attribute__((vector_size(BYTES), aligned(sizeof(double)), may_alias));

static inline lanes all(double value) {
  lanes made;
  for (int i = 0; i < LANES; i++) made[i] = value;
  return made;
}

static inline lanes pick(mask which, lanes a, lanes b) {
  return (lanes)((which & (mask)a) | (~which & (mask)b));
}

static inline mask everywhere(bool yes) {
  return (mask)all(0) - (int64_t)yes;
}

static inline bool anywhere(mask which) {
  int64_t any = 0;
  for (int i = 0; i < LANES; i++) any |= which[i];
  return any != 0;
}

static inline lanes most(lanes a, lanes b) {
  return pick(a > b, a, b);
}

static inline lanes least(lanes a, lanes b) {
  return pick(a < b, a, b);
}

static inline lanes rounded_up(lanes a) {
#if defined(__AVX512F__)
  return (lanes)_mm512_roundscale_pd((__m512d)a, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC);
#elif defined(__AVX2__)
  return (lanes)_mm256_ceil_pd((__m256d)a);
#else
  for (int i = 0; i < LANES; i++) a[i] = ceil(a[i]);
  return a;
#endif
}

#endif
