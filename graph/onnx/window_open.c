/* window_open.c - windows along an axis of which only a run tells the length: how many there are, what is padded, and of how
 * many elements each mean is, as expressions of that length.
 *
 * What all windows may see of the padding is known as the model is read, but for automatic padding by a stride: there it
 * depends on what the stride leaves of the length where the first window begins. Then all that may be seen is padded, and of the few
 * slices that begin where windows may the run takes one.
 */
#include "window.h"

#include "formula.h"

#include <string.h>

enum { MOST_BEGINNINGS = 8 }; /* of the first window, that a run chooses among */

static bool is_same(bb_window_pads pads) {
  return pads == BB_PADS_SAME_UPPER || pads == BB_PADS_SAME_LOWER;
}

/* From the first element that a window sees to behind the last. */
static int64_t reach_of(bb_window w) {
  return (w.kernel - 1) * w.dilation + 1;
}

static const bb_expr *plus(bb_onnx *m, const bb_expr *e, int64_t more) {
  return bb_onnx_tidy_make(m, BB_X_ADD, e, f_num(m->program, e, (double)more));
}

/* --- places --- */

/* With `up` there are as many places as reach the end, ceil((extent + pads - reach) / stride) + 1, but no more than begin
 * before it, ceil((extent + before) / stride).  Which is less does not depend on the extent; with what is given they are
 * (extent + that) / stride + 1, rounded down. */
static int64_t hanging(bb_window w, int64_t reach) {
  int64_t beyond = w.after - reach + w.stride;
  return w.before + (beyond < 0 ? beyond : 0) - 1;
}

const bb_extent *bb_window_open_places(const bb_onnx_node *n, bb_window w, bb_window_pads pads,
                                       bool up, const bb_extent *axis) {
  bb_onnx *m = n->m;
  bool same = is_same(pads);
  if (pads != BB_PADS_NOTSET) w.before = w.after = 0;
  int64_t reach = reach_of(w);
  const bb_expr *length = bb_onnx_extent_meaning(m, axis);
  int64_t more = w.before + w.after - (same ? 1 : reach);
  if (up && !same && w.after >= reach) return NULL;
  if (up && !same) more = hanging(w, reach);
  if (w.stride == 1 && more == -1) return axis; /* as it is called, not as it would be summed up */
  if (w.stride == 1) return bb_onnx_expr_extent(m, plus(m, length, more + 1));
  int64_t rest = (more % w.stride + w.stride) % w.stride; /* what exporters divide: never below 0 */
  const bb_expr *room = plus(m, length, rest);
  const bb_expr *steps =
      bb_onnx_tidy_make(m, BB_X_DIV, room, f_num(m->program, length, (double)w.stride));
  return bb_onnx_expr_extent(m, plus(m, steps, (more - rest) / w.stride + 1));
}

const bb_extent *bb_window_open_spread(const bb_onnx_node *n, bb_window w, bb_window_pads pads,
                                       int64_t extra, const bb_extent *axis) {
  bb_onnx *m = n->m;
  if (extra < 0 || extra >= (int64_t)1 << 30)
    bb_onnx_refuse(n, "its output_padding is out of range");
  if (pads == BB_PADS_VALID) w.before = w.after = 0;
  int64_t more = is_same(pads) ? 0 : reach_of(w) - w.stride + extra - w.before - w.after;
  const bb_expr *length = bb_onnx_extent_meaning(m, axis);
  length = bb_onnx_tidy_make(m, BB_X_MUL, length, f_num(m->program, length, (double)w.stride));
  return bb_onnx_expr_extent(m, plus(m, length, more));
}

/* --- what is padded --- */

/* Elements before the axis by automatic padding, where windows lack `all` of them. */
static int64_t automatic_before(bb_window_pads pads, int64_t all) {
  if (all < 0) all = 0;
  return pads == BB_PADS_SAME_UPPER ? all / 2 : all - all / 2;
}

/* The most and the least of them, as the length is. */
static void beginnings(bb_window w, bb_window_pads pads, int64_t *most, int64_t *least) {
  *most = automatic_before(pads, reach_of(w) - 1);
  *least = automatic_before(pads, reach_of(w) - w.stride);
}

/* The same of one length: windows lack as many as they reach, less what lies behind the place of the last one. */
static const bb_expr *before_of(bb_onnx *m, bb_window w, bb_window_pads pads,
                                const bb_expr *length) {
  bb_program *p = m->program;
  if (!is_same(pads)) return f_num(p, length, pads == BB_PADS_VALID ? 0 : (double)w.before);
  int64_t most, least;
  beginnings(w, pads, &most, &least);
  if (most == least) return f_num(p, length, (double)most);
  const bb_expr *behind = bb_expr_make(p, BB_X_MOD, f_sub(p, length, f_num(p, length, 1)),
                                       f_num(p, length, (double)w.stride), NULL);
  const bb_expr *all = f_sub(p, f_num(p, length, (double)(reach_of(w) - 1)), behind);
  all = f_max(p, all, f_num(p, length, 0));
  if (pads == BB_PADS_SAME_LOWER) all = f_add(p, all, f_num(p, length, 1));
  return f_div(p, all, f_num(p, length, 2));
}

bool bb_window_open_told(bb_window w, bb_window_pads pads) {
  int64_t most = 0, least = 0;
  if (is_same(pads)) beginnings(w, pads, &most, &least);
  bool padded = pads == BB_PADS_NOTSET && (w.before || w.after);
  return most - least < MOST_BEGINNINGS && !(w.kernel == 1 && padded);
}

bb_onnx_value *bb_window_part(const bb_onnx_node *n, bb_onnx_value *v, uint32_t axis, int64_t start,
                              const bb_extent *length) {
  const bb_extent *shape[BB_ONNX_RANK];
  int64_t number = bb_extent_value(length);
  bb_array_windows windows = {start, 1, 1, number, 1, number < 0 ? length : NULL};
  bb_onnx_value *part = bb_onnx_windows(n, v, axis, &windows);
  memcpy(shape, v->shape, v->rank * sizeof *shape);
  shape[axis] = length;
  return bb_onnx_reshape(n, part, v->rank, shape);
}

/* What windows see by automatic padding, where it depends on the length how much is before the axis. */
static bb_onnx_value *chosen(const bb_onnx_node *n, bb_onnx_value *v, uint32_t axis, bb_window w,
                             bb_window_pads pads, const bb_expr *fill, const bb_extent *places) {
  bb_onnx *m = n->m;
  bb_program *p = m->program;
  int64_t most, least, reach = reach_of(w);
  beginnings(w, pads, &most, &least);
  const bb_expr *length = bb_onnx_extent_meaning(m, v->shape[axis]);
  const bb_expr *last = bb_onnx_extent_meaning(m, places);
  last = bb_onnx_tidy_make(m, BB_X_MUL, last, f_num(p, last, (double)w.stride));
  const bb_extent *seen = bb_onnx_expr_extent(m, plus(m, last, reach - w.stride));
  bb_onnx_value *all = bb_onnx_pad_along(n, v, axis, most, reach - 1 - least, fill);
  bb_onnx_value *made = bb_window_part(n, all, axis, 0, seen);
  const bb_expr *before = before_of(m, w, pads, length);
  for (int64_t later = 1; later <= most - least; later++) {
    bb_onnx_value *pair[2] = {made, bb_window_part(n, all, axis, later, seen)};
    const bb_expr *here = f_eq(p, before, f_num(p, before, (double)(most - later)));
    made = bb_onnx_map(n, f_select(p, here, bb_onnx_arg(n, 1, pair[1]), bb_onnx_arg(n, 0, pair[0])),
                       2, pair);
  }
  return made;
}

bb_onnx_value *bb_window_open_sight(const bb_onnx_node *n, bb_onnx_value *v, uint32_t axis,
                                    bb_window w, bb_window_pads pads, bool up, double fill,
                                    const bb_extent *places) {
  const bb_expr *number = bb_expr_const(n->m->program, v->dtype, fill);
  if (pads == BB_PADS_VALID) w.before = w.after = 0;
  if (is_same(pads)) {
    int64_t least;
    beginnings(w, pads, &w.before, &least);
    if (w.before != least) return chosen(n, v, axis, w, pads, number, places);
    w.after = reach_of(w) > 1 ? reach_of(w) - 1 - w.before : 0;
  } else if (up) {
    w.after += w.stride - 1;
  }
  if (w.before == 0 && w.after == 0) return v;
  return bb_onnx_pad_along(n, v, axis, w.before, w.after, number);
}

/* --- means --- */

/* Multiples of `by` that are less than e: none where it is negative. */
static const bb_expr *multiples_below(bb_program *p, const bb_expr *e, int64_t by) {
  e = f_max(p, e, f_num(p, e, 0));
  return by == 1 ? e : f_div(p, f_add(p, e, f_num(p, e, (double)by - 1)), f_num(p, e, (double)by));
}

const bb_expr *bb_window_open_count(const bb_onnx_node *n, const bb_expr *place, bb_window w,
                                    bb_window_pads pads, bool with_padding, const bb_extent *axis) {
  bb_onnx *m = n->m;
  bb_program *p = m->program;
  const bb_expr *all = f_num(p, place, (double)w.kernel);
  bool up = bb_onnx_int(n, "ceil_mode", 0), same = is_same(pads);
  if (pads == BB_PADS_VALID) w.before = w.after = 0;
  bool inside = !same && !up && ((w.before == 0 && w.after == 0) || with_padding);
  if (inside || (same && with_padding)) return all;
  const bb_expr *length = bb_onnx_extent_meaning(m, axis), *before = before_of(m, w, pads, length);
  const bb_expr *first = f_sub(p, f_mul(p, place, f_num(p, place, (double)w.stride)), before);
  const bb_expr *end = length;
  if (with_padding) end = f_add(p, length, f_num(p, length, (double)w.after));
  const bb_expr *count = f_min(p, all, multiples_below(p, f_sub(p, end, first), w.dilation));
  if (!with_padding) count = f_sub(p, count, multiples_below(p, f_neg(p, first), w.dilation));
  return f_max(p, count, f_num(p, count, 1)); /* of nothing but padding the sum is 0 */
}
