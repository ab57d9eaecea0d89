/* vector_test.c - the vector functions of the CPU's device library: exp, tanh, log, erf, sin and cos of float32 against
 * those of double, over a dense sample of all floats, with NaNs and infinities; and products of every small
 * shape and layout against sums in double; folds and places of extrema; powers of whole numbers.
 */
#define BB_PRODUCTS_F32
#define BB_PRODUCTS_I32
#include "bb_cpu.h"

#ifdef __AVXVNNI__
#include <cpuid.h>
#endif
#include <float.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef STEP
#define STEP 61 /* floats from one of the sample to the next */
#endif

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
    if (isnan(want)) {
      if (!isnan(got)) complain(name, (double)x, (double)got, want);
      continue;
    }
    double far = distance(got, want, least);
    if (far > most) complain(name, (double)x, (double)got, want);
    if (far > worst && !isinf(far)) worst = far;
  }
  /* The last: no float is nearer to a multiple of pi / 2. */
  const float special[] = {0.0f,      -0.0f,   INFINITY, -INFINITY,     88.7228394f,
                           88.72283f, -86.65f, -104.0f,  0x1.921fb6p0f, 0x1.921fb6p1f,
                           0x1p-149f, -1e-20f, FLT_MAX,  -FLT_MAX,      16367173 * 0x1p72f};
  for (unsigned i = 0; i < sizeof special / sizeof *special; i++) {
    float x = special[i], got = mine(x);
    double want = true_one((double)x);
    bool same = isnan(want) ? isnan(got) : distance(got, want, least) <= most;
    if (!same || (want == 0 && x == 0 && !signbit(got) != !signbit(want)))
      complain(name, (double)x, (double)got, want);
  }
  printf("%s: within %.2f ulp\n", name, worst);
}

static float my_exp(float x) {
  return bb_exp_f32(x);
}
/* What it is not for is left to the other one. */
static float my_exp_below(float x) {
  return x > 0 ? bb_exp_f32(x) : bb_exp_below_f32(x);
}
static float my_exp_beside(float x) {
  return bb_exp_beside_f32(x);
}
/* Of lanes side by side: this one and, beside it, others that must not matter. */
static float of_lanes(float x, void exps(float *x, int64_t lanes)) {
  float lane[16];
  for (int l = 0; l < 16; l++) lane[l] = l == 5 ? x : l % 3 ? -x : NAN;
  exps(lane, 16);
  return lane[5];
}
static void call_exps(float *x, int64_t lanes) {
  bb_exps_f32(x, lanes);
}
static void call_exps_below(float *x, int64_t lanes) {
  bb_exps_below_f32(x, lanes);
}
static float my_exps(float x) {
  return of_lanes(x, call_exps);
}
static void call_powers_below(float *x, int64_t lanes) {
  bb_powers_below_f32(x, 0.180336880f, lanes);
}
static float my_powers_below(float x) {
  return x > 0 ? (float)exp2((double)(x * 0.180336880f)) : of_lanes(x, call_powers_below);
}
static double true_power(double x) {
  return exp2((double)((float)x * 0.180336880f));
}
static float my_exps_below(float x) {
  return x > 0 ? bb_exp_f32(x) : of_lanes(x, call_exps_below);
}
/* Beyond 0 it is large, or infinite, and never something else. */
static void check_beyond(void) {
  for (float x = 1e-6f; x < INFINITY; x *= 1.37f)
    if (!(bb_exp_below_f32(x) >= 1))
      complain("exp below", (double)x, (double)bb_exp_below_f32(x), 1);
  for (float x = 1e-6f; x < INFINITY; x *= 1.37f)
    if (!(of_lanes(x, call_exps_below) >= 1))
      complain("exps below", (double)x, (double)of_lanes(x, call_exps_below), 1);
  for (float x = 1e-6f; x < INFINITY; x *= 1.37f)
    if (!(of_lanes(x, call_powers_below) >= 1))
      complain("powers below", (double)x, (double)of_lanes(x, call_powers_below), 1);
}
static float my_tanh(float x) {
  return bb_tanh_f32(x);
}
static float my_log(float x) {
  return bb_log_f32(x);
}
static float my_erf(float x) {
  return bb_erf_f32(x);
}
static float my_sin(float x) {
  return bb_sin_f32(x);
}
static float my_cos(float x) {
  return bb_cos_f32(x);
}
/* Roots and angles of what is 1 - y^2 are none beyond 1, and logarithms of what is 1 - y. */
static void check_turns(void) {
  for (int32_t bits = 0x37000000; bits < 0x40800000; bits += 61) {
    float x = bb_float((uint32_t)bits), s = my_sin(x), c = my_cos(x);
    float t = my_tanh(x * 4);
    if (!(fabsf(t) <= 1)) complain("tanh beyond 1", (double)x * 4, (double)t, 1);
    if (!(fabsf(s) <= 1)) complain("sin beyond 1", (double)x, (double)s, 1);
    if (!(fabsf(c) <= 1)) complain("cos beyond 1", (double)x, (double)c, 1);
  }
}

/* --- products --- */

enum { MOST = 40, WIDE = 70, WIDEST = 330, ROOM = 22 * (WIDEST + 5) };
static float a[ROOM], b[ROOM], to[ROOM];
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
  static float packed[(WIDEST + 64) * MOST], edge[6 * 64], other[ROOM];
  int64_t pitch = n + 4;
  for (int i = 0; i < m * pitch + 64; i++) other[i] = (float)(i % 7);
  bb_pack_block_f32(packed, b, b_row, b_col, n, k);
  bb_dot_panels_f32(other, pitch, left, a_row, a_col, packed, m, n, k, add, edge);
  if (!same_rows(other, to, pitch, m, n) && wrong++ < 10)
    fprintf(stderr, "product %d x %d x %d of packed panels differs\n", m, n, k);
}

/* Bundled before, too, also where it takes only the first columns of the bundles. */
static void check_bundled(int64_t a_col, int64_t b_row, int64_t b_col, int m, int n, int k,
                          bool add) {
  static float bundles[MOST * MOST], other[ROOM], part[ROOM];
  int64_t pitch = n + 4;
  for (int i = 0; i < m * pitch + 64; i++) other[i] = (float)(i % 7);
  bb_bundle_f32(bundles, a, a_col, m, k);
  bb_dot_f32(other, pitch, bundles, k, BB_BUNDLED, b, b_row, b_col, m, n, k, add, panel);
  if (memcmp(other, to, (size_t)(m * pitch) * sizeof *to) != 0 && wrong++ < 10)
    fprintf(stderr, "product %d x %d x %d of bundles differs\n", m, n, k);
  for (int i = 0; i < m * pitch + 64; i++) part[i] = other[i] = (float)(i % 7);
  bb_dot_f32(part, pitch, a, 1, a_col, b, b_row, b_col, m, n, k / 2, add, panel);
  bb_dot_f32(other, pitch, bundles, k, BB_BUNDLED, b, b_row, b_col, m, n, k / 2, add, panel);
  if (!same_rows(other, part, pitch, m, n) && wrong++ < 10)
    fprintf(stderr, "product %d x %d x %d of deeper bundles differs\n", m, n, k / 2);
}

/* turned: the axis contracted is the slow one. */
static void check_product(int m, int n, int k, bool turned_a, bool turned_b, bool add) {
  int64_t a_row = turned_a ? 1 : k + 3, a_col = turned_a ? m + 1 : 1;
  int64_t b_row = turned_b ? 1 : k + 2, b_col = turned_b ? n + 5 : 1, pitch = n + 4;
  for (int i = 0; i < m * pitch + 64; i++) to[i] = (float)(i % 7);
  bb_dot_f32(to, pitch, a, a_row, a_col, b, b_row, b_col, m, n, k, add, panel);
  check_packed(a, a_row, a_col, b_row, b_col, m, n, k, add);
  if (turned_a) check_bundled(a_col, b_row, b_col, m, n, k, add);
  for (int64_t i = m * pitch; i < m * pitch + 64; i++)
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
  for (int i = 0; i < ROOM; i++) {
    a[i] = (float)((i * 37 + 11) % 64) / 32.0f - 1.0f;
    b[i] = (float)((i * 53 + 7) % 64) / 32.0f - 1.0f;
  }
  for (int m = 1; m <= 22; m++)
    for (int n = 1; n <= WIDE; n++)
      for (int d = 0; d < 4; d++)
        for (int way = 0; way < 8; way++) check_product(m, n, depth[d], way & 1, way & 2, way & 4);
  for (int m = 1; m <= 7; m++) /* several panels of any vectors */
    for (int n = WIDE; n <= WIDEST; n += 13)
      for (int way = 0; way < 8; way++) check_product(m, n, depth[2], way & 1, way & 2, way & 4);
}

/* --- an operand of 16 bits --- */

enum { DEEP = 150, ROWS = 22, COLS = 140 };

/* Numbers that any float holds, and whose sums of products are exact: as they are, where b lies, and packed. */
#define CHECK_NARROW(kind)                                                                         \
  static void check_##kind(int m, int n, int k, bool turned_a, bool turned_b, bool add) {          \
    static float left[ROWS * DEEP * 2], got[ROWS * (COLS + 64)], packed_got[ROWS * (COLS + 64)],   \
        room[(8 * DEEP + 6) * 64];                                                                 \
    static uint16_t narrow[COLS * DEEP * 2], packed[(COLS + 64) * DEEP];                           \
    static float wide[COLS * DEEP * 2];                                                            \
    int64_t a_row = turned_a ? 1 : k + 3, a_col = turned_a ? m + 1 : 1;                            \
    int64_t b_row = turned_b ? 1 : k + 2, b_col = turned_b ? n + 5 : 1, pitch = n + 4;             \
    for (int i = 0; i < ROWS * DEEP * 2; i++) left[i] = (float)((i * 37 + 11) % 64) / 32.0f - 1;   \
    for (int i = 0; i < COLS * DEEP * 2; i++) {                                                    \
      wide[i] = (float)((i * 53 + 7) % 64) / 32.0f - 1;                                            \
      narrow[i] = bb_to_##kind(wide[i]);                                                           \
    }                                                                                              \
    for (int i = 0; i < ROWS * (COLS + 64); i++) got[i] = packed_got[i] = (float)(i % 7);          \
    bb_dot_##kind(got, pitch, left, a_row, a_col, narrow, b_row, b_col, m, n, k, add, room);       \
    bb_pack_block_##kind(packed, wide, b_row, b_col, n, k);                                        \
    bb_dot_panels_##kind(packed_got, pitch, left, a_row, a_col, packed, m, n, k, add, room);       \
    if (!same_rows(got, packed_got, pitch, m, n) && wrong++ < 10)                                  \
      fprintf(stderr, #kind " product %d x %d x %d of packed panels differs\n", m, n, k);          \
    for (int i = (int)(m * pitch); i < ROWS * (COLS + 64); i++)                                    \
      if ((got[i] != (float)(i % 7) || packed_got[i] != (float)(i % 7)) && wrong++ < 10)           \
        fprintf(stderr, #kind " product %d x %d x %d writes behind its rows\n", m, n, k);          \
    for (int i = 0; i < m; i++)                                                                    \
      for (int j = 0; j < n; j++) {                                                                \
        double want = add ? (double)((i * pitch + j) % 7) : 0;                                     \
        for (int p = 0; p < k; p++)                                                                \
          want += (double)left[i * a_row + p * a_col] * (double)wide[j * b_row + p * b_col];       \
        if ((double)got[i * pitch + j] != want && wrong++ < 10)                                    \
          fprintf(stderr, #kind " product %d x %d x %d, %d %d %d, at %d, %d: %g, not %g\n", m, n,  \
                  k, turned_a, turned_b, add, i, j, (double)got[i * pitch + j], want);             \
      }                                                                                            \
  }
CHECK_NARROW(f16)
CHECK_NARROW(bf16)

static void check_narrow_products(void) {
  const int rows[] = {1, 2, 3, 4, 5, 7, 13, 22}, cols[] = {1, 2, 15, 16, 17, 63, 64, 65, 127, 140},
            depth[] = {1, 15, 17, 64, 65, 150};
  for (int m = 0; m < 8; m++)
    for (int n = 0; n < 10; n++)
      for (int d = 0; d < 6; d++)
        for (int way = 0; way < 8; way++) {
          check_f16(rows[m], cols[n], depth[d], way & 1, way & 2, way & 4);
          check_bf16(rows[m], cols[n], depth[d], way & 1, way & 2, way & 4);
        }
}

/* Lines are converted as single numbers are, all that there are. */
static void check_rounding(void) {
  for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 2 * STEP + 1) {
    float x = bb_float((uint32_t)bits), one = bb_from_f16(bb_to_f16(x)), got = bb_round_f16(x);
    if (isnan(x) ? !isnan(got) : bb_bits(one) != bb_bits(got))
      complain("rounding to f16", (double)x, (double)got, (double)one);
  }
  for (int i = 0; i < 1 << 16;
       i++) { /* itself, ties between it and the next, and what is beside those */
    float x = bb_from_f16((uint16_t)i), next = bb_from_f16((uint16_t)(i + 1)), tie = (x + next) / 2;
    const float near[] = {x, tie, nextafterf(tie, x), nextafterf(tie, next)};
    for (int k = 0; k < 4; k++) {
      float one = bb_from_f16(bb_to_f16(near[k])), got = bb_round_f16(near[k]);
      if (isnan(near[k]) ? !isnan(got) : bb_bits(one) != bb_bits(got))
        complain("rounding to f16", (double)near[k], (double)got, (double)one);
    }
  }
}

static void check_lines(void) {
  static uint16_t all[1 << 16], back[1 << 16];
  static float wide[1 << 16];
  enum { SHORT = 5 };
  for (int i = 0; i < 1 << 16; i++) all[i] = (uint16_t)i;
  bb_widen_f16(wide, all, (1 << 16) - SHORT);
  bb_widen_f16(wide + (1 << 16) - SHORT, all + (1 << 16) - SHORT, SHORT);
  bb_narrow_f16(back, wide, 1 << 16);
  for (int i = 0; i < 1 << 16; i++) {
    float one = bb_from_f16(all[i]);
    bool nan = isnan(one);
    if (nan ? !isnan(wide[i]) || !isnan(bb_from_f16(back[i]))
            : bb_bits(one) != bb_bits(wide[i]) || back[i] != all[i])
      complain("f16", (double)i, (double)wide[i], (double)one);
  }
  for (uint64_t bits = 0; bits <= UINT32_MAX - 64 * STEP; bits += 64 * STEP) {
    float line[64];
    uint16_t narrow[2][64];
    for (int i = 0; i < 64; i++) line[i] = bb_float((uint32_t)(bits + (uint64_t)i * STEP));
    bb_narrow_f16(narrow[0], line, 64);
    bb_narrow_bf16(narrow[1], line, 64);
    for (int i = 0; i < 64; i++)
      if (!isnan(line[i]) &&
          (narrow[0][i] != bb_to_f16(line[i]) || narrow[1][i] != bb_to_bf16(line[i])))
        complain("narrow", (double)line[i], narrow[0][i], bb_to_f16(line[i]));
  }
}

/* --- products of integers, which wrap --- */

enum { LONG = 140, ROOM_OF_WHOLE = 11 * (WIDE + LONG) + WIDE * LONG };

/* Room of a product is used as it is said to be. */
static int32_t room[ROOM_OF_WHOLE + 16 * (WIDE + LONG)] __attribute__((aligned(64))),
    block[128 * (LONG + 1)] __attribute__((aligned(64)));
static size_t room_of(int m, int k) {
  return (size_t)(4 * (m + 64) * (k / 4 + 4) + 64);
}
enum { GUARD = 0x5a };

static void product_i32(int32_t *to, int64_t pitch, const int32_t *a, int64_t a_row, int64_t a_col,
                        const int32_t *b, int64_t b_row, int64_t b_col, int m, int n, int k,
                        bool add, bool packed) {
  const size_t whole = (size_t)(n + 63) / 64 * 64 * (size_t)(k + 1) * sizeof *block;
  memset(room, GUARD, sizeof room);
  memset(block, GUARD, sizeof block);
  if (packed) {
    bb_pack_block_i32(block, b, b_row, b_col, n, k);
    bb_dot_panels_i32(to, pitch, a, a_row, a_col, block, m, n, k, add, room);
  } else {
    bb_dot_i32(to, pitch, a, a_row, a_col, b, b_row, b_col, m, n, k, add, room);
  }
  for (size_t i = room_of(m, k); i < sizeof room; i++)
    if (((uint8_t *)room)[i] != GUARD) {
      printf("a product of i32 leaves its room: m=%d n=%d k=%d packed=%d\n", m, n, k, packed);
      wrong++;
      return;
    }
  for (size_t i = whole; i < sizeof block; i++)
    if (((uint8_t *)block)[i] != GUARD) {
      printf("a block of i32 leaves its room: n=%d k=%d\n", n, k);
      wrong++;
      return;
    }
}

static void product_i64(int64_t *to, int64_t pitch, const int64_t *a, int64_t a_row, int64_t a_col,
                        const int64_t *b, int64_t b_row, int64_t b_col, int m, int n, int k,
                        bool add, bool packed) {
  (void)packed;
  bb_dot_i64(to, pitch, a, a_row, a_col, b, b_row, b_col, m, n, k, add);
}

/* Elements of an operand: all there are, or 256 from the least on, of which both ends are some. */
typedef struct elements {
  bool all;
  int64_t least;
} elements;

static uint64_t element(const elements *of, uint64_t random) {
  const uint64_t byte = random >> 11 & 255, end = random >> 32 & 7;
  return of->all ? random : (uint64_t)of->least + (end == 0 ? 0 : end == 1 ? 255 : byte);
}

/* Operands each lie along k or across it, or apart both ways; columns between rows of the result are nobody's. */
#define CHECK_WHOLE(suffix, tile, whole)                                                           \
  static void check_whole_##suffix(int m, int n, int k, bool add, int lies, const elements *of,    \
                                   bool packed) {                                                  \
    static tile left[ROOM_OF_WHOLE], right[2 * ROOM_OF_WHOLE], got[ROOM_OF_WHOLE],                 \
        want[ROOM_OF_WHOLE];                                                                       \
    const int64_t a_row = lies & 1 ? 1 : k + 2, a_col = lies & 1 ? m + 1 : 1, pitch = n + 3;       \
    const int64_t apart = lies >> 1 == 2 ? 2 : 1;                                                  \
    const int64_t b_row = lies >> 1 == 1 ? apart : (k + 1) * apart;                                \
    const int64_t b_col = lies >> 1 == 1 ? n + 1 : apart;                                          \
    for (int i = 0; i < ROOM_OF_WHOLE; i++) {                                                      \
      left[i] = (tile)element(&of[0], (uint64_t)(i + 1) * 0x9e3779b97f4a7c15u >> 3);               \
      got[i] = want[i] = (tile)i;                                                                  \
    }                                                                                              \
    for (int i = 0; i < 2 * ROOM_OF_WHOLE; i++)                                                    \
      right[i] = (tile)element(&of[1], (uint64_t)(i + 5) * 0xc2b2ae3d27d4eb4fu >> 2);              \
    for (int i = 0; i < m; i++)                                                                    \
      for (int j = 0; j < n; j++) {                                                                \
        whole sum = add ? (whole)want[i * pitch + j] : 0;                                          \
        for (int p = 0; p < k; p++)                                                                \
          sum += (whole)left[i * a_row + p * a_col] * (whole)right[j * b_row + p * b_col];         \
        want[i * pitch + j] = (tile)sum;                                                           \
      }                                                                                            \
    product_##suffix(got, pitch, left, a_row, a_col, right, b_row, b_col, m, n, k, add, packed);   \
    if (memcmp(got, want, sizeof got) != 0) {                                                      \
      printf("a product of " #suffix ": m=%d n=%d k=%d add=%d lies=%d packed=%d from %d, %d\n", m, \
             n, k, add, lies, packed, of[0].all ? -1 : (int)of[0].least,                           \
             of[1].all ? -1 : (int)of[1].least);                                                   \
      wrong++;                                                                                     \
    }                                                                                              \
  }
CHECK_WHOLE(i32, int32_t, uint32_t)
CHECK_WHOLE(i64, int64_t, uint64_t)

static void check_whole_products(void) {
  static const int columns[] = {0, 1, 2, 7, 8, 16, 17, 31, 33, 64, 65, WIDE},
                   depths[] = {0, 1, 2, 3, 6, 8, 64, 65, LONG - 1};
  const elements all = {.all = true};
  const elements ranges[][2] = {
      {all, all},                              /* anything */
      {{.least = 0}, {.least = -128}},         /* bytes as they are */
      {{.least = -119}, {.least = -128}},      /* less a zero point */
      {{.least = -128}, {.least = 0}},         /* the other way round */
      {{.least = INT32_MIN}, {.least = 1000}}, /* far away, and they wrap */
      {{.least = INT32_MAX - 255}, {.least = INT32_MIN}},
      {{.least = -7}, all},
      {all, {.least = -255}}};
  for (int m = 0; m < 10; m++)
    for (size_t n = 0; n < sizeof columns / sizeof *columns; n++)
      for (size_t k = 0; k < sizeof depths / sizeof *depths; k++)
        for (int lies = 0; lies < 6; lies++) {
          const bool add = (m + lies) % 2;
          const size_t rest = (size_t)(m + lies) + n + k;
          check_whole_i64(m, columns[n], depths[k], add, lies, ranges[0], false);
          for (size_t of = 0; of < sizeof ranges / sizeof *ranges; of++) {
            if (of && (of + rest) % 4) continue; /* some of each are enough */
            check_whole_i32(m, columns[n], depths[k], add, lies, ranges[of], false);
            if (columns[n] > 1 && depths[k] > 1)
              check_whole_i32(m, columns[n], depths[k], add, lies, ranges[of], true);
          }
        }
}

/* What it was compiled for beyond the processor at hand is compiled only. */
static bool runs_here(void) {
#ifdef __AVXVNNI__
  enum { AVX_VNNI = 1 << 4 };
  unsigned a, b, c, d;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & AVX_VNNI);
#else
  return true;
#endif
}

/* Bit for bit what a comparison gives, of numbers that are none, zeros of both signs, and infinite ones. */
static void check_choice(void) {
  static const float of[] = {NAN, -NAN, 0, -0.0f, 1, -2, INFINITY, -INFINITY};
  enum { OF = sizeof of / sizeof *of };
  for (int i = 0; i < OF * OF; i++) {
    float a[16], b[16], max[16], min[16], max8[8], min8[8];
    for (int k = 0; k < 16; k++) a[k] = of[(i + k) % OF], b[k] = of[i / OF];
    bb_lanes16_to(max, bb_lanes16_max(bb_lanes16_from(a), bb_lanes16_from(b)));
    bb_lanes16_to(min, bb_lanes16_min(bb_lanes16_from(a), bb_lanes16_from(b)));
    bb_lanes8_to(max8, bb_lanes8_max(bb_lanes8_from(a), bb_lanes8_from(b)));
    bb_lanes8_to(min8, bb_lanes8_min(bb_lanes8_from(a), bb_lanes8_from(b)));
    for (int k = 0; k < 16; k++) {
      float great = a[k] > b[k] || isnan(a[k]) ? a[k] : b[k];
      float small = a[k] < b[k] || isnan(a[k]) ? a[k] : b[k];
      if (memcmp(&max[k], &great, 4) || memcmp(&max8[k % 8], &max[k], 4))
        complain("max", a[k], max[k], great);
      if (memcmp(&min[k], &small, 4) || memcmp(&min8[k % 8], &min[k], 4))
        complain("min", a[k], min[k], small);
    }
  }
}

/* Pairs are every other element, in another order that is undone; nothing behind the last of them is read. */
static void check_pairs(void) {
  float *from = malloc(15 * sizeof *from), every[8], paired[8];
  if (!from) abort();
  for (int i = 0; i < 15; i++) from[i] = (float)i;
  bb_lanes8_to(every, bb_lanes8_every(from, 2));
  bb_lanes8_to(paired, bb_lanes8_in_order(bb_lanes8_paired(from)));
  for (int k = 0; k < 8; k++)
    if (every[k] != from[2 * k] || paired[k] != from[2 * k])
      complain("every other", from[2 * k], paired[k], every[k]);
  free(from);
}

/* Powers of whole numbers, factor by factor: exact, or the least or the greatest number where they do not fit. */
static void check_powers(void) {
  for (int64_t a = -40; a <= 40; a++) {
    __int128 want = 1;
    for (int64_t b = 0; b <= 70; b++) {
      int64_t fits = want > INT64_MAX ? INT64_MAX : want < INT64_MIN ? INT64_MIN : (int64_t)want;
      if (bb_power(a, b) != fits)
        complain("power", (double)a, (double)bb_power(a, b), (double)fits);
      if (want <= INT64_MAX && want >= INT64_MIN)
        want *= a;
      else if (a < 0)
        want = -want;
    }
    int64_t inverse = a == 0 ? INT64_MAX : a == 1 ? 1 : a == -1 ? -1 : 0;
    if (bb_power(a, -3) != inverse)
      complain("power", (double)a, (double)bb_power(a, -3), (double)inverse);
  }
}

/* --- folds and places of the greatest and the least --- */

enum { FOLD_LINES = 70, FOLD_DEEP = 150 };

static float greatest(const float *x, int count, int step, bool largest) {
  float held = largest ? -INFINITY : INFINITY;
  for (int i = 0; i < count; i++) {
    float e = x[i * step];
    if (isnan(e)) return NAN;
    if (largest ? e > held : e < held) held = e;
  }
  return held;
}

static int64_t place_of(const float *x, int count, float value, bool last) {
  int64_t found = -1;
  for (int i = 0; i < count; i++)
    if ((isnan(value) ? isnan(x[i]) : x[i] == value) && (last || found < 0)) found = i;
  return found;
}

/* Few values, so that many are equal; `odd`: every so many-th element is none, 0: all are numbers. */
static void check_extrema_of(int rows, int cols, int odd) {
  static float x[FOLD_LINES * (FOLD_DEEP + 3)], got[FOLD_LINES], value[FOLD_LINES],
      turned[FOLD_LINES * FOLD_DEEP];
  int64_t place[FOLD_LINES], pitch = cols + 3;
  for (int i = 0; i < rows * pitch; i++) {
    uint32_t drawn = (uint32_t)(i + 7 * cols + odd) * 2654435761u;
    x[i] = odd && drawn >> 8 & 1 && i % odd == odd - 1 ? NAN : (float)(drawn >> 27) - 11;
  }
  for (int r = 0; r < rows; r++)
    for (int c = 0; c < cols; c++) turned[c * rows + r] = x[r * pitch + c];
  for (int way = 0; way < 2; way++) {
    void (*along)(float *, const float *, int64_t, int64_t, int64_t) =
        way ? bb_fold_max_f32 : bb_fold_min_f32;
    void (*down)(float *, const float *, int64_t, int64_t, int64_t) =
        way ? bb_fold_down_max_f32 : bb_fold_down_min_f32;
    along(got, x, pitch, rows, cols);
    down(value, turned, rows, rows, cols);
    for (int r = 0; r < rows; r++) {
      float want = greatest(x + r * pitch, cols, 1, way);
      if (isnan(want) ? !isnan(got[r]) : got[r] != want)
        complain("a fold along", cols, (double)got[r], (double)want);
      if (isnan(want) ? !isnan(value[r]) : value[r] != want)
        complain("a fold down", cols, (double)value[r], (double)want);
    }
    for (int last = 0; last < 2; last++) {
      int count = cols - last; /* the limit leaves one out */
      bb_place_f32(value, place, x, pitch, rows, cols, way, last, 5, 5 + count);
      for (int r = 0; r < rows; r++) {
        float want = greatest(x + r * pitch, count, 1, way);
        int64_t at = place_of(x + r * pitch, count, want, last);
        if (count < 1 ? place[r] != -1 : place[r] != 5 + at)
          complain("a place", cols, (double)place[r], (double)(5 + at));
        if (isnan(want) ? !isnan(value[r]) : value[r] != want)
          complain("what is at a place", cols, (double)value[r], (double)want);
      }
    }
  }
}

static void check_extrema(void) {
  for (int rows = 1; rows <= FOLD_LINES; rows += 23)
    for (int cols = 1; cols <= FOLD_DEEP; cols += cols < 70 ? 1 : 16)
      for (int odd = 0; odd < 150; odd = odd ? 2 * odd + 1 : 1) check_extrema_of(rows, cols, odd);
}

int main(void) {
  enum { SKIP = 77 };
  if (!runs_here()) return SKIP;
  check("exp", my_exp, exp, 1.5, 0);
  check("exp below", my_exp_below, exp, 2, 1.7e-38);
  check("exp beside", my_exp_beside, exp, 1.5, 1.7e-38);
  check_beyond();
  check("exps", my_exps, exp, 2, 0);
  check("exps below", my_exps_below, exp, 2, 1.7e-38);
  check("powers below", my_powers_below, true_power, 2, 2.4e-38);
  check("tanh", my_tanh, tanh, 2, 0x1p-126);
  check("log", my_log, log, 2, 0);
  check("erf", my_erf, erf, 2, 0x1p-126);
  check_turns();
  check("sin", my_sin, sin, 2, 0);
  check("cos", my_cos, cos, 2, 0);
  check_products();
  check_narrow_products();
  check_whole_products();
  check_lines();
  check_rounding();
  check_choice();
  check_pairs();
  check_extrema();
  check_powers();
  return wrong != 0;
}
