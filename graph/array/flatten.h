/* flatten.h - what the files share that bring array nodes into the index form.
 *
 * A flat value says for every leaf of every axis of an array value which axis of an index-form
 * value it is; a leaf along which the value is constant is none.
 */
#ifndef BB_GRAPH_ARRAY_FLATTEN_H
#define BB_GRAPH_ARRAY_FLATTEN_H

#include "index.h"

typedef struct bb_flat {
  uint32_t value; /* of the index form; BB_NONE: not made yet */
  uint32_t rank;
  uint32_t *first; /* leaf of axis a: first[a] .. first[a + 1] - 1 */
  uint32_t *leaf;  /* classes */
  uint32_t *at;    /* the value's axis of each leaf, or BB_NONE */
} bb_flat;

typedef struct bb_flattening {
  bb_ix *ix;
  bb_array *array;
  bb_arena *scratch;
  const bb_ix_classes *classes;
  bb_flat *flat; /* by array value */
} bb_flattening;

static inline uint32_t bb_flat_leaves(const bb_flat *x) {
  return x->first[x->rank];
}
static inline uint32_t bb_flat_axis_leaves(const bb_flat *x, uint32_t axis) {
  return x->first[axis + 1] - x->first[axis];
}

/* The leaves of an array value's axes, none of them placed yet. */
bb_flat bb_flat_of_shape(bb_flattening *f, uint32_t array_value);
/* An array value's flat; that of an input or constant is made. */
bb_flat *bb_flat_of(bb_flattening *f, uint32_t array_value);
/* An elementwise node over `count` leaves, in the order given; operand i's axis a is leaf
 * index[i][a]. */
uint32_t bb_flat_elementwise(bb_flattening *f, const char *name, const bb_expr *expr,
                             uint32_t count, const uint32_t *leaf, uint32_t nin,
                             const uint32_t *value, uint32_t *const *index);
/* The same value with every leaf of its flat an axis, in order; with every leaf present. */
void bb_flat_straighten(bb_flattening *f, bb_flat *x);
void bb_flat_materialise(bb_flattening *f, bb_flat *x);
/* A value that is a function of one value with the same axes. */
uint32_t bb_flat_apply(bb_flattening *f, const char *name, const bb_expr *expr, uint32_t value);
/* Sums a value over some of its axes; kept[a] is what becomes of axis a. */
uint32_t bb_flat_sum(bb_flattening *f, const char *name, uint32_t value, const bool *gone,
                     uint32_t *kept);

/* Every leaf is an axis of its own; their number. */
uint32_t bb_flat_place_all(bb_flat *x);
/* The value as operand `slot` of a node: whole, its indices the leaves in order. */
void bb_flat_use_whole(bb_flattening *f, uint32_t node, uint32_t slot, bb_flat *x);

/* --- flatten_contract.c --- */

void bb_flatten_contract(bb_flattening *f, const bb_array_node *node);

/* --- flatten_move.c: `copied` says that elements have to move --- */

void bb_flatten_transpose(bb_flattening *f, const bb_array_node *node);
void bb_flatten_broadcast(bb_flattening *f, const bb_array_node *node);
void bb_flatten_reshape(bb_flattening *f, const bb_array_node *node, bool copied);
void bb_flatten_slice(bb_flattening *f, const bb_array_node *node, bool copied);
void bb_flatten_windows(bb_flattening *f, const bb_array_node *node);
void bb_flatten_pad(bb_flattening *f, const bb_array_node *node);
void bb_flatten_join(bb_flattening *f, const bb_array_node *node, bool copied);
void bb_flatten_misc(bb_flattening *f, const bb_array_node *node);

/* --- flatten_fold.c --- */

void bb_flatten_reduce(bb_flattening *f, const bb_array_node *node);
void bb_flatten_argreduce(bb_flattening *f, const bb_array_node *node);
void bb_flatten_scan(bb_flattening *f, const bb_array_node *node);

#endif
