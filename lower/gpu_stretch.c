/* gpu_stretch.c - masks of blocks: those that change nothing go, and a serial loop over blocks is split by
 * where the others are true.
 *
 * A mask is a map select(c, x, y), or with the condition the other way, of comparisons that are affine in
 * the coordinates, joined by `and`.  Over the blocks of a loop each comparison is true everywhere from
 * some iteration on, or up to some; blocks where all are need no mask, and blocks where one is nowhere
 * true are left out if the loop's sums stay as they are.
 */
#include "gpu.h"

#include "affine.h"

#include <math.h>
#include <string.h>

/* --- fillings that change nothing --- */

typedef struct mask {
  const bb_expr *condition; /* named */
  uint32_t tile;
  double fill;
} mask;

/* tile = select(condition, tile, fill) */
static bool is_filling(const bb_gpu *g, const bb_tile_stmt *s, mask *m) {
  if (s->kind != BB_TILE_MAP || !bb_expr_uses_coord(s->expr)) return false;
  const bb_expr *e = bb_tile_named(g->p, s);
  if (e->op != BB_X_SELECT || e->a[2]->op != BB_X_CONST) return false;
  if (e->a[1]->op != BB_X_ARG || e->a[1]->index != BB_TILE_NAMED + s->result) return false;
  *m = (mask){e->a[0], s->result, e->a[2]->number};
  return true;
}

static const bb_expr *number(const bb_gpu *g, double value) {
  return bb_expr_const(g->p->home, BB_F32, value);
}

/* The expression with each tile other than `tile` that one map of a single operand makes here expanded,
 * so that what that map excludes is known. */
static const bb_expr *expanded(const bb_gpu *g, const bb_tile_body *body, uint32_t at,
                               const bb_expr *e, uint32_t tile) {
  const bb_tile_stmt *s = body->stmt[at];
  for (uint32_t i = 0; i < s->operands; i++) {
    if (s->operand[i] == tile) continue;
    uint32_t k = at;
    while (k > 0 && !bb_tile_writes(body->stmt[k - 1], s->operand[i])) k--;
    if (k == 0) continue;
    const bb_tile_stmt *made = body->stmt[k - 1];
    if (made->kind == BB_TILE_MAP && made->operands == 1 && !bb_expr_uses_coord(made->expr) &&
        made->operand[0] != tile && made->operand[0] != s->operand[i])
      e = bb_tile_replace(g->p, e, s->operand[i], bb_tile_named(g->p, made));
  }
  return e;
}

static bool always_is(const bb_gpu *g, const bb_expr *e, double value) {
  static const double sample[] = {0, 1, -2.5, 3e30, -3e30, INFINITY, -INFINITY};
  const uint32_t samples = sizeof sample / sizeof *sample;
  uint32_t tile[4], tiles = 0, ways = 1;
  for (uint32_t t = 0; t < g->p->tiles; t++) {
    if (!bb_tile_names(e, t)) continue;
    if (tiles == 4) return false;
    tile[tiles++] = t, ways *= samples;
  }
  for (uint32_t way = 0; way < ways; way++) {
    const bb_expr *x = e;
    for (uint32_t i = 0, rest = way; i < tiles; i++, rest /= samples)
      x = bb_tile_replace(g->p, x, tile[i], number(g, sample[rest % samples]));
    if (bb_expr_eval(x, &(bb_expr_env){0}) != value) return false;
  }
  return true;
}

/* Does a load give `fill` where a condition, that the column is below the extent of what is loaded,
 * does not hold? */
static bool fills_beyond(const bb_gpu *g, const bb_tile_stmt *load, const bb_tile_stmt *mask_stmt,
                         const bb_expr *condition, double *fill) {
  if (load->kind != BB_TILE_LOAD || condition->op != BB_X_LT) return false;
  const bb_expr *col = condition->a[0], *limit = condition->a[1];
  if (col->op != BB_X_COORD || col->index != BB_COORD_COL) return false;
  const bb_tile_view *view = &g->p->view[load->view];
  *fill = load->pad;
  for (uint32_t i = 0; i < view->rank; i++) {
    const bb_tile_range *r = &load->range[i];
    if (!r->size || r->axis != BB_AXIS_COL) continue;
    bb_tile_index extent = view->extent[i];
    bool same = extent->op == BB_X_CONST ? limit == extent
                                         : extent->op == BB_X_ARG && limit->op == BB_X_ARG &&
                                               limit->index == BB_TILE_VARIABLE + extent->index;
    return same && r->start == mask_stmt->at[1];
  }
  return false;
}

/* Is what the statement before made of a tile that the same condition filled already the filling? */
static bool is_filled(const bb_gpu *g, const bb_tile_body *body, uint32_t at) {
  mask m, earlier;
  if (!is_filling(g, body->stmt[at], &m) || at == 0) return false;
  uint32_t made = at;
  while (made > 0 && !bb_tile_writes(body->stmt[made - 1], m.tile)) made--;
  if (made-- == 0 || body->stmt[made]->kind != BB_TILE_MAP) return false;
  const bb_tile_stmt *map = body->stmt[made];
  if (bb_expr_uses_coord(map->expr)) return false;
  for (uint32_t i = 0; i < map->operands; i++) {
    uint32_t k = made, x = map->operand[i];
    while (k > 0 && !bb_tile_writes(body->stmt[k - 1], x)) k--;
    if (k > 0 && fills_beyond(g, body->stmt[k - 1], body->stmt[at], m.condition, &earlier.fill)) {
      const bb_expr *pad = bb_expr_const(g->p->home, g->p->tile[x].dtype, earlier.fill);
      const bb_expr *e = expanded(g, body, made, bb_tile_named(g->p, map), x);
      if (always_is(g, bb_tile_replace(g->p, e, x, pad), m.fill)) return true;
    }
    if (k == 0 || !is_filling(g, body->stmt[k - 1], &earlier)) continue;
    if (earlier.condition != m.condition || body->stmt[k - 1]->at[0] != body->stmt[at]->at[0] ||
        body->stmt[k - 1]->at[1] != body->stmt[at]->at[1])
      continue;
    const bb_expr *e = expanded(g, body, made, bb_tile_named(g->p, map), x);
    if (always_is(g, bb_tile_replace(g->p, e, x, number(g, earlier.fill)), m.fill)) return true;
  }
  return false;
}

/* --- masks that others imply --- */

/* A side of a comparison as row * by[0] + col * by[1] + rest. */
typedef struct linear {
  bool is;
  int64_t by[2];
  bb_affine rest;
} linear;

static linear linear_add(linear a, int64_t by, linear b) {
  a.is = a.is && b.is;
  a.by[0] += by * b.by[0];
  a.by[1] += by * b.by[1];
  a.rest = bb_affine_add(a.rest, by, b.rest);
  return a;
}

static linear linear_of(const bb_expr *x) {
  linear l = {.is = true, .rest = bb_affine_number(0)}, zero = l;
  switch (x->op) {
  case BB_X_CONST:
    if (x->number != floor(x->number) || fabs(x->number) > 0x1p40) return (linear){0};
    l.rest = bb_affine_number((int64_t)x->number);
    return l;
  case BB_X_COORD:
    if (x->index > BB_COORD_COL) return (linear){0};
    l.by[x->index] = 1;
    return l;
  case BB_X_ARG:
    if (x->index < BB_TILE_VARIABLE || x->index >= BB_TILE_NAMED) return (linear){0};
    l.rest = bb_affine_variable(x->index - BB_TILE_VARIABLE);
    return l;
  case BB_X_NEG: return linear_add(zero, -1, linear_of(x->a[0]));
  case BB_X_ADD: return linear_add(linear_of(x->a[0]), 1, linear_of(x->a[1]));
  case BB_X_SUB: return linear_add(linear_of(x->a[0]), -1, linear_of(x->a[1]));
  default: return (linear){0};
  }
}

/* The comparison as 0 <= linear. */
static linear comparison_of(const bb_expr *c, bool holds) {
  linear one = {.is = true, .rest = bb_affine_number(1)};
  if (c->op != BB_X_LT && c->op != BB_X_LE) return (linear){0};
  linear a = linear_of(c->a[0]), b = linear_of(c->a[1]);
  linear d = holds ? linear_add(b, -1, a) : linear_add(a, -1, b); /* a <= b; b < a */
  return holds == (c->op == BB_X_LT) ? linear_add(d, -1, one) : d;
}

/* Does the condition say that d is not negative, in rows below their limit?  What stands in rows beyond is
 * left out where the tile is stored, or filled before anything is folded over rows. */
static bool implies(const bb_affine_scope *scope, const bb_tile_stmt *s, const bb_expr *c,
                    linear d) {
  if (c->op == BB_X_AND) return implies(scope, s, c->a[0], d) || implies(scope, s, c->a[1], d);
  linear rest = linear_add(d, -1, comparison_of(c, true));
  bb_affine row = bb_affine_of(s->at[0] ? s->at[0] : s->at[1]);
  if (!rest.is || rest.by[1] != 0 || rest.by[0] > 0 || !row.is || row.terms != 1 || row.constant)
    return false;
  const bb_tile_loop *loop = scope->loop[row.term[0].variable];
  if (!loop || !s->at[0] || row.term[0].by != 1 || loop->stretches != 1 || !loop->stretch[0].to)
    return false;
  bb_affine last = bb_affine_add(bb_affine_of(loop->stretch[0].to), 1, bb_affine_number(-1));
  return bb_affine_at_most(scope, bb_affine_number(0), bb_affine_add(rest.rest, rest.by[0], last));
}

/* A filling right behind another of the same tile and number, whose condition implies its own. */
static bool is_implied(const bb_gpu *g, const bb_affine_scope *scope, const bb_tile_body *body,
                       uint32_t at) {
  mask m, earlier;
  if (at == 0 || !is_filling(g, body->stmt[at], &m) ||
      !is_filling(g, body->stmt[at - 1], &earlier) || earlier.tile != m.tile ||
      memcmp(&earlier.fill, &m.fill, sizeof m.fill) != 0)
    return false;
  linear d = comparison_of(m.condition, true);
  return d.is && implies(scope, body->stmt[at], earlier.condition, d);
}

static void fill_body(bb_gpu *g, bb_tile_body *body, const bb_tile_loop **scope) {
  bb_affine_scope known = {g->p, scope};
  for (uint32_t at = 0; at < body->count; at++) {
    bb_tile_loop *loop = body->stmt[at]->loop;
    if (loop) scope[loop->variable] = loop;
    if (loop) fill_body(g, &loop->body, scope);
    if (loop) scope[loop->variable] = NULL;
    if (is_filled(g, body, at)) bb_tile_remove(body, at--);
  }
  for (uint32_t at = 0; at < body->count; at++)
    if (is_implied(g, &known, body, at)) bb_tile_remove(body, at--);
}

static const bb_tile_loop **new_scope(const bb_gpu *g) {
  return BB_NEW(g->p->home->arena, const bb_tile_loop *, g->p->variables + 1);
}

void bb_gpu_fills(bb_gpu *g) {
  fill_body(g, &g->p->body, new_scope(g));
}

/* --- where a condition is true --- */

typedef struct bound {
  bool is;
  bb_affine at;
} bound;

/* Iterations n with from <= n < to. */
typedef struct span {
  bound from, to;
} span;

typedef struct splitter {
  bb_gpu *g;
  bb_affine_scope scope;
  bb_tile_loop *loop;
  uint32_t n; /* its variable */
  int64_t step;
  span all;  /* every mask is true everywhere */
  span some; /* none is nowhere true */
  bool ends; /* the mask at hand is true in no block beyond the loop's last */
} splitter;

static void raise(const splitter *s, bound *from, bb_affine at) {
  if (!from->is || bb_affine_at_most(&s->scope, from->at, at)) *from = (bound){true, at};
}

/* Are the blocks that begin below a sure to begin below b? */
static bool ends_sooner(const splitter *s, bb_affine a, bb_affine b) {
  bb_affine last =
      bb_affine_floor_sum(&s->scope, bb_affine_add(a, 1, bb_affine_number(-1)), s->step);
  return bb_affine_at_most(&s->scope, a, b) ||
         bb_affine_at_most(&s->scope, bb_affine_add(last, 1, bb_affine_number(1)), b);
}

static bool lower(const splitter *s, bound *to, bb_affine at) {
  if (!to->is || ends_sooner(s, at, to->at))
    *to = (bound){true, at};
  else if (!ends_sooner(s, to->at, at))
    return false; /* which is less is not known */
  return true;
}

/* Is the mask true nowhere from the loop's end on?  Then the loop may as well go on for as long as the mask allows. */
static bool is_within(const splitter *s, const bb_tile_stmt *stmt, const bb_expr *c, bb_affine to) {
  linear d = {.is = true, .by = {0, -1}};
  d.rest = bb_affine_add(to, 1, bb_affine_number(-1));
  bb_affine start = bb_affine_of(stmt->at[1] ? stmt->at[1] : stmt->at[0]);
  return stmt->at[1] && start.is && start.terms == 1 && start.term[0].variable == s->n &&
         implies(&s->scope, stmt, c, d);
}

/* 0 <= d over the block of the statement: where that is so for every element, and for some. */
static bool add_comparison(splitter *s, const bb_tile_stmt *stmt, linear d) {
  const bb_tile *t = &s->g->p->tile[stmt->result];
  uint32_t size[2] = {t->rows, t->cols};
  bb_affine least = d.rest, most = d.rest;
  if (!d.is) return false;
  for (uint32_t axis = 0; axis < 2; axis++) {
    if (d.by[axis] == 0) continue;
    bb_affine start = bb_affine_of(stmt->at[axis]);
    bb_affine end = bb_affine_add(start, 1, bb_affine_number((int64_t)size[axis] - 1));
    least = bb_affine_add(least, d.by[axis], d.by[axis] > 0 ? start : end);
    most = bb_affine_add(most, d.by[axis], d.by[axis] > 0 ? end : start);
  }
  for (uint32_t i = 0; i < 2; i++) {
    bb_affine x = i ? most : least;
    span *of = i ? &s->some : &s->all;
    int64_t by = 0;
    for (uint32_t k = 0; k < x.terms; k++)
      if (x.term[k].variable == s->n) by = x.term[k].by;
    if (!x.is || (by != 1 && by != -1)) return false;
    bb_affine rest = bb_affine_add(x, -by, bb_affine_variable(s->n));
    if (by > 0) /* 0 <= n + rest */
      raise(s, &of->from, bb_affine_add(bb_affine_number(0), -1, rest));
    else if (!lower(s, &of->to, bb_affine_add(rest, 1, bb_affine_number(1)))) {
      if (!i || !s->ends) return false;
      of->to.at = bb_affine_add(rest, 1, bb_affine_number(1));
    }
  }
  return true;
}

static bool add_condition(splitter *s, const bb_tile_stmt *stmt, const bb_expr *c, bool holds) {
  if (c->op == BB_X_NOT) return add_condition(s, stmt, c->a[0], !holds);
  if (c->op == (holds ? BB_X_AND : BB_X_OR))
    return add_condition(s, stmt, c->a[0], holds) && add_condition(s, stmt, c->a[1], holds);
  return add_comparison(s, stmt, comparison_of(c, holds));
}

/* Does the value where the mask holds stand first? */
static bool holds_first(const bb_expr *select) {
  return select->a[1]->op != BB_X_CONST;
}

static bool is_mask(const bb_gpu *g, const bb_tile_stmt *s) {
  if (s->kind != BB_TILE_MAP || s->stretches || !bb_expr_uses_coord(s->expr)) return false;
  const bb_expr *e = bb_tile_named(g->p, s);
  if (e->op != BB_X_SELECT || !bb_expr_uses_coord(e->a[0])) return false;
  const bb_expr *kept = e->a[holds_first(e) ? 1 : 2], *fill = e->a[holds_first(e) ? 2 : 1];
  return fill->op == BB_X_CONST && kept == bb_tile_name(g->p, s->result);
}

/* --- is a masked block without effect? --- */

/* x where r stands for every unknown: what is left of an expression once an element is filled. */
static const bb_expr *reduced(const bb_gpu *g, const bb_expr *x, const bb_expr *const *value) {
  bb_program *home = g->p->home;
  const bb_expr *a[3] = {NULL, NULL, NULL};
  if (x->op == BB_X_ARG && x->index >= BB_TILE_NAMED) {
    const bb_expr *known = value[x->index - BB_TILE_NAMED];
    return known ? known : x;
  }
  for (uint32_t i = 0; i < bb_expr_op_arity(x->op); i++) a[i] = reduced(g, x->a[i], value);
  bool zero[2] = {a[0] && a[0]->op == BB_X_CONST && a[0]->number == 0,
                  a[1] && a[1]->op == BB_X_CONST && a[1]->number == 0};
  bool least[2] = {a[0] && a[0]->op == BB_X_CONST && a[0]->number == -INFINITY,
                   a[1] && a[1]->op == BB_X_CONST && a[1]->number == -INFINITY};
  if (x->op == BB_X_MAX && (least[0] || least[1])) return a[least[0] ? 1 : 0];
  if (x->op == BB_X_EQ && a[0] == a[1]) return bb_expr_const(home, BB_BOOL, 1);
  if (x->op == BB_X_SELECT && a[0]->op == BB_X_CONST) return a[a[0]->number != 0 ? 1 : 2];
  if (x->op == BB_X_SELECT && a[1] == a[2]) return a[1];
  if (x->op == BB_X_ADD && (zero[0] || zero[1])) return a[zero[0] ? 1 : 0];
  if (x->op == BB_X_MUL && (zero[0] || zero[1])) return a[zero[0] ? 0 : 1];
  /* an infinite term less than a guarded bound, which is none */
  if ((x->op == BB_X_SUB || x->op == BB_X_ADD) && least[0]) return a[0];
  if ((x->op == BB_X_EXP || (x->op == BB_X_POW && x->a[0]->op == BB_X_CONST)) &&
      least[x->op == BB_X_EXP ? 0 : 1])
    return bb_expr_const(home, BB_F32, 0);
  if (x->op == BB_X_CAST && (zero[0] || least[0]))
    return bb_expr_const(home, x->dtype, a[0]->number);
  if (x->op == BB_X_CAST) return bb_expr_cast(home, x->dtype, a[0]);
  return bb_expr_op_arity(x->op) ? bb_expr_make(home, x->op, a[0], a[1], a[2]) : x;
}

/* Every tile that the body hands on is what it was, when all elements of the mask's tile are filled. */
static bool is_without_effect(const bb_gpu *g, const bb_tile_body *body, uint32_t mask_at) {
  bb_tile_program *p = g->p;
  const bb_expr **value = BB_NEW(p->home->arena, const bb_expr *, p->tiles + 1);
  const bb_expr *e = bb_tile_named(p, body->stmt[mask_at]);
  value[body->stmt[mask_at]->result] = e->a[holds_first(e) ? 2 : 1];
  bool *changed = BB_NEW(p->home->arena, bool, p->tiles + 1);
  for (uint32_t i = 0; i <= mask_at; i++)
    if (body->stmt[i]->result != BB_NONE) changed[body->stmt[i]->result] = true;
  for (uint32_t i = mask_at + 1; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    const bb_expr *of = s->operands ? value[s->operand[0]] : NULL;
    bool constant = of && of->op == BB_X_CONST;
    if (s->kind == BB_TILE_MAP) {
      const bb_expr *x = reduced(g, bb_tile_named(p, s), value);
      bool same = x == bb_tile_name(p, s->result) && !value[s->result];
      value[s->result] = same ? NULL : x;
      changed[s->result] = !same;
    } else if (s->kind == BB_TILE_FOLD && s->second == BB_NONE && constant) {
      bool stays = s->monoid->id == BB_MONOID_MAX || s->monoid->id == BB_MONOID_MIN ||
                   (s->monoid->id == BB_MONOID_SUM && of->number == 0);
      value[s->result] = stays ? of : NULL;
      changed[s->result] = true;
    } else if (s->kind == BB_TILE_DOT && s->accumulate && constant && of->number == 0) {
      continue; /* nothing is added, where the other side is finite */
    } else if (s->kind == BB_TILE_LOAD) {
      value[s->result] = NULL;
      changed[s->result] = true;
    } else {
      return false;
    }
  }
  /* what is read before it is written here comes from the iteration before */
  for (uint32_t t = 0; t < p->tiles; t++) {
    bool seen = false;
    for (uint32_t i = 0; i < body->count && !seen; i++) {
      if (changed[t] && bb_tile_reads(body->stmt[i], t)) return false;
      seen = bb_tile_writes(body->stmt[i], t);
    }
  }
  return true;
}

/* --- the loop's stretches --- */

static bb_tile_index clipped(splitter *s, bb_affine a, bb_tile_index low, bb_tile_index high) {
  bb_program *home = s->g->p->home;
  bb_tile_index x = bb_affine_floor(&s->scope, a, s->step);
  if (!(x->op == BB_X_CONST && low->op == BB_X_CONST && x->number >= low->number))
    x = bb_expr_make(home, BB_X_MAX, x, low, NULL);
  return high ? bb_expr_make(home, BB_X_MIN, x, high, NULL) : x;
}

static void confine(const splitter *s, bool *of, uint32_t stretches) {
  for (uint32_t i = 0; i < s->loop->body.count; i++)
    if (of[i]) s->loop->body.stmt[i]->stretches = stretches;
}

/* `when` some element of the last block is masked: the mask; as the comparison that would be false. */
static void ask_when(splitter *s, const bool *of, const span *where, bb_affine first) {
  bb_program *home = s->g->p->home;
  bb_tile_index n = bb_expr_arg(home, BB_I64, s->n);
  for (uint32_t i = 0; i < s->loop->body.count; i++) {
    if (!of[i] || !where[i].to.is || where[i].from.is) continue;
    if (bb_affine_at_most(&s->scope, where[i].to.at, first)) continue; /* it is */
    bb_tile_stmt *inner = s->loop->body.stmt[i], *when = bb_tile_stmt_new(s->g->p, BB_TILE_WHEN);
    bb_affine last = bb_affine_add(where[i].to.at, 1, bb_affine_number(-1));
    when->expr = bb_expr_make(home, BB_X_LT, bb_affine_index(s->g->p, last), n, NULL);
    when->stretches = inner->stretches;
    inner->stretches = 0;
    bb_tile_push(s->g->p, &when->body, inner);
    s->loop->body.stmt[i] = when;
  }
}

/* last block; blocks up to where masks hold everywhere; those; blocks before them. */
static void split_loop(splitter *s, bool *masks, const span *where) {
  bb_tile_loop *loop = s->loop;
  bb_affine hi = s->some.to.at;
  bb_affine before_last = bb_affine_add(hi, 1, bb_affine_number(-1));
  bb_tile_index zero = bb_expr_const(s->g->p->home, BB_I64, 0), low = zero;
  bb_tile_index last = bb_affine_floor(&s->scope, before_last, s->step);
  uint32_t k = 0, masked = 1;
  if (s->some.from.is) low = clipped(s, s->some.from.at, zero, last);
  loop->down = true;
  loop->stretch[k++] = (bb_tile_stretch){last, NULL};
  bb_tile_index end = last;
  if (s->all.to.is) {
    bb_affine up = bb_affine_add(s->all.to.at, 1, bb_affine_number(s->step - 1));
    bb_affine sum = bb_affine_floor_sum(&s->scope, up, s->step);
    bb_affine of_last = bb_affine_floor_sum(&s->scope, before_last, s->step);
    bool none = bb_affine_at_most(&s->scope, bb_affine_add(hi, 1, bb_affine_number(-s->step)),
                                  s->all.to.at) ||
                (sum.is && of_last.is && bb_affine_at_most(&s->scope, of_last, sum));
    if (!none) {
      end = clipped(s, up, low, last);
      masked |= 1u << k;
      loop->stretch[k++] = (bb_tile_stretch){end, last};
    }
  }
  bb_tile_index begin = low;
  if (s->all.from.is)
    begin = clipped(s, bb_affine_add(s->all.from.at, 1, bb_affine_number(s->step - 1)), low, end);
  loop->stretch[k++] = (bb_tile_stretch){begin, end};
  if (begin != low) {
    masked |= 1u << k;
    loop->stretch[k++] = (bb_tile_stretch){low, begin};
  }
  loop->stretches = k;
  confine(s, masks, masked);
  bb_affine first = bb_affine_floor_sum(&s->scope, before_last, s->step);
  if (k == 2) ask_when(s, masks, where, first);
}

/* A loop that folds and may run in any order, over blocks from 0 on. */
static bool is_plain_loop(const bb_tile_loop *loop) {
  return !loop->parallel && loop->commutes && loop->stretches == 1 && loop->stretch[0].to &&
         loop->stretch[0].from->op == BB_X_CONST && loop->stretch[0].from->number == 0 &&
         loop->step->op == BB_X_CONST && loop->step->number > 1;
}

static void stretch_loop(bb_gpu *g, bb_tile_loop *loop, const bb_tile_loop **scope) {
  splitter s = {.g = g, .scope = {g->p, scope}, .loop = loop, .n = loop->variable};
  bb_affine to = bb_affine_of(loop->stretch[0].to);
  bool masks[64] = {false}, any = false;
  span where[64];
  if (loop->body.count > 64 || !to.is) return;
  s.step = (int64_t)loop->step->number;
  s.some.to = (bound){true, to};
  for (uint32_t i = 0; i < loop->body.count; i++) {
    const bb_tile_stmt *m = loop->body.stmt[i];
    if (!is_mask(g, m)) continue;
    splitter tried = s;
    const bb_expr *e = bb_tile_named(g->p, m);
    tried.ends = holds_first(e) && is_within(&s, m, e->a[0], to);
    if (!add_condition(&tried, m, e->a[0], holds_first(e))) continue;
    /* a block with nothing in it is left out only if that changes nothing */
    if (!is_without_effect(g, &loop->body, i)) tried.some = s.some;
    splitter alone = {.g = g, .scope = s.scope, .loop = loop, .n = s.n, .step = s.step};
    add_condition(&alone, m, e->a[0], holds_first(e));
    where[i] = alone.all;
    s = tried;
    masks[i] = any = true;
  }
  if (any) split_loop(&s, masks, where);
}

static void stretch_body(bb_gpu *g, bb_tile_body *body, const bb_tile_loop **scope) {
  for (uint32_t i = 0; i < body->count; i++) {
    bb_tile_loop *loop = body->stmt[i]->loop;
    if (!loop) continue;
    scope[loop->variable] = loop;
    stretch_body(g, &loop->body, scope);
    if (is_plain_loop(loop)) stretch_loop(g, loop, scope);
    scope[loop->variable] = NULL;
  }
}

void bb_gpu_stretches(bb_gpu *g) {
  stretch_body(g, &g->p->body, new_scope(g));
}
