/* driver.c - the road that a program takes.
 *
 *   convert    ONNX or text -> array program -> block program
 *   partition  block program -> candidates, convex and without misc, and the steps between them
 *   rewrite    candidate -> snapshots
 *   choose     snapshots -> kernels
 *   run        kernels -> outputs
 *
 * A program says by its stage how far it has come, so that it may be read from a file at any stage
 * and goes on from there.  After every phase the verifier checks the laws of the stage.
 */
#include "driver.h"

#include "../fuse/safety.h"
#include "../graph/array/array.h"
#include "../graph/onnx/onnx.h"
#include "../graph/text.h"
#include "../lower/schedule_gpu.h"
#include "../lower/split_k.h"
#include "../select/bill.h"
#include "../graph/verify.h"

#include <string.h>

/* The text form begins with its name, perhaps after blank lines and comments. */
static bool is_text(const char *bytes, size_t length) {
  static const char word[] = "blockbuster";
  size_t at = 0;
  while (at < length && (bytes[at] == '#' || strchr(" \t\r\n", bytes[at]))) {
    bool comment = bytes[at] == '#';
    at++;
    while (comment && at < length && bytes[at] != '\n') at++;
  }
  return length - at >= sizeof word - 1 && memcmp(bytes + at, word, sizeof word - 1) == 0;
}

/* The file's name without folders and its last extension. */
static const char *model_name(bb_arena *arena, const char *path) {
  const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
  const char *dot = strrchr(base, '.');
  return bb_arena_text(arena, base, dot && dot > base ? (size_t)(dot - base) : strlen(base));
}

static const char *folder_of(bb_arena *arena, const char *path) {
  const char *slash = strrchr(path, '/');
  if (!slash) return ".";
  return slash == path ? "/" : bb_arena_text(arena, path, (size_t)(slash - path));
}

typedef struct reading {
  const char *path;
  const void *bytes; /* NULL: the file's */
  size_t length;
  bb_program *program;
} reading;

static void read_program(bb_context *ctx, void *argument) {
  reading *r = argument;
  bb_arena *scratch = bb_scratch(ctx);
  bb_program *program = bb_program_create(ctx, model_name(scratch, r->path));
  bb_program_defer(program);
  const void *bytes = r->bytes;
  uint64_t size = r->length;
  if (!bytes) bytes = bb_program_map_whole(program, r->path, &size);
  if (is_text(bytes, (size_t)size)) {
    bb_program *parsed = bb_text_parse(ctx, r->path, bytes, (size_t)size);
    bb_undefer(ctx, program);
    bb_program_destroy(program);
    program = parsed;
    bb_program_defer(program);
  } else if (!r->bytes) {
    bb_onnx_read(program, r->path);
  } else {
    bb_onnx_read_bytes(program, bytes, (size_t)size, folder_of(scratch, r->path));
  }
  const char *broken = bb_verify_program(program, scratch);
  if (broken) bb_fail(ctx, BB_ERROR_INPUT, "%s", broken);
  bb_scratch_end(scratch);
  bb_undefer(ctx, program);
  r->program = program;
}

bb_program *bb_drive_read(bb_context *ctx, const char *path, const void *bytes, size_t length) {
  reading r = {.path = path, .bytes = bytes, .length = length};
  bb_status status = bb_protect(ctx, read_program, &r);
  if (status == BB_OK) return r.program;
  const char *said = bb_context_message(ctx);
  bool placed = status == BB_ERROR_MEMORY || strncmp(said, path, strlen(path)) == 0;
  bb_fail(ctx, status, "%s%s%s", placed ? "" : path, placed ? "" : ": ", said);
}

/* Every phase ends here. */
static void after(bb_program *program, const char *phase, const bb_drive_options *options) {
  bb_arena *scratch = bb_scratch(program->ctx);
  const char *broken = bb_verify_program(program, scratch);
  if (broken) bb_fail(program->ctx, BB_ERROR_INTERNAL, "after %s: %s", phase, broken);
  bb_scratch_end(scratch);
  bb_log(program->ctx, BB_LOG_INFO, "%s: done", phase);
  if (options->phase) options->phase(options->user, phase, program);
}

/* The snapshots with their folds bracketed anew. */
static void bracket(bb_program *program, const bb_drive_options *options) {
  for (uint32_t i = 0; i < program->candidates; i++) {
    bb_candidate *candidate = &program->candidate[i];
    for (uint32_t k = 0; k < candidate->snapshots; k++) {
      bb_snapshot *s = &candidate->snapshot[k];
      s->graph = bb_split_k(program, s->graph, options->fold, options->chunks);
      if (s->safe) s->safe = bb_split_k(program, s->safe, options->fold, options->chunks);
    }
  }
}

/* Does the scheduler of a machine's own units cut folds as they run, by their extents, in one launch? */
static bool cuts_folds(const bb_drive_options *options, const bb_graph *graph) {
  const bb_machine *machine = options->select ? options->select->machine : NULL;
  return machine && strcmp(machine->target, "sm_90a") == 0 && bb_gpu_has_narrow_product(graph);
}

/* What runs with its folds cut as its price said. */
static void split(bb_program *program, const bb_drive_options *options) {
  for (uint32_t i = 0; i < program->candidates; i++) {
    bb_candidate *kernel = &program->candidate[i];
    if (!kernel->bill || kernel->bill->best.parts < 2) continue;
    bb_snapshot *s = &kernel->snapshot[kernel->chosen];
    const bb_way *way = &kernel->bill->best;
    if (cuts_folds(options, s->safe)) continue;
    s->safe = bb_split_loop(program, s->safe, way->map, way->parts);
  }
}

bb_selection_options bb_drive_for_machine(bb_program *program, const bb_selection_options *given) {
  bb_selection_options options = *given;
  if (!options.machine || strcmp(options.machine->target, "sm_90a") != 0) return options;
  options.lowers = bb_gpu_takes;
  bb_lay(program);
  return options;
}

void bb_drive(bb_program *program, bb_stage goal, const bb_drive_options *options) {
  program->strict = options->strict;
  if (program->stage == BB_STAGE_ARRAY && goal > BB_STAGE_ARRAY) {
    bb_array_fold(program->array);
    bb_array_part(program->array);
    bb_array_pick(program->array);
    bb_array_structure(program->array);
    if (options->units.winograd && !options->strict)
      bb_array_winograd(program->array, options->units.winograd);
    after(program, "simplify", options);
    bb_array_split_strides(program->array);
    bb_array_factor(program->array);
    bb_array_canonicalise(program->array);
    bb_array_lower(program->array, options->units);
    bb_array_drop(program);
    program->stage = BB_STAGE_BLOCK;
    after(program, "convert", options);
  }
  if (program->stage == BB_STAGE_BLOCK && goal > BB_STAGE_BLOCK) {
    bb_partition(program, options->cuts, options->cut);
    after(program, "partition", options);
  }
  if (program->stage == BB_STAGE_PARTITION && goal > BB_STAGE_PARTITION) {
    if (options->select) {
      bb_selection_options select = bb_drive_for_machine(program, options->select);
      bb_select(program, &select);
    } else {
      bb_choose(program, options->choose);
    }
    if (options->fold > BB_FOLD_ROLLING)
      bracket(program, options);
    else if (options->fold == BB_FOLD_CHOSEN)
      split(program, options);
    after(program, "choose", options);
  }
}

static bool is_prepared(const bb_program *program) {
  for (uint32_t i = 0; i < program->candidates; i++)
    if (program->candidate[i].safe) return true;
  return program->stage == BB_STAGE_FUSED; /* part of choosing */
}

/* For a run without fusion.  It is never printed: its nodes take no numbers from the program's. */
void bb_drive_prepare(bb_program *program) {
  uint32_t serial = program->serial;
  if (program->stage == BB_STAGE_BLOCK) {
    if (!program->safe_root) program->safe_root = bb_safety_alone(program, program->root);
  } else if (!is_prepared(program)) {
    bb_make_kernels_safe(program);
  }
  program->serial = serial;
}

void bb_drive_run(const bb_program *program, const bb_interp_options *options, bb_binding *binding,
                  bb_arena *arena, bb_interp_counts *counts) {
  for (uint32_t t = 0; t < program->tensors; t++) {
    const bb_interp_tensor *held = &binding->tensor[t];
    if (held->data)
      bb_interp_check(program->ctx, program->tensor[t].name, program->tensor[t].dtype, held->data,
                      held->count);
  }
  for (uint32_t s = 0; s < program->symbols && program->stage == BB_STAGE_BLOCK; s++)
    if (program->most[s])
      bb_fail(program->ctx, BB_ERROR_UNSUPPORTED,
              "extent %s is told in a run: such a program is interpreted from stage partition on",
              program->symbol[s]);
  if (program->stage == BB_STAGE_BLOCK)
    bb_interp_graph(program, program->safe_root ? program->safe_root : program->root, options,
                    binding->tensor, arena, counts);
  else
    bb_interp_program(program, options, binding->tensor, arena, counts);
}
