/* onnx_test.c - reads ONNX models, evaluates the array programs they become by definition, in float64,
 * and compares with the answers beside them; with --blocks it lowers them and runs the unfused block
 * programs.
 *
 * usage: onnx_test [--blocks] MODEL.onnx... (MODEL.npz holds inputs and outputs by name)
 */
#include "../arrays/arrays.h"
#include "../../graph/onnx/onnx.h"
#include "../../runtime/interp/interp.h"
#include "../../runtime/bind.h"
#include "../../runtime/npz.h"
#include "../support/pipeline.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void bind_extent(array_case *c, const bb_extent *extent, int64_t value) {
  if (extent->count == 1) c->symbol[extent->symbol[0]] = value / extent->factor;
}

/* --- running --- */

static void bind_values(array_case *c, const bb_npz *npz, bb_arena *arena) {
  const bb_array *array = c->program->array;
  bb_context *ctx = c->program->ctx;
  for (uint32_t i = 0; i < array->values; i++) {
    const bb_array_value *v = &array->value[i];
    whole *w = &c->value[i];
    if (v->is_input) {
      const bb_npz_array *given = bb_npz_find(npz, v->name);
      if (!given) bb_fail(ctx, BB_ERROR_INPUT, "no array for input %s", v->name);
      *w = whole_new(arena, given->rank, given->shape);
      bb_npz_doubles(given, w->data);
      for (uint32_t a = 0; a < v->rank; a++) bind_extent(c, v->shape[a], given->shape[a]);
    } else if (v->data) {
      int64_t shape[RANK_MAX];
      for (uint32_t a = 0; a < v->rank; a++) shape[a] = bb_extent_value(v->shape[a]);
      *w = whole_new(arena, v->rank, shape);
      bb_interp_load(v->dtype, v->data, w->count, w->data);
    }
  }
}

static double tolerance(bb_dtype dtype) {
  return dtype == BB_F16 ? 4e-3 : dtype == BB_BF16 ? 3e-2 : bb_dtype_is_float(dtype) ? 1e-4 : 0;
}

static uint32_t compare(const array_case *c, const bb_npz *npz, const char *path, bb_arena *arena) {
  const bb_array *array = c->program->array;
  uint32_t failures = 0;
  for (uint32_t i = 0; i < array->outputs; i++) {
    const whole *got = &c->value[array->output[i]];
    const bb_npz_array *want = bb_npz_find(npz, array->output_name[i]);
    double worst = 0;
    if (!want) bb_fail(c->program->ctx, BB_ERROR_INPUT, "no answer for %s", array->output_name[i]);
    bool fits = got->rank == want->rank && got->count == want->count;
    for (uint32_t a = 0; fits && a < got->rank; a++) fits = got->shape[a] == want->shape[a];
    double *expect = BB_NEW(arena, double, want->count);
    bb_npz_doubles(want, expect);
    for (size_t k = 0; fits && k < got->count; k++) {
      double a = got->data[k], b = expect[k];
      bool same = a == b || (isnan(a) && isnan(b));
      double error = same ? 0 : fabs(a - b) / (1 + fabs(b));
      if (!(error <= worst)) worst = isnan(error) ? INFINITY : error;
    }
    if (fits && worst <= tolerance(array->value[array->output[i]].dtype)) continue;
    failures++;
    fprintf(stderr, "%s: output %s: %s, largest error %g\n", path, array->output_name[i],
            fits ? "wrong" : "another shape", worst);
  }
  return failures;
}

/* Does a misc node tell an extent in a run? */
static bool tells(const bb_program *program) {
  bool any = false;
  for (uint32_t s = 0; s < program->symbols; s++) any |= program->most[s] != NULL;
  return any;
}

static uint32_t run_blocks(bb_program *program, const bb_npz *npz, const char *path,
                           bb_arena *arena) {
  bb_binding binding;
  bb_comparison *comparison;
  uint32_t failures = 0;
  pipeline_lower(program);
  bool told = tells(program); /* extents are then known step by step */
  if (told) {
    bb_array_drop(program);
    bb_partition(program, 0, NULL);
  }
  bb_bind_inputs(program, npz, NULL, arena, &binding);
  int64_t *block = BB_NEW(arena, int64_t, program->dims + 1);
  for (uint32_t d = 0; d < program->dims; d++) block[d] = 1 + d % 5 * 8;
  bb_interp_options run = {
      .float64 = true, .symbol = binding.symbol, .told = binding.symbol, .block = block};
  if (told)
    bb_interp_program(program, &run, binding.tensor, arena, NULL);
  else
    bb_interp_graph(program, program->root, &run, binding.tensor, arena, NULL);
  uint32_t count = bb_compare_outputs(program, &binding, npz, -1, arena, &comparison);
  for (uint32_t i = 0; i < count; i++) {
    bb_buffer text = {.arena = arena};
    bb_comparison_print(&text, program, &binding, &comparison[i]);
    if (!comparison[i].pass) fprintf(stderr, "%s: as blocks: %s\n", path, text.data);
    failures += !comparison[i].pass;
  }
  return failures;
}

typedef struct job {
  const char *path;
  bool blocks;
  uint32_t failures;
} job;

static void run(bb_context *ctx, void *argument) {
  job *j = argument;
  bb_program *program = bb_program_create(ctx, j->path);
  bb_program_defer(program);
  bb_arena *arena = bb_scratch(ctx);
  bb_onnx_read(program, j->path);
  char *data = bb_arena_text(arena, j->path, strlen(j->path));
  memcpy(strrchr(data, '.'), ".npz", 5);
  const bb_npz *npz = bb_npz_read(arena, data);
  if (j->blocks) {
    j->failures = run_blocks(program, npz, j->path, arena);
    return;
  }
  uint32_t symbols = program->symbols > SYMBOL_MAX ? program->symbols : SYMBOL_MAX;
  array_case c = {.program = program, .symbol = BB_NEW(arena, int64_t, symbols)};
  for (uint32_t i = 0; i < symbols; i++) c.symbol[i] = -1;
  c.value = BB_NEW(arena, whole, program->array->values);
  bind_values(&c, npz, arena);
  bb_derive_symbols(program, program->symbols, c.symbol, arena);
  evaluate(&c, arena);
  j->failures = compare(&c, npz, j->path, arena);
}

int main(int argc, char **argv) {
  uint32_t failures = 0;
  bool blocks = argc > 1 && strcmp(argv[1], "--blocks") == 0;
  int first = 1 + blocks;
  for (int i = first; i < argc; i++) {
    bb_context *ctx;
    if (bb_context_create(NULL, &ctx) != BB_OK) return 2;
    job j = {.path = argv[i], .blocks = blocks};
    if (bb_protect(ctx, run, &j) != BB_OK) {
      fprintf(stderr, "%s: %s\n", argv[i], bb_context_message(ctx));
      j.failures = 1;
    }
    failures += j.failures != 0;
    bb_context_destroy(ctx);
  }
  printf("%d models, %u wrong\n", argc - first, failures);
  return failures != 0;
}
