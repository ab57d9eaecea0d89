/* api.c - the public calls that read programs and take them along the road.
 *
 * Every call that can fail packs its arguments and runs a body under bb_protect().
 */
#include "api.h"

#include "../graph/text.h"
#include "../rules/rule.h"

#include <string.h>

static const char *const stage_name[] = {[BB_STAGE_ARRAY] = "array",
                                         [BB_STAGE_BLOCK] = "block",
                                         [BB_STAGE_PARTITION] = "partition",
                                         [BB_STAGE_FUSED] = "fused"};

const char *bb_stage_name(bb_stage stage) {
  return (unsigned)stage <= BB_STAGE_FUSED ? stage_name[stage] : "unknown";
}

bb_stage bb_program_stage(const bb_program *program) {
  return program->stage;
}

/* --- reading --- */

typedef struct read_call {
  const char *path;
  const void *bytes;
  size_t length;
  bb_program *program;
} read_call;

static void read_body(bb_context *ctx, void *argument) {
  read_call *call = argument;
  bb_require(ctx, call->path, call->bytes ? "the name" : "the path");
  call->program = bb_drive_read(ctx, call->path, call->bytes, call->length);
}

static bb_status read_program(bb_context *ctx, read_call call, bb_program **program) {
  bb_status status = bb_protect(ctx, read_body, &call);
  if (status == BB_OK) *program = call.program;
  return status;
}

bb_status bb_program_read(bb_context *ctx, const char *path, bb_program **program) {
  return read_program(ctx, (read_call){.path = path}, program);
}

bb_status bb_program_parse(bb_context *ctx, const char *name, const void *bytes, size_t length,
                           bb_program **program) {
  read_call call = {.path = name, .bytes = bytes ? bytes : "", .length = bytes ? length : 0};
  return read_program(ctx, call, program);
}

/* --- going on --- */

typedef struct advance_call {
  bb_program *program;
  bb_stage stage;
  const bb_advance_options *options;
  bb_choose_options choose;
  bb_fuse_options fuse;
} advance_call;

static void on_begin(void *user, const bb_candidate *candidate, const bb_candidate *same) {
  const bb_advance_options *options = ((advance_call *)user)->options;
  if (options->begin) options->begin(options->user, candidate->name, same ? same->name : NULL);
}

static void on_rewrite(void *user, const bb_trace_event *event, const bb_graph *root) {
  const bb_advance_options *options = ((advance_call *)user)->options;
  bb_rewrite rewrite = {.step = event->step,
                        .rule = event->snapshot ? 0 : event->rule,
                        .rule_name = event->rule_name,
                        .variant = event->variant,
                        .level = event->level ? event->level : "",
                        .nodes = event->count,
                        .node = event->serial};
  (void)root;
  if (options->rewrite) options->rewrite(options->user, &rewrite);
}

static void on_phase(void *user, const char *phase, const bb_program *program) {
  const bb_advance_options *options = ((advance_call *)user)->options;
  if (options->phase) options->phase(options->user, phase, program);
}

static void require_lists(bb_context *ctx, const bb_advance_options *o) {
  if (o->cuts) bb_require(ctx, o->cut, "the list of cuts");
  if (o->dims) bb_require(ctx, o->dim, "the list of extents");
  if (o->ranges) bb_require(ctx, o->range, "the list of ranges");
  for (uint32_t i = 0; i < o->dims; i++) bb_require(ctx, o->dim[i].name, "the name of an extent");
  for (uint32_t i = 0; i < o->ranges; i++)
    bb_require(ctx, o->range[i].name, "the name of an extent");
}

static void advance_body(bb_context *ctx, void *argument) {
  advance_call *call = argument;
  const bb_advance_options *o = call->options;
  if (o->version != BB_VERSION)
    bb_fail(ctx, BB_ERROR_ARGUMENT, "bb_advance_options.version is not BB_VERSION");
  require_lists(ctx, o);
  bb_arena *scratch = bb_scratch(ctx);
  bb_cut *cut = BB_NEW(scratch, bb_cut, o->cuts);
  for (uint32_t i = 0; i < o->cuts; i++) cut[i] = (bb_cut){o->cut[i].a, o->cut[i].b};
  call->fuse = (bb_fuse_options){.no_extend = o->no_extend,
                                 .peel = o->peel,
                                 .tries = o->tries,
                                 .hits = o->hits,
                                 .naive = o->naive,
                                 .stop_after = o->stop_after,
                                 .disabled = o->disabled_rules,
                                 .trace = on_rewrite,
                                 .user = call};
  call->choose = (bb_choose_options){.fuse = &call->fuse, .begin = on_begin, .user = call};
  if (o->fold > BB_FOLD_ROLLING && (o->chunks == 0 || o->chunks > BB_FOLD_CHUNKS))
    bb_fail(ctx, BB_ERROR_ARGUMENT, "a fold of %u chunks, not 1 to %d", o->chunks, BB_FOLD_CHUNKS);
  bb_drive_options drive = {.cuts = o->cuts,
                            .cut = cut,
                            .choose = &call->choose,
                            .fold = o->fold,
                            .chunks = o->chunks,
                            .strict = o->strict,
                            .units = bb_api_units(call->program, o->machine),
                            .phase = on_phase,
                            .user = call};
  if (o->machine && call->stage == BB_STAGE_FUSED)
    bb_api_drive_priced(call->program, o, &drive);
  else
    bb_drive(call->program, call->stage, &drive);
  bb_scratch_end(scratch);
}

bb_status bb_program_advance(bb_program *program, bb_stage stage,
                             const bb_advance_options *options) {
  static const bb_advance_options defaults = {.version = BB_VERSION};
  advance_call call = {.program = program, .stage = stage, .options = options};
  if (!options) call.options = &defaults;
  return bb_protect(program->ctx, advance_body, &call);
}

bool bb_rule_get(uint32_t index, uint32_t *number, const char **name, const char **assumes) {
  static const bb_rule *const others[] = {&bb_rule_extend_map, &bb_rule_peel_first_iteration};
  if (index >= bb_rule_count + sizeof others / sizeof *others) return false;
  const bb_rule *rule = index < bb_rule_count ? bb_rules[index] : others[index - bb_rule_count];
  *number = rule->number;
  *name = rule->name;
  if (assumes) *assumes = bb_exactness_name(rule->exactness);
  return true;
}

int64_t *bb_api_blocks(const bb_program *program, uint32_t count, const bb_setting *setting,
                       bb_arena *arena) {
  int64_t *block = BB_NEW(arena, int64_t, program->dims + 1u);
  if (count) bb_require(program->ctx, setting, "the list of blocks");
  for (uint32_t i = 0; i < count; i++) {
    const char *name = setting[i].name;
    bb_require(program->ctx, name, "the name of a dim");
    bb_dim dim = bb_dim_find(program, name, strlen(name));
    if (dim == BB_NO_DIM) bb_fail(program->ctx, BB_ERROR_ARGUMENT, "there is no dim %s", name);
    if (setting[i].value < 1)
      bb_fail(program->ctx, BB_ERROR_ARGUMENT, "dim %s: a block has one element at least", name);
    block[dim] = setting[i].value;
  }
  return block;
}
