/* nest_run.c - which neighbours of an input's blocks are neighbours in memory.
 */
#include "../graph/access.h"
#include "nest_walk.h"

/* Of the item of an input: the axis that a dim of the tensor is. */
static bb_nest_run axis_over(const bb_type *type, bb_dim dim) {
  if (dim == BB_NO_DIM) return BB_RUN_NONE;
  return dim == type->item.col ? BB_RUN_COL : dim == type->item.row ? BB_RUN_ROW : BB_RUN_NONE;
}

/* Of the dims that an index runs over, the one along which its elements are neighbours: an axis of the item, if one is. */
static bb_dim dim_of(const bb_type *type, const bb_index *index) {
  bb_dim found = BB_NO_DIM;
  for (uint32_t k = 0; k < bb_index_dims(index); k++) {
    int64_t step = index->kind == BB_INDEX_DIM ? 1 : k ? index->by : index->step;
    if (step == 1 && axis_over(type, found) == BB_RUN_NONE) found = bb_index_dim(index, k);
  }
  return found;
}

/* A constant's blocks may be laid out at load as they are read; a value between candidates is laid out as its lists
 * are. */
bb_nest_run bb_nest_run_of(const bb_program *program, const bb_node *input, bool *follows) {
  const bb_type *type = input->out[0].type;
  bb_dim inner = BB_NO_DIM, outer = BB_NO_DIM;
  *follows = false;
  if (input->access) {
    const bb_piece *piece = &input->access->piece[0];
    const bb_tensor *tensor = &program->tensor[piece->source];
    if (tensor->role == BB_TENSOR_CONSTANT || tensor->once || !piece->rank) return BB_RUN_ANY;
    inner = dim_of(type, &piece->index[piece->rank - 1]);
    if (piece->rank > 1) outer = dim_of(type, &piece->index[piece->rank - 2]);
  } else {
    if (!type->rank) return BB_RUN_ANY;
    inner = type->level[type->rank - 1].dim;
    if (type->rank > 1) outer = type->level[type->rank - 2].dim;
  }
  bb_nest_run run = axis_over(type, inner);
  *follows = run != BB_RUN_NONE && axis_over(type, outer) != BB_RUN_NONE;
  return run;
}
