/* vector_test.c - the vector functions of the CPU's device library: exp, tanh and erf of float32 against
 * those of double, over a dense sample of all floats, with NaNs and infinities; and products of every small
 * shape and layout against sums in double.
 */
#define BB_PRODUCTS_F32
#define BB_PRODUCTS_F64
#include "bb_cpu.h"

#include <stdio.h>
#include <stdlib.h>

enum { STEP = 61 };

static int wrong;

static void complain(const char *what, double x, double got, double want) {
  if (wrong++ < 10) fprintf(stderr, "%s of %.9g: %.9g, not %.9g\n", what, x, got, want);
}

/* In units of the last place of the float next to the true value; what is below `least` may be 0. */
static double distance(float got, double want, double least) {
  if (fabs(want) < least && fabs((double)got) <= least) return 0;
  float near = (float)want;
  if (isinf(near) || isinf(got)) return near == got ? 0 : INFINITY;
  double unit = (double)nextafterf(fabsf(near), INFINITY) - (double)fabsf(near);
  return fabs((double)got - want) / unit;
}

typedef float single(float);
typedef double twice(double);

static void check(const char *name, single *mine, twice *true_one, double most, double least) {
  double worst = 0;
  for (uint64_t bits = 0; bits <= UINT32_MAX; bits += STEP) {
    float x = bb_float((uint32_t)bits), got = mine(x);
    double want = true_one((double)x);
    if (isnan(x)) {
      if (!isnan(got)) complain(name, (double)x, (double)got, want);
      continue;
    }
    double far = distance(got, want, least);
    if (far > most) complain(name, (double)x, (double)got, want);
    if (far > worst && !isinf(far)) worst = far;
  }
  const float special[] = {0.0f,        -0.0f,     INFINITY, -INFINITY,
                           88.7228394f, 88.72283f, -86.65f,  -104.0f};
  for (unsigned i = 0; i < sizeof special / sizeof *special; i++)
    if (distance(mine(special[i]), true_one((double)special[i]), least) > most)
      complain(name, (double)special[i], (double)mine(special[i]), true_one((double)special[i]));
  printf("%s: within %.2f ulp\n", name, worst);
}

static float my_exp(float x) {
  return bb_exp_f32(x);
}
/* What it is not for is left to the other one. */
static float my_exp_below(float x) {
  return x > 0 ? bb_exp_f32(x) : bb_exp_below_f32(x);
}
/* Beyond 0 it is large, or infinite, and never something else. */
static void check_beyond(void) {
  for (float x = 1e-6f; x < INFINITY; x *= 1.37f)
    if (!(bb_exp_below_f32(x) >= 1))
      complain("exp below", (double)x, (double)bb_exp_below_f32(x), 1);
}
static float my_tanh(float x) {
  return bb_tanh_f32(x);
}
static float my_erf(float x) {
  return bb_erf_f32(x);
}

/* --- products --- */

enum { MOST = 40, WIDE = 70 };
static float a[MOST * MOST * 2], b[MOST * MOST * 2], to[MOST * MOST * 2];
static float panel[(8 * MOST + 6) * 64] __attribute__((aligned(64)));

/* What lies between a row's columns and the next row is nobody's. */
static bool same_rows(const float *x, const float *y, int64_t pitch, int m, int n) {
  for (int i = 0; i < m; i++)
    if (memcmp(x + i * pitch, y + i * pitch, (size_t)n * sizeof *x) != 0) return false;
  return true;
}

/* Packed before, a product gives the same bits; one of few rows, whose terms are summed in another order, does so of
 * numbers whose sums are exact, as these are. */
static void check_packed(const float *left, int64_t a_row, int64_t a_col, int64_t b_row,
                         int64_t b_col, int m, int n, int k, bool add) {
  static float packed[(WIDE + 64) * MOST], edge[6 * 64], other[MOST * MOST * 2];
  int64_t pitch = n + 4;
  for (int i = 0; i < MOST * MOST * 2; i++) other[i] = (float)(i % 7);
  bb_pack_block_f32(packed, b, b_row, b_col, n, k);
  bb_dot_panels_f32(other, pitch, left, a_row, a_col, packed, m, n, k, add, edge);
  if (!same_rows(other, to, pitch, m, n) && wrong++ < 10)
    fprintf(stderr, "product %d x %d x %d of packed panels differs\n", m, n, k);
}

/* Bundled before, too. */
static void check_bundled(int64_t a_col, int64_t b_row, int64_t b_col, int m, int n, int k,
                          bool add) {
  static float bundles[MOST * MOST], other[MOST * MOST * 2];
  int64_t pitch = n + 4;
  for (int i = 0; i < MOST * MOST * 2; i++) other[i] = (float)(i % 7);
  bb_bundle_f32(bundles, a, a_col, m, k);
  bb_dot_f32(other, pitch, bundles, k, BB_BUNDLED, b, b_row, b_col, m, n, k, add, panel);
  if (memcmp(other, to, (size_t)(m * pitch) * sizeof *to) != 0 && wrong++ < 10)
    fprintf(stderr, "product %d x %d x %d of bundles differs\n", m, n, k);
}

/* turned: the axis contracted is the slow one. */
static void check_product(int m, int n, int k, bool turned_a, bool turned_b, bool add) {
  int64_t a_row = turned_a ? 1 : k + 3, a_col = turned_a ? m + 1 : 1;
  int64_t b_row = turned_b ? 1 : k + 2, b_col = turned_b ? n + 5 : 1, pitch = n + 4;
  for (int i = 0; i < MOST * MOST * 2; i++) to[i] = (float)(i % 7);
  bb_dot_f32(to, pitch, a, a_row, a_col, b, b_row, b_col, m, n, k, add, panel);
  check_packed(a, a_row, a_col, b_row, b_col, m, n, k, add);
  if (turned_a) check_bundled(a_col, b_row, b_col, m, n, k, add);
  for (int64_t i = m * pitch; i < MOST * MOST * 2; i++)
    if (to[i] != (float)(i % 7) && wrong++ < 10)
      fprintf(stderr, "product %d x %d x %d writes behind its rows\n", m, n, k);
  for (int i = 0; i < m; i++)
    for (int j = 0; j < n; j++) {
      double want = add ? (double)((i * pitch + j) % 7) : 0;
      for (int p = 0; p < k; p++)
        want += (double)a[i * a_row + p * a_col] * (double)b[j * b_row + p * b_col];
      double got = (double)to[i * pitch + j];
      if (fabs(got - want) <= 1e-5 * (1 + fabs(want))) continue;
      if (wrong++ < 10)
        fprintf(stderr, "product %d x %d x %d, %d %d %d, at %d, %d: %g, not %g\n", m, n, k,
                turned_a, turned_b, add, i, j, got, want);
    }
}

static void check_products(void) {
  const int depth[] = {1, 2, 17, 40};
  for (int i = 0; i < MOST * MOST * 2; i++) {
    a[i] = (float)((i * 37 + 11) % 64) / 32.0f - 1.0f;
    b[i] = (float)((i * 53 + 7) % 64) / 32.0f - 1.0f;
  }
  for (int m = 1; m <= 22; m++)
    for (int n = 1; n <= WIDE; n++)
      for (int d = 0; d < 4; d++)
        for (int way = 0; way < 8; way++) check_product(m, n, depth[d], way & 1, way & 2, way & 4);
}

int main(void) {
  check("exp", my_exp, exp, 1.5, 0);
  check("exp below", my_exp_below, exp, 1.5, 1.7e-38);
  check_beyond();
  check("tanh", my_tanh, tanh, 2, 0x1p-126);
  check("erf", my_erf, erf, 2, 0x1p-126);
  check_products();
  return wrong != 0;
}
