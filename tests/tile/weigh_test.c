/* weigh_test.c - of the ways to cut a kernel's results, the one that is weighed the least is the one that was the fastest on
 * an H200 (tools/bench/RESULTS.md).
 *
 *   weigh_test MODEL NAME=EXTENT... WAY... [--warps | --resident N]     any of those ways; of products of warps;
 *                                                                       and so many blocks of it on a processor
 */
#include "../../lower/schedule_gpu.h"
#include "../../runtime/cuda/launch.h"
#include "../../runtime/gpu/make.h"
#include "../../runtime/driver.h"
#include "../support/given.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct job {
  int argc;
  char **argv;
  bb_program *p;
  const bb_candidate *candidate;
  uint32_t way, resident;
  double seconds;
} job;

static int64_t *extents_of(const job *j) {
  int64_t *symbol = BB_NEW(j->p->arena, int64_t, j->p->symbols + 1);
  for (uint32_t s = 0; s < j->p->symbols; s++) symbol[s] = given(j->argv + 2, j->p->symbol[s], 0);
  return symbol;
}

static bool is_warps(const job *j) {
  return strcmp(j->argv[j->argc - 1], "--warps") == 0;
}

/* How many blocks a processor is to have, or 0: any number of them. */
static uint32_t resident_wanted(const job *j) {
  bool said = strcmp(j->argv[j->argc - 2], "--resident") == 0;
  return said ? (uint32_t)strtoul(j->argv[j->argc - 1], NULL, 10) : 0;
}

static void weigh(bb_context *ctx, void *argument) {
  job *j = argument;
  bb_arena *arena = j->p->arena;
  bb_sm90_launch plan;
  bb_buffer source = {.arena = arena}, launch = {.arena = arena};
  enum { SHARED = 227 << 10, OF_PROCESSOR = 228 << 10 };
  bb_gpu_machine machine = {.ctx = ctx, .processors = 132, .shared = SHARED};
  const bb_graph *graph = bb_candidate_runs(j->candidate);
  const bb_kernel *kernel =
      is_warps(j) ? bb_schedule_warps(j->p, graph, "kernel", j->way, NULL, SHARED, NULL)
                  : bb_schedule_gpu_way(j->p, graph, "kernel", j->way, NULL);
  const bb_tile_program *tile = kernel->tile;
  if (is_warps(j))
    bb_emit_sm80(tile, SHARED, &source, &launch, &plan);
  else
    bb_emit_sm90(tile, &source, &launch, &plan);
  bb_gpu_way way = bb_gpu_describe_own(arena, tile, &plan);
  const int64_t *symbol = extents_of(j);
  int64_t *extent = BB_NEW(arena, int64_t, tile->extents + 1);
  for (uint32_t i = 0; i < tile->extents; i++)
    extent[i] = kernel->extent[i] ? bb_extent_bind(j->p, kernel->extent[i], symbol)
                                  : symbol[kernel->symbol[i]];
  j->seconds = bb_cuda_weigh(&machine, &way, extent);
  j->resident = bb_cuda_resident(&machine, &way, extent);
  uint32_t each = way.own.shared + BB_CUDA_OWN_SHARED,
           alone = bb_cuda_alone(&way.own, SHARED) + BB_CUDA_OWN_SHARED;
  if (way.own.persistent && way.own.resident > 1 &&
      (way.own.resident * each > OF_PROCESSOR || 2 * alone <= OF_PROCESSOR))
    bb_fail(ctx, BB_ERROR_INTERNAL, "so many blocks have no room, or two where one is to be alone");
}

static bool is_wanted(const job *j, uint32_t way) {
  int end = resident_wanted(j) ? j->argc - 2 : j->argc;
  for (int i = 2; i < end; i++)
    if (!strchr(j->argv[i], '=') && j->argv[i][0] != '-' && strtoul(j->argv[i], NULL, 10) == way)
      return true;
  return false;
}

static void body(bb_context *ctx, void *argument) {
  job *j = argument;
  double least = INFINITY;
  uint32_t best = 0, resident = 0;
  j->p = bb_drive_read(ctx, j->argv[1], NULL, 0);
  bb_drive(j->p, BB_STAGE_FUSED, &(bb_drive_options){0});
  j->candidate = &j->p->candidate[0];
  for (j->way = 0; j->way < (is_warps(j) ? (uint32_t)BB_WARP_WAYS : BB_GPU_WAYS); j->way++) {
    bb_status status = bb_protect(ctx, weigh, j);
    if (status != BB_OK && status != BB_ERROR_UNSUPPORTED)
      bb_fail(ctx, status, "way %u: %s", j->way,
              bb_arena_text(j->p->arena, ctx->message, strlen(ctx->message)));
    if (status == BB_OK)
      printf("way %u: %.1f us\n", j->way, j->seconds * 1e6);
    else
      printf("way %u: %s\n", j->way, ctx->message);
    ctx->status = BB_OK;
    if (status == BB_OK && j->seconds < least)
      best = j->way, least = j->seconds, resident = j->resident;
  }
  bool good = is_wanted(j, best) && (!resident_wanted(j) || resident == resident_wanted(j));
  printf("way %u, %u on a processor, %.1f us: %s\n", best, resident, least * 1e6,
         good ? "ok" : "WRONG");
  bb_program_destroy(j->p);
  if (!good) bb_fail(ctx, BB_ERROR_INTERNAL, "another way was faster");
}

int main(int argc, char **argv) {
  job j = {.argc = argc, .argv = argv};
  bb_context *ctx;
  if (argc < 3 || bb_context_create(NULL, &ctx) != BB_OK) return 2;
  bb_status status = bb_protect(ctx, body, &j);
  if (status != BB_OK) printf("%s\n", bb_context_message(ctx));
  bb_context_destroy(ctx);
  return status != BB_OK;
}
