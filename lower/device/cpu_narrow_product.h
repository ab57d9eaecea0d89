/* cpu_narrow_product.h - products in f32 whose operand b lies in memory in floats of 16 bits: BB_KIND says which.
 * Part of cpu.h, behind the products in f32.
 *
 * A piece of b at a time is widened into a panel that the first cache holds; few rows are held against lines of b, which
 * are widened on the way.  Sums are those of products in f32, added up from piece to piece.
 */

#ifndef BB_PIECE
#define BB_PIECE 64 /* of k, widened at once */
#endif

/* `rows` rows of a against a line of b, as bb_line_f32(). */
BB_INLINE void BB_NARROW(bb_line)(float *to, int64_t pitch, const float *a, int64_t a_row,
                                  const uint16_t *b, int64_t k, bool add, const int rows) {
  bb_wide sum[2][BB_LINE];
  int64_t rest = k;
  BB_STRAIGHT
  for (int i = 0; i < rows; i++) BB_STRAIGHT
  for (int v = 0; v < BB_LINE; v++) sum[i][v] = (bb_wide){0};
  for (; rest >= BB_LINE * BB_WIDE_LANES; rest -= BB_LINE * BB_WIDE_LANES) {
    BB_STRAIGHT
    for (int v = 0; v < BB_LINE; v++) {
      const bb_wide with = BB_NARROW(bb_vector_from)(b + v * BB_WIDE_LANES);
      BB_STRAIGHT
      for (int i = 0; i < rows; i++)
        sum[i][v] += *(const bb_wide_loose *)(a + i * a_row + v * BB_WIDE_LANES) * with;
    }
    a += BB_LINE * BB_WIDE_LANES;
    b += BB_LINE * BB_WIDE_LANES;
  }
  for (; rest >= BB_WIDE_LANES; rest -= BB_WIDE_LANES, a += BB_WIDE_LANES, b += BB_WIDE_LANES) {
    const bb_wide with = BB_NARROW(bb_vector_from)(b);
    BB_STRAIGHT
    for (int i = 0; i < rows; i++) sum[i][0] += *(const bb_wide_loose *)(a + i * a_row) * with;
  }
  BB_STRAIGHT
  for (int i = 0; i < rows; i++) {
    BB_STRAIGHT
    for (int v = 1; v < BB_LINE; v++) sum[i][0] += sum[i][v];
    float all = bb_lanes_f32(sum[i][0]);
    for (int64_t q = 0; q < rest; q++) all += a[i * a_row + q] * BB_NARROW(bb_from)(b[q]);
    to[i * pitch] = add ? to[i * pitch] + all : all;
  }
}

BB_ALONE void BB_NARROW(bb_dot_lines)(float *to, int64_t pitch, const float *a, int64_t a_row,
                                      const uint16_t *b, int64_t b_row, int64_t m, int64_t n,
                                      int64_t k, bool add) {
  for (int64_t j = 0; j < n; j++, b += b_row) {
    int64_t i = 0;
    for (; i + 2 <= m; i += 2)
      BB_NARROW(bb_line)(to + i * pitch + j, pitch, a + i * a_row, a_row, b, k, add, 2);
    if (i < m) BB_NARROW(bb_line)(to + i * pitch + j, pitch, a + i * a_row, a_row, b, k, add, 1);
  }
}

/* panel[p][j] = b[j][p] for the `n` columns there are, zero for the rest of `width`.  turn: BB_PIECE elements of each. */
BB_ALONE void BB_NARROW(bb_widen_panel)(float *panel, int64_t width, const uint16_t *b,
                                        int64_t b_row, int64_t b_col, int64_t n, int64_t k,
                                        float *turn) {
  if (n < width)
    for (int64_t i = 0; i < k * width; i++) panel[i] = 0;
  if (b_row == 1) {
    for (int64_t p = 0; p < k; p++, b += b_col) {
      BB_NARROW(bb_widen)(panel + p * width, b, n);
    }
    return;
  }
  for (int64_t j = 0; j < n; j++, b += b_row) {
    float *line = turn + j * BB_PIECE;
    if (b_col == 1)
      BB_NARROW(bb_widen)(line, b, k);
    else
      for (int64_t p = 0; p < k; p++) line[p] = BB_NARROW(bb_from)(b[p * b_col]);
  }
  bb_across_f32(panel, width, 1, turn, 1, BB_PIECE, k, n);
}

/* `depth` of k, from the first, against `wide` columns. */
BB_INLINE void BB_NARROW(bb_dot_piece)(float *to, int64_t pitch, const float *a, int64_t a_row,
                                       int64_t a_col, const uint16_t *b, int64_t b_row,
                                       int64_t b_col, int64_t m, int64_t wide, int64_t room,
                                       int64_t depth, bool add, float *panel, float *turn,
                                       float *edge) {
  const int64_t width = bb_width_f32(wide);
  BB_NARROW(bb_widen_panel)(panel, width, b, b_row, b_col, wide, depth, turn);
  bb_dot_panel_f32(to, pitch, a, a_row, a_col, panel, width, m, wide, room, depth, add, edge);
}

/* As bb_dot_f32().  Few rows take whole lines of b where they lie side by side: pieces are the outer loop then. */
void BB_NARROW(bb_dot)(float *to, int64_t pitch, const float *a, int64_t a_row, int64_t a_col,
                       const uint16_t *b, int64_t b_row, int64_t b_col, int64_t m, int64_t n,
                       int64_t k, bool add, float *panel) {
  const int64_t most = BB_PANEL_f32;
  if (b_col == 1 && a_col == 1 && m <= BB_FEW_f32 && k >= BB_WIDE_LANES) {
    BB_NARROW(bb_dot_lines)(to, pitch, a, a_row, b, b_row, m, n, k, add);
    return;
  }
  float piece[BB_PIECE * BB_PANEL_f32] __attribute__((aligned(64))),
      turn[BB_PIECE * BB_PANEL_f32] __attribute__((aligned(64)));
  const bool lines = m <= BB_FEW_f32 && b_row == 1;
  for (int64_t j0 = 0; j0 < n; j0 += lines ? n : most)
    for (int64_t p = 0; p < k; p += BB_PIECE)
      for (int64_t j = j0; j < (lines ? n : bb_min(n, j0 + most)); j += most)
        BB_NARROW(bb_dot_piece)
  (to + j, pitch, a + p * a_col, a_row, a_col, b + j * b_row + p * b_col, b_row, b_col, m,
   bb_min(n - j, most), bb_max(n, pitch) - j, bb_min(k - p, BB_PIECE), add || p, piece, turn,
   panel);
}

/* As bb_dot_panels_f32(), of panels of narrow floats. */
void BB_NARROW(bb_dot_panels)(float *to, int64_t pitch, const float *a, int64_t a_row,
                              int64_t a_col, const uint16_t *b, int64_t m, int64_t n, int64_t k,
                              bool add, float *edge) {
  float piece[BB_PIECE * BB_PANEL_f32] __attribute__((aligned(64)));
  for (int64_t j = 0; j < n; j += BB_PANEL_f32) {
    const int64_t wide = bb_min(n - j, BB_PANEL_f32), width = bb_width_f32(wide);
    for (int64_t p = 0; p < k; p += BB_PIECE) {
      const int64_t depth = bb_min(k - p, BB_PIECE);
      BB_NARROW(bb_widen)(piece, b + j * k + p * width, depth * width);
      bb_dot_panel_f32(to + j, pitch, a + p * a_col, a_row, a_col, piece, width, m, wide,
                       bb_max(n, pitch) - j, depth, add || p, edge);
    }
  }
}

/* As bb_pack_block_f32(), made narrow. */
void BB_NARROW(bb_pack_block)(uint16_t *panel, const float *b, int64_t b_row, int64_t b_col,
                              int64_t n, int64_t k) {
  for (int64_t j = 0; j < n; j += BB_PANEL_f32) {
    const int64_t wide = bb_min(n - j, BB_PANEL_f32), width = bb_width_f32(wide);
    for (int64_t p = 0; p < k; p++, panel += width)
      for (int64_t c = 0; c < width; c++)
        panel[c] = c < wide ? BB_NARROW(bb_to)(b[(j + c) * b_row + p * b_col]) : 0;
  }
}
