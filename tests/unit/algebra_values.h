/* algebra_values.h - chains and products on numbers, for the tests of fuse/algebra. */
#ifndef BB_TESTS_ALGEBRA_VALUES_H
#define BB_TESTS_ALGEBRA_VALUES_H

#include "algebra_cases.h"

typedef struct sample {
  uint32_t count, stride; /* elements; values of one */
  double *element;        /* count * stride */
  const double *fixed;
} sample;

uint64_t random_bits(uint64_t *state);
double random_unit(uint64_t *state); /* in [0, 1) */

/* Elements and fixed values that fit the facts of a case; an element called "i" is its index. */
sample random_sample(bb_program *program, const algebra_case *c, uint64_t *state, uint32_t count);

/* The chain as written, fold after fold over all elements; `result` has room for two per fold. */
void run_chain(bb_program *program, const bb_chain *chain, const sample *s, double *result);

/* The product: lift each element, combine along a random bracketing in which empty parts occur
 * (state NULL: left to right), finish.  `round` is applied to every operation, or NULL. */
typedef double round_function(bb_dtype dtype, double value);
void run_product(bb_program *program, const bb_product *product, const sample *s, uint64_t *state,
                 round_function *round, double *result);

#endif
