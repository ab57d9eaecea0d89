/* turn.c - an axis of an array value in the other order: running folds from the end are those of it.  What is turned is a
 * number: exps that overflow are no pairs behind it (fuse/safety.h). */
#include "array.h"

const bb_expr *bb_array_extent(bb_program *p, const bb_extent *extent) {
  const bb_expr *e = NULL;
  if (extent->factor != 1 || !extent->count) e = bb_expr_const(p, BB_I64, (double)extent->factor);
  for (uint32_t s = 0; s < extent->count; s++) {
    const bb_expr *symbol = bb_expr_symbol(p, extent->symbol[s]);
    e = e ? bb_expr_make(p, BB_X_MUL, e, symbol, NULL) : symbol;
  }
  return e;
}

/* n - 1, n - 2, ..., 0. */
static uint32_t places_from_end(bb_array *array, const char *name, const bb_extent *n) {
  bb_program *p = array->program;
  static const int64_t zero = 0;
  uint32_t id = bb_array_constant(array, name, BB_I64, 0, NULL, &zero, sizeof zero);
  id = bb_array_broadcast(array, name, id, 1, &n);
  const bb_expr *past =
      bb_expr_make(p, BB_X_SUB, bb_array_extent(p, n), bb_expr_coord(p, BB_COORD_AXIS), NULL);
  const bb_expr *at = bb_expr_make(p, BB_X_SUB, past, bb_expr_const(p, BB_I64, 1), NULL);
  return bb_array_elementwise(array, name, at, 1, &id);
}

static bb_misc_port port_of(const bb_array *array, uint32_t value) {
  const bb_array_value *v = &array->value[value];
  return (bb_misc_port){.dtype = v->dtype, .rank = v->rank, .shape = v->shape};
}

/* No view tells where an axis ends whose length only a run tells: its elements are gathered. */
static uint32_t gathered(bb_array *array, const char *name, uint32_t in, uint32_t axis) {
  bb_arena *arena = array->program->arena;
  const bb_array_value v = array->value[in];
  uint32_t operand[2] = {in, places_from_end(array, name, v.shape[axis])};
  uint32_t out = bb_array_value_add(array, name, v.dtype, v.rank, v.shape);
  bb_attribute *attribute = BB_NEW(arena, bb_attribute, 1);
  *attribute = (bb_attribute){.name = "axis", .kind = BB_ATTR_INT, .i = axis};
  bb_misc *misc = BB_NEW(arena, bb_misc, 1);
  *misc = (bb_misc){.domain = "", .op = "Gather", .version = 13, .count = 1};
  misc->attribute = attribute;
  misc->nin = 2, misc->nout = 1;
  bb_misc_port *port = BB_NEW(arena, bb_misc_port, 3);
  for (uint32_t i = 0; i < 2; i++) port[i] = port_of(array, operand[i]);
  port[2] = port_of(array, out);
  misc->in = port, misc->out = port + 2;
  uint32_t node = bb_array_node_add(array, BB_A_MISC, name, 2, operand, 1, &out);
  array->node[node].misc = misc;
  return out;
}

uint32_t bb_array_turned(bb_array *array, const char *name, uint32_t in, uint32_t axis) {
  int64_t extent = bb_extent_value(array->value[in].shape[axis]);
  if (extent < 0) return gathered(array, name, in, axis);
  return bb_array_slice(array, name, in, axis, extent ? extent - 1 : 0, -1, extent);
}
