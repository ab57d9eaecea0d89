/* beneath.c - makes values again as they were before they were widened or scaled. */
#include "beneath.h"

bb_digging bb_beneath_begin(bb_ix *ix, bb_core *core) {
  bb_digging d = {
      .ix = ix, .scratch = bb_scratch(ix->program->ctx), .core = core, .values = ix->values};
  d.made = BB_NEW(d.scratch, bb_beneath, d.values + 1);
  for (uint32_t v = 0; v < d.values; v++) d.made[v].value = BB_NONE;
  return d;
}

bool bb_moves_elements(bb_ix_op op) {
  return op == BB_IX_SLICE || op == BB_IX_WINDOWS || op == BB_IX_PAD || op == BB_IX_JOIN;
}

static const uint32_t *straight(const bb_digging *d, uint32_t rank) {
  uint32_t *axis = BB_NEW(d->scratch, uint32_t, rank);
  for (uint32_t a = 0; a < rank; a++) axis[a] = a;
  return axis;
}

/* The elementwise node again, of its core and the operands of that. */
static uint32_t core_of(bb_digging *d, uint32_t value) {
  bb_ix *ix = d->ix;
  const bb_ix_node node = *bb_ix_node_of(ix, value);
  const bb_expr *core = d->core(ix, &node), **with = BB_NEW(d->scratch, const bb_expr *, node.nin);
  uint32_t count = 0;
  bool once = true;
  for (uint32_t i = 0; i < node.nin; i++)
    if (bb_expr_uses_arg(core, i))
      with[i] = bb_expr_arg(ix->program, ix->value[node.in[i].value].dtype, count++);
  uint32_t out = bb_ix_add(ix, node.op, node.name, core->dtype, count, bb_ix_rank(ix, value),
                           node.indices, node.dim);
  bb_ix_node_of(ix, out)->expr = bb_expr_substitute(ix->program, core, node.nin, with);
  for (uint32_t i = 0; i < node.nin; i++) {
    if (!with[i]) continue;
    bb_ix_use(ix, bb_ix_producer(ix, out), with[i]->index, node.in[i].value, node.in[i].index);
    once &= ix->value[node.in[i].value].once;
  }
  ix->value[out].once = once;
  return out;
}

static const bb_beneath *beneath(bb_digging *d, uint32_t value);

/* The node that moves elements again, of those beneath. */
static uint32_t moved_again(bb_digging *d, uint32_t value) {
  bb_ix *ix = d->ix;
  const uint32_t at = bb_ix_producer(ix, value);
  const bb_ix_node node = ix->node[at];
  const bb_dtype dtype = ix->value[beneath(d, node.in[0].value)->value].dtype;
  uint32_t out = bb_ix_add(ix, node.op, node.name, dtype, node.nin, bb_ix_rank(ix, value),
                           node.indices, node.dim);
  const uint32_t made = bb_ix_producer(ix, out);
  bb_ix_node *copy = &ix->node[made];
  copy->at = node.at, copy->start = node.start, copy->step = node.step, copy->by = node.by;
  if (node.op == BB_IX_PAD) copy->expr = bb_expr_const(ix->program, dtype, node.expr->number);
  ix->value[out].once = ix->value[value].once;
  for (uint32_t i = 0; i < node.nin; i++) bb_beneath_use(d, at, made, i);
  return out;
}

/* The operand that the core of an elementwise node is, with all its axes; BB_NONE: it is something else. */
static uint32_t plain_operand(const bb_digging *d, const bb_ix_node *node) {
  if (node->op != BB_IX_ELEMENTWISE) return BB_NONE;
  const bb_expr *core = d->core(d->ix, node);
  bool plain =
      core->op == BB_X_ARG && bb_ix_rank(d->ix, node->in[core->index].value) == node->indices;
  return plain ? core->index : BB_NONE;
}

static const bb_beneath *beneath(bb_digging *d, uint32_t value) {
  bb_beneath *made = &d->made[value];
  const bb_ix_node *node = bb_ix_node_of(d->ix, value);
  if (made->value != BB_NONE) return made;
  const uint32_t plain = plain_operand(d, node);
  if (plain != BB_NONE) {
    *made = (bb_beneath){node->in[plain].value, node->in[plain].index};
    return made;
  }
  const bool moves = node->op != BB_IX_ELEMENTWISE;
  *made = (bb_beneath){(moves ? moved_again : core_of)(d, value),
                       straight(d, bb_ix_rank(d->ix, value))};
  return made;
}

void bb_beneath_use(bb_digging *d, uint32_t node, uint32_t to, uint32_t slot) {
  bb_ix *ix = d->ix;
  const bb_beneath *b = beneath(d, ix->node[node].in[slot].value);
  uint32_t rank = bb_ix_rank(ix, b->value), *index = BB_NEW(d->scratch, uint32_t, rank);
  for (uint32_t a = 0; a < rank; a++) index[a] = ix->node[node].in[slot].index[b->axis[a]];
  if (node == to) bb_ix_unuse(ix, node, slot);
  bb_ix_use(ix, to, slot, b->value, index);
}
