/* decode.c - builds a model in memory, compiles it, and decodes on caches that grow in place.
 *
 *   cc decode.c $(pkg-config --cflags --libs blockbuster) -lm -o decode && ./decode
 *
 * One head of a decoder: a run appends rows to the caches of keys and values (a prompt of several, then one at a
 * time) and weighs all rows that are there.  Keys and values lie in buffers with room for all steps; each is
 * bound once as a cache, input and output in one, so that nothing is moved.  How many rows there are is an
 * extent of run time, so that one compiled model serves every step; memory is reserved for the last.
 */
#include <blockbuster.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 48, WIDTH = 16, PROMPT = 8, STEPS = 40 };

/* P rows are there, S are new: new ones see those before them and themselves. */
#define GROWN "\"symbol(P)+symbol(S)\""
#define APPEND(past, new)                                                                          \
  "misc \"Concat\" 13(" past ", " new ") {axis=0} of (f32[P,16], f32[S,16]) -> (f32[" GROWN        \
                                      ",16]) : f32[" GROWN ",16]\n"
static const char program_text[] =
    "blockbuster 1\n"
    "program decode\n"
    "symbol P, S, " GROWN "\n"
    "input q : f32[S,16]\n"
    "input k : f32[S,16]\n"
    "input v : f32[S,16]\n"
    "input keys : f32[P,16]\n"
    "input values : f32[P,16]\n"
    "output new_keys = " APPEND("keys", "k") "output new_values = " APPEND(
        "values", "v") "scores = contract(q[s,d], new_keys[t,d] -> [s,t])\n"
                       "masked = elementwise select(coord(axis 0)<=coord(axis "
                       "1)+symbol(P),scores*0.25,-inf)\n"
                       "top = reduce max(masked, axis=-1, keep)\n"
                       "weights = elementwise exp(masked-top)\n"
                       "sum = reduce sum(weights, axis=-1, keep)\n"
                       "shares = elementwise weights/sum\n"
                       "output y = contract(shares[s,t], new_values[t,d] -> [s,d])\n";

static float drawn(uint32_t i) {
  return (float)((i * 2654435761u >> 8) % 1000) / 500 - 1;
}

typedef struct decoder {
  bb_context *context;
  bb_model *model;
  bb_session *session;
  float q[PROMPT * WIDTH], k[PROMPT * WIDTH], v[PROMPT * WIDTH], y[PROMPT * WIDTH];
  float cache[2][ROOM * WIDTH];
} decoder;

static int report(const decoder *d, const char *what) {
  fprintf(stderr, "%s: %s\n", what, bb_context_message(d->context));
  return 1;
}

static bb_status bind(decoder *d, bb_side side, const char *name, int64_t rows, void *data) {
  uint32_t index;
  if (!bb_model_find_tensor(d->model, side, name, &index)) return BB_ERROR_ARGUMENT;
  bb_tensor_view view = {
      .dtype = BB_F32, .rank = 2, .shape = (int64_t[]){rows, WIDTH}, .data = data};
  return bb_session_bind(d->session, side, index, &view);
}

/* Once: they stay where they are. */
static bb_status bind_caches(decoder *d) {
  bb_status status = BB_OK;
  for (uint32_t c = 0; c < 2 && !status; c++) {
    bb_tensor_view room = {
        .dtype = BB_F32, .rank = 2, .shape = (int64_t[]){ROOM, WIDTH}, .data = d->cache[c]};
    status = bb_session_bind_cache(d->session, c, &room, 0);
  }
  return status;
}

/* What a run over `rows` new rows works on, `used` being there already. */
static bb_status bind_rows(decoder *d, int64_t used, int64_t rows) {
  bb_status status = bind(d, BB_INPUT, "q", rows, d->q);
  if (!status) status = bind(d, BB_INPUT, "k", rows, d->k);
  if (!status) status = bind(d, BB_INPUT, "v", rows, d->v);
  if (!status) status = bind(d, BB_OUTPUT, "y", rows, d->y);
  return status ? status : bb_session_set_caches(d->session, used);
}

/* Memory for the longest run, so that none of those that follow allocates. */
static bb_status reserve(decoder *d) {
  bb_setting most[] = {{"P", STEPS}, {"S", PROMPT}};
  bb_status status = bind_caches(d);
  if (!status) status = bind_rows(d, 0, PROMPT);
  return status ? status : bb_session_reserve(d->session, 2, most);
}

/* What row `row` of a step that began at `at` should give, by the definition; 0: it did not. */
static int check(const decoder *d, int64_t at, int64_t row) {
  double weight[ROOM], sum = 0;
  for (int64_t r = 0; r <= at + row; r++) {
    double dot = 0;
    for (int c = 0; c < WIDTH; c++)
      dot += (double)d->q[row * WIDTH + c] * drawn((uint32_t)(r * 100 + c + 16));
    weight[r] = exp(dot / 4);
    sum += weight[r];
  }
  for (int c = 0; c < WIDTH; c++) {
    double want = 0;
    for (int64_t r = 0; r <= at + row; r++)
      want += weight[r] / sum * drawn((uint32_t)(r * 100 + c + 32));
    if (!(fabs(d->y[row * WIDTH + c] - want) < 1e-5)) return 0;
  }
  return 1;
}

static int decode(decoder *d) {
  for (int64_t at = 0, rows = PROMPT; at < STEPS; at += rows, rows = 1) {
    for (int64_t r = 0; r < rows; r++)
      for (int64_t c = 0; c < WIDTH; c++) {
        uint32_t i = (uint32_t)((at + r) * 100 + c);
        d->q[r * WIDTH + c] = drawn(i);
        d->k[r * WIDTH + c] = drawn(i + 16);
        d->v[r * WIDTH + c] = drawn(i + 32);
      }
    if (bind_rows(d, at, rows) != BB_OK) return report(d, "bind");
    if (bb_session_run(d->session, NULL) != BB_OK) return report(d, "run");
    for (int64_t r = 0; r < rows; r++)
      if (!check(d, at, r)) {
        fprintf(stderr, "row %lld is wrong\n", (long long)(at + r));
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
  if (!code && reserve(&d) != BB_OK) code = report(&d, "reserve");
  if (!code) code = decode(&d);
  bb_session_destroy(d.session);
  bb_model_release(d.model);
  bb_context_destroy(d.context);
  return code;
}
