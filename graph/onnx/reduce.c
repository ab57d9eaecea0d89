/* reduce.c - operators that fold along axes: reductions, softmax, arg-extrema, running sums. */
#include "convert.h"
#include "formula.h"

#include <math.h>
#include <string.h>

bb_dtype bb_onnx_fold_dtype(bb_dtype dtype) {
  return dtype == BB_F16 || dtype == BB_BF16 ? BB_F32 : dtype;
}

const bb_expr *bb_onnx_length(const bb_onnx_node *n, bb_dtype dtype, uint32_t count,
                              const bb_extent *const *extent) {
  const bb_expr *length = bb_onnx_extent_expr(n->m, bb_onnx_product(n->m, count, extent));
  return length->op == BB_X_CONST ? bb_expr_const(n->m->program, dtype, length->number) : length;
}

/* --- reductions --- */

/* Axes ascending and non-negative; all of them when none is given. */
static uint32_t normal_axes(const bb_onnx_node *n, uint32_t rank, uint32_t count,
                            const int64_t *given, int64_t *axes) {
  bool folded[BB_ONNX_RANK] = {false};
  uint32_t sorted = 0;
  for (uint32_t i = 0; i < count; i++) {
    uint32_t axis = bb_onnx_axis(n, given[i], rank);
    if (folded[axis]) bb_onnx_refuse(n, "axis %u is named twice", axis);
    folded[axis] = true;
  }
  for (uint32_t a = 0; a < rank; a++)
    if (folded[a] || !count) axes[sorted++] = a;
  return sorted;
}

/* What is done to each element before the fold. */
static const bb_expr *before(bb_program *p, int kind, const bb_expr *x) {
  switch (kind) {
  case R_L1: return f_abs(p, x);
  case R_L2:
  case R_SUM_SQUARE: return f_pow(p, x, f_num(p, x, 2));
  case R_LOG_SUM_EXP: return f_exp(p, x);
  default: return x;
  }
}

/* And to the result; `length` is the number of elements folded. */
static const bb_expr *after(bb_program *p, int kind, const bb_expr *x, const bb_expr *length) {
  switch (kind) {
  case R_MEAN: return f_div(p, x, length);
  case R_L2: return f_sqrt(p, x);
  case R_LOG_SUM:
  case R_LOG_SUM_EXP: return f_log(p, x);
  default: return x;
  }
}

static bb_monoid_id monoid_of(int kind) {
  return kind == R_MAX    ? BB_MONOID_MAX
         : kind == R_MIN  ? BB_MONOID_MIN
         : kind == R_PROD ? BB_MONOID_PROD
                          : BB_MONOID_SUM;
}

/* Shape arithmetic: every element folded into one expression; NULL if they are not known. */
static bb_onnx_value *fold_elements(const bb_onnx_node *n, int kind, bb_onnx_value *v, bool keep) {
  static const bb_expr_op combine[] = {[R_SUM] = BB_X_ADD,
                                       [R_MEAN] = BB_X_COUNT,
                                       [R_MAX] = BB_X_MAX,
                                       [R_MIN] = BB_X_MIN,
                                       [R_PROD] = BB_X_MUL};
  const bb_extent *shape[BB_ONNX_RANK];
  if (kind > R_PROD || kind == R_MEAN || !v->element || !v->elements) return NULL;
  const bb_expr *e = v->element[0];
  for (uint32_t i = 1; i < v->elements; i++)
    e = bb_onnx_tidy(n->m, bb_expr_make(n->m->program, combine[kind], e, v->element[i], NULL));
  for (uint32_t a = 0; a < v->rank; a++) shape[a] = bb_onnx_number(n->m, 1);
  return bb_onnx_value_of_elements(n->m, v->dtype, keep ? v->rank : 0, shape, 1, &e);
}

/* exps are taken relative to their greatest, and an infinite one is no number away from itself: the sum of
 * exps is then infinite, too. */
static bb_onnx_value *where_infinite(const bb_onnx_node *n, bb_onnx_value *y,
                                     bb_onnx_value *greatest) {
  bb_program *p = n->m->program;
  bb_onnx_value *in[2] = {y, greatest};
  const bb_expr *log = bb_onnx_arg(n, 0, y), *top = bb_onnx_arg(n, 1, greatest);
  const bb_expr *infinite = f_num(p, top, INFINITY);
  return bb_onnx_map(n, bb_expr_make(p, BB_X_SELECT, f_eq(p, top, infinite), infinite, log), 2, in);
}

/* The greatest or least of no elements is the least or greatest of the type that the model has, which is computed in a wider one. */
static bb_onnx_value *within_stored(const bb_onnx_node *n, int kind, bb_onnx_value *v,
                                    bb_dtype stored) {
  bb_program *p = n->m->program;
  double least, greatest;
  if ((kind != R_MAX && kind != R_MIN) || !bb_dtype_is_stored(stored)) return v;
  bb_onnx_stored_range(stored, 0, &least, &greatest);
  const bb_expr *x = bb_onnx_arg(n, 0, v), *end = f_num(p, x, kind == R_MAX ? least : greatest);
  return bb_onnx_map(n, bb_expr_make(p, kind == R_MAX ? BB_X_MAX : BB_X_MIN, x, end, NULL), 1, &v);
}

static bool may_be_empty(uint32_t count, const bb_extent *const *extent) {
  bool may = false;
  for (uint32_t i = 0; i < count; i++) may |= bb_extent_value(extent[i]) <= 0;
  return may;
}

/* How many elements are true, which shapes may ask for. */
static bb_onnx_value *count_truths(const bb_onnx_node *n, bool keep) {
  const bb_extent *shape[BB_ONNX_RANK];
  const bb_expr *sum = bb_onnx_count_of(n, n->in[0]);
  for (uint32_t a = 0; a < BB_ONNX_RANK; a++) shape[a] = bb_onnx_number(n->m, 1);
  return sum ? bb_onnx_value_of_elements(n->m, BB_I64, keep ? n->in[0]->rank : 0, shape, 1, &sum)
             : NULL;
}

static void reduce(bb_onnx_node *n, uint32_t count, const int64_t *given) {
  bb_program *p = n->m->program;
  bb_onnx_value *v = n->in[0];
  int kind = n->row->detail;
  bool keep = bb_onnx_int(n, "keepdims", 1), all = !count;
  bool skip = all && bb_onnx_int(n, "noop_with_empty_axes", 0);
  int64_t axes[BB_ONNX_RANK];
  const bb_extent *folded[BB_ONNX_RANK];
  bb_dtype dtype = v->dtype,
           work = kind == R_MAX || kind == R_MIN ? dtype : bb_onnx_fold_dtype(dtype);
  count = normal_axes(n, v->rank, count, given, axes);
  if (dtype == BB_BOOL && kind != R_MAX && kind != R_MIN) bb_onnx_refuse(n, "an operand is bool");
  n->out[0] = !skip && count == v->rank ? fold_elements(n, kind, v, keep) : NULL;
  if (!n->out[0] && kind == R_SUM && !skip && count == v->rank) n->out[0] = count_truths(n, keep);
  if (n->out[0]) return;
  for (uint32_t i = 0; i < count; i++) folded[i] = v->shape[axes[i]];
  const bb_expr *length = bb_onnx_length(n, work, skip ? 0 : count, folded);
  bb_onnx_value *x = v = bb_onnx_cast(n, v, work);
  v = bb_onnx_map(n, before(p, kind, bb_onnx_arg(n, 0, v)), 1, &v);
  if (!skip && count) v = bb_onnx_reduce(n, monoid_of(kind), v, count, axes, keep);
  if (!skip && may_be_empty(count, folded)) v = within_stored(n, kind, v, n->in[0]->stored);
  v = bb_onnx_map(n, after(p, kind, bb_onnx_arg(n, 0, v), length), 1, &v);
  if (kind == R_LOG_SUM_EXP && bb_dtype_is_float(work) && !skip && count)
    v = where_infinite(n, v, bb_onnx_reduce(n, BB_MONOID_MAX, x, count, axes, keep));
  n->out[0] = bb_onnx_cast(n, v, dtype);
}

void bb_onnx_reduce_by_attribute(bb_onnx_node *n) {
  uint32_t count;
  const int64_t *axes = bb_onnx_ints(n, "axes", &count);
  reduce(n, count, axes);
}

void bb_onnx_reduce_by_input(bb_onnx_node *n) {
  uint32_t count = 0;
  const int64_t *axes = NULL;
  if (n->nin > 1) {
    axes = bb_onnx_known_ints(n, n->in[1], &count);
    if (!axes) {
      bb_onnx_unsupported(n, "axes that are computed at run time");
      return;
    }
  }
  reduce(n, count, axes);
}

/* --- softmax --- */

/* Along an axis, in the type that sums have; *x is cast to it. */
static bb_onnx_value *sum_of_exps(const bb_onnx_node *n, bb_onnx_value **x, int64_t axis,
                                  bb_onnx_value **e) {
  *x = bb_onnx_cast(n, *x, bb_onnx_fold_dtype((*x)->dtype));
  *e = bb_onnx_map(n, f_exp(n->m->program, bb_onnx_arg(n, 0, *x)), 1, x);
  return bb_onnx_reduce(n, BB_MONOID_SUM, *e, 1, &axis, true);
}

static bool is_known(const bb_onnx_node *n, const bb_onnx_value *x) {
  size_t count;
  return x->form || x->element || bb_onnx_known_numbers(n, x, &count);
}

/* Of what is known as the model is read: exps are computed by then, as they are, so the greatest is taken off first.  Elsewhere passes behind
 * this one see to it (fuse/safety.c). */
static bb_onnx_value *below_greatest(const bb_onnx_node *n, bb_onnx_value *x, int64_t axis) {
  if (!is_known(n, x)) return x;
  x = bb_onnx_cast(n, x, bb_onnx_fold_dtype(x->dtype));
  return bb_onnx_binary_map(n, BB_X_SUB, x, bb_onnx_reduce(n, BB_MONOID_MAX, x, 1, &axis, true));
}

bb_onnx_value *bb_onnx_softmax_of(const bb_onnx_node *n, bb_onnx_value *x, uint32_t axis) {
  bb_program *p = n->m->program;
  bb_dtype dtype = x->dtype;
  x = below_greatest(n, x, axis);
  bb_onnx_value *e, *sum = sum_of_exps(n, &x, axis, &e);
  const bb_expr *s = bb_onnx_arg(n, 0, sum);
  bb_onnx_value *scale = bb_onnx_map(n, f_div(p, f_num(p, s, 1), s), 1, &sum);
  return bb_onnx_cast(n, bb_onnx_binary_map(n, BB_X_MUL, e, scale), dtype);
}

/* Relative to the row's maximum: the logarithm of the sum of the exps as they are has lost, to a maximum that is large beside it,
 * the digits that the result has, once it passes through memory. */
bb_onnx_value *bb_onnx_log_softmax_of(const bb_onnx_node *n, bb_onnx_value *x, uint32_t axis) {
  bb_dtype dtype = x->dtype;
  const int64_t along = axis;
  x = bb_onnx_cast(n, x, bb_onnx_fold_dtype(dtype));
  bb_onnx_value *greatest = bb_onnx_reduce(n, BB_MONOID_MAX, x, 1, &along, true);
  x = bb_onnx_binary_map(n, BB_X_SUB, x, greatest);
  bb_onnx_value *e, *sum = sum_of_exps(n, &x, axis, &e);
  bb_onnx_value *shift = bb_onnx_map(n, f_log(n->m->program, bb_onnx_arg(n, 0, sum)), 1, &sum);
  return bb_onnx_cast(n, bb_onnx_binary_map(n, BB_X_SUB, x, shift), dtype);
}

void bb_onnx_softmax(bb_onnx_node *n) {
  bb_onnx_value *x = n->in[0];
  bb_onnx_want_float(n, x);
  uint32_t axis = bb_onnx_axis(n, bb_onnx_int(n, "axis", -1), x->rank);
  n->out[0] = n->row->detail ? bb_onnx_log_softmax_of(n, x, axis) : bb_onnx_softmax_of(n, x, axis);
}

/* --- the rest --- */

void bb_onnx_arg_reduce(bb_onnx_node *n) {
  bb_onnx_value *x = n->in[0];
  uint32_t axis = bb_onnx_axis(n, bb_onnx_int(n, "axis", 0), x->rank);
  bool keep = bb_onnx_int(n, "keepdims", 1), last = bb_onnx_int(n, "select_last_index", 0);
  bb_monoid_id id = (bb_monoid_id)n->row->detail;
  if (last) id = id == BB_MONOID_ARGMAX ? BB_MONOID_ARGMAX_LAST : BB_MONOID_ARGMIN_LAST;
  uint32_t result =
      bb_array_argreduce(n->m->array, n->name, bb_monoid_get(id), bb_onnx_id(n, x), axis, keep);
  n->out[0] = bb_onnx_value_of_id(n->m, result);
}

bb_onnx_value *bb_onnx_hardmax_of(const bb_onnx_node *n, bb_onnx_value *x, uint32_t axis) {
  bb_program *p = n->m->program;
  uint32_t id = bb_array_argreduce(n->m->array, n->name, bb_monoid_get(BB_MONOID_ARGMAX),
                                   bb_onnx_id(n, x), axis, true);
  bb_onnx_value *v[2] = {bb_onnx_value_of_id(n->m, id),
                         bb_onnx_value_new(n->m, BB_I64, x->rank, x->shape)};
  v[1]->form = bb_onnx_index_along(n->m, x, axis);
  const bb_expr *here = f_eq(p, bb_onnx_arg(n, 0, v[0]), bb_onnx_arg(n, 1, v[1]));
  return bb_onnx_map(n, bb_expr_cast(p, x->dtype, here), 2, v);
}

void bb_onnx_hardmax(bb_onnx_node *n) {
  bb_onnx_value *x = n->in[0];
  bb_onnx_want_float(n, x);
  n->out[0] = bb_onnx_hardmax_of(n, x, bb_onnx_axis(n, bb_onnx_int(n, "axis", -1), x->rank));
}

void bb_onnx_cumulate(bb_onnx_node *n) {
  bb_onnx_value *x = n->in[0];
  int64_t axis;
  if (!bb_onnx_known_int(n->in[1], &axis)) {
    bb_onnx_unsupported(n, "an axis that is computed at run time");
    return;
  }
  if (x->dtype == BB_BOOL) bb_onnx_refuse(n, "an operand is bool");
  if (n->row->detail == BB_MONOID_SUM && x->form && x->form->op == BB_X_CONST &&
      x->form->number == 0) {
    n->out[0] = x; /* of nothing but zeros */
    return;
  }
  bb_dtype work = bb_onnx_fold_dtype(x->dtype);
  const bb_monoid *monoid = bb_monoid_get((bb_monoid_id)n->row->detail);
  uint32_t id = bb_array_scan(n->m->array, n->name, monoid, bb_onnx_id(n, bb_onnx_cast(n, x, work)),
                              bb_onnx_axis(n, axis, x->rank), bb_onnx_int(n, "exclusive", 0),
                              bb_onnx_int(n, "reverse", 0));
  n->out[0] = bb_onnx_cast(n, bb_onnx_value_of_id(n->m, id), x->dtype);
}
