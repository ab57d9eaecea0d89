/* index.c - shapes, ranges, fills and masks: folded where they can be, else functions of coordinates. */
#include "convert.h"
#include "formula.h"

#include <math.h>
#include <string.h>

/* --- constants --- */

static bb_onnx_value *vector(bb_onnx *m, bb_dtype dtype, uint32_t count,
                             const bb_expr *const *element) {
  const bb_extent *extent = bb_onnx_number(m, count);
  return bb_onnx_value_of_elements(m, dtype, 1, &extent, count, element);
}

/* A long list of numbers as a tensor of the file would be. */
static bb_onnx_value *long_vector(bb_onnx *m, bb_dtype dtype, uint32_t count, const void *data) {
  const bb_extent *extent = bb_onnx_number(m, count);
  bb_onnx_value *v = bb_onnx_value_new(m, dtype, 1, &extent);
  v->data = data;
  v->bytes = (size_t)count * bb_dtype_bytes(dtype);
  return v;
}

static bb_onnx_value *ints_constant(bb_onnx *m, uint32_t count, const int64_t *ints) {
  if (count > BB_ONNX_ELEMENTS) return long_vector(m, BB_I64, count, ints);
  const bb_expr **element = BB_NEW(m->arena, const bb_expr *, count);
  for (uint32_t i = 0; i < count; i++)
    element[i] = bb_expr_const(m->program, BB_I64, (double)ints[i]);
  return vector(m, BB_I64, count, element);
}

void bb_onnx_constant_node(bb_onnx_node *n) {
  bb_onnx *m = n->m;
  uint32_t count;
  const char *where = bb_arena_printf(m->arena, "node %s", bb_onnx_quote(m->arena, n->name));
  const Onnx__AttributeProto *value =
      bb_onnx_attribute(n, "value", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR);
  const int64_t *ints = bb_onnx_ints(n, "value_ints", &count);
  if (value) {
    n->out[0] = bb_onnx_value_of_tensor(m, NULL, value->t, where);
  } else if (bb_onnx_has(n, "value_int")) {
    n->out[0] = bb_onnx_scalar(m, BB_I64, (double)bb_onnx_int(n, "value_int", 0));
  } else if (bb_onnx_has(n, "value_float")) {
    n->out[0] = bb_onnx_scalar(m, BB_F32, bb_onnx_float(n, "value_float", 0));
  } else if (ints) {
    n->out[0] = ints_constant(m, count, ints);
  } else if (bb_onnx_has(n, "value_floats")) {
    const float *floats = bb_onnx_floats(n, "value_floats", &count);
    n->out[0] = long_vector(m, BB_F32, count, floats);
  } else {
    bb_onnx_unsupported(n, "a constant of text or a sparse one");
  }
}

void bb_onnx_constant_of_shape(bb_onnx_node *n) {
  bb_onnx *m = n->m;
  const bb_onnx_value *v = n->in[0];
  const char *where = bb_arena_printf(m->arena, "node %s", bb_onnx_quote(m->arena, n->name));
  const Onnx__AttributeProto *value =
      bb_onnx_attribute(n, "value", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR);
  const bb_expr *fill = bb_expr_const(m->program, BB_F32, 0);
  const bb_onnx_value *given = value ? bb_onnx_value_of_tensor(m, NULL, value->t, where) : NULL;
  if (given) fill = bb_onnx_scalar_expr(given);
  if (!fill) bb_onnx_refuse(n, "attribute value is not one element");
  if (!v->element) {
    bb_onnx_unsupported(n, "a shape that is computed at run time");
    return;
  }
  if (v->elements > BB_ONNX_RANK) bb_onnx_refuse(n, "the shape has %u axes", v->elements);
  const bb_extent *shape[BB_ONNX_RANK];
  for (uint32_t i = 0; i < v->elements; i++) {
    shape[i] = bb_onnx_expr_extent(m, v->element[i]);
    if (!shape[i]) bb_onnx_refuse(n, "axis %u of the shape is negative", i);
  }
  int64_t count = bb_onnx_count(v->elements, shape);
  n->out[0] = bb_onnx_value_of_form(m, fill, v->elements, shape);
  if (given) n->out[0]->stored = given->stored;
  if (count >= 0 && count <= BB_ONNX_ELEMENTS) {
    const bb_expr **element = BB_NEW(m->arena, const bb_expr *, (size_t)count);
    for (int64_t i = 0; i < count; i++) element[i] = fill;
    n->out[0]->element = element;
    n->out[0]->elements = (uint32_t)count;
  }
}

/* --- shapes --- */

void bb_onnx_shape_of(bb_onnx_node *n) {
  bb_onnx *m = n->m;
  const bb_onnx_value *v = n->in[0];
  int64_t rank = v->rank, start = bb_onnx_int(n, "start", 0), end = bb_onnx_int(n, "end", rank);
  if (start < 0) start += rank;
  if (end < 0) end += rank;
  start = start < 0 ? 0 : start > rank ? rank : start;
  end = end < start ? start : end > rank ? rank : end;
  const bb_expr *element[BB_ONNX_RANK];
  for (int64_t a = start; a < end; a++) element[a - start] = bb_onnx_extent_expr(m, v->shape[a]);
  n->out[0] = vector(m, BB_I64, (uint32_t)(end - start), element);
}

void bb_onnx_size_of(bb_onnx_node *n) {
  bb_onnx *m = n->m;
  const bb_extent *size = bb_onnx_product(m, n->in[0]->rank, n->in[0]->shape);
  n->out[0] = bb_onnx_value_of_form(m, bb_onnx_extent_expr(m, size), 0, NULL);
}

/* --- ranges --- */

/* At least none.  A difference of lengths is left alone: that a model adds it to the one and has the other says enough. */
static const bb_expr *some(bb_onnx *m, const bb_expr *span, const bb_expr *count) {
  bool lengths = span == count && span->op == BB_X_SUB && span->a[0]->op != BB_X_CONST;
  if (lengths || bb_onnx_least(m, span) >= 0) return count;
  return bb_onnx_tidy_make(m, BB_X_MAX, count, f_num(m->program, count, 0));
}

/* Elements of start, start + delta, ... before limit; NULL when the number is not a known extent. */
static const bb_extent *range_extent(bb_onnx_node *n, const bb_expr *start, const bb_expr *limit,
                                     const bb_expr *delta) {
  bb_onnx *m = n->m;
  bool numbers = start->op == BB_X_CONST && limit->op == BB_X_CONST && delta->op == BB_X_CONST;
  if (delta->op == BB_X_CONST && delta->number == 0) bb_onnx_refuse(n, "the step is zero");
  if (numbers) {
    double count = ceil((limit->number - start->number) / delta->number);
    if (!(count < 1e12)) bb_onnx_refuse(n, "the range is too long");
    return bb_onnx_number(m, count > 0 ? (int64_t)count : 0);
  }
  if (delta->op != BB_X_CONST || bb_dtype_is_float(start->dtype)) return NULL;
  double step = fabs(delta->number);
  bool up = delta->number > 0;
  const bb_expr *span = bb_onnx_tidy_make(m, BB_X_SUB, up ? limit : start, up ? start : limit);
  if (step == 1) return bb_onnx_expr_extent(m, some(m, span, span));
  const bb_expr *rounded = bb_onnx_tidy_make(m, BB_X_ADD, span, f_num(m->program, span, step - 1));
  const bb_expr *count = bb_onnx_tidy_make(m, BB_X_DIV, rounded, f_num(m->program, span, step));
  return bb_onnx_expr_extent(m, some(m, span, count));
}

/* start + coordinate * delta, of 16-bit floats in f32 */
static const bb_expr *range_form(bb_onnx *m, const bb_expr *start, const bb_expr *delta,
                                 const bb_expr *at) {
  bb_program *p = m->program;
  bb_dtype dtype = start->dtype, work = bb_onnx_fold_dtype(dtype);
  const bb_expr *x =
      f_mul(p, bb_expr_cast(p, work, at), dtype == work ? delta : bb_expr_cast(p, work, delta));
  bool from_zero = start->op == BB_X_CONST && start->number == 0;
  if (dtype != work)
    return bb_expr_cast(p, dtype, from_zero ? x : f_add(p, x, bb_expr_cast(p, work, start)));
  return from_zero ? x : bb_onnx_tidy(m, f_add(p, x, start));
}

void bb_onnx_range(bb_onnx_node *n) {
  bb_onnx *m = n->m;
  bb_onnx_same_dtype(n, 3, n->in);
  const bb_expr *start = bb_onnx_scalar_expr(n->in[0]), *limit = bb_onnx_scalar_expr(n->in[1]);
  const bb_expr *delta = bb_onnx_scalar_expr(n->in[2]);
  const bb_extent *extent = start && limit && delta ? range_extent(n, start, limit, delta) : NULL;
  if (!extent) {
    bb_onnx_unsupported(n, "a length that is known only at run time");
    return;
  }
  bool one = bb_onnx_is_one(extent);
  const bb_expr *at =
      one ? bb_expr_const(m->program, BB_I64, 0) : bb_expr_coord(m->program, BB_COORD_AXIS);
  bb_onnx_value *v = bb_onnx_value_of_form(m, range_form(m, start, delta, at), 1, &extent);
  int64_t count = bb_extent_value(extent);
  if (count >= 0 && count <= BB_ONNX_ELEMENTS) {
    const bb_expr **element = BB_NEW(m->arena, const bb_expr *, (size_t)count);
    for (int64_t i = 0; i < count; i++)
      element[i] = range_form(m, start, delta, bb_expr_const(m->program, BB_I64, (double)i));
    v->element = element;
    v->elements = (uint32_t)count;
  }
  n->out[0] = v;
}

/* --- functions of coordinates --- */

const bb_expr *bb_onnx_index_along(bb_onnx *m, const bb_onnx_value *v, uint32_t axis) {
  if (bb_onnx_is_one(v->shape[axis])) return bb_expr_const(m->program, BB_I64, 0);
  return bb_expr_coord(m->program, BB_COORD_AXIS + v->rank - 1 - axis);
}

void bb_onnx_trilu(bb_onnx_node *n) {
  bb_onnx *m = n->m;
  bb_program *p = m->program;
  bb_onnx_value *v = n->in[0];
  const bb_expr *k = bb_expr_const(p, BB_I64, 0);
  if (v->rank < 2) bb_onnx_refuse(n, "input 0 has rank %u", v->rank);
  if (n->nin > 1) k = bb_onnx_scalar_expr(n->in[1]);
  if (!k) {
    bb_onnx_unsupported(n, "a diagonal that is computed at run time");
    return;
  }
  const bb_expr *row = bb_onnx_index_along(m, v, v->rank - 2),
                *col = bb_onnx_index_along(m, v, v->rank - 1);
  const bb_expr *diagonal = k->op == BB_X_CONST && k->number == 0 ? row : f_add(p, row, k);
  bool upper = bb_onnx_int(n, "upper", 1);
  const bb_expr *kept = upper ? f_le(p, diagonal, col) : f_le(p, col, diagonal);
  const bb_expr *x = bb_onnx_arg(n, 0, v);
  n->out[0] = bb_onnx_map(n, f_select(p, kept, x, f_num(p, x, 0)), 1, &v);
}

void bb_onnx_eye_like(bb_onnx_node *n) {
  bb_onnx *m = n->m;
  bb_program *p = m->program;
  bb_onnx_value *v = n->in[0];
  int64_t data_type = bb_onnx_int(n, "dtype", 0);
  bb_dtype dtype = v->dtype;
  if (v->rank != 2) bb_onnx_refuse(n, "input 0 has rank %u", v->rank);
  if (data_type && (data_type > 64 || !bb_onnx_dtype((int32_t)data_type, &dtype))) {
    bb_onnx_unsupported(n, "a result of %s", bb_onnx_dtype_name((int32_t)data_type));
    return;
  }
  const bb_expr *row = bb_onnx_index_along(m, v, 0), *col = bb_onnx_index_along(m, v, 1);
  const bb_expr *k = bb_expr_const(p, BB_I64, (double)bb_onnx_int(n, "k", 0));
  const bb_expr *on = f_eq(p, col, f_add(p, row, k));
  n->out[0] = bb_onnx_value_of_form(m, bb_expr_cast(p, dtype, on), 2, v->shape);
  n->out[0]->stored = data_type ? bb_onnx_stored((int32_t)data_type) : v->stored;
}

/* The same where every index is known; NULL: it is not. */
static bb_onnx_value *known_one_hot(const bb_onnx_node *n, int64_t depth, uint32_t rank,
                                    const bb_extent *const *shape, uint32_t axis) {
  bb_onnx *m = n->m;
  uint32_t count;
  bb_onnx_value *values = n->in[2];
  bool whole = n->in[0]->element && !bb_dtype_is_float(n->in[0]->dtype);
  const int64_t *index = whole ? bb_onnx_known_ints(n, n->in[0], &count) : NULL;
  int64_t all = bb_onnx_count(rank, shape);
  int64_t inner = bb_onnx_count(rank - axis - 1, shape + axis + 1);
  if (!index || all < 1 || all > BB_ONNX_ELEMENTS) return NULL;
  const bb_expr **element = BB_NEW(m->arena, const bb_expr *, (size_t)all);
  for (int64_t i = 0; i < all; i++) {
    int64_t at = index[i / (inner * depth) * inner + i % inner];
    bool on = (at < 0 ? at + depth : at) == i / inner % depth;
    element[i] = values->element[on];
  }
  return bb_onnx_value_of_elements(m, values->dtype, rank, shape, (uint32_t)all, element);
}

/* on where the index is the coordinate along a new axis, else off. */
void bb_onnx_one_hot(bb_onnx_node *n) {
  bb_onnx *m = n->m;
  bb_program *p = m->program;
  bb_onnx_value *index = n->in[0], *values = n->in[2];
  int64_t depth;
  const bb_extent *shape[BB_ONNX_RANK + 1];
  if (!bb_onnx_known_int(n->in[1], &depth) || !values->element) {
    bb_onnx_unsupported(n, "a depth or values that are computed at run time");
    return;
  }
  if (values->elements != 2) bb_onnx_refuse(n, "the values are not a pair");
  if (depth < 1 || index->rank == BB_ONNX_RANK)
    bb_onnx_refuse(n, "the depth is %lld", (long long)depth);
  uint32_t rank = index->rank + 1, axis = bb_onnx_axis(n, bb_onnx_int(n, "axis", -1), rank);
  for (uint32_t a = 0; a < rank; a++)
    shape[a] = a < axis ? index->shape[a] : a > axis ? index->shape[a - 1] : bb_onnx_number(m, 1);
  bb_onnx_value *v[2] = {bb_onnx_reshape(n, index, rank, shape)};
  shape[axis] = bb_onnx_number(m, depth);
  n->out[0] = known_one_hot(n, depth, rank, shape, axis);
  if (n->out[0]) return;
  v[1] = bb_onnx_value_new(m, BB_I64, rank, shape);
  v[1]->form = bb_onnx_index_along(m, v[1], axis);
  const bb_expr *i = bb_onnx_arg(n, 0, v[0]), *at = bb_onnx_arg(n, 1, v[1]);
  const bb_expr *wrapped = f_add(p, i, f_num(p, i, (double)depth));
  i = f_select(p, f_lt(p, i, f_num(p, i, 0)), wrapped, i);
  n->out[0] =
      bb_onnx_map(n, f_select(p, f_eq(p, i, at), values->element[1], values->element[0]), 2, v);
}

/* --- branches --- */

static void inline_branch(bb_onnx_node *n, const char *name, bb_onnx_value **out) {
  const Onnx__AttributeProto *body =
      bb_onnx_attribute(n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH);
  if (!body) bb_onnx_refuse(n, "attribute %s is missing", name);
  bb_onnx_inline_graph(n, body->g, 0, NULL, n->nout, out);
}

/* Of one type and shape, so that elements of either can be chosen. */
static bool alike(const bb_onnx_value *a, const bb_onnx_value *b) {
  bool same = a->dtype == b->dtype && a->stored == b->stored && a->bits == b->bits;
  return same && a->rank == b->rank &&
         (!a->rank || memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) == 0);
}

bb_onnx_value *bb_onnx_choose(const bb_onnx_node *n, bb_onnx_value *condition, bb_onnx_value *a,
                              bb_onnx_value *b) {
  bb_onnx_value *in[3] = {NULL, a, b};
  if (a == b) return a;
  if (!alike(a, b)) return NULL;
  in[0] = bb_onnx_reshape(n, condition, 0, NULL);
  const bb_expr *chosen =
      f_select(n->m->program, bb_onnx_arg(n, 0, in[0]), bb_onnx_arg(n, 1, a), bb_onnx_arg(n, 2, b));
  bb_onnx_value *v = bb_onnx_map(n, chosen, 3, in);
  v->stored = a->stored;
  v->bits = a->bits;
  return v;
}

/* Both branches are computed, and the results of one chosen. */
static void choose_at_run_time(bb_onnx_node *n) {
  bb_onnx_value **other = BB_NEW(n->m->arena, bb_onnx_value *, n->nout);
  inline_branch(n, "then_branch", n->out);
  inline_branch(n, "else_branch", other);
  bool one = bb_onnx_count(n->in[0]->rank, n->in[0]->shape) == 1;
  for (uint32_t i = 0; i < n->nout; i++) {
    if (n->out[i]->unsupported || other[i]->unsupported) { /* that is reported */
      n->out[i] = n->out[i]->unsupported ? n->out[i] : other[i];
      continue;
    }
    bb_onnx_value *v = one ? bb_onnx_choose(n, n->in[0], n->out[i], other[i]) : NULL;
    if (!v && one) v = bb_onnx_choose_length(n, n->in[0], n->out[i], other[i]);
    if (!v) {
      bb_onnx_unsupported(n,
                          "results of different shapes %s and %s, chosen by a condition that is "
                          "computed at run time",
                          bb_onnx_shape_text(n->m, n->out[i]), bb_onnx_shape_text(n->m, other[i]));
      return;
    }
    n->out[i] = v;
  }
}

/* A branch is taken here when its condition is known. */
void bb_onnx_branch(bb_onnx_node *n) {
  const bb_expr *condition = bb_onnx_scalar_expr(n->in[0]);
  if (n->in[0]->dtype != BB_BOOL) bb_onnx_refuse(n, "the condition is not bool");
  if (condition && condition->op == BB_X_CONST)
    inline_branch(n, condition->number != 0 ? "then_branch" : "else_branch", n->out);
  else
    choose_at_run_time(n);
}
