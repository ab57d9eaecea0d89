/* extend_map.c - Rule 6: extend a map to the entire graph.
 *
 * (a)     |                       |
 *     [ Y: f ]               [ X:  |          ]
 *         |                  [  [ Y: f ]      ]
 *     [ X: [ Y: g ] ]   ==>  [     |          ]
 *         |                  [  [ Y: g ] ...  ]
 *                                  |
 *
 * (b)    input                    input
 *       /     \                     |
 *   [ Y: f ] [ X: [ Y: g ] ] ==> [ X: [ Y: f ] [ Y: g ] ]
 *
 * (c) as (b), the shared value being an intermediate one.
 *
 * Everything else in the level moves into the X-map and is computed again in every iteration; what
 * does not depend on X and is an output of the level leaves through an invariant port.  Fusion
 * (Rule 1 for (a), Rule 2 for (b) and (c)) then joins the two Y-maps.
 *
 * Conditions:
 * - only outputs of the level are reachable from the X-map, or what it pulls in would depend on it;
 * - an outer and an inner map over the same dim which Rule 1 or Rule 2 could fuse once they stand side
 *   by side, the values between them passing through the X-map whole;
 * - what makes a list that the X-map iterates cannot move in, nor what is computed at load: it stays,
 *   and must not be the outer Y-map.
 *
 * Exact, but replicates work: a snapshot is taken before.  Lowers: nodes outside the X-map.
 * Near misses: a user of the X-map that is no output; an indirect path between the Y-maps; Y-maps over
 * different dims; the outer Y-map iterated by X.
 */
#include "rule.h"

typedef struct view {
  bb_scope *scope;
  bb_graph *graph, *inner;
  const bb_node *x;
  bb_arena *scratch;
  bool *stays; /* by node of the level; NULL until it is needed */
} view;

/* --- what stays --- */

static void keep_with_ancestors(const view *v, uint32_t from) {
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

/* Inputs, outputs, constants, what only a root has, and what makes a list that X iterates. */
static void find_staying(view *v, uint32_t x) {
  v->stays = BB_NEW(v->scratch, bool, v->graph->count);
  v->stays[x] = true;
  for (uint32_t n = v->scope->first; n != BB_NONE; n = v->scope->place[n].next) {
    bb_kind kind = bb_node_get(v->graph, n)->kind;
    if (kind == BB_NODE_INPUT || kind == BB_NODE_OUTPUT || bb_scope_constant(v->scope, n))
      v->stays[n] = true;
    if (kind == BB_NODE_VIEW || kind == BB_NODE_MISC) keep_with_ancestors(v, n);
  }
  for (uint32_t p = 0; p < v->x->nin; p++)
    if (v->x->in[p].level != BB_WHOLE) keep_with_ancestors(v, v->x->in[p].src.node);
}

/* --- the two Y-maps --- */

static uint32_t input_port(const bb_graph *inner, uint32_t input) {
  for (uint32_t i = 0; i < inner->ninputs; i++)
    if (inner->input[i] == input) return i;
  return BB_NONE;
}

/* Does a value of the level reach in-port `port` of X? */
static bool reaches_port(const view *v, uint32_t from, uint32_t port) {
  uint32_t src = v->x->in[port].src.node;
  return src == from || bb_scope_reaches(v->scope, from, src, false);
}

/* Would the outer map reach the inner one, were they side by side?  Edges between them that one
 * collects and the other iterates do not count in variant (a). */
static bool would_reach(const view *v, uint32_t outer, uint32_t inner, bool consecutive) {
  uint32_t *stack = BB_NEW(v->scratch, uint32_t, (size_t)v->inner->live + 1), count = 0;
  bool *seen = BB_NEW(v->scratch, bool, v->inner->count);
  stack[count++] = inner;
  while (count) {
    uint32_t at = stack[--count];
    const bb_node *node = bb_node_get(v->inner, at);
    if (node->kind == BB_NODE_INPUT && reaches_port(v, outer, input_port(v->inner, at))) return true;
    for (uint32_t i = 0; i < node->nin; i++) {
      uint32_t to = node->in[i].src.node;
      if (consecutive && at == inner && bb_node_get(v->inner, to)->kind == BB_NODE_INPUT) {
        uint32_t port = input_port(v->inner, to);
        bb_value src = v->x->in[port].src;
        if (src.node == outer && v->x->in[port].level == BB_WHOLE && node->in[i].level == 0 &&
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

static bool meets(bb_match *match, view *v, uint32_t outer, uint32_t inner, bool consecutive) {
  const bb_node *a = bb_node_get(v->graph, outer);
  if (a->kind != BB_NODE_MAP || outer == match->anchor) return false;
  if (a->dim != bb_node_get(v->inner, inner)->dim) return false;
  if (match->partner != BB_NONE && outer != match->partner) return false;
  if (!v->stays) find_staying(v, match->anchor);
  if (v->stays[outer])
    return bb_miss(match, "the outer map makes what the extended map iterates, or runs at load");
  if (would_reach(v, outer, inner, consecutive))
    return bb_miss(match, "a path leads from the outer map to the inner one");
  return true;
}

/* The outer map that the inner map `use` could be fused with, given that `src` feeds both. */
static uint32_t find_outer(bb_match *match, view *v, bb_value src, bb_use use, char variant) {
  uint32_t level = bb_node_get(v->inner, use.node)->in[use.port].level;
  if (variant == 'a')
    return level == 0 && meets(match, v, src.node, use.node, true) ? src.node : BB_NONE;
  if ((variant == 'b') != (bb_node_get(v->graph, src.node)->kind == BB_NODE_INPUT)) return BB_NONE;
  for (bb_use u = bb_first_use(v->graph, src); u.node != BB_NONE; u = bb_next_use(v->graph, u))
    if (bb_node_get(v->graph, u.node)->in[u.port].level == level &&
        meets(match, v, u.node, use.node, false))
      return u.node;
  return BB_NONE;
}

static bool find_pair(bb_match *match, view *v, char variant) {
  for (uint32_t p = 0; p < v->x->nin; p++) {
    bb_value src = v->x->in[p].src, input = {v->inner->input[p], 0};
    if (v->x->in[p].level != BB_WHOLE) continue;
    for (bb_use u = bb_first_use(v->inner, input); u.node != BB_NONE;
         u = bb_next_use(v->inner, u)) {
      if (bb_node_get(v->inner, u.node)->kind != BB_NODE_MAP) continue;
      uint32_t outer = find_outer(match, v, src, u, variant);
      if (outer != BB_NONE)
        return bb_hit(match, variant, 2, (uint32_t[]){outer, match->anchor});
    }
  }
  return false;
}

static bool only_outputs_follow(const bb_graph *graph, const bb_node *x) {
  bool any = false;
  for (uint32_t i = 0; i < x->nout; i++)
    for (bb_use u = x->out[i].first; u.node != BB_NONE; u = bb_next_use(graph, u)) {
      if (bb_node_get(graph, u.node)->kind != BB_NODE_OUTPUT) return false;
      any = true;
    }
  return any;
}

static bool match(bb_match *match) {
  bb_scope *scope = match->scope;
  const bb_node *x = bb_node_get(scope->graph, match->anchor);
  if (x->kind != BB_NODE_MAP) return bb_miss(match, "not a map");
  if (match->dim != BB_NO_DIM && match->dim != x->dim)
    return bb_miss(match, "the map runs over another dim");
  if (bb_scope_constant(scope, match->anchor))
    return bb_miss(match, "the map is computed once, at load");
  if (!only_outputs_follow(scope->graph, x))
    return bb_miss(match, "more than outputs is reachable from the map");
  match->why = "no map outside and map inside over one dim share a value";
  bb_arena *scratch = bb_scratch(scope->graph->program->ctx);
  view v = {scope, scope->graph, x->inner, x, scratch, NULL};
  bool found = find_pair(match, &v, 'a') || find_pair(match, &v, 'b') || find_pair(match, &v, 'c');
  bb_scratch_end(scratch);
  return found;
}

/* --- coordinates of what moves in: one more map stands around it --- */

typedef struct deeper {
  bb_program *program;
  uint32_t depth; /* maps between the op and the one that is put around */
} deeper;

static bool is_outside(const bb_expr *leaf, uint32_t depth) {
  return leaf->op == BB_X_COORD && leaf->index >= BB_COORD_MAP + depth &&
         leaf->index < BB_COORD_AXIS;
}

static const bb_expr *one_deeper(void *user, const bb_expr *leaf) {
  const deeper *d = user;
  return is_outside(leaf, d->depth) ? bb_expr_coord(d->program, leaf->index + 1) : leaf;
}

static void put_deeper(bb_graph *graph, uint32_t index, uint32_t depth) {
  bb_node *node = bb_node_get(graph, index);
  deeper d = {graph->program, depth};
  if (node->kind == BB_NODE_FUNC && node->expr && bb_expr_uses_coord(node->expr))
    node->expr = bb_expr_map_leaves(graph->program, node->expr, one_deeper, &d);
  if (node->kind != BB_NODE_MAP) return;
  bb_graph *inner = bb_map_own(graph, index);
  for (uint32_t i = 0; i < inner->count; i++) put_deeper(inner, i, depth + 1);
}

static bool expr_names_outside(bb_program *program, const bb_expr *expr, uint32_t depth) {
  deeper d = {program, depth};
  return bb_expr_map_leaves(program, expr, one_deeper, &d) != expr;
}

/* Does an op in there name a map outside?  Levels are not copied for nothing. */
static bool names_outside(const bb_graph *graph, uint32_t index, uint32_t depth) {
  const bb_node *node = bb_node_get(graph, index);
  if (node->kind == BB_NODE_FUNC && node->expr && bb_expr_uses_coord(node->expr))
    return expr_names_outside(graph->program, node->expr, depth);
  if (node->kind != BB_NODE_MAP) return false;
  for (uint32_t i = 0; i < node->inner->count; i++)
    if (names_outside(node->inner, i, depth + 1)) return true;
  return false;
}

/* --- moving in --- */

typedef struct mover {
  uint32_t from, to;
  bb_value *src; /* of each in-port, in the level */
} mover;

typedef struct move {
  bb_graph *graph, *inner;
  uint32_t x;
  uint32_t count;
  mover *mover;
  bb_value *value; /* by node of the level: where it stands inside, node BB_NONE: it stays */
} move;

static void list_movers(const view *v, move *m) {
  m->mover = BB_NEW(v->scratch, mover, v->graph->live);
  m->value = BB_NEW(v->scratch, bb_value, v->graph->count);
  for (uint32_t i = 0; i < v->graph->count; i++) m->value[i].node = BB_NONE;
  for (uint32_t n = v->scope->first; n != BB_NONE; n = v->scope->place[n].next) {
    if (v->stays[n]) continue;
    const bb_node *node = bb_node_get(v->graph, n);
    mover *mv = &m->mover[m->count++];
    *mv = (mover){n, BB_NONE, BB_NEW(v->scratch, bb_value, node->nin)};
    for (uint32_t i = 0; i < node->nin; i++) mv->src[i] = node->in[i].src;
  }
}

static bb_value moved_to(const move *m, bb_value old) {
  return (bb_value){m->value[old.node].node, old.port};
}

static void move_nodes(move *m) {
  for (uint32_t i = 0; i < m->count; i++)
    for (uint32_t p = 0; p < bb_node_get(m->graph, m->mover[i].from)->nin; p++)
      bb_disconnect(m->graph, m->mover[i].from, p);
  for (uint32_t i = 0; i < m->count; i++) {
    mover *mv = &m->mover[i];
    mv->to = bb_node_move(m->inner, m->graph, mv->from);
    m->value[mv->from] = (bb_value){mv->to, 0};
    for (uint32_t p = 0; p < bb_node_get(m->inner, mv->to)->nin; p++) {
      bb_value src = m->value[mv->src[p].node].node != BB_NONE
                         ? moved_to(m, mv->src[p])
                         : bb_map_in(m->graph, m->x, mv->src[p], BB_WHOLE);
      bb_connect(m->inner, mv->to, p, src);
    }
    if (names_outside(m->inner, mv->to, 0)) put_deeper(m->inner, mv->to, 0);
  }
}

typedef struct boundary {
  uint32_t count, capacity;
  struct crossing {
    uint32_t node, port; /* of X, or an output of the level */
    bb_value src;
  } *at;
} boundary;

/* Edges from what moves to X and to outputs of the level: cut, and written down. */
static boundary cut_boundary(const view *v, const move *m, uint32_t x) {
  boundary b = {0};
  for (uint32_t i = 0; i < m->count; i++) {
    const bb_node *node = bb_node_get(v->graph, m->mover[i].from);
    for (uint32_t p = 0; p < node->nout; p++)
      for (bb_use u = node->out[p].first, next; u.node != BB_NONE; u = next) {
        next = bb_next_use(v->graph, u);
        if (!v->stays[u.node]) continue;
        BB_GROW(v->scratch, b.at, b.capacity, (size_t)b.count + 1);
        b.at[b.count++] = (struct crossing){u.node, u.port, {m->mover[i].from, p}};
        if (u.node != x) bb_disconnect(v->graph, u.node, u.port);
      }
  }
  for (uint32_t i = 0; i < b.count; i++)
    if (b.at[i].node == x) bb_disconnect(v->graph, x, b.at[i].port);
  return b;
}

/* X takes inside what it was fed; the level's outputs get what they were fed from X. */
static void reconnect(move *m, boundary *b) {
  for (uint32_t port = bb_node_get(m->graph, m->x)->nin; port-- > 0;)
    for (uint32_t i = 0; i < b->count; i++) {
      if (b->at[i].node != m->x || b->at[i].port != port) continue;
      bb_value input = {m->inner->input[port], 0};
      bb_replace_uses(m->inner, input, moved_to(m, b->at[i].src));
      bb_map_in_remove(m->graph, m->x, port);
    }
  for (uint32_t i = 0; i < b->count; i++) {
    if (b->at[i].node == m->x) continue;
    bb_value outer = {BB_NONE, 0};
    for (uint32_t k = 0; k < i && outer.node == BB_NONE; k++)
      if (b->at[k].node != m->x && bb_value_equal(b->at[k].src, b->at[i].src))
        outer = bb_src(m->graph, b->at[k].node, b->at[k].port);
    if (outer.node == BB_NONE)
      outer = bb_map_invariant(m->graph, m->x, moved_to(m, b->at[i].src));
    bb_connect(m->graph, b->at[i].node, b->at[i].port, outer);
  }
}

static void apply(bb_match *match) {
  bb_graph *graph = match->scope->graph;
  uint32_t x = match->anchor;
  bb_arena *scratch = bb_scratch(graph->program->ctx);
  view v = {match->scope, graph, bb_map_own(graph, x), bb_node_get(graph, x), scratch, NULL};
  find_staying(&v, x);
  move m = {.graph = graph, .inner = v.inner, .x = x};
  list_movers(&v, &m);
  boundary b = cut_boundary(&v, &m, x);
  move_nodes(&m);
  reconnect(&m, &b);
  bb_scratch_end(scratch);
}

const bb_rule bb_rule_extend_map = {
    .number = 6,
    .name = "extend map",
    .exactness = BB_EXACT,
    .lowers = "nodes outside the extended map",
    .anchors = 1 << BB_NODE_MAP,
    .match = match,
    .apply = apply,
};
