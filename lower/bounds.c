/* bounds.c - where masks hold, as intervals of a loop's variable, and the loops cut there.
 *
 * A mask is the condition of a selection in an elementwise statement right inside the loop.  Each of its
 * comparisons is brought to a row + b col + rest <= 0 over the places of a tile; with the tile's least and
 * greatest value of the left side the comparison holds somewhere (everywhere) in the tile for the
 * variables of a half-line.  `and` intersects; `or` takes the hull for "somewhere" and one side for
 * "everywhere": both err on the side that keeps the meaning.
 */
#include "bounds_parts.h"

#include <math.h>
#include <string.h>

static bb_tile_index number(const bb_bounds *b, int64_t value) {
  return bb_expr_const(b->p->home, BB_I64, (double)value);
}

static bool is_number(bb_tile_index x, double value) {
  return x->op == BB_X_CONST && x->number == value;
}

/* x y, x a number. */
static bb_tile_index times(const bb_bounds *b, int64_t x, bb_tile_index y) {
  if (x == 0) return number(b, 0);
  if (x == 1) return y;
  if (y->op == BB_X_ADD)
    return bb_expr_make(b->p->home, BB_X_ADD, times(b, x, y->a[0]), times(b, x, y->a[1]), NULL);
  if (y->op == BB_X_MUL && y->a[0]->op == BB_X_CONST)
    return times(b, x * (int64_t)y->a[0]->number, y->a[1]);
  return bb_expr_make(b->p->home, BB_X_MUL, number(b, x), y, NULL);
}

/* Numbers gather at the end. */
static bb_tile_index add(const bb_bounds *b, bb_tile_index x, bb_tile_index y) {
  if (x->op == BB_X_CONST && y->op != BB_X_CONST) return add(b, y, x);
  if (is_number(y, 0)) return x;
  if (y->op == BB_X_ADD && y->a[1]->op == BB_X_CONST) return add(b, add(b, x, y->a[0]), y->a[1]);
  if (x->op == BB_X_ADD && x->a[1]->op == BB_X_CONST) {
    bb_tile_index all = bb_expr_make(b->p->home, BB_X_ADD, x->a[1], y, NULL);
    if (y->op == BB_X_CONST) return add(b, x->a[0], all);
    return add(b, add(b, x->a[0], y), x->a[1]);
  }
  return bb_expr_make(b->p->home, BB_X_ADD, x, y, NULL);
}

static bb_tile_index make(const bb_bounds *b, bb_expr_op op, bb_tile_index x, bb_tile_index y) {
  if (op == BB_X_ADD) return add(b, x, y);
  if (op == BB_X_SUB) return add(b, x, times(b, -1, y));
  if ((op == BB_X_MIN || op == BB_X_MAX) && x == y) return x;
  return bb_expr_make(b->p->home, op, x, y, NULL);
}

/* --- affine expressions --- */

/* row * R + col * C + loop * V + rest: R and C the places in a tile, V the loop's variable. */
typedef struct affine {
  int64_t row, col, loop;
  bb_tile_index rest;
} affine;

/* x + k y */
static affine plus(const bb_bounds *b, affine x, affine y, int64_t k) {
  return (affine){x.row + k * y.row, x.col + k * y.col, x.loop + k * y.loop,
                  add(b, x.rest, times(b, k, y.rest))};
}

static bool is_whole(const bb_expr *e) {
  return e->op == BB_X_CONST && e->number == floor(e->number) && fabs(e->number) < 1e15;
}

static bool affine_of(const bb_bounds *b, const bb_expr *e, uint32_t variables, affine *out) {
  affine x, y;
  *out = (affine){.rest = number(b, 0)};
  if (bb_dtype_is_float(e->dtype)) return false;
  switch (e->op) {
  case BB_X_CONST: out->rest = e; return is_whole(e);
  case BB_X_COORD:
    *(e->index == BB_COORD_ROW ? &out->row : &out->col) = 1;
    return e->index == BB_COORD_ROW || e->index == BB_COORD_COL;
  case BB_X_ARG:
    if (e->index < variables) return false;
    if (e->index - variables == b->loop->variable)
      out->loop = 1;
    else
      out->rest = bb_expr_arg(b->p->home, BB_I64, e->index - variables);
    return true;
  case BB_X_CAST: return !bb_dtype_is_stored(e->dtype) && affine_of(b, e->a[0], variables, out);
  case BB_X_NEG:
    if (!affine_of(b, e->a[0], variables, &x)) return false;
    *out = plus(b, *out, x, -1);
    return true;
  case BB_X_ADD:
  case BB_X_SUB:
    if (!affine_of(b, e->a[0], variables, &x) || !affine_of(b, e->a[1], variables, &y))
      return false;
    *out = plus(b, x, y, e->op == BB_X_ADD ? 1 : -1);
    return true;
  case BB_X_MUL: {
    const bb_expr *by = is_whole(e->a[0]) ? e->a[0] : e->a[1];
    if (!is_whole(by) || fabs(by->number) > 1e6) return false;
    if (!affine_of(b, by == e->a[0] ? e->a[1] : e->a[0], variables, &x)) return false;
    *out = plus(b, *out, x, (int64_t)by->number);
    return true;
  }
  default: return false;
  }
}

/* --- where a condition holds --- */

static bb_interval all_of_it(void) {
  return (bb_interval){NULL, NULL, false};
}

static bb_interval meet(const bb_bounds *b, bb_interval x, bb_interval y) {
  bb_interval z = {x.from ? x.from : y.from, x.to ? x.to : y.to, x.none || y.none};
  if (x.from && y.from) z.from = make(b, BB_X_MAX, x.from, y.from);
  if (x.to && y.to) z.to = make(b, BB_X_MIN, x.to, y.to);
  return z;
}

static bb_interval hull(const bb_bounds *b, bb_interval x, bb_interval y) {
  if (x.none) return y;
  if (y.none) return x;
  bb_interval z = {NULL, NULL, false};
  if (x.from && y.from) z.from = make(b, BB_X_MIN, x.from, y.from);
  if (x.to && y.to) z.to = make(b, BB_X_MAX, x.to, y.to);
  return z;
}

/* The variables at which x, an affine expression of the loop alone, is at most 0. */
static bool half_line(const bb_bounds *b, affine x, bb_interval *out) {
  *out = all_of_it();
  if (x.loop == 1) {
    out->to = make(b, BB_X_SUB, number(b, 1), x.rest);
    return true;
  }
  if (x.loop == -1) {
    out->from = x.rest;
    return true;
  }
  return false;
}

static int64_t least(int64_t k, uint32_t size) {
  return k < 0 ? k * ((int64_t)size - 1) : 0;
}
static int64_t most(int64_t k, uint32_t size) {
  return k > 0 ? k * ((int64_t)size - 1) : 0;
}

/* left - right + extra <= 0 */
static bool compare(const bb_bounds *b, bb_mask *m, const bb_expr *left, const bb_expr *right,
                    int64_t extra) {
  affine x, y, at;
  if (!affine_of(b, left, BB_TILE_VARIABLE, &x) || !affine_of(b, right, BB_TILE_VARIABLE, &y))
    return false;
  x = plus(b, x, y, -1);
  int64_t row = x.row, col = x.col;
  if ((row && !m->at[0]) || (col && !m->at[1])) return false;
  x.row = x.col = 0;
  if (row && !affine_of(b, m->at[0], 0, &at)) return false;
  if (row) x = plus(b, x, at, row);
  if (col && !affine_of(b, m->at[1], 0, &at)) return false;
  if (col) x = plus(b, x, at, col);
  affine low = x, high = x;
  low.rest =
      make(b, BB_X_ADD, x.rest, number(b, extra + least(row, m->rows) + least(col, m->cols)));
  high.rest = make(b, BB_X_ADD, x.rest, number(b, extra + most(row, m->rows) + most(col, m->cols)));
  return half_line(b, low, &m->somewhere) && half_line(b, high, &m->everywhere);
}

static bool holds(const bb_bounds *b, bb_mask *m, const bb_expr *e) {
  bb_mask x = *m, y = *m;
  switch (e->op) {
  case BB_X_LE: return compare(b, m, e->a[0], e->a[1], 0);
  case BB_X_LT: return compare(b, m, e->a[0], e->a[1], 1);
  case BB_X_NOT:
    if (e->a[0]->op == BB_X_LE) return compare(b, m, e->a[0]->a[1], e->a[0]->a[0], 1);
    if (e->a[0]->op == BB_X_LT) return compare(b, m, e->a[0]->a[1], e->a[0]->a[0], 0);
    return false;
  case BB_X_AND:
  case BB_X_OR: {
    bool left = holds(b, &x, e->a[0]), right = holds(b, &y, e->a[1]);
    if (e->op == BB_X_OR && !(left && right)) return false;
    if (!left && !right) return false;
    /* A side that is not understood may hold anywhere, and nowhere everywhere. */
    if (!left) x.somewhere = all_of_it(), x.everywhere = (bb_interval){NULL, NULL, true};
    if (!right) y.somewhere = all_of_it(), y.everywhere = (bb_interval){NULL, NULL, true};
    if (e->op == BB_X_AND) {
      m->somewhere = meet(b, x.somewhere, y.somewhere);
      m->everywhere = meet(b, x.everywhere, y.everywhere);
    } else {
      m->somewhere = hull(b, x.somewhere, y.somewhere);
      m->everywhere = x.everywhere;
    }
    return true;
  }
  default: return false;
  }
}

/* --- masks of a loop --- */

static bool same_mask(const bb_mask *m, const bb_expr *condition, const bb_tile_stmt *s) {
  return m->condition == condition && m->at[0] == s->at[0] && m->at[1] == s->at[1];
}

static void note_mask(bb_bounds *b, const bb_tile_stmt *s, const bb_expr *condition) {
  const bb_tile *t = &b->p->tile[s->result];
  for (uint32_t i = 0; i < b->masks; i++)
    if (same_mask(&b->mask[i], condition, s)) return;
  bb_mask m = {.condition = condition,
               .at = {s->at[0], s->at[1]},
               .rows = t->rows ? t->rows : 1,
               .cols = t->cols ? t->cols : 1};
  if (b->masks < BB_BOUNDS_MASKS && condition->coord && holds(b, &m, condition))
    b->mask[b->masks++] = m;
}

bool bb_bounds_runs(const bb_bounds *b, const bb_tile_stmt *s) {
  return !s->stretches || (b->stretch != BB_NONE && s->stretches >> b->stretch & 1);
}

static void find_masks(bb_bounds *b) {
  for (uint32_t i = 0; i < b->loop->body.count; i++) {
    const bb_tile_stmt *s = b->loop->body.stmt[i];
    if (s->kind != BB_TILE_MAP || !bb_bounds_runs(b, s)) continue;
    uint32_t count;
    const bb_expr **node = bb_expr_postorder(b->scratch, s->expr, &count);
    for (uint32_t k = 0; k < count; k++)
      if (node[k]->op == BB_X_SELECT) note_mask(b, s, node[k]->a[0]);
  }
}

const bb_mask *bb_bounds_find(const bb_bounds *b, const bb_tile_stmt *s, const bb_expr *condition) {
  for (uint32_t i = 0; i < b->masks; i++)
    if (same_mask(&b->mask[i], condition, s)) return &b->mask[i];
  return NULL;
}

/* --- stretches --- */

/* Where the first block begins that does not begin below x. */
static bb_tile_index on_grid(const bb_bounds *b, bb_tile_index x) {
  bb_tile_index from = b->loop->stretch[0].from, step = b->loop->step;
  bb_tile_index past = make(b, BB_X_MAX, make(b, BB_X_SUB, x, from), number(b, 0));
  past = make(b, BB_X_ADD, past, make(b, BB_X_SUB, step, number(b, 1)));
  bb_tile_index blocks = make(b, BB_X_DIV, past, step);
  return add(b, from, times(b, (int64_t)step->number, blocks));
}

/* The expression where a mask holds everywhere. */
static const bb_expr *unmasked(bb_bounds *b, const bb_tile_stmt *s, const bb_expr *e) {
  bb_program *home = b->p->home;
  uint32_t arity = bb_expr_op_arity(e->op);
  if (e->op == BB_X_SELECT && bb_bounds_find(b, s, e->a[0]))
    return bb_expr_cast(home, e->dtype, unmasked(b, s, e->a[1])); /* of the wider arm's type */
  if (arity == 0 || !e->coord) return e;
  if (e->op == BB_X_CAST) return bb_expr_cast(home, e->dtype, unmasked(b, s, e->a[0]));
  const bb_expr *a[3] = {NULL, NULL, NULL};
  for (uint32_t i = 0; i < arity; i++) a[i] = unmasked(b, s, e->a[i]);
  return bb_expr_make(home, e->op, a[0], a[1], a[2]);
}

/* Statements that lose their mask stand twice: for the stretch `clean`, and for the others. */
static void split_body(bb_bounds *b, uint32_t clean) {
  bb_tile_body body = b->loop->body, made = {0};
  uint32_t others = ((1u << b->loop->stretches) - 1) & ~(1u << clean);
  for (uint32_t i = 0; i < body.count; i++) {
    bb_tile_stmt *s = body.stmt[i];
    bool masked = s->kind == BB_TILE_MAP && !s->stretches;
    const bb_expr *expr = masked ? unmasked(b, s, s->expr) : s->expr;
    bb_tile_stmt *kept = bb_tile_append(b->p, &made, BB_TILE_MAP);
    *kept = *s;
    if (!masked || expr == s->expr) continue;
    kept->stretches = others;
    if (expr->op == BB_X_ARG && expr->index < s->operands && s->operand[expr->index] == s->result)
      continue; /* it was masked in place: nothing is left to do */
    bb_tile_stmt *twin = bb_tile_append(b->p, &made, BB_TILE_MAP);
    *twin = *s;
    twin->stretches = 1u << clean;
    twin->expr = expr;
  }
  b->loop->body = made;
}

static bb_tile_index clamped(const bb_bounds *b, bb_tile_index x, bb_tile_index from,
                             bb_tile_index to) {
  return make(b, BB_X_MAX, from, make(b, BB_X_MIN, x, to));
}

static void cut(bb_bounds *b, bb_interval some, bb_interval clean) {
  bb_tile_loop *l = b->loop;
  bb_tile_index from = l->stretch[0].from, to = l->stretch[0].to;
  bb_tile_index first = some.from ? on_grid(b, some.from) : from;
  bb_tile_index end = some.to ? make(b, BB_X_MIN, to, some.to) : to;
  if (clean.none || (!clean.from && !clean.to)) {
    l->stretch[0] = (bb_tile_stretch){first, end};
    return;
  }
  uint32_t count = 0, at;
  bb_tile_index begin = first, last = end;
  if (clean.from) begin = make(b, BB_X_MAX, first, on_grid(b, clean.from));
  if (clean.to) last = clamped(b, on_grid(b, clean.to), begin, end);
  if (clean.from) l->stretch[count++] = (bb_tile_stretch){first, make(b, BB_X_MIN, begin, end)};
  at = count;
  l->stretch[count++] = (bb_tile_stretch){begin, last};
  /* What follows begins where the clean blocks end, on the grid: that is not `end` unless nothing follows. */
  if (clean.to)
    l->stretch[count++] = (bb_tile_stretch){make(b, BB_X_MAX, begin, on_grid(b, clean.to)), end};
  l->stretches = count;
  split_body(b, at);
}

static bool is_plain(const bb_tile_loop *l) {
  if (l->stretches != 1 || l->down || l->merge || l->spread != BB_SPREAD_NONE || !l->stretch[0].to)
    return false;
  if (l->step->op != BB_X_CONST) return false;
  for (uint32_t i = 0; i < l->body.count; i++)
    if (l->body.stmt[i]->stage || l->body.stmt[i]->stretches) return false;
  return true;
}

/* Outside of which iterations change nothing. */
static bb_interval find_idle(bb_bounds *b) {
  bb_interval some = all_of_it();
  for (uint32_t i = 0; i < b->masks && b->skip; i++) {
    bool bounded = b->mask[i].somewhere.from || b->mask[i].somewhere.to;
    if (bounded && bb_bounds_idle(b, &b->mask[i])) some = meet(b, some, b->mask[i].somewhere);
  }
  return some;
}

static void bound_loop(bb_bounds *b, bb_tile_loop *loop) {
  b->loop = loop;
  b->masks = 0;
  find_masks(b);
  if (!b->masks) return;
  bb_interval some = find_idle(b), clean = all_of_it();
  for (uint32_t i = 0; i < b->masks; i++) clean = meet(b, clean, b->mask[i].everywhere);
  if (some.from || some.to || clean.from || clean.to) cut(b, some, clean);
}

static void walk(bb_bounds *b, bb_tile_body *body) {
  for (uint32_t i = 0; i < body->count; i++) {
    bb_tile_stmt *s = body->stmt[i];
    walk(b, &s->body);
    if (s->kind != BB_TILE_LOOP) continue;
    walk(b, &s->loop->body);
    if (is_plain(s->loop)) bound_loop(b, s->loop);
  }
}

/* --- order of parallel iterations --- */

static bool names(bb_tile_index index, uint32_t variable) {
  if (index->op == BB_X_ARG) return index->index == variable;
  for (uint32_t i = 0; i < bb_expr_op_arity(index->op); i++)
    if (names(index->a[i], variable)) return true;
  return false;
}

static bool ends_by(const bb_tile_body *body, uint32_t variable) {
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    if (ends_by(&s->body, variable)) return true;
    if (s->kind != BB_TILE_LOOP) continue;
    bb_tile_index end = s->loop->stretch[s->loop->stretches - 1].to;
    if (!s->loop->parallel && end && names(end, variable)) return true;
    if (ends_by(&s->loop->body, variable)) return true;
  }
  return false;
}

/* Iterations whose inner loops end later for larger indices go last to first: the longest first. */
static void order(bb_tile_body *body) {
  for (uint32_t i = 0; i < body->count; i++) {
    bb_tile_stmt *s = body->stmt[i];
    order(&s->body);
    if (s->kind != BB_TILE_LOOP) continue;
    order(&s->loop->body);
    if (s->loop->spread != BB_SPREAD_NONE && s->loop->parallel)
      s->loop->down |= ends_by(&s->loop->body, s->loop->variable);
  }
}

void bb_tile_bound(bb_tile_program *program, bool skip) {
  bb_bounds b = {.p = program, .skip = skip, .stretch = BB_NONE};
  b.scratch = bb_scratch(program->home->ctx);
  walk(&b, &program->body);
  order(&program->body);
  bb_scratch_end(b.scratch);
}

/* --- within a stretch of another loop --- */

/* The stretches that masked statements are confined to: BB_NONE where those of one differ from those of
 * another. */
static uint32_t confined(const bb_tile_body *body) {
  uint32_t all = 0;
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    if (s->kind != BB_TILE_MAP || !s->stretches || !s->expr->coord) continue;
    if (all && all != s->stretches) return BB_NONE;
    all = s->stretches;
  }
  for (uint32_t i = 0; i < body->count; i++) {
    uint32_t with = body->stmt[i]->stretches & all;
    if (with && body->stmt[i]->stretches != all) return BB_NONE;
  }
  return all;
}

void bb_tile_bound_inner(bb_tile_program *program, bb_tile_loop *loop) {
  bb_bounds b = {.p = program, .skip = !program->home->strict, .loop = loop, .stretch = BB_NONE};
  uint32_t stretches = confined(&loop->body);
  if (stretches == BB_NONE) return;
  if (stretches) b.stretch = (uint32_t)__builtin_ctz(stretches);
  b.scratch = bb_scratch(program->home->ctx);
  find_masks(&b);
  bb_interval some = find_idle(&b);
  if (some.from || some.to) cut(&b, some, all_of_it());
  bb_scratch_end(b.scratch);
}
