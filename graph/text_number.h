/* text_number.h - numbers as text, shortest form that reads back the same; free of the locale.
 */
#ifndef BB_GRAPH_TEXT_NUMBER_H
#define BB_GRAPH_TEXT_NUMBER_H

#include "type.h"

/* Prints value with as few digits as tell it from its neighbours in a float type (which must hold
 * it).  Not a number prints as nan, infinities as inf and -inf. */
void bb_put_number(bb_buffer *out, double value, bb_dtype dtype);

/* Reads digits[.digits][e[+-]digits] at *text and moves past it.  Returns NULL, or a static phrase
 * with *text unmoved.  `integer`: neither point nor exponent was there. */
const char *bb_scan_number(const char **text, const char *end, double *value, bool *integer);

#endif
