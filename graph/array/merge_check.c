/* merge_check.c - may two classes become one? */
#include "merge.h"

enum { MANY = 16 }; /* times is what is copied or folded apart smaller than what is left as it is */

bool bb_merge_pair_axes(const bb_merger *m, uint32_t count, const uint32_t *dim, uint32_t *pair) {
  uint32_t outer = 0, inner = 0;
  for (uint32_t a = 0; a < count; a++) {
    uint32_t class = bb_ix_find(m->ix, dim[a]);
    pair[a] = BB_NONE;
    outer += bb_merge_is_outer(m, class), inner += class == m->inner;
  }
  if (!outer || !inner) return true; /* it has one of them: it stays */
  if (outer != inner) return false;
  for (uint32_t a = 0, b = 0; a < count; a++) {
    if (!bb_merge_is_outer(m, dim[a])) continue;
    while (bb_ix_find(m->ix, dim[b]) != m->inner) b++;
    pair[a] = b, pair[b] = a;
    b++;
  }
  return true;
}

static bool join_indices(const bb_merger *m, const bb_ix_node *node, bb_merge_site *s, uint32_t i,
                         uint32_t k) {
  bool free = s->pair[i] == BB_NONE && s->pair[k] == BB_NONE;
  if (!free && s->pair[i] != k) return false;
  s->pair[i] = k, s->pair[k] = i;
  return node->op == BB_IX_MISC ||
         (bb_merge_is_either(m, node->dim[i]) && bb_merge_is_either(m, node->dim[k]));
}

/* Pairs indices as operands and results have them. */
static bool pair_indices(const bb_merger *m, const bb_ix_node *node, bb_merge_site *s) {
  bool one = true;
  for (uint32_t i = 0; i < node->nin && one; i++) {
    const bb_ix_operand *in = &node->in[i];
    uint32_t rank = bb_ix_rank(m->ix, in->value);
    s->axis[i] = BB_NEW(m->attempt, uint32_t, rank);
    one = bb_merge_pair_axes(m, rank, m->ix->value[in->value].dim, s->axis[i]);
    for (uint32_t a = 0; a < rank && one; a++)
      if (s->axis[i][a] != BB_NONE)
        one = join_indices(m, node, s, in->index[a], in->index[s->axis[i][a]]);
  }
  for (uint32_t o = 0; o < node->nout && one && node->op != BB_IX_MISC; o++) {
    uint32_t rank = bb_ix_rank(m->ix, node->out[o]), *pair = BB_NEW(m->attempt, uint32_t, rank);
    one = bb_merge_pair_axes(m, rank, m->ix->value[node->out[o]].dim, pair);
    for (uint32_t a = 0; a < rank && one; a++)
      if (pair[a] != BB_NONE) one = join_indices(m, node, s, a, pair[a]);
  }
  return one;
}

uint32_t bb_merge_lone_axis(const bb_merger *m, const bb_ix_node *node, const bb_merge_site *s,
                            uint32_t slot) {
  const bb_ix_operand *in = &node->in[slot];
  for (uint32_t a = 0; a < bb_ix_rank(m->ix, in->value); a++)
    if (s->axis[slot][a] == BB_NONE && s->pair[in->index[a]] != BB_NONE) return a;
  return BB_NONE;
}

/* Of elements along the indices that neither the operand nor the pair has, are there many? */
static bool is_small(const bb_merger *m, const bb_ix_node *node, const bb_merge_site *s,
                     uint32_t slot) {
  const bb_ix_operand *in = &node->in[slot];
  uint32_t axis = bb_merge_lone_axis(m, node, s, slot), other = s->pair[in->index[axis]], own = 0;
  for (uint32_t a = 0; a < bb_ix_rank(m->ix, in->value); a++)
    own += bb_merge_is_either(m, m->ix->value[in->value].dim[a]);
  int64_t missing = 1;
  for (uint32_t k = 0; k < node->indices && missing < MANY; k++)
    if (k != other && !bb_ix_follows(m->ix, in, k) && bb_merge_extent(m->ix, node->dim[k]) > 0)
      missing *= bb_merge_extent(m->ix, node->dim[k]);
  return own == 1 && (m->ix->value[in->value].once || missing >= MANY);
}

static bool allows_elementwise(const bb_merger *m, const bb_ix_node *node, const bb_merge_site *s) {
  for (uint32_t i = 0; i < node->nin; i++)
    if (bb_merge_lone_axis(m, node, s, i) != BB_NONE && !is_small(m, node, s, i)) return false;
  return true;
}

/* Folds a reduction one of a pair?  Then many others, before. */
static bool allows_reduction(const bb_merger *m, const bb_ix_node *node, bb_merge_site *s) {
  uint32_t rank = bb_ix_rank(m->ix, node->out[0]), pairs = 0;
  bool folds = false;
  int64_t others = 1;
  for (uint32_t k = 0; k < node->indices; k++) {
    if (s->pair[k] == BB_NONE || s->pair[k] < k) continue;
    pairs++;
    folds |= s->pair[k] >= rank;
    if (k < rank && s->pair[k] >= rank) s->apart = k;
  }
  if (!folds) return true;
  if (node->op != BB_IX_REDUCE || node->nout != 1 || !node->monoid->commutative) return false;
  if (s->apart == BB_NONE) return true;
  s->keeps_outer = bb_merge_is_outer(m, node->dim[s->apart]);
  s->outer = bb_ix_find(m->ix, node->dim[s->keeps_outer ? s->apart : s->pair[s->apart]]);
  for (uint32_t k = rank; k < node->indices && others < MANY; k++)
    if (s->pair[k] == BB_NONE && bb_merge_extent(m->ix, node->dim[k]) > 0)
      others *= bb_merge_extent(m->ix, node->dim[k]);
  return pairs == 1 && others >= MANY;
}

static bool allows_product(const bb_merger *m, const bb_ix_node *node, const bb_merge_site *s) {
  uint32_t rank = bb_ix_rank(m->ix, node->out[0]);
  for (uint32_t k = 0; k < node->indices; k++)
    if (s->pair[k] != BB_NONE && (k < rank) != (s->pair[k] < rank)) return false;
  return true;
}

/* What runs along an index takes pairs as they are; joins and slices may be of an outer one's whole parts, in all operands. */
static bool allows_along(const bb_merger *m, const bb_ix_node *node, const bb_merge_site *s) {
  uint32_t inner = s->pair[node->at];
  if (node->op == BB_IX_WINDOWS && s->pair[node->at + 1] != BB_NONE) return false;
  if (inner == BB_NONE) return true;
  bool parts = node->op == BB_IX_JOIN || (node->op == BB_IX_SLICE && node->step == 1);
  if (!parts || !bb_merge_is_outer(m, node->dim[node->at])) return false;
  for (uint32_t i = 0; i < node->nin; i++)
    if (!bb_ix_follows(m->ix, &node->in[i], inner)) return false;
  return node->at < bb_ix_rank(m->ix, node->out[0]);
}

/* The class that a view cuts, of operand `slot`, or, behind the last one, of its result; BB_NONE: the operand has no such axis. */
static uint32_t class_along(const bb_merger *m, const bb_ix_node *node, uint32_t slot) {
  if (slot == node->nin) return bb_ix_find(m->ix, node->dim[node->at]);
  const bb_ix_operand *in = &node->in[slot];
  for (uint32_t a = 0; a < bb_ix_rank(m->ix, in->value); a++)
    if (in->index[a] == node->at) return bb_ix_axis(m->ix, in->value, a);
  return BB_NONE;
}

static bool add_outer(bb_merger *m, uint32_t class) {
  class = bb_ix_find(m->ix, class);
  if (bb_merge_is_outer(m, class)) return true;
  if (class == m->inner || m->outers == BB_MERGE_OUTERS || bb_merge_extent(m->ix, class) <= 0)
    return false;
  m->outer[m->outers++] = class;
  return true;
}

static bool add_along(bb_merger *m, const bb_ix_node *node) {
  bool along = false, has = false;
  for (uint32_t k = 0; k < node->indices; k++) has |= bb_ix_find(m->ix, node->dim[k]) == m->inner;
  for (uint32_t i = 0; i <= node->nin; i++) {
    uint32_t class = class_along(m, node, i);
    along |= class != BB_NONE && bb_merge_is_outer(m, class);
  }
  for (uint32_t i = 0; i <= node->nin && has && along; i++) {
    uint32_t class = class_along(m, node, i);
    if (class != BB_NONE && !add_outer(m, class)) return false;
  }
  return true;
}

/* A reading of a part of an axis. */
static bool add_read(bb_merger *m, const bb_ix_node *node) {
  const bb_ix_list *axes = &m->ix->storage[node->tensor];
  bool has = false;
  for (uint32_t t = 0; t < axes->count; t++) has |= bb_ix_find(m->ix, axes->at[t]) == m->inner;
  for (uint32_t t = 0; t < axes->count && has; t++) {
    const bb_index *at = &node->access[t];
    bool one = at->kind == BB_INDEX_RANGE &&
               (bb_merge_is_outer(m, axes->at[t]) || bb_merge_is_outer(m, at->dim));
    if (one && !(add_outer(m, axes->at[t]) && add_outer(m, at->dim))) return false;
  }
  return true;
}

bool bb_merge_add_outers(bb_merger *m, uint32_t at) {
  const bb_ix_node *node = &m->ix->node[at];
  if (node->removed) return true;
  if (node->op == BB_IX_JOIN || node->op == BB_IX_SLICE) return add_along(m, node);
  if (node->op != BB_IX_SOURCE) return true;
  for (uint32_t r = m->source[node->tensor]; r; r = m->next_source[r - 1])
    if (!m->ix->node[r - 1].removed && !add_read(m, &m->ix->node[r - 1])) return false;
  return true;
}

/* Indices that say where an element lies: the inner one of a pair is the next one. */
static bool stand_together(const bb_merger *m, const bb_merge_site *s, uint32_t count,
                           const uint32_t *dim) {
  for (uint32_t k = 0; k < count; k++)
    if (s->pair[k] != BB_NONE && bb_merge_is_outer(m, dim[k]) && s->pair[k] != k + 1) return false;
  return true;
}

/* Does a reading have each pair of the tensor's axes, or whole parts of the outer one, and no other one? */
static bool reads_pairs(const bb_merger *m, const bb_ix_node *node, const bb_ix_list *axes,
                        const uint32_t *pair) {
  for (uint32_t t = 0; t < axes->count; t++) {
    const bb_index *at = &node->access[t];
    bool either = at->kind != BB_INDEX_FIXED && bb_merge_is_either(m, at->dim);
    if (pair[t] == BB_NONE && !either) continue;
    bool part = at->kind == BB_INDEX_RANGE && at->step == 1 && bb_merge_is_outer(m, at->dim) &&
                bb_merge_is_outer(m, axes->at[t]);
    if (pair[t] == BB_NONE || !(part || at->kind == BB_INDEX_DIM)) return false;
  }
  return true;
}

/* A tensor's axes as they are stored, and all its readings. */
static bool allows_storage(const bb_merger *m, uint32_t tensor) {
  const bb_ix_list *axes = &m->ix->storage[tensor];
  bb_merge_site s = {.pair = BB_NEW(m->attempt, uint32_t, axes->count)};
  if (!bb_merge_pair_axes(m, axes->count, axes->at, s.pair) ||
      !stand_together(m, &s, axes->count, axes->at))
    return false;
  for (uint32_t r = m->source[tensor]; r; r = m->next_source[r - 1]) {
    const bb_ix_node *node = &m->ix->node[r - 1];
    if (!node->removed && !reads_pairs(m, node, axes, s.pair)) return false;
  }
  return true;
}

static bool allows_ports(const bb_merger *m, const bb_ix_node *node, const bb_merge_site *s) {
  for (uint32_t i = 0; i < node->nin; i++) {
    const bb_ix_operand *in = &node->in[i];
    for (uint32_t a = 0; a < bb_ix_rank(m->ix, in->value); a++)
      if (s->axis[i][a] != BB_NONE && bb_merge_is_outer(m, m->ix->value[in->value].dim[a]) &&
          in->index[s->axis[i][a]] != in->index[a] + 1)
        return false;
  }
  for (uint32_t o = 0; o < node->nout; o++) {
    const bb_ix_value *v = &m->ix->value[node->out[o]];
    bb_merge_site out = {.pair = BB_NEW(m->attempt, uint32_t, v->rank)};
    if (!bb_merge_pair_axes(m, v->rank, v->dim, out.pair) ||
        !stand_together(m, &out, v->rank, v->dim))
      return false;
  }
  return true;
}

/* Does a view see the inner axis of its only pair in windows side by side, as another merge left it? */
static bool splits_inner(const bb_merger *m, const bb_ix_node *node, bb_merge_site *s) {
  if (node->op != BB_IX_WINDOWS || node->start || node->by != 1 ||
      node->step != bb_merge_extent(m->ix, node->dim[node->at + 1]))
    return false;
  const bb_ix_operand *in = &node->in[0];
  uint32_t rank = bb_ix_rank(m->ix, in->value), axes = 0;
  for (uint32_t k = 0; k < node->indices; k++)
    if (bb_ix_find(m->ix, node->dim[k]) == m->inner) return false;
  for (uint32_t a = 0; a < rank; a++) {
    uint32_t class = bb_ix_axis(m->ix, in->value, a);
    if ((class == m->inner) != (in->index[a] == node->at)) return false;
    if (bb_merge_is_outer(m, class)) s->outer = class;
    axes += bb_merge_is_either(m, class);
  }
  s->axis[0] = BB_NEW(m->attempt, uint32_t, rank);
  s->splits = axes == 2 && bb_merge_pair_axes(m, rank, m->ix->value[in->value].dim, s->axis[0]);
  return s->splits;
}

static bool allows(const bb_merger *m, const bb_ix_node *node, bb_merge_site *s) {
  for (uint32_t i = 0; i < node->nin && node->op != BB_IX_ELEMENTWISE && node->op != BB_IX_MISC;
       i++)
    if (bb_merge_lone_axis(m, node, s, i) != BB_NONE) return false;
  switch (node->op) {
  case BB_IX_SOURCE: return allows_storage(m, node->tensor);
  case BB_IX_ELEMENTWISE: return allows_elementwise(m, node, s);
  case BB_IX_CONTRACT: return allows_product(m, node, s);
  case BB_IX_REDUCE:
  case BB_IX_ARGREDUCE:
  case BB_IX_FOLD: return allows_reduction(m, node, s);
  case BB_IX_SCAN:
  case BB_IX_SLICE:
  case BB_IX_WINDOWS:
  case BB_IX_PAD:
  case BB_IX_JOIN: return allows_along(m, node, s);
  case BB_IX_MISC: return allows_ports(m, node, s);
  case BB_IX_OUTPUT: return stand_together(m, s, node->indices, node->dim);
  }
  return false;
}

/* The indices of a node: of a reference kernel, as many as its longest port has axes. */
static uint32_t indices_of(const bb_merger *m, const bb_ix_node *node) {
  uint32_t most = node->indices;
  for (uint32_t i = 0; i < node->nin && node->op == BB_IX_MISC; i++)
    if (bb_ix_rank(m->ix, node->in[i].value) > most) most = bb_ix_rank(m->ix, node->in[i].value);
  return most;
}

static bool has_pair(const bb_merger *m, const bb_ix_node *node, const bb_merge_site *s,
                     uint32_t indices) {
  bool any = false;
  for (uint32_t k = 0; k < indices; k++) any |= s->pair[k] != BB_NONE;
  for (uint32_t i = 0; i < node->nin && node->op == BB_IX_MISC; i++)
    for (uint32_t a = 0; a < bb_ix_rank(m->ix, node->in[i].value); a++)
      any |= s->axis[i][a] != BB_NONE;
  for (uint32_t o = 0; o < node->nout && node->op == BB_IX_MISC; o++) {
    const bb_ix_value *v = &m->ix->value[node->out[o]];
    bool outer = false, inner = false;
    for (uint32_t a = 0; a < v->rank; a++) {
      outer |= bb_merge_is_either(m, v->dim[a]) && bb_merge_is_outer(m, v->dim[a]);
      inner |= bb_merge_is_either(m, v->dim[a]) && !bb_merge_is_outer(m, v->dim[a]);
    }
    any |= outer && inner;
  }
  return any;
}

static bool add_site(bb_merger *m, bb_merge_site s) {
  BB_GROW(m->attempt, m->site, m->capacity, (size_t)m->count + 1);
  m->site[m->count++] = s;
  m->place[s.node] = m->count;
  return true;
}

/* A node that cannot do with one class keeps both, or is in the way. */
static bool keep_both(bb_merger *m, bb_merge_site s) {
  s.cut = true, s.splits = false, s.apart = BB_NONE;
  return m->cuts && add_site(m, s);
}

bb_merge_site *bb_merge_site_of(const bb_merger *m, uint32_t node) {
  bool looked = node < m->seen_capacity && m->seen[node] == m->attempts && m->place[node];
  return looked ? &m->site[m->place[node] - 1] : NULL;
}

bool bb_merge_look_at(bb_merger *m, uint32_t at) {
  const bb_ix_node *node = &m->ix->node[at];
  BB_GROW(m->scratch, m->seen, m->seen_capacity, (size_t)at + 1);
  BB_GROW(m->scratch, m->place, m->place_capacity, (size_t)at + 1);
  if (node->removed || m->seen[at] == m->attempts) return true;
  m->seen[at] = m->attempts;
  m->place[at] = 0;
  bb_merge_site s = {.node = at, .apart = BB_NONE};
  uint32_t indices = indices_of(m, node);
  s.pair = BB_NEW(m->attempt, uint32_t, indices);
  s.axis = BB_NEW(m->attempt, uint32_t *, node->nin);
  for (uint32_t k = 0; k < indices; k++) s.pair[k] = BB_NONE;
  if (splits_inner(m, node, &s)) return add_site(m, s);
  if (node->op == BB_IX_MISC) {
    for (uint32_t i = 0; i < node->nin; i++) {
      const bb_ix_value *v = &m->ix->value[node->in[i].value];
      s.axis[i] = BB_NEW(m->attempt, uint32_t, v->rank);
      if (!bb_merge_pair_axes(m, v->rank, v->dim, s.axis[i])) return keep_both(m, s);
    }
  } else if (!pair_indices(m, node, &s)) {
    return keep_both(m, s);
  }
  if (!has_pair(m, node, &s, indices)) return true;
  return allows(m, node, &s) ? add_site(m, s) : keep_both(m, s);
}
