/* machine_fixture.c - see machine_fixture.h. */
#include "machine_fixture.h"

#include <math.h>

void fixture_begin(fixture *f) {
  *f = (fixture){.float64 = true};
  assert_int_equal(bb_context_create(NULL, &f->ctx), BB_OK);
  f->p = bb_program_create(f->ctx, "test");
  f->root = bb_graph_create(f->p);
  f->p->root = f->root;
  f->p->stage = BB_STAGE_BLOCK;
  f->arena = bb_arena_create(f->ctx);
}

void fixture_end(fixture *f) {
  bb_arena_destroy(f->arena);
  bb_program_destroy(f->p);
  assert_int_equal(f->ctx->deferred_count, 0);
  bb_context_destroy(f->ctx);
}

bb_dim fixture_dim(fixture *f, const char *name, int64_t extent, bool blocked) {
  return bb_dim_add(f->p, name, bb_extent_number(f->p, extent), blocked);
}

double fixture_random(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (double)(int64_t)(*state >> 11) / (double)(1ll << 52) - 1;
}

static size_t count_of(const fixture *f, uint32_t axes, const bb_dim *axis) {
  size_t count = 1;
  for (uint32_t i = 0; i < axes; i++) {
    const bb_extent *extent = bb_dim_get(f->p, axis[i])->extent;
    int64_t value = bb_extent_value(extent);
    count *= (size_t)(value >= 0 ? value : bb_extent_bind(f->p, extent, f->symbol));
  }
  return count;
}

uint32_t fixture_tensor(fixture *f, const char *name, bb_tensor_role role, bb_dtype dtype,
                        uint32_t axes, const bb_dim *axis) {
  const bb_extent *shape[8];
  for (uint32_t i = 0; i < axes; i++) shape[i] = bb_dim_get(f->p, axis[i])->extent;
  bb_tensor tensor = {.name = name,
                      .dtype = dtype,
                      .role = role,
                      .rank = axes,
                      .shape = shape,
                      .axes = axes,
                      .axis = axis};
  uint32_t index = bb_tensor_add(f->p, &tensor);
  if (role != BB_TENSOR_INPUT) return index;
  size_t count = count_of(f, axes, axis);
  double *data = BB_NEW(f->arena, double, count);
  uint64_t state = index + 1;
  for (size_t i = 0; i < count; i++) {
    double x = fixture_random(&state);
    data[i] = bb_dtype_is_float(dtype) ? bb_round_to(dtype, x) : floor(x * 4);
    if (dtype == BB_BOOL) data[i] = x > 0;
  }
  f->tensor[index] = (bb_interp_tensor){data, count};
  return index;
}

bb_value fixture_input(fixture *f, uint32_t tensor, bb_dim row, bb_dim col) {
  const bb_tensor *t = &f->p->tensor[tensor];
  bb_value value =
      bb_input_add(f->root, bb_type_of_axes(f->p, t->dtype, t->axes, t->axis, row, col));
  bb_node_get(f->root, value.node)->tensor = tensor;
  return value;
}

uint32_t fixture_output(fixture *f, const char *name, bb_value value) {
  const bb_type *type = bb_type_of(f->root, value);
  bb_dim axis[8];
  for (uint32_t i = 0; i < type->rank; i++) axis[i] = type->level[i].dim;
  uint32_t tensor = fixture_tensor(f, name, BB_TENSOR_OUTPUT, type->item.dtype, type->rank, axis);
  bb_node_get(f->root, bb_output_add(f->root, value))->tensor = tensor;
  return tensor;
}

bb_value fixture_input_view(fixture *f, const bb_type *type, const bb_access *access) {
  bb_value value = bb_input_add(f->root, type);
  bb_node *node = bb_node_get(f->root, value.node);
  node->access = bb_access_make(f->p, access);
  node->tensor = access->piece[0].source;
  return value;
}

uint32_t fixture_output_view(fixture *f, bb_value value, const bb_access *access) {
  uint32_t index = bb_output_add(f->root, value);
  bb_node *node = bb_node_get(f->root, index);
  node->access = bb_access_make(f->p, access);
  node->tensor = access->piece[0].source;
  return index;
}

static void run_body(bb_context *ctx, void *argument) {
  (void)ctx;
  fixture *f = argument;
  bb_interp_options options = {f->float64, f->symbol, f->block, f->loop_seed};
  bb_interp_graph(f->p, f->root, &options, f->tensor, f->arena, &f->counts);
}

static void run_program_body(bb_context *ctx, void *argument) {
  (void)ctx;
  fixture *f = argument;
  bb_interp_options options = {f->float64, f->symbol, f->block, f->loop_seed};
  bb_interp_program(f->p, &options, f->tensor, f->arena, &f->counts);
}

static bb_status run_with(fixture *f, bb_body *body) {
  assert_true(f->p->tensors <= MOST_TENSORS && f->p->dims <= MOST_DIMS);
  memset(f->passes, 0, sizeof f->passes);
  f->counts = (bb_interp_counts){.passes = f->passes};
  bb_status status = bb_protect(f->ctx, body, f);
  assert_int_equal(f->ctx->deferred_count, 0);
  return status;
}

bb_status fixture_run(fixture *f) {
  return run_with(f, run_body);
}
bb_status fixture_run_program(fixture *f) {
  return run_with(f, run_program_body);
}

double fixture_at(const fixture *f, uint32_t tensor, const int64_t *index) {
  const bb_tensor *t = &f->p->tensor[tensor];
  size_t at = 0;
  for (uint32_t i = 0; i < t->axes; i++) at = at * count_of(f, 1, &t->axis[i]) + (size_t)index[i];
  assert_non_null(f->tensor[tensor].data);
  assert_true(at < f->tensor[tensor].count);
  return f->tensor[tensor].data[at];
}

void assert_close(double got, double want, double tolerance) {
  if (isnan(got) && isnan(want)) return;
  if (got == want) return;
  if (!(fabs(got - want) <= tolerance * (1 + fabs(want))))
    fail_msg("got %.17g, want %.17g", got, want);
}
