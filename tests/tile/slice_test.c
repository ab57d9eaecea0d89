/* slice_test.c - parts of a kernel's results made one by one are all of them, in every way that they can be cut.
 *
 *   slice_test MODEL SLICES NAME=EXTENT...      SLICES: extents that launches may have less of, of all ways of all kernels together
 *
 * Each tile program is interpreted once for all results, and for each of its slices twice: up to a place, and from there on, with
 * arrays that begin so much further on.
 */
#include "../../lower/schedule_gpu.h"
#include "../../lower/slice.h"
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
  uint32_t way, slices, wrong;
} job;

/* A kernel at some extents, and its arrays. */
typedef struct run {
  const bb_tile_program *tile;
  int64_t *extent;
  double **array;
  size_t *count;
} run;

static int64_t *extents_of(const job *j) {
  int64_t *symbol = BB_NEW(j->p->arena, int64_t, j->p->symbols + 1);
  for (uint32_t s = 0; s < j->p->symbols; s++) symbol[s] = given(j->argv + 3, j->p->symbol[s], 1);
  return symbol;
}

static double drawn(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (double)(*state >> 40) / (1 << 23) - 1;
}

static run make_run(const job *j, const bb_kernel *kernel) {
  bb_arena *arena = j->p->arena;
  const bb_tile_program *tile = kernel->tile;
  const int64_t *symbol = extents_of(j);
  uint64_t state = 1;
  run r = {tile, BB_NEW(arena, int64_t, tile->extents + 1),
           BB_NEW(arena, double *, tile->views + 1), BB_NEW(arena, size_t, tile->views + 1)};
  for (uint32_t i = 0; i < tile->extents; i++)
    r.extent[i] = kernel->extent[i] ? bb_extent_bind(j->p, kernel->extent[i], symbol)
                                    : symbol[kernel->symbol[i]];
  for (uint32_t v = 0; v < tile->views; v++) {
    r.count[v] = bb_tile_view_count(tile, v, r.extent);
    r.array[v] = BB_NEW(arena, double, r.count[v] + 1);
    for (size_t i = 0; i < r.count[v]; i++)
      r.array[v][i] = tile->view[v].written ? NAN : drawn(&state);
  }
  return r;
}

static int64_t value_of(const job *j, const run *r, bb_tile_index index) {
  double *variable = BB_NEW(j->p->arena, double, r->tile->variables + 1);
  for (uint32_t i = 0; i < r->tile->extents; i++) variable[i] = (double)r->extent[i];
  return bb_tile_index_value(index, variable);
}

static int64_t stride_of(const job *j, const run *r, uint32_t view, uint32_t axis) {
  const bb_tile_view *v = &r->tile->view[view];
  int64_t stride = 1;
  if (v->strided) return value_of(j, r, v->stride[axis]);
  for (uint32_t i = axis + 1; i < v->rank; i++) stride *= value_of(j, r, v->extent[i]);
  return stride;
}

/* Places from..to-1 of the slice. */
static void make_part(const job *j, const run *r, const bb_tile_slice *s, double *const *written,
                      int64_t from, int64_t to) {
  bb_arena *arena = j->p->arena;
  int64_t *extent = BB_NEW(arena, int64_t, r->tile->extents + 1);
  double **view = BB_NEW(arena, double *, r->tile->views + 1);
  memcpy(extent, r->extent, r->tile->extents * sizeof *extent);
  extent[s->extent] = to - from;
  for (uint32_t v = 0; v < r->tile->views; v++) {
    view[v] = written[v] ? written[v] : r->array[v];
    if (s->axis[v] != BB_NONE) view[v] += from * stride_of(j, r, v, s->axis[v]);
  }
  bb_tile_interpret(r->tile, &(bb_tile_binding){.extent = extent, .view = view, .exact = true});
}

static bool is_close(double a, double b) {
  return a == b || fabs(a - b) <= 1e-9 * fmax(1, fabs(a)) || (isnan(a) && isnan(b));
}

static void check_slice(job *j, const run *r, const bb_tile_slice *s) {
  int64_t all = r->extent[s->extent], cut = all / s->step / 2 * s->step;
  double **written = BB_NEW(j->p->arena, double *, r->tile->views + 1);
  if (cut == 0) cut = all / 2;
  for (uint32_t v = 0; v < r->tile->views; v++) {
    if (!r->tile->view[v].written) continue;
    written[v] = BB_NEW(j->p->arena, double, r->count[v] + 1);
    for (size_t i = 0; i < r->count[v]; i++) written[v][i] = NAN;
  }
  make_part(j, r, s, written, 0, cut);
  make_part(j, r, s, written, cut, all);
  for (uint32_t v = 0; v < r->tile->views; v++)
    for (size_t i = 0; written[v] && i < r->count[v]; i++) {
      if (is_close(r->array[v][i], written[v][i])) continue;
      printf("way %u, %s cut at %lld of %lld: element %zu of %s is %g, not %g\n", j->way,
             r->tile->variable[s->extent], (long long)cut, (long long)all, i, r->tile->view[v].name,
             written[v][i], r->array[v][i]);
      j->wrong++;
      return;
    }
}

static void check_way(bb_context *ctx, void *argument) {
  job *j = argument;
  bb_tile_slice slice[BB_TILE_SLICES];
  (void)ctx;
  const bb_kernel *kernel =
      bb_schedule_gpu_way(j->p, bb_candidate_runs(j->candidate), "kernel", j->way, NULL);
  run r = make_run(j, kernel);
  bb_tile_interpret(r.tile, &(bb_tile_binding){.extent = r.extent, .view = r.array, .exact = true});
  uint32_t count = bb_tile_slices(r.tile, slice);
  for (uint32_t i = 0; i < count; i++) check_slice(j, &r, &slice[i]);
  j->slices += count;
}

static void body(bb_context *ctx, void *argument) {
  job *j = argument;
  j->p = bb_drive_read(ctx, j->argv[1], NULL, 0);
  bb_drive(j->p, BB_STAGE_FUSED, &(bb_drive_options){0});
  for (uint32_t c = 0; c < j->p->candidates; c++)
    for (j->way = 0; j->way < BB_GPU_WAYS; j->way++) {
      j->candidate = &j->p->candidate[c];
      bb_status status = bb_protect(ctx, check_way, j);
      if (status != BB_OK && status != BB_ERROR_UNSUPPORTED)
        bb_fail(ctx, status, "way %u: %s", j->way,
                bb_arena_text(j->p->arena, ctx->message, strlen(ctx->message)));
      ctx->status = BB_OK;
    }
  bb_program_destroy(j->p);
  printf("%u slices, %u wrong\n", j->slices, j->wrong);
  if (j->wrong || j->slices != strtoul(j->argv[2], NULL, 10))
    bb_fail(ctx, BB_ERROR_INTERNAL, "slices are wrong, or not %s", j->argv[2]);
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
