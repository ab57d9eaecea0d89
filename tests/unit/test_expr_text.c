/* test_expr_text.c - expressions to text and back. */
#include "expr_text.h"
#include "program.h"
#include "text_number.h"

#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

typedef struct fixture {
  bb_context *ctx;
  bb_program *program;
  bb_arena *scratch;
} fixture;

static fixture begin(void) {
  fixture f;
  assert_int_equal(bb_context_create(NULL, &f.ctx), BB_OK);
  f.program = bb_program_create(f.ctx, "test");
  bb_dim_add(f.program, "D", bb_extent_symbol(f.program, "D"), true);
  bb_dim_add(f.program, "K", bb_extent_symbol(f.program, "K"), true);
  bb_symbol_index(f.program, "past + 1");
  f.scratch = bb_arena_create(f.ctx);
  return f;
}

static void end(fixture f) {
  bb_arena_destroy(f.scratch);
  bb_program_destroy(f.program);
  bb_context_destroy(f.ctx);
}

/* t0..t99 are f32 operands, h0.. f16, i0.. i64, b0.. bool; "odd name" is operand 7. */
static const bb_expr *look_up(void *user, const char *name, size_t length) {
  bb_program *program = user;
  if (length == 8 && memcmp(name, "odd name", 8) == 0) return bb_expr_arg(program, BB_F32, 7);
  if (length < 2 || length > 3) return NULL;
  bb_dtype dtype = name[0] == 'h'   ? BB_F16
                   : name[0] == 'i' ? BB_I64
                   : name[0] == 'b' ? BB_BOOL
                                    : BB_F32;
  if (!strchr("thib$", name[0])) return NULL;
  return bb_expr_arg(program, dtype, (uint32_t)atoi(name + 1));
}

/* protected parse: bb_expr_parse needs a frame for its scratch memory. */
typedef struct parse_job {
  fixture *f;
  const char *text, *end, *error;
  const bb_expr *expr;
} parse_job;

static void parse_body(bb_context *ctx, void *argument) {
  (void)ctx;
  parse_job *job = argument;
  job->expr =
      bb_expr_parse(job->f->program, &job->text, job->end, look_up, job->f->program, &job->error);
}

static const bb_expr *parse(fixture *f, const char *text) {
  parse_job job = {.f = f, .text = text, .end = text + strlen(text)};
  assert_int_equal(bb_protect(f->ctx, parse_body, &job), BB_OK);
  if (job.error) fail_msg("%s: %s at %ld", text, job.error, (long)(job.text - text));
  if (job.text != job.end) fail_msg("%s: stopped at %ld", text, (long)(job.text - text));
  return job.expr;
}

typedef struct print_job {
  bb_buffer out;
  const bb_program *program;
  const bb_expr *expr;
  bb_expr_style style;
} print_job;

static void print_body(bb_context *ctx, void *argument) {
  (void)ctx;
  static char names[4][100][8];
  static const char *arg[100];
  for (int i = 0; i < 100; i++) {
    strcpy(names[0][i], "t");
    snprintf(names[0][i] + 1, 6, "%d", i);
    arg[i] = names[0][i];
  }
  arg[7] = "\"odd name\"";
  print_job *job = argument;
  bb_expr_print(&job->out, job->program, job->expr, job->style, 100, arg);
}

static const char *print(fixture *f, const bb_expr *expr, bb_expr_style style) {
  print_job job = {
      .out = {.arena = f->scratch}, .program = f->program, .expr = expr, .style = style};
  assert_int_equal(bb_protect(f->ctx, print_body, &job), BB_OK);
  return job.out.data;
}

/* What stands in the paper's listings, and what our notation adds, prints as it was written. */
static void test_same(void **state) {
  (void)state;
  static const char *const texts[] = {
      "exp(t3*(extent(D)**-0.5))",
      "t6*(extent(D)**-0.5)",
      "1/t5",
      "-t2/extent(K)",
      "(t3/extent(K)-t4**2)**(-0.5)",
      "t10/(1+exp(-t10))",
      "1/sqrt(t3)",
      "t1**2",
      "t1+t2+t3",
      "t1+(t2+t3)",
      "t1-(t2-t3)",
      "t1*t2/t3",
      "t1/(t2/t3)",
      "t1/(t2*t3)",
      "-(t1*t2)",
      "-(t1+t2)",
      "t1*(-t2)",
      "t1-(-t2)",
      "(-t1)**2",
      "-t1**2",
      "(t1**t2)**t3",
      "t1**(t2**t3)",
      "t1**(-t2)",
      "(t1*t2)**2",
      "(t1**2)*t2",
      "sqrt(t1)**-0.5",
      "t1**-2",
      "(-2)**t1",
      "-2*t1",
      "t1*(-2)",
      "t1+(-2)",
      "-1/t1",
      "-2**t1",
      "2**t1",
      "t1<t2",
      "t1<t2+1",
      "(t1<t2)==(t3<t4)",
      "t1<t2&t3<t4",
      "t1<t2|t3==t4^t5!=t6",
      "!(t1<t2)",
      "select(coord(col)<=coord(row),t1,-inf)",
      "select(t1<0,nan,t2)",
      "coord(map 0)+coord(map 3)",
      "coord(axis 0)*2",
      "coord(row)+1",
      "f32(coord(row))+0.5",
      "min(t1,t2)",
      "max(t1,0)",
      "mod(coord(col),4)",
      "fmod(t1,3)",
      "f16(t1)",
      "f32(f16(t1))",
      "i64(t1)",
      "1+f64(t1)",
      "f16((2))*f16(t2)",
      "0.1",
      "0.1d",
      "1e-5",
      "1e20",
      "i64(3)",
      "max(i64(t1),i64(-inf))",
      "bool(1)",
      "-0",
      "inf",
      "-inf",
      "1e-45",
      "3.4028235e38",
      "16777216",
      "symbol(\"past + 1\")+coord(row)",
      "t1/symbol(D)",
      "\"odd name\"+1",
      "isnan(t1)",
      "isinf(t1)|isnan(t1)",
      "abs(t1)",
      "sign(t1)",
      "floor(t1)",
      "ceil(t1)",
      "round(t1)",
      "tanh(t1)",
      "erf(t1)",
      "sin(t1)+cos(t1)",
      "log(t1)",
      "0.5*t1*(1+erf(t1*0.70710677))",
  };
  fixture f = begin();
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    const bb_expr *expr = parse(&f, texts[i]);
    const char *text = print(&f, expr, BB_EXPR_TEXT);
    assert_string_equal(text, texts[i]);
    assert_ptr_equal(parse(&f, text), expr);
  }
  end(f);
}

static void test_spelled_otherwise(void **state) {
  (void)state;
  static const char *const pairs[][2] = {
      {" exp ( t3 *\n extent(D) ** -0.5 ) # scaled", "exp(t3*(extent(D)**-0.5))"},
      {"((t1))", "t1"},
      {"-(-t1)", "t1"},
      {"t1*1", "t1"},
      {"1+2*3", "7"},
      {"-(2)", "-2"},
      {"t1+-2", "t1+(-2)"},
      {"t1**2**3", "t1**8"},
      {"let @1=exp(t1) in @1*@1", "exp(t1)*exp(t1)"},
      {"$3+t1", "t3+t1"},
      {"100000.0", "100000"},
      {"1E2", "100"},
      {"0.10000000149011612", "0.1"},
  };
  fixture f = begin();
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
    assert_string_equal(print(&f, parse(&f, pairs[i][0]), BB_EXPR_TEXT), pairs[i][1]);
  end(f);
}

static void test_listing(void **state) {
  (void)state;
  static const char *const pairs[][2] = {
      {"exp(t3*(extent(D)**-0.5))", "exp(t3*(DD**-0.5))"},
      {"(t3/symbol(K)-t4**2)**(-0.5)", "(t3/KK-t4**2)**(-0.5)"},
      {"-t2/extent(K)", "-t2/KK"},
      {"f64(2)*f64(t1)", "2*f64(t1)"},
      {"t1+0.1d", "t1+0.1"},
  };
  fixture f = begin();
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
    assert_string_equal(print(&f, parse(&f, pairs[i][0]), BB_EXPR_LISTING), pairs[i][1]);
  end(f);
}

static void test_types_of_numbers(void **state) {
  (void)state;
  fixture f = begin();
  assert_int_equal(parse(&f, "h1*0.5")->dtype, BB_F16);
  assert_int_equal(parse(&f, "h1*0.5")->a[1]->dtype, BB_F16);
  assert_int_equal(parse(&f, "i1+1")->a[1]->dtype, BB_I64);
  assert_int_equal(parse(&f, "i1*0.5")->a[1]->dtype, BB_F32);
  assert_int_equal(parse(&f, "b1*2")->a[1]->dtype, BB_F32);
  assert_int_equal(parse(&f, "extent(D)**-0.5")->dtype, BB_F32);
  assert_int_equal(parse(&f, "t1'f64+1")->dtype, BB_F64);
  assert_true(parse(&f, "0.1")->number == (double)0.1f);
  assert_true(parse(&f, "0.1d")->number == 0.1);
  assert_true(parse(&f, "f64(0.1)")->number == 0.1);
  end(f);
}

static void test_errors(void **state) {
  (void)state;
  static const struct {
    const char *text;
    long place;
    const char *error;
  } cases[] = {
      {"", 0, "expected an expression"},
      {"t1+", 3, "expected an expression"},
      {"(t1", 3, "expected )"},
      {"exp(t1,t2)", 6, "expected )"},
      {"min(t1)", 6, "expected a comma: the function takes more operands"},
      {"foo(t1)", 0, "an unknown function"},
      {"nosuch+1", 0, "an unknown name"},
      {"extent(Q)", 7, "an unknown dim"},
      {"symbol(Q)", 7, "an unknown symbol"},
      {"coord(x)", 6, "expected row, col, map or axis"},
      {"1e", 0, "an exponent without digits"},
      {"1e999", 0, "a number too large"},
      {"1e39+t1", 7, "a number too large for its type"},
      {"i64(0.5)", 7, "a number that its integer type does not hold"},
      {"12x", 2, "a letter right after a number"},
      {"t1<t2<t3", 5, "comparisons do not chain"},
      {"@1", 0, "an unknown binding"},
      {"let @2=t1 in t1", 6, "bindings are numbered from 1"},
      {"let @1=t1 t1", 10, "expected ; or in"},
      {"\"abc", 0, "a quoted name without its closing quote"},
      {"coord(map 300)", 13, "a coordinate of more than 240 maps"},
  };
  fixture f = begin();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const char *text = cases[i].text;
    parse_job job = {.f = &f, .text = text, .end = text + strlen(text)};
    assert_int_equal(bb_protect(f.ctx, parse_body, &job), BB_OK);
    assert_null(job.expr);
    assert_string_equal(job.error, cases[i].error);
    assert_int_equal(job.text - text, cases[i].place);
  }
  end(f);
}

/* Where an expression ends, the parser stops without complaint. */
static void test_stops(void **state) {
  (void)state;
  fixture f = begin();
  static const char *const texts[] = {"t1+t2 : f32", "t1 -> t2", "t1 t2", "t1)", "t1, t2", "t1}"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    parse_job job = {.f = &f, .text = texts[i], .end = texts[i] + strlen(texts[i])};
    assert_int_equal(bb_protect(f.ctx, parse_body, &job), BB_OK);
    assert_null(job.error);
    assert_non_null(job.expr);
    assert_true(job.text < job.end);
  }
  end(f);
}

static void test_hostile(void **state) {
  (void)state;
  enum { LENGTH = 200000 };
  static char text[LENGTH + 1];
  static const char *const units[] = {"(", "-",    "exp(",    "t1**", "t1+",
                                      "!", "let ", "select(", "f16("};
  fixture f = begin();
  for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
    size_t unit = strlen(units[i]), n = 0;
    for (; n + unit < LENGTH; n += unit) memcpy(text + n, units[i], unit);
    parse_job job = {.f = &f, .text = text, .end = text + n};
    assert_int_equal(bb_protect(f.ctx, parse_body, &job), BB_OK);
    assert_null(job.expr);
    assert_non_null(job.error);
  }
  end(f);
}

/* Doubling fifty times: a graph of 50 nodes, a tree of 2^50. */
static void test_shared(void **state) {
  (void)state;
  fixture f = begin();
  const bb_expr *expr = bb_expr_arg(f.program, BB_F32, 1);
  for (int i = 0; i < 50; i++) expr = bb_expr_make(f.program, BB_X_ADD, expr, expr, NULL);
  const char *text = print(&f, expr, BB_EXPR_TEXT);
  assert_true(strlen(text) < 1000);
  assert_ptr_equal(parse(&f, text), expr);
  /* A tower as deep as expressions get. */
  expr = bb_expr_arg(f.program, BB_F32, 1);
  while (expr->depth < BB_EXPR_DEPTH) expr = bb_expr_make(f.program, BB_X_EXP, expr, NULL, NULL);
  assert_ptr_equal(parse(&f, print(&f, expr, BB_EXPR_TEXT)), expr);
  end(f);
}

/* --- random expressions --- */

static uint32_t draw(uint32_t *state, uint32_t below) {
  *state = *state * 1664525u + 1013904223u;
  return (uint32_t)((uint64_t)(*state >> 4) * below >> 28);
}

static const bb_expr *random_constant(fixture *f, uint32_t *seed) {
  static const double values[] = {0, -0.0,   1,     -1,      0.5, 0.1,      -2,
                                  3, 1e-300, 1e300, 1.0 / 3, NAN, INFINITY, 7e15};
  bb_dtype dtype = (bb_dtype)draw(seed, BB_DTYPE_COUNT);
  double value = values[draw(seed, sizeof values / sizeof *values)];
  if (!bb_dtype_is_float(dtype)) value = (double)(int)draw(seed, 9) - 4;
  if (dtype == BB_F32 && draw(seed, 2)) value = (double)(float)value;
  return bb_expr_const(f->program, dtype, value);
}

static const bb_expr *random_leaf(fixture *f, uint32_t *seed) {
  switch (draw(seed, 6)) {
  case 0: return random_constant(f, seed);
  case 1: return bb_expr_coord(f->program, draw(seed, 2));
  case 2: return bb_expr_extent(f->program, draw(seed, 2));
  case 3: return bb_expr_symbol(f->program, draw(seed, f->program->symbols));
  default: return bb_expr_arg(f->program, BB_F32, draw(seed, 20));
  }
}

static const bb_expr *random_expr(fixture *f, uint32_t *seed, uint32_t depth) {
  if (depth == 0 || draw(seed, 8) == 0) return random_leaf(f, seed);
  bb_expr_op op = (bb_expr_op)draw(seed, BB_X_COUNT);
  const bb_expr *a[3] = {NULL, NULL, NULL};
  for (uint32_t i = 0; i < bb_expr_op_arity(op); i++) a[i] = random_expr(f, seed, depth - 1);
  if (bb_expr_op_arity(op) == 0) return random_leaf(f, seed);
  if (op == BB_X_CAST) return bb_expr_cast(f->program, (bb_dtype)draw(seed, BB_DTYPE_COUNT), a[0]);
  return bb_expr_make(f->program, op, a[0], a[1], a[2]);
}

static void test_random(void **state) {
  (void)state;
  uint32_t seed = 1;
  fixture f = begin();
  for (int i = 0; i < 20000; i++) {
    const bb_expr *expr = random_expr(&f, &seed, 1 + (uint32_t)i % 7);
    const char *text = print(&f, expr, BB_EXPR_TEXT);
    const bb_expr *back = parse(&f, text);
    if (back != expr) fail_msg("%s reads back as %s", text, print(&f, back, BB_EXPR_TEXT));
  }
  end(f);
}

static void test_numbers(void **state) {
  (void)state;
  fixture f = begin();
  uint32_t seed = 7;
  const char *locales[] = {"C", "de_DE.UTF-8", "fr_FR.UTF-8"};
  for (int i = 0; i < 30000; i++) {
    setlocale(LC_NUMERIC, locales[i % 3]);
    uint64_t bits = (uint64_t)draw(&seed, 1u << 28) << 36 ^ (uint64_t)draw(&seed, 1u << 28) << 18 ^
                    draw(&seed, 1u << 28);
    double value, back;
    memcpy(&value, &bits, sizeof value);
    value = fabs(value);
    if (!isfinite(value)) continue;
    if (i % 2) value = (double)(float)value;
    if (!isfinite(value)) continue;
    bb_buffer out = {.arena = f.scratch};
    bool integer;
    bb_put_number(&out, value, i % 2 ? BB_F32 : BB_F64);
    const char *text = out.data;
    assert_null(bb_scan_number(&text, out.data + out.length, &back, &integer));
    assert_ptr_equal(text, out.data + out.length);
    if (i % 2) back = (double)(float)back;
    assert_true(back == value);
  }
  setlocale(LC_NUMERIC, "C");
  end(f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_same),    cmocka_unit_test(test_spelled_otherwise),
      cmocka_unit_test(test_listing), cmocka_unit_test(test_types_of_numbers),
      cmocka_unit_test(test_errors),  cmocka_unit_test(test_stops),
      cmocka_unit_test(test_hostile), cmocka_unit_test(test_shared),
      cmocka_unit_test(test_random),  cmocka_unit_test(test_numbers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
