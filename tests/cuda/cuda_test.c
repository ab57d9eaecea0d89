/* cuda_test.c - models for a GPU where there is none: what is said of it, by way of a driver of the tests' own.
 *
 *   cuda_test FAKE-DRIVER MODEL OTHER NVRTC    NVRTC "": kernels are not compiled
 *
 * Where there is a HIP runtime its hipRTC compiles them, too.
 */
#include "../../runtime/cuda/launch.h"
#include "../../runtime/driver.h"
#include "../../runtime/gpu/device.h"
#include "../../runtime/gpu/make.h"
#include "../../runtime/model/model.h"
#include "on_device.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct job {
  const char *device;
  const char *model;
  int64_t extent;
} job;

static void release(void *model) {
  bb_model_release(model);
}

/* All of a run, on arrays of ones. */
static void run(bb_context *ctx, void *argument) {
  job *j = argument;
  bb_program *p = bb_drive_read(ctx, j->model, NULL, 0);
  bb_program_defer(p);
  bb_drive(p, BB_STAGE_FUSED, &(bb_drive_options){0});
  bb_binding binding = {BB_NEW(p->arena, int64_t, p->symbols + 1),
                        BB_NEW(p->arena, bb_interp_tensor, p->tensors + 1)};
  for (uint32_t s = 0; s < p->symbols; s++) ((int64_t *)binding.symbol)[s] = j->extent;
  for (uint32_t t = 0; t < p->tensors; t++) {
    if (p->tensor[t].role != BB_TENSOR_INPUT) continue;
    size_t count = 1;
    for (uint32_t a = 0; a < p->tensor[t].axes; a++)
      count *= (size_t)bb_extent_bind(p, p->dim[p->tensor[t].axis[a]].extent, binding.symbol);
    binding.tensor[t] = (bb_interp_tensor){BB_NEW(p->arena, double, count + 1), count};
    for (size_t i = 0; i < count; i++) binding.tensor[t].data[i] = 1;
  }
  bb_model_info info;
  uint32_t interpreted;
  run_on_device(p, j->device, NULL, &binding, &binding, &info, &interpreted);
  if (!info.kernels || interpreted)
    bb_fail(ctx, BB_ERROR_MISMATCH, "%u kernels, %u nodes interpreted", info.kernels, interpreted);
  bb_undefer(ctx, p);
  bb_program_destroy(p);
}

static int wrong(const char *device, const char *model, const char *fault, bb_status want,
                 const char *says) {
  bb_context *ctx;
  job j = {device, model, 136};
  setenv("FAKE_CUDA", fault, 1);
  if (bb_context_create(NULL, &ctx) != BB_OK) return 1;
  bb_status status = bb_protect(ctx, run, &j);
  const char *message = status == BB_OK ? "" : bb_context_message(ctx);
  int bad = status != want || !strstr(message, says);
  printf("%s: %s%s\n", *fault ? fault : "nothing wrong", status == BB_OK ? "runs" : message,
         bad ? "   WRONG" : "");
  bb_context_destroy(ctx);
  return bad;
}

static void evaluate(bb_context *ctx, void *argument) {
  static const char *name[] = {"e0", "e1"};
  static const int64_t extent[] = {7, 100};
  static const char *text[] = {"((e1 - 0 + 128 - 1) / 128) * max(e0, 3) - -2",
                               "min(8, (1 + (7 * ((e1 - 1) / max((8 * e0), 8)))))"};
  bb_tile_program tile = {.extents = 2, .variables = 2, .variable = name};
  bb_arena *arena = bb_scratch(ctx);
  int64_t *value = argument;
  for (int i = 0; i < 2; i++) {
    bb_formula formula = bb_gpu_launch_formula(arena, text[i], &tile);
    if (!bb_formula_value(&formula, extent, &value[i])) value[i] = 0;
  }
  bb_gpu_launch_formula(arena, "e0 + e2", &tile);
}

static int check_expressions(void) {
  bb_context *ctx;
  int64_t value[2] = {0, 0};
  if (bb_context_create(NULL, &ctx) != BB_OK) return 1;
  bb_status status = bb_protect(ctx, evaluate, value);
  bb_context_destroy(ctx);
  return value[0] != 9 || value[1] != 8 || status != BB_ERROR_INTERNAL;
}

static int check_hip(const char *driver, const char *model) {
  setenv("BLOCKBUSTER_HIP", driver, 1);
  int bad = wrong("hip", model, "old", BB_ERROR_UNSUPPORTED, "gfx803: kernels are made for gfx9");
  void *runtime = dlopen("libamdhip64.so.5", RTLD_NOW | RTLD_LOCAL);
  if (!runtime) return bad;
  for (const char *target = "gfx90a\0gfx1030\0"; *target; target += strlen(target) + 1) {
    setenv("FAKE_ARCH", target, 1);
    bad += wrong("hip", model, "", BB_OK, "");
  }
  return bad;
}

/* Unless block sizes are told, a kernel has several ways to cut its results. */
static void count_ways(bb_context *ctx, void *argument) {
  bb_compile_options options = {.version = BB_VERSION, .device = "cuda"};
  bb_program *p = bb_drive_read(ctx, argument, NULL, 0);
  bb_program_defer(p);
  bb_model *m = bb_compile(p, &options, NULL);
  bb_defer(ctx, release, m);
  uint32_t ways = m->module->kernels->kernel[0].count;
  if (ways < 2) bb_fail(ctx, BB_ERROR_MISMATCH, "%u ways", ways);
  bb_undefer(ctx, m);
  bb_model_release(m);
  bb_undefer(ctx, p);
  bb_program_destroy(p);
}

static int check_ways(char *model) {
  bb_context *ctx;
  if (bb_context_create(NULL, &ctx) != BB_OK) return 1;
  bb_status status = bb_protect(ctx, count_ways, model);
  printf("ways: %s\n", status == BB_OK ? "several" : bb_context_message(ctx));
  bb_context_destroy(ctx);
  return status != BB_OK;
}

int main(int argc, char **argv) {
  if (argc < 5) return 2;
  int bad = check_expressions() + check_hip(argv[1], argv[2]);
  setenv("BLOCKBUSTER_CUDA", "/nowhere/libcuda.so", 1);
  bad += wrong("cuda", argv[2], "", BB_ERROR_UNSUPPORTED, "no CUDA driver");
  setenv("BLOCKBUSTER_CUDA", argv[1], 1);
  bad += wrong("cuda", argv[2], "none", BB_ERROR_UNSUPPORTED,
               "no CUDA device: no CUDA-capable device");
  bad += wrong("cuda", argv[2], "old", BB_ERROR_UNSUPPORTED,
               "capability 6.0: kernels are made for 7.0");
  setenv("BLOCKBUSTER_NVRTC", "/nowhere/libnvrtc.so", 1);
  bad += wrong("cuda", argv[2], "", BB_ERROR_UNSUPPORTED, "no compiler for CUDA");
  if (!*argv[4]) return bad != 0;
  setenv("BLOCKBUSTER_NVRTC", argv[4], 1);
  bad += wrong("cuda", argv[2], "full", BB_ERROR_MEMORY, "out of memory");
  bad += wrong("cuda", argv[2], "", BB_OK, "");
  bad += check_ways(argv[3]);
  return bad != 0;
}
