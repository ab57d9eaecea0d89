/* api_kernels.c - a run by kernels of arrays that are held as the interpreter holds them: a program's,
 * compiled or from the cache, or a compiled model's.
 */
#include "api.h"

#include "compile/compile.h"
#include "cpu/cpu.h"
#include "gpu/gpu.h"
#include "interp/interp.h"
#include "model/model.h"
#include "model/solve.h"

#include <string.h>

static void check(const bb_kernel_run *run, bb_status status) {
  bb_context *ctx = run->program->ctx;
  if (status == BB_OK) return;
  const char *message = bb_context_message(ctx);
  bb_fail(ctx, status, "%s", bb_arena_text(run->arena, message, strlen(message)));
}

/* --- a compiled model --- */

static uint32_t tensor_named(const bb_kernel_run *run, bb_tensor_role role, uint32_t index) {
  uint32_t t = 0;
  for (;; t++)
    if (run->program->tensor[t].role == role && index-- == 0) return t;
}

void bb_run_give(const bb_kernel_run *run, const bb_model *model, bb_session *session) {
  bb_tensor_info info;
  for (uint32_t i = 0; bb_model_get_tensor(model, BB_INPUT, i, &info); i++) {
    uint32_t t = tensor_named(run, BB_TENSOR_INPUT, i);
    const bb_interp_tensor *held = &run->binding->tensor[t];
    const bb_tensor *tensor = &run->program->tensor[t];
    int64_t *shape = BB_NEW(run->arena, int64_t, info.rank + 1);
    for (uint32_t a = 0; a < info.rank; a++)
      shape[a] = bb_extent_bind(run->program, tensor->shape[a], run->binding->symbol);
    void *bytes = bb_arena_alloc(run->arena, held->count * bb_dtype_bytes(info.dtype) + 1);
    bb_interp_store(info.dtype, held->data, held->count, bytes);
    bb_tensor_view view = {.dtype = info.dtype, .rank = info.rank, .shape = shape, .data = bytes};
    check(run, bb_session_write(session, i, &view));
  }
  for (uint32_t s = 0; s < run->options->symbols; s++)
    check(run,
          bb_session_set(session, run->options->symbol[s].name, run->options->symbol[s].value));
}

void bb_run_take(const bb_kernel_run *run, const bb_model *model, bb_session *session) {
  bb_tensor_info info;
  for (uint32_t i = 0; bb_model_get_tensor(model, BB_OUTPUT, i, &info); i++) {
    bb_tensor_view view;
    check(run, bb_session_get(session, BB_OUTPUT, i, &view));
    uint32_t t = tensor_named(run, BB_TENSOR_OUTPUT, i);
    size_t count = 1;
    for (uint32_t a = 0; a < view.rank; a++) {
      count *= (size_t)view.shape[a];
      bb_extent_solve(run->program->tensor[t].shape[a], view.shape[a], run->binding->symbol);
    }
    double *data = BB_NEW(run->arena, double, count + 1);
    size_t bytes = count * bb_dtype_bytes(view.dtype);
    void *held = bb_arena_alloc(run->arena, bytes + 1);
    check(run, bb_session_read(session, BB_OUTPUT, i, held, bytes));
    bb_interp_load(view.dtype, held, count, data);
    bb_interp_check(run->program->ctx, info.name, view.dtype, data, count);
    run->binding->tensor[t] = (bb_interp_tensor){data, count};
  }
}

static void destroy_session(void *session) {
  bb_session_destroy(session);
}

void bb_run_model(const bb_kernel_run *run, bb_model *model) {
  bb_context *ctx = run->program->ctx;
  bb_session_options options = {.version = BB_VERSION, .threads = run->options->threads};
  bb_session *session;
  bb_model_info info;
  check(run, bb_session_create(ctx, model, &options, &session));
  bb_defer(ctx, destroy_session, session);
  bb_run_give(run, model, session);
  check(run, bb_session_run(session, NULL));
  bb_model_get_info(model, &info);
  bb_run_take(run, model, session);
  *run->counts =
      (bb_cpu_counts){.sources = info.sources, .variant = bb_session_get_variant(session)};
  for (uint32_t i = 0; i < model->plan->steps; i++) {
    const bb_plan_step *step = &model->plan->step[i];
    if (!bb_model_variant_has(model, run->counts->variant, i)) continue;
    run->counts->kernels += step->kernel != BB_NONE;
    *(step->program ? &run->counts->interpreted
      : step->misc  ? &run->counts->misc
                    : &run->counts->fused) += step->nodes;
  }
  bb_undefer(ctx, session);
  bb_session_destroy(session);
}

/* Tensors of one side are in the order of the model. */
bb_program *bb_model_arrays(bb_context *ctx, const bb_model *model) {
  const bb_plan *plan = model->plan;
  bb_program *program = bb_program_create(ctx, plan->name);
  bb_program_defer(program);
  for (uint32_t i = 0; i < plan->extents; i++) bb_symbol_index(program, plan->symbol[i]);
  for (uint32_t t = 0; t < plan->tensors; t++) {
    const bb_plan_tensor *from = &plan->tensor[t];
    if (from->role != BB_TENSOR_INPUT && from->role != BB_TENSOR_OUTPUT) continue;
    bb_tensor tensor = {.name = from->name,
                        .dtype = from->dtype,
                        .role = from->role,
                        .rank = from->rank,
                        .shape = from->shape};
    bb_tensor_add(program, &tensor);
  }
  bb_undefer(ctx, program);
  return program;
}

/* --- a program --- */

typedef struct compiling {
  const bb_kernel_run *run;
  bb_model *model;
} compiling;

static void compile_body(bb_context *ctx, void *argument) {
  compiling *call = argument;
  const bb_run_options *o = call->run->options;
  bb_compile_options options = {
      .version = BB_VERSION, .blocks = o->blocks, .block = o->block, .device = o->device};
  (void)ctx;
  call->model = bb_compile(call->run->program, &options, NULL);
}

static void destroy_plan(void *plan) {
  bb_cpu_plan_destroy(plan);
}

/* Everything in double. */
static void run_plan(bb_context *ctx, void *argument) {
  const bb_kernel_run *run = ((compiling *)argument)->run;
  bb_cpu_options options = {
      .threads = run->options->threads, .exact = run->options->float64, .block = run->block};
  bb_cpu_plan *plan = bb_cpu_plan_make(run->program, &options);
  bb_defer(ctx, destroy_plan, plan);
  bb_cpu_run_binding(plan, run->binding, run->arena);
  bb_cpu_plan_count(plan, run->counts);
  bb_undefer(ctx, plan);
  bb_cpu_plan_destroy(plan);
}

static void release_model(void *model) {
  bb_model_release(model);
}

typedef struct writing {
  bb_program *program;
  const char *target, *folder;
} writing;

static void write_body(bb_context *ctx, void *argument) {
  const writing *w = argument;
  bb_require(ctx, w->target, "the target");
  bb_require(ctx, w->folder, "the folder");
  if (w->program->stage != BB_STAGE_FUSED)
    bb_fail(ctx, BB_ERROR_ARGUMENT, "only a fused program has kernels");
  bb_gpu_write(w->program, w->target, w->folder);
}

bb_status bb_program_write_kernels(bb_program *program, const char *target, const char *folder) {
  writing w = {program, target, folder};
  return bb_protect(program->ctx, write_body, &w);
}

bool bb_run_kernels(const bb_kernel_run *run) {
  bb_context *ctx = run->program->ctx;
  const char *device = run->options->device;
  compiling call = {.run = run};
  bool cpu = !device || strcmp(device, "cpu") == 0, exact = cpu && run->options->float64;
  bb_status status = bb_protect(ctx, exact ? run_plan : compile_body, &call);
  bool lacking = status == BB_ERROR_IO || status == BB_ERROR_UNSUPPORTED;
  if (lacking && cpu && run->options->mode == BB_RUN_BEST) {
    bb_log(ctx, BB_LOG_WARNING, "interpreted: %s", bb_context_message(ctx));
    ctx->status = BB_OK;
    return false;
  }
  check(run, status);
  if (exact) return true;
  bb_defer(ctx, release_model, call.model);
  bb_run_model(run, call.model);
  bb_undefer(ctx, call.model);
  bb_model_release(call.model);
  return true;
}
