/* orient.c - the order of the lists in a candidate's inputs.
 *
 * A value between candidates has its lists in the order of the loops that made it, but in memory
 * any order is as good: inputs list enumerated dims first, then rows, then cols, as those that name
 * program inputs do.  So equal kernels read alike however their operands came about.
 */
#include "flow.h"

/* A new order of the levels of a type: level i of the new type was level from[i]. */
typedef struct reordering {
  uint32_t count;
  uint32_t *from;
} reordering;

static uint32_t place_of(const reordering *r, uint32_t old) {
  uint32_t i = 0;
  while (r->from[i] != old) i++;
  return i;
}

static bool is_identity(const reordering *r) {
  for (uint32_t i = 0; i < r->count; i++)
    if (r->from[i] != i) return false;
  return true;
}

/* The order of what is left when old level `level` is taken out. */
static reordering without(bb_arena *scratch, const reordering *r, uint32_t level) {
  reordering rest = {.from = BB_NEW(scratch, uint32_t, r->count)};
  for (uint32_t i = 0; i < r->count; i++)
    if (r->from[i] != level) rest.from[rest.count++] = r->from[i] - (r->from[i] > level);
  return rest;
}

/* Enumerated dims, then rows, then cols, otherwise as before. */
static reordering canonical(bb_arena *scratch, const bb_type *type) {
  static const bb_axis axes[] = {BB_AXIS_NONE, BB_AXIS_ROW, BB_AXIS_COL};
  reordering r = {.from = BB_NEW(scratch, uint32_t, type->rank)};
  for (int a = 0; a < 3; a++)
    for (uint32_t i = 0; i < type->rank; i++)
      if (type->level[i].axis == axes[a]) r.from[r.count++] = i;
  return r;
}

/* The access names the levels over one dim by their order: that must stay. */
static bool keeps_repeated_dims(const bb_type *type, const reordering *r) {
  for (uint32_t i = 0; i < r->count; i++)
    for (uint32_t j = i + 1; j < r->count; j++)
      if (r->from[i] > r->from[j] && type->level[r->from[i]].dim == type->level[r->from[j]].dim)
        return false;
  return true;
}

/* Do the uses leave the order of the lists free?  They do unless a list leaves the map it is in, or
 * is folded to another list. */
static bool is_free(bb_arena *scratch, const bb_graph *graph, bb_value value, const reordering *r) {
  if (is_identity(r)) return true;
  for (bb_use u = bb_first_use(graph, value); u.node != BB_NONE; u = bb_next_use(graph, u)) {
    const bb_node *node = graph->node[u.node];
    if (node->kind == BB_NODE_REDUCE && r->count == 1) continue;
    if (node->kind != BB_NODE_MAP) return false;
    uint32_t level = node->in[u.port].level;
    reordering rest = level == BB_WHOLE ? *r : without(scratch, r, level);
    if (!is_free(scratch, node->inner, (bb_value){node->inner->input[u.port], 0}, &rest))
      return false;
  }
  return true;
}

/* Gives the value, an input of an owned level, the type with its levels in the new order. */
static void reorder(bb_arena *scratch, bb_graph *graph, bb_value value, const reordering *r) {
  if (is_identity(r)) return;
  bb_program *program = graph->program;
  const bb_type *type = bb_type_of(graph, value);
  bb_level *level = BB_NEW(scratch, bb_level, type->rank);
  for (uint32_t i = 0; i < type->rank; i++) level[i] = type->level[r->from[i]];
  graph->node[value.node]->out[value.port].type =
      bb_type_make(program, type->item, type->rank, level);
  for (bb_use u = bb_first_use(graph, value); u.node != BB_NONE; u = bb_next_use(graph, u)) {
    bb_in *in = &graph->node[u.node]->in[u.port];
    reordering rest = *r;
    if (in->level != BB_WHOLE) {
      rest = without(scratch, r, in->level);
      in->level = place_of(r, in->level);
    }
    if (graph->node[u.node]->kind != BB_NODE_MAP) continue;
    bb_graph *inner = bb_map_own(graph, u.node);
    reorder(scratch, inner, (bb_value){inner->input[u.port], 0}, &rest);
  }
}

void bb_orient_inputs(bb_program *program, bb_graph *root) {
  bb_arena *scratch = bb_scratch(program->ctx);
  for (uint32_t i = 0; i < root->ninputs; i++) {
    bb_value value = {root->input[i], 0};
    const bb_type *type = bb_type_of(root, value);
    reordering r = canonical(scratch, type);
    if (is_identity(&r) || !keeps_repeated_dims(type, &r) || !is_free(scratch, root, value, &r))
      continue;
    reorder(scratch, root, value, &r);
  }
  bb_scratch_end(scratch);
}
