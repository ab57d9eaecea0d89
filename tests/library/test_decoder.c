/* test_decoder.c - caches of keys and values that grow in place, through the public headers alone.
 *
 * Decoding token by token, with both ends of each cache in one array with room, has to give what one run
 * over all tokens gives; it moves nothing that is there, and allocates nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <blockbuster.h>
#include <cmocka.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Two heads: keys and values of new rows behind those that are there, in lengths that only a run tells; keys are copied to
 * their cache, values are made there. */
static const char program_text[] =
    "blockbuster 1\n"
    "program decoder\n"
    "symbol P, S, \"symbol(P)+symbol(S)\"\n"
    "input q : f32[2,S,8]\n"
    "input k : f32[2,S,8]\n"
    "input v : f32[2,S,8]\n"
    "input past_k : f32[2,P,8]\n"
    "input past_v : f32[2,P,8]\n"
    "output present_k = misc \"Concat\" 13(past_k, k) {axis=1} of (f32[2,P,8], f32[2,S,8]) -> "
    "(f32[2,\"symbol(P)+symbol(S)\",8]) : f32[2,\"symbol(P)+symbol(S)\",8]\n"
    "made_v = elementwise max(v,-9)\n"
    "output present_v = misc \"Concat\" 13(past_v, made_v) {axis=1} of (f32[2,P,8], f32[2,S,8]) -> "
    "(f32[2,\"symbol(P)+symbol(S)\",8]) : f32[2,\"symbol(P)+symbol(S)\",8]\n"
    "scores = contract(q[h,s,d], present_k[h,t,d] -> [h,s,t])\n"
    "masked = elementwise select(coord(axis 0)<=coord(axis 1)+symbol(P),scores*0.35,-inf)\n"
    "top = reduce max(masked, axis=-1, keep)\n"
    "weights = elementwise exp(masked-top)\n"
    "sum = reduce sum(weights, axis=-1, keep)\n"
    "shares = elementwise weights/sum\n"
    "output y = contract(shares[h,s,t], present_v[h,t,d] -> [h,s,d])\n";

enum { HEADS = 2, WIDTH = 8, TOKENS = 32, PROMPT = 5, ROOM = 40, ROW = HEADS * WIDTH };

/* --- an allocator that counts --- */

static void *count_resize(void *user, void *pointer, size_t old_size, size_t new_size) {
  (void)old_size;
  atomic_fetch_add((atomic_size_t *)user, 1);
  if (new_size) return realloc(pointer, new_size);
  free(pointer);
  return NULL;
}

/* --- a session, and arrays for it --- */

typedef struct decoder {
  bb_context *context;
  bb_model *model;
  bb_session *session;
  atomic_size_t calls;                                /* of the allocator */
  float in[3][ROW * TOKENS], y[ROW * TOKENS];         /* dense, of as many rows as a run has */
  float cache[2][HEADS * ROOM * WIDTH], past[2][ROW]; /* past: of no rows */
} decoder;

static float drawn(uint32_t i) {
  return (float)((i * 2654435761u >> 8) % 1000) / 500 - 1;
}

static void open_decoder(decoder *d) {
  bb_context_options options = {.version = BB_VERSION, .allocator = {count_resize, &d->calls}};
  bb_program *program;
  memset(d, 0, sizeof *d);
  assert_int_equal(bb_context_create(&options, &d->context), BB_OK);
  assert_int_equal(
      bb_program_parse(d->context, "decoder.bb", program_text, strlen(program_text), &program),
      BB_OK);
  if (bb_program_compile(program, NULL, &d->model) != BB_OK)
    fail_msg("%s", bb_context_message(d->context));
  bb_program_destroy(program);
  bb_session_options one = {.version = BB_VERSION, .threads = 2};
  assert_int_equal(bb_session_create(d->context, d->model, &one, &d->session), BB_OK);
}

static void close_decoder(decoder *d) {
  bb_session_destroy(d->session);
  bb_model_release(d->model);
  bb_context_destroy(d->context);
}

static uint32_t index_of(const decoder *d, bb_side side, const char *name) {
  uint32_t index = 0;
  assert_true(bb_model_find_tensor(d->model, side, name, &index));
  return index;
}

static void bind(decoder *d, bb_side side, const char *name, float *data, int64_t rows) {
  bb_tensor_view view = {
      .dtype = BB_F32, .rank = 3, .shape = (int64_t[]){HEADS, rows, WIDTH}, .data = data};
  assert_int_equal(bb_session_bind(d->session, side, index_of(d, side, name), &view), BB_OK);
}

/* Tokens `at` to at + rows. */
static void bind_tokens(decoder *d, int64_t at, int64_t rows) {
  static const char *const name[] = {"q", "k", "v"};
  for (uint32_t i = 0; i < 3; i++) {
    float *to = d->in[i];
    for (int64_t h = 0; h < HEADS; h++)
      for (int64_t c = 0; c < rows * WIDTH; c++)
        *to++ = drawn((i * HEADS + (uint32_t)h) * TOKENS * WIDTH + (uint32_t)(at * WIDTH + c));
    bind(d, BB_INPUT, name[i], d->in[i], rows);
  }
  bind(d, BB_OUTPUT, "y", d->y, rows);
}

static void run(decoder *d) {
  if (bb_session_run(d->session, NULL) != BB_OK) fail_msg("%s", bb_context_message(d->context));
}

/* All tokens at once, without a cache; [HEADS, TOKENS, WIDTH]. */
static void run_at_once(float *y) {
  static decoder d;
  open_decoder(&d);
  bind_tokens(&d, 0, TOKENS);
  bind(&d, BB_INPUT, "past_k", d.past[0], 0);
  bind(&d, BB_INPUT, "past_v", d.past[1], 0);
  run(&d);
  memcpy(y, d.y, sizeof d.y);
  close_decoder(&d);
}

static void check_tokens(const decoder *d, const float *want, int64_t at, int64_t rows) {
  for (int64_t h = 0; h < HEADS; h++)
    for (int64_t i = 0; i < rows * WIDTH; i++) {
      float got = d->y[h * rows * WIDTH + i], right = want[(h * TOKENS + at) * WIDTH + i];
      if (!(fabsf(got - right) <= 1e-5f))
        fail_msg("token %lld of head %lld: %g, not %g", (long long)(at + i / WIDTH), (long long)h,
                 (double)got, (double)right);
    }
}

/* Room for ROOM tokens in whatever order of axes; NULL: row-major. */
static bb_status bind_cache(decoder *d, uint32_t cache, const int64_t *stride, int64_t used) {
  bb_tensor_view room = {.dtype = BB_F32,
                         .rank = 3,
                         .shape = (int64_t[]){HEADS, ROOM, WIDTH},
                         .stride = stride,
                         .data = d->cache[cache]};
  return bb_session_bind_cache(d->session, cache, &room, used);
}

/* One run over tokens at to at + rows, the caches holding those before. */
static void step(decoder *d, const int64_t *stride, const float *want, int64_t at, int64_t rows) {
  bind_tokens(d, at, rows);
  for (uint32_t c = 0; c < 2; c++) assert_int_equal(bind_cache(d, c, stride, at), BB_OK);
  run(d);
  check_tokens(d, want, at, rows);
}

static float *element(decoder *d, uint32_t cache, const int64_t *stride, int64_t h, int64_t t,
                      int64_t c) {
  static const int64_t dense[] = {ROOM * WIDTH, WIDTH, 1};
  const int64_t *s = stride ? stride : dense;
  return &d->cache[cache][h * s[0] + t * s[1] + c * s[2]];
}

/* What was drawn is in the caches, in its place, and nothing beyond. */
static void check_caches(decoder *d, const int64_t *stride) {
  for (uint32_t i = 0; i < 2; i++)
    for (int64_t h = 0; h < HEADS; h++)
      for (int64_t t = 0; t < ROOM; t++)
        for (int64_t c = 0; c < WIDTH; c++) {
          uint32_t number =
              ((i + 1) * HEADS + (uint32_t)h) * TOKENS * WIDTH + (uint32_t)(t * WIDTH + c);
          assert_true(*element(d, i, stride, h, t, c) == (t < TOKENS ? drawn(number) : 7));
        }
}

static void fill_caches(decoder *d) {
  for (uint32_t c = 0; c < 2; c++)
    for (uint32_t i = 0; i < HEADS * ROOM * WIDTH; i++) d->cache[c][i] = 7;
}

/* --- tests --- */

static void what_a_model_says(void **state) {
  static decoder d;
  bb_cache_info info;
  (void)state;
  open_decoder(&d);
  for (uint32_t i = 0; i < 2; i++) {
    assert_true(bb_model_get_cache(d.model, i, &info));
    assert_int_equal(info.input, index_of(&d, BB_INPUT, i ? "past_v" : "past_k"));
    assert_int_equal(info.output, index_of(&d, BB_OUTPUT, i ? "present_v" : "present_k"));
    assert_int_equal(info.axis, 1);
  }
  assert_false(bb_model_get_cache(d.model, 2, &info));
  bb_extent_info extent;
  uint32_t extents = 0;
  while (bb_model_get_extent(d.model, extents, &extent)) extents++;
  assert_int_equal(extents, 3); /* rooms are the session's business */
  close_decoder(&d);
}

static void token_by_token(void **state) {
  static decoder d;
  static float want[ROW * TOKENS];
  (void)state;
  run_at_once(want);
  open_decoder(&d);
  fill_caches(&d);
  bind_tokens(&d, 0, PROMPT);
  for (uint32_t c = 0; c < 2; c++) assert_int_equal(bind_cache(&d, c, NULL, 0), BB_OK);
  bb_setting most[] = {{"P", TOKENS}, {"S", PROMPT}};
  assert_int_equal(bb_session_reserve(d.session, 2, most), BB_OK);
  size_t workspace = bb_session_workspace(d.session);
  step(&d, NULL, want, 0, PROMPT);
  size_t calls = d.calls;
  for (int64_t at = PROMPT; at < TOKENS; at++) {
    step(&d, NULL, want, at, 1);
    bb_tensor_view present;
    uint32_t index = index_of(&d, BB_OUTPUT, "present_v");
    assert_int_equal(bb_session_get(d.session, BB_OUTPUT, index, &present), BB_OK);
    assert_int_equal(present.shape[1], at + 1);
    assert_int_equal(present.stride[0], ROOM * WIDTH);
    assert_ptr_equal(present.data, d.cache[1]);
  }
  assert_int_equal(d.calls, calls);
  assert_int_equal(bb_session_workspace(d.session), workspace);
  check_caches(&d, NULL);
  close_decoder(&d);
}

/* All caches told at once how much of them is there: the same, and refused as a whole. */
static void told_at_once(void **state) {
  static const int64_t odd[] = {WIDTH, ROW, 1}, *const strides[] = {NULL, odd};
  static decoder d;
  static float want[ROW * TOKENS];
  (void)state;
  run_at_once(want);
  for (int i = 0; i < 2; i++) {
    open_decoder(&d);
    fill_caches(&d);
    assert_int_equal(bb_session_set_caches(d.session, 0), BB_ERROR_ARGUMENT);
    assert_non_null(strstr(bb_context_message(d.context), "\"present_k\" is not bound"));
    step(&d, strides[i], want, 0, PROMPT);
    for (int64_t at = PROMPT; at < TOKENS; at++) {
      bind_tokens(&d, at, 1);
      assert_int_equal(bb_session_set_caches(d.session, ROOM + 1), BB_ERROR_ARGUMENT);
      assert_int_equal(bb_session_set_caches(d.session, at), BB_OK);
      run(&d);
      check_tokens(&d, want, at, 1);
    }
    check_caches(&d, strides[i]);
    assert_int_equal(bb_session_set_caches(d.session, 0), BB_OK); /* from the beginning */
    bind_tokens(&d, 0, PROMPT);
    run(&d);
    check_tokens(&d, want, 0, PROMPT);
    bind(&d, BB_INPUT, "past_v", d.past[0], 0); /* elsewhere */
    assert_int_equal(bb_session_set_caches(d.session, 1), BB_ERROR_ARGUMENT);
    assert_non_null(strstr(bb_context_message(d.context), "\"present_v\" is not bound"));
    close_decoder(&d);
  }
}

/* Tokens outermost, as some runtimes keep them: right, if not in place. */
static void other_strides(void **state) {
  static decoder d;
  static float want[ROW * TOKENS];
  static const int64_t stride[] = {WIDTH, ROW, 1};
  (void)state;
  run_at_once(want);
  open_decoder(&d);
  fill_caches(&d);
  step(&d, stride, want, 0, PROMPT);
  for (int64_t at = PROMPT; at < TOKENS; at += 3) step(&d, stride, want, at, 3);
  check_caches(&d, stride);
  close_decoder(&d);
}

/* The two ends bound one by one: in one array they grow in place, in two they do not. */
static void bound_apart(void **state) {
  static decoder d;
  static float want[ROW * TOKENS], other[2][HEADS * ROOM * WIDTH];
  int64_t stride[] = {ROOM * WIDTH, WIDTH, 1};
  (void)state;
  run_at_once(want);
  for (int in_place = 0; in_place < 2; in_place++) {
    open_decoder(&d);
    fill_caches(&d);
    step(&d, NULL, want, 0, TOKENS - 1);
    bind_tokens(&d, TOKENS - 1, 1);
    for (uint32_t c = 0; c < 2; c++) {
      bb_tensor_view view = {.dtype = BB_F32, .rank = 3, .stride = stride, .data = d.cache[c]};
      view.shape = (int64_t[]){HEADS, TOKENS - 1, WIDTH};
      const char *past = c ? "past_v" : "past_k", *present = c ? "present_v" : "present_k";
      assert_int_equal(bb_session_bind(d.session, BB_INPUT, index_of(&d, BB_INPUT, past), &view),
                       BB_OK);
      view.shape = (int64_t[]){HEADS, TOKENS, WIDTH};
      if (!in_place) view.data = other[c];
      assert_int_equal(
          bb_session_bind(d.session, BB_OUTPUT, index_of(&d, BB_OUTPUT, present), &view), BB_OK);
    }
    run(&d);
    check_tokens(&d, want, TOKENS - 1, 1);
    if (in_place) check_caches(&d, NULL);
    for (uint32_t c = 0; c < 2 && !in_place; c++)
      for (int64_t h = 0; h < HEADS; h++)
        assert_memory_equal(other[c] + h * stride[0], d.cache[c] + h * stride[0],
                            (TOKENS - 1) * WIDTH * sizeof(float));
    close_decoder(&d);
  }
}

/* Rows of another width, which only a run tells: refused before anything is written to the cache. */
static void other_width(void **state) {
  static const char text[] =
      "blockbuster 1\nprogram wide\nsymbol P, S, B, C, \"symbol(P)+symbol(S)\"\n"
      "input past : f32[B,P,8]\ninput x : f32[C,S,8]\nmade = elementwise max(x,-9)\n"
      "output present = misc \"Concat\" 13(past, made) {axis=1} of (f32[B,P,8], f32[C,S,8]) -> "
      "(f32[B,\"symbol(P)+symbol(S)\",8]) : f32[B,\"symbol(P)+symbol(S)\",8]\n";
  static float x[64 * 8], room[8 * 8];
  bb_context *context;
  bb_program *program;
  bb_model *model;
  bb_session *session;
  bb_session_options options = {.version = BB_VERSION, .threads = 1};
  (void)state;
  for (int i = 0; i < 8 * 8; i++) room[i] = 7;
  assert_int_equal(bb_context_create(NULL, &context), BB_OK);
  assert_int_equal(bb_program_parse(context, "wide.bb", text, strlen(text), &program), BB_OK);
  assert_int_equal(bb_program_compile(program, NULL, &model), BB_OK);
  bb_program_destroy(program);
  assert_int_equal(bb_session_create(context, model, &options, &session), BB_OK);
  bb_tensor_view past = {.dtype = BB_F32, .rank = 3, .shape = (int64_t[]){1, 8, 8}, .data = room};
  bb_tensor_view rows = {.dtype = BB_F32, .rank = 3, .shape = (int64_t[]){64, 1, 8}, .data = x};
  uint32_t index = 0;
  assert_true(bb_model_find_tensor(model, BB_INPUT, "x", &index));
  assert_int_equal(bb_session_bind(session, BB_INPUT, index, &rows), BB_OK);
  assert_int_equal(bb_session_bind_cache(session, 0, &past, 2), BB_OK);
  assert_int_equal(bb_session_run(session, NULL), BB_ERROR_INPUT);
  for (int i = 0; i < 8 * 8; i++) assert_true(room[i] == 7);
  bb_session_destroy(session);
  bb_model_release(model);
  bb_context_destroy(context);
}

/* An output whose length the caller tells: more than both parts have is refused, also where both lie in its array. */
static void other_length(void **state) {
  static const char text[] =
      "blockbuster 1\nprogram long\nsymbol P, S, T\ninput past : f32[2,P,8]\ninput x : f32[2,S,8]\n"
      "made = elementwise max(x,-9)\noutput present = misc \"Concat\" 13(past, made) {axis=1} of "
      "(f32[2,P,8], f32[2,S,8]) -> (f32[2,T,8]) : f32[2,T,8]\n";
  static float x[2 * 3 * 8], room[2 * 8 * 8];
  bb_context *context;
  bb_program *program;
  bb_model *model;
  bb_session *session;
  (void)state;
  assert_int_equal(bb_context_create(NULL, &context), BB_OK);
  assert_int_equal(bb_program_parse(context, "long.bb", text, strlen(text), &program), BB_OK);
  assert_int_equal(bb_program_compile(program, NULL, &model), BB_OK);
  bb_program_destroy(program);
  assert_int_equal(bb_session_create(context, model, NULL, &session), BB_OK);
  bb_tensor_view all = {.dtype = BB_F32, .rank = 3, .shape = (int64_t[]){2, 8, 8}, .data = room};
  bb_tensor_view rows = {.dtype = BB_F32, .rank = 3, .shape = (int64_t[]){2, 3, 8}, .data = x};
  uint32_t index = 0;
  assert_true(bb_model_find_tensor(model, BB_INPUT, "x", &index));
  assert_int_equal(bb_session_bind(session, BB_INPUT, index, &rows), BB_OK);
  assert_int_equal(bb_session_bind_cache(session, 0, &all, 2), BB_OK);
  for (int64_t length = 4; length < 7; length++) {
    assert_int_equal(bb_session_set(session, "T", length), BB_OK);
    assert_int_equal(bb_session_run(session, NULL), length == 5 ? BB_OK : BB_ERROR_INPUT);
  }
  bb_session_destroy(session);
  bb_model_release(model);
  bb_context_destroy(context);
}

/* Heads that are joined row after row are read where they lie, a whole room apart, not one behind the other. */
static void joined_heads(void **state) {
  enum { USED = 7, ALL = 40, HEAD = USED * 8 };
  static const char text[] =
      "blockbuster 1\nprogram joined\nsymbol n, \"symbol(n)+7\"\ninput past : f32[2,7,8]\ninput x "
      ": "
      "f32[2,n,8]\noutput present = misc \"Concat\" 13(past, x) {axis=1} of (f32[2,7,8], "
      "f32[2,n,8]) "
      "-> (f32[2,\"symbol(n)+7\",8]) : f32[2,\"symbol(n)+7\",8]\n"
      "a = slice(past, axis=0, start=0, by=1, length=1) : f32[1,7,8]\nb = reshape(a) : f32[7,8]\n"
      "c = slice(past, axis=0, start=1, by=1, length=1) : f32[1,7,8]\nd = reshape(c) : f32[7,8]\n"
      "output y = concat(b, d, axis=0) : f32[14,8]\n";
  static float x[2 * 3 * 8], y[2 * HEAD], room[2 * ALL * 8];
  bb_context *context;
  bb_program *program;
  bb_model *model;
  bb_session *session;
  (void)state;
  for (int i = 0; i < 2 * ALL * 8; i++) room[i] = i % (ALL * 8) < HEAD ? (float)i : -1;
  assert_int_equal(bb_context_create(NULL, &context), BB_OK);
  assert_int_equal(bb_program_parse(context, "joined.bb", text, strlen(text), &program), BB_OK);
  assert_int_equal(bb_program_compile(program, NULL, &model), BB_OK);
  bb_program_destroy(program);
  assert_int_equal(bb_session_create(context, model, NULL, &session), BB_OK);
  bb_tensor_view past = {.dtype = BB_F32, .rank = 3, .shape = (int64_t[]){2, ALL, 8}, .data = room};
  bb_tensor_view rows = {.dtype = BB_F32, .rank = 3, .shape = (int64_t[]){2, 3, 8}, .data = x};
  bb_tensor_view heads = {.dtype = BB_F32, .rank = 2, .shape = (int64_t[]){14, 8}, .data = y};
  uint32_t in = 0, out = 0;
  assert_true(bb_model_find_tensor(model, BB_INPUT, "x", &in));
  assert_true(bb_model_find_tensor(model, BB_OUTPUT, "y", &out));
  assert_int_equal(bb_session_bind(session, BB_INPUT, in, &rows), BB_OK);
  assert_int_equal(bb_session_bind(session, BB_OUTPUT, out, &heads), BB_OK);
  assert_int_equal(bb_session_bind_cache(session, 0, &past, USED), BB_OK);
  assert_int_equal(bb_session_run(session, NULL), BB_OK);
  for (int i = 0; i < 2 * HEAD; i++)
    assert_true(y[i] == (float)(i < HEAD ? i : i - HEAD + ALL * 8));
  bb_session_destroy(session);
  bb_model_release(model);
  bb_context_destroy(context);
}

static void wrong_calls(void **state) {
  static decoder d;
  static float want[ROW * TOKENS];
  (void)state;
  run_at_once(want);
  open_decoder(&d);
  fill_caches(&d);
  assert_int_equal(bind_cache(&d, 2, NULL, 0), BB_ERROR_ARGUMENT);
  assert_int_equal(bind_cache(&d, 0, NULL, ROOM + 1), BB_ERROR_ARGUMENT);
  assert_int_equal(bind_cache(&d, 0, NULL, -1), BB_ERROR_ARGUMENT);
  assert_int_equal(bb_session_bind_cache(d.session, 0, NULL, 0), BB_ERROR_ARGUMENT);
  bb_setting none[] = {{"Q", 1}};
  assert_int_equal(bb_session_reserve(d.session, 1, none), BB_ERROR_ARGUMENT);
  assert_int_equal(bb_session_reserve(d.session, 0, NULL), BB_ERROR_ARGUMENT); /* P is not known */
  bb_setting apart[] = {{"P", 9}, {"symbol(P)+symbol(S)", 2}, {"S", 9}};
  assert_int_equal(bb_session_reserve(d.session, 3, apart), BB_ERROR_INPUT);
  assert_non_null(strstr(bb_context_message(d.context), "is 2, and follows from others as 18"));
  bind_tokens(&d, 0, PROMPT);
  assert_int_equal(bind_cache(&d, 0, NULL, ROOM - PROMPT + 1), BB_OK);
  assert_int_equal(bind_cache(&d, 1, NULL, ROOM - PROMPT + 1), BB_OK);
  assert_int_equal(bb_session_run(d.session, NULL), BB_ERROR_INPUT);
  assert_non_null(
      strstr(bb_context_message(d.context), "has room for 40 along axis 1, not for 41"));
  for (uint32_t c = 0; c < 2; c++)
    for (uint32_t i = 0; i < HEADS * ROOM * WIDTH; i++) assert_true(d.cache[c][i] == 7);
  assert_int_equal(bind_cache(&d, 1, NULL, 0), BB_OK); /* unlike the other */
  assert_int_equal(bb_session_run(d.session, NULL), BB_ERROR_INPUT);
  step(&d, NULL, want, 0, TOKENS);
  check_caches(&d, NULL);
  close_decoder(&d);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_a_model_says), cmocka_unit_test(token_by_token),
      cmocka_unit_test(other_strides),     cmocka_unit_test(bound_apart),
      cmocka_unit_test(wrong_calls),       cmocka_unit_test(other_width),
      cmocka_unit_test(other_length),      cmocka_unit_test(told_at_once),
      cmocka_unit_test(joined_heads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
