/* session_test.c - sessions on GPUs through the public headers alone: their own memory, the caller's, streams, graphs,
 * devices, threads.
 */
#include "gear.h"

#include <blockbuster_dlpack.h>
#include <pthread.h>

/* --- the session's own memory and stream --- */

/* The first run, one that is noted, and replays; then other shapes. */
static void runs(void **state) {
  const char *device[] = {"cuda", "hip"};
  (void)state;
  for (int d = 0; d < 2 - gpu.real; d++) {
    gpu_world w = gpu_make(PICK, device[d]);
    for (int64_t rows = 5; rows <= MOST; rows += 35)
      for (int seed = 0; seed < 4; seed++) {
        gpu_numbers n = gpu_draw(rows, seed);
        gpu_write(&w, &n);
        gpu_good(&w, bb_session_run(w.session, NULL));
        assert_true(gpu.real || gpu.waiting() == 0); /* outputs are there */
        gpu_read(&w, &n);
      }
    gpu_end(&w);
    assert_int_equal(gpu_allocations(), 0);
  }
}

static void check_best(const gpu_numbers *n, const float *top) {
  for (int64_t row = 0; row < n->rows; row++)
    for (int k = 0; k < TOP; k++) {
      int above = 0;
      for (int i = 0; i < WIDTH; i++)
        above += 2 * gpu_x(n, row, i) > (double)top[row * TOP + k] + 1e-5;
      assert_true(above <= k);
    }
}

/* The same with their places, by a kernel: in runs of other shapes, and again in those that are noted. */
#define BEST_PLACES                                                                                \
  "constant k : i64[1] = [4]\n"                                                                    \
  "top, at = misc \"TopK\" 18(x, k) {axis=-1} of (f32[M,8], i64[1]) -> (f32[M,4], i64[M,4]) : "    \
  "f32[M,4] : i64[M,4] @ \"best\"\noutput T = elementwise 2*top\n"

/* A step in the middle, of the processor's or not. */
static void step_between(const char *text) {
  gpu_world w = gpu_make(text, "cuda");
  bb_model_info info;
  bb_model_get_info(w.model, &info);
  assert_string_equal(info.device, "cuda");
  assert_int_equal(info.misc, 2);
  for (int seed = 0; seed < 9; seed++) {
    gpu_numbers n = gpu_draw(9 + seed / 3, seed);
    float top[MOST * TOP];
    gpu_write(&w, &n);
    gpu_good(&w, bb_session_run(w.session, NULL));
    gpu_read(&w, &n);
    gpu_good(&w, bb_session_read(w.session, BB_OUTPUT, 1, top, (size_t)n.rows * TOP * sizeof *top));
    check_best(&n, top);
  }
  gpu_end(&w);
  assert_int_equal(gpu_allocations(), 0);
}

static void steps_of_the_processor(void **state) {
  (void)state;
  step_between(PICK BEST);
}

static void steps_by_kernels(void **state) {
  (void)state;
  step_between(PICK BEST_PLACES);
}

/* --- the caller's memory and streams --- */

/* Copies in, run, copy out, all in one stream that nobody waits for in between. */
static void streams(void **state) {
  (void)state;
  gpu_world w = gpu_make(PICK, "cuda");
  gpu_place p = gpu_settle(0);
  gpu_bind(&w, &p, 11);
  for (int seed = 0; seed < 4; seed++) {
    gpu_numbers n = gpu_draw(11, seed);
    gpu_fill(&p, &n);
    gpu_good(&w, bb_session_run(w.session, p.stream));
    /* The first takes memory; in others neither copies nor launches are waited for. */
    assert_true(gpu.real || !seed || gpu.waiting() > 2);
    gpu_take(&p, &n);
    gpu_good(&w, bb_session_wait(w.session));
  }
  gpu_pointer before = p.y;
  assert_int_equal(gpu.allocate(&p.y, MOST * WIDTH * sizeof(float)), 0);
  gpu_bind(&w, &p, 11); /* the output moves */
  gpu_numbers n = gpu_draw(11, 5);
  gpu_fill(&p, &n);
  assert_int_equal(gpu.wait(p.stream), 0);
  gpu_good(&w, bb_session_run(w.session, (void *)1)); /* the default stream */
  gpu.free(before);
  gpu_good(&w, bb_session_wait(w.session));
  gpu_take(&p, &n);
  gpu_end(&w);
  gpu_leave(&p, 0);
  assert_int_equal(gpu_allocations(), 0);
}

static void capture(void **state) {
  enum { GLOBAL = 0 };
  void *graph, *made;
  (void)state;
  gpu_world w = gpu_make(PICK, "cuda");
  gpu_place p = gpu_settle(0);
  gpu_bind(&w, &p, 17);
  for (int warm = 0; warm < 2; warm++) {
    gpu_good(&w, bb_session_prepare(w.session));
    assert_int_equal(gpu.capture(p.stream, GLOBAL), 0);
    gpu_good(&w, bb_session_run(w.session, p.stream));
    assert_int_equal(gpu.captured(p.stream, &graph), 0);
    assert_int_equal(gpu.make(&made, graph, 0), 0);
    gpu.drop(graph);
    for (int seed = 1; seed < 4; seed++) {
      gpu_numbers n = gpu_draw(17, seed);
      gpu_fill(&p, &n);
      assert_int_equal(gpu.launch(made, p.stream), 0);
      gpu_take(&p, &n);
    }
    gpu.drop_made(made);
    for (int again = 0; again < 3; again++) gpu_good(&w, bb_session_run(w.session, NULL));
  }
  gpu_end(&w);
  gpu_leave(&p, 0);
  assert_int_equal(gpu_allocations(), 0);
}

/* --- sessions one behind the other in a capture --- */

enum { ARRAYS = 6, SESSIONS = 12, MIXED = 512, MIXED_ROWS = 300, MIXED_SIZE = MIXED * MIXED_ROWS };
#define MIX                                                                                        \
  "blockbuster 1\nprogram mix\ndim M\ninput X : f32[M,512]\ninput W : f32[M,512]\n"                \
  "output Y = elementwise 0.5*X-W\n"

/* Which arrays a session reads, and which it writes. */
typedef struct mixing {
  int x, w, y;
} mixing;

static void mix_at(const gpu_world *w, bb_session *session, const gpu_pointer *array, mixing m) {
  int64_t shape[2] = {MIXED_ROWS, MIXED};
  const int of[3] = {m.x, m.w, m.y};
  for (int i = 0; i < 3; i++) {
    bb_tensor_view view = {BB_F32, 2, shape, NULL, (void *)(uintptr_t)array[of[i]]};
    gpu_good(w, bb_session_bind(session, i < 2 ? BB_INPUT : BB_OUTPUT, i % 2, &view));
  }
}

/* Some read what the one before them wrote, some what one long before did, some write over what others read. */
static mixing draw_mixing(unsigned *state) {
  int of[3];
  for (int i = 0; i < 3; i++) {
    do of[i] = (int)((*state = *state * 1103515245 + 12345) >> 16) % ARRAYS;
    while (i == 2 && (of[2] == of[0] || of[2] == of[1]));
  }
  return (mixing){of[0], of[1], of[2]};
}

static void chains(void **state) {
  static float host[ARRAYS][MIXED_SIZE], read[MIXED_SIZE];
  gpu_pointer array[ARRAYS];
  bb_session *session[SESSIONS];
  void *graph, *made;
  unsigned seed = 1;
  (void)state;
  gpu_world w = gpu_make(MIX, "cuda");
  gpu_place p = gpu_settle(0);
  for (int i = 0; i < ARRAYS; i++) assert_int_equal(gpu.allocate(&array[i], sizeof host[i]), 0);
  for (int chain = 0; chain < 4; chain++) {
    mixing mixed[SESSIONS];
    for (int i = 0; i < ARRAYS; i++) {
      for (int k = 0; k < MIXED_SIZE; k++) host[i][k] = (float)((k * 7 + i * 11) % 17 - 8);
      assert_int_equal(gpu.in(array[i], host[i], sizeof host[i], p.stream), 0);
    }
    for (int i = 0; i < SESSIONS; i++) {
      mixed[i] = draw_mixing(&seed);
      gpu_good(&w, bb_session_create(w.context, w.model, NULL, &session[i]));
      mix_at(&w, session[i], array, mixed[i]);
      gpu_good(&w, bb_session_prepare(session[i]));
    }
    assert_int_equal(gpu.capture(p.stream, 0), 0);
    for (int i = 0; i < SESSIONS; i++) gpu_good(&w, bb_session_run(session[i], p.stream));
    assert_int_equal(gpu.captured(p.stream, &graph), 0);
    assert_int_equal(gpu.make(&made, graph, 0), 0);
    gpu.drop(graph);
    for (int round = 0; round < 2; round++) {
      assert_int_equal(gpu.launch(made, p.stream), 0);
      for (int i = 0; i < SESSIONS; i++)
        for (int k = 0; k < MIXED_SIZE; k++)
          host[mixed[i].y][k] = 0.5f * host[mixed[i].x][k] - host[mixed[i].w][k];
    }
    for (int i = 0; i < ARRAYS; i++) {
      assert_int_equal(gpu.out(read, array[i], sizeof read, p.stream), 0);
      assert_int_equal(gpu.wait(p.stream), 0);
      assert_memory_equal(read, host[i], sizeof read);
    }
    gpu.drop_made(made);
    for (int i = 0; i < SESSIONS; i++) bb_session_destroy(session[i]);
  }
  for (int i = 0; i < ARRAYS; i++) gpu.free(array[i]);
  gpu_end(&w);
  gpu_leave(&p, 0);
  assert_int_equal(gpu_allocations(), 0);
}

/* Memory for the longest run serves shorter ones. */
static void reserved(void **state) {
  (void)state;
  gpu_world w = gpu_make(PICK, "cuda");
  gpu_place p = gpu_settle(0);
  gpu_bind(&w, &p, 3);
  bb_setting longest = {"M", MOST};
  gpu_good(&w, bb_session_reserve(w.session, 1, &longest));
  size_t bytes = bb_session_workspace(w.session);
  gpu_serve(&w, &p, 3, 0);
  long there = gpu_allocations();
  for (int64_t rows = MOST; rows > 0; rows -= 13) {
    gpu_bind(&w, &p, rows);
    gpu_serve(&w, &p, rows, (int)rows);
    assert_int_equal(bb_session_workspace(w.session), bytes);
  }
  assert_int_equal(gpu_allocations(), there);
  gpu_end(&w);
  gpu_leave(&p, 0);
  assert_int_equal(gpu_allocations(), 0);
}

/* Views as a tensor library makes them: every other row, turned, from an element on where none begins.  They are copied there and
 * back on the device, in graphs as well. */
static void views(void **state) {
  (void)state;
  enum { ROWS = 5 };
  static const struct {
    int64_t first, stride[2];
  } tried[] = {
      {0, {2 * WIDTH, 1}}, {1, {WIDTH, 1}}, {3, {1, ROWS}}, {ROWS * WIDTH - 1, {-WIDTH, -1}}};
  gpu_world w = gpu_make(PICK, "cuda");
  gpu_place p = gpu_settle(0);
  for (size_t i = 0; i < sizeof tried / sizeof *tried; i++) {
    const int64_t *stride = tried[i].stride;
    int64_t shape[2] = {ROWS, WIDTH};
    bb_tensor_view x = {BB_F32, 2, shape, stride, (float *)(uintptr_t)p.x + tried[i].first};
    bb_tensor_view y = {BB_F32, 2, shape, stride, (float *)(uintptr_t)p.y + tried[i].first};
    gpu_bind(&w, &p, ROWS);
    gpu_good(&w, bb_session_bind(w.session, BB_INPUT, 0, &x));
    gpu_good(&w, bb_session_bind(w.session, BB_OUTPUT, 0, &y));
    for (int seed = 0; seed < 4; seed++) {
      gpu_numbers n = gpu_draw(ROWS, seed), laid = n;
      float got[MOST * WIDTH], packed[MOST * WIDTH], read[ROWS * WIDTH];
      for (int64_t e = 0; e < ROWS * WIDTH; e++)
        laid.x[tried[i].first + e / WIDTH * stride[0] + e % WIDTH * stride[1]] = n.x[e];
      laid.rows = MOST; /* all of it */
      gpu_fill(&p, &laid);
      gpu_good(&w, bb_session_run(w.session, p.stream));
      assert_int_equal(gpu.out(got, p.y, sizeof got, p.stream), 0);
      assert_int_equal(gpu.wait(p.stream), 0);
      for (int64_t e = 0; e < ROWS * WIDTH; e++)
        packed[e] = got[tried[i].first + e / WIDTH * stride[0] + e % WIDTH * stride[1]];
      gpu_check(&n, packed);
      gpu_good(&w, bb_session_read(w.session, BB_OUTPUT, 0, read, sizeof read));
      assert_memory_equal(read, packed, sizeof read);
    }
  }
  gpu_end(&w);
  gpu_leave(&p, 0);
  assert_int_equal(gpu_allocations(), 0);
}

/* Where elements are greater than 1. */
#define FAR                                                                                        \
  "symbol K at most 8*M\nfar = elementwise 1<weights\n"                                            \
  "places = misc \"NonZero\" 13(far) of (bool[M,8]) -> (i64[2,K]) : i64[2,K]\n"                    \
  "output P = elementwise places+1\n"

static void refuse_capture(const char *text) {
  void *graph;
  gpu_world w = gpu_make(text, "cuda");
  gpu_place p = gpu_settle(0);
  gpu_bind(&w, &p, 3);
  gpu_good(&w, bb_session_prepare(w.session));
  assert_int_equal(gpu.capture(p.stream, 0), 0);
  gpu_refused(&w, bb_session_run(w.session, p.stream), BB_ERROR_IO, "capturing");
  assert_int_not_equal(gpu.captured(p.stream, &graph), 0);
  gpu_end(&w);
  gpu_leave(&p, 0);
}

/* Neither a step of the processor's can be captured, nor one that tells an extent. */
static void no_capture(void **state) {
  (void)state;
  refuse_capture(PICK BEST);
  refuse_capture(PICK FAR);
}

static void workspaces(void **state) {
  gpu_pointer memory;
  (void)state;
  gpu_world w = gpu_make(PICK, "cuda");
  gpu_place p = gpu_settle(0);
  gpu_bind(&w, &p, 13);
  gpu_good(&w, bb_session_prepare(w.session));
  size_t bytes = bb_session_workspace(w.session) + 64;
  assert_true(bytes > 13 * WIDTH * sizeof(float));
  assert_int_equal(gpu.allocate(&memory, bytes), 0);
  for (int small = 0; small < 2; small++) {
    gpu_numbers n = gpu_draw(13, small);
    bb_session_use_workspace(w.session, (void *)(uintptr_t)memory, small ? 64 : bytes);
    gpu_fill(&p, &n);
    if (small)
      gpu_refused(&w, bb_session_run(w.session, p.stream), BB_ERROR_ARGUMENT,
                  "the workspace has 64");
    else
      gpu_good(&w, bb_session_run(w.session, p.stream));
    if (!small) gpu_take(&p, &n);
  }
  gpu_end(&w);
  gpu.free(memory);
  gpu_leave(&p, 0);
  assert_int_equal(gpu_allocations(), 0);
}

static void dlpack(void **state) {
  (void)state;
  gpu_world w = gpu_make(PICK, "cuda");
  gpu_place p = gpu_settle(0);
  gpu_numbers n = gpu_draw(7, 2);
  gpu_fill(&p, &n);
  assert_int_equal(gpu.wait(p.stream), 0);
  gpu_bind(&w, &p, 7);
  gpu_good(&w, bb_session_bind(w.session, BB_OUTPUT, 0, NULL));
  int64_t shape[2] = {7, WIDTH};
  DLTensor x = {(void *)(uintptr_t)p.x, {kDLCUDA, 1}, 2, {kDLFloat, 32, 1}, shape, NULL, 0};
  gpu_refused(&w, bb_session_bind_dlpack(w.session, BB_INPUT, 0, &x), BB_ERROR_ARGUMENT,
              "device 2:1");
  x.device = (DLDevice){kDLCPU, 0};
  gpu_refused(&w, bb_session_bind_dlpack(w.session, BB_INPUT, 0, &x), BB_ERROR_ARGUMENT,
              "device 1:0");
  x.device = (DLDevice){kDLCUDA, 0};
  gpu_good(&w, bb_session_bind_dlpack(w.session, BB_INPUT, 0, &x));
  gpu_good(&w, bb_session_run(w.session, NULL));
  DLManagedTensorVersioned *y;
  gpu_good(&w, bb_session_take_dlpack(w.session, 0, &y));
  assert_int_equal(y->dl_tensor.device.device_type, kDLCUDA);
  assert_int_equal(y->dl_tensor.device.device_id, 0);
  gpu_end(&w);
  float held[MOST * WIDTH];
  size_t bytes = (size_t)n.rows * WIDTH * sizeof *held;
  assert_int_equal(gpu.out(held, (gpu_pointer)(uintptr_t)y->dl_tensor.data, bytes, p.stream), 0);
  assert_int_equal(gpu.wait(p.stream), 0);
  gpu_check(&n, held);
  y->deleter(y);
  gpu_leave(&p, 0);
  assert_int_equal(gpu_allocations(), 0);
}

/* --- devices --- */

static void two_devices(void **state) {
  int count = 0;
  (void)state;
  gpu_world any = gpu_make(PICK, "cuda");
  assert_int_equal(gpu.count(&count), 0);
  gpu_end(&any);
  if (count < 2) skip();
  gpu_world w[2] = {gpu_make(PICK, "cuda:0"), gpu_make(PICK, "cuda:1")};
  for (int seed = 0; seed < 3; seed++)
    for (int d = 0; d < 2; d++) {
      gpu_place p = gpu_settle(d);
      gpu_numbers n = gpu_draw(19, seed + d);
      gpu_bind(&w[d], &p, 19);
      gpu_fill(&p, &n);
      gpu_good(&w[d], bb_session_run(w[d].session, p.stream));
      gpu_take(&p, &n);
      int64_t shape[2] = {19, WIDTH};
      bb_tensor_view x = {BB_F32, 2, shape, NULL, (void *)(uintptr_t)p.x};
      gpu_world other = gpu_make(PICK, d ? "cuda:0" : "cuda:1");
      gpu_refused(&other, bb_session_bind(other.session, BB_INPUT, 0, &x), BB_ERROR_ARGUMENT,
                  "it is on another device");
      gpu_end(&other);
      gpu_leave(&p, d);
    }
  bb_model *model;
  gpu_refused(&w[0], gpu_compile(w[0].context, PICK, "cuda:9", &model), BB_ERROR_ARGUMENT,
              "there is no CUDA device 9: there are 2");
  gpu_refused(&w[0], gpu_compile(w[0].context, PICK, "cuda:x", &model), BB_ERROR_ARGUMENT,
              "there is no device cuda:x");
  gpu_end(&w[0]);
  gpu_end(&w[1]);
  assert_int_equal(gpu_allocations(), 0);
}

/* --- threads --- */

typedef struct thread {
  bb_model *model;
  int seed;
  bool good;
} thread;

static void *run_alone(void *argument) {
  thread *t = argument;
  gpu_world w = {.model = t->model};
  if (bb_context_create(NULL, &w.context) != BB_OK) return NULL;
  if (bb_session_create(w.context, w.model, NULL, &w.session) != BB_OK) return NULL;
  for (int i = 0; i < 6; i++) {
    gpu_numbers n = gpu_draw(3 + t->seed, i);
    gpu_write(&w, &n);
    if (bb_session_run(w.session, NULL) != BB_OK) return NULL;
    gpu_read(&w, &n);
  }
  bb_session_destroy(w.session);
  bb_context_destroy(w.context);
  t->good = true;
  return NULL;
}

static void threads(void **state) {
  enum { THREADS = 4 };
  pthread_t id[THREADS];
  thread t[THREADS];
  (void)state;
  gpu_world w = gpu_make(PICK, "cuda");
  for (int i = 0; i < THREADS; i++) {
    t[i] = (thread){w.model, i, false};
    assert_int_equal(pthread_create(&id[i], NULL, run_alone, &t[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) {
    pthread_join(id[i], NULL);
    assert_true(t[i].good);
  }
  gpu_end(&w);
  assert_int_equal(gpu_allocations(), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(runs),
                                     cmocka_unit_test(steps_of_the_processor),
                                     cmocka_unit_test(steps_by_kernels),
                                     cmocka_unit_test(streams),
                                     cmocka_unit_test(capture),
                                     cmocka_unit_test(chains),
                                     cmocka_unit_test(reserved),
                                     cmocka_unit_test(views),
                                     cmocka_unit_test(no_capture),
                                     cmocka_unit_test(workspaces),
                                     cmocka_unit_test(dlpack),
                                     cmocka_unit_test(two_devices),
                                     cmocka_unit_test(threads)};
  return cmocka_run_group_tests(tests, gpu_open, NULL);
}
