/* array.c - building array programs: values, nodes and the shapes that follow from operands.
 *
 * Every builder checks its operands and fails the context with the node's name, so that a front end
 * needs no checks of its own.  Attributes in bounds of the rank are the caller's to normalise: an
 * axis here is never negative.
 */
#include "array.h"

#include <string.h>

bb_array *bb_array_create(bb_program *program) {
  if (!program->drafts) program->drafts = bb_arena_create(program->ctx);
  bb_array *array = BB_NEW(program->drafts, bb_array, 1);
  array->program = program;
  return array;
}

void bb_array_drop(bb_program *program) {
  bb_arena_destroy(program->drafts);
  program->drafts = NULL;
  program->array = NULL;
}

uint32_t bb_array_value_add(bb_array *array, const char *name, bb_dtype dtype, uint32_t rank,
                            const bb_extent *const *shape) {
  bb_arena *arena = array->program->drafts;
  BB_GROW(arena, array->value, array->value_capacity, (size_t)array->values + 1);
  const bb_extent **copy = BB_NEW(arena, const bb_extent *, rank ? rank : 1);
  if (rank) memcpy(copy, shape, rank * sizeof *copy);
  array->value[array->values] = (bb_array_value){
      .name = name, .dtype = dtype, .rank = rank, .shape = copy, .producer = BB_NONE};
  return array->values++;
}

uint32_t bb_array_node_add(bb_array *array, bb_array_op op, const char *name, uint32_t nin,
                           const uint32_t *in, uint32_t nout, const uint32_t *out) {
  bb_arena *arena = array->program->drafts;
  BB_GROW(arena, array->node, array->node_capacity, (size_t)array->nodes + 1);
  bb_array_node *node = &array->node[array->nodes];
  *node = (bb_array_node){.op = op, .name = name, .nin = nin, .nout = nout};
  node->in = BB_NEW(arena, uint32_t, nin ? nin : 1);
  node->out = BB_NEW(arena, uint32_t, nout ? nout : 1);
  if (nin) memcpy(node->in, in, nin * sizeof *in);
  if (nout) memcpy(node->out, out, nout * sizeof *out);
  for (uint32_t p = 0; p < nout; p++) {
    if (out[p] == BB_NONE) continue;
    array->value[out[p]].producer = array->nodes;
    array->value[out[p]].port = p;
  }
  return array->nodes++;
}

void bb_array_append(bb_array *array, bb_array_node node) {
  BB_GROW(array->program->drafts, array->node, array->node_capacity, (size_t)array->nodes + 1);
  for (uint32_t k = 0; k < node.nout; k++) array->value[node.out[k]].producer = array->nodes;
  array->node[array->nodes++] = node;
}

/* --- helpers of the builders --- */

static const char *label(const char *name) {
  return name && *name ? name : "(unnamed)";
}

/* "[2,S,64]" */
static const char *shape_text(bb_array *array, uint32_t rank, const bb_extent *const *shape) {
  bb_buffer buffer = {.arena = array->program->arena};
  bb_put(&buffer, "[");
  for (uint32_t a = 0; a < rank; a++) {
    const bb_extent *e = shape[a];
    if (a) bb_put(&buffer, ",");
    if (!e->count || e->factor != 1) bb_put(&buffer, "%lld", (long long)e->factor);
    for (uint32_t s = 0; s < e->count; s++) {
      bool first = s == 0 && e->factor == 1;
      bb_put(&buffer, "%s%s", first ? "" : "*", array->program->symbol[e->symbol[s]]);
    }
  }
  bb_put(&buffer, "]");
  return buffer.data;
}

static const char *value_shape(bb_array *array, uint32_t value) {
  return shape_text(array, array->value[value].rank, array->value[value].shape);
}

static bb_context *context(bb_array *array) {
  return array->program->ctx;
}

/* The one result of a node; attributes are the caller's to set. */
static uint32_t result(bb_array *array, bb_array_op op, const char *name, bb_dtype dtype,
                       uint32_t rank, const bb_extent *const *shape, uint32_t nin,
                       const uint32_t *in) {
  uint32_t out = bb_array_value_add(array, name, dtype, rank, shape);
  bb_array_node_add(array, op, name, nin, in, 1, &out);
  return out;
}

static void set_ints(bb_array *array, uint32_t value, uint32_t count, const int64_t *ints) {
  bb_array_node *node = &array->node[array->value[value].producer];
  int64_t *copy = BB_NEW(array->program->arena, int64_t, count ? count : 1);
  if (count) memcpy(copy, ints, count * sizeof *ints);
  node->count = count;
  node->ints = copy;
}

static void check_axis(bb_array *array, const char *name, uint32_t in, int64_t axis) {
  if (axis < 0 || axis >= array->value[in].rank)
    bb_fail(context(array), BB_ERROR_INPUT, "node %s: axis %lld is out of range for shape %s",
            label(name), (long long)axis, value_shape(array, in));
}

/* The bytes that a shape takes; fails on symbols and on overflow. */
static size_t shape_bytes(bb_array *array, const char *name, bb_dtype dtype, uint32_t rank,
                          const int64_t *shape) {
  size_t bytes = bb_dtype_bytes(dtype);
  bool empty = false;
  for (uint32_t a = 0; a < rank; a++) {
    if (shape[a] < 0)
      bb_fail(context(array), BB_ERROR_INPUT, "constant %s: negative extent %lld", label(name),
              (long long)shape[a]);
    empty |= shape[a] == 0;
  }
  if (empty) return 0;
  for (uint32_t a = 0; a < rank; a++)
    if (__builtin_mul_overflow(bytes, (size_t)shape[a], &bytes))
      bb_fail(context(array), BB_ERROR_INPUT, "constant %s: its shape overflows", label(name));
  return bytes;
}

/* --- builders --- */

uint32_t bb_array_constant(bb_array *array, const char *name, bb_dtype dtype, uint32_t rank,
                           const int64_t *shape, const void *data, size_t bytes) {
  size_t need = shape_bytes(array, name, dtype, rank, shape);
  if (need != bytes)
    bb_fail(context(array), BB_ERROR_INPUT,
            "constant %s: has %zu bytes of data, its shape needs %zu", label(name), bytes, need);
  bb_arena *scratch = bb_scratch(context(array));
  const bb_extent **extents = BB_NEW(scratch, const bb_extent *, rank ? rank : 1);
  for (uint32_t a = 0; a < rank; a++) extents[a] = bb_extent_number(array->program, shape[a]);
  uint32_t value = bb_array_value_add(array, name, dtype, rank, extents);
  bb_scratch_end(scratch);
  array->value[value].data = data ? data : "";
  array->value[value].bytes = bytes;
  return value;
}

/* numpy: axes aligned from the last; an extent of 1 gives way. */
static uint32_t broadcast_shapes(bb_array *array, const char *name, uint32_t count,
                                 const uint32_t *in, const bb_extent **shape, uint32_t capacity) {
  uint32_t rank = 0;
  for (uint32_t i = 0; i < count; i++)
    if (array->value[in[i]].rank > rank) rank = array->value[in[i]].rank;
  if (rank > capacity)
    bb_fail(context(array), BB_ERROR_INPUT, "node %s: rank %u is above the limit of %u",
            label(name), rank, capacity);
  for (uint32_t a = 0; a < rank; a++) shape[a] = bb_extent_number(array->program, 1);
  for (uint32_t i = 0; i < count; i++) {
    const bb_array_value *v = &array->value[in[i]];
    for (uint32_t a = 0; a < v->rank; a++) {
      const bb_extent **out = &shape[rank - v->rank + a];
      if (v->shape[a] == *out || bb_extent_is_one(v->shape[a])) continue;
      if (!bb_extent_is_one(*out))
        bb_fail(context(array), BB_ERROR_INPUT, "node %s: shapes %s and %s do not broadcast",
                label(name), value_shape(array, in[0]), value_shape(array, in[i]));
      *out = v->shape[a];
    }
  }
  return rank;
}

uint32_t bb_array_elementwise(bb_array *array, const char *name, const bb_expr *expr,
                              uint32_t count, const uint32_t *in) {
  const bb_extent *shape[BB_ARRAY_RANK];
  uint32_t rank = broadcast_shapes(array, name, count, in, shape, BB_ARRAY_RANK);
  uint32_t out = result(array, BB_A_ELEMENTWISE, name, expr->dtype, rank, shape, count, in);
  array->node[array->value[out].producer].expr = expr;
  return out;
}

static bool has_label(const int64_t *labels, uint32_t rank, int64_t what) {
  for (uint32_t a = 0; a < rank; a++)
    if (labels[a] == what) return true;
  return false;
}

static void check_labels(bb_array *array, const char *name, uint32_t rank, const int64_t *labels) {
  for (uint32_t a = 0; a < rank; a++)
    if (has_label(labels, a, labels[a]))
      bb_fail(context(array), BB_ERROR_INPUT, "node %s: label %lld stands twice on one side",
              label(name), (long long)labels[a]);
}

/* Sums away axes of one operand whose label stands nowhere else; labels keep only the rest. */
static uint32_t sum_lonely_axes(bb_array *array, const char *name, uint32_t in, int64_t *labels,
                                uint32_t other_rank, const int64_t *other, uint32_t rank,
                                const int64_t *labels_out) {
  int64_t axes[BB_ARRAY_RANK];
  uint32_t count = 0, kept = 0, total = array->value[in].rank;
  for (uint32_t a = 0; a < total; a++) {
    if (has_label(other, other_rank, labels[a]) || has_label(labels_out, rank, labels[a]))
      labels[kept++] = labels[a];
    else
      axes[count++] = a;
  }
  if (!count) return in;
  return bb_array_reduce(array, name, bb_monoid_get(BB_MONOID_SUM), in, count, axes, false);
}

/* The extent behind a label of the result; operands' axes of extent 1 give way. */
static const bb_extent *label_extent(bb_array *array, int64_t what, uint32_t a, const int64_t *la,
                                     uint32_t b, const int64_t *lb) {
  const bb_extent *extent = NULL;
  const uint32_t in[2] = {a, b};
  const int64_t *const labels[2] = {la, lb};
  for (int i = 0; i < 2; i++)
    for (uint32_t x = 0; x < array->value[in[i]].rank; x++)
      if (labels[i][x] == what && (!extent || bb_extent_is_one(extent)))
        extent = array->value[in[i]].shape[x];
  return extent;
}

/* Operands must agree on the labels they share. */
static void check_shared(bb_array *array, const char *name, uint32_t a, const int64_t *la,
                         uint32_t b, const int64_t *lb, uint32_t rank, const int64_t *labels_out) {
  const bb_array_value *va = &array->value[a], *vb = &array->value[b];
  for (uint32_t x = 0; x < va->rank; x++)
    for (uint32_t y = 0; y < vb->rank; y++) {
      if (la[x] != lb[y] || va->shape[x] == vb->shape[y]) continue;
      bool batch = has_label(labels_out, rank, la[x]);
      if (!batch || (!bb_extent_is_one(va->shape[x]) && !bb_extent_is_one(vb->shape[y])))
        bb_fail(context(array), BB_ERROR_INPUT, "node %s: shapes %s and %s do not contract",
                label(name), value_shape(array, a), value_shape(array, b));
    }
}

uint32_t bb_array_contract(bb_array *array, const char *name, uint32_t a, uint32_t b,
                           const int64_t *labels_a, const int64_t *labels_b, uint32_t rank,
                           const int64_t *labels_out) {
  uint32_t ra = array->value[a].rank, rb = array->value[b].rank;
  if (ra > BB_ARRAY_RANK || rb > BB_ARRAY_RANK || rank > BB_ARRAY_RANK)
    bb_fail(context(array), BB_ERROR_INPUT, "node %s: a rank is above the limit of %d", label(name),
            BB_ARRAY_RANK);
  check_labels(array, name, ra, labels_a);
  check_labels(array, name, rb, labels_b);
  check_labels(array, name, rank, labels_out);
  if (array->value[a].dtype != array->value[b].dtype)
    bb_fail(context(array), BB_ERROR_INPUT, "node %s: operands of types %s and %s", label(name),
            bb_dtype_name(array->value[a].dtype), bb_dtype_name(array->value[b].dtype));
  int64_t la[BB_ARRAY_RANK], lb[BB_ARRAY_RANK];
  memcpy(la, labels_a, ra * sizeof *la);
  memcpy(lb, labels_b, rb * sizeof *lb);
  check_shared(array, name, a, la, b, lb, rank, labels_out);
  a = sum_lonely_axes(array, name, a, la, rb, lb, rank, labels_out);
  ra = array->value[a].rank;
  b = sum_lonely_axes(array, name, b, lb, ra, la, rank, labels_out);
  rb = array->value[b].rank;

  const bb_extent *shape[BB_ARRAY_RANK];
  for (uint32_t x = 0; x < rank; x++) {
    shape[x] = label_extent(array, labels_out[x], a, la, b, lb);
    if (!shape[x])
      bb_fail(context(array), BB_ERROR_INPUT,
              "node %s: label %lld of the result stands in no operand", label(name),
              (long long)labels_out[x]);
  }
  uint32_t out =
      result(array, BB_A_CONTRACT, name, array->value[a].dtype, rank, shape, 2, (uint32_t[]){a, b});
  int64_t ints[3 + 3 * BB_ARRAY_RANK] = {ra, rb, rank};
  memcpy(ints + 3, la, ra * sizeof *la);
  memcpy(ints + 3 + ra, lb, rb * sizeof *lb);
  if (rank) memcpy(ints + 3 + ra + rb, labels_out, rank * sizeof *labels_out);
  set_ints(array, out, 3 + ra + rb + rank, ints);
  return out;
}

/* The shape of `in` without the given axes (keep: with 1 in their place). */
static uint32_t shape_without(bb_array *array, const char *name, uint32_t in, uint32_t count,
                              const int64_t *axes, bool keep, const bb_extent **shape) {
  const bb_array_value *v = &array->value[in];
  uint32_t rank = 0, at = 0;
  if (v->rank > BB_ARRAY_RANK)
    bb_fail(context(array), BB_ERROR_INPUT, "node %s: a rank is above the limit of %d", label(name),
            BB_ARRAY_RANK);
  for (uint32_t i = 0; i < count; i++) {
    check_axis(array, name, in, axes[i]);
    if (i && axes[i] <= axes[i - 1])
      bb_fail(context(array), BB_ERROR_INPUT, "node %s: axes are not ascending", label(name));
  }
  for (uint32_t a = 0; a < v->rank; a++) {
    bool gone = at < count && axes[at] == a;
    if (gone) at++;
    if (!gone) shape[rank++] = v->shape[a];
    if (gone && keep) shape[rank++] = bb_extent_number(array->program, 1);
  }
  return rank;
}

uint32_t bb_array_reduce(bb_array *array, const char *name, const bb_monoid *monoid, uint32_t in,
                         uint32_t count, const int64_t *axes, bool keep) {
  const bb_extent *shape[BB_ARRAY_RANK];
  uint32_t rank = shape_without(array, name, in, count, axes, keep, shape);
  uint32_t out = result(array, BB_A_REDUCE, name, array->value[in].dtype, rank, shape, 1, &in);
  array->node[array->value[out].producer].monoid = monoid;
  int64_t ints[1 + BB_ARRAY_RANK] = {keep};
  if (count) memcpy(ints + 1, axes, count * sizeof *axes);
  set_ints(array, out, 1 + count, ints);
  return out;
}

uint32_t bb_array_argreduce(bb_array *array, const char *name, const bb_monoid *monoid, uint32_t in,
                            uint32_t axis, bool keep) {
  const bb_extent *shape[BB_ARRAY_RANK];
  int64_t at = axis;
  uint32_t rank = shape_without(array, name, in, 1, &at, keep, shape);
  uint32_t out = result(array, BB_A_ARGREDUCE, name, BB_I64, rank, shape, 1, &in);
  array->node[array->value[out].producer].monoid = monoid;
  set_ints(array, out, 2, (int64_t[]){axis, keep});
  return out;
}

/* Operands of a tuple have its components' types and one shape. */
static void check_components(bb_array *array, const char *name, const bb_monoid *monoid,
                             const uint32_t *in) {
  const bb_array_value *first = &array->value[in[0]];
  for (uint32_t k = 0; k < monoid->components; k++) {
    const bb_array_value *v = &array->value[in[k]];
    bool same = v->rank == first->rank;
    for (uint32_t a = 0; same && a < v->rank; a++) same = v->shape[a] == first->shape[a];
    if (!same)
      bb_fail(context(array), BB_ERROR_INPUT, "node %s: operands of %s differ in shape: %s and %s",
              label(name), monoid->name, value_shape(array, in[0]), value_shape(array, in[k]));
    if (v->dtype != monoid->component[k].dtype)
      bb_fail(context(array), BB_ERROR_INPUT, "node %s: component %s of %s is %s, its operand %s",
              label(name), monoid->component[k].name, monoid->name,
              bb_dtype_name(monoid->component[k].dtype), bb_dtype_name(v->dtype));
  }
}

/* A node with a result of this shape for each component. */
static void add_components(bb_array *array, bb_array_op op, const char *name,
                           const bb_monoid *monoid, const uint32_t *in, uint32_t rank,
                           const bb_extent *const *shape, uint32_t *out) {
  uint32_t n = monoid->components;
  for (uint32_t k = 0; k < n; k++)
    out[k] = bb_array_value_add(array, name, monoid->component[k].dtype, rank, shape);
  uint32_t node = bb_array_node_add(array, op, name, n, in, n, out);
  array->node[node].monoid = monoid;
}

void bb_array_reduce_tuple(bb_array *array, const char *name, const bb_monoid *monoid,
                           const uint32_t *in, uint32_t count, const int64_t *axes, bool keep,
                           uint32_t *out) {
  const bb_extent *shape[BB_ARRAY_RANK];
  check_components(array, name, monoid, in);
  uint32_t rank = shape_without(array, name, in[0], count, axes, keep, shape);
  add_components(array, BB_A_REDUCE, name, monoid, in, rank, shape, out);
  int64_t ints[1 + BB_ARRAY_RANK] = {keep};
  if (count) memcpy(ints + 1, axes, count * sizeof *axes);
  set_ints(array, out[0], 1 + count, ints);
}

void bb_array_scan_tuple(bb_array *array, const char *name, const bb_monoid *monoid,
                         const uint32_t *in, uint32_t axis, bool exclusive, bool reverse,
                         uint32_t *out) {
  uint32_t from[BB_MONOID_COMPONENTS];
  check_components(array, name, monoid, in);
  check_axis(array, name, in[0], axis);
  for (uint32_t k = 0; k < monoid->components; k++)
    from[k] = reverse ? bb_array_turned(array, name, in[k], axis) : in[k];
  const bb_array_value v = array->value[from[0]];
  add_components(array, BB_A_SCAN, name, monoid, from, v.rank, v.shape, out);
  set_ints(array, out[0], 2, (int64_t[]){axis, exclusive});
  for (uint32_t k = 0; reverse && k < monoid->components; k++)
    out[k] = bb_array_turned(array, name, out[k], axis);
}

uint32_t bb_array_scan(bb_array *array, const char *name, const bb_monoid *monoid, uint32_t in,
                       uint32_t axis, bool exclusive, bool reverse) {
  check_axis(array, name, in, axis);
  if (reverse) in = bb_array_turned(array, name, in, axis);
  const bb_array_value v = array->value[in];
  uint32_t out = result(array, BB_A_SCAN, name, v.dtype, v.rank, v.shape, 1, &in);
  array->node[array->value[out].producer].monoid = monoid;
  set_ints(array, out, 2, (int64_t[]){axis, exclusive});
  return reverse ? bb_array_turned(array, name, out, axis) : out;
}

static const bb_extent *product(bb_array *array, uint32_t rank, const bb_extent *const *shape) {
  const bb_extent *all = bb_extent_number(array->program, 1);
  for (uint32_t a = 0; a < rank; a++) all = bb_extent_multiply(array->program, all, shape[a]);
  return all;
}

uint32_t bb_array_reshape(bb_array *array, const char *name, uint32_t in, uint32_t rank,
                          const bb_extent *const *shape) {
  const bb_array_value v = array->value[in];
  if (product(array, v.rank, v.shape) != product(array, rank, shape))
    bb_fail(context(array), BB_ERROR_INPUT, "node %s: shape %s does not reshape to %s", label(name),
            value_shape(array, in), shape_text(array, rank, shape));
  return result(array, BB_A_RESHAPE, name, v.dtype, rank, shape, 1, &in);
}

uint32_t bb_array_transpose(bb_array *array, const char *name, uint32_t in, const int64_t *perm) {
  const bb_array_value v = array->value[in];
  const bb_extent *shape[BB_ARRAY_RANK] = {0};
  if (v.rank > BB_ARRAY_RANK)
    bb_fail(context(array), BB_ERROR_INPUT, "node %s: a rank is above the limit of %d", label(name),
            BB_ARRAY_RANK);
  for (uint32_t a = 0; a < v.rank; a++) {
    check_axis(array, name, in, perm[a]);
    if (has_label(perm, a, perm[a]))
      bb_fail(context(array), BB_ERROR_INPUT, "node %s: perm names axis %lld twice", label(name),
              (long long)perm[a]);
    shape[a] = v.shape[perm[a]];
  }
  uint32_t out = result(array, BB_A_TRANSPOSE, name, v.dtype, v.rank, shape, 1, &in);
  set_ints(array, out, v.rank, perm);
  return out;
}

uint32_t bb_array_broadcast(bb_array *array, const char *name, uint32_t in, uint32_t rank,
                            const bb_extent *const *shape) {
  const bb_array_value v = array->value[in];
  bool fits = v.rank <= rank;
  for (uint32_t a = 0; fits && a < v.rank; a++)
    fits = bb_extent_is_one(v.shape[a]) || v.shape[a] == shape[rank - v.rank + a];
  if (!fits)
    bb_fail(context(array), BB_ERROR_INPUT, "node %s: shape %s does not broadcast to %s",
            label(name), value_shape(array, in), shape_text(array, rank, shape));
  return result(array, BB_A_BROADCAST, name, v.dtype, rank, shape, 1, &in);
}

uint32_t bb_array_slice(bb_array *array, const char *name, uint32_t in, uint32_t axis,
                        int64_t start, int64_t step, int64_t length) {
  check_axis(array, name, in, axis);
  const bb_array_value v = array->value[in];
  int64_t extent = bb_extent_value(v.shape[axis]), last = start;
  bool fits = step != 0 && length >= 0 && start >= 0;
  if (fits && length > 0) {
    fits = !__builtin_mul_overflow(step, length - 1, &last) &&
           !__builtin_add_overflow(last, start, &last) && last >= 0;
    if (extent >= 0) fits = fits && start < extent && last < extent;
  }
  if (!fits)
    bb_fail(context(array), BB_ERROR_INPUT,
            "node %s: slice from %lld by %lld of length %lld leaves axis %u of shape %s",
            label(name), (long long)start, (long long)step, (long long)length, axis,
            value_shape(array, in));
  const bb_extent *shape[BB_ARRAY_RANK];
  if (v.rank > BB_ARRAY_RANK)
    bb_fail(context(array), BB_ERROR_INPUT, "node %s: a rank is above the limit of %d", label(name),
            BB_ARRAY_RANK);
  memcpy(shape, v.shape, v.rank * sizeof *shape);
  shape[axis] = bb_extent_number(array->program, length);
  uint32_t out = result(array, BB_A_SLICE, name, v.dtype, v.rank, shape, 1, &in);
  set_ints(array, out, 4, (int64_t[]){axis, start, step, length});
  return out;
}

/* What bb_array_windows says of an axis of `extent` (-1: not known) stays within it, as far as it is told before a run. */
static bool windows_fit(const bb_array_windows *w, int64_t extent) {
  const int64_t along[2] = {w->step, w->by}, count[2] = {w->open ? 1 : w->places, w->taps};
  int64_t last = w->start;
  if (w->start < 0) return false;
  for (int k = 0; k < 2; k++) {
    int64_t far;
    if (along[k] < 1 || count[k] < 1 || __builtin_mul_overflow(along[k], count[k] - 1, &far) ||
        __builtin_add_overflow(last, far, &last))
      return false;
  }
  return extent < 0 || last < extent;
}

uint32_t bb_array_windows_of(bb_array *array, const char *name, uint32_t in, uint32_t axis,
                             const bb_array_windows *w) {
  check_axis(array, name, in, axis);
  const bb_array_value v = array->value[in];
  if (!windows_fit(w, bb_extent_value(v.shape[axis])))
    bb_fail(context(array), BB_ERROR_INPUT,
            "node %s: %lld windows of %lld from %lld by %lld leave axis %u of shape %s",
            label(name), (long long)w->places, (long long)w->taps, (long long)w->start,
            (long long)w->step, axis, value_shape(array, in));
  if (v.rank >= BB_ARRAY_RANK)
    bb_fail(context(array), BB_ERROR_INPUT, "node %s: a rank is above the limit of %d", label(name),
            BB_ARRAY_RANK);
  const bb_extent *shape[BB_ARRAY_RANK];
  for (uint32_t a = 0; a < v.rank; a++) shape[a + (a > axis)] = v.shape[a];
  shape[axis] = w->open ? w->open : bb_extent_number(array->program, w->places);
  shape[axis + 1] = bb_extent_number(array->program, w->taps);
  if (bb_extent_is_one(shape[axis])) { /* a slice, and an axis of one element */
    in = bb_array_slice(array, name, in, axis, w->start, w->by, w->taps);
    return bb_array_reshape(array, name, in, v.rank + 1, shape);
  }
  uint32_t out = result(array, BB_A_WINDOWS, name, v.dtype, v.rank + 1, shape, 1, &in);
  set_ints(array, out, 6,
           (int64_t[]){axis, w->start, w->step, w->by, w->open ? -1 : w->places, w->taps});
  return out;
}

uint32_t bb_array_pad(bb_array *array, const char *name, uint32_t in, uint32_t axis, int64_t before,
                      const bb_expr *fill, const bb_extent *extent) {
  check_axis(array, name, in, axis);
  const bb_array_value v = array->value[in];
  bool open = bb_extent_value(v.shape[axis]) < 0 && bb_extent_value(extent) < 0;
  bool number = fill->op == BB_X_CONST && fill->dtype == v.dtype;
  if (!open || !number || before < 0 || v.rank > BB_ARRAY_RANK)
    bb_fail(context(array), BB_ERROR_INPUT,
            "node %s: axis %u of shape %s is not padded by %lld elements of a number: %s",
            label(name), axis, value_shape(array, in), (long long)before,
            !open ? "its length is known" : "that is none of them");
  const bb_extent *shape[BB_ARRAY_RANK];
  memcpy(shape, v.shape, v.rank * sizeof *shape);
  shape[axis] = extent;
  uint32_t out = result(array, BB_A_PAD, name, v.dtype, v.rank, shape, 1, &in);
  array->node[array->value[out].producer].expr = fill;
  set_ints(array, out, 2, (int64_t[]){axis, before});
  return out;
}

/* The extent of joined axes: a sum of numbers, or k times one symbolic extent. */
static const bb_extent *joined_extent(bb_array *array, const char *name, uint32_t count,
                                      const uint32_t *in, uint32_t axis) {
  const bb_extent *first = array->value[in[0]].shape[axis];
  bool same = true;
  int64_t sum = 0;
  for (uint32_t i = 0; i < count; i++) {
    const bb_extent *e = array->value[in[i]].shape[axis];
    int64_t n = bb_extent_value(e);
    same &= e == first;
    if (n < 0 || sum < 0)
      sum = -1;
    else if (__builtin_add_overflow(sum, n, &sum))
      bb_fail(context(array), BB_ERROR_INPUT, "node %s: the joined extent overflows", label(name));
  }
  if (sum >= 0) return bb_extent_number(array->program, sum);
  if (same)
    return bb_extent_multiply(array->program, bb_extent_number(array->program, count), first);
  bb_fail(context(array), BB_ERROR_UNSUPPORTED,
          "node %s: joins axes of different lengths that are known only at run time (axis %u of %s "
          "and others)",
          label(name), axis, value_shape(array, in[0]));
}

uint32_t bb_array_concat(bb_array *array, const char *name, uint32_t count, const uint32_t *in,
                         uint32_t axis) {
  if (count == 0) bb_fail(context(array), BB_ERROR_INPUT, "node %s: joins nothing", label(name));
  check_axis(array, name, in[0], axis);
  const bb_array_value v = array->value[in[0]];
  const bb_extent *shape[BB_ARRAY_RANK];
  if (v.rank > BB_ARRAY_RANK)
    bb_fail(context(array), BB_ERROR_INPUT, "node %s: a rank is above the limit of %d", label(name),
            BB_ARRAY_RANK);
  for (uint32_t i = 1; i < count; i++) {
    const bb_array_value *w = &array->value[in[i]];
    bool fits = w->rank == v.rank && w->dtype == v.dtype;
    for (uint32_t a = 0; fits && a < v.rank; a++) fits = a == axis || w->shape[a] == v.shape[a];
    if (!fits)
      bb_fail(context(array), BB_ERROR_INPUT, "node %s: %s %s and %s %s do not join along axis %u",
              label(name), bb_dtype_name(v.dtype), value_shape(array, in[0]),
              bb_dtype_name(w->dtype), value_shape(array, in[i]), axis);
  }
  memcpy(shape, v.shape, v.rank * sizeof *shape);
  bool repeats = bb_extent_value(v.shape[axis]) == 1;
  for (uint32_t i = 1; i < count; i++) repeats &= in[i] == in[0];
  shape[axis] = joined_extent(array, name, count, in, axis);
  /* One element again and again, as heads are repeated, moves no data. */
  if (repeats) return bb_array_broadcast(array, name, in[0], v.rank, shape);
  uint32_t out = result(array, BB_A_CONCAT, name, v.dtype, v.rank, shape, count, in);
  set_ints(array, out, 1, (int64_t[]){axis});
  return out;
}
