/* algebra_normal.h - an exact normal form of expressions: sums of monomials over atoms.
 *
 * A normal form is a sum of terms k * a1**p1 * a2**p2 ... with rational k and p over atoms:
 *   LEAF  an argument, coordinate, extent, or what the algebra does not look into
 *   SUM   a sum of several terms as the base of a power that does not multiply out
 *   EXP   exp of one monomial with coefficient 1: exp(2*x-m) is EXP(x)**2 * EXP(m)**-1
 *   ABS   |s|; max(p,q) is (p+q+|p-q|)/2, min likewise: that gives their laws for nothing
 *   CALL  log, tanh, erf, a comparison ...: uninterpreted up to parity, sign and the laws of log
 * Every law used holds over the real numbers wherever both sides have a value, under the known
 * ranges of the arguments.  Equality is decided by a zero difference: "no" means "not proved".
 * Coefficients are 64-bit fractions; what overflows makes the algebra give up, never err.
 */
#ifndef BB_FUSE_ALGEBRA_NORMAL_H
#define BB_FUSE_ALGEBRA_NORMAL_H

#include "interval.h"

typedef struct bb_ratio {
  int64_t num, den; /* lowest terms, den > 0 */
} bb_ratio;

/* What an atom depends on, and what kind of variable an argument is. */
enum { BB_DEP_ELEMENT = 1, BB_DEP_FOLD = 2, BB_DEP_FIXED = 4 };

/* Signs that a value can have, as a set. */
enum { BB_SIGN_NEG = 1, BB_SIGN_ZERO = 2, BB_SIGN_POS = 4, BB_SIGN_ANY = 7 };

typedef enum bb_atom_kind {
  BB_ATOM_LEAF,
  BB_ATOM_SUM,
  BB_ATOM_EXP,
  BB_ATOM_ABS,
  BB_ATOM_CALL
} bb_atom_kind;

typedef struct bb_normal bb_normal;

typedef struct bb_atom {
  bb_atom_kind kind;
  uint32_t id; /* creation number: the order of factors */
  bb_expr_op op;
  bb_dtype dtype;        /* CALL of a cast */
  const bb_normal *a[3]; /* operands; SUM, EXP, ABS: a[0] */
  const bb_expr *expr;   /* LEAF: it; else an expression with this value, or NULL */
  uint32_t deps, sign;
  bool predicate; /* 0 or 1: all its powers are itself */
  /* ABS made from max(p, q) or min(p, q), for printing: p, q and +1 or -1. */
  const bb_normal *p, *q;
  int extremum;
} bb_atom;

typedef struct bb_factor {
  const bb_atom *atom;
  bb_ratio power; /* not 0 */
} bb_factor;

typedef struct bb_term {
  bb_ratio k; /* not 0 */
  uint32_t count;
  const bb_factor *factor; /* by atom id */
} bb_term;

/* Hash-consed: equal normal forms are one pointer. */
struct bb_normal {
  uint32_t id, count, deps;
  bool infinite;       /* an infinite or NaN constant stands among the terms */
  const bb_term *term; /* ordered */
};

typedef struct bb_algebra {
  bb_program *program;
  bb_arena *arena; /* everything below dies with it */
  bool strict;     /* narrowing float casts are roundings, not annotations */
  uint32_t args, arg_capacity;
  uint8_t *deps; /* by ARG: BB_DEP_...; beyond args: BB_DEP_FIXED */
  bb_range *range;
  struct bb_intern *normals, *atoms, *memo;
  const bb_normal *zero, *one;
  uint32_t work;       /* terms made so far */
  const char *gave_up; /* NULL, or why the arithmetic stopped: nothing after it counts */
} bb_algebra;

bb_algebra *bb_algebra_begin(bb_program *program, bb_arena *arena, bool strict);
/* Declares ARG `index`. */
void bb_algebra_arg(bb_algebra *al, uint32_t index, uint32_t deps, bb_range range);

/* --- fractions --- */
bb_ratio bb_ratio_make(bb_algebra *al, __int128 num, __int128 den);
bb_ratio bb_ratio_add(bb_algebra *al, bb_ratio a, bb_ratio b);
bb_ratio bb_ratio_multiply(bb_algebra *al, bb_ratio a, bb_ratio b);

/* --- sums and products (algebra_normal.c) --- */
const bb_normal *bb_normal_number(bb_algebra *al, bb_ratio k);
const bb_normal *bb_normal_integer(bb_algebra *al, int64_t k);
const bb_normal *bb_normal_atom(bb_algebra *al, const bb_atom *atom, bb_ratio power);
const bb_normal *bb_normal_add(bb_algebra *al, const bb_normal *a, const bb_normal *b);
const bb_normal *bb_normal_subtract(bb_algebra *al, const bb_normal *a, const bb_normal *b);
const bb_normal *bb_normal_multiply(bb_algebra *al, const bb_normal *a, const bb_normal *b);
/* a * atom**power, term by term. */
const bb_normal *bb_normal_multiply_power(bb_algebra *al, const bb_normal *a, const bb_atom *atom,
                                          bb_ratio power);
const bb_normal *bb_normal_scale(bb_algebra *al, const bb_normal *a, bb_ratio k);
/* One term as a normal form of its own. */
const bb_normal *bb_normal_of_term(bb_algebra *al, const bb_term *term);
/* A term without one of its factors. */
const bb_normal *bb_normal_without(bb_algebra *al, const bb_term *term, uint32_t factor);
/* The common monomial of all terms with a positive rational content: a = content * rest. */
const bb_normal *bb_normal_content(bb_algebra *al, const bb_normal *a);
const bb_atom *bb_normal_intern_atom(bb_algebra *al, bb_atom key);
void bb_normal_give_up(bb_algebra *al, const char *why);
bool bb_normal_is_number(const bb_normal *a, bb_ratio *k);

/* --- functions (algebra_atom.c) --- */
const bb_normal *bb_normal_power(bb_algebra *al, const bb_normal *a, bb_ratio power);
const bb_normal *bb_normal_invert(bb_algebra *al, const bb_normal *a);
const bb_normal *bb_normal_divide(bb_algebra *al, const bb_normal *a, const bb_normal *by);
const bb_normal *bb_normal_exp(bb_algebra *al, const bb_normal *a);
const bb_normal *bb_normal_log(bb_algebra *al, const bb_normal *a);
const bb_normal *bb_normal_abs(bb_algebra *al, const bb_normal *a);
const bb_normal *bb_normal_extremum(bb_algebra *al, bool max, const bb_normal *a,
                                    const bb_normal *b);
const bb_normal *bb_normal_call(bb_algebra *al, bb_expr_op op, bb_dtype dtype, const bb_normal *a,
                                const bb_normal *b, const bb_normal *c);
uint32_t bb_normal_sign(const bb_normal *a);
uint32_t bb_normal_power_sign(uint32_t sign, bb_ratio power);

/* --- expressions and proofs (algebra_expr.c) --- */
const bb_normal *bb_normal_of(bb_algebra *al, const bb_expr *expr);
/* Is it zero wherever it has a value?  Denominators are cleared; |s| and predicates that stand in
 * the way are decided by cases. */
bool bb_normal_is_zero(bb_algebra *al, const bb_normal *a);
bool bb_algebra_equal(bb_algebra *al, const bb_expr *a, const bb_expr *b);

/* --- expressions again (algebra_write.c) --- */

/* An expression with this value, written for floating point: one exp for each product of exps,
 * differences inside it, max and min where they came from. */
const bb_expr *bb_normal_expr(bb_algebra *al, const bb_normal *a);

#endif
