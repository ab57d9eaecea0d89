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
 * (d) any of these, the inner Y-map standing in a further map, or in several, that the X-map holds:
 *
 *   [ Y: f ] [ X: [ W: [ Y: g ] ] ] ==> [ X: [ Y: f ] [ W: [ Y: g ] ] ] ==> [ X: [ W: [ Y: f ] [ Y: g ] ] ]
 *
 * Everything else in the level moves into the X-map and is computed again in every iteration; what
 * does not depend on X and is an output of the level leaves through an invariant port.  Fusion
 * (Rule 1 for (a), Rule 2 for (b) and (c)) then joins the two Y-maps.
 *
 * Conditions:
 * - only outputs of the level are reachable from the X-map, through ops that finish what it folds, or
 *   what it pulls in would depend on it;
 * - an outer and an inner map over the same dim which Rule 1 or Rule 2 could fuse once they stand side
 *   by side, the values between them passing through the X-map whole;
 * - (d): W in X is what X is in the level: the value passes whole, and only outputs follow.  W is extended
 *   next; between both is a program that computes again once for each X, which may be the cheapest;
 * - what makes a list that the X-map iterates cannot move in, nor what is computed at load: it stays,
 *   and must not be the outer Y-map.
 *
 * Exact, but replicates work: a snapshot is taken before.  Lowers: nodes outside the X-map.
 * Near misses: a user of the X-map that is no output; an indirect path between the Y-maps; Y-maps over
 * different dims; the outer Y-map iterated by X.
 */
#include "inward.h"

static bool match(bb_match *match) {
  bb_scope *scope = match->scope;
  const bb_node *x = bb_node_get(scope->graph, match->anchor);
  if (x->kind != BB_NODE_MAP) return bb_miss(match, "not a map");
  if (x->part != BB_PART_ALL) return bb_miss(match, "the map's first iteration is peeled off");
  if (match->dim != BB_NO_DIM && match->dim != x->dim)
    return bb_miss(match, "the map runs over another dim");
  if (bb_scope_constant(scope, match->anchor))
    return bb_miss(match, "the map is computed once, at load");
  if (!bb_inward_only_outputs_follow(scope->graph, x))
    return bb_miss(match, "more than outputs is reachable from the map");
  return bb_inward_find_maps(match, true);
}

static void apply(bb_match *match) {
  bb_graph *graph = match->scope->graph;
  bb_arena *scratch = bb_scratch(graph->program->ctx);
  bb_graph *inner = bb_map_own(graph, match->anchor);
  bb_inward v = {match->scope, graph, inner, match->anchor, scratch, NULL};
  bb_inward_find_staying(&v);
  bb_inward_move(&v);
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
