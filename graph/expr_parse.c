/* expr_parse.c - scalar expressions from text; the notation is described in expr_text.c.
 *
 *   expression  [let @1=infix; @2=infix ... in] infix
 *   infix       unary {operator infix}
 *   unary       -unary | !unary | primary [**unary]
 *   primary     number | name['type] | @binding | (infix) | function(infix, ...)
 *               | type([-]number) a constant | type(infix) a cast
 *               | extent(dim) | symbol(name) | coord(row | col | map K | axis K)
 *   name        plain, "quoted", %value or $operand
 */
#include "expr_text.h"
#include "program.h"
#include "text_name.h"
#include "text_number.h"

#include <math.h>
#include <string.h>

/* Parentheses, calls and signs within each other: what the parser recurses over. */
enum { NESTING = 500 };

typedef struct parser {
  bb_program *program;
  const char *at, *end;
  bb_expr_lookup *lookup;
  void *user;
  bool integers; /* numbers beside none but numbers are integers */
  bb_arena *scratch;
  const char *error; /* set once; then everything returns quickly */
  uint32_t nesting;
  uint32_t bindings, capacity;
  const bb_expr **binding;
} parser;

/* A parsed operand: an expression, or a number that takes its type from what stands beside it. */
typedef struct term {
  const bb_expr *expr; /* NULL: a number */
  double number;
  bool exact; /* it had a d: not rounded to its type */
} term;

static const term NOTHING = {NULL, 0, false};

static term fail(parser *p, const char *phrase) {
  if (!p->error) p->error = phrase;
  return NOTHING;
}

/* --- characters --- */

static void skip_space(parser *p) {
  for (; p->at < p->end; p->at++) {
    if (*p->at == '#')
      while (p->at + 1 < p->end && p->at[1] != '\n') p->at++;
    else if (*p->at != ' ' && *p->at != '\t' && *p->at != '\n' && *p->at != '\r')
      return;
  }
}

static bool next_is(const parser *p, const char *symbol) {
  size_t length = strlen(symbol);
  return (size_t)(p->end - p->at) >= length && memcmp(p->at, symbol, length) == 0;
}

/* Skips space and, if it comes next, the symbol. */
static bool accept(parser *p, const char *symbol) {
  skip_space(p);
  if (!next_is(p, symbol)) return false;
  p->at += strlen(symbol);
  return true;
}

static void expect(parser *p, const char *symbol, const char *phrase) {
  if (!p->error && !accept(p, symbol)) fail(p, phrase);
}

static size_t word_length(const char *at, const char *end) {
  size_t n = 0;
  if (at == end || !bb_is_name_start(*at)) return 0;
  while (at + n < end && bb_is_name_char(at[n])) n++;
  return n;
}

static bool accept_word(parser *p, const char *word) {
  skip_space(p);
  size_t n = word_length(p->at, p->end);
  if (n != strlen(word) || memcmp(p->at, word, n) != 0) return false;
  p->at += n;
  return true;
}

static uint32_t scan_index(parser *p) {
  skip_space(p);
  uint64_t value = 0;
  const char *start = p->at;
  for (; p->at < p->end && *p->at >= '0' && *p->at <= '9'; p->at++) {
    value = value * 10 + (uint64_t)(*p->at - '0');
    if (value > 1000000) break;
  }
  if (p->at == start || value > 1000000) fail(p, "expected a small number");
  return (uint32_t)value;
}

/* --- making --- */

static const bb_expr *typed_number(parser *p, bb_dtype dtype, double value, bool exact) {
  bool single = bb_dtype_is_float(dtype) && dtype != BB_F64;
  if (single && !exact) {
    if (isinf((float)value) && !isinf(value)) fail(p, "a number too large for its type");
    value = (double)(float)value;
  }
  if ((dtype == BB_I64 || dtype == BB_I32) &&
      !isinf(value)) { /* folds of integers begin at an infinity */
    double limit = dtype == BB_I64 ? 9223372036854775808.0 : 2147483648.0;
    if (value != trunc(value) || !(value >= -limit && value < limit))
      fail(p, "a number that its integer type does not hold");
  }
  if (bb_dtype_is_stored(dtype) && value != bb_dtype_wrap(dtype, value))
    fail(p, "a number that its integer type does not hold");
  return p->error ? NULL : bb_expr_const(p->program, dtype, value);
}

static const bb_expr *settle(parser *p, term t, const bb_expr *beside) {
  if (p->error || t.expr) return t.expr;
  bb_dtype dtype = bb_expr_literal_dtype(t.number, beside);
  bool alone = !beside || beside->op == BB_X_CONST;
  if (p->integers && alone && fabs(t.number) <= 0x1p53 && t.number == trunc(t.number))
    dtype = BB_I64;
  return typed_number(p, dtype, t.number, t.exact);
}

static term make(parser *p, bb_expr_op op, const bb_expr *a, const bb_expr *b, const bb_expr *c) {
  if (p->error) return NOTHING;
  const bb_expr *operand[3] = {a, b, c};
  for (uint32_t i = 0; i < 3; i++)
    if (operand[i] && operand[i]->depth >= BB_EXPR_DEPTH)
      return fail(p, "an expression nested too deep");
  return (term){.expr = bb_expr_make(p->program, op, a, b, c)};
}

static term make_binary(parser *p, bb_expr_op op, term left, term right) {
  const bb_expr *a = settle(p, left, right.expr), *b = settle(p, right, left.expr);
  return make(p, op, a, b, NULL);
}

/* --- names and numbers --- */

static term parse_infix(parser *p, bb_expr_strength least);

static bool scan_sign(parser *p) {
  return accept(p, "-");
}

static bool scan_number(parser *p, term *number) {
  if (accept_word(p, "nan") || accept_word(p, "inf")) {
    *number = (term){NULL, p->at[-1] == 'n' ? NAN : INFINITY, false};
    return true;
  }
  bool integer;
  if (p->at == p->end || *p->at < '0' || *p->at > '9') return false;
  const char *phrase = bb_scan_number(&p->at, p->end, &number->number, &integer);
  if (phrase) fail(p, phrase);
  number->expr = NULL;
  number->exact = next_is(p, "d");
  p->at += number->exact;
  if (p->at < p->end && bb_is_name_char(*p->at)) fail(p, "a letter right after a number");
  return true;
}

static term look_up(parser *p, const char *name, size_t length) {
  const bb_expr *found = p->lookup ? p->lookup(p->user, name, length) : NULL;
  if (!found) return fail(p, "an unknown name");
  bb_dtype dtype;
  if (found->op == BB_X_ARG && next_is(p, "'")) {
    size_t n = word_length(p->at + 1, p->end);
    if (!bb_dtype_parse(p->at + 1, n, &dtype)) return fail(p, "expected an element type");
    p->at += n + 1;
    found = bb_expr_arg(p->program, dtype, found->index);
  }
  return (term){.expr = found};
}

static term parse_quoted(parser *p) {
  const char *start = p->at, *name;
  size_t length;
  const char *phrase = bb_scan_quoted(&p->at, p->end, p->scratch, &name, &length);
  if (phrase) return fail(p, phrase);
  term found = look_up(p, name, length);
  if (p->error) p->at = start;
  return found;
}

/* %17.1 or $2, looked up as written. */
static term parse_marked(parser *p) {
  const char *start = p->at++;
  while (p->at < p->end && bb_is_name_char(*p->at)) p->at++;
  term found = look_up(p, start, (size_t)(p->at - start));
  if (p->error) p->at = start;
  return found;
}

static term parse_binding(parser *p) {
  const char *start = p->at++;
  uint32_t number = scan_index(p);
  if (p->error || number == 0 || number > p->bindings) {
    p->at = start;
    return fail(p, "an unknown binding");
  }
  return (term){.expr = p->binding[number - 1]};
}

/* --- calls --- */

/* The name in extent(D) or symbol("past + 1"); in scratch memory. */
static const char *scan_plain_or_quoted(parser *p) {
  skip_space(p);
  size_t length = word_length(p->at, p->end);
  const char *name = NULL, *phrase = NULL;
  if (length) {
    name = bb_arena_text(p->scratch, p->at, length);
    p->at += length;
  } else if (next_is(p, "\"")) {
    phrase = bb_scan_quoted(&p->at, p->end, p->scratch, &name, &length);
  } else {
    phrase = "expected a name";
  }
  if (phrase) fail(p, phrase);
  return name;
}

static term parse_extent(parser *p) {
  skip_space(p);
  const char *start = p->at, *name = scan_plain_or_quoted(p);
  if (p->error) return NOTHING;
  bb_dim dim = bb_dim_find(p->program, name, strlen(name));
  if (dim != BB_NO_DIM) return (term){.expr = bb_expr_extent(p->program, dim)};
  p->at = start;
  return fail(p, "an unknown dim");
}

static term parse_symbol(parser *p) {
  skip_space(p);
  const char *start = p->at, *name = scan_plain_or_quoted(p);
  if (p->error) return NOTHING;
  uint32_t symbol = bb_symbol_find(p->program, name);
  if (symbol != UINT32_MAX) return (term){.expr = bb_expr_symbol(p->program, symbol)};
  p->at = start;
  return fail(p, "an unknown symbol");
}

static term parse_coord(parser *p) {
  uint32_t which = BB_COORD_ROW;
  if (accept_word(p, "col"))
    which = BB_COORD_COL;
  else if (accept_word(p, "map")) {
    which = BB_COORD_MAP + scan_index(p);
    if (which >= BB_COORD_AXIS) fail(p, "a coordinate of more than 240 maps");
  } else if (accept_word(p, "axis"))
    which = BB_COORD_AXIS + scan_index(p);
  else if (!accept_word(p, "row"))
    fail(p, "expected row, col, map or axis");
  return p->error ? NOTHING : (term){.expr = bb_expr_coord(p->program, which)};
}

/* type( with one number is a constant, with anything else a cast. */
static term parse_cast(parser *p, bb_dtype dtype) {
  const char *start = p->at;
  term number;
  bool minus = scan_sign(p);
  if (scan_number(p, &number) && !p->error) {
    skip_space(p);
    if (next_is(p, ")")) {
      double value = minus ? -number.number : number.number;
      return (term){.expr = typed_number(p, dtype, value, number.exact)};
    }
  }
  if (p->error) return NOTHING;
  p->at = start;
  const bb_expr *a = settle(p, parse_infix(p, BB_STRENGTH_OR), NULL);
  if (p->error) return NOTHING;
  if (a->depth >= BB_EXPR_DEPTH) return fail(p, "an expression nested too deep");
  return (term){.expr = bb_expr_cast(p->program, dtype, a)};
}

static bool find_function(const char *name, size_t length, bb_expr_op *op) {
  static const char *const kind[] = {
#define BB_EXPR(id, name, arity, cost, text) text,
#include "expr.def"
#undef BB_EXPR
  };
  for (uint32_t i = 0; i < BB_X_COUNT; i++) {
    const char *has = bb_expr_op_name((bb_expr_op)i);
    if (i == BB_X_CAST || strcmp(kind[i], "call") != 0) continue;
    if (strlen(has) != length || memcmp(has, name, length) != 0) continue;
    *op = (bb_expr_op)i;
    return true;
  }
  return false;
}

static term parse_function(parser *p, bb_expr_op op) {
  term t[3] = {NOTHING, NOTHING, NOTHING};
  uint32_t arity = bb_expr_op_arity(op);
  for (uint32_t i = 0; i < arity; i++) {
    if (i) expect(p, ",", "expected a comma: the function takes more operands");
    t[i] = parse_infix(p, BB_STRENGTH_OR);
    if (p->error) return NOTHING;
  }
  if (arity == 2) return make_binary(p, op, t[0], t[1]);
  const bb_expr *a = settle(p, t[0], NULL), *b = NULL, *c = NULL;
  if (arity == 3) b = settle(p, t[1], t[2].expr), c = settle(p, t[2], t[1].expr);
  return make(p, op, a, b, c);
}

/* A name before an opening parenthesis. */
static term parse_call(parser *p, const char *name, size_t length) {
  const char *start = p->at;
  bb_dtype dtype;
  bb_expr_op op;
  term result;
  p->at += length;
  expect(p, "(", "expected (");
  if (bb_dtype_parse(name, length, &dtype))
    result = parse_cast(p, dtype);
  else if (length == 6 && memcmp(name, "extent", 6) == 0)
    result = parse_extent(p);
  else if (length == 6 && memcmp(name, "symbol", 6) == 0)
    result = parse_symbol(p);
  else if (length == 5 && memcmp(name, "coord", 5) == 0)
    result = parse_coord(p);
  else if (find_function(name, length, &op))
    result = parse_function(p, op);
  else {
    p->at = start;
    return fail(p, "an unknown function");
  }
  expect(p, ")", "expected )");
  return p->error ? NOTHING : result;
}

static term parse_word(parser *p, size_t length) {
  const char *name = p->at, *after = name + length;
  while (after < p->end && (*after == ' ' || *after == '\t')) after++;
  if (after < p->end && *after == '(') return parse_call(p, name, length);
  p->at += length;
  term found = look_up(p, name, length);
  if (p->error) p->at = name;
  return found;
}

/* --- operators --- */

static term parse_primary(parser *p) {
  term number;
  skip_space(p);
  if (p->at == p->end) return fail(p, "expected an expression");
  if (scan_number(p, &number)) return p->error ? NOTHING : number;
  size_t length = word_length(p->at, p->end);
  if (length) return parse_word(p, length);
  if (next_is(p, "\"")) return parse_quoted(p);
  if (next_is(p, "%") || next_is(p, "$")) return parse_marked(p);
  if (next_is(p, "@")) return parse_binding(p);
  if (!accept(p, "(")) return fail(p, "expected an expression");
  term inner = parse_infix(p, BB_STRENGTH_OR);
  expect(p, ")", "expected )");
  return inner;
}

static term parse_unary(parser *p) {
  if (p->error) return NOTHING;
  if (p->nesting >= NESTING) return fail(p, "an expression nested too deep");
  p->nesting++;
  term result;
  if (accept(p, "-")) {
    result = parse_unary(p);
    if (!p->error && !result.expr)
      result.number = -result.number;
    else
      result = make(p, BB_X_NEG, result.expr, NULL, NULL);
  } else if (accept(p, "!")) {
    result = make(p, BB_X_NOT, settle(p, parse_unary(p), NULL), NULL, NULL);
  } else {
    result = parse_primary(p);
    if (!p->error && accept(p, "**")) result = make_binary(p, BB_X_POW, result, parse_unary(p));
  }
  p->nesting--;
  return result;
}

/* The infix operator at p->at that binds at least so tightly, or BB_X_COUNT. */
static bb_expr_op infix_operator(const parser *p, bb_expr_strength least) {
  static const struct {
    const char *text;
    bb_expr_op op;
  } table[] = {{"<=", BB_X_LE}, {"<", BB_X_LT},  {"==", BB_X_EQ}, {"!=", BB_X_NE},
               {"+", BB_X_ADD}, {"-", BB_X_SUB}, {"*", BB_X_MUL}, {"/", BB_X_DIV},
               {"&", BB_X_AND}, {"|", BB_X_OR},  {"^", BB_X_XOR}};
  if (next_is(p, "->") || next_is(p, "**")) return BB_X_COUNT;
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (next_is(p, table[i].text))
      return bb_expr_strength_of(table[i].op) >= least ? table[i].op : BB_X_COUNT;
  return BB_X_COUNT;
}

static term parse_infix(parser *p, bb_expr_strength least) {
  term left = parse_unary(p);
  while (!p->error) {
    const char *behind = p->at;
    skip_space(p);
    bb_expr_op op = infix_operator(p, least);
    if (op == BB_X_COUNT) {
      p->at = behind;
      break;
    }
    bb_expr_strength own = bb_expr_strength_of(op);
    p->at += strlen(bb_expr_op_name(op));
    term right = parse_infix(p, (bb_expr_strength)(own + 1));
    left = make_binary(p, op, left, right);
    if (own != BB_STRENGTH_COMPARE || p->error) continue;
    behind = p->at;
    skip_space(p);
    op = infix_operator(p, BB_STRENGTH_COMPARE);
    if (op != BB_X_COUNT && bb_expr_strength_of(op) == own) fail(p, "comparisons do not chain");
    p->at = behind;
  }
  return p->error ? NOTHING : left;
}

/* let @1=a; @2=b in */
static void parse_bindings(parser *p) {
  do {
    expect(p, "@", "expected a binding such as @1=x");
    uint32_t number = p->error ? 0 : scan_index(p);
    if (number != p->bindings + 1) fail(p, "bindings are numbered from 1");
    expect(p, "=", "expected =");
    if (p->error) return;
    const bb_expr *expr = settle(p, parse_infix(p, BB_STRENGTH_OR), NULL);
    if (p->error) return;
    BB_GROW(p->scratch, p->binding, p->capacity, (size_t)p->bindings + 1);
    p->binding[p->bindings++] = expr;
  } while (!p->error && accept(p, ";"));
  if (!p->error && !accept_word(p, "in")) fail(p, "expected ; or in");
}

static const bb_expr *parse(parser *p, const char **text, const char **error) {
  p->at = *text;
  p->scratch = bb_scratch(p->program->ctx);
  if (accept_word(p, "let")) parse_bindings(p);
  const bb_expr *expr = NULL;
  if (!p->error) expr = settle(p, parse_infix(p, BB_STRENGTH_OR), NULL);
  *text = p->at;
  *error = p->error;
  bb_scratch_end(p->scratch);
  return p->error ? NULL : expr;
}

const bb_expr *bb_expr_parse(bb_program *program, const char **text, const char *end,
                             bb_expr_lookup *lookup, void *user, const char **error) {
  parser p = {.program = program, .end = end, .lookup = lookup, .user = user};
  return parse(&p, text, error);
}

const bb_expr *bb_expr_parse_index(bb_program *program, const char **text, const char *end,
                                   bb_expr_lookup *lookup, void *user, const char **error) {
  parser p = {.program = program, .end = end, .lookup = lookup, .user = user, .integers = true};
  return parse(&p, text, error);
}
