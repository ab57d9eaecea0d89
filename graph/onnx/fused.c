/* fused.c - operators of com.microsoft that end in an activation by name, as ONNX Runtime writes them where it saves what it
 * made of a model: FusedGemm and FusedConv.
 */
#include "convert.h"
#include "formula.h"

#include <string.h>

/* An activation that takes parameters, and what they are where the operator has defaults for them. */
typedef struct parametric {
  const char *name;
  uint32_t count;
  float otherwise[2];
  const bb_expr *(*of)(bb_program *p, const bb_expr *x, const bb_expr *a, const bb_expr *b);
} parametric;

static const bb_expr *leaky(bb_program *p, const bb_expr *x, const bb_expr *a, const bb_expr *b) {
  (void)b;
  return f_select(p, f_lt(p, x, f_num(p, x, 0)), f_mul(p, a, x), x);
}

static const bb_expr *clip(bb_program *p, const bb_expr *x, const bb_expr *a, const bb_expr *b) {
  return f_min(p, f_max(p, x, a), b);
}

static const bb_expr *hard_sigmoid(bb_program *p, const bb_expr *x, const bb_expr *a,
                                   const bb_expr *b) {
  return clip(p, f_add(p, f_mul(p, a, x), b), f_num(p, x, 0), f_num(p, x, 1));
}

static const parametric parametrics[] = {{"LeakyRelu", 1, {0.01f}, leaky},
                                         {"HardSigmoid", 2, {0.2f, 0.5f}, hard_sigmoid},
                                         {"Clip", 2, {-3.402823466e38f, 3.402823466e38f}, clip}};

static const parametric *find_parametric(const char *name) {
  for (size_t i = 0; i < sizeof parametrics / sizeof *parametrics; i++)
    if (strcmp(parametrics[i].name, name) == 0) return &parametrics[i];
  return NULL;
}

/* The activation that the node names, of x; x itself where it names none, NULL where it is not known.  given: its parameters;
 * NULL: it has none. */
static const bb_expr *activation(const bb_onnx_node *n, const char *name, const float *given,
                                 const bb_expr *x) {
  static const struct {
    const char *name;
    int formula;
  } plain[] = {
      {"Relu", F_RELU}, {"Sigmoid", F_SIGMOID}, {"Softplus", F_SOFTPLUS}, {"Softsign", F_SOFTSIGN}};
  bb_program *p = n->m->program;
  const parametric *found = find_parametric(name);
  if (!*name) return x;
  if (found) return found->of(p, x, f_num(p, x, given[0]), f_num(p, x, given[found->count - 1]));
  if (strcmp(name, "Tanh") == 0) return f_tanh(p, x);
  for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
    if (strcmp(plain[i].name, name) == 0) return bb_onnx_formula_of(n, plain[i].formula, x);
  return NULL;
}

static void activate(bb_onnx_node *n, bb_onnx_value *v, const char *name, const float *given) {
  bb_onnx_want_float(n, v);
  const bb_expr *x = bb_onnx_arg(n, 0, v), *y = activation(n, name, given, x);
  if (!y)
    bb_onnx_unsupported(n, "activation %s", bb_onnx_quote(n->m->arena, name));
  else
    n->out[0] = y == x ? v : bb_onnx_map(n, y, 1, &v);
}

void bb_onnx_fused_gemm(bb_onnx_node *n) {
  const char *name = bb_onnx_text(n, "activation", "");
  const parametric *found = find_parametric(name);
  float given[2] = {0};
  bb_onnx_value *y = NULL;
  if (found) {
    given[0] = (float)bb_onnx_float(n, "activation_alpha", found->otherwise[0]);
    given[1] = (float)bb_onnx_float(n, "activation_beta", found->otherwise[1]);
  }
  bb_onnx_convert_as(n, "Gemm", BB_ONNX_OPSET_OPERANDS, n->nin, n->in, 1, &y);
  if (y->unsupported)
    n->out[0] = y;
  else
    activate(n, y, name, given);
}

/* Input 3 is added before the activation. */
void bb_onnx_fused_convolution(bb_onnx_node *n) {
  const char *name = bb_onnx_text(n, "activation", "");
  const parametric *found = find_parametric(name);
  uint32_t count = 0;
  const float *given = bb_onnx_floats(n, "activation_params", &count);
  bb_onnx_value *y = NULL, *bias = bb_onnx_operand(n, 2), *added = bb_onnx_operand(n, 3);
  if (found && count != found->count)
    bb_onnx_refuse(n, "activation_params has %u numbers, %s takes %u", count, found->name,
                   found->count);
  bb_onnx_convert_as(n, "Conv", BB_ONNX_OPSET_OPERANDS, bias ? 3 : 2, n->in, 1, &y);
  if (y->unsupported) {
    n->out[0] = y;
    return;
  }
  if (added) {
    bb_onnx_same_dtype(n, 2, (bb_onnx_value *[]){y, added});
    if (added->rank != y->rank) bb_onnx_refuse(n, "input 3 has rank %u", added->rank);
    for (uint32_t a = 0; a < y->rank; a++)
      if (!bb_onnx_same_extent(n, y->shape[a], added->shape[a]))
        bb_onnx_refuse(n, "input 3 of shape %s is added to a convolution of shape %s",
                       bb_onnx_shape_text(n->m, added), bb_onnx_shape_text(n->m, y));
    y = bb_onnx_binary_map(n, BB_X_ADD, y, added);
  }
  activate(n, y, name, given);
}
