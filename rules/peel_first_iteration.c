/* peel_first_iteration.c - Rule 7: peel off the first iteration.
 *
 * (a)     |                         |
 *     [ Y: f ]             [ X, first:        ]
 *         |                [  [ Y: f ]        ]
 *     [ X: [ Y: g ] ] ==>  [     |            ]
 *                          [  [ Y: g ]        ]
 *                                |
 *                          [ X, rest: [ Y: g ] ]
 *
 * (b), (c) as in Rule 6: the two Y-maps share an input, or an intermediate value.
 *
 * The alternative to Rule 6 where replicated work is unwanted.  The X-map is split in two: its first
 * iteration, a copy of its body with x = 0, and the rest.  The first one stands for the level around
 * it, being run once: all that it needs moves into it and is computed once, as before, where
 * fusion joins the outer Y-map with the copy of the inner one.  What the rest needs of that leaves
 * through invariant ports, and the results of the rest go on from those of the first iteration.
 *
 * Conditions: those of Rule 6, but that anything may follow the X-map: what is reachable from it
 * stays outside; and that some result changes from one iteration to the next.
 *
 * Exact.  Lowers: maps that are not peeled.
 * Near misses: those of Rule 6; a map that is peeled already.
 */
#include "inward.h"

#include "../graph/prune.h"

/* Does any result change from one iteration to the next? */
static bool has_rest(const bb_node *x) {
  for (uint32_t i = 0; i < x->nout; i++)
    if (x->out[i].mode != BB_OUT_INVARIANT) return true;
  return false;
}

static bool match(bb_match *match) {
  const bb_node *x = bb_node_get(match->scope->graph, match->anchor);
  if (x->kind != BB_NODE_MAP) return bb_miss(match, "not a map");
  if (x->part != BB_PART_ALL) return bb_miss(match, "the map's first iteration is peeled off");
  if (!has_rest(x))
    return bb_miss(match, "all results of the map are those of its first iteration");
  if (match->dim != BB_NO_DIM && match->dim != x->dim)
    return bb_miss(match, "the map runs over another dim");
  if (bb_scope_constant(match->scope, match->anchor))
    return bb_miss(match, "the map is computed once, at load");
  return bb_inward_find_maps(match, false);
}

/* A copy of the map that runs its first iteration only. */
static uint32_t copy_first(bb_graph *graph, uint32_t x) {
  const bb_node *map = bb_node_get(graph, x);
  uint32_t copy = bb_node_add(graph, BB_NODE_MAP, 0, 0);
  bb_node *first = bb_node_get(graph, copy);
  first->dim = map->dim;
  first->part = BB_PART_FIRST;
  first->name = map->name;
  first->inner = bb_graph_copy_anew(map->inner);
  for (uint32_t i = 0; i < map->nin; i++) bb_in_add(graph, copy, map->in[i].src, map->in[i].level);
  for (uint32_t i = 0; i < map->nout; i++) {
    uint32_t port = bb_out_add(graph, copy, map->out[i].type);
    bb_out *out = &first->out[port];
    bb_use unused = out->first;
    *out = map->out[i];
    out->first = unused;
  }
  return copy;
}

/* The map runs the other iterations, and its results go on from those of the first.  An invariant
 * result is that of the first, and is computed in no other. */
static void keep_rest(bb_graph *graph, uint32_t x, uint32_t first) {
  bb_node *rest = bb_node_get(graph, x);
  rest->part = BB_PART_REST;
  for (uint32_t i = rest->nout; i-- > 0;) {
    bb_value from = {first, i};
    if (rest->out[i].mode == BB_OUT_INVARIANT) {
      bb_replace_uses(graph, (bb_value){x, i}, from);
      bb_map_out_remove(graph, x, i);
      continue;
    }
    bb_map_in(graph, x, from, BB_WHOLE);
    for (uint32_t p = 0; p < rest->nin; p++)
      if (bb_value_equal(rest->in[p].src, from) && rest->in[p].level == BB_WHOLE)
        rest->out[i].resumes = p + 1;
  }
  bb_map_prune(graph, x);
}

static void apply(bb_match *match) {
  bb_graph *graph = match->scope->graph;
  bb_arena *scratch = bb_scratch(graph->program->ctx);
  uint32_t x = match->anchor, first = copy_first(graph, x);
  bb_map_own(graph, x);
  keep_rest(graph, x, first);
  bb_inward v = {match->scope, graph, bb_node_get(graph, first)->inner, first, scratch, NULL};
  bb_inward_find_staying(&v);
  bb_inward_move(&v);
  bb_scratch_end(scratch);
}

const bb_rule bb_rule_peel_first_iteration = {
    .number = 7,
    .name = "peel off first iteration",
    .exactness = BB_EXACT,
    .lowers = "maps that are not peeled",
    .anchors = 1 << BB_NODE_MAP,
    .match = match,
    .apply = apply,
};
