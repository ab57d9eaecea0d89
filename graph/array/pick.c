/* pick.c - one element of each row, by an index that is data, as a sum that leaves out all others.
 *
 * A gather of one element along an axis (the share of the class that a label names) needs the whole
 * array to exist in memory.  As a sum over the axis of select(coordinate == index, x, 0) it is a fold
 * like others: it reads the elements where they are made, and joins a loop that passes over them
 * anyway.  So it is taken only where that loop is there: x is computed by an op on arrays, or another
 * such op reads it.  Exact: all other terms are 0.  An index out of range, which a gather refuses,
 * gives NaN.
 */
#include "array.h"

#include <math.h>
#include <string.h>

static uint32_t axis_of(const bb_misc *misc, uint32_t rank) {
  int64_t axis = 0;
  for (uint32_t i = 0; i < misc->count; i++)
    if (!strcmp(misc->attribute[i].name, "axis")) axis = misc->attribute[i].i;
  return (uint32_t)(axis < 0 ? axis + rank : axis);
}

static bool is_op(const bb_array_node *node) {
  return !node->removed && node->op != BB_A_MISC;
}

/* Does a loop pass over the value anyway? */
static bool is_streamed(const bb_array *array, uint32_t value) {
  const bb_array_value *v = &array->value[value];
  if (v->data) return false;
  if (v->producer != BB_NONE) return is_op(&array->node[v->producer]);
  for (uint32_t i = 0; i < array->nodes; i++)
    for (uint32_t k = 0; k < array->node[i].nin; k++)
      if (array->node[i].in[k] == value && is_op(&array->node[i])) return true;
  return false;
}

/* Does the node take one element along an axis, whatever the indices on the others are? */
static bool picks(const bb_array *array, const bb_array_node *node) {
  if (node->removed || node->op != BB_A_MISC || strcmp(node->misc->op, "GatherElements") != 0 ||
      node->misc->domain[0])
    return false;
  const bb_array_value *x = &array->value[node->in[0]], *at = &array->value[node->in[1]];
  uint32_t axis = axis_of(node->misc, x->rank);
  if (!bb_dtype_is_float(x->dtype) || x->rank != at->rank || axis >= x->rank) return false;
  for (uint32_t a = 0; a < x->rank; a++)
    if (a == axis ? bb_extent_value(at->shape[a]) != 1 : at->shape[a] != x->shape[a]) return false;
  return is_streamed(array, node->in[0]);
}

static const bb_expr *extent_expr(bb_program *p, const bb_extent *extent) {
  const bb_expr *product = bb_expr_const(p, BB_I64, (double)extent->factor);
  for (uint32_t i = 0; i < extent->count; i++)
    product = bb_expr_make(p, BB_X_MUL, product, bb_expr_symbol(p, extent->symbol[i]), NULL);
  return product;
}

static const bb_expr *make(bb_program *p, bb_expr_op op, const bb_expr *a, const bb_expr *b) {
  return bb_expr_make(p, op, a, b, NULL);
}

/* An index below 0 counts from the end. */
static const bb_expr *index_of(bb_program *p, bb_dtype dtype, uint32_t operand,
                               const bb_expr *extent) {
  const bb_expr *at = bb_expr_cast(p, BB_I64, bb_expr_arg(p, dtype, operand));
  const bb_expr *below = make(p, BB_X_LT, at, bb_expr_const(p, BB_I64, 0));
  return bb_expr_make(p, BB_X_SELECT, below, make(p, BB_X_ADD, at, extent), at);
}

/* select(coordinate == index, x, 0) */
static const bb_expr *term(bb_program *p, const bb_array_value *x, bb_dtype index, uint32_t axis) {
  const bb_expr *here = bb_expr_coord(p, BB_COORD_AXIS + x->rank - 1 - axis);
  const bb_expr *at = index_of(p, index, 1, extent_expr(p, x->shape[axis]));
  return bb_expr_make(p, BB_X_SELECT, make(p, BB_X_EQ, here, at), bb_expr_arg(p, x->dtype, 0),
                      bb_expr_const(p, x->dtype, 0));
}

/* The sum, if the index names an element. */
static const bb_expr *checked(bb_program *p, const bb_array_value *x, bb_dtype index,
                              uint32_t axis) {
  const bb_expr *extent = extent_expr(p, x->shape[axis]), *at = index_of(p, index, 1, extent);
  const bb_expr *low = make(p, BB_X_LE, bb_expr_const(p, BB_I64, 0), at);
  const bb_expr *both = make(p, BB_X_AND, low, make(p, BB_X_LT, at, extent));
  return bb_expr_make(p, BB_X_SELECT, both, bb_expr_arg(p, x->dtype, 0),
                      bb_expr_const(p, x->dtype, NAN));
}

/* The last node makes the gather's result. */
static void pick(bb_array *array, bb_array_node node) {
  bb_program *p = array->program;
  const bb_array_value x = array->value[node.in[0]];
  bb_dtype index = array->value[node.in[1]].dtype;
  uint32_t axis = axis_of(node.misc, x.rank);
  int64_t axes[1] = {axis};
  uint32_t all = bb_array_elementwise(array, node.name, term(p, &x, index, axis), 2, node.in);
  uint32_t *in = BB_NEW(p->arena, uint32_t, 2);
  in[0] = bb_array_reduce(array, node.name, bb_monoid_get(BB_MONOID_SUM), all, 1, axes, true);
  in[1] = node.in[1];
  bb_array_append(array, (bb_array_node){.op = BB_A_ELEMENTWISE,
                                         .name = node.name,
                                         .nin = 2,
                                         .nout = 1,
                                         .in = in,
                                         .out = node.out,
                                         .expr = checked(p, &x, index, axis)});
}

void bb_array_pick(bb_array *array) {
  bb_arena *scratch = bb_scratch(array->program->ctx);
  uint32_t nodes = array->nodes, found = 0;
  const bb_array_node *node = array->node;
  bool *chosen = BB_NEW(scratch, bool, nodes);
  for (uint32_t i = 0; i < nodes; i++) found += chosen[i] = picks(array, &node[i]);
  if (found) {
    array->nodes = array->node_capacity = 0;
    array->node = NULL;
  }
  for (uint32_t i = 0; i < nodes && found; i++) {
    if (chosen[i])
      pick(array, node[i]);
    else if (!node[i].removed)
      bb_array_append(array, node[i]);
  }
  bb_scratch_end(scratch);
}
