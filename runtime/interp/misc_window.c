/* misc_window.c - reference kernels of windows that slide over the spatial axes of [N, C, ...]:
 * convolutions and pools.
 */
#include "misc.h"

#include <math.h>
#include <string.h>

enum { MOST_SPATIAL = 6 };

typedef struct window {
  uint32_t axes; /* spatial */
  int64_t in[MOST_SPATIAL], out[MOST_SPATIAL], kernel[MOST_SPATIAL], stride[MOST_SPATIAL];
  int64_t dilation[MOST_SPATIAL], before[MOST_SPATIAL], after[MOST_SPATIAL]; /* padding */
  size_t inputs, outputs, places; /* elements of in, out and kernel */
} window;

static _Noreturn void refuse(const bb_kernel *k, const char *what) {
  bb_fail(k->ctx, BB_ERROR_INPUT, "%s", what);
}

static int64_t reach(const window *w, uint32_t i) {
  return (w->kernel[i] - 1) * w->dilation[i] + 1;
}

/* Strides, dilations and pads as the attributes give them; all within sane bounds, so that no sum
 * below can overflow. */
static void read_attributes(const bb_kernel *k, window *w) {
  const int64_t most = (int64_t)1 << 30;
  const int64_t *stride = bb_misc_ints(k, "strides", w->axes);
  const int64_t *dilation = bb_misc_ints(k, "dilations", w->axes);
  const int64_t *pad = bb_misc_ints(k, "pads", 2 * w->axes);
  for (uint32_t i = 0; i < w->axes; i++) {
    w->stride[i] = stride ? stride[i] : 1;
    w->dilation[i] = dilation ? dilation[i] : 1;
    w->before[i] = pad ? pad[i] : 0;
    w->after[i] = pad ? pad[w->axes + i] : 0;
    bool sane = w->stride[i] > 0 && w->dilation[i] > 0 && w->before[i] >= 0 && w->after[i] >= 0 &&
                w->kernel[i] > 0 && w->stride[i] < most && w->dilation[i] < most &&
                w->before[i] < most && w->after[i] < most && w->kernel[i] < most && w->in[i] < most;
    if (!sane) refuse(k, "its kernel, strides, dilations or pads are out of range");
  }
}

/* How many places the window has along an axis.  With ceil_mode one that hangs over the end
 * counts too, unless it would begin in the padding behind it. */
static int64_t places_along(const bb_kernel *k, const window *w, uint32_t i, bool up) {
  int64_t room = w->in[i] + w->before[i] + w->after[i] - reach(w, i);
  if (room < 0) refuse(k, "its window is larger than its input");
  int64_t places = (room + (up ? w->stride[i] - 1 : 0)) / w->stride[i] + 1;
  if (up && (places - 1) * w->stride[i] >= w->in[i] + w->before[i]) places--;
  return places;
}

static void same_padding(window *w, uint32_t i, bool upper) {
  w->out[i] = (w->in[i] + w->stride[i] - 1) / w->stride[i];
  int64_t total = (w->out[i] - 1) * w->stride[i] + reach(w, i) - w->in[i];
  if (total < 0) total = 0;
  w->before[i] = upper ? total / 2 : total - total / 2;
  w->after[i] = total - w->before[i];
}

/* w->axes, in and kernel are set. */
static void place_window(const bb_kernel *k, window *w, bool up) {
  const char *automatic = bb_misc_text(k, "auto_pad", "NOTSET");
  read_attributes(k, w);
  for (uint32_t i = 0; i < w->axes; i++) {
    if (strcmp(automatic, "SAME_UPPER") == 0 || strcmp(automatic, "SAME_LOWER") == 0) {
      same_padding(w, i, automatic[5] == 'U');
      continue;
    }
    if (strcmp(automatic, "VALID") == 0)
      w->before[i] = w->after[i] = 0;
    else if (strcmp(automatic, "NOTSET") != 0)
      refuse(k, "auto_pad is unknown");
    w->out[i] = places_along(k, w, i, up);
  }
  w->inputs = bb_misc_product(k, w->axes, w->in);
  w->outputs = bb_misc_product(k, w->axes, w->out);
  w->places = bb_misc_product(k, w->axes, w->kernel);
}

static void spatial_of(const bb_kernel *k, const bb_misc_value *x, window *w) {
  *w = (window){.axes = x->rank - 2};
  if (x->rank < 3 || x->rank > 2 + MOST_SPATIAL)
    refuse(k, "its input has no or too many spatial axes");
  memcpy(w->in, x->shape + 2, w->axes * sizeof *w->in);
}

/* Where the window at output `at` reads with its place `tap`: an offset into one channel; -1: in
 * the padding; -2: beyond the padding (a window that hangs over). */
static int64_t offset_of(const window *w, const int64_t *at, const int64_t *tap) {
  int64_t offset = 0, outside = 0;
  for (uint32_t i = 0; i < w->axes; i++) {
    int64_t x = at[i] * w->stride[i] - w->before[i] + tap[i] * w->dilation[i];
    if (x >= w->in[i] + w->after[i]) return -2;
    if (x < 0 || x >= w->in[i]) outside = -1;
    offset = offset * w->in[i] + x;
  }
  return outside ? outside : offset;
}

/* Offsets of all places of the window at `at`. */
static void offsets_of(const window *w, const int64_t *at, int64_t *offset) {
  int64_t tap[MOST_SPATIAL] = {0};
  for (size_t t = 0; t < w->places; t++) {
    offset[t] = offset_of(w, at, tap);
    bb_misc_step(w->axes, w->kernel, tap);
  }
}

/* --- convolutions --- */

typedef struct convolution {
  const bb_misc_value *x, *weight, *bias;
  bb_misc_value *y;
  window w;
  int64_t groups, channels, maps; /* per group */
} convolution;

static double dot(const double *a, const double *b, size_t n) {
  double sum[4] = {0};
  size_t i = 0;
  for (; i + 4 <= n; i += 4)
    for (int j = 0; j < 4; j++) sum[j] += a[i + j] * b[i + j];
  for (; i < n; i++) sum[0] += a[i] * b[i];
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

static double bias_of(const convolution *c, int64_t map) {
  return c->bias ? c->bias->data[map] : 0;
}

static void check_bias(const bb_kernel *k, const convolution *c) {
  if (c->bias && (c->bias->rank != 1 || c->bias->shape[0] != c->groups * c->maps))
    refuse(k, "its bias does not fit its weights");
}

/* One sample, one place: gathers what the window sees of each group, then one product a map. */
static void convolve_at(const convolution *c, int64_t n, size_t place, const int64_t *offset,
                        double *seen) {
  const window *w = &c->w;
  size_t length = (size_t)c->channels * w->places;
  for (int64_t g = 0; g < c->groups; g++) {
    for (int64_t i = 0; i < c->channels; i++) {
      const double *x = c->x->data + (size_t)((n * c->groups + g) * c->channels + i) * w->inputs;
      double *to = seen + (size_t)i * w->places;
      for (size_t t = 0; t < w->places; t++) to[t] = offset[t] < 0 ? 0 : x[offset[t]];
    }
    for (int64_t m = 0; m < c->maps; m++) {
      int64_t map = g * c->maps + m;
      double sum = dot(seen, c->weight->data + (size_t)map * length, length);
      c->y->data[(size_t)(n * c->groups * c->maps + map) * w->outputs + place] =
          sum + bias_of(c, map);
    }
  }
}

void bb_misc_convolution(const bb_kernel *k) {
  convolution c = {
      .x = bb_misc_in(k, 0), .weight = bb_misc_in(k, 1), .bias = bb_misc_optional(k, 2)};
  spatial_of(k, c.x, &c.w);
  c.groups = bb_misc_int(k, "group", 1);
  c.channels = c.weight->shape[1];
  bool fits = c.weight->rank == c.x->rank && c.groups > 0 && c.weight->shape[0] % c.groups == 0 &&
              c.x->shape[1] % c.groups == 0 && c.x->shape[1] / c.groups == c.channels;
  if (!fits) refuse(k, "its weights do not fit its input");
  c.maps = c.weight->shape[0] / c.groups;
  check_bias(k, &c);
  memcpy(c.w.kernel, c.weight->shape + 2, c.w.axes * sizeof *c.w.kernel);
  place_window(k, &c.w, false);
  int64_t shape[8] = {c.x->shape[0], c.weight->shape[0]}, at[MOST_SPATIAL] = {0};
  memcpy(shape + 2, c.w.out, c.w.axes * sizeof *shape);
  c.y = bb_misc_out(k, 0, c.x->dtype, c.x->rank, shape);
  int64_t *offset = BB_NEW(k->arena, int64_t, c.w.places);
  double *seen = BB_NEW(k->arena, double, (size_t)c.channels *c.w.places);
  for (size_t place = 0; place < c.w.outputs; place++) {
    offsets_of(&c.w, at, offset);
    for (int64_t n = 0; n < shape[0]; n++) convolve_at(&c, n, place, offset, seen);
    bb_misc_step(c.w.axes, c.w.out, at);
  }
}

/* The transposed window: out is what a convolution with these attributes would read. */
static void place_transposed(const bb_kernel *k, window *w) {
  const char *automatic = bb_misc_text(k, "auto_pad", "NOTSET");
  const int64_t *extra = bb_misc_ints(k, "output_padding", w->axes);
  const int64_t *shape = bb_misc_ints(k, "output_shape", w->axes);
  bool valid = strcmp(automatic, "VALID") == 0, set = strcmp(automatic, "NOTSET") == 0;
  bool upper = strcmp(automatic, "SAME_UPPER") == 0, lower = strcmp(automatic, "SAME_LOWER") == 0;
  if (!valid && !set && !upper && !lower) refuse(k, "auto_pad is unknown");
  read_attributes(k, w);
  for (uint32_t i = 0; i < w->axes; i++) {
    int64_t more = extra ? extra[i] : 0;
    if (more < 0 || more >= (w->stride[i] > w->dilation[i] ? w->stride[i] : w->dilation[i]))
      refuse(k, "its output_padding is out of range");
    int64_t full = (w->in[i] - 1) * w->stride[i] + reach(w, i) + more;
    if (valid) w->before[i] = w->after[i] = 0;
    w->out[i] = full - w->before[i] - w->after[i];
    if (upper || lower) w->out[i] = w->in[i] * w->stride[i];
    if (shape) w->out[i] = shape[i];
    if (upper || lower || shape) {
      int64_t total = full - w->out[i] > 0 ? full - w->out[i] : 0;
      w->before[i] = upper ? total / 2 : total - total / 2;
      w->after[i] = total - w->before[i];
    }
    if (w->out[i] < 0) refuse(k, "its pads are larger than its result");
  }
  w->inputs = bb_misc_product(k, w->axes, w->in);
  w->outputs = bb_misc_product(k, w->axes, w->out);
  w->places = bb_misc_product(k, w->axes, w->kernel);
}

/* Where input `at` is added with place `tap` of the window: an offset into one map, or -1. */
static int64_t target_of(const window *w, const int64_t *at, const int64_t *tap) {
  int64_t offset = 0;
  for (uint32_t i = 0; i < w->axes; i++) {
    int64_t y = at[i] * w->stride[i] - w->before[i] + tap[i] * w->dilation[i];
    if (y < 0 || y >= w->out[i]) return -1;
    offset = offset * w->out[i] + y;
  }
  return offset;
}

/* Adds input element `place` of every channel into the maps of its group. */
static void spread_at(const convolution *c, int64_t n, size_t place, const int64_t *target) {
  const window *w = &c->w;
  for (int64_t channel = 0; channel < c->groups * c->channels; channel++) {
    int64_t g = channel / c->channels;
    double x = c->x->data[(size_t)(n * c->groups * c->channels + channel) * w->inputs + place];
    for (int64_t m = 0; m < c->maps; m++) {
      const double *weight = c->weight->data + (size_t)(channel * c->maps + m) * w->places;
      double *y = c->y->data + (size_t)((n * c->groups + g) * c->maps + m) * w->outputs;
      for (size_t t = 0; t < w->places; t++)
        if (target[t] >= 0) y[target[t]] += x * weight[t];
    }
  }
}

void bb_misc_transposed_convolution(const bb_kernel *k) {
  convolution c = {
      .x = bb_misc_in(k, 0), .weight = bb_misc_in(k, 1), .bias = bb_misc_optional(k, 2)};
  spatial_of(k, c.x, &c.w);
  c.groups = bb_misc_int(k, "group", 1);
  c.maps = c.weight->shape[1];
  bool fits = c.weight->rank == c.x->rank && c.groups > 0 && c.x->shape[1] == c.weight->shape[0] &&
              c.x->shape[1] % c.groups == 0;
  if (!fits) refuse(k, "its weights do not fit its input");
  c.channels = c.x->shape[1] / c.groups;
  check_bias(k, &c);
  memcpy(c.w.kernel, c.weight->shape + 2, c.w.axes * sizeof *c.w.kernel);
  place_transposed(k, &c.w);
  int64_t shape[8] = {c.x->shape[0], c.groups * c.maps}, at[MOST_SPATIAL] = {0};
  memcpy(shape + 2, c.w.out, c.w.axes * sizeof *shape);
  c.y = bb_misc_out(k, 0, c.x->dtype, c.x->rank, shape);
  for (int64_t i = 0; i < shape[0] * shape[1]; i++)
    for (size_t e = 0; e < c.w.outputs; e++)
      c.y->data[(size_t)i * c.w.outputs + e] = bias_of(&c, i % shape[1]);
  int64_t *target = BB_NEW(k->arena, int64_t, c.w.places);
  for (size_t place = 0; place < c.w.inputs; place++) {
    int64_t tap[MOST_SPATIAL] = {0};
    for (size_t t = 0; t < c.w.places; t++) {
      target[t] = target_of(&c.w, at, tap);
      bb_misc_step(c.w.axes, c.w.kernel, tap);
    }
    for (int64_t n = 0; n < shape[0]; n++) spread_at(&c, n, place, target);
    bb_misc_step(c.w.axes, c.w.in, at);
  }
}

/* --- pools --- */

typedef struct pool {
  const bb_kernel *k;
  window w;
  const bb_misc_value *x;
  bb_misc_value *y, *index; /* index: NULL when not wanted */
  bool with_padding;        /* averages count it */
  bool column_major;        /* indices are */
  double p;                 /* the power that is summed */
} pool;

/* One window of one channel: gives the result's element `place`. */
typedef void pool_body(const pool *p, const double *x, size_t channel, const int64_t *offset,
                       size_t place);

static void run_pool(pool *p, pool_body *body) {
  const bb_kernel *k = p->k;
  p->x = bb_misc_in(k, 0);
  spatial_of(k, p->x, &p->w);
  const int64_t *kernel = bb_misc_ints(k, "kernel_shape", p->w.axes);
  if (!kernel) refuse(k, "attribute kernel_shape is missing");
  memcpy(p->w.kernel, kernel, p->w.axes * sizeof *kernel);
  place_window(k, &p->w, bb_misc_int(k, "ceil_mode", 0) != 0);
  int64_t shape[8] = {p->x->shape[0], p->x->shape[1]}, at[MOST_SPATIAL] = {0};
  memcpy(shape + 2, p->w.out, p->w.axes * sizeof *shape);
  p->y = bb_misc_out(k, 0, p->x->dtype, p->x->rank, shape);
  if (p->index) p->index = bb_misc_out(k, 1, BB_I64, p->x->rank, shape);
  size_t channels = bb_misc_product(k, 2, shape);
  int64_t *offset = BB_NEW(k->arena, int64_t, p->w.places);
  for (size_t place = 0; place < p->w.outputs; place++) {
    offsets_of(&p->w, at, offset);
    for (size_t c = 0; c < channels; c++)
      body(p, p->x->data + c * p->w.inputs, c, offset, c * p->w.outputs + place);
    bb_misc_step(p->w.axes, p->w.out, at);
  }
}

/* The offset with the spatial axes counted the other way round. */
static int64_t column_major(const window *w, int64_t offset) {
  int64_t index[MOST_SPATIAL], result = 0;
  for (uint32_t i = w->axes; i-- > 0; offset /= w->in[i]) index[i] = offset % w->in[i];
  for (uint32_t i = w->axes; i-- > 0;) result = result * w->in[i] + index[i];
  return result;
}

static void max_of(const pool *p, const double *x, size_t channel, const int64_t *offset,
                   size_t place) {
  double best = -INFINITY;
  int64_t where = -1;
  for (size_t t = 0; t < p->w.places; t++) {
    if (offset[t] < 0) continue;
    double value = x[offset[t]];
    if (where >= 0 && !(value > best) && !(isnan(value) && !isnan(best))) continue;
    best = value;
    where = offset[t];
  }
  p->y->data[place] = best;
  if (!p->index) return;
  if (where >= 0 && p->column_major) where = column_major(&p->w, where);
  p->index->data[place] = (double)(where < 0 ? where : (int64_t)(channel * p->w.inputs) + where);
}

void bb_misc_max_pool(const bb_kernel *k) {
  pool p = {.k = k, .column_major = bb_misc_int(k, "storage_order", 0) != 0};
  if (k->nout > 1) p.index = &k->out[1];
  run_pool(&p, max_of);
}

static void average_of(const pool *p, const double *x, size_t channel, const int64_t *offset,
                       size_t place) {
  (void)channel;
  double sum = 0;
  size_t count = 0;
  for (size_t t = 0; t < p->w.places; t++) {
    if (offset[t] >= 0) sum += x[offset[t]];
    count += offset[t] >= 0 || (p->with_padding && offset[t] == -1);
  }
  p->y->data[place] = count ? sum / (double)count : 0;
}

void bb_misc_average_pool(const bb_kernel *k) {
  pool p = {.k = k, .with_padding = bb_misc_int(k, "count_include_pad", 0) != 0};
  run_pool(&p, average_of);
}

static void power_sum_of(const pool *p, const double *x, size_t channel, const int64_t *offset,
                         size_t place) {
  (void)channel;
  double sum = 0;
  for (size_t t = 0; t < p->w.places; t++)
    if (offset[t] >= 0) sum += pow(fabs(x[offset[t]]), p->p);
  p->y->data[place] = pow(sum, 1 / p->p);
}

void bb_misc_lp_pool(const bb_kernel *k) {
  pool p = {.k = k, .p = (double)bb_misc_int(k, "p", 2)};
  if (p.p < 1) refuse(k, "its p is less than 1");
  run_pool(&p, power_sum_of);
}
