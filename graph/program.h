/* program.h - a program in the making: everything its stages share, and the stages themselves.
 *
 * One bb_program holds the tables (dims, symbols, types, expressions, tensors) and, as far as they
 * have been made, the array program, the block program, its candidates and their snapshots.  All
 * of it lives in one arena and dies with bb_program_destroy().
 */
#ifndef BB_GRAPH_PROGRAM_H
#define BB_GRAPH_PROGRAM_H

#include "access.h"
#include "graph.h"

struct bb_array; /* array/array.h */

typedef enum bb_tensor_role {
  BB_TENSOR_INPUT,    /* bound by the caller at each run */
  BB_TENSOR_OUTPUT,   /* given back to the caller */
  BB_TENSOR_CONSTANT, /* has data */
  BB_TENSOR_LOCAL     /* between candidates; computed at load if `once` */
} bb_tensor_role;

/* A dense row-major array in memory.  Its axes after factoring: outer to inner, one dim each; the
 * caller's shape is kept beside them, since several dims may make one axis of it. */
/* What elements lie between; NaN among them: anything. */
typedef struct bb_spread {
  double least, most;
  bool nonzero; /* none of them is 0 */
} bb_spread;

typedef struct bb_tensor {
  const char *name; /* as in the model: any bytes; printed quoted */
  bb_dtype dtype;
  bb_tensor_role role;
  bool once;     /* LOCAL: depends on constants only */
  uint32_t rank; /* the caller's shape */
  const bb_extent *const *shape;
  uint32_t axes; /* the factored shape */
  const bb_dim *axis;
  const void *data; /* CONSTANT: little-endian, contiguous, maybe unaligned; owned by the program */
  size_t bytes;
  const bb_spread *spread; /* of the data; NULL: nobody has looked yet */
} bb_tensor;

/* An operator without a block form.  Attributes are kept as a little text-free table. */
typedef struct bb_attribute {
  const char *name;
  enum { BB_ATTR_INT, BB_ATTR_FLOAT, BB_ATTR_TEXT, BB_ATTR_INTS, BB_ATTR_FLOATS } kind;
  int64_t i;
  double f;
  const char *text;
  uint32_t count;
  const int64_t *ints;
  const double *floats;
} bb_attribute;

/* What a misc node's kernel sees of one operand or result: the shape as the model has it, which
 * block types do not keep (axes of extent 1 have no dim, orders of levels differ). */
typedef struct bb_misc_port {
  bool absent; /* an optional operand (result) left out: no in-port (out-port) */
  bb_dtype dtype;
  uint32_t rank; /* the model's shape */
  const bb_extent *const *shape;
  /* Its dims in storage order, outer to inner, as bb_tensor.axis.  An operand may lack some of them: it is the same along those. */
  uint32_t axes;
  const bb_dim *axis;
} bb_misc_port;

typedef struct bb_misc {
  const char *domain, *op; /* "" and "Gather" */
  uint32_t version;        /* opset version the model uses */
  uint32_t count;
  const bb_attribute *attribute;
  /* As in the model, absent ones included: the node's in-ports are the ports not absent, in order.
   * `in` and `out` NULL (hand-made programs): every operand has the shape of its type's levels. */
  uint32_t nin, nout;
  const bb_misc_port *in, *out;
} bb_misc;

/* Has its result the elements of its only operand, one after the other as they are stored?  copy.c */
bool bb_misc_is_copy(const bb_misc *misc);
/* The symbol that the node tells in a run, as many elements as its results turn out to have: one with a `most`, in the
 * shape of a result and of no operand, of an operator whose results are as long as data decides.  BB_NONE: none. */
uint32_t bb_misc_tells(const bb_program *program, const bb_misc *misc);

typedef struct bb_snapshot {
  uint32_t step; /* rewrites applied when it was taken */
  bb_graph *graph;
  bb_graph *safe; /* what runs: the same with exps that cannot overflow (fuse/safety.h), its loops
                      * in blocks and its folds in parts as selection chose them; NULL: as it is */
  double operations; /* counted operations and buffered bytes, once measured; else < 0 */
  double buffered;
} bb_snapshot;

/* A convex sub-program of the root without misc; its graph is a block program whose inputs and
 * outputs are program tensors. */
typedef struct bb_candidate {
  const char *name; /* "c0", "c1", ... */
  bool once;        /* runs at load: depends on constants only */
  bb_graph *graph;  /* as partitioned */
  bb_graph *origin; /* kernels: the fused candidate that it was split from; NULL: not known */
  uint32_t snapshots;
  bb_snapshot *snapshot;
  uint32_t chosen;  /* index of the snapshot that runs; BB_NONE: not yet chosen */
  const char *exps; /* a line for each exp of what is chosen: what became of it; NULL: none yet */
  bb_graph *safe;   /* what runs while none is chosen: `graph` with safe exps; NULL: `graph` */
  const struct bb_bill *bill; /* kernels chosen by price: select/bill.h; else NULL */
} bb_candidate;

/* What a plan runs, in order: candidates, and misc nodes between them. */
typedef struct bb_step {
  uint32_t candidate; /* BB_NONE: a misc node */
  const bb_misc *misc;
  const char *name;
  uint32_t nin, nout;
  const bb_access *const *in; /* each reads program tensors */
  const uint32_t *out;        /* program tensors, contiguous */
} bb_step;

struct bb_program {
  bb_context *ctx;
  bb_arena *arena;
  bb_arena *drafts; /* of the array program and its index form; NULL once they are dropped */
  bb_arena *levels; /* where new levels are made: `arena`, but see bb_graph_keep() */
  bb_stage stage;
  bool strict;      /* rewrites that cost more precision than another order of sums are left out */
  const char *name; /* of the model */
  uint32_t dims, dim_capacity;
  bb_dim_info *dim;
  uint32_t symbols, symbol_capacity, most_capacity;
  const char **symbol;
  /* By symbol: the most that it can be, where a misc node tells in a run how much it is (bb_misc_tells), or where it follows
   * from such ones and is the less the more they are; NULL: it is known before, or its name says. */
  const bb_extent **most;
  uint32_t tensors, tensor_capacity;
  bb_tensor *tensor;
  uint32_t monoids, monoid_capacity; /* tuples, in the order made: monoid.h */
  bb_monoid **monoid;
  uint32_t serial; /* the next node's creation number */
  struct bb_array *array;
  bb_graph *root;
  bb_graph *safe_root; /* what runs before partition: the root with safe exps; NULL: the root */
  uint32_t candidates, steps;
  bb_candidate *candidate;
  bb_step *step;
  const struct bb_selection_report *selection; /* select/select.h; NULL: not chosen by price */
  /* Other programs for other extents, chosen with this one: runtime/variants.h; NULL: there are
   * none. */
  const struct bb_variants *variants;
  struct bb_intern *types, *exprs, *extents, *accesses, *names, *symbol_names, *monoid_set;
  struct bb_intern *products;  /* fuse/algebra.c: derivations by chain; NULL: none yet */
  struct bb_mapping *mappings; /* files mapped for external data; unmapped on destroy */
};

/* What a candidate runs: its chosen snapshot made safe, or, before one is chosen, its graph. */
static inline bb_graph *bb_candidate_runs(const bb_candidate *candidate) {
  if (candidate->chosen == BB_NONE || candidate->chosen >= candidate->snapshots)
    return candidate->safe ? candidate->safe : candidate->graph;
  const bb_snapshot *snapshot = &candidate->snapshot[candidate->chosen];
  return snapshot->safe ? snapshot->safe : snapshot->graph;
}

/* Not deferred: the caller owns it (and registers it while building). */
bb_program *bb_program_create(bb_context *ctx, const char *name);
/* Destroyed when the innermost bb_protect() ends, unless bb_undefer() withdraws that. */
void bb_program_defer(bb_program *program);

/* Empties the tables, as they are in a new program; what was made before must not be used any more.
 * Files stay mapped. */
void bb_program_clear(bb_program *program);

uint32_t bb_tensor_add(bb_program *program, const bb_tensor *tensor); /* copied, not its data */
/* Maps [offset, offset + length) of a file read-only for as long as the program lives. */
const void *bb_program_map_file(bb_program *program, const char *path, uint64_t offset,
                                uint64_t length);
/* The whole file; *length receives its size. */
const void *bb_program_map_whole(bb_program *program, const char *path, uint64_t *length);

/* The type of a view of axes: one list for every dim, enumerated dims first in the order given,
 * then row, then col, over an item with those axes (BB_NO_DIM: none). */
const bb_type *bb_type_of_axes(bb_program *program, bb_dtype dtype, uint32_t count,
                               const bb_dim *dim, bb_dim row, bb_dim col);

#endif
