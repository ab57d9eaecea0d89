/* convert.h - the converters that operator.def names, the file that has each, and their details. */
#ifndef BB_ONNX_CONVERT_H
#define BB_ONNX_CONVERT_H

#include "import.h"

/* The formulas of elementwise.c. */
enum {
  F_RECIPROCAL,
  F_TAN,
  F_ATAN,
  F_ASIN,
  F_ACOS,
  F_SINH,
  F_COSH,
  F_ASINH,
  F_ACOSH,
  F_ATANH,
  F_RELU,
  F_SIGMOID,
  F_LEAKY_RELU,
  F_THRESHOLDED_RELU,
  F_ELU,
  F_CELU,
  F_SELU,
  F_SHRINK,
  F_SOFTPLUS,
  F_SOFTSIGN,
  F_HARD_SIGMOID,
  F_HARD_SWISH,
  F_MISH,
  F_GELU,
  F_TANH_GELU,
  F_SWISH,
  F_QUICK_GELU,
  F_COUNT
};

/* The reductions of reduce.c. */
enum { R_SUM, R_MEAN, R_MAX, R_MIN, R_PROD, R_L1, R_L2, R_SUM_SQUARE, R_LOG_SUM, R_LOG_SUM_EXP };

#define BB_ONNX(domain, name, since, converter, least, most, outputs, detail)                      \
  bb_onnx_converter bb_onnx_##converter;
#define BB_ONNX_KERNEL(domain, name, since, converter, least, most, outputs)                       \
  bb_onnx_converter bb_onnx_##converter;
#include "operator.def"
#undef BB_ONNX
#undef BB_ONNX_KERNEL

#define BB_ONNX_OLDER(name, last, converter, least, most, outputs, detail)                         \
  bb_onnx_converter bb_onnx_##converter;
#include "older.def"
#undef BB_ONNX_OLDER

/* --- shared by converters --- */

/* NULL: the node has no such operand. */
static inline bb_onnx_value *bb_onnx_operand(const bb_onnx_node *n, uint32_t i) {
  return i < n->nin ? n->in[i] : NULL;
}
static inline bb_onnx_value *bb_onnx_f32(const bb_onnx_node *n, bb_onnx_value *v) {
  return bb_onnx_cast(n, v, BB_F32);
}
/* Refuses operands that do not have one type. */
void bb_onnx_same_dtype(const bb_onnx_node *n, uint32_t count, bb_onnx_value *const *v);
void bb_onnx_want_float(const bb_onnx_node *n, const bb_onnx_value *v);
/* v (op) w, broadcast. */
bb_onnx_value *bb_onnx_binary_map(const bb_onnx_node *n, bb_expr_op op, bb_onnx_value *v,
                                  bb_onnx_value *w);
/* The formula F_... of x, with the node's attributes. */
const bb_expr *bb_onnx_formula_of(const bb_onnx_node *n, int formula, const bb_expr *x);

/* The index along an axis of a result of the shape of v; 0 along an axis of extent 1. */
const bb_expr *bb_onnx_index_along(bb_onnx *m, const bb_onnx_value *v, uint32_t axis);
/* The number of elements along `count` axes as a number of type `dtype`. */
const bb_expr *bb_onnx_length(const bb_onnx_node *n, bb_dtype dtype, uint32_t count,
                              const bb_extent *const *extent);
/* The type that folds of 16-bit floats are computed in: f32. */
bb_dtype bb_onnx_fold_dtype(bb_dtype dtype);
/* pad.c: so many more elements before and behind an axis. */
bb_onnx_value *bb_onnx_pad_with(const bb_onnx_node *n, bb_onnx_value *v, uint32_t axis,
                                int64_t before, int64_t after, double fill);
/* exp(x) / sum exp(x) along an axis, in the type of x. */
bb_onnx_value *bb_onnx_softmax_of(const bb_onnx_node *n, bb_onnx_value *x, uint32_t axis);
/* x - log sum exp(x) along an axis, in the type of x. */
bb_onnx_value *bb_onnx_log_softmax_of(const bb_onnx_node *n, bb_onnx_value *x, uint32_t axis);

/* 1 at the first largest element along an axis, 0 elsewhere. */
bb_onnx_value *bb_onnx_hardmax_of(const bb_onnx_node *n, bb_onnx_value *x, uint32_t axis);

/* a times b by numpy's matmul rule, transposed first as asked. */
bb_onnx_value *bb_onnx_product_of(const bb_onnx_node *n, bb_onnx_value *a, bool transpose_a,
                                  bb_onnx_value *b, bool transpose_b);

/* The last axis of x, or its first `rotary` elements, rotated pair by pair by the angles whose
 * cosines and sines are given, in shapes that broadcast against x with half as many elements. */
bb_onnx_value *bb_onnx_rotate(const bb_onnx_node *n, bb_onnx_value *x, bb_onnx_value *cosine,
                              bb_onnx_value *sine, int64_t rotary, bool interleaved);

/* Heads out of the last axis: [B, S, heads * D] to [B, S, heads, D]. */
bb_onnx_value *bb_onnx_split_heads(const bb_onnx_node *n, bb_onnx_value *v, int64_t heads);
/* Exchanges axes 1 and 2 of [B, S, heads, D]. */
bb_onnx_value *bb_onnx_swap_heads(const bb_onnx_node *n, bb_onnx_value *v);
/* Joins the last two axes. */
bb_onnx_value *bb_onnx_merge_heads(const bb_onnx_node *n, bb_onnx_value *v);

/* A scale or zero point, one for all, or one for each index along an axis of x, or (block > 0) for
 * each block of so many, in a shape that broadcasts against x. */
bb_onnx_value *bb_onnx_scale_along(const bb_onnx_node *n, bb_onnx_value *v, const bb_onnx_value *x,
                                   uint32_t axis, int64_t block);
/* (x - zero_point) * scale in f32; zero_point NULL: 0. */
bb_onnx_value *bb_onnx_dequantized(const bb_onnx_node *n, bb_onnx_value *x, bb_onnx_value *scale,
                                   bb_onnx_value *zero_point, uint32_t axis, int64_t block);
/* round(x / scale) + zero_point, kept within the zero point's type, or (NULL: 0) within `stored`;
 * refuses other types than quantised ones. */
bb_onnx_value *bb_onnx_quantized(const bb_onnx_node *n, bb_onnx_value *x, bb_onnx_value *scale,
                                 bb_onnx_value *zero_point, bb_dtype stored, uint32_t axis);
/* x in 8 bits without a sign: its range, 0 within it, is cut into 255 steps.  part: elements,
 * scale, zero point. */
void bb_onnx_quantize_parts(const bb_onnx_node *n, bb_onnx_value *x, bb_onnx_value *part[3]);

/* The convolution of in[0] with weights in[1] and a bias in[2], if nin is 3, with the node's
 * attributes, of floats or of integers; `unsupported` where it was reported so. */
bb_onnx_value *bb_onnx_convolve(const bb_onnx_node *n, uint32_t nin, bb_onnx_value **in);

/* v at indices along an axis: known elements or a slice where the indices allow it, else the
 * reference kernel of Gather. */
bb_onnx_value *bb_onnx_gather_along(const bb_onnx_node *n, bb_onnx_value *v, uint32_t axis,
                                    bb_onnx_value *index);

/* A misc node for a kernel's name, version and attributes; operands may be NULL (absent); out[i]
 * are values with types and shapes, which become results of the node. */
void bb_onnx_misc_node(const bb_onnx_node *n, const bb_misc *kernel, uint32_t nin,
                       bb_onnx_value *const *in, uint32_t nout, bb_onnx_value **out);

/* The kernel of the node's own operator, and a node for it with one result. */
bb_misc bb_onnx_own_kernel(const bb_onnx_node *n);
void bb_onnx_misc_result(bb_onnx_node *n, bb_dtype dtype, uint32_t rank,
                         const bb_extent *const *shape);

/* Scores, masks, softmax and the weighted sum: what the attention operators have in common. */
typedef struct bb_onnx_scores {
  bb_onnx_value *q, *k, *v; /* [B, heads, S, D], [B, kv_heads, T, D], [B, kv_heads, T, E] */
  double scale, softcap;    /* softcap 0: none */
  bb_onnx_value *mask;      /* bool: true attends; float: is added; NULL: none */
  bool causal;              /* query i sees key j if j <= i + offset */
  const bb_expr *offset;    /* NULL: 0 */
  bb_onnx_value *length;    /* keys that are there, per batch ([B]); NULL: all */
  bool from_length;         /* offset is length - S */
  int64_t left, right;      /* keys seen before and after the query's own; -1: all */
  bb_onnx_value *sink;      /* a score in each row's sum that weighs nothing: [heads] or a scalar;
                               NULL: none */
  bb_dtype precision;       /* of the softmax */
  /* Graphs of one tensor [B, heads, S, T] that the capped scores, and the weights, pass through; in
   * the softmax's precision; NULL: none. */
  const Onnx__GraphProto *change_scores, *change_weights;
  /* results */
  bb_onnx_value *raw, *capped, *masked, *weights, *out; /* out: [B, heads, S, E] */
} bb_onnx_scores;
/* Puts a cache's keys and values, both [B, kv_heads, P, D], before the new ones. */
void bb_onnx_join_past(const bb_onnx_node *n, bb_onnx_scores *s, bb_onnx_value *keys,
                       bb_onnx_value *values);
void bb_onnx_attend(const bb_onnx_node *n, bb_onnx_scores *s);

#endif
