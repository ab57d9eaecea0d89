/* measure_loops.c - loops that do one thing as fast as the processor lets plain C do it.
 *
 * Compiled once for every instruction set that is tried; LOOPS is the name of the result.
 */
#include "measure.h"

#ifdef __AVX512F__
enum { BYTES = 64 };
#else
enum { BYTES = 32 };
#endif
enum { TILE_ROWS = 6, DEPTH = 32, WIDE = 16, F32 = BYTES / 4, F64 = BYTES / 8 };

typedef float wide_f32 __attribute__((vector_size(BYTES)));
typedef float loaded_f32 __attribute__((vector_size(BYTES), aligned(sizeof(float)), may_alias));
typedef double wide_f64 __attribute__((vector_size(BYTES)));
typedef double loaded_f64 __attribute__((vector_size(BYTES), aligned(sizeof(double)), may_alias));

/* Six rows by two vectors stay in registers; operands come from the first cache, as in a block
 * product.  x: BB_MEASURE_SMALL elements. */
static double products_f32(uint64_t turns, float *x) {
  wide_f32 sum[TILE_ROWS][2] = {0};
  for (uint64_t t = 0; t < turns; t++) {
    const float *a = x + t % DEPTH * TILE_ROWS;
    const float *panel = x + DEPTH * TILE_ROWS + t % DEPTH * 2 * F32;
    wide_f32 left = *(const loaded_f32 *)panel, right = *(const loaded_f32 *)(panel + F32);
    for (int i = 0; i < TILE_ROWS; i++) {
      sum[i][0] += a[i] * left;
      sum[i][1] += a[i] * right;
    }
  }
  for (int i = 0; i < TILE_ROWS; i++)
    for (int j = 0; j < F32; j++) x[j] += sum[i][0][j] + sum[i][1][j];
  return 2.0 * TILE_ROWS * 2 * F32 * (double)turns;
}

static double products_f64(uint64_t turns, double *x) {
  wide_f64 sum[TILE_ROWS][2] = {0};
  for (uint64_t t = 0; t < turns; t++) {
    const double *a = x + t % DEPTH * TILE_ROWS;
    const double *panel = x + DEPTH * TILE_ROWS + t % DEPTH * 2 * F64;
    wide_f64 left = *(const loaded_f64 *)panel, right = *(const loaded_f64 *)(panel + F64);
    for (int i = 0; i < TILE_ROWS; i++) {
      sum[i][0] += a[i] * left;
      sum[i][1] += a[i] * right;
    }
  }
  for (int i = 0; i < TILE_ROWS; i++)
    for (int j = 0; j < F64; j++) x[j] += sum[i][0][j] + sum[i][1][j];
  return 2.0 * TILE_ROWS * 2 * F64 * (double)turns;
}

/* Load, two operations, store: what an elementwise loop does. */
static double arithmetic_f32(uint64_t turns, float *x) {
  for (uint64_t t = 0; t < turns; t++)
    for (uint32_t i = 0; i < BB_MEASURE_SMALL; i++) x[i] = x[i] * 0.5f + 1;
  return 2.0 * BB_MEASURE_SMALL * (double)turns;
}

static double arithmetic_f64(uint64_t turns, double *x) {
  for (uint64_t t = 0; t < turns; t++)
    for (uint32_t i = 0; i < BB_MEASURE_SMALL; i++) x[i] = x[i] * 0.5 + 1;
  return 2.0 * BB_MEASURE_SMALL * (double)turns;
}

/* exp by a power of two and a polynomial, as vector libraries do; the argument is in [-1, 0]. */
static inline float exponential(float x) {
  float scaled = x * 1.44269504f, whole = (float)(int)(scaled - 0.5f), r = scaled - whole;
  float p = 1.5403530e-4f;
  p = p * r + 1.3333558e-3f;
  p = p * r + 9.6181291e-3f;
  p = p * r + 5.5504109e-2f;
  p = p * r + 0.24022651f;
  p = p * r + 0.69314718f;
  p = p * r + 1;
  union {
    int32_t bits;
    float value;
  } power = {.bits = ((int32_t)whole + 127) * (1 << 23)};
  return p * power.value;
}

static double exponentials(uint64_t turns, float *x) {
  for (uint64_t t = 0; t < turns; t++)
    for (uint32_t i = 0; i < BB_MEASURE_SMALL; i++) x[i] = exponential(-x[i]);
  return 1.0 * BB_MEASURE_SMALL * (double)turns;
}

static float read_all(const float *data, size_t count) {
  float sum[4 * WIDE] = {0}, total = 0;
  for (size_t i = 0; i + 4 * WIDE <= count; i += 4 * WIDE)
    for (int j = 0; j < 4 * WIDE; j++) sum[j] += data[i + (size_t)j];
  for (int j = 0; j < 4 * WIDE; j++) total += sum[j];
  return total;
}

const bb_measure_loops LOOPS = {products_f32,   products_f64, arithmetic_f32,
                                arithmetic_f64, exponentials, read_all};
