/* merge_make.c - two classes become one: at the nodes that have both, in what is read there, in memory. */
#include "merge.h"

#include <string.h>

uint32_t bb_merge_whole(const bb_merger *m, uint32_t class) {
  return m->whole[bb_merge_outer(m, class)];
}

/* A list of classes with each pair as one; pair[] as of axes. */
static uint32_t merged_classes(const bb_merger *m, uint32_t count, const uint32_t *dim,
                               const uint32_t *pair, uint32_t *merged) {
  uint32_t n = 0;
  for (uint32_t a = 0; a < count; a++) {
    bool paired = pair[a] != BB_NONE;
    if (!paired || bb_merge_is_outer(m, dim[a]))
      merged[n++] = paired ? bb_merge_whole(m, dim[a]) : dim[a];
  }
  return n;
}

/* A value with one of the two, for each element of the other: written out, then copied to one axis. */
static uint32_t spread(bb_merger *m, uint32_t value, uint32_t axis, uint32_t class) {
  bb_ix *ix = m->ix;
  bb_ix_value v = ix->value[value];
  uint32_t *dim = BB_NEW(m->attempt, uint32_t, (size_t)v.rank + 1),
           *index = BB_NEW(m->attempt, uint32_t, (size_t)v.rank + 1);
  bool outer = bb_merge_is_outer(m, v.dim[axis]);
  for (uint32_t a = 0; a < v.rank; a++) {
    index[a] = a + (a > axis || (a == axis && !outer));
    dim[index[a]] = bb_ix_find(ix, v.dim[a]);
  }
  dim[axis + outer] = outer ? m->inner : class;
  uint32_t each = bb_ix_add(ix, BB_IX_ELEMENTWISE, v.name, v.dtype, 1, v.rank + 1, v.rank + 1, dim);
  bb_ix_node_of(ix, each)->expr = bb_expr_arg(ix->program, v.dtype, 0);
  bb_ix_use(ix, bb_ix_producer(ix, each), 0, value, index);
  bb_misc_port from = bb_ix_port(ix, v.dtype, v.rank + 1, dim);
  for (uint32_t a = 0; a < v.rank; a++)
    dim[a] = a == axis ? bb_merge_whole(m, class) : bb_ix_find(ix, v.dim[a]);
  uint32_t made = bb_ix_copy_add(ix, v.name, from, bb_ix_port(ix, v.dtype, v.rank, dim));
  for (uint32_t a = 0; a <= v.rank; a++) index[a] = a;
  bb_ix_use(ix, bb_ix_producer(ix, made), 0, each, index);
  ix->value[each].once = ix->value[made].once = v.once;
  bb_merge_list(m, bb_ix_producer(ix, each));
  bb_merge_list(m, bb_ix_producer(ix, made));
  return made;
}

/* The outer class of the pair that an index is in. */
static uint32_t outer_of(const bb_merger *m, const bb_ix_node *node, const bb_merge_site *s,
                         uint32_t index) {
  return bb_ix_find(m->ix,
                    node->dim[bb_merge_is_outer(m, node->dim[index]) ? index : s->pair[index]]);
}

/* Operands with one of a pair are spread, each once: copy[o][value], + 1, with the outer class number o. */
static void spread_operands(bb_merger *m, bb_merge_site *s, uint32_t *const *copy,
                            uint32_t values) {
  for (uint32_t i = 0; i < m->ix->node[s->node].nin; i++) {
    const bb_ix_node *node = &m->ix->node[s->node];
    uint32_t axis = bb_merge_lone_axis(m, node, s, i), value = node->in[i].value;
    if (axis == BB_NONE || value >= values) continue;
    uint32_t *index = node->in[i].index, outer = outer_of(m, node, s, index[axis]);
    uint32_t *made = &copy[bb_merge_outer(m, outer)][value];
    if (!*made) *made = spread(m, value, axis, outer) + 1;
    bb_ix_unuse(m->ix, s->node, i);
    bb_ix_use(m->ix, s->node, i, *made - 1, index);
  }
}

typedef struct renaming {
  const bb_merger *m;
  const bb_ix_node *node; /* as it was */
  const bb_merge_site *site;
  const uint32_t *index; /* the new one of each */
} renaming;

static const bb_expr *rename_coordinate(void *user, const bb_expr *leaf) {
  const renaming *r = user;
  bb_program *p = r->m->ix->program;
  if (leaf->op != BB_X_COORD || leaf->index < BB_COORD_AXIS) return leaf;
  uint32_t k = leaf->index - BB_COORD_AXIS;
  const bb_expr *coordinate = bb_expr_coord(p, BB_COORD_AXIS + r->index[k]);
  if (r->site->pair[k] == BB_NONE) return coordinate;
  double parts = (double)bb_merge_extent(r->m->ix, r->m->inner);
  bb_expr_op op = bb_merge_is_outer(r->m, r->node->dim[k]) ? BB_X_DIV : BB_X_MOD;
  return bb_expr_make(p, op, coordinate, bb_expr_const(p, BB_I64, parts), NULL);
}

/* The operand's axes and what they follow, with each pair as one. */
static void merge_operand(const bb_merger *m, bb_ix_operand *in, const uint32_t *axis,
                          const uint32_t *index) {
  const bb_ix_value *v = &m->ix->value[in->value];
  uint32_t n = 0;
  for (uint32_t a = 0; a < v->rank; a++)
    if (axis[a] == BB_NONE || bb_merge_is_outer(m, v->dim[a])) in->index[n++] = index[in->index[a]];
}

/* The new number of each index: the inner one of a pair goes, or the one that is folded apart. */
static uint32_t renumber(const bb_merger *m, const bb_ix_node *node, const bb_merge_site *s,
                         uint32_t *index) {
  uint32_t n = 0;
  for (uint32_t k = 0; k < node->indices; k++) {
    bool apart = s->apart != BB_NONE && (k == s->apart || s->pair[k] == s->apart);
    bool stays =
        s->pair[k] == BB_NONE || (apart ? k == s->apart : bb_merge_is_outer(m, node->dim[k]));
    index[k] = stays ? n++ : BB_NONE;
  }
  for (uint32_t k = 0; k < node->indices; k++)
    if (index[k] == BB_NONE) index[k] = index[s->pair[k]];
  return n;
}

static void merge_access(const bb_merger *m, bb_ix_node *node) {
  const bb_ix_list *axes = &m->ix->storage[node->tensor];
  bb_index *access = BB_NEW(m->ix->arena, bb_index, node->rank);
  uint32_t *pair = BB_NEW(m->attempt, uint32_t, axes->count), n = 0;
  bb_merge_pair_axes(m, axes->count, axes->at, pair);
  for (uint32_t t = 0; t < axes->count; t++) {
    if (pair[t] != BB_NONE && !bb_merge_is_outer(m, axes->at[t])) continue;
    access[n] = node->access[t];
    if (pair[t] != BB_NONE) {
      access[n].dim = bb_merge_whole(m, access[n].dim);
      access[n].start *= bb_merge_extent(m->ix, m->inner); /* of a part */
    }
    n++;
  }
  node->access = access;
  node->rank = n;
}

/* Nodes that have indices: theirs, and what they say of them. */
static void merge_node(bb_merger *m, const bb_merge_site *s) {
  bb_ix_node *node = &m->ix->node[s->node];
  const bb_ix_node old = *node;
  uint32_t *index = BB_NEW(m->attempt, uint32_t, old.indices);
  node->indices = renumber(m, &old, s, index);
  node->dim = BB_NEW(m->ix->arena, uint32_t, node->indices);
  for (uint32_t k = 0; k < old.indices; k++)
    if (s->pair[k] == BB_NONE || bb_merge_is_outer(m, old.dim[k]))
      node->dim[index[k]] = s->pair[k] == BB_NONE ? old.dim[k] : bb_merge_whole(m, old.dim[k]);
  renaming r = {m, &old, s, index};
  if (old.op == BB_IX_ELEMENTWISE)
    node->expr = bb_expr_map_leaves(m->ix->program, old.expr, rename_coordinate, &r);
  bool along = old.op == BB_IX_SCAN || old.op == BB_IX_SLICE || old.op == BB_IX_WINDOWS ||
               old.op == BB_IX_PAD || old.op == BB_IX_JOIN;
  if (along) node->at = index[old.at];
  if (old.op == BB_IX_SLICE && s->pair[old.at] != BB_NONE) /* whole parts of the axis */
    node->start *= bb_merge_extent(m->ix, m->inner);
  for (uint32_t i = 0; i < node->nin; i++) merge_operand(m, &node->in[i], s->axis[i], index);
  if (old.op == BB_IX_SOURCE) merge_access(m, node);
}

static bb_misc_port merged_port(const bb_merger *m, bb_misc_port port, const uint32_t *dim,
                                const uint32_t *pair) {
  bb_dim *axis = BB_NEW(m->ix->arena, bb_dim, port.axes);
  port.axes = merged_classes(m, port.axes, dim, pair, axis);
  port.axis = axis;
  return port;
}

/* Axes of ports are in the order of storage, those of an operand in any. */
static void merge_kernel(bb_merger *m, const bb_merge_site *s) {
  bb_ix *ix = m->ix;
  bb_ix_node *node = &ix->node[s->node];
  bb_misc *misc = BB_NEW(ix->arena, bb_misc, 1);
  *misc = *node->misc;
  bb_misc_port *in = BB_NEW(ix->arena, bb_misc_port, misc->nin),
               *out = BB_NEW(ix->arena, bb_misc_port, misc->nout);
  for (uint32_t i = 0, slot = 0; i < misc->nin; i++) {
    in[i] = misc->in[i];
    if (in[i].absent) continue;
    bb_ix_operand *operand = &node->in[slot];
    const uint32_t *axis = s->axis[slot++];
    uint32_t *dim = BB_NEW(m->attempt, uint32_t, in[i].axes), n = 0,
             *pair = BB_NEW(m->attempt, uint32_t, in[i].axes),
             *index = BB_NEW(m->attempt, uint32_t, in[i].axes);
    for (uint32_t a = 0; a < in[i].axes; a++) {
      dim[operand->index[a]] = bb_ix_axis(ix, operand->value, a);
      pair[operand->index[a]] = axis[a] == BB_NONE ? BB_NONE : operand->index[axis[a]];
    }
    for (uint32_t k = 0; k < in[i].axes; k++)
      index[k] = pair[k] == BB_NONE || bb_merge_is_outer(m, dim[k]) ? n++ : BB_NONE;
    in[i] = merged_port(m, in[i], dim, pair);
    merge_operand(m, operand, axis, index);
  }
  for (uint32_t i = 0, port = 0; i < misc->nout; i++) {
    out[i] = misc->out[i];
    if (out[i].absent) continue;
    const bb_ix_value *v = &ix->value[node->out[port++]];
    uint32_t *pair = BB_NEW(m->attempt, uint32_t, v->rank);
    bb_merge_pair_axes(m, v->rank, v->dim, pair);
    out[i] = merged_port(m, out[i], v->dim, pair);
  }
  misc->in = in, misc->out = out;
  node->misc = misc;
}

static void merge_value(bb_merger *m, uint32_t value, const bb_merge_site *s) {
  bb_ix_value *v = &m->ix->value[value];
  uint32_t *pair = BB_NEW(m->attempt, uint32_t, v->rank),
           *dim = BB_NEW(m->ix->arena, uint32_t, v->rank);
  if (s->apart != BB_NONE) {
    memcpy(dim, v->dim, v->rank * sizeof *dim);
    dim[s->apart] = bb_merge_whole(m, s->outer);
  } else {
    bb_merge_pair_axes(m, v->rank, v->dim, pair);
    v->rank = merged_classes(m, v->rank, v->dim, pair, dim);
  }
  v->dim = dim;
}

static void merge_storage(bb_merger *m, uint32_t tensor) {
  bb_ix_list *axes = &m->ix->storage[tensor];
  uint32_t *pair = BB_NEW(m->attempt, uint32_t, axes->count),
           *at = BB_NEW(m->ix->arena, uint32_t, axes->count);
  bb_merge_pair_axes(m, axes->count, axes->at, pair);
  *axes = (bb_ix_list){.count = merged_classes(m, axes->count, axes->at, pair, at), .at = at};
}

uint32_t bb_merge_split(bb_merger *m, uint32_t value, uint32_t at, uint32_t outer) {
  bb_ix *ix = m->ix;
  bb_ix_value v = ix->value[value];
  uint32_t *dim = BB_NEW(m->attempt, uint32_t, (size_t)v.rank + 1),
           *index = BB_NEW(m->attempt, uint32_t, v.rank);
  for (uint32_t a = 0; a < v.rank; a++) index[a] = a + (a > at), dim[index[a]] = v.dim[a];
  dim[at] = outer, dim[at + 1] = m->inner;
  uint32_t seen = bb_ix_add(ix, BB_IX_WINDOWS, v.name, v.dtype, 1, v.rank + 1, v.rank + 1, dim);
  bb_ix_node *windows = bb_ix_node_of(ix, seen);
  windows->at = at, windows->step = bb_merge_extent(ix, m->inner), windows->by = 1;
  bb_ix_use(ix, bb_ix_producer(ix, seen), 0, value, index);
  ix->value[seen].once = v.once;
  bb_merge_list(m, bb_ix_producer(ix, seen));
  return seen;
}

/* What a reduction folded of a pair, it folds behind what it is now, where elements of a pair lie side by side. */
static void fold_apart(bb_merger *m, const bb_merge_site *s) {
  bb_ix *ix = m->ix;
  bb_ix_node node = ix->node[s->node];
  uint32_t value = node.out[0], at = s->apart;
  bb_ix_value v = ix->value[value];
  uint32_t *dim = BB_NEW(m->attempt, uint32_t, (size_t)v.rank + 1),
           *index = BB_NEW(m->attempt, uint32_t, (size_t)v.rank + 1);
  uint32_t seen = bb_merge_split(m, value, at, s->outer);
  for (uint32_t a = 0; a < v.rank; a++) dim[a] = v.dim[a];
  dim[at] = s->keeps_outer ? s->outer : m->inner;
  dim[v.rank] = s->keeps_outer ? m->inner : s->outer;
  uint32_t made = bb_ix_add(ix, BB_IX_REDUCE, node.name, v.dtype, 1, v.rank, v.rank + 1, dim);
  bb_ix_node_of(ix, made)->monoid = node.monoid;
  for (uint32_t a = 0; a <= v.rank; a++) index[a] = a - (a > at);
  index[at + s->keeps_outer] = v.rank;
  if (!s->keeps_outer) index[at + 1] = at;
  bb_ix_use(ix, bb_ix_producer(ix, made), 0, seen, index);
  ix->value[made].once = v.once;
  bb_ix_replace(ix, value, made, bb_ix_producer(ix, seen));
  bb_merge_list(m, bb_ix_producer(ix, made));
}

/* A view of the inner one of a pair reads the pair, cut. */
static void split_operand(bb_merger *m, const bb_merge_site *s) {
  const bb_ix_operand in = m->ix->node[s->node].in[0];
  uint32_t rank = bb_ix_rank(m->ix, in.value) + 1, n = 0, outer = 0, at = 0;
  uint32_t *index = BB_NEW(m->attempt, uint32_t, rank);
  while (s->axis[0][outer] == BB_NONE || m->ix->node[s->node].at == in.index[outer]) outer++;
  uint32_t inner = s->axis[0][outer];
  for (uint32_t a = 0; a < rank; a++) {
    if (a == inner) continue;
    if (a == outer) at = n;
    index[n++] = in.index[a];
    if (a == outer) index[n++] = in.index[inner];
  }
  uint32_t seen = bb_merge_split(m, in.value, at, s->outer);
  bb_ix_unuse(m->ix, s->node, 0);
  bb_ix_use(m->ix, s->node, 0, seen, index);
}

/* What has been looked at becomes as the file's comment says: first the uses, which tell from values how these were, then values. */
void bb_merge_make(bb_merger *m) {
  bb_ix *ix = m->ix;
  uint32_t values = ix->values, *copy[BB_MERGE_OUTERS];
  for (uint32_t o = 0; o < m->outers; o++) {
    copy[o] = BB_NEW(m->attempt, uint32_t, values);
    m->whole[o] = bb_ix_class(ix, bb_extent_multiply(ix->program, bb_ix_extent(ix, m->outer[o]),
                                                     bb_ix_extent(ix, m->inner)));
  }
  bb_merge_join_operands(m);
  for (uint32_t i = 0; i < m->count; i++)
    if (ix->node[m->site[i].node].op == BB_IX_ELEMENTWISE && !m->site[i].cut)
      spread_operands(m, &m->site[i], copy, values);
  for (uint32_t i = 0; i < m->count; i++) {
    if (m->site[i].splits || m->site[i].cut) continue;
    if (ix->node[m->site[i].node].op == BB_IX_MISC)
      merge_kernel(m, &m->site[i]);
    else
      merge_node(m, &m->site[i]);
  }
  for (uint32_t i = 0; i < m->count; i++) {
    const bb_ix_node *node = &ix->node[m->site[i].node];
    if (m->site[i].splits || m->site[i].cut) continue;
    if (node->op == BB_IX_SOURCE) merge_storage(m, node->tensor);
    for (uint32_t o = 0; o < node->nout; o++) merge_value(m, node->out[o], &m->site[i]);
  }
  for (uint32_t i = 0; i < m->count; i++) {
    if (m->site[i].apart != BB_NONE) fold_apart(m, &m->site[i]);
    if (m->site[i].splits) split_operand(m, &m->site[i]);
    if (m->site[i].cut) bb_merge_split_operands(m, &m->site[i]);
    bb_merge_list(m, m->site[i].node);
  }
}
