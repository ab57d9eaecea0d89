/* formulas.c - formulas of expressions, and how many operations a tile program runs. */
#include "plan_make.h"

#include <math.h>
#include <string.h>

/* --- expressions --- */

static const struct {
  bb_expr_op from;
  bb_term_op to;
} operators[] = {
    {BB_X_ADD, BB_T_ADD}, {BB_X_SUB, BB_T_SUB},   {BB_X_MUL, BB_T_MUL},       {BB_X_DIV, BB_T_DIV},
    {BB_X_MOD, BB_T_MOD}, {BB_X_FMOD, BB_T_FMOD}, {BB_X_MIN, BB_T_MIN},       {BB_X_MAX, BB_T_MAX},
    {BB_X_NEG, BB_T_NEG}, {BB_X_ABS, BB_T_ABS},   {BB_X_SIGN, BB_T_SIGN},     {BB_X_LT, BB_T_LT},
    {BB_X_LE, BB_T_LE},   {BB_X_EQ, BB_T_EQ},     {BB_X_NE, BB_T_NE},         {BB_X_AND, BB_T_AND},
    {BB_X_OR, BB_T_OR},   {BB_X_XOR, BB_T_XOR},   {BB_X_SELECT, BB_T_SELECT}, {BB_X_NOT, BB_T_NOT},
};

/* Of reals. */
static const struct {
  bb_expr_op from;
  bb_term_op to;
  bool rounds;
} real_operators[] = {
    {BB_X_ADD, BB_T_R_ADD, true},      {BB_X_SUB, BB_T_R_SUB, true},
    {BB_X_MUL, BB_T_R_MUL, true},      {BB_X_DIV, BB_T_R_DIV, true},
    {BB_X_MIN, BB_T_R_MIN, false},     {BB_X_MAX, BB_T_R_MAX, false},
    {BB_X_NEG, BB_T_R_NEG, false},     {BB_X_ABS, BB_T_R_ABS, false},
    {BB_X_FLOOR, BB_T_R_FLOOR, false}, {BB_X_CEIL, BB_T_R_CEIL, false},
    {BB_X_ROUND, BB_T_R_ROUND, false}, {BB_X_SELECT, BB_T_SELECT, false},
    {BB_X_LT, BB_T_R_LT, false},       {BB_X_LE, BB_T_R_LE, false},
    {BB_X_EQ, BB_T_R_EQ, false},       {BB_X_NE, BB_T_R_NE, false},
};

typedef struct writer {
  bb_program *program;
  bb_arena *arena;
  bb_term *term;
  uint32_t count, capacity;
} writer;

static _Noreturn void refuse(const writer *w, const bb_expr *e) {
  bb_fail(w->program->ctx, BB_ERROR_UNSUPPORTED, "a size with %s in it", bb_expr_op_name(e->op));
}

static void put(writer *w, bb_term_op op, int64_t number) {
  BB_GROW(w->arena, w->term, w->capacity, w->count + 1u);
  w->term[w->count++] = (bb_term){op, number};
}

/* Rounding to whole numbers does nothing to them. */
static bool keeps_whole(const bb_expr *e) {
  return e->op == BB_X_FLOOR || e->op == BB_X_CEIL || e->op == BB_X_ROUND ||
         (e->op == BB_X_CAST && e->dtype != BB_BOOL && !bb_dtype_is_stored(e->dtype));
}

/* The whole number that is only rounded, and in the end is whole again; else the expression. */
static const bb_expr *unrounded(const bb_expr *e) {
  const bb_expr *inner = e;
  while (keeps_whole(inner)) inner = inner->a[0];
  return bb_dtype_is_float(e->dtype) || bb_dtype_is_float(inner->dtype) ? e : inner;
}

static bool is_real(const writer *w, const bb_expr *e) {
  if (!bb_dtype_is_float(e->dtype)) return false;
  if (e->dtype != BB_F32 && e->dtype != BB_F64) refuse(w, e);
  return true;
}

static void write(writer *w, const bb_expr *e);

static void write_cast(writer *w, const bb_expr *e) {
  bool from = is_real(w, e->a[0]), to = is_real(w, e);
  if (e->dtype == BB_BOOL || bb_dtype_is_stored(e->dtype)) refuse(w, e);
  write(w, e->a[0]);
  if (to && !from) put(w, BB_T_REAL, 0);
  if (to && e->dtype == BB_F32) put(w, BB_T_SINGLE, 0);
  if (from && !to) put(w, BB_T_WHOLE, 0);
}

static void write_real(writer *w, const bb_expr *e) {
  for (uint32_t i = 0; i < bb_expr_op_arity(e->op); i++) write(w, e->a[i]);
  for (size_t i = 0; i < sizeof real_operators / sizeof *real_operators; i++) {
    if (real_operators[i].from != e->op) continue;
    put(w, real_operators[i].to, 0);
    if (real_operators[i].rounds && e->dtype == BB_F32) put(w, BB_T_SINGLE, 0);
    return;
  }
  refuse(w, e);
}

static void write_whole(writer *w, const bb_expr *e) {
  for (uint32_t i = 0; i < bb_expr_op_arity(e->op); i++) write(w, e->a[i]);
  if (keeps_whole(e)) return;
  for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
    if (operators[i].from != e->op) continue;
    put(w, operators[i].to, 0);
    return;
  }
  refuse(w, e);
}

static void write(writer *w, const bb_expr *e) {
  e = unrounded(e);
  if (e->op == BB_X_CONST) {
    bool real = is_real(w, e);
    if (!real && (!(fabs(e->number) < 9e15) || e->number != floor(e->number))) refuse(w, e);
    put(w, BB_T_NUMBER, real ? bb_formula_real(e->number) : (int64_t)e->number);
    return;
  }
  if (e->op == BB_X_ARG || e->op == BB_X_SYMBOL) {
    if (bb_dtype_is_float(e->dtype)) refuse(w, e);
    put(w, BB_T_VARIABLE, e->index);
    return;
  }
  if (e->op == BB_X_CAST)
    write_cast(w, e);
  else if (bb_expr_op_arity(e->op) && is_real(w, e->a[bb_expr_op_arity(e->op) - 1]))
    write_real(w, e);
  else
    write_whole(w, e);
}

/* Operands that wait at once; more than there may be where the expression has more than `*left` terms, which share parts. */
static uint32_t depth_of(const bb_expr *e, uint32_t *left) {
  uint32_t most = 1;
  if (!*left) return BB_FORMULA_DEPTH + 1;
  --*left;
  for (uint32_t i = 0; i < bb_expr_op_arity(e->op); i++) {
    uint32_t depth = i + depth_of(e->a[i], left);
    if (depth > most) most = depth;
  }
  return most;
}

bb_formula bb_formula_of(bb_program *program, bb_arena *arena, const bb_expr *expr) {
  enum { MOST_TERMS = 1 << 14 };
  writer w = {.program = program, .arena = arena};
  uint32_t left = MOST_TERMS;
  if (depth_of(expr, &left) > BB_FORMULA_DEPTH)
    bb_fail(program->ctx, BB_ERROR_UNSUPPORTED, "a size of too many terms");
  write(&w, expr);
  if (bb_dtype_is_float(expr->dtype)) put(&w, BB_T_WHOLE, 0);
  return (bb_formula){w.count, w.term};
}

bb_formula bb_formula_of_most(bb_program *program, bb_arena *arena, uint32_t symbol) {
  const bb_extent *most = program->most[symbol];
  if (!most) return (bb_formula){0};
  const bb_expr *product = bb_expr_const(program, BB_I64, (double)most->factor);
  for (uint32_t k = 0; k < most->count; k++)
    product =
        bb_expr_make(program, BB_X_MUL, product, bb_expr_symbol(program, most->symbol[k]), NULL);
  return bb_formula_of(program, arena, product);
}

bb_formula bb_formula_of_symbol(bb_program *program, bb_arena *arena, uint32_t symbol) {
  const char *text = program->symbol[symbol], *end = text + strlen(text), *error;
  uint32_t symbols = program->symbols; /* parsing a name may add one */
  const bb_expr *e = bb_expr_parse(program, &text, end, NULL, NULL, &error);
  if (!e || text != end || e->op == BB_X_SYMBOL) return (bb_formula){0};
  bb_formula formula = bb_formula_of(program, arena, e);
  for (uint32_t k = 0; k < formula.count; k++)
    if (formula.term[k].op == BB_T_VARIABLE && formula.term[k].number >= symbols)
      return (bb_formula){0};
  return formula;
}

/* --- operations --- */

/* The loops around a statement: elements they run over, as an expression, and how many of them each
 * statement does at a time. */
typedef struct counter {
  const bb_tile_program *tile;
  bb_program *program;
  const bb_expr **value; /* by variable: itself, or the middle of its loop */
  const bb_expr *total;
} counter;

static const bb_expr *number(const counter *c, double value) {
  return bb_expr_const(c->program, BB_I64, value);
}

static const bb_expr *two(const counter *c, bb_expr_op op, const bb_expr *a, const bb_expr *b) {
  return bb_expr_make(c->program, op, a, b, NULL);
}

static const bb_expr *bound(const counter *c, bb_tile_index index) {
  return bb_expr_substitute(c->program, index, c->tile->variables, c->value);
}

/* Of one run of a statement, on whole tiles. */
static double cost_of(const counter *c, const bb_tile_stmt *s) {
  const bb_tile *tile = c->tile->tile;
  switch (s->kind) {
  case BB_TILE_MAP:
  case BB_TILE_ANY: {
    double most = s->result == BB_NONE ? 1 : bb_tile_elements(&tile[s->result]);
    for (uint32_t i = 0; i < s->operands; i++)
      most = fmax(most, bb_tile_elements(&tile[s->operand[i]]));
    return most * bb_expr_distinct_cost(c->program->ctx, s->expr);
  }
  case BB_TILE_DOT: {
    const bb_tile *a = &tile[s->operand[0]];
    double shared = (s->transposed[0] ? a->rows : a->cols);
    return 2 * bb_tile_elements(&tile[s->result]) * (shared > 0 ? shared : bb_tile_elements(a));
  }
  case BB_TILE_FOLD:
  case BB_TILE_SCAN: return bb_tile_elements(&tile[s->operand[0]]);
  default: return 0;
  }
}

/* around: product of what the loops run over; block: product of their steps. */
static void count_body(counter *c, const bb_tile_body *body, const bb_expr *around, double block);

static void count_loop(counter *c, const bb_tile_loop *l, const bb_expr *around, double block) {
  const bb_expr *step = bound(c, l->step), *zero = number(c, 0);
  double blocked = step->op == BB_X_CONST ? step->number : 1;
  for (uint32_t i = 0; i < l->stretches; i++) {
    const bb_expr *from = bound(c, l->stretch[i].from);
    const bb_expr *to =
        l->stretch[i].to ? bound(c, l->stretch[i].to) : two(c, BB_X_ADD, from, step);
    const bb_expr *length = two(c, BB_X_MAX, two(c, BB_X_SUB, to, from), zero);
    c->value[l->variable] = two(c, BB_X_DIV, two(c, BB_X_ADD, from, to), number(c, 2));
    count_body(c, &l->body, two(c, BB_X_MUL, around, length), block * blocked);
  }
}

static void count_body(counter *c, const bb_tile_body *body, const bb_expr *around, double block) {
  double cost = 0;
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    cost += cost_of(c, s);
    if (s->kind == BB_TILE_LOOP) count_loop(c, s->loop, around, block);
    count_body(c, &s->body, around, block);
  }
  if (cost == 0) return;
  const bb_expr *here = two(c, BB_X_MUL, around, number(c, rint(cost)));
  c->total = two(c, BB_X_ADD, c->total, two(c, BB_X_DIV, here, number(c, block)));
}

bb_formula bb_operations_of(const bb_tile_program *tile, bb_arena *arena) {
  counter c = {.tile = tile, .program = tile->home};
  c.value = BB_NEW(arena, const bb_expr *, tile->variables + 1);
  for (uint32_t i = 0; i < tile->extents; i++) c.value[i] = bb_expr_arg(c.program, BB_I64, i);
  c.total = number(&c, 0);
  count_body(&c, &tile->body, number(&c, 1), 1);
  return bb_formula_of(c.program, arena, c.total);
}
