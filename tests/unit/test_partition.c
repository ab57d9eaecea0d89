/* test_partition.c - partitions of random programs held against the definition: candidates are convex,
 * hold no misc node and no view, run in order, and compute what the unfused program does.
 */
#include "array/array.h"
#include "interp/interp.h"
#include "../../select/select.h"
#include "text.h"
#include "verify.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { PROGRAMS = 400, MOST = 24, ROWS = 8, COLS = 6, ELEMENTS = ROWS * COLS };

typedef enum kind { UNARY, BINARY, NORMED, REVERSED, JOINED, KERNEL, KINDS } kind;

static uint32_t draw(uint32_t *seed, uint32_t below) {
  *seed = *seed * 1664525u + 1013904223u;
  return (uint32_t)((uint64_t)(*seed >> 8) * below >> 24);
}

/* --- random programs, as text --- */

static const char header[] =
    "blockbuster 1\nstage block\ndim M = 8\ndim N = 6\n"
    "input x : f32[8,6] dims [M,N]\n"
    "constant c : f32[8,6] dims [M,N] = [1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6,\n"
    "  1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6]\n";

/* Node i gives the value %i00; numbers between belong to its inside. */
static void put_unary(bb_buffer *out, uint32_t i, uint32_t a) {
  bb_put(out, "%%%u00 = map M (%%%u01 = %%%u00[0]) { %%%u02 = map N (%%%u03 = %%%u01[0]) {\n", i, i,
         a, i, i, i);
  bb_put(out, "  %%%u04 = elementwise %%%u03*0.5+1 yield %%%u04 } yield %%%u02 }\n", i, i, i, i);
}

static void put_binary(bb_buffer *out, uint32_t i, uint32_t a, uint32_t b) {
  bb_put(out, "%%%u00 = map M (%%%u01 = %%%u00[0], %%%u05 = %%%u00[0]) {\n", i, i, a, i, b);
  bb_put(out, "  %%%u02 = map N (%%%u03 = %%%u01[0], %%%u06 = %%%u05[0]) {\n", i, i, i, i, i);
  bb_put(out, "    %%%u04 = elementwise %%%u03-%%%u06*0.25 yield %%%u04 } yield %%%u02 }\n", i, i,
         i, i, i);
}

/* Rows of a by the sums of rows of b: the terms of the sums are partial results. */
static void put_normed(bb_buffer *out, uint32_t i, uint32_t a, uint32_t b) {
  bb_put(out, "%%%u10 = map M (%%%u11 = %%%u00[0]) { %%%u12 = map N (%%%u13 = %%%u11[0]) {\n", i, i,
         b, i, i, i);
  bb_put(out, "  %%%u14 = row_sum(%%%u13) yield %%%u14 } yield %%%u12 }\n", i, i, i, i);
  bb_put(out, "%%%u20 = map M (%%%u21 = %%%u10[0]) { %%%u22 = reduce sum(%%%u21[0])\n", i, i, i, i,
         i);
  bb_put(out, "  %%%u23 = elementwise 1/(abs(%%%u22)+1) yield %%%u23 }\n", i, i, i);
  bb_put(out, "%%%u00 = map M (%%%u01 = %%%u00[0], %%%u05 = %%%u20[0]) {\n", i, i, a, i, i);
  bb_put(out, "  %%%u02 = map N (%%%u03 = %%%u01[0], %%%u06 = %%%u05) {\n", i, i, i, i, i);
  bb_put(out, "    %%%u04 = row_scale(%%%u03, %%%u06) yield %%%u04 } yield %%%u02 }\n", i, i, i, i,
         i);
}

static void put_node(bb_buffer *out, uint32_t *seed, uint32_t i) {
  uint32_t a = draw(seed, i), b = draw(seed, i);
  switch ((kind)draw(seed, KINDS)) {
  case UNARY: put_unary(out, i, a); break;
  case BINARY: put_binary(out, i, a, b); break;
  case NORMED: put_normed(out, i, a, b); break;
  case REVERSED: bb_put(out, "%%%u00 = view %%%u00[7-M,N] : [M][N]f32(M,N)\n", i, a); break;
  case JOINED:
    bb_put(out, "%%%u00 = view join N (%%%u00[M,2+N] at 0 to 4, %%%u00[M,0+N] at 4 to 6)", i, a, b);
    bb_put(out, " : [M][N]f32(M,N)\n");
    break;
  default:
    bb_put(out, "%%%u00 = misc Reshape 13(%%%u00) of (f32[8,6] dims [M,N]) -> ", i, a);
    bb_put(out, "(f32[8,6] dims [M,N]) : [M][N]f32(M,N)\n");
  }
}

/* Every value goes somewhere: what no node reads is an output. */
static bb_program *random_program(bb_context *ctx, bb_arena *arena, uint32_t seed) {
  bb_buffer out = {.arena = arena};
  uint32_t count = 3 + draw(&seed, MOST - 3), outputs = 1 + draw(&seed, 3);
  bb_put(&out, "%s", header);
  for (uint32_t o = 0; o < outputs; o++) bb_put(&out, "output y%u : f32[8,6] dims [M,N]\n", o);
  bb_put(&out, "root {\n%%000 = input x[M,N] : [M][N]f32(M,N)\n");
  bb_put(&out, "%%100 = input c[M,N] : [M][N]f32(M,N)\n");
  for (uint32_t i = 2; i < count; i++) put_node(&out, &seed, i);
  for (uint32_t o = 0; o < outputs; o++)
    bb_put(&out, "output y%u[M,N] = %%%u00\n", o, o ? draw(&seed, count) : count - 1);
  bb_put(&out, "}\n");
  for (char *zero; (zero = strstr(out.data, "%000")); memcpy(zero, "%999", 4)) {
  }
  return bb_text_parse(ctx, "random", out.data, out.length);
}

/* --- the definition --- */

enum { NODES = 6 * MOST };

typedef struct facts {
  uint32_t count;
  uint32_t serial[NODES], member[NODES]; /* the candidate that holds the node; BB_NONE */
  bool computed[NODES], partial[NODES];
  bool path[NODES][NODES];    /* of one edge or more */
  bool crosses[NODES][NODES]; /* some path has a view or misc node strictly between */
} facts;

static uint32_t place_of(const facts *f, uint32_t serial) {
  for (uint32_t i = 0; i < f->count; i++)
    if (f->serial[i] == serial) return i;
  return BB_NONE;
}

/* Reachability by squaring: small programs only. */
static void find_paths(facts *f, const bb_graph *root, const uint32_t *place) {
  for (uint32_t n = 0; n < root->count; n++)
    for (uint32_t p = 0; p < root->node[n]->nin; p++)
      f->path[place[root->node[n]->in[p].src.node]][place[n]] = true;
  for (uint32_t k = 0; k < f->count; k++)
    for (uint32_t i = 0; i < f->count; i++)
      for (uint32_t j = 0; j < f->count; j++)
        if (f->path[i][k] && f->path[k][j]) {
          f->path[i][j] = true;
          f->crosses[i][j] |= !f->computed[k] || f->crosses[i][k] || f->crosses[k][j];
        }
}

static facts *look(bb_arena *arena, const bb_graph *root) {
  facts *f = BB_NEW(arena, facts, 1);
  uint32_t *place = BB_NEW(arena, uint32_t, root->count);
  assert_true(root->live <= NODES);
  for (uint32_t n = 0; n < root->count; n++) {
    const bb_node *node = root->node[n];
    if (node->kind == BB_NODE_REMOVED) continue;
    place[n] = f->count;
    f->computed[f->count] = node->kind == BB_NODE_MAP;
    f->partial[f->count] =
        node->nout && node->out[0].type->rank == 2 && node->out[0].type->item.col == BB_NO_DIM;
    f->serial[f->count] = node->serial;
    f->member[f->count++] = BB_NONE;
  }
  find_paths(f, root, place);
  return f;
}

static void note_members(facts *f, const bb_program *program) {
  for (uint32_t c = 0; c < program->candidates; c++) {
    const bb_graph *graph = program->candidate[c].graph;
    for (uint32_t n = 0; n < graph->count; n++) {
      const bb_node *node = graph->node[n];
      assert_true(node->kind != BB_NODE_VIEW && node->kind != BB_NODE_MISC);
      if (node->kind != BB_NODE_MAP) continue;
      uint32_t at = place_of(f, node->serial);
      if (at == BB_NONE) continue; /* a copy that partition put in */
      assert_int_equal(f->member[at], BB_NONE);
      f->member[at] = c;
    }
  }
}

static void check_convex(const facts *f) {
  for (uint32_t i = 0; i < f->count; i++)
    for (uint32_t j = 0; j < f->count; j++) {
      if (f->member[i] == BB_NONE || f->member[i] != f->member[j] || !f->path[i][j]) continue;
      assert_false(f->crosses[i][j]);
      for (uint32_t k = 0; k < f->count; k++)
        if (f->path[i][k] && f->path[k][j]) assert_int_equal(f->member[k], f->member[i]);
    }
}

/* Is there a reason why these two candidates are not one: data of load time, or a path between
 * them through something else? */
static bool kept_apart(const facts *f, const bb_program *program, uint32_t a, uint32_t b) {
  if (program->candidate[a].once != program->candidate[b].once) return true;
  for (uint32_t i = 0; i < f->count; i++)
    for (uint32_t j = 0; j < f->count; j++) {
      if (f->member[i] != a || f->member[j] != b) continue;
      if (f->crosses[i][j] || f->crosses[j][i]) return true;
      for (uint32_t k = 0; k < f->count; k++)
        if (f->member[k] != a && f->member[k] != b &&
            ((f->path[i][k] && f->path[k][j]) || (f->path[j][k] && f->path[k][i])))
          return true;
    }
  return false;
}

/* Candidates joined by an edge that could be one candidate all the same. */
static uint32_t count_missed(const facts *f, const bb_program *program) {
  uint32_t missed = 0;
  for (uint32_t a = 0; a < program->candidates; a++)
    for (uint32_t b = 0; b < program->candidates; b++) {
      bool joined = false;
      for (uint32_t i = 0; i < f->count; i++)
        for (uint32_t j = 0; j < f->count; j++)
          joined |= f->member[i] == a && f->member[j] == b && f->path[i][j];
      missed += a != b && joined && !kept_apart(f, program, a, b);
    }
  return missed;
}

/* --- runs --- */

static double *run(bb_program *program, bool steps, bb_arena *arena) {
  bb_interp_tensor *tensor = BB_NEW(arena, bb_interp_tensor, program->tensors);
  bb_interp_options options = {.float64 = true,
                               .symbol = BB_NEW(arena, int64_t, program->symbols),
                               .block = BB_NEW(arena, int64_t, program->dims)};
  ((int64_t *)options.block)[0] = 3;
  double *result = BB_NEW(arena, double, 3 * ELEMENTS);
  for (uint32_t t = 0; t < program->tensors; t++) {
    const bb_tensor *held = &program->tensor[t];
    if (held->role != BB_TENSOR_INPUT && held->role != BB_TENSOR_CONSTANT) continue;
    tensor[t] = (bb_interp_tensor){BB_NEW(arena, double, ELEMENTS), ELEMENTS};
    for (uint32_t e = 0; e < ELEMENTS; e++) tensor[t].data[e] = sin(1.0 + e);
    if (held->data) bb_interp_load(held->dtype, held->data, ELEMENTS, tensor[t].data);
  }
  if (steps)
    bb_interp_program(program, &options, tensor, arena, NULL);
  else
    bb_interp_graph(program, program->root, &options, tensor, arena, NULL);
  uint32_t outputs = 0;
  for (uint32_t t = 0; t < program->tensors; t++)
    if (program->tensor[t].role == BB_TENSOR_OUTPUT)
      memcpy(result + ELEMENTS * outputs++, tensor[t].data, ELEMENTS * sizeof *result);
  return result;
}

static void assert_same(const double *a, const double *b) {
  for (uint32_t e = 0; e < 3 * ELEMENTS; e++)
    assert_true(fabs(a[e] - b[e]) <= 1e-9 * (1 + fabs(b[e])));
}

typedef struct counts {
  uint32_t candidates, once, misc, missed, fused, cut;
} counts;

/* Two nodes of one candidate, told to stay apart, do; and nothing else changes. */
static void try_cut(bb_program *program, bb_arena *arena, uint32_t seed, const double *want,
                    counts *total) {
  facts *f = look(arena, program->root);
  note_members(f, program);
  uint32_t a = draw(&seed, f->count), b = draw(&seed, f->count);
  if (a == b || f->member[a] == BB_NONE || f->member[a] != f->member[b]) return;
  if (f->partial[a] || f->partial[b]) return;
  bb_partition(program, 1, &(bb_cut){f->serial[a], f->serial[b]});
  const char *broken = bb_verify_program(program, arena);
  if (broken) fail_msg("seed %u, cut: %s", seed, broken);
  for (uint32_t i = 0; i < f->count; i++) f->member[i] = BB_NONE;
  note_members(f, program);
  check_convex(f);
  assert_true(f->member[a] != f->member[b] || f->member[a] == BB_NONE);
  assert_same(run(program, true, arena), want);
  total->cut++;
}

static void try_program(bb_context *ctx, uint32_t seed, counts *total) {
  bb_arena *arena = bb_scratch(ctx);
  bb_program *program = random_program(ctx, arena, seed);
  bb_program_defer(program);
  facts *f = look(arena, program->root);
  double *want = run(program, false, arena);
  bb_partition(program, 0, NULL);
  const char *broken = bb_verify_program(program, arena);
  if (broken) fail_msg("seed %u: %s", seed, broken);
  note_members(f, program);
  check_convex(f);
  assert_same(run(program, true, arena), want);
  total->missed += count_missed(f, program);
  total->candidates += program->candidates;
  for (uint32_t c = 0; c < program->candidates; c++) total->once += program->candidate[c].once;
  for (uint32_t s = 0; s < program->steps; s++)
    total->misc += program->step[s].candidate == BB_NONE;
  for (uint32_t i = 0; i < 8; i++) try_cut(program, arena, 100 * seed + i, want, total);
  bb_partition(program, 0, NULL);
  bb_choose(program, NULL);
  broken = bb_verify_program(program, arena);
  if (broken) fail_msg("seed %u, fused: %s", seed, broken);
  assert_same(run(program, true, arena), want);
  total->fused += program->candidates;
  bb_undefer(ctx, program);
  bb_program_destroy(program);
  bb_scratch_end(arena);
}

static void all_programs(bb_context *ctx, void *argument) {
  counts *total = argument;
  for (uint32_t seed = 1; seed <= PROGRAMS; seed++) try_program(ctx, seed, total);
}

static void random_programs(void **state) {
  bb_context *ctx;
  counts total = {0};
  (void)state;
  assert_int_equal(bb_context_create(NULL, &ctx), BB_OK);
  if (bb_protect(ctx, all_programs, &total) != BB_OK) fail_msg("%s", bb_context_message(ctx));
  bb_context_destroy(ctx);
  print_message("%u candidates, %u once, %u misc, %u kernels, %u pairs that could be one\n",
                total.candidates, total.once, total.misc, total.fused, total.missed);
  assert_true(total.candidates > PROGRAMS && total.once > 50 && total.misc > 100 &&
              total.cut > 100);
  /* Ranks miss a pair only where a side branch is read on both sides of a view. */
  assert_true(total.missed * 200 <= total.candidates);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(random_programs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
