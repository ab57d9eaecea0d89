/* verify_array.c - the laws of array programs: order, attributes, and the types of results. */
#include "array/array.h"
#include "verify_law.h"

#include <string.h>

enum { MAX_RANK = 64 };

typedef struct checker {
  bb_verifier *v;
  const bb_array *array;
  const bb_array_node *node;
  bb_place place;
} checker;

static const bb_array_value *operand(const checker *c, uint32_t i) {
  return &c->array->value[c->node->in[i]];
}

static const bb_array_value *result(const checker *c) {
  return &c->array->value[c->node->out[0]];
}

static bool node_broken(checker *c, const char *what) {
  return bb_law_broken(c->v, BB_LAW_ARRAY_NODE, c->place, "%s", what);
}

static bool type_broken(checker *c, const char *what) {
  return bb_law_broken(c->v, BB_LAW_ARRAY_TYPE, c->place, "%s", what);
}

static bool only_stored(checker *c) {
  return type_broken(c, "its operands are only stored: cast them to i32, i64 or f32 first");
}

static bool is_axis(int64_t axis, uint32_t rank) {
  return axis >= 0 && axis < (int64_t)rank;
}

/* --- types op by op --- */

static bool check_elementwise(checker *c) {
  const bb_array_node *node = c->node;
  const bb_array_value *out = result(c);
  bb_dtype *dtype = BB_NEW(c->v->scratch, bb_dtype, node->nin);
  if (!node->expr) return node_broken(c, "it has no expression");
  for (uint32_t i = 0; i < node->nin; i++) dtype[i] = operand(c, i)->dtype;
  if (!bb_verify_expr(c->v, c->place, node->expr, node->nin, dtype)) return false;
  if (node->expr->dtype != out->dtype)
    return type_broken(c, "its expression has another element type");
  for (uint32_t a = 0; a < out->rank; a++) { /* counted from the last axis */
    const bb_extent *extent = bb_extent_number((bb_program *)c->v->program, 1);
    for (uint32_t i = 0; i < node->nin; i++) {
      const bb_array_value *in = operand(c, i);
      if (in->rank > out->rank) return type_broken(c, "an operand has more axes");
      if (a >= in->rank || bb_extent_is_one(in->shape[in->rank - 1 - a])) continue;
      if (!bb_extent_is_one(extent) && extent != in->shape[in->rank - 1 - a])
        return type_broken(c, "operands do not broadcast");
      extent = in->shape[in->rank - 1 - a];
    }
    if (out->shape[out->rank - 1 - a] != extent) return type_broken(c, "another shape");
  }
  return true;
}

/* The extent behind a label of an operand, or NULL. */
static const bb_extent *labelled(const bb_array_value *value, const int64_t *labels,
                                 int64_t label) {
  for (uint32_t i = 0; i < value->rank; i++)
    if (labels[i] == label) return value->shape[i];
  return NULL;
}

static bool check_contract(checker *c) {
  const int64_t *ints = c->node->ints;
  const bb_array_value *a = operand(c, 0), *b = operand(c, 1), *out = result(c);
  if (c->node->count < 3 || ints[0] != a->rank || ints[1] != b->rank || ints[2] != out->rank ||
      c->node->count != 3 + a->rank + b->rank + out->rank)
    return node_broken(c, "its labels do not fit the ranks");
  if (a->dtype != b->dtype || a->dtype != out->dtype)
    return type_broken(c, "operands and result have different element types");
  if (bb_dtype_is_stored(out->dtype)) return only_stored(c);
  const int64_t *la = ints + 3, *lb = la + a->rank, *lo = lb + b->rank;
  for (uint32_t i = 0; i < a->rank; i++) {
    const bb_extent *other = labelled(b, lb, la[i]);
    if (other && other != a->shape[i] && !bb_extent_is_one(other) && !bb_extent_is_one(a->shape[i]))
      return type_broken(c, "an axis that both operands have differs");
  }
  for (uint32_t i = 0; i < out->rank; i++) {
    const bb_extent *x = labelled(a, la, lo[i]), *y = labelled(b, lb, lo[i]);
    if (!x && !y) return node_broken(c, "a label of the result stands in no operand");
    const bb_extent *extent = !x || (y && bb_extent_is_one(x)) ? y : x;
    if (out->shape[i] != extent) return type_broken(c, "another shape");
  }
  return true;
}

/* The shape without the axes given, or with 1 in their place. */
static bool check_without(checker *c, uint32_t count, const int64_t *axes, bool keep) {
  const bb_array_value *in = operand(c, 0), *out = result(c);
  uint32_t at = 0, next = 0;
  for (uint32_t i = 0; i < count; i++)
    if (!is_axis(axes[i], in->rank) || (i && axes[i] <= axes[i - 1]))
      return node_broken(c, "its axes are not axes of the operand, ascending");
  for (uint32_t i = 0; i < in->rank; i++) {
    bool gone = next < count && axes[next] == i;
    if (gone) next++;
    if (gone && !keep) continue;
    bool same = at < out->rank &&
                (gone ? bb_extent_is_one(out->shape[at]) : out->shape[at] == in->shape[i]);
    if (!same) return type_broken(c, "another shape");
    at++;
  }
  return at == out->rank || type_broken(c, "another rank");
}

static bool same_shape(const bb_array_value *a, const bb_array_value *b) {
  if (a->rank != b->rank) return false;
  for (uint32_t i = 0; i < a->rank; i++)
    if (a->shape[i] != b->shape[i]) return false;
  return true;
}

/* Operands and results beyond the first are shaped like it, and all typed as their components. */
static bool check_components(checker *c) {
  const bb_array_node *node = c->node;
  bool index = node->monoid->components == 2 && !node->monoid->component;
  if (index != (node->op == BB_A_ARGREDUCE)) return node_broken(c, "another kind of monoid");
  for (uint32_t k = 0; k < node->nin; k++)
    if (bb_dtype_is_stored(operand(c, k)->dtype)) return only_stored(c);
  for (uint32_t k = 0; node->monoid->component && k < node->nin; k++) {
    const bb_array_value *in = operand(c, k), *out = &c->array->value[node->out[k]];
    bb_dtype dtype = node->monoid->component[k].dtype;
    if (!same_shape(in, operand(c, 0)) || !same_shape(out, result(c)))
      return type_broken(c, "components of several shapes");
    if (in->dtype != dtype || out->dtype != dtype) return type_broken(c, "another element type");
  }
  return true;
}

static bool check_fold(checker *c) {
  const bb_array_node *node = c->node;
  bool argument = node->op == BB_A_ARGREDUCE;
  if (!node->monoid || node->count < (argument ? 2u : 1u))
    return node_broken(c, "a monoid or axes are missing");
  if (!check_components(c)) return false;
  if (result(c)->dtype != (argument ? BB_I64 : operand(c, 0)->dtype))
    return type_broken(c, "another element type");
  if (argument) return check_without(c, 1, node->ints, node->ints[1] != 0);
  return check_without(c, node->count - 1, node->ints + 1, node->ints[0] != 0);
}

static bool same_type(checker *c) {
  const bb_array_value *in = operand(c, 0), *out = result(c);
  bool same = in->dtype == out->dtype && in->rank == out->rank;
  for (uint32_t i = 0; same && i < in->rank; i++) same = in->shape[i] == out->shape[i];
  return same || type_broken(c, "not the operand's type");
}

static bool check_scan(checker *c) {
  if (!c->node->monoid || c->node->count != 2 || !is_axis(c->node->ints[0], operand(c, 0)->rank))
    return node_broken(c, "a monoid or the axis is missing");
  return check_components(c) && same_type(c);
}

static const bb_extent *elements(checker *c, const bb_array_value *value) {
  bb_program *tables = (bb_program *)c->v->program; /* interns extents: nothing a reader sees */
  const bb_extent *all = bb_extent_number(tables, 1);
  for (uint32_t i = 0; i < value->rank; i++) all = bb_extent_multiply(tables, all, value->shape[i]);
  return all;
}

static bool check_reshape(checker *c) {
  return elements(c, operand(c, 0)) == elements(c, result(c)) ||
         type_broken(c, "another number of elements");
}

static bool check_broadcast(checker *c) {
  const bb_array_value *in = operand(c, 0), *out = result(c);
  bool fits = in->rank <= out->rank;
  for (uint32_t i = 0; fits && i < in->rank; i++)
    fits = bb_extent_is_one(in->shape[i]) || in->shape[i] == out->shape[out->rank - in->rank + i];
  return fits || type_broken(c, "the operand does not broadcast to it");
}

static bool check_transpose(checker *c) {
  const bb_array_value *in = operand(c, 0), *out = result(c);
  bool seen[MAX_RANK] = {false};
  if (c->node->count != in->rank || in->rank > MAX_RANK) return node_broken(c, "perm misses axes");
  if (out->rank != in->rank) return type_broken(c, "another rank");
  for (uint32_t i = 0; i < in->rank; i++) {
    int64_t axis = c->node->ints[i];
    if (!is_axis(axis, in->rank) || seen[axis]) return node_broken(c, "perm is none");
    seen[axis] = true;
    if (out->shape[i] != in->shape[axis]) return type_broken(c, "another shape");
  }
  return true;
}

static bool check_slice(checker *c) {
  const bb_array_value *in = operand(c, 0), *out = result(c);
  const int64_t *ints = c->node->ints;
  if (c->node->count != 4 || !is_axis(ints[0], in->rank) || ints[1] < 0 || ints[2] == 0 ||
      ints[3] < 0)
    return node_broken(c, "axis, start, step or length");
  int64_t last = ints[1], extent = bb_extent_value(in->shape[ints[0]]);
  bool overflow = ints[3] > 0 && (__builtin_mul_overflow(ints[2], ints[3] - 1, &last) ||
                                  __builtin_add_overflow(last, ints[1], &last));
  bool inside = ints[3] == 0 || extent < 0 || (ints[1] < extent && last < extent);
  if (overflow || (ints[3] && last < 0) || !inside) return node_broken(c, "it leaves the axis");
  if (out->rank != in->rank) return type_broken(c, "another rank");
  for (uint32_t i = 0; i < in->rank; i++) {
    bool cut = i == ints[0];
    if (cut ? bb_extent_value(out->shape[i]) != ints[3] : out->shape[i] != in->shape[i])
      return type_broken(c, "another shape");
  }
  return true;
}

static bool check_windows(checker *c) {
  const bb_array_value *in = operand(c, 0), *out = result(c);
  const int64_t *ints = c->node->ints;
  if (c->node->count != 6 || !is_axis(ints[0], in->rank) || ints[1] < 0)
    return node_broken(c, "axis, start, step, by, places or taps");
  int64_t extent = bb_extent_value(in->shape[ints[0]]), last = ints[1];
  for (int k = 0; k < 2; k++) {
    int64_t step = ints[2 + k], count = k == 0 && ints[4] == -1 ? 2 : ints[4 + k], far;
    if (step < 1 || count < 2 - k || __builtin_mul_overflow(step, count - 1, &far) ||
        __builtin_add_overflow(last, far, &last))
      return node_broken(c, "axis, start, step, by, places or taps");
  }
  if (extent >= 0 && last >= extent) return node_broken(c, "it leaves the axis");
  if (out->rank != in->rank + 1) return type_broken(c, "another rank");
  for (uint32_t i = 0; i < out->rank; i++) {
    bool made = i == ints[0] || i == ints[0] + 1;
    if (made ? bb_extent_value(out->shape[i]) != ints[i == ints[0] ? 4 : 5]
             : out->shape[i] != in->shape[i - (i > ints[0])])
      return type_broken(c, "another shape");
  }
  return true;
}

static bool check_pad(checker *c) {
  const bb_array_value *in = operand(c, 0), *out = result(c);
  const int64_t *ints = c->node->ints;
  const bb_expr *fill = c->node->expr;
  if (c->node->count != 2 || !is_axis(ints[0], in->rank) || ints[1] < 0)
    return node_broken(c, "axis or start");
  if (!fill || fill->op != BB_X_CONST || fill->dtype != in->dtype)
    return node_broken(c, "its fill is no number of the operand's type");
  if (out->rank != in->rank) return type_broken(c, "another rank");
  for (uint32_t i = 0; i < out->rank; i++) {
    bool open = bb_extent_value(in->shape[i]) < 0 && bb_extent_value(out->shape[i]) < 0;
    if (i == ints[0] ? !open : out->shape[i] != in->shape[i])
      return type_broken(c, "another shape");
  }
  return true;
}

static bool check_concat(checker *c) {
  const bb_array_value *out = result(c);
  if (c->node->nin == 0 || c->node->count != 1 || !is_axis(c->node->ints[0], out->rank))
    return node_broken(c, "operands or the axis are missing");
  int64_t length = 0;
  for (uint32_t k = 0; k < c->node->nin; k++) {
    const bb_array_value *in = operand(c, k);
    if (in->rank != out->rank || in->dtype != out->dtype)
      return type_broken(c, "an operand of another rank or element type");
    for (uint32_t i = 0; i < in->rank; i++)
      if (i != c->node->ints[0] && in->shape[i] != out->shape[i])
        return type_broken(c, "another shape");
    int64_t own = bb_extent_value(in->shape[c->node->ints[0]]);
    if (own < 0 || length < 0)
      length = -1;
    else if (__builtin_add_overflow(length, own, &length))
      return type_broken(c, "a joined axis too long");
  }
  int64_t joined = bb_extent_value(out->shape[c->node->ints[0]]);
  return length < 0 || length == joined || type_broken(c, "a joined axis of another length");
}

static bool check_op(checker *c) {
  bool layout = c->node->op >= BB_A_SCAN && c->node->op <= BB_A_CONCAT;
  if (layout && c->node->op != BB_A_SCAN && operand(c, 0)->dtype != result(c)->dtype)
    return type_broken(c, "another element type");
  switch (c->node->op) {
  case BB_A_ELEMENTWISE: return check_elementwise(c);
  case BB_A_CONTRACT: return check_contract(c);
  case BB_A_REDUCE:
  case BB_A_ARGREDUCE: return check_fold(c);
  case BB_A_SCAN: return check_scan(c);
  case BB_A_RESHAPE: return check_reshape(c);
  case BB_A_TRANSPOSE: return check_transpose(c);
  case BB_A_BROADCAST: return check_broadcast(c);
  case BB_A_SLICE: return check_slice(c);
  case BB_A_WINDOWS: return check_windows(c);
  case BB_A_PAD: return check_pad(c);
  case BB_A_CONCAT: return check_concat(c);
  case BB_A_MISC: return c->node->misc || node_broken(c, "it has no operator");
  case BB_ARRAY_OP_COUNT: break;
  }
  return node_broken(c, "an unknown op");
}

/* --- order --- */

static bool check_count(checker *c) {
  bool fold = c->node->op == BB_A_REDUCE || c->node->op == BB_A_SCAN;
  if (fold && !c->node->monoid) return node_broken(c, "a monoid is missing");
  uint32_t results = fold ? c->node->monoid->components : 1;
  uint32_t nin = c->node->op == BB_A_CONTRACT ? 2 : results;
  bool any =
      c->node->op == BB_A_MISC || c->node->op == BB_A_ELEMENTWISE || c->node->op == BB_A_CONCAT;
  if (!any && c->node->nin != nin) return node_broken(c, "another number of operands");
  if (c->node->op != BB_A_MISC && c->node->nout != results)
    return node_broken(c, "another number of results");
  return true;
}

static bool check_node(checker *c, uint32_t index, bool *there) {
  const bb_array_node *node = c->node;
  bool misc = node->op == BB_A_MISC;
  for (uint32_t i = 0; i < node->nin; i++) {
    bool absent = misc && node->in[i] == BB_NONE;
    if (!absent && (node->in[i] >= c->array->values || !there[node->in[i]]))
      return bb_law_broken(c->v, BB_LAW_ARRAY_ORDER, c->place, "operand %u is not there yet", i);
  }
  for (uint32_t i = 0; i < node->nout; i++) {
    if (misc && node->out[i] == BB_NONE) continue;
    bool fresh = node->out[i] < c->array->values && !there[node->out[i]];
    if (!fresh || c->array->value[node->out[i]].producer != index ||
        c->array->value[node->out[i]].port != i)
      return bb_law_broken(c->v, BB_LAW_ARRAY_ORDER, c->place, "result %u is no value of its own",
                           i);
    there[node->out[i]] = true;
  }
  return check_count(c) && check_op(c);
}

/* Once axes are factored: the dims of each. */
static bool check_factors(bb_verifier *v, const bb_array_value *value) {
  bb_program *tables = (bb_program *)v->program; /* interns extents: nothing a reader sees */
  if (!value->factors) return true;
  for (uint32_t a = 0; a < value->rank; a++) {
    const bb_extent *all = bb_extent_number(tables, 1);
    bool known = true;
    for (uint32_t k = 0; known && k < value->factors[a]; k++) {
      known = value->factor[a][k] < v->program->dims;
      if (known) all = bb_extent_multiply(tables, all, v->program->dim[value->factor[a][k]].extent);
    }
    if (!known || all != value->shape[a])
      return bb_law_broken(v, BB_LAW_ARRAY_DIMS, (bb_place){.text = value->name}, "axis %u", a);
  }
  return true;
}

static bool check_sources(bb_verifier *v, const bb_array *array, bool *there) {
  for (uint32_t i = 0; i < array->values; i++) {
    const bb_array_value *value = &array->value[i];
    if (!check_factors(v, value)) return false;
    there[i] = value->is_input || (value->producer == BB_NONE && value->data);
    if (value->is_input && (value->data || value->producer != BB_NONE))
      return bb_law_broken(v, BB_LAW_ARRAY_OUTPUT, (bb_place){.text = value->name},
                           "an input that is computed");
    if (value->is_input || !there[i]) continue;
    int64_t bytes = bb_dtype_bytes(value->dtype);
    bool large = false;
    for (uint32_t a = 0; a < value->rank; a++)
      large |= __builtin_mul_overflow(bytes, bb_extent_value(value->shape[a]), &bytes);
    if (large || bytes != (int64_t)value->bytes)
      return bb_law_broken(v, BB_LAW_ARRAY_OUTPUT, (bb_place){.text = value->name},
                           "%zu bytes of data, not those of its shape", value->bytes);
  }
  return true;
}

bool bb_verify_array(bb_verifier *v) {
  const bb_array *array = v->program->array;
  if (!array)
    return bb_law_broken(v, BB_LAW_STAGE, (bb_place){.text = "program"},
                         "there is no array program");
  bool *there = BB_NEW(v->scratch, bool, array->values);
  if (!check_sources(v, array, there)) return false;
  for (uint32_t i = 0; i < array->nodes; i++) {
    const bb_array_node *node = &array->node[i];
    if (node->removed) continue;
    checker c = {v,
                 array,
                 node,
                 {.text = bb_arena_printf(v->scratch, "array node %u (%s)", i,
                                          node->name ? node->name : "unnamed")}};
    if (!check_node(&c, i, there)) return false;
  }
  for (uint32_t i = 0; i < array->outputs; i++)
    if (array->output[i] >= array->values || !there[array->output[i]])
      return bb_law_broken(v, BB_LAW_ARRAY_OUTPUT, (bb_place){.text = array->output_name[i]},
                           "nothing computes it");
  return true;
}
