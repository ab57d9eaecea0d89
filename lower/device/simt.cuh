/* simt.cuh - the plain device tile library: tiles of plain threads, loops without roles.
 *
 * The threads of a block stand in TY rows of TX.  A tile lies in their registers: thread (ty, tx) holds
 * elements (ty + TY i, tx + TX j); or, where kernels stream what lies side by side, TV neighbours at a time, which
 * come and go by 16 bytes.  What lacks an axis is held by all threads along it, bit for bit the same.  So elementwise statements and folds along the columns need no barrier; products, prefixes and
 * transpositions go by shared memory; products of 16-bit elements on to the device's unit for them, where it has one
 * (fragment.h).
 *
 * Nothing here is one vendor's: simt_cuda.h and simt_hip.h say what threads are, or, for a C++ compiler of the
 * host, the header that BB_HOST_DEVICE names.
 */
#pragma once

#ifdef BB_HOST_DEVICE
#include BB_HOST_DEVICE
#define BB_UNROLL
#define BB_ROLLED
#define BB_SOME
#else
#ifdef __HIP__
#include "simt_hip.h"
#else
#include "simt_cuda.h"
#endif
#define BB_UNROLL _Pragma("unroll")
#define BB_ROLLED _Pragma("unroll 1")
#define BB_SOME _Pragma("unroll 8")
#endif
#define BB_EACH(i, count) BB_UNROLL for (int i = 0; i < (count); i++)

#define BB_INTEGER BB_DEVICE
#include "integer.h"

/* --- reals --- */

#define BB_UNARY(name)                                                                             \
  BB_DEVICE float bb_##name##_f32(float x) {                                                       \
    return name##f(x);                                                                             \
  }                                                                                                \
  BB_DEVICE double bb_##name##_f64(double x) {                                                     \
    return name(x);                                                                                \
  }
BB_UNARY(exp)
BB_UNARY(tanh)
BB_UNARY(erf)
BB_UNARY(log)
BB_UNARY(sin)
BB_UNARY(atan)
BB_UNARY(cos)
BB_UNARY(sqrt)
BB_UNARY(floor)
BB_UNARY(ceil)
BB_UNARY(rint)
BB_UNARY(fabs)
#undef BB_UNARY

/* x / by, `one` being 1 / by: a quotient, and what is left of x by it.  As a division rounds, but where results are not normal. */
BB_DEVICE float bb_divide_f32(float x, float by, float one) {
  float quotient = x * one, rest = fmaf(-quotient, by, x);
  return rest - rest == 0.0f ? fmaf(rest, one, quotient) : quotient; /* of infinities nothing is left */
}

/* NaN wins; a remainder has the sign of the divisor (mod) or of the dividend (fmod). */
#define BB_REAL(suffix, real, power, remainder)                                                    \
  BB_DEVICE real bb_max_##suffix(real a, real b) {                                                 \
    return ((a > b) | (a != a)) ? a : b;                                                           \
  }                                                                                                \
  BB_DEVICE real bb_min_##suffix(real a, real b) {                                                 \
    return ((a < b) | (a != a)) ? a : b;                                                           \
  }                                                                                                \
  BB_DEVICE real bb_sign_##suffix(real a) {                                                        \
    return a != a ? a : (real)((a > 0) - (a < 0));                                                 \
  }                                                                                                \
  BB_DEVICE real bb_power_##suffix(real a, real b) {                                               \
    return power(a, b);                                                                            \
  }                                                                                                \
  BB_DEVICE real bb_fmod_##suffix(real a, real b) {                                                \
    return remainder(a, b);                                                                        \
  }                                                                                                \
  BB_DEVICE real bb_mod_##suffix(real a, real b) {                                                 \
    real rest = remainder(a, b);                                                                   \
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;                                   \
  }
BB_REAL(f32, float, powf, fmodf)
BB_REAL(f64, double, pow, fmod)
#undef BB_REAL

/* --- elements in memory --- */

BB_DEVICE uint16_t bb_to_bf16(float value) {
  uint32_t bits = bb_bits(value);
  if (value != value) return (uint16_t)(bits >> 16 | 0x40);
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
BB_DEVICE float bb_from_bf16(uint16_t bits) {
  return bb_float((uint32_t)bits << 16);
}
BB_DEVICE float bb_round_f16(float value) {
  return bb_from_f16(bb_to_f16(value));
}
BB_DEVICE float bb_round_bf16(float value) {
  return bb_from_bf16(bb_to_bf16(value));
}

template <class T, class S> BB_DEVICE T bb_get(const S *from) {
  return (T)*from;
}
template <class T> BB_DEVICE T bb_get(const bb_f16 *from) {
  return (T)bb_from_f16(from->bits);
}
template <class T> BB_DEVICE T bb_get(const bb_bf16 *from) {
  return (T)bb_from_bf16(from->bits);
}
template <class S, class T> BB_DEVICE void bb_put(S *to, T value) {
  *to = (S)value;
}
template <class T> BB_DEVICE void bb_put(bb_f16 *to, T value) {
  to->bits = bb_to_f16((float)value);
}
template <class T> BB_DEVICE void bb_put(bb_bf16 *to, T value) {
  to->bits = bb_to_bf16((float)value);
}

/* A pad as it is stored.  The compiler does not see what a conversion to 16 bits gives: of 0 it is told. */
BB_DEVICE bool bb_is_nothing(float value) {
  return bb_bits(value) == 0;
}
template <class T> BB_DEVICE bool bb_is_nothing(T) {
  return false;
}
template <class S, class T> BB_DEVICE S bb_padding(T pad) {
  S stored = {0};
  if (!bb_is_nothing(pad)) bb_put(&stored, pad);
  return stored;
}

/* --- tiles: R rows and C columns, 0 for an axis that is not there --- */

BB_CONSTANT int bb_parts(int size, int threads) {
  return size ? (size + threads - 1) / threads : 1;
}
BB_CONSTANT int bb_whole(int size) {
  return size ? size : 1;
}

/* Neighbours that a thread holds of C columns: TV, or what divides them evenly. */
BB_CONSTANT int bb_neighbours(int size, int threads, int most) {
  while (most > 1 && (size == 0 || size % (threads * most))) most /= 2;
  return most;
}
/* The column of a thread's j-th. */
template <int TX, int TV, int C> BB_DEVICE int bb_col(int thread, int j) {
  constexpr int v = bb_neighbours(C, TX, TV);
  return TX * v * (j / v) + thread * v + j % v;
}

template <int TY, int TX, int TV, int R, int C> struct bb_tile {
  static constexpr int rt = bb_parts(R, TY), ct = bb_parts(C, TX), rows = bb_whole(R),
                       cols = bb_whole(C), v = bb_neighbours(C, TX, TV);
  static BB_DEVICE int row(int i) {
    return R ? bb_thread() / TX + TY * i : 0;
  }
  static BB_DEVICE int col(int j) {
    return C ? bb_col<TX, TV, C>(bb_thread() % TX, j) : 0;
  }
  /* Of the threads that hold the same elements, one. */
  static BB_DEVICE bool owner() {
    return (R || bb_thread() / TX == 0) && (C || bb_thread() % TX == 0);
  }
  static BB_DEVICE bool inside(int i, int j) {
    return (R % TY == 0 || row(i) < rows) && (C % TX == 0 || col(j) < cols);
  }
};

/* Some neighbours, as they come and go: by 16 bytes, or all there are where that is less. */
template <class S, int V> union bb_line {
  static constexpr int bytes = V * (int)sizeof(S), lines = bytes >= 16 ? bytes / 16 : 0;
  bb_16_bytes whole[lines ? lines : 1];
  bb_8_bytes half;
  S element[V];
  BB_DEVICE bb_line() {
  }
  BB_DEVICE void fill(S value) {
    BB_EACH(k, V) element[k] = value;
  }
  BB_DEVICE void load(const S *from) {
    if (bytes == 8) half = *(const bb_8_bytes *)from;
    BB_EACH(i, lines) whole[i] = ((const bb_16_bytes *)from)[i];
  }
  BB_DEVICE void store(S *to) const {
    if (bytes == 8) *(bb_8_bytes *)to = half;
    BB_EACH(i, lines) ((bb_16_bytes *)to)[i] = whole[i];
  }
  /* Do rows so far apart lie so? */
  static BB_DEVICE bool fits(const S *from, int64_t row_step, int64_t col_step) {
    uint64_t places = (uint64_t)from | (uint64_t)row_step * sizeof(S);
    return col_step == 1 && bytes >= 8 && places % (bytes >= 16 ? 16 : 8) == 0;
  }
};

/* Rows and columns of a tile that lie in an array: those from `end` on are behind it, those before `begin` before. */
template <bool PADDED> struct bb_inside {
  int row_end, col_end, row_begin, col_begin;
  BB_DEVICE bool operator()(int row, int col) const {
    return row < row_end && col < col_end && (!PADDED || (row >= row_begin && col >= col_begin));
  }
  BB_DEVICE bool is_even(int neighbours) const {
    return col_end % neighbours == 0 && (!PADDED || col_begin % neighbours == 0);
  }
};

/* --- loads: all of a tile, or of several, is asked for before the first of it is taken --- */

template <bool PADDED>
BB_DEVICE bb_inside<PADDED> bb_within(int row_end, int col_end, int row_begin, int col_begin) {
  return {row_end, col_end, row_begin, col_begin};
}

/* A thread's part of a tile as it lies in memory. */
template <int TY, int TX, int TV, int R, int C, class S> struct bb_part {
  using tile = bb_tile<TY, TX, TV, R, C>;
  using line = bb_line<S, tile::v>;
  line some[tile::rt * tile::ct / tile::v];
};

/* What is inside, and `pad`, which S holds exactly, around it.  Nobody waits for it yet.  A line is asked for at one place, from
 * which its elements are at constant distances: places for each element would take all registers. */
template <int TY, int TX, int TV, int R, int C, class T, class S, bool PADDED>
BB_DEVICE bb_part<TY, TX, TV, R, C, S> bb_ask(const S *from, int64_t row_step, int64_t col_step,
                                              const bb_inside<PADDED> &inside, T pad) {
  using part = bb_part<TY, TX, TV, R, C, S>;
  using tile = typename part::tile;
  const S around = bb_padding<S>(pad);
  part to;
  if (tile::v > 1 && inside.is_even(tile::v) && part::line::fits(from, row_step, col_step)) {
    BB_EACH(i, tile::rt) BB_EACH(j, tile::ct / tile::v) {
      typename part::line &line = to.some[i * (tile::ct / tile::v) + j];
      int r = tile::row(i), c = tile::col(j * tile::v);
      line.fill(around);
      if (inside(r, c)) line.load(from + r * row_step + c);
    }
    return to;
  }
  BB_EACH(i, tile::rt) BB_EACH(j, tile::ct / tile::v) {
    int r = tile::row(i), c = tile::col(j * tile::v);
    const S *at = from + r * row_step + c * col_step;
    BB_EACH(k, tile::v)
    to.some[i * (tile::ct / tile::v) + j].element[k] = inside(r, c + k) ? at[k * col_step] : around;
  }
  return to;
}

template <int TY, int TX, int TV, int R, int C, class T, int N, class S>
BB_DEVICE void bb_take(T (&to)[N], const bb_part<TY, TX, TV, R, C, S> &from) {
  using tile = bb_tile<TY, TX, TV, R, C>;
  BB_EACH(i, N) to[i] = bb_get<T>(&from.some[i / tile::v].element[i % tile::v]);
}

template <int TY, int TX, int TV, int R, int C, class T, int N, class S>
BB_DEVICE void bb_load(T (&to)[N], const S *from, int64_t row_step, int64_t col_step, int rows,
                       int cols, T pad) {
  bb_take(to, bb_ask<TY, TX, TV, R, C>(from, row_step, col_step, bb_inside<false>{rows, cols, 0, 0},
                                       pad));
}

/* Of an array that is padded: `from` may lie before it. */
template <int TY, int TX, int TV, int R, int C, class T, int N, class S>
BB_DEVICE void bb_load_padded(T (&to)[N], const S *from, int64_t row_step, int64_t col_step,
                              int row_begin, int col_begin, int rows, int cols, T pad) {
  bb_take(to, bb_ask<TY, TX, TV, R, C>(from, row_step, col_step,
                                       bb_inside<true>{rows, cols, row_begin, col_begin}, pad));
}

/* Where a tile's block lies, in one register: what does not fit there is nowhere. */
#define BB_NOWHERE (-2147483647 - 1)
BB_DEVICE int bb_at(int64_t place) {
  return place == (int)place ? (int)place : BB_NOWHERE;
}

/* As a load that had nothing to do would have it: `pad` around what lies in the array. */
template <int TY, int TX, int TV, int R, int C, class T, int N, class P>
BB_DEVICE void bb_surround(T (&to)[N], int rows, int cols, P pad) {
  using tile = bb_tile<TY, TX, TV, R, C>;
  if (rows == tile::rows && cols == tile::cols) return;
  BB_EACH(i, tile::rt) BB_EACH(j, tile::ct)
  if (tile::row(i) >= rows || tile::col(j) >= cols) to[i * tile::ct + j] = (T)pad;
}

template <int TY, int TX, int TV, int R, int C, class T, int N, class S>
BB_DEVICE void bb_store(S *to, int64_t row_step, int64_t col_step, const T (&from)[N], int rows,
                        int cols) {
  using tile = bb_tile<TY, TX, TV, R, C>;
  using line = bb_line<S, tile::v>;
  if (tile::v > 1 && cols % tile::v == 0 && line::fits(to, row_step, col_step)) {
    BB_EACH(i, tile::rt) BB_EACH(j, tile::ct / tile::v) {
      line some;
      int r = tile::row(i), c = tile::col(j * tile::v);
      BB_EACH(k, tile::v) bb_put(&some.element[k], from[i * tile::ct + j * tile::v + k]);
      if (tile::owner() && r < rows && c < cols) some.store(to + r * row_step + c);
    }
    return;
  }
  BB_EACH(i, tile::rt) BB_EACH(j, tile::ct) {
    int r = tile::row(i), c = tile::col(j);
    if (tile::owner() && r < rows && c < cols)
      bb_put(to + r * row_step + c * col_step, from[i * tile::ct + j]);
  }
}

/* --- folds along the columns --- */

template <class T> struct bb_least {
  static BB_DEVICE T value() {
    return (T)-INFINITY;
  }
  static BB_DEVICE T most() {
    return (T)INFINITY;
  }
};
#define BB_LEAST(type, low, high)                                                                  \
  template <> struct bb_least<type> {                                                              \
    static BB_DEVICE type value() {                                                                \
      return low;                                                                                  \
    }                                                                                              \
    static BB_DEVICE type most() {                                                                 \
      return high;                                                                                 \
    }                                                                                              \
  };
BB_LEAST(int64_t, INT64_MIN, INT64_MAX)
BB_LEAST(int32_t, INT32_MIN, INT32_MAX)
BB_LEAST(uint8_t, 0, 1)
#undef BB_LEAST

/* What a fold begins with, and how two parts are one.  NaN wins. */
#define BB_MONOID(name, start, both)                                                               \
  template <class T> struct bb_##name {                                                            \
    static BB_DEVICE T empty() {                                                                   \
      return start;                                                                                \
    }                                                                                              \
    BB_DEVICE T operator()(T a, T b) const {                                                       \
      return both;                                                                                 \
    }                                                                                              \
  };
BB_MONOID(sum, 0, (T)(a + b))
BB_MONOID(prod, 1, (T)(a *b))
BB_MONOID(most, bb_least<T>::value(), ((a > b) | (a != a)) ? a : b)
BB_MONOID(least_of, bb_least<T>::most(), ((a < b) | (a != a)) ? a : b)
#undef BB_MONOID

/* N values of each thread of a row of threads, in halves: all get the same bits. */
template <int TY, int TX, int N, class V, class F> BB_DEVICE void bb_across(V (&value)[N], F both) {
  constexpr int lanes = TX < BB_LANES ? TX : BB_LANES, warps = TX / lanes;
  for (int half = lanes / 2; half > 0; half /= 2)
    BB_EACH(i, N) value[i] = both(value[i], bb_shuffle(value[i], half));
  if (warps == 1) return;
  V *part = (V *)bb_shared + bb_thread() / TX * warps;
  bb_sync();
  if (bb_thread() % lanes == 0)
    BB_EACH(i, N) part[i * TY * warps + bb_thread() % TX / lanes] = value[i];
  bb_sync();
  BB_EACH(i, N) {
    value[i] = part[i * TY * warps];
    for (int w = 1; w < warps; w++) value[i] = both(value[i], part[i * TY * warps + w]);
  }
}

/* PART: of what a thread has alone. */
template <int TY, int TX, int TV, int R, int C, bool PART, class F, class T, int N, int M>
BB_DEVICE void bb_fold(T (&to)[N], const T (&from)[M], F both) {
  using tile = bb_tile<TY, TX, TV, R, C>;
  BB_EACH(i, tile::rt) {
    T held = F::empty();
    BB_EACH(j, tile::ct)
    if (C % TX == 0 || tile::col(j) < tile::cols) held = both(held, from[i * tile::ct + j]);
    to[i] = held;
  }
  if (C && !PART) bb_across<TY, TX>(to, both);
}

/* Of parts of a sum, the sum; and of two at once. */
template <int TY, int TX, class T, int N>
BB_DEVICE void bb_whole(T (&to)[N], const T (&parts)[N]) {
  BB_EACH(i, N) to[i] = parts[i];
  bb_across<TY, TX>(to, bb_sum<T>());
}
template <int TY, int TX, class T, int N, int M>
BB_DEVICE void bb_whole(T (&to)[N], const T (&parts)[N], T (&next)[M], const T (&more)[M]) {
  T all[N + M];
  BB_EACH(i, N) all[i] = parts[i];
  BB_EACH(i, M) all[N + i] = more[i];
  bb_across<TY, TX>(all, bb_sum<T>());
  BB_EACH(i, N) to[i] = all[i];
  BB_EACH(i, M) next[i] = all[N + i];
}

template <class T> struct bb_placed {
  T value;
  int64_t place; /* -1: none */
};
template <class T> BB_DEVICE bb_placed<T> bb_shuffle(bb_placed<T> from, int across) {
  return {bb_shuffle(from.value, across), bb_shuffle(from.place, across)};
}

/* A NaN beats every number; among equals the first or last. */
template <bool LARGEST, bool LAST, class T> struct bb_better {
  BB_DEVICE bb_placed<T> operator()(bb_placed<T> a, bb_placed<T> b) const {
    if (a.place < 0 || b.place < 0) return a.place < 0 ? b : a;
    bool nan_a = a.value != a.value, nan_b = b.value != b.value;
    bool second = nan_a != nan_b                        ? nan_b
                  : (nan_a || a.value == b.value)       ? (b.place > a.place) == LAST
                  : LARGEST                             ? b.value > a.value
                                                        : b.value < a.value;
    return second ? b : a;
  }
};

/* The largest (smallest) element of each row and its place: `limit` and beyond are not asked. */
template <int TY, int TX, int TV, int R, int C, bool LARGEST, bool LAST, class T, class P, int N, int M>
BB_DEVICE void bb_place(T (&to)[N], P (&place)[N], const T (&from)[M], int64_t start,
                        int64_t limit) {
  using tile = bb_tile<TY, TX, TV, R, C>;
  bb_better<LARGEST, LAST, T> better;
  bb_placed<T> held[tile::rt];
  BB_EACH(i, tile::rt) {
    held[i] = {LARGEST ? bb_least<T>::value() : bb_least<T>::most(), -1};
    BB_EACH(j, tile::ct)
    if (tile::col(j) < tile::cols && start + tile::col(j) < limit)
      held[i] = better(held[i], bb_placed<T>{from[i * tile::ct + j], start + tile::col(j)});
  }
  if (C) bb_across<TY, TX>(held, better);
  BB_EACH(i, tile::rt) {
    to[i] = held[i].value;
    place[i] = (P)held[i].place;
  }
}

/* --- by shared memory --- */

/* Where a tile's row begins there: columns of neighbouring rows lie in different banks. */
template <int TY, int TX, int TV, int R, int C, class T, int N>
BB_DEVICE void bb_lay_down(T *shared, const T (&from)[N]) {
  using tile = bb_tile<TY, TX, TV, R, C>;
  bb_sync();
  BB_EACH(i, tile::rt) BB_EACH(j, tile::ct)
  if (tile::owner() && tile::inside(i, j))
    shared[tile::row(i) * (tile::cols + 1) + tile::col(j)] = from[i * tile::ct + j];
  bb_sync();
}

/* to[c][r] = from[r][c]: R and C are those of `from`. */
template <int TY, int TX, int TV, int R, int C, class T, int N, int M>
BB_DEVICE void bb_transpose(T (&to)[N], const T (&from)[M]) {
  using tile = bb_tile<TY, TX, TV, C, R>;
  T *shared = (T *)bb_shared;
  bb_lay_down<TY, TX, TV, R, C>(shared, from);
  BB_EACH(i, tile::rt) BB_EACH(j, tile::ct)
  if (tile::inside(i, j))
    to[i * tile::ct + j] = shared[tile::col(j) * (bb_whole(C) + 1) + tile::row(i)];
}

/* Prefixes along the columns; BEFORE: without the element itself. */
template <int TY, int TX, int TV, int R, int C, class F, bool BEFORE = false, class T, int N>
BB_DEVICE void bb_scan(T (&to)[N], const T (&from)[N], F both) {
  using tile = bb_tile<TY, TX, TV, R, C>;
  T *shared = (T *)bb_shared;
  bb_lay_down<TY, TX, TV, R, C>(shared, from);
  for (int r = bb_thread(); r < tile::rows; r += TY * TX) {
    T held = F::empty(), *row = shared + r * (tile::cols + 1);
    for (int c = 0; c < tile::cols; c++) {
      T next = both(held, row[c]);
      row[c] = BEFORE ? held : next;
      held = next;
    }
  }
  bb_sync();
  BB_EACH(i, tile::rt) BB_EACH(j, tile::ct)
  if (tile::inside(i, j))
    to[i * tile::ct + j] = shared[tile::row(i) * (tile::cols + 1) + tile::col(j)];
}

#include "product.cuh"
