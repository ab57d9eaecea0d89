/* alike.c - products that read one operand alike are cut alike.
 *
 *     q[s,h,k] = sum over d of x[s,d] Q[h,k,d]         q[s,h,k] = ...
 *     v[s,g,l] = sum over d of x[s,d] V[g,l,d]   ==>   v[s,h,k] = ...      where h is as long as g, and k as l
 *
 * Axes are the same dim where operators tie them, and nothing ties the columns of one weight to those of
 * another.  But only loops over one dim can become one (Rule 2), and read what both need once.  A dim says how
 * long an axis is and how it may be cut, not what its elements stand for, so any two of one extent may be one.
 *
 * Where they are made one, and why not elsewhere: only for products that share an operand is there something
 * to read once.  Both take the operand's axes for the same (rows, sums, axes that the other operand has, too),
 * and their own axes are as long, in order, and products and reductions cut the same of them into blocks: else one
 * of them would be cut where only the other wants it, and items have no room for a third axis.  The two dims
 * stand together at no node: a nest over both would run over one dim twice.  What is computed at load
 * is left alone.  No more than four become one: a kernel holds the results of all of them at once, and blocks that are
 * small enough for more read their operands too often.
 */
#include "lower.h"

#include "../intern.h"

typedef struct cell {
  uint32_t node, next;
} cell;

typedef struct list {
  uint32_t first, last, count;
} list;

typedef struct alike {
  bb_ix *ix;
  bb_arena *scratch;
  cell *cell; /* [0] is not used */
  list *list; /* by class: the nodes that run over it */
} alike;

enum { TOGETHER = 4 };

/* Products that read alike: those whose own axes became one last. */
typedef struct group {
  const struct reader *first;
  uint32_t count;
} group;

/* A product as one of its operands sees it. */
typedef struct reader {
  bb_ix *ix;
  const bool *blocked; /* by class: products and reductions cut it into blocks */
  uint32_t node, slot;
  group *group;
} reader;

enum place { SUMMED, ROW, SHARED };

/* What the product takes an axis of the operand for. */
static enum place place_of(const reader *r, uint32_t axis) {
  const bb_ix_node *node = &r->ix->node[r->node];
  uint32_t index = node->in[r->slot].index[axis];
  if (index >= r->ix->value[node->out[0]].rank) return SUMMED;
  return bb_ix_follows(r->ix, &node->in[1 - r->slot], index) ? SHARED : ROW;
}

/* The next axis of the result, from `from` on, that only the other operand has; the rank: none. */
static uint32_t own_axis(const reader *r, uint32_t from) {
  const bb_ix_node *node = &r->ix->node[r->node];
  uint32_t rank = r->ix->value[node->out[0]].rank;
  while (from < rank && bb_ix_follows(r->ix, &node->in[r->slot], from)) from++;
  return from;
}

static uint32_t class_at(const reader *r, uint32_t index) {
  return bb_ix_find(r->ix, r->ix->node[r->node].dim[index]);
}

static uint32_t result_rank(const reader *r) {
  return r->ix->value[r->ix->node[r->node].out[0]].rank;
}

static uint64_t mix(uint64_t hash, uint64_t with) {
  return bb_hash_bytes(&with, sizeof with, hash);
}

static uint64_t hash_reader(const void *object) {
  const reader *r = object;
  const bb_ix_operand *in = &r->ix->node[r->node].in[r->slot];
  uint64_t hash = mix(r->slot, in->value);
  for (uint32_t a = 0; a < r->ix->value[in->value].rank; a++) hash = mix(hash, place_of(r, a));
  for (uint32_t k = own_axis(r, 0); k < result_rank(r); k = own_axis(r, k + 1))
    hash = mix(hash, (uintptr_t)bb_ix_extent(r->ix, class_at(r, k)));
  return hash;
}

static bool reads_alike(const void *left, const void *right) {
  const reader *a = left, *b = right;
  const bb_ix_operand *x = &a->ix->node[a->node].in[a->slot],
                      *y = &b->ix->node[b->node].in[b->slot];
  if (a->slot != b->slot || x->value != y->value) return false;
  for (uint32_t i = 0; i < a->ix->value[x->value].rank; i++)
    if (place_of(a, i) != place_of(b, i)) return false;
  uint32_t k = own_axis(a, 0), l = own_axis(b, 0);
  for (; k < result_rank(a) && l < result_rank(b); k = own_axis(a, k + 1), l = own_axis(b, l + 1)) {
    uint32_t p = class_at(a, k), q = class_at(b, l);
    if (a->ix->dim[p].extent != a->ix->dim[q].extent || a->blocked[p] != a->blocked[q])
      return false;
  }
  return k >= result_rank(a) && l >= result_rank(b);
}

/* --- where two classes stand --- */

/* The nodes of a class: a list in cells from `first`, 1 on, 0 at the end. */
static void list_nodes(alike *u) {
  bb_ix *ix = u->ix;
  size_t total = 0;
  for (uint32_t i = 0; i < ix->nodes; i++) total += ix->node[i].indices;
  u->cell = BB_NEW(u->scratch, cell, total + 1);
  u->list = BB_NEW(u->scratch, list, ix->dims);
  uint32_t cells = 0;
  for (uint32_t i = 0; i < ix->nodes; i++)
    for (uint32_t k = 0; !ix->node[i].removed && k < ix->node[i].indices; k++) {
      list *of = &u->list[bb_ix_find(ix, ix->node[i].dim[k])];
      u->cell[++cells] = (cell){i, of->first};
      of->first = cells;
      if (!of->count++) of->last = cells;
    }
}

static bool node_has(const alike *u, uint32_t node, uint32_t class) {
  const bb_ix_node *n = &u->ix->node[node];
  for (uint32_t k = 0; k < n->indices; k++)
    if (bb_ix_find(u->ix, n->dim[k]) == class) return true;
  return false;
}

static bool meet(const alike *u, uint32_t a, uint32_t b) {
  if (u->list[a].count > u->list[b].count) return meet(u, b, a);
  for (uint32_t c = u->list[a].first; c; c = u->cell[c].next)
    if (node_has(u, u->cell[c].node, b)) return true;
  return false;
}

static void unite(alike *u, uint32_t a, uint32_t b) {
  list x = u->list[a], y = u->list[b];
  bb_ix_unite(u->ix, a, b);
  if (x.first) u->cell[x.last].next = y.first;
  u->list[bb_ix_find(u->ix, a)] =
      (list){x.first ? x.first : y.first, y.first ? y.last : x.last, x.count + y.count};
}

/* --- the pass --- */

static void cut_alike(alike *u, const reader *like, const reader *r) {
  uint32_t k = own_axis(like, 0), l = own_axis(r, 0);
  for (; k < result_rank(like); k = own_axis(like, k + 1), l = own_axis(r, l + 1)) {
    uint32_t p = class_at(like, k), q = class_at(r, l);
    if (p != q && !meet(u, p, q)) unite(u, p, q);
  }
}

void bb_ix_cut_alike(bb_ix *ix) {
  alike u = {.ix = ix, .scratch = bb_scratch(ix->program->ctx)};
  const bool *blocked = bb_ix_blocked_by_operators(ix, u.scratch);
  bb_intern *seen = bb_intern_create(u.scratch, hash_reader, reads_alike);
  uint32_t *order, count = bb_ix_order(ix, u.scratch, &order);
  list_nodes(&u);
  for (uint32_t i = 0; i < 2 * count; i++) {
    const bb_ix_node *node = &ix->node[order[i / 2]];
    if (node->op != BB_IX_CONTRACT || ix->value[node->out[0]].once) continue;
    reader *r = BB_NEW(u.scratch, reader, 1);
    *r = (reader){ix, blocked, order[i / 2], i % 2, NULL};
    const reader *like = bb_intern_find(seen, r);
    r->group = like ? like->group : BB_NEW(u.scratch, group, 1);
    if (!like) bb_intern_add(seen, r);
    if (like && r->group->count < TOGETHER) {
      cut_alike(&u, r->group->first, r);
      r->group->count++;
    } else {
      *r->group = (group){r, 1};
    }
  }
  bb_scratch_end(u.scratch);
}
