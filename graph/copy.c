/* copy.c - what computes nothing: its result is its operand, elsewhere. */
#include "expr.h"
#include "program.h"

#include <string.h>

/* Is the value each element of its operand as it is?  Loops over the outermost level, then the next: no turn of two levels
 * over one dim. */
static bool is_copied(const bb_graph *graph, uint32_t at) {
  const bb_node *node = bb_node_get(graph, at);
  if (node->kind == BB_NODE_FUNC)
    return node->op == BB_OP_ELEMENTWISE && node->nin == 1 && node->expr->op == BB_X_ARG;
  if (node->kind != BB_NODE_MAP || node->nin != 1 || node->nout != 1 || node->in[0].level != 0 ||
      node->part != BB_PART_ALL || node->out[0].mode != BB_OUT_COLLECT)
    return false;
  const bb_graph *inner = node->inner;
  uint32_t made = bb_src(inner, inner->output[0], 0).node;
  return inner->live == 3 && is_copied(inner, made) &&
         bb_node_get(inner, bb_src(inner, made, 0).node)->kind == BB_NODE_INPUT;
}

bool bb_graph_is_copy(const bb_graph *graph) {
  if (graph->ninputs != 1 || graph->noutputs != 1 || graph->live != 3) return false;
  bb_value made = bb_src(graph, graph->output[0], 0);
  return is_copied(graph, made.node) &&
         bb_type_of(graph, made) == bb_node_get(graph, graph->input[0])->out[0].type;
}

bool bb_misc_is_copy(const bb_misc *misc) {
  return !misc->domain[0] && strcmp(misc->op, "Reshape") == 0 && misc->nin == 1 && misc->nout == 1;
}
