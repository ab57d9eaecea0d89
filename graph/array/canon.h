/* canon.h - what the files of canonicalisation share.
 *
 * A rule looks at one node and rewrites around it, or leaves it alone.  Rules work on the index
 * form only by the calls below, which put what they touch back on the work list; so a node is
 * looked at again only when something next to it has changed, and the time is near linear.  Every
 * rule either removes nodes or moves an operator in one direction only (see canonicalise.c).
 */
#ifndef BB_GRAPH_ARRAY_CANON_H
#define BB_GRAPH_ARRAY_CANON_H

#include "../precision.h"
#include "index.h"

typedef struct bb_canon {
  bb_ix *ix;
  bb_program *program;
  bb_arena *queue;                 /* of the work list */
  bb_arena *scratch;               /* of the rewrite at hand; between rewrites as above */
  uint32_t count, capacity, *work; /* a stack of nodes */
} bb_canon;

/* Puts a node (its users; the producers of its operands) on the work list. */
void bb_canon_queue(bb_canon *c, uint32_t node);
void bb_canon_queue_users(bb_canon *c, uint32_t value);
void bb_canon_queue_around(bb_canon *c, uint32_t node);

/* An operand for the calls below. */
typedef struct bb_term {
  uint32_t value;
  const uint32_t *index; /* for each axis of the value: an index of the node */
} bb_term;

/* New elementwise and contraction nodes, over `count` indices of the given classes. */
uint32_t bb_canon_elementwise(bb_canon *c, const char *name, const bb_expr *expr, uint32_t count,
                              const uint32_t *dim, uint32_t nin, const bb_term *in);
uint32_t bb_canon_contract(bb_canon *c, const char *name, bb_dtype dtype, uint32_t rank,
                           uint32_t count, const uint32_t *dim, const bb_term *in);
/* A function of one value with its axes. */
uint32_t bb_canon_unary(bb_canon *c, const char *name, const bb_expr *expr, uint32_t value);
/* Gives an elementwise node another expression and other operands. */
void bb_canon_set(bb_canon *c, uint32_t node, const bb_expr *expr, uint32_t nin, const bb_term *in);
/* Uses of `old` become uses of `with`, except those by node `except`; axis map[a] of `old` (NULL:
 * a) is what axis a of `with` was. `old` is swept. */
void bb_canon_replace(bb_canon *c, uint32_t old, uint32_t with, const uint32_t *map,
                      uint32_t except);

/* --- reading --- */

bb_term bb_canon_term(const bb_canon *c, uint32_t node, uint32_t slot);
/* The node that makes an operand, if its operator is `op`; else BB_NONE. */
uint32_t bb_canon_maker(const bb_canon *c, uint32_t node, uint32_t slot, bb_ix_op op);
/* Does an operand of the node have this index?  Gives its axis, or BB_NONE. */
uint32_t bb_canon_axis_of(const bb_canon *c, uint32_t node, uint32_t slot, uint32_t index);
/* Is every use of the value one by this node? */
bool bb_canon_only_user(const bb_canon *c, uint32_t value, uint32_t node);
bool bb_canon_same_term(const bb_canon *c, const bb_term *a, const bb_term *b);
/* A constant factor: x*c, x/c or -x of the only operand.  Gives c as an expression, or NULL. */
const bb_expr *bb_canon_scale(const bb_canon *c, uint32_t node);
/* An expression of numbers and extents only. */
static inline bool bb_canon_is_fixed(const bb_expr *expr) {
  return expr->arg_count == 0 && !expr->coord;
}
/* expr is op(ARG i, ARG j) with i != j. */
bool bb_canon_is_binary(const bb_expr *expr, bb_expr_op op, uint32_t *i, uint32_t *j);

/* --- canon_expr.c --- */

/* The canonical form of an expression by itself. */
const bb_expr *bb_canon_expr(bb_program *program, const bb_expr *expr);

/* --- canon_elementwise.c --- */

/* Operand `slot` of `at` is made by an elementwise node: are the two not nested too deep together? */
bool bb_canon_may_inline(const bb_canon *c, uint32_t at, uint32_t slot);
/* Replaces it by the operands of that node. */
void bb_canon_inline(bb_canon *c, uint32_t at, uint32_t slot);

/* --- canon_divisor.c --- */

/* May the node's quotient by this operand be a product with its reciprocal? */
bool bb_canon_may_invert(const bb_canon *c, uint32_t at, uint32_t divisor);

/* --- the rules; each gives true if it changed something --- */

typedef bool bb_canon_rule(bb_canon *c, uint32_t node);

bb_canon_rule bb_rule_tidy, bb_rule_forward, bb_rule_compose, bb_rule_negate, bb_rule_reciprocal,
    bb_rule_outward;          /* canon_elementwise.c */
bb_canon_rule bb_rule_gather; /* canon_gather.c */
bb_canon_rule bb_rule_scale, bb_rule_scale_form, bb_rule_weight_scale, bb_rule_weight_shift,
    bb_rule_merge_shifts, bb_rule_moments;                    /* canon_linear.c */
bb_canon_rule bb_rule_hide, bb_rule_guard, bb_rule_guard_row; /* canon_mask.c */
bb_canon_rule bb_rule_slice_source, bb_rule_slice_slice, bb_rule_slice_join, bb_rule_slice_up,
    bb_rule_join_down, bb_rule_join_contract;   /* canon_pieces.c */
bb_canon_rule bb_rule_quotient;                 /* canon_quotient.c */
bb_canon_rule bb_rule_refold;                   /* canon_refold.c */
bb_canon_rule bb_rule_turn, bb_rule_keep_order; /* canon_turn.c */

/* Makes one node of nodes that compute the same; returns how many went. */
uint32_t bb_canon_share(bb_canon *c); /* canon_share.c */

#endif
