/* session_cache_test.c - caches of keys and values that grow in place on a GPU, through the public headers alone. */
#include "gear.h"

#include <math.h>
#include <string.h>

/* Two heads: keys and values of new rows behind those that are there, in lengths that only a run tells. */
#define GROWN "\"symbol(P)+symbol(S)\""
#define JOINED(past, new)                                                                          \
  "misc \"Concat\" 13(" past ", " new ") {axis=1} of (f32[2,P,8], f32[2,S,8]) -> (f32[2," GROWN    \
                                      ",8]) : f32[2," GROWN ",8]"
/* new_v: what the rows of values are called, and how they are made of v. */
#define DECODER_OF(new_v, made)                                                                    \
  "blockbuster 1\nprogram decoder\nsymbol P, S, " GROWN "\n"                                       \
  "input q : f32[2,S,8]\ninput k : f32[2,S,8]\ninput v : f32[2,S,8]\n"                             \
  "input past_k : f32[2,P,8]\ninput past_v : f32[2,P,8]\n" made                                    \
  "output present_k = " JOINED("past_k", "k") "\noutput present_v = " JOINED(                      \
      "past_v", new_v) "\n"                                                                        \
                       "scores = contract(q[h,s,d], present_k[h,t,d] -> [h,s,t])\n"                \
                       "masked = elementwise select(coord(axis 0)<=coord(axis "                    \
                       "1)+symbol(P),scores*0.35,-inf)\n"                                          \
                       "top = reduce max(masked, axis=-1, keep)\n"                                 \
                       "weights = elementwise exp(masked-top)\n"                                   \
                       "sum = reduce sum(weights, axis=-1, keep)\n"                                \
                       "shares = elementwise weights/sum\n"                                        \
                       "output y = contract(shares[h,s,t], present_v[h,t,d] -> [h,s,d])\n"
/* Keys are copied to their cache, values are made there. */
#define DECODER DECODER_OF("made_v", "made_v = elementwise max(v,-9)\n")
/* What the processor makes of a cache: the largest of each row, without their places. */
#define LARGEST                                                                                    \
  "constant one : i64[1] = [1]\n"                                                                  \
  "large = misc \"TopK\" 18(present_k, one) {axis=-1} of (f32[2," GROWN ",8], i64[1]) -> "         \
  "(f32[2," GROWN ",1]) : f32[2," GROWN ",1] @ \"largest\"\noutput L = elementwise large+0\n"

enum { HEADS = 2, TOKENS = 24, PROMPT = 5, ROOM = 32, ROW = HEADS * WIDTH };
enum { Q, K, V, PAST_K, PAST_V };           /* inputs */
enum { PRESENT_K, PRESENT_V, Y, BEST_ROW }; /* outputs */

typedef struct decoder {
  gpu_world w;
  void *context, *stream;
  gpu_pointer in[3], y, cache[2];
} decoder;

static float drawn(uint32_t i) {
  return (float)((i * 2654435761u >> 8) % 1000) / 500 - 1;
}

/* Element c of token t in head h of q, k or v. */
static float token(int which, int64_t h, int64_t t, int64_t c) {
  return drawn((uint32_t)(((which * HEADS + h) * TOKENS + t) * WIDTH + c));
}

static void take_memory(gpu_pointer *memory, size_t count) {
  float held[HEADS * ROOM * WIDTH];
  assert_int_equal(gpu.allocate(memory, count * sizeof(float)), 0);
  for (size_t i = 0; i < count; i++) held[i] = 7;
  assert_int_equal(gpu.in(*memory, held, count * sizeof *held, (void *)1), 0);
  assert_int_equal(gpu.wait((void *)1), 0);
}

static decoder start(const char *text) {
  decoder d = {.w = gpu_make(text, "cuda")};
  assert_int_equal(gpu.retain(&d.context, 0), 0);
  assert_int_equal(gpu.push(d.context), 0);
  assert_int_equal(gpu.stream(&d.stream, 1), 0);
  for (int i = 0; i < 3; i++) take_memory(&d.in[i], TOKENS * ROW);
  for (int i = 0; i < 2; i++) take_memory(&d.cache[i], HEADS * ROOM * WIDTH);
  take_memory(&d.y, TOKENS * ROW);
  return d;
}

static void stop(decoder *d) {
  void *context;
  gpu_end(&d->w);
  for (int i = 0; i < 3; i++) gpu.free(d->in[i]);
  for (int i = 0; i < 2; i++) gpu.free(d->cache[i]);
  gpu.free(d->y);
  gpu.end(d->stream);
  assert_int_equal(gpu.pop(&context), 0);
  gpu.release(0);
  assert_int_equal(gpu_allocations(), 0);
}

static void bind(const decoder *d, bb_side side, uint32_t index, gpu_pointer at, int64_t rows) {
  int64_t shape[3] = {HEADS, rows, WIDTH};
  bb_tensor_view view = {BB_F32, 3, shape, NULL, (void *)(uintptr_t)at};
  gpu_good(&d->w, bb_session_bind(d->w.session, side, index, &view));
}

/* `stride`: of the caches; NULL: row-major. */
static void bind_all(const decoder *d, const int64_t *stride, int64_t used, int64_t rows) {
  int64_t room[3] = {HEADS, ROOM, WIDTH};
  for (uint32_t i = 0; i < 3; i++) bind(d, BB_INPUT, i, d->in[i], rows);
  bind(d, BB_OUTPUT, Y, d->y, rows);
  for (uint32_t c = 0; c < 2; c++) {
    bb_tensor_view view = {BB_F32, 3, room, stride, (void *)(uintptr_t)d->cache[c]};
    gpu_good(&d->w, bb_session_bind_cache(d->w.session, c, &view, used));
  }
}

/* By the definition. */
static void check_token(int64_t h, int64_t t, const float *y) {
  double weight[TOKENS], sum = 0;
  for (int64_t r = 0; r <= t; r++) {
    double dot = 0;
    for (int c = 0; c < WIDTH; c++) dot += (double)token(Q, h, t, c) * (double)token(K, h, r, c);
    weight[r] = exp(0.35 * dot);
    sum += weight[r];
  }
  for (int c = 0; c < WIDTH; c++) {
    double want = 0;
    for (int64_t r = 0; r <= t; r++) want += weight[r] / sum * (double)token(V, h, r, c);
    assert_true(fabs((double)y[c] - want) < 1e-5);
  }
}

/* Tokens `at` to at + rows, those before them in the caches; nobody waits before y is taken. */
static void step(const decoder *d, const int64_t *stride, int64_t at, int64_t rows) {
  float in[ROW * TOKENS], y[ROW * TOKENS];
  size_t bytes = (size_t)(rows * ROW) * sizeof *in;
  for (int i = 0; i < 3; i++) {
    for (int64_t e = 0; e < rows * ROW; e++)
      in[e] = token(i, e / (rows * WIDTH), at + e / WIDTH % rows, e % WIDTH);
    assert_int_equal(gpu.in(d->in[i], in, bytes, d->stream), 0);
  }
  bind_all(d, stride, at, rows);
  gpu_good(&d->w, bb_session_run(d->w.session, d->stream));
  assert_int_equal(gpu.out(y, d->y, bytes, d->stream), 0);
  assert_int_equal(gpu.wait(d->stream), 0);
  for (int64_t h = 0; h < HEADS; h++)
    for (int64_t r = 0; r < rows; r++) check_token(h, at + r, y + (h * rows + r) * WIDTH);
}

/* Tokens in their places, and nothing beyond. */
static void check_caches(const decoder *d, const int64_t *stride, int64_t tokens) {
  float held[HEADS * ROOM * WIDTH];
  for (int i = 0; i < 2; i++) {
    assert_int_equal(gpu.out(held, d->cache[i], sizeof held, d->stream), 0);
    assert_int_equal(gpu.wait(d->stream), 0);
    for (int64_t h = 0; h < HEADS; h++)
      for (int64_t t = 0; t < ROOM; t++)
        for (int64_t c = 0; c < WIDTH; c++) {
          float got = held[h * stride[0] + t * stride[1] + c * stride[2]];
          assert_true(got == (t < tokens ? token(K + i, h, t, c) : 7));
        }
  }
}

static const int64_t row_major[] = {ROOM * WIDTH, WIDTH, 1}, tokens_first[] = {WIDTH, ROW, 1};

/* The first run is the longest: none after it takes memory of the device. */
static void token_by_token(void **state) {
  (void)state;
  decoder d = start(DECODER);
  bb_setting most[] = {{"P", TOKENS}, {"S", PROMPT}};
  bind_all(&d, NULL, 0, PROMPT);
  gpu_good(&d.w, bb_session_reserve(d.w.session, 2, most));
  step(&d, NULL, 0, PROMPT);
  long there = gpu_allocations(), updates = gpu.real ? 0 : gpu.updates();
  for (int64_t at = PROMPT; at < TOKENS; at++) step(&d, NULL, at, 1);
  assert_true(gpu.real ||
              gpu.updates() - updates > TOKENS - PROMPT - 5); /* one graph for most of them */
  assert_int_equal(gpu_allocations(), there);
  check_caches(&d, row_major, TOKENS);
  bb_tensor_view present;
  float held[HEADS * TOKENS * WIDTH];
  gpu_good(&d.w, bb_session_get(d.w.session, BB_OUTPUT, PRESENT_V, &present));
  assert_int_equal(present.shape[1], TOKENS);
  assert_int_equal(present.stride[0], ROOM * WIDTH);
  gpu_good(&d.w, bb_session_read(d.w.session, BB_OUTPUT, PRESENT_V, held, sizeof held));
  for (int64_t e = 0; e < HEADS * TOKENS * WIDTH; e++)
    assert_true(held[e] == token(V, e / (TOKENS * WIDTH), e / WIDTH % TOKENS, e % WIDTH));
  stop(&d);
}

/* A request: a prompt, and tokens after it; how many of its runs were a graph that was changed. */
static long request(const decoder *d) {
  long before = gpu.updates();
  step(d, NULL, 0, PROMPT);
  for (int64_t at = PROMPT; at < TOKENS; at++) step(d, NULL, at, 1);
  check_caches(d, row_major, TOKENS);
  return gpu.updates() - before;
}

/* A graph that the first requests made is changed by all later ones. */
static void requests(void **state) {
  enum { REQUESTS = 6, TOO_FEW = 3 };
  (void)state;
  if (gpu.real) skip();
  decoder d = start(DECODER);
  long made = gpu.instances();
  for (int i = 0; i < TOO_FEW; i++) request(&d);
  made = gpu.instances() - made;
  assert_in_range(made, 1, 4);
  made = gpu.instances();
  for (int i = TOO_FEW; i < REQUESTS; i++) assert_true(request(&d) >= TOKENS - PROMPT);
  assert_int_equal(gpu.instances(), made);
  stop(&d);
}

/* A graph that the driver does not make is not asked for again: launches go one by one. */
static void no_graphs(void **state) {
  enum { MANY = 1000 };
  (void)state;
  if (gpu.real) skip();
  decoder d = start(DECODER);
  long made = gpu.instances();
  gpu.refuse_graphs(MANY);
  for (int i = 0; i < 3; i++) assert_int_equal(request(&d), 0);
  for (int i = 0; i < 3; i++) gpu_good(&d.w, bb_session_run(d.w.session, d.stream));
  gpu_good(&d.w, bb_session_wait(d.w.session));
  check_caches(&d, row_major, TOKENS);
  gpu.refuse_graphs(0);
  assert_int_equal(gpu.instances(), made);
  stop(&d);
}

/* Two sessions in turn, each with graphs of its own; the first to begin ends first. */
static void two_sessions(void **state) {
  (void)state;
  decoder a = start(DECODER), b = start(DECODER);
  void *context;
  step(&a, NULL, 0, PROMPT);
  step(&b, NULL, 0, PROMPT + 1);
  for (int64_t at = PROMPT; at + 1 < TOKENS; at++) {
    step(&a, NULL, at, 1);
    step(&b, NULL, at + 1, 1);
  }
  check_caches(&a, row_major, TOKENS - 1);
  gpu_end(&a.w);
  step(&b, NULL, TOKENS - 1, 1);
  check_caches(&b, row_major, TOKENS);
  for (int i = 0; i < 3; i++) gpu.free(a.in[i]);
  for (int i = 0; i < 2; i++) gpu.free(a.cache[i]);
  gpu.free(a.y);
  gpu.end(a.stream);
  stop(&b);
  assert_int_equal(gpu.pop(&context), 0);
  gpu.release(0);
}

static long launches_of_a_token(const char *text) {
  decoder d = start(text);
  step(&d, NULL, 0, PROMPT);
  long before = gpu.launches();
  step(&d, NULL, PROMPT, 1);
  long after = gpu.launches();
  check_caches(&d, row_major, PROMPT + 1);
  stop(&d);
  return after - before;
}

/* Rows that a kernel makes cost its launch, and none that brings them to their cache. */
static void made_in_place(void **state) {
  (void)state;
  if (gpu.real) skip();
  assert_int_equal(launches_of_a_token(DECODER), launches_of_a_token(DECODER_OF("v", "")));
}

/* Runs with one length follow each other: launches are noted, and what is there stays there. */
static void again_and_again(void **state) {
  (void)state;
  decoder d = start(DECODER);
  step(&d, NULL, 0, PROMPT);
  for (int i = 0; i < 4; i++) step(&d, NULL, PROMPT, 3);
  for (int i = 0; i < 4; i++) gpu_good(&d.w, bb_session_run(d.w.session, d.stream));
  gpu_good(&d.w, bb_session_wait(d.w.session));
  check_caches(&d, row_major, PROMPT + 3);
  stop(&d);
}

/* Right, if not in place. */
static void other_strides(void **state) {
  (void)state;
  decoder d = start(DECODER);
  step(&d, tokens_first, 0, PROMPT);
  for (int64_t at = PROMPT; at + 3 <= TOKENS; at += 3) step(&d, tokens_first, at, 3);
  check_caches(&d, tokens_first, TOKENS - (TOKENS - PROMPT) % 3);
  stop(&d);
}

static void steps_of_the_processor(void **state) {
  float large[HEADS * TOKENS];
  (void)state;
  decoder d = start(DECODER LARGEST);
  step(&d, NULL, 0, PROMPT);
  step(&d, NULL, PROMPT, TOKENS - PROMPT);
  check_caches(&d, row_major, TOKENS);
  gpu_good(&d.w, bb_session_read(d.w.session, BB_OUTPUT, BEST_ROW, large, sizeof large));
  for (int64_t i = 0; i < HEADS * TOKENS; i++)
    for (int c = 0; c < WIDTH; c++) assert_true(large[i] >= token(K, i / TOKENS, i % TOKENS, c));
  stop(&d);
}

static void no_room(void **state) {
  (void)state;
  decoder d = start(DECODER);
  step(&d, NULL, 0, PROMPT);
  bind_all(&d, NULL, ROOM - PROMPT + 1, PROMPT);
  gpu_refused(&d.w, bb_session_run(d.w.session, d.stream), BB_ERROR_INPUT,
              "has room for 32 along axis 1, not for 33");
  check_caches(&d, row_major, PROMPT);
  stop(&d);
}

/* --- as many rows as another input says, by batch; beyond them zeros --- */

#define APPENDER                                                                                   \
  "blockbuster 1\nprogram appender\nsymbol P, S, " GROWN "\n"                                      \
  "input past : f32[2,1,P,8]\ninput rows : f32[2,1,S,8]\ninput length : i64[2]\n"                  \
  "output present = misc \"blockbuster\":\"Append\" 1(past, rows, length) of (f32[2,1,P,8], "      \
  "f32[2,1,S,8], i64[2]) -> (f32[2,1," GROWN ",8]) : f32[2,1," GROWN ",8] @ \"grow\"\n"

static void append(decoder *d, int64_t there, int64_t rows, const int64_t *length) {
  float held[2 * TOKENS * WIDTH];
  int64_t shape[4] = {2, 1, rows, WIDTH}, room[4] = {2, 1, ROOM, WIDTH}, batch = 2;
  for (int64_t e = 0; e < 2 * rows * WIDTH; e++)
    held[e] = token(K, e / (rows * WIDTH), length[e / (rows * WIDTH)] - rows + e / WIDTH % rows,
                    e % WIDTH);
  assert_int_equal(gpu.in(d->in[0], held, (size_t)(2 * rows * WIDTH) * sizeof *held, d->stream), 0);
  assert_int_equal(gpu.in(d->in[1], length, 2 * sizeof *length, d->stream), 0);
  bb_tensor_view fresh = {BB_F32, 4, shape, NULL, (void *)(uintptr_t)d->in[0]};
  bb_tensor_view lengths = {BB_I64, 1, &batch, NULL, (void *)(uintptr_t)d->in[1]};
  bb_tensor_view all = {BB_F32, 4, room, NULL, (void *)(uintptr_t)d->cache[0]};
  gpu_good(&d->w, bb_session_bind(d->w.session, BB_INPUT, 1, &fresh));
  gpu_good(&d->w, bb_session_bind(d->w.session, BB_INPUT, 2, &lengths));
  gpu_good(&d->w, bb_session_bind_cache(d->w.session, 0, &all, there));
  gpu_good(&d->w, bb_session_run(d->w.session, d->stream));
}

static void check_rows(const decoder *d, int64_t rows, const int64_t *length) {
  float held[2 * ROOM * WIDTH];
  assert_int_equal(gpu.out(held, d->cache[0], sizeof held, d->stream), 0);
  assert_int_equal(gpu.wait(d->stream), 0);
  for (int64_t b = 0; b < 2; b++)
    for (int64_t t = 0; t < ROOM; t++)
      for (int64_t c = 0; c < WIDTH; c++) {
        float want = t < length[b] ? token(K, b, t, c) : t < rows ? 0 : 7;
        assert_true(held[(b * ROOM + t) * WIDTH + c] == want);
      }
}

static void ragged(void **state) {
  (void)state;
  decoder d = start(APPENDER);
  int64_t length[2] = {6, 6}, nonsense[2] = {12, 4};
  append(&d, 0, 6, length);
  check_rows(&d, 6, length);
  for (int64_t at = 6; at < 20; at += 2) {
    length[0] += 2;
    length[1] = at < 10 ? length[1] + 2 : length[1];
    append(&d, at, 2, length);
    check_rows(&d, at + 2, length);
    gpu_good(&d.w, bb_session_wait(d.w.session));
  }
  append(&d, 4, 6, nonsense);
  gpu_refused(&d.w, bb_session_wait(d.w.session), BB_ERROR_INPUT, "misc node \"grow\": Append");
  stop(&d);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(token_by_token), cmocka_unit_test(again_and_again),
      cmocka_unit_test(other_strides),  cmocka_unit_test(steps_of_the_processor),
      cmocka_unit_test(no_room),        cmocka_unit_test(ragged),
      cmocka_unit_test(made_in_place),  cmocka_unit_test(requests),
      cmocka_unit_test(no_graphs),      cmocka_unit_test(two_sessions)};
  return cmocka_run_group_tests(tests, gpu_open, NULL);
}
