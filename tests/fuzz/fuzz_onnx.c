/* fuzz_onnx.c - the reader of ONNX models, and the passes over what it accepts. */
#include "fuzz.h"

#include "../../graph/onnx/onnx.h"
#include "../support/pipeline.h"

static void body(bb_context *ctx, void *argument) {
  const fuzz_input *input = argument;
  bb_program *program = bb_program_create(ctx, "input");
  bb_program_defer(program);
  bb_onnx_read_bytes(program, input->bytes, input->length, NULL);
  pipeline(program);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
  fuzz_run(body, bytes, length);
  return 0;
}
