/* canon_elementwise.c - rules on elementwise nodes: tidying, composing, and the forms that the
 * fusion rules know (a sum or a product of a block and a vector).
 */
#include "canon.h"

#include <string.h>

static bool is_elementwise(const bb_canon *c, uint32_t node) {
  return c->ix->node[node].op == BB_IX_ELEMENTWISE;
}

/* --- tidy: operands without repetition, the expression canonical --- */

/* Is the order of two operands of a sum or product wrong?  Wide ones come first, constants last. */
static bool misplaced(const bb_canon *c, const bb_term *a, const bb_term *b) {
  const bb_ix_value *x = &c->ix->value[a->value], *y = &c->ix->value[b->value];
  if (x->rank != y->rank) return x->rank < y->rank;
  return x->once && !y->once;
}

static bool covers(const bb_canon *c, const bb_ix_node *node, const bb_expr *expr, uint32_t count,
                   const bb_term *in) {
  bool *has = BB_NEW(c->scratch, bool, node->indices);
  for (uint32_t i = 0; i < count; i++)
    for (uint32_t a = 0; a < bb_ix_rank(c->ix, in[i].value); a++) has[in[i].index[a]] = true;
  bb_ix_mark_coordinates(c->scratch, expr, has);
  for (uint32_t k = 0; k < node->indices; k++)
    if (!has[k]) return false;
  return true;
}

bool bb_rule_tidy(bb_canon *c, uint32_t at) {
  if (!is_elementwise(c, at)) return false;
  const bb_ix_node *node = &c->ix->node[at];
  bb_program *p = c->program;
  bb_term *in = BB_NEW(c->scratch, bb_term, node->nin);
  const bb_expr **with = BB_NEW(c->scratch, const bb_expr *, node->nin);
  uint32_t count = 0;
  const bb_expr *expr = node->expr;
  for (uint32_t i = 0; i < node->nin; i++) {
    bb_term term = bb_canon_term(c, at, i);
    bb_dtype dtype = c->ix->value[term.value].dtype;
    uint32_t k = 0;
    while (k < count && !bb_canon_same_term(c, &in[k], &term)) k++;
    if (k == count && bb_expr_uses_arg(expr, i)) in[count++] = term;
    with[i] = bb_expr_arg(p, dtype, k);
  }
  if (!covers(c, node, expr, count, in)) return false; /* an operand gives the result its axes */
  uint32_t x, y;
  const bb_expr *tidied = bb_canon_expr(p, bb_expr_substitute(p, expr, node->nin, with));
  if (count == 2 &&
      (bb_canon_is_binary(tidied, BB_X_ADD, &x, &y) ||
       bb_canon_is_binary(tidied, BB_X_MUL, &x, &y)) &&
      misplaced(c, &in[0], &in[1])) {
    bb_term first = in[0];
    in[0] = in[1], in[1] = first;
    tidied = bb_expr_make(p, tidied->op, bb_expr_arg(p, c->ix->value[in[0].value].dtype, 0),
                          bb_expr_arg(p, c->ix->value[in[1].value].dtype, 1), NULL);
  } else if (tidied == expr && count == node->nin) {
    return false;
  }
  if (tidied->dtype != expr->dtype) return false;
  bb_canon_set(c, at, tidied, count, in);
  return true;
}

/* --- forward: a node that copies its operand goes --- */

bool bb_rule_forward(bb_canon *c, uint32_t at) {
  const bb_ix_node *node = &c->ix->node[at];
  if (node->op != BB_IX_ELEMENTWISE || node->nin != 1 || node->expr->op != BB_X_ARG) return false;
  uint32_t value = node->in[0].value, out = node->out[0];
  if (bb_ix_rank(c->ix, value) != node->indices ||
      c->ix->value[value].dtype != c->ix->value[out].dtype)
    return false;
  bb_canon_replace(c, out, value, node->in[0].index, BB_NONE);
  return true;
}

/* --- compose: an operand's expression moves into its user's --- */

typedef struct composing {
  bb_canon *c;
  const uint32_t *index; /* of the user, for each index of the operand's node */
  const bb_expr *const *arg;
} composing;

static const bb_expr *compose_leaf(void *user, const bb_expr *leaf) {
  const composing *k = user;
  if (leaf->op == BB_X_ARG) return k->arg[leaf->index];
  if (leaf->op == BB_X_COORD && leaf->index >= BB_COORD_AXIS)
    return bb_expr_coord(k->c->program, BB_COORD_AXIS + k->index[leaf->index - BB_COORD_AXIS]);
  return leaf;
}

/* Are all axes of an elementwise node's operands as wide as its result? */
static bool is_even(const bb_canon *c, uint32_t at) {
  const bb_ix_node *node = &c->ix->node[at];
  for (uint32_t i = 0; i < node->nin; i++)
    if (bb_ix_rank(c->ix, node->in[i].value) != node->indices) return false;
  return true;
}

/* A factor that stands on a product stays a node of its own: that is where scales end (and what
 * the fusion rules look for). */
static bool is_scale_of_product(const bb_canon *c, uint32_t at) {
  return bb_canon_scale(c, at) && bb_canon_maker(c, at, 0, BB_IX_CONTRACT) != BB_NONE;
}

/* Made of reductions' results only? Such a value is small: composing repeats nothing that matters. */
static bool is_folded(const bb_canon *c, uint32_t value, uint32_t depth) {
  const bb_ix_node *maker = bb_ix_node_of(c->ix, value);
  if (maker->op == BB_IX_REDUCE) return true;
  if (maker->op != BB_IX_ELEMENTWISE || !maker->nin || depth == 8) return false;
  for (uint32_t i = 0; i < maker->nin; i++)
    if (!is_folded(c, maker->in[i].value, depth + 1)) return false;
  return true;
}

/* May the node at `from` move into its only user `at`, which has no other operands? */
static bool may_chain(const bb_canon *c, uint32_t at, uint32_t from) {
  const bb_ix_node *node = &c->ix->node[from];
  if (!is_even(c, from)) return false;
  if (node->nin == 1) return !is_scale_of_product(c, from) || bb_canon_scale(c, at);
  for (uint32_t i = 0; i < node->nin; i++)
    if (!is_folded(c, node->in[i].value, 0)) return false;
  return c->ix->node[at].indices == node->indices;
}

bool bb_canon_may_inline(const bb_canon *c, uint32_t at, uint32_t slot) {
  const bb_ix_node *node = &c->ix->node[at], *from = bb_ix_node_of(c->ix, node->in[slot].value);
  return bb_expr_may_join(node->expr, from->expr);
}

void bb_canon_inline(bb_canon *c, uint32_t at, uint32_t slot) {
  bb_ix *ix = c->ix;
  const bb_ix_node *node = &ix->node[at], *from = bb_ix_node_of(ix, node->in[slot].value);
  uint32_t count = node->nin - 1 + from->nin;
  bb_term *in = BB_NEW(c->scratch, bb_term, count);
  const bb_expr **with = BB_NEW(c->scratch, const bb_expr *, node->nin),
                **arg = BB_NEW(c->scratch, const bb_expr *, from->nin);
  uint32_t n = 0;
  for (uint32_t i = 0; i < node->nin; i++) {
    if (i == slot) continue;
    in[n] = bb_canon_term(c, at, i);
    with[i] = bb_expr_arg(c->program, ix->value[in[n].value].dtype, n);
    n++;
  }
  const uint32_t *outer = node->in[slot].index;
  for (uint32_t i = 0; i < from->nin; i++) {
    uint32_t rank = bb_ix_rank(c->ix, from->in[i].value),
             *index = BB_NEW(c->scratch, uint32_t, rank);
    for (uint32_t a = 0; a < rank; a++) index[a] = outer[from->in[i].index[a]];
    in[n] = (bb_term){from->in[i].value, index};
    arg[i] = bb_expr_arg(c->program, ix->value[in[n].value].dtype, n);
    n++;
  }
  composing k = {c, outer, arg};
  with[slot] = bb_expr_map_leaves(c->program, from->expr, compose_leaf, &k);
  const bb_expr *expr = bb_expr_substitute(c->program, node->expr, node->nin, with);
  bb_canon_set(c, at, bb_canon_expr(c->program, expr), count, in);
}

/* The tensor that an operand is a function of, looking through one node that only `at` uses. */
static bb_term root_of(bb_canon *c, uint32_t at, uint32_t slot, bool *through) {
  bb_term term = bb_canon_term(c, at, slot);
  uint32_t maker = bb_canon_maker(c, at, slot, BB_IX_ELEMENTWISE);
  *through = false;
  if (maker == BB_NONE || c->ix->node[maker].nin != 1 || !is_even(c, maker) ||
      !bb_canon_only_user(c, term.value, at))
    return term;
  bb_term inner = bb_canon_term(c, maker, 0);
  uint32_t rank = bb_ix_rank(c->ix, inner.value), *index = BB_NEW(c->scratch, uint32_t, rank);
  for (uint32_t a = 0; a < rank; a++) index[a] = term.index[inner.index[a]];
  *through = true;
  return (bb_term){inner.value, index};
}

/* All operands are functions of one tensor: the slot of one that is not the tensor itself. */
static uint32_t function_of_one(bb_canon *c, uint32_t at) {
  const bb_ix_node *node = &c->ix->node[at];
  if (node->nin < 2 || node->nin > 4) return BB_NONE;
  for (uint32_t base = 0; base < node->nin; base++) {
    bool through, all = true;
    bb_term root = root_of(c, at, base, &through);
    uint32_t found = through ? base : BB_NONE;
    for (uint32_t i = 0; all && i < node->nin; i++) {
      bb_term own = bb_canon_term(c, at, i), other = root_of(c, at, i, &through);
      if (bb_canon_same_term(c, &own, &root)) continue;
      all = through && bb_canon_same_term(c, &other, &root);
      if (all) found = i;
    }
    if (all && found != BB_NONE) return found;
  }
  return BB_NONE;
}

/* Has a node an index that only its coordinates say, as a label compared with each class has? */
static bool spreads(const bb_canon *c, uint32_t at) {
  const bb_ix_node *node = &c->ix->node[at];
  bool any = false;
  for (uint32_t k = 0; k < node->indices && !any; k++) {
    any = true;
    for (uint32_t i = 0; i < node->nin && any; i++) any = bb_canon_axis_of(c, at, i, k) == BB_NONE;
  }
  return any;
}

enum {
  CHEAP = 6
}; /* additions that cost less than a kernel of their own and its result in memory */

/* -v and 1/v are what the rules below make of a difference and a quotient. */
static bool is_inverse(const bb_expr *expr) {
  return expr->op == BB_X_NEG || (expr->op == BB_X_DIV && expr->a[0]->op == BB_X_CONST);
}

/* A mask as an input, compared or scaled before it is spread over batch and heads: loops that do only that
 * meet no others. */
static bool is_spread_mask(const bb_canon *c, uint32_t at, uint32_t slot) {
  uint32_t value = c->ix->node[at].in[slot].value;
  const bb_ix_node *maker = bb_ix_node_of(c->ix, value);
  bool spread = maker->op == BB_IX_ELEMENTWISE &&
                bb_ix_rank(c->ix, value) < c->ix->node[at].indices && !c->ix->value[value].once &&
                bb_canon_only_user(c, value, at) && bb_expr_cost(maker->expr) <= CHEAP &&
                !is_inverse(maker->expr);
  bool two = false; /* axes: what has one is a vector, which rules of their own move */
  for (uint32_t i = 0; i < maker->nin && spread; i++) {
    spread = bb_ix_node_of(c->ix, maker->in[i].value)->op == BB_IX_SOURCE;
    two |= bb_ix_rank(c->ix, maker->in[i].value) > 1;
  }
  return spread && two;
}

bool bb_rule_compose(bb_canon *c, uint32_t at) {
  if (!is_elementwise(c, at)) return false;
  const bb_ix_node *node = &c->ix->node[at];
  for (uint32_t i = 0; i < node->nin; i++) {
    if (!is_spread_mask(c, at, i) || !bb_canon_may_inline(c, at, i)) continue;
    bb_canon_inline(c, at, i);
    return true;
  }
  /* What has no operand, or none along some index, is a function of coordinates: computed where it is
   * used, with something that is there along every index. */
  for (uint32_t i = 0; i < node->nin; i++) {
    uint32_t maker = bb_canon_maker(c, at, i, BB_IX_ELEMENTWISE);
    if (maker == BB_NONE || !spreads(c, maker)) continue;
    if ((!c->ix->node[maker].nin && node->nin == 1) || !bb_canon_may_inline(c, at, i)) continue;
    bb_canon_inline(c, at, i);
    return true;
  }
  if (node->nin == 1) {
    uint32_t maker = bb_canon_maker(c, at, 0, BB_IX_ELEMENTWISE);
    if (maker == BB_NONE || !bb_canon_only_user(c, node->in[0].value, at) || !is_even(c, at) ||
        !may_chain(c, at, maker) || !bb_canon_may_inline(c, at, 0))
      return false;
    bb_canon_inline(c, at, 0);
    return true;
  }
  uint32_t slot = function_of_one(c, at);
  if (slot == BB_NONE || !bb_canon_may_inline(c, at, slot)) return false;
  bb_canon_inline(c, at, slot);
  return true;
}

/* --- negate, reciprocal: x - v and x / v for a vector v --- */

/* The second operand of a binary operator, if it has fewer axes than the first. */
static bool on_vector(const bb_canon *c, uint32_t at, bb_expr_op op, uint32_t *x, uint32_t *v) {
  const bb_ix_node *node = &c->ix->node[at];
  if (node->op != BB_IX_ELEMENTWISE || node->nin != 2) return false;
  if (!bb_canon_is_binary(node->expr, op, x, v) || !bb_dtype_is_float(node->expr->dtype))
    return false;
  return bb_ix_rank(c->ix, node->in[*x].value) == node->indices &&
         bb_ix_rank(c->ix, node->in[*v].value) < node->indices &&
         c->ix->value[node->in[*v].value].dtype == node->expr->dtype;
}

static void replace_vector(bb_canon *c, uint32_t at, bb_expr_op op, uint32_t x, uint32_t v,
                           const bb_expr *of_vector) {
  bb_program *p = c->program;
  bb_term in[2] = {bb_canon_term(c, at, x), bb_canon_term(c, at, v)};
  in[1].value = bb_canon_unary(c, c->ix->node[at].name, of_vector, in[1].value);
  const bb_expr *expr = bb_expr_make(p, op, bb_expr_arg(p, c->ix->value[in[0].value].dtype, 0),
                                     bb_expr_arg(p, c->ix->value[in[1].value].dtype, 1), NULL);
  bb_canon_set(c, at, expr, 2, in);
}

bool bb_rule_negate(bb_canon *c, uint32_t at) {
  uint32_t x, v;
  if (!on_vector(c, at, BB_X_SUB, &x, &v)) return false;
  const bb_expr *arg = bb_expr_arg(c->program, c->ix->node[at].expr->dtype, 0);
  replace_vector(c, at, BB_X_ADD, x, v, bb_expr_make(c->program, BB_X_NEG, arg, NULL, NULL));
  return true;
}

bool bb_rule_reciprocal(bb_canon *c, uint32_t at) {
  uint32_t x, v;
  if (!on_vector(c, at, BB_X_DIV, &x, &v) ||
      !bb_canon_may_invert(c, at, c->ix->node[at].in[v].value))
    return false;
  bb_dtype dtype = c->ix->node[at].expr->dtype;
  const bb_expr *arg = bb_expr_arg(c->program, dtype, 0),
                *one = bb_expr_const(c->program, dtype, 1);
  replace_vector(c, at, BB_X_MUL, x, v, bb_expr_make(c->program, BB_X_DIV, one, arg, NULL));
  return true;
}

/* --- outward: (x * g) * r -> (x * r) * g for a constant g and a computed r --- */

bool bb_rule_outward(bb_canon *c, uint32_t at) {
  uint32_t x, r, y, g;
  const bb_ix_node *node = &c->ix->node[at];
  if (node->op != BB_IX_ELEMENTWISE || node->nin != 2 ||
      !bb_canon_is_binary(node->expr, BB_X_MUL, &x, &r))
    return false;
  uint32_t maker = bb_canon_maker(c, at, x, BB_IX_ELEMENTWISE);
  if (maker == BB_NONE || c->ix->node[maker].nin != 2 ||
      !bb_canon_only_user(c, node->in[x].value, at) ||
      !bb_canon_is_binary(c->ix->node[maker].expr, BB_X_MUL, &y, &g))
    return false;
  if (c->ix->value[node->in[r].value].once || bb_ix_rank(c->ix, node->in[r].value) == node->indices)
    return false;
  const bb_ix_node *inner = &c->ix->node[maker];
  if (c->ix->value[inner->in[y].value].once) {
    uint32_t other = y;
    y = g, g = other;
  }
  if (!c->ix->value[inner->in[g].value].once || c->ix->value[inner->in[y].value].once ||
      bb_ix_rank(c->ix, inner->in[y].value) != inner->indices || inner->indices != node->indices)
    return false;
  const uint32_t *outer = node->in[x].index;
  bb_term in[2] = {bb_canon_term(c, maker, y), bb_canon_term(c, maker, g)}, rest;
  for (int i = 0; i < 2; i++) {
    uint32_t rank = bb_ix_rank(c->ix, in[i].value), *index = BB_NEW(c->scratch, uint32_t, rank);
    for (uint32_t a = 0; a < rank; a++) index[a] = outer[in[i].index[a]];
    in[i].index = index;
  }
  uint32_t *straight = BB_NEW(c->scratch, uint32_t, node->indices);
  for (uint32_t k = 0; k < node->indices; k++) straight[k] = k;
  bb_dtype dtype = node->expr->dtype;
  const bb_expr *product = bb_expr_make(c->program, BB_X_MUL, bb_expr_arg(c->program, dtype, 0),
                                        bb_expr_arg(c->program, dtype, 1), NULL);
  rest = bb_canon_term(c, at, r);
  uint32_t scaled = bb_canon_elementwise(c, node->name, product, node->indices, node->dim, 2,
                                         (bb_term[]){in[0], rest});
  bb_canon_set(c, at, product, 2, (bb_term[]){{scaled, straight}, in[1]});
  return true;
}
