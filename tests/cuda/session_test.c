/* session_test.c - sessions on GPUs through the public headers alone, by the tests' own driver and compiler: the caller's
 * memory, streams, graphs and threads, two devices, and what is refused.
 *
 * BLOCKBUSTER_CUDA names the driver; device memory is out of this program's reach (fake_memory.c).  With a real driver the
 * same runs on a real device, but for what only the tests' own can do.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <blockbuster.h>
#include <blockbuster_dlpack.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TABLE = 6, WIDTH = 8, TOP = 4, MOST = 40 };

/* A row of a table for each index, and what is made of it; `look_up` has a kernel on the device. */
#define PICK                                                                                       \
  "blockbuster 1\nprogram pick\ndim M\ninput X : f32[M,8]\ninput I : i64[M]\n"                     \
  "constant table : f32[6,8] = [0, 1, 2, 3, 4, 5, 6, 7, 1, 1, 1, 1, 1, 1, 1, 1, "                  \
  "7, 6, 5, 4, 3, 2, 1, 0, 2, 0, 2, 0, 2, 0, 2, 0, 1, 2, 1, 2, 1, 2, 1, 2, 3, 3, 3, 3, 0, 0, 0, "  \
  "0]\n"                                                                                           \
  "picked = misc \"Gather\" 13(table, I) {axis=0} : f32[M,8] @ \"look_up\"\n"                      \
  "x = elementwise X+picked\n"                                                                     \
  "weights = elementwise exp(0.25*x)\n"                                                            \
  "sum = reduce sum(weights, axis=-1, keep)\n"                                                     \
  "output Y = elementwise weights/sum\n"
/* The largest of each row, which no kernel of a GPU finds. */
#define BEST                                                                                       \
  "constant k : i64[1] = [4]\n"                                                                    \
  "top, at = misc \"TopK\" 18(x, k) {axis=-1} of (f32[M,8], i64[1]) -> (f32[M,4], i64[M,4]) : "    \
  "f32[M,4] : i64[M,4] @ \"best\"\n"                                                               \
  "output T = elementwise 2*top\n"

/* --- the device, as a program that uses CUDA has it --- */

typedef unsigned long long pointer;
static struct {
  int (*push)(void *);
  int (*pop)(void **);
  int (*retain)(void **, int);
  int (*release)(int);
  int (*allocate)(pointer *, size_t);
  int (*free)(pointer);
  int (*in)(pointer, const void *, size_t, void *);
  int (*out)(void *, pointer, size_t, void *);
  int (*stream)(void **, unsigned);
  int (*end)(void *);
  int (*wait)(void *);
  int (*capture)(void *, int);
  int (*captured)(void *, void **);
  int (*make)(void **, void *, unsigned long long);
  int (*launch)(void *, void *);
  int (*drop)(void *), (*drop_made)(void *);
  int (*count)(int *);
  bool real;
  void (*fill_after)(long);
  long (*allocations)(void);
  long (*waiting)(void);
} gpu;

static long allocations(void) {
  return gpu.real ? 0 : gpu.allocations();
}

static void find(void *library, const char *name, void *to) {
  void *found = dlsym(library, name);
  assert_non_null(found);
  memcpy(to, &found, sizeof found);
}

static int open_driver(void **state) {
  void *library = dlopen(getenv("BLOCKBUSTER_CUDA"), RTLD_NOW);
  (void)state;
  if (!library) return 1;
  find(library, "cuCtxPushCurrent_v2", &gpu.push);
  find(library, "cuCtxPopCurrent_v2", &gpu.pop);
  find(library, "cuDevicePrimaryCtxRetain", &gpu.retain);
  find(library, "cuDevicePrimaryCtxRelease_v2", &gpu.release);
  find(library, "cuMemAlloc_v2", &gpu.allocate);
  find(library, "cuMemFree_v2", &gpu.free);
  find(library, "cuMemcpyHtoDAsync_v2", &gpu.in);
  find(library, "cuMemcpyDtoHAsync_v2", &gpu.out);
  find(library, "cuStreamCreate", &gpu.stream);
  find(library, "cuStreamDestroy_v2", &gpu.end);
  find(library, "cuStreamSynchronize", &gpu.wait);
  find(library, "cuStreamBeginCapture_v2", &gpu.capture);
  find(library, "cuStreamEndCapture", &gpu.captured);
  find(library, "cuGraphInstantiateWithFlags", &gpu.make);
  find(library, "cuGraphLaunch", &gpu.launch);
  find(library, "cuGraphDestroy", &gpu.drop);
  find(library, "cuGraphExecDestroy", &gpu.drop_made);
  find(library, "cuDeviceGetCount", &gpu.count);
  gpu.real = !dlsym(library, "fake_allocations");
  if (gpu.real) return 0;
  find(library, "fake_fill_after", &gpu.fill_after);
  find(library, "fake_allocations", &gpu.allocations);
  find(library, "fake_waiting", &gpu.waiting);
  return 0;
}

/* --- a model, and what it is to give --- */

typedef struct world {
  bb_context *context;
  bb_model *model;
  bb_session *session;
} world;

static bb_status compile(bb_context *context, const char *text, const char *device,
                         bb_model **model) {
  bb_compile_options options = {.version = BB_VERSION, .device = device};
  bb_program *program;
  bb_status status = bb_program_parse(context, "text", text, strlen(text), &program);
  if (status != BB_OK) return status;
  status = bb_program_compile(program, &options, model);
  bb_program_destroy(program);
  return status;
}

static void good(const world *w, bb_status status) {
  if (status != BB_OK) fail_msg("%s", bb_context_message(w->context));
}

static void refused(const world *w, bb_status status, bb_status want, const char *says) {
  assert_int_equal(status, want);
  if (!strstr(bb_context_message(w->context), says))
    fail_msg("%s, not %s", bb_context_message(w->context), says);
}

static world make(const char *text, const char *device) {
  world w = {0};
  assert_int_equal(bb_context_create(NULL, &w.context), BB_OK);
  good(&w, compile(w.context, text, device, &w.model));
  good(&w, bb_session_create(w.context, w.model, NULL, &w.session));
  return w;
}

static void end(world *w) {
  bb_session_destroy(w->session);
  bb_model_release(w->model);
  bb_context_destroy(w->context);
}

typedef struct numbers {
  int64_t rows;
  float x[MOST * WIDTH];
  int64_t index[MOST];
} numbers;

static numbers draw(int64_t rows, int seed) {
  numbers n = {.rows = rows};
  for (int64_t i = 0; i < rows * WIDTH; i++)
    n.x[i] = (float)((i * 7 + seed * 31) % 53) / 16 + (float)(i % WIDTH) / 64;
  for (int64_t i = 0; i < rows; i++) n.index[i] = (i * 5 + seed) % TABLE - (i % 3 == 0 ? TABLE : 0);
  return n;
}

static void write_inputs(const world *w, const numbers *n) {
  int64_t shape[2] = {n->rows, WIDTH};
  bb_tensor_view x = {BB_F32, 2, shape, NULL, (void *)n->x};
  bb_tensor_view index = {BB_I64, 1, shape, NULL, (void *)n->index};
  good(w, bb_session_write(w->session, 0, &x));
  good(w, bb_session_write(w->session, 1, &index));
}

static double x_of(const numbers *n, int64_t row, int col) {
  static const float table[TABLE][WIDTH] = {{0, 1, 2, 3, 4, 5, 6, 7}, {1, 1, 1, 1, 1, 1, 1, 1},
                                            {7, 6, 5, 4, 3, 2, 1, 0}, {2, 0, 2, 0, 2, 0, 2, 0},
                                            {1, 2, 1, 2, 1, 2, 1, 2}, {3, 3, 3, 3, 0, 0, 0, 0}};
  int64_t index = n->index[row] < 0 ? n->index[row] + TABLE : n->index[row];
  return (double)n->x[row * WIDTH + col] + (double)table[index][col];
}

static void check_shares(const numbers *n, const float *y) {
  for (int64_t row = 0; row < n->rows; row++) {
    double sum = 0;
    for (int i = 0; i < WIDTH; i++) sum += exp(0.25 * x_of(n, row, i));
    for (int i = 0; i < WIDTH; i++)
      assert_true(fabs((double)y[row * WIDTH + i] - exp(0.25 * x_of(n, row, i)) / sum) < 1e-5);
  }
}

static void check_best(const numbers *n, const float *top) {
  for (int64_t row = 0; row < n->rows; row++)
    for (int k = 0; k < TOP; k++) {
      int above = 0;
      for (int i = 0; i < WIDTH; i++)
        above += 2 * x_of(n, row, i) > (double)top[row * TOP + k] + 1e-5;
      assert_true(above <= k);
    }
}

static void read_and_check(const world *w, const numbers *n) {
  float y[MOST * WIDTH];
  good(w, bb_session_read(w->session, BB_OUTPUT, 0, y, (size_t)n->rows * WIDTH * sizeof *y));
  check_shares(n, y);
}

/* --- the session's own memory and stream --- */

/* The first run, one that is noted, and replays; then other shapes. */
static void runs(void **state) {
  const char *device[] = {"cuda", "hip"};
  (void)state;
  for (int d = 0; d < 2 - gpu.real; d++) {
    world w = make(PICK, device[d]);
    for (int64_t rows = 5; rows <= MOST; rows += 35)
      for (int seed = 0; seed < 4; seed++) {
        numbers n = draw(rows, seed);
        write_inputs(&w, &n);
        good(&w, bb_session_run(w.session, NULL));
        assert_true(gpu.real || gpu.waiting() == 0); /* outputs are there */
        read_and_check(&w, &n);
      }
    end(&w);
    assert_int_equal(allocations(), 0);
  }
}

/* A step of the processor's in the middle. */
static void steps_of_the_processor(void **state) {
  (void)state;
  world w = make(PICK BEST, "cuda");
  bb_model_info info;
  bb_model_get_info(w.model, &info);
  assert_string_equal(info.device, "cuda");
  assert_int_equal(info.misc, 2);
  for (int seed = 0; seed < 3; seed++) {
    numbers n = draw(9 + seed, seed);
    float top[MOST * TOP];
    write_inputs(&w, &n);
    good(&w, bb_session_run(w.session, NULL));
    read_and_check(&w, &n);
    good(&w, bb_session_read(w.session, BB_OUTPUT, 1, top, (size_t)n.rows * TOP * sizeof *top));
    check_best(&n, top);
  }
  end(&w);
  assert_int_equal(allocations(), 0);
}

/* --- the caller's --- */

typedef struct place {
  void *context, *stream;
  pointer x, index, y;
} place;

/* The device's context is current from here on. */
static place settle(int device) {
  place p;
  assert_int_equal(gpu.retain(&p.context, device), 0);
  assert_int_equal(gpu.push(p.context), 0);
  assert_int_equal(gpu.stream(&p.stream, 1), 0);
  assert_int_equal(gpu.allocate(&p.x, MOST * WIDTH * sizeof(float)), 0);
  assert_int_equal(gpu.allocate(&p.index, MOST * sizeof(int64_t)), 0);
  assert_int_equal(gpu.allocate(&p.y, MOST * WIDTH * sizeof(float)), 0);
  return p;
}

static void leave(place *p, int device) {
  void *context;
  gpu.free(p->x), gpu.free(p->index), gpu.free(p->y);
  gpu.end(p->stream);
  assert_int_equal(gpu.pop(&context), 0);
  assert_ptr_equal(context, p->context); /* the library left it as it was */
  gpu.release(device);
}

static void fill(const place *p, const numbers *n) {
  assert_int_equal(gpu.in(p->x, n->x, (size_t)n->rows * WIDTH * sizeof(float), p->stream), 0);
  assert_int_equal(gpu.in(p->index, n->index, (size_t)n->rows * sizeof(int64_t), p->stream), 0);
}

static void bind(const world *w, const place *p, int64_t rows) {
  int64_t shape[2] = {rows, WIDTH};
  bb_tensor_view x = {BB_F32, 2, shape, NULL, (void *)(uintptr_t)p->x};
  bb_tensor_view index = {BB_I64, 1, shape, NULL, (void *)(uintptr_t)p->index};
  bb_tensor_view y = {BB_F32, 2, shape, NULL, (void *)(uintptr_t)p->y};
  good(w, bb_session_bind(w->session, BB_INPUT, 0, &x));
  good(w, bb_session_bind(w->session, BB_INPUT, 1, &index));
  good(w, bb_session_bind(w->session, BB_OUTPUT, 0, &y));
}

static void take(const place *p, const numbers *n) {
  float y[MOST * WIDTH];
  assert_int_equal(gpu.out(y, p->y, (size_t)n->rows * WIDTH * sizeof *y, p->stream), 0);
  assert_int_equal(gpu.wait(p->stream), 0);
  check_shares(n, y);
}

/* Copies in, run, copy out, all in one stream that nobody waits for in between. */
static void streams(void **state) {
  (void)state;
  world w = make(PICK, "cuda");
  place p = settle(0);
  bind(&w, &p, 11);
  for (int seed = 0; seed < 4; seed++) {
    numbers n = draw(11, seed);
    fill(&p, &n);
    good(&w, bb_session_run(w.session, p.stream));
    /* The first takes memory; in others neither copies nor launches are waited for. */
    assert_true(gpu.real || !seed || gpu.waiting() > 2);
    take(&p, &n);
    good(&w, bb_session_wait(w.session));
  }
  pointer before = p.y;
  assert_int_equal(gpu.allocate(&p.y, MOST * WIDTH * sizeof(float)), 0);
  bind(&w, &p, 11); /* the output moves */
  numbers n = draw(11, 5);
  fill(&p, &n);
  assert_int_equal(gpu.wait(p.stream), 0);
  good(&w, bb_session_run(w.session, (void *)1)); /* the default stream */
  gpu.free(before);
  good(&w, bb_session_wait(w.session));
  take(&p, &n);
  end(&w);
  leave(&p, 0);
  assert_int_equal(allocations(), 0);
}

static void capture(void **state) {
  enum { GLOBAL = 0 };
  void *graph, *made;
  (void)state;
  world w = make(PICK, "cuda");
  place p = settle(0);
  bind(&w, &p, 17);
  for (int warm = 0; warm < 2; warm++) {
    good(&w, bb_session_prepare(w.session));
    assert_int_equal(gpu.capture(p.stream, GLOBAL), 0);
    good(&w, bb_session_run(w.session, p.stream));
    assert_int_equal(gpu.captured(p.stream, &graph), 0);
    assert_int_equal(gpu.make(&made, graph, 0), 0);
    gpu.drop(graph);
    for (int seed = 1; seed < 4; seed++) {
      numbers n = draw(17, seed);
      fill(&p, &n);
      assert_int_equal(gpu.launch(made, p.stream), 0);
      take(&p, &n);
    }
    gpu.drop_made(made);
    for (int again = 0; again < 3; again++) good(&w, bb_session_run(w.session, NULL));
  }
  end(&w);
  leave(&p, 0);
  assert_int_equal(allocations(), 0);
}

/* Memory for the longest run serves shorter ones. */
static void reserved(void **state) {
  (void)state;
  world w = make(PICK, "cuda");
  place p = settle(0);
  bind(&w, &p, 3);
  bb_setting longest = {"M", MOST};
  good(&w, bb_session_reserve(w.session, 1, &longest));
  size_t bytes = bb_session_workspace(w.session);
  numbers first = draw(3, 0);
  fill(&p, &first);
  good(&w, bb_session_run(w.session, p.stream));
  take(&p, &first);
  long there = allocations();
  for (int64_t rows = MOST; rows > 0; rows -= 13) {
    numbers n = draw(rows, (int)rows);
    bind(&w, &p, rows);
    fill(&p, &n);
    good(&w, bb_session_run(w.session, p.stream));
    take(&p, &n);
    assert_int_equal(bb_session_workspace(w.session), bytes);
  }
  assert_int_equal(allocations(), there);
  end(&w);
  leave(&p, 0);
  assert_int_equal(allocations(), 0);
}

/* A step of the processor's cannot be captured. */
static void no_capture(void **state) {
  void *graph;
  (void)state;
  world w = make(PICK BEST, "cuda");
  place p = settle(0);
  bind(&w, &p, 3);
  good(&w, bb_session_prepare(w.session));
  assert_int_equal(gpu.capture(p.stream, 0), 0);
  refused(&w, bb_session_run(w.session, p.stream), BB_ERROR_IO, "capturing");
  assert_int_not_equal(gpu.captured(p.stream, &graph), 0);
  end(&w);
  leave(&p, 0);
}

static void workspaces(void **state) {
  pointer memory;
  (void)state;
  world w = make(PICK, "cuda");
  place p = settle(0);
  bind(&w, &p, 13);
  good(&w, bb_session_prepare(w.session));
  size_t bytes = bb_session_workspace(w.session) + 64;
  assert_true(bytes > 13 * WIDTH * sizeof(float));
  assert_int_equal(gpu.allocate(&memory, bytes), 0);
  for (int small = 0; small < 2; small++) {
    numbers n = draw(13, small);
    bb_session_use_workspace(w.session, (void *)(uintptr_t)memory, small ? 64 : bytes);
    fill(&p, &n);
    if (small)
      refused(&w, bb_session_run(w.session, p.stream), BB_ERROR_ARGUMENT, "the workspace has 64");
    else
      good(&w, bb_session_run(w.session, p.stream));
    if (!small) take(&p, &n);
  }
  end(&w);
  gpu.free(memory);
  leave(&p, 0);
  assert_int_equal(allocations(), 0);
}

static void dlpack(void **state) {
  (void)state;
  world w = make(PICK, "cuda");
  place p = settle(0);
  numbers n = draw(7, 2);
  fill(&p, &n);
  assert_int_equal(gpu.wait(p.stream), 0);
  bind(&w, &p, 7);
  good(&w, bb_session_bind(w.session, BB_OUTPUT, 0, NULL));
  int64_t shape[2] = {7, WIDTH};
  DLTensor x = {(void *)(uintptr_t)p.x, {kDLCUDA, 1}, 2, {kDLFloat, 32, 1}, shape, NULL, 0};
  refused(&w, bb_session_bind_dlpack(w.session, BB_INPUT, 0, &x), BB_ERROR_ARGUMENT, "device 2:1");
  x.device = (DLDevice){kDLCPU, 0};
  refused(&w, bb_session_bind_dlpack(w.session, BB_INPUT, 0, &x), BB_ERROR_ARGUMENT, "device 1:0");
  x.device = (DLDevice){kDLCUDA, 0};
  good(&w, bb_session_bind_dlpack(w.session, BB_INPUT, 0, &x));
  good(&w, bb_session_run(w.session, NULL));
  DLManagedTensorVersioned *y;
  good(&w, bb_session_take_dlpack(w.session, 0, &y));
  assert_int_equal(y->dl_tensor.device.device_type, kDLCUDA);
  assert_int_equal(y->dl_tensor.device.device_id, 0);
  end(&w);
  float held[MOST * WIDTH];
  size_t bytes = (size_t)n.rows * WIDTH * sizeof *held;
  assert_int_equal(gpu.out(held, (pointer)(uintptr_t)y->dl_tensor.data, bytes, p.stream), 0);
  assert_int_equal(gpu.wait(p.stream), 0);
  check_shares(&n, held);
  y->deleter(y);
  leave(&p, 0);
  assert_int_equal(allocations(), 0);
}

/* --- what is refused --- */

static void arrays_refused(void **state) {
  (void)state;
  world w = make(PICK, "cuda");
  place p = settle(0);
  float host[MOST * WIDTH] __attribute__((aligned(64)));
  int64_t shape[2] = {4, WIDTH}, stride[2] = {2 * WIDTH, 1};
  bb_tensor_view x = {BB_F32, 2, shape, NULL, host};
  refused(&w, bb_session_bind(w.session, BB_INPUT, 0, &x), BB_ERROR_ARGUMENT,
          "input \"X\": the array is not in memory of cuda:0");
  x.data = (void *)(uintptr_t)(p.x + 4);
  refused(&w, bb_session_bind(w.session, BB_INPUT, 0, &x), BB_ERROR_ARGUMENT, "multiple of 16");
  x.data = (void *)(uintptr_t)p.x;
  x.stride = stride;
  refused(&w, bb_session_bind(w.session, BB_INPUT, 0, &x), BB_ERROR_ARGUMENT,
          "row-major and dense");
  end(&w);
  leave(&p, 0);
}

static void folders_refused(void **state) {
  bb_compile_options options = {.version = BB_VERSION, .device = "cuda"};
  bb_program *program;
  (void)state;
  world w = {0};
  assert_int_equal(bb_context_create(NULL, &w.context), BB_OK);
  good(&w, bb_program_parse(w.context, "text", PICK, strlen(PICK), &program));
  refused(&w, bb_program_compile_to(program, &options, "/nowhere/folder"), BB_ERROR_UNSUPPORTED,
          "a folder is for the processor");
  bb_program_destroy(program);
  end(&w);
}

/* Each run without a fault after one that has it is right. */
static void faults(void **state) {
  (void)state;
  world w = make(PICK, "cuda");
  place p = settle(0);
  bind(&w, &p, 6);
  for (int i = 0; i < 6; i++) {
    numbers n = draw(6, i);
    if (i % 2) n.index[4] = TABLE;
    fill(&p, &n);
    assert_int_equal(gpu.wait(p.stream), 0);
    void *stream = i < 3 ? NULL : p.stream;
    bb_status status = bb_session_run(w.session, stream);
    if (stream) {
      good(&w, status);
      status = bb_session_wait(w.session);
    }
    if (i % 2)
      refused(&w, status, BB_ERROR_INPUT, "misc node \"look_up\": Gather: an index (element 4");
    else
      good(&w, status);
    if (i % 2 == 0) take(&p, &n);
  }
  end(&w);
  leave(&p, 0);
}

/* --- devices --- */

static void two_devices(void **state) {
  int count = 0;
  (void)state;
  world any = make(PICK, "cuda");
  assert_int_equal(gpu.count(&count), 0);
  end(&any);
  if (count < 2) skip();
  world w[2] = {make(PICK, "cuda:0"), make(PICK, "cuda:1")};
  for (int seed = 0; seed < 3; seed++)
    for (int d = 0; d < 2; d++) {
      place p = settle(d);
      numbers n = draw(19, seed + d);
      bind(&w[d], &p, 19);
      fill(&p, &n);
      good(&w[d], bb_session_run(w[d].session, p.stream));
      take(&p, &n);
      int64_t shape[2] = {19, WIDTH};
      bb_tensor_view x = {BB_F32, 2, shape, NULL, (void *)(uintptr_t)p.x};
      refused(&w[!d], bb_session_bind(w[!d].session, BB_INPUT, 0, &x), BB_ERROR_ARGUMENT,
              "it is on another device");
      leave(&p, d);
    }
  bb_model *model;
  refused(&w[0], compile(w[0].context, PICK, "cuda:9", &model), BB_ERROR_ARGUMENT,
          "there is no CUDA device 9: there are 2");
  refused(&w[0], compile(w[0].context, PICK, "cuda:x", &model), BB_ERROR_ARGUMENT,
          "there is no device cuda:x");
  end(&w[0]);
  end(&w[1]);
  assert_int_equal(allocations(), 0);
}

/* --- threads --- */

typedef struct thread {
  bb_model *model;
  int seed;
  bool good;
} thread;

static void *run_alone(void *argument) {
  thread *t = argument;
  world w = {.model = t->model};
  if (bb_context_create(NULL, &w.context) != BB_OK) return NULL;
  if (bb_session_create(w.context, w.model, NULL, &w.session) != BB_OK) return NULL;
  for (int i = 0; i < 6; i++) {
    numbers n = draw(3 + t->seed, i);
    write_inputs(&w, &n);
    if (bb_session_run(w.session, NULL) != BB_OK) return NULL;
    read_and_check(&w, &n);
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
  world w = make(PICK, "cuda");
  for (int i = 0; i < THREADS; i++) {
    t[i] = (thread){w.model, i, false};
    assert_int_equal(pthread_create(&id[i], NULL, run_alone, &t[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) {
    pthread_join(id[i], NULL);
    assert_true(t[i].good);
  }
  end(&w);
  assert_int_equal(allocations(), 0);
}

/* --- memory --- */

/* Each allocation on the device fails in turn. */
static void out_of_memory(void **state) {
  bool done = false;
  long works = 0;
  (void)state;
  if (gpu.real) skip();
  for (; !done; works++) {
    world w = {0};
    assert_int_equal(bb_context_create(NULL, &w.context), BB_OK);
    gpu.fill_after(works);
    bb_status status = compile(w.context, PICK BEST, "cuda", &w.model);
    if (status == BB_OK) status = bb_session_create(w.context, w.model, NULL, &w.session);
    numbers n = draw(5, 1);
    int64_t shape[2] = {5, WIDTH};
    bb_tensor_view x = {BB_F32, 2, shape, NULL, n.x}, index = {BB_I64, 1, shape, NULL, n.index};
    if (status == BB_OK) status = bb_session_write(w.session, 0, &x);
    if (status == BB_OK) status = bb_session_write(w.session, 1, &index);
    for (int i = 0; i < 3 && status == BB_OK; i++) status = bb_session_run(w.session, NULL);
    gpu.fill_after(-1);
    done = status == BB_OK;
    if (!done) refused(&w, status, BB_ERROR_MEMORY, "out of memory");
    if (done) read_and_check(&w, &n);
    if (!done && w.session) { /* there is room again */
      write_inputs(&w, &n);
      good(&w, bb_session_run(w.session, NULL));
      read_and_check(&w, &n);
    }
    end(&w);
    assert_int_equal(allocations(), 0);
  }
  assert_true(works > 5);
}

typedef struct counter {
  size_t calls, fail_at;
  long live;
} counter;

static void *count_resize(void *user, void *memory, size_t old_size, size_t new_size) {
  counter *c = user;
  c->calls++;
  if (new_size && c->calls == c->fail_at) return NULL;
  c->live += (long)new_size - (long)old_size;
  if (new_size) return realloc(memory, new_size);
  free(memory);
  return NULL;
}

/* A run after the second takes nothing of the processor's memory either. */
static void nothing_allocated(void **state) {
  counter c = {0};
  bb_context_options options = {.version = BB_VERSION, .allocator = {count_resize, &c}};
  world w = {0};
  (void)state;
  assert_int_equal(bb_context_create(&options, &w.context), BB_OK);
  good(&w, compile(w.context, PICK, "cuda", &w.model));
  good(&w, bb_session_create(w.context, w.model, NULL, &w.session));
  place p = settle(0);
  bind(&w, &p, 11);
  for (int i = 0; i < 2; i++) good(&w, bb_session_run(w.session, p.stream));
  size_t before = c.calls;
  long there = allocations();
  for (int seed = 0; seed < 3; seed++) {
    numbers n = draw(11, seed);
    fill(&p, &n);
    good(&w, bb_session_run(w.session, p.stream));
    take(&p, &n);
  }
  assert_int_equal(c.calls, before);
  assert_int_equal(allocations(), there);
  end(&w);
  leave(&p, 0);
  assert_int_equal(c.live, 0);
}

/* Every allocation of making and running a session fails once. */
static void failing_allocations(void **state) {
  bool done = false;
  world maker = make(PICK BEST, "cuda");
  (void)state;
  for (size_t fail_at = 1; !done; fail_at++) {
    counter c = {.fail_at = fail_at};
    bb_context_options options = {.version = BB_VERSION, .allocator = {count_resize, &c}};
    world w = {.model = maker.model};
    if (bb_context_create(&options, &w.context) != BB_OK) continue;
    bb_status status = bb_session_create(w.context, w.model, NULL, &w.session);
    numbers n = draw(5, 1);
    int64_t shape[2] = {5, WIDTH};
    bb_tensor_view x = {BB_F32, 2, shape, NULL, n.x}, index = {BB_I64, 1, shape, NULL, n.index};
    if (status == BB_OK) status = bb_session_write(w.session, 0, &x);
    if (status == BB_OK) status = bb_session_write(w.session, 1, &index);
    for (int i = 0; i < 3 && status == BB_OK; i++) status = bb_session_run(w.session, NULL);
    assert_true(status == BB_OK || status == BB_ERROR_MEMORY);
    done = status == BB_OK;
    if (done) read_and_check(&w, &n);
    bb_session_destroy(w.session);
    bb_context_destroy(w.context);
    assert_int_equal(c.live, 0);
    assert_true(fail_at < 4000);
  }
  end(&maker);
  assert_int_equal(allocations(), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(runs),
                                     cmocka_unit_test(steps_of_the_processor),
                                     cmocka_unit_test(streams),
                                     cmocka_unit_test(capture),
                                     cmocka_unit_test(reserved),
                                     cmocka_unit_test(no_capture),
                                     cmocka_unit_test(workspaces),
                                     cmocka_unit_test(dlpack),
                                     cmocka_unit_test(arrays_refused),
                                     cmocka_unit_test(folders_refused),
                                     cmocka_unit_test(faults),
                                     cmocka_unit_test(two_devices),
                                     cmocka_unit_test(threads),
                                     cmocka_unit_test(out_of_memory),
                                     cmocka_unit_test(nothing_allocated),
                                     cmocka_unit_test(failing_allocations)};
  return cmocka_run_group_tests(tests, open_driver, NULL);
}
