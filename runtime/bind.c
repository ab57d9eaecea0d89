/* bind.c - binds arrays of a file to the inputs of a program, and finds the symbols' values.
 */
#include "bind.h"
#include "model/solve.h"
#include "../graph/text_name.h"

#include <math.h>
#include <string.h>

/* --- messages --- */

static const char *extents_text(const bb_program *program, bb_arena *arena, const bb_tensor *t) {
  bb_buffer text = {.arena = arena};
  bb_put(&text, "[");
  for (uint32_t i = 0; i < t->rank; i++) {
    const bb_extent *extent = t->shape[i];
    bb_put(&text, i ? ", " : "");
    if (extent->factor != 1 || extent->count == 0) bb_put(&text, "%lld", (long long)extent->factor);
    for (uint32_t k = 0; k < extent->count; k++) {
      bb_put(&text, k || extent->factor != 1 ? "*" : "");
      bb_put_extent_name(&text, program->symbol[extent->symbol[k]]);
    }
  }
  bb_put(&text, "]");
  return text.data;
}

/* --- symbols --- */

typedef struct binder {
  const bb_program *program;
  bb_context *ctx;
  bb_arena *arena;
  const bb_npz_array **array; /* by tensor; NULL: no input */
  uint32_t symbols;
  int64_t *symbol;
} binder;

static _Noreturn void refuse_shape(const binder *b, uint32_t tensor) {
  const bb_tensor *t = &b->program->tensor[tensor];
  const bb_npz_array *array = b->array[tensor];
  bb_fail(b->ctx, BB_ERROR_INPUT, "input \"%s\": shape %s does not fit %s%s", t->name,
          bb_shape_text(b->arena, array->rank, array->shape), extents_text(b->program, b->arena, t),
          bb_known_symbols(b->program, b->symbol, b->symbols, b->arena));
}

static void solve_all(binder *b) {
  bool progress = true;
  while (progress) {
    progress = false;
    for (uint32_t t = 0; t < b->program->tensors; t++) {
      if (!b->array[t]) continue;
      const bb_tensor *tensor = &b->program->tensor[t];
      if (tensor->rank != b->array[t]->rank) refuse_shape(b, t);
      for (uint32_t i = 0; i < tensor->rank; i++) {
        bb_solved is = bb_extent_solve(tensor->shape[i], b->array[t]->shape[i], b->symbol);
        if (is == BB_SOLVED_WRONG) refuse_shape(b, t);
        progress |= is == BB_SOLVED_FOUND;
      }
    }
  }
}

/* --- data --- */

static _Noreturn void refuse_absence(const binder *b, const bb_npz *npz, uint32_t tensor) {
  const bb_tensor *t = &b->program->tensor[tensor];
  bb_buffer names = {.arena = b->arena};
  for (uint32_t i = 0; i < npz->count && i < 20; i++)
    bb_put(&names, "%s\"%s\"", i ? ", " : "", npz->array[i].name);
  if (npz->count > 20) bb_put(&names, ", ...");
  bb_fail(b->ctx, BB_ERROR_INPUT, "input \"%s\": no array of this name (there are: %s)", t->name,
          npz->count ? names.data : "none");
}

static void check_kind(const binder *b, const bb_tensor *t, const bb_npz_array *array) {
  char kind = bb_npy_kind(array->type);
  bool fits = bb_dtype_is_float(t->dtype) ? kind == 'f'
              : t->dtype == BB_BOOL       ? kind == 'b'
                                          : kind == 'i' || kind == 'u';
  if (!fits)
    bb_fail(b->ctx, BB_ERROR_INPUT, "input \"%s\": elements are %s, the program wants %s", t->name,
            bb_npy_name(array->type), bb_dtype_name(t->dtype));
}

/* What does not fit the input's dtype is refused; floats that it does not hold are rounded, which is told. */
static bb_interp_tensor load(const binder *b, const bb_tensor *t, const bb_npz_array *array) {
  bb_interp_tensor held = {BB_NEW(b->arena, double, array->count), array->count};
  bool real = bb_dtype_is_float(t->dtype);
  size_t rounded = 0;
  bb_npz_doubles(array, held.data);
  for (size_t i = 0; i < held.count; i++) {
    double value = bb_round_to(t->dtype, held.data[i]);
    if (t->dtype == BB_I64 && isnan(held.data[i]))
      bb_fail(b->ctx, BB_ERROR_INPUT,
              "input \"%s\": element %zu is an integer beyond 2^53 that no double holds", t->name,
              i);
    if (real ? isinf(value) && !isinf(held.data[i]) : value != held.data[i])
      bb_fail(b->ctx, BB_ERROR_INPUT, "input \"%s\": element %zu, %.*g, is too large for %s",
              t->name, i, real ? 9 : 17, held.data[i], bb_dtype_name(t->dtype));
    rounded += value != held.data[i] && !isnan(value);
    held.data[i] = value;
  }
  if (rounded)
    bb_log(b->ctx, BB_LOG_WARNING,
           "input \"%s\": elements are %s, rounded to %s: %zu of %zu changed", t->name,
           bb_npy_name(array->type), bb_dtype_name(t->dtype), rounded, held.count);
  return held;
}

static bb_interp_tensor load_constant(const binder *b, const bb_tensor *t) {
  size_t count = t->bytes / bb_dtype_bytes(t->dtype);
  bb_interp_tensor held = {BB_NEW(b->arena, double, count), count};
  bb_interp_load(t->dtype, t->data, count, held.data);
  return held;
}

/* The extents that the shapes of inputs tell, and what follows from them. */
static binder solve(bb_program *program, const bb_npz *npz, const int64_t *preset,
                    bb_arena *arena) {
  binder b = {.program = program, .ctx = program->ctx, .arena = arena};
  b.array = BB_NEW(arena, const bb_npz_array *, program->tensors);
  b.symbols = program->symbols;
  b.symbol = BB_NEW(arena, int64_t, program->symbols);
  for (uint32_t i = 0; i < program->symbols; i++) b.symbol[i] = preset ? preset[i] : -1;
  for (uint32_t t = 0; t < program->tensors; t++)
    if (program->tensor[t].role == BB_TENSOR_INPUT)
      b.array[t] = bb_npz_find(npz, program->tensor[t].name);
  solve_all(&b);
  bb_derive_symbols(program, b.symbols, b.symbol, arena);
  return b;
}

const int64_t *bb_bind_symbols(bb_program *program, const bb_npz *npz, bb_arena *arena) {
  return solve(program, npz, NULL, arena).symbol;
}

/* As one for an initializer that is among a model's inputs: what the model has stays.  Outputs may stand there, to be held
 * against. */
static void tell_unread(const binder *b, const bb_npz *npz) {
  for (uint32_t i = 0; i < npz->count; i++) {
    bool read = false;
    for (uint32_t t = 0; t < b->program->tensors && !read; t++)
      read = b->array[t] == &npz->array[i] ||
             (b->program->tensor[t].role == BB_TENSOR_OUTPUT &&
              strcmp(b->program->tensor[t].name, npz->array[i].name) == 0);
    if (!read)
      bb_log(b->ctx, BB_LOG_WARNING, "array \"%s\": nothing of the model reads it",
             npz->array[i].name);
  }
}

void bb_bind_inputs(bb_program *program, const bb_npz *npz, const int64_t *preset, bb_arena *arena,
                    bb_binding *binding) {
  binder b = solve(program, npz, preset, arena);
  for (uint32_t t = 0; t < program->tensors; t++)
    if (program->tensor[t].role == BB_TENSOR_INPUT && !b.array[t]) refuse_absence(&b, npz, t);
  tell_unread(&b, npz);
  bb_interp_tensor *tensor = BB_NEW(arena, bb_interp_tensor, program->tensors);
  for (uint32_t t = 0; t < program->tensors; t++) {
    const bb_tensor *of = &program->tensor[t];
    if (b.array[t]) {
      check_kind(&b, of, b.array[t]);
      tensor[t] = load(&b, of, b.array[t]);
    } else if (of->role == BB_TENSOR_CONSTANT && of->data) {
      tensor[t] = load_constant(&b, of);
    }
  }
  *binding = (bb_binding){.symbol = b.symbol, .tensor = tensor};
}
