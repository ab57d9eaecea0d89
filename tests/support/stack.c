/* stack.c - the stack of attention and feed-forward blocks, operator by operator as exporters write
 * it: normalisation, projections, heads by Reshape and Transpose, rotary halves by Slice and
 * Concat, an additive causal mask, a gated or plain feed-forward net, residual sums.
 */
#include "stack.h"

#include <math.h>
#include <stdio.h>

enum { ROWS = 24, WIDTH = 32, HEAD = 8 };

typedef struct builder {
  model m;
  uint64_t random;
  const char *mask, *cosine, *sine;       /* shared by all blocks */
  const char *low, *middle, *high, *axis; /* slices of a head */
} builder;

static const char *weights(builder *b, int64_t rows, int64_t columns) {
  int64_t shape[2] = {rows, columns};
  float *data = BB_NEW(b->m.arena, float, (size_t)(rows * columns));
  for (int64_t i = 0; i < rows * columns; i++) {
    b->random = b->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    data[i] = ((float)(b->random >> 40) / (1 << 23) - 1) * 0.125f;
  }
  return rows == 1 ? model_floats(&b->m, 1, shape + 1, data) : model_floats(&b->m, 2, shape, data);
}

static const char *scalar(builder *b, float value) {
  return model_floats(&b->m, 0, NULL, &value);
}

static const char *op(builder *b, const char *name, const char *x, const char *y) {
  return model_op(&b->m, name, NULL, x, y, NULL);
}

static const char *reshape(builder *b, const char *x, uint32_t rank, const int64_t *shape) {
  return op(b, "Reshape", x, model_ints(&b->m, rank, shape));
}

static void shared_tables(builder *b) {
  float mask[ROWS * ROWS], cosine[ROWS * HEAD / 2], sine[ROWS * HEAD / 2];
  for (int i = 0; i < ROWS; i++)
    for (int j = 0; j < ROWS; j++) mask[i * ROWS + j] = j > i ? -INFINITY : 0;
  for (int i = 0; i < ROWS; i++)
    for (int j = 0; j < HEAD / 2; j++) {
      double angle = i * pow(10000, -2.0 * j / HEAD);
      cosine[i * HEAD / 2 + j] = (float)cos(angle);
      sine[i * HEAD / 2 + j] = (float)sin(angle);
    }
  b->mask = model_floats(&b->m, 2, (int64_t[]){ROWS, ROWS}, mask);
  b->cosine = model_floats(&b->m, 2, (int64_t[]){ROWS, HEAD / 2}, cosine);
  b->sine = model_floats(&b->m, 2, (int64_t[]){ROWS, HEAD / 2}, sine);
  b->low = model_ints(&b->m, 1, (int64_t[]){0});
  b->middle = model_ints(&b->m, 1, (int64_t[]){HEAD / 2});
  b->high = model_ints(&b->m, 1, (int64_t[]){HEAD});
  b->axis = model_ints(&b->m, 1, (int64_t[]){3});
}

static const char *slice(builder *b, const char *x, const char *start, const char *end) {
  const char *out = model_name(&b->m);
  model_add(&b->m,
            &(model_node){
                .op = "Slice", .nin = 4, .in = {x, start, end, b->axis}, .nout = 1, .out = {out}});
  return out;
}

static const char *rotated(builder *b, const char *x) {
  const char *left = slice(b, x, b->low, b->middle), *right = slice(b, x, b->middle, b->high);
  const char *real = op(b, "Sub", op(b, "Mul", left, b->cosine), op(b, "Mul", right, b->sine));
  const char *imaginary = op(b, "Add", op(b, "Mul", left, b->sine), op(b, "Mul", right, b->cosine));
  return model_op(&b->m, "Concat", "axis=-1", real, imaginary, NULL);
}

/* [1, ROWS, WIDTH] to [1, heads, ROWS, HEAD] */
static const char *heads_of(builder *b, const char *x, int64_t heads) {
  const char *projected = op(b, "MatMul", x, weights(b, WIDTH, heads * HEAD));
  const char *split = reshape(b, projected, 4, (int64_t[]){1, ROWS, heads, HEAD});
  return model_op(&b->m, "Transpose", "perm=0,2,1,3", split, NULL, NULL);
}

static const char *attention(builder *b, const char *x, uint32_t block) {
  int64_t heads = 1 + block % 4;
  const char *q = rotated(b, heads_of(b, x, heads)), *k = rotated(b, heads_of(b, x, heads));
  const char *v = heads_of(b, x, heads);
  const char *kt = model_op(&b->m, "Transpose", "perm=0,1,3,2", k, NULL, NULL);
  const char *scores = op(b, "MatMul", q, kt);
  scores = op(b, "Mul", scores, scalar(b, 0.25f + 0.001f * (float)block));
  scores = op(b, "Add", scores, b->mask);
  scores = model_op(&b->m, "Softmax", "axis=-1", scores, NULL, NULL);
  const char *mixed =
      model_op(&b->m, "Transpose", "perm=0,2,1,3", op(b, "MatMul", scores, v), NULL, NULL);
  const char *joined = reshape(b, mixed, 3, (int64_t[]){1, ROWS, heads * HEAD});
  return op(b, "MatMul", joined, weights(b, heads * HEAD, WIDTH));
}

static const char *feed_forward(builder *b, const char *x, uint32_t block) {
  int64_t hidden = 40 + 8 * (block % 7);
  const char *up = op(b, "MatMul", x, weights(b, WIDTH, hidden));
  if (block % 2) {
    const char *gate = op(b, "MatMul", x, weights(b, WIDTH, hidden));
    up = op(b, "Mul", op(b, "Mul", gate, op(b, "Sigmoid", gate, NULL)), up);
  } else {
    up = op(b, "Relu", op(b, "Add", up, weights(b, 1, hidden)), NULL);
  }
  return op(b, "MatMul", up, weights(b, hidden, WIDTH));
}

static const char *normalised(builder *b, const char *x, uint32_t block) {
  char attributes[64];
  snprintf(attributes, sizeof attributes, "axis=-1 epsilon=%gf", 1e-5 * (1 + block % 5));
  return model_op(&b->m, "LayerNormalization", attributes, x, weights(b, 1, WIDTH),
                  weights(b, 1, WIDTH));
}

bb_buffer stack_model(bb_arena *arena, uint32_t blocks) {
  builder b = {.m = model_start(arena), .random = 1};
  model_input(&b.m, "x", MODEL_FLOAT, "1,24,32");
  shared_tables(&b);
  const char *x = "x";
  for (uint32_t i = 0; i < blocks; i++) {
    x = op(&b, "Add", x, attention(&b, normalised(&b, x, 2 * i), i));
    x = op(&b, "Add", x, feed_forward(&b, normalised(&b, x, 2 * i + 1), i));
  }
  model_add(&b.m, &(model_node){.op = "Identity", .nin = 1, .in = {x}, .nout = 1, .out = {"y"}});
  model_output(&b.m, "y", MODEL_FLOAT, "1,24,32");
  return model_finish(&b.m, 17);
}
