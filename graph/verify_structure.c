/* verify_structure.c - the laws of a level as a graph: ports, connections, uses, order.  What the
 * ports carry is examined in verify_graph.c.
 */
#include "verify_law.h"

#include <stdlib.h>
#include <string.h>

/* A product of extents, of an op that scales. */
static bool is_count(const bb_expr *e) {
  if (e->op == BB_X_MUL) return is_count(e->a[0]) && is_count(e->a[1]);
  return e->op == BB_X_EXTENT;
}

static bool counts_terms(const bb_node *node) {
  return bb_op_scales(node->op) && is_count(node->expr);
}

static bool check_ports(bb_verifier *v, const bb_node *node) {
  uint32_t nin = node->nin, nout = node->nout;
  switch (node->kind) {
  case BB_NODE_INPUT: nin = 0, nout = 1; break;
  case BB_NODE_OUTPUT: nin = 1, nout = 0; break;
  case BB_NODE_FUNC:
    nout = bb_op_results(node->op, nin);
    if (bb_op_has_monoid(node->op) && (!node->rows || node->rows->components != nin))
      return bb_law_broken(v, BB_LAW_PORTS, bb_at_node(node), "%s",
                           node->rows ? "its monoid has other components" : "it has no monoid");
    if (node->op == BB_OP_ELEMENTWISE && !node->expr)
      return bb_law_broken(v, BB_LAW_PORTS, bb_at_node(node), "it has no expression");
    if (node->op == BB_OP_DOT && node->expr && !bb_expr_is_number(node->expr, 0))
      return bb_law_broken(v, BB_LAW_PORTS, bb_at_node(node), "its expression is no empty sum");
    if (node->op != BB_OP_ELEMENTWISE && node->op != BB_OP_DOT && node->expr && !counts_terms(node))
      return bb_law_broken(v, BB_LAW_PORTS, bb_at_node(node), "its expression counts no terms");
    break;
  case BB_NODE_VIEW: nout = 1; break;
  case BB_NODE_REDUCE:
    if (!node->monoid) return bb_law_broken(v, BB_LAW_PORTS, bb_at_node(node), "it has no monoid");
    break;
  case BB_NODE_MAP:
    if (!node->inner || node->dim >= v->program->dims)
      return bb_law_broken(v, BB_LAW_PORTS, bb_at_node(node), "it has no %s",
                           node->inner ? "dim" : "inner level");
    nin = node->inner->ninputs, nout = node->inner->noutputs;
    break;
  case BB_NODE_MISC:
    if (!node->misc) return bb_law_broken(v, BB_LAW_PORTS, bb_at_node(node), "it has no operator");
    break;
  case BB_NODE_REMOVED: break;
  }
  if (node->nin != nin || node->nout != nout)
    return bb_law_broken(v, BB_LAW_PORTS, bb_at_node(node),
                         "%u in-ports and %u out-ports, not %u and %u", node->nin, node->nout, nin,
                         nout);
  return true;
}

static bool check_connections(bb_verifier *v, const bb_graph *graph, const bb_node *node) {
  for (uint32_t i = 0; i < node->nin; i++) {
    bb_value src = node->in[i].src;
    bool there = src.node < graph->count && graph->node[src.node]->kind != BB_NODE_REMOVED &&
                 src.port < graph->node[src.node]->nout;
    if (!there) return bb_law_broken(v, BB_LAW_CONNECTED, bb_at_in(node, i), "it reads nothing");
  }
  return true;
}

/* The in-ports that read each value, counted from both sides. */
static bool check_uses(bb_verifier *v, const bb_graph *graph) {
  uint64_t ports = 0, listed = 0;
  for (uint32_t n = 0; n < graph->count; n++) ports += graph->node[n]->nin;
  for (uint32_t n = 0; n < graph->count; n++) {
    const bb_node *node = graph->node[n];
    if (node->kind == BB_NODE_REMOVED) continue;
    for (uint32_t p = 0; p < node->nout; p++) {
      bb_use before = {BB_NONE, 0}, u = node->out[p].first;
      for (; u.node != BB_NONE; before = u, u = bb_next_use(graph, u)) {
        bool there = u.node < graph->count && u.port < graph->node[u.node]->nin;
        const bb_in *in = there ? &graph->node[u.node]->in[u.port] : NULL;
        bool sound = in && in->src.node == n && in->src.port == p && in->prev.node == before.node &&
                     (before.node == BB_NONE || in->prev.port == before.port);
        if (!sound || listed++ > ports)
          return bb_law_broken(v, BB_LAW_USES, bb_at_out(node, p), "its list of uses is broken");
      }
    }
  }
  if (listed != ports)
    return bb_law_broken(v, BB_LAW_USES, (bb_place){.text = "a level"}, "%llu in-ports, %llu uses",
                         (unsigned long long)ports, (unsigned long long)listed);
  return true;
}

static bool check_list(bb_verifier *v, const bb_graph *graph, uint32_t count, const uint32_t *list,
                       bb_kind kind) {
  bool *seen = BB_NEW(v->scratch, bool, graph->count);
  uint32_t nodes = 0;
  for (uint32_t i = 0; i < graph->count; i++) nodes += graph->node[i]->kind == kind;
  for (uint32_t i = 0; i < count; i++) {
    bool sound = list[i] < graph->count && graph->node[list[i]]->kind == kind && !seen[list[i]];
    if (sound) seen[list[i]] = true;
    if (!sound || nodes != count)
      return bb_law_broken(v, BB_LAW_BOUNDARY, (bb_place){.text = "a level"},
                           "its list of %s is not that of its nodes",
                           kind == BB_NODE_INPUT ? "inputs" : "outputs");
  }
  if (nodes != count)
    return bb_law_broken(v, BB_LAW_BOUNDARY, (bb_place){.text = "a level"}, "%u nodes, %u listed",
                         nodes, count);
  return true;
}

static int by_serial(const void *left, const void *right) {
  uint32_t a = (*(const bb_node *const *)left)->serial,
           b = (*(const bb_node *const *)right)->serial;
  return a < b ? -1 : a > b;
}

static bool check_serials(bb_verifier *v, const bb_graph *graph) {
  const bb_node **node = BB_NEW(v->scratch, const bb_node *, graph->count);
  uint32_t count = 0;
  for (uint32_t i = 0; i < graph->count; i++)
    if (graph->node[i]->kind != BB_NODE_REMOVED) node[count++] = graph->node[i];
  if (count) qsort(node, count, sizeof *node, by_serial);
  for (uint32_t i = 0; i < count; i++) {
    bool twice = i && node[i - 1]->serial == node[i]->serial;
    if (twice || node[i]->serial >= v->program->serial)
      return bb_law_broken(v, BB_LAW_SERIAL, bb_at_node(node[i]),
                           twice ? "another node has it too" : "the program has not reached it");
  }
  return true;
}

static bool check_root_only(bb_verifier *v, const bb_node *node) {
  bool boundary = node->kind == BB_NODE_INPUT || node->kind == BB_NODE_OUTPUT;
  if (node->kind == BB_NODE_VIEW || node->kind == BB_NODE_MISC ||
      (boundary && (node->tensor != BB_NONE || node->access)))
    return bb_law_broken(v, BB_LAW_ROOT_ONLY, bb_at_node(node), "it is inside a map");
  return true;
}

uint32_t *bb_verify_structure(bb_verifier *v, const bb_graph *graph, bool root) {
  for (uint32_t i = 0; i < graph->count; i++) {
    const bb_node *node = graph->node[i];
    if (node->kind == BB_NODE_REMOVED) continue;
    if (!check_ports(v, node) || !check_connections(v, graph, node)) return NULL;
    if (!root && !check_root_only(v, node)) return NULL;
  }
  if (!check_uses(v, graph) || !check_serials(v, graph) ||
      !check_list(v, graph, graph->ninputs, graph->input, BB_NODE_INPUT) ||
      !check_list(v, graph, graph->noutputs, graph->output, BB_NODE_OUTPUT))
    return NULL;
  uint32_t *order = BB_NEW(v->scratch, uint32_t, graph->live);
  uint32_t ordered = bb_topological_order(graph, v->scratch, order);
  if (ordered == graph->live) return order;
  bool *done = BB_NEW(v->scratch, bool, graph->count);
  for (uint32_t i = 0; i < ordered; i++) done[order[i]] = true;
  uint32_t stuck = 0;
  while (done[stuck] || graph->node[stuck]->kind == BB_NODE_REMOVED) stuck++;
  bb_law_broken(v, BB_LAW_ACYCLIC, bb_at_node(graph->node[stuck]),
                "it stands on or behind a cycle");
  return NULL;
}
