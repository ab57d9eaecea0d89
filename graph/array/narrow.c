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
#include "lower.h"

#include "../../runtime/interp/interp.h"

enum { DEPTH = 8 }; /* nodes looked through */

/* What a wide value was, as narrow as that: axis a of it is axis[a] of the wide one. */
typedef struct narrower {
  uint32_t value; /* BB_NONE: not made yet */
  const uint32_t *axis;
} narrower;

typedef struct narrowing {
  bb_ix *ix;
  bb_arena *scratch;
  uint32_t values;
  narrower *made; /* by value, of those that there were */
} narrowing;

static bool moves_elements(bb_ix_op op) {
  return op == BB_IX_SLICE || op == BB_IX_WINDOWS || op == BB_IX_PAD || op == BB_IX_JOIN;
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
  if (!moves_elements(node->op) || depth == DEPTH) return false;
  for (uint32_t i = 0; i < node->nin; i++) {
    bb_dtype other = BB_F32;
    if (!was_narrow(ix, node->in[i].value, depth + 1, &other) || (i > 0 && other != *from))
      return false;
    *from = other;
  }
  return node->op != BB_IX_PAD || bb_round_to(*from, node->expr->number) == node->expr->number;
}

static const uint32_t *straight(const narrowing *w, uint32_t rank) {
  uint32_t *axis = BB_NEW(w->scratch, uint32_t, rank);
  for (uint32_t a = 0; a < rank; a++) axis[a] = a;
  return axis;
}

static const narrower *narrowed(narrowing *w, uint32_t value, bb_dtype dtype);

/* Gives operand `slot` of one node, narrow, to another with the same indices. */
static void use_narrowed(narrowing *w, uint32_t node, uint32_t to, uint32_t slot, bb_dtype dtype) {
  bb_ix *ix = w->ix;
  const narrower *n = narrowed(w, ix->node[node].in[slot].value, dtype);
  uint32_t rank = bb_ix_rank(ix, n->value), *index = BB_NEW(w->scratch, uint32_t, rank);
  for (uint32_t a = 0; a < rank; a++) index[a] = ix->node[node].in[slot].index[n->axis[a]];
  if (node == to) bb_ix_unuse(ix, node, slot);
  bb_ix_use(ix, to, slot, n->value, index);
}

/* The same node again, of narrow elements. */
static uint32_t copy_of(narrowing *w, uint32_t value, bb_dtype dtype) {
  bb_ix *ix = w->ix;
  const uint32_t at = bb_ix_producer(ix, value);
  const bb_ix_node node = ix->node[at];
  uint32_t out = bb_ix_add(ix, node.op, node.name, dtype, node.nin, bb_ix_rank(ix, value),
                           node.indices, node.dim);
  const uint32_t made = bb_ix_producer(ix, out);
  bb_ix_node *copy = &ix->node[made];
  copy->at = node.at, copy->start = node.start, copy->step = node.step, copy->by = node.by;
  ix->value[out].once = ix->value[value].once;
  if (node.op == BB_IX_PAD) copy->expr = bb_expr_const(ix->program, dtype, node.expr->number);
  if (node.op == BB_IX_ELEMENTWISE) copy->expr = node.expr->a[0];
  for (uint32_t i = 0; i < node.nin; i++) {
    if (node.op == BB_IX_ELEMENTWISE)
      bb_ix_use(ix, made, i, node.in[i].value, node.in[i].index);
    else
      use_narrowed(w, at, made, i, dtype);
  }
  return out;
}

/* Is it nothing but the widening of a value with all its axes? */
static bool is_plain(const bb_ix *ix, const bb_ix_node *node) {
  return node->op == BB_IX_ELEMENTWISE && node->nin == 1 && node->expr->a[0]->op == BB_X_ARG &&
         bb_ix_rank(ix, node->in[0].value) == node->indices;
}

static const narrower *narrowed(narrowing *w, uint32_t value, bb_dtype dtype) {
  narrower *n = &w->made[value];
  const bb_ix_node *node = bb_ix_node_of(w->ix, value);
  if (n->value != BB_NONE) return n;
  if (is_plain(w->ix, node))
    *n = (narrower){node->in[0].value, node->in[0].index};
  else
    *n = (narrower){copy_of(w, value, dtype), straight(w, bb_ix_rank(w->ix, value))};
  return n;
}

static bool may_narrow(const narrowing *w, uint32_t at, bool constants, bb_dtype *dtype) {
  const bb_ix *ix = w->ix;
  const bb_ix_node *node = &ix->node[at];
  bb_dtype from[2];
  if (node->removed || node->op != BB_IX_CONTRACT) return false;
  for (uint32_t i = 0; i < 2; i++) {
    uint32_t value = node->in[i].value;
    if (value >= w->values || !was_narrow(ix, value, 0, &from[i])) return false;
    if (ix->value[value].once && !constants) return false;
  }
  *dtype = from[0];
  return from[0] == from[1];
}

void bb_ix_multiply_narrow(bb_ix *ix, bool constants) {
  narrowing w = {.ix = ix, .scratch = bb_scratch(ix->program->ctx), .values = ix->values};
  uint32_t nodes = ix->nodes;
  w.made = BB_NEW(w.scratch, narrower, w.values + 1);
  for (uint32_t v = 0; v < w.values; v++) w.made[v].value = BB_NONE;
  for (uint32_t i = 0; i < nodes; i++) {
    bb_dtype dtype;
    if (!may_narrow(&w, i, constants, &dtype)) continue;
    uint32_t wide[2] = {ix->node[i].in[0].value, ix->node[i].in[1].value};
    for (uint32_t k = 0; k < 2; k++) use_narrowed(&w, i, i, k, dtype);
    for (uint32_t k = 0; k < 2; k++) bb_ix_sweep(ix, bb_ix_producer(ix, wide[k]));
  }
  bb_scratch_end(w.scratch);
}
