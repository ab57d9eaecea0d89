/* bits.c - operators on the bits of integers: from the bits that two numbers have both, and arithmetic. */
#include "convert.h"
#include "formula.h"

#include <string.h>

static void want_whole(const bb_onnx_node *n) {
  bb_onnx_same_dtype(n, n->nin, n->in);
  if (bb_dtype_is_float(n->in[0]->dtype) || n->in[0]->dtype == BB_BOOL)
    bb_onnx_refuse(n, "operands that must be integers are %s", bb_dtype_name(n->in[0]->stored));
}

/* a | b is a and what b has besides; a ^ b is what each has besides the other.  No sum leaves the type. */
void bb_onnx_bitwise(bb_onnx_node *n) {
  bb_program *p = n->m->program;
  want_whole(n);
  const bb_expr *a = bb_onnx_arg(n, 0, n->in[0]), *b = bb_onnx_arg(n, 1, n->in[1]);
  const bb_expr *both = bb_expr_make(p, BB_X_BITS, a, b, NULL), *y = both;
  if (n->row->detail == BB_X_OR) y = f_add(p, a, f_sub(p, b, both));
  if (n->row->detail == BB_X_XOR) y = f_add(p, f_sub(p, a, both), f_sub(p, b, both));
  n->out[0] = bb_onnx_map(n, y, 2, n->in);
}

void bb_onnx_bitwise_not(bb_onnx_node *n) {
  want_whole(n);
  const bb_expr *x = bb_onnx_arg(n, 0, n->in[0]);
  n->out[0] = bb_onnx_map(n, f_sub(n->m->program, f_num(n->m->program, x, -1), x), 1, n->in);
}

/* The largest whole number not above a / by, for a positive `by`. */
static const bb_expr *floor_of(bb_program *p, const bb_expr *a, const bb_expr *by) {
  const bb_expr *zero = f_num(p, a, 0), *below = f_num(p, a, -1);
  const bb_expr *negative = f_sub(p, below, f_div(p, f_sub(p, below, a), by));
  return f_select(p, f_lt(p, a, zero), negative, f_div(p, a, by));
}

/* The low 32 bits of an i64, with their sign. */
static const bb_expr *low_half(bb_program *p, const bb_expr *a) {
  const bb_expr *half = f_num(p, a, 0x1p31);
  return f_sub(p, bb_expr_make(p, BB_X_MOD, f_add(p, a, half), f_num(p, a, 0x1p32), NULL), half);
}

/* Times, or by, a power of two in two steps, in which it fits.  An amount below 0, or of all bits, leaves the sign. */
void bb_onnx_bit_shift(bb_onnx_node *n) {
  bb_program *p = n->m->program;
  bb_onnx_value *v = n->in[0];
  const char *direction = bb_onnx_text(n, "direction", "");
  bool left = strcmp(direction, "LEFT") == 0;
  want_whole(n);
  if (!left && strcmp(direction, "RIGHT") != 0)
    bb_onnx_refuse(n, "direction is %s", bb_onnx_quote(n->m->arena, direction));
  const bb_expr *a = bb_expr_cast(p, BB_I64, bb_onnx_arg(n, 0, v));
  const bb_expr *by = bb_expr_cast(p, BB_I64, bb_onnx_arg(n, 1, n->in[1]));
  const bb_expr *width = f_num(p, by, 8.0 * bb_dtype_bytes(v->stored)), *zero = f_num(p, by, 0);
  const bb_expr *two = f_num(p, by, 2), *inside = f_and(p, f_le(p, zero, by), f_lt(p, by, width));
  by = f_select(p, inside, by, width);
  const bb_expr *half = f_div(p, by, two);
  const bb_expr *step[2] = {f_pow(p, two, half), f_pow(p, two, f_sub(p, by, half))};
  const bb_expr *y = left ? f_select(p, inside, f_mul(p, f_mul(p, a, step[0]), step[1]), zero)
                          : floor_of(p, floor_of(p, a, step[0]), step[1]);
  if (left && v->stored == BB_I32) y = low_half(p, y);
  bb_onnx_value *shifted = bb_onnx_map(n, y, 2, n->in);
  n->out[0] = bb_onnx_cast(n, bb_onnx_wrap(n, shifted, v->stored), v->dtype);
  n->out[0]->stored = v->stored;
}
