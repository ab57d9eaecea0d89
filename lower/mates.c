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
               bb_affine_is_multiple(along->stretch[0].from, apart, around, count);
  return whole && by * apart == step ? 1 : -1;
}
