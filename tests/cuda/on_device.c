/* on_device.c - runs of a fused program on a device. */
#include "on_device.h"

#include "../../runtime/api.h"
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

/* What the binding says of extents, of which some no input's shape tells. */
static bb_run_options extents_of(bb_program *p, const bb_model *m, const bb_binding *in) {
  bb_setting *symbol = BB_NEW(p->arena, bb_setting, p->symbols + 1);
  bb_run_options options = {.version = BB_VERSION, .symbol = symbol};
  bb_extent_info extent;
  for (uint32_t i = 0; bb_model_get_extent(m, i, &extent); i++)
    if (!extent.follows) symbol[options.symbols++] = (bb_setting){extent.name, in->symbol[i]};
  return options;
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
  bb_run_options extents = extents_of(p, m, in);
  bb_kernel_run run = {
      .program = p, .options = &extents, .binding = (bb_binding *)in, .arena = p->arena};
  bb_run_give(&run, m, s);
  for (int i = 0; i < ON_DEVICE_RUNS; i++) check(p, bb_session_run(s, NULL));
  bb_model_get_info(m, info);
  run.binding = out;
  bb_run_take(&run, m, s);
  *interpreted = 0;
  for (uint32_t i = 0; i < m->plan->steps; i++)
    if (m->plan->step[i].program) *interpreted += m->plan->step[i].nodes;
  bb_undefer(p->ctx, s);
  bb_session_destroy(s);
  bb_undefer(p->ctx, m);
  bb_model_release(m);
}
