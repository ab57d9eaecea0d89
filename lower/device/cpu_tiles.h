/* cpu_tiles.h - products in f32 by tiles: units that multiply blocks of bf16 into sums in f32 (AMX).  Part of cpu.h,
 * behind the products in f32; bb_cpu_product.h makes the same sums from multiply-adds of vectors.
 *
 * A number of 24 bits is the sum of three of 8: x = x1 + x2 + x3, x1 the nearest number of 8 bits, x2 what 8 bits keep of
 * the rest.  Products of such parts are exact, and so x y is x1 y1 + x1 y2 + x2 y1 + x1 y3 + x2 y2 + x3 y1 but for less
 * than 2^-23 of it, of either sign: six products of a sixteenth of the price of one.  Smaller ones come first.  Sums run
 * over BB_TILE_DEPTH elements in the unit, and so round less often than those of vectors.  Numbers that have 8 or 16 bits (they
 * were of bf16, or f16) lack parts, and products with those are left out.
 *
 * Units take subnormal numbers as 0, and sums of parts may overflow where the sum does not.  So what is packed is asked
 * for its largest and least element, zeros apart: where products of the two might see either, the product is made by
 * vectors.  Infinities and NaN are such numbers, too.
 *
 * An operand is packed in tiles of 16 lines and 32 of k: in a tile of a, row i has line i; in one of b, column j has line j.
 * Both pair element p of the 32 with element p + 16, so that nothing moves across vectors.
 */

enum {
  BB_TILE_SIDE = 16,
  BB_TILE_DEPTH = 32,
  BB_TILE_BYTES = 1024,
  BB_TILE_PARTS = 3 * BB_TILE_BYTES, /* the tiles of 16 lines */
  BB_TILE_BLOCK = 2 * BB_TILE_SIDE,  /* lines of both operands whose sums are held at once */
  BB_TILE_PIECE = 128,               /* of k, packed at once */
  BB_TILE_LINES = 512                /* of a, likewise */
};

#if defined(__AMX_TILE__) && defined(__AMX_BF16__) && defined(__AVX512BW__)
#define BB_TILES

BB_INLINE int64_t bb_tiled(int64_t count, int64_t each) {
  return (count + each - 1) / each * each;
}

typedef uint32_t bb_words __attribute__((vector_size(64), may_alias));
typedef uint16_t bb_shorts __attribute__((vector_size(64), may_alias));

#define BB_TILE_LOAD(tile, from)                                                                   \
  __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #tile ::"r"(from), "r"((int64_t)64) : "memory")
#define BB_TILE_STORE(tile, to, pitch)                                                             \
  __asm__ volatile("tilestored %%tmm" #tile ", (%0,%1,1)" ::"r"(to), "r"(4 * (pitch)) : "memory")
#define BB_TILE_ZERO(tile) __asm__ volatile("tilezero %%tmm" #tile ::: "memory")
#define BB_TILE_DOT(sum, a, b)                                                                     \
  __asm__ volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #sum ::: "memory")

/* Eight tiles of 16 lines of 64 bytes: 0 to 3 sums, 4 and 5 of a, 6 and 7 of b. */
BB_INLINE void bb_tiles_begin(void) {
  static const struct {
    uint8_t palette, row, none[14];
    uint16_t bytes[16];
    uint8_t lines[16];
  } config = {1, 0, {0}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};
  __asm__ volatile("ldtilecfg %0" ::"m"(config) : "memory");
}
BB_INLINE void bb_tiles_end(void) {
  __asm__ volatile("tilerelease" ::: "memory");
}

/* --- packing --- */

/* What was packed, so far: twice the bits of x1, of the largest and, less 1, the least; bits that x2 and x3 have. */
typedef struct bb_packing {
  bb_shorts most, least;
  bb_words second, third;
} bb_packing;

/* The same of all lanes. */
typedef struct bb_packed {
  int32_t most, least; /* exponents; where all is 0: of 1 */
  int32_t parts;
} bb_packed;

BB_INLINE bb_packing bb_pack_begin(void) {
  return (bb_packing){.least = (bb_shorts){0} - 1};
}

BB_FUNCTION bb_packed bb_pack_end(const bb_packing *p) {
  uint32_t most = 0, least = 0xffff, second = 0, third = 0;
  for (int l = 0; l < 32; l++) {
    if (p->most[l] > most) most = p->most[l];
    if (p->least[l] < least) least = p->least[l];
  }
  for (int l = 0; l < 16; l++) second |= p->second[l], third |= p->third[l];
  const uint32_t sizes = 0x7fff7fff;
  return (bb_packed){most ? (int32_t)(most >> 8) : 127, most ? (int32_t)((least + 1) >> 8) : 127,
                     third & sizes    ? 3
                     : second & sizes ? 2
                                      : 1};
}

/* Two vectors become one of each part, `even` in lower halves. */
BB_INLINE void bb_pack_pair(char *to, bb_vector_f32 even, bb_vector_f32 odd, bb_packing *p) {
  const bb_words high = (bb_words){0} + 0xffff0000u, half = (bb_words){0} + 0x8000u;
  bb_words e = (bb_words)even + half, o = ((bb_words)odd + half) & high;
  const bb_words first = e >> 16 | o;
  even -= (bb_vector_f32)(e & high);
  odd -= (bb_vector_f32)o;
  e = (bb_words)even & high;
  o = (bb_words)odd & high;
  const bb_words second = e >> 16 | o;
  even -= (bb_vector_f32)e;
  odd -= (bb_vector_f32)o;
  const bb_words third = (bb_words)even >> 16 | (bb_words)odd;
  *(bb_words *)to = first;
  *(bb_words *)(to + BB_TILE_BYTES) = second;
  *(bb_words *)(to + 2 * BB_TILE_BYTES) = third;
  p->second |= second;
  p->third |= third;
  bb_shorts size = (bb_shorts)first + (bb_shorts)first;
  __asm__("vpmaxuw %1, %0, %0" : "+v"(p->most) : "v"(size));
  size -= 1;
  __asm__("vpminuw %1, %0, %0" : "+v"(p->least) : "v"(size));
}

/* 16 lines, or fewer, by BB_TILE_DEPTH of k, or less.  columns: they are those of tiles of b. */
BB_INLINE void bb_pack_tile(char *to, const float *from, int64_t line, int64_t depth, int64_t lines,
                            int64_t k, const bool columns, bb_packing *p) {
  float held[BB_TILE_SIDE * BB_TILE_DEPTH] __attribute__((aligned(64)));
  const bool part = lines < BB_TILE_SIDE || k < BB_TILE_DEPTH;
  if (part || (columns ? line : depth) != 1) {
    if (part) memset(held, 0, sizeof held);
    if (columns)
      bb_across_f32(held, BB_TILE_SIDE, 1, from, depth, line, k, lines);
    else
      bb_across_f32(held, BB_TILE_DEPTH, 1, from, line, depth, lines, k);
    from = held;
    line = columns ? 1 : BB_TILE_DEPTH;
    depth = columns ? BB_TILE_SIDE : 1;
  }
  const int64_t step = columns ? depth : line, odd = columns ? BB_TILE_SIDE * depth : BB_TILE_SIDE;
  for (int r = 0; r < BB_TILE_SIDE; r++, from += step)
    bb_pack_pair(to + r * 64, *(const bb_loose_f32 *)from, *(const bb_loose_f32 *)(from + odd), p);
}

/* All of k of 16 lines, then of the next 16; whole blocks of lines. */
BB_FUNCTION void bb_pack_tiles(char *to, const float *from, int64_t line, int64_t depth,
                               int64_t lines, int64_t k, const bool columns, bb_packing *p) {
  for (int64_t i = 0; i < bb_tiled(lines, BB_TILE_BLOCK); i += BB_TILE_SIDE)
    for (int64_t q = 0; q < k; q += BB_TILE_DEPTH, to += BB_TILE_PARTS)
      bb_pack_tile(to, from + i * line + q * depth, line, depth,
                   bb_max(0, bb_min(lines - i, BB_TILE_SIDE)), bb_min(k - q, BB_TILE_DEPTH),
                   columns, p);
}

/* --- a block of sums --- */

#define BB_TILE_A(part)                                                                            \
  BB_TILE_LOAD(4, a + (part)*BB_TILE_BYTES);                                                       \
  BB_TILE_LOAD(5, a + lines + (part)*BB_TILE_BYTES)
#define BB_TILE_B(part)                                                                            \
  BB_TILE_LOAD(6, b + (part)*BB_TILE_BYTES);                                                       \
  BB_TILE_LOAD(7, b + lines + (part)*BB_TILE_BYTES)
#define BB_TILE_DOTS                                                                               \
  BB_TILE_DOT(0, 4, 6);                                                                            \
  BB_TILE_DOT(1, 4, 7);                                                                            \
  BB_TILE_DOT(2, 5, 6);                                                                            \
  BB_TILE_DOT(3, 5, 7)

/* Sums of `chunks` times BB_TILE_DEPTH products of operands that have so many parts.  The order is one in which few tiles
 * are loaded. */
BB_INLINE void bb_tile_sums(const char *a, const char *b, int64_t chunks, const int of_a,
                            const int of_b) {
  const int64_t lines = chunks * BB_TILE_PARTS;
  BB_TILE_ZERO(0);
  BB_TILE_ZERO(1);
  BB_TILE_ZERO(2);
  BB_TILE_ZERO(3);
  for (; chunks > 0; chunks--, a += BB_TILE_PARTS, b += BB_TILE_PARTS) {
    BB_TILE_B(0);
    if (of_a > 2) {
      BB_TILE_A(2);
      BB_TILE_DOTS;
    }
    if (of_a > 1) {
      BB_TILE_A(1);
      BB_TILE_DOTS;
    }
    if (of_b > 1) {
      BB_TILE_B(1);
      if (of_a > 1) {
        BB_TILE_DOTS;
      }
    }
    BB_TILE_A(0);
    if (of_b > 1) {
      BB_TILE_DOTS;
    }
    if (of_b > 2) {
      BB_TILE_B(2);
      BB_TILE_DOTS;
    }
    if (of_b > 1) {
      BB_TILE_B(0);
    }
    BB_TILE_DOTS;
  }
}

/* `m` x `n` of the result, at most a block. */
BB_INLINE void bb_tile_block(float *to, int64_t pitch, const char *a, const char *b, int64_t m,
                             int64_t n, int64_t chunks, bool add, const int of_a, const int of_b) {
  float sum[BB_TILE_BLOCK][BB_TILE_BLOCK] __attribute__((aligned(64)));
  const bool there = !add && m == BB_TILE_BLOCK && n == BB_TILE_BLOCK;
  float *const at = there ? to : sum[0];
  const int64_t next = there ? pitch : BB_TILE_BLOCK;
  bb_tile_sums(a, b, chunks, of_a, of_b);
  BB_TILE_STORE(0, at, next);
  BB_TILE_STORE(1, at + BB_TILE_SIDE, next);
  BB_TILE_STORE(2, at + BB_TILE_SIDE * next, next);
  BB_TILE_STORE(3, at + BB_TILE_SIDE * next + BB_TILE_SIDE, next);
  if (there) return;
  if (n == BB_TILE_BLOCK && add)
    for (int64_t i = 0; i < m; i++)
      for (int v = 0; v < 2; v++)
        *(bb_loose_f32 *)(to + i * pitch + v * BB_TILE_SIDE) +=
            *(const bb_vector_f32 *)(sum[i] + v * BB_TILE_SIDE);
  else
    for (int64_t i = 0; i < m; i++)
      for (int64_t j = 0; j < n; j++) to[i * pitch + j] = sum[i][j] + (add ? to[i * pitch + j] : 0);
}

/* Packed operands: `m` lines and `n`. */
#define BB_TILE_BLOCKS(of_a, of_b)                                                                 \
  BB_ALONE void bb_tile_blocks_##of_a##_##of_b(float *to, int64_t pitch, const char *a,            \
                                               const char *b, int64_t m, int64_t n,                \
                                               int64_t chunks, bool add) {                         \
    for (int64_t i = 0; i < m; i += BB_TILE_BLOCK)                                                 \
      for (int64_t j = 0; j < n; j += BB_TILE_BLOCK)                                               \
        bb_tile_block(to + i * pitch + j, pitch, a + i / BB_TILE_SIDE * chunks * BB_TILE_PARTS,    \
                      b + j / BB_TILE_SIDE * chunks * BB_TILE_PARTS, bb_min(m - i, BB_TILE_BLOCK), \
                      bb_min(n - j, BB_TILE_BLOCK), chunks, add, of_a, of_b);                      \
  }
#define BB_TILE_BLOCKS_OF(of_a)                                                                    \
  BB_TILE_BLOCKS(of_a, 1) BB_TILE_BLOCKS(of_a, 2) BB_TILE_BLOCKS(of_a, 3)
BB_TILE_BLOCKS_OF(1)
BB_TILE_BLOCKS_OF(2)
BB_TILE_BLOCKS_OF(3)

typedef void bb_tile_blocks(float *to, int64_t pitch, const char *a, const char *b, int64_t m,
                            int64_t n, int64_t chunks, bool add);
static bb_tile_blocks *const bb_tile_ways[3][3] = {
    {bb_tile_blocks_1_1, bb_tile_blocks_1_2, bb_tile_blocks_1_3},
    {bb_tile_blocks_2_1, bb_tile_blocks_2_2, bb_tile_blocks_2_3},
    {bb_tile_blocks_3_1, bb_tile_blocks_3_2, bb_tile_blocks_3_3}};

/* Is no sum of parts infinite, and none that is not 0 too small?  Of exponents as they are stored, of at most BB_TILE_PIECE
 * products: all sums are then below 2^127, all parts 0 or at least 2^-125, and what units lose of sums below 2^-126
 * is less than 2^-25 of each product. */
BB_INLINE bool bb_tiles_fit(const bb_packed *a, const bb_packed *b) {
  enum { LEAST = 25, LEAST_BOTH = 160, MOST_BOTH = 371, NO_NUMBER = 255 };
  return a->most < NO_NUMBER && b->most < NO_NUMBER && a->most + b->most <= MOST_BOTH &&
         a->least >= LEAST && b->least >= LEAST && a->least + b->least >= LEAST_BOTH;
}

/* --- products --- */

/* The other operand: in floats of 32 or 16 bits, in panels or with strides. */
typedef struct bb_beside {
  const void *b;
  int64_t row, col, n, k;
  enum { BB_OF_F32, BB_OF_F16, BB_OF_BF16 } kind;
  bool panels;
} bb_beside;

/* Of the panel from column j on, `k` of k from p on; held: where it is made unless it lies there. */
BB_FUNCTION const float *bb_bring_panel(const bb_beside *s, int64_t j, int64_t wide, int64_t p,
                                        int64_t k, float *held, int64_t *pitch) {
  const int64_t width = bb_width_f32(wide), first = j * s->k + p * width;
  float turn[BB_PIECE * BB_PANEL_f32] __attribute__((aligned(64)));
  *pitch = width;
  if (s->panels) {
    if (s->kind == BB_OF_F32) return (const float *)s->b + first;
    const uint16_t *from = (const uint16_t *)s->b + first;
    s->kind == BB_OF_F16 ? bb_widen_f16(held, from, k * width)
                         : bb_widen_bf16(held, from, k * width);
    return held;
  }
  const int64_t at = j * s->row + p * s->col;
  if (s->kind == BB_OF_F32) {
    const float *from = (const float *)s->b + at;
    if (s->row == 1 && wide == width) {
      *pitch = s->col;
      return from;
    }
    bb_pack_f32(held, from, s->row, s->col, wide, k);
    return held;
  }
  for (int64_t q = 0; q < k; q += BB_PIECE) {
    const uint16_t *from = (const uint16_t *)s->b + at + q * s->col;
    const int64_t deep = bb_min(k - q, BB_PIECE);
    if (s->kind == BB_OF_F16)
      bb_widen_panel_f16(held + q * width, width, from, s->row, s->col, wide, deep, turn);
    else
      bb_widen_panel_bf16(held + q * width, width, from, s->row, s->col, wide, deep, turn);
  }
  return held;
}

/* What a product has room for: tiles of a panel, the panel, an edge, tiles of `a`. */
typedef struct bb_tiles_room {
  char tiles[BB_TILE_PIECE * BB_PANEL_f32 * 6] __attribute__((aligned(64)));
  float held[BB_TILE_PIECE * BB_PANEL_f32];
  float edge[6 * BB_PANEL_f32];
  char of_a[];
} bb_tiles_room;

/* Some lines of `a` and a piece of k. */
typedef struct bb_piece {
  const float *a;
  int64_t a_row, a_col, m, k;
  bb_packed packed;
} bb_piece;

/* One panel of `wide` columns, of which a row of the result has room for `room`. */
BB_FUNCTION void bb_tiles_panel(const bb_piece *t, float *to, int64_t pitch, const float *b,
                                int64_t b_pitch, int64_t wide, int64_t room, bool add,
                                bb_tiles_room *with) {
  bb_packing packing = bb_pack_begin();
  bb_pack_tiles(with->tiles, b, 1, b_pitch, wide, t->k, true, &packing);
  const bb_packed packed = bb_pack_end(&packing);
  if (bb_tiles_fit(&t->packed, &packed)) {
    bb_tile_ways[t->packed.parts - 1][packed.parts - 1](
        to, pitch, with->of_a, with->tiles, t->m, wide,
        bb_tiled(t->k, BB_TILE_DEPTH) / BB_TILE_DEPTH, add);
    return;
  }
  bb_dot_panel_f32(to, pitch, t->a, t->a_row, t->a_col, b, b_pitch, t->m, wide, room, t->k, add,
                   with->edge);
}

BB_FUNCTION void bb_tiles_any(float *to, int64_t pitch, const float *a, int64_t a_row,
                              int64_t a_col, const bb_beside *s, int64_t m, bool add,
                              bb_tiles_room *with) {
  bb_tiles_begin();
  for (int64_t i = 0; i < m; i += BB_TILE_LINES)
    for (int64_t p = 0; p < s->k; p += BB_TILE_PIECE) {
      bb_piece t = {a + i * a_row + p * a_col, a_row, a_col, bb_min(m - i, BB_TILE_LINES),
                    bb_min(s->k - p, BB_TILE_PIECE)};
      bb_packing packing = bb_pack_begin();
      bb_pack_tiles(with->of_a, t.a, a_row, a_col, t.m, t.k, false, &packing);
      t.packed = bb_pack_end(&packing);
      for (int64_t j = 0; j < s->n; j += BB_PANEL_f32) {
        int64_t wide = bb_min(s->n - j, BB_PANEL_f32), b_pitch;
        const float *b = bb_bring_panel(s, j, wide, p, t.k, with->held, &b_pitch);
        bb_tiles_panel(&t, to + i * pitch + j, pitch, b, b_pitch, wide, bb_max(s->n, pitch) - j,
                       add || p, with);
      }
    }
  bb_tiles_end();
}

#endif

/* Fewer lines than a block has are not worth packing for. */
#ifdef BB_TILES
#define BB_BY_TILES(m, n) ((m) >= BB_TILE_BLOCK && (n) >= BB_TILE_BLOCK)
#define BB_TILES_ANY bb_tiles_any
#else
#define BB_BY_TILES(m, n) false
#define BB_TILES_ANY(...) (void)0
#endif
#define BB_TILES_OF(suffix, element, of)                                                           \
  void bb_tiles_##suffix(float *to, int64_t pitch, const float *a, int64_t a_row, int64_t a_col,   \
                         const element *b, int64_t b_row, int64_t b_col, int64_t m, int64_t n,     \
                         int64_t k, bool add, void *room) {                                        \
    if (BB_BY_TILES(m, n))                                                                         \
      BB_TILES_ANY(to, pitch, a, a_row, a_col, &(bb_beside){b, b_row, b_col, n, k, of, false}, m,  \
                   add, room);                                                                     \
    else                                                                                           \
      bb_dot_##suffix(to, pitch, a, a_row, a_col, b, b_row, b_col, m, n, k, add, room);            \
  }                                                                                                \
  void bb_tiles_panels_##suffix(float *to, int64_t pitch, const float *a, int64_t a_row,           \
                                int64_t a_col, const element *b, int64_t m, int64_t n, int64_t k,  \
                                bool add, void *room) {                                            \
    if (BB_BY_TILES(m, n))                                                                         \
      BB_TILES_ANY(to, pitch, a, a_row, a_col, &(bb_beside){b, 0, 0, n, k, of, true}, m, add,      \
                   room);                                                                          \
    else                                                                                           \
      bb_dot_panels_##suffix(to, pitch, a, a_row, a_col, b, m, n, k, add, room);                   \
  }
BB_TILES_OF(f32, float, BB_OF_F32)
BB_TILES_OF(f16, uint16_t, BB_OF_F16)
BB_TILES_OF(bf16, uint16_t, BB_OF_BF16)
#undef BB_TILES_OF
#undef BB_TILES_ANY
#undef BB_BY_TILES
