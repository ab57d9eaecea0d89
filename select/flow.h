/* flow.h - inside select/: a root level as the flow of values that is cut into candidates.
 */
#ifndef BB_SELECT_FLOW_H
#define BB_SELECT_FLOW_H

#include "select.h"

/* A root level with what partition needs to know about its nodes and values.  Where a view has to
 * exist in memory a copying nest is put: then the level is a copy of the root's. */
typedef struct bb_flow {
  bb_program *program;
  bb_arena *scratch;
  bb_graph *graph;
  bool own;       /* the level is a copy */
  uint32_t nodes; /* in `order`: the live ones, topological */
  uint32_t *order;
  bool *once;      /* by node: depends on constants only */
  uint32_t *group; /* by node: ascending in executable order; BB_NONE: in no group */
  uint32_t groups;
  uint32_t numbered;     /* nodes whose values have numbers */
  uint32_t *first_value; /* by node: number of its out-port 0 among all values */
  uint32_t node_capacity, values, value_capacity;
  struct bb_flow_value *value;
  uint32_t sources; /* tensors before this flow added any */
} bb_flow;

typedef struct bb_flow_value {
  /* How it is read.  A source below flow->sources is a program tensor, another one is flow->sources
   * + the number of a value in memory of its own, whose axes are its type's levels. */
  const bb_access *access;
  bb_value at;
  uint32_t output;     /* the root OUTPUT node whose tensor holds it; BB_NONE: none does */
  const bb_dim *order; /* its storage order, one dim for each level; NULL: as the levels */
  uint32_t tensor;     /* once made: the tensor that holds it; else BB_NONE */
} bb_flow_value;

static inline bb_flow_value *bb_flow_at(const bb_flow *flow, bb_value value) {
  return &flow->value[flow->first_value[value.node] + value.port];
}

/* The level is the caller's until it has to differ. */
void bb_flow_own_level(bb_flow *flow);
/* Numbers the values of nodes that have none yet. */
void bb_flow_number_values(bb_flow *flow);
/* Decides how what a view sees is read. */
void bb_flow_settle_view(bb_flow *flow, uint32_t node);
/* Where an axis of what a piece reads stands in memory, as far as that is asked for. */
uint32_t bb_flow_place(const bb_flow *flow, const bb_piece *piece, uint32_t axis);

/* --- flow_copy.c --- */

/* Puts a copy between a value and one in-port. */
void bb_flow_copy_into(bb_flow *flow, uint32_t node, uint32_t port);
/* Likewise, in memory as what is copied lies, or in the order of `asked`, a dim for each of its levels. */
void bb_flow_copy_lines_into(bb_flow *flow, uint32_t node, uint32_t port, const bb_dim *asked);

/* Is the node a loop, a reduction or a function: something that a candidate may hold? */
static inline bool bb_is_computed(const bb_node *node) {
  return node->kind == BB_NODE_FUNC || node->kind == BB_NODE_MAP || node->kind == BB_NODE_REDUCE;
}

/* Does the value hold partial results, one for each block of a dim?  Such a value has no extent of
 * its own and cannot become a tensor. */
bool bb_is_partial(const bb_program *program, const bb_type *type);

/* Counting sort (stable) of items by key[item] < keys; *start receives keys + 1 offsets into the
 * result. */
uint32_t *bb_sort_by_key(bb_arena *arena, uint32_t count, const uint32_t *item, const uint32_t *key,
                         uint32_t keys, uint32_t **start);

/* Everything but the groups. */
bb_flow *bb_flow_create(bb_program *program, bb_graph *root, bb_arena *scratch);

/* Fills flow->once. */
void bb_flow_mark_once(bb_flow *flow);

/* --- waits.c --- */

/* Which nodes can run only when a misc node has told an extent that they are of, though they may take none of its results. */
typedef struct bb_waits bb_waits;
/* NULL: no misc node tells any. */
bb_waits *bb_waits_find(const bb_flow *flow);
/* How many misc nodes tell one. */
uint32_t bb_waits_tellers(const bb_waits *waits);
/* Those that a node waits for. */
const uint32_t *bb_waits_of(const bb_waits *waits, uint32_t node, uint32_t *count);

/* The groups of a split into kernels: one map each. */
void bb_flow_group_kernels(bb_flow *flow);

/* Candidates and steps as they are made, in the program's arena. */
typedef struct bb_carving {
  const char *prefix; /* of the candidates' names */
  uint32_t candidates, candidate_capacity, steps, step_capacity;
  bb_candidate *candidate;
  bb_step *step;
  uint32_t locals; /* the number of the last LOCAL tensor made */
} bb_carving;

/* Starts without candidates; LOCAL tensors get names that no tensor of the program has. */
bb_carving bb_carving_start(bb_program *program, const char *prefix);
/* Appends a candidate for every group and a step for every misc node, in order. */
void bb_flow_carve(bb_flow *flow, bb_carving *carving);
/* Makes them the program's. */
void bb_carving_install(bb_program *program, const bb_carving *carving);

/* The view `outer` of operands which are themselves views: one access on what they read, or NULL
 * where pieces along two dims would meet.  type[] and inner[] are by operand. */
const bb_access *bb_access_compose(const bb_program *program, bb_arena *arena,
                                   const bb_access *outer, const bb_type *const *type,
                                   const bb_access *const *inner);

/* Reads inputs of a candidate the other way round instead of transposing their blocks.  Was there
 * any? */
bool bb_absorb_transposes(bb_program *program, bb_graph *root);
/* Lists the dims of inputs in the order of program inputs: enumerated, rows, cols. */
void bb_orient_inputs(bb_program *program, bb_graph *root);

/* Is `b` the graph `a` with other dims, tensors and constants' data?  Then bb_twin_graph() turns,
 * up to the next match, what became of `a` into what becomes of `b`. */
typedef struct bb_twin bb_twin;
bb_twin *bb_twin_create(bb_program *program, bb_arena *arena);
bool bb_twin_match(bb_twin *twin, const bb_graph *a, const bb_graph *b, bb_arena *scratch);
bb_graph *bb_twin_graph(bb_twin *twin, bb_graph *graph);
bb_dim bb_twin_dim(const bb_twin *twin, bb_dim dim);

#endif
