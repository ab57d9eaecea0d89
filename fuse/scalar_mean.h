/* scalar_mean.h - what a value of a block program means, while programs are walked; internal to
 * scalar.
 */
#ifndef BB_FUSE_SCALAR_MEAN_H
#define BB_FUSE_SCALAR_MEAN_H

#include "scalar_walk.h"

enum { BB_MEAN_LEVELS = 16 };

/* A value: its term, and which variable belongs to each axis of its item and to each of its
 * lists. */
typedef struct bb_meaning {
  const bb_scalar *term;
  uint8_t row, col;
  uint8_t level[BB_MEAN_LEVELS];
} bb_meaning;

struct bb_scalar_walk {
  bb_program *program;
  bb_arena *arena;
  bb_scalars *terms;
  bb_intern *occurrences;
  uint32_t tensors;
  const bb_scalar **stored; /* by tensor: faulty, in a local one; else NULL */
  uint32_t opaque;          /* values of which nothing is known, so far */
};

typedef struct bb_mean_level {
  bb_scalar_walk *walk;
  const bb_graph *graph;
  uint32_t depth;     /* loops around */
  bb_meaning **value; /* by node and port */
} bb_mean_level;

/* --- scalar_walk.c --- */

/* An exp, or a value mended, of a node's expression. */
void bb_mean_note_exp(bb_scalar_walk *walk, const bb_node *node, const bb_expr *expr, uint32_t exp);
/* A dot both of whose operands may become pairs. */
void bb_mean_note_pairs(bb_scalar_walk *walk, const bb_node *node);
/* A value about which nothing is known but the variables it depends on; `like`: those of its lists
 * and axes, or NULL. */
void bb_mean_opaque(bb_scalar_walk *walk, const bb_type *type, const bb_meaning *like,
                    bb_range range, bb_meaning *m);

/* --- scalar_func.c --- */

void bb_mean_func(bb_mean_level *l, const bb_node *node, bb_meaning *out);
/* An expression that stands in no node. */
const bb_scalar *bb_mean_expr(bb_scalar_walk *walk, const bb_expr *expr, const bb_scalar **arg);
/* The basic monoid that folds a component by itself, or BB_MONOID_TUPLE. */
bb_monoid_id bb_mean_plain_fold(const bb_monoid *monoid, uint32_t component);

#endif
