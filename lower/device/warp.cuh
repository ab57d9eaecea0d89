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

#define TL_DEV static __device__ __forceinline__
#define TL_UNROLL _Pragma("unroll")

namespace tl {
typedef unsigned int u32;
typedef unsigned long long u64;
typedef unsigned short u16;

// Of element e of a fragment with CT column tiles: which of the thread's rows and columns, and how far
// that column lies behind the thread's first.  A vector's element is one of a single row.
template <int CT> TL_DEV constexpr int row_of(int e) { return 2 * (e / (4 * CT)) + (e >> 1 & 1); }
template <int CT> TL_DEV constexpr int col_of(int e) { return 2 * (e / 4 % CT) + (e & 1); }
template <int CT> TL_DEV constexpr int col_at(int e) { return 8 * (e / 4 % CT) + (e & 1); }

// ---- threads
TL_DEV u32 address(const void *p) { return (u32)__cvta_generic_to_shared(p); }
TL_DEV int lane() { return threadIdx.x & 31; }
TL_DEV int warp() { return __shfl_sync(~0u, threadIdx.x >> 5, 0); }  // known to be uniform
TL_DEV void named_sync(int id, int threads) { asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory"); }
TL_DEV void named_arrive(int id, int threads) { asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory"); }

// Copies from global to shared memory, several loads of a thread at once; count in floats, by fours.
template <int Threads> TL_DEV void fetch(float *to, const float *from, int count, int thread) {
  for (int i = thread; i < count / 4; i += 8 * Threads) {
    float4 v[8];
    TL_UNROLL for (int k = 0; k < 8; k++) v[k] = ((const float4 *)from)[min(i + k * Threads, count / 4 - 1)];
    TL_UNROLL for (int k = 0; k < 8; k++)
      if (i + k * Threads < count / 4) ((float4 *)to)[i + k * Threads] = v[k];
  }
}
TL_DEV void fence_device() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }
TL_DEV bool is_last(unsigned *done, int blocks) { return atomicInc(done, blocks - 1) == (unsigned)blocks - 1; }

// ---- swizzled tiles
// Byte offset of the 16-byte piece at (row, 8 piece) of a tile of so many rows.
TL_DEV u32 piece(int rows, int row, int p) { return (p >> 3) * rows * 128 + row * 128 + (((p & 7) ^ (row & 7)) << 4); }
TL_DEV void load_matrix(u32 a, u32 &r0, u32 &r1, u32 &r2, u32 &r3) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "r"(a) : "memory");
}
TL_DEV void load_matrix_transposed(u32 a, u32 &r0, u32 &r1, u32 &r2, u32 &r3) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "r"(a) : "memory");
}
TL_DEV uint4 load_piece(u32 a) {
  uint4 v;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(a) : "memory");
  return v;
}
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

// ---- registers
// Registers that products in flight read or write: nothing of the compiler's moves across.
template <int N> TL_DEV void pin(float (&d)[N]) { TL_UNROLL for (int i = 0; i < N; i++) asm volatile("" : "+f"(d[i])::"memory"); }
template <int N> TL_DEV void pin(u32 (&d)[N]) { TL_UNROLL for (int i = 0; i < N; i++) asm volatile("" : "+r"(d[i])::"memory"); }

// ---- mma of one warp: 16 x 8 += 16 x 16 times 16 x 8
TL_DEV void mma_f16(float *d, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
TL_DEV void mma_bf16(float *d, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
TL_DEV u32 transpose_8x8(u32 x) { u32 y; asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(y) : "r"(x)); return y; }

// ---- arithmetic
#define TL_INF __int_as_float(0x7f800000)
#define TL_NAN __int_as_float(0x7fffffff)
TL_DEV float exp2(float x) { float y; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
TL_DEV float exp(float x) { return exp2(x * 1.4426950408889634f); }
TL_DEV float recip(float x) { float y; asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
TL_DEV float tanh_by_power(float y) { return fmaf(-2.f, recip(1.f + exp2(y)), 1.f); }  // of y / 2 log2 e; absolute error near 1e-7
TL_DEV float tanh(float x) { return tanh_by_power(2.885390081777927f * x); }
TL_DEV float square(float x) { return x * x; }
TL_DEV u32 pack_f16(float lo, float hi) { u32 r; asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo)); return r; }
TL_DEV u32 pack_bf16(float lo, float hi) { u32 r; asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo)); return r; }
TL_DEV float float_f16(u16 x) { float y; asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x)); return y; }
TL_DEV float float_bf16(u16 x) { return __uint_as_float((u32)x << 16); }
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
