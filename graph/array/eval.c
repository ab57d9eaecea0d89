/* eval.c - array operators on whole arrays, element by element: small arrays only. */
#include "eval.h"

#include "../../runtime/interp/interp.h"

#include <math.h>
#include <string.h>

bool bb_eval_shape(const bb_array *array, uint32_t value, bb_whole *whole) {
  const bb_array_value *v = &array->value[value];
  *whole = (bb_whole){.rank = v->rank, .count = 1};
  if (v->rank > BB_EVAL_RANK) return false;
  for (uint32_t a = 0; a < v->rank; a++) {
    whole->shape[a] = bb_extent_value(v->shape[a]);
    if (whole->shape[a] < 1) return false;
    if (__builtin_mul_overflow(whole->count, (size_t)whole->shape[a], &whole->count)) return false;
  }
  return true;
}

/* Does the dtype hold every element as it is? */
static bool is_exact(bb_dtype dtype, const double *data, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (dtype == BB_I64 ? !(fabs(data[i]) < 9007199254740992.0)
                        : !(isnan(data[i]) || bb_round_to(dtype, data[i]) == data[i]))
      return false;
  }
  return true;
}

bool bb_eval_constant(const bb_array *array, uint32_t value, bb_arena *arena, bb_whole *whole) {
  const bb_array_value *v = &array->value[value];
  if (!bb_eval_shape(array, value, whole)) return false;
  whole->data = BB_NEW(arena, double, whole->count);
  bb_interp_load(v->dtype, v->data, whole->count, whole->data);
  return is_exact(v->dtype, whole->data, whole->count);
}

/* --- walking --- */

/* The next index in row-major order; false after the last. */
static bool advance(uint32_t rank, const int64_t *shape, int64_t *at) {
  for (uint32_t a = rank; a-- > 0;) {
    if (++at[a] < shape[a]) return true;
    at[a] = 0;
  }
  return false;
}

static size_t offset(const bb_whole *x, const int64_t *at) {
  size_t o = 0;
  for (uint32_t a = 0; a < x->rank; a++) o = o * (size_t)x->shape[a] + (size_t)at[a];
  return o;
}

/* The element that broadcasts to index `at` of a result of rank `rank`. */
static size_t broadcast_offset(const bb_whole *x, uint32_t rank, const int64_t *at) {
  size_t o = 0;
  for (uint32_t a = 0; a < x->rank; a++) {
    int64_t i = x->shape[a] == 1 ? 0 : at[rank - x->rank + a];
    o = o * (size_t)x->shape[a] + (size_t)i;
  }
  return o;
}

/* --- operators --- */

static bool uses_extents(bb_arena *arena, const bb_expr *expr) {
  uint32_t count;
  const bb_expr **node = bb_expr_postorder(arena, expr, &count);
  for (uint32_t i = 0; i < count; i++)
    if (node[i]->op == BB_X_SYMBOL || node[i]->op == BB_X_EXTENT) return true;
  return false;
}

static bool eval_elementwise(const bb_array_node *node, const bb_whole *in, bb_arena *arena,
                             bb_whole *out) {
  double *arg = BB_NEW(arena, double, node->nin);
  int64_t at[BB_EVAL_RANK] = {0}, back[BB_EVAL_RANK] = {0};
  if (uses_extents(arena, node->expr)) return false;
  bb_expr_env env = {.arg = arg, .axis_index = back};
  size_t i = 0;
  do {
    for (uint32_t k = 0; k < node->nin; k++)
      arg[k] = in[k].data[broadcast_offset(&in[k], out->rank, at)];
    for (uint32_t a = 0; a < out->rank; a++) back[out->rank - 1 - a] = at[a];
    out->data[i++] = bb_expr_eval(node->expr, &env);
  } while (advance(out->rank, out->shape, at));
  return true;
}

static void eval_transpose(const bb_array_node *node, const bb_whole *in, bb_whole *out) {
  int64_t at[BB_EVAL_RANK] = {0}, from[BB_EVAL_RANK];
  size_t i = 0;
  do {
    for (uint32_t a = 0; a < out->rank; a++) from[node->ints[a]] = at[a];
    out->data[i++] = in->data[offset(in, from)];
  } while (advance(out->rank, out->shape, at));
}

static void eval_broadcast(const bb_whole *in, bb_whole *out) {
  int64_t at[BB_EVAL_RANK] = {0};
  size_t i = 0;
  do out->data[i++] = in->data[broadcast_offset(in, out->rank, at)];
  while (advance(out->rank, out->shape, at));
}

static void eval_slice(const bb_array_node *node, const bb_whole *in, bb_whole *out) {
  int64_t at[BB_EVAL_RANK] = {0}, from[BB_EVAL_RANK];
  size_t i = 0;
  do {
    memcpy(from, at, sizeof from);
    from[node->ints[0]] = node->ints[1] + at[node->ints[0]] * node->ints[2];
    out->data[i++] = in->data[offset(in, from)];
  } while (advance(out->rank, out->shape, at));
}

static void eval_windows(const bb_array_node *node, const bb_whole *in, bb_whole *out) {
  int64_t at[BB_EVAL_RANK] = {0}, from[BB_EVAL_RANK] = {0}, axis = node->ints[0];
  size_t i = 0;
  do {
    for (uint32_t a = 0; a < in->rank; a++) from[a] = at[a + (a > axis)];
    from[axis] = node->ints[1] + at[axis] * node->ints[2] + at[axis + 1] * node->ints[3];
    out->data[i++] = in->data[offset(in, from)];
  } while (advance(out->rank, out->shape, at));
}

static void eval_concat(const bb_array_node *node, const bb_whole *in, bb_whole *out) {
  int64_t at[BB_EVAL_RANK] = {0}, from[BB_EVAL_RANK], axis = node->ints[0];
  size_t i = 0;
  do {
    memcpy(from, at, sizeof from);
    uint32_t k = 0;
    while (from[axis] >= in[k].shape[axis]) from[axis] -= in[k++].shape[axis];
    out->data[i++] = in[k].data[offset(&in[k], from)];
  } while (advance(out->rank, out->shape, at));
}

/* Folds every element into the place it belongs to; one component. */
static bool eval_reduce(const bb_array_node *node, bb_dtype dtype, const bb_whole *in,
                        bb_whole *out) {
  int64_t at[BB_EVAL_RANK] = {0};
  if (node->monoid->components != 1) return false;
  double empty;
  bb_monoid_empty(node->monoid, &empty);
  empty = bb_monoid_empty_held(dtype, empty);
  for (size_t i = 0; i < out->count; i++) out->data[i] = empty;
  size_t i = 0;
  do {
    size_t to = 0;
    for (uint32_t a = 0; a < in->rank; a++) {
      bool gone = false;
      for (uint32_t k = 1; k < node->count; k++) gone |= node->ints[k] == a;
      if (!gone) to = to * (size_t)in->shape[a] + (size_t)at[a];
    }
    bb_monoid_combine(node->monoid, &out->data[to], &in->data[i++]);
  } while (advance(in->rank, in->shape, at));
  return true;
}

bool bb_eval_node(const bb_array *array, const bb_array_node *node, const bb_whole *in,
                  bb_arena *arena, bb_whole *out) {
  bb_dtype dtype = array->value[node->out[0]].dtype;
  out->data = BB_NEW(arena, double, out->count);
  switch (node->op) {
  case BB_A_ELEMENTWISE:
    if (!eval_elementwise(node, in, arena, out)) return false;
    break;
  case BB_A_RESHAPE: memcpy(out->data, in->data, out->count * sizeof *out->data); break;
  case BB_A_TRANSPOSE: eval_transpose(node, in, out); break;
  case BB_A_BROADCAST: eval_broadcast(in, out); break;
  case BB_A_SLICE: eval_slice(node, in, out); break;
  case BB_A_WINDOWS: eval_windows(node, in, out); break;
  case BB_A_CONCAT: eval_concat(node, in, out); break;
  case BB_A_REDUCE:
    if (!eval_reduce(node, array->value[node->out[0]].dtype, in, out)) return false;
    break;
  default: return false;
  }
  return is_exact(dtype, out->data, out->count);
}
