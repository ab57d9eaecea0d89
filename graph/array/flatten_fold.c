/* flatten_fold.c - reductions and scans of array programs in the index form. */
#include "flatten.h"

#include <string.h>

/* The flat of a result that keeps the operand's axes without (keep: with 1 for) some of them. */
static bb_flat flat_of_kept(bb_flattening *f, uint32_t out, const bb_flat *in, const bool *gone,
                            bool keep, const uint32_t *kept) {
  bb_flat result = bb_flat_of_shape(f, out);
  uint32_t to = 0;
  for (uint32_t a = 0; a < in->rank; a++) {
    if (gone[a]) {
      to += keep;
      continue;
    }
    for (uint32_t k = 0; k < bb_flat_axis_leaves(in, a); k++) {
      uint32_t at = in->at[in->first[a] + k];
      result.at[result.first[to] + k] = at == BB_NONE ? BB_NONE : kept[at];
    }
    to++;
  }
  return result;
}

/* --- several components --- */

/* An operand for each component, all with the same axes: every leaf, in order. */
static bb_flat straight_operands(bb_flattening *f, const bb_array_node *node, uint32_t *value) {
  bb_flat x = {0};
  for (uint32_t i = node->nin; i-- > 0;) {
    x = *bb_flat_of(f, node->in[i]);
    bb_flat_straighten(f, &x);
    value[i] = x.value;
  }
  return x;
}

/* Adds a node with a result for each operand; the operands' axes are the indices index[] of it. */
static void add_components(bb_flattening *f, bb_ix_op op, const bb_array_node *like, uint32_t rank,
                           uint32_t indices, const uint32_t *dim, const uint32_t *index,
                           uint32_t *value) {
  bb_ix *ix = f->ix;
  uint32_t node = bb_ix_node_add(ix, op, like->name, like->nin, indices, dim);
  for (uint32_t i = 0; i < like->nin; i++) bb_ix_use(ix, node, i, value[i], index);
  for (uint32_t i = 0; i < like->nin; i++)
    value[i] = bb_ix_result(ix, node, ix->value[value[i]].dtype, rank, dim);
  ix->node[node].monoid = like->monoid;
}

/* Folds the axes that are gone, in order; kept[a] is what becomes of axis a. */
static void fold_components(bb_flattening *f, const bb_array_node *node, const bool *gone,
                            uint32_t *kept, uint32_t *value) {
  bb_ix_value v = f->ix->value[value[0]];
  uint32_t *dim = BB_NEW(f->scratch, uint32_t, v.rank),
           *index = BB_NEW(f->scratch, uint32_t, v.rank), rank = 0, n;
  for (uint32_t a = 0; a < v.rank; a++)
    if (!gone[a]) kept[a] = rank, index[a] = rank, dim[rank++] = v.dim[a];
  n = rank;
  for (uint32_t a = 0; a < v.rank; a++)
    if (gone[a]) kept[a] = BB_NONE, index[a] = n, dim[n++] = v.dim[a];
  if (n > rank) add_components(f, BB_IX_FOLD, node, rank, n, dim, index, value);
}

static void flatten_components(bb_flattening *f, const bb_array_node *node) {
  uint32_t value[BB_MONOID_COMPONENTS];
  bb_flat in = straight_operands(f, node, value);
  uint32_t rank = f->ix->value[value[0]].rank;
  bool *axis_gone = BB_NEW(f->scratch, bool, in.rank), *gone = BB_NEW(f->scratch, bool, rank);
  uint32_t *kept = BB_NEW(f->scratch, uint32_t, rank);
  for (uint32_t i = 1; i < node->count; i++) {
    int64_t a = node->ints[i];
    axis_gone[a] = true;
    for (uint32_t k = in.first[a]; k < in.first[a + 1]; k++) gone[k] = true;
  }
  fold_components(f, node, gone, kept, value);
  for (uint32_t i = 0; i < node->nout; i++) {
    bb_flat result = flat_of_kept(f, node->out[i], &in, axis_gone, node->ints[0], kept);
    result.value = value[i];
    f->flat[node->out[i]] = result;
  }
}

/* What combine makes of a left part that lacks axes lo..hi-1 and a right one: value[]. */
static void combine_components(bb_flattening *f, const bb_array_node *node, const uint32_t *left,
                               uint32_t lo, uint32_t hi, uint32_t *value) {
  uint32_t n = node->nin, both[2 * BB_MONOID_COMPONENTS], made[BB_MONOID_COMPONENTS], l = 0;
  uint32_t *index[2 * BB_MONOID_COMPONENTS];
  bb_dtype dtype[BB_MONOID_COMPONENTS];
  bb_ix_value v = f->ix->value[value[0]];
  uint32_t *all = BB_NEW(f->scratch, uint32_t, v.rank),
           *some = BB_NEW(f->scratch, uint32_t, v.rank);
  for (uint32_t a = 0; a < v.rank; a++) {
    all[a] = a;
    if (a < lo || a >= hi) some[l++] = a;
  }
  for (uint32_t i = 0; i < n; i++) {
    both[i] = left[i], both[n + i] = value[i];
    index[i] = some, index[n + i] = all;
    dtype[i] = f->ix->value[value[i]].dtype;
  }
  for (uint32_t i = 0; i < n; i++)
    made[i] =
        bb_flat_elementwise(f, node->name, bb_monoid_expr(f->ix->program, node->monoid, i, dtype),
                            v.rank, v.dim, 2 * n, both, index);
  memcpy(value, made, n * sizeof *value);
}

/* Running folds along the axes lo..hi-1, which are one axis of the array: along the innermost, after
 * what all earlier runs of it give. */
static void run_components(bb_flattening *f, const bb_array_node *node, bool exclusive, uint32_t lo,
                           uint32_t hi, uint32_t *value) {
  uint32_t n = node->nin, total[BB_MONOID_COMPONENTS];
  bb_ix_value v = f->ix->value[value[0]];
  uint32_t *index = BB_NEW(f->scratch, uint32_t, v.rank),
           *kept = BB_NEW(f->scratch, uint32_t, v.rank);
  bool *gone = BB_NEW(f->scratch, bool, v.rank);
  for (uint32_t a = 0; a < v.rank; a++) index[a] = a;
  memcpy(total, value, n * sizeof *total);
  add_components(f, BB_IX_SCAN, node, v.rank, v.rank, v.dim, index, value);
  bb_ix_node_of(f->ix, value[0])->at = hi - 1;
  bb_ix_node_of(f->ix, value[0])->start = exclusive;
  if (hi - lo == 1) return;
  gone[hi - 1] = true;
  fold_components(f, node, gone, kept, total);
  run_components(f, node, true, lo, hi - 1, total);
  combine_components(f, node, total, hi - 1, hi, value);
}

/* A running fold of one element is the element, or what is empty. */
static void run_one(bb_flattening *f, const bb_array_node *node, bool exclusive, uint32_t *value) {
  double empty[BB_MONOID_COMPONENTS];
  bb_monoid_empty(node->monoid, empty);
  for (uint32_t i = 0; exclusive && i < node->nin; i++) {
    bb_dtype dtype = f->ix->value[value[i]].dtype;
    value[i] =
        bb_flat_apply(f, node->name, bb_expr_const(f->ix->program, dtype, empty[i]), value[i]);
  }
}

void bb_flatten_scan(bb_flattening *f, const bb_array_node *node) {
  uint32_t value[BB_MONOID_COMPONENTS];
  bb_flat x = straight_operands(f, node, value);
  uint32_t lo = x.first[node->ints[0]], hi = x.first[node->ints[0] + 1];
  if (lo == hi)
    run_one(f, node, node->ints[1], value);
  else
    run_components(f, node, node->ints[1], lo, hi, value);
  for (uint32_t i = 0; i < node->nout; i++) {
    x.value = value[i];
    f->flat[node->out[i]] = x;
  }
}

/* --- reductions --- */

/* A fold over leaves that the operand does not have. */
static const bb_expr *fold_of_equal(bb_flattening *f, const bb_monoid *monoid, bb_dtype dtype,
                                    const bb_extent *extent) {
  bb_program *p = f->ix->program;
  const bb_expr *x = bb_expr_arg(p, dtype, 0), *n = bb_array_extent(p, extent);
  if (monoid->id == BB_MONOID_SUM)
    return bb_expr_make(p, BB_X_MUL, x, bb_expr_cast(p, dtype, n), NULL);
  if (monoid->id == BB_MONOID_PROD)
    return bb_expr_make(p, BB_X_POW, x, bb_expr_cast(p, dtype, n), NULL);
  return x;
}

void bb_flatten_reduce(bb_flattening *f, const bb_array_node *node) {
  if (node->monoid->component || node->monoid->id == BB_MONOID_FIRST) {
    flatten_components(f, node);
    return;
  }
  const bb_flat *in = bb_flat_of(f, node->in[0]);
  bb_ix_value v = f->ix->value[in->value];
  bool *axis_gone = BB_NEW(f->scratch, bool, in->rank), *gone = BB_NEW(f->scratch, bool, v.rank);
  uint32_t *kept = BB_NEW(f->scratch, uint32_t, v.rank);
  const bb_extent *lost = bb_extent_number(f->ix->program, 1);
  for (uint32_t i = 1; i < node->count; i++) {
    int64_t a = node->ints[i];
    axis_gone[a] = true;
    for (uint32_t k = in->first[a]; k < in->first[a + 1]; k++) {
      if (in->at[k] != BB_NONE)
        gone[in->at[k]] = true;
      else
        lost = bb_extent_multiply(f->ix->program, lost, bb_ix_extent(f->ix, in->leaf[k]));
    }
  }
  uint32_t out = bb_flat_sum(f, node->name, in->value, gone, kept);
  if (out != in->value) bb_ix_node_of(f->ix, out)->monoid = node->monoid;
  if (bb_extent_value(lost) != 1)
    out = bb_flat_apply(f, node->name, fold_of_equal(f, node->monoid, v.dtype, lost), out);
  bb_flat result = flat_of_kept(f, node->out[0], in, axis_gone, node->ints[0], kept);
  result.value = out;
  f->flat[node->out[0]] = result;
}

void bb_flatten_argreduce(bb_flattening *f, const bb_array_node *node) {
  bb_flat in = *bb_flat_of(f, node->in[0]);
  uint32_t axis = (uint32_t)node->ints[0];
  if (bb_flat_axis_leaves(&in, axis) > 1)
    bb_flat_straighten(f, &in); /* the index counts along the leaves in their order */
  else
    bb_flat_materialise(f, &in);
  bb_ix_value v = f->ix->value[in.value];
  bool *axis_gone = BB_NEW(f->scratch, bool, in.rank), *gone = BB_NEW(f->scratch, bool, v.rank);
  uint32_t *kept = BB_NEW(f->scratch, uint32_t, v.rank);
  axis_gone[axis] = true;
  for (uint32_t k = in.first[axis]; k < in.first[axis + 1]; k++) gone[in.at[k]] = true;
  uint32_t out = bb_flat_sum(f, node->name, in.value, gone, kept);
  if (out == in.value) { /* one element: it is the first */
    out = bb_flat_apply(f, node->name, bb_expr_const(f->ix->program, BB_I64, 0), in.value);
  } else {
    bb_ix_node_of(f->ix, out)->op = BB_IX_ARGREDUCE;
    bb_ix_node_of(f->ix, out)->monoid = node->monoid;
    f->ix->value[out].dtype = BB_I64;
  }
  bb_flat result = flat_of_kept(f, node->out[0], &in, axis_gone, node->ints[1], kept);
  result.value = out;
  f->flat[node->out[0]] = result;
}
