/* test_odd_calls.c - calls that few programs make: caches with strides of their own, ends of one that share memory, calls that are
 * refused between runs.  Through the public headers alone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <blockbuster.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static const char cache_text[] =
    "blockbuster 1\n"
    "program cache\n"
    "symbol P, S, \"symbol(P)+symbol(S)\"\n"
    "input past : f32[2,P,8]\n"
    "input x : f32[2,S,8]\n"
    "made = elementwise max(x,-9)\n"
    "output present = misc \"Concat\" 13(past, made) {axis=1} of (f32[2,P,8], f32[2,S,8]) -> "
    "(f32[2,\"symbol(P)+symbol(S)\",8]) : f32[2,\"symbol(P)+symbol(S)\",8]\n"
    "output y = reduce sum(present, axis=1, keep)\n";
static const char plain_text[] = "blockbuster 1\n"
                                 "program plain\n"
                                 "symbol S\n"
                                 "input x : f32[S,8]\n"
                                 "output y = elementwise max(x,-9)\n";

enum { ROOM = 10, LARGE = 100000, MANY = 1000, KEPT = 64 };

typedef struct opened {
  bb_context *context;
  bb_model *model;
  bb_session *session;
  bool refuses; /* its allocator does */
  void *kept[KEPT];
  int kept_count;
  float x[16], y[16], past[2 * 64 * 8], present[2 * 64 * 8];
} opened;

/* What is released is written over, and nobody gets it again before what is refused is over. */
static void *resize(void *user, void *pointer, size_t old_size, size_t new_size) {
  opened *o = user;
  if (o->refuses && new_size > LARGE) return NULL;
  if (new_size) return realloc(pointer, new_size);
  if (pointer) memset(pointer, 0x41, old_size);
  if (o->refuses && o->kept_count < KEPT)
    o->kept[o->kept_count++] = pointer;
  else
    free(pointer);
  return NULL;
}

static opened *start(const char *text) {
  opened *o = calloc(1, sizeof *o);
  bb_context_options options = {.version = BB_VERSION, .allocator = {resize, o}};
  bb_program *program;
  assert_int_equal(bb_context_create(&options, &o->context), BB_OK);
  assert_int_equal(bb_program_parse(o->context, "text", text, strlen(text), &program), BB_OK);
  assert_int_equal(bb_program_compile(program, NULL, &o->model), BB_OK);
  bb_program_destroy(program);
  assert_int_equal(bb_session_create(o->context, o->model, NULL, &o->session), BB_OK);
  for (int i = 0; i < 16; i++) o->x[i] = 0.5f;
  return o;
}

static void end(opened *o) {
  bb_session_destroy(o->session);
  bb_model_release(o->model);
  bb_context_destroy(o->context);
  for (int i = 0; i < o->kept_count; i++) free(o->kept[i]);
  free(o);
}

static void bind(opened *o, bb_side side, const char *name, float *data, int64_t rows,
                 const int64_t *stride) {
  const int64_t shape[] = {2, rows, 8};
  bb_tensor_view view = {
      .dtype = BB_F32, .rank = 3, .shape = shape, .stride = stride, .data = data};
  uint32_t index = 0;
  assert_true(bb_model_find_tensor(o->model, side, name, &index));
  assert_int_equal(bb_session_bind(o->session, side, index, &view), BB_OK);
}

/* Tokens outermost: with one of them the rows of the heads lie side by side. */
static void a_cache_of_other_strides(void **state) {
  (void)state;
  opened *o = start(cache_text);
  const int64_t shape[] = {2, ROOM, 8}, stride[] = {8, 16, 1};
  bb_tensor_view view = {
      .dtype = BB_F32, .rank = 3, .shape = shape, .stride = stride, .data = o->past};
  for (int i = 0; i < 2 * 64 * 8; i++) o->past[i] = 1000;
  for (int i = 0; i < 16; i++) o->past[i] = i < 8 ? 1 : 2;
  bind(o, BB_INPUT, "x", o->x, 1, NULL);
  bind(o, BB_OUTPUT, "y", o->y, 1, NULL);
  assert_int_equal(bb_session_bind_cache(o->session, 0, &view, 1), BB_OK);
  assert_int_equal(bb_session_run(o->session, NULL), BB_OK);
  for (int i = 0; i < 16; i++) {
    assert_true(o->y[i] == (i < 8 ? 1.5f : 2.5f));
    assert_true(o->past[i] == (i < 8 ? 1 : 2) && o->past[16 + i] == 0.5f);
    assert_true(o->past[32 + i] == 1000);
  }
  end(o);
}

/* What there was lies without room, and what there will be, over it, with. */
static void ends_that_overlap(void **state) {
  (void)state;
  opened *o = start(cache_text);
  const int64_t stride[] = {ROOM * 8, 8, 1};
  for (int i = 0; i < 2 * 3 * 8; i++) o->past[i] = (float)(i + 1);
  bind(o, BB_INPUT, "x", o->x, 1, NULL);
  bind(o, BB_INPUT, "past", o->past, 3, NULL);
  bind(o, BB_OUTPUT, "present", o->past, 4, stride);
  assert_int_equal(bb_session_run(o->session, NULL), BB_OK);
  for (int h = 0; h < 2; h++)
    for (int i = 0; i < 4 * 8; i++)
      assert_true(o->past[h * ROOM * 8 + i] == (i < 24 ? (float)(h * 24 + i + 1) : 0.5f));
  end(o);
}

/* Whatever was set before the call was refused. */
static void a_reserve_that_is_refused(void **state) {
  (void)state;
  const bb_setting setting[] = {{"P", 2}, {"Q", 1}};
  for (uint32_t first = 0; first < 2; first++) {
    opened *o = start(cache_text);
    for (int i = 0; i < 2 * 3 * 8; i++) o->past[i] = 1;
    bind(o, BB_INPUT, "x", o->x, 1, NULL);
    bind(o, BB_INPUT, "past", o->past, 3, NULL);
    bind(o, BB_OUTPUT, "present", o->present, 4, NULL);
    bind(o, BB_OUTPUT, "y", o->y, 1, NULL);
    for (int run = 0; run < 2; run++) {
      memset(o->y, 0, sizeof o->y), memset(o->present, 0, sizeof o->present);
      assert_int_equal(bb_session_run(o->session, NULL), BB_OK);
      assert_true(o->y[0] == 3.5f && o->y[15] == 3.5f && o->present[24] == 0.5f);
      assert_int_not_equal(bb_session_reserve(o->session, 2 - first, setting + first), BB_OK);
    }
    end(o);
  }
}

/* A write that finds no memory leaves what was written before. */
static void a_write_without_memory(void **state) {
  (void)state;
  opened *o = start(plain_text);
  float *x = calloc(8 * LARGE, sizeof *x), *y = calloc(8 * MANY, sizeof *y);
  int64_t shape[] = {MANY, 8};
  bb_tensor_view view = {.dtype = BB_F32, .rank = 2, .shape = shape, .data = x};
  assert_int_equal(bb_session_write(o->session, 0, &view), BB_OK);
  assert_int_equal(bb_session_run(o->session, NULL), BB_OK);
  o->refuses = true;
  shape[0] = LARGE;
  assert_int_equal(bb_session_write(o->session, 0, &view), BB_ERROR_MEMORY);
  o->refuses = false;
  assert_int_equal(bb_session_run(o->session, NULL), BB_OK);
  assert_int_equal(bb_session_read(o->session, BB_OUTPUT, 0, y, 8 * MANY * sizeof *y), BB_OK);
  for (int i = 0; i < 8 * MANY; i++) assert_true(y[i] == 0);
  assert_int_equal(bb_session_write(o->session, 0, &view), BB_OK);
  assert_int_equal(bb_session_run(o->session, NULL), BB_OK);
  free(x), free(y);
  end(o);
}

static void refused(const opened *o, bb_status status, const char *what) {
  assert_int_equal(status, BB_ERROR_ARGUMENT);
  assert_non_null(strstr(bb_context_message(o->context), what));
}

static void nothing_in_the_place_of_names(void **state) {
  (void)state;
  opened *o = start(plain_text);
  bb_context *c = o->context;
  bb_model *model = NULL;
  bb_program *program = NULL;
  bb_arrays *arrays = NULL;
  const bb_setting nobody = {NULL, 3};
  int64_t shape[2];
  uint32_t index;
  refused(o, bb_program_read(c, NULL, &program), "path");
  refused(o, bb_program_parse(c, NULL, plain_text, sizeof plain_text - 1, &program), "name");
  refused(o, bb_model_open(c, NULL, NULL, &model), "path");
  refused(o, bb_model_load(c, NULL, &model), "folder");
  refused(o, bb_arrays_read(c, NULL, &arrays), "path");
  assert_true(!program && !model && !arrays);
  refused(o, bb_session_set(o->session, NULL, 3), "extent");
  refused(o, bb_session_reserve(o->session, 1, NULL), "list");
  refused(o, bb_session_reserve(o->session, 1, &nobody), "extent");
  refused(o, bb_session_write(o->session, 0, NULL), "array");
  refused(o, bb_model_get_shape(c, o->model, BB_INPUT, 0, 1, NULL, shape), "list");
  refused(o, bb_model_find_variant(c, o->model, 1, &nobody, &index), "extent");
  assert_false(bb_model_find_tensor(o->model, BB_INPUT, NULL, &index));
  end(o);
}

static void nothing_in_the_place_of_lists(void **state) {
  (void)state;
  opened *o = start(plain_text);
  bb_program *program;
  bb_arrays *arrays;
  const int64_t one = 1;
  const float x = 1;
  const bb_setting nobody = {NULL, 3};
  const bb_array_view view = {"x", "<f4", 1, &one, sizeof x, &x};
  assert_int_equal(bb_program_parse(o->context, "text", plain_text, strlen(plain_text), &program),
                   BB_OK);
  const bb_advance_options wrong[] = {
      {.version = BB_VERSION, .cuts = 1},
      {.version = BB_VERSION, .machine = "", .dims = 1},
      {.version = BB_VERSION, .machine = "", .dims = 1, .dim = &nobody},
      {.version = BB_VERSION, .machine = "", .programs = 2, .ranges = 1}};
  for (uint32_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    refused(o, bb_program_advance(program, BB_STAGE_FUSED, &wrong[i]), "NULL");
  refused(o, bb_program_write_text(program, NULL, NULL, NULL), "function");
  refused(o, bb_program_compile_to(program, NULL, NULL), "folder");
  refused(o, bb_program_write_kernels(program, NULL, "there"), "target");
  bb_program_destroy(program);
  assert_int_equal(bb_arrays_create(o->context, &arrays), BB_OK);
  bb_array_view without[5] = {view, view, view, view, view};
  without[0].name = NULL, without[1].type = NULL, without[2].shape = NULL, without[3].data = NULL;
  for (uint32_t i = 0; i < 4; i++) refused(o, bb_arrays_add(arrays, &without[i]), "NULL");
  refused(o, bb_arrays_add(arrays, NULL), "NULL");
  assert_int_equal(bb_arrays_add(arrays, &without[4]), BB_OK);
  refused(o, bb_arrays_write(arrays, NULL), "path");
  bb_arrays_destroy(arrays);
  end(o);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_cache_of_other_strides),
      cmocka_unit_test(ends_that_overlap),
      cmocka_unit_test(a_reserve_that_is_refused),
      cmocka_unit_test(a_write_without_memory),
      cmocka_unit_test(nothing_in_the_place_of_names),
      cmocka_unit_test(nothing_in_the_place_of_lists),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
