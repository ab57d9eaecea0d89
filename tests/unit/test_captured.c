/* test_captured.c - what is known of the launch that a caller's stream captured last. */
#include "../../runtime/gpu/device.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

/* What the driver says of any stream. */
static struct {
  int code, status;
  uint64_t id;
  void *node[2];
  size_t count;
} said;

static int capture_info(void *stream, int *status, uint64_t *id, void **graph, void *const **node,
                        const void **edge, size_t *count) {
  (void)stream;
  *status = said.status;
  *id = said.id;
  *graph = NULL;
  *node = said.node;
  *edge = NULL;
  *count = said.count;
  return said.code;
}

static bb_device device = {.driver = {.capture_info = capture_info}};
static bb_queue queue = {.device = &device};
static char nodes[64];

static void says(uint64_t id, int node) {
  said.code = 0;
  said.status = 1;
  said.id = id;
  said.node[0] = nodes + node;
  said.count = 1;
}

static bb_gpu_past writes(bb_gpu_pointer from) {
  return (bb_gpu_past){.known = true, .ranges = 1, .from = {from}, .to = {from + 8}};
}

static void note(uint64_t id, int node, bb_gpu_pointer from) {
  bb_gpu_past past = writes(from);
  says(id, node);
  bb_gpu_captured_note(&queue, &past);
}

static bool knows(bb_gpu_pointer from) {
  bb_gpu_past past = bb_gpu_captured_past(&queue), want = writes(from);
  return past.known && bb_gpu_past_same(&past, &want);
}

static bool is_unknown(void) {
  return !bb_gpu_captured_past(&queue).known;
}

static void test_nothing_between(void **state) {
  (void)state;
  note(1, 1, 16);
  assert_true(knows(16));
  note(1, 2, 32);
  assert_true(knows(32));
}

static void test_something_between(void **state) {
  (void)state;
  note(2, 1, 16);
  says(2, 3);
  assert_true(is_unknown());
  said.count = 2; /* joined with another stream */
  assert_true(is_unknown());
  said.count = 0;
  assert_true(is_unknown());
}

/* A node of another capture may lie where one was. */
static void test_another_capture(void **state) {
  (void)state;
  note(3, 1, 16);
  says(4, 1);
  assert_true(is_unknown());
  note(4, 1, 32);
  says(3, 1);
  assert_true(knows(16));
  says(4, 1);
  assert_true(knows(32));
}

static void test_driver_says_nothing(void **state) {
  (void)state;
  note(5, 1, 16);
  said.code = 1;
  assert_true(is_unknown());
  said.code = 0;
  said.status = 0; /* it captures no more */
  assert_true(is_unknown());
  device.driver.capture_info = NULL;
  assert_true(is_unknown());
  device.driver.capture_info = capture_info;
}

/* Those of long ago are forgotten, and no other is taken for them. */
static void test_many_captures(void **state) {
  (void)state;
  for (int i = 0; i < 64; i++) note(100 + (uint64_t)i, i, 16 + 16 * (bb_gpu_pointer)i);
  says(163, 63);
  assert_true(knows(16 + 16 * 63));
  says(100, 0);
  assert_true(is_unknown());
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_nothing_between), cmocka_unit_test(test_something_between),
      cmocka_unit_test(test_another_capture), cmocka_unit_test(test_driver_says_nothing),
      cmocka_unit_test(test_many_captures)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
