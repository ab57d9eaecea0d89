/* resize.c - interpolation along axes: each element of the result is a few elements of the operand, weighed.
 *
 * Where those lie and what they weigh is known as the model is read.  An axis is a sum of gathers, one for each
 * neighbour; of views where neighbours repeat or run evenly; and a product with the weights where an element has many.
 */
#include "formula.h"
#include "resize.h"

#include <math.h>
#include <string.h>

enum { FEW = 4, MOST = 1 << 16 };

/* One axis: element o of `to` is the sum of weight[o * taps + t] times element index[o * taps + t] of `from`, plus
 * beyond[o]. */
typedef struct axis {
  int64_t from, to;
  double scale, begin, end; /* of the operand, where it is cropped: shares of it */
  uint32_t taps;
  int64_t *index;
  double *weight, *beyond;
  bb_resize_open open;
} axis;

/* --- attributes --- */

static uint32_t one_of(const bb_onnx_node *n, const char *name, uint32_t count,
                       const char *const *word) {
  const char *text = bb_onnx_text(n, name, word[0]);
  for (uint32_t i = 0; i < count; i++)
    if (strcmp(text, word[i]) == 0) return i;
  bb_onnx_refuse(n, "%s is %s", name, bb_onnx_quote(n->m->arena, text));
}

/* As opsets up to 10 have it: scales alone, and no attributes but the mode. */
static bool is_simple(const bb_onnx_node *n) {
  return n->row->detail;
}

static bb_resizing read_attributes(const bb_onnx_node *n) {
  static const char *const modes[] = {"nearest", "linear", "cubic"};
  static const char *const places[] = {"half_pixel",         "half_pixel_symmetric",
                                       "pytorch_half_pixel", "align_corners",
                                       "asymmetric",         "tf_crop_and_resize"};
  static const char *const roundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                          "ceil"};
  if (is_simple(n))
    return (bb_resizing){.mode = (bb_interpolation)one_of(n, "mode", 2, modes),
                         .coordinates = BB_ASYMMETRIC,
                         .rounding = BB_BY_SCALE};
  return (bb_resizing){.mode = (bb_interpolation)one_of(n, "mode", 3, modes),
                       .coordinates =
                           (bb_resize_places)one_of(n, "coordinate_transformation_mode", 6, places),
                       .rounding = (bb_resize_rounding)one_of(n, "nearest_mode", 4, roundings),
                       .antialias = bb_onnx_int(n, "antialias", 0) != 0,
                       .exclude = bb_onnx_int(n, "exclude_outside", 0) != 0,
                       .cubic = bb_onnx_float(n, "cubic_coeff_a", -0.75),
                       .beyond = bb_onnx_float(n, "extrapolation_value", 0)};
}

/* --- neighbours and weights --- */

/* Where element o of the result stands in the operand. */
static double place_of(const bb_resizing *r, const axis *a, double o) {
  double from = (double)a->from, length = a->scale * from;
  switch (r->coordinates) {
  case BB_ALIGN_CORNERS: return length == 1 ? 0 : o * (from - 1) / (length - 1);
  case BB_ASYMMETRIC: return o / a->scale;
  case BB_CROP_AND_RESIZE: {
    double first = a->begin * (from - 1), part = (a->end - a->begin) * (from - 1);
    return first + (length == 1 ? part / 2 : o * part / (length - 1));
  }
  case BB_PYTORCH_HALF_PIXEL:
    if (a->to == 1) return 0; /* of the result, as runtimes have it; 1.5 by scales is 1 */
    break;
  case BB_HALF_PIXEL_SYMMETRIC:
    return from / 2 * (1 - (double)a->to / length) + (o + 0.5) / a->scale - 0.5;
  case BB_HALF_PIXEL: break;
  }
  return (o + 0.5) / a->scale - 0.5;
}

static double cubic(double a, double x) {
  x = fabs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

/* What an element weighs that is `away` from the place, in steps of the operand. */
static double weight_of(const bb_resizing *r, double squeeze, double away) {
  double x = away * squeeze;
  if (r->mode == BB_CUBIC) return cubic(r->cubic, x);
  return fabs(x) < 1 ? 1 - fabs(x) : 0;
}

static int64_t within(int64_t i, int64_t extent) {
  return i < 0 ? 0 : i >= extent ? extent - 1 : i;
}

/* Lengths and places are numbers of 32 bits, as runtimes and open axes have them: 20 elements times 1.3 are 26. */
static int64_t nearest(const bb_resizing *r, const axis *a, float place) {
  float below = floorf(place), over = place - below;
  bool up = r->rounding == BB_UP            ? over > 0
            : r->rounding == BB_BY_SCALE    ? over > 0 && a->scale < 1
            : r->rounding == BB_DOWN        ? false
            : r->rounding == BB_PREFER_CEIL ? over >= 0.5F
                                            : over > 0.5F;
  return (int64_t)below + up;
}

/* The elements around a place, the last one at or behind it. */
static void weigh(const bb_resizing *r, axis *a, int64_t o, double place) {
  int64_t *index = a->index + o * a->taps, before = (int64_t)ceil(place) - 1;
  double *weight = a->weight + o * a->taps, sum = 0;
  double squeeze = r->antialias && a->scale < 1 ? a->scale : 1;
  for (uint32_t t = 0; t < a->taps; t++) {
    int64_t at = before - (int64_t)a->taps / 2 + 1 + t;
    bool outside = at < 0 || at >= a->from;
    weight[t] = r->exclude && outside ? 0 : weight_of(r, squeeze, (double)at - place);
    index[t] = within(at, a->from);
    sum += weight[t];
  }
  bool whole = !r->exclude && squeeze == 1; /* they sum up to 1 */
  for (uint32_t t = 0; t < a->taps && !whole && sum != 0; t++) weight[t] /= sum;
}

static void fill(const bb_onnx_node *n, const bb_resizing *r, axis *a) {
  double squeeze = r->antialias && a->scale < 1 ? a->scale : 1, reach = r->mode == BB_CUBIC ? 2 : 1;
  double taps = 2 - 2 * (floor(-reach / squeeze) + 1);
  if (taps > MOST || a->to > MOST) bb_onnx_refuse(n, "an axis of the result is too long");
  a->taps = r->mode == BB_NEAREST ? 1 : (uint32_t)taps;
  a->index = BB_NEW(n->m->arena, int64_t, (size_t)a->to * a->taps);
  a->weight = BB_NEW(n->m->arena, double, (size_t)a->to * a->taps);
  a->beyond = BB_NEW(n->m->arena, double, (size_t)a->to);
  for (int64_t o = 0; o < a->to; o++) {
    double place = place_of(r, a, (double)o);
    bool outside =
        r->coordinates == BB_CROP_AND_RESIZE && (place < 0 || place > (double)(a->from - 1));
    if (r->mode == BB_NEAREST) {
      a->index[o] = within(nearest(r, a, (float)place), a->from);
      a->weight[o] = 1;
    } else {
      weigh(r, a, o, place);
    }
    if (!outside) continue;
    a->beyond[o] = r->beyond;
    for (uint32_t t = 0; t < a->taps; t++) a->weight[o * a->taps + t] = 0;
  }
}

/* --- operands --- */

/* Numbers for each axis that changes: NULL where there are none; refuses other than `count`.  NaN: one that only a run
 * tells, if `open` allows that, else *known is false. */
static const double *numbers(bb_onnx_node *n, uint32_t operand, uint32_t count, bool open,
                             bool *known) {
  const bb_onnx_value *v = operand < n->nin ? n->in[operand] : NULL;
  if (!v || bb_onnx_count(v->rank, v->shape) == 0) return NULL;
  double *number = BB_NEW(n->m->arena, double, count + 1);
  *known = v->element != NULL;
  if (*known && v->elements != count)
    bb_onnx_refuse(n, "input %u has %u elements for %u axes", operand, v->elements, count);
  for (uint32_t i = 0; *known && i < count; i++) {
    bool constant = v->element[i]->op == BB_X_CONST;
    *known = open || constant;
    number[i] = constant ? v->element[i]->number : NAN;
  }
  return number;
}

/* An axis of which only a run tells the length, now or then, by its scale or its size; false: that is not told by
 * extents. */
static bool read_open(const bb_onnx_node *n, const bb_extent *from, const double *scale,
                      const double *size, const bb_expr *to, axis *a) {
  if (size)
    a->open.to =
        isnan(*size) ? bb_onnx_expr_extent(n->m, to) : bb_onnx_number(n->m, (int64_t)*size);
  else
    a->open.to = scale ? bb_resize_scaled(n->m, from, *scale) : NULL;
  a->open.scale = scale ? *scale : 0;
  a->from = a->to = 0;
  bool stays = a->open.to == from;
  bool told = a->open.to && (!size || isnan(*size) || *size >= 1);
  if (stays) a->open.to = NULL;
  return told;
}

/* How sizes become scales: each its own, or one for all. */
static void scale_by_sizes(const bb_onnx_node *n, uint32_t count, axis *a, const double *size) {
  static const char *const policies[] = {"stretch", "not_larger", "not_smaller"};
  uint32_t policy = one_of(n, "keep_aspect_ratio_policy", 3, policies);
  double one = policy == 1 ? INFINITY : 0;
  for (uint32_t i = 0; i < count; i++) {
    if (!a[i].from) continue; /* an open one */
    a[i].to = (int64_t)size[i];
    a[i].scale = size[i] / (double)a[i].from;
    one = policy == 1 ? fmin(one, a[i].scale) : fmax(one, a[i].scale);
  }
  for (uint32_t i = 0; i < count && policy; i++) {
    a[i].scale = one;
    a[i].to = (int64_t)(one * (double)a[i].from + 0.5);
  }
}

/* The axes that may change, and how; false: it is told by data, and the node refused. */
static bool read_axes(bb_onnx_node *n, const bb_resizing *r, uint32_t count, const uint32_t *which,
                      axis *a) {
  bool known[3] = {true, true, true};
  bool stretches = strcmp(bb_onnx_text(n, "keep_aspect_ratio_policy", "stretch"), "stretch") == 0;
  const double *roi =
      r->coordinates == BB_CROP_AND_RESIZE ? numbers(n, 1, 2 * count, false, &known[0]) : NULL;
  uint32_t first = is_simple(n) ? 1 : 2; /* the operand of scales, before that of sizes */
  const double *scale = numbers(n, first, count, false, &known[1]);
  const double *size = numbers(n, first + 1, count, stretches, &known[2]);
  bool told = known[0] && known[1] && known[2];
  if (told && !scale == !size) bb_onnx_refuse(n, "has %s", scale ? "scales and sizes" : "no sizes");
  for (uint32_t i = 0; told && i < count; i++) {
    const bb_extent *from = n->in[0]->shape[which[i]];
    a[i].from = bb_extent_value(from);
    a[i].begin = roi ? roi[i] : 0;
    a[i].end = roi ? roi[count + i] : 1;
    if (a[i].from >= 0 && !(size && isnan(size[i]))) continue;
    told = stretches && !roi &&
           read_open(n, from, scale ? &scale[i] : NULL, size ? &size[i] : NULL,
                     size ? n->in[3]->element[i] : NULL, &a[i]);
  }
  if (!told) {
    bb_onnx_unsupported(n, "sizes that are computed at run time");
    return false;
  }
  if (size) scale_by_sizes(n, count, a, size);
  for (uint32_t i = 0; i < count && scale; i++) {
    a[i].scale = scale[i];
    a[i].to = (int64_t)((float)scale[i] * (float)a[i].from);
  }
  for (uint32_t i = 0; i < count; i++)
    if (a[i].from && (!(a[i].scale > 0) || a[i].to < 1 || a[i].to > MOST))
      bb_onnx_refuse(n, "axis %u becomes %lld elements long", which[i], (long long)a[i].to);
  return true;
}

/* --- along one axis --- */

static bool is_identity(const axis *a) {
  if (a->open.to) return false;
  bool crops = a->begin != 0 || a->end != 1;
  return !crops && (a->from == 0 || (a->to == a->from && fabs(a->scale - 1) <= 1e-9));
}

/* Constants along an axis, in a shape that broadcasts against v: from[o * step]. */
static bb_onnx_value *along(const bb_onnx_node *n, const bb_onnx_value *v, uint32_t at,
                            const double *from, uint32_t step, const axis *a) {
  bb_onnx *m = n->m;
  const bb_extent *shape[BB_ONNX_RANK];
  int64_t length[BB_ONNX_RANK];
  float *data = BB_NEW(m->program->arena, float, (size_t)a->to);
  for (int64_t o = 0; o < a->to; o++) data[o] = (float)from[o * step];
  for (uint32_t i = 0; i < v->rank; i++) {
    length[i] = i == at ? a->to : 1;
    shape[i] = bb_onnx_number(m, length[i]);
  }
  bb_onnx_value *made = bb_onnx_value_new(m, BB_F32, v->rank, shape);
  made->id = bb_array_constant(m->array, n->name, BB_F32, v->rank, length, data,
                               (size_t)a->to * sizeof *data);
  return made;
}

/* The elements at tap t, one for each of the result: repeated ones are a view. */
static bb_onnx_value *neighbour(const bb_onnx_node *n, bb_onnx_value *v, uint32_t at, const axis *a,
                                uint32_t t) {
  bb_onnx *m = n->m;
  int64_t times = a->from ? a->to / a->from : 0;
  bool repeats = times > 1 && times * a->from == a->to;
  const bb_expr **index = BB_NEW(m->arena, const bb_expr *, (size_t)a->to);
  for (int64_t o = 0; o < a->to; o++) {
    int64_t from = a->index[o * a->taps + t];
    repeats &= from == o / (times ? times : 1);
    index[o] = bb_expr_const(m->program, BB_I64, (double)from);
  }
  if (repeats && v->rank < BB_ONNX_RANK) return bb_resize_repeated(n, v, at, times);
  const bb_extent *count = bb_onnx_number(m, a->to);
  bb_onnx_value *known = NULL;
  if (a->to <= BB_ONNX_ELEMENTS) {
    known = bb_onnx_value_of_elements(m, BB_I64, 1, &count, (uint32_t)a->to, index);
  } else {
    int64_t *data = BB_NEW(m->program->arena, int64_t, (size_t)a->to);
    for (int64_t o = 0; o < a->to; o++) data[o] = a->index[o * a->taps + t];
    known = bb_onnx_value_new(m, BB_I64, 1, &count);
    known->id =
        bb_array_constant(m->array, n->name, BB_I64, 1, &a->to, data, (size_t)a->to * sizeof *data);
  }
  return bb_onnx_gather_along(n, v, at, known);
}

/* Many neighbours: a product with the weights, [to, from]. */
static bb_onnx_value *weighed(const bb_onnx_node *n, bb_onnx_value *v, uint32_t at, const axis *a) {
  bb_onnx *m = n->m;
  int64_t shape[2] = {a->to, a->from}, labels[BB_ONNX_RANK], out[BB_ONNX_RANK];
  int64_t of_weights[2] = {BB_ONNX_RANK, at};
  const bb_extent *extent[2] = {bb_onnx_number(m, a->to), bb_onnx_number(m, a->from)};
  size_t count = (size_t)a->to * (size_t)a->from;
  float *data = BB_NEW(m->program->arena, float, count);
  for (int64_t o = 0; o < a->to; o++)
    for (uint32_t t = 0; t < a->taps; t++)
      data[o * a->from + a->index[o * a->taps + t]] += (float)a->weight[o * a->taps + t];
  bb_onnx_value *weights = bb_onnx_value_new(m, BB_F32, 2, extent);
  weights->id = bb_array_constant(m->array, n->name, BB_F32, 2, shape, data, count * sizeof *data);
  for (uint32_t i = 0; i < v->rank; i++) {
    labels[i] = i;
    out[i] = i == at ? BB_ONNX_RANK : (int64_t)i;
  }
  return bb_onnx_contract(n, v, weights, labels, of_weights, v->rank, out);
}

static bb_onnx_value *resized(bb_onnx_node *n, const bb_resizing *r, bb_onnx_value *v, uint32_t at,
                              axis *a) {
  bb_onnx_value *sum = NULL;
  if (a->open.to) return bb_resize_along(n, r, v, at, &a->open);
  bool plain = r->mode == BB_NEAREST && r->coordinates != BB_CROP_AND_RESIZE;
  fill(n, r, a);
  if (plain) return neighbour(n, v, at, a, 0);
  if (a->taps > FEW) sum = weighed(n, v, at, a);
  for (uint32_t t = 0; t < a->taps && a->taps <= FEW; t++) {
    bb_onnx_value *weight = along(n, v, at, a->weight + t, a->taps, a);
    bb_onnx_value *part = bb_onnx_binary_map(n, BB_X_MUL, neighbour(n, v, at, a, t), weight);
    sum = sum ? bb_onnx_binary_map(n, BB_X_ADD, sum, part) : part;
  }
  if (r->coordinates != BB_CROP_AND_RESIZE) return sum;
  return bb_onnx_binary_map(n, BB_X_ADD, sum, along(n, v, at, a->beyond, 1, a));
}

/* Axes that become longer come last, inner ones before outer ones: what is gathered along an inner axis is gathered element by element,
 * and of those there are then fewer. */
static void order_axes(uint32_t count, const axis *a, const uint32_t *which, uint32_t *order) {
  uint32_t ordered = 0;
  for (uint32_t i = 0; i < count; i++)
    if (a[i].to <= a[i].from) order[ordered++] = i;
  for (uint32_t dim = BB_ONNX_RANK; dim-- > 0;)
    for (uint32_t i = 0; i < count; i++)
      if (which[i] == dim && a[i].to > a[i].from) order[ordered++] = i;
}

void bb_onnx_resize(bb_onnx_node *n) {
  bb_onnx_value *v = n->in[0];
  bb_resizing r = read_attributes(n);
  uint32_t given, count = v->rank, which[BB_ONNX_RANK];
  const int64_t *axes = bb_onnx_ints(n, "axes", &given);
  axis a[BB_ONNX_RANK];
  memset(a, 0, sizeof a);
  if (r.antialias && r.mode == BB_NEAREST) bb_onnx_refuse(n, "antialias with mode nearest");
  if (axes && given > v->rank) bb_onnx_refuse(n, "%u axes of %u", given, v->rank);
  for (uint32_t i = 0; i < v->rank; i++) which[i] = i;
  for (uint32_t i = 0; axes && i < given; i++) which[i] = bb_onnx_axis(n, axes[i], v->rank);
  if (axes) count = given;
  if (!read_axes(n, &r, count, which, a)) return;
  bool moves = r.mode == BB_NEAREST && r.coordinates != BB_CROP_AND_RESIZE;
  bb_dtype dtype = v->dtype;
  if (!moves) bb_onnx_want_float(n, v);
  if (!moves) v = bb_onnx_cast(n, v, BB_F32);
  uint32_t order[BB_ONNX_RANK];
  order_axes(count, a, which, order);
  for (uint32_t i = 0; v && i < count; i++)
    if (!is_identity(&a[order[i]])) v = resized(n, &r, v, which[order[i]], &a[order[i]]);
  if (v) n->out[0] = bb_onnx_cast(n, v, dtype);
}
