/* binding.c - arrays of the caller's that a session reads and writes, and run-time extents that he tells.
 */
#include "session.h"

#include <string.h>

typedef struct bind_call {
  bb_session *session;
  bb_side side;
  uint32_t index;
  const bb_tensor_view *view;
  const char *extent;
  int64_t value;
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

/* From one element to any other there is a number of bytes, and no two of an output lie in one place because an axis does
 * not move. */
static void check_strides(bb_context *ctx, const bb_tensor_view *v, const bb_plan_tensor *t,
                          const char *side) {
  int64_t ahead = bb_dtype_bytes(t->dtype), back = 0, step; /* with the last element itself */
  for (uint32_t i = 0; i < v->rank; i++)
    if (v->shape[i] == 0) return;
  for (uint32_t i = 0; i < v->rank; i++) {
    int64_t *to = v->stride[i] < 0 ? &back : &ahead;
    if (__builtin_mul_overflow(v->stride[i], v->shape[i] - 1, &step) ||
        __builtin_mul_overflow(step, (int64_t)bb_dtype_bytes(t->dtype), &step) ||
        __builtin_add_overflow(*to, step, to))
      bb_fail(ctx, BB_ERROR_ARGUMENT, "%s \"%s\": axis %u has stride %lld, beyond all memory", side,
              t->name, i, (long long)v->stride[i]);
    if (t->role != BB_TENSOR_INPUT && v->shape[i] > 1 && v->stride[i] == 0)
      bb_fail(ctx, BB_ERROR_ARGUMENT,
              "%s \"%s\": axis %u has stride 0: its elements would lie in one place", side, t->name,
              i);
  }
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
  if (v->rank && !v->shape) bb_fail(ctx, BB_ERROR_ARGUMENT, "%s \"%s\": no shape", side, t->name);
  int64_t count = 1;
  for (uint32_t i = 0; i < v->rank; i++) {
    if (v->shape[i] < 0)
      bb_fail(ctx, BB_ERROR_ARGUMENT, "%s \"%s\": axis %u has extent %lld", side, t->name, i,
              (long long)v->shape[i]);
    if (v->shape[i] && __builtin_mul_overflow(count, v->shape[i], &count))
      bb_fail(ctx, BB_ERROR_ARGUMENT, "%s \"%s\" has more elements than can be counted", side,
              t->name);
  }
  if (!v->data && count)
    for (uint32_t i = 0;; i++) {
      if (i == v->rank) bb_fail(ctx, BB_ERROR_ARGUMENT, "%s \"%s\": no data", side, t->name);
      if (v->shape[i] == 0) break;
    }
  if ((uintptr_t)v->data % bb_dtype_bytes(t->dtype))
    bb_fail(ctx, BB_ERROR_ARGUMENT, "%s \"%s\": the data is not aligned to its elements", side,
            t->name);
  if (v->stride) check_strides(ctx, v, t, side);
}

void bb_session_see(const bb_session *s, uint32_t tensor, bb_bound *made) {
  const bb_plan_tensor *t = &s->model->plan->tensor[tensor];
  made->room = 0;
  made->strided = !is_dense(made, t->rank);
  if (made->strided && t->room != BB_NONE) made->room = bb_room_of(made, t->rank, t->room_axis);
  made->strided &= !made->room;
}

void bb_session_view(const bb_session *s, uint32_t tensor, const bb_tensor_view *view,
                     bb_bound *made) {
  const bb_plan_tensor *t = &s->model->plan->tensor[tensor];
  int64_t stride = 1;
  check_view(s->ctx, view, t);
  made->given = true;
  made->shares = made->open = false;
  made->most = 0;
  made->data = view->data;
  for (uint32_t i = t->rank; i-- > 0;) {
    made->shape[i] = view->shape[i];
    made->stride[i] = view->stride ? view->stride[i] : stride;
    stride *= made->shape[i] ? made->shape[i] : 1;
  }
  bb_session_see(s, tensor, made);
}

/* Another device than the processor wants arrays in its memory, and kernels take those that begin where all may begin:
 * others are copied, as those with strides are.  An array that stays where it is was asked about before. */
void bb_session_meet(const bb_session *s, uint32_t tensor, bb_bound *made) {
  const bb_model *m = s->model;
  const bb_plan_tensor *t = &m->plan->tensor[tensor];
  if (m->class->align && (uintptr_t)made->data % m->class->align) {
    made->strided = true;
    made->room = 0;
  }
  if (!made->data || made->data == s->bound[tensor].data || !m->class->unreachable) return;
  const char *why = m->class->unreachable(m->device, s->ctx, made->data);
  if (why)
    bb_fail(s->ctx, BB_ERROR_ARGUMENT, "%s \"%s\": the array is not in memory of %s:%u: %s",
            t->role == BB_TENSOR_INPUT ? "input" : "output", t->name, m->class->name, m->number,
            why);
}

/* What is there already changes nothing.  The axis of an open output is as long as it was laid out; its room is what is compared. */
void bb_session_take(bb_session *s, uint32_t tensor, const bb_bound *made) {
  const bb_plan_tensor *t = &s->model->plan->tensor[tensor];
  bb_bound *bound = &s->bound[tensor];
  bool kind = made->given == bound->given && made->strided == bound->strided;
  bool same =
      kind && made->open == bound->open && made->room == bound->room && made->most == bound->most;
  bool there = same && made->data == bound->data;
  for (uint32_t i = 0; i < t->rank && made->given; i++) {
    bool open = made->open && i == t->room_axis;
    same &= made->shape[i] == bound->shape[i] || (open && bound->open);
    there &= made->stride[i] == bound->stride[i];
    if (!(open && bound->open)) bound->shape[i] = made->shape[i];
    bound->stride[i] = made->stride[i];
  }
  bound->given = made->given, bound->strided = made->strided, bound->open = made->open;
  bound->room = made->room, bound->most = made->most;
  bound->data = made->data;
  if (!kind) s->changed = BB_ALL_SYMBOLS;
  s->prepared &= same;
  s->placed &= same && there;
}

void bb_session_bind_tensor(bb_session *s, uint32_t tensor, const bb_tensor_view *view) {
  const bb_plan_tensor *t = &s->model->plan->tensor[tensor];
  bb_bound made;
  if (!view && t->role == BB_TENSOR_INPUT)
    bb_fail(s->ctx, BB_ERROR_ARGUMENT, "input \"%s\": no array", t->name);
  if (view) {
    bb_session_view(s, tensor, view, &made);
    bb_session_meet(s, tensor, &made);
  } else {
    made = (bb_bound){.given = false};
  }
  bb_session_take(s, tensor, &made);
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
  uint32_t i = bb_plan_find_extent(ctx, call->session->model->plan, call->extent, call->value);
  bb_plan_refuse_told(ctx, call->session->model->plan, i);
  call->session->prepared &= call->session->preset[i] == call->value;
  call->session->preset[i] = call->value;
}

bb_status bb_session_set(bb_session *s, const char *extent, int64_t value) {
  bind_call call = {.session = s, .extent = extent, .value = value};
  return bb_protect(s->ctx, set_body, &call);
}
