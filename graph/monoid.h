/* monoid.h - what a reduction folds with: an associative function with an empty element.
 *
 * A monoid has one or several components.  The basic ones (monoid.def) are static.  A tuple is made
 * for its program and interned there: monoids are compared by pointer.  Its combine says for each
 * component what two parts give, as an expression of both parts' components, each already an item
 * or a list of items of its own: the components of a tuple may have different axes (rows beside a
 * block), and combine broadcasts along axes and lists that a component lacks.
 *
 * The laws hold for every monoid there is: a tuple whose empty element is not neutral, or whose
 * combine is found not to be associative, is refused with a counterexample when it is made.
 */
#ifndef BB_GRAPH_MONOID_H
#define BB_GRAPH_MONOID_H

#include "op.h"

typedef enum bb_monoid_id {
#define BB_MONOID(id, name, components, symbol, commutative, row) BB_MONOID_##id,
#include "monoid.def"
#undef BB_MONOID
  BB_MONOID_COUNT,
  BB_MONOID_TUPLE = BB_MONOID_COUNT
} bb_monoid_id;

enum { BB_MONOID_COMPONENTS = 32 };

/* One component of a tuple of n. */
typedef struct bb_monoid_component {
  const char *name;
  bb_dtype dtype;         /* of the items, and of combine */
  double empty;           /* of a part without elements */
  const bb_expr *combine; /* ARG k: component k of the left part, ARG n + k: of the right part */
  /* In a product of dependent folds: the basic monoid that this component's terms fold with once
   * they are renewed (the index beside an extremum has its extremum's), and the component as it
   * would be had the earlier ones been the renewed ones: ARG k own, ARG n + k renewed; itself
   * (ARG k) where it depends on none.  A user's function: BB_MONOID_TUPLE and NULL. */
  bb_monoid_id fold;
  const bb_expr *repair;
  double low, high; /* values it can have, for the tests; low == high: any */
} bb_monoid_component;

typedef struct bb_monoid {
  bb_monoid_id id;
  const char *name; /* of a tuple: unique in its program; not part of what it is */
  const char *wish; /* its name if no other had it */
  uint32_t components;
  const char *symbol;                   /* in listings: += */
  bool commutative;                     /* proved; else false */
  bool proved;                          /* associative by proof, not by test alone */
  const bb_monoid_component *component; /* TUPLE, else NULL */
  /* A derived product: how it was derived and proved, in lines for a reader; else NULL.  Not part
   * of what the monoid is. */
  const char *proof;
} bb_monoid;

/* Static. */
const bb_monoid *bb_monoid_get(bb_monoid_id id);
const bb_monoid *bb_monoid_find(const char *name, size_t length);
/* The op that folds along columns with a basic monoid, BB_OP_COUNT if there is none; the monoid of
 * such an op, BB_MONOID_COUNT for any other. */
bb_op bb_monoid_row_op(bb_monoid_id id);
bb_monoid_id bb_monoid_of_row_op(bb_op op);

/* The tuple with these components, made or found.  `name` is a wish: one that is taken gets a
 * number appended.  proved: the caller proved that combine is associative on what it folds (a
 * derived product); else that is shown if it is plain, or tested on random values with a warning.
 * Where arithmetic does not leave a part as it is beside the empty element, a selection is put
 * around it.  Fails the context with BB_ERROR_INPUT where a law is broken. */
const bb_monoid *bb_monoid_make(bb_program *program, const char *name, uint32_t count,
                                const bb_monoid_component *component, bool proved);
/* The same, but gives NULL and the law that is broken, in the program's arena, instead of
 * failing. */
const bb_monoid *bb_monoid_try(bb_program *program, const char *name, uint32_t count,
                               const bb_monoid_component *component, bool proved,
                               const char **broken);
/* Keeps a proof, in the program's arena, with a tuple that has none. */
void bb_monoid_keep_proof(bb_program *program, const bb_monoid *monoid, const char *proof);
/* Names a tuple as it wishes, with a number where one of the program's has that name. */
void bb_monoid_name(bb_program *program, bb_monoid *tuple);
/* By number of a tuple: how many others the program's graphs use before it first; BB_NONE: they do not use it. */
const uint32_t *bb_monoid_uses(const bb_program *program, bb_arena *arena);
/* Orders and names the program's tuples as it uses them first; then come those that were made only to be looked at. */
void bb_monoids_settle(bb_program *program);
/* The tuple of this name, or NULL. */
const bb_monoid *bb_monoid_named(const bb_program *program, const char *name, size_t length);
/* Tuples in the order in which they were made. */
uint32_t bb_monoid_count(const bb_program *program);
const bb_monoid *bb_monoid_at(const bb_program *program, uint32_t index);
/* As `monoid`, of another program or of this one: found by structure, or made. */
const bb_monoid *bb_monoid_copy(bb_program *program, const bb_monoid *monoid);

/* acc = acc * term, and the empty element, component-wise, for one element, unrounded. */
void bb_monoid_empty(const bb_monoid *monoid, double *acc);
/* The empty element of a component as items of its type have it: an infinity, where extrema begin, is the least or the
 * greatest bool. */
static inline double bb_monoid_empty_held(bb_dtype dtype, double empty) {
  return dtype == BB_BOOL ? empty > 0 : empty;
}
void bb_monoid_combine(const bb_monoid *monoid, double *acc, const double *term);

/* What combine gives for component k, as an expression of ARG k (left) and ARG components + k
 * (right), for basic monoids too; dtype[k] is the element type of component k. */
const bb_expr *bb_monoid_expr(bb_program *program, const bb_monoid *monoid, uint32_t k,
                              const bb_dtype *dtype);
/* Does combine's component k read component j of either part?  (It reads k always.) */
bool bb_monoid_reads(const bb_monoid *monoid, uint32_t k, uint32_t j);

/* Which law a tuple breaks, or NULL; in `scratch`.  `commutative` and `proved` (which may be given
 * as a claim) are set to what is proved. */
const char *bb_monoid_check(bb_program *program, bb_monoid *monoid, bb_arena *scratch);
/* Random values on which combine is not associative, as a message in `scratch`, or NULL. */
const char *bb_monoid_test(bb_program *program, const bb_monoid *monoid, bb_arena *scratch);

#endif
