/* range.c - between which numbers elements of a value lie: of constants by looking, of others by what computes them.
 *
 * Numbers here are doubles.  NaN is among the elements of any float; where it is made an integer it becomes 0.
 */
#include "lower.h"

#include "../../runtime/interp/interp.h"

#include <math.h>

enum { DEPTH = 24 /* nodes and operators looked through */ };

static const bb_range ANYTHING = {-INFINITY, INFINITY};

static bb_range both(bb_range a, bb_range b) {
  return (bb_range){fmin(a.least, b.least), fmax(a.most, b.most)};
}

/* What arithmetic gave; nothing is known where it met infinities that do not add up. */
static bb_range made(double least, double most) {
  return (bb_range){isnan(least) ? -INFINITY : least, isnan(most) ? INFINITY : most};
}

static bb_range times(bb_range a, bb_range b) {
  const double all[] = {a.least * b.least, a.least * b.most, a.most * b.least, a.most * b.most};
  bb_range r = {all[0], all[0]};
  for (int i = 0; i < 4; i++) {
    if (isnan(all[i])) return ANYTHING;
    r = both(r, (bb_range){all[i], all[i]});
  }
  return r;
}

static bool has_zero(bb_range r) {
  return r.least <= 0 && r.most >= 0;
}

/* What a function that never falls gives. */
static bb_range through(double f(double), bb_range r) {
  return made(f(r.least), f(r.most));
}

static bb_range root(bb_range r) {
  return through(sqrt, (bb_range){fmax(r.least, 0), fmax(r.most, 0)});
}

static bb_range size_of(bb_range r) {
  const double a = fabs(r.least), b = fabs(r.most);
  return (bb_range){has_zero(r) ? 0 : fmin(a, b), fmax(a, b)};
}

/* By a number: of even ones the size counts, and others are known of what is not negative. */
static bb_range power_of(bb_range r, bb_range by) {
  const double n = by.least;
  if (n != by.most || !isfinite(n)) return ANYTHING;
  if (fmod(n, 2) == 0) r = size_of(r);
  if (r.least < 0) return ANYTHING;
  const double a = pow(r.least, n), b = pow(r.most, n);
  return (bb_range){fmin(a, b), fmax(a, b)};
}

static bb_range divided(bb_range a, bb_range b) {
  return has_zero(b) ? ANYTHING : times(a, (bb_range){1 / b.most, 1 / b.least});
}

/* Those of a type that holds integers, or ANYTHING. */
static bb_range of_type(bb_dtype dtype) {
  if (dtype == BB_BOOL) return (bb_range){0, 1};
  if (!bb_dtype_is_stored(dtype)) return ANYTHING;
  const double count = ldexp(1, 8 * (int)bb_dtype_bytes(dtype));
  return bb_dtype_wrap(dtype, -1) < 0 ? (bb_range){-count / 2, count / 2 - 1}
                                      : (bb_range){0, count - 1};
}

static bool within(bb_range inner, bb_range outer) {
  return inner.least >= outer.least && inner.most <= outer.most;
}

/* What comes out of a cast; integers wrap where they do not fit. */
static bb_range cast_to(bb_dtype to, bb_dtype from, bb_range r) {
  if (bb_dtype_is_float(to)) return (bb_range){bb_round_to(to, r.least), bb_round_to(to, r.most)};
  if (to == BB_BOOL) return of_type(to);
  if (bb_dtype_is_float(from))
    r = both((bb_range){trunc(r.least), trunc(r.most)}, (bb_range){0, 0});
  const bb_range fits = to == BB_I32 ? (bb_range){INT32_MIN, INT32_MAX} : of_type(to);
  return within(r, fits) ? r : fits;
}

/* Integers wrap where they leave the type. */
static bb_range kept(bb_dtype dtype, bb_range r) {
  const bb_range fits = {INT32_MIN, INT32_MAX};
  if (bb_dtype_is_float(dtype)) return r;
  return dtype == BB_I32 && within(r, fits) ? r : ANYTHING;
}

static bb_range range_of(const bb_ix *ix, uint32_t value, uint32_t depth);

static bb_range range_of_expr(const bb_ix *ix, const bb_ix_node *node, const bb_expr *e,
                              uint32_t depth) {
  bb_range r[3] = {ANYTHING, ANYTHING, ANYTHING};
  if (e->op == BB_X_CONST) return (bb_range){e->number, e->number};
  if (depth == DEPTH) return ANYTHING;
  if (e->op == BB_X_ARG) return range_of(ix, node->in[e->index].value, depth + 1);
  for (uint32_t i = 0; i < bb_expr_op_arity(e->op); i++)
    r[i] = range_of_expr(ix, node, e->a[i], depth + 1);
  switch (e->op) {
  case BB_X_ADD: return kept(e->dtype, made(r[0].least + r[1].least, r[0].most + r[1].most));
  case BB_X_SUB: return kept(e->dtype, made(r[0].least - r[1].most, r[0].most - r[1].least));
  case BB_X_NEG: return kept(e->dtype, (bb_range){-r[0].most, -r[0].least});
  case BB_X_MUL: return kept(e->dtype, times(r[0], r[1]));
  case BB_X_MIN: return (bb_range){fmin(r[0].least, r[1].least), fmin(r[0].most, r[1].most)};
  case BB_X_MAX: return (bb_range){fmax(r[0].least, r[1].least), fmax(r[0].most, r[1].most)};
  case BB_X_FLOOR: return (bb_range){floor(r[0].least), floor(r[0].most)};
  case BB_X_CEIL: return (bb_range){ceil(r[0].least), ceil(r[0].most)};
  case BB_X_ROUND: return (bb_range){rint(r[0].least), rint(r[0].most)};
  case BB_X_SELECT: return both(r[1], r[2]);
  case BB_X_ABS: return bb_dtype_is_float(e->dtype) ? size_of(r[0]) : ANYTHING;
  case BB_X_SQRT: return root(r[0]);
  case BB_X_EXP: return through(exp, r[0]);
  case BB_X_DIV: return bb_dtype_is_float(e->dtype) ? divided(r[0], r[1]) : ANYTHING;
  case BB_X_POW: return bb_dtype_is_float(e->dtype) ? power_of(r[0], r[1]) : ANYTHING;
  case BB_X_CAST: return cast_to(e->dtype, e->a[0]->dtype, r[0]);
  default: return ANYTHING;
  }
}

/* A sum of what has one sign has it, too. */
static bb_range range_of_fold(const bb_ix *ix, const bb_ix_node *node, uint32_t depth) {
  if (node->monoid->id != BB_MONOID_SUM) return ANYTHING;
  const bb_range r = range_of(ix, node->in[0].value, depth + 1);
  return (bb_range){r.least >= 0 ? 0 : -INFINITY, r.most <= 0 ? 0 : INFINITY};
}

/* Some elements of a constant from `at` on, as numbers; how many. */
enum { CHUNK = 256 };
static size_t elements(const bb_array_value *v, size_t at, double number[CHUNK]) {
  const size_t size = bb_dtype_bytes(v->dtype), count = v->bytes / size;
  const size_t some = at >= count ? 0 : count - at < CHUNK ? count - at : CHUNK;
  if (some) bb_interp_load(v->dtype, (const char *)v->data + at * size, some, number);
  return some;
}

bool bb_ix_is_whole(const bb_array_value *v) {
  double number[CHUNK];
  size_t some;
  for (size_t at = 0; v->data && (some = elements(v, at, number)) > 0; at += some)
    for (size_t i = 0; i < some; i++)
      if (!isfinite(number[i]) || rint(number[i]) != number[i]) return false;
  return v->data;
}

static bb_range range_of_data(const bb_array_value *v) {
  double number[CHUNK];
  bb_range r = {INFINITY, -INFINITY};
  size_t some;
  for (size_t at = 0; (some = elements(v, at, number)) > 0; at += some)
    for (size_t i = 0; i < some; i++) {
      if (isnan(number[i])) return ANYTHING;
      r = both(r, (bb_range){number[i], number[i]});
    }
  return r.least <= r.most ? r : (bb_range){0, 0};
}

static bb_range range_of(const bb_ix *ix, uint32_t value, uint32_t depth) {
  const bb_ix_node *node = bb_ix_node_of(ix, value);
  if (depth >= DEPTH) return of_type(ix->value[value].dtype);
  switch (node->op) {
  case BB_IX_ELEMENTWISE: return range_of_expr(ix, node, node->expr, depth + 1);
  case BB_IX_REDUCE:
    if (bb_dtype_is_float(ix->value[value].dtype)) return range_of_fold(ix, node, depth);
    return of_type(ix->value[value].dtype);
  case BB_IX_SOURCE: {
    const bb_array_value *v = &ix->array->value[node->tensor];
    return v->data ? range_of_data(v) : of_type(v->dtype);
  }
  case BB_IX_SLICE:
  case BB_IX_WINDOWS:
  case BB_IX_PAD:
  case BB_IX_JOIN: {
    bb_range r = range_of(ix, node->in[0].value, depth + 1);
    for (uint32_t i = 1; i < node->nin; i++)
      r = both(r, range_of(ix, node->in[i].value, depth + 1));
    if (node->op == BB_IX_PAD) r = both(r, (bb_range){node->expr->number, node->expr->number});
    return r;
  }
  default: return of_type(ix->value[value].dtype);
  }
}

bb_range bb_ix_range_of(const bb_ix *ix, const bb_ix_node *node, const bb_expr *expr) {
  return range_of_expr(ix, node, expr, 0);
}

bb_range bb_ix_range_of_value(const bb_ix *ix, uint32_t value) {
  return range_of(ix, value, 0);
}
