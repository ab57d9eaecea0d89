/* gpu_ends.c - masks of blocks as where the columns of a row begin and end.
 *
 *     t = select(col <= row | col < 256, t, -inf)
 *     t = select(col < n, t, -inf)                  ==>   t = select(col < min(max(1 + row, 256), n), t, -inf)
 *
 * A thread has many columns of few rows: what is of rows alone it computes once for each, and then asks one question of an
 * element where there were several, each to be compiled for every element that a thread has.
 */
#include "gpu_mask.h"

#include <stdlib.h>
#include <string.h>

enum { FAR = 1 << 30 /* constants up to here may be added to places in 32 bits */ };

/* What a condition says of a column, if it says only that: from <= col < to; NULL: no such end. */
typedef struct ends {
  bool is;
  const bb_expr *from, *to;
} ends;

static const bb_expr *binary(const bb_gpu *g, bb_expr_op op, const bb_expr *a, const bb_expr *b) {
  return bb_expr_make(g->p->home, op, a, b, NULL);
}

static const bb_expr *both(const bb_gpu *g, bb_expr_op op, const bb_expr *a, const bb_expr *b) {
  return !a ? b : !b ? a : a == b ? a : binary(g, op, a, b);
}

typedef struct term {
  const bb_expr *x;
  int64_t by;
} term;

/* A sum (NULL: there is none yet) and x, or less x where `by` is negative. */
static const bb_expr *plus(const bb_gpu *g, const bb_expr *sum, const bb_expr *x, int64_t by) {
  if (!sum) return x;
  return binary(g, by > 0 ? BB_X_ADD : BB_X_SUB, sum, x);
}

/* sign * (d but for its column) + more, as an expression of a statement; NULL: it has none in 32 bits. */
static const bb_expr *sum_of(const bb_gpu *g, const bb_mask_linear *d, int64_t sign, int64_t more) {
  bb_program *home = g->p->home;
  term all[BB_AFFINE_TERMS + 2];
  uint32_t terms = 0;
  int64_t constant = sign * d->rest.constant + more;
  const bb_expr *sum = NULL;
  if (constant < -FAR || constant > FAR) return NULL;
  all[terms++] = (term){bb_expr_coord(home, BB_COORD_ROW), sign * d->by[BB_COORD_ROW]};
  for (uint32_t i = 0; i < d->rest.terms; i++)
    all[terms++] = (term){bb_expr_arg(home, BB_I64, BB_TILE_VARIABLE + d->rest.term[i].variable),
                          sign * d->rest.term[i].by};
  const bb_expr *size = bb_expr_const(home, BB_I64, (double)llabs(constant));
  all[terms++] = (term){size, (constant > 0) - (constant < 0)};
  for (uint32_t i = 0; i < terms; i++) {
    if (all[i].by < -1 || all[i].by > 1) return NULL;
    if (all[i].by == 1) sum = plus(g, sum, all[i].x, 1);
  }
  if (!sum) sum = bb_expr_const(home, BB_I64, 0);
  for (uint32_t i = 0; i < terms; i++)
    if (all[i].by == -1) sum = plus(g, sum, all[i].x, -1);
  return sum;
}

static ends ends_of_comparison(const bb_gpu *g, const bb_expr *c, bool holds) {
  bb_mask_linear d = bb_mask_comparison(c, holds);
  ends e = {0};
  if (!d.is) return e;
  if (d.by[BB_COORD_COL] == -1) e.to = sum_of(g, &d, 1, 1); /* 0 <= d - col */
  if (d.by[BB_COORD_COL] == 1) e.from = sum_of(g, &d, -1, 0);
  e.is = e.from || e.to;
  return e;
}

static ends ends_of(const bb_gpu *g, const bb_expr *c) {
  if (c->op == BB_X_NOT) return ends_of_comparison(g, c->a[0], false);
  if (c->op != BB_X_AND && c->op != BB_X_OR) return ends_of_comparison(g, c, true);
  ends a = ends_of(g, c->a[0]), b = ends_of(g, c->a[1]);
  if (!a.is || !b.is) return (ends){0};
  if (c->op == BB_X_AND)
    return (ends){true, both(g, BB_X_MAX, a.from, b.from), both(g, BB_X_MIN, a.to, b.to)};
  if (!a.from && !b.from) return (ends){true, NULL, binary(g, BB_X_MAX, a.to, b.to)};
  if (!a.to && !b.to) return (ends){true, binary(g, BB_X_MIN, a.from, b.from), NULL};
  return (ends){0}; /* of two stretches */
}

static const bb_expr *condition_of(const bb_gpu *g, ends e) {
  const bb_expr *col = bb_expr_coord(g->p->home, BB_COORD_COL);
  const bb_expr *from = e.from ? binary(g, BB_X_LE, e.from, col) : NULL;
  const bb_expr *to = e.to ? binary(g, BB_X_LT, col, e.to) : NULL;
  if (e.to && e.to->op == BB_X_ADD && bb_expr_is_number(e.to->a[1], 1))
    to = binary(g, BB_X_LE, col, e.to->a[0]);
  return both(g, BB_X_AND, from, to);
}

/* The ends that conditions joined by `and` have; *others: those that are more than ends. */
static ends of_all(const bb_gpu *g, const bb_expr *c, const bb_expr **others) {
  ends e = ends_of(g, c);
  if (e.is) return e;
  if (c->op != BB_X_AND) {
    *others = both(g, BB_X_AND, *others, c);
    return (ends){true, NULL, NULL};
  }
  ends a = of_all(g, c->a[0], others), b = of_all(g, c->a[1], others);
  return (ends){true, both(g, BB_X_MAX, a.from, b.from), both(g, BB_X_MIN, a.to, b.to)};
}

static const bb_expr *rewritten(const bb_gpu *g, const bb_expr *e) {
  const bb_expr *a[3] = {NULL, NULL, NULL}, *others = NULL;
  bool changed = false;
  if (!e->coord) return e;
  if (e->dtype == BB_BOOL) {
    ends all = of_all(g, e, &others);
    const bb_expr *asked = condition_of(g, all);
    if (others == e) asked = NULL; /* nothing but itself */
    if (asked) return others ? binary(g, BB_X_AND, rewritten(g, others), asked) : asked;
  }
  for (uint32_t i = 0; i < bb_expr_op_arity(e->op); i++) {
    a[i] = rewritten(g, e->a[i]);
    changed |= a[i] != e->a[i];
  }
  return changed ? bb_expr_rebuild(g->p->home, e, a) : e;
}

/* Where a coordinate of both begins, if it is the same or only one of them asks. */
static bool have_one_place(const bb_tile_stmt *a, const bb_tile_stmt *b, uint32_t k) {
  return !a->at[k] || !b->at[k] || a->at[k] == b->at[k];
}

/* Two fillings, one right behind the other, of the same blocks with the same number. */
static bool are_one(const bb_gpu *g, const bb_tile_stmt *s, const bb_tile_stmt *next,
                    const bb_expr **condition) {
  bb_mask_filling a, b;
  if (!bb_mask_fills(g, s, &a) || !bb_mask_fills(g, next, &b)) return false;
  *condition = binary(g, BB_X_AND, a.condition, b.condition);
  return a.tile == b.tile && memcmp(&a.fill, &b.fill, sizeof a.fill) == 0 &&
         s->stretches == next->stretches && s->stage == next->stage && have_one_place(s, next, 0) &&
         have_one_place(s, next, 1);
}

static void join(bb_gpu *g, bb_tile_body *body) {
  for (uint32_t i = 0; i + 1 < body->count; i++) {
    bb_tile_stmt *s = body->stmt[i];
    const bb_expr *condition;
    if (!are_one(g, s, body->stmt[i + 1], &condition)) continue;
    const bb_expr *named = bb_tile_named(g->p, s);
    const bb_expr *a[3] = {condition, named->a[1], named->a[2]};
    bb_tile_set(g->p, s, bb_expr_rebuild(g->p->home, named, a));
    for (uint32_t k = 0; k < 2; k++)
      if (!s->at[k]) s->at[k] = body->stmt[i + 1]->at[k];
    bb_tile_remove(body, i + 1);
    i--;
  }
}

static void visit(bb_gpu *g, bb_tile_body *body) {
  join(g, body);
  for (uint32_t i = 0; i < body->count; i++) {
    bb_tile_stmt *s = body->stmt[i];
    visit(g, &s->body);
    if (s->loop) visit(g, &s->loop->body);
    if (s->kind != BB_TILE_MAP || !g->p->tile[s->result].cols) continue;
    const bb_expr *named = bb_tile_named(g->p, s), *made = rewritten(g, named);
    if (made != named) bb_tile_set(g->p, s, made);
  }
}

void bb_gpu_ends(bb_gpu *g) {
  visit(g, &g->p->body);
}
