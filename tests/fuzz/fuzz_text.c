/* fuzz_text.c - the reader of the text form.  What parses and is legal must print and parse again
 * to the same text.
 */
#include "fuzz.h"

#include "../../graph/text.h"
#include "../../graph/verify.h"

#include <string.h>

static bb_program *parse(bb_context *ctx, const char *text, size_t length) {
  bb_program *program = bb_text_parse(ctx, "/nowhere/input", text, length);
  bb_program_defer(program);
  return program;
}

static void body(bb_context *ctx, void *argument) {
  const fuzz_input *input = argument;
  bb_program *first = parse(ctx, input->bytes, input->length);
  bb_buffer a = {.arena = first->arena}, b = {.arena = first->arena};
  if (bb_verify_program(first, first->arena)) return;
  bb_text_print(&a, first, NULL);
  bb_program *second = parse(ctx, a.data, a.length);
  bb_text_print(&b, second, NULL);
  if (a.length != b.length || memcmp(a.data, b.data, a.length) != 0) __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
  fuzz_run(body, bytes, length);
  return 0;
}
