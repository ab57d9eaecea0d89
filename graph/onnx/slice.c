/* slice.c - parts of an axis: Split, and Slice with bounds that are numbers or follow from run-time extents.
 *
 * A part whose bounds are numbers, of an axis that is as long as a number, is a view.  Any other is gathered at the indices
 * that its bounds give.  A Slice by numbers of an axis that may be too short for them has a length that says so, a least of
 * both (x[:8] of N has min(N,8) elements), unless the model needs another length there: then, and where bounds are computed,
 * they are taken at their word, x[:h] has h elements, x[-h:] too, and the kernel that gathers them refuses an index that is
 * out of range.  Bounds that ONNX would have cut to the axis are then refused when the program runs, they never yield other
 * elements.
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
  if (step != 1 || !bb_expr_is_number(start, 0)) return false;
  if (end->op == BB_X_CONST) return end->number >= to_end;
  const bb_expr *all = bb_onnx_extent_meaning(m, extent);
  return bb_expr_is_number(bb_onnx_tidy_make(m, BB_X_SUB, end, all), 0);
}

/* --- places on an axis whose length, or whose bounds, a run tells --- */

/* So many elements, a number, from the front of an axis: all of them if it has no more. */
static const bb_expr *at_most(bb_onnx *m, const bb_extent *axis, double count) {
  const bb_expr *extent = bb_onnx_extent_meaning(m, axis);
  if (count >= to_end) return extent;
  const bb_expr *some = bb_onnx_tidy_make(m, BB_X_MIN, extent, f_num(m->program, extent, count));
  m->clamps |= some->op == BB_X_MIN;
  return some;
}

/* A bound that is a number, cut to the axis as ONNX has it: so many elements from the front, or from the back. */
typedef struct cut {
  double count;
  bool back;
} cut;

/* With a negative step places are one further on than bounds are. */
static cut cut_of(double bound, int64_t step) {
  double ahead = step < 0 ? 1 : 0;
  return bound < 0 ? (cut){-bound - ahead, true} : (cut){bound + ahead, false};
}

static const bb_expr *place_of_cut(bb_onnx *m, const bb_extent *axis, cut at) {
  const bb_expr *count = at_most(m, axis, at.count);
  if (!at.back) return count;
  return bb_onnx_tidy_make(m, BB_X_SUB, bb_onnx_extent_meaning(m, axis), count);
}

/* From one to the other, at least none: in terms of at_most() alone where it can be, so that parts add up to the axis. */
static const bb_expr *between(bb_onnx *m, const bb_extent *axis, cut low, cut high) {
  const bb_expr *extent = bb_onnx_extent_meaning(m, axis), *none = f_num(m->program, extent, 0);
  bool same_end = low.back == high.back, turned = same_end && low.back;
  if (same_end && (turned ? low.count <= high.count : low.count >= high.count)) return none;
  if (same_end) {
    const bb_expr *a = at_most(m, axis, turned ? low.count : high.count),
                  *b = at_most(m, axis, turned ? high.count : low.count);
    return bb_onnx_tidy_make(m, BB_X_SUB, a, b);
  }
  if (high.back) return place_of_cut(m, axis, (cut){low.count + high.count, true});
  const bb_expr *span =
      bb_onnx_tidy_make(m, BB_X_SUB, place_of_cut(m, axis, high), place_of_cut(m, axis, low));
  return bb_onnx_tidy_make(m, BB_X_MAX, span, none);
}

/* A bound that is a number, taken at its word. */
static const bb_expr *place_of_number(bb_onnx *m, const bb_extent *axis, double bound,
                                      int64_t step) {
  bb_program *p = m->program;
  const bb_expr *extent = bb_onnx_extent_meaning(m, axis);
  int64_t known = bb_extent_value(axis);
  double last = step > 0 ? 0 : -1;
  bool beyond = bound >= to_end + last || (known >= 0 && bound > (double)known + last);
  bool before = bound <= -to_end || (known >= 0 && bound < -(double)known);
  if (beyond) return bb_onnx_tidy_make(m, BB_X_ADD, extent, f_num(p, extent, last));
  if (before) return f_num(p, extent, last);
  const bb_expr *number = f_num(p, extent, bound);
  return bound < 0 ? bb_onnx_tidy_make(m, BB_X_ADD, extent, number) : number;
}

/* The e of max(e, 0), a bound that the model itself cuts to the axis; any other: itself. */
static const bb_expr *uncut(const bb_expr *bound) {
  if (bound->op != BB_X_MAX) return bound;
  return bb_expr_is_number(bound->a[1], 0)   ? bound->a[0]
         : bb_expr_is_number(bound->a[0], 0) ? bound->a[1]
                                             : bound;
}

/* A bound that is computed, taken at its word.  One that may be of either sign counts from the front, and is refused in a run
 * where it is negative; with a negative step not even that is told apart: NULL. */
static const bb_expr *place_of_computed(bb_onnx *m, const bb_extent *axis, const bb_expr *bound,
                                        int64_t step) {
  bb_program *p = m->program;
  bound = bb_onnx_tidy(m, bb_expr_cast(p, BB_I64, bound));
  if (m->at_word)
    bound = uncut(bound);
  else
    m->clamps |= uncut(bound) != bound;
  if (bb_onnx_least(m, bound) >= 0) return bound;
  const bb_expr *none = f_num(p, bound, 0), *back = bb_onnx_tidy_make(m, BB_X_SUB, none, bound);
  if (!(bb_onnx_least(m, back) >= 0)) return step > 0 ? bound : NULL;
  const bb_expr *from_end = bb_onnx_tidy_make(m, BB_X_SUB, bb_onnx_extent_meaning(m, axis), back);
  if (bb_onnx_least(m, back) > 0) return from_end;
  return f_select(p, f_lt(p, none, back), from_end, none); /* 0 is no end */
}

/* A bound as a place on an axis, from 0 to its extent, or with a negative step from -1 to its last element. */
static const bb_expr *place(bb_onnx *m, const bb_extent *axis, const bb_expr *bound, int64_t step) {
  if (bound->op == BB_X_CONST) return place_of_number(m, axis, bound->number, step);
  return place_of_computed(m, axis, bound, step);
}

/* Elements of an axis at first, first + step, ...: so many as it takes to span so much. */
static bb_onnx_value *gathered(const bb_onnx_node *n, bb_onnx_value *v, uint32_t axis,
                               const bb_expr *first, const bb_expr *span, int64_t step,
                               const bb_expr *least, double low) {
  bb_onnx *m = n->m;
  bb_program *p = m->program;
  const bb_expr *stride = f_num(p, span, (double)(step > 0 ? step : -step));
  if (stride->number != 1)
    span = bb_onnx_tidy_make(
        m, BB_X_DIV, bb_onnx_tidy_make(m, BB_X_ADD, span, f_num(p, span, stride->number - 1)),
        stride);
  const bb_extent *length = bb_onnx_expr_extent(m, span);
  if (!length) bb_onnx_refuse(n, "its part of axis %u has no elements", axis);
  bb_onnx_told_within(m, length, v->shape[axis]);
  const bb_onnx_value line = {.dtype = BB_I64, .rank = 1, .shape = &length};
  const bb_expr *along = f_mul(p, bb_onnx_index_along(m, &line, 0), f_num(p, span, (double)step));
  const bb_expr *at = f_add(p, first, along);
  /* below 0 it is out of range, and does not count from the end */
  if (least && least->op != BB_X_CONST)
    at = f_select(p, f_lt(p, least, f_num(p, least, low)),
                  f_sub(p, at, bb_onnx_extent_expr(m, v->shape[axis])), at);
  return bb_onnx_gather_along(n, v, axis, bb_onnx_value_of_form(m, at, 1, &length));
}

/* The elements from `start` to before `end`, both numbers, as far as the axis has them. */
static bb_onnx_value *clamped_part(const bb_onnx_node *n, bb_onnx_value *v, uint32_t axis,
                                   double start, double end, int64_t step) {
  bb_onnx *m = n->m;
  const bb_extent *extent = v->shape[axis];
  cut from = cut_of(start, step), to = cut_of(end, step);
  const bb_expr *first = place_of_cut(m, extent, from);
  if (step < 0) first = bb_onnx_tidy_make(m, BB_X_SUB, first, f_num(m->program, first, 1));
  const bb_expr *span = between(m, extent, step > 0 ? from : to, step > 0 ? to : from);
  return gathered(n, v, axis, first, span, step, NULL, 0);
}

/* The elements from `start` to before `end`, both expressions; NULL: their places are known only as the program runs. */
static bb_onnx_value *gathered_part(const bb_onnx_node *n, bb_onnx_value *v, uint32_t axis,
                                    const bb_expr *start, const bb_expr *end, int64_t step) {
  bb_onnx *m = n->m;
  const bb_extent *extent = v->shape[axis];
  const bb_expr *first = place(m, extent, start, step), *past = place(m, extent, end, step);
  if (!first || !past) return NULL;
  const bb_expr *span =
      bb_onnx_tidy_make(m, BB_X_SUB, step > 0 ? past : first, step > 0 ? first : past);
  bool begins = step > 0 || past->op == BB_X_CONST;
  return gathered(n, v, axis, first, span, step, begins ? first : past, begins ? 0 : -1);
}

/* One axis; NULL: what it is is known only as the program runs.  clamps: bounds that are numbers are cut to the axis in the
 * run, else taken at their word. */
static bb_onnx_value *part(const bb_onnx_node *n, bb_onnx_value *v, uint32_t axis,
                           const bb_expr *from, const bb_expr *to, int64_t step, bool clamps) {
  int64_t extent = bb_extent_value(v->shape[axis]), start, end, length;
  bb_onnx_value one = {.element = &from, .elements = 1};
  if (extent < 0 && covers(n->m, v->shape[axis], from, to, step)) return v;
  bool numbers = bb_onnx_known_int(&one, &start);
  one.element = &to;
  numbers &= bb_onnx_known_int(&one, &end);
  if (numbers && extent < 0 && clamps)
    return clamped_part(n, v, axis, from->number, to->number, step);
  if (!numbers || extent < 0) return gathered_part(n, v, axis, from, to, step);
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
    bb_onnx_value *one = end     ? part(n, v, axis, start, end, 1, false)
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
  if (n->nin > 1 && n->in[1] && !n->in[1]->element) {
    bb_onnx_told_parts(n, v, axis, n->in[1], outputs);
    return;
  }
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
              bb_expr_const(p, BB_I64, (double)end), step, false);
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
    v = part(n, v, axis, starts->element[i], ends->element[i], step, !n->m->at_word);
    if (!v) {
      bb_onnx_unsupported(
          n, "a negative step and a bound that may count from either end of axis %u", axis);
      return;
    }
  }
  n->out[0] = v;
}
