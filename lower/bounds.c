/* bounds.c - loops of a tile program cut where the masks in them hold.
 *
 * A mask is the condition of a selection in an elementwise statement right inside the loop.  Where it holds somewhere, and
 * everywhere, in the tile of an iteration is asked of sets (bounds_ask.c); statements that lose their mask in some
 * stretches stand twice.
 */
#include "bounds_parts.h"

#include <string.h>

enum { MOST_STRETCHES = 4 };
_Static_assert((int)MOST_STRETCHES < (int)BB_TILE_STRETCHES, "a first iteration may be apart");

/* --- masks of a loop --- */

static bool same_mask(const bb_mask *m, const bb_expr *condition, const bb_tile_stmt *s) {
  return m->condition == condition && m->at[0] == s->at[0] && m->at[1] == s->at[1];
}

static void note_mask(bb_bounds *b, bb_asking *a, const bb_tile_stmt *s, const bb_expr *select) {
  const bb_tile *t = &b->p->tile[s->result];
  const bb_expr *condition = select->a[0];
  for (uint32_t i = 0; i < b->masks; i++)
    if (same_mask(&b->mask[i], condition, s)) return;
  bb_mask m = {.condition = condition,
               .at = {s->at[0], s->at[1]},
               .rows = t->rows ? t->rows : 1,
               .cols = t->cols ? t->cols : 1};
  m.inverse = select->a[1]->op == BB_X_CONST && select->a[2]->op != BB_X_CONST;
  if (b->masks < BB_SETS_MASKS && condition->coord && bb_asking_mask(a, &m))
    b->mask[b->masks++] = m;
}

bool bb_bounds_runs(const bb_bounds *b, const bb_tile_stmt *s) {
  return !s->stretches || (b->stretch != BB_NONE && s->stretches >> b->stretch & 1);
}

void bb_bounds_find_masks(bb_bounds *b, bb_asking *a) {
  for (uint32_t i = 0; i < b->loop->body.count; i++) {
    const bb_tile_stmt *s = b->loop->body.stmt[i];
    if (s->kind != BB_TILE_MAP || !bb_bounds_runs(b, s)) continue;
    uint32_t count;
    const bb_expr **node = bb_expr_postorder(b->scratch, s->expr, &count);
    for (uint32_t k = 0; k < count; k++)
      if (node[k]->op == BB_X_SELECT) note_mask(b, a, s, node[k]);
  }
}

const bb_mask *bb_bounds_find(const bb_bounds *b, const bb_tile_stmt *s, const bb_expr *condition) {
  for (uint32_t i = 0; i < b->masks; i++)
    if (same_mask(&b->mask[i], condition, s)) return &b->mask[i];
  return NULL;
}

/* --- stretches --- */

/* The expression where a mask holds everywhere. */
static const bb_expr *unmasked(bb_bounds *b, const bb_tile_stmt *s, const bb_expr *e) {
  bb_program *home = b->p->home;
  uint32_t arity = bb_expr_op_arity(e->op);
  const bb_mask *mask = e->op == BB_X_SELECT ? bb_bounds_find(b, s, e->a[0]) : NULL;
  if (mask && mask->clean) /* of the wider arm's type */
    return bb_expr_cast(home, e->dtype, unmasked(b, s, e->a[mask->inverse ? 2 : 1]));
  if (arity == 0 || !e->coord) return e;
  if (e->op == BB_X_CAST) return bb_expr_cast(home, e->dtype, unmasked(b, s, e->a[0]));
  const bb_expr *a[3] = {NULL, NULL, NULL};
  for (uint32_t i = 0; i < arity; i++) a[i] = unmasked(b, s, e->a[i]);
  return bb_expr_make(home, e->op, a[0], a[1], a[2]);
}

/* Statements that lose their mask in some stretches stand twice: for those, and for the others. */
static void split_body(bb_bounds *b, uint32_t clean) {
  bb_tile_body body = b->loop->body, made = {0};
  uint32_t others = ((1u << b->loop->stretches) - 1) & ~clean;
  for (uint32_t i = 0; i < body.count; i++) {
    bb_tile_stmt *s = body.stmt[i];
    bool masked = s->kind == BB_TILE_MAP && !s->stretches;
    const bb_expr *expr = masked ? unmasked(b, s, s->expr) : s->expr;
    if (others || expr == s->expr) {
      bb_tile_stmt *kept = bb_tile_append(b->p, &made, BB_TILE_MAP);
      *kept = *s;
      if (expr == s->expr) continue;
      kept->stretches = others;
    }
    if (expr->op == BB_X_ARG && expr->index < s->operands && s->operand[expr->index] == s->result)
      continue; /* it was masked in place: nothing is left to do */
    bb_tile_stmt *twin = bb_tile_append(b->p, &made, BB_TILE_MAP);
    *twin = *s;
    twin->stretches = others ? clean : 0;
    twin->expr = expr;
  }
  b->loop->body = made;
}

static bool cut(bb_bounds *b, bb_asking *a, uint32_t most) {
  bool idle[BB_SETS_MASKS] = {false}, gave_up;
  for (uint32_t i = 0; i < b->masks && b->skip; i++) idle[i] = bb_bounds_idle(b, &b->mask[i]);
  bb_tile_stretch made[MOST_STRETCHES];
  uint32_t count = bb_asking_stretches(a, b, idle, most, made, &b->clean, &gave_up);
  if (!count) return !gave_up;
  b->loop->stretches = count;
  memcpy(b->loop->stretch, made, count * sizeof *made);
  if (b->clean) split_body(b, b->clean);
  return true;
}

/* Cuts the loop into so many stretches at most, by its masks, or what is easy of them. */
static void cut_by_masks(bb_bounds *b, uint32_t most) {
  for (uint32_t coarse = 0; coarse < 2; coarse++) {
    bb_asking *a = bb_asking_begin(b, coarse);
    b->masks = 0;
    bb_bounds_find_masks(b, a);
    if (!b->masks || cut(b, a, most)) return;
  }
}

static bool is_plain(const bb_tile_loop *l) {
  if (l->stretches != 1 || l->down || l->merge || l->spread != BB_SPREAD_NONE || !l->stretch[0].to)
    return false;
  if (l->step->op != BB_X_CONST) return false;
  for (uint32_t i = 0; i < l->body.count; i++)
    if (l->body.stmt[i]->stage || l->body.stmt[i]->stretches) return false;
  return true;
}

static void bound_loop(bb_bounds *b, bb_tile_loop *loop) {
  b->loop = loop;
  cut_by_masks(b, MOST_STRETCHES);
}

static void walk(bb_bounds *b, bb_tile_body *body) {
  for (uint32_t i = 0; i < body->count; i++) {
    bb_tile_stmt *s = body->stmt[i];
    walk(b, &s->body);
    if (s->kind != BB_TILE_LOOP) continue;
    b->around[s->loop->variable] = s->loop;
    walk(b, &s->loop->body);
    if (is_plain(s->loop)) bound_loop(b, s->loop);
    b->around[s->loop->variable] = NULL;
  }
}

/* --- order of parallel iterations --- */

static bool ends_by(const bb_tile_body *body, uint32_t variable) {
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    if (ends_by(&s->body, variable)) return true;
    if (s->kind != BB_TILE_LOOP) continue;
    bb_tile_index end = s->loop->stretch[s->loop->stretches - 1].to;
    if (!s->loop->parallel && end && bb_expr_uses_arg(end, variable)) return true;
    if (ends_by(&s->loop->body, variable)) return true;
  }
  return false;
}

/* Iterations whose inner loops end later for larger indices go last to first: the longest first. */
static void order(bb_tile_body *body) {
  for (uint32_t i = 0; i < body->count; i++) {
    bb_tile_stmt *s = body->stmt[i];
    order(&s->body);
    if (s->kind != BB_TILE_LOOP) continue;
    order(&s->loop->body);
    if (s->loop->spread != BB_SPREAD_NONE && s->loop->parallel)
      s->loop->down |= ends_by(&s->loop->body, s->loop->variable);
  }
}

void bb_tile_bound(bb_tile_program *program, bool skip) {
  bb_bounds b = {.p = program, .skip = skip, .stretch = BB_NONE};
  b.scratch = bb_scratch(program->home->ctx);
  b.around = BB_NEW(b.scratch, const bb_tile_loop *, program->variables + 1);
  walk(&b, &program->body);
  order(&program->body);
  bb_scratch_end(b.scratch);
}

bool bb_tile_bound_loop(bb_tile_program *program, bb_tile_loop *loop, const bb_tile_loop **around,
                        bool skip, uint32_t *clean) {
  bb_bounds b = {.p = program, .skip = skip, .around = around, .loop = loop, .stretch = BB_NONE};
  bb_tile_stretch before = loop->stretch[0];
  if (!is_plain(loop)) return false;
  b.scratch = bb_scratch(program->home->ctx);
  cut_by_masks(&b, MOST_STRETCHES);
  bb_scratch_end(b.scratch);
  *clean = b.clean;
  return loop->stretches > 1 || loop->stretch[0].from != before.from ||
         loop->stretch[0].to != before.to;
}

/* --- within a stretch of another loop --- */

uint32_t bb_bounds_confined(const bb_tile_body *body) {
  uint32_t all = 0;
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    if (s->kind != BB_TILE_MAP || !s->stretches || !s->expr->coord) continue;
    if (all && all != s->stretches) return BB_NONE;
    all = s->stretches;
  }
  for (uint32_t i = 0; i < body->count; i++) {
    uint32_t with = body->stmt[i]->stretches & all;
    if (with && body->stmt[i]->stretches != all) return BB_NONE;
  }
  return all;
}

void bb_tile_bound_inner(bb_tile_program *program, bb_tile_loop *loop) {
  bb_bounds b = {.p = program, .skip = !program->home->strict, .loop = loop, .stretch = BB_NONE};
  uint32_t stretches = bb_bounds_confined(&loop->body);
  if (stretches == BB_NONE) return;
  if (stretches) b.stretch = (uint32_t)__builtin_ctz(stretches);
  b.scratch = bb_scratch(program->home->ctx);
  cut_by_masks(&b, 1);
  bb_scratch_end(b.scratch);
}
