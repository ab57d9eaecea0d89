/* pipeline.h - every stage from an array program to chosen snapshots, for tests that look between
 * them, or time or fail them as a whole.
 */
#ifndef BB_TESTS_PIPELINE_H
#define BB_TESTS_PIPELINE_H

#include "../../graph/array/array.h"
#include "../../select/select.h"

/* program->array to program->root. */
static inline void pipeline_lower(bb_program *program) {
  bb_array_fold(program->array);
  bb_array_structure(program->array);
  bb_array_split_strides(program->array);
  bb_array_factor(program->array);
  bb_array_canonicalise(program->array);
  bb_array_lower(program->array);
}

/* program->root to program->step. */
static inline void pipeline_choose(bb_program *program) {
  bb_partition(program, 0, NULL);
  bb_choose(program, NULL);
}

static inline void pipeline(bb_program *program) {
  pipeline_lower(program);
  bb_array_drop(program);
  pipeline_choose(program);
}

#endif
