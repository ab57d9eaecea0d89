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

static bool reads_dim_twice(const bb_piece *piece) {
  for (uint32_t a = 0; a < piece->rank; a++)
    for (uint32_t b = 0; b < a; b++)
      if (bb_index_meets(&piece->index[a], &piece->index[b])) return true;
  return false;
}

static void fix_those_of(bool *fixed, const bb_access *access) {
  for (uint32_t p = 0; access && p < access->count; p++) fixed[access->piece[p].source] = true;
}

bool *bb_lay_find_fixed(const bb_program *program, bb_arena *scratch) {
  bool *fixed = BB_NEW(scratch, bool, program->tensors + 1);
  for (uint32_t t = 0; t < program->tensors; t++) {
    const bb_tensor *tensor = &program->tensor[t];
    fixed[t] = tensor->role != BB_TENSOR_LOCAL || tensor->once || tensor->axes != tensor->rank;
  }
  for (uint32_t i = 0; i < program->steps; i++) {
    const bb_step *step = &program->step[i];
    if (step->candidate != BB_NONE) continue;
    for (uint32_t k = 0; k < step->nin; k++) fix_those_of(fixed, step->in[k]);
    for (uint32_t k = 0; k < step->nout; k++) fixed[step->out[k]] = true;
  }
  for (uint32_t c = 0; c < program->candidates; c++) {
    const bb_graph *graph = program->candidate[c].graph;
    for (uint32_t k = 0; k < graph->ninputs + graph->noutputs; k++) {
      uint32_t n = k < graph->ninputs ? graph->input[k] : graph->output[k - graph->ninputs];
      const bb_node *node = bb_node_get(graph, n);
      if (!node->access) fixed[node->tensor] = true;
      for (uint32_t p = 0; node->access && p < node->access->count; p++)
        if (reads_dim_twice(&node->access->piece[p])) fixed[node->access->piece[p].source] = true;
    }
  }
  return fixed;
}

void bb_lay(bb_program *program) {
  bb_arena *scratch = bb_scratch(program->ctx);
  bb_lay_padded(program, scratch);
  bb_lay_constants(program, scratch);
  bb_lay_locals(program, scratch);
  bb_scratch_end(scratch);
}
