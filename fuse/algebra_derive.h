/* algebra_derive.h - what the files of the derivation share. */
#ifndef BB_FUSE_ALGEBRA_DERIVE_H
#define BB_FUSE_ALGEBRA_DERIVE_H

#include "algebra.h"
#include "algebra_normal.h"

/* Most arguments a chain may have; elements renamed on the way stand above. */
enum { BB_CHAIN_ARGS = 100, BB_CHAIN_RENAMED = 200 };

/* A value and how it comes from the components: value = sum of row[k] * K_k.  NULL is zero. */
typedef struct bb_linear {
  const bb_expr *value;
  const bb_expr *row[BB_PRODUCT_COMPONENTS];
} bb_linear;

/* A term's part of the normal form of g: coef(r) * sig(c) * psi(c), psi whole powers of atoms. */
typedef struct bb_term_piece {
  const bb_normal *sig, *psi, *coef;
} bb_term_piece;

typedef struct bb_derivation {
  bb_program *program;
  bb_algebra *al;
  const bb_chain *chain;
  bb_product *product;
  uint32_t fold;                           /* at work */
  uint32_t results;                        /* ARGs of results so far */
  const bb_expr *value[2 * BB_CHAIN_ARGS]; /* replaces ARG i: renamed elements, results */
  const char *label;                       /* of helping components: s_0, s_1; or NULL */
  const bb_expr *bare; /* the term of the component about to be made, without pivots; or NULL */
  bool apart;          /* an equal component is made once more: the repair of one reads the other */
  uint32_t renamed;
  const bb_expr *rename[BB_CHAIN_ARGS];           /* what ARG BB_CHAIN_RENAMED + i stands for */
  const bb_normal *normal[BB_PRODUCT_COMPONENTS]; /* of the components' terms */
  const bb_expr *without_pivots[BB_PRODUCT_COMPONENTS];
} bb_derivation;

/* Small makers; all but the first know zero (NULL). */
const bb_expr *bb_dx_make(bb_derivation *d, bb_expr_op op, const bb_expr *a, const bb_expr *b);
const bb_expr *bb_dx_number(bb_derivation *d, double value);
const bb_expr *bb_dx_add(bb_derivation *d, const bb_expr *a, const bb_expr *b);
const bb_expr *bb_dx_mul(bb_derivation *d, const bb_expr *a, const bb_expr *b);
const bb_expr *bb_dx_sub(bb_derivation *d, const bb_expr *a, const bb_expr *b);
const bb_expr *bb_dx_div(bb_derivation *d, const bb_expr *a, const bb_expr *b);
const bb_expr *bb_dx_power(bb_derivation *d, const bb_expr *a, uint32_t n);
const bb_expr *bb_dx_normal(bb_derivation *d, const bb_normal *a);
const bb_expr *bb_dx_own(bb_derivation *d, uint32_t component);

/* The expression with own components renewed: r becomes r'. */
const bb_expr *bb_dx_renewed(bb_derivation *d, const bb_expr *a);

bool bb_derive_refuse(bb_derivation *d, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Refuses for an atom that depends on elements and folds at once, in words. */
bool bb_derive_refuse_mixed(bb_derivation *d, const bb_atom *atom);
/* With elements put back for the names that stand for them. */
const bb_expr *bb_derive_unrenamed(bb_derivation *d, const bb_expr *expr);
bb_range bb_derive_range(bb_derivation *d, const bb_expr *expr); /* over the reals */
const char *bb_derive_print(bb_derivation *d, const bb_expr *expr);

/* Adds a component, or finds one with the same fold and term.  repair NULL: itself. */
bool bb_derive_component(bb_derivation *d, bb_monoid_id fold, const bb_expr *term,
                         const bb_expr *repair, const bb_expr *const *row, uint32_t *component);
/* The component that counts elements. */
bool bb_derive_count(bb_derivation *d, uint32_t *component);

bb_monoid_id bb_derive_dual(bb_monoid_id fold); /* of an extremum: max for min ... */
/* Adds the fold at work; false: refused. */
bool bb_derive_fold(bb_derivation *d);

/* A group of pieces with one sig: sum of coef_i(r) * weight(r, c) * psi_i(c). */
typedef struct bb_group {
  uint32_t count;
  bb_term_piece *piece;    /* coefficients without the weight's exp */
  const bb_normal *weight; /* sig * common part of psi * exp of folds */
  const bb_normal *exps;   /* the exp of folds in it, 1 if none */
  const bb_normal *scale;  /* exps(r') / exps(r) */
} bb_group;

/* Adds components for the moments of a group and gives its fold as a linear form. */
bool bb_derive_moments(bb_derivation *d, const bb_group *group, bb_linear *fold);

/* --- algebra_order.c --- */

/* The same value, extrema subtracted before anything else is added.  `renewed`: the first ARG of
 * renewed components in it. */
const bb_expr *bb_derive_ordered(bb_derivation *d, const bb_expr *expr, uint32_t renewed);

/* --- algebra_guard.c --- */

/* Makes `start`, `update` and `limits` of a component from its term and repair. */
void bb_derive_guards(bb_derivation *d, uint32_t component);

/* --- algebra_invert.c --- */

/* c from t = g(r, c), c the only sub-expression of elements in g; NULL if there is none. */
const bb_expr *bb_invert(bb_derivation *d, const bb_expr *g, const bb_expr *t,
                         const bb_expr **element);
/* g with its sub-expression `element` replaced, own components renewed elsewhere. */
const bb_expr *bb_invert_apply(bb_derivation *d, const bb_expr *g, const bb_expr *element,
                               const bb_expr *with);

#endif
