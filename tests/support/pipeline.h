/* pipeline.h - every stage from an array program to chosen snapshots, for tests that look between
 * them, or time or fail them as a whole.
 */
#ifndef BB_TESTS_PIPELINE_H
#define BB_TESTS_PIPELINE_H

#include "../../graph/array/array.h"
#include "../../graph/onnx/onnx.h"
#include "../../graph/text.h"
#include "../../select/select.h"

#include <string.h>

/* A model, or a program as text; it dies with the enclosing bb_protect(). */
static inline bb_program *pipeline_read(bb_context *ctx, const char *path) {
  size_t length = strlen(path);
  bb_program *program = bb_program_create(ctx, path);
  bb_program_defer(program);
  if (length < 4 || strcmp(path + length - 3, ".bb") != 0) {
    bb_onnx_read(program, path);
    return program;
  }
  uint64_t size;
  const void *text = bb_program_map_whole(program, path, &size);
  bb_program *parsed = bb_text_parse(ctx, path, text, size);
  bb_program_defer(parsed);
  return parsed;
}

/* program->array to program->root. */
static inline void pipeline_lower(bb_program *program) {
  bb_array_fold(program->array);
  bb_array_structure(program->array);
  bb_array_split_strides(program->array);
  bb_array_factor(program->array);
  bb_array_canonicalise(program->array);
  bb_array_lower(program->array, (bb_units){true, true});
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
