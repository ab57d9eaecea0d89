/* paper_test.c - the paper's examples, step by step (Blockbuster, section 5).
 *
 * usage: paper_test EXAMPLE.bb "TRACE" LISTING-NN.txt ...
 *
 * The example is fused by both engines; the trace must be TRACE (such as "1x6 4 3 S": the rule's number,
 * x and how often in a row, S a snapshot).  After step NN the listing must be that of LISTING-NN.txt
 * up to the names of temporaries and buffers and the order of independent statements; the last one
 * given must be the final listing, to the letter.  Where the paper slips, its line stands in a comment
 * beside the one meant:
 * - attention runs a loop over N up to D, and leaves d out of the indices of the first product;
 * - layernorm_matmul gives one name to two values (step 8), and has a sum in a parallel loop;
 * - rmsnorm_swiglu has a parallel loop written as a serial one (steps 20 and 21), and gives one name to
 *   two buffers (step 21).
 */
#include "listing.h"
#include "../support/pipeline.h"

#include "../../fuse/fuse.h"
#include "../../graph/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct job {
  const char *example, *trace;
  int count;
  char **file;
} job;

static char *read_file(bb_arena *arena, const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file) bb_fail(bb_arena_context(arena), BB_ERROR_IO, "%s cannot be read", path);
  char *text = bb_arena_alloc(arena, 1 << 16);
  size_t length = fread(text, 1, (1 << 16) - 1, file);
  fclose(file);
  text[length] = 0;
  return text;
}

/* --- fusing --- */

typedef struct run {
  bb_buffer trace;
  uint32_t rule, times; /* the rule applied last, and how often in a row */
} run;

static void end_of_row(run *r) {
  if (r->times) bb_put(&r->trace, r->trace.length ? " %u" : "%u", r->rule);
  if (r->times > 1) bb_put(&r->trace, "x%u", r->times);
  r->times = 0;
}

static void on_event(void *user, const bb_trace_event *event, const bb_graph *root) {
  run *r = user;
  (void)root;
  if (event->snapshot || event->rule != r->rule) end_of_row(r);
  if (event->snapshot) {
    bb_put(&r->trace, " S");
  } else {
    r->rule = event->rule;
    r->times++;
  }
}

/* The listing of the example after `steps` rewrites (0: all), and its trace. */
static const char *fuse(bb_context *ctx, bb_arena *arena, const char *path, uint32_t steps,
                        bool naive, const char **trace) {
  char *text = read_file(arena, path);
  bb_program *program = bb_text_parse(ctx, path, text, strlen(text));
  bb_program_defer(program);
  pipeline_lower(program);
  run r = {.trace = {.arena = arena}};
  bb_fuse_options options = {.naive = naive, .stop_after = steps, .trace = on_event, .user = &r};
  bb_snapshot *snapshots;
  uint32_t count = bb_fuse(program, &program->root, &options, &snapshots);
  end_of_row(&r);
  if (trace) *trace = r.trace.data;
  bb_buffer out = {.arena = arena};
  bb_listing_print(&out, program, snapshots[count - 1].graph);
  return out.data;
}

/* --- comparing --- */

static void check_step(bb_context *ctx, bb_arena *arena, const job *j, const char *file,
                       bool naive) {
  const char *dash = strrchr(file, '-'), *wrong;
  uint32_t step = (uint32_t)strtoul(dash + 1, NULL, 10);
  const char *got = fuse(ctx, arena, j->example, step, naive, NULL);
  const char *want = read_file(arena, file);
  uint64_t expected = listing_canon(want, &wrong);
  if (wrong) bb_fail(ctx, BB_ERROR_MISMATCH, "%s: %s", file, wrong);
  uint64_t actual = listing_canon(got, &wrong);
  if (wrong) bb_fail(ctx, BB_ERROR_MISMATCH, "after step %u: %s\n%s", step, wrong, got);
  if (actual != expected)
    bb_fail(ctx, BB_ERROR_MISMATCH, "after step %u the listing is\n%snot that of %s", step, got,
            file);
}

static void check_final(bb_context *ctx, bb_arena *arena, const job *j, bool naive) {
  const char *file = j->file[j->count - 1], *trace;
  const char *got = fuse(ctx, arena, j->example, 0, naive, &trace);
  if (strcmp(trace, j->trace) != 0)
    bb_fail(ctx, BB_ERROR_MISMATCH, "the trace is %s, not %s", trace, j->trace);
  char *want = listing_strip(read_file(arena, file));
  bool same = want && strcmp(got, want) == 0;
  free(want);
  if (!same)
    bb_fail(ctx, BB_ERROR_MISMATCH, "the last listing is\n%snot to the letter that of %s", got,
            file);
}

static void check(bb_context *ctx, void *argument) {
  const job *j = argument;
  bb_arena *arena = bb_scratch(ctx);
  for (int naive = 0; naive < 2; naive++) {
    check_final(ctx, arena, j, naive);
    for (int i = 0; i < j->count; i++) check_step(ctx, arena, j, j->file[i], naive);
  }
}

int main(int argc, char **argv) {
  if (argc < 4) {
    fprintf(stderr, "usage: paper_test EXAMPLE.bb TRACE LISTING-NN.txt ...\n");
    return 2;
  }
  bb_context *ctx;
  if (bb_context_create(NULL, &ctx) != BB_OK) return 1;
  ctx->verify = true;
  job j = {argv[1], argv[2], argc - 3, argv + 3};
  bb_status status = bb_protect(ctx, check, &j);
  if (status != BB_OK) printf("%s: %s\n", j.example, bb_context_message(ctx));
  bb_context_destroy(ctx);
  return status != BB_OK;
}
