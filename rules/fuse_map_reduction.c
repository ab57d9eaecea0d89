/* fuse_map_reduction.c - Rule 3: fuse a map with the reduction behind it.
 *
 *        |                        |
 *   [ X: ..., collected ]    [ X: ..., folded ]
 *        |               ==>      |
 *   ( reduce )                    |
 *        |                        |
 *
 * The terms are folded as they are made and are not stored.
 *
 * Conditions:
 * - the reduction folds to an item (a scan keeps its list);
 * - it folds the level that the map collects, not one inside it;
 * - what it folds are items: lists of lists would be read and written again for every term;
 * - all its operands (the components of a monoid) come from this map.
 * The list may have other uses: then the map keeps collecting it beside the fold, and the reduction
 * does not read it back.
 *
 * Exact: the terms are folded in the same order.  Lowers: reductions.
 * Near misses: a scan; a fold of an inner level; components from two maps; an invariant operand.
 */
#include "rule.h"

static bool match(bb_match *match) {
  const bb_graph *graph = match->scope->graph;
  const bb_node *reduce = bb_node_get(graph, match->anchor);
  if (reduce->kind != BB_NODE_REDUCE) return bb_miss(match, "not a reduction");
  uint32_t map = reduce->in[0].src.node;
  if (match->partner != BB_NONE && map != match->partner)
    return bb_miss(match, "the reduction does not read the other node");
  if (bb_node_get(graph, map)->kind != BB_NODE_MAP)
    return bb_miss(match, "what is reduced is not made by a map");
  if (reduce->reduce != BB_REDUCE_FOLD) return bb_miss(match, "a scan keeps its list");
  if (bb_node_get(graph, map)->part != BB_PART_ALL)
    return bb_miss(match, "the first iteration of the map is peeled off");
  for (uint32_t i = 0; i < reduce->nin; i++) {
    bb_value src = reduce->in[i].src;
    if (src.node != map) return bb_miss(match, "the operands come from two nodes");
    if (bb_node_get(graph, map)->out[src.port].mode != BB_OUT_COLLECT || reduce->in[i].level != 0)
      return bb_miss(match, "the level that is reduced is not the one that the map collects");
    if (reduce->out[i].type->rank) return bb_miss(match, "the terms are lists");
  }
  return bb_hit(match, 0, 2, (uint32_t[]){map, match->anchor});
}

/* Removes a list that nobody reads any more. */
static void drop_list(bb_graph *graph, uint32_t map, uint32_t port) {
  if (bb_first_use(graph, (bb_value){map, port}).node == BB_NONE)
    bb_map_out_remove(graph, map, port);
}

static void apply(bb_match *match) {
  bb_graph *graph = match->scope->graph;
  uint32_t map = match->node[0], at = match->node[1];
  bb_node *reduce = bb_node_get(graph, at);
  bb_graph *inner = bb_map_own(graph, map);
  uint32_t list[BB_MONOID_COMPONENTS], lists = 0;
  for (uint32_t i = 0; i < reduce->nin; i++) {
    uint32_t port = reduce->in[i].src.port, to = lists++;
    bb_value term = bb_src(inner, inner->output[port], 0);
    bb_value fold = bb_map_fold(graph, map, term, reduce->monoid, i);
    bb_replace_uses(graph, (bb_value){at, i}, fold);
    for (; to && list[to - 1] < port; to--) list[to] = list[to - 1];
    list[to] = port;
  }
  bb_node_remove(graph, at);
  /* Later ports first: their removal leaves earlier ones in their places. */
  for (uint32_t i = 0; i < lists; i++)
    if (i == 0 || list[i] != list[i - 1]) drop_list(graph, map, list[i]);
}

const bb_rule bb_rule_fuse_map_reduction = {
    .number = 3,
    .name = "fuse map and reduction",
    .exactness = BB_EXACT,
    .lowers = "reductions",
    .anchors = 1 << BB_NODE_REDUCE,
    .wakes = BB_WAKE_USER,
    .match = match,
    .apply = apply,
};
