/* contract.c - products: one nest each, as in the paper's Table 2. */
#include "build.h"

/* What a product contracts, and how: as rules expect it, or nearly so. */
typedef struct contraction {
  generator *g;
  uint32_t depth; /* loops around: what map d iterates of the operands, and the level it collects */
  bb_level loop[DEPTH_MAX], strip[2][DEPTH_MAX];
  uint32_t contracted; /* the last one are the columns */
  bb_level over[DEPTH_MAX];
  bool running;    /* the sums up to each of the terms, a list, in the place of the sum of all */
  bool read_again; /* the list of terms has a second reader */
  bool apart;      /* the terms in one nest, their sum in another */
  bool plain;      /* nothing odd: every shared outer dim is contracted */
  bool greatest;   /* and the greatest of their sums taken */
  bool begun;      /* the first of the terms alone */
  bb_value again;
} contraction;

/* A chance in percent, and the one in programs of products. */
static bool chance(generator *g, uint32_t usual, uint32_t products) {
  return random_chance(&g->random, g->products ? products : usual);
}

static bb_value sum_up(bb_graph *graph, uint32_t level, bb_value list) {
  return bb_reduce_add(graph, bb_monoid_get(BB_MONOID_SUM), BB_REDUCE_FOLD, level, 1, &list);
}

/* Contracts two values at hand from over[i] on, one map for each, then the columns.  Now and then the
 * largest of the products of an outer dim is taken, in the place of their sum. */
static bb_value contract_terms(contraction *c, bb_graph *graph, bb_value a, bb_value b,
                               uint32_t i) {
  if (i == c->contracted) {
    bb_value in[2] = {a, b};
    return bb_func_add(graph, BB_OP_DOT, NULL, 2, in);
  }
  nest n;
  nest_open(&n, graph, 1, &c->over[i]);
  a = nest_bring(&n, a, NULL);
  b = nest_bring(&n, b, NULL);
  bb_value term = contract_terms(c, nest_body(&n), a, b, i + 1);
  if (i == 0 && c->begun) {
    bb_node_get(graph, n.map[0])->part = BB_PART_FIRST;
    return bb_map_fold(graph, n.map[0], term, bb_monoid_get(BB_MONOID_SUM), 0);
  }
  bool plain = i > 0 || (!c->running && !c->read_again && !c->apart);
  /* Inside the loop over columns it would be the largest of a block's, whatever the block. */
  bool last = c->over[c->contracted - 1].axis == BB_AXIS_COL;
  bool largest = plain && last && c->over[i].axis == BB_AXIS_NONE;
  largest = largest && (c->plain ? c->greatest : chance(c->g, 30, 60));
  const bb_monoid *monoid = bb_monoid_get(largest ? BB_MONOID_MAX : BB_MONOID_SUM);
  if (plain && chance(c->g, 15, 25)) return bb_map_fold(graph, n.map[0], term, monoid, 0);
  term = bb_map_collect(graph, n.map[0], term, BB_AXIS_NONE);
  if (i == 0 && c->apart) return term;
  if (i == 0 && c->read_again) c->again = sum_up(graph, 0, term);
  bb_reduce_mode mode = i == 0 && c->running ? BB_REDUCE_SCAN : BB_REDUCE_FOLD;
  return bb_reduce_add(graph, monoid, mode, 0, 1, &term);
}

/* The last loop with what it holds, the terms being summed behind that loop. */
static bb_value contract_late(contraction *c, bb_graph *graph, bb_value a, bb_value b) {
  uint32_t last = c->depth - 1;
  nest loop, terms;
  nest_open(&loop, graph, 1, &c->loop[last]);
  a = nest_bring(&loop, a, &c->strip[0][last]);
  b = nest_bring(&loop, b, &c->strip[1][last]);
  nest_open(&terms, nest_body(&loop), 1, c->over);
  a = nest_bring(&terms, a, NULL);
  b = nest_bring(&terms, b, NULL);
  bb_value term = contract_terms(c, nest_body(&terms), a, b, 1);
  term = bb_map_collect(nest_body(&loop), terms.map[0], term, BB_AXIS_NONE);
  return sum_up(graph, 1, nest_collect(&loop, term));
}

/* The last loop inside the map over the terms, which are lists then. */
static bb_value contract_lists(contraction *c, bb_graph *graph, bb_value a, bb_value b) {
  uint32_t last = c->depth - 1;
  nest loop, terms;
  nest_open(&terms, graph, 1, c->over);
  a = nest_bring(&terms, a, NULL);
  b = nest_bring(&terms, b, NULL);
  nest_open(&loop, nest_body(&terms), 1, &c->loop[last]);
  a = nest_bring(&loop, a, &c->strip[0][last]);
  b = nest_bring(&loop, b, &c->strip[1][last]);
  bb_value list = nest_collect(&loop, contract_terms(c, nest_body(&loop), a, b, 1));
  if (random_chance(&c->g->random, 30))
    return bb_map_fold(graph, terms.map[0], list, bb_monoid_get(BB_MONOID_SUM), 0);
  return sum_up(graph, 0, bb_map_collect(graph, terms.map[0], list, BB_AXIS_NONE));
}

/* The nest of a product in a level. */
static bb_value contract_nest(contraction *c, bb_graph *around, bb_value a, bb_value b) {
  typedef bb_value body(contraction *, bb_graph *, bb_value, bb_value);
  bool odd = c->depth && !c->running && !c->read_again && !c->apart && !c->plain;
  odd = odd && chance(c->g, 8, 20);
  body *inside = random_chance(&c->g->random, 50) ? contract_late : contract_lists;
  nest n;
  nest_open(&n, around, c->depth - odd, c->loop);
  a = nest_bring(&n, a, c->strip[0]);
  b = nest_bring(&n, b, c->strip[1]);
  bb_value out = odd ? inside(c, nest_body(&n), a, b) : contract_terms(c, nest_body(&n), a, b, 0);
  if (c->read_again) c->again = nest_collect(&n, c->again);
  out = nest_collect(&n, out);
  if (!c->apart) return out;
  nest_open(&n, around, c->depth, c->loop);
  return nest_collect(&n, sum_up(nest_body(&n), 0, nest_bring(&n, out, NULL)));
}

/* The same in a map that makes it in each of its iterations anew. */
static bb_value contract_invariant(contraction *c, bb_value a, bb_value b) {
  generator *g = c->g;
  bb_level around = {any_blocked(g), BB_AXIS_NONE}, none = {BB_NO_DIM, BB_AXIS_NONE};
  nest n;
  nest_open(&n, g->root, 1, &around);
  a = nest_bring(&n, a, &none);
  b = nest_bring(&n, b, &none);
  bb_value out = contract_nest(c, nest_body(&n), a, b);
  if (c->read_again) c->again = bb_map_invariant(g->root, n.map[0], c->again);
  return bb_map_invariant(g->root, n.map[0], out);
}

static void add_loop(contraction *c, bb_level collected, bb_level of_a, bb_level of_b) {
  c->loop[c->depth] = collected;
  c->strip[0][c->depth] = of_a;
  c->strip[1][c->depth++] = of_b;
}

static void swap_levels(bb_level *level, uint32_t i, uint32_t j) {
  bb_level swap = level[i];
  level[i] = level[j];
  level[j] = swap;
}

static void add_row_loops(contraction *c, const shape *a, const shape *b) {
  const bb_level none = {BB_NO_DIM, BB_AXIS_NONE};
  bb_level row_a = {a->row, BB_AXIS_ROW}, row_b = {b->row, BB_AXIS_ROW};
  if (a->row != BB_NO_DIM) add_loop(c, row_a, row_a, none);
  if (b->row != BB_NO_DIM) add_loop(c, (bb_level){b->row, BB_AXIS_COL}, none, row_b);
}

/* Splits the outer dims of a and b into loops around (all but shared ones that are contracted) and
 * contracted ones; beside those the row loops of a and b; the columns are contracted last. */
static void add_loops(contraction *c, const shape *a, const shape *b) {
  if (c->g->rows_first) add_row_loops(c, a, b);
  for (uint32_t i = 0; i < a->outer; i++) {
    bb_level level = {a->outer_dim[i], BB_AXIS_NONE};
    bool shared = shape_has_outer(b, a->outer_dim[i]);
    if (shared && (c->plain || chance(c->g, 40, 70)))
      c->over[c->contracted++] = level;
    else
      add_loop(c, level, level, level);
  }
  for (uint32_t i = 0; i < b->outer; i++) {
    bb_level level = {b->outer_dim[i], BB_AXIS_NONE};
    if (!shape_has_outer(a, b->outer_dim[i])) add_loop(c, level, level, level);
  }
  if (!c->g->rows_first) add_row_loops(c, a, b);
  c->over[c->contracted++] = (bb_level){a->col, BB_AXIS_COL};
}

static void swap_loops(contraction *c) {
  if (c->depth < 2 || !random_chance(&c->g->random, 25)) return;
  uint32_t i = random_below(&c->g->random, c->depth), j = random_below(&c->g->random, c->depth);
  swap_levels(c->loop, i, j);
  for (int k = 0; k < 2; k++) swap_levels(c->strip[k], i, j);
}

static uint32_t contract_values(generator *g, uint32_t a, uint32_t b, bool plain, enum terms how) {
  shape sa = shape_of(g, a), sb = shape_of(g, b);
  contraction c = {.g = g, .plain = plain, .greatest = how == GREATEST};
  add_loops(&c, &sa, &sb);
  if (!plain) swap_loops(&c);
  double bound = g->pool[a].bound * g->pool[b].bound;
  for (uint32_t i = 0; i < c.contracted; i++) bound *= (double)g->extent[c.over[i].dim];
  c.apart = chance(g, 10, 20);
  c.running = !plain && !c.apart && c.contracted > 1 && chance(g, 10, 15);
  c.running |= how == RUNNING && c.contracted > 1;
  c.begun = how == BEGUN && c.contracted > 1;
  c.apart &= !c.running && !c.begun;
  c.read_again = !plain && !c.apart && !c.running && chance(g, 8, 15);
  /* Sums up to each block of columns would depend on the blocks. */
  if (c.contracted > 1 && !c.running && !c.begun && chance(g, 15, 25))
    swap_levels(c.over, 0, c.contracted - 1);
  bool invariant = !plain && chance(g, 4, 8);
  bb_value left = g->pool[a].at, right = g->pool[b].at;
  bb_value out =
      invariant ? contract_invariant(&c, left, right) : contract_nest(&c, g->root, left, right);
  if (c.read_again) pool_add(g, c.again, bound, false);
  return pool_add(g, out, bound, false);
}

/* a[.., m, k] and b[.., n, k] give [.., m, n]: mostly one nest, as the paper's Table 2 has it. */
uint32_t contract(generator *g, uint32_t a, uint32_t b) {
  return contract_values(g, a, b, false, SUMMED);
}

/* The same over every outer dim that the two share. */
uint32_t contract_all(generator *g, uint32_t a, uint32_t b, enum terms how) {
  return contract_values(g, a, b, true, how);
}

uint32_t right_operand(generator *g, uint32_t a) {
  shape s = shape_of(g, a);
  s.row = random_chance(&g->random, 12) ? BB_NO_DIM : any_blocked(g);
  return value_like(g, &s);
}

/* A value without columns, as a product with a vector is, leaves nothing to contract. */
uint32_t product(generator *g, uint32_t a) {
  if (pooled_type(g, a)->item.col == BB_NO_DIM) return a;
  if (g->pool[a].bound > 100) a = unary(g, a);
  uint32_t b = right_operand(g, a);
  if (g->pool[b].bound > 100) b = unary(g, b);
  b = as_dtype(g, b, pooled_type(g, a)->item.dtype);
  return random_chance(&g->random, 85) ? contract(g, a, b) : contract(g, b, a);
}

/* rows a and rows b: a block */
uint32_t outer_product(generator *g, uint32_t value) {
  uint32_t a = reduce_columns(g, value);
  if (g->pool[a].bound > 100) a = unary(g, a);
  shape s = shape_of(g, a);
  uint32_t b = value_like(g, &s);
  if (g->pool[b].bound > 100) b = unary(g, b);
  b = as_dtype(g, b, pooled_type(g, a)->item.dtype);
  bb_level loop[DEPTH_MAX], strip_a[DEPTH_MAX], strip_b[DEPTH_MAX];
  uint32_t depth = 0;
  for (uint32_t i = 0; i < s.outer; i++, depth++)
    loop[depth] = strip_a[depth] = strip_b[depth] = (bb_level){s.outer_dim[i], BB_AXIS_NONE};
  const bb_level none = {BB_NO_DIM, BB_AXIS_NONE};
  loop[depth] = strip_a[depth] = (bb_level){s.row, BB_AXIS_ROW};
  strip_b[depth++] = none;
  loop[depth] = (bb_level){s.row, BB_AXIS_COL};
  strip_b[depth] = (bb_level){s.row, BB_AXIS_ROW};
  strip_a[depth++] = none;
  nest n;
  nest_open(&n, g->root, depth, loop);
  bb_value in[2] = {nest_bring(&n, g->pool[a].at, strip_a), nest_bring(&n, g->pool[b].at, strip_b)};
  bb_value out = bb_func_add(nest_body(&n), BB_OP_OUTER, NULL, 2, in);
  return pool_add(g, nest_collect(&n, out), g->pool[a].bound * g->pool[b].bound, false);
}
