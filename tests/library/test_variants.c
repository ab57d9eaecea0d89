/* test_variants.c - models of several programs, each for a region of run-time extents: through the public headers alone.
 *
 * One session takes a prompt of many tokens and then goes on token by token, its caches growing in place: other programs
 * run, and what comes out is what the interpreter makes of the same text.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <blockbuster.h>
#include <cmocka.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Attention over what came before, and a product of its result with a weight that is scaled at load. */
static const char program_text[] =
    "blockbuster 1\n"
    "program decoder\n"
    "symbol P, S, \"symbol(P)+symbol(S)\"\n"
    "input q : f32[2,S,32]\n"
    "input k : f32[2,S,32]\n"
    "input v : f32[2,S,32]\n"
    "input past_k : f32[2,P,32]\n"
    "input past_v : f32[2,P,32]\n"
    "output present_k = misc \"Concat\" 13(past_k, k) {axis=1} of (f32[2,P,32], f32[2,S,32]) -> "
    "(f32[2,\"symbol(P)+symbol(S)\",32]) : f32[2,\"symbol(P)+symbol(S)\",32]\n"
    "output present_v = misc \"Concat\" 13(past_v, v) {axis=1} of (f32[2,P,32], f32[2,S,32]) -> "
    "(f32[2,\"symbol(P)+symbol(S)\",32]) : f32[2,\"symbol(P)+symbol(S)\",32]\n"
    "scores = contract(q[h,s,d], present_k[h,t,d] -> [h,s,t])\n"
    "masked = elementwise select(coord(axis 0)<=coord(axis 1)+symbol(P),scores*0.35,-inf)\n"
    "top = reduce max(masked, axis=-1, keep)\n"
    "weights = elementwise exp(masked-top)\n"
    "sum = reduce sum(weights, axis=-1, keep)\n"
    "shares = elementwise weights/sum\n"
    "output y = contract(shares[h,s,t], present_v[h,t,d] -> [h,s,d])\n";

enum { HEADS = 2, WIDTH = 32, TOKENS = 112, PROMPT = 100, ROOM = 128, ROW = HEADS * WIDTH };

static void *count_resize(void *user, void *pointer, size_t old_size, size_t new_size) {
  (void)old_size;
  atomic_fetch_add((atomic_size_t *)user, 1);
  if (new_size) return realloc(pointer, new_size);
  free(pointer);
  return NULL;
}

/* --- a program, compiled for extents from 1 to 256 --- */

typedef struct decoder {
  bb_context *context;
  bb_program *program;
  bb_model *model;
  bb_session *session;
  atomic_size_t calls; /* of the allocator */
  float in[3][ROW * TOKENS], y[ROW * TOKENS];
  float cache[2][HEADS * ROOM * WIDTH];
} decoder;

static const bb_extent_range ranges[] = {{"P", 1, 256}, {"S", 1, 256}};

static void good(const decoder *d, bb_status status) {
  if (status != BB_OK) fail_msg("%s", bb_context_message(d->context));
}

static void fuse(decoder *d, uint32_t programs) {
  bb_context_options options = {.version = BB_VERSION, .allocator = {count_resize, &d->calls}};
  memset(d, 0, sizeof *d);
  assert_int_equal(bb_context_create(&options, &d->context), BB_OK);
  good(d,
       bb_program_parse(d->context, "decoder.bb", program_text, strlen(program_text), &d->program));
  bb_advance_options advance = {
      .version = BB_VERSION, .machine = "cpu", .programs = programs, .ranges = 2, .range = ranges};
  good(d, bb_program_advance(d->program, BB_STAGE_FUSED, &advance));
}

static void start(decoder *d, uint32_t threads) {
  bb_session_options options = {.version = BB_VERSION, .threads = threads};
  good(d, bb_session_create(d->context, d->model, &options, &d->session));
}

static void open_decoder(decoder *d, uint32_t threads) {
  fuse(d, 4);
  good(d, bb_program_compile(d->program, NULL, &d->model));
  start(d, threads);
}

static void close_decoder(decoder *d) {
  bb_session_destroy(d->session);
  bb_model_release(d->model);
  bb_program_destroy(d->program);
  bb_context_destroy(d->context);
}

/* --- tokens --- */

static float drawn(uint32_t i) {
  return (float)((i * 2654435761u >> 8) % 1000) / 500 - 1;
}

static void fill_tokens(float *to, uint32_t input, int64_t at, int64_t rows) {
  for (int64_t h = 0; h < HEADS; h++)
    for (int64_t c = 0; c < rows * WIDTH; c++)
      *to++ = drawn((input * HEADS + (uint32_t)h) * TOKENS * WIDTH + (uint32_t)(at * WIDTH + c));
}

/* Tokens at to at + rows; the caches hold those before. */
static void step(decoder *d, int64_t at, int64_t rows) {
  static const char *const name[] = {"q", "k", "v"};
  bb_tensor_view view = {.dtype = BB_F32, .rank = 3, .shape = (int64_t[]){HEADS, rows, WIDTH}};
  uint32_t index;
  for (uint32_t i = 0; i < 3; i++) {
    fill_tokens(d->in[i], i, at, rows);
    view.data = d->in[i];
    assert_true(bb_model_find_tensor(d->model, BB_INPUT, name[i], &index));
    good(d, bb_session_bind(d->session, BB_INPUT, index, &view));
  }
  view.data = d->y;
  assert_true(bb_model_find_tensor(d->model, BB_OUTPUT, "y", &index));
  good(d, bb_session_bind(d->session, BB_OUTPUT, index, &view));
  view.shape = (int64_t[]){HEADS, ROOM, WIDTH};
  for (uint32_t c = 0; c < 2; c++) {
    view.data = d->cache[c];
    good(d, bb_session_bind_cache(d->session, c, &view, at));
  }
  good(d, bb_session_run(d->session, NULL));
}

/* All tokens at once, to be destroyed. */
static bb_arrays *all_tokens(const decoder *d) {
  static float in[3][ROW * TOKENS];
  static const char *const name[] = {"q", "k", "v", "past_k", "past_v"};
  bb_arrays *inputs;
  good(d, bb_arrays_create(d->context, &inputs));
  for (uint32_t i = 0; i < 5; i++) {
    int64_t rows = i < 3 ? TOKENS : 0;
    if (i < 3) fill_tokens(in[i], i, 0, TOKENS);
    bb_array_view view = {.name = name[i],
                          .type = "<f4",
                          .rank = 3,
                          .shape = (int64_t[]){HEADS, rows, WIDTH},
                          .bytes = (size_t)rows * ROW * sizeof(float),
                          .data = in[i < 3 ? i : 0]};
    good(d, bb_arrays_add(inputs, &view));
  }
  return inputs;
}

/* All tokens by the interpreter, on a program for itself; y: [HEADS, TOKENS, WIDTH]. */
static void interpret(float *y) {
  static decoder d;
  bb_arrays *outputs;
  bb_result *result;
  fuse(&d, 1);
  bb_arrays *inputs = all_tokens(&d);
  bb_run_options options = {.version = BB_VERSION, .mode = BB_RUN_INTERPRET};
  good(&d, bb_program_run(d.program, inputs, &options, &result));
  good(&d, bb_result_get_arrays(result, &outputs));
  bb_array_view view = {.name = ""};
  for (uint32_t i = 0; bb_arrays_get(outputs, i, &view) && strcmp(view.name, "y") != 0;) i++;
  assert_string_equal(view.name, "y");
  assert_int_equal(view.bytes, sizeof(float) * ROW * TOKENS);
  memcpy(y, view.data, view.bytes);
  bb_arrays_destroy(outputs);
  bb_result_destroy(result);
  bb_arrays_destroy(inputs);
  close_decoder(&d);
}

static void check_tokens(const decoder *d, const float *want, int64_t at, int64_t rows) {
  for (int64_t h = 0; h < HEADS; h++)
    for (int64_t i = 0; i < rows * WIDTH; i++) {
      float got = d->y[h * rows * WIDTH + i], right = want[(h * TOKENS + at) * WIDTH + i];
      if (!(fabsf(got - right) <= 1e-5f))
        fail_msg("token %lld of head %lld: %g, not %g", (long long)(at + i / WIDTH), (long long)h,
                 (double)got, (double)right);
    }
}

/* A prompt, then token by token; *used: the variants that ran, a bit each. */
static void decode(decoder *d, const float *want, uint32_t *used) {
  step(d, 0, PROMPT);
  check_tokens(d, want, 0, PROMPT);
  *used = 1u << bb_session_get_variant(d->session);
  for (int64_t at = PROMPT; at < TOKENS; at++) {
    step(d, at, 1);
    check_tokens(d, want, at, 1);
    *used |= 1u << bb_session_get_variant(d->session);
  }
}

/* --- tests --- */

static void prompt_then_tokens(void **state) {
  static decoder d;
  static float want[ROW * TOKENS];
  uint32_t used;
  (void)state;
  interpret(want);
  open_decoder(&d, 2);
  decode(&d, want, &used);
  assert_true(used & (used - 1)); /* more than one */
  decode(&d, want, &used);        /* from the begin, in the same memory */
  close_decoder(&d);
}

static void threads_agree(void **state) {
  static decoder d[2];
  static float want[ROW * TOKENS];
  (void)state;
  for (uint32_t i = 0; i < 2; i++) {
    open_decoder(&d[i], i ? 3 : 1);
    for (int64_t at = 0, rows; at < TOKENS; at += rows) {
      rows = at ? 1 : PROMPT;
      step(&d[i], at, rows);
      float *to = want + at * ROW;
      if (i) assert_memory_equal(d[i].y, to, (size_t)(rows * ROW) * sizeof *to);
      memcpy(to, d[i].y, (size_t)(rows * ROW) * sizeof *to);
    }
  }
  for (uint32_t i = 0; i < 2; i++) close_decoder(&d[i]);
}

/* What was reserved does for every variant. */
static void nothing_is_allocated(void **state) {
  static decoder d;
  static float want[ROW * TOKENS];
  bb_setting most[] = {{"P", TOKENS}, {"S", PROMPT}};
  uint32_t used;
  (void)state;
  interpret(want);
  open_decoder(&d, 2);
  step(&d, 0, 1); /* arrays are bound, threads there */
  good(&d, bb_session_reserve(d.session, 2, most));
  size_t calls = d.calls, workspace = bb_session_workspace(d.session);
  decode(&d, want, &used);
  assert_true(used & (used - 1));
  assert_int_equal(d.calls, calls);
  assert_int_equal(bb_session_workspace(d.session), workspace);
  close_decoder(&d);
}

/* The table as the model tells it, and as a session finds its way. */
static void what_a_model_says(void **state) {
  static decoder d;
  bb_region_info r;
  bb_variant_info v;
  bb_model_info info;
  uint32_t regions = 0, variants = 0, steps = 0, seen = 0;
  (void)state;
  open_decoder(&d, 1);
  bb_model_get_info(d.model, &info);
  for (; bb_program_show_variant(d.program, variants); variants++) {
    bb_setting extent;
    assert_true(bb_model_get_variant(d.model, variants, &v));
    for (uint32_t i = 0; bb_program_get_assumed(d.program, i, &extent); i++)
      assert_int_equal(extent.value, v.extent[i].value);
  }
  assert_false(bb_model_get_variant(d.model, variants, &v));
  assert_true(bb_program_show_variant(d.program, 0));
  for (variants = 0; bb_model_get_variant(d.model, variants, &v); variants++) {
    assert_int_equal(v.extents, 3);
    assert_int_equal(v.extent[2].value, v.extent[0].value + v.extent[1].value);
    uint32_t own = 0;
    for (uint32_t i = 0; i < info.steps; i++) own += bb_model_variant_has(d.model, variants, i);
    assert_int_equal(own, v.steps); /* nothing runs at load */
    steps += own;
  }
  assert_in_range(variants, 2, 4);
  assert_true(steps > info.steps); /* both ends of caches are joined by steps of all */
  for (; bb_model_get_region(d.model, regions, &r); regions++) {
    bb_setting at[2] = {{"P", 1}, {"S", 1}};
    uint32_t found;
    for (uint32_t i = 0; i < r.extents; i++)
      for (uint32_t k = 0; k < 2; k++)
        if (strcmp(at[k].name, r.extent[i].name) == 0)
          at[k].value = r.extent[i].last < 0 ? r.extent[i].first + 1000 : r.extent[i].last;
    good(&d, bb_model_find_variant(d.context, d.model, 2, at, &found));
    assert_int_equal(found, r.variant);
    bb_region_info same;
    assert_true(bb_program_get_region(d.program, regions, &same));
    assert_int_equal(same.variant, r.variant);
    for (uint32_t i = 0; i < r.extents; i++)
      assert_int_equal(same.extent[i].last, r.extent[i].last);
    seen |= 1u << r.variant;
  }
  assert_int_equal(seen, (1u << variants) - 1);
  bb_setting none[] = {{"Q", 1}}, all[] = {{"P", 0}, {"S", TOKENS}};
  uint32_t found;
  bb_arrays *inputs = all_tokens(&d);
  bb_result *result;
  good(&d, bb_model_run(d.context, d.model, inputs, NULL, &result));
  good(&d, bb_model_find_variant(d.context, d.model, 2, all, &found));
  assert_int_equal(bb_result_get_variant(result), found);
  bb_result_destroy(result);
  bb_arrays_destroy(inputs);
  assert_int_equal(bb_model_find_variant(d.context, d.model, 1, none, &found), BB_ERROR_ARGUMENT);
  assert_int_equal(bb_model_find_variant(d.context, d.model, 0, NULL, &found), BB_ERROR_ARGUMENT);
  close_decoder(&d);
}

static char *read_file(const char *path, size_t *length) {
  FILE *file = fopen(path, "rb");
  char *text = calloc(1, 1 << 20);
  assert_non_null(file);
  *length = fread(text, 1, (1 << 20) - 1, file);
  fclose(file);
  return text;
}

/* plan.json with the first `old` after `after` replaced; loading it has to fail and say `why`.  It is damaged then, and
 * without its own hash no more than its parts are what is wrong. */
static void refused(const decoder *d, const char *path, const char *folder, const char *after,
                    const char *old, const char *new, const char *why) {
  size_t length;
  bb_model *model;
  char *text = read_file(path, &length), *at = strstr(text, after);
  assert_non_null(at);
  at = strstr(at, old);
  assert_non_null(at);
  const char *rest = at + strlen(old), *hash = strstr(text, ", \"hash\"");
  assert_non_null(hash);
  FILE *file = fopen(path, "wb");
  fprintf(file, "%.*s%s%s", (int)(at - text), text, new, rest);
  fclose(file);
  assert_int_equal(bb_model_load(d->context, folder, &model), BB_ERROR_IO);
  if (!strstr(bb_context_message(d->context), "it is damaged"))
    fail_msg("%s", bb_context_message(d->context));
  file = fopen(path, "wb");
  fprintf(file, "%.*s%s%.*s}\n", (int)(at - text), text, new, (int)(hash - rest), rest);
  fclose(file);
  assert_int_equal(bb_model_load(d->context, folder, &model), BB_ERROR_INPUT);
  if (!strstr(bb_context_message(d->context), why) || !strstr(bb_context_message(d->context), path))
    fail_msg("%s, not: %s: %s", bb_context_message(d->context), path, why);
  file = fopen(path, "wb");
  fwrite(text, 1, length, file);
  fclose(file);
  free(text);
}

static void in_a_folder(void **state) {
  static decoder d;
  static float want[ROW * TOKENS];
  char folder[] = "/tmp/variants-XXXXXX", path[64];
  uint32_t used;
  (void)state;
  interpret(want);
  fuse(&d, 4);
  assert_non_null(mkdtemp(folder));
  good(&d, bb_program_compile_to(d.program, NULL, folder));
  good(&d, bb_model_load(d.context, folder, &d.model));
  start(&d, 2);
  decode(&d, want, &used);
  assert_true(used & (used - 1));
  snprintf(path, sizeof path, "%s/plan.json", folder);
  refused(&d, path, folder, "\"table\": [[[", "[[[0,", "[[[7,", "table");
  refused(&d, path, folder, "\"table\": ", "]], [", "]], [0, ", "one cell for each combination");
  refused(&d, path, folder, "\"table\": ", "]], [", "]], [9", "table");
  refused(&d, path, folder, "\"table\": ", "]], [", ", 1]], [", "do not ascend");
  refused(&d, path, folder, "\"steps\": ", "\"variants\": [", "\"variants\": [7, ",
          "a step is part of no variant, or of one that there is not");
  refused(&d, path, folder, "\"variants\": ", "[[", "[[8, ", "variants");
  refused(&d, path, folder, "{\"version\": ", "7", "6", "version");
  refused(&d, path, folder, "\"caches\": ", ", -1]", ", 0]",
          "what a cache grows by does not fit its output");
  refused(&d, path, folder, "\"caches\": ", ", -1]", ", -2]", "caches");
  close_decoder(&d);
  char command[96];
  snprintf(command, sizeof command, "rm -r %s", folder);
  assert_int_equal(system(command), 0);
}

static void wrong_ranges(void **state) {
  static decoder d;
  bb_extent_range range = {"P", 5, 4};
  bb_advance_options advance = {
      .version = BB_VERSION, .machine = "cpu", .programs = 2, .ranges = 1, .range = &range};
  (void)state;
  fuse(&d, 1);
  bb_program_destroy(d.program);
  good(&d,
       bb_program_parse(d.context, "decoder.bb", program_text, strlen(program_text), &d.program));
  assert_int_equal(bb_program_advance(d.program, BB_STAGE_FUSED, &advance), BB_ERROR_ARGUMENT);
  range = (bb_extent_range){"Q", 1, 4};
  assert_int_equal(bb_program_advance(d.program, BB_STAGE_FUSED, &advance), BB_ERROR_ARGUMENT);
  assert_non_null(strstr(bb_context_message(d.context), "no run-time extent Q"));
  close_decoder(&d);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(prompt_then_tokens),   cmocka_unit_test(threads_agree),
      cmocka_unit_test(nothing_is_allocated), cmocka_unit_test(what_a_model_says),
      cmocka_unit_test(in_a_folder),          cmocka_unit_test(wrong_ranges),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
