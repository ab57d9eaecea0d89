/* test_api.c - the public interface as a caller sees it: this file includes nothing but its header.
 */
#include <blockbuster.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* An array program with a run-time extent: y = relu(x w) w', rows M of them. */
static const char text[] = "blockbuster 1\nprogram small\nsymbol M\n"
                           "input x : f32[M,4]\n"
                           "constant w : f32[4,3] = [1, 0, 2, 0, 1, 0, 3, 0, 1, 0, 2, 0]\n"
                           "constant s : f32[4] = [1, 2, 3, 4]\n"
                           "scaled = elementwise x*s\n"
                           "p = contract(scaled[a,b], w[b,c] -> [a,c])\n"
                           "r = elementwise max(p, 0)\n"
                           "output y = r\n";

/* --- an allocator that counts and fails on demand --- */

typedef struct memory {
  uint64_t calls, fail_at;
  size_t live;
} memory;

enum { HEADER = 16 };

static void *resize(void *user, void *pointer, size_t old_size, size_t new_size) {
  memory *m = user;
  char *base = pointer ? (char *)pointer - HEADER : NULL;
  if (base) assert_int_equal(*(size_t *)base, old_size);
  if (new_size == 0) {
    m->live -= old_size;
    free(base);
    return NULL;
  }
  if (++m->calls == m->fail_at) return NULL;
  char *grown = realloc(base, new_size + HEADER);
  if (!grown) return NULL;
  *(size_t *)grown = new_size;
  m->live += new_size - old_size;
  return grown + HEADER;
}

static bool swallow(void *user, const char *bytes, size_t length) {
  (void)bytes;
  *(size_t *)user += length;
  return true;
}

static bool refuse(void *user, const char *bytes, size_t length) {
  (void)user, (void)bytes, (void)length;
  return false;
}

/* --- everything once --- */

static void ignore_op(void *user, const char *op, uint32_t count, bool misc) {
  (void)op, (void)misc;
  *(size_t *)user += count;
}

static bb_status print_all(bb_program *program, size_t *printed) {
  bb_graph_id chosen = {0, BB_SNAPSHOT_CHOSEN};
  bb_draw_options json = {.version = BB_VERSION, .drawing = BB_DRAW_JSON};
  char hash[33];
  bb_status status = bb_program_write_text(program, "small.data", swallow, printed);
  if (!status) status = bb_program_write_data(program, swallow, printed);
  if (!status) status = bb_program_write_listing(program, chosen, swallow, printed);
  if (!status) status = bb_program_write_drawing(program, chosen, NULL, swallow, printed);
  if (!status) status = bb_program_write_drawing(program, chosen, &json, swallow, printed);
  if (!status) status = bb_program_visit_ops(program, ignore_op, printed);
  if (!status) status = bb_program_get_hash(program, hash);
  return status;
}

static bb_status run_all(bb_context *context, bb_program *program, size_t *printed) {
  static const float x[2][4] = {{1, 1, 1, 1}, {-1, 2, -3, 4}};
  static const float want[2][3] = {{10, 10, 5}, {0, 36, 0}};
  bb_array_view in = {"x", "<f4", 2, (int64_t[]){2, 4}, sizeof x, x};
  bb_array_view out = {"y", "<f4", 2, (int64_t[]){2, 3}, sizeof want, want};
  bb_run_options interpret = {.version = BB_VERSION, .mode = BB_RUN_INTERPRET};
  bb_arrays *inputs = NULL, *expect = NULL, *outputs = NULL;
  bb_result *result = NULL;
  bb_status status = bb_arrays_create(context, &inputs);
  if (!status) status = bb_arrays_add(inputs, &in);
  if (!status) status = bb_arrays_create(context, &expect);
  if (!status) status = bb_arrays_add(expect, &out);
  if (!status) status = bb_program_run(program, inputs, &interpret, &result);
  if (!status) status = bb_result_get_arrays(result, &outputs);
  if (!status) status = bb_result_compare(result, expect, -1, swallow, printed);
  bb_result_destroy(result);
  bb_arrays_destroy(outputs);
  bb_arrays_destroy(expect);
  bb_arrays_destroy(inputs);
  return status;
}

static bb_status everything(memory *m) {
  bb_context_options options = {.version = BB_VERSION, .allocator = {resize, m}, .verify = true};
  bb_context *context;
  bb_program *program = NULL;
  size_t printed = 0;
  bb_status status = bb_context_create(&options, &context);
  if (status) return status;
  status = bb_program_parse(context, "small.bb", text, sizeof text - 1, &program);
  if (!status) status = bb_program_advance(program, BB_STAGE_FUSED, NULL);
  if (!status) status = print_all(program, &printed);
  if (!status) status = run_all(context, program, &printed);
  if (status) assert_true(*bb_context_message(context) != 0);
  bb_program_destroy(program);
  bb_context_destroy(context);
  return status;
}

static void every_failed_allocation_is_survived(void **state) {
  memory counted = {0};
  (void)state;
  assert_int_equal(everything(&counted), BB_OK);
  assert_int_equal(counted.live, 0);
  assert_true(counted.calls > 10);
  uint64_t failed = 0;
  for (uint64_t n = 1; n <= counted.calls; n++) {
    memory m = {.fail_at = n};
    bb_status status = everything(&m);
    assert_true(status == BB_OK || status == BB_ERROR_MEMORY);
    assert_int_equal(m.live, 0);
    failed += status == BB_ERROR_MEMORY;
  }
  assert_true(failed * 10 > counted.calls * 9);
}

/* --- wrong calls --- */

typedef struct fixture {
  bb_context *context;
  bb_program *program;
} fixture;

static fixture open_small(void) {
  fixture f;
  assert_int_equal(bb_context_create(NULL, &f.context), BB_OK);
  assert_int_equal(bb_program_parse(f.context, "small.bb", text, sizeof text - 1, &f.program),
                   BB_OK);
  return f;
}

static void close_small(fixture f) {
  bb_program_destroy(f.program);
  bb_context_destroy(f.context);
}

static void wrong_calls_are_told(void **state) {
  fixture f = open_small();
  bb_advance_options old = {.version = BB_VERSION + 1};
  bb_node_pair nowhere = {7000, 7001};
  bb_advance_options cut = {.version = BB_VERSION, .cuts = 1, .cut = &nowhere};
  bb_arrays *none;
  bb_result *result = NULL;
  bb_snapshot_info snapshot;
  bb_candidate_info candidate;
  size_t printed = 0;
  (void)state;
  assert_int_equal(bb_program_advance(f.program, BB_STAGE_FUSED, &old), BB_ERROR_ARGUMENT);
  assert_int_equal(bb_program_stage(f.program), BB_STAGE_ARRAY);
  assert_int_equal(bb_arrays_create(f.context, &none), BB_OK);
  assert_int_equal(bb_program_run(f.program, none, NULL, &result), BB_ERROR_ARGUMENT);
  assert_int_equal(bb_program_write_listing(f.program, (bb_graph_id){0, 0}, swallow, &printed),
                   BB_ERROR_ARGUMENT);
  assert_false(bb_program_get_candidate(f.program, 0, &candidate));
  assert_int_equal(bb_program_advance(f.program, BB_STAGE_FUSED, &cut), BB_ERROR_ARGUMENT);
  assert_non_null(strstr(bb_context_message(f.context), "7000"));
  bb_program_destroy(f.program);
  assert_int_equal(bb_program_parse(f.context, "small.bb", text, sizeof text - 1, &f.program),
                   BB_OK);
  assert_int_equal(bb_program_advance(f.program, BB_STAGE_FUSED, NULL), BB_OK);
  assert_int_equal(bb_program_advance(f.program, BB_STAGE_BLOCK, NULL), BB_OK); /* beyond it */
  assert_int_equal(bb_program_stage(f.program), BB_STAGE_FUSED);
  assert_false(bb_program_get_snapshot(f.program, (bb_graph_id){99, 0}, &snapshot));
  assert_int_equal(bb_program_write_listing(f.program, (bb_graph_id){99, 0}, swallow, &printed),
                   BB_ERROR_ARGUMENT);
  assert_int_equal(bb_program_write_text(f.program, NULL, refuse, NULL), BB_ERROR_IO);
  assert_int_equal(bb_program_write_step(f.program, 1, NULL, NULL, swallow, &printed),
                   BB_ERROR_ARGUMENT);
  assert_int_equal(bb_program_run(f.program, none, NULL, &result), BB_ERROR_INPUT);
  assert_non_null(strstr(bb_context_message(f.context), "\"x\""));
  assert_null(result);
  assert_int_equal(printed, 0);
  bb_arrays_destroy(none);
  close_small(f);
}

static void arrays_are_checked(void **state) {
  fixture f = open_small();
  static const float data[6];
  bb_array_view view = {"a", "<f4", 2, (int64_t[]){2, 3}, sizeof data, data}, got;
  bb_arrays *arrays;
  (void)state;
  assert_int_equal(bb_arrays_create(f.context, &arrays), BB_OK);
  assert_int_equal(bb_arrays_add(arrays, &view), BB_OK);
  view.bytes--;
  assert_int_equal(bb_arrays_add(arrays, &view), BB_ERROR_ARGUMENT);
  view.type = "<f3";
  assert_int_equal(bb_arrays_add(arrays, &view), BB_ERROR_ARGUMENT);
  view.type = "<f4";
  view.shape = (int64_t[]){-2, -3};
  assert_int_equal(bb_arrays_add(arrays, &view), BB_ERROR_ARGUMENT);
  view.shape = (int64_t[]){INT64_MAX, INT64_MAX};
  assert_int_equal(bb_arrays_add(arrays, &view), BB_ERROR_ARGUMENT);
  assert_true(bb_arrays_get(arrays, 0, &got));
  assert_string_equal(got.name, "a");
  assert_int_equal(got.shape[1], 3);
  assert_false(bb_arrays_get(arrays, 1, &got));
  bb_arrays_destroy(arrays);
  close_small(f);
}

/* --- observers --- */

typedef struct observed {
  uint32_t phases, begun, rewrites, snapshots, last_step;
  size_t printed;
} observed;

static void on_phase(void *user, const char *phase, const bb_program *program) {
  observed *o = user;
  assert_true(*phase != 0);
  assert_int_equal(bb_program_write_text(program, NULL, swallow, &o->printed), BB_OK);
  o->phases++;
}

static void on_begin(void *user, const char *candidate, const char *same) {
  (void)same;
  assert_true(*candidate != 0);
  ((observed *)user)->begun++;
}

static void on_rewrite(void *user, const bb_rewrite *rewrite) {
  observed *o = user;
  if (rewrite->rule == 0) {
    o->snapshots++;
    return;
  }
  assert_int_equal(rewrite->step, o->last_step + 1);
  assert_true(rewrite->nodes > 0 && *rewrite->rule_name);
  o->last_step = rewrite->step;
  o->rewrites++;
}

static void observers_see_the_road(void **state) {
  fixture f = open_small();
  observed o = {0};
  bb_program_info info;
  bb_candidate_info candidate;
  bb_snapshot_info snapshot;
  bb_advance_options options = {.version = BB_VERSION,
                                .phase = on_phase,
                                .begin = on_begin,
                                .rewrite = on_rewrite,
                                .user = &o};
  (void)state;
  assert_int_equal(bb_program_advance(f.program, BB_STAGE_FUSED, &options), BB_OK);
  assert_true(o.phases >= 4 && o.begun >= 2 && o.rewrites >= 3 && o.snapshots >= 1);
  assert_true(o.printed > 1000);
  bb_program_get_info(f.program, &info);
  assert_string_equal(info.name, "small");
  assert_int_equal(info.inputs, 1);
  assert_int_equal(info.outputs, 1);
  assert_int_equal(info.constants, 2);
  assert_int_equal(info.misc, 0);
  assert_int_equal(info.kernels - info.kernels_once, 1);
  for (uint32_t c = 0; bb_program_get_candidate(f.program, c, &candidate); c++) {
    assert_true(candidate.chosen < candidate.snapshots);
    assert_true(bb_program_get_snapshot(f.program, (bb_graph_id){c, candidate.chosen}, &snapshot));
    assert_true(snapshot.operations > 0 && snapshot.buffered > 0);
  }
  close_small(f);
}

static void statuses_and_stages_have_names(void **state) {
  (void)state;
  assert_int_equal(bb_version(), BB_VERSION);
  for (int s = BB_OK; s <= BB_ERROR_INTERNAL; s++)
    assert_string_not_equal(bb_status_text((bb_status)s), "unknown status");
  assert_string_equal(bb_status_text((bb_status)99), "unknown status");
  assert_string_equal(bb_stage_name(BB_STAGE_PARTITION), "partition");
  uint32_t number, count = 0;
  const char *name;
  for (uint64_t seen = 0; bb_rule_get(count, &number, &name, NULL); count++) {
    assert_true(number < 64 && *name);
    assert_int_equal(seen >> number & 1, 0);
    seen |= (uint64_t)1 << number;
  }
  assert_true(count >= 10);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(statuses_and_stages_have_names),
      cmocka_unit_test(observers_see_the_road),
      cmocka_unit_test(wrong_calls_are_told),
      cmocka_unit_test(arrays_are_checked),
      cmocka_unit_test(every_failed_allocation_is_survived),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
