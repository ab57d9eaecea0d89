/* stride.c - a slice by a step that divides its axis is one part of a split axis.
 *
 * Elements i, i + n, i + 2 n, ... of an axis of m n elements are element i of its inner part once the
 * axis is seen as m by n: two reshapes around a slice of one element.  Axis factoring then makes all
 * of them renamings, as it does for neighbours that are split by a reshape; rotary embeddings of
 * neighbouring pairs are written both ways.
 */
#include "array.h"

/* Does the node take every step-th element, to the end? */
static bool takes_every(const bb_array *array, const bb_array_node *node) {
  if (node->removed || node->op != BB_A_SLICE) return false;
  const bb_array_value *in = &array->value[node->in[0]];
  int64_t extent = bb_extent_value(in->shape[node->ints[0]]), start = node->ints[1],
          step = node->ints[2], length = node->ints[3];
  return step > 1 && extent > 0 && extent % step == 0 && start < step && length == extent / step &&
         in->rank < BB_ARRAY_RANK;
}

/* The slice becomes the last of three nodes, so that its result stays what it is. */
static void split(bb_array *array, bb_array_node node) {
  bb_program *program = array->program;
  const bb_array_value in = array->value[node.in[0]];
  uint32_t axis = (uint32_t)node.ints[0];
  const bb_extent *shape[BB_ARRAY_RANK];
  for (uint32_t a = 0; a < in.rank; a++) shape[a + (a > axis)] = in.shape[a];
  shape[axis] = bb_extent_number(program, node.ints[3]);
  shape[axis + 1] = bb_extent_number(program, node.ints[2]);
  uint32_t parts = bb_array_reshape(array, node.name, node.in[0], in.rank + 1, shape);
  uint32_t part = bb_array_slice(array, node.name, parts, axis + 1, node.ints[1], 1, 1);
  node.op = BB_A_RESHAPE;
  node.count = 0;
  node.in = BB_NEW(program->arena, uint32_t, 1);
  node.in[0] = part;
  bb_array_append(array, node);
}

void bb_array_split_strides(bb_array *array) {
  uint32_t nodes = array->nodes, found = 0;
  const bb_array_node *node = array->node;
  for (uint32_t i = 0; i < nodes; i++) found += takes_every(array, &node[i]);
  if (!found) return;
  array->nodes = array->node_capacity = 0;
  array->node = NULL;
  for (uint32_t i = 0; i < nodes; i++) {
    if (takes_every(array, &node[i]))
      split(array, node[i]);
    else if (!node[i].removed)
      bb_array_append(array, node[i]);
  }
}
