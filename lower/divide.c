/* divide.c - a block that is divided by a vector is multiplied with two of them, which are made once for each row.
 *
 *     y = x / v         ==>         c = |v| < 2**-64 ? 2**64 : |v| > 2**64 ? 2**-64 : 1
 *                                   r = 1 / (v * c)
 *                                   y = x * c * r
 *
 * A division takes as long as a dozen products.  One with 1 / v alone would not do: v may be so small that this
 * overflows where x / v does not, or so large that it has lost its last digits.  With c, a power of two, it neither
 * overflows nor is subnormal.  Nor does x * c overflow unless x / v does: |x| is at least 2**64 then, and |v| less than
 * 2**-64.  And what x * c loses as a subnormal number, x / v loses too.  Two last digits may differ, so what is rounded to
 * whole numbers, or compared, is divided.
 */
#include "divide.h"

#include "tile_edit.h"

enum { FEWEST = 4 /* elements that a reciprocal serves */, DIVISORS = 4 };

typedef struct divider {
  bb_tile_program *p;
  bb_tile_body *body;
  uint32_t at;          /* of the statement in it */
  bb_tile to;           /* what it makes */
  const bb_expr *named; /* its expression */
  uint32_t nodes;
  const bb_expr **node; /* of it; NULL: nobody asked */
  bool *exact;          /* by node: a quotient stays one */
  uint32_t divisors;
  struct divisor {
    const bb_expr *v, *c, *r;
  } divisor[DIVISORS];
} divider;

/* What a named expression reads: the axes of its tiles, or that it is more than a function of tiles. */
typedef struct shape {
  bool rows, cols, other;
} shape;

static shape shape_of(const divider *d, const bb_expr *e) {
  uint32_t count;
  const bb_expr **node = bb_expr_postorder(d->p->home->arena, e, &count);
  shape s = {.other = e->coord};
  for (uint32_t i = 0; i < count; i++) {
    if (node[i]->op != BB_X_ARG) continue;
    if (node[i]->index < BB_TILE_NAMED) return (shape){.other = true};
    const bb_tile *t = &d->p->tile[node[i]->index - BB_TILE_NAMED];
    s.rows |= t->rows;
    s.cols |= t->cols;
  }
  return s;
}

static bool is_single(bb_dtype dtype) {
  return dtype == BB_F32 || dtype == BB_F16 || dtype == BB_BF16;
}

/* Does a step lie in what comes of it, which another last digit may fall on the other side of? */
static bool has_steps(const bb_expr *e) {
  switch (e->op) {
  case BB_X_FLOOR:
  case BB_X_CEIL:
  case BB_X_ROUND:
  case BB_X_SIGN:
  case BB_X_MOD:
  case BB_X_FMOD:
  case BB_X_LT:
  case BB_X_LE:
  case BB_X_EQ:
  case BB_X_NE: return true;
  case BB_X_CAST: return !bb_dtype_is_float(e->dtype);
  default: return false;
  }
}

/* Marks what steps are made of. */
static void find_exact(divider *d) {
  d->node = bb_expr_postorder(d->p->home->arena, d->named, &d->nodes);
  d->exact = BB_NEW(d->p->home->arena, bool, d->nodes + 1);
  for (uint32_t i = d->nodes; i-- > 0;)
    for (uint32_t k = 0; k < i && (d->exact[i] || has_steps(d->node[i])); k++)
      for (int a = 0; a < 3; a++) d->exact[k] |= d->node[i]->a[a] == d->node[k];
}

static bool is_exact(divider *d, const bb_expr *e) {
  if (!d->node) find_exact(d);
  for (uint32_t i = 0; i < d->nodes; i++)
    if (d->node[i] == e) return d->exact[i];
  return false;
}

/* Are there many elements for each one of the divisor? */
static bool serves(divider *d, const bb_expr *e) {
  if (e->op != BB_X_DIV || !is_single(e->dtype) || !e->a[1]->arg_count || is_exact(d, e))
    return false;
  const shape s = shape_of(d, e->a[1]);
  if (s.other || (s.rows && s.cols)) return false;
  const double made = (s.rows ? bb_tile_rows(&d->to) : 1.0) * (s.cols ? bb_tile_cols(&d->to) : 1.0);
  return bb_tile_elements(&d->to) >= FEWEST * made;
}

/* A vector, or a number, that is made before the statement. */
static const bb_expr *made_before(divider *d, shape s, const bb_expr *named) {
  return bb_tile_map_before(d->p, d->body, d->at++, s.rows ? d->to.rows : 0,
                            s.cols ? d->to.cols : 0, named);
}

static const bb_expr *where_less(bb_program *p, const bb_expr *a, const bb_expr *b, double then,
                                 const bb_expr *other) {
  return bb_expr_make(p, BB_X_SELECT, bb_expr_make(p, BB_X_LT, a, b, NULL),
                      bb_expr_const(p, BB_F32, then), other);
}

static void make_divisor(divider *d, struct divisor *made) {
  bb_program *p = d->p->home;
  const shape s = shape_of(d, made->v);
  const bb_expr *v = made->v->dtype == BB_F32 ? made->v : bb_expr_cast(p, BB_F32, made->v);
  const bb_expr *size = bb_expr_make(p, BB_X_ABS, v, NULL, NULL),
                *one = bb_expr_const(p, BB_F32, 1);
  const bb_expr *small = bb_expr_const(p, BB_F32, 0x1p-64),
                *large = bb_expr_const(p, BB_F32, 0x1p64);
  const bb_expr *c = where_less(p, large, size, 0x1p-64, one);
  made->c = made_before(d, s, where_less(p, size, small, 0x1p64, c));
  const bb_expr *near = bb_expr_make(p, BB_X_MUL, v, made->c, NULL);
  made->r = made_before(d, s, bb_expr_make(p, BB_X_DIV, one, near, NULL));
}

static const struct divisor *divisor(divider *d, const bb_expr *v) {
  for (uint32_t i = 0; i < d->divisors; i++)
    if (d->divisor[i].v == v) return &d->divisor[i];
  if (d->divisors == DIVISORS) return NULL;
  struct divisor *made = &d->divisor[d->divisors++];
  made->v = v;
  make_divisor(d, made);
  return made;
}

static const bb_expr *without(void *user, bb_program *p, const bb_expr *e,
                              const bb_expr *const a[3]) {
  divider *d = user;
  const struct divisor *v = serves(d, e) ? divisor(d, e->a[1]) : NULL;
  if (!v) return a[0] ? bb_expr_rebuild(p, e, a) : e;
  const bb_expr *x = e->dtype == BB_F32 ? a[0] : bb_expr_cast(p, BB_F32, a[0]);
  x = bb_expr_make(p, BB_X_MUL, bb_expr_make(p, BB_X_MUL, x, v->c, NULL), v->r, NULL);
  return e->dtype == BB_F32 ? x : bb_expr_cast(p, e->dtype, x);
}

static void divide(bb_tile_program *p, bb_tile_body *body) {
  for (uint32_t i = 0; i < body->count; i++) {
    bb_tile_stmt *s = body->stmt[i];
    divide(p, &s->body);
    if (s->loop) divide(p, &s->loop->body);
    /* as many tiles as an expression may have, at most */
    if (s->kind != BB_TILE_MAP || s->stage || s->stretches ||
        s->operands + 2 * DIVISORS > BB_TILE_OPERANDS)
      continue;
    divider d = {.p = p, .body = body, .at = i, .to = p->tile[s->result]};
    const bb_expr *named = bb_tile_named(p, s);
    d.named = named;
    const bb_expr *made = bb_expr_rewrite(p->home, named, without, &d);
    if (made != named) bb_tile_set(p, s, made);
    i = d.at;
  }
}

void bb_tile_divide(bb_tile_program *program) {
  divide(program, &program->body);
}
