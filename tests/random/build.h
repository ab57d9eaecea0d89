/* build.h - what the generator of random block programs is made of: its pool of values, and nests
 * of maps around an operation.
 */
#ifndef BB_TESTS_BUILD_H
#define BB_TESTS_BUILD_H

#include "expr.h"

enum {
  POOL_MAX = 128,
  DEPTH_MAX = 8,
  OUTER_MAX = 2,
  DIM_MAX = 4,
  SYMBOL_MAX = 8,
  EXTENT_MAX = 1024,
  BLOCKS_MAX = 3
};

/* A value at the root, and what the generator knows of it.  Its lists are its levels in any order:
 * one for every outer dim, one for its row axis, one for its col axis. */
typedef struct pooled {
  bb_value at;
  double bound; /* of its magnitude */
  bool exact;   /* made without sums: equal in every order of evaluation */
  bool taken;   /* has all the uses that it is to have */
  bool unread;  /* is no output though nothing uses it */
  bool inner;   /* part of a chain that alone has the bound that is said */
} pooled;

typedef struct generator {
  bb_program *program;
  bb_graph *root;
  random_state random;
  uint32_t blocked, enumerated;
  bool products;   /* this program is mostly products, and odd ones among them */
  bool rows_first; /* loops over rows stand around those over outer dims */
  bool peeled;     /* some of its loops are in two parts */
  bool lifts;      /* weights have `lift` in their exponents, and are used once normalised only */
  double lift;
  enum {
    PERHAPS,
    ALWAYS,
    NEVER
  } constants; /* are new inputs constants, where their extents are known? */
  bb_dim blocked_dim[DIM_MAX], enumerated_dim[OUTER_MAX];
  int64_t extent[EXTENT_MAX]; /* by dim */
  int64_t symbol[SYMBOL_MAX];
  uint32_t count;
  pooled pool[POOL_MAX];
} generator;

const bb_type *pooled_type(const generator *g, uint32_t value);
uint32_t pool_add(generator *g, bb_value at, double bound, bool exact);

/* A new program input or constant of this shape.  BB_NO_DIM: the axis is missing. */
uint32_t input_new(generator *g, bb_dtype dtype, uint32_t outer, const bb_dim *outer_dim,
                   bb_dim row, bb_dim col);

/* The same with lists in the order of these levels. */
uint32_t input_of(generator *g, bb_item item, uint32_t rank, const bb_level *level);

/* Maps in one another.  loop[d] is the level that the d-th map collects. */
typedef struct nest {
  uint32_t depth;
  bool apart; /* every value that is brought gets in-ports of its own, equal ones or not */
  bb_level loop[DEPTH_MAX];
  bb_graph *graph[DEPTH_MAX + 1]; /* graph[0] is the level around the nest */
  uint32_t map[DEPTH_MAX];
} nest;

void nest_open(nest *n, bb_graph *around, uint32_t depth, const bb_level *loop);
/* The innermost level's view of `value`: map d iterates level strip[d] of it, or takes it whole
 * when it has no such level (strip NULL: the loops' own levels). */
bb_value nest_bring(nest *n, bb_value value, const bb_level *strip);
bb_value nest_collect(nest *n, bb_value inner);
static inline bb_graph *nest_body(const nest *n) {
  return n->graph[n->depth];
}

/* --- choosing operands (choose.c) --- */

typedef struct shape {
  uint32_t outer;
  bb_dim outer_dim[DEPTH_MAX];
  bb_dim row, col;
} shape;

shape shape_of(const generator *g, uint32_t value);
bool shape_has_outer(const shape *s, bb_dim dim);
bool outer_within(const shape *a, const shape *b); /* are a's outer dims all b's? */
bb_dim any_blocked(generator *g);
uint32_t block_new(generator *g);
/* A new input of the shape, perhaps without some of its outer dims. */
uint32_t input_like(generator *g, shape s, bb_dtype dtype);
/* A value with these axes and outer dims among those of s: a late one, or a new input. */
uint32_t value_like(generator *g, const shape *s);
/* A float value with a col axis (and, a block, a row axis), mostly a late one. */
uint32_t value_any(generator *g, bool block);
/* A value of any axes, or none, mostly a late one: float, or not. */
uint32_t value_item(generator *g, bool is_float);
static inline const bb_expr *argument(generator *g, uint32_t operand, bb_dtype dtype) {
  return bb_expr_arg(g->program, dtype, operand);
}

/* --- operations: each adds values to the pool and gives one of them --- */

enum fold { SUM, MAX, MIN, PROD, ARGMAX, ARGMIN };

nest nest_over(generator *g, uint32_t value);
uint32_t map_one(generator *g, uint32_t value, const bb_expr *expr, double bound);
uint32_t as_dtype(generator *g, uint32_t value, bb_dtype dtype);
/* The expression of an op in the body of a nest, now and then with a coordinate added. */
const bb_expr *placed(generator *g, const nest *n, bb_item item, const bb_expr *expr,
                      double *bound);
uint32_t unary(generator *g, uint32_t value);
uint32_t masked(generator *g, uint32_t value);
uint32_t selected(generator *g, uint32_t value);
uint32_t combine(generator *g, uint32_t a, uint32_t b, bool scale, bool named);
uint32_t binary(generator *g, uint32_t a);
uint32_t pair(generator *g, uint32_t value);
uint32_t transposed(generator *g, uint32_t value);

uint32_t loops_around_columns(const generator *g, uint32_t value, bb_level *loop);
uint32_t fold_partials(generator *g, uint32_t value, enum fold fold, const bb_expr *expr,
                       uint32_t other, double bound);
uint32_t reduce_columns(generator *g, uint32_t value);
uint32_t arg_reduce(generator *g, uint32_t value);
uint32_t reduce_outer(generator *g, uint32_t value);
uint32_t scan(generator *g, uint32_t value);

uint32_t right_operand(generator *g, uint32_t a);
uint32_t contract(generator *g, uint32_t a, uint32_t b);
/* What becomes of the terms of the outermost dim that is contracted; begun: only the first is made. */
enum terms { SUMMED, GREATEST, RUNNING, BEGUN };
uint32_t contract_all(generator *g, uint32_t a, uint32_t b, enum terms how);
uint32_t product(generator *g, uint32_t a);
uint32_t outer_product(generator *g, uint32_t value);

/* The value in f32 and bounded, as chains want it (chain.c). */
uint32_t prepared(generator *g, uint32_t value, double limit);

uint32_t recur(generator *g, uint32_t value);
uint32_t running_maximum(generator *g, uint32_t value);
uint32_t stable_weights(generator *g, uint32_t value);
uint32_t central_moment(generator *g, uint32_t value);

/* Takes the first iteration of one of the loops apart (peel.c). */
void peel_a_map(generator *g);

/* A product of blocks with all outer dims, one operand of which is scaled or shifted (chain.c). */
uint32_t scaled_per_head(generator *g, enum terms how);

/* The next operation of a program, or a chain of them. */
void generate_operation(generator *g);
/* Now and then what is odd behind all of them (odd.c). */
void generate_odd(generator *g);

#endif
