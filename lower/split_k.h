/* split_k.h - how the iterations of a folded loop are bracketed.
 *
 * A map that folds is a loop from left to right.  Its monoid is associative: the loop may be cut
 * into chunks that run apart, and their partial tuples combined in order, in any tree.  What comes
 * out is a block program like any other.
 */
#ifndef BB_LOWER_SPLIT_K_H
#define BB_LOWER_SPLIT_K_H

#include "../graph/program.h"

/* The program of `graph` with every outermost folded loop cut into `chunks` chunks (TREE: a power
 * of two, not less).  graph stays as it is.  A list that such a loop also collects gets a loop of
 * its own, no chunk having the whole of it; a loop that is peeled stays whole.  Requires: 1 <=
 * chunks <= BB_FOLD_CHUNKS.  Keeps: the function, up to rounding; serials of what it leaves
 * alone. */
bb_graph *bb_split_k(bb_program *program, bb_graph *graph, bb_fold_kind kind, uint32_t chunks);

/* The program of `graph` with one folded loop, by its serial, cut into chunks: a local phase, over
 * what is around the loop and the chunks, and a global phase in loops of their own at the top,
 * where the maps around the loop can be cut in two; else inside them.  `graph` where there is no
 * such loop.  Requires: it folds everything that it gives. */
bb_graph *bb_split_loop(bb_program *program, bb_graph *graph, uint32_t serial, uint32_t chunks);

#endif
