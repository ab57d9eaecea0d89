/* inward_maps.c - what stays when a level is pulled into one of its maps, and which two maps would
 * meet there.
 */
#include "inward.h"

/* --- what stays --- */

static void keep_with_ancestors(const bb_inward *v, uint32_t from) {
  uint32_t *stack = BB_NEW(v->scratch, uint32_t, (size_t)v->graph->live + 1), count = 0;
  if (v->stays[from]) return;
  v->stays[from] = true;
  stack[count++] = from;
  while (count) {
    const bb_node *node = bb_node_get(v->graph, stack[--count]);
    for (uint32_t i = 0; i < node->nin; i++) {
      uint32_t to = node->in[i].src.node;
      if (v->stays[to]) continue;
      v->stays[to] = true;
      stack[count++] = to;
    }
  }
}

/* What is reachable from a node depends on it, and cannot be needed by it. */
static void keep_with_users(const bb_inward *v, uint32_t from) {
  uint32_t *stack = BB_NEW(v->scratch, uint32_t, (size_t)v->graph->live + 1), count = 0;
  v->stays[from] = true;
  stack[count++] = from;
  while (count) {
    const bb_node *node = bb_node_get(v->graph, stack[--count]);
    for (uint32_t i = 0; i < node->nout; i++)
      for (bb_use u = node->out[i].first; u.node != BB_NONE; u = bb_next_use(v->graph, u)) {
        if (v->stays[u.node]) continue;
        v->stays[u.node] = true;
        stack[count++] = u.node;
      }
  }
}

void bb_inward_find_staying(bb_inward *v) {
  const bb_node *x = bb_node_get(v->graph, v->x);
  if (!v->stays) v->stays = BB_NEW(v->scratch, bool, v->graph->count);
  keep_with_users(v, v->x);
  for (uint32_t n = v->scope->first; n != BB_NONE; n = v->scope->place[n].next) {
    const bb_node *node = bb_node_get(v->graph, n);
    bb_kind kind = node->kind;
    if (kind == BB_NODE_INPUT || kind == BB_NODE_OUTPUT || bb_scope_constant(v->scope, n))
      v->stays[n] = true;
    if (kind == BB_NODE_VIEW || kind == BB_NODE_MISC) keep_with_ancestors(v, n);
    if (node->part != BB_PART_ALL && !v->stays[n]) keep_with_ancestors(v, n);
  }
  for (uint32_t p = 0; p < x->nin; p++)
    if (x->in[p].level != BB_WHOLE) keep_with_ancestors(v, x->in[p].src.node);
}

/* --- the two Y-maps --- */

static const bb_node *x_of(const bb_inward *v) {
  return bb_node_get(v->graph, v->x);
}

static uint32_t input_port(const bb_graph *inner, uint32_t input) {
  for (uint32_t i = 0; i < inner->ninputs; i++)
    if (inner->input[i] == input) return i;
  return BB_NONE;
}

/* Does a value of the level reach in-port `port` of X? */
static bool reaches_port(const bb_inward *v, uint32_t from, uint32_t port) {
  uint32_t src = x_of(v)->in[port].src.node;
  return src == from || bb_scope_reaches(v->scope, from, src, false);
}

/* Would the outer map reach the inner one, were they side by side?  Edges between them that one
 * collects and the other iterates do not count in variant (a); X takes what passes there whole, or the
 * outer map would stay. */
static bool would_reach(const bb_inward *v, uint32_t outer, uint32_t inner, bool consecutive) {
  uint32_t *stack = BB_NEW(v->scratch, uint32_t, (size_t)v->inner->live + 1), count = 0;
  bool *seen = BB_NEW(v->scratch, bool, v->inner->count);
  stack[count++] = inner;
  while (count) {
    uint32_t at = stack[--count];
    const bb_node *node = bb_node_get(v->inner, at);
    if (node->kind == BB_NODE_INPUT && reaches_port(v, outer, input_port(v->inner, at)))
      return true;
    for (uint32_t i = 0; i < node->nin; i++) {
      uint32_t to = node->in[i].src.node;
      if (consecutive && at == inner && bb_node_get(v->inner, to)->kind == BB_NODE_INPUT) {
        uint32_t port = input_port(v->inner, to);
        bb_value src = x_of(v)->in[port].src;
        if (src.node == outer && node->in[i].level == 0 &&
            bb_node_get(v->graph, outer)->out[src.port].mode == BB_OUT_COLLECT)
          continue;
      }
      if (seen[to]) continue;
      seen[to] = true;
      stack[count++] = to;
    }
  }
  return false;
}

static bool meets(bb_match *match, bb_inward *v, uint32_t outer, uint32_t inner, bool consecutive) {
  const bb_node *a = bb_node_get(v->graph, outer);
  if (a->kind != BB_NODE_MAP || outer == match->anchor) return false;
  const bb_node *b = bb_node_get(v->inner, inner);
  if (a->dim != b->dim || a->part != BB_PART_ALL || b->part != BB_PART_ALL) return false;
  if (match->partner != BB_NONE && outer != match->partner) return false;
  if (!v->stays) bb_inward_find_staying(v);
  if (v->stays[outer])
    return bb_miss(match, "the outer map makes what the extended map iterates, or runs at load");
  if (would_reach(v, outer, inner, consecutive))
    return bb_miss(match, "a path leads from the outer map to the inner one");
  return true;
}

/* The outer map that the inner map `use` could be fused with, given that `src` feeds both. */
static uint32_t find_outer(bb_match *match, bb_inward *v, bb_value src, bb_use use, char variant) {
  uint32_t level = bb_node_get(v->inner, use.node)->in[use.port].level;
  if (variant == 'a') return meets(match, v, src.node, use.node, true) ? src.node : BB_NONE;
  if ((variant == 'b') != (bb_node_get(v->graph, src.node)->kind == BB_NODE_INPUT)) return BB_NONE;
  for (bb_use u = bb_first_use(v->graph, src); u.node != BB_NONE; u = bb_next_use(v->graph, u))
    if (bb_node_get(v->graph, u.node)->in[u.port].level == level &&
        meets(match, v, u.node, use.node, false))
      return u.node;
  return BB_NONE;
}

static bool find_pair(bb_match *match, bb_inward *v, char variant) {
  for (uint32_t p = 0; p < x_of(v)->nin; p++) {
    bb_value src = x_of(v)->in[p].src, input = {v->inner->input[p], 0};
    if (x_of(v)->in[p].level != BB_WHOLE) continue;
    for (bb_use u = bb_first_use(v->inner, input); u.node != BB_NONE;
         u = bb_next_use(v->inner, u)) {
      if (bb_node_get(v->inner, u.node)->kind != BB_NODE_MAP) continue;
      uint32_t outer = find_outer(match, v, src, u, variant);
      if (outer != BB_NONE) return bb_hit(match, variant, 2, (uint32_t[]){outer, match->anchor});
    }
  }
  return false;
}

bool bb_inward_find_maps(bb_match *match) {
  bb_scope *scope = match->scope;
  match->why = "no map outside and map inside over one dim share a value";
  bb_arena *scratch = bb_scratch(scope->graph->program->ctx);
  const bb_node *x = bb_node_get(scope->graph, match->anchor);
  bb_inward v = {scope, scope->graph, x->inner, match->anchor, scratch, NULL};
  bool found = find_pair(match, &v, 'a') || find_pair(match, &v, 'b') || find_pair(match, &v, 'c');
  bb_scratch_end(scratch);
  return found;
}
