/* lower.c - from the index form to the unfused block program, node by node. */
#include "lower.h"

static void lower_node(bb_lower *l, bb_ix_node *node) {
  switch (node->op) {
  case BB_IX_SOURCE: break; /* read where it is used */
  case BB_IX_ELEMENTWISE: bb_lower_elementwise(l, node); break;
  case BB_IX_CONTRACT: bb_lower_contract(l, node); break;
  case BB_IX_REDUCE:
  case BB_IX_ARGREDUCE: bb_lower_reduce(l, node); break;
  case BB_IX_FOLD: bb_lower_fold(l, node); break;
  case BB_IX_SCAN: bb_lower_scan(l, node); break;
  case BB_IX_SLICE:
  case BB_IX_WINDOWS:
  case BB_IX_PAD:
  case BB_IX_JOIN: bb_lower_view(l, node); break;
  case BB_IX_MISC: bb_lower_misc(l, node); break;
  case BB_IX_OUTPUT: bb_lower_output(l, node); break;
  }
}

static void *filled(bb_lower *l, size_t count) {
  uint32_t *list = BB_NEW(l->scratch, uint32_t, count);
  for (size_t i = 0; i < count; i++) list[i] = UINT32_MAX;
  return list;
}

static bb_lower start(bb_ix *ix) {
  bb_lower l = {.ix = ix, .program = ix->program};
  l.scratch = bb_scratch(ix->program->ctx);
  l.root = bb_graph_create(ix->program);
  l.placed = BB_NEW(l.scratch, bb_placed, ix->values);
  l.pending = BB_NEW(l.scratch, bb_pending, ix->values);
  l.folded = BB_NEW(l.scratch, bool, ix->values);
  l.stored = BB_NEW(l.scratch, bool, ix->values);
  l.alias = filled(&l, ix->dims);
  l.tensor = filled(&l, ix->array->values);
  l.output = filled(&l, ix->array->outputs);
  return l;
}

void bb_array_lower(bb_array *array, bb_units units) {
  bb_ix_merge(array->index);
  bb_ix_order_products(array->index, units.windows);
  bb_ix_add_units(array->index);
  bb_ix_cut_alike(array->index);
  bb_ix_find_pads(array->index);
  if (units.bytes && !array->program->strict) bb_ix_multiply_bytes(array->index);
  bb_ix_multiply_narrow(array->index, units.narrow);
  bb_ix_spread_less(array->index);
  bb_ix_narrow_indices(array->index);
  bb_ix_sum_along_rows(array->index);
  if (units.lines && !array->program->strict) bb_ix_see_lines(array->index);
  bb_ix_separate_view_dims(array->index);
  bb_lower l = start(array->index);
  uint32_t *order, count = bb_ix_order(l.ix, l.scratch, &order);
  bb_lower_find_blocked(&l);
  bb_lower_tensors(&l);
  for (uint32_t i = 0; i < count; i++) lower_node(&l, &l.ix->node[order[i]]);
  array->program->root = l.root;
  if (array->program->stage < BB_STAGE_BLOCK) array->program->stage = BB_STAGE_BLOCK;
  bb_scratch_end(l.scratch);
}
