/* algebra_expr.c - expressions to normal forms, and the test for zero. */
#include "algebra_normal.h"

#include "../graph/intern.h"

#include <math.h>

static const bb_ratio minus_one = {-1, 1}, plus_one = {1, 1};

/* --- leaves --- */

typedef struct memo { /* as in algebra_normal.c */
  const bb_expr *expr;
  const bb_normal *value;
} memo;

static uint32_t sign_of_range(bb_range r) {
  uint32_t sign = 0;
  if (r.lo < 0) sign |= BB_SIGN_NEG;
  if (r.hi > 0) sign |= BB_SIGN_POS;
  if (r.lo <= 0 && r.hi >= 0 && !r.nonzero) sign |= BB_SIGN_ZERO;
  return sign;
}

static uint32_t deps_of(const bb_algebra *al, const bb_expr *expr) {
  if (expr->op == BB_X_ARG) return expr->index < al->args ? al->deps[expr->index] : BB_DEP_FIXED;
  if (expr->op == BB_X_COORD) return BB_DEP_ELEMENT;
  if (expr->op == BB_X_EXTENT || expr->op == BB_X_SYMBOL) return BB_DEP_FIXED;
  uint32_t deps = expr->coord ? BB_DEP_ELEMENT : 0;
  for (uint32_t i = 0; i < expr->arg_count; i++)
    if (bb_expr_uses_arg(expr, i)) deps |= i < al->args ? al->deps[i] : BB_DEP_FIXED;
  return deps;
}

/* An expression the algebra does not look into. */
static const bb_normal *opaque(bb_algebra *al, const bb_expr *expr) {
  bb_atom key = {.kind = BB_ATOM_LEAF,
                 .expr = expr,
                 .deps = deps_of(al, expr),
                 .sign = BB_SIGN_ANY,
                 .predicate = expr->dtype == BB_BOOL};
  bb_range_env env = {.real = true, .args = al->args, .arg = al->range};
  bb_range r = bb_range_of(&env, al->program, expr);
  if (!r.nan) key.sign = sign_of_range(r);
  return bb_normal_atom(al, bb_normal_intern_atom(al, key), plus_one);
}

/* The fraction p / q, p small, that a constant is the nearest double to. */
static bool simple_fraction(double value, bb_ratio *fraction) {
  double size = fabs(value);
  for (int64_t p = 1; p <= 16 && size > 0; p++) {
    double q = nearbyint((double)p / size), rounded = (double)p / q;
    bool fits = q >= 1 && q < 0x1p20 && rounded == size;
    *fraction = (bb_ratio){value < 0 ? -p : p, fits ? (int64_t)q : 1};
    if (fits) return true;
  }
  return false;
}

/* A constant is exact if it is a dyadic fraction of moderate size.  The double nearest to a simple
 * fraction (a mean multiplies by 1/768) stands for that fraction: it differs by less than any
 * arithmetic's own rounding.  Any other constant, 1/768 rounded to a float too, is a name for
 * itself: nothing is rounded, and no product of such constants can overflow. */
static const bb_normal *constant(bb_algebra *al, const bb_expr *expr) {
  double scaled = expr->number * 0x1p20;
  bb_ratio fraction;
  if (fabs(expr->number) < 0x1p32 && scaled == trunc(scaled))
    return bb_normal_number(al, bb_ratio_make(al, (__int128)scaled, 1 << 20));
  if (simple_fraction(expr->number, &fraction))
    return bb_normal_number(al, bb_ratio_make(al, fraction.num, fraction.den));
  if (expr->number < 0) /* one atom for both signs */
    return bb_normal_scale(al, opaque(al, bb_expr_const(al->program, expr->dtype, -expr->number)),
                           minus_one);
  return opaque(al, expr);
}

static const bb_normal *leaf(bb_algebra *al, const bb_expr *expr) {
  return expr->op == BB_X_CONST && isfinite(expr->number) ? constant(al, expr) : opaque(al, expr);
}

/* --- operators --- */

static bool is_infinite(const bb_expr *expr) {
  return expr->op == BB_X_CONST && !isfinite(expr->number);
}

static const bb_normal *power(bb_algebra *al, const bb_expr *expr, const bb_normal *a,
                              const bb_normal *b) {
  bb_ratio e;
  if (bb_normal_is_number(b, &e) && e.num > -65 && e.num < 65 && e.den <= 8) {
    if (e.num > 0 && e.den == 1 && a->count > 1 && e.num > 16) return opaque(al, expr);
    return bb_normal_power(al, a, e);
  }
  if (bb_normal_sign(a) == BB_SIGN_POS && bb_dtype_is_float(expr->dtype))
    return bb_normal_exp(al, bb_normal_multiply(al, b, bb_normal_log(al, a)));
  return bb_normal_call(al, BB_X_POW, expr->dtype, a, b, NULL);
}

/* select(p, x, y) = p*x + (1-p)*y for a predicate p; an arm that may be infinite stays inside. */
static const bb_normal *selection(bb_algebra *al, const bb_expr *expr, const bb_normal *p,
                                  const bb_normal *x, const bb_normal *y) {
  if (x == y) return x;
  if (expr->a[0]->dtype != BB_BOOL || x->infinite || y->infinite)
    return bb_normal_call(al, BB_X_SELECT, expr->dtype, p, x, y);
  return bb_normal_add(al, y, bb_normal_multiply(al, p, bb_normal_subtract(al, x, y)));
}

static bool is_rounding(const bb_algebra *al, const bb_expr *cast) {
  bb_dtype from = cast->a[0]->dtype, to = cast->dtype;
  if (!bb_dtype_is_float(to)) return from != BB_BOOL && !(from == BB_I32 && to == BB_I64);
  return bb_dtype_is_float(from) && al->strict && bb_dtype_bytes(to) <= bb_dtype_bytes(from);
}

static const bb_normal *logic(bb_algebra *al, const bb_expr *expr, const bb_normal *a,
                              const bb_normal *b) {
  if (expr->a[0]->dtype != BB_BOOL || (b && expr->a[1]->dtype != BB_BOOL))
    return bb_normal_call(al, expr->op, BB_BOOL, a, b, NULL);
  if (expr->op == BB_X_NOT) return bb_normal_subtract(al, al->one, a);
  const bb_normal *both = bb_normal_multiply(al, a, b);
  if (expr->op == BB_X_AND) return both;
  if (expr->op == BB_X_XOR) both = bb_normal_scale(al, both, (bb_ratio){2, 1});
  return bb_normal_subtract(al, bb_normal_add(al, a, b), both);
}

static const bb_normal *extremum(bb_algebra *al, const bb_expr *expr, const bb_normal *a,
                                 const bb_normal *b) {
  bool max = expr->op == BB_X_MAX;
  double neutral = max ? -INFINITY : INFINITY;
  if (is_infinite(expr->a[0]) && expr->a[0]->number == neutral) return b;
  if (is_infinite(expr->a[1]) && expr->a[1]->number == neutral) return a;
  if (a->infinite || b->infinite) return opaque(al, expr);
  return bb_normal_extremum(al, max, a, b);
}

static const bb_normal *known(const bb_algebra *al, const bb_expr *expr);

/* a / expr.  A power of a sum stays one below: s**2 multiplied out is no longer seen to be a square. */
static const bb_normal *quotient(bb_algebra *al, const bb_normal *a, const bb_expr *expr) {
  bb_ratio e;
  if (expr->op == BB_X_MUL) return quotient(al, quotient(al, a, expr->a[0]), expr->a[1]);
  bool power = expr->op == BB_X_POW && bb_normal_is_number(known(al, expr->a[1]), &e);
  if (!power || e.num <= 0 || e.num >= 65 || e.den > 8)
    return bb_normal_divide(al, a, known(al, expr));
  const bb_normal *below = bb_normal_power(al, known(al, expr->a[0]), (bb_ratio){-e.num, e.den});
  return bb_normal_multiply(al, a, below);
}

static const bb_normal *operator(bb_algebra *al, const bb_expr *expr, const bb_normal *const *a) {
  bool integer = !bb_dtype_is_float(expr->dtype);
  bool infinite = a[0]->infinite || (a[1] && a[1]->infinite);
  switch (expr->op) {
  case BB_X_SELECT: return selection(al, expr, a[0], a[1], a[2]);
  case BB_X_MIN:
  case BB_X_MAX: return extremum(al, expr, a[0], a[1]);
  case BB_X_CAST:
    if (!is_rounding(al, expr) && expr->dtype != BB_BOOL) return a[0];
    return bb_normal_call(al, BB_X_CAST, expr->dtype, a[0], NULL, NULL);
  default: break;
  }
  if (infinite) return opaque(al, expr);
  switch (expr->op) {
  case BB_X_ADD: return bb_normal_add(al, a[0], a[1]);
  case BB_X_SUB: return bb_normal_subtract(al, a[0], a[1]);
  case BB_X_MUL: return bb_normal_multiply(al, a[0], a[1]);
  case BB_X_DIV:
    if (integer) return bb_normal_call(al, BB_X_DIV, expr->dtype, a[0], a[1], NULL);
    return quotient(al, a[0], expr->a[1]);
  case BB_X_POW: return power(al, expr, a[0], a[1]);
  case BB_X_NEG: return bb_normal_scale(al, a[0], minus_one);
  case BB_X_ABS: return bb_normal_abs(al, a[0]);
  case BB_X_SQRT: return bb_normal_power(al, a[0], (bb_ratio){1, 2});
  case BB_X_EXP: return bb_normal_exp(al, a[0]);
  case BB_X_LOG: return bb_normal_log(al, a[0]);
  case BB_X_AND:
  case BB_X_OR:
  case BB_X_XOR:
  case BB_X_NOT: return logic(al, expr, a[0], a[1]);
  default: return bb_normal_call(al, expr->op, expr->dtype, a[0], a[1], a[2]);
  }
}

/* The atom that a call became keeps the expression, if that is all there is to it. */
static void note_origin(const bb_expr *expr, const bb_normal *value) {
  if (value->count != 1 || value->term[0].count != 1) return;
  const bb_term *t = &value->term[0];
  bb_atom *atom = (bb_atom *)t->factor[0].atom;
  bool plain =
      t->k.num == 1 && t->k.den == 1 && t->factor[0].power.num == 1 && t->factor[0].power.den == 1;
  if (plain && !atom->expr && atom->kind == BB_ATOM_CALL) atom->expr = expr;
}

static const bb_normal *known(const bb_algebra *al, const bb_expr *expr) {
  const memo *found = bb_intern_find(al->memo, &(memo){.expr = expr});
  return found ? found->value : NULL;
}

const bb_normal *bb_normal_of(bb_algebra *al, const bb_expr *expr) {
  uint32_t count;
  const bb_expr **node = bb_expr_postorder(al->arena, expr, &count);
  for (uint32_t i = 0; i < count; i++) {
    if (known(al, node[i])) continue;
    uint32_t arity = bb_expr_op_arity(node[i]->op);
    const bb_normal *a[3] = {NULL, NULL, NULL};
    for (uint32_t k = 0; k < arity; k++) a[k] = known(al, node[i]->a[k]);
    const bb_normal *value = arity ? operator(al, node[i], a) : leaf(al, node[i]);
    if (al->gave_up) return al->zero;
    note_origin(node[i], value);
    memo *entry = BB_NEW(al->arena, memo, 1);
    *entry = (memo){node[i], value};
    bb_intern_add(al->memo, entry);
  }
  return known(al, expr);
}

/* --- zero --- */

/* Multiplies by every sum that stands in a denominator until none does. */
static const bb_normal *clear_denominators(bb_algebra *al, const bb_normal *a) {
  for (int round = 0; round < 32 && !al->gave_up; round++) {
    const bb_atom *found = NULL;
    bb_ratio least = {0, 1};
    for (uint32_t i = 0; i < a->count; i++) {
      for (uint32_t f = 0; f < a->term[i].count; f++) {
        bb_factor at = a->term[i].factor[f];
        if (at.atom->kind != BB_ATOM_SUM || at.power.num >= 0 || (found && found != at.atom))
          continue;
        found = at.atom;
        if ((__int128)at.power.num * least.den < (__int128)least.num * at.power.den)
          least = at.power;
      }
    }
    if (!found) return a;
    a = bb_normal_multiply_power(al, a, found, (bb_ratio){-least.num, least.den});
  }
  return a;
}

static bool splits(const bb_atom *atom) {
  return atom->kind == BB_ATOM_ABS || (atom->predicate && atom->kind == BB_ATOM_CALL);
}

/* Some atom to decide by cases, innermost first. */
static const bb_atom *case_of(const bb_normal *a) {
  for (uint32_t i = 0; i < a->count; i++) {
    for (uint32_t f = 0; f < a->term[i].count; f++) {
      const bb_atom *atom = a->term[i].factor[f].atom;
      for (int k = 0; k < 3; k++) {
        const bb_atom *inner = atom->a[k] ? case_of(atom->a[k]) : NULL;
        if (inner) return inner;
      }
      if (splits(atom)) return atom;
    }
  }
  return NULL;
}

static const bb_normal *replace(bb_algebra *al, const bb_normal *a, const bb_atom *old,
                                const bb_normal *with);

static const bb_normal *replace_atom(bb_algebra *al, const bb_atom *atom, const bb_atom *old,
                                     const bb_normal *with) {
  if (atom == old) return with;
  if (atom->kind == BB_ATOM_LEAF) return bb_normal_atom(al, atom, plus_one);
  const bb_normal *a[3] = {NULL, NULL, NULL};
  for (int i = 0; i < 3; i++) a[i] = atom->a[i] ? replace(al, atom->a[i], old, with) : NULL;
  switch (atom->kind) {
  case BB_ATOM_SUM: return a[0];
  case BB_ATOM_EXP: return bb_normal_exp(al, a[0]);
  case BB_ATOM_ABS: return bb_normal_abs(al, a[0]);
  default: break;
  }
  if (atom->op == BB_X_LOG) return bb_normal_log(al, a[0]);
  if (atom->op == BB_X_LT || atom->op == BB_X_LE || atom->op == BB_X_EQ)
    return bb_normal_call(al, atom->op, BB_BOOL, al->zero, a[0], NULL);
  return bb_normal_call(al, atom->op, atom->dtype, a[0], a[1], a[2]);
}

static const bb_normal *replace(bb_algebra *al, const bb_normal *a, const bb_atom *old,
                                const bb_normal *with) {
  const bb_normal *sum = al->zero;
  for (uint32_t i = 0; i < a->count && !al->gave_up; i++) {
    const bb_normal *product = bb_normal_number(al, a->term[i].k);
    for (uint32_t f = 0; f < a->term[i].count && !al->gave_up; f++) {
      bb_factor at = a->term[i].factor[f];
      const bb_normal *base = replace_atom(al, at.atom, old, with);
      product = bb_normal_multiply(al, product, bb_normal_power(al, base, at.power));
    }
    sum = bb_normal_add(al, sum, product);
  }
  return sum;
}

enum { CASES = 6 };

/* What the cases above decided: atoms and what stands for them, so that an atom which comes back is
 * not decided twice. */
typedef struct decided {
  uint32_t count;
  const bb_atom *atom[CASES];
  const bb_normal *value[CASES];
} decided;

static bool zero_by_cases(bb_algebra *al, const bb_normal *a, decided above) {
  a = clear_denominators(al, a);
  if (al->gave_up) return false;
  if (!a->count) return true;
  const bb_atom *atom = case_of(a);
  if (!atom || a->infinite) return false;
  for (uint32_t i = 0; i < above.count; i++)
    if (above.atom[i] == atom)
      return zero_by_cases(al, replace(al, a, atom, above.value[i]), above);
  if (above.count == CASES) return false;
  bool absolute = atom->kind == BB_ATOM_ABS;
  const bb_normal *high = absolute ? atom->a[0] : al->one;
  const bb_normal *low = absolute ? bb_normal_scale(al, high, minus_one) : al->zero;
  uint32_t last = above.count++;
  above.atom[last] = atom;
  above.value[last] = high;
  if (!zero_by_cases(al, replace(al, a, atom, high), above)) return false;
  above.value[last] = low;
  return zero_by_cases(al, replace(al, a, atom, low), above);
}

bool bb_normal_is_zero(bb_algebra *al, const bb_normal *a) {
  return !al->gave_up && zero_by_cases(al, a, (decided){0}) && !al->gave_up;
}

bool bb_algebra_equal(bb_algebra *al, const bb_expr *a, const bb_expr *b) {
  if (a == b) return true;
  const bb_normal *left = bb_normal_of(al, a), *right = bb_normal_of(al, b);
  if (al->gave_up) return false;
  if (left->infinite || right->infinite) return left == right;
  return bb_normal_is_zero(al, bb_normal_subtract(al, left, right));
}
