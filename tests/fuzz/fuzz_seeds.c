/* fuzz_seeds.c - writes small inputs for a fuzzer to start from: random block programs as text, and
 * ONNX models of one operator each.
 *
 * usage: fuzz_seeds text|onnx|npz DIRECTORY
 */
#include "../random/random.h"
#include "../support/stack.h"

#include "../../graph/text.h"

#include <stdio.h>
#include <string.h>

typedef struct job {
  const char *reader, *directory;
} job;

static void save(const job *j, const char *name, const bb_buffer *data) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", j->directory, name);
  FILE *file = fopen(path, "wb");
  if (!file) return;
  fwrite(data->data, 1, data->length, file);
  fclose(file);
}

static void save_texts(bb_context *ctx, const job *j) {
  for (uint64_t seed = 0; seed < 40; seed++) {
    random_case made = random_case_make(ctx, seed, 1 + seed % 4);
    bb_buffer text = {.arena = made.program->arena};
    bb_text_print(&text, made.program, NULL);
    char name[32];
    snprintf(name, sizeof name, "random-%u", (uint32_t)seed);
    save(j, name, &text);
  }
}

/* Operators of x[S,4], y[S,4] and small constant vectors. */
static const struct {
  const char *op, *attributes, *operands; /* x y, c: floats of 4, i: the i64 vector 1, 4 */
} operators[] = {
    {"Add", NULL, "xy"},
    {"Softmax", "axis=-1", "x"},
    {"MatMul", NULL, "xw"},
    {"Gemm", "alpha=2f transB=1", "xwc"},
    {"LayerNormalization", "axis=-1 epsilon=1e-05f", "xcc"},
    {"Reshape", NULL, "xi"},
    {"Expand", NULL, "xi"},
    {"Transpose", "perm=1,0", "x"},
    {"Concat", "axis=1", "xyx"},
    {"Gather", "axis=0", "xi"},
    {"ReduceSum", "keepdims=0", "x"},
    {"ReduceMax", "axes=1, keepdims=1", "x"},
    {"ArgMax", "axis=1", "x"},
    {"Cast", "to=10", "x"},
    {"Shape", NULL, "x"},
    {"Unsqueeze", NULL, "xi"},
    {"Where", NULL, "bxy"},
    {"Gelu", NULL, "x"},
    {"Trilu", "upper=0", "w"},
    {"CumSum", NULL, "xs"},
    {"ConstantOfShape", NULL, "i"},
    {"Flatten", "axis=1", "x"},
    {"Clip", NULL, "xff"},
};

static const char *operand(model *m, char which) {
  static const float floats[16] = {1, 0.5f, -2, 3, 0, 1};
  switch (which) {
  case 'x': return "x";
  case 'y': return "y";
  case 'b': return "b";
  case 'w': return model_floats(m, 2, (int64_t[]){4, 4}, floats);
  case 'c': return model_floats(m, 1, (int64_t[]){4}, floats);
  case 'f': return model_floats(m, 0, NULL, floats);
  case 's': return model_ints(m, 1, (int64_t[]){1});
  default: return model_ints(m, 2, (int64_t[]){1, 4});
  }
}

static void save_models(bb_context *ctx, const job *j) {
  for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
    model m = model_start(bb_scratch(ctx));
    model_input(&m, "x", MODEL_FLOAT, "S,4");
    model_input(&m, "y", MODEL_FLOAT, "S,4");
    model_input(&m, "b", MODEL_BOOL, "S,4");
    const char *in[3] = {NULL, NULL, NULL};
    for (size_t k = 0; k < strlen(operators[i].operands); k++)
      in[k] = operand(&m, operators[i].operands[k]);
    const char *out = model_op(&m, operators[i].op, operators[i].attributes, in[0], in[1], in[2]);
    model_output(&m, out, MODEL_FLOAT, "");
    bb_buffer bytes = model_finish(&m, 13 + (int64_t)(i % 10));
    save(j, operators[i].op, &bytes);
  }
  bb_buffer stack = stack_model(bb_scratch(ctx), 1);
  save(j, "stack", &stack);
}

static void body(bb_context *ctx, void *argument) {
  const job *j = argument;
  if (strcmp(j->reader, "text") == 0) save_texts(ctx, j);
  if (strcmp(j->reader, "onnx") == 0) save_models(ctx, j);
}

int main(int argc, char **argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: fuzz_seeds text|onnx|npz DIRECTORY\n");
    return 2;
  }
  bb_context *ctx;
  if (bb_context_create(NULL, &ctx) != BB_OK) return 1;
  job j = {argv[1], argv[2]};
  bb_status status = bb_protect(ctx, body, &j);
  if (status != BB_OK) fprintf(stderr, "%s\n", bb_context_message(ctx));
  bb_context_destroy(ctx);
  return status != BB_OK;
}
