/* index.h - the index form of an array program: what is left when layout is taken away.
 *
 * A value is a function of its axes, each axis one dim (a class of axis factoring): reshape,
 * transpose, squeeze and broadcast are gone, an axis of extent 1 is no axis (until unit.c gives
 * products of vectors and blocks one), and a value that is constant along an axis does not have it.
 * A node runs over indices; its first ones are the axes of its result, in order, and every operand
 * says which index each of its axes follows.  The canonical forms are found here, where a rewrite
 * never meets a layout operator.
 *
 * bb_array_factor() makes the form from an array program, bb_array_canonicalise() rewrites it and
 * bb_array_lower() turns it into blocks.
 */
#ifndef BB_GRAPH_ARRAY_INDEX_H
#define BB_GRAPH_ARRAY_INDEX_H

#include "array.h"

typedef enum bb_ix_op {
  BB_IX_SOURCE,      /* a program tensor through an index for each of its axes */
  BB_IX_ELEMENTWISE, /* coordinates in expr: BB_COORD_AXIS + index */
  BB_IX_CONTRACT,
  BB_IX_REDUCE,
  BB_IX_ARGREDUCE,
  BB_IX_FOLD,  /* with an operand and a result for each component of a monoid */
  BB_IX_SCAN,  /* along index `at`; exclusive if start is not 0; components as for FOLD */
  BB_IX_SLICE, /* elements start, start + step, ... of the operand's axis behind index `at` */
  /* elements start + step * p + by * t of the operand's axis behind index `at`, which is p; the next one is t */
  BB_IX_WINDOWS,
  /* the operand with `start` elements before its axis behind index `at`, and more behind: expr, a number.  Before canonicalisation
   * only of open axes; others are joined, as parts of a join may be taken apart */
  BB_IX_PAD,
  BB_IX_JOIN,  /* operands one after another along index `at`; their own dims there differ */
  BB_IX_MISC,  /* an operand's index is an axis of its port's storage */
  BB_IX_OUTPUT /* a program output; its indices are the output's axes in storage order */
} bb_ix_op;

/* A use of a value; uses of one value are linked. */
typedef struct bb_ix_operand {
  uint32_t value;
  uint32_t *index; /* for each axis of the value */
  uint32_t next_node, next_slot, prev_node, prev_slot;
} bb_ix_operand;

typedef struct bb_ix_node {
  bb_ix_op op;
  bool removed, queued;
  const char *name;
  uint32_t nin;
  bb_ix_operand *in;
  uint32_t indices;
  uint32_t *dim; /* class of each index */
  uint32_t nout;
  uint32_t *out; /* values; none for OUTPUT, several for FOLD, SCAN, MISC */
  const bb_expr *expr;
  const bb_monoid *monoid;
  uint32_t at;            /* SCAN, SLICE, WINDOWS, PAD, JOIN: an index; OUTPUT: its number */
  int64_t start, step;    /* SLICE, WINDOWS; PAD has no step */
  int64_t by;             /* WINDOWS */
  uint32_t tensor, rank;  /* SOURCE: array value, axes of the tensor */
  const bb_index *access; /* SOURCE: for each axis of the tensor; dims are classes */
  const bb_misc *misc;    /* MISC; axes of its ports are classes until lowering */
} bb_ix_node;

typedef struct bb_ix_value {
  const char *name;
  bb_dtype dtype;
  uint32_t rank;
  uint32_t *dim; /* class of each axis */
  uint32_t node, port;
  bool once; /* depends on constants only */
  uint32_t uses, first_node, first_slot;
} bb_ix_value;

/* A class of axes that are split alike. */
typedef struct bb_ix_dim {
  uint32_t same; /* union-find parent */
  const bb_extent *extent;
  uint32_t parts; /* split into this many classes, outer to inner; 0: not split */
  uint32_t part[2];
  bool whole; /* it is read in windows, and never split */
  /* Rows, columns or the sum of a product lie along it, or along its innermost part. */
  bool multiplied;
  bb_dim dim; /* in the program, once it has been named */
} bb_ix_dim;

/* A list of classes that grows. */
typedef struct bb_ix_list {
  bb_arena *arena;
  uint32_t count, capacity, *at;
} bb_ix_list;

typedef struct bb_ix {
  bb_program *program;
  bb_arena *arena;
  bb_array *array;
  uint32_t dims, dim_capacity;
  bb_ix_dim *dim;
  uint32_t nodes, node_capacity;
  bb_ix_node *node;
  uint32_t values, value_capacity;
  bb_ix_value *value;
  uint32_t *output; /* nodes, one for each output of the array program */
  void (*released)(void *user, uint32_t value); /* told of values that a sweep uses no more */
  void *released_user;
  bb_ix_list *storage; /* by array value: the axes of an input's or constant's tensor */
} bb_ix;

bb_ix *bb_ix_create(bb_array *array);

/* --- classes --- */

uint32_t bb_ix_class(bb_ix *ix, const bb_extent *extent);
uint32_t bb_ix_find(bb_ix *ix, uint32_t class);
void bb_ix_unite(bb_ix *ix, uint32_t a, uint32_t b); /* neither is split; extents are equal */
static inline const bb_extent *bb_ix_extent(bb_ix *ix, uint32_t class) {
  return ix->dim[bb_ix_find(ix, class)].extent;
}
/* As a number; -1: only a run tells it. */
static inline int64_t bb_ix_length(bb_ix *ix, uint32_t class) {
  return bb_extent_value(bb_ix_extent(ix, class));
}

/* --- nodes --- */

/* A node without results; operands are set by bb_ix_use(). */
uint32_t bb_ix_node_add(bb_ix *ix, bb_ix_op op, const char *name, uint32_t nin, uint32_t indices,
                        const uint32_t *dim);
/* One more result of a node. */
uint32_t bb_ix_result(bb_ix *ix, uint32_t node, bb_dtype dtype, uint32_t rank, const uint32_t *dim);
/* A node with one result whose axes are the first `rank` of `indices` indices.  Gives the
 * result. */
uint32_t bb_ix_add(bb_ix *ix, bb_ix_op op, const char *name, bb_dtype dtype, uint32_t nin,
                   uint32_t rank, uint32_t indices, const uint32_t *dim);
/* An operand or a result of a misc node whose axes are over `axes` classes. */
bb_misc_port bb_ix_port(bb_ix *ix, bb_dtype dtype, uint32_t axes, const uint32_t *class);
/* A misc node that copies elements in storage order from the one tensor to the other.  Gives the
 * result; the operand is set by bb_ix_use(). */
uint32_t bb_ix_copy_add(bb_ix *ix, const char *name, bb_misc_port from, bb_misc_port to);
void bb_ix_use(bb_ix *ix, uint32_t node, uint32_t slot, uint32_t value, const uint32_t *index);
void bb_ix_unuse(bb_ix *ix, uint32_t node, uint32_t slot);
/* Makes a node's operands from `nin` others; the old ones are given up. */
void bb_ix_set_operands(bb_ix *ix, uint32_t node, uint32_t nin, const uint32_t *value,
                        const uint32_t *const *index);
/* Removes a node whose results nobody uses, and what then has no use either. */
void bb_ix_sweep(bb_ix *ix, uint32_t node);
/* All uses and outputs of `old` (not those by node `except`) become uses of `with`: axis a of
 * `with` takes the place of axis a of `old`. */
void bb_ix_replace(bb_ix *ix, uint32_t old, uint32_t with, uint32_t except);
/* Nodes in an order in which operands come first; removed ones left out. */
uint32_t bb_ix_order(bb_ix *ix, bb_arena *arena, uint32_t **order);

#define BB_IX_EACH_USE(ix, v, n, s)                                                                \
  for (uint32_t n = (ix)->value[v].first_node, s = (ix)->value[v].first_slot, n##_next, s##_next;  \
       n != BB_NONE &&                                                                             \
       (n##_next = (ix)->node[n].in[s].next_node, s##_next = (ix)->node[n].in[s].next_slot, true); \
       n = n##_next, s = s##_next)

static inline uint32_t bb_ix_rank(const bb_ix *ix, uint32_t value) {
  return ix->value[value].rank;
}
/* Does an axis of the operand follow the node's index? */
static inline bool bb_ix_follows(const bb_ix *ix, const bb_ix_operand *in, uint32_t index) {
  for (uint32_t a = 0; a < bb_ix_rank(ix, in->value); a++)
    if (in->index[a] == index) return true;
  return false;
}
/* Marks the indices whose coordinates an expression asks for. */
void bb_ix_mark_coordinates(bb_arena *scratch, const bb_expr *expr, bool *asked);
static inline uint32_t bb_ix_producer(const bb_ix *ix, uint32_t value) {
  return ix->value[value].node;
}
static inline bb_ix_node *bb_ix_node_of(const bb_ix *ix, uint32_t value) {
  return &ix->node[ix->value[value].node];
}
/* The class behind axis `axis` of a value. */
static inline uint32_t bb_ix_axis(bb_ix *ix, uint32_t value, uint32_t axis) {
  return bb_ix_find(ix, ix->value[value].dim[axis]);
}

/* --- canon_turn.c: loops around reductions --- */

/* A fold over some of its indices? */
static inline bool bb_ix_reduces(const bb_ix_node *node) {
  return node->op == BB_IX_REDUCE || node->op == BB_IX_ARGREDUCE || node->op == BB_IX_FOLD;
}
/* The order in which the loops of a reduction that a value ends in, through elementwise nodes, run
 * over its axes: a key for each, by which they are sorted.  False: it ends in none. */
bool bb_ix_reduction_order(bb_ix *ix, uint32_t value, bb_arena *arena, uint32_t *key);

/* --- factor.c: the classes of an array program's axes --- */

void bb_ix_push(bb_ix_list *list, uint32_t class);
/* Appends the leaves of a class, outer to inner. */
void bb_ix_leaves(bb_ix *ix, uint32_t class, bb_ix_list *list);

typedef struct bb_ix_classes {
  uint32_t **axis; /* of each array value: the class of each axis, BB_NONE where the extent is 1 */
  bool *copied;    /* of each node: a reshape, slice or join that is no renaming: data moves */
  uint32_t *stored_as; /* of each array value: the one whose axes it is stored with, BB_NONE: own */
} bb_ix_classes;
/* Ties the axes of all values, and splits classes, until nothing more becomes a renaming. */
bb_ix_classes bb_ix_classify(bb_ix *ix, bb_arena *scratch);

/* --- flatten.c --- */

/* The nodes of an array program in index form. */
void bb_ix_flatten(bb_ix *ix, const bb_ix_classes *classes);

#endif
