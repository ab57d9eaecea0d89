/* test_view.c - views of levels held against plain searches on random levels. */
#include "program.h"
#include "text.h"
#include "view.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { MOST = 14 };

static uint32_t draw(uint32_t *seed, uint32_t below) {
  *seed = *seed * 1664525u + 1013904223u;
  return (uint32_t)((uint64_t)(*seed >> 8) * below >> 24);
}

/* A recipe of a level: what each node is and what it reads; made in any order of its nodes. */
typedef struct recipe {
  uint32_t count;
  bb_op op[MOST];
  uint32_t nin[MOST], in[MOST][3];
} recipe;

static recipe random_recipe(uint32_t *seed) {
  recipe r = {.count = 2 + draw(seed, MOST - 2)};
  for (uint32_t i = 0; i < r.count; i++) {
    r.op[i] = (bb_op)draw(seed, 3);
    r.nin[i] = i ? draw(seed, 4) : 0;
    for (uint32_t k = 0; k < r.nin[i]; k++) r.in[i][k] = draw(seed, i);
  }
  return r;
}

/* Makes the level, its nodes added in the order given; every node feeds an output. */
static bb_graph *make_level(bb_program *program, const recipe *r, const uint32_t *order,
                            uint32_t *place) {
  bb_graph *graph = bb_graph_create(program);
  for (uint32_t i = 0; i < r->count; i++) {
    uint32_t at = order[i];
    place[at] = bb_node_add(graph, BB_NODE_FUNC, r->nin[at], 1);
    graph->node[place[at]]->op = r->op[at];
  }
  for (uint32_t i = 0; i < r->count; i++)
    for (uint32_t k = 0; k < r->nin[i]; k++)
      bb_connect(graph, place[i], k, (bb_value){place[r->in[i][k]], 0});
  return graph;
}

static void shuffle(uint32_t *seed, uint32_t count, uint32_t *order) {
  for (uint32_t i = 0; i < count; i++) order[i] = i;
  for (uint32_t i = count; i > 1; i--) {
    uint32_t k = draw(seed, i), kept = order[k];
    order[k] = order[i - 1];
    order[i - 1] = kept;
  }
}

static void find_paths(const recipe *r, bool path[MOST][MOST]) {
  for (uint32_t i = 0; i < r->count; i++) {
    path[i][i] = true;
    for (uint32_t k = 0; k < r->nin[i]; k++)
      for (uint32_t j = 0; j < r->count; j++) path[j][i] |= path[j][r->in[i][k]];
  }
}

/* Can `to` be reached from a source when `without` is gone? */
static bool reaches(const recipe *r, uint32_t to, uint32_t without, bool down) {
  bool live[MOST] = {false};
  for (uint32_t n = 0; n < r->count; n++) {
    uint32_t i = down ? n : r->count - 1 - n;
    bool source = true;
    for (uint32_t j = 0; j < r->count; j++) {
      uint32_t user = down ? i : j, operand = down ? j : i;
      for (uint32_t k = 0; k < r->nin[user]; k++) {
        if (r->in[user][k] != operand) continue;
        source = false;
        live[i] |= live[j];
      }
    }
    live[i] = (live[i] || source) && i != without;
  }
  return live[to];
}

static void check_reach(bb_view *view, const recipe *r, const uint32_t *place, uint32_t *seed) {
  bool path[MOST][MOST] = {{false}}, down[MOST], up[MOST], inside[MOST] = {false};
  uint32_t set[MOST], count = 0;
  find_paths(r, path);
  for (uint32_t i = 0; i < r->count; i++) {
    inside[i] = draw(seed, 3) == 0;
    if (inside[i]) set[count++] = place[i];
  }
  bb_view_reach(view, count, set, BB_DOWNSTREAM, down);
  bb_view_reach(view, count, set, BB_UPSTREAM, up);
  bool convex = true;
  for (uint32_t i = 0; i < r->count; i++) {
    bool below = false, above = false;
    for (uint32_t k = 0; k < r->count; k++) {
      below |= inside[k] && path[k][i];
      above |= inside[k] && path[i][k];
    }
    assert_int_equal(down[place[i]], below);
    assert_int_equal(up[place[i]], above);
    convex &= !below || !above || inside[i];
  }
  assert_int_equal(bb_view_is_convex(view, count, set), convex);
}

static void check_dominators(bb_view *view, const recipe *r, const uint32_t *place, bool down) {
  bool path[MOST][MOST] = {{false}};
  uint32_t dominator[MOST];
  find_paths(r, path);
  bb_view_dominators(view, down ? BB_DOWNSTREAM : BB_UPSTREAM, dominator);
  for (uint32_t i = 0; i < r->count; i++) {
    /* The immediate dominator is the one that all other dominators dominate: the nearest. */
    uint32_t best = BB_NONE;
    for (uint32_t d = 0; d < r->count; d++) {
      if (d == i || reaches(r, i, d, down)) continue;
      bool nearer = best == BB_NONE || (down ? path[best][d] : path[d][best]);
      if (nearer) best = d;
    }
    assert_int_equal(dominator[place[i]], best == BB_NONE ? BB_NONE : place[best]);
  }
}

static void check_order(bb_view *view, const recipe *r, const uint32_t *place) {
  uint32_t order[MOST], rank[MOST];
  assert_true(bb_view_topological(view, order));
  for (uint32_t i = 0; i < r->count; i++) rank[order[i]] = i;
  for (uint32_t i = 0; i < r->count; i++)
    for (uint32_t k = 0; k < r->nin[i]; k++) assert_true(rank[place[r->in[i][k]]] < rank[place[i]]);
}

static void views_body(bb_context *ctx, void *argument) {
  uint32_t *seed = argument, order[MOST], place[MOST];
  bb_program *program = bb_program_create(ctx, "test");
  bb_program_defer(program);
  for (int i = 0; i < 500; i++) {
    recipe r = random_recipe(seed);
    shuffle(seed, r.count, order);
    bb_graph *graph = make_level(program, &r, order, place);
    bb_view *view = bb_view_create(graph);
    check_reach(view, &r, place, seed);
    check_dominators(view, &r, place, true);
    check_dominators(view, &r, place, false);
    check_order(view, &r, place);
    bb_view_end(view);
  }
}

static void run(bb_body *body) {
  bb_context *ctx;
  uint32_t seed = 5;
  assert_int_equal(bb_context_create(NULL, &ctx), BB_OK);
  if (bb_protect(ctx, body, &seed) != BB_OK) fail_msg("%s", bb_context_message(ctx));
  bb_context_destroy(ctx);
}

static void test_views(void **state) {
  (void)state;
  run(views_body);
}

/* --- isomorphism and equality --- */

static bb_graph *with_outputs(bb_graph *graph, const recipe *r, const uint32_t *place) {
  for (uint32_t i = 0; i < r->count; i++) bb_output_add(graph, (bb_value){place[i], 0});
  return graph;
}

static void isomorphic_body(bb_context *ctx, void *argument) {
  uint32_t *seed = argument, order[MOST], place[MOST];
  uint32_t same = 0, different = 0;
  bb_program *program = bb_program_create(ctx, "test");
  bb_program_defer(program);
  for (int i = 0; i < 300; i++) {
    recipe r = random_recipe(seed), other = r;
    uint32_t changed = draw(seed, r.count);
    if (i % 2) other.op[changed] = (bb_op)draw(seed, 3);
    if (i % 2 && other.nin[changed]) other.in[changed][0] = draw(seed, changed);
    shuffle(seed, r.count, order);
    bb_graph *a = with_outputs(make_level(program, &r, order, place), &r, place);
    shuffle(seed, r.count, order);
    bb_graph *b = with_outputs(make_level(program, &other, order, place), &other, place);
    bool equal = memcmp(&r, &other, sizeof r) == 0;
    assert_int_equal(bb_graph_equal(a, b), equal);
    assert_int_equal(bb_view_isomorphic(a, b), equal);
    equal ? same++ : different++;
  }
  assert_true(same > 50 && different > 50);
}

static void test_isomorphic(void **state) {
  (void)state;
  run(isomorphic_body);
}

static void cycle_body(bb_context *ctx, void *argument) {
  (void)argument;
  uint32_t order[2];
  bb_program *program = bb_program_create(ctx, "test");
  bb_program_defer(program);
  bb_graph *graph = bb_graph_create(program);
  uint32_t a = bb_node_add(graph, BB_NODE_FUNC, 1, 1), b = bb_node_add(graph, BB_NODE_FUNC, 1, 1);
  bb_connect(graph, a, 0, (bb_value){b, 0});
  bb_connect(graph, b, 0, (bb_value){a, 0});
  assert_false(bb_view_topological(bb_view_create(graph), order));
}

static void test_cycle(void **state) {
  (void)state;
  run(cycle_body);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_views),
      cmocka_unit_test(test_isomorphic),
      cmocka_unit_test(test_cycle),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
