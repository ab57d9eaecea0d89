/* fuse_sibling_maps.c - Rule 2: fuse sibling maps.
 *
 *        I                    I
 *      /   \                  |
 *  [ X: f ] [ X: g ]  ==>  [ X: f; g ]
 *     |        |              |   |
 *
 * The shared value is read once.  The anchor is the later of the two maps, and the other is the map
 * just before it among those that use the value the same way.  That loses nothing: siblings in order
 * of which each reaches the next are a chain, no two of which may be fused; and it makes the test
 * local, however many maps share the value.
 *
 * Conditions:
 * - both run over the same dim and use the shared value the same way: both iterate the same level of
 *   it, or both take it whole;
 * - neither is reachable from the other, or fusing them would make a loop (Rule 1 is for neighbours);
 * - both are computed at load or both are not, and both run all their iterations.
 *
 * Exact.  Lowers: maps.
 * Near misses: one iterates what the other takes whole; different levels; one reaches the other.
 */
#include "merge.h"

static bool fusible(bb_match *match, uint32_t other) {
  if (!bb_same_time(match->scope, other, match->anchor))
    return bb_miss(match, "one of the maps is computed once, at load");
  if (!bb_both_whole(match->scope->graph, other, match->anchor))
    return bb_miss(match, "the first iteration of one of the maps is peeled off");
  if (bb_scope_reaches(match->scope, other, match->anchor, false))
    return bb_miss(match, "one map is reachable from the other");
  return true;
}

static bool shares(const bb_node *a, const bb_node *b) {
  for (uint32_t i = 0; i < a->nin; i++)
    for (uint32_t k = 0; k < b->nin; k++)
      if (bb_value_equal(a->in[i].src, b->in[k].src) && a->in[i].level == b->in[k].level)
        return true;
  return false;
}

/* Why a node that was asked for is not the sibling just before the anchor. */
static const char *not_the_sibling(const bb_match *match) {
  if (match->partner == BB_NONE)
    return "no value is used by a map over the same dim before it in the same way";
  const bb_node *node = bb_node_get(match->scope->graph, match->anchor);
  const bb_node *other = bb_node_get(match->scope->graph, match->partner);
  if (other->kind != BB_NODE_MAP) return "the other node is not a map";
  if (other->dim != node->dim) return "the maps run over different dims";
  if (!shares(node, other)) return "the maps share no value that they use in the same way";
  if (bb_scope_before(match->scope, match->anchor, match->partner))
    return "the other map comes after this one";
  if (bb_scope_reaches(match->scope, match->partner, match->anchor, false))
    return "one map is reachable from the other";
  return "another map stands between the two among the users of the value, and comes first";
}

static bool match(bb_match *match) {
  const bb_node *node = bb_node_get(match->scope->graph, match->anchor);
  if (node->kind != BB_NODE_MAP) return bb_miss(match, "not a map");
  if (match->dim != BB_NO_DIM && match->dim != node->dim)
    return bb_miss(match, "the map runs over another dim");
  bool looked = false;
  for (uint32_t i = 0; i < node->nin; i++) {
    uint32_t other =
        bb_scope_sibling_before(match->scope, match->anchor, node->in[i].src, node->in[i].level);
    if (other == BB_NONE || (match->partner != BB_NONE && other != match->partner)) continue;
    if (fusible(match, other)) return bb_hit(match, 0, 2, (uint32_t[]){other, match->anchor});
    looked = true;
  }
  if (!looked) match->why = not_the_sibling(match);
  return false;
}

static void apply(bb_match *match) {
  bb_merge_maps(match->scope->graph, match->node[0], match->node[1]);
}

const bb_rule bb_rule_fuse_sibling_maps = {
    .number = 2,
    .name = "fuse sibling maps",
    .exactness = BB_EXACT,
    .lowers = "maps",
    .anchors = 1 << BB_NODE_MAP,
    .wakes = BB_WAKE_SIBLING,
    .match = match,
    .apply = apply,
};
