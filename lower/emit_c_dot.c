/* emit_c_dot.c - products of tiles in C: by vectors, or by the processor's tiles where those are sooner done.
 */
#include "emit_c_parts.h"

#include <math.h>

static bb_arena *arena(const bb_c *c) {
  return c->out->arena;
}

static uint32_t rows_of(const bb_tile *t) {
  return t->rows ? t->rows : 1;
}
static uint32_t cols_of(const bb_tile *t) {
  return t->cols ? t->cols : 1;
}

uint32_t bb_c_depth(const bb_tile_program *p, const bb_tile_stmt *s) {
  const bb_tile *x = &p->tile[s->operand[0]];
  return s->transposed[0] ? rows_of(x) : cols_of(x);
}

/* Bytes, of the widest panels there are: BB_PANELS of cpu_product.h for each of k, and BB_ROWS rows of one. */
enum { PANELS = 4 * 256, EDGE = 6 * 256 };

/* Products by tiles (device/cpu_tiles.h), in bytes: of room beside the tiles of the repeated operand, and those of an
 * element. */
enum {
  TILES_ROOM = 128 * 64 * 10 + 6 * 64 * 4,
  TILES_BYTES = 6,
  TILES_PIECE = 128,
  TILES_LINES = 512
};

static uint32_t tiled(uint32_t count) {
  return (count + 31) / 32 * 32;
}

/* Of m rows by n along vectors, k deep: are they sooner made by tiles, by a seventh at least?  In cycles of a core, as
 * measured: 85 multiply-adds in f32 by tiles at four fifths of that, 32 by vectors at nine tenths, and an element that is
 * packed takes about one. */
static bool is_for_tiles(const bb_c *c, uint32_t m, uint32_t n, uint32_t k) {
  const double packed = 0.9, by_tiles = 85 * 0.8, by_vectors = 32 * 0.9, gain = 1.15;
  const double tm = tiled(m), tn = tiled(n), tk = tiled(k), again = ceil(m / (double)TILES_LINES);
  const double cycles = tm * tn * tk / by_tiles + packed * tk * (tm + again * tn);
  return c->tiles && m >= 32 && n >= 32 && k >= 32 &&
         cycles * gain < (double)m * n * k / by_vectors;
}

static int64_t tiles_room(uint32_t m, uint32_t k) {
  const int64_t lines = tiled(m < TILES_LINES ? m : TILES_LINES);
  return TILES_ROOM + lines * tiled(k < TILES_PIECE ? k : TILES_PIECE) * TILES_BYTES;
}

/* A turned result is the other operand's
 * product with the one. */
void bb_c_dot(bb_c *c, const bb_tile_stmt *s, bool fresh) {
  const bb_tile *to = &c->p->tile[s->result];
  bool turned = c->tile[s->result].turned, real = bb_dtype_is_float(to->dtype);
  uint32_t most = bb_c_depth(c->p, s);
  const char *across[2], *along[2],
      *k = bb_c_count(c, s->operand[0], s->transposed[0] ? BB_AXIS_ROW : BB_AXIS_COL);
  for (int i = 0; i < 2; i++) {
    uint32_t tile = s->operand[i];
    bool swapped = s->transposed[i] != (i == 1); /* the contracted axis is its rows */
    across[i] = swapped ? bb_c_col_stride(c, tile) : bb_c_row_stride(c, tile);
    along[i] = swapped ? bb_c_row_stride(c, tile) : bb_c_col_stride(c, tile);
  }
  int a = turned ? 1 : 0, b = 1 - a;
  const char *rows = bb_c_count(c, s->result, BB_AXIS_ROW);
  const char *cols = bb_c_count(c, s->result, BB_AXIS_COL);
  bool bundled = c->tile[s->operand[a]].bundled;
  const char *with =
      bundled ? bb_arena_printf(arena(c), "t%u_in, %s, BB_BUNDLED", s->operand[a], k)
              : bb_arena_printf(arena(c), "t%u, %s, %s", s->operand[a], across[a], along[a]);
  const bb_c_tile *held = &c->tile[s->operand[b]];
  const char *suffix = held->narrow || held->panels
                           ? bb_c_memory_suffix(c, c->p->tile[s->operand[b]].dtype)
                           : bb_c_suffix(c, to->dtype);
  const uint32_t lines = turned ? cols_of(to) : rows_of(to);
  const bool tiles = real && !bundled && to->dtype != BB_F64 &&
                     is_for_tiles(c, lines, turned ? rows_of(to) : cols_of(to), most);
  const char *by = tiles ? "tiles" : "dot";
  if (tiles && c->panel < tiles_room(lines, most)) c->panel = tiles_room(lines, most);
  if (held->panels) {
    bb_c_line(c, "bb_%s_panels_%s(t%u, %s, %s, t%u, %s, %s, %s, %s, panel);", by, suffix, s->result,
              to->cols ? bb_c_pitch(c, s->result) : "1", with, s->operand[b], turned ? cols : rows,
              turned ? rows : cols, k, s->accumulate && !fresh ? "true" : "false");
    if (c->panel < EDGE) c->panel = EDGE;
    return;
  }
  bb_c_line(c, "bb_%s_%s(t%u, %s, %s, t%u, %s, %s, %s, %s, %s, %s%s);", by, suffix, s->result,
            to->cols ? bb_c_pitch(c, s->result) : "1", with, s->operand[b], across[b], along[b],
            turned ? cols : rows, turned ? rows : cols, k,
            s->accumulate && !fresh ? "true" : "false", real ? ", panel" : "");
  if (!real) return;
  int64_t bytes = (int64_t)most * PANELS + EDGE;
  if (bytes > c->panel) c->panel = bytes;
}
