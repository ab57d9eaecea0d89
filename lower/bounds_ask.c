/* bounds_ask.c - masks of a loop as texts of sets.
 *
 * A variable of the program is a parameter.  That of a loop which begins at a constant and goes in constant steps is
 * such a sum of the number of its iteration, so that sets know on which grid blocks lie; an index that is no sum - a
 * product of extents, say - is a parameter of its own.  Integer division, remainders, least and greatest are isl's; what
 * else a condition asks is unknown: it may hold and may fail.
 */
#include "bounds_asking.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { LONGEST = 1 << 14 };

/* --- indices --- */

static bool is_whole(const bb_expr *e) {
  return e->op == BB_X_CONST && e->number == floor(e->number) && fabs(e->number) < 1e12;
}

static void put_index(bb_asking *a, bb_buffer *out, bb_tile_index index);

/* Is the loop's variable from + step k, k from 0 on? */
static bool is_regular(const bb_tile_loop *l) {
  return l && l->stretches == 1 && is_whole(l->stretch[0].from) && is_whole(l->step) &&
         l->step->number > 0;
}

static uint32_t parameter_of(bb_asking *a, bb_tile_index index) {
  uint32_t i = 0;
  while (i < a->parameters && a->parameter[i].index != index) i++;
  if (i < a->parameters) return i;
  if (i == BB_SETS_PARAMETERS) {
    a->over = true;
    return 0;
  }
  const bb_tile_loop *l = NULL;
  bool variable = index->op == BB_X_ARG;
  if (variable && a->b->around) l = a->b->around[index->index];
  a->parameter[i] = (bb_parameter){index, 0, 1};
  if (is_regular(l)) {
    a->parameter[i].from = (int64_t)l->stretch[0].from->number;
    a->parameter[i].step = (int64_t)l->step->number;
  }
  a->parameters++;
  if (!is_regular(l) && !(variable && index->index < a->b->p->extents)) return i;
  bb_put(&a->context, " and 0 <= p%u < %" PRId64, i, BB_SETS_MOST);
  if (!is_regular(l) || !l->stretch[0].to) return i;
  bb_buffer below = {.arena = a->arena}; /* naming others, it may say more of those first */
  put_index(a, &below, index);
  bb_put(&below, " < ");
  put_index(a, &below, l->stretch[0].to);
  bb_put(&a->context, " and %s", below.data);
  return i;
}

static void put_parameter(bb_asking *a, bb_buffer *out, bb_tile_index index) {
  uint32_t i = parameter_of(a, index);
  const bb_parameter *p = &a->parameter[i];
  if (p->from || p->step != 1)
    bb_put(out, "(%" PRId64 " + %" PRId64 "*p%u)", p->from, p->step, i);
  else
    bb_put(out, "p%u", i);
}

typedef void put_operand(bb_asking *a, bb_buffer *out, const bb_expr *e, const void *user);

static void put_two(bb_asking *a, bb_buffer *out, const char *begin, const bb_expr *x,
                    const char *between, const bb_expr *y, put_operand *put, const void *user) {
  bb_put(out, "%s", begin);
  put(a, out, x, user);
  bb_put(out, "%s", between);
  if (y) put(a, out, y, user);
  bb_put(out, ")");
}

/* x / d, rounded toward zero */
static void put_quotient(bb_asking *a, bb_buffer *out, const bb_expr *x, int64_t d,
                         put_operand *put, const void *user) {
  bb_put(out, "(floor(");
  put_two(a, out, "max(0, ", x, "", NULL, put, user);
  bb_put(out, "/%" PRId64 ") - floor(", d);
  put_two(a, out, "max(0, -", x, "", NULL, put, user);
  bb_put(out, "/%" PRId64 "))", d);
}

/* Arithmetic of whole numbers; false: it is none that sets have. */
static bool put_arithmetic(bb_asking *a, bb_buffer *out, const bb_expr *e, put_operand *put,
                           const void *user) {
  const bb_expr *x = e->a[0], *y = e->a[1];
  if (out->length > LONGEST) a->over = true;
  if (a->over) return true;
  bool by = y && is_whole(y) && y->number > 0 && y->number < 1e9;
  switch (e->op) {
  case BB_X_CONST:
    bb_put(out, "(%" PRId64 ")", is_whole(e) ? (int64_t)e->number : 0);
    return is_whole(e);
  case BB_X_NEG: put_two(a, out, "(-", x, "", NULL, put, user); return true;
  case BB_X_ADD: put_two(a, out, "(", x, " + ", y, put, user); return true;
  case BB_X_SUB: put_two(a, out, "(", x, " - ", y, put, user); return true;
  case BB_X_MIN: put_two(a, out, "min(", x, ", ", y, put, user); return true;
  case BB_X_MAX: put_two(a, out, "max(", x, ", ", y, put, user); return true;
  case BB_X_ABS: put_two(a, out, "max(", x, ", -", x, put, user); return true;
  case BB_X_MUL:
    if (!is_whole(x) && !is_whole(y)) return false;
    put_two(a, out, "(", is_whole(x) ? x : y, "*", is_whole(x) ? y : x, put, user);
    return true;
  case BB_X_DIV:
    if (by) put_quotient(a, out, x, (int64_t)y->number, put, user);
    return by;
  case BB_X_MOD:
    if (!by) return false;
    put_two(a, out, "((", x, "", NULL, put, user);
    bb_put(out, " mod %" PRId64 ")", (int64_t)y->number);
    return true;
  case BB_X_FMOD:
    if (!by) return false;
    put_two(a, out, "((", x, "", NULL, put, user);
    bb_put(out, " - %" PRId64 "*", (int64_t)y->number);
    put_quotient(a, out, x, (int64_t)y->number, put, user);
    bb_put(out, ")");
    return true;
  default: return false;
  }
}

/* Can put_arithmetic() say it? */
static bool is_arithmetic(const bb_expr *e) {
  const bb_expr *y = e->a[1];
  switch (e->op) {
  case BB_X_CONST: return is_whole(e);
  case BB_X_MUL: return is_whole(e->a[0]) || is_whole(y);
  case BB_X_DIV:
  case BB_X_MOD:
  case BB_X_FMOD: return is_whole(y) && y->number > 0 && y->number < 1e9;
  default:
    return e->op == BB_X_NEG || e->op == BB_X_ADD || e->op == BB_X_SUB || e->op == BB_X_MIN ||
           e->op == BB_X_MAX || e->op == BB_X_ABS;
  }
}

static void put_variable(bb_asking *a, bb_buffer *out, uint32_t variable) {
  const bb_tile_loop *l = a->b->loop;
  bb_tile_index index = bb_expr_arg(a->b->p->home, BB_I64, variable);
  if (variable != l->variable) {
    put_parameter(a, out, index);
    return;
  }
  bb_put(out, "(");
  put_index(a, out, l->stretch[0].from);
  bb_put(out, " + %" PRId64 "*k)", (int64_t)l->step->number);
}

static void put_part(bb_asking *a, bb_buffer *out, const bb_expr *e, const void *user) {
  (void)user;
  put_index(a, out, e);
}

static void put_index(bb_asking *a, bb_buffer *out, bb_tile_index index) {
  if (index->op == BB_X_ARG)
    put_variable(a, out, index->index);
  else if (!is_arithmetic(index))
    put_parameter(a, out, index);
  else
    put_arithmetic(a, out, index, put_part, NULL);
}

/* --- conditions --- */

/* Which variable a symbol is; BB_NONE: none. */
static uint32_t symbol_of(const bb_tile_program *p, uint32_t symbol) {
  for (uint32_t i = 0; i < p->extents; i++)
    if (strcmp(p->variable[i], p->home->symbol[symbol]) == 0) return i;
  return BB_NONE;
}

/* Is an integer of places and variables understood? */
static bool is_value(bb_asking *a, const bb_mask *m, const bb_expr *e) {
  if (bb_dtype_is_float(e->dtype) || e->dtype == BB_BOOL) return false;
  switch (e->op) {
  case BB_X_COORD: return e->index <= BB_COORD_COL && m->at[e->index == BB_COORD_ROW ? 0 : 1];
  case BB_X_ARG: return e->index >= BB_TILE_VARIABLE;
  case BB_X_SYMBOL: return symbol_of(a->b->p, e->index) != BB_NONE;
  case BB_X_CAST: return !bb_dtype_is_stored(e->dtype) && is_value(a, m, e->a[0]);
  default: break;
  }
  bool divides = e->op == BB_X_DIV || e->op == BB_X_MOD || e->op == BB_X_FMOD;
  if (!is_arithmetic(e) || (divides && a->coarse)) return false;
  for (uint32_t i = 0; i < bb_expr_op_arity(e->op); i++)
    if (!is_value(a, m, e->a[i])) return false;
  return true;
}

static void put_value(bb_asking *a, bb_buffer *out, const bb_expr *e, const void *mask) {
  const bb_mask *m = mask;
  switch (e->op) {
  case BB_X_COORD:
    bb_put(out, "(");
    put_index(a, out, m->at[e->index == BB_COORD_ROW ? 0 : 1]);
    bb_put(out, e->index == BB_COORD_ROW ? " + r)" : " + c)");
    return;
  case BB_X_ARG: put_variable(a, out, e->index - BB_TILE_VARIABLE); return;
  case BB_X_SYMBOL: put_variable(a, out, symbol_of(a->b->p, e->index)); return;
  case BB_X_CAST: put_value(a, out, e->a[0], mask); return;
  default: put_arithmetic(a, out, e, put_value, mask); return;
  }
}

/* unknown: what a condition counts as that is not understood. */
static void put_condition(bb_asking *a, bb_buffer *out, const bb_mask *m, const bb_expr *e,
                          bool unknown) {
  const char *compare = e->op == BB_X_LT   ? " < "
                        : e->op == BB_X_LE ? " <= "
                        : e->op == BB_X_EQ ? " = "
                        : e->op == BB_X_NE ? " != "
                                           : NULL;
  if (out->length > LONGEST) a->over = true;
  if (a->over) return;
  if (e->op == BB_X_CONST) {
    bb_put(out, "(0 = %d)", e->number != 0 ? 0 : 1);
  } else if (compare && is_value(a, m, e->a[0]) && is_value(a, m, e->a[1])) {
    a->known = true;
    put_two(a, out, "(", e->a[0], compare, e->a[1], put_value, m);
  } else if (e->op == BB_X_AND || e->op == BB_X_OR) {
    bb_put(out, "(");
    put_condition(a, out, m, e->a[0], unknown);
    bb_put(out, e->op == BB_X_AND ? " and " : " or ");
    put_condition(a, out, m, e->a[1], unknown);
    bb_put(out, ")");
  } else if (e->op == BB_X_NOT) {
    bb_put(out, "(not ");
    put_condition(a, out, m, e->a[0], !unknown);
    bb_put(out, ")");
  } else if (e->op == BB_X_XOR) {
    for (uint32_t i = 0; i < 2; i++) {
      bb_put(out, i ? " or (" : "((");
      put_condition(a, out, m, e->a[i], unknown);
      bb_put(out, " and not ");
      put_condition(a, out, m, e->a[1 - i], !unknown);
      bb_put(out, ")");
    }
    bb_put(out, ")");
  } else {
    bb_put(out, "(0 = %d)", unknown ? 0 : 1);
  }
}

static const char *places(bb_asking *a, const bb_mask *m, bool holds) {
  bb_buffer out = {.arena = a->arena};
  bool unknown = holds != m->inverse;
  bb_put(&out, "{ [k] : exists r, c : 0 <= r < %u and 0 <= c < %u and %s", m->rows, m->cols,
         unknown ? "" : "not ");
  put_condition(a, &out, m, m->condition, unknown);
  bb_put(&out, " }");
  return out.data;
}

bb_asking *bb_asking_begin(const bb_bounds *b, bool coarse) {
  bb_asking *a = BB_NEW(b->scratch, bb_asking, 1);
  a->b = b;
  a->coarse = coarse;
  a->arena = b->scratch;
  a->context.arena = b->scratch;
  return a;
}

bool bb_asking_mask(bb_asking *a, bb_mask *mask) {
  a->known = false;
  mask->holds = places(a, mask, true);
  mask->fails = places(a, mask, false);
  return a->known && !a->over;
}

/* --- the question --- */

static const char *with_parameters(const bb_asking *a, const char *set) {
  bb_buffer out = {.arena = a->arena};
  for (uint32_t i = 0; i < a->parameters; i++) bb_put(&out, "%sp%u", i ? ", " : "[", i);
  bb_put(&out, "%s%s", a->parameters ? "] -> " : "", set);
  return out.data;
}

const bb_sets_question *bb_asking_question(bb_asking *a, const bb_bounds *b, const bool *idle,
                                           uint32_t most) {
  bb_sets_question *q = BB_NEW(a->arena, bb_sets_question, 1);
  bb_buffer domain = {.arena = a->arena};
  bb_put(&domain, "{ [k] : k >= 0 and ");
  put_variable(a, &domain, b->loop->variable);
  bb_put(&domain, " < ");
  put_index(a, &domain, b->loop->stretch[0].to);
  bb_put(&domain, " }");
  q->domain = with_parameters(a, domain.data); /* all are known by now */
  q->context = with_parameters(
      a, bb_arena_printf(a->arena, "{ : 0 = 0%s }", a->context.data ? a->context.data : ""));
  q->parameters = a->parameters;
  q->masks = b->masks;
  q->most = most;
  for (uint32_t i = 0; i < b->masks; i++)
    q->mask[i] = (bb_sets_mask){with_parameters(a, b->mask[i].holds),
                                with_parameters(a, b->mask[i].fails), idle[i]};
  return q;
}
