/* view.c - operators that move no data: reshapes, transposes, slices, joins and what is made of them. */
#include "convert.h"
#include "formula.h"

#include <string.h>

/* Refuses an extent of a shape that is computed and below 0 in any run. */
static void refuse_negative(const bb_onnx_node *n, uint32_t axis, const bb_expr *e) {
  bb_onnx *m = n->m;
  const bb_expr *less = bb_onnx_tidy_make(m, BB_X_SUB, f_num(m->program, e, 0), e);
  const bb_extent *extent = bb_onnx_least(m, less) > 0 ? bb_onnx_expr_extent(m, less) : NULL;
  if (!extent) return;
  bb_buffer text = {.arena = m->arena};
  bb_onnx_put_shape(&text, m, 1, &extent);
  bb_onnx_refuse(n, "extent %u of the shape is negative, 0 less %s", axis, text.data);
}

/* The extents that a small integer tensor holds; NULL, and the node noted, when one is not known.
 * Negative numbers are left to the caller: extent[i] is NULL and number[i] holds them. */
static const bb_extent **shape_operand(bb_onnx_node *n, const bb_onnx_value *v, uint32_t *rank,
                                       int64_t *number) {
  if (v->dtype != BB_I64) bb_onnx_refuse(n, "the shape is %s", bb_dtype_name(v->stored));
  if (v->rank != 1) bb_onnx_refuse(n, "the shape is not a vector");
  if (!v->element) {
    bb_onnx_unsupported(n, "a shape that is computed at run time");
    return NULL;
  }
  if (v->elements > BB_ONNX_RANK) bb_onnx_refuse(n, "the shape has %u axes", v->elements);
  const bb_extent **extent = BB_NEW(n->m->arena, const bb_extent *, v->elements);
  for (uint32_t i = 0; i < v->elements; i++) {
    const bb_expr *e = v->element[i];
    if (e->op != BB_X_CONST) refuse_negative(n, i, e);
    extent[i] = bb_onnx_expr_extent(n->m, e);
    number[i] = extent[i] ? bb_extent_value(extent[i]) : (int64_t)e->number;
  }
  *rank = v->elements;
  return extent;
}

/* --- reshapes --- */

static void reshape(bb_onnx_node *n, uint32_t rank, const bb_extent *const *shape) {
  n->out[0] = bb_onnx_reshape(n, n->in[0], rank, shape);
}

/* A name may be another name of the axis that stands in its place; a number says nothing of that, unless no other reading fits, nor
 * does a part of what the axis is a product of: the rest of it may stand elsewhere. */
static void tie_axis(bb_onnx_node *n, const bb_extent *axis, const bb_extent *to) {
  bool part = to->count && axis->factor && bb_extent_divide(n->m->program, axis, to);
  if (!part && (to->count || n->m->in_place)) bb_onnx_same_extent(n, axis, to);
}

/* Where a shape does not fit, names that it gives to axes that stay may be other names of theirs: those before the axis
 * `open` and those behind it are tied. */
static void tie_axes(bb_onnx_node *n, uint32_t rank, const bb_extent *const *shape, uint32_t open) {
  const bb_onnx_value *v = n->in[0];
  for (uint32_t i = 0; i < open && i < v->rank; i++) tie_axis(n, v->shape[i], shape[i]);
  for (uint32_t i = 1; i < rank - open && i <= v->rank; i++)
    tie_axis(n, v->shape[v->rank - i], shape[rank - i]);
}

/* What is left for the axis `open` of a shape, the others being known. */
static const bb_extent *open_extent(bb_onnx_node *n, uint32_t rank, const bb_extent **shape,
                                    uint32_t open) {
  bb_onnx *m = n->m;
  bb_onnx_value *v = n->in[0];
  shape[open] = bb_onnx_number(m, 1);
  const bb_extent *all = bb_onnx_whole_extent(m, bb_onnx_product(m, v->rank, v->shape)),
                  *by = bb_onnx_whole_extent(m, bb_onnx_product(m, rank, shape));
  const bb_extent *rest = bb_extent_divide(m->program, all, by);
  if (rest) return rest;
  bb_onnx_tie_quotient(n, all, by);
  tie_axes(n, rank, shape, open);
  rest = m->in_place ? NULL : bb_onnx_exact_quotient(m, all, by);
  m->divides |= rest != NULL;
  if (rest) return rest;
  shape[open] = NULL;
  bb_buffer to = {.arena = m->arena};
  bb_onnx_put_shape(&to, m, rank, shape);
  bb_onnx_refuse(n, "shape %s does not reshape to %s: no length is known to fit",
                 bb_onnx_shape_text(m, v), to.data);
}

void bb_onnx_reshape_to(bb_onnx_node *n) {
  bb_onnx_value *v = n->in[0];
  uint32_t rank, open = BB_NONE;
  int64_t number[BB_ONNX_RANK];
  bool zero_is_zero = bb_onnx_int(n, "allowzero", 0);
  const bb_extent **shape = shape_operand(n, n->in[1], &rank, number);
  if (!shape) return;
  for (uint32_t i = 0; i < rank; i++) {
    if (number[i] == 0 && shape[i] && !zero_is_zero) {
      if (i >= v->rank)
        bb_onnx_refuse(n, "axis %u of the shape copies an axis that is not there", i);
      shape[i] = v->shape[i];
    }
    if (shape[i]) continue;
    if (number[i] != -1 || open != BB_NONE)
      bb_onnx_refuse(n, "the shape has a bad or a second -1 axis");
    open = i;
  }
  for (uint32_t i = 0; i < rank && open != BB_NONE; i++)
    if (i != open && bb_extent_value(shape[i]) == 0)
      bb_onnx_refuse(n, "the shape has an axis of no elements and one that is to be inferred");
  if (open != BB_NONE) shape[open] = open_extent(n, rank, shape, open);
  reshape(n, rank, shape);
}

/* Which axes an operand (or nothing) names. */
static bool named_axes(bb_onnx_node *n, uint32_t operand, uint32_t rank, bool *named,
                       uint32_t *count) {
  *count = 0;
  if (operand >= n->nin || !n->in[operand]) return true;
  const int64_t *axes = bb_onnx_known_ints(n, n->in[operand], count);
  if (!axes) {
    bb_onnx_unsupported(n, "axes that are computed at run time");
    return false;
  }
  for (uint32_t i = 0; i < *count; i++) {
    uint32_t axis = bb_onnx_axis(n, axes[i], rank);
    if (named[axis]) bb_onnx_refuse(n, "axis %u is named twice", axis);
    named[axis] = true;
  }
  return true;
}

void bb_onnx_squeeze(bb_onnx_node *n) {
  bb_onnx_value *v = n->in[0];
  bool named[BB_ONNX_RANK] = {false};
  const bb_extent *shape[BB_ONNX_RANK];
  uint32_t count, rank = 0;
  if (!named_axes(n, 1, v->rank, named, &count)) return;
  bool all = n->nin < 2;
  for (uint32_t a = 0; a < v->rank; a++) {
    bool one = bb_onnx_is_one(v->shape[a]);
    if (named[a] && !one)
      bb_onnx_refuse(n, "axis %u of shape %s is not 1", a, bb_onnx_shape_text(n->m, v));
    if (!(named[a] || (all && one))) shape[rank++] = v->shape[a];
  }
  reshape(n, rank, shape);
}

void bb_onnx_unsqueeze(bb_onnx_node *n) {
  bb_onnx_value *v = n->in[0];
  bool named[BB_ONNX_RANK] = {false};
  const bb_extent *shape[BB_ONNX_RANK];
  uint32_t count = n->in[1]->element ? n->in[1]->elements : 0, rank = v->rank + count, from = 0;
  if (rank > BB_ONNX_RANK) bb_onnx_refuse(n, "the result has %u axes", rank);
  if (!named_axes(n, 1, rank, named, &count)) return;
  for (uint32_t a = 0; a < rank; a++)
    shape[a] = named[a] ? bb_onnx_number(n->m, 1) : v->shape[from++];
  reshape(n, rank, shape);
}

void bb_onnx_flatten(bb_onnx_node *n) {
  bb_onnx_value *v = n->in[0];
  int64_t axis = bb_onnx_int(n, "axis", 1);
  if (axis < -(int64_t)v->rank || axis > (int64_t)v->rank)
    bb_onnx_refuse(n, "axis %lld is out of range for rank %u", (long long)axis, v->rank);
  uint32_t cut = (uint32_t)(axis < 0 ? axis + v->rank : axis);
  const bb_extent *shape[2] = {bb_onnx_product(n->m, cut, v->shape),
                               bb_onnx_product(n->m, v->rank - cut, v->shape + cut)};
  reshape(n, 2, shape);
}

void bb_onnx_permute(bb_onnx_node *n) {
  bb_onnx_value *v = n->in[0];
  uint32_t count;
  int64_t perm[BB_ONNX_RANK];
  bool seen[BB_ONNX_RANK] = {false};
  const int64_t *given = bb_onnx_ints(n, "perm", &count);
  if (given && count != v->rank) bb_onnx_refuse(n, "perm has %u axes for rank %u", count, v->rank);
  for (uint32_t a = 0; a < v->rank; a++) {
    perm[a] = given ? bb_onnx_axis(n, given[a], v->rank) : v->rank - 1 - a;
    if (seen[perm[a]]) bb_onnx_refuse(n, "perm names axis %lld twice", (long long)perm[a]);
    seen[perm[a]] = true;
  }
  n->out[0] = bb_onnx_transpose(n, v, perm);
}

/* --- repeats --- */

void bb_onnx_expand(bb_onnx_node *n) {
  bb_onnx *m = n->m;
  bb_onnx_value *v = n->in[0];
  uint32_t rank;
  int64_t number[BB_ONNX_RANK];
  const bb_extent **shape = shape_operand(n, n->in[1], &rank, number);
  if (!shape) return;
  for (uint32_t i = 0; i < rank; i++) {
    bool keeps =
        !shape[i] && number[i] == -1 && i + v->rank >= rank; /* as some exporters write it */
    if (keeps) shape[i] = v->shape[i + v->rank - rank];
    if (!shape[i]) bb_onnx_refuse(n, "extent %lld of the shape is negative", (long long)number[i]);
  }
  bb_onnx_value like = {.rank = rank, .shape = shape};
  const bb_extent *const *both =
      bb_onnx_broadcast_shapes(n, 2, (bb_onnx_value *[]){v, &like}, &rank);
  if (bb_onnx_count(rank, both) != 0)
    bb_onnx_check_shape(m, bb_arena_printf(m->arena, "node %s", bb_onnx_quote(m->arena, n->name)),
                        v->dtype, rank, both);
  n->out[0] = bb_onnx_broadcast(n, v, rank, both);
}

/* Axis a repeated r times is the product of r (outer) and itself. */
static bb_onnx_value *repeat(const bb_onnx_node *n, bb_onnx_value *v, uint32_t axis,
                             const bb_extent *times) {
  const bb_extent *shape[BB_ONNX_RANK + 1];
  if (v->rank == BB_ONNX_RANK) bb_onnx_refuse(n, "the operand has too many axes");
  memcpy(shape, v->shape, axis * sizeof *shape);
  memcpy(shape + axis + 1, v->shape + axis, (v->rank - axis) * sizeof *shape);
  shape[axis] = bb_onnx_number(n->m, 1);
  bb_onnx_value *w = bb_onnx_reshape(n, v, v->rank + 1, shape);
  shape[axis] = times;
  w = bb_onnx_broadcast(n, w, v->rank + 1, shape);
  shape[axis + 1] = bb_extent_multiply(n->m->program, times, shape[axis + 1]);
  memmove(shape + axis, shape + axis + 1, (v->rank - axis) * sizeof *shape);
  return bb_onnx_reshape(n, w, v->rank, shape);
}

void bb_onnx_tile(bb_onnx_node *n) {
  bb_onnx_value *v = n->in[0];
  uint32_t count;
  int64_t number[BB_ONNX_RANK];
  const bb_extent **times = shape_operand(n, n->in[1], &count, number);
  if (!times) return;
  if (count != v->rank) bb_onnx_refuse(n, "%u repeats for rank %u", count, v->rank);
  for (uint32_t a = 0; a < count; a++) {
    if (!times[a]) bb_onnx_refuse(n, "%lld repeats", (long long)number[a]);
    if (!bb_onnx_is_one(times[a])) v = repeat(n, v, a, times[a]);
  }
  n->out[0] = v;
}

/* --- joins --- */

void bb_onnx_join(bb_onnx_node *n) {
  bb_onnx_value **v = BB_NEW(n->m->arena, bb_onnx_value *, n->nin);
  for (uint32_t i = 0; i < n->nin; i++) {
    if (!n->in[i]) bb_onnx_refuse(n, "input %u is missing", i);
    v[i] = n->in[i];
  }
  if (!v[0]->rank) bb_onnx_refuse(n, "an operand is a scalar");
  uint32_t axis = bb_onnx_axis(n, bb_onnx_int(n, "axis", 0), v[0]->rank);
  for (uint32_t i = 0; i < n->nin; i++)
    if (v[i]->rank != v[0]->rank)
      bb_onnx_refuse(n, "operands of rank %u and %u", v[0]->rank, v[i]->rank);
  n->out[0] = bb_onnx_concat(n, n->nin, v, axis);
}
