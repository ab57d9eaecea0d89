/* canon_mask.c - rules on masks inside a softmax.
 *
 * Hide: exp(x + (p ? 0 : m)) with a large finite negative m is exp(p ? x : -inf) as long as x is far
 * from -m: both are 0 where p does not hold.  They differ in a row where p holds nowhere, so the
 * rule wants a proof that every row keeps an element.  The assumption on x is recorded.
 * Guard: p != p ? 0 : p on shares p = e / sum e goes where no row can be empty.  Elsewhere it is the row's: 1 / sum e is 0
 * where nothing is summed, which products behind it do not mind.  (They differ in rows with a NaN, which is then seen.)
 * Both look through casts between floats: 16-bit models compute their exps in float32.
 */
#include "canon.h"

#include <math.h>

enum { TRIES_MAX = 1 << 24, PRODUCT_DEPTH = 6 };

static const bb_expr *uncast(const bb_expr *e) {
  bool cast =
      e->op == BB_X_CAST && bb_dtype_is_float(e->dtype) && bb_dtype_is_float(e->a[0]->dtype);
  return cast ? e->a[0] : e;
}

/* --- every row keeps an element --- */

typedef struct rows {
  bb_canon *c;
  const bb_ix_node *node; /* elementwise; its indices are the coordinates */
  uint64_t reduced;       /* bit set of indices along a row */
  uint64_t used;          /* indices whose coordinate the condition reads */
} rows;

static uint64_t coordinates(bb_canon *c, const bb_expr *expr) {
  uint32_t count;
  uint64_t used = 0;
  const bb_expr **e = bb_expr_postorder(c->scratch, expr, &count);
  for (uint32_t i = 0; i < count; i++)
    if (e[i]->op == BB_X_COORD && e[i]->index >= BB_COORD_AXIS && e[i]->index < BB_COORD_AXIS + 64u)
      used |= UINT64_C(1) << (e[i]->index - BB_COORD_AXIS);
  return used;
}

static int64_t extent_of(const rows *r, uint32_t index) {
  return bb_extent_value(bb_ix_extent(r->c->ix, r->node->dim[index]));
}

/* Steps through the coordinates in `which`; false after the last. */
static bool advance(const rows *r, uint64_t which, int64_t *at) {
  for (uint32_t k = 0; k < r->node->indices && k < 64; k++) {
    if (!(which >> k & 1)) continue;
    if (++at[k] < extent_of(r, k)) return true;
    at[k] = 0;
  }
  return false;
}

static bool needs_run_time(bb_canon *c, const bb_expr *expr) {
  uint32_t count;
  const bb_expr **e = bb_expr_postorder(c->scratch, expr, &count);
  for (uint32_t i = 0; i < count; i++)
    if (e[i]->op == BB_X_SYMBOL || e[i]->op == BB_X_EXTENT) return true;
  return false;
}

/* By trying every coordinate; extents are numbers. */
static bool proved_by_trying(const rows *r, const bb_expr *condition) {
  if (needs_run_time(r->c, condition)) return false;
  int64_t at[64] = {0};
  bb_expr_env env = {.axis_index = at};
  double tries = 1;
  for (uint32_t k = 0; k < 64; k++) {
    if (!(r->used >> k & 1)) continue;
    if (extent_of(r, k) < 1) return false;
    tries *= (double)extent_of(r, k);
  }
  if (tries > TRIES_MAX) return false;
  do {
    bool any = false;
    do any |= bb_expr_eval(condition, &env) != 0; /* leaves the row's coordinates at 0 */
    while (advance(r, r->used & r->reduced, at));
    if (!any) return false;
  } while (advance(r, r->used & ~r->reduced, at));
  return true;
}

/* The least value of a - b is at least 0, for any coordinates >= 0: a and b are sums. */
static bool at_least(const bb_expr *a, const bb_expr *b) {
  if (a == b) return true;
  if (b->op == BB_X_CONST && b->number <= 0 && a->op == BB_X_COORD) return true;
  if (a->op == BB_X_CONST && b->op == BB_X_CONST) return a->number >= b->number;
  if (a->op == BB_X_ADD && a->a[1]->op == BB_X_CONST && a->a[1]->number >= 0)
    return at_least(a->a[0], b);
  if (b->op == BB_X_ADD && b->a[1]->op == BB_X_CONST && b->a[1]->number <= 0)
    return at_least(a, b->a[0]);
  return false;
}

static bool always(const bb_expr *e) {
  switch (e->op) {
  case BB_X_CONST: return e->number != 0;
  case BB_X_AND: return always(e->a[0]) && always(e->a[1]);
  case BB_X_OR: return always(e->a[0]) || always(e->a[1]);
  case BB_X_LE: return at_least(e->a[1], e->a[0]);
  case BB_X_EQ: return e->a[0] == e->a[1];
  default: return false;
  }
}

typedef struct witness {
  uint64_t replaced;
  const bb_expr *with;
} witness;

static const bb_expr *place_witness(void *user, const bb_expr *leaf) {
  const witness *w = user;
  if (leaf->op != BB_X_COORD || leaf->index < BB_COORD_AXIS || leaf->index >= BB_COORD_AXIS + 64u)
    return leaf;
  return w->replaced >> (leaf->index - BB_COORD_AXIS) & 1 ? w->with : leaf;
}

/* With extents not known: the first element of a row, or the one on the diagonal, is such. */
static bool proved_by_witness(const rows *r, const bb_expr *condition) {
  bb_program *p = r->c->program;
  uint64_t along = r->used & r->reduced;
  if (!along || along & (along - 1)) return false;
  uint32_t reduced = (uint32_t)__builtin_ctzll(along);
  witness w = {along, bb_expr_const(p, BB_I64, 0)};
  if (always(bb_expr_map_leaves(p, condition, place_witness, &w))) return true;
  for (uint32_t k = 0; k < r->node->indices && k < 64; k++) {
    if (k == reduced ||
        bb_ix_find(r->c->ix, r->node->dim[k]) != bb_ix_find(r->c->ix, r->node->dim[reduced]))
      continue;
    w.with = bb_expr_coord(p, BB_COORD_AXIS + k);
    if (always(bb_expr_map_leaves(p, condition, place_witness, &w))) return true;
  }
  return false;
}

/* The indices that a reduction of the value sums over, as a bit set; 0: there is none. */
static uint64_t summed_indices(const bb_canon *c, uint32_t value) {
  if (c->ix->value[value].uses > 64) return 0;
  BB_IX_EACH_USE(c->ix, value, user, slot) {
    const bb_ix_node *node = &c->ix->node[user];
    if (node->op != BB_IX_REDUCE || node->monoid->id != BB_MONOID_SUM) continue;
    uint64_t set = 0;
    uint32_t kept = c->ix->value[node->out[0]].rank;
    for (uint32_t a = 0; a < c->ix->value[value].rank && a < 64; a++)
      if (node->in[slot].index[a] >= kept) set |= UINT64_C(1) << a;
    return set;
  }
  return 0;
}

static bool keeps_an_element(bb_canon *c, uint32_t at, const bb_expr *condition) {
  rows r = {.c = c, .node = &c->ix->node[at]};
  if (condition->arg_count || r.node->indices > 64) return false;
  r.reduced = summed_indices(c, r.node->out[0]);
  r.used = coordinates(c, condition);
  if (!r.reduced) return false;
  return proved_by_witness(&r, condition) || proved_by_trying(&r, condition);
}

/* --- hide --- */

/* x + select(p, 0, m): gives x, p (through *condition) and m. */
static const bb_expr *split_sum(bb_canon *c, const bb_expr *sum, const bb_expr **condition,
                                double *low) {
  if (sum->op != BB_X_ADD) return NULL;
  for (int i = 0; i < 2; i++) {
    const bb_expr *mask = sum->a[i], *x = sum->a[1 - i];
    if (mask->op != BB_X_SELECT || mask->dtype != x->dtype) continue;
    bool plain = bb_expr_is_number(mask->a[1], 0);
    const bb_expr *m = plain ? mask->a[2] : mask->a[1];
    if ((!plain && !bb_expr_is_number(mask->a[2], 0)) || m->op != BB_X_CONST) continue;
    *low = m->number;
    *condition = plain ? mask->a[0] : bb_expr_make(c->program, BB_X_NOT, mask->a[0], NULL, NULL);
    return x;
  }
  return NULL;
}

bool bb_rule_hide(bb_canon *c, uint32_t at) {
  const bb_ix_node *node = &c->ix->node[at];
  if (node->op != BB_IX_ELEMENTWISE || node->expr->op != BB_X_EXP) return false;
  const bb_expr *condition, *masked = node->expr->a[0];
  double low;
  const bb_expr *x = split_sum(c, uncast(masked), &condition, &low);
  if (!x || !(low <= -1e4) || isinf(low) || !keeps_an_element(c, at, condition)) return false;
  bb_program *p = c->program;
  x = bb_expr_cast(p, masked->dtype, x);
  const bb_expr *hidden =
      bb_expr_make(p, BB_X_SELECT, condition, x, bb_expr_const(p, x->dtype, -INFINITY));
  bb_term *in = BB_NEW(c->scratch, bb_term, node->nin);
  for (uint32_t i = 0; i < node->nin; i++) in[i] = bb_canon_term(c, at, i);
  bb_log(p->ctx, BB_LOG_INFO,
         "%s: assumed that scores stay above %g, so that what is masked by %g weighs nothing",
         node->name ? node->name : "(unnamed)", low / 2, low);
  bb_canon_set(c, at, bb_expr_make(p, BB_X_EXP, hidden, NULL, NULL), node->nin, in);
  /* A guard on the shares, two nodes on, may have been looked at before. */
  BB_IX_EACH_USE(c->ix, c->ix->node[at].out[0], user, slot)
  bb_canon_queue_users(c, c->ix->node[user].out[0]);
  return true;
}

/* --- guard --- */

static bool has_infinity(bb_canon *c, const bb_expr *expr) {
  uint32_t count;
  const bb_expr **e = bb_expr_postorder(c->scratch, expr, &count);
  for (uint32_t i = 0; i < count; i++)
    if (e[i]->op == BB_X_CONST && isinf(e[i]->number)) return true;
  return false;
}

/* Is the value a product, perhaps through functions of such?  Anything else may hold an infinity. */
static bool is_of_product(bb_canon *c, uint32_t value, uint32_t depth) {
  const bb_ix_node *maker = bb_ix_node_of(c->ix, value);
  if (maker->op == BB_IX_CONTRACT) return true;
  if (maker->op != BB_IX_ELEMENTWISE || !maker->nin || !depth || has_infinity(c, maker->expr))
    return false;
  for (uint32_t i = 0; i < maker->nin; i++)
    if (!is_of_product(c, maker->in[i].value, depth - 1)) return false;
  return true;
}

/* What of products and constants stays finite, whatever conditions choose: sums, and selections.  *large: constants so large that
 * two of them may be infinite together. */
static bool stays_finite(bb_canon *c, const bb_ix_node *node, const bb_expr *e, uint32_t depth,
                         uint32_t *large) {
  static const double LARGE = 1e4;
  switch (e->op) {
  case BB_X_CONST: *large += fabs(e->number) > LARGE; return isfinite(e->number);
  case BB_X_ARG: {
    const bb_ix_node *maker = bb_ix_node_of(c->ix, node->in[e->index].value);
    if (is_of_product(c, node->in[e->index].value, depth)) return true;
    return depth && maker->op == BB_IX_ELEMENTWISE && bb_dtype_is_float(maker->expr->dtype) &&
           stays_finite(c, maker, maker->expr, depth - 1, large);
  }
  case BB_X_CAST: return uncast(e) != e && stays_finite(c, node, e->a[0], depth, large);
  case BB_X_SELECT:
    return stays_finite(c, node, e->a[1], depth, large) &&
           stays_finite(c, node, e->a[2], depth, large);
  case BB_X_ADD:
  case BB_X_SUB:
    return stays_finite(c, node, e->a[0], depth, large) &&
           stays_finite(c, node, e->a[1], depth, large);
  default: { /* a factor */
    bool scaled = e->op == BB_X_MUL && e->a[1]->op == BB_X_CONST && fabs(e->a[1]->number) <= LARGE;
    uint32_t within = 0;
    return scaled && stays_finite(c, node, e->a[0], depth, &within) && !within;
  }
  }
}

/* e = exp(x) or exp(p ? x : -inf) of a product, every row of it with an element, or of one that a mask moves. */
static bool is_never_empty(bb_canon *c, uint32_t at) {
  const bb_ix_node *node = &c->ix->node[at];
  const bb_expr *e = uncast(node->expr->a[0]);
  uint32_t large = 0;
  if (stays_finite(c, node, e, PRODUCT_DEPTH, &large) && large <= 1) return true;
  if (node->nin != 1 || !is_of_product(c, node->in[0].value, PRODUCT_DEPTH)) return false;
  if (!has_infinity(c, e)) return true;
  return e->op == BB_X_SELECT && bb_expr_is_number(e->a[2], -INFINITY) &&
         !has_infinity(c, e->a[1]) && keeps_an_element(c, at, e->a[0]);
}

/* Is each element of operand i, e, multiplied with what is made of the sum that it is part of?  Operand j is a function of that sum. */
static bool is_own_sum(const bb_canon *c, uint32_t at, uint32_t i, uint32_t j, uint32_t inverse,
                       uint32_t sum) {
  const bb_ix_operand *e = &c->ix->node[at].in[i], *by = &c->ix->node[at].in[j];
  const bb_ix_operand *summed = &c->ix->node[sum].in[0], *of = &c->ix->node[inverse].in[0];
  uint32_t rank = c->ix->value[e->value].rank, kept = c->ix->value[c->ix->node[sum].out[0]].rank;
  for (uint32_t a = 0; a < rank; a++) {
    if (summed->index[a] >= kept) continue;
    uint32_t axis = of->index[summed->index[a]]; /* of the inverse's result */
    if (axis >= c->ix->value[by->value].rank || by->index[axis] != e->index[a]) return false;
  }
  return true;
}

/* Is the node e * (1 / sum e) for an exp e?  Gives the operand that is e, and the other. */
static bool is_share(bb_canon *c, uint32_t at, uint32_t *i, uint32_t *j) {
  const bb_ix_node *node = &c->ix->node[at];
  if (node->op != BB_IX_ELEMENTWISE || node->nin != 2 ||
      !bb_canon_is_binary(uncast(node->expr), BB_X_MUL, i, j))
    return false;
  uint32_t element = bb_canon_maker(c, at, *i, BB_IX_ELEMENTWISE);
  uint32_t inverse = bb_canon_maker(c, at, *j, BB_IX_ELEMENTWISE);
  if (element == BB_NONE || inverse == BB_NONE || c->ix->node[inverse].nin != 1) return false;
  const bb_expr *e = c->ix->node[inverse].expr;
  uint32_t sum = bb_canon_maker(c, inverse, 0, BB_IX_REDUCE);
  if (e->op != BB_X_DIV || !bb_expr_is_number(e->a[0], 1) || e->a[1]->op != BB_X_ARG ||
      sum == BB_NONE)
    return false;
  const bb_ix_node *reduce = &c->ix->node[sum];
  return reduce->monoid->id == BB_MONOID_SUM && reduce->in[0].value == node->in[*i].value &&
         is_own_sum(c, at, *i, *j, inverse, sum) && c->ix->node[element].expr->op == BB_X_EXP;
}

/* Is the node p != p ? 0 : p?  Gives the node of p, else BB_NONE. */
static uint32_t guarded(bb_canon *c, uint32_t at) {
  const bb_ix_node *node = &c->ix->node[at];
  if (node->op != BB_IX_ELEMENTWISE || node->nin != 1) return BB_NONE;
  const bb_expr *e = node->expr;
  if (e->op != BB_X_SELECT || e->a[0]->op != BB_X_ISNAN || uncast(e->a[2])->op != BB_X_ARG ||
      !bb_expr_is_number(e->a[1], 0) || e->a[2] != e->a[0]->a[0])
    return BB_NONE;
  return bb_ix_producer(c->ix, node->in[0].value);
}

static void drop_guard(bb_canon *c, uint32_t at) {
  bb_term in = bb_canon_term(c, at, 0);
  bb_canon_set(c, at, c->ix->node[at].expr->a[2], 1, &in);
}

bool bb_rule_guard(bb_canon *c, uint32_t at) {
  uint32_t share = guarded(c, at), i, j;
  if (share == BB_NONE || !is_share(c, share, &i, &j) ||
      !is_never_empty(c, bb_canon_maker(c, share, i, BB_IX_ELEMENTWISE)))
    return false;
  drop_guard(c, at);
  return true;
}

bool bb_rule_guard_row(bb_canon *c, uint32_t at) {
  uint32_t share = guarded(c, at), i, j;
  if (share == BB_NONE || !is_share(c, share, &i, &j) ||
      !bb_canon_only_user(c, c->ix->node[share].out[0], at))
    return false;
  bb_program *p = c->program;
  uint32_t inverse = bb_canon_maker(c, share, j, BB_IX_ELEMENTWISE);
  const bb_expr *e = c->ix->node[inverse].expr, *zero = bb_expr_const(p, e->dtype, 0);
  const bb_expr *empty = bb_expr_make(p, BB_X_EQ, e->a[1], zero, NULL);
  const bb_expr *row = bb_expr_make(p, BB_X_SELECT, empty, zero, e);
  bb_term in[2] = {bb_canon_term(c, share, 0), bb_canon_term(c, share, 1)};
  in[j].value = bb_canon_unary(c, c->ix->node[inverse].name, row, c->ix->node[inverse].in[0].value);
  bb_canon_set(c, share, c->ix->node[share].expr, 2, in);
  drop_guard(c, at);
  return true;
}
