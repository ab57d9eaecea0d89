/* safety_expr.c - expressions of significand-exponent pairs.
 *
 * Each node of the expression is a significand and a sum of weighted exponents, both expressions of
 * the new operands.  Products add exponents, equal ones cancel; sums and comparisons bring both sides
 * to the greater exponent; a logarithm keeps log s and e apart until it meets another term, which is
 * brought to size by e before log s is added; what has no rule multiplies back.
 */
#include "safety_pair.h"

#include <string.h>

enum { OPERANDS = 64 };

typedef struct part {
  double weight;
  const bb_expr *exponent;
} part;

/* significand * exp(sum of weight * exponent); a logarithm: significand + sum of weight * exponent */
typedef struct form {
  bool logarithm;
  const bb_expr *significand;
  uint32_t count;
  part part[BB_PAIR_EXPONENTS];
} form;

typedef struct builder {
  bb_safe_level *level; /* NULL: of an expression by itself, whose ARGs are `arg` */
  bb_program *program;
  const bb_node *node;
  const form *arg;
  bb_item item;   /* of the result */
  uint32_t count; /* new operands */
  bb_value in[OPERANDS];
} builder;

static const bb_expr *make(const builder *b, bb_expr_op op, const bb_expr *x, const bb_expr *y) {
  return bb_expr_make(b->program, op, x, y, NULL);
}

static const bb_expr *number(const builder *b, bb_dtype dtype, double value) {
  return bb_expr_const(b->program, dtype, value);
}

static const bb_expr *cast(const builder *b, bb_dtype dtype, const bb_expr *e) {
  return e->dtype == dtype ? e : bb_expr_cast(b->program, dtype, e);
}

/* --- exponents --- */

/* The sum of the parts as one expression; NULL: no parts. */
static const bb_expr *sum_of(const builder *b, uint32_t count, const part *p) {
  const bb_expr *sum = NULL;
  for (uint32_t pass = 0; pass < 2; pass++) /* what is added first, so that it reads e - f */
    for (uint32_t i = 0; i < count; i++) {
      double size = fabs(p[i].weight);
      if ((p[i].weight < 0) != (pass == 1)) continue;
      const bb_expr *e = p[i].exponent;
      if (size != 1) e = make(b, BB_X_MUL, number(b, e->dtype, size), e);
      if (sum)
        sum = make(b, pass ? BB_X_SUB : BB_X_ADD, sum, e);
      else
        sum = pass ? make(b, BB_X_NEG, e, NULL) : e;
    }
  return sum;
}

static void add_part(form *f, double weight, const bb_expr *exponent) {
  for (uint32_t i = 0; i < f->count; i++) {
    if (f->part[i].exponent != exponent) continue;
    f->part[i].weight += weight;
    if (f->part[i].weight == 0) f->part[i] = f->part[--f->count];
    return;
  }
  f->part[f->count++] = (part){weight, exponent};
}

/* Adds the other form's exponents, times `by`; where there are too many they become one. */
static void add_parts(const builder *b, form *f, const form *from, double by) {
  for (uint32_t i = 0; i < from->count; i++) {
    if (f->count == BB_PAIR_EXPONENTS) {
      const bb_expr *sum = sum_of(b, f->count, f->part);
      f->count = 0;
      add_part(f, 1, sum);
    }
    add_part(f, by * from->part[i].weight, from->part[i].exponent);
  }
}

static bool same_parts(const form *x, const form *y) {
  if (x->count != y->count) return false;
  for (uint32_t i = 0; i < x->count; i++) {
    bool found = false;
    for (uint32_t k = 0; k < y->count; k++)
      found |= x->part[i].exponent == y->part[k].exponent && x->part[i].weight == y->part[k].weight;
    if (!found) return false;
  }
  return true;
}

/* s * exp(e): an exponent beyond what the type holds may meet a small s, so each half is applied by
 * itself; a significand of 0 stays 0. */
const bb_expr *bb_safe_half_power(bb_program *program, bb_dtype dtype, const bb_expr *exponent) {
  const builder b = {.program = program};
  const bb_expr *half = make(&b, BB_X_MUL, number(&b, exponent->dtype, 0.5), exponent);
  return cast(&b, dtype, make(&b, BB_X_EXP, half, NULL));
}

const bb_expr *bb_safe_product(bb_program *program, const bb_expr *significand,
                               const bb_expr *half) {
  const builder b = {.program = program};
  const bb_expr *product = make(&b, BB_X_MUL, make(&b, BB_X_MUL, significand, half), half);
  const bb_expr *zero = make(&b, BB_X_EQ, significand, number(&b, significand->dtype, 0));
  return bb_expr_make(program, BB_X_SELECT, zero, significand, product);
}

/* The axes of the operands that an expression reads. */
static bb_item axes_of(const builder *b, const bb_expr *expr) {
  bb_item item = {expr->dtype, BB_NO_DIM, BB_NO_DIM};
  for (uint32_t i = 0; i < b->count; i++) {
    if (!bb_expr_uses_arg(expr, i)) continue;
    bb_item own = bb_type_of(b->level->graph, b->in[i])->item;
    if (own.row != BB_NO_DIM) item.row = own.row;
    if (own.col != BB_NO_DIM) item.col = own.col;
  }
  return item;
}

static const bb_expr *operand(builder *b, bb_value value) {
  uint32_t at = 0;
  while (at < b->count && !bb_value_equal(b->in[at], value)) at++;
  if (at == OPERANDS)
    bb_fail(b->program->ctx, BB_ERROR_INPUT, "an elementwise op of more than %d operands",
            OPERANDS);
  if (at == b->count) b->in[b->count++] = value;
  return bb_expr_arg(b->program, bb_type_of(b->level->graph, value)->item.dtype, at);
}

/* An expression that lacks an axis of the result, computed once for all along that axis. */
static const bb_expr *apart(builder *b, const bb_expr *expr) {
  if (!b->level) return expr;
  bb_item own = axes_of(b, expr);
  bool narrow = (own.row == BB_NO_DIM && b->item.row != BB_NO_DIM) ||
                (own.col == BB_NO_DIM && b->item.col != BB_NO_DIM);
  if (!narrow || bb_expr_uses_coord(expr)) return expr;
  return operand(b, bb_safe_emit(b->level, expr, b->count, b->in, own));
}

static const bb_expr *plain(builder *b, const form *f) {
  if (f->count == 0) return f->significand;
  const bb_expr *sum = sum_of(b, f->count, f->part), *s = f->significand;
  if (f->logarithm) return make(b, BB_X_ADD, s, cast(b, s->dtype, sum));
  if (bb_expr_is_number(s, 1)) return cast(b, s->dtype, make(b, BB_X_EXP, sum, NULL));
  return bb_safe_product(b->program, s, apart(b, bb_safe_half_power(b->program, s->dtype, sum)));
}

/* --- operators --- */

static form of_expr(const bb_expr *e) {
  return (form){.significand = e};
}

/* The significand for the exponent `to` in the place of `own`: never exp(-inf + inf). */
static const bb_expr *moved(builder *b, const bb_expr *s, const bb_expr *own, const bb_expr *to) {
  const bb_expr *factor = make(b, BB_X_EXP, make(b, BB_X_SUB, own, to), NULL);
  const bb_expr *same = make(b, BB_X_EQ, own, to), *one = number(b, factor->dtype, 1);
  factor = cast(b, s->dtype, bb_expr_make(b->program, BB_X_SELECT, same, one, factor));
  return bb_expr_is_number(s, 1) ? factor : make(b, BB_X_MUL, s, apart(b, factor));
}

/* Brings two forms to one exponent. */
static void meet(builder *b, form *x, form *y) {
  if (same_parts(x, y)) return;
  if (bb_expr_is_number(x->significand, 0)) {
    *x = (form){.significand = x->significand, .count = y->count};
    memcpy(x->part, y->part, sizeof x->part);
    return;
  }
  if (bb_expr_is_number(y->significand, 0)) {
    meet(b, y, x);
    return;
  }
  const bb_expr *p = x->count ? sum_of(b, x->count, x->part) : NULL;
  const bb_expr *q = y->count ? sum_of(b, y->count, y->part) : NULL;
  if (!p) p = number(b, q->dtype, 0);
  if (!q) q = number(b, p->dtype, 0);
  const bb_expr *top = make(b, BB_X_MAX, p, q);
  x->significand = moved(b, x->significand, p, top);
  y->significand = moved(b, y->significand, q, top);
  x->count = y->count = 0;
  add_part(x, 1, top);
  add_part(y, 1, top);
}

static form sum(builder *b, bb_expr_op op, form x, form y) {
  meet(b, &x, &y);
  x.significand = make(b, op, x.significand, y.significand);
  return x;
}

static bool has_part(const form *f, const bb_expr *exponent) {
  for (uint32_t i = 0; i < f->count; i++)
    if (f->part[i].exponent == exponent) return true;
  return false;
}

/* e - e: what has cancelled was finite, or there is no number. */
static form with_cancelled(builder *b, form f, const form *x, const form *y) {
  for (uint32_t i = 0; i < x->count; i++) {
    const bb_expr *e = x->part[i].exponent;
    if (!has_part(y, e) || has_part(&f, e)) continue;
    const bb_expr *none = apart(b, cast(b, f.significand->dtype, make(b, BB_X_SUB, e, e)));
    f.significand = make(b, BB_X_ADD, f.significand, none);
  }
  return f;
}

static form product(builder *b, bb_expr_op op, const form *x, const form *y) {
  form f = *x;
  add_parts(b, &f, y, op == BB_X_DIV ? -1 : 1);
  f.significand = make(b, op, x->significand, y->significand);
  if (!bb_expr_is_number(x->significand, 0) &&
      !(op == BB_X_MUL && bb_expr_is_number(y->significand, 0)))
    return with_cancelled(b, f, x, y);
  f.count = 0;
  return f;
}

static form power(const builder *b, form x, double to, const bb_expr *expr) {
  form result = {.significand = make(b, BB_X_POW, x.significand, expr->a[1])};
  add_parts(b, &result, &x, to);
  return result;
}

/* The exponent of a side that a selection may take; a number's by itself: 0, or, of 0, none at all. */
static const bb_expr *side(const builder *b, const form *x, bb_dtype dtype) {
  if (x->count) return sum_of(b, x->count, x->part);
  return number(b, dtype, bb_expr_is_number(x->significand, 0) ? -INFINITY : 0);
}

/* The exponent is selected too: that of the side not taken may be NaN. */
static form chosen(builder *b, const bb_expr *condition, form x, form y) {
  if (!same_parts(&x, &y)) {
    bb_dtype dtype = x.count ? x.part[0].exponent->dtype : y.part[0].exponent->dtype;
    const bb_expr *p = side(b, &x, dtype), *q = side(b, &y, dtype);
    x.count = 0;
    add_part(&x, 1, bb_expr_make(b->program, BB_X_SELECT, condition, p, q));
  }
  x.significand = bb_expr_make(b->program, BB_X_SELECT, condition, x.significand, y.significand);
  return x;
}

static form logarithm(builder *b, const form *x) {
  form f = *x;
  f.logarithm = true;
  if (bb_expr_is_number(x->significand, 1))
    f.significand = number(b, x->significand->dtype, 0);
  else
    f.significand = make(b, BB_X_LOG, x->significand, NULL);
  return f;
}

/* An exp that must not be taken: 1 * exp(its exponent), a float as the exp is: integers have no -inf, the exponent of 0. */
static form unsafe_exp(builder *b, const bb_expr *expr, const form *a, const form *to) {
  form f = {.significand = number(b, expr->dtype, 1)};
  if (expr->op == BB_X_EXP)
    add_part(&f, 1, cast(b, expr->dtype, plain(b, a)));
  else
    add_part(&f, log(expr->a[0]->number), cast(b, expr->dtype, plain(b, to)));
  return f;
}

static bool is_unsafe(const builder *b, const bb_expr *expr) {
  bool base = expr->op == BB_X_POW && expr->a[0]->op == BB_X_CONST;
  if (!b->node || !bb_is_exp(expr->op, expr->dtype, base, base ? expr->a[0]->number : 0))
    return false;
  const bb_exp *exp = bb_scalar_walk_exp(b->level->safety->walk, b->node, expr);
  return !exp || exp->unsafe;
}

static form times(const builder *b, form x, const bb_expr *factor) {
  for (uint32_t i = 0; i < x.count; i++) x.part[i].weight *= factor->number;
  x.significand = make(b, BB_X_MUL, x.significand, factor);
  return x;
}

/* x + y (or x - y), one of them a logarithm. */
static form sum_of_logarithms(builder *b, bb_expr_op op, const form *x, const form *y) {
  double sign = op == BB_X_SUB ? -1 : 1;
  form f = *x;
  f.logarithm = true;
  add_parts(b, &f, y, sign);
  bool both = (x->logarithm || x->significand->op == BB_X_CONST) &&
              (y->logarithm || y->significand->op == BB_X_CONST);
  if (both || !f.count) {
    f.significand = make(b, op, x->significand, y->significand);
    return f;
  }
  const form *log = x->logarithm ? x : y, *term = x->logarithm ? y : x;
  const bb_expr *own = term->significand, *e = NULL;
  if (log == x && op == BB_X_SUB) own = make(b, BB_X_NEG, own, NULL);
  e = cast(b, own->dtype, sum_of(b, f.count, f.part));
  own = make(b, BB_X_ADD, own, e);
  return of_expr(make(b, log == y ? op : BB_X_ADD, own, log->significand));
}

/* An operator on logarithms; false: it needs them plain. */
static bool on_logarithms(builder *b, const bb_expr *expr, const form *x, const form *y,
                          form *result) {
  bool sum = expr->op == BB_X_ADD || expr->op == BB_X_SUB;
  if (expr->op == BB_X_NEG) {
    *result = times(b, *x, number(b, expr->dtype, -1));
    result->significand = make(b, BB_X_NEG, x->significand, NULL);
  } else if (sum && (x->logarithm || !x->count) && (y->logarithm || !y->count)) {
    *result = sum_of_logarithms(b, expr->op, x, y);
  } else if (expr->op == BB_X_MUL && x->significand->op == BB_X_CONST && !x->count) {
    *result = times(b, *y, x->significand);
  } else if (expr->op == BB_X_MUL && y->significand->op == BB_X_CONST && !y->count) {
    *result = times(b, *x, y->significand);
  } else {
    return false;
  }
  return true;
}

/* What is 0 where the form is, and has its sign: a significand that stands for exp(-inf) too is none. */
static const bb_expr *sign_of(builder *b, const form *f) {
  const bb_expr *s = f->significand, *e = f->count ? sum_of(b, f->count, f->part) : NULL;
  if (!e || bb_expr_is_number(s, 0)) return s;
  const bb_expr *none = make(b, BB_X_EQ, e, number(b, e->dtype, -INFINITY));
  return apart(b, bb_expr_make(b->program, BB_X_SELECT, none, number(b, s->dtype, 0), s));
}

static form unary(builder *b, const bb_expr *expr, form x) {
  switch (expr->op) {
  case BB_X_NEG:
  case BB_X_ABS: x.significand = make(b, expr->op, x.significand, NULL); return x;
  case BB_X_SIGN: return of_expr(make(b, BB_X_SIGN, sign_of(b, &x), NULL));
  case BB_X_LOG: return logarithm(b, &x);
  case BB_X_SQRT: {
    form result = of_expr(make(b, BB_X_SQRT, x.significand, NULL));
    add_parts(b, &result, &x, 0.5);
    return result;
  }
  case BB_X_CAST:
    if (bb_dtype_is_float(expr->dtype)) {
      x.significand = bb_expr_cast(b->program, expr->dtype, x.significand);
      return x;
    }
    return of_expr(bb_expr_cast(b->program, expr->dtype, plain(b, &x)));
  default: return of_expr(make(b, expr->op, plain(b, &x), NULL));
  }
}

/* Beside 0 only signs count. */
static const bb_expr *compared(builder *b, bb_expr_op op, const form *x, const form *y) {
  const bool zero = bb_expr_is_number(x->significand, 0) || bb_expr_is_number(y->significand, 0);
  if (!zero) return sum(b, op, *x, *y).significand;
  return make(b, op, sign_of(b, x), sign_of(b, y));
}

static form binary(builder *b, const bb_expr *expr, const form *x, const form *y) {
  bool number_power = expr->op == BB_X_POW && expr->a[1]->op == BB_X_CONST;
  switch (expr->op) {
  case BB_X_ADD:
  case BB_X_SUB:
  case BB_X_MIN:
  case BB_X_MAX: return sum(b, expr->op, *x, *y);
  case BB_X_MUL:
  case BB_X_DIV: return product(b, expr->op, x, y);
  case BB_X_LT:
  case BB_X_LE:
  case BB_X_EQ:
  case BB_X_NE: return of_expr(compared(b, expr->op, x, y));
  default: break;
  }
  if (number_power) return power(b, *x, expr->a[1]->number, expr);
  return of_expr(make(b, expr->op, plain(b, x), plain(b, y)));
}

/* Expects: no operand is a logarithm. */
static form on_pairs(builder *b, const bb_expr *expr, const form *const *a) {
  if (is_unsafe(b, expr)) return unsafe_exp(b, expr, a[0], a[1]);
  if (expr->op == BB_X_SELECT) return chosen(b, plain(b, a[0]), *a[1], *a[2]);
  bool pairs = a[0]->count || (a[1] && a[1]->count);
  if (pairs) return a[1] ? binary(b, expr, a[0], a[1]) : unary(b, expr, *a[0]);
  if (expr->op == BB_X_CAST)
    return of_expr(bb_expr_cast(b->program, expr->dtype, a[0]->significand));
  return of_expr(make(b, expr->op, a[0]->significand, a[1] ? a[1]->significand : NULL));
}

static form apply(builder *b, const bb_expr *expr, const form *const *a) {
  form made, own[3];
  const form *with[3] = {a[0], a[1], a[2]};
  bool logarithms = false;
  for (uint32_t i = 0; i < 3 && a[i]; i++) logarithms |= a[i]->logarithm;
  if (logarithms && on_logarithms(b, expr, a[0], a[1], &made)) return made;
  for (uint32_t i = 0; i < 3 && a[i]; i++) {
    if (!a[i]->logarithm) continue;
    own[i] = of_expr(plain(b, a[i]));
    with[i] = &own[i];
  }
  made = on_pairs(b, expr, with);
  if (b->node && made.count && bb_safe_is_mended(b->level->safety, b->node, expr))
    made = of_expr(plain(b, &made));
  return made;
}

/* --- operands --- */

static form of_operand(builder *b, const bb_pair *pair, bb_dtype dtype) {
  form f = {.logarithm = pair->logarithm,
            .significand = pair->ones ? number(b, dtype, 1) : operand(b, pair->significand)};
  for (uint32_t i = 0; i < pair->count; i++)
    add_part(&f, pair->exponent[i].weight, operand(b, pair->exponent[i].value));
  return f;
}

static form form_of(builder *b, const bb_expr *expr, bb_pair *const *pair) {
  bb_arena *scratch = bb_scratch(b->program->ctx);
  uint32_t count;
  const bb_expr **node = bb_expr_postorder(scratch, expr, &count);
  form *made = BB_NEW(scratch, form, count);
  for (uint32_t i = 0; i < count; i++) {
    const form *a[3] = {NULL, NULL, NULL};
    uint32_t arity = bb_expr_op_arity(node[i]->op);
    for (uint32_t k = 0; k < arity; k++) {
      uint32_t at = i;
      while (node[--at] != node[i]->a[k]) continue;
      a[k] = &made[at];
    }
    if (node[i]->op == BB_X_ARG)
      made[i] =
          b->arg ? b->arg[node[i]->index] : of_operand(b, pair[node[i]->index], node[i]->dtype);
    else
      made[i] = arity ? apply(b, node[i], a) : of_expr(node[i]);
  }
  form result = made[count - 1];
  bb_scratch_end(scratch);
  return result;
}

/* --- expressions by themselves --- */

bb_safe_form bb_safe_form_of(bb_program *program, const bb_expr *expr, uint32_t count,
                             const bb_safe_form *arg) {
  bb_arena *scratch = bb_scratch(program->ctx);
  form *own = BB_NEW(scratch, form, (size_t)count + 1);
  for (uint32_t i = 0; i < count; i++) {
    own[i] = of_expr(arg[i].significand);
    if (arg[i].exponent) add_part(&own[i], 1, arg[i].exponent);
  }
  builder b = {.program = program, .arg = own};
  form made = form_of(&b, expr, NULL);
  bool pair = made.count && !made.logarithm;
  bb_safe_form result = {.significand = pair ? made.significand : plain(&b, &made),
                         .exponent = pair ? sum_of(&b, made.count, made.part) : NULL};
  bb_scratch_end(scratch);
  return result;
}

const bb_expr *bb_safe_moved(bb_program *program, const bb_safe_form *from, const bb_expr *to) {
  builder b = {.program = program};
  const bb_expr *own = from->exponent ? from->exponent : number(&b, to->dtype, 0);
  return own == to ? from->significand : moved(&b, from->significand, own, to);
}

/* --- results --- */

static bb_item item_without(bb_item item, bb_dtype dtype) {
  item.dtype = dtype;
  return item;
}

/* Exponents that are operands stay as they are; all others become one value. */
static void emit_exponents(builder *b, const form *f, bb_item item, bb_pair *pair) {
  form rest = {0};
  for (uint32_t i = 0; i < f->count; i++) {
    const part *p = &f->part[i];
    if (p->exponent->op == BB_X_ARG)
      pair->exponent[pair->count++] = (bb_exponent){p->weight, b->in[p->exponent->index], 0};
    else
      rest.part[rest.count++] = *p;
  }
  if (!rest.count) return;
  const bb_expr *sum = rest.count == 1 ? rest.part[0].exponent : sum_of(b, rest.count, rest.part);
  bb_item own = bb_expr_uses_coord(sum) ? item_without(item, sum->dtype) : axes_of(b, sum);
  bb_value value = bb_safe_emit(b->level, sum, b->count, b->in, own);
  pair->exponent[pair->count++] =
      (bb_exponent){rest.count == 1 ? rest.part[0].weight : 1, value, 0};
}

bb_value bb_safe_value_of(bb_safe_level *level, const bb_pair *pair, bb_item item) {
  builder b = {.level = level, .program = level->safety->program, .item = item};
  form f = of_operand(&b, pair, item.dtype);
  const bb_expr *value = plain(&b, &f);
  return bb_safe_emit(level, value, b.count, b.in, item);
}

static bool has_axis(const builder *b, bool row) {
  for (uint32_t i = 0; i < b->count; i++) {
    bb_item own = bb_type_of(b->level->graph, b->in[i])->item;
    if ((row ? own.row : own.col) != BB_NO_DIM) return true;
  }
  return false;
}

/* Of an operand that is a power of e alone, its exponents have the axes: what reads neither, a count of its elements, has them
 * from there. */
static void add_axes(builder *b, const bb_pair *pair) {
  for (uint32_t i = 0; pair->ones && i < pair->count; i++) {
    bb_item own = bb_type_of(b->level->graph, pair->exponent[i].value)->item;
    bool row = own.row != BB_NO_DIM && b->item.row != BB_NO_DIM && !has_axis(b, true);
    bool col = own.col != BB_NO_DIM && b->item.col != BB_NO_DIM && !has_axis(b, false);
    if (row || col) operand(b, pair->exponent[i].value);
  }
}

/* Have the exponents all axes?  Those of a constant have none. */
static bool covers(const bb_safe_level *level, const bb_pair *pair, bb_item item) {
  bool row = item.row == BB_NO_DIM, col = item.col == BB_NO_DIM;
  for (uint32_t i = 0; i < pair->count; i++) {
    bb_item own = bb_type_of(level->graph, pair->exponent[i].value)->item;
    row |= own.row != BB_NO_DIM;
    col |= own.col != BB_NO_DIM;
  }
  return row && col;
}

bb_pair *bb_safe_expression(bb_safe_level *level, const bb_node *node, const bb_expr *expr,
                            uint32_t count, bb_pair *const *pair, const bb_type *type) {
  builder b = {.level = level, .program = level->safety->program, .node = node, .item = type->item};
  bb_pair *result = BB_NEW(level->safety->arena, bb_pair, 1);
  /* The old operands first and in order, so that what is not changed stays as it was. */
  for (uint32_t i = 0; i < count; i++)
    if (!pair[i]->ones) operand(&b, pair[i]->significand);
  form f = form_of(&b, expr, pair);
  for (uint32_t i = 0; i < count; i++) add_axes(&b, pair[i]);
  emit_exponents(&b, &f, type->item, result);
  result->logarithm = f.logarithm && f.count;
  result->ones = result->count && !f.logarithm && bb_expr_is_number(f.significand, 1) &&
                 covers(level, result, type->item);
  if (!result->ones)
    result->significand = bb_safe_emit(level, f.significand, b.count, b.in, type->item);
  return result;
}
