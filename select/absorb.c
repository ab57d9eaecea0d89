/* absorb.c - inputs read the other way round instead of transposed block by block.
 *
 * A candidate's input is a view with strides, so a block of it can be loaded with its row and col
 * axes exchanged at no cost.  Every input of which some loop transposes the blocks gets a twin of the
 * exchanged type for those uses.
 */
#include "flow.h"

/* Rows for cols: the type of the transposed items in the same lists. */
static const bb_type *exchanged(bb_program *program, const bb_type *type, bb_arena *scratch) {
  bb_level *level = BB_NEW(scratch, bb_level, type->rank);
  for (uint32_t i = 0; i < type->rank; i++) {
    level[i] = type->level[i];
    if (level[i].axis == BB_AXIS_ROW)
      level[i].axis = BB_AXIS_COL;
    else if (level[i].axis == BB_AXIS_COL)
      level[i].axis = BB_AXIS_ROW;
  }
  bb_item item = {type->item.dtype, type->item.col, type->item.row};
  return bb_type_make(program, item, type->rank, level);
}

static bool is_transpose(const bb_node *node) {
  return node->kind == BB_NODE_FUNC && node->op == BB_OP_TRANSPOSE;
}

/* Does an element of the value meet a transpose? */
static bool is_transposed(const bb_graph *graph, bb_value value) {
  for (bb_use u = bb_first_use(graph, value); u.node != BB_NONE; u = bb_next_use(graph, u)) {
    const bb_node *node = graph->node[u.node];
    if (is_transpose(node)) return true;
    if (node->kind == BB_NODE_MAP &&
        is_transposed(node->inner, (bb_value){node->inner->input[u.port], 0}))
      return true;
  }
  return false;
}

static bb_use next_transposing_use(const bb_graph *graph, bb_value value) {
  bb_use u = bb_first_use(graph, value);
  for (; u.node != BB_NONE; u = bb_next_use(graph, u)) {
    const bb_node *node = graph->node[u.node];
    if (is_transpose(node) ||
        (node->kind == BB_NODE_MAP &&
         is_transposed(node->inner, (bb_value){node->inner->input[u.port], 0})))
      return u;
  }
  return u;
}

/* Moves the transposing uses of `value` to `twin`, the same value exchanged.  The level is owned. */
static void move_uses(bb_graph *graph, bb_value value, bb_value twin) {
  bb_use u;
  while ((u = next_transposing_use(graph, value)).node != BB_NONE) {
    bb_node *node = graph->node[u.node];
    if (is_transpose(node)) {
      bb_replace_uses(graph, (bb_value){u.node, 0}, twin);
      bb_node_remove(graph, u.node);
      continue;
    }
    bb_graph *inner = bb_map_own(graph, u.node);
    bb_value element = {inner->input[u.port], 0};
    bb_value twin_element = bb_map_in(graph, u.node, twin, graph->node[u.node]->in[u.port].level);
    move_uses(inner, element, twin_element);
    if (bb_first_use(inner, element).node == BB_NONE) bb_map_in_remove(graph, u.node, u.port);
  }
}

/* The input that reads as `like` does, with the type given; made if there is none. */
static bb_value input_like(bb_graph *root, const bb_node *like, const bb_type *type) {
  for (uint32_t i = 0; i < root->ninputs; i++) {
    const bb_node *node = root->node[root->input[i]];
    if (node->access == like->access && node->out[0].type == type)
      return (bb_value){root->input[i], 0};
  }
  bb_value made = bb_input_add(root, type);
  root->node[made.node]->tensor = like->tensor;
  root->node[made.node]->access = like->access;
  return made;
}

bool bb_absorb_transposes(bb_program *program, bb_graph *root) {
  bool any = false;
  bb_arena *scratch = bb_scratch(program->ctx);
  uint32_t count = root->ninputs;
  uint32_t *input = BB_NEW(scratch, uint32_t, count);
  for (uint32_t i = 0; i < count; i++) input[i] = root->input[i];
  for (uint32_t i = 0; i < count; i++) {
    bb_value value = {input[i], 0};
    if (!is_transposed(root, value)) continue;
    any = true;
    const bb_type *type = exchanged(program, bb_type_of(root, value), scratch);
    move_uses(root, value, input_like(root, root->node[value.node], type));
    if (bb_first_use(root, value).node == BB_NONE) bb_node_remove(root, value.node);
  }
  bb_scratch_end(scratch);
  return any;
}
