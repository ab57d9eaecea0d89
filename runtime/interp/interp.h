/* interp.h - the oracle: runs block programs at every stage, fused or not, in float32 or float64.
 *
 * float64 computes everything in double and rounds nothing; conversions to integers and bools are
 * conversions all the same.  float32 rounds the result of every operation, also inside expressions,
 * to its dtype, with three liberties that make it as good as what it is compared with: a dot or a
 * row_sum adds its terms in double and rounds once (an accumulator of several blocks rounds after
 * each); what accumulates (dot, row_sum, folds, scans) in f16 or bf16 is held in f32, as kernels
 * do, and becomes narrow where an elementwise operation or a tensor takes it; and an expression of
 * f16 or bf16 is taken in f32 and rounded at its end and where it has a cast, as kernels do.
 */
#ifndef BB_INTERP_H
#define BB_INTERP_H

#include "../../graph/program.h"

/* Whole tensors as the interpreter holds them: row-major doubles over the tensor's factored axes
 * (integers and bools exact to 2^53), each value rounded to its dtype. */
typedef struct bb_interp_tensor {
  double *data; /* NULL: not bound */
  size_t count;
} bb_interp_tensor;

/* An item is read when a map takes it out of a list and written when a map collects it; lists are
 * read when they are reduced, and read and written again when they are folded as wholes; operands and
 * results of misc nodes likewise.  Items handed on inside a loop and views cost nothing. */
typedef struct bb_interp_counts {
  double buffered_read, buffered_written; /* bytes over buffered edges, by dtype size */
  double operations;                      /* by op.def and expr.def */
  double *passes;                         /* per program tensor: elements read / elements held */
} bb_interp_counts;

typedef struct bb_interp_options {
  bool float64; /* else operations round as above */
  const int64_t
      *symbol;          /* value of each symbol of the program; -1: not known, or told in the run */
  const int64_t *block; /* per dim: elements in a block, 0: 64; blocked dims only */
  uint32_t loop_seed;   /* not 0: draw a block size per loop where the program lets loops
                          * over one dim differ (buffered edges re-split) */
  int64_t *told;        /* `symbol`, where misc nodes may tell some; NULL: none does */
} bb_interp_options;

/* Runs one block program (program->root or a snapshot).  tensor[] is indexed by program tensor;
 * inputs and constants are bound, outputs are allocated in `arena`.  Fails the context with the
 * node's place on a value that cannot be computed. counts may be NULL. */
void bb_interp_graph(const bb_program *program, const bb_graph *graph,
                     const bb_interp_options *options, bb_interp_tensor *tensor, bb_arena *arena,
                     bb_interp_counts *counts);

/* Runs program->step in order, misc nodes by their reference kernels. */
void bb_interp_program(const bb_program *program, const bb_interp_options *options,
                       bb_interp_tensor *tensor, bb_arena *arena, bb_interp_counts *counts);

/* Runs one step; what it reads is bound. */
void bb_interp_step(const bb_program *program, const bb_step *step,
                    const bb_interp_options *options, bb_interp_tensor *tensor, bb_arena *arena,
                    bb_interp_counts *counts);

/* Extents that follow from those that are known (-1: not known): symbols whose name is an expression, of the first so many.
 * Fails where one is no size, or known as something else. */
void bb_derive_symbols(bb_program *program, uint32_t symbols, int64_t *symbol, bb_arena *arena);
/* " where S = 5, T = 7": those that are known. */
const char *bb_known_symbols(const bb_program *program, const int64_t *symbol, uint32_t symbols,
                             bb_arena *arena);

/* Reference kernels of misc nodes.  Absent operands have no data.  Results come with the shapes that
 * the program gives them (-1: an extent that the kernel tells) and without data; the kernel sets all of it, and what it gives is
 * held against what was expected. */
typedef struct bb_misc_value {
  bb_dtype dtype;
  uint32_t rank;
  int64_t shape[8];
  double *data;
} bb_misc_value;
typedef void bb_misc_kernel(bb_context *ctx, bb_arena *arena, const bb_misc *misc, uint32_t nin,
                            const bb_misc_value *in, uint32_t nout, bb_misc_value *out);
bb_misc_kernel *bb_misc_find(const bb_misc *misc); /* NULL: there is none for this op */
/* The first of `rows` new rows behind at most `past`, so that `length` are there; fails. */
int64_t bb_misc_row_of(bb_context *ctx, double length, int64_t past, int64_t rows);
/* Whether the result is the first operand with more behind it along an axis. */
bool bb_misc_joins(const bb_misc *misc, uint32_t *axis);

/* Constants to doubles and back, by dtype.  2^63 stands for the greatest integer of 64 bits, NaN for every other one that
 * no double holds. */
void bb_interp_load(bb_dtype dtype, const void *bytes, size_t count, double *out);
/* Fails where there is such a NaN among integers; `what` names the tensor. */
void bb_interp_check(bb_context *ctx, const char *what, bb_dtype dtype, const double *data,
                     size_t count);
void bb_interp_store(bb_dtype dtype, const double *in, size_t count, void *bytes);
double bb_round_to(bb_dtype dtype, double value);
/* The product of two numbers of a type: those of 32 bits wrap, which doubles hold no product of. */
double bb_interp_times(bb_dtype dtype, double a, double b);

#endif
