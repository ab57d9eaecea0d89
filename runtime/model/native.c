/* native.c - finds native kernels; joins and other bits, which move bytes. */
#include "native.h"

#include "../interp/interp.h"

#include <string.h>

static const struct {
  const char *domain, *op;
  bb_native_kernel *kernel;
} kernels[] = {
#define BB_NATIVE(domain, op, body) {domain, op, body},
#include "native.def"
#undef BB_NATIVE
};

bb_native_kernel *bb_native_find(const bb_misc *misc) {
  for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
    if (strcmp(kernels[i].domain, misc->domain) == 0 && strcmp(kernels[i].op, misc->op) == 0)
      return kernels[i].kernel;
  return NULL;
}

bool bb_native_steps(const bb_misc *misc) {
  return bb_native_find(misc) == bb_native_gather_elements;
}

int64_t bb_native_int(const bb_native_call *call, const char *name, int64_t otherwise) {
  for (uint32_t i = 0; i < call->misc->count; i++) {
    const bb_attribute *a = &call->misc->attribute[i];
    if (strcmp(a->name, name) == 0 && a->kind == BB_ATTR_INT) return a->i;
  }
  return otherwise;
}

/* --- threads --- */

typedef struct shared {
  bb_native_task *task;
  void *user;
  size_t count, tasks;
} shared;

static void run_shared(void *user, int64_t task, uint32_t thread) {
  const shared *s = user;
  const size_t t = (size_t)task, each = s->count / s->tasks, more = s->count % s->tasks;
  const size_t from = t * each + (t < more ? t : more);
  s->task(s->user, from, from + each + (t < more), thread);
}

void bb_native_share(const bb_native_call *call, size_t count, size_t each, bb_native_task *task,
                     void *user) {
  const size_t threads = call->class->threads(call->queue);
  const size_t most =
      threads > 1 ? 8 * threads : 1; /* the last to end is not long after the others */
  shared s = {task, user, count, (count + each - 1) / each};
  if (s.tasks > most) s.tasks = most;
  call->class->spread(call->queue, (int64_t)s.tasks, run_shared, &s);
}

/* --- one after the other --- */

/* Rows outside the axis, and how many bytes from one to the next. */
static bool rows_of(const bb_native_array *a, uint32_t axis, size_t inner, size_t *pitch) {
  if (a->room && a->room_axis != axis) return false;
  *pitch = (size_t)(a->room ? a->room : a->shape[axis]) * inner;
  return true;
}

/* What a part and the result have in one place stays there: a cache that grows. */
bool bb_native_concat(const bb_native_call *call) {
  const bb_native_array *out = &call->out[0];
  if (call->nout != 1 || out->absent) return false;
  int64_t along = bb_native_int(call, "axis", 0);
  if (along < 0) along += out->rank;
  if (along < 0 || along >= (int64_t)out->rank) return false;
  uint32_t axis = (uint32_t)along;
  size_t outer = bb_native_product(0, axis, out->shape), to_pitch, from_pitch;
  size_t inner = bb_native_product(axis + 1, out->rank, out->shape) * bb_dtype_bytes(out->dtype);
  int64_t sum = 0;
  if (!rows_of(out, axis, inner, &to_pitch)) return false;
  for (uint32_t i = 0; i < call->nin; i++) {
    const bb_native_array *in = &call->in[i];
    if (in->absent || in->dtype != out->dtype || in->rank != out->rank) return false;
    if (!rows_of(in, axis, inner, &from_pitch)) return false;
    for (uint32_t a = 0; a < in->rank; a++)
      if (a != axis && in->shape[a] != out->shape[a]) return false;
    sum += in->shape[axis];
  }
  if (sum != out->shape[axis]) return false;
  char *to = out->data;
  for (uint32_t i = 0; i < call->nin; i++) {
    const bb_native_array *in = &call->in[i];
    rows_of(in, axis, inner, &from_pitch);
    size_t run = (size_t)in->shape[axis] * inner;
    bool there = in->data == to && (outer == 1 || from_pitch == to_pitch);
    for (size_t o = 0; o < outer && run && !there; o++)
      memcpy(to + o * to_pitch, (const char *)in->data + o * from_pitch, run);
    to += run;
  }
  return true;
}

/* The result may be the first operand's array, grown: then only what is new is written. */
bool bb_native_append(const bb_native_call *call) {
  const bb_native_array *past = &call->in[0], *rows = &call->in[1], *length = &call->in[2];
  const bb_native_array *out = &call->out[0];
  if (call->nin != 3 || call->nout != 1 || past->rank != 4 || rows->rank != 4) return false;
  if (length->rank != 1 || length->dtype != BB_I64 || length->room || rows->room) return false;
  if (past->dtype != out->dtype || rows->dtype != out->dtype) return false;
  size_t width = (size_t)out->shape[3] * bb_dtype_bytes(out->dtype), from_pitch, to_pitch;
  if (!rows_of(past, 2, width, &from_pitch) || !rows_of(out, 2, width, &to_pitch)) return false;
  size_t heads = (size_t)out->shape[1], all = heads * (size_t)out->shape[0];
  bool there = past->data == out->data && (all == 1 || from_pitch == to_pitch);
  size_t fresh = (size_t)rows->shape[2] * width, most = (size_t)out->shape[2] * width;
  if (length->shape[0] != out->shape[0] || past->shape[2] + rows->shape[2] != out->shape[2])
    return false;
  for (int64_t b = 0; b < out->shape[0]; b++) /* all of them, before anything is written */
    bb_misc_row_of(call->ctx, (double)((const int64_t *)length->data)[b], past->shape[2],
                   rows->shape[2]);
  for (size_t h = 0; h < all; h++) {
    char *to = (char *)out->data + h * to_pitch;
    size_t kept = (size_t)(((const int64_t *)length->data)[h / heads] - rows->shape[2]) * width;
    if (!there && kept) memcpy(to, (const char *)past->data + h * from_pitch, kept);
    if (fresh) memcpy(to + kept, (const char *)rows->data + h * fresh, fresh);
    if (kept + fresh < most) memset(to + kept + fresh, 0, most - kept - fresh);
  }
  return true;
}

/* The bits of one type for those of another that is as wide. */
bool bb_native_bit_cast(const bb_native_call *call) {
  if (call->nin != 1 || call->nout != 1) return false;
  const bb_native_array *from = &call->in[0], *to = &call->out[0];
  if (from->absent || to->absent || from->room || to->room || from->rank != to->rank) return false;
  if (bb_dtype_bytes(from->dtype) != bb_dtype_bytes(to->dtype)) return false;
  for (uint32_t a = 0; a < from->rank; a++)
    if (from->shape[a] != to->shape[a]) return false;
  size_t bytes = bb_native_product(0, to->rank, to->shape) * bb_dtype_bytes(to->dtype);
  if (bytes) memmove(to->data, from->data, bytes);
  return true;
}

bb_native_sets bb_native_set(void) {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    return BB_SET_AVX512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return BB_SET_AVX2;
#endif
  return BB_SET_PLAIN;
}
