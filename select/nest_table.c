/* nest_table.c - the tables of a nest as they grow: sizes that are tied, room, terms.
 */
#include "nest_walk.h"

#include <math.h>
#include <string.h>

/* --- sizes --- */

uint32_t bb_nest_find(const bb_nest_walker *w, uint32_t size) {
  while (w->up[size] != size) size = w->up[size] = w->up[w->up[size]];
  return size;
}

uint32_t bb_nest_add_size(bb_nest_walker *w, bb_dim dim, bool whole) {
  BB_GROW(w->arena, w->nest->size, w->size_capacity, (size_t)w->nest->sizes + 1);
  BB_GROW(w->scratch, w->up, w->up_capacity, (size_t)w->nest->sizes + 1);
  w->nest->size[w->nest->sizes] = (bb_nest_size){dim, whole};
  w->up[w->nest->sizes] = w->nest->sizes;
  return w->nest->sizes++;
}

uint32_t bb_nest_unite(bb_nest_walker *w, uint32_t a, uint32_t b) {
  if (a == BB_NONE || b == BB_NONE) return a == BB_NONE ? b : a;
  a = bb_nest_find(w, a), b = bb_nest_find(w, b);
  if (a > b) {
    uint32_t swap = a;
    a = b, b = swap;
  }
  w->up[b] = a;
  w->nest->size[a].whole |= w->nest->size[b].whole;
  return a;
}

/* The sizes of an item's axes; an axis that no loop cut is whole. */
void bb_nest_complete_axes(bb_nest_walker *w, const bb_item *item, uint32_t *axis) {
  if (item->row == BB_NO_DIM)
    axis[0] = BB_NONE;
  else if (axis[0] == BB_NONE)
    axis[0] = bb_nest_add_size(w, item->row, true);
  if (item->col == BB_NO_DIM)
    axis[1] = BB_NONE;
  else if (axis[1] == BB_NONE)
    axis[1] = bb_nest_add_size(w, item->col, true);
}

/* --- room --- */

uint32_t bb_nest_class_of(bb_nest_walker *w, bb_nest_room room, const uint32_t *axis, double bytes,
                          uint64_t times) {
  bb_nest *nest = w->nest;
  for (uint32_t i = 0; i < nest->classes; i++) {
    const bb_nest_class *c = &nest->class[i];
    if (c->room == room && c->axis[0] == axis[0] && c->axis[1] == axis[1] && c->bytes == bytes &&
        c->times == times)
      return i;
  }
  BB_GROW(w->arena, nest->class, w->class_capacity, (size_t)nest->classes + 1);
  BB_GROW(w->scratch, w->alive, w->alive_capacity, (size_t)nest->classes + 1);
  nest->class[nest->classes] = (bb_nest_class){room, {axis[0], axis[1]}, bytes, times};
  w->alive[nest->classes] = 0;
  return nest->classes++;
}

/* Large nests have a hundred moments of a hundred classes: few pairs have to be looked at closer. */
static bool covers(const struct bb_nest_fill *a, const struct bb_nest_fill *b) {
  if (b->total > a->total || (b->some & ~a->some)) return false;
  for (uint32_t i = 0; i < b->count; i++)
    if (b->alive[i] > (i < a->count ? a->alive[i] : 0)) return false;
  return true;
}

static struct bb_nest_fill alive_now(const bb_nest_walker *w) {
  struct bb_nest_fill now = {.count = w->nest->classes, .alive = w->alive};
  for (uint32_t i = 0; i < now.count; i++) {
    now.total += now.alive[i];
    now.some |= (uint64_t)(now.alive[i] > 0) << i % 64;
  }
  return now;
}

/* Notes what is alive now, unless some other moment is as full everywhere. */
static void note_moment(bb_nest_walker *w) {
  bb_nest *nest = w->nest;
  struct bb_nest_fill now = alive_now(w);
  for (uint32_t i = 0; i < nest->moments; i++)
    if (covers(&w->moment[i], &now)) return;
  for (uint32_t i = 0; i < nest->moments;) {
    if (covers(&now, &w->moment[i]))
      w->moment[i] = w->moment[--nest->moments];
    else
      i++;
  }
  BB_GROW(w->scratch, w->moment, w->moment_capacity, (size_t)nest->moments + 1);
  uint16_t *alive = BB_NEW(w->scratch, uint16_t, now.count);
  if (now.count) memcpy(alive, w->alive, now.count * sizeof *alive);
  now.alive = alive;
  w->moment[nest->moments++] = now;
}

void bb_nest_take_room(bb_nest_walker *w, uint32_t class) {
  if (class == BB_NONE) return;
  w->alive[class]++;
  w->risen = true;
}

void bb_nest_leave_room(bb_nest_walker *w, uint32_t class) {
  if (class == BB_NONE) return;
  if (w->risen) note_moment(w);
  w->risen = false;
  w->alive[class]--;
}

/* Classes that have become equal as sizes were tied are one. */
static uint32_t *join_classes(bb_nest_walker *w) {
  bb_nest *nest = w->nest;
  uint32_t *into = BB_NEW(w->scratch, uint32_t, nest->classes + 1), count = nest->classes;
  nest->classes = 0;
  for (uint32_t i = 0; i < count; i++) {
    const bb_nest_class c = nest->class[i];
    into[i] = bb_nest_class_of(w, c.room, c.axis, c.bytes, c.times);
  }
  return into;
}

static bb_nest_moment moment_of(const bb_nest_walker *w, const struct bb_nest_fill *fill) {
  bb_nest_moment moment = {0};
  bb_nest_alive *alive = BB_NEW(w->arena, bb_nest_alive, w->nest->classes + 1);
  uint32_t count = 0;
  for (bb_nest_room room = 0; room < BB_NEST_ROOMS; room++) {
    for (uint32_t c = 0; c < fill->count; c++)
      if (fill->alive[c] && w->nest->class[c].room == room)
        alive[count++] = (bb_nest_alive){c, fill->alive[c]};
    moment.until[room] = count;
  }
  moment.alive = alive;
  return moment;
}

void bb_nest_keep_moments(bb_nest_walker *w) {
  bb_nest *nest = w->nest;
  if (w->risen) note_moment(w);
  struct bb_nest_fill *before = w->moment;
  uint32_t moments = nest->moments, classes = nest->classes, *into = join_classes(w);
  w->moment = NULL;
  w->moment_capacity = nest->moments = 0;
  for (uint32_t i = 0; i < moments; i++) {
    memset(w->alive, 0, classes * sizeof *w->alive);
    for (uint32_t c = 0; c < before[i].count; c++)
      w->alive[into[c]] = (uint16_t)(w->alive[into[c]] + before[i].alive[c]);
    note_moment(w);
  }
  nest->moment = BB_NEW(w->arena, bb_nest_moment, nest->moments + 1);
  for (uint32_t i = 0; i < nest->moments; i++) nest->moment[i] = moment_of(w, &w->moment[i]);
}

/* --- terms --- */

void bb_nest_add_term(bb_nest_walker *w, bb_nest_kind kind, const uint32_t *axis, uint32_t depth,
                      double amount, bb_dtype dtype, uint64_t depends) {
  bb_nest *nest = w->nest;
  if (amount <= 0) return;
  BB_GROW(w->arena, nest->term, w->term_capacity, (size_t)nest->terms + 1);
  nest->term[nest->terms++] = (bb_nest_term){.kind = kind,
                                             .loop = w->around,
                                             .axis = {axis[0], axis[1], depth},
                                             .amount = amount,
                                             .dtype = dtype,
                                             .apart = w->chain & ~depends};
}

void bb_nest_set_run(bb_nest_walker *w, bb_nest_run run, bool follows) {
  bb_nest_term *term = &w->nest->term[w->nest->terms - 1];
  term->run = run;
  term->follows = follows;
}

/* What an exponential costs, of which machines tell how many they do. */
static const double EXPONENTIAL = 10;

/* Operations of an expression: plain arithmetic, and special functions, as so many exponentials. */
static void count_expr(const bb_expr *expr, double *vector, double *special, uint32_t *budget) {
  static const double cost[] = {
#define BB_EXPR(id, name, arity, cost, how) [BB_X_##id] = cost,
#include "../graph/expr.def"
#undef BB_EXPR
  };
  if (*budget == 0) {
    *vector += bb_expr_cost(expr);
    return;
  }
  --*budget;
  bool square = expr->op == BB_X_POW && expr->a[1]->op == BB_X_CONST && expr->a[1]->number == 2;
  if (square)
    *vector += 1;
  else if (cost[expr->op] >= 4)
    *special += fmax(1, round(cost[expr->op] / EXPONENTIAL));
  else
    *vector += cost[expr->op];
  for (int i = 0; i < 3; i++)
    if (expr->a[i] && !(square && i == 1)) count_expr(expr->a[i], vector, special, budget);
}

void bb_nest_add_expr(bb_nest_walker *w, const bb_expr *expr, const uint32_t *axis, bb_dtype dtype,
                      uint64_t depends) {
  double vector = 0, special = 0;
  uint32_t budget = 1000;
  count_expr(expr, &vector, &special, &budget);
  bb_nest_add_term(w, BB_NEST_VECTOR, axis, BB_NONE, vector, dtype, depends);
  bb_nest_add_term(w, BB_NEST_SPECIAL, axis, BB_NONE, special, dtype, depends);
}

/* Plain work of the same turns on the same blocks. */
static bool runs_alike(const bb_nest_term *a, const bb_nest_term *b) {
  return a->kind == b->kind && a->loop == b->loop && a->dtype == b->dtype && a->apart == b->apart &&
         a->before == b->before && memcmp(a->axis, b->axis, sizeof a->axis) == 0;
}

void bb_nest_join_terms(bb_nest_walker *w) {
  bb_nest *nest = w->nest;
  uint32_t count = 0;
  for (uint32_t i = 0; i < nest->terms; i++) {
    const bb_nest_term term = nest->term[i];
    bool plain = term.kind == BB_NEST_VECTOR || term.kind == BB_NEST_SPECIAL;
    uint32_t at = plain ? 0 : count;
    while (at < count && !runs_alike(&nest->term[at], &term)) at++;
    if (at < count)
      nest->term[at].amount += term.amount;
    else
      nest->term[count++] = term;
  }
  nest->terms = count;
}
