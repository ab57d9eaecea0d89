/* quantized.c - operators on quantised tensors: products and convolutions of the integers themselves, and operators on
 * the numbers that they stand for, each made of what it is on numbers.
 */
#include "convert.h"
#include "formula.h"

#include <string.h>

static bb_onnx_value *times(const bb_onnx_node *n, bb_onnx_value *v, bb_onnx_value *w) {
  return bb_onnx_binary_map(n, BB_X_MUL, v, w);
}

/* A scale in f32 that goes along an axis of v. */
static bb_onnx_value *scale_of(const bb_onnx_node *n, bb_onnx_value *scale, const bb_onnx_value *v,
                               uint32_t axis) {
  return bb_onnx_f32(n, bb_onnx_scale_along(n, scale, v, axis, 0));
}

/* v less its zero point, which goes along an axis of v or stands for each element. */
static bb_onnx_value *centred(const bb_onnx_node *n, bb_onnx_value *v, bb_onnx_value *zero_point,
                              uint32_t axis) {
  v = bb_onnx_cast(n, v, BB_I32);
  if (!zero_point) return v;
  zero_point = bb_onnx_cast(n, zero_point, BB_I32);
  if (zero_point->rank <= 1) zero_point = bb_onnx_scale_along(n, zero_point, v, axis, 0);
  return bb_onnx_binary_map(n, BB_X_SUB, v, zero_point);
}

static uint32_t column_axis(const bb_onnx_value *v) {
  return v->rank ? v->rank - 1 : 0;
}

static uint32_t row_axis(const bb_onnx_value *v) {
  return v->rank > 1 ? v->rank - 2 : 0;
}

/* --- products --- */

/* Zero points are those of a's rows, of b's columns, or of all. */
static bb_onnx_value *product(const bb_onnx_node *n, bb_onnx_value *a, bb_onnx_value *a_zero,
                              bb_onnx_value *b, bb_onnx_value *b_zero) {
  return bb_onnx_product_of(n, centred(n, a, a_zero, row_axis(a)), false,
                            centred(n, b, b_zero, column_axis(b)), false);
}

/* The sum of products of integers as the number it is, with a bias of numbers (NULL: none). */
static bb_onnx_value *numbers(const bb_onnx_node *n, bb_onnx_value *sum, bb_onnx_value *a_scale,
                              bb_onnx_value *b_scale, bb_onnx_value *bias) {
  bb_onnx_value *scale = times(n, scale_of(n, a_scale, sum, row_axis(sum)),
                               scale_of(n, b_scale, sum, column_axis(sum)));
  sum = times(n, bb_onnx_f32(n, sum), scale);
  return bias ? bb_onnx_binary_map(n, BB_X_ADD, sum, bias) : sum;
}

void bb_onnx_matmul_integer(bb_onnx_node *n) {
  n->out[0] = product(n, n->in[0], bb_onnx_operand(n, 2), n->in[1], bb_onnx_operand(n, 3));
}

/* a, its scale and zero point; b, its; those of the result. */
void bb_onnx_matmul_quantized(bb_onnx_node *n) {
  bb_onnx_value **in = n->in;
  bb_onnx_value *y = numbers(n, product(n, in[0], in[2], in[3], in[5]), in[1], in[4], NULL);
  n->out[0] = bb_onnx_quantized(n, y, in[6], in[7], in[7]->stored, column_axis(y));
}

/* a and b, their scales, their zero points, a bias. */
void bb_onnx_matmul_to_float(bb_onnx_node *n) {
  bb_onnx_value **in = n->in,
                *sum = product(n, in[0], bb_onnx_operand(n, 4), in[1], bb_onnx_operand(n, 5));
  n->out[0] = numbers(n, sum, in[2], in[3], bb_onnx_operand(n, 6));
}

/* Numbers a that are quantised here; b with its scale and zero point; a bias. */
void bb_onnx_matmul_quantizing(bb_onnx_node *n) {
  bb_onnx_value *part[3];
  bb_onnx_quantize_parts(n, n->in[0], part);
  bb_onnx_value *sum = product(n, part[0], part[2], n->in[1], bb_onnx_operand(n, 3));
  n->out[0] = numbers(n, sum, part[1], n->in[2], bb_onnx_operand(n, 4));
}

/* a and b as QLinearMatMul has them, a bias in steps of both scales, the result's scale and zero point (none: it stays
 * a number). */
void bb_onnx_gemm_quantized(bb_onnx_node *n) {
  bb_onnx_value **in = n->in, *bias = bb_onnx_operand(n, 6);
  bool turn[2] = {bb_onnx_int(n, "transA", 0), bb_onnx_int(n, "transB", 0)};
  if (in[0]->rank != 2 || in[3]->rank != 2) bb_onnx_refuse(n, "an operand is not a matrix");
  bb_onnx_value *a = centred(n, in[0], in[2], turn[0] ? 1 : 0);
  bb_onnx_value *b = centred(n, in[3], in[5], turn[1] ? 0 : 1);
  bb_onnx_value *sum = bb_onnx_product_of(n, a, turn[0], b, turn[1]);
  if (bias) sum = bb_onnx_binary_map(n, BB_X_ADD, sum, bias);
  sum = numbers(n, sum, in[1], in[4], NULL);
  double alpha = bb_onnx_float(n, "alpha", 1);
  if (alpha != 1) sum = times(n, sum, bb_onnx_scalar(n->m, BB_F32, alpha));
  bb_onnx_value *scale = bb_onnx_operand(n, 7), *zero_point = bb_onnx_operand(n, 8);
  n->out[0] = scale ? bb_onnx_quantized(n, sum, scale, zero_point, in[0]->stored, 1) : sum;
}

/* --- convolutions --- */

/* [N, ..., C] to [N, C, ...], or back. */
static bb_onnx_value *move_channels(const bb_onnx_node *n, bb_onnx_value *v, bool to_front) {
  int64_t perm[BB_ONNX_RANK];
  if (v->rank < 3) return v;
  for (uint32_t a = 0; a < v->rank; a++) perm[a] = to_front ? a - 1 : a + 1;
  perm[0] = 0;
  perm[to_front ? 1 : v->rank - 1] = to_front ? v->rank - 1 : 1;
  return bb_onnx_transpose(n, v, perm);
}

void bb_onnx_convolve_integer(bb_onnx_node *n) {
  bb_onnx_value *in[2] = {centred(n, n->in[0], bb_onnx_operand(n, 2), 1),
                          centred(n, n->in[1], bb_onnx_operand(n, 3), 0)};
  n->out[0] = bb_onnx_convolve(n, 2, in);
}

/* x and weights, each with a scale and zero point (the weights' for each map or for all), those of the result, a bias in
 * steps of both scales. */
void bb_onnx_convolve_quantized(bb_onnx_node *n) {
  bb_onnx_value **in = n->in, *bias = bb_onnx_operand(n, 8), *x = in[0];
  bool last = bb_onnx_int(n, "channels_last", 0);
  if (last) x = move_channels(n, x, true);
  bb_onnx_value *of[3] = {centred(n, x, in[2], 1), centred(n, in[3], in[5], 0), bias};
  bb_onnx_value *y = bb_onnx_convolve(n, bias ? 3 : 2, of);
  if (y->unsupported) {
    n->out[0] = y;
    return;
  }
  bb_onnx_value *scale =
      times(n, bb_onnx_f32(n, bb_onnx_scale_along(n, in[1], y, 1, 0)), scale_of(n, in[4], y, 1));
  y = times(n, bb_onnx_f32(n, y), scale);
  if (last) y = move_channels(n, y, false);
  n->out[0] = bb_onnx_quantized(n, y, in[6], in[7], in[7]->stored, last ? y->rank - 1 : 1);
}

/* --- operators on what quantised tensors stand for --- */

enum { TRIPLE = 3, TRIPLES = 64 };

/* The operator that the name says behind "QLinear", on the numbers of the triples (elements, scale, zero point) in
 * in[0..count); its result in steps of `scale`. */
static bb_onnx_value *by_numbers(bb_onnx_node *n, uint32_t leading, uint32_t first, uint32_t count,
                                 bb_onnx_value *scale, bb_onnx_value *zero_point) {
  bb_onnx_value *of[TRIPLES + 1];
  bool last = bb_onnx_int(n, "channels_last", 0);
  if (count % TRIPLE == 2) count++; /* the last zero point is absent */
  if (count % TRIPLE || !count || count / TRIPLE > TRIPLES)
    bb_onnx_refuse(n, "operands that are not elements, scales and zero points");
  for (uint32_t i = 0; i < leading; i++) of[i] = n->in[i];
  for (uint32_t i = 0; i < count / TRIPLE; i++) {
    bb_onnx_value *x = bb_onnx_operand(n, first + TRIPLE * i),
                  *by = bb_onnx_operand(n, first + TRIPLE * i + 1);
    if (!x || !by) bb_onnx_refuse(n, "input %u or its scale is missing", first + TRIPLE * i);
    x = bb_onnx_dequantized(n, x, by, bb_onnx_operand(n, first + TRIPLE * i + 2), 0, 0);
    of[leading + i] = last ? move_channels(n, x, true) : x;
  }
  /* What counts axes from 1 on in older opsets has the last one here where none is told. */
  int64_t version = bb_onnx_has(n, "axis") ? bb_onnx_int(n, "opset", 13) : 13;
  bb_onnx_value *y = NULL;
  bb_onnx_convert_as(n, n->row->name + strlen("QLinear"), version, leading + count / TRIPLE, of, 1,
                     &y);
  if (y->unsupported) return y;
  if (last) y = move_channels(n, y, false);
  return bb_onnx_quantized(n, y, scale, zero_point, n->in[first]->stored, 0);
}

/* detail: how many triples there are, before the result's scale and zero point; 0: these stand first, and any number of
 * triples behind them. */
void bb_onnx_quantized_operator(bb_onnx_node *n) {
  uint32_t triples = (uint32_t)n->row->detail, all = TRIPLE * triples;
  n->out[0] = triples ? by_numbers(n, 0, 0, all, n->in[all], bb_onnx_operand(n, all + 1))
                      : by_numbers(n, 0, 2, n->nin - 2, n->in[0], n->in[1]);
}

/* A condition stands before the triples. */
void bb_onnx_quantized_where(bb_onnx_node *n) {
  n->out[0] = by_numbers(n, 1, 1, 2 * TRIPLE, n->in[7], bb_onnx_operand(n, 8));
}
