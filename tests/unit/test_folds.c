/* test_folds.c - folds and running folds of users' tuples in array programs, unfused, fused, and cut
 * into chunks and trees; and kernels whose folds are plain, repaired or made safe, cut likewise.
 */
#include "interp/interp.h"
#include "split_k.h"
#include "text.h"
#include "verify.h"

#include "../support/pipeline.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { TREES = 1000, MOST_DIMS = 64, MOST_TENSORS = 64 };

static uint64_t state;

static uint32_t below(uint32_t n) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)((state >> 33) % n);
}
static double uniform(void) {
  return below(1u << 30) / (double)(1u << 29) - 1;
}

/* --- users' tuples --- */

static const struct {
  const char *name, *text;
} tuples[] = {
    {"max_sum", "{ m : f32 empty -inf = max(left.m,right.m) s : f32 empty 0 = left.s+right.s }"},
    {"soft", "{ m : f32 empty -inf = max(left.m,right.m) s : f32 empty 0 from 0 to inf = "
             "left.s*exp(left.m-max(left.m,right.m))+right.s*exp(right.m-max(left.m,right.m)) }"},
    {"matrix", "{ a : f32 empty 1 = left.a*right.a+left.b*right.c "
               "b : f32 empty 0 = left.a*right.b+left.b*right.d "
               "c : f32 empty 0 = left.c*right.a+left.d*right.c "
               "d : f32 empty 1 = left.c*right.b+left.d*right.d }"},
    {"moments", "{ n : f32 empty 0 from 0.5 to inf = left.n+right.n "
                "mean : f32 empty 0 = (left.n*left.mean+right.n*right.mean)/(left.n+right.n) "
                "m2 : f32 empty 0 = left.m2+right.m2+(left.mean-right.mean)**2*left.n*right.n/"
                "(left.n+right.n) }"},
    {"recurrence", "{ a : f32 empty 1 = left.a*right.a b : f32 empty 0 = left.b*right.a+right.b }"},
    {"top", "{ v : f32 empty -inf = max(left.v,right.v) "
            "w : f32 empty 0 = select(left.v<right.v,right.w,left.w) }"},
    {"own_sum", "{ s : f32 empty 0 = left.s+right.s }"},
    {"max", NULL},
    {"min", NULL},
    {"prod", NULL},
    {"sum", NULL},
};

typedef enum shape {
  LAST,
  FIRST,
  BOTH,
  SCAN,
  SCAN_EXCLUSIVE,
  SCAN_REVERSE,
  SCAN_FLAT,
  SHAPES
} shape;

typedef struct trial {
  uint32_t tuple, m, n;
  shape shape;
  bb_fold_kind kind;
  uint32_t chunks;
  bb_program *program;
  const bb_monoid *monoid;
  uint32_t components;
  double *in[BB_MONOID_COMPONENTS], *want[BB_MONOID_COMPONENTS];
  size_t results;
  bb_arena *arena;
  int64_t block[MOST_DIMS], symbol[8];
  bb_interp_tensor tensor[MOST_TENSORS];
} trial;

static uint32_t components_of(const char *text) {
  uint32_t count = 0;
  for (const char *c = text; c && *c; c++) count += *c == ':';
  return count ? count : 1;
}

static bb_program *parse(bb_context *ctx, const char *text) {
  bb_program *program = bb_text_parse(ctx, "folds.bb", text, strlen(text));
  bb_arena *scratch = bb_scratch(ctx);
  const char *broken = bb_verify_program(program, scratch);
  if (broken) fail_msg("%s\n%s", broken, text);
  bb_scratch_end(scratch);
  return program;
}

/* input A0 ... ; R0, R1 = reduce tuple(A0, A1, axes=[1]) ; output R0 ... */
static void write_program(const trial *t, char *text, size_t size) {
  static const char *const options[] = {
      "axis=1",          "axis=0", "axes=[0,1]", "axis=1", "axis=-1, exclusive",
      "axis=1, reverse", "axis=0"};
  size_t used = 0;
#define PUT(...) used += (size_t)snprintf(text + used, size - used, __VA_ARGS__)
  PUT("blockbuster 1 program folds ");
  if (tuples[t->tuple].text) PUT("monoid %s %s ", tuples[t->tuple].name, tuples[t->tuple].text);
  for (uint32_t k = 0; k < t->components; k++) PUT("input A%u : f32[%u,%u] ", k, t->m, t->n);
  for (uint32_t k = 0; t->shape == SCAN_FLAT && k < t->components; k++)
    PUT("F%u = reshape(A%u) : f32[%u] ", k, k, t->m * t->n);
  for (uint32_t k = 0; k < t->components; k++) PUT("%sR%u", k ? ", " : "", k);
  PUT(" = %s %s(", t->shape >= SCAN ? "scan" : "reduce", tuples[t->tuple].name);
  for (uint32_t k = 0; k < t->components; k++) PUT("%c%u, ", t->shape == SCAN_FLAT ? 'F' : 'A', k);
  PUT("%s) ", options[t->shape]);
  for (uint32_t k = 0; k < t->components; k++) PUT("output R%u ", k);
#undef PUT
  assert_true(used < size);
}

static void draw_values(trial *t) {
  for (uint32_t k = 0; k < t->components; k++) {
    const bb_monoid_component *c = t->monoid->component ? &t->monoid->component[k] : NULL;
    bool positive = c && c->low < c->high;
    t->in[k] = BB_NEW(t->arena, double, (size_t)t->m * t->n);
    for (size_t i = 0; i < (size_t)t->m * t->n; i++)
      t->in[k][i] = positive ? 0.5 + fabs(uniform()) : 3 * uniform();
  }
}

/* --- what the fold is by its definition, from left to right --- */

static void take(const trial *t, double *total, size_t at) {
  double term[BB_MONOID_COMPONENTS];
  for (uint32_t k = 0; k < t->components; k++) term[k] = t->in[k][at];
  bb_monoid_combine(t->monoid, total, term);
}

static void give(trial *t, const double *total, size_t at) {
  for (uint32_t k = 0; k < t->components; k++) t->want[k][at] = total[k];
}

static void fold_plainly(trial *t) {
  double total[BB_MONOID_COMPONENTS];
  uint32_t rows = t->shape == FIRST ? t->n : t->shape == BOTH || t->shape == SCAN_FLAT ? 1 : t->m;
  uint32_t terms = t->m * t->n / rows;
  t->results = t->shape >= SCAN ? (size_t)t->m * t->n : rows;
  for (uint32_t k = 0; k < t->components; k++) t->want[k] = BB_NEW(t->arena, double, t->results);
  for (uint32_t r = 0; r < rows; r++) {
    bb_monoid_empty(t->monoid, total);
    for (uint32_t i = 0; i < terms; i++) {
      uint32_t j = t->shape == SCAN_REVERSE ? terms - 1 - i : i;
      size_t at = t->shape == FIRST ? (size_t)j * t->n + r : (size_t)r * terms + j;
      if (t->shape == SCAN_EXCLUSIVE) give(t, total, at);
      take(t, total, at);
      if (t->shape >= SCAN && t->shape != SCAN_EXCLUSIVE) give(t, total, at);
    }
    if (t->shape < SCAN) give(t, total, r);
  }
}

/* --- running --- */

static void bind(trial *t) {
  const bb_program *p = t->program;
  assert_true(p->dims <= MOST_DIMS && p->tensors <= MOST_TENSORS);
  for (uint32_t i = 0; i < p->tensors; i++) {
    if (p->tensor[i].role != BB_TENSOR_INPUT) continue;
    uint32_t k = (uint32_t)(p->tensor[i].name[1] - '0');
    t->tensor[i] = (bb_interp_tensor){t->in[k], (size_t)t->m * t->n};
  }
}

static void compare(const trial *t, const char *what) {
  const bb_program *p = t->program;
  for (uint32_t i = 0; i < p->tensors; i++) {
    if (p->tensor[i].role != BB_TENSOR_OUTPUT) continue;
    uint32_t k = (uint32_t)(p->tensor[i].name[1] - '0');
    assert_int_equal(t->tensor[i].count, t->results);
    for (size_t e = 0; e < t->results; e++) {
      double got = t->tensor[i].data[e], want = t->want[k][e];
      if (got == want || fabs(got - want) <= 1e-12 * (1 + fabs(want))) continue;
      fail_msg(
          "%s, %s of %u x %u (shape %d), %u chunks (kind %d): component %u, element %zu: %.17g, "
          "not %.17g",
          what, tuples[t->tuple].name, t->m, t->n, t->shape, t->chunks, t->kind, k, e, got, want);
    }
  }
}

static void check_laws(const bb_program *program, const char *what) {
  bb_arena *scratch = bb_scratch(program->ctx);
  const char *broken = bb_verify_program(program, scratch);
  if (broken) {
    bb_buffer text = {.arena = scratch};
    bb_text_print(&text, program, NULL);
    fail_msg("%s: %s\n%s", what, broken, text.data);
  }
  bb_scratch_end(scratch);
}

/* The chosen kernels in chunks. */
static void cut(bb_program *program, bb_fold_kind kind, uint32_t chunks) {
  for (uint32_t i = 0; i < program->candidates; i++) {
    bb_candidate *c = &program->candidate[i];
    bb_snapshot *chosen = &c->snapshot[c->chosen];
    chosen->graph = bb_split_k(program, chosen->graph, kind, chunks);
    if (chosen->safe) chosen->safe = bb_split_k(program, chosen->safe, kind, chunks);
  }
  check_laws(program, "in chunks");
}

/* Printed and read again it is the same program. */
static void check_text(bb_context *ctx, const bb_program *program) {
  bb_arena *scratch = bb_scratch(ctx);
  bb_buffer first = {.arena = scratch}, second = {.arena = scratch};
  bb_text_print(&first, program, NULL);
  bb_program *again = parse(ctx, first.data);
  bb_text_print(&second, again, NULL);
  assert_string_equal(first.data, second.data);
  bb_program_destroy(again);
  bb_scratch_end(scratch);
}

/* A fold over the last axis is one loop: nothing is left to reduce. */
static bool is_one_pass(const bb_graph *graph) {
  for (uint32_t i = 0; i < graph->count; i++) {
    const bb_node *node = graph->node[i];
    if (node->kind == BB_NODE_REDUCE || (node->kind == BB_NODE_MAP && !is_one_pass(node->inner)))
      return false;
  }
  return true;
}

static void play(bb_context *ctx, void *argument) {
  trial *t = argument;
  char text[4096];
  t->components = components_of(tuples[t->tuple].text);
  write_program(t, text, sizeof text);
  t->program = parse(ctx, text);
  t->arena = t->program->arena;
  const char *name = tuples[t->tuple].name;
  t->monoid = bb_monoid_find(name, strlen(name));
  if (!t->monoid) t->monoid = bb_monoid_named(t->program, name, strlen(name));
  draw_values(t);
  fold_plainly(t);
  if (below(8) == 0) check_text(ctx, t->program);
  pipeline_lower(t->program);
  t->program->stage = BB_STAGE_BLOCK;
  bb_array_drop(t->program);
  check_laws(t->program, "as blocks");
  bb_interp_options options = {.float64 = true, .symbol = t->symbol, .block = t->block};
  bind(t);
  bb_interp_graph(t->program, t->program->root, &options, t->tensor, t->arena, NULL);
  compare(t, "unfused");
  pipeline_choose(t->program);
  check_laws(t->program, "fused");
  if (t->shape == LAST && t->n > 1) {
    assert_int_equal(t->program->candidates, 1);
    const bb_candidate *c = &t->program->candidate[0];
    assert_true(is_one_pass(c->snapshot[c->chosen].graph));
  }
  bind(t);
  bb_interp_program(t->program, &options, t->tensor, t->arena, NULL);
  compare(t, "fused");
  cut(t->program, t->kind, t->chunks);
  bind(t);
  bb_interp_program(t->program, &options, t->tensor, t->arena, NULL);
  compare(t, "in chunks");
  if (below(8) == 0) check_text(ctx, t->program);
}

static void ignore(void *user, bb_log_level level, const char *text) {
  (void)user, (void)level, (void)text;
}

static void protect(bb_body *body, void *argument, bb_program **program) {
  bb_context *ctx;
  bb_context_options options = {.version = BB_VERSION, .log = ignore};
  assert_int_equal(bb_context_create(&options, &ctx), BB_OK);
  if (bb_protect(ctx, body, argument) != BB_OK) fail_msg("%s", bb_context_message(ctx));
  bb_program_destroy(*program);
  bb_context_destroy(ctx);
}

static void draw_cut(bb_fold_kind *kind, uint32_t *chunks) {
  *kind = below(2) ? BB_FOLD_SPLIT_K : BB_FOLD_TREE;
  *chunks = 1 + below(below(2) ? 4 : 20);
}

static void test_random_trees(void **unused) {
  (void)unused;
  state = 1;
  for (uint32_t i = 0; i < TREES; i++) {
    trial t = {.tuple = below(sizeof tuples / sizeof *tuples)};
    t.shape = (shape)below(SHAPES);
    t.m = 1 + below(4), t.n = 1 + below(14);
    draw_cut(&t.kind, &t.chunks);
    for (uint32_t d = 0; d < MOST_DIMS; d++) t.block[d] = 1 + below(5);
    protect(play, &t, &t.program);
  }
}

/* --- programs whose folds are repaired, made safe, or plain --- */

#define ARRAY(body) "blockbuster 1 program p dim M, N, L input X : f32[M,N] " body

static const struct {
  const char *name, *text; /* text: NULL: an example of that name */
} programs[] = {
    {"attention.bb", NULL},
    {"rmsnorm_swiglu.bb", NULL},
    {"max_sum.bb", NULL},
    {"stable_attention.bb", NULL},
    {"variance",
     ARRAY(
         "t = reduce sum(X, axis=-1, keep) o = elementwise X*0+1 n = reduce sum(o, axis=-1, keep) "
         "d = elementwise (X-t/n)**2 output V = reduce sum(d, axis=-1)")},
    {"log-sum-exp", ARRAY("m = reduce max(X, axis=-1, keep) e = elementwise exp(X-m) "
                          "s = reduce sum(e, axis=-1, keep) l = elementwise m+log(s) output l")},
    {"top one", ARRAY("m = reduce max(X, axis=-1, keep) e = elementwise exp(X-m) "
                      "s = reduce sum(e, axis=-1, keep) p = elementwise 1/s "
                      "i = argreduce argmax(X, axis=-1, keep) output p output i")},
    {"expectation", ARRAY("input W : f32[L,N] m = reduce max(X, axis=-1, keep) "
                          "e = elementwise exp(X-m) s = reduce sum(e, axis=-1, keep) "
                          "p = elementwise e/s v = contract(p[m,n], W[l,n] -> [m,l]) "
                          "w = elementwise p*X k = reduce sum(w, axis=-1) output v output k")},
    {"scaled by its largest", ARRAY("input W : f32[L,N] a = elementwise abs(X) "
                                    "m = reduce max(a, axis=-1, keep) q = elementwise X/m "
                                    "v = contract(q[m,n], W[l,n] -> [m,l]) output v")},
    {"kurtosis", ARRAY("t = reduce sum(X, axis=-1, keep) o = elementwise X*0+1 "
                       "n = reduce sum(o, axis=-1, keep) d = elementwise (X-t/n)**2 "
                       "q = elementwise (X-t/n)**4 w = reduce sum(d, axis=-1) "
                       "k = reduce sum(q, axis=-1) output w output k")},
    {"entropy", ARRAY("m = reduce max(X, axis=-1, keep) e = elementwise exp(X-m) "
                      "s = reduce sum(e, axis=-1, keep) p = elementwise e/s "
                      "h = elementwise p*log(p) k = reduce sum(h, axis=-1) output k")},
    {"tempered", ARRAY("input T : f32[M,1] u = elementwise T*0.1+1 y = elementwise X/u "
                       "m = reduce max(y, axis=-1, keep) e = elementwise exp(y-m) "
                       "s = reduce sum(e, axis=-1, keep) w = elementwise e/s*X "
                       "k = reduce sum(w, axis=-1) output k")},
    {"of rows, then of columns", ARRAY("m = reduce max(X, axis=-1, keep) e = elementwise exp(X-m) "
                                       "s = reduce sum(e, axis=-1, keep) p = elementwise e/s "
                                       "a = reduce max(p, axis=0, keep) f = elementwise exp(p-a) "
                                       "b = reduce sum(f, axis=0, keep) l = elementwise a+log(b) "
                                       "output l")},
    /* No repair exists for these. */
    {"what is above the mean", ARRAY("t = reduce sum(X, axis=-1, keep) o = elementwise X*0+1 "
                                     "n = reduce sum(o, axis=-1, keep) "
                                     "r = elementwise max(X-t/n,0) k = reduce sum(r, axis=-1) "
                                     "output k")},
    {"rounded", ARRAY("a = elementwise abs(X) m = reduce max(a, axis=-1, keep) "
                      "r = elementwise round(X/m) k = reduce sum(r, axis=-1) output k")},
    {"shares", ARRAY("y = elementwise X+8 t = reduce sum(y, axis=-1, keep) "
                     "r = elementwise exp(y/t) k = reduce sum(r, axis=-1) output k")},
    {"a softmax of a softmax", ARRAY("m = reduce max(X, axis=-1, keep) e = elementwise exp(X-m) "
                                     "s = reduce sum(e, axis=-1, keep) p = elementwise e/s "
                                     "a = reduce max(p, axis=-1, keep) f = elementwise exp(p-a) "
                                     "b = reduce sum(f, axis=-1, keep) l = elementwise f/b "
                                     "output l")},
};

typedef struct example {
  uint32_t which;
  bb_program *program;
} example;

static void read_example(const char *name, char *text, size_t size) {
  char path[512];
  snprintf(path, sizeof path, "%s/%s", EXAMPLES, name);
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  size_t length = fread(text, 1, size - 1, file);
  fclose(file);
  text[length] = '\0';
}

static void draw_inputs(bb_program *p, const int64_t *symbol, bb_interp_tensor *tensor) {
  for (uint32_t i = 0; i < p->tensors; i++) {
    if (p->tensor[i].role != BB_TENSOR_INPUT) continue;
    size_t count = 1;
    for (uint32_t a = 0; a < p->tensor[i].rank; a++)
      count *= (size_t)bb_extent_bind(p, p->tensor[i].shape[a], symbol);
    tensor[i] = (bb_interp_tensor){BB_NEW(p->arena, double, count), count};
    for (size_t k = 0; k < count; k++) tensor[i].data[k] = 2 * uniform();
  }
}

static void compare_outputs(const bb_program *p, const char *what, const bb_interp_tensor *got,
                            const bb_interp_tensor *want) {
  for (uint32_t i = 0; i < p->tensors; i++)
    for (size_t k = 0; p->tensor[i].role == BB_TENSOR_OUTPUT && k < want[i].count; k++) {
      double a = got[i].data[k], b = want[i].data[k];
      if (isnan(b) || !(fabs(a - b) <= 1e-12 * (1 + fabs(b))))
        fail_msg("%s: element %zu of %s: %.17g, not %.17g", what, k, p->tensor[i].name, a, b);
    }
}

/* Unfused, one of each kernel's snapshots, and that cut. */
static void play_example(bb_context *ctx, void *argument) {
  example *e = argument;
  const char *name = programs[e->which].name;
  static char text[1 << 14];
  if (!programs[e->which].text) read_example(name, text, sizeof text);
  bb_program *p = e->program = parse(ctx, programs[e->which].text ? programs[e->which].text : text);
  pipeline_lower(p);
  p->stage = BB_STAGE_BLOCK;
  bb_array_drop(p);
  int64_t symbol[16], block[MOST_DIMS];
  for (uint32_t i = 0; i < p->symbols; i++) symbol[i] = 1 + below(24);
  for (uint32_t d = 0; d < MOST_DIMS; d++) block[d] = 1 + below(4);
  bb_interp_options options = {.float64 = true, .symbol = symbol, .block = block};
  bb_interp_tensor tensor[MOST_TENSORS] = {{0}}, want[MOST_TENSORS], rolling[MOST_TENSORS];
  draw_inputs(p, symbol, tensor);
  memcpy(want, tensor, sizeof want);
  bb_interp_graph(p, p->root, &options, want, p->arena, NULL);
  pipeline_choose(p);
  for (uint32_t i = 0; i < p->candidates; i++)
    if (below(2)) p->candidate[i].chosen = below(p->candidate[i].snapshots);
  memcpy(rolling, tensor, sizeof rolling);
  bb_interp_program(p, &options, rolling, p->arena, NULL);
  compare_outputs(p, name, rolling, want);
  bb_fold_kind kind;
  uint32_t chunks;
  draw_cut(&kind, &chunks);
  cut(p, kind, chunks);
  bb_interp_program(p, &options, tensor, p->arena, NULL);
  char what[128];
  snprintf(what, sizeof what, "%s in %u chunks (kind %d)", name, chunks, kind);
  compare_outputs(p, what, tensor, want);
}

static void test_programs(void **unused) {
  (void)unused;
  enum { COUNT = sizeof programs / sizeof *programs };
  state = 2;
  for (uint32_t i = 0; i < TREES; i++) {
    example e = {.which = i % COUNT};
    protect(play_example, &e, &e.program);
  }
}

/* Folds of what has no form of pairs once Rule 12 has joined them: moments of sums of exps.  Where every
 * exp is beyond what a double holds, they are what they are where none is: no moment has a size. */
typedef struct lifted {
  double lift;
  const double *x, *u;
  double result[4];
  bb_program *program;
} lifted;

static void play_lifted(bb_context *ctx, void *argument) {
  lifted *t = argument;
  char text[1024];
  snprintf(text, sizeof text,
           "blockbuster 1 program p input X : f32[4,6] input U : f32[9,6] "
           "w = elementwise exp(U+%g) e = contract(X[m,k], w[n,k] -> [m,n]) "
           "t = reduce sum(e, axis=-1, keep) d = elementwise (e-t/9)**2 "
           "v = reduce sum(d, axis=-1, keep) r = elementwise v/(t*t) output r",
           t->lift);
  bb_program *p = t->program = parse(ctx, text);
  pipeline(p);
  int64_t symbol[1] = {0}, block[MOST_DIMS];
  for (uint32_t d = 0; d < MOST_DIMS; d++) block[d] = 1 + below(4);
  bb_interp_options options = {.float64 = true, .symbol = symbol, .block = block};
  for (int cuts = 0; cuts < 2; cuts++) {
    bb_interp_tensor tensor[MOST_TENSORS] = {{0}};
    uint32_t out = 0;
    for (uint32_t i = 0; i < p->tensors; i++) {
      const bb_tensor *at = &p->tensor[i];
      if (at->role == BB_TENSOR_OUTPUT) out = i;
      if (at->role == BB_TENSOR_INPUT)
        tensor[i] = at->name[0] == 'X' ? (bb_interp_tensor){(double *)t->x, 24}
                                       : (bb_interp_tensor){(double *)t->u, 54};
    }
    bb_interp_program(p, &options, tensor, p->arena, NULL);
    for (uint32_t i = 0; i < 4; i++) {
      double got = tensor[out].data[i];
      if (cuts && !(fabs(got - t->result[i]) <= 1e-11)) fail_msg("in chunks %.17g", got);
      t->result[i] = got;
    }
    if (!cuts) cut(p, below(2) ? BB_FOLD_SPLIT_K : BB_FOLD_TREE, 3);
  }
}

static void test_beyond_range(void **unused) {
  (void)unused;
  double x[24], u[54];
  static const double lifts[] = {0, 900, -900};
  lifted t[3];
  state = 3;
  for (uint32_t i = 0; i < 24; i++) x[i] = 1 + uniform();
  for (uint32_t i = 0; i < 54; i++) u[i] = 2 * uniform();
  for (uint32_t i = 0; i < 3; i++) {
    t[i] = (lifted){.lift = lifts[i], .x = x, .u = u};
    protect(play_lifted, &t[i], &t[i].program);
    for (uint32_t k = 0; k < 4; k++)
      if (!(fabs(t[i].result[k] - t[0].result[k]) <= 1e-11 && t[0].result[k] > 1e-6))
        fail_msg("exponents + %g: %.17g, not %.17g", lifts[i], t[i].result[k], t[0].result[k]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_beyond_range),
      cmocka_unit_test(test_random_trees),
      cmocka_unit_test(test_programs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
