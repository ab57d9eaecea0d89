/* canon_quotient.c - a quotient by a vector inside of an expression becomes a node of its own.
 *
 *     y = f16(x / v)                  ==>        q = x / v,             y = f16(q)
 *     y = x / v - 2 * (w / u)         ==>        q = x / v, r = w / u,  y = q - 2 * r
 *
 * A scale of rows can move behind the product that sums them only where it is an operator by itself, as most exporters
 * write it. Looked for through what is linear: casts, sums, differences and constant factors.
 */
#include "canon.h"

static bool is_quotient(const bb_canon *c, uint32_t at, const bb_expr *expr) {
  const bb_ix_node *node = &c->ix->node[at];
  uint32_t x, v;
  if (!bb_canon_is_binary(expr, BB_X_DIV, &x, &v) || !bb_dtype_is_float(expr->dtype)) return false;
  return bb_ix_rank(c->ix, node->in[x].value) == node->indices &&
         bb_ix_rank(c->ix, node->in[v].value) < node->indices &&
         c->ix->value[node->in[v].value].dtype == expr->dtype;
}

static void reach(const bb_expr *const *node, uint32_t count, const bb_expr *operand,
                  bool *linear) {
  for (uint32_t i = 0; i < count; i++) linear[i] |= node[i] == operand;
}

/* Marks the operands that an operator is linear in. */
static void reach_operands(const bb_expr *const *node, uint32_t at, bool *linear) {
  const bb_expr *x = node[at];
  switch (x->op) {
  case BB_X_DIV:
    if (bb_canon_is_fixed(x->a[1])) reach(node, at, x->a[0], linear);
    return;
  case BB_X_MUL:
    for (uint32_t i = 0; i < 2; i++)
      if (bb_canon_is_fixed(x->a[i])) reach(node, at, x->a[!i], linear);
    return;
  case BB_X_ADD:
  case BB_X_SUB: reach(node, at, x->a[1], linear); /* fall through */
  case BB_X_CAST:
  case BB_X_NEG: reach(node, at, x->a[0], linear); return;
  default: return;
  }
}

/* Expressions share what they have in common, so each is looked at once, from the top. */
static const bb_expr *find_quotient(const bb_canon *c, uint32_t at, const bb_expr *expr) {
  uint32_t count, quotients = 0;
  const bb_expr **node = bb_expr_postorder(c->scratch, expr, &count);
  for (uint32_t i = 0; i < count; i++) quotients += is_quotient(c, at, node[i]);
  if (!quotients) return NULL;
  bool *linear = BB_NEW(c->scratch, bool, count);
  linear[count - 1] = true;
  for (uint32_t i = count; i-- > 0;) {
    if (!linear[i]) continue;
    if (is_quotient(c, at, node[i])) return node[i];
    reach_operands(node, i, linear);
  }
  return NULL;
}

typedef struct exchange {
  const bb_expr *old, *with;
} exchange;

static const bb_expr *exchanged(void *user, bb_program *p, const bb_expr *node,
                                const bb_expr *const a[3]) {
  const exchange *e = user;
  if (node == e->old) return e->with;
  return a[0] ? bb_expr_rebuild(p, node, a) : node;
}

/* x / v of the node's own operands, over its indices. */
static uint32_t add_quotient(bb_canon *c, uint32_t at, const bb_expr *quotient) {
  const bb_ix_node *node = &c->ix->node[at];
  uint32_t x = quotient->a[0]->index, v = quotient->a[1]->index;
  bb_term in[2] = {bb_canon_term(c, at, x), bb_canon_term(c, at, v)};
  const bb_expr *arg[2] = {bb_expr_arg(c->program, quotient->a[0]->dtype, 0),
                           bb_expr_arg(c->program, quotient->a[1]->dtype, 1)};
  const bb_expr *expr = bb_expr_make(c->program, BB_X_DIV, arg[0], arg[1], NULL);
  return bb_canon_elementwise(c, node->name, expr, node->indices, node->dim, 2, in);
}

bool bb_rule_quotient(bb_canon *c, uint32_t at) {
  const bb_ix_node *node = &c->ix->node[at];
  if (node->op != BB_IX_ELEMENTWISE || node->nin < 2) return false;
  const bb_expr *quotient = find_quotient(c, at, node->expr);
  if (!quotient || quotient == node->expr) return false;
  uint32_t nin = node->nin, count = 0, made = add_quotient(c, at, quotient);
  node = &c->ix->node[at]; /* nodes move as one is added */
  exchange e = {quotient, bb_expr_arg(c->program, quotient->dtype, nin)};
  const bb_expr *expr = bb_expr_rewrite(c->program, node->expr, exchanged, &e);
  const bb_expr **with = BB_NEW(c->scratch, const bb_expr *, (size_t)nin + 1);
  bb_term *in = BB_NEW(c->scratch, bb_term, (size_t)nin + 1);
  uint32_t *straight = BB_NEW(c->scratch, uint32_t, node->indices);
  for (uint32_t k = 0; k < node->indices; k++) straight[k] = k;
  for (uint32_t i = 0; i <= nin; i++) {
    if (!bb_expr_uses_arg(expr, i)) continue;
    in[count] = i < nin ? bb_canon_term(c, at, i) : (bb_term){made, straight};
    with[i] = bb_expr_arg(c->program, c->ix->value[in[count].value].dtype, count);
    count++;
  }
  bb_canon_set(c, at, bb_expr_substitute(c->program, expr, nin + 1, with), count, in);
  return true;
}
