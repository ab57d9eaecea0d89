/* emit_c_axes.c - which axes of tiles are one axis, and of which the elements know each other.
 *
 * Statements that work element by element, and products, tie axes of their operands to those of their results: such
 * axes are a class.  What is folded, contracted or transposed along an axis makes its elements known to each other;
 * along any other a program does the same for each element, and what one holds never reaches another.
 */
#include "emit_c_parts.h"
#include "tile_edit.h"

typedef struct finder {
  bb_c_axes axes;
  const bb_tile_program *p;
} finder;

uint32_t bb_c_axis(const bb_c_axes *axes, uint32_t axis) {
  uint32_t *parent = axes->parent;
  while (parent[axis] != axis) axis = parent[axis] = parent[parent[axis]];
  return axis;
}

uint32_t bb_c_axis_size(const bb_tile_program *p, uint32_t axis) {
  return axis % 2 ? p->tile[axis / 2].cols : p->tile[axis / 2].rows;
}

void bb_c_axes_unite(bb_c_axes *axes, uint32_t a, uint32_t b) {
  uint32_t from = bb_c_axis(axes, a), to = bb_c_axis(axes, b);
  axes->parent[from] = to;
  axes->together[to] |= axes->together[from];
}

static uint32_t find(const finder *f, uint32_t axis) {
  return bb_c_axis(&f->axes, axis);
}

static void unite(finder *f, uint32_t a, uint32_t b) {
  if (bb_c_axis_size(f->p, a) && bb_c_axis_size(f->p, b)) f->axes.parent[find(f, a)] = find(f, b);
}

static void unite_axes(void *user, bb_tile_body *body, uint32_t at) {
  finder *f = user;
  const bb_tile_stmt *s = body->stmt[at];
  uint32_t to = 2 * s->result;
  switch (s->kind) {
  case BB_TILE_MAP:
  case BB_TILE_SCAN:
  case BB_TILE_FOLD:
    for (uint32_t i = 0; i < s->operands; i++)
      for (uint32_t k = 0; k < 2; k++) unite(f, to + k, 2 * s->operand[i] + k);
    return;
  case BB_TILE_DOT: {
    uint32_t a = 2 * s->operand[0], b = 2 * s->operand[1], ta = s->transposed[0],
             tb = s->transposed[1];
    unite(f, to, a + ta);
    unite(f, to + 1, b + !tb);
    unite(f, a + !ta, b + tb);
    return;
  }
  default: return;
  }
}

static void note(finder *f, uint32_t axis) {
  f->axes.together[find(f, axis)] = true;
}

static void note_both(finder *f, uint32_t tile) {
  note(f, 2 * tile);
  note(f, 2 * tile + 1);
}

static void note_together(void *user, bb_tile_body *body, uint32_t at) {
  finder *f = user;
  const bb_tile_stmt *s = body->stmt[at];
  bool all = s->kind == BB_TILE_ANY || s->kind == BB_TILE_TRANSPOSE || s->second != BB_NONE;
  for (uint32_t i = 0; i < s->operands && all; i++) note_both(f, s->operand[i]);
  if (all && s->result != BB_NONE) note_both(f, s->result);
  if (s->kind == BB_TILE_FOLD || s->kind == BB_TILE_SCAN)
    note(f, 2 * s->operand[0] + (s->axis == BB_AXIS_COL));
  if (s->kind == BB_TILE_DOT) note(f, 2 * s->operand[0] + !s->transposed[0]);
  if (s->kind == BB_TILE_LOAD && f->p->view[s->view].panels) note_both(f, s->result);
  for (uint32_t i = 0; s->loop && s->loop->merge && i < s->loop->merge->components; i++)
    note_both(f, s->loop->merged[i]);
}

bb_c_axes bb_c_axes_find(bb_arena *arena, const bb_tile_program *p) {
  uint32_t count = 2 * p->tiles;
  finder f = {{BB_NEW(arena, uint32_t, count + 2), BB_NEW(arena, bool, count + 2)}, p};
  bb_tile_body body = p->body;
  for (uint32_t i = 0; i < count; i++) f.axes.parent[i] = i;
  bb_tile_walk(&body, unite_axes, &f);
  bb_tile_walk(&body, note_together, &f);
  for (uint32_t t = 0; t < p->tiles; t++)
    if (p->tile[t].rows && p->tile[t].cols && find(&f, 2 * t) == find(&f, 2 * t + 1))
      note(&f, 2 * t);
  return f.axes;
}
