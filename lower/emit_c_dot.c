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

/* A turned result is the other operand's product with the one. */
void bb_c_dot(bb_c *c, const bb_tile_stmt *s, bool fresh) {
  const bb_tile *to = &c->p->tile[s->result];
  const bool turned = c->tile[s->result].turned, real = bb_dtype_is_float(to->dtype);
  const bool roomy = real || to->dtype == BB_I32;
  const uint32_t most = bb_c_depth(c->p, s), a = turned ? 1 : 0, b = 1 - a;
  const uint32_t left = s->operand[a], right = s->operand[b];
  const char *across[2], *along[2];
  for (uint32_t i = 0; i < 2; i++) {
    const bool deep_rows = s->transposed[i] != (i == 1);
    across[i] = stride(c, s->operand[i], !deep_rows);
    along[i] = stride(c, s->operand[i], deep_rows);
  }
  const char *k = bb_c_count(c, s->operand[0], s->transposed[0] ? BB_AXIS_ROW : BB_AXIS_COL);
  const char *m = bb_c_count(c, s->result, turned ? BB_AXIS_COL : BB_AXIS_ROW);
  const char *n = bb_c_count(c, s->result, turned ? BB_AXIS_ROW : BB_AXIS_COL);
  const char *end =
      bb_arena_printf(arena(c), "%s, %s, %s, %s%s", m, n, k,
                      s->accumulate && !fresh ? "true" : "false", roomy ? ", panel" : "");
  const char *result =
      bb_arena_printf(arena(c), "t%u, %s", s->result, to->cols ? bb_c_pitch(c, s->result) : "1");
  /* Bundles are of as many rows as there were when they were made: fewer of them are read where they were loaded. */
  const bool bundled =
      c->tile[left].bundled && !bb_c_has_end(c, s->result, turned ? BB_AXIS_COL : BB_AXIS_ROW);
  const char *with = bundled ? bb_arena_printf(arena(c), "t%u_in, %u, BB_BUNDLED", left, most)
                             : bb_arena_printf(arena(c), "t%u, %s, %s", left, across[a], along[a]);
  const bb_c_tile *held = &c->tile[right];
  const char *suffix = held->narrow || held->panels ? bb_c_memory_suffix(c, c->p->tile[right].dtype)
                                                    : bb_c_suffix(c, to->dtype);
  const bool tiles = bb_c_is_by_tiles(c, s);
  const char *by = tiles ? "tiles" : "dot";
  if (tiles) make_room(c, tiles_room(turned ? to->cols : to->rows, most));
  if (to->dtype == BB_I32) make_room(c, bytes_room(turned ? to->cols : to->rows, most));
  if (held->panels) {
    bb_c_line(c, "bb_%s_panels_%s(%s, %s, t%u, %s);", by, suffix, result, with, right, end);
    make_room(c, EDGE);
    return;
  }
  if (bb_c_is_ahead(c, left) || bb_c_is_ahead(c, right))
    bb_c_line(c, "bb_tiles_with_%s(%s, %s, %s, t%u, %s, %s, %s, %s);", suffix, result, with,
              ahead(c, left), right, across[b], along[b], ahead(c, right), end);
  else
    bb_c_line(c, "bb_%s_%s(%s, %s, t%u, %s, %s, %s);", by, suffix, result, with, right, across[b],
              along[b], end);
  if (real) make_room(c, (int64_t)most * PANELS + EDGE);
}
