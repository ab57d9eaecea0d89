/* api_run.c - the public calls about arrays: files of them, runs on the interpreter, comparison.
 */
#include "api.h"

#include <string.h>

struct bb_arrays {
  bb_context *ctx;
  bb_arena *arena;
  uint32_t capacity;
  bb_npz npz;
};

struct bb_result {
  const bb_program *program;
  bb_program *own; /* of a model's run: its arrays, and nothing else */
  bool by_kernels;
  bb_arena *arena;
  bb_binding binding;
  bb_interp_counts counts;
  bb_cpu_counts kernels;
};

/* --- arrays --- */

typedef struct arrays_call {
  bool reads;
  const char *path;
  const bb_result *result;
  const bb_array_view *view;
  bb_arrays *arrays;
} arrays_call;

static bb_arrays *new_arrays(bb_context *ctx) {
  bb_arena *arena = bb_scratch(ctx); /* what is made in it will own it */
  bb_arrays *arrays = BB_NEW(arena, bb_arrays, 1);
  *arrays = (bb_arrays){.ctx = ctx, .arena = arena};
  return arrays;
}

static void make_body(bb_context *ctx, void *argument) {
  arrays_call *call = argument;
  bb_arrays *arrays = new_arrays(ctx);
  bb_npz *npz = NULL;
  if (call->reads) bb_require(ctx, call->path, "the path");
  if (call->reads) npz = bb_npz_read(arrays->arena, call->path);
  if (call->result)
    npz = bb_outputs_as_npz(call->result->program, &call->result->binding, arrays->arena);
  if (npz) arrays->npz = *npz;
  arrays->capacity = arrays->npz.count;
  bb_undefer(ctx, arrays->arena);
  call->arrays = arrays;
}

static bb_status make_arrays(bb_context *ctx, arrays_call call, bb_arrays **arrays) {
  bb_status status = bb_protect(ctx, make_body, &call);
  if (status == BB_OK) *arrays = call.arrays;
  return status;
}

bb_status bb_arrays_read(bb_context *ctx, const char *path, bb_arrays **arrays) {
  return make_arrays(ctx, (arrays_call){.reads = true, .path = path}, arrays);
}

bb_status bb_arrays_create(bb_context *ctx, bb_arrays **arrays) {
  return make_arrays(ctx, (arrays_call){0}, arrays);
}

bb_status bb_result_get_arrays(const bb_result *result, bb_arrays **arrays) {
  return make_arrays(result->program->ctx, (arrays_call){.result = result}, arrays);
}

void bb_arrays_destroy(bb_arrays *arrays) {
  if (arrays) bb_arena_destroy(arrays->arena);
}

static bb_npy_type find_type(const char *name) {
  for (uint32_t t = 0; t < BB_NPY_TYPE_COUNT; t++)
    if (strcmp(bb_npy_name((bb_npy_type)t), name) == 0) return (bb_npy_type)t;
  return BB_NPY_TYPE_COUNT;
}

static void add_body(bb_context *ctx, void *argument) {
  arrays_call *call = argument;
  const bb_array_view *view = call->view;
  bb_arrays *arrays = call->arrays;
  bb_require(ctx, view, "the array");
  bb_require(ctx, view->name, "the name of an array");
  bb_require(ctx, view->type, "the type of an array");
  if (view->rank) bb_require(ctx, view->shape, "the shape of an array");
  if (view->bytes) bb_require(ctx, view->data, "the data of an array");
  bb_npz_array copy = {.type = find_type(view->type), .rank = view->rank, .count = 1};
  if (copy.type == BB_NPY_TYPE_COUNT)
    bb_fail(ctx, BB_ERROR_ARGUMENT, "%s: there is no element type %s", view->name, view->type);
  int64_t *shape = BB_NEW(arrays->arena, int64_t, view->rank);
  for (uint32_t i = 0; i < view->rank; i++) {
    shape[i] = view->shape[i];
    if (shape[i] < 0 || __builtin_mul_overflow(copy.count, (size_t)shape[i], &copy.count))
      bb_fail(ctx, BB_ERROR_ARGUMENT, "%s: extent %lld of axis %u", view->name, (long long)shape[i],
              i);
  }
  copy.shape = shape;
  if (__builtin_mul_overflow(copy.count, bb_npy_bytes(copy.type), &copy.bytes) ||
      copy.bytes != view->bytes)
    bb_fail(ctx, BB_ERROR_ARGUMENT, "%s: %zu bytes do not make its shape", view->name, view->bytes);
  copy.name = bb_arena_text(arrays->arena, view->name, strlen(view->name));
  void *data = bb_arena_alloc(arrays->arena, copy.bytes);
  if (copy.bytes) memcpy(data, view->data, copy.bytes);
  copy.data = data;
  BB_GROW(arrays->arena, arrays->npz.array, arrays->capacity, (size_t)arrays->npz.count + 1);
  arrays->npz.array[arrays->npz.count++] = copy;
}

bb_status bb_arrays_add(bb_arrays *arrays, const bb_array_view *view) {
  arrays_call call = {.view = view, .arrays = arrays};
  return bb_protect(arrays->ctx, add_body, &call);
}

bool bb_arrays_get(const bb_arrays *arrays, uint32_t index, bb_array_view *view) {
  if (index >= arrays->npz.count) return false;
  const bb_npz_array *array = &arrays->npz.array[index];
  *view = (bb_array_view){
      array->name, bb_npy_name(array->type), array->rank, array->shape, array->bytes, array->data};
  return true;
}

static void write_body(bb_context *ctx, void *argument) {
  arrays_call *call = argument;
  bb_require(ctx, call->path, "the path");
  bb_npz_write(ctx, call->path, &call->arrays->npz);
}

bb_status bb_arrays_write(bb_arrays *arrays, const char *path) {
  arrays_call call = {.path = path, .arrays = arrays};
  return bb_protect(arrays->ctx, write_body, &call);
}

/* --- extents --- */

typedef struct extents_call {
  bb_program *program;
  const bb_arrays *inputs;
  void (*visit)(void *user, const bb_setting *extent);
  void *user;
} extents_call;

static void extents_body(bb_context *ctx, void *argument) {
  const extents_call *call = argument;
  bb_program *program = call->program;
  if (program->stage < BB_STAGE_BLOCK)
    bb_fail(ctx, BB_ERROR_ARGUMENT, "an array program has no arrays yet: take it to a later stage");
  bb_arena *scratch = bb_scratch(ctx);
  const int64_t *value = bb_bind_symbols(program, &call->inputs->npz, scratch);
  for (uint32_t i = 0; i < program->symbols; i++)
    if (value[i] >= 0) call->visit(call->user, &(bb_setting){program->symbol[i], value[i]});
  bb_scratch_end(scratch);
}

bb_status bb_program_visit_extents(bb_program *program, const bb_arrays *inputs,
                                   void (*visit)(void *user, const bb_setting *extent),
                                   void *user) {
  extents_call call = {program, inputs, visit, user};
  return bb_protect(program->ctx, extents_body, &call);
}

/* --- runs --- */

typedef struct run_call {
  bb_program *program;
  bb_model *model;
  const bb_arrays *inputs;
  const bb_run_options *options;
  bb_result *result;
} run_call;

static int64_t *preset_symbols(const bb_program *program, const bb_run_options *o,
                               bb_arena *arena) {
  int64_t *symbol = BB_NEW(arena, int64_t, program->symbols);
  for (uint32_t s = 0; s < program->symbols; s++) symbol[s] = -1;
  for (uint32_t i = 0; i < o->symbols; i++) {
    uint32_t s = 0;
    while (s < program->symbols && strcmp(program->symbol[s], o->symbol[i].name) != 0) s++;
    if (s == program->symbols)
      bb_fail(program->ctx, BB_ERROR_ARGUMENT, "there is no run-time extent %s", o->symbol[i].name);
    if (o->symbol[i].value < 0)
      bb_fail(program->ctx, BB_ERROR_ARGUMENT, "extent %s cannot be negative", o->symbol[i].name);
    symbol[s] = o->symbol[i].value;
  }
  return symbol;
}

static bool wants_kernels(const bb_program *program, const bb_run_options *o) {
  if (o->mode == BB_RUN_INTERPRET || program->stage < BB_STAGE_FUSED) return false;
  return o->mode == BB_RUN_KERNELS || !o->float64;
}

static void run_body(bb_context *ctx, void *argument) {
  run_call *call = argument;
  const bb_run_options *o = call->options;
  if (o->version != BB_VERSION)
    bb_fail(ctx, BB_ERROR_ARGUMENT, "bb_run_options.version is not BB_VERSION");
  if (call->program->stage < BB_STAGE_BLOCK)
    bb_fail(ctx, BB_ERROR_ARGUMENT, "an array program does not run: take it to a later stage");
  bb_arena *arena = bb_scratch(ctx);
  bb_result *result = BB_NEW(arena, bb_result, 1);
  *result = (bb_result){.program = call->program, .arena = arena};
  bb_drive_prepare(call->program);
  int64_t *preset = preset_symbols(call->program, o, arena);
  bb_bind_inputs(call->program, &call->inputs->npz, preset, arena, &result->binding);
  bb_interp_options options = {.float64 = o->float64,
                               .symbol = result->binding.symbol,
                               .told = result->binding.symbol,
                               .block = bb_api_blocks(call->program, o->blocks, o->block, arena)};
  bb_kernel_run kernels = {call->program,    o,     options.block,
                           &result->binding, arena, &result->kernels};
  result->by_kernels = wants_kernels(call->program, o) && bb_run_kernels(&kernels);
  if (!result->by_kernels)
    bb_drive_run(call->program, &options, &result->binding, arena, &result->counts);
  bb_undefer(ctx, arena);
  call->result = result;
}

bb_status bb_program_run(bb_program *program, const bb_arrays *inputs,
                         const bb_run_options *options, bb_result **result) {
  static const bb_run_options defaults = {.version = BB_VERSION};
  run_call call = {.program = program, .inputs = inputs, .options = options ? options : &defaults};
  bb_status status = bb_protect(program->ctx, run_body, &call);
  if (status == BB_OK) *result = call.result;
  return status;
}

static void run_model_body(bb_context *ctx, void *argument) {
  static const bb_run_options defaults = {.version = BB_VERSION};
  run_call *call = argument;
  const bb_run_options *o = call->options ? call->options : &defaults;
  if (o->version != BB_VERSION)
    bb_fail(ctx, BB_ERROR_ARGUMENT, "bb_run_options.version is not BB_VERSION");
  bb_arena *arena = bb_scratch(ctx);
  bb_result *result = BB_NEW(arena, bb_result, 1);
  bb_program *program = bb_model_arrays(ctx, call->model);
  bb_program_defer(program);
  *result = (bb_result){.program = program, .own = program, .arena = arena, .by_kernels = true};
  int64_t *preset = preset_symbols(program, o, arena);
  bb_bind_inputs(program, &call->inputs->npz, preset, arena, &result->binding);
  bb_kernel_run kernels = {program, o, NULL, &result->binding, arena, &result->kernels};
  bb_run_model(&kernels, call->model);
  bb_undefer(ctx, program);
  bb_undefer(ctx, arena);
  call->result = result;
}

bb_status bb_model_run(bb_context *ctx, bb_model *model, const bb_arrays *inputs,
                       const bb_run_options *options, bb_result **result) {
  run_call call = {.model = model, .inputs = inputs, .options = options};
  bb_status status = bb_protect(ctx, run_model_body, &call);
  if (status == BB_OK) *result = call.result;
  return status;
}

void bb_result_destroy(bb_result *result) {
  if (!result) return;
  bb_program_destroy(result->own);
  bb_arena_destroy(result->arena);
}

bool bb_result_by_kernels(const bb_result *result) {
  return result->by_kernels;
}

void bb_result_get_counts(const bb_result *result, bb_run_counts *counts) {
  const bb_cpu_counts *k = &result->kernels;
  *counts = (bb_run_counts){.operations = result->counts.operations,
                            .buffered_read = result->counts.buffered_read,
                            .buffered_written = result->counts.buffered_written,
                            .fused = k->fused,
                            .misc = k->misc,
                            .interpreted = k->interpreted,
                            .kernels = k->kernels,
                            .sources = k->sources};
}

uint32_t bb_result_get_variant(const bb_result *result) {
  return result->kernels.variant;
}

/* --- comparison --- */

typedef struct compare_call {
  const bb_result *result;
  const bb_arrays *want;
  double tolerance;
  bb_write_function *write;
  void *user;
} compare_call;

static void compare_body(bb_context *ctx, void *argument) {
  const compare_call *call = argument;
  const bb_result *result = call->result;
  bb_buffer out = {.arena = bb_scratch(ctx)};
  bb_comparison *comparison;
  uint32_t count = bb_compare_outputs(result->program, &result->binding, &call->want->npz,
                                      call->tolerance, out.arena, &comparison);
  uint32_t wrong = 0;
  const char *first = "";
  for (uint32_t i = 0; i < count; i++) {
    bb_put(&out, comparison[i].pass ? "good  " : "WRONG ");
    bb_comparison_print(&out, result->program, &result->binding, &comparison[i]);
    bb_put(&out, "\n");
    if (!comparison[i].pass && wrong++ == 0) first = comparison[i].name;
  }
  if (call->write) bb_api_flush(&out, call->write, call->user);
  if (wrong)
    bb_fail(ctx, BB_ERROR_MISMATCH, "%u of %u outputs differ: %s%s", wrong, count, first,
            wrong > 1 ? ", ..." : "");
  bb_scratch_end(out.arena);
}

bb_status bb_result_compare(const bb_result *result, const bb_arrays *want, double tolerance,
                            bb_write_function *write, void *user) {
  compare_call call = {result, want, tolerance, write, user};
  return bb_protect(result->program->ctx, compare_body, &call);
}
