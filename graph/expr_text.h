/* expr_text.h - what printing and parsing of expressions share.
 */
#ifndef BB_GRAPH_EXPR_TEXT_H
#define BB_GRAPH_EXPR_TEXT_H

#include "expr.h"

/* How tightly operators bind, weakest first. */
typedef enum bb_expr_strength {
  BB_STRENGTH_OR,
  BB_STRENGTH_XOR,
  BB_STRENGTH_AND,
  BB_STRENGTH_COMPARE,
  BB_STRENGTH_SUM,
  BB_STRENGTH_PRODUCT,
  BB_STRENGTH_UNARY,
  BB_STRENGTH_POWER,
  BB_STRENGTH_ATOM
} bb_expr_strength;

bb_expr_strength bb_expr_strength_of(bb_expr_op op);

/* The type of a number written without one, beside another operand (NULL: none): a float's own; an
 * integer's if the number is an integer; else f32. */
bb_dtype bb_expr_literal_dtype(double value, const bb_expr *beside);
/* The operand that gives operand `operand` of expr its type, or NULL. */
const bb_expr *bb_expr_beside(const bb_expr *expr, uint32_t operand);

/* Does it print from left to right, without bindings? */
bool bb_expr_prints_whole(const bb_expr *expr);
/* As bb_expr_print(); an argument whose type is not arg_dtype[index] says so: x'f16. */
void bb_expr_print_typed(bb_buffer *out, const bb_program *program, const bb_expr *expr,
                         bb_expr_style style, uint32_t argc, const char *const *arg,
                         const bb_dtype *arg_dtype);

#endif
