/* op.c - functional ops: names and item rules. */
#include "op.h"

#include <string.h>

static const bb_op_info ops[] = {
#define BB_OP(id, name, arity, results, linear, cost, description)                                 \
  [BB_OP_##id] = {name, arity, results, linear, cost, description},
#include "op.def"
#undef BB_OP
};

const bb_op_info *bb_op_get(bb_op op) {
  return &ops[op];
}

bool bb_op_find(const char *name, size_t length, bb_op *op) {
  for (uint32_t i = 0; i < BB_OP_COUNT; i++) {
    if (strlen(ops[i].name) != length || memcmp(ops[i].name, name, length) != 0) continue;
    *op = (bb_op)i;
    return true;
  }
  return false;
}

uint32_t bb_op_results(bb_op op, uint32_t count) {
  uint32_t most = count < BB_OP_RESULTS ? count : BB_OP_RESULTS;
  return ops[op].results ? ops[op].results : most;
}

const bb_expr *bb_op_expr(bb_program *program, bb_op op, const bb_expr *a, const bb_expr *b) {
  bool add = op == BB_OP_ADD || op == BB_OP_ROW_SHIFT || op == BB_OP_COL_SHIFT;
  bb_dtype dtype = a->dtype;
  bool wider = b->dtype != dtype;
  if (wider) a = bb_expr_cast(program, b->dtype, a);
  const bb_expr *made = bb_expr_make(program, add ? BB_X_ADD : BB_X_MUL, a, b, NULL);
  return wider ? bb_expr_cast(program, dtype, made) : made;
}

/* --- items --- */

static bool has_row(const bb_item *item) {
  return item->row != BB_NO_DIM;
}
static bool has_col(const bb_item *item) {
  return item->col != BB_NO_DIM;
}
static bool is_block(const bb_item *item) {
  return has_row(item) && has_col(item);
}
static bool is_rows(const bb_item *item) {
  return has_row(item) && !has_col(item);
}
static bool is_cols(const bb_item *item) {
  return !has_row(item) && has_col(item);
}

static bool same_axes(const bb_item *a, const bb_item *b) {
  return a->row == b->row && a->col == b->col;
}
static bool same_item(const bb_item *a, const bb_item *b) {
  return a->dtype == b->dtype && same_axes(a, b);
}

/* Adds the axes of `item` to those of `out`; they must agree where both have them. */
static bool unite_axes(bb_item *out, const bb_item *item) {
  if (has_row(item) && has_row(out) && item->row != out->row) return false;
  if (has_col(item) && has_col(out) && item->col != out->col) return false;
  if (has_row(item)) out->row = item->row;
  if (has_col(item)) out->col = item->col;
  return true;
}

static const char *infer_elementwise(const bb_expr *expr, uint32_t count, const bb_item *in,
                                     bb_item *out) {
  if (!expr) return "elementwise has no expression";
  if (expr->arg_count > count) return "the expression uses an operand that is not there";
  *out = (bb_item){expr->dtype, BB_NO_DIM, BB_NO_DIM};
  for (uint32_t i = 0; i < count; i++)
    if (!unite_axes(out, &in[i])) return "operands of elementwise have different axes";
  return NULL;
}

/* Whether `with` may scale or shift what is of type `dtype`. */
static bool serves(bb_dtype with, bb_dtype dtype) {
  return with == dtype || (bb_dtype_is_float(with) && bb_dtype_is_float(dtype) &&
                           bb_dtype_bytes(with) > bb_dtype_bytes(dtype));
}

/* A block and a vector along its rows or its columns. */
static const char *infer_broadcast(const bb_item *in, bool rows, bb_item *out) {
  if (!is_block(&in[0])) return "the first operand is not a block";
  if (rows ? !is_rows(&in[1]) || in[1].row != in[0].row
           : !is_cols(&in[1]) || in[1].col != in[0].col)
    return rows ? "the second operand is not rows of the block"
                : "the second operand is not cols of the block";
  if (!serves(in[1].dtype, in[0].dtype)) return "operands have different element types";
  *out = in[0];
  return NULL;
}

static const char *infer_dot(const bb_expr *wide, const bb_item *in, bb_item *out) {
  if (!has_col(&in[0]) || !has_col(&in[1]) || in[0].col != in[1].col)
    return "dot contracts the col axes, which differ";
  if (in[0].dtype != in[1].dtype) return "operands have different element types";
  if (wide && (wide->dtype != BB_F32 || (in[0].dtype != BB_F16 && in[0].dtype != BB_BF16)))
    return "only products of 16 bits are wider than their operands, in f32";
  *out = (bb_item){wide ? wide->dtype : in[0].dtype, in[0].row, in[1].row};
  return NULL;
}

static const char *infer_row_fold(const bb_item *in, bool argument, bb_item *out) {
  if (!has_col(in)) return "the operand has no col axis to fold";
  out[0] = (bb_item){in->dtype, in->row, BB_NO_DIM};
  if (argument) out[1] = (bb_item){BB_I64, in->row, BB_NO_DIM};
  return NULL;
}

/* An operand for each component of a monoid, all along the same axes. */
static const char *infer_components(uint32_t count, const bb_item *in, bool scan, bb_item *out) {
  if (count == 0 || count > BB_OP_RESULTS) return "an operand for each component";
  for (uint32_t i = 0; i < count; i++) {
    if (!has_col(&in[i])) return "the operand has no col axis to fold";
    if (in[i].row != in[0].row || in[i].col != in[0].col) return "operands have different axes";
    out[i] = (bb_item){in[i].dtype, in[i].row, scan ? in[i].col : BB_NO_DIM};
  }
  return NULL;
}

const char *bb_op_infer(bb_op op, const bb_expr *expr, uint32_t count, const bb_item *in,
                        bb_item out[BB_OP_RESULTS]) {
  if (ops[op].arity >= 0 && count != (uint32_t)ops[op].arity) return "wrong number of operands";
  for (uint32_t i = 0; i < count && op != BB_OP_ELEMENTWISE && op != BB_OP_TRANSPOSE; i++)
    if (bb_dtype_is_stored(in[i].dtype))
      return "an operand's type is only stored: cast it to i32, i64 or f32 first";
  switch (op) {
  case BB_OP_ELEMENTWISE: return infer_elementwise(expr, count, in, out);
  case BB_OP_ADD: out[0] = in[0]; return same_item(&in[0], &in[1]) ? NULL : "operands differ";
  case BB_OP_MUL:
    out[0] = in[0];
    return same_axes(&in[0], &in[1]) && serves(in[1].dtype, in[0].dtype) ? NULL : "operands differ";
  case BB_OP_ROW_SHIFT:
  case BB_OP_ROW_SCALE: return infer_broadcast(in, true, out);
  case BB_OP_COL_SHIFT:
  case BB_OP_COL_SCALE: return infer_broadcast(in, false, out);
  case BB_OP_ROW_SUM:
  case BB_OP_ROW_MAX:
  case BB_OP_ROW_MIN:
  case BB_OP_ROW_PROD: return infer_row_fold(in, false, out);
  case BB_OP_ROW_ARGMAX:
  case BB_OP_ROW_ARGMIN:
  case BB_OP_ROW_ARGMAX_LAST:
  case BB_OP_ROW_ARGMIN_LAST: return infer_row_fold(in, true, out);
  case BB_OP_ROW_CUMSUM:
    out[0] = in[0];
    return has_col(&in[0]) ? NULL : "the operand has no col axis";
  case BB_OP_ROW_FOLD: return infer_components(count, in, false, out);
  case BB_OP_ROW_SCAN:
  case BB_OP_ROW_SCAN_EXCLUSIVE: return infer_components(count, in, true, out);
  case BB_OP_DOT: return infer_dot(expr, in, out);
  case BB_OP_OUTER:
    if (!is_rows(&in[0]) || !is_rows(&in[1])) return "operands of outer are not rows";
    if (!serves(in[0].dtype, in[1].dtype)) return "operands have different element types";
    out[0] = (bb_item){in[1].dtype, in[0].row, in[1].row};
    return NULL;
  case BB_OP_TRANSPOSE: out[0] = (bb_item){in[0].dtype, in[0].col, in[0].row}; return NULL;
  default: return "unknown op";
  }
}
