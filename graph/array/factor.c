/* factor.c - axis factoring: which dims make each axis of an array program.
 *
 * Every axis of every value gets a class.  Operators tie axes: a class is shared by axes that are
 * cut alike.  Then reshapes refine: where both sides are products of the same extents, taken from
 * the outermost in, the longer class splits into two, outer and inner, and the equal parts become
 * one class.  A split holds for every axis of the class, so the result is the coarsest refinement
 * that makes all these reshapes renamings.  Slices and joins tie the inner parts of their axes when
 * either side is split; the outermost parts stay apart.  What does not refine is marked: its data
 * moves.
 *
 * Splitting works on leaves only, so that a decision is never revised: the time is linear in the
 * number of axes up to the union-find.
 */
#include "index.h"

#include <string.h>

typedef struct factoring {
  bb_ix *ix;
  bb_array *array;
  bb_arena *scratch;
  bb_ix_classes classes;
  bool split; /* a class was split since it was last reset */
} factoring;

void bb_ix_push(bb_ix_list *list, uint32_t class) {
  BB_GROW(list->arena, list->at, list->capacity, (size_t)list->count + 1);
  list->at[list->count++] = class;
}

void bb_ix_leaves(bb_ix *ix, uint32_t class, bb_ix_list *list) {
  class = bb_ix_find(ix, class);
  /* Not deep: each split divides the extent by a number of at least 2 or by a symbol. */
  for (uint32_t p = 0; p < ix->dim[class].parts; p++)
    bb_ix_leaves(ix, ix->dim[class].part[p], list);
  if (!ix->dim[class].parts) bb_ix_push(list, class);
}

static bool is_whole(const factoring *f, uint32_t class) {
  return f->ix->dim[bb_ix_find(f->ix, class)].whole;
}

/* Splits a leaf into outer * inner; `outer` and `inner` are new or existing leaves. */
static void split(factoring *f, uint32_t class, uint32_t outer, uint32_t inner) {
  bb_ix_dim *dim = &f->ix->dim[bb_ix_find(f->ix, class)];
  dim->parts = 2;
  dim->part[0] = outer;
  dim->part[1] = inner;
  f->ix->dim[bb_ix_find(f->ix, inner)].multiplied |= dim->multiplied;
  f->split = true;
}

/* --- ties --- */

static void tie(factoring *f, uint32_t value_a, uint32_t axis_a, uint32_t value_b,
                uint32_t axis_b) {
  uint32_t a = f->classes.axis[value_a][axis_a], b = f->classes.axis[value_b][axis_b];
  if (a != BB_NONE && b != BB_NONE) bb_ix_unite(f->ix, a, b);
}

/* Every axis but one, in order. */
static void tie_all_but(factoring *f, uint32_t in, uint32_t out, int64_t but) {
  for (uint32_t a = 0; a < f->array->value[out].rank; a++)
    if (a != but) tie(f, in, a, out, a);
}

static void tie_broadcast(factoring *f, const bb_array_node *node) {
  uint32_t out = node->out[0], rank = f->array->value[out].rank;
  for (uint32_t i = 0; i < node->nin; i++) {
    uint32_t in = node->in[i], lower = f->array->value[in].rank;
    for (uint32_t a = 0; a < lower; a++) tie(f, in, a, out, rank - lower + a);
  }
}

static bool has_label(const int64_t *label, int64_t count, int64_t which) {
  for (int64_t a = 0; a < count; a++)
    if (label[a] == which) return true;
  return false;
}

/* Axes of an operand that the other operand or the result lacks. */
static void note_multiplied(factoring *f, uint32_t value, const int64_t *label, int64_t count,
                            const int64_t *const *other, const int64_t *counts) {
  for (int64_t a = 0; a < count; a++) {
    uint32_t class = f->classes.axis[value][a];
    bool both =
        has_label(other[0], counts[0], label[a]) && has_label(other[1], counts[1], label[a]);
    if (class != BB_NONE && !both) f->ix->dim[bb_ix_find(f->ix, class)].multiplied = true;
  }
}

static void tie_contract(factoring *f, const bb_array_node *node) {
  const uint32_t value[3] = {node->in[0], node->in[1], node->out[0]};
  const int64_t *label[3] = {node->ints + 3, node->ints + 3 + node->ints[0],
                             node->ints + 3 + node->ints[0] + node->ints[1]};
  for (int x = 0; x < 2; x++)
    note_multiplied(f, value[x], label[x], node->ints[x],
                    (const int64_t *const[]){label[!x], label[2]},
                    (const int64_t[]){node->ints[!x], node->ints[2]});
  for (int x = 0; x < 3; x++)
    for (int y = 0; y < x; y++)
      for (int64_t a = 0; a < node->ints[x]; a++)
        for (int64_t b = 0; b < node->ints[y]; b++)
          if (label[x][a] == label[y][b]) tie(f, value[x], (uint32_t)a, value[y], (uint32_t)b);
}

/* Axes of the operand that a reduction keeps meet the result's, in order. */
static void tie_reduce(factoring *f, const bb_array_node *node, const int64_t *axes, uint32_t count,
                       bool keep) {
  uint32_t in = node->in[0], out = node->out[0], to = 0;
  for (uint32_t a = 0; a < f->array->value[in].rank; a++) {
    bool gone = false;
    for (uint32_t k = 0; k < count; k++) gone |= axes[k] == a;
    if (!gone) tie(f, in, a, out, to++);
    if (gone && keep) to++;
  }
}

/* Components of a tuple have the same axes. */
static void tie_components(factoring *f, const bb_array_node *node) {
  bool fold = node->op == BB_A_REDUCE || node->op == BB_A_SCAN;
  for (uint32_t i = 1; fold && i < node->nin; i++) {
    tie_all_but(f, node->in[0], node->in[i], -1);
    tie_all_but(f, node->out[0], node->out[i], -1);
  }
}

/* What overlaps in memory is one axis, whatever the places are reshaped to behind it: then these are copied. */
static void keep_whole(factoring *f, uint32_t value, int64_t axis) {
  uint32_t class = f->classes.axis[value][axis];
  if (class != BB_NONE) f->ix->dim[bb_ix_find(f->ix, class)].whole = true;
}

static void tie_windows(factoring *f, const bb_array_node *node) {
  int64_t axis = node->ints[0];
  for (uint32_t a = 0; a < f->array->value[node->in[0]].rank; a++)
    if (a != axis) tie(f, node->in[0], a, node->out[0], a + (a > axis));
  keep_whole(f, node->in[0], axis);
  keep_whole(f, node->out[0], axis);
  keep_whole(f, node->out[0], axis + 1);
}

static void tie_node(factoring *f, const bb_array_node *node) {
  tie_components(f, node);
  switch (node->op) {
  case BB_A_ELEMENTWISE:
  case BB_A_BROADCAST: tie_broadcast(f, node); break;
  case BB_A_CONTRACT: tie_contract(f, node); break;
  case BB_A_REDUCE: tie_reduce(f, node, node->ints + 1, node->count - 1, node->ints[0]); break;
  case BB_A_ARGREDUCE: tie_reduce(f, node, node->ints, 1, node->ints[1]); break;
  case BB_A_SCAN: tie_all_but(f, node->in[0], node->out[0], -1); break;
  case BB_A_TRANSPOSE:
    for (uint32_t a = 0; a < node->count; a++)
      tie(f, node->in[0], (uint32_t)node->ints[a], node->out[0], a);
    break;
  case BB_A_SLICE: {
    bool all = f->array->value[node->in[0]].shape[node->ints[0]] ==
                   f->array->value[node->out[0]].shape[node->ints[0]] &&
               node->ints[2] == 1;
    tie_all_but(f, node->in[0], node->out[0], all ? -1 : node->ints[0]);
    break;
  }
  case BB_A_WINDOWS: tie_windows(f, node); break;
  case BB_A_PAD:
    tie_all_but(f, node->in[0], node->out[0], node->ints[0]);
    keep_whole(f, node->in[0], node->ints[0]);
    keep_whole(f, node->out[0], node->ints[0]);
    break;
  case BB_A_CONCAT:
    for (uint32_t i = 0; i < node->nin; i++)
      tie_all_but(f, node->in[i], node->out[0], node->ints[0]);
    break;
  default: break;
  }
}

/* --- refinement of two products --- */

/* The leaves of all axes of a value. */
static bb_ix_list leaves_of_value(factoring *f, uint32_t value) {
  bb_ix_list list = {.arena = f->scratch};
  for (uint32_t a = 0; a < f->array->value[value].rank; a++)
    if (f->classes.axis[value][a] != BB_NONE) bb_ix_leaves(f->ix, f->classes.axis[value][a], &list);
  return list;
}

/* Do two lists of extents have a common refinement?  Nothing is split yet. */
static bool refines(factoring *f, const bb_ix_list *a, const bb_ix_list *b) {
  bb_program *program = f->array->program;
  const bb_extent *one = bb_extent_number(program, 1), *x = one, *y = one;
  uint32_t i = 0, j = 0;
  for (;;) {
    if (bb_extent_is_one(x) && i < a->count) x = bb_ix_extent(f->ix, a->at[i++]);
    if (bb_extent_is_one(y) && j < b->count) y = bb_ix_extent(f->ix, b->at[j++]);
    if (x->factor == 0 || y->factor == 0) return false;
    if (bb_extent_is_one(x) || bb_extent_is_one(y))
      return bb_extent_is_one(x) && bb_extent_is_one(y);
    const bb_extent *over = bb_extent_divide(program, x, y), *under = NULL;
    if (!over) under = bb_extent_divide(program, y, x);
    if (!over && !under) return false;
    x = over ? over : one;
    y = over ? one : under;
  }
}

static void reverse(bb_ix_list *list) {
  for (uint32_t i = 0, j = list->count; i + 1 < j; i++) {
    uint32_t other = list->at[--j];
    list->at[j] = list->at[i];
    list->at[i] = other;
  }
}

/* The next leaf of a stack; a class that was split since it was pushed gives its parts. */
static uint32_t pop_leaf(factoring *f, bb_ix_list *stack) {
  for (;;) {
    uint32_t class = bb_ix_find(f->ix, stack->at[--stack->count]);
    if (!f->ix->dim[class].parts) return class;
    bb_ix_push(stack, f->ix->dim[class].part[1]);
    bb_ix_push(stack, f->ix->dim[class].part[0]);
  }
}

/* `long_` is a leaf `rest` times as long as the leaf `short_`: splits it and pushes the rest. */
static void split_outer(factoring *f, uint32_t whole, uint32_t outer, const bb_extent *rest,
                        bb_ix_list *stack) {
  uint32_t inner = bb_ix_class(f->ix, rest);
  split(f, whole, outer, inner);
  bb_ix_push(stack, inner);
}

/* The leaf of `list` that is the innermost part of an axis which begins behind `before` elements and has `extent`; BB_NONE: it is
 * no whole leaves, or one. */
static uint32_t innermost_part(factoring *f, const bb_ix_list *list, const bb_extent *before,
                               const bb_extent *extent) {
  bb_program *program = f->array->program;
  const bb_extent *left = extent;
  uint32_t i = 0;
  for (; i < list->count && !bb_extent_is_one(before); i++) {
    before = bb_extent_divide(program, before, bb_ix_extent(f->ix, list->at[i]));
    if (!before) return BB_NONE;
  }
  for (; i < list->count; i++) {
    left = bb_extent_divide(program, left, bb_ix_extent(f->ix, list->at[i]));
    if (!left) return BB_NONE;
    if (bb_extent_is_one(left)) break;
  }
  return i < list->count && bb_ix_extent(f->ix, list->at[i]) != extent ? list->at[i] : BB_NONE;
}

/* Would a product's axis among `a` be cut so that its innermost part has few elements, which no product knows by itself?
 * Blocks of the axis would lie along that part: one copy is cheaper.  BLOCK: rows of the units for products.  Parts of less than
 * FEW are left: what comes in twos and threes (halves of heads that are turned, queries with keys and values) is most often picked
 * from, and a copy of all of it costs more than its products lose. */
static bool cuts_short(factoring *f, const bb_ix_list *a, const bb_ix_list *b) {
  enum { FEW = 4, BLOCK = 16 };
  const bb_extent *before = bb_extent_number(f->array->program, 1);
  for (uint32_t i = 0; i < a->count; i++) {
    const bb_ix_dim *axis = &f->ix->dim[bb_ix_find(f->ix, a->at[i])];
    int64_t whole = bb_extent_value(axis->extent);
    if (axis->multiplied && whole >= BLOCK) {
      uint32_t inner = innermost_part(f, b, before, axis->extent);
      int64_t part = inner == BB_NONE ? 0 : bb_extent_value(bb_ix_extent(f->ix, inner));
      if (part >= FEW && part < BLOCK && !f->ix->dim[bb_ix_find(f->ix, inner)].multiplied)
        return true;
    }
    before = bb_extent_multiply(f->array->program, before, axis->extent);
  }
  return false;
}

/* Makes two products of equal extent the same leaves in the same order. */
static bool refine(factoring *f, bb_ix_list *a, bb_ix_list *b) {
  if (!refines(f, a, b) || cuts_short(f, a, b) || cuts_short(f, b, a)) return false;
  bb_program *program = f->array->program;
  reverse(a);
  reverse(b);
  while (a->count && b->count) {
    uint32_t x = pop_leaf(f, a), y = pop_leaf(f, b);
    const bb_extent *ex = f->ix->dim[x].extent, *ey = f->ix->dim[y].extent, *rest;
    if (ex == ey)
      bb_ix_unite(f->ix, x, y);
    else if (!is_whole(f, x) && (rest = bb_extent_divide(program, ex, ey)))
      split_outer(f, x, y, rest, a);
    else if (!is_whole(f, y) && (rest = bb_extent_divide(program, ey, ex)))
      split_outer(f, y, x, rest, b);
    else
      return false; /* a class stands on both sides and its own splits do not agree, or is to stay whole */
  }
  return a->count == b->count;
}

/* A misc node's result that is only reshaped is stored in its new shape from the start: storage
 * order is all that its kernel knows. */
static void adopt_reshapes(factoring *f) {
  bb_array *array = f->array;
  uint32_t *uses = BB_NEW(f->scratch, uint32_t, array->values);
  f->classes.stored_as = BB_NEW(f->scratch, uint32_t, array->values);
  for (uint32_t v = 0; v < array->values; v++) f->classes.stored_as[v] = BB_NONE;
  for (uint32_t o = 0; o < array->outputs; o++) uses[array->output[o]]++;
  for (uint32_t i = 0; i < array->nodes; i++)
    for (uint32_t k = 0; !array->node[i].removed && k < array->node[i].nin; k++)
      if (array->node[i].in[k] != BB_NONE) uses[array->node[i].in[k]]++;
  for (uint32_t i = 0; i < array->nodes; i++) {
    const bb_array_node *node = &array->node[i];
    if (node->removed || node->op != BB_A_RESHAPE || uses[node->in[0]] != 1) continue;
    uint32_t maker = array->value[node->in[0]].producer;
    if (maker != BB_NONE && array->node[maker].op == BB_A_MISC)
      f->classes.stored_as[node->in[0]] = node->out[0];
  }
}

/* One that is looked at: it is there, and its operand is not stored in its shape. */
static bool is_reshape(const factoring *f, uint32_t index) {
  const bb_array_node *node = &f->array->node[index];
  return !node->removed && node->op == BB_A_RESHAPE && f->classes.stored_as[node->in[0]] == BB_NONE;
}

/* Across a reshape that but adds or drops axes of one element, what is to stay whole on one side is so on the other: who cuts it
 * there is told before the reshape itself cannot be a renaming. */
static void tie_whole(factoring *f, const bb_array_node *node) {
  bb_ix_list a = leaves_of_value(f, node->in[0]), b = leaves_of_value(f, node->out[0]);
  bool same = a.count == b.count;
  for (uint32_t i = 0; same && i < a.count; i++)
    same = bb_ix_extent(f->ix, a.at[i]) == bb_ix_extent(f->ix, b.at[i]);
  for (uint32_t i = 0; same && i < a.count; i++)
    if (is_whole(f, a.at[i]) != is_whole(f, b.at[i])) bb_ix_unite(f->ix, a.at[i], b.at[i]);
}

static void refine_reshape(factoring *f, uint32_t index) {
  const bb_array_node *node = &f->array->node[index];
  bb_ix_list a = leaves_of_value(f, node->in[0]), b = leaves_of_value(f, node->out[0]);
  f->classes.copied[index] = !refine(f, &a, &b);
}

/* --- slices and joins --- */

/* Makes the innermost leaves of two lists one class of the lesser extent; NULL if neither divides
 * the other. Gives that extent. */
static const bb_extent *match_inner(factoring *f, bb_ix_list *a, bb_ix_list *b) {
  bb_program *program = f->array->program;
  uint32_t x = a->at[a->count - 1], y = b->at[b->count - 1];
  const bb_extent *ex = bb_ix_extent(f->ix, x), *ey = bb_ix_extent(f->ix, y), *rest;
  bool whole_x = a->count > 1, whole_y = b->count > 1;
  if (ex == ey && whole_x && whole_y) {
    bb_ix_unite(f->ix, x, y);
    a->count--, b->count--;
    return ex;
  }
  if (whole_y && ex != ey && !is_whole(f, x) && (rest = bb_extent_divide(program, ex, ey))) {
    uint32_t outer = bb_ix_class(f->ix, rest);
    split(f, x, outer, y);
    a->at[a->count - 1] = outer;
    b->count--;
    return ey;
  }
  if (whole_x && ex != ey && !is_whole(f, y) && (rest = bb_extent_divide(program, ey, ex))) {
    uint32_t outer = bb_ix_class(f->ix, rest);
    split(f, y, outer, x);
    b->at[b->count - 1] = outer;
    a->count--;
    return ex;
  }
  return NULL;
}

/* The axis `part` is `length` elements of the axis `whole`, from `start` by `step`: all leaves but
 * the outermost of each side must be the same.  False: this is no view. */
static bool refine_range(factoring *f, uint32_t whole, uint32_t part, int64_t start, int64_t step) {
  bb_ix_list a = {.arena = f->scratch}, b = {.arena = f->scratch};
  bb_ix_leaves(f->ix, whole, &a);
  if (part == BB_NONE) return a.count == 1;
  bb_ix_leaves(f->ix, part, &b);
  while (a.count > 1 || b.count > 1) {
    if (step != 1) return false;
    const bb_extent *inner = match_inner(f, &a, &b);
    if (!inner) return false;
    int64_t size = bb_extent_value(inner);
    if (start && (size < 0 || start % size)) return false;
    if (start) start /= size;
  }
  return true;
}

static bool refine_slice(factoring *f, const bb_array_node *node) {
  int64_t axis = node->ints[0];
  uint32_t whole = f->classes.axis[node->in[0]][axis], part = f->classes.axis[node->out[0]][axis];
  return whole == BB_NONE || refine_range(f, whole, part, node->ints[1], node->ints[2]);
}

/* Equal lengths that are known only at run time: the joined axis is (count, length). */
static bool refine_symbolic_join(factoring *f, const bb_array_node *node) {
  int64_t axis = node->ints[0];
  uint32_t first = f->classes.axis[node->in[0]][axis];
  for (uint32_t i = 1; i < node->nin; i++) {
    bb_ix_list a = {.arena = f->scratch}, b = {.arena = f->scratch};
    bb_ix_leaves(f->ix, first, &a);
    bb_ix_leaves(f->ix, f->classes.axis[node->in[i]][axis], &b);
    if (!refine(f, &a, &b)) return false;
  }
  bb_ix_list a = {.arena = f->scratch}, b = {.arena = f->scratch};
  bb_ix_leaves(f->ix, f->classes.axis[node->out[0]][axis], &a);
  if (node->nin > 1)
    bb_ix_push(&b, bb_ix_class(f->ix, bb_extent_number(f->array->program, node->nin)));
  bb_ix_leaves(f->ix, first, &b);
  return refine(f, &a, &b);
}

static bool refine_join(factoring *f, const bb_array_node *node) {
  int64_t axis = node->ints[0], start = 0;
  uint32_t whole = f->classes.axis[node->out[0]][axis];
  if (whole == BB_NONE) return true;
  for (uint32_t i = 0; i < node->nin; i++) {
    if (!refine_range(f, whole, f->classes.axis[node->in[i]][axis], start, 1)) return false;
    start += bb_extent_value(f->array->value[node->in[i]].shape[axis]);
  }
  return true;
}

static bool has_known_length(const factoring *f, const bb_array_node *join) {
  return bb_extent_value(f->array->value[join->out[0]].shape[join->ints[0]]) >= 0;
}

/* Before reshapes are looked at: one that cuts such an axis otherwise is copied, the join has no other form. */
static void refine_symbolic_joins(factoring *f) {
  for (uint32_t i = 0; i < f->array->nodes; i++) {
    const bb_array_node *node = &f->array->node[i];
    if (!node->removed && node->op == BB_A_CONCAT && !has_known_length(f, node))
      f->classes.copied[i] = !refine_symbolic_join(f, node);
  }
}

/* Until no split makes another one necessary: a split shortens a leaf, so this ends; in practice
 * after one or two rounds. */
static void refine_views(factoring *f) {
  bb_array *array = f->array;
  for (;;) {
    f->split = false;
    for (uint32_t i = 0; i < array->nodes; i++) {
      const bb_array_node *node = &array->node[i];
      if (node->removed || f->classes.copied[i]) continue;
      if (node->op == BB_A_SLICE) f->classes.copied[i] = !refine_slice(f, node);
      if (node->op == BB_A_CONCAT && has_known_length(f, node))
        f->classes.copied[i] = !refine_join(f, node);
    }
    if (!f->split) return;
  }
}

/* --- the pass --- */

static void new_classes(factoring *f) {
  bb_array *array = f->array;
  f->classes.axis = BB_NEW(f->scratch, uint32_t *, array->values);
  f->classes.copied = BB_NEW(f->scratch, bool, array->nodes);
  for (uint32_t v = 0; v < array->values; v++) {
    const bb_array_value *value = &array->value[v];
    f->classes.axis[v] = BB_NEW(f->scratch, uint32_t, value->rank);
    for (uint32_t a = 0; a < value->rank; a++)
      f->classes.axis[v][a] =
          bb_extent_is_one(value->shape[a]) ? BB_NONE : bb_ix_class(f->ix, value->shape[a]);
  }
}

bb_ix_classes bb_ix_classify(bb_ix *ix, bb_arena *scratch) {
  factoring f = {.ix = ix, .array = ix->array, .scratch = scratch};
  new_classes(&f);
  adopt_reshapes(&f);
  for (uint32_t i = 0; i < f.array->nodes; i++)
    if (!f.array->node[i].removed) tie_node(&f, &f.array->node[i]);
  refine_symbolic_joins(&f);
  for (uint32_t i = 0; i < f.array->nodes; i++)
    if (is_reshape(&f, i)) tie_whole(&f, &f.array->node[i]);
  for (uint32_t i = 0; i < f.array->nodes; i++)
    if (is_reshape(&f, i)) refine_reshape(&f, i);
  refine_views(&f);
  return f.classes;
}
