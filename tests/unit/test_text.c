/* test_text.c - programs to text and back; what the reader refuses; equality and hashes. */
#include "hash.h"
#include "text.h"
#include "verify.h"
#include "view.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static bb_program *parse(bb_context *ctx, const char *path, const char *text) {
  bb_program *program = bb_text_parse(ctx, path, text, strlen(text));
  bb_program_defer(program);
  return program;
}

static const char *print(bb_program *program, const char *data_name) {
  bb_buffer out = {.arena = program->arena};
  bb_text_print(&out, program, data_name);
  return out.data;
}

/* Runs body in a context of its own; the message stays in `message`. */
static char message[1024];

static bb_status protect(bb_body *body, void *argument) {
  bb_context *ctx;
  assert_int_equal(bb_context_create(NULL, &ctx), BB_OK);
  bb_status status = bb_protect(ctx, body, argument);
  snprintf(message, sizeof message, "%s", bb_context_message(ctx));
  bb_context_destroy(ctx);
  return status;
}

/* --- print, parse, print --- */

typedef struct trip {
  const char *text;
  bool same; /* the text is printed as it stands */
  char difference[1024];
} trip;

/* Notes the first line in which two texts differ. */
static void compare(trip *t, const char *what, const char *a, const char *b) {
  size_t line = 0, at = 0;
  for (; a[at] && a[at] == b[at]; at++)
    if (a[at] == '\n') line = at + 1;
  if (a[at] == b[at]) return;
  snprintf(t->difference, sizeof t->difference, "%s:\n%.*s\n%.*s", what,
           (int)strcspn(a + line, "\n"), a + line, (int)strcspn(b + line, "\n"), b + line);
}

static void go_round(bb_context *ctx, void *argument) {
  trip *t = argument;
  bb_program *first = parse(ctx, "first", t->text);
  const char *text = print(first, NULL);
  if (t->same) compare(t, "written and printed", t->text, text);
  bb_program *second = parse(ctx, "second", text);
  compare(t, "printed and printed again", text, print(second, NULL));
  if (first->root && !bb_graph_equal(first->root, second->root))
    snprintf(t->difference, sizeof t->difference, "the programs are not equal");
}

static void check_round(const char *text, bool same) {
  static trip t;
  t = (trip){.text = text, .same = same};
  if (protect(go_round, &t) != BB_OK) fail_msg("%s\nin\n%s", message, text);
  if (*t.difference) fail_msg("%s", t.difference);
}

static const char array_text[] =
    "blockbuster 1\n"
    "program \"a model\"\n"
    "stage array\n"
    "symbol S, \"past + 1\", B\n"
    "input X : f32[B,S,64]\n"
    "input \"\\x01\\xff\\\"\\\\\\n\\t\xc3\xa9\" : f32[1]\n"
    "input %0 as \"twice\" : f32[S,S]\n"
    "input \"output\" : f16[4*S*\"past + 1\"]\n"
    "constant %1 as \"twice\" : i64[3] = [-9223372036854775808, 0, 9223372036854775807]\n"
    "constant w : f32[2,3] = [0.1, nan, inf, -inf, -0, 0x7fc00001]\n"
    "constant h : f16[4] = [65504, 6e-8, nan, 0.1]\n"
    "constant b16 : bf16[2] = [9e-41, -3.39e38]\n"
    "constant flags : bool[3] = [0, 1, 0x02]\n"
    "constant d : f64[1] = [0.1]\n"
    "constant none32 : i32[0] = []\n"
    "y = elementwise X*0.5 : f32[B,S,64]\n"
    "%2 = elementwise of (X, X) $0+$1 : f32[B,S,64]\n"
    "%3 = elementwise select(coord(axis 0)<=coord(axis 1),%2,-inf) : f32[B,S,64] @ \"/mask\"\n"
    "s = contract(%3[a,b,c], y[a,d,c] -> [a,b,d]) : f32[B,S,S] @ none\n"
    "m = reduce max(s, axes=[0,2], keep) : f32[1,S,1]\n"
    "all = reduce sum(s, axes=[]) : f32[B,S,S]\n"
    "best = argreduce argmax(s, axis=2) : i64[B,S]\n"
    "run1 = scan sum(s, axis=1, exclusive) : f32[B,S,S]\n"
    "r = reshape(X) : f32[B,S,8,8]\n"
    "t = transpose(r, perm=[0,2,1,3]) : f32[B,8,S,8]\n"
    "e = broadcast(m) : f32[B,S,4]\n"
    "c = slice(X, axis=2, start=63, by=-2, length=32) : f32[B,S,32]\n"
    "k = concat(c, c, axis=2) : f32[B,S,64]\n"
    "g, none, %4 = misc \"com.microsoft\":\"Odd Op\" 7(k, none, w) {alpha=1.0, beta=-0.5, axis=-1, "
    "mode=\"a\\\"b\", ints=[1,-2], floats=[1.0,nan], no_ints=[], no_floats=float[]} of "
    "(f32[B,S,64], "
    "absent, f32[2,3]) -> (f32[1]) : f32[1] : absent : i64[S]\n"
    "all2 = misc \"Keep\" 1(%1, h, b16, flags, d, none32) : f32[]\n"
    "output g\n"
    "output \"best index\" = best\n"
    "output again = g\n";

static const char block_text[] =
    "blockbuster 1\n"
    "stage block\n"
    "serial 40\n"
    "symbol M, N, L\n"
    "dim M = M\n"
    "dim N = N\n"
    "dim H = 12 enumerated\n"
    "dim P = 8*M*L\n"
    "input X : f32[12,M,N] dims [H,M,N]\n"
    "constant \"odd\\x01\" : bf16[2] = [1, 0x7fc1]\n"
    "local T once : i64[2]\n"
    "output O : f32[M]\n"
    "output O : f32[M]\n"
    "root {\n"
    "  %0 = input X[H,M,N] : [H][M][N]f32(M,N)\n"
    "  %1 = input X[3,2+M,7-2*N] : [M][N]f32(M,N) @ \"slice\"\n"
    "  %2 = input X of join M (X[0,M,N] at 0 to 4, X[1,M,N] at 4 to 8) : [M][N:none]f32(M,N)\n"
    "  %22, %22.1, %22.2 = map H (%3 = %0[0], %4 = %0, %5 = %1) {\n"
    "    %18, %18.1 = map M (%6 = %3[0]) {\n"
    "      %12 = map N (%7 = %6[0]) {\n"
    "        %8 = elementwise select(coord(col)<=coord(row),exp(%7)*coord(map 0),-inf)\n"
    "        %9 = row_sum(%8)\n"
    "        %10, %10.1 = row_argmax(%8) @ \"some\\nnode\"\n"
    "        yield %9\n"
    "      }\n"
    "      %13 = reduce sum(%12[0])\n"
    "      %14 = scan sum(%12[0])\n"
    "      %15 = elementwise of (%13, %13) $1+$0\n"
    "      %16 = scan_exclusive sum(%12[0]) : [N:none]f32(M,_)\n"
    "      yield %15, fold max %13\n"
    "    }\n"
    "    yield %18 by row, invariant %18.1, fold argmax 1 %18.1 : f64\n"
    "  }\n"
    "  %23 = view %22[3,1+M] : [M]f32(M,_)\n"
    "  %24 = view of (%22, %22) join M (&1[1,M] at 0 to 4, &0[0,M] at 4 to 9) : [M]f32(M,_)\n"
    "  %25, %25.1 = misc \"x\":\"Gather\" 13(%23, none, %24) {axis=1} of (f32[M,1] dims [M], "
    "absent) -> (i64[2]) : [M]f32(M,_), f32\n"
    "  output &4[M] = %23\n"
    "  output O of join M (O[M] at 0 to 1) = %25 @ \"O\"\n"
    "}\n";

static const char fused_text[] =
    "blockbuster 1\n"
    "stage fused\n"
    "serial 2\n"
    "symbol M\n"
    "dim M = M\n"
    "input X : f32[M] dims [M]\n"
    "local T : f32[M] dims [M]\n"
    "output O : f32[M] dims [M]\n"
    "candidate c0 once chosen 1 {\n"
    "  graph {\n"
    "    %0 = input X[M] : [M]f32(M,_)\n"
    "    output T[M] = %0\n"
    "  }\n"
    "  snapshot 0 {\n"
    "    %0 = input X[M] : [M]f32(M,_)\n"
    "    output T[M] = %0\n"
    "  }\n"
    "  snapshot 12 operations 1.5e20 buffered 4096 {\n"
    "    %0 = input X[M] : [M]f32(M,_)\n"
    "    output T[M] = %0\n"
    "  }\n"
    "}\n"
    "candidate \"odd name\" chosen 0 {\n"
    "  graph {\n"
    "    %0 = input T[M] : [M]f32(M,_)\n"
    "    output O[M] = %0\n"
    "  }\n"
    "  snapshot 0 {\n"
    "    %0 = input T[M] : [M]f32(M,_)\n"
    "    output O[M] = %0\n"
    "  }\n"
    "}\n"
    "step run 0(X[M]) to (T) @ \"first\"\n"
    "step misc \"Gather\" 13(T[M], none, join M (T[M] at 0 to 1)) {axis=0} to (T)\n"
    "step run 1() to (O)\n";

/* What the array text calls bad: a type of yield that its collect axis contradicts is kept. */
static void test_round(void **state) {
  (void)state;
  check_round(array_text, true);
  check_round(fused_text, true);
  check_round("blockbuster 1\nstage array\n", true);
  check_round("blockbuster 1\nstage partition\nserial 0\n", true);
  /* Words of options are no names of operands. */
  check_round("blockbuster 1\nstage array\ninput \"fill\" : f32[2]\ninput \"pad\" : f32[2]\n"
              "y = concat(\"fill\", \"pad\", axis=0) : f32[4]\noutput y\n",
              true);
}

static void test_round_block(void **state) {
  (void)state;
  /* An axis or a type that would follow anyway is left out. */
  char expected[sizeof block_text];
  strcpy(expected, block_text);
  char *usual = strstr(expected, " : [N:none]f32(M,_)\n      yield");
  assert_non_null(usual);
  memmove(usual, usual + strlen(" : [N:none]f32(M,_)"),
          strlen(usual + strlen(" : [N:none]f32(M,_)")) + 1);
  check_round(block_text, false);
  check_round(expected, true);
}

static void test_examples(void **state) {
  (void)state;
  static const char *const names[] = {"attention", "layernorm_matmul", "rmsnorm_swiglu"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char path[512], text[8192];
    snprintf(path, sizeof path, "%s/%s.bb", EXAMPLES, names[i]);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = '\0';
    check_round(text, false);
  }
}

/* A hand-written program says no more than it must. */
static void plain_body(bb_context *ctx, void *argument) {
  (void)argument;
  bb_program *program = parse(ctx, "plain",
                              "# a comment\nblockbuster 1 dim M, D\n"
                              "input Q : f32[M,D] input KT : f32[M,D] # both\n"
                              "s = contract(Q[m,d], KT[n,d] -> [m,n])\n"
                              "p = elementwise exp(s*(D**-0.5))\n"
                              "r = reduce sum(p, axis=-1, keep)\n"
                              "output O = elementwise p/r");
  assert_string_equal(print(program, NULL), "blockbuster 1\nstage array\nsymbol M, D\n"
                                            "input Q : f32[M,D]\ninput KT : f32[M,D]\n"
                                            "s = contract(Q[a,b], KT[c,b] -> [a,c]) : f32[M,M]\n"
                                            "p = elementwise exp(s*(symbol(D)**-0.5)) : f32[M,M]\n"
                                            "r = reduce sum(p, axis=1, keep) : f32[M,1]\n"
                                            "O = elementwise p/r : f32[M,M]\n"
                                            "output O\n");
}

static void test_plain(void **state) {
  (void)state;
  assert_int_equal(protect(plain_body, NULL), BB_OK);
}

/* --- what is refused --- */

static void parse_body(bb_context *ctx, void *argument) {
  parse(ctx, "bad.bb", argument);
}

#define BLOCK "blockbuster 1 stage block symbol M dim M = M input X : f32[M] dims [M] root {\n"
#define INPUT "%x = input X[M] : [M]f32(M,_)\n"

static void test_errors(void **state) {
  (void)state;
  static const struct {
    const char *text, *error;
  } cases[] = {
      {"", "bad.bb:1:1: expected blockbuster but the text ends"},
      {"blockbuster 2", "bad.bb:1:13: this version reads texts of version 1 only"},
      {"blockbuster 1 stage soup",
       "bad.bb:1:21: expected array, block, partition or fused but found soup"},
      {"blockbuster 1 stage block", "bad.bb:1:26: a block program without its root"},
      {"blockbuster 1\n\n  input X : f33[2]",
       "bad.bb:3:13: expected an element type such as f32 but found f33"},
      {"blockbuster 1 input X : f32[M]", "bad.bb:1:29: M is not declared: dim M"},
      {"blockbuster 1 dim M, M", "bad.bb:1:22: symbol M is declared twice"},
      {"blockbuster 1 dim M = 4 dim M = 5", "bad.bb:1:29: dim M is declared twice"},
      {"blockbuster 1 dim M.N = 4",
       "bad.bb:1:19: the name of a dim is a letter and up to 63 letters, digits and _"},
      {"blockbuster 1 dim M = 4000000000*4000000000",
       "bad.bb:1:23: an extent is too large: 4000000000 * 4000000000"},
      {"blockbuster 1 input X : f32[99999999999999999999]", "bad.bb:1:29: an integer too large"},
      {"blockbuster 1 input X : f32[2] input X : f32[2]", "bad.bb:1:38: X is defined twice"},
      {"blockbuster 1 input X : f32[2] y = frobnicate(X)",
       "bad.bb:1:36: expected an array operator but found frobnicate"},
      {"blockbuster 1 input X : f32[2] y = elementwise exp(Z)", "bad.bb:1:52: an unknown name Z"},
      {"blockbuster 1 input X : f32[2] y = elementwise X*", "bad.bb:1:50: expected an expression"},
      {"blockbuster 1 input X : f32[2] y = elementwise X*2 : f32[3]",
       "bad.bb:1:54: the result is f32[2]"},
      {"blockbuster 1 input X : f32[2] input Y : f32[3] y = elementwise X+Y",
       "bad.bb:1:53: node y: shapes [2] and [3] do not broadcast"},
      {"blockbuster 1 input X : f32[2] y = reduce sum(X, axis=1)",
       "bad.bb:1:55: the operand has 1 axes"},
      {"blockbuster 1 input X : f32[2] y = reduce sum(X, keep=1)",
       "bad.bb:1:54: expected , but found ="},
      {"blockbuster 1 input X : f32[2] y = reduce total(X)",
       "bad.bb:1:43: expected a monoid such as sum or max but found total"},
      {"blockbuster 1 input X : f32[2] y = scan sum(X)", "bad.bb:1:36: the axis is missing"},
      {"blockbuster 1 input X : f32[2] y = transpose(X, perm=[0,0])",
       "bad.bb:1:36: perm must name all 1 axes"},
      {"blockbuster 1 constant c : f32[2] = [1]", "bad.bb:1:37: 1 elements where the shape has 2"},
      {"blockbuster 1 constant c : i32[1] = [2147483648]",
       "bad.bb:1:38: a number too large for i32"},
      {"blockbuster 1 constant c : bool[1] = [2]", "bad.bb:1:39: a bool is 0 or 1"},
      {"blockbuster 1 constant c : f16[1] = [70000]", "bad.bb:1:38: a number too large for f16"},
      {"blockbuster 1 constant c : f32[1] = [0x123456789]",
       "bad.bb:1:38: the bits of f32 are up to 8 hexadecimal digits"},
      {"blockbuster 1 constant c : f32[9223372036854775807,9223372036854775807] = [1]",
       "bad.bb:1:75: a constant too large"},
      {"blockbuster 1 constant c : f32[1] = file(\"../x\", 0, 4)",
       "bad.bb:1:42: a data file must lie beside the text, not at \"../x\""},
      {"blockbuster 1 constant c : f32[1] = file(\"/etc/passwd\", 0, 4)",
       "bad.bb:1:42: a data file must lie beside the text, not at \"/etc/passwd\""},
      {"blockbuster 1 constant c : f32[1] = file(\"x\", 0, 8)",
       "bad.bb:1:41: the shape has 4 bytes"},
      {"blockbuster 1 input \"a", "bad.bb:1:21: a quoted name without its closing quote"},
      {"blockbuster 1 input \"a\\q\" : f32[1]",
       "bad.bb:1:21: an escape that is none of \\\" \\\\ \\n \\t \\xHH"},
      {"blockbuster 1 input \"a\\x00\" : f32[1]", "bad.bb:1:21: a name with a NUL byte"},
      {"blockbuster 1 \x01", "bad.bb:1:15: unexpected byte 0x01"},
      {"blockbuster 1 ;", "bad.bb:1:15: expected the name of a value but found ;"},
      {BLOCK INPUT "%y = exp(%x) }",
       "bad.bb:3:6: expected an op, map, reduce, scan, view or misc but found exp"},
      {BLOCK INPUT "%y = add(%x, %z) }", "bad.bb:3:14: there is no value %z at this level"},
      {BLOCK INPUT "%y = add(%x, %x) }", "bad.bb:3:6: operand 0 is not an item"},
      {BLOCK INPUT "%y = map Q () { yield } }", "bad.bb:3:10: there is no dim Q"},
      {BLOCK INPUT "%y = map M (%a = %x[1]) { yield %a } }",
       "bad.bb:3:18: the value has no such list level"},
      {BLOCK INPUT "%y, %z = map M (%a = %x[0]) { yield %a } }",
       "bad.bb:3:1: 2 names for a node with 1 results"},
      {BLOCK INPUT "%x = map M (%a = %x[0]) { yield %a } }", "bad.bb:3:1: %x is defined twice"},
      {BLOCK INPUT "output Y[M] = %x }", "bad.bb:3:8: there is no tensor Y"},
      {BLOCK INPUT "output X[M = %x }", "bad.bb:3:12: expected , but found ="},
      {BLOCK INPUT "%v = view %x[M] }", "bad.bb:3:17: a view needs its type"},
      {BLOCK INPUT "} root { }", "bad.bb:3:3: a program has one root"},
      {BLOCK INPUT, "bad.bb:3:1: expected a value such as %1 but the text ends"},
      {"blockbuster 1 stage fused candidate c chosen 0 { }", "bad.bb:1:39: there is no snapshot 0"},
      {"blockbuster 1 stage fused step run 0() to ()",
       "bad.bb:1:36: the candidate is out of range"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_int_equal(protect(parse_body, (void *)cases[i].text), BB_ERROR_INPUT);
    assert_string_equal(message, cases[i].error);
  }
}

/* Every prefix of a good text, and every text with one byte changed, is read or refused. */
static void test_damaged(void **state) {
  (void)state;
  static const char *const texts[] = {array_text, block_text, fused_text};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    char copy[sizeof array_text + sizeof block_text];
    size_t length = strlen(texts[i]);
    for (size_t at = 0; at < length; at++) {
      strcpy(copy, texts[i]);
      copy[at] = at % 3 ? "({[%\"0x,=-"[at % 10] : '\0';
      bb_status status = protect(parse_body, copy);
      assert_true(status == BB_OK || status == BB_ERROR_INPUT);
      if (status != BB_OK) assert_memory_equal(message, "bad.bb:", 7);
    }
  }
}

static void test_hostile(void **state) {
  (void)state;
  static const struct {
    const char *start, *unit;
  } cases[] = {
      {BLOCK INPUT, "%y = map M (%x = %x) { "},
      {BLOCK INPUT, "%y = map M () { "},
      {"blockbuster 1 input X : f32[", "2*"},
      {"blockbuster 1 input X : f32[", "1,"},
      {"blockbuster 1 ", "("},
      {"blockbuster 1 constant c : f32[1] = [", "1,"},
      {"blockbuster 1 ", "a,"},
      {"blockbuster 1 x = misc \"a\" 1() {", "a=1,"},
      {BLOCK, "%x = view join M ("},
      {"blockbuster 1 x = elementwise ", "((("},
      {"blockbuster 1 dim ", "a,"},
      {"blockbuster 1 # ", "comment "},
  };
  enum { LENGTH = 1 << 20 };
  char *text = malloc(LENGTH + 100);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    size_t n = strlen(cases[i].start), unit = strlen(cases[i].unit);
    memcpy(text, cases[i].start, n);
    for (; n + unit < LENGTH; n += unit) memcpy(text + n, cases[i].unit, unit);
    text[n] = '\0';
    bb_status status = protect(parse_body, text);
    assert_true(status == BB_OK || status == BB_ERROR_INPUT);
  }
  free(text);
}

/* --- data files --- */

static void write_piece(void *user, const void *bytes, size_t length) {
  fwrite(bytes, 1, length, user);
}

static void data_body(bb_context *ctx, void *argument) {
  char *folder = argument, path[512];
  bb_buffer text = {.arena = bb_scratch(ctx)};
  bb_put(&text, "blockbuster 1\nstage array\nconstant small : i64[2] = [1, 2]\n");
  for (int c = 0; c < 2; c++) {
    bb_put(&text, "constant large%d : i64[70] = [%d", c, c);
    for (int i = 1; i < 70; i++) bb_put(&text, ", %d", c * 1000 + i);
    bb_put(&text, "]\n");
  }
  bb_put(&text, "y = elementwise small+i64(1)\nz = concat(large1, small, large0, axis=0)\n"
                "output y\noutput z\n");
  bb_program *inline_program = parse(ctx, "inline", text.data);
  const char *full = print(inline_program, NULL), *brief = print(inline_program, "model.data");
  assert_non_null(strstr(brief, "large1 : i64[70] = file(\"model.data\", 576, 560)"));
  assert_non_null(strstr(brief, "small : i64[2] = [1, 2]"));
  snprintf(path, sizeof path, "%s/model.data", folder);
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  bb_text_data(inline_program, write_piece, file);
  fclose(file);
  snprintf(path, sizeof path, "%s/model.bb", folder);
  bb_program *mapped = parse(ctx, path, brief);
  assert_string_equal(print(mapped, NULL), full);
  assert_string_equal(print(mapped, "model.data"), brief);
}

static void test_data(void **state) {
  (void)state;
  char folder[] = "/tmp/bb-text-XXXXXX", path[64];
  assert_non_null(mkdtemp(folder));
  bb_status status = protect(data_body, folder);
  snprintf(path, sizeof path, "%s/model.data", folder);
  unlink(path);
  rmdir(folder);
  if (status != BB_OK) fail_msg("%s", message);
}

/* --- equality and hashes --- */

#define LAYER(first, second, body)                                                                 \
  "blockbuster 1 stage block symbol A, B dim " first " = A dim " second " = B "                    \
  "input X : f32[A,B] dims [" first "," second "] output O : f32[A] dims [" first "] "             \
  "root { %x = input X[" first "," second "] : [" first "][" second "]f32(" first "," second       \
  ") " body " output O[" first "] = %o }"
#define SUMS(m, n, inside)                                                                         \
  LAYER(m, n, "%o = map " m " (%a = %x[0]) { %n = map " n " (%b = %a[0]) { " inside " } yield %n }")

static bb_hash hash_of(bb_program *program) {
  return bb_hash_graph(program, program->root);
}

static bool same_hash(bb_hash a, bb_hash b) {
  return a.low == b.low && a.high == b.high;
}

static void equal_body(bb_context *ctx, void *argument) {
  (void)argument;
  bb_program *base = parse(ctx, "a", SUMS("M", "N", "%s = row_sum(%b) yield fold sum %s"));
  bb_program *renamed = parse(ctx, "b", SUMS("Q", "P", "%k = row_sum(%b) yield fold sum %k"));
  bb_program *again = parse(ctx, "c", SUMS("M", "N", "%900 = row_sum(%b) yield fold sum %900"));
  assert_true(bb_graph_equal(base->root, again->root));
  assert_true(same_hash(hash_of(base), hash_of(again)));
  /* Names of dims do not count for the hash; equality is about one program and names do. */
  assert_true(same_hash(hash_of(base), hash_of(renamed)));
  assert_false(bb_graph_equal(base->root, renamed->root));
  static const char *const others[] = {
      SUMS("M", "N", "%s = row_max(%b) yield fold sum %s"),
      SUMS("M", "N", "%s = row_sum(%b) yield fold max %s"),
      SUMS("M", "N", "%e = elementwise exp(%b) %s = row_sum(%e) yield fold sum %s"),
      SUMS("M", "N", "%e = elementwise exp(%b*2) %s = row_sum(%e) yield fold sum %s"),
      SUMS("M", "N", "%e = elementwise exp(%b*3) %s = row_sum(%e) yield fold sum %s"),
      SUMS("M", "N", "%e = elementwise %b*extent(M) %s = row_sum(%e) yield fold sum %s"),
      SUMS("M", "N", "%e = elementwise %b*extent(N) %s = row_sum(%e) yield fold sum %s"),
      SUMS("M", "N", "%s = row_sum(%b) %t = row_sum(%b) yield fold sum %s"),
      SUMS("M", "N", "%e = elementwise %b*coord(row) %s = row_sum(%e) yield fold sum %s"),
      SUMS("M", "N", "%e = elementwise %b*coord(col) %s = row_sum(%e) yield fold sum %s"),
  };
  enum { COUNT = sizeof others / sizeof *others };
  bb_program *other[COUNT];
  for (int i = 0; i < COUNT; i++) {
    other[i] = parse(ctx, "d", others[i]);
    assert_false(bb_graph_equal(base->root, other[i]->root));
    assert_false(same_hash(hash_of(base), hash_of(other[i])));
    for (int k = 0; k < i; k++) {
      assert_false(bb_graph_equal(other[k]->root, other[i]->root));
      assert_false(same_hash(hash_of(other[k]), hash_of(other[i])));
    }
  }
  char text[33];
  bb_hash_text(hash_of(base), text);
  assert_int_equal(strlen(text), 32);
  assert_int_equal(strspn(text, "0123456789abcdef"), 32);
}

static void test_equal(void **state) {
  (void)state;
  if (protect(equal_body, NULL) != BB_OK) fail_msg("%s", message);
}

/* One shared operand is not two equal ones, though their hashes may be. */
static void sharing_body(bb_context *ctx, void *argument) {
  (void)argument;
  static const char shared[] = LAYER("M", "N",
                                     "%o = map M (%a = %x[0]) { %n = map N (%b = %a[0]) { "
                                     "%e = elementwise exp(%b) %s = mul(%e, %e) %t = row_sum(%s) "
                                     "yield fold sum %t } yield %n }");
  static const char twice[] = LAYER("M", "N",
                                    "%o = map M (%a = %x[0]) { %n = map N (%b = %a[0]) { "
                                    "%e = elementwise exp(%b) %f = elementwise exp(%b) "
                                    "%s = mul(%e, %f) %t = row_sum(%s) yield fold sum %t } "
                                    "yield %n }");
  bb_program *a = parse(ctx, "a", shared), *b = parse(ctx, "b", twice);
  assert_false(bb_graph_equal(a->root, b->root));
  assert_false(bb_graph_equal(b->root, a->root));
  assert_false(same_hash(hash_of(a), hash_of(b)));
}

static void test_sharing(void **state) {
  (void)state;
  if (protect(sharing_body, NULL) != BB_OK) fail_msg("%s", message);
}

/* --- when memory runs out --- */

typedef struct supply {
  uint64_t calls, fail_at;
  size_t live;
} supply;

static void *resize(void *user, void *pointer, size_t old_size, size_t new_size) {
  supply *s = user;
  if (new_size && ++s->calls >= s->fail_at) return NULL;
  void *memory = new_size ? realloc(pointer, new_size) : NULL;
  if (!new_size) free(pointer);
  s->live += new_size - old_size;
  return memory;
}

/* Everything that reads, prints, compares and examines programs. */
static void use_all(bb_context *ctx, void *argument) {
  bb_program *first = parse(ctx, "first", argument);
  bb_program *second = parse(ctx, "second", print(first, NULL));
  bb_verify_program(second, bb_scratch(ctx));
  const bb_graph *root = first->root;
  if (!root) return;
  hash_of(first);
  if (!bb_graph_equal(root, second->root)) bb_fail(ctx, BB_ERROR_MISMATCH, "not equal");
  bb_view *view = bb_view_create(root);
  uint32_t *node = BB_NEW(bb_scratch(ctx), uint32_t, root->count);
  bool *reached = BB_NEW(bb_scratch(ctx), bool, root->count);
  bb_view_reach(view, 1, root->input, BB_DOWNSTREAM, reached);
  bb_view_dominators(view, BB_UPSTREAM, node);
  bb_view_topological(view, node);
  bb_view_isomorphic(root, root);
}

static bb_status use_with(supply *s, const char *text) {
  bb_context_options options = {.version = BB_VERSION, .allocator = {resize, s}};
  bb_context *ctx = NULL;
  bb_status status = bb_context_create(&options, &ctx);
  if (status != BB_OK) return status;
  ctx->spare_most = 0;
  status = bb_protect(ctx, use_all, (void *)text);
  snprintf(message, sizeof message, "%s", bb_context_message(ctx));
  bb_context_destroy(ctx);
  return status;
}

static void test_memory(void **state) {
  (void)state;
  static const char *const texts[] = {array_text, block_text, fused_text};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    supply whole = {.fail_at = UINT64_MAX};
    if (use_with(&whole, texts[i]) != BB_OK) fail_msg("%s", message);
    assert_int_equal(whole.live, 0);
    assert_true(whole.calls > 20);
    for (uint64_t n = 1; n <= whole.calls; n++) {
      supply s = {.fail_at = n};
      assert_int_equal(use_with(&s, texts[i]), BB_ERROR_MEMORY);
      assert_int_equal(s.live, 0);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_round),    cmocka_unit_test(test_round_block),
      cmocka_unit_test(test_examples), cmocka_unit_test(test_plain),
      cmocka_unit_test(test_errors),   cmocka_unit_test(test_damaged),
      cmocka_unit_test(test_hostile),  cmocka_unit_test(test_data),
      cmocka_unit_test(test_equal),    cmocka_unit_test(test_sharing),
      cmocka_unit_test(test_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
