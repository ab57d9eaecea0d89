/* bounds_answer.c - stretches of sets as bounds of the loop: values of parameters are indices of the tile program.
 *
 * A number of iterations times the loop's step is said by variables without division where that can be: the iterations
 * of a loop in whose steps the other one's are whole are its variable.
 */
#include "bounds_asking.h"

typedef struct answering {
  bb_asking *a;
  bb_program *home;
  const bb_sets_answer *answer;
  bb_tile_index from; /* of the loop */
  int64_t step;
} answering;

static bb_tile_index number(const answering *w, int64_t value) {
  return bb_expr_const(w->home, BB_I64, (double)value);
}

static bb_tile_index make(const answering *w, bb_expr_op op, bb_tile_index x, bb_tile_index y) {
  return bb_expr_make(w->home, op, x, y, NULL);
}

/* sum + by x; NULL: a sum of nothing */
static bb_tile_index plus(const answering *w, bb_tile_index sum, int64_t by, bb_tile_index x) {
  if (by == 0) return sum;
  int64_t size = by < 0 ? -by : by;
  if (size != 1) x = make(w, BB_X_MUL, number(w, size), x);
  if (!sum) return by < 0 ? bb_expr_make(w->home, BB_X_NEG, x, NULL, NULL) : x;
  return make(w, by < 0 ? BB_X_SUB : BB_X_ADD, sum, x);
}

static bb_tile_index plus_number(const answering *w, bb_tile_index sum, int64_t value) {
  if (!sum) return number(w, value);
  if (value == 0) return sum;
  return make(w, value < 0 ? BB_X_SUB : BB_X_ADD, sum, number(w, value < 0 ? -value : value));
}

static int64_t common(int64_t x, int64_t y) {
  while (y) {
    int64_t rest = x % y;
    x = y, y = rest;
  }
  return x < 0 ? -x : x;
}

static const bb_sets_node *node_of(const answering *w, uint32_t node) {
  return &w->answer->node[node];
}

static bb_tile_index rounded(const answering *w, const bb_sets_node *floor);

/* by * sum + extra, with the greatest terms first: those that are added, then those taken away. */
static bb_tile_index sum_of(const answering *w, const bb_sets_node *n, int64_t by, int64_t extra) {
  bb_tile_index sum = NULL;
  int64_t rest = by * n->number + extra;
  for (int sign = 1; sign >= -1; sign -= 2)
    for (uint32_t i = 0; i < n->terms; i++) {
      int64_t times = by * n->by[i];
      if ((times < 0) != (sign < 0)) continue;
      if (n->of[i] >= BB_SETS_PARAMETERS) {
        sum = plus(w, sum, times, rounded(w, node_of(w, n->of[i] - BB_SETS_PARAMETERS)));
        continue;
      }
      const bb_parameter *p = &w->a->parameter[n->of[i]];
      if (times % p->step == 0) {
        sum = plus(w, sum, times / p->step, p->index);
        rest -= times / p->step * p->from;
      } else {
        bb_tile_index at = plus_number(w, p->index, -p->from);
        sum = plus(w, sum, times, make(w, BB_X_DIV, at, number(w, p->step)));
      }
    }
  return plus_number(w, sum, rest);
}

/* A number by which the sum is one of variables, not of their loops' iterations. */
static int64_t scale_of(const answering *w, const bb_sets_node *n) {
  int64_t all = 1;
  for (uint32_t i = 0; i < n->terms; i++) {
    if (n->of[i] >= BB_SETS_PARAMETERS) continue;
    int64_t step = w->a->parameter[n->of[i]].step, by = step / common(step, n->by[i]);
    all *= by / common(all, by);
  }
  return all;
}

/* (a + extra) / number, rounded down */
static bb_tile_index quotient(const answering *w, const bb_sets_node *n, int64_t extra,
                              bool positive) {
  const bb_sets_node *top = node_of(w, n->a);
  int64_t scale = scale_of(w, top);
  bb_tile_index x = sum_of(w, top, scale, scale * extra), d = number(w, scale * n->number);
  if (!positive) x = make(w, BB_X_SUB, x, make(w, BB_X_MOD, x, d));
  return make(w, BB_X_DIV, x, d);
}

static bb_tile_index rounded(const answering *w, const bb_sets_node *floor) {
  return quotient(w, floor, 0, floor->positive);
}

/* from + by x */
static bb_tile_index placed(const answering *w, int64_t by, bb_tile_index x, int64_t extra) {
  bb_tile_index from = w->from->op == BB_X_CONST ? NULL : w->from;
  if (!from) extra += (int64_t)w->from->number;
  return plus_number(w, plus(w, from, by, x), extra);
}

static bb_tile_index sum_place(const answering *w, const bb_sets_node *n, int64_t by,
                               int64_t extra) {
  if (w->from->op == BB_X_CONST) return sum_of(w, n, by, extra + (int64_t)w->from->number);
  if (!n->terms) return plus_number(w, w->from, by * n->number + extra);
  return make(w, BB_X_ADD, w->from, sum_of(w, n, by, extra));
}

/* Below which place iterations up to it lie: those that do not begin there, on the grid, may be anywhere between. */
static bb_tile_index floor_place(const answering *w, const bb_sets_node *n, bool end) {
  if (!end) return placed(w, w->step, rounded(w, n), 0);
  if (w->step % n->number == 0) return sum_place(w, node_of(w, n->a), w->step / n->number, 1);
  if (n->positive) return placed(w, w->step, quotient(w, n, n->number, true), 0);
  const bb_sets_node *top = node_of(w, n->a);
  int64_t scale = scale_of(w, top);
  bb_tile_index x = make(w, BB_X_MAX, sum_of(w, top, scale, scale * n->number), number(w, 0));
  return placed(w, w->step, make(w, BB_X_DIV, x, number(w, scale * n->number)), 0);
}

/* What is negative where the node is. */
static bb_tile_index sign_of(const answering *w, uint32_t node) {
  const bb_sets_node *n = node_of(w, node);
  if (n->kind == BB_SETS_SUM) return sum_of(w, n, scale_of(w, n), 0);
  return make(w, BB_X_MIN, sign_of(w, n->a), sign_of(w, n->b));
}

static bb_tile_index place_of(const answering *w, uint32_t node, bool end) {
  const bb_sets_node *n = node_of(w, node);
  bb_tile_index x, y;
  if (n->kind == BB_SETS_SUM) return sum_place(w, n, w->step, end ? w->step : 0);
  if (n->kind == BB_SETS_FLOOR) return floor_place(w, n, end);
  x = place_of(w, n->a, end);
  y = place_of(w, n->b, end);
  if (n->kind != BB_SETS_SELECT) return make(w, n->kind == BB_SETS_MIN ? BB_X_MIN : BB_X_MAX, x, y);
  if (x == y) return x;
  bb_tile_index condition = make(w, BB_X_LE, number(w, 0), sign_of(w, n->c));
  return bb_expr_make(w->home, BB_X_SELECT, condition, x, y);
}

uint32_t bb_asking_stretches(bb_asking *a, bb_bounds *b, const bool *idle, uint32_t most,
                             bb_tile_stretch *stretch, uint32_t *clean, bool *gave_up) {
  const bb_sets_question *q = bb_asking_question(a, b, idle, most);
  bb_sets_answer *answer = BB_NEW(a->arena, bb_sets_answer, 1);
  *clean = 0;
  *gave_up = a->over;
  if (a->over) return 0;
  bb_sets_solve(q, answer);
  *gave_up = answer->gave_up;
  answering w = {a, b->p->home, answer, b->loop->stretch[0].from, (int64_t)b->loop->step->number};
  for (uint32_t i = 0; i < b->masks; i++) b->mask[i].clean = answer->clean >> i & 1;
  for (uint32_t i = 0; i < answer->stretches; i++) {
    stretch[i].from = place_of(&w, answer->stretch[i].from, false);
    stretch[i].to = place_of(&w, answer->stretch[i].last, true);
    if (answer->stretch[i].clean) *clean |= 1u << i;
  }
  return answer->stretches;
}
