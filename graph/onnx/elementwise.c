/* elementwise.c - operators that work element by element: each becomes one expression. */
#include "convert.h"
#include "formula.h"

#include <math.h>
#include <string.h>

void bb_onnx_same_dtype(const bb_onnx_node *n, uint32_t count, bb_onnx_value *const *v) {
  for (uint32_t i = 1; i < count; i++)
    if (v[i]->dtype != v[0]->dtype || v[i]->stored != v[0]->stored)
      bb_onnx_refuse(n, "operands of types %s and %s", bb_dtype_name(v[0]->stored),
                     bb_dtype_name(v[i]->stored));
}

void bb_onnx_want_float(const bb_onnx_node *n, const bb_onnx_value *v) {
  if (!bb_dtype_is_float(v->dtype))
    bb_onnx_refuse(n, "an operand that must be floating point is %s", bb_dtype_name(v->stored));
}

static void want_bool(const bb_onnx_node *n, const bb_onnx_value *v) {
  if (v->dtype != BB_BOOL)
    bb_onnx_refuse(n, "an operand that must be bool is %s", bb_dtype_name(v->stored));
}

static void want_number(const bb_onnx_node *n, const bb_onnx_value *v) {
  if (v->dtype == BB_BOOL) bb_onnx_refuse(n, "an operand that must be a number is bool");
}

bb_onnx_value *bb_onnx_binary_map(const bb_onnx_node *n, bb_expr_op op, bb_onnx_value *v,
                                  bb_onnx_value *w) {
  const bb_expr *a = bb_onnx_arg(n, 0, v), *b = bb_onnx_arg(n, 1, w);
  bb_onnx_value *made =
      bb_onnx_map(n, bb_expr_make(n->m->program, op, a, b, NULL), 2, (bb_onnx_value *[]){v, w});
  if (made->dtype == v->dtype) made->stored = v->stored;
  return made;
}

/* --- formulas --- */

static const bb_expr *sigmoid(bb_program *p, const bb_expr *x) {
  const bb_expr *one = f_num(p, x, 1);
  return f_div(p, one, f_add(p, one, f_exp(p, f_neg(p, x))));
}

/* c[0] + c[1] x + c[2] x**2 + ... */
static const bb_expr *polynomial(bb_program *p, const bb_expr *x, uint32_t count, const double *c) {
  const bb_expr *sum = f_num(p, x, c[count - 1]);
  for (uint32_t i = count - 1; i-- > 0;) sum = f_add(p, f_mul(p, sum, x), f_num(p, x, c[i]));
  return sum;
}

/* An odd function: near 0, where its formula would lose all digits of a small result, x times a series in x**2. */
static const bb_expr *odd(bb_program *p, const bb_expr *x, double near, uint32_t count,
                          const double *c, const bb_expr *elsewhere) {
  const bb_expr *series = f_mul(p, x, polynomial(p, f_mul(p, x, x), count, c));
  return f_select(p, f_lt(p, f_abs(p, x), f_num(p, x, near)), series, elsewhere);
}

/* log(1 + exp x) without overflow; a series where the 1 would swallow the exp. */
static const bb_expr *softplus(bb_program *p, const bb_expr *x) {
  static const double c[] = {1, -1.0 / 2, 1.0 / 3, -1.0 / 4, 1.0 / 5};
  const bb_expr *small = f_exp(p, f_neg(p, f_abs(p, x)));
  const bb_expr *near = f_num(p, x, x->dtype == BB_F64 ? 0x1p-10 : 0x1p-4);
  const bb_expr *rest =
      f_select(p, f_lt(p, small, near), f_mul(p, small, polynomial(p, small, 5, c)),
               f_log(p, f_add(p, f_num(p, x, 1), small)));
  return f_add(p, f_max(p, x, f_num(p, x, 0)), rest);
}

static const bb_expr *clamp(bb_program *p, const bb_expr *x, double low, double high) {
  return f_min(p, f_max(p, x, f_num(p, x, low)), f_num(p, x, high));
}

/* alpha * (exp(x / scale) - 1) */
static const bb_expr *exp_minus_one(bb_program *p, const bb_expr *x, double alpha, double scale) {
  const bb_expr *e = f_exp(p, f_div(p, x, f_num(p, x, scale)));
  return f_mul(p, f_num(p, x, alpha), f_sub(p, e, f_num(p, x, 1)));
}

static const bb_expr *erf_gelu(bb_program *p, const bb_expr *x) {
  const bb_expr *e = f_erf(p, f_mul(p, x, f_num(p, x, M_SQRT1_2)));
  return f_mul(p, f_mul(p, x, f_num(p, x, 0.5)), f_add(p, f_num(p, x, 1), e));
}

static const bb_expr *tanh_gelu(bb_program *p, const bb_expr *x) {
  const bb_expr *cube = f_mul(p, f_num(p, x, 0.044715), f_pow(p, x, f_num(p, x, 3)));
  const bb_expr *inner = f_mul(p, f_num(p, x, sqrt(M_2_PI)), f_add(p, x, cube));
  return f_mul(p, f_mul(p, x, f_num(p, x, 0.5)), f_add(p, f_num(p, x, 1), f_tanh(p, inner)));
}

/* x * sigmoid(alpha x) */
static const bb_expr *swish(bb_program *p, const bb_expr *x, double alpha) {
  const bb_expr *e = f_exp(p, f_neg(p, f_mul(p, x, f_num(p, x, alpha))));
  return f_div(p, x, f_add(p, f_num(p, x, 1), e));
}

/* (exp x + exp -x) / 2, or the difference */
static const bb_expr *half_of(bb_program *p, bb_expr_op op, const bb_expr *x) {
  const bb_expr *a = f_exp(p, x), *b = f_exp(p, f_neg(p, x));
  return f_mul(p, f_num(p, x, 0.5), bb_expr_make(p, op, a, b, NULL));
}

/* Near where an exp overflows its half does not yet, and is all that counts. */
static const bb_expr *cosh_of(bb_program *p, const bb_expr *x) {
  const bb_expr *size = f_abs(p, x), *half = f_exp(p, f_sub(p, size, f_num(p, x, M_LN2)));
  double far = x->dtype == BB_F64 ? 700 : x->dtype == BB_F16 ? 10 : 80;
  return f_select(p, f_lt(p, f_num(p, x, far), size), half, half_of(p, BB_X_ADD, x));
}

static const bb_expr *sinh_of(bb_program *p, const bb_expr *x) {
  static const double c[] = {1, 1.0 / 6, 1.0 / 120, 1.0 / 5040, 1.0 / 362880, 1.0 / 39916800};
  double near = x->dtype == BB_F64 ? 0.25 : 1;
  return odd(p, x, near, 6, c, half_of(p, BB_X_SUB, x));
}

/* From where 1 beside the square no longer counts, and before the square overflows. */
static double far_of(const bb_expr *x) {
  return x->dtype == BB_F64 ? 0x1p28 : x->dtype == BB_F16 ? 0x1p7 : 0x1p12;
}

/* To where six terms of a series with coefficients near 1 are exact. */
static double near_of(const bb_expr *x) {
  return x->dtype == BB_F64 ? 0x1p-4 : 0x1p-2;
}

/* log(|x| + sqrt(x**2 + 1)) with the sign of x; far away log 2|x|. */
static const bb_expr *inverse_sinh(bb_program *p, const bb_expr *x) {
  static const double c[] = {1, -1.0 / 6, 3.0 / 40, -5.0 / 112, 35.0 / 1152, -63.0 / 2816};
  const bb_expr *size = f_abs(p, x), *one = f_num(p, x, 1);
  const bb_expr *near = f_log(p, f_add(p, size, f_sqrt(p, f_add(p, f_mul(p, x, x), one))));
  const bb_expr *large = f_add(p, f_log(p, size), f_num(p, x, M_LN2));
  const bb_expr *y = f_select(p, f_lt(p, f_num(p, x, far_of(x)), size), large, near);
  y = f_select(p, f_lt(p, x, f_num(p, x, 0)), f_neg(p, y), y);
  return odd(p, x, near_of(x), 6, c, y);
}

/* log(x + sqrt(x - 1) sqrt(x + 1)): no number below 1; far away log 2x */
static const bb_expr *inverse_cosh(bb_program *p, const bb_expr *x) {
  const bb_expr *one = f_num(p, x, 1), *less = f_sqrt(p, f_sub(p, x, one));
  const bb_expr *near = f_log(p, f_add(p, x, f_mul(p, less, f_sqrt(p, f_add(p, x, one)))));
  const bb_expr *large = f_add(p, f_log(p, x), f_num(p, x, M_LN2));
  return f_select(p, f_lt(p, f_num(p, x, far_of(x)), x), large, near);
}

static const bb_expr *inverse_tanh(bb_program *p, const bb_expr *x) {
  static const double c[] = {1, 1.0 / 3, 1.0 / 5, 1.0 / 7, 1.0 / 9, 1.0 / 11};
  const bb_expr *one = f_num(p, x, 1), *ratio = f_div(p, f_add(p, one, x), f_sub(p, one, x));
  return odd(p, x, near_of(x), 6, c, f_mul(p, f_num(p, x, 0.5), f_log(p, ratio)));
}

static const bb_expr *shrink(const bb_onnx_node *n, const bb_expr *x) {
  bb_program *p = n->m->program;
  double lambda = bb_onnx_float(n, "lambd", 0.5), bias = bb_onnx_float(n, "bias", 0);
  const bb_expr *low = f_lt(p, x, f_num(p, x, -lambda)), *high = f_lt(p, f_num(p, x, lambda), x);
  return f_select(p, low, f_add(p, x, f_num(p, x, bias)),
                  f_select(p, high, f_sub(p, x, f_num(p, x, bias)), f_num(p, x, 0)));
}

/* Linear units: one expression for x above 0, another below. */
static const bb_expr *linear_unit(const bb_onnx_node *n, int formula, const bb_expr *x) {
  bb_program *p = n->m->program;
  const bb_expr *zero = f_num(p, x, 0), *negative = f_lt(p, x, zero);
  double alpha;
  switch (formula) {
  case F_RELU: return f_max(p, x, zero);
  case F_LEAKY_RELU:
    alpha = bb_onnx_float(n, "alpha", 0.01);
    return f_select(p, negative, f_mul(p, f_num(p, x, alpha), x), x);
  case F_THRESHOLDED_RELU:
    alpha = bb_onnx_float(n, "alpha", 1);
    return f_select(p, f_lt(p, f_num(p, x, alpha), x), x, zero);
  case F_ELU: return f_select(p, negative, exp_minus_one(p, x, bb_onnx_float(n, "alpha", 1), 1), x);
  case F_CELU:
    alpha = bb_onnx_float(n, "alpha", 1);
    return f_select(p, negative, exp_minus_one(p, x, alpha, alpha), x);
  default: {
    alpha = bb_onnx_float(n, "alpha", 1.67326319217681884765625);
    double gamma = bb_onnx_float(n, "gamma", 1.05070102214813232421875);
    return f_mul(p, f_num(p, x, gamma), f_select(p, negative, exp_minus_one(p, x, alpha, 1), x));
  }
  }
}

static const bb_expr *gelu(const bb_onnx_node *n, const bb_expr *x) {
  const char *kind = bb_onnx_text(n, "approximate", "none");
  if (strcmp(kind, "none") != 0 && strcmp(kind, "tanh") != 0)
    bb_onnx_refuse(n, "approximate is %s", bb_onnx_quote(n->m->arena, kind));
  return kind[0] == 't' ? tanh_gelu(n->m->program, x) : erf_gelu(n->m->program, x);
}

static const bb_expr *arc_tangent(bb_program *p, const bb_expr *x) {
  return bb_expr_make(p, BB_X_ATAN, x, NULL, NULL);
}

static const bb_expr *twice(bb_program *p, const bb_expr *x) {
  return f_mul(p, f_num(p, x, 2), x);
}

const bb_expr *bb_onnx_formula_of(const bb_onnx_node *n, int formula, const bb_expr *x) {
  bb_program *p = n->m->program;
  const bb_expr *one = f_num(p, x, 1);
  switch (formula) {
  case F_RECIPROCAL: return f_div(p, one, x);
  case F_TAN:
    return f_div(p, bb_expr_make(p, BB_X_SIN, x, NULL, NULL),
                 bb_expr_make(p, BB_X_COS, x, NULL, NULL));
  case F_ATAN: return arc_tangent(p, x);
  case F_ASIN: /* x / (1 + sqrt(1 - x x)), the tangent of half of it */
    return twice(
        p, arc_tangent(
               p, f_div(p, x,
                        f_add(p, one, f_sqrt(p, f_mul(p, f_sub(p, one, x), f_add(p, one, x)))))));
  case F_ACOS:
    return twice(p, arc_tangent(p, f_sqrt(p, f_div(p, f_sub(p, one, x), f_add(p, one, x)))));
  case F_SINH: return sinh_of(p, x);
  case F_COSH: return cosh_of(p, x);
  case F_ASINH: return inverse_sinh(p, x);
  case F_ACOSH: return inverse_cosh(p, x);
  case F_ATANH: return inverse_tanh(p, x);
  case F_SIGMOID: return sigmoid(p, x);
  case F_SHRINK: return shrink(n, x);
  case F_SOFTPLUS: return softplus(p, x);
  case F_SOFTSIGN: return f_div(p, x, f_add(p, one, f_abs(p, x)));
  case F_HARD_SIGMOID: {
    const bb_expr *slope = f_mul(p, f_num(p, x, bb_onnx_float(n, "alpha", 0.2)), x);
    return clamp(p, f_add(p, slope, f_num(p, x, bb_onnx_float(n, "beta", 0.5))), 0, 1);
  }
  case F_HARD_SWISH: {
    const bb_expr *line = f_add(p, f_div(p, x, f_num(p, x, 6)), f_num(p, x, 0.5));
    return f_mul(p, x, clamp(p, line, 0, 1));
  }
  case F_MISH: return f_mul(p, x, f_tanh(p, softplus(p, x)));
  case F_GELU: return gelu(n, x);
  case F_TANH_GELU: return tanh_gelu(p, x);
  case F_SWISH: return swish(p, x, bb_onnx_float(n, "alpha", 1));
  case F_QUICK_GELU: return swish(p, x, bb_onnx_float(n, "alpha", 1.702));
  default: return linear_unit(n, formula, x);
  }
}

/* --- one operand --- */

void bb_onnx_unary(bb_onnx_node *n) {
  bb_expr_op op = (bb_expr_op)n->row->detail;
  bool any_number = op == BB_X_ABS || op == BB_X_NEG || op == BB_X_SIGN;
  if (any_number)
    want_number(n, n->in[0]);
  else
    bb_onnx_want_float(n, n->in[0]);
  const bb_expr *x = bb_onnx_arg(n, 0, n->in[0]);
  n->out[0] = bb_onnx_map(n, bb_expr_make(n->m->program, op, x, NULL, NULL), 1, n->in);
}

void bb_onnx_formula(bb_onnx_node *n) {
  if (n->row->detail != F_RELU || n->in[0]->dtype == BB_BOOL) bb_onnx_want_float(n, n->in[0]);
  const bb_expr *x = bb_onnx_arg(n, 0, n->in[0]);
  n->out[0] = bb_onnx_map(n, bb_onnx_formula_of(n, n->row->detail, x), 1, n->in);
}

/* A formula of x + bias. */
void bb_onnx_biased(bb_onnx_node *n) {
  bb_program *p = n->m->program;
  bool has_bias = n->nin > 1;
  bb_onnx_same_dtype(n, n->nin, n->in);
  bb_onnx_want_float(n, n->in[0]);
  const bb_expr *x = bb_onnx_arg(n, 0, n->in[0]);
  if (has_bias) x = f_add(p, x, bb_onnx_arg(n, 1, n->in[1]));
  n->out[0] = bb_onnx_map(n, bb_onnx_formula_of(n, n->row->detail, x), n->nin, n->in);
}

void bb_onnx_is_inf(bb_onnx_node *n) {
  bb_program *p = n->m->program;
  bool positive = bb_onnx_int(n, "detect_positive", 1),
       negative = bb_onnx_int(n, "detect_negative", 1);
  bb_onnx_want_float(n, n->in[0]);
  const bb_expr *x = bb_onnx_arg(n, 0, n->in[0]), *zero = f_num(p, x, 0), *found = f_isinf(p, x);
  if (!positive) found = f_and(p, found, f_lt(p, x, zero));
  if (!negative) found = f_and(p, found, f_lt(p, zero, x));
  n->out[0] = bb_onnx_map(n, found, 1, n->in);
}

/* --- two operands --- */

void bb_onnx_binary(bb_onnx_node *n) {
  bb_expr_op op = (bb_expr_op)n->row->detail;
  bb_onnx_same_dtype(n, 2, n->in);
  if (op != BB_X_EQ) want_number(n, n->in[0]);
  n->out[0] = bb_onnx_binary_map(n, op, n->in[0], n->in[1]);
}

/* a > b is b < a. */
void bb_onnx_swapped(bb_onnx_node *n) {
  bb_expr_op op = (bb_expr_op)n->row->detail;
  bb_onnx_same_dtype(n, 2, n->in);
  want_number(n, n->in[0]);
  const bb_expr *a = bb_onnx_arg(n, 0, n->in[0]), *b = bb_onnx_arg(n, 1, n->in[1]);
  n->out[0] = bb_onnx_map(n, bb_expr_make(n->m->program, op, b, a, NULL), 2, n->in);
}

void bb_onnx_logical(bb_onnx_node *n) {
  bb_expr_op op = (bb_expr_op)n->row->detail;
  for (uint32_t i = 0; i < n->nin; i++) want_bool(n, n->in[i]);
  const bb_expr *a = bb_onnx_arg(n, 0, n->in[0]),
                *b = n->nin > 1 ? bb_onnx_arg(n, 1, n->in[1]) : NULL;
  n->out[0] = bb_onnx_map(n, bb_expr_make(n->m->program, op, a, b, NULL), n->nin, n->in);
}

/* The result has the type of the base, whatever that of the exponent. */
void bb_onnx_power(bb_onnx_node *n) {
  bb_program *p = n->m->program;
  bb_onnx_value *base = n->in[0], *exponent = n->in[1];
  want_number(n, base);
  want_number(n, exponent);
  const bb_expr *a = bb_onnx_arg(n, 0, base), *b = bb_onnx_arg(n, 1, exponent);
  if (bb_dtype_is_float(base->dtype)) {
    exponent = bb_onnx_cast(n, exponent, base->dtype);
    b = bb_onnx_arg(n, 1, exponent);
  }
  const bb_expr *times = bb_onnx_scalar_expr(exponent), *power = f_pow(p, a, b);
  if (!bb_dtype_is_float(base->dtype) && times && times->op == BB_X_CONST &&
      (times->number == 2 || times->number == 3)) { /* wraps, as products do */
    power = f_mul(p, a, a);
    if (times->number == 3) power = f_mul(p, power, a);
  }
  n->out[0] =
      bb_onnx_map(n, bb_expr_cast(p, base->dtype, power), 2, (bb_onnx_value *[]){base, exponent});
}

void bb_onnx_modulo(bb_onnx_node *n) {
  bool sign_of_dividend = bb_onnx_int(n, "fmod", 0);
  bb_onnx_same_dtype(n, 2, n->in);
  want_number(n, n->in[0]);
  if (!sign_of_dividend && n->version < 28 && bb_dtype_is_float(n->in[0]->dtype))
    bb_onnx_refuse(n, "fmod must be 1 for floating point");
  n->out[0] = bb_onnx_binary_map(n, sign_of_dividend ? BB_X_FMOD : BB_X_MOD, n->in[0], n->in[1]);
}

/* A formula of the first operand times the second. */
void bb_onnx_gated(bb_onnx_node *n) {
  bb_onnx_same_dtype(n, 2, n->in);
  bb_onnx_want_float(n, n->in[0]);
  const bb_expr *gate = bb_onnx_formula_of(n, n->row->detail, bb_onnx_arg(n, 0, n->in[0]));
  bb_onnx_value *v[2] = {bb_onnx_map(n, gate, 1, n->in), n->in[1]};
  n->out[0] = bb_onnx_binary_map(n, BB_X_MUL, v[0], v[1]);
}

void bb_onnx_prelu(bb_onnx_node *n) {
  bb_program *p = n->m->program;
  bb_onnx_same_dtype(n, 2, n->in);
  want_number(n, n->in[0]);
  const bb_expr *x = bb_onnx_arg(n, 0, n->in[0]), *slope = bb_onnx_arg(n, 1, n->in[1]);
  const bb_expr *low = f_lt(p, x, f_num(p, x, 0));
  n->out[0] = bb_onnx_map(n, f_select(p, low, f_mul(p, slope, x), x), 2, n->in);
}

/* --- any number of operands --- */

/* The e of min(e, number), a length that the model cuts itself; NULL: it is none. */
static const bb_expr *cut_length(const bb_expr *e) {
  if (e->op != BB_X_MIN || bb_dtype_is_float(e->dtype)) return NULL;
  bool first = e->a[0]->op == BB_X_CONST;
  return first != (e->a[1]->op == BB_X_CONST) ? e->a[first ? 1 : 0] : NULL;
}

/* Where no length may be cut, a run in which one is more than the number is refused, as what lies below the number
 * becomes an extent. */
static bb_onnx_value *uncut_lengths(const bb_onnx_node *n, const bb_onnx_value *v) {
  bb_onnx *m = n->m;
  const bb_expr **element = BB_NEW(m->arena, const bb_expr *, v->elements);
  for (uint32_t i = 0; i < v->elements; i++) {
    const bb_expr *e = v->element[i], *length = cut_length(e);
    element[i] = length && m->uncut ? length : e;
    m->cuts |= length && !m->uncut;
    if (element[i] == e) continue;
    const bb_expr *number = length == e->a[0] ? e->a[1] : e->a[0];
    bb_onnx_expr_extent(m, bb_onnx_tidy_make(m, BB_X_SUB, number, length));
  }
  return bb_onnx_value_of_elements(m, v->dtype, v->rank, v->shape, v->elements, element);
}

void bb_onnx_variadic(bb_onnx_node *n) {
  enum { AT_ONCE = 8 }; /* operands of one expression: longer lists become a chain */
  bb_program *p = n->m->program;
  bool mean = n->row->detail == BB_X_DIV;
  bb_expr_op op = mean ? BB_X_ADD : (bb_expr_op)n->row->detail;
  for (uint32_t i = 0; i < n->nin; i++)
    if (!n->in[i]) bb_onnx_refuse(n, "input %u is missing", i);
  bb_onnx_same_dtype(n, n->nin, n->in);
  want_number(n, n->in[0]);
  bb_onnx_value *sum = n->in[0];
  for (uint32_t i = 1; i < n->nin; i += AT_ONCE) {
    bb_onnx_value *part[AT_ONCE + 1] = {sum};
    const bb_expr *e = bb_onnx_arg(n, 0, sum);
    uint32_t count = 1;
    for (; count <= AT_ONCE && i + count - 1 < n->nin; count++) {
      part[count] = n->in[i + count - 1];
      e = bb_expr_make(p, op, e, bb_onnx_arg(n, count, part[count]), NULL);
    }
    sum = bb_onnx_map(n, e, count, part);
  }
  if (mean) {
    const bb_expr *x = bb_onnx_arg(n, 0, sum);
    sum = bb_onnx_map(n, f_div(p, x, f_num(p, x, n->nin)), 1, &sum);
  }
  n->out[0] = op == BB_X_MIN && sum->element ? uncut_lengths(n, sum) : sum;
}

void bb_onnx_where(bb_onnx_node *n) {
  want_bool(n, n->in[0]);
  bb_onnx_same_dtype(n, 2, n->in + 1);
  const bb_expr *choice = f_select(n->m->program, bb_onnx_arg(n, 0, n->in[0]),
                                   bb_onnx_arg(n, 1, n->in[1]), bb_onnx_arg(n, 2, n->in[2]));
  n->out[0] = bb_onnx_map(n, choice, 3, n->in);
}

void bb_onnx_clip(bb_onnx_node *n) {
  bb_onnx_value *v = n->in[0];
  want_number(n, v);
  for (uint32_t i = 1; i < n->nin; i++) {
    if (!n->in[i]) continue;
    bb_onnx_same_dtype(n, 2, (bb_onnx_value *[]){v, n->in[i]});
    if (n->in[i]->rank) bb_onnx_refuse(n, "a bound is not a scalar");
    v = bb_onnx_binary_map(n, i == 1 ? BB_X_MAX : BB_X_MIN, v, n->in[i]);
  }
  n->out[0] = v;
}

/* --- types --- */

void bb_onnx_cast_to(bb_onnx_node *n) {
  bb_dtype dtype;
  int64_t to = bb_onnx_int(n, "to", 0);
  bool small = to > 0 && to < 64;
  if (!small || !bb_onnx_dtype((int32_t)to, &dtype)) {
    bb_onnx_unsupported(n, "a cast to %s",
                        small ? bb_onnx_dtype_name((int32_t)to) : "an unknown type");
    return;
  }
  bb_dtype stored = bb_onnx_stored((int32_t)to);
  n->out[0] = bb_onnx_wrap(n, bb_onnx_cast(n, n->in[0], dtype), stored);
}

void bb_onnx_cast_like(bb_onnx_node *n) {
  const bb_onnx_value *like = n->in[1];
  if (like->bits) bb_onnx_refuse(n, "a cast to elements of %u bits", like->bits);
  n->out[0] = bb_onnx_wrap(n, bb_onnx_cast(n, n->in[0], like->dtype), like->stored);
}

void bb_onnx_identity(bb_onnx_node *n) {
  n->out[0] = n->in[0];
}

/* Inference: the identity; the mask, if asked for, is true everywhere. */
void bb_onnx_dropout(bb_onnx_node *n) {
  bb_onnx *m = n->m;
  if (n->nin > 2 && n->in[2]) {
    const bb_expr *training = bb_onnx_scalar_expr(n->in[2]);
    if (!training || training->op != BB_X_CONST || training->number != 0) {
      bb_onnx_unsupported(n, "training mode");
      return;
    }
  }
  n->out[0] = n->in[0];
  if (n->nout > 1)
    n->out[1] = bb_onnx_value_of_form(m, bb_expr_const(m->program, BB_BOOL, 1), n->in[0]->rank,
                                      n->in[0]->shape);
}
