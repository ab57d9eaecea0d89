/* scalar_fault.c - what becomes of an overflow or an underflow of an exp, operator by operator.
 *
 * An exp that overflows gives an infinity where the real number is huge: HIGH.  One that underflows
 * gives 0 where the real number is tiny: ZERO.  Both are right as limits, and most operators keep
 * them so: 1 / (1 + inf) is 0, as it should be.  What forgets how huge or how tiny the number was and
 * still depends on it is wrong: inf / inf, 0 * inf, inf - inf, 1 / (a sum of zeros), the logarithm
 * of either.  There the exps behind the operands are marked unsafe.
 *
 * A zero that comes of dividing by an infinity is a right result like any other; a zero that an exp
 * gave is one until it is divided by, or its logarithm or root is taken.
 */
#include "scalar.h"

#include <string.h>

enum { RISKS = 16 };

static const uint32_t infinite = BB_FAULT_HIGH | BB_FAULT_LOW;
static const uint32_t wrong = BB_FAULT_HIGH | BB_FAULT_LOW | BB_FAULT_ZERO;

/* --- which exps a fault may come from --- */

static bool holds(const uint32_t *risk, uint32_t count, uint32_t exp) {
  for (uint32_t i = 0; i < count; i++)
    if (risk[i] == exp) return true;
  return false;
}

/* The exps of an operand are added to the term's; beyond RISKS they are all unsafe at once, so that
 * nothing has to be remembered. */
void bb_scalar_inherit(bb_scalars *t, bb_scalar *term, const bb_scalar *from) {
  if (!from || !from->fault || !from->risks || term->risk == from->risk) return;
  if (!term->risks) {
    term->risks = from->risks;
    term->risk = from->risk;
    return;
  }
  uint32_t *both = BB_NEW(t->arena, uint32_t, (size_t)term->risks + from->risks),
           count = term->risks;
  memcpy(both, term->risk, term->risks * sizeof *both);
  for (uint32_t i = 0; i < from->risks; i++)
    if (!holds(both, count, from->risk[i])) both[count++] = from->risk[i];
  term->risk = both;
  term->risks = count;
  if (count <= RISKS) return;
  bool harmless = !(term->fault & wrong);
  for (uint32_t i = 0; i < count && !harmless; i++)
    bb_exp_condemn(t, bb_exp_of(t, both[i]), "its value meets those of many other exps");
  term->risks = 0;
  term->fault = harmless ? term->fault & BB_FAULT_PAIR : BB_FAULT_PAIR;
}

static void blame(bb_scalars *t, const bb_scalar *operand, const char *reason) {
  if (!operand || !operand->fault) return;
  t->blamed = true;
  for (uint32_t i = 0; i < operand->risks; i++)
    bb_exp_condemn(t, bb_exp_of(t, operand->risk[i]), reason);
}

void bb_scalar_blame(bb_scalars *t, const bb_scalar *term, uint32_t faults, const char *reason) {
  if (term->fault & faults) blame(t, term, reason);
}

/* --- exps --- */

static const double margin = 0.5; /* of the exponents that a type holds: sums need room */

static double least_exponent(bb_dtype dtype) {
  return dtype == BB_F64 ? -708 : dtype == BB_F16 ? -9.7 : -87;
}

static uint32_t exp_fault(bb_scalars *t, const bb_scalar *term) {
  bool power = term->op == BB_X_POW;
  const bb_scalar *exponent = power ? term->a[1] : term->a[0];
  double by = power ? log(term->a[0]->number) : 1;
  bb_exp *exp = bb_exp_of(t, term->exp);
  if (!power && bb_scalar_is_below_maximum(t, exponent, &t->small)) {
    if (!t->small) t->small = BB_VAR_NEVER;
    exp->bound = "its exponent is an element less the maximum over its row";
    return BB_FAULT_SMALL;
  }
  bb_range range = bb_scalar_bounds(t, exponent);
  double lo = fmin(range.lo * by, range.hi * by), hi = fmax(range.lo * by, range.hi * by);
  const bb_dtype held = t->halves && term->dtype == BB_F32 ? BB_F16 : term->dtype;
  uint32_t fault = 0;
  if (hi > margin * log(bb_dtype_largest(held))) fault |= BB_FAULT_HIGH;
  if (lo < margin * least_exponent(held)) fault |= BB_FAULT_ZERO;
  if (!fault)
    exp->bound =
        bb_arena_printf(t->program->arena, "its exponent is between %.4g and %.4g", lo, hi);
  return fault;
}

/* --- operators --- */

static uint32_t flip(uint32_t fault) {
  return (fault & BB_FAULT_HIGH ? BB_FAULT_LOW : 0) | (fault & BB_FAULT_LOW ? BB_FAULT_HIGH : 0) |
         (fault & BB_FAULT_ZERO);
}

/* The signs that an infinity times (divided by) a number of this range can have. */
static uint32_t signs(uint32_t fault, bb_range by) {
  if (by.lo >= 0) return fault & infinite;
  if (by.hi <= 0) return flip(fault) & infinite;
  return fault & infinite ? infinite : 0;
}

static uint32_t add(bb_scalars *t, const bb_scalar *a, const bb_scalar *b, uint32_t of_b) {
  if ((a->fault & BB_FAULT_HIGH && of_b & BB_FAULT_LOW) ||
      (a->fault & BB_FAULT_LOW && of_b & BB_FAULT_HIGH)) {
    blame(t, a, "an infinity less an infinity");
    blame(t, b, "an infinity less an infinity");
    return 0;
  }
  return ((a->fault | of_b) & infinite) | (a->fault & of_b & BB_FAULT_ZERO);
}

static uint32_t multiply(bb_scalars *t, const bb_scalar *a, const bb_scalar *b) {
  const char *reason = "an infinity times what may be 0";
  for (int swap = 0; swap < 2; swap++) {
    const bb_scalar *x = swap ? b : a, *y = swap ? a : b;
    bool zero = y->fault & (BB_FAULT_ZERO | BB_FAULT_SMALL) ||
                (!y->range.nonzero && !(y->fault & infinite));
    if (!(x->fault & infinite) || !zero) continue;
    blame(t, x, reason);
    blame(t, y, reason);
    return 0;
  }
  return signs(a->fault, b->range) | signs(b->fault, a->range) |
         ((a->fault | b->fault) & BB_FAULT_ZERO);
}

static uint32_t divide(bb_scalars *t, const bb_scalar *a, const bb_scalar *b) {
  if (a->fault & infinite && b->fault & infinite) {
    blame(t, a, "an infinity divided by an infinity");
    blame(t, b, "an infinity divided by an infinity");
    return 0;
  }
  bool zero = a->fault & (BB_FAULT_ZERO | BB_FAULT_SMALL) || !a->range.nonzero;
  if (b->fault & BB_FAULT_ZERO && zero) {
    blame(t, a, "0 divided by 0 where all of a sum underflows");
    blame(t, b, "0 divided by 0 where all of a sum underflows");
    return 0;
  }
  uint32_t high = b->fault & BB_FAULT_ZERO ? BB_FAULT_HIGH : 0;
  if (high && a->range.lo < 0) high = a->range.hi <= 0 ? BB_FAULT_LOW : infinite;
  return signs(a->fault, b->range) | (a->fault & BB_FAULT_ZERO) | high;
}

static uint32_t power(bb_scalars *t, const bb_scalar *a, const bb_scalar *b) {
  double e = b->kind == BB_SCALAR_NUMBER ? b->number : 0;
  if (!(a->fault & wrong) && !(b->fault & wrong)) return 0;
  if (b->fault & wrong || fabs(e) < 1) {
    blame(t, a, "a power of an overflow or underflow");
    blame(t, b, "an overflow or underflow as a power");
    return 0;
  }
  bool even = fmod(e, 2) == 0;
  uint32_t f =
      even && a->fault & infinite ? BB_FAULT_HIGH | (a->fault & BB_FAULT_ZERO) : a->fault & wrong;
  if (e > 0) return f;
  return f & BB_FAULT_ZERO ? a->range.lo >= 0 || even ? BB_FAULT_HIGH : infinite : 0;
}

static uint32_t extremum(const bb_scalar *a, const bb_scalar *b, uint32_t winning,
                         uint32_t losing) {
  uint32_t either = a->fault | b->fault, both = a->fault & b->fault;
  return (either & winning) | (both & losing) | (either & BB_FAULT_ZERO);
}

/* Operators that give a number of moderate size for an infinity or a zero, but the wrong one. */
static uint32_t forget(bb_scalars *t, const bb_scalar *term, uint32_t faults, const char *reason) {
  for (uint32_t i = 0; i < 3 && term->a[i]; i++)
    if (term->a[i]->fault & faults) blame(t, term->a[i], reason);
  return 0;
}

static uint32_t compare(bb_scalars *t, const bb_scalar *a, const bb_scalar *b) {
  uint32_t both = a->fault & b->fault & wrong;
  if (!both) return 0;
  blame(t, a, "two overflows or underflows are compared");
  blame(t, b, "two overflows or underflows are compared");
  return 0;
}

/* Of the faults that make a value wrong. */
static uint32_t wrong_of(bb_scalars *t, const bb_scalar *term) {
  const bb_scalar *a = term->a[0], *b = term->a[1];
  switch (term->op) {
  case BB_X_EXP:
    if (a->fault & infinite) return exp_fault(t, term) | BB_FAULT_HIGH | BB_FAULT_ZERO;
    return exp_fault(t, term);
  case BB_X_ADD: return add(t, a, b, b->fault);
  case BB_X_SUB: return add(t, a, b, flip(b->fault));
  case BB_X_MUL: return multiply(t, a, b);
  case BB_X_DIV: return divide(t, a, b);
  case BB_X_POW: return term->exp ? exp_fault(t, term) : power(t, a, b);
  case BB_X_NEG: return flip(a->fault);
  case BB_X_ABS: return (a->fault & infinite ? BB_FAULT_HIGH : 0) | (a->fault & BB_FAULT_ZERO);
  case BB_X_LOG:
    return forget(t, term, infinite | BB_FAULT_ZERO, "the logarithm of an overflow or underflow");
  case BB_X_SQRT:
    return forget(t, term, infinite | BB_FAULT_ZERO, "the root of an overflow or underflow");
  case BB_X_SIGN: return forget(t, term, BB_FAULT_ZERO, "the sign of an underflow");
  case BB_X_ATAN:
  case BB_X_TANH:
  case BB_X_ERF: return a->fault & BB_FAULT_ZERO;
  case BB_X_FLOOR:
  case BB_X_CEIL:
  case BB_X_ROUND: return a->fault & infinite;
  case BB_X_MIN: return extremum(a, b, BB_FAULT_LOW, BB_FAULT_HIGH);
  case BB_X_MAX: return extremum(a, b, BB_FAULT_HIGH, BB_FAULT_LOW);
  case BB_X_LT:
  case BB_X_LE:
  case BB_X_EQ:
  case BB_X_NE: return compare(t, a, b);
  case BB_X_SELECT: return (b->fault | term->a[2]->fault) & wrong;
  case BB_X_CAST:
    if (bb_dtype_is_float(term->dtype)) return a->fault & wrong;
    return forget(t, term, infinite | BB_FAULT_ZERO, "an overflow or underflow made an integer");
  default: return forget(t, term, infinite, "a function of an infinity");
  }
}

/* --- pairs --- */

/* Does an operator make a pair of pairs, rather than multiply them back? */
static bool keeps_pairs(const bb_scalar *term) {
  if (term->kind != BB_SCALAR_APPLY)
    return term->fold == BB_MONOID_SUM || term->fold == BB_MONOID_MAX ||
           term->fold == BB_MONOID_MIN;
  if (!bb_dtype_is_float(term->dtype)) return false;
  switch (term->op) {
  case BB_X_ADD:
  case BB_X_SUB:
  case BB_X_MUL:
  case BB_X_DIV:
  case BB_X_MIN:
  case BB_X_MAX:
  case BB_X_NEG:
  case BB_X_ABS:
  case BB_X_SQRT:
  case BB_X_SELECT:
  case BB_X_CAST: return true;
  case BB_X_POW: return !term->exp && term->a[1]->kind == BB_SCALAR_NUMBER;
  default: return false;
  }
}

/* What brings two values to one exponent, or multiplies one by the other's. */
static bool brings_together(const bb_scalar *term) {
  bool compares =
      term->op == BB_X_LT || term->op == BB_X_LE || term->op == BB_X_EQ || term->op == BB_X_NE;
  return term->kind == BB_SCALAR_APPLY && term->a[1] &&
         (compares || (keeps_pairs(term) && term->op != BB_X_POW));
}

/* An infinity beside what may become a pair: its size would be unknown where it is brought to the
 * pair's exponent. */
static void tie(bb_scalars *t, const bb_scalar *a, const bb_scalar *b) {
  if (!(a->fault & wrong) || !(b->fault & wrong) || !((a->fault | b->fault) & infinite)) return;
  bb_exp *first = NULL;
  for (uint32_t i = 0; i < a->risks + b->risks; i++) {
    bb_exp *exp = bb_exp_of(t, i < a->risks ? a->risk[i] : b->risk[i - a->risks]);
    if (exp->mended) continue;
    if (first) bb_exp_tie(t, first, exp);
    first = exp;
  }
}

/* x / (1 + exp(.. x ..)): neither can make up for the other's size. */
static bool is_gated(const bb_scalar *term) {
  const bb_scalar *of = term->a[0], *sum = term->a[1];
  if (term->op != BB_X_DIV || sum->kind != BB_SCALAR_APPLY || sum->op != BB_X_ADD) return false;
  bool first = sum->a[0]->kind == BB_SCALAR_NUMBER;
  const bb_scalar *exp = sum->a[first];
  if (sum->a[!first]->kind != BB_SCALAR_NUMBER || exp->kind != BB_SCALAR_APPLY ||
      exp->op != BB_X_EXP)
    return false;
  const bb_scalar *e = exp->a[0];
  while (e != of && e->kind == BB_SCALAR_APPLY && (e->op == BB_X_NEG || e->op == BB_X_MUL))
    e = e->a[e->op == BB_X_MUL && e->a[0]->kind == BB_SCALAR_NUMBER];
  return e == of;
}

/* Where a pair meets what is none and has a fault, that has to become one.  Did it? */
static bool meet(bb_scalars *t, const bb_scalar *a, const bb_scalar *b) {
  const char *reason = "its value meets that of a pair";
  bool found = false;
  for (int swap = 0; swap < 2; swap++) {
    const bb_scalar *x = swap ? b : a, *y = swap ? a : b;
    if (!(x->fault & BB_FAULT_PAIR) || !y->risks) continue;
    blame(t, y, reason);
    found = true;
  }
  if (!found) tie(t, a, b);
  return found;
}

/* What a value takes over of the faults that do no harm by themselves. */
static uint32_t harmless_of(const bb_scalar *term) {
  if (!keeps_pairs(term)) return 0;
  bool select = term->kind == BB_SCALAR_APPLY && term->op == BB_X_SELECT;
  uint32_t a = term->a[select]->fault, b = a;
  if (term->a[select + 1]) b = term->a[select + 1]->fault;
  bool both = term->kind == BB_SCALAR_APPLY && (term->op == BB_X_ADD || term->op == BB_X_SUB);
  bool first = term->kind == BB_SCALAR_APPLY && (term->op == BB_X_DIV || term->op == BB_X_POW);
  uint32_t small = both ? a & b : first ? a : a | b;
  if (first && term->op == BB_X_POW && term->a[1]->number < 0) small = 0;
  return ((a | b) & BB_FAULT_PAIR) | (small & BB_FAULT_SMALL);
}

static uint32_t apply_fault(bb_scalars *t, const bb_scalar *term) {
  uint32_t at = term->op == BB_X_SELECT;
  if (brings_together(term) && !is_gated(term) && meet(t, term->a[at], term->a[at + 1]))
    return keeps_pairs(term) ? BB_FAULT_PAIR : 0;
  uint32_t fault = wrong_of(t, term);
  return t->blamed ? fault : fault | harmless_of(term);
}

/* --- folds --- */

/* The exps of a row, each of an element less the row's maximum, and other sums of positive terms that
 * cannot all vanish. */
static uint32_t fold_fault(bb_scalars *t, const bb_scalar *term) {
  const bb_scalar *body = term->a[0];
  uint32_t fault = body->fault;
  switch (term->fold) {
  case BB_MONOID_SUM:
    if ((fault & infinite) == infinite)
      return forget(t, term, infinite, "infinities of both signs");
    return fault;
  case BB_MONOID_MAX:
  case BB_MONOID_MIN: return fault;
  case BB_MONOID_PROD:
    if (fault & infinite && (fault & BB_FAULT_ZERO || !body->range.nonzero))
      return forget(t, term, infinite, "an infinity times what may be 0");
    return fault & wrong;
  default: return forget(t, term, infinite | BB_FAULT_ZERO, "overflows or underflows are compared");
  }
}

/* What is made of unsafe exps is made of pairs, and right.  If it is moderate in size, it may become
 * a number again, of which no more is left than that it can underflow. */
static void mend(bb_scalars *t, bb_scalar *term) {
  if (!bb_dtype_is_float(term->dtype)) return;
  if (!bb_scalar_is_moderate(t, term, margin * bb_dtype_largest(term->dtype))) return;
  if (!term->exp) {
    term->exp = bb_exp_add(t);
    bb_exp_of(t, term->exp)->mended = true;
  }
  term->fault = BB_FAULT_ZERO;
}

/* Summed over the row whose maximum its exponents are relative to, a value is no longer small. */
static void sum_up(const bb_scalars *t, bb_scalar *term) {
  if (!(term->fault & BB_FAULT_SMALL)) return;
  bool exp = term->kind == BB_SCALAR_APPLY && (term->op == BB_X_EXP || term->op == BB_X_POW);
  if (exp && term->exp)
    term->small = t->small;
  else
    for (uint32_t i = 0; i < 3 && term->a[i]; i++) term->small |= term->a[i]->small;
  bool above = term->fold == BB_MONOID_SUM || term->fold == BB_MONOID_MAX;
  if ((term->kind != BB_SCALAR_FOLD && term->kind != BB_SCALAR_PART) || !above) return;
  term->small &= ~(UINT64_C(1) << term->var);
  if (!term->small) term->fault &= ~(uint32_t)BB_FAULT_SMALL;
}

/* Divided by an infinity, or a power below 0 of one: 0, however far from it the real number is. */
static bool is_lost_in_zero(const bb_scalar *term) {
  if (term->kind != BB_SCALAR_APPLY) return false;
  if (term->op == BB_X_DIV) return term->a[1]->fault & infinite;
  return term->op == BB_X_POW && !term->exp && term->a[0]->fault & infinite;
}

void bb_scalar_find_faults(bb_scalars *t, bb_scalar *term) {
  if (term->kind == BB_SCALAR_LEAF || term->kind == BB_SCALAR_NUMBER ||
      term->kind == BB_SCALAR_INDEX)
    return;
  bool fold = term->kind != BB_SCALAR_APPLY;
  t->blamed = false;
  term->fault = fold ? fold_fault(t, term) : apply_fault(t, term);
  term->risks = 0;
  term->risk = NULL;
  if (is_lost_in_zero(term)) term->range.nonzero = false;
  if (t->blamed && !(term->fault & wrong)) {
    if (keeps_pairs(term)) term->fault = BB_FAULT_PAIR;
    mend(t, term);
  }
  sum_up(t, term);
  if (!term->fault) return;
  if (term->exp) {
    uint32_t *own = BB_NEW(t->arena, uint32_t, 1);
    *own = term->exp;
    term->risk = own;
    term->risks = 1;
    if (bb_exp_of(t, term->exp)->mended || !(term->a[0]->fault & infinite)) return;
  }
  if (term->fault == BB_FAULT_PAIR) return;
  for (uint32_t i = 0; i < 3 && term->a[i]; i++) bb_scalar_inherit(t, term, term->a[i]);
}
