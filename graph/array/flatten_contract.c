/* flatten_contract.c - a contraction in the index form: which leaves its labels have, and the order of
 * its indices.
 */
#include "flatten.h"

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
    const bb_expr *e = bb_array_extent(c->f->ix->program, bb_ix_extent(c->f->ix, c->term[i].class));
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
void bb_flatten_contract(bb_flattening *f, const bb_array_node *node) {
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
