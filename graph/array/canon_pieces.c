/* canon_pieces.c - rules on slices and joins: a slice moves towards the inputs, where it is an
 * access; a regular join (pack) moves towards the outputs by unrolling what stands after it, until a
 * product sums over the joined axis: then it is a sum of products.  So rotary embeddings, split
 * heads and packed projections need no copy.
 */
#include "canon.h"

#include <string.h>

/* Part of an index: a range with a class of its own, or (class BB_NONE) one element. */
typedef struct part {
  uint32_t class;
  int64_t start, step, length;
} part;

static part part_of_slice(const bb_canon *c, uint32_t slice) {
  const bb_ix_node *node = &c->ix->node[slice];
  bool keeps = node->at < bb_ix_rank(c->ix, node->out[0]);
  part p = {.class = BB_NONE, .start = node->start, .step = node->step, .length = 1};
  if (keeps) {
    p.class = bb_ix_find(c->ix, node->dim[node->at]);
    p.length = bb_extent_value(c->ix->dim[p.class].extent);
  }
  return p;
}

/* The slice of a value along its axis `axis`; other axes keep their order. */
static uint32_t slice_value(bb_canon *c, uint32_t value, uint32_t axis, const part *p) {
  bb_ix *ix = c->ix;
  bb_ix_value v = ix->value[value];
  uint32_t *dim = BB_NEW(c->scratch, uint32_t, (size_t)v.rank + 1),
           *index = BB_NEW(c->scratch, uint32_t, v.rank), rank = 0, indices;
  for (uint32_t a = 0; a < v.rank; a++) {
    if (a == axis && p->class == BB_NONE) continue;
    index[a] = rank;
    dim[rank++] = a == axis ? p->class : v.dim[a];
  }
  indices = rank;
  if (p->class == BB_NONE) {
    index[axis] = rank;
    dim[indices++] = bb_ix_class(ix, bb_extent_number(ix->program, 1));
  }
  uint32_t out = bb_ix_add(ix, BB_IX_SLICE, v.name, v.dtype, 1, rank, indices, dim);
  bb_ix_node *node = bb_ix_node_of(ix, out);
  node->at = index[axis], node->start = p->start, node->step = p->step;
  bb_ix_use(ix, ix->value[out].node, 0, value, index);
  ix->value[out].once = v.once;
  bb_canon_queue_around(c, ix->value[out].node);
  return out;
}

/* --- a node on part of an index --- */

typedef struct shifting {
  bb_canon *c;
  uint32_t index;
  const part *part;
} shifting;

/* Coordinates along the index count from the part's start; those beyond a dropped index move. */
static const bb_expr *shift_coordinate(void *user, const bb_expr *leaf) {
  const shifting *s = user;
  bb_program *p = s->c->program;
  if (leaf->op != BB_X_COORD || leaf->index < BB_COORD_AXIS) return leaf;
  uint32_t index = leaf->index - BB_COORD_AXIS;
  bool drop = s->part->class == BB_NONE;
  if (index > s->index && drop) return bb_expr_coord(p, BB_COORD_AXIS + index - 1);
  if (index != s->index) return leaf;
  const bb_expr *start = bb_expr_const(p, BB_I64, (double)s->part->start);
  if (drop) return start;
  const bb_expr *step = bb_expr_const(p, BB_I64, (double)s->part->step);
  const bb_expr *along = bb_expr_make(p, BB_X_MUL, leaf, step, NULL);
  return s->part->start ? bb_expr_make(p, BB_X_ADD, along, start, NULL) : along;
}

/* The operand restricted to the part, renumbered when the index is dropped. */
static bb_term restrict_term(bb_canon *c, const bb_term *in, uint32_t index, const part *p) {
  uint32_t axis = BB_NONE, rank = bb_ix_rank(c->ix, in->value), n = 0;
  bool drop = p->class == BB_NONE;
  uint32_t *out = BB_NEW(c->scratch, uint32_t, rank);
  for (uint32_t a = 0; a < rank; a++) {
    if (in->index[a] == index) axis = a;
    if (in->index[a] == index && drop) continue;
    out[n++] = in->index[a] - (drop && in->index[a] > index);
  }
  uint32_t value = axis == BB_NONE ? in->value : slice_value(c, in->value, axis, p);
  return (bb_term){value, out};
}

/* A copy of an elementwise, contraction or reduction node on part of index k, which no other part
 * of the node sums over unless `summed`.  given[i], if any, is operand i on that part. */
static uint32_t copy_on_part(bb_canon *c, uint32_t at, uint32_t k, const part *p,
                             const bb_term *given) {
  bb_ix *ix = c->ix;
  const bb_ix_node node = ix->node[at];
  uint32_t rank = bb_ix_rank(c->ix, node.out[0]), n = 0;
  bool drop = p->class == BB_NONE;
  uint32_t *dim = BB_NEW(c->scratch, uint32_t, node.indices);
  bb_term *in = BB_NEW(c->scratch, bb_term, node.nin);
  bb_dtype dtype = ix->value[node.out[0]].dtype;
  for (uint32_t i = 0; i < node.indices; i++)
    if (i != k || !drop) dim[n++] = i == k ? p->class : node.dim[i];
  for (uint32_t i = 0; i < node.nin; i++) {
    bb_term term = bb_canon_term(c, at, i);
    in[i] = given && given[i].index ? given[i] : restrict_term(c, &term, k, p);
  }
  if (k < rank && drop) rank--;
  shifting s = {c, k, p};
  if (node.op == BB_IX_ELEMENTWISE) {
    const bb_expr *expr = bb_expr_map_leaves(c->program, node.expr, shift_coordinate, &s);
    return bb_canon_elementwise(c, node.name, expr, n, dim, node.nin, in);
  }
  if (node.op == BB_IX_CONTRACT) {
    if (n == rank) { /* nothing is summed any more */
      const bb_expr *product = bb_expr_make(c->program, BB_X_MUL, bb_expr_arg(c->program, dtype, 0),
                                            bb_expr_arg(c->program, dtype, 1), NULL);
      return bb_canon_elementwise(c, node.name, product, n, dim, 2, in);
    }
    return bb_canon_contract(c, node.name, dtype, rank, n, dim, in);
  }
  uint32_t out = bb_ix_add(ix, node.op, node.name, dtype, 1, rank, n, dim);
  bb_ix_node_of(ix, out)->monoid = node.monoid;
  bb_ix_use(ix, bb_ix_producer(ix, out), 0, in[0].value, in[0].index);
  ix->value[out].once = ix->value[in[0].value].once;
  bb_canon_queue_around(c, bb_ix_producer(ix, out));
  return out;
}

/* --- slices --- */

/* A slice of an input is the input through another access. */
bool bb_rule_slice_source(bb_canon *c, uint32_t at) {
  bb_ix *ix = c->ix;
  const bb_ix_node node = ix->node[at];
  if (node.op != BB_IX_SLICE) return false;
  uint32_t value = node.in[0].value;
  const bb_ix_node source = *bb_ix_node_of(ix, value);
  if (source.op != BB_IX_SOURCE) return false;
  part p = part_of_slice(c, at);
  uint32_t rank = bb_ix_rank(c->ix, value), n = 0;
  uint32_t *dim = BB_NEW(c->scratch, uint32_t, rank), *map = BB_NEW(c->scratch, uint32_t, rank);
  bb_index *access = BB_NEW(ix->arena, bb_index, source.rank);
  for (uint32_t t = 0, a = 0; t < source.rank; t++) {
    access[t] = source.access[t];
    if (access[t].kind == BB_INDEX_FIXED) continue;
    bool cut = node.in[0].index[a] == node.at;
    if (cut) {
      int64_t start = access[t].kind == BB_INDEX_RANGE ? access[t].start : 0,
              step = access[t].kind == BB_INDEX_RANGE ? access[t].step : 1;
      access[t].kind = p.class == BB_NONE ? BB_INDEX_FIXED : BB_INDEX_RANGE;
      access[t].start = start + p.start * step;
      access[t].step = p.class == BB_NONE ? 1 : step * p.step;
      if (p.class != BB_NONE) access[t].dim = p.class;
    }
    if (!cut || p.class != BB_NONE) {
      dim[n] = cut ? p.class : ix->value[value].dim[a];
      map[n++] = node.in[0].index[a];
    }
    a++;
  }
  uint32_t out = bb_ix_add(ix, BB_IX_SOURCE, source.name, ix->value[value].dtype, 0, n, n, dim);
  bb_ix_node *made = bb_ix_node_of(ix, out);
  made->tensor = source.tensor, made->rank = source.rank, made->access = access;
  ix->value[out].once = ix->value[value].once;
  bb_canon_replace(c, node.out[0], out, map, BB_NONE);
  return true;
}

/* A slice of a slice along the same axis is one slice. */
bool bb_rule_slice_slice(bb_canon *c, uint32_t at) {
  bb_ix *ix = c->ix;
  if (ix->node[at].op != BB_IX_SLICE) return false;
  uint32_t inner = bb_canon_maker(c, at, 0, BB_IX_SLICE);
  if (inner == BB_NONE) return false;
  const bb_ix_node node = ix->node[at], from = ix->node[inner];
  uint32_t axis = bb_canon_axis_of(c, at, 0, node.at);
  if (axis != from.at) return false;
  part p = part_of_slice(c, at);
  p.start = from.start + p.start * from.step;
  p.step *= from.step;
  uint32_t value = from.in[0].value, cut = bb_canon_axis_of(c, inner, 0, from.at);
  uint32_t out = slice_value(c, value, cut, &p), rank = bb_ix_rank(c->ix, value), n = 0;
  uint32_t *map = BB_NEW(c->scratch, uint32_t, rank);
  for (uint32_t a = 0; a < rank; a++)
    if (a != cut || p.class != BB_NONE) map[n++] = node.in[0].index[from.in[0].index[a]];
  bb_canon_replace(c, node.out[0], out, map, BB_NONE);
  return true;
}

static int64_t length_of_piece(const bb_canon *c, uint32_t join, uint32_t slot) {
  uint32_t axis = bb_canon_axis_of(c, join, slot, c->ix->node[join].at);
  if (axis == BB_NONE) return 1;
  return bb_extent_value(
      bb_ix_extent(c->ix, bb_ix_axis(c->ix, c->ix->node[join].in[slot].value, axis)));
}

/* A slice that lies in one piece of a join is a slice of the piece, or the piece. */
bool bb_rule_slice_join(bb_canon *c, uint32_t at) {
  bb_ix *ix = c->ix;
  const bb_ix_node node = ix->node[at];
  if (node.op != BB_IX_SLICE || node.step < 1) return false;
  uint32_t join = bb_canon_maker(c, at, 0, BB_IX_JOIN);
  if (join == BB_NONE || bb_canon_axis_of(c, at, 0, node.at) != ix->node[join].at) return false;
  part p = part_of_slice(c, at);
  int64_t first = 0, length = 0;
  uint32_t slot = 0, last = ix->node[join].nin;
  for (; slot < last; slot++, first += length) {
    length = length_of_piece(c, join, slot);
    if (length < 0) return false;
    if (p.start >= first && p.start + (p.length - 1) * p.step < first + length) break;
  }
  if (slot == last) return false;
  bb_term piece = bb_canon_term(c, join, slot);
  uint32_t axis = bb_canon_axis_of(c, join, slot, ix->node[join].at);
  if (axis == BB_NONE && p.class != BB_NONE) return false;
  uint32_t rank = bb_ix_rank(c->ix, piece.value), value = piece.value, n = 0;
  if (rank + (axis == BB_NONE) != bb_ix_rank(c->ix, ix->node[join].out[0])) return false;
  bool whole = axis == BB_NONE || (p.class != BB_NONE && p.step == 1 && p.length == length);
  uint32_t *map = BB_NEW(c->scratch, uint32_t, rank);
  for (uint32_t a = 0; a < rank; a++)
    if (a != axis || p.class != BB_NONE) map[n++] = node.in[0].index[piece.index[a]];
  if (whole && axis != BB_NONE) bb_ix_unite(ix, bb_ix_axis(ix, value, axis), p.class);
  p.start -= first;
  if (!whole) value = slice_value(c, value, axis, &p);
  bb_canon_replace(c, node.out[0], value, map, BB_NONE);
  return true;
}

/* Are all uses of a value slices along one axis that together take no more than the whole? */
static bool only_sliced(const bb_canon *c, uint32_t value, uint32_t axis) {
  int64_t seen[64][3], total = 0;
  uint32_t count = 0;
  if (c->ix->value[value].uses > 64) return false;
  BB_IX_EACH_USE(c->ix, value, user, slot) {
    const bb_ix_node *node = &c->ix->node[user];
    if (node->op != BB_IX_SLICE || bb_canon_axis_of(c, user, slot, node->at) != axis) return false;
    part p = part_of_slice(c, user);
    bool known = false;
    for (uint32_t i = 0; i < count; i++)
      known |= seen[i][0] == p.start && seen[i][1] == p.step && seen[i][2] == p.length;
    if (known) continue;
    seen[count][0] = p.start, seen[count][1] = p.step, seen[count++][2] = p.length;
    total += p.length;
  }
  int64_t extent = bb_extent_value(bb_ix_extent(c->ix, bb_ix_axis(c->ix, value, axis)));
  return extent < 0 || total <= extent;
}

/* Are all uses of a value slices that one join puts together again?  It is better made at once. */
static bool joined_again(const bb_canon *c, uint32_t value) {
  uint32_t join = BB_NONE;
  if (c->ix->value[value].uses < 2) return false;
  BB_IX_EACH_USE(c->ix, value, user, slot) {
    if (c->ix->node[user].op != BB_IX_SLICE) return false;
    BB_IX_EACH_USE(c->ix, c->ix->node[user].out[0], other, place) {
      if (c->ix->node[other].op != BB_IX_JOIN || (join != BB_NONE && other != join)) return false;
      join = other;
    }
  }
  return join != BB_NONE;
}

/* slice(f(x, y)) -> f(slice x, slice y), where no element is computed twice. */
bool bb_rule_slice_up(bb_canon *c, uint32_t at) {
  bb_ix *ix = c->ix;
  const bb_ix_node node = ix->node[at];
  if (node.op != BB_IX_SLICE) return false;
  uint32_t value = node.in[0].value, maker = bb_ix_producer(ix, value);
  bb_ix_op op = ix->node[maker].op;
  if (op != BB_IX_ELEMENTWISE && op != BB_IX_CONTRACT && op != BB_IX_REDUCE) return false;
  uint32_t axis = bb_canon_axis_of(c, at, 0, node.at);
  if (!only_sliced(c, value, axis) || joined_again(c, value)) return false;
  part p = part_of_slice(c, at);
  uint32_t out = copy_on_part(c, maker, axis, &p, NULL), rank = bb_ix_rank(c->ix, value), n = 0;
  uint32_t *map = BB_NEW(c->scratch, uint32_t, rank);
  for (uint32_t a = 0; a < rank; a++)
    if (a != axis || p.class != BB_NONE) map[n++] = node.in[0].index[a];
  bb_canon_replace(c, node.out[0], out, map, BB_NONE);
  return true;
}

/* --- joins --- */

/* The pieces of a join that all have one length, at most 16 of them. */
static int64_t regular_length(const bb_canon *c, uint32_t join) {
  const bb_ix_node *node = &c->ix->node[join];
  if (node->nin < 2 || node->nin > 16) return -1;
  int64_t length = length_of_piece(c, join, 0);
  for (uint32_t i = 0; i < node->nin; i++) {
    uint32_t axis = bb_canon_axis_of(c, join, i, node->at);
    if (length_of_piece(c, join, i) != length || (axis == BB_NONE) != (length == 1)) return -1;
  }
  return length;
}

/* A join among the operands of a node: its slot, and the node's index that it joins. */
static uint32_t find_join(const bb_canon *c, uint32_t at, uint32_t *index) {
  const bb_ix_node *node = &c->ix->node[at];
  for (uint32_t i = 0; i < node->nin; i++) {
    uint32_t join = bb_canon_maker(c, at, i, BB_IX_JOIN);
    if (join == BB_NONE || regular_length(c, join) < 1) continue;
    *index = node->in[i].index[c->ix->node[join].at];
    return i;
  }
  return BB_NONE;
}

static part part_of_piece(const bb_canon *c, uint32_t join, uint32_t slot) {
  uint32_t axis = bb_canon_axis_of(c, join, slot, c->ix->node[join].at);
  part p = {.class = BB_NONE, .step = 1, .length = length_of_piece(c, join, slot)};
  if (axis != BB_NONE) p.class = bb_ix_axis(c->ix, c->ix->node[join].in[slot].value, axis);
  p.start = p.length * slot;
  return p;
}

/* The node on piece `number` of its index k: operands that are joined alike give their pieces, the
 * others are sliced. */
static uint32_t copy_on_piece(bb_canon *c, uint32_t at, uint32_t k, uint32_t join,
                              uint32_t number) {
  bb_ix *ix = c->ix;
  uint32_t nin = ix->node[at].nin, count = ix->node[join].nin;
  part p = part_of_piece(c, join, number);
  bb_term *given = BB_NEW(c->scratch, bb_term, nin);
  for (uint32_t i = 0; i < nin; i++) {
    uint32_t other = bb_canon_maker(c, at, i, BB_IX_JOIN);
    if (other == BB_NONE || ix->node[other].nin != count ||
        ix->node[at].in[i].index[ix->node[other].at] != k || regular_length(c, other) != p.length)
      continue;
    bb_term piece = bb_canon_term(c, other, number);
    const uint32_t *outer = ix->node[at].in[i].index;
    uint32_t rank = bb_ix_rank(c->ix, piece.value), *index = BB_NEW(c->scratch, uint32_t, rank);
    for (uint32_t a = 0; a < rank; a++) {
      index[a] = outer[piece.index[a]];
      if (index[a] == k) bb_ix_unite(ix, p.class, bb_ix_axis(ix, piece.value, a));
      if (p.class == BB_NONE && index[a] > k) index[a]--;
    }
    given[i] = (bb_term){piece.value, index};
  }
  if (p.class != BB_NONE) p.class = bb_ix_find(ix, p.class);
  return copy_on_part(c, at, k, &p, given);
}

/* f(join(x, y), z) -> join(f(x, z), f(y, z)) */
bool bb_rule_join_down(bb_canon *c, uint32_t at) {
  bb_ix *ix = c->ix;
  const bb_ix_node node = ix->node[at];
  if (node.op != BB_IX_ELEMENTWISE) return false;
  uint32_t k, slot = find_join(c, at, &k);
  if (slot == BB_NONE) return false;
  uint32_t join = bb_ix_producer(ix, node.in[slot].value), count = ix->node[join].nin;
  uint32_t *piece = BB_NEW(c->scratch, uint32_t, count);
  for (uint32_t i = 0; i < count; i++) piece[i] = copy_on_piece(c, at, k, join, i);
  uint32_t out = bb_ix_add(ix, BB_IX_JOIN, node.name, ix->value[node.out[0]].dtype, count,
                           node.indices, node.indices, node.dim);
  uint32_t made = bb_ix_producer(ix, out);
  ix->node[made].at = k;
  uint32_t *index = BB_NEW(c->scratch, uint32_t, node.indices), n = 0;
  bool drop = bb_ix_rank(c->ix, piece[0]) < node.indices;
  for (uint32_t a = 0; a < node.indices; a++)
    if (a != k || !drop) index[n++] = a;
  for (uint32_t i = 0; i < count; i++) bb_ix_use(ix, made, i, piece[i], index);
  ix->value[out].once = ix->value[node.out[0]].once;
  bb_canon_queue_around(c, made);
  bb_canon_replace(c, node.out[0], out, NULL, BB_NONE);
  return true;
}

/* A product summed over a joined axis is the sum of the products of the pieces. */
bool bb_rule_join_contract(bb_canon *c, uint32_t at) {
  bb_ix *ix = c->ix;
  const bb_ix_node node = ix->node[at];
  if (node.op != BB_IX_CONTRACT) return false;
  uint32_t k, slot = find_join(c, at, &k), rank = bb_ix_rank(c->ix, node.out[0]);
  if (slot == BB_NONE || k < rank) return false;
  bb_dtype dtype = ix->value[node.out[0]].dtype;
  uint32_t join = bb_ix_producer(ix, node.in[slot].value), count = ix->node[join].nin;
  uint32_t *straight = BB_NEW(c->scratch, uint32_t, rank), sum = BB_NONE;
  for (uint32_t a = 0; a < rank; a++) straight[a] = a;
  const bb_expr *add = bb_expr_make(c->program, BB_X_ADD, bb_expr_arg(c->program, dtype, 0),
                                    bb_expr_arg(c->program, dtype, 1), NULL);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t product = copy_on_piece(c, at, k, join, i);
    bb_term in[2] = {{sum, straight}, {product, straight}};
    sum = i ? bb_canon_elementwise(c, node.name, add, rank, node.dim, 2, in) : product;
  }
  bb_canon_replace(c, node.out[0], sum, NULL, BB_NONE);
  return true;
}
