/* session_fail_test.c - sessions on GPUs where something is wrong: arrays and data that are refused, memory that is
 * short.
 */
#include "gear.h"

#include <stdlib.h>
#include <string.h>

/* --- what is refused --- */

static void arrays_refused(void **state) {
  (void)state;
  gpu_world w = gpu_make(PICK, "cuda");
  gpu_place p = gpu_settle(0);
  float host[MOST * WIDTH] __attribute__((aligned(64)));
  int64_t shape[2] = {4, WIDTH};
  bb_tensor_view x = {BB_F32, 2, shape, NULL, host};
  gpu_refused(&w, bb_session_bind(w.session, BB_INPUT, 0, &x), BB_ERROR_ARGUMENT,
              "input \"X\": the array is not in memory of cuda:0");
  x.data = (void *)(uintptr_t)(p.x + 2);
  gpu_refused(&w, bb_session_bind(w.session, BB_INPUT, 0, &x), BB_ERROR_ARGUMENT,
              "not aligned to its elements");
  gpu_end(&w);
  gpu_leave(&p, 0);
}

/* Each run without a fault after one that has it is right. */
static void faults(void **state) {
  (void)state;
  gpu_world w = gpu_make(PICK, "cuda");
  gpu_place p = gpu_settle(0);
  gpu_bind(&w, &p, 6);
  for (int i = 0; i < 6; i++) {
    gpu_numbers n = gpu_draw(6, i);
    if (i % 2) n.index[4] = TABLE;
    gpu_fill(&p, &n);
    assert_int_equal(gpu.wait(p.stream), 0);
    void *stream = i < 3 ? NULL : p.stream;
    bb_status status = bb_session_run(w.session, stream);
    if (stream) {
      gpu_good(&w, status);
      status = bb_session_wait(w.session);
    }
    if (i % 2)
      gpu_refused(&w, status, BB_ERROR_INPUT, "misc node \"look_up\": Gather: an index (element 4");
    else
      gpu_good(&w, status);
    if (i % 2 == 0) gpu_take(&p, &n);
  }
  gpu_end(&w);
  gpu_leave(&p, 0);
}

/* --- memory --- */

/* The first failure of writing inputs and three runs. */
static bb_status run_thrice(const gpu_world *w, gpu_numbers *n) {
  int64_t shape[2] = {n->rows, WIDTH};
  bb_tensor_view x = {BB_F32, 2, shape, NULL, n->x}, index = {BB_I64, 1, shape, NULL, n->index};
  bb_status status = bb_session_write(w->session, 0, &x);
  if (status == BB_OK) status = bb_session_write(w->session, 1, &index);
  for (int i = 0; i < 3 && status == BB_OK; i++) status = bb_session_run(w->session, NULL);
  return status;
}

/* Each allocation on the device fails in turn. */
static void out_of_memory(void **state) {
  bool done = false;
  long works = 0;
  (void)state;
  if (gpu.real) skip();
  for (; !done; works++) {
    gpu_world w = {0};
    assert_int_equal(bb_context_create(NULL, &w.context), BB_OK);
    gpu.fill_after(works);
    bb_status status = gpu_compile(w.context, PICK BEST, "cuda", &w.model);
    if (status == BB_OK) status = bb_session_create(w.context, w.model, NULL, &w.session);
    gpu_numbers n = gpu_draw(5, 1);
    if (status == BB_OK) status = run_thrice(&w, &n);
    gpu.fill_after(-1);
    done = status == BB_OK;
    if (!done) gpu_refused(&w, status, BB_ERROR_MEMORY, "out of memory");
    if (done) gpu_read(&w, &n);
    if (!done && w.session) { /* there is room again */
      gpu_write(&w, &n);
      gpu_good(&w, bb_session_run(w.session, NULL));
      gpu_read(&w, &n);
    }
    gpu_end(&w);
    assert_int_equal(gpu_allocations(), 0);
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
  gpu_world w = {0};
  (void)state;
  assert_int_equal(bb_context_create(&options, &w.context), BB_OK);
  gpu_good(&w, gpu_compile(w.context, PICK, "cuda", &w.model));
  gpu_good(&w, bb_session_create(w.context, w.model, NULL, &w.session));
  gpu_place p = gpu_settle(0);
  gpu_bind(&w, &p, 11);
  for (int i = 0; i < 2; i++) gpu_good(&w, bb_session_run(w.session, p.stream));
  size_t before = c.calls;
  long there = gpu_allocations();
  for (int seed = 0; seed < 3; seed++) gpu_serve(&w, &p, 11, seed);
  assert_int_equal(c.calls, before);
  assert_int_equal(gpu_allocations(), there);
  gpu_end(&w);
  gpu_leave(&p, 0);
  assert_int_equal(c.live, 0);
}

/* Every allocation of making and running a session fails once. */
static void failing_allocations(void **state) {
  bool done = false;
  gpu_world maker = gpu_make(PICK BEST, "cuda");
  (void)state;
  for (size_t fail_at = 1; !done; fail_at++) {
    counter c = {.fail_at = fail_at};
    bb_context_options options = {.version = BB_VERSION, .allocator = {count_resize, &c}};
    gpu_world w = {.model = maker.model};
    if (bb_context_create(&options, &w.context) != BB_OK) continue;
    bb_status status = bb_session_create(w.context, w.model, NULL, &w.session);
    gpu_numbers n = gpu_draw(5, 1);
    if (status == BB_OK) status = run_thrice(&w, &n);
    assert_true(status == BB_OK || status == BB_ERROR_MEMORY);
    done = status == BB_OK;
    if (done) gpu_read(&w, &n);
    bb_session_destroy(w.session);
    bb_context_destroy(w.context);
    assert_int_equal(c.live, 0);
    assert_true(fail_at < 4000);
  }
  gpu_end(&maker);
  assert_int_equal(gpu_allocations(), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(arrays_refused),

                                     cmocka_unit_test(faults), cmocka_unit_test(out_of_memory),
                                     cmocka_unit_test(nothing_allocated),
                                     cmocka_unit_test(failing_allocations)};
  return cmocka_run_group_tests(tests, gpu_open, NULL);
}
