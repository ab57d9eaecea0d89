/* flow_copy.c - copies in a flow: nests around an identity.
 *
 * A copy lies as is asked for, or else as what it is made of lies, and its blocks are of the two innermost axes
 * there, whichever axes products elsewhere are cut along: rows of a block are neighbours in what is read and in what is written.
 * Readers see it through a view, by the dims that they know.
 *
 *     y[h,w,n] of x[n,-1 + h,-1 + w], n cut into blocks     ==>     y[n,h,w], h and w cut into blocks
 */
#include "flow.h"

/* Loops over every level of a value around an identity. */
static bb_value copy_nest(bb_graph *graph, bb_value value) {
  bb_program *program = graph->program;
  const bb_type *type = bb_type_of(graph, value);
  if (type->rank == 0) {
    const bb_expr *identity = bb_expr_arg(program, type->item.dtype, 0);
    return bb_func_add(graph, BB_OP_ELEMENTWISE, identity, 1, &value);
  }
  uint32_t map = bb_map_add(graph, type->level[0].dim);
  graph->node[map]->name = "copy";
  bb_value element = bb_map_in(graph, map, value, 0);
  bb_value inner = copy_nest(graph->node[map]->inner, element);
  return bb_map_collect(graph, map, inner, type->level[0].axis);
}

static void connect_copy(bb_flow *flow, uint32_t node, uint32_t port, bb_value copy) {
  bb_connect(flow->graph, node, port, copy);
  bb_flow_number_values(flow);
}

void bb_flow_copy_into(bb_flow *flow, uint32_t node, uint32_t port) {
  bb_flow_own_level(flow);
  connect_copy(flow, node, port, copy_nest(flow->graph, bb_src(flow->graph, node, port)));
}

/* --- as what is read lies --- */

static uint32_t level_over(const bb_type *type, bb_dim dim) {
  uint32_t i = 0;
  while (i < type->rank && type->level[i].dim != dim) i++;
  return i;
}

/* The levels of a value in the order in which what it reads lies in memory, those that it does not read first.  False: that
 * is no one array, or levels over one dim would not be told apart. */
static bool order_in_memory(const bb_flow *flow, bb_value value, uint32_t *level) {
  const bb_type *type = bb_type_of(flow->graph, value);
  const bb_access *access = bb_flow_at(flow, value)->access;
  const bb_piece *piece = &access->piece[0];
  bool *placed = BB_NEW(flow->scratch, bool, type->rank + 1);
  uint32_t *axis = BB_NEW(flow->scratch, uint32_t, piece->rank), n = 0;
  if (access->joined != BB_NO_DIM) return false;
  for (uint32_t i = 0; i < piece->rank; i++) axis[bb_flow_place(flow, piece, i)] = i;
  for (uint32_t i = 0; i < type->rank; i++)
    if (level_over(type, type->level[i].dim) != i) return false;
  for (uint32_t i = 0; i < piece->rank; i++)
    for (uint32_t k = 0; k < bb_index_dims(&piece->index[i]); k++)
      placed[level_over(type, bb_index_dim(&piece->index[i], k))] = true;
  for (uint32_t i = 0; i < type->rank; i++)
    if (!placed[i]) level[n++] = i;
  for (uint32_t i = 0; i < piece->rank; i++) {
    const bb_index *index = &piece->index[axis[i]];
    for (uint32_t k = 0; k < bb_index_dims(index); k++)
      level[n++] = level_over(type, bb_index_dim(index, k));
  }
  return n == type->rank;
}

/* The levels of a value in the order of those dims.  False: they are not told apart by them. */
static bool order_as_asked(const bb_flow *flow, bb_value value, const bb_dim *dim,
                           uint32_t *level) {
  const bb_type *type = bb_type_of(flow->graph, value);
  for (uint32_t i = 0; i < type->rank; i++) {
    level[i] = level_over(type, dim[i]);
    if (level[i] == type->rank || level_over(type, type->level[i].dim) != i) return false;
  }
  return true;
}

/* A view of a value by one dim for each of its levels. */
static bb_value rename_levels(bb_flow *flow, bb_value value, const bb_type *type,
                              const bb_dim *dim) {
  uint32_t rank = bb_type_of(flow->graph, value)->rank;
  bb_index *index = BB_NEW(flow->scratch, bb_index, rank);
  for (uint32_t i = 0; i < rank; i++) index[i] = (bb_index){BB_INDEX_DIM, dim[i], 0, 1};
  bb_piece piece = {.source = 0, .rank = rank, .index = index};
  bb_access access = {.joined = BB_NO_DIM, .count = 1, .piece = &piece};
  uint32_t at = bb_node_add(flow->graph, BB_NODE_VIEW, 1, 1);
  bb_node *view = bb_node_get(flow->graph, at);
  view->out[0].type = type;
  view->access = bb_access_make(flow->program, &access);
  view->name = "copy";
  connect_copy(flow, at, 0, value);
  bb_flow_settle_view(flow, at);
  return (bb_value){at, 0};
}

/* A dim that is cut into blocks, or is not, in a level's place. */
static bb_dim dim_for(bb_flow *flow, bb_dim dim, bool blocked) {
  const bb_dim_info info = *bb_dim_get(flow->program, dim);
  return info.blocked == blocked ? dim : bb_dim_add(flow->program, info.name, info.extent, blocked);
}

void bb_flow_copy_lines_into(bb_flow *flow, uint32_t node, uint32_t port, const bb_dim *asked) {
  bb_value value = bb_src(flow->graph, node, port);
  const bb_type *type = bb_type_of(flow->graph, value);
  uint32_t rank = type->rank, *order = BB_NEW(flow->scratch, uint32_t, rank + 1);
  if (!(asked ? order_as_asked(flow, value, asked, order) : order_in_memory(flow, value, order))) {
    bb_flow_copy_into(flow, node, port);
    return;
  }
  bb_flow_own_level(flow);
  bb_item item = {type->item.dtype, BB_NO_DIM, BB_NO_DIM};
  bb_level *level = BB_NEW(flow->scratch, bb_level, rank);
  bb_dim *to = BB_NEW(flow->scratch, bb_dim, rank), *back = BB_NEW(flow->scratch, bb_dim, rank);
  for (uint32_t i = 0; i < rank; i++) {
    bb_axis axis = i + 1 == rank ? BB_AXIS_COL : i + 2 == rank ? BB_AXIS_ROW : BB_AXIS_NONE;
    back[i] = type->level[order[i]].dim;
    to[order[i]] = dim_for(flow, back[i], axis != BB_AXIS_NONE);
    level[i] = (bb_level){to[order[i]], axis};
    if (axis == BB_AXIS_COL) item.col = level[i].dim;
    if (axis == BB_AXIS_ROW) item.row = level[i].dim;
  }
  const bb_type *lines = bb_type_make(flow->program, item, rank, level);
  bb_value copy = copy_nest(flow->graph, rename_levels(flow, value, lines, to));
  bb_flow_number_values(flow);
  connect_copy(flow, node, port, rename_levels(flow, copy, type, back));
}
