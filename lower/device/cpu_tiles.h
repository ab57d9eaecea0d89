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
 * Both pair element p of the 32 with element p + 16, so that nothing moves across vectors.  What several products read is packed
 * before them, whole; else lines of a are packed, and panels of b, each while the one before it is multiplied.
 */

enum {
  BB_TILE_SIDE = 16,
  BB_TILE_DEPTH = 32,
  BB_TILE_BYTES = 1024,
  BB_TILE_ROWS = 4,                  /* of a tile, packed at once */
  BB_TILE_PARTS = 3 * BB_TILE_BYTES, /* the tiles of 16 lines */
  BB_TILE_BLOCK = 2 * BB_TILE_SIDE,  /* lines of both operands whose sums are held at once */
  BB_TILE_PIECE = 128,               /* of k, packed at once */
  BB_TILE_GROUP = 2 * BB_TILE_BLOCK, /* lines that go by tiles together, or by vectors */
  BB_TILE_LINES = 512                /* of a, packed at once */
};

#if defined(__AMX_TILE__) && defined(__AMX_BF16__) && defined(__AVX512BW__)
#define BB_TILES

BB_INLINE int64_t bb_tiled(int64_t count, int64_t each) {
  return (count + each - 1) / each * each;
}

typedef uint32_t bb_words __attribute__((vector_size(64), may_alias));
typedef uint16_t bb_shorts __attribute__((vector_size(64), may_alias));

#ifndef BB_TILE_LOAD /* tests have tiles in memory */
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
#endif

/* --- packing --- */

/* What was packed, so far: twice the bits of x1, of the largest and, less 1, the least; bits that x2 and x3 have; and,
 * in lower halves, bits that x3 has no room for: of numbers so small that x1 and x2 are 0. */
typedef struct bb_packing {
  bb_shorts most, least;
  bb_words second, third, lost;
} bb_packing;

/* The same of all lanes. */
typedef struct bb_packed {
  int32_t most, least; /* exponents; where all is 0: of 1 */
  int32_t parts;
} bb_packed;

BB_FUNCTION bb_packed bb_all_lanes(const bb_packing *p) {
  uint32_t most = 0, least = 0xffff, second = 0, third = 0, lost = 0;
  for (int l = 0; l < 32; l++) {
    if (p->most[l] > most) most = p->most[l];
    if (p->least[l] < least) least = p->least[l];
  }
  for (int l = 0; l < 16; l++) second |= p->second[l], third |= p->third[l], lost |= p->lost[l];
  if (lost & 0xffff) return (bb_packed){127, 0, 3}; /* as small as a number can be */
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
  p->lost |= (bb_words)even | (bb_words)odd;
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

/* Of an operand: so many lines, and so much of k.  columns: lines are those of tiles of b. */
typedef struct bb_lines {
  const float *from;
  int64_t line, depth, lines, k;
  bool columns;
} bb_lines;

/* The tile at hand: `left` of its rows are to be packed, of which the next lies at `from`. */
typedef struct bb_rows {
  const float *from;
  char *to;
  int64_t step, odd;
  int left;
} bb_rows;

/* Tiles of an operand, and which is next; those of 16 lines lie `pitch` bytes behind those of the 16 before.  Whole blocks of
 * lines. */
typedef struct bb_packer {
  bb_lines of;
  char *to;
  int64_t pitch, line, k;
  bb_rows tile;
  bb_packing seen;
  float held[BB_TILE_SIDE * BB_TILE_DEPTH] __attribute__((aligned(64)));
} bb_packer;

BB_INLINE void bb_pack_begin(bb_packer *p, char *to, int64_t pitch, const bb_lines *of) {
  p->of = *of;
  p->to = to;
  p->pitch = pitch;
  p->line = p->k = p->tile.left = 0;
  p->seen = (bb_packing){.least = (bb_shorts){0} - 1};
}

/* The next tile, 16 lines or fewer by BB_TILE_DEPTH of k or less: where it lies, or held if that is not as units take
 * it. */
BB_ALONE void bb_pack_tile(bb_packer *p) {
  const bb_lines *of = &p->of;
  const int64_t lines = bb_max(0, bb_min(of->lines - p->line, BB_TILE_SIDE));
  const int64_t k = bb_min(of->k - p->k, BB_TILE_DEPTH);
  const bool part = lines < BB_TILE_SIDE || k < BB_TILE_DEPTH;
  int64_t line = of->line, depth = of->depth;
  p->tile.from = of->from + p->line * line + p->k * depth;
  p->tile.to = p->to + p->line / BB_TILE_SIDE * p->pitch + p->k / BB_TILE_DEPTH * BB_TILE_PARTS;
  if (part || (of->columns ? line : depth) != 1) {
    if (part) memset(p->held, 0, sizeof p->held);
    if (of->columns)
      bb_across_f32(p->held, BB_TILE_SIDE, 1, p->tile.from, depth, line, k, lines);
    else
      bb_across_f32(p->held, BB_TILE_DEPTH, 1, p->tile.from, line, depth, lines, k);
    p->tile.from = p->held;
    line = of->columns ? 1 : BB_TILE_DEPTH;
    depth = of->columns ? BB_TILE_SIDE : 1;
  }
  p->tile.step = of->columns ? depth : line;
  p->tile.odd = of->columns ? BB_TILE_SIDE * depth : BB_TILE_SIDE;
  p->tile.left = BB_TILE_SIDE;
  p->k += BB_TILE_DEPTH;
  if (p->k < of->k) return;
  p->k = 0;
  p->line += BB_TILE_SIDE;
}

/* Some rows of tiles; false: all are there. */
BB_ALONE bool bb_pack_rows(bb_packer *p) {
  if (!p->tile.left) {
    if (p->line >= bb_tiled(p->of.lines, BB_TILE_BLOCK)) return false;
    bb_pack_tile(p);
  }
  bb_packing seen = p->seen;
  const float *from = p->tile.from, *const odd = from + p->tile.odd;
  const int64_t step = p->tile.step;
  BB_STRAIGHT
  for (int r = 0; r < BB_TILE_ROWS; r++)
    bb_pack_pair(p->tile.to + r * 64, *(const bb_loose_f32 *)(from + r * step),
                 *(const bb_loose_f32 *)(odd + r * step), &seen);
  p->tile.from += BB_TILE_ROWS * step;
  p->tile.to += BB_TILE_ROWS * 64;
  p->tile.left -= BB_TILE_ROWS;
  p->seen = seen;
  return true;
}

BB_INLINE bb_packed bb_pack_end(bb_packer *p) {
  while (bb_pack_rows(p)) continue;
  return bb_all_lanes(&p->seen);
}

/* --- a block of sums --- */

#define BB_TILE_A(part)                                                                            \
  BB_TILE_LOAD(4, a.at + (part)*BB_TILE_BYTES);                                                    \
  BB_TILE_LOAD(5, a.at + a.pitch + (part)*BB_TILE_BYTES)
#define BB_TILE_B(part)                                                                            \
  BB_TILE_LOAD(6, b.at + (part)*BB_TILE_BYTES);                                                    \
  BB_TILE_LOAD(7, b.at + b.pitch + (part)*BB_TILE_BYTES)
#define BB_TILE_DOTS                                                                               \
  BB_TILE_DOT(0, 4, 6);                                                                            \
  BB_TILE_DOT(1, 4, 7);                                                                            \
  BB_TILE_DOT(2, 5, 6);                                                                            \
  BB_TILE_DOT(3, 5, 7)

/* Tiles of 16 lines, and of the next 16. */
typedef struct bb_tiles {
  const char *at;
  int64_t pitch;
} bb_tiles;

/* Sums of `chunks` times BB_TILE_DEPTH products of operands that have so many parts.  The order is one in which few tiles
 * are loaded.  Units for tiles do their work beside those for vectors: `next` is packed meanwhile. */
BB_INLINE void bb_tile_sums(bb_tiles a, bb_tiles b, int64_t chunks, const int of_a, const int of_b,
                            bb_packer *next) {
  BB_TILE_ZERO(0);
  BB_TILE_ZERO(1);
  BB_TILE_ZERO(2);
  BB_TILE_ZERO(3);
  for (; chunks > 0; chunks--, a.at += BB_TILE_PARTS, b.at += BB_TILE_PARTS) {
    BB_TILE_B(0);
    if (of_a > 2) {
      BB_TILE_A(2);
      BB_TILE_DOTS;
      if (next) bb_pack_rows(next);
    }
    if (of_a > 1) {
      BB_TILE_A(1);
      BB_TILE_DOTS;
      if (next) bb_pack_rows(next);
    }
    if (of_b > 1) {
      BB_TILE_B(1);
      if (of_a > 1) {
        BB_TILE_DOTS;
        if (next) bb_pack_rows(next);
      }
    }
    BB_TILE_A(0);
    if (of_b > 1) {
      BB_TILE_DOTS;
      if (next) bb_pack_rows(next);
    }
    if (of_b > 2) {
      BB_TILE_B(2);
      BB_TILE_DOTS;
      if (next) bb_pack_rows(next);
    }
    if (of_b > 1) {
      BB_TILE_B(0);
    }
    BB_TILE_DOTS;
    if (next) bb_pack_rows(next);
  }
}

BB_INLINE bb_tiles bb_tiles_from(bb_tiles t, int64_t line) {
  return (bb_tiles){t.at + line / BB_TILE_SIDE * t.pitch, t.pitch};
}

/* `m` x `n` of the result, at most a block. */
BB_INLINE void bb_tile_block(float *to, int64_t pitch, bb_tiles a, bb_tiles b, int64_t m, int64_t n,
                             int64_t chunks, bool add, const int of_a, const int of_b,
                             bb_packer *next) {
  float sum[BB_TILE_BLOCK][BB_TILE_BLOCK] __attribute__((aligned(64)));
  const bool there = !add && m == BB_TILE_BLOCK && n == BB_TILE_BLOCK;
  float *const at = there ? to : sum[0];
  const int64_t step = there ? pitch : BB_TILE_BLOCK;
  bb_tile_sums(a, b, chunks, of_a, of_b, next);
  BB_TILE_STORE(0, at, step);
  BB_TILE_STORE(1, at + BB_TILE_SIDE, step);
  BB_TILE_STORE(2, at + BB_TILE_SIDE * step, step);
  BB_TILE_STORE(3, at + BB_TILE_SIDE * step + BB_TILE_SIDE, step);
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
  BB_ALONE void bb_tile_blocks_##of_a##_##of_b(float *to, int64_t pitch, bb_tiles a, bb_tiles b,   \
                                               int64_t m, int64_t n, int64_t chunks, bool add,     \
                                               bb_packer *next) {                                  \
    for (int64_t i = 0; i < m; i += BB_TILE_BLOCK)                                                 \
      for (int64_t j = 0; j < n; j += BB_TILE_BLOCK)                                               \
        bb_tile_block(to + i * pitch + j, pitch, bb_tiles_from(a, i), bb_tiles_from(b, j),         \
                      bb_min(m - i, BB_TILE_BLOCK), bb_min(n - j, BB_TILE_BLOCK), chunks, add,     \
                      of_a, of_b, next);                                                           \
  }
#define BB_TILE_BLOCKS_OF(of_a)                                                                    \
  BB_TILE_BLOCKS(of_a, 1) BB_TILE_BLOCKS(of_a, 2) BB_TILE_BLOCKS(of_a, 3)
BB_TILE_BLOCKS_OF(1)
BB_TILE_BLOCKS_OF(2)
BB_TILE_BLOCKS_OF(3)

typedef void bb_tile_blocks(float *to, int64_t pitch, bb_tiles a, bb_tiles b, int64_t m, int64_t n,
                            int64_t chunks, bool add, bb_packer *next);
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

/* --- operands packed before products --- */

/* What was seen of each group of lines by piece of k, then all tiles, those of 16 lines one behind the other. */
typedef struct bb_ahead {
  int64_t k, tiles, pieces, pitch; /* tiles: where they begin, in bytes; pitch: of 16 lines */
  bb_packed seen[];
} bb_ahead;

BB_INLINE bb_tiles bb_ahead_at(const bb_ahead *h, int64_t line, int64_t k) {
  const char *at = (const char *)h + h->tiles + k / BB_TILE_DEPTH * BB_TILE_PARTS;
  return bb_tiles_from((bb_tiles){at, h->pitch}, line);
}

BB_INLINE const bb_packed *bb_ahead_seen(const bb_ahead *h, int64_t line, int64_t k) {
  return &h->seen[line / BB_TILE_GROUP * h->pieces + k / BB_TILE_PIECE];
}

BB_FUNCTION void bb_ahead_fill(bb_ahead *to, const bb_lines *of) {
  const int64_t groups = (of->lines + BB_TILE_GROUP - 1) / BB_TILE_GROUP;
  to->k = of->k;
  to->pieces = (of->k + BB_TILE_PIECE - 1) / BB_TILE_PIECE;
  to->pitch = bb_tiled(of->k, BB_TILE_DEPTH) / BB_TILE_DEPTH * BB_TILE_PARTS;
  to->tiles = BB_ALIGN((int64_t)sizeof *to + groups * to->pieces * (int64_t)sizeof(bb_packed));
  for (int64_t i = 0; i < of->lines; i += BB_TILE_GROUP)
    for (int64_t p = 0; p < of->k; p += BB_TILE_PIECE) {
      bb_lines some = *of;
      some.from += i * of->line + p * of->depth;
      some.lines = bb_min(of->lines - i, BB_TILE_GROUP);
      some.k = bb_min(of->k - p, BB_TILE_PIECE);
      bb_packer packer;
      bb_pack_begin(&packer, (char *)bb_ahead_at(to, i, p).at, to->pitch, &some);
      to->seen[i / BB_TILE_GROUP * to->pieces + p / BB_TILE_PIECE] = bb_pack_end(&packer);
    }
}

/* --- products --- */

/* The other operand: in floats of 32 or 16 bits, in panels or with strides.  ahead: NULL, or its tiles as well. */
typedef struct bb_right {
  const void *b;
  const bb_ahead *ahead;
  int64_t row, col, n, k;
  enum { BB_OF_F32, BB_OF_F16, BB_OF_BF16 } kind;
  bool panels;
} bb_right;

/* Of the panel from column j on, `k` of k from p on; held: where it is made unless it lies there. */
BB_FUNCTION const float *bb_bring_panel(const bb_right *s, int64_t j, int64_t wide, int64_t p,
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

/* What a product has room for: a panel that is multiplied by and one that is packed, an edge, tiles of `a`. */
typedef struct bb_tiles_room {
  char tiles[2][BB_TILE_PIECE * BB_PANEL_f32 * 6] __attribute__((aligned(64)));
  float held[2][BB_TILE_PIECE * BB_PANEL_f32];
  float edge[6 * BB_PANEL_f32];
  bb_packed seen[BB_TILE_LINES / BB_TILE_GROUP];
  char of_a[] __attribute__((aligned(64)));
} bb_tiles_room;

/* Lines of `a`.  ahead: NULL, or their tiles. */
typedef struct bb_left {
  const float *a;
  const bb_ahead *ahead;
  int64_t row, col, m;
} bb_left;

/* Where a product is: lines of `a` from i on, of k from p on, columns from j on. */
typedef struct bb_turn {
  int64_t i, p, j;
} bb_turn;

BB_INLINE bb_turn bb_turn_after(bb_turn t, const bb_right *s) {
  if ((t.j += BB_PANEL_f32) < s->n) return t;
  t.j = 0;
  if ((t.p += BB_TILE_PIECE) < s->k) return t;
  return (bb_turn){t.i + BB_TILE_LINES, 0, 0};
}

/* A panel of b, and its tiles unless they were there before. */
typedef struct bb_panel {
  const float *b;
  int64_t pitch, wide;
  bb_packer packer;
} bb_panel;

BB_FUNCTION void bb_panel_begin(bb_panel *to, const bb_right *s, bb_turn t, int which,
                                bb_tiles_room *with) {
  const int64_t k = bb_min(s->k - t.p, BB_TILE_PIECE);
  to->wide = bb_min(s->n - t.j, BB_PANEL_f32);
  to->b = bb_bring_panel(s, t.j, to->wide, t.p, k, with->held[which], &to->pitch);
  if (s->ahead) return;
  const bb_lines of = {to->b, 1, to->pitch, to->wide, k, true};
  bb_pack_begin(&to->packer, with->tiles[which],
                bb_tiled(k, BB_TILE_DEPTH) / BB_TILE_DEPTH * BB_TILE_PARTS, &of);
}

/* Groups of lines of `a`, a piece of k: tiles of them. */
BB_FUNCTION void bb_pack_left(const bb_left *l, bb_turn t, int64_t k, bb_tiles_room *with) {
  const int64_t pitch = bb_tiled(k, BB_TILE_DEPTH) / BB_TILE_DEPTH * BB_TILE_PARTS;
  const int64_t end = bb_min(l->m - t.i, BB_TILE_LINES);
  for (int64_t g = 0; g < end; g += BB_TILE_GROUP) {
    const bb_lines of = {l->a + (t.i + g) * l->row + t.p * l->col, l->row, l->col,
                         bb_min(end - g, BB_TILE_GROUP),           k,      false};
    bb_packer packer;
    bb_pack_begin(&packer, with->of_a + g / BB_TILE_SIDE * pitch, pitch, &of);
    with->seen[g / BB_TILE_GROUP] = bb_pack_end(&packer);
  }
}

/* A panel's columns of the result, of which a row has room for `room`; what comes next is packed meanwhile. */
BB_FUNCTION void bb_tiles_panel(float *to, int64_t pitch, const bb_left *l, const bb_right *s,
                                bb_turn t, bool add, bb_panel *panel, int64_t room, bb_packer *next,
                                bb_tiles_room *with) {
  const int64_t k = bb_min(s->k - t.p, BB_TILE_PIECE);
  const int64_t chunks = bb_tiled(k, BB_TILE_DEPTH) / BB_TILE_DEPTH;
  const bb_packed of_b =
      s->ahead ? *bb_ahead_seen(s->ahead, t.j, t.p) : bb_pack_end(&panel->packer);
  const bb_tiles b = s->ahead ? bb_ahead_at(s->ahead, t.j, t.p)
                              : (bb_tiles){panel->packer.to, panel->packer.pitch};
  const int64_t end = bb_min(l->m, t.i + BB_TILE_LINES);
  for (int64_t i = t.i; i < end; i += BB_TILE_GROUP) {
    const int64_t m = bb_min(end - i, BB_TILE_GROUP), g = i - t.i;
    const bb_tiles held = {with->of_a, chunks * BB_TILE_PARTS};
    const bb_tiles a = l->ahead ? bb_ahead_at(l->ahead, i, t.p) : bb_tiles_from(held, g);
    const bb_packed of_a =
        *(l->ahead ? bb_ahead_seen(l->ahead, i, t.p) : &with->seen[g / BB_TILE_GROUP]);
    if (bb_tiles_fit(&of_a, &of_b))
      bb_tile_ways[of_a.parts - 1][of_b.parts - 1](to + i * pitch, pitch, a, b, m, panel->wide,
                                                   chunks, add, next);
    else
      bb_dot_panel_f32(to + i * pitch, pitch, l->a + i * l->row + t.p * l->col, l->row, l->col,
                       panel->b, panel->pitch, m, panel->wide, room, k, add, with->edge);
  }
}

/* What tiles have behind k is 0 in those of one operand at least: b is packed anew where both have more. */
BB_FUNCTION void bb_tiles_any(float *to, int64_t pitch, const bb_left *l, const bb_right *with_b,
                              bool add, bb_tiles_room *with) {
  bb_right beside = *with_b;
  const bb_right *const s = &beside;
  if (l->ahead && s->ahead && l->ahead->k != s->k && s->ahead->k != s->k) beside.ahead = NULL;
  bb_panel panel[2];
  int now = 0;
  bb_turn t = {0, 0, 0};
  if (l->m <= 0 || s->n <= 0 || s->k <= 0) return;
  bb_tiles_begin();
  bb_panel_begin(&panel[now], s, t, now, with);
  while (t.i < l->m) {
    const bb_turn after = bb_turn_after(t, s);
    const bool more = after.i < l->m;
    if (t.j == 0 && !l->ahead) bb_pack_left(l, t, bb_min(s->k - t.p, BB_TILE_PIECE), with);
    if (more) bb_panel_begin(&panel[!now], s, after, !now, with);
    bb_tiles_panel(to + t.j, pitch, l, s, t, add || t.p, &panel[now], bb_max(s->n, pitch) - t.j,
                   more && !s->ahead ? &panel[!now].packer : NULL, with);
    t = after;
    now = !now;
  }
  bb_tiles_end();
}

#endif

/* Fewer lines than a block has are not worth packing for. */
#ifdef BB_TILES
#define BB_BY_TILES(m, n, k) ((m) >= BB_TILE_BLOCK && (n) >= BB_TILE_BLOCK && (k) > 0)
#define BB_TILES_ANY bb_tiles_any
#define BB_AHEAD_FILL bb_ahead_fill
#else
#define BB_BY_TILES(m, n, k) false
#define BB_TILES_ANY(...) (void)0
#define BB_AHEAD_FILL(...) (void)0
#endif
#define BB_TILES_OF(suffix, element, of)                                                           \
  void bb_tiles_##suffix(float *to, int64_t pitch, const float *a, int64_t a_row, int64_t a_col,   \
                         const element *b, int64_t b_row, int64_t b_col, int64_t m, int64_t n,     \
                         int64_t k, bool add, void *room) {                                        \
    if (BB_BY_TILES(m, n, k))                                                                      \
      BB_TILES_ANY(to, pitch, (&(bb_left){a, NULL, a_row, a_col, m}),                              \
                   (&(bb_right){b, NULL, b_row, b_col, n, k, of, false}), add, room);              \
    else                                                                                           \
      bb_dot_##suffix(to, pitch, a, a_row, a_col, b, b_row, b_col, m, n, k, add, room);            \
  }                                                                                                \
  void bb_tiles_panels_##suffix(float *to, int64_t pitch, const float *a, int64_t a_row,           \
                                int64_t a_col, const element *b, int64_t m, int64_t n, int64_t k,  \
                                bool add, void *room) {                                            \
    if (BB_BY_TILES(m, n, k))                                                                      \
      BB_TILES_ANY(to, pitch, (&(bb_left){a, NULL, a_row, a_col, m}),                              \
                   (&(bb_right){b, NULL, 0, 0, n, k, of, true}), add, room);                       \
    else                                                                                           \
      bb_dot_panels_##suffix(to, pitch, a, a_row, a_col, b, m, n, k, add, room);                   \
  }
BB_TILES_OF(f32, float, BB_OF_F32)
BB_TILES_OF(f16, uint16_t, BB_OF_F16)
BB_TILES_OF(bf16, uint16_t, BB_OF_BF16)

void bb_tiles_ahead_f32(void *to, const float *from, int64_t line, int64_t depth, int64_t lines,
                        int64_t k, bool columns) {
  BB_AHEAD_FILL(to, (&(bb_lines){from, line, depth, lines, k, columns}));
}

void bb_tiles_with_f32(float *to, int64_t pitch, const float *a, int64_t a_row, int64_t a_col,
                       const void *a_ahead, const float *b, int64_t b_row, int64_t b_col,
                       const void *b_ahead, int64_t m, int64_t n, int64_t k, bool add, void *room) {
  if (BB_BY_TILES(m, n, k))
    BB_TILES_ANY(to, pitch, (&(bb_left){a, a_ahead, a_row, a_col, m}),
                 (&(bb_right){b, b_ahead, b_row, b_col, n, k, BB_OF_F32, false}), add, room);
  else
    bb_dot_f32(to, pitch, a, a_row, a_col, b, b_row, b_col, m, n, k, add, room);
}
#undef BB_TILES_OF
#undef BB_TILES_ANY
#undef BB_AHEAD_FILL
#undef BB_BY_TILES
