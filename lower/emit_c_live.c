/* emit_c_live.c - rows and columns that are not there are not computed.
 *
 * A block at the end of a run-time extent, or larger than all of it, has elements beyond.  Along an axis whose elements do
 * not know each other (emit_c_axes.c) they reach nothing that is stored; so statements stop where the extent does.  What
 * stands beyond in a tile is whatever its memory held.
 *
 * That holds for a class of axes if all that is loaded and stored along it begins and ends in the same place, which is
 * known wherever one of its tiles is touched.  Memory of the kernel itself that has as many elements as a block is no
 * such place: what is stored there along an axis and what is loaded are one class.
 */
#include "emit_c_parts.h"
#include "tile_edit.h"

typedef struct finder {
  bb_c *c;
  bool *open;  /* by variable: it is known */
  bool places; /* the first walk: where classes begin and end */
  uint32_t *
      block; /* by view and axis of it: an axis of the tiles that are there whole; BB_NONE: there is none yet */
} finder;

static bb_c_live *live_of(const bb_c *c, uint32_t axis) {
  return &c->live[bb_c_axis(&c->axes, axis)];
}

/* All there is along an axis of a list of the kernel's own. */
static bool is_block(const bb_tile_view *view, const bb_tile_range *r, uint32_t axis) {
  bb_tile_index extent = view->extent[axis];
  return view->scratch && !view->panels && r->start->op == BB_X_CONST && r->start->number == 0 &&
         extent->op == BB_X_CONST && extent->number == r->size;
}

static void unite_blocks(finder *f, const bb_tile_body *body) {
  bb_c *c = f->c;
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    unite_blocks(f, &s->body);
    if (s->loop) unite_blocks(f, &s->loop->body);
    if (s->kind != BB_TILE_LOAD && s->kind != BB_TILE_STORE) continue;
    uint32_t tile = s->kind == BB_TILE_STORE ? s->operand[0] : s->result;
    for (uint32_t k = 0; k < c->p->view[s->view].rank; k++) {
      const bb_tile_range *r = &s->range[k];
      uint32_t axis = 2 * tile + (r->axis == BB_AXIS_COL),
               *at = &f->block[s->view * BB_TILE_RANK + k];
      if (!r->size || !is_block(&c->p->view[s->view], r, k) ||
          r->size != bb_c_axis_size(c->p, axis))
        continue;
      if (*at != BB_NONE) bb_c_axes_unite(&c->axes, axis, *at);
      *at = axis;
    }
  }
}

static void note_ranges(finder *f, const bb_tile_stmt *s) {
  const bb_tile_program *p = f->c->p;
  uint32_t tile = s->kind == BB_TILE_STORE ? s->operand[0] : s->result;
  const bb_tile_view *view = &p->view[s->view];
  for (uint32_t i = 0; i < view->rank; i++) {
    const bb_tile_range *r = &s->range[i];
    uint32_t axis = 2 * tile + (r->axis == BB_AXIS_COL);
    if (!r->size || (is_block(view, r, i) && r->size == bb_c_axis_size(p, axis))) continue;
    bb_c_live *l = live_of(f->c, axis);
    if (view->padded && r->size == bb_c_axis_size(p, axis)) continue; /* its fill is everywhere */
    l->never |= view->panels || view->padded || r->size != bb_c_axis_size(p, axis) ||
                (l->start && (l->start != r->start || l->extent != view->extent[i]));
    l->start = r->start;
    l->extent = view->extent[i];
  }
}

/* Is the place where the class begins known here? */
static void ask_tile(finder *f, uint32_t tile) {
  for (uint32_t k = 0; tile != BB_NONE && k < 2; k++) {
    bb_c_live *l = live_of(f->c, 2 * tile + k);
    if (!l->start || !bb_c_axis_size(f->c->p, 2 * tile + k)) continue;
    for (uint32_t v = f->c->p->extents; v < f->c->p->variables; v++)
      l->never |= !f->open[v] && bb_expr_uses_arg(l->start, v);
  }
}

static void walk(finder *f, const bb_tile_body *body) {
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    bool moves = s->kind == BB_TILE_LOAD || s->kind == BB_TILE_STORE;
    if (f->places && moves) note_ranges(f, s);
    if (!f->places) {
      ask_tile(f, s->result);
      ask_tile(f, s->second);
      for (uint32_t k = 0; k < s->operands; k++) ask_tile(f, s->operand[k]);
    }
    walk(f, &s->body);
    if (!s->loop) continue;
    f->open[s->loop->variable] = true;
    walk(f, &s->loop->body);
    f->open[s->loop->variable] = false;
  }
}

/* Blocks divide it: there is nothing beyond. */
static bool is_even(bb_tile_index extent, uint32_t size) {
  return extent->op == BB_X_CONST && (int64_t)extent->number % size == 0;
}

void bb_c_find_live(bb_c *c) {
  bb_arena *arena = c->out->arena;
  uint32_t axes = 2 * c->p->tiles;
  c->axes = bb_c_axes_find(arena, c->p);
  c->live = BB_NEW(arena, bb_c_live, axes + 1);
  finder f = {c, BB_NEW(arena, bool, c->p->variables + 1), true,
              BB_NEW(arena, uint32_t, c->p->views * BB_TILE_RANK + 1)};
  for (uint32_t i = 0; i < c->p->views * BB_TILE_RANK; i++) f.block[i] = BB_NONE;
  unite_blocks(&f, &c->p->body);
  walk(&f, &c->p->body);
  f.places = false;
  walk(&f, &c->p->body);
  for (uint32_t a = 0; a < axes; a++) {
    bb_c_live *l = &c->live[a];
    uint32_t size = bb_c_axis_size(c->p, a);
    l->is = l->start && !l->never && !c->axes.together[a] && size && !is_even(l->extent, size);
  }
}

/* Of the class that ends in the strip at hand? */
static bool ends(const bb_c *c, uint32_t axis) {
  return c->ends && bb_c_axis(&c->axes, axis) == bb_c_axis(&c->axes, 2 * c->strips.ends.tile + 1);
}

/* Of two strips at once all rows are there. */
static bool is_whole_strip(const bb_c *c, const bb_c_live *l) {
  return c->pair && l->start && bb_expr_uses_arg(l->start, c->strips.variable);
}

bool bb_c_is_live(const bb_c *c, uint32_t tile, bb_axis axis) {
  uint32_t a = 2 * tile + (axis == BB_AXIS_COL);
  if (bb_c_axis_size(c->p, a) && ends(c, a)) return true;
  return bb_c_axis_size(c->p, a) && live_of(c, a)->is && !is_whole_strip(c, live_of(c, a));
}

bool bb_c_has_end(const bb_c *c, uint32_t tile, bb_axis axis) {
  uint32_t a = 2 * tile + (axis == BB_AXIS_COL);
  return bb_c_axis_size(c->p, a) && ends(c, a);
}

static const char *count_of(bb_c *c, bb_tile_index start, bb_tile_index extent, uint32_t size) {
  return bb_arena_printf(c->out->arena, "bb_clip(%s, %u, %s)", bb_c_index(c, start), size,
                         bb_c_index(c, extent));
}

/* Where something begins in the strip at hand, or in the next one. */
static bb_tile_index in_strip(const bb_c *c, bb_tile_index index, bool next) {
  bb_program *home = c->p->home;
  if (!next) return index;
  bb_tile_index at = bb_expr_arg(home, BB_I64, c->strips.variable);
  at = bb_expr_make(home, BB_X_ADD, at, bb_expr_const(home, BB_I64, c->strips.size), NULL);
  return bb_tile_index_replace(c->p, index, c->strips.variable, at);
}

const char *bb_c_count_in_strip(bb_c *c, bool next) {
  for (uint32_t a = 0; a < 2 * c->p->tiles; a++) {
    const bb_c_live *l = &c->live[a];
    if (l->is && bb_expr_uses_arg(l->start, c->strips.variable))
      return count_of(c, in_strip(c, l->start, next), l->extent, bb_c_axis_size(c->p, a));
  }
  return NULL;
}

const char *bb_c_count(bb_c *c, uint32_t tile, bb_axis axis) {
  uint32_t a = 2 * tile + (axis == BB_AXIS_COL), size = bb_c_axis_size(c->p, a);
  const bb_c_live *l = live_of(c, a);
  if (size && ends(c, a)) return c->pair && tile >= c->twins ? "next" : "live";
  if (!bb_c_is_live(c, tile, axis)) return bb_arena_printf(c->out->arena, "%u", size ? size : 1);
  return count_of(c, l->start, l->extent, size);
}

const char *bb_c_whole_count(bb_c *c, uint32_t tile, bb_axis axis) {
  uint32_t size = bb_c_axis_size(c->p, 2 * tile + (axis == BB_AXIS_COL));
  const char *count = bb_c_count(c, tile, axis);
  if (!bb_c_is_live(c, tile, axis)) return bb_arena_printf(c->out->arena, "%u", bb_c_whole(size));
  return size > 2 ? bb_arena_printf(c->out->arena, "bb_whole(%s)", count) : count;
}

static bool touches(const bb_c *c, uint32_t tile) {
  return tile != BB_NONE && (ends(c, 2 * tile) || ends(c, 2 * tile + 1));
}

/* Can a statement leave out the columns behind an end? */
static bool may_end(const bb_c *c, const bb_tile_stmt *s) {
  bool any = touches(c, s->result) || touches(c, s->second);
  for (uint32_t i = 0; i < s->operands; i++) any |= touches(c, s->operand[i]);
  if (s->loop || s->body.count) return false;
  if (!any || s->kind == BB_TILE_MAP) return true;
  if (s->kind == BB_TILE_FOLD) return c->tile[s->operand[0]].turned && s->second == BB_NONE;
  bool apart = false; /* laid out by how many there are */
  for (uint32_t i = 0; i < s->operands; i++)
    apart |= touches(c, s->operand[i]) && c->tile[s->operand[i]].panels;
  return s->kind == BB_TILE_DOT && !apart;
}

/* Do they hold in a body of strips, in a stretch of the loop around it? */
static bool hold_in(const bb_c *c, const bb_tile_body *body, uint32_t stretch) {
  const bb_tile_ends *e = &c->strips.ends;
  bool in = !e->stretches || (stretch != BB_NONE && e->stretches >> stretch & 1), has = false;
  for (uint32_t i = 0; i < body->count && in && !has; i++)
    has = bb_c_runs_in(body->stmt[i], stretch) && body->stmt[i]->result == e->tile;
  return e->tile != BB_NONE && has;
}

/* May all of them, that are in or below a body? */
static bool all_may_end(bb_c *c, const bb_tile_body *body, uint32_t stretch) {
  bool may = true;
  for (uint32_t i = 0; i < body->count && may; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    if (c->ends && bb_c_runs_in(s, stretch)) may = may_end(c, s);
    may &= all_may_end(c, &s->body, stretch);
    for (uint32_t k = 0; s->loop && k < s->loop->stretches; k++) {
      bool strips = s->loop->variable == c->strips.variable;
      uint32_t in = strips ? stretch : s->loop->stretches > 1 ? k : BB_NONE;
      c->ends = strips && hold_in(c, &s->loop->body, in);
      may &= all_may_end(c, &s->loop->body, in);
      c->ends = false;
    }
  }
  return may;
}

void bb_c_settle_ends(bb_c *c) {
  bool may = c->strips.ends.tile != BB_NONE && all_may_end(c, &c->p->body, BB_NONE);
  if (!may) c->strips.ends.tile = BB_NONE;
}

/* How many columns of strips.ends.tile lie below a place, in the strip at hand or in the next one. */
static const char *columns_below(bb_c *c, bb_tile_index place, bool next) {
  const bb_tile_ends *e = &c->strips.ends;
  return count_of(c, in_strip(c, e->at[1], next), in_strip(c, place, next),
                  bb_c_axis_size(c->p, 2 * e->tile + 1));
}

const char *bb_c_begin_ends(bb_c *c, const bb_tile_body *body, uint32_t stretch) {
  const bb_tile_ends *e = &c->strips.ends;
  c->ends = hold_in(c, body, stretch);
  if (!c->ends) return NULL;
  return columns_below(c, e->end, false);
}

const char *bb_c_next_end(bb_c *c) {
  return columns_below(c, c->strips.ends.end, true);
}

const char *bb_c_reach(bb_c *c, const bb_tile_stmt *dot) {
  const bb_tile_ends *e = &c->strips.ends;
  const bool turned = c->tile[dot->result].turned, deep_rows = dot->transposed[turned] != turned;
  const uint32_t left = 2 * dot->operand[turned], row = left + deep_rows, deep = left + !deep_rows;
  bool known = c->ends && e->reach && bb_c_axis_size(c->p, row) && bb_c_axis_size(c->p, deep);
  if (!known || !ends(c, deep) || bb_c_axis(&c->axes, row) != bb_c_axis(&c->axes, 2 * e->tile))
    return NULL;
  return columns_below(c, e->reach, c->pair && dot->result >= c->twins);
}
