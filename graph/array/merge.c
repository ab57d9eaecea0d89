/* merge.c - an axis that was cut for a few of its readers is whole for the others.
 *
 *     z[o,i] = sum over g, p of x[g,p,i] w[o,g,p]       z[o,i] = sum over c of x[c,i] w[o,c]
 *     m[g] = sum over p, i of x[g,p,i]            ==>   r[c] = sum over i of x[c,i],   m[g] = sum over p of r[g*P+p]
 *     y[g,p,i] = x[g,p,i] - m[g]                        y[c,i] = x[c,i] - n[c],        n: m, as often as an axis p asks
 *
 * Factoring cuts an axis wherever any operator needs its parts (channels in groups, to normalise them), and a product in
 * blocks sums along one axis, and has rows and columns along one: parts are short, and so are its blocks.
 *
 * Two classes become one everywhere or nowhere (but for products of a few elements in a block: merge_cut.c): where a value
 * has both, where it has one of them nothing changes. What meets:
 *   - a product has both in an operand, or neither; it sums over both, or over neither;
 *   - a reduction over one of them folds the others first, then, of few elements, this one, seen in windows side by side;
 *   - an elementwise node's operand with one of them is copied for each element of the other: of few elements, too;
 *   - in memory of the program's, of outputs and of reference kernels they stand one behind the other;
 *   - views join and slice whole parts of the outer one, which then goes with those of their results and operands; nothing else
 *     cuts either of them.
 */
#include "merge.h"

/* No product wants more along an axis; with fewer, most of a vector is idle. */
enum { LONG = 64, FEW = 16 };

static void list_add(bb_merger *m, bb_merge_lists *l, uint32_t of, uint32_t item) {
  if (of >= l->classes) BB_GROW(m->scratch, l->first, l->classes, (size_t)of + 1);
  BB_GROW(m->scratch, l->cell, l->cell_capacity, (size_t)l->cells + 1);
  l->cell[l->cells++] = (bb_merge_cell){item, l->first[of]};
  l->first[of] = l->cells;
}

static uint32_t list_first(const bb_merge_lists *l, uint32_t of) {
  return of < l->classes ? l->first[of] : 0;
}

static bool list_has(const bb_merge_lists *l, uint32_t of, uint32_t item) {
  for (uint32_t c = list_first(l, of); c; c = l->cell[c - 1].next)
    if (l->cell[c - 1].item == item) return true;
  return false;
}

void bb_merge_list(bb_merger *m, uint32_t at) {
  const bb_ix_node *node = &m->ix->node[at];
  for (uint32_t k = 0; k < node->indices; k++)
    list_add(m, &m->nodes, bb_ix_find(m->ix, node->dim[k]), at);
  for (uint32_t i = 0; i < node->nin; i++)
    for (uint32_t a = 0; a < bb_ix_rank(m->ix, node->in[i].value); a++)
      list_add(m, &m->nodes, bb_ix_axis(m->ix, node->in[i].value, a), at);
  for (uint32_t o = 0; o < node->nout; o++)
    for (uint32_t a = 0; a < bb_ix_rank(m->ix, node->out[o]); a++)
      list_add(m, &m->nodes, bb_ix_axis(m->ix, node->out[o], a), at);
}

/* --- which --- */

static void note_beside(bb_merger *m, uint32_t outer, uint32_t inner) {
  if (list_has(&m->behind, outer, inner)) return;
  list_add(m, &m->behind, outer, inner);
  list_add(m, &m->before, inner, outer);
}

/* The new classes stand where the two of each stood. */
static void note_whole(bb_merger *m) {
  for (uint32_t o = 0; o < m->outers; o++) {
    for (uint32_t c = list_first(&m->behind, m->inner); c; c = m->behind.cell[c - 1].next)
      note_beside(m, m->whole[o], m->behind.cell[c - 1].item);
    for (uint32_t c = list_first(&m->before, m->outer[o]); c; c = m->before.cell[c - 1].next)
      note_beside(m, m->before.cell[c - 1].item, m->whole[o]);
  }
}

/* Looks at all nodes that have an outer class, of which views make more; false: some is in the way. */
static bool look(bb_merger *m) {
  for (uint32_t o = 0; o < m->outers; o++)
    for (uint32_t c = list_first(&m->nodes, m->outer[o]); c; c = m->nodes.cell[c - 1].next)
      if (!bb_merge_add_outers(m, m->nodes.cell[c - 1].item)) return false;
  m->count = 0, m->attempts++;
  for (uint32_t o = 0; o < m->outers; o++)
    for (uint32_t c = list_first(&m->nodes, m->outer[o]); c; c = m->nodes.cell[c - 1].next)
      if (!bb_merge_look_at(m, m->nodes.cell[c - 1].item)) return false;
  return true;
}

/* For a product.  cuts: nodes in the way keep both, the product itself apart. */
static bool merge(bb_merger *m, uint32_t product, uint32_t outer, uint32_t inner, bool cuts) {
  m->inner = inner, m->outer[0] = outer, m->outers = 1;
  m->attempt = bb_scratch(m->ix->program->ctx);
  m->site = NULL, m->capacity = 0, m->cuts = cuts;
  bool may = look(m);
  if (may && cuts) {
    may = bb_merge_settle_cuts(m);
    const bb_merge_site *site = bb_merge_site_of(m, product);
    may &= site && !site->cut;
  }
  if (may) {
    bb_merge_make(m);
    note_whole(m);
    for (uint32_t i = 0; i < m->count; i++) {
      BB_GROW(m->scratch, m->changed, m->changed_capacity, (size_t)m->changes + 1);
      m->changed[m->changes++] = m->site[i].node;
    }
  } else {
    list_add(m, cuts ? &m->kept : &m->refused, outer, inner);
  }
  bb_scratch_end(m->attempt);
  return may;
}

/* --- copies --- */

/* Does a reference kernel give its operand, axis by axis, over other classes? */
static bool is_same(bb_ix *ix, const bb_ix_node *node) {
  if (node->removed || node->op != BB_IX_MISC || !bb_misc_is_copy(node->misc)) return false;
  const bb_ix_operand *in = &node->in[0];
  uint32_t rank = bb_ix_rank(ix, in->value);
  if (rank != bb_ix_rank(ix, node->out[0])) return false;
  for (uint32_t a = 0; a < rank; a++)
    if (bb_ix_extent(ix, bb_ix_axis(ix, in->value, a)) !=
        bb_ix_extent(ix, bb_ix_axis(ix, node->out[0], in->index[a])))
      return false;
  return true;
}

/* What was copied between axes cut otherwise is read where it lies, once they are cut alike. */
static void drop_copy(bb_ix *ix, uint32_t at) {
  const bb_ix_node node = ix->node[at];
  const bb_ix_operand in = node.in[0];
  bb_arena *scratch = bb_scratch(ix->program->ctx);
  uint32_t rank = bb_ix_rank(ix, in.value), *index = BB_NEW(scratch, uint32_t, rank);
  for (uint32_t a = 0; a < rank; a++)
    bb_ix_unite(ix, bb_ix_axis(ix, in.value, a), bb_ix_axis(ix, node.out[0], in.index[a]));
  BB_IX_EACH_USE(ix, node.out[0], user, slot) {
    for (uint32_t a = 0; a < rank; a++) index[a] = ix->node[user].in[slot].index[in.index[a]];
    bb_ix_unuse(ix, user, slot);
    bb_ix_use(ix, user, slot, in.value, index);
  }
  bb_ix_sweep(ix, at);
  bb_scratch_end(scratch);
}

/* --- products --- */

enum side { ROW, COLUMN, SUM, SHARED };

static enum side side_of(bb_ix *ix, const bb_ix_node *node, uint32_t k) {
  if (k >= bb_ix_rank(ix, node->out[0])) return SUM;
  bool a = bb_ix_follows(ix, &node->in[0], k), b = bb_ix_follows(ix, &node->in[1], k);
  return a && b ? SHARED : a ? ROW : COLUMN;
}

/* Is no axis of a product's side long enough? */
static bool is_short(bb_ix *ix, const bb_ix_node *node, enum side side) {
  int64_t longest = 0;
  for (uint32_t k = 0; k < node->indices; k++) {
    if (side_of(ix, node, k) != side) continue;
    int64_t extent = bb_merge_extent(ix, node->dim[k]);
    if (extent < 0 || extent > longest) longest = extent < 0 ? LONG : extent;
  }
  return longest < LONG;
}

/* Has the axis that is cut into blocks on a product's side, along which vectors and sums run, a few elements only? */
static bool has_few(bb_ix *ix, const bb_ix_node *node, enum side side) {
  bb_product_axes axes = bb_ix_product_axes(ix, node);
  uint32_t k = side == ROW ? BB_NONE : side == COLUMN ? axes.col : axes.sum;
  int64_t extent = k == BB_NONE ? -1 : bb_merge_extent(ix, node->dim[k]);
  return extent > 0 && extent < FEW;
}

/* One class of two, for all or, where a product has a few elements in its blocks, for it and whom it suits.  Axes of the same class are
 * not told apart. */
static bool merge_any(bb_merger *m, uint32_t product, enum side side, uint32_t outer,
                      uint32_t inner) {
  if (outer == inner || !list_has(&m->behind, outer, inner)) return false;
  if (!list_has(&m->refused, outer, inner) && merge(m, product, outer, inner, false)) return true;
  return has_few(m->ix, &m->ix->node[product], side) && !list_has(&m->kept, outer, inner) &&
         merge(m, product, outer, inner, true);
}

/* Makes one of two that a product has on one side of it, the innermost first.  False: there are none, or they stay. */
static bool merge_for(bb_merger *m, uint32_t at) {
  bb_ix *ix = m->ix;
  const bb_ix_node *node = &ix->node[at];
  for (uint32_t k = node->indices; k-- > 0;) {
    enum side side = side_of(ix, node, k);
    if (side == SHARED || (!is_short(ix, node, side) && !has_few(ix, node, side))) continue;
    uint32_t inner = bb_ix_find(ix, node->dim[k]);
    for (uint32_t i = 0; i < node->indices; i++) {
      uint32_t outer = bb_ix_find(ix, node->dim[i]);
      if (side_of(ix, node, i) == side && merge_any(m, at, side, outer, inner)) return true;
      node = &ix->node[at];
    }
  }
  return false;
}

static void find_beside(bb_merger *m) {
  bb_ix *ix = m->ix;
  for (uint32_t d = 0, dims = ix->dims; d < dims; d++) {
    if (bb_ix_find(ix, d) != d || !ix->dim[d].parts) continue;
    bb_ix_list leaves = {.arena = m->scratch};
    bb_ix_leaves(ix, d, &leaves);
    for (uint32_t k = 1; k < leaves.count; k++) {
      uint32_t outer = leaves.at[k - 1], inner = leaves.at[k];
      if (outer != inner && bb_merge_extent(ix, outer) > 0 && bb_merge_extent(ix, inner) > 0)
        note_beside(m, outer, inner);
    }
  }
}

static void find_sources(bb_merger *m) {
  bb_ix *ix = m->ix;
  m->source = BB_NEW(m->scratch, uint32_t, ix->array->values);
  m->next_source = BB_NEW(m->scratch, uint32_t, ix->nodes);
  for (uint32_t i = 0; i < ix->nodes; i++) {
    if (ix->node[i].op != BB_IX_SOURCE) continue;
    m->next_source[i] = m->source[ix->node[i].tensor];
    m->source[ix->node[i].tensor] = i + 1;
  }
}

void bb_ix_merge(bb_ix *ix) {
  if (ix->program->strict) return; /* sums are taken in another order */
  bb_merger m = {.ix = ix, .scratch = bb_scratch(ix->program->ctx)};
  uint32_t nodes = ix->nodes;
  find_beside(&m);
  find_sources(&m);
  for (uint32_t i = 0; i < nodes; i++)
    if (!ix->node[i].removed) bb_merge_list(&m, i);
  for (uint32_t i = 0; i < nodes; i++) {
    bool product = !ix->node[i].removed && ix->node[i].op == BB_IX_CONTRACT &&
                   !ix->value[ix->node[i].out[0]].once;
    while (product && merge_for(&m, i)) continue;
  }
  for (uint32_t i = 0; i < m.changes; i++)
    if (is_same(ix, &ix->node[m.changed[i]])) drop_copy(ix, m.changed[i]);
  bb_scratch_end(m.scratch);
}
