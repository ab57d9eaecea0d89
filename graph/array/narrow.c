/* narrow.c - products of what is only widened take it as narrow as it is.
 *
 *     x = f32(a)    y = f32(b)
 *     z = sum of x y                 ==>   z = sum of a b, in f32
 *
 * In f32 the product of two elements of 16 bits is exact, and it is summed there: the value is the same.  Nothing wide is
 * brought from memory, and units for products of 16 bits take the operands as they are.  One operand alone that was widened
 * stays so.  What moves elements is followed to what they were widened from: a join, a slice, windows, a pad.
 *
 * A constant that was widened once, at load, costs nothing any more when it is read again: it stays wide unless `constants`,
 * as units for 16 bits want it.
 */
#include "beneath.h"
#include "lower.h"

#include "../../runtime/interp/interp.h"

static const bb_expr *core(const bb_ix *ix, const bb_ix_node *widened) {
  (void)ix;
  return widened->expr->a[0];
}

/* The 16-bit type that a value was widened from, in *from; false: it was not. */
static bool was_narrow(const bb_ix *ix, uint32_t value, uint32_t depth, bb_dtype *from) {
  const bb_ix_node *node = bb_ix_node_of(ix, value);
  if (node->op == BB_IX_ELEMENTWISE) {
    const bb_expr *e = node->expr;
    if (e->op != BB_X_CAST || e->dtype != BB_F32 || e->arg_count == 0) return false;
    *from = e->a[0]->dtype;
    return *from == BB_F16 || *from == BB_BF16;
  }
  if (!bb_moves_elements(node->op) || depth == BB_BENEATH_DEPTH) return false;
  for (uint32_t i = 0; i < node->nin; i++) {
    bb_dtype other = BB_F32;
    if (!was_narrow(ix, node->in[i].value, depth + 1, &other) || (i > 0 && other != *from))
      return false;
    *from = other;
  }
  return node->op != BB_IX_PAD || bb_round_to(*from, node->expr->number) == node->expr->number;
}

static bool may_narrow(const bb_digging *d, uint32_t at, bool constants) {
  const bb_ix *ix = d->ix;
  const bb_ix_node *node = &ix->node[at];
  bb_dtype from[2];
  if (node->removed || node->op != BB_IX_CONTRACT) return false;
  for (uint32_t i = 0; i < 2; i++) {
    uint32_t value = node->in[i].value;
    if (value >= d->values || !was_narrow(ix, value, 0, &from[i])) return false;
    if (ix->value[value].once && !constants) return false;
  }
  return from[0] == from[1];
}

void bb_ix_multiply_narrow(bb_ix *ix, bool constants) {
  uint32_t nodes = ix->nodes;
  bb_digging d = bb_beneath_begin(ix, core);
  for (uint32_t i = 0; i < nodes; i++) {
    if (!may_narrow(&d, i, constants)) continue;
    uint32_t wide[2] = {ix->node[i].in[0].value, ix->node[i].in[1].value};
    for (uint32_t k = 0; k < 2; k++) bb_beneath_use(&d, i, i, k);
    for (uint32_t k = 0; k < 2; k++) bb_ix_sweep(ix, bb_ix_producer(ix, wide[k]));
  }
  bb_scratch_end(d.scratch);
}
