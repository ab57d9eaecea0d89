/* test_verify.c - for every law a program that breaks it, and one that does not. */
#include "array/array.h"
#include "text.h"
#include "verify_law.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define TABLES                                                                                     \
  "blockbuster 1 symbol M, N, K dim M = M dim N = N dim K = K dim H = 4 enumerated dim P = 8 "     \
  "dim Q = 4 "
#define BLOCK                                                                                      \
  "blockbuster 1 stage block symbol M, N, K dim M = M dim N = N dim K = K "                        \
  "dim H = 4 enumerated dim P = 8 dim Q = 4 "
#define PARTITION                                                                                  \
  "blockbuster 1 stage partition symbol M, N dim M = M dim N = N "                                 \
  "input X : f32[M,N] dims [M,N] local T : f32[M,N] dims [M,N] output O : f32[M,N] dims [M,N] "
#define FUSED                                                                                      \
  "blockbuster 1 stage fused symbol M, N dim M = M dim N = N "                                     \
  "input X : f32[M,N] dims [M,N] output O : f32[M,N] dims [M,N] "
#define X_TO_O "input X : f32[M,N] dims [M,N] output O : f32[M,N] dims [M,N] "
#define X_TO_R "input X : f32[M,N] dims [M,N] output R : f32[M] dims [M] "
#define X_IN "%x = input X[M,N] : [M][N]f32(M,N) "
/* A nest over M and N around `body`, which gives %z for each block %b. */
#define EACH(body, port)                                                                           \
  BLOCK X_TO_O "root { " X_IN "%o = map M (%a = %x[0]) { %n = map N (%b = %a[0]) { " body          \
               " yield " port " } yield %n } output O[M,N] = %o }"
/* The same with a result of one value for each row. */
#define ROWS(body, port, after)                                                                    \
  BLOCK X_TO_R "root { " X_IN "%o = map M (%a = %x[0]) { %n = map N (%b = %a[0]) { " body          \
               " yield " port " } " after " } output R[M] = %o }"
#define COPY(from, to)                                                                             \
  "{ %x = input " from                                                                             \
  "[M,N] : [M][N]f32(M,N) %o = map M (%a = %x[0]) { %n = map N (%b = %a[0]) { "                    \
  "%z = elementwise exp(%b) yield %z } yield %n } output " to "[M,N] = %o } "

/* --- what no text can say --- */

static bb_node *find(bb_graph *graph, bb_kind kind) {
  for (uint32_t i = 0; i < graph->count; i++)
    if (graph->node[i]->kind == kind) return graph->node[i];
  return NULL;
}

static bb_graph *innermost(bb_program *program) {
  bb_graph *graph = program->root;
  for (bb_node *map; (map = find(graph, BB_NODE_MAP));) graph = map->inner;
  return graph;
}

static void drop_expression(bb_program *p) {
  find(innermost(p), BB_NODE_FUNC)->expr = NULL;
}
static void drop_use(bb_program *p) {
  find(p->root, BB_NODE_INPUT)->out[0].first.node = BB_NONE;
}
static void drop_output(bb_program *p) {
  p->root->noutputs = 0;
}
static void drop_root(bb_program *p) {
  p->root = NULL;
}
static void drop_array(bb_program *p) {
  p->array = NULL;
}
static void shorten_data(bb_program *p) {
  p->tensor[0].bytes -= 1;
}
static void drop_producer(bb_program *p) {
  p->array->value[p->array->output[0]].producer = 7;
}
static void drop_attributes(bb_program *p) {
  p->array->node[0].count = 0;
}
static void change_type(bb_program *p) {
  p->array->value[p->array->output[0]].dtype = BB_F64;
}
static void drop_value(bb_program *p) {
  p->array->output[0] = 99;
}

static void close_cycle(bb_program *p) {
  bb_graph *graph = innermost(p);
  for (uint32_t i = 0; i < graph->count; i++)
    if (graph->node[i]->kind == BB_NODE_FUNC) bb_connect(graph, i, 0, (bb_value){i, 0});
}

static void swap_nodes(bb_program *p) {
  bb_array_node first = p->array->node[0];
  p->array->node[0] = p->array->node[1];
  p->array->node[1] = first;
}

static void duplicate_map(bb_program *p) {
  bb_node *map = find(p->root, BB_NODE_MAP);
  map->inner->ninputs--; /* one inner input fewer than in-ports */
}

/* An empty element that is not neutral, in a monoid that nobody made. */
static void spoil_monoid(bb_program *p) {
  bb_node *fold = find(find(p->root, BB_NODE_MAP)->inner, BB_NODE_MAP);
  bb_monoid *monoid = BB_NEW(p->arena, bb_monoid, 1);
  bb_monoid_component *component = BB_NEW(p->arena, bb_monoid_component, 2);
  *monoid = *fold->out[0].fold;
  memcpy(component, monoid->component, 2 * sizeof *component);
  component[1].empty = 1;
  monoid->component = component;
  fold->out[0].fold = fold->out[1].fold = monoid;
}

/* --- the cases --- */

#define PAIR                                                                                       \
  "monoid pair { top : f32 empty -inf = max(left.top, right.top) "                                 \
  "total : f32 empty 0 = left.total + right.total } "
#define WEIGHTED                                                                                   \
  "monoid pair { top : f32 empty -inf = max(left.top, right.top) "                                 \
  "total : f32 empty 0 from 0 to inf = left.total * exp(left.top - max(left.top, right.top)) + "   \
  "right.total * exp(right.top - max(left.top, right.top)) } "
/* The maximum of rows, and a value `q` made from their block, folded by a tuple. */
#define PAIRED(monoid, q)                                                                          \
  BLOCK monoid X_TO_R "root { " X_IN "%o = map M (%a = %x[0]) { %n, %t = map N (%b = %a[0]) { "    \
                      "%z = row_max(%b) %q = " q " yield fold pair %z, fold pair 1 %q } "          \
                      "yield %n } output R[M] = %o }"

#define ARRAY "blockbuster 1 dim M, N input X : f32[M,N] "

static const struct {
  bb_law law;
  const char *text;
  void (*change)(bb_program *program);
} cases[] = {
    {BB_LAW_PORTS, EACH("%z = elementwise exp(%b)", "%z"), drop_expression},
    {BB_LAW_PORTS, EACH("%z = mul(%b, %b) past extent(M)+1", "%z"), NULL},
    {BB_LAW_PORTS, EACH("%z = elementwise exp(%b)", "%z"), duplicate_map},
    {BB_LAW_CONNECTED, EACH("%z = add(%b, none) : f32(M,N)", "%z"), NULL},
    {BB_LAW_USES, EACH("%z = elementwise exp(%b)", "%z"), drop_use},
    {BB_LAW_BOUNDARY, EACH("%z = elementwise exp(%b)", "%z"), drop_output},
    {BB_LAW_SERIAL, EACH("%7 = elementwise exp(%b) %07 = elementwise log(%7)", "%07"), NULL},
    {BB_LAW_ACYCLIC, EACH("%z = elementwise exp(%b)", "%z"), close_cycle},
    {BB_LAW_ROOT_ONLY,
     BLOCK X_TO_O "root { " X_IN
                  "%o = map M (%a = %x[0]) { %v = view %a[N] : [N]f32(M,N) yield %v } "
                  "output O[M,N] = %o }",
     NULL},
    {BB_LAW_TYPED, EACH("%z = elementwise exp(%b) : ?", "%z : [N]f32(M,N)"), NULL},
    {BB_LAW_ENUMERATED_ITEM,
     BLOCK "input X : f32[4] dims [H] output O : f32[4] dims [H] "
           "root { %x = input X[H] : [H]f32(H,_) output O[H] = %x }",
     NULL},
    {BB_LAW_LEVEL_AXIS,
     BLOCK X_TO_O "root { %x = input X[M,N] : [M:col][N]f32(M,N) output O[M,N] = %x }", NULL},
    {BB_LAW_LEVEL_AXIS,
     BLOCK "input X : f32[M,M] dims [M,M] output O : f32[M,M] dims [M,M] "
           "root { %x = input X[M,M] : [M:row][M:row]f32(M,M) output O[M,M] = %x }",
     NULL},
    {BB_LAW_LISTED_AXES,
     BLOCK X_TO_O "root { %x = input X[M,N] : [M][N:none]f32(M,N) output O[M,N] = %x }", NULL},
    {BB_LAW_OP_OPERANDS, EACH("%r = row_sum(%b) %z = add(%b, %r) : f32(M,N)", "%z"), NULL},
    {BB_LAW_OP_OPERANDS, EACH("%z = add(%b) : f32(M,N)", "%z"), NULL},
    {BB_LAW_OP_RESULT, EACH("%z = add(%b, %b) : f16(M,N)", "%z : [N]f16(M,N)"), NULL},
    {BB_LAW_BOUND_AXES,
     BLOCK "input X : f32[M] dims [M] output O : f32[M] dims [M] "
           "root { %x = input X[M] : [M]f32(M,_) %o = map M (%a = %x[0], %w = %x) { "
           "%n = map M (%b = %w[0], %c = %a) { %z = add(%b, %c) yield fold sum %z } yield %n } "
           "output O[M] = %o }",
     NULL},
    {BB_LAW_EXPR_ARGS, EACH("%z = elementwise f32(%b'f64)", "%z"), NULL},
    {BB_LAW_EXPR_LEAVES, EACH("%z = elementwise %b+coord(axis 0)", "%z"), NULL},
    {BB_LAW_EXPR_STORED, EACH("%z = elementwise f32(u8(%b)*u8(%b))", "%z"), NULL},
    {BB_LAW_EXPR_STORED, EACH("%z = elementwise select(i8(%b),%b,0)", "%z"), NULL},
    {BB_LAW_OP_OPERANDS, EACH("%s = elementwise u16(%b) %z = add(%s, %s) : u16(M,N)", "%z"), NULL},
    {BB_LAW_COORD_AXIS,
     ROWS("%z = row_sum(%b)", "fold sum %z", "%q = elementwise %n*coord(col) yield %q"), NULL},
    {BB_LAW_COORD_MAP, EACH("%z = elementwise %b+coord(map 0)", "%z"), NULL},
    {BB_LAW_COORD_MAP, EACH("%z = elementwise %b+coord(map 2)", "%z"), NULL},
    {BB_LAW_REDUCE_COMPONENTS, ROWS("%z = row_sum(%b)", "%z", "%q = reduce argmax(%n[0]) yield %q"),
     NULL},
    {BB_LAW_REDUCE_LEVEL, BLOCK X_TO_O "root { " X_IN "%y = reduce sum(%x[1]) output O[M,N] = %x }",
     NULL},
    {BB_LAW_REDUCE_LEVEL,
     ROWS("%z = row_sum(%b)", "%z", "%q = reduce sum(%n[3]) : f32(M,_) yield %q"), NULL},
    {BB_LAW_REDUCE_RESULT,
     ROWS("%z = row_sum(%b)", "%z", "%q = reduce sum(%n[0]) : f32(M,N) yield %q"), NULL},
    {BB_LAW_MONOID, PAIRED(PAIR, "row_sum(%b)"), spoil_monoid},
    {BB_LAW_MONOID_TYPE, PAIRED(PAIR, "elementwise i64(%z)"), NULL},
    {BB_LAW_MONOID_TYPE, PAIRED(WEIGHTED, "transpose(%z)"), NULL},
    {BB_LAW_MAP_LEVEL,
     BLOCK X_TO_O "root { " X_IN "%o = map M (%a = %x[1]) { yield %a : [M][N]f32(M,N) } "
                  "output O[M,N] = %o }",
     NULL},
    {BB_LAW_MAP_LEVEL,
     BLOCK X_TO_O "root { " X_IN
                  "%o = map M (%a : f32(M,N) = %x[2]) { yield %a } output O[M,N] = %o }",
     NULL},
    {BB_LAW_MAP_INNER,
     BLOCK X_TO_O "root { " X_IN "%o = map M (%a : [N]f16(M,N) = %x[0]) { yield %a } "
                  "output O[M,N] = %o }",
     NULL},
    {BB_LAW_MAP_RESULT, EACH("%z = elementwise exp(%b)", "%z : [N][N:none]f32(M,N)"), NULL},
    {BB_LAW_MAP_RESULT, ROWS("%z = row_sum(%b)", "fold sum %z : f32", "yield %n : [M]f32(M,_)"),
     NULL},
    {BB_LAW_COLLECT_AXIS, EACH("%z = elementwise exp(%b)", "%z by none"), NULL},
    {BB_LAW_FOLD_AXIS, EACH("%z = elementwise exp(%b)", "fold sum %z"), NULL},
    {BB_LAW_FOLD_AXIS, EACH("%z = elementwise exp(%b)", "invariant %z"), NULL},
    {BB_LAW_FOLD_COMPONENTS, ROWS("%z = row_sum(%b)", "fold sum 1 %z", "yield %n"), NULL},
    {BB_LAW_FOLD_COMPONENTS,
     BLOCK X_TO_R "root { " X_IN "%o = map M (%a = %x[0]) { %n, %i = map N (%b = %a[0]) { "
                  "%z, %j = row_argmax(%b) yield fold argmax 1 %z, fold argmax %j } yield %n } "
                  "output R[M] = %o }",
     NULL},
    {BB_LAW_PEEL, EACH("%z = elementwise exp(%b)", "%z resumes %b"), NULL},
    {BB_LAW_PEEL,
     BLOCK X_TO_O "root { " X_IN "%o = map M rest (%a = %x[0]) { yield %a } output O[M,N] = %o }",
     NULL},
    {BB_LAW_PEEL,
     BLOCK X_TO_O "root { " X_IN "%o = map M rest (%a = %x[0], %f = %x) { yield %a resumes %f } "
                  "output O[M,N] = %o }",
     NULL},
    {BB_LAW_CHUNK,
     BLOCK X_TO_R "root { " X_IN "%o = map M (%a = %x[0]) { %n = map N chunk [H] (%b = %a[0]) { "
                  "%z = row_sum(%b) yield fold sum %z } yield %n } output R[M] = %o }",
     NULL},
    {BB_LAW_CHUNK,
     BLOCK X_TO_R "root { " X_IN "%o = map M (%a = %x[0]) { %h = map H (%c = %a) { "
                  "%n = map N chunk [H] (%b = %c[0]) { %z = row_sum(%b) yield %z } "
                  "%s = reduce sum(%n[0]) yield fold sum %s } yield %h } output R[M] = %o }",
     NULL},
    {BB_LAW_MAP_BLOCK,
     BLOCK
     "input X : f32[4,M] dims [H,M] output R : f32[M] dims [M] "
     "root { %x = input X[H,M] : [H][M]f32(M,_) %o = map M (%w = %x[1]) { "
     "%n = map H block 2 (%b = %w[0]) { %z = elementwise exp(%b) yield fold sum %z } yield %n } "
     "output R[M] = %o }",
     NULL},
    {BB_LAW_INVARIANT, ROWS("%z = row_sum(%b)", "invariant %z", "yield %n"), NULL},
    {BB_LAW_INVARIANT,
     BLOCK
     "input X : f32[4,M] dims [H,M] output R : f32[M] dims [M] "
     "root { %x = input X[2,M] : [M]f32(M,_) %o = map H (%w = %x) { %n = map M (%b = %w[0]) { "
     "%z = elementwise %b+coord(map 1) yield %z } yield invariant %n } output R[M] = %o }",
     NULL},
    {BB_LAW_ACCESS, BLOCK X_TO_O "root { %x = input X[M] : [M]f32(M,_) output O[M,N] = %x }", NULL},
    {BB_LAW_ACCESS,
     BLOCK "input X : f32[M,N] dims [M,N] output O : f32[M,K] dims [M,K] "
           "root { %x = input X[M,K] : [M][K]f32(M,K) output O[M,K] = %x }",
     NULL},
    {BB_LAW_ACCESS, BLOCK X_TO_O "root { " X_IN "output O of none = %x }", NULL},
    {BB_LAW_ACCESS_RANGE,
     BLOCK "input X : f32[8] dims [P] output O : f32[4] dims [Q] "
           "root { %x = input X[5+Q] : [Q]f32(Q,_) output O[Q] = %x }",
     NULL},
    {BB_LAW_ACCESS_RANGE,
     BLOCK "input X : f32[8] dims [P] output O : f32[4] dims [Q] "
           "root { %x = input X[5-2*Q] : [Q]f32(Q,_) output O[Q] = %x }",
     NULL},
    {BB_LAW_ACCESS_RANGE,
     BLOCK "input X : f32[8,4] dims [P,Q] output O : f32[4] dims [Q] "
           "root { %x = input X[8,Q] : [Q]f32(Q,_) output O[Q] = %x }",
     NULL},
    {BB_LAW_ACCESS_RANGE,
     BLOCK "input X : f32[8] dims [P] output O : f32[4,4] dims [H,Q] "
           "root { %x = input X[2+Q+H] : [H][Q]f32(Q,_) output O[H,Q] = %x }",
     NULL},
    {BB_LAW_ACCESS_RANGE,
     BLOCK "input X : f32[8] dims [P] output O : f32[4,4] dims [H,Q] "
           "root { %x = input X[2+Q-H] : [H][Q]f32(Q,_) output O[H,Q] = %x }",
     NULL},
    {BB_LAW_ACCESS,
     BLOCK "input X : f32[4,4] dims [H,Q] output O : f32[8] dims [P] "
           "root { %x = input X[H,Q] : [H][Q]f32(Q,_) output O[0+Q+H] = %x }",
     NULL},
    {BB_LAW_ACCESS_JOIN,
     BLOCK "input X : f32[4] dims [Q] output O : f32[8] dims [P] "
           "root { %x = input X of join P (X[P] at 0 to 4, X[P] at 5 to 9) : [P]f32(P,_) "
           "output O[P] = %x }",
     NULL},
    {BB_LAW_ACCESS_JOIN,
     BLOCK "input X : f32[4] dims [Q] output O : f32[8] dims [P] "
           "root { %x = input X of join P (X[P] at 0 to 4) : [P]f32(P,_) output O[P] = %x }",
     NULL},
    {BB_LAW_ACCESS_TYPE, BLOCK X_TO_O "root { %x = input X[M,N] : [N]f32(_,N) output O[M,N] = %x }",
     NULL},
    {BB_LAW_ACCESS_TYPE,
     BLOCK X_TO_O "root { %x = input X[M,N] else 1e300 : [M][N]f32(M,N) output O[M,N] = %x }",
     NULL},
    {BB_LAW_ACCESS, BLOCK X_TO_O "root { " X_IN "output O[M,N] else 0 = %x }", NULL},
    {BB_LAW_ACCESS_TYPE,
     BLOCK X_TO_O "root { %x = input X[M,N] : [M][N]f16(M,N) output O[M,N] = %x }", NULL},
    {BB_LAW_TENSOR_ROLE, BLOCK X_TO_O "root { " X_IN "output X[M,N] = %x output O[M,N] = %x }",
     NULL},
    {BB_LAW_TENSOR_ROLE, BLOCK "constant C : f32[8] dims [P] root { }", NULL},
    {BB_LAW_TENSOR_AXES, BLOCK "input X : f32[M] dims [M,N] root { }", NULL},
    {BB_LAW_TENSOR_DATA, BLOCK "constant C : f32[4] dims [Q] = [1, 2, 3, 4] root { }",
     shorten_data},
    {BB_LAW_STAGE, BLOCK "root { }", drop_root},
    {BB_LAW_STAGE, ARRAY "output X", drop_array},
    {BB_LAW_STAGE, PARTITION "candidate c0 { }", NULL},
    {BB_LAW_OUTPUTS, BLOCK X_TO_O "root { }", NULL},
    {BB_LAW_OUTPUTS, PARTITION, NULL},
    {BB_LAW_CANDIDATE_KINDS,
     PARTITION "candidate c0 { graph { " X_IN "%v = view %x[M,N] : [M][N]f32(M,N) "
               "output O[M,N] = %v } } step run 0() to ()",
     NULL},
    {BB_LAW_CHOSEN, FUSED "candidate c0 { graph " COPY("X", "O") "} step run 0() to ()", NULL},
    {BB_LAW_STEPS, PARTITION "candidate c0 { graph " COPY("X", "O") "}", NULL},
    {BB_LAW_STEPS,
     PARTITION "candidate c0 { graph " COPY("X", "O") "} step run 0() to () step run 0() to ()",
     NULL},
    {BB_LAW_STEP_ORDER,
     PARTITION "candidate c0 { graph " COPY("T", "O") "} candidate c1 { graph " COPY(
         "X", "T") "} "
                   "step run 0() to () step run 1() to ()",
     NULL},
    {BB_LAW_STEP_ORDER, PARTITION "step misc \"Gather\" 13(T[M,N]) to (O)", NULL},
    {BB_LAW_ARRAY_ORDER, ARRAY "y = elementwise exp(X) z = elementwise exp(y) output z",
     swap_nodes},
    {BB_LAW_ARRAY_ORDER, ARRAY "y = elementwise exp(X) output y", drop_producer},
    {BB_LAW_ARRAY_NODE, ARRAY "y = reduce sum(X, axis=0) output y", drop_attributes},
    {BB_LAW_ARRAY_TYPE, ARRAY "y = elementwise exp(X) output y", change_type},
    {BB_LAW_ARRAY_TYPE, ARRAY "y = reduce sum(X, axis=0) output y", change_type},
    {BB_LAW_ARRAY_TYPE, ARRAY "y = contract(X[a,b], X[c,b] -> [a,c]) output y", change_type},
    {BB_LAW_ARRAY_TYPE, ARRAY "y = transpose(X, perm=[1,0]) output y", change_type},
    {BB_LAW_ARRAY_TYPE, ARRAY "y = slice(X, axis=0, length=3) output y", change_type},
    {BB_LAW_ARRAY_TYPE, ARRAY "y = windows(X, axis=1, length=2, taps=3) output y", change_type},
    {BB_LAW_ARRAY_NODE, ARRAY "y = windows(X, axis=1, length=2, taps=3) output y", drop_attributes},
    {BB_LAW_ARRAY_TYPE, ARRAY "y = windows(X, axis=1, taps=3) : f32[M,M,3] output y", change_type},
    {BB_LAW_ARRAY_NODE, ARRAY "y = windows(X, axis=1, taps=3) : f32[M,M,3] output y",
     drop_attributes},
    {BB_LAW_ARRAY_TYPE, ARRAY "y = pad(X, axis=1, start=1, fill=0) : f32[M,M] output y",
     change_type},
    {BB_LAW_ARRAY_NODE, ARRAY "y = pad(X, axis=1, start=1, fill=0) : f32[M,M] output y",
     drop_attributes},
    {BB_LAW_ARRAY_TYPE, ARRAY "y = concat(X, X, axis=0) output y", change_type},
    {BB_LAW_ARRAY_TYPE, ARRAY "y = scan sum(X, axis=0) output y", change_type},
    {BB_LAW_ARRAY_DIMS,
     "blockbuster 1 symbol M dim M = M dim H = 4 input X : f32[4*M] dims [H] output X", NULL},
    {BB_LAW_ARRAY_OUTPUT, ARRAY "y = elementwise exp(X) output y", drop_value},
};

/* --- running them --- */

typedef struct trial {
  const char *text;
  void (*change)(bb_program *program);
  char message[512];
} trial;

static void run(bb_context *ctx, void *argument) {
  trial *t = argument;
  bb_program *program = bb_text_parse(ctx, "case", t->text, strlen(t->text));
  bb_program_defer(program);
  if (t->change) t->change(program);
  const char *broken = bb_verify_program(program, program->arena);
  snprintf(t->message, sizeof t->message, "%s", broken ? broken : "");
}

static void check(const char *text, void (*change)(bb_program *program), const char *law) {
  bb_context *ctx;
  trial t = {.text = text, .change = change};
  assert_int_equal(bb_context_create(NULL, &ctx), BB_OK);
  if (bb_protect(ctx, run, &t) != BB_OK) fail_msg("%s\nin %s", bb_context_message(ctx), text);
  char expected[64];
  snprintf(expected, sizeof expected, "law %s:", law ? law : "");
  if (law ? !strstr(t.message, expected) : *t.message)
    fail_msg("expected %s, got %s\nin %s", law ? law : "no law broken", t.message, text);
  bb_context_destroy(ctx);
}

static void test_broken(void **state) {
  (void)state;
  bool covered[BB_LAW_COUNT] = {false};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    check(cases[i].text, cases[i].change, bb_law_name(cases[i].law));
    covered[cases[i].law] = true;
    if (cases[i].change == NULL || cases[i].change == drop_root) continue;
    check(cases[i].text, NULL, NULL); /* the change alone breaks the law */
  }
  for (int law = 0; law < BB_LAW_COUNT; law++)
    if (!covered[law]) fail_msg("no program breaks law %s", bb_law_name((bb_law)law));
}

static void test_lawful(void **state) {
  (void)state;
  static const char *const texts[] = {
      EACH("%z = elementwise exp(%b)", "%z"),
      EACH("%z = elementwise select(coord(col)<=coord(row),%b,-inf)", "%z"),
      ROWS("%z = row_sum(%b)", "fold sum %z", "yield %n"),
      ROWS("%z = row_sum(%b)", "%z", "%q = reduce sum(%n[0]) yield %q"),
      BLOCK X_TO_R "root { " X_IN "%o = map M (%a = %x[0]) { %n, %i = map N (%b = %a[0]) { "
                   "%z, %j = row_argmax(%b) yield fold argmax %z, fold argmax 1 %j } yield %n } "
                   "output R[M] = %o }",
      BLOCK "input X : f32[4,M] dims [H,M] output O : f32[4,M] dims [H,M] "
            "root { %x = input X[H,M] : [H][M]f32(M,_) %o = map H (%a = %x[0]) { "
            "%n = map M (%b = %a[0]) { %z = elementwise %b+coord(map 1) yield %z } yield %n } "
            "output O[H,M] = %o }",
      BLOCK "input X : f32[4,M] dims [H,M] output O : f32[4,M] dims [H,M] "
            "root { %x = input X[H,M] : [H][M]f32(M,_) %o = map H block 2 (%a = %x[0]) { "
            "%n = map M (%b = %a[0]) { %z = elementwise exp(%b) yield %z } yield %n } "
            "output O[H,M] = %o }",
      BLOCK "input X : f32[4] dims [Q] output O : f32[8] dims [P] "
            "root { %x = input X of join P (X[P] at 0 to 4, X[3-P] at 4 to 8) : [P]f32(P,_) "
            "output O[P] = %x }",
      BLOCK "input X : f32[8] dims [P] output O : f32[4,4] dims [H,Q] "
            "root { %x = input X[1+Q+H] : [H][Q]f32(Q,_) output O[H,Q] = %x }",
      BLOCK "input X : f32[8] dims [P] output O : f32[4,4] dims [H,Q] "
            "root { %x = input X[3+Q-H] : [H][Q]f32(Q,_) output O[H,Q] = %x }",
      PARTITION "candidate c0 { graph " COPY("T", "O") "} candidate c1 { graph " COPY(
          "X", "T") "} "
                    "step run 1() to () step run 0() to ()",
      FUSED "candidate c0 chosen 0 { graph " COPY("X", "O") "snapshot 0 " COPY(
          "X", "O") "} step run 0() to ()",
      TABLES "input X : f32[4*M,N,1] dims [H*M,N,1] y = elementwise exp(X) output y",
  };
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) check(texts[i], NULL, NULL);
}

/* The message names the node, its origin and the port. */
static void test_message(void **state) {
  (void)state;
  bb_context *ctx;
  trial t = {.text = BLOCK X_TO_O "root { " X_IN
                                  "%5 = map M (%a = %x[0]) { yield %a by none } @ \"mul\" "
                                  "output O[M,N] = %5 }"};
  assert_int_equal(bb_context_create(NULL, &ctx), BB_OK);
  assert_int_equal(bb_protect(ctx, run, &t), BB_OK);
  const char *expected =
      "node 5 (map over M, from mul) port out 0: law collect-axis: collected by none, ";
  assert_memory_equal(t.message, expected, strlen(expected));
  bb_context_destroy(ctx);
}

static void fail_after(bb_context *ctx, void *argument) {
  trial *t = argument;
  bb_program *program = bb_text_parse(ctx, "case", t->text, strlen(t->text));
  bb_program_defer(program);
  bb_verify_or_fail(program, program->root, "a test", false);
  bb_verify_or_fail(program, program->root, "a test", true);
}

static void test_or_fail(void **state) {
  (void)state;
  bb_context *ctx;
  trial t = {.text = EACH("%z = elementwise exp(%b)", "fold sum %z")};
  assert_int_equal(bb_context_create(NULL, &ctx), BB_OK);
  assert_int_equal(bb_protect(ctx, fail_after, &t), BB_ERROR_INTERNAL);
  assert_non_null(strstr(bb_context_message(ctx), "after a test: node"));
  bb_context_destroy(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_broken),
      cmocka_unit_test(test_lawful),
      cmocka_unit_test(test_message),
      cmocka_unit_test(test_or_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
