/* native.c - finds native kernels; gathers, which move bytes. */
#include "native.h"

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

int64_t bb_native_int(const bb_native_call *call, const char *name, int64_t otherwise) {
  for (uint32_t i = 0; i < call->misc->count; i++) {
    const bb_attribute *a = &call->misc->attribute[i];
    if (strcmp(a->name, name) == 0 && a->kind == BB_ATTR_INT) return a->i;
  }
  return otherwise;
}

/* --- slices by index --- */

static size_t product(uint32_t from, uint32_t to, const int64_t *shape) {
  size_t count = 1;
  for (uint32_t i = from; i < to; i++) count *= (size_t)shape[i];
  return count;
}

static int64_t index_at(const bb_native_array *index, size_t i) {
  return index->dtype == BB_I64 ? ((const int64_t *)index->data)[i]
                                : ((const int32_t *)index->data)[i];
}

static size_t checked(const bb_native_call *call, size_t i, int64_t extent) {
  int64_t at = index_at(&call->in[1], i);
  if (at < -extent || at >= extent)
    bb_fail(call->ctx, BB_ERROR_INPUT,
            "index %lld (element %zu of the indices) is out of range for an axis of %lld",
            (long long)at, i, (long long)extent);
  return (size_t)(at < 0 ? at + extent : at);
}

bool bb_native_gather(const bb_native_call *call) {
  if (call->nin != 2 || call->nout != 1) return false;
  const bb_native_array *data = &call->in[0], *index = &call->in[1], *out = &call->out[0];
  if (data->absent || index->absent || data->dtype != out->dtype) return false;
  if (index->dtype != BB_I64 && index->dtype != BB_I32) return false;
  int64_t axis = bb_native_int(call, "axis", 0);
  if (axis < 0) axis += data->rank;
  if (axis < 0 || axis >= (int64_t)data->rank) return false;
  uint32_t along = (uint32_t)axis;
  size_t outer = product(0, along, data->shape), count = product(0, index->rank, index->shape);
  size_t slice = product(along + 1, data->rank, data->shape);
  if (product(0, out->rank, out->shape) != outer * count * slice) return false;
  slice *= bb_dtype_bytes(data->dtype);
  char *to = out->data;
  const char *from = data->data;
  for (size_t o = 0; o < outer; o++, from += (size_t)data->shape[along] * slice)
    for (size_t i = 0; i < count; i++, to += slice)
      memcpy(to, from + checked(call, i, data->shape[along]) * slice, slice);
  return true;
}
