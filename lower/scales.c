/* scales.c - constant factors moved on to where they cost least.
 *
 * x' = c x, c > 0, where x' is only compared, folded and subtracted: max(c x) = c max(x), so the factor moves on to where values
 * leave that realm.  What is kept in memory in between is x.  Values rounded before are rounded behind, alike up to that.
 */
#include "tile_edit.h"

#include <math.h>

/* How an expression depends on the tiles of a set: not at all, as a multiple, or otherwise.  ANY: 0 or
 * infinite, which is both. */
typedef enum degree { DEGREE_ANY, DEGREE_0, DEGREE_1, DEGREE_NONE } degree;

static degree join(degree a, degree b) {
  if (a == DEGREE_ANY) return b;
  return b == DEGREE_ANY || a == b ? a : DEGREE_NONE;
}

static bool is_any(const bb_expr *x) {
  return x->op == BB_X_CONST && (x->number == 0 || isinf(x->number));
}

/* By node of an expression, those it is made of before it: expressions share their parts. */
typedef struct graded {
  uint32_t count;
  const bb_expr **node;
  degree *degree;
} graded;

static uint32_t number_of(const graded *g, const bb_expr *x) {
  uint32_t i = 0;
  while (g->node[i] != x) i++;
  return i;
}

static degree degree_of(const graded *g, const bb_expr *x) {
  return g->degree[number_of(g, x)];
}

static degree grade_node(const graded *g, const bb_expr *x, const bool *set) {
  degree d[3] = {DEGREE_0, DEGREE_0, DEGREE_0};
  if (bb_tile_is_any_name(x)) return set[bb_tile_of_name(x)] ? DEGREE_1 : DEGREE_0;
  if (x->op == BB_X_CONST) return is_any(x) ? DEGREE_ANY : DEGREE_0;
  for (uint32_t i = 0; i < bb_expr_op_arity(x->op); i++) d[i] = degree_of(g, x->a[i]);
  switch (x->op) {
  case BB_X_ADD:
  case BB_X_SUB:
  case BB_X_MAX:
  case BB_X_MIN: return join(d[0], d[1]);
  case BB_X_NEG: return d[0];
  case BB_X_LT:
  case BB_X_LE:
  case BB_X_EQ:
  case BB_X_NE: return join(d[0], d[1]) == DEGREE_NONE ? DEGREE_NONE : DEGREE_0;
  case BB_X_SELECT:
    if (d[0] == DEGREE_NONE || d[0] == DEGREE_1) return DEGREE_NONE;
    return join(d[1], d[2]);
  default: break;
  }
  for (uint32_t i = 0; i < bb_expr_op_arity(x->op); i++)
    if (d[i] != DEGREE_0 && d[i] != DEGREE_ANY) return DEGREE_NONE;
  return DEGREE_0;
}

static graded grade(bb_arena *arena, const bb_expr *x, const bool *set) {
  graded g = {0};
  g.node = bb_expr_postorder(arena, x, &g.count);
  g.degree = BB_NEW(arena, degree, g.count);
  for (uint32_t i = 0; i < g.count; i++) g.degree[i] = grade_node(&g, g.node[i], set);
  return g;
}

typedef struct scaling {
  bb_tile_program *p;
  uint32_t seed; /* the tile that is a multiple where it is written, */
  double factor; /* and of what */
  bool *set;     /* by tile: holds its value over the factor */
  bool *reached, changed;
  int64_t more;
} scaling;

/* --- the factor --- */

/* x = factor y: y, or NULL; of a selection, and of its sides but for what is any multiple. */
static const bb_expr *without_factor(const scaling *c, const bb_expr *x) {
  uint32_t count;
  const bb_expr **node = bb_expr_postorder(c->p->home->arena, x, &count);
  const bb_expr **without = BB_NEW(c->p->home->arena, const bb_expr *, count);
  const graded g = {count, node, NULL};
  for (uint32_t i = 0; i < count; i++) {
    const bb_expr *e = node[i], *side[2];
    if (is_any(e)) without[i] = e;
    for (uint32_t k = 0; e->op == BB_X_MUL && e->dtype == BB_F32 && k < 2; k++)
      if (bb_expr_is_number(e->a[k], c->factor)) without[i] = e->a[1 - k];
    if (e->op != BB_X_SELECT) continue;
    for (uint32_t k = 0; k < 2; k++) side[k] = without[number_of(&g, e->a[1 + k])];
    if (side[0] && side[1])
      without[i] = bb_expr_make(c->p->home, BB_X_SELECT, e->a[0], side[0], side[1]);
  }
  return without[count - 1];
}

/* c of f * c, at the top or on a side of a selection; 0: there is none. */
static double factor_in(const bb_expr *x) {
  while (x->op == BB_X_SELECT) x = x->a[x->a[1]->op == BB_X_CONST ? 2 : 1];
  if (x->op != BB_X_MUL || x->dtype != BB_F32) return 0;
  const bb_expr *c = x->a[x->a[0]->op == BB_X_CONST ? 0 : 1];
  return c->op == BB_X_CONST && c->number > 0 && !isinf(c->number) ? c->number : 0;
}

/* Of the statements that write the seed's tile: does one make a multiple of something else?  Others may be multiples of the tile. */
static bool writes_seed(const scaling *c, const bb_tile_stmt *s) {
  return s->kind == BB_TILE_MAP && s->result == c->seed && !bb_tile_reads(s, c->seed) &&
         without_factor(c, bb_tile_named(c->p, s)) != NULL;
}

/* What the seed is made of stays as it is. */
static void check_seed(void *user, bb_tile_body *body, uint32_t at) {
  scaling *c = user;
  const bb_tile_stmt *s = body->stmt[at];
  if (!writes_seed(c, s)) return;
  for (uint32_t i = 0; i < s->operands; i++) c->set[s->operand[i]] = false;
}

/* --- the set --- */

static void drop(scaling *c, uint32_t tile) {
  if (tile == BB_NONE || !c->set[tile]) return;
  c->set[tile] = false;
  c->changed = true;
}

/* Leaves out of the set what a statement writes or reads otherwise than as a multiple. */
static void check_scale(void *user, bb_tile_body *body, uint32_t at) {
  scaling *c = user;
  const bb_tile_stmt *s = body->stmt[at];
  bool fold = s->kind == BB_TILE_FOLD && s->second == BB_NONE &&
              (s->monoid->id == BB_MONOID_MAX || s->monoid->id == BB_MONOID_MIN ||
               s->monoid->id == BB_MONOID_SUM);
  if (writes_seed(c, s)) return;
  if (s->kind == BB_TILE_MAP || s->kind == BB_TILE_ANY) {
    const bb_expr *e = bb_tile_named(c->p, s);
    graded g = grade(c->p->home->arena, e, c->set);
    degree d = degree_of(&g, e);
    if (s->kind == BB_TILE_ANY || (d != DEGREE_1 && d != DEGREE_ANY)) drop(c, s->result);
    return;
  }
  if (fold && c->set[s->operand[0]] == c->set[s->result]) return;
  if (fold) {
    drop(c, s->operand[0]);
    drop(c, s->result);
    return;
  }
  drop(c, s->result);
  drop(c, s->second);
  for (uint32_t i = 0; i < s->operands; i++) drop(c, s->operand[i]);
  for (uint32_t i = 0; s->loop && s->loop->merge && i < s->loop->merge->components; i++)
    drop(c, s->loop->merged[i]);
}

static void reach(void *user, bb_tile_body *body, uint32_t at) {
  scaling *c = user;
  const bb_tile_stmt *s = body->stmt[at];
  bool from = writes_seed(c, s);
  if (s->result == BB_NONE || !c->set[s->result] || c->reached[s->result]) return;
  for (uint32_t i = 0; i < s->operands; i++) from |= c->reached[s->operand[i]];
  if (!from) return;
  c->reached[s->result] = c->changed = true;
}

/* --- rewriting --- */

static bool compares_multiples(const graded *g, const bb_expr *x) {
  bool comparison = x->op == BB_X_EQ || x->op == BB_X_NE || x->op == BB_X_LT || x->op == BB_X_LE;
  return comparison && join(degree_of(g, x->a[0]), degree_of(g, x->a[1])) == DEGREE_1;
}

typedef struct multiplying {
  const graded *graded;
  double factor;
} multiplying;

static const bb_expr *multiply(void *user, bb_program *home, const bb_expr *x,
                               const bb_expr *const a[3]) {
  const multiplying *m = user;
  if (degree_of(m->graded, x) == DEGREE_1)
    return bb_expr_make(home, BB_X_MUL, x, bb_expr_const(home, BB_F32, m->factor), NULL);
  return compares_multiples(m->graded, x) ? x : bb_expr_rebuild(home, x, a);
}

/* The expression with tiles of the set as multiples of what they hold: the factor stands before the largest multiples;
 * comparisons of multiples stay. */
static const bb_expr *multiplied(const scaling *c, const bb_expr *x) {
  graded g = grade(c->p->home->arena, x, c->set);
  return bb_expr_rewrite(c->p->home, x, multiply, &(multiplying){&g, c->factor});
}

static void rewrite_scale(void *user, bb_tile_body *body, uint32_t at) {
  scaling *c = user;
  bb_tile_stmt *s = body->stmt[at];
  if (s->kind != BB_TILE_MAP && s->kind != BB_TILE_ANY) return;
  const bb_expr *e = bb_tile_named(c->p, s);
  if (writes_seed(c, s))
    bb_tile_set(c->p, s, without_factor(c, e));
  else if (s->kind == BB_TILE_ANY || !c->set[s->result])
    bb_tile_set(c->p, s, multiplied(c, e));
}

/* --- is it worth it? --- */

/* How many factors multiplied() puts into an expression. */
static uint32_t factors_in(const scaling *c, const bb_expr *x) {
  graded g = grade(c->p->home->arena, x, c->set);
  bool *kept = BB_NEW(c->p->home->arena, bool, g.count);
  uint32_t count = 0;
  kept[g.count - 1] = true;
  for (uint32_t i = g.count; i-- > 0;) {
    if (!kept[i] || compares_multiples(&g, g.node[i])) continue;
    if (g.degree[i] == DEGREE_1)
      count++;
    else
      for (uint32_t k = 0; k < bb_expr_op_arity(g.node[i]->op); k++)
        kept[number_of(&g, g.node[i]->a[k])] = true;
  }
  return count;
}

/* Multiplications that there would be of a block as large as the seed, less those there are. */
static void count_factors(void *user, bb_tile_body *body, uint32_t at) {
  scaling *c = user;
  const bb_tile_stmt *s = body->stmt[at];
  if (writes_seed(c, s))
    c->more -= !is_any(bb_tile_named(c->p, s));
  else if ((s->kind == BB_TILE_ANY || s->kind == BB_TILE_MAP) && !c->set[s->result] &&
           bb_tile_is_block(&c->p->tile[s->result]))
    c->more += factors_in(c, bb_tile_named(c->p, s));
}

static bool is_worth_it(scaling *c) {
  c->more = 0;
  bb_tile_walk(&c->p->body, count_factors, c);
  return bb_tile_is_block(&c->p->tile[c->seed]) && c->more <= 0;
}

static void scale_from(bb_tile_program *p, const bb_tile_stmt *s, bool sparing) {
  bb_arena *arena = p->home->arena;
  if (s->kind != BB_TILE_MAP) return;
  scaling c = {.p = p, .seed = s->result, .factor = factor_in(bb_tile_named(p, s))};
  if (c.factor == 0) return;
  c.set = BB_NEW(arena, bool, p->tiles + 1);
  for (uint32_t t = 0; t < p->tiles; t++)
    c.set[t] = p->tile[t].dtype == BB_F32 && p->tile[t].place == BB_PLACE_REGISTERS;
  bb_tile_walk(&p->body, check_seed, &c);
  if (!c.set[c.seed]) return;
  do {
    c.changed = false;
    bb_tile_walk(&p->body, check_scale, &c);
    if (c.changed) continue;
    c.reached = BB_NEW(arena, bool, p->tiles + 1);
    do {
      c.changed = false;
      bb_tile_walk(&p->body, reach, &c);
    } while (c.changed);
    for (uint32_t t = 0; t < p->tiles; t++)
      if (!c.reached[t]) drop(&c, t);
  } while (c.changed);
  if (c.set[c.seed] && (!sparing || is_worth_it(&c))) bb_tile_walk(&p->body, rewrite_scale, &c);
}

typedef struct scaling_all {
  bb_tile_program *p;
  bool sparing;
} scaling_all;

static void scale_one(void *user, bb_tile_body *body, uint32_t at) {
  const scaling_all *all = user;
  scale_from(all->p, body->stmt[at], all->sparing);
}

void bb_tile_scales(bb_tile_program *p, bool sparing) {

  bb_tile_walk(&p->body, scale_one, &(scaling_all){p, sparing});
}
