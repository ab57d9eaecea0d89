/* constant.c - folds and products of constants are taken out of a kernel.
 *
 * A tile is *fixed* if all statements that write it read constants and fixed tiles only.  Its *slice* is the
 * statements that it comes from.  They stand in the body of one loop, or in loops inside that body: with the
 * loops around that their indices name, they are the part; a load takes their place.
 */
#include "constant.h"
#include "tile_edit.h"

#include <string.h>

/* Elements that a part has to read or make for each that it leaves; so many is one that shares its line of memory with none of
 * its neighbours. */
enum { WORTH = 4, APART = 8 };

typedef struct place {
  bb_tile_stmt *stmt;
  uint32_t up;       /* the statement around it; BB_NONE: none */
  uint32_t at, last; /* where it stands in its body; the last place inside it */
  bool slice;
} place;

typedef struct parting {
  bb_tile_program *p;
  bb_constant_parts *parts;
  uint32_t count, capacity;
  place *place; /* all statements, from the first to the last */
  bool *fixed;  /* by tile */
  bool *member; /* by tile: the slice at hand makes it */
} parting;

static void list(parting *w, bb_tile_body *body, uint32_t up) {
  for (uint32_t i = 0; i < body->count; i++) {
    uint32_t number = w->count++;
    BB_GROW(w->p->home->arena, w->place, w->capacity, w->count);
    w->place[number] = (place){.stmt = body->stmt[i], .up = up, .at = i};
    list(w, &body->stmt[i]->body, number);
    if (body->stmt[i]->loop) list(w, &body->stmt[i]->loop->body, number);
    w->place[number].last = w->count - 1;
  }
}

static bb_tile_body *body_of(const parting *w, uint32_t home) {
  if (home == BB_NONE) return &w->p->body;
  bb_tile_stmt *s = w->place[home].stmt;
  return s->loop ? &s->loop->body : &s->body;
}

static bool is_inside(const parting *w, uint32_t number, uint32_t home) {
  return home == BB_NONE || (number > home && number <= w->place[home].last);
}

/* --- what is fixed --- */

static bool expr_is_known(const bb_tile_program *p, const bb_expr *e) {
  if (e->op == BB_X_SYMBOL || e->op == BB_X_EXTENT) return false;
  if (e->op == BB_X_ARG)
    return e->index < BB_TILE_VARIABLE || e->index - BB_TILE_VARIABLE >= p->extents;
  for (uint32_t i = 0; i < bb_expr_op_arity(e->op); i++)
    if (!expr_is_known(p, e->a[i])) return false;
  return true;
}

static bool indices_are_known(const bb_tile_program *p, const bb_tile_stmt *s) {
  for (uint32_t i = 0; s->kind == BB_TILE_LOAD && i < p->view[s->view].rank; i++)
    if (!bb_index_is_known(p, s->range[i].start)) return false;
  for (uint32_t i = 0; i < 2; i++)
    if (s->at[i] && !bb_index_is_known(p, s->at[i])) return false;
  return !s->expr || expr_is_known(p, s->expr);
}

static bool makes_fixed(const parting *w, const bb_tile_stmt *s) {
  switch (s->kind) {
  case BB_TILE_LOAD:
    if (s->view >= w->parts->views || !w->parts->constant[s->view]) return false;
    break;
  case BB_TILE_MAP:
  case BB_TILE_DOT:
  case BB_TILE_TRANSPOSE:
  case BB_TILE_SCAN:
  case BB_TILE_FOLD: break;
  default: return false;
  }
  for (uint32_t i = 0; i < s->operands; i++)
    if (!w->fixed[s->operand[i]]) return false;
  return s->second == BB_NONE && !s->stretches && indices_are_known(w->p, s);
}

static void find_fixed(parting *w) {
  memset(w->fixed, 1, w->p->tiles);
  for (bool more = true; more;) {
    more = false;
    for (uint32_t i = 0; i < w->count; i++) {
      const bb_tile_stmt *s = w->place[i].stmt;
      if (s->result == BB_NONE || makes_fixed(w, s)) continue;
      more |= w->fixed[s->result] || (s->second != BB_NONE && w->fixed[s->second]);
      w->fixed[s->result] = false;
      if (s->second != BB_NONE) w->fixed[s->second] = false;
    }
  }
}

/* --- a slice --- */

static bool touches(const bb_tile_stmt *s, uint32_t tile) {
  bool is = s->result == tile || s->second == tile;
  for (uint32_t i = 0; i < s->operands; i++) is |= s->operand[i] == tile;
  for (uint32_t i = 0; s->loop && s->loop->merge && i < s->loop->merge->components; i++)
    is |= s->loop->merged[i] == tile;
  return is;
}

static bool reads(const bb_tile_stmt *s, uint32_t tile) {
  bool is = s->accumulate && s->result == tile;
  for (uint32_t i = 0; i < s->operands; i++) is |= s->operand[i] == tile;
  for (uint32_t i = 0; s->loop && s->loop->merge && i < s->loop->merge->components; i++)
    is |= s->loop->merged[i] == tile;
  return is;
}

static void find_slice(parting *w, uint32_t tile) {
  memset(w->member, 0, w->p->tiles);
  for (uint32_t i = 0; i < w->count; i++) w->place[i].slice = false;
  w->member[tile] = true;
  for (bool more = true; more;) {
    more = false;
    for (uint32_t i = 0; i < w->count; i++) {
      const bb_tile_stmt *s = w->place[i].stmt;
      if (w->place[i].slice || s->result == BB_NONE || !w->member[s->result]) continue;
      w->place[i].slice = more = true;
      for (uint32_t k = 0; k < s->operands; k++) w->member[s->operand[k]] = true;
    }
  }
}

/* The innermost statement around all of the slice. */
static uint32_t home_of(const parting *w) {
  uint32_t first = 0, last = w->count;
  while (!w->place[first].slice) first++;
  while (!w->place[--last].slice) continue;
  uint32_t home = w->place[first].up;
  while (home != BB_NONE && last > w->place[home].last) home = w->place[home].up;
  return home;
}

/* Between the slice and its home are plain loops that know their bounds; every tile is written before
 * anything reads it, so that no iteration of the home knows the one before. */
static bool stands_alone(const parting *w, uint32_t home) {
  for (uint32_t i = 0; i < w->count; i++) {
    if (!w->place[i].slice) continue;
    for (uint32_t k = w->place[i].up; k != home; k = w->place[k].up) {
      const bb_tile_stmt *s = w->place[k].stmt;
      if (s->kind != BB_TILE_LOOP || s->loop->merge || s->loop->stretches != 1 ||
          !s->loop->stretch[0].to || !bb_index_is_known(w->p, s->loop->stretch[0].from) ||
          !bb_index_is_known(w->p, s->loop->stretch[0].to) ||
          !bb_index_is_known(w->p, s->loop->step))
        return false;
    }
  }
  for (uint32_t t = 0; t < w->p->tiles; t++) {
    uint32_t first = 0;
    if (!w->member[t]) continue;
    while (first < w->count && !touches(w->place[first].stmt, t)) first++;
    if (first == w->count || !w->place[first].slice || reads(w->place[first].stmt, t)) return false;
  }
  return true;
}

/* The statement of the home's body that ends the slice; BB_NONE: something reads the tile before that, or
 * outside. */
static uint32_t end_of(const parting *w, uint32_t home, uint32_t tile) {
  uint32_t end = 0;
  bool read = false;
  for (uint32_t i = 0; i < w->count; i++)
    if (w->place[i].slice && w->place[i].stmt->result == tile) end = i;
  while (w->place[end].up != home) end = w->place[end].up;
  for (uint32_t i = 0; i < w->count; i++) {
    if (w->place[i].slice || !reads(w->place[i].stmt, tile)) continue;
    if (i <= w->place[end].last || !is_inside(w, i, home)) return BB_NONE;
    read = true;
  }
  return read ? end : BB_NONE;
}

/* Does it load a vector whose neighbours are apart in memory?  Blocks are copied, or packed, by those who read them. */
static bool loads_apart(const bb_tile_program *p, const bb_tile_stmt *s) {
  const bb_tile *t = s->kind == BB_TILE_LOAD ? &p->tile[s->result] : NULL;
  if (!t || !t->rows == !t->cols) return false;
  const bb_tile_view *view = &p->view[s->view];
  for (uint32_t i = 0; i < view->rank; i++)
    if (s->range[i].size) return !bb_tile_is_unit(view, i);
  return false;
}

/* Elements that the slice reads or makes in one iteration of its home. */
static double work_of(const parting *w, uint32_t home) {
  double work = 0;
  for (uint32_t i = 0; i < w->count; i++) {
    if (!w->place[i].slice) continue;
    double times = bb_tile_elements(&w->p->tile[w->place[i].stmt->result]);
    if (loads_apart(w->p, w->place[i].stmt)) times *= APART;
    for (uint32_t k = w->place[i].up; k != home; k = w->place[k].up) {
      int64_t trips = bb_loop_known_trips(w->place[k].stmt->loop);
      times *= trips ? (double)trips : 1;
    }
    work += times;
  }
  return work;
}

/* --- the loops around it that it names --- */

static bool index_names(bb_tile_index index, uint32_t variable) {
  return index && bb_expr_uses_arg(index, variable);
}

static bool stmt_names(const bb_tile_program *p, const bb_tile_stmt *s, uint32_t variable) {
  bool is = index_names(s->at[0], variable) || index_names(s->at[1], variable);
  for (uint32_t i = 0; s->kind == BB_TILE_LOAD && i < p->view[s->view].rank; i++)
    is |= index_names(s->range[i].start, variable);
  if (s->kind == BB_TILE_MAP) is |= bb_expr_uses_arg(s->expr, BB_TILE_VARIABLE + variable);
  if (s->loop)
    is |= index_names(s->loop->stretch[0].from, variable) ||
          index_names(s->loop->stretch[0].to, variable) || index_names(s->loop->step, variable);
  return is;
}

static bool slice_names(const parting *w, uint32_t home, uint32_t variable) {
  for (uint32_t i = 0; i < w->count; i++)
    for (uint32_t k = i; w->place[i].slice && k != home; k = w->place[k].up)
      if (stmt_names(w->p, w->place[k].stmt, variable)) return true;
  return false;
}

static bool find_loops(const parting *w, uint32_t home, uint32_t rank, bb_part_loops *loops) {
  bb_arena *arena = w->p->home->arena;
  uint32_t count = 0;
  for (uint32_t k = home; k != BB_NONE; k = w->place[k].up, count++)
    if (!w->place[k].stmt->loop) return false; /* it may not run */
  const bb_tile_loop **around = BB_NEW(arena, const bb_tile_loop *, count + 1);
  bool *named = BB_NEW(arena, bool, count + 1);
  for (uint32_t k = home, i = count; i-- > 0; k = w->place[k].up) {
    around[i] = w->place[k].stmt->loop;
    named[i] = slice_names(w, home, around[i]->variable);
  }
  return bb_part_find_loops(w->p, around, named, count, rank, loops);
}

/* --- out of the kernel --- */

static bool holds_slice(const parting *w, uint32_t number) {
  for (uint32_t i = number; i <= w->place[number].last; i++)
    if (w->place[i].slice) return true;
  return false;
}

static void copy_slice(const parting *w, bb_tile_program *part, uint32_t home, bb_tile_body *to) {
  uint32_t first = home == BB_NONE ? 0 : home + 1;
  for (uint32_t i = first; i < w->count && is_inside(w, i, home); i = w->place[i].last + 1) {
    const bb_tile_stmt *s = w->place[i].stmt;
    if (!holds_slice(w, i)) continue;
    if (!s->loop) {
      bb_tile_push(part, to, bb_tile_copy(part, s));
      continue;
    }
    bb_tile_stmt *loop = bb_tile_append(part, to, BB_TILE_LOOP);
    *loop->loop = *s->loop;
    loop->loop->spread = BB_SPREAD_NONE;
    loop->loop->body = (bb_tile_body){0};
    copy_slice(w, part, i, &loop->loop->body);
  }
}

/* An item for each iteration of the loops, the tile's rows and columns last. */
static bb_tile_view view_of(bb_tile_program *p, const bb_part_loops *loops, const bb_tile *tile) {
  bb_tile_view view = {.dtype = tile->dtype, .rank = loops->count};
  view.name = bb_arena_printf(p->home->arena, "part%u", p->views);
  for (uint32_t k = 0; k < loops->count; k++)
    view.extent[k] = bb_expr_const(p->home, BB_I64, (double)loops->loop[k].trips);
  if (tile->rows) view.extent[view.rank++] = bb_expr_const(p->home, BB_I64, tile->rows);
  if (tile->cols) view.extent[view.rank++] = bb_expr_const(p->home, BB_I64, tile->cols);
  if (!view.rank) view.extent[view.rank++] = bb_expr_const(p->home, BB_I64, 1);
  return view;
}

static void set_ranges(bb_tile_program *p, const bb_part_loops *loops, const bb_tile *tile,
                       bb_tile_stmt *s) {
  bb_tile_index zero = bb_expr_const(p->home, BB_I64, 0);
  uint32_t rank = 0;
  for (; rank < loops->count; rank++) s->range[rank].start = bb_part_index(p, loops, rank);
  if (tile->rows) s->range[rank++] = (bb_tile_range){zero, tile->rows, BB_AXIS_ROW};
  if (tile->cols) s->range[rank++] = (bb_tile_range){zero, tile->cols, BB_AXIS_COL};
  if (!rank) s->range[0].start = zero;
}

static void take_out(parting *w, uint32_t home, uint32_t end, uint32_t tile,
                     const bb_part_loops *loops) {
  bb_tile_program *p = w->p;
  bb_tile_view view = view_of(p, loops, &p->tile[tile]);
  bb_tile_body *body;
  bb_tile_program *part = bb_part_begin(p, loops, &body);
  uint32_t made = bb_tile_add_view(p, &view);
  view.written = true;
  bb_tile_add_view(part, &view);
  copy_slice(w, part, home, body);
  bb_tile_stmt *store = bb_tile_append(part, body, BB_TILE_STORE);
  store->view = made;
  store->operands = 1;
  store->operand[0] = tile;
  set_ranges(p, loops, &p->tile[tile], store);
  bb_part_end(w->parts, part, made);
  bb_tile_stmt *load = bb_tile_stmt_new(p, BB_TILE_LOAD);
  load->view = made;
  load->result = tile;
  set_ranges(p, loops, &p->tile[tile], load);
  for (uint32_t i = w->count; i-- > 0;) /* the last first: places before it stay */
    if (i == end) bb_tile_insert(p, body_of(w, home), w->place[end].at + 1, load);
  for (uint32_t i = w->count; i-- > 0;)
    if (w->place[i].slice && w->place[i].stmt->result == tile)
      bb_tile_remove(body_of(w, w->place[i].up), w->place[i].at);
}

/* --- all of it --- */

static bool is_plain(bb_dtype dtype) {
  return dtype != BB_F16 && dtype != BB_BF16;
}

/* First what goes into something that is not fixed: what it is made of goes with it. */
static bool is_wanted(const parting *w, uint32_t tile, bool any) {
  for (uint32_t i = 0; i < w->count; i++) {
    const bb_tile_stmt *s = w->place[i].stmt;
    if (!reads(s, tile) || s->result == tile) continue;
    if (any || s->result == BB_NONE || !w->fixed[s->result]) return true;
  }
  return false;
}

static bool part_one(parting *w, bool any) {
  w->count = 0;
  list(w, &w->p->body, BB_NONE);
  find_fixed(w);
  for (uint32_t t = 0; t < w->p->tiles; t++) {
    const bb_tile *tile = &w->p->tile[t];
    bb_part_loops loops;
    if (!w->fixed[t] || !is_plain(tile->dtype) || !is_wanted(w, t, any)) continue;
    find_slice(w, t);
    uint32_t home = home_of(w), end;
    uint32_t rank = tile->rows && tile->cols ? 2 : 1;
    if (!stands_alone(w, home) || (end = end_of(w, home, t)) == BB_NONE ||
        work_of(w, home) < WORTH * bb_tile_elements(tile) || !find_loops(w, home, rank, &loops))
      continue;
    take_out(w, home, end, t, &loops);
    bb_tile_drop_dead(w->p);
    return true;
  }
  return false;
}

void bb_part_constants(bb_tile_program *p, bb_constant_parts *parts) {
  bool any = false;
  for (uint32_t i = 0; i < parts->views; i++) any |= parts->constant[i];
  if (!any) return;
  parting w = {.p = p, .parts = parts};
  w.fixed = BB_NEW(p->home->arena, bool, p->tiles + 1);
  w.member = BB_NEW(p->home->arena, bool, p->tiles + 1);
  while (part_one(&w, false) || part_one(&w, true)) continue;
}
