/* sum.c - integer expressions as sums of whole numbers of terms, in one order, so that equal sums are one expression.
 *
 * Quotients of sums are brought to one form likewise.  A term is a product of extents or whatever else is no sum; a name that stands for an expression is read as that.
 */
#include "formula.h"

#include <math.h>

enum { DEPTH = 32 };

static bool add_term(bb_onnx_sum *s, const bb_expr *term, double times) {
  uint32_t i = 0;
  while (i < s->terms && s->term[i] != term) i++;
  if (i == BB_ONNX_TERMS) return false;
  if (i == s->terms) s->term[i] = term, s->times[i] = 0, s->terms++;
  s->times[i] += times;
  return true;
}

/* Is it made of extents and numbers alone, not of coordinates? */
static bool of_extents(const bb_expr *e, uint32_t depth) {
  bool leaf = e->op == BB_X_CONST || e->op == BB_X_SYMBOL;
  uint32_t arity = bb_expr_op_arity(e->op);
  if (leaf || depth == DEPTH || !arity) return leaf;
  for (uint32_t i = 0; i < arity; i++)
    if (!of_extents(e->a[i], depth + 1)) return false;
  return true;
}

/* A product of extents; quotients are such by their names, as in shapes: h/8 * (w/8). */
static const bb_extent *product_of(bb_onnx *m, const bb_expr *e) {
  const bb_extent *product = bb_onnx_expr_product(m, e);
  if (product || e->op != BB_X_MUL) return product;
  for (uint32_t i = 0; i < 2; i++)
    if (e->a[i]->op != BB_X_DIV && !product_of(m, e->a[i])) return NULL;
  return of_extents(e, 0) ? bb_onnx_expr_extent(m, e) : NULL;
}

static bool add(bb_onnx *m, bb_onnx_sum *s, const bb_expr *e, double times, uint32_t depth) {
  const bb_expr *a = e->a[0], *b = e->a[1];
  if (depth == DEPTH) return false;
  switch (e->op) {
  case BB_X_CONST: s->number += times * e->number; return true;
  case BB_X_NEG: return add(m, s, a, -times, depth + 1);
  case BB_X_ADD: return add(m, s, a, times, depth + 1) && add(m, s, b, times, depth + 1);
  case BB_X_SUB: return add(m, s, a, times, depth + 1) && add(m, s, b, -times, depth + 1);
  case BB_X_MUL:
    if (a->op == BB_X_CONST) return add(m, s, b, times * a->number, depth + 1);
    if (b->op == BB_X_CONST) return add(m, s, a, times * b->number, depth + 1);
    break;
  default: break;
  }
  const bb_expr *meant = e->op == BB_X_SYMBOL ? bb_onnx_symbol_meaning(m, e) : NULL;
  if (meant) return add(m, s, meant, times, depth + 1);
  const bb_extent *product = product_of(m, e);
  if (!product) return add_term(s, e, times);
  if (!product->count) return s->number += times * (double)product->factor, true;
  const bb_extent *one =
      product->factor ? bb_extent_divide(m->program, product, bb_onnx_number(m, product->factor))
                      : NULL;
  return !one || add_term(s, bb_onnx_extent_expr(m, one), times * (double)product->factor);
}

bool bb_onnx_sum_add(bb_onnx *m, bb_onnx_sum *s, const bb_expr *e, double times) {
  return add(m, s, e, times, 0);
}

/* Products of extents in the order of their names, before all else. */
static bool stands_before(bb_onnx *m, const bb_expr *a, const bb_expr *b) {
  const bb_extent *x = bb_onnx_expr_product(m, a), *y = bb_onnx_expr_product(m, b);
  if (!x || !y) return x && !y;
  for (uint32_t i = 0; i < x->count && i < y->count; i++)
    if (x->symbol[i] != y->symbol[i]) return x->symbol[i] < y->symbol[i];
  return x->count < y->count;
}

static void sort(bb_onnx *m, bb_onnx_sum *s) {
  for (uint32_t i = 1; i < s->terms; i++) {
    const bb_expr *term = s->term[i];
    double times = s->times[i];
    uint32_t at = i;
    for (; at && stands_before(m, term, s->term[at - 1]); at--) {
      s->term[at] = s->term[at - 1];
      s->times[at] = s->times[at - 1];
    }
    s->term[at] = term;
    s->times[at] = times;
  }
}

static const bb_expr *multiple(bb_onnx *m, const bb_expr *term, double times) {
  const bb_extent *product = bb_onnx_expr_product(m, term);
  if (times == 1) return term;
  if (product && times < 1e15)
    return bb_onnx_extent_expr(
        m, bb_extent_multiply(m->program, product, bb_onnx_number(m, (int64_t)times)));
  return f_mul(m->program, f_num(m->program, term, times), term);
}

const bb_expr *bb_onnx_sum_expr(bb_onnx *m, bb_onnx_sum *s, bb_dtype dtype) {
  bb_program *p = m->program;
  const bb_expr *sum = NULL, *number = bb_expr_const(p, dtype, s->number);
  bool used = false;
  sort(m, s);
  for (uint32_t i = 0; i < s->terms; i++) {
    if (s->times[i] <= 0) continue;
    const bb_expr *more = multiple(m, s->term[i], s->times[i]);
    sum = sum ? f_add(p, sum, more) : more;
  }
  if (!sum) sum = number, used = true;
  for (uint32_t i = 0; i < s->terms; i++)
    if (s->times[i] < 0) sum = f_sub(p, sum, multiple(m, s->term[i], -s->times[i]));
  return used || s->number == 0 ? sum : f_add(p, sum, number);
}

/* --- quotients --- */

/* A sum by a number that divides each of its terms; else NULL. */
static const bb_expr *exact_quotient(bb_onnx *m, const bb_expr *e) {
  bb_onnx_sum s = {0};
  double by = e->a[1]->op == BB_X_CONST ? e->a[1]->number : 0;
  if (!(by >= 1) || !bb_onnx_sum_add(m, &s, e->a[0], 1)) return NULL;
  bool exact = fmod(s.number, by) == 0;
  for (uint32_t i = 0; i < s.terms; i++) {
    exact &= fmod(s.times[i], by) == 0;
    s.times[i] /= by;
  }
  s.number /= by;
  return exact ? bb_onnx_sum_expr(m, &s, e->dtype) : NULL;
}

/* (a + c) / k where that is never below 0: as (a + c mod k) / k + q, which equal quotients share, or without the rest where
 * k divides a; else NULL. */
static const bb_expr *reduced_quotient(bb_onnx *m, const bb_expr *e) {
  bb_program *p = m->program;
  bb_onnx_sum s = {0}, parts;
  double by = e->a[1]->op == BB_X_CONST ? e->a[1]->number : 0;
  if (!(by >= 1) || !bb_onnx_sum_add(m, &s, e->a[0], 1)) return NULL;
  double whole = floor(s.number / by);
  bool divides = true;
  for (uint32_t i = 0; i < s.terms; i++) divides &= fmod(s.times[i], by) == 0;
  if (!s.terms || (whole == 0 && !divides) || !(bb_onnx_least(m, e->a[0]) >= 0)) return NULL;
  parts = s;
  for (uint32_t i = 0; i < s.terms; i++) parts.times[i] /= by;
  parts.number = whole;
  if (divides) return bb_onnx_sum_expr(m, &parts, e->dtype);
  s.number -= whole * by;
  const bb_expr *rest = bb_onnx_sum_expr(m, &s, e->dtype);
  rest = bb_expr_make(p, BB_X_DIV, rest, e->a[1], NULL);
  return bb_onnx_tidy_make(m, BB_X_ADD, rest, bb_expr_const(p, e->dtype, whole));
}

/* (a / j + c) / k as (a + c * j) / (j * k), where nothing is below 0: what was halved twice was quartered; else NULL. */
static const bb_expr *nested_quotient(bb_onnx *m, const bb_expr *e) {
  bb_onnx_sum s = {0}, inside = {0};
  double by = e->a[1]->op == BB_X_CONST ? e->a[1]->number : 0;
  if (!(by >= 1) || !bb_onnx_sum_add(m, &s, e->a[0], 1)) return NULL;
  if (s.terms != 1 || s.times[0] != 1 || !(bb_onnx_least(m, e->a[0]) >= 0)) return NULL;
  const bb_expr *inner = s.term[0];
  double first = inner->op == BB_X_DIV && inner->a[1]->op == BB_X_CONST ? inner->a[1]->number : 0;
  if (!(first >= 1) || !(first * by < 1e15) || !(bb_onnx_least(m, inner->a[0]) >= 0)) return NULL;
  if (!bb_onnx_sum_add(m, &inside, inner->a[0], 1)) return NULL;
  inside.number += s.number * first;
  if (!(fabs(inside.number) < 1e15)) return NULL; /* numbers are doubles */
  return bb_onnx_tidy_make(m, BB_X_DIV, bb_onnx_sum_expr(m, &inside, e->dtype),
                           bb_expr_const(m->program, e->dtype, first * by));
}

/* The a of (k - a mod k) mod k, or of -a mod k that is not below 0; NULL: it is neither. */
static const bb_expr *lacking_of(bb_onnx *m, const bb_expr *e) {
  const bb_expr *k = e->a[1], *from = e->a[0];
  bb_onnx_sum s = {0};
  if (e->op == BB_X_MOD && bb_onnx_sum_add(m, &s, from, -1)) {
    const bb_expr *a = bb_onnx_sum_expr(m, &s, e->dtype);
    if (bb_onnx_least(m, a) >= 0) return a;
  }
  if (from->op != BB_X_SUB || from->a[0]->op != BB_X_CONST || from->a[0]->number != k->number)
    return NULL;
  const bb_expr *mod = from->a[1];
  bool fits = (mod->op == BB_X_MOD || mod->op == BB_X_FMOD) && mod->a[1]->op == BB_X_CONST &&
              mod->a[1]->number == k->number && bb_onnx_least(m, mod->a[0]) >= 0;
  return fits ? mod->a[0] : NULL;
}

/* What a lacks to the next multiple of k, as k * ((a + k - 1) / k) - a; else NULL. */
static const bb_expr *lacking(bb_onnx *m, const bb_expr *e) {
  const bb_expr *k = e->a[1];
  const bb_expr *a = k->op == BB_X_CONST && k->number >= 1 ? lacking_of(m, e) : NULL;
  if (!a) return NULL;
  const bb_expr *up = bb_onnx_tidy_make(m, BB_X_ADD, a, f_num(m->program, k, k->number - 1));
  const bb_expr *next = bb_onnx_tidy_make(m, BB_X_MUL, bb_onnx_tidy_make(m, BB_X_DIV, up, k), k);
  return bb_onnx_tidy_make(m, BB_X_SUB, next, a);
}

/* As a product of extents, in which sums and quotients stand by their names; NULL: it is none. */
static const bb_extent *by_names(bb_onnx *m, const bb_expr *e) {
  const bb_extent *product = bb_onnx_expr_product(m, e);
  return product || e->op != BB_X_MUL || !of_extents(e, 0) ? product : bb_onnx_expr_extent(m, e);
}

/* A product by one that it has as a part, as of b * (s + 4) * 16 by 16 * b; else NULL. */
static const bb_expr *product_quotient(bb_onnx *m, const bb_expr *e) {
  const bb_extent *a = by_names(m, e->a[0]), *b = a ? by_names(m, e->a[1]) : NULL;
  const bb_extent *product = b && b->factor ? bb_extent_divide(m->program, a, b) : NULL;
  return product ? bb_onnx_extent_meaning(m, product) : NULL;
}

/* A product by a number, rounded, without a number that divides both, as of 24*n by 96; else NULL. */
static const bb_expr *lowest_terms(bb_onnx *m, const bb_expr *e) {
  const bb_extent *a = by_names(m, e->a[0]), *b = a && a->count ? by_names(m, e->a[1]) : NULL;
  if (!b || !a->factor || !b->factor) return NULL;
  const bb_extent *both = bb_onnx_common_extent(m, bb_onnx_number(m, a->factor), b);
  if (bb_onnx_is_one(both)) return NULL;
  a = bb_extent_divide(m->program, a, both);
  b = bb_extent_divide(m->program, b, both);
  return bb_onnx_tidy_make(m, BB_X_DIV, bb_onnx_extent_meaning(m, a), bb_onnx_extent_expr(m, b));
}

const bb_expr *bb_onnx_tidy_quotient(bb_onnx *m, const bb_expr *e) {
  bb_program *p = m->program;
  const bb_expr *exact = product_quotient(m, e);
  if (!exact) exact = exact_quotient(m, e);
  if (exact) return e->op == BB_X_DIV ? exact : bb_expr_const(p, e->dtype, 0);
  if (e->op != BB_X_DIV) {
    const bb_expr *more = lacking(m, e);
    return more ? more : e;
  }
  const bb_expr *other = nested_quotient(m, e);
  if (!other) other = reduced_quotient(m, e);
  if (!other) other = lowest_terms(m, e);
  return other ? other : e;
}
