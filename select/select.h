/* select.h - which kernels: partitions a block program into candidates and chooses a snapshot of
 * each.
 */
#ifndef BB_SELECT_H
#define BB_SELECT_H

#include "../graph/program.h"
#include "../fuse/fuse.h"

/* Makes program->candidate and program->step from program->root: maximal convex candidates without
 * misc and views between them.  Values that cross a boundary become LOCAL tensors; views become the
 * accesses of the candidates' inputs, so that no data moves for them. */
void bb_partition(bb_program *program);

/* Fuses every candidate and chooses of its snapshots the one with the fewest counted operations,
 * then the fewest buffered bytes.  An extension that would run a product again for every row
 * block is not taken.  Equal candidates (by hash, confirmed) are fused once. */
void bb_choose(bb_program *program, const bb_fuse_options *options);

/* The static cost used above, with every dim in one block: operations and bytes that cross
 * buffered edges.  Extents that are symbols count as `symbol_guess`. */
void bb_count_graph(const bb_program *program, const bb_graph *graph, int64_t symbol_guess,
                    double *operations, double *buffered);

#endif
