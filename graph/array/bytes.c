/* bytes.c - products of what was scaled from bytes sum integers.
 *
 *     x = f32(a) s    y = f32(b) t
 *     z = sum of x y                 ==>   z = f32(sum of a b) s t
 *
 * where a and b are integers of which each differ by less than 256, s and t do not change along the sum, and no sum of a b can
 * leave 32 bits: that has to follow from the numbers' ranges and from how many there are, so not of a run-time extent.  In
 * real numbers both are the same; the integers' sum is exact and rounded once, where that of floats rounds each time.  So it is
 * no rule where precision is strict, nor for machines without units for such products.
 *
 * Floats that are whole numbers each are integers too: constants are looked at, as conversion may have cast them.  What moves
 * elements is followed to what was scaled, by one number then: a join, a slice, windows, a pad of zeros.
 */
#include "beneath.h"
#include "lower.h"

#include <float.h>
#include <math.h>

enum { BYTE = 255, MOST = INT32_MAX };

/* Are elements whole numbers, though of a type of floats? */
static bool is_whole(const bb_ix *ix, uint32_t value) {
  const bb_ix_node *node = bb_ix_node_of(ix, value);
  if (node->op == BB_IX_SOURCE) return bb_ix_is_whole(&ix->array->value[node->tensor]);
  const bb_expr *e = node->expr;
  return node->op == BB_IX_ELEMENTWISE && e->op == BB_X_CAST && e->a[0]->dtype == BB_I32;
}

/* The integers that an expression of a node scales; NULL: it is not that. */
static const bb_expr *whole_in(const bb_ix *ix, const bb_ix_node *node, const bb_expr *e) {
  if (e->dtype != BB_F32) return NULL;
  if (e->op == BB_X_ARG)
    return is_whole(ix, node->in[e->index].value) ? bb_expr_cast(ix->program, BB_I32, e) : NULL;
  if (e->op == BB_X_CAST) return e->a[0]->dtype == BB_I32 && e->a[0]->arg_count ? e->a[0] : NULL;
  if (e->op == BB_X_DIV) return e->a[1]->coord ? NULL : whole_in(ix, node, e->a[0]);
  if (e->op != BB_X_MUL) return NULL;
  const bb_expr *first = e->a[1]->coord ? NULL : whole_in(ix, node, e->a[0]);
  return first || e->a[0]->coord ? first : whole_in(ix, node, e->a[1]);
}

static const bb_expr *whole_of(const bb_ix *ix, const bb_ix_node *node) {
  return whole_in(ix, node, node->expr);
}

/* What it scales them by. */
static const bb_expr *factor_of(const bb_ix *ix, const bb_ix_node *node, const bb_expr *e) {
  if (e->op == BB_X_CAST || e->op == BB_X_ARG) return bb_expr_const(ix->program, BB_F32, 1);
  const bool first = e->op == BB_X_DIV || (!e->a[1]->coord && whole_in(ix, node, e->a[0]));
  const uint32_t i = first ? 0 : 1;
  return bb_expr_make(ix->program, e->op, factor_of(ix, node, e->a[i]), e->a[1 - i], NULL);
}

/* Do the operands that an expression names have all indices of the node? */
static bool covers(const bb_ix *ix, const bb_ix_node *node, const bb_expr *e) {
  for (uint32_t k = 0; k < node->indices; k++) {
    bool found = false;
    for (uint32_t i = 0; i < node->nin && !found; i++)
      found = bb_expr_uses_arg(e, i) && bb_ix_follows(ix, &node->in[i], k);
    if (!found) return false;
  }
  return true;
}

/* What a value scales integers by, as its elementwise node says it; NULL: it does not. */
static const bb_expr *factor_below(const bb_ix *ix, uint32_t value, uint32_t depth) {
  const bb_ix_node *node = bb_ix_node_of(ix, value);
  if (node->op == BB_IX_ELEMENTWISE) {
    const bb_expr *whole = whole_of(ix, node);
    return whole && covers(ix, node, whole) ? factor_of(ix, node, node->expr) : NULL;
  }
  if (!bb_moves_elements(node->op) || depth == BB_BENEATH_DEPTH) return NULL;
  if (node->op == BB_IX_PAD && !bb_expr_is_number(node->expr, 0)) return NULL;
  const bb_expr *factor = NULL;
  for (uint32_t i = 0; i < node->nin; i++) {
    const bb_expr *other = factor_below(ix, node->in[i].value, depth + 1);
    if (!other || other->arg_count || (i && other != factor)) return NULL;
    factor = other;
  }
  return factor;
}

/* The range of the integers beneath: of those that a view moves, of all there are. */
static bb_range range_beneath(const bb_ix *ix, uint32_t value) {
  const bb_ix_node *node = bb_ix_node_of(ix, value);
  if (node->op == BB_IX_ELEMENTWISE) return bb_ix_range_of(ix, node, whole_of(ix, node));
  bb_range r = range_beneath(ix, node->in[0].value);
  for (uint32_t i = 1; i < node->nin; i++) {
    bb_range other = range_beneath(ix, node->in[i].value);
    r = (bb_range){fmin(r.least, other.least), fmax(r.most, other.most)};
  }
  return node->op == BB_IX_PAD ? (bb_range){fmin(r.least, 0), fmax(r.most, 0)} : r;
}

/* Does no operand of a factor change along the sum? */
static bool stays(const bb_ix *ix, const bb_ix_node *product, uint32_t slot,
                  const bb_expr *factor) {
  const bb_ix_operand *in = &product->in[slot];
  const bb_ix_node *maker = bb_ix_node_of(ix, in->value);
  for (uint32_t i = 0; factor->arg_count && i < maker->nin; i++)
    for (uint32_t a = 0; bb_expr_uses_arg(factor, i) && a < bb_ix_rank(ix, maker->in[i].value); a++)
      if (in->index[maker->in[i].index[a]] >= bb_ix_rank(ix, product->out[0])) return false;
  return true;
}

static bool may_sum_bytes(const bb_digging *d, const bb_ix_node *node, const bb_expr *factor[2]) {
  bb_ix *ix = d->ix;
  double most = 1;
  if (node->removed || node->op != BB_IX_CONTRACT || ix->value[node->out[0]].dtype != BB_F32 ||
      ix->value[node->out[0]].once)
    return false;
  for (uint32_t k = 0; k < 2; k++) {
    uint32_t value = node->in[k].value;
    factor[k] = value < d->values ? factor_below(ix, value, 0) : NULL;
    if (!factor[k] || !stays(ix, node, k, factor[k])) return false;
  }
  for (uint32_t k = 0; k < 2; k++) {
    const bb_range r = range_beneath(ix, node->in[k].value);
    if (!(r.most - r.least <= BYTE)) return false;
    most *= fmax(fabs(r.least), fabs(r.most));
  }
  for (uint32_t k = bb_ix_rank(ix, node->out[0]); k < node->indices; k++) {
    int64_t extent = bb_extent_value(bb_ix_extent(ix, node->dim[k]));
    if (extent < 0) return false;
    most *= (double)extent;
  }
  return most <= MOST;
}

/* Gives the node behind a product the operands of a factor, from `count` on; the factor of those. */
static const bb_expr *take_factor(bb_digging *d, const bb_ix_node *product, uint32_t slot,
                                  const bb_expr *factor, uint32_t to, uint32_t *count) {
  bb_ix *ix = d->ix;
  if (!factor->arg_count) return factor;
  const bb_ix_operand *in = &product->in[slot];
  const bb_ix_node maker = *bb_ix_node_of(ix, in->value);
  const bb_expr **with = BB_NEW(d->scratch, const bb_expr *, maker.nin);
  for (uint32_t i = 0; i < maker.nin; i++) {
    if (!bb_expr_uses_arg(factor, i)) continue;
    const uint32_t value = maker.in[i].value, rank = bb_ix_rank(ix, value);
    uint32_t *index = BB_NEW(d->scratch, uint32_t, rank);
    for (uint32_t a = 0; a < rank; a++) index[a] = in->index[maker.in[i].index[a]];
    with[i] = bb_expr_arg(ix->program, ix->value[value].dtype, *count);
    bb_ix_use(ix, to, (*count)++, value, index);
  }
  return bb_expr_substitute(ix->program, factor, maker.nin, with);
}

static uint32_t operands_of(const bb_ix *ix, uint32_t value, const bb_expr *factor) {
  uint32_t count = 0;
  for (uint32_t i = 0; factor->arg_count && i < bb_ix_node_of(ix, value)->nin; i++)
    count += bb_expr_uses_arg(factor, i);
  return count;
}

/* One factor after the other, but for numbers: their product may be one, unless it leaves the numbers that keep all digits. */
static const bb_expr *scaled_by(bb_program *p, const bb_expr *sum, const bb_expr *const by[2]) {
  const bool numbers = by[0]->op == BB_X_CONST && by[1]->op == BB_X_CONST;
  const double product = numbers ? fabs(by[0]->number * by[1]->number) : 0;
  if (product >= FLT_MIN && product <= FLT_MAX)
    return bb_expr_make(p, BB_X_MUL, sum, bb_expr_make(p, BB_X_MUL, by[0], by[1], NULL), NULL);
  return bb_expr_make(p, BB_X_MUL, bb_expr_make(p, BB_X_MUL, sum, by[0], NULL), by[1], NULL);
}

static void sum_bytes(bb_digging *d, uint32_t at, const bb_expr *const factor[2]) {
  bb_ix *ix = d->ix;
  bb_program *p = ix->program;
  const bb_ix_node node = ix->node[at];
  const bb_ix_value v = ix->value[node.out[0]];
  uint32_t *straight = BB_NEW(d->scratch, uint32_t, v.rank), count = 1;
  for (uint32_t a = 0; a < v.rank; a++) straight[a] = a;
  uint32_t sum =
      bb_ix_add(ix, BB_IX_CONTRACT, node.name, BB_I32, 2, v.rank, node.indices, node.dim);
  for (uint32_t k = 0; k < 2; k++) bb_beneath_use(d, at, bb_ix_producer(ix, sum), k);
  for (uint32_t k = 0; k < 2; k++) count += operands_of(ix, node.in[k].value, factor[k]);
  uint32_t scaled =
      bb_ix_add(ix, BB_IX_ELEMENTWISE, node.name, BB_F32, count, v.rank, v.rank, v.dim);
  const uint32_t to = bb_ix_producer(ix, scaled);
  bb_ix_use(ix, to, 0, sum, straight);
  count = 1;
  const bb_expr *by[2];
  for (uint32_t k = 0; k < 2; k++) by[k] = take_factor(d, &node, k, factor[k], to, &count);
  const bb_expr *number = bb_expr_cast(p, BB_F32, bb_expr_arg(p, BB_I32, 0));
  ix->node[to].expr = scaled_by(p, number, by);
  bb_ix_replace(ix, node.out[0], scaled, BB_NONE);
  bb_ix_sweep(ix, at);
}

void bb_ix_multiply_bytes(bb_ix *ix) {
  const uint32_t nodes = ix->nodes;
  bb_digging d = bb_beneath_begin(ix, whole_of);
  for (uint32_t i = 0; i < nodes; i++) {
    const bb_expr *factor[2];
    if (may_sum_bytes(&d, &ix->node[i], factor)) sum_bytes(&d, i, factor);
  }
  bb_scratch_end(d.scratch);
}
