/* plan.h - a compiled model as data: what runs, in which order, on which arrays.
 *
 * Flat, and free of programs: it is made from a program (compile/plan_make.c), written to a folder and
 * read again (plan_write.c, plan_read.c) and executed (session.c).  Run-time extents have numbers; what
 * depends on them is a product (bb_extent) or a formula.  Everything lives in one arena.
 *
 * A plan may hold several programs that compute the same, each the cheapest at some run-time extents: its variants.  They
 * share arrays, constants, caches, the steps that run at load and those between candidates; a step says which of them it is part
 * of, and a table over extents says which one runs.  Whole programs, not ways of one step: which values pass through memory differs
 * between one row and a thousand as much as block sizes do.
 */
#ifndef BB_MODEL_PLAN_H
#define BB_MODEL_PLAN_H

#include "../../graph/program.h"
#include "formula.h"

enum { BB_PLAN_RANK = 32, BB_PLAN_VERSION = 7, BB_PLAN_VARIANTS = 8 };

/* Constants in their data and arrays in a workspace begin at multiples of so many bytes: a GPU fetches boxes in lines of 128, and
 * two lines for one where rows begin in the middle, from memory 256 at a time. */
enum { BB_PLAN_APART = 256 };

/* Symbols of a plan: bit s % 64 for symbol s. */
typedef uint64_t bb_plan_symbols;

typedef struct bb_plan_tensor {
  const char *name; /* inputs and outputs: the model's, any bytes; else NULL */
  bb_dtype dtype;
  bb_tensor_role role;
  bool once; /* LOCAL: depends on constants only, of known size */
  uint32_t rank;
  const bb_extent *const *shape;
  uint64_t offset, bytes; /* CONSTANT: where in the data */
  /* An end of a cache: `room_axis` has room in memory for as many elements as this symbol says.
   * BB_NONE: dense. */
  uint32_t room, room_axis;
  /* What a cache grows by lies in its output from the start, behind so many elements of `room_axis`; BB_NONE: an array of
   * its own. */
  uint32_t within;
  const bb_extent *first;
  bb_plan_symbols follows; /* what its size, and its place in another, follow from */
} bb_plan_tensor;

/* An output that is an input with more behind it along an axis, brought together by a step.  fresh: a local array that is all
 * of what comes behind, which is made where it belongs; BB_NONE: there is none. */
typedef struct bb_plan_cache {
  uint32_t input, output, axis, fresh;
} bb_plan_cache;

/* What a kernel works on: an array from some element on.  The formula is of the kernel's extents. */
typedef struct bb_plan_argument {
  uint32_t tensor; /* BB_NONE: scratch, which is the kernel's own business */
  bb_formula offset;
  bool written;
} bb_plan_argument;

/* A part of an array that a reference kernel takes as an operand, or all of it. */
typedef struct bb_plan_piece {
  uint32_t tensor;
  bb_formula offset;        /* all of the model's extents */
  const bb_formula *stride; /* for each axis of the operand, in elements; 0: the piece lacks it */
  int64_t first, length;    /* of the joined axis */
} bb_plan_piece;

typedef struct bb_plan_operand {
  bool absent; /* an optional one, left out */
  bool whole;  /* the tensor of the only piece, as it is */
  bb_dtype dtype;
  uint32_t rank; /* the shape that the operator sees */
  const bb_extent *const *shape;
  uint32_t axes; /* the same elements, as the pieces count them */
  const bb_extent *const *extent;
  uint32_t joined; /* an axis, or BB_NONE */
  uint32_t pieces;
  const bb_plan_piece *piece;
} bb_plan_operand;

typedef struct bb_plan_step {
  const char *name;  /* "k0", or of a misc node the model's */
  bool once;         /* depends on constants only: runs when the model is loaded */
  uint32_t variants; /* bit v: part of variant v.  Of a step that runs at load: all */
  uint32_t nodes;    /* operators that it stands for */
  /* A kernel: */
  uint32_t kernel;     /* its number in the module; BB_NONE: a reference kernel */
  const char *listing; /* what it computes, in the paper's notation */
  uint32_t extents;
  const bb_extent *const *extent;
  uint32_t arguments;
  const bb_plan_argument *argument;
  bb_formula operations; /* of its extents: what a run of it counts */
  /* A reference kernel: */
  const bb_misc *misc; /* without ports */
  uint32_t tells; /* the extent that its results turn out to have; BB_NONE: all are known before */
  /* A candidate without a kernel: a block program as text, its inputs the operands below in order, its
   * outputs the results, its symbols the first of the plan's.  Only plans that stay in memory have such steps. */
  const char *program;
  uint32_t nin, nout;              /* of both */
  const bb_plan_operand *in, *out; /* results: whole tensors */
  bb_plan_symbols follows;         /* what a launch of it follows from, beside where arrays lie */
  uint32_t
      joins; /* the cache that it brings together, the input and what is fresh; BB_NONE: of none */
} bb_plan_step;

/* An extent that the choice of a variant depends on: it is in stretch i if it is at most limit[i], and no less; beyond the
 * last limit in the last. */
typedef struct bb_plan_axis {
  uint32_t symbol, stretches;
  const int64_t *limit; /* stretches - 1, ascending */
} bb_plan_axis;

/* Which variant runs: one for each combination of stretches, the last axis moving fastest. */
typedef struct bb_plan_table {
  uint32_t axes, cells;
  const bb_plan_axis *axis;
  const uint32_t *cell;
} bb_plan_table;

typedef struct bb_plan {
  bb_arena *arena;
  const char *name, *device, *features; /* features: what the machine must have */
  const char *code;    /* the hash of the file with the kernels; "": there is none */
  const char *sum;     /* of the file with the constants, likewise */
  uint64_t data_bytes; /* of all constants */
  uint32_t extents;    /* symbols that are run-time extents; then come rooms, two for each cache */
  uint32_t symbols;
  const char **symbol;
  const bb_formula
      *derived; /* by symbol, of the others; without terms: an input, the caller or a step tells */
  /* By symbol: the most that one is that a step tells, or that follows from such, which it counts as until then; without terms:
   * it follows, and its own formula says. */
  const bb_formula *most;
  bool *told; /* by symbol: a step tells it; NULL: in the making, as the next */
  bool *late; /* by symbol: a step tells it, or one that it follows from */
  uint32_t tensors;
  bb_plan_tensor *tensor;
  uint32_t caches;
  const bb_plan_cache *cache;
  uint32_t steps;
  bb_plan_step *step;
  uint32_t kernels;                /* different ones */
  uint32_t variants;               /* 1 to BB_PLAN_VARIANTS */
  const int64_t *const *chosen_at; /* by variant: the value of each extent that it was chosen for */
  bb_plan_table table;
} bb_plan;

/* Every variant. */
static inline uint32_t bb_plan_all(const bb_plan *plan) {
  return (1u << plan->variants) - 1;
}
/* The variant that runs where extents have these values. */
uint32_t bb_plan_variant_at(const bb_plan *plan, const int64_t *symbol);

/* A product of extents; false: not known, or too large. */
bool bb_plan_extent(const bb_extent *extent, const int64_t *symbol, int64_t *value);
/* The elements of a shape; false likewise. */
bool bb_plan_count(uint32_t rank, const bb_extent *const *shape, const int64_t *symbol,
                   size_t *count);
/* The ends of caches and what they grow by know their rooms, all other tensors that they have none. */
void bb_plan_give_rooms(bb_plan *plan);
/* Tensors and steps know which symbols they follow from, and steps which cache they bring together. */
void bb_plan_find_symbols(bb_plan *plan);
void bb_plan_find_joins(bb_plan *plan);
/* Fills in, again and again, extents (-1: not known) that follow from others.  True: one was found;
 * fails with BB_ERROR_INPUT where one is no size, or is known as something else. */
bool bb_plan_derive(bb_context *ctx, const bb_plan *plan, int64_t *symbol);
/* Which of its run-time extents has this name; fails with BB_ERROR_ARGUMENT where none has, or the value is no size. */
uint32_t bb_plan_find_extent(bb_context *ctx, const bb_plan *plan, const char *name, int64_t value);
/* Fails with BB_ERROR_ARGUMENT where a run tells the extent, or what it follows from. */
void bb_plan_refuse_told(bb_context *ctx, const bb_plan *plan, uint32_t symbol);
/* Whether every number, index and formula is within its bounds: NULL, or what is wrong. */
const char *bb_plan_verify(const bb_plan *plan);

#endif
