/* damage_test.c - a model cut short at every byte is refused; one with bytes changed is refused or
 * read, and either way the library returns, says why, and gives all memory back.
 *
 * usage: damage_test MODEL.onnx
 */
#include "../../graph/onnx/onnx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MUTATIONS = 20000, LIMIT = 1 << 16 };

/* Everything that the library holds. */
static size_t held;

static void *counted(void *user, void *pointer, size_t old_size, size_t new_size) {
  (void)user;
  void *moved = NULL;
  if (new_size) {
    moved = realloc(pointer, new_size);
    if (!moved) return NULL;
  } else {
    free(pointer);
  }
  held += new_size - old_size;
  return moved;
}

typedef struct bytes {
  uint8_t *data;
  size_t length;
} bytes;

static void read_model(bb_context *ctx, void *argument) {
  const bytes *model = argument;
  bb_program *program = bb_program_create(ctx, "damaged");
  bb_program_defer(program);
  bb_onnx_read_bytes(program, model->data, model->length, NULL);
}

/* The status of reading; exits when the library breaks its word. */
static bb_status attempt(const bytes *model) {
  bb_context_options options = {.version = BB_VERSION, .allocator = {.resize = counted}};
  bb_context *ctx;
  if (bb_context_create(&options, &ctx) != BB_OK) exit(2);
  bb_status status = bb_protect(ctx, read_model, (void *)model);
  bool refused = status == BB_ERROR_INPUT || status == BB_ERROR_UNSUPPORTED;
  if (status != BB_OK && (!refused || !bb_context_message(ctx)[0])) {
    printf("status %s: \"%s\"\n", bb_status_text(status), bb_context_message(ctx));
    exit(1);
  }
  bb_context_destroy(ctx);
  if (held) {
    printf("%zu bytes are still held\n", held);
    exit(1);
  }
  return status;
}

static uint64_t next(uint64_t *state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

int main(int argc, char **argv) {
  static uint8_t original[LIMIT], copy[LIMIT];
  FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
  if (!file) return 2;
  size_t length = fread(original, 1, sizeof original, file);
  fclose(file);
  bytes model = {original, length};
  if (attempt(&model) != BB_OK) {
    printf("the model itself is refused\n");
    return 1;
  }
  uint32_t accepted = 0;
  for (model.length = 0; model.length < length; model.length++) {
    /* A copy of the exact size, so that a read beyond it is seen by sanitizers. */
    model.data = malloc(model.length ? model.length : 1);
    memcpy(model.data, original, model.length);
    accepted += attempt(&model) == BB_OK;
    free(model.data);
  }
  printf("%u of %zu prefixes read as models\n", accepted, length);
  uint64_t state = 88172645463325252u;
  uint32_t read = 0;
  model = (bytes){copy, length};
  for (uint32_t i = 0; i < MUTATIONS; i++) {
    memcpy(copy, original, length);
    for (uint64_t k = 1 + next(&state) % 3; k > 0; k--)
      copy[next(&state) % length] = (uint8_t)next(&state);
    read += attempt(&model) == BB_OK;
  }
  printf("%u of %d changed models are read\n", read, MUTATIONS);
  return accepted != 0 || read == 0 || read == MUTATIONS;
}
