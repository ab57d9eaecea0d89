/* value.c - values of the model in the cheapest form known, and their way into the array program. */
#include "formula.h"

#include <string.h>

enum { FILL_LIMIT = 1 << 24 }; /* most elements of a closed form that are computed here */

/* --- making --- */

bb_onnx_value *bb_onnx_value_new(bb_onnx *m, bb_dtype dtype, uint32_t rank,
                                 const bb_extent *const *shape) {
  bb_onnx_value *v = BB_NEW(m->arena, bb_onnx_value, 1);
  const bb_extent **copy = BB_NEW(m->arena, const bb_extent *, rank);
  if (rank) memcpy(copy, shape, rank * sizeof *copy);
  *v = (bb_onnx_value){.dtype = dtype, .stored = dtype, .rank = rank, .shape = copy, .id = BB_NONE};
  return v;
}

bb_onnx_value *bb_onnx_value_of_id(bb_onnx *m, uint32_t id) {
  const bb_array_value *a = &m->array->value[id];
  bb_onnx_value *v = bb_onnx_value_new(m, a->dtype, a->rank, a->shape);
  v->id = id;
  return v;
}

bb_onnx_value *bb_onnx_value_of_form(bb_onnx *m, const bb_expr *form, uint32_t rank,
                                     const bb_extent *const *shape) {
  bb_onnx_value *v = bb_onnx_value_new(m, form->dtype, rank, shape);
  v->form = form;
  if (bb_onnx_count(rank, shape) == 1) {
    const bb_expr **element = BB_NEW(m->arena, const bb_expr *, 1);
    element[0] = form;
    v->element = element;
    v->elements = 1;
  }
  return v;
}

bb_onnx_value *bb_onnx_value_of_elements(bb_onnx *m, bb_dtype dtype, uint32_t rank,
                                         const bb_extent *const *shape, uint32_t count,
                                         const bb_expr *const *element) {
  bb_onnx_value *v = bb_onnx_value_new(m, dtype, rank, shape);
  const bb_expr **copy = BB_NEW(m->arena, const bb_expr *, count);
  bool same = count > 0;
  for (uint32_t i = 0; i < count; i++) {
    copy[i] = bb_onnx_tidy(m, element[i]);
    same &= copy[i] == copy[0];
  }
  v->element = copy;
  v->elements = count;
  if (same) v->form = copy[0];
  return v;
}

bb_onnx_value *bb_onnx_scalar(bb_onnx *m, bb_dtype dtype, double number) {
  return bb_onnx_value_of_form(m, bb_expr_const(m->program, dtype, number), 0, NULL);
}

/* --- what is known of a value --- */

const bb_expr *bb_onnx_scalar_expr(const bb_onnx_value *v) {
  return v->element && v->elements == 1 ? v->element[0] : NULL;
}

static int64_t whole(double number) {
  if (number >= 9.2e18) return INT64_MAX;
  return number <= -9.2e18 ? INT64_MIN + 1 : (int64_t)number;
}

bool bb_onnx_known_int(const bb_onnx_value *v, int64_t *value) {
  const bb_expr *e = bb_onnx_scalar_expr(v);
  if (!e || e->op != BB_X_CONST) return false;
  *value = whole(e->number);
  return true;
}

const int64_t *bb_onnx_known_ints(const bb_onnx_node *n, const bb_onnx_value *v, uint32_t *count) {
  if (v->dtype != BB_I64 && v->dtype != BB_I32)
    bb_onnx_refuse(n, "an operand that must be integers is %s", bb_dtype_name(v->stored));
  if (!v->element) return NULL;
  int64_t *ints = BB_NEW(n->m->arena, int64_t, v->elements);
  for (uint32_t i = 0; i < v->elements; i++) {
    if (v->element[i]->op != BB_X_CONST) return NULL;
    ints[i] = whole(v->element[i]->number);
  }
  *count = v->elements;
  return ints;
}

/* --- into the array program --- */

static const bb_expr *refuse_symbol(void *found, const bb_expr *leaf) {
  if (leaf->op == BB_X_SYMBOL || leaf->op == BB_X_EXTENT) *(bool *)found = true;
  return leaf;
}

static bool uses_symbol(bb_program *program, const bb_expr *e) {
  bool found = false;
  bb_expr_map_leaves(program, e, refuse_symbol, &found);
  return found;
}

static void store(bb_dtype dtype, double value, size_t i, void *bytes) {
  switch (dtype) {
  case BB_F64: ((double *)bytes)[i] = value; break;
  case BB_F32: ((float *)bytes)[i] = (float)value; break;
  case BB_I64: ((int64_t *)bytes)[i] = whole(value); break;
  case BB_I32: ((int32_t *)bytes)[i] = (int32_t)value; break;
  case BB_BOOL: ((uint8_t *)bytes)[i] = value != 0; break;
  default: {
    int64_t low = whole(value);
    uint32_t size = bb_dtype_bytes(dtype);
    memcpy((uint8_t *)bytes + i * size, &low, size);
  }
  }
}

/* A constant of `count` elements; 16-bit floats are stored as f32 and cast. */
static uint32_t constant(const bb_onnx_node *n, const bb_onnx_value *v, size_t count,
                         const double *number) {
  bb_onnx *m = n->m;
  int64_t shape[BB_ONNX_RANK];
  bool narrow = v->dtype == BB_F16 || v->dtype == BB_BF16;
  bb_dtype dtype = narrow ? BB_F32 : v->dtype;
  size_t bytes = count * bb_dtype_bytes(dtype);
  void *data = bb_arena_alloc(m->program->arena, bytes);
  for (size_t i = 0; i < count; i++) store(dtype, number[i], i, data);
  for (uint32_t a = 0; a < v->rank; a++) shape[a] = bb_extent_value(v->shape[a]);
  uint32_t id = bb_array_constant(m->array, n->name, dtype, v->rank, shape, data, bytes);
  if (!narrow) return id;
  const bb_expr *cast = bb_expr_cast(m->program, v->dtype, bb_expr_arg(m->program, BB_F32, 0));
  return bb_array_elementwise(m->array, n->name, cast, 1, &id);
}

/* Every element of a closed form, in order. */
static double *evaluate(bb_onnx *m, const bb_onnx_value *v, size_t count) {
  double *number = BB_NEW(m->arena, double, count);
  int64_t index[BB_ONNX_RANK] = {0}; /* [0] the last axis */
  bb_expr_env env = {.axis_index = index};
  for (size_t i = 0; i < count; i++) {
    number[i] = bb_expr_eval(v->form, &env);
    for (uint32_t k = 0; k < v->rank; k++) {
      if (++index[k] < bb_extent_value(v->shape[v->rank - 1 - k])) break;
      index[k] = 0;
    }
  }
  return number;
}

const double *bb_onnx_known_numbers(const bb_onnx_node *n, const bb_onnx_value *v, size_t *count) {
  int64_t all = bb_onnx_count(v->rank, v->shape);
  if (all < 0 || all > FILL_LIMIT) return NULL;
  *count = (size_t)all;
  if (v->form && !uses_symbol(n->m->program, v->form)) return evaluate(n->m, v, *count);
  if (!v->element) return NULL;
  double *number = BB_NEW(n->m->arena, double, v->elements);
  for (uint32_t i = 0; i < v->elements; i++) {
    if (v->element[i]->op != BB_X_CONST) return NULL;
    number[i] = v->element[i]->number;
  }
  return number;
}

/* A rank-0 value computed from run-time extents. */
static uint32_t runtime_scalar(const bb_onnx_node *n, const bb_expr *e) {
  bb_onnx *m = n->m;
  const bb_onnx_value zero = {.dtype =
                                  e->dtype == BB_F16 || e->dtype == BB_BF16 ? BB_F32 : e->dtype};
  uint32_t id = constant(n, &zero, 1, (const double[]){0});
  return bb_array_elementwise(m->array, n->name, e, 1, &id);
}

static uint32_t of_form(const bb_onnx_node *n, const bb_onnx_value *v) {
  bb_onnx *m = n->m;
  int64_t count = bb_onnx_count(v->rank, v->shape);
  bool coord = bb_expr_uses_coord(v->form), symbol = uses_symbol(m->program, v->form);
  if (!symbol && count >= 0 && (count == 1 || (coord && count <= FILL_LIMIT)))
    return constant(n, v, (size_t)count, evaluate(m, v, (size_t)count));
  uint32_t id = runtime_scalar(n, coord ? bb_expr_const(m->program, BB_F32, 0) : v->form);
  if (v->rank) id = bb_array_broadcast(m->array, n->name, id, v->rank, v->shape);
  return coord ? bb_array_elementwise(m->array, n->name, v->form, 1, &id) : id;
}

static uint32_t of_elements(const bb_onnx_node *n, const bb_onnx_value *v) {
  bb_onnx *m = n->m;
  bool known = true;
  double *number = BB_NEW(m->arena, double, v->elements);
  for (uint32_t i = 0; i < v->elements; i++) {
    known &= v->element[i]->op == BB_X_CONST;
    number[i] = v->element[i]->number;
  }
  if (known) return constant(n, v, v->elements, number);
  uint32_t *part = BB_NEW(m->arena, uint32_t, v->elements);
  const bb_extent *one = bb_onnx_number(m, 1);
  for (uint32_t i = 0; i < v->elements; i++)
    part[i] = bb_array_reshape(m->array, n->name, runtime_scalar(n, v->element[i]), 1, &one);
  uint32_t id = bb_array_concat(m->array, n->name, v->elements, part, 0);
  return v->rank == 1 ? id : bb_array_reshape(m->array, n->name, id, v->rank, v->shape);
}

uint32_t bb_onnx_id(const bb_onnx_node *n, bb_onnx_value *v) {
  bb_onnx *m = n->m;
  int64_t shape[BB_ONNX_RANK];
  if (v->id != BB_NONE) return v->id;
  const char *what = v->name ? bb_onnx_quote(m->arena, v->name) : "a value";
  bb_onnx_check_shape(
      m, bb_arena_printf(m->arena, "node %s: %s", bb_onnx_quote(m->arena, n->name), what), v->dtype,
      v->rank, v->shape);
  if (v->data) {
    for (uint32_t a = 0; a < v->rank; a++) shape[a] = bb_extent_value(v->shape[a]);
    v->id = bb_array_constant(m->array, v->name, v->dtype, v->rank, shape, v->data, v->bytes);
  } else {
    v->id = v->form ? of_form(n, v) : of_elements(n, v);
  }
  return v->id;
}

/* --- operators --- */

const bb_expr *bb_onnx_arg(const bb_onnx_node *n, uint32_t i, const bb_onnx_value *v) {
  return bb_expr_arg(n->m->program, v->dtype, i);
}

/* Row-major position in an operand of the element at `index` of the result. */
static uint32_t operand_position(const bb_onnx_value *v, uint32_t rank, const int64_t *index) {
  int64_t position = 0;
  for (uint32_t a = 0; a < v->rank; a++) {
    int64_t extent = bb_extent_value(v->shape[a]);
    position = position * extent + (extent == 1 ? 0 : index[rank - v->rank + a]);
  }
  return (uint32_t)position;
}

static bool all_elements(uint32_t count, bb_onnx_value *const *v) {
  for (uint32_t i = 0; i < count; i++)
    if (!v[i]->element) return false;
  return true;
}

/* Element by element, when every operand is known so. */
static bb_onnx_value *map_elements(bb_onnx *m, const bb_expr *expr, uint32_t count,
                                   bb_onnx_value *const *v, uint32_t rank,
                                   const bb_extent *const *shape) {
  int64_t total = bb_onnx_count(rank, shape), index[BB_ONNX_RANK] = {0};
  if (total < 0 || total > BB_ONNX_ELEMENTS || bb_expr_uses_coord(expr)) return NULL;
  const bb_expr **element = BB_NEW(m->arena, const bb_expr *, (size_t)total);
  const bb_expr **with = BB_NEW(m->arena, const bb_expr *, count);
  for (int64_t i = 0; i < total; i++) {
    for (uint32_t k = 0; k < count; k++) {
      with[k] = v[k]->element[operand_position(v[k], rank, index)];
      if (!bb_expr_may_join(expr, with[k])) return NULL;
    }
    element[i] = bb_expr_substitute(m->program, expr, count, with);
    for (uint32_t a = rank; a-- > 0;) {
      if (++index[a] < bb_extent_value(shape[a])) break;
      index[a] = 0;
    }
  }
  return bb_onnx_value_of_elements(m, expr->dtype, rank, shape, (uint32_t)total, element);
}

/* The operands that remain tensors, each once; with[i] is what takes the place of ARG i. */
static uint32_t gather_operands(const bb_onnx_node *n, const bb_expr *expr, uint32_t count,
                                bb_onnx_value *const *v, const bb_expr **with,
                                bb_onnx_value **kept) {
  uint32_t kept_count = 0;
  for (uint32_t i = 0; i < count; i++) {
    uint32_t at = 0;
    with[i] = v[i]->form;
    if (with[i] && bb_expr_may_join(expr, with[i])) continue;
    while (at < kept_count && kept[at] != v[i]) at++;
    if (at == kept_count) kept[kept_count++] = v[i];
    with[i] = bb_onnx_arg(n, at, v[i]);
  }
  return kept_count;
}

/* An operand in the shape of the result, where closed forms make it larger than the tensors. */
static void widen_operand(const bb_onnx_node *n, uint32_t count, bb_onnx_value **kept,
                          uint32_t rank, const bb_extent *const *shape) {
  uint32_t own;
  const bb_extent *const *tensors = bb_onnx_broadcast_shapes(n, count, kept, &own);
  if (own == rank && (!rank || memcmp(tensors, shape, rank * sizeof *shape) == 0)) return;
  kept[0] = bb_onnx_broadcast(n, kept[0], rank, shape);
}

bb_onnx_value *bb_onnx_map(const bb_onnx_node *n, const bb_expr *expr, uint32_t count,
                           bb_onnx_value *const *v) {
  bb_onnx *m = n->m;
  uint32_t rank;
  const bb_extent *const *shape = bb_onnx_broadcast_shapes(n, count, v, &rank);
  bb_onnx_value *known = bb_onnx_count(rank, shape) == 0 || all_elements(count, v)
                             ? map_elements(m, expr, count, v, rank, shape)
                             : NULL;
  if (known && known->form) return known;
  const bb_expr **with = BB_NEW(m->arena, const bb_expr *, count);
  bb_onnx_value **kept = BB_NEW(m->arena, bb_onnx_value *, count);
  uint32_t tensors = gather_operands(n, expr, count, v, with, kept);
  const bb_expr *whole = bb_expr_substitute(m->program, expr, count, with);
  if (known) {
    known->form = tensors ? NULL : whole;
    return known;
  }
  if (!tensors || !bb_expr_arg_count(whole))
    return bb_onnx_value_of_form(m, bb_onnx_form_tidy(m, whole), rank, shape);
  widen_operand(n, tensors, kept, rank, shape);
  uint32_t *id = BB_NEW(m->arena, uint32_t, tensors);
  for (uint32_t i = 0; i < tensors; i++) id[i] = bb_onnx_id(n, kept[i]);
  return bb_onnx_value_of_id(m, bb_array_elementwise(m->array, n->name, whole, tensors, id));
}

bb_onnx_value *bb_onnx_cast(const bb_onnx_node *n, bb_onnx_value *v, bb_dtype dtype) {
  if (v->dtype == dtype && v->stored == dtype) return v;
  if (v->dtype == dtype) {
    bb_onnx_value *same = BB_NEW(n->m->arena, bb_onnx_value, 1);
    *same = *v;
    same->stored = dtype;
    return same;
  }
  return bb_onnx_map(n, bb_expr_cast(n->m->program, dtype, bb_onnx_arg(n, 0, v)), 1, &v);
}

bb_onnx_value *bb_onnx_reduce(const bb_onnx_node *n, bb_monoid_id monoid, bb_onnx_value *v,
                              uint32_t count, const int64_t *axes, bool keep) {
  uint32_t id = bb_array_reduce(n->m->array, n->name, bb_monoid_get(monoid), bb_onnx_id(n, v),
                                count, axes, keep);
  return bb_onnx_value_of_id(n->m, id);
}

/* Labels as small numbers, in the order in which they are met. */
static void number_labels(uint32_t rank, const int64_t *labels, int64_t *known, uint32_t *count,
                          int64_t *small) {
  for (uint32_t a = 0; a < rank; a++) {
    uint32_t at = 0;
    while (at < *count && known[at] != labels[a]) at++;
    if (at == *count) known[(*count)++] = labels[a];
    small[a] = at;
  }
}

bb_onnx_value *bb_onnx_contract(const bb_onnx_node *n, bb_onnx_value *a, bb_onnx_value *b,
                                const int64_t *labels_a, const int64_t *labels_b, uint32_t rank,
                                const int64_t *labels_out) {
  int64_t known[3 * BB_ONNX_RANK], la[BB_ONNX_RANK], lb[BB_ONNX_RANK], lo[BB_ONNX_RANK];
  uint32_t count = 0, ida = bb_onnx_id(n, a), idb = bb_onnx_id(n, b);
  number_labels(a->rank, labels_a, known, &count, la);
  number_labels(b->rank, labels_b, known, &count, lb);
  number_labels(rank, labels_out, known, &count, lo);
  for (uint32_t i = 0; i < a->rank; i++) /* what does not fit is refused below */
    for (uint32_t k = 0; k < b->rank; k++)
      if (la[i] == lb[k] && !bb_onnx_is_one(a->shape[i]) && !bb_onnx_is_one(b->shape[k]))
        bb_onnx_same_extent(n, a->shape[i], b->shape[k]);
  return bb_onnx_value_of_id(n->m,
                             bb_array_contract(n->m->array, n->name, ida, idb, la, lb, rank, lo));
}
