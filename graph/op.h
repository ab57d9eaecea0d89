/* op.h - the tables of functional ops and of monoids, and the rule that gives an op its type. */
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
  int arity; /* -1: any number */
  uint32_t results, linear;
  double cost;
  const char *description;
} bb_op_info;

const bb_op_info *bb_op_get(bb_op op);
bool bb_op_find(const char *name, size_t length, bb_op *op);

/* The items an op gives for the items it takes; `expr` for ELEMENTWISE only.  Returns NULL, or a
 * static phrase saying which law the operands break ("operands of add differ"). */
const char *bb_op_infer(bb_op op, const bb_expr *expr, uint32_t count, const bb_item *in,
                        bb_item out[2]);

typedef enum bb_monoid_id {
#define BB_MONOID(id, name, components, symbol, commutative) BB_MONOID_##id,
#include "monoid.def"
#undef BB_MONOID
  BB_MONOID_COUNT
} bb_monoid_id;

typedef struct bb_monoid {
  bb_monoid_id id;
  const char *name;
  uint32_t components;
  const char *symbol;
  bool commutative;
} bb_monoid;

/* Static: a monoid is compared by pointer. */
const bb_monoid *bb_monoid_get(bb_monoid_id id);
const bb_monoid *bb_monoid_find(const char *name, size_t length);

/* acc = acc * term, and the empty element, component-wise, for one element. */
void bb_monoid_empty(const bb_monoid *monoid, double *acc);
void bb_monoid_combine(const bb_monoid *monoid, double *acc, const double *term);

#endif
