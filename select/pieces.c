/* pieces.c - which nodes stay together in every cover, and in which order the pieces stand.
 */
#include "pieces.h"

#include "../fuse/safety.h"

#include <string.h>

typedef struct builder {
  const bb_flow *flow;
  const bb_graph *graph;
  bb_arena *scratch;
  uint32_t *up;    /* by node: union-find, the root is the earliest in the order */
  uint32_t *place; /* by node: in the flow's order */
  uint32_t *seen, stamp, *stack;
} builder;

static uint32_t root_of(const builder *b, uint32_t n) {
  while (b->up[n] != n) n = b->up[n] = b->up[b->up[n]];
  return n;
}

static void unite(builder *b, uint32_t a, uint32_t c) {
  a = root_of(b, a), c = root_of(b, c);
  if (a == c) return;
  if (b->place[a] < b->place[c])
    b->up[c] = a;
  else
    b->up[a] = c;
}

/* --- partial results --- */

static void join_partials(builder *b) {
  const bb_graph *g = b->graph;
  for (uint32_t i = 0; i < b->flow->nodes; i++) {
    uint32_t n = b->flow->order[i];
    if (!bb_is_computed(g->node[n])) continue;
    for (uint32_t p = 0; p < g->node[n]->nout; p++) {
      if (!bb_is_partial(b->flow->program, g->node[n]->out[p].type)) continue;
      bb_use u = g->node[n]->out[p].first;
      for (; u.node != BB_NONE; u = bb_next_use(g, u))
        if (bb_is_computed(g->node[u.node])) unite(b, n, u.node);
    }
  }
}

/* --- elementwise maps --- */

static bool same_lists(const bb_type *a, const bb_type *b) {
  if (a->rank != b->rank) return false;
  for (uint32_t i = 0; i < a->rank; i++)
    if (a->level[i].dim != b->level[i].dim) return false;
  return true;
}

/* Is there a way from the piece of `from` to node n but by the value `except`? */
static bool reaches(builder *b, uint32_t from, uint32_t n, uint32_t except) {
  uint32_t top = 0, root = root_of(b, from), first = b->place[root];
  b->stamp++;
  b->stack[top++] = n;
  while (top) {
    uint32_t at = b->stack[--top];
    const bb_node *node = b->graph->node[at];
    for (uint32_t p = 0; p < node->nin; p++) {
      uint32_t src = node->in[p].src.node;
      if (at == n && src == except) continue;
      if (b->seen[src] == b->stamp || b->place[src] < first) continue;
      if (bb_is_computed(b->graph->node[src]) && root_of(b, src) == root) return true;
      b->seen[src] = b->stamp;
      b->stack[top++] = src;
    }
  }
  return false;
}

/* Joins a pointwise node with the maker of an operand that nobody else reads. */
static void join_makers(builder *b) {
  const bb_graph *g = b->graph;
  for (uint32_t i = 0; i < b->flow->nodes; i++) {
    uint32_t n = b->flow->order[i], maker = BB_NONE;
    const bb_node *node = g->node[n];
    if (!bb_is_computed(node) || node->nout != 1 || !bb_is_pointwise(node)) continue;
    if (bb_widens(g, n)) continue;
    for (uint32_t p = 0; p < node->nin; p++) {
      bb_value src = node->in[p].src;
      const bb_node *from = g->node[src.node];
      bool alone = from->nout == 1 && bb_next_use(g, bb_first_use(g, src)).node == BB_NONE;
      if (!bb_is_computed(from) || !alone || b->flow->once[src.node] != b->flow->once[n]) continue;
      if (!same_lists(from->out[0].type, node->out[0].type)) continue;
      if (maker == BB_NONE || b->place[src.node] > b->place[maker]) maker = src.node;
    }
    if (maker != BB_NONE && !reaches(b, maker, n, maker)) unite(b, maker, n);
  }
}

/* Joins a node that widens with who alone reads it. */
static void join_readers(builder *b) {
  const bb_graph *g = b->graph;
  for (uint32_t i = b->flow->nodes; i-- > 0;) {
    uint32_t n = b->flow->order[i];
    if (!bb_widens(g, n)) continue;
    bb_use u = g->node[n]->out[0].first;
    if (u.node == BB_NONE || bb_next_use(g, u).node != BB_NONE) continue;
    if (!bb_is_computed(g->node[u.node]) || b->flow->once[u.node] != b->flow->once[n]) continue;
    if (!reaches(b, n, u.node, n)) unite(b, n, u.node);
  }
}

/* --- exps --- */

/* Fusion brings two loops together where one takes the other's result apart, list by list, in the
 * order in which it is made.  Where it is wanted whole, or by another dim first, the loops stay two,
 * whatever else is fused; a top-level function or reduction goes with any of them. */
static bool never_fuse(const bb_graph *g, uint32_t n, uint32_t port) {
  const bb_node *reader = g->node[n], *maker = g->node[reader->in[port].src.node];
  if (reader->kind != BB_NODE_MAP || maker->kind != BB_NODE_MAP) return false;
  return reader->dim != maker->dim || reader->in[port].level != 0 ||
         maker->out[reader->in[port].src.port].mode != BB_OUT_COLLECT;
}

static bool has_exp(const builder *b, const bb_node *node) {
  bb_program *program = b->flow->program;
  if (node->kind == BB_NODE_MAP) return bb_graph_has_exp(program, node->inner);
  return node->kind == BB_NODE_FUNC && node->expr && bb_expr_has_exp(program, node->expr);
}

static bool is_narrow(const bb_type *type) {
  return type->item.dtype == BB_F16 || type->item.dtype == BB_BF16;
}

/* Is what a node makes an output, or what others make of it element by element?  A kernel then writes all of its elements, and
 * who makes what is written has to wait for the sum of the row. */
static bool is_handed_on(builder *b, uint32_t n) {
  const bb_graph *g = b->graph;
  uint32_t top = 0;
  b->stamp++;
  b->stack[top++] = n;
  while (top) {
    uint32_t at = b->stack[--top];
    bb_use u = g->node[at]->out[0].first;
    for (; u.node != BB_NONE; u = bb_next_use(g, u)) {
      const bb_node *reader = g->node[u.node];
      if (reader->kind == BB_NODE_OUTPUT) return true;
      if (!bb_is_computed(reader) || reader->nout != 1 || !bb_is_pointwise(reader)) continue;
      if (b->seen[u.node] == b->stamp) continue;
      if (!same_lists(reader->out[0].type, g->node[n]->out[0].type)) continue;
      b->seen[u.node] = b->stamp;
      b->stack[top++] = u.node;
    }
  }
  return false;
}

/* An exp that is read more than once is one that is summed and used.  Its argument's absolute error is the relative one
 * of all that follows: rounded to a narrow float in memory, it would be larger than that of the whole result.  So who
 * makes the argument, and who reads the exp, are with it as far as loops allow; but where its elements are handed on, which no
 * kernel makes without having them in memory first, rounded. */
static void join_exps(builder *b) {
  const bb_graph *g = b->graph;
  for (uint32_t i = 0; i < b->flow->nodes; i++) {
    uint32_t n = b->flow->order[i];
    const bb_node *node = g->node[n];
    if (!bb_is_computed(node) || node->nout != 1 || !is_narrow(node->out[0].type)) continue;
    if (!bb_is_pointwise(node) || !has_exp(b, node) || is_handed_on(b, n)) continue;
    bb_use first = node->out[0].first;
    if (first.node == BB_NONE || bb_next_use(g, first).node == BB_NONE) continue;
    for (uint32_t p = 0; p < node->nin; p++) {
      uint32_t from = node->in[p].src.node;
      if (bb_is_computed(g->node[from]) && is_narrow(bb_type_of(g, node->in[p].src)) &&
          b->flow->once[from] == b->flow->once[n] && !never_fuse(g, n, p))
        unite(b, from, n);
    }
    for (bb_use u = first; u.node != BB_NONE; u = bb_next_use(g, u))
      if (bb_is_computed(g->node[u.node]) && !never_fuse(g, u.node, u.port)) unite(b, n, u.node);
  }
}

/* --- order --- */

typedef struct ordering {
  builder *b;
  uint32_t roots, *root; /* pieces by the place of their first node */
  uint32_t *number;      /* by node that is a root: its piece in `root`; later its final number */
  uint32_t *waits;       /* by piece: operands from pieces without a place */
} ordering;

static void find_roots(ordering *o) {
  builder *b = o->b;
  o->roots = 0;
  for (uint32_t i = 0; i < b->flow->nodes; i++) {
    uint32_t n = b->flow->order[i];
    if (!bb_is_computed(b->graph->node[n]) || root_of(b, n) != n) continue;
    o->number[n] = o->roots;
    o->root[o->roots++] = n;
  }
}

/* Counts, or with `placed` settles, what the users of a piece's nodes wait for. */
static void count_waits(ordering *o) {
  builder *b = o->b;
  memset(o->waits, 0, o->roots * sizeof *o->waits);
  for (uint32_t i = 0; i < b->flow->nodes; i++) {
    uint32_t n = b->flow->order[i];
    const bb_node *node = b->graph->node[n];
    for (uint32_t p = 0; bb_is_computed(node) && p < node->nin; p++) {
      uint32_t src = node->in[p].src.node;
      if (bb_is_computed(b->graph->node[src]) && root_of(b, src) != root_of(b, n))
        o->waits[o->number[root_of(b, n)]]++;
    }
  }
}

/* By piece: its nodes, through `next`. */
static void release(ordering *o, const uint32_t *first, const uint32_t *next, uint32_t piece,
                    uint32_t *low) {
  builder *b = o->b;
  for (uint32_t n = first[piece]; n != BB_NONE; n = next[n])
    for (uint32_t p = 0; p < b->graph->node[n]->nout; p++) {
      bb_use u = b->graph->node[n]->out[p].first;
      for (; u.node != BB_NONE; u = bb_next_use(b->graph, u)) {
        if (!bb_is_computed(b->graph->node[u.node])) continue;
        uint32_t user = o->number[root_of(b, u.node)];
        if (user != piece && --o->waits[user] == 0 && user < *low) *low = user;
      }
    }
}

/* Kahn's algorithm, the earliest ready piece first.  Returns how many got a place. */
static uint32_t sort_pieces(ordering *o, uint32_t *sorted) {
  builder *b = o->b;
  uint32_t *first = BB_NEW(b->scratch, uint32_t, o->roots), count = 0;
  uint32_t *next = BB_NEW(b->scratch, uint32_t, b->graph->count);
  bool *placed = BB_NEW(b->scratch, bool, o->roots);
  memset(first, 0xFF, o->roots * sizeof *first);
  for (uint32_t i = b->flow->nodes; i-- > 0;) {
    uint32_t n = b->flow->order[i];
    if (!bb_is_computed(b->graph->node[n])) continue;
    uint32_t piece = o->number[root_of(b, n)];
    next[n] = first[piece];
    first[piece] = n;
  }
  for (uint32_t at = 0; at < o->roots;) {
    uint32_t low = o->roots;
    if (placed[at] || o->waits[at] > 0) {
      at++;
      continue;
    }
    placed[at] = true;
    sorted[count++] = at;
    release(o, first, next, at, &low);
    at = low < at ? low : at + 1;
  }
  return count;
}

/* A piece that waits for itself by way of others becomes one with them: follows operands without a
 * place until a piece comes twice. */
static void join_circle(ordering *o, const uint32_t *sorted, uint32_t count) {
  builder *b = o->b;
  bool *placed = BB_NEW(b->scratch, bool, o->roots);
  uint32_t *from = BB_NEW(b->scratch, uint32_t, o->roots), at = 0;
  for (uint32_t i = 0; i < count; i++) placed[sorted[i]] = true;
  memset(from, 0xFF, o->roots * sizeof *from);
  while (placed[at]) at++;
  while (from[at] == BB_NONE) {
    uint32_t step = BB_NONE;
    for (uint32_t i = 0; i < b->flow->nodes && step == BB_NONE; i++) {
      uint32_t n = b->flow->order[i];
      const bb_node *node = b->graph->node[n];
      if (!bb_is_computed(node) || o->number[root_of(b, n)] != at) continue;
      for (uint32_t p = 0; p < node->nin && step == BB_NONE; p++) {
        uint32_t src = node->in[p].src.node;
        if (!bb_is_computed(b->graph->node[src])) continue;
        uint32_t piece = o->number[root_of(b, src)];
        if (piece != at && !placed[piece]) step = piece;
      }
    }
    from[at] = step;
    at = step;
  }
  for (uint32_t stop = at, piece = from[at]; piece != stop; piece = from[piece])
    unite(b, o->root[stop], o->root[piece]);
}

/* --- the pieces --- */

static void fill_nodes(bb_pieces *pieces, bb_arena *arena) {
  const bb_flow *flow = pieces->flow;
  uint32_t *item = BB_NEW(arena, uint32_t, flow->nodes), count = 0;
  for (uint32_t i = 0; i < flow->nodes; i++)
    if (pieces->of[flow->order[i]] != BB_NONE) item[count++] = flow->order[i];
  pieces->node = bb_sort_by_key(arena, count, item, pieces->of, pieces->count, &pieces->start);
}

typedef struct reading {
  uint32_t *read, capacity, apart_capacity;
  bool *apart;
} reading;

static void add_read(bb_cover_node *cover, reading *r, uint32_t from, bool apart, bb_arena *arena) {
  for (uint32_t i = 0; i < cover->reads; i++) {
    if (r->read[i] != from) continue;
    r->apart[i] |= apart;
    return;
  }
  BB_GROW(arena, r->read, r->capacity, (size_t)cover->reads + 1);
  BB_GROW(arena, r->apart, r->apart_capacity, (size_t)cover->reads + 1);
  r->read[cover->reads] = from;
  r->apart[cover->reads++] = apart;
}

/* The dims that a node loops over, in order, as a number that goes on from `loops`. */
static uint32_t loops_of(uint32_t loops, const bb_node *node) {
  if (node->kind != BB_NODE_MAP) return loops;
  loops = (loops ^ (node->dim + 1)) * UINT32_C(2654435761);
  for (uint32_t i = 0; i < node->inner->count; i++) loops = loops_of(loops, node->inner->node[i]);
  return loops;
}

/* Of a value that very many read, so many are looked at. */
enum { MOST_READERS = 256 };

/* Pieces with products or folds that read a value alike, in a row: each knows the one before it that runs the same loops.  What is
 * only computed element by element costs little more than its loads, and very much of it may be more than a kernel can hold. */
static void find_twins(bb_pieces *pieces, bb_arena *arena) {
  const bb_graph *g = pieces->flow->graph;
  for (uint32_t k = 0; k < pieces->count; k++) {
    bb_cover_node *cover = &pieces->cover[k];
    uint32_t *twin = NULL, capacity = 0;
    if (cover->cheap) continue;
    for (uint32_t i = pieces->start[k]; i < pieces->start[k + 1]; i++) {
      const bb_node *node = g->node[pieces->node[i]];
      for (uint32_t p = 0; p < node->nin; p++) {
        uint32_t last = BB_NONE, looked = 0;
        for (bb_use u = bb_first_use(g, node->in[p].src);
             u.node != BB_NONE && looked < MOST_READERS; u = bb_next_use(g, u), looked++) {
          uint32_t other = pieces->of[u.node];
          if (other == BB_NONE || other >= k || (last != BB_NONE && other < last)) continue;
          if (pieces->cover[other].loops == cover->loops && !pieces->cover[other].cheap)
            last = other;
        }
        bool known = last == BB_NONE || last == pieces->of[node->in[p].src.node];
        for (uint32_t t = 0; t < cover->twins && !known; t++) known = twin[t] == last;
        if (known) continue;
        BB_GROW(arena, twin, capacity, (size_t)cover->twins + 1);
        twin[cover->twins++] = last;
      }
    }
    cover->twin = twin;
  }
}

static void describe(bb_pieces *pieces, builder *b, bb_arena *arena) {
  const bb_graph *g = b->graph;
  pieces->cover = BB_NEW(arena, bb_cover_node, pieces->count);
  for (uint32_t k = 0; k < pieces->count; k++) {
    bb_cover_node *cover = &pieces->cover[k];
    uint32_t first = pieces->start[k], last = pieces->start[k + 1];
    reading r = {0};
    cover->cheap = true;
    cover->group = b->flow->once[pieces->node[first]];
    for (uint32_t i = first; i < last; i++) {
      const bb_node *node = g->node[pieces->node[i]];
      cover->cheap &= bb_is_pointwise(node);
      cover->loops = loops_of(cover->loops, node);
      for (uint32_t p = 0; p < node->nin; p++) {
        uint32_t from = pieces->of[node->in[p].src.node];
        if (from != BB_NONE && from != k)
          add_read(cover, &r, from, never_fuse(g, pieces->node[i], p), arena);
      }
      for (uint32_t p = 0; p < node->nout; p++) {
        bb_use u = node->out[p].first;
        for (; u.node != BB_NONE; u = bb_next_use(g, u))
          cover->kept |= !bb_is_computed(g->node[u.node]);
      }
    }
    cover->read = r.read;
    cover->apart = r.apart;
  }
  find_twins(pieces, arena);
}

bb_pieces *bb_pieces_create(const bb_flow *flow, bb_arena *arena) {
  uint32_t nodes = flow->graph->count;
  builder b = {.flow = flow, .graph = flow->graph, .scratch = arena};
  b.up = BB_NEW(arena, uint32_t, nodes);
  b.place = BB_NEW(arena, uint32_t, nodes);
  b.seen = BB_NEW(arena, uint32_t, nodes);
  b.stack = BB_NEW(arena, uint32_t, nodes);
  for (uint32_t n = 0; n < nodes; n++) b.up[n] = n;
  for (uint32_t i = 0; i < flow->nodes; i++) b.place[flow->order[i]] = i;
  join_partials(&b);
  join_makers(&b);
  join_readers(&b);
  join_exps(&b);
  ordering o = {.b = &b};
  o.root = BB_NEW(arena, uint32_t, nodes);
  o.number = BB_NEW(arena, uint32_t, nodes);
  o.waits = BB_NEW(arena, uint32_t, nodes);
  uint32_t *sorted = BB_NEW(arena, uint32_t, nodes), count;
  while (find_roots(&o), count_waits(&o), (count = sort_pieces(&o, sorted)) < o.roots)
    join_circle(&o, sorted, count);
  bb_pieces *pieces = BB_NEW(arena, bb_pieces, 1);
  *pieces = (bb_pieces){.flow = flow, .count = count, .of = BB_NEW(arena, uint32_t, nodes)};
  uint32_t *final = BB_NEW(arena, uint32_t, count);
  for (uint32_t i = 0; i < count; i++) final[sorted[i]] = i;
  for (uint32_t n = 0; n < nodes; n++) {
    pieces->of[n] = BB_NONE;
    if (flow->graph->node[n]->kind != BB_NODE_REMOVED && bb_is_computed(flow->graph->node[n]))
      pieces->of[n] = final[o.number[root_of(&b, n)]];
  }
  fill_nodes(pieces, arena);
  describe(pieces, &b, arena);
  return pieces;
}
