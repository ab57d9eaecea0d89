/* flatten.c - from an array program, whose axes have classes, to its index form: the flat of each
 * value, elementwise nodes, and the walk over the program.
 */
#include "flatten.h"

#include <string.h>

/* --- flats --- */

/* The leaves of an array value's axes, none of them placed yet. */
bb_flat bb_flat_of_shape(bb_flattening *f, uint32_t array_value) {
  bb_ix_list leaves = {.arena = f->scratch};
  uint32_t rank = f->array->value[array_value].rank;
  bb_flat result = {.value = BB_NONE, .rank = rank};
  result.first = BB_NEW(f->scratch, uint32_t, (size_t)rank + 1);
  for (uint32_t a = 0; a < rank; a++) {
    uint32_t class = f->classes->axis[array_value][a];
    if (class != BB_NONE) bb_ix_leaves(f->ix, class, &leaves);
    result.first[a + 1] = leaves.count;
  }
  result.leaf = leaves.at;
  result.at = BB_NEW(f->scratch, uint32_t, leaves.count);
  for (uint32_t k = 0; k < leaves.count; k++) result.at[k] = BB_NONE;
  return result;
}

/* Every leaf is an axis of its own. */
uint32_t bb_flat_place_all(bb_flat *x) {
  for (uint32_t k = 0; k < bb_flat_leaves(x); k++) x->at[k] = k;
  return bb_flat_leaves(x);
}

static uint32_t add_source(bb_flattening *f, uint32_t array_value) {
  bb_ix *ix = f->ix;
  bb_flat x = bb_flat_of_shape(f, array_value);
  const bb_array_value *v = &f->array->value[array_value];
  uint32_t rank = bb_flat_place_all(&x);
  x.value = bb_ix_add(ix, BB_IX_SOURCE, v->name, v->dtype, 0, rank, rank, x.leaf);
  bb_ix_node *node = bb_ix_node_of(ix, x.value);
  bb_index *access = BB_NEW(ix->arena, bb_index, rank);
  for (uint32_t k = 0; k < rank; k++)
    access[k] = (bb_index){.kind = BB_INDEX_DIM, .dim = x.leaf[k], .step = 1};
  node->tensor = array_value;
  node->access = access;
  node->rank = rank;
  ix->value[x.value].once = v->data != NULL;
  ix->storage[array_value] = (bb_ix_list){.count = rank, .at = BB_NEW(ix->arena, uint32_t, rank)};
  if (rank) memcpy(ix->storage[array_value].at, x.leaf, rank * sizeof *x.leaf);
  f->flat[array_value] = x;
  return x.value;
}

bb_flat *bb_flat_of(bb_flattening *f, uint32_t array_value) {
  if (f->flat[array_value].value == BB_NONE) add_source(f, array_value);
  return &f->flat[array_value];
}

/* --- elementwise nodes --- */

/* An elementwise node over `count` leaves, in the order given; operand i's axis a is leaf
 * index[i][a]. */
uint32_t bb_flat_elementwise(bb_flattening *f, const char *name, const bb_expr *expr,
                             uint32_t count, const uint32_t *leaf, uint32_t nin,
                             const uint32_t *value, uint32_t *const *index) {
  uint32_t out = bb_ix_add(f->ix, BB_IX_ELEMENTWISE, name, expr->dtype, nin, count, count, leaf);
  bb_ix_node_of(f->ix, out)->expr = expr;
  for (uint32_t i = 0; i < nin; i++)
    bb_ix_use(f->ix, bb_ix_producer(f->ix, out), i, value[i], index[i]);
  return out;
}

/* The same value with every leaf of its flat an axis, in order. */
void bb_flat_straighten(bb_flattening *f, bb_flat *x) {
  bool straight = true;
  for (uint32_t k = 0; k < bb_flat_leaves(x); k++) straight &= x->at[k] == k;
  if (straight) return;
  const bb_ix_value *v = &f->ix->value[x->value];
  uint32_t *index = BB_NEW(f->scratch, uint32_t, v->rank);
  for (uint32_t k = 0; k < bb_flat_leaves(x); k++)
    if (x->at[k] != BB_NONE) index[x->at[k]] = k;
  x->at = BB_NEW(f->scratch, uint32_t, bb_flat_leaves(x));
  x->value = bb_flat_elementwise(f, v->name, bb_expr_arg(f->ix->program, v->dtype, 0),
                                 bb_flat_leaves(x), x->leaf, 1, &x->value, &index);
  bb_flat_place_all(x);
}

/* The same value with every leaf of its flat present. */
void bb_flat_materialise(bb_flattening *f, bb_flat *x) {
  for (uint32_t k = 0; k < bb_flat_leaves(x); k++)
    if (x->at[k] == BB_NONE) {
      bb_flat_straighten(f, x);
      return;
    }
}

/* A value that is a function of one value with the same axes. */
uint32_t bb_flat_apply(bb_flattening *f, const char *name, const bb_expr *expr, uint32_t value) {
  uint32_t rank = f->ix->value[value].rank, *index = BB_NEW(f->scratch, uint32_t, rank);
  for (uint32_t a = 0; a < rank; a++) index[a] = a;
  return bb_flat_elementwise(f, name, expr, rank, f->ix->value[value].dim, 1, &value, &index);
}

typedef struct coordinates {
  bb_flattening *f;
  const bb_flat *out;
  const uint32_t *index; /* of each leaf */
} coordinates;

/* The coordinate along an axis, from the indices of its leaves. */
static const bb_expr *axis_coordinate(void *user, const bb_expr *leaf) {
  const coordinates *c = user;
  bb_program *p = c->f->ix->program;
  if (leaf->op != BB_X_COORD || leaf->index < BB_COORD_AXIS) return leaf;
  uint32_t back = leaf->index - BB_COORD_AXIS;
  const bb_expr *sum = NULL;
  if (back >= c->out->rank) return bb_expr_const(p, BB_I64, 0);
  uint32_t axis = c->out->rank - 1 - back;
  for (uint32_t k = c->out->first[axis]; k < c->out->first[axis + 1]; k++) {
    const bb_expr *here = bb_expr_coord(p, BB_COORD_AXIS + c->index[k]);
    const bb_expr *extent = bb_array_extent(p, bb_ix_extent(c->f->ix, c->out->leaf[k]));
    if (sum) sum = bb_expr_make(p, BB_X_MUL, sum, extent, NULL);
    sum = sum ? bb_expr_make(p, BB_X_ADD, sum, here, NULL) : here;
  }
  return sum ? sum : bb_expr_const(p, BB_I64, 0);
}

/* Marks the leaves of the axes whose coordinate `expr` uses. */
static void mark_coordinates(bb_flattening *f, const bb_flat *out, const bb_expr *expr,
                             bool *present) {
  uint32_t count;
  if (!bb_expr_uses_coord(expr)) return;
  const bb_expr **node = bb_expr_postorder(f->scratch, expr, &count);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t back = node[i]->index - BB_COORD_AXIS;
    if (node[i]->op != BB_X_COORD || node[i]->index < BB_COORD_AXIS || back >= out->rank) continue;
    uint32_t axis = out->rank - 1 - back;
    for (uint32_t k = out->first[axis]; k < out->first[axis + 1]; k++) present[k] = true;
  }
}

/* The leaf of `out` for each axis of an operand that broadcasts to it. */
static uint32_t *leaf_of_axes(bb_flattening *f, const bb_flat *in, const bb_flat *out) {
  uint32_t *leaf = BB_NEW(f->scratch, uint32_t, f->ix->value[in->value].rank);
  for (uint32_t a = 0; a < in->rank; a++) {
    uint32_t to = out->first[out->rank - in->rank + a];
    for (uint32_t k = in->first[a]; k < in->first[a + 1]; k++, to++)
      if (in->at[k] != BB_NONE) leaf[in->at[k]] = to;
  }
  return leaf;
}

/* Numbers the leaves that are present: in the order of an operand that has them all, if there is
 * one (a transposed operand does not turn the loops around), else in the result's order. */
static uint32_t number_leaves(bb_flattening *f, const bb_flat *out, const bool *present,
                              uint32_t nin, const uint32_t *value, uint32_t *const *leaf,
                              uint32_t *number) {
  uint32_t count = 0;
  for (uint32_t k = 0; k < bb_flat_leaves(out); k++) {
    number[k] = BB_NONE;
    if (present[k]) number[k] = count++;
  }
  for (uint32_t i = 0; i < nin; i++) {
    if (f->ix->value[value[i]].rank != count) continue;
    for (uint32_t a = 0; a < count; a++) number[leaf[i][a]] = a;
    break;
  }
  return count;
}

static void flatten_elementwise(bb_flattening *f, const bb_array_node *node) {
  bb_flat out = bb_flat_of_shape(f, node->out[0]);
  bool *present = BB_NEW(f->scratch, bool, bb_flat_leaves(&out));
  uint32_t *value = BB_NEW(f->scratch, uint32_t, node->nin);
  uint32_t **leaf = BB_NEW(f->scratch, uint32_t *, node->nin);
  mark_coordinates(f, &out, node->expr, present);
  for (uint32_t i = 0; i < node->nin; i++) {
    const bb_flat *in = bb_flat_of(f, node->in[i]);
    value[i] = in->value;
    leaf[i] = leaf_of_axes(f, in, &out);
    for (uint32_t a = 0; a < f->ix->value[value[i]].rank; a++) present[leaf[i][a]] = true;
  }
  uint32_t count = number_leaves(f, &out, present, node->nin, value, leaf, out.at);
  uint32_t *dim = BB_NEW(f->scratch, uint32_t, count);
  for (uint32_t k = 0; k < bb_flat_leaves(&out); k++)
    if (out.at[k] != BB_NONE) dim[out.at[k]] = out.leaf[k];
  for (uint32_t i = 0; i < node->nin; i++)
    for (uint32_t a = 0; a < f->ix->value[value[i]].rank; a++) leaf[i][a] = out.at[leaf[i][a]];
  coordinates c = {f, &out, out.at};
  const bb_expr *expr = node->expr;
  if (bb_expr_uses_coord(expr))
    expr = bb_expr_map_leaves(f->ix->program, expr, axis_coordinate, &c);
  out.value = bb_flat_elementwise(f, node->name, expr, count, dim, node->nin, value, leaf);
  f->flat[node->out[0]] = out;
}

/* Sums an operand over axes that the other lacks and the result has not. */
uint32_t bb_flat_sum(bb_flattening *f, const char *name, uint32_t value, const bool *gone,
                     uint32_t *kept) {
  bb_ix_value v = f->ix->value[value];
  uint32_t *dim = BB_NEW(f->scratch, uint32_t, v.rank),
           *index = BB_NEW(f->scratch, uint32_t, v.rank);
  uint32_t rank = 0, n;
  for (uint32_t a = 0; a < v.rank; a++)
    if (!gone[a]) kept[a] = rank, index[a] = rank, dim[rank++] = v.dim[a];
  n = rank;
  for (uint32_t a = 0; a < v.rank; a++)
    if (gone[a]) kept[a] = BB_NONE, index[a] = n, dim[n++] = v.dim[a];
  if (n == rank) return value;
  uint32_t out = bb_ix_add(f->ix, BB_IX_REDUCE, name, v.dtype, 1, rank, n, dim);
  bb_ix_node_of(f->ix, out)->monoid = bb_monoid_get(BB_MONOID_SUM);
  bb_ix_use(f->ix, bb_ix_producer(f->ix, out), 0, value, index);
  return out;
}

/* The value as operand `slot` of a node: whole, its indices the axes of the port. */
void bb_flat_use_whole(bb_flattening *f, uint32_t node, uint32_t slot, bb_flat *x) {
  bb_flat_materialise(f, x);
  uint32_t *index = BB_NEW(f->scratch, uint32_t, bb_flat_leaves(x));
  for (uint32_t k = 0; k < bb_flat_leaves(x); k++) index[x->at[k]] = k;
  bb_ix_use(f->ix, node, slot, x->value, index);
}

/* --- the whole program --- */

static void flatten_node(bb_flattening *f, const bb_array_node *node, bool copied) {
  switch (node->op) {
  case BB_A_ELEMENTWISE: flatten_elementwise(f, node); break;
  case BB_A_CONTRACT: bb_flatten_contract(f, node); break;
  case BB_A_REDUCE: bb_flatten_reduce(f, node); break;
  case BB_A_ARGREDUCE: bb_flatten_argreduce(f, node); break;
  case BB_A_SCAN: bb_flatten_scan(f, node); break;
  case BB_A_RESHAPE: bb_flatten_reshape(f, node, copied); break;
  case BB_A_TRANSPOSE: bb_flatten_transpose(f, node); break;
  case BB_A_BROADCAST: bb_flatten_broadcast(f, node); break;
  case BB_A_SLICE: bb_flatten_slice(f, node, copied); break;
  case BB_A_WINDOWS: bb_flatten_windows(f, node); break;
  case BB_A_PAD: bb_flatten_pad(f, node); break;
  case BB_A_CONCAT: bb_flatten_join(f, node, copied); break;
  default: bb_flatten_misc(f, node); break;
  }
}

static void flatten_output(bb_flattening *f, uint32_t number) {
  bb_ix *ix = f->ix;
  bb_flat x = *bb_flat_of(f, f->array->output[number]);
  uint32_t node = bb_ix_node_add(ix, BB_IX_OUTPUT, f->array->output_name[number], 1,
                                 bb_flat_leaves(&x), x.leaf);
  ix->node[node].at = number;
  ix->output[number] = node;
  bb_flat_use_whole(f, node, 0, &x);
}

void bb_ix_flatten(bb_ix *ix, const bb_ix_classes *classes) {
  bb_flattening f = {.ix = ix, .array = ix->array, .classes = classes};
  f.scratch = bb_scratch(ix->program->ctx);
  f.flat = BB_NEW(f.scratch, bb_flat, ix->array->values);
  ix->storage = BB_NEW(ix->arena, bb_ix_list, ix->array->values);
  for (uint32_t v = 0; v < ix->array->values; v++) f.flat[v].value = BB_NONE;
  for (uint32_t i = 0; i < ix->array->inputs; i++) bb_flat_of(&f, ix->array->input[i]);
  for (uint32_t i = 0; i < ix->array->nodes; i++)
    if (!ix->array->node[i].removed) flatten_node(&f, &ix->array->node[i], classes->copied[i]);
  ix->output = BB_NEW(ix->arena, uint32_t, ix->array->outputs);
  for (uint32_t o = 0; o < ix->array->outputs; o++) flatten_output(&f, o);
  bb_scratch_end(f.scratch);
}

void bb_array_factor(bb_array *array) {
  bb_arena *scratch = bb_scratch(array->program->ctx);
  bb_ix *ix = bb_ix_create(array);
  bb_ix_classes classes = bb_ix_classify(ix, scratch);
  bb_ix_flatten(ix, &classes);
  array->index = ix;
  bb_scratch_end(scratch);
}
