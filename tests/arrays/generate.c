/* generate.c - random array programs, in the ops of array.def, with the chains that models are full
 * of in several spellings.
 */
#include "arrays.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_OPEN = 24 }; /* elements of an axis that is padded: each length has a symbol */
enum { EXTENTS = 6, ELEMENTS_MAX = 3000, POOL_MAX = 256 };

typedef struct maker {
  bb_program *program;
  random_state random;
  /* Are drawn, too: not for seeds of before they were, so that these mean what they did.  widened: values that come from 16 bits;
   * open: windows on open axes, often. */
  bool windows, widened, open;
  int64_t symbol[SYMBOL_MAX];
  bb_array *array;
  const bb_extent *extent[EXTENTS];
  uint32_t count, inputs, outputs;
  uint32_t input_capacity, output_capacity, name_capacity;
  uint32_t value[POOL_MAX];
  double bound[POOL_MAX];
  bool exact[POOL_MAX];
} maker;

/* --- values --- */

static uint32_t below(maker *k, uint32_t bound) {
  return random_below(&k->random, bound);
}

static bool chance(maker *k, uint32_t percent) {
  return random_chance(&k->random, percent);
}

static const bb_array_value *value_of(const maker *k, uint32_t v) {
  return &k->array->value[k->value[v]];
}

static uint32_t rank_of(const maker *k, uint32_t v) {
  return value_of(k, v)->rank;
}

static int64_t length(const maker *k, const bb_extent *extent) {
  return bb_extent_bind(k->program, extent, k->symbol);
}

static int64_t axis_length(const maker *k, uint32_t v, uint32_t axis) {
  return length(k, value_of(k, v)->shape[axis]);
}

static uint32_t add(maker *k, uint32_t id, double bound, bool exact) {
  if (k->count == POOL_MAX) bb_fail(k->program->ctx, BB_ERROR_INTERNAL, "the pool is full");
  k->value[k->count] = id;
  k->bound[k->count] = bound;
  k->exact[k->count] = exact;
  return k->count++;
}

static const bb_extent *one(maker *k) {
  return bb_extent_number(k->program, 1);
}

static double datum(maker *k, uint32_t kind, int64_t at, int64_t columns) {
  int64_t i = at / columns, j = at % columns;
  switch (kind) {
  case 0: return j <= i ? 0 : -2; /* closed forms */
  case 1: return 0.125 * (double)(j - i);
  case 2: return 0.5;
  default: return bb_round_to(BB_F32, random_real(&k->random, -1, 1));
  }
}

static uint32_t constant(maker *k, uint32_t rank, const bb_extent *const *extent) {
  int64_t shape[RANK_MAX], count = 1;
  for (uint32_t i = 0; i < rank; i++) count *= shape[i] = length(k, extent[i]);
  float *data = BB_NEW(k->program->arena, float, (size_t)count);
  uint32_t kind = below(k, 9);
  int64_t columns = rank && shape[rank - 1] ? shape[rank - 1] : 1;
  for (int64_t i = 0; i < count; i++) data[i] = (float)datum(k, kind, i, columns);
  uint32_t id = bb_array_constant(k->array, "constant", BB_F32, rank, shape, data,
                                  (size_t)count * sizeof *data);
  return add(k, id, kind == 1 ? 2 : 2, true);
}

/* Now and then a value by way of 16 bits, which in reals is the same. */
static uint32_t perhaps_widened(maker *k, uint32_t v) {
  if (!k->widened || !chance(k, 70)) return v;
  bb_program *p = k->program;
  bb_dtype dtype = chance(k, 85) ? BB_F16 : BB_BF16;
  const bb_expr *to = bb_expr_cast(p, dtype, bb_expr_arg(p, BB_F32, 0)),
                *back = bb_expr_cast(p, BB_F32, bb_expr_arg(p, dtype, 0));
  uint32_t narrow = bb_array_elementwise(k->array, "narrow", to, 1, &k->value[v]);
  uint32_t wide = bb_array_elementwise(k->array, "wide", back, 1, &narrow);
  return add(k, wide, k->bound[v], false);
}

static uint32_t input(maker *k, uint32_t rank, const bb_extent *const *shape) {
  bool fixed = true;
  for (uint32_t i = 0; i < rank; i++) fixed &= bb_extent_value(shape[i]) >= 0;
  if (fixed && chance(k, 40)) return perhaps_widened(k, constant(k, rank, shape));
  const char *name = bb_arena_printf(k->program->arena, "in%u", k->inputs);
  uint32_t id = bb_array_value_add(k->array, name, BB_F32, rank, shape);
  k->array->value[id].is_input = true;
  BB_GROW(k->program->arena, k->array->input, k->input_capacity, k->inputs + 1);
  k->array->input[k->inputs++] = id;
  k->array->inputs = k->inputs;
  return perhaps_widened(k, add(k, id, 1, true));
}

static const bb_extent *any_extent(maker *k) {
  return k->extent[below(k, EXTENTS)];
}

static uint32_t input_any(maker *k, uint32_t least) {
  const bb_extent *shape[RANK_MAX];
  uint32_t rank = least + below(k, 4 - least);
  for (uint32_t i = 0; i < rank; i++) shape[i] = any_extent(k);
  return input(k, rank, shape);
}

/* A value of at least this rank, mostly a late one. */
static uint32_t any(maker *k, uint32_t least) {
  for (uint32_t v = k->count; v-- > 0;)
    if (rank_of(k, v) >= least && value_of(k, v)->dtype == BB_F32 && chance(k, 55)) return v;
  return input_any(k, least);
}

static size_t elements(const maker *k, uint32_t v) {
  size_t count = 1;
  for (uint32_t i = 0; i < rank_of(k, v); i++) count *= (size_t)axis_length(k, v, i);
  return count;
}

/* --- elementwise --- */

static uint32_t apply(maker *k, const bb_expr *expr, uint32_t a, uint32_t b, double bound) {
  uint32_t in[2] = {k->value[a], b == BB_NONE ? 0 : k->value[b]};
  uint32_t id = bb_array_elementwise(k->array, "elementwise", expr, b == BB_NONE ? 1 : 2, in);
  return add(k, id, bound, k->exact[a] && (b == BB_NONE || k->exact[b]));
}

static const bb_expr *arg(maker *k, uint32_t operand) {
  return bb_expr_arg(k->program, BB_F32, operand);
}

static uint32_t one_operand(maker *k, uint32_t v) {
  double bound = k->bound[v];
  return apply(k, expr_unary(k->program, &k->random, arg(k, 0), &bound), v, BB_NONE, bound);
}

static uint32_t tamed(maker *k, uint32_t v, double limit) {
  if (k->bound[v] <= limit) return v;
  double scale = limit / k->bound[v];
  return apply(k, make(k->program, BB_X_MUL, arg(k, 0), number(k->program, scale)), v, BB_NONE,
               limit);
}

static uint32_t by_coordinates(maker *k, uint32_t v) {
  const bb_expr *coord[RANK_MAX];
  uint32_t rank = rank_of(k, v);
  for (uint32_t i = 0; i < rank; i++) coord[i] = bb_expr_coord(k->program, BB_COORD_AXIS + i);
  double bound = k->bound[v];
  const bb_expr *expr = expr_masked(k->program, &k->random, arg(k, 0), rank, coord, &bound);
  return apply(k, expr, v, BB_NONE, bound);
}

/* A second operand: some of the last axes, each whole or 1. */
static uint32_t partner(maker *k, uint32_t v) {
  const bb_extent *shape[RANK_MAX];
  uint32_t rank = rank_of(k, v), skipped = chance(k, 50) ? 0 : below(k, rank + 1);
  for (uint32_t i = skipped; i < rank; i++)
    shape[i - skipped] = chance(k, 70) ? value_of(k, v)->shape[i] : one(k);
  return input(k, rank - skipped, shape);
}

static bool same_shape(const maker *k, uint32_t a, uint32_t b) {
  if (rank_of(k, a) != rank_of(k, b)) return false;
  for (uint32_t i = 0; i < rank_of(k, a); i++)
    if (value_of(k, a)->shape[i] != value_of(k, b)->shape[i]) return false;
  return true;
}

static uint32_t two_operands(maker *k, uint32_t a) {
  uint32_t b = BB_NONE;
  for (uint32_t v = k->count; v-- > 0 && b == BB_NONE;)
    if (v != a && same_shape(k, a, v) && value_of(k, v)->dtype == BB_F32 && chance(k, 40)) b = v;
  if (b == BB_NONE) b = partner(k, a);
  a = tamed(k, a, 8);
  b = tamed(k, b, 8);
  double bound = k->bound[a];
  const bb_expr *expr =
      expr_binary(k->program, &k->random, arg(k, 0), arg(k, 1), &bound, k->bound[b]);
  return apply(k, expr, a, b, bound);
}

static uint32_t operate(maker *k, bb_expr_op op, uint32_t a, uint32_t b, double bound) {
  return apply(k, make(k->program, op, arg(k, 0), arg(k, 1)), a, b, bound);
}

/* --- folds --- */

static uint32_t fold(maker *k, bb_monoid_id monoid, uint32_t v, uint32_t count, const int64_t *axes,
                     bool keep) {
  double bound = k->bound[v];
  bool sum = monoid == BB_MONOID_SUM || monoid == BB_MONOID_PROD;
  for (uint32_t i = 0; sum && i < count; i++) bound *= (double)axis_length(k, v, (uint32_t)axes[i]);
  const bb_monoid *m = bb_monoid_get(monoid);
  uint32_t id = bb_array_reduce(k->array, "reduce", m, k->value[v], count, axes, keep);
  return add(k, id, bound, k->exact[v] && !sum);
}

static uint32_t fold_any(maker *k, uint32_t v) {
  int64_t axes[RANK_MAX];
  uint32_t count = 0;
  for (uint32_t i = 0; i < rank_of(k, v); i++)
    if (chance(k, 40)) axes[count++] = i;
  if (count == 0) axes[count++] = rank_of(k, v) - 1;
  static const bb_monoid_id monoid[] = {BB_MONOID_SUM, BB_MONOID_SUM, BB_MONOID_MAX, BB_MONOID_MIN};
  bb_monoid_id chosen = monoid[below(k, 4)];
  if (k->bound[v] <= 1 && chance(k, 15)) {
    uint32_t product = fold(k, BB_MONOID_PROD, v, count, axes, chance(k, 50));
    k->bound[product] = 1;
    return product;
  }
  return fold(k, chosen, v, count, axes, chance(k, 50));
}

static uint32_t along_last(maker *k, bb_monoid_id monoid, uint32_t v) {
  return fold(k, monoid, v, 1, (int64_t[]){rank_of(k, v) - 1}, true);
}

static uint32_t scan_any(maker *k, uint32_t v) {
  uint32_t axis = below(k, rank_of(k, v));
  uint32_t id = bb_array_scan(k->array, "scan", bb_monoid_get(BB_MONOID_SUM), k->value[v], axis,
                              chance(k, 40), chance(k, 40));
  return add(k, id, k->bound[v] * (double)axis_length(k, v, axis), false);
}

static uint32_t arg_any(maker *k, uint32_t v) {
  if (!k->exact[v]) v = input_any(k, 1);
  static const bb_monoid_id monoid[] = {BB_MONOID_ARGMAX, BB_MONOID_ARGMIN, BB_MONOID_ARGMAX_LAST,
                                        BB_MONOID_ARGMIN_LAST};
  uint32_t id = bb_array_argreduce(k->array, "argreduce", bb_monoid_get(monoid[below(k, 4)]),
                                   k->value[v], below(k, rank_of(k, v)), chance(k, 50));
  return add(k, id, 9, true);
}

/* --- products --- */

/* x[.., m, k] with w[k, n] or w[n, k], or a batch of them */
static uint32_t product(maker *k, uint32_t v, const bb_extent *columns) {
  v = perhaps_widened(k, tamed(k, v, 20));
  uint32_t rank = rank_of(k, v);
  bool turned = chance(k, 40), batch = rank > 2 && chance(k, 30);
  const bb_extent *inner = value_of(k, v)->shape[rank - 1], *shape[3];
  uint32_t axes = 0;
  if (batch) shape[axes++] = value_of(k, v)->shape[0];
  shape[axes++] = turned ? columns : inner;
  shape[axes++] = turned ? inner : columns;
  uint32_t w = input(k, axes, shape);
  int64_t left[RANK_MAX], right[3], out[RANK_MAX];
  for (uint32_t i = 0; i < rank; i++) left[i] = out[i] = i;
  out[rank - 1] = rank;
  axes = 0;
  if (batch) right[axes++] = 0;
  right[axes++] = turned ? rank : rank - 1;
  right[axes] = turned ? rank - 1 : rank;
  uint32_t id =
      bb_array_contract(k->array, "product", k->value[v], k->value[w], left, right, rank, out);
  return add(k, id, k->bound[v] * k->bound[w] * (double)length(k, inner), false);
}

/* Any two values that share extents: labels of equal extents may be joined, and summed or kept. */
static uint32_t einsum(maker *k, uint32_t a) {
  a = perhaps_widened(k, tamed(k, a, 20));
  uint32_t ra = rank_of(k, a);
  const bb_extent *shape[3];
  int64_t left[RANK_MAX], right[3], out[RANK_MAX];
  uint32_t rb = 1 + below(k, 3), next = ra, rank = 0;
  bool kept[2 * RANK_MAX] = {false}, joined[RANK_MAX] = {false};
  double bound = k->bound[a] * 2;
  for (uint32_t i = 0; i < ra; i++) left[i] = i;
  for (uint32_t i = 0; i < rb; i++) {
    uint32_t axis = below(k, ra);
    bool join = !joined[axis] && chance(k, 65);
    shape[i] = join ? value_of(k, a)->shape[axis] : any_extent(k);
    right[i] = join ? axis : next++;
    if (join) joined[axis] = true;
  }
  for (uint32_t l = 0; l < next; l++) kept[l] = !(l < ra && joined[l]) || chance(k, 35);
  for (uint32_t l = next; l-- > 0;)
    if (kept[l]) out[rank++] = l;
  for (uint32_t l = 0; l < ra; l++)
    if (!kept[l]) bound *= (double)axis_length(k, a, l);
  uint32_t b = input(k, rb, shape);
  uint32_t id =
      bb_array_contract(k->array, "einsum", k->value[a], k->value[b], left, right, rank, out);
  return add(k, id, bound, false);
}

/* --- moving elements --- */

static uint32_t moved(maker *k, uint32_t from, uint32_t id) {
  return add(k, id, k->bound[from], k->exact[from]);
}

static uint32_t reshaped(maker *k, uint32_t v, uint32_t rank, const bb_extent *const *shape) {
  return moved(k, v, bb_array_reshape(k->array, "reshape", k->value[v], rank, shape));
}

/* Splits an axis whose length has a divisor, or joins two neighbours, or adds or drops a 1. */
static uint32_t reshape_any(maker *k, uint32_t v) {
  const bb_extent *shape[RANK_MAX];
  uint32_t rank = rank_of(k, v), axis = below(k, rank), n = 0;
  const bb_extent *extent = value_of(k, v)->shape[axis];
  int64_t value = bb_extent_value(extent), divisor = 2 + below(k, 3);
  bool split = rank < 5 && value > 0 && value % divisor == 0 && chance(k, 60);
  bool join = !split && axis + 1 < rank && chance(k, 60);
  for (uint32_t i = 0; i < rank; i++) {
    const bb_extent *here = value_of(k, v)->shape[i];
    if (i == axis && split) {
      shape[n++] = bb_extent_number(k->program, divisor);
      here = bb_extent_number(k->program, value / divisor);
    } else if (i == axis && join) {
      here = bb_extent_multiply(k->program, here, value_of(k, v)->shape[++i]);
    } else if (i == axis && rank < 5) {
      shape[n++] = one(k);
    }
    shape[n++] = here;
  }
  return reshaped(k, v, n, shape);
}

static uint32_t turned(maker *k, uint32_t v, const int64_t *perm) {
  return moved(k, v, bb_array_transpose(k->array, "transpose", k->value[v], perm));
}

static uint32_t transpose_any(maker *k, uint32_t v) {
  int64_t perm[RANK_MAX];
  uint32_t rank = rank_of(k, v);
  for (uint32_t i = 0; i < rank; i++) perm[i] = i;
  for (uint32_t i = rank; i > 1; i--) {
    uint32_t j = below(k, i);
    int64_t swap = perm[i - 1];
    perm[i - 1] = perm[j];
    perm[j] = swap;
  }
  return turned(k, v, perm);
}

static uint32_t sliced(maker *k, uint32_t v, uint32_t axis, int64_t start, int64_t step,
                       int64_t n) {
  return moved(k, v, bb_array_slice(k->array, "slice", k->value[v], axis, start, step, n));
}

static uint32_t slice_any(maker *k, uint32_t v) {
  uint32_t axis = below(k, rank_of(k, v));
  int64_t full = bb_extent_value(value_of(k, v)->shape[axis]);
  if (full < 2) return transpose_any(k, v);
  if (full % 2 == 0 && chance(k, 50))
    return sliced(k, v, axis, chance(k, 50) ? 0 : full / 2, 1, full / 2);
  int64_t n = 1 + below(k, (uint32_t)full - 1), start = below(k, (uint32_t)(full - n) + 1);
  if (chance(k, 30)) return sliced(k, v, axis, start + n - 1, -1, n);
  return sliced(k, v, axis, start, 1, n);
}

/* An extent of so many elements that only a run tells. */
static const bb_extent *open_extent(maker *k, int64_t elements) {
  const char *name = bb_arena_printf(k->program->arena, "n%lld", (long long)elements);
  const bb_extent *extent = bb_extent_symbol(k->program, name);
  k->symbol[extent->symbol[0]] = elements;
  return extent;
}

/* Windows on an axis that is open, with something before and behind it, perhaps. */
static uint32_t windows_open(maker *k, uint32_t v, uint32_t axis) {
  int64_t full = axis_length(k, v, axis), before = below(k, 3);
  bb_array_windows w = {.step = 1 + below(k, 3), .by = 1 + below(k, 2), .taps = 1 + below(k, 3)};
  int64_t reach = w.by * (w.taps - 1) + 1, more = below(k, 4);
  if (full + before + more < reach) more = reach - full - before;
  uint32_t value = k->value[v];
  full += before + more;
  if (full > MOST_OPEN) return transpose_any(k, v);
  if (before + more)
    value = bb_array_pad(k->array, "pad", value, axis, before,
                         bb_expr_const(k->program, value_of(k, v)->dtype, 0), open_extent(k, full));
  int64_t places = (full - reach) / w.step + 1;
  w.open = open_extent(k, chance(k, 70) ? places : 1 + below(k, (uint32_t)places));
  return moved(k, v, bb_array_windows_of(k->array, "windows", value, axis, &w));
}

/* Windows that may overlap, somewhere on an axis. */
static uint32_t windows_any(maker *k, uint32_t v) {
  uint32_t rank = rank_of(k, v), axis = below(k, rank);
  for (uint32_t a = 0; k->open && a < rank; a++)
    if (bb_extent_value(value_of(k, v)->shape[a]) < 0) axis = a;
  int64_t full = bb_extent_value(value_of(k, v)->shape[axis]);
  if (k->open && full < 0 && rank <= 4 && value_of(k, v)->shape[axis]->count == 1)
    return windows_open(k, v, axis);
  if (full < 3 || rank > 4) return slice_any(k, v);
  bb_array_windows w = {.step = 1 + below(k, 3), .by = 1 + below(k, 2)};
  w.taps = 1 + below(k, 3);
  if (w.by * (w.taps - 1) >= full) w.taps = 1;
  int64_t most = (full - 1 - w.by * (w.taps - 1)) / w.step + 1;
  w.places = chance(k, 50) ? most : 1 + below(k, (uint32_t)most);
  w.start = below(k, (uint32_t)(full - w.by * (w.taps - 1) - w.step * (w.places - 1)));
  return moved(k, v, bb_array_windows_of(k->array, "windows", k->value[v], axis, &w));
}

static uint32_t joined(maker *k, uint32_t count, const uint32_t *v, uint32_t axis) {
  uint32_t in[4];
  double bound = 0;
  bool exact = true;
  for (uint32_t i = 0; i < count; i++) {
    in[i] = k->value[v[i]];
    bound = fmax(bound, k->bound[v[i]]);
    exact &= k->exact[v[i]];
  }
  return add(k, bb_array_concat(k->array, "concat", count, in, axis), bound, exact);
}

static uint32_t concat_any(maker *k, uint32_t v) {
  uint32_t axis = below(k, rank_of(k, v)), pieces[3], count = 2 + below(k, 2);
  if (bb_extent_value(value_of(k, v)->shape[axis]) < 0) return transpose_any(k, v);
  for (uint32_t i = 0; i < count; i++) pieces[i] = chance(k, 50) ? v : one_operand(k, v);
  if (chance(k, 40)) {
    const bb_extent *shape[RANK_MAX];
    for (uint32_t i = 0; i < rank_of(k, v); i++) shape[i] = value_of(k, v)->shape[i];
    shape[axis] = bb_extent_number(k->program, 1 + below(k, 4));
    pieces[1] = input(k, rank_of(k, v), shape);
  }
  return joined(k, count, pieces, axis);
}

static uint32_t broadcast_any(maker *k, uint32_t v) {
  const bb_extent *shape[RANK_MAX];
  uint32_t rank = rank_of(k, v), n = 0;
  if (rank < 4) shape[n++] = any_extent(k);
  for (uint32_t i = 0; i < rank; i++) {
    const bb_extent *here = value_of(k, v)->shape[i];
    shape[n++] = bb_extent_value(here) == 1 ? any_extent(k) : here;
  }
  return moved(k, v, bb_array_broadcast(k->array, "broadcast", k->value[v], n, shape));
}

/* --- chains --- */

static uint32_t softmax(maker *k, uint32_t v) {
  v = tamed(k, v, 3);
  uint32_t e = apply(k, make(k->program, BB_X_EXP, arg(k, 0), NULL), v, BB_NONE, exp(3));
  uint32_t sum = along_last(k, BB_MONOID_SUM, e);
  return operate(k, BB_X_DIV, e, sum, 1);
}

/* The mean of the last axis. */
static uint32_t mean(maker *k, uint32_t v) {
  const bb_extent *extent = value_of(k, v)->shape[rank_of(k, v) - 1];
  uint32_t sum = along_last(k, BB_MONOID_SUM, v);
  double n = (double)length(k, extent);
  return apply(k, make(k->program, BB_X_DIV, arg(k, 0), number(k->program, n)), sum, BB_NONE,
               k->bound[v]);
}

static uint32_t normalised(maker *k, uint32_t v) {
  v = tamed(k, v, 2);
  if (chance(k, 60)) v = operate(k, BB_X_SUB, v, mean(k, v), 4);
  uint32_t square =
      apply(k, make(k->program, BB_X_POW, arg(k, 0), number(k->program, 2)), v, BB_NONE, 16);
  const bb_expr *shifted = make(k->program, BB_X_ADD, arg(k, 0), number(k->program, 0.125));
  const bb_expr *root = make(k->program, BB_X_SQRT, shifted, NULL);
  uint32_t moment = mean(k, square), scaled;
  if (chance(k, 50)) {
    scaled = operate(k, BB_X_DIV, v, apply(k, root, moment, BB_NONE, 5), 8);
  } else {
    root = make(k->program, BB_X_DIV, number(k->program, 1), root);
    scaled = operate(k, BB_X_MUL, v, apply(k, root, moment, BB_NONE, 3), 8);
  }
  const bb_extent *last = value_of(k, v)->shape[rank_of(k, v) - 1];
  return chance(k, 60) ? operate(k, BB_X_MUL, scaled, input(k, 1, &last), 16) : scaled;
}

/* Heads of a projection of x[b, s, d]: [b, h, s, e] */
static uint32_t heads(maker *k, uint32_t x, int64_t count, int64_t size) {
  uint32_t p = product(k, x, bb_extent_number(k->program, count * size));
  const bb_extent *shape[4] = {value_of(k, x)->shape[0], value_of(k, x)->shape[1],
                               bb_extent_number(k->program, count),
                               bb_extent_number(k->program, size)};
  return turned(k, reshaped(k, tamed(k, p, 2), 4, shape), (int64_t[]){0, 2, 1, 3});
}

/* Rotates pairs of halves of the last axis by tables. */
static uint32_t rotary(maker *k, uint32_t v) {
  uint32_t last = rank_of(k, v) - 1;
  int64_t half = axis_length(k, v, last) / 2;
  uint32_t left = sliced(k, v, last, 0, 1, half), right = sliced(k, v, last, half, 1, half);
  const bb_extent *shape[2] = {value_of(k, v)->shape[last - 1], bb_extent_number(k->program, half)};
  uint32_t cosine = input(k, 2, shape), sine = input(k, 2, shape);
  uint32_t halves[2] = {operate(k, BB_X_SUB, operate(k, BB_X_MUL, left, cosine, 4),
                                operate(k, BB_X_MUL, right, sine, 4), 8),
                        operate(k, BB_X_ADD, operate(k, BB_X_MUL, left, sine, 4),
                                operate(k, BB_X_MUL, right, cosine, 4), 8)};
  return joined(k, 2, halves, last);
}

static uint32_t attention(maker *k) {
  const bb_extent *shape[3] = {any_extent(k), any_extent(k), bb_extent_number(k->program, 4)};
  uint32_t x = input(k, 3, shape);
  int64_t count = 1 + below(k, 3), size = 2 + 2 * below(k, 2);
  uint32_t q = heads(k, x, count, size), key = heads(k, x, count, size),
           v = heads(k, x, count, size);
  if (chance(k, 40)) {
    q = rotary(k, q);
    key = rotary(k, key);
  }
  uint32_t id =
      bb_array_contract(k->array, "scores", k->value[q], k->value[key], (int64_t[]){0, 1, 2, 3},
                        (int64_t[]){0, 1, 4, 3}, 4, (int64_t[]){0, 1, 2, 4});
  uint32_t scores = add(k, id, k->bound[q] * k->bound[key] * (double)size, false);
  scores = tamed(k, scores, 3);
  if (chance(k, 50)) scores = by_coordinates(k, scores);
  scores = softmax(k, scores);
  id = bb_array_contract(k->array, "mixed", k->value[scores], k->value[v], (int64_t[]){0, 1, 2, 4},
                         (int64_t[]){0, 1, 4, 3}, 4, (int64_t[]){0, 1, 2, 3});
  uint32_t mixed = turned(k, add(k, id, k->bound[v], false), (int64_t[]){0, 2, 1, 3});
  shape[2] = bb_extent_number(k->program, count * size);
  return product(k, reshaped(k, mixed, 3, shape), any_extent(k));
}

static uint32_t gated(maker *k, uint32_t v) {
  const bb_extent *hidden = any_extent(k);
  uint32_t a = tamed(k, product(k, v, hidden), 4), b = tamed(k, product(k, v, hidden), 4);
  return product(k, operate(k, BB_X_MUL, one_operand(k, a), b, 64), any_extent(k));
}

static void operation(maker *k) {
  uint32_t v;
  switch (below(k, 24)) {
  case 0: v = one_operand(k, any(k, 1)); break;
  case 1:
  case 2: v = two_operands(k, any(k, 1)); break;
  case 3: v = by_coordinates(k, any(k, 1)); break;
  case 4:
  case 5: v = fold_any(k, any(k, 1)); break;
  case 6: v = scan_any(k, any(k, 1)); break;
  case 7: v = arg_any(k, any(k, 1)); break;
  case 8:
  case 9: v = product(k, any(k, 2), any_extent(k)); break;
  case 10: v = einsum(k, any(k, 1)); break;
  case 11: v = reshape_any(k, any(k, 1)); break;
  case 12: v = transpose_any(k, any(k, 2)); break;
  case 13:
    v = any(k, 1);
    v = k->windows && chance(k, 70) ? windows_any(k, v) : slice_any(k, v);
    break;
  case 14: v = concat_any(k, any(k, 1)); break;
  case 15: v = broadcast_any(k, any(k, 1)); break;
  case 16: v = product(k, softmax(k, any(k, 2)), any_extent(k)); break;
  case 17:
  case 18: v = product(k, normalised(k, any(k, 2)), any_extent(k)); break;
  case 19: v = gated(k, any(k, 2)); break;
  case 20: v = product(k, transpose_any(k, any(k, 2)), any_extent(k)); break;
  default: v = attention(k);
  }
  if (elements(k, v) > ELEMENTS_MAX && rank_of(k, v) > 1) fold_any(k, v);
}

/* --- the case --- */

/* What nothing uses is an output, and now and then something else. */
static void outputs_add(maker *k) {
  bb_array *a = k->array;
  bool *used = BB_NEW(k->program->arena, bool, a->values);
  for (uint32_t i = 0; i < a->nodes; i++)
    for (uint32_t p = 0; p < a->node[i].nin; p++) used[a->node[i].in[p]] = true;
  for (uint32_t v = 0; v < k->count; v++) {
    uint32_t id = k->value[v];
    if (a->value[id].producer == BB_NONE || (used[id] && !chance(k, 5))) continue;
    BB_GROW(k->program->arena, a->output, k->output_capacity, k->outputs + 1);
    BB_GROW(k->program->arena, a->output_name, k->name_capacity, k->outputs + 1);
    a->output[k->outputs] = id;
    a->output_name[k->outputs] = bb_arena_printf(k->program->arena, "out%u", k->outputs);
    a->outputs = ++k->outputs;
  }
}

static void bind(maker *k, array_case *c) {
  bb_arena *arena = k->program->arena;
  for (uint32_t i = 0; i < k->array->values; i++) {
    const bb_array_value *v = &k->array->value[i];
    if (!v->is_input && !v->data) continue;
    int64_t shape[RANK_MAX];
    for (uint32_t a = 0; a < v->rank; a++) shape[a] = length(k, v->shape[a]);
    c->value[i] = whole_new(arena, v->rank, shape);
    if (v->data)
      bb_interp_load(v->dtype, v->data, c->value[i].count, c->value[i].data);
    else
      for (size_t e = 0; e < c->value[i].count; e++)
        c->value[i].data[e] = bb_round_to(BB_F32, random_real(&k->random, -1, 1));
  }
}

static void extents_new(maker *k) {
  for (uint32_t i = 0; i < EXTENTS; i++) {
    int64_t value = i < 2 ? 1 + below(k, 7) : 2 * (1 + below(k, 3));
    bool symbol = i < 2 && (k->open || chance(k, 60));
    k->extent[i] =
        symbol ? bb_extent_symbol(k->program, i ? "t" : "s") : bb_extent_number(k->program, value);
    if (symbol) k->symbol[k->extent[i]->symbol[0]] = value;
  }
}

array_case array_case_make(bb_context *ctx, uint64_t seed, uint32_t size) {
  bb_program *p = bb_program_create(ctx, "random");
  bb_program_defer(p);
  maker *k = BB_NEW(p->arena, maker, 1);
  k->program = p;
  k->random.state = seed;
  k->windows = seed >= 10000;
  k->open = seed >= 30000;
  k->widened = seed >= 20000 && !k->open;
  k->array = p->array = bb_array_create(p);
  extents_new(k);
  for (uint32_t i = 0; i < size; i++) operation(k);
  outputs_add(k);
  array_case c = {.program = p, .symbol = BB_NEW(p->arena, int64_t, SYMBOL_MAX)};
  memcpy(c.symbol, k->symbol, sizeof k->symbol);
  c.value = BB_NEW(p->arena, whole, k->array->values);
  bind(k, &c);
  return c;
}
