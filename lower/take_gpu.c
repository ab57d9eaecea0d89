/* take_gpu.c - has a kernel a form for a GPU's own units of products?
 *
 * Selection asks, of what it is about to choose: what the units' schedules and emission refuse runs by plain
 * threads, ten times as long where products are most of it.
 */
#include "emit.h"
#include "schedule_gpu.h"

typedef struct trial {
  bb_program *program;
  const bb_graph *graph;
  uint32_t way;
} trial;

static void try_way(bb_context *ctx, void *argument) {
  const trial *t = argument;
  bb_arena *scratch = bb_scratch(ctx);
  bb_buffer source = {.arena = scratch}, launch = {.arena = scratch};
  bb_sm90_launch plan;
  const bb_kernel *kernel = bb_schedule_gpu_way(t->program, t->graph, "kernel", t->way, NULL);
  bb_emit_sm90(kernel->tile, &source, &launch, &plan);
  bb_scratch_end(scratch);
}

bool bb_gpu_takes(bb_program *program, const bb_graph *graph) {
  bb_context *ctx = program->ctx;
  trial t = {.program = program, .graph = graph};
  if (!bb_gpu_has_narrow_product(graph)) return true;
  for (; t.way < BB_GPU_WAYS; t.way++) {
    bb_status status = bb_protect(ctx, try_way, &t);
    if (status == BB_OK) return true;
    if (status != BB_ERROR_UNSUPPORTED) bb_fail_again(ctx, status);
    ctx->status = BB_OK;
  }
  return false;
}
