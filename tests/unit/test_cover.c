/* test_cover.c - the dynamic program over down-sets held against a search that tries every cover.
 *
 * The exhaustive side shares nothing with it: it tries every subset of the nodes as a home, tells by
 * paths whether it is convex and connected, cuts the graph into homes in every way, gives every
 * kernel every set of values to compute again, and asks whether what comes out can be run.
 */
#include "../../select/cover.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

enum { GRAPHS = 500, MOST = 12, AGAIN = 2, SETS = 1 << MOST };

typedef struct graph {
  uint32_t nodes, price_seed;
  bb_cover_node node[MOST];
  uint32_t read[MOST][MOST];
  uint32_t reads[MOST]; /* as sets */
  bool apart[MOST][MOST];
  uint32_t twin[MOST][MOST];
  uint32_t twins[MOST]; /* as sets */
  uint32_t never[MOST]; /* by node: operands that it never shares a kernel with */
  uint32_t again;       /* nodes that may be computed again */
} graph;

static uint32_t draw(uint32_t *seed, uint32_t below) {
  *seed = *seed * 1664525u + 1013904223u;
  return (uint32_t)((uint64_t)(*seed >> 8) * below >> 24);
}

/* Cheap nodes that are wanted in two places. */
static uint32_t may_be_copied(const graph *g) {
  uint32_t set = 0;
  for (uint32_t n = 0; n < g->nodes; n++) {
    uint32_t wanted = g->node[n].kept;
    for (uint32_t r = 0; r < g->nodes; r++) wanted += g->reads[r] >> n & 1;
    if (wanted > 1 && g->node[n].cheap && !g->node[n].fixed) set |= 1u << n;
  }
  return set;
}

static void make_graph(graph *g, uint32_t number) {
  uint32_t seed = number * 2654435761u + 1;
  *g = (graph){.nodes = 1 + draw(&seed, MOST), .price_seed = number};
  uint32_t density = draw(&seed, 3), groups = 1 + (draw(&seed, 4) == 0);
  bool shared = number % 3 == 0; /* a value that many read, such as a mask */
  for (uint32_t n = 0; n < g->nodes; n++) {
    bb_cover_node *node = &g->node[n];
    uint32_t wanted = n ? draw(&seed, 2 + density) : 0;
    for (uint32_t i = 0; i < wanted; i++) {
      uint32_t back = 1 + draw(&seed, n < 4 || draw(&seed, 4) == 0 ? n : 4);
      if (back <= n) g->reads[n] |= 1u << (n - back);
    }
    if (shared && n && draw(&seed, 2)) g->reads[n] |= 1;
    for (uint32_t m = 0; m < n; m++) {
      if (!(g->reads[n] >> m & 1)) continue;
      g->apart[n][node->reads] = draw(&seed, 10) == 0;
      if (g->apart[n][node->reads]) g->never[n] |= 1u << m;
      g->read[n][node->reads++] = m;
    }
    node->read = g->read[n];
    node->apart = number % 2 ? g->apart[n] : NULL;
    if (!node->apart) g->never[n] = 0;
    node->fixed = !(shared && n == 0) && draw(&seed, shared ? 3 : 8) == 0;
    node->cheap = !node->fixed && (draw(&seed, 5) < 2 || (shared && n == 0));
    node->kept = draw(&seed, 6) == 0;
    node->group = draw(&seed, groups);
    node->loops = draw(&seed, 3);
    node->twin = g->twin[n];
    for (uint32_t m = 0; number % 4 == 1 && m < n; m++) {
      if (g->node[m].loops != node->loops || draw(&seed, 2)) continue;
      g->twins[n] |= 1u << m;
      g->twin[n][node->twins++] = m;
    }
  }
  g->again = may_be_copied(g);
}

/* --- prices: noise for what is computed, and more for each value stored --- */

static double noise(uint32_t a, uint32_t b) {
  uint64_t x = ((uint64_t)a << 32 | b) * 0x9E3779B97F4A7C15u;
  x ^= x >> 29;
  x *= 0xBF58476D1CE4E5B9u;
  x ^= x >> 32;
  return (double)(x >> 11) / 9007199254740992.0;
}

/* Joining tends to pay, so that covers are mixed; some kernels cannot be. */
static double price_of(const graph *g, uint32_t set, uint32_t stored) {
  uint32_t nodes = (uint32_t)__builtin_popcount(set);
  if (nodes > 1 && noise(set, g->price_seed + 77) < 0.1) return INFINITY;
  double price = 1 + 0.2 * nodes + 2 * noise(set, g->price_seed);
  for (uint32_t n = 0; n < g->nodes; n++)
    if (stored >> n & 1) price += 1 + 2 * noise(set ^ n << 20, g->price_seed + 1);
  return price;
}

static double price(void *user, const bb_cover_kernel *kernel) {
  uint32_t set = 0, stored = 0;
  for (uint32_t i = 0; i < kernel->nodes; i++) {
    set |= 1u << kernel->node[i];
    if (kernel->stored[i]) stored |= 1u << kernel->node[i];
  }
  return price_of(user, set, stored);
}

/* --- every cover --- */

typedef struct exhaustive {
  const graph *g;
  uint32_t most;       /* nodes of a home */
  uint32_t path[MOST]; /* what a node reaches */
  bool home[SETS];     /* is the set a home? */
  uint32_t kernels, own[MOST], again[MOST];
  double best;
  uint64_t covers;
} exhaustive;

static bool connected(const exhaustive *e, uint32_t set) {
  uint32_t reached = set & -set;
  for (uint32_t turn = 0; turn < MOST; turn++)
    for (uint32_t a = 0; a < e->g->nodes; a++)
      for (uint32_t b = 0; b < e->g->nodes; b++)
        if ((set >> a & 1) && (set >> b & 1) && ((e->g->reads[b] | e->g->twins[b]) >> a & 1) &&
            ((reached >> a | reached >> b) & 1))
          reached |= 1u << a | 1u << b;
  return reached == set;
}

static bool is_divided(const graph *g, uint32_t set) {
  for (uint32_t n = 0; n < g->nodes; n++)
    if ((set >> n & 1) && (g->never[n] & set)) return true;
  return false;
}

/* --- loose homes --- */

/* Nodes of a set in touch with one another, as numbers. */
typedef struct touch {
  uint32_t number[MOST];
} touch;

static bool spread(touch *t, uint32_t a, uint32_t b) {
  uint32_t least = t->number[a] < t->number[b] ? t->number[a] : t->number[b];
  bool moved = t->number[a] != t->number[b];
  t->number[a] = t->number[b] = least;
  return moved;
}

/* By reads within `set`, and, of those in `users`, by equal loops. */
static touch touch_of(const graph *g, uint32_t set, uint32_t users) {
  touch t;
  for (uint32_t n = 0; n < g->nodes; n++) t.number[n] = n;
  for (bool moved = true; moved;) {
    moved = false;
    for (uint32_t a = 0; a < g->nodes; a++)
      for (uint32_t b = 0; b < g->nodes; b++) {
        bool reads = (set >> a & 1) && (set >> b & 1) && (g->reads[b] >> a & 1);
        bool alike = (users >> a & 1) && (users >> b & 1) && g->node[a].loops == g->node[b].loops;
        if (reads || alike) moved |= spread(&t, a, b);
      }
  }
  return t;
}

/* Who reads node c in the set, also by way of the shared ones. */
static uint32_t users_of(const graph *g, uint32_t set, uint32_t shared, uint32_t c) {
  uint32_t users = 0, passed = 1u << c;
  for (uint32_t r = c + 1; r < g->nodes; r++) {
    if (!(set >> r & 1) || !(g->reads[r] & passed)) continue;
    *(shared >> r & 1 ? &passed : &users) |= 1u << r;
  }
  return users;
}

/* What holds a set together although each reader could have its own copy. */
static uint32_t shared_in(const graph *g, uint32_t set) {
  uint32_t shared = 0;
  for (uint32_t n = 0; n < g->nodes; n++) {
    uint32_t readers = 0;
    for (uint32_t r = 0; r < g->nodes; r++) readers += (set >> r & 1) && (g->reads[r] >> n & 1);
    if (((set & g->again) >> n & 1) && readers > 1) shared |= 1u << n;
  }
  for (uint32_t before = 0; before != shared;) {
    before = shared;
    for (uint32_t c = 0; c < g->nodes; c++) {
      if (!(shared >> c & 1)) continue;
      uint32_t users = users_of(g, set, shared, c), numbers = 0;
      touch t = touch_of(g, set & ~shared, users);
      for (uint32_t n = 0; n < g->nodes; n++)
        if (users >> n & 1) numbers |= 1u << t.number[n];
      if ((numbers & (numbers - 1)) == 0) shared &= ~(1u << c);
    }
  }
  return shared;
}

/* The part that a loose set has last. */
static uint32_t last_part(const graph *g, uint32_t set, uint32_t shared) {
  touch t = touch_of(g, set & ~shared, 0);
  for (uint32_t n = g->nodes; n-- > 0;) {
    uint32_t part = 0;
    bool feeds = false;
    if (!((set & ~shared) >> n & 1)) continue;
    for (uint32_t m = 0; m < g->nodes; m++)
      if (((set & ~shared) >> m & 1) && t.number[m] == t.number[n]) part |= 1u << m;
    for (uint32_t r = 0; r < g->nodes; r++) feeds |= (shared >> r & 1) && (g->reads[r] & part);
    if (!feeds && !(part & set & -set)) return part;
  }
  return 0;
}

static uint32_t copies_for(const graph *g, uint32_t part, uint32_t shared) {
  uint32_t copies = 0;
  for (uint32_t turn = 0; turn < g->nodes; turn++)
    for (uint32_t n = 0; n < g->nodes; n++)
      if ((part | copies) >> n & 1) copies |= g->reads[n] & shared;
  return copies;
}

/* Of a home, alone and computing others again, what no other kernel could do without. */
static uint32_t least_stored(const graph *g, uint32_t set) {
  uint32_t stored = 0;
  for (uint32_t n = 0; n < g->nodes; n++) {
    bool read = false, foreign = false;
    for (uint32_t r = 0; r < g->nodes; r++) {
      if (!(g->reads[r] >> n & 1)) continue;
      read |= !(set >> r & 1);
      foreign |= g->node[r].fixed || g->node[r].group != g->node[n].group;
    }
    if ((set >> n & 1) && (g->node[n].kept || (read && (!(g->again >> n & 1) || foreign))))
      stored |= 1u << n;
  }
  return stored;
}

static bool is_worthwhile(const exhaustive *e, uint32_t set) {
  const graph *g = e->g;
  uint32_t shared = shared_in(g, set);
  if (shared == 0) return true;
  uint32_t part = last_part(g, set, shared), rest = set & ~part;
  if (part == 0 || !e->home[rest]) return false;
  double joined = price_of(g, set, least_stored(g, set));
  double without = price_of(g, rest, least_stored(g, rest));
  double alone = price_of(g, part | copies_for(g, part, shared), least_stored(g, part));
  return without < INFINITY && joined < (without + alone) * (1 - BB_COVER_SAVING);
}

static bool is_home(const exhaustive *e, uint32_t set) {
  if (set == 0 || !connected(e, set) || is_divided(e->g, set)) return false;
  if ((uint32_t)__builtin_popcount(set) > e->most) return false;
  for (uint32_t a = 0; a < e->g->nodes; a++) {
    if (!(set >> a & 1)) continue;
    if (e->g->node[a].fixed && set != 1u << a) return false;
    for (uint32_t b = 0; b < e->g->nodes; b++) {
      if ((set >> b & 1) && e->g->node[a].group != e->g->node[b].group) return false;
      if (!(set >> b & 1) && (e->path[a] >> b & 1) && (e->path[b] & set)) return false;
    }
  }
  return true;
}

/* What a set reads from outside itself. */
static uint32_t outside_reads(const graph *g, uint32_t set) {
  uint32_t reads = 0;
  for (uint32_t n = 0; n < g->nodes; n++)
    if (set >> n & 1) reads |= g->reads[n];
  return reads & ~set;
}

/* Prices the cover at hand if its kernels can run one after another. */
static void judge(exhaustive *e) {
  const graph *g = e->g;
  uint32_t memory = 0, run = 0, left = e->kernels;
  double cost = 0;
  bool ran[MOST] = {0};
  e->covers++;
  for (uint32_t k = 0; k < e->kernels; k++) memory |= outside_reads(g, e->own[k] | e->again[k]);
  for (uint32_t n = 0; n < g->nodes; n++) memory |= (uint32_t)g->node[n].kept << n;
  for (bool moved = true; moved && left;) {
    moved = false;
    for (uint32_t k = 0; k < e->kernels; k++) {
      uint32_t all = e->own[k] | e->again[k];
      if (ran[k] || (outside_reads(g, all) & ~run) || (e->again[k] & ~run)) continue;
      run |= e->own[k];
      ran[k] = moved = true;
      left--;
      cost += price_of(g, all, memory & e->own[k]);
    }
  }
  if (left == 0 && cost < e->best) e->best = cost;
}

/* May kernel k compute `again` beside its home?  Each such node is read by another that it holds. */
static bool may_repeat(const exhaustive *e, uint32_t k, uint32_t again) {
  const graph *g = e->g;
  if (is_divided(e->g, again | e->own[k])) return false;
  uint32_t read = 0, all = again | e->own[k], first = (uint32_t)__builtin_ctz(e->own[k]);
  for (uint32_t n = 0; n < g->nodes; n++)
    if (all >> n & 1) read |= g->reads[n];
  for (uint32_t n = 0; n < g->nodes; n++)
    if ((again >> n & 1) && (!(g->again >> n & 1) || g->node[n].group != g->node[first].group))
      return false;
  return !g->node[first].fixed && (again & ~read) == 0 && (again & e->own[k]) == 0;
}

static void repeat(exhaustive *e, uint32_t k) {
  if (k == e->kernels) {
    judge(e);
    return;
  }
  e->again[k] = 0;
  repeat(e, k + 1);
  for (uint32_t a = 0; a < e->g->nodes; a++)
    for (uint32_t b = 0; b <= a; b++) {
      uint32_t again = 1u << a | 1u << b;
      if (!may_repeat(e, k, again)) continue;
      e->again[k] = again;
      repeat(e, k + 1);
    }
}

static void cut_up(exhaustive *e, uint32_t left) {
  if (left == 0) {
    repeat(e, 0);
    return;
  }
  uint32_t first = left & -left, rest = left & ~first;
  for (uint32_t more = rest;; more = (more - 1) & rest) {
    if (e->home[first | more]) {
      e->own[e->kernels++] = first | more;
      cut_up(e, left & ~(first | more));
      e->kernels--;
    }
    if (more == 0) break;
  }
}

static void try_everything(exhaustive *e, const graph *g, uint32_t most) {
  *e = (exhaustive){.g = g, .most = most, .best = INFINITY};
  for (uint32_t n = g->nodes; n-- > 0;)
    for (uint32_t m = n + 1; m < g->nodes; m++)
      if (g->reads[m] >> n & 1) e->path[n] |= 1u << m | e->path[m];
  for (uint32_t set = 1; set < 1u << g->nodes; set++)
    e->home[set] = is_home(e, set) && is_worthwhile(e, set);
  cut_up(e, (1u << g->nodes) - 1);
}

/* --- the cover that was found, judged by the same rules --- */

static void assert_cover(exhaustive *e, const bb_cover *cover) {
  uint32_t homes = 0;
  e->kernels = cover->kernels;
  e->best = INFINITY;
  for (uint32_t k = 0; k < cover->kernels; k++) {
    e->own[k] = e->again[k] = 0;
    for (uint32_t i = 0; i < cover->kernel[k].nodes; i++)
      *(cover->kernel[k].again[i] ? &e->again[k] : &e->own[k]) |= 1u << cover->kernel[k].node[i];
    assert_true(e->home[e->own[k]]);
    assert_true(e->again[k] == 0 || may_repeat(e, k, e->again[k]));
    assert_true((homes & e->own[k]) == 0);
    homes |= e->own[k];
  }
  assert_int_equal(homes, (1u << e->g->nodes) - 1);
  judge(e);
  assert_true(fabs(e->best - cover->cost) < 1e-9);
}

static void solve_graphs(bb_context *ctx, void *argument) {
  static exhaustive e;
  uint64_t covers = 0;
  uint32_t again = 0, unstored = 0, larger = 0;
  (void)argument;
  for (uint32_t number = 0; number < GRAPHS; number++) {
    bb_arena *scratch = bb_scratch(ctx);
    graph g;
    make_graph(&g, number);
    bb_cover_options options = {.most_nodes = MOST, .most_again = AGAIN};
    bb_cover *cover = bb_cover_solve(scratch, g.nodes, g.node, &options, price, &g);
    try_everything(&e, &g, MOST);
    if (fabs(cover->cost - e.best) > 1e-9)
      fail_msg("graph %u: %.9g, but %.9g is possible", number, cover->cost, e.best);
    assert_true(cover->exact);
    covers += e.covers;
    assert_cover(&e, cover);
    for (uint32_t k = 0; k < cover->kernels; k++)
      for (uint32_t i = 0; i < cover->kernel[k].nodes; i++) {
        again += cover->kernel[k].again[i];
        unstored += !cover->kernel[k].stored[i];
        larger += cover->kernel[k].nodes > 2;
      }
    bb_scratch_end(scratch);
  }
  print_message("%llu covers of %d graphs; computed again %u, unstored %u, of larger kernels %u\n",
                (unsigned long long)covers, GRAPHS, again, unstored, larger);
  /* The graphs must have asked something. */
  assert_true(covers > 100000 && again > 30 && unstored > 500 && larger > 500);
}

static void solve(void (*graphs)(bb_context *ctx, void *argument)) {
  bb_context *ctx;
  assert_int_equal(bb_context_create(NULL, &ctx), BB_OK);
  assert_int_equal(bb_protect(ctx, graphs, NULL), BB_OK);
  bb_context_destroy(ctx);
}

static void test_equals_exhaustive_search(void **state) {
  (void)state;
  solve(solve_graphs);
}

/* --- graphs that are too wide to be searched --- */

enum { WIDE = 64, APART = 12 };

static double flat_price(void *user, const bb_cover_kernel *kernel) {
  (void)user;
  double sum = 1;
  for (uint32_t i = 0; i < kernel->nodes; i++) sum += noise(kernel->node[i], 7) / 8;
  return sum;
}

/* Each node reads two of the dozen before it: kernels wait for one another in countless ways. */
static void solve_wide(bb_context *ctx, void *argument) {
  bb_arena *scratch = bb_scratch(ctx);
  bb_cover_node node[WIDE] = {0};
  uint32_t read[WIDE][2], seed = 5, homes[WIDE] = {0};
  (void)argument;
  for (uint32_t n = 1; n < WIDE; n++) {
    uint32_t before = n < APART ? n : APART;
    read[n][0] = n - 1 - draw(&seed, before);
    read[n][1] = n - 1 - draw(&seed, before);
    node[n].read = read[n];
    node[n].reads = read[n][0] == read[n][1] ? 1 : 2;
    node[n].cheap = n % 2;
    node[n].kept = n + 1 == WIDE;
  }
  bb_cover *cover = bb_cover_solve(scratch, WIDE, node, NULL, flat_price, NULL);
  double cost = 0;
  for (uint32_t k = 0; k < cover->kernels; k++) {
    cost += flat_price(NULL, &cover->kernel[k]);
    for (uint32_t i = 0; i < cover->kernel[k].nodes; i++)
      homes[cover->kernel[k].node[i]] += !cover->kernel[k].again[i];
  }
  for (uint32_t n = 0; n < WIDE; n++) assert_int_equal(homes[n], 1);
  assert_true(fabs(cost - cover->cost) < 1e-9);
  assert_false(cover->exact);
  assert_non_null(cover->why);
  print_message("%u kernels of %d nodes, %u states\n", cover->kernels, WIDE, cover->states);
  assert_true(cover->kernels < WIDE / 4);
  bb_scratch_end(scratch);
}

static void test_wide_graphs_end(void **state) {
  (void)state;
  solve(solve_wide);
}

/* Each node reads two of the four before it, and any may be computed again: a kernel of nine leaves its
 * values unstored in some hundred ways, beside each of what it computes again. */
static void solve_cheap(bb_context *ctx, void *argument) {
  bb_arena *scratch = bb_scratch(ctx);
  bb_cover_node node[WIDE] = {0};
  uint32_t read[WIDE][2], seed = 5;
  (void)argument;
  for (uint32_t n = 1; n < WIDE; n++) {
    uint32_t before = n < 4 ? n : 4;
    read[n][0] = n - 1 - draw(&seed, before);
    read[n][1] = n - 1 - draw(&seed, before);
    node[n].read = read[n];
    node[n].reads = read[n][0] == read[n][1] ? 1 : 2;
    node[n].cheap = true;
    node[n].kept = n + 1 == WIDE;
  }
  bb_cover *cover = bb_cover_solve(scratch, WIDE, node, NULL, flat_price, NULL);
  print_message("%u kernels of %d nodes, %u priced\n", cover->kernels, WIDE, cover->priced);
  assert_true(cover->kernels < WIDE / 4);
  assert_true(cover->priced < 16 * BB_COVER_PRICED);
  bb_scratch_end(scratch);
}

static void test_cheap_graphs_end(void **state) {
  (void)state;
  solve(solve_cheap);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_equals_exhaustive_search),
                                     cmocka_unit_test(test_wide_graphs_end),
                                     cmocka_unit_test(test_cheap_graphs_end)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
