/* measure.h - inside select/: what this machine's processor does in a second.
 */
#ifndef BB_SELECT_MEASURE_H
#define BB_SELECT_MEASURE_H

#include "machine.h"

/* A description of the machine that this process runs on, its numbers measured on the processors
 * that it may use and rounded to two digits; about two seconds.  What cannot be measured by itself
 * stands in the ratio that the description "cpu" gives it.  Fails the context where there is no
 * memory or no thread for it. */
const bb_machine *bb_machine_measure(bb_arena *arena);

/* --- measure_loops.c: loops that do one thing as fast as it goes --- */

enum { BB_MEASURE_SMALL = 2048 }; /* elements that stay in the first cache */

/* The first five give the operations that `turns` turns over an array of so many elements ran:
 * products (a multiply-add is two), arithmetic, exps. */
typedef struct bb_measure_loops {
  double (*products_f32)(uint64_t turns, float *x);
  double (*products_f64)(uint64_t turns, double *x);
  double (*arithmetic_f32)(uint64_t turns, float *x);
  double (*arithmetic_f64)(uint64_t turns, double *x);
  double (*exponentials)(uint64_t turns, float *x);
  float (*read)(const float *data, size_t count); /* once; gives a sum */
} bb_measure_loops;

extern const bb_measure_loops bb_measure_loops_plain;
extern const bb_measure_loops bb_measure_loops_avx2, bb_measure_loops_avx512; /* on x86-64 alone */

#endif
