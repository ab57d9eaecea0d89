/* emit_c_expr.c - expressions in C: element types, indices, and what elementwise statements compute. */
#include "emit_c_parts.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static bb_arena *arena(const bb_c *c) {
  return c->out->arena;
}

/* --- element types --- */

const char *bb_c_element(const bb_c *c, bb_dtype dtype) {
  switch (dtype) {
  case BB_F64: return "double";
  case BB_I64: return "int64_t";
  case BB_U32: return "int64_t";
  case BB_I32:
  case BB_U16:
  case BB_I16:
  case BB_U8:
  case BB_I8: return "int32_t";
  case BB_BOOL: return "uint8_t";
  default: return c->exact ? "double" : "float";
  }
}

static const char *stored_type(bb_dtype dtype) {
  switch (dtype) {
  case BB_U32: return "uint32_t";
  case BB_U16: return "uint16_t";
  case BB_I16: return "int16_t";
  case BB_U8: return "uint8_t";
  default: return "int8_t";
  }
}

const char *bb_c_stored(const bb_c *c, bb_dtype dtype) {
  if (bb_dtype_is_stored(dtype)) return stored_type(dtype);
  return bb_c_is_narrow(c, dtype) ? "uint16_t" : bb_c_element(c, dtype);
}

bool bb_c_is_narrow(const bb_c *c, bb_dtype dtype) {
  return !c->exact && (dtype == BB_F16 || dtype == BB_BF16);
}

const char *bb_c_held(const bb_c *c, uint32_t tile) {
  bool as_stored = c->tile[tile].narrow || c->tile[tile].panels;
  bb_dtype dtype = c->p->tile[tile].dtype;
  return as_stored ? bb_c_stored(c, dtype) : bb_c_element(c, dtype);
}

const char *bb_c_suffix(const bb_c *c, bb_dtype dtype) {
  switch (dtype) {
  case BB_F64: return "f64";
  case BB_U32:
  case BB_I64: return "i64";
  case BB_U16:
  case BB_I16:
  case BB_U8:
  case BB_I8:
  case BB_I32: return "i32";
  case BB_BOOL: return "b8";
  default: return c->exact ? "f64" : "f32";
  }
}

const char *bb_c_memory_suffix(const bb_c *c, bb_dtype dtype) {
  if (bb_dtype_is_stored(dtype)) return bb_dtype_name(dtype);
  if (c->exact || (dtype != BB_F16 && dtype != BB_BF16)) return bb_c_suffix(c, dtype);
  return dtype == BB_F16 ? "f16" : "bf16";
}

/* --- indices --- */

const char *bb_c_index(bb_c *c, bb_tile_index index) {
  const char *a[3] = {NULL, NULL, NULL};
  if (index->op == BB_X_CONST) return bb_arena_printf(arena(c), "%" PRId64, (int64_t)index->number);
  if (index->op == BB_X_ARG)
    return bb_arena_printf(arena(c), index->index < c->p->extents ? "e%u" : "i%u", index->index);
  uint32_t arity = bb_expr_op_arity(index->op);
  if (arity < 1) bb_c_refuse(c, "an index that is no arithmetic");
  for (uint32_t i = 0; i < arity; i++) a[i] = bb_c_index(c, index->a[i]);
  switch (index->op) {
  case BB_X_ADD: return bb_arena_printf(arena(c), "(%s + %s)", a[0], a[1]);
  case BB_X_SUB: return bb_arena_printf(arena(c), "(%s - %s)", a[0], a[1]);
  case BB_X_MUL: return bb_arena_printf(arena(c), "%s * %s", a[0], a[1]);
  case BB_X_NEG: return bb_arena_printf(arena(c), "(-%s)", a[0]);
  case BB_X_DIV:
    if (index->a[1]->op == BB_X_CONST && index->a[1]->number > 0)
      return bb_arena_printf(arena(c), "(%s / %s)", a[0], a[1]);
    return bb_arena_printf(arena(c), "bb_quotient(%s, %s)", a[0], a[1]);
  case BB_X_MOD: return bb_arena_printf(arena(c), "bb_modulo(%s, %s)", a[0], a[1]);
  case BB_X_MIN: return bb_arena_printf(arena(c), "bb_min(%s, %s)", a[0], a[1]);
  case BB_X_MAX: return bb_arena_printf(arena(c), "bb_max(%s, %s)", a[0], a[1]);
  case BB_X_LE: return bb_arena_printf(arena(c), "%s <= %s", a[0], a[1]);
  case BB_X_SELECT: return bb_arena_printf(arena(c), "(%s ? %s : %s)", a[0], a[1], a[2]);
  default: bb_c_refuse(c, "an index that is no arithmetic");
  }
}

/* --- elements of tiles --- */

const char *bb_c_at(bb_c *c, uint32_t tile, const char *r, const char *col) {
  const bb_tile *t = &c->p->tile[tile];
  const bb_c_tile *held = &c->tile[tile];
  const char *pitch = held->window ? bb_arena_printf(arena(c), "t%u_s", tile)
                                   : bb_arena_printf(arena(c), "%u", held->pitch);
  if (!t->rows && !t->cols) return bb_arena_printf(arena(c), "t%u[0]", tile);
  if (!t->rows) return bb_arena_printf(arena(c), "t%u[%s]", tile, col);
  if (!t->cols && !held->window) return bb_arena_printf(arena(c), "t%u[%s]", tile, r);
  if (!t->cols) return bb_arena_printf(arena(c), "t%u[%s * %s]", tile, r, pitch);
  if (held->turned) return bb_arena_printf(arena(c), "t%u[%s * %s + %s]", tile, col, pitch, r);
  return bb_arena_printf(arena(c), "t%u[%s * %s + %s]", tile, r, pitch, col);
}

/* --- expressions --- */

typedef struct printed {
  const bb_expr *expr;
  const char *text;
} printed;

typedef struct printer {
  bb_c *c;
  const char *const *operand;
  const char *row, *col;
  uint32_t count;
  const bb_expr **node; /* children first */
  uint32_t *uses;
  bool *rounded; /* products */
  const char **text;
} printer;

/* The infinities, where folds begin, are the least and the greatest number. */
static const char *whole_number(const bb_c *c, bb_dtype dtype, double value) {
  if (dtype == BB_I32 && value <= INT32_MIN) return "INT32_MIN";
  if (dtype == BB_I32 && value >= INT32_MAX) return "INT32_MAX";
  if (dtype == BB_BOOL) return value > 0 ? "1" : "0";
  if (value <= -0x1p63) return "INT64_MIN";
  if (value >= 0x1p63) return "INT64_MAX";
  return bb_arena_printf(arena(c), value < 0 ? "(%" PRId64 ")" : "%" PRId64, (int64_t)value);
}

static const char *number(const bb_c *c, bb_dtype dtype, double value) {
  bool single = bb_dtype_is_float(dtype) && dtype != BB_F64 && !c->exact;
  if (!bb_dtype_is_float(dtype)) return whole_number(c, dtype, value);
  if (isnan(value)) return single ? "NAN" : "(double)NAN";
  if (isinf(value)) return value > 0 ? "INFINITY" : "(-INFINITY)";
  if (single && fabs(value) > 3.4028234663852886e38) return value > 0 ? "INFINITY" : "(-INFINITY)";
  const char *text = bb_arena_printf(arena(c), single ? "%.9g" : "%.17g", value);
  bool point = false;
  for (const char *s = text; *s; s++) point |= *s == '.' || *s == 'e';
  return bb_arena_printf(arena(c), signbit(value) ? "(%s%s%s)" : "%s%s%s", text, point ? "" : ".0",
                         single ? "f" : "");
}

static const char *find(const printer *p, const bb_expr *expr) {
  for (uint32_t i = 0; i < p->count; i++)
    if (p->node[i] == expr) return p->text[i];
  return "0";
}

static const char *call(const printer *p, const char *name, const bb_expr *e) {
  const char *suffix = bb_c_suffix(p->c, e->dtype);
  if (bb_expr_op_arity(e->op) == 1)
    return bb_arena_printf(arena(p->c), "bb_%s_%s(%s)", name, suffix, find(p, e->a[0]));
  return bb_arena_printf(arena(p->c), "bb_%s_%s(%s, %s)", name, suffix, find(p, e->a[0]),
                         find(p, e->a[1]));
}

/* The greater or the smaller of two: with a number it takes a processor one comparison. */
static const char *extremum(const printer *p, const char *name, const bb_expr *e) {
  const bb_expr *b = e->a[1];
  if (p->c->target || b->op != BB_X_CONST || isnan(b->number)) return call(p, name, e);
  return call(p, bb_arena_printf(arena(p->c), "%s_number", name), e);
}

static const char *whole_call(const printer *p, const char *name, const bb_expr *e) {
  if (bb_expr_op_arity(e->op) == 1)
    return bb_arena_printf(arena(p->c), "bb_%s(%s)", name, find(p, e->a[0]));
  return bb_arena_printf(arena(p->c), "bb_%s(%s, %s)", name, find(p, e->a[0]), find(p, e->a[1]));
}

static const char *infix(const printer *p, const char *op, const bb_expr *e) {
  return bb_arena_printf(arena(p->c), "(%s %s %s)", find(p, e->a[0]), op, find(p, e->a[1]));
}

static uint32_t number_of(const printer *p, const bb_expr *e) {
  uint32_t i = 0;
  while (p->node[i] != e) i++;
  return i;
}

/* exp(f x - r), where r is the greatest f x of some: beside masks of -1e30 the part of a product that is rounded away is larger than
 * what an exp tells apart.  Multiplied and added in one instruction, f x would have it, and not r.  0 is added first, which is no less right in
 * one instruction, and which compilers, for the sake of -0, do not leave out. */
static void round_products(printer *p, const bb_expr *of_exp) {
  for (;;) {
    const uint32_t by = of_exp->op == BB_X_MUL && of_exp->a[0]->op == BB_X_CONST ? 1 : 0;
    if (of_exp->op != BB_X_NEG && of_exp->op != BB_X_MUL) break;
    of_exp = of_exp->a[by];
  }
  if (of_exp->op != BB_X_SUB || p->c->exact || of_exp->dtype != BB_F32) return;
  for (uint32_t k = 0; k < 2; k++)
    p->rounded[number_of(p, of_exp->a[k])] = of_exp->a[k]->op == BB_X_MUL;
}

static const char *product(const printer *p, const bb_expr *e) {
  const char *text = infix(p, "*", e);
  return p->rounded[number_of(p, e)] ? bb_arena_printf(arena(p->c), "(%s + 0.0f)", text) : text;
}

static const char *truth(const printer *p, const bb_expr *e) {
  if (e->dtype == BB_BOOL) return find(p, e);
  return bb_arena_printf(arena(p->c), "(%s != 0)", find(p, e));
}

static const char *logic(const printer *p, const char *op, const bb_expr *e) {
  return bb_arena_printf(arena(p->c), "(%s %s %s)", truth(p, e->a[0]), op, truth(p, e->a[1]));
}

/* Small powers are products; what is left goes to the library. */
static const char *power(const printer *p, const bb_expr *e) {
  const char *x = find(p, e->a[0]);
  bool known = e->a[1]->op == BB_X_CONST;
  double by = known ? e->a[1]->number : 0;
  if (!bb_dtype_is_float(e->dtype)) return whole_call(p, "power", e);
  const char *suffix = bb_c_suffix(p->c, e->dtype);
  if (known && by == 2) return bb_arena_printf(arena(p->c), "(%s * %s)", x, x);
  if (known && by == 3) return bb_arena_printf(arena(p->c), "(%s * %s * %s)", x, x, x);
  if (known && by == -1) return bb_arena_printf(arena(p->c), "(1 / %s)", x);
  if (known && by == 0.5) return bb_arena_printf(arena(p->c), "bb_sqrt_%s(%s)", suffix, x);
  if (known && by == -0.5) return bb_arena_printf(arena(p->c), "(1 / bb_sqrt_%s(%s))", suffix, x);
  return call(p, "power", e);
}

static uint32_t uses_of(const printer *p, const bb_expr *expr) {
  for (uint32_t i = 0; i < p->count; i++)
    if (p->node[i] == expr) return p->uses[i];
  return 0;
}

/* The operand of a minimum or a maximum that is no number, and the number; NULL: it is none such. */
static const bb_expr *beside_number(const bb_expr *e, bb_expr_op op, double *value) {
  if (e->op != op || e->dtype != BB_F32) return NULL;
  const uint32_t i = e->a[0]->op == BB_X_CONST ? 0 : 1;
  if (e->a[i]->op != BB_X_CONST) return NULL;
  *value = e->a[i]->number;
  return e->a[1 - i];
}

/* Is an exp read once, by a sum with a number beside which what is below e^-87 is nothing? */
static bool is_beside(const printer *p, const bb_expr *exp) {
  double number = 0;
  bool added = false;
  for (uint32_t i = 0; i < p->count && !added; i++)
    added = beside_number(p->node[i], BB_X_ADD, &number) == exp;
  return added && fabs(number) >= 0x1p-100 && uses_of(p, exp) == 1 && !p->c->target && !p->c->exact;
}

static const char *exponential(const printer *p, const bb_expr *e) {
  return call(p, bb_c_is_below(p->c, e) ? "exp_below" : is_beside(p, e) ? "exp_beside" : "exp", e);
}

/* What was brought between two numbers about 0 fits, and NaN is 0 however it went through: without the
 * cases of others it takes a compiler a few vector instructions.  NULL: it is not that. */
static const char *cast_between(const printer *p, const bb_expr *e) {
  const bb_expr *from = e->a[0];
  double least, most;
  if (p->c->target || p->c->exact) return NULL;
  const bool least_last = from->op == BB_X_MAX;
  const bb_expr *inner =
      least_last ? beside_number(from, BB_X_MAX, &least) : beside_number(from, BB_X_MIN, &most);
  const bb_expr *x = !inner       ? NULL
                     : least_last ? beside_number(inner, BB_X_MIN, &most)
                                  : beside_number(inner, BB_X_MAX, &least);
  if (!x || uses_of(p, from) > 1 || uses_of(p, inner) > 1) return NULL;
  if (!(least >= INT32_MIN && least <= 0 && most >= 0 && most < 0x1p31)) return NULL;
  return bb_arena_printf(arena(p->c), "bb_between(%s, %s, %s)", find(p, x),
                         number(p->c, BB_F32, least), number(p->c, BB_F32, most));
}

static const char *cast(const printer *p, const bb_expr *e) {
  const bb_expr *from = e->a[0];
  const char *between = e->dtype == BB_I32 ? cast_between(p, e) : NULL;
  if (between) return between;
  const char *x = find(p, from);
  bool real = bb_dtype_is_float(from->dtype);
  if (bb_dtype_is_stored(e->dtype))
    return bb_arena_printf(arena(p->c), real ? "(%s)bb_to_i64(%s)" : "(%s)%s",
                           stored_type(e->dtype), x);
  switch (e->dtype) {
  case BB_BOOL: return truth(p, from);
  case BB_I64: return bb_arena_printf(arena(p->c), real ? "bb_to_i64(%s)" : "(int64_t)%s", x);
  case BB_I32: return bb_arena_printf(arena(p->c), real ? "bb_to_i32(%s)" : "bb_narrow(%s)", x);
  case BB_F16:
    return bb_arena_printf(arena(p->c), p->c->exact ? "(double)%s" : "bb_round_f16((float)%s)", x);
  case BB_BF16:
    return bb_arena_printf(arena(p->c), p->c->exact ? "(double)%s" : "bb_round_bf16((float)%s)", x);
  default: return bb_arena_printf(arena(p->c), "(%s)%s", bb_c_element(p->c, e->dtype), x);
  }
}

/* By a number where divisions are slow: of what one is divided by it, and a rest. */
static const char *quotient(const printer *p, const bb_expr *e) {
  const bb_expr *by = e->a[1];
  float divisor = by->op == BB_X_CONST ? (float)by->number : 0, one = 1 / divisor;
  bool slow = p->c->slow_division && !p->c->exact && e->dtype == BB_F32;
  if (slow && isnormal(divisor) && isnormal(one))
    return bb_arena_printf(arena(p->c), "bb_divide_f32(%s, %s, %s)", find(p, e->a[0]),
                           number(p->c, BB_F32, divisor), number(p->c, BB_F32, one));
  return bb_arena_printf(arena(p->c), "((%s)%s / %s)", bb_c_element(p->c, e->dtype),
                         find(p, e->a[0]), find(p, by));
}

/* Operands of arithmetic have the type of the result, so that integers divide as integers only where
 * the result is one. */
static const char *arithmetic(const printer *p, const bb_expr *e) {
  bool real = bb_dtype_is_float(e->dtype);
  switch (e->op) {
  case BB_X_ADD: return infix(p, "+", e);
  case BB_X_SUB: return infix(p, "-", e);
  case BB_X_MUL: return product(p, e);
  case BB_X_DIV: return real ? quotient(p, e) : whole_call(p, "quotient", e);
  case BB_X_POW: return power(p, e);
  case BB_X_NEG: return bb_arena_printf(arena(p->c), "(-%s)", find(p, e->a[0]));
  case BB_X_ABS: return real ? call(p, "fabs", e) : whole_call(p, "abs", e);
  case BB_X_SIGN: return real ? call(p, "sign", e) : whole_call(p, "sign", e);
  case BB_X_MIN: return real ? extremum(p, "min", e) : whole_call(p, "min", e);
  case BB_X_MAX: return real ? extremum(p, "max", e) : whole_call(p, "max", e);
  case BB_X_MOD: return real ? call(p, "mod", e) : whole_call(p, "modulo", e);
  case BB_X_FMOD: return real ? call(p, "fmod", e) : whole_call(p, "remainder", e);
  case BB_X_BITS:
    if (!real) return whole_call(p, "and", e);
    return bb_arena_printf(arena(p->c), "((%s)bb_and(bb_to_i64(%s), bb_to_i64(%s)))",
                           bb_c_element(p->c, e->dtype), find(p, e->a[0]), find(p, e->a[1]));
  case BB_X_FLOOR: return real ? call(p, "floor", e) : find(p, e->a[0]);
  case BB_X_CEIL: return real ? call(p, "ceil", e) : find(p, e->a[0]);
  case BB_X_ROUND: return real ? call(p, "rint", e) : find(p, e->a[0]);
  default: return NULL;
  }
}

static const char *symbol(bb_c *c, uint32_t symbol) {
  const char *name = c->p->home->symbol[symbol];
  for (uint32_t i = 0; i < c->p->extents; i++)
    if (strcmp(c->p->variable[i], name) == 0)
      return bb_c_index(c, bb_expr_arg(c->p->home, BB_I64, i));
  bb_c_refuse(c, "a symbol that is no extent");
}

static const char *print(const printer *p, const bb_expr *e) {
  const char *text = arithmetic(p, e);
  if (text) return text;
  switch (e->op) {
  case BB_X_CONST: return number(p->c, e->dtype, e->number);
  case BB_X_ARG:
    if (e->index < BB_TILE_VARIABLE) return p->operand[e->index];
    return bb_c_index(p->c, bb_expr_arg(p->c->p->home, BB_I64, e->index - BB_TILE_VARIABLE));
  case BB_X_COORD: return e->index == BB_COORD_ROW ? p->row : p->col;
  case BB_X_SYMBOL: return symbol(p->c, e->index);
  case BB_X_SQRT: return call(p, "sqrt", e);
  case BB_X_EXP: return exponential(p, e);
  case BB_X_LOG: return call(p, "log", e);
  case BB_X_SIN: return call(p, "sin", e);
  case BB_X_COS: return call(p, "cos", e);
  case BB_X_ATAN: return call(p, "atan", e);
  case BB_X_TANH: return call(p, "tanh", e);
  case BB_X_ERF: return call(p, "erf", e);
  case BB_X_LT: return infix(p, "<", e);
  case BB_X_LE: return infix(p, "<=", e);
  case BB_X_EQ: return infix(p, "==", e);
  case BB_X_NE: return infix(p, "!=", e);
  case BB_X_AND: return logic(p, "&", e);
  case BB_X_OR: return logic(p, "|", e);
  case BB_X_XOR: return logic(p, "!=", e);
  case BB_X_NOT: return bb_arena_printf(arena(p->c), "!%s", truth(p, e->a[0]));
  case BB_X_SELECT:
    return bb_arena_printf(arena(p->c), "(%s ? %s : %s)", truth(p, e->a[0]), find(p, e->a[1]),
                           find(p, e->a[2]));
  case BB_X_ISNAN:
    return bb_arena_printf(arena(p->c), "(%s != %s)", find(p, e->a[0]), find(p, e->a[0]));
  case BB_X_ISINF:
    if (!bb_dtype_is_float(e->a[0]->dtype)) return "0";
    return bb_arena_printf(arena(p->c), "(bb_fabs_%s(%s) == INFINITY)",
                           bb_c_suffix(p->c, e->a[0]->dtype), find(p, e->a[0]));
  case BB_X_CAST: return cast(p, e);
  default: bb_c_refuse(p->c, "an expression that C has no word for");
  }
}

/* Is it written more than once where it is used? */
static uint32_t copies(const bb_expr *user) {
  return user->op == BB_X_POW || user->op == BB_X_ISNAN ? 2 : 1;
}

/* Both sides of a selection are computed, and what they read is read, whatever is chosen: then a
 * compiler needs no branches, nor gathers, to make vector code of it. */
static bool is_chosen(const printer *p, const bb_expr *e) {
  for (uint32_t i = 0; i < p->count; i++)
    if (p->node[i]->op == BB_X_SELECT && (p->node[i]->a[1] == e || p->node[i]->a[2] == e))
      return true;
  return false;
}

static bool has_selection(const printer *p) {
  for (uint32_t i = 0; i < p->count; i++)
    if (p->node[i]->op == BB_X_SELECT) return true;
  return false;
}

/* is_of_exp: an exp is taken of the whole of it. */
static const char *expression(bb_c *c, const bb_expr *expr, bool is_of_exp,
                              const char *const *operand, const char *row, const char *col) {
  printer p = {.c = c, .operand = operand, .row = row, .col = col};
  p.node = bb_expr_postorder(arena(c), expr, &p.count);
  p.uses = BB_NEW(arena(c), uint32_t, p.count);
  p.text = BB_NEW(arena(c), const char *, p.count);
  p.rounded = BB_NEW(arena(c), bool, p.count);
  if (is_of_exp) round_products(&p, expr);
  for (uint32_t i = 0; i < p.count; i++)
    for (uint32_t k = 0; k < bb_expr_op_arity(p.node[i]->op); k++)
      for (uint32_t j = 0; j < i; j++)
        if (p.node[j] == p.node[i]->a[k]) p.uses[j] += copies(p.node[i]);
  for (uint32_t i = 0; i < p.count; i++)
    if (p.node[i]->op == BB_X_EXP) round_products(&p, p.node[i]->a[0]);
  bool selects = has_selection(&p);
  for (uint32_t i = 0; i < p.count; i++) {
    const bb_expr *e = p.node[i];
    p.text[i] = print(&p, e);
    bool read = selects && e->op == BB_X_ARG && e->index < BB_TILE_VARIABLE;
    if (!read && (bb_expr_op_arity(e->op) == 0 || (p.uses[i] < 2 && !is_chosen(&p, e)))) continue;
    uint32_t t = c->temporaries++;
    bb_c_line(c, "const %s x%u = %s;", e->dtype == BB_BOOL ? "int" : bb_c_element(c, e->dtype), t,
              p.text[i]);
    p.text[i] = bb_arena_printf(arena(c), "x%u", t);
  }
  return p.text[p.count - 1];
}

const char *bb_c_expression(bb_c *c, const bb_expr *expr, const char *const *operand,
                            const char *row, const char *col) {
  return expression(c, expr, false, operand, row, col);
}

const char *bb_c_exponent(bb_c *c, const bb_expr *expr, const char *const *operand, const char *row,
                          const char *col) {
  return expression(c, expr, true, operand, row, col);
}
