/* stages_test.c - models at every stage: lawful, printed, read back, and equal to what was printed.
 *
 * usage: stages_test MODEL...
 */
#include "../../graph/hash.h"
#include "../../graph/text.h"
#include "../../graph/verify.h"
#include "../support/pipeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct trial {
  const char *model;
  char folder[32];
  uint32_t texts;
} trial;

static void write_piece(void *user, const void *bytes, size_t length) {
  fwrite(bytes, 1, length, user);
}

static void write_data(const trial *t, const bb_program *program) {
  char path[64];
  snprintf(path, sizeof path, "%s/data", t->folder);
  FILE *file = fopen(path, "wb");
  if (!file) bb_fail(program->ctx, BB_ERROR_IO, "cannot write %s", path);
  bb_text_data(program, write_piece, file);
  fclose(file);
}

static void compare_graphs(const bb_program *p, const bb_graph *a, const bb_program *q,
                           const bb_graph *b, const char *stage) {
  bb_hash left = bb_hash_graph(p, a), right = bb_hash_graph(q, b);
  if (!bb_graph_equal(a, b)) bb_fail(p->ctx, BB_ERROR_MISMATCH, "%s: not equal", stage);
  if (left.low != right.low || left.high != right.high)
    bb_fail(p->ctx, BB_ERROR_MISMATCH, "%s: another hash", stage);
}

static void compare_programs(const bb_program *p, const bb_program *q, const char *stage) {
  if (p->stage == BB_STAGE_BLOCK) compare_graphs(p, p->root, q, q->root, stage);
  if (p->stage < BB_STAGE_PARTITION) return;
  for (uint32_t i = 0; i < p->candidates; i++) {
    const bb_candidate *a = &p->candidate[i], *b = &q->candidate[i];
    compare_graphs(p, a->graph, q, b->graph, stage);
    for (uint32_t k = 0; k < a->snapshots; k++)
      compare_graphs(p, a->snapshot[k].graph, q, b->snapshot[k].graph, stage);
  }
}

static void examine(trial *t, bb_program *program, const char *stage) {
  bb_context *ctx = program->ctx;
  bb_arena *scratch = bb_scratch(ctx);
  const char *broken = bb_verify_program(program, scratch);
  if (broken) bb_fail(ctx, BB_ERROR_MISMATCH, "%s: %s", stage, broken);
  bb_buffer first = {.arena = scratch}, second = {.arena = scratch};
  char path[64];
  snprintf(path, sizeof path, "%s/model.bb", t->folder);
  write_data(t, program);
  bb_text_print(&first, program, "data");
  bb_program *parsed = bb_text_parse(ctx, path, first.data, first.length);
  bb_program_defer(parsed);
  bb_text_print(&second, parsed, "data");
  if (first.length != second.length || memcmp(first.data, second.data, first.length) != 0)
    bb_fail(ctx, BB_ERROR_MISMATCH, "%s: print, parse, print is not the identity", stage);
  broken = bb_verify_program(parsed, scratch);
  if (broken) bb_fail(ctx, BB_ERROR_MISMATCH, "%s, parsed: %s", stage, broken);
  compare_programs(program, parsed, stage);
  bb_undefer(ctx, parsed);
  bb_program_destroy(parsed);
  bb_scratch_end(scratch);
  t->texts++;
}

static void run(bb_context *ctx, void *argument) {
  trial *t = argument;
  bb_program *program = pipeline_read(ctx, t->model);
  examine(t, program, "read");
  bb_array_fold(program->array);
  examine(t, program, "folded");
  bb_array_structure(program->array);
  examine(t, program, "structured");
  bb_array_split_strides(program->array);
  bb_array_factor(program->array);
  examine(t, program, "factored");
  bb_array_canonicalise(program->array);
  bb_array_lower(program->array, (bb_units){0});
  program->stage = BB_STAGE_BLOCK;
  examine(t, program, "lowered");
  bb_partition(program, 0, NULL);
  examine(t, program, "partitioned");
  bb_choose(program, NULL);
  examine(t, program, "chosen");
}

int main(int argc, char **argv) {
  bool good = argc > 1;
  for (int i = 1; i < argc; i++) {
    trial t = {.model = argv[i], .folder = "/tmp/bb-stages-XXXXXX"};
    bb_context *ctx;
    char path[64];
    if (!mkdtemp(t.folder) || bb_context_create(NULL, &ctx) != BB_OK) return 1;
    bb_status status = bb_protect(ctx, run, &t);
    if (status != BB_OK) printf("%s: %s\n", argv[i], bb_context_message(ctx));
    if (status == BB_OK) printf("%s: %u texts\n", argv[i], t.texts);
    good &= status == BB_OK;
    bb_context_destroy(ctx);
    snprintf(path, sizeof path, "%s/data", t.folder);
    unlink(path);
    rmdir(t.folder);
  }
  return good ? 0 : 1;
}
