/* compile.c - programs become compiled models: in memory, or as a folder.
 */
#include "compile.h"

#include "../api.h"
#include "../model/model.h"
#include "kernel_cache.h"
#include "plan_make.h"

#include <string.h>
#include <sys/stat.h>

/* --- a program's draft, and its code --- */

/* A line for each candidate that will be interpreted. */
static void tell_refused(bb_context *ctx, const char *line) {
  for (const char *end; line && *line; line = end + (*end == '\n')) {
    end = line + strcspn(line, "\n");
    const char *why = memchr(line, ':', (size_t)(end - line));
    int name = why ? (int)(why - line) : 0;
    bb_log(ctx, BB_LOG_WARNING, "%.*s is interpreted%.*s", name, line, (int)(end - line) - name,
           line + name);
  }
}

static bb_draft *draft_of(bb_program *program, const bb_compile_options *o, bb_arena *arena) {
  bb_context *ctx = program->ctx;
  if (o->version != BB_VERSION)
    bb_fail(ctx, BB_ERROR_ARGUMENT, "bb_compile_options.version is not BB_VERSION");
  bb_api_choose(program);
  bb_draft_options options = {.block = bb_api_blocks(program, o->blocks, o->block, arena)};
  bb_draft *draft = bb_draft_make(program, &options, arena);
  const bb_device_class *device = &bb_cpu_device;
  bb_device *cpu = device->open(ctx);
  draft->plan->features = device->features(cpu, arena);
  device->close(cpu);
  return draft;
}

bb_model *bb_compile(bb_program *program, const bb_compile_options *options) {
  bb_context *ctx = program->ctx;
  bb_arena *arena = bb_scratch(ctx);
  bb_draft *draft = draft_of(program, options, arena);
  tell_refused(ctx, draft->refused);
  bb_buffer text = {.arena = arena};
  bb_cached code = {.hit = true};
  if (draft->plan->kernels)
    bb_cache_get(ctx, arena, options->cache, draft->source, draft->length, &code);
  bb_plan_write(&text, draft->plan);
  bb_model_parts parts = {.text = text.data,
                          .length = text.length,
                          .code = code.path,
                          .place = draft->plan->name,
                          .cached = code.hit,
                          .interpreter = &bb_interpreter_of_steps,
                          .data_file = -1,
                          .data = draft->data};
  bb_model *model = bb_model_make(ctx, &parts);
  bb_cached_end(ctx, &code);
  bb_scratch_end(arena);
  return model;
}

/* --- the public calls --- */

static const bb_compile_options defaults = {.version = BB_VERSION};

typedef struct compile_call {
  bb_program *program;
  const bb_compile_options *options;
  const char *folder;
  bb_model *model;
} compile_call;

static void compile_body(bb_context *ctx, void *argument) {
  compile_call *call = argument;
  (void)ctx;
  call->model = bb_compile(call->program, call->options);
}

bb_status bb_program_compile(bb_program *program, const bb_compile_options *options,
                             bb_model **model) {
  compile_call call = {.program = program, .options = options ? options : &defaults};
  bb_status status = bb_protect(program->ctx, compile_body, &call);
  if (status == BB_OK) *model = call.model;
  return status;
}

static void folder_body(bb_context *ctx, void *argument) {
  compile_call *call = argument;
  bb_arena *arena = bb_scratch(ctx);
  bb_draft *draft = draft_of(call->program, call->options, arena);
  if (draft->refused)
    bb_fail(
        ctx, BB_ERROR_UNSUPPORTED,
        "what has no kernel for the CPU cannot go into a folder, where nothing interprets it:\n%s",
        draft->refused);
  bb_folder_write(ctx, draft, call->folder);
  bb_scratch_end(arena);
}

bb_status bb_program_compile_to(bb_program *program, const bb_compile_options *options,
                                const char *folder) {
  compile_call call = {
      .program = program, .options = options ? options : &defaults, .folder = folder};
  return bb_protect(program->ctx, folder_body, &call);
}

bb_status bb_model_open(bb_context *ctx, const char *path, const bb_compile_options *options,
                        bb_model **model) {
  struct stat status;
  if (stat(path, &status) == 0 && S_ISDIR(status.st_mode)) return bb_model_load(ctx, path, model);
  bb_program *program;
  bb_status result = bb_program_read(ctx, path, &program);
  if (result != BB_OK) return result;
  result = bb_program_compile(program, options, model);
  bb_program_destroy(program);
  return result;
}
