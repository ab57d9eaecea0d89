/* safety.h - block programs whose exps cannot overflow to a wrong result (Blockbuster, appendix).
 *
 * An exp whose overflow (or underflow: a row sum of zeros) could reach a wrong result becomes a
 * pair of a significand and an exponent, s * exp(e).  e is the largest of the exponents it stands
 * for: of a row where sums along their columns are all that is done to the exps, also by who reads
 * them from memory, of an element elsewhere.  All sums along one axis share it; it never varies
 * along an axis that is being contracted.
 * Folds over blocks of pairs become a tuple monoid: e folds with max, every sum is renewed by exp(e
 * - e'). Products, quotients, powers and logarithms work on pairs, exponents of equal values
 * cancel, and where a result leaves the program it is multiplied back: there an overflow is the
 * right limit.
 *
 * An exp is left alone where nothing can go wrong: its exponent is bounded (an element less its
 * row's maximum, a cosine, a constant), or all that its overflow reaches is the right limit
 * (sigmoid, swish). What meets a pair becomes one, also where it is bounded: an element far below its
 * row's maximum may be what a huge factor belongs to. Each choice is kept with its reason.
 */
#ifndef BB_FUSE_SAFETY_H
#define BB_FUSE_SAFETY_H

#include "../graph/program.h"

typedef struct bb_safety bb_safety;

/* Lives in `arena`. */
bb_safety *bb_safety_create(bb_program *program, bb_arena *arena);

/* A local tensor may be stored as a pair: its significands there, its exponents in a new one; or, where all significands are 1,
 * its exponents there.
 * Requires: no program that reads it was learned. */
void bb_safety_carry(bb_safety *safety, uint32_t tensor);

/* Learns what a block program does with its exps.  Programs that hand values to each other in local
 * tensors are learned in the order in which they run, all before any is made safe. */
void bb_safety_learn(bb_safety *safety, const bb_graph *root);

/* The program with pairs: a graph of its own, or, where nothing has to be done, `root`.  Requires:
 * it was learned.  Keeps: inputs and outputs, serials of the nodes that stay, every value where the
 * program does not overflow (up to rounding).  Programs may come to hand each other exponents, in
 * new local tensors or in those that they had. */
bb_graph *bb_safety_make(bb_safety *safety, bb_graph *root);

/* The same for one program by itself, which shares no local tensor with others. */
bb_graph *bb_safety_alone(bb_program *program, bb_graph *root);

/* A line for each exp of a program that was learned: what becomes of it, and why. */
void bb_safety_explain(bb_safety *safety, const bb_graph *root, bb_buffer *out);

/* Is there an exp, in an expression or anywhere in a program? */
bool bb_expr_has_exp(bb_program *program, const bb_expr *expr);
bool bb_graph_has_exp(bb_program *program, const bb_graph *graph);

#endif
