/* cpu_integer_product.h - products of integers, which wrap: BB_SIGNED, and BB_WHOLE without a sign, of which nothing is
 * undefined, say of what type; BB_SUFFIX what they are called by.  Part of cpu.h.
 *
 * As with floats (cpu_product.h), rows are held against a panel of b, their sums in registers.  A piece of a panel at a time is
 * copied side by side, zero where b ends, and stays in the first cache.  Rows that are few are not worth that where b lies side
 * by side along columns, or along k as they do.
 */

typedef BB_WHOLE BB_NAME(bb_vector) __attribute__((vector_size(BB_VECTOR_BYTES)));
typedef BB_WHOLE BB_NAME(bb_loose)
    __attribute__((vector_size(BB_VECTOR_BYTES), aligned(sizeof(BB_WHOLE)), may_alias));

#define BB_LANES ((int64_t)(BB_VECTOR_BYTES / sizeof(BB_WHOLE)))
#if BB_VECTOR_BYTES == 64
#define BB_WHOLE_VECTORS 4
#else
#define BB_WHOLE_VECTORS 2
#endif
#define BB_WHOLE_ROWS 4
#define BB_WHOLE_FEW 3    /* rows that are not worth a copy */
#define BB_WHOLE_PIECE 64 /* of k */

/* `rows` rows of the result, constants as `vectors`, against a panel. */
BB_INLINE void BB_NAME(bb_strip)(BB_WHOLE *to, int64_t pitch, const BB_WHOLE *a, int64_t a_row,
                                 int64_t a_col, const BB_WHOLE *panel, int64_t k, bool add,
                                 const int rows, const int vectors) {
  BB_NAME(bb_vector) sum[BB_WHOLE_ROWS][BB_WHOLE_VECTORS];
  BB_STRAIGHT
  for (int i = 0; i < rows; i++) BB_STRAIGHT
  for (int v = 0; v < vectors; v++) sum[i][v] = (BB_NAME(bb_vector)){0};
  for (int64_t p = 0; p < k; p++, a += a_col, panel += vectors * BB_LANES) {
    BB_STRAIGHT
    for (int i = 0; i < rows; i++) {
      const BB_NAME(bb_vector) x = a[i * a_row] - (BB_NAME(bb_vector)){0};
      BB_STRAIGHT
      for (int v = 0; v < vectors; v++)
        sum[i][v] += x * *(const BB_NAME(bb_loose) *)(panel + v * BB_LANES);
    }
  }
  BB_STRAIGHT
  for (int i = 0; i < rows; i++) BB_STRAIGHT
  for (int v = 0; v < vectors; v++) {
    BB_NAME(bb_loose) *at = (BB_NAME(bb_loose) *)(to + i * pitch + v * BB_LANES);
    if (add) sum[i][v] += *at;
    *at = sum[i][v];
  }
}

#define BB_WHOLE_STRIPS(vectors)                                                                   \
  BB_ALONE void BB_NAME(bb_strips_##vectors)(BB_WHOLE * to, int64_t pitch, const BB_WHOLE *a,      \
                                             int64_t a_row, int64_t a_col, const BB_WHOLE *panel,  \
                                             int64_t m, int64_t k, bool add) {                     \
    for (; m >= 4; m -= 4, to += 4 * pitch, a += 4 * a_row)                                        \
      BB_NAME(bb_strip)(to, pitch, a, a_row, a_col, panel, k, add, 4, vectors);                    \
    if (m >= 2) {                                                                                  \
      BB_NAME(bb_strip)(to, pitch, a, a_row, a_col, panel, k, add, 2, vectors);                    \
      m -= 2, to += 2 * pitch, a += 2 * a_row;                                                     \
    }                                                                                              \
    if (m) BB_NAME(bb_strip)(to, pitch, a, a_row, a_col, panel, k, add, 1, vectors);               \
  }
BB_WHOLE_STRIPS(1)
#if BB_VECTOR_BYTES == 64
BB_WHOLE_STRIPS(4)
#define BB_WHOLE_WIDE BB_NAME(bb_strips_4)
#else
BB_WHOLE_STRIPS(2)
#define BB_WHOLE_WIDE BB_NAME(bb_strips_2)
#endif
#undef BB_WHOLE_STRIPS

/* Columns of b that are fewer than a panel's go by a block of results that has room for it. */
BB_ALONE void BB_NAME(bb_against)(BB_WHOLE *to, int64_t pitch, const BB_WHOLE *a, int64_t a_row,
                                  int64_t a_col, const BB_WHOLE *panel, int64_t width, int64_t n,
                                  int64_t m, int64_t k, bool add) {
  BB_WHOLE edge[BB_WHOLE_ROWS * BB_WHOLE_VECTORS * BB_LANES];
  const bool wide = width > BB_LANES;
  if (n == width) {
    (wide ? BB_WHOLE_WIDE : BB_NAME(bb_strips_1))(to, pitch, a, a_row, a_col, panel, m, k, add);
    return;
  }
  for (int64_t i = 0; i < m; i += BB_WHOLE_ROWS) {
    const int64_t rows = bb_min(BB_WHOLE_ROWS, m - i);
    (wide ? BB_WHOLE_WIDE : BB_NAME(bb_strips_1))(edge, width, a + i * a_row, a_row, a_col, panel,
                                                  rows, k, false);
    for (int64_t r = 0; r < rows; r++)
      for (int64_t j = 0; j < n; j++) {
        BB_WHOLE *at = &to[(i + r) * pitch + j];
        *at = edge[r * width + j] + (add ? *at : 0);
      }
  }
}

BB_ALONE void BB_NAME(bb_by_panels)(BB_WHOLE *to, int64_t pitch, const BB_WHOLE *a, int64_t a_row,
                                    int64_t a_col, const BB_WHOLE *b, int64_t b_row, int64_t b_col,
                                    int64_t m, int64_t n, int64_t k, bool add) {
  BB_WHOLE panel[BB_WHOLE_PIECE * BB_WHOLE_VECTORS * BB_LANES];
  for (int64_t j = 0, width; j < n; j += width) {
    width = n - j > BB_LANES ? BB_WHOLE_VECTORS * BB_LANES : BB_LANES;
    const int64_t there = bb_min(width, n - j);
    int64_t p = 0;
    do { /* once where nothing is summed, too: the result is 0 then */
      const int64_t depth = bb_min(BB_WHOLE_PIECE, k - p);
      for (int64_t q = 0; q < depth; q++) {
        const BB_WHOLE *from = b + j * b_row + (p + q) * b_col;
        BB_VECTOR
        for (int64_t c = 0; c < there; c++) panel[q * width + c] = from[c * b_row];
        for (int64_t c = there; c < width; c++) panel[q * width + c] = 0;
      }
      BB_NAME(bb_against)
      (to + j, pitch, a + p * a_col, a_row, a_col, panel, width, there, m, depth, add || p > 0);
      p += BB_WHOLE_PIECE;
    } while (p < k);
  }
}

/* A row of the result, from columns of b that lie side by side. */
BB_ALONE void BB_NAME(bb_by_columns)(BB_WHOLE *to, const BB_WHOLE *a, int64_t a_col,
                                     const BB_WHOLE *b, int64_t b_col, int64_t n, int64_t k) {
  for (int64_t p = 0; p < k; p++) {
    const BB_WHOLE x = a[p * a_col], *from = b + p * b_col;
    BB_VECTOR
    for (int64_t j = 0; j < n; j++) to[j] += x * from[j];
  }
}

/* The same where a and b lie side by side along k. */
BB_ALONE void BB_NAME(bb_by_lines)(BB_WHOLE *to, const BB_WHOLE *a, const BB_WHOLE *b,
                                   int64_t b_row, int64_t n, int64_t k) {
  for (int64_t j = 0; j < n; j++, b += b_row) {
    BB_WHOLE sum = 0;
    BB_VECTOR
    for (int64_t p = 0; p < k; p++) sum += a[p] * b[p];
    to[j] += sum;
  }
}

BB_FUNCTION void BB_NAME(bb_dot)(BB_SIGNED *result, int64_t pitch, const BB_SIGNED *left,
                                 int64_t a_row, int64_t a_col, const BB_SIGNED *right,
                                 int64_t b_row, int64_t b_col, int64_t m, int64_t n, int64_t k,
                                 bool add) {
  BB_WHOLE *to = (BB_WHOLE *)result;
  const BB_WHOLE *a = (const BB_WHOLE *)left, *b = (const BB_WHOLE *)right;
  const bool lines = a_col == 1 && b_col == 1;
  if (m > BB_WHOLE_FEW || (b_row != 1 && !lines)) {
    BB_NAME(bb_by_panels)(to, pitch, a, a_row, a_col, b, b_row, b_col, m, n, k, add);
    return;
  }
  for (int64_t i = 0; i < m; i++, to += pitch, a += a_row) {
    if (!add) memset(to, 0, (size_t)n * sizeof *to);
    if (b_row == 1)
      BB_NAME(bb_by_columns)(to, a, a_col, b, b_col, n, k);
    else
      BB_NAME(bb_by_lines)(to, a, b, b_row, n, k);
  }
}

#undef BB_LANES
#undef BB_WHOLE_VECTORS
#undef BB_WHOLE_ROWS
#undef BB_WHOLE_FEW
#undef BB_WHOLE_PIECE
#undef BB_WHOLE_WIDE
