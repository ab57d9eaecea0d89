/* array.h - array programs: operators on whole arrays, before any splitting into blocks.
 *
 * ONNX operators are decomposed into the few array ops of array.def on the way in, so that every
 * pass below sees one vocabulary: elementwise expressions, contractions, reductions, scans, views
 * and misc.  Broadcasting follows numpy (axes aligned from the last).
 */
#ifndef BB_GRAPH_ARRAY_H
#define BB_GRAPH_ARRAY_H

#include "../program.h"

typedef enum bb_array_op {
#define BB_ARRAY_OP(id, name, description) BB_A_##id,
#include "array.def"
#undef BB_ARRAY_OP
  BB_ARRAY_OP_COUNT
} bb_array_op;

/* A value of an array program: an input, a constant or a result. */
enum { BB_ARRAY_RANK = 32 }; /* most axes of a value */

typedef struct bb_array_value {
  const char *name;
  bb_dtype dtype;
  uint32_t rank;
  const bb_extent *const *shape;
  uint32_t producer, port; /* node, BB_NONE for inputs and constants */
  bool is_input;
  const void *data; /* constants: little-endian, contiguous, owned by the program */
  size_t bytes;
  /* Axis factoring: axis a of the value is the product of dims factor[a][0..factors[a]-1], outer to
   * inner; no factors for extent 1. NULL until the dims have been named. */
  const uint32_t *factors;
  const bb_dim *const *factor;
} bb_array_value;

typedef struct bb_array_node {
  bb_array_op op;
  bool removed;
  const char *name; /* the model's node, for messages */
  uint32_t nin, nout;
  uint32_t *in, *out;      /* values */
  const bb_expr *expr;     /* ELEMENTWISE: coordinates are BB_COORD_AXIS + k; PAD: a number */
  const bb_monoid *monoid; /* REDUCE, ARGREDUCE, SCAN */
  uint32_t count;          /* of `ints` */
  const int64_t *ints;     /* see array.def */
  const bb_misc *misc;     /* MISC */
} bb_array_node;

typedef struct bb_array {
  bb_program *program;
  uint32_t values, value_capacity;
  bb_array_value *value;
  uint32_t nodes, node_capacity;
  bb_array_node *node; /* in topological order whenever a pass returns */
  uint32_t inputs, outputs;
  uint32_t *input, *output; /* values, in the model's order */
  const char **output_name;
  struct bb_ix *index; /* the index form, once factored: index.h */
} bb_array;

/* Lives in the program's drafts, until bb_array_drop(). */
bb_array *bb_array_create(bb_program *program);
/* A value that nothing makes yet; its shape is copied.  Its number. */
uint32_t bb_array_value_add(bb_array *array, const char *name, bb_dtype dtype, uint32_t rank,
                            const bb_extent *const *shape);
/* A node whose results exist; operands and results are copied.  Its number.  Shapes are not looked at: the
 * builders below do that. */
uint32_t bb_array_node_add(bb_array *array, bb_array_op op, const char *name, uint32_t nin,
                           const uint32_t *in, uint32_t nout, const uint32_t *out);
/* A node as it stands; its results exist already. */
void bb_array_append(bb_array *array, bb_array_node node);

/* Builders that infer the result's shape; they fail the context when operands do not fit, with the
 * node's name in the message.  Each gives the result value. */
uint32_t bb_array_constant(bb_array *array, const char *name, bb_dtype dtype, uint32_t rank,
                           const int64_t *shape, const void *data, size_t bytes);
uint32_t bb_array_elementwise(bb_array *array, const char *name, const bb_expr *expr,
                              uint32_t count, const uint32_t *in);
uint32_t bb_array_contract(bb_array *array, const char *name, uint32_t a, uint32_t b,
                           const int64_t *labels_a, const int64_t *labels_b, uint32_t rank,
                           const int64_t *labels_out);
uint32_t bb_array_reduce(bb_array *array, const char *name, const bb_monoid *monoid, uint32_t in,
                         uint32_t count, const int64_t *axes, bool keep);
uint32_t bb_array_reshape(bb_array *array, const char *name, uint32_t in, uint32_t rank,
                          const bb_extent *const *shape);
uint32_t bb_array_transpose(bb_array *array, const char *name, uint32_t in, const int64_t *perm);
uint32_t bb_array_broadcast(bb_array *array, const char *name, uint32_t in, uint32_t rank,
                            const bb_extent *const *shape);
uint32_t bb_array_slice(bb_array *array, const char *name, uint32_t in, uint32_t axis,
                        int64_t start, int64_t step, int64_t length);
/* Windows of so many taps, `by` apart, at places `step` apart from `start` on: the axis becomes two, places and taps.  Of
 * an axis of which only a run tells the length there are `open` places (`places` does not count then), and the caller vouches
 * that all they see is there. */
typedef struct bb_array_windows {
  int64_t start, step, by, places, taps;
  const bb_extent *open; /* NULL: `places` says */
} bb_array_windows;
uint32_t bb_array_windows_of(bb_array *array, const char *name, uint32_t in, uint32_t axis,
                             const bb_array_windows *windows);
/* An axis of which only a run tells the length, with a number before and behind it: of the result's elements the operand's are
 * those from `before` on.  Where the length is known, the same is a join. */
uint32_t bb_array_pad(bb_array *array, const char *name, uint32_t in, uint32_t axis, int64_t before,
                      const bb_expr *fill, const bb_extent *extent);
uint32_t bb_array_concat(bb_array *array, const char *name, uint32_t count, const uint32_t *in,
                         uint32_t axis);
/* The same with a tuple: an operand of one shape for each component, a result for each in out[]. */
void bb_array_reduce_tuple(bb_array *array, const char *name, const bb_monoid *monoid,
                           const uint32_t *in, uint32_t count, const int64_t *axes, bool keep,
                           uint32_t *out);
/* The running fold along an axis with a monoid of one component; exclusive: without the element
 * itself; reverse: from the end, the running fold of the axis turned round. */
uint32_t bb_array_scan(bb_array *array, const char *name, const bb_monoid *monoid, uint32_t in,
                       uint32_t axis, bool exclusive, bool reverse);
/* The same with a tuple. */
void bb_array_scan_tuple(bb_array *array, const char *name, const bb_monoid *monoid,
                         const uint32_t *in, uint32_t axis, bool exclusive, bool reverse,
                         uint32_t *out);
/* The elements in the other order along an axis. */
uint32_t bb_array_turned(bb_array *array, const char *name, uint32_t in, uint32_t axis);
/* An extent as an expression. */
const bb_expr *bb_array_extent(bb_program *program, const bb_extent *extent);
/* Index (i64) of the largest or smallest element along an axis. */
uint32_t bb_array_argreduce(bb_array *array, const char *name, const bb_monoid *monoid, uint32_t in,
                            uint32_t axis, bool keep);

/* --- the passes, in the order the driver runs them (each one file in graph/array/) --- */

/* Folds constants and shapes: what depends on constants only and is small is computed now; larger
 * constant subgraphs are left, to run once at load. Removes what no output needs. */
void bb_array_fold(bb_array *array);
/* Removes what no output needs. */
void bb_array_remove_dead(bb_array *array);
/* Constant masks and biases that equal a closed form of their coordinates become expressions. */
void bb_array_structure(bb_array *array);
/* Values joined only to be folded or taken apart again stay apart. */
void bb_array_part(bb_array *array);
/* A gather of one element of each row, out of what loops pass over anyway, becomes a sum that
 * leaves out all others. */
void bb_array_pick(bb_array *array);
/* Convolutions of floats by three taps take fewer multiplications: where the harmonic mean of channels and of maps is at least
 * `least`. */
void bb_array_winograd(bb_array *array, uint32_t least);
/* Slices by a step that divides their axis become a split axis and one of its parts. */
void bb_array_split_strides(bb_array *array);
/* Splits axes so that every axis of every value is a product of dims, and reshape, transpose,
 * broadcast and slices are renamings: makes array->index. */
void bb_array_factor(bb_array *array);
/* Canonical forms: rewrites of the index form, to a fixed point. */
void bb_array_canonicalise(bb_array *array);
/* Makes program->root: every array op's block subgraph, unfused (the paper's Table 2), for units that a machine has for products. */
typedef struct bb_units {
  /* Of 16 bits: constants that are widened for products stay as they are. */
  bool narrow;
  /* That sum along lines of memory: products of windows of few channels see such, unless `strict`. */
  bool lines;
  /* That gain by sums of windows beside them: these lie as what they see, and meet the product behind them. */
  bool windows;
  /* Of floats, by vectors: those of a convolution over so many channels are worth some additions, unless `strict`; 0: none are. */
  uint32_t winograd;
  /* Of integers of 8 bits: products of what was scaled from such sum integers, unless `strict`. */
  bool bytes;
} bb_units;
void bb_array_lower(bb_array *array, bb_units units);
/* Frees the array program and its index form, which nothing needs once they are lowered. */
void bb_array_drop(bb_program *program);

#endif
