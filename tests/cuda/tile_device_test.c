/* tile_device_test.c - a tile program as a kernel for sm_90a, on the processor (host.hpp), against its meaning.
 *
 *   tile_device_test FILE.tile TOLERANCE [plain] NAME=EXTENT...
 *
 * plain: as one of plain threads, with what loops leave for loops behind them held, against its meaning with all roundings.
 *
 * The driver and the compiler are those of the environment: the tests' own, whose device sees the processor's memory.
 */
#include "../../lower/held.h"
#include "../../runtime/cuda/launch.h"
#include "../../runtime/gpu/make.h"
#include "../../runtime/interp/interp.h"
#include "../support/given.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 256 };

typedef struct job {
  int argc;
  char **argv;
  const char *text;
  bb_context *ctx;
  bb_arena *arena;
  bb_tile_program *tile;
  int64_t *extent;
  double **view;
} job;

static bool is_plain(const job *j) {
  return strcmp(j->argv[3], "plain") == 0;
}

static void set_extents(job *j) {
  j->extent = BB_NEW(j->arena, int64_t, j->tile->extents + 1);
  for (uint32_t e = 0; e < j->tile->extents; e++)
    j->extent[e] = given(j->argv + 3, j->tile->variable[e], 1);
}

/* Numbers that the view's type holds; NaN where the program writes. */
static void draw(job *j) {
  uint64_t state = 1;
  j->view = BB_NEW(j->arena, double *, j->tile->views + 1);
  for (uint32_t v = 0; v < j->tile->views; v++) {
    size_t count = bb_tile_view_count(j->tile, v, j->extent);
    j->view[v] = BB_NEW(j->arena, double, count + 1);
    for (size_t i = 0; i < count; i++) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      double drawn = (double)(int64_t)(state >> 11) / (double)(1ll << 52) - 1;
      j->view[v][i] = j->tile->view[v].written ? NAN : bb_round_to(j->tile->view[v].dtype, drawn);
    }
  }
}

static void *aligned(bb_arena *arena, size_t bytes) {
  uintptr_t memory = (uintptr_t)bb_arena_alloc(arena, bytes + 2 * LINE);
  return (void *)((memory + LINE - 1) / LINE * LINE);
}

static bb_gpu_way emit_plain(const job *j, bb_buffer *source) {
  bb_simt_launch plan;
  bb_tile_hold(j->tile);
  bb_put(source, "#include \"simt.cuh\"\n\n");
  bb_emit_simt(source, j->tile, "k", NULL, &plan);
  return bb_gpu_describe_plain(j->arena, j->tile, &plan, "k");
}

static bb_gpu_way emit(const job *j, bb_buffer *source) {
  bb_buffer launch = {.arena = j->arena};
  if (is_plain(j)) return emit_plain(j, source);
  bb_sm90_launch plan;
  bb_emit_sm90(j->tile, source, &launch, &plan);
  return bb_gpu_describe_own(j->arena, j->tile, &plan);
}

/* Twice: counters are then as they were. */
static void launch(const job *j, const bb_gpu_machine *machine, const bb_gpu_way *way,
                   const bb_gpu_pointer *view) {
  bb_gpu_machine own = *machine;
  bb_gpu_calls calls = {0};
  const bb_gpu_ways ways = {1, (bb_gpu_way *)way};
  bb_gpu_encoded *encoded = BB_NEW(j->arena, bb_gpu_encoded, way->own.maps + 1);
  bb_gpu_cut cut;
  void *stream;
  bb_gpu_cut_begin(j->ctx, &ways, &cut);
  cut.way = way;
  memcpy(cut.extent, j->extent, way->extents * sizeof *cut.extent);
  bb_gpu_cut_work_out(machine, &cut);
  size_t counters = cut.counters;
  own.scratch = (bb_gpu_pointer)(uintptr_t)aligned(j->arena, cut.scratch);
  char *counter = aligned(j->arena, counters);
  memset(counter, 0, counters);
  own.counters = (bb_gpu_pointer)(uintptr_t)counter;
  const char *refusal = way->is_own ? bb_cuda_refusal(&own, way, j->extent, view) : NULL;
  if (refusal) bb_fail(j->ctx, BB_ERROR_INPUT, "%s", refusal);
  bb_gpu_must(j->ctx, own.driver, own.driver->stream_create(&stream, 0), "a stream");
  for (int i = 0; i < 2; i++) bb_gpu_cut_call(&own, &cut, view, encoded, &calls);
  bb_gpu_issue(j->ctx, own.driver, &calls, stream, "a launch");
  bb_gpu_must(j->ctx, own.driver, own.driver->stream_wait(stream), "a run");
  own.driver->stream_destroy(stream);
  bb_gpu_calls_end(j->ctx, &calls);
  bb_gpu_cut_end(j->ctx, &cut);
  for (size_t i = 0; i < counters; i++)
    if (counter[i]) bb_fail(j->ctx, BB_ERROR_MISMATCH, "a counter is not zero behind a launch");
}

static void run(const job *j, void *const *data) {
  bb_gpu_driver driver;
  bb_gpu_compiler compiler = {.toolchain = &bb_gpu_nvrtc};
  bb_gpu_machine machine = {.ctx = j->ctx, .driver = &driver};
  bb_buffer source = {.arena = j->arena};
  bb_gpu_way way = emit(j, &source);
  bb_gpu_pointer *view = BB_NEW(j->arena, bb_gpu_pointer, j->tile->views + 1);
  void *module, *context;
  for (uint32_t v = 0; v < j->tile->views; v++) view[v] = (bb_gpu_pointer)(uintptr_t)data[v];
  bb_gpu_driver_open(j->ctx, &bb_gpu_cuda, &driver);
  machine.processors = bb_gpu_ask(&driver, BB_GPU_PROCESSORS, 0);
  const void *image = bb_gpu_compile(j->ctx, &compiler, "sm_90a", source.data, j->arena);
  bb_gpu_must(j->ctx, &driver, driver.retain(&context, 0), "a context");
  bb_gpu_must(j->ctx, &driver, driver.push(context), "a context");
  bb_gpu_must(j->ctx, &driver, driver.load(&module, image), "loading a kernel");
  if (way.is_own)
    bb_gpu_must(j->ctx, &driver, driver.function(&way.own.function, module, way.own.name),
                "a function");
  for (uint32_t n = 0; n < way.plain.nests; n++)
    bb_gpu_must(j->ctx, &driver,
                driver.function(&way.plain.nest[n].function, module, way.plain.nest[n].name),
                "a function");
  launch(j, &machine, &way, view);
  driver.unload(module);
  driver.pop(&context);
  driver.release(0);
  bb_gpu_library_close(compiler.library);
  bb_gpu_library_close(driver.library);
}

static void compare(const job *j, void *const *data) {
  for (uint32_t v = 0; v < j->tile->views; v++) {
    if (!j->tile->view[v].written || j->tile->view[v].scratch) continue;
    size_t count = bb_tile_view_count(j->tile, v, j->extent);
    double *got = BB_NEW(j->arena, double, count + 1), sum = 0, off = 0;
    bb_interp_load(j->tile->view[v].dtype, data[v], count, got);
    for (size_t i = 0; i < count; i++) {
      double want = j->view[v][i];
      sum += want * want;
      off += (got[i] - want) * (got[i] - want);
    }
    double error = sqrt(off / (sum > 0 ? sum : 1));
    printf("%s, %s: error %.2g\n", j->argv[1], j->tile->view[v].name, error);
    if (!(error <= strtod(j->argv[2], NULL)))
      bb_fail(j->ctx, BB_ERROR_MISMATCH, "error %.3g, not %s", error, j->argv[2]);
  }
}

static void body(bb_context *ctx, void *argument) {
  job *j = argument;
  j->ctx = ctx;
  j->arena = bb_scratch(ctx);
  j->tile = bb_tile_parse(ctx, j->argv[1], j->text, strlen(j->text));
  set_extents(j);
  draw(j);
  void **data = BB_NEW(j->arena, void *, j->tile->views + 1);
  for (uint32_t v = 0; v < j->tile->views; v++) {
    size_t count = bb_tile_view_count(j->tile, v, j->extent);
    data[v] = aligned(j->arena, count * bb_dtype_bytes(j->tile->view[v].dtype));
    bb_interp_store(j->tile->view[v].dtype, j->view[v], count, data[v]);
  }
  bb_tile_interpret(j->tile, &(bb_tile_binding){j->extent, j->view, !is_plain(j)});
  run(j, data);
  compare(j, data);
  bb_program_destroy(j->tile->home);
}

int main(int argc, char **argv) {
  static char text[1 << 20];
  FILE *f = argc > 3 ? fopen(argv[1], "rb") : NULL;
  bb_context *ctx;
  job j = {.argc = argc, .argv = argv, .text = text};
  if (!f) return 2;
  text[fread(text, 1, sizeof text - 1, f)] = '\0';
  fclose(f);
  if (bb_context_create(NULL, &ctx) != BB_OK) return 1;
  bb_status status = bb_protect(ctx, body, &j);
  if (status != BB_OK) fprintf(stderr, "%s: %s\n", argv[1], bb_context_message(ctx));
  bb_context_destroy(ctx);
  return status != BB_OK;
}
