/* mirror.c - arrays between a device and the processor: inputs written, outputs read, and what steps that the
 * processor runs take and give where a device has memory of its own.
 */
#include "session.h"

#include "../interp/misc.h"

#include <string.h>

/* --- steps of the processor's --- */

/* From the first element to the last, what lies between parts of a cache among them. */
static size_t bytes_of(const bb_session *s, uint32_t tensor) {
  const bb_plan_tensor *t = &s->model->plan->tensor[tensor];
  size_t count, inner, row;
  if (!bb_plan_count(t->rank, t->shape, s->symbol, &count))
    bb_fail(s->ctx, BB_ERROR_MEMORY, "an operand is too large to hold");
  if (count && t->room != BB_NONE) {
    bb_plan_count(t->rank - t->room_axis - 1, t->shape + t->room_axis + 1, s->symbol, &inner);
    bb_plan_count(t->rank - t->room_axis, t->shape + t->room_axis, s->symbol, &row);
    count = (count / row - 1) * inner * (size_t)s->symbol[t->room] + row;
  }
  return count * bb_dtype_bytes(t->dtype);
}

/* What stays as it is in the model is brought once. */
static void bring(bb_session *s, uint32_t tensor) {
  const bb_device_class *class = s->model->class;
  bb_place *place = &s->place[tensor];
  size_t bytes = bytes_of(s, tensor);
  if (place->mirrored) return;
  if (bytes > place->mirror_bytes || !place->mirror) {
    place->mirror = bb_resize(s->ctx, place->mirror, place->mirror_bytes, bytes + 1);
    place->mirror_bytes = bytes + 1;
  }
  s->near[tensor] = place->mirror;
  class->copy(s->queue, s->ctx, BB_COPY_OUT, place->mirror, s->data[tensor], bytes);
  place->mirrored = !s->once && place->home == BB_HOME_MODEL;
}

static void visit(bb_session *s, uint32_t count, const bb_plan_operand *o,
                  void (*each)(bb_session *s, uint32_t tensor)) {
  for (uint32_t k = 0; k < count; k++)
    for (uint32_t n = 0; n < o[k].pieces; n++) each(s, o[k].piece[n].tensor);
}

static void give(bb_session *s, uint32_t tensor) {
  s->model->class->copy(s->queue, s->ctx, BB_COPY_IN, s->data[tensor], s->near[tensor],
                        bytes_of(s, tensor));
}

void bb_session_mirror(bb_session *s, uint32_t number) {
  const bb_plan_step *step = &s->model->plan->step[number];
  visit(s, step->nin, step->in, bring);
  visit(s, step->nout, step->out, bring); /* a result may be a part of an array */
  s->model->class->queue_wait(s->queue, s->ctx);
  bb_lab_call call = {number, s->symbol, s->near, s->queue};
  bb_lab_run(s->lab, s->ctx, &call);
  visit(s, step->nout, step->out, give);
}

/* --- the public calls --- */

typedef struct move_call {
  bb_session *session;
  bb_side side;
  uint32_t index;
  const bb_tensor_view *view;
  void *data;
  size_t bytes;
} move_call;

/* Room for so many bytes of an input's own.  What is bound stays until there is other memory, and is forgotten with the old. */
static void grow_own(bb_session *s, bb_context *ctx, uint32_t tensor, size_t bytes) {
  const bb_model *m = s->model;
  bb_place *place = &s->place[tensor];
  if (bytes <= place->own_bytes) return;
  void *more = m->class->allocate(m->device, ctx, bytes);
  if (place->own) {
    const bb_bound none = {.given = false};
    if (s->bound[tensor].given && s->bound[tensor].data == place->own)
      bb_session_take(s, tensor, &none);
    m->class->release(m->device, place->own, place->own_bytes);
  }
  place->own = more;
  place->own_bytes = bytes;
}

static void write_body(bb_context *ctx, void *argument) {
  const move_call *call = argument;
  bb_session *s = call->session;
  const bb_device_class *class = s->model->class;
  uint32_t tensor = bb_session_tensor(s, BB_INPUT, call->index);
  bb_require(ctx, call->view, "the array");
  bb_place *place = &s->place[tensor];
  bb_bound from;
  bb_session_view(s, tensor, call->view, &from);
  bb_arena *arena = bb_scratch(ctx);
  bb_tensor_view made = *call->view;
  size_t element = bb_dtype_bytes(made.dtype), bytes = element;
  int64_t dense[BB_PLAN_RANK];
  bb_dense_strides(made.rank, made.shape, dense);
  for (uint32_t i = 0; i < made.rank; i++) bytes *= (size_t)made.shape[i];
  const void *data = made.data;
  if (from.strided || from.room) {
    char *packed = bb_arena_alloc(arena, bytes + 1);
    bb_copy_strided(made.rank, made.shape, element, packed, dense, data, from.stride);
    data = packed;
  }
  class->queue_use(s->queue, ctx, NULL);
  grow_own(s, ctx, tensor, bytes ? bytes : 1);
  class->copy(s->queue, ctx, BB_COPY_IN, place->own, data, bytes);
  class->queue_wait(s->queue, ctx);
  made.stride = NULL;
  made.data = place->own;
  bb_session_bind_tensor(s, tensor, &made);
  bb_scratch_end(arena);
}

bb_status bb_session_write(bb_session *s, uint32_t index, const bb_tensor_view *view) {
  move_call call = {.session = s, .index = index, .view = view};
  return bb_protect(s->ctx, write_body, &call);
}

typedef struct packed {
  const bb_model *model;
  void *memory;
  size_t bytes;
} packed;

static void release_packed(void *argument) {
  packed *p = argument;
  p->model->class->release(p->model->device, p->memory, p->bytes);
}

/* What does not lie in a row: another device than the processor packs it in memory of its own first. */
static void read_apart(bb_session *s, bb_context *ctx, const bb_move *move, size_t bytes) {
  const bb_model *m = s->model;
  bb_move made = *move;
  if (m->class->host) {
    m->class->move(m->module, s->queue, ctx, move);
    return;
  }
  bb_arena *arena = bb_scratch(ctx);
  packed *p = BB_NEW(arena, packed, 1);
  *p = (packed){m, m->class->allocate(m->device, ctx, bytes), bytes};
  bb_defer(ctx, release_packed, p);
  made.to = p->memory;
  m->class->move(m->module, s->queue, ctx, &made);
  m->class->copy(s->queue, ctx, BB_COPY_OUT, move->to, p->memory, bytes);
  m->class->queue_wait(s->queue, ctx);
  bb_undefer(ctx, p);
  release_packed(p);
  bb_scratch_end(arena);
}

static void read_body(bb_context *ctx, void *argument) {
  const move_call *call = argument;
  bb_session *s = call->session;
  const bb_device_class *class = s->model->class;
  uint32_t tensor = bb_session_tensor(s, call->side, call->index);
  const bb_plan_tensor *t = &s->model->plan->tensor[tensor];
  const bb_bound *bound = &s->bound[tensor];
  void *at = bound->given ? bound->data : s->place[tensor].own;
  size_t element = bb_dtype_bytes(t->dtype), bytes = element;
  int64_t dense[BB_PLAN_RANK];
  if (!s->prepared)
    bb_fail(ctx, BB_ERROR_ARGUMENT, "shapes are not known: call bb_session_prepare() first");
  bb_dense_strides(t->rank, bound->shape, dense);
  for (uint32_t i = 0; i < t->rank; i++) bytes *= (size_t)bound->shape[i];
  if (bytes != call->bytes)
    bb_fail(ctx, BB_ERROR_ARGUMENT, "\"%s\" has %zu bytes, not %zu", t->name, bytes, call->bytes);
  bb_move move = {call->data, at, element, t->rank, bound->shape, dense, bound->stride};
  if (bytes && (bound->strided || bound->room))
    read_apart(s, ctx, &move, bytes);
  else if (bytes)
    class->copy(s->queue, ctx, BB_COPY_OUT, call->data, at, bytes);
  class->queue_wait(s->queue, ctx);
}

bb_status bb_session_read(bb_session *s, bb_side side, uint32_t index, void *data, size_t bytes) {
  move_call call = {.session = s, .side = side, .index = index, .data = data, .bytes = bytes};
  return bb_protect(s->ctx, read_body, &call);
}
