/* fuzz.h - what the fuzz targets share: one input, one context with a limit on its memory.
 */
#ifndef BB_TESTS_FUZZ_H
#define BB_TESTS_FUZZ_H

#include "../../graph/program.h"

#include <stdlib.h>

typedef struct fuzz_input {
  const void *bytes;
  size_t length;
} fuzz_input;

/* A quarter of a gigabyte: an input that asks for more must be refused, not served. */
static const size_t fuzz_limit = (size_t)256 << 20;

static inline void *fuzz_resize(void *user, void *pointer, size_t old_size, size_t new_size) {
  size_t *used = user;
  if (new_size > old_size && new_size - old_size > fuzz_limit - *used) return NULL;
  void *moved = NULL;
  if (new_size == 0)
    free(pointer);
  else if (!(moved = realloc(pointer, new_size)))
    return NULL;
  *used = *used - old_size + new_size;
  return moved;
}

/* Runs body on the input; traps when memory is left behind or a law of the library broke. */
static inline void fuzz_run(bb_body *body, const uint8_t *bytes, size_t length) {
  size_t used = 0;
  bb_context_options options = {.version = BB_VERSION, .allocator = {fuzz_resize, &used}};
  options.verify = true;
  bb_context *ctx;
  if (bb_context_create(&options, &ctx) != BB_OK) return;
  fuzz_input input = {bytes, length};
  bb_status status = bb_protect(ctx, body, &input);
  bool told = status == BB_OK || bb_context_message(ctx)[0] != 0;
  bb_context_destroy(ctx);
  if (status == BB_ERROR_INTERNAL || !told || used != 0) __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

#endif
