/* time_cuda.c - how long a model takes to be compiled for a GPU, and to run.
 *
 *   time_cuda MODEL [--machine NAME] [--way N] [--plain | --warps] [NAME=EXTENT...]
 *
 * --way N: results are cut in way N alone (lower/schedule_gpu.h), where a kernel has it, instead of the cheapest.
 * --plain, --warps: kernels of plain threads, or those for sm_80, where the device has others.
 * Prints one line of JSON: milliseconds to read and fuse, to compile (from the disk cache where that has it) and, in a process
 * that has used the device, all of that again, and microseconds of a run of a session, inputs and outputs on the device: alone, until
 * it has ended, and as one of twenty that follow each other in one graph of the caller's, as PyTorch's are timed; medians.
 */
#include "../../runtime/compile/compile.h"
#include "../../runtime/driver.h"
#include "../../runtime/gpu/gpu.h"
#include "../../runtime/model/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 101, ROW = 20 };

typedef struct job {
  int argc;
  char **argv;
} job;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void release(void *model) {
  bb_model_release(model);
}

static void destroy_session(void *session) {
  bb_session_destroy(session);
}

static void check(bb_context *ctx, bb_status status) {
  if (status == BB_OK) return;
  const char *why = bb_context_message(ctx);
  bb_fail(ctx, status, "%s", bb_arena_text(bb_scratch(ctx), why, strlen(why)));
}

/* 0: nothing is told of it. */
static int64_t told_extent(const job *j, const char *name) {
  size_t length = strlen(name);
  int64_t told = 0;
  for (int i = 2; i < j->argc; i++)
    if (strncmp(j->argv[i], name, length) == 0 && j->argv[i][length] == '=')
      told = strtoll(j->argv[i] + length + 1, NULL, 10);
  return told;
}

static uint32_t way(const job *j) {
  for (int i = 2; i + 1 < j->argc; i++)
    if (strcmp(j->argv[i], "--way") == 0) return 1 + (uint32_t)strtoul(j->argv[i + 1], NULL, 10);
  return 0;
}

static bool has(const job *j, const char *option) {
  for (int i = 2; i < j->argc; i++)
    if (strcmp(j->argv[i], option) == 0) return true;
  return false;
}

/* --machine: kernels are chosen by price, for the extents that are told. */
static void fuse(const job *j, bb_program *p) {
  bb_setting *dim = BB_NEW(p->arena, bb_setting, p->symbols + 1);
  bb_advance_options options = {.version = BB_VERSION, .dim = dim};
  for (uint32_t s = 0; s < p->symbols; s++) {
    int64_t told = told_extent(j, p->symbol[s]);
    if (told > 0) dim[options.dims++] = (bb_setting){p->symbol[s], told};
  }
  for (int i = 2; i + 1 < j->argc; i++)
    if (strcmp(j->argv[i], "--machine") == 0) options.machine = j->argv[i + 1];
  check(p->ctx, bb_program_advance(p, BB_STAGE_FUSED, &options));
}

/* Reals of both signs; integers that every table has. */
static void draw(bb_context *ctx, const bb_model *m, bb_session *session, uint32_t extents,
                 const bb_setting *extent) {
  uint64_t state = 1;
  bb_tensor_info info;
  for (uint32_t i = 0; bb_model_get_tensor(m, BB_INPUT, i, &info); i++) {
    bb_arena *arena = bb_scratch(ctx);
    int64_t shape[32];
    size_t count = 1;
    check(ctx, bb_model_get_shape(ctx, m, BB_INPUT, i, extents, extent, shape));
    for (uint32_t a = 0; a < info.rank; a++) count *= (size_t)shape[a];
    double *drawn = BB_NEW(arena, double, count + 1);
    void *bytes = bb_arena_alloc(arena, count * bb_dtype_bytes(info.dtype) + 1);
    for (size_t k = 0; k < count; k++) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      double real = (double)(int64_t)(state >> 11) / (double)(1ll << 52) - 1;
      drawn[k] = bb_dtype_is_float(info.dtype) ? real : (double)(state >> 62);
    }
    bb_interp_store(info.dtype, drawn, count, bytes);
    bb_tensor_view view = {.dtype = info.dtype, .rank = info.rank, .shape = shape, .data = bytes};
    check(ctx, bb_session_write(session, i, &view));
    bb_scratch_end(arena);
  }
}

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Rounds that follow one that took so long: about as long as a peer is measured, that clocks and power are the same for both. */
static int rounds(double microseconds) {
  int least = 7, most = (int)(150e3 / microseconds);
  return most < least ? least : most < ROUNDS ? most : ROUNDS;
}

static double run(bb_context *ctx, bb_session *session) {
  double took[ROUNDS];
  int count = 1;
  for (int i = 0; i < count; i++) {
    double begin = now();
    check(ctx, bb_session_run(session, NULL));
    took[i] = now() - begin;
    if (i == 0) count = rounds(took[0]);
  }
  qsort(took, (size_t)count, sizeof *took, by_size);
  return took[count / 2];
}

/* A graph of twenty runs, captured in a stream as a caller does. */
static double run_row(bb_context *ctx, const bb_model *m, bb_session *session) {
  enum { THREAD_LOCAL = 1, GRAPHS = 5, NOT_BLOCKING = 1 };
  bb_gpu_driver d;
  void *stream, *graph = NULL, *row = NULL, *context;
  double took[ROUNDS];
  bb_gpu_driver_open(ctx, bb_gpu_find(m->class->name), &d);
  int device = bb_gpu_device(ctx, &d, m->number);
  bb_gpu_must(ctx, &d, d.retain(&context, device), "a context");
  bb_gpu_must(ctx, &d, d.push(context), "a context");
  bb_gpu_must(ctx, &d, d.stream_create(&stream, NOT_BLOCKING), "a stream");
  bb_gpu_must(ctx, &d, d.capture_begin(stream, THREAD_LOCAL), "a row");
  for (int k = 0; k < ROW; k++) check(ctx, bb_session_run(session, stream));
  bb_gpu_must(ctx, &d, d.capture_end(stream, &graph), "a row");
  bb_gpu_must(ctx, &d, d.graph_make(&row, graph, 0), "a row");
  d.graph_destroy(graph);
  int count = 1;
  for (int i = 0; i < count; i++) {
    double begin = now();
    for (int k = 0; k < GRAPHS; k++) d.graph_launch(row, stream);
    bb_gpu_must(ctx, &d, d.stream_wait(stream), "a row");
    took[i] = (now() - begin) / (GRAPHS * ROW);
    if (i == 0) count = rounds(took[0] * GRAPHS * ROW);
  }
  d.graph_end(row);
  d.stream_destroy(stream);
  d.pop(&context);
  d.release(device);
  bb_gpu_library_close(d.library);
  qsort(took, (size_t)count, sizeof *took, by_size);
  return took[count / 2];
}

/* Deferred. */
static bb_program *fused_program(bb_context *ctx, const job *j) {
  bb_program *p = bb_drive_read(ctx, j->argv[1], NULL, 0);
  bb_program_defer(p);
  fuse(j, p);
  return p;
}

static void body(bb_context *ctx, void *argument) {
  job *j = argument;
  double begin = now();
  bb_program *p = fused_program(ctx, j);
  double fused = now();
  bb_compile_options options = {.version = BB_VERSION, .device = "cuda"};
  bb_compile_way only = {.way = way(j), .plain = has(j, "--plain"), .warps = has(j, "--warps")};
  bb_model *m = bb_compile(p, &options, &only);
  bb_defer(ctx, release, m);
  double made = now();
  bb_program *next = fused_program(ctx, j);
  bb_model_release(bb_compile(next, &options, &only));
  double again = now();
  bb_undefer(ctx, next);
  bb_program_destroy(next);
  bb_setting *extent = BB_NEW(p->arena, bb_setting, p->symbols + 1);
  uint32_t told = 0;
  bb_extent_info e;
  for (uint32_t i = 0; bb_model_get_extent(m, i, &e); i++)
    if (!e.follows) {
      int64_t value = told_extent(j, e.name);
      extent[told++] = (bb_setting){e.name, value > 0 ? value : 1};
    }
  bb_session *session;
  check(ctx, bb_session_create(ctx, m, NULL, &session));
  bb_defer(ctx, destroy_session, session);
  draw(ctx, m, session, told, extent);
  for (uint32_t i = 0; i < told; i++)
    check(ctx, bb_session_set(session, extent[i].name, extent[i].value));
  for (int i = 0; i < 3; i++) check(ctx, bb_session_run(session, NULL));
  bb_model_info info;
  bb_model_get_info(m, &info);
  uint32_t beside = 0; /* steps of the processor's */
  for (uint32_t i = 0; i < info.steps; i++)
    beside += !m->plan->step[i].once && !bb_model_launches(m, i);
  printf("{\"model\": \"%s\", \"kernels\": %u, \"interpreted\": %u, \"fuse_ms\": %.1f, "
         "\"plan_ms\": %.1f, \"again_ms\": %.1f, ",
         j->argv[1], info.kernels, beside, (fused - begin) / 1e3, (made - fused) / 1e3,
         (again - made) / 1e3);
  printf("\"run_us\": %.1f, \"in_a_row_us\": %.1f}\n", run(ctx, session),
         beside ? run(ctx, session) : run_row(ctx, m, session));
  bb_undefer(ctx, session);
  bb_session_destroy(session);
  bb_undefer(ctx, m);
  bb_model_release(m);
  bb_undefer(ctx, p);
  bb_program_destroy(p);
}

int main(int argc, char **argv) {
  job j = {argc, argv};
  bb_context *ctx;
  if (argc < 2 || bb_context_create(NULL, &ctx) != BB_OK) return 2;
  bb_status status = bb_protect(ctx, body, &j);
  if (status != BB_OK) fprintf(stderr, "%s: %s\n", argv[1], bb_context_message(ctx));
  bb_context_destroy(ctx);
  return status != BB_OK;
}
