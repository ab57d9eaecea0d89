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

/* --- the bits of one type taken for another --- */

static bb_onnx_value *low_word(const bb_onnx_node *n, bb_onnx_value *v) {
  return bb_onnx_map(n, low_half(n->m->program, bb_onnx_arg(n, 0, v)), 1, &v);
}

/* Integers of one width differ in how they are read, which a cast keeps the bits of; floats go through a reference kernel, on
 * integers as they are computed with. */
void bb_onnx_bit_cast(bb_onnx_node *n) {
  bb_onnx_value *v = n->in[0];
  bb_dtype dtype;
  int64_t to = bb_onnx_int(n, "to", 0);
  bool small = to > 0 && to < 64;
  if (!small || !bb_onnx_dtype((int32_t)to, &dtype)) {
    bb_onnx_unsupported(n, "the bits of %s",
                        small ? bb_onnx_dtype_name((int32_t)to) : "an unknown type");
    return;
  }
  bb_dtype stored = bb_onnx_stored((int32_t)to);
  if (bb_dtype_bytes(stored) != bb_dtype_bytes(v->stored))
    bb_onnx_refuse(n, "%s has other bits than %s", bb_dtype_name(v->stored), bb_dtype_name(stored));
  bool from_float = bb_dtype_is_float(v->dtype), to_float = bb_dtype_is_float(dtype);
  bool wide = bb_dtype_bytes(stored) == 8;
  if (!from_float && v->dtype != BB_BOOL && !wide)
    v = bb_onnx_cast(n, v->dtype == BB_I64 ? low_word(n, v) : v, BB_I32);
  if ((from_float || to_float) && v->dtype != dtype) {
    bb_misc kernel = {.domain = "", .op = "BitCast", .version = 26};
    bb_onnx_value *out = bb_onnx_value_new(n->m,
                                           to_float ? dtype
                                           : wide   ? BB_I64
                                                    : BB_I32,
                                           v->rank, v->shape);
    bb_onnx_misc_node(n, &kernel, 1, &v, 1, &out);
    v = out;
  }
  n->out[0] = bb_onnx_wrap(n, bb_onnx_cast(n, v, dtype), stored);
}
