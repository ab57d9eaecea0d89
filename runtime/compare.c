/* compare.c - holds the outputs of a run against arrays of a file.
 */
#include "bind.h"

#include <math.h>
#include <string.h>

double bb_default_tolerance(bb_dtype dtype) {
  switch (dtype) {
  case BB_F64:
  case BB_F32: return 1e-4;
  case BB_F16: return 5e-3;  /* a few units of its 11 bits */
  case BB_BF16: return 4e-2; /* of its 8 bits */
  default: return 0;
  }
}

/* The caller's shape of an output. */
static int64_t *output_shape(const bb_program *program, const bb_binding *binding,
                             const bb_tensor *t, bb_arena *arena) {
  int64_t *shape = BB_NEW(arena, int64_t, t->rank);
  for (uint32_t i = 0; i < t->rank; i++) {
    for (uint32_t k = 0; k < t->shape[i]->count; k++)
      if (binding->symbol[t->shape[i]->symbol[k]] < 0)
        bb_fail(program->ctx, BB_ERROR_INPUT, "output \"%s\": nothing says what %s is", t->name,
                program->symbol[t->shape[i]->symbol[k]]);
    shape[i] = bb_extent_bind((bb_program *)program, t->shape[i], binding->symbol);
  }
  return shape;
}

const char *bb_shape_text(bb_arena *arena, uint32_t rank, const int64_t *shape) {
  bb_buffer text = {.arena = arena};
  bb_put(&text, "[");
  for (uint32_t i = 0; i < rank; i++) bb_put(&text, "%s%lld", i ? ", " : "", (long long)shape[i]);
  bb_put(&text, "]");
  return text.data;
}

/* |got - want| / (1 + |want|); equal infinities and two NaNs agree. */
static double error_of(double got, double want) {
  if (got == want || (isnan(got) && isnan(want))) return 0;
  double error = fabs(got - want) / (1 + fabs(want));
  return isnan(error) ? INFINITY : error; /* one NaN, or infinity over infinity */
}

static void compare_elements(bb_comparison *c, const double *got, const double *want) {
  for (size_t i = 0; i < c->count; i++) {
    double error = error_of(got[i], want[i]);
    if (error > c->tolerance) c->wrong++;
    if (i > 0 && !(error > c->error)) continue;
    c->error = error;
    c->worst = i;
    c->got = got[i];
    c->want = want[i];
  }
  c->pass = c->wrong == 0;
}

static void compare_output(const bb_program *program, const bb_binding *binding, uint32_t tensor,
                           const bb_npz_array *want, bb_arena *arena, bb_comparison *c) {
  const bb_tensor *t = &program->tensor[tensor];
  const bb_interp_tensor *held = &binding->tensor[tensor];
  if (!want) {
    c->missing = true;
    c->problem = "nothing to compare with: no array of this name";
    return;
  }
  if (!held->data) {
    c->problem = "it was not computed";
    return;
  }
  int64_t *shape = output_shape(program, binding, t, arena);
  bool same = want->rank == t->rank && want->count == held->count;
  for (uint32_t i = 0; same && i < t->rank; i++) same = shape[i] == want->shape[i];
  if (!same) {
    c->problem =
        bb_arena_printf(arena, "shape %s, expected %s", bb_shape_text(arena, t->rank, shape),
                        bb_shape_text(arena, want->rank, want->shape));
    return;
  }
  double *values = BB_NEW(arena, double, want->count);
  bb_npz_doubles(want, values);
  c->count = held->count;
  compare_elements(c, held->data, values);
}

uint32_t bb_compare_outputs(const bb_program *program, const bb_binding *binding,
                            const bb_npz *want, double tolerance, bb_arena *arena,
                            bb_comparison **comparisons) {
  bb_comparison *all = BB_NEW(arena, bb_comparison, program->tensors);
  uint32_t count = 0;
  for (uint32_t t = 0; t < program->tensors; t++) {
    const bb_tensor *tensor = &program->tensor[t];
    if (tensor->role != BB_TENSOR_OUTPUT) continue;
    bb_comparison *c = &all[count++];
    c->name = tensor->name;
    c->tolerance = tolerance < 0 ? bb_default_tolerance(tensor->dtype) : tolerance;
    compare_output(program, binding, t, bb_npz_find(want, tensor->name), arena, c);
  }
  *comparisons = all;
  return count;
}

static const bb_tensor *output_named(const bb_program *program, const char *name) {
  for (uint32_t t = 0; t < program->tensors; t++)
    if (program->tensor[t].role == BB_TENSOR_OUTPUT && strcmp(program->tensor[t].name, name) == 0)
      return &program->tensor[t];
  return NULL;
}

void bb_comparison_print(bb_buffer *out, const bb_program *program, const bb_binding *binding,
                         const bb_comparison *c) {
  const bb_tensor *t = output_named(program, c->name);
  bb_put(out, "%s: ", c->name);
  if (c->problem || !t) {
    bb_put(out, "%s", c->problem ? c->problem : "no such output");
    return;
  }
  bb_put(out, "%zu elements", c->count);
  if (c->count == 0) return;
  const int64_t *shape = output_shape(program, binding, t, out->arena);
  int64_t *index = BB_NEW(out->arena, int64_t, t->rank);
  size_t rest = c->worst;
  for (uint32_t i = t->rank; i-- > 0; rest /= (size_t)shape[i])
    index[i] = (int64_t)(rest % (size_t)shape[i]);
  bb_put(out, ", largest error %.3g at %s (got %.9g, want %.9g)", c->error,
         bb_shape_text(out->arena, t->rank, index), c->got, c->want);
  if (c->wrong) bb_put(out, ", %zu beyond the tolerance %g", c->wrong, c->tolerance);
}

static bb_npy_type type_of(bb_dtype dtype) {
  switch (dtype) {
  case BB_F64: return BB_NPY_F64;
  case BB_F16: return BB_NPY_F16;
  case BB_BF16: return BB_NPY_BF16;
  case BB_I64: return BB_NPY_I64;
  case BB_I32: return BB_NPY_I32;
  case BB_BOOL: return BB_NPY_BOOL;
  case BB_U32: return BB_NPY_U32;
  case BB_U16: return BB_NPY_U16;
  case BB_I16: return BB_NPY_I16;
  case BB_U8: return BB_NPY_U8;
  case BB_I8: return BB_NPY_I8;
  default: return BB_NPY_F32;
  }
}

bb_npz *bb_outputs_as_npz(const bb_program *program, const bb_binding *binding, bb_arena *arena) {
  bb_npz *npz = BB_NEW(arena, bb_npz, 1);
  npz->array = BB_NEW(arena, bb_npz_array, program->tensors);
  for (uint32_t t = 0; t < program->tensors; t++) {
    const bb_tensor *tensor = &program->tensor[t];
    const bb_interp_tensor *held = &binding->tensor[t];
    if (tensor->role != BB_TENSOR_OUTPUT || !held->data) continue;
    void *data = bb_arena_array(arena, held->count, bb_dtype_bytes(tensor->dtype));
    bb_interp_store(tensor->dtype, held->data, held->count, data);
    npz->array[npz->count++] =
        (bb_npz_array){.name = tensor->name,
                       .type = type_of(tensor->dtype),
                       .rank = tensor->rank,
                       .shape = output_shape(program, binding, tensor, arena),
                       .count = held->count,
                       .data = data,
                       .bytes = held->count * bb_dtype_bytes(tensor->dtype)};
  }
  return npz;
}
