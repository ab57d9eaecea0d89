/* rising_test.c - products of the CPU's device library whose left operand has zeros behind a staircase, of every layout: what is left out of
 * them changes no bit, also where other work runs beside them, all of which runs.
 */
#define BB_PRODUCTS_F32
#include "bb_cpu.h"

#include <stdio.h>

static int wrong;

/* Sums of products of these are exact. */
static float number(int i) {
  return (float)(i % 64) / 32.0f - 1.0f;
}

/* What lies between a row's columns and the next row is nobody's. */
static bool same_rows(const float *x, const float *y, int64_t pitch, int m, int n) {
  for (int i = 0; i < m; i++)
    if (memcmp(x + i * pitch, y + i * pitch, (size_t)n * sizeof *x) != 0) return false;
  return true;
}

enum { TALL = 64, RISE = 70, BROAD = 200 };

#if BB_VECTOR_BYTES == 64
static void beside_rising(float *got, int64_t pitch, const float *left, int64_t a_row,
                          int64_t a_col, const float *right, int64_t b_row, int64_t b_col, int m,
                          int n, int k, bool add, float *room, int64_t reach) {
  int units = 0;
  BB_BESIDE(got, pitch, left, a_row, a_col, right, b_row, b_col, m, n, k, add, room, reach, 37, 0)
  if (bb_beside_is_due(&bb_d)) {
    bb_d.unit++;
    units++;
  }
  BB_BESIDE_END
  if (units != 37 && wrong++ < 10) fprintf(stderr, "%d of 37 units ran beside a product\n", units);
}
#endif

static void check_rising(int m, int n, int k, int reach, bool turned, bool packed, bool add) {
  static float left[TALL * RISE], bundles[TALL * RISE], right[BROAD * RISE];
  static float want[TALL * (BROAD + 64)], got[TALL * (BROAD + 64)];
  static float room[(RISE + 1) * 256 + 6 * 64] __attribute__((aligned(64)));
  const int64_t pitch = (n + 15) / 16 * 16, a_row = turned ? 1 : k, a_col = turned ? m : 1;
  const int64_t b_row = packed ? 1 : k, b_col = packed ? n : 1;
  const int count = (int)((m - 1) * pitch) + n;
  for (int i = 0; i < m; i++)
    for (int j = 0; j < k; j++)
      left[i * a_row + j * a_col] = j < reach + i ? number(37 * (i * 31 + j) + 11) : 0;
  for (int i = 0; i < n * k; i++) right[i] = number(53 * i + 7);
  for (int i = 0; i < count; i++) want[i] = (float)(i % 5);
  bb_dot_f32(want, pitch, left, a_row, a_col, right, b_row, b_col, m, n, k, add, room);
  if (turned) bb_bundle_f32(bundles, left, m, m, k);
  for (int way = 0; way < 3; way++) {
    if (way == 1 && !turned) continue;
    for (int i = 0; i < count; i++) got[i] = (float)(i % 5);
    if (way == 0)
      bb_dot_rising_f32(got, pitch, left, a_row, a_col, right, b_row, b_col, m, n, k, add, room,
                        reach);
    else if (way == 1)
      bb_dot_rising_f32(got, pitch, bundles, k, BB_BUNDLED, right, b_row, b_col, m, n, k, add, room,
                        reach);
#if BB_VECTOR_BYTES == 64
    else
      beside_rising(got, pitch, left, a_row, a_col, right, b_row, b_col, m, n, k, add, room, reach);
#else
    else
      continue;
#endif
    if (!same_rows(got, want, pitch, m, n) && wrong++ < 10)
      fprintf(stderr, "product %d x %d x %d from %d on, rising (%d), differs\n", m, n, k, reach,
              way);
  }
}

static void check_staircases(void) {
  const int tall[] = {5, 9, 24, 25, 26, 31, 64}, wide[] = {16, 63, 64, 65, 128, 200};
  const int deep[] = {4, 17, 40, 70}, from[] = {-70, -9, 0, 1, 6, 33, 70};
  for (int i = 0; i < 7 * 6 * 4 * 7; i++)
    for (int way = 0; way < 8; way++)
      check_rising(tall[i % 7], wide[i / 7 % 6], deep[i / 42 % 4], from[i / 168], way & 1, way & 2,
                   way & 4);
}

int main(void) {
  check_staircases();
  return wrong ? 1 : 0;
}
