/* fuzz_tile.c - the reader of tile programs.  What it accepts must print and parse again to an equal
 * program, and source comes of it or a message.
 */
#include "fuzz.h"

#include "../../lower/emit.h"
#include "../../lower/tile.h"

static bb_tile_program *parse(bb_context *ctx, const char *text, size_t length) {
  bb_tile_program *program = bb_tile_parse(ctx, "/nowhere/input", text, length);
  bb_program_defer(program->home);
  return program;
}

static void body(bb_context *ctx, void *argument) {
  const fuzz_input *input = argument;
  bb_tile_program *first = parse(ctx, input->bytes, input->length);
  bb_arena *arena = bb_scratch(ctx);
  bb_buffer text = {.arena = arena}, source = {.arena = arena}, launch = {.arena = arena};
  bb_tile_print(&text, first);
  bb_tile_program *second = parse(ctx, text.data, text.length);
  if (!bb_tile_equal(first, second)) __builtin_trap();
  bb_emit_sm90(first, &source, &launch, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
  fuzz_run(body, bytes, length);
  return 0;
}
