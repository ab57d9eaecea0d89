/* lay.c - arrays laid out as products read them.
 *
 * What copies whole rows into a product's memory wants neighbours of a row to be neighbours in memory, and rows that begin
 * at multiples of 16 bytes.
 */
#include "lay.h"

bb_axis bb_lay_axis_over(const bb_type *type, bb_dim dim) {
  for (uint32_t i = 0; i < type->rank; i++)
    if (type->level[i].dim == dim && type->level[i].axis != BB_AXIS_NONE)
      return type->level[i].axis;
  return BB_AXIS_NONE;
}

bool bb_lay_has_product(const bb_graph *graph) {
  for (uint32_t i = 0; i < graph->count; i++) {
    const bb_node *node = bb_node_get(graph, i);
    if (node->kind == BB_NODE_FUNC && node->op == BB_OP_DOT) return true;
    if (node->kind == BB_NODE_MAP && bb_lay_has_product(node->inner)) return true;
  }
  return false;
}

void bb_lay(bb_program *program) {
  bb_arena *scratch = bb_scratch(program->ctx);
  bb_lay_constants(program, scratch);
  bb_lay_locals(program, scratch);
  bb_scratch_end(scratch);
}
