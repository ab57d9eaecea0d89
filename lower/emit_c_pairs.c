/* emit_c_pairs.c - loops over strips in C, two at once where that pays.
 *
 * What an exp takes beside multiply-adds goes to units that idle while a product runs.  Where a loop over strips (emit_c_strip.c) makes
 * a block by a product, sweeps over it, and takes what that gave to a second product, its body runs for two strips at once, whose
 * statements know nothing of each other: the sweep of the first strip beside the first product of the second one, and that one's
 * sweep beside the second product of the first.
 *
 * Each tile that a strip writes has a twin, which lies as it does in memory of its own, and is the second strip's.
 */
#include "emit_c_parts.h"
#include "tile_edit.h"

#include <inttypes.h>
#include <string.h>

static bb_arena *arena(const bb_c *c) {
  return c->out->arena;
}

/* --- twins --- */

static void note_written(bb_c *c, const bb_tile_body *body, bool in_strips) {
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    if (in_strips && s->result != BB_NONE) c->twin[s->result] = true;
    if (in_strips && s->second != BB_NONE) c->twin[s->second] = true;
    note_written(c, &s->body, in_strips);
    if (s->loop)
      note_written(c, &s->loop->body, in_strips || s->loop->variable == c->strips.variable);
  }
}

/* A twin's axes are those of its tile. */
static void double_tables(bb_c *c) {
  const uint32_t count = c->twins;
  bb_tile_program *p = BB_NEW(arena(c), bb_tile_program, 1);
  *p = *c->p;
  p->tiles = 2 * count;
  p->tile = BB_NEW(arena(c), bb_tile, p->tiles + 1);
  bb_c_tile *held = BB_NEW(arena(c), bb_c_tile, p->tiles + 1);
  uint32_t *parent = BB_NEW(arena(c), uint32_t, 2 * p->tiles + 2);
  bb_c_live *live = BB_NEW(arena(c), bb_c_live, 2 * p->tiles + 2);
  memcpy(live, c->live, 2 * count * sizeof *live);
  for (uint32_t i = 0; i < p->tiles; i++) {
    const uint32_t of = i % count;
    p->tile[i] = c->p->tile[of];
    held[i] = c->tile[of];
    if (i >= count && held[i].over != BB_NONE) held[i].over += count;
    for (uint32_t k = 0; k < 2; k++) parent[2 * i + k] = bb_c_axis(&c->axes, 2 * of + k);
  }
  c->p = p;
  c->tile = held;
  c->live = live;
  c->axes.parent = parent;
}

void bb_c_find_twins(bb_c *c) {
  if (c->strips.variable == BB_NONE || c->vector_bytes != 64 || c->exact) return;
  c->twins = c->p->tiles;
  c->twin = BB_NEW(arena(c), bool, c->twins + 1);
  note_written(c, &c->p->body, false);
  double_tables(c);
}

/* --- the body for two --- */

/* Its statements that run in a stretch, of which `first` and `second` are products with a sweep (a MAP and a FOLD) between them. */
typedef struct strip_body {
  bb_tile_body all;
  uint32_t first, sweep, second;
} strip_body;

/* What a strip does if it is that: two products, and a sweep between them that may run beside each. */
static bool read_body(bb_c *c, const bb_tile_body *body, uint32_t stretch, strip_body *b) {
  uint32_t products = 0;
  *b = (strip_body){.sweep = BB_NONE};
  b->all.stmt = BB_NEW(arena(c), bb_tile_stmt *, body->count + 1);
  for (uint32_t i = 0; i < body->count; i++)
    if (bb_c_runs_in(body->stmt[i], stretch)) b->all.stmt[b->all.count++] = body->stmt[i];
  for (uint32_t i = 0; i < b->all.count; i++) {
    const bb_tile_stmt *s = b->all.stmt[i];
    if (s->loop || s->body.count) return false;
    if (s->kind == BB_TILE_DOT) {
      if (products++ == 2 || !bb_c_may_be_beside(c, s)) return false;
      *(products == 1 ? &b->first : &b->second) = i;
    } else if (products == 1 && i + 1 < b->all.count && bb_c_has_units(c, s, b->all.stmt[i + 1]) &&
               bb_c_has_exp(c, s)) {
      b->sweep = i;
    }
  }
  return products == 2 && b->sweep != BB_NONE && b->sweep + 2 <= b->second;
}

/* The same of the next strip. */
static bb_tile_body next_strip(bb_c *c, const bb_tile_loop *loop, const bb_tile_body *body) {
  bb_tile_program *p = BB_NEW(arena(c), bb_tile_program, 1);
  bb_program *home = c->p->home;
  bb_tile_body next = {0};
  *p = *c->p;
  for (uint32_t i = 0; i < body->count; i++) bb_tile_push(p, &next, bb_tile_copy(p, body->stmt[i]));
  for (uint32_t t = 0; t < c->twins; t++)
    if (c->twin[t]) bb_tile_rename(&next, t, t + c->twins);
  bb_tile_index at = bb_expr_arg(home, BB_I64, loop->variable);
  bb_tile_fix(p, &next, loop->variable,
              bb_expr_make(home, BB_X_ADD, at, bb_expr_const(home, BB_I64, c->strips.size), NULL));
  return next;
}

static void take(bb_tile_body *to, const bb_tile_body *from, uint32_t begin, uint32_t end) {
  for (uint32_t i = begin; i < end; i++) to->stmt[to->count++] = from->stmt[i];
}

/* The body for two strips, the second one's tiles being the twins; NULL: nothing of one would run beside a product of the other. */
static const bb_tile_body *pair_of(bb_c *c, const bb_tile_loop *loop, uint32_t stretch) {
  strip_body b;
  if (!c->twins || !read_body(c, &loop->body, stretch, &b)) return NULL;
  const bb_tile_body *one = &b.all, two = next_strip(c, loop, one);
  const uint32_t behind = b.sweep + 2, count = one->count;
  bb_tile_body *pair = BB_NEW(arena(c), bb_tile_body, 1);
  pair->stmt = BB_NEW(arena(c), bb_tile_stmt *, 2 * count + 1);
  take(pair, one, 0, b.sweep);
  take(pair, &two, 0, b.first + 1);
  take(
      pair, one, b.sweep,
      behind); /* the sweep behind the other's product, which the other's next statements may follow */
  take(pair, &two, b.first + 1, b.sweep);
  take(pair, one, behind, b.second);
  take(pair, one, b.second, b.second + 1);
  take(pair, &two, b.sweep, behind);
  take(pair, one, b.second + 1, count);
  take(pair, &two, behind, count);
  return pair;
}

/* --- loops --- */

static bool has(const bb_tile_body *b, uint32_t tile) {
  for (uint32_t i = 0; i < b->count; i++)
    if (bb_tile_reads(b->stmt[i], tile) || bb_tile_writes(b->stmt[i], tile)) return true;
  return false;
}

/* Where what passes between loops over strips lies, of the strip at hand, or, as twins, of the next one. */
static void point_at_strip(bb_c *c, const bb_tile_loop *l, const bb_tile_body *b, bool next) {
  const char *at =
      bb_arena_printf(arena(c), next ? "(i%u / %u + 1)" : "i%u / %u", l->variable, c->strips.size);
  for (uint32_t i = 0; i < c->strips.tiles; i++) {
    const uint32_t own = next ? i + c->twins : i;
    if (!bb_c_passes(c, i) || !has(b, own)) continue;
    bb_c_line(c, "%s *const t%u = t%u_all + %s * %" PRId64 ";",
              bb_c_element(c, c->p->tile[i].dtype), own, i, at, bb_c_tile_elements(c, i));
    if (bb_c_is_ahead(c, i))
      bb_c_line(c, "char *const t%u_in = t%u_in_all + %s * %" PRId64 ";", own, i, at,
                bb_c_ahead_bytes(c, i));
  }
}

/* Two strips at once, while there are two, whole ones. */
static void loop_over_pairs(bb_c *c, const bb_tile_loop *l, const bb_tile_body *pair,
                            uint32_t stretch) {
  const char *rows = bb_c_count_in_strip(c, true);
  const char *whole = rows ? bb_arena_printf(arena(c), " && %s == %u", rows, c->strips.size) : "";
  bb_c_line(c, "for (; i%u + %u < %s%s; i%u += %u) {", l->variable, c->strips.size,
            bb_c_index(c, l->stretch[0].to), whole, l->variable, 2 * c->strips.size);
  c->indent++;
  point_at_strip(c, l, pair, false);
  point_at_strip(c, l, pair, true);
  const char *live = bb_c_begin_ends(c, &l->body, stretch);
  if (live) bb_c_line(c, "const int64_t live = %s, next = %s;", live, bb_c_next_end(c));
  bb_c_body_in(c, pair, stretch);
  c->indent--;
  bb_c_line(c, "}");
}

static bool are_pairs(const bb_c *c, const bb_tile_loop *l) {
  const bb_expr *from = l->stretch[0].from, *to = l->stretch[0].to;
  return from->op == BB_X_CONST && to->op == BB_X_CONST &&
         (int64_t)(to->number - from->number) % (2 * c->strips.size) == 0;
}

/* Behind the line that opens the loop. */
static void put_strip(bb_c *c, const bb_tile_loop *l, uint32_t stretch) {
  const char *left = bb_c_count_in_strip(c, false);
  const char *live = bb_c_begin_ends(c, &l->body, stretch);
  c->indent++;
  point_at_strip(c, l, &l->body, false);
  if (left) bb_c_line(c, "if (%s == 0) break;", left);
  if (live) bb_c_line(c, "const int64_t live = %s;", live);
  bb_c_body_in(c, &l->body, stretch);
  c->ends = false;
  c->indent--;
  bb_c_line(c, "}");
}

/* All statements in it run in the stretch that it stands in, or in their own. */
void bb_c_loop_over_strips(bb_c *c, const bb_tile_loop *l, uint32_t stretch) {
  c->pair = true;
  bb_c_begin_ends(c, &l->body, stretch);
  const bb_tile_body *pair = pair_of(c, l, stretch);
  if (pair) {
    bb_c_line(c, "{ int64_t i%u = %s;", l->variable, bb_c_index(c, l->stretch[0].from));
    c->indent++;
    loop_over_pairs(c, l, pair, stretch);
  }
  c->pair = c->ends = false;
  const bool all = pair && are_pairs(c, l) && !bb_c_count_in_strip(c, false);
  if (pair && !all)
    bb_c_line(c, "for (; i%u < %s; i%u += %u) {", l->variable, bb_c_index(c, l->stretch[0].to),
              l->variable, c->strips.size);
  else if (!pair)
    bb_c_loop_head(c, l, 0);
  if (!all) put_strip(c, l, stretch);
  if (!pair) return;
  c->indent--;
  bb_c_line(c, "}");
}
