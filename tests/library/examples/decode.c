/* decode.c - builds a model in memory, compiles it, and runs it step by step on a cache that grows in place.
 *
 *   cc decode.c $(pkg-config --cflags --libs blockbuster) -lm -o decode && ./decode
 *
 * One head of a decoder: each step appends a row to the caches of keys and values and weighs all rows
 * that are there.  Keys and values lie in buffers with room for all steps; a step's caches are both
 * input and output, in the same place, so that nothing is moved.  How many rows are valid is a number
 * in an input, so that one compiled model serves every step.
 */
#include <blockbuster.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 48, WIDTH = 16, STEPS = 40 };

/* at: the row that is written, as a number in a tensor, so that no shape depends on it. */
static const char program_text[] =
    "blockbuster 1\n"
    "program decode\n"
    "input at : i64[1,1]\n"
    "input q : f32[1,16]\n"
    "input k : f32[1,16]\n"
    "input v : f32[16,1]\n"
    "input keys : f32[48,16]\n"
    "input values : f32[16,48]\n" /* transposed: a product contracts last axes */
    "output new_keys = elementwise select(coord(axis 1)==at,k,keys)\n"
    "output new_values = elementwise select(coord(axis 0)==at,v,values)\n"
    "scores = contract(q[m,d], new_keys[n,d] -> [m,n])\n"
    "masked = elementwise select(coord(axis 0)<=at,scores*0.25,-inf)\n"
    "top = reduce max(masked, axis=-1, keep)\n"
    "weights = elementwise exp(masked-top)\n"
    "sum = reduce sum(weights, axis=-1, keep)\n"
    "shares = elementwise weights/sum\n"
    "output y = contract(shares[m,n], new_values[l,n] -> [m,l])\n";

static float drawn(uint32_t i) {
  return (float)((i * 2654435761u >> 8) % 1000) / 500 - 1;
}

typedef struct decoder {
  bb_context *context;
  bb_model *model;
  bb_session *session;
  int64_t at;
  float q[WIDTH], k[WIDTH], v[WIDTH], y[WIDTH];
  float keys[ROOM * WIDTH], values[WIDTH * ROOM];
} decoder;

static int report(const decoder *d, const char *what) {
  fprintf(stderr, "%s: %s\n", what, bb_context_message(d->context));
  return 1;
}

static bb_status bind(decoder *d, bb_side side, const char *name, bb_dtype dtype, int64_t rows,
                      int64_t cols, void *data) {
  uint32_t index;
  if (!bb_model_find_tensor(d->model, side, name, &index)) return BB_ERROR_ARGUMENT;
  bb_tensor_view view = {.dtype = dtype, .rank = 2, .shape = (int64_t[]){rows, cols}, .data = data};
  return bb_session_bind(d->session, side, index, &view);
}

static bb_status bind_all(decoder *d) {
  bb_status status = bind(d, BB_INPUT, "at", BB_I64, 1, 1, &d->at);
  if (!status) status = bind(d, BB_INPUT, "q", BB_F32, 1, WIDTH, d->q);
  if (!status) status = bind(d, BB_INPUT, "k", BB_F32, 1, WIDTH, d->k);
  if (!status) status = bind(d, BB_INPUT, "v", BB_F32, WIDTH, 1, d->v);
  if (!status) status = bind(d, BB_OUTPUT, "y", BB_F32, 1, WIDTH, d->y);
  /* In place: the same memory on both sides. */
  if (!status) status = bind(d, BB_INPUT, "keys", BB_F32, ROOM, WIDTH, d->keys);
  if (!status) status = bind(d, BB_OUTPUT, "new_keys", BB_F32, ROOM, WIDTH, d->keys);
  if (!status) status = bind(d, BB_INPUT, "values", BB_F32, WIDTH, ROOM, d->values);
  if (!status) status = bind(d, BB_OUTPUT, "new_values", BB_F32, WIDTH, ROOM, d->values);
  return status;
}

/* What a step should give, by the definition; false: it did not. */
static int check(const decoder *d) {
  double weight[ROOM], sum = 0;
  for (int64_t r = 0; r <= d->at; r++) {
    double dot = 0;
    for (int c = 0; c < WIDTH; c++) dot += (double)d->q[c] * drawn((uint32_t)(r * 100 + c + 16));
    weight[r] = exp(dot / 4);
    sum += weight[r];
  }
  for (int c = 0; c < WIDTH; c++) {
    double want = 0;
    for (int64_t r = 0; r <= d->at; r++)
      want += weight[r] / sum * drawn((uint32_t)(r * 100 + c + 32));
    if (!(fabs(d->y[c] - want) < 1e-5)) return 0;
  }
  return 1;
}

static int decode(decoder *d) {
  for (d->at = 0; d->at < STEPS; d->at++) {
    for (uint32_t c = 0; c < WIDTH; c++) {
      uint32_t i = (uint32_t)d->at * 100 + c;
      d->q[c] = drawn(i);
      d->k[c] = drawn(i + 16);
      d->v[c] = drawn(i + 32);
    }
    if (bb_session_run(d->session, NULL) != BB_OK) return report(d, "run");
    if (!check(d)) {
      fprintf(stderr, "step %lld is wrong\n", (long long)d->at);
      return 1;
    }
  }
  printf("%d steps, the cache in place\n", STEPS);
  return 0;
}

int main(void) {
  static decoder d;
  bb_program *program = NULL;
  int code = 0;
  if (bb_context_create(NULL, &d.context) != BB_OK) return 1;
  if (bb_program_parse(d.context, "decode.bb", program_text, strlen(program_text), &program) !=
      BB_OK)
    code = report(&d, "read");
  else if (bb_program_compile(program, NULL, &d.model) != BB_OK)
    code = report(&d, "compile");
  bb_program_destroy(program); /* the model needs it no more */
  if (!code && bb_session_create(d.context, d.model, NULL, &d.session) != BB_OK)
    code = report(&d, "session");
  if (!code && bind_all(&d) != BB_OK) code = report(&d, "bind");
  if (!code) code = decode(&d);
  bb_session_destroy(d.session);
  bb_model_release(d.model);
  bb_context_destroy(d.context);
  return code;
}
