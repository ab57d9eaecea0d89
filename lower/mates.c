/* mates.c - which iterations of a serial loop blocks of neighbouring iterations of the grid have in common.
 *
 * A loop that runs down to 0 from where its block stands, as one over keys up to a block of queries does, begins further up in the
 * next block.  From there on both go through the same, if all that stand anywhere begin at multiples of the loop's step.
 */
#include "mates.h"

#include "affine.h"

static bool follows(bb_tile_index bound, const bb_tile_loop *along) {
  return bb_expr_uses_arg(bound, along->variable);
}

/* Is it a multiple of n, whatever extents are and wherever loops around it stand? */
static bool is_multiple(bb_tile_index x, int64_t n, const bb_tile_loop *const *around,
                        uint32_t count) {
  switch (x->op) {
  case BB_X_CONST: return (int64_t)x->number % n == 0;
  case BB_X_MUL:
    return is_multiple(x->a[0], n, around, count) || is_multiple(x->a[1], n, around, count);
  case BB_X_ADD:
  case BB_X_SUB:
    return is_multiple(x->a[0], n, around, count) && is_multiple(x->a[1], n, around, count);
  case BB_X_ARG:
    for (uint32_t i = 0; i < count; i++)
      if (around[i]->variable == x->index)
        return is_multiple(around[i]->stretch[0].from, n, around, i) &&
               is_multiple(around[i]->step, n, around, i);
    return false;
  default: return false;
  }
}

/* Is a bound `by` times the variable and a constant that is no less than 0? */
static bool is_sum_of(bb_tile_index bound, uint32_t variable, int64_t *by, int64_t *constant) {
  bb_affine a = bb_affine_of(bound);
  if (!a.is || a.terms != 1 || a.term[0].variable != variable) return false;
  *by = a.term[0].by;
  *constant = a.constant;
  return *by > 0 && *constant >= 0;
}

int bb_mates_lead(const bb_tile_loop *serial, const bb_tile_loop *along,
                  const bb_tile_loop *const *around, uint32_t count) {
  const bb_tile_stretch *first = &serial->stretch[0], *rest = &serial->stretch[1];
  bool alike = true;
  for (uint32_t i = 0; i < serial->stretches; i++) {
    const bb_tile_stretch *s = &serial->stretch[i];
    alike &= !follows(s->from, along) && !(s->to && follows(s->to, along));
  }
  if (alike) return 0;
  bool down = serial->stretches == 2 && serial->down && !serial->marked && !first->to &&
              bb_expr_is_number(rest->from, 0) && rest->to == first->from;
  if (!down || serial->step->op != BB_X_CONST || along->step->op != BB_X_CONST) return -1;
  int64_t step = (int64_t)serial->step->number, apart = (int64_t)along->step->number, by, constant;
  bool whole = is_sum_of(first->from, along->variable, &by, &constant) && constant % step == 0 &&
               is_multiple(along->stretch[0].from, apart, around, count);
  return whole && by * apart == step ? 1 : -1;
}
