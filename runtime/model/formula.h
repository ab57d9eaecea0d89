/* formula.h - whole numbers that follow from run-time extents, in the form that a compiled model keeps.
 *
 * A formula is a row of terms in postfix order, the variables being those of its place: the run-time
 * extents of a model, or the extents of a kernel.  Text: the terms between spaces, a variable as
 * v0, v1, ...  A formula without terms is not known.  Some terms are of real numbers, since models scale extents by quotients; the
 * formula itself is whole.
 */
#ifndef BB_MODEL_FORMULA_H
#define BB_MODEL_FORMULA_H

#include "../../graph/context.h"

typedef enum bb_term_op {
#define BB_TERM(id, text, arity) BB_T_##id,
#include "formula.def"
#undef BB_TERM
  BB_T_COUNT
} bb_term_op;

typedef struct bb_term {
  bb_term_op op;
  int64_t number; /* NUMBER: its value; VARIABLE: which */
} bb_term;

typedef struct bb_formula {
  uint32_t count;
  const bb_term *term;
} bb_formula;

enum { BB_FORMULA_DEPTH = 64 }; /* operands that wait at any time, at most */

/* A real number as terms hold it. */
int64_t bb_formula_real(double number);
/* False where a number passes 63 bits, or what has to be whole is no number.  Division and modulo of whole numbers by zero give 0. */
bool bb_formula_value(const bb_formula *formula, const int64_t *variable, int64_t *value);
/* Whether a variable of the formula has a negative value, which is none. */
bool bb_formula_is_open(const bb_formula *formula, const int64_t *variable);

/* Whether they are the same, term by term. */
bool bb_formula_same(const bb_formula *a, const bb_formula *b);

void bb_formula_print(bb_buffer *out, const bb_formula *formula);
/* Of variables below `variables`; false: it is not one. */
bool bb_formula_parse(bb_arena *arena, const char *text, uint32_t variables, bb_formula *formula);

#endif
