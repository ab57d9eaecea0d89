/* misc.c - finds the reference kernel of a misc node; what kernels share.
 */
#include "misc.h"

#include <math.h>
#include <string.h>

#define BB_MISC(domain, op, body)                                                                  \
  static void call_##body(bb_context *ctx, bb_arena *arena, const bb_misc *misc, uint32_t nin,     \
                          const bb_misc_value *in, uint32_t nout, bb_misc_value *out) {            \
    body(&(bb_kernel){ctx, arena, misc, nin, nout, in, out});                                      \
  }
#include "misc.def"
#undef BB_MISC

static const struct {
  const char *domain, *op;
  bb_misc_kernel *kernel;
} kernels[] = {
#define BB_MISC(domain, op, body) {domain, op, call_##body},
#include "misc.def"
#undef BB_MISC
};

bb_misc_kernel *bb_misc_find(const bb_misc *misc) {
  for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
    if (strcmp(kernels[i].domain, misc->domain) == 0 && strcmp(kernels[i].op, misc->op) == 0)
      return kernels[i].kernel;
  return NULL;
}

int64_t bb_misc_row_of(bb_context *ctx, double length, int64_t past, int64_t rows) {
  if (!(length >= (double)rows && length <= (double)past + (double)rows) || length != floor(length))
    bb_fail(ctx, BB_ERROR_INPUT, "%g rows after %lld are appended to %lld", length, (long long)rows,
            (long long)past);
  return (int64_t)length - rows;
}

bool bb_misc_joins(const bb_misc *misc, uint32_t *axis) {
  *axis = 2;
  if (strcmp(misc->domain, "blockbuster") == 0 && strcmp(misc->op, "Append") == 0)
    return misc->in && misc->in[0].rank == 4;
  if (strcmp(misc->domain, "") != 0 || strcmp(misc->op, "Concat") != 0 || !misc->in) return false;
  int64_t along = 0;
  for (uint32_t i = 0; i < misc->count; i++)
    if (strcmp(misc->attribute[i].name, "axis") == 0) along = misc->attribute[i].i;
  if (along < 0) along += misc->in[0].rank;
  *axis = (uint32_t)along;
  return along >= 0 && along < (int64_t)misc->in[0].rank;
}

/* --- attributes --- */

static const bb_attribute *find(const bb_kernel *k, const char *name) {
  for (uint32_t i = 0; i < k->misc->count; i++)
    if (strcmp(k->misc->attribute[i].name, name) == 0) return &k->misc->attribute[i];
  return NULL;
}

static _Noreturn void refuse_attribute(const bb_kernel *k, const char *name) {
  bb_fail(k->ctx, BB_ERROR_INPUT, "attribute %s has the wrong form", name);
}

int64_t bb_misc_int(const bb_kernel *k, const char *name, int64_t otherwise) {
  const bb_attribute *a = find(k, name);
  if (!a) return otherwise;
  if (a->kind != BB_ATTR_INT) refuse_attribute(k, name);
  return a->i;
}

double bb_misc_float(const bb_kernel *k, const char *name, double otherwise) {
  const bb_attribute *a = find(k, name);
  if (!a) return otherwise;
  if (a->kind != BB_ATTR_FLOAT) refuse_attribute(k, name);
  return a->f;
}

const char *bb_misc_text(const bb_kernel *k, const char *name, const char *otherwise) {
  const bb_attribute *a = find(k, name);
  if (!a) return otherwise;
  if (a->kind != BB_ATTR_TEXT) refuse_attribute(k, name);
  return a->text;
}

const int64_t *bb_misc_ints(const bb_kernel *k, const char *name, uint32_t count) {
  const bb_attribute *a = find(k, name);
  if (!a) return NULL;
  if (a->kind != BB_ATTR_INTS || a->count != count) refuse_attribute(k, name);
  return a->ints;
}

/* --- operands and results --- */

const bb_misc_value *bb_misc_optional(const bb_kernel *k, uint32_t i) {
  return i < k->nin && k->in[i].data ? &k->in[i] : NULL;
}

const bb_misc_value *bb_misc_in(const bb_kernel *k, uint32_t i) {
  const bb_misc_value *value = bb_misc_optional(k, i);
  if (!value) bb_fail(k->ctx, BB_ERROR_INPUT, "operand %u is missing", i);
  return value;
}

bb_misc_value *bb_misc_out(const bb_kernel *k, uint32_t i, bb_dtype dtype, uint32_t rank,
                           const int64_t *shape) {
  if (i >= k->nout) bb_fail(k->ctx, BB_ERROR_INPUT, "result %u is missing", i);
  if (rank > 8) bb_fail(k->ctx, BB_ERROR_UNSUPPORTED, "a result of more than 8 axes");
  bb_misc_value *out = &k->out[i];
  out->dtype = dtype;
  out->rank = rank;
  for (uint32_t a = 0; a < rank; a++) out->shape[a] = shape[a];
  out->data = BB_NEW(k->arena, double, bb_misc_product(k, rank, shape));
  return out;
}

uint32_t bb_misc_axis(const bb_kernel *k, int64_t axis, uint32_t rank) {
  if (axis < -(int64_t)rank || axis >= (int64_t)rank)
    bb_fail(k->ctx, BB_ERROR_INPUT, "axis %lld of an operand of %u axes", (long long)axis, rank);
  return (uint32_t)(axis < 0 ? axis + rank : axis);
}

int64_t bb_misc_index(const bb_kernel *k, double value, size_t place, int64_t extent) {
  double index = value < 0 ? value + (double)extent : value;
  if (!(index >= 0 && index < (double)extent) || index != floor(index))
    bb_fail(k->ctx, BB_ERROR_INPUT,
            "index %.0f (element %zu of the indices) is out of range for an "
            "axis of %lld",
            value, place, (long long)extent);
  return (int64_t)index;
}

/* --- shapes --- */

int bb_misc_order(double a, double b) {
  if (isnan(a) || isnan(b)) return isnan(a) - isnan(b);
  return (a > b) - (a < b);
}

size_t bb_misc_product(const bb_kernel *k, uint32_t rank, const int64_t *shape) {
  size_t count = 1;
  bool empty = false;
  for (uint32_t i = 0; i < rank; i++) {
    empty |= shape[i] == 0;
    if (shape[i] < 0 || (shape[i] && __builtin_mul_overflow(count, (size_t)shape[i], &count)))
      bb_fail(k->ctx, BB_ERROR_MEMORY, "a result is too large to hold");
  }
  return empty ? 0 : count;
}

void bb_misc_step(uint32_t rank, const int64_t *shape, int64_t *index) {
  for (uint32_t i = rank; i-- > 0; index[i] = 0)
    if (++index[i] < shape[i]) return;
}

void bb_dense_strides(uint32_t rank, const int64_t *shape, int64_t *stride) {
  int64_t step = 1;
  for (uint32_t i = rank; i-- > 0; step *= shape[i]) stride[i] = step;
}
