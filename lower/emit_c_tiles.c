/* emit_c_tiles.c - which products are made by tiles of the processor (device/cpu_tiles.h), and which of their operands
 * are packed before them.
 *
 * Tiles multiply more than twice as fast as vectors do, but of operands that are packed for them.  What is loaded less often
 * than products read it is packed where it is loaded; its original stays, for products that tiles are not for.
 */
#include "emit_c_parts.h"

#include <math.h>

double bb_c_trips(const bb_tile_loop *loop) {
  const double unknown = 16;
  double all = 0;
  for (uint32_t i = 0; i < loop->stretches; i++) {
    bb_tile_index from = loop->stretch[i].from, to = loop->stretch[i].to;
    bool known =
        to && from->op == BB_X_CONST && to->op == BB_X_CONST && loop->step->op == BB_X_CONST;
    if (!to)
      all += 1;
    else
      all += known ? ceil(fmax(0, to->number - from->number) / loop->step->number) : unknown;
  }
  return all;
}

typedef void visit(bb_c *c, const bb_tile_stmt *s, double times, bool *changed);

static void walk(bb_c *c, const bb_tile_body *body, double times, visit *function, bool *changed) {
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    function(c, s, times, changed);
    if (s->loop) walk(c, &s->loop->body, times * bb_c_trips(s->loop), function, changed);
    walk(c, &s->body, times, function, changed);
  }
}

/* --- prices --- */

enum { BLOCK = 32, PACKED_LINES = 512 };

static uint32_t tiled(uint32_t count) {
  return (count + BLOCK - 1) / BLOCK * BLOCK;
}

/* The contracted axis is the operand's rows. */
static bool is_deep_by_row(const bb_tile_stmt *s, uint32_t operand) {
  return s->transposed[operand] != (operand == 1);
}

/* Of an element, in cycles: as it lies, and across.  The panel that comes next is packed while units for tiles are at
 * work, which hides a fifth of it. */
static double packing(bool across, bool hidden) {
  return across ? 1.2 : hidden ? 0.5 : 0.6;
}

/* In cycles of a core, as measured: multiply-adds in f32 by tiles, of which each takes six; and by vectors, nine tenths of
 * what there are units for. */
double bb_c_price_of_tiles(const bb_c *c, const bb_tile_stmt *s, bool turned,
                           const bool lies_turned[2]) {
  const double by_tiles = 62, by_vectors = 32 * 0.9;
  const bb_tile *to = &c->p->tile[s->result];
  const uint32_t k = bb_c_depth(c->p, s), a = turned ? 1 : 0;
  if (!c->tiles || !bb_dtype_is_float(to->dtype) || to->dtype == BB_F64 || to->rows < BLOCK ||
      to->cols < BLOCK || k < BLOCK)
    return INFINITY;
  const uint32_t repeated = turned ? to->cols : to->rows;
  double cycles = (double)tiled(to->rows) * tiled(to->cols) * tiled(k) / by_tiles;
  for (uint32_t i = 0; i < 2; i++) {
    const bool beside = lies_turned[i] != is_deep_by_row(s, i); /* lines lie side by side */
    const double packs = c->tile[s->operand[i]].packs;
    cycles += packs * (i == a ? 1 : ceil(repeated / (double)PACKED_LINES)) *
              tiled(i ? to->cols : to->rows) * tiled(k) *
              packing(beside == (i == a), i != a && packs == 1);
  }
  return cycles * by_vectors;
}

bool bb_c_is_by_tiles(const bb_c *c, const bb_tile_stmt *s) {
  const double gain = 1.15; /* at least */
  const bb_tile *to = &c->p->tile[s->result];
  const bool lie[2] = {c->tile[s->operand[0]].turned, c->tile[s->operand[1]].turned};
  return bb_c_price_of_tiles(c, s, c->tile[s->result].turned, lie) * gain <
         (double)to->rows * to->cols * bb_c_depth(c->p, s);
}

/* --- operands that are packed before --- */

static bool may_be_ahead(const bb_c *c, uint32_t tile) {
  const bb_tile *t = &c->p->tile[tile];
  const bb_c_tile *held = &c->tile[tile];
  return t->rows > 1 && t->cols > 1 && t->dtype == BB_F32 && held->writers == 1 &&
         held->loads > 0 && !held->panels && !held->packable;
}

static void count_loads(bb_c *c, const bb_tile_stmt *s, double times, bool *changed) {
  (void)changed;
  if (s->kind == BB_TILE_LOAD) c->tile[s->result].loads = times;
}

/* Products alone may read it, and each more often than it is loaded. */
static void count_packs(bb_c *c, const bb_tile_stmt *s, double times, bool *changed) {
  (void)changed;
  for (uint32_t i = 0; i < s->operands; i++) {
    bb_c_tile *held = &c->tile[s->operand[i]];
    const bool fits =
        s->kind == BB_TILE_DOT && s->operand[0] != s->operand[1] && may_be_ahead(c, s->operand[i]);
    held->packs = fmax(held->packs, fits ? fmin(1, held->loads / times) : 1);
  }
}

void bb_c_count_packs(bb_c *c) {
  walk(c, &c->p->body, 1, count_loads, NULL);
  walk(c, &c->p->body, 1, count_packs, NULL);
}

static void never_ahead(bb_c_tile *held, bool *changed) {
  *changed |= held->packs != 1;
  held->packs = 1;
}

/* All products have to take it in the same way, and the other operand as floats with strides. */
static void settle_way(bb_c *c, const bb_tile_stmt *s, double times, bool *changed) {
  (void)times;
  for (uint32_t i = 0; i < s->operands && s->kind == BB_TILE_DOT; i++) {
    bb_c_tile *held = &c->tile[s->operand[i]];
    const bool columns = i != (c->tile[s->result].turned ? 1 : 0), rows = is_deep_by_row(s, i);
    const bool differs = held->by_tiles && (held->columns != columns || held->deep_rows != rows);
    const bb_c_tile *beside = &c->tile[s->operand[1 - i]];
    if (differs || held->narrow || beside->narrow || beside->panels) never_ahead(held, changed);
    held->by_tiles = true;
    held->columns = columns;
    held->deep_rows = rows;
  }
}

/* And by tiles. */
static void settle_price(bb_c *c, const bb_tile_stmt *s, double times, bool *changed) {
  (void)times;
  if (s->kind != BB_TILE_DOT || bb_c_is_by_tiles(c, s)) return;
  for (uint32_t i = 0; i < s->operands; i++) never_ahead(&c->tile[s->operand[i]], changed);
}

void bb_c_choose_ahead(bb_c *c) {
  bool changed = false;
  walk(c, &c->p->body, 1, settle_way, &changed);
  do {
    changed = false;
    walk(c, &c->p->body, 1, settle_price, &changed);
  } while (changed);
}

bool bb_c_is_ahead(const bb_c *c, uint32_t tile) {
  return c->tile[tile].packs > 0 && c->tile[tile].packs < 1;
}

int64_t bb_c_ahead_bytes(const bb_c *c, uint32_t tile) {
  enum { HEAD = 32, SEEN = 12, GROUP = 64, PIECE = 128, BYTES = 6 };
  const bb_tile *t = &c->p->tile[tile];
  const bool by_row = c->tile[tile].deep_rows;
  const int64_t lines = by_row ? t->cols : t->rows, k = by_row ? t->rows : t->cols;
  const int64_t head = HEAD + (lines + GROUP - 1) / GROUP * ((k + PIECE - 1) / PIECE) * SEEN;
  return (head + 63) / 64 * 64 + (int64_t)tiled((uint32_t)lines) * tiled((uint32_t)k) * BYTES;
}
