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

/* A loop that is written again as `to`, and the one around it. */
typedef struct loop {
  const struct loop *around;
  const bb_node *from;
  bb_graph *level; /* that holds `to` */
  uint32_t to;
} loop;

static bb_in source(const loop *l, uint32_t input) {
  uint32_t port = 0;
  while (l->from->inner->input[port] != input) port++;
  return l->from->in[port];
}

/* Elementwise ops and transposes alone, in loops that collect what they make. */
static bool is_cheap(const loop *l, bb_value value, uint32_t *ops) {
  const bb_node *node = bb_node_get(l->from->inner, value.node);
  if (node->kind == BB_NODE_INPUT)
    return !l->around || is_cheap(l->around, source(l, value.node).src, ops);
  if (++*ops > MOST) return false;
  if (node->kind == BB_NODE_MAP) {
    loop inner = {.around = l, .from = node};
    bool whole = node->out[value.port].mode == BB_OUT_COLLECT && node->part == BB_PART_ALL;
    return whole && is_cheap(&inner, bb_src(node->inner, node->inner->output[value.port], 0), ops);
  }
  bool turns = node->kind == BB_NODE_FUNC && node->op == BB_OP_TRANSPOSE;
  if (!bb_repair_elementwise(node) && !turns) return false;
  for (uint32_t i = 0; i < node->nin; i++)
    if (!is_cheap(l, node->in[i].src, ops)) return false;
  return true;
}

bool bb_repair_splits(bb_repair *r) {
  const bb_node *v = bb_node_get(r->graph, r->v);
  loop whole = {.from = v};
  for (uint32_t p = 0; p < v->nout; p++) {
    uint32_t ops = 0;
    if (!is_dependent_list(r, p)) continue;
    if (!is_iterated(r, p))
      return bb_repair_refuse(r, "an output that depends on the fold is collected");
    if (!is_cheap(&whole, bb_repair_folded(r, true, p), &ops))
      return bb_repair_refuse(r, "an output that depends on the fold is collected, and more than "
                                 "elementwise ops would be computed twice");
    r->splits = true;
  }
  return true;
}

typedef struct copied {
  struct copied *next;
  const bb_node *loop;
  bb_value from, to;
} copied;

static bb_value copy(bb_repair *r, const loop *l, bb_value value, copied **made);

static bb_value copy_input(bb_repair *r, const loop *l, uint32_t input, copied **made) {
  bb_in in = source(l, input);
  bb_value src = l->around ? copy(r, l->around, in.src, made) : in.src;
  return bb_map_in(l->level, l->to, src, in.level);
}

/* One loop for all that a loop collects: what is copied in it is found again by the loop it was in. */
static bb_value copy_loop(bb_repair *r, const loop *l, bb_value list, copied **made) {
  const bb_node *node = bb_node_get(l->from->inner, list.node);
  bb_graph *level = bb_node_get(l->level, l->to)->inner;
  const copied *at = *made;
  while (at && !(at->loop == l->from && at->from.node == list.node)) at = at->next;
  loop inner = {l, node, level, at ? at->to.node : bb_map_add(level, node->dim)};
  bb_value value = copy(r, &inner, bb_src(node->inner, node->inner->output[list.port], 0), made);
  return bb_map_collect(level, inner.to, value, node->out[list.port].axis);
}

static bb_value copy(bb_repair *r, const loop *l, bb_value value, copied **made) {
  for (copied *at = *made; at; at = at->next)
    if (at->loop == l->from && bb_value_equal(at->from, value)) return at->to;
  const bb_node *node = bb_node_get(l->from->inner, value.node);
  bb_value to;
  if (node->kind == BB_NODE_INPUT) {
    to = copy_input(r, l, value.node, made);
  } else if (node->kind == BB_NODE_MAP) {
    to = copy_loop(r, l, value, made);
  } else {
    bb_value *in = BB_NEW(r->arena, bb_value, node->nin);
    for (uint32_t i = 0; i < node->nin; i++) in[i] = copy(r, l, node->in[i].src, made);
    to = bb_func_add(bb_node_get(l->level, l->to)->inner, node->op, node->expr, node->nin, in);
  }
  copied *entry = BB_NEW(r->arena, copied, 1);
  *entry = (copied){*made, l->from, value, to};
  *made = entry;
  return to;
}

void bb_repair_split(bb_repair *r) {
  copied *made = NULL;
  uint32_t map = bb_map_add(r->graph, bb_node_get(r->graph, r->v)->dim);
  loop whole = {NULL, bb_node_get(r->graph, r->v), r->graph, map};
  for (uint32_t p = bb_node_get(r->graph, r->v)->nout; p-- > 0;) {
    if (!is_dependent_list(r, p)) continue;
    bb_value value = copy(r, &whole, bb_repair_folded(r, true, p), &made);
    bb_value list = bb_map_collect(r->graph, map, value, bb_node_get(r->graph, r->v)->out[p].axis);
    bb_replace_uses(r->graph, (bb_value){r->v, p}, list);
    bb_map_out_remove(r->graph, r->v, p);
  }
}
