/* canon_linear.c - rules that rest on linearity: constant factors and shifts leave the operands of a
 * product, and central moments become raw ones.
 */
#include "canon.h"

#include <math.h>

static bool is_once(const bb_canon *c, uint32_t value) {
  return c->ix->value[value].once;
}

/* The term of `from`'s operand as the node behind `outer` sees it. */
static bb_term through(bb_canon *c, const uint32_t *outer, uint32_t from, uint32_t slot) {
  bb_term in = bb_canon_term(c, from, slot);
  uint32_t rank = bb_ix_rank(c->ix, in.value), *index = BB_NEW(c->scratch, uint32_t, rank);
  for (uint32_t a = 0; a < rank; a++) index[a] = outer[in.index[a]];
  return (bb_term){in.value, index};
}

static const uint32_t *straight(bb_canon *c, uint32_t count) {
  uint32_t *index = BB_NEW(c->scratch, uint32_t, count);
  for (uint32_t k = 0; k < count; k++) index[k] = k;
  return index;
}

static const bb_expr *binary(bb_canon *c, bb_expr_op op, bb_dtype dtype) {
  return bb_expr_make(c->program, op, bb_expr_arg(c->program, dtype, 0),
                      bb_expr_arg(c->program, dtype, 1), NULL);
}

/* --- scale: contract(c*x, y) -> c * contract(x, y) --- */

static bool all_users_contract(const bb_canon *c, uint32_t value) {
  if (c->ix->value[value].uses > 64) return false;
  BB_IX_EACH_USE(c->ix, value, node, slot) {
    if (c->ix->node[node].op != BB_IX_CONTRACT) return false;
  }
  return true;
}

bool bb_rule_scale(bb_canon *c, uint32_t at) {
  const bb_ix_node node = c->ix->node[at];
  if (node.op != BB_IX_CONTRACT) return false;
  for (uint32_t slot = 0; slot < 2; slot++) {
    uint32_t maker = bb_canon_maker(c, at, slot, BB_IX_ELEMENTWISE);
    const bb_expr *factor = maker == BB_NONE ? NULL : bb_canon_scale(c, maker);
    if (!factor || is_once(c, node.in[slot].value) || !all_users_contract(c, node.in[slot].value))
      continue;
    bb_term in[2] = {bb_canon_term(c, at, 0), bb_canon_term(c, at, 1)};
    in[slot] = through(c, in[slot].index, maker, 0);
    uint32_t out = node.out[0], rank = bb_ix_rank(c->ix, out);
    bb_dtype dtype = c->ix->value[out].dtype;
    uint32_t product = bb_canon_contract(c, node.name, dtype, rank, node.indices, node.dim, in);
    const bb_expr *scaled =
        bb_expr_make(c->program, BB_X_MUL, bb_expr_arg(c->program, dtype, 0), factor, NULL);
    if (scaled->dtype != dtype) return false;
    bb_canon_replace(c, out, bb_canon_unary(c, node.name, scaled, product), NULL, BB_NONE);
    return true;
  }
  return false;
}

/* --- scale form: a factor on a product is x*c, and c is n**-0.5 where it nearly is --- */

/* How many terms a contraction sums, or -1. */
static double terms_of(bb_canon *c, uint32_t contract) {
  const bb_ix_node *node = &c->ix->node[contract];
  double count = 1;
  for (uint32_t k = bb_ix_rank(c->ix, node->out[0]); k < node->indices; k++) {
    int64_t extent = bb_extent_value(bb_ix_extent(c->ix, node->dim[k]));
    if (extent <= 0) return -1;
    count *= (double)extent;
  }
  return count;
}

/* The same scale comes as one factor, as a divisor, or as two roots whose product is rounded: within
 * a few roundings of float32 of the usual one, it is the usual one. */
bool bb_rule_scale_form(bb_canon *c, uint32_t at) {
  const bb_expr *factor = bb_canon_scale(c, at);
  uint32_t product = factor ? bb_canon_maker(c, at, 0, BB_IX_CONTRACT) : BB_NONE;
  if (product == BB_NONE) return false;
  const bb_expr *old = c->ix->node[at].expr;
  if (factor->op == BB_X_CONST) {
    double n = terms_of(c, product), usual = n > 0 ? 1 / sqrt(n) : 0, value = factor->number;
    if (value != usual && fabs(value - usual) <= usual * 0x1p-21) value = (float)usual;
    factor = bb_expr_const(c->program, old->dtype, value);
  } else {
    factor = bb_canon_expr(c->program, factor);
  }
  const bb_expr *expr =
      bb_expr_make(c->program, BB_X_MUL, bb_expr_arg(c->program, old->dtype, 0), factor, NULL);
  if (expr == old || expr->dtype != old->dtype) return false;
  bb_term in = bb_canon_term(c, at, 0);
  bb_canon_set(c, at, expr, 1, &in);
  return true;
}

/* --- weight scale, weight shift: constants beside a constant operand of a product --- */

/* Every user is a contraction of this value with a constant, and sums over all axes that `in` (an
 * operand of the value's node) has; if `all`, over no other axes. */
static bool feeds_weights(const bb_canon *c, uint32_t value, const bb_term *in, bool all) {
  if (!c->ix->value[value].uses || c->ix->value[value].uses > 64) return false;
  BB_IX_EACH_USE(c->ix, value, node, slot) {
    const bb_ix_node *user = &c->ix->node[node];
    if (user->op != BB_IX_CONTRACT || !is_once(c, user->in[1 - slot].value)) return false;
    uint32_t rank = bb_ix_rank(c->ix, user->out[0]);
    for (uint32_t a = 0; a < bb_ix_rank(c->ix, in->value); a++)
      if (user->in[slot].index[in->index[a]] < rank) return false;
    if (all && bb_ix_rank(c->ix, in->value) != user->indices - rank) return false;
  }
  return true;
}

/* The operands of a sum or product that is a computed value with a constant of fewer axes. */
static bool with_constant(const bb_canon *c, uint32_t at, bb_expr_op op, uint32_t *x,
                          uint32_t *constant) {
  const bb_ix_node *node = &c->ix->node[at];
  if (node->op != BB_IX_ELEMENTWISE || node->nin != 2 ||
      !bb_canon_is_binary(node->expr, op, x, constant))
    return false;
  if (is_once(c, node->in[*x].value)) {
    uint32_t other = *x;
    *x = *constant, *constant = other;
  }
  return !is_once(c, node->in[*x].value) && is_once(c, node->in[*constant].value) &&
         bb_ix_rank(c->ix, node->in[*x].value) == node->indices &&
         c->ix->value[node->in[*x].value].dtype == node->expr->dtype &&
         c->ix->value[node->in[*constant].value].dtype == node->expr->dtype;
}

/* g as an operand over the axes of a weight: g's axes are indices of `user` that the weight has. */
static bb_term beside_weight(bb_canon *c, uint32_t user, uint32_t slot, const bb_term *g) {
  uint32_t rank = bb_ix_rank(c->ix, g->value), *index = BB_NEW(c->scratch, uint32_t, rank);
  for (uint32_t a = 0; a < rank; a++)
    index[a] = bb_canon_axis_of(c, user, 1 - slot, c->ix->node[user].in[slot].index[g->index[a]]);
  return (bb_term){g->value, index};
}

static void scale_weight(bb_canon *c, uint32_t user, uint32_t slot, const bb_term *x,
                         const bb_term *g) {
  bb_ix *ix = c->ix;
  uint32_t weight = ix->node[user].in[1 - slot].value;
  bb_term in[2], product[2] = {{weight, straight(c, bb_ix_rank(c->ix, weight))},
                               beside_weight(c, user, slot, g)};
  const uint32_t *outer = ix->node[user].in[slot].index;
  uint32_t rank = bb_ix_rank(c->ix, x->value), *index = BB_NEW(c->scratch, uint32_t, rank);
  for (uint32_t a = 0; a < rank; a++) index[a] = outer[x->index[a]];
  in[slot] = (bb_term){x->value, index};
  in[1 - slot] = bb_canon_term(c, user, 1 - slot);
  in[1 - slot].value =
      bb_canon_elementwise(c, ix->value[weight].name, binary(c, BB_X_MUL, ix->value[weight].dtype),
                           bb_ix_rank(c->ix, weight), ix->value[weight].dim, 2, product);
  bb_canon_set(c, user, NULL, 2, in);
}

/* contract(x * g, W) -> contract(x, g * W): g*W is computed once, at load. */
bool bb_rule_weight_scale(bb_canon *c, uint32_t at) {
  uint32_t x, g;
  if (!with_constant(c, at, BB_X_MUL, &x, &g)) return false;
  bb_term tx = bb_canon_term(c, at, x), tg = bb_canon_term(c, at, g);
  uint32_t value = c->ix->node[at].out[0];
  if (!feeds_weights(c, value, &tg, false)) return false;
  while (!c->ix->node[at].removed && c->ix->value[value].uses)
    scale_weight(c, c->ix->value[value].first_node, c->ix->value[value].first_slot, &tx, &tg);
  return true;
}

/* contract(x + b, W) for one user: contract(x, W) + contract(b, W). */
static void shift_product(bb_canon *c, uint32_t at, uint32_t slot, const bb_term *x,
                          const bb_term *b) {
  const bb_ix_node user = c->ix->node[at];
  uint32_t out = user.out[0], rank = bb_ix_rank(c->ix, out), n = 0;
  bb_dtype dtype = c->ix->value[out].dtype;
  const uint32_t *outer = user.in[slot].index;
  bb_term in[2], lone[2], sum[2];
  uint32_t *of_x = BB_NEW(c->scratch, uint32_t, bb_ix_rank(c->ix, x->value));
  for (uint32_t a = 0; a < bb_ix_rank(c->ix, x->value); a++) of_x[a] = outer[x->index[a]];
  in[slot] = (bb_term){x->value, of_x};
  in[1 - slot] = bb_canon_term(c, at, 1 - slot);
  uint32_t product = bb_canon_contract(c, user.name, dtype, rank, user.indices, user.dim, in);
  /* The product of the shift has the indices of the weight, the summed ones last. */
  uint32_t *number = BB_NEW(c->scratch, uint32_t, user.indices),
           *dim = BB_NEW(c->scratch, uint32_t, user.indices),
           *kept = BB_NEW(c->scratch, uint32_t, user.indices), lone_rank = 0;
  for (uint32_t k = 0; k < user.indices; k++) {
    if (k == rank) lone_rank = n;
    if (bb_canon_axis_of(c, at, 1 - slot, k) == BB_NONE) continue;
    kept[n] = k, dim[n] = user.dim[k], number[k] = n++;
  }
  uint32_t of_b = bb_ix_rank(c->ix, b->value), of_w = bb_ix_rank(c->ix, in[1 - slot].value);
  uint32_t *index_b = BB_NEW(c->scratch, uint32_t, of_b),
           *index_w = BB_NEW(c->scratch, uint32_t, of_w);
  for (uint32_t a = 0; a < of_b; a++) index_b[a] = number[outer[b->index[a]]];
  for (uint32_t a = 0; a < of_w; a++) index_w[a] = number[in[1 - slot].index[a]];
  lone[slot] = (bb_term){b->value, index_b};
  lone[1 - slot] = (bb_term){in[1 - slot].value, index_w};
  sum[0] = (bb_term){product, straight(c, rank)};
  sum[1] = (bb_term){bb_canon_contract(c, user.name, dtype, lone_rank, n, dim, lone), kept};
  uint32_t shifted =
      bb_canon_elementwise(c, user.name, binary(c, BB_X_ADD, dtype), rank, user.dim, 2, sum);
  bb_canon_replace(c, out, shifted, NULL, BB_NONE);
}

bool bb_rule_weight_shift(bb_canon *c, uint32_t at) {
  uint32_t x, b;
  if (!with_constant(c, at, BB_X_ADD, &x, &b)) return false;
  bb_term tx = bb_canon_term(c, at, x), tb = bb_canon_term(c, at, b);
  uint32_t value = c->ix->node[at].out[0];
  if (!feeds_weights(c, value, &tb, true)) return false;
  while (!c->ix->node[at].removed && c->ix->value[value].uses)
    shift_product(c, c->ix->value[value].first_node, c->ix->value[value].first_slot, &tx, &tb);
  return true;
}

/* (x + b) + d -> x + (b + d) for constants over the same axes */
bool bb_rule_merge_shifts(bb_canon *c, uint32_t at) {
  uint32_t x, d, y, b;
  if (!with_constant(c, at, BB_X_ADD, &x, &d)) return false;
  uint32_t maker = bb_canon_maker(c, at, x, BB_IX_ELEMENTWISE);
  if (maker == BB_NONE || !bb_canon_only_user(c, c->ix->node[at].in[x].value, at) ||
      !with_constant(c, maker, BB_X_ADD, &y, &b))
    return false;
  const uint32_t *outer = c->ix->node[at].in[x].index;
  bb_term base = through(c, outer, maker, y), first = through(c, outer, maker, b),
          second = bb_canon_term(c, at, d);
  uint32_t rank = bb_ix_rank(c->ix, second.value), *index = BB_NEW(c->scratch, uint32_t, rank);
  if (bb_ix_rank(c->ix, first.value) != rank) return false;
  for (uint32_t a = 0; a < rank; a++) {
    index[a] = BB_NONE;
    for (uint32_t k = 0; k < rank; k++)
      if (second.index[k] == first.index[a]) index[a] = k;
    if (index[a] == BB_NONE) return false;
  }
  bb_dtype dtype = c->ix->node[at].expr->dtype;
  const bb_expr *sum = binary(c, BB_X_ADD, dtype);
  bb_term both[2] = {{first.value, index}, {second.value, straight(c, rank)}};
  uint32_t merged = bb_canon_elementwise(c, c->ix->value[second.value].name, sum, rank,
                                         c->ix->value[second.value].dim, 2, both);
  bb_canon_set(c, at, sum, 2, (bb_term[]){base, {merged, second.index}});
  return true;
}

/* --- moments: sum (x - mean x)**2 -> sum x**2 - n * mean**2 --- */

/* The value of an expression of numbers and extents, symbols standing for some lengths. */
static double number_value(bb_canon *c, const bb_expr *expr) {
  bb_program *p = c->program;
  double *symbol = BB_NEW(c->scratch, double, p->symbols);
  int64_t *length = BB_NEW(c->scratch, int64_t, p->symbols),
          *extent = BB_NEW(c->scratch, int64_t, p->dims);
  for (uint32_t s = 0; s < p->symbols; s++) symbol[s] = (double)(length[s] = 11 + 2 * (int64_t)s);
  for (uint32_t d = 0; d < p->dims; d++) extent[d] = bb_extent_bind(p, p->dim[d].extent, length);
  bb_expr_env env = {.dim_extent = extent, .symbol = symbol};
  return bb_expr_eval(expr, &env);
}

static double extent_value(const bb_extent *extent) {
  double value = (double)extent->factor;
  for (uint32_t s = 0; s < extent->count; s++) value *= 11 + 2 * (double)extent->symbol[s];
  return value;
}

/* expr is k * ARG 0: gives k's value; *divisor is what it divides by, if anything. */
static double slope(bb_canon *c, const bb_expr *expr, const bb_expr **divisor) {
  if (expr->op == BB_X_ARG) return 1;
  if (expr->op == BB_X_NEG) return -slope(c, expr->a[0], divisor);
  if ((expr->op == BB_X_DIV || expr->op == BB_X_MUL) && !expr->a[1]->arg_count &&
      !expr->a[1]->coord) {
    double by = number_value(c, expr->a[1]), inner = slope(c, expr->a[0], divisor);
    if (expr->op == BB_X_DIV) *divisor = expr->a[1];
    return expr->op == BB_X_DIV ? inner / by : inner * by;
  }
  return NAN;
}

/* Is `sum` the sum of x over the axes that the node `at` sums over, as seen from the value with
 * axes `of_x`?  Axis order of x is the same, being one value. */
static bool sums_same_axes(const bb_canon *c, uint32_t sum, uint32_t at, const bb_term *x) {
  const bb_ix_node *s = &c->ix->node[sum], *node = &c->ix->node[at];
  if (s->op != BB_IX_REDUCE || s->monoid->id != BB_MONOID_SUM || s->in[0].value != x->value)
    return false;
  uint32_t kept_s = bb_ix_rank(c->ix, s->out[0]), kept = bb_ix_rank(c->ix, node->out[0]);
  if (kept != kept_s || s->indices != node->indices) return false;
  for (uint32_t a = 0; a < bb_ix_rank(c->ix, x->value); a++) {
    bool gone_s = s->in[0].index[a] >= kept_s, gone = x->index[a] >= kept;
    if (gone_s != gone) return false;
  }
  return true;
}

enum { USES = 64 }; /* looked at behind a centred value */

/* Does a product take the value, perhaps through functions of it? */
static bool meets_product(const bb_canon *c, uint32_t value, uint32_t *left) {
  uint32_t node = c->ix->value[value].first_node, slot = c->ix->value[value].first_slot;
  while (node != BB_NONE && *left) {
    const bb_ix_node *user = &c->ix->node[node];
    (*left)--;
    if (user->op == BB_IX_CONTRACT) return true;
    if (user->op == BB_IX_ELEMENTWISE && meets_product(c, user->out[0], left)) return true;
    node = user->in[slot].next_node;
    slot = user->in[slot].next_slot;
  }
  return false;
}

/* Raw moments let the mean leave a product (Rule 5).  Without one, central moments cost no pass more
 * and keep their digits: they stay. */
bool bb_rule_moments(bb_canon *c, uint32_t at) {
  const bb_ix_node node = c->ix->node[at];
  if (node.op != BB_IX_REDUCE || node.monoid->id != BB_MONOID_SUM) return false;
  uint32_t square = bb_canon_maker(c, at, 0, BB_IX_ELEMENTWISE),
           kept = bb_ix_rank(c->ix, node.out[0]);
  if (square == BB_NONE || c->ix->node[square].nin != 1) return false;
  const bb_expr *power = c->ix->node[square].expr;
  if (power->op != BB_X_POW || power->a[0]->op != BB_X_ARG || power->a[1]->op != BB_X_CONST ||
      power->a[1]->number != 2 || !bb_dtype_is_float(power->dtype))
    return false;
  uint32_t shift = bb_canon_maker(c, square, 0, BB_IX_ELEMENTWISE), i, j;
  if (shift == BB_NONE || c->ix->node[shift].nin != 2 ||
      !bb_canon_is_binary(c->ix->node[shift].expr, BB_X_ADD, &i, &j))
    return false;
  if (bb_ix_rank(c->ix, c->ix->node[shift].in[i].value) <
      bb_ix_rank(c->ix, c->ix->node[shift].in[j].value)) {
    uint32_t other = i;
    i = j, j = other;
  }
  bb_term y = bb_canon_term(c, at, 0), centred = through(c, y.index, square, 0);
  bb_term x = through(c, centred.index, shift, i), mean = through(c, centred.index, shift, j);
  uint32_t maker = bb_ix_producer(c->ix, mean.value), left = USES;
  if (!meets_product(c, centred.value, &left)) return false;
  if (c->ix->node[maker].op != BB_IX_ELEMENTWISE || c->ix->node[maker].nin != 1 ||
      bb_ix_rank(c->ix, mean.value) != kept || bb_ix_rank(c->ix, x.value) != node.indices)
    return false;
  for (uint32_t a = 0; a < kept; a++)
    if (mean.index[a] >= kept) return false;
  if (!sums_same_axes(c, bb_ix_producer(c->ix, c->ix->node[maker].in[0].value), at, &x))
    return false;
  const bb_expr *n = NULL;
  double k = slope(c, c->ix->node[maker].expr, &n), count = 1;
  bool known = true;
  for (uint32_t a = kept; a < node.indices; a++) {
    const bb_extent *extent = bb_ix_extent(c->ix, node.dim[a]);
    count *= extent_value(extent);
    known &= extent->count == 0;
  }
  if (!(fabs(k * count + 1) < 1e-5)) return false;
  if (!n || fabs(number_value(c, n) - count) > 1e-5 * count) {
    if (!known) return false;
    n = bb_expr_const(c->program, power->dtype, count);
  }

  bb_program *p = c->program;
  bb_dtype dtype = power->dtype;
  uint32_t squares = bb_canon_unary(
      c, node.name,
      bb_expr_make(p, BB_X_POW, bb_expr_arg(p, dtype, 0), bb_expr_const(p, dtype, 2), NULL),
      x.value);
  uint32_t sum = bb_ix_add(c->ix, BB_IX_REDUCE, node.name, dtype, 1, kept, node.indices, node.dim);
  bb_ix_node_of(c->ix, sum)->monoid = node.monoid;
  bb_ix_use(c->ix, bb_ix_producer(c->ix, sum), 0, squares, x.index);
  const bb_expr *raw = bb_expr_make(p, BB_X_DIV, bb_expr_arg(p, dtype, 0), n, NULL);
  const bb_expr *mean2 =
      bb_expr_make(p, BB_X_POW, bb_expr_arg(p, dtype, 1), bb_expr_const(p, dtype, 2), NULL);
  /* Where both overflow, the mean of squares is the larger. */
  mean2 = bb_expr_make(p, BB_X_MIN, mean2, bb_expr_const(p, dtype, bb_dtype_largest(dtype)), NULL);
  /* Rounded, the difference may be below 0, of which there is no root. */
  const bb_expr *gap = bb_expr_make(p, BB_X_MAX, bb_expr_make(p, BB_X_SUB, raw, mean2, NULL),
                                    bb_expr_const(p, dtype, 0), NULL);
  const bb_expr *central = bb_expr_make(p, BB_X_MUL, gap, n, NULL);
  bb_term in[2] = {{sum, straight(c, kept)}, mean};
  uint32_t out = bb_canon_elementwise(c, node.name, central, kept, node.dim, 2, in);
  bb_canon_replace(c, node.out[0], out, NULL, BB_NONE);
  return true;
}
