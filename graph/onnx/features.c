/* features.c - operators of ai.onnx.ml on tables: a row is a sample, a column a feature.  What is done to each feature,
 * and linear models of them, which are products like any other.
 */
#include "convert.h"
#include "formula.h"

#include <stdlib.h>
#include <string.h>

/* --- operands and attributes --- */

/* A table, or one sample of it. */
static bb_onnx_value *table_of(const bb_onnx_node *n) {
  bb_onnx_value *x = n->in[0];
  if (x->rank != 1 && x->rank != 2)
    bb_onnx_refuse(n, "a table of shape %s", bb_onnx_shape_text(n->m, x));
  return x;
}

/* Numbers of an attribute as a tensor. */
static bb_onnx_value *tensor_of(const bb_onnx_node *n, bb_dtype dtype, uint32_t rank,
                                const int64_t *length, const void *data) {
  const bb_extent *shape[2];
  size_t count = 1;
  for (uint32_t a = 0; a < rank; a++) {
    shape[a] = bb_onnx_number(n->m, length[a]);
    count *= (size_t)length[a];
  }
  bb_onnx_value *v = bb_onnx_value_new(n->m, dtype, rank, shape);
  v->name = n->name;
  v->data = data;
  v->bytes = count * bb_dtype_bytes(dtype);
  return v;
}

/* Numbers count as doubles. */
static void want_held(const bb_onnx_node *n, const char *name, int64_t number) {
  const int64_t most = (int64_t)1 << 53;
  if (number < -most || number > most)
    bb_onnx_refuse(n, "attribute %s has the integer %lld, which is beyond 2^53", name,
                   (long long)number);
}

/* Whole numbers of an attribute. */
static const int64_t *whole_numbers(const bb_onnx_node *n, const char *name, uint32_t *count) {
  const int64_t *number = bb_onnx_ints(n, name, count);
  for (uint32_t i = 0; i < *count; i++) want_held(n, name, number[i]);
  return number;
}

/* An attribute with a number for each column of x, or one for all. */
static bb_onnx_value *along_columns(const bb_onnx_node *n, const bb_onnx_value *x, const char *name,
                                    bb_dtype dtype) {
  uint32_t count = 0;
  const void *data = dtype == BB_I64 ? (const void *)whole_numbers(n, name, &count)
                                     : (const void *)bb_onnx_floats(n, name, &count);
  const bb_extent *columns = x->shape[x->rank - 1];
  if (!count) bb_onnx_refuse(n, "attribute %s has no numbers", name);
  if (count > 1 && !bb_onnx_same_extent(n, columns, bb_onnx_number(n->m, count)))
    bb_onnx_refuse(n, "attribute %s has %u numbers for a table of shape %s", name, count,
                   bb_onnx_shape_text(n->m, x));
  return tensor_of(n, dtype, 1, &(int64_t){count}, data);
}

/* Floats are computed in their own type, integers as f32. */
static bb_dtype work_of(const bb_onnx_value *x) {
  return x->dtype == BB_F64 ? BB_F64 : BB_F32;
}

/* --- what is done to features --- */

void bb_onnx_scale_features(bb_onnx_node *n) {
  bb_onnx_value *x = n->in[0];
  bb_dtype work = work_of(x);
  if (!x->rank) bb_onnx_refuse(n, "a scalar has no features");
  bb_onnx_value *offset = along_columns(n, x, "offset", BB_F32);
  bb_onnx_value *scale = along_columns(n, x, "scale", BB_F32);
  x = bb_onnx_binary_map(n, BB_X_SUB, bb_onnx_cast(n, x, work), bb_onnx_cast(n, offset, work));
  n->out[0] = bb_onnx_f32(n, bb_onnx_binary_map(n, BB_X_MUL, x, bb_onnx_cast(n, scale, work)));
}

void bb_onnx_binarize(bb_onnx_node *n) {
  bb_program *p = n->m->program;
  bb_onnx_value *x = n->in[0];
  bb_onnx_want_float(n, x);
  const bb_expr *e = bb_onnx_arg(n, 0, x);
  const bb_expr *above = f_lt(p, f_num(p, e, bb_onnx_float(n, "threshold", 0)), e);
  n->out[0] = bb_onnx_map(n, bb_expr_cast(p, x->dtype, above), 1, &x);
}

/* Elements that are a number, or none, become others. */
void bb_onnx_impute(bb_onnx_node *n) {
  bb_program *p = n->m->program;
  bb_onnx_value *x = n->in[0];
  bool whole = x->dtype == BB_I64;
  if (!whole) bb_onnx_want_float(n, x);
  if (!x->rank) bb_onnx_refuse(n, "a scalar has no features");
  const char *name = whole ? "imputed_value_int64s" : "imputed_value_floats";
  bb_onnx_value *v[2] = {x, along_columns(n, x, name, whole ? BB_I64 : BB_F32)};
  v[1] = bb_onnx_cast(n, v[1], x->dtype);
  int64_t number = bb_onnx_int(n, "replaced_value_int64", 0);
  if (whole) want_held(n, "replaced_value_int64", number);
  double gone = whole ? (double)number : bb_onnx_float(n, "replaced_value_float", 0);
  const bb_expr *e = bb_onnx_arg(n, 0, x), *missing = f_eq(p, e, f_num(p, e, gone));
  if (gone != gone) missing = bb_expr_make(p, BB_X_ISNAN, e, NULL, NULL);
  n->out[0] = bb_onnx_map(n, f_select(p, missing, bb_onnx_arg(n, 1, v[1]), e), 2, v);
}

/* Each row over its size; one of size 0 stays. */
void bb_onnx_normalize_rows(bb_onnx_node *n) {
  bb_program *p = n->m->program;
  const char *norm = bb_onnx_text(n, "norm", "MAX");
  bool max = strcmp(norm, "MAX") == 0, squares = strcmp(norm, "L2") == 0;
  bb_onnx_value *x = table_of(n);
  if (!max && !squares && strcmp(norm, "L1") != 0)
    bb_onnx_refuse(n, "norm %s", bb_onnx_quote(n->m->arena, norm));
  int64_t axis = x->rank - 1;
  x = bb_onnx_cast(n, x, work_of(x));
  const bb_expr *e = bb_onnx_arg(n, 0, x);
  bb_onnx_value *size = bb_onnx_map(n, max ? e : squares ? f_mul(p, e, e) : f_abs(p, e), 1, &x);
  size = bb_onnx_reduce(n, max ? BB_MONOID_MAX : BB_MONOID_SUM, size, 1, &axis, true);
  const bb_expr *s = bb_onnx_arg(n, 0, size);
  const bb_expr *root = squares ? f_sqrt(p, s) : s;
  const bb_expr *by = f_select(p, f_eq(p, root, f_num(p, s, 0)), f_num(p, s, 1), root);
  size = bb_onnx_map(n, f_div(p, f_num(p, s, 1), by), 1, &size);
  n->out[0] = bb_onnx_f32(n, bb_onnx_binary_map(n, BB_X_MUL, x, size));
}

/* Columns by their numbers. */
void bb_onnx_extract_features(bb_onnx_node *n) {
  bb_onnx_value *x = n->in[0], *index = n->in[1];
  if (!x->rank) bb_onnx_refuse(n, "a scalar has no features");
  const bb_extent *count = bb_onnx_product(n->m, index->rank, index->shape);
  index = bb_onnx_reshape(n, index, 1, &count);
  if (x->rank == 1) x = bb_onnx_lead(n, x, 2);
  n->out[0] = bb_onnx_gather_along(n, x, x->rank - 1, index);
}

static int compare(const void *left, const void *right) {
  const int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
  return (a > b) - (a < b);
}

/* An element is one category at most. */
static void want_apart(const bb_onnx_node *n, uint32_t count, const int64_t *category) {
  int64_t *sorted = BB_NEW(n->m->arena, int64_t, count);
  memcpy(sorted, category, count * sizeof *sorted);
  qsort(sorted, count, sizeof *sorted, compare);
  for (uint32_t i = 1; i < count; i++)
    if (sorted[i] == sorted[i - 1])
      bb_onnx_refuse(n, "category %lld is there twice", (long long)sorted[i]);
}

/* An axis more: which of the categories an element is. */
void bb_onnx_one_hot_features(bb_onnx_node *n) {
  bb_program *p = n->m->program;
  bb_onnx_value *x = n->in[0];
  uint32_t count;
  const int64_t *category = whole_numbers(n, "cats_int64s", &count);
  const bb_extent *shape[BB_ONNX_RANK];
  if (!count || !bb_onnx_int(n, "zeros", 1)) {
    bb_onnx_unsupported(n, count ? "what is no category is an error" : "categories that are text");
    return;
  }
  if (x->rank == BB_ONNX_RANK) bb_onnx_refuse(n, "a tensor of %u axes", x->rank);
  want_apart(n, count, category);
  memcpy(shape, x->shape, x->rank * sizeof *shape);
  shape[x->rank] = bb_onnx_number(n->m, 1);
  bb_onnx_value *v[2] = {bb_onnx_reshape(n, bb_onnx_cast(n, x, BB_I64), x->rank + 1, shape),
                         tensor_of(n, BB_I64, 1, &(int64_t){count}, category)};
  const bb_expr *is = f_eq(p, bb_onnx_arg(n, 0, v[0]), bb_onnx_arg(n, 1, v[1]));
  n->out[0] = bb_onnx_map(n, bb_expr_cast(p, BB_F32, is), 2, v);
}

/* --- linear models --- */

/* A score of each row for each of `count` targets. */
static bb_onnx_value *scores(const bb_onnx_node *n, int64_t count) {
  bb_onnx_value *x = bb_onnx_f32(n, bb_onnx_lead(n, table_of(n), 2));
  uint32_t weights, more;
  const float *weight = bb_onnx_floats(n, "coefficients", &weights);
  const float *bias = bb_onnx_floats(n, "intercepts", &more);
  if (count < 1 || !weights || weights % count)
    bb_onnx_refuse(n, "%u coefficients for %lld targets", weights, (long long)count);
  if (more && more != count)
    bb_onnx_refuse(n, "%u intercepts for %lld targets", more, (long long)count);
  int64_t shape[2] = {count, weights / count};
  if (!bb_onnx_same_extent(n, x->shape[1], bb_onnx_number(n->m, shape[1])))
    bb_onnx_refuse(n, "%lld coefficients of each target for a table of shape %s",
                   (long long)shape[1], bb_onnx_shape_text(n->m, x));
  bb_onnx_value *y = bb_onnx_product_of(n, x, false, tensor_of(n, BB_F32, 2, shape, weight), true);
  return more ? bb_onnx_binary_map(n, BB_X_ADD, y, tensor_of(n, BB_F32, 1, shape, bias)) : y;
}

/* What post_transform makes of scores; NULL: it was reported as unsupported. */
static bb_onnx_value *transformed(bb_onnx_node *n, bb_onnx_value *y, bool one) {
  const char *how = bb_onnx_text(n, "post_transform", "NONE");
  bool softmax = strcmp(how, "SOFTMAX") == 0;
  if (strcmp(how, "NONE") == 0) return y;
  if (strcmp(how, "LOGISTIC") == 0)
    return bb_onnx_map(n, bb_onnx_formula_of(n, F_SIGMOID, bb_onnx_arg(n, 0, y)), 1, &y);
  if (softmax && !one) return bb_onnx_softmax_of(n, y, 1);
  bb_onnx_unsupported(n, "post_transform %s of %s", bb_onnx_quote(n->m->arena, how),
                      one ? "one score" : "scores");
  return NULL;
}

void bb_onnx_linear_regression(bb_onnx_node *n) {
  int64_t targets = bb_onnx_int(n, "targets", 1);
  bb_onnx_value *y = transformed(n, scores(n, targets), targets == 1);
  if (y) n->out[0] = y;
}

/* label[index]; an expression of the index where labels go up by the same step. */
static bb_onnx_value *labels_at(const bb_onnx_node *n, bb_onnx_value *index, uint32_t count,
                                const int64_t *label) {
  bb_program *p = n->m->program;
  double step = count > 1 ? (double)label[1] - (double)label[0] : 0;
  bool even = true;
  for (uint32_t i = 0; i < count; i++) even &= (double)label[i] == (double)label[0] + i * step;
  if (!even)
    return bb_onnx_gather_along(n, tensor_of(n, BB_I64, 1, &(int64_t){count}, label), 0, index);
  const bb_expr *i = bb_onnx_arg(n, 0, index);
  const bb_expr *e = f_add(p, f_mul(p, i, f_num(p, i, step)), f_num(p, i, (double)label[0]));
  return bb_onnx_map(n, e, 1, &index);
}

/* The number of the class of each row: the first of the greatest score; of one score, whether it is above 0. */
static bb_onnx_value *class_of(const bb_onnx_node *n, bb_onnx_value *y, bool one) {
  bb_program *p = n->m->program;
  if (!one) {
    uint32_t id = bb_array_argreduce(n->m->array, n->name, bb_monoid_get(BB_MONOID_ARGMAX),
                                     bb_onnx_id(n, y), 1, false);
    return bb_onnx_value_of_id(n->m, id);
  }
  const bb_expr *e = bb_onnx_arg(n, 0, y);
  y = bb_onnx_map(n, bb_expr_cast(p, BB_I64, f_lt(p, f_num(p, e, 0), e)), 1, &y);
  return bb_onnx_reshape(n, y, 1, y->shape);
}

/* Of one score y, which is that of the second class: 1 - y beside it. */
static bb_onnx_value *both(const bb_onnx_node *n, bb_onnx_value *y) {
  bb_program *p = n->m->program;
  const bb_expr *e = bb_onnx_arg(n, 0, y);
  bb_onnx_value *v[2] = {bb_onnx_map(n, f_sub(p, f_num(p, e, 1), e), 1, &y), y};
  return bb_onnx_concat(n, 2, v, 1);
}

void bb_onnx_linear_classification(bb_onnx_node *n) {
  uint32_t count, classes;
  const int64_t *label = whole_numbers(n, "classlabels_ints", &count);
  bb_onnx_floats(n, "intercepts", &classes);
  if (!count) {
    bb_onnx_unsupported(n, "labels that are text");
    return;
  }
  if (!classes) classes = count;
  bool one = classes == 1;
  if (count != (one ? 2 : classes)) bb_onnx_refuse(n, "%u labels for %u scores", count, classes);
  bb_onnx_value *y = scores(n, classes), *shown = transformed(n, y, one);
  if (!shown) return;
  n->out[0] = labels_at(n, class_of(n, y, one), count, label);
  if (n->nout > 1) n->out[1] = one ? both(n, shown) : shown;
}
