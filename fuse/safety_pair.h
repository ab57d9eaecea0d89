/* safety_pair.h - significand-exponent pairs while a program is being rebuilt; internal to safety.
 *
 * The old program is only read; the new one is built beside it, level by level.  For each value of
 * the old level there is a bb_pair of values of the new one.
 */
#ifndef BB_FUSE_SAFETY_PAIR_H
#define BB_FUSE_SAFETY_PAIR_H

#include "safety.h"
#include "scalar_walk.h"

enum { BB_PAIR_EXPONENTS = 8, BB_PAIR_LISTS = 32 };

/* weight * value, part of an exponent.  Where the pair is a list, `lists` says over which of its
 * lists (bit i: list i, 0 the outermost) the exponent varies: those are the exponent's own lists,
 * in order. */
typedef struct bb_exponent {
  double weight;
  bb_value value;
  uint32_t lists;
} bb_exponent;

/* How many of a set of lists stand outside list `at`; and the set without it, those inside it one
 * place further out. */
static inline uint32_t bb_lists_before(uint32_t lists, uint32_t at) {
  return (uint32_t)__builtin_popcount(lists & ((1u << at) - 1));
}
static inline uint32_t bb_lists_without(uint32_t lists, uint32_t at) {
  return (lists & ((1u << at) - 1)) | (lists >> (at + 1) << at);
}

/* significand * exp(sum of exponents); a plain value has no exponents.  Or a logarithm of a pair,
 * significand + sum of exponents: what it is subtracted from is brought near it by the exponents
 * first, before digits are lost. */
typedef struct bb_pair {
  bool ones;      /* the significand is 1 everywhere, and no value */
  bool logarithm; /* the exponents are added */
  bb_value significand;
  uint32_t count;
  bb_exponent exponent[BB_PAIR_EXPONENTS];
  struct bb_pair *along_col, *along_row; /* the same value, its exponent constant along that axis */
  /* What leaves the program: the value multiplied back; its exponent, as wide as the value. */
  bool has_plain, has_wide;
  bb_value plain, wide;
} bb_pair;

/* The maxima of an exponent along an axis, made once in a level. */
typedef struct bb_safe_top {
  bb_value exponent, top;
  uint32_t axis;
} bb_safe_top;

typedef struct bb_safe_level bb_safe_level;
struct bb_safe_level {
  bb_safety *safety;
  const bb_safe_level *parent;
  uint32_t map; /* the old node of the parent that this is the inside of */
  const bb_graph *old;
  bb_graph *graph;
  bb_pair **pair; /* by node and port of `old`: arrays */
  uint32_t tops, top_capacity;
  bb_safe_top *top;
};

/* An input of a program that reads a local tensor. */
typedef struct bb_safe_reader {
  const bb_graph *root;
  uint32_t input;
  struct bb_safe_reader *next;
} bb_safe_reader;

struct bb_safety {
  bb_program *program;
  bb_arena *arena;
  bb_scalar_walk *walk;
  uint32_t tensors;
  /* By tensor: 1 + the local tensor with its exponent, which is the tensor itself where all its significands are 1; 0: it is
   * plain. */
  uint32_t *wide;
  bool *carried;           /* by tensor: a local one that may be stored as a pair */
  bb_safe_reader **reader; /* by tensor: who reads it, of the programs learned */
  const char *refused;     /* why a program could not be made safe */
};

/* --- safety_need.c: what becomes of a value of the old program --- */

/* The axes of a value along which it is contracted, as it is; and whether anything else is done to
 * it but to fold it. */
enum { BB_NEED_ROW = 1, BB_NEED_COL = 2, BB_NEED_OTHER = 4 };
uint32_t bb_safe_need(const bb_safe_level *level, bb_value value);
/* How it leaves the program: plain, or with its exponent in a tensor of its own. */
enum { BB_LEAVE_PLAIN = 1, BB_LEAVE_WIDE = 2 };
uint32_t bb_safe_leave(const bb_safe_level *level, bb_value value);

/* --- safety.c --- */

/* Is the value of a subexpression (NULL: of the node) to be multiplied back on the spot? */
bool bb_safe_is_mended(const bb_safety *safety, const bb_node *node, const bb_expr *expr);
/* Has the node an exp that must become a pair?  Has any node of a graph? */
bool bb_safe_has_unsafe(const bb_safety *safety, const bb_node *node);
bool bb_safe_graph_has_unsafe(const bb_safety *safety, const bb_graph *graph);

/* --- safety_expr.c: expressions of pairs --- */

/* An expression of operands given as pairs; `node`: whose exps it has, NULL: none is unsafe. */
bb_pair *bb_safe_expression(bb_safe_level *level, const bb_node *node, const bb_expr *expr,
                            uint32_t count, bb_pair *const *operand, const bb_type *type);
/* The value that a pair of items stands for. */
bb_value bb_safe_value_of(bb_safe_level *level, const bb_pair *pair, bb_item item);
/* s * exp(e) with an overflow only where the product does: s * f * f, where f is exp(e / 2). */
const bb_expr *bb_safe_half_power(bb_program *program, bb_dtype dtype, const bb_expr *exponent);
const bb_expr *bb_safe_product(bb_program *program, const bb_expr *significand,
                               const bb_expr *half);

/* An expression by itself: significand * exp(exponent), both of the same ARGs; NULL: it is
 * plain. */
typedef struct bb_safe_form {
  const bb_expr *significand, *exponent;
} bb_safe_form;

/* `expr`, whose ARG i is arg[i]; no exp of it is unsafe. */
bb_safe_form bb_safe_form_of(bb_program *program, const bb_expr *expr, uint32_t count,
                             const bb_safe_form *arg);
/* Its significand for the exponent `to` in the place of its own. */
const bb_expr *bb_safe_moved(bb_program *program, const bb_safe_form *from, const bb_expr *to);

/* --- safety_item.c: pairs of items --- */

bb_pair *bb_safe_plain(bb_safe_level *level, bb_value value);
/* An elementwise op; an expression that is one operand is that operand. */
bb_value bb_safe_emit(bb_safe_level *level, const bb_expr *expr, uint32_t count, const bb_value *in,
                      bb_item item);
/* The exponents `from` on as one value; they have no lists. */
bb_value bb_safe_sum(bb_safe_level *level, uint32_t count, const bb_exponent *exponent);
/* The value itself; `item` is the item of the value. */
bb_value bb_safe_multiply_back(bb_safe_level *level, bb_pair *pair, bb_item item);
/* The exponents as an expression of operands `first` on, which it puts there; NULL: there is
 * none. */
const bb_expr *bb_safe_sum_expr(bb_safe_level *level, uint32_t count, const bb_exponent *exponent,
                                uint32_t first, bb_value *in);
/* Its exponent along all axes of the item. */
bb_value bb_safe_widen(bb_safe_level *level, bb_pair *pair, bb_item item);
/* The pair with an exponent that is constant along an axis (BB_NEED_ROW, BB_NEED_COL). */
bb_pair *bb_safe_level_out(bb_safe_level *level, bb_pair *pair, bb_item item, uint32_t axis);
/* The significand, made if it is ones. */
bb_value bb_safe_significand(bb_safe_level *level, bb_pair *pair, bb_item item);
void bb_safe_func(bb_safe_level *level, const bb_node *node, uint32_t index, bb_pair **out);

/* --- safety_fold.c: tuples of an exponent and what it scales --- */

/* One sum (or extremum) of a group that shares an exponent: times exp(weight * exponent). */
typedef struct bb_safe_member {
  bb_monoid_id fold;
  double weight;
  bb_dtype dtype;
  bool positive;
} bb_safe_member;

/* Component 0 is the exponent, of element type `exponent`; NULL: there is no such monoid. */
const bb_monoid *bb_safe_monoid(bb_safety *safety, bb_dtype exponent, uint32_t count,
                                const bb_safe_member *member);

/* --- safety_product.c: derived products, some of whose components are pairs --- */

typedef struct bb_safe_scaled {
  uint32_t count;                          /* components of the product before */
  bool pair[BB_MONOID_COMPONENTS];         /* is the component a pair? */
  bb_dtype dtype[BB_MONOID_COMPONENTS];    /* of its exponent */
  bool wide[BB_MONOID_COMPONENTS];         /* its exponent needs all axes that the component has */
  uint32_t exponent[BB_MONOID_COMPONENTS]; /* where it stands in the new monoid */
  uint32_t significand[BB_MONOID_COMPONENTS];
  const bb_monoid *monoid;
} bb_safe_scaled;

/* The product with exponents beside those of its components that are pairs (`pair`, `dtype` are
 * given); false: there is none. */
bool bb_safe_scale_product(bb_program *program, const bb_monoid *product, bb_safe_scaled *scaled);

/* --- safety_plain.c: products that are safe as they stand --- */

/* In a program that was made safe, in place: products with an exp of what is at most 0, which bb_safe_product() made, without halves. */
void bb_safe_plain_products(bb_program *program, bb_graph *graph);

/* --- safety_map.c, safety_list.c --- */

void bb_safe_map(bb_safe_level *level, const bb_node *node, uint32_t index, bb_pair **out);
void bb_safe_reduce(bb_safe_level *level, const bb_node *node, bb_pair **out);
/* An expression of values that may be lists, element by element, in loops of its own. `type`: of
 * the result; lists[i]: over which of its lists operand i varies. */
bb_value bb_safe_in_loops(bb_safe_level *level, const bb_expr *expr, uint32_t count,
                          const bb_value *in, const uint32_t *lists, const bb_type *type);
uint32_t bb_safe_all_lists(const bb_type *type);
/* Are the lists of a part, but for list `skip`, lists of the whole other than list `at`?  Those
 * that chunk an axis which the part lacks are not: they are marked otherwise. */
bool bb_safe_has_lists(const bb_type *whole, uint32_t at, const bb_type *part, uint32_t skip);
/* Exponents of a value of that type as one. */
bb_exponent bb_safe_list_sum(bb_safe_level *level, uint32_t count, const bb_exponent *exponent,
                             const bb_type *type);
/* A pair of items or of lists of them: multiplied back, its exponent along all axes and lists, its
 * significand. `type`: of the value. */
bb_value bb_safe_list_back(bb_safe_level *level, bb_pair *pair, const bb_type *type);
bb_value bb_safe_list_wide(bb_safe_level *level, bb_pair *pair, const bb_type *type);
bb_value bb_safe_list_significand(bb_safe_level *level, bb_pair *pair, const bb_type *type);

void bb_safe_level_build(bb_safe_level *level);

#endif
