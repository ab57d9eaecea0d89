/* winograd.c - minimal filtering: convolutions by three taps along an axis take fewer multiplications.
 *
 *     y[o,j] = sum over c, l of x[c,j+l] w[o,c,l]
 *     ==>   v[p,c,t] = sum over q of B[p,q] x[c,m*t+q]      (m + 2 numbers for m + 2 places)
 *           u[p,o,c] = sum over l of G[p,l] w[o,c,l]        (at load)
 *           y[o,m*t+i] = sum over p of A[i,p] (sum over c of u[p,o,c] v[p,c,t])
 *
 * F(m, 3) of Winograd ("Arithmetic Complexity of Computations", 1980), along one axis of those that windows slide over: m + 2
 * multiplications for m results, in place of 3 m.  Sums over channels and the taps of other axes are as before, of a product for
 * each p.  Errors are on average of the size of plain sums' for numbers of one size, but along the axis relative to the greatest
 * number of a tile, not of a window; and what is not finite, or beyond what floats hold when it is multiplied by five, reaches all
 * of a tile.  `strict` leaves sums as they are.  Along two axes (Lavin and Gray, "Fast Algorithms for Convolutional Neural
 * Networks", 2015) errors would be greater.
 */
#include "array.h"

#include <string.h>

enum {
  TAPS = 3,
  MOST_PLACES = 4, /* results of a tile */
  POINTS = MOST_PLACES + TAPS - 1,
  PLACES = 128, /* that a weight is read for, at least: there are more of them than before */
  CHAIN = 8     /* views between a product and its windows, at most */
};

/* For each place: what must be saved, and what copies cost where tiles do not end with the places. */
static const double MOST_COST = 2.4, LONGER = 0.3;

/* The three matrices of F(m, 3). */
typedef struct filter {
  int64_t places;
  double image[POINTS][POINTS], weights[POINTS][TAPS], results[MOST_PLACES][POINTS];
} filter;

/* Points 0, 3/4, -3/4, 3/2, -3/2 and infinity, whose errors are smaller than those of whole numbers; 0, 1, -1
 * and infinity. */
static const filter filters[] = {
    {4,
     {{81. / 64, 0, -45. / 16, 0, 1, 0},
      {0, -27. / 16, -9. / 4, 3. / 4, 1, 0},
      {0, 27. / 16, -9. / 4, -3. / 4, 1, 0},
      {0, -27. / 32, -9. / 16, 3. / 2, 1, 0},
      {0, 27. / 32, -9. / 16, -3. / 2, 1, 0},
      {0, 81. / 64, 0, -45. / 16, 0, 1}},
     {{64. / 81, 0, 0},
      {-128. / 243, -96. / 243, -72. / 243},
      {-128. / 243, 96. / 243, -72. / 243},
      {32. / 243, 48. / 243, 72. / 243},
      {32. / 243, -48. / 243, 72. / 243},
      {0, 0, 1}},
     {{1, 1, 1, 1, 1, 0},
      {0, 3. / 4, -3. / 4, 3. / 2, -3. / 2, 0},
      {0, 9. / 16, 9. / 16, 9. / 4, 9. / 4, 0},
      {0, 27. / 64, -27. / 64, 27. / 8, -27. / 8, 1}}},
    {2,
     {{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}},
     {{1, 0, 0}, {1. / 2, 1. / 2, 1. / 2}, {1. / 2, -1. / 2, 1. / 2}, {0, 0, 1}},
     {{1, 1, 1, 0}, {0, 1, -1, -1}}}};
enum { FILTERS = sizeof filters / sizeof *filters };

typedef struct transformed_weights {
  uint32_t weights, axis, result;
  const filter *by;
} transformed_weights;

/* What is made once for all: weights that several convolutions read are transformed, and kept, once. */
typedef struct sharing {
  uint32_t matrix[2][FILTERS][3]; /* 1 + the value, by whether it is of doubles; 0: not made yet */
  bb_arena *arena;
  uint32_t count, capacity;
  transformed_weights *at;
} sharing;

typedef struct convolution {
  bb_array *array;
  sharing *made;
  const char *name;
  uint32_t image, weights;                                /* values */
  int64_t label[2][BB_ARRAY_RANK], result[BB_ARRAY_RANK]; /* of axes */
  uint32_t rank;                                          /* of the result */
  const filter *by;
  double cost;         /* multiplications for each place, for TAPS */
  uint32_t place, tap; /* axes of the image as the product reads it */
  uint32_t views;
  const bb_array_node *view[CHAIN]; /* from the product's operand down ... */
  uint32_t at[CHAIN];               /* ... where the places lie in what it is a view of */
  uint32_t along;                   /* the one of them that has the taps */
} convolution;

/* --- which --- */

static int64_t extent_of(const bb_array *array, uint32_t value, uint32_t axis) {
  return bb_extent_value(array->value[value].shape[axis]);
}

static uint32_t axis_of(const int64_t *label, uint32_t rank, int64_t what) {
  for (uint32_t a = 0; a < rank; a++)
    if (label[a] == what) return a;
  return BB_NONE;
}

/* By value: computed from constants only. */
static const bool *find_constants(const bb_array *array, bb_arena *scratch) {
  bool *constant = BB_NEW(scratch, bool, array->values + 1);
  for (uint32_t v = 0; v < array->values; v++)
    constant[v] = array->value[v].producer == BB_NONE && !array->value[v].is_input;
  for (uint32_t i = 0; i < array->nodes; i++) {
    const bb_array_node *node = &array->node[i];
    bool all = !node->removed && node->op != BB_A_MISC;
    for (uint32_t k = 0; k < node->nin && all; k++) all = constant[node->in[k]];
    for (uint32_t k = 0; k < node->nout && all; k++) constant[node->out[k]] = true;
  }
  return constant;
}

/* Windows of three neighbours, at every place. */
static bool slides(const bb_array_node *node) {
  return node->ints[2] == 1 && node->ints[3] == 1 && node->ints[4] > 0 && node->ints[5] == TAPS;
}

/* Was it integers of 8 bits, before arithmetic on each?  Sums of such are whole numbers, which stay exact. */
static bool is_of_bytes(const bb_array *array, uint32_t value) {
  for (;;) {
    const bb_array_value *v = &array->value[value];
    if (v->dtype == BB_I8 || v->dtype == BB_U8) return true;
    if (v->producer == BB_NONE) return false;
    const bb_array_node *node = &array->node[v->producer];
    if (!node->nin || node->op == BB_A_CONTRACT || node->op == BB_A_REDUCE || node->op == BB_A_MISC)
      return false;
    value = node->in[0];
    for (uint32_t i = 1; i < node->nin; i++)
      if (array->value[value].rank < array->value[node->in[i]].rank ||
          (array->value[value].data && !array->value[node->in[i]].data))
        value = node->in[i];
  }
}

/* Is it a product, as weights are that a filter has already?  Along a second axis errors would grow. */
static bool is_product(const bb_array *array, uint32_t value) {
  const bb_array_node *node = NULL;
  do {
    uint32_t at = array->value[value].producer;
    node = at == BB_NONE ? NULL : &array->node[at];
    if (node && node->nin) value = node->in[0];
  } while (node && node->op == BB_A_TRANSPOSE);
  return node && node->op == BB_A_CONTRACT;
}

/* The axis of a view's operand that one of its own is; of windows, that of their places. */
static uint32_t below(const bb_array_node *view, uint32_t axis) {
  if (view->op == BB_A_TRANSPOSE) return (uint32_t)view->ints[axis];
  return axis - (axis > (uint32_t)view->ints[0]);
}

/* Down through views: where the windows along place and tap are, of neighbours of a place that no other view looks at. */
static bool find_windows(convolution *c) {
  uint32_t value = c->image, place = c->place, tap = c->tap;
  bool found = false;
  for (c->views = 0; c->views < CHAIN; c->views++) {
    const bb_array_value *v = &c->array->value[value];
    const bb_array_node *view = v->producer == BB_NONE ? NULL : &c->array->node[v->producer];
    if (!view || (view->op != BB_A_TRANSPOSE && view->op != BB_A_WINDOWS)) break;
    uint32_t axis = view->op == BB_A_WINDOWS ? (uint32_t)view->ints[0] : BB_NONE;
    if (place == axis && tap == axis + 1 && slides(view)) {
      c->along = c->views;
      found = true;
      tap = BB_NONE;
    } else if (axis != BB_NONE && (place - axis < 2 || tap - axis < 2)) {
      break;
    }
    c->view[c->views] = view;
    place = c->at[c->views] = below(view, place);
    if (tap != BB_NONE) tap = below(view, tap);
    value = view->in[0];
  }
  return found;
}

/* The summed axis of the image that is longest. */
static uint32_t channel_of(const convolution *c) {
  uint32_t found = BB_NONE;
  for (uint32_t a = 0; a < c->array->value[c->image].rank; a++)
    if (axis_of(c->result, c->rank, c->label[0][a]) == BB_NONE &&
        (found == BB_NONE ||
         extent_of(c->array, c->image, a) > extent_of(c->array, c->image, found)))
      found = a;
  return found;
}

/* An image's elements are transformed for all maps, a map's for all channels. */
static bool is_worth_it(const convolution *c, uint32_t least) {
  const bb_array *array = c->array;
  uint32_t ranks[2] = {array->value[c->image].rank, array->value[c->weights].rank};
  int64_t channels = extent_of(array, c->image, channel_of(c)), maps = 1, places = 1;
  for (uint32_t a = 0; a < ranks[1]; a++) {
    bool read = axis_of(c->label[0], ranks[0], c->label[1][a]) != BB_NONE;
    bool kept = axis_of(c->result, c->rank, c->label[1][a]) != BB_NONE;
    if (!read && kept) maps *= extent_of(array, c->weights, a);
  }
  for (uint32_t a = 0; a < ranks[0]; a++) {
    int64_t extent = extent_of(array, c->image, a);
    if (axis_of(c->label[1], ranks[1], c->label[0][a]) == BB_NONE && extent > 0)
      places = places < PLACES ? places * extent : places;
  }
  return 2. * channels * maps >= (double)least * (channels + maps) && places >= PLACES;
}

/* Multiplications in place of three for each of `places`; what is longer than the image is padded and cut off again. */
static double cost_of(const filter *by, int64_t places) {
  int64_t tiles = (places + by->places - 1) / by->places;
  double cost = (double)(tiles * (by->places + TAPS - 1)) / (double)places;
  return places % by->places == 0 ? cost : cost + LONGER;
}

/* The filter that costs least along the product's axis `place`, along which `tap` slides. */
static bool fits(convolution *c, uint32_t place, uint32_t tap) {
  int64_t places = extent_of(c->array, c->image, place);
  uint32_t weights = c->array->value[c->weights].rank;
  uint32_t from = axis_of(c->label[1], weights, c->label[0][tap]);
  bool sums = from != BB_NONE && extent_of(c->array, c->weights, from) == TAPS &&
              axis_of(c->result, c->rank, c->label[0][tap]) == BB_NONE;
  bool slid = axis_of(c->result, c->rank, c->label[0][place]) != BB_NONE &&
              axis_of(c->label[1], weights, c->label[0][place]) == BB_NONE;
  c->place = place, c->tap = tap, c->cost = MOST_COST;
  for (uint32_t i = 0; i < FILTERS && places > 0; i++)
    if (cost_of(&filters[i], places) < c->cost)
      c->by = &filters[i], c->cost = cost_of(&filters[i], places);
  return sums && slid && c->cost < MOST_COST && find_windows(c);
}

/* What is cut to what windows see, and padded for the last tile, is an axis of known length. */
static bool ends_known(const convolution *c) {
  uint32_t last = c->views - 1;
  return extent_of(c->array, c->image, c->place) % c->by->places == 0 ||
         extent_of(c->array, c->view[last]->in[0], c->at[last]) >= 0;
}

static bool find(bb_array *array, const bool *constant, const bb_array_node *node, uint32_t least,
                 convolution *best) {
  if (node->removed || node->op != BB_A_CONTRACT) return false;
  bb_dtype dtype = array->value[node->out[0]].dtype;
  if (dtype != BB_F32 && dtype != BB_F64) return false;
  const int64_t *label = node->ints + 3;
  uint32_t rank[2] = {(uint32_t)node->ints[0], (uint32_t)node->ints[1]};
  convolution c = {.array = array, .name = node->name, .rank = (uint32_t)node->ints[2]};
  uint32_t weights = constant[node->in[1]] ? 1 : 0;
  c.image = node->in[!weights], c.weights = node->in[weights];
  if (!constant[c.weights] || is_product(array, c.weights) || c.rank + 1 > BB_ARRAY_RANK)
    return false;
  const int64_t *of[2] = {label, label + rank[0]};
  memcpy(c.label[0], of[!weights], rank[!weights] * sizeof *label);
  memcpy(c.label[1], of[weights], rank[weights] * sizeof *label);
  if (c.rank) memcpy(c.result, label + rank[0] + rank[1], c.rank * sizeof *label);
  bool found = false;
  for (uint32_t place = rank[!weights]; place-- > 0;)
    for (uint32_t tap = 0; tap < rank[!weights]; tap++)
      if (place != tap && fits(&c, place, tap) && (!found || c.cost < best->cost))
        *best = c, found = true;
  return found && is_worth_it(best, least) && ends_known(best) &&
         !is_of_bytes(array, best->image) && !is_of_bytes(array, best->weights);
}

/* --- as it is computed instead --- */

typedef enum matrix_kind { OF_IMAGE, OF_WEIGHTS, OF_RESULTS } matrix_kind;

static uint32_t matrix(const convolution *c, matrix_kind kind) {
  static const char *const of[] = {"image", "weights", "results"};
  bb_program *program = c->array->program;
  bb_dtype dtype = c->array->value[c->image].dtype;
  uint32_t *made = &c->made->matrix[dtype == BB_F64][c->by - filters][kind];
  uint32_t places = (uint32_t)c->by->places, points = places + TAPS - 1;
  uint32_t rows = kind == OF_RESULTS ? places : points, cols = kind == OF_WEIGHTS ? TAPS : points;
  const double *from = kind == OF_IMAGE     ? c->by->image[0]
                       : kind == OF_WEIGHTS ? c->by->weights[0]
                                            : c->by->results[0];
  size_t size = bb_dtype_bytes(dtype), count = (size_t)rows * cols;
  if (*made) return *made - 1;
  char *data = BB_NEW(program->arena, char, count *size);
  for (uint32_t i = 0; i < count; i++) {
    double number = from[i / cols * (kind == OF_WEIGHTS ? TAPS : POINTS) + i % cols];
    float narrow = (float)number;
    memcpy(data + i * size, dtype == BB_F32 ? (const void *)&narrow : &number, size);
  }
  const char *name = bb_arena_printf(program->arena, "F%u%d_%s", places, TAPS, of[kind]);
  *made = 1 + bb_array_constant(c->array, name, dtype, 2, (const int64_t[]){rows, cols}, data,
                                count * size);
  return *made - 1;
}

/* The matrix against axis `axis` of a value, which becomes one over its rows.  What a product has neighbours in memory of, `inner`,
 * comes last while it is made. */
static uint32_t transformed(const convolution *c, uint32_t by, uint32_t value, uint32_t axis,
                            uint32_t inner) {
  uint32_t rank = c->array->value[value].rank, n = 0;
  int64_t label[BB_ARRAY_RANK], out[BB_ARRAY_RANK], back[BB_ARRAY_RANK];
  for (uint32_t a = 0; a < rank; a++) {
    label[a] = a;
    if (a == inner) continue;
    back[a] = n;
    out[n++] = a == axis ? rank : a;
  }
  back[inner] = n;
  out[n++] = inner == axis ? rank : inner;
  uint32_t made = bb_array_contract(c->array, c->name, by, value, (const int64_t[]){rank, axis},
                                    label, rank, out);
  return bb_array_transpose(c->array, c->name, made, back);
}

/* View number `v` of what has points behind its places, which is to have them there, too. */
static uint32_t seen_anew(const convolution *c, uint32_t v, uint32_t operand) {
  const bb_array_node *view = c->view[v];
  bool behind = v < c->along; /* where the taps were already */
  uint32_t rank = c->array->value[operand].rank, place = c->at[v];
  int64_t perm[BB_ARRAY_RANK], axis = view->ints[0];
  if (view->op == BB_A_WINDOWS) {
    bb_array_windows windows = {view->ints[1], view->ints[2], view->ints[3],
                                view->ints[4], view->ints[5], NULL};
    if (windows.places < 0) windows.open = c->array->value[view->out[0]].shape[axis];
    if (!behind) axis += axis > place;
    return bb_array_windows_of(c->array, view->name, operand, (uint32_t)axis, &windows);
  }
  for (uint32_t a = 0, n = 0; n < rank; a++) {
    axis = view->ints[a];
    perm[n++] = behind ? axis : axis + (axis > place);
    if (!behind && axis == place) perm[n++] = place + 1;
  }
  return bb_array_transpose(c->array, view->name, operand, perm);
}

/* The first `seen` elements of an axis, and zeros behind them up to `extent`. */
static uint32_t with_zeros(const convolution *c, uint32_t value, uint32_t axis, int64_t seen,
                           int64_t extent) {
  bb_array *array = c->array;
  const bb_array_value v = array->value[value];
  const bb_extent *shape[BB_ARRAY_RANK];
  static const double zero; /* of any floats */
  if (bb_extent_value(v.shape[axis]) > seen)
    value = bb_array_slice(array, c->name, value, axis, 0, 1, seen);
  uint32_t number =
      bb_array_constant(array, c->name, v.dtype, 0, NULL, &zero, bb_dtype_bytes(v.dtype));
  memcpy(shape, v.shape, v.rank * sizeof *shape);
  shape[axis] = bb_extent_number(array->program, extent - seen);
  uint32_t behind = bb_array_broadcast(array, c->name, number, v.rank, shape);
  return bb_array_concat(array, c->name, 2, (const uint32_t[]){value, behind}, axis);
}

/* The image's tiles, transformed: what the product reads, with tiles for places and points for taps. */
static uint32_t points_of_image(const convolution *c, uint32_t channel) {
  const filter *by = c->by;
  const bb_array_node *windows = c->view[c->along];
  uint32_t last = c->views - 1, axis = c->at[last], points = (uint32_t)by->places + TAPS - 1;
  for (uint32_t v = 0; v < c->views; v++) channel = below(c->view[v], channel);
  int64_t first = windows->ints[1], places = windows->ints[4];
  int64_t count = (places + by->places - 1) / by->places;
  bb_array_windows tiles = {first, by->places, 1, count, points, NULL};
  uint32_t value = c->view[last]->in[0];
  if (places % by->places)
    value = with_zeros(c, value, axis, first + places + TAPS - 1,
                       first + (count - 1) * by->places + points);
  value = bb_array_windows_of(c->array, c->name, value, axis, &tiles);
  value = transformed(c, matrix(c, OF_IMAGE), value, axis + 1, channel + (channel > axis));
  for (uint32_t v = c->views; v-- > 0;)
    if (v != c->along) value = seen_anew(c, v, value);
  return value;
}

/* The weights, with points for the taps of axis `axis`. */
static uint32_t points_of_weights(const convolution *c, uint32_t axis) {
  sharing *m = c->made;
  for (uint32_t i = 0; i < m->count; i++)
    if (m->at[i].weights == c->weights && m->at[i].axis == axis && m->at[i].by == c->by)
      return m->at[i].result;
  uint32_t inner = axis ? 0 : c->array->value[c->weights].rank - 1;
  uint32_t made = transformed(c, matrix(c, OF_WEIGHTS), c->weights, axis, inner);
  BB_GROW(m->arena, m->at, m->capacity, (size_t)m->count + 1);
  m->at[m->count++] = (transformed_weights){c->weights, axis, made, c->by};
  return made;
}

/* The axis of the result that only the weights have, and is longest. */
static uint32_t map_of(const convolution *c, uint32_t result) {
  uint32_t found = 0;
  int64_t most = -1;
  for (uint32_t a = 0; a < c->rank; a++)
    if (axis_of(c->label[0], c->array->value[c->image].rank, c->result[a]) == BB_NONE &&
        extent_of(c->array, result, a) > most)
      most = extent_of(c->array, result, found = a);
  return found;
}

/* In place of the node, whose result becomes that of the last one. */
static void replace(convolution *c, bb_array_node node) {
  bb_array *array = c->array;
  const filter *by = c->by;
  uint32_t weights = array->value[c->weights].rank;
  int64_t place = c->label[0][c->place], tap = c->label[0][c->tap];
  uint32_t from = axis_of(c->label[1], weights, tap), to = axis_of(c->result, c->rank, place);
  uint32_t map = map_of(c, node.out[0]);
  uint32_t image = points_of_image(c, channel_of(c));
  uint32_t points = points_of_weights(c, from);
  memmove(c->result + to + 2, c->result + to + 1, (c->rank - to - 1) * sizeof *c->result);
  c->result[to + 1] = tap;
  uint32_t sums = bb_array_contract(array, c->name, image, points, c->label[0], c->label[1],
                                    c->rank + 1, c->result);
  uint32_t parts = transformed(c, matrix(c, OF_RESULTS), sums, to + 1, map + (map > to));
  int64_t places = extent_of(array, node.out[0], to),
          all = extent_of(array, parts, to) * by->places;
  node.op = BB_A_RESHAPE;
  node.count = 0;
  if (all > places) { /* the last tile has more */
    const bb_extent *shape[BB_ARRAY_RANK];
    memcpy(shape, array->value[node.out[0]].shape, c->rank * sizeof *shape);
    shape[to] = bb_extent_number(array->program, all);
    parts = bb_array_reshape(array, c->name, parts, c->rank, shape);
    node.op = BB_A_SLICE;
    node.count = 4;
    node.ints = BB_NEW(array->program->arena, int64_t, 4);
    memcpy((int64_t *)node.ints, (const int64_t[]){to, 0, 1, places}, 4 * sizeof *node.ints);
  }
  node.nin = 1;
  node.in = BB_NEW(array->program->arena, uint32_t, 1);
  node.in[0] = parts;
  bb_array_append(array, node);
}

void bb_array_winograd(bb_array *array, uint32_t least) {
  bb_arena *scratch = bb_scratch(array->program->ctx);
  uint32_t nodes = array->nodes, found = 0;
  const bb_array_node *node = array->node;
  const bool *constant = find_constants(array, scratch);
  convolution **of = BB_NEW(scratch, convolution *, nodes + 1);
  sharing made = {.arena = scratch};
  for (uint32_t i = 0; i < nodes; i++) {
    convolution c;
    if (!find(array, constant, &node[i], least, &c)) continue;
    of[i] = BB_NEW(scratch, convolution, 1);
    *of[i] = c;
    of[i]->made = &made;
    found++;
  }
  if (found) {
    array->nodes = array->node_capacity = 0;
    array->node = NULL;
  }
  for (uint32_t i = 0; i < nodes && found; i++) {
    if (of[i])
      replace(of[i], node[i]);
    else if (!node[i].removed)
      bb_array_append(array, node[i]);
  }
  if (found) bb_array_remove_dead(array);
  bb_scratch_end(scratch);
}
