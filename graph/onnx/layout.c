/* layout.c - views of values: what moves no data keeps closed forms and known elements. */
#include "convert.h"
#include "formula.h"

#include <string.h>

/* --- known elements --- */

/* The elements of a view whose element at index i (row-major over `shape`) is element
 * origin + sum i[a]*stride[a] of v; NULL if they are not known or too many. */
static const bb_expr *const *pick(bb_onnx *m, const bb_onnx_value *v, uint32_t rank,
                                  const bb_extent *const *shape, int64_t origin,
                                  const int64_t *stride, uint32_t *count) {
  int64_t total = bb_onnx_count(rank, shape), index[BB_ONNX_RANK] = {0};
  if (!v->element || total < 0 || total > BB_ONNX_ELEMENTS) return NULL;
  const bb_expr **element = BB_NEW(m->arena, const bb_expr *, (size_t)total);
  for (int64_t i = 0; i < total; i++) {
    int64_t at = origin;
    for (uint32_t a = 0; a < rank; a++) at += index[a] * stride[a];
    element[i] = v->element[at];
    for (uint32_t a = rank; a-- > 0;) {
      if (++index[a] < bb_extent_value(shape[a])) break;
      index[a] = 0;
    }
  }
  *count = (uint32_t)total;
  return element;
}

/* Of a value whose elements are known; of others nothing is picked, and products of their extents
 * may not fit. */
static void strides(const bb_onnx_value *v, int64_t *stride) {
  int64_t step = 1;
  for (uint32_t a = v->rank; a-- > 0;) {
    stride[a] = v->element ? step : 0;
    if (v->element) step *= bb_extent_value(v->shape[a]);
  }
}

/* --- closed forms --- */

/* What takes the place of each coordinate of a form, counted from the last axis. */
typedef struct renaming {
  const bb_expr *to[BB_ONNX_RANK];
} renaming;

static const bb_expr *rename_leaf(void *user, const bb_expr *leaf) {
  const renaming *r = user;
  if (leaf->op != BB_X_COORD || leaf->index < BB_COORD_AXIS) return leaf;
  return r->to[leaf->index - BB_COORD_AXIS];
}

static const bb_expr *coordinate(bb_onnx *m, uint32_t rank, uint32_t axis) {
  return bb_expr_coord(m->program, BB_COORD_AXIS + rank - 1 - axis);
}

static const bb_expr *renamed(bb_onnx *m, const bb_expr *form, renaming *r) {
  return form ? bb_expr_map_leaves(m->program, form, rename_leaf, r) : NULL;
}

/* A view of no elements, or one for which an element list or a closed form is known: no tensor is needed yet. */
static bb_onnx_value *known_view(bb_onnx *m, bb_dtype dtype, uint32_t rank,
                                 const bb_extent *const *shape, uint32_t count,
                                 const bb_expr *const *element, const bb_expr *form) {
  if (bb_onnx_count(rank, shape) == 0)
    return bb_onnx_value_of_elements(m, dtype, rank, shape, 0, NULL);
  if (!element && !form) return NULL;
  if (!element) return bb_onnx_value_of_form(m, form, rank, shape);
  bb_onnx_value *v = bb_onnx_value_of_elements(m, dtype, rank, shape, count, element);
  if (!v->form) v->form = form;
  return v;
}

/* --- views --- */

/* The form of a reshape that only adds or drops axes of extent 1, or of a fill. */
static const bb_expr *reshape_form(bb_onnx *m, const bb_onnx_value *v, uint32_t rank,
                                   const bb_extent *const *shape) {
  renaming r = {{NULL}};
  if (!v->form || !bb_expr_uses_coord(v->form)) return v->form;
  uint32_t to = 0;
  for (uint32_t from = 0; from < v->rank; from++) {
    if (bb_onnx_is_one(v->shape[from])) continue;
    while (to < rank && bb_onnx_is_one(shape[to])) to++;
    if (to == rank || shape[to] != v->shape[from]) return NULL;
    r.to[v->rank - 1 - from] = coordinate(m, rank, to++);
  }
  return renamed(m, v->form, &r);
}

static bool same_shape(const bb_onnx_value *v, uint32_t rank, const bb_extent *const *shape) {
  return v->rank == rank && (!rank || memcmp(v->shape, shape, rank * sizeof *shape) == 0);
}

/* One size in a run, though their products are told apart: a reference kernel gives the elements their new shape. */
static bb_onnx_value *reshape_at_run_time(const bb_onnx_node *n, bb_onnx_value *v, uint32_t rank,
                                          const bb_extent *const *shape) {
  bb_misc kernel = {.domain = "", .op = "Reshape", .version = 13};
  bb_onnx_value *out = bb_onnx_value_new(n->m, v->dtype, rank, shape);
  bb_onnx_misc_node(n, &kernel, 1, &v, 1, &out);
  return out;
}

bb_onnx_value *bb_onnx_reshape(const bb_onnx_node *n, bb_onnx_value *v, uint32_t rank,
                               const bb_extent *const *to_shape) {
  bb_onnx *m = n->m;
  const bb_extent **shape = BB_NEW(m->arena, const bb_extent *, rank);
  for (uint32_t a = 0; a < rank; a++) shape[a] = bb_onnx_whole_extent(m, to_shape[a]);
  if (same_shape(v, rank, shape)) return v;
  const bb_extent *all = bb_onnx_product(m, v->rank, v->shape);
  if (!bb_onnx_same_product(n, all, bb_onnx_product(m, rank, shape))) {
    bb_onnx_tie_shapes(n, v->rank, v->shape, rank, shape);
    bb_buffer to = {.arena = m->arena};
    bb_onnx_put_shape(&to, m, rank, shape);
    bb_onnx_refuse(n, "shape %s does not reshape to %s", bb_onnx_shape_text(m, v), to.data);
  }
  bb_onnx_value *view = known_view(m, v->dtype, rank, shape, v->elements, v->element,
                                   reshape_form(m, v, rank, shape));
  if (view) return view;
  if (all != bb_onnx_product(m, rank, shape)) return reshape_at_run_time(n, v, rank, shape);
  return bb_onnx_value_of_id(m, bb_array_reshape(m->array, n->name, bb_onnx_id(n, v), rank, shape));
}

bb_onnx_value *bb_onnx_transpose(const bb_onnx_node *n, bb_onnx_value *v, const int64_t *perm) {
  bb_onnx *m = n->m;
  const bb_extent *shape[BB_ONNX_RANK];
  int64_t own[BB_ONNX_RANK], stride[BB_ONNX_RANK];
  renaming r = {{NULL}};
  bool identity = true;
  uint32_t count = 0;
  for (uint32_t a = 0; a < v->rank; a++) identity &= perm[a] == a;
  if (identity) return v;
  strides(v, own);
  for (uint32_t a = 0; a < v->rank; a++) {
    shape[a] = v->shape[perm[a]];
    stride[a] = own[perm[a]];
    r.to[v->rank - 1 - (uint32_t)perm[a]] = coordinate(m, v->rank, a);
  }
  const bb_expr *const *element = pick(m, v, v->rank, shape, 0, stride, &count);
  bb_onnx_value *view =
      known_view(m, v->dtype, v->rank, shape, count, element, renamed(m, v->form, &r));
  if (view) return view;
  return bb_onnx_value_of_id(m, bb_array_transpose(m->array, n->name, bb_onnx_id(n, v), perm));
}

bb_onnx_value *bb_onnx_broadcast(const bb_onnx_node *n, bb_onnx_value *v, uint32_t rank,
                                 const bb_extent *const *shape) {
  bb_onnx *m = n->m;
  int64_t own[BB_ONNX_RANK], stride[BB_ONNX_RANK] = {0};
  uint32_t count = 0;
  if (same_shape(v, rank, shape)) return v;
  strides(v, own);
  for (uint32_t a = 0; a < v->rank; a++)
    if (!bb_onnx_is_one(v->shape[a])) stride[rank - v->rank + a] = own[a];
  const bb_expr *const *element = pick(m, v, rank, shape, 0, stride, &count);
  bb_onnx_value *view = known_view(m, v->dtype, rank, shape, count, element, v->form);
  if (view) return view;
  return bb_onnx_value_of_id(m,
                             bb_array_broadcast(m->array, n->name, bb_onnx_id(n, v), rank, shape));
}

bb_onnx_value *bb_onnx_lead(const bb_onnx_node *n, bb_onnx_value *v, uint32_t rank) {
  const bb_extent *shape[BB_ONNX_RANK];
  if (v->rank >= rank) return v;
  for (uint32_t a = 0; a < rank; a++)
    shape[a] = a < rank - v->rank ? bb_onnx_number(n->m, 1) : v->shape[a - (rank - v->rank)];
  return bb_onnx_reshape(n, v, rank, shape);
}

/* start + step * coordinate, or start alone where one element remains. */
static const bb_expr *slice_form(bb_onnx *m, const bb_onnx_value *v, uint32_t axis, int64_t start,
                                 int64_t step, int64_t length) {
  bb_program *p = m->program;
  renaming r = {{NULL}};
  if (!v->form || length == 0) return NULL;
  for (uint32_t a = 0; a < v->rank; a++) r.to[v->rank - 1 - a] = coordinate(m, v->rank, a);
  const bb_expr *from = bb_expr_const(p, BB_I64, (double)start), *at = r.to[v->rank - 1 - axis];
  const bb_expr *scaled = f_mul(p, bb_expr_const(p, BB_I64, (double)step), at);
  r.to[v->rank - 1 - axis] = length == 1 ? from : start ? f_add(p, scaled, from) : scaled;
  return renamed(m, v->form, &r);
}

bb_onnx_value *bb_onnx_windows(const bb_onnx_node *n, bb_onnx_value *v, uint32_t axis,
                               const bb_array_windows *windows) {
  bb_onnx *m = n->m;
  return bb_onnx_value_of_id(
      m, bb_array_windows_of(m->array, n->name, bb_onnx_id(n, v), axis, windows));
}

bb_onnx_value *bb_onnx_pad_along(const bb_onnx_node *n, bb_onnx_value *v, uint32_t axis,
                                 int64_t before, int64_t after, const bb_expr *fill) {
  bb_onnx *m = n->m;
  const bb_expr *length = bb_onnx_extent_meaning(m, v->shape[axis]);
  const bb_expr *more = f_num(m->program, length, (double)before + (double)after);
  const bb_extent *extent = bb_onnx_expr_extent(m, bb_onnx_tidy_make(m, BB_X_ADD, length, more));
  return bb_onnx_value_of_id(
      m, bb_array_pad(m->array, n->name, bb_onnx_id(n, v), axis, before, fill, extent));
}

bb_onnx_value *bb_onnx_slice(const bb_onnx_node *n, bb_onnx_value *v, uint32_t axis, int64_t start,
                             int64_t step, int64_t length) {
  bb_onnx *m = n->m;
  const bb_extent *shape[BB_ONNX_RANK];
  int64_t own[BB_ONNX_RANK];
  uint32_t count = 0;
  if (length <= 1) step = 1; /* any step says the same, and a huge one does not fit */
  if (start == 0 && step == 1 && bb_onnx_is_number(v->shape[axis], length)) return v;
  for (uint32_t a = 0; a < v->rank; a++) shape[a] = v->shape[a];
  shape[axis] = bb_onnx_number(m, length);
  if (length == 0) /* for who joins or splits it on: nothing to compute */
    return bb_onnx_value_of_form(m, bb_expr_const(m->program, v->dtype, 0), v->rank, shape);
  strides(v, own);
  int64_t origin = start * own[axis];
  own[axis] *= step;
  const bb_expr *const *element = pick(m, v, v->rank, shape, origin, own, &count);
  bb_onnx_value *view = known_view(m, v->dtype, v->rank, shape, count, element,
                                   slice_form(m, v, axis, start, step, length));
  if (view) return view;
  return bb_onnx_value_of_id(
      m, bb_array_slice(m->array, n->name, bb_onnx_id(n, v), axis, start, step, length));
}

/* The joined elements, when every part's are known. */
static const bb_expr *const *join(bb_onnx *m, uint32_t count, bb_onnx_value *const *v,
                                  uint32_t axis, uint32_t *total) {
  int64_t outer = bb_onnx_count(axis, v[0]->shape), sum = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (!v[i]->element) return NULL;
    sum += v[i]->elements;
  }
  if (sum > BB_ONNX_ELEMENTS) return NULL;
  const bb_expr **element = BB_NEW(m->arena, const bb_expr *, (size_t)sum);
  uint32_t at = 0;
  for (int64_t o = 0; o < outer; o++)
    for (uint32_t i = 0; i < count; i++) {
      int64_t run = v[i]->elements / outer;
      for (int64_t k = 0; k < run; k++) element[at++] = v[i]->element[o * run + k];
    }
  *total = at;
  return element;
}

static const bb_extent *joined_extent(const bb_onnx_node *n, uint32_t count,
                                      bb_onnx_value *const *v, uint32_t axis) {
  int64_t sum = 0, value;
  for (uint32_t i = 0; i < count; i++) {
    value = bb_extent_value(v[i]->shape[axis]);
    if (value < 0) return NULL;
    if (__builtin_add_overflow(sum, value, &sum)) bb_onnx_refuse(n, "the joined extent overflows");
  }
  return bb_onnx_number(n->m, sum);
}

static void check_parts(const bb_onnx_node *n, uint32_t count, bb_onnx_value *const *v,
                        uint32_t axis) {
  for (uint32_t i = 1; i < count; i++) {
    bool fits = v[i]->rank == v[0]->rank && v[i]->dtype == v[0]->dtype;
    for (uint32_t a = 0; fits && a < v[0]->rank; a++)
      fits = a == axis || bb_onnx_same_extent(n, v[0]->shape[a], v[i]->shape[a]);
    if (!fits)
      bb_onnx_refuse(n, "%s %s and %s %s do not join along axis %u", bb_dtype_name(v[0]->stored),
                     bb_onnx_shape_text(n->m, v[0]), bb_dtype_name(v[i]->stored),
                     bb_onnx_shape_text(n->m, v[i]), axis);
  }
}

static bool same_lengths(uint32_t count, bb_onnx_value *const *v, uint32_t axis) {
  for (uint32_t i = 1; i < count; i++)
    if (v[i]->shape[axis] != v[0]->shape[axis]) return false;
  return true;
}

static const bb_extent *run_time_extent(bb_onnx *m, uint32_t count, bb_onnx_value *const *v,
                                        uint32_t axis) {
  const bb_expr *sum = bb_onnx_extent_meaning(m, v[0]->shape[axis]);
  for (uint32_t i = 1; i < count; i++)
    sum = bb_onnx_tidy_make(m, BB_X_ADD, sum, bb_onnx_extent_meaning(m, v[i]->shape[axis]));
  return bb_onnx_expr_extent(m, sum);
}

/* Lengths that only the run tells: where a part begins is no number, so the parts are brought together
 * by a reference kernel (which leaves the first where it is if it lies there already). */
static bb_onnx_value *join_at_run_time(const bb_onnx_node *n, uint32_t count, bb_onnx_value **v,
                                       uint32_t axis, const bb_extent *const *shape) {
  bb_onnx *m = n->m;
  bb_attribute *attribute = BB_NEW(m->program->arena, bb_attribute, 1);
  *attribute = (bb_attribute){.name = "axis", .kind = BB_ATTR_INT, .i = axis};
  bb_misc kernel = {
      .domain = "", .op = "Concat", .version = 13, .count = 1, .attribute = attribute};
  bb_onnx_value *out = bb_onnx_value_new(m, v[0]->dtype, v[0]->rank, shape);
  bb_onnx_misc_node(n, &kernel, count, v, 1, &out);
  return out;
}

bb_onnx_value *bb_onnx_concat(const bb_onnx_node *n, uint32_t count, bb_onnx_value **v,
                              uint32_t axis) {
  bb_onnx *m = n->m;
  uint32_t filled = 0, total = 0;
  check_parts(n, count, v, axis);
  for (uint32_t i = 0; i < count; i++) /* an empty part, such as an empty cache, adds nothing */
    if (!bb_onnx_is_number(v[i]->shape[axis], 0)) v[filled++] = v[i];
  if (filled == 0) return v[0];
  if (filled == 1) return v[0];
  const bb_extent *extent = joined_extent(n, filled, v, axis);
  const bb_expr *const *element = extent ? join(m, filled, v, axis, &total) : NULL;
  const bb_extent *shape[BB_ONNX_RANK];
  memcpy(shape, v[0]->shape, v[0]->rank * sizeof *shape);
  shape[axis] = extent ? extent : run_time_extent(m, filled, v, axis);
  if (element) return bb_onnx_value_of_elements(m, v[0]->dtype, v[0]->rank, shape, total, element);
  bb_onnx_value *form = bb_onnx_form_concat(m, filled, v, axis, shape);
  if (form) return form;
  if (!extent && !same_lengths(filled, v, axis)) return join_at_run_time(n, filled, v, axis, shape);
  uint32_t *id = BB_NEW(m->arena, uint32_t, filled);
  for (uint32_t i = 0; i < filled; i++) id[i] = bb_onnx_id(n, v[i]);
  return bb_onnx_value_of_id(m, bb_array_concat(m->array, n->name, filled, id, axis));
}
