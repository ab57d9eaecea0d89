/* op.h - the table of functional ops, and the rule that gives an op its type. */
#ifndef BB_GRAPH_OP_H
#define BB_GRAPH_OP_H

#include "expr.h"

typedef enum bb_op {
#define BB_OP(id, name, arity, results, linear, cost, description) BB_OP_##id,
#include "op.def"
#undef BB_OP
  BB_OP_COUNT
} bb_op;

typedef struct bb_op_info {
  const char *name;
  int arity;        /* -1: any number */
  uint32_t results; /* 0: as many as operands */
  uint32_t linear;
  double cost;
  const char *description;
} bb_op_info;

/* The row of op.def. */
const bb_op_info *bb_op_get(bb_op op);
/* False: there is none of that name. */
bool bb_op_find(const char *name, size_t length, bb_op *op);

static inline bool bb_op_has_monoid(bb_op op) {
  return op == BB_OP_ROW_FOLD || op == BB_OP_ROW_SCAN || op == BB_OP_ROW_SCAN_EXCLUSIVE;
}
/* Each element of the result is one function of the operands' elements that stand at its place. */
static inline bool bb_op_is_pointwise(bb_op op) {
  return op == BB_OP_ELEMENTWISE || op == BB_OP_ADD || op == BB_OP_MUL || op == BB_OP_ROW_SHIFT ||
         op == BB_OP_ROW_SCALE || op == BB_OP_COL_SHIFT || op == BB_OP_COL_SCALE;
}
/* Ops by whose one operand another is scaled: that one may have come out of sums over some terms (bb_node.expr). */
static inline bool bb_op_scales(bb_op op) {
  return op == BB_OP_MUL || op == BB_OP_ROW_SCALE || op == BB_OP_COL_SCALE || op == BB_OP_OUTER;
}
/* How many results an op of `count` operands has; never above BB_OP_RESULTS. */
enum { BB_OP_RESULTS = 32 };
uint32_t bb_op_results(bb_op op, uint32_t count);

/* A pointwise op that has a name, as an expression of its operands, with the type that the op
 * gives. */
const bb_expr *bb_op_expr(bb_program *program, bb_op op, const bb_expr *a, const bb_expr *b);

/* bb_node.expr of a DOT whose products of 16 bits are summed, and given, in another type: the empty
 * sum.  NULL: the result is of the operands' type. */
static inline const bb_expr *bb_op_wide_sum(bb_program *program, bb_dtype dtype) {
  return bb_expr_const(program, dtype, 0);
}

/* The items an op gives for the items it takes; `expr` for ELEMENTWISE, and for a DOT that is wider
 * than its operands.  Returns NULL, or a static phrase saying which law the operands break
 * ("operands of add differ").  What scales or shifts a block of narrow floats may be wider than they
 * are: it is computed with as it is, and the result is as narrow as the block. */
const char *bb_op_infer(bb_op op, const bb_expr *expr, uint32_t count, const bb_item *in,
                        bb_item out[BB_OP_RESULTS]);

#endif
