/* flatten.c - from an array program, whose axes have classes, to its index form.
 *
 * Reshape, transpose and broadcast make another flat of the same value.
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
static uint32_t place_all(bb_flat *x) {
  for (uint32_t k = 0; k < bb_flat_leaves(x); k++) x->at[k] = k;
  return bb_flat_leaves(x);
}

static uint32_t add_source(bb_flattening *f, uint32_t array_value) {
  bb_ix *ix = f->ix;
  bb_flat x = bb_flat_of_shape(f, array_value);
  const bb_array_value *v = &f->array->value[array_value];
  uint32_t rank = place_all(&x);
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

/* The extent as an expression. */
const bb_expr *bb_flat_extent(bb_flattening *f, const bb_extent *extent) {
  bb_program *p = f->ix->program;
  const bb_expr *e = NULL;
  if (extent->factor != 1 || !extent->count) e = bb_expr_const(p, BB_I64, (double)extent->factor);
  for (uint32_t s = 0; s < extent->count; s++) {
    const bb_expr *symbol = bb_expr_symbol(p, extent->symbol[s]);
    e = e ? bb_expr_make(p, BB_X_MUL, e, symbol, NULL) : symbol;
  }
  return e;
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
  place_all(x);
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
    const bb_expr *extent = bb_flat_extent(c->f, bb_ix_extent(c->f->ix, c->out->leaf[k]));
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

/* --- contractions --- */

enum { IN_A = 1, IN_B = 2, IN_OUT = 4 };

/* A leaf of a label of a contraction, and where it stands. */
typedef struct term {
  uint32_t class, axis_a, axis_b, leaf_out, where, index;
} term;

typedef struct contraction {
  bb_flattening *f;
  const bb_array_node *node;
  const bb_flat *a, *b;
  bb_flat out;
  uint32_t count;
  term *term;
} contraction;

static int64_t axis_with_label(const int64_t *labels, int64_t rank, int64_t label) {
  for (int64_t a = 0; a < rank; a++)
    if (labels[a] == label) return a;
  return -1;
}

/* The leaves of one label; an operand whose axis has extent 1 does not have them. */
static void add_terms(contraction *c, int64_t label) {
  const int64_t *ints = c->node->ints;
  const int64_t *la = ints + 3, *lb = la + ints[0], *lo = lb + ints[1];
  int64_t a = axis_with_label(la, ints[0], label), b = axis_with_label(lb, ints[1], label),
          o = axis_with_label(lo, ints[2], label);
  const bb_flat *from = NULL;
  uint32_t axis = 0;
  if (a >= 0 && bb_flat_axis_leaves(c->a, (uint32_t)a)) from = c->a, axis = (uint32_t)a;
  if (!from && b >= 0 && bb_flat_axis_leaves(c->b, (uint32_t)b)) from = c->b, axis = (uint32_t)b;
  if (!from) return;
  for (uint32_t k = 0; k < bb_flat_axis_leaves(from, axis); k++) {
    term *t = &c->term[c->count++];
    *t = (term){.class = from->leaf[from->first[axis] + k], .axis_a = BB_NONE, .axis_b = BB_NONE};
    if (a >= 0 && bb_flat_axis_leaves(c->a, (uint32_t)a)) t->axis_a = c->a->at[c->a->first[a] + k];
    if (b >= 0 && bb_flat_axis_leaves(c->b, (uint32_t)b)) t->axis_b = c->b->at[c->b->first[b] + k];
    t->leaf_out = o >= 0 ? c->out.first[o] + k : BB_NONE;
    t->where = (t->axis_a != BB_NONE ? IN_A : 0) | (t->axis_b != BB_NONE ? IN_B : 0) |
               (o >= 0 ? IN_OUT : 0);
  }
}

static void collect_terms(contraction *c) {
  const int64_t *ints = c->node->ints, *la = ints + 3, *lb = la + ints[0];
  c->term = BB_NEW(c->f->scratch, term, (size_t)bb_flat_leaves(c->a) + bb_flat_leaves(c->b));
  for (int64_t a = 0; a < ints[0]; a++) add_terms(c, la[a]);
  for (int64_t b = 0; b < ints[1]; b++)
    if (axis_with_label(la, ints[0], lb[b]) < 0) add_terms(c, lb[b]);
}

/* Numbers the terms that stand in `where`: those of the result in the order of its axes, those
 * summed over in the order of the operands' labels. */
static void number_terms(contraction *c, uint32_t where, uint32_t *next) {
  for (;;) {
    term *least = NULL;
    for (uint32_t i = 0; i < c->count; i++) {
      term *t = &c->term[i];
      if (t->where != where || t->index != BB_NONE) continue;
      if (!least || (where & IN_OUT && t->leaf_out < least->leaf_out)) least = t;
    }
    if (!least) return;
    least->index = (*next)++;
  }
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

static uint32_t sum_lonely(contraction *c, uint32_t side, uint32_t value) {
  bb_flattening *f = c->f;
  uint32_t rank = f->ix->value[value].rank;
  bool *gone = BB_NEW(f->scratch, bool, rank);
  uint32_t *kept = BB_NEW(f->scratch, uint32_t, rank);
  for (uint32_t i = 0; i < c->count; i++)
    if (c->term[i].where == side) gone[side == IN_A ? c->term[i].axis_a : c->term[i].axis_b] = true;
  uint32_t out = bb_flat_sum(f, c->node->name, value, gone, kept);
  for (uint32_t i = 0; i < c->count; i++) {
    uint32_t *axis = side == IN_A ? &c->term[i].axis_a : &c->term[i].axis_b;
    if (*axis != BB_NONE) *axis = kept[*axis];
  }
  return out;
}

/* Operands and result of extents that neither operand has: the sum is a multiple. */
static const bb_expr *lost_extents(contraction *c) {
  bb_program *p = c->f->ix->program;
  const bb_expr *factor = NULL;
  for (uint32_t i = 0; i < c->count; i++) {
    if (c->term[i].where != 0) continue;
    const bb_expr *e = bb_flat_extent(c->f, bb_ix_extent(c->f->ix, c->term[i].class));
    factor = factor ? bb_expr_make(p, BB_X_MUL, factor, e, NULL) : e;
  }
  return factor;
}

static uint32_t add_contract(contraction *c, uint32_t rank, uint32_t indices, const uint32_t *value,
                             uint32_t *const *index, const uint32_t *dim) {
  bb_flattening *f = c->f;
  bb_program *p = f->ix->program;
  bb_dtype dtype = f->array->value[c->node->out[0]].dtype;
  if (rank == indices) {
    const bb_expr *product =
        bb_expr_make(p, BB_X_MUL, bb_expr_arg(p, dtype, 0), bb_expr_arg(p, dtype, 1), NULL);
    return bb_flat_elementwise(f, c->node->name, product, rank, dim, 2, value, index);
  }
  uint32_t out = bb_ix_add(f->ix, BB_IX_CONTRACT, c->node->name, dtype, 2, rank, indices, dim);
  for (uint32_t i = 0; i < 2; i++)
    bb_ix_use(f->ix, bb_ix_producer(f->ix, out), i, value[i], index[i]);
  return out;
}

/* Order of the indices: batch, rows, columns, each as in the result; then the sums. */
static void flatten_contract(bb_flattening *f, const bb_array_node *node) {
  contraction c = {.f = f, .node = node};
  bb_flat_of(f, node->in[0]);
  bb_flat_of(f, node->in[1]); /* both made before either is pointed to */
  c.a = &f->flat[node->in[0]], c.b = &f->flat[node->in[1]];
  c.out = bb_flat_of_shape(f, node->out[0]);
  collect_terms(&c);
  uint32_t value[2], next = 0, rank;
  for (uint32_t i = 0; i < c.count; i++) c.term[i].index = BB_NONE;
  value[0] = sum_lonely(&c, IN_A, c.a->value);
  value[1] = sum_lonely(&c, IN_B, c.b->value);
  number_terms(&c, IN_A | IN_B | IN_OUT, &next);
  number_terms(&c, IN_A | IN_OUT, &next);
  number_terms(&c, IN_B | IN_OUT, &next);
  rank = next;
  number_terms(&c, IN_A | IN_B, &next);
  uint32_t *dim = BB_NEW(f->scratch, uint32_t, next);
  uint32_t *index[2] = {BB_NEW(f->scratch, uint32_t, f->ix->value[value[0]].rank),
                        BB_NEW(f->scratch, uint32_t, f->ix->value[value[1]].rank)};
  for (uint32_t i = 0; i < c.count; i++) {
    const term *t = &c.term[i];
    if (t->index == BB_NONE) continue;
    dim[t->index] = t->class;
    if (t->where & IN_A) index[0][t->axis_a] = t->index;
    if (t->where & IN_B) index[1][t->axis_b] = t->index;
    if (t->where & IN_OUT) c.out.at[t->leaf_out] = t->index;
  }
  c.out.value = add_contract(&c, rank, next, value, index, dim);
  const bb_expr *factor = lost_extents(&c);
  if (factor) {
    bb_program *p = f->ix->program;
    bb_dtype dtype = f->ix->value[c.out.value].dtype;
    const bb_expr *e =
        bb_expr_make(p, BB_X_MUL, bb_expr_arg(p, dtype, 0), bb_expr_cast(p, dtype, factor), NULL);
    c.out.value = bb_flat_apply(f, node->name, e, c.out.value);
  }
  f->flat[node->out[0]] = c.out;
}

/* --- renamings --- */

static void flatten_transpose(bb_flattening *f, const bb_array_node *node) {
  const bb_flat *in = bb_flat_of(f, node->in[0]);
  bb_flat out = bb_flat_of_shape(f, node->out[0]);
  out.value = in->value;
  for (uint32_t a = 0; a < out.rank; a++)
    for (uint32_t k = 0; k < bb_flat_axis_leaves(&out, a); k++)
      out.at[out.first[a] + k] = in->at[in->first[node->ints[a]] + k];
  f->flat[node->out[0]] = out;
}

static void flatten_broadcast(bb_flattening *f, const bb_array_node *node) {
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

/* The value as operand `slot` of a misc node: whole, its indices the axes of the port. */
static void use_whole(bb_flattening *f, uint32_t node, uint32_t slot, bb_flat *x) {
  bb_flat_materialise(f, x);
  uint32_t *index = BB_NEW(f->scratch, uint32_t, bb_flat_leaves(x));
  for (uint32_t k = 0; k < bb_flat_leaves(x); k++) index[x->at[k]] = k;
  bb_ix_use(f->ix, node, slot, x->value, index);
}

/* A misc node that moves an operand's elements, in storage order, to the axes `dim`: the only
 * place where conversion copies data.  The operand has the shape of array value `from`, the result
 * that of `to`. */
static uint32_t add_copy(bb_flattening *f, const char *name, bb_flat in, uint32_t from,
                         uint32_t rank, const uint32_t *dim, uint32_t to) {
  bb_ix *ix = f->ix;
  bb_misc *misc = BB_NEW(ix->arena, bb_misc, 1);
  bb_misc_port *port = BB_NEW(ix->arena, bb_misc_port, 2);
  port[0] = port_of(f, from, bb_flat_leaves(&in), in.leaf);
  port[1] = port_of(f, to, rank, dim);
  *misc = (bb_misc){.domain = "",
                    .op = "Reshape",
                    .version = 13,
                    .nin = 1,
                    .nout = 1,
                    .in = port,
                    .out = port + 1};
  uint32_t node = bb_ix_node_add(ix, BB_IX_MISC, name, 1, 0, NULL);
  ix->node[node].misc = misc;
  uint32_t out = bb_ix_result(ix, node, port->dtype, rank, dim);
  use_whole(f, node, 0, &in);
  return out;
}

static void flatten_misc(bb_flattening *f, const bb_array_node *node) {
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
    use_whole(f, at, slot++, &x);
  }
  for (uint32_t i = 0; i < node->nout; i++) {
    out[i].absent = node->out[i] == BB_NONE;
    if (out[i].absent) continue;
    uint32_t as = f->classes->stored_as[node->out[i]];
    bb_flat x = bb_flat_of_shape(f, as == BB_NONE ? node->out[i] : as);
    uint32_t rank = place_all(&x);
    out[i] = port_of(f, node->out[i], rank, x.leaf);
    x.value = bb_ix_result(ix, at, out[i].dtype, rank, x.leaf);
    f->flat[as == BB_NONE ? node->out[i] : as] = x;
  }
}

static void flatten_reshape(bb_flattening *f, const bb_array_node *node, bool copied) {
  if (f->classes->stored_as[node->in[0]] == node->out[0]) return; /* it is there already */
  bb_flat in = *bb_flat_of(f, node->in[0]), out = bb_flat_of_shape(f, node->out[0]);
  if (copied) {
    uint32_t rank = place_all(&out);
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
  uint32_t rank = place_all(&y);
  y.value = add_copy(f, name, *x, array_value, rank, y.leaf, array_value);
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

static void flatten_slice(bb_flattening *f, const bb_array_node *node, bool copied) {
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
    uint32_t rank = place_all(&want);
    want.value = add_copy(f, node->name, out, node->out[0], rank, want.leaf, node->out[0]);
    out = want;
  }
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

static void flatten_join(bb_flattening *f, const bb_array_node *node, bool copied) {
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
  bb_flat *piece = BB_NEW(f->scratch, bb_flat, node->nin);
  for (uint32_t i = 0; i < node->nin; i++) {
    piece[i] = *bb_flat_of(f, node->in[i]);
    if (copied && bb_flat_axis_leaves(&piece[i], axis) > 1)
      piece[i] = unsplit_axis(f, node->name, &piece[i], axis, node->in[i]);
    for (uint32_t k = piece[i].first[axis]; k < piece[i].first[axis + 1]; k++)
      if (piece[i].at[k] == BB_NONE) {
        bb_flat_straighten(f, &piece[i]);
        break;
      }
  }
  match_pieces(f, node->nin, piece, axis);
  copied = copied && bb_flat_axis_leaves(&out, axis) > 1;
  if (copied)
    out = with_axis(f, &out, axis, bb_ix_class(ix, f->array->value[node->out[0]].shape[axis]));
  uint32_t joined = out.first[axis];
  uint32_t rank = place_joined(f, &out, joined, node->nin, piece, axis);
  uint32_t *dim = BB_NEW(f->scratch, uint32_t, rank);
  for (uint32_t k = 0; k < bb_flat_leaves(&out); k++)
    if (out.at[k] != BB_NONE) dim[out.at[k]] = out.leaf[k];
  bb_dtype dtype = f->array->value[node->out[0]].dtype;
  out.value = bb_ix_add(ix, BB_IX_JOIN, node->name, dtype, node->nin, rank, rank, dim);
  bb_ix_node_of(ix, out.value)->at = out.at[joined];
  for (uint32_t i = 0; i < node->nin; i++) {
    uint32_t *index = BB_NEW(f->scratch, uint32_t, ix->value[piece[i].value].rank);
    uint32_t shift = bb_flat_axis_leaves(&out, axis) - bb_flat_axis_leaves(&piece[i], axis);
    for (uint32_t k = 0; k < bb_flat_leaves(&piece[i]); k++)
      if (piece[i].at[k] != BB_NONE)
        index[piece[i].at[k]] = out.at[k < piece[i].first[axis] ? k : k + shift];
    bb_ix_use(ix, ix->value[out.value].node, i, piece[i].value, index);
  }
  if (copied) {
    uint32_t leaves = place_all(&want);
    want.value = add_copy(f, node->name, out, node->out[0], leaves, want.leaf, node->out[0]);
    out = want;
  }
  f->flat[node->out[0]] = out;
}

/* --- the whole program --- */

static void flatten_node(bb_flattening *f, const bb_array_node *node, bool copied) {
  switch (node->op) {
  case BB_A_ELEMENTWISE: flatten_elementwise(f, node); break;
  case BB_A_CONTRACT: flatten_contract(f, node); break;
  case BB_A_REDUCE: bb_flatten_reduce(f, node); break;
  case BB_A_ARGREDUCE: bb_flatten_argreduce(f, node); break;
  case BB_A_SCAN: bb_flatten_scan(f, node); break;
  case BB_A_RESHAPE: flatten_reshape(f, node, copied); break;
  case BB_A_TRANSPOSE: flatten_transpose(f, node); break;
  case BB_A_BROADCAST: flatten_broadcast(f, node); break;
  case BB_A_SLICE: flatten_slice(f, node, copied); break;
  case BB_A_CONCAT: flatten_join(f, node, copied); break;
  default: flatten_misc(f, node); break;
  }
}

static void flatten_output(bb_flattening *f, uint32_t number) {
  bb_ix *ix = f->ix;
  bb_flat x = *bb_flat_of(f, f->array->output[number]);
  uint32_t node = bb_ix_node_add(ix, BB_IX_OUTPUT, f->array->output_name[number], 1,
                                 bb_flat_leaves(&x), x.leaf);
  ix->node[node].at = number;
  ix->output[number] = node;
  use_whole(f, node, 0, &x);
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
