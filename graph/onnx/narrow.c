/* narrow.c - integers of few bits: what is computed in a wider type wraps around where the model's type ends.
 *
 * A uint8 or int16 of the model is an i32 or i64 here from its input, where it is cast, to its output, where it is
 * cast back; `stored` says what it stands for.  Only results that may leave the type's range are brought back.
 */
#include "convert.h"

#include <math.h>
#include <string.h>

static bool among(const char *name, const char *const *names, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (strcmp(names[i], name) == 0) return true;
  return false;
}

/* Results of other operators are among their operands' elements, or within the type in any case. */
static bool may_leave(const char *operator) {
  static const char *const names[] = {
      "Abs",        "BitwiseNot",      "Add", "CumProd", "CumSum", "Div",      "Einsum",
      "Gemm",       "MatMul",          "Mul", "Neg",     "Pow",    "ReduceL1", "ReduceSum",
      "ReduceProd", "ReduceSumSquare", "Sub", "Sum"};
  return among(operator, names, sizeof names / sizeof *names);
}

void bb_onnx_check_few(const bb_onnx_node *n) {
  static const char *const names[] = {"Cast",     "CastLike", "DequantizeLinear", "Flatten",
                                      "Identity", "Pad",      "QuantizeLinear",   "Reshape",
                                      "Shape",    "Size",     "Squeeze",          "Transpose",
                                      "Unsqueeze"};
  if (among(n->row->name, names, sizeof names / sizeof *names)) return;
  for (uint32_t i = 0; i < n->nin; i++)
    if (n->in[i] && n->in[i]->bits)
      bb_onnx_refuse(n, "input %u has elements of %u bits, and they are dequantised only", i,
                     n->in[i]->bits);
}

/* The operand whose type a result has; NULL: the converter has said it. */
static const bb_onnx_value *of_type(const bb_onnx_node *n, uint32_t result) {
  static const struct {
    const char *name;
    int operand; /* of the first result; -1: none */
  } others[] = {{"ArgMax", -1},
                {"ArgMin", -1},
                {"BitCast", -1},
                {"Cast", -1},
                {"CastLike", 1},
                {"Constant", -1},
                {"ConstantOfShape", -1},
                {"If", -1},
                {"OneHot", 2},
                {"Shape", -1},
                {"Size", -1},
                {"QuantizeLinear", -1},
                {"DynamicQuantizeLinear", -1},
                {"Where", 1},
                {"MatMulInteger", -1},
                {"MatMulNBits", -1},
                {"ConvInteger", -1},
                {"QGemm", -1},
                {"EyeLike", -1},
                {"DequantizeLinear", -1}};
  if (strncmp(n->row->name, "QLinear", 7) == 0) return NULL;
  int operand = result && strcmp(n->row->name, "Split") != 0 ? -1 : 0;
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (strcmp(others[i].name, n->row->name) == 0) operand = others[i].operand;
  return operand >= 0 && (uint32_t)operand < n->nin ? n->in[operand] : NULL;
}

/* What an operator has just computed element by element is cut as it is computed: between the two it may be a number of more
 * bits than programs hold anywhere else. */
static bb_onnx_value *cut(const bb_onnx_node *n, bb_onnx_value *v, bb_dtype stored) {
  bb_onnx *m = n->m;
  bb_program *p = m->program;
  uint32_t from = v->id == BB_NONE ? BB_NONE : m->array->value[v->id].producer;
  const bb_array_node *made = from == BB_NONE ? NULL : &m->array->node[from];
  if (!made || made->op != BB_A_ELEMENTWISE || made->name != n->name)
    return bb_onnx_map(n, bb_expr_cast(p, v->dtype, bb_expr_cast(p, stored, bb_onnx_arg(n, 0, v))),
                       1, &v);
  const bb_expr *low = bb_expr_cast(p, stored, made->expr);
  return bb_onnx_value_of_id(
      m,
      bb_array_elementwise(m->array, n->name, bb_expr_cast(p, v->dtype, low), made->nin, made->in));
}

bb_onnx_value *bb_onnx_wrap(const bb_onnx_node *n, bb_onnx_value *v, bb_dtype stored) {
  if (!bb_dtype_is_stored(stored)) return v;
  bb_onnx_value *wrapped = cut(n, v, stored);
  wrapped->stored = stored;
  return wrapped;
}

void bb_onnx_stored_range(bb_dtype stored, uint32_t bits, double *least, double *greatest) {
  double values = ldexp(1, bits ? (int)bits : 8 * (int)bb_dtype_bytes(stored));
  *least = bb_dtype_wrap(stored, -1) < 0 ? -values / 2 : 0;
  *greatest = *least + values - 1;
}

void bb_onnx_keep_types(bb_onnx_node *n) {
  for (uint32_t i = 0; i < n->nout; i++) {
    bb_onnx_value *v = n->out[i];
    const bb_onnx_value *like = of_type(n, i);
    if (!like || !v || v->unsupported || v == like) continue;
    if (!bb_dtype_is_stored(like->stored) && !like->bits) continue;
    if (v->dtype != like->dtype) continue;
    if (may_leave(n->row->name)) {
      n->out[i] = bb_onnx_wrap(n, v, like->stored);
      continue;
    }
    n->out[i] = BB_NEW(n->m->arena, bb_onnx_value, 1);
    *n->out[i] = *v;
    n->out[i]->stored = like->stored;
    n->out[i]->bits = like->bits;
  }
}
