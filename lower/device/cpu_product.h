/* cpu_product.h - products of the device tile library, for float and for double: what cpu_real.h declares of them,
 * with vectors spelled out.  An object of its own (BB_PRODUCTS), compiled once for all kernels.
 *
 * to[m][n] (+)= a b', n along vectors, in panels of as many vectors as registers hold the sums of for six rows: up to
 * six rows of a at a time are held against a panel of b.  The last panel has fewer vectors; up to twelve rows are held
 * against a single one.  A panel is copied first, side by side, unless few rows make use of it.  Of panels that were
 * packed at load, few rows take several at once, and strips ask for the next one, which comes from memory, each for other
 * lines of it: those of up to BB_SOON rows for more of them in a turn.
 * Every sum runs over k in order. */

#if BB_VECTOR_BYTES == 64
#define BB_VECTORS 4
#define BB_PANELS 4 /* that are packed at once */
#define BB_LINES_SOON                                                                              \
  2 /* that a turn asks for: more come no sooner, as the processor asks by itself for what follows */
#else
#define BB_VECTORS 2
#define BB_PANELS 8
#define BB_LINES_SOON 4
#endif
#define BB_ROWS 6
#define BB_MOST_ROWS 12  /* against one vector */
#define BB_SPREAD_ROWS 3 /* at most, against several panels */
#define BB_SPREAD 4      /* panels for one row, one less for each row more */
#define BB_SOON 64       /* rows at most whose work does not hide where a panel comes from */
#define BB_AHEAD 4       /* lines */
#define BB_LINES_LATER 1 /* that a turn of many rows asks for */

enum { BB_NAME(BB_PANEL) = BB_VECTORS * BB_VECTOR_BYTES / sizeof(BB_REAL) };

/* How many of m rows go next: what is left is shared so that no strip has too few sums to hide the latency of
 * the units, where that can be. */
BB_INLINE int64_t BB_NAME(bb_next_rows)(int64_t m) {
  static const unsigned char share[] = {0, 1, 2, 3, 4, 3, 6, 4, 4};
  return m < (int64_t)sizeof share ? share[m] : BB_ROWS;
}

/* The same against a single vector. */
BB_INLINE int64_t BB_NAME(bb_next_narrow)(int64_t m) {
  static const unsigned char share[] = {0, 1, 2, 3, 4, 3, 6, 4, 8, 6, 6, 8, 12, 12, 8, 8, 8};
  return m < (int64_t)sizeof share ? share[m] : BB_MOST_ROWS;
}

/* Columns of a panel of which `n` are there, at most as many as one has: whole vectors. */
BB_INLINE int64_t BB_NAME(bb_width)(int64_t n) {
  return bb_min((n + BB_LANES - 1) / BB_LANES * BB_LANES, BB_NAME(BB_PANEL));
}

#ifndef __clang__
#pragma GCC push_options
#pragma GCC optimize("O3")
#endif

/* sum += x * with, where the compiler moves no sums between registers. */
#if defined(__FMA__) && BB_VECTOR_BYTES >= 32
#define BB_FMA(sum, x, with)                                                                       \
  do {                                                                                             \
    if (sizeof(BB_REAL) == 4)                                                                      \
      __asm__("vfmadd231ps %2, %1, %0" : "+v"(sum) : "v"(with), "v"(x));                           \
    else                                                                                           \
      __asm__("vfmadd231pd %2, %1, %0" : "+v"(sum) : "v"(with), "v"(x));                           \
  } while (0)
#else
#define BB_FMA(sum, x, with) (sum) += (x) * (with)
#endif
/* The same with the number at an address, for a number that is used once. */
#if defined(__FMA__) && BB_VECTOR_BYTES == 64
#define BB_FMA_ONCE(sum, at, with)                                                                 \
  do {                                                                                             \
    if (sizeof(BB_REAL) == 4)                                                                      \
      __asm__("vfmadd231ps %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(with), "m"(*(at)));              \
    else                                                                                           \
      __asm__("vfmadd231pd %2%{1to8%}, %1, %0" : "+v"(sum) : "v"(with), "m"(*(at)));               \
  } while (0)
#else
#define BB_FMA_ONCE(sum, at, with) BB_FMA(sum, *(at) - (BB_NAME(bb_vector)){0}, with)
#endif

typedef BB_NAME(bb_vector) BB_NAME(bb_sums)[BB_MOST_ROWS][BB_VECTORS];

/* Of more rows than there are registers to point at, one points at three. */
#define BB_SHARED(rows) ((rows) > BB_ROWS ? 3 : 1)

/* One k: row i of a lies at row[i], of many rows at row[i / 3] + i % 3 * a_row, of a turned one at row[0] + i. */
BB_INLINE void BB_NAME(bb_add)(BB_NAME(bb_sums) sum, const BB_REAL *const *row, int64_t a_row,
                               int64_t at, const BB_REAL *b, const int rows, const int vectors,
                               const bool turned) {
  const int shared = BB_SHARED(rows);
  BB_NAME(bb_vector) with[BB_VECTORS];
  BB_STRAIGHT
  for (int v = 0; v < vectors; v++) with[v] = *(const BB_NAME(bb_loose) *)(b + v * BB_LANES);
  BB_STRAIGHT
  for (int i = 0; i < rows; i++) {
    const BB_REAL *element = turned ? row[0] + i : row[i / shared] + i % shared * a_row + at;
    if (vectors == 1) {
      BB_FMA_ONCE(sum[i][0], element, with[0]);
      continue;
    }
    BB_NAME(bb_vector) x = *element - (BB_NAME(bb_vector)){0};
    BB_STRAIGHT
    for (int v = 0; v < vectors; v++) BB_FMA(sum[i][v], x, with[v]);
  }
}

/* `rows` rows of the result against a panel of `vectors`; constants, so that the sums stay in registers.
 * Where they go is wanted last, and asked for first.  A core that runs two threads gives each of
 * them three instructions in a cycle; one k takes 20 for 12 sums, which six cycles could add: so a `turn`
 * of several k shares those that count and move on.  asks: for how many lines in each turn, from *later on, of the next panel,
 * which lies behind this one; into the second cache: the first one has no room for what is not used soon. */
BB_INLINE void BB_NAME(bb_strip)(BB_REAL *to, int64_t pitch, const BB_REAL *a, int64_t a_row,
                                 int64_t a_col, const BB_REAL *b, int64_t b_pitch, int64_t k,
                                 bool add, const int rows, const int vectors, const int turn,
                                 const bool turned, const int asks, const BB_REAL **later) {
  BB_NAME(bb_sums) sum;
  const int64_t panel = k * b_pitch;
  const int64_t line = *later < b + 2 * panel ? 64 / (int64_t)sizeof(BB_REAL) : 0;
  const BB_REAL *row[BB_ROWS];
  const int shared = BB_SHARED(rows), pointers = turned ? 1 : (rows + shared - 1) / shared;
  BB_STRAIGHT
  for (int i = 0; i < rows; i++) {
    BB_STRAIGHT
    for (int v = 0; v < vectors; v++) {
      sum[i][v] = (BB_NAME(bb_vector)){0};
      __builtin_prefetch(to + i * pitch + v * BB_LANES, 1);
    }
  }
  BB_STRAIGHT
  for (int i = 0; i < pointers; i++) row[i] = a + i * shared * a_row;
  for (; turn > 1 && k >= turn; k -= turn, b += turn * b_pitch) {
    BB_HIDE(b);
    BB_STRAIGHT
    for (int i = 0; i < pointers && !turned; i++) BB_HIDE(row[i]);
    BB_STRAIGHT
    for (int t = 0; t < turn; t++) {
      if (t < asks) __builtin_prefetch(*later, 0, 2), *later += line;
      BB_NAME(bb_add)(sum, row, a_row, t, b + t * b_pitch, rows, vectors, turned);
      if (!turned) continue;
      row[0] += a_col;
      BB_HIDE(row[0]);
    }
    BB_STRAIGHT
    for (int i = 0; i < pointers && !turned; i++) row[i] += turn;
  }
  for (; k > 0; k--, b += b_pitch) {
    BB_NAME(bb_add)(sum, row, a_row, 0, b, rows, vectors, turned);
    BB_STRAIGHT
    for (int i = 0; i < pointers; i++) row[i] += a_col;
  }
  BB_STRAIGHT
  for (int i = 0; i < rows; i++) BB_STRAIGHT
  for (int v = 0; v < vectors; v++) {
    BB_NAME(bb_loose) *at = (BB_NAME(bb_loose) *)(to + i * pitch + v * BB_LANES);
    if (add) sum[i][v] += *at;
    *at = sum[i][v];
  }
}

/* All rows against a panel, strip by strip. */
typedef void BB_NAME(bb_strips_of)(BB_REAL *, int64_t, const BB_REAL *, int64_t, int64_t,
                                   const BB_REAL *, int64_t, int64_t, int64_t, bool);
#define BB_CASE(rows, vectors, row, col, b_step, turn, turned, asks)                               \
  case rows:                                                                                       \
    BB_NAME(bb_strip)                                                                              \
    (to, pitch, a, row, col, b, b_step, k, add, rows, vectors, turn, turned, asks, &later);        \
    break;
#define BB_FEW_CASES(vectors, row, col, b_step, turn, turned, asks)                                \
  BB_CASE(6, vectors, row, col, b_step, turn, turned, asks)                                        \
  BB_CASE(4, vectors, row, col, b_step, turn, turned, asks)                                        \
  BB_CASE(3, vectors, row, col, b_step, 1, turned, asks)                                           \
  BB_CASE(2, vectors, row, col, b_step, 1, turned, asks)                                           \
  BB_CASE(1, vectors, row, col, b_step, 1, turned, asks)
#define BB_MANY_CASES(vectors, row, col, b_step, turn, turned, asks)                               \
  BB_CASE(12, vectors, row, col, b_step, turn, turned, asks)                                       \
  BB_CASE(8, vectors, row, col, b_step, turn, turned, asks)                                        \
  BB_FEW_CASES(vectors, row, col, b_step, turn, turned, asks)
#define BB_STRIPS(name, cases, next_of, vectors, row, col, b_step, turn, turned, asks)             \
  BB_ALONE BB_ON_A_LINE void BB_NAME(name)(BB_REAL * to, int64_t pitch, const BB_REAL *a,          \
                                           int64_t a_row, int64_t a_col, const BB_REAL *b,         \
                                           int64_t b_pitch, int64_t m, int64_t k, bool add) {      \
    const BB_REAL *later = b + k * (b_step);                                                       \
    while (m > 0) {                                                                                \
      const int64_t next = BB_NAME(next_of)(m);                                                    \
      switch (next) { cases(vectors, row, col, b_step, turn, turned, asks) }                       \
      to += next * pitch;                                                                          \
      a += next * a_row;                                                                           \
      m -= next;                                                                                   \
    }                                                                                              \
  }
/* What is constant here is addressed better.  Bundles are of BB_ROWS rows, or fewer. */
#define BB_STRIPS_OF(n, cases, next_of)                                                            \
  BB_STRIPS(bb_wide_##n, cases, next_of, n, a_row, a_col, b_pitch, 1, false, 0)                    \
  BB_STRIPS(bb_row_##n, cases, next_of, n, a_row, 1, n *BB_LANES, 4, false, 0)                     \
  BB_STRIPS(bb_col_##n, cases, next_of, n, 1, a_col, n *BB_LANES, 4, true, 0)                      \
  BB_STRIPS(bb_bundled_##n, BB_FEW_CASES, bb_next_rows, n, 1, next, n *BB_LANES, 4, true, 0)       \
  BB_STRIPS(bb_bundles_##n, BB_FEW_CASES, bb_next_rows, n, 1, next, b_pitch, 1, false, 0)          \
  BB_INLINE void BB_NAME(bb_strips_##n)(BB_REAL * to, int64_t pitch, const BB_REAL *a,             \
                                        int64_t a_row, int64_t a_col, const BB_REAL *b,            \
                                        int64_t b_pitch, int64_t m, int64_t k, bool add) {         \
    const bool dense = b_pitch == n * BB_LANES;                                                    \
    if (dense && a_col == BB_BUNDLED)                                                              \
      BB_NAME(bb_bundled_##n)(to, pitch, a, a_row, a_col, b, b_pitch, m, k, add);                  \
    else if (a_col == BB_BUNDLED)                                                                  \
      BB_NAME(bb_bundles_##n)(to, pitch, a, a_row, a_col, b, b_pitch, m, k, add);                  \
    else if (dense && a_col == 1)                                                                  \
      BB_NAME(bb_row_##n)(to, pitch, a, a_row, a_col, b, b_pitch, m, k, add);                      \
    else if (dense && a_row == 1)                                                                  \
      BB_NAME(bb_col_##n)(to, pitch, a, a_row, a_col, b, b_pitch, m, k, add);                      \
    else                                                                                           \
      BB_NAME(bb_wide_##n)(to, pitch, a, a_row, a_col, b, b_pitch, m, k, add);                     \
  }
BB_STRIPS_OF(1, BB_MANY_CASES, bb_next_narrow)
BB_STRIPS_OF(2, BB_FEW_CASES, bb_next_rows)
#if BB_VECTORS == 4
BB_STRIPS_OF(3, BB_FEW_CASES, bb_next_rows)
BB_STRIPS_OF(4, BB_FEW_CASES, bb_next_rows)
#endif
BB_STRIPS(bb_soon, BB_FEW_CASES, bb_next_rows, BB_VECTORS, a_row, 1, BB_VECTORS *BB_LANES, 4, false,
          BB_LINES_SOON)
BB_STRIPS(bb_soon_col, BB_FEW_CASES, bb_next_rows, BB_VECTORS, 1, a_col, BB_VECTORS *BB_LANES, 4,
          true, BB_LINES_SOON)
BB_STRIPS(bb_later, BB_FEW_CASES, bb_next_rows, BB_VECTORS, a_row, 1, BB_VECTORS *BB_LANES, 4,
          false, BB_LINES_LATER)
BB_STRIPS(bb_later_col, BB_FEW_CASES, bb_next_rows, BB_VECTORS, 1, a_col, BB_VECTORS *BB_LANES, 4,
          true, BB_LINES_LATER)
#undef BB_STRIPS_OF
#undef BB_STRIPS
#undef BB_MANY_CASES
#undef BB_FEW_CASES
#undef BB_CASE

/* --- few rows --- */

/* At most so many rows: more are worth packing the other operand for, which takes as long as it does to multiply it
 * with some. */
enum { BB_NAME(BB_FEW) = 4 };
#define BB_LINE 4 /* vectors of it at once */

#if BB_VECTOR_BYTES >= 32
typedef BB_REAL BB_NAME(bb_half) __attribute__((vector_size(32)));
#endif

/* The sum of a vector's lanes, in halves, which are vectors. */
BB_INLINE BB_REAL BB_NAME(bb_lanes)(BB_NAME(bb_vector) x) {
#if BB_VECTOR_BYTES == 64
  BB_NAME(bb_half) half[2];
  memcpy(half, &x, sizeof half);
  half[0] += half[1];
#elif BB_VECTOR_BYTES == 32
  BB_NAME(bb_half) half[1] = {x};
#endif
#if BB_VECTOR_BYTES >= 32
  BB_NAME(bb_quarter) part[2];
  memcpy(part, half, sizeof part);
  part[0] += part[1];
#else
  BB_NAME(bb_quarter) part[1] = {x};
#endif
  if (sizeof(BB_REAL) == 8) return part[0][0] + part[0][1];
  const int last = 16 / sizeof(BB_REAL) - 1;
  return (part[0][0] + part[0][last - 1]) + (part[0][1] + part[0][last]);
}

/* `rows` rows of a against a line of b, both along what is summed: lanes of four vectors sum every so many-th product.
 * One line after the other, as they lie: what memory gives ahead is for one that reads so. */
BB_INLINE void BB_NAME(bb_line)(BB_REAL *to, int64_t pitch, const BB_REAL *a, int64_t a_row,
                                const BB_REAL *b, int64_t k, bool add, const int rows) {
  BB_NAME(bb_vector) sum[2][BB_LINE];
  int64_t rest = k;
  BB_STRAIGHT
  for (int i = 0; i < rows; i++) BB_STRAIGHT
  for (int v = 0; v < BB_LINE; v++) sum[i][v] = (BB_NAME(bb_vector)){0};
  for (; rest >= BB_LINE * BB_LANES; rest -= BB_LINE * BB_LANES) {
    BB_STRAIGHT
    for (int v = 0; v < BB_LINE; v++) {
      const BB_NAME(bb_vector) with = *(const BB_NAME(bb_loose) *)(b + v * BB_LANES);
      BB_STRAIGHT
      for (int i = 0; i < rows; i++) {
        BB_NAME(bb_vector) x = *(const BB_NAME(bb_loose) *)(a + i * a_row + v * BB_LANES);
        BB_FMA(sum[i][v], x, with);
      }
    }
    a += BB_LINE * BB_LANES;
    b += BB_LINE * BB_LANES;
  }
  for (; rest >= BB_LANES; rest -= BB_LANES, a += BB_LANES, b += BB_LANES) {
    const BB_NAME(bb_vector) with = *(const BB_NAME(bb_loose) *)b;
    BB_STRAIGHT
    for (int i = 0; i < rows; i++) {
      BB_NAME(bb_vector) x = *(const BB_NAME(bb_loose) *)(a + i * a_row);
      BB_FMA(sum[i][0], x, with);
    }
  }
  BB_STRAIGHT
  for (int i = 0; i < rows; i++) {
    BB_STRAIGHT
    for (int v = 1; v < BB_LINE; v++) sum[i][0] += sum[i][v];
    BB_REAL all = BB_NAME(bb_lanes)(sum[i][0]);
    for (int64_t q = 0; q < rest; q++) all += a[i * a_row + q] * b[q];
    to[i * pitch] = add ? to[i * pitch] + all : all;
  }
}

BB_ALONE void BB_NAME(bb_dot_lines)(BB_REAL *to, int64_t pitch, const BB_REAL *a, int64_t a_row,
                                    const BB_REAL *b, int64_t b_row, int64_t m, int64_t n,
                                    int64_t k, bool add) {
  for (int64_t j = 0; j < n; j++, b += b_row) {
    int64_t i = 0;
    for (; i + 2 <= m; i += 2)
      BB_NAME(bb_line)(to + i * pitch + j, pitch, a + i * a_row, a_row, b, k, add, 2);
    if (i < m) BB_NAME(bb_line)(to + i * pitch + j, pitch, a + i * a_row, a_row, b, k, add, 1);
  }
}

/* `rows` rows against `panels` whole panels side by side, `apart` columns from each other: a few rows have too few sums in
 * one to hide the latency of the units, and of memory, which gives more where several places are read at once. */
BB_INLINE void BB_NAME(bb_spread)(BB_REAL *to, int64_t pitch, const BB_REAL *a, int64_t a_row,
                                  int64_t a_col, const BB_REAL *b, int64_t apart, int64_t k,
                                  bool add, const int rows, const int panels) {
  BB_NAME(bb_vector) sum[BB_SPREAD_ROWS][BB_SPREAD][BB_VECTORS];
  const int64_t width = BB_NAME(BB_PANEL), next = apart * k;
  BB_STRAIGHT
  for (int i = 0; i < rows; i++) BB_STRAIGHT
  for (int p = 0; p < panels; p++) BB_STRAIGHT
  for (int v = 0; v < BB_VECTORS; v++) sum[i][p][v] = (BB_NAME(bb_vector)){0};
  for (; k > 0; k--, a += a_col, b += width) {
    BB_NAME(bb_vector) x[BB_SPREAD_ROWS];
    BB_STRAIGHT
    for (int i = 0; i < rows; i++) x[i] = a[i * a_row] - (BB_NAME(bb_vector)){0};
    BB_STRAIGHT
    for (int p = 0; p < panels; p++) BB_STRAIGHT
    for (int v = 0; v < BB_VECTORS; v++) {
      const BB_NAME(bb_vector) with = *(const BB_NAME(bb_loose) *)(b + p * next + v * BB_LANES);
      BB_STRAIGHT
      for (int i = 0; i < rows; i++) BB_FMA(sum[i][p][v], x[i], with);
    }
  }
  BB_STRAIGHT
  for (int i = 0; i < rows; i++) BB_STRAIGHT
  for (int p = 0; p < panels; p++) BB_STRAIGHT
  for (int v = 0; v < BB_VECTORS; v++) {
    BB_NAME(bb_loose) *at = (BB_NAME(bb_loose) *)(to + i * pitch + p * apart + v * BB_LANES);
    if (add) sum[i][p][v] += *at;
    *at = sum[i][p][v];
  }
}

#define BB_SPREAD_OF(rows, panels)                                                                 \
  BB_ALONE void BB_NAME(bb_spread_##rows##_##panels)(                                              \
      BB_REAL * to, int64_t pitch, const BB_REAL *a, int64_t a_row, int64_t a_col,                 \
      const BB_REAL *b, int64_t apart, int64_t k, bool add) {                                      \
    BB_NAME(bb_spread)(to, pitch, a, a_row, a_col, b, apart, k, add, rows, panels);                \
  }
BB_SPREAD_OF(1, 4)
BB_SPREAD_OF(1, 3)
BB_SPREAD_OF(1, 2)
BB_SPREAD_OF(2, 3)
BB_SPREAD_OF(2, 2)
BB_SPREAD_OF(3, 2)
#undef BB_SPREAD_OF

/* Of as many columns as there are whole panels side by side for; how many these are. */
BB_FUNCTION int64_t BB_NAME(bb_dot_spread)(BB_REAL *to, int64_t pitch, const BB_REAL *a,
                                           int64_t a_row, int64_t a_col, const BB_REAL *b,
                                           int64_t m, int64_t n, int64_t k, bool add) {
  typedef void spread(BB_REAL *, int64_t, const BB_REAL *, int64_t, int64_t, const BB_REAL *,
                      int64_t, int64_t, bool);
  static spread *const by[BB_SPREAD_ROWS][BB_SPREAD + 1] = {
      {0, 0, BB_NAME(bb_spread_1_2), BB_NAME(bb_spread_1_3), BB_NAME(bb_spread_1_4)},
      {0, 0, BB_NAME(bb_spread_2_2), BB_NAME(bb_spread_2_3)},
      {0, 0, BB_NAME(bb_spread_3_2)}};
  const int64_t width = BB_NAME(BB_PANEL), panels = n / width;
  int64_t done = 0;
  while (panels - done > 1) {
    int64_t beside = bb_min(panels - done, BB_SPREAD + 1 - m), each = (panels - done) / beside;
    for (int64_t j = done; j < done + each; j++)
      by[m - 1][beside](to + j * width, pitch, a, a_row, a_col, b + j * width * k, each * width, k,
                        add);
    done += each * beside;
  }
  return done * width;
}

#ifndef __clang__
#pragma GCC pop_options
#endif

BB_FUNCTION void BB_NAME(bb_strips)(int64_t width, BB_REAL *to, int64_t pitch, const BB_REAL *a,
                                    int64_t a_row, int64_t a_col, const BB_REAL *b, int64_t b_pitch,
                                    int64_t m, int64_t k, bool add) {
  if (width == BB_LANES)
    BB_NAME(bb_strips_1)(to, pitch, a, a_row, a_col, b, b_pitch, m, k, add);
  else if (width == 2 * BB_LANES)
    BB_NAME(bb_strips_2)(to, pitch, a, a_row, a_col, b, b_pitch, m, k, add);
#if BB_VECTORS == 4
  else if (width == 3 * BB_LANES)
    BB_NAME(bb_strips_3)(to, pitch, a, a_row, a_col, b, b_pitch, m, k, add);
  else
    BB_NAME(bb_strips_4)(to, pitch, a, a_row, a_col, b, b_pitch, m, k, add);
#endif
}

/* panel[p][j] = b[j][p] for the `n` columns there are, zero for the rest. */
BB_FUNCTION void BB_NAME(bb_pack)(BB_REAL *panel, const BB_REAL *b, int64_t b_row, int64_t b_col,
                                  int64_t n, int64_t k) {
  const int64_t width = BB_NAME(bb_width)(n);
  if (n < width)
    for (int64_t i = 0; i < k * width; i++) panel[i] = 0;
  BB_NAME(bb_across)(panel, width, 1, b, b_col, b_row, k, n);
}

/* As many rows as a strip may have, and a few more, are moved each time, with what lies behind them: the next
 * columns overwrite that. */
void BB_NAME(bb_bundle)(BB_REAL *to, const BB_REAL *from, int64_t pitch, int64_t m, int64_t k) {
  enum { SPAN = 8 };
  for (int64_t p = 0; p < k; p++, from += pitch)
    for (int64_t i = 0, rows; i < m; i += rows) {
      BB_REAL *at = to + i * k + p * (rows = BB_NAME(bb_next_rows)(m - i));
      if (p + SPAN < k && pitch > 0)
        memcpy(at, from + i, SPAN * sizeof *at);
      else
        for (int64_t r = 0; r < rows; r++) at[r] = from[i + r];
    }
}

/* As many whole panels, one behind the other, from columns that lie side by side: line by line, since
 * lines lie far from each other, and those that come soon are asked for. */
BB_ALONE void BB_NAME(bb_pack_lines)(BB_REAL *panel, const BB_REAL *b, int64_t b_col,
                                     int64_t panels, int64_t k) {
  const int64_t width = BB_NAME(BB_PANEL);
  for (int64_t p = 0; p < k; p++)
    for (int64_t j = 0; j < panels; j++) {
      const BB_REAL *at = b + p * b_col + j * width;
      const BB_NAME(bb_loose) *from = (const BB_NAME(bb_loose) *)at;
      BB_NAME(bb_vector) *to = (BB_NAME(bb_vector) *)(panel + (j * k + p) * width);
      __builtin_prefetch(at + BB_AHEAD * b_col);
      BB_STRAIGHT
      for (int v = 0; v < BB_VECTORS; v++) to[v] = from[v];
    }
}

/* Columns that the result has no room for all of a panel of; `edge` has room for BB_ROWS rows of one. */
BB_FUNCTION void BB_NAME(bb_dot_edge)(BB_REAL *to, int64_t pitch, const BB_REAL *a, int64_t a_row,
                                      int64_t a_col, const BB_REAL *b, int64_t b_pitch, int64_t m,
                                      int64_t n, int64_t k, bool add, BB_REAL *edge) {
  const int64_t width = BB_NAME(bb_width)(n);
  for (int64_t i = 0, rows; i < m; i += rows) {
    rows = BB_NAME(bb_next_rows)(m - i);
    for (int64_t r = 0; r < rows; r++)
      for (int64_t c = 0; c < width; c++)
        edge[r * width + c] = add && c < n ? to[(i + r) * pitch + c] : 0;
    BB_NAME(bb_strips)
    (width, edge, width, a + i * a_row, a_row, a_col, b, b_pitch, rows, k, add);
    for (int64_t r = 0; r < rows; r++)
      for (int64_t c = 0; c < n; c++) to[(i + r) * pitch + c] = edge[r * width + c];
  }
}

/* One panel of `n` columns.  A row of the result has room for `room` elements: what lies there beyond the columns
 * is nobody's. */
BB_INLINE void BB_NAME(bb_dot_panel)(BB_REAL *to, int64_t pitch, const BB_REAL *a, int64_t a_row,
                                     int64_t a_col, const BB_REAL *b, int64_t b_pitch, int64_t m,
                                     int64_t n, int64_t room, int64_t k, bool add, BB_REAL *edge) {
  const int64_t width = BB_NAME(bb_width)(n);
  if (room >= width)
    BB_NAME(bb_strips)(width, to, pitch, a, a_row, a_col, b, b_pitch, m, k, add);
  else
    BB_NAME(bb_dot_edge)(to, pitch, a, a_row, a_col, b, b_pitch, m, n, k, add, edge);
}

void BB_NAME(bb_dot_panels)(BB_REAL *to, int64_t pitch, const BB_REAL *a, int64_t a_row,
                            int64_t a_col, const BB_REAL *b, int64_t m, int64_t n, int64_t k,
                            bool add, BB_REAL *edge) {
  int64_t j = 0;
  if (m > 0 && m <= BB_SPREAD_ROWS && a_col != BB_BUNDLED)
    j = BB_NAME(bb_dot_spread)(to, pitch, a, a_row, a_col, b, m, n, k, add);
  for (; j < n; j += BB_NAME(BB_PANEL)) {
    const int64_t wide = bb_min(n - j, BB_NAME(BB_PANEL)), width = BB_NAME(bb_width)(wide);
    if (wide == BB_NAME(BB_PANEL) && (a_col == 1 || (a_row == 1 && a_col != BB_BUNDLED))) {
      BB_NAME(bb_strips_of) *const strips =
          m <= BB_SOON ? a_col == 1 ? BB_NAME(bb_soon) : BB_NAME(bb_soon_col)
          : a_col == 1 ? BB_NAME(bb_later)
                       : BB_NAME(bb_later_col);
      strips(to + j, pitch, a, a_row, a_col, b + j * k, width, m, k, add);
      continue;
    }
    BB_NAME(bb_dot_panel)
    (to + j, pitch, a, a_row, a_col, b + j * k, width, m, wide, bb_max(n, pitch) - j, k, add, edge);
  }
}

void BB_NAME(bb_pack_block)(BB_REAL *panel, const BB_REAL *b, int64_t b_row, int64_t b_col,
                            int64_t n, int64_t k) {
  for (int64_t j = 0; j < n; j += BB_NAME(BB_PANEL)) BB_NAME(bb_pack)
  (panel + j * k, b + j * b_row, b_row, b_col, bb_min(n - j, BB_NAME(BB_PANEL)), k);
}

void BB_NAME(bb_dot)(BB_REAL *to, int64_t pitch, const BB_REAL *a, int64_t a_row, int64_t a_col,
                     const BB_REAL *b, int64_t b_row, int64_t b_col, int64_t m, int64_t n,
                     int64_t k, bool add, BB_REAL *panel) {
  const int64_t most = BB_NAME(BB_PANEL);
  bool beside = b_row == 1, few = m <= BB_ROWS;
  if (b_col == 1 && a_col == 1 && m <= BB_NAME(BB_FEW) && k >= BB_LANES) {
    BB_NAME(bb_dot_lines)(to, pitch, a, a_row, b, b_row, m, n, k, add);
    return;
  }
  for (int64_t j = 0; j < n; j += most) {
    const int64_t wide = bb_min(n - j, most), width = BB_NAME(bb_width)(wide);
    const BB_REAL *with = b + j * b_row;
    int64_t with_pitch = b_col;
    if (!beside || wide < width || !(few || b_col == width)) {
      int64_t at = j / most % BB_PANELS;
      with_pitch = width;
      if (beside && wide == most && at == 0)
        BB_NAME(bb_pack_lines)(panel, with, b_col, bb_min((n - j) / most, BB_PANELS), k);
      else if (!beside || wide < most)
        BB_NAME(bb_pack)(panel + at * k * most, with, b_row, b_col, wide, k);
      with = panel + at * k * most;
    }
    BB_NAME(bb_dot_panel)
    (to + j, pitch, a, a_row, a_col, with, with_pitch, m, wide, bb_max(n, pitch) - j, k, add,
     panel + BB_PANELS * k * most);
  }
}

/* Two strips of rows at a time, which a panel stays in the first cache for; the last ones with what is left. */
void BB_NAME(bb_dot_rising)(BB_REAL *to, int64_t pitch, const BB_REAL *a, int64_t a_row,
                            int64_t a_col, const BB_REAL *b, int64_t b_row, int64_t b_col,
                            int64_t m, int64_t n, int64_t k, bool add, BB_REAL *panel,
                            int64_t reach) {
  enum { TURN = 4, PIECE = 2 * BB_ROWS };
  const int64_t most = BB_NAME(BB_PANEL);
  const bool packed = b_row == 1 && b_col == most && n == most;
  if (m < 2 * PIECE || n > BB_PANELS * most) {
    BB_NAME(bb_dot)(to, pitch, a, a_row, a_col, b, b_row, b_col, m, n, k, add, panel);
    return;
  }
  if (!packed) BB_NAME(bb_pack_block)(panel, b, b_row, b_col, n, k);
  for (int64_t j = 0; j < n; j += most)
    for (int64_t i = 0, rows; i < m; i += rows) {
      rows = m - i < 2 * PIECE ? m - i : PIECE;
      const int64_t wide = bb_min(n - j, most), past = bb_max(0, reach + i + rows - 1);
      BB_NAME(bb_dot_panel)
      (to + i * pitch + j, pitch, a + i * a_row, a_row, a_col, (packed ? b : panel) + j * k,
       BB_NAME(bb_width)(wide), rows, wide, bb_max(n, pitch) - j,
       bb_min(k, (past + TURN - 1) / TURN * TURN), add, panel + BB_PANELS * k * most);
    }
}

#undef BB_ROWS
#undef BB_MOST_ROWS
#undef BB_SPREAD_ROWS
#undef BB_SPREAD
#undef BB_SOON
#undef BB_SHARED
#undef BB_PANELS
#undef BB_VECTORS
#undef BB_AHEAD
#undef BB_LINES_SOON
#undef BB_LINES_LATER
#undef BB_FMA
#undef BB_FMA_ONCE
