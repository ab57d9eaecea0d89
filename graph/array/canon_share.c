/* canon_share.c - nodes that compute the same become one.
 *
 * Nodes are met operands first, so that one pass finds everything.  Two slices of the same elements
 * differ only in the class of the axis they make: the classes become one.
 */
#include "canon.h"

#include "../intern.h"

#include <string.h>

typedef struct entry {
  bb_ix *ix;
  uint32_t node;
} entry;

static uint64_t mix(uint64_t hash, uint64_t with) {
  return (hash ^ with) * UINT64_C(0x9E3779B97F4A7C15) >> 7 ^ hash << 13;
}

static uint64_t hash_node(const void *object) {
  const entry *e = object;
  const bb_ix_node *n = &e->ix->node[e->node];
  uint64_t hash = mix(n->op * 131u + n->nin, n->indices);
  if (n->expr) hash = mix(hash, n->expr->id);
  if (n->monoid) hash = mix(hash, n->monoid->id + 1u);
  if (n->op == BB_IX_SOURCE) hash = mix(hash, n->tensor);
  hash = mix(hash, ((uint64_t)n->start * 31 + (uint64_t)n->step) * 31 + (uint64_t)n->by);
  for (uint32_t i = 0; i < n->nin; i++) hash = mix(hash, n->in[i].value);
  return hash;
}

static bool same_access(const bb_ix_node *x, const bb_ix_node *y) {
  if (x->tensor != y->tensor || x->rank != y->rank) return false;
  for (uint32_t a = 0; a < x->rank; a++)
    if (x->access[a].kind != y->access[a].kind || x->access[a].start != y->access[a].start ||
        x->access[a].step != y->access[a].step)
      return false;
  return true;
}

/* Indices whose class may differ, because the node makes it: those of ranges. */
static bool free_index(const bb_ix_node *node, uint32_t index) {
  if (node->op == BB_IX_SLICE || node->op == BB_IX_PAD) return index == node->at;
  if (node->op == BB_IX_WINDOWS) return index == node->at || index == node->at + 1;
  if (node->op != BB_IX_SOURCE) return false;
  for (uint32_t a = 0, at = 0; a < node->rank; a++) {
    if (node->access[a].kind == BB_INDEX_FIXED) continue;
    if (at++ == index) return node->access[a].kind == BB_INDEX_RANGE;
  }
  return false;
}

static bool same_node(const void *left, const void *right) {
  const entry *a = left, *b = right;
  bb_ix *ix = a->ix;
  const bb_ix_node *x = &ix->node[a->node], *y = &ix->node[b->node];
  if (x->op != y->op || x->nin != y->nin || x->indices != y->indices || x->expr != y->expr ||
      x->monoid != y->monoid || x->at != y->at || x->start != y->start || x->step != y->step ||
      x->by != y->by || ix->value[x->out[0]].rank != ix->value[y->out[0]].rank)
    return false;
  if (x->op == BB_IX_SOURCE && !same_access(x, y)) return false;
  for (uint32_t k = 0; k < x->indices; k++) {
    uint32_t p = bb_ix_find(ix, x->dim[k]), q = bb_ix_find(ix, y->dim[k]);
    if (p != q && (!free_index(x, k) || ix->dim[p].extent != ix->dim[q].extent)) return false;
  }
  for (uint32_t i = 0; i < x->nin; i++) {
    if (x->in[i].value != y->in[i].value) return false;
    uint32_t rank = ix->value[x->in[i].value].rank;
    if (rank && memcmp(x->in[i].index, y->in[i].index, rank * sizeof *x->in[i].index)) return false;
  }
  return true;
}

uint32_t bb_canon_share(bb_canon *c) {
  bb_arena *scratch = bb_scratch(c->program->ctx);
  bb_intern *seen = bb_intern_create(scratch, hash_node, same_node);
  uint32_t *order, count = bb_ix_order(c->ix, scratch, &order), gone = 0;
  for (uint32_t i = 0; i < count; i++) {
    bb_ix_node *node = &c->ix->node[order[i]];
    if (node->op == BB_IX_MISC || node->op == BB_IX_OUTPUT || node->nout != 1) continue;
    entry *e = BB_NEW(scratch, entry, 1);
    *e = (entry){c->ix, order[i]};
    const entry *twin = bb_intern_find(seen, e);
    if (!twin) {
      bb_intern_add(seen, e);
      continue;
    }
    const bb_ix_node *first = &c->ix->node[twin->node];
    for (uint32_t k = 0; k < node->indices; k++) bb_ix_unite(c->ix, first->dim[k], node->dim[k]);
    bb_canon_replace(c, node->out[0], first->out[0], NULL, BB_NONE);
    gone++;
  }
  bb_scratch_end(scratch);
  return gone;
}
