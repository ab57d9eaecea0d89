/* quantize.c - linear quantisation: numbers as integers of few bits, (x - zero point) * scale. */
#include "convert.h"
#include "formula.h"

/* --- scales and zero points --- */

static bool is_single(const bb_onnx_value *v) {
  return v->rank == 0 || (v->rank == 1 && bb_onnx_is_one(v->shape[0]));
}

/* Each element of v along an axis `times` times, the first `length` of all of them. */
static bb_onnx_value *repeated(const bb_onnx_node *n, bb_onnx_value *v, uint32_t axis,
                               int64_t times, int64_t length) {
  const bb_extent *shape[BB_ONNX_RANK + 1];
  int64_t blocks = bb_extent_value(v->shape[axis]);
  if (blocks < 0 || v->rank == BB_ONNX_RANK || blocks > length || blocks * times < length)
    bb_onnx_refuse(n, "%lld blocks of %lld elements for an axis of %lld", (long long)blocks,
                   (long long)times, (long long)length);
  for (uint32_t a = 0; a < v->rank; a++) shape[a + (a > axis)] = v->shape[a];
  shape[axis + 1] = bb_onnx_number(n->m, 1);
  v = bb_onnx_reshape(n, v, v->rank + 1, shape);
  shape[axis + 1] = bb_onnx_number(n->m, times);
  v = bb_onnx_broadcast(n, v, v->rank, shape);
  shape[axis] = bb_onnx_number(n->m, blocks * times);
  for (uint32_t a = axis + 1; a + 1 < v->rank; a++) shape[a] = shape[a + 1];
  v = bb_onnx_reshape(n, v, v->rank - 1, shape);
  return blocks * times == length ? v : bb_onnx_slice(n, v, axis, 0, 1, length);
}

bb_onnx_value *bb_onnx_scale_along(const bb_onnx_node *n, bb_onnx_value *v, const bb_onnx_value *x,
                                   uint32_t axis, int64_t block) {
  const bb_extent *shape[BB_ONNX_RANK];
  if (is_single(v)) return v->rank ? bb_onnx_reshape(n, v, 0, NULL) : v;
  if (block && v->rank == x->rank)
    return repeated(n, v, axis, block, bb_extent_value(x->shape[axis]));
  if (v->rank != 1) bb_onnx_refuse(n, "a scale or zero point of rank %u", v->rank);
  for (uint32_t a = 0; a < x->rank; a++)
    shape[a] = a == axis ? v->shape[0] : bb_onnx_number(n->m, 1);
  return bb_onnx_reshape(n, v, x->rank, shape);
}

/* The axis that scales go along; one scale for all has none, whatever the attribute says. */
static uint32_t axis_of(const bb_onnx_node *n) {
  const bb_onnx_value *x = n->in[0], *scale = n->in[1];
  return !is_single(scale) && x->rank ? bb_onnx_axis(n, bb_onnx_int(n, "axis", 1), x->rank) : 0;
}

/* Elements of a block that share a scale; 0: there are none. */
static int64_t block_of(const bb_onnx_node *n) {
  int64_t block = bb_onnx_int(n, "block_size", 0);
  if (block < 0 || block > 1 << 30) bb_onnx_refuse(n, "block_size is %lld", (long long)block);
  return block;
}

static bb_onnx_value *zero(const bb_onnx_node *n, bb_dtype stored) {
  bb_onnx_value *v = bb_onnx_scalar(n->m, BB_I32, 0);
  v->stored = stored;
  return v;
}

/* --- to integers --- */

/* round(x / scale) + zero, within the range of `stored`, or of so many of its bits; x and scale in f32. */
static bb_onnx_value *quantized(const bb_onnx_node *n, bb_onnx_value *x, bb_onnx_value *scale,
                                bb_onnx_value *zero_point, bb_dtype stored, uint32_t bits) {
  bb_program *p = n->m->program;
  double low, high;
  bb_onnx_stored_range(stored, bits, &low, &high);
  bb_onnx_value *in[] = {x, scale, bb_onnx_f32(n, zero_point)};
  const bb_expr *a = bb_onnx_arg(n, 0, in[0]), *by = bb_onnx_arg(n, 1, in[1]);
  const bb_expr *whole = bb_expr_make(p, BB_X_ROUND, f_div(p, a, by), NULL, NULL);
  const bb_expr *y = f_add(p, whole, bb_onnx_arg(n, 2, in[2]));
  y = f_min(p, f_max(p, y, f_num(p, y, low)), f_num(p, y, high));
  bb_onnx_value *made = bb_onnx_map(n, bb_expr_cast(p, zero_point->dtype, y), 3, in);
  made->stored = stored;
  made->bits = bits;
  return made;
}

static bool is_quantized(bb_dtype stored) {
  return bb_dtype_is_stored(stored) && stored != BB_U32;
}

bb_onnx_value *bb_onnx_quantized(const bb_onnx_node *n, bb_onnx_value *x, bb_onnx_value *scale,
                                 bb_onnx_value *zero_point, bb_dtype stored, uint32_t axis) {
  if (zero_point) stored = zero_point->stored;
  if (!is_quantized(stored)) bb_onnx_refuse(n, "a result of %s", bb_dtype_name(stored));
  zero_point = zero_point ? bb_onnx_scale_along(n, zero_point, x, axis, 0) : zero(n, stored);
  return quantized(n, bb_onnx_f32(n, x), bb_onnx_f32(n, bb_onnx_scale_along(n, scale, x, axis, 0)),
                   zero_point, stored, zero_point->bits);
}

void bb_onnx_quantize(bb_onnx_node *n) {
  bb_dtype dtype = BB_I32, stored = BB_U8;
  int64_t type = bb_onnx_int(n, "output_dtype", 0);
  uint32_t axis = axis_of(n);
  int64_t block = block_of(n);
  if (type && (type > 64 || !bb_onnx_dtype((int32_t)type, &dtype))) {
    bb_onnx_unsupported(n, "a result of %s", bb_onnx_dtype_name((int32_t)type));
    return;
  }
  if (type) stored = bb_onnx_stored((int32_t)type);
  bb_onnx_value *zero_point = n->nin > 2 && n->in[2] ? n->in[2] : NULL;
  if (zero_point) stored = zero_point->stored;
  if (!is_quantized(stored)) bb_onnx_refuse(n, "a result of %s", bb_dtype_name(stored));
  if (!zero_point) zero_point = bb_onnx_cast(n, zero(n, stored), dtype);
  n->out[0] = quantized(n, bb_onnx_f32(n, n->in[0]),
                        bb_onnx_f32(n, bb_onnx_scale_along(n, n->in[1], n->in[0], axis, block)),
                        bb_onnx_scale_along(n, zero_point, n->in[0], axis, block), stored,
                        zero_point->bits);
}

void bb_onnx_quantize_parts(const bb_onnx_node *n, bb_onnx_value *x, bb_onnx_value *part[3]) {
  bb_program *p = n->m->program;
  int64_t axes[BB_ONNX_RANK];
  for (uint32_t a = 0; a < x->rank; a++) axes[a] = a;
  bb_onnx_value *range[] = {bb_onnx_reduce(n, BB_MONOID_MIN, x, x->rank, axes, false),
                            bb_onnx_reduce(n, BB_MONOID_MAX, x, x->rank, axes, false)};
  const bb_expr *nothing = bb_expr_const(p, BB_F32, 0), *steps = bb_expr_const(p, BB_F32, 255);
  const bb_expr *least = f_min(p, bb_onnx_arg(n, 0, range[0]), nothing);
  const bb_expr *most = f_max(p, bb_onnx_arg(n, 1, range[1]), nothing);
  const bb_expr *step = f_div(p, f_sub(p, most, least), steps);
  bb_onnx_value *scale = bb_onnx_map(n, step, 2, range);
  const bb_expr *level = bb_expr_make(p, BB_X_ROUND, f_div(p, f_neg(p, least), step), NULL, NULL);
  level = f_min(p, f_max(p, level, nothing), steps);
  bb_onnx_value *zero_point = bb_onnx_map(n, bb_expr_cast(p, BB_I32, level), 2, range);
  zero_point->stored = BB_U8;
  part[0] = quantized(n, x, scale, zero_point, BB_U8, 0);
  part[1] = scale;
  part[2] = zero_point;
}

void bb_onnx_quantize_dynamically(bb_onnx_node *n) {
  bb_onnx_value *part[3];
  bb_onnx_quantize_parts(n, n->in[0], part);
  for (uint32_t i = 0; i < n->nout; i++) n->out[i] = part[i];
}

/* --- from integers --- */

bb_onnx_value *bb_onnx_dequantized(const bb_onnx_node *n, bb_onnx_value *x, bb_onnx_value *scale,
                                   bb_onnx_value *zero_point, uint32_t axis, int64_t block) {
  if (zero_point)
    x = bb_onnx_binary_map(n, BB_X_SUB, x, bb_onnx_scale_along(n, zero_point, x, axis, block));
  scale = bb_onnx_f32(n, bb_onnx_scale_along(n, scale, x, axis, block));
  return bb_onnx_binary_map(n, BB_X_MUL, bb_onnx_f32(n, x), scale);
}

void bb_onnx_dequantize(bb_onnx_node *n) {
  bb_onnx_value *x = n->in[0], *scale = n->in[1];
  bb_onnx_value *zero_point = n->nin > 2 ? n->in[2] : NULL;
  uint32_t axis = axis_of(n);
  int64_t block = block_of(n);
  bb_dtype dtype = scale->dtype;
  int64_t type = bb_onnx_int(n, "output_dtype", 0);
  if ((bb_dtype_is_float(x->dtype) && !x->bits) || x->dtype == BB_BOOL)
    bb_onnx_refuse(n, "an operand that must be integers is %s", bb_dtype_name(x->stored));
  if (type && (type > 64 || !bb_onnx_dtype((int32_t)type, &dtype) || !bb_dtype_is_float(dtype)))
    bb_onnx_refuse(n, "a result of %s", bb_onnx_dtype_name((int32_t)type));
  bb_onnx_want_float(n, scale);
  n->out[0] = bb_onnx_cast(n, bb_onnx_dequantized(n, x, scale, zero_point, axis, block), dtype);
}
