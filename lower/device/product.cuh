/* product.cuh - the products of simt.cuh, of which it is a part: by plain threads, or by a unit of the device's own.
 *
 * Either way parts of both operands go by shared memory, and so does the result, from where it is summed to where the
 * tile's elements lie.
 */
#pragma once

enum { BB_DEPTH = 64 }; /* of the parts in which operands pass through shared memory */

/* A product's result is cut into pieces, and what is summed among groups of threads that have all pieces: a
 * thread sums a piece in its registers.  Neighbours in shared memory come by vector loads. */
enum { BB_PIECE = 4 };
BB_CONSTANT int bb_piece(int threads, int rows, int cols, bool of_rows) {
  int rm = BB_PIECE, rn = BB_PIECE;
  while (bb_parts(rows, rm) * bb_parts(cols, rn) > threads) rn > rm ? rm *= 2 : rn *= 2;
  return of_rows ? rm : rn;
}
template <int THREADS, int ROWS, int COLS> struct bb_pieces {
  static constexpr int rm = bb_piece(THREADS, ROWS, COLS, true),
                       rn = bb_piece(THREADS, ROWS, COLS, false);
  static constexpr int rows = bb_parts(ROWS, rm), cols = bb_parts(COLS, rn);
  static constexpr int groups = THREADS / (rows * cols);
  static constexpr int a_pitch = rows * rm + BB_PIECE, b_pitch = cols * rn + BB_PIECE;
};

/* shared[(k - first) * k_step + x * x_step] = from: k runs along its rows (DOWN) or columns. */
template <int TY, int TX, int TV, int R, int C, bool DOWN, class T, class S, int N>
BB_DEVICE void bb_stage(T *shared, int k_step, int x_step, const S (&from)[N], int first) {
  using tile = bb_tile<TY, TX, TV, R, C>;
  BB_EACH(i, tile::rt) BB_EACH(j, tile::ct) {
    int k = (DOWN ? tile::row(i) : tile::col(j)) - first, x = DOWN ? tile::col(j) : tile::row(i);
    if (tile::owner() && tile::inside(i, j) && k >= 0 && k < BB_DEPTH)
      bb_put(shared + k * k_step + x * x_step, from[i * tile::ct + j]);
  }
}

/* What groups of threads have summed, to where the tile's elements lie. */
template <class P, int TY, int TX, int TV, int M, int N, class T, int NT>
BB_DEVICE void bb_gather(T (&to)[NT], const T (&sum)[P::rm][P::rn], int group, int row, int col) {
  using tile = bb_tile<TY, TX, TV, M, N>;
  constexpr int pitch = P::cols * P::rn, size = P::rows * P::rm * pitch;
  T *shared = (T *)bb_shared;
  bb_sync();
  if (group < P::groups) {
    BB_EACH(i, P::rm) BB_EACH(j, P::rn)
    shared[group * size + (row * P::rm + i) * pitch + col * P::rn + j] = sum[i][j];
  }
  bb_sync();
  BB_EACH(i, tile::rt) BB_EACH(j, tile::ct) if (tile::inside(i, j)) {
    const T *part = shared + tile::row(i) * pitch + tile::col(j);
    T all = part[0];
    BB_EACH(g, P::groups - 1) all += part[(g + 1) * size];
    to[i * tile::ct + j] += all;
  }
}

/* --- products by units of their own: fragment.h --- */

enum { BB_FRAGMENT = 16, BB_APART = 8 }; /* elements between rows in shared memory */

/* So many neighbours, which come by one load. */
template <class E, int N> struct alignas(N * sizeof(E)) bb_few {
  E element[N];
};
template <class E, int N> BB_DEVICE void bb_take(E *to, const E *from) {
  bb_few<E, N> some = *(const bb_few<E, N> *)from;
  BB_EACH(i, N) to[i] = some.element[i];
}

/* The result cut into fragments, dealt out to the block's warps.  What lies beyond the operands counts as zero. */
template <class U, int THREADS, int ROWS, int COLS, int DEPTH> struct bb_fragments {
  static constexpr int down = bb_parts(ROWS, BB_FRAGMENT), across = bb_parts(COLS, BB_FRAGMENT);
  static constexpr int whole = bb_parts(DEPTH, BB_FRAGMENT) * BB_FRAGMENT;
  static constexpr int part = whole < BB_DEPTH ? whole : BB_DEPTH, pitch = part + BB_APART;
  static constexpr int warps = THREADS / U::LANES, each = bb_parts(down * across, warps);
  static constexpr int left = down * BB_FRAGMENT * pitch, right = across * BB_FRAGMENT * pitch;
  static constexpr bool even = ROWS % BB_FRAGMENT == 0 && COLS % BB_FRAGMENT == 0 && DEPTH % part == 0;
  /* The n-th of this thread's warp.  All warps have as many; the last may come again. */
  static BB_DEVICE int number(int n) {
    int mine = bb_thread() / U::LANES + n * warps;
    return mine < down * across ? mine : down * across - 1;
  }
};

template <class U, class F, class E, int N>
BB_DEVICE void bb_add_products(float (&sum)[N][U::RESULT], const E *left, const E *right) {
  const int lane = bb_thread() % U::LANES;
  BB_EACH(n, N) {
    const E *a = left + F::number(n) / F::across * BB_FRAGMENT * F::pitch;
    const E *b = right + F::number(n) % F::across * BB_FRAGMENT * F::pitch;
    BB_EACH(k, F::part / BB_FRAGMENT) {
      E x[U::OPERAND], y[U::OPERAND];
      BB_EACH(r, U::OPERAND / U::RUN) {
        const int e = r * U::RUN, at = k * BB_FRAGMENT;
        bb_take<E, U::RUN>(x + e, a + U::a_row(lane, e) * F::pitch + at + U::a_depth(lane, e));
        bb_take<E, U::RUN>(y + e, b + U::b_col(lane, e) * F::pitch + at + U::b_depth(lane, e));
      }
      bb_multiply(sum[n], x, y);
    }
  }
}

template <class U, int TY, int TX, int TV, int M, int N, int AR, int AC, bool A_DOWN, int BR, int BC,
          bool B_DOWN, class E, int NT, int NA, int NB>
BB_DEVICE void bb_dot_by(float (&to)[NT], const float (&a)[NA], const float (&b)[NB], bool add) {
  using tile = bb_tile<TY, TX, TV, M, N>;
  constexpr int depth = bb_whole(A_DOWN ? AR : AC);
  using F = bb_fragments<U, TY * TX, tile::rows, tile::cols, depth>;
  E *left = (E *)bb_shared, *right = left + F::left;
  float *shared = (float *)bb_shared, sum[F::each][U::RESULT];
  BB_EACH(n, F::each) BB_EACH(e, U::RESULT) sum[n][e] = 0;
  BB_ROLLED for (int step = 0; step < F::whole; step += F::part) {
    bb_sync();
    if (!F::even) {
      for (int i = bb_thread(); i < F::left + F::right; i += TY * TX) left[i] = E{0};
      bb_sync();
    }
    bb_stage<TY, TX, TV, AR, AC, A_DOWN>(left, 1, F::pitch, a, step);
    bb_stage<TY, TX, TV, BR, BC, B_DOWN>(right, 1, F::pitch, b, step);
    bb_sync();
    bb_add_products<U, F>(sum, left, right);
  }
  bb_sync();
  BB_EACH(n, F::each) BB_EACH(e, U::RESULT) {
    const int lane = bb_thread() % U::LANES;
    const int row = F::number(n) / F::across * BB_FRAGMENT + U::row(lane, e);
    const int col = F::number(n) % F::across * BB_FRAGMENT + U::col(lane, e);
    shared[row * F::across * BB_FRAGMENT + col] = sum[n][e];
  }
  bb_sync();
  BB_EACH(i, tile::rt) BB_EACH(j, tile::ct) if (tile::inside(i, j)) {
    float all = shared[tile::row(i) * F::across * BB_FRAGMENT + tile::col(j)];
    to[i * tile::ct + j] = add ? to[i * tile::ct + j] + all : all;
  }
}

template <class U, class E, int THREADS> BB_CONSTANT bool bb_multiplies() {
  return U::LANES > 0 && sizeof(E) == 2 && THREADS % (U::LANES > 0 ? U::LANES : 1) == 0;
}

/* --- products by plain threads --- */

template <int TY, int TX, int TV, int M, int N, int AR, int AC, bool A_DOWN, int BR, int BC, bool B_DOWN,
          class T, int NT, class A, int NA, class B, int NB>
BB_DEVICE void bb_dot_plainly(T (&to)[NT], const A (&a)[NA], const B (&b)[NB], bool add) {
  using tile = bb_tile<TY, TX, TV, M, N>;
  using P = bb_pieces<TY * TX, tile::rows, tile::cols>;
  constexpr int depth = bb_whole(A_DOWN ? AR : AC), part = depth < BB_DEPTH ? depth : BB_DEPTH;
  constexpr int pieces = P::rows * P::cols;
  T *left = (T *)bb_shared, *right = left + part * P::a_pitch, sum[P::rm][P::rn];
  const int group = bb_thread() / pieces, piece = bb_thread() % pieces;
  const int row = piece / P::cols, col = piece % P::cols;
  BB_EACH(i, P::rm) BB_EACH(j, P::rn) sum[i][j] = 0;
  if (!add) {
    BB_EACH(i, tile::rt *tile::ct) to[i] = 0;
  }
  BB_ROLLED for (int step = 0; step < (depth + part - 1) / part; step++) {
    bb_sync();
    bb_stage<TY, TX, TV, AR, AC, A_DOWN>(left, P::a_pitch, 1, a, step * part);
    bb_stage<TY, TX, TV, BR, BC, B_DOWN>(right, P::b_pitch, 1, b, step * part);
    bb_sync();
    int count = depth - step * part < part ? depth - step * part : part;
    BB_SOME for (int k = group; k < count; k += P::groups) {
      T x[P::rm], y[P::rn];
      BB_EACH(i, P::rm) x[i] = left[k * P::a_pitch + row * P::rm + i];
      BB_EACH(j, P::rn) y[j] = right[k * P::b_pitch + col * P::rn + j];
      BB_EACH(i, P::rm) BB_EACH(j, P::rn) sum[i][j] += x[i] * y[j];
    }
  }
  bb_gather<P, TY, TX, TV, M, N>(to, sum, group, row, col);
}

/* to[M][N] (+)= a b.  AR, AC, BR, BC: the operands' shapes; A_DOWN, B_DOWN: what is summed over runs along
 * the operand's rows.  E: what the operands' elements fit into, bb_f16 or bb_bf16; anything else: they are as they are. */
template <int TY, int TX, int TV, int M, int N, int AR, int AC, bool A_DOWN, int BR, int BC, bool B_DOWN,
          class E, class T, int NT, class A, int NA, class B, int NB>
BB_DEVICE void bb_dot(T (&to)[NT], const A (&a)[NA], const B (&b)[NB], bool add) {
  if constexpr (bb_multiplies<bb_unit, E, TY * TX>())
    bb_dot_by<bb_unit, TY, TX, TV, M, N, AR, AC, A_DOWN, BR, BC, B_DOWN, E>(to, a, b, add);
  else
    bb_dot_plainly<TY, TX, TV, M, N, AR, AC, A_DOWN, BR, BC, B_DOWN>(to, a, b, add);
}
