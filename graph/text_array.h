/* text_array.h - what the files share that read array programs from text.
 */
#ifndef BB_GRAPH_TEXT_ARRAY_H
#define BB_GRAPH_TEXT_ARRAY_H

#include "text_form.h"

struct bb_array_reader {
  bb_reader *r;
  bb_array *array;
  bb_table *values; /* by the text's name: a plain one as it is, others with their sign */
  uint32_t input_capacity, output_capacity, name_capacity;
};

enum { BB_TEXT_RANK = 32 };

/* An op as the text says it: read first, then built by one call. */
typedef struct bb_op_text {
  bb_array_reader *a;
  const char *place, *name;
  bb_array_op op;
  uint32_t nin;
  uint32_t *in;
  const bb_expr *expr;
  const bb_monoid *monoid;
  uint32_t count; /* axes or perm */
  int64_t ints[BB_TEXT_RANK];
  int64_t start, step,
      length;             /* of a slice, and of the places of windows (-1: the shape says) ... */
  int64_t dilation, taps; /* ... which have so many taps, so far dilation */
  bool keep, exclusive, reverse;
  int64_t labels[3][BB_TEXT_RANK];
  uint32_t rank[3];
  const bb_misc *misc;
  bool has_shape;
  bb_shape shape;
  uint32_t results, result[BB_MONOID_COMPONENTS];
} bb_op_text;

/* A value by its name in the text. */
uint32_t bb_array_read_value(bb_array_reader *a);
/* Reads an op into *t, whose reader is set. */
void bb_array_read_op(bb_op_text *t);
/* A bb_body over a bb_op_text: sets its results. Not for misc. */
void bb_array_build(bb_context *ctx, void *op_text);

#endif
