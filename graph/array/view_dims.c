/* view_dims.c - places and taps of windows, and joined axes, over the dim of another axis get dims of their own.
 *
 *     seen[p,t,c]   p as c, say, because something adds them   ==>   seen[q,t,c], then a slice of all of q that is p
 *
 * An index of two dims, and one that pieces are joined along, is told from others by its dims alone (access.h): no other index
 * of such a view is over them.  The slice says which dim it is behind that, and what reads through both finds them copied.
 */
#include "lower.h"

static bool stands_twice(bb_ix *ix, const bb_ix_node *node, uint32_t index) {
  bool twice = false;
  for (uint32_t k = 0; k < node->indices; k++)
    twice |= k != index && bb_ix_find(ix, node->dim[k]) == bb_ix_find(ix, node->dim[index]);
  return twice;
}

/* All of a value's axis, over another class. */
static uint32_t renamed(bb_ix *ix, uint32_t value, uint32_t axis, uint32_t class, bb_arena *arena) {
  const bb_ix_value v = ix->value[value];
  uint32_t *dim = BB_NEW(arena, uint32_t, v.rank), *index = BB_NEW(arena, uint32_t, v.rank);
  for (uint32_t a = 0; a < v.rank; a++) {
    dim[a] = a == axis ? class : v.dim[a];
    index[a] = a;
  }
  uint32_t made = bb_ix_add(ix, BB_IX_SLICE, v.name, v.dtype, 1, v.rank, v.rank, dim);
  bb_ix_node *node = bb_ix_node_of(ix, made);
  node->at = axis, node->start = 0, node->step = 1;
  bb_ix_use(ix, bb_ix_producer(ix, made), 0, value, index);
  ix->value[made].once = v.once;
  return made;
}

/* The axes from `at` on, as many as that of windows or a join are, keep their classes behind slices. */
static void separate(bb_ix *ix, uint32_t at, bb_arena *arena) {
  bb_ix_node node = ix->node[at];
  uint32_t old = node.out[0], axes = node.op == BB_IX_WINDOWS ? 2 : 1, had[2] = {BB_NONE, BB_NONE};
  bb_ix_value v = ix->value[old];
  uint32_t *dim = BB_NEW(arena, uint32_t, node.indices);
  for (uint32_t k = 0; k < node.indices; k++) dim[k] = node.dim[k];
  node.dim = dim;
  for (uint32_t k = 0; k < axes; k++) {
    if (!stands_twice(ix, &node, node.at + k)) continue;
    had[k] = dim[node.at + k];
    dim[node.at + k] = bb_ix_class(ix, bb_ix_extent(ix, had[k]));
  }
  if (had[0] == BB_NONE && had[1] == BB_NONE) return;
  uint32_t with = bb_ix_add(ix, node.op, node.name, v.dtype, node.nin, v.rank, node.indices, dim);
  bb_ix_node *made = bb_ix_node_of(ix, with);
  made->at = node.at, made->start = node.start, made->step = node.step, made->by = node.by;
  for (uint32_t i = 0; i < node.nin; i++)
    bb_ix_use(ix, bb_ix_producer(ix, with), i, node.in[i].value, node.in[i].index);
  ix->value[with].once = v.once;
  for (uint32_t k = 0; k < axes; k++)
    if (had[k] != BB_NONE) with = renamed(ix, with, node.at + k, had[k], arena);
  bb_ix_replace(ix, old, with, BB_NONE);
  bb_ix_sweep(ix, at);
}

void bb_ix_separate_view_dims(bb_ix *ix) {
  bb_arena *scratch = bb_scratch(ix->program->ctx);
  uint32_t nodes = ix->nodes;
  for (uint32_t i = 0; i < nodes; i++) {
    bb_ix_op op = ix->node[i].op;
    if (!ix->node[i].removed && (op == BB_IX_WINDOWS || op == BB_IX_JOIN)) separate(ix, i, scratch);
  }
  bb_scratch_end(scratch);
}
