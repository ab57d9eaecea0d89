/* compose.c - a view of views is one view of tensors.
 *
 * Each index of the outer view addresses one level of an operand, and the operand's own access says
 * which axis of which tensor that level is.  Where the operand joins pieces, the outer index selects
 * those that it meets.  What pads the operand pads what is made of it; the outer view may pad a level that is all of an
 * axis, as what is outside of one is outside of the other.
 */
#include "flow.h"

/* Part of an outer piece over one inner piece: elements first .. first + length of the joined dim
 * of the result (unused if nothing is joined), taking `taken` elements of the inner piece along
 * the level at which the operand is joined. */
typedef struct part {
  const bb_piece *outer, *inner;
  int64_t first, length, taken;
} part;

typedef struct composition {
  const bb_program *program;
  bb_arena *arena;
  const bb_access *outer;
  bb_dim joined;
  uint32_t count, capacity;
  bb_piece *piece;
} composition;

static int64_t extent_of(const bb_program *program, bb_dim dim) {
  return bb_extent_value(bb_dim_get(program, dim)->extent);
}

static int64_t floor_div(int64_t a, int64_t b) {
  int64_t q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

/* The level of `type` that axis `axis` of a piece is (of a window, dim k): the n-th over its dim for the n-th index over
 * it.  BB_NONE: the type has no such level. */
static uint32_t level_of_axis(const bb_type *type, const bb_piece *piece, uint32_t axis,
                              uint32_t k) {
  bb_dim dim = bb_index_dim(&piece->index[axis], k);
  uint32_t skip = 0;
  for (uint32_t i = 0; i < axis; i++)
    for (uint32_t n = 0; n < bb_index_dims(&piece->index[i]); n++)
      skip += bb_index_dim(&piece->index[i], n) == dim;
  for (uint32_t i = 0; i < type->rank; i++)
    if (type->level[i].dim == dim && skip-- == 0) return i;
  return BB_NONE;
}

static void progression(const bb_index *index, int64_t *start, int64_t *step) {
  *start = index->kind == BB_INDEX_DIM ? 0 : index->start;
  *step = index->kind == BB_INDEX_DIM ? 1 : index->step;
}

/* One axis: `inner` reads start + step * x for the x-th element of the level it belongs to; `outer`
 * says which x.  `base` is where the inner piece begins along that level, -1 if it is not joined
 * there; `shift` is how many elements of a joined outer index the part leaves out. */
static bb_index compose_index(const bb_index *inner, const bb_index *outer, int64_t base,
                              int64_t shift, bool whole) {
  int64_t start, step, from, by;
  progression(inner, &start, &step);
  if (base < 0) base = 0;
  if (outer->kind == BB_INDEX_FIXED)
    return (bb_index){BB_INDEX_FIXED, BB_NO_DIM, start + step * (outer->start - base), 0};
  progression(outer, &from, &by);
  bb_index index = {.kind = BB_INDEX_RANGE,
                    .dim = outer->dim,
                    .start = start + step * (from + by * shift - base),
                    .step = step * by};
  if (outer->kind == BB_INDEX_WINDOW) {
    index.kind = BB_INDEX_WINDOW;
    index.tap = outer->tap;
    index.by = step * outer->by;
  }
  if (whole && inner->kind == BB_INDEX_DIM && index.start == 0 && index.step == 1)
    index.kind = BB_INDEX_DIM;
  return index;
}

/* The same of an axis that `inner` reads in windows: outer[0] says which place, outer[1] which tap. */
static bool compose_window(const bb_index *inner, const bb_index *const *outer, bb_index *index) {
  int64_t step[2] = {inner->step, inner->by};
  *index = (bb_index){.kind = BB_INDEX_FIXED, .dim = BB_NO_DIM, .start = inner->start};
  for (uint32_t k = 0; k < 2; k++) {
    int64_t from, by;
    progression(outer[k], &from, &by);
    index->start += step[k] * from;
    if (outer[k]->kind == BB_INDEX_FIXED) continue;
    if (outer[k]->kind == BB_INDEX_WINDOW) return false; /* of three dims */
    if (index->kind == BB_INDEX_FIXED) {
      index->kind = BB_INDEX_RANGE;
      index->dim = outer[k]->dim;
      index->step = step[k] * by;
    } else {
      index->kind = BB_INDEX_WINDOW;
      index->tap = outer[k]->dim;
      index->by = step[k] * by;
    }
  }
  return true;
}

static uint32_t indices_over(const bb_piece *piece, bb_dim dim) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < piece->rank; i++)
    for (uint32_t k = 0; k < bb_index_dims(&piece->index[i]); k++)
      count += bb_index_dim(&piece->index[i], k) == dim;
  return count;
}

/* Nothing else of a piece is over the dims of its windows, or over the joined one: their order would not tell them apart. */
static bool stands_out(const bb_piece *piece, bb_dim joined) {
  if (joined != BB_NO_DIM && indices_over(piece, joined) > 1) return false;
  for (uint32_t i = 0; i < piece->rank; i++)
    for (uint32_t k = 0; piece->index[i].kind == BB_INDEX_WINDOW && k < 2; k++)
      if (indices_over(piece, bb_index_dim(&piece->index[i], k)) > 1) return false;
  return true;
}

/* May the outer piece leave a level of its operand by this index? */
static bool may_leave(const bb_piece *outer, const bb_index *index) {
  return outer->padded && index->kind != BB_INDEX_DIM;
}

static bool add_window(const composition *c, const bb_type *type, bb_dim inner_joined,
                       const part *p, uint32_t axis, bb_index *index) {
  const bb_index *inner = &p->inner->index[axis], *outer[2];
  for (uint32_t k = 0; k < 2; k++) {
    uint32_t level = level_of_axis(type, p->inner, axis, k);
    if (level == BB_NONE || level >= p->outer->rank) return false;
    outer[k] = &p->outer->index[level];
    if (inner_joined == bb_index_dim(inner, k) || may_leave(p->outer, outer[k])) return false;
    if (c->joined != BB_NO_DIM && bb_index_over(outer[k], c->joined)) return false;
  }
  return compose_window(inner, outer, index);
}

/* Indices over one dim are told apart by their order alone: it has to be that of the levels they read. */
static bool keeps_order(const bb_piece *outer, uint32_t count, const uint32_t *level) {
  for (uint32_t i = 0; i < count; i++)
    for (uint32_t j = i + 1; j < count; j++) {
      if (level[i] == BB_NONE || level[j] == BB_NONE || level[i] < level[j]) continue;
      const bb_index *a = &outer->index[level[i]], *b = &outer->index[level[j]];
      if (bb_index_meets(a, b)) return false;
    }
  return true;
}

static bool has_index_over(const bb_piece *piece, bb_dim dim) {
  for (uint32_t i = 0; i < piece->rank; i++)
    if (bb_index_over(&piece->index[i], dim)) return true;
  return false;
}

static bool add_part(composition *c, const bb_type *type, bb_dim inner_joined, part p) {
  bb_index *index = BB_NEW(c->arena, bb_index, p.inner->rank);
  uint32_t *levels = BB_NEW(c->arena, uint32_t, p.inner->rank);
  if (!stands_out(p.inner, BB_NO_DIM) || !stands_out(p.outer, BB_NO_DIM)) return false;
  if (p.inner->padded && p.outer->padded && !bb_piece_same_fill(p.inner, p.outer)) return false;
  for (uint32_t j = 0; j < p.inner->rank; j++) {
    const bb_index *inner = &p.inner->index[j];
    levels[j] = BB_NONE;
    if (inner->kind == BB_INDEX_FIXED) {
      index[j] = *inner;
      continue;
    }
    if (inner->kind == BB_INDEX_WINDOW) {
      if (!add_window(c, type, inner_joined, &p, j, &index[j])) return false;
      continue;
    }
    uint32_t level = levels[j] = level_of_axis(type, p.inner, j, 0);
    if (level == BB_NONE || level >= p.outer->rank) return false;
    const bb_index *outer = &p.outer->index[level];
    bool cut = inner_joined != BB_NO_DIM && inner->dim == inner_joined;
    int64_t shift = 0;
    if (may_leave(p.outer, outer) && (cut || inner->kind != BB_INDEX_DIM)) return false;
    if (outer->kind == BB_INDEX_WINDOW && (cut || bb_index_over(outer, c->joined))) return false;
    if (c->joined != BB_NO_DIM && outer->kind != BB_INDEX_FIXED && outer->dim == c->joined)
      shift = p.first - p.outer->first;
    bool whole = cut ? p.taken == p.inner->length : outer->kind == BB_INDEX_DIM;
    index[j] = compose_index(inner, outer, cut ? p.inner->first : -1, shift, whole);
  }
  if (!keeps_order(p.outer, p.inner->rank, levels)) return false;
  for (uint32_t i = 0; i < p.outer->rank; i++) { /* what nothing follows has no outside */
    bool followed = !may_leave(p.outer, &p.outer->index[i]);
    for (uint32_t j = 0; j < p.inner->rank; j++) followed |= levels[j] == i;
    if (!followed) return false;
  }
  const bb_piece made = {.source = p.inner->source,
                         .rank = p.inner->rank,
                         .index = index,
                         .first = p.first,
                         .length = p.length,
                         .padded = p.inner->padded || p.outer->padded,
                         .fill = p.outer->padded ? p.outer->fill : p.inner->fill};
  if (!stands_out(&made, c->joined)) return false;
  BB_GROW(c->arena, c->piece, c->capacity, (size_t)c->count + 1);
  c->piece[c->count++] = made;
  return true;
}

/* The outer piece selects one element of the level along which the operand is joined. */
static bool take_fixed(composition *c, const bb_type *type, const bb_piece *outer,
                       const bb_access *inner, int64_t at) {
  for (uint32_t q = 0; q < inner->count; q++) {
    const bb_piece *piece = &inner->piece[q];
    if (at < piece->first || at >= piece->first + piece->length) continue;
    return add_part(c, type, inner->joined, (part){outer, piece, outer->first, outer->length, 1});
  }
  return false;
}

/* The outer piece runs over the level along which the operand is joined: one part for each inner
 * piece that it meets. */
static bool take_run(composition *c, const bb_type *type, const bb_piece *outer,
                     const bb_access *inner, const bb_index *index) {
  int64_t from, by, count, offset = 0;
  progression(index, &from, &by);
  count = extent_of(c->program, index->dim);
  if (c->outer->joined == index->dim) count = outer->length, offset = outer->first;
  if (count < 0) return false;
  for (uint32_t q = 0; q < inner->count; q++) {
    const bb_piece *piece = &inner->piece[q];
    int64_t first = piece->first, last = first + piece->length - 1, low, high;
    low = by > 0 ? -floor_div(from - first, by) : -floor_div(last - from, -by);
    high = by > 0 ? floor_div(last - from, by) : floor_div(from - first, -by);
    if (low < 0) low = 0;
    if (high > count - 1) high = count - 1;
    if (low > high) continue;
    /* A list of one element stays one, though nothing else is joined to it. */
    bool all = low == 0 && high == count - 1 && has_index_over(piece, inner->joined);
    if (!all && c->joined != index->dim) {
      if (c->joined != BB_NO_DIM) return false;
      c->joined = index->dim;
    }
    part p = {outer, piece, outer->first, outer->length, high - low + 1};
    if (c->joined == index->dim) p.first = offset + low, p.length = p.taken;
    if (!add_part(c, type, inner->joined, p)) return false;
  }
  return true;
}

static bool add_piece(composition *c, const bb_piece *outer, const bb_type *type,
                      const bb_access *inner) {
  if (inner->joined == BB_NO_DIM)
    return add_part(c, type, BB_NO_DIM,
                    (part){outer, &inner->piece[0], outer->first, outer->length, 0});
  /* what overlapping windows see, brought together, is several times what is joined */
  if (bb_piece_has_windows(outer) || outer->padded) return false;
  uint32_t level = BB_NONE;
  for (uint32_t i = 0; i < type->rank; i++) {
    if (type->level[i].dim != inner->joined) continue;
    if (level != BB_NONE) return false;
    level = i;
  }
  if (level == BB_NONE || level >= outer->rank) return false;
  const bb_index *index = &outer->index[level];
  if (index->kind == BB_INDEX_FIXED) return take_fixed(c, type, outer, inner, index->start);
  return take_run(c, type, outer, inner, index);
}

static void sort_pieces(bb_piece *piece, uint32_t count) {
  for (uint32_t i = 1; i < count; i++) {
    bb_piece key = piece[i];
    uint32_t j = i;
    for (; j > 0 && piece[j - 1].first > key.first; j--) piece[j] = piece[j - 1];
    piece[j] = key;
  }
}

const bb_access *bb_access_compose(const bb_program *program, bb_arena *arena,
                                   const bb_access *outer, const bb_type *const *type,
                                   const bb_access *const *inner) {
  composition c = {.program = program, .arena = arena, .outer = outer, .joined = outer->joined};
  for (uint32_t p = 0; p < outer->count; p++) {
    const bb_piece *piece = &outer->piece[p];
    if (!add_piece(&c, piece, type[piece->source], inner[piece->source])) return NULL;
  }
  if (c.joined != BB_NO_DIM) sort_pieces(c.piece, c.count);
  if (c.count == 0) return NULL;
  /* One piece joins nothing, but where it is an element. */
  if (c.count == 1 && c.piece[0].first == 0 && has_index_over(&c.piece[0], c.joined))
    c.joined = BB_NO_DIM;
  bb_access *access = BB_NEW(arena, bb_access, 1);
  *access = (bb_access){.joined = c.joined, .count = c.count, .piece = c.piece};
  return access;
}
