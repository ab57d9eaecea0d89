/* emit_c_beside.c - products, and sweeps that run beside them.
 *
 * A sweep of exps behind a product, of which neither knows the other, and one that folds what the product makes, are cut into units
 * (emit_c_sweep.c) that stand between the product's steps (device/cpu_beside.h).
 */
#include "emit_c_parts.h"
#include "tile_edit.h"

static bb_arena *arena(const bb_c *c) {
  return c->out->arena;
}

/* A sweep and its fold, neighbours among the statements that run, that have units; else `is` is not set. */
typedef struct sweeping {
  const bb_tile_stmt *map, *fold;
  uint32_t at, last; /* where they stand */
  bool is;
} sweeping;

static uint32_t next_running(const bb_tile_body *b, uint32_t at, uint32_t stretch) {
  for (at++; at < b->count && !bb_c_runs_in(b->stmt[at], stretch);) at++;
  return at;
}

static sweeping sweep_behind(bb_c *c, const bb_tile_body *b, uint32_t at, uint32_t stretch) {
  sweeping w = {.at = next_running(b, at, stretch)};
  w.last = next_running(b, w.at, stretch);
  if (w.last >= b->count) return w;
  w.map = b->stmt[w.at];
  w.fold = b->stmt[w.last];
  w.is = bb_c_has_units(c, w.map, w.fold);
  return w;
}

static bool are_one(const bb_c *c, uint32_t a, uint32_t b) {
  return a != BB_NONE && b != BB_NONE && bb_c_owner(c, a) == bb_c_owner(c, b);
}

/* Does a sweep write memory that a product reads? */
static bool writes_operand(const bb_c *c, const bb_tile_stmt *dot, const sweeping *w) {
  for (uint32_t i = 0; i < dot->operands; i++)
    if (are_one(c, w->map->result, dot->operand[i]) || are_one(c, w->fold->result, dot->operand[i]))
      return true;
  return false;
}

/* Does it read or write what a statement makes? */
static bool knows(const bb_c *c, const sweeping *w, uint32_t made) {
  bool does = are_one(c, w->map->result, made) || are_one(c, w->fold->result, made);
  for (uint32_t i = 0; i < w->map->operands; i++) does |= are_one(c, w->map->operand[i], made);
  return does;
}

/* A sweep over anything but what a product reads and writes, worth to run beside it. */
static bool is_beside(const bb_c *c, const bb_tile_stmt *dot, const sweeping *w) {
  return w->is && bb_c_has_exp(c, w->map) && !writes_operand(c, dot, w) &&
         !knows(c, w, dot->result);
}

/* A sweep over what a product makes, whose lines are its rows. */
static bool follows(const bb_c *c, const bb_tile_stmt *dot, const sweeping *w) {
  if (!w->is || bb_c_has_exp(c, w->map) || writes_operand(c, dot, w)) return false;
  const bb_tile *made = &c->p->tile[dot->result], *t = &c->p->tile[w->map->result];
  return bb_tile_reads(w->map, dot->result) && !bb_tile_writes(w->fold, dot->result) &&
         c->tile[dot->result].turned && made->rows == bb_c_panel(c->vector_bytes) &&
         made->rows == t->rows && made->cols == t->cols;
}

static bool are_strangers(const bb_c *c, const sweeping *a, const sweeping *b) {
  return !knows(c, a, b->map->result) && !knows(c, a, b->fold->result) &&
         !knows(c, b, a->map->result) && !knows(c, b, a->fold->result);
}

static void put_units(bb_c *c, const sweeping *w, const char *condition, const char *unit) {
  bb_c_line(c, "if (%s) {", condition);
  c->indent++;
  bb_c_line(c, "const int64_t unit = %s++;", unit);
  c->here.at = w->at;
  bb_c_put_unit(c, w->map, w->fold);
  c->indent--;
  bb_c_line(c, "}");
}

uint32_t bb_c_dot_and_sweeps(bb_c *c, const bb_tile_body *b, uint32_t at, uint32_t stretch,
                             bool fresh) {
  const bb_tile_stmt *dot = b->stmt[at];
  uint32_t last = at;
  if (!c->twins || !bb_c_may_be_beside(c, dot)) return at;
  sweeping beside = sweep_behind(c, b, at, stretch);
  beside.is = is_beside(c, dot, &beside);
  if (beside.is) last = beside.last;
  sweeping over = sweep_behind(c, b, last, stretch);
  over.is = follows(c, dot, &over) && (!beside.is || are_strangers(c, &beside, &over));
  if (over.is) last = over.last;
  if (last == at) return at;
  if (beside.is) bb_c_begin_units(c, beside.fold);
  if (over.is) bb_c_begin_units(c, over.fold);
  bb_c_begin_beside(c, dot, fresh, beside.is ? bb_c_units(c, beside.map) : "0",
                    over.is ? bb_c_units(c, over.map) : "0");
  c->indent++;
  if (beside.is) put_units(c, &beside, "bb_beside_is_due(&bb_d)", "bb_d.unit");
  if (over.is) {
    const char *end = bb_c_unit_end(c, over.map, "bb_d.follower");
    put_units(c, &over, bb_arena_printf(arena(c), "bb_beside_follows(&bb_d, %s)", end),
              "bb_d.follower");
  }
  c->indent--;
  bb_c_line(c, "BB_BESIDE_END");
  return last;
}
