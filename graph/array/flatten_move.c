/* flatten_move.c - what moves or names elements anew and computes none, in the index form: renamed
 * axes, slices and joins; and the copy, a misc node, where names do not do.
 */
#include "flatten.h"

#include <string.h>

/* --- renamings --- */

void bb_flatten_transpose(bb_flattening *f, const bb_array_node *node) {
  const bb_flat *in = bb_flat_of(f, node->in[0]);
  bb_flat out = bb_flat_of_shape(f, node->out[0]);
  out.value = in->value;
  for (uint32_t a = 0; a < out.rank; a++)
    for (uint32_t k = 0; k < bb_flat_axis_leaves(&out, a); k++)
      out.at[out.first[a] + k] = in->at[in->first[node->ints[a]] + k];
  f->flat[node->out[0]] = out;
}

void bb_flatten_broadcast(bb_flattening *f, const bb_array_node *node) {
  const bb_flat *in = bb_flat_of(f, node->in[0]);
  bb_flat out = bb_flat_of_shape(f, node->out[0]);
  out.value = in->value;
  for (uint32_t a = 0; a < in->rank; a++) {
    uint32_t to = out.first[out.rank - in->rank + a];
    for (uint32_t k = in->first[a]; k < in->first[a + 1]; k++) out.at[to++] = in->at[k];
  }
  f->flat[node->out[0]] = out;
}

/* --- misc nodes --- */

static bb_misc_port port_of(bb_flattening *f, uint32_t array_value, uint32_t axes,
                            const uint32_t *axis) {
  const bb_array_value *v = &f->array->value[array_value];
  bb_dim *copy = BB_NEW(f->ix->arena, bb_dim, axes);
  if (axes) memcpy(copy, axis, axes * sizeof *copy);
  return (bb_misc_port){
      .dtype = v->dtype, .rank = v->rank, .shape = v->shape, .axes = axes, .axis = copy};
}

/* A misc node that moves an operand's elements, in storage order, to the axes `dim`: the only
 * place where conversion copies data.  The operand has the shape of array value `from`, the result
 * that of `to`. */
static uint32_t add_copy(bb_flattening *f, const char *name, bb_flat in, uint32_t from,
                         uint32_t rank, const uint32_t *dim, uint32_t to) {
  uint32_t out = bb_ix_copy_add(f->ix, name, port_of(f, from, bb_flat_leaves(&in), in.leaf),
                                port_of(f, to, rank, dim));
  bb_flat_use_whole(f, bb_ix_producer(f->ix, out), 0, &in);
  return out;
}

void bb_flatten_misc(bb_flattening *f, const bb_array_node *node) {
  bb_ix *ix = f->ix;
  uint32_t present = 0;
  bb_misc *misc = BB_NEW(ix->arena, bb_misc, 1);
  bb_misc_port *in = BB_NEW(ix->arena, bb_misc_port, node->nin),
               *out = BB_NEW(ix->arena, bb_misc_port, node->nout);
  for (uint32_t i = 0; i < node->nin; i++) present += node->in[i] != BB_NONE;
  *misc = *node->misc;
  misc->nin = node->nin, misc->nout = node->nout;
  misc->in = in, misc->out = out;
  uint32_t at = bb_ix_node_add(ix, BB_IX_MISC, node->name, present, 0, NULL), slot = 0;
  ix->node[at].misc = misc;
  for (uint32_t i = 0; i < node->nin; i++) {
    in[i].absent = node->in[i] == BB_NONE;
    if (in[i].absent) continue;
    bb_flat x = *bb_flat_of(f, node->in[i]);
    in[i] = port_of(f, node->in[i], bb_flat_leaves(&x), x.leaf);
    bb_flat_use_whole(f, at, slot++, &x);
  }
  for (uint32_t i = 0; i < node->nout; i++) {
    out[i].absent = node->out[i] == BB_NONE;
    if (out[i].absent) continue;
    uint32_t as = f->classes->stored_as[node->out[i]];
    bb_flat x = bb_flat_of_shape(f, as == BB_NONE ? node->out[i] : as);
    uint32_t rank = bb_flat_place_all(&x);
    out[i] = port_of(f, node->out[i], rank, x.leaf);
    x.value = bb_ix_result(ix, at, out[i].dtype, rank, x.leaf);
    f->flat[as == BB_NONE ? node->out[i] : as] = x;
  }
}

void bb_flatten_reshape(bb_flattening *f, const bb_array_node *node, bool copied) {
  if (f->classes->stored_as[node->in[0]] == node->out[0]) return; /* it is there already */
  bb_flat in = *bb_flat_of(f, node->in[0]), out = bb_flat_of_shape(f, node->out[0]);
  if (copied) {
    uint32_t rank = bb_flat_place_all(&out);
    out.value = add_copy(f, node->name, in, node->in[0], rank, out.leaf, node->out[0]);
  } else {
    out.value = in.value;
    for (uint32_t k = 0; k < bb_flat_leaves(&out); k++) out.at[k] = in.at[k];
  }
  f->flat[node->out[0]] = out;
}

/* --- slices and joins --- */

/* A flat whose axis `axis` is one leaf of class `class` (BB_NONE: no leaf); the others stay. */
static bb_flat with_axis(bb_flattening *f, const bb_flat *x, uint32_t axis, uint32_t class) {
  uint32_t had = bb_flat_axis_leaves(x, axis), has = class != BB_NONE, n = 0;
  bb_flat y = {.value = x->value, .rank = x->rank};
  y.first = BB_NEW(f->scratch, uint32_t, (size_t)x->rank + 1);
  y.leaf = BB_NEW(f->scratch, uint32_t, bb_flat_leaves(x) - had + has);
  y.at = BB_NEW(f->scratch, uint32_t, bb_flat_leaves(x) - had + has);
  for (uint32_t a = 0; a < x->rank; a++) {
    y.first[a] = n;
    if (a == axis && has) y.leaf[n++] = class;
    for (uint32_t k = x->first[a]; a != axis && k < x->first[a + 1]; k++) {
      y.leaf[n] = x->leaf[k];
      y.at[n++] = x->at[k];
    }
  }
  y.first[x->rank] = n;
  return y;
}

/* A copy of a value whose axis `axis` is not split. */
static bb_flat unsplit_axis(bb_flattening *f, const char *name, const bb_flat *x, uint32_t axis,
                            uint32_t array_value) {
  bb_flat y = with_axis(f, x, axis, bb_ix_class(f->ix, f->array->value[array_value].shape[axis]));
  uint32_t rank = bb_flat_place_all(&y);
  y.value = add_copy(f, name, *x, array_value, rank, y.leaf, array_value);
  return y;
}

/* The same flat, nothing placed, without one leaf of an axis. */
static bb_flat without_leaf(bb_flattening *f, const bb_flat *x, uint32_t axis, uint32_t leaf) {
  bb_flat y = {.value = BB_NONE, .rank = x->rank};
  y.first = BB_NEW(f->scratch, uint32_t, (size_t)x->rank + 1);
  y.leaf = BB_NEW(f->scratch, uint32_t, bb_flat_leaves(x));
  y.at = BB_NEW(f->scratch, uint32_t, bb_flat_leaves(x));
  for (uint32_t a = 0; a <= x->rank; a++) y.first[a] = x->first[a] - (a > axis);
  for (uint32_t k = 0; k < bb_flat_leaves(&y); k++) {
    y.leaf[k] = x->leaf[k < leaf ? k : k + 1];
    y.at[k] = BB_NONE;
  }
  return y;
}

/* Elements of the outermost leaf of an axis; inner leaves are whole. */
static uint32_t add_slice(bb_flattening *f, const char *name, bb_flat *x, uint32_t axis,
                          bb_flat *out, int64_t start, int64_t step) {
  bb_ix *ix = f->ix;
  bb_ix_value v = ix->value[x->value];
  uint32_t source = x->first[axis], result = out->first[axis], cut = x->at[source];
  bool keeps = bb_flat_axis_leaves(out, axis) == bb_flat_axis_leaves(x, axis);
  uint32_t *dim = BB_NEW(f->scratch, uint32_t, (size_t)v.rank + 1),
           *index = BB_NEW(f->scratch, uint32_t, v.rank);
  uint32_t rank = 0;
  for (uint32_t a = 0; a < v.rank; a++) {
    index[a] = rank;
    if (a == cut && !keeps) continue;
    dim[rank++] = a == cut ? out->leaf[result] : v.dim[a];
  }
  uint32_t at = keeps ? index[cut] : rank, indices = rank;
  if (!keeps) { /* one element: an index beyond the result's axes, of extent 1 */
    index[cut] = rank;
    dim[indices++] = bb_ix_class(ix, bb_extent_number(ix->program, 1));
  }
  for (uint32_t k = 0; k < bb_flat_leaves(x); k++) {
    if (k == source || x->at[k] == BB_NONE) continue;
    uint32_t to = k < source || keeps ? k : k - 1;
    out->at[to] = index[x->at[k]];
  }
  if (keeps) out->at[result] = at;
  uint32_t value = bb_ix_add(ix, BB_IX_SLICE, name, v.dtype, 1, rank, indices, dim);
  bb_ix_node *node = bb_ix_node_of(ix, value);
  node->at = at, node->start = start, node->step = step;
  bb_ix_use(ix, ix->value[value].node, 0, x->value, index);
  return value;
}

void bb_flatten_slice(bb_flattening *f, const bb_array_node *node, bool copied) {
  bb_flat x = *bb_flat_of(f, node->in[0]), out = bb_flat_of_shape(f, node->out[0]), want = out;
  uint32_t axis = (uint32_t)node->ints[0];
  if (copied && bb_flat_axis_leaves(&x, axis) > 1)
    x = unsplit_axis(f, node->name, &x, axis, node->in[0]);
  copied = copied && bb_flat_axis_leaves(&out, axis) > 1;
  if (copied)
    out = with_axis(f, &out, axis, bb_ix_class(f->ix, f->array->value[node->out[0]].shape[axis]));
  bool empty = bb_flat_axis_leaves(&x, axis) == 0; /* an axis of extent 1, or none is left of it */
  bool lacks = !empty && x.at[x.first[axis]] == BB_NONE;
  bool same =
      !empty && bb_flat_axis_leaves(&out, axis) &&
      bb_ix_find(f->ix, x.leaf[x.first[axis]]) == bb_ix_find(f->ix, out.leaf[out.first[axis]]) &&
      node->ints[2] == 1;
  for (uint32_t k = 0; k < bb_flat_leaves(&out); k++) out.at[k] = BB_NONE;
  if (empty || lacks || same) {
    bool shorter = bb_flat_leaves(&out) < bb_flat_leaves(&x);
    uint32_t cut = x.first[axis];
    out.value = x.value;
    for (uint32_t k = 0; k < bb_flat_leaves(&x); k++)
      if (!shorter || k != cut) out.at[shorter && k > cut ? k - 1 : k] = x.at[k];
  } else {
    int64_t start = node->ints[1];
    for (uint32_t k = x.first[axis] + 1; k < x.first[axis + 1]; k++) {
      int64_t inner = bb_extent_value(bb_ix_extent(f->ix, x.leaf[k]));
      if (start) start /= inner;
    }
    out.value = add_slice(f, node->name, &x, axis, &out, start, node->ints[2]);
  }
  if (copied) {
    uint32_t rank = bb_flat_place_all(&want);
    want.value = add_copy(f, node->name, out, node->out[0], rank, want.leaf, node->out[0]);
    out = want;
  }
  f->flat[node->out[0]] = out;
}

/* The axis of a value in windows: an axis of places, and behind it one of taps. */
static uint32_t add_windows(bb_flattening *f, const bb_array_node *node, const bb_flat *x,
                            bb_flat *out) {
  bb_ix *ix = f->ix;
  const int64_t *ints = node->ints;
  bb_ix_value v = ix->value[x->value];
  uint32_t axis = (uint32_t)ints[0], source = x->first[axis], cut = x->at[source];
  uint32_t *dim = BB_NEW(f->scratch, uint32_t, (size_t)v.rank + 1),
           *index = BB_NEW(f->scratch, uint32_t, v.rank);
  for (uint32_t a = 0; a < v.rank; a++) {
    index[a] = a + (a > cut);
    dim[index[a]] = a == cut ? out->leaf[out->first[axis]] : v.dim[a];
  }
  dim[cut + 1] = out->leaf[out->first[axis + 1]];
  for (uint32_t k = 0; k < bb_flat_leaves(x); k++)
    if (x->at[k] != BB_NONE) out->at[k + (k > source)] = index[x->at[k]];
  out->at[out->first[axis + 1]] = cut + 1;
  uint32_t value =
      bb_ix_add(ix, BB_IX_WINDOWS, node->name, v.dtype, 1, v.rank + 1, v.rank + 1, dim);
  bb_ix_node *made = bb_ix_node_of(ix, value);
  made->at = cut, made->start = ints[1], made->step = ints[2], made->by = ints[3];
  bb_ix_use(ix, ix->value[value].node, 0, x->value, index);
  return value;
}

/* Classes of windows are never split (factor.c). */
void bb_flatten_windows(bb_flattening *f, const bb_array_node *node) {
  bb_flat x = *bb_flat_of(f, node->in[0]), out = bb_flat_of_shape(f, node->out[0]);
  uint32_t axis = (uint32_t)node->ints[0];
  if (x.at[x.first[axis]] == BB_NONE) bb_flat_materialise(f, &x); /* alike along the axis */
  for (uint32_t k = 0; k < bb_flat_leaves(&out); k++) out.at[k] = BB_NONE;
  if (node->ints[5] == 1) /* taps have no axis */
    out.value = add_slice(f, node->name, &x, axis, &out, node->ints[1], node->ints[2]);
  else
    out.value = add_windows(f, node, &x, &out);
  f->flat[node->out[0]] = out;
}

/* The axis is open and never split (factor.c): it is one leaf. */
void bb_flatten_pad(bb_flattening *f, const bb_array_node *node) {
  bb_ix *ix = f->ix;
  bb_flat x = *bb_flat_of(f, node->in[0]), out = bb_flat_of_shape(f, node->out[0]);
  uint32_t axis = (uint32_t)node->ints[0], leaf = x.first[axis];
  if (x.at[leaf] == BB_NONE) bb_flat_materialise(f, &x); /* alike along the axis */
  bb_ix_value v = ix->value[x.value];
  uint32_t *dim = BB_NEW(f->scratch, uint32_t, v.rank),
           *index = BB_NEW(f->scratch, uint32_t, v.rank);
  for (uint32_t a = 0; a < v.rank; a++) {
    index[a] = a;
    dim[a] = a == x.at[leaf] ? out.leaf[out.first[axis]] : v.dim[a];
  }
  for (uint32_t k = 0; k < bb_flat_leaves(&out); k++) out.at[k] = x.at[k];
  out.value = bb_ix_add(ix, BB_IX_PAD, node->name, v.dtype, 1, v.rank, v.rank, dim);
  bb_ix_node *made = bb_ix_node_of(ix, out.value);
  made->at = x.at[leaf], made->start = node->ints[1], made->expr = node->expr;
  bb_ix_use(ix, ix->value[out.value].node, 0, x.value, index);
  f->flat[node->out[0]] = out;
}

/* Places the leaves of the result that some piece has, and the joined one. */
static uint32_t place_joined(bb_flattening *f, bb_flat *out, uint32_t joined, uint32_t count,
                             const bb_flat *piece, uint32_t axis) {
  bool *present = BB_NEW(f->scratch, bool, bb_flat_leaves(out));
  present[joined] = true;
  for (uint32_t i = 0; i < count; i++)
    for (uint32_t k = 0; k < bb_flat_leaves(&piece[i]); k++) {
      uint32_t shift = bb_flat_axis_leaves(out, axis) - bb_flat_axis_leaves(&piece[i], axis);
      uint32_t to = k < piece[i].first[axis] ? k : k + shift;
      if (piece[i].at[k] != BB_NONE) present[to] = true;
    }
  uint32_t rank = 0;
  for (uint32_t k = 0; k < bb_flat_leaves(out); k++) out->at[k] = present[k] ? rank++ : BB_NONE;
  return rank;
}

/* Pieces of a join have one kind of list: where one varies along an axis that another is constant
 * along, all are written out. */
static void match_pieces(bb_flattening *f, uint32_t count, bb_flat *piece, uint32_t axis) {
  bool differ = false;
  for (uint32_t i = 1; i < count; i++)
    for (uint32_t k = 0; k < bb_flat_leaves(&piece[i]); k++) {
      uint32_t shift = bb_flat_axis_leaves(&piece[0], axis) - bb_flat_axis_leaves(&piece[i], axis);
      bool along = k >= piece[i].first[axis] && k < piece[i].first[axis + 1];
      uint32_t same = k < piece[i].first[axis] ? k : k + shift;
      differ |= !along && (piece[i].at[k] == BB_NONE) != (piece[0].at[same] == BB_NONE);
    }
  for (uint32_t i = 0; differ && i < count; i++) bb_flat_materialise(f, &piece[i]);
}

enum { MOST_RUNS = 4 }; /* that one operand of a join becomes: each is a nest of its own */

/* How many runs of the innermost leaf an axis of several leaves is; 0: too many, or not known. */
static uint32_t count_runs(bb_flattening *f, const bb_flat *x, uint32_t axis) {
  int64_t count = 1;
  for (uint32_t k = x->first[axis]; k + 1 < x->first[axis + 1]; k++) {
    int64_t extent = bb_extent_value(bb_ix_extent(f->ix, x->leaf[k]));
    if (x->at[k] == BB_NONE || extent < 1 || extent > MOST_RUNS / count) return 0;
    count *= extent;
  }
  return (uint32_t)count;
}

/* Run `number` of an axis: all its leaves but the innermost at one place. */
static bb_flat run_of(bb_flattening *f, const char *name, const bb_flat *x, uint32_t axis,
                      uint32_t number) {
  bb_flat run = *x;
  while (bb_flat_axis_leaves(&run, axis) > 1) {
    uint32_t first = run.first[axis], inner = 1;
    for (uint32_t k = first + 1; k + 1 < run.first[axis + 1]; k++)
      inner *= (uint32_t)bb_extent_value(bb_ix_extent(f->ix, run.leaf[k]));
    bb_flat rest = without_leaf(f, &run, axis, first);
    rest.value = add_slice(f, name, &run, axis, &rest, number / inner, 1);
    number %= inner;
    run = rest;
  }
  return run;
}

/* The operands of a join.  One whose axis is several leaves, where the joined axis cannot be split so,
 * stands for its runs, one after the other; or for a copy, if they are too many. */
static uint32_t take_pieces(bb_flattening *f, const bb_array_node *node, uint32_t axis, bool copied,
                            bb_flat **pieces) {
  uint32_t count = 0, capacity = 0;
  *pieces = NULL;
  for (uint32_t i = 0; i < node->nin; i++) {
    bb_flat piece = *bb_flat_of(f, node->in[i]);
    bool apart = copied && bb_flat_axis_leaves(&piece, axis) > 1;
    uint32_t runs = apart ? count_runs(f, &piece, axis) : 1;
    if (!runs) piece = unsplit_axis(f, node->name, &piece, axis, node->in[i]);
    if (!runs) runs = 1, apart = false;
    BB_GROW(f->scratch, *pieces, capacity, (size_t)count + runs);
    for (uint32_t r = 0; r < runs; r++)
      (*pieces)[count++] = apart ? run_of(f, node->name, &piece, axis, r) : piece;
  }
  return count;
}

void bb_flatten_join(bb_flattening *f, const bb_array_node *node, bool copied) {
  bb_ix *ix = f->ix;
  uint32_t axis = (uint32_t)node->ints[0];
  bb_flat out = bb_flat_of_shape(f, node->out[0]), want = out;
  if (bb_flat_axis_leaves(&out, axis) == 0) { /* one element in all: the piece that has it */
    for (uint32_t i = 0; i < node->nin; i++)
      if (bb_extent_value(f->array->value[node->in[i]].shape[axis]) == 1)
        out = *bb_flat_of(f, node->in[i]);
    f->flat[node->out[0]] = out;
    return;
  }
  bb_flat *piece;
  uint32_t pieces = take_pieces(f, node, axis, copied, &piece);
  for (uint32_t i = 0; i < pieces; i++) {
    for (uint32_t k = piece[i].first[axis]; k < piece[i].first[axis + 1]; k++)
      if (piece[i].at[k] == BB_NONE) {
        bb_flat_straighten(f, &piece[i]);
        break;
      }
  }
  match_pieces(f, pieces, piece, axis);
  copied = copied && bb_flat_axis_leaves(&out, axis) > 1;
  if (copied)
    out = with_axis(f, &out, axis, bb_ix_class(ix, f->array->value[node->out[0]].shape[axis]));
  uint32_t joined = out.first[axis];
  uint32_t rank = place_joined(f, &out, joined, pieces, piece, axis);
  uint32_t *dim = BB_NEW(f->scratch, uint32_t, rank);
  for (uint32_t k = 0; k < bb_flat_leaves(&out); k++)
    if (out.at[k] != BB_NONE) dim[out.at[k]] = out.leaf[k];
  bb_dtype dtype = f->array->value[node->out[0]].dtype;
  out.value = bb_ix_add(ix, BB_IX_JOIN, node->name, dtype, pieces, rank, rank, dim);
  bb_ix_node_of(ix, out.value)->at = out.at[joined];
  for (uint32_t i = 0; i < pieces; i++) {
    uint32_t *index = BB_NEW(f->scratch, uint32_t, ix->value[piece[i].value].rank);
    uint32_t shift = bb_flat_axis_leaves(&out, axis) - bb_flat_axis_leaves(&piece[i], axis);
    for (uint32_t k = 0; k < bb_flat_leaves(&piece[i]); k++)
      if (piece[i].at[k] != BB_NONE)
        index[piece[i].at[k]] = out.at[k < piece[i].first[axis] ? k : k + shift];
    bb_ix_use(ix, ix->value[out.value].node, i, piece[i].value, index);
  }
  if (copied) {
    uint32_t leaves = bb_flat_place_all(&want);
    want.value = add_copy(f, node->name, out, node->out[0], leaves, want.leaf, node->out[0]);
    out = want;
  }
  f->flat[node->out[0]] = out;
}
