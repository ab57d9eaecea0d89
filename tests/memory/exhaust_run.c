/* exhaust_run.c - fails the allocations of a run one after another: reading arrays, binding them,
 * interpreting, comparing and writing.  Each must end with BB_ERROR_MEMORY and give back every byte,
 * but for what libzip allocates itself.  Of a tile program: reading it, printing, reading that, and
 * emitting source.
 *
 * usage: exhaust_run MODEL.bb|KERNEL.tile   (all symbols of a model become 5)
 */
#include "../support/pipeline.h"

#include "../../graph/text.h"
#include "../../lower/emit.h"
#include "../../runtime/bind.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct counter {
  uint64_t calls, fail_at; /* 0: never */
  size_t live;
} counter;

static void *resize(void *user, void *pointer, size_t old_size, size_t new_size) {
  counter *c = user;
  if (new_size == 0) {
    c->live -= old_size;
    free(pointer);
    return NULL;
  }
  if (++c->calls == c->fail_at) return NULL;
  void *grown = realloc(pointer, new_size);
  if (grown) c->live += new_size - old_size;
  return grown;
}

typedef struct paths {
  const char *model;
  char inputs[64], outputs[64];
} paths;

enum { EXTENT = 5 };

static bb_program *read_program(bb_context *ctx, const char *path) {
  bb_program *holder = bb_program_create(ctx, path);
  bb_program_defer(holder);
  uint64_t length;
  const void *text = bb_program_map_whole(holder, path, &length);
  bb_program *program = bb_text_parse(ctx, path, text, length);
  bb_program_defer(program);
  pipeline_lower(program);
  program->stage = BB_STAGE_BLOCK;
  return program;
}

/* One array for each input, in a file. */
static void write_inputs(bb_context *ctx, void *argument) {
  const paths *p = argument;
  bb_program *program = read_program(ctx, p->model);
  bb_arena *arena = bb_scratch(ctx);
  bb_npz npz = {.array = BB_NEW(arena, bb_npz_array, program->tensors)};
  int64_t *extent = BB_NEW(arena, int64_t, program->symbols);
  for (uint32_t i = 0; i < program->symbols; i++) extent[i] = EXTENT;
  for (uint32_t t = 0; t < program->tensors; t++) {
    const bb_tensor *tensor = &program->tensor[t];
    if (tensor->role != BB_TENSOR_INPUT) continue;
    int64_t *shape = BB_NEW(arena, int64_t, tensor->rank);
    size_t count = 1;
    for (uint32_t i = 0; i < tensor->rank; i++)
      count *= (size_t)(shape[i] = bb_extent_bind(program, tensor->shape[i], extent));
    double *data = BB_NEW(arena, double, count);
    for (size_t i = 0; i < count; i++) data[i] = (double)(i % 7) / 8;
    npz.array[npz.count++] = (bb_npz_array){tensor->name, BB_NPY_F64,           tensor->rank, shape,
                                            count,        count * sizeof *data, data};
  }
  bb_npz_write(ctx, p->inputs, &npz);
}

static void run(bb_context *ctx, void *argument) {
  const paths *p = argument;
  bb_program *program = read_program(ctx, p->model);
  bb_arena *arena = bb_scratch(ctx);
  bb_binding binding;
  bb_npz *inputs = bb_npz_read(arena, p->inputs);
  bb_bind_inputs(program, inputs, NULL, arena, &binding);
  bb_interp_options options = {.symbol = binding.symbol, .loop_seed = 3};
  bb_interp_counts counts = {.passes = BB_NEW(arena, double, program->tensors)};
  bb_interp_program(program, &options, binding.tensor, arena, &counts);
  bb_npz *outputs = bb_outputs_as_npz(program, &binding, arena);
  bb_npz_write(ctx, p->outputs, outputs);
  bb_comparison *comparison;
  uint32_t count =
      bb_compare_outputs(program, &binding, bb_npz_read(arena, p->outputs), 0, arena, &comparison);
  for (uint32_t i = 0; i < count; i++)
    if (!comparison[i].pass)
      bb_fail(ctx, BB_ERROR_MISMATCH, "%s is not what was written", comparison[i].name);
  if (!count || !comparison[0].count) bb_fail(ctx, BB_ERROR_MISMATCH, "nothing was computed");
}

static bb_tile_program *parse_tile(bb_context *ctx, const char *text, size_t length) {
  bb_tile_program *program = bb_tile_parse(ctx, "kernel", text, length);
  bb_program_defer(program->home);
  return program;
}

static void emit(bb_context *ctx, void *argument) {
  const paths *p = argument;
  bb_program *holder = bb_program_create(ctx, p->model);
  bb_program_defer(holder);
  uint64_t length;
  const char *text = bb_program_map_whole(holder, p->model, &length);
  bb_tile_program *first = parse_tile(ctx, text, length);
  bb_buffer again = {.arena = holder->arena}, source = again, launch = again;
  bb_tile_print(&again, first);
  if (!bb_tile_equal(first, parse_tile(ctx, again.data, again.length)))
    bb_fail(ctx, BB_ERROR_MISMATCH, "print, parse is not the identity");
  bb_emit_sm90(first, &source, &launch, NULL);
}

/* Runs a body with the n-th allocation failing; false after saying what went wrong. */
static bool attempt(bb_body *body, paths *p, counter *c) {
  bb_context_options options = {.version = BB_VERSION, .allocator = {resize, c}};
  bb_context *ctx;
  bb_status status = bb_context_create(&options, &ctx);
  char message[256] = "";
  if (status == BB_OK) {
    ctx->spare_most = 0;
    status = bb_protect(ctx, body, p);
    snprintf(message, sizeof message, "%s", bb_context_message(ctx));
    bb_context_destroy(ctx);
  }
  bool failed = c->fail_at && c->calls >= c->fail_at;
  if (c->live == 0 && status == (failed ? BB_ERROR_MEMORY : BB_OK)) return true;
  printf("allocation %llu: status %d (%s), %zu bytes kept\n", (unsigned long long)c->fail_at,
         (int)status, message, c->live);
  return false;
}

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  paths p = {.model = argv[1]};
  snprintf(p.inputs, sizeof p.inputs, "/tmp/bb_exhaust_in_%d.npz", (int)getpid());
  snprintf(p.outputs, sizeof p.outputs, "/tmp/bb_exhaust_out_%d.npz", (int)getpid());
  counter whole = {0};
  const char *end = strrchr(argv[1], '.');
  bool kernel = end && strcmp(end, ".tile") == 0;
  bb_body *work = kernel ? emit : run;
  bool good = (kernel || attempt(write_inputs, &p, &(counter){0})) && attempt(work, &p, &whole);
  uint64_t tried = 0;
  for (uint64_t n = 1; good && n <= whole.calls; n++, tried++)
    good = attempt(work, &p, &(counter){.fail_at = n});
  unlink(p.inputs);
  unlink(p.outputs);
  printf("%llu allocations, each failed in turn\n", (unsigned long long)tried);
  return good && tried ? 0 : 1;
}
