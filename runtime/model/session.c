/* session.c - sessions: made, asked, and run. */
#include "session.h"

#include "../interp/misc.h"

#include <string.h>
#include <time.h>

/* --- making --- */

static void use(bb_session *s, uint32_t tensor, uint32_t step) {
  bb_place *place = &s->place[tensor];
  if (step < place->first) place->first = step;
  if (step > place->last) place->last = step;
  if (s->model->plan->tensor[tensor].within != BB_NONE)
    use(s, s->model->plan->tensor[tensor].within, step);
}

/* A session of load time uses what stays in the model, so it has no lifetimes.  What is bound with
 * strides is copied before the first step and after the last. */
void bb_session_take_variant(bb_session *s, uint32_t variant) {
  const bb_plan *p = s->model->plan;
  s->variant = variant;
  s->changed = BB_ALL_SYMBOLS;
  for (uint32_t t = 0; t < p->tensors; t++) s->place[t].first = UINT32_MAX, s->place[t].last = 0;
  for (uint32_t i = 0; i < p->steps; i++) {
    const bb_plan_step *step = &p->step[i];
    if (step->once || !(step->variants >> variant & 1)) continue;
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
  s->laid = BB_NEW(a, int64_t, p->symbols + 1);
  s->told = BB_NEW(a, bool, p->symbols + 1);
  for (uint32_t i = 0; i < p->symbols; i++) s->preset[i] = s->symbol[i] = -1;
  s->bound = BB_NEW(a, bb_bound, p->tensors + 1);
  s->place = BB_NEW(a, bb_place, p->tensors + 1);
  s->data = BB_NEW(a, void *, p->tensors + 1);
  s->order = BB_NEW(a, uint32_t, p->tensors + 1);
  s->near = BB_NEW(a, void *, p->tensors + 1);
  s->span = BB_NEW(a, bb_span, p->tensors + 1);
  for (uint32_t side = 0, at = 0; side < 2; side++)
    for (uint32_t i = 0; i < s->model->sides[side]; i++)
      s->span[at++].tensor = s->model->side[side][i];
  s->ready = BB_NEW(a, bb_ready, p->steps + 1);
  for (uint32_t i = 0; i < p->steps; i++) {
    s->ready[i].launched = bb_model_launches(s->model, i);
    s->tells |= p->step[i].tells != BB_NONE;
    s->ready[i].extent = BB_NEW(a, int64_t, p->step[i].extents + 1);
    s->ready[i].offset = BB_NEW(a, int64_t, p->step[i].arguments + 1);
    s->ready[i].argument = BB_NEW(a, void *, p->step[i].arguments + 1);
  }
  s->arrangement = BB_NEW(a, bb_arrangement, p->variants);
  for (uint32_t v = 0; v < p->variants; v++) {
    s->arrangement[v].bytes = BB_NEW(a, size_t, p->tensors + 1);
    s->arrangement[v].offset = BB_NEW(a, size_t, p->tensors + 1);
  }
  bb_session_take_variant(s, 0);
}

static void destroy(bb_session *s) {
  const bb_model *m = s->model;
  for (uint32_t t = 0; s->place && t < m->plan->tensors; t++)
    if (s->place[t].own) m->class->release(m->device, s->place[t].own, s->place[t].own_bytes);
  for (uint32_t t = 0; s->place && t < m->plan->tensors; t++)
    if (s->place[t].mirror) bb_resize(s->ctx, s->place[t].mirror, s->place[t].mirror_bytes, 0);
  for (uint32_t i = 0; s->ready && i < m->plan->steps; i++)
    if (s->ready[i].prepared) m->class->forget(s->ready[i].prepared);
  if (s->late) m->class->release(m->device, s->late, s->late_bytes);
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

/* Deferred on the context until it is complete. */
static bb_session *make(bb_context *ctx, bb_model *model, const bb_session_options *options,
                        bool once) {
  bb_arena *arena = bb_scratch(ctx);
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
  if (element < 0)
    bb_fail(s->ctx, BB_ERROR_INPUT, "misc node \"%s\": %s: its results have another shape",
            at->name, at->misc->op);
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
  bb_session *session;
  bb_side side;
  uint32_t index;
  bb_tensor_view *view;
} get_call;

static void get_body(bb_context *ctx, void *argument) {
  const get_call *call = argument;
  bb_session *s = call->session;
  uint32_t tensor = bb_session_tensor(s, call->side, call->index);
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
  get_call call = {s, side, index, view};
  return bb_protect(s->ctx, get_body, &call);
}

uint32_t bb_session_get_variant(const bb_session *s) {
  return s->variant;
}

size_t bb_session_workspace(const bb_session *s) {
  const bb_arrangement *a = &s->arrangement[s->variant];
  return s->prepared ? s->workspace : a->what == BB_ARRANGED_AT_MOST ? a->workspace : 0;
}

void bb_session_use_workspace(bb_session *s, void *memory, size_t bytes) {
  if (!memory) bytes = 0;
  s->placed &= s->lent == memory && s->lent_bytes == bytes;
  s->lent = memory;
  s->lent_bytes = bytes;
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

/* What is bound with strides, into the workspace or out of it. */
static void copy_bound(bb_session *s, bb_side side) {
  const bb_model *m = s->model;
  const bb_device_class *class = m->class;
  int64_t dense[BB_PLAN_RANK];
  for (uint32_t i = 0; i < m->sides[side]; i++) {
    uint32_t t = m->side[side][i];
    const bb_plan_tensor *tensor = &m->plan->tensor[t];
    const bb_bound *b = &s->bound[t];
    if (!bb_bound_is_staged(b) || !s->place[t].bytes) continue;
    bb_dense_strides(tensor->rank, b->shape, dense);
    bb_move move = {b->data,   s->data[t], bb_dtype_bytes(tensor->dtype), tensor->rank, b->shape,
                    b->stride, dense};
    if (side == BB_INPUT) {
      move.to = s->data[t], move.to_stride = dense;
      move.from = b->data, move.from_stride = b->stride;
    }
    if (side == BB_INPUT || b->strided || b->room)
      class->move(m->module, s->queue, s->ctx, &move);
    else
      class->copy(s->queue, s->ctx, BB_COPY_WITHIN, b->data, s->data[t], s->place[t].bytes);
  }
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void run_step(bb_session *s, uint32_t number) {
  const bb_model *m = s->model;
  const bb_ready *ready = &s->ready[number];
  if (ready->idle) return;
  if (ready->launched) {
    bb_launch launch = bb_session_launch(s, number, ready->argument);
    launch.scratch = s->at_scratch;
    m->class->launch(m->module, s->queue, s->ctx, &launch, ready->prepared);
  } else if (m->class->host) {
    bb_lab_call call = {number, s->symbol, s->data, s->queue};
    bb_lab_run(s->lab, s->ctx, &call);
  } else {
    bb_session_mirror(s, number);
  }
}

/* What a launch has told, in place of the most that it can be. */
static void take_told(bb_session *s, uint32_t number) {
  const bb_plan_step *step = &s->model->plan->step[number];
  int64_t most = s->symbol[step->tells];
  int64_t told = s->model->class->told(s->queue, s->ctx, number);
  if (told < 0 || told > most)
    bb_fail(s->ctx, BB_ERROR_INPUT, "misc node \"%s\": %s: it gives %lld elements, of at most %lld",
            step->name, step->misc->op, (long long)told, (long long)most);
  s->symbol[step->tells] = told;
}

/* A step that tells an extent finds it as much as it can be, as its results have room for. */
static void run_telling(bb_session *s, uint32_t number) {
  uint32_t symbol = s->model->plan->step[number].tells;
  if (!bb_formula_value(&s->model->plan->most[symbol], s->symbol, &s->symbol[symbol]))
    bb_fail(s->ctx, BB_ERROR_INPUT, "extent %s is too large", s->model->plan->symbol[symbol]);
  bb_session_check_most(s, number);
  bb_session_prepare_telling(s, number);
  run_step(s, number);
  if (s->ready[number].launched) take_told(s, number);
  bb_session_follow(s, number);
}

static void observe(bb_session *s, uint32_t number, double began) {
  s->model->class->queue_wait(s->queue, s->ctx);
  bb_step_event event = {
      .step = number, .name = s->model->plan->step[number].name, .seconds = seconds() - began};
  bb_session_measure(s, number, &event.bytes, &event.operations);
  if (!s->options.observe(s->options.observe_user, &event))
    bb_fail(s->ctx, BB_ERROR_STOPPED, "the observer ended the run after %s", event.name);
}

static void run_steps(bb_session *s) {
  const bb_plan *p = s->model->plan;
  copy_bound(s, BB_INPUT);
  memset(s->told, 0, p->symbols * sizeof *s->told);
  for (uint32_t i = 0; i < p->steps; i++) {
    if (!bb_session_takes(s, i)) continue;
    double began = s->options.observe ? seconds() : 0;
    if (p->step[i].tells == BB_NONE)
      run_step(s, i);
    else
      run_telling(s, i);
    if (s->options.observe) observe(s, i, began);
  }
  copy_bound(s, BB_OUTPUT);
}

/* A second run with everything in its place is noted, if nothing in it is the processor's or waits for an extent; and so are runs each
 * of which begins anew, as when a cache grows, if the device makes anything of them. */
static bool note(bb_session *s) {
  const bb_device_class *class = s->model->class;
  if (s->once || s->lab || s->tells || s->options.observe || !class->note) return false;
  if (!class->note(s->queue, s->ctx, !s->ran)) return false;
  run_steps(s);
  return class->note_end(s->queue, s->ctx);
}

void bb_session_steps(bb_session *s) {
  const bb_device_class *class = s->model->class;
  if (!s->noted) s->noted = note(s);
  if (!s->noted || !class->replay(s->queue, s->ctx)) run_steps(s);
  s->ran = true;
}

typedef struct run_call {
  bb_session *session;
  void *stream;
} run_call;

/* A run that ended before its last step has told nobody what its kernels refused: that is nothing to the next one. */
static void forget_faults(bb_session *s) {
  const bb_device_class *class = s->model->class;
  int64_t element;
  if (class->queue_fault) class->queue_fault(s->queue, s->ctx, &element);
}

static void run_body(bb_context *ctx, void *argument) {
  const run_call *call = argument;
  bb_session *s = call->session;
  s->model->class->queue_use(s->queue, ctx, call->stream);
  if (s->broken) forget_faults(s);
  if (!s->placed && bb_session_note_sharing(s)) s->prepared = false;
  if (!s->prepared) bb_session_lay_out(s);
  if (!s->placed) bb_session_place(s);
  bb_session_steps(s);
  if (!call->stream) end_run(s);
}

bb_status bb_session_run(bb_session *s, void *stream) {
  run_call call = {s, stream};
  bb_status status = bb_protect(s->ctx, run_body, &call);
  s->broken = status != BB_OK;
  return status;
}

static void wait_body(bb_context *ctx, void *argument) {
  (void)ctx;
  end_run(argument);
}

bb_status bb_session_wait(bb_session *s) {
  return bb_protect(s->ctx, wait_body, s);
}
