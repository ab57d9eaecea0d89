/* constant_part.c - parts of a kernel as tile programs: their loops, their numbering. */
#include "constant.h"
#include "tile_edit.h"

#include <math.h>

bool bb_index_is_known(const bb_tile_program *p, bb_tile_index index) {
  if (index->op == BB_X_ARG) return index->index >= p->extents;
  if (index->op == BB_X_SYMBOL || index->op == BB_X_EXTENT || index->op == BB_X_COORD) return false;
  for (uint32_t i = 0; i < bb_expr_op_arity(index->op); i++)
    if (!bb_index_is_known(p, index->a[i])) return false;
  return true;
}

static bool is_number(bb_tile_index index) {
  return index && index->op == BB_X_CONST;
}

int64_t bb_loop_known_trips(const bb_tile_loop *l) {
  const bb_tile_stretch *only = &l->stretch[0];
  if (l->stretches != 1 || l->merge || !is_number(only->from) || !is_number(only->to) ||
      !is_number(l->step) || l->step->number < 1)
    return 0;
  double trips = ceil((only->to->number - only->from->number) / l->step->number);
  return trips > 0 ? (int64_t)trips : 0;
}

/* --- values of variables --- */

/* Points at which bounds are evaluated. */
enum { MOST_POINTS = 1 << 14 };

/* What bounds come to, wherever the loops around are. */
typedef struct bounding {
  const bb_tile_loop *loop;
  const bb_part_loop *around;
  uint32_t count, points;
  double *variable; /* by variable */
  bool any;         /* the loop has iterations somewhere: from `from` on, below `to` */
  int64_t from, to;
} bounding;

/* The same values everywhere, but for where they begin and end: else an item would belong to several. */
static bool note_point(bounding *b) {
  int64_t step = (int64_t)b->loop->step->number;
  int64_t from = bb_tile_index_value(b->loop->stretch[0].from, b->variable);
  int64_t to = bb_tile_index_value(b->loop->stretch[0].to, b->variable);
  if (++b->points > MOST_POINTS) return false;
  if (to <= from) return true;
  if (!b->any) b->from = from, b->to = to;
  b->any = true;
  if ((from - b->from) % step) return false;
  if (from < b->from) b->from = from;
  if (to > b->to) b->to = to;
  return true;
}

static bool note_points(bounding *b, uint32_t at) {
  const bb_tile_stretch *only = &b->loop->stretch[0];
  if (at == b->count) return note_point(b);
  const bb_part_loop *l = &b->around[at];
  uint32_t variable = l->loop->variable;
  if (!bb_expr_uses_arg(only->from, variable) && !bb_expr_uses_arg(only->to, variable))
    return note_points(b, at + 1);
  for (int64_t i = 0; i < l->trips; i++) {
    b->variable[variable] = (double)(l->from + i * (int64_t)l->loop->step->number);
    if (!note_points(b, at + 1)) return false;
  }
  return l->trips > 0;
}

static bb_part_loop values_of(const bb_tile_program *p, const bb_tile_loop *l,
                              const bb_part_loop *around, uint32_t count, double *variable) {
  const bb_tile_stretch *only = &l->stretch[0];
  bounding b = {.loop = l, .around = around, .count = count, .variable = variable};
  bb_part_loop made = {.loop = l};
  if (l->stretches != 1 || l->merge || !only->to || !bb_index_is_known(p, only->from) ||
      !bb_index_is_known(p, only->to) || !is_number(l->step) || l->step->number < 1 ||
      !note_points(&b, 0) || !b.any)
    return made;
  made.from = b.from;
  made.to = b.to;
  made.trips = (b.to - b.from - 1) / (int64_t)l->step->number + 1;
  return made;
}

bool bb_part_find_loops(const bb_tile_program *p, const bb_tile_loop *const *around,
                        const bool *named, uint32_t count, uint32_t rank, bb_part_loops *loops) {
  bb_part_loop *all = BB_NEW(p->home->arena, bb_part_loop, count + 1);
  double *variable = BB_NEW(p->home->arena, double, p->variables + 1);
  *loops = (bb_part_loops){0};
  for (uint32_t i = 0; i < count; i++) {
    all[i] = values_of(p, around[i], all, i, variable);
    if (!named[i]) continue;
    if (!all[i].trips || loops->count + rank == BB_TILE_RANK) return false;
    loops->loop[loops->count++] = all[i];
  }
  return true;
}

/* --- a part --- */

bb_tile_program *bb_part_begin(bb_tile_program *p, const bb_part_loops *loops,
                               bb_tile_body **body) {
  bb_tile_program *part = bb_tile_create(p->home, "constants");
  *body = &part->body;
  for (uint32_t k = 0; k < loops->count; k++) {
    const bb_part_loop *values = &loops->loop[k];
    const bb_tile_loop *from = values->loop;
    bb_tile_loop *made = bb_tile_append(part, *body, BB_TILE_LOOP)->loop;
    *made = (bb_tile_loop){.variable = from->variable,
                           .parallel = true,
                           .spread = BB_SPREAD_GRID,
                           .step = from->step,
                           .stretches = 1,
                           .stretch = {{bb_expr_const(p->home, BB_I64, (double)values->from),
                                        bb_expr_const(p->home, BB_I64, (double)values->to)}}};
    *body = &made->body;
  }
  for (uint32_t i = 0; i < p->tiles; i++) bb_tile_add(part, &p->tile[i]);
  for (uint32_t i = 0; i < p->views; i++) bb_tile_add_view(part, &p->view[i]);
  for (uint32_t i = 0; i < p->views; i++) part->view[i].written = false;
  for (uint32_t i = 0; i < p->variables; i++) bb_tile_add_variable(part, p->variable[i], false);
  return part;
}

bb_tile_index bb_part_index(bb_tile_program *p, const bb_part_loops *loops, uint32_t k) {
  const bb_tile_loop *l = loops->loop[k].loop;
  int64_t from = loops->loop[k].from;
  bb_tile_index index = bb_expr_arg(p->home, BB_I64, l->variable);
  if (from != 0)
    index =
        bb_expr_make(p->home, BB_X_SUB, index, bb_expr_const(p->home, BB_I64, (double)from), NULL);
  if (l->step->number != 1) index = bb_expr_make(p->home, BB_X_DIV, index, l->step, NULL);
  return index;
}

/* --- numbering --- */

typedef struct numbering {
  bool *tile, *view, *variable; /* used */
  uint32_t *number;             /* of views, new */
} numbering;

static void note(void *user, bb_tile_body *body, uint32_t at) {
  const numbering *n = user;
  const bb_tile_stmt *s = body->stmt[at];
  if (s->result != BB_NONE) n->tile[s->result] = true;
  for (uint32_t i = 0; i < s->operands; i++) n->tile[s->operand[i]] = true;
  if (s->view != BB_NONE) n->view[s->view] = true;
  if (s->loop) n->variable[s->loop->variable] = true;
}

static void renumber_view(void *user, bb_tile_body *body, uint32_t at) {
  const numbering *n = user;
  bb_tile_stmt *s = body->stmt[at];
  if (s->view != BB_NONE) s->view = n->number[s->view];
}

static void renumber_loop(void *user, bb_tile_body *body, uint32_t at) {
  const uint32_t *pair = user;
  bb_tile_stmt *s = body->stmt[at];
  if (s->loop && s->loop->variable == pair[0]) s->loop->variable = pair[1];
}

/* New numbers are never above old ones, so one can replace the other in ascending order. */
void bb_part_end(bb_constant_parts *parts, bb_tile_program *part, uint32_t made) {
  bb_arena *arena = part->home->arena;
  numbering n = {.tile = BB_NEW(arena, bool, part->tiles + 1),
                 .view = BB_NEW(arena, bool, part->views + 1),
                 .variable = BB_NEW(arena, bool, part->variables + 1),
                 .number = BB_NEW(arena, uint32_t, part->views + 1)};
  bb_tile_walk(&part->body, note, &n);
  uint32_t tiles = 0, views = 0, variables = 0;
  for (uint32_t i = 0; i < part->tiles; i++) {
    if (!n.tile[i]) continue;
    bb_tile_rename(&part->body, i, tiles);
    part->tile[tiles] = part->tile[i];
    part->tile[tiles].name = bb_arena_printf(arena, "t%u", tiles);
    tiles++;
  }
  for (uint32_t i = 0; i < part->variables; i++) {
    if (!n.variable[i]) continue;
    bb_tile_fix(part, &part->body, i, bb_expr_arg(part->home, BB_I64, variables));
    bb_tile_walk(&part->body, renumber_loop, (uint32_t[]){i, variables});
    part->variable[variables] = bb_arena_printf(arena, "n%u", variables);
    variables++;
  }
  bb_constant_part done = {part, BB_NEW(parts->arena, uint32_t, part->views + 1), made};
  for (uint32_t i = 0; i < part->views; i++) {
    if (!n.view[i]) continue;
    n.number[i] = views;
    done.view[views] = i;
    part->view[views] = part->view[i];
    part->view[views].name = bb_arena_printf(arena, "v%u", views);
    views++;
  }
  bb_tile_walk(&part->body, renumber_view, &n);
  part->tiles = tiles;
  part->views = views;
  part->variables = variables;
  BB_GROW(parts->arena, parts->part, parts->capacity, parts->count + 1u);
  parts->part[parts->count++] = done;
}
