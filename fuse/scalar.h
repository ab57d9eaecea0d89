/* scalar.h - what the values of a block program are, element by element.
 *
 * Every value of a level is described by a term: a scalar function of index variables, one for each
 * loop around it or list that it still is.  Blocks, broadcasts, transposes and the order of loops
 * leave no trace in a term, and terms are interned: two elements that are equal by the same
 * arithmetic are one pointer, wherever the rewrites moved them.  So a fact that relates values (an
 * element is at most the maximum over its row; a product of two vectors is at most that of their
 * norms) is found by comparing pointers.
 *
 * A term knows its range over the real numbers, and its faults: how far its value in floating
 * point, where an exp on the way overflowed or underflowed, can be from the real one.  Where a
 * fault could become a wrong result, the exps it came from are marked unsafe, with the reason.
 */
#ifndef BB_FUSE_SCALAR_H
#define BB_FUSE_SCALAR_H

#include "interval.h"

#include "../graph/intern.h"

/* HIGH, LOW, ZERO: an infinity (a zero) in the place of a real number beyond (below) what the type
 * holds.  It is no harm by itself: the limit is right.  SMALL: a zero in the place of what is below
 * the type's numbers, beside others of the same row that are not; harm only where it meets a number
 * that may be huge.  PAIR: right, being made of pairs, and of any size: whatever has another fault and
 * meets it has to be a pair as well. */
enum {
  BB_FAULT_HIGH = 1,
  BB_FAULT_LOW = 2,
  BB_FAULT_ZERO = 4,
  BB_FAULT_SMALL = 8,
  BB_FAULT_PAIR = 16
};

typedef enum bb_scalar_kind {
  BB_SCALAR_LEAF, /* an element of a source: of a tensor, or of a value about which nothing is known */
  BB_SCALAR_NUMBER, /* a constant */
  BB_SCALAR_INDEX,  /* an index variable as a number */
  BB_SCALAR_APPLY,  /* an operator of expr.def */
  BB_SCALAR_FOLD,   /* a fold over all values of an index variable */
  BB_SCALAR_PART,   /* the same over those in one block */
  BB_SCALAR_SCAN,   /* a fold of those up to the index */
  BB_SCALAR_BEFORE  /* of those before it: of none at the first */
} bb_scalar_kind;

/* Index variables: of the loop at depth d, d; of a list that no loop iterates yet, from
 * BB_VAR_LIST; bound by a fold, from BB_VAR_BOUND. */
enum { BB_VAR_LIST = 24, BB_VAR_BOUND = 44, BB_VARS = 63 };
/* The bit of none of them. */
#define BB_VAR_NEVER (UINT64_C(1) << BB_VARS)

typedef struct bb_scalar bb_scalar;
struct bb_scalar {
  bb_scalar_kind kind;
  bb_expr_op op;
  bb_dtype dtype;
  bb_monoid_id fold;
  double number;
  const void *source; /* LEAF */
  uint32_t serial;    /* LEAF: tells values of one source apart */
  uint32_t var;   /* INDEX; FOLD, PART: the variable bound; SCAN, BEFORE: the one it runs along */
  uint32_t block; /* PART: the variable whose block is folded */
  uint32_t count; /* LEAF: index variables */
  const uint8_t *index;
  const bb_scalar *a[3];
  /* What follows from the above. */
  uint32_t id, bound; /* bound: how deep folds nest in it */
  uint64_t free;      /* index variables, a bit each */
  bb_range range;     /* over the reals */
  uint32_t fault;
  /* SMALL: the variables over all of which it has to be summed not to be, a bit each. */
  uint64_t small;
  uint32_t risks; /* the exps that a fault may come from */
  const uint32_t *risk;
  uint32_t exp; /* of an exp, and of a value mended: 1 + the number of its record */
};

/* An exp of the program: all its occurrences, in whatever loop.  Or a value that unsafe exps would
 * spoil, but whose true size is moderate (a share of a sum): made of pairs, it can be multiplied
 * back on the spot, unless its underflow does harm further on. */
typedef struct bb_exp {
  uint32_t same;      /* the exp that it turned out to be; else its own number */
  uint32_t tied;      /* towards one that stands for all whose values meet: unsafe together */
  bool condemned;     /* of the latter: one of them is unsafe */
  bool mended;        /* it is such a value */
  const char *bound;  /* why it needs no guard by itself; or NULL */
  const char *unsafe; /* or NULL: what would go wrong */
} bb_exp;

typedef struct bb_scalars {
  bb_program *program;
  bb_arena *arena;
  bb_intern *set;
  uint32_t count;
  uint32_t exps, exp_capacity;
  bb_exp *exp;
  bool halves;    /* tensors of f16: exps become such for a product, before they are scaled */
  bool blamed;    /* exps, since this was last cleared */
  uint64_t small; /* of the exp that was looked at last */
  uint32_t walks, memo_capacity;
  struct bb_scalar_memo *memo;
} bb_scalars;

bb_scalars *bb_scalars_create(bb_program *program, bb_arena *arena);

const bb_scalar *bb_scalar_number(bb_scalars *t, bb_dtype dtype, double number);
const bb_scalar *bb_scalar_index(bb_scalars *t, uint32_t var, double last);
/* An element of `source` at index variables; `range` and faults as known. */
const bb_scalar *bb_scalar_leaf(bb_scalars *t, const bb_scalar *leaf);
const bb_scalar *bb_scalar_apply(bb_scalars *t, bb_expr_op op, bb_dtype dtype, const bb_scalar *a,
                                 const bb_scalar *b, const bb_scalar *c);
/* The fold of `body` over `var`: of a block (PART), or of everything (FOLD; what was folded block
 * by block in the loop of that variable is then folded over all elements). */
const bb_scalar *bb_scalar_fold(bb_scalars *t, bb_scalar_kind kind, bb_monoid_id fold, uint32_t var,
                                const bb_scalar *body);
/* The term with one index variable in the place of another. */
const bb_scalar *bb_scalar_substitute(bb_scalars *t, const bb_scalar *term, uint32_t from,
                                      uint32_t to);

/* A walk over a term and what it is made of that remembers what it found of each: a number of its own,
 * since others begin and end in the middle of it, of which it may forget some.  NULL: not known. */
uint32_t bb_scalar_walk_begin(bb_scalars *t, const bb_scalar *top);
void bb_scalar_remember(bb_scalars *t, uint32_t walk, const bb_scalar *term,
                        const bb_scalar *result);
const bb_scalar *bb_scalar_recall(const bb_scalars *t, uint32_t walk, const bb_scalar *term);

/* exp, or a positive constant to a power, of floats: exp(factor * exponent). */
bool bb_is_exp(bb_expr_op op, bb_dtype dtype, bool base_is_constant, double base);
/* The exp's record, whatever else it has turned out to be the same as. */
bb_exp *bb_exp_of(bb_scalars *t, uint32_t exp);
/* The exp is unsafe, and with it all that are tied to it. */
void bb_exp_condemn(bb_scalars *t, bb_exp *exp, const char *reason);
/* Where one of the two becomes a pair, the other has to. */
void bb_exp_tie(bb_scalars *t, bb_exp *a, bb_exp *b);
/* Takes over what happened to those it is tied to. */
void bb_exp_settle(bb_scalars *t, bb_exp *exp);
/* A new record: 1 + its number. */
uint32_t bb_exp_add(bb_scalars *t);

/* --- scalar_match.c: elements of what folds go over --- */

/* Is `term`, at the variables that it has, an element of what the folds that were opened go over? */
typedef struct bb_scalar_match {
  const bb_scalar *term;
  uint64_t open;          /* the variables of those folds, a bit each */
  uint8_t block[BB_VARS]; /* of such: the variable whose block is folded; BB_VARS: everything is */
} bb_scalar_match;

void bb_scalar_match_begin(bb_scalar_match *m, const bb_scalar *term);
/* From here on a pattern may be what this fold (FOLD or PART) goes over.  false: no variable of the term can
 * be the fold's. */
bool bb_scalar_match_open(bb_scalar_match *m, const bb_scalar *fold);
/* Undoes the latest. */
void bb_scalar_match_close(bb_scalar_match *m, const bb_scalar *fold);
/* Is the pattern the term, with some variable of the term in the place of each open one? */
bool bb_scalar_match_is(bb_scalars *t, const bb_scalar_match *m, const bb_scalar *pattern);

/* --- scalar_bound.c: facts that relate terms --- */

/* Bounds of a term from its own form and from relations between its parts; within term->range. */
bb_range bb_scalar_bounds(bb_scalars *t, const bb_scalar *term);
/* An element minus the maximum of a row it is in: the exps of a row sum to 1 at least.  `along`
 * receives the variables of the row, a bit each, and BB_VAR_NEVER if the maximum is not one of the row
 * alone. */
bool bb_scalar_is_below_maximum(bb_scalars *t, const bb_scalar *term, uint64_t *along);
/* The largest size of a term, by shares and cosines in it too; infinite: not known. */
double bb_scalar_size(bb_scalars *t, const bb_scalar *term);
/* Is it no larger than `most`, or than an element of a tensor?  Those are held by their type, and
 * so is what they are averaged to. */
bool bb_scalar_is_moderate(bb_scalars *t, const bb_scalar *term, double most);

/* --- scalar_fault.c: what overflow and underflow of an exp do to the values behind it --- */

/* Sets the faults of a term from its operands', and marks exps whose fault would be a wrong
 * result. */
void bb_scalar_find_faults(bb_scalars *t, bb_scalar *term);
/* The exps behind a term's faults come to be those behind another's. */
void bb_scalar_inherit(bb_scalars *t, bb_scalar *term, const bb_scalar *from);
/* Marks the exps behind a term that has one of the faults. */
void bb_scalar_blame(bb_scalars *t, const bb_scalar *term, uint32_t faults, const char *reason);

#endif
