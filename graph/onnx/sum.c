/* sum.c - integer expressions as sums of whole numbers of terms, in one order, so that equal sums are one expression.
 *
 * A term is a product of extents or whatever else is no sum; a name that stands for an expression is read as that.
 */
#include "formula.h"

#include <string.h>

enum { DEPTH = 32 };

static bool add_term(bb_onnx_sum *s, const bb_expr *term, double times) {
  uint32_t i = 0;
  while (i < s->terms && s->term[i] != term) i++;
  if (i == BB_ONNX_TERMS) return false;
  if (i == s->terms) s->term[i] = term, s->times[i] = 0, s->terms++;
  s->times[i] += times;
  return true;
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
  const bb_extent *product = bb_onnx_expr_product(m, e);
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
