/* gpu_fold.c - folds of a serial loop as a GPU wants them.
 *
 *   factors   t = select(r == r', t, t*e) + u: a = select(r == r', 1, e) once, t = t*a + u for every
 *             component that scales by it
 *   partials  a sum's terms are added in the parts that lanes hold, and made whole after the loop
 */
#include "gpu_rolling.h"

/* --- factors --- */

bool bb_gpu_split_factor(bb_gpu *g, const bb_expr *x, uint32_t t, const bb_expr **factor,
                         const bb_expr **rest) {
  bb_program *home = g->p->home;
  const bb_expr *f[2], *r[2];
  *factor = *rest = NULL;
  if (!bb_tile_names(x, t)) {
    *rest = x;
    return true;
  }
  if (bb_tile_is_name(x, t)) {
    *factor = bb_expr_const(home, BB_F32, 1);
    return true;
  }
  if (x->op == BB_X_SELECT) {
    if (bb_tile_names(x->a[0], t) || !bb_gpu_split_factor(g, x->a[1], t, &f[0], &r[0]) ||
        !bb_gpu_split_factor(g, x->a[2], t, &f[1], &r[1]) || !f[0] || !f[1] || r[0] || r[1])
      return false;
    *factor = bb_expr_make(home, BB_X_SELECT, x->a[0], f[0], f[1]);
    return true;
  }
  if (bb_expr_op_arity(x->op) != 2) return false;
  if (!bb_gpu_split_factor(g, x->a[0], t, &f[0], &r[0]) ||
      !bb_gpu_split_factor(g, x->a[1], t, &f[1], &r[1]))
    return false;
  if (x->op == BB_X_ADD && (!f[0] || !f[1])) {
    *factor = f[0] ? f[0] : f[1];
    *rest = r[0] && r[1] ? bb_expr_make(home, BB_X_ADD, r[0], r[1], NULL) : r[0] ? r[0] : r[1];
    return true;
  }
  if (x->op != BB_X_MUL || (f[0] && f[1])) return false;
  uint32_t with = f[0] ? 0 : 1;
  *factor = bb_expr_make(home, BB_X_MUL, f[with], x->a[1 - with], NULL);
  if (r[with]) *rest = bb_expr_make(home, BB_X_MUL, r[with], x->a[1 - with], NULL);
  return true;
}

typedef struct axes {
  const bb_tile_program *p;
  bool rows, cols;
} axes;

static void find_axes(axes *a, const bb_expr *x) {
  if (x->op == BB_X_ARG && x->index >= BB_TILE_NAMED) {
    a->rows |= a->p->tile[x->index - BB_TILE_NAMED].rows > 0;
    a->cols |= a->p->tile[x->index - BB_TILE_NAMED].cols > 0;
  }
  for (uint32_t i = 0; i < bb_expr_op_arity(x->op); i++) find_axes(a, x->a[i]);
}

typedef struct known {
  const bb_expr *factor;
  uint32_t tile;
} known;

static void factor_body(bb_gpu *g, bb_tile_body *body) {
  known found[16];
  uint32_t count = 0;
  for (uint32_t at = 0; at < body->count; at++) {
    bb_tile_stmt *s = body->stmt[at];
    if (s->loop) factor_body(g, &s->loop->body);
    for (uint32_t i = 0; s->result != BB_NONE && i < count; i++) /* it reads what changes here */
      if (bb_tile_names(found[i].factor, s->result)) found[i--] = found[--count];
    if (s->kind != BB_TILE_MAP || !bb_tile_reads(s, s->result) || bb_expr_uses_coord(s->expr))
      continue;
    const bb_expr *factor, *rest;
    if (!bb_gpu_split_factor(g, bb_tile_named(g->p, s), s->result, &factor, &rest) || !factor)
      continue;
    if (factor->op == BB_X_CONST || factor->op == BB_X_ARG) continue;
    axes a = {.p = g->p};
    find_axes(&a, factor);
    if (a.rows == a.cols) continue; /* no vector */
    uint32_t i = 0;
    while (i < count && found[i].factor != factor) i++;
    if (i == count && count < 16) {
      bb_tile_stmt *map = bb_tile_stmt_new(g->p, BB_TILE_MAP);
      map->result = bb_tile_like(g->p, s->result, BB_F32);
      if (!a.rows) g->p->tile[map->result].rows = 0;
      if (!a.cols) g->p->tile[map->result].cols = 0;
      bb_tile_set(g->p, map, factor);
      bb_tile_insert(g->p, body, at++, map);
      found[count++] = (known){factor, map->result};
    }
    if (i == count) continue;
    const bb_expr *scaled = bb_expr_make(g->p->home, BB_X_MUL, bb_tile_name(g->p, s->result),
                                         bb_tile_name(g->p, found[i].tile), NULL);
    if (rest) scaled = bb_expr_make(g->p->home, BB_X_ADD, scaled, rest, NULL);
    bb_tile_set(g->p, s, scaled);
  }
}

void bb_gpu_factors(bb_gpu *g) {
  factor_body(g, &g->p->body);
}

/* --- parts of sums --- */

/* Is every statement that writes the sum one of the laws of parts: 0, scaled, added to? */
typedef struct summing {
  bb_gpu *g;
  uint32_t sum, term; /* the tile that is added */
  bool wrong;
} summing;

static void check_sum(void *user, bb_tile_body *body, uint32_t at) {
  summing *c = user;
  const bb_tile_stmt *s = body->stmt[at];
  double value;
  const bb_expr *factor, *rest;
  if (s->result != c->sum) return;
  if (bb_tile_is_constant(s, &value)) {
    c->wrong |= value != 0;
    return;
  }
  if (s->kind != BB_TILE_MAP ||
      !bb_gpu_split_factor(c->g, bb_tile_named(c->g->p, s), c->sum, &factor, &rest) || !factor ||
      (rest && !bb_tile_is_name(rest, c->term)))
    c->wrong = true;
}

static bool is_partial_sum(bb_gpu *g, bb_tile_body *body, uint32_t at, uint32_t *sum) {
  const bb_tile_stmt *fold = body->stmt[at];
  bb_tile_body *all = &g->p->body;
  if (fold->kind != BB_TILE_FOLD || fold->monoid->id != BB_MONOID_SUM || fold->second != BB_NONE)
    return false;
  if (!bb_tile_is_vector(&g->p->tile[fold->result]) || g->p->tile[fold->result].dtype != BB_F32 ||
      bb_tile_readers(all, fold->result) != 1 || bb_tile_writers(all, fold->result) != 1)
    return false;
  uint32_t reader = at + 1;
  while (reader < body->count && !bb_tile_reads(body->stmt[reader], fold->result)) reader++;
  if (reader == body->count || body->stmt[reader]->kind != BB_TILE_MAP) return false;
  *sum = body->stmt[reader]->result;
  summing c = {g, *sum, fold->result, false};
  bb_tile_walk(all, check_sum, &c);
  return !c.wrong && bb_tile_reads(body->stmt[reader], *sum);
}

static void sum_in_parts(bb_gpu *g, bb_tile_body *outer, uint32_t loop, uint32_t at) {
  bb_tile_program *p = g->p;
  bb_tile_body *body = &outer->stmt[loop]->loop->body;
  uint32_t sum, term = body->stmt[at]->result;
  if (!is_partial_sum(g, body, at, &sum)) return;
  for (uint32_t i = 0; i < body->count; i++)
    if (bb_tile_reads(body->stmt[i], sum) && !bb_tile_writes(body->stmt[i], sum)) return;
  bb_tile_stmt *total = bb_tile_stmt_new(p, BB_TILE_MAP);
  total->result = bb_tile_like(p, sum, p->tile[sum].dtype);
  bb_tile_body after = {outer->count - loop - 1, outer->stmt + loop + 1};
  bb_tile_body inside = {1, outer->stmt + loop};
  if (bb_tile_readers(&after, sum) + bb_tile_readers(&inside, sum) !=
      bb_tile_readers(&p->body, sum))
    return; /* merged further out: it has to be whole under this name */
  bb_tile_rename(&after, sum, total->result);
  bb_tile_set(p, total, bb_tile_name(p, sum));
  p->tile[sum].partial = p->tile[term].partial = true;
  bb_tile_insert(p, outer, loop + 1, total);
}

static void partial_body(bb_gpu *g, bb_tile_body *body) {
  for (uint32_t i = 0; i < body->count; i++) {
    bb_tile_loop *loop = body->stmt[i]->loop;
    if (!loop) continue;
    partial_body(g, &loop->body);
    for (uint32_t at = 0; !loop->parallel && at < loop->body.count; at++)
      sum_in_parts(g, body, i, at);
  }
}

void bb_gpu_partials(bb_gpu *g) {
  partial_body(g, &g->p->body);
}
