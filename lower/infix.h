/* infix.h - arithmetic in emitted source as a person would write it: parentheses where C needs them, nothing added
 * that is nothing.
 */
#ifndef BB_LOWER_INFIX_H
#define BB_LOWER_INFIX_H

#include "../graph/context.h"

/* "a op b" for texts of C expressions whose own operators stand between spaces ("x + 1", "f(x, y)", "-x"), op one of
 * + - * / % < <= > >= == != & | ^ && ||.  Operands bind as they did: a sum that is added on the right keeps its
 * parentheses, for floats' sake.  Whole numbers are computed; 0 is not added, nothing is multiplied with 1, and what is
 * multiplied with 0 is 0.  The result may be an operand itself. */
const char *bb_infix(bb_arena *arena, const char *a, const char *op, const char *b);

/* How often a loop runs whose variable goes from `from` to below `to`: (to - from) / step, rounded up. */
const char *bb_infix_trips(bb_arena *arena, const char *from, const char *to, const char *step);

#endif
