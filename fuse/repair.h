/* repair.h - what the files of the repair rule share: a pair of maps, and the chain of dependent
 * folds that is read from their bodies.
 *
 * U folds r; V, over the same dim, takes r (or elementwise functions of r computed between the two)
 * whole and folds terms of it.  The terms are traced back through elementwise ops to scalar
 * expressions of elements (values of the bodies that do not depend on r), fixed values and results
 * of earlier folds: a bb_chain (algebra.h).  What the algebra derives is lowered again to ops on
 * items.
 */
#ifndef BB_FUSE_REPAIR_H
#define BB_FUSE_REPAIR_H

#include "../rules/rule.h"
#include "algebra.h"

enum {
  BB_REPAIR_FOLDS = 12,
  BB_REPAIR_RESULTS = 20,
  BB_REPAIR_LEAVES = 40,
  BB_REPAIR_CONSTANTS = 8,
  BB_REPAIR_READS = 16, /* by one operator of a kernel, at most: lower/tile.h */
  BB_REPAIR_PIVOTS = 4
};

/* How the elements of one block come together in a term. */
typedef enum bb_term_kind {
  BB_TERM_ROWS, /* along the columns of an item: row_sum, row_max ... */
  BB_TERM_DOT,  /* sum of products along the columns of two */
  BB_TERM_POINT /* not at all: every element of the item is folded by itself */
} bb_term_kind;

/* What a term reads that is no result of a fold. */
typedef struct bb_repair_leaf {
  uint32_t map; /* U or V: a value of its body; BB_NONE: a value of the level, taken whole */
  bb_value value;
  bb_value inside; /* the same in the body of both maps */
  uint32_t coord;  /* a coordinate instead; else BB_NONE */
  bool other;      /* its rows are those of a product's other operand */
  bool fixed;      /* the same in every iteration */
  bb_item item;
  const bb_expr *expr; /* the value as an expression of leaves that are no ops; NULL: is one */
  uint32_t arg;        /* in the chain; BB_NONE: not used */
} bb_repair_leaf;

typedef struct bb_repair_fold {
  bool second; /* of V, else of U */
  /* Of its value; an index follows at the next one; BB_NONE: a fold of the chain alone, a pivot's maximum or a count. */
  uint32_t port;
  bb_monoid_id fold;
  bb_term_kind kind;
  bool swapped;           /* DOT: the second operand is the one whose rows the earlier folds have */
  uint32_t result;        /* ARG while tracing */
  bb_dtype dtype, factor; /* factor: DOT: of its operands */
  bb_dim along;           /* the axis that comes together inside a block; BB_NO_DIM: none */
  bb_value operand[2];    /* of the body: what comes together */
  const bb_expr *term, *payload;
  /* Results at whose infinities the program says what a term is, or the fold's readers see to it; those at which all terms
   * are 0; and counts at whose 0 the program says so of a value that is less than a term. */
  uint32_t guards, zeros, kept;
  uint32_t counted;    /* the result that counts terms that are not masked; BB_NONE: none does */
  const bb_expr *rest; /* what the masked ones are, of results */
  int degree[BB_REPAIR_PIVOTS]; /* the program's fold is this one times exp(pivot)**degree */
} bb_repair_fold;

typedef struct bb_repair bb_repair;
struct bb_repair {
  bb_program *program;
  bb_scope *scope;
  bb_graph *graph;
  bb_arena *arena;
  uint32_t u, v;
  const char *why;   /* no repair: the reason */
  uint32_t refused;  /* with it: the fold that it is about; BB_NONE: the pair */
  uint64_t left_out; /* V's out-ports whose folds are passed over, to ask what else is refused */
  uint32_t walked;
  bool splits;       /* V collects values that depend on the folds: they get a map of their own */
  uint64_t *mark[2]; /* of U's, V's nodes: out-ports that depend on folds of the chain */
  uint32_t folds, results;
  uint32_t elements, fixed; /* of the chain */
  bb_repair_fold fold[BB_REPAIR_FOLDS];
  uint32_t leaves;
  bb_repair_leaf leaf[BB_REPAIR_LEAVES];
  struct bb_trace *trace; /* values traced so far */
  bool deep;              /* leaves are no ops; else as large as they can be */
  /* How many elements the whole has, a product of extents; NULL: one at least. */
  const bb_expr *terms;
  const bb_product *product;
  uint32_t pivots, pivot[BB_REPAIR_PIVOTS]; /* results: the largest exponents */
  /* What combine reads beside the product's components: further components of the monoid. */
  uint32_t constants;
  const bb_expr *constant[BB_REPAIR_CONSTANTS];
  const bb_monoid *monoid;
  /* Of loops inside loops (repair_nest.c). */
  bool owned;                      /* the level may be edited while it is read */
  const bb_expr *around;           /* iterations of the loops around, all together; NULL: one */
  struct bb_repair *inner;         /* the pair inside; NULL: none */
  struct bb_repair *outer;         /* the pair around */
  uint32_t place[BB_REPAIR_FOLDS]; /* of each fold in the innermost chain */
};

/* `return bb_repair_refuse(r, "...")` */
static inline bool bb_repair_refuse(bb_repair *r, const char *why) {
  if (!r->why) r->why = why;
  return false;
}

static inline uint32_t bb_repair_map(const bb_repair *r, bool second) {
  return second ? r->v : r->u;
}
static inline bb_graph *bb_repair_body(const bb_repair *r, bool second) {
  return bb_node_get(r->graph, bb_repair_map(r, second))->inner;
}
/* The value of a body that an out-port folds. */
static inline bb_value bb_repair_folded(const bb_repair *r, bool second, uint32_t port) {
  const bb_graph *body = bb_repair_body(r, second);
  return bb_src(body, body->output[port], 0);
}
static inline bool bb_repair_marked(const bb_repair *r, bool second, bb_value value) {
  return r->mark[second] && r->mark[second][value.node] >> (value.port < 63 ? value.port : 63) & 1;
}

static inline uint32_t bb_repair_fold_of_result(const bb_repair *r, uint32_t result) {
  uint32_t i = 0;
  while (r->fold[i].result != result) i++;
  return i;
}

/* Behind its casts. */
static inline const bb_expr *bb_repair_bare(const bb_expr *expr) {
  while (expr->op == BB_X_CAST) expr = expr->a[0];
  return expr;
}

/* A number of elements, times those of the maps around. */
static inline const bb_expr *bb_repair_around(const bb_repair *r, const bb_expr *here) {
  return r->around ? bb_expr_make(r->program, BB_X_MUL, r->around, here, NULL) : here;
}

/* Does an expression of a chain read a fold's result? */
static inline bool bb_repair_reads_results(const bb_expr *expr) {
  for (uint32_t i = 0; i < BB_REPAIR_RESULTS; i++)
    if (bb_expr_uses_arg(expr, i)) return true;
  return false;
}

/* Does an expression read an element, and not only folds' results? */
static inline bool bb_repair_reads_leaves(const bb_repair *r, const bb_expr *expr) {
  for (uint32_t i = 0; i < r->leaves; i++)
    if (bb_expr_uses_arg(expr, BB_REPAIR_RESULTS + i)) return true;
  return false;
}

static inline bool bb_repair_elementwise(const bb_node *node) {
  if (node->kind != BB_NODE_FUNC) return false;
  return node->op == BB_OP_ELEMENTWISE || node->op == BB_OP_ADD || node->op == BB_OP_MUL ||
         (node->op >= BB_OP_ROW_SHIFT && node->op <= BB_OP_COL_SCALE);
}

/* --- repair.c --- */

/* Finds the pair, reads its chain and derives its monoid. */
bool bb_repair_read(bb_repair *r, bb_match *match);
/* Is a fold of the program read by another node than V? */
bool bb_repair_is_read(const bb_repair *r, const bb_repair_fold *fold);
/* V reads folds of U only, no functions of them. */
void bb_repair_copy_functions(bb_repair *r);

/* --- repair_nest.c --- */

/* Are the folds of the chain those of a map inside U and of one inside V, over the same dim? */
bool bb_repair_is_nest(const bb_repair *r);
/* Can the maps inside be repaired?  Edits nothing that stays. */
bool bb_repair_try_nest(bb_repair *r);
/* Makes one map of U and V, of the maps inside them, and so on down; reads the innermost chain. */
bool bb_repair_enter(bb_repair *r);
bb_repair *bb_repair_innermost(bb_repair *r);
/* The same as bb_repair_waits() for what the body takes from the level around it. */
bool bb_repair_waits_outside(const bb_repair *r, bb_value value);
/* Is a value of the level the same in all iterations of the loops around, too? */
bool bb_repair_is_fixed(const bb_repair *r, bb_value value);
/* The fixed values that finish the innermost chain, as values of this level. */
bool bb_repair_lift(bb_repair *r);

/* --- repair_match.c --- */

/* Why a map that waits for no fold, or folds nothing that waits, is no match. */
extern const char bb_repair_no_pair[], bb_repair_no_fold[];
extern const bb_rule bb_rule_repair_reduction;

/* Is there a pair for V; which folds make the chain?  Fills all but terms. */
bool bb_repair_find(bb_repair *r, bb_match *match);
/* Is a value of the level a function of a fold over the same dim, which may join the chain another
 * time? */
bool bb_repair_waits(bb_repair *r, bb_value value);
/* The fold of U's or V's out-port in the chain, or NULL. */
const bb_repair_fold *bb_repair_fold_of(const bb_repair *r, bool second, uint32_t port);

/* --- repair_split.c --- */

/* Can the values that V collects and that depend on the folds be computed once more, where they are
 * used?  Refuses or sets `splits`. */
bool bb_repair_splits(bb_repair *r);
/* Gives them a map of their own behind V. */
void bb_repair_split(bb_repair *r);

/* --- repair_term.c --- */

/* Reads the terms and derives the product; false: refused. */
bool bb_repair_derive(bb_repair *r);

/* --- repair_guard.c --- */

/* A value without what the program says of infinite extrema; adds the results of those to
 * `guards`. */
const bb_expr *bb_repair_unguarded(const bb_repair *r, const bb_expr *expr, uint32_t *guards);
/* Notes what the program says of a fold's term, which is `guarded` there. */
void bb_repair_note_guards(const bb_repair *r, bb_repair_fold *fold, const bb_expr *guarded,
                           uint32_t guards);
/* What a fold is from the components of the whole, infinite extrema and empty sums included. */
const bb_expr *bb_repair_limited(const bb_repair *r, uint32_t fold, const bb_expr *finish);

/* --- repair_count.c --- */

/* Finds how many elements the whole has, and adds a count of those that masks let through to the
 * chain, where sums depend on it; false: refused. */
bool bb_repair_count(bb_repair *r);
/* Is a fold such a count? */
bool bb_repair_is_count(const bb_repair_fold *fold);

/* --- repair_pivot.c --- */

/* Takes exps that could overflow relative to their largest exponents; false: refused. */
bool bb_repair_pivot(bb_repair *r);
/* Is the fold a maximum that the terms were taken relative to by bb_repair_pivot()? */
bool bb_repair_is_pivot(const bb_repair *r, uint32_t fold);
/* What a fold of the program is, from the finish of the chain's fold. */
const bb_expr *bb_repair_scaled(const bb_repair *r, uint32_t fold, const bb_expr *finish);

/* --- repair_monoid.c --- */

/* Makes the monoid of the product; false: refused. */
bool bb_repair_monoid(bb_repair *r);

/* --- repair_explain.c --- */

/* Writes the derivation and its proofs down, with the monoid; after the maps have become one. */
void bb_repair_keep_proof(bb_repair *r);

/* --- repair_lower.c --- */

/* Adds to the body (U's, V's moved into it) what computes the components of a block, in order. */
bool bb_repair_lowers(bb_repair *r); /* can they be said with ops on items? */
void bb_repair_lower(bb_repair *r, bb_graph *body, bb_value *component);
/* What the algebra gives as it stands in a program: extents that are numbers as numbers, and those
 * as wide as the widest fold. */
const bb_expr *bb_repair_numbers(const bb_repair *r, const bb_expr *expr);
/* The element type that a component gets. */
bb_dtype bb_repair_dtype(const bb_repair *r, uint32_t component);
/* A result of the chain from the components of the whole, in the level around. */
bb_value bb_repair_finish(bb_repair *r, uint32_t fold, const bb_value *component);
/* The index that was carried along with it. */
bb_value bb_repair_finish_index(bb_repair *r, uint32_t fold, const bb_value *component);

#endif
