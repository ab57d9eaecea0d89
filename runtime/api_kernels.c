/* api_kernels.c - a run of a program by its kernels: compiled (or from the cache), bound to arrays of the
 * interpreter's form, run once. */
#include "api.h"
#include "compile/compile.h"
#include "cpu/cpu.h"
#include "interp/interp.h"

#include <string.h>

typedef struct run_call {
  bb_context *ctx;
  bb_program *program;
  const bb_run_options *options;
  bb_binding *binding;
  bb_arena *arena;
  bb_model *model;
  bb_session *session;
  bb_cpu_counts *counts;
} run_call;

/* --- as a compiled model --- */

static void check(const run_call *call, bb_status status) {
  if (status == BB_OK) return;
  const char *message = bb_context_message(call->ctx);
  bb_fail(call->ctx, status, "%s", bb_arena_text(call->arena, message, strlen(message)));
}

static void release_model(void *model) {
  bb_model_release(model);
}

static void destroy_session(void *session) {
  bb_session_destroy(session);
}

static void compile_body(bb_context *ctx, void *argument) {
  run_call *call = argument;
  (void)ctx;
  bb_compile_options options = {
      .version = BB_VERSION, .blocks = call->options->blocks, .block = call->options->block};
  call->model = bb_compile(call->program, &options, NULL);
}

static uint32_t tensor_named(const run_call *call, bb_tensor_role role, uint32_t index) {
  uint32_t t = 0;
  for (;; t++)
    if (call->program->tensor[t].role == role && index-- == 0) return t;
}

static void bind_inputs(const run_call *call) {
  bb_tensor_info info;
  for (uint32_t i = 0; bb_model_get_tensor(call->model, BB_INPUT, i, &info); i++) {
    uint32_t t = tensor_named(call, BB_TENSOR_INPUT, i);
    const bb_interp_tensor *held = &call->binding->tensor[t];
    const bb_tensor *tensor = &call->program->tensor[t];
    int64_t *shape = BB_NEW(call->arena, int64_t, info.rank + 1);
    for (uint32_t a = 0; a < info.rank; a++)
      shape[a] = bb_extent_bind(call->program, tensor->shape[a], call->binding->symbol);
    void *bytes = bb_arena_alloc(call->arena, held->count * bb_dtype_bytes(info.dtype) + 1);
    bb_interp_store(info.dtype, held->data, held->count, bytes);
    bb_tensor_view view = {.dtype = info.dtype, .rank = info.rank, .shape = shape, .data = bytes};
    check(call, bb_session_bind(call->session, BB_INPUT, i, &view));
  }
  for (uint32_t s = 0; s < call->options->symbols; s++) {
    const bb_setting *set = &call->options->symbol[s];
    check(call, bb_session_set(call->session, set->name, set->value));
  }
}

static void take_outputs(const run_call *call) {
  bb_tensor_view view;
  bb_model_info info;
  bb_model_get_info(call->model, &info);
  for (uint32_t i = 0; i < info.outputs; i++) {
    check(call, bb_session_get(call->session, BB_OUTPUT, i, &view));
    size_t count = 1;
    for (uint32_t a = 0; a < view.rank; a++) count *= (size_t)view.shape[a];
    double *data = BB_NEW(call->arena, double, count + 1);
    bb_interp_load(view.dtype, view.data, count, data);
    call->binding->tensor[tensor_named(call, BB_TENSOR_OUTPUT, i)] =
        (bb_interp_tensor){data, count};
  }
}

static void run_model(run_call *call) {
  bb_context *ctx = call->ctx;
  bb_session_options options = {.version = BB_VERSION, .threads = call->options->threads};
  bb_defer(ctx, release_model, call->model);
  check(call, bb_session_create(ctx, call->model, &options, &call->session));
  bb_defer(ctx, destroy_session, call->session);
  bind_inputs(call);
  check(call, bb_session_run(call->session, NULL));
  take_outputs(call);
  bb_model_info info;
  bb_model_get_info(call->model, &info);
  *call->counts = (bb_cpu_counts){
      .fused = info.fused, .misc = info.misc, .kernels = info.kernels, .sources = info.sources};
  bb_undefer(ctx, call->session);
  bb_session_destroy(call->session);
  bb_undefer(ctx, call->model);
  bb_model_release(call->model);
}

/* --- with steps that are interpreted, or everything in double --- */

static void destroy_plan(void *plan) {
  bb_cpu_plan_destroy(plan);
}

static void run_plan(const run_call *call, const int64_t *block) {
  bb_cpu_options options = {
      .threads = call->options->threads, .exact = call->options->float64, .block = block};
  bb_cpu_plan *plan = bb_cpu_plan_make(call->program, &options);
  bb_defer(call->ctx, destroy_plan, plan);
  bb_cpu_run_binding(plan, call->binding, call->arena);
  bb_cpu_plan_count(plan, call->counts);
  bb_undefer(call->ctx, plan);
  bb_cpu_plan_destroy(plan);
}

void bb_run_kernels(bb_program *program, const bb_run_options *options, const int64_t *block,
                    bb_binding *binding, bb_arena *arena, bb_cpu_counts *counts) {
  run_call call = {.ctx = program->ctx,
                   .program = program,
                   .options = options,
                   .binding = binding,
                   .arena = arena,
                   .counts = counts};
  bb_status status = BB_ERROR_UNSUPPORTED;
  if (!options->float64) status = bb_protect(call.ctx, compile_body, &call);
  if (status == BB_OK)
    run_model(&call);
  else if (status == BB_ERROR_UNSUPPORTED)
    run_plan(&call, block);
  else
    check(&call, status);
}
