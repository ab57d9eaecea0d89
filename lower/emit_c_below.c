/* emit_c_below.c - exps of what is proved to be at most 0.
 *
 * What an exp takes is often the difference of an element and the greatest of its row, so far or of all.  Such an
 * exp cannot overflow, which the device library makes use of.  The proof looks at the statements of the same body that run
 * before: one made the greatest as a maximum over just these elements.
 */
#include "emit_c_parts.h"
#include "tile_edit.h"

static const bb_expr *name_of(const bb_c *c, uint32_t tile) {
  return bb_expr_arg(c->p->home, c->p->tile[tile].dtype, BB_TILE_NAMED + tile);
}

/* With tiles in the place of a statement's operands. */
static const bb_expr *named(const bb_c *c, const bb_tile_stmt *s, const bb_expr *expr) {
  const bb_expr *operand[BB_TILE_OPERANDS];
  for (uint32_t i = 0; i < s->operands; i++) operand[i] = name_of(c, s->operand[i]);
  return bb_expr_substitute(c->p->home, expr, s->operands, operand);
}

/* The last statement before `at` that writes the tile; NULL: none, or one that has others inside. */
static const bb_tile_stmt *writer_of(const bb_c *c, uint32_t tile, uint32_t at, uint32_t *found) {
  for (uint32_t i = at; i-- > 0;) {
    const bb_tile_stmt *s = c->here.body->stmt[i];
    if (!bb_c_runs_in(s, c->here.stretch) || !bb_tile_writes(s, tile)) continue;
    *found = i;
    return s->body.count || s->loop ? NULL : s;
  }
  return NULL;
}

/* From statement `from` on, up to the one at hand, nothing that the expression names is written. */
static bool is_kept(const bb_c *c, const bb_expr *expr, uint32_t from) {
  for (uint32_t i = from; i < c->here.at; i++)
    for (uint32_t t = 0; t < c->p->tiles; t++)
      if (bb_tile_names(expr, t) && bb_tile_writes(c->here.body->stmt[i], t)) return false;
  return true;
}

/* A statement that makes just the element. */
static bool makes(const bb_c *c, const bb_tile_stmt *s, const bb_expr *element) {
  const bb_tile_stmt *user = c->here.body->stmt[c->here.at];
  return s && s->kind == BB_TILE_MAP && named(c, s, s->expr) == element &&
         s->at[0] == user->at[0] && s->at[1] == user->at[1];
}

/* Is the tile, as it is before statement `at`, at least the element, or NaN? */
static bool bounds(const bb_c *c, uint32_t tile, uint32_t at, const bb_expr *element) {
  uint32_t made;
  const bb_tile_stmt *s = writer_of(c, tile, at, &made);
  if (!s || !is_kept(c, element, made)) return false;
  if (s->kind == BB_TILE_FOLD && s->monoid->id == BB_MONOID_MAX) {
    uint32_t first;
    if (name_of(c, s->operand[0]) == element) return true;
    const bb_tile_stmt *from = writer_of(c, s->operand[0], made, &first);
    return makes(c, from, element) && is_kept(c, element, first);
  }
  if (s->kind != BB_TILE_MAP || s->expr->op != BB_X_MAX) return false;
  for (uint32_t k = 0; k < 2; k++) {
    const bb_expr *side = s->expr->a[k];
    if (named(c, s, side) == element) return true;
    if (side->op == BB_X_ARG && side->index < s->operands &&
        bounds(c, s->operand[side->index], made, element))
      return true;
  }
  return false;
}

bool bb_c_is_below(const bb_c *c, const bb_expr *exp) {
  const bb_expr *x = exp->a[0];
  if (x->op == BB_X_MUL && x->a[1]->op == BB_X_CONST && x->a[1]->number > 0) x = x->a[0];
  if (!c->here.body || x->op != BB_X_SUB || x->a[1]->op != BB_X_ARG) return false;
  const bb_tile_stmt *s = c->here.body->stmt[c->here.at];
  if (s->kind != BB_TILE_MAP || x->a[1]->index >= s->operands) return false;
  return bounds(c, s->operand[x->a[1]->index], c->here.at, named(c, s, x->a[0]));
}
