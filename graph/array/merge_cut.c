/* merge_cut.c - two classes become one for those who gain by it, beside nodes that keep both.
 *
 *     y[g,q,i] = sum over p of x[g,p,i] w[g,q,p]       x[c,i] read as windows: x'[g,p,i] = x[g*P + p,i];   y as above,
 *     z[o,i] = sum over g, q of y[g,q,i] v[o,g,q]  ==> y'[d,i] a copy of it in one piece,  z[o,i] = sum over d of y'[d,i] v[o,d]
 *
 * A product whose every axis on one side is shorter than a vector mostly works for nothing: for its sake alone a class may be
 * one here and two there.  A node that cannot do with one (merge_check.c) keeps both.  So do
 *   - what is made of what such nodes make, up to a product: the copy that makes one of two, which is a renaming where what is
 *     copied has memory of its own, then lies behind all that is made of it element by element;
 *   - what such nodes alone read, their weights.
 */
#include "merge.h"

static bool is_cut(const bb_merger *m, uint32_t node) {
  const bb_merge_site *s = bb_merge_site_of(m, node);
  return s && s->cut;
}

static bool has_both(const bb_merger *m, uint32_t value) {
  const bb_ix_value *v = &m->ix->value[value];
  bool outer = false, inner = false;
  for (uint32_t a = 0; a < v->rank; a++) {
    bool is = bb_merge_is_outer(m, v->dim[a]);
    outer |= is;
    inner |= !is && bb_merge_is_either(m, v->dim[a]);
  }
  return outer && inner;
}

/* --- who keeps both --- */

/* Do all operands with both come from nodes that keep them?  any: one that does is enough. */
static bool comes_cut(const bb_merger *m, const bb_ix_node *node, bool any) {
  uint32_t both = 0, cut = 0;
  for (uint32_t i = 0; i < node->nin; i++) {
    if (!has_both(m, node->in[i].value)) continue;
    both++;
    cut += is_cut(m, bb_ix_producer(m->ix, node->in[i].value));
  }
  return cut && (any || cut == both);
}

/* Do nodes that keep both alone read what it gives? */
static bool goes_cut(const bb_merger *m, const bb_ix_node *node) {
  for (uint32_t o = 0; o < node->nout; o++) {
    if (!has_both(m, node->out[o])) continue;
    BB_IX_EACH_USE(m->ix, node->out[o], user, slot) {
      if (!is_cut(m, user)) return false;
    }
  }
  return node->nout > 0;
}

static bool reads_none(const bb_merger *m, const bb_ix_node *node) {
  for (uint32_t i = 0; i < node->nin; i++)
    if (has_both(m, node->in[i].value) && !is_cut(m, bb_ix_producer(m->ix, node->in[i].value)))
      return false;
  return true;
}

/* A tensor is stored in one way: all its readings keep both, or none.  One alone may be in the way. */
static bool tensor_keeps(const bb_merger *m, uint32_t tensor) {
  bool all = true;
  for (uint32_t r = m->source[tensor]; r; r = m->next_source[r - 1]) {
    const bb_ix_node *node = &m->ix->node[r - 1];
    if (node->removed) continue;
    if (is_cut(m, r - 1)) return true;
    all &= !has_both(m, node->out[0]) || goes_cut(m, node);
  }
  return all;
}

static bool keeps(const bb_merger *m, const bb_merge_site *s) {
  const bb_ix_node *node = &m->ix->node[s->node];
  if (node->op == BB_IX_SOURCE) return tensor_keeps(m, node->tensor);
  if (s->splits || node->op == BB_IX_MISC) return comes_cut(m, node, true);
  if (node->op == BB_IX_CONTRACT) return false;
  return comes_cut(m, node, false) || (reads_none(m, node) && goes_cut(m, node));
}

/* Has it memory of its own, so that a copy of it is another name? */
static bool has_memory(const bb_ix_node *node) {
  return node->op == BB_IX_CONTRACT || node->op == BB_IX_ELEMENTWISE || bb_ix_reduces(node);
}

/* Is what sites of one class read of those that keep both free to be had? */
static bool joins_freely(const bb_merger *m) {
  for (uint32_t i = 0; i < m->count; i++) {
    const bb_ix_node *node = &m->ix->node[m->site[i].node];
    for (uint32_t k = 0; k < node->nin && !m->site[i].cut; k++) {
      uint32_t from = bb_ix_producer(m->ix, node->in[k].value);
      if (has_both(m, node->in[k].value) && is_cut(m, from) && !has_memory(&m->ix->node[from]))
        return false;
    }
  }
  return true;
}

bool bb_merge_settle_cuts(bb_merger *m) {
  for (bool more = true; more;) {
    more = false;
    for (uint32_t i = 0; i < 2 * m->count; i++) { /* there, and back */
      bb_merge_site *s = &m->site[i < m->count ? i : 2 * m->count - 1 - i];
      if (s->cut || !keeps(m, s)) continue;
      s->cut = more = true, s->splits = false, s->apart = BB_NONE;
    }
  }
  return joins_freely(m);
}

/* --- one of two --- */

/* A copy of a value with each pair as its last axis; place[]: of each of the value's axes there. */
static uint32_t joined(bb_merger *m, uint32_t value, uint32_t *place) {
  bb_ix *ix = m->ix;
  const bb_ix_value v = ix->value[value];
  uint32_t *pair = BB_NEW(m->attempt, uint32_t, v.rank), *at = BB_NEW(m->attempt, uint32_t, v.rank),
           *from = BB_NEW(m->attempt, uint32_t, v.rank), *to = BB_NEW(m->attempt, uint32_t, v.rank);
  uint32_t n = 0, whole = 0;
  bb_merge_pair_axes(m, v.rank, v.dim, pair);
  for (uint32_t a = 0; a < v.rank; a++) {
    if (pair[a] != BB_NONE) continue;
    from[n] = to[whole] = bb_ix_find(ix, v.dim[a]);
    at[a] = n++, place[a] = whole++;
  }
  for (uint32_t a = 0; a < v.rank; a++) {
    if (pair[a] == BB_NONE || !bb_merge_is_outer(m, v.dim[a])) continue;
    from[n] = bb_ix_find(ix, v.dim[a]), from[n + 1] = m->inner;
    at[a] = n, at[pair[a]] = n + 1, n += 2;
    to[whole] = bb_merge_whole(m, v.dim[a]);
    place[a] = place[pair[a]] = whole++;
  }
  uint32_t made = bb_ix_copy_add(ix, v.name, bb_ix_port(ix, v.dtype, n, from),
                                 bb_ix_port(ix, v.dtype, whole, to));
  bb_ix_use(ix, bb_ix_producer(ix, made), 0, value, at);
  ix->value[made].once = v.once;
  bb_merge_list(m, bb_ix_producer(ix, made));
  return made;
}

typedef struct joined_value {
  uint32_t made, *place; /* made: + 1 */
} joined_value;

static void join_operand(bb_merger *m, bb_merge_site *s, uint32_t slot, joined_value *j) {
  bb_ix *ix = m->ix;
  const bb_ix_operand in = ix->node[s->node].in[slot];
  uint32_t old = bb_ix_rank(ix, in.value);
  if (!j->made) {
    j->place = BB_NEW(m->attempt, uint32_t, old);
    j->made = joined(m, in.value, j->place) + 1;
  }
  uint32_t rank = bb_ix_rank(ix, j->made - 1), *index = BB_NEW(m->attempt, uint32_t, rank);
  for (uint32_t a = 0; a < old; a++) {
    bool inner = bb_ix_axis(ix, in.value, a) == m->inner && s->axis[slot][a] != BB_NONE;
    if (!inner) index[j->place[a]] = in.index[a];
  }
  bb_ix_unuse(ix, s->node, slot);
  bb_ix_use(ix, s->node, slot, j->made - 1, index);
  s->axis[slot] = BB_NEW(m->attempt, uint32_t, rank);
  for (uint32_t a = 0; a < rank; a++) s->axis[slot][a] = BB_NONE;
}

static void note_operand(bb_merger *m, bb_merge_site *s, uint32_t slot) {
  const bb_ix_value *v = &m->ix->value[m->ix->node[s->node].in[slot].value];
  uint32_t *pair = BB_NEW(m->attempt, uint32_t, v->rank);
  bb_merge_pair_axes(m, v->rank, v->dim, pair);
  s->was[slot] = (bb_merge_operand){v->rank, v->dim, pair};
}

void bb_merge_join_operands(bb_merger *m) {
  if (!m->cuts) return;
  uint32_t values = m->ix->values;
  joined_value *made = BB_NEW(m->attempt, joined_value, values);
  for (uint32_t i = 0; i < m->count; i++) {
    bb_merge_site *s = &m->site[i];
    uint32_t nin = m->ix->node[s->node].nin;
    s->was = BB_NEW(m->attempt, bb_merge_operand, nin);
    for (uint32_t k = 0; k < nin; k++) {
      uint32_t value = m->ix->node[s->node].in[k].value;
      if (value >= values || !has_both(m, value)) continue;
      bool cut = is_cut(m, bb_ix_producer(m->ix, value));
      if (cut && !s->cut) join_operand(m, s, k, &made[value]);
      if (!cut && s->cut) note_operand(m, s, k);
    }
  }
}

/* --- two of one --- */

/* An operand that has each pair as one now, as the node has it. */
static void split_operand(bb_merger *m, uint32_t node, uint32_t slot, const bb_merge_operand *was) {
  const bb_ix_operand in = m->ix->node[node].in[slot];
  uint32_t *index = BB_NEW(m->attempt, uint32_t, was->rank), value = in.value, n = 0;
  for (uint32_t a = 0; a < was->rank; a++) {
    bool paired = was->pair[a] != BB_NONE;
    if (paired && !bb_merge_is_outer(m, was->dim[a])) continue;
    if (paired) value = bb_merge_split(m, value, n, bb_ix_find(m->ix, was->dim[a]));
    index[n++] = in.index[a];
    if (paired) index[n++] = in.index[was->pair[a]];
  }
  bb_ix_unuse(m->ix, node, slot);
  bb_ix_use(m->ix, node, slot, value, index);
}

void bb_merge_split_operands(bb_merger *m, const bb_merge_site *s) {
  for (uint32_t i = 0; i < m->ix->node[s->node].nin; i++)
    if (s->was[i].rank) split_operand(m, s->node, i, &s->was[i]);
}
