/* mates.c - which iterations of a serial loop blocks of neighbouring iterations of the grid have in common.
 *
 * A loop that runs down from where its block stands, as one over keys up to a block of queries does, begins further up in the next
 * block.  From there on both go through the same, if nothing else depends on where they stand than which stretch an iteration is in.
 */
#include "mates.h"

#include "affine.h"

static bool follows(bb_tile_index bound, const bb_tile_loop *along) {
  return bb_expr_uses_arg(bound, along->variable);
}

/* Does each stretch begin where the one before it ends, the last always at the same iteration? */
static bool has_no_gaps(const bb_tile_loop *serial, const bb_tile_loop *along) {
  for (uint32_t i = 1; i < serial->stretches; i++)
    if (serial->stretch[i].to != serial->stretch[i - 1].from) return false;
  return !follows(serial->stretch[serial->stretches - 1].from, along);
}

/* How much further a bound is one of the variable further; 0: not by the same everywhere. */
static int64_t slope(bb_tile_index bound, uint32_t variable) {
  bb_affine a = bb_affine_of(bound);
  for (uint32_t i = 0; a.is && i < a.terms; i++)
    if (a.term[i].variable == variable) return a.term[i].by;
  return 0;
}

int64_t bb_mates_lead(const bb_tile_loop *serial, const bb_tile_loop *along) {
  bool alike = true;
  for (uint32_t i = 0; i < serial->stretches; i++) {
    const bb_tile_stretch *s = &serial->stretch[i];
    alike &= !follows(s->from, along) && !(s->to && follows(s->to, along));
  }
  if (alike) return 0;
  bool begins = serial->stretches > 1 && !serial->stretch[0].to && serial->down && !serial->marked;
  if (!begins || serial->step->op != BB_X_CONST || along->step->op != BB_X_CONST) return -1;
  int64_t step = (int64_t)serial->step->number;
  int64_t further = slope(serial->stretch[0].from, along->variable) * (int64_t)along->step->number;
  if (further <= 0 || further % step || !has_no_gaps(serial, along)) return -1;
  return further / step;
}
