/* fuse_consecutive_maps.c - Rule 1: fuse consecutive maps.
 *
 *      |                     |
 *   [ X: f ]                 |
 *      |        ==>     [ X: f; g ]
 *   [ X: g ]                 |
 *      |                     |
 *
 * The anchor is the second map; of the maps that feed it the last one that may be fused is taken.
 *
 * Conditions:
 * - both run over the same dim;
 * - every value that passes from the first to the second is collected by the one and iterated by the
 *   other at that level: a list that the second takes whole, or a fold, needs the first complete;
 * - no path leads from the first through a third node to the second, or the fused map would have to
 *   come before and after that node;
 * - both are computed at load or both are not, and both run all their iterations.
 *
 * Exact.  Lowers: maps.
 * Near misses: another dim; a list taken whole; a fold or invariant of the first; an indirect path.
 */
#include "merge.h"

#include <stdlib.h>

static bool fusible(bb_match *match, uint32_t first) {
  bb_scope *scope = match->scope;
  if (!bb_same_time(scope, first, match->anchor))
    return bb_miss(match, "one of the maps is computed once, at load");
  if (!bb_both_whole(scope->graph, first, match->anchor))
    return bb_miss(match, "the first iteration of one of the maps is peeled off");
  if (!bb_passes_elements(scope->graph, first, match->anchor, &match->why)) return false;
  if (bb_scope_reaches(scope, first, match->anchor, true))
    return bb_miss(match, "a path leads from one map to the other through a third node");
  return true;
}

typedef struct producer {
  uint64_t label;
  uint32_t node;
} producer;

static int last_first(const void *a, const void *b) {
  uint64_t x = ((const producer *)a)->label, y = ((const producer *)b)->label;
  return (x < y) - (x > y);
}

/* The maps over the same dim that feed the anchor, last in topological order first. */
static uint32_t producers(const bb_match *match, producer *found) {
  const bb_scope *scope = match->scope;
  const bb_node *node = bb_node_get(scope->graph, match->anchor);
  uint32_t count = 0;
  for (uint32_t i = 0; i < node->nin; i++) {
    uint32_t from = node->in[i].src.node;
    if (bb_node_get(scope->graph, from)->dim != node->dim) continue;
    if (match->partner != BB_NONE && from != match->partner) continue;
    found[count++] = (producer){scope->place[from].label, from};
  }
  if (count) qsort(found, count, sizeof *found, last_first);
  return count;
}

/* Why a node that was asked for cannot be the first map at all. */
static const char *not_a_producer(const bb_match *match) {
  if (match->partner == BB_NONE) return "no operand comes from a map over the same dim";
  const bb_node *other = bb_node_get(match->scope->graph, match->partner);
  if (other->kind != BB_NODE_MAP) return "the other node is not a map";
  if (other->dim != bb_node_get(match->scope->graph, match->anchor)->dim)
    return "the maps run over different dims";
  return "no value passes from the other map to this one";
}

static bool match(bb_match *match) {
  const bb_node *node = bb_node_get(match->scope->graph, match->anchor);
  if (node->kind != BB_NODE_MAP) return bb_miss(match, "not a map");
  if (match->dim != BB_NO_DIM && match->dim != node->dim)
    return bb_miss(match, "the map runs over another dim");
  match->why = not_a_producer(match);
  uint32_t peers = match->scope->place[match->anchor].peers;
  if (!peers) return false;
  producer few[8], *from = few;
  bb_arena *scratch = NULL;
  if (peers > sizeof few / sizeof *few) {
    scratch = bb_scratch(match->scope->graph->program->ctx);
    from = BB_NEW(scratch, producer, peers);
  }
  uint32_t count = producers(match, from), first = BB_NONE;
  for (uint32_t i = 0; i < count && first == BB_NONE; i++)
    if ((i == 0 || from[i].node != from[i - 1].node) && fusible(match, from[i].node))
      first = from[i].node;
  if (scratch) bb_scratch_end(scratch);
  return first != BB_NONE && bb_hit(match, 0, 2, (uint32_t[]){first, match->anchor});
}

static void apply(bb_match *match) {
  bb_merge_maps(match->scope->graph, match->node[0], match->node[1]);
}

const bb_rule bb_rule_fuse_consecutive_maps = {
    .number = 1,
    .name = "fuse consecutive maps",
    .exactness = BB_EXACT,
    .lowers = "maps",
    .anchors = 1 << BB_NODE_MAP,
    .wakes = BB_WAKE_USER,
    .match = match,
    .apply = apply,
};
