/* arrays.h - random array programs, and their plain meaning.
 *
 * A program is made of the array ops, before any pass has run; evaluate() computes it in float64,
 * each op by its definition over whole arrays, and shares no code with the passes, the lowering or
 * the interpreter of block programs.
 */
#ifndef BB_TESTS_ARRAYS_H
#define BB_TESTS_ARRAYS_H

#include "../../graph/array/array.h"
#include "../random/expr.h"

enum { RANK_MAX = 16, SYMBOL_MAX = 32 };

typedef struct whole {
  uint32_t rank;
  int64_t shape[RANK_MAX];
  size_t count;
  double *data;
} whole;

typedef struct array_case {
  bb_program *program; /* at stage array */
  int64_t *symbol;     /* values of its symbols */
  whole *value;        /* by value of the array program: inputs and constants are bound */
} array_case;

/* The case of a seed with `size` operations, deferred in the innermost bb_protect(). */
array_case array_case_make(bb_context *ctx, uint64_t seed, uint32_t size);

/* Computes every value of the program. */
void evaluate(const array_case *c, bb_arena *arena);

whole whole_new(bb_arena *arena, uint32_t rank, const int64_t *shape);

#endif
