/* eval.h - the values of array nodes whose operands are known: what constant folding runs on. */
#ifndef BB_GRAPH_ARRAY_EVAL_H
#define BB_GRAPH_ARRAY_EVAL_H

#include "array.h"

enum { BB_EVAL_RANK = 16 };

/* A whole array: row-major doubles, integers and bools exact up to 2^53. */
typedef struct bb_whole {
  uint32_t rank;
  int64_t shape[BB_EVAL_RANK];
  size_t count;
  double *data;
} bb_whole;

/* The shape of an array value, without data; false if it is not known now or has too many axes. */
bool bb_eval_shape(const bb_array *array, uint32_t value, bb_whole *whole);
/* A constant's elements; false if an integer is not exact as a double. */
bool bb_eval_constant(const bb_array *array, uint32_t value, bb_arena *arena, bb_whole *whole);
/* Computes node->out[0] in double.  `out` has its shape.  False: this operator is not evaluated, or
 * the result's dtype does not hold the value as it is: what would be rounded is left to run. */
bool bb_eval_node(const bb_array *array, const bb_array_node *node, const bb_whole *in,
                  bb_arena *arena, bb_whole *out);

#endif
