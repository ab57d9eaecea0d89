/* slice.c - parts of an axis: Split, and Slice with bounds that are numbers or follow from run-time extents.
 *
 * A part whose bounds are numbers is a view.  Any other is gathered at the indices that its bounds give, and the kernel that
 * gathers them refuses one that is out of range: bounds that ONNX would have cut to the axis are refused when the program
 * runs, they never yield other elements.
 */
#include "convert.h"
#include "formula.h"

/* Exporters that count in 32 bits write the greatest number for an end of an axis, or one a little below: no axis of a model
 * ends between these and there. */
static const double to_end = INT32_MAX - 0xffff;

/* One axis of a Slice, by numpy's rules. */
static void clamp_slice(int64_t extent, int64_t *start, int64_t end, int64_t step,
                        int64_t *length) {
  int64_t low = step > 0 ? 0 : -1, high = step > 0 ? extent : extent - 1;
  int64_t from = *start < 0 ? *start + extent : *start, to = end < 0 ? end + extent : end;
  from = from < low ? low : from > high ? high : from;
  to = to < low ? low : to > high ? high : to;
  int64_t span = step > 0 ? to - from : from - to, stride = step > 0 ? step : -step;
  *length = span > 0 ? (span - 1) / stride + 1 : 0;
  *start = *length ? from : 0;
}

/* Whether start..end covers an axis of symbolic extent from its first to its last element. */
static bool covers(bb_onnx *m, const bb_extent *extent, const bb_expr *start, const bb_expr *end,
                   int64_t step) {
  bool from_first = start->op == BB_X_CONST && start->number == 0;
  bool to_last =
      end->op == BB_X_CONST ? end->number >= to_end : bb_onnx_expr_extent(m, end) == extent;
  return step == 1 && from_first && to_last;
}

/* A bound as a place on an axis, from 0 to its extent, or with a negative step from -1 to its last element. */
static const bb_expr *place(bb_onnx *m, const bb_extent *axis, const bb_expr *bound, int64_t step) {
  bb_program *p = m->program;
  const bb_expr *extent = bb_onnx_extent_meaning(m, axis);
  int64_t known = bb_extent_value(axis);
  double last = step > 0 ? 0 : -1;
  if (bound->op != BB_X_CONST) return bb_expr_cast(p, BB_I64, bound);
  bool beyond =
      bound->number >= to_end + last || (known >= 0 && bound->number > (double)known + last);
  bool before = bound->number <= -to_end || (known >= 0 && bound->number < -(double)known);
  if (beyond) return bb_onnx_tidy_make(m, BB_X_ADD, extent, f_num(p, extent, last));
  if (before) return f_num(p, extent, last);
  const bb_expr *number = f_num(p, extent, bound->number);
  return bound->number < 0 ? bb_onnx_tidy_make(m, BB_X_ADD, extent, number) : number;
}

/* The elements from `start` to before `end`, both expressions; NULL: their places are known only as the program runs. */
static bb_onnx_value *gathered_part(const bb_onnx_node *n, bb_onnx_value *v, uint32_t axis,
                                    const bb_expr *start, const bb_expr *end, int64_t step) {
  bb_onnx *m = n->m;
  bb_program *p = m->program;
  bool numbers = start->op == BB_X_CONST && end->op == BB_X_CONST;
  if (step < 0 && !numbers) return NULL; /* a bound below 0 would count from the end */
  const bb_extent *extent = v->shape[axis];
  const bb_expr *first = place(m, extent, start, step), *past = place(m, extent, end, step);
  const bb_expr *span =
      bb_onnx_tidy_make(m, BB_X_SUB, step > 0 ? past : first, step > 0 ? first : past);
  const bb_expr *stride = f_num(p, span, (double)(step > 0 ? step : -step));
  if (stride->number != 1)
    span = bb_onnx_tidy_make(
        m, BB_X_DIV, bb_onnx_tidy_make(m, BB_X_ADD, span, f_num(p, span, stride->number - 1)),
        stride);
  const bb_extent *length = bb_onnx_expr_extent(m, span);
  if (!length) bb_onnx_refuse(n, "its part of axis %u has no elements", axis);
  const bb_onnx_value line = {.dtype = BB_I64, .rank = 1, .shape = &length};
  const bb_expr *along = f_mul(p, bb_onnx_index_along(m, &line, 0), f_num(p, span, (double)step));
  const bb_expr *at = f_add(p, first, along);
  /* below 0 it is out of range, and does not count from the end */
  const bb_expr *least = step > 0 || past->op == BB_X_CONST ? first : past;
  double low = least == first ? 0 : -1;
  if (least->op != BB_X_CONST)
    at = f_select(p, f_lt(p, least, f_num(p, least, low)), bb_onnx_extent_expr(m, extent), at);
  return bb_onnx_gather_along(n, v, axis, bb_onnx_value_of_form(m, at, 1, &length));
}

/* One axis; NULL: what it is is known only as the program runs. */
static bb_onnx_value *part(const bb_onnx_node *n, bb_onnx_value *v, uint32_t axis,
                           const bb_expr *from, const bb_expr *to, int64_t step) {
  int64_t extent = bb_extent_value(v->shape[axis]), start, end, length;
  bb_onnx_value one = {.element = &from, .elements = 1};
  if (extent < 0 && covers(n->m, v->shape[axis], from, to, step)) return v;
  bool numbers = extent >= 0 && bb_onnx_known_int(&one, &start);
  one.element = &to;
  if (!numbers || !bb_onnx_known_int(&one, &end)) return gathered_part(n, v, axis, from, to, step);
  clamp_slice(extent, &start, end, step, &length);
  return bb_onnx_slice(n, v, axis, start, step, length);
}

/* --- Split --- */

/* The lengths of the parts: given, or as equal as `outputs` allow, the last one shorter. */
static int64_t *split_lengths(bb_onnx_node *n, int64_t extent, uint32_t outputs) {
  int64_t *length = BB_NEW(n->m->arena, int64_t, outputs), left = extent;
  bool given = n->nin > 1 && n->in[1];
  uint32_t count = outputs;
  const int64_t *lengths = given ? bb_onnx_known_ints(n, n->in[1], &count) : NULL;
  if (given && !lengths) {
    bb_onnx_unsupported(n, "lengths that are computed at run time");
    return NULL;
  }
  if (count != outputs) bb_onnx_refuse(n, "%u lengths for %u outputs", count, outputs);
  int64_t even = (extent + outputs - 1) / outputs;
  for (uint32_t i = 0; i < outputs; i++) {
    length[i] = lengths ? lengths[i] : i + 1 < outputs ? even : left;
    if (length[i] < 0 || length[i] > left)
      bb_onnx_refuse(n, "its parts do not add up to extent %lld", (long long)extent);
    left -= length[i];
  }
  if (left) bb_onnx_refuse(n, "its parts do not add up to extent %lld", (long long)extent);
  return length;
}

/* Equal parts of an axis whose length only a run tells: views; NULL: no length for each that is a whole number. */
static bb_onnx_value *equal_part(const bb_onnx_node *n, bb_onnx_value *v, uint32_t axis,
                                 uint32_t outputs, uint32_t which) {
  const bb_extent *wide[BB_ONNX_RANK + 1], *shape[BB_ONNX_RANK];
  const bb_extent *count = bb_onnx_number(n->m, outputs);
  const bb_extent *length = bb_extent_divide(n->m->program, v->shape[axis], count);
  if (!length || v->rank == BB_ONNX_RANK) return NULL;
  for (uint32_t a = 0; a < v->rank; a++) wide[a + (a > axis)] = shape[a] = v->shape[a];
  wide[axis] = count;
  wide[axis + 1] = shape[axis] = length;
  v = bb_onnx_slice(n, bb_onnx_reshape(n, v, v->rank + 1, wide), axis, which, 1, 1);
  return bb_onnx_reshape(n, v, v->rank - 1, shape);
}

/* Parts of an axis whose length only a run tells, as long as extents say; false: refused. */
static bool split_open(bb_onnx_node *n, bb_onnx_value *v, uint32_t axis, uint32_t outputs) {
  bb_onnx *m = n->m;
  bb_onnx_value *given = n->nin > 1 ? n->in[1] : NULL;
  const bb_expr *start = bb_expr_const(m->program, BB_I64, 0);
  if (given && given->element && given->elements != outputs)
    bb_onnx_refuse(n, "%u lengths for %u outputs", given->elements, outputs);
  for (uint32_t i = 0; i < outputs; i++) {
    const bb_expr *end = NULL;
    if (given && given->element) end = bb_onnx_tidy_make(m, BB_X_ADD, start, given->element[i]);
    bb_onnx_value *one = end     ? part(n, v, axis, start, end, 1)
                         : given ? NULL
                                 : equal_part(n, v, axis, outputs, i);
    if (!one) return false;
    if (i < n->nout) n->out[i] = one;
    start = end;
  }
  const bb_extent *all = start ? bb_onnx_expr_extent(m, start) : v->shape[axis];
  return all && bb_onnx_same_extent(n, all, v->shape[axis]);
}

void bb_onnx_split(bb_onnx_node *n) {
  bb_onnx_value *v = n->in[0];
  if (!v->rank) bb_onnx_refuse(n, "an operand is a scalar");
  uint32_t axis = bb_onnx_axis(n, bb_onnx_int(n, "axis", 0), v->rank);
  int64_t extent = bb_extent_value(v->shape[axis]), start = 0;
  int64_t asked = n->row->detail ? bb_onnx_int(n, "num_outputs", 0) : 0;
  uint32_t outputs = (uint32_t)n->proto->n_output;
  if (asked && asked != outputs)
    bb_onnx_refuse(n, "num_outputs is %lld for %u outputs", (long long)asked, outputs);
  if (extent < 0) {
    if (!split_open(n, v, axis, outputs))
      bb_onnx_unsupported(
          n, "lengths of parts, or of what is parted, that are known only at run time");
    return;
  }
  int64_t *length = split_lengths(n, extent, outputs);
  for (uint32_t i = 0; length && i < outputs; i++) {
    if (i < n->nout) n->out[i] = bb_onnx_slice(n, v, axis, start, 1, length[i]);
    start += length[i];
  }
}

bb_onnx_value *bb_onnx_part(const bb_onnx_node *n, bb_onnx_value *v, uint32_t axis, int64_t start,
                            int64_t end, int64_t step) {
  bb_program *p = n->m->program;
  return part(n, v, axis, bb_expr_const(p, BB_I64, (double)start),
              bb_expr_const(p, BB_I64, (double)end), step);
}

void bb_onnx_slice_axes(bb_onnx_node *n) {
  bb_onnx_value *v = n->in[0], *starts = n->in[1], *ends = n->in[2];
  bb_onnx_value *axis_operand = n->nin > 3 ? n->in[3] : NULL, *steps = n->nin > 4 ? n->in[4] : NULL;
  uint32_t axes = starts->elements, count = starts->elements;
  const int64_t *axis_of = axis_operand ? bb_onnx_known_ints(n, axis_operand, &axes) : NULL;
  const int64_t *step_of = steps ? bb_onnx_known_ints(n, steps, &count) : NULL;
  bool known =
      starts->element && ends->element && (axis_of || !axis_operand) && (step_of || !steps);
  if (!known) {
    bb_onnx_unsupported(n, "bounds that are computed at run time");
    return;
  }
  if (ends->elements != starts->elements || axes != starts->elements || count != starts->elements)
    bb_onnx_refuse(n, "starts, ends, axes and steps differ in length");
  if (axes > v->rank) bb_onnx_refuse(n, "%u bounds for rank %u", axes, v->rank);
  for (uint32_t i = 0; i < axes; i++) {
    uint32_t axis = bb_onnx_axis(n, axis_of ? axis_of[i] : i, v->rank);
    int64_t step = step_of ? step_of[i] : 1;
    if (step == 0) bb_onnx_refuse(n, "a step is zero");
    if (step < -INT64_MAX / 2 || step > INT64_MAX / 2)
      step = step > 0 ? INT64_MAX / 2 : -INT64_MAX / 2;
    v = part(n, v, axis, starts->element[i], ends->element[i], step);
    if (!v) {
      bb_onnx_unsupported(n, "a part of an axis whose bounds are known only at run time");
      return;
    }
  }
  n->out[0] = v;
}
