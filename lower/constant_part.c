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

bb_tile_program *bb_part_begin(bb_tile_program *p, const bb_part_loops *loops,
                               bb_tile_body **body) {
  bb_tile_program *part = bb_tile_create(p->home, "constants");
  *body = &part->body;
  for (uint32_t k = 0; k < loops->count; k++) {
    const bb_tile_loop *from = loops->loop[k];
    bb_tile_loop *made = bb_tile_append(part, *body, BB_TILE_LOOP)->loop;
    *made = (bb_tile_loop){.variable = from->variable,
                           .parallel = true,
                           .spread = BB_SPREAD_GRID,
                           .step = from->step,
                           .stretches = 1,
                           .stretch = {from->stretch[0]}};
    *body = &made->body;
  }
  for (uint32_t i = 0; i < p->tiles; i++) bb_tile_add(part, &p->tile[i]);
  for (uint32_t i = 0; i < p->views; i++) bb_tile_add_view(part, &p->view[i]);
  for (uint32_t i = 0; i < p->views; i++) part->view[i].written = false;
  for (uint32_t i = 0; i < p->variables; i++) bb_tile_add_variable(part, p->variable[i], false);
  return part;
}

bb_tile_index bb_part_index(bb_tile_program *p, const bb_part_loops *loops, uint32_t k) {
  const bb_tile_loop *l = loops->loop[k];
  bb_tile_index index = bb_expr_arg(p->home, BB_I64, l->variable);
  if (l->stretch[0].from->number != 0)
    index = bb_expr_make(p->home, BB_X_SUB, index, l->stretch[0].from, NULL);
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
