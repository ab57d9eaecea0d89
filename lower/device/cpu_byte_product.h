/* cpu_byte_product.h - products of i32, which wrap, by units that multiply bytes where elements turn out to be some: what cpu.h
 * declares of them.  An object of its own (BB_PRODUCTS_I32), compiled once for all kernels.
 *
 * Such a unit adds four products of an unsigned with a signed byte to a sum of 32 bits.  Elements of an operand that differ by
 * less than 256 are such bytes, but for a number that they all are more by: with a = u + s and b = v + t
 *
 *     sum a b = sum u v + s sum v + t sum a
 *
 * where nothing is rounded, and all wraps alike: so the result is what it is without these units, to the bit.  Operands are looked at as
 * they come, and those that are wider go as cpu_integer_product.h says, as all do where there are no such units.
 *
 * b lies in panels as in cpu_product.h, four elements along k in place of one.  A block that was packed at load says what it
 * holds (bb_block), and takes no more than its elements and a row of them more.
 */

#if (defined(__AVX512VNNI__) && BB_VECTOR_BYTES == 64) ||                                          \
    (defined(__AVXVNNI__) && BB_VECTOR_BYTES == 32)
#define BB_BYTES
#define BB_BYTES_UNIT
#endif

enum {
  BB_BYTE_LANES = BB_VECTOR_BYTES / 4,
  BB_BYTE_VECTORS = BB_VECTOR_BYTES == 64 ? 4 : 2,
  BB_BYTE_PANEL = BB_BYTE_LANES * BB_BYTE_VECTORS,
  BB_BYTE_ROWS = 6,
  BB_BYTE_FEW = 3,  /* rows that are not worth packing b for */
  BB_BYTE_DEPTH = 8 /* nor are sums of fewer */
};

typedef uint32_t bb_byte_vector __attribute__((vector_size(BB_VECTOR_BYTES)));
typedef uint32_t bb_byte_loose __attribute__((vector_size(BB_VECTOR_BYTES), aligned(4), may_alias));
typedef uint32_t bb_fours __attribute__((aligned(4), may_alias)); /* four bytes along k */

/* What a packed block begins with; its columns' sums follow where it has bytes, then panels. */
typedef struct bb_block {
  uint32_t bytes;    /* 0: panels of whole elements */
  uint32_t shift;    /* b is so much more than its bytes say */
  uint32_t room[14]; /* a line of the cache in all */
} bb_block;

BB_INLINE int64_t bb_fours_of(int64_t k) {
  return (k + 3) / 4;
}

/* Columns of the panel of which `n` are there, or more. */
BB_INLINE int64_t bb_byte_width(int64_t n) {
  return n > BB_BYTE_LANES ? BB_BYTE_PANEL : BB_BYTE_LANES;
}

#ifdef BB_BYTES

/* --- which bytes --- */

typedef struct bb_span {
  int32_t least, most;
} bb_span;

/* Lines are looked at vector by vector, the last one again in part where a line has no whole number of them. */
BB_ALONE bb_span bb_span_of(const int32_t *from, int64_t line, int64_t depth, int64_t lines,
                            int64_t k) {
  bb_span span = {INT32_MAX, INT32_MIN};
  int32_t least[BB_BYTE_LANES], most[BB_BYTE_LANES];
  for (int l = 0; l < BB_BYTE_LANES; l++) least[l] = INT32_MAX, most[l] = INT32_MIN;
  if (depth != 1) { /* the inner loop goes along memory where one can */
    const int64_t other = line, others = lines;
    line = depth, lines = k;
    depth = other, k = others;
  }
  const bool vectors = depth == 1 && k >= BB_BYTE_LANES;
  for (int64_t i = 0; i < lines; i++, from += line) {
    for (int64_t p = 0; vectors && p < k; p += BB_BYTE_LANES) {
      const int32_t *at = from + bb_min(p, k - BB_BYTE_LANES);
      for (int l = 0; l < BB_BYTE_LANES; l++) {
        const int32_t x = at[l];
        least[l] = x < least[l] ? x : least[l];
        most[l] = x > most[l] ? x : most[l];
      }
    }
    for (int64_t p = 0; !vectors && p < k; p++) {
      const int32_t x = from[p * depth];
      span.least = x < span.least ? x : span.least;
      span.most = x > span.most ? x : span.most;
    }
  }
  for (int l = 0; l < BB_BYTE_LANES; l++) {
    span.least = least[l] < span.least ? least[l] : span.least;
    span.most = most[l] > span.most ? most[l] : span.most;
  }
  return span;
}

/* What is to be subtracted so that the span begins at `low` of bytes; nothing where it lies among them as it is. */
BB_INLINE bool bb_fits_bytes(bb_span span, int32_t low, uint32_t *shift) {
  if ((uint32_t)span.most - (uint32_t)span.least > 255 || span.most < span.least) return false;
  const bool lies = span.least >= low && span.most <= low + 255;
  *shift = lies ? 0 : (uint32_t)span.least - (uint32_t)low;
  return true;
}

/* --- packing --- */

/* to[q * to_depth + i * to_line] has bytes 4 q to 4 q + 3 of line i, those beyond k being 0; sums (NULL: not wanted) are those
 * of the lines' bytes, with a sign if `sign`. */
BB_ALONE void bb_pack_bytes(bb_fours *to, int64_t to_line, int64_t to_depth, const int32_t *from,
                            int64_t line, int64_t depth, int64_t lines, int64_t k, uint32_t shift,
                            uint32_t *sums, bool sign) {
  const int64_t whole = k / 4;
  const uint32_t *at = (const uint32_t *)from;
  if (line == 1 && to_line == 1)
    for (int64_t q = 0; q < whole; q++) {
      const uint32_t *row = at + 4 * q * depth;
      BB_VECTOR
      for (int64_t i = 0; i < lines; i++)
        to[q * to_depth + i] = ((row[i] - shift) & 255) | ((row[i + depth] - shift) & 255) << 8 |
                               ((row[i + 2 * depth] - shift) & 255) << 16 |
                               (row[i + 3 * depth] - shift) << 24;
    }
  else if (depth == 1 && to_depth == 1)
    for (int64_t i = 0; i < lines; i++) {
      uint8_t *bytes = (uint8_t *)(to + i * to_line);
      const uint32_t *row = at + i * line;
      BB_VECTOR
      for (int64_t p = 0; p < 4 * whole; p++) bytes[p] = (uint8_t)(row[p] - shift);
    }
  else
    for (int64_t i = 0; i < lines; i++)
      for (int64_t q = 0; q < whole; q++) {
        const uint32_t *row = at + i * line + 4 * q * depth;
        to[q * to_depth + i * to_line] =
            ((row[0] - shift) & 255) | ((row[depth] - shift) & 255) << 8 |
            ((row[2 * depth] - shift) & 255) << 16 | (row[3 * depth] - shift) << 24;
      }
  if (whole * 4 < k)
    for (int64_t i = 0; i < lines; i++) {
      uint32_t four = 0;
      for (int64_t p = 4 * whole; p < k; p++)
        four |= ((at[i * line + p * depth] - shift) & 255) << 8 * (p % 4);
      to[whole * to_depth + i * to_line] = four;
    }
  if (!sums) return;
  for (int64_t i = 0; i < lines; i++) sums[i] = 0;
  for (int64_t q = 0; q < bb_fours_of(k); q++)
    for (int64_t i = 0; i < lines; i++) {
      const uint32_t four = to[q * to_depth + i * to_line];
      for (int t = 0; t < 4; t++) {
        const uint8_t byte = (uint8_t)(four >> 8 * t);
        sums[i] += sign ? (uint32_t)(int8_t)byte : byte;
      }
    }
}

/* --- sums --- */

/* sum += four products of an unsigned byte of u with a signed one of v, in each lane. */
#if defined(BB_BYTES_UNIT) && BB_VECTOR_BYTES == 64
#define BB_DOT_BYTES(sum, u, v) __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(u), "v"(v))
#elif defined(BB_BYTES_UNIT)
#define BB_DOT_BYTES(sum, u, v) __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(u), "x"(v))
#else /* tests want the rest of this file on any processor */
#define BB_DOT_BYTES(sum, u, v)                                                                    \
  for (int t = 0; t < 4; t++)                                                                      \
    for (int l = 0; l < BB_BYTE_LANES; l++)                                                        \
  (sum)[l] += ((u)[l] >> 8 * t & 255) * (uint32_t)(int8_t)(uint8_t)((v)[l] >> 8 * t)
#endif

/* An operand in fours, with what its lines and columns add to sums. */
typedef struct bb_bytes {
  const bb_fours *a;
  int64_t line, depth; /* between fours of it */
  const uint32_t *row; /* added to the sums of each row; NULL: nothing is */
  uint32_t col;        /* times each column's sum: added to those of the column */
} bb_bytes;

/* `rows` rows of the result, constants as `vectors`, against a panel. */
BB_INLINE void bb_byte_strip(uint32_t *to, int64_t pitch, const bb_bytes *with, int64_t first,
                             const bb_fours *panel, const uint32_t *sums, int64_t fours, bool add,
                             const int rows, const int vectors) {
  bb_byte_vector sum[BB_BYTE_ROWS][BB_BYTE_VECTORS];
  const bb_fours *a = with->a + first * with->line;
  const int64_t line = with->line, depth = with->depth;
  BB_STRAIGHT
  for (int v = 0; v < vectors; v++) {
    const bb_byte_vector start = *(const bb_byte_loose *)(sums + v * BB_BYTE_LANES) * with->col;
    BB_STRAIGHT
    for (int i = 0; i < rows; i++) sum[i][v] = start + (with->row ? with->row[first + i] : 0);
  }
  for (int64_t q = 0; q < fours; q++, a += depth, panel += vectors * BB_BYTE_LANES) {
    bb_byte_vector b[BB_BYTE_VECTORS];
    BB_STRAIGHT
    for (int v = 0; v < vectors; v++) b[v] = *(const bb_byte_loose *)(panel + v * BB_BYTE_LANES);
    BB_STRAIGHT
    for (int i = 0; i < rows; i++) {
      const bb_byte_vector x = a[i * line] - (bb_byte_vector){0};
      BB_STRAIGHT
      for (int v = 0; v < vectors; v++) BB_DOT_BYTES(sum[i][v], x, b[v]);
    }
  }
  BB_STRAIGHT
  for (int i = 0; i < rows; i++) BB_STRAIGHT
  for (int v = 0; v < vectors; v++) {
    bb_byte_loose *at = (bb_byte_loose *)(to + i * pitch + v * BB_BYTE_LANES);
    if (add) sum[i][v] += *at;
    *at = sum[i][v];
  }
}

#define BB_BYTE_CASE(rows, vectors)                                                                \
  case rows:                                                                                       \
    bb_byte_strip(to, pitch, with, first, panel, sums, fours, add, rows, vectors);                 \
    break;
#define BB_BYTE_STRIPS(vectors)                                                                    \
  BB_ALONE void bb_byte_strips_##vectors(                                                          \
      uint32_t *to, int64_t pitch, const bb_bytes *with, int64_t first, const bb_fours *panel,     \
      const uint32_t *sums, int64_t m, int64_t fours, bool add) {                                  \
    while (m > 0) {                                                                                \
      const int64_t next = m == 7 || m == 8 ? 4 : m == 5 ? 3 : m < 6 ? m : 6;                      \
      switch (next) {                                                                              \
        BB_BYTE_CASE(1, vectors)                                                                   \
        BB_BYTE_CASE(2, vectors)                                                                   \
        BB_BYTE_CASE(3, vectors)                                                                   \
        BB_BYTE_CASE(4, vectors)                                                                   \
        BB_BYTE_CASE(6, vectors)                                                                   \
      }                                                                                            \
      to += next * pitch;                                                                          \
      first += next;                                                                               \
      m -= next;                                                                                   \
    }                                                                                              \
  }
BB_BYTE_STRIPS(1)
#if BB_VECTOR_BYTES == 64
BB_BYTE_STRIPS(4)
#define BB_BYTE_WIDE bb_byte_strips_4
#else
BB_BYTE_STRIPS(2)
#define BB_BYTE_WIDE bb_byte_strips_2
#endif
#undef BB_BYTE_STRIPS
#undef BB_BYTE_CASE

/* Columns that are fewer than a panel's go by a block of results that has room for it. */
BB_FUNCTION void bb_byte_against(uint32_t *to, int64_t pitch, const bb_bytes *with,
                                 const bb_fours *panel, const uint32_t *sums, int64_t m, int64_t n,
                                 int64_t fours, bool add) {
  uint32_t edge[BB_BYTE_ROWS * BB_BYTE_PANEL];
  const int64_t width = bb_byte_width(n);
  const bool wide = width > BB_BYTE_LANES;
  if (n >= width) {
    (wide ? BB_BYTE_WIDE : bb_byte_strips_1)(to, pitch, with, 0, panel, sums, m, fours, add);
    return;
  }
  for (int64_t i = 0; i < m; i += BB_BYTE_ROWS) {
    const int64_t rows = bb_min(BB_BYTE_ROWS, m - i);
    (wide ? BB_BYTE_WIDE : bb_byte_strips_1)(edge, width, with, i, panel, sums, rows, fours, false);
    for (int64_t r = 0; r < rows; r++)
      for (int64_t j = 0; j < n; j++) {
        uint32_t *at = &to[(i + r) * pitch + j];
        *at = edge[r * width + j] + (add ? *at : 0);
      }
  }
}
#undef BB_BYTE_WIDE

/* a in fours, at `room`, which has 4 m bytes for rows' sums before them; false: its elements are no bytes.  t: b's shift. */
BB_FUNCTION bool bb_byte_operand(bb_bytes *with, uint32_t *room, const int32_t *a, int64_t a_row,
                                 int64_t a_col, int64_t m, int64_t k, uint32_t t) {
  uint32_t shift;
  if (!bb_fits_bytes(bb_span_of(a, a_row, a_col, m, k), 0, &shift)) return false;
  const bool lines = a_col == 1;
  bb_fours *to = room + m;
  *with = (bb_bytes){to, lines ? bb_fours_of(k) : 1, lines ? 1 : m, t ? room : 0, shift};
  bb_pack_bytes(to, with->line, with->depth, a, a_row, a_col, m, k, shift, t ? room : 0, false);
  for (int64_t i = 0; t && i < m; i++) room[i] = (room[i] + (uint32_t)k * shift) * t;
  return true;
}

/* As bb_dot_i32(); false: operands are no bytes. */
BB_FUNCTION bool bb_dot_bytes(int32_t *to, int64_t pitch, const int32_t *a, int64_t a_row,
                              int64_t a_col, const int32_t *b, int64_t b_row, int64_t b_col,
                              int64_t m, int64_t n, int64_t k, bool add, uint32_t *room) {
  uint32_t sums[BB_BYTE_PANEL], shift;
  bb_bytes with;
  if (!bb_fits_bytes(bb_span_of(b, b_row, b_col, n, k), -128, &shift) ||
      !bb_byte_operand(&with, room, a, a_row, a_col, m, k, shift))
    return false;
  const int64_t fours = bb_fours_of(k);
  bb_fours *panel = room + (m + m * fours + 15) / 16 * 16;
  for (int64_t j = 0; j < n; j += BB_BYTE_PANEL) {
    const int64_t there = bb_min(BB_BYTE_PANEL, n - j), width = bb_byte_width(there);
    if (there < width) memset(panel, 0, (size_t)(width * fours) * sizeof *panel);
    for (int64_t c = there; c < width; c++) sums[c] = 0;
    bb_pack_bytes(panel, 1, width, b + j * b_row, b_row, b_col, there, k, shift, sums, true);
    bb_byte_against((uint32_t *)to + j, pitch, &with, panel, sums, m, there, fours, add);
  }
  return true;
}

#endif

/* --- blocks that were packed --- */

BB_INLINE int64_t bb_block_columns(int64_t n) {
  return (n + BB_BYTE_PANEL - 1) / BB_BYTE_PANEL * BB_BYTE_PANEL;
}

/* A piece of a panel of bytes made whole again: rows `from` of it on, `depth` of them. */
BB_FUNCTION void bb_widen_panel(uint32_t *to, const bb_fours *panel, uint32_t shift, int64_t width,
                                int64_t from, int64_t depth) {
  for (int64_t p = 0; p < depth; p++) {
    const bb_fours *four = panel + (from + p) / 4 * width;
    const int at = 8 * (int)((from + p) % 4);
    for (int64_t c = 0; c < width; c++)
      to[p * width + c] = (uint32_t)(int8_t)(uint8_t)(four[c] >> at) + shift;
  }
}

/* All rows against the panel of columns j and on, of which n are there, as whole elements. */
BB_FUNCTION void bb_whole_against(uint32_t *to, int64_t pitch, const uint32_t *a, int64_t a_row,
                                  int64_t a_col, const bb_block *b, const uint32_t *panel,
                                  int64_t m, int64_t n, int64_t k, bool add) {
  enum { PIECE = 64 };
  uint32_t piece[PIECE * BB_BYTE_PANEL];
  const int64_t width = bb_byte_width(n);
  for (int64_t p = 0; p < k; p += PIECE) {
    const int64_t depth = bb_min(PIECE, k - p);
    if (b->bytes) bb_widen_panel(piece, panel, b->shift, width, p, depth);
    bb_against_w32(to, pitch, a + p * a_col, a_row, a_col, b->bytes ? piece : panel + p * width,
                   width, n, m, depth, add || p > 0);
  }
}

/* --- what kernels call --- */

void bb_dot_i32(int32_t *to, int64_t pitch, const int32_t *a, int64_t a_row, int64_t a_col,
                const int32_t *b, int64_t b_row, int64_t b_col, int64_t m, int64_t n, int64_t k,
                bool add, void *room) {
#ifdef BB_BYTES
  if (m > BB_BYTE_FEW && k >= BB_BYTE_DEPTH &&
      bb_dot_bytes(to, pitch, a, a_row, a_col, b, b_row, b_col, m, n, k, add, room))
    return;
#else
  (void)room;
#endif
  bb_dot_w32(to, pitch, a, a_row, a_col, b, b_row, b_col, m, n, k, add);
}

void bb_dot_panels_i32(int32_t *to, int64_t pitch, const int32_t *a, int64_t a_row, int64_t a_col,
                       const int32_t *block, int64_t m, int64_t n, int64_t k, bool add,
                       void *room) {
  const bb_block *b = (const bb_block *)block;
  const uint32_t *sums = (const uint32_t *)(b + 1),
                 *panels = sums + (b->bytes ? bb_block_columns(n) : 0);
  const int64_t deep = b->bytes ? bb_fours_of(k) : k;
#ifdef BB_BYTES
  bb_bytes with;
  if (b->bytes && bb_byte_operand(&with, room, a, a_row, a_col, m, k, b->shift)) {
    for (int64_t j = 0; j < n; j += BB_BYTE_PANEL)
      bb_byte_against((uint32_t *)to + j, pitch, &with, panels + j * deep, sums + j, m,
                      bb_min(BB_BYTE_PANEL, n - j), deep, add);
    return;
  }
#else
  (void)room;
#endif
  for (int64_t j = 0; j < n; j += BB_BYTE_PANEL)
    bb_whole_against((uint32_t *)to + j, pitch, (const uint32_t *)a, a_row, a_col, b,
                     panels + j * deep, m, bb_min(BB_BYTE_PANEL, n - j), k, add);
}

void bb_pack_block_i32(int32_t *block, const int32_t *from, int64_t b_row, int64_t b_col, int64_t n,
                       int64_t k) {
  bb_block head = {0};
#ifdef BB_BYTES
  uint32_t *sums = (uint32_t *)block + sizeof head / sizeof *block;
  head.bytes = k > 1 && bb_fits_bytes(bb_span_of(from, b_row, b_col, n, k), -128, &head.shift);
#endif
  memcpy(block, &head, sizeof head);
  uint32_t *panels = (uint32_t *)block + sizeof head / sizeof *block;
  for (int64_t j = 0; j < n; j += BB_BYTE_PANEL) {
    const int64_t there = bb_min(BB_BYTE_PANEL, n - j), width = bb_byte_width(there);
    const int32_t *b = from + j * b_row;
#ifdef BB_BYTES
    if (head.bytes) {
      bb_fours *panel = panels + bb_block_columns(n) + j * bb_fours_of(k);
      memset(sums + j, 0, (size_t)width * sizeof *sums);
      memset(panel, 0, (size_t)(width * bb_fours_of(k)) * sizeof *panel);
      bb_pack_bytes(panel, 1, width, b, b_row, b_col, there, k, head.shift, sums + j, true);
      continue;
    }
#endif
    uint32_t *panel = panels + j * k;
    for (int64_t p = 0; p < k; p++)
      for (int64_t c = 0; c < width; c++)
        panel[p * width + c] = c < there ? (uint32_t)b[c * b_row + p * b_col] : 0;
  }
}
