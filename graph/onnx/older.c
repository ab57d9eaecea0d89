/* older.c - operators as opsets 7 to 12 have them: what was an attribute there becomes the operand that it is from 13 on,
 * and the node is converted as that.
 */
#include "convert.h"
#include "formula.h"

#include <string.h>

/* --- attributes that became operands --- */

typedef enum kind { NONE, INT, INTS, NUMBER, NUMBERS } kind;
enum { MOST_MOVED = 3 };

typedef struct moved {
  const char *op, *as;
  struct {
    const char *name;
    kind kind;
  } attribute[MOST_MOVED]; /* of operands 1, 2, ... */
} moved;

static const moved table[] = {
    {"Squeeze", "Squeeze", {{"axes", INTS}}},
    {"Unsqueeze", "Unsqueeze", {{"axes", INTS}}},
    {"Split", "Split", {{"split", INTS}}},
    {"Clip", "Clip", {{"min", NUMBER}, {"max", NUMBER}}},
    {"Pad", "Pad", {{"pads", INTS}, {"value", NUMBER}}},
    {"Slice", "Slice", {{"starts", INTS}, {"ends", INTS}, {"axes", INTS}}},
    {"TopK", "TopK", {{"k", INT}}},
    {"Upsample", "Resize", {{"scales", NUMBERS}}},
};

static bb_onnx_value *line(const bb_onnx_node *n, const char *name, bb_dtype dtype, uint32_t count,
                           const int64_t *ints, const float *floats) {
  bb_onnx *m = n->m;
  const bb_expr **element = BB_NEW(m->arena, const bb_expr *, count);
  const bb_extent *length = bb_onnx_number(m, count);
  if (count > BB_ONNX_ELEMENTS) bb_onnx_refuse(n, "%s has %u numbers", name, count);
  for (uint32_t i = 0; i < count; i++)
    element[i] = bb_expr_const(m->program, dtype, ints ? (double)ints[i] : (double)floats[i]);
  return bb_onnx_value_of_elements(m, dtype, 1, &length, count, element);
}

static bb_onnx_value *operand_of(const bb_onnx_node *n, const char *name, kind of) {
  uint32_t count;
  if (!name || !bb_onnx_has(n, name)) return NULL;
  switch (of) {
  case INT: {
    int64_t one = bb_onnx_int(n, name, 0);
    return line(n, name, BB_I64, 1, &one, NULL);
  }
  case INTS: {
    const int64_t *ints = bb_onnx_ints(n, name, &count);
    return line(n, name, BB_I64, count, ints, NULL);
  }
  case NUMBERS: {
    const float *floats = bb_onnx_floats(n, name, &count);
    return line(n, name, BB_F32, count, NULL, floats);
  }
  case NUMBER: return bb_onnx_scalar(n->m, n->in[0]->dtype, bb_onnx_float(n, name, 0));
  case NONE: break;
  }
  return NULL;
}

void bb_onnx_move_attributes(bb_onnx_node *n) {
  const moved *found = table;
  while (strcmp(found->op, n->row->name) != 0) found++;
  bb_onnx_value *in[1 + MOST_MOVED] = {n->in[0]};
  uint32_t nin = 1;
  for (uint32_t i = 0; i < MOST_MOVED; i++) {
    in[1 + i] = operand_of(n, found->attribute[i].name, found->attribute[i].kind);
    if (in[1 + i]) nin = 2 + i;
  }
  /* Upsample is what Resize was up to opset 10 */
  int64_t version = strcmp(found->as, found->op) == 0 ? BB_ONNX_OPSET_OPERANDS : n->version;
  bb_onnx_convert_as(n, found->as, version, nin, in, n->nout, n->out);
}

/* --- another name --- */

void bb_onnx_scatter(bb_onnx_node *n) {
  bb_onnx_convert_as(n, "ScatterElements", BB_ONNX_OPSET_OPERANDS, n->nin, n->in, n->nout, n->out);
}

/* --- over all axes from one on --- */

/* detail: softmax, its logarithm, or 1 at the largest, over the axes from `axis` on as one. */
void bb_onnx_over_rest(bb_onnx_node *n) {
  bb_onnx *m = n->m;
  bb_onnx_value *x = n->in[0];
  bb_onnx_want_float(n, x);
  int64_t first = bb_onnx_int(n, "axis", 1);
  uint32_t axis = first == (int64_t)x->rank ? x->rank : bb_onnx_axis(n, first, x->rank);
  const bb_extent *const *shape = x->shape;
  uint32_t rank = x->rank;
  const bb_extent *flat[2] = {bb_onnx_product(m, axis, shape),
                              bb_onnx_product(m, rank - axis, shape + axis)};
  bool last = axis + 1 == rank;
  if (!last) x = bb_onnx_reshape(n, x, 2, flat);
  uint32_t along = x->rank - 1;
  bb_onnx_value *y = n->row->detail == 0   ? bb_onnx_softmax_of(n, x, along)
                     : n->row->detail == 1 ? bb_onnx_log_softmax_of(n, x, along)
                                           : bb_onnx_hardmax_of(n, x, along);
  n->out[0] = last ? y : bb_onnx_reshape(n, y, rank, shape);
}
