/* lower_dims.c - which dims are cut into blocks, and what dims are called.
 *
 * A dim is blocked where a product or a reduction runs along it innermost: the innermost dim of the
 * rows, of the columns and of the sum of a contraction (one of a few elements only if there is no
 * other), the innermost dim of a reduction or scan.  What a reduction sees in windows is enumerated: there are few of them, and
 * neighbours are seen by the next window.
 * Beyond these, the last two axes of a value are blocked as long as no value gets a third blocked
 * axis by it: an item has two axes.  The last axes in memory come first: what is turned is turned in blocks of the axis along
 * which it is read and the one along which it is written.  All other dims are enumerated: batch, heads, the outer ones of a
 * reduction over several.
 */
#include "lower.h"

#include <string.h>

enum { FEW = 4 };

bool bb_lower_blocked(bb_lower *l, uint32_t class) {
  return l->blocked[bb_ix_find(l->ix, class)];
}

/* The index to block: i, or `best`, further out, where i has few elements.  Neighbours such
 * as the pair that a rotation turns make no block as long as there is more further out. */
static uint32_t inner_of(bb_ix *ix, const bb_ix_node *node, uint32_t best, uint32_t i) {
  int64_t extent = bb_extent_value(bb_ix_extent(ix, node->dim[i]));
  return best != BB_NONE && extent >= 0 && extent < FEW ? best : i;
}

bb_product_axes bb_ix_product_axes(bb_ix *ix, const bb_ix_node *node) {
  uint32_t rank = ix->value[node->out[0]].rank;
  bb_product_axes axes = {BB_NONE, BB_NONE, BB_NONE};
  for (uint32_t i = 0; i < rank; i++) {
    bool a = bb_ix_follows(ix, &node->in[0], i), b = bb_ix_follows(ix, &node->in[1], i);
    if (a && !b) axes.row = inner_of(ix, node, axes.row, i);
    if (b && !a) axes.col = inner_of(ix, node, axes.col, i);
  }
  for (uint32_t i = rank; i < node->indices; i++) axes.sum = inner_of(ix, node, axes.sum, i);
  return axes;
}

/* By class: what stands in a window; of those, what is reduced. */
static bool *find_taps(bb_ix *ix, bool only_reduced, bb_arena *arena) {
  bool *tap = BB_NEW(arena, bool, ix->dims), *reduced = BB_NEW(arena, bool, ix->dims);
  for (uint32_t i = 0; i < ix->nodes; i++) {
    const bb_ix_node *node = &ix->node[i];
    if (node->removed) continue;
    if (node->op == BB_IX_WINDOWS) tap[bb_ix_find(ix, node->dim[node->at + 1])] = true;
    if (node->op != BB_IX_REDUCE) continue;
    for (uint32_t k = bb_ix_rank(ix, node->out[0]); k < node->indices; k++)
      reduced[bb_ix_find(ix, node->dim[k])] = true;
  }
  for (uint32_t d = 0; only_reduced && d < ix->dims; d++) tap[d] &= reduced[d];
  return tap;
}

bool *bb_ix_blocked_by_operators(bb_ix *ix, bb_arena *arena) {
  bool *blocked = BB_NEW(arena, bool, ix->dims);
  const bool *tap = find_taps(ix, true, arena);
  for (uint32_t i = 0; i < ix->nodes; i++) {
    const bb_ix_node *node = &ix->node[i];
    if (node->removed) continue;
    if (node->op == BB_IX_CONTRACT) {
      bb_product_axes axes = bb_ix_product_axes(ix, node);
      if (axes.row != BB_NONE) blocked[bb_ix_find(ix, node->dim[axes.row])] = true;
      if (axes.col != BB_NONE) blocked[bb_ix_find(ix, node->dim[axes.col])] = true;
      blocked[bb_ix_find(ix, node->dim[axes.sum])] = true;
    }
    uint32_t inner = node->indices ? bb_ix_find(ix, node->dim[node->indices - 1]) : 0;
    if (bb_ix_reduces(node)) blocked[inner] |= node->op != BB_IX_REDUCE || !tap[inner];
    if (node->op == BB_IX_SCAN) blocked[bb_ix_find(ix, node->dim[node->at])] = true;
  }
  return blocked;
}

/* Values by class, as linked lists of (value) cells. */
typedef struct cell {
  uint32_t value, next;
} cell;

typedef struct weak {
  bb_lower *l;
  uint32_t *first; /* by class, + 1 */
  cell *cell;
  uint32_t *count; /* blocked axes, by value */
  bool *refused;   /* by class */
} weak;

static bool is_live(const bb_ix *ix, uint32_t value) {
  return !ix->node[ix->value[value].node].removed;
}

static void index_values(weak *w) {
  bb_ix *ix = w->l->ix;
  size_t total = 0;
  uint32_t cells = 0;
  for (uint32_t v = 0; v < ix->values; v++) total += ix->value[v].rank;
  w->cell = BB_NEW(w->l->scratch, cell, total);
  for (uint32_t v = 0; v < ix->values; v++) {
    if (!is_live(ix, v)) continue;
    for (uint32_t a = 0; a < ix->value[v].rank; a++) {
      uint32_t class = bb_ix_axis(ix, v, a);
      w->count[v] += w->l->blocked[class];
      w->cell[cells] = (cell){v, w->first[class]};
      w->first[class] = ++cells;
    }
  }
}

/* Blocks a class unless some value would get a third blocked axis. */
static void try_block(weak *w, uint32_t class) {
  if (w->l->blocked[class] || w->refused[class]) return;
  for (uint32_t c = w->first[class]; c && !w->refused[class]; c = w->cell[c - 1].next)
    w->refused[class] = w->count[w->cell[c - 1].value] >= 2;
  if (w->refused[class]) return;
  w->l->blocked[class] = true;
  for (uint32_t c = w->first[class]; c; c = w->cell[c - 1].next) w->count[w->cell[c - 1].value]++;
}

/* A reduction runs along its innermost dim within items, along its others from item to item: cut into
 * blocks, they would be read through a view. */
static void keep_reduced(weak *w) {
  bb_ix *ix = w->l->ix;
  const bool *tap = find_taps(ix, true, w->l->scratch);
  for (uint32_t d = 0; d < ix->dims; d++) w->refused[d] |= tap[d];
  for (uint32_t i = 0; i < ix->nodes; i++) {
    const bb_ix_node *node = &ix->node[i];
    if (node->removed || !bb_ix_reduces(node)) continue;
    for (uint32_t k = ix->value[node->out[0]].rank; k + 1 < node->indices; k++)
      w->refused[bb_ix_find(ix, node->dim[k])] = true;
  }
}

/* The last axis in memory of a value or an output, if there is a vector along it. */
static void try_last(weak *w, uint32_t class) {
  enum { VECTOR = 8 };
  int64_t extent = bb_extent_value(bb_ix_extent(w->l->ix, class));
  if (extent < 0 || extent >= VECTOR) try_block(w, class);
}

void bb_lower_find_blocked(bb_lower *l) {
  bb_ix *ix = l->ix;
  weak w = {.l = l};
  l->blocked = bb_ix_blocked_by_operators(ix, l->scratch);
  w.first = BB_NEW(l->scratch, uint32_t, ix->dims);
  w.refused = BB_NEW(l->scratch, bool, ix->dims);
  w.count = BB_NEW(l->scratch, uint32_t, ix->values);
  index_values(&w);
  keep_reduced(&w);
  const bool *tap = find_taps(ix, false, l->scratch);
  for (uint32_t v = 0; v < ix->values; v++)
    if (is_live(ix, v) && ix->value[v].rank > 1 && w.count[v] < 2)
      try_last(&w, bb_ix_axis(ix, v, ix->value[v].rank - 1));
  for (uint32_t o = 0; o < ix->array->outputs; o++) {
    const bb_ix_node *node = &ix->node[ix->output[o]];
    if (node->indices) try_last(&w, bb_ix_find(ix, node->dim[node->indices - 1]));
  }
  for (uint32_t v = 0; v < ix->values; v++) {
    if (!is_live(ix, v)) continue;
    for (uint32_t back = 1; back <= 2 && back <= ix->value[v].rank; back++) {
      uint32_t class = bb_ix_axis(ix, v, ix->value[v].rank - back);
      if (back > 1 && tap[class]) continue; /* a few, with neighbours of their own behind each */
      if (w.count[v] < 2) try_block(&w, class);
    }
  }
}

/* --- names --- */

/* A dim is called as its symbol; else by a letter. */
static const char *name_of(bb_lower *l, const bb_extent *extent, bool blocked) {
  static const char *const letters[2] = {"BHGCEFAJ", "MNKLPQRSUVWXYZ"};
  if (extent->factor == 1 && extent->count == 1) return l->program->symbol[extent->symbol[0]];
  uint32_t n = l->letters[blocked]++;
  const char *pool = letters[blocked];
  if (n < strlen(pool)) return bb_arena_printf(l->scratch, "%c", pool[n]);
  return bb_arena_printf(l->scratch, "%c%u", pool[n % strlen(pool)], (unsigned)(n / strlen(pool)));
}

/* A dim that the program declares with this name and extent, if no class has it yet. */
static bb_dim declared(bb_lower *l, const char *name, const bb_extent *extent) {
  bb_dim dim = bb_dim_find(l->program, name, strlen(name));
  if (dim == BB_NO_DIM || l->program->dim[dim].extent != extent) return BB_NO_DIM;
  for (uint32_t c = 0; c < l->ix->dims; c++)
    if (l->ix->dim[c].dim == dim || l->alias[c] == dim) return BB_NO_DIM;
  return dim;
}

bb_dim bb_lower_dim(bb_lower *l, uint32_t class, bb_role role) {
  class = bb_ix_find(l->ix, class);
  bb_ix_dim *c = &l->ix->dim[class];
  bool blocked = l->blocked[class];
  if (c->dim == BB_NO_DIM) {
    const char *name = name_of(l, c->extent, blocked);
    c->dim = declared(l, name, c->extent);
    if (c->dim == BB_NO_DIM) c->dim = bb_dim_add(l->program, name, c->extent, blocked);
    l->program->dim[c->dim].blocked = blocked;
  }
  if (!blocked || role != BB_ROLE_LOOP) return c->dim;
  if (l->alias[class] == BB_NO_DIM)
    l->alias[class] =
        bb_dim_add(l->program, bb_dim_get(l->program, c->dim)->name, c->extent, false);
  return l->alias[class];
}
