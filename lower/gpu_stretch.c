/* gpu_stretch.c - a serial loop over blocks is split by where its masks are true.
 *
 * A mask is a map select(c, x, y), or with the condition the other way, of comparisons that are affine in
 * the coordinates, joined by `and`.  Over the blocks of a loop each comparison is true everywhere from
 * some iteration on, or up to some; blocks where all are need no mask, and blocks where one is nowhere
 * true are left out if the loop's sums stay as they are.  Masks that are more than that are asked of sets
 * (bounds.h).
 */
#include "bounds.h"
#include "gpu_mask.h"

#include <math.h>
#include <string.h>

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

static bool raise(const splitter *s, bound *from, bb_affine at) {
  if (!from->is || bb_affine_at_most(&s->scope, from->at, at))
    *from = (bound){true, at};
  else if (!bb_affine_at_most(&s->scope, at, from->at))
    return false; /* which is greater is not known */
  return true;
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
  bb_mask_linear d = {.is = true, .by = {0, -1}};
  d.rest = bb_affine_add(to, 1, bb_affine_number(-1));
  bb_affine start = bb_affine_of(stmt->at[1] ? stmt->at[1] : stmt->at[0]);
  return stmt->at[1] && start.is && start.terms == 1 && start.term[0].variable == s->n &&
         bb_mask_implies(&s->scope, stmt, c, d);
}

/* 0 <= d over the block of the statement: where that is so for every element, and for some. */
static bool add_comparison(splitter *s, const bb_tile_stmt *stmt, bb_mask_linear d) {
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
    if (by > 0) { /* 0 <= n + rest; blocks below where some element holds may run with the mask */
      bool known = raise(s, &of->from, bb_affine_add(bb_affine_number(0), -1, rest));
      if (!known && !i) return false;
    } else if (!lower(s, &of->to, bb_affine_add(rest, 1, bb_affine_number(1)))) {
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
  return add_comparison(s, stmt, bb_mask_comparison(c, holds));
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

/* The mask that is statement i `when` some element of the block is masked: as the comparison that would be false. */
static void ask_when(splitter *s, uint32_t i, const span *where) {
  bb_program *home = s->g->p->home;
  bb_tile_index n = bb_expr_arg(home, BB_I64, s->n);
  bb_tile_stmt *inner = s->loop->body.stmt[i], *when = bb_tile_stmt_new(s->g->p, BB_TILE_WHEN);
  bb_affine last = bb_affine_add(where->to.at, 1, bb_affine_number(-1));
  when->expr = bb_expr_make(home, BB_X_LT, bb_affine_index(s->g->p, last), n, NULL);
  when->stretches = inner->stretches;
  inner->stretches = 0;
  bb_tile_push(s->g->p, &when->body, inner);
  s->loop->body.stmt[i] = when;
}

/* The same of masks that hold up to some iteration. */
static void ask_of_last(splitter *s, const bool *of, const span *where, bb_affine first) {
  for (uint32_t i = 0; i < s->loop->body.count; i++)
    if (of[i] && where[i].to.is && !where[i].from.is &&
        !bb_affine_at_most(&s->scope, where[i].to.at, first)) /* else it is */
      ask_when(s, i, &where[i]);
}

/* last block; blocks up to where masks hold everywhere; those; blocks before them. */
static void split_loop(splitter *s, bool *masks, const span *where) {
  bb_tile_loop *loop = s->loop;
  bb_affine hi = s->some.to.at;
  bb_affine before_last = bb_affine_add(hi, 1, bb_affine_number(-1));
  bb_tile_index zero = bb_expr_const(s->g->p->home, BB_I64, 0), low = zero;
  bb_tile_index last = bb_affine_floor(&s->scope, before_last, s->step);
  uint32_t k = 0, masked = 1;
  /* where masks hold in no block, the one that runs is the loop's first: before it they may */
  if (!bb_affine_at_most(&s->scope, bb_affine_of(loop->stretch[0].to), hi) &&
      !bb_affine_at_most(&s->scope, bb_affine_number(1), hi))
    last = bb_expr_make(s->g->p->home, BB_X_MAX, last, zero, NULL);
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
  if (k == 2) ask_of_last(s, masks, where, first);
}

/* The first iteration of a stretch that has one for sure, else of the first one that has any; *at: the stretch. */
static bb_tile_index first_of(const bb_affine_scope *scope, const bb_tile_loop *loop,
                              uint32_t *at) {
  bb_program *home = scope->p->home;
  bb_tile_index first = loop->stretch[loop->stretches - 1].from;
  for (*at = 0; *at < loop->stretches; ++*at) {
    const bb_tile_stretch *s = &loop->stretch[*at];
    bb_affine from = bb_affine_of(s->from), to = bb_affine_of(s->to);
    bb_affine next = bb_affine_add(from, 1, bb_affine_number(1));
    if (from.is && to.is && bb_affine_at_most(scope, next, to)) return s->from;
  }
  for (uint32_t i = loop->stretches - 1; i-- > 0;) {
    const bb_tile_stretch *s = &loop->stretch[i];
    bb_tile_index none = bb_expr_make(home, BB_X_LE, s->to, s->from, NULL);
    first = bb_expr_make(home, BB_X_SELECT, none, first, s->from);
  }
  return first;
}

/* Stretches that begin behind the first iteration where that is theirs. */
static void go_on(const bb_affine_scope *scope, bb_tile_loop *loop, bb_tile_index first,
                  uint32_t at) {
  bb_program *home = scope->p->home;
  bb_tile_index next = bb_expr_make(home, BB_X_ADD, first, loop->step, NULL);
  for (uint32_t i = 0; i < loop->stretches; i++) {
    bb_tile_stretch *s = &loop->stretch[i];
    bool any = at == loop->stretches && i > 0;
    if (any) s->from = bb_expr_make(home, BB_X_MAX, s->from, next, NULL);
    if (i == at || (!any && at == loop->stretches))
      s->from = bb_expr_make(home, BB_X_ADD, s->from, loop->step, NULL);
  }
}

/* A stretch that the first iteration was all of is none. */
static bool is_over(const bb_affine_scope *scope, const bb_tile_stretch *s) {
  bb_affine from = bb_affine_of(s->from), to = bb_affine_of(s->to);
  return from.is && to.is && bb_affine_at_most(scope, to, from);
}

/* Takes the first iteration apart, as loops with stages want it, with masks.  Where the stretches have none it is one in which
 * masks hold nowhere, and changes nothing.  clean: stretches in which statements stand without them. */
static void peel(const splitter *s, uint32_t clean) {
  bb_tile_loop *loop = s->loop;
  uint32_t count = loop->stretches, all = (1u << count) - 1, at;
  if (count == BB_TILE_STRETCHES || (clean & all) == all) return;
  bb_tile_index first = first_of(&s->scope, loop, &at);
  go_on(&s->scope, loop, first, at);
  bool over = at < count && is_over(&s->scope, &loop->stretch[at]);
  uint32_t last = over ? at : count, before = (1u << at) - 1;
  for (uint32_t i = last; i > 0; i--) loop->stretch[i] = loop->stretch[i - 1];
  loop->stretch[0] = (bb_tile_stretch){first, NULL};
  loop->stretches += over ? 0 : 1;
  for (uint32_t i = 0; i < loop->body.count; i++) {
    bb_tile_stmt *stmt = loop->body.stmt[i];
    uint32_t in = stmt->stretches, masked = in != clean;
    if (!in) continue;
    if (over) in = (in >> (at + 1) << at) | (in & before);
    stmt->stretches = in << 1 | masked;
    if (!stmt->stretches) bb_tile_remove(&loop->body, i--);
  }
}

/* A loop that takes marked iterations has a question in each already: what ends with the array is one more, not a stretch, of
 * which each is the loop's body once more. */
static void ask_of_edges(splitter *s, const bool *edge, const span *where) {
  for (uint32_t i = 0; i < s->loop->body.count; i++)
    if (edge[i]) ask_when(s, i, &where[i]);
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
  bool masks[64] = {false}, edge[64] = {false}, any = false, more = false;
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
    if (!add_condition(&tried, m, e->a[0], holds_first(e))) {
      more = true;
      continue;
    }
    /* a block with nothing in it is left out only if that changes nothing */
    if (!is_without_effect(g, &loop->body, i)) tried.some = s.some;
    splitter alone = {.g = g, .scope = s.scope, .loop = loop, .n = s.n, .step = s.step};
    bool told = add_condition(&alone, m, e->a[0], holds_first(e));
    where[i] = told ? alone.all : (span){0};
    edge[i] = where[i].to.is && !where[i].from.is && alone.some.to.is &&
              ends_sooner(&s, to, alone.some.to.at);
    s = tried;
    masks[i] = any = true;
  }
  uint32_t clean = 0;
  if (more && loop->marked) ask_of_edges(&s, edge, where);
  if (more && (bb_tile_bound_loop(g->p, loop, scope, !g->strict, &clean) || loop->marked)) {
    peel(&s, clean);
    return;
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
  stretch_body(g, &g->p->body, bb_mask_scope(g));
}
