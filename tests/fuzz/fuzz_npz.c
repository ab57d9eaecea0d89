/* fuzz_npz.c - the reader of arrays in files: archives of arrays, and single ones. */
#include "fuzz.h"

#include "../../runtime/npz.h"

static volatile double sink;

static void body(bb_context *ctx, void *argument) {
  const fuzz_input *input = argument;
  bb_arena *arena = bb_scratch(ctx);
  bb_npz *npz = bb_npz_parse(arena, "input", input->bytes, input->length);
  for (uint32_t i = 0; i < npz->count; i++) {
    const bb_npz_array *array = &npz->array[i];
    size_t count = 1;
    for (uint32_t k = 0; k < array->rank; k++) count *= (size_t)array->shape[k];
    if (count != array->count || count * bb_npy_bytes(array->type) != array->bytes)
      __builtin_trap();
    double *values = BB_NEW(arena, double, array->count + 1);
    bb_npz_doubles(array, values);
    for (size_t k = 0; k < array->count; k++) sink = values[k];
    if (!bb_npz_find(npz, array->name)) __builtin_trap();
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
  fuzz_run(body, bytes, length);
  return 0;
}
