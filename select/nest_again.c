/* nest_again.c - exponentials that a loop computes again, of what the loop before it had.
 *
 * An element of a list that a loop before went over, and the exponential that was made of it there: where both loops are one block each,
 * what was made is still at hand (lower/again.c).  That the other operands are the same, too, is not looked at: they are what the
 * loop before folded.
 */
#include "nest_walk.h"

/* The innermost exponential of an expression that has any; NULL: it has none. */
static const bb_expr *exponential(const bb_expr *e) {
  const bb_expr *found = NULL;
  for (uint32_t i = 0; !found && i < bb_expr_op_arity(e->op); i++) found = exponential(e->a[i]);
  return found || e->op != BB_X_EXP ? found : e;
}

/* The same but for which operands are read. */
static bool is_alike(const bb_expr *a, const bb_expr *b) {
  if (a->op != b->op || a->dtype != b->dtype) return false;
  if (a->op == BB_X_ARG) return true;
  bool alike = bb_expr_op_arity(a->op) > 0 || a == b;
  for (uint32_t i = 0; alike && i < bb_expr_op_arity(a->op); i++)
    alike = is_alike(a->a[i], b->a[i]);
  return alike;
}

void bb_nest_note_special(bb_nest_walker *w, const bb_expr *expr, uint32_t before) {
  enum { DEPTH = 12 };
  const bb_expr *exp = expr->depth <= DEPTH ? exponential(expr) : NULL;
  if (!exp || w->around == BB_NONE) return;
  bb_nest_term *term = &w->nest->term[w->nest->terms - 1];
  for (uint32_t i = 0; before && i < w->mades; i++)
    if (w->made[i].loop == before - 1 && is_alike(w->made[i].exp, exp)) term->before = before;
  BB_GROW(w->arena, w->made, w->made_capacity, (size_t)w->mades + 1);
  w->made[w->mades++] = (struct bb_nest_made){w->around, exp};
}
