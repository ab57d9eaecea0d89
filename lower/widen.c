/* widen.c - values of 16 bits between statements are held as f32, and rounded where they go to memory or into a product.
 *
 * A GPU's registers hold f32 anyway.  Elsewhere those are widened that lead to memory alone: what a rule moved behind a
 * product, a shift or a scale, stands there, and would lose digits that the model never had in 16 bits, and a sum its range.
 * Other statements stay as they are, for a product takes their results as they round.
 */
#include "tile_edit.h"

static bool is_narrow(bb_dtype dtype) {
  return dtype == BB_F16 || dtype == BB_BF16;
}

typedef struct widening {
  bb_tile_program *p;
  bool strict;
  bool *wide;      /* by tile: becomes f32 */
  bb_dtype *dtype; /* what it was */
} widening;

static const bb_expr *widened(const widening *w, const bb_expr *x) {
  bb_program *home = w->p->home;
  const bb_expr *a[3] = {NULL, NULL, NULL};
  if (x->op == BB_X_ARG && x->index >= BB_TILE_NAMED) {
    const bb_expr *named = bb_tile_name(w->p, x->index - BB_TILE_NAMED);
    return is_narrow(named->dtype) ? bb_expr_cast(home, BB_F32, named) : named;
  }
  if (x->op == BB_X_CONST && is_narrow(x->dtype)) return bb_expr_const(home, BB_F32, x->number);
  for (uint32_t i = 0; i < bb_expr_op_arity(x->op); i++) a[i] = widened(w, x->a[i]);
  if (x->op == BB_X_CAST && is_narrow(x->dtype)) {
    const bb_expr *inner = w->strict ? bb_expr_cast(home, x->dtype, a[0]) : a[0];
    return inner->dtype == BB_F32 ? inner : bb_expr_cast(home, BB_F32, inner);
  }
  if (x->op == BB_X_CAST)
    return a[0]->dtype == x->dtype ? a[0] : bb_expr_cast(home, x->dtype, a[0]);
  return bb_expr_op_arity(x->op) ? bb_expr_make(home, x->op, a[0], a[1], a[2]) : x;
}

static void widen_map(const widening *w, bb_tile_stmt *s) {
  bb_dtype was = w->dtype[s->result], is = w->p->tile[s->result].dtype;
  const bb_expr *x = widened(w, bb_tile_named(w->p, s));
  if (w->strict && is != was)
    x = bb_expr_cast(w->p->home, was, x); /* the rounding that the program has */
  if (s->kind == BB_TILE_MAP && x->dtype != is) x = bb_expr_cast(w->p->home, is, x);
  bb_tile_set(w->p, s, x);
}

/* The operand in another type, made before statement `at`. */
static void convert(const widening *w, bb_tile_body *body, uint32_t *at, uint32_t operand,
                    bb_dtype dtype) {
  bb_tile_program *p = w->p;
  bb_tile_stmt *s = body->stmt[*at], *map = bb_tile_stmt_new(p, BB_TILE_MAP);
  uint32_t from = s->operand[operand];
  map->result = bb_tile_like(p, from, dtype);
  bb_tile_set(p, map, bb_expr_cast(p->home, dtype, bb_tile_name(p, from)));
  for (uint32_t i = 0; i < s->operands; i++)
    if (s->operand[i] == from) s->operand[i] = map->result;
  bb_tile_insert(p, body, (*at)++, map);
}

static void widen_body(const widening *w, bb_tile_body *body) {
  bb_tile_program *p = w->p;
  for (uint32_t at = 0; at < body->count; at++) {
    bb_tile_stmt *s = body->stmt[at];
    bb_dtype now = s->operands ? p->tile[s->operand[0]].dtype : BB_F32, want = now;
    switch (s->kind) {
    case BB_TILE_MAP:
    case BB_TILE_ANY: widen_map(w, s); break;
    case BB_TILE_STORE: want = p->view[s->view].dtype; break;
    case BB_TILE_FOLD:
    case BB_TILE_SCAN:
    case BB_TILE_TRANSPOSE: want = p->tile[s->result].dtype; break;
    case BB_TILE_DOT:
      for (uint32_t i = 0; i < 2; i++) {
        bb_dtype was = w->dtype[s->operand[i]];
        if (p->tile[s->operand[i]].dtype != was) convert(w, body, &at, i, was);
      }
      continue;
    default: break;
    }
    if (want != now) convert(w, body, &at, 0, want);
    widen_body(w, &s->body);
    if (s->loop) widen_body(w, &s->loop->body);
  }
}

static widening new_widening(bb_tile_program *p, bool strict) {
  widening w = {.p = p, .strict = strict};
  w.wide = BB_NEW(p->home->arena, bool, p->tiles + 1);
  w.dtype = BB_NEW(p->home->arena, bb_dtype, p->tiles + 1);
  for (uint32_t t = 0; t < p->tiles; t++) {
    w.dtype[t] = p->tile[t].dtype;
    w.wide[t] = is_narrow(w.dtype[t]);
  }
  return w;
}

/* False: there is nothing to widen. */
static bool widen_tiles(const widening *w) {
  bool any = false;
  for (uint32_t t = 0; t < w->p->tiles; t++) {
    any |= w->wide[t];
    if (w->wide[t]) w->p->tile[t].dtype = BB_F32;
  }
  return any;
}

static void keep_loaded(void *user, bb_tile_body *body, uint32_t at) {
  const bb_tile_stmt *s = body->stmt[at];
  if (s->kind == BB_TILE_LOAD) ((widening *)user)->wide[s->result] = false;
}

void bb_tile_widen(bb_tile_program *p, bool strict) {
  widening w = new_widening(p, strict);
  bb_tile_walk(&p->body, keep_loaded, &w);
  widen_tiles(&w);
  widen_body(&w, &p->body);
}

/* --- what leads to memory alone --- */

typedef struct closure {
  widening w;
  bool changed;
} closure;

/* Only maps and transposes make such values, and only they and stores read them. */
static void keep_others(void *user, bb_tile_body *body, uint32_t at) {
  closure *c = user;
  const bb_tile_stmt *s = body->stmt[at];
  bool *wide = c->w.wide, moves = s->kind == BB_TILE_MAP || s->kind == BB_TILE_TRANSPOSE;
  bool leads = s->kind == BB_TILE_STORE || (moves && wide[s->result]), was = false;
  for (uint32_t i = 0; i < s->operands && !leads; i++) {
    was |= wide[s->operand[i]];
    wide[s->operand[i]] = false;
  }
  for (uint32_t i = 0; s->loop && s->loop->merge && i < s->loop->merge->components; i++) {
    was |= wide[s->loop->merged[i]];
    wide[s->loop->merged[i]] = false;
  }
  bool made = s->result != BB_NONE && wide[s->result];
  bool held = s->kind == BB_TILE_TRANSPOSE && made && !wide[s->operand[0]];
  if (made && (!moves || held)) {
    wide[s->result] = false;
    was = true;
  }
  c->changed |= was;
}

static void widen_results(void *user, bb_tile_body *body, uint32_t at) {
  const widening *w = user;
  bb_tile_stmt *s = body->stmt[at];
  if (s->kind == BB_TILE_MAP && w->wide[s->result]) widen_map(w, s);
}

static void round_stored(const widening *w, bb_tile_body *body) {
  for (uint32_t at = 0; at < body->count; at++) {
    bb_tile_stmt *s = body->stmt[at];
    if (s->kind == BB_TILE_STORE && w->wide[s->operand[0]])
      convert(w, body, &at, 0, w->p->view[s->view].dtype);
    round_stored(w, &s->body);
    if (s->loop) round_stored(w, &s->loop->body);
  }
}

void bb_tile_widen_results(bb_tile_program *p) {
  closure c = {.w = new_widening(p, false)};
  do {
    c.changed = false;
    bb_tile_walk(&p->body, keep_others, &c);
  } while (c.changed);
  if (!widen_tiles(&c.w)) return;
  bb_tile_walk(&p->body, widen_results, &c.w);
  round_stored(&c.w, &p->body);
}
