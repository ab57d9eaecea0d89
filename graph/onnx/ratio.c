/* ratio.c - lengths that a model works out in floats, ceil((S - 3) / 2 + 1), as the integers that they are.
 *
 * A float that sums, products and quotients by numbers make of lengths is a sum of lengths over a number.  That what it is
 * rounded to is the same is true only while floats hold it: of f32 as far as 2^24, and where a quotient is itself rounded and
 * more is added, each time by half of the last bit, so much less that no error reaches the next integer.  That becomes an
 * extent, and a run beyond is refused.
 */
#include "formula.h"
#include "import.h"

#include <math.h>

enum { DEPTH = 16 };

/* How far integers are told apart: f64 would further than any axis is long. */
static double reach_of(bb_dtype dtype) {
  return dtype == BB_F64 ? 0x1p44 : 0x1p24;
}

typedef struct ratio {
  bb_onnx_sum sum;  /* times 1 / by */
  bb_onnx_sum size; /* the same of no signs: no part was more */
  double by, rounds;
} ratio;

/* Lengths, each with its sign; false: one may be below 0. */
static bool of_lengths(bb_onnx *m, ratio *r, const bb_expr *e) {
  *r = (ratio){.by = 1};
  if (!bb_onnx_sum_add(m, &r->sum, e, 1)) return false;
  r->size = r->sum;
  r->size.number = fabs(r->sum.number);
  for (uint32_t i = 0; i < r->sum.terms; i++) {
    if (!(bb_onnx_least(m, r->sum.term[i]) >= 0)) return false;
    r->size.times[i] = fabs(r->sum.times[i]);
  }
  return true;
}

static void scale(bb_onnx_sum *s, double times) {
  for (uint32_t i = 0; i < s->terms; i++) s->times[i] *= times;
  s->number *= times;
}

static bool add_to(bb_onnx *m, bb_onnx_sum *s, const bb_onnx_sum *more, double times) {
  s->number += times * more->number;
  for (uint32_t i = 0; i < more->terms; i++)
    if (!bb_onnx_sum_add(m, s, more->term[i], times * more->times[i])) return false;
  return true;
}

static bool is_small(double number) {
  return fabs(number) < 0x1p24 && number == floor(number);
}

static bool is_power_of_two(double x) {
  int exponent;
  return frexp(x, &exponent) == 0.5;
}

static bool add_ratio(bb_onnx *m, ratio *r, ratio *b, double sign) {
  double by = r->by;
  scale(&r->sum, b->by);
  scale(&r->size, b->by);
  r->by *= b->by;
  r->rounds += b->rounds + !is_power_of_two(r->by);
  return add_to(m, &r->sum, &b->sum, sign * by) && add_to(m, &r->size, &b->size, by);
}

/* Times a number that is whole, or one by a whole one. */
static bool times_number(ratio *r, double number) {
  double by = 1 / fabs(number);
  bool whole = is_small(number) && number != 0, part = is_small(by) && is_power_of_two(by);
  if (!whole && !part) return false;
  scale(&r->sum, whole ? number : copysign(1, number));
  scale(&r->size, whole ? fabs(number) : 1);
  r->by *= whole ? 1 : by;
  r->rounds += !is_power_of_two(r->by);
  return true;
}

static bool by_number(ratio *r, double number) {
  if (!is_small(number) || number < 1) return false;
  r->by *= number;
  r->rounds += !is_power_of_two(r->by);
  return true;
}

/* A run in which floats of the type do not tell such a ratio from the integers beside it is refused; false: all are. */
static bool check_in_runs(bb_onnx *m, const ratio *r, bb_dtype dtype) {
  bb_onnx_sum rest = {.number = floor(reach_of(dtype) / (r->rounds + 1))};
  if (!add_to(m, &rest, &r->size, -1) || rest.number < 0) return false;
  bb_onnx_expr_extent(m, bb_onnx_sum_expr(m, &rest, BB_I64));
  return true;
}

/* The ratio rounded up or down to an integer; NULL: it may be below 0. */
static const bb_expr *rounded(bb_onnx *m, ratio *r, bool up, bb_dtype dtype) {
  if (!(r->by < 0x1p24)) return NULL;
  if (up) r->sum.number += r->by - 1;
  const bb_expr *e = bb_onnx_sum_expr(m, &r->sum, BB_I64);
  if (r->by != 1 && !(bb_onnx_least(m, e) >= 0)) return NULL;
  if (!check_in_runs(m, r, dtype)) return NULL;
  return r->by == 1 ? e : bb_onnx_tidy_make(m, BB_X_DIV, e, f_num(m->program, e, r->by));
}

static bool read_ratio(bb_onnx *m, ratio *r, const bb_expr *e, uint32_t depth) {
  const bb_expr *a = e->a[0], *b = e->a[1];
  ratio other;
  if (depth == DEPTH || (e->dtype != BB_F32 && e->dtype != BB_F64)) return false;
  switch (e->op) {
  case BB_X_CONST:
    *r = (ratio){.sum.number = e->number, .size.number = fabs(e->number), .by = 1};
    return is_small(e->number);
  case BB_X_CAST:
    if (bb_dtype_is_float(a->dtype)) return a->dtype == e->dtype && read_ratio(m, r, a, depth + 1);
    return a->dtype != BB_BOOL && of_lengths(m, r, a);
  case BB_X_ADD:
  case BB_X_SUB:
    return read_ratio(m, r, a, depth + 1) && read_ratio(m, &other, b, depth + 1) &&
           add_ratio(m, r, &other, e->op == BB_X_ADD ? 1 : -1);
  case BB_X_MUL:
    if (a->op == BB_X_CONST) return read_ratio(m, r, b, depth + 1) && times_number(r, a->number);
    return b->op == BB_X_CONST && read_ratio(m, r, a, depth + 1) && times_number(r, b->number);
  case BB_X_DIV:
    return b->op == BB_X_CONST && read_ratio(m, r, a, depth + 1) && by_number(r, b->number);
  case BB_X_CEIL:
  case BB_X_FLOOR: {
    if (!read_ratio(m, r, a, depth + 1)) return false;
    const bb_expr *whole = rounded(m, r, e->op == BB_X_CEIL, e->dtype);
    return whole && of_lengths(m, r, whole);
  }
  default: return false;
  }
}

const bb_expr *bb_onnx_whole_of_float(bb_onnx *m, const bb_expr *e) {
  ratio r;
  if (e->dtype != BB_I64 || bb_expr_uses_coord(e) || !read_ratio(m, &r, e->a[0], 0)) return e;
  const bb_expr *whole = rounded(m, &r, false, e->a[0]->dtype);
  return whole ? whole : e;
}
