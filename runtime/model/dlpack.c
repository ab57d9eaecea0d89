/* dlpack.c - DLPack tensors in and out of sessions. */
#include "../blockbuster_dlpack.h"
#include "session.h"

#include <string.h>

static const struct {
  uint8_t code, bits;
} types[] = {
    [BB_F64] = {kDLFloat, 64},   [BB_F32] = {kDLFloat, 32}, [BB_F16] = {kDLFloat, 16},
    [BB_BF16] = {kDLBfloat, 16}, [BB_I64] = {kDLInt, 64},   [BB_I32] = {kDLInt, 32},
    [BB_BOOL] = {kDLBool, 8},    [BB_U32] = {kDLUInt, 32},  [BB_U16] = {kDLUInt, 16},
    [BB_I16] = {kDLInt, 16},     [BB_U8] = {kDLUInt, 8},    [BB_I8] = {kDLInt, 8},
};

static bool find_type(DLDataType type, bb_dtype *dtype) {
  for (uint32_t i = 0; i < BB_DTYPE_COUNT && type.lanes == 1; i++) {
    if (types[i].code != type.code || types[i].bits != type.bits) continue;
    *dtype = (bb_dtype)i;
    return true;
  }
  return false;
}

typedef struct dlpack_call {
  bb_session *session;
  uint32_t index;
  const DLTensor *tensor;
  bb_tensor_view *view;
  DLManagedTensorVersioned *managed;
} dlpack_call;

static void view_body(bb_context *ctx, void *argument) {
  const dlpack_call *call = argument;
  const DLTensor *t = call->tensor;
  bb_tensor_view *view = call->view;
  const bb_model *m = call->session->model;
  bool there = (int32_t)t->device.device_type == m->class->dlpack &&
               (m->class->host || t->device.device_id == (int32_t)m->number);
  if (!there)
    bb_fail(ctx, BB_ERROR_ARGUMENT,
            "a tensor on DLPack device %d:%d, the model is on %s:%u (%d:%u)",
            (int)t->device.device_type, (int)t->device.device_id, m->class->name, m->number,
            (int)m->class->dlpack, m->number);
  if (!find_type(t->dtype, &view->dtype))
    bb_fail(ctx, BB_ERROR_ARGUMENT, "DLPack type %u of %u bits, %u lanes", t->dtype.code,
            t->dtype.bits, t->dtype.lanes);
  if (t->ndim < 0) bb_fail(ctx, BB_ERROR_ARGUMENT, "a tensor of %d axes", (int)t->ndim);
  view->rank = (uint32_t)t->ndim;
  view->shape = t->shape;
  view->stride = t->strides;
  view->data = t->data ? (char *)t->data + t->byte_offset : NULL;
}

bb_status bb_session_bind_dlpack(bb_session *session, bb_side side, uint32_t index,
                                 const DLTensor *tensor) {
  bb_tensor_view view = {0};
  dlpack_call call = {.session = session, .tensor = tensor, .view = &view};
  bb_status status = bb_protect(session->ctx, view_body, &call);
  return status == BB_OK ? bb_session_bind(session, side, index, &view) : status;
}

/* --- out --- */

/* What the deleter needs, none of it the context's. */
typedef struct taken {
  DLManagedTensorVersioned managed;
  bb_allocator allocator;
  bb_model *model;
  void *data;
  size_t bytes;
  int64_t shape[BB_PLAN_RANK], stride[BB_PLAN_RANK];
} taken;

static void delete (DLManagedTensorVersioned *self) {
  taken *t = self->manager_ctx;
  t->model->class->release(t->model->device, t->data, t->bytes);
  bb_model_release(t->model);
  t->allocator.resize(t->allocator.user, t, sizeof *t, 0);
}

static void take_body(bb_context *ctx, void *argument) {
  dlpack_call *call = argument;
  bb_session *s = call->session;
  bb_model *m = s->model;
  if (call->index >= m->sides[BB_OUTPUT])
    bb_fail(ctx, BB_ERROR_ARGUMENT, "there is no output %u", call->index);
  uint32_t tensor = m->side[BB_OUTPUT][call->index];
  const bb_plan_tensor *of = &m->plan->tensor[tensor];
  bb_place *place = &s->place[tensor];
  if (!s->placed || place->home != BB_HOME_OWN || !place->own)
    bb_fail(ctx, BB_ERROR_ARGUMENT, "output \"%s\" is bound, or no run has written it", of->name);
  taken *t = bb_resize(ctx, NULL, 0, sizeof *t);
  t->allocator = ctx->allocator;
  t->model = bb_model_hold(m);
  t->data = place->own;
  t->bytes = place->own_bytes;
  int64_t stride = 1;
  for (uint32_t i = of->rank; i-- > 0; stride *= t->shape[i]) {
    t->shape[i] = s->bound[tensor].shape[i];
    t->stride[i] = stride;
  }
  t->managed = (DLManagedTensorVersioned){
      .version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION},
      .manager_ctx = t,
      .deleter = delete,
      .dl_tensor = {.data = t->data,
                    .device = {(DLDeviceType)m->class->dlpack, (int32_t)m->number},
                    .ndim = (int32_t)of->rank,
                    .dtype = {types[of->dtype].code, types[of->dtype].bits, 1},
                    .shape = t->shape,
                    .strides = t->stride}};
  place->own = NULL;
  place->own_bytes = 0;
  s->prepared = s->placed = false;
  s->changed = BB_ALL_SYMBOLS; /* it gets another array */
  call->managed = &t->managed;
}

bb_status bb_session_take_dlpack(bb_session *session, uint32_t index,
                                 DLManagedTensorVersioned **tensor) {
  dlpack_call call = {.session = session, .index = index};
  bb_status status = bb_protect(session->ctx, take_body, &call);
  if (status == BB_OK) *tensor = call.managed;
  return status;
}
