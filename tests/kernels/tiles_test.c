/* tiles_test.c - products by tiles (lower/device/cpu_tiles.h) beside those by vectors, both against sums in double: in all
 * layouts and with ends of blocks, operands packed before or not, and then with more lines and a greater depth than a product takes; of ordinary numbers, badly scaled ones, cancelling ones, numbers of 8 and 11 bits,
 * and such that tiles are not for: infinities, NaN, numbers next to the largest and the least.
 */
#define BB_PRODUCTS_F32
#include "bb_cpu.h"

#include "../../graph/processor.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST = 1 << 18, SKIPPED = 77, GUARD = 7 };
enum {
  ORDINARY,
  SCALED,
  CANCELLING,
  OF_BF16,
  OF_F16,
  SMALL,
  SUBNORMAL,
  TINY,
  LARGE,
  ODD,
  ONE,
  KINDS
};

static float a[MOST], b[MOST], by_vectors[MOST], by_tiles[MOST], panel[MOST];
static char room[1 << 20] __attribute__((aligned(64)));
static char a_ahead[1 << 20] __attribute__((aligned(64))),
    b_ahead[1 << 20] __attribute__((aligned(64)));
static uint32_t seed = 1;

static float draw(void) {
  seed = seed * 1664525u + 1013904223u;
  return (float)(int32_t)seed * 0x1p-31f;
}

/* Of `count` elements one is infinite if the kind is ONE: whatever is asked before tiles are used has to have met it. */
static void fill(float *x, int kind, uint32_t k, int64_t count) {
  for (uint32_t i = 0; i < MOST; i++) {
    x[i] = draw();
    switch (kind) {
    case SCALED: x[i] = ldexpf(x[i], (int)(draw() * 20)); break;
    case CANCELLING: x[i] = i % 2 && i >= k ? -x[i - 1] * (1 + 1e-4f * draw()) : x[i]; break;
    case OF_BF16: x[i] = bb_round_bf16(x[i]); break;
    case OF_F16: x[i] = bb_round_f16(x[i]); break;
    case SMALL: x[i] = ldexpf(x[i], -60); break;
    case SUBNORMAL: x[i] = i % 97 ? x[i] : ldexpf(x[i], -130); break;
    case TINY: x[i] = i % 97 ? x[i] : ldexpf(x[i], -134); break;
    case LARGE: x[i] = i % 89 ? ldexpf(x[i], 40) : ldexpf(x[i], 127); break;
    case ODD:
      if (i % 1009 == 5) x[i] = i % 2 ? INFINITY : i % 3 ? NAN : -INFINITY;
      if (i % 1013 == 9) x[i] = bb_float(0x7fffffff);
      break;
    default: break;
    }
  }
  if (kind == ONE) x[(int64_t)(fabsf(draw()) * (float)(count - 1))] = INFINITY;
}

typedef struct shape {
  int64_t m, n, k;
} shape;

/* Square errors, relative to the sums of all sizes; *wrong: results that no rounding explains. */
static double error_of(const float *to, int64_t pitch, shape s, const int64_t *stride, bool add,
                       int *wrong) {
  double sum = 0;
  for (int64_t i = 0; i < s.m; i++)
    for (int64_t j = 0; j < s.n; j++) {
      double true_one = add ? GUARD : 0, size = fabs(true_one);
      for (int64_t p = 0; p < s.k; p++) {
        double x =
            (double)a[i * stride[0] + p * stride[1]] * (double)b[j * stride[2] + p * stride[3]];
        true_one += x;
        size += fabs(x);
      }
      double got = (double)to[i * pitch + j], off = got - true_one;
      if (isnan(true_one) || size > 3e38) {
        *wrong += (isnan(true_one) && !isnan(got)) || (isinf(true_one) && got != true_one);
        continue;
      }
      *wrong += !(fabs(off) <= size * 1e-5 + 0x1p-149 * (double)s.k);
      if (size > 0) sum += off * off / size / size;
    }
  return sqrt(sum / (double)(s.m * s.n));
}

/* Both are bits: of what is packed before. */
enum { A_AHEAD = 1, B_AHEAD = 2, MORE = 3 };

static int check(shape s, int layout, int kind, int ahead) {
  bool add = layout & 1;
  int64_t pitch = (s.n + 15) / 16 * 16 + 16;
  const int64_t stride[4] = {layout & 2 ? 1 : s.k + 3, layout & 2 ? s.m + 3 : 1,
                             layout & 4 ? s.k + 5 : 1, layout & 4 ? 1 : s.n + 5};
  int wrong = 0;
  fill(a, kind, (uint32_t)s.k, s.m * s.k);
  fill(b, kind == CANCELLING ? ORDINARY : kind, 0, s.n * s.k);
  for (int i = 0; i < MOST; i++) by_vectors[i] = by_tiles[i] = GUARD;
  bb_dot_f32(by_vectors, pitch, a, stride[0], stride[1], b, stride[2], stride[3], s.m, s.n, s.k,
             add, panel);
  if (ahead & A_AHEAD)
    bb_tiles_ahead_f32(a_ahead, a, stride[0], stride[1], s.m + MORE, s.k + MORE, false);
  if (ahead & B_AHEAD)
    bb_tiles_ahead_f32(b_ahead, b, stride[2], stride[3], s.n + MORE, s.k + MORE, true);
  if (ahead)
    bb_tiles_with_f32(by_tiles, pitch, a, stride[0], stride[1], ahead & A_AHEAD ? a_ahead : NULL, b,
                      stride[2], stride[3], ahead & B_AHEAD ? b_ahead : NULL, s.m, s.n, s.k, add,
                      room);
  else
    bb_tiles_f32(by_tiles, pitch, a, stride[0], stride[1], b, stride[2], stride[3], s.m, s.n, s.k,
                 add, room);
  for (int64_t i = s.m * pitch; i < MOST; i++) wrong += by_tiles[i] != GUARD;
  double one = error_of(by_vectors, pitch, s, stride, add, &wrong);
  double other = error_of(by_tiles, pitch, s, stride, add, &wrong);
  /* What is added in two pieces is rounded twice, and of few products each one more often than by vectors. */
  double most = one * (add && s.k > BB_TILE_PIECE ? 1.5 : 1.05) + 0x1p-26;
  if (!wrong && other <= most) return 0;
  fprintf(stderr,
          "%lldx%lldx%lld, layout %d, kind %d, ahead %d: %d wrong, error %.3g where vectors have "
          "%.3g\n",
          (long long)s.m, (long long)s.n, (long long)s.k, layout, kind, ahead, wrong, other, one);
  return 1;
}

int main(void) {
  static const shape shapes[] = {{32, 32, 32},   {64, 128, 64}, {128, 64, 128}, {33, 65, 47},
                                 {100, 70, 200}, {47, 200, 31}, {520, 40, 140}, {1, 17, 5}};
  int bad = 0;
  if (!bb_processor_has_tiles()) {
    printf("this processor has no tiles\n");
    return SKIPPED;
  }
  for (unsigned i = 0; i < sizeof shapes / sizeof *shapes; i++)
    for (int layout = 0; layout < 8; layout++)
      for (int kind = 0; kind < KINDS; kind++)
        bad += check(shapes[i], layout, kind, (int)((i + (unsigned)(layout / 2 + kind)) % 4));
  return bad != 0;
}
