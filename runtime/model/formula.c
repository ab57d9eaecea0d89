/* formula.c - formulas of run-time extents: their value and their text. */
#include "formula.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
  const char *text;
  uint32_t arity;
} terms[] = {
#define BB_TERM(id, text, arity) {text, arity},
#include "formula.def"
#undef BB_TERM
};

/* --- values --- */

static int64_t modulo(int64_t a, int64_t b) {
  if (b == 0 || b == -1) return 0;
  int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

int64_t bb_formula_real(double number) {
  int64_t bits;
  memcpy(&bits, &number, sizeof bits);
  return bits;
}

static double real_of(int64_t bits) {
  double number;
  memcpy(&number, &bits, sizeof number);
  return number;
}

/* NaN if either is. */
static double extreme(double a, double b, bool most) {
  if (isnan(a) || isnan(b)) return NAN;
  return (a > b) == most ? a : b;
}

/* Of an operator on reals that gives one. */
static double real_apply(bb_term_op op, double a, double b) {
  switch (op) {
  case BB_T_SINGLE: return (double)(float)a;
  case BB_T_R_ADD: return a + b;
  case BB_T_R_SUB: return a - b;
  case BB_T_R_MUL: return a * b;
  case BB_T_R_DIV: return a / b;
  case BB_T_R_MIN: return extreme(a, b, false);
  case BB_T_R_MAX: return extreme(a, b, true);
  case BB_T_R_NEG: return -a;
  case BB_T_R_ABS: return fabs(a);
  case BB_T_R_FLOOR: return floor(a);
  case BB_T_R_CEIL: return ceil(a);
  default: return rint(a);
  }
}

/* Of an operator that takes reals, or gives one; false: what has to be whole is too large, or no number. */
static bool apply_real(bb_term_op op, const int64_t *x, int64_t *value) {
  double a = real_of(x[0]), b = terms[op].arity > 1 ? real_of(x[1]) : 0;
  switch (op) {
  case BB_T_REAL: *value = bb_formula_real((double)x[0]); return true;
  case BB_T_WHOLE:
    if (!(fabs(a) < 0x1p63)) return false;
    *value = (int64_t)a;
    return true;
  case BB_T_R_LT: *value = a < b; return true;
  case BB_T_R_LE: *value = a <= b; return true;
  case BB_T_R_EQ: *value = a == b; return true;
  case BB_T_R_NE: *value = a != b; return true;
  default: *value = bb_formula_real(real_apply(op, a, b)); return true;
  }
}

/* Of one operator on its operands; false: too large. */
static bool apply(bb_term_op op, const int64_t *x, int64_t *value) {
  switch (op) {
  case BB_T_ADD: return !__builtin_add_overflow(x[0], x[1], value);
  case BB_T_SUB: return !__builtin_sub_overflow(x[0], x[1], value);
  case BB_T_MUL: return !__builtin_mul_overflow(x[0], x[1], value);
  case BB_T_NEG: return !__builtin_sub_overflow(0, x[0], value);
  case BB_T_ABS: return !__builtin_sub_overflow(0, x[0] < 0 ? x[0] : -x[0], value);
  case BB_T_DIV:
    if (x[1] == -1) return !__builtin_sub_overflow(0, x[0], value);
    *value = x[1] ? x[0] / x[1] : 0;
    return true;
  case BB_T_MOD: *value = modulo(x[0], x[1]); return true;
  case BB_T_FMOD: *value = x[1] == 0 || x[1] == -1 ? 0 : x[0] % x[1]; return true;
  case BB_T_MIN: *value = x[0] < x[1] ? x[0] : x[1]; return true;
  case BB_T_MAX: *value = x[0] > x[1] ? x[0] : x[1]; return true;
  case BB_T_SIGN: *value = (x[0] > 0) - (x[0] < 0); return true;
  case BB_T_LT: *value = x[0] < x[1]; return true;
  case BB_T_LE: *value = x[0] <= x[1]; return true;
  case BB_T_EQ: *value = x[0] == x[1]; return true;
  case BB_T_NE: *value = x[0] != x[1]; return true;
  case BB_T_AND: *value = x[0] && x[1]; return true;
  case BB_T_OR: *value = x[0] || x[1]; return true;
  case BB_T_XOR: *value = !x[0] != !x[1]; return true;
  case BB_T_NOT: *value = !x[0]; return true;
  case BB_T_SELECT: *value = x[0] ? x[1] : x[2]; return true;
  default: return apply_real(op, x, value);
  }
}

bool bb_formula_value(const bb_formula *formula, const int64_t *variable, int64_t *value) {
  int64_t stack[BB_FORMULA_DEPTH];
  uint32_t depth = 0;
  for (uint32_t i = 0; i < formula->count; i++) {
    const bb_term *t = &formula->term[i];
    if (t->op == BB_T_NUMBER || t->op == BB_T_VARIABLE) {
      stack[depth++] = t->op == BB_T_NUMBER ? t->number : variable[t->number];
      continue;
    }
    depth -= terms[t->op].arity;
    int64_t found;
    if (!apply(t->op, stack + depth, &found)) return false;
    stack[depth++] = found;
  }
  *value = depth ? stack[0] : 0;
  return depth == 1;
}

bool bb_formula_is_open(const bb_formula *formula, const int64_t *variable) {
  for (uint32_t i = 0; i < formula->count; i++)
    if (formula->term[i].op == BB_T_VARIABLE && variable[formula->term[i].number] < 0) return true;
  return formula->count == 0;
}

/* --- text --- */

bool bb_formula_same(const bb_formula *a, const bb_formula *b) {
  bool same = a->count == b->count;
  for (uint32_t i = 0; same && i < a->count; i++)
    same = a->term[i].op == b->term[i].op && a->term[i].number == b->term[i].number;
  return same;
}

void bb_formula_print(bb_buffer *out, const bb_formula *formula) {
  for (uint32_t i = 0; i < formula->count; i++) {
    const bb_term *t = &formula->term[i];
    bb_put(out, "%s%s", i ? " " : "", terms[t->op].text);
    if (terms[t->op].arity == 0) bb_put(out, "%" PRId64, t->number);
  }
}

static bool parse_number(const char *word, size_t length, int64_t *number) {
  char *end;
  if (!length || !(word[0] == '-' || (word[0] >= '0' && word[0] <= '9'))) return false;
  errno = 0;
  *number = strtoll(word, &end, 10);
  return !errno && end == word + length;
}

static bool parse_term(const char *word, size_t length, uint32_t variables, bb_term *term) {
  if (parse_number(word, length, &term->number)) {
    term->op = BB_T_NUMBER;
    return true;
  }
  term->op = BB_T_VARIABLE;
  if (word[0] == 'v' && parse_number(word + 1, length - 1, &term->number))
    return term->number >= 0 && term->number < variables;
  for (uint32_t op = BB_T_ADD; op < BB_T_COUNT; op++) {
    if (strlen(terms[op].text) != length || memcmp(terms[op].text, word, length) != 0) continue;
    *term = (bb_term){(bb_term_op)op, 0};
    return true;
  }
  return false;
}

bool bb_formula_parse(bb_arena *arena, const char *text, uint32_t variables, bb_formula *formula) {
  bb_term *term = BB_NEW(arena, bb_term, strlen(text) / 2 + 1);
  uint32_t count = 0, depth = 0;
  while (*text) {
    size_t length = strcspn(text, " ");
    if (!parse_term(text, length, variables, &term[count])) return false;
    uint32_t arity = terms[term[count++].op].arity;
    if (depth < arity || depth - arity >= BB_FORMULA_DEPTH) return false;
    depth += 1 - arity;
    text += length + (text[length] == ' ');
  }
  *formula = (bb_formula){count, term};
  return depth == 1 || count == 0;
}
