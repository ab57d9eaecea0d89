/* lower_nest.c - nests of maps: one loop for each index, operands iterated where they have it. */
#include "lower.h"

#include <string.h>

/* The state of an operand inside the loops built so far. */
typedef struct inside {
  bb_value value;
  bool *stripped; /* by loop */
} inside;

/* Where a loop's level stands once outer loops have stripped theirs. */
static uint32_t level_now(const bb_nest_operand *in, const inside *state, uint32_t loop) {
  uint32_t level = in->level[loop];
  if (level == BB_NONE) return BB_WHOLE;
  for (uint32_t k = 0; k < in->loops; k++)
    if (state->stripped[k] && in->level[k] != BB_NONE && in->level[k] < in->level[loop]) level--;
  return level;
}

static void build(bb_nest *nest, bb_graph *graph, uint32_t depth, const inside *state,
                  bb_value *out);

/* Closes one loop: collects its results, and folds them where the nest says so. */
static void close_loop(bb_nest *nest, bb_graph *graph, uint32_t map, uint32_t depth,
                       const bb_value *inner, bb_value *out) {
  bool fold = nest->fold && depth >= nest->first_fold;
  for (uint32_t o = 0; o < nest->nout; o++)
    out[o] = bb_map_collect(graph, map, inner[o], fold ? BB_AXIS_NONE : nest->axis[depth]);
  if (fold) out[0] = bb_reduce_add(graph, nest->fold, BB_REDUCE_FOLD, 0, nest->nout, out);
}

static void build(bb_nest *nest, bb_graph *graph, uint32_t depth, const inside *state,
                  bb_value *out) {
  bb_arena *scratch = nest->lower->scratch;
  bb_value *value = BB_NEW(scratch, bb_value, nest->nin);
  if (depth == nest->loops) {
    for (uint32_t i = 0; i < nest->nin; i++) {
      value[i] = state[i].value;
      if (nest->in[i].turned) value[i] = bb_func_add(graph, BB_OP_TRANSPOSE, NULL, 1, &value[i]);
    }
    nest->body(nest, graph, value, out);
    return;
  }
  uint32_t map = bb_map_add(graph, nest->dim[depth]);
  inside *next = BB_NEW(scratch, inside, nest->nin);
  for (uint32_t i = 0; i < nest->nin; i++) {
    next[i].stripped = BB_NEW(scratch, bool, nest->loops);
    memcpy(next[i].stripped, state[i].stripped, nest->loops * sizeof(bool));
    uint32_t level = level_now(&nest->in[i], &state[i], depth);
    next[i].value = bb_map_in(graph, map, state[i].value, level);
    next[i].stripped[depth] = level != BB_WHOLE;
  }
  build(nest, graph->node[map]->inner, depth + 1, next,
        value = BB_NEW(scratch, bb_value, nest->nout));
  close_loop(nest, graph, map, depth, value, out);
}

void bb_nest_build(bb_nest *nest, bb_graph *graph, bb_value *out) {
  bb_arena *scratch = nest->lower->scratch;
  inside *state = BB_NEW(scratch, inside, nest->nin);
  for (uint32_t i = 0; i < nest->nin; i++) {
    state[i].value = nest->in[i].value;
    state[i].stripped = BB_NEW(scratch, bool, nest->loops);
  }
  build(nest, graph, 0, state, out);
}

bb_nest_operand bb_nest_operand_of(bb_lower *l, const bb_ix_node *node, uint32_t slot,
                                   const bb_role *role) {
  const bb_ix_operand *operand = &node->in[slot];
  uint32_t rank = l->ix->value[operand->value].rank;
  bb_role *want = BB_NEW(l->scratch, bb_role, rank);
  for (uint32_t a = 0; a < rank; a++) want[a] = role[operand->index[a]];
  const bb_placed *p = bb_lower_fetch(l, operand->value, want);
  bb_nest_operand in = {.value = p->src, .loops = node->indices, .turned = p->turned};
  in.level = BB_NEW(l->scratch, uint32_t, node->indices);
  for (uint32_t k = 0; k < node->indices; k++) in.level[k] = BB_NONE;
  for (uint32_t a = 0; a < rank; a++) in.level[operand->index[a]] = p->level[a];
  return in;
}

bb_nest_operand *bb_nest_operands(bb_lower *l, const bb_ix_node *node, const bb_role *role) {
  bb_nest_operand *in = BB_NEW(l->scratch, bb_nest_operand, node->nin);
  for (uint32_t i = 0; i < node->nin; i++) in[i] = bb_nest_operand_of(l, node, i, role);
  return in;
}

void bb_nest_loops(bb_nest *nest, uint32_t count, const uint32_t *class, const bb_role *role) {
  static const bb_axis axes[] = {BB_AXIS_NONE, BB_AXIS_ROW, BB_AXIS_COL};
  bb_dim *dim = BB_NEW(nest->lower->scratch, bb_dim, count);
  bb_axis *axis = BB_NEW(nest->lower->scratch, bb_axis, count);
  for (uint32_t k = 0; k < count; k++) {
    dim[k] = bb_lower_dim(nest->lower, class[k], role[k]);
    axis[k] = axes[role[k]];
  }
  nest->loops = count;
  nest->dim = dim;
  nest->axis = axis;
}
