/* norm.c - normalisations, written out as the sums, shifts and scales that they are. */
#include "convert.h"
#include "formula.h"

#include <string.h>

/* The axes from `first` on, all kept with extent 1. */
static bb_onnx_value *sum_from(const bb_onnx_node *n, bb_onnx_value *v, uint32_t first) {
  int64_t axes[BB_ONNX_RANK];
  for (uint32_t a = first; a < v->rank; a++) axes[a - first] = a;
  return bb_onnx_reduce(n, BB_MONOID_SUM, v, v->rank - first, axes, true);
}

static bb_onnx_value *square(const bb_onnx_node *n, bb_onnx_value *v) {
  const bb_expr *x = bb_onnx_arg(n, 0, v);
  return bb_onnx_map(n, f_pow(n->m->program, x, f_num(n->m->program, x, 2)), 1, &v);
}

typedef struct moments {
  bb_onnx_value *normal;  /* what is left of x, in the type of x */
  bb_onnx_value *mean;    /* NULL for a norm without one */
  bb_onnx_value *inverse; /* of the deviation */
} moments;

/* (x - mean) / sqrt(E[(x - mean)^2] + eps) over the axes from `first` on. */
static moments standardise(const bb_onnx_node *n, bb_onnx_value *x, uint32_t first, double eps) {
  bb_program *p = n->m->program;
  bb_dtype dtype = x->dtype;
  x = bb_onnx_cast(n, x, bb_onnx_fold_dtype(dtype));
  const bb_expr *length = bb_onnx_length(n, x->dtype, x->rank - first, x->shape + first);
  bb_onnx_value *sum = sum_from(n, x, first);
  const bb_expr *s = bb_onnx_arg(n, 0, sum);
  bb_onnx_value *shift = bb_onnx_map(n, f_div(p, f_neg(p, s), length), 1, &sum);
  bb_onnx_value *centred = bb_onnx_binary_map(n, BB_X_ADD, x, shift);
  bb_onnx_value *squares = sum_from(n, square(n, centred), first);
  const bb_expr *q = bb_onnx_arg(n, 0, squares), *variance = f_div(p, q, length);
  const bb_expr *root = f_pow(p, f_add(p, variance, f_num(p, q, eps)), f_num(p, q, -0.5));
  bb_onnx_value *inverse = bb_onnx_map(n, root, 1, &squares);
  moments result = {.inverse = inverse};
  result.mean = bb_onnx_map(n, f_neg(p, bb_onnx_arg(n, 0, shift)), 1, &shift);
  result.normal = bb_onnx_cast(n, bb_onnx_binary_map(n, BB_X_MUL, centred, inverse), dtype);
  return result;
}

/* x / sqrt(E[x^2] + eps) */
static moments scale_to_unit(const bb_onnx_node *n, bb_onnx_value *x, uint32_t first, double eps) {
  bb_program *p = n->m->program;
  bb_dtype dtype = x->dtype;
  x = bb_onnx_cast(n, x, bb_onnx_fold_dtype(dtype));
  const bb_expr *length = bb_onnx_length(n, x->dtype, x->rank - first, x->shape + first);
  bb_onnx_value *squares = sum_from(n, square(n, x), first);
  const bb_expr *q = bb_onnx_arg(n, 0, squares);
  const bb_expr *root = f_sqrt(p, f_add(p, f_div(p, q, length), f_num(p, q, eps)));
  bb_onnx_value *inverse = bb_onnx_map(n, f_div(p, f_num(p, q, 1), root), 1, &squares);
  bb_onnx_value *normal = bb_onnx_binary_map(n, BB_X_MUL, x, inverse);
  return (moments){.normal = bb_onnx_cast(n, normal, dtype), .inverse = inverse};
}

/* normal * scale + bias; either may be NULL. */
static bb_onnx_value *affine(const bb_onnx_node *n, bb_onnx_value *v, bb_onnx_value *scale,
                             bb_onnx_value *bias) {
  if (scale) v = bb_onnx_binary_map(n, BB_X_MUL, v, bb_onnx_cast(n, scale, v->dtype));
  if (bias) v = bb_onnx_binary_map(n, BB_X_ADD, v, bb_onnx_cast(n, bias, v->dtype));
  return v;
}

void bb_onnx_layer_norm(bb_onnx_node *n) {
  bb_onnx_value *x = n->in[0];
  bb_onnx_want_float(n, x);
  uint32_t axis = bb_onnx_axis(n, bb_onnx_int(n, "axis", -1), x->rank);
  moments m = standardise(n, x, axis, bb_onnx_float(n, "epsilon", 1e-5));
  n->out[0] = affine(n, m.normal, n->in[1], bb_onnx_operand(n, 2));
  if (n->nout > 1) n->out[1] = m.mean;
  if (n->nout > 2) n->out[2] = m.inverse;
}

void bb_onnx_rms_norm(bb_onnx_node *n) {
  bb_onnx_value *x = n->in[0];
  bb_onnx_want_float(n, x);
  uint32_t axis = bb_onnx_axis(n, bb_onnx_int(n, "axis", -1), x->rank);
  moments m = scale_to_unit(n, x, axis, bb_onnx_float(n, "epsilon", 1e-5));
  n->out[0] = affine(n, m.normal, n->in[1], NULL);
  if (n->nout > 1) n->out[1] = m.inverse;
}

/* A norm of input + skip + bias; detail 1: without mean and beta. */
void bb_onnx_skip_norm(bb_onnx_node *n) {
  bool simple = n->row->detail;
  bb_onnx_value *beta = simple ? NULL : bb_onnx_operand(n, 3),
                *bias = bb_onnx_operand(n, simple ? 3 : 4);
  bb_onnx_want_float(n, n->in[0]);
  bb_onnx_same_dtype(n, 2, n->in);
  double eps = bb_onnx_float(n, "epsilon", 1e-12);
  bb_onnx_value *sum = bb_onnx_binary_map(n, BB_X_ADD, n->in[0], n->in[1]);
  sum = affine(n, sum, NULL, bias);
  if (!sum->rank) bb_onnx_refuse(n, "input 0 is a scalar");
  moments m =
      simple ? scale_to_unit(n, sum, sum->rank - 1, eps) : standardise(n, sum, sum->rank - 1, eps);
  n->out[0] = affine(n, m.normal, n->in[2], beta);
  if (n->nout > 1) n->out[1] = m.mean;
  if (n->nout > 2) n->out[2] = m.inverse;
  if (n->nout > 3) n->out[3] = sum;
}

/* Rows of tables for words, positions and segments, their sum and its norm. */
void bb_onnx_embed_norm(bb_onnx_node *n) {
  bb_onnx_value *ids = n->in[0], *segments = bb_onnx_operand(n, 1),
                *positions = bb_onnx_operand(n, 8);
  bb_onnx_value *mask = bb_onnx_operand(n, 7), *table = bb_onnx_operand(n, 3);
  if (!bb_onnx_operand(n, 2) || !table || !bb_onnx_operand(n, 5) || !bb_onnx_operand(n, 6))
    bb_onnx_refuse(n, "a table, gamma or beta is missing");
  if (ids->rank != 2 || n->in[2]->rank != 2 || table->rank != 2)
    bb_onnx_refuse(n, "words or a table have not 2 axes");
  if (!segments != !bb_onnx_operand(n, 4)) bb_onnx_refuse(n, "segments come with their table");
  bb_onnx_value *sum = bb_onnx_gather_along(n, n->in[2], 0, ids);
  if (!positions) {
    const bb_expr *place = bb_expr_coord(n->m->program, BB_COORD_AXIS);
    positions = bb_onnx_value_of_form(n->m, place, 1, &ids->shape[1]);
  }
  sum = bb_onnx_binary_map(n, BB_X_ADD, sum, bb_onnx_gather_along(n, table, 0, positions));
  if (segments)
    sum = bb_onnx_binary_map(n, BB_X_ADD, sum, bb_onnx_gather_along(n, n->in[4], 0, segments));
  moments m = standardise(n, sum, 2, bb_onnx_float(n, "epsilon", 1e-12));
  n->out[0] = affine(n, m.normal, n->in[5], n->in[6]);
  if (n->nout > 1) {
    const int64_t axis = 1;
    n->out[1] = mask ? bb_onnx_reduce(n, BB_MONOID_SUM, mask, 1, &axis, false)
                     : bb_onnx_broadcast(n, bb_onnx_scalar(n->m, BB_I32, 0), 1, ids->shape);
  }
  if (n->nout > 2) n->out[2] = sum;
}

/* A vector of one value per channel in a shape that broadcasts against [N, C, ...]. */
static bb_onnx_value *per_channel(const bb_onnx_node *n, bb_onnx_value *v, uint32_t rank) {
  const bb_extent *shape[BB_ONNX_RANK];
  if (v->rank != 1)
    bb_onnx_refuse(n, "an operand of shape %s is not a vector", bb_onnx_shape_text(n->m, v));
  shape[0] = v->shape[0];
  for (uint32_t a = 1; a + 1 < rank; a++) shape[a] = bb_onnx_number(n->m, 1);
  return bb_onnx_reshape(n, v, rank - 1, shape);
}

/* Channels in groups: [N, G, C/G, ...].  Until opset 20 scale and bias were per group. */
void bb_onnx_group_norm(bb_onnx_node *n) {
  bb_onnx *m = n->m;
  bb_onnx_value *x = n->in[0];
  bool channels = n->row->detail;
  int64_t groups = bb_onnx_int(n, "num_groups", 0);
  const bb_extent *shape[BB_ONNX_RANK + 1];
  bb_onnx_want_float(n, x);
  if (x->rank < 2 || x->rank >= BB_ONNX_RANK) bb_onnx_refuse(n, "input 0 has rank %u", x->rank);
  const bb_extent *each =
      groups > 0 ? bb_extent_divide(m->program, x->shape[1], bb_onnx_number(m, groups)) : NULL;
  if (!each) bb_onnx_refuse(n, "num_groups %lld does not divide the channels", (long long)groups);
  shape[0] = x->shape[0];
  shape[1] = bb_onnx_number(m, groups);
  shape[2] = each;
  for (uint32_t a = 2; a < x->rank; a++) shape[a + 1] = x->shape[a];
  bb_onnx_value *grouped = bb_onnx_reshape(n, x, x->rank + 1, shape);
  bb_onnx_value *y = standardise(n, grouped, 2, bb_onnx_float(n, "epsilon", 1e-5)).normal;
  if (!channels)
    y = affine(n, y, per_channel(n, n->in[1], x->rank + 1), per_channel(n, n->in[2], x->rank + 1));
  y = bb_onnx_reshape(n, y, x->rank, x->shape);
  if (channels)
    y = affine(n, y, per_channel(n, n->in[1], x->rank), per_channel(n, n->in[2], x->rank));
  n->out[0] = y;
}

void bb_onnx_instance_norm(bb_onnx_node *n) {
  bb_onnx_value *x = n->in[0];
  bb_onnx_want_float(n, x);
  if (x->rank < 3) bb_onnx_refuse(n, "input 0 has rank %u", x->rank);
  moments m = standardise(n, x, 2, bb_onnx_float(n, "epsilon", 1e-5));
  n->out[0] =
      affine(n, m.normal, per_channel(n, n->in[1], x->rank), per_channel(n, n->in[2], x->rank));
}

/* Of every channel of [N, C, ...], over all other axes. */
static bb_onnx_value *channel_mean(const bb_onnx_node *n, bb_onnx_value *v) {
  int64_t axes[BB_ONNX_RANK];
  const bb_extent *folded[BB_ONNX_RANK];
  uint32_t count = 0;
  for (uint32_t a = 0; a < v->rank; a++)
    if (a != 1) axes[count] = a, folded[count++] = v->shape[a];
  bb_onnx_value *sum = bb_onnx_reduce(n, BB_MONOID_SUM, v, count, axes, false);
  const bb_expr *s = bb_onnx_arg(n, 0, sum);
  const bb_expr *mean = f_div(n->m->program, s, bb_onnx_length(n, v->dtype, count, folded));
  return bb_onnx_map(n, mean, 1, &sum);
}

/* What was there times the momentum, and what is new times the rest. */
static bb_onnx_value *running(const bb_onnx_node *n, bb_onnx_value *old, bb_onnx_value *fresh) {
  bb_program *p = n->m->program;
  double keep = bb_onnx_float(n, "momentum", 0.9f);
  bb_onnx_value *pair[2] = {bb_onnx_cast(n, old, fresh->dtype), fresh};
  const bb_expr *a = bb_onnx_arg(n, 0, pair[0]), *b = bb_onnx_arg(n, 1, pair[1]);
  const bb_expr *sum = f_add(p, f_mul(p, a, f_num(p, a, keep)), f_mul(p, b, f_num(p, b, 1 - keep)));
  return bb_onnx_cast(n, bb_onnx_map(n, sum, 2, pair), old->dtype);
}

/* One scale and one shift per channel, of the statistics of training; in training of x itself, which then
 * go into those. */
void bb_onnx_batch_norm(bb_onnx_node *n) {
  bb_program *p = n->m->program;
  bb_onnx_value *x = n->in[0], *scale = n->in[1], *bias = n->in[2], *mean = n->in[3],
                *var = n->in[4];
  double eps = bb_onnx_float(n, "epsilon", 1e-5);
  bool training = bb_onnx_int(n, "training_mode", 0);
  if (!training && n->nout > 1) {
    bb_onnx_unsupported(n, "results of training, which opset 14 has under training_mode");
    return;
  }
  bb_onnx_want_float(n, x);
  if (x->rank < 2) bb_onnx_refuse(n, "input 0 has rank %u", x->rank);
  if (training) {
    bb_onnx_value *wide = bb_onnx_cast(n, x, bb_onnx_fold_dtype(x->dtype));
    bb_onnx_value *first = channel_mean(n, wide), *negative = first;
    negative = bb_onnx_map(n, f_neg(p, bb_onnx_arg(n, 0, first)), 1, &negative);
    bb_onnx_value *apart = bb_onnx_binary_map(n, BB_X_ADD, wide, per_channel(n, negative, x->rank));
    bb_onnx_value *second = channel_mean(n, square(n, apart));
    if (n->nout > 1) n->out[1] = running(n, mean, first);
    if (n->nout > 2) n->out[2] = running(n, var, second);
    mean = bb_onnx_cast(n, first, mean->dtype);
    var = bb_onnx_cast(n, second, var->dtype);
  }
  const bb_expr *v = bb_onnx_arg(n, 0, var), *s = bb_onnx_arg(n, 1, scale);
  const bb_expr *root = f_sqrt(p, f_add(p, v, f_num(p, v, eps)));
  bb_onnx_value *factor = bb_onnx_map(n, f_div(p, s, root), 2, (bb_onnx_value *[]){var, scale});
  const bb_expr *b = bb_onnx_arg(n, 0, bias), *mu = bb_onnx_arg(n, 1, mean);
  bb_onnx_value *shift = bb_onnx_map(n, f_sub(p, b, f_mul(p, mu, bb_onnx_arg(n, 2, factor))), 3,
                                     (bb_onnx_value *[]){bias, mean, factor});
  n->out[0] = affine(n, x, per_channel(n, factor, x->rank), per_channel(n, shift, x->rank));
}

void bb_onnx_lp_norm(bb_onnx_node *n) {
  bb_program *p = n->m->program;
  bb_onnx_value *x = n->in[0];
  bb_onnx_want_float(n, x);
  int64_t power = bb_onnx_int(n, "p", 2);
  int64_t axis = bb_onnx_axis(n, bb_onnx_int(n, "axis", -1), x->rank);
  if (power != 1 && power != 2) bb_onnx_refuse(n, "p is %lld; it is 1 or 2", (long long)power);
  const bb_expr *a = bb_onnx_arg(n, 0, x);
  bb_onnx_value *terms = power == 2 ? square(n, x) : bb_onnx_map(n, f_abs(p, a), 1, &x);
  bb_onnx_value *norm = bb_onnx_reduce(n, BB_MONOID_SUM, terms, 1, &axis, true);
  const bb_expr *s = bb_onnx_arg(n, 0, norm);
  norm = bb_onnx_map(n, power == 2 ? f_sqrt(p, s) : s, 1, &norm);
  const bb_expr *d = bb_onnx_arg(n, 1, norm), *zero = f_num(p, d, 0);
  const bb_expr *quotient = f_select(p, f_eq(p, d, zero), zero, f_div(p, a, d));
  n->out[0] = bb_onnx_map(n, quotient, 2, (bb_onnx_value *[]){x, norm});
}

/* (x - mean) / (deviation + 1e-9) over the axes that an attribute lists. */
void bb_onnx_mean_variance_norm(bb_onnx_node *n) {
  static const int64_t usual[] = {0, 2, 3};
  bb_program *p = n->m->program;
  bb_onnx_value *x = n->in[0];
  uint32_t count;
  int64_t axes[BB_ONNX_RANK];
  const bb_extent *folded[BB_ONNX_RANK];
  bool along[BB_ONNX_RANK] = {false};
  const int64_t *given = bb_onnx_ints(n, "axes", &count);
  bb_onnx_want_float(n, x);
  if (!given) count = 3;
  for (uint32_t i = 0; i < count; i++)
    along[bb_onnx_axis(n, given ? given[i] : usual[i], x->rank)] = true;
  count = 0;
  for (uint32_t a = 0; a < x->rank; a++)
    if (along[a]) axes[count++] = a;
  for (uint32_t i = 0; i < count; i++) folded[i] = x->shape[axes[i]];
  const bb_expr *length = bb_onnx_length(n, x->dtype, count, folded);
  bb_onnx_value *sum = bb_onnx_reduce(n, BB_MONOID_SUM, x, count, axes, true);
  const bb_expr *s = bb_onnx_arg(n, 0, sum);
  bb_onnx_value *shift = bb_onnx_map(n, f_div(p, f_neg(p, s), length), 1, &sum);
  bb_onnx_value *centred = bb_onnx_binary_map(n, BB_X_ADD, x, shift);
  bb_onnx_value *squares = bb_onnx_reduce(n, BB_MONOID_SUM, square(n, centred), count, axes, true);
  const bb_expr *q = bb_onnx_arg(n, 0, squares);
  const bb_expr *deviation = f_add(p, f_sqrt(p, f_div(p, q, length)), f_num(p, q, 1e-9));
  bb_onnx_value *inverse = bb_onnx_map(n, f_div(p, f_num(p, q, 1), deviation), 1, &squares);
  n->out[0] = bb_onnx_binary_map(n, BB_X_MUL, centred, inverse);
}
