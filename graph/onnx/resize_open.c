/* resize_open.c - interpolation along an axis of which only a run tells the length: where neighbours lie and what they
 * weigh are expressions of the element's index and of both lengths.
 */
#include "formula.h"
#include "resize.h"

#include <math.h>
#include <string.h>

enum { LARGEST_PART = 64 }; /* of a scale as a fraction */

/* The scale as a fraction of small numbers; false: it is none. */
static bool fraction_of(double scale, int64_t *over, int64_t *under) {
  for (*under = 1; *under <= LARGEST_PART; ++*under) {
    double whole = round(scale * (double)*under);
    *over = (int64_t)whole;
    if (whole >= 1 && whole <= 1 << 20 && fabs(scale * (double)*under - whole) <= 1e-6 * whole)
      return true;
  }
  return false;
}

const bb_extent *bb_resize_scaled(bb_onnx *m, const bb_extent *from, double scale) {
  bb_program *p = m->program;
  int64_t over, under;
  if (!(scale > 0) || !fraction_of(scale, &over, &under)) return NULL;
  const bb_expr *length = bb_onnx_extent_meaning(m, from);
  length = bb_onnx_tidy_make(m, BB_X_MUL, length, f_num(p, length, (double)over));
  length = bb_onnx_tidy_make(m, BB_X_DIV, length, f_num(p, length, (double)under));
  return bb_onnx_expr_extent(m, length);
}

bb_onnx_value *bb_resize_repeated(const bb_onnx_node *n, bb_onnx_value *v, uint32_t at,
                                  int64_t times) {
  bb_onnx *m = n->m;
  const bb_extent *wide[BB_ONNX_RANK + 1], *whole[BB_ONNX_RANK];
  for (uint32_t i = 0; i < v->rank; i++) {
    wide[i + (i > at)] = v->shape[i];
    whole[i] = v->shape[i];
  }
  whole[at] = bb_extent_multiply(m->program, v->shape[at], bb_onnx_number(m, times));
  wide[at + 1] = bb_onnx_number(m, 1);
  v = bb_onnx_reshape(n, v, v->rank + 1, wide);
  wide[at + 1] = bb_onnx_number(m, times);
  return bb_onnx_reshape(n, bb_onnx_broadcast(n, v, v->rank, wide), v->rank - 1, whole);
}

/* One axis: lengths and scale in f32, and the index of an element of the result. */
typedef struct open_axis {
  const bb_resizing *r;
  bb_program *p;
  const bb_expr *from, *to, *scale, *index;
  const bb_expr *last; /* from - 1, whole */
  bool sized;          /* told by its size, not by its scale */
} open_axis;

static const bb_expr *number(const open_axis *a, double value) {
  return bb_expr_const(a->p, BB_F32, value);
}

static const bb_expr *plus(const open_axis *a, const bb_expr *x, double value) {
  return value == 0 ? x : f_add(a->p, x, number(a, value));
}

/* Where an element of the result stands in the operand; NULL: not told along such an axis. */
static const bb_expr *place_of(const open_axis *a) {
  bb_program *p = a->p;
  const bb_expr *centre = plus(a, f_div(p, plus(a, a->index, 0.5), a->scale), -0.5);
  const bb_expr *length = a->sized ? a->to : f_mul(p, a->scale, a->from), *one = number(a, 1),
                *none = number(a, 0);
  switch (a->r->coordinates) {
  case BB_ALIGN_CORNERS: {
    const bb_expr *ends = f_mul(p, a->index, f_sub(p, a->from, one)); /* whole: 7.5 is not passed */
    return f_select(p, f_eq(p, a->to, one), none, f_div(p, ends, f_sub(p, length, one)));
  }
  case BB_ASYMMETRIC: return f_div(p, a->index, a->scale);
  case BB_PYTORCH_HALF_PIXEL: return f_select(p, f_eq(p, a->to, one), none, centre);
  case BB_HALF_PIXEL_SYMMETRIC: {
    const bb_expr *cut = f_sub(p, one, f_div(p, a->to, length));
    return f_add(p, f_mul(p, f_div(p, a->from, number(a, 2)), cut), centre);
  }
  case BB_HALF_PIXEL: return centre;
  case BB_CROP_AND_RESIZE: break;
  }
  return NULL;
}

static const bb_expr *floor_of(const open_axis *a, const bb_expr *x) {
  return bb_expr_make(a->p, BB_X_FLOOR, x, NULL, NULL);
}

static const bb_expr *nearest(const open_axis *a, const bb_expr *place) {
  const bb_expr *below = floor_of(a, place), *over = f_sub(a->p, place, below);
  const bb_expr *half = number(a, 0.5), *up = NULL;
  switch (a->r->rounding) {
  case BB_DOWN: return below;
  case BB_BY_SCALE:
    up = f_select(a->p, f_lt(a->p, a->scale, number(a, 1)), plus(a, below, 1), below);
    return f_select(a->p, f_lt(a->p, number(a, 0), over), up, below);
  case BB_UP: up = f_lt(a->p, number(a, 0), over); break;
  case BB_PREFER_CEIL: up = f_le(a->p, half, over); break;
  case BB_PREFER_FLOOR: up = f_lt(a->p, half, over); break;
  }
  return f_select(a->p, up, plus(a, below, 1), below);
}

/* What an element weighs that is so far from the place. */
static const bb_expr *weight_of(const open_axis *a, const bb_expr *away) {
  bb_program *p = a->p;
  const bb_expr *x = f_abs(p, away), *one = number(a, 1);
  if (a->r->mode == BB_LINEAR) return f_max(p, f_sub(p, one, x), number(a, 0));
  double c = a->r->cubic;
  const bb_expr *near = plus(a, f_mul(p, number(a, c + 2), x), -(c + 3));
  near = plus(a, f_mul(p, f_mul(p, near, x), x), 1);
  const bb_expr *far = plus(a, f_mul(p, number(a, c), x), -5 * c);
  far = plus(a, f_mul(p, plus(a, f_mul(p, far, x), 8 * c), x), -4 * c);
  far = f_select(p, f_lt(p, x, number(a, 2)), far, number(a, 0));
  return f_select(p, f_le(p, x, one), near, far);
}

/* The elements of v at an index along an axis: an expression of f32 that is whole. */
static bb_onnx_value *gathered(const bb_onnx_node *n, const open_axis *a, bb_onnx_value *v,
                               uint32_t at, const bb_expr *index, const bb_extent *to) {
  bb_program *p = a->p;
  index = bb_expr_cast(p, BB_I64, index);
  index = f_min(p, f_max(p, index, bb_expr_const(p, BB_I64, 0)), a->last);
  return bb_onnx_gather_along(n, v, at, bb_onnx_value_of_form(n->m, index, 1, &to));
}

/* A weight along an axis, in a shape that broadcasts. */
static bb_onnx_value *weight_along(const bb_onnx_node *n, const bb_expr *weight, uint32_t rank,
                                   uint32_t at, const bb_extent *to) {
  const bb_extent *shape[BB_ONNX_RANK];
  for (uint32_t i = 0; i < rank; i++) shape[i] = i == at ? to : bb_onnx_number(n->m, 1);
  return bb_onnx_reshape(n, bb_onnx_value_of_form(n->m, weight, 1, &to), rank, shape);
}

static bb_onnx_value *weighed(const bb_onnx_node *n, const open_axis *a, bb_onnx_value *v,
                              uint32_t at, const bb_extent *to, const bb_expr *place) {
  enum { MOST_TAPS = 4 };
  bb_program *p = a->p;
  uint32_t taps = a->r->mode == BB_CUBIC ? 4 : 2;
  const bb_expr *below = f_neg(p, floor_of(a, f_neg(p, place))), *index[MOST_TAPS],
                *weight[MOST_TAPS], *all = NULL;
  for (uint32_t t = 0; t < taps; t++) {
    index[t] = plus(a, below, (double)t - (double)taps / 2);
    weight[t] = weight_of(a, f_sub(p, index[t], place));
    if (!a->r->exclude) continue;
    const bb_expr *inside = f_and(p, f_le(p, number(a, 0), index[t]), f_lt(p, index[t], a->from));
    weight[t] = f_select(p, inside, weight[t], number(a, 0));
    all = all ? f_add(p, all, weight[t]) : weight[t];
  }
  bb_onnx_value *sum = NULL;
  for (uint32_t t = 0; t < taps; t++) {
    const bb_expr *share = all ? f_div(p, weight[t], all) : weight[t];
    bb_onnx_value *w = weight_along(n, share, v->rank, at, to);
    bb_onnx_value *part = bb_onnx_binary_map(n, BB_X_MUL, gathered(n, a, v, at, index[t], to), w);
    sum = sum ? bb_onnx_binary_map(n, BB_X_ADD, sum, part) : part;
  }
  return sum;
}

/* Whether elements of the result are those of the operand, each `scale` times. */
static bool repeats(const bb_resizing *r, double scale) {
  if (r->mode != BB_NEAREST || scale != round(scale) || scale < 1 || scale > LARGEST_PART)
    return false;
  if (r->coordinates == BB_ALIGN_CORNERS || r->coordinates == BB_CROP_AND_RESIZE) return false;
  if (r->coordinates == BB_ASYMMETRIC) return r->rounding == BB_DOWN || r->rounding == BB_BY_SCALE;
  return r->rounding == BB_PREFER_FLOOR || r->rounding == BB_PREFER_CEIL;
}

bb_onnx_value *bb_resize_along(bb_onnx_node *n, const bb_resizing *r, bb_onnx_value *v, uint32_t at,
                               const bb_resize_open *open) {
  bb_onnx *m = n->m;
  bb_program *p = m->program;
  const bb_expr *from = bb_onnx_extent_meaning(m, v->shape[at]);
  const bb_expr *to = bb_onnx_extent_meaning(m, open->to);
  if (repeats(r, open->scale) && v->rank < BB_ONNX_RANK)
    return bb_resize_repeated(n, v, at, (int64_t)open->scale);
  open_axis a = {.r = r, .p = p, .sized = open->scale == 0};
  a.from = bb_expr_cast(p, BB_F32, from);
  a.to = bb_expr_cast(p, BB_F32, to);
  a.scale = open->scale ? number(&a, open->scale) : f_div(p, a.to, a.from);
  a.index =
      bb_onnx_is_one(open->to) ? bb_expr_const(p, BB_I64, 0) : bb_expr_coord(p, BB_COORD_AXIS);
  a.index = bb_expr_cast(p, BB_F32, a.index);
  a.last = bb_onnx_tidy_make(m, BB_X_SUB, from, f_num(p, from, 1));
  const bb_expr *place = r->antialias ? NULL : place_of(&a);
  if (!place) {
    bb_onnx_unsupported(n, "%s along an axis whose length is known only at run time",
                        r->antialias ? "antialias" : "a part of the operand");
    return NULL;
  }
  if (r->mode == BB_NEAREST) return gathered(n, &a, v, at, nearest(&a, place), open->to);
  return weighed(n, &a, v, at, open->to, place);
}
