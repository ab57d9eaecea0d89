/* session_regions_test.c - models for GPUs of several programs, each for a region of run-time extents, through the public
 * headers alone: a session takes many rows, then few, then many, and runs the program that is for them.
 */
#include "gear.h"

#include <math.h>
#include <string.h>

enum { DEPTH = 64, WIDE = 96, ROWS = 200, PROGRAMS = 4 };

/* Rows divided by their lengths, between two products with weights that are scaled at load. */
static const char text[] = "blockbuster 1\n"
                           "program scaled\n"
                           "dim M\n"
                           "input X : f32[M,64]\n"
                           "input W : f32[96,64]\n"
                           "squares = elementwise X**2\n"
                           "sum = reduce sum(squares, axis=-1, keep)\n"
                           "normal = elementwise X*(sum/64+0.01)**(-0.5)\n"
                           "hidden = contract(normal[m,d], W[k,d] -> [m,k])\n"
                           "act = elementwise hidden/(1+exp(-hidden))\n"
                           "output Y = contract(act[m,k], W[k,n] -> [m,n])\n";

typedef struct arrays {
  float x[ROWS * DEPTH], w[WIDE * DEPTH], y[ROWS * DEPTH];
} arrays;

static float drawn(int64_t i) {
  return (float)((i * 37 + 11) % 101) / 101 - 0.5f;
}

static void check_row(const arrays *a, int64_t row) {
  const float *x = a->x + row * DEPTH, *y = a->y + row * DEPTH;
  double sum = 0, wanted[DEPTH] = {0};
  for (int d = 0; d < DEPTH; d++) sum += (double)x[d] * (double)x[d];
  for (int k = 0; k < WIDE; k++) {
    double hidden = 0;
    for (int d = 0; d < DEPTH; d++) hidden += (double)x[d] * (double)a->w[k * DEPTH + d];
    hidden /= sqrt(sum / DEPTH + 0.01);
    for (int n = 0; n < DEPTH; n++)
      wanted[n] += hidden / (1 + exp(-hidden)) * (double)a->w[k * DEPTH + n];
  }
  for (int n = 0; n < DEPTH; n++) assert_true(fabs((double)y[n] - wanted[n]) < 1e-4);
}

static void run(const gpu_world *w, arrays *a, int64_t rows) {
  int64_t shape[2] = {rows, DEPTH}, weight[2] = {WIDE, DEPTH};
  bb_tensor_view x = {BB_F32, 2, shape, NULL, a->x}, of = {BB_F32, 2, weight, NULL, a->w};
  for (int64_t i = 0; i < rows * DEPTH; i++) a->x[i] = drawn(i + rows);
  memset(a->y, 0xFF, sizeof a->y);
  gpu_good(w, bb_session_write(w->session, 0, &x));
  gpu_good(w, bb_session_write(w->session, 1, &of));
  gpu_good(w, bb_session_run(w->session, NULL));
  gpu_good(w, bb_session_read(w->session, BB_OUTPUT, 0, a->y, (size_t)rows * DEPTH * sizeof *a->y));
  for (int64_t row = 0; row<rows; row += rows> 20 ? 13 : 1) check_row(a, row);
}

static gpu_world open_world(const char *device, uint32_t programs) {
  gpu_world w = {0};
  bb_extent_range range = {"M", 1, 4096};
  bb_advance_options advance = {
      .version = BB_VERSION, .machine = "h200", .programs = programs, .ranges = 1, .range = &range};
  bb_compile_options options = {.version = BB_VERSION, .device = device};
  bb_program *program;
  assert_int_equal(bb_context_create(NULL, &w.context), BB_OK);
  gpu_good(&w, bb_program_parse(w.context, "scaled.bb", text, strlen(text), &program));
  gpu_good(&w, bb_program_advance(program, BB_STAGE_FUSED, &advance));
  gpu_good(&w, bb_program_compile(program, &options, &w.model));
  bb_program_destroy(program);
  gpu_good(&w, bb_session_create(w.context, w.model, NULL, &w.session));
  return w;
}

static uint32_t programs_of(const bb_model *model) {
  bb_variant_info info;
  uint32_t count = 0;
  while (bb_model_get_variant(model, count, &info)) count++;
  return count;
}

/* Each number of rows three times: launched, noted as a graph, and replayed. */
static void changes(void **state) {
  static const int64_t rows[] = {ROWS, 1, 33, ROWS - 1, 2, 64};
  const char *device[] = {"cuda", "hip"};
  static arrays a;
  (void)state;
  for (int i = 0; i < WIDE * DEPTH; i++) a.w[i] = drawn(3 * i);
  for (int d = 0; d < 2 - gpu.real; d++) {
    uint32_t seen = 0;
    gpu_world w = open_world(device[d], PROGRAMS);
    uint32_t programs = programs_of(w.model);
    assert_true(programs > 1 && programs <= PROGRAMS);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
      for (int again = 0; again < 3; again++) {
        uint32_t wanted;
        bb_setting extent = {"M", rows[i]};
        run(&w, &a, rows[i]);
        gpu_good(&w, bb_model_find_variant(w.context, w.model, 1, &extent, &wanted));
        assert_int_equal(bb_session_get_variant(w.session), wanted);
        seen |= 1u << wanted;
      }
    assert_true(seen & (seen - 1)); /* more than one ran */
    gpu_end(&w);
    assert_int_equal(gpu_allocations(), 0);
  }
}

/* Many rows between few are another program: each has a graph of its own, which later rounds change and do not make again. */
static void in_turn(void **state) {
  enum { ROUNDS = 7, SETTLED = 4, FEW = 8 };
  static arrays a;
  long made = 0;
  (void)state;
  if (gpu.real) skip();
  for (int i = 0; i < WIDE * DEPTH; i++) a.w[i] = drawn(3 * i);
  gpu_world w = open_world("cuda", PROGRAMS);
  for (int round = 0; round < ROUNDS; round++) {
    if (round == SETTLED) made = gpu.instances();
    long before = gpu.updates();
    run(&w, &a, ROWS - round);
    uint32_t many = bb_session_get_variant(w.session);
    for (int rows = 1; rows <= FEW; rows++) run(&w, &a, rows);
    assert_true(many != bb_session_get_variant(w.session));
    assert_true(round < SETTLED || gpu.updates() - before == FEW + 1);
  }
  assert_int_equal(gpu.instances(), made);
  gpu_end(&w);
  assert_int_equal(gpu_allocations(), 0);
}

/* Where nobody asks for several, there is one. */
static void alone(void **state) {
  static arrays a;
  (void)state;
  for (int i = 0; i < WIDE * DEPTH; i++) a.w[i] = drawn(3 * i);
  gpu_world w = open_world("cuda", 0);
  assert_int_equal(programs_of(w.model), 1);
  run(&w, &a, 5);
  gpu_end(&w);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(changes), cmocka_unit_test(in_turn),
                                     cmocka_unit_test(alone)};
  return cmocka_run_group_tests(tests, gpu_open, NULL);
}
