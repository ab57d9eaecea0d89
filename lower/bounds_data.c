/* bounds_data.c - iterations of a loop that a mask from memory leaves nothing to do, passed over.
 *
 * Where a mask is data (padding, documents, lengths: whatever a selection asks of tiles that the loop loads),
 * no interval of the loop's variable says where it holds.  If an iteration in which it holds nowhere
 * provably changes nothing (bounds_idle.c), the statements that the mask is made of come first, then
 * the question whether it holds anywhere, and the others only run if it does:
 *
 *   load m; any = any(m); if any { load k; s = dot(q, k); ... }
 */
#include "bounds_parts.h"
#include "tile_edit.h"

#include <string.h>

typedef struct skipping {
  bb_bounds b;
  bb_tile_program *p;
  uint32_t strips; /* the variable of loops that stand in a stretch of the loop around them */
  bool *first;     /* by statement of the loop's body: the mask is made of it */
} skipping;

/* The one statement of the loop's body that writes a tile; its count: there is none. */
static uint32_t writer_of(const bb_tile_body *body, uint32_t tile) {
  uint32_t at = 0;
  while (at < body->count && !bb_tile_writes(body->stmt[at], tile)) at++;
  return at;
}

/* Marks what makes a tile, if all of it may stand before the rest of the body. */
static bool comes_first(skipping *w, uint32_t tile) {
  bb_tile_body *body = &w->b.loop->body;
  uint32_t at = writer_of(body, tile);
  if (at == body->count) return true;
  if (w->first[at]) return true;
  const bb_tile_stmt *s = body->stmt[at];
  bool plain = (s->kind == BB_TILE_LOAD || s->kind == BB_TILE_MAP) && !s->stretches;
  if (!plain || bb_tile_writers(body, tile) != 1) return false;
  for (uint32_t i = 0; i < at; i++) /* what an iteration before has left */
    if (bb_tile_reads(body->stmt[i], tile)) return false;
  w->first[at] = true;
  for (uint32_t i = 0; i < s->operands; i++)
    if (!comes_first(w, s->operand[i])) return false;
  return true;
}

/* Does the condition ask tiles, and can all of it be known before the products? */
static bool is_data(skipping *w, const bb_tile_stmt *s, const bb_expr *condition) {
  const bb_tile *t = &w->p->tile[s->result];
  uint32_t rows = 0, cols = 0, asked = 0, count;
  memset(w->first, 0, w->b.loop->body.count * sizeof *w->first);
  for (uint32_t i = 0; i < s->operands; i++) {
    if (!bb_expr_uses_arg(condition, i)) continue;
    asked++;
    rows |= w->p->tile[s->operand[i]].rows;
    cols |= w->p->tile[s->operand[i]].cols;
    if (!comes_first(w, s->operand[i])) return false;
  }
  const bb_expr **node = bb_expr_postorder(w->b.scratch, condition, &count);
  for (uint32_t i = 0; i < count; i++) /* places are asked of the tiles' own extent alone */
    if (node[i]->op == BB_X_COORD &&
        (node[i]->index == BB_COORD_ROW ? t->rows && !rows : t->cols && !cols))
      return false;
  return asked > 0;
}

/* Whether an iteration changes nothing where the mask holds nowhere, in every stretch. */
static bool is_idle(skipping *w, const bb_tile_stmt *s, const bb_expr *condition, bool inverse,
                    uint32_t stretches) {
  w->b.masks = 1;
  w->b.mask[0] = (bb_mask){.condition = condition, .at = {s->at[0], s->at[1]}, .inverse = inverse};
  for (uint32_t k = 0; k < stretches; k++) {
    w->b.stretch = stretches > 1 ? k : BB_NONE;
    if (!bb_bounds_idle(&w->b, &w->b.mask[0])) return false;
  }
  return true;
}

static void pass_over(skipping *w, const bb_tile_stmt *s, const bb_expr *condition, bool inverse) {
  bb_tile_body body = w->b.loop->body, made = {0};
  bb_tile_stmt *any = bb_tile_stmt_new(w->p, BB_TILE_ANY), *rest;
  any->result = bb_tile_add(
      w->p, &(bb_tile){.name = "any", .dtype = BB_BOOL, .place = w->p->tile[s->result].place});
  any->at[0] = s->at[0];
  any->at[1] = s->at[1];
  bb_tile_stmt asks = *s;
  asks.expr = inverse ? bb_expr_make(w->p->home, BB_X_NOT, condition, NULL, NULL) : condition;
  bb_tile_set(w->p, any, bb_tile_named(w->p, &asks));
  rest = bb_tile_stmt_new(w->p, BB_TILE_IF);
  rest->operands = 1;
  rest->operand[0] = any->result;
  for (uint32_t i = 0; i < body.count; i++)
    bb_tile_push(w->p, w->first[i] ? &made : &rest->body, body.stmt[i]);
  bb_tile_push(w->p, &made, any);
  bb_tile_push(w->p, &made, rest);
  w->b.loop->body = made;
}

/* The first mask that will do. */
static bool skip_in(skipping *w, bb_tile_loop *loop, uint32_t stretches) {
  w->b.loop = loop;
  w->first = BB_NEW(w->b.scratch, bool, loop->body.count + 1);
  for (uint32_t i = 0; i < loop->body.count; i++) {
    const bb_tile_stmt *s = loop->body.stmt[i];
    if (s->kind != BB_TILE_MAP) continue;
    uint32_t count;
    const bb_expr **node = bb_expr_postorder(w->b.scratch, s->expr, &count);
    for (uint32_t k = 0; k < count; k++) {
      if (node[k]->op != BB_X_SELECT || !is_data(w, s, node[k]->a[0])) continue;
      for (int inverse = 0; inverse < 2; inverse++) {
        if (!is_idle(w, s, node[k]->a[0], inverse, stretches)) continue;
        pass_over(w, s, node[k]->a[0], inverse);
        return true;
      }
    }
  }
  return false;
}

static bool walk(skipping *w, bb_tile_body *body, uint32_t stretches) {
  bool changed = false;
  for (uint32_t i = 0; i < body->count; i++) {
    bb_tile_stmt *s = body->stmt[i];
    changed |= walk(w, &s->body, stretches);
    if (!s->loop) continue;
    uint32_t within = s->loop->variable == w->strips ? stretches : s->loop->stretches;
    changed |= walk(w, &s->loop->body, within);
    if (!s->loop->parallel && bb_tile_has_product(&s->loop->body))
      changed |= skip_in(w, s->loop, within);
  }
  return changed;
}

const bb_tile_program *bb_tile_skip(bb_arena *arena, const bb_tile_program *program,
                                    uint32_t strips) {
  if (program->home->strict) return program;
  bb_tile_program *p = BB_NEW(arena, bb_tile_program, 1);
  *p = *program;
  p->tile = NULL;
  p->tile_capacity = 0;
  BB_GROW(p->home->arena, p->tile, p->tile_capacity, p->tiles + 1);
  memcpy(p->tile, program->tile, p->tiles * sizeof *p->tile);
  p->body = (bb_tile_body){0};
  for (uint32_t i = 0; i < program->body.count; i++)
    bb_tile_push(p, &p->body, bb_tile_copy(p, program->body.stmt[i]));
  skipping w = {.b = {.p = p, .skip = true, .stretch = BB_NONE}, .p = p, .strips = strips};
  w.b.scratch = bb_scratch(p->home->ctx);
  bool changed = walk(&w, &p->body, 1);
  bb_scratch_end(w.b.scratch);
  return changed ? p : program;
}
