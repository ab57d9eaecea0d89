/* test_session.c - compiled models and sessions, through the public headers alone.
 *
 * usage: test_session MODEL.onnx     a model with reference kernels of every sort
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <blockbuster.h>
#include <blockbuster_dlpack.h>
#include <cmocka.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "counter.h"

static const char *model_path;

/* A row's shares, and a sum of them that both outputs need: two kernels, extents of run time. */
static const char shares_text[] = "blockbuster 1\n"
                                  "program shares\n"
                                  "dim M, N, K\n"
                                  "input X : f32[M,K]\n"
                                  "input W : f32[N,K]\n"
                                  "scores = contract(X[m,k], W[n,k] -> [m,n])\n"
                                  "weights = elementwise exp(scores)\n"
                                  "sum = reduce sum(weights, axis=-1, keep)\n"
                                  "output Y = elementwise weights/sum\n";

/* What was there, and more behind it. */
static const char cache_text[] = "blockbuster 1\n"
                                 "program cache\n"
                                 "input past : f32[3,5,4]\n"
                                 "input fresh : f32[3,1,4]\n"
                                 "doubled = elementwise 2*fresh\n"
                                 "output present = concat(past, doubled, axis=1)\n";

static bb_context *open_context(counter *c) {
  bb_context_options options = {.version = BB_VERSION};
  if (c) options.allocator = (bb_allocator){count_resize, c};
  bb_context *context;
  assert_int_equal(bb_context_create(&options, &context), BB_OK);
  return context;
}

/* --- models --- */

/* For a processor that is the same wherever the test runs: how many kernels there are follows from prices. */
static bb_model *compile(bb_context *context, const char *text) {
  bb_advance_options options = {.version = BB_VERSION, .machine = "cpu"};
  bb_program *program;
  bb_model *model = NULL;
  assert_int_equal(bb_program_parse(context, "text", text, strlen(text), &program), BB_OK);
  if (bb_program_advance(program, BB_STAGE_FUSED, &options) != BB_OK ||
      bb_program_compile(program, NULL, &model) != BB_OK)
    fail_msg("%s", bb_context_message(context));
  bb_program_destroy(program);
  return model;
}

static float drawn(uint32_t i) {
  return (float)((i * 2654435761u >> 8) % 1000) / 1000 - 0.5f;
}

typedef struct shares {
  int64_t m, n, k;
  float *x, *w, *y, *want;
} shares;

static shares make_shares(int64_t m, int64_t n, int64_t k) {
  shares s = {m,
              n,
              k,
              malloc((size_t)(m * k) * 4),
              malloc((size_t)(n * k) * 4),
              malloc((size_t)(m * n) * 4),
              malloc((size_t)(m * n) * 4)};
  for (int64_t i = 0; i < m * k; i++) s.x[i] = drawn((uint32_t)i);
  for (int64_t i = 0; i < n * k; i++) s.w[i] = drawn((uint32_t)i + 77);
  for (int64_t r = 0; r < m; r++) {
    double sum = 0;
    for (int64_t c = 0; c < n; c++) {
      double dot = 0;
      for (int64_t i = 0; i < k; i++) dot += (double)s.x[r * k + i] * s.w[c * k + i];
      sum += exp(dot);
      s.want[r * n + c] = (float)exp(dot);
    }
    for (int64_t c = 0; c < n; c++) s.want[r * n + c] /= (float)sum;
  }
  return s;
}

static void free_shares(shares *s) {
  free(s->x);
  free(s->w);
  free(s->y);
  free(s->want);
}

static bb_tensor_view view_of(float *data, int64_t *shape) {
  return (bb_tensor_view){.dtype = BB_F32, .rank = 2, .shape = shape, .data = data};
}

static void bind_shares(bb_session *session, shares *s) {
  bb_tensor_view x = view_of(s->x, (int64_t[]){s->m, s->k});
  bb_tensor_view w = view_of(s->w, (int64_t[]){s->n, s->k});
  bb_tensor_view y = view_of(s->y, (int64_t[]){s->m, s->n});
  memset(s->y, 0, (size_t)(s->m * s->n) * 4);
  assert_int_equal(bb_session_bind(session, BB_INPUT, 0, &x), BB_OK);
  assert_int_equal(bb_session_bind(session, BB_INPUT, 1, &w), BB_OK);
  assert_int_equal(bb_session_bind(session, BB_OUTPUT, 0, &y), BB_OK);
}

static void check_close(const float *got, const float *want, int64_t count) {
  for (int64_t i = 0; i < count; i++)
    if (!(fabsf(got[i] - want[i]) <= 1e-5f))
      fail_msg("element %lld: %g, not %g", (long long)i, (double)got[i], (double)want[i]);
}

static void check_run(bb_context *context, bb_session *session, const shares *s) {
  if (bb_session_run(session, NULL) != BB_OK) fail_msg("%s", bb_context_message(context));
  check_close(s->y, s->want, s->m * s->n);
}

/* --- extents of run time --- */

static void one_model_many_extents(void **state) {
  bb_context *context = open_context(NULL);
  bb_model *model = compile(context, shares_text);
  bb_session *session;
  (void)state;
  assert_int_equal(bb_session_create(context, model, NULL, &session), BB_OK);
  static const int64_t sizes[][3] = {
      {3, 5, 2}, {70, 130, 65}, {1, 1, 1}, {64, 64, 64}, {200, 33, 7}};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    shares s = make_shares(sizes[i][0], sizes[i][1], sizes[i][2]);
    bind_shares(session, &s);
    check_run(context, session, &s);
    free_shares(&s);
  }
  bb_session_destroy(session);
  bb_model_release(model);
  bb_context_destroy(context);
}

static void what_a_model_says(void **state) {
  bb_context *context = open_context(NULL);
  bb_model *model = compile(context, shares_text);
  bb_tensor_info t;
  bb_model_info info;
  bb_step_info step;
  bb_extent_info extent;
  uint32_t index = 9, seen = 0;
  int64_t shape[2];
  (void)state;
  assert_true(bb_model_get_tensor(model, BB_INPUT, 1, &t));
  assert_string_equal(t.name, "W");
  assert_int_equal(t.dtype, BB_F32);
  assert_int_equal(t.shape[0], -1);
  assert_string_equal(t.extent[0], "N");
  assert_false(bb_model_get_tensor(model, BB_INPUT, 2, &t));
  assert_true(bb_model_find_tensor(model, BB_OUTPUT, "Y", &index));
  assert_int_equal(index, 0);
  assert_false(bb_model_find_tensor(model, BB_INPUT, "Y", &index));
  bb_model_get_info(model, &info);
  assert_string_equal(info.name, "shares");
  assert_int_equal(info.kernels, 1);
  assert_true(info.fused >= 4);
  assert_true(bb_model_get_step(model, 0, &step));
  assert_non_null(strstr(step.listing, "exp("));
  assert_null(step.op);
  while (bb_model_get_extent(model, seen, &extent)) seen++;
  assert_int_equal(seen, 3);
  bb_setting known[] = {{"M", 7}, {"N", 9}};
  assert_int_equal(bb_model_get_shape(context, model, BB_OUTPUT, 0, 2, known, shape), BB_OK);
  assert_int_equal(shape[0], 7);
  assert_int_equal(shape[1], 9);
  assert_int_equal(bb_model_get_shape(context, model, BB_INPUT, 0, 2, known, shape),
                   BB_ERROR_ARGUMENT);
  const bb_setting refused[][2] = {
      {{"M", 3}, {"N", -1}}, {{"M", 3}, {"M", 3}}, {{"M", 3}, {"N", INT64_MAX}}};
  const bb_status why[] = {BB_ERROR_ARGUMENT, BB_ERROR_ARGUMENT, BB_ERROR_INPUT};
  const char *const says[] = {"extent N cannot be negative", "axis 1 is not known",
                              "more elements"};
  for (int i = 0; i < 3; i++) {
    assert_int_equal(bb_model_get_shape(context, model, BB_OUTPUT, 0, 2, refused[i], shape),
                     why[i]);
    assert_non_null(strstr(bb_context_message(context), says[i]));
    assert_int_equal(shape[0], 7); /* untouched */
  }
  bb_model_release(model);
  bb_context_destroy(context);
}

/* --- memory --- */

static void runs_allocate_nothing(void **state) {
  counter of_model = {0}, of_session = {0};
  bb_context *maker = open_context(&of_model), *context = open_context(&of_session);
  bb_model *model;
  (void)state;
  assert_int_equal(bb_model_open(maker, model_path, NULL, &model), BB_OK);
  bb_session *session;
  assert_int_equal(bb_session_create(context, model, NULL, &session), BB_OK);
  bb_tensor_info t;
  void *data[8];
  uint32_t inputs = 0;
  for (; bb_model_get_tensor(model, BB_INPUT, inputs, &t); inputs++) {
    size_t count = 1;
    for (uint32_t a = 0; a < t.rank; a++) count *= (size_t)t.shape[a];
    data[inputs] = calloc(count, 8);
    bb_tensor_view view = {
        .dtype = t.dtype, .rank = t.rank, .shape = t.shape, .data = data[inputs]};
    assert_int_equal(bb_session_bind(session, BB_INPUT, inputs, &view), BB_OK);
  }
  assert_int_equal(bb_session_run(session, NULL), BB_OK);
  size_t before = of_session.calls + of_model.calls;
  for (int i = 0; i < 4; i++) assert_int_equal(bb_session_run(session, NULL), BB_OK);
  assert_int_equal(of_session.calls + of_model.calls, before);
  for (uint32_t i = 0; i < inputs; i++) free(data[i]);
  bb_session_destroy(session);
  bb_context_destroy(context);
  bb_model_release(model);
  bb_context_destroy(maker);
  assert_int_equal(of_session.live, 0);
  assert_int_equal(of_model.live, 0);
}

/* Every allocation of making, binding and running a session fails once. */
static void failing_allocations(void **state) {
  bb_context *maker = open_context(NULL);
  bb_model *model = compile(maker, shares_text);
  shares s = make_shares(70, 13, 20);
  bool good = false;
  (void)state;
  for (size_t fail_at = 1; !good; fail_at++) {
    counter c = {.fail_at = fail_at};
    bb_context_options options = {.version = BB_VERSION, .allocator = {count_resize, &c}};
    bb_context *context;
    bb_session *session = NULL;
    if (bb_context_create(&options, &context) != BB_OK) continue;
    bb_status status = bb_session_create(context, model, NULL, &session);
    if (status == BB_OK) {
      bind_shares(session, &s);
      status = bb_session_run(session, NULL);
      bb_session_destroy(session);
    }
    assert_true(status == BB_OK || status == BB_ERROR_MEMORY);
    good = status == BB_OK;
    bb_context_destroy(context);
    assert_int_equal(c.live, 0);
    assert_true(fail_at < 1000);
  }
  check_close(s.y, s.want, s.m * s.n);
  free_shares(&s);
  bb_model_release(model);
  bb_context_destroy(maker);
}

static void callers_workspace(void **state) {
  counter c = {0};
  bb_context *context = open_context(&c);
  bb_model *model = compile(context, shares_text);
  shares s = make_shares(70, 130, 65);
  bb_session *session;
  (void)state;
  assert_int_equal(bb_session_create(context, model, NULL, &session), BB_OK);
  bind_shares(session, &s);
  assert_int_equal(bb_session_workspace(session), 0);
  assert_int_equal(bb_session_prepare(session), BB_OK);
  size_t bytes = bb_session_workspace(session), live = c.live;
  assert_true(bytes > 0);
  char *memory = malloc(bytes + 64);
  bb_session_use_workspace(session, memory + 1, bytes / 2);
  assert_int_equal(bb_session_run(session, NULL), BB_ERROR_ARGUMENT);
  bb_session_use_workspace(session, memory + 1, bytes + 63);
  check_run(context, session, &s);
  assert_true(c.live <= live);
  bb_session_use_workspace(session, NULL, 0);
  check_run(context, session, &s);
  assert_true(c.live >= live + bytes);
  free(memory);
  bb_session_destroy(session);
  bb_model_release(model);
  free_shares(&s);
  bb_context_destroy(context);
}

/* --- layouts --- */

static void strides_and_a_transposed_output(void **state) {
  bb_context *context = open_context(NULL);
  bb_model *model = compile(context, shares_text);
  shares s = make_shares(9, 6, 4);
  float wide[9 * 10], turned[6 * 9];
  bb_session *session;
  (void)state;
  for (int r = 0; r < 9; r++)
    for (int k = 0; k < 4; k++) wide[r * 10 + 2 * k] = s.x[r * 4 + k];
  assert_int_equal(bb_session_create(context, model, NULL, &session), BB_OK);
  bind_shares(session, &s);
  bb_tensor_view x = view_of(wide, (int64_t[]){9, 4}), y = view_of(turned, (int64_t[]){9, 6});
  x.stride = (int64_t[]){10, 2};
  y.stride = (int64_t[]){1, 9};
  assert_int_equal(bb_session_bind(session, BB_INPUT, 0, &x), BB_OK);
  assert_int_equal(bb_session_bind(session, BB_OUTPUT, 0, &y), BB_OK);
  assert_int_equal(bb_session_run(session, NULL), BB_OK);
  for (int r = 0; r < 9; r++)
    for (int c = 0; c < 6; c++) check_close(&turned[c * 9 + r], &s.want[r * 6 + c], 1);
  bb_session_destroy(session);
  bb_model_release(model);
  free_shares(&s);
  bb_context_destroy(context);
}

/* A cache of room for 6 in each of 3 rows: 5 are there, the sixth is written; nothing else changes. */
static void a_cache_grows_in_place(void **state) {
  bb_context *context = open_context(NULL);
  bb_model *model = compile(context, cache_text);
  float cache[3 * 6 * 4], before[3 * 6 * 4], fresh[3 * 4];
  int64_t stride[] = {24, 4, 1}, past[] = {3, 5, 4}, one[] = {3, 1, 4}, present[] = {3, 6, 4};
  bb_session *session;
  (void)state;
  for (uint32_t i = 0; i < 72; i++) cache[i] = drawn(i);
  for (uint32_t i = 0; i < 12; i++) fresh[i] = drawn(i + 100);
  memcpy(before, cache, sizeof cache);
  assert_int_equal(bb_session_create(context, model, NULL, &session), BB_OK);
  bb_tensor_view in = {.dtype = BB_F32, .rank = 3, .shape = past, .stride = stride, .data = cache};
  bb_tensor_view more = {.dtype = BB_F32, .rank = 3, .shape = one, .data = fresh};
  bb_tensor_view out = {
      .dtype = BB_F32, .rank = 3, .shape = present, .stride = stride, .data = cache};
  assert_int_equal(bb_session_bind(session, BB_INPUT, 0, &in), BB_OK);
  assert_int_equal(bb_session_bind(session, BB_INPUT, 1, &more), BB_OK);
  assert_int_equal(bb_session_bind(session, BB_OUTPUT, 0, &out), BB_OK);
  assert_int_equal(bb_session_run(session, NULL), BB_OK);
  for (uint32_t r = 0; r < 3; r++)
    for (uint32_t i = 0; i < 24; i++)
      assert_true(cache[24 * r + i] == (i < 20 ? before[24 * r + i] : 2 * fresh[4 * r + i - 20]));
  bb_session_destroy(session);
  bb_model_release(model);
  bb_context_destroy(context);
}

static void dlpack_in_and_out(void **state) {
  counter c = {0};
  bb_context *context = open_context(&c);
  bb_model *model = compile(context, shares_text);
  shares s = make_shares(9, 6, 4);
  bb_session *session;
  DLManagedTensorVersioned *taken;
  (void)state;
  assert_int_equal(bb_session_create(context, model, NULL, &session), BB_OK);
  DLTensor x = {.data = s.x - 1,
                .device = {kDLCPU, 0},
                .ndim = 2,
                .dtype = {kDLFloat, 32, 1},
                .shape = (int64_t[]){9, 4},
                .byte_offset = 4};
  DLTensor w = {.data = s.w,
                .device = {kDLCPU, 0},
                .ndim = 2,
                .dtype = {kDLFloat, 32, 1},
                .shape = (int64_t[]){6, 4},
                .strides = (int64_t[]){4, 1}};
  assert_int_equal(bb_session_bind_dlpack(session, BB_INPUT, 0, &x), BB_OK);
  assert_int_equal(bb_session_bind_dlpack(session, BB_INPUT, 1, &w), BB_OK);
  assert_int_equal(bb_session_take_dlpack(session, 0, &taken), BB_ERROR_ARGUMENT);
  assert_int_equal(bb_session_run(session, NULL), BB_OK);
  assert_int_equal(bb_session_take_dlpack(session, 0, &taken), BB_OK);
  assert_int_equal(bb_session_run(session, NULL), BB_OK); /* into other memory */
  bb_tensor_view again;
  assert_int_equal(bb_session_get(session, BB_OUTPUT, 0, &again), BB_OK);
  assert_ptr_not_equal(again.data, taken->dl_tensor.data);
  x.device.device_type = kDLCUDA;
  assert_int_equal(bb_session_bind_dlpack(session, BB_INPUT, 0, &x), BB_ERROR_ARGUMENT);
  w.dtype.lanes = 4;
  assert_int_equal(bb_session_bind_dlpack(session, BB_INPUT, 1, &w), BB_ERROR_ARGUMENT);
  bb_session_destroy(session);
  bb_model_release(model);
  bb_context_destroy(context);
  assert_int_equal(taken->version.major, 1);
  assert_int_equal(taken->dl_tensor.ndim, 2);
  assert_int_equal(taken->dl_tensor.shape[1], 6);
  check_close(taken->dl_tensor.data, s.want, 54);
  taken->deleter(taken);
  assert_int_equal(c.live, 0);
  free_shares(&s);
}

/* --- threads --- */

typedef struct job {
  bb_model *model;
  uint32_t threads;
  shares s;
  bool good;
} job;

static void *run_job(void *argument) {
  job *j = argument;
  bb_context *context = open_context(NULL);
  bb_session_options options = {.version = BB_VERSION, .threads = j->threads};
  bb_session *session;
  assert_int_equal(bb_session_create(context, j->model, &options, &session), BB_OK);
  bb_model_release(j->model); /* the session holds it */
  bind_shares(session, &j->s);
  j->good = true;
  for (int i = 0; i < 20; i++) j->good &= bb_session_run(session, NULL) == BB_OK;
  bb_session_destroy(session);
  bb_context_destroy(context);
  return NULL;
}

static void one_model_many_threads(void **state) {
  enum { JOBS = 6 };
  bb_context *context = open_context(NULL);
  bb_model *model = compile(context, shares_text);
  job jobs[JOBS];
  pthread_t thread[JOBS];
  (void)state;
  for (uint32_t i = 0; i < JOBS; i++) {
    jobs[i] = (job){bb_model_hold(model), 1 + i % 3, make_shares(100, 70, 33), false};
    assert_int_equal(pthread_create(&thread[i], NULL, run_job, &jobs[i]), 0);
  }
  bb_model_release(model);
  for (uint32_t i = 0; i < JOBS; i++) {
    pthread_join(thread[i], NULL);
    assert_true(jobs[i].good);
    check_close(jobs[i].s.y, jobs[i].s.want, 7000);
    assert_memory_equal(jobs[i].s.y, jobs[0].s.y, 28000); /* to the bit */
  }
  for (uint32_t i = 0; i < JOBS; i++) free_shares(&jobs[i].s);
  bb_context_destroy(context);
}

/* The caller's threads, here one after the other and backwards. */
static void borrow(void *user, uint32_t tasks, void (*task)(void *argument, uint32_t number),
                   void *argument) {
  *(uint32_t *)user += tasks;
  while (tasks-- > 0) task(argument, tasks);
}

static void callers_threads(void **state) {
  bb_context *context = open_context(NULL);
  bb_model *model = compile(context, shares_text);
  shares s = make_shares(300, 70, 33);
  uint32_t asked = 0;
  bb_session_options options = {
      .version = BB_VERSION, .threads = 4, .parallel = borrow, .parallel_user = &asked};
  bb_session *session;
  (void)state;
  assert_int_equal(bb_session_create(context, model, &options, &session), BB_OK);
  bind_shares(session, &s);
  check_run(context, session, &s);
  assert_true(asked >= 2 && asked <= 4);
  bb_session_destroy(session);
  bb_model_release(model);
  free_shares(&s);
  bb_context_destroy(context);
}

/* --- observers --- */

typedef struct seen {
  uint32_t events;
  bb_step_event last;
  bool stop;
} seen;

static bool observe(void *user, const bb_step_event *event) {
  seen *s = user;
  s->events++;
  s->last = *event;
  return !s->stop;
}

static void an_observer(void **state) {
  bb_context *context = open_context(NULL);
  bb_model *model = compile(context, shares_text);
  shares s = make_shares(64, 32, 16);
  seen what = {0};
  bb_session_options options = {.version = BB_VERSION, .observe = observe, .observe_user = &what};
  bb_session *session;
  (void)state;
  assert_int_equal(bb_session_create(context, model, &options, &session), BB_OK);
  bind_shares(session, &s);
  check_run(context, session, &s);
  assert_int_equal(what.events, 1);
  assert_true(what.last.seconds > 0);
  assert_true(what.last.bytes == 4.0 * (64 * 16 + 32 * 16 + 64 * 32));
  assert_true(what.last.operations >= 2.0 * 64 * 32 * 16 &&
              what.last.operations <= 8.0 * 64 * 32 * 16);
  what.stop = true;
  assert_int_equal(bb_session_run(session, NULL), BB_ERROR_STOPPED);
  assert_non_null(strstr(bb_context_message(context), what.last.name));
  bb_session_destroy(session);
  bb_model_release(model);
  free_shares(&s);
  bb_context_destroy(context);
}

/* --- what is wrong --- */

static void wrong_calls(void **state) {
  bb_context *context = open_context(NULL);
  bb_model *model = compile(context, shares_text);
  shares s = make_shares(5, 6, 7);
  bb_session_options old = {.version = 1};
  bb_session *session = NULL;
  (void)state;
  assert_int_equal(bb_session_create(context, model, &old, &session), BB_ERROR_ARGUMENT);
  assert_int_equal(bb_session_create(context, model, NULL, &session), BB_OK);
  assert_int_equal(bb_session_run(session, NULL), BB_ERROR_ARGUMENT);
  assert_non_null(strstr(bb_context_message(context), "\"X\" is not bound"));
  bind_shares(session, &s);
  bb_tensor_view bad = view_of(s.w, (int64_t[]){6, 8});
  assert_int_equal(bb_session_bind(session, BB_INPUT, 1, &bad), BB_OK);
  assert_int_equal(bb_session_run(session, NULL), BB_ERROR_INPUT);
  assert_non_null(strstr(bb_context_message(context), "\"W\": shape [6, 8] does not fit [N, K]"));
  bind_shares(session, &s);
  bad = view_of(s.y, (int64_t[]){5, 7});
  assert_int_equal(bb_session_bind(session, BB_OUTPUT, 0, &bad), BB_OK);
  assert_int_equal(bb_session_run(session, NULL), BB_ERROR_INPUT);
  assert_non_null(strstr(bb_context_message(context), "output \"Y\""));
  bad.dtype = BB_F64;
  assert_int_equal(bb_session_bind(session, BB_INPUT, 0, &bad), BB_ERROR_ARGUMENT);
  bad = view_of((float *)((char *)s.x + 1), (int64_t[]){5, 7});
  assert_int_equal(bb_session_bind(session, BB_INPUT, 0, &bad), BB_ERROR_ARGUMENT);
  bad = view_of(s.x, (int64_t[]){5, -7});
  assert_int_equal(bb_session_bind(session, BB_INPUT, 0, &bad), BB_ERROR_ARGUMENT);
  bad = view_of(s.x, (int64_t[]){INT64_MAX, INT64_MAX});
  assert_int_equal(bb_session_bind(session, BB_INPUT, 0, &bad), BB_ERROR_ARGUMENT);
  assert_non_null(strstr(bb_context_message(context), "more elements"));
  bad = view_of(NULL, (int64_t[]){5, 7});
  assert_int_equal(bb_session_bind(session, BB_INPUT, 0, &bad), BB_ERROR_ARGUMENT);
  bad = view_of(s.x, NULL);
  assert_int_equal(bb_session_bind(session, BB_INPUT, 0, &bad), BB_ERROR_ARGUMENT);
  bad = view_of(s.x, (int64_t[]){5, 7});
  bad.stride = (int64_t[]){1, INT64_MIN};
  assert_int_equal(bb_session_bind(session, BB_INPUT, 0, &bad), BB_ERROR_ARGUMENT);
  assert_non_null(strstr(bb_context_message(context), "beyond all memory"));
  bad = view_of(s.y, (int64_t[]){5, 6});
  bad.stride = (int64_t[]){0, 1};
  assert_int_equal(bb_session_bind(session, BB_OUTPUT, 0, &bad), BB_ERROR_ARGUMENT);
  assert_non_null(strstr(bb_context_message(context), "lie in one place"));
  assert_int_equal(bb_session_bind(session, BB_INPUT, 2, &bad), BB_ERROR_ARGUMENT);
  assert_int_equal(bb_session_bind(session, BB_INPUT, 0, NULL), BB_ERROR_ARGUMENT);
  assert_int_equal(bb_session_set(session, "Q", 1), BB_ERROR_ARGUMENT);
  bind_shares(session, &s);
  assert_int_equal(bb_session_run(session, &s), BB_ERROR_ARGUMENT); /* a stream */
  check_run(context, session, &s);
  bb_session_destroy(session);
  bb_model_release(model);
  free_shares(&s);
  bb_context_destroy(context);
}

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  model_path = argv[1];
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_model_many_extents),
      cmocka_unit_test(what_a_model_says),
      cmocka_unit_test(runs_allocate_nothing),
      cmocka_unit_test(failing_allocations),
      cmocka_unit_test(callers_workspace),
      cmocka_unit_test(strides_and_a_transposed_output),
      cmocka_unit_test(a_cache_grows_in_place),
      cmocka_unit_test(dlpack_in_and_out),
      cmocka_unit_test(one_model_many_threads),
      cmocka_unit_test(callers_threads),
      cmocka_unit_test(an_observer),
      cmocka_unit_test(wrong_calls),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
