/* canon_refold.c - a fold of folds is one fold.
 *
 *     s = sum of x over j                           s = sum of x over i and j
 *     t = sum of c*s over i              ==>        t = c*s
 *
 * A mean over rows and then over channels, a maximum of maxima: what stands in the way of one pass is
 * only that they are written as two.  The axes that go are put in the order that x has them in, as if
 * all had been named at once.
 */
#include "canon.h"

#include <string.h>

static bool is_positive(const bb_expr *factor) {
  return factor->op == BB_X_CONST && factor->number > 0;
}

/* Does a fold of c*x make c times a fold of x? */
static bool commutes(const bb_monoid *monoid, const bb_expr *factor) {
  if (monoid->id == BB_MONOID_SUM) return true;
  return (monoid->id == BB_MONOID_MAX || monoid->id == BB_MONOID_MIN) &&
         (!factor || is_positive(factor));
}

/* What a node folds is the only use of another fold of that kind: gives it, and what scales it between. */
static uint32_t inner_fold(bb_canon *c, uint32_t at, bb_term *value, const bb_expr **scaled) {
  const bb_ix_node *node = &c->ix->node[at];
  *value = bb_canon_term(c, at, 0);
  *scaled = NULL;
  if (!bb_canon_only_user(c, value->value, at)) return BB_NONE;
  uint32_t maker = bb_ix_producer(c->ix, value->value);
  const bb_expr *factor = bb_canon_scale(c, maker);
  if (factor) {
    bb_term in = bb_canon_term(c, maker, 0);
    uint32_t *index = BB_NEW(c->scratch, uint32_t, bb_ix_rank(c->ix, in.value));
    for (uint32_t a = 0; a < bb_ix_rank(c->ix, in.value); a++) index[a] = value->index[in.index[a]];
    if (!bb_canon_only_user(c, in.value, maker)) return BB_NONE;
    *value = (bb_term){in.value, index};
    *scaled = c->ix->node[maker].expr;
    maker = bb_ix_producer(c->ix, in.value);
  }
  const bb_ix_node *inner = &c->ix->node[maker];
  bool same = inner->op == BB_IX_REDUCE && inner->monoid == node->monoid &&
              c->ix->value[inner->out[0]].dtype == c->ix->value[node->out[0]].dtype;
  return same && commutes(node->monoid, factor) ? maker : BB_NONE;
}

/* The indices of the one fold: those that the outer keeps, then in the order of x's axes what the two
 * fold.  at[a]: the index of axis a of x. */
static uint32_t join_indices(bb_canon *c, uint32_t outer, uint32_t inner, const bb_term *value,
                             uint32_t *dim, uint32_t *at) {
  const bb_ix_node *o = &c->ix->node[outer], *i = &c->ix->node[inner];
  uint32_t kept = bb_ix_rank(c->ix, o->out[0]), passed = bb_ix_rank(c->ix, i->out[0]), count = kept;
  memcpy(dim, o->dim, kept * sizeof *dim);
  for (uint32_t a = 0; a < bb_ix_rank(c->ix, i->in[0].value); a++) {
    uint32_t index = i->in[0].index[a];
    bool stays = index < passed && value->index[index] < kept;
    at[a] = stays ? value->index[index] : count;
    if (!stays) dim[count++] = i->dim[index];
  }
  return count;
}

bool bb_rule_refold(bb_canon *c, uint32_t at) {
  const bb_ix_node node = c->ix->node[at];
  bb_term value;
  const bb_expr *scaled;
  if (node.op != BB_IX_REDUCE || node.nin != 1) return false;
  uint32_t inner = inner_fold(c, at, &value, &scaled);
  if (inner == BB_NONE) return false;
  bb_term x = bb_canon_term(c, inner, 0);
  uint32_t most = node.indices + c->ix->node[inner].indices, kept = bb_ix_rank(c->ix, node.out[0]);
  uint32_t *dim = BB_NEW(c->scratch, uint32_t, most), *index = BB_NEW(c->scratch, uint32_t, most);
  uint32_t count = join_indices(c, at, inner, &value, dim, index);
  bb_dtype dtype = c->ix->value[node.out[0]].dtype;
  if (count != node.indices + c->ix->node[inner].indices - bb_ix_rank(c->ix, value.value))
    return false;
  uint32_t out = bb_ix_add(c->ix, BB_IX_REDUCE, node.name, dtype, 1, kept, count, dim);
  bb_ix_node_of(c->ix, out)->monoid = node.monoid;
  bb_ix_use(c->ix, bb_ix_producer(c->ix, out), 0, x.value, index);
  if (scaled) out = bb_canon_unary(c, node.name, scaled, out);
  bb_canon_replace(c, node.out[0], out, NULL, BB_NONE);
  return true;
}
