/* peel.c - loops whose first iteration stands apart, as a program that was fused before may have
 * them: what a rule finds is not only what rules before it in the same run have left.
 */
#include "build.h"

static bool may_be_peeled(const bb_node *node) {
  if (node->kind != BB_NODE_MAP || node->part != BB_PART_ALL || node->nout == 0) return false;
  for (uint32_t i = 0; i < node->nout; i++)
    if (node->out[i].mode == BB_OUT_INVARIANT) return false;
  return true;
}

/* One of the maps of a level that may be peeled, mostly a late one; BB_NONE: there is none. */
static uint32_t late_map(generator *g, const bb_graph *graph) {
  uint32_t found = BB_NONE;
  for (uint32_t n = graph->count; n-- > 0;) {
    if (!may_be_peeled(bb_node_get(graph, n))) continue;
    found = n;
    if (random_chance(&g->random, 50)) break;
  }
  return found;
}

static void number_anew(bb_graph *graph) {
  for (uint32_t i = 0; i < graph->count; i++) {
    bb_node *node = bb_node_get(graph, i);
    node->serial = graph->program->serial++;
    if (node->kind == BB_NODE_MAP) number_anew(node->inner);
  }
}

/* A copy of a map that runs its first iteration; the map itself goes on from there. */
static void split(bb_graph *graph, uint32_t map) {
  uint32_t copy = bb_map_add(graph, bb_node_get(graph, map)->dim);
  bb_node *first = bb_node_get(graph, copy), *rest = bb_node_get(graph, map);
  first->part = BB_PART_FIRST;
  rest->part = BB_PART_REST;
  first->inner = bb_graph_copy(rest->inner);
  number_anew(first->inner);
  for (uint32_t i = 0; i < rest->nin; i++)
    bb_in_add(graph, copy, rest->in[i].src, rest->in[i].level);
  for (uint32_t i = 0; i < rest->nout; i++) {
    uint32_t port = bb_out_add(graph, copy, rest->out[i].type);
    bb_out *out = &first->out[port];
    out->mode = rest->out[i].mode;
    out->axis = rest->out[i].axis;
    out->fold = rest->out[i].fold;
    out->component = rest->out[i].component;
  }
  for (uint32_t i = 0; i < first->nout; i++) {
    bb_value begun = {copy, i};
    bb_map_in(graph, map, begun, BB_WHOLE);
    for (uint32_t p = 0; p < rest->nin; p++)
      if (bb_value_equal(rest->in[p].src, begun)) rest->out[i].resumes = p + 1;
  }
}

/* Peels one of the loops that stand in the program, at the root or further in. */
void peel_a_map(generator *g) {
  bb_graph *graph = g->root;
  uint32_t map = late_map(g, graph);
  while (map != BB_NONE && random_chance(&g->random, 50)) {
    bb_graph *inner = bb_map_own(graph, map);
    uint32_t below = late_map(g, inner);
    if (below == BB_NONE) break;
    graph = inner;
    map = below;
  }
  if (map != BB_NONE) split(graph, map);
}
