/* gear.c - what tests of sessions on GPUs share. */
#include "gear.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- the device --- */

struct gpu_driver gpu;

long gpu_allocations(void) {
  return gpu.real ? 0 : gpu.allocations();
}

static void find(void *library, const char *name, void *to) {
  void *found = dlsym(library, name);
  assert_non_null(found);
  memcpy(to, &found, sizeof found);
}

int gpu_open(void **state) {
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
  find(library, "fake_updates", &gpu.updates);
  find(library, "fake_launches", &gpu.launches);
  find(library, "fake_instances", &gpu.instances);
  find(library, "fake_refuse_graphs", &gpu.refuse_graphs);
  return 0;
}

/* --- a model, and what it is to give --- */

bb_status gpu_compile(bb_context *context, const char *text, const char *device, bb_model **model) {
  bb_compile_options options = {.version = BB_VERSION, .device = device};
  bb_program *program;
  bb_status status = bb_program_parse(context, "text", text, strlen(text), &program);
  if (status != BB_OK) return status;
  status = bb_program_compile(program, &options, model);
  bb_program_destroy(program);
  return status;
}

void gpu_good(const gpu_world *w, bb_status status) {
  if (status != BB_OK) fail_msg("%s", bb_context_message(w->context));
}

void gpu_refused(const gpu_world *w, bb_status status, bb_status want, const char *says) {
  assert_int_equal(status, want);
  if (!strstr(bb_context_message(w->context), says))
    fail_msg("%s, not %s", bb_context_message(w->context), says);
}

gpu_world gpu_make(const char *text, const char *device) {
  gpu_world w = {0};
  assert_int_equal(bb_context_create(NULL, &w.context), BB_OK);
  gpu_good(&w, gpu_compile(w.context, text, device, &w.model));
  gpu_good(&w, bb_session_create(w.context, w.model, NULL, &w.session));
  return w;
}

void gpu_end(gpu_world *w) {
  bb_session_destroy(w->session);
  bb_model_release(w->model);
  bb_context_destroy(w->context);
}

gpu_numbers gpu_draw(int64_t rows, int seed) {
  gpu_numbers n = {.rows = rows};
  for (int64_t i = 0; i < rows * WIDTH; i++)
    n.x[i] = (float)((i * 7 + seed * 31) % 53) / 16 + (float)(i % WIDTH) / 64;
  for (int64_t i = 0; i < rows; i++) n.index[i] = (i * 5 + seed) % TABLE - (i % 3 == 0 ? TABLE : 0);
  return n;
}

void gpu_write(const gpu_world *w, const gpu_numbers *n) {
  int64_t shape[2] = {n->rows, WIDTH};
  bb_tensor_view x = {BB_F32, 2, shape, NULL, (void *)n->x};
  bb_tensor_view index = {BB_I64, 1, shape, NULL, (void *)n->index};
  gpu_good(w, bb_session_write(w->session, 0, &x));
  gpu_good(w, bb_session_write(w->session, 1, &index));
}

double gpu_x(const gpu_numbers *n, int64_t row, int col) {
  static const float table[TABLE][WIDTH] = {{0, 1, 2, 3, 4, 5, 6, 7}, {1, 1, 1, 1, 1, 1, 1, 1},
                                            {7, 6, 5, 4, 3, 2, 1, 0}, {2, 0, 2, 0, 2, 0, 2, 0},
                                            {1, 2, 1, 2, 1, 2, 1, 2}, {3, 3, 3, 3, 0, 0, 0, 0}};
  int64_t index = n->index[row] < 0 ? n->index[row] + TABLE : n->index[row];
  return (double)n->x[row * WIDTH + col] + (double)table[index][col];
}

void gpu_check(const gpu_numbers *n, const float *y) {
  for (int64_t row = 0; row < n->rows; row++) {
    double sum = 0;
    for (int i = 0; i < WIDTH; i++) sum += exp(0.25 * gpu_x(n, row, i));
    for (int i = 0; i < WIDTH; i++)
      assert_true(fabs((double)y[row * WIDTH + i] - exp(0.25 * gpu_x(n, row, i)) / sum) < 1e-5);
  }
}

void gpu_read(const gpu_world *w, const gpu_numbers *n) {
  float y[MOST * WIDTH];
  gpu_good(w, bb_session_read(w->session, BB_OUTPUT, 0, y, (size_t)n->rows * WIDTH * sizeof *y));
  gpu_check(n, y);
}

/* --- the caller's --- */

gpu_place gpu_settle(int device) {
  gpu_place p;
  assert_int_equal(gpu.retain(&p.context, device), 0);
  assert_int_equal(gpu.push(p.context), 0);
  assert_int_equal(gpu.stream(&p.stream, 1), 0);
  assert_int_equal(gpu.allocate(&p.x, MOST * WIDTH * sizeof(float)), 0);
  assert_int_equal(gpu.allocate(&p.index, MOST * sizeof(int64_t)), 0);
  assert_int_equal(gpu.allocate(&p.y, MOST * WIDTH * sizeof(float)), 0);
  return p;
}

void gpu_leave(gpu_place *p, int device) {
  void *context;
  gpu.free(p->x), gpu.free(p->index), gpu.free(p->y);
  gpu.end(p->stream);
  assert_int_equal(gpu.pop(&context), 0);
  assert_ptr_equal(context, p->context); /* the library left it as it was */
  gpu.release(device);
}

void gpu_fill(const gpu_place *p, const gpu_numbers *n) {
  assert_int_equal(gpu.in(p->x, n->x, (size_t)n->rows * WIDTH * sizeof(float), p->stream), 0);
  assert_int_equal(gpu.in(p->index, n->index, (size_t)n->rows * sizeof(int64_t), p->stream), 0);
}

void gpu_bind(const gpu_world *w, const gpu_place *p, int64_t rows) {
  int64_t shape[2] = {rows, WIDTH};
  bb_tensor_view x = {BB_F32, 2, shape, NULL, (void *)(uintptr_t)p->x};
  bb_tensor_view index = {BB_I64, 1, shape, NULL, (void *)(uintptr_t)p->index};
  bb_tensor_view y = {BB_F32, 2, shape, NULL, (void *)(uintptr_t)p->y};
  gpu_good(w, bb_session_bind(w->session, BB_INPUT, 0, &x));
  gpu_good(w, bb_session_bind(w->session, BB_INPUT, 1, &index));
  gpu_good(w, bb_session_bind(w->session, BB_OUTPUT, 0, &y));
}

void gpu_take(const gpu_place *p, const gpu_numbers *n) {
  float y[MOST * WIDTH];
  assert_int_equal(gpu.out(y, p->y, (size_t)n->rows * WIDTH * sizeof *y, p->stream), 0);
  assert_int_equal(gpu.wait(p->stream), 0);
  gpu_check(n, y);
}

void gpu_serve(const gpu_world *w, const gpu_place *p, int64_t rows, int seed) {
  gpu_numbers n = gpu_draw(rows, seed);
  gpu_fill(p, &n);
  gpu_good(w, bb_session_run(w->session, p->stream));
  gpu_take(p, &n);
}
