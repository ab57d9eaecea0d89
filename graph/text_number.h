/* text_number.h - numbers as text, shortest form that reads back the same; free of the locale.
 */
#ifndef BB_GRAPH_TEXT_NUMBER_H
#define BB_GRAPH_TEXT_NUMBER_H

#include "context.h"

/* Prints value; `single`: as few digits as a float needs (value must be one).  Not a number prints
 * as nan, infinities as inf and -inf. */
void bb_put_number(bb_buffer *out, double value, bool single);

/* Reads digits[.digits][e[+-]digits] at *text and moves past it.  Returns NULL, or a static phrase
 * with *text unmoved.  `integer`: neither point nor exponent was there. */
const char *bb_scan_number(const char **text, const char *end, double *value, bool *integer);

#endif
