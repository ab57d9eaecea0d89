/* random.c - kernels of plain threads from random programs: their source, as AMD's GPUs would get it, and their launches.
 *
 *   random FOLDER FIRST COUNT      kernels.hip and launches.json of seeds FIRST ... FIRST + COUNT - 1
 *
 * Of every seed the unfused program and each of its snapshots, made safe; the device library lies elsewhere.
 */
#include "../random/random.h"

#include "../../fuse/fuse.h"
#include "../../fuse/safety.h"
#include "../../lower/emit_simt.h"
#include "../../lower/schedule_simt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROCESSORS = 104, SHARED = 64 * 1024 - 64 };

typedef struct batch {
  bb_context *ctx;
  char **argv;
  bb_arena *arena;
  uint32_t kernels;
  bb_buffer source, launches;
} batch;

typedef struct making {
  batch *b;
  bb_program *program;
  const bb_graph *graph;
  const int64_t *block;
} making;

static void make(bb_context *ctx, void *argument) {
  making *m = argument;
  batch *b = m->b;
  bb_simt_launch launch;
  const bb_kernel *kernel = bb_schedule_simt(m->program, m->graph, "k", m->block, PROCESSORS, NULL);
  const char *broken = bb_tile_verify(kernel->tile, b->arena);
  if (broken) bb_fail(ctx, BB_ERROR_MISMATCH, "%s", broken);
  bb_emit_simt(&b->source, kernel->tile, bb_arena_printf(b->arena, "k%u", b->kernels),
               &(bb_emit_options){.shared = SHARED}, &launch);
  for (uint32_t n = 0; n < launch.nests; n++)
    bb_put(&b->launches, "%s{\"function\": \"k%u_%u\", \"threads\": %u, \"shared\": %u}",
           b->launches.length > 1 ? ",\n " : "", b->kernels, n, launch.nest[n].threads,
           launch.nest[n].shared);
  b->kernels++;
}

/* By turns blocks as the scheduler has them, and the case's own.  What is refused says so. */
static void add(batch *b, const random_case *c, bb_graph *graph, uint64_t way) {
  graph = bb_safety_alone(c->program, graph);
  if (!graph) return;
  making m = {b, c->program, graph, way % 2 ? c->block : NULL};
  bb_status status = bb_protect(b->ctx, make, &m);
  if (status == BB_OK) return;
  if (status != BB_ERROR_UNSUPPORTED)
    bb_fail(b->ctx, status, "%s",
            bb_arena_text(b->arena, b->ctx->message, strlen(b->ctx->message)));
  fprintf(stderr, "refused: %s\n", bb_context_message(b->ctx));
  b->ctx->status = BB_OK;
}

static void write_file(const batch *b, const char *name, const bb_buffer *text) {
  const char *path = bb_arena_printf(b->arena, "%s/%s", b->argv[1], name);
  FILE *f = fopen(path, "w");
  if (!f || fwrite(text->data, 1, text->length, f) != text->length || fclose(f) != 0)
    bb_fail(b->ctx, BB_ERROR_IO, "cannot write %s", path);
}

static void body(bb_context *ctx, void *argument) {
  batch *b = argument;
  uint64_t first = strtoull(b->argv[2], NULL, 10), count = strtoull(b->argv[3], NULL, 10);
  b->ctx = ctx;
  b->arena = b->source.arena = b->launches.arena = bb_scratch(ctx);
  bb_put(&b->source, "#include \"simt.cuh\"\n\n");
  bb_put(&b->launches, "[");
  for (uint64_t seed = first; seed < first + count; seed++) {
    random_case c = random_case_make(ctx, seed, 1 + (uint32_t)(seed % 7));
    bb_snapshot *snapshot;
    add(b, &c, c.program->root, seed);
    uint32_t snapshots = bb_fuse(c.program, &c.program->root, &(bb_fuse_options){0}, &snapshot);
    for (uint32_t i = 0; i < snapshots; i++) add(b, &c, snapshot[i].graph, seed + i + 1);
  }
  bb_put(&b->launches, "]\n");
  write_file(b, "kernels.hip", &b->source);
  write_file(b, "launches.json", &b->launches);
}

int main(int argc, char **argv) {
  bb_context *ctx;
  batch b = {.argv = argv};
  if (argc != 4 || bb_context_create(NULL, &ctx) != BB_OK) return 2;
  bb_status status = bb_protect(ctx, body, &b);
  if (status != BB_OK) fprintf(stderr, "random: %s\n", bb_context_message(ctx));
  bb_context_destroy(ctx);
  return status != BB_OK;
}
