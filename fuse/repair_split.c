/* repair_split.c - a map that folds and collects what depends on a fold becomes two maps.
 *
 * A softmax exponentiates x - m, sums that and keeps it to be divided by the sum.  The sum joins the
 * maximum in one pass over x; the exponentials, of which each needs the complete maximum, are computed
 * again from x in the pass that divides them.
 */
#include "repair.h"

enum { MOST = 32 }; /* ops that are computed twice */

static bool is_dependent_list(const bb_repair *r, uint32_t port) {
  const bb_out *out = &bb_node_get(r->graph, r->v)->out[port];
  return out->mode == BB_OUT_COLLECT && bb_repair_marked(r, true, bb_repair_folded(r, true, port));
}

/* Is every user a map over the same dim that takes one element after the other? */
static bool is_iterated(const bb_repair *r, uint32_t port) {
  bb_dim dim = bb_node_get(r->graph, r->v)->dim;
  for (bb_use u = bb_first_use(r->graph, (bb_value){r->v, port}); u.node != BB_NONE;
       u = bb_next_use(r->graph, u)) {
    const bb_node *user = bb_node_get(r->graph, u.node);
    if (user->kind != BB_NODE_MAP || user->dim != dim || user->in[u.port].level != 0) return false;
  }
  return true;
}

static bool is_cheap(const bb_graph *body, bb_value value, uint32_t *ops) {
  const bb_node *node = bb_node_get(body, value.node);
  if (node->kind == BB_NODE_INPUT) return true;
  if (!bb_repair_elementwise(node) || ++*ops > MOST) return false;
  for (uint32_t i = 0; i < node->nin; i++)
    if (!is_cheap(body, node->in[i].src, ops)) return false;
  return true;
}

bool bb_repair_splits(bb_repair *r) {
  const bb_node *v = bb_node_get(r->graph, r->v);
  for (uint32_t p = 0; p < v->nout; p++) {
    uint32_t ops = 0;
    if (!is_dependent_list(r, p)) continue;
    if (!is_iterated(r, p))
      return bb_repair_refuse(r, "an output that depends on the fold is collected");
    if (!is_cheap(v->inner, bb_repair_folded(r, true, p), &ops))
      return bb_repair_refuse(r, "an output that depends on the fold is collected, and more than "
                                 "elementwise ops would be computed twice");
    r->splits = true;
  }
  return true;
}

typedef struct copied {
  struct copied *next;
  bb_value from, to;
} copied;

static bb_value copy(bb_repair *r, uint32_t map, bb_value value, copied **made) {
  for (copied *at = *made; at; at = at->next)
    if (bb_value_equal(at->from, value)) return at->to;
  const bb_graph *body = bb_repair_body(r, true);
  const bb_node *node = bb_node_get(body, value.node);
  bb_value to;
  if (node->kind == BB_NODE_INPUT) {
    uint32_t port = 0;
    while (body->input[port] != value.node) port++;
    const bb_in in = bb_node_get(r->graph, r->v)->in[port];
    to = bb_map_in(r->graph, map, in.src, in.level);
  } else {
    bb_value *in = BB_NEW(r->arena, bb_value, node->nin);
    for (uint32_t i = 0; i < node->nin; i++) in[i] = copy(r, map, node->in[i].src, made);
    to = bb_func_add(bb_node_get(r->graph, map)->inner, node->op, node->expr, node->nin, in);
  }
  copied *entry = BB_NEW(r->arena, copied, 1);
  *entry = (copied){*made, value, to};
  *made = entry;
  return to;
}

void bb_repair_split(bb_repair *r) {
  copied *made = NULL;
  uint32_t map = bb_map_add(r->graph, bb_node_get(r->graph, r->v)->dim);
  for (uint32_t p = bb_node_get(r->graph, r->v)->nout; p-- > 0;) {
    if (!is_dependent_list(r, p)) continue;
    bb_value value = copy(r, map, bb_repair_folded(r, true, p), &made);
    bb_value list = bb_map_collect(r->graph, map, value, bb_node_get(r->graph, r->v)->out[p].axis);
    bb_replace_uses(r->graph, (bb_value){r->v, p}, list);
    bb_map_out_remove(r->graph, r->v, p);
  }
}
