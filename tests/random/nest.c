/* nest.c - nests of maps around an operation. */
#include "build.h"

void nest_open(nest *n, bb_graph *around, uint32_t depth, const bb_level *loop) {
  n->depth = depth;
  n->apart = false;
  n->graph[0] = around;
  for (uint32_t d = 0; d < depth; d++) {
    n->loop[d] = loop[d];
    n->map[d] = bb_map_add(n->graph[d], loop[d].dim);
    n->graph[d + 1] = bb_node_get(n->graph[d], n->map[d])->inner;
  }
}

static uint32_t level_find(const bb_type *type, bb_level level) {
  for (uint32_t i = 0; i < type->rank; i++)
    if (type->level[i].dim == level.dim && type->level[i].axis == level.axis) return i;
  return BB_WHOLE;
}

static bb_value bring_in(nest *n, uint32_t d, bb_value value, uint32_t level) {
  bb_graph *graph = n->graph[d];
  if (!n->apart) return bb_map_in(graph, n->map[d], value, level);
  const bb_type *type = bb_type_of(graph, value);
  if (level != BB_WHOLE) type = bb_type_element(graph->program, type, level);
  bb_in_add(graph, n->map[d], value, level);
  return bb_input_add(n->graph[d + 1], type);
}

bb_value nest_bring(nest *n, bb_value value, const bb_level *strip) {
  if (!strip) strip = n->loop;
  for (uint32_t d = 0; d < n->depth; d++) {
    uint32_t level = level_find(bb_type_of(n->graph[d], value), strip[d]);
    value = bring_in(n, d, value, level);
  }
  return value;
}

bb_value nest_collect(nest *n, bb_value inner) {
  for (uint32_t d = n->depth; d-- > 0;)
    inner = bb_map_collect(n->graph[d], n->map[d], inner, n->loop[d].axis);
  return inner;
}
