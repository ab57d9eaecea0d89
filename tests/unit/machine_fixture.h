/* machine_fixture.h - hand-made block programs for the tests of the interpreter: a program, its
 * root, its tensors with data, and a run that reports instead of unwinding.
 */
#ifndef BB_TESTS_MACHINE_FIXTURE_H
#define BB_TESTS_MACHINE_FIXTURE_H

#include "interp/interp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { MOST_TENSORS = 32, MOST_DIMS = 32, MOST_SYMBOLS = 8 };

typedef struct fixture {
  bb_context *ctx;
  bb_program *p;
  bb_graph *root;
  bb_arena *arena;
  bb_interp_tensor tensor[MOST_TENSORS];
  int64_t block[MOST_DIMS], symbol[MOST_SYMBOLS];
  bool float64;
  uint32_t loop_seed;
  double passes[MOST_TENSORS];
  bb_interp_counts counts;
} fixture;

void fixture_begin(fixture *f);
void fixture_end(fixture *f);

bb_dim fixture_dim(fixture *f, const char *name, int64_t extent, bool blocked);
/* A tensor over `axes` dims in storage order; inputs get pseudo-random data in about -1..1 (small
 * integers for integer dtypes). */
uint32_t fixture_tensor(fixture *f, const char *name, bb_tensor_role role, bb_dtype dtype,
                        uint32_t axes, const bb_dim *axis);
/* Root INPUT of a whole tensor; row, col: which of its dims are item axes. */
bb_value fixture_input(fixture *f, uint32_t tensor, bb_dim row, bb_dim col);
/* Root OUTPUT with a new tensor whose axes are the value's levels. Returns the tensor. */
uint32_t fixture_output(fixture *f, const char *name, bb_value value);
/* A root INPUT or OUTPUT seen through an access; the access is interned. */
bb_value fixture_input_view(fixture *f, const bb_type *type, const bb_access *access);
uint32_t fixture_output_view(fixture *f, bb_value value, const bb_access *access);

bb_status fixture_run(fixture *f);         /* program->root */
bb_status fixture_run_program(fixture *f); /* bb_interp_program */

double fixture_random(uint64_t *state); /* in [-1, 1) */

/* The element of a tensor at indices given outer to inner; the fixture's dims give the strides. */
double fixture_at(const fixture *f, uint32_t tensor, const int64_t *index);

void assert_close(double got, double want, double tolerance);

#endif
