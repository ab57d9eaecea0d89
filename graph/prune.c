/* prune.c - removes from a level, and from the levels inside it, what nothing uses. */
#include "prune.h"

#include "program.h"

static bool is_used(const bb_node *node, uint32_t port) {
  return node->out[port].first.node != BB_NONE;
}

static void prune_ports(bb_graph *graph, uint32_t map) {
  bb_node *node = bb_node_get(graph, map);
  for (uint32_t p = node->nout; p-- > 0;) {
    bool fold = node->out[p].mode == BB_OUT_FOLD, used = false;
    uint32_t count = fold ? node->out[p].fold->components : 1;
    if (fold) p -= node->out[p].component;
    for (uint32_t k = 0; k < count; k++) used |= is_used(node, p + k);
    for (uint32_t k = count; k-- > 0 && !used;) bb_map_out_remove(graph, map, p + k);
  }
}

/* Does a result of the map go on from what comes in at this port?  Nothing reads it inside. */
static bool is_begun(const bb_node *map, uint32_t port) {
  for (uint32_t i = 0; i < map->nout && map->part == BB_PART_REST; i++)
    if (map->out[i].resumes == port + 1) return true;
  return false;
}

void bb_map_prune(bb_graph *graph, uint32_t map) {
  const bb_node *node = bb_node_get(graph, map);
  bb_graph *inner = node->inner;
  if (inner->holders > 1) return;
  prune_ports(graph, map);
  bb_graph_prune(inner);
  for (uint32_t i = inner->ninputs; i-- > 0;)
    if (!is_used(bb_node_get(inner, inner->input[i]), 0) && !is_begun(node, i))
      bb_map_in_remove(graph, map, i);
}

void bb_graph_prune(bb_graph *graph) {
  bb_arena *scratch = bb_scratch(graph->program->ctx);
  uint32_t *order = BB_NEW(scratch, uint32_t, (size_t)graph->live + 1);
  uint32_t count = bb_topological_order(graph, scratch, order);
  while (count-- > 0) {
    bb_node *node = bb_node_get(graph, order[count]);
    bool kept = node->kind == BB_NODE_INPUT || node->kind == BB_NODE_OUTPUT;
    kept |= node->kind == BB_NODE_MISC && node->misc &&
            bb_misc_tells(graph->program, node->misc) != BB_NONE;
    for (uint32_t p = 0; p < node->nout; p++) kept |= is_used(node, p);
    if (!kept)
      bb_node_remove(graph, order[count]);
    else if (node->kind == BB_NODE_MAP)
      bb_map_prune(graph, order[count]);
  }
  bb_scratch_end(scratch);
}
