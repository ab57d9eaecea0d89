/* scalar_bound.c - bounds that follow from how the parts of a term are related.
 *
 * Sums: what is subtracted may be a maximum over a row to which what is added belongs.  Products: a
 * sum of products is at most the product of the two norms (Cauchy and Schwarz), whatever the order in
 * which the norms were divided out.
 */
#include "scalar.h"

enum { ITEMS = 24, DEPTH = 40 };

typedef struct items {
  uint32_t count;
  double constant; /* of a product: the factor beside the items */
  struct item {
    const bb_scalar *term;
    double weight; /* coefficient, or power */
  } item[ITEMS];
  bool full;
} items;

static void put(items *list, const bb_scalar *term, double weight) {
  if (list->count == ITEMS) {
    list->full = true;
    return;
  }
  list->item[list->count].term = term;
  list->item[list->count++].weight = weight;
}

static bool is_apply(const bb_scalar *t, bb_expr_op op) {
  return t->kind == BB_SCALAR_APPLY && t->op == op;
}

static bool is_float_cast(const bb_scalar *t) {
  return is_apply(t, BB_X_CAST) && bb_dtype_is_float(t->dtype) && bb_dtype_is_float(t->a[0]->dtype);
}

static bool is_number(const bb_scalar *t) {
  return t->kind == BB_SCALAR_NUMBER;
}

/* --- sums --- */

static void flatten_sum(items *list, const bb_scalar *t, double weight, uint32_t depth) {
  if (depth < DEPTH && is_apply(t, BB_X_ADD)) {
    flatten_sum(list, t->a[0], weight, depth + 1);
    flatten_sum(list, t->a[1], weight, depth + 1);
  } else if (depth < DEPTH && is_apply(t, BB_X_SUB)) {
    flatten_sum(list, t->a[0], weight, depth + 1);
    flatten_sum(list, t->a[1], -weight, depth + 1);
  } else if (depth < DEPTH && is_apply(t, BB_X_NEG)) {
    flatten_sum(list, t->a[0], -weight, depth + 1);
  } else if (depth < DEPTH && is_apply(t, BB_X_MUL) && is_number(t->a[0])) {
    flatten_sum(list, t->a[1], weight * t->a[0]->number, depth + 1);
  } else if (depth < DEPTH && is_apply(t, BB_X_MUL) && is_number(t->a[1])) {
    flatten_sum(list, t->a[0], weight * t->a[1]->number, depth + 1);
  } else {
    put(list, t, weight);
  }
}

/* Takes `weight` times the terms of a sum out of the list, if all of them are in it. */
static bool take_sum(items *list, const bb_scalar *sum, double weight) {
  items parts = {0}, trial = *list;
  flatten_sum(&parts, sum, weight, 0);
  for (uint32_t i = 0; i < parts.count; i++) {
    uint32_t k = 0;
    while (k < trial.count && (trial.item[k].term != parts.item[i].term ||
                               trial.item[k].weight != parts.item[i].weight))
      k++;
    if (k == trial.count) return false;
    trial.item[k].weight = 0;
  }
  if (parts.full) return false;
  *list = trial;
  return true;
}

static uint64_t variables(const items *list) {
  uint64_t free = 0;
  for (uint32_t i = 0; i < list->count; i++)
    if (list->item[i].weight != 0) free |= list->item[i].term->free;
  return free;
}

/* Is there a sum in the list, times `weight`, that `top` is the maximum (or minimum) of, by its form?
 * Takes it out. */
static bool take_element(bb_scalars *t, items *list, const bb_scalar *top, double weight,
                         bool maximum, uint32_t depth, uint64_t *along) {
  if (depth == 0) return false;
  if (is_float_cast(top))
    return take_element(t, list, top->a[0], weight, maximum, depth - 1, along);
  if (is_apply(top, maximum ? BB_X_MAX : BB_X_MIN) &&
      (take_element(t, list, top->a[0], weight, maximum, depth - 1, along) ||
       take_element(t, list, top->a[1], weight, maximum, depth - 1, along))) {
    *along |= BB_VAR_NEVER;
    return true;
  }
  /* A guard of empty rows: r == -inf ? number : r. */
  if (is_apply(top, BB_X_SELECT) && is_apply(top->a[0], BB_X_EQ) &&
      (top->a[0]->a[0] == top->a[2] || top->a[0]->a[1] == top->a[2]))
    return take_element(t, list, top->a[2], weight, maximum, depth - 1, along);
  if (take_sum(list, top, weight)) return true;
  if (top->kind != BB_SCALAR_FOLD && top->kind != BB_SCALAR_PART) return false;
  if (top->fold != (maximum ? BB_MONOID_MAX : BB_MONOID_MIN)) return false;
  uint64_t free = variables(list);
  for (uint32_t v = 0; v < BB_VARS; v++) {
    if (!(free >> v & 1) || (top->kind == BB_SCALAR_PART && top->block != v)) continue;
    const bb_scalar *at = bb_scalar_substitute(t, top->a[0], top->var, v);
    if (!take_element(t, list, at, weight, maximum, depth - 1, along)) continue;
    *along |= UINT64_C(1) << v;
    return true;
  }
  return false;
}

/* Takes pairs c * element - c * maximum, and c * minimum - c * element, out of the list: each is at
 * most 0.  Returns how many there were. */
static uint32_t cancel_extrema(bb_scalars *t, items *list, bool maximum, uint64_t *along) {
  uint32_t found = 0;
  for (uint32_t i = 0; i < list->count; i++) {
    double weight = list->item[i].weight;
    if (weight == 0 || (weight < 0) != maximum) continue;
    items rest = *list;
    rest.item[i].weight = 0;
    if (!take_element(t, &rest, list->item[i].term, -weight, maximum, 6, along)) continue;
    *list = rest;
    found++;
  }
  return found;
}

static items sum_of(const bb_scalar *term) {
  items list = {0};
  flatten_sum(&list, term, 1, 0);
  return list;
}

bool bb_scalar_is_below_maximum(bb_scalars *t, const bb_scalar *term, uint64_t *along) {
  items list = sum_of(term);
  *along = 0;
  if (list.full || cancel_extrema(t, &list, true, along) != 1) return false;
  for (uint32_t i = 0; i < list.count; i++)
    if (list.item[i].weight != 0) return false;
  return true;
}

/* --- products --- */

static void flatten_product(items *list, const bb_scalar *t, double power, uint32_t depth) {
  bool more = depth < DEPTH;
  if (is_number(t)) {
    list->constant *= pow(t->number, power);
  } else if (more && is_apply(t, BB_X_MUL)) {
    flatten_product(list, t->a[0], power, depth + 1);
    flatten_product(list, t->a[1], power, depth + 1);
  } else if (more && is_apply(t, BB_X_DIV) && bb_dtype_is_float(t->dtype)) {
    flatten_product(list, t->a[0], power, depth + 1);
    flatten_product(list, t->a[1], -power, depth + 1);
  } else if (more && is_apply(t, BB_X_NEG)) {
    list->constant = -list->constant;
    flatten_product(list, t->a[0], power, depth + 1);
  } else if (more && is_apply(t, BB_X_SQRT)) {
    flatten_product(list, t->a[0], power / 2, depth + 1);
  } else if (more && is_apply(t, BB_X_POW) && is_number(t->a[1])) {
    flatten_product(list, t->a[0], power * t->a[1]->number, depth + 1);
  } else if (more && is_float_cast(t)) {
    flatten_product(list, t->a[0], power, depth + 1);
  } else {
    put(list, t, power);
  }
}

/* A fold that is at least as large as each of its terms. */
static bool is_above_its_terms(const bb_scalar *t) {
  if (t->kind != BB_SCALAR_FOLD && t->kind != BB_SCALAR_PART) return false;
  return t->fold == BB_MONOID_MAX || (t->fold == BB_MONOID_SUM && t->a[0]->range.lo >= 0);
}

/* Is an element of `top` at least m->term ** power, by its form (m->term >= 0)? */
static bool is_at_least_term(bb_scalars *t, bb_scalar_match *m, const bb_scalar *top, double power,
                             uint32_t depth) {
  if (power == 1 && bb_scalar_match_is(t, m, top)) return true;
  if (depth-- == 0) return false;
  if (is_float_cast(top)) return is_at_least_term(t, m, top->a[0], power, depth);
  if (is_apply(top, BB_X_SQRT)) return is_at_least_term(t, m, top->a[0], power * 2, depth);
  if (is_apply(top, BB_X_POW) && is_number(top->a[1]) && top->a[1]->number > 0)
    return is_at_least_term(t, m, top->a[0], power / top->a[1]->number, depth);
  bool add = is_apply(top, BB_X_ADD), max = is_apply(top, BB_X_MAX);
  for (uint32_t i = 0; i < 2 && (add || max); i++)
    if ((max || top->a[1 - i]->range.lo >= 0) && is_at_least_term(t, m, top->a[i], power, depth))
      return true;
  if (!is_above_its_terms(top) || !bb_scalar_match_open(m, top)) return false;
  bool found = is_at_least_term(t, m, top->a[0], power, depth);
  bb_scalar_match_close(m, top);
  return found;
}

/* Is top >= base ** power, by its form (base >= 0)? */
static bool is_at_least(bb_scalars *t, const bb_scalar *top, const bb_scalar *base, double power,
                        uint32_t depth) {
  bb_scalar_match m;
  bb_scalar_match_begin(&m, base);
  return is_at_least_term(t, &m, top, power, depth);
}

/* Takes the inverse of the norm of `vector` (summed over `sum`'s variable) out of the factors. */
static bool take_norm(bb_scalars *t, items *factors, const bb_scalar *sum,
                      const bb_scalar *vector) {
  const bb_scalar *two = bb_scalar_number(t, vector->dtype, 2);
  const bb_scalar *square[2] = {bb_scalar_apply(t, BB_X_POW, vector->dtype, vector, two, NULL),
                                bb_scalar_apply(t, BB_X_MUL, vector->dtype, vector, vector, NULL)};
  for (uint32_t form = 0; form < 2; form++) {
    const bb_scalar *norm = bb_scalar_fold(t, sum->kind, BB_MONOID_SUM, sum->var, square[form]);
    for (uint32_t i = 0; i < factors->count; i++) {
      struct item *f = &factors->item[i];
      if (f->weight >= 0 || !is_at_least(t, f->term, norm, -0.5 / f->weight, 8)) continue;
      f->weight = 0;
      return true;
    }
  }
  return false;
}

static bool depends_on_bound(const bb_scalar *term, const bb_scalar *sum) {
  return term->free >> sum->var & 1;
}

/* A sum of products of two vectors among the factors, whose norms are divided out: at most 1 in size.
 * Takes all of them out of the list. */
static bool take_cosine(bb_scalars *t, items *factors, uint32_t at) {
  const bb_scalar *sum = factors->item[at].term, *vector[2];
  if (sum->kind != BB_SCALAR_FOLD || sum->fold != BB_MONOID_SUM || factors->item[at].weight != 1)
    return false;
  items inside = {.constant = 1}, trial = *factors;
  uint32_t vectors = 0;
  flatten_product(&inside, sum->a[0], 1, 0);
  trial.item[at].weight = 0;
  for (uint32_t i = 0; i < inside.count && !inside.full; i++) {
    struct item *f = &inside.item[i];
    if (!depends_on_bound(f->term, sum)) {
      put(&trial, f->term, f->weight);
      continue;
    }
    uint32_t times = f->weight == 2 ? 2 : f->weight == 1 ? 1 : 3;
    for (uint32_t k = 0; k < times; k++)
      if (vectors < 2)
        vector[vectors++] = f->term;
      else
        return false;
  }
  if (inside.full || trial.full || vectors != 2) return false;
  if (!take_norm(t, &trial, sum, vector[0]) || !take_norm(t, &trial, sum, vector[1])) return false;
  trial.constant *= inside.constant;
  *factors = trial;
  return true;
}

static bb_range power_range(const bb_scalar *term, double power) {
  static const bb_expr stand_in[2];
  const bb_range_env env = {.real = true};
  bb_range base = term->range, to = {.lo = power, .hi = power, .nonzero = true};
  if (power == 1) return base;
  bb_expr expr = {.op = BB_X_POW, .dtype = BB_F64, .a = {&stand_in[0], &stand_in[1]}};
  return bb_range_apply(&env, &expr, base, to, to);
}

/* A factor that is part of what is divided by (of a sum that it is a term of): at most 1 together.
 * Takes both out of the list. */
static bool take_share(bb_scalars *t, items *factors, uint32_t at) {
  struct item *part = &factors->item[at];
  if (part->weight <= 0 || !(part->term->range.lo >= 0)) return false;
  for (uint32_t i = 0; i < factors->count; i++) {
    struct item *f = &factors->item[i];
    if (f->weight != -part->weight || !is_at_least(t, f->term, part->term, 1, 6)) continue;
    f->weight = part->weight = 0;
    return true;
  }
  return false;
}

/* The fold over everything of a positive factor inside a sum, of a block or of everything. */
static const bb_scalar *whole_sum(bb_scalars *t, const bb_scalar *sum, const bb_scalar *factor) {
  uint32_t var = sum->kind == BB_SCALAR_PART ? sum->block : sum->var;
  factor = bb_scalar_substitute(t, factor, sum->var, var);
  return bb_scalar_fold(t, BB_SCALAR_FOLD, BB_MONOID_SUM, var, factor);
}

/* A sum of values, each times its share of what is divided by: no larger than they are.  Takes it and what
 * is divided by out of the list, and puts the values there. */
static bool take_average(bb_scalars *t, items *factors, uint32_t at) {
  const bb_scalar *sum = factors->item[at].term;
  bool is_sum = sum->kind == BB_SCALAR_FOLD || sum->kind == BB_SCALAR_PART;
  if (!is_sum || sum->fold != BB_MONOID_SUM || factors->item[at].weight != 1) return false;
  items inside = {.constant = 1};
  flatten_product(&inside, sum->a[0], 1, 0);
  if (inside.full) return false;
  for (uint32_t i = 0; i < inside.count; i++) {
    struct item *share = &inside.item[i];
    if (share->weight != 1 || !(share->term->range.lo >= 0)) continue;
    const bb_scalar *whole = whole_sum(t, sum, share->term);
    for (uint32_t k = 0; k < factors->count; k++) {
      if (factors->item[k].weight != -1 || !is_at_least(t, factors->item[k].term, whole, 1, 6))
        continue;
      share->weight = factors->item[k].weight = factors->item[at].weight = 0;
      factors->constant *= inside.constant;
      for (uint32_t j = 0; j < inside.count; j++)
        if (inside.item[j].weight != 0) put(factors, inside.item[j].term, inside.item[j].weight);
      return !factors->full;
    }
  }
  return false;
}

/* `given`: how large elements of tensors count where they are averaged. */
static double size_of(bb_scalars *t, const bb_scalar *term, double given) {
  items factors = {.constant = 1};
  bool any = false, average = false;
  double own = fmax(fabs(term->range.lo), fabs(term->range.hi));
  if (own < INFINITY) return own;
  flatten_product(&factors, term, 1, 0);
  for (uint32_t i = 0; i < factors.count && !factors.full; i++)
    if (take_cosine(t, &factors, i) || take_share(t, &factors, i))
      any = true;
    else
      average |= take_average(t, &factors, i);
  if (!(any || average) || factors.full) return INFINITY;
  double size = fabs(factors.constant);
  for (uint32_t i = 0; i < factors.count; i++) {
    if (factors.item[i].weight == 0) continue;
    const bb_scalar *factor = factors.item[i].term;
    bb_range r = power_range(factor, factors.item[i].weight);
    double most = fmax(fabs(r.lo), fabs(r.hi));
    if (average && factors.item[i].weight == 1 && factor->kind == BB_SCALAR_LEAF &&
        !(factor->fault & ~(uint32_t)BB_FAULT_SMALL)) {
      most = fmin(most, given);
      average = false;
    }
    if (!(size == 0)) size *= most;
  }
  return isnan(size) ? INFINITY : size;
}

double bb_scalar_size(bb_scalars *t, const bb_scalar *term) {
  return size_of(t, term, INFINITY);
}

bool bb_scalar_is_moderate(bb_scalars *t, const bb_scalar *term, double most) {
  return size_of(t, term, 1) <= most;
}

/* --- both --- */

static void add_item(bb_scalars *t, bb_range *sum, const struct item *item) {
  double lo = item->term->range.lo, hi = item->term->range.hi;
  double size = isinf(lo) || isinf(hi) ? bb_scalar_size(t, item->term) : INFINITY;
  lo = item->weight * fmax(lo, -size);
  hi = item->weight * fmin(hi, size);
  sum->lo += fmin(lo, hi);
  sum->hi += fmax(lo, hi);
}

bb_range bb_scalar_bounds(bb_scalars *t, const bb_scalar *term) {
  bb_range range = term->range, sum = {0};
  items list = sum_of(term);
  if (list.full) return range;
  uint64_t along = 0;
  bool above = cancel_extrema(t, &list, true, &along) + cancel_extrema(t, &list, false, &along) > 0;
  for (uint32_t i = 0; i < list.count; i++)
    if (list.item[i].weight != 0) add_item(t, &sum, &list.item[i]);
  if (above) sum.lo = -INFINITY;
  if (sum.lo > range.lo) range.lo = sum.lo;
  if (sum.hi < range.hi) range.hi = sum.hi;
  return range;
}
