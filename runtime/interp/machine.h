/* machine.h - what the parts of the interpreter share: values, the plan of a run, and its state.
 *
 * A value is dense over the *logical* axes of its type: a list over a level that chunks the item's
 * row or col axis is stored unblocked, so that every loop may split it anew; only lists over
 * enumerated dims, and lists of partial results over blocked ones, have elements of their own.
 * Elements of lists are strided windows: nothing is copied to iterate.
 *
 * Before a run every level of the graph is instantiated once for each place where it stands (levels
 * may be shared), with its topological order, its compiled expressions and its block sizes.
 */
#ifndef BB_INTERP_MACHINE_H
#define BB_INTERP_MACHINE_H

#include "interp.h"

/* --- values --- */

typedef struct bb_span {
  int64_t length, stride;
} bb_span;

/* The program tensors a value was read from; share is how many elements of that tensor one
 * element of the value stands for. */
typedef struct bb_origin {
  uint32_t tensor;
  double share;
} bb_origin;

typedef struct bb_origins {
  uint32_t count;
  const bb_origin *origin;
} bb_origins;

typedef struct bb_datum {
  const bb_type *type;
  double *data;
  bb_span *level;   /* type->rank of them; length 1 where the level chunks an item axis */
  bb_span row, col; /* length 1, stride 0 for an axis the item lacks */
  int64_t row_start, col_start; /* global index of the first element */
  const bb_origins *origins;    /* NULL: computed */
} bb_datum;

enum { BB_INTERP_LEVELS = 64 }; /* types of more lists are refused */

/* Memory of one depth of the map nest: released at the end of every iteration, and reused. */
typedef struct bb_stack {
  bb_arena *arena;
  uint32_t chunks, capacity, current;
  struct bb_stack_chunk {
    double *data;
    size_t size;
  } * chunk;
  size_t used; /* of the current chunk */
} bb_stack;

typedef struct bb_stack_mark {
  uint32_t chunk;
  size_t used;
} bb_stack_mark;

double *bb_stack_alloc(bb_stack *stack, size_t count); /* not zeroed */
bb_stack_mark bb_stack_save(const bb_stack *stack);
void bb_stack_restore(bb_stack *stack, bb_stack_mark mark);

/* Elements of a value, all levels together; fails the context when that overflows. */
size_t bb_datum_count(bb_context *ctx, const bb_datum *datum);
/* Gives `datum`, whose lengths are set, row-major strides and memory: levels, then row, then col.
 */
void bb_datum_alloc(bb_context *ctx, bb_datum *datum, bb_stack *stack);
void bb_datum_alloc_in(bb_context *ctx, bb_datum *datum, bb_arena *arena);
/* Lengths and starts of `from`, whose type has the same shape; no memory. */
void bb_datum_shape(bb_datum *datum, const bb_datum *from);
bool bb_datum_same_shape(const bb_datum *a, const bb_datum *b);

/* Calls row(user, dst, src, n, dst stride, src stride) for every run of elements of two values of
 * one shape, in row-major order. */
typedef void bb_row_function(void *user, double *dst, const double *src, int64_t count,
                             int64_t dst_stride, int64_t src_stride);
void bb_datum_walk(const bb_datum *dst, const bb_datum *src, bb_row_function *row, void *user);
void bb_datum_copy(const bb_datum *dst, const bb_datum *src);
void bb_datum_fill(const bb_datum *dst, double value);

/* --- the plan --- */

typedef struct bb_formula bb_formula; /* a compiled expression: formula.c */

typedef struct bb_instance bb_instance;

typedef struct bb_instance_node {
  bb_datum **in; /* the operands: out-ports of other nodes of the level */
  bb_datum *out;
  uint32_t *tie;             /* per out-port: first of its tie variables (plan.c) */
  bb_instance *inner;        /* MAP */
  uint32_t loop;             /* MAP: its tie variable */
  int64_t block;             /* MAP: elements an iteration takes */
  const uint32_t *chunk;     /* MAP, CHUNK: depths of the maps that number the chunks */
  const bb_formula *formula; /* FUNC ELEMENTWISE */
  double cost;               /* FUNC: operations for each element; REDUCE: for each combination */
} bb_instance_node;

struct bb_instance {
  const bb_graph *graph;
  uint32_t count; /* nodes in `order` */
  uint32_t *order;
  bb_instance_node *node; /* by index; removed nodes are unused */
};

/* --- the state of a run --- */

typedef struct bb_run {
  const bb_program *program;
  bb_context *ctx;
  const bb_interp_options *options;
  bb_arena *scratch; /* dies with the run */
  bb_arena *arena;   /* the caller's: outputs */
  int64_t *extent;   /* per dim */
  double *symbol;    /* per symbol of the program */
  bb_interp_tensor *tensor;
  bb_interp_counts *counts; /* NULL: not wanted */
  uint32_t depths;          /* stacks and indices there are */
  bb_stack *stack;          /* by depth */
  int64_t *index;           /* by depth of the map: its iteration */
  double *zero;             /* what a ghost iteration reads of an empty list; never written */
  struct bb_tuple *tuples;  /* fold_tuple.c: monoids compiled for this run */
  bool silent;              /* a ghost iteration is running: nothing is counted */
} bb_run;

/* Extents of all dims that the symbols' values determine; -1 for those they do not.  Dims whose
 * extent is needed are checked by bb_run_extent(). */
void bb_run_begin(bb_run *run, const bb_program *program, const bb_interp_options *options,
                  bb_interp_tensor *tensor, bb_arena *arena, bb_interp_counts *counts);
/* Again, as the symbols are now. */
void bb_run_bind(bb_run *run);
int64_t bb_run_extent(const bb_run *run, bb_dim dim);
/* Elements of a program tensor by its factored axes. */
size_t bb_run_tensor_count(const bb_run *run, uint32_t tensor);
/* Loads a constant tensor's data when it is not bound yet; fails when a tensor has no data. */
void bb_run_need_tensor(bb_run *run, uint32_t tensor);
void bb_run_make_tensor(bb_run *run, uint32_t tensor);
void bb_run_graph(bb_run *run, const bb_graph *graph);

/* "node 17 (name)" for messages, in the run's scratch arena. */
const char *bb_run_place(const bb_run *run, const bb_node *node);
/* The program breaks a law that runs rely on. */
_Noreturn void bb_run_refuse(const bb_run *run, const bb_node *node, const char *law);

/* plan.c: instantiates a root level and everything inside. */
bb_instance *bb_plan_make(bb_run *run, const bb_graph *root);

/* count.c */
void bb_count_read(bb_run *run, const bb_datum *datum);
void bb_count_written(bb_run *run, const bb_datum *datum);
void bb_count_operations(bb_run *run, double operations);

/* func.c: one functional node on its operands; results in the stack of `depth`. */
void bb_run_func(bb_run *run, const bb_node *node, bb_instance_node *at, uint32_t depth);

/* formula.c.  accumulator: what is narrower than f32 is held in f32, but for casts (interp.h). */
const bb_formula *bb_formula_compile(bb_run *run, const bb_expr *expr, bool accumulator);
/* Evaluates over the elements of `out` (dense, allocated). in[]: items of rank 0. */
void bb_formula_run(bb_run *run, const bb_formula *formula, const bb_node *node,
                    bb_datum *const *in, bb_datum *out, uint32_t depth);
/* The same with another stack for what is released before returning. */
void bb_formula_run_on(bb_run *run, const bb_formula *formula, const bb_node *node,
                       bb_datum *const *in, bb_datum *out, bb_stack *stack, uint32_t depth);

/* fold.c: reductions.  acc = acc * term for all components; acc is dense, term has its shape.
 * `stack` is for what is released before returning. */
void bb_fold_combine(bb_run *run, const bb_monoid *monoid, bb_datum *const *acc,
                     bb_datum *const *term, bb_stack *stack);
void bb_fold_empty(const bb_monoid *monoid, bb_datum *const *acc);
void bb_run_reduce(bb_run *run, const bb_node *node, bb_instance_node *at, uint32_t depth);
/* fold_tuple.c: the same for a tuple, whose components may differ in axes and lists. */
void bb_fold_tuple(bb_run *run, const bb_monoid *monoid, bb_datum *const *acc,
                   bb_datum *const *term, bb_stack *stack);
/* Rounds to dtype what an accumulating operation gave; see interp.h on f16. */
void bb_settle(const bb_run *run, const bb_node *node, bb_dtype dtype, double *data, size_t count,
               bool accumulator);

/* view.c: root INPUT, OUTPUT and VIEW nodes. */
void bb_run_input(bb_run *run, const bb_node *node, bb_datum *out);
void bb_run_output(bb_run *run, const bb_node *node, bb_instance *at, uint32_t index);
void bb_run_view(bb_run *run, const bb_node *node, bb_instance_node *at);
/* Reads an access of program tensors into a new row-major buffer over `axis`: the operand of a misc
 * step.  Along dims that the access does not name all elements are alike. */
double *bb_read_access(bb_run *run, const bb_node *node, const bb_access *access, uint32_t axes,
                       const bb_dim *axis, size_t *count);
/* A row-major buffer over `axis` as a value of the type of `out`: a window. */
void bb_dense_as_value(bb_run *run, const bb_node *node, double *data, uint32_t axes,
                       const bb_dim *axis, bb_datum *out);
/* The other way: the elements of a value in a row-major buffer over `axis`, whose dims are those of
 * its levels; along others, all elements are alike. */
double *bb_value_as_dense(bb_run *run, const bb_node *node, const bb_datum *value, uint32_t axes,
                          const bb_dim *axis, size_t *count);

/* steps.c: misc nodes at the root and in a plan. */
void bb_run_misc(bb_run *run, const bb_node *node, bb_instance_node *at);

#endif
