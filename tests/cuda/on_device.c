/* on_device.c - runs of a fused program on a device. */
#include "on_device.h"

#include "../../runtime/model/model.h"

#include <string.h>

static void check(bb_program *p, bb_status status) {
  if (status == BB_OK) return;
  const char *message = bb_context_message(p->ctx);
  bb_fail(p->ctx, status, "%s", bb_arena_text(p->arena, message, strlen(message)));
}

static void release(void *model) {
  bb_model_release(model);
}

static void destroy(void *session) {
  bb_session_destroy(session);
}

static uint32_t tensor_of(const bb_program *p, bb_tensor_role role, uint32_t index) {
  uint32_t t = 0;
  while (p->tensor[t].role != role || index-- > 0) t++;
  return t;
}

static void write_inputs(bb_program *p, const bb_model *m, bb_session *s, const bb_binding *in) {
  bb_tensor_info info;
  for (uint32_t i = 0; bb_model_get_tensor(m, BB_INPUT, i, &info); i++) {
    uint32_t t = tensor_of(p, BB_TENSOR_INPUT, i);
    const bb_interp_tensor *held = &in->tensor[t];
    int64_t *shape = BB_NEW(p->arena, int64_t, info.rank + 1);
    for (uint32_t a = 0; a < info.rank; a++)
      shape[a] = bb_extent_bind(p, p->tensor[t].shape[a], in->symbol);
    void *bytes = bb_arena_alloc(p->arena, held->count * bb_dtype_bytes(info.dtype) + 1);
    bb_interp_store(info.dtype, held->data, held->count, bytes);
    bb_tensor_view view = {.dtype = info.dtype, .rank = info.rank, .shape = shape, .data = bytes};
    check(p, bb_session_write(s, i, &view));
  }
  bb_extent_info extent;
  for (uint32_t i = 0; bb_model_get_extent(m, i, &extent); i++)
    if (!extent.follows) check(p, bb_session_set(s, extent.name, in->symbol[i]));
}

static void read_outputs(bb_program *p, uint32_t outputs, bb_session *s, bb_binding *out) {
  for (uint32_t i = 0; i < outputs; i++) {
    bb_tensor_view view;
    check(p, bb_session_get(s, BB_OUTPUT, i, &view));
    size_t count = 1;
    for (uint32_t a = 0; a < view.rank; a++) count *= (size_t)view.shape[a];
    size_t bytes = count * bb_dtype_bytes(view.dtype);
    void *held = bb_arena_alloc(p->arena, bytes + 1);
    check(p, bb_session_read(s, BB_OUTPUT, i, held, bytes));
    double *data = BB_NEW(p->arena, double, count + 1);
    bb_interp_load(view.dtype, held, count, data);
    out->tensor[tensor_of(p, BB_TENSOR_OUTPUT, i)] = (bb_interp_tensor){data, count};
  }
}

void run_on_device(bb_program *p, const char *device, const bb_compile_way *way,
                   const bb_binding *in, bb_binding *out, bb_model_info *info,
                   uint32_t *interpreted) {
  bb_compile_options options = {.version = BB_VERSION, .device = device};
  bb_model *m = bb_compile(p, &options, way);
  bb_defer(p->ctx, release, m);
  bb_session *s;
  check(p, bb_session_create(p->ctx, m, NULL, &s));
  bb_defer(p->ctx, destroy, s);
  write_inputs(p, m, s, in);
  for (int i = 0; i < ON_DEVICE_RUNS; i++) check(p, bb_session_run(s, NULL));
  bb_model_get_info(m, info);
  read_outputs(p, info->outputs, s, out);
  *interpreted = 0;
  for (uint32_t i = 0; i < m->plan->steps; i++)
    if (m->plan->step[i].program) *interpreted += m->plan->step[i].nodes;
  bb_undefer(p->ctx, s);
  bb_session_destroy(s);
  bb_undefer(p->ctx, m);
  bb_model_release(m);
}
