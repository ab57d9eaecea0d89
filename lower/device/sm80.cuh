// sm80.cuh - the device tile library for GPUs from Ampere on (sm_80 and later): products of single warps from shared memory, and
// copies that threads ask for and do not wait for.  Nothing here belongs to one kernel.
#pragma once

#include "warp.cuh"

namespace tl {
// ---- buffers that all threads fill and empty in turn
template <int Buffers> struct Turns {
  int at = 0;
  __device__ __forceinline__ int before() const { return at == 0 ? Buffers - 1 : at - 1; }
  __device__ __forceinline__ void next() { at = at + 1 == Buffers ? 0 : at + 1; }
};

// ---- copies between arrays and swizzled tiles
// May rows `step` elements apart be moved by 16 bytes?
TL_DEV bool moves_by_pieces(const u16 *p, long long step) { return (((u64)p | (u64)step * 2) & 15) == 0; }

// By all threads: rows `step` elements apart; what lies beyond `rows` and `cols` of them, or, Padded, among the first `before` rows, becomes zeros.  Where arrays do not lie so that
// 16 bytes can be moved, element by element, and not asked for but done.
template <int Rows, int Cols, bool Padded>
TL_DEV void copy_elements(int thread, int threads, u32 to, const u16 *from, long long step, int rows, int cols, int before) {
  _Pragma("unroll 1") for (int i = thread; i < Rows * Cols / 8; i += threads) {
    const int r = i / (Cols / 8), c = i % (Cols / 8) * 8;
    const u16 *const at = from + r * step + c;
    u32 w[4];
    const bool there = r < rows && (!Padded || r >= before);
    TL_UNROLL for (int k = 0; k < 4; k++)
      w[k] = (there && c + 2 * k < cols ? __ldg(at + 2 * k) : 0) | (there && c + 2 * k + 1 < cols ? __ldg(at + 2 * k + 1) : 0) << 16;
    store_piece(to + piece(Rows, r, c >> 3), make_uint4(w[0], w[1], w[2], w[3]));
  }
}
template <int Threads, int Rows, int Cols, bool Padded = false>
TL_DEV void copy_tile(int thread, u32 to, const u16 *from, long long step, int rows, int cols, int before = 0) {
  constexpr int Step = Threads / 8;
  const int row = thread / 8, col = thread % 8 * 8;
  if (!moves_by_pieces(from, step)) return copy_elements<Rows, Cols, Padded>(thread, Threads, to, from, step, rows, cols, before);
  const u16 *at = from + row * step + col;
  if (rows >= Rows && cols >= Cols && (!Padded || before <= 0)) {
    TL_UNROLL for (int r = 0; r < Rows; r += Step, at += Step * step)
      TL_UNROLL for (int c = 0; c < Cols; c += 64)
        if (Rows % Step == 0 || r + row < Rows) copy_piece(to + piece(Rows, r + row, (c + col) >> 3), at + c);
  } else {
    TL_UNROLL for (int r = 0; r < Rows; r += Step, at += Step * step)
      TL_UNROLL for (int c = 0; c < Cols; c += 64) {
        const int bytes = r + row < rows && (!Padded || r + row >= before) ? min(max(2 * (cols - c - col), 0), 16) : 0;
        if (Rows % Step == 0 || r + row < Rows) copy_piece(to + piece(Rows, r + row, (c + col) >> 3), bytes ? at + c : from, bytes);
      }
  }
}

// By a warp that made them: `Rows` rows from `first` on of a tile of `All` rows, to rows `step` elements apart, as far as they lie within `rows`, `cols`
// from `to` on, where the tile's first row goes.
template <int All, int Rows, int Cols> TL_DEV void put_tile(u16 *to, u32 tile, int first, long long step, int rows, int cols) {
  const bool pieces = moves_by_pieces(to, step);
  const int col = (lane() & 7) * 8;
  for (int row = first + (lane() >> 3); row < min(first + Rows, rows); row += 4) {
    u16 *const at = to + row * step + col;
    TL_UNROLL for (int c = 0; c < Cols; c += 64) {
      const uint4 v = load_piece(tile + piece(All, row, (c + col) >> 3));
      const u32 w[4] = {v.x, v.y, v.z, v.w};
      if (pieces && c + col + 8 <= cols) {
        *(uint4 *)(at + c) = v;
      } else {
        TL_UNROLL for (int i = 0; i < 8; i++)
          if (c + col + i < cols) at[c + i] = (u16)(w[i / 2] >> i % 2 * 16);
      }
    }
  }
}

// Four matrices of 8 x 8 elements to where lanes 8 i to 8 i + 7 say for matrix i, as fragments hold them.
TL_DEV void store_matrix(u32 a, u32 r0, u32 r1, u32 r2, u32 r3) {
  const u32 r[4] = {r0, r1, r2, r3};
  TL_UNROLL for (int i = 0; i < 4; i++) {
    const u32 at = __shfl_sync(~0u, a, 8 * i + lane() / 4) + 4 * (lane() & 3);
    store_word(at, r[i]);
  }
}

// ---- products of a warp: RT x 16 rows, CT x 8 columns
// Step k of 16 of the left operand: the warp's rows from `row` on; At: what is summed runs along the tile's rows.
template <int RT, bool At> TL_DEV void left_step(u32 (&a)[RT][4], u32 tile, int rows, int row, int k) {
  TL_UNROLL for (int r = 0; r < RT; r++)
    if (At)
      load_matrix_transposed(tile + piece(rows, 16 * k + (lane() >> 4) * 8 + (lane() & 7), (row >> 3) + 2 * r + (lane() >> 3 & 1)),
                             a[r][0], a[r][1], a[r][2], a[r][3]);
    else
      load_matrix(tile + piece(rows, row + 16 * r + (lane() & 15), 2 * k + (lane() >> 4)), a[r][0], a[r][1], a[r][2], a[r][3]);
}
// The same of the right one: columns 8 c to 8 c + 15.  Bt: what is summed runs along the tile's columns.
template <bool Bt> TL_DEV void right_step(u32 (&b)[4], u32 tile, int rows, int c, int k) {
  const int low = lane() & 7, mid = lane() >> 3 & 1, high = lane() >> 4;
  if (Bt)
    load_matrix(tile + piece(rows, 8 * c + 8 * high + low, 2 * k + mid), b[0], b[1], b[2], b[3]);
  else
    load_matrix_transposed(tile + piece(rows, 16 * k + 8 * mid + low, c + high), b[0], b[1], b[2], b[3]);
}
template <bool Bf> TL_DEV void mma(float *d, const u32 (&a)[4], u32 b0, u32 b1) {
  if constexpr (Bf)
    mma_bf16(d, a[0], a[1], a[2], a[3], b0, b1);
  else
    mma_f16(d, a[0], a[1], a[2], a[3], b0, b1);
}
// d += a b; fragments of the right operand come one ahead, those of the left by left(k, a), a step ahead.
template <bool Bf, int RT, int CT, int Steps, bool Bt, class F> TL_DEV void add_steps(float *d, u32 right, int rows, F left) {
  static_assert(CT % 2 == 0, "columns in sixteens");
  u32 a[2][RT][4], b[2][4];
  left(0, a[0]);
  right_step<Bt>(b[0], right, rows, 0, 0);
  TL_UNROLL for (int k = 0; k < Steps; k++) {
    if (k + 1 < Steps) left(k + 1, a[k + 1 & 1]);
    TL_UNROLL for (int c = 0; c < CT; c += 2) {
      const int now = (k * CT + c) / 2 & 1;
      if (c + 2 < CT)
        right_step<Bt>(b[now ^ 1], right, rows, c + 2, k);
      else if (k + 1 < Steps)
        right_step<Bt>(b[now ^ 1], right, rows, 0, k + 1);
      TL_UNROLL for (int r = 0; r < RT; r++) {
        mma<Bf>(d + (r * CT + c) * 4, a[k & 1][r], b[now][0], b[now][1]);
        mma<Bf>(d + (r * CT + c + 1) * 4, a[k & 1][r], b[now][2], b[now][3]);
      }
    }
  }
}
// Both in shared memory.
template <bool Bf, int RT, int CT, int Steps, bool At, bool Bt>
TL_DEV void add_product(float (&d)[4 * RT * CT], u32 left, int left_rows, int row, u32 right, int right_rows) {
  add_steps<Bf, RT, CT, Steps, Bt>(d, right, right_rows, [&](int k, u32 (&a)[RT][4]) { left_step<RT, At>(a, left, left_rows, row, k); });
}
// The left one in registers.
template <bool Bf, int RT, int CT, int Steps, bool Bt>
TL_DEV void add_product(float (&d)[4 * RT * CT], const u32 (&left)[4 * RT * Steps], u32 right, int right_rows) {
  add_steps<Bf, RT, CT, Steps, Bt>(d, right, right_rows, [&](int k, u32 (&a)[RT][4]) {
    TL_UNROLL for (int r = 0; r < RT; r++)
      TL_UNROLL for (int i = 0; i < 4; i++) a[r][i] = left[(r * Steps + k) * 4 + i];
  });
}
// 16 RT rows from `row` of a tile as the left operand of a product, 16 columns a step.
template <int RT, int N> TL_DEV void load_left(u32 (&d)[N], u32 tile, int rows, int row) {
  TL_UNROLL for (int k = 0; k < N / (4 * RT); k++) {
    u32 a[RT][4];
    left_step<RT, false>(a, tile, rows, row, k);
    TL_UNROLL for (int r = 0; r < RT; r++)
      TL_UNROLL for (int i = 0; i < 4; i++) d[(r * (N / (4 * RT)) + k) * 4 + i] = a[r][i];
  }
}
}  // namespace tl
