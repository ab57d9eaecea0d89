/* partition.c - maximal convex candidates, by rank.
 *
 * The rank of a node is the largest number of views and misc nodes on a path to it from the program's
 * inputs (a view of an input is free, and what is computed once at load counts as an input).  Along
 * an edge the rank never falls, and across a view or misc node it rises.  So a path that leaves a set
 * of nodes of one rank cannot come back to that rank unless it stayed in it, without a view or misc
 * node between: nodes of one rank that hang together are a convex candidate.
 *
 * Ranks counted from the inputs put side branches too early (a mask that only a later layer reads).
 * Each component then moves up to the lowest rank that reads it, if that lets it join a reader
 * there; the two laws above still hold, so candidates stay convex.  All of it is linear.  What it
 * misses is rare: a branch with readers on both sides of a view joins the first, though the second
 * might be possible too.
 */
#include "flow.h"

#include <string.h>

typedef struct ranking {
  bb_flow *flow;
  int32_t *rank; /* by node; inputs and views of inputs -1 */
  int32_t ranks;
  uint32_t *up;   /* by node: union-find over components, the root is the least node */
  int32_t *moved; /* by root of a component: its rank after moving up */
  int32_t *bound; /* by view, by root of a component: the greatest rank that what it reads, or it
                    * itself, may have */
  uint32_t cuts;
  struct node_cut {
    uint32_t low, high; /* nodes: the first must rank below the second */
  } * cut;
  const bb_waits *waits; /* for extents that misc nodes tell; NULL: none does */
} ranking;

enum { NO_BOUND = INT32_MAX };

static uint32_t component(const ranking *r, uint32_t n) {
  while (r->up[n] != n) n = r->up[n] = r->up[r->up[n]];
  return n;
}

static void unite(ranking *r, uint32_t a, uint32_t b) {
  a = component(r, a), b = component(r, b);
  if (a < b)
    r->up[b] = a;
  else
    r->up[a] = b;
}

static const bb_node *node_at(const ranking *r, uint32_t n) {
  return r->flow->graph->node[n];
}

/* May the ends of the edge a -> b share a candidate? */
static bool joins(const ranking *r, uint32_t a, uint32_t b) {
  return bb_is_computed(node_at(r, a)) && bb_is_computed(node_at(r, b)) &&
         r->flow->once[a] == r->flow->once[b];
}

/* --- ranks from the inputs --- */

static int32_t rank_from_operands(const ranking *r, uint32_t n) {
  const bb_node *node = node_at(r, n);
  bool computed = bb_is_computed(node);
  int32_t rank = computed || node->kind == BB_NODE_MISC ? 0 : -1;
  for (uint32_t p = 0; p < node->nin; p++) {
    uint32_t src = node->in[p].src.node;
    if (r->flow->once[src] && !r->flow->once[n]) continue;
    int32_t least = r->rank[src] + (computed && !bb_is_computed(node_at(r, src)));
    if (least > rank) rank = least;
  }
  for (uint32_t c = 0; c < r->cuts; c++)
    if (r->cut[c].high == n && r->rank[r->cut[c].low] + 1 > rank) rank = r->rank[r->cut[c].low] + 1;
  uint32_t tellers;
  const uint32_t *teller = bb_waits_of(r->waits, n, &tellers);
  for (uint32_t t = 0; t < tellers; t++)
    if (r->rank[teller[t]] + 1 > rank) rank = r->rank[teller[t]] + 1;
  return rank;
}

/* Waiting is no edge of the level, so that a node may stand before what it waits for: again, until no rank rises.  A path to a
 * node comes by no misc node twice, so that each time one more of them has its rank. */
static void find_ranks(ranking *r) {
  bb_flow *flow = r->flow;
  uint32_t left = bb_waits_tellers(r->waits) + 2;
  for (bool rose = true; rose;) {
    rose = false;
    if (!left--)
      bb_fail(flow->program->ctx, BB_ERROR_INPUT,
              "an extent that a misc node tells in a run is one of what the node waits for");
    for (uint32_t i = 0; i < flow->nodes; i++) {
      uint32_t n = flow->order[i];
      int32_t rank = rank_from_operands(r, n);
      rose |= r->waits && rank != r->rank[n];
      r->rank[n] = rank;
    }
  }
}

static void rank_nodes(ranking *r) {
  bb_flow *flow = r->flow;
  find_ranks(r);
  for (uint32_t i = 0; i < flow->nodes; i++) {
    uint32_t n = flow->order[i];
    if (r->rank[n] >= r->ranks) r->ranks = r->rank[n] + 1;
    for (uint32_t p = 0; p < node_at(r, n)->nin; p++) {
      uint32_t src = node_at(r, n)->in[p].src.node;
      if (joins(r, src, n) && r->rank[src] == r->rank[n]) unite(r, src, n);
    }
  }
}

/* --- moving components up to their readers --- */

/* What the users of node n's values outside its component allow its rank to be. */
static int32_t bound_from_users(const ranking *r, uint32_t n) {
  const bb_graph *g = r->flow->graph;
  bool computed = bb_is_computed(g->node[n]);
  int32_t bound = NO_BOUND;
  for (uint32_t p = 0; p < g->node[n]->nout; p++)
    for (bb_use u = g->node[n]->out[p].first; u.node != BB_NONE; u = bb_next_use(g, u)) {
      int32_t most = NO_BOUND;
      const bb_node *user = g->node[u.node];
      if (r->flow->once[n] && !r->flow->once[u.node]) continue;
      if (computed && component(r, n) == component(r, u.node)) continue;
      if (user->kind == BB_NODE_VIEW) most = r->bound[u.node];
      if (user->kind == BB_NODE_MISC) most = r->rank[u.node];
      if (bb_is_computed(user)) most = r->moved[component(r, u.node)] - !computed;
      if (most < bound) bound = most;
    }
  for (uint32_t c = 0; c < r->cuts; c++)
    if (r->cut[c].low == n && r->moved[component(r, r->cut[c].high)] - 1 < bound)
      bound = r->moved[component(r, r->cut[c].high)] - 1;
  return bound;
}

/* Does a user of node n that may share its candidate have this rank now? */
static bool has_reader_at(const ranking *r, uint32_t n, int32_t rank) {
  const bb_graph *g = r->flow->graph;
  for (uint32_t p = 0; p < g->node[n]->nout; p++)
    for (bb_use u = g->node[n]->out[p].first; u.node != BB_NONE; u = bb_next_use(g, u))
      if (joins(r, n, u.node) && r->moved[component(r, u.node)] == rank) return true;
  return false;
}

static void join_readers(ranking *r, uint32_t n) {
  const bb_graph *g = r->flow->graph;
  for (uint32_t p = 0; p < g->node[n]->nout; p++)
    for (bb_use u = g->node[n]->out[p].first; u.node != BB_NONE; u = bb_next_use(g, u)) {
      uint32_t mine = component(r, n), other = component(r, u.node);
      if (mine == other || !joins(r, n, u.node) || r->moved[mine] != r->moved[other]) continue;
      unite(r, mine, other);
    }
}

/* The components of one rank; `node` are the nodes of that rank, topologically. */
static void move_rank(ranking *r, uint32_t count, const uint32_t *node) {
  int32_t rank = count ? r->rank[node[0]] : 0;
  for (uint32_t i = count; i-- > 0;) {
    bool view = node_at(r, node[i])->kind == BB_NODE_VIEW;
    if (!view && !bb_is_computed(node_at(r, node[i]))) continue;
    uint32_t at = view ? node[i] : component(r, node[i]);
    int32_t bound = bound_from_users(r, node[i]);
    if (bound < r->bound[at]) r->bound[at] = bound;
  }
  for (uint32_t i = 0; i < count; i++) {
    if (!bb_is_computed(node_at(r, node[i]))) continue;
    uint32_t root = component(r, node[i]);
    int32_t bound = r->bound[root];
    if (bound > rank && bound != NO_BOUND && has_reader_at(r, node[i], bound))
      r->moved[root] = bound;
  }
  for (uint32_t i = 0; i < count; i++)
    if (bb_is_computed(node_at(r, node[i]))) join_readers(r, node[i]);
}

static void move_up(ranking *r) {
  bb_flow *flow = r->flow;
  uint32_t *key = BB_NEW(flow->scratch, uint32_t, flow->graph->count), *start;
  for (uint32_t i = 0; i < flow->nodes; i++)
    key[flow->order[i]] = (uint32_t)(r->rank[flow->order[i]] + 1);
  uint32_t keys = (uint32_t)r->ranks + 1;
  uint32_t *sorted = bb_sort_by_key(flow->scratch, flow->nodes, flow->order, key, keys, &start);
  for (uint32_t n = 0; n < flow->graph->count; n++) {
    r->bound[n] = NO_BOUND;
    r->moved[n] = r->rank[n];
  }
  for (uint32_t k = keys; k-- > 0;) move_rank(r, start[k + 1] - start[k], &sorted[start[k]]);
}

/* Candidates of one rank that read one value that is made at every run belong together: what they
 * load, they can load once. */
static void join_siblings(ranking *r) {
  bb_flow *flow = r->flow;
  const bb_graph *g = flow->graph;
  uint32_t *seen = BB_NEW(flow->scratch, uint32_t, (size_t)r->ranks + 1);
  uint32_t *who = BB_NEW(flow->scratch, uint32_t, (size_t)r->ranks + 1), stamp = 0;
  for (uint32_t i = 0; i < flow->nodes; i++) {
    uint32_t n = flow->order[i];
    if (flow->once[n]) continue;
    for (uint32_t p = 0; p < g->node[n]->nout; p++) {
      stamp++;
      for (bb_use u = g->node[n]->out[p].first; u.node != BB_NONE; u = bb_next_use(g, u)) {
        if (!bb_is_computed(g->node[u.node])) continue;
        int32_t rank = r->moved[component(r, u.node)];
        if (seen[rank] == stamp) unite(r, who[rank], u.node);
        seen[rank] = stamp;
        who[rank] = u.node;
      }
    }
  }
}

/* --- groups in executable order --- */

/* What runs once comes first; a misc node stands between the rank of its operands and the next. */
static void number_groups(ranking *r) {
  bb_flow *flow = r->flow;
  const bb_graph *g = flow->graph;
  uint32_t keys = 4 * ((uint32_t)r->ranks + 1), count = 0, *start;
  uint32_t *key = BB_NEW(flow->scratch, uint32_t, g->count);
  uint32_t *item = BB_NEW(flow->scratch, uint32_t, flow->nodes);
  for (uint32_t i = 0; i < flow->nodes; i++) {
    uint32_t n = flow->order[i];
    bool misc = g->node[n]->kind == BB_NODE_MISC;
    if (!misc && !bb_is_computed(g->node[n])) continue;
    int32_t rank = misc ? r->rank[n] : r->moved[component(r, n)];
    key[n] = 2 * (uint32_t)rank + misc + (flow->once[n] ? 0 : keys / 2);
    item[count++] = n;
  }
  uint32_t *sorted = bb_sort_by_key(flow->scratch, count, item, key, keys, &start);
  uint32_t *number = BB_NEW(flow->scratch, uint32_t, g->count);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t root = component(r, sorted[i]);
    if (number[root] == 0) number[root] = ++flow->groups;
    flow->group[sorted[i]] = number[root] - 1;
  }
}

/* --- cuts --- */

static uint32_t node_by_serial(const bb_flow *flow, uint32_t serial) {
  for (uint32_t i = 0; i < flow->nodes; i++)
    if (flow->graph->node[flow->order[i]]->serial == serial) return i;
  return BB_NONE;
}

static void add_cuts(ranking *r, uint32_t cuts, const bb_cut *cut) {
  bb_flow *flow = r->flow;
  r->cut = BB_NEW(flow->scratch, struct node_cut, cuts);
  for (uint32_t i = 0; i < cuts; i++) {
    uint32_t a = node_by_serial(flow, cut[i].serial_a), b = node_by_serial(flow, cut[i].serial_b);
    uint32_t missing = a == BB_NONE ? cut[i].serial_a : cut[i].serial_b;
    if (a == BB_NONE || b == BB_NONE)
      bb_fail(flow->program->ctx, BB_ERROR_ARGUMENT, "cut: there is no node %u at the root",
              missing);
    uint32_t first = flow->order[a < b ? a : b], second = flow->order[a < b ? b : a];
    if (!joins(r, first, second)) continue; /* they never share a candidate */
    const bb_node *node = node_at(r, first);
    for (uint32_t p = 0; p < node->nout; p++)
      if (bb_is_partial(flow->program, node->out[p].type))
        bb_fail(flow->program->ctx, BB_ERROR_ARGUMENT,
                "cut: node %u gives partial results, which stay with what folds them",
                node->serial);
    r->cut[r->cuts++] = (struct node_cut){first, second};
  }
}

static void group_candidates(bb_flow *flow, uint32_t cuts, const bb_cut *cut) {
  uint32_t count = flow->graph->count;
  ranking r = {.flow = flow,
               .rank = BB_NEW(flow->scratch, int32_t, count),
               .moved = BB_NEW(flow->scratch, int32_t, count),
               .bound = BB_NEW(flow->scratch, int32_t, count),
               .up = BB_NEW(flow->scratch, uint32_t, count)};
  for (uint32_t n = 0; n < count; n++) r.up[n] = n;
  r.waits = bb_waits_find(flow);
  add_cuts(&r, cuts, cut);
  rank_nodes(&r);
  move_up(&r);
  join_siblings(&r);
  number_groups(&r);
}

void bb_partition(bb_program *program, uint32_t cuts, const bb_cut *cut) {
  bb_arena *scratch = bb_scratch(program->ctx);
  bb_flow *flow = bb_flow_create(program, program->root, scratch);
  group_candidates(flow, cuts, cut);
  bb_carving carving = bb_carving_start(program, "c");
  bb_flow_carve(flow, &carving);
  bb_carving_install(program, &carving);
  for (uint32_t i = 0; i < program->candidates; i++) {
    bb_absorb_transposes(program, program->candidate[i].graph);
    bb_orient_inputs(program, program->candidate[i].graph);
  }
  program->stage = BB_STAGE_PARTITION;
  bb_scratch_end(scratch);
}
