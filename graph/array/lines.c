/* lines.c - windows see lines of memory: taps and channels are one axis of a product's sum.
 *
 *     y[b,i,j,o] = sum over c, k, l of x[b,c,S*i+k,S*j+l] w[o,c,k,l]
 *     ==>   r[b,h,m*C + c] = x[b,c,h,m],   y[b,i,j,o] = sum over k, s of r[b,S*i+k,S*C*j+s] w'[o,k,s]
 *
 * A product in blocks sums along one axis, and passes over all its results for each element of the others.  Of three colours it
 * would do so for every tap; where channels lie innermost, a window's line of them is in one piece.  The image is copied, which
 * one that is padded is anyway; the weights are, at load.  An image of many channels that is not padded stays as it is: its sums
 * are long enough.
 */
#include "lower.h"

/* Channels at most, of an image that is copied for this alone.  Results at least, that are worth a copy. */
enum { FEW = 16, RESULTS = 8, MOST_VIEWS = 4 };

typedef struct lines {
  bb_ix *ix;
  bb_arena *arena;
  uint32_t product, windows, weights;         /* the node; which operand is which */
  uint32_t channel, tap;                      /* indices of the product */
  uint32_t views, view[MOST_VIEWS];           /* nodes of windows, from the product down */
  uint32_t along;                             /* the one of them that has the tap */
  uint32_t image, image_channel, image_place; /* a value and axes of it */
} lines;

static uint32_t axis_over(const bb_ix *ix, const bb_ix_operand *in, uint32_t index) {
  for (uint32_t a = 0; a < bb_ix_rank(ix, in->value); a++)
    if (in->index[a] == index) return a;
  return BB_NONE;
}

/* --- which --- */

/* Does a window see neighbours, and some of what the next one sees?  Those of others are read once: a copy would be, too. */
static bool overlaps(bb_ix *ix, const bb_ix_node *windows) {
  return windows->by == 1 && windows->start >= 0 && windows->step > 0 &&
         windows->step < bb_ix_length(ix, windows->dim[windows->at + 1]);
}

/* Down through the windows: where the channels and the places of the rows' axis lie in what they are windows of. */
static bool find_image(lines *l, uint32_t row) {
  bb_ix *ix = l->ix;
  const bb_ix_operand *in = &ix->node[l->product].in[l->windows];
  uint32_t channel = axis_over(ix, in, l->channel), place = axis_over(ix, in, row),
           tap = axis_over(ix, in, l->tap);
  l->along = BB_NONE;
  l->image = in->value;
  for (;;) {
    const bb_ix_node *node = bb_ix_node_of(ix, l->image);
    if (channel == BB_NONE || place == BB_NONE) return false;
    if (node->op != BB_IX_WINDOWS) break;
    if (l->views == MOST_VIEWS || channel == node->at || channel == node->at + 1) return false;
    bool here = place == node->at && tap == node->at + 1 && overlaps(ix, node);
    if (!here && (place == node->at || place == node->at + 1 || tap == node->at)) return false;
    if (here) l->along = l->views;
    l->view[l->views++] = bb_ix_producer(ix, l->image);
    channel = axis_over(ix, &node->in[0], channel);
    place = axis_over(ix, &node->in[0], place);
    tap = here || tap == BB_NONE ? BB_NONE : axis_over(ix, &node->in[0], tap);
    l->image = node->in[0].value;
  }
  l->image_channel = channel, l->image_place = place;
  return l->along != BB_NONE;
}

static bool is_copied(const lines *l) {
  return bb_ix_node_of(l->ix, l->image)->op == BB_IX_PAD;
}

/* The sum that is a tap beside the rows, and the one that is no tap. */
static bool find_sums(lines *l, const bb_ix_node *node, uint32_t row) {
  bb_ix *ix = l->ix;
  uint32_t rank = bb_ix_rank(ix, node->out[0]);
  for (uint32_t c = rank; c < node->indices; c++)
    for (uint32_t t = rank; t < node->indices; t++) {
      int64_t channels = bb_ix_length(ix, node->dim[c]), taps = bb_ix_length(ix, node->dim[t]);
      if (c == t || channels < 1 || taps < 2 || !bb_ix_follows(ix, &node->in[l->weights], c) ||
          !bb_ix_follows(ix, &node->in[l->weights], t))
        continue;
      l->channel = c, l->tap = t, l->views = 0;
      if (find_image(l, row) && (channels < FEW || is_copied(l))) return true;
    }
  return false;
}

static bool is_short(lines *l, uint32_t at) {
  bb_ix *ix = l->ix;
  const bb_ix_node *node = &ix->node[at];
  if (node->removed || node->op != BB_IX_CONTRACT || ix->value[node->out[0]].once) return false;
  l->product = at;
  l->weights = ix->value[node->in[1].value].once ? 1 : 0;
  l->windows = !l->weights;
  bb_dtype dtype = ix->value[node->out[0]].dtype;
  bb_product_axes axes = bb_ix_product_axes(ix, node);
  uint32_t row = l->windows ? axes.col : axes.row, column = l->windows ? axes.row : axes.col;
  return (dtype == BB_F32 || dtype == BB_F64) && ix->value[node->in[l->weights].value].once &&
         row != BB_NONE && column != BB_NONE && bb_ix_length(ix, node->dim[column]) >= RESULTS &&
         find_sums(l, node, row);
}

/* --- one axis of two --- */

/* A copy with two axes as its last one, over a class: `outer`, then `inner`.  to[]: where each axis is in it. */
static uint32_t in_lines(lines *l, uint32_t value, uint32_t outer, uint32_t inner, uint32_t class,
                         uint32_t *to) {
  bb_ix *ix = l->ix;
  const bb_ix_value v = ix->value[value];
  uint32_t *dim = BB_NEW(l->arena, uint32_t, v.rank), *at = BB_NEW(l->arena, uint32_t, v.rank);
  uint32_t last = v.rank - 2, n = 0;
  for (uint32_t a = 0; a < v.rank; a++) {
    at[a] = a == outer ? last : a == inner ? last + 1 : n++;
    to[a] = at[a] < last ? at[a] : last;
    dim[at[a]] = bb_ix_find(ix, v.dim[a]);
  }
  bb_misc_port from = bb_ix_port(ix, v.dtype, v.rank, dim);
  dim[last] = class;
  uint32_t made = bb_ix_copy_add(ix, v.name, from, bb_ix_port(ix, v.dtype, last + 1, dim));
  bb_ix_use(ix, bb_ix_producer(ix, made), 0, value, at);
  ix->value[made].once = v.once;
  return made;
}

/* A view of lines, as view number `v` was of the image; to[]: where each axis of its operand is now, then each of its own. */
static uint32_t made_anew(lines *l, uint32_t v, uint32_t operand, uint32_t channel, uint32_t class,
                          uint32_t *to) {
  bb_ix *ix = l->ix;
  const bb_ix_node node = ix->node[l->view[v]];
  uint32_t rank = bb_ix_rank(ix, node.in[0].value), n = 0;
  uint32_t *own = BB_NEW(l->arena, uint32_t, node.indices),
           *dim = BB_NEW(l->arena, uint32_t, node.indices),
           *index = BB_NEW(l->arena, uint32_t, rank);
  for (uint32_t k = 0; k < node.indices; k++)
    if (k != channel) dim[n] = node.dim[k], own[k] = n++;
  for (uint32_t a = 0; a < rank; a++) {
    uint32_t k = node.in[0].index[a];
    if (k == channel) continue;
    index[to[a]] = own[k];
    if (k != node.at) dim[own[k]] = bb_ix_axis(ix, operand, to[a]);
  }
  int64_t times = v == l->along ? bb_ix_length(ix, node.dim[channel]) : 1;
  if (v == l->along) dim[own[node.at + 1]] = class;
  bb_ix_value was = ix->value[node.out[0]];
  uint32_t made = bb_ix_add(ix, BB_IX_WINDOWS, was.name, was.dtype, 1, n, n, dim);
  bb_ix_node *windows = bb_ix_node_of(ix, made);
  windows->at = own[node.at], windows->by = node.by;
  windows->start = node.start * times, windows->step = node.step * times;
  bb_ix_use(ix, bb_ix_producer(ix, made), 0, operand, index);
  for (uint32_t k = 0; k < node.indices; k++)
    if (k != channel) to[k] = own[k];
  return made;
}

/* The windows of lines; to[]: where each axis of the product's operand is in them. */
static uint32_t windows_of_lines(lines *l, uint32_t class, uint32_t *to) {
  bb_ix *ix = l->ix;
  const bb_extent *places = bb_ix_extent(ix, bb_ix_axis(ix, l->image, l->image_place)),
                  *channels = bb_ix_extent(ix, bb_ix_axis(ix, l->image, l->image_channel));
  uint32_t line = bb_ix_class(ix, bb_extent_multiply(ix->program, places, channels));
  uint32_t made = in_lines(l, l->image, l->image_place, l->image_channel, line, to);
  uint32_t channel = l->image_channel;
  for (uint32_t v = l->views; v-- > 0;) {
    channel = ix->node[l->view[v]].in[0].index[channel];
    made = made_anew(l, v, made, channel, class, to);
  }
  return made;
}

static void see_lines(lines *l) {
  bb_ix *ix = l->ix;
  const bb_ix_node node = ix->node[l->product];
  const bb_ix_value result = ix->value[node.out[0]];
  int64_t channels = bb_ix_length(ix, node.dim[l->channel]);
  uint32_t class =
      bb_ix_class(ix, bb_extent_number(ix->program, channels * bb_ix_length(ix, node.dim[l->tap])));
  uint32_t *dim = BB_NEW(l->arena, uint32_t, node.indices),
           *own = BB_NEW(l->arena, uint32_t, node.indices), n = 0, value[2], *to[2];
  for (uint32_t k = 0; k < node.indices; k++)
    if (k != l->channel) dim[n] = k == l->tap ? class : node.dim[k], own[k] = n++;
  const bb_ix_operand *w = &node.in[l->weights], *x = &node.in[l->windows];
  uint32_t most = bb_ix_rank(ix, w->value) + bb_ix_rank(ix, x->value);
  for (uint32_t i = 0; i < 2; i++) to[i] = BB_NEW(l->arena, uint32_t, most);
  value[l->windows] = windows_of_lines(l, class, to[l->windows]);
  value[l->weights] = in_lines(l, w->value, axis_over(ix, w, l->tap), axis_over(ix, w, l->channel),
                               class, to[l->weights]);
  uint32_t made = bb_ix_add(ix, BB_IX_CONTRACT, result.name, result.dtype, 2, result.rank, n, dim);
  for (uint32_t i = 0; i < 2; i++) {
    uint32_t rank = bb_ix_rank(ix, node.in[i].value), *index = BB_NEW(l->arena, uint32_t, rank);
    for (uint32_t a = 0; a < rank; a++)
      if (node.in[i].index[a] != l->channel) index[to[i][a]] = own[node.in[i].index[a]];
    bb_ix_use(ix, bb_ix_producer(ix, made), i, value[i], index);
  }
  bb_ix_replace(ix, node.out[0], made, BB_NONE);
  bb_ix_sweep(ix, l->product);
}

void bb_ix_see_lines(bb_ix *ix) {
  bb_arena *scratch = bb_scratch(ix->program->ctx);
  uint32_t nodes = ix->nodes;
  for (uint32_t i = 0; i < nodes; i++) {
    lines l = {.ix = ix, .arena = scratch};
    if (is_short(&l, i)) see_lines(&l);
  }
  bb_scratch_end(scratch);
}
