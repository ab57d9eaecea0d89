/* cpu_real.h - the part of the device tile library that is written once for float and double:
 * BB_REAL and BB_SUFFIX say which.  Products, folds along rows, and scalar helpers.
 */

typedef BB_REAL BB_NAME(bb_vector) __attribute__((vector_size(BB_VECTOR_BYTES)));
typedef BB_REAL BB_NAME(bb_loose)
    __attribute__((vector_size(BB_VECTOR_BYTES), aligned(sizeof(BB_REAL)), may_alias));

#define BB_LANES ((int64_t)(BB_VECTOR_BYTES / sizeof(BB_REAL)))

/* NaN wins. */
BB_INLINE BB_REAL BB_NAME(bb_max)(BB_REAL a, BB_REAL b) {
  return (a > b) | (a != a) ? a : b;
}
BB_INLINE BB_REAL BB_NAME(bb_min)(BB_REAL a, BB_REAL b) {
  return (a < b) | (a != a) ? a : b;
}
BB_INLINE BB_REAL BB_NAME(bb_sign)(BB_REAL a) {
  return a != a ? a : (BB_REAL)((a > 0) - (a < 0));
}
BB_INLINE BB_REAL BB_NAME(bb_power)(BB_REAL a, BB_REAL b) {
  return (BB_REAL)(sizeof(BB_REAL) == sizeof(float) ? powf((float)a, (float)b) : pow(a, b));
}
/* Sign of the dividend, and of the divisor. */
BB_INLINE BB_REAL BB_NAME(bb_fmod)(BB_REAL a, BB_REAL b) {
  return (BB_REAL)fmod(a, b);
}
BB_INLINE BB_REAL BB_NAME(bb_mod)(BB_REAL a, BB_REAL b) {
  BB_REAL rest = (BB_REAL)fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

/* --- folds along the columns ---
 * Lanes take every so many-th column; they are folded in halves at the end.  The order depends on the
 * width of vectors alone. */

#define BB_FOLD_ROWS(name, first, next)                                                            \
  BB_FUNCTION void BB_NAME(bb_fold_##name)(BB_REAL * to, const BB_REAL *from, int64_t stride,      \
                                           int64_t rows, int64_t cols) {                           \
    for (int64_t i = 0; i < rows; i++) {                                                           \
      const BB_REAL *row = from + i * stride;                                                      \
      BB_REAL lane[2 * BB_LANES];                                                                  \
      for (int64_t l = 0; l < 2 * BB_LANES; l++) lane[l] = first;                                  \
      int64_t j = 0;                                                                               \
      for (; j + 2 * BB_LANES <= cols; j += 2 * BB_LANES)                                          \
        for (int64_t l = 0; l < 2 * BB_LANES; l++) {                                               \
          BB_REAL held = lane[l], x = row[j + l];                                                  \
          lane[l] = next;                                                                          \
        }                                                                                          \
      for (int64_t l = 0; j < cols; j++, l++) {                                                    \
        BB_REAL held = lane[l], x = row[j];                                                        \
        lane[l] = next;                                                                            \
      }                                                                                            \
      for (int64_t half = BB_LANES; half > 0; half /= 2)                                           \
        for (int64_t l = 0; l < half; l++) {                                                       \
          BB_REAL held = lane[l], x = lane[l + half];                                              \
          lane[l] = next;                                                                          \
        }                                                                                          \
      to[i] = lane[0];                                                                             \
    }                                                                                              \
  }
BB_FOLD_ROWS(sum, 0, held + x)
BB_FOLD_ROWS(prod, 1, held *x)
BB_FOLD_ROWS(max, -INFINITY, (held > x) | (held != held) ? held : x)
BB_FOLD_ROWS(min, INFINITY, (held < x) | (held != held) ? held : x)
#undef BB_FOLD_ROWS

BB_FUNCTION void BB_NAME(bb_prefix_sum)(BB_REAL *to, const BB_REAL *from, int64_t stride,
                                        int64_t rows, int64_t cols) {
  for (int64_t i = 0; i < rows; i++) {
    BB_REAL sum = 0;
    for (int64_t j = 0; j < cols; j++) to[i * cols + j] = sum += from[i * stride + j];
  }
}

/* --- products ---
 * to[m][n] (+)= a b', in panels of two vectors of columns: a panel of b is copied so that its rows lie
 * side by side, then up to six rows of a at a time are held against it, their sums in registers.
 * Every sum runs over k in order. */

enum { BB_NAME(BB_PANEL) = 2 * BB_VECTOR_BYTES / sizeof(BB_REAL) };

#define BB_ROWS 6

/* `rows` rows of the result against one panel; constant, so that the sums stay in registers. */
BB_INLINE void BB_NAME(bb_strip)(BB_REAL *to, int64_t to_stride, const BB_REAL *a, int64_t a_row,
                                 int64_t a_col, const BB_REAL *panel, int64_t k, bool add,
                                 const int rows) {
  BB_NAME(bb_vector) sum[BB_ROWS][2];
  const BB_NAME(bb_loose) * at;
  for (int i = 0; i < rows; i++)
    for (int v = 0; v < 2; v++) {
      at = (const BB_NAME(bb_loose) *)(to + i * to_stride + v * BB_LANES);
      sum[i][v] = (BB_NAME(bb_vector)){0};
      if (add) sum[i][v] = *at;
    }
  for (int64_t p = 0; p < k; p++) {
    const BB_NAME(bb_vector) *b = (const BB_NAME(bb_vector) *)(panel + p * 2 * BB_LANES);
    BB_NAME(bb_vector) low = b[0], high = b[1];
    for (int i = 0; i < rows; i++) {
      BB_REAL x = a[i * a_row + p * a_col];
      sum[i][0] += x * low;
      sum[i][1] += x * high;
    }
  }
  for (int i = 0; i < rows; i++)
    for (int v = 0; v < 2; v++)
      *(BB_NAME(bb_loose) *)(to + i * to_stride + v * BB_LANES) = sum[i][v];
}

BB_FUNCTION void BB_NAME(bb_strips)(BB_REAL *to, int64_t to_stride, const BB_REAL *a, int64_t a_row,
                                    int64_t a_col, const BB_REAL *panel, int64_t m, int64_t k,
                                    bool add) {
  int64_t i = 0;
  for (; i + BB_ROWS <= m; i += BB_ROWS) BB_NAME(bb_strip)
  (to + i * to_stride, to_stride, a + i * a_row, a_row, a_col, panel, k, add, BB_ROWS);
  to += i * to_stride;
  a += i * a_row;
  switch (m - i) {
  case 5: BB_NAME(bb_strip)(to, to_stride, a, a_row, a_col, panel, k, add, 5); break;
  case 4: BB_NAME(bb_strip)(to, to_stride, a, a_row, a_col, panel, k, add, 4); break;
  case 3: BB_NAME(bb_strip)(to, to_stride, a, a_row, a_col, panel, k, add, 3); break;
  case 2: BB_NAME(bb_strip)(to, to_stride, a, a_row, a_col, panel, k, add, 2); break;
  case 1: BB_NAME(bb_strip)(to, to_stride, a, a_row, a_col, panel, k, add, 1); break;
  default: break;
  }
}

/* panel[p][j] = b[j][p] for the `n` columns there are, zero for the rest. */
BB_FUNCTION void BB_NAME(bb_pack)(BB_REAL *panel, const BB_REAL *b, int64_t b_row, int64_t b_col,
                                  int64_t n, int64_t k) {
  const int64_t width = 2 * BB_LANES;
  if (n < width)
    for (int64_t i = 0; i < k * width; i++) panel[i] = 0;
  if (b_row == 1) {
    for (int64_t p = 0; p < k; p++)
      for (int64_t j = 0; j < n; j++) panel[p * width + j] = b[p * b_col + j];
    return;
  }
  int64_t p = 0;
  for (; p + 8 <= k; p += 8)
    for (int64_t j = 0; j < n; j++)
      for (int64_t q = p; q < p + 8; q++) panel[q * width + j] = b[j * b_row + q * b_col];
  for (; p < k; p++)
    for (int64_t j = 0; j < n; j++) panel[p * width + j] = b[j * b_row + p * b_col];
}

/* `panel` has room for k times BB_PANEL elements, and as many more as six rows of BB_PANEL. */
BB_FUNCTION void BB_NAME(bb_dot)(BB_REAL *to, const BB_REAL *a, int64_t a_row, int64_t a_col,
                                 const BB_REAL *b, int64_t b_row, int64_t b_col, int64_t m,
                                 int64_t n, int64_t k, bool add, BB_REAL *panel) {
  const int64_t width = 2 * BB_LANES;
  for (int64_t j = 0; j < n; j += width) {
    int64_t wide = n - j < width ? n - j : width;
    BB_NAME(bb_pack)(panel, b + j * b_row, b_row, b_col, wide, k);
    if (wide == width) {
      BB_NAME(bb_strips)(to + j, n, a, a_row, a_col, panel, m, k, add);
      continue;
    }
    BB_REAL *edge = panel + k * width;
    for (int64_t i = 0; i < m; i += BB_ROWS) {
      int64_t rows = m - i < BB_ROWS ? m - i : BB_ROWS;
      for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < width; c++)
          edge[r * width + c] = add && c < wide ? to[(i + r) * n + j + c] : 0;
      BB_NAME(bb_strips)(edge, width, a + i * a_row, a_row, a_col, panel, rows, k, add);
      for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < wide; c++) to[(i + r) * n + j + c] = edge[r * width + c];
    }
  }
}

#undef BB_LANES
#undef BB_ROWS
