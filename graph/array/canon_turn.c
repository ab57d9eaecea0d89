/* canon_turn.c - orders: values that one reduction wants in rows and another in columns, and what one
 * keeps where the next one folds it.
 *
 *     e = f(x)                      e = f(x)
 *     s = sum of e's rows           s = sum of e's rows
 *     y = g(e, s)            ==>    y = g(f(x), s)
 *     t = sum of y's columns        t = sum of y's columns
 *
 * Nests before and behind a reduction take the order of its loops, to become one with it.  A value that
 * is made for the rows and read on the way to the columns would hold both back: it is computed again
 * there, from inputs, so that nothing more is stored than the folds of the rows.
 *
 * Of the axes that a reduction keeps, those that the next one folds come last: the two then share the loops
 * around them.
 */
#include "canon.h"

#include <string.h>

enum { DEPTH = 8, USES = 16 }; /* elementwise nodes, and users of a value, looked through */

static bool reduction_order(bb_ix *ix, uint32_t value, bb_arena *arena, uint32_t *key,
                            uint32_t depth) {
  uint32_t rank = ix->value[value].rank;
  BB_IX_EACH_USE(ix, value, n, slot) {
    if (!bb_ix_reduces(&ix->node[n])) continue;
    memcpy(key, ix->node[n].in[slot].index, rank * sizeof *key);
    return true;
  }
  BB_IX_EACH_USE(ix, value, n, slot) {
    const bb_ix_node *user = &ix->node[n];
    if (user->op != BB_IX_ELEMENTWISE || depth == DEPTH) continue;
    uint32_t *outer = BB_NEW(arena, uint32_t, user->indices);
    if (!reduction_order(ix, user->out[0], arena, outer, depth + 1)) continue;
    for (uint32_t a = 0; a < rank; a++) key[a] = outer[user->in[slot].index[a]];
    return true;
  }
  return false;
}

bool bb_ix_reduction_order(bb_ix *ix, uint32_t value, bb_arena *arena, uint32_t *key) {
  return reduction_order(ix, value, arena, key, 0);
}

/* Is what a value is made of along all its axes read from the program's inputs? */
static bool is_made_of_inputs(const bb_ix *ix, uint32_t value, uint32_t depth) {
  const bb_ix_node *maker = bb_ix_node_of(ix, value);
  if (maker->op == BB_IX_SOURCE) return true;
  if (maker->op != BB_IX_ELEMENTWISE || depth == DEPTH) return false;
  for (uint32_t i = 0; i < maker->nin; i++) {
    uint32_t in = maker->in[i].value;
    if (ix->value[in].rank == maker->indices && !is_made_of_inputs(ix, in, depth + 1)) return false;
  }
  return true;
}

static bool same_order(uint32_t count, const uint32_t *a, const uint32_t *b) {
  for (uint32_t i = 0; i < count; i++)
    for (uint32_t j = 0; j < count; j++)
      if ((a[i] < a[j]) != (b[i] < b[j])) return false;
  return true;
}

/* Would an operand be computed in another order than the node's result is wanted in? */
static bool holds_back(bb_canon *c, uint32_t at, uint32_t slot, const uint32_t *wanted) {
  bb_ix *ix = c->ix;
  bb_term in = bb_canon_term(c, at, slot);
  uint32_t rank = ix->node[at].indices;
  if (bb_canon_maker(c, at, slot, BB_IX_ELEMENTWISE) == BB_NONE || ix->value[in.value].rank != rank)
    return false;
  uint32_t *own = BB_NEW(c->scratch, uint32_t, rank), *key = BB_NEW(c->scratch, uint32_t, rank);
  if (!bb_ix_reduction_order(ix, in.value, c->scratch, key)) return false;
  for (uint32_t a = 0; a < rank; a++) own[in.index[a]] = key[a];
  return !same_order(rank, own, wanted) && is_made_of_inputs(ix, in.value, 0);
}

/* --- what a fold keeps, in the order of the next fold --- */

typedef struct agreement {
  bool any, differs;
  uint32_t *key;
} agreement;

/* The order in which all reductions behind a value take its axes, if they agree; `place`: where the axes
 * of the value that is asked about stand. */
static void agree(bb_canon *c, uint32_t value, const uint32_t *place, uint32_t rank, agreement *all,
                  uint32_t depth) {
  bb_ix *ix = c->ix;
  BB_IX_EACH_USE(ix, value, n, slot) {
    const bb_ix_node *user = &ix->node[n];
    if (!bb_ix_reduces(user) && (user->op != BB_IX_ELEMENTWISE || depth == DEPTH)) continue;
    uint32_t *key = BB_NEW(c->scratch, uint32_t, rank);
    for (uint32_t a = 0; a < rank; a++) key[a] = user->in[slot].index[place[a]];
    if (user->op == BB_IX_ELEMENTWISE) {
      agree(c, user->out[0], key, rank, all, depth + 1);
      continue;
    }
    all->differs |= all->any && !same_order(rank, key, all->key);
    all->any = true;
    all->key = key;
  }
}

/* A fold over j whose values are next folded over i: it loops over i inside what both keep, so that
 * both loop over that outside. */
bool bb_rule_keep_order(bb_canon *c, uint32_t at) {
  const bb_ix_node node = c->ix->node[at];
  uint32_t kept = node.op == BB_IX_REDUCE ? c->ix->value[node.out[0]].rank : 0;
  if (kept < 2 || c->ix->value[node.out[0]].uses > USES) return false;
  uint32_t *own = BB_NEW(c->scratch, uint32_t, kept), *now = BB_NEW(c->scratch, uint32_t, kept);
  agreement all = {.key = NULL};
  for (uint32_t a = 0; a < kept; a++) own[a] = a;
  agree(c, node.out[0], own, kept, &all, 0);
  if (!all.any || all.differs || same_order(kept, own, all.key)) return false;
  uint32_t *dim = BB_NEW(c->scratch, uint32_t, node.indices), rank = node.indices;
  memcpy(dim, node.dim, rank * sizeof *dim);
  for (uint32_t a = 0; a < kept; a++) {
    now[a] = 0;
    for (uint32_t b = 0; b < kept; b++) now[a] += all.key[b] < all.key[a];
    dim[now[a]] = node.dim[a];
    own[now[a]] = a;
  }
  bb_term x = bb_canon_term(c, at, 0);
  uint32_t of_x = c->ix->value[x.value].rank, *index = BB_NEW(c->scratch, uint32_t, of_x);
  for (uint32_t a = 0; a < of_x; a++) index[a] = x.index[a] < kept ? now[x.index[a]] : x.index[a];
  bb_dtype dtype = c->ix->value[node.out[0]].dtype;
  uint32_t out = bb_ix_add(c->ix, BB_IX_REDUCE, node.name, dtype, 1, kept, rank, dim);
  bb_ix_node_of(c->ix, out)->monoid = node.monoid;
  bb_ix_use(c->ix, bb_ix_producer(c->ix, out), 0, x.value, index);
  bb_canon_replace(c, node.out[0], out, own, BB_NONE);
  return true;
}

bool bb_rule_turn(bb_canon *c, uint32_t at) {
  const bb_ix_node *node = &c->ix->node[at];
  if (node->op != BB_IX_ELEMENTWISE || node->indices < 2) return false;
  uint32_t *wanted = BB_NEW(c->scratch, uint32_t, node->indices);
  if (!bb_ix_reduction_order(c->ix, node->out[0], c->scratch, wanted)) return false;
  for (uint32_t i = 0; i < node->nin; i++) {
    if (!holds_back(c, at, i, wanted) || !bb_canon_may_inline(c, at, i)) continue;
    bb_canon_inline(c, at, i);
    return true;
  }
  return false;
}
