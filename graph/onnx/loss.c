/* loss.c - losses of class labels: NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss.
 *
 * What a label picks along the axis of classes is a sum in which every other class counts as 0, a
 * mask of coordinates: no gather stands in the way of fusing it with the sum of exps.
 */
#include "convert.h"
#include "formula.h"

#include <math.h>
#include <string.h>

typedef struct labels {
  bb_onnx_value *label; /* [N, 1, ...] */
  int64_t ignored;
  bool ignores;
} labels;

static labels labels_of(const bb_onnx_node *n, const bb_onnx_value *x, bb_onnx_value *label) {
  const bb_extent *shape[BB_ONNX_RANK];
  if (x->rank < 2 || label->rank != x->rank - 1)
    bb_onnx_refuse(n, "labels of rank %u for input 0 of rank %u", label->rank, x->rank);
  if (label->dtype != BB_I32 && label->dtype != BB_I64)
    bb_onnx_refuse(n, "the labels are not integers");
  for (uint32_t a = 0; a < x->rank; a++) {
    shape[a] = a == 1 ? bb_onnx_number(n->m, 1) : label->shape[a - (a > 1)];
    if (a != 1 && !bb_onnx_same_extent(n, x->shape[a], shape[a]))
      bb_onnx_refuse(n, "axis %u of the labels is not that of input 0", a - (a > 1));
  }
  return (labels){.label = bb_onnx_reshape(n, label, x->rank, shape),
                  .ignores = bb_onnx_has(n, "ignore_index"),
                  .ignored = bb_onnx_int(n, "ignore_index", 0)};
}

/* The class along axis 1 of a tensor of this shape. */
static bb_onnx_value *classes(bb_onnx *m, uint32_t rank, const bb_extent *const *shape) {
  bb_program *p = m->program;
  bb_onnx_value *v = bb_onnx_value_new(m, BB_I64, rank, shape);
  v->form = bb_onnx_is_one(shape[1]) ? bb_expr_const(p, BB_I64, 0)
                                     : bb_expr_coord(p, BB_COORD_AXIS + rank - 2);
  return v;
}

/* The element of v, [N or 1, C, ...], that each label names: [N, 1, ...].  `ignored` stands where
 * the label is the ignored one, NaN where it names no class. */
static bb_onnx_value *picked(const bb_onnx_node *n, const labels *l, bb_onnx_value *v) {
  bb_program *p = n->m->program;
  int64_t axis = 1;
  bb_onnx_value *pair[3] = {v, l->label, classes(n->m, v->rank, v->shape)};
  const bb_expr *x = bb_onnx_arg(n, 0, v), *label = bb_onnx_arg(n, 1, l->label);
  const bb_expr *at = bb_onnx_arg(n, 2, pair[2]), *none = f_num(p, x, 0);
  label = bb_expr_cast(p, BB_I64, label);
  bb_onnx_value *one = bb_onnx_map(n, f_select(p, f_eq(p, label, at), x, none), 3, pair);
  one = bb_onnx_reduce(n, BB_MONOID_SUM, one, 1, &axis, true);

  bb_onnx_value *both[2] = {one, l->label};
  const bb_expr *sum = bb_onnx_arg(n, 0, one), *zero = bb_expr_const(p, BB_I64, 0);
  const bb_expr *end = bb_onnx_extent_expr(n->m, v->shape[1]);
  label = bb_expr_cast(p, BB_I64, bb_onnx_arg(n, 1, l->label));
  const bb_expr *named = f_and(p, f_le(p, zero, label), f_lt(p, label, end));
  sum = f_select(p, named, sum, f_num(p, sum, NAN));
  if (l->ignores) {
    const bb_expr *skip = f_eq(p, label, bb_expr_const(p, BB_I64, (double)l->ignored));
    sum = f_select(p, skip, f_num(p, sum, 0), sum);
  }
  return bb_onnx_map(n, sum, 2, both);
}

/* 1 for each label that counts, or its class's weight; NULL: all count the same. */
static bb_onnx_value *weights(const bb_onnx_node *n, const labels *l, const bb_onnx_value *x,
                              bb_onnx_value *given) {
  bb_program *p = n->m->program;
  const bb_extent *shape[BB_ONNX_RANK];
  if (given) {
    bb_onnx_same_dtype(n, 2, (bb_onnx_value *[]){(bb_onnx_value *)x, given});
    if (given->rank != 1 || !bb_onnx_same_extent(n, x->shape[1], given->shape[0]))
      bb_onnx_refuse(n, "input 2 is not one weight for each class");
    for (uint32_t a = 0; a < x->rank; a++)
      shape[a] = a == 1 ? x->shape[1] : bb_onnx_number(n->m, 1);
    return picked(n, l, bb_onnx_reshape(n, given, x->rank, shape));
  }
  if (!l->ignores) return NULL;
  bb_onnx_value *label = l->label;
  const bb_expr *at = bb_expr_cast(p, BB_I64, bb_onnx_arg(n, 0, label));
  const bb_expr *skip = f_eq(p, at, bb_expr_const(p, BB_I64, (double)l->ignored));
  const bb_expr *zero = bb_expr_const(p, x->dtype, 0), *one = bb_expr_const(p, x->dtype, 1);
  return bb_onnx_map(n, f_select(p, skip, zero, one), 1, &label);
}

/* Minus the log-probability that each label picks, weighted, then reduced as the node asks. */
static bb_onnx_value *loss_of(const bb_onnx_node *n, bb_onnx_value *x, bb_onnx_value *label,
                              bb_onnx_value *weight) {
  bb_program *p = n->m->program;
  const char *reduction = bb_onnx_text(n, "reduction", "mean");
  bool sum = strcmp(reduction, "sum") == 0, mean = strcmp(reduction, "mean") == 0;
  if (!sum && !mean && strcmp(reduction, "none") != 0)
    bb_onnx_refuse(n, "reduction is none of none, sum, mean");
  bb_dtype dtype = x->dtype, work = bb_onnx_fold_dtype(dtype);
  labels l = labels_of(n, x, label);
  const bb_extent *shape[BB_ONNX_RANK];
  int64_t all[BB_ONNX_RANK];
  uint32_t rank = 0;
  for (uint32_t a = 0; a < x->rank; a++) {
    all[a] = a;
    if (a != 1) shape[rank++] = x->shape[a];
  }
  weight = weights(n, &l, x, weight);
  if (weight) weight = bb_onnx_cast(n, weight, work);
  bb_onnx_value *loss = picked(n, &l, bb_onnx_cast(n, x, work));
  loss = bb_onnx_map(n, f_neg(p, bb_onnx_arg(n, 0, loss)), 1, &loss);
  if (weight) loss = bb_onnx_binary_map(n, BB_X_MUL, loss, weight);
  if (!sum && !mean) return bb_onnx_cast(n, bb_onnx_reshape(n, loss, rank, shape), dtype);
  loss = bb_onnx_reduce(n, BB_MONOID_SUM, loss, x->rank, all, false);
  if (mean && weight) {
    weight = bb_onnx_reduce(n, BB_MONOID_SUM, weight, x->rank, all, false);
    loss = bb_onnx_binary_map(n, BB_X_DIV, loss, weight);
  } else if (mean) {
    const bb_expr *total = bb_onnx_arg(n, 0, loss);
    loss = bb_onnx_map(n, f_div(p, total, bb_onnx_length(n, work, rank, shape)), 1, &loss);
  }
  return bb_onnx_cast(n, loss, dtype);
}

void bb_onnx_label_loss(bb_onnx_node *n) {
  bb_onnx_value *x = n->in[0];
  bb_onnx_want_float(n, x);
  if (x->rank < 2) bb_onnx_refuse(n, "input 0 has rank %u", x->rank);
  if (n->row->detail) x = bb_onnx_log_softmax_of(n, x, 1);
  n->out[0] = loss_of(n, x, n->in[1], n->nin > 2 ? n->in[2] : NULL);
  if (n->nout > 1) n->out[1] = x;
}
