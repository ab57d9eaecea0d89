/* generate.c - tile programs for a GPU from models.
 *
 *   generate MODEL             every kernel's program, on standard output
 *   generate MODEL --plain     what they were made from, with the blocks of a processor
 *   generate MODEL FOLDER [DIM=SIZE...]      NAME.cu and NAME.json of each as emitted for sm_90a, NAME the kernel's name
 *   generate MODEL FOLDER --ways             the same in every way that its results can be cut: NAME_WAY.cu
 *   generate MODEL --check NAME=EXTENT...
 *                              runs each by its meaning, beside the plain program it was made from, on drawn
 *                              inputs: they agree but for rounding
 *   generate MODEL --check-ways NAME=EXTENT...
 *                              the same in every way that its results can be cut
 *   generate MODEL --check-warps NAME=EXTENT...
 *                              the same for products of warps (sm_80), in all ways, of which there is one
 */
#include "../../lower/emit.h"
#include "../../lower/schedule_gpu.h"
#include "../../runtime/driver.h"
#include "../support/given.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct job {
  int argc;
  char **argv;
  bb_program *program;
} job;

/* --- meanings --- */

/* What follows the program and the mode: numbers by name, if any. */
static char *const *numbers_of(const job *j) {
  return j->argv + (j->argc < 3 ? j->argc : 3);
}

static int64_t *extents_of(const job *j, const bb_kernel *kernel) {
  bb_program *p = j->program;
  int64_t *symbol = BB_NEW(p->arena, int64_t, p->symbols + 1);
  int64_t *extent = BB_NEW(p->arena, int64_t, kernel->tile->extents + 1);
  for (uint32_t s = 0; s < p->symbols; s++) symbol[s] = given(numbers_of(j), p->symbol[s], 1);
  for (uint32_t i = 0; i < kernel->tile->extents; i++)
    extent[i] = kernel->extent[i] ? bb_extent_bind(p, kernel->extent[i], symbol)
                                  : symbol[kernel->symbol[i]];
  return extent;
}

static double **run(const job *j, const bb_kernel *kernel) {
  bb_tile_program *tile = kernel->tile;
  bb_arena *arena = j->program->arena;
  const int64_t *extent = extents_of(j, kernel);
  double **view = BB_NEW(arena, double *, tile->views + 1);
  for (uint32_t v = 0; v < tile->views; v++) {
    uint64_t state = 88172645463325252u + kernel->argument[v].tensor;
    size_t count = bb_tile_view_count(tile, v, extent);
    if (tile->view[v].scratch) continue;
    view[v] = BB_NEW(arena, double, count + 1);
    for (size_t i = 0; i < count; i++) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      double drawn = (double)(float)((double)(int64_t)(state >> 11) / (double)(1ll << 52) - 1);
      view[v][i] = tile->view[v].written ? NAN : 4 * drawn;
    }
  }
  bb_tile_interpret(tile, &(bb_tile_binding){extent, view, true});
  return view;
}

/* `want`: what `plain` gave. */
static void compare(const job *j, const bb_kernel *made, const bb_kernel *plain,
                    double *const *want) {
  double **got = run(j, made), worst = 0;
  const int64_t *extent = extents_of(j, plain);
  for (uint32_t v = 0; v < plain->tile->views; v++) {
    if (!plain->tile->view[v].written || plain->tile->view[v].scratch) continue;
    size_t count = bb_tile_view_count(plain->tile, v, extent);
    for (size_t i = 0; i < count; i++) {
      double error = fabs(got[v][i] - want[v][i]) / (1 + fabs(want[v][i]));
      if (!(error <= 1e-5))
        bb_fail(j->program->ctx, BB_ERROR_MISMATCH, "%s: view %u, element %zu: %.9g, not %.9g",
                made->tile->name, v, i, got[v][i], want[v][i]);
      if (error > worst) worst = error;
    }
  }
  printf("%s agrees, largest difference %.2g\n", made->tile->name, worst);
}

/* --- */

static void check_laws(const bb_program *p, const bb_tile_program *tile) {
  const char *broken = bb_tile_verify(tile, p->arena);
  if (broken) bb_fail(p->ctx, BB_ERROR_INTERNAL, "%s: %s", tile->name, broken);
  bb_buffer text = {.arena = p->arena}, again = {.arena = p->arena};
  bb_tile_print(&text, tile);
  bb_tile_program *read = bb_tile_parse(p->ctx, "printed", text.data, text.length);
  bb_tile_print(&again, read);
  if (strcmp(text.data, again.data) != 0)
    bb_fail(p->ctx, BB_ERROR_MISMATCH, "another tile program is read than was printed:\n%s\n%s",
            text.data, again.data);
  bb_program_destroy(read->home);
}

static void write_file(bb_program *p, const char *folder, const char *name, const char *end,
                       const bb_buffer *what) {
  const char *path = bb_arena_printf(p->arena, "%s/%s%s", folder, name, end);
  FILE *f = fopen(path, "wb");
  if (!f || fwrite(what->data, 1, what->length, f) != what->length || fclose(f) != 0)
    bb_fail(p->ctx, BB_ERROR_IO, "cannot write %s", path);
}

/* What the launch's views and extents are: tensors of the program, and its dims or numbers. */
static void put_arguments(bb_program *p, const bb_kernel *kernel, bb_buffer *out) {
  bb_put(out, "{\"views\": {");
  for (uint32_t v = 0; v < kernel->tile->views; v++)
    if (kernel->argument[v].tensor != BB_NONE)
      bb_put(out, "%s\"%s\": \"%s\"", v ? ", " : "", kernel->tile->view[v].name,
             p->tensor[kernel->argument[v].tensor].name);
  bb_put(out, "},\n \"extents\": {");
  for (uint32_t i = 0; i < kernel->tile->extents; i++) {
    const bb_extent *e = kernel->extent[i];
    bb_put(out, "%s\"%s\": ", i ? ", " : "", kernel->tile->variable[i]);
    if (e && e->count && (e->count != 1 || e->factor != 1))
      bb_fail(p->ctx, BB_ERROR_UNSUPPORTED, "an extent that is a product");
    if (e && !e->count)
      bb_put(out, "%lld", (long long)e->factor);
    else
      bb_put(out, "\"%s\"", p->symbol[e ? e->symbol[0] : kernel->symbol[i]]);
  }
  bb_put(out, "}}\n");
}

/* Block sizes that are asked for. */
static int64_t *blocks_of(const job *j) {
  bb_program *p = j->program;
  int64_t *block = BB_NEW(p->arena, int64_t, p->dims + 1);
  bool checks = j->argc > 2 && strcmp(j->argv[2], "--check") == 0;
  for (uint32_t d = 0; d < p->dims && !checks; d++)
    block[d] = given(numbers_of(j), p->dim[d].name, 0);
  return block;
}

static uint32_t lines_of(const bb_buffer *text) {
  uint32_t lines = 0;
  for (size_t i = 0; i < text->length; i++) lines += text->data[i] == '\n';
  return lines;
}

static void put_files(const job *j, const bb_kernel *kernel, const char *name) {
  bb_program *p = j->program;
  bb_buffer text = {.arena = p->arena}, launch = {.arena = p->arena}, names = {.arena = p->arena};
  bb_buffer tile = {.arena = p->arena};
  bb_tile_print(&tile, kernel->tile);
  bb_emit_sm90(kernel->tile, &text, &launch, NULL);
  write_file(p, j->argv[2], name, ".cu", &text);
  write_file(p, j->argv[2], name, ".json", &launch);
  put_arguments(p, kernel, &names);
  write_file(p, j->argv[2], name, ".arguments.json", &names);
  printf("%s: %u lines of tile program, %u of source\n", name, lines_of(&tile), lines_of(&text));
}

typedef struct one_way {
  const job *j;
  const bb_candidate *c;
  const bb_kernel *plain; /* to check it against; NULL: it is written */
  double **want;
  uint32_t way;
  bool warps; /* for products of warps */
} one_way;

static void put_way(bb_context *ctx, void *argument) {
  const one_way *w = argument;
  bb_program *p = w->j->program;
  const bb_graph *graph = bb_candidate_runs(w->c);
  enum { SHARED = 163 << 10 };
  const bb_kernel *kernel =
      w->warps ? bb_schedule_warps(p, graph, w->c->name, w->way, NULL, SHARED, NULL)
               : bb_schedule_gpu_way(p, graph, w->c->name, w->way, NULL);
  (void)ctx;
  check_laws(p, kernel->tile);
  if (w->plain)
    compare(w->j, kernel, w->plain, w->want);
  else
    put_files(w->j, kernel, bb_arena_printf(p->arena, "%s_%u", w->c->name, w->way));
}

/* Those that the kernel has. */
static void put_ways(const job *j, const bb_candidate *c, bool check, bool warps) {
  bb_context *ctx = j->program->ctx;
  one_way w = {.j = j, .c = c, .warps = warps};
  if (check) {
    w.plain = bb_schedule(j->program, bb_candidate_runs(c), c->name, NULL);
    w.want = run(j, w.plain);
  }
  for (; w.way < (warps ? (uint32_t)BB_WARP_WAYS : BB_GPU_WAYS); w.way++) {
    bb_status status = bb_protect(ctx, put_way, &w);
    if (warps && w.way == 0 && status != BB_OK) bb_fail(ctx, BB_ERROR_MISMATCH, "no way at all");
    if (status != BB_OK && status != BB_ERROR_UNSUPPORTED)
      bb_fail(ctx, status, "way %u: %s", w.way,
              bb_arena_text(j->program->arena, ctx->message, strlen(ctx->message)));
    if (status != BB_OK && !check && !warps)
      printf("%s_%u: none: %s\n", c->name, w.way, ctx->message);
    ctx->status = BB_OK;
  }
}

static void generate(job *j, const bb_candidate *c) {
  bb_program *p = j->program;
  const bb_graph *graph = bb_candidate_runs(c);
  bool plain = j->argc == 3 && strcmp(j->argv[2], "--plain") == 0;
  bool check_ways = j->argc > 3 && strcmp(j->argv[2], "--check-ways") == 0;
  bool warps = j->argc > 3 && strcmp(j->argv[2], "--check-warps") == 0;
  if (check_ways || warps || (j->argc == 4 && strcmp(j->argv[3], "--ways") == 0)) {
    put_ways(j, c, check_ways || warps, warps);
    return;
  }
  const bb_kernel *kernel = plain ? bb_schedule(p, graph, c->name, NULL)
                                  : bb_schedule_gpu(p, graph, c->name, blocks_of(j), NULL);
  check_laws(p, kernel->tile);
  bb_buffer text = {.arena = p->arena};
  if (j->argc == 2 || plain) {
    bb_tile_print(&text, kernel->tile);
    fwrite(text.data, 1, text.length, stdout);
  } else if (strcmp(j->argv[2], "--check") == 0) {
    const bb_kernel *simple = bb_schedule(p, graph, c->name, NULL);
    compare(j, kernel, simple, run(j, simple));
  } else {
    put_files(j, kernel, c->name);
  }
}

static void body(bb_context *ctx, void *argument) {
  job *j = argument;
  j->program = bb_drive_read(ctx, j->argv[1], NULL, 0);
  bb_program_defer(j->program);
  bb_drive(j->program, BB_STAGE_FUSED, &(bb_drive_options){0});
  for (uint32_t i = 0; i < j->program->candidates; i++) generate(j, &j->program->candidate[i]);
  bb_undefer(ctx, j->program);
  bb_program_destroy(j->program);
}

int main(int argc, char **argv) {
  bb_context *ctx;
  job j = {argc, argv, NULL};
  if (argc < 2) {
    fprintf(
        stderr,
        "usage: generate MODEL [FOLDER [DIM=SIZE... | --ways] | --plain | --check[-ways|-warps] "
        "NAME=EXTENT...]\n");
    return 2;
  }
  if (bb_context_create(NULL, &ctx) != BB_OK) return 2;
  bb_status status = bb_protect(ctx, body, &j);
  if (status != BB_OK) fprintf(stderr, "generate: %s: %s\n", argv[1], bb_context_message(ctx));
  bb_context_destroy(ctx);
  return status == BB_OK ? 0 : 3;
}
