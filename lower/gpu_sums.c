/* gpu_sums.c - products whose results are only added have one accumulator.
 *
 *   a = dot(q, k')                       a = dot(q, k')
 *   b = dot(r, l')               ==>     a += dot(r, l')
 *   s = a * c + b * c + ...              s = a * c + ...
 *
 * A value that is contracted with another in two halves, as heads are whose halves were turned against each other, gives
 * such a sum: of twice the registers, and of more arithmetic than its products hide.
 */
#include "gpu.h"

/* Is an expression, parts that it shares counted again, of no more nodes than that? */
static bool is_small(const bb_expr *x, uint32_t *left) {
  if (*left == 0) return false;
  --*left;
  for (uint32_t i = 0; i < bb_expr_op_arity(x->op); i++)
    if (!is_small(x->a[i], left)) return false;
  return true;
}

/* The tile, or the tile by a constant. */
static bool is_scaled(const bb_expr *x, uint32_t tile) {
  if (x->op == BB_X_MUL && x->a[1]->op == BB_X_CONST) x = x->a[0];
  return bb_tile_is_name(x, tile);
}

/* The sum of two tiles, scaled alike, in a named expression; NULL: there is none. */
static const bb_expr *find_sum(const bb_gpu *g, const bb_expr *x, uint32_t a, uint32_t b) {
  if (x->op == BB_X_ADD && is_scaled(x->a[0], a) && is_scaled(x->a[1], b) &&
      bb_tile_replace(g->p, x->a[1], b, bb_tile_name(g->p, a)) == x->a[0])
    return x;
  const bb_expr *found = NULL;
  for (uint32_t i = 0; !found && i < bb_expr_op_arity(x->op); i++)
    found = find_sum(g, x->a[i], a, b);
  return found;
}

/* An expression with another one in the place of a part. */
static const bb_expr *with(const bb_gpu *g, const bb_expr *x, const bb_expr *part,
                           const bb_expr *other) {
  const bb_expr *a[3] = {NULL, NULL, NULL};
  uint32_t arity = bb_expr_op_arity(x->op);
  if (x == part) return other;
  if (arity == 0) return x;
  for (uint32_t i = 0; i < arity; i++) a[i] = with(g, x->a[i], part, other);
  return bb_expr_rebuild(g->p->home, x, a);
}

/* A product that sets a tile which one statement reads, and nobody else writes. */
static bool is_term(const bb_gpu *g, const bb_tile_stmt *s) {
  return s->kind == BB_TILE_DOT && !s->accumulate && !s->stretches &&
         bb_tile_writers(&g->p->body, s->result) == 1 &&
         bb_tile_readers(&g->p->body, s->result) == 1;
}

/* Adds the product at `second` to what the one at `first` gives, if the map at `at` only adds the two. */
static bool join(bb_gpu *g, bb_tile_body *body, uint32_t first, uint32_t second, uint32_t at) {
  bb_tile_stmt *s = body->stmt[at], *later = body->stmt[second];
  uint32_t a = body->stmt[first]->result, b = later->result;
  uint32_t most = 256;
  const bb_expr *x = bb_tile_named(g->p, s);
  if (!bb_tile_have_one_form(&g->p->tile[a], &g->p->tile[b]) || !is_small(x, &most)) return false;
  const bb_expr *sum = find_sum(g, x, a, b);
  if (!sum) return false;
  const bb_expr *rest = with(g, x, sum, bb_expr_const(g->p->home, sum->dtype, 0));
  if (bb_tile_names(rest, a) || bb_tile_names(rest, b)) return false;
  bb_tile_set(g->p, s, with(g, x, sum, sum->a[0]));
  later->result = a;
  later->accumulate = true;
  return true;
}

static void join_all(bb_gpu *g, bb_tile_body *body) {
  for (uint32_t at = 0; at < body->count; at++) {
    bb_tile_stmt *s = body->stmt[at];
    join_all(g, &s->body);
    if (s->loop) join_all(g, &s->loop->body);
    for (uint32_t k = 0; s->kind == BB_TILE_MAP && k < at; k++)
      for (uint32_t i = 0; i < k; i++) {
        const bb_tile_stmt *later = body->stmt[k], *sooner = body->stmt[i];
        if (is_term(g, later) && is_term(g, sooner) && bb_tile_reads(s, later->result) &&
            bb_tile_reads(s, sooner->result))
          join(g, body, i, k, at);
      }
  }
}

void bb_gpu_sums(bb_gpu *g) {
  if (g->strict) return; /* each product is scaled, then added */
  join_all(g, &g->p->body);
}
