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

/* --- what follows --- */

enum { FINISHES = 64 }; /* uses looked at behind a map */

/* Ops on items, as those that finish a fold, may stand between. */
static bool only_outputs_follow(const bb_graph *graph, const bb_node *x, uint32_t *left) {
  bool any = false;
  for (uint32_t i = 0; i < x->nout; i++)
    for (bb_use u = x->out[i].first; u.node != BB_NONE; u = bb_next_use(graph, u)) {
      const bb_node *user = bb_node_get(graph, u.node);
      any = true;
      if (user->kind == BB_NODE_OUTPUT) continue;
      bool looks = user->kind == BB_NODE_FUNC && *left && (*left)--;
      if (!looks || !only_outputs_follow(graph, user, left)) return false;
    }
  return any;
}

bool bb_inward_only_outputs_follow(const bb_graph *graph, const bb_node *map) {
  uint32_t left = FINISHES;
  return only_outputs_follow(graph, map, &left);
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

/* A map over the dim of an outer one: of X's level, or of a deeper one, in maps that take the value which both share
 * whole.  Once the outer map stands in X, X's map of X's level is extended in the same way. */
typedef struct inner_map {
  const struct inner_map *around; /* NULL: X */
  const bb_graph *graph;          /* the level that it is of */
  uint32_t node, port;            /* the map, and where the value comes in */
} inner_map;

static const bb_node *map_of(const inner_map *y) {
  return bb_node_get(y->graph, y->node);
}

/* Nodes of a level that are still to be gone through, each once. */
typedef struct worklist {
  uint32_t *node, count;
  bool *seen;
} worklist;

static worklist worklist_for(const bb_graph *graph, bb_arena *scratch) {
  return (worklist){.node = BB_NEW(scratch, uint32_t, (size_t)graph->live + 1),
                    .seen = BB_NEW(scratch, bool, graph->count)};
}

static void add(worklist *w, uint32_t node) {
  if (w->seen[node]) return;
  w->seen[node] = true;
  w->node[w->count++] = node;
}

/* Does any of these nodes of the level inside `around` follow from the outer map? */
static bool any_reached(const bb_inward *v, uint32_t outer, const inner_map *around, worklist w) {
  const bb_graph *graph = around ? map_of(around)->inner : v->inner;
  worklist outside = around ? worklist_for(around->graph, v->scratch) : (worklist){0};
  while (w.count) {
    uint32_t at = w.node[--w.count];
    const bb_node *node = bb_node_get(graph, at);
    if (node->kind == BB_NODE_INPUT) {
      uint32_t port = input_port(graph, at);
      if (!around && reaches_port(v, outer, port)) return true;
      if (around) add(&outside, map_of(around)->in[port].src.node);
    }
    for (uint32_t i = 0; i < node->nin; i++) add(&w, node->in[i].src.node);
  }
  return outside.count && any_reached(v, outer, around->around, outside);
}

/* Does in-port i of the inner map iterate just what the outer one collects? */
static bool iterates_collected(const bb_inward *v, uint32_t outer, const inner_map *y, uint32_t i) {
  if (map_of(y)->in[i].level != 0) return false;
  bb_value value = map_of(y)->in[i].src;
  for (; bb_node_get(y->graph, value.node)->kind == BB_NODE_INPUT; y = y->around) {
    const bb_node *map = y->around ? map_of(y->around) : x_of(v);
    const bb_in *in = &map->in[input_port(y->graph, value.node)];
    value = in->src;
    if (in->level != BB_WHOLE) return false;
    if (!y->around)
      return value.node == outer &&
             bb_node_get(v->graph, outer)->out[value.port].mode == BB_OUT_COLLECT;
  }
  return false;
}

/* Would the outer map reach the inner one, were they side by side?  Edges between them that one
 * collects and the other iterates do not count in variant (a); X takes what passes there whole, or the
 * outer map would stay. */
static bool would_reach(const bb_inward *v, uint32_t outer, const inner_map *y, bool consecutive) {
  const bb_node *inner = map_of(y);
  worklist w = worklist_for(y->graph, v->scratch);
  for (uint32_t i = 0; i < inner->nin; i++)
    if (!consecutive || !iterates_collected(v, outer, y, i)) add(&w, inner->in[i].src.node);
  return any_reached(v, outer, y->around, w);
}

static bool meets(bb_match *match, bb_inward *v, uint32_t outer, const inner_map *y,
                  bool consecutive) {
  const bb_node *a = bb_node_get(v->graph, outer), *b = map_of(y);
  if (a->kind != BB_NODE_MAP || outer == match->anchor) return false;
  if (a->dim != b->dim || a->part != BB_PART_ALL || b->part != BB_PART_ALL) return false;
  if (match->partner != BB_NONE && outer != match->partner) return false;
  if (!v->stays) bb_inward_find_staying(v);
  if (v->stays[outer])
    return bb_miss(match, "the outer map makes what the extended map iterates, or runs at load");
  if (would_reach(v, outer, y, consecutive))
    return bb_miss(match, "a path leads from the outer map to the inner one");
  return true;
}

/* The outer map that the inner map could be fused with, given that `src` feeds both. */
static uint32_t find_outer(bb_match *match, bb_inward *v, bb_value src, const inner_map *y,
                           char variant) {
  uint32_t level = map_of(y)->in[y->port].level;
  if (variant == 'a') return meets(match, v, src.node, y, true) ? src.node : BB_NONE;
  if ((variant == 'b') != (bb_node_get(v->graph, src.node)->kind == BB_NODE_INPUT)) return BB_NONE;
  for (bb_use u = bb_first_use(v->graph, src); u.node != BB_NONE; u = bb_next_use(v->graph, u))
    if (bb_node_get(v->graph, u.node)->in[u.port].level == level &&
        meets(match, v, u.node, y, false))
      return u.node;
  return BB_NONE;
}

static bool may_hold_inner(const inner_map *y) {
  return map_of(y)->in[y->port].level == BB_WHOLE && map_of(y)->part == BB_PART_ALL &&
         bb_inward_only_outputs_follow(y->graph, map_of(y));
}

/* The same for all maps that read an input of a level, and for those within them. */
static uint32_t find_outer_of(bb_match *match, bb_inward *v, bb_value src, const inner_map *around,
                              uint32_t port, char variant, bool deep) {
  const bb_graph *graph = around ? map_of(around)->inner : v->inner;
  uint32_t outer = BB_NONE;
  bb_use u = bb_first_use(graph, (bb_value){graph->input[port], 0});
  for (; u.node != BB_NONE && outer == BB_NONE; u = bb_next_use(graph, u)) {
    inner_map y = {around, graph, u.node, u.port};
    if (map_of(&y)->kind != BB_NODE_MAP) continue;
    outer = find_outer(match, v, src, &y, variant);
    if (outer == BB_NONE && deep && may_hold_inner(&y))
      outer = find_outer_of(match, v, src, &y, u.port, variant, true);
  }
  return outer;
}

static bool find_pair(bb_match *match, bb_inward *v, char variant, bool deep) {
  for (uint32_t p = 0; p < x_of(v)->nin; p++) {
    bb_value src = x_of(v)->in[p].src;
    if (x_of(v)->in[p].level != BB_WHOLE) continue;
    uint32_t outer = find_outer_of(match, v, src, NULL, p, variant, deep);
    if (outer != BB_NONE)
      return bb_hit(match, deep ? 'd' : variant, 2, (uint32_t[]){outer, match->anchor});
  }
  return false;
}

static bool find_any_pair(bb_match *match, bb_inward *v, bool deep) {
  return find_pair(match, v, 'a', deep) || find_pair(match, v, 'b', deep) ||
         find_pair(match, v, 'c', deep);
}

/* Maps that stand side by side already come first. */
bool bb_inward_find_maps(bb_match *match, bool deep) {
  bb_scope *scope = match->scope;
  match->why = "no map outside and map inside over one dim share a value";
  bb_arena *scratch = bb_scratch(scope->graph->program->ctx);
  const bb_node *x = bb_node_get(scope->graph, match->anchor);
  bb_inward v = {scope, scope->graph, x->inner, match->anchor, scratch, NULL};
  bool found = find_any_pair(match, &v, false) || (deep && find_any_pair(match, &v, true));
  bb_scratch_end(scratch);
  return found;
}
