/* test_npz.c - .npy and .npz: every element type, orders, versions, shapes, and hostile files;
 * binding arrays to inputs and comparing outputs. */
#include "bind.h"
#include "npy.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include <zip.h>

typedef struct parse {
  bb_arena *arena;
  const void *data;
  size_t size;
  bb_npz *npz;
} parse;

static void parse_body(bb_context *ctx, void *argument) {
  (void)ctx;
  parse *p = argument;
  p->npz = bb_npz_parse(p->arena, "f.npz", p->data, p->size);
}

static bb_context *ctx;
static bb_arena *arena;

static int begin(void **state) {
  (void)state;
  if (bb_context_create(NULL, &ctx) != BB_OK) return -1;
  arena = bb_arena_create(ctx);
  return 0;
}

static int end(void **state) {
  (void)state;
  int left = (int)ctx->deferred_count;
  bb_arena_destroy(arena);
  bb_context_destroy(ctx);
  return left;
}

static bb_npz *parse_ok(const void *data, size_t size) {
  parse p = {arena, data, size, NULL};
  if (bb_protect(ctx, parse_body, &p) != BB_OK) fail_msg("%s", bb_context_message(ctx));
  return p.npz;
}

/* Refused, with all of `what` in the message. */
static void parse_refused(const void *data, size_t size, const char *what) {
  parse p = {arena, data, size, NULL};
  bb_status status = bb_protect(ctx, parse_body, &p);
  if (status != BB_ERROR_INPUT || !strstr(bb_context_message(ctx), what))
    fail_msg("%zu bytes: \"%s\" is not in (%d): %s", size, what, status, bb_context_message(ctx));
  assert_int_equal(ctx->deferred_count, 0);
}

/* A .npy with this dict and these bytes. */
static size_t make_npy(uint8_t *out, int version, const char *dict, const void *data, size_t size) {
  size_t length = strlen(dict), start = version == 1 ? 10 : 12;
  memcpy(out, "\x93NUMPY", 6);
  out[6] = (uint8_t)version;
  out[7] = 0;
  out[8] = (uint8_t)length;
  out[9] = (uint8_t)(length >> 8);
  if (version != 1) out[10] = out[11] = 0;
  memcpy(out + start, dict, length);
  if (size) memcpy(out + start + length, data, size);
  return start + length + size;
}

static const bb_npz_array *one(const char *dict, const void *data, size_t size) {
  static uint8_t bytes[4096];
  size_t total = make_npy(bytes, 1, dict, data, size);
  bb_npz *npz = parse_ok(bytes, total);
  assert_int_equal(npz->count, 1);
  assert_string_equal(npz->array[0].name, "f.npz");
  return &npz->array[0];
}

static void check_values(const bb_npz_array *array, size_t count, const double *want) {
  double got[64];
  assert_int_equal(array->count, count);
  bb_npz_doubles(array, got);
  for (size_t i = 0; i < count; i++)
    if (got[i] != want[i]) fail_msg("element %zu is %g, not %g", i, got[i], want[i]);
}

static void test_types(void **state) {
  (void)state;
  static const struct {
    const char *descr;
    const char *bytes;
    size_t size;
    double want[2];
  } cases[] = {
      {"<f8", "\0\0\0\0\0\0\xf8\x3f\0\0\0\0\0\0\xf0\xff", 16, {1.5, -INFINITY}},
      {">f8", "\x3f\xf8\0\0\0\0\0\0\xff\xf0\0\0\0\0\0\0", 16, {1.5, -INFINITY}},
      {"<f4", "\0\0\xc0\x3f\0\0\0\xc0", 8, {1.5, -2}},
      {">f4", "\x3f\xc0\0\0\xc0\0\0\0", 8, {1.5, -2}},
      {"<f2", "\0\x3e\0\xc0", 4, {1.5, -2}},
      {">f2", "\x3e\0\xc0\0", 4, {1.5, -2}},
      {"<V2", "\xc0\x3f\0\xc0", 4, {1.5, -2}},
      {"|V2", "\xc0\x3f\0\xc0", 4, {1.5, -2}},
      {"<i8", "\xfe\xff\xff\xff\xff\xff\xff\xff\1\0\0\0\0\0\0\0", 16, {-2, 1}},
      {"<i4", "\xfe\xff\xff\xff\1\0\0\0", 8, {-2, 1}},
      {">i4", "\xff\xff\xff\xfe\0\0\0\1", 8, {-2, 1}},
      {"<i2", "\xfe\xff\1\0", 4, {-2, 1}},
      {"|i1", "\xfe\1", 2, {-2, 1}},
      {"<u8", "\xfe\xff\0\0\0\0\0\0\1\0\0\0\0\0\0\0", 16, {65534, 1}},
      {"<u4", "\xfe\xff\xff\xff\1\0\0\0", 8, {4294967294.0, 1}},
      {"=u2", "\xfe\xff\1\0", 4, {65534, 1}},
      {"|u1", "\xfe\1", 2, {254, 1}},
      {"|b1", "\0\2", 2, {0, 1}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char dict[128];
    snprintf(dict, sizeof dict, "{'descr': '%s', 'fortran_order': False, 'shape': (2,), }  \n",
             cases[i].descr);
    check_values(one(dict, cases[i].bytes, cases[i].size), 2, cases[i].want);
  }
}

static void test_shapes(void **state) {
  (void)state;
  const uint8_t six[] = {0, 1, 2, 3, 4, 5};
  const bb_npz_array *a = one("{'shape': (2, 3), 'descr': '|u1', 'fortran_order': True}", six, 6);
  check_values(a, 6, (double[]){0, 2, 4, 1, 3, 5});
  a = one("{\"shape\":(3L,2L),\"descr\":\"|u1\",\"fortran_order\":True,}\n", six, 6);
  check_values(a, 6, (double[]){0, 3, 1, 4, 2, 5});
  a = one("{'descr': '|u1', 'fortran_order': False, 'shape': ()}", six, 1);
  assert_int_equal(a->rank, 0);
  check_values(a, 1, (double[]){0});
  a = one("{'descr': '<f4', 'fortran_order': True, 'shape': (3, 0, 2)}", NULL, 0);
  assert_int_equal(a->rank, 3);
  assert_int_equal(a->shape[0], 3);
  check_values(a, 0, NULL);
  for (int version = 1; version <= 3; version++) {
    uint8_t bytes[256];
    size_t size =
        make_npy(bytes, version, "{'descr': '|u1', 'fortran_order': False, 'shape': (6,)}", six, 6);
    check_values(&parse_ok(bytes, size)->array[0], 6, (double[]){0, 1, 2, 3, 4, 5});
    for (size_t cut = 6; cut < size; cut++) parse_refused(bytes, cut, "array \"f.npz\": it");
    parse_refused(bytes, 4, "no readable .npz archive");
    bytes[6] = 4;
    parse_refused(bytes, size, "version");
  }
}

static void test_bad_headers(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}", "element type"},
      {"{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", "element type"},
      {"{'descr': '<U4', 'fortran_order': False, 'shape': (1,)}", "element type"},
      {"{'descr': 'f4', 'fortran_order': False, 'shape': (1,)}", "element type"},
      {"{'descr': '', 'fortran_order': False, 'shape': (1,)}", "element type"},
      {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", "structured"},
      {"{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}", "fortran_order"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1)}", "tuple"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", "tuple"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1 1)}", "tuple"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", "too large"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", "too large"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387905, 2)}", "too large"},
      {"{'descr': '<f4', 'fortran_order': False}", "dict"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'more': 1}", "unknown key"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x", "dict"},
      {"{'descr': '<f4", "dict"},
      {"", "dict"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", "fewer elements"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (0,)}", "more bytes"},
      {"{'descr': '<f2', 'fortran_order': False, 'shape': (1,)}", "more bytes"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    uint8_t bytes[512];
    size_t size = make_npy(bytes, 1, cases[i][0], "\0\0\0\0", 4);
    parse_refused(bytes, size, cases[i][1]);
  }
  char deep[600] = "{'descr': '|u1', 'fortran_order': False, 'shape': (";
  for (int i = 0; i < 65; i++) strcat(deep, "1,");
  strcat(deep, ")}");
  uint8_t bytes[1024];
  parse_refused(bytes, make_npy(bytes, 1, deep, "\0", 1), "64 axes");
}

/* --- archives --- */

static const char *temporary(void) {
  static char path[64];
  snprintf(path, sizeof path, "/tmp/bb_test_npz_%d.npz", (int)getpid());
  return path;
}

typedef struct file_call {
  const char *path;
  bb_npz *npz;
} file_call;

static void write_body(bb_context *c, void *argument) {
  file_call *f = argument;
  bb_npz_write(c, f->path, f->npz);
}

static void read_body(bb_context *c, void *argument) {
  (void)c;
  file_call *f = argument;
  f->npz = bb_npz_read(arena, f->path);
}

static void test_round_trip(void **state) {
  (void)state;
  float values[6] = {1, 2, 3, NAN, -0.0f, 6};
  int64_t shape[] = {2, 3}, empty[] = {0};
  bb_npz_array arrays[] = {
      {"x", BB_NPY_F32, 2, shape, 6, sizeof values, values},
      {"a/b \xff", BB_NPY_I64, 1, empty, 0, 0, ""},
      {"s", BB_NPY_BF16, 0, NULL, 1, 2, "\xc0\x3f"},
  };
  bb_npz npz = {3, arrays};
  file_call f = {temporary(), &npz};
  assert_int_equal(bb_protect(ctx, write_body, &f), BB_OK);
  assert_int_equal(bb_protect(ctx, write_body, &f), BB_OK); /* over the old one */
  assert_int_equal(bb_protect(ctx, read_body, &f), BB_OK);
  assert_int_equal(f.npz->count, 3);
  for (uint32_t i = 0; i < 3; i++) {
    const bb_npz_array *got = bb_npz_find(f.npz, arrays[i].name);
    assert_non_null(got);
    assert_int_equal(got->type, arrays[i].type);
    assert_int_equal(got->rank, arrays[i].rank);
    assert_int_equal(got->bytes, arrays[i].bytes);
    if (got->bytes) assert_memory_equal(got->data, arrays[i].data, got->bytes);
  }
  assert_null(bb_npz_find(f.npz, "y"));
  unlink(f.path);
  assert_int_equal(bb_protect(ctx, read_body, &f), BB_ERROR_IO);
  f.path = "/nowhere/x.npz";
  assert_int_equal(bb_protect(ctx, write_body, &f), BB_ERROR_IO);
  f.path = "/tmp";
  assert_int_equal(bb_protect(ctx, read_body, &f), BB_ERROR_IO);
}

/* A zip made by libzip; returns its size. */
static size_t make_zip(uint8_t *out, size_t room, const char *name, const void *data, size_t size,
                       zip_int32_t method) {
  int code;
  zip_t *zip = zip_open(temporary(), ZIP_CREATE | ZIP_TRUNCATE, &code);
  assert_non_null(zip);
  zip_int64_t index =
      zip_file_add(zip, name, zip_source_buffer(zip, data, size, 0), ZIP_FL_OVERWRITE);
  assert_true(index >= 0);
  assert_int_equal(zip_set_file_compression(zip, (zip_uint64_t)index, method, 0), 0);
  assert_int_equal(zip_close(zip), 0);
  FILE *file = fopen(temporary(), "rb");
  assert_non_null(file);
  size_t got = fread(out, 1, room, file);
  fclose(file);
  unlink(temporary());
  assert_true(got < room);
  return got;
}

static void test_archives(void **state) {
  (void)state;
  static uint8_t npy[4096], zip[8192], damaged[8192];
  uint8_t zeros[2000] = {0};
  size_t size =
      make_npy(npy, 1, "{'descr': '|u1', 'fortran_order': False, 'shape': (2000,)}", zeros, 2000);
  for (int method = 0; method < 2; method++) {
    zip_int32_t how = method ? ZIP_CM_DEFLATE : ZIP_CM_STORE;
    size_t length = make_zip(zip, sizeof zip, "x.npy", npy, size, how);
    bb_npz *npz = parse_ok(zip, length);
    assert_int_equal(npz->count, 1);
    assert_string_equal(npz->array[0].name, "x");
    assert_int_equal(npz->array[0].count, 2000);
    for (size_t cut = 0; cut < length; cut += 7) parse_refused(zip, cut, "f.npz");
    /* No damage crashes; damage to the packed bytes is found by the checksum. */
    for (size_t i = 0; i < length; i++) {
      memcpy(damaged, zip, length);
      damaged[i] ^= 0x55;
      parse p = {arena, damaged, length, NULL};
      bb_protect(ctx, parse_body, &p);
      assert_int_equal(ctx->deferred_count, 0);
    }
    memcpy(damaged, zip, length);
    damaged[how == ZIP_CM_STORE ? 1000 : 80] ^= 1;
    parse_refused(damaged, length, "array \"x\"");
  }
  size_t length = make_zip(zip, sizeof zip, "x.txt", npy, size, ZIP_CM_STORE);
  parse_refused(zip, length, "no .npy file");
  length = make_zip(zip, sizeof zip, "x.npy", "hello", 5, ZIP_CM_STORE);
  parse_refused(zip, length, "it is no .npy file");
}

/* A size that the file could not hold is refused before it is allocated. */
static void test_claimed_size(void **state) {
  (void)state;
  static uint8_t npy[4096], zip[8192];
  uint8_t zeros[100] = {0};
  size_t size =
      make_npy(npy, 1, "{'descr': '|u1', 'fortran_order': False, 'shape': (100,)}", zeros, 100);
  size_t length = make_zip(zip, sizeof zip, "x.npy", npy, size, ZIP_CM_DEFLATE);
  for (size_t i = 0; i + 46 < length; i++) { /* the central directory's uncompressed size */
    if (memcmp(zip + i, "PK\1\2", 4) != 0) continue;
    zip[i + 26] = 0x7f;
  }
  parse_refused(zip, length, "larger than its file could hold");
}

/* Many members that are one stretch of bytes: each could be there, all of them cannot. */
static void test_overlapping_members(void **state) {
  (void)state;
  enum { ZEROS = 1 << 20, COPIES = 6 };
  static uint8_t npy[ZEROS + 128], zip[8192], many[8192];
  char dict[128];
  snprintf(dict, sizeof dict, "{'descr': '|u1', 'fortran_order': False, 'shape': (%d,)}", ZEROS);
  uint8_t *zeros = calloc(ZEROS, 1);
  assert_non_null(zeros);
  size_t size = make_npy(npy, 1, dict, zeros, ZEROS);
  free(zeros);
  size_t length = make_zip(zip, sizeof zip, "x.npy", npy, size, ZIP_CM_DEFLATE);
  assert_int_equal(parse_ok(zip, length)->count, 1);
  size_t end = length - 22; /* of the directory; its own record follows */
  assert_memory_equal(zip + end, "PK\5\6", 4);
  size_t directory = zip[end + 16] | (size_t)zip[end + 17] << 8, record = end - directory,
         at = directory;
  memcpy(many, zip, directory);
  for (int i = 0; i < COPIES; i++, at += record) memcpy(many + at, zip + directory, record);
  memcpy(many + at, zip + end, 22);
  many[at + 8] = many[at + 10] = COPIES;
  many[at + 12] = (uint8_t)(record * COPIES);
  many[at + 13] = (uint8_t)(record * COPIES >> 8);
  parse_refused(many, at + 22, "larger than its file could hold");
}

/* --- binding --- */

typedef struct bind_call {
  bb_program *program;
  bb_npz npz;
  bb_npz_array array[4];
  int64_t shape[4][3];
  double data[64];
  bb_binding binding;
} bind_call;

static void bind_body(bb_context *c, void *argument) {
  (void)c;
  bind_call *b = argument;
  bb_bind_inputs(b->program, &b->npz, NULL, arena, &b->binding);
}

static void add_array(bind_call *b, const char *name, uint32_t rank, int64_t s0, int64_t s1) {
  uint32_t i = b->npz.count++;
  b->npz.array = b->array;
  b->shape[i][0] = s0;
  b->shape[i][1] = s1;
  size_t count = (size_t)(rank == 2 ? s0 * s1 : s0);
  b->array[i] = (bb_npz_array){name, BB_NPY_F64, rank, b->shape[i], count, count * 8, b->data};
}

static uint32_t add_tensor(bb_program *p, const char *name, bb_tensor_role role, const bb_extent *a,
                           const bb_extent *b) {
  const bb_extent *shape[] = {a, b};
  bb_tensor t = {.name = name, .dtype = BB_F32, .role = role, .rank = b ? 2 : 1, .shape = shape};
  return bb_tensor_add(p, &t);
}

static void test_bind(void **state) {
  (void)state;
  bind_call b = {0};
  b.program = bb_program_create(ctx, "p");
  bb_program *p = b.program;
  const bb_extent *n = bb_extent_symbol(p, "n"), *m = bb_extent_symbol(p, "m");
  uint32_t x = add_tensor(p, "x", BB_TENSOR_INPUT, bb_extent_multiply(p, n, m), NULL);
  uint32_t y =
      add_tensor(p, "y", BB_TENSOR_INPUT, bb_extent_multiply(p, n, n), bb_extent_number(p, 2));
  uint32_t o = add_tensor(p, "o", BB_TENSOR_OUTPUT, m, NULL);
  b.data[1] = 0.1;
  add_array(&b, "x", 1, 12, 0);
  add_array(&b, "y", 2, 9, 2);
  add_array(&b, "unused", 1, 3, 0);
  if (bb_protect(ctx, bind_body, &b) != BB_OK) fail_msg("%s", bb_context_message(ctx));
  assert_int_equal(b.binding.symbol[0], 3);
  assert_int_equal(b.binding.symbol[1], 4);
  assert_int_equal(b.binding.tensor[x].count, 12);
  assert_true(b.binding.tensor[x].data[1] == (double)0.1f);
  assert_null(b.binding.tensor[o].data);
  assert_int_equal(b.binding.tensor[y].count, 18);

  b.shape[1][0] = 8; /* no square */
  assert_int_equal(bb_protect(ctx, bind_body, &b), BB_ERROR_INPUT);
  assert_non_null(
      strstr(bb_context_message(ctx), "input \"y\": shape [8, 2] does not fit [n*n, 2]"));
  b.shape[1][0] = 25; /* n = 5 does not divide 12 */
  assert_int_equal(bb_protect(ctx, bind_body, &b), BB_ERROR_INPUT);
  b.shape[1][0] = 9;
  b.array[1].rank = 1;
  assert_int_equal(bb_protect(ctx, bind_body, &b), BB_ERROR_INPUT);
  b.array[1].rank = 2;
  b.array[0].type = BB_NPY_I64;
  assert_int_equal(bb_protect(ctx, bind_body, &b), BB_ERROR_INPUT);
  assert_non_null(strstr(bb_context_message(ctx), "elements are <i8, the program wants f32"));
  b.array[0].type = BB_NPY_F64;
  b.shape[0][0] = b.shape[1][0] = 0; /* n is 0: m could be anything */
  b.array[0].count = b.array[1].count = 0;
  assert_int_equal(bb_protect(ctx, bind_body, &b), BB_OK);
  assert_int_equal(b.binding.symbol[0], 0);
  assert_int_equal(b.binding.symbol[1], -1);
  b.shape[0][0] = 12;
  assert_int_equal(bb_protect(ctx, bind_body, &b), BB_ERROR_INPUT);
  b.array[0].name = "z";
  assert_int_equal(bb_protect(ctx, bind_body, &b), BB_ERROR_INPUT);
  assert_non_null(strstr(bb_context_message(ctx), "input \"x\": no array of this name"));
  bb_program_destroy(p);
}

/* --- comparison --- */

typedef struct compare_call {
  bb_program *program;
  bb_binding binding;
  bb_npz npz;
  double tolerance;
  uint32_t count;
  bb_comparison *result;
  const char *text;
} compare_call;

static void compare_body(bb_context *c, void *argument) {
  (void)c;
  compare_call *call = argument;
  call->count = bb_compare_outputs(call->program, &call->binding, &call->npz, call->tolerance,
                                   arena, &call->result);
  bb_buffer text = {.arena = arena};
  bb_comparison_print(&text, call->program, &call->binding, &call->result[0]);
  call->text = text.data;
}

static void test_compare(void **state) {
  (void)state;
  compare_call c = {.program = bb_program_create(ctx, "p"), .tolerance = -1};
  bb_program *p = c.program;
  add_tensor(p, "o", BB_TENSOR_OUTPUT, bb_extent_number(p, 2), bb_extent_number(p, 3));
  double got[6] = {1, NAN, INFINITY, 4, -5, 6}, want[6] = {1, NAN, INFINITY, 4, -5, 6.0005};
  bb_interp_tensor held = {got, 6};
  int64_t shape[] = {2, 3};
  bb_npz_array array = {"o", BB_NPY_F64, 2, shape, 6, 48, want};
  c.binding.tensor = &held;
  c.npz = (bb_npz){1, &array};
  assert_int_equal(bb_protect(ctx, compare_body, &c), BB_OK);
  assert_int_equal(c.count, 1);
  assert_true(c.result->pass); /* 0.0005 <= 1e-4 * 7.0005 */
  assert_int_equal(c.result->worst, 5);
  assert_non_null(strstr(c.text, "at [1, 2] (got 6, want 6.0005)"));
  c.tolerance = 1e-5;
  assert_int_equal(bb_protect(ctx, compare_body, &c), BB_OK);
  assert_false(c.result->pass);
  assert_int_equal(c.result->wrong, 1);
  static const double bad[][2] = {
      {NAN, 1}, {1, NAN}, {INFINITY, 1}, {1, INFINITY}, {-INFINITY, INFINITY}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    got[2] = bad[i][0];
    want[2] = bad[i][1];
    assert_int_equal(bb_protect(ctx, compare_body, &c), BB_OK);
    assert_false(c.result->pass);
    assert_int_equal(c.result->worst, 2);
    assert_int_equal(c.result->wrong, 2);
  }
  shape[1] = 4;
  assert_int_equal(bb_protect(ctx, compare_body, &c), BB_OK);
  assert_false(c.result->pass);
  assert_string_equal(c.text, "o: shape [2, 3], expected [2, 4]");
  array.name = "other";
  assert_int_equal(bb_protect(ctx, compare_body, &c), BB_OK);
  assert_true(c.result->missing && !c.result->pass);
  held.data = NULL;
  array.name = "o";
  assert_int_equal(bb_protect(ctx, compare_body, &c), BB_OK);
  assert_false(c.result->pass);
  bb_program_destroy(p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_types, begin, end),
      cmocka_unit_test_setup_teardown(test_shapes, begin, end),
      cmocka_unit_test_setup_teardown(test_bad_headers, begin, end),
      cmocka_unit_test_setup_teardown(test_round_trip, begin, end),
      cmocka_unit_test_setup_teardown(test_archives, begin, end),
      cmocka_unit_test_setup_teardown(test_claimed_size, begin, end),
      cmocka_unit_test_setup_teardown(test_overlapping_members, begin, end),
      cmocka_unit_test_setup_teardown(test_bind, begin, end),
      cmocka_unit_test_setup_teardown(test_compare, begin, end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
