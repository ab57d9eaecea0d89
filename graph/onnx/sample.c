/* sample.c - GridSample: elements at places that a tensor tells, and between them.
 *
 * Each place has one element around it (nearest), or some along each axis (taps).  Which they are and what each weighs are
 * expressions of the place; the elements are rows of one gather for each tap, all channels side by side.
 */
#include "convert.h"
#include "formula.h"

#include <string.h>

enum { MOST_AXES = 3, MOST_TAPS = 16, TAPS_AT_ONCE = 4 };
enum { NEAREST = 1, LINEAR = 2, CUBIC = 4 }; /* taps along an axis */
enum { ZEROS, BORDER, REFLECTION };

typedef struct sampling {
  bb_onnx_node *n;
  bb_program *p;
  uint32_t axes, taps; /* spatial axes; taps along each */
  int beyond;
  bool corners;   /* -1 and 1 are the centres of the outer elements, else their edges */
  bb_dtype dtype; /* of places and sums */
  bb_onnx_value *place[MOST_AXES]; /* [N, places], in the order of the axes */
  const bb_expr *length[MOST_AXES];
} sampling;

/* --- the node --- */

static int one_of(const bb_onnx_node *n, const char *attribute, uint32_t count,
                  const char *const *name) {
  const char *text = bb_onnx_text(n, attribute, name[0]);
  for (uint32_t i = 0; i < count; i++)
    if (strcmp(text, name[i]) == 0) return (int)i;
  bb_onnx_refuse(n, "%s is %s", attribute, bb_onnx_quote(n->m->arena, text));
}

static void read_attributes(sampling *s) {
  static const char *const mode[] = {"bilinear", "linear", "bicubic", "cubic", "nearest"};
  static const char *const beyond[] = {"zeros", "border", "reflection"};
  static const uint32_t taps[] = {LINEAR, LINEAR, CUBIC, CUBIC, NEAREST};
  s->taps = taps[one_of(s->n, "mode", 5, mode)];
  s->beyond = one_of(s->n, "padding_mode", 3, beyond);
  s->corners = bb_onnx_int(s->n, "align_corners", 0) != 0;
}

static void check_shapes(const bb_onnx_node *n, const bb_onnx_value *x, const bb_onnx_value *grid) {
  bool fits = x->rank >= 3 && grid->rank == x->rank &&
              bb_onnx_is_number(grid->shape[grid->rank - 1], x->rank - 2) &&
              bb_onnx_same_extent(n, x->shape[0], grid->shape[0]);
  if (!fits)
    bb_onnx_refuse(n, "a grid of shape %s for %s", bb_onnx_shape_text(n->m, grid),
                   bb_onnx_shape_text(n->m, x));
}

/* --- places --- */

static const bb_expr *number(const sampling *s, double value) {
  return bb_expr_const(s->p, s->dtype, value);
}

/* The least and the greatest place along an axis that are not beyond it. */
static void borders(const sampling *s, uint32_t axis, const bb_expr **low, const bb_expr **high) {
  double out = s->corners ? 0 : -0.5;
  *low = number(s, out);
  *high = f_sub(s->p, s->length[axis], number(s, 1 + out));
}

/* A place, or the number of an element, beyond an axis thrown back at its borders, as often as it takes. */
static const bb_expr *reflected(const sampling *s, uint32_t axis, const bb_expr *x) {
  bb_program *p = s->p;
  const bb_expr *low, *high;
  borders(s, axis, &low, &high);
  const bb_expr *range = f_sub(p, high, low), *below = f_lt(p, x, low);
  const bb_expr *far = f_select(p, below, f_sub(p, low, x), f_sub(p, x, high));
  const bb_expr *turns = bb_expr_make(p, BB_X_FLOOR, f_div(p, far, range), NULL, NULL);
  const bb_expr *rest = f_sub(p, far, f_mul(p, turns, range));
  const bb_expr *even = f_eq(p, bb_expr_make(p, BB_X_MOD, turns, number(s, 2), NULL), number(s, 0));
  const bb_expr *from_low = f_eq(p, below, even);
  const bb_expr *back = f_select(p, from_low, f_add(p, low, rest), f_sub(p, high, rest));
  return f_select(p, bb_expr_make(p, BB_X_OR, below, f_lt(p, high, x), NULL), back, x);
}

static const bb_expr *last_of(const sampling *s, uint32_t axis) {
  return f_sub(s->p, s->length[axis], number(s, 1));
}

static const bb_expr *kept_within(const sampling *s, uint32_t axis, const bb_expr *x) {
  return f_min(s->p, f_max(s->p, x, number(s, 0)), last_of(s, axis));
}

/* A place whose taps are all the border is as good as any, and one so near has taps that differ: 2^24 is its own neighbour. */
static const bb_expr *kept_near(const sampling *s, uint32_t axis, const bb_expr *x) {
  const bb_expr *high = f_add(s->p, s->length[axis], number(s, CUBIC / 2));
  return f_min(s->p, f_max(s->p, x, number(s, -CUBIC / 2 - 1)), high);
}

/* From -1...1 to elements; one thrown back is so here, and its taps again. */
static const bb_expr *place_of(const sampling *s, uint32_t axis, const bb_expr *x) {
  bb_program *p = s->p;
  const bb_expr *one = number(s, 1), *two = number(s, 2), *moved = f_add(p, x, one);
  if (s->corners)
    x = f_mul(p, f_div(p, moved, two), last_of(s, axis));
  else
    x = f_div(p, f_sub(p, f_mul(p, moved, s->length[axis]), one), two);
  if (s->taps == NEAREST) x = bb_expr_make(p, BB_X_ROUND, x, NULL, NULL);
  if (s->beyond == REFLECTION) return reflected(s, axis, x);
  return s->beyond == BORDER ? kept_near(s, axis, x) : x;
}

/* Coordinate by coordinate; the grid has the innermost axis first. */
static void read_places(sampling *s, bb_onnx_value *x, bb_onnx_value *grid) {
  bb_onnx_node *n = s->n;
  const bb_extent *shape[2] = {grid->shape[0], bb_onnx_product(n->m, s->axes, grid->shape + 1)};
  for (uint32_t a = 0; a < s->axes; a++) {
    bb_onnx_value *one = bb_onnx_slice(n, grid, grid->rank - 1, s->axes - 1 - a, 1, 1);
    one = bb_onnx_cast(n, bb_onnx_reshape(n, one, 2, shape), s->dtype);
    s->length[a] = bb_expr_cast(s->p, s->dtype, bb_onnx_extent_expr(n->m, x->shape[2 + a]));
    s->place[a] = bb_onnx_map(n, place_of(s, a, bb_onnx_arg(n, 0, one)), 1, &one);
  }
}

/* --- taps --- */

/* Of all axes. */
static uint32_t taps_of(const sampling *s) {
  uint32_t taps = 1;
  for (uint32_t a = 0; a < s->axes; a++) taps *= s->taps;
  return taps;
}

/* The number of an element along an axis: a whole number that may lie beyond it. */
static const bb_expr *element_at(const sampling *s, const bb_expr *place, uint32_t tap) {
  if (s->taps == NEAREST) return place;
  const bb_expr *first = bb_expr_make(s->p, BB_X_FLOOR, place, NULL, NULL);
  return f_add(s->p, first, number(s, (double)tap - s->taps / 2 + 1));
}

static const bb_expr *is_inside(const sampling *s, uint32_t axis, const bb_expr *at) {
  return f_and(s->p, f_le(s->p, number(s, 0), at), f_le(s->p, at, last_of(s, axis)));
}

/* The element that stands for one: itself, or another by the mode; one that is none (and weighs nothing, or what the grid
 * says is no number) is the first. */
static const bb_expr *index_of(const sampling *s, uint32_t axis, const bb_expr *at) {
  bb_program *p = s->p;
  if (s->beyond == BORDER) at = kept_within(s, axis, at);
  if (s->beyond == REFLECTION) {
    at = reflected(s, axis, at); /* between two elements where the borders are edges */
    at = bb_expr_make(p, BB_X_FLOOR, at, NULL, NULL);
  }
  at = f_select(p, is_inside(s, axis, at), at, number(s, 0));
  return bb_expr_cast(p, BB_I64, at);
}

static const bb_expr *weight_of(const sampling *s, uint32_t axis, const bb_expr *place,
                                const bb_expr *at) {
  const double c = -0.75;
  bb_program *p = s->p;
  const bb_expr *one = number(s, 1), *x = f_abs(p, f_sub(p, at, place)), *weight = one;
  if (s->taps == LINEAR) weight = f_sub(p, one, x);
  if (s->taps == CUBIC) {
    const bb_expr *near = f_sub(p, f_mul(p, number(s, c + 2), x), number(s, c + 3));
    near = f_add(p, f_mul(p, f_mul(p, near, x), x), one);
    const bb_expr *far = f_sub(p, f_mul(p, number(s, c), x), number(s, 5 * c));
    far = f_add(p, f_mul(p, far, x), number(s, 8 * c));
    far = f_sub(p, f_mul(p, far, x), number(s, 4 * c));
    weight = f_select(p, f_le(p, x, one), near, far);
  }
  return s->beyond == ZEROS ? f_select(p, is_inside(s, axis, at), weight, number(s, 0)) : weight;
}

/* Which tap along an axis a tap of all axes is. */
static uint32_t tap_along(const sampling *s, uint32_t tap, uint32_t axis) {
  while (axis-- > 0) tap /= s->taps;
  return tap % s->taps;
}

/* Rows [N, places, C] of x, [N * elements, C], for a tap. */
static bb_onnx_value *rows_of(const sampling *s, bb_onnx_value *x, const bb_extent *const *shape,
                              uint32_t tap) {
  bb_onnx_node *n = s->n;
  bb_program *p = s->p;
  const bb_expr *row = bb_onnx_index_along(n->m, s->place[0], 0);
  for (uint32_t a = 0; a < s->axes; a++) {
    const bb_expr *place = bb_onnx_arg(n, a, s->place[a]);
    const bb_expr *at = index_of(s, a, element_at(s, place, tap_along(s, tap, a)));
    row = f_add(p, f_mul(p, row, bb_onnx_extent_expr(n->m, shape[2 + a])), at);
  }
  return bb_onnx_gather_along(n, x, 0, bb_onnx_map(n, row, s->axes, (bb_onnx_value **)s->place));
}

/* Rows of the taps from `first` on, weighed, and what there is already (NULL: nothing): [N, places, C]. */
static bb_onnx_value *add_taps(const sampling *s, bb_onnx_value *x, const bb_extent *const *shape,
                               uint32_t first, uint32_t count, bb_onnx_value *sum) {
  bb_onnx_node *n = s->n;
  bb_program *p = s->p;
  bb_onnx_value *in[MOST_AXES + TAPS_AT_ONCE + 1];
  const bb_expr *all = NULL, *place[MOST_AXES];
  uint32_t nin = 0;
  for (uint32_t a = 0; a < s->axes; a++) {
    const bb_onnx_value *v = s->place[a];
    const bb_extent *wide[3] = {v->shape[0], v->shape[1], bb_onnx_number(n->m, 1)};
    in[nin++] = bb_onnx_reshape(n, s->place[a], 3, wide);
    place[a] = bb_onnx_arg(n, a, in[a]);
  }
  if (sum) {
    in[nin] = sum;
    all = bb_onnx_arg(n, nin++, sum);
  }
  for (uint32_t t = first; t < first + count; t++) {
    in[nin] = bb_onnx_cast(n, rows_of(s, x, shape, t), s->dtype);
    const bb_expr *term = bb_onnx_arg(n, nin, in[nin]);
    nin++;
    for (uint32_t a = 0; a < s->axes; a++)
      term = f_mul(p, term, weight_of(s, a, place[a], element_at(s, place[a], tap_along(s, t, a))));
    all = all ? f_add(p, all, term) : term;
  }
  return bb_onnx_map(n, all, nin, in);
}

/* Rows of all taps, weighed: [N, places, C]. */
static bb_onnx_value *sum_of(const sampling *s, bb_onnx_value *x, const bb_extent *const *shape) {
  bb_onnx_value *sum = NULL;
  uint32_t taps = taps_of(s);
  for (uint32_t t = 0; t < taps; t += TAPS_AT_ONCE)
    sum = add_taps(s, x, shape, t, taps - t < TAPS_AT_ONCE ? taps - t : TAPS_AT_ONCE, sum);
  return sum;
}

void bb_onnx_grid_sample(bb_onnx_node *n) {
  static const int64_t places_last[] = {0, 2, 1};
  bb_onnx *m = n->m;
  bb_onnx_value *x = n->in[0], *grid = n->in[1];
  sampling s = {.n = n, .p = m->program, .axes = x->rank - 2};
  bb_onnx_want_float(n, x);
  bb_onnx_want_float(n, grid);
  check_shapes(n, x, grid);
  read_attributes(&s);
  if (s.axes > MOST_AXES || taps_of(&s) > MOST_TAPS) {
    bb_onnx_unsupported(n, "%u taps along each of %u axes", s.taps, s.axes);
    return;
  }
  s.dtype = x->dtype == BB_F64 || grid->dtype == BB_F64 ? BB_F64 : BB_F32;
  read_places(&s, x, grid);
  const bb_extent *count = bb_onnx_product(m, s.axes, x->shape + 2), *shape[BB_ONNX_RANK];
  const bb_extent *flat[3] = {x->shape[0], x->shape[1], count};
  const bb_extent *rows[2] = {bb_extent_multiply(s.p, x->shape[0], count), x->shape[1]};
  bb_onnx_value *turned = bb_onnx_transpose(n, bb_onnx_reshape(n, x, 3, flat), places_last);
  bb_onnx_value *sum = sum_of(&s, bb_onnx_reshape(n, turned, 2, rows), x->shape);
  sum = bb_onnx_cast(n, bb_onnx_transpose(n, sum, places_last), x->dtype);
  memcpy(shape, grid->shape, grid->rank * sizeof *shape);
  memmove(shape + 2, shape + 1, s.axes * sizeof *shape);
  shape[1] = x->shape[1];
  n->out[0] = bb_onnx_reshape(n, sum, x->rank, shape);
}
