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
 * - only outputs of the level are reachable from the X-map, through ops that finish what it folds, or
 *   what it pulls in would depend on it;
 * - an outer and an inner map over the same dim which Rule 1 or Rule 2 could fuse once they stand side
 *   by side, the values between them passing through the X-map whole;
 * - what makes a list that the X-map iterates cannot move in, nor what is computed at load: it stays,
 *   and must not be the outer Y-map.
 *
 * Exact, but replicates work: a snapshot is taken before.  Lowers: nodes outside the X-map.
 * Near misses: a user of the X-map that is no output; an indirect path between the Y-maps; Y-maps over
 * different dims; the outer Y-map iterated by X.
 */
#include "inward.h"

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

static bool match(bb_match *match) {
  bb_scope *scope = match->scope;
  const bb_node *x = bb_node_get(scope->graph, match->anchor);
  if (x->kind != BB_NODE_MAP) return bb_miss(match, "not a map");
  if (x->part != BB_PART_ALL) return bb_miss(match, "the map's first iteration is peeled off");
  if (match->dim != BB_NO_DIM && match->dim != x->dim)
    return bb_miss(match, "the map runs over another dim");
  if (bb_scope_constant(scope, match->anchor))
    return bb_miss(match, "the map is computed once, at load");
  uint32_t left = FINISHES;
  if (!only_outputs_follow(scope->graph, x, &left))
    return bb_miss(match, "more than outputs is reachable from the map");
  return bb_inward_find_maps(match);
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
