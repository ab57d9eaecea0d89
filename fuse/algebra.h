/* algebra.h - a chain of dependent reductions becomes one product monoid.
 *
 * A chain is a list of folds over one dim; the term of each may read the results of earlier ones.
 * bb_product_derive() finds components K with
 *   term    b_j(K, c): what an element c adds to component j, K the earlier components
 *   repair  h_j(K, K'): component j of a part, as if its earlier components had been K'
 *   finish  the chain's results from the components of the whole
 * such that (u parts * v parts)_j = h_j(Ku, K) f_j h_j(Kv, K), K the components of both: any
 * bracketing of the elements gives the same components.  How h is found: factors of the folds alone
 * leave the fold; what is left is inverted in c, or written in functions closed under a change of
 * the folds (an exp with its pivot, powers of c - pivot).  (Neptune, theorems 4.2 and 4.3, for one
 * component; the rest is linear algebra over functions of the folds.)
 *
 * Nothing derived is trusted: bb_product_prove() checks every component and result by normal forms
 * from the expressions alone.  What cannot be proved is refused, with the reason.
 */
#ifndef BB_FUSE_ALGEBRA_H
#define BB_FUSE_ALGEBRA_H

#include "interval.h"

struct bb_algebra; /* algebra_normal.h */

/* One reduction.  `term` reads ARGs: the chain's elements, then its fixed values, then the results
 * of earlier folds (an argmax or argmin has two: value, payload). */
typedef struct bb_chain_fold {
  const char *name;
  bb_monoid_id fold;
  const bb_expr *term;
  /* argmax, argmin: what is carried along, the element's index; else NULL */
  const bb_expr *payload;
} bb_chain_fold;

typedef struct bb_chain {
  uint32_t elements, fixed, folds;
  const char *const *name; /* of elements and fixed values; NULL: c0, c1, ..., k0, ... */
  const bb_range *range;   /* of the same, over the reals; NULL: any real number */
  const bb_chain_fold *fold;
  const bb_expr *length; /* how many elements the whole has, free of ARGs; NULL: not known */
  bool strict;           /* a narrowing float cast is a rounding */
} bb_chain;

enum { BB_PRODUCT_COMPONENTS = 24 };

typedef struct bb_component {
  const char *name;
  bb_monoid_id fold;
  bool payload;          /* carried along with the component before it */
  uint32_t of;           /* fold of the chain it was made for */
  double empty;          /* of a part without elements */
  const bb_expr *term;   /* b: elements, fixed, own components before this one */
  const bb_expr *repair; /* h: fixed, own components, renewed components before this one */
  /* The same for arithmetic with infinities (algebra_guard.c): `start` has a value where an element
   * of -inf meets a maximum of -inf, `update` where a part has nothing but such elements.
   * `limits`: the extrema for which `start` stands in for the term. */
  const bb_expr *start, *update;
  uint64_t limits;
  const bb_expr *inverse; /* c from a value t (ARG own + this) of the term, if it was inverted */
  uint64_t uses;          /* components whose change it follows */
  bb_range range;         /* over non-empty parts, in reals */
  /* SUM: the repair is the sum of row[k] times own component k; NULL entries are 0. */
  const bb_expr *const *row;
} bb_component;

typedef struct bb_result {   /* of one fold of the chain */
  const bb_expr *finish;     /* fixed, own components of the whole */
  const bb_expr *term;       /* the fold's term with earlier results finished: g(K, c) */
  uint32_t component;        /* other folds than SUM: the component it is finished from */
  const bb_expr *const *row; /* SUM: term = sum of row[k] * b_k, finish = sum of row[k] * K_k */
  const char *pivot;         /* how the moments were centred, for the explanation; or NULL */
} bb_result;

typedef enum bb_proof_kind {
  BB_PROOF_REPLACES,    /* h(b(r,c), r, r') = b(r',c): condition (i) */
  BB_PROOF_DISTRIBUTES, /* h over the fold: condition (ii) */
  BB_PROOF_LINEAR,      /* the repair is the linear form that (i) was shown for */
  BB_PROOF_FINISHES,    /* the result's term from the components' terms */
  BB_PROOF_GUARDED,     /* start and update are the term and the repair over the reals */
  BB_PROOF_DEFINED      /* a value at every reachable partial fold */
} bb_proof_kind;

typedef struct bb_proof_step {
  bb_proof_kind kind;
  bool result;                 /* of a result of the chain, else of a component */
  uint32_t index;              /* which */
  const bb_expr *left, *right; /* proved equal; DEFINED: left has a value */
  const char *by;              /* "normal form", "monotone", "linear", ... */
  bool holds;
} bb_proof_step;

typedef struct bb_product {
  const char *refused; /* NULL, or why there is no product; then only `refused_fold` counts */
  uint32_t refused_fold;
  bb_chain chain;        /* a copy */
  uint32_t own, renewed; /* the first ARG of own, of renewed components */
  uint32_t count;
  bb_component *component;
  bb_result *result; /* chain.folds of them */
  bool commutative;
  uint32_t steps;
  bb_proof_step *step;
} bb_product;

/* Derives, proves and remembers (by folds, terms and facts) in the program's arena. */
const bb_product *bb_product_derive(bb_program *program, const bb_chain *chain);
/* What has been derived for a program, in no order: at each of so many slots one, or NULL. */
uint32_t bb_product_slots(const bb_program *program);
const bb_product *bb_product_at(const bb_program *program, uint32_t slot);
/* The same without the memory. */
bb_product *bb_product_derive_anew(bb_program *program, const bb_chain *chain);

/* Proves all that the product claims from its expressions; sets steps.  Returns the first step that
 * fails, or NULL. */
const bb_proof_step *bb_product_prove(bb_program *program, bb_product *product);

/* Is an expression of own components 0 nowhere, or only where all terms of a fold of one sign are
 * 0? */
bool bb_product_fades(struct bb_algebra *al, const bb_product *product, const bb_expr *expr);

/* Expressions for evaluation, one for each component.
 * lift: of one element; ARGs as in the chain.
 * combine: of two parts, left at ARG own + j, right at ARG renewed + j; parts may be empty. */
const bb_expr **bb_product_lift(bb_program *program, const bb_product *product);
const bb_expr **bb_product_combine(bb_program *program, const bb_product *product);
/* True (a bool expression of ARG own + j) for the empty part. */
const bb_expr *bb_product_is_empty(bb_program *program, const bb_product *product);

/* For someone who knows the Neptune paper: g, h, both proofs, the recurrence, split-k. */
void bb_product_explain(bb_buffer *out, bb_program *program, const bb_product *product);
/* Why a product is refused one of whose steps fails. */
const char *bb_product_why_not(bb_program *program, const bb_product *product,
                               const bb_proof_step *step);

#endif
