/* scalar_walk.h - the terms of all values of block programs, and what they say of each exp.
 */
#ifndef BB_FUSE_SCALAR_WALK_H
#define BB_FUSE_SCALAR_WALK_H

#include "scalar.h"

typedef struct bb_scalar_walk bb_scalar_walk;

/* In `arena`, with which it dies. */
bb_scalar_walk *bb_scalar_walk_create(bb_program *program, bb_arena *arena);

/* Walks a block program: the terms of its values and, from them, what each of its exps needs. What
 * a program walked before stored in a tensor comes in with its faults. */
void bb_scalar_walk_graph(bb_scalar_walk *walk, const bb_graph *root);

/* Is there anything to learn of a program: has it exps, or does it read a faulty value? */
bool bb_scalar_walk_concerns(const bb_scalar_walk *walk, const bb_graph *root, bool exps);

/* What is known of an exp, or of a value mended, in a functional node's expression; NULL for `exp`:
 * of the result of another op.  `node` is of a graph walked. */
const bb_exp *bb_scalar_walk_exp(bb_scalar_walk *walk, const bb_node *node, const bb_expr *exp);

/* May both operands of a dot be pairs? */
bool bb_scalar_walk_joins_pairs(const bb_scalar_walk *walk, const bb_node *node);

#endif
