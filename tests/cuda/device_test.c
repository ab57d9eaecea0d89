/* device_test.c - models on a GPU, against the interpreter in float64; skipped (77) where there is no GPU.
 *
 *   device_test DEVICE TOLERANCE MODEL NAME=EXTENT...
 *   DEVICE: cuda, hip, plain (kernels of plain threads alone, on a GPU of NVIDIA's), or warps (those for sm_80, on a later one);
 *   with /WAY, in one way alone; with /-, as chosen by weight alone
 *
 * Chosen by weight, and, of CUDA's kernels, in every way that their results can be cut (lower/schedule_gpu.h).
 */
#include "../../lower/schedule_gpu.h"
#include "../../runtime/driver.h"
#include "../../runtime/gpu/driver.h"
#include "on_device.h"
#include "../support/given.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALL = -2, BY_WEIGHT = -1 };

typedef struct job {
  int argc;
  char **argv;
  char device[16]; /* argv[1] up to the way */
  int way;         /* ALL; BY_WEIGHT */
} job;

static bool is_plain(const job *j) {
  return strcmp(j->device, "plain") == 0;
}

static bool is_warps(const job *j) {
  return strcmp(j->device, "warps") == 0;
}

/* The device's name. */
static const char *device_of(const job *j) {
  return is_plain(j) || is_warps(j) ? "cuda" : j->device;
}

static int64_t *extents(const job *j, bb_program *p) {
  int64_t *symbol = BB_NEW(p->arena, int64_t, p->symbols + 1);
  for (uint32_t s = 0; s < p->symbols; s++) symbol[s] = given(j->argv + 4, p->symbol[s], 1);
  return symbol;
}

/* From -1 to 1; truths; 1, 2 and 3. */
static double of_type(bb_dtype dtype, double drawn) {
  if (bb_dtype_is_float(dtype)) return bb_round_to(dtype, drawn);
  return dtype == BB_BOOL ? drawn > 0 : 2 + rint(1.4 * drawn);
}

static void draw(bb_program *p, bb_binding *binding) {
  uint64_t state = 1;
  for (uint32_t t = 0; t < p->tensors; t++) {
    if (p->tensor[t].role != BB_TENSOR_INPUT) continue;
    size_t count = 1;
    for (uint32_t a = 0; a < p->tensor[t].axes; a++)
      count *= (size_t)bb_extent_bind(p, p->dim[p->tensor[t].axis[a]].extent, binding->symbol);
    binding->tensor[t] = (bb_interp_tensor){BB_NEW(p->arena, double, count + 1), count};
    for (size_t i = 0; i < count; i++) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      double drawn = (double)(int64_t)(state >> 11) / (double)(1ll << 52) - 1;
      binding->tensor[t].data[i] = of_type(p->tensor[t].dtype, drawn);
    }
  }
}

static double compare(const bb_program *p, const bb_binding *got, const bb_binding *want) {
  double worst = 0;
  for (uint32_t t = 0; t < p->tensors; t++) {
    if (p->tensor[t].role != BB_TENSOR_OUTPUT) continue;
    double sum = 0, off = 0;
    for (size_t i = 0; i < want->tensor[t].count; i++) {
      double b = want->tensor[t].data[i], d = got->tensor[t].data[i] - b;
      sum += b * b;
      off += d * d;
    }
    double error = sqrt(off / (sum > 0 ? sum : 1));
    if (!(error <= worst)) worst = error;
  }
  return worst;
}

static void run(const job *j, bb_program *p, const bb_binding *drawn, const bb_binding *want,
                uint32_t way) {
  bb_context *ctx = p->ctx;
  bb_compile_way only = {way, is_plain(j), is_warps(j)};
  bb_binding got = {drawn->symbol, BB_NEW(p->arena, bb_interp_tensor, p->tensors + 1)};
  memcpy(got.tensor, drawn->tensor, p->tensors * sizeof *got.tensor);
  bb_model_info info;
  uint32_t interpreted;
  run_on_device(p, device_of(j), &only, drawn, &got, &info, &interpreted);
  double error = compare(p, &got, want), limit = strtod(j->argv[2], NULL);
  printf("%s, way %d: %u kernels (%u different), %u nodes in them, %u interpreted, %u misc; error "
         "%.2g\n",
         j->argv[3], (int)way - 1, info.kernels, info.sources, info.fused, interpreted, info.misc,
         error);
  if (!(error <= limit)) bb_fail(ctx, BB_ERROR_MISMATCH, "error %.3g, not %.3g", error, limit);
}

typedef struct one_way {
  bb_program *p;
  const bb_candidate *c;
  uint32_t way;
  bool warps;
} one_way;

static void schedule(bb_context *ctx, void *argument) {
  enum { SHARED = 163 << 10 };
  const one_way *w = argument;
  const bb_graph *graph = bb_candidate_runs(w->c);
  (void)ctx;
  if (w->warps)
    bb_schedule_warps(w->p, graph, w->c->name, w->way, NULL, SHARED, NULL);
  else
    bb_schedule_gpu_way(w->p, graph, w->c->name, w->way, NULL);
}

/* Whether a kernel of the program has this way; those that have none are made in the first. */
static bool has_way(bb_program *p, uint32_t way, bool warps) {
  bool has = false;
  for (uint32_t i = 0; i < p->candidates && !has; i++) {
    one_way w = {p, &p->candidate[i], way, warps};
    bb_status status = bb_protect(p->ctx, schedule, &w);
    has = status == BB_OK;
    if (status != BB_OK && status != BB_ERROR_UNSUPPORTED)
      bb_fail(p->ctx, status, "way %u: %s", way,
              bb_arena_text(p->arena, p->ctx->message, strlen(p->ctx->message)));
    p->ctx->status = BB_OK;
  }
  return has;
}

static void body(bb_context *ctx, void *argument) {
  job *j = argument;
  bb_program *p = bb_drive_read(ctx, j->argv[3], NULL, 0);
  bb_program_defer(p);
  bb_drive(p, BB_STAGE_FUSED, &(bb_drive_options){0});
  bb_binding drawn = {extents(j, p), BB_NEW(p->arena, bb_interp_tensor, p->tensors + 1)};
  bb_binding want = {drawn.symbol, BB_NEW(p->arena, bb_interp_tensor, p->tensors + 1)};
  draw(p, &drawn);
  memcpy(want.tensor, drawn.tensor, p->tensors * sizeof *want.tensor);
  bb_interp_options interpret = {.float64 = true, .symbol = want.symbol};
  bb_drive_run(p, &interpret, &want, p->arena, NULL);
  uint32_t ways = strcmp(j->device, "cuda") == 0 ? BB_GPU_WAYS : is_warps(j) ? BB_WARP_WAYS : 0;
  for (uint32_t way = 0; way <= ways; way++)
    if (way < 2 || has_way(p, way - 1, is_warps(j)))
      if (j->way == ALL || way == (uint32_t)(j->way + 1)) run(j, p, &drawn, &want, way);
  bb_undefer(ctx, p);
  bb_program_destroy(p);
}

static void complain(void *user, bb_log_level level, const char *message) {
  (void)user;
  if (level <= BB_LOG_WARNING) fprintf(stderr, "%s\n", message);
}

int main(int argc, char **argv) {
  job j = {.argc = argc, .argv = argv, .way = ALL};
  bb_context *ctx;
  if (argc < 4) return 2;
  sscanf(argv[1], "%15[^/]/%d", j.device, &j.way);
  if (strstr(argv[1], "/-")) j.way = BY_WEIGHT;
  if (!bb_gpu_find(device_of(&j))) return 2;
  if (bb_context_create(&(bb_context_options){.version = BB_VERSION, .log = complain}, &ctx) !=
      BB_OK)
    return 1;
  bb_status status = bb_protect(ctx, body, &j);
  if (status != BB_OK) fprintf(stderr, "%s: %s\n", argv[3], bb_context_message(ctx));
  bb_context_destroy(ctx);
  return status == BB_ERROR_UNSUPPORTED ? 77 : status != BB_OK;
}
