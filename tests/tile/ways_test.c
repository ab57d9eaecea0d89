/* ways_test.c - of the ways to make a kernel few are compiled, and at any extents one of them weighs as little as any, or up to a
 * fiftieth more.
 *
 *   ways_test MODEL MOST NAME=EXTENT,EXTENT,...     all extents of each together; MOST: images of own units, of all kernels
 */
#include "../../runtime/compile/plan_make.h"
#include "../../runtime/cuda/launch.h"
#include "../../runtime/driver.h"
#include "../../runtime/gpu/gpu.h"
#include "../../lower/schedule_gpu.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTHS = 32, AXES = 8, ALL = BB_GPU_WAYS, SOURCES = 256 };
static const double NEARLY = 1.02;

typedef struct axis {
  uint32_t symbol, count;
  int64_t value[LENGTHS];
} axis;

/* Kernels as they are made of all ways, and of each alone. */
typedef struct job {
  char **argv;
  bb_arena *arena;
  bb_gpu_machine machine;
  const bb_plan *plan[ALL + 1];
  const bb_gpu_kernels *made[ALL + 1];
  uint32_t axes;
  axis axis[AXES];
  int64_t *symbol;
  uint32_t points, same, wrong;
  uint32_t sources;
  const char *source[SOURCES]; /* different ones, of all ways */
  double worst;
} job;

static void take_axes(job *j, char **from) {
  for (; *from; from++) {
    const char *sign = strchr(*from, '=');
    axis *a = &j->axis[j->axes];
    while (sign && a->symbol < j->plan[ALL]->extents &&
           strncmp(j->plan[ALL]->symbol[a->symbol], *from, (size_t)(sign - *from)) != 0)
      a->symbol++;
    if (!sign || a->symbol == j->plan[ALL]->extents || j->axes == AXES - 1)
      bb_fail(j->machine.ctx, BB_ERROR_ARGUMENT, "there is no extent %s", *from);
    for (char *at = (char *)(uintptr_t)sign; *at && a->count < LENGTHS;)
      a->value[a->count++] = strtoll(at + 1, &at, 10);
    j->axes++;
  }
}

/* The cheapest of a step's ways that take arrays where these begin anywhere; INFINITY: there is none. */
static double cheapest(const job *j, uint32_t draft, uint32_t step) {
  const bb_plan_step *s = &j->plan[draft]->step[step];
  const bb_gpu_ways *ways = &j->made[draft]->kernel[s->kernel];
  double least = INFINITY;
  for (uint32_t w = 0; w < ways->count; w++) {
    const bb_gpu_way *way = &ways->way[w];
    int64_t *extent = BB_NEW(j->arena, int64_t, way->extents + 1);
    bb_gpu_pointer *view = BB_NEW(j->arena, bb_gpu_pointer, way->views + 1);
    for (uint32_t i = 0; i < way->extents; i++)
      if (way->extent[i] != BB_NONE &&
          !bb_plan_extent(s->extent[way->extent[i]], j->symbol, &extent[i]))
        bb_fail(j->machine.ctx, BB_ERROR_INTERNAL, "an extent is not known");
    if (way->is_own && !bb_cuda_refusal(&j->machine, way, extent, view))
      least = fmin(least, bb_cuda_weigh(&j->machine, way, extent));
  }
  return least;
}

static void compare(job *j) {
  const bb_plan *plan = j->plan[ALL];
  for (uint32_t i = 0; i < plan->steps; i++) {
    if (plan->step[i].kernel == BB_NONE) continue;
    double any = INFINITY, kept = cheapest(j, ALL, i);
    for (uint32_t w = 0; w < ALL; w++) any = fmin(any, cheapest(j, w, i));
    if (any == INFINITY) continue;
    bool good = kept <= any * NEARLY;
    j->points++;
    j->same += kept == any;
    j->worst = fmax(j->worst, kept / any);
    j->wrong += !good;
    if (good) continue;
    printf("%s at", plan->step[i].name);
    for (uint32_t a = 0; a < j->axes; a++)
      printf(" %s=%lld", plan->symbol[j->axis[a].symbol], (long long)j->symbol[j->axis[a].symbol]);
    printf(": %.2f us of those that are made, %.2f of all: WRONG\n", 1e6 * kept, 1e6 * any);
  }
}

static void compare_all(job *j, uint32_t axes) {
  if (axes == j->axes) {
    for (uint32_t s = 0; s < j->plan[ALL]->symbols; s++) {
      bool given = false;
      for (uint32_t a = 0; a < j->axes; a++) given |= j->axis[a].symbol == s;
      if (!given) j->symbol[s] = -1;
    }
    bb_plan_derive(j->machine.ctx, j->plan[ALL], j->symbol);
    compare(j);
    return;
  }
  const axis *a = &j->axis[axes];
  for (uint32_t i = 0; i < a->count; i++) {
    j->symbol[a->symbol] = a->value[i];
    compare_all(j, axes + 1);
  }
}

/* Sources that were not there before. */
static void note_sources(job *j, const bb_gpu_made *made) {
  for (uint32_t i = 0; i < made->owns; i++) {
    uint32_t k = 0;
    while (k < j->sources && strcmp(j->source[k], made->own[i]) != 0) k++;
    if (k == j->sources && k < SOURCES) j->source[j->sources++] = made->own[i];
  }
}

static void body(bb_context *ctx, void *argument) {
  job *j = argument;
  bb_gpu_made made = {0};
  bb_program *p = bb_drive_read(ctx, j->argv[1], NULL, 0);
  bb_drive(p, BB_STAGE_FUSED, &(bb_drive_options){0});
  j->arena = p->arena;
  bb_gpu_target target = bb_gpu_supposed(bb_gpu_suppose(j->arena, "sm_90a"), "sm_90a");
  j->machine =
      (bb_gpu_machine){.ctx = ctx, .processors = target.processors, .shared = target.shared};
  for (uint32_t w = 0; w <= ALL; w++) {
    bb_draft_options options = {.target = &target, .way = w < ALL ? w + 1 : 0};
    bb_draft *draft = bb_draft_make(p, &options, j->arena);
    bb_gpu_make(ctx, &target, draft->gpu, draft->plan, j->arena, &made);
    j->plan[w] = draft->plan;
    j->made[w] = made.kernels;
    note_sources(j, &made);
  }
  j->symbol = BB_NEW(j->arena, int64_t, j->plan[ALL]->symbols + 1);
  take_axes(j, j->argv + 3);
  compare_all(j, 0);
  bool few = made.owns <= strtoul(j->argv[2], NULL, 10);
  printf(
      "%u of %u images, at %u of %u points the cheapest way of all, at most %.1f %% dearer: %s\n",
      made.owns, j->sources, j->same, j->points, 100 * (j->worst - 1),
      few && !j->wrong ? "ok" : "WRONG");
  bb_program_destroy(p);
  if (!few || j->wrong) bb_fail(ctx, BB_ERROR_INTERNAL, "too many ways are made, or too few");
}

int main(int argc, char **argv) {
  job j = {.argv = argv, .worst = 1};
  bb_context *ctx;
  if (argc < 4 || bb_context_create(NULL, &ctx) != BB_OK) return 2;
  bb_status status = bb_protect(ctx, body, &j);
  if (status != BB_OK) printf("%s\n", bb_context_message(ctx));
  bb_context_destroy(ctx);
  return status != BB_OK;
}
