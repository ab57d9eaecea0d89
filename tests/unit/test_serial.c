/* test_serial.c - the numbers of nodes in a text, and where new ones go on. */
#include "text.h"
#include "verify.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

/* The next node's number after reading a text of three nodes, the output without a number. */
#define SERIALS(told, x, y)                                                                        \
  "blockbuster 1 stage block " told " symbol M dim M = M input X : f32[M] dims [M] output Y : "    \
  "f32[M] dims [M] root { " x " = input X[M] : [M]f32(M,_) " y " = map M (%5 = " x                 \
  "[0]) { yield %5 } output Y[M] = " y " }"

static void serial_body(bb_context *ctx, void *argument) {
  (void)argument;
  static const struct {
    const char *text;
    uint32_t output, next;
  } cases[] = {
      {SERIALS("", "%0", "%9"), 11, 12},         {SERIALS("", "%x", "%9"), 12, 13},
      {SERIALS("serial 20", "%0", "%9"), 2, 20}, {SERIALS("serial 20", "%1", "%2"), 3, 20},
      {SERIALS("serial 3", "%0", "%1"), 3, 6},   {SERIALS("serial 0", "%0", "%9"), 2, 10},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    bb_program *p = bb_text_parse(ctx, "serials", cases[i].text, strlen(cases[i].text));
    bb_program_defer(p);
    assert_int_equal(bb_node_get(p->root, p->root->output[0])->serial, cases[i].output);
    assert_int_equal(p->serial, cases[i].next);
    assert_null(bb_verify_program(p, p->arena));
  }
}

static void test_serials(void **state) {
  (void)state;
  bb_context *ctx;
  assert_int_equal(bb_context_create(NULL, &ctx), BB_OK);
  if (bb_protect(ctx, serial_body, NULL) != BB_OK) fail_msg("%s", bb_context_message(ctx));
  bb_context_destroy(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_serials)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
