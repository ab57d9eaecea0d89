/* text.h - the total text form: every program at every stage prints, and what is printed parses
 * back to an equal program.  The grammar stands in text.c; README shows examples.
 */
#ifndef BB_GRAPH_TEXT_H
#define BB_GRAPH_TEXT_H

#include "program.h"

/* Prints everything the program holds at its stage. Constants are printed in full when they are
 * small and by file reference otherwise (data_name: the name of the data file to refer to; NULL:
 * always in full). */
void bb_text_print(bb_buffer *out, const bb_program *program, const char *data_name);
/* The same without what is for readers alone: the proofs of tuples, which name the nodes that they were first found for.  Of equal
 * programs they differ by what was looked at. */
void bb_text_print_without_proofs(bb_buffer *out, const bb_program *program, const char *data_name);
/* What the data file must hold for a text printed with a data_name, piece by piece in order. */
typedef void bb_text_sink(void *user, const void *bytes, size_t length);
void bb_text_data(const bb_program *program, bb_text_sink *sink, void *user);

/* One level and what is inside it, as it would stand in a program. */
void bb_text_print_graph(bb_buffer *out, const bb_program *program, const bb_graph *graph);

/* Parses a program; fails the context with "file:line:column: what" on bad input.  The result is
 * owned by the caller (deferred while building).  Data files are looked up beside `path`.  What is
 * read need not obey the laws: that is for verify.h to say. */
bb_program *bb_text_parse(bb_context *ctx, const char *path, const char *text, size_t length);

/* Equal up to node indices, serials and origins: same structure, same ports, same attributes.  Dims
 * and tensors of two programs are the same if their names and contents are. */
bool bb_graph_equal(const bb_graph *a, const bb_graph *b);

#endif
