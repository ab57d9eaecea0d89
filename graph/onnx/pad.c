/* pad.c - padding as joins of parts, and blocks of pixels moved to channels and back. */
#include "convert.h"
#include "formula.h"

#include <math.h>
#include <string.h>

typedef enum pad_mode { CONSTANT, REFLECT, EDGE, WRAP } pad_mode;

/* `count` elements beyond one end of an axis. */
static bb_onnx_value *border(const bb_onnx_node *n, bb_onnx_value *v, uint32_t axis, pad_mode mode,
                             int64_t count, bool front, const bb_expr *fill) {
  int64_t extent = bb_extent_value(v->shape[axis]);
  const bb_extent *shape[BB_ONNX_RANK];
  memcpy(shape, v->shape, v->rank * sizeof *shape);
  shape[axis] = bb_onnx_number(n->m, count);
  if (mode == CONSTANT) return bb_onnx_value_of_form(n->m, fill, v->rank, shape);
  if (mode == EDGE)
    return bb_onnx_broadcast(
        n, bb_onnx_part(n, v, axis, front ? 0 : -1, front ? 1 : BB_ONNX_TO_END, 1), v->rank, shape);
  if (extent >= 0 && count > extent - (mode == REFLECT))
    bb_onnx_refuse(n, "a pad of %lld is longer than axis %u allows", (long long)count, axis);
  if (mode == WRAP)
    return bb_onnx_part(n, v, axis, front ? -count : 0, front ? BB_ONNX_TO_END : count, 1);
  return bb_onnx_part(n, v, axis, front ? count : -2, front ? 0 : -2 - count, -1);
}

/* Where element `at` of an axis of `length` comes from, beyond its ends by the mode; what a constant fills is anywhere. */
static const bb_expr *source_of(bb_program *p, pad_mode mode, const bb_expr *at,
                                const bb_expr *length) {
  const bb_expr *none = f_num(p, at, 0), *last = f_sub(p, length, f_num(p, at, 1));
  if (mode == REFLECT) {
    const bb_expr *back = f_sub(p, f_add(p, last, last), at);
    at = f_abs(p, at);
    return f_select(p, f_lt(p, last, at), back, at);
  }
  if (mode == WRAP) return bb_expr_make(p, BB_X_MOD, at, length, NULL);
  return f_min(p, f_max(p, at, none), last);
}

/* Pads of which only a run tells how many there are, none perhaps: elements are gathered where they are some of v's; NULL:
 * the length is not told by extents. */
static bb_onnx_value *pad_open(const bb_onnx_node *n, bb_onnx_value *v, uint32_t axis,
                               pad_mode mode, const bb_expr *before, const bb_expr *after,
                               const bb_expr *fill) {
  bb_onnx *m = n->m;
  bb_program *p = m->program;
  const bb_expr *length = bb_onnx_extent_meaning(m, v->shape[axis]);
  const bb_expr *all = bb_onnx_tidy_make(m, BB_X_ADD, length, before);
  const bb_extent *extent = bb_onnx_expr_extent(m, bb_onnx_tidy_make(m, BB_X_ADD, all, after));
  if (!extent) return NULL;
  const bb_onnx_value line = {.dtype = BB_I64, .rank = 1, .shape = &extent};
  const bb_expr *at = f_sub(p, bb_onnx_index_along(m, &line, 0), before);
  bb_onnx_value *index = bb_onnx_value_of_form(m, source_of(p, mode, at, length), 1, &extent);
  bb_onnx_value *made = bb_onnx_gather_along(n, v, axis, index);
  if (mode != CONSTANT) return made;
  at = f_sub(p, bb_onnx_index_along(m, made, axis), before);
  const bb_expr *inside = f_and(p, f_le(p, f_num(p, at, 0), at), f_lt(p, at, length));
  return bb_onnx_map(n, f_select(p, inside, bb_onnx_arg(n, 0, made), fill), 1, &made);
}

/* An axis that may be shorter than what is seen of it beyond an end goes round more than once. */
static bb_onnx_value *wrap(const bb_onnx_node *n, bb_onnx_value *v, uint32_t axis, int64_t before,
                           int64_t after) {
  bb_program *p = n->m->program;
  int64_t extent = bb_extent_value(v->shape[axis]);
  if (extent == 0) bb_onnx_refuse(n, "axis %u has no element to repeat", axis);
  if (extent > 0 && before <= extent && after <= extent) return NULL;
  return pad_open(n, v, axis, WRAP, bb_expr_const(p, BB_I64, (double)before),
                  bb_expr_const(p, BB_I64, (double)after), bb_expr_const(p, v->dtype, 0));
}

static bb_onnx_value *pad_axis(const bb_onnx_node *n, bb_onnx_value *v, uint32_t axis,
                               pad_mode mode, int64_t before, int64_t after, const bb_expr *fill) {
  int64_t extent = bb_extent_value(v->shape[axis]);
  int64_t from = before < 0 ? -before : 0, end = after < 0 ? after : BB_ONNX_TO_END;
  if (extent >= 0 && from - (after < 0 ? after : 0) >= extent)
    bb_onnx_refuse(n, "a negative pad leaves nothing of axis %u", axis);
  v = bb_onnx_part(n, v, axis, from, end, 1);
  if (before < 0) before = 0;
  if (after < 0) after = 0;
  bool open = bb_extent_value(v->shape[axis]) < 0 && fill->op == BB_X_CONST && !v->form;
  if (mode == CONSTANT && open && (before || after))
    return bb_onnx_pad_along(n, v, axis, before, after, fill);
  bb_onnx_value *wrapped =
      mode == WRAP && (before || after) ? wrap(n, v, axis, before, after) : NULL;
  if (wrapped) return wrapped;
  bb_onnx_value *part[3];
  uint32_t count = 0;
  if (before > 0) part[count++] = border(n, v, axis, mode, before, true, fill);
  part[count++] = v;
  if (after > 0) part[count++] = border(n, v, axis, mode, after, false, fill);
  return bb_onnx_concat(n, count, part, axis);
}

bb_onnx_value *bb_onnx_pad_with(const bb_onnx_node *n, bb_onnx_value *v, uint32_t axis,
                                int64_t before, int64_t after, double fill) {
  if (before == 0 && after == 0) return v;
  return pad_axis(n, v, axis, CONSTANT, before, after,
                  bb_expr_const(n->m->program, v->dtype, fill));
}

static pad_mode parse_mode(const bb_onnx_node *n) {
  static const char *const name[] = {"constant", "reflect", "edge", "wrap"};
  const char *text = bb_onnx_text(n, "mode", "constant");
  for (int i = 0; i < 4; i++)
    if (strcmp(text, name[i]) == 0) return (pad_mode)i;
  bb_onnx_refuse(n, "mode is %s", bb_onnx_quote(n->m->arena, text));
}

/* An axis by its pads, numbers or not; NULL as above. */
static bb_onnx_value *pad_by(const bb_onnx_node *n, bb_onnx_value *v, uint32_t axis, pad_mode mode,
                             const bb_expr *before, const bb_expr *after, const bb_expr *fill) {
  const double limit = 1e12;
  if (before->op != BB_X_CONST || after->op != BB_X_CONST)
    return pad_open(n, v, axis, mode, before, after, fill);
  if (before->number == 0 && after->number == 0) return v;
  if (fabs(before->number) > limit || fabs(after->number) > limit)
    bb_onnx_refuse(n, "a pad is too large");
  return pad_axis(n, v, axis, mode, (int64_t)before->number, (int64_t)after->number, fill);
}

void bb_onnx_pad(bb_onnx_node *n) {
  bb_onnx_value *v = n->in[0], *pads = n->in[1], *value = n->nin > 2 ? n->in[2] : NULL;
  bb_onnx_value *axes = n->nin > 3 ? n->in[3] : NULL;
  pad_mode mode = parse_mode(n);
  uint32_t axis_count = v->rank;
  const int64_t *axis_of = axes ? bb_onnx_known_ints(n, axes, &axis_count) : NULL;
  const bb_expr *fill =
      value ? bb_onnx_scalar_expr(value) : bb_expr_const(n->m->program, v->dtype, 0);
  if (!pads->element || bb_dtype_is_float(pads->dtype) || (axes && !axis_of) || !fill) {
    bb_onnx_unsupported(n, "pads that are computed at run time");
    return;
  }
  if (pads->elements != 2 * axis_count)
    bb_onnx_refuse(n, "%u pads for %u axes", pads->elements, axis_count);
  if (value) bb_onnx_same_dtype(n, 2, (bb_onnx_value *[]){v, value});
  for (uint32_t i = 0; v && i < axis_count; i++) {
    uint32_t axis = bb_onnx_axis(n, axis_of ? axis_of[i] : i, v->rank);
    v = pad_by(n, v, axis, mode, pads->element[i], pads->element[i + axis_count], fill);
  }
  n->out[0] = v;
  if (!v) bb_onnx_unsupported(n, "pads that are computed at run time");
}

/* Axes cut or padded with zeros to the lengths that the second operand lists, on both sides alike. */
void bb_onnx_center(bb_onnx_node *n) {
  bb_onnx_value *v = n->in[0];
  uint32_t count, axes = 0;
  const int64_t *length = bb_onnx_known_ints(n, n->in[1], &count);
  const int64_t *axis_of = bb_onnx_ints(n, "axes", &axes);
  const bb_expr *fill = bb_expr_const(n->m->program, v->dtype, 0);
  if (!length) {
    bb_onnx_unsupported(n, "a shape that is computed at run time");
    return;
  }
  if (count != (axis_of ? axes : v->rank)) bb_onnx_refuse(n, "the shape has %u numbers", count);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t axis = bb_onnx_axis(n, axis_of ? axis_of[i] : i, v->rank);
    int64_t extent = bb_extent_value(v->shape[axis]);
    if (extent < 0) {
      bb_onnx_unsupported(n, "an axis whose length is known only at run time");
      return;
    }
    if (length[i] < 1 || length[i] > (int64_t)1 << 40)
      bb_onnx_refuse(n, "axis %u gets a length of %lld", axis, (long long)length[i]);
    int64_t more = length[i] - extent;
    int64_t before = more < 0 ? -(-more / 2) : more / 2;
    if (more) v = pad_axis(n, v, axis, CONSTANT, before, more - before, fill);
  }
  n->out[0] = v;
}

/* Splits axes of [N, C, H, W] into factors, permutes the factors and joins them again. */
static bb_onnx_value *shuffle(const bb_onnx_node *n, bb_onnx_value *v,
                              const bb_extent *const split[6], const int64_t perm[6],
                              const bb_extent *const joined[4]) {
  bb_onnx_value *w = bb_onnx_transpose(n, bb_onnx_reshape(n, v, 6, split), perm);
  return bb_onnx_reshape(n, w, 4, joined);
}

static const bb_extent *divided(const bb_onnx_node *n, const bb_extent *a, const bb_extent *b) {
  const bb_extent *quotient = bb_extent_divide(n->m->program, a, b);
  if (!quotient) bb_onnx_refuse(n, "blocksize does not divide an axis");
  return quotient;
}

static const bb_extent *block_size(const bb_onnx_node *n) {
  int64_t size = bb_onnx_int(n, "blocksize", 0);
  if (size < 1) bb_onnx_refuse(n, "blocksize is %lld", (long long)size);
  if (n->in[0]->rank != 4) bb_onnx_refuse(n, "input 0 has rank %u", n->in[0]->rank);
  return bb_onnx_number(n->m, size);
}

/* Depth outside of columns and rows (DCR), or inside (CRD). */
static bool has_columns_first(const bb_onnx_node *n) {
  const char *order = bb_onnx_text(n, "mode", "DCR");
  bool columns = strcmp(order, "CRD") == 0;
  if (!columns && strcmp(order, "DCR") != 0)
    bb_onnx_refuse(n, "mode is %s", bb_onnx_quote(n->m->arena, order));
  return columns;
}

void bb_onnx_depth_to_space(bb_onnx_node *n) {
  bb_program *p = n->m->program;
  bb_onnx_value *v = n->in[0];
  const bb_extent *b = block_size(n), *const *s = v->shape;
  const bb_extent *c = divided(n, s[1], bb_extent_multiply(p, b, b));
  bool columns = has_columns_first(n);
  const bb_extent *joined[4] = {s[0], c, bb_extent_multiply(p, s[2], b),
                                bb_extent_multiply(p, s[3], b)};
  if (columns)
    n->out[0] = shuffle(n, v, (const bb_extent *[]){s[0], c, b, b, s[2], s[3]},
                        (const int64_t[]){0, 1, 4, 2, 5, 3}, joined);
  else
    n->out[0] = shuffle(n, v, (const bb_extent *[]){s[0], b, b, c, s[2], s[3]},
                        (const int64_t[]){0, 3, 4, 1, 5, 2}, joined);
}

/* Until opset 27 always depth-column-row, as without `mode` from then on. */
void bb_onnx_space_to_depth(bb_onnx_node *n) {
  static const int64_t depth_first[] = {0, 3, 5, 1, 2, 4}, depth_last[] = {0, 1, 3, 5, 2, 4};
  bb_program *p = n->m->program;
  bool last = has_columns_first(n);
  bb_onnx_value *v = n->in[0];
  const bb_extent *b = block_size(n), *const *s = v->shape;
  const bb_extent *h = divided(n, s[2], b), *w = divided(n, s[3], b);
  const bb_extent *joined[4] = {s[0], bb_extent_multiply(p, s[1], bb_extent_multiply(p, b, b)), h,
                                w};
  n->out[0] = shuffle(n, v, (const bb_extent *[]){s[0], s[1], h, b, w, b},
                      last ? depth_last : depth_first, joined);
}
