/* misc.c - operators that run as reference kernels, and the gathers that are slices after all. */
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

void bb_onnx_misc_node(const bb_onnx_node *n, const bb_misc *kernel, uint32_t nin,
                       bb_onnx_value *const *in, uint32_t nout, bb_onnx_value **out) {
  bb_onnx *m = n->m;
  bb_arena *arena = m->program->arena;
  uint32_t *operand = BB_NEW(m->arena, uint32_t, nin), *result = BB_NEW(m->arena, uint32_t, nout);
  uint32_t operands = 0;
  bb_misc *misc = BB_NEW(arena, bb_misc, 1);
  for (uint32_t i = 0; i < nin; i++)
    if (in[i]) operand[operands++] = bb_onnx_id(n, in[i]);
  const char *label = bb_arena_printf(m->arena, "node %s", bb_onnx_quote(m->arena, n->name));
  for (uint32_t i = 0; i < nout; i++) {
    bb_onnx_check_shape(m, label, out[i]->dtype, out[i]->rank, out[i]->shape);
    out[i]->id = result[i] =
        bb_array_value_add(m->array, n->name, out[i]->dtype, out[i]->rank, out[i]->shape);
  }
  *misc = *kernel;
  misc->nin = nin;
  misc->nout = nout;
  misc->in = ports(m, nin, in);
  misc->out = ports(m, nout, out);
  uint32_t node = bb_array_node_add(m->array, BB_A_MISC, n->name, operands, operand, nout, result);
  m->array->node[node].misc = misc;
}

/* The kernel of the node's own operator. */
static bb_misc own_kernel(const bb_onnx_node *n) {
  bb_misc kernel = {.domain = bb_arena_text(n->m->program->arena, n->domain, strlen(n->domain)),
                    .op = n->proto->op_type,
                    .version = (uint32_t)n->version};
  kernel.attribute = bb_onnx_attributes(n, &kernel.count);
  return kernel;
}

/* The usual case: the node's own operands and one result. */
static void misc_result(bb_onnx_node *n, bb_dtype dtype, uint32_t rank,
                        const bb_extent *const *shape) {
  if (rank > BB_ONNX_RANK) bb_onnx_refuse(n, "the result has %u axes", rank);
  n->out[0] = bb_onnx_value_new(n->m, dtype, rank, shape);
  bb_misc kernel = own_kernel(n);
  bb_onnx_misc_node(n, &kernel, n->nin, n->in, 1, n->out);
}

static void want_index(const bb_onnx_node *n, const bb_onnx_value *v) {
  if (v->dtype != BB_I64 && v->dtype != BB_I32)
    bb_onnx_refuse(n, "indices of type %s", bb_dtype_name(v->dtype));
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

/* The only coordinate of a vector's form becomes the index. */
static const bb_expr *read_leaf(void *index, const bb_expr *leaf) {
  return leaf->op == BB_X_COORD ? index : leaf;
}

/* A vector's closed form read at indices that have one too. */
static bb_onnx_value *pick_form(const bb_onnx_node *n, const bb_onnx_value *v,
                                const bb_onnx_value *index) {
  bool negative = index->form && index->form->op == BB_X_CONST && index->form->number < 0;
  if (v->rank != 1 || !v->form || !index->form || negative) return NULL;
  const bb_expr *form = bb_expr_map_leaves(n->m->program, v->form, read_leaf, (void *)index->form);
  return bb_onnx_value_of_form(n->m, form, index->rank, index->shape);
}

bb_onnx_value *bb_onnx_gather_along(const bb_onnx_node *n, bb_onnx_value *v, uint32_t axis,
                                    bb_onnx_value *index) {
  bb_arena *arena = n->m->program->arena;
  const bb_extent *shape[2 * BB_ONNX_RANK];
  int64_t start = 0, step = 1;
  want_index(n, index);
  uint32_t rank = gathered_shape(n, v, axis, index, shape);
  bb_onnx_value *out = pick_elements(n, v, index);
  if (!out) out = pick_form(n, v, index);
  if (out) return out;
  if (even_indices(n, index, bb_extent_value(v->shape[axis]), &start, &step)) {
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

void bb_onnx_gather_elements(bb_onnx_node *n) {
  want_index(n, n->in[1]);
  if (n->in[1]->rank != n->in[0]->rank)
    bb_onnx_refuse(n, "operands of rank %u and %u", n->in[0]->rank, n->in[1]->rank);
  bb_onnx_axis(n, bb_onnx_int(n, "axis", 0), n->in[0]->rank);
  misc_result(n, n->in[0]->dtype, n->in[1]->rank, n->in[1]->shape);
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
  misc_result(n, v->dtype, rank, shape);
}

/* Scatters: the result is as the first operand. */
void bb_onnx_like_first(bb_onnx_node *n) {
  want_index(n, n->in[1]);
  bb_onnx_same_dtype(n, 2, (bb_onnx_value *[]){n->in[0], n->in[2]});
  misc_result(n, n->in[0]->dtype, n->in[0]->rank, n->in[0]->shape);
}

void bb_onnx_top_k(bb_onnx_node *n) {
  bb_onnx *m = n->m;
  bb_onnx_value *v = n->in[0], *out[2];
  const bb_extent *shape[BB_ONNX_RANK];
  int64_t k;
  if (!bb_onnx_known_int(n->in[1], &k)) {
    bb_onnx_unsupported(n, "a k that is computed at run time");
    return;
  }
  uint32_t axis = bb_onnx_axis(n, bb_onnx_int(n, "axis", -1), v->rank);
  int64_t extent = bb_extent_value(v->shape[axis]);
  if (k < 1 || (extent >= 0 && k > extent)) bb_onnx_refuse(n, "k is %lld", (long long)k);
  memcpy(shape, v->shape, v->rank * sizeof *shape);
  shape[axis] = bb_onnx_number(m, k);
  out[0] = bb_onnx_value_new(m, v->dtype, v->rank, shape);
  out[1] = bb_onnx_value_new(m, BB_I64, v->rank, shape);
  bb_misc kernel = own_kernel(n);
  bb_onnx_misc_node(n, &kernel, n->nin, n->in, 2, out);
  for (uint32_t i = 0; i < n->nout; i++) n->out[i] = out[i];
}

/* --- windows --- */

/* One attribute value per spatial axis. */
static const int64_t *per_axis(const bb_onnx_node *n, const char *name, uint32_t need) {
  uint32_t count;
  const int64_t *ints = bb_onnx_ints(n, name, &count);
  if (ints && count != need) bb_onnx_refuse(n, "%s has %u numbers, not %u", name, count, need);
  return ints;
}

/* Places of a window of `kernel` elements along an axis. */
static int64_t window_places(const bb_onnx_node *n, int64_t extent, int64_t kernel, int64_t stride,
                             int64_t dilation, int64_t pad, const char *automatic, bool up) {
  int64_t limit = (int64_t)1 << 40, span;
  bool sane = kernel >= 1 && kernel < limit && stride >= 1 && dilation >= 1 && dilation < limit &&
              pad >= 0 && pad < limit && !__builtin_mul_overflow(dilation, kernel - 1, &span);
  if (!sane) bb_onnx_refuse(n, "its kernel, strides, dilations or pads are out of range");
  if (strncmp(automatic, "SAME", 4) == 0) return (extent - 1) / stride + 1;
  if (strcmp(automatic, "VALID") == 0) pad = 0;
  if (strcmp(automatic, "VALID") != 0 && strcmp(automatic, "NOTSET") != 0)
    bb_onnx_refuse(n, "auto_pad is %s", bb_onnx_quote(n->m->arena, automatic));
  int64_t room = extent + pad - span - 1;
  if (room < 0) bb_onnx_refuse(n, "its window is larger than its input");
  return (room + (up ? stride - 1 : 0)) / stride + 1;
}

/* The spatial axes of a windowed operator's result from axis 2 on. */
static bool window_shape(bb_onnx_node *n, const int64_t *kernel, const bb_extent **shape) {
  bb_onnx_value *v = n->in[0];
  uint32_t spatial = v->rank - 2;
  const int64_t *stride = per_axis(n, "strides", spatial),
                *dilation = per_axis(n, "dilations", spatial);
  const int64_t *pad = per_axis(n, "pads", 2 * spatial);
  const char *automatic = bb_onnx_text(n, "auto_pad", "NOTSET");
  for (uint32_t i = 0; i < spatial; i++) {
    int64_t extent = bb_extent_value(v->shape[i + 2]);
    int64_t before = pad ? pad[i] : 0, after = pad ? pad[i + spatial] : 0, pads;
    if (extent < 0) {
      bb_onnx_unsupported(n, "a window over an axis whose length is known only at run time");
      return false;
    }
    if (before < 0 || after < 0 || __builtin_add_overflow(before, after, &pads))
      bb_onnx_refuse(n, "a pad is negative");
    shape[i + 2] = bb_onnx_number(n->m, window_places(n, extent, kernel[i], stride ? stride[i] : 1,
                                                      dilation ? dilation[i] : 1, pads, automatic,
                                                      bb_onnx_int(n, "ceil_mode", 0)));
  }
  return true;
}

void bb_onnx_convolution(bb_onnx_node *n) {
  bb_onnx_value *v = n->in[0], *w = n->in[1];
  const bb_extent *shape[BB_ONNX_RANK];
  int64_t kernel[BB_ONNX_RANK], group = bb_onnx_int(n, "group", 1);
  bb_onnx_same_dtype(n, n->nin, n->in);
  bb_onnx_want_float(n, v);
  if (v->rank < 3 || v->rank != w->rank)
    bb_onnx_refuse(n, "operands of rank %u and %u", v->rank, w->rank);
  int64_t channels = bb_extent_value(v->shape[1]), maps = bb_extent_value(w->shape[0]);
  int64_t each = bb_extent_value(w->shape[1]), expect;
  bool fits = group >= 1 && maps > 0 && maps % group == 0 && each > 0 &&
              !__builtin_mul_overflow(each, group, &expect) && expect == channels;
  if (!fits)
    bb_onnx_refuse(n, "weights %s do not fit input %s", bb_onnx_shape_text(n->m, w),
                   bb_onnx_shape_text(n->m, v));
  const int64_t *given = per_axis(n, "kernel_shape", v->rank - 2);
  for (uint32_t a = 2; a < v->rank; a++) {
    kernel[a - 2] = bb_extent_value(w->shape[a]);
    if (given && given[a - 2] != kernel[a - 2])
      bb_onnx_refuse(n, "kernel_shape is not that of the weights");
  }
  shape[0] = v->shape[0];
  shape[1] = w->shape[0];
  if (window_shape(n, kernel, shape)) misc_result(n, v->dtype, v->rank, shape);
}

void bb_onnx_pool(bb_onnx_node *n) {
  bb_onnx_value *v = n->in[0];
  const bb_extent *shape[BB_ONNX_RANK];
  bb_onnx_want_float(n, v);
  if (v->rank < 3) bb_onnx_refuse(n, "input 0 has rank %u", v->rank);
  const int64_t *kernel = per_axis(n, "kernel_shape", v->rank - 2);
  if (!kernel) bb_onnx_refuse(n, "attribute kernel_shape is missing");
  shape[0] = v->shape[0];
  shape[1] = v->shape[1];
  if (window_shape(n, kernel, shape)) misc_result(n, v->dtype, v->rank, shape);
}

/* A fold over all spatial axes; the sum is made a mean. */
void bb_onnx_global_pool(bb_onnx_node *n) {
  bb_program *p = n->m->program;
  bb_onnx_value *v = n->in[0];
  int64_t axes[BB_ONNX_RANK];
  bb_onnx_want_float(n, v);
  if (v->rank < 3) bb_onnx_refuse(n, "input 0 has rank %u", v->rank);
  bb_dtype dtype = v->dtype;
  bool mean = n->row->detail == BB_MONOID_SUM;
  for (uint32_t a = 2; a < v->rank; a++) axes[a - 2] = a;
  if (mean) v = bb_onnx_cast(n, v, bb_onnx_fold_dtype(dtype));
  bb_onnx_value *y = bb_onnx_reduce(n, (bb_monoid_id)n->row->detail, v, v->rank - 2, axes, true);
  const bb_expr *length = bb_onnx_length(n, v->dtype, v->rank - 2, v->shape + 2);
  if (mean) y = bb_onnx_map(n, f_div(p, bb_onnx_arg(n, 0, y), length), 1, &y);
  n->out[0] = bb_onnx_cast(n, y, dtype);
}
