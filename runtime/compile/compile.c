/* compile.c - programs become compiled models: in memory, or as a folder.
 */
#include "compile.h"

#include "../api.h"
#include "../gpu/gpu.h"
#include "../model/model.h"
#include "../model/plan_text.h"
#include "model_cache.h"

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

/* What a program is compiled for. */
typedef struct destination {
  const bb_gpu_api *gpu; /* NULL: the processor */
  const bb_device_class *class;
  uint32_t number;
  bb_device *device;    /* open while the program is compiled; NULL: a GPU that need not be here */
  bb_gpu_target target; /* of a GPU */
} destination;

static void close_device(void *argument) {
  destination *d = argument;
  if (d->device) d->class->close(d->device);
}

/* NULL, or a device of which its target alone is told, "sm_90a". */
static const bb_machine *supposed(const char *device, bb_arena *arena) {
  return bb_gpu_find_target(device) ? bb_gpu_suppose(arena, device) : NULL;
}

/* Deferred: end() ends it. */
static destination *begin(bb_program *program, const bb_compile_options *o, bb_arena *arena) {
  bb_context *ctx = program->ctx;
  destination *d = BB_NEW(arena, destination, 1);
  const char *device = o->device ? o->device : "cpu";
  if (o->version != BB_VERSION)
    bb_fail(ctx, BB_ERROR_ARGUMENT, "bb_compile_options.version is not BB_VERSION");
  const bb_machine *far = supposed(device, arena);
  d->gpu = far ? bb_gpu_find_target(device) : bb_gpu_find_numbered(device, &d->number);
  d->class = d->gpu ? bb_gpu_class(d->gpu) : bb_device_find(device);
  if (!d->class)
    bb_fail(ctx, BB_ERROR_ARGUMENT,
            "there is no device %s: only cpu, cuda and hip, or targets as sm_90a and gfx942",
            device);
  if (!far) d->device = d->class->open(ctx, d->number);
  bb_defer(ctx, close_device, d);
  if (d->gpu) d->target = far ? bb_gpu_supposed(far, device) : *bb_gpu_target_of(d->device);
  bb_api_choose(program, d->gpu ? device : "");
  return d;
}

static void end(bb_context *ctx, destination *d) {
  bb_undefer(ctx, d);
  close_device(d);
}

/* Keeps its target in `d`. */
static bb_draft_options options_of(bb_program *program, const bb_compile_options *o, destination *d,
                                   const bb_compile_way *way, bb_arena *arena) {
  bb_draft_options options = {0};
  if (o->blocks) options.block = bb_api_blocks(program, o->blocks, o->block, arena);
  if (!d->gpu) return options;
  options.target = &d->target;
  if (way) options.way = way->way;
  if (way && way->plain) d->target.units = BB_UNITS_NONE;
  if (way && way->warps && d->target.units) d->target.units = BB_UNITS_WARPS;
  return options;
}

/* folder: nothing interprets what has no kernel there. */
static bb_draft *draft_of(bb_program *program, const bb_draft_options *options,
                          const destination *d, bool folder, bb_arena *arena) {
  bb_draft *draft = bb_draft_make(program, options, arena);
  if (draft->refused && folder)
    bb_fail(program->ctx, BB_ERROR_UNSUPPORTED,
            "what has no kernel for %s cannot go into a folder, where nothing interprets it:\n%s",
            d->gpu ? d->target.name : "the CPU", draft->refused);
  tell_refused(program->ctx, draft->refused);
  draft->plan->features = d->gpu ? bb_arena_text(arena, d->target.name, strlen(d->target.name))
                                 : d->class->features(d->device, arena);
  return draft;
}

static const bb_gpu_code *code_of(bb_context *ctx, const destination *d, const bb_draft *draft,
                                  const char *cache, bb_arena *arena) {
  bb_gpu_made *made = BB_NEW(arena, bb_gpu_made, 1);
  bb_gpu_make(ctx, &d->target, draft->gpu, draft->plan, arena, made);
  return bb_gpu_build(ctx, &d->target, made, draft->plan, cache, arena);
}

/* For a GPU: as it was kept, or made and kept. */
static const bb_gpu_model *model_of(bb_program *program, const bb_draft_options *options,
                                    const destination *d, const char *cache, bool folder,
                                    bb_arena *arena) {
  bb_context *ctx = program->ctx;
  bb_cache_key key = bb_gpu_model_key(program, options, cache, arena);
  const bb_gpu_model *kept = bb_gpu_model_recall(ctx, arena, &key);
  if (kept) return kept;
  bb_gpu_model *model = BB_NEW(arena, bb_gpu_model, 1);
  bb_buffer text = {.arena = arena};
  bb_draft *draft = draft_of(program, options, d, folder, arena);
  bb_plan_write(&text, draft->plan);
  *model = (bb_gpu_model){text.data, text.length, code_of(ctx, d, draft, cache, arena)};
  if (!draft->refused) bb_gpu_model_keep(ctx, arena, &key, model); /* else told each time */
  return model;
}

/* Misc nodes that a device has no kernel for, where that costs copies. */
static void tell_brought_back(bb_context *ctx, const bb_model *m) {
  for (uint32_t i = 0; i < m->plan->steps && !m->class->host; i++) {
    const bb_plan_step *s = &m->plan->step[i];
    if (s->misc && !s->once && !bb_model_launches(m, i))
      bb_log(ctx, BB_LOG_WARNING,
             "%s runs on the processor, arrays copied there and back: there is no %s for %s",
             s->name, s->misc->op, m->class->name);
  }
}

/* What a model for the processor is loaded from; `code` is to be ended when it is. */
static void parts_for_cpu(bb_program *program, const bb_draft_options *options,
                          const destination *d, const char *cache, bb_cached *code,
                          bb_model_parts *parts, bb_arena *arena) {
  bb_buffer text = {.arena = arena};
  bb_draft *draft = draft_of(program, options, d, false, arena);
  if (draft->plan->kernels)
    bb_cache_get(program->ctx, arena, cache, draft->source, draft->length, code);
  bb_plan_write(&text, draft->plan);
  parts->text = text.data;
  parts->length = text.length;
  parts->code.path = code->path;
  parts->cached = code->hit;
}

static void parts_for_gpu(bb_program *program, const bb_draft_options *options,
                          const destination *d, const char *cache, bb_model_parts *parts,
                          bb_arena *arena) {
  if (!d->device)
    bb_fail(program->ctx, BB_ERROR_ARGUMENT,
            "%s is no device, but a target: a folder is made for it", d->target.name);
  const bb_gpu_model *made = model_of(program, options, d, cache, false, arena);
  parts->text = made->plan;
  parts->length = made->length;
  parts->code.memory = made->code;
  parts->cached = true;
}

bb_model *bb_compile(bb_program *program, const bb_compile_options *options,
                     const bb_compile_way *way) {
  bb_context *ctx = program->ctx;
  bb_arena *arena = bb_scratch(ctx);
  destination *d = begin(program, options, arena);
  bb_draft_options draft = options_of(program, options, d, way, arena);
  bb_cached code = {.hit = true};
  bb_model_parts parts = {.class = d->class,
                          .number = d->number,
                          .place = program->name,
                          .interpreter = &bb_interpreter_of_steps,
                          .data_file = -1,
                          .data = bb_constants_of(program, arena)};
  if (d->gpu)
    parts_for_gpu(program, &draft, d, options->cache, &parts, arena);
  else
    parts_for_cpu(program, &draft, d, options->cache, &code, &parts, arena);
  bb_model *model = bb_model_make(ctx, &parts);
  bb_cached_end(ctx, &code);
  tell_brought_back(ctx, model);
  end(ctx, d);
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
  call->model = bb_compile(call->program, call->options, NULL);
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
  const char *cache = call->options->cache;
  bb_require(ctx, call->folder, "the folder");
  destination *d = begin(call->program, call->options, arena);
  bb_draft_options options = options_of(call->program, call->options, d, NULL, arena);
  if (d->gpu) {
    const bb_gpu_model *made = model_of(call->program, &options, d, cache, true, arena);
    bb_draft draft = {.plan = bb_plan_read(arena, made->plan, made->length),
                      .data = bb_constants_of(call->program, arena)};
    bb_folder_write(ctx, &draft, made->code, call->folder, cache);
  } else {
    bb_draft *draft = draft_of(call->program, &options, d, true, arena);
    bb_folder_write(ctx, draft, NULL, call->folder, cache);
  }
  end(ctx, d);
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
  if (path && stat(path, &status) == 0 && S_ISDIR(status.st_mode))
    return bb_model_load_on(ctx, path, options ? options->device : NULL, model);
  bb_program *program;
  bb_status result = bb_program_read(ctx, path, &program);
  if (result != BB_OK) return result;
  result = bb_program_compile(program, options, model);
  bb_program_destroy(program);
  return result;
}
