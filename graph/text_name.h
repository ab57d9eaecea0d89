/* text_name.h - names as text: plain where they can be, quoted and escaped otherwise.
 */
#ifndef BB_GRAPH_TEXT_NAME_H
#define BB_GRAPH_TEXT_NAME_H

#include "context.h"

/* A letter or _, then letters, digits, _ and dots; and no word of the text form. */
bool bb_name_is_plain(const char *name);
/* Plain, or in double quotes with \" \\ \n \t \xHH for quotes, backslashes, control bytes and bytes
 * that are not UTF-8. */
void bb_put_name(bb_buffer *out, const char *name);
/* The same where a word of the text form cannot stand and so needs no quotes. */
void bb_put_label(bb_buffer *out, const char *name);
void bb_put_quoted(bb_buffer *out, const char *name);
/* A run-time extent for a reader of messages: one that is named by an expression without the word before each name and
 * sums of what is below 0, N-H-1 for symbol(N)-symbol(H)+(-1). */
void bb_put_extent_name(bb_buffer *out, const char *name);

/* Reads a quoted text at *text (its opening quote) into arena.  NULL or a static phrase. */
const char *bb_scan_quoted(const char **text, const char *end, bb_arena *arena, const char **name,
                           size_t *length);
bool bb_is_name_start(char c);
bool bb_is_name_char(char c);

#endif
