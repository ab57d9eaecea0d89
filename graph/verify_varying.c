/* verify_varying.c - which values of a loop's body change from one iteration to the next. */
#include "verify_law.h"

/* Does the expression read the index of the k-th map around it? */
static bool reads_index(bb_arena *scratch, const bb_expr *expr, uint32_t k) {
  uint32_t nodes;
  if (!expr || !bb_expr_uses_coord(expr)) return false;
  const bb_expr **leaf = bb_expr_postorder(scratch, expr, &nodes);
  for (uint32_t i = 0; i < nodes; i++)
    if (leaf[i]->op == BB_X_COORD && leaf[i]->index == BB_COORD_MAP + k) return true;
  return false;
}

/* Components of a fold change with those that combine reads for them, and with what those change
 * with. */
static void spread_varying(const bb_monoid *monoid, bool *varies) {
  for (uint32_t round = 0; round < monoid->components; round++)
    for (uint32_t k = 0; k < monoid->components; k++)
      for (uint32_t j = 0; j < monoid->components && !varies[k]; j++)
        varies[k] = varies[j] && bb_monoid_reads(monoid, k, j);
}

bool *bb_verify_varying(bb_arena *scratch, const bb_graph *graph, const bool *input, uint32_t k) {
  uint32_t *order = BB_NEW(scratch, uint32_t, graph->live);
  uint32_t count = bb_topological_order(graph, scratch, order);
  const bool **varies = BB_NEW(scratch, const bool *, graph->count); /* by node and out-port */
  bool *output = BB_NEW(scratch, bool, graph->noutputs);
  for (uint32_t i = 0; i < graph->ninputs; i++) varies[graph->input[i]] = &input[i];
  for (uint32_t i = 0; i < count; i++) {
    const bb_node *node = graph->node[order[i]];
    if (node->kind == BB_NODE_INPUT) continue;
    bool *in = BB_NEW(scratch, bool, node->nin), any = false;
    for (uint32_t p = 0; p < node->nin; p++)
      any |= in[p] = varies[node->in[p].src.node][node->in[p].src.port];
    if (node->kind == BB_NODE_MAP) {
      bool *out = bb_verify_varying(scratch, node->inner, in, k + 1);
      for (uint32_t p = 0; p < node->nout; p++)
        if (node->out[p].mode == BB_OUT_FOLD && node->out[p].component == 0)
          spread_varying(node->out[p].fold, out + p);
      varies[order[i]] = out;
      continue;
    }
    if (node->kind == BB_NODE_REDUCE) {
      spread_varying(node->monoid, in);
      varies[order[i]] = in;
      continue;
    }
    any = any || (node->kind == BB_NODE_FUNC && reads_index(scratch, node->expr, k));
    bool *out = BB_NEW(scratch, bool, node->nout);
    for (uint32_t p = 0; p < node->nout; p++) out[p] = any;
    varies[order[i]] = out;
  }
  for (uint32_t i = 0; i < graph->noutputs; i++) {
    bb_value src = graph->node[graph->output[i]]->in[0].src;
    output[i] = varies[src.node][src.port];
  }
  return output;
}
