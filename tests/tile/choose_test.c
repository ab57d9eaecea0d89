/* choose_test.c - where the last round of a kernel's tiles would leave processors idle, its results are made by two launches.
 *
 *   choose_test MODEL PROCESSORS WANT NAME=EXTENT...     WANT: places that a step's launches make, "960+328", or "all"; of several
 *                                                        steps, in their order, with commas
 */
#include "../../runtime/compile/plan_make.h"
#include "../../runtime/driver.h"
#include "../../runtime/gpu/choose.h"
#include "../../runtime/gpu/gpu.h"
#include "../support/given.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct job {
  char **argv;
  bb_arena *arena;
  bb_gpu_machine machine;
  const bb_plan *plan;
  int64_t *symbol;
  bb_buffer chosen;
} job;

static void take_extents(job *j) {
  for (uint32_t s = 0; s < j->plan->symbols; s++)
    j->symbol[s] = given(j->argv + 4, j->plan->symbol[s], -1);
  bb_plan_derive(j->machine.ctx, j->plan, j->symbol);
}

/* Every argument begins at a multiple of 16 bytes. */
static void choose(job *j, const bb_plan_step *s, const bb_gpu_ways *ways) {
  int64_t *extent = BB_NEW(j->arena, int64_t, s->extents + 1);
  bb_gpu_choice choice;
  for (uint32_t i = 0; i < s->extents; i++)
    if (!bb_plan_extent(s->extent[i], j->symbol, &extent[i]))
      bb_fail(j->machine.ctx, BB_ERROR_INTERNAL, "an extent is not known");
  bb_launch launch = {
      .name = s->name, .extent = extent, .argument = BB_NEW(j->arena, void *, s->arguments + 1)};
  bb_gpu_choose(&j->machine, ways, &launch, &choice);
  for (uint32_t i = 0; i < choice.count; i++) {
    const bb_gpu_part *part = &choice.part[i];
    if (part->slice)
      bb_put(&j->chosen, "%s%lld", i ? "+" : "", (long long)(part->to - part->from));
    else
      bb_put(&j->chosen, "all");
    printf("%s: %s\n", s->name, part->way->is_own ? part->way->own.name : "plain threads");
  }
}

static void body(bb_context *ctx, void *argument) {
  job *j = argument;
  bb_gpu_made made = {0};
  bb_program *p = bb_drive_read(ctx, j->argv[1], NULL, 0);
  bb_drive(p, BB_STAGE_FUSED, &(bb_drive_options){0});
  j->arena = j->chosen.arena = p->arena;
  bb_gpu_target target = bb_gpu_supposed(bb_gpu_suppose(j->arena, "sm_90a"), "sm_90a");
  j->machine = (bb_gpu_machine){
      .ctx = ctx, .processors = (int)strtol(j->argv[2], NULL, 10), .shared = target.shared};
  bb_draft *draft = bb_draft_make(p, &(bb_draft_options){.target = &target}, j->arena);
  bb_gpu_make(ctx, &target, draft->gpu, draft->plan, j->arena, &made);
  j->plan = draft->plan;
  j->symbol = BB_NEW(j->arena, int64_t, j->plan->symbols + 1);
  take_extents(j);
  for (uint32_t i = 0; i < j->plan->steps; i++) {
    const bb_plan_step *s = &j->plan->step[i];
    if (s->kernel == BB_NONE) continue;
    if (j->chosen.length) bb_put(&j->chosen, ",");
    choose(j, s, &made.kernels->kernel[s->kernel]);
  }
  bool good = strcmp(j->chosen.data, j->argv[3]) == 0;
  printf("%s%s%s\n", j->chosen.data, good ? "" : ", not ", good ? "" : j->argv[3]);
  bb_program_destroy(p);
  if (!good) bb_fail(ctx, BB_ERROR_INTERNAL, "other launches were chosen");
}

int main(int argc, char **argv) {
  job j = {.argv = argv};
  bb_context *ctx;
  if (argc < 4 || bb_context_create(NULL, &ctx) != BB_OK) return 2;
  bb_status status = bb_protect(ctx, body, &j);
  if (status != BB_OK) printf("%s\n", bb_context_message(ctx));
  bb_context_destroy(ctx);
  return status != BB_OK;
}
