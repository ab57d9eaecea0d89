/* safety_need.c - what becomes of a value: along which axes it is contracted, how it leaves.
 *
 * An exponent is made constant along an axis where the exp is computed if contractions along that axis
 * are all that is done to it.  Where the uses differ, or another factor comes before the contraction or
 * is the other operand of it (whose exponent may make up for what this one lacks), it is left to vary,
 * and made constant at each of them.  What is stored is used by its readers: a sum over rows, in another
 * kernel, of what has the exponents of rows would be of significands that are all 0.
 */
#include "safety_pair.h"

enum { VISITS = 4096 }; /* beyond, a value counts as used otherwise */

typedef struct walk {
  const bb_safety *safety;
  uint32_t visits;
} walk;

/* The levels between the root and a graph, innermost first. */
typedef struct nest {
  const struct nest *parent;
  const bb_graph *graph;
  uint32_t map;
} nest;

static uint32_t need(walk *w, const nest *at, bb_value value);

static uint32_t swapped(uint32_t axes) {
  return (axes & BB_NEED_ROW ? BB_NEED_COL : 0) | (axes & BB_NEED_COL ? BB_NEED_ROW : 0) |
         (axes & BB_NEED_OTHER);
}

static uint32_t need_func(walk *w, const nest *at, bb_use use) {
  const bb_node *node = at->graph->node[use.node];
  switch (node->op) {
  case BB_OP_ROW_SUM:
  case BB_OP_ROW_MAX:
  case BB_OP_ROW_MIN: return BB_NEED_COL;
  case BB_OP_DOT:
    return bb_scalar_walk_joins_pairs(w->safety->walk, node) ? BB_NEED_COL | BB_NEED_OTHER
                                                             : BB_NEED_COL;
  case BB_OP_TRANSPOSE: return swapped(need(w, at, (bb_value){use.node, 0}));
  default: return BB_NEED_OTHER;
  }
}

/* A fold over a loop or a list contracts no axis of the items. */
static bool is_folded(const nest *at, uint32_t port) {
  return at->parent->graph->node[at->map]->out[port].mode == BB_OUT_FOLD;
}

/* What programs do to a value that one stores: what they do to it where they read it as it was stored; what
 * else they do, and what leaves them all, wants each element with its own exponent. */
static uint32_t need_stored(walk *w, const bb_graph *root, const bb_node *output) {
  const bb_safety *s = w->safety;
  if (output->tensor >= s->tensors || !s->carried[output->tensor]) return BB_NEED_OTHER;
  uint32_t axes = 0;
  for (const bb_safe_reader *r = s->reader[output->tensor]; r; r = r->next) {
    const bb_node *input = r->root->node[r->input];
    bool same = input->access == output->access &&
                input->out[0].type == bb_type_of(root, output->in[0].src);
    nest around = {NULL, r->root, BB_NONE};
    axes |= same ? need(w, &around, (bb_value){r->input, 0}) : BB_NEED_OTHER;
  }
  return axes;
}

static uint32_t need_use(walk *w, const nest *at, bb_use use) {
  const bb_node *node = at->graph->node[use.node];
  uint32_t axes = 0;
  switch (node->kind) {
  case BB_NODE_FUNC: return need_func(w, at, use);
  case BB_NODE_MAP: {
    nest inner = {at, node->inner, use.node};
    return need(w, &inner, (bb_value){node->inner->input[use.port], 0});
  }
  case BB_NODE_OUTPUT:
    if (!at->parent) return need_stored(w, at->graph, node);
    for (uint32_t p = 0; p < at->graph->noutputs; p++)
      if (at->graph->output[p] == use.node && !is_folded(at, p))
        axes |= need(w, at->parent, (bb_value){at->map, p});
    return axes;
  case BB_NODE_VIEW:
  case BB_NODE_MISC: return BB_NEED_OTHER;
  default: return 0;
  }
}

static uint32_t need(walk *w, const nest *at, bb_value value) {
  uint32_t axes = 0;
  if (++w->visits > VISITS) return BB_NEED_OTHER;
  for (bb_use u = bb_first_use(at->graph, value); u.node != BB_NONE; u = bb_next_use(at->graph, u))
    axes |= need_use(w, at, u);
  return axes;
}

/* The levels around, as a chain on the stack: recursion keeps it alive. */
static uint32_t need_around(const bb_safe_level *level, nest *inner, const nest *start,
                            bb_value value) {
  inner->graph = level->old;
  inner->map = level->map;
  inner->parent = NULL;
  if (level->parent) {
    nest outer;
    inner->parent = &outer;
    return need_around(level->parent, &outer, start, value);
  }
  walk w = {.safety = level->safety};
  return need(&w, start, value);
}

uint32_t bb_safe_need(const bb_safe_level *level, bb_value value) {
  nest start;
  return need_around(level, &start, &start, value);
}

/* --- leaving --- */

uint32_t bb_safe_leave(const bb_safe_level *level, bb_value value) {
  const bb_graph *g = level->old;
  uint32_t ways = 0;
  for (bb_use u = bb_first_use(g, value); u.node != BB_NONE; u = bb_next_use(g, u)) {
    const bb_node *node = g->node[u.node];
    if (node->kind == BB_NODE_VIEW || node->kind == BB_NODE_MISC) ways |= BB_LEAVE_PLAIN;
    if (node->kind != BB_NODE_OUTPUT) continue;
    if (!level->parent) {
      bool wide = node->tensor < level->safety->tensors && level->safety->carried[node->tensor];
      ways |= wide ? BB_LEAVE_WIDE : BB_LEAVE_PLAIN;
      continue;
    }
    const bb_node *map = level->parent->old->node[level->map];
    for (uint32_t p = 0; p < map->nout; p++)
      if (g->output[p] == u.node && map->out[p].mode != BB_OUT_FOLD)
        ways |= bb_safe_leave(level->parent, (bb_value){level->map, p});
  }
  return ways;
}
