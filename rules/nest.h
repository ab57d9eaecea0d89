/* nest.h - loop nests around one functional op: what the companion rules match and make.
 *
 * A nest is a chain of maps, each holding nothing but the next, around one functional op; or the op
 * alone.  The inner maps may be summed over, by a fold or by a reduction behind the map:
 *
 *     N{ K{ dot } ; sum }        a product: N is an output map, K is summed
 *     N{ K{ dot, folded } }      the same after Rule 3
 *     K{ row_scale }             a mapped scale
 *
 * Rules describe the nest that they want as they describe the one that they found, and build it.
 */
#ifndef BB_RULES_NEST_H
#define BB_RULES_NEST_H

#include "rule.h"

enum { BB_LOOPS_DEPTH = 16 };

/* An operand of the op as it enters the nest: a value of the nest's level, and for each map
 * (outermost first) the list level that it iterates of what is left of it, or BB_WHOLE. */
typedef struct bb_operand {
  bb_value value;
  uint32_t level[BB_LOOPS_DEPTH];
} bb_operand;

typedef struct bb_loops {
  uint32_t node;    /* read: the outermost node of the nest in its level */
  bb_value result;  /* read: the value it gives there, after a reduction if there is one */
  uint32_t depth;   /* maps */
  uint32_t outputs; /* the first so many collect; the others are summed */
  bb_dim dim[BB_LOOPS_DEPTH];
  bb_axis axis[BB_LOOPS_DEPTH]; /* of the collected list */
  bool folded[BB_LOOPS_DEPTH];  /* a summed map folds; else it collects and a reduction follows */
  bb_op op;
  const bb_expr *
      expr; /* of an elementwise op; of one that scales: the terms that its factor came out of; of a
              * wide product: 0 */
  uint32_t operands; /* one or two are read; elementwise ops may have more */
  bb_operand operand[2];
} bb_loops;

/* The op that the nest whose outermost node is `node` stands around; BB_OP_COUNT: no such nest. */
bb_op bb_loops_op(const bb_graph *graph, uint32_t node);
/* Reads the nest whose outermost node is `node`, with op `op`; else says what is amiss. */
bool bb_loops_read(const bb_graph *graph, uint32_t node, bb_op op, bb_loops *nest,
                   const char **why);
/* Builds a nest of new nodes; gives its result. */
bb_value bb_loops_build(bb_graph *graph, const bb_loops *nest);
/* Removes a nest that was read and whose result has no uses. */
void bb_loops_remove(bb_graph *graph, const bb_loops *nest);

/* A nest over the output maps of `like`: op(result, other).  The result is iterated by every
 * map, `other` at its outermost level by the maps whose bit is set.  terms: that `other`, a factor, came out of. */
bb_value bb_loops_over_outputs(bb_graph *graph, const bb_loops *like, bb_op op, bb_value result,
                               bb_value other, uint32_t iterated, const bb_expr *terms);
/* How many terms each of the nest's sums has, times those that its factor came out of `before`, if any; NULL: one at least,
 * for every value of the run-time extents. */
const bb_expr *bb_loops_terms(bb_program *program, const bb_loops *nest, const bb_expr *before);

/* Keeps of the nest's maps those whose bit is set. */
void bb_loops_keep(bb_loops *nest, uint32_t maps);
/* The maps that iterate an operand. */
uint32_t bb_loops_iterating(const bb_loops *nest, uint32_t operand);
/* The axis that the list level iterated by each map has in the operand's type. */
void bb_loops_axes(const bb_graph *graph, const bb_loops *nest, uint32_t operand,
                   bb_axis axis[BB_LOOPS_DEPTH]);

/* --- a scale or shift in front of a product --- */

typedef struct bb_scaled_product {
  bb_loops product, scale;
  uint32_t side;               /* which operand of the dot is scaled */
  uint32_t at[BB_LOOPS_DEPTH]; /* for each map of the scale, the product's map that iterates it */
} bb_scaled_product;

/* Rules 4, 5, 10 and 11 wait for one thing: that the product is left as the only user of the scaled
 * value (BB_WAKE_SOLE_USER).  Neither becomes a nest later than it is made: fusion puts ops together.
 *
 * Is `match->anchor` a product whose operand `side` is a mapped op of the bit set `ops`?  `alone`:
 * and the scaled value has no other use. */
bool bb_scaled_product_read(bb_match *match, uint32_t side, uint32_t ops, bool alone,
                            bb_scaled_product *found);
/* What rules 4, 5 and 10 ask beyond that of a product whose left operand is scaled or shifted. */
bool bb_swap_scale_dot_reads(bb_match *match, bool alone, bb_scaled_product *found);
bool bb_swap_shift_dot_reads(bb_match *match, bool alone, bb_scaled_product *found);
bool bb_move_column_scale_reads(bb_match *match, bool alone, bb_scaled_product *found);
/* Puts `with` where the product's result was, and removes the product and the scale. */
void bb_scaled_product_replace(bb_graph *graph, const bb_scaled_product *found, bb_value with);

#endif
