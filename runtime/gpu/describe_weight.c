/* describe_weight.c - what the tiles of a kernel cost, as formulas of its extents.
 *
 * The tile program is walked as it would run: a loop's trips, and how often its body runs in all, are steps that what stands
 * in it refers to; its variable is the iteration in the middle, which all are taken for.  Sections are all alike but the last.
 */
#include "make.h"

#include "../../lower/emit_c_parts.h"
#include "../compile/plan_make.h"
#include "describe.h"

typedef struct walk {
  bb_arena *arena;
  const bb_tile_program *p;
  const bb_sm90_launch *plan;
  bb_program *home;
  const bb_expr **value; /* by variable of the program */
  const bb_expr *total[BB_GPU_TOTALS];
  bool merges; /* what has parts is stored by all that have made them */
  bb_formula *step;
  uint32_t steps, capacity;
} walk;

static const bb_expr *number(const walk *w, double value) {
  return bb_expr_const(w->home, BB_I64, value);
}

static const bb_expr *two(const walk *w, bb_expr_op op, const bb_expr *a, const bb_expr *b) {
  return bb_expr_make(w->home, op, a, b, NULL);
}

static const bb_expr *at(const walk *w, bb_tile_index index) {
  return bb_expr_substitute(w->home, index, w->p->variables, w->value);
}

/* The same as a variable of its own, unless it is as short as one. */
static const bb_expr *step(walk *w, const bb_expr *value) {
  if (value->op == BB_X_CONST || value->op == BB_X_ARG) return value;
  BB_GROW(w->arena, w->step, w->capacity, w->steps + 1u);
  w->step[w->steps] = bb_formula_of(w->home, w->arena, value);
  return bb_expr_arg(w->home, BB_I64, w->p->extents + w->steps++);
}

static void add(walk *w, uint32_t total, const bb_expr *times, const bb_expr *each) {
  w->total[total] = two(w, BB_X_ADD, w->total[total], two(w, BB_X_MUL, times, each));
}

/* A block that threads store, 16 bits or 32 at a time: each element takes as long as arithmetic with so many (measured on Hopper, as
 * the rates that cuda/weigh.c has: products of 4096 x 14336 with 3328 to 8192 rows). */
enum { STORED = 20 };

static double elements_of(const walk *w, uint32_t tile) {
  const bb_tile *t = &w->p->tile[tile];
  return (double)(t->rows ? t->rows : 1) * (t->cols ? t->cols : 1);
}

/* Are loads of a view, along an axis, of no rows beyond its end? */
static bool ends_there(const walk *w, uint32_t view, uint32_t axis) {
  for (uint32_t i = 0; i < w->plan->maps; i++)
    if (w->plan->map[i].view == view && w->plan->map[i].edge == axis + 1) return true;
  return false;
}

/* Of a load: those that are within the array, or not asked for. */
static const bb_expr *elements_within(const walk *w, const bb_tile_stmt *s) {
  const bb_tile_view *view = &w->p->view[s->view];
  const bb_expr *within = number(w, 1);
  for (uint32_t i = 0; i < view->rank; i++) {
    if (!s->range[i].size) continue;
    if (ends_there(w, s->view, i)) {
      within = two(w, BB_X_MUL, within, number(w, s->range[i].size));
      continue;
    }
    const bb_expr *rest = two(w, BB_X_SUB, at(w, view->extent[i]), at(w, s->range[i].start));
    rest = two(w, BB_X_MAX, two(w, BB_X_MIN, rest, number(w, s->range[i].size)), number(w, 0));
    within = two(w, BB_X_MUL, within, rest);
  }
  return within;
}

/* How often the stretch's body runs. */
static const bb_expr *trips_of(walk *w, const bb_tile_loop *l, uint32_t stretch) {
  const bb_tile_stretch *s = &l->stretch[stretch];
  if (!s->to) return number(w, 1);
  const bb_expr *by = at(w, l->step);
  const bb_expr *span = two(w, BB_X_SUB, two(w, BB_X_ADD, at(w, s->to), by), at(w, s->from));
  const bb_expr *trips = two(w, BB_X_DIV, two(w, BB_X_SUB, span, number(w, 1)), by);
  return step(w, two(w, BB_X_MAX, trips, number(w, 0)));
}

/* Turns of serial loops in one block: of the grid's first, or its last. */
static const bb_expr *turns_of(walk *w, const bb_tile_body *body, bool last) {
  const bb_expr *turns = number(w, 0), *one = number(w, 1);
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_loop *l = body->stmt[i]->loop;
    for (uint32_t k = 0; l && k < l->stretches; k++) {
      const bb_expr *from = at(w, l->stretch[k].from), *trips = trips_of(w, l, k);
      const bb_expr *to_last = two(w, BB_X_MUL, two(w, BB_X_SUB, trips, one), at(w, l->step));
      w->value[l->variable] = last && l->parallel ? step(w, two(w, BB_X_ADD, from, to_last)) : from;
      const bb_expr *within = turns_of(w, &l->body, last);
      if (!l->parallel) within = two(w, BB_X_MUL, trips, two(w, BB_X_ADD, within, one));
      turns = two(w, BB_X_ADD, turns, within);
    }
    if (body->stmt[i]->body.count)
      turns = two(w, BB_X_ADD, turns, turns_of(w, &body->stmt[i]->body, last));
  }
  return turns;
}

static void walk_body(walk *w, const bb_tile_body *body, const bb_expr *times, uint32_t stretch);

/* Does a loop in the body begin at the variable: are its iterations sections of what that one goes over? */
static bool has_section(const bb_tile_body *body, uint32_t variable) {
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_loop *l = body->stmt[i]->loop;
    if (!l || !l->parallel) continue;
    const bb_expr *from = l->stretch[0].from;
    if ((from->op == BB_X_ARG && from->index == variable) || has_section(&l->body, variable))
      return true;
  }
  return false;
}

/* Of a stretch's iterations, so many like the one of that number. */
static void walk_like(walk *w, const bb_tile_loop *l, uint32_t stretch, const bb_expr *times,
                      const bb_expr *of) {
  const bb_expr *from = at(w, l->stretch[stretch].from), *by = at(w, l->step);
  if (!l->parallel) add(w, BB_GPU_TURNS, number(w, 1), times);
  w->value[l->variable] = step(w, two(w, BB_X_ADD, from, two(w, BB_X_MUL, by, of)));
  walk_body(w, &l->body, times, l->stretches > 1 ? stretch : BB_NONE);
}

static void walk_loop(walk *w, const bb_tile_loop *l, const bb_expr *times) {
  const bb_expr *one = number(w, 1), *none = number(w, 0);
  w->merges |= l->merge != NULL;
  for (uint32_t k = 0; l->merge && k < l->merge->components; k++)
    add(w, BB_GPU_MERGED, one, number(w, elements_of(w, l->merged[k]) * sizeof(float)));
  for (uint32_t k = 0; k < l->stretches; k++) {
    const bb_expr *trips = trips_of(w, l, k);
    if (l->parallel && has_section(&l->body, l->variable)) {
      const bb_expr *last = step(w, two(w, BB_X_MAX, two(w, BB_X_SUB, trips, one), none));
      walk_like(w, l, k, step(w, two(w, BB_X_MUL, times, last)), none);
      walk_like(w, l, k, step(w, two(w, BB_X_MUL, times, two(w, BB_X_MIN, trips, one))), last);
    } else {
      walk_like(w, l, k, step(w, two(w, BB_X_MUL, times, trips)),
                two(w, BB_X_DIV, trips, number(w, 2)));
    }
  }
}

static void walk_load(walk *w, const bb_tile_stmt *s, const bb_expr *times) {
  double elements = elements_of(w, s->result);
  double bytes = (double)bb_dtype_bytes(w->p->tile[s->result].dtype);
  const bb_expr *beyond = two(w, BB_X_SUB, number(w, elements), elements_within(w, s));
  add(w, BB_GPU_BYTES, times, number(w, bytes * elements));
  add(w, BB_GPU_BEYOND, times, two(w, BB_X_MUL, beyond, number(w, bytes)));
}

static void walk_body(walk *w, const bb_tile_body *body, const bb_expr *times, uint32_t stretch) {
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    if (s->stretches && stretch != BB_NONE && !(s->stretches >> stretch & 1)) continue;
    if (s->kind == BB_TILE_DOT)
      add(w, BB_GPU_OPERATIONS, times,
          number(w, 2 * elements_of(w, s->result) * bb_c_depth(w->p, s)));
    if (s->kind == BB_TILE_LOAD) walk_load(w, s, times);
    if (s->kind == BB_TILE_STORE && bb_tile_is_block(&w->p->tile[s->operand[0]]) && !w->merges &&
        w->p->tile[s->operand[0]].place == BB_PLACE_REGISTERS)
      add(w, BB_GPU_ELEMENTS, times, number(w, STORED * elements_of(w, s->operand[0])));
    if (s->kind == BB_TILE_MAP || s->kind == BB_TILE_FOLD)
      add(w, BB_GPU_ELEMENTS, times,
          number(w, elements_of(w, s->kind == BB_TILE_FOLD ? s->operand[0] : s->result)));
    if (s->loop) walk_loop(w, s->loop, times);
    walk_body(w, &s->body, times, stretch);
  }
}

/* Of everything that is read, once. */
static void count_different(walk *w) {
  for (uint32_t v = 0; v < w->p->views; v++) {
    const bb_tile_view *view = &w->p->view[v];
    const bb_expr *bytes = number(w, (double)bb_dtype_bytes(view->dtype));
    for (uint32_t i = 0; i < view->rank; i++)
      bytes = two(w, BB_X_MUL, bytes, at(w, view->extent[i]));
    if (!view->written) add(w, BB_GPU_DIFFERENT, number(w, 1), bytes);
  }
}

bb_gpu_weight bb_gpu_describe_weight(bb_arena *arena, const bb_tile_program *tile,
                                     const bb_sm90_launch *plan) {
  walk w = {.arena = arena, .p = tile, .plan = plan, .home = tile->home};
  bb_gpu_weight made = {.groups = tile->groups, .few = !tile->registers};
  w.value = BB_NEW(arena, const bb_expr *, tile->variables + 1);
  for (uint32_t i = 0; i < tile->variables; i++)
    w.value[i] = i < tile->extents ? bb_expr_arg(w.home, BB_I64, i) : number(&w, 0);
  for (uint32_t i = 0; i < BB_GPU_TOTALS; i++) w.total[i] = number(&w, 0);
  walk_body(&w, &tile->body, number(&w, 1), BB_NONE);
  count_different(&w);
  w.total[BB_GPU_LONGEST] =
      two(&w, BB_X_MAX, turns_of(&w, &tile->body, false), turns_of(&w, &tile->body, true));
  made.steps = w.steps;
  made.step = w.step;
  for (uint32_t i = 0; i < BB_GPU_TOTALS; i++)
    made.total[i] = bb_formula_of(w.home, arena, w.total[i]);
  return made;
}
