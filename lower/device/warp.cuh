// warp.cuh - what the device tile libraries for GPUs with products of a warp have in common (sm80.cuh, sm90.cuh): threads,
// swizzled tiles, fragments, products of one warp, arithmetic, folds.  Nothing here belongs to one kernel.
//
// Fragments.  A block of registers is cut into row tiles of 16 rows for each warp and column tiles of 8
// columns; a thread holds 2 rows x 2 columns of each pair: element e = (rt * CT + ct) * 4 + half * 2 + bit
// is row 16 rt + 8 half + lane / 4, column 8 ct + 2 (lane % 4) + bit.  This is the accumulator of mma and
// of wgmma, whose warps hold 16 rows each.  Of a vector along the rows a thread holds 2 values for each
// row tile, of a vector along the columns 2 for each column tile.
//
// Shared tiles of 16-bit elements lie as [columns / 64][rows][64] with the 128-byte swizzle.
#pragma once

#ifdef BB_HOST_DEVICE
#define TL_HOST
#include BB_HOST_DEVICE
#else
#include "warp_cuda.cuh"
#endif

namespace tl {
// Of element e of a fragment with CT column tiles: which of the thread's rows and columns, and how far
// that column lies behind the thread's first.  A vector's element is one of a single row.
template <int CT> TL_DEV constexpr int row_of(int e) { return 2 * (e / (4 * CT)) + (e >> 1 & 1); }
template <int CT> TL_DEV constexpr int col_of(int e) { return 2 * (e / 4 % CT) + (e & 1); }
template <int CT> TL_DEV constexpr int col_at(int e) { return 8 * (e / 4 % CT) + (e & 1); }

// ---- threads
TL_DEV int lane() { return threadIdx.x & 31; }
TL_DEV int uniform(int x) { return __shfl_sync(~0u, x, 0); }  // what all of a warp have alike, so that a compiler knows
TL_DEV int warp() { return uniform(threadIdx.x >> 5); }

// Copies from global to shared memory, several loads of a thread at once; count in floats, by fours.
template <int Threads> TL_DEV void fetch(float *to, const float *from, int count, int thread) {
  for (int i = thread; i < count / 4; i += 8 * Threads) {
    float4 v[8];
    TL_UNROLL for (int k = 0; k < 8; k++) v[k] = ((const float4 *)from)[min(i + k * Threads, count / 4 - 1)];
    TL_UNROLL for (int k = 0; k < 8; k++)
      if (i + k * Threads < count / 4) ((float4 *)to)[i + k * Threads] = v[k];
  }
}

// ---- marks, in eights: the first at `from` or behind it, else `to`; and the last before `to`, else from - 1
TL_DEV int next_marked(const unsigned char *marks, int from, int to) {
  for (int at = from & ~7; at < to; at += 8) {
    u64 eight = *(const u64 *)(marks + at);
    if (at < from) eight &= ~0ull << 8 * (from - at);
    if (eight) return min(at + (__ffsll(eight) - 1) / 8, to);
  }
  return to;
}
TL_DEV int last_marked(const unsigned char *marks, int from, int to) {
  for (int at = (to - 1) & ~7; at >= 0 && at + 7 >= from; at -= 8) {
    u64 eight = *(const u64 *)(marks + at);
    if (at + 8 > to) eight &= ~0ull >> 8 * (at + 8 - to);
    if (eight) return max(at + (63 - __clzll(eight)) / 8, from - 1);
  }
  return from - 1;
}
TL_DEV int next_marked(const unsigned char *marks, int from, int to, int but) {
  const int next = next_marked(marks, from, to);
  return next == but ? next_marked(marks, next + 1, to) : next;
}
TL_DEV int last_marked(const unsigned char *marks, int from, int to, int but) {
  const int last = last_marked(marks, from, to);
  return last == but ? last_marked(marks, from, last) : last;
}

// ---- swizzled tiles
// Byte offset of the 16-byte piece at (row, 8 piece) of a tile of so many rows.
TL_DEV u32 piece(int rows, int row, int p) { return (p >> 3) * rows * 128 + row * 128 + (((p & 7) ^ (row & 7)) << 4); }
// 16 rows from `row` of a tile as the left operand of a product, 16 columns a step.
template <int N> TL_DEV void load_left(u32 (&d)[N], u32 tile, int rows, int row) {
  TL_UNROLL for (int k = 0; k < N / 4; k++)
    load_matrix(tile + piece(rows, row + (lane() & 15), 2 * k + (lane() >> 4)), d[4 * k], d[4 * k + 1], d[4 * k + 2], d[4 * k + 3]);
}

// A tile's elements over the threads: threads / Rows of them a row, 8 neighbouring columns each in turn.
template <int Rows, int Cols, int Threads, class F> TL_DEV void load_spread(float *d, u32 tile, int thread, F f) {
  constexpr int Row = Threads / Rows;
  TL_UNROLL for (int i = 0; i < Cols / 8 / Row; i++) {
    uint4 v = load_piece(tile + piece(Rows, thread / Row, thread % Row + i * Row));
    const u32 w[4] = {v.x, v.y, v.z, v.w};
    TL_UNROLL for (int k = 0; k < 8; k++) d[i * 8 + k] = f((u16)(w[k / 2] >> k % 2 * 16));
  }
}

// ---- arithmetic
TL_DEV float exp(float x) { return exp2(x * 1.4426950408889634f); }
TL_DEV float tanh_by_power(float y) { return fmaf(-2.f, recip(1.f + exp2(y)), 1.f); }  // of y / 2 log2 e; absolute error near 1e-7
TL_DEV float tanh(float x) { return tanh_by_power(2.885390081777927f * x); }
// An angle without its whole turns, between -pi and pi: what is left is exact to 2e-7 for angles up to some millions.
TL_DEV float within_turn(float x) {
  const float turns = rintf(x * 0.15915494f);
  return fmaf(turns, 1.7484556e-7f, fmaf(turns, -6.2831855f, x));
}
TL_DEV float sin(float x) { return sin_of_turn(within_turn(x)); }  // absolute error near 7e-7: results are narrow
TL_DEV float cos(float x) { return cos_of_turn(within_turn(x)); }
TL_DEV float square(float x) { return x * x; }
TL_DEV float cube(float x) { return x * x * x; }
// Absolute error near 4e-7, relative 3e-6: 1 - t P(t) exp(-x^2) with t = 1 / (1 + c |x|) (Abramowitz and Stegun, 7.1.26), and three terms of
// its series near 0.
TL_DEV float erf(float x) {
  const float a = fabsf(x), s = x * x, t = recip(fmaf(0.3275911f, a, 1.f));
  const float p = t * fmaf(t, fmaf(t, fmaf(t, fmaf(t, 1.061405429f, -1.453152027f), 1.421413741f), -0.284496736f), 0.254829592f);
  const float far = copysignf(fmaf(-p, exp2(-1.442695041f * s), 1.f), x);
  return a < 0.125f ? x * fmaf(s, fmaf(s, 0.11283792f, -0.37612639f), 1.12837917f) : far;
}
TL_DEV float half_f16(u32 pair, int high) { return float_f16((u16)(high ? pair >> 16 : pair)); }
TL_DEV float half_bf16(u32 pair, int high) { return float_bf16((u16)(high ? pair >> 16 : pair)); }
TL_DEV float round_f16(float x) { return float_f16((u16)pack_f16(x, 0.f)); }
TL_DEV float round_bf16(float x) { return float_bf16((u16)pack_bf16(x, 0.f)); }

template <int Rows, int Cols, int Threads, int N> TL_DEV void load_spread_f16(float (&d)[N], u32 tile, int thread) {
  load_spread<Rows, Cols, Threads>(d, tile, thread, [](u16 x) { return float_f16(x); });
}
template <int Rows, int Cols, int Threads, int N> TL_DEV void load_spread_bf16(float (&d)[N], u32 tile, int thread) {
  load_spread<Rows, Cols, Threads>(d, tile, thread, [](u16 x) { return float_bf16(x); });
}

struct Sum { static __device__ __forceinline__ float of(float a, float b) { return a + b; } };
struct Prod { static __device__ __forceinline__ float of(float a, float b) { return a * b; } };
struct Max { static __device__ __forceinline__ float of(float a, float b) { return fmaxf(a, b); } };
struct Min { static __device__ __forceinline__ float of(float a, float b) { return fminf(a, b); } };

// Over the lanes that differ in the bits from..to/2.
template <class F, int From, int To> TL_DEV float fold_lanes(float x) {
  TL_UNROLL for (int i = From; i < To; i *= 2) x = F::of(x, __shfl_xor_sync(~0u, x, i));
  return x;
}
// Along the columns of a fragment of RT x CT tiles: this thread's part, in 4 chains a row.
template <class F, int RT, int CT> TL_DEV void fold_cols(float (&d)[2 * RT], const float (&s)[4 * RT * CT]) {
  TL_UNROLL for (int rt = 0; rt < RT; rt++)
    TL_UNROLL for (int h = 0; h < 2; h++) {
      float c[4];
      TL_UNROLL for (int ct = 0; ct < CT; ct++)
        TL_UNROLL for (int b = 0; b < 2; b++) {
          float x = s[(rt * CT + ct) * 4 + h * 2 + b];
          c[(ct & 1) * 2 + b] = ct < 2 ? x : F::of(c[(ct & 1) * 2 + b], x);
        }
      d[2 * rt + h] = CT == 1 ? F::of(c[0], c[1]) : F::of(F::of(c[0], c[1]), F::of(c[2], c[3]));
    }
}
template <class F, int RT, int CT> TL_DEV void fold_rows(float (&d)[2 * CT], const float (&s)[4 * RT * CT]) {
  TL_UNROLL for (int ct = 0; ct < CT; ct++)
    TL_UNROLL for (int b = 0; b < 2; b++) {
      float x = s[ct * 4 + b];
      TL_UNROLL for (int i = 1; i < 2 * RT; i++) x = F::of(x, s[(i / 2 * CT + ct) * 4 + i % 2 * 2 + b]);
      d[2 * ct + b] = x;
    }
}
template <class F, int N> TL_DEV void fold_quads(float (&d)[N]) { TL_UNROLL for (int i = 0; i < N; i++) d[i] = fold_lanes<F, 1, 4>(d[i]); }
template <class F, int N> TL_DEV void fold_octets(float (&d)[N]) { TL_UNROLL for (int i = 0; i < N; i++) d[i] = fold_lanes<F, 4, 32>(d[i]); }
}  // namespace tl
