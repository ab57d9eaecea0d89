/* emit_c_dot.c - products of tiles in C: by vectors, or by the processor's tiles (emit_c_tiles.c). */
#include "emit_c_parts.h"

static bb_arena *arena(const bb_c *c) {
  return c->out->arena;
}

uint32_t bb_c_depth(const bb_tile_program *p, const bb_tile_stmt *s) {
  const bb_tile *x = &p->tile[s->operand[0]];
  const uint32_t depth = s->transposed[0] ? x->rows : x->cols;
  return depth ? depth : 1;
}

/* Bytes, of the widest panels there are: BB_PANELS of cpu_product.h for each of k, and BB_ROWS rows of one. */
enum { PANELS = 4 * 256, EDGE = 6 * 256 };

/* Of bb_tiles_room (device/cpu_tiles.h), without the tiles of lines that are repeated; what those have in an element. */
enum {
  TILES_ROOM = 2 * 128 * 64 * 10 + 6 * 64 * 4 + 128,
  TILES_BYTES = 6,
  TILES_PIECE = 128,
  TILES_LINES = 512
};

static int64_t tiles_room(uint32_t lines, uint32_t k) {
  const int64_t most = lines < TILES_LINES ? lines : TILES_LINES;
  const int64_t piece = k < TILES_PIECE ? k : TILES_PIECE;
  return TILES_ROOM + (most + 31) / 32 * 32 * ((piece + 31) / 32 * 32) * TILES_BYTES;
}

/* Its axis of the result, and what is contracted. */
static const char *stride(const bb_c *c, uint32_t tile, bool by_row) {
  return (by_row ? bb_c_row_stride : bb_c_col_stride)(c, tile);
}

void bb_c_pack_ahead(bb_c *c, uint32_t tile) {
  const bool deep_rows = c->tile[tile].deep_rows;
  bb_c_line(c, "bb_tiles_ahead_f32(t%u_in, t%u, %s, %s, %s, %s, %s);", tile, tile,
            stride(c, tile, !deep_rows), stride(c, tile, deep_rows),
            bb_c_count(c, tile, deep_rows ? BB_AXIS_COL : BB_AXIS_ROW),
            bb_c_count(c, tile, deep_rows ? BB_AXIS_ROW : BB_AXIS_COL),
            c->tile[tile].columns ? "true" : "false");
}

static const char *ahead(bb_c *c, uint32_t tile) {
  return bb_c_is_ahead(c, tile) ? bb_arena_printf(arena(c), "t%u_in", tile) : "0";
}

/* Of bb_dot_i32() (device/cpu.h): both operands in bytes, and sums of their lines. */
static int64_t bytes_room(uint32_t lines, uint32_t k) {
  return 4 * ((int64_t)lines + 64) * ((int64_t)k / 4 + 4) + 64;
}

static void make_room(bb_c *c, int64_t bytes) {
  if (bytes > c->panel) c->panel = bytes;
}

/* A product as the device library is called for it.  A turned result is the other operand's product with the one. */
typedef struct product {
  uint32_t left, right, most;                   /* most: of what is contracted */
  const char *result;                           /* with its pitch */
  const char *with;                             /* the left operand, with its strides */
  const char *across[2], *along[2], *m, *n, *k; /* of the left operand, then of the right one */
  const char *add;
} product;

static product product_of(bb_c *c, const bb_tile_stmt *s, bool fresh) {
  const bool turned = c->tile[s->result].turned;
  product d = {.most = bb_c_depth(c->p, s)};
  d.left = s->operand[turned], d.right = s->operand[!turned];
  for (uint32_t i = 0; i < 2; i++) {
    const uint32_t side = turned ? 1 - i : i;
    const bool deep_rows = s->transposed[side] != (side == 1);
    d.across[i] = stride(c, s->operand[side], !deep_rows);
    d.along[i] = stride(c, s->operand[side], deep_rows);
  }
  d.k = bb_c_count(c, s->operand[0], s->transposed[0] ? BB_AXIS_ROW : BB_AXIS_COL);
  d.m = bb_c_count(c, s->result, turned ? BB_AXIS_COL : BB_AXIS_ROW);
  d.n = bb_c_count(c, s->result, turned ? BB_AXIS_ROW : BB_AXIS_COL);
  d.add = s->accumulate && !fresh ? "true" : "false";
  d.result = bb_arena_printf(arena(c), "t%u, %s", s->result,
                             c->p->tile[s->result].cols ? bb_c_pitch(c, s->result) : "1");
  /* Bundles are of as many rows as there were when they were made: fewer of them are read where they were loaded. */
  const bool bundled =
      c->tile[d.left].bundled && !bb_c_has_end(c, s->result, turned ? BB_AXIS_COL : BB_AXIS_ROW);
  d.with = bundled ? bb_arena_printf(arena(c), "t%u_in, %u, BB_BUNDLED", d.left, d.most)
                   : bb_arena_printf(arena(c), "t%u, %s, %s", d.left, d.across[0], d.along[0]);
  return d;
}

void bb_c_dot(bb_c *c, const bb_tile_stmt *s, bool fresh) {
  const bb_tile *to = &c->p->tile[s->result];
  const bool turned = c->tile[s->result].turned, real = bb_dtype_is_float(to->dtype);
  const bool roomy = real || to->dtype == BB_I32;
  const product d = product_of(c, s, fresh);
  const char *end =
      bb_arena_printf(arena(c), "%s, %s, %s, %s%s", d.m, d.n, d.k, d.add, roomy ? ", panel" : "");
  const bb_c_tile *held = &c->tile[d.right];
  const char *suffix = held->narrow || held->panels
                           ? bb_c_memory_suffix(c, c->p->tile[d.right].dtype)
                           : bb_c_suffix(c, to->dtype);
  const bool tiles = bb_c_is_by_tiles(c, s);
  const char *by = tiles ? "tiles" : "dot";
  if (tiles) make_room(c, tiles_room(turned ? to->cols : to->rows, d.most));
  if (to->dtype == BB_I32) make_room(c, bytes_room(turned ? to->cols : to->rows, d.most));
  if (held->panels) {
    bb_c_line(c, "bb_%s_panels_%s(%s, %s, t%u, %s);", by, suffix, d.result, d.with, d.right, end);
    make_room(c, EDGE);
    return;
  }
  const char *reach = tiles || !real || c->tile[d.right].narrow ? NULL : bb_c_reach(c, s);
  if (reach)
    bb_c_line(c, "bb_dot_rising_%s(%s, %s, t%u, %s, %s, %s, %s);", suffix, d.result, d.with,
              d.right, d.across[1], d.along[1], end, reach);
  else if (bb_c_is_ahead(c, d.left) || bb_c_is_ahead(c, d.right))
    bb_c_line(c, "bb_tiles_with_%s(%s, %s, %s, t%u, %s, %s, %s, %s);", suffix, d.result, d.with,
              ahead(c, d.left), d.right, d.across[1], d.along[1], ahead(c, d.right), end);
  else
    bb_c_line(c, "bb_%s_%s(%s, %s, t%u, %s, %s, %s);", by, suffix, d.result, d.with, d.right,
              d.across[1], d.along[1], end);
  if (real) make_room(c, (int64_t)d.most * PANELS + EDGE);
}

/* --- with other work beside --- */

/* Of the device library: rows of a group, columns of a panel, and panels that there is room for. */
enum { BESIDE_ROWS = 6, BESIDE_WIDTH = 64, BESIDE_PANELS = 4 };

bool bb_c_may_be_beside(const bb_c *c, const bb_tile_stmt *s) {
  const bb_tile *to = &c->p->tile[s->result];
  const bb_c_tile *result = &c->tile[s->result];
  const uint32_t left = s->operand[result->turned], right = s->operand[!result->turned];
  const uint32_t rows = result->turned ? to->cols : to->rows,
                 columns = result->turned ? to->rows : to->cols;
  bool floats = to->dtype == BB_F32 && c->p->tile[left].dtype == BB_F32 &&
                c->p->tile[right].dtype == BB_F32 && !c->exact && c->vector_bytes == 64;
  return floats && !bb_c_is_by_tiles(c, s) && !c->tile[right].narrow && !c->tile[right].panels &&
         !bb_c_is_ahead(c, left) && !bb_c_is_ahead(c, right) && rows >= BESIDE_ROWS &&
         columns >= BESIDE_WIDTH && columns <= BESIDE_PANELS * BESIDE_WIDTH &&
         !bb_c_is_live(c, s->result, result->turned ? BB_AXIS_ROW : BB_AXIS_COL);
}

void bb_c_begin_beside(bb_c *c, const bb_tile_stmt *s, bool fresh, const char *units,
                       const char *followers) {
  const product d = product_of(c, s, fresh);
  const char *reach = bb_c_reach(c, s);
  bb_c_line(c, "BB_BESIDE(%s, %s, t%u, %s, %s, %s, %s, %s, %s, panel, %s, %s, %s)", d.result,
            d.with, d.right, d.across[1], d.along[1], d.m, d.n, d.k, d.add, reach ? reach : d.k,
            units, followers);
  make_room(c, (int64_t)d.most * PANELS + EDGE);
}
