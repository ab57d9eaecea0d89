/* widening.c - conversions to wider elements are made again by each of their readers.
 *
 *   y = add(a, b)                     y = add(a, b)
 *   x = f32(y)                        sum(f32(y))
 *   sum(x), shift(x)          ==>     shift(f32(y))
 *
 * As one node it would be in one kernel, and what passes between that one and the others would be wide.  To convert
 * again costs next to nothing; bytes between kernels are what fusion is for.  A reader that is no loop, a view or an
 * output, keeps the node that there was.
 */
#include "pieces.h"

bool bb_is_pointwise(const bb_node *node) {
  if (node->kind == BB_NODE_FUNC)
    return bb_op_is_pointwise(node->op) || node->op == BB_OP_TRANSPOSE;
  if (node->kind != BB_NODE_MAP || node->part != BB_PART_ALL) return false;
  for (uint32_t p = 0; p < node->nout; p++)
    if (node->out[p].mode != BB_OUT_COLLECT) return false;
  for (uint32_t i = 0; i < node->inner->count; i++) {
    const bb_node *inner = node->inner->node[i];
    if (inner->kind == BB_NODE_REDUCE) return false;
    if (inner->kind == BB_NODE_MAP || inner->kind == BB_NODE_FUNC)
      if (!bb_is_pointwise(inner)) return false;
  }
  return true;
}

/* A conversion of elements, and nothing else. */
static bool converts(const bb_node *node) {
  if (node->kind == BB_NODE_FUNC)
    return node->op == BB_OP_ELEMENTWISE && node->expr->op == BB_X_CAST &&
           node->expr->a[0]->op == BB_X_ARG;
  if (node->kind != BB_NODE_MAP || !bb_is_pointwise(node)) return false;
  for (uint32_t i = 0; i < node->inner->count; i++) {
    const bb_node *inner = node->inner->node[i];
    bool computed = inner->kind == BB_NODE_MAP || inner->kind == BB_NODE_FUNC;
    if (computed && !converts(inner)) return false;
  }
  return true;
}

bool bb_widens(const bb_graph *graph, uint32_t n) {
  const bb_node *node = graph->node[n];
  return node->nin == 1 && node->nout == 1 && converts(node) &&
         bb_dtype_bytes(node->out[0].type->item.dtype) >
             bb_dtype_bytes(bb_type_of(graph, node->in[0].src)->item.dtype);
}

static uint32_t copy_of(bb_graph *graph, uint32_t n) {
  uint32_t copy = bb_node_add_like(graph, graph->node[n]);
  bb_node *made = graph->node[copy];
  made->serial = graph->program->serial++;
  if (made->kind == BB_NODE_MAP) made->inner = bb_graph_copy_anew(made->inner);
  bb_connect(graph, copy, 0, graph->node[n]->in[0].src);
  return copy;
}

/* One that the reader has by another port (of those from `made` on), or a new one. */
static uint32_t copy_for(bb_graph *graph, uint32_t n, uint32_t reader, uint32_t made) {
  const bb_node *node = graph->node[reader];
  for (uint32_t p = 0; p < node->nin; p++)
    if (node->in[p].src.node != BB_NONE && node->in[p].src.node >= made)
      return node->in[p].src.node;
  return copy_of(graph, n);
}

void bb_spread_widening(bb_graph *graph) {
  uint32_t count = graph->count;
  for (uint32_t n = 0; n < count; n++) {
    if (graph->node[n]->kind == BB_NODE_REMOVED || !bb_widens(graph, n)) continue;
    bb_value value = {n, 0};
    bool first = true; /* it reads the node itself */
    uint32_t made = graph->count;
    for (bb_use next, u = bb_first_use(graph, value); u.node != BB_NONE; u = next) {
      next = bb_next_use(graph, u);
      if (first || !bb_is_computed(graph->node[u.node])) {
        first = false;
        continue;
      }
      bb_connect(graph, u.node, u.port, (bb_value){copy_for(graph, n, u.node, made), 0});
    }
  }
}
