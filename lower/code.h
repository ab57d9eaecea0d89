/* code.h - emitted source as text: what it names.
 *
 * Whether a statement's code names the row that it stands at, or a tile's stride, is decided in many places.  So a
 * function's body is written first, and then what stands before it: declarations of what the body names, and no others.
 */
#ifndef BB_LOWER_CODE_H
#define BB_LOWER_CODE_H

#include "../graph/context.h"

/* Does the code name this identifier?  A member's name (".x") is none, nor is what stands in a comment behind "//". */
bool bb_code_names(const bb_buffer *code, const char *name);

/* Likewise, of a variable whose value nobody asks for but who sets it: lines that only do that ("  x = ...;") go. */
bool bb_code_reads(bb_buffer *code, const char *name);

/* Puts a declaration before the code, a line of its own, if that names what it declares. */
void bb_code_declare(bb_buffer *code, const char *name, uint32_t indent, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
