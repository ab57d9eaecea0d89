/* test_misc.c - reference kernels against onnxruntime (misc_cases.h), and what they refuse. */
#include "machine_fixture.h"

#include <math.h>
#include <stdio.h>

typedef struct misc_case {
  const char *op;
  uint32_t attributes;
  const bb_attribute *attribute;
  uint32_t nin;
  bb_misc_value in[3];
  uint32_t nout;
  bb_misc_value out[2];
} misc_case;

#include "misc_cases.h"

typedef struct misc_call {
  const misc_case *test;
  bb_arena *arena;
  bb_misc_value out[2];
} misc_call;

static void call_body(bb_context *ctx, void *argument) {
  misc_call *call = argument;
  const misc_case *t = call->test;
  bb_misc misc = {
      .domain = "", .op = t->op, .version = 21, .count = t->attributes, .attribute = t->attribute};
  bb_misc_kernel *kernel = bb_misc_find(&misc);
  if (!kernel) bb_fail(ctx, BB_ERROR_UNSUPPORTED, "no kernel for %s", t->op);
  kernel(ctx, call->arena, &misc, t->nin, t->in, t->nout, call->out);
}

/* The status; the message is in *message, to be freed with the arena. */
static bb_status run_case(const misc_case *test, misc_call *call, char *message, size_t size) {
  bb_context *ctx;
  assert_int_equal(bb_context_create(NULL, &ctx), BB_OK);
  *call = (misc_call){.test = test, .arena = bb_arena_create(ctx)};
  bb_status status = bb_protect(ctx, call_body, call);
  snprintf(message, size, "%s", bb_context_message(ctx));
  for (uint32_t i = 0; status == BB_OK && i < test->nout; i++) {
    const bb_misc_value *want = &test->out[i], *got = &call->out[i];
    size_t count = 1;
    if (got->rank != want->rank || got->dtype != want->dtype)
      snprintf(message, size, "rank or type");
    for (uint32_t a = 0; a < want->rank; a++) {
      count *= (size_t)want->shape[a];
      if (got->shape[a] != want->shape[a]) snprintf(message, size, "extent of axis %u", a);
    }
    for (size_t e = 0; e < count && !message[0]; e++)
      if (!(fabs(got->data[e] - want->data[e]) <= 1e-6 * (1 + fabs(want->data[e]))))
        snprintf(message, size, "element %zu is %g, not %g", e, got->data[e], want->data[e]);
  }
  bb_arena_destroy(call->arena);
  assert_int_equal(ctx->deferred_count, 0);
  bb_context_destroy(ctx);
  return status;
}

static void test_cases(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    misc_call call;
    char message[256];
    bb_status status = run_case(&cases[i], &call, message, sizeof message);
    if (status != BB_OK || message[0]) fail_msg("case %zu, %s: %s", i, cases[i].op, message);
  }
}

#define VALUE(dtype, rank, shape, ...)                                                             \
  {                                                                                                \
    dtype, rank, shape, (double[]) {                                                               \
      __VA_ARGS__                                                                                  \
    }                                                                                              \
  }
#define SHAPE(...)                                                                                 \
  { __VA_ARGS__ }
#define INT(n, v)                                                                                  \
  { .name = n, .kind = BB_ATTR_INT, .i = v }

static const struct {
  misc_case test;
  const char *message;
} refused[] = {
    {{"Gather",
      0,
      NULL,
      2,
      {VALUE(BB_F32, 1, SHAPE(3), 1, 2, 3), VALUE(BB_I64, 1, SHAPE(2), 0, 3)},
      1,
      {{0}}},
     "index 3 (element 1 of the indices) is out of range for an axis of 3"},
    {{"Gather",
      0,
      NULL,
      2,
      {VALUE(BB_F32, 1, SHAPE(3), 1, 2, 3), VALUE(BB_I64, 0, SHAPE(0), -4)},
      1,
      {{0}}},
     "index -4"},
    {{"Gather",
      0,
      NULL,
      2,
      {VALUE(BB_F32, 1, SHAPE(3), 1, 2, 3), VALUE(BB_I64, 0, SHAPE(0), NAN)},
      1,
      {{0}}},
     "out of range"},
    {{"Gather",
      0,
      NULL,
      2,
      {VALUE(BB_F32, 1, SHAPE(0), 0), VALUE(BB_I64, 1, SHAPE(1), 0)},
      1,
      {{0}}},
     "out of range for an axis of 0"},
    {{"Gather", 0, NULL, 1, {VALUE(BB_F32, 1, SHAPE(3), 1, 2, 3)}, 1, {{0}}},
     "operand 1 is missing"},
    {{"Gather",
      1,
      (bb_attribute[]){INT("axis", 1)},
      2,
      {VALUE(BB_F32, 1, SHAPE(3), 1, 2, 3), VALUE(BB_I64, 1, SHAPE(1), 0)},
      1,
      {{0}}},
     "axis 1 of an operand of 1 axes"},
    {{"Gather",
      1,
      (bb_attribute[]){{.name = "axis", .kind = BB_ATTR_TEXT, .text = "x"}},
      2,
      {VALUE(BB_F32, 1, SHAPE(3), 1, 2, 3), VALUE(BB_I64, 1, SHAPE(1), 0)},
      1,
      {{0}}},
     "attribute axis has the wrong form"},
    {{"GatherElements",
      0,
      NULL,
      2,
      {VALUE(BB_F32, 1, SHAPE(3), 1, 2, 3), VALUE(BB_I64, 1, SHAPE(1), 5)},
      1,
      {{0}}},
     "index 5"},
    {{"GatherElements",
      0,
      NULL,
      2,
      {VALUE(BB_F32, 2, SHAPE(1, 1), 1), VALUE(BB_I64, 2, SHAPE(1, 2), 0, 0)},
      1,
      {{0}}},
     "shapes do not fit"},
    {{"GatherND",
      0,
      NULL,
      2,
      {VALUE(BB_F32, 1, SHAPE(3), 1, 2, 3), VALUE(BB_I64, 2, SHAPE(1, 1), -7)},
      1,
      {{0}}},
     "index -7"},
    {{"GatherND",
      0,
      NULL,
      2,
      {VALUE(BB_F32, 1, SHAPE(3), 1, 2, 3), VALUE(BB_I64, 1, SHAPE(2), 0, 0)},
      1,
      {{0}}},
     "shapes do not fit"},
    {{"ScatterND",
      0,
      NULL,
      3,
      {VALUE(BB_F32, 1, SHAPE(3), 1, 2, 3), VALUE(BB_I64, 2, SHAPE(1, 1), 3),
       VALUE(BB_F32, 1, SHAPE(1), 1)},
      1,
      {{0}}},
     "index 3"},
    {{"ScatterND",
      0,
      NULL,
      3,
      {VALUE(BB_F32, 1, SHAPE(3), 1, 2, 3), VALUE(BB_I64, 2, SHAPE(1, 1), 0),
       VALUE(BB_F32, 1, SHAPE(2), 1, 1)},
      1,
      {{0}}},
     "shapes do not fit"},
    {{"ScatterElements",
      1,
      (bb_attribute[]){{.name = "reduction", .kind = BB_ATTR_TEXT, .text = "xor"}},
      3,
      {VALUE(BB_F32, 1, SHAPE(1), 1), VALUE(BB_I64, 1, SHAPE(1), 0), VALUE(BB_F32, 1, SHAPE(1), 1)},
      1,
      {{0}}},
     "reduction \"xor\""},
    {{"TopK",
      0,
      NULL,
      2,
      {VALUE(BB_F32, 1, SHAPE(2), 1, 2), VALUE(BB_I64, 1, SHAPE(1), 3)},
      1,
      {{0}}},
     "the 3 largest of 2"},
    {{"Conv",
      0,
      NULL,
      2,
      {VALUE(BB_F32, 3, SHAPE(1, 1, 2), 1, 2), VALUE(BB_F32, 3, SHAPE(1, 1, 3), 1, 2, 3)},
      1,
      {{0}}},
     "larger than its input"},
    {{"Conv",
      0,
      NULL,
      2,
      {VALUE(BB_F32, 3, SHAPE(1, 2, 2), 1, 2, 3, 4), VALUE(BB_F32, 3, SHAPE(1, 1, 1), 1)},
      1,
      {{0}}},
     "weights do not fit"},
    {{"Conv",
      1,
      (bb_attribute[]){
          {.name = "strides", .kind = BB_ATTR_INTS, .count = 1, .ints = (int64_t[]){0}}},
      2,
      {VALUE(BB_F32, 3, SHAPE(1, 1, 2), 1, 2), VALUE(BB_F32, 3, SHAPE(1, 1, 1), 1)},
      1,
      {{0}}},
     "out of range"},
    {{"MaxPool", 0, NULL, 1, {VALUE(BB_F32, 3, SHAPE(1, 1, 2), 1, 2)}, 1, {{0}}},
     "kernel_shape is missing"},
    {{"Det", 0, NULL, 1, {VALUE(BB_F32, 1, SHAPE(1), 1)}, 1, {{0}}}, "no kernel"},
};

static void test_refused(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
    misc_call call;
    char message[256];
    bb_status status = run_case(&refused[i].test, &call, message, sizeof message);
    if (status == BB_OK || !strstr(message, refused[i].message))
      fail_msg("case %zu, %s: \"%s\" is not in: %s", i, refused[i].test.op, refused[i].message,
               message);
  }
}

/* --- misc nodes in programs --- */

/* y = table[index] at the root, then twice that under a map: the kernel's results are values. */
static bb_value gather_node(fixture *f, bb_value table, bb_value index, const bb_type *type,
                            const bb_misc *misc) {
  uint32_t node = bb_node_add(f->root, BB_NODE_MISC, 2, 1);
  bb_connect(f->root, node, 0, table);
  bb_connect(f->root, node, 1, index);
  bb_node *made = bb_node_get(f->root, node);
  made->out[0].type = type;
  made->misc = misc;
  made->name = "embed";
  return (bb_value){node, 0};
}

static void check_root_gather(bool with_ports, double bad_index) {
  enum { V = 5, D = 3, S = 4 };
  fixture f;
  fixture_begin(&f);
  f.float64 = false;
  bb_dim v = fixture_dim(&f, "V", V, true), d = fixture_dim(&f, "D", D, true),
         s = fixture_dim(&f, "S", S, true);
  f.block[s] = 3;
  f.block[d] = 2;
  uint32_t table = fixture_tensor(&f, "t", BB_TENSOR_INPUT, BB_F32, 2, (bb_dim[]){v, d});
  uint32_t index = fixture_tensor(&f, "i", BB_TENSOR_INPUT, BB_I64, 1, &s);
  memcpy(f.tensor[index].data, (double[]){4, 0, -2, bad_index}, 4 * sizeof(double));
  /* Ports with an axis of extent 1, and an absent third operand. */
  const bb_extent *one = bb_extent_number(f.p, 1);
  const bb_extent *vs[] = {bb_dim_get(f.p, v)->extent, bb_dim_get(f.p, d)->extent};
  const bb_extent *is[] = {one, bb_dim_get(f.p, s)->extent};
  const bb_extent *os[] = {one, is[1], vs[1]};
  bb_misc_port in[] = {{false, BB_F32, 2, vs, 2, (bb_dim[]){v, d}},
                       {false, BB_I64, 2, is, 1, (bb_dim[]){s}},
                       {.absent = true}};
  bb_misc_port out[] = {{false, BB_F32, 3, os, 2, (bb_dim[]){s, d}}};
  bb_misc plain = {.domain = "", .op = "Gather", .version = 13}, ported = plain;
  ported.nin = 3, ported.nout = 1, ported.in = in, ported.out = out;
  /* The result's levels stand in another order than its axes. */
  const bb_type *type = bb_type_make(f.p, (bb_item){BB_F32, d, s}, 2,
                                     with_ports ? (bb_level[]){{d, BB_AXIS_ROW}, {s, BB_AXIS_COL}}
                                                : (bb_level[]){{s, BB_AXIS_COL}, {d, BB_AXIS_ROW}});
  bb_value got =
      gather_node(&f, fixture_input(&f, table, v, d), fixture_input(&f, index, s, BB_NO_DIM), type,
                  with_ports ? &ported : &plain);
  uint32_t cols = bb_map_add(f.root, s);
  bb_graph *in_s = bb_map_own(f.root, cols);
  bb_value x = bb_map_in(f.root, cols, got, with_ports ? 1 : 0);
  uint32_t rows = bb_map_add(in_s, d);
  bb_graph *in_d = bb_map_own(in_s, rows);
  bb_value item = bb_map_in(in_s, rows, x, 0), both[] = {item, item};
  bb_value sum = bb_func_add(in_d, BB_OP_ADD, NULL, 2, both);
  bb_value list = bb_map_collect(in_s, rows, sum, BB_AXIS_ROW);
  uint32_t y = fixture_output(&f, "y", bb_map_collect(f.root, cols, list, BB_AXIS_COL));
  bb_status status = fixture_run(&f);
  if (bad_index >= V) {
    assert_int_equal(status, BB_ERROR_INPUT);
    assert_non_null(strstr(bb_context_message(f.ctx), "(embed): Gather: index 5 (element 3"));
  } else {
    if (status != BB_OK) fail_msg("%s", bb_context_message(f.ctx));
    for (int64_t i = 0; i < S; i++)
      for (int64_t j = 0; j < D; j++) {
        int64_t at = (int64_t)f.tensor[index].data[i];
        double want = 2 * fixture_at(&f, table, (int64_t[]){at < 0 ? at + V : at, j});
        assert_close(fixture_at(&f, y, (int64_t[]){i, j}), want, 1e-6);
      }
    /* Table and indices are read whole, the result is written, read and written again. */
    assert_close(f.counts.buffered_read, V * D * 4 + S * 8 + S * D * 4, 0);
    assert_close(f.counts.buffered_written, 2 * S * D * 4, 0);
    assert_close(f.passes[table], 1, 0);
  }
  fixture_end(&f);
}

static void test_root(void **state) {
  (void)state;
  check_root_gather(false, 1);
  check_root_gather(true, 1);
  check_root_gather(true, 5);
}

/* --- plans: a candidate, a misc step, a candidate --- */

static bb_graph *double_it(fixture *f, bb_dim s, uint32_t from, uint32_t to) {
  bb_graph *graph = bb_graph_create(f->p);
  bb_value in = bb_input_add(graph, bb_type_of_axes(f->p, BB_F32, 1, &s, s, BB_NO_DIM));
  bb_node_get(graph, in.node)->tensor = from;
  uint32_t map = bb_map_add(graph, s);
  bb_graph *inner = bb_map_own(graph, map);
  bb_value item = bb_map_in(graph, map, in, 0), both[] = {item, item};
  bb_value out =
      bb_map_collect(graph, map, bb_func_add(inner, BB_OP_ADD, NULL, 2, both), BB_AXIS_ROW);
  bb_node_get(graph, bb_output_add(graph, out))->tensor = to;
  return graph;
}

static void test_plan(void **state) {
  (void)state;
  enum { S = 5 };
  fixture f;
  fixture_begin(&f);
  bb_dim s = fixture_dim(&f, "S", S, true), two = fixture_dim(&f, "T", 2, true);
  const bb_extent *extent = bb_dim_get(f.p, s)->extent;
  uint32_t x = fixture_tensor(&f, "x", BB_TENSOR_INPUT, BB_F32, 1, &s);
  uint32_t a = fixture_tensor(&f, "a", BB_TENSOR_LOCAL, BB_F32, 1, &s);
  uint32_t b = fixture_tensor(&f, "b", BB_TENSOR_LOCAL, BB_F32, 1, &two);
  uint32_t y = fixture_tensor(&f, "y", BB_TENSOR_OUTPUT, BB_F32, 1, &two);
  static const int64_t place[] = {3, 1};
  bb_tensor constant = {.name = "i",
                        .dtype = BB_I64,
                        .role = BB_TENSOR_CONSTANT,
                        .rank = 1,
                        .shape = &f.p->dim[two].extent,
                        .axes = 1,
                        .axis = &two,
                        .data = place,
                        .bytes = sizeof place};
  uint32_t index = bb_tensor_add(f.p, &constant);
  (void)extent;
  bb_snapshot snapshot = {.graph = double_it(&f, two, b, y), .operations = -1};
  bb_candidate candidate[] = {{.name = "c0", .graph = double_it(&f, s, x, a), .chosen = BB_NONE},
                              {.name = "c1",
                               .graph = double_it(&f, two, a, y),
                               .snapshots = 1,
                               .snapshot = &snapshot,
                               .chosen = 0}};
  bb_index whole_a = {BB_INDEX_DIM, s, 0, 1}, whole_i = {BB_INDEX_DIM, two, 0, 1};
  bb_piece piece_a = {.source = a, .rank = 1, .index = &whole_a};
  bb_piece piece_i = {.source = index, .rank = 1, .index = &whole_i};
  const bb_access *in[] = {bb_access_make(f.p, &(bb_access){BB_NO_DIM, 1, &piece_a}),
                           bb_access_make(f.p, &(bb_access){BB_NO_DIM, 1, &piece_i})};
  bb_misc misc = {.domain = "", .op = "Gather", .version = 13};
  bb_step step[] = {{.candidate = 0},
                    {.candidate = BB_NONE,
                     .misc = &misc,
                     .name = "pick",
                     .nin = 2,
                     .nout = 1,
                     .in = in,
                     .out = &b},
                    {.candidate = 1}};
  f.p->candidates = 2, f.p->candidate = candidate;
  f.p->steps = 3, f.p->step = step;
  f.p->stage = BB_STAGE_FUSED;
  bb_status status = fixture_run_program(&f);
  if (status != BB_OK) fail_msg("%s", bb_context_message(f.ctx));
  assert_close(f.tensor[y].data[0], 4 * f.tensor[x].data[3], 0);
  assert_close(f.tensor[y].data[1], 4 * f.tensor[x].data[1], 0);
  /* A second run does not live on what the first one left. */
  f.tensor[x].data[3] = 7;
  const double *before[] = {f.tensor[a].data, f.tensor[y].data};
  assert_int_equal(fixture_run_program(&f), BB_OK);
  assert_close(f.tensor[y].data[0], 28, 0);
  assert_ptr_not_equal(f.tensor[a].data, before[0]);
  assert_ptr_not_equal(f.tensor[y].data, before[1]);
  misc.op = "Missing";
  assert_int_equal(fixture_run_program(&f), BB_ERROR_UNSUPPORTED);
  assert_string_equal(bb_context_message(f.ctx),
                      "misc node \"pick\": no reference kernel for Missing");
  fixture_end(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_cases),
      cmocka_unit_test(test_refused),
      cmocka_unit_test(test_root),
      cmocka_unit_test(test_plan),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
