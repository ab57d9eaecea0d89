/* misc.c - making misc nodes; gathers (some are slices after all), scatters and TopK. */
#include "convert.h"
#include "formula.h"

#include <string.h>

/* --- misc nodes --- */

static const bb_misc_port *ports(bb_onnx *m, uint32_t count, bb_onnx_value *const *v) {
  bb_misc_port *port = BB_NEW(m->program->arena, bb_misc_port, count);
  for (uint32_t i = 0; i < count; i++) {
    if (!v[i]) {
      port[i].absent = true;
      continue;
    }
    const bb_extent **shape = BB_NEW(m->program->arena, const bb_extent *, v[i]->rank);
    if (v[i]->rank) memcpy(shape, v[i]->shape, v[i]->rank * sizeof *shape);
    port[i] = (bb_misc_port){.dtype = v[i]->dtype, .rank = v[i]->rank, .shape = shape};
  }
  return port;
}

enum { KERNEL_RANK = 8 }; /* most axes that a reference kernel takes */

void bb_onnx_misc_node(const bb_onnx_node *n, const bb_misc *kernel, uint32_t nin,
                       bb_onnx_value *const *in, uint32_t nout, bb_onnx_value **out) {
  bb_onnx *m = n->m;
  bb_arena *arena = m->program->arena;
  uint32_t *operand = BB_NEW(m->arena, uint32_t, nin), *result = BB_NEW(m->arena, uint32_t, nout);
  bb_misc *misc = BB_NEW(arena, bb_misc, 1);
  for (uint32_t i = 0; i < nin; i++) {
    operand[i] = BB_NONE;
    if (!in[i]) continue;
    if (in[i]->rank > KERNEL_RANK) bb_onnx_refuse(n, "operand %u has rank %u", i, in[i]->rank);
    operand[i] = bb_onnx_id(n, in[i]);
  }
  const char *label = bb_arena_printf(m->arena, "node %s", bb_onnx_quote(m->arena, n->name));
  for (uint32_t i = 0; i < nout; i++) {
    if (out[i]->rank > KERNEL_RANK) bb_onnx_refuse(n, "result %u has %u axes", i, out[i]->rank);
    bb_onnx_check_shape(m, label, out[i]->dtype, out[i]->rank, out[i]->shape);
    out[i]->id = result[i] =
        bb_array_value_add(m->array, n->name, out[i]->dtype, out[i]->rank, out[i]->shape);
  }
  *misc = *kernel;
  misc->nin = nin;
  misc->nout = nout;
  misc->in = ports(m, nin, in);
  misc->out = ports(m, nout, out);
  uint32_t node = bb_array_node_add(m->array, BB_A_MISC, n->name, nin, operand, nout, result);
  m->array->node[node].misc = misc;
}

bb_misc bb_onnx_own_kernel(const bb_onnx_node *n) {
  bb_misc kernel = {.domain = bb_arena_text(n->m->program->arena, n->domain, strlen(n->domain)),
                    .op = n->proto->op_type,
                    .version = (uint32_t)n->version};
  kernel.attribute = bb_onnx_attributes(n, &kernel.count);
  return kernel;
}

void bb_onnx_misc_result(bb_onnx_node *n, bb_dtype dtype, uint32_t rank,
                         const bb_extent *const *shape) {
  if (rank > KERNEL_RANK) bb_onnx_refuse(n, "the result has %u axes", rank);
  n->out[0] = bb_onnx_value_new(n->m, dtype, rank, shape);
  bb_misc kernel = bb_onnx_own_kernel(n);
  bb_onnx_misc_node(n, &kernel, n->nin, n->in, 1, n->out);
}

static void want_index(const bb_onnx_node *n, const bb_onnx_value *v) {
  if (v->dtype != BB_I64 && v->dtype != BB_I32)
    bb_onnx_refuse(n, "indices of type %s", bb_dtype_name(v->stored));
}

/* --- gathers --- */

/* Indices that are known and run evenly, start, start + step, ..., as slices do. */
static bool even_indices(const bb_onnx_node *n, const bb_onnx_value *index, int64_t extent,
                         int64_t *start, int64_t *step) {
  uint32_t count;
  const int64_t *at = index->element ? bb_onnx_known_ints(n, index, &count) : NULL;
  if (!at || !count) return false;
  for (uint32_t i = 0; i < count; i++) {
    int64_t value = at[i] < 0 && extent >= 0 ? at[i] + extent : at[i];
    if (value < 0 && extent < 0) return false; /* counted from an end that is not known yet */
    if (value < 0 || (extent >= 0 && value >= extent))
      bb_onnx_refuse(n, "index %lld is out of range", (long long)at[i]);
    if (i == 0) *start = value;
    if (i == 1) *step = value - *start;
    if (i > 0 && value != *start + (int64_t)i * *step) return false;
  }
  return *step != 0;
}

/* No view may reach beyond an axis whose length a run tells: what lies behind the last of its elements becomes an extent,
 * though nothing has it, and a run in which an extent is negative is refused. */
static void need(bb_onnx *m, const bb_extent *axis, int64_t start, int64_t step, uint32_t count) {
  int64_t end = start + (int64_t)(count - 1) * step, most = end > start ? end : start;
  const bb_expr *extent = bb_onnx_extent_meaning(m, axis);
  const bb_expr *rest =
      bb_onnx_tidy_make(m, BB_X_SUB, extent, f_num(m->program, extent, (double)most + 1));
  bb_onnx_expr_extent(m, rest);
}

/* The shape with axis `axis` replaced by the axes of `index`. */
static uint32_t gathered_shape(const bb_onnx_node *n, const bb_onnx_value *v, uint32_t axis,
                               const bb_onnx_value *index, const bb_extent **shape) {
  uint32_t rank = 0;
  if (v->rank + index->rank > BB_ONNX_RANK + 1) bb_onnx_refuse(n, "the result has too many axes");
  for (uint32_t a = 0; a < axis; a++) shape[rank++] = v->shape[a];
  for (uint32_t a = 0; a < index->rank; a++) shape[rank++] = index->shape[a];
  for (uint32_t a = axis + 1; a < v->rank; a++) shape[rank++] = v->shape[a];
  return rank;
}

/* Known elements at known places: shape arithmetic. */
static bb_onnx_value *pick_elements(const bb_onnx_node *n, const bb_onnx_value *v,
                                    const bb_onnx_value *index) {
  uint32_t count;
  bool plain = v->rank == 1 && v->element && index->element;
  const int64_t *at = plain ? bb_onnx_known_ints(n, index, &count) : NULL;
  if (!at) return NULL;
  const bb_expr **element = BB_NEW(n->m->arena, const bb_expr *, count);
  for (uint32_t i = 0; i < count; i++) {
    int64_t value = at[i] < 0 ? at[i] + v->elements : at[i];
    if (value < 0 || value >= v->elements)
      bb_onnx_refuse(n, "index %lld is out of range", (long long)at[i]);
    element[i] = v->element[value];
  }
  return bb_onnx_value_of_elements(n->m, v->dtype, index->rank, index->shape, count, element);
}

/* A place that is a number is one that the axis has, also where no tensor is read: elsewhere that is refused as a run finds it. */
static void check_place(const bb_onnx_node *n, const bb_extent *axis, const bb_onnx_value *index) {
  const bb_expr *at = index->form ? index->form : bb_onnx_scalar_expr(index);
  int64_t extent = bb_extent_value(axis);
  bool none = bb_onnx_count(index->rank, index->shape) == 0;
  if (none || !at || at->op != BB_X_CONST || !(at->number >= 0)) return;
  if (extent >= 0 && at->number >= (double)extent)
    bb_onnx_refuse(n, "index %.0f is out of range", at->number);
  if (extent < 0 && at->number >= bb_onnx_extent_least(n->m, axis) && at->number < 1e15)
    need(n->m, axis, (int64_t)at->number, 1, 1);
}

bb_onnx_value *bb_onnx_gather_along(const bb_onnx_node *n, bb_onnx_value *v, uint32_t axis,
                                    bb_onnx_value *index) {
  bb_arena *arena = n->m->program->arena;
  const bb_extent *shape[2 * BB_ONNX_RANK];
  int64_t start = 0, step = 1;
  want_index(n, index);
  check_place(n, v->shape[axis], index);
  uint32_t rank = gathered_shape(n, v, axis, index, shape);
  bb_onnx_value *out = pick_elements(n, v, index);
  if (!out) out = bb_onnx_form_gather(n->m, v, axis, index, rank, shape);
  if (out) return out;
  if (even_indices(n, index, bb_extent_value(v->shape[axis]), &start, &step)) {
    if (bb_extent_value(v->shape[axis]) < 0)
      need(n->m, v->shape[axis], start, step, index->elements);
    bb_onnx_value *part = bb_onnx_slice(n, v, axis, start, step, index->elements);
    return bb_onnx_reshape(n, part, rank, shape);
  }
  bb_attribute *attribute = BB_NEW(arena, bb_attribute, 1);
  *attribute = (bb_attribute){.name = "axis", .kind = BB_ATTR_INT, .i = axis};
  bb_misc kernel = {
      .domain = "", .op = "Gather", .version = 13, .count = 1, .attribute = attribute};
  out = bb_onnx_value_new(n->m, v->dtype, rank, shape);
  bb_onnx_misc_node(n, &kernel, 2, (bb_onnx_value *[]){v, index}, 1, &out);
  return out;
}

void bb_onnx_gather(bb_onnx_node *n) {
  if (!n->in[0]->rank) bb_onnx_refuse(n, "input 0 is a scalar");
  uint32_t axis = bb_onnx_axis(n, bb_onnx_int(n, "axis", 0), n->in[0]->rank);
  n->out[0] = bb_onnx_gather_along(n, n->in[0], axis, n->in[1]);
}

/* Indices of elements that are the same for all of a slice, as exporters spread one for each slice: those, [count].  NULL: they
 * are not, or do not count whole slices of v. */
static bb_onnx_value *slices_of(const bb_onnx_node *n, const bb_onnx_value *v, uint32_t axis,
                                const bb_onnx_value *index) {
  const bb_array *array = n->m->array;
  if (index->id == BB_NONE || array->value[index->id].producer == BB_NONE) return NULL;
  const bb_array_node *node = &array->node[array->value[index->id].producer];
  if (node->op != BB_A_BROADCAST || v->rank != index->rank) return NULL;
  const bb_array_value *spread = &array->value[node->in[0]];
  for (uint32_t a = 0; a < v->rank; a++) {
    uint32_t from_last = v->rank - a;
    const bb_extent *own =
        from_last <= spread->rank ? spread->shape[spread->rank - from_last] : NULL;
    bool fits = a == axis ? own == index->shape[a]
                          : (!own || bb_onnx_is_one(own)) && index->shape[a] == v->shape[a];
    if (!fits) return NULL;
  }
  bb_onnx_value *each = bb_onnx_value_of_id(n->m, node->in[0]);
  return bb_onnx_reshape(n, each, 1, &index->shape[axis]);
}

void bb_onnx_gather_elements(bb_onnx_node *n) {
  want_index(n, n->in[1]);
  if (n->in[1]->rank != n->in[0]->rank)
    bb_onnx_refuse(n, "operands of rank %u and %u", n->in[0]->rank, n->in[1]->rank);
  uint32_t axis = bb_onnx_axis(n, bb_onnx_int(n, "axis", 0), n->in[0]->rank);
  bb_onnx_value *slices = slices_of(n, n->in[0], axis, n->in[1]);
  if (slices) {
    n->out[0] = bb_onnx_gather_along(n, n->in[0], axis, slices);
    return;
  }
  bb_onnx_misc_result(n, n->in[0]->dtype, n->in[1]->rank, n->in[1]->shape);
}

void bb_onnx_gather_nd(bb_onnx_node *n) {
  bb_onnx_value *v = n->in[0], *index = n->in[1];
  const bb_extent *shape[2 * BB_ONNX_RANK];
  int64_t batch = bb_onnx_int(n, "batch_dims", 0);
  want_index(n, index);
  int64_t depth = index->rank ? bb_extent_value(index->shape[index->rank - 1]) : -1;
  bool fits = batch >= 0 && batch < index->rank && depth >= 1 && batch + depth <= v->rank;
  if (!fits)
    bb_onnx_refuse(n, "indices %s do not fit %s", bb_onnx_shape_text(n->m, index),
                   bb_onnx_shape_text(n->m, v));
  uint32_t rank = 0;
  for (uint32_t a = 0; a + 1 < index->rank; a++) shape[rank++] = index->shape[a];
  for (uint32_t a = (uint32_t)(batch + depth); a < v->rank; a++) shape[rank++] = v->shape[a];
  n->out[0] = batch ? NULL : bb_onnx_form_gather_nd(n->m, v, index, rank, shape);
  if (!n->out[0]) bb_onnx_misc_result(n, v->dtype, rank, shape);
}

/* Scatters: the result is as the first operand. */
void bb_onnx_like_first(bb_onnx_node *n) {
  want_index(n, n->in[1]);
  bb_onnx_same_dtype(n, 2, (bb_onnx_value *[]){n->in[0], n->in[2]});
  if (bb_onnx_count(n->in[2]->rank, n->in[2]->shape) == 0)
    n->out[0] = n->in[0]; /* nothing is put into it */
  else
    bb_onnx_misc_result(n, n->in[0]->dtype, n->in[0]->rank, n->in[0]->shape);
}

/* Known elements in the places of others, as exporters make a shape with one length exchanged. */
static bb_onnx_value *put_elements(const bb_onnx_node *n) {
  const bb_onnx_value *v = n->in[0], *index = n->in[1], *put = n->in[2];
  uint32_t count;
  bool plain = v->rank == 1 && v->element && put->element && index->element &&
               put->elements == index->elements &&
               strcmp(bb_onnx_text(n, "reduction", "none"), "none") == 0;
  const int64_t *at = plain ? bb_onnx_known_ints(n, index, &count) : NULL;
  if (!at) return NULL;
  const bb_expr **element = BB_NEW(n->m->arena, const bb_expr *, v->elements);
  for (uint32_t i = 0; i < v->elements; i++) element[i] = v->element[i];
  for (uint32_t i = 0; i < count; i++) {
    int64_t to = at[i] < 0 ? at[i] + v->elements : at[i];
    if (to < 0 || to >= v->elements)
      bb_onnx_refuse(n, "index %lld is out of range for extent %u", (long long)at[i], v->elements);
    element[to] = put->element[i];
  }
  return bb_onnx_value_of_elements(n->m, v->dtype, 1, v->shape, v->elements, element);
}

/* Slices of the first axis, each at one place. */
static bb_onnx_value *put_slices(const bb_onnx_node *n, bb_onnx_value *slices) {
  bb_onnx *m = n->m;
  const bb_extent *shape[2] = {slices->shape[0], bb_onnx_number(m, 1)};
  bb_onnx_value *out = bb_onnx_value_new(m, n->in[0]->dtype, n->in[0]->rank, n->in[0]->shape);
  bb_misc kernel = bb_onnx_own_kernel(n);
  kernel.domain = "";
  kernel.op = "ScatterND";
  bb_onnx_value *in[3] = {n->in[0], bb_onnx_reshape(n, slices, 2, shape), n->in[2]};
  bb_onnx_misc_node(n, &kernel, 3, in, 1, &out);
  return out;
}

void bb_onnx_scatter_elements(bb_onnx_node *n) {
  bb_onnx_value *known = NULL, *slices = NULL;
  want_index(n, n->in[1]);
  uint32_t axis = bb_onnx_axis(n, bb_onnx_int(n, "axis", 0), n->in[0]->rank);
  bool typed = n->in[0]->dtype == n->in[2]->dtype, alike = n->in[2]->rank == n->in[1]->rank;
  if (typed) known = put_elements(n);
  for (uint32_t a = 0; alike && a < n->in[1]->rank; a++)
    alike = n->in[2]->shape[a] == n->in[1]->shape[a];
  if (typed && alike && axis == 0) slices = slices_of(n, n->in[0], axis, n->in[1]);
  if (known)
    n->out[0] = known;
  else if (slices)
    n->out[0] = put_slices(n, slices);
  else
    bb_onnx_like_first(n);
}

/* The places along an axis of a cache that rows are written to: from `first` on (of each index of the first axis; NULL: 0), going round at the
 * end if asked. */
static bb_onnx_value *places_of_rows(const bb_onnx_node *n, const bb_onnx_value *cache,
                                     const bb_onnx_value *rows, bb_onnx_value *first, uint32_t axis,
                                     bool round) {
  bb_onnx *m = n->m;
  bb_program *p = m->program;
  const bb_extent *shape[BB_ONNX_RANK];
  const bb_expr *place = bb_onnx_index_along(m, rows, axis);
  for (uint32_t a = 0; a < rows->rank; a++) shape[a] = a ? bb_onnx_number(m, 1) : rows->shape[0];
  if (first) {
    first = bb_onnx_cast(n, bb_onnx_reshape(n, first, rows->rank, shape), BB_I64);
    place = f_add(p, place, bb_onnx_arg(n, 1, first));
  }
  const bb_expr *room = bb_onnx_extent_expr(m, cache->shape[axis]);
  if (round)
    place = bb_expr_make(p, BB_X_MOD, place, room, NULL);
  else if (first) /* kernels count negative ones from the end: there is no such place */
    place = f_select(p, f_lt(p, place, f_num(p, place, 0)), room, place);
  bb_onnx_value *like =
      bb_onnx_value_of_form(m, bb_expr_const(p, BB_I64, 0), rows->rank, rows->shape);
  return bb_onnx_map(n, place, first ? 2 : 1, (bb_onnx_value *[]){like, first});
}

/* Rows written into a cache, one behind the other, where each batch says. */
void bb_onnx_scatter_rows(bb_onnx_node *n) {
  bb_onnx_value *cache = n->in[0], *rows = n->in[1], *first = bb_onnx_operand(n, 2);
  const char *mode = bb_onnx_text(n, "mode", "linear");
  bool round = strcmp(mode, "circular") == 0;
  if (!round && strcmp(mode, "linear") != 0)
    bb_onnx_refuse(n, "mode is %s", bb_onnx_quote(n->m->arena, mode));
  bb_onnx_same_dtype(n, 2, n->in);
  uint32_t axis = bb_onnx_axis(n, bb_onnx_int(n, "axis", -2), cache->rank);
  bool fits = rows->rank == cache->rank && axis != 0;
  for (uint32_t a = 0; fits && a < rows->rank; a++)
    fits = a == axis || bb_onnx_same_extent(n, rows->shape[a], cache->shape[a]);
  int64_t room = bb_extent_value(cache->shape[axis]),
          count = fits ? bb_extent_value(rows->shape[axis]) : 0;
  if (!fits || (room >= 0 && count > room))
    bb_onnx_refuse(n, "rows %s do not fit a cache %s along axis %u", bb_onnx_shape_text(n->m, rows),
                   bb_onnx_shape_text(n->m, cache), axis);
  if (first) want_index(n, first);
  if (first && (first->rank != 1 || !bb_onnx_same_extent(n, first->shape[0], cache->shape[0])))
    bb_onnx_refuse(n, "places %s are not one for each batch", bb_onnx_shape_text(n->m, first));
  bb_attribute *attribute = BB_NEW(n->m->program->arena, bb_attribute, 1);
  *attribute = (bb_attribute){.name = "axis", .kind = BB_ATTR_INT, .i = axis};
  bb_misc kernel = {
      .domain = "", .op = "ScatterElements", .version = 13, .count = 1, .attribute = attribute};
  bb_onnx_value *place = places_of_rows(n, cache, rows, first, axis, round);
  n->out[0] = bb_onnx_value_new(n->m, cache->dtype, cache->rank, cache->shape);
  bb_onnx_misc_node(n, &kernel, 3, (bb_onnx_value *[]){cache, place, rows}, 1, n->out);
}

void bb_onnx_top_k(bb_onnx_node *n) {
  bb_onnx *m = n->m;
  bb_onnx_value *v = n->in[0], *out[2];
  const bb_extent *shape[BB_ONNX_RANK];
  const bb_expr *k = bb_onnx_scalar_expr(n->in[1]);
  bool number = k && k->op == BB_X_CONST;
  if (!number && !(k && bb_onnx_expr_extent(m, k))) {
    bb_onnx_unsupported(n, "a k that is computed at run time");
    return;
  }
  uint32_t axis = bb_onnx_axis(n, bb_onnx_int(n, "axis", -1), v->rank);
  int64_t extent = bb_extent_value(v->shape[axis]);
  if (number && !(k->number >= 1 && (extent < 0 || k->number <= (double)extent)))
    bb_onnx_refuse(n, "k is %.0f", k->number);
  memcpy(shape, v->shape, v->rank * sizeof *shape);
  shape[axis] = bb_onnx_expr_extent(m, k);
  out[0] = bb_onnx_value_new(m, v->dtype, v->rank, shape);
  out[1] = bb_onnx_value_new(m, BB_I64, v->rank, shape);
  bb_misc kernel = bb_onnx_own_kernel(n);
  bb_onnx_misc_node(n, &kernel, n->nin, n->in, 2, out);
  for (uint32_t i = 0; i < n->nout; i++) n->out[i] = out[i];
}
