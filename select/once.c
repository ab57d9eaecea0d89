/* once.c - which nodes depend on constants only, so that they run once, at load.
 */
#include "flow.h"

static bool dim_is_symbolic(const bb_program *program, bb_dim dim) {
  return dim != BB_NO_DIM && bb_extent_value(bb_dim_get(program, dim)->extent) < 0;
}

static bool type_is_symbolic(const bb_program *program, const bb_type *type) {
  bool symbolic =
      dim_is_symbolic(program, type->item.row) || dim_is_symbolic(program, type->item.col);
  for (uint32_t i = 0; i < type->rank; i++)
    symbolic |= dim_is_symbolic(program, type->level[i].dim);
  return symbolic;
}

static bool expr_is_symbolic(const bb_program *program, const bb_expr *expr) {
  if (expr->op == BB_X_SYMBOL) return true;
  if (expr->op == BB_X_EXTENT) return dim_is_symbolic(program, expr->dim);
  for (int i = 0; i < 3; i++)
    if (expr->a[i] && expr_is_symbolic(program, expr->a[i])) return true;
  return false;
}

/* Does the node need an extent or scalar that is known at a run only? */
static bool node_is_symbolic(const bb_program *program, const bb_node *node) {
  for (uint32_t i = 0; i < node->nout; i++)
    if (type_is_symbolic(program, node->out[i].type)) return true;
  if (node->kind == BB_NODE_FUNC && node->expr) return expr_is_symbolic(program, node->expr);
  if (node->kind != BB_NODE_MAP) return false;
  if (dim_is_symbolic(program, node->dim)) return true;
  for (uint32_t i = 0; i < node->inner->count; i++)
    if (node->inner->node[i]->kind != BB_NODE_REMOVED &&
        node_is_symbolic(program, node->inner->node[i]))
      return true;
  return false;
}

static bool reads_constants(const bb_program *program, const bb_access *access) {
  for (uint32_t p = 0; p < access->count; p++) {
    const bb_tensor *tensor = &program->tensor[access->piece[p].source];
    if (tensor->role != BB_TENSOR_CONSTANT && !tensor->once) return false;
  }
  return true;
}

/* Does the node feed a program output?  Outputs are given at every run. */
static bool feeds_output(const bb_flow *flow, uint32_t n) {
  const bb_graph *g = flow->graph;
  for (uint32_t p = 0; p < g->node[n]->nout; p++)
    for (bb_use u = g->node[n]->out[p].first; u.node != BB_NONE; u = bb_next_use(g, u))
      if (g->node[u.node]->kind == BB_NODE_OUTPUT &&
          flow->program->tensor[g->node[u.node]->tensor].role == BB_TENSOR_OUTPUT)
        return true;
  return false;
}

typedef struct demotion {
  bb_flow *flow;
  uint32_t count, *stack;
} demotion;

static void demote(demotion *d, uint32_t n) {
  if (!d->flow->once[n]) return;
  d->flow->once[n] = false;
  d->stack[d->count++] = n;
}

/* A node that runs every time takes its readers along, and those whose partial results it folds:
 * partial results are not kept. */
static void demote_neighbours(demotion *d, uint32_t n) {
  const bb_graph *g = d->flow->graph;
  const bb_node *node = g->node[n];
  for (uint32_t p = 0; p < node->nout; p++)
    for (bb_use u = node->out[p].first; u.node != BB_NONE; u = bb_next_use(g, u)) demote(d, u.node);
  for (uint32_t p = 0; p < node->nin; p++) {
    bb_value src = node->in[p].src;
    if (bb_is_computed(g->node[src.node]) && bb_is_partial(d->flow->program, bb_type_of(g, src)))
      demote(d, src.node);
  }
}

void bb_flow_mark_once(bb_flow *flow) {
  const bb_graph *g = flow->graph;
  demotion d = {.flow = flow, .stack = BB_NEW(flow->scratch, uint32_t, flow->nodes)};
  flow->once = BB_NEW(flow->scratch, bool, g->count);
  for (uint32_t i = 0; i < flow->nodes; i++) {
    uint32_t n = flow->order[i];
    const bb_node *node = g->node[n];
    bool once = node->kind != BB_NODE_INPUT || reads_constants(flow->program, node->access);
    for (uint32_t p = 0; once && p < node->nin; p++) once = flow->once[node->in[p].src.node];
    /* Last, for it looks at all that is inside a map. */
    if (once && node->kind != BB_NODE_INPUT && node->kind != BB_NODE_VIEW)
      once = !node_is_symbolic(flow->program, node);
    flow->once[n] = once;
  }
  for (uint32_t i = 0; i < flow->nodes; i++) {
    uint32_t n = flow->order[i];
    if (g->node[n]->kind != BB_NODE_INPUT && feeds_output(flow, n)) demote(&d, n);
    if (!flow->once[n]) demote_neighbours(&d, n);
  }
  while (d.count) demote_neighbours(&d, d.stack[--d.count]);
}
