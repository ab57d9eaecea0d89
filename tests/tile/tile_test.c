/* tile_test.c - tile programs: text to program and back, every law of the verifier, and what programs
 * mean, against sums written out here.
 *   tile_test FOLDER: its *.tile files
 */
#include "lower/emit.h"
#include "lower/tile.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const char *folder;

static char *read_file(const char *name) {
  char path[1000], *text = calloc(1, 100000);
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *f = fopen(path, "rb");
  if (!f) fail_msg("cannot open %s", path);
  assert_true(fread(text, 1, 99999, f) < 99999);
  fclose(f);
  return text;
}

/* --- running bodies under protection --- */

typedef struct job {
  const char *text;
  void (*check)(bb_tile_program *p, void *user);
  void *user;
} job;

static void body(bb_context *ctx, void *argument) {
  job *j = argument;
  bb_tile_program *p = bb_tile_parse(ctx, "text", j->text, strlen(j->text));
  if (j->check) j->check(p, j->user);
  bb_program_destroy(p->home);
}

static void with(const char *text, void (*check)(bb_tile_program *p, void *user), void *user) {
  bb_context *ctx;
  job j = {text, check, user};
  assert_int_equal(bb_context_create(NULL, &ctx), BB_OK);
  if (bb_protect(ctx, body, &j) != BB_OK) fail_msg("%s", bb_context_message(ctx));
  bb_context_destroy(ctx);
}

static void refused(const char *text, const char *why) {
  bb_context *ctx;
  job j = {.text = text};
  assert_int_equal(bb_context_create(NULL, &ctx), BB_OK);
  bb_status status = bb_protect(ctx, body, &j);
  if (status != BB_ERROR_INPUT || !strstr(bb_context_message(ctx), why))
    fail_msg("expected \"%s\" but got %d: %s", why, status, bb_context_message(ctx));
  bb_context_destroy(ctx);
}

/* --- text --- */

static void same_again(bb_tile_program *p, void *user) {
  (void)user;
  bb_context *ctx = p->home->ctx;
  bb_buffer text = {.arena = bb_scratch(ctx)}, again = {.arena = text.arena};
  bb_tile_print(&text, p);
  bb_tile_program *q = bb_tile_parse(ctx, "again", text.data, text.length);
  bb_tile_print(&again, q);
  assert_string_equal(text.data, again.data);
  assert_true(bb_tile_equal(p, q));
  q->tile[0].rows++;
  assert_false(bb_tile_equal(p, q));
  bb_program_destroy(q->home);
}

static const char *const files[] = {"full.tile",        "causal.tile",    "decode.tile",
                                    "decode_grid.tile", "row_norm.tile",  "products.tile",
                                    "marked.tile",      "short_rows.tile"};

static void text_and_back(void **state) {
  (void)state;
  for (uint32_t i = 0; i < sizeof files / sizeof *files; i++) {
    char *text = read_file(files[i]);
    with(text, same_again, NULL);
    free(text);
  }
}

/* f32 holds no odd number as large. */
static void holds_numbers(bb_tile_program *p, void *user) {
  const bb_tile_loop *loop = p->body.stmt[0]->loop;
  (void)user;
  assert_true(p->view[0].extent[0]->number == 16777217);
  assert_true(p->view[0].stride[0]->number == 9007199254740991);
  assert_true(loop->stretch[0].to->number == 33554436);
  assert_true(loop->body.stmt[0]->expr->op == BB_X_CONST && loop->body.stmt[0]->expr->number == 0);
}

static void large_numbers(void **state) {
  (void)state;
  const char *text = "tile t 1 extent N view A : f32[16777217,N] by [9007199254740991,1]\n"
                     "tile a : f32[8,8] serial i = 0 to 16777217 + 16777219 step 16777217 {\n"
                     "  when 16777217 < 16777216 { a = 0 } a = 1 }";
  with(text, holds_numbers, NULL);
  with(text, same_again, NULL);
}

static void called(bb_tile_program *p, void *user) {
  assert_string_equal(bb_tile_describe(p, "k", p->home->arena), user);
}

/* After what a program does, not after what it is called. */
static void names(void **state) {
  static char name[][40] = {"k_dot2_fold3_128x128",     "k_dot2_fold3_128x128",
                            "k_dot2_fold2_split_128x8", "k_dot2_fold2_split_128x8",
                            "k_dot2_fold3_split_64x16", "k_dot3_64x64",
                            "k_dot2_fold6_1x1",         "k_dot_64x64"};
  (void)state;
  for (uint32_t i = 0; i < sizeof files / sizeof *files; i++) {
    char *text = read_file(files[i]);
    with(text, called, name[i]);
    free(text);
  }
  with("tile of_no_use 1\n", called, "k");
}

/* A program around a body: views A[M,N], B[N], outputs C[M,N] and tiles of several shapes. */
static void refused_body(const char *statements, const char *why) {
  char text[4000];
  snprintf(
      text, sizeof text,
      "tile t 1 extent M, N view A : f32[M,N] view B : f16[N] output C : f32[M,N]\n"
      "monoid two (0, 0) = ($0 + $2, $1 + $3)\n"
      "tile a : f32[8,8] tile b : f32[8,8] tile c : f32[8,8] tile h : f16[_,8] tile g : bool[_,_]\n"
      "tile r : f32[8,_] tile q : f32[_,8] tile w : f32[8,4] tile f : f16[8,8] tile e : f16[8,8]\n"
      "tile p : i64[8,_] tile u : f32[8,_] partial tile z : f32[_,_] tile sh : f32[8,8] shared "
      "2\n%s\n",
      statements);
  refused(text, why);
}

static void laws(void **state) {
  (void)state;
  refused_body("C = load A[0:8, 0:8]", "C is no tile");
  refused_body("a = b", "read before");
  refused_body("a = load A[0:8, 0:4]", "as long as");
  refused_body("a = load A[0:8, 0]", "has one range");
  refused_body("a = load A[0:8, 0:8 row]", "no more than the tile has");
  refused_body("r = load A[0:3 row, 0:3 row]", "no more than the tile has");
  refused("tile t 1 output C : f32[8] padded", "only read");
  refused_body("a = load A[k:8, 0:8]", "unknown");
  refused_body("h = load A[0, 0:8]", "same type");
  refused_body("a = 0 store A[0:8, 0:8] = a", "only outputs");
  refused_body("a = 0 f = a", "type of its tile");
  refused_body("a = 0 r = a", "lack");
  refused_body("q = 0 r = q", "lack");
  refused_body("a = select(coord(row) < 3, 1, 0)", "where the tile lies");
  refused_body("a = select(coord(row) < symbol(L), 1, 0) at (0, _)", "unknown symbol");
  refused_body("a = 0 w = 0 c = dot(a, w)", "shapes fit");
  refused_body("a = 0 f = f16(0) c = dot(a, f)", "one type");
  refused_body("e = f16(0) f = dot(e, e)", "summed in f32");
  refused_body("a = 0 b += dot(a, a)", "added to before");
  refused_body("r = 0 r = transpose(r)", "other shape");
  refused_body("a = 0 r = fold sum(a) over row", "axis that stays");
  refused_body("r = 0 q = fold sum(r) over col", "axis that the tile has");
  refused_body("a = 0 u = fold max(a) over col", "parts of a sum");
  refused_body("u = 1", "set to zero");
  refused_body("u = 0 r = u*2", "copied before");
  refused_body("u = 0 u = u*u", "set to zero, scaled");
  refused_body("a = 0 z = any(a < 0)", "any asks");
  refused_body("z = 0 if z { a = 0 }", "one truth");
  refused_body("a = 0 g = any(a < 1) if g { b = 0 } c = b", "read before");
  refused_body("serial i = 0 to N step 8 { a = 0 } b = a", "read before");
  refused_body("when N < 8 { a = 0 } b = a", "read before");
  refused_body("when N + 8 { a = 0 }", "no comparison");
  refused_body("when k < 8 { a = 0 }", "unknown");
  refused_body("serial i = 0 to 8 step 8 { a = 0 } when i < 8 { a = 0 }", "compares indices");
  refused_body("serial i = 0 then 8 to N step 8 { in 0: a = 0 in 1: b = a }", "read before");
  refused_body("serial i = 0 then 8 to N step 8 { in 0: a = 0 b = a }", "read before");
  refused_body(
      "serial i = 0 then 8 to N step 8 { in 0: a = 0 in 0: b = a in 1: a = 1 in 1: b = 0 c = b "
      "w = 0 c = w }",
      "lack");
  refused_body("parallel i = 0 to N step 8 { a = 0 } b = a", "read before");
  refused_body("a = 0 parallel i = 0 to N step 8 { a = a + 1 }", "read before");
  refused_body("parallel i = 0 to N step 8 merge two (a, b) { a = 0 }", "every iteration");
  refused_body("parallel i = 0 to N step 8 merge two (sh, b) { sh = 0 b = 0 }", "registers");
  refused_body("serial i = 0 to N step 8 { in 1: a = 0 }", "no such stretch");
  refused_body("serial i = 0 to N step 8 { parallel j = 0 to M step 8 @ grid { a = 0 } }", "outer");
  refused_body("parallel i = 0 to M step 8 @ grid queue { a = 0 }", "persistent");
  refused_body("a = 0 @ stage 1", "have stages");
  refused_body("a = 0 serial i = 0 to N step 8 { a = 0 @ stage 1 b = a }", "earlier stage");
  refused_body("a = 0 serial i = 0 to N step 8 { a = 0 b = a @ stage 2 }", "lags");
  refused_body("serial i = 0 to i step 8 { a = 0 }", "unknown");
  refused_body("serial i = 0 to N step 8 { a = 0 } serial j = i to N step 8 { a = 0 }",
               "depends on what is outside");
  refused_body("serial N = 0 to 1 step 1 { a = 0 }", "new variable");
  refused_body("a = 0 b = 0 parallel i = 0 to 1 step 1 merge one (a) { a = 0 }", "no monoid");
  refused_body("serial i = 0 to N step 8 where A[i, i/8] { a = 0 }", "a mark is whole");
  refused_body("scratch S : bool[N] serial i = 0 to N step 8 where S[i] { a = 0 }",
               "counts the loop");
  refused_body("scratch S : bool[N] serial i = 0 to N step 8 where S[i/4] { a = 0 }",
               "counts the loop");
  refused_body("scratch S : bool[N,N] serial i = 0 to N step 8 where S[i, i/8] { a = 0 }",
               "counts the loop");
  refused_body("scratch S : bool[N] serial i = 0 to N step M where S[i/M] { a = 0 }",
               "constant step");
  refused_body("scratch S : bool[N] serial i = 0 to N step 0 where S[i/0] { a = 0 }",
               "constant step");
  refused_body("scratch S : bool[N,N] serial i = 0 to N step 8 where S[i/8] { a = 0 }",
               "expected ,");
  refused_body("scratch S : bool[N] parallel i = 0 to N step 8 where S[i/8] { a = 0 }",
               "expected {");
  refused_body("a = select(i < 3, 1, 0)", "unknown");
  refused_body("serial i = 0 to N step 8 { a = 0 } a = select(i < 3, 1, 0)", "enclosing loop");
  refused_body("a = 0 r = scan sum(a) over col", "shape and type");
  refused_body("z = 0 z = scan sum(z) over col", "axis that the tile has");
  refused_body("a = 0 r = fold argmax(a) over col", "its place");
  refused_body("a = 0 r, w = fold argmax(a) over col below N at (_, 0)", "i64 beside");
  refused_body("a = 0 r, p = fold argmax(a) over col below N", "counted from");
  refused_body("a = 0 r, p = scan argmax(a) over col", "expected fold");
  refused_body("b = select(p < 0, 1, 0)", "read before");
  refused_body("a = 0 r, p = fold argmax(a) over col below N at (_, 0) p = fold sum(p) over row",
               "axis that stays");
  refused("tile t 1 extent N tile N : f32[8,8]", "cannot be the name");
  refused("tile t 1 tile i : f32[8,8] serial i = 0 to 1 step 1 { i = 0 }", "new variable");
  refused("tile t 1 tile a : f32[8,8] tile a : f32[8,8]", "a second a");
  refused("tile t 1 tile load : f32[8,8]", "cannot be the name");
  refused("tile t 2", "version 1");
  refused("tile t 1 tile a : f32[0,8]", "empty tile");
  refused("tile t 1 tile a : f32[8,_] left", "left operand");
  refused("tile t 1 view A : f32[M]", "unknown");
  refused("tile t 1 view A : f32[nan]", "no integer");
  refused("tile t 1 view A : f32[1e30]", "no integer");
  refused("tile t 1 monoid m (0) = ($2)", "no such argument");
  refused("tile t 1 monoid m (0) = ($0 + $1*coord(col))", "the parts alone");
  refused("tile t 1 extent N monoid m (0) = ($0 + $1*symbol(N))", "the parts alone");
}

/* --- meaning --- */

static double random_value(uint32_t *seed) {
  *seed = *seed * 1664525u + 1013904223u;
  return (double)(*seed >> 8) / (1 << 23) - 1;
}

typedef struct attend {
  int64_t heads, rows, group; /* group: query heads that share keys */
  int64_t extent[4];
  bool causal;
} attend;

static double *filled(size_t count, uint32_t seed) {
  double *data = malloc(count * sizeof *data);
  for (size_t i = 0; i < count; i++) data[i] = random_value(&seed);
  return data;
}

/* One row, in doubles: weights exp(q k / sqrt 128) over the first n keys. */
static void expect_row(const double *q, const double *k, const double *v, int64_t n, double *o) {
  double total = 0;
  memset(o, 0, 128 * sizeof *o);
  for (int64_t j = 0; j < n; j++) {
    double x = 0;
    for (int d = 0; d < 128; d++) x += q[d] * k[j * 128 + d];
    x = exp(x / sqrt(128));
    total += x;
    for (int d = 0; d < 128; d++) o[d] += x * v[j * 128 + d];
  }
  for (int d = 0; d < 128; d++) o[d] /= total;
}

static void attend_as_expected(bb_tile_program *p, void *user) {
  const attend *a = user;
  int64_t queries = a->group ? a->group : a->rows;
  size_t count = (size_t)(a->heads * queries * 128), keys = (size_t)(a->heads * a->rows * 128);
  double *q = filled(count, 1), *k = filled(keys, 2), *v = filled(keys, 3), *o = filled(count, 4);
  double *view[4] = {q, k, v, o}, want[128];
  for (size_t i = 0; i < count; i++) q[i] *= 8; /* peaked */
  assert_int_equal(bb_tile_view_count(p, 0, a->extent), count);
  bb_tile_interpret(p, &(bb_tile_binding){.extent = a->extent, .view = view, .exact = true});
  for (int64_t h = 0; h < a->heads; h++)
    for (int64_t i = 0; i < queries; i += 7) {
      int64_t at = (h * queries + i) * 128;
      expect_row(q + at, k + h * a->rows * 128, v + h * a->rows * 128, a->causal ? i + 1 : a->rows,
                 want);
      for (int d = 0; d < 128; d++)
        if (!(fabs(o[at + d] - want[d]) <= 1e-6))
          fail_msg("head %d row %d: %g, not %g", (int)h, (int)i, o[at + d], want[d]);
    }
  free(q), free(k), free(v), free(o);
}

static void meaning(void **state) {
  (void)state;
  char *full = read_file("full.tile"), *causal = read_file("causal.tile"),
       *decode = read_file("decode.tile"), *grid = read_file("decode_grid.tile");
  with(full, attend_as_expected, &(attend){2, 150, 0, {2, 150}, false});
  with(full, attend_as_expected, &(attend){1, 128, 0, {1, 128}, false});
  with(causal, attend_as_expected, &(attend){3, 261, 0, {3, 261, 2}, true});
  with(causal, attend_as_expected, &(attend){1, 1, 0, {1, 1, 1}, true});
  with(decode, attend_as_expected, &(attend){2, 75, 8, {2, 8, 75, 1}, false});
  with(decode, attend_as_expected, &(attend){3, 300, 1, {3, 1, 300, 4}, false});
  with(decode, attend_as_expected, &(attend){1, 3, 5, {1, 5, 3, 4}, false});
  with(grid, attend_as_expected, &(attend){2, 90, 2, {2, 2, 90, 7}, false});
  free(full), free(causal), free(decode), free(grid);
}

enum { SIDE = 14, CHANNELS = 64, IMAGES = 2 };

/* Of an image; 0 around it. */
static double pixel(const double *x, int b, int h, int w, int c) {
  bool inside = h >= 0 && h < SIDE && w >= 0 && w < SIDE;
  return inside ? x[((b * SIDE + h) * SIDE + w) * CHANNELS + c] : 0;
}

static void convolved(bb_tile_program *p, void *user) {
  enum { ALL = IMAGES * SIDE * SIDE * CHANNELS };
  (void)user;
  double *y = filled(ALL, 8), *x = filled(ALL, 9), *w = filled(9 * CHANNELS * CHANNELS, 10),
         *view[3] = {y, x, w};
  bb_tile_interpret(p,
                    &(bb_tile_binding){.extent = (int64_t[]){IMAGES}, .view = view, .exact = true});
  for (int at = 0; at < ALL; at += 37) {
    int o = at % CHANNELS, j = at / CHANNELS % SIDE, i = at / CHANNELS / SIDE % SIDE,
        b = at / CHANNELS / SIDE / SIDE;
    double want = 0;
    for (int t = 0; t < 9; t++)
      for (int c = 0; c < CHANNELS; c++)
        want += pixel(x, b, i + t / 3 - 1, j + t % 3 - 1, c) * w[(t * CHANNELS + o) * CHANNELS + c];
    if (!(fabs(y[at] - want) <= 1e-6)) fail_msg("%d, %d, %d: %g, not %g", b, i, j, y[at], want);
  }
  free(y), free(x), free(w);
}

/* Rows of an image as one block, and zeros around it. */
static void short_rows(void **state) {
  (void)state;
  char *text = read_file("short_rows.tile");
  with(text, convolved, NULL);
  free(text);
}

static void normed_product(bb_tile_program *p, void *user) {
  (void)user;
  enum { K = 512, N = 128 };
  double *x = filled(16 * K, 5), *w = filled(K * N, 6), *y = filled(16 * N, 7),
         *view[3] = {x, w, y};
  for (int i = 0; i < 16 * K; i++) x[i] += 0.25;
  bb_tile_interpret(p,
                    &(bb_tile_binding){.extent = (int64_t[]){K, N}, .view = view, .exact = true});
  for (int i = 0; i < 16; i++) {
    double mean = 0, square = 0;
    for (int k = 0; k < K; k++) mean += x[i * K + k] / K;
    for (int k = 0; k < K; k++) square += pow(x[i * K + k] - mean, 2) / K;
    for (int j = 0; j < N; j++) {
      double want = 0;
      for (int k = 0; k < K; k++)
        want += (x[i * K + k] - mean) / sqrt(square + 1e-5) * w[k * N + j];
      if (!(fabs(y[i * N + j] - want) <= 1e-6))
        fail_msg("%d, %d: %g, not %g", i, j, y[i * N + j], want);
    }
  }
  free(x), free(w), free(y);
}

static void meaning_of_a_product(void **state) {
  (void)state;
  char *text = read_file("row_norm.tile");
  with(text, normed_product, NULL);
  free(text);
}

/* Rounding to the tiles' types, padding, strides, stretches and their order, conditions. */
static void small_programs_run(bb_tile_program *p, void *user) {
  (void)user;
  double a[6] = {1, 2, 3, 4, 5, 0.1}, c[12] = {0}, *view[2] = {a, c};
  bb_tile_interpret(p, &(bb_tile_binding){.extent = (int64_t[]){3}, .view = view});
  /* c[r][k] = column r of A as rows, one past the end is -1; 0.1 as f16 */
  const double want[12] = {1, 3, 5, -1, 2, 4, 0.0999755859375, -1, 21, 11, 1, 4};
  for (int i = 0; i < 12; i++) assert_true(c[i] == want[i]);
}

static void small_programs(void **state) {
  (void)state;
  with("tile t 1 extent N view A : f32[2,N] by [1,2] output C : f32[3,4]\n"
       "tile a : f32[2,4] tile h : f16[2,4] tile r : f32[_,4] tile z : f32[_,4]\n"
       "a = load A[0:2, 0:4] else -1\n h = f16(a)\n a = f32(h)\n store C[0:2, 0:4] = a\n"
       "z = 0\n serial i = 1 to 3 then 0 to 1 step 1 down {\n"
       "  in 0: z = select(coord(col) == 3 - 3, z*10 + 10*f32(2), z + 0) at (_, 0)\n"
       "}\n"
       "r = select(coord(col) < 1, 20, select(coord(col) < 2, 10, select(coord(col) < 3, 0, "
       "f32(symbol(N))))) at (_, 0)\n"
       "serial j = 0 to N step 1 { when j + 1 == N { r = r + 1 } when N < j & j < 3 { r = 0*r } }\n"
       "store C[2, 0:4] = r\n",
       small_programs_run, NULL);
}

/* Iterations that are marked, in stretches, downwards; what has no mark runs. */
static void marks_run(bb_tile_program *p, void *user) {
  (void)user;
  double m[5] = {1, 0, 1, 1, 0}, c[2] = {0}, *view[2] = {m, c};
  bb_tile_interpret(p, &(bb_tile_binding){.extent = (int64_t[]){6}, .view = view});
  assert_true(c[0] == 235 && c[1] == 5320);
}

static void marks(void **state) {
  (void)state;
  const char *text =
      "tile t 1 extent N view M : bool[N - 1] output C : f32[2] tile a : f32[_,_]\n"
      "a = 0 serial i = 4 to 2*N then 2 step 2 where M[i/2] { a = a*10 + f32(i/2) }\n"
      "store C[0] = a\n"
      "a = 0 serial j = 2*N - 2 then 0 to 8 step 2 down commutes where M[j/2] anywhere {\n"
      "  a = a*10 + f32(j/2)\n"
      "}\n"
      "store C[1] = a\n";
  with(text, same_again, NULL);
  with(text, marks_run, NULL);
}

/* Places, prefixes, loop variables in expressions, and scratch memory that begins as nothing. */
static void places_run(bb_tile_program *p, void *user) {
  (void)user;
  double a[10] = {3, 7, 7, 1, 9, 5, 5, 5, 5, 5}, c[10], d[5], e[10];
  double *view[5] = {a, c, d, e, NULL};
  const double sums[10] = {3, 10, 17, 18, 27, 5, 10, 15, 20, 25};
  bb_tile_interpret(p, &(bb_tile_binding){.extent = (int64_t[]){5}, .view = view});
  for (int i = 0; i < 10; i++) assert_true(c[i] == sums[i] && e[i] == sums[i] - a[i]);
  assert_true(d[0] == 9 && d[1] == 5);
  assert_true(d[2] == 4 && d[3] == 0);
  assert_true(isnan(d[4]));
}

static void places(void **state) {
  (void)state;
  const char *text =
      "tile t 1 extent N view A : f32[2,N] output C : f32[2,N] output D : f32[5] output E : "
      "f32[2,N] scratch S : "
      "f32[N]\n"
      "tile a : f32[2,8] tile b : f32[2,8] tile v : f32[2,_] tile p : i64[2,_] tile q : f32[2,_]\n"
      "tile s : f32[_,_] a = load A[0:2, 0:8] else 100\n"
      "b = scan sum(a) over col store C[0:2, 0:8] = b\n"
      "b = scan_exclusive sum(a) over col store E[0:2, 0:8] = b\n"
      "v, p = fold argmax(a) over col below N + 1 at (_, 1) store D[0:2 row] = v\n"
      "q = 0 serial i = 2 to 3 step 1 { q = select(i < N, f32(p) - 1 + f32(i - 2), 0) }\n"
      "store D[2:2 row] = q s = load S[N - 1] store D[4] = s\n";
  with(text, same_again, NULL);
  with(text, places_run, NULL);
}

/* What the emitter for sm_90a refuses, with the reason. */
static void emit_body(bb_context *ctx, void *argument) {
  job *j = argument;
  bb_tile_program *p = bb_tile_parse(ctx, "text", j->text, strlen(j->text));
  j->user = p->home;
  bb_buffer source = {.arena = bb_scratch(ctx)}, launch = {.arena = source.arena};
  bb_emit_sm90(p, &source, &launch, NULL);
}

static void not_emitted(const char *statements, const char *why) {
  char text[2000];
  snprintf(
      text, sizeof text,
      "tile t 1 extent N view A : f16[N,N] view F : f32[N,N] output C : f16[N,N]\n"
      "tile a : f16[64,64] shared 2 tile b : f16[64,64] shared 2 tile x : f32[64,64]\n"
      "tile r : f32[64,_] tile c : f32[_,64] tile f : f32[64,64] tile y : f16[64,64] shared 1\n"
      "%s\n",
      statements);
  bb_context *ctx;
  job j = {.text = text};
  assert_int_equal(bb_context_create(NULL, &ctx), BB_OK);
  bb_status status = bb_protect(ctx, emit_body, &j);
  if (status != BB_ERROR_UNSUPPORTED || !strstr(bb_context_message(ctx), why))
    fail_msg("expected \"%s\" but got %d: %s", why, status, bb_context_message(ctx));
  if (j.user) bb_program_destroy(j.user);
  bb_context_destroy(ctx);
}

static void refusals(void **state) {
  (void)state;
  not_emitted("tile n : f32[64,1024] n = 0", "more registers");
  not_emitted("tile s : f16[256,512] shared 1 x = 0", "shared memory");
  not_emitted("tile s : f16[64,40] shared 1 x = 0", "a shared tile is");
  not_emitted("roles groups 2 x = 0", "do not share evenly");
  not_emitted("view I : u8[N] tile n : u8[64,_] n = load I[0:64]", "a load to registers");
  not_emitted("x = 0 c = fold sum(x) over row", "across the rows");
  not_emitted("x = 0 serial i = 0 to N step 64 { a = load A[i:64, 0:64] x += dot(a, a) @ stage 1 }",
              "first iteration is not apart");
  not_emitted(
      "x = 0 serial i = 0 then 64 to N step 64 { a = load A[i:64, 0:64] x += dot(a, a) @ stage 1 }",
      "nothing reads in its stage");
  not_emitted("serial i = 0 to N step 64 { a = load A[i:64, 0:64] }", "nothing reads in its stage");
  not_emitted("serial i = 0 to N step 64 { a = load A[0:64 col, i:64 row] x = dot(a, a) }",
              "not the last axis");
  not_emitted("serial i = 0 to N step 64 { a = load A[i:64, 0:64] else 1 x = dot(a, a) }",
              "padded with zeros");
  not_emitted("parallel i = 0 to N step 64 @ grid persistent rotate { x = 0 }", "without stages");
  not_emitted("parallel i = 0 to N step 64 @ warps { x = 0 }", "warps are counted");
  not_emitted("parallel i = 0 to -4 step 1 @ warps { x = 0 }", "warps are counted");
  not_emitted("x = 0 x = floor(x)", "without a device form");
  not_emitted("monoid m (0) = ($0 + $1) parallel i = 0 to N step 64 merge m (x) @ grid { x = 0 }",
              "more than map and store");
  not_emitted("monoid m (0) = ($0 + $1) tile z : f16[64,64] parallel h = 0 to N step 64 @ grid { "
              "parallel i = h to N step 64 merge m (x) @ grid { x = 0 } z = f16(x) store C[h:64, "
              "0:64] = z }",
              "as many parts as");
  not_emitted(
      "monoid m (0) = ($0 + $1) tile z : f16[64,64] parallel i = 0 to N step 64 merge m (x) @ grid "
      "persistent { x = 0 } z = f16(x) store C[0:64, 0:64] = z",
      "parts of a persistent grid");
  not_emitted("parallel w = 0 to 4 step 1 @ warps { a = load A[0:64, 0:64] } ",
              "outside of the core");
  not_emitted("when N < 8 { a = load A[0:64, 0:64] }", "under a condition");
  not_emitted("view S : f16[N,64] by [64,N] serial i = 0 to N step 64 { a = load S[i:64, 0:64] x = "
              "dot(a, a) }",
              "side by side");
  not_emitted("x = 0 x = scan sum(x) over col", "a scan");
  not_emitted("scratch S : f32[N] r = load S[0:64] r = r + r", "scratch");
  not_emitted("scratch S : f32[N] r = 0 store S[0:64] = r", "scratch");
  not_emitted("tile p : i64[64,_] x = 0 r, p = fold argmax(x) over col below N at (_, 0)",
              "without a device form");
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(text_and_back),  cmocka_unit_test(large_numbers),
      cmocka_unit_test(laws),           cmocka_unit_test(meaning),
      cmocka_unit_test(short_rows),     cmocka_unit_test(meaning_of_a_product),
      cmocka_unit_test(small_programs), cmocka_unit_test(places),
      cmocka_unit_test(marks),          cmocka_unit_test(refusals),
      cmocka_unit_test(names)};
  folder = argc > 1 ? argv[1] : ".";
  return cmocka_run_group_tests(tests, NULL, NULL);
}
