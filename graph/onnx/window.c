/* window.c - windows that slide over the spatial axes of [N, C, ...]: convolutions, which are contractions of what windows
 * see, and pools, which are folds of it, as far as it can be told where windows stand; else both run as reference kernels.
 */
#include "window.h"

#include "formula.h"

#include <math.h>
#include <string.h>

const int64_t *bb_window_per_axis(const bb_onnx_node *n, const char *name, uint32_t need) {
  uint32_t count;
  const int64_t *ints = bb_onnx_ints(n, name, &count);
  if (ints && count != need) bb_onnx_refuse(n, "%s has %u numbers, not %u", name, count, need);
  return ints;
}

bb_window_pads bb_window_automatic_pads(const bb_onnx_node *n) {
  static const char *const names[] = {"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"};
  const char *text = bb_onnx_text(n, "auto_pad", "NOTSET");
  for (int i = 0; i < 4; i++)
    if (strcmp(text, names[i]) == 0) return (bb_window_pads)i;
  bb_onnx_refuse(n, "auto_pad is %s", bb_onnx_quote(n->m->arena, text));
}

bb_window bb_window_read(const bb_onnx_node *n, uint32_t i, int64_t kernel) {
  const int64_t limit = (int64_t)1 << 30;
  uint32_t spatial = n->in[0]->rank - 2;
  const int64_t *stride = bb_window_per_axis(n, "strides", spatial),
                *pad = bb_window_per_axis(n, "pads", 2 * spatial);
  const int64_t *dilation = bb_window_per_axis(n, "dilations", spatial);
  bb_window w = {.extent = bb_extent_value(n->in[0]->shape[i + 2]),
                 .kernel = kernel,
                 .stride = stride ? stride[i] : 1,
                 .dilation = dilation ? dilation[i] : 1,
                 .before = pad ? pad[i] : 0,
                 .after = pad ? pad[i + spatial] : 0};
  bool sane = w.kernel >= 1 && w.stride >= 1 && w.dilation >= 1 && w.before >= 0 && w.after >= 0 &&
              w.kernel < limit && w.stride < limit && w.dilation < limit && w.before < limit &&
              w.after < limit;
  if (!sane) bb_onnx_refuse(n, "its kernel, strides, dilations or pads are out of range");
  return w;
}

/* Places of a window.  With `up`, one that hangs over the end counts too, unless it begins in the
 * padding there. */
static int64_t places(const bb_onnx_node *n, bb_window w, bb_window_pads automatic_pad, bool up) {
  if (automatic_pad == BB_PADS_SAME_UPPER || automatic_pad == BB_PADS_SAME_LOWER)
    return (w.extent - 1) / w.stride + 1;
  if (automatic_pad == BB_PADS_VALID) w.before = w.after = 0;
  int64_t room = w.extent + w.before + w.after - (w.kernel - 1) * w.dilation - 1;
  if (room < 0) bb_onnx_refuse(n, "its window is larger than its input");
  int64_t count = (room + (up ? w.stride - 1 : 0)) / w.stride + 1;
  return up && (count - 1) * w.stride >= w.extent + w.before ? count - 1 : count;
}

/* The spatial axes of the result, from axis 2 on; false: refused. */
static bool slide(bb_onnx_node *n, const int64_t *kernel, const bb_extent **shape) {
  bb_window_pads automatic_pad = bb_window_automatic_pads(n);
  bool up = bb_onnx_int(n, "ceil_mode", 0);
  for (uint32_t i = 0; i + 2 < n->in[0]->rank; i++) {
    bb_window w = bb_window_read(n, i, kernel[i]);
    shape[i + 2] = w.extent < 0
                       ? bb_window_open_places(n, w, automatic_pad, up, n->in[0]->shape[i + 2])
                       : bb_onnx_number(n->m, places(n, w, automatic_pad, up));
    if (shape[i + 2] && w.extent < 0) bb_onnx_has_some(n->m, shape[i + 2]);
    if (shape[i + 2]) continue;
    bb_onnx_unsupported(n, "a window in the padding behind an end that is known only at run time");
    return false;
  }
  return true;
}

void bb_window_check_weights(bb_onnx_node *n, uint32_t in_axis, int64_t *kernel) {
  bb_onnx_value *v = n->in[0], *w = n->in[1];
  int64_t group = bb_onnx_int(n, "group", 1), expect;
  bb_onnx_same_dtype(n, n->nin, n->in);
  if (v->rank < 3 || v->rank != w->rank)
    bb_onnx_refuse(n, "operands of rank %u and %u", v->rank, w->rank);
  int64_t channels = bb_extent_value(v->shape[1]), weights = bb_extent_value(w->shape[in_axis]);
  int64_t maps = bb_extent_value(w->shape[0]);
  bool fits = group >= 1 && maps > 0 && maps % group == 0 && weights > 0 &&
              !__builtin_mul_overflow(weights, in_axis ? group : 1, &expect) && expect == channels;
  if (!fits)
    bb_onnx_refuse(n, "weights %s do not fit input %s", bb_onnx_shape_text(n->m, w),
                   bb_onnx_shape_text(n->m, v));
  const int64_t *given = bb_window_per_axis(n, "kernel_shape", v->rank - 2);
  for (uint32_t a = 2; a < v->rank; a++) {
    kernel[a - 2] = bb_extent_value(w->shape[a]);
    if (given && given[a - 2] != kernel[a - 2])
      bb_onnx_refuse(n, "kernel_shape is not that of the weights");
  }
}

/* --- what each window sees --- */

/* Where windows stand along an axis of known length: what is padded, and is only as much as some window sees. */
static void settle(bb_window *w, bb_window_pads automatic_pad, int64_t count) {
  int64_t needs = (count - 1) * w->stride + (w->kernel - 1) * w->dilation + 1 - w->extent;
  if (automatic_pad == BB_PADS_SAME_UPPER || automatic_pad == BB_PADS_SAME_LOWER) {
    int64_t all = needs > 0 ? needs : 0;
    w->before = automatic_pad == BB_PADS_SAME_UPPER ? all / 2 : all - all / 2;
  } else if (automatic_pad == BB_PADS_VALID) {
    w->before = 0;
  }
  w->after = needs > w->before ? needs - w->before : 0;
}

/* Is each element of an axis a window of its own? */
static bool sees_all(const bb_window *w) {
  return w->kernel == 1 && w->stride == 1 && w->before == 0 && w->after == 0;
}

/* All but groups.  False: it is not told where windows stand along an open axis, or there are too many axes. */
static bool look(const bb_onnx_node *n, const int64_t *kernel, const bb_extent *const *shape,
                 bb_window_sight *s) {
  *s = (bb_window_sight){.axes = n->in[0]->rank - 2, .shape = shape};
  s->pads = bb_window_automatic_pads(n);
  s->up = bb_onnx_int(n, "ceil_mode", 0);
  if (3 + 2 * s->axes > BB_ONNX_RANK) return false;
  for (uint32_t i = 0; i < s->axes; i++) {
    bb_window *w = &s->window[i];
    *w = bb_window_read(n, i, kernel[i]);
    s->count[i] = bb_extent_value(shape[i + 2]);
    if (w->extent >= 0) {
      if (s->count[i] < 1) return false;
      settle(w, s->pads, s->count[i]);
      continue;
    }
    if (!bb_window_open_told(*w, s->pads)) return false;
    if (s->pads == BB_PADS_VALID || w->kernel == 1) w->before = w->after = 0;
  }
  return true;
}

enum { LABEL_SAMPLE, LABEL_GROUP, LABEL_CHANNEL, LABEL_MAP, LABEL_PLACE, LABEL_TAP = 100 };

/* What windows see, taps before channels: neighbours are summed last, and there are more channels than taps. [N, groups,
 * tap, tap ..., channels, place, place ...]. */
static bb_onnx_value *seen(const bb_onnx_node *n, const bb_window_sight *s, int64_t *label) {
  bb_onnx_value *v = n->in[0];
  const bb_extent *split[BB_ONNX_RANK] = {v->shape[0], s->group, s->channels};
  uint32_t rank = 3, last = 3 + s->axes;
  for (uint32_t i = 0; i < s->axes; i++) {
    const bb_window *w = &s->window[i];
    if (w->extent < 0)
      v = bb_window_open_sight(n, v, i + 2, *w, s->pads, s->up, s->fill, s->shape[i + 2]);
    else
      v = bb_onnx_pad_with(n, v, i + 2, w->before, w->after, s->fill);
    split[rank++] = v->shape[i + 2];
    if (sees_all(w)) split[rank++] = bb_onnx_number(n->m, 1);
  }
  v = bb_onnx_reshape(n, v, rank, split);
  for (uint32_t i = 0; i < s->axes; i++) {
    const bb_window *w = &s->window[i];
    if (sees_all(w)) continue;
    bb_array_windows windows = {0, w->stride, w->dilation, s->count[i], w->kernel, NULL};
    if (w->extent < 0) windows.open = s->shape[i + 2];
    v = bb_onnx_windows(n, v, 3 + 2 * i, &windows);
  }
  int64_t perm[BB_ONNX_RANK] = {0, 1};
  label[0] = LABEL_SAMPLE, label[1] = LABEL_GROUP, label[2 + s->axes] = LABEL_CHANNEL;
  perm[2 + s->axes] = 2;
  for (uint32_t i = 0; i < s->axes; i++) {
    perm[2 + i] = 4 + 2 * i, label[2 + i] = LABEL_TAP + i;
    perm[last + i] = 3 + 2 * i, label[last + i] = LABEL_PLACE + i;
  }
  return bb_onnx_transpose(n, v, perm);
}

/* --- a product of it with the weights --- */

static bb_onnx_value *weights_of(const bb_onnx_node *n, const bb_window_sight *s, int64_t *label) {
  const bb_extent *split[BB_ONNX_RANK] = {s->group, s->maps, s->channels};
  label[0] = LABEL_GROUP, label[1] = LABEL_MAP, label[2] = LABEL_CHANNEL;
  for (uint32_t i = 0; i < s->axes; i++) {
    label[3 + i] = LABEL_TAP + i;
    split[3 + i] = n->in[1]->shape[2 + i];
  }
  return bb_onnx_reshape(n, n->in[1], 3 + s->axes, split);
}

/* Each channel by itself: no product, but a sum of as many terms as there are taps. */
static bb_onnx_value *channel_by_channel(const bb_onnx_node *n, const bb_window_sight *s) {
  int64_t label[BB_ONNX_RANK], axes[BB_ONNX_RANK];
  bb_dtype dtype = n->in[0]->dtype, work = bb_onnx_fold_dtype(dtype);
  bb_onnx_value *v = bb_onnx_cast(n, seen(n, s, label), work);
  const bb_extent *one = bb_onnx_number(n->m, 1), *along[BB_ONNX_RANK] = {one, s->group};
  for (uint32_t i = 0; i < s->axes; i++) {
    along[2 + i] = n->in[1]->shape[2 + i];
    along[3 + s->axes + i] = one;
    axes[i] = 2 + i;
  }
  along[2 + s->axes] = one;
  bb_onnx_value *w = bb_onnx_reshape(n, bb_onnx_cast(n, n->in[1], work), v->rank, along);
  v = bb_onnx_reduce(n, BB_MONOID_SUM, bb_onnx_binary_map(n, BB_X_MUL, v, w), s->axes, axes, false);
  return bb_onnx_cast(n, v, dtype);
}

bb_onnx_value *bb_window_product(const bb_onnx_node *n, const bb_window_sight *s) {
  int64_t left[BB_ONNX_RANK], right[BB_ONNX_RANK];
  int64_t out[BB_ONNX_RANK] = {LABEL_SAMPLE, LABEL_GROUP, LABEL_MAP};
  bb_onnx_value *y;
  if (bb_onnx_is_one(s->channels) && bb_onnx_is_one(s->maps) && !bb_onnx_is_one(s->group)) {
    y = channel_by_channel(n, s);
  } else {
    bb_onnx_value *v = seen(n, s, left), *w = weights_of(n, s, right);
    for (uint32_t i = 0; i < s->axes; i++) out[3 + i] = LABEL_PLACE + i;
    y = bb_onnx_contract(n, v, w, left, right, 3 + s->axes, out);
  }
  return bb_onnx_reshape(n, y, n->in[0]->rank, s->shape);
}

bb_onnx_value *bb_window_biased(const bb_onnx_node *n, bb_onnx_value *y) {
  if (n->nin < 3 || !n->in[2]) return y;
  const bb_extent *one[BB_ONNX_RANK] = {y->shape[1]};
  for (uint32_t a = 2; a < y->rank; a++) one[a - 1] = bb_onnx_number(n->m, 1);
  if (n->in[2]->rank != 1 || n->in[2]->shape[0] != y->shape[1])
    bb_onnx_refuse(n, "its bias does not fit its weights");
  return bb_onnx_binary_map(n, BB_X_ADD, y, bb_onnx_reshape(n, n->in[2], y->rank - 1, one));
}

/* The reference kernel of Conv, whatever the node calls it. */
static void window_result(bb_onnx_node *n, const bb_extent *const *shape) {
  bb_misc kernel = bb_onnx_own_kernel(n);
  kernel.domain = "";
  kernel.op = "Conv";
  n->out[0] = bb_onnx_value_new(n->m, n->in[0]->dtype, n->in[0]->rank, shape);
  bb_onnx_misc_node(n, &kernel, n->nin, n->in, 1, n->out);
}

static void convolve(bb_onnx_node *n) {
  const bb_extent *shape[BB_ONNX_RANK];
  int64_t kernel[BB_ONNX_RANK];
  bb_window_check_weights(n, 1, kernel);
  shape[0] = n->in[0]->shape[0];
  shape[1] = n->in[1]->shape[0];
  if (!slide(n, kernel, shape)) return;
  bb_window_sight s;
  if (!look(n, kernel, shape, &s)) {
    window_result(n, shape);
    return;
  }
  int64_t group = bb_onnx_int(n, "group", 1), maps = bb_extent_value(n->in[1]->shape[0]);
  s.group = bb_onnx_number(n->m, group);
  s.channels = n->in[1]->shape[1];
  s.maps = bb_onnx_number(n->m, maps / group);
  n->out[0] = bb_window_biased(n, bb_window_product(n, &s));
}

void bb_onnx_convolution(bb_onnx_node *n) {
  bb_onnx_want_float(n, n->in[0]);
  convolve(n);
}

bb_onnx_value *bb_onnx_convolve(const bb_onnx_node *n, uint32_t nin, bb_onnx_value **in) {
  bb_onnx_node *plain = BB_NEW(n->m->arena, bb_onnx_node, 1);
  *plain = *n;
  plain->nin = nin;
  plain->in = in;
  plain->nout = 1;
  plain->out = BB_NEW(n->m->arena, bb_onnx_value *, 1);
  convolve(plain);
  return plain->out[0];
}

/* --- pools --- */

/* The same along an open axis. */
static bb_onnx_value *counted_open(const bb_onnx_node *n, const bb_window_sight *s, uint32_t axis,
                                   bb_dtype dtype, bool with_padding) {
  bb_onnx *m = n->m;
  bb_window given = bb_window_read(n, axis, s->window[axis].kernel);
  const bb_extent *shape[BB_ONNX_RANK], *one = bb_onnx_number(m, 1);
  for (uint32_t i = 0; i < s->axes; i++) shape[i] = i == axis ? s->shape[i + 2] : one;
  const bb_onnx_value column = {.dtype = BB_I64, .rank = s->axes, .shape = shape};
  const bb_expr *count = bb_window_open_count(n, bb_onnx_index_along(m, &column, axis), given,
                                              s->pads, with_padding, n->in[0]->shape[axis + 2]);
  return bb_onnx_value_of_form(m, bb_expr_cast(m->program, dtype, count), s->axes, shape);
}

/* Of how many elements each mean along an axis is, as a column of the result. */
static bb_onnx_value *counted(const bb_onnx_node *n, const bb_window_sight *s, uint32_t axis,
                              bb_dtype dtype, bool with_padding) {
  const bb_window *w = &s->window[axis];
  if (w->extent < 0) return counted_open(n, s, axis, dtype, with_padding);
  bb_window given =
      bb_window_read(n, axis, w->kernel); /* its pads, before as many as windows see */
  int64_t first = with_padding ? -w->before : 0;
  int64_t end = w->extent;
  if (with_padding && s->pads != BB_PADS_VALID)
    end += s->pads == BB_PADS_NOTSET ? given.after : w->after;
  const bb_expr **element = BB_NEW(n->m->arena, const bb_expr *, (size_t)s->count[axis]);
  for (int64_t p = 0; p < s->count[axis]; p++) {
    int64_t count = 0;
    for (int64_t t = 0; t < w->kernel; t++) {
      int64_t at = p * w->stride - w->before + t * w->dilation;
      count += at >= first && at < end;
    }
    if (!count) count = 1; /* nothing but padding, whose sum is 0 */
    element[p] = bb_expr_const(n->m->program, dtype, (double)count);
  }
  const bb_extent *shape[BB_ONNX_RANK], *one = bb_onnx_number(n->m, 1);
  for (uint32_t i = 0; i < s->axes; i++) shape[i] = i == axis ? s->shape[i + 2] : one;
  return bb_onnx_value_of_elements(n->m, dtype, s->axes, shape, (uint32_t)s->count[axis], element);
}

/* The same along all axes: one division where each axis would have its own. */
static bb_onnx_value *counted_all(const bb_onnx_node *n, const bb_window_sight *s, bb_dtype dtype) {
  bool with_padding = bb_onnx_int(n, "count_include_pad", 0);
  bb_onnx_value *all = counted(n, s, 0, dtype, with_padding);
  for (uint32_t i = 1; i < s->axes; i++)
    all = bb_onnx_binary_map(n, BB_X_MUL, all, counted(n, s, i, dtype, with_padding));
  return all;
}

/* A fold of what each window of each channel sees. */
static bb_onnx_value *folded(const bb_onnx_node *n, bb_window_sight *s) {
  int64_t label[BB_ONNX_RANK], axes[BB_ONNX_RANK];
  bb_dtype dtype = n->in[0]->dtype;
  bool mean = strcmp(n->row->name, "AveragePool") == 0;
  s->group = n->in[0]->shape[1];
  s->channels = bb_onnx_number(n->m, 1);
  s->fill = mean ? 0 : -INFINITY;
  bb_onnx_value *v = seen(n, s, label);
  for (uint32_t i = 0; i < s->axes; i++) axes[i] = 2 + i;
  if (mean) v = bb_onnx_cast(n, v, bb_onnx_fold_dtype(dtype));
  v = bb_onnx_reduce(n, mean ? BB_MONOID_SUM : BB_MONOID_MAX, v, s->axes, axes, false);
  v = bb_onnx_reshape(n, v, n->in[0]->rank, s->shape);
  if (mean) v = bb_onnx_binary_map(n, BB_X_DIV, v, counted_all(n, s, v->dtype));
  return bb_onnx_cast(n, v, dtype);
}

/* Are their elements numbers that a fold takes, and is nothing else asked for?  Places whose elements are counted are not too many. */
static bool folds(const bb_onnx_node *n, const bb_window_sight *s) {
  enum { MOST_COUNTED = 1 << 16 };
  bool power = strcmp(n->row->name, "LpPool") == 0;
  bool mean = strcmp(n->row->name, "AveragePool") == 0;
  for (uint32_t i = 0; i < s->axes; i++)
    if (mean && s->count[i] > MOST_COUNTED) return false;
  return !power && n->nout == 1 && bb_dtype_is_float(n->in[0]->dtype);
}

/* The second result of MaxPool: where in the input each largest element is. */
void bb_onnx_pool(bb_onnx_node *n) {
  bb_onnx_value *v = n->in[0], *out[2];
  const bb_extent *shape[BB_ONNX_RANK];
  if (strcmp(n->row->name, "MaxPool") != 0) bb_onnx_want_float(n, v);
  if (v->rank < 3) bb_onnx_refuse(n, "input 0 has rank %u", v->rank);
  const int64_t *kernel = bb_window_per_axis(n, "kernel_shape", v->rank - 2);
  if (!kernel) bb_onnx_refuse(n, "attribute kernel_shape is missing");
  shape[0] = v->shape[0];
  shape[1] = v->shape[1];
  if (!slide(n, kernel, shape)) return;
  bb_window_sight s;
  if (look(n, kernel, shape, &s) && folds(n, &s)) {
    n->out[0] = folded(n, &s);
    return;
  }
  out[0] = bb_onnx_value_new(n->m, v->dtype, v->rank, shape);
  out[1] = bb_onnx_value_new(n->m, BB_I64, v->rank, shape);
  bb_misc own = bb_onnx_own_kernel(n);
  bb_onnx_misc_node(n, &own, 1, n->in, n->nout, out);
  for (uint32_t i = 0; i < n->nout; i++) n->out[i] = out[i];
}

/* A fold over all spatial axes; the sum is made a mean. */
void bb_onnx_global_pool(bb_onnx_node *n) {
  bb_program *p = n->m->program;
  bb_onnx_value *v = n->in[0];
  int64_t axes[BB_ONNX_RANK];
  bb_onnx_want_float(n, v);
  if (v->rank < 3) bb_onnx_refuse(n, "input 0 has rank %u", v->rank);
  bb_dtype dtype = v->dtype;
  bool mean = n->row->detail == BB_MONOID_SUM;
  for (uint32_t a = 2; a < v->rank; a++) axes[a - 2] = a;
  if (mean) v = bb_onnx_cast(n, v, bb_onnx_fold_dtype(dtype));
  bb_onnx_value *y = bb_onnx_reduce(n, (bb_monoid_id)n->row->detail, v, v->rank - 2, axes, true);
  const bb_expr *length = bb_onnx_length(n, v->dtype, v->rank - 2, v->shape + 2);
  if (mean) y = bb_onnx_map(n, f_div(p, bb_onnx_arg(n, 0, y), length), 1, &y);
  n->out[0] = bb_onnx_cast(n, y, dtype);
}

/* --- a convolution that carries what it has seen --- */

/* Along axis 2: from element `first` on, without the last `left`; a negative `first` counts from the end. */
static bb_onnx_value *without_ends(const bb_onnx_node *n, bb_onnx_value *v, int64_t first,
                                   int64_t left) {
  const double bound[3] = {(double)first, left ? -(double)left : 0x1p62, 2};
  bb_onnx_value *in[4] = {v}, *part;
  for (int i = 0; i < 3; i++)
    in[1 + i] = bb_onnx_reshape(n, bb_onnx_scalar(n->m, BB_I64, bound[i]), 1,
                                (const bb_extent *[]){bb_onnx_number(n->m, 1)});
  bb_onnx_convert_as(n, "Slice", BB_ONNX_OPSET_OPERANDS, 4, in, 1, &part);
  return part;
}

/* Each channel with its own kernel of k elements, over its last k - 1 elements and the new ones: a sum of k
 * shifted pieces. */
void bb_onnx_causal_convolution(bb_onnx_node *n) {
  bb_onnx *m = n->m;
  bb_onnx_value *x = n->in[0], *weight = n->in[1], *past = n->nin > 3 ? n->in[3] : NULL;
  bb_onnx_value *bias = n->nin > 2 ? n->in[2] : NULL;
  bb_dtype dtype = x->dtype, work = bb_onnx_fold_dtype(dtype);
  const char *activation = bb_onnx_text(n, "activation", "none");
  bool swish = strcmp(activation, "silu") == 0 || strcmp(activation, "swish") == 0;
  bb_onnx_want_float(n, x);
  if (!swish && strcmp(activation, "none") != 0)
    bb_onnx_refuse(n, "activation is %s", bb_onnx_quote(m->arena, activation));
  if (x->rank != 3 || weight->rank != 3 || !bb_onnx_is_one(weight->shape[1]) ||
      !bb_onnx_same_extent(n, x->shape[1], weight->shape[0]))
    bb_onnx_refuse(n, "a weight of shape %s for input 0 of shape %s", bb_onnx_shape_text(m, weight),
                   bb_onnx_shape_text(m, x));
  int64_t k = bb_extent_value(weight->shape[2]);
  if (k < 1 || k > BB_ONNX_ELEMENTS) {
    bb_onnx_unsupported(n, "a kernel that is known only at run time, or a long one");
    return;
  }
  if (k == 1 && n->nout > 1) {
    bb_onnx_unsupported(n, "a state without elements");
    return;
  }
  const bb_extent *before[3] = {x->shape[0], x->shape[1], bb_onnx_number(m, k - 1)};
  const bb_extent *channel[3] = {bb_onnx_number(m, 1), x->shape[1], bb_onnx_number(m, 1)};
  if (!past) past = bb_onnx_value_of_form(m, bb_expr_const(m->program, dtype, 0), 3, before);
  bb_onnx_value *all = k == 1 ? x : bb_onnx_concat(n, 2, (bb_onnx_value *[]){past, x}, 2);
  if (n->nout > 1) n->out[1] = without_ends(n, all, 1 - k, 0);
  all = bb_onnx_cast(n, all, work);
  weight = bb_onnx_cast(n, weight, work);
  bb_onnx_value *sum = bias ? bb_onnx_cast(n, bb_onnx_reshape(n, bias, 3, channel), work) : NULL;
  for (int64_t i = 0; i < k; i++) {
    bb_onnx_value *tap = bb_onnx_reshape(n, bb_onnx_slice(n, weight, 2, i, 1, 1), 3, channel);
    bb_onnx_value *term = bb_onnx_binary_map(n, BB_X_MUL, without_ends(n, all, i, k - 1 - i), tap);
    sum = sum ? bb_onnx_binary_map(n, BB_X_ADD, sum, term) : term;
  }
  if (swish) sum = bb_onnx_map(n, bb_onnx_formula_of(n, F_SWISH, bb_onnx_arg(n, 0, sum)), 1, &sum);
  n->out[0] = bb_onnx_cast(n, sum, dtype);
}
