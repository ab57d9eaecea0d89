/* places.c - are blocks of rows places along an axis? */
#include "places.h"

#include <string.h>

bool bb_loop_counts_up(const bb_tile_loop *l, double step) {
  return l->parallel && !l->merge && !l->down && l->stretches == 1 && l->stretch[0].to &&
         bb_expr_is_number(l->stretch[0].from, 0) && l->step->op == BB_X_CONST &&
         (step == 0 || l->step->number == step);
}

bb_loop_nest bb_loops_of(bb_tile_body *body) {
  bb_loop_nest n = {0};
  for (bb_tile_body *b = body;
       b->count == 1 && b->stmt[0]->loop && b->stmt[0]->loop->parallel && n.count < BB_LOOP_NEST;
       b = &b->stmt[0]->loop->body) {
    n.body[n.count] = b;
    n.loop[n.count++] = b->stmt[0]->loop;
  }
  return n;
}

bb_places bb_places_start(bb_tile_program *program, bb_takes_places *takes) {
  return (bb_places){.p = program,
                     .takes = takes,
                     .variable = BB_NONE,
                     .inner = BB_NONE,
                     .rows_in = BB_NEW(program->home->arena, bb_rows_of, program->tiles + 1)};
}

bool bb_places_use(const bb_places *p, const bb_expr *e, uint32_t base) {
  return e && (bb_expr_uses_arg(e, base + p->variable) ||
               (p->inner != BB_NONE && bb_expr_uses_arg(e, base + p->inner)));
}

static void note(bb_places *p, uint32_t tile, bb_rows_of is) {
  bb_rows_of *known = &p->rows_in[tile];
  if (is == BB_ROWS_NOTHING || *known == is || !p->p->tile[tile].rows) return;
  p->good &= *known == BB_ROWS_NOTHING;
  *known = is;
  p->changed = true;
}

static bool is_along(const bb_places *p, const bb_tile_stmt *s) {
  for (uint32_t i = 0; i < p->p->view[s->view].rank; i++)
    if (bb_places_use(p, s->range[i].start, 0)) return true;
  return false;
}

static void look_at_load(bb_places *p, const bb_tile_stmt *s) {
  bool along = is_along(p, s);
  if (along) p->good &= p->takes(p, s, s->result);
  note(p, s->result, along ? BB_ROWS_PLACES : BB_ROWS_OTHER);
}

static void look_at_store(bb_places *p, const bb_tile_stmt *s) {
  p->good &= p->rows_in[s->operand[0]] != BB_ROWS_OTHER && p->takes(p, s, s->operand[0]);
}

/* Rows that differ by where they stand in their block are no places, whatever else they are made of. */
static void look_at_map(bb_places *p, const bb_tile_stmt *s) {
  bool asks = s->at[0] && bb_expr_uses_coord(s->expr);
  if (asks) note(p, s->result, BB_ROWS_OTHER);
  for (uint32_t i = 0; i < s->operands; i++) {
    bb_rows_of is = p->rows_in[s->operand[i]];
    p->good &= is != BB_ROWS_PLACES || !asks;
    note(p, s->result, is);
  }
  p->good &= !bb_places_use(p, s->expr, BB_TILE_VARIABLE);
  p->good &= !bb_places_use(p, s->at[1], 0);
}

static void look_at_dot(bb_places *p, const bb_tile_stmt *s) {
  bb_rows_of left = p->rows_in[s->operand[0]];
  p->good &=
      p->rows_in[s->operand[1]] != BB_ROWS_PLACES && (left != BB_ROWS_PLACES || !s->transposed[0]);
  note(p, s->result, s->transposed[0] ? BB_ROWS_OTHER : left);
}

static void look_at_fold(bb_places *p, const bb_tile_stmt *s) {
  bb_rows_of is = p->rows_in[s->operand[0]];
  p->good &= s->second == BB_NONE && (s->axis == BB_AXIS_COL || is == BB_ROWS_OTHER);
  note(p, s->result, s->axis == BB_AXIS_COL ? is : BB_ROWS_OTHER);
}

static void look_at_loop(bb_places *p, const bb_tile_loop *loop) {
  for (uint32_t i = 0; i < loop->stretches; i++)
    p->good &=
        !bb_places_use(p, loop->stretch[i].from, 0) && !bb_places_use(p, loop->stretch[i].to, 0);
  p->good &= !loop->marked && !loop->merge;
}

static void look(void *user, bb_tile_body *body, uint32_t at) {
  bb_places *p = user;
  const bb_tile_stmt *s = body->stmt[at];
  switch (s->kind) {
  case BB_TILE_LOAD: look_at_load(p, s); return;
  case BB_TILE_STORE: look_at_store(p, s); return;
  case BB_TILE_MAP: look_at_map(p, s); return;
  case BB_TILE_DOT: look_at_dot(p, s); return;
  case BB_TILE_FOLD: look_at_fold(p, s); return;
  case BB_TILE_LOOP: look_at_loop(p, s->loop); return;
  default: p->good = false;
  }
}

bool bb_are_places(bb_places *p, bb_tile_body *body) {
  memset(p->rows_in, 0, p->p->tiles * sizeof *p->rows_in);
  p->good = true;
  do {
    p->changed = false;
    bb_tile_walk(body, look, p);
  } while (p->good && p->changed);
  return p->good;
}
