/* formula.h - short spellings for building scalar expressions, as the converters do by the
 * dozen.
 */
#ifndef BB_ONNX_FORMULA_H
#define BB_ONNX_FORMULA_H

#include "import.h"

#define BB_FORMULA_UNARY(name, op)                                                                 \
  static inline const bb_expr *name(bb_program *p, const bb_expr *a) {                             \
    return bb_expr_make(p, BB_X_##op, a, NULL, NULL);                                              \
  }
#define BB_FORMULA_BINARY(name, op)                                                                \
  static inline const bb_expr *name(bb_program *p, const bb_expr *a, const bb_expr *b) {           \
    return bb_expr_make(p, BB_X_##op, a, b, NULL);                                                 \
  }
BB_FORMULA_UNARY(f_neg, NEG)
BB_FORMULA_UNARY(f_abs, ABS)
BB_FORMULA_UNARY(f_sqrt, SQRT)
BB_FORMULA_UNARY(f_exp, EXP)
BB_FORMULA_UNARY(f_log, LOG)
BB_FORMULA_UNARY(f_tanh, TANH)
BB_FORMULA_UNARY(f_erf, ERF)
BB_FORMULA_UNARY(f_isinf, ISINF)
BB_FORMULA_BINARY(f_add, ADD)
BB_FORMULA_BINARY(f_sub, SUB)
BB_FORMULA_BINARY(f_mul, MUL)
BB_FORMULA_BINARY(f_div, DIV)
BB_FORMULA_BINARY(f_pow, POW)
BB_FORMULA_BINARY(f_min, MIN)
BB_FORMULA_BINARY(f_max, MAX)
BB_FORMULA_BINARY(f_lt, LT)
BB_FORMULA_BINARY(f_le, LE)
BB_FORMULA_BINARY(f_eq, EQ)
BB_FORMULA_BINARY(f_and, AND)
#undef BB_FORMULA_UNARY
#undef BB_FORMULA_BINARY

static inline const bb_expr *f_select(bb_program *p, const bb_expr *c, const bb_expr *a,
                                      const bb_expr *b) {
  return bb_expr_make(p, BB_X_SELECT, c, a, b);
}

/* A constant of the type of `like`. */
static inline const bb_expr *f_num(bb_program *p, const bb_expr *like, double value) {
  return bb_expr_const(p, like->dtype, value);
}

#endif
