/* window_spread.c - transposed convolutions, which spread each element over a window, as convolutions.
 *
 * Element f of all that is made, before `before` elements are cut off, is a sum over taps t of x[(f - t) / stride], where that is
 * whole.  In blocks of as many elements as the stride, f = stride * q + r and t = stride * u + r: the r-th elements of all blocks are
 * the convolution of x with every stride-th tap from r on, the last one first.  Residues r that have as many taps are one
 * convolution, of more maps: the first ones have one more than the others, and no weight is a 0 that was filled in, which an
 * infinite element would meet.  What stands in the padding beside the input meets zeros as in any convolution.
 */
#include "window.h"

#include "formula.h"

#include <string.h>

/* Elements that may be made in vain where the result has fewer; axes of weights and results on their way, which may pass reference
 * kernels. */
enum { LITTLE = 1024, MOST_AXES = 8 };

/* Along one axis: blocks first .. first + places, the elements that are cut off before the result, and those behind it. */
typedef struct spread_axis {
  bb_window window;
  int64_t first, places; /* places -1: known only at run time */
  int64_t beyond;        /* blocks behind the last one that begins in the input */
  int64_t cut, rest;
  const bb_extent *blocks; /* places, as an extent */
} spread_axis;

/* Some residues along an axis, and of how many taps each is a sum. */
typedef struct residues {
  int64_t first, count, taps;
} residues;

typedef struct spread {
  const bb_onnx_node *n;
  uint32_t axes;
  const bb_extent *group, *channels, *maps; /* of a group */
  const bb_extent *all_maps;                /* of all groups and samples */
  spread_axis axis[BB_ONNX_RANK];
  residues of[BB_ONNX_RANK]; /* the convolution at hand */
} spread;

/* Towards infinity. */
static int64_t divide_up(int64_t a, int64_t by) {
  return a > 0 ? (a + by - 1) / by : -(-a / by);
}

/* How many taps the first residues have. */
static int64_t most_taps(const bb_window *w) {
  return divide_up(w->kernel, w->stride);
}

/* --- where blocks stand --- */

/* What the result's length leaves of all that is made is cut off on both sides. */
static int64_t cut_before(bb_window w, bb_window_pads pads, bool given, int64_t total) {
  if (pads == BB_PADS_VALID) w.before = 0;
  if (pads < BB_PADS_SAME_UPPER && !given) return w.before;
  if (total < 0) total = 0;
  return pads == BB_PADS_SAME_UPPER ? total / 2 : total - total / 2;
}

/* `length`: of the result, -1 where only a run tells it; `extra`: elements behind what taps reach.  False: it is not told where
 * blocks stand, taps lie apart, or blocks are far longer than the result. */
static bool stand(const bb_onnx_node *n, bb_window_pads pads, bool given, int64_t extra,
                  int64_t length, const bb_extent *extent, spread_axis *a) {
  bb_window *w = &a->window;
  bool open = w->extent < 0;
  if ((w->dilation > 1 && w->kernel > 1) || (open && (given || w->stride > w->kernel)))
    return false;
  int64_t input = open ? 1 : w->extent, full = (input - 1) * w->stride + w->kernel + extra;
  int64_t least = most_taps(w) - (w->kernel % w->stride ? 2 : 1); /* taps before the block's own */
  if (open) length = pads == BB_PADS_VALID ? full : full - w->before - w->after;
  if (open && pads >= BB_PADS_SAME_UPPER) length = input * w->stride;
  a->cut = cut_before(*w, pads, given, full - length);
  a->first = a->cut / w->stride;
  if (a->first > least) a->first = least < 0 ? 0 : least;
  a->beyond = divide_up(a->cut + length, w->stride) - input;
  a->places = input + a->beyond - a->first;
  a->cut -= a->first * w->stride;
  a->rest = a->places * w->stride - a->cut - length;
  if (a->places < 1 || (open && a->beyond < 0)) return false;
  if (!open && a->cut + a->rest > length && a->cut + a->rest > LITTLE) return false;
  if (!open) {
    a->blocks = bb_onnx_number(n->m, a->places);
    return true;
  }
  a->places = -1;
  const bb_expr *blocks = bb_onnx_extent_meaning(n->m, extent);
  blocks = bb_onnx_tidy_make(n->m, BB_X_ADD, blocks,
                             f_num(n->m->program, blocks, (double)(a->beyond - a->first)));
  a->blocks = bb_onnx_expr_extent(n->m, blocks);
  return a->blocks != NULL;
}

/* --- one convolution --- */

/* What windows of so many taps see along an axis, from the first place to the last; NULL: nothing but padding. */
static bb_onnx_value *seen(const spread *s, bb_onnx_value *x, uint32_t i) {
  const bb_onnx_node *n = s->n;
  const spread_axis *a = &s->axis[i];
  int64_t before = s->of[i].taps - 1 - a->first;
  const bb_expr *zero = bb_expr_const(n->m->program, x->dtype, 0);
  if (a->places < 0)
    return before || a->beyond ? bb_onnx_pad_along(n, x, i + 2, before, a->beyond, zero) : x;
  int64_t behind = a->beyond, end = a->window.extent;
  if (behind < 0) end += behind, behind = 0;
  if (end < 1) return NULL;
  return bb_onnx_pad_with(n, bb_onnx_slice(n, x, i + 2, 0, 1, end), i + 2, before, behind, 0);
}

/* [groups * maps * residues ..., channels, tap ...] of [groups * channels, maps, tap ...]. */
static bb_onnx_value *weights(const spread *s) {
  const bb_onnx_node *n = s->n;
  bb_onnx *m = n->m;
  uint32_t lead = bb_onnx_is_one(s->group) ? 0 : 1; /* axes before the channels */
  const bb_extent *shape[BB_ONNX_RANK] = {s->group};
  int64_t perm[BB_ONNX_RANK] = {0};
  shape[lead] = s->channels;
  shape[lead + 1] = s->maps;
  for (uint32_t i = 0; i < s->axes; i++) shape[lead + 2 + i] = n->in[1]->shape[2 + i];
  bb_onnx_value *w = bb_onnx_reshape(n, n->in[1], lead + 2 + s->axes, shape);
  shape[0] = bb_extent_multiply(m->program, s->group, s->maps);
  shape[1] = s->channels;
  perm[lead] = lead + 1;
  perm[lead + 1 + s->axes] = lead;
  for (uint32_t i = 0; i < s->axes; i++) {
    const residues *r = &s->of[i];
    uint32_t axis = lead + 2 + 2 * i;
    bb_array_windows rows = {r->first, s->axis[i].window.stride, 1, r->taps, r->count, NULL};
    w = bb_onnx_slice(n, bb_onnx_windows(n, w, axis, &rows), axis, r->taps - 1, -1, r->taps);
    shape[0] = bb_extent_multiply(m->program, shape[0], bb_onnx_number(m, r->count));
    shape[2 + i] = bb_onnx_number(m, r->taps);
    perm[lead + 1 + i] = axis + 1;
    perm[lead + 2 + s->axes + i] = axis;
  }
  return bb_onnx_reshape(n, bb_onnx_transpose(n, w, perm), 2 + s->axes, shape);
}

/* Residues of all axes at hand: [samples * groups * maps, residue ..., place ...]. */
static bb_onnx_value *convolution(const spread *s) {
  const bb_onnx_node *n = s->n;
  bb_onnx *m = n->m;
  bb_onnx_value *x = n->in[0];
  const bb_extent *shape[BB_ONNX_RANK] = {s->all_maps}, *maps = s->maps;
  const bb_extent *flat[BB_ONNX_RANK] = {x->shape[0]};
  bb_window_sight sight = {
      .axes = s->axes, .shape = flat, .group = s->group, .channels = s->channels};
  for (uint32_t i = 0; i < s->axes; i++) {
    shape[1 + i] = bb_onnx_number(m, s->of[i].count);
    shape[1 + s->axes + i] = flat[2 + i] = s->axis[i].blocks;
    maps = bb_extent_multiply(m->program, maps, shape[1 + i]);
    if (x && s->of[i].taps) x = seen(s, x, i);
    if (!x || !s->of[i].taps) x = NULL;
    if (!x) continue;
    bool open = s->axis[i].places < 0;
    int64_t extent = open ? -1 : bb_extent_value(x->shape[i + 2]);
    sight.window[i] = (bb_window){extent, s->of[i].taps, 1, 1, 0, 0};
    sight.count[i] = s->axis[i].places;
  }
  if (!x)
    return bb_onnx_value_of_form(m, bb_expr_const(m->program, n->in[0]->dtype, 0), 1 + 2 * s->axes,
                                 shape);
  sight.maps = maps;
  flat[1] = bb_extent_multiply(m->program, s->group, maps);
  bb_onnx_value *in[2] = {x, weights(s)};
  bb_onnx_node plain = *n;
  plain.nin = 2;
  plain.in = in;
  return bb_onnx_reshape(n, bb_window_product(&plain, &sight), 1 + 2 * s->axes, shape);
}

/* All residues of the axes from `i` on. */
static bb_onnx_value *spread_along(spread *s, uint32_t i) {
  if (i == s->axes) return convolution(s);
  const bb_window *w = &s->axis[i].window;
  int64_t taps = most_taps(w), full = w->kernel - (taps - 1) * w->stride;
  bb_onnx_value *part[2];
  s->of[i] = (residues){0, full, taps};
  part[0] = spread_along(s, i + 1);
  if (full == w->stride) return part[0];
  s->of[i] = (residues){full, w->stride - full, taps - 1};
  part[1] = spread_along(s, i + 1);
  return bb_onnx_concat(s->n, 2, part, 1 + i);
}

/* --- all of them --- */

/* Blocks beside each other, without what the result leaves out of the first and the last. */
static bb_onnx_value *joined(const spread *s, bb_onnx_value *v, const bb_extent *const *shape) {
  const bb_onnx_node *n = s->n;
  bb_onnx *m = n->m;
  int64_t perm[BB_ONNX_RANK] = {0};
  const bb_extent *all[BB_ONNX_RANK] = {shape[0], shape[1]};
  for (uint32_t i = 0; i < s->axes; i++) {
    perm[1 + 2 * i] = 1 + s->axes + i;
    perm[2 + 2 * i] = 1 + i;
    all[2 + i] = bb_extent_multiply(m->program, s->axis[i].blocks,
                                    bb_onnx_number(m, s->axis[i].window.stride));
  }
  v = bb_onnx_reshape(n, bb_onnx_transpose(n, v, perm), 2 + s->axes, all);
  for (uint32_t i = 0; i < s->axes; i++) {
    const spread_axis *a = &s->axis[i];
    if (a->cut || a->rest) v = bb_window_part(n, v, i + 2, a->cut, shape[i + 2]);
  }
  return v;
}

/* The length of an axis of the result. */
static int64_t spread_length(const bb_onnx_node *n, bb_window w, bb_window_pads pads,
                             int64_t extra) {
  int64_t reach = (w.kernel - 1) * w.dilation + 1;
  if (w.extent >= (int64_t)1 << 30 || extra < 0 || extra >= (int64_t)1 << 30)
    bb_onnx_refuse(n, "its input or output_padding is out of range");
  if (pads == BB_PADS_SAME_UPPER || pads == BB_PADS_SAME_LOWER) return w.extent * w.stride;
  if (pads == BB_PADS_VALID) w.before = w.after = 0;
  int64_t length = w.stride * (w.extent - 1) + extra + reach - w.before - w.after;
  if (length < 1) bb_onnx_refuse(n, "its pads leave nothing");
  return length;
}

void bb_onnx_transposed_convolution(bb_onnx_node *n) {
  bb_onnx_want_float(n, n->in[0]);
  bb_program *p = n->m->program;
  bb_onnx_value *x = n->in[0];
  const bb_extent *shape[BB_ONNX_RANK];
  int64_t kernel[BB_ONNX_RANK];
  bb_window_check_weights(n, 0, kernel);
  spread s = {.n = n, .axes = x->rank - 2, .maps = n->in[1]->shape[1]};
  bb_window_pads pads = bb_window_automatic_pads(n);
  const int64_t *extra = bb_window_per_axis(n, "output_padding", s.axes);
  const int64_t *given = bb_window_per_axis(n, "output_shape", s.axes);
  s.group = bb_onnx_number(n->m, bb_onnx_int(n, "group", 1));
  s.channels = bb_extent_divide(p, x->shape[1], s.group);
  shape[0] = x->shape[0];
  shape[1] = bb_extent_multiply(p, s.maps, s.group);
  s.all_maps = bb_extent_multiply(p, shape[0], shape[1]);
  bool one = bb_onnx_is_one(s.group), told = (one ? 2 : 3) + 2 * s.axes <= MOST_AXES && s.channels;
  for (uint32_t i = 0; i < s.axes; i++) {
    int64_t more = extra ? extra[i] : 0, length = -1;
    bb_window w = bb_window_read(n, i, kernel[i]);
    if (!given && w.extent < 0) {
      shape[i + 2] = bb_window_open_spread(n, w, pads, more, x->shape[i + 2]);
    } else {
      length = given ? given[i] : spread_length(n, w, pads, more);
      if (length < 1) bb_onnx_refuse(n, "output_shape is %lld", (long long)length);
      shape[i + 2] = bb_onnx_number(n->m, length);
    }
    s.axis[i].window = w;
    told = told && stand(n, pads, given, more, length, x->shape[i + 2], &s.axis[i]);
  }
  if (told)
    n->out[0] = bb_window_biased(n, joined(&s, spread_along(&s, 0), shape));
  else
    bb_onnx_misc_result(n, x->dtype, x->rank, shape);
}
