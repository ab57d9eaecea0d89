/* cpu_memory.h - loads and stores of a tile: between memory as an array's strides say, and rows of a tile.  Part of cpu.h.
 *
 * What is beyond the extents is filled on load and left out on store; elements are converted on the way.
 */

/* to[i * to_row + j * to_col] = from[i * from_row + j * from_col]: one stride of each is 1, of `to` and
 * `from` not the same one.  Eight columns at a time, so that lines of both stay in the cache. */
#define BB_ACROSS(suffix, to_type, from_type, convert)                                             \
  BB_FUNCTION void bb_across_##suffix(to_type *to, int64_t to_row, int64_t to_col,                 \
                                      const from_type *from, int64_t from_row, int64_t from_col,   \
                                      int64_t rows, int64_t cols) {                                \
    for (int64_t j0 = 0; j0 < cols; j0 += 8)                                                       \
      for (int64_t i = 0; i < rows; i++)                                                           \
        for (int64_t j = j0; j < j0 + 8 && j < cols; j++)                                          \
          to[i * to_row + j * to_col] = convert(from[i * from_row + j * from_col]);                \
  }

/* All but `r` x `c` elements from (r0, c0) on.  A few at a side are stored one by one: compilers call a function for a loop that fills
 * memory. */
#define BB_FILL(suffix, tile)                                                                      \
  BB_INLINE void bb_fill_line_##suffix(tile *to, int64_t n, tile pad) {                            \
    enum { FEW = 16 };                                                                             \
    if (n > FEW) {                                                                                 \
      for (int64_t j = 0; j < n; j++) to[j] = pad;                                                 \
      return;                                                                                      \
    }                                                                                              \
    for (int64_t j = 0; j < n; j++) {                                                              \
      to[j] = pad;                                                                                 \
      BB_HIDE(to);                                                                                 \
    }                                                                                              \
  }                                                                                                \
  BB_FUNCTION void bb_fill_##suffix(tile *to, int64_t pitch, int64_t rows, int64_t cols,           \
                                    int64_t r0, int64_t c0, int64_t r, int64_t c, tile pad) {      \
    for (int64_t i = 0; i < rows; i++, to += pitch) {                                              \
      const bool inside = i >= r0 && i < r0 + r && c > 0;                                          \
      const int64_t behind = inside ? c0 + c : cols;                                               \
      bb_fill_line_##suffix(to, inside ? c0 : cols, pad);                                          \
      bb_fill_line_##suffix(to + behind, cols - behind, pad);                                      \
    }                                                                                              \
  }
/* to: rows of `pitch` elements; from: as its strides say, `r` x `c` of it inside the extents. */
#define BB_LOAD(suffix, element, tile, line, across)                                               \
  BB_FILL(suffix, tile)                                                                            \
  BB_FUNCTION void bb_load_##suffix(tile *to, int64_t pitch, int64_t rows, int64_t cols,           \
                                    const element *from, int64_t row_stride, int64_t col_stride,   \
                                    int64_t r, int64_t c, tile pad) {                              \
    if (r < rows || c < cols) bb_fill_##suffix(to, pitch, rows, cols, 0, 0, r, c, pad);            \
    if (col_stride != 1) {                                                                         \
      across(to, pitch, 1, from, row_stride, col_stride, r, c);                                    \
      return;                                                                                      \
    }                                                                                              \
    for (int64_t i = 0; i < r; i++) {                                                              \
      for (int64_t j = 0; j < c; j += 64 / (int64_t)sizeof(element))                               \
        __builtin_prefetch(from + (i + 4) * row_stride + j);                                       \
      line(to + i * pitch, from + i * row_stride, c);                                              \
    }                                                                                              \
  }
#define BB_STORE(suffix, element, tile, line, across)                                              \
  BB_FUNCTION void bb_store_##suffix(element *to, int64_t row_stride, int64_t col_stride,          \
                                     const tile *from, int64_t pitch, int64_t r, int64_t c) {      \
    if (col_stride != 1) {                                                                         \
      across(to, row_stride, col_stride, from, pitch, 1, r, c);                                    \
      return;                                                                                      \
    }                                                                                              \
    for (int64_t i = 0; i < r; i++) line(to + i * row_stride, from + i * pitch, c);                \
  }
#define BB_COPY(name, to_type, from_type, convert)                                                 \
  BB_INLINE void bb_copy_##name(to_type *to, const from_type *from, int64_t n) {                   \
    BB_VECTOR                                                                                      \
    for (int64_t i = 0; i < n; i++) to[i] = convert(from[i]);                                      \
  }
#define BB_MEMORY(suffix, element, tile, in, out)                                                  \
  BB_ACROSS(in_##suffix, tile, element, in)                                                        \
  BB_ACROSS(out_##suffix, element, tile, out)                                                      \
  BB_COPY(in_##suffix, tile, element, in)                                                          \
  BB_COPY(out_##suffix, element, tile, out)                                                        \
  BB_LOAD(suffix, element, tile, bb_copy_in_##suffix, bb_across_in_##suffix)                       \
  BB_STORE(suffix, element, tile, bb_copy_out_##suffix, bb_across_out_##suffix)
/* Lines of them are made wide and narrow by vectors. */
#define BB_NARROW_MEMORY(kind)                                                                     \
  BB_ACROSS(in_##kind, float, uint16_t, bb_from_##kind)                                            \
  BB_ACROSS(out_##kind, uint16_t, float, bb_to_##kind)                                             \
  BB_LOAD(kind, uint16_t, float, bb_widen_##kind, bb_across_in_##kind)                             \
  BB_STORE(kind, uint16_t, float, bb_narrow_##kind, bb_across_out_##kind)
#define BB_SAME(x) (x)
#define BB_TRUTH(x) ((x) != 0)
BB_MEMORY(f64, double, double, BB_SAME, BB_SAME)
BB_ACROSS(f64, double, double, BB_SAME)
BB_NARROW_MEMORY(f16)
BB_NARROW_MEMORY(bf16)
BB_MEMORY(i64, int64_t, int64_t, BB_SAME, BB_SAME)
BB_MEMORY(i32, int32_t, int32_t, BB_SAME, BB_SAME)
BB_MEMORY(u32, uint32_t, int64_t, BB_SAME, (uint32_t))
BB_MEMORY(u16, uint16_t, int32_t, BB_SAME, (uint16_t))
BB_MEMORY(i16, int16_t, int32_t, BB_SAME, (int16_t))
BB_MEMORY(u8, uint8_t, int32_t, BB_SAME, (uint8_t))
BB_MEMORY(i8, int8_t, int32_t, BB_SAME, (int8_t))
BB_MEMORY(b8, uint8_t, uint8_t, BB_TRUTH, BB_TRUTH)

/* Narrow floats as they lie, for products that take them so. */
BB_ACROSS(narrow, uint16_t, uint16_t, BB_SAME)
BB_COPY(narrow, uint16_t, uint16_t, BB_SAME)
BB_LOAD(narrow, uint16_t, uint16_t, bb_copy_narrow, bb_across_narrow)

/* f32: eight rows and columns at a time change places in registers. */
typedef float bb_eight __attribute__((vector_size(32)));
typedef float bb_eight_loose __attribute__((vector_size(32), aligned(4), may_alias));
typedef float bb_four_loose __attribute__((vector_size(16), aligned(4), may_alias));

/* Each four floats of a vector by themselves: number k of a[i] becomes number i of a[k]. */
BB_INLINE void bb_turn_halves(bb_eight a[4]) {
  bb_eight b[4];
  for (int i = 0; i < 4; i += 2) {
    b[i] = __builtin_shufflevector(a[i], a[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    b[i + 1] = __builtin_shufflevector(a[i], a[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
  for (int k = 0; k < 2; k++) {
    a[2 * k] = __builtin_shufflevector(b[k], b[2 + k], 0, 1, 8, 9, 4, 5, 12, 13);
    a[2 * k + 1] = __builtin_shufflevector(b[k], b[2 + k], 2, 3, 10, 11, 6, 7, 14, 15);
  }
}

/* to[j * to_pitch + i] = from[i * from_pitch + j] for 8 x 8, j by j; where there are fewer rows, what comes behind them is anything. */
BB_INLINE void bb_turn_eight(float *to, int64_t to_pitch, const float *from, int64_t from_pitch,
                             int64_t rows) {
  bb_eight a[8];
  for (int i = 0; i < 8; i++)
    a[i] = *(const bb_eight_loose *)(from + bb_min(i, rows - 1) * from_pitch);
  bb_turn_halves(a);
  bb_turn_halves(a + 4);
  for (int i = 0; i < 4; i++)
    *(bb_eight_loose *)(to + i * to_pitch) =
        __builtin_shufflevector(a[i], a[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
  for (int i = 0; i < 4; i++)
    *(bb_eight_loose *)(to + (i + 4) * to_pitch) =
        __builtin_shufflevector(a[i], a[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
}

/* The same of 4 x 8, 8 x 4 or 4 x 4. */
BB_INLINE void bb_turn_four(float *to, int64_t to_pitch, const float *from, int64_t from_pitch,
                            int64_t rows, int64_t cols) {
  bb_eight a[4];
  for (int i = 0; i < 4; i++) {
    const float *low = from + i * from_pitch;
    const float *high = cols == 8 ? low + 4 : low + (rows - 4) * from_pitch;
    a[i] = __builtin_shufflevector(*(const bb_four_loose *)low, *(const bb_four_loose *)high, 0, 1,
                                   2, 3, 4, 5, 6, 7);
  }
  bb_turn_halves(a);
  for (int i = 0; i < 4; i++) {
    float *low = to + i * to_pitch;
    float *high = cols == 8 ? low + 4 * to_pitch : low + rows - 4;
    *(bb_four_loose *)low = __builtin_shufflevector(a[i], a[i], 0, 1, 2, 3);
    *(bb_four_loose *)high = __builtin_shufflevector(a[i], a[i], 4, 5, 6, 7);
  }
}

/* Columns of a few rows, as many as can be, that lie one behind the other in `to`: what is written behind one, the next
 * overwrites, and there are some more. */
BB_INLINE int64_t bb_turn_few(float *to, const float *from, int64_t from_pitch, int64_t rows,
                              int64_t cols) {
  int64_t j = 0;
  for (; (cols - j - 8) * rows >= 8; j += 8)
    bb_turn_eight(to + j * rows, rows, from + j, from_pitch, rows);
  return j;
}

/* to[j * to_pitch + i] = from[i * from_pitch + j].  Eight columns of all rows come before the next eight: meanwhile the
 * next line of each row is asked for.  Where fewer than eight rows or columns are left, but four were there, some are written
 * again. */
BB_FUNCTION void bb_turn_f32(float *to, int64_t to_pitch, const float *from, int64_t from_pitch,
                             int64_t rows, int64_t cols) {
  const int64_t line = 64 / sizeof(float);
  const int64_t high = rows < 8 ? 4 : 8, wide = cols < 8 ? 4 : 8;
  int64_t done = rows < 8 && to_pitch == rows ? bb_turn_few(to, from, from_pitch, rows, cols) : 0;
  if (rows < high || cols < wide) {
    for (int64_t j = done; j < cols; j++)
      for (int64_t i = 0; i < rows; i++) to[j * to_pitch + i] = from[i * from_pitch + j];
    return;
  }
  for (; done < cols; done += wide) {
    const int64_t j = bb_min(done, cols - wide);
    if (j % line == 0 && j + line < cols)
      for (int64_t k = 0; k < rows; k++) __builtin_prefetch(from + k * from_pitch + j + line);
    for (int64_t next = 0; next < rows; next += high) {
      const int64_t i = bb_min(next, rows - high);
      float *block = to + j * to_pitch + i;
      const float *of = from + i * from_pitch + j;
      if (high == 8 && wide == 8)
        bb_turn_eight(block, to_pitch, of, from_pitch, 8);
      else if (high == 8)
        bb_turn_four(block, to_pitch, of, from_pitch, 8, 4);
      else if (wide == 8)
        bb_turn_four(block, to_pitch, of, from_pitch, 4, 8);
      else
        bb_turn_four(block, to_pitch, of, from_pitch, 4, 4);
    }
  }
}

BB_FUNCTION void bb_across_f32(float *to, int64_t to_row, int64_t to_col, const float *from,
                               int64_t from_row, int64_t from_col, int64_t rows, int64_t cols) {
  if (to_col == 1 && from_row == 1)
    bb_turn_f32(to, to_row, from, from_col, cols, rows);
  else if (to_row == 1 && from_col == 1)
    bb_turn_f32(to, to_col, from, from_row, rows, cols);
  else
    for (int64_t i = 0; i < rows; i++)
      for (int64_t j = 0; j < cols; j++)
        to[i * to_row + j * to_col] = from[i * from_row + j * from_col];
}
BB_COPY(f32, float, float, BB_SAME)
BB_LOAD(f32, float, float, bb_copy_f32, bb_across_f32)
BB_STORE(f32, float, float, bb_copy_f32, bb_across_f32)
