/* session.c - sessions: made, bound, asked, and run. */
#include "session.h"

#include <string.h>
#include <time.h>

/* --- making --- */

static void use(bb_session *s, uint32_t tensor, uint32_t step) {
  bb_place *place = &s->place[tensor];
  if (step < place->first) place->first = step;
  if (step > place->last) place->last = step;
}

/* A session of load time uses what stays in the model, so it has no lifetimes.  What is bound with
 * strides is copied before the first step and after the last. */
static void find_lifetimes(bb_session *s) {
  const bb_plan *p = s->model->plan;
  for (uint32_t t = 0; t < p->tensors; t++)
    s->place[t] = (bb_place){.first = UINT32_MAX, .last = 0};
  for (uint32_t i = 0; i < p->steps; i++) {
    const bb_plan_step *step = &p->step[i];
    if (step->once) continue;
    for (uint32_t k = 0; k < step->arguments; k++)
      if (step->argument[k].tensor != BB_NONE) use(s, step->argument[k].tensor, i);
    for (uint32_t k = 0; k < step->nin; k++)
      for (uint32_t n = 0; n < step->in[k].pieces; n++) use(s, step->in[k].piece[n].tensor, i);
    for (uint32_t k = 0; k < step->nout; k++)
      for (uint32_t n = 0; n < step->out[k].pieces; n++) use(s, step->out[k].piece[n].tensor, i);
  }
  for (uint32_t t = 0; t < p->tensors; t++) {
    if (p->tensor[t].role == BB_TENSOR_INPUT) use(s, t, 0);
    if (p->tensor[t].role == BB_TENSOR_OUTPUT) use(s, t, p->steps);
  }
}

static void make_room(bb_session *s) {
  const bb_plan *p = s->model->plan;
  bb_arena *a = s->arena;
  s->preset = BB_NEW(a, int64_t, p->symbols + 1);
  s->symbol = BB_NEW(a, int64_t, p->symbols + 1);
  for (uint32_t i = 0; i < p->symbols; i++) s->preset[i] = s->symbol[i] = -1;
  s->bound = BB_NEW(a, bb_bound, p->tensors + 1);
  s->place = BB_NEW(a, bb_place, p->tensors + 1);
  s->data = BB_NEW(a, void *, p->tensors + 1);
  s->order = BB_NEW(a, uint32_t, p->tensors + 1);
  s->near = BB_NEW(a, void *, p->tensors + 1);
  s->ready = BB_NEW(a, bb_ready, p->steps + 1);
  for (uint32_t i = 0; i < p->steps; i++) {
    s->ready[i].extent = BB_NEW(a, int64_t, p->step[i].extents + 1);
    s->ready[i].offset = BB_NEW(a, int64_t, p->step[i].arguments + 1);
    s->ready[i].argument = BB_NEW(a, void *, p->step[i].arguments + 1);
  }
  find_lifetimes(s);
}

static void destroy(bb_session *s) {
  const bb_model *m = s->model;
  for (uint32_t t = 0; s->place && t < m->plan->tensors; t++)
    if (s->place[t].own) m->class->release(m->device, s->place[t].own, s->place[t].own_bytes);
  for (uint32_t t = 0; s->place && t < m->plan->tensors; t++)
    if (s->place[t].mirror) bb_resize(s->ctx, s->place[t].mirror, s->place[t].mirror_bytes, 0);
  for (uint32_t i = 0; s->ready && i < m->plan->steps; i++)
    if (s->ready[i].prepared) m->class->forget(s->ready[i].prepared);
  if (s->own) m->class->release(m->device, s->own, s->own_bytes);
  if (s->queue) m->class->queue_close(s->queue);
  bb_lab_destroy(s->lab);
  bool once = s->once;
  bb_arena *arena = s->arena;
  bb_arena_destroy(arena);
  if (!once) bb_model_release((bb_model *)m);
}

static void destroy_cleanup(void *session) {
  destroy(session);
}

static void destroy_arena(void *arena) {
  bb_arena_destroy(arena);
}

/* Deferred on the context until it is complete. */
static bb_session *make(bb_context *ctx, bb_model *model, const bb_session_options *options,
                        bool once) {
  bb_arena *arena = bb_arena_create(ctx);
  bb_defer(ctx, destroy_arena, arena);
  bb_session *s = BB_NEW(arena, bb_session, 1);
  *s = (bb_session){.ctx = ctx, .arena = arena, .model = model, .options = *options, .once = once};
  bb_undefer(ctx, arena);
  if (!once) bb_model_hold(model);
  bb_defer(ctx, destroy_cleanup, s);
  make_room(s);
  bb_queue_options queue = {.threads = options->threads,
                            .parallel = options->parallel,
                            .parallel_user = options->parallel_user};
  s->queue = model->class->queue_open(model->device, ctx, &queue);
  for (uint32_t i = 0; i < model->plan->steps && !s->lab; i++)
    if (model->plan->step[i].once == once && !bb_model_launches(model, i))
      s->lab = bb_lab_create(ctx, model);
  return s;
}

typedef struct create_call {
  bb_model *model;
  const bb_session_options *options;
  bb_session *session;
} create_call;

static void create_body(bb_context *ctx, void *argument) {
  create_call *call = argument;
  if (call->options->version != BB_VERSION)
    bb_fail(ctx, BB_ERROR_ARGUMENT, "bb_session_options.version is not BB_VERSION");
  call->session = make(ctx, call->model, call->options, false);
  bb_undefer(ctx, call->session);
}

bb_status bb_session_create(bb_context *ctx, bb_model *model, const bb_session_options *options,
                            bb_session **session) {
  static const bb_session_options defaults = {.version = BB_VERSION};
  create_call call = {.model = model, .options = options ? options : &defaults};
  bb_status status = bb_protect(ctx, create_body, &call);
  if (status == BB_OK) *session = call.session;
  return status;
}

void bb_session_destroy(bb_session *session) {
  if (session) destroy(session);
}

/* The run is over: data that a kernel refused shows now. */
static void end_run(bb_session *s) {
  const bb_model *m = s->model;
  int64_t element = 0;
  if (!m->class->queue_fault) {
    m->class->queue_wait(s->queue, s->ctx);
    return;
  }
  uint32_t step = m->class->queue_fault(s->queue, s->ctx, &element);
  if (step == BB_NONE) return;
  const bb_plan_step *at = &m->plan->step[step];
  bb_fail(s->ctx, BB_ERROR_INPUT,
          "misc node \"%s\": %s: an index (element %lld of the indices) is out of range", at->name,
          at->misc->op, (long long)element);
}

/* Most models have nothing to do at load, and start no threads for it. */
void bb_session_run_once(bb_context *ctx, bb_model *model) {
  static const bb_session_options defaults = {.version = BB_VERSION};
  bool any = false;
  for (uint32_t i = 0; i < model->plan->steps; i++) any |= model->plan->step[i].once;
  if (!any) return;
  bb_session *s = make(ctx, model, &defaults, true);
  bb_session_lay_out(s);
  bb_session_place(s);
  bb_session_steps(s);
  end_run(s);
  bb_undefer(ctx, s);
  destroy(s);
}

/* --- binding --- */

typedef struct bind_call {
  bb_session *session;
  bb_side side;
  uint32_t index;
  const bb_tensor_view *view;
  const char *extent;
  int64_t value;
  void *stream;
} bind_call;

uint32_t bb_session_tensor(const bb_session *s, bb_side side, uint32_t index) {
  const bb_model *m = s->model;
  if ((unsigned)side > BB_OUTPUT || index >= m->sides[side])
    bb_fail(s->ctx, BB_ERROR_ARGUMENT, "there is no %s %u", side == BB_INPUT ? "input" : "output",
            index);
  return m->side[side][index];
}

static bool is_dense(const bb_bound *bound, uint32_t rank) {
  int64_t stride = 1;
  for (uint32_t i = rank; i-- > 0; stride *= bound->shape[i]) {
    if (bound->shape[i] == 0) return true;
    if (bound->shape[i] != 1 && bound->stride[i] != stride) return false;
  }
  return true;
}

static void check_view(bb_context *ctx, const bb_tensor_view *v, const bb_plan_tensor *t) {
  const char *side = t->role == BB_TENSOR_INPUT ? "input" : "output";
  if ((unsigned)v->dtype >= BB_DTYPE_COUNT || v->dtype != t->dtype)
    bb_fail(ctx, BB_ERROR_ARGUMENT, "%s \"%s\": elements are %s, the model wants %s", side, t->name,
            (unsigned)v->dtype < BB_DTYPE_COUNT ? bb_dtype_name(v->dtype) : "of no type",
            bb_dtype_name(t->dtype));
  if (v->rank != t->rank)
    bb_fail(ctx, BB_ERROR_ARGUMENT, "%s \"%s\": %u axes, the model wants %u", side, t->name,
            v->rank, t->rank);
  int64_t count = 1;
  for (uint32_t i = 0; i < v->rank; i++)
    if (v->shape[i] < 0 || (v->shape[i] && __builtin_mul_overflow(count, v->shape[i], &count)))
      bb_fail(ctx, BB_ERROR_ARGUMENT, "%s \"%s\": axis %u has extent %lld", side, t->name, i,
              (long long)v->shape[i]);
  if (!v->data && count)
    for (uint32_t i = 0;; i++) {
      if (i == v->rank) bb_fail(ctx, BB_ERROR_ARGUMENT, "%s \"%s\": no data", side, t->name);
      if (v->shape[i] == 0) break;
    }
  if ((uintptr_t)v->data % bb_dtype_bytes(t->dtype))
    bb_fail(ctx, BB_ERROR_ARGUMENT, "%s \"%s\": the data is not aligned to its elements", side,
            t->name);
}

bb_bound bb_session_view(const bb_session *s, uint32_t tensor, const bb_tensor_view *view) {
  const bb_plan_tensor *t = &s->model->plan->tensor[tensor];
  check_view(s->ctx, view, t);
  bb_bound made = {.given = true, .data = view->data};
  int64_t stride = 1;
  for (uint32_t i = t->rank; i-- > 0;) {
    made.shape[i] = view->shape[i];
    made.stride[i] = view->stride ? view->stride[i] : stride;
    stride *= made.shape[i] ? made.shape[i] : 1;
  }
  made.strided = !is_dense(&made, t->rank);
  if (made.strided && t->room != BB_NONE) made.room = bb_room_of(&made, t->rank, t->room_axis);
  made.strided &= !made.room;
  return made;
}

/* Another device than the processor wants arrays in its memory, as kernels take them. */
static void check_device(bb_session *s, const bb_plan_tensor *t, const bb_bound *bound) {
  const bb_model *m = s->model;
  const char *side = t->role == BB_TENSOR_INPUT ? "input" : "output";
  if (m->class->align && (uintptr_t)bound->data % m->class->align)
    bb_fail(s->ctx, BB_ERROR_ARGUMENT,
            "%s \"%s\": on %s:%u an array begins at a multiple of %u bytes", side, t->name,
            m->class->name, m->number, m->class->align);
  if (!m->class->host && bound->strided)
    bb_fail(s->ctx, BB_ERROR_ARGUMENT, "%s \"%s\": on %s:%u an array is row-major and dense", side,
            t->name, m->class->name, m->number);
  const char *why = bound->data && m->class->unreachable
                        ? m->class->unreachable(m->device, s->ctx, bound->data)
                        : NULL;
  if (why)
    bb_fail(s->ctx, BB_ERROR_ARGUMENT, "%s \"%s\": the array is not in memory of %s:%u: %s", side,
            t->name, m->class->name, m->number, why);
}

void bb_session_bind_tensor(bb_session *s, uint32_t tensor, const bb_tensor_view *view) {
  const bb_plan_tensor *t = &s->model->plan->tensor[tensor];
  bb_bound *bound = &s->bound[tensor], made = {0};
  if (!view && t->role == BB_TENSOR_INPUT)
    bb_fail(s->ctx, BB_ERROR_ARGUMENT, "input \"%s\": no array", t->name);
  if (view) {
    made = bb_session_view(s, tensor, view);
    check_device(s, t, &made);
  }
  bool same = made.given == bound->given && made.strided == bound->strided &&
              made.room == bound->room && !bound->open;
  for (uint32_t i = 0; i < t->rank && same && made.given; i++)
    same = made.shape[i] == bound->shape[i];
  s->prepared &= same;
  s->placed = false;
  made.shares = bound->shares;
  *bound = made;
}

static void bind_body(bb_context *ctx, void *argument) {
  const bind_call *call = argument;
  (void)ctx;
  bb_session *s = call->session;
  bb_session_bind_tensor(s, bb_session_tensor(s, call->side, call->index), call->view);
}

bb_status bb_session_bind(bb_session *s, bb_side side, uint32_t index, const bb_tensor_view *view) {
  bind_call call = {.session = s, .side = side, .index = index, .view = view};
  return bb_protect(s->ctx, bind_body, &call);
}

static void set_body(bb_context *ctx, void *argument) {
  const bind_call *call = argument;
  const bb_plan *p = call->session->model->plan;
  uint32_t i = 0;
  while (i < p->extents && strcmp(p->symbol[i], call->extent) != 0) i++;
  if (i == p->extents)
    bb_fail(ctx, BB_ERROR_ARGUMENT, "there is no run-time extent %s", call->extent);
  if (call->value < 0)
    bb_fail(ctx, BB_ERROR_ARGUMENT, "extent %s cannot be negative", call->extent);
  call->session->prepared &= call->session->preset[i] == call->value;
  call->session->preset[i] = call->value;
}

bb_status bb_session_set(bb_session *s, const char *extent, int64_t value) {
  bind_call call = {.session = s, .extent = extent, .value = value};
  return bb_protect(s->ctx, set_body, &call);
}

/* --- asking --- */

static void prepare_body(bb_context *ctx, void *argument) {
  bb_session *s = argument;
  (void)ctx;
  if (bb_session_note_sharing(s)) s->prepared = false;
  if (!s->prepared) bb_session_lay_out(s);
  if (!s->placed && s->model->class->prepare) bb_session_place(s);
}

bb_status bb_session_prepare(bb_session *s) {
  return bb_protect(s->ctx, prepare_body, s);
}

typedef struct get_call {
  bind_call what;
  bb_tensor_view *view;
} get_call;

static void get_body(bb_context *ctx, void *argument) {
  const get_call *call = argument;
  bb_session *s = call->what.session;
  uint32_t tensor = bb_session_tensor(s, call->what.side, call->what.index);
  const bb_plan_tensor *t = &s->model->plan->tensor[tensor];
  if (!s->prepared)
    bb_fail(ctx, BB_ERROR_ARGUMENT, "shapes are not known: call bb_session_prepare() first");
  bb_bound *bound = &s->bound[tensor];
  *call->view = (bb_tensor_view){
      .dtype = t->dtype, .rank = t->rank, .shape = bound->shape, .data = bound->data};
  if (bound->strided || bound->room) call->view->stride = bound->stride;
  if (!bound->given) call->view->data = s->place[tensor].own;
}

bb_status bb_session_get(bb_session *s, bb_side side, uint32_t index, bb_tensor_view *view) {
  get_call call = {{.session = s, .side = side, .index = index}, view};
  return bb_protect(s->ctx, get_body, &call);
}

size_t bb_session_workspace(const bb_session *s) {
  return s->prepared ? s->workspace : s->held_workspace;
}

void bb_session_use_workspace(bb_session *s, void *memory, size_t bytes) {
  s->lent = memory;
  s->lent_bytes = memory ? bytes : 0;
  s->placed = false;
}

/* --- running --- */

void bb_copy_strided(uint32_t rank, const int64_t *shape, size_t element, char *to,
                     const int64_t *to_stride, const char *from, const int64_t *from_stride) {
  if (rank == 0) {
    memcpy(to, from, element);
    return;
  }
  if (rank == 1 && to_stride[0] == 1 && from_stride[0] == 1) {
    if (shape[0]) memcpy(to, from, (size_t)shape[0] * element);
    return;
  }
  for (int64_t i = 0; i < shape[0]; i++)
    bb_copy_strided(rank - 1, shape + 1, element, to + i * to_stride[0] * (int64_t)element,
                    to_stride + 1, from + i * from_stride[0] * (int64_t)element, from_stride + 1);
}

static void dense_strides(uint32_t rank, const int64_t *shape, int64_t *stride) {
  int64_t step = 1;
  for (uint32_t i = rank; i-- > 0; step *= shape[i]) stride[i] = step;
}

/* What is bound with strides, into the workspace or out of it. */
static void copy_bound(bb_session *s, bb_tensor_role role) {
  const bb_plan *p = s->model->plan;
  int64_t dense[BB_PLAN_RANK];
  for (uint32_t t = 0; t < p->tensors; t++) {
    const bb_plan_tensor *tensor = &p->tensor[t];
    const bb_bound *b = &s->bound[t];
    if (tensor->role != role || !bb_bound_is_staged(b) || !s->place[t].bytes) continue;
    size_t element = bb_dtype_bytes(tensor->dtype);
    dense_strides(tensor->rank, b->shape, dense);
    if (role == BB_TENSOR_INPUT)
      bb_copy_strided(tensor->rank, b->shape, element, s->data[t], dense, b->data, b->stride);
    else if (!b->strided)
      s->model->class->copy(s->queue, s->ctx, BB_COPY_WITHIN, b->data, s->data[t],
                            s->place[t].bytes);
    else
      bb_copy_strided(tensor->rank, b->shape, element, b->data, b->stride, s->data[t], dense);
  }
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static char *scratch_of(bb_session *s) {
  return s->lent ? (char *)(((uintptr_t)s->lent + 63) & ~(uintptr_t)63) : s->own;
}

static void run_step(bb_session *s, uint32_t number) {
  const bb_model *m = s->model;
  const bb_ready *ready = &s->ready[number];
  if (bb_model_launches(m, number)) {
    bb_launch launch = bb_session_launch(s, number, ready->argument);
    launch.scratch = scratch_of(s);
    m->class->launch(m->module, s->queue, s->ctx, &launch, ready->prepared);
  } else if (m->class->host) {
    bb_lab_call call = {number, s->symbol, s->data, s->queue};
    bb_lab_run(s->lab, s->ctx, &call);
  } else {
    bb_session_mirror(s, number);
  }
}

static void observe(bb_session *s, uint32_t number, double began) {
  const bb_ready *ready = &s->ready[number];
  s->model->class->queue_wait(s->queue, s->ctx);
  bb_step_event event = {.step = number,
                         .name = s->model->plan->step[number].name,
                         .seconds = seconds() - began,
                         .bytes = ready->bytes,
                         .operations = ready->operations};
  if (!s->options.observe(s->options.observe_user, &event))
    bb_fail(s->ctx, BB_ERROR_STOPPED, "the observer ended the run after %s", event.name);
}

static void run_steps(bb_session *s) {
  const bb_plan *p = s->model->plan;
  copy_bound(s, BB_TENSOR_INPUT);
  for (uint32_t i = 0; i < p->steps; i++) {
    if (p->step[i].once != s->once) continue;
    double began = s->options.observe ? seconds() : 0;
    run_step(s, i);
    if (s->options.observe) observe(s, i, began);
  }
  copy_bound(s, BB_TENSOR_OUTPUT);
}

/* A second run with everything in its place is noted, if nothing in it is the processor's. */
static bool note(bb_session *s) {
  const bb_device_class *class = s->model->class;
  if (!s->ran || s->once || s->lab || s->options.observe || !class->note) return false;
  if (!class->note(s->queue, s->ctx)) return false;
  run_steps(s);
  class->note_end(s->queue, s->ctx);
  return true;
}

void bb_session_steps(bb_session *s) {
  const bb_device_class *class = s->model->class;
  if (!s->noted) s->noted = note(s);
  if (s->noted && class->replay(s->queue, s->ctx)) return;
  run_steps(s);
  s->ran = true;
}

static void run_body(bb_context *ctx, void *argument) {
  const bind_call *call = argument;
  bb_session *s = call->session;
  s->model->class->queue_use(s->queue, ctx, call->stream);
  if (!s->placed && bb_session_note_sharing(s)) s->prepared = false;
  if (!s->prepared) bb_session_lay_out(s);
  if (!s->placed) bb_session_place(s);
  bb_session_steps(s);
  if (!call->stream) end_run(s);
}

bb_status bb_session_run(bb_session *s, void *stream) {
  bind_call call = {.session = s, .stream = stream};
  return bb_protect(s->ctx, run_body, &call);
}

static void wait_body(bb_context *ctx, void *argument) {
  (void)ctx;
  end_run(argument);
}

bb_status bb_session_wait(bb_session *s) {
  return bb_protect(s->ctx, wait_body, s);
}
