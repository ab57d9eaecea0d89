/* algebra_product.c - a product monoid as expressions: one element, two parts, the empty part. */
#include "algebra.h"

enum { MOST = 3 * BB_PRODUCT_COMPONENTS + 200 };

static const bb_expr *op(bb_program *program, bb_expr_op which, const bb_expr *a,
                         const bb_expr *b) {
  return bb_expr_make(program, which, a, b, NULL);
}

const bb_expr **bb_product_lift(bb_program *program, const bb_product *p) {
  const bb_expr **lift = BB_NEW(program->arena, const bb_expr *, p->count);
  const bb_expr *with[MOST] = {NULL};
  for (uint32_t j = 0; j < p->count; j++) {
    lift[j] = bb_expr_substitute(program, p->component[j].start, p->own + j, with);
    with[p->own + j] = lift[j];
  }
  return lift;
}

static bool is_count(const bb_component *c) {
  return c->fold == BB_MONOID_SUM && c->term->op == BB_X_CONST && c->term->number == 1;
}

static const bb_expr *is_at_empty(bb_program *program, const bb_product *p, uint32_t j,
                                  uint32_t base) {
  return op(program, BB_X_EQ, bb_expr_arg(program, BB_F32, base + j),
            bb_expr_const(program, BB_F32, p->component[j].empty));
}

static const uint64_t all_components = (1ull << BB_PRODUCT_COMPONENTS) - 1;

/* What the combination of component j reads: itself, and so on down to what depends on nothing. */
static uint64_t read_by(const bb_product *p, uint32_t j) {
  const bb_component *c = &p->component[j];
  uint64_t read = 1ull << j;
  if (c->payload) read |= read_by(p, j - 1);
  for (uint32_t i = 0; i < j && !c->payload; i++)
    if (c->uses >> i & 1 || bb_expr_uses_arg(c->update, p->own + i)) read |= read_by(p, i);
  return read;
}

/* By the count if there is one among the components `of`.  Else a part whose components all have their
 * empty values adds nothing to another: it may pass for empty. */
static const bb_expr *empty_test(bb_program *program, const bb_product *p, uint32_t base,
                                 uint64_t of) {
  const bb_expr *all = NULL;
  for (uint32_t j = 0; j < p->count; j++)
    if (of >> j & 1 && is_count(&p->component[j])) return is_at_empty(program, p, j, base);
  for (uint32_t j = 0; j < p->count; j++) {
    if (!(of >> j & 1)) continue;
    const bb_expr *one = is_at_empty(program, p, j, base);
    all = all ? op(program, BB_X_AND, all, one) : one;
  }
  return all;
}

const bb_expr *bb_product_is_empty(bb_program *program, const bb_product *p) {
  return empty_test(program, p, p->own, all_components);
}

/* The repair of one side: its own components at `mine`, the renewed ones as given. */
static const bb_expr *side(bb_program *program, const bb_product *p, uint32_t j, uint32_t mine,
                           const bb_expr *const *renewed) {
  const bb_expr *with[MOST] = {NULL};
  for (uint32_t i = 0; i < p->count; i++) {
    with[p->own + i] = bb_expr_arg(program, BB_F32, mine + i);
    with[p->renewed + i] = renewed[i];
  }
  return bb_expr_substitute(program, p->component[j].update, p->renewed + p->count, with);
}

static bool greatest(bb_monoid_id fold) {
  return fold == BB_MONOID_MAX || fold == BB_MONOID_ARGMAX || fold == BB_MONOID_ARGMAX_LAST;
}

static const bb_expr *fold_two(bb_program *program, bb_monoid_id fold, const bb_expr *a,
                               const bb_expr *b) {
  if (fold == BB_MONOID_SUM) return op(program, BB_X_ADD, a, b);
  if (fold == BB_MONOID_PROD) return op(program, BB_X_MUL, a, b);
  return op(program, greatest(fold) ? BB_X_MAX : BB_X_MIN, a, b);
}

/* The payload of the winner; a tie is the smaller (for _LAST the larger) payload's. */
static const bb_expr *payload_of_winner(bb_program *program, bb_monoid_id fold, const bb_expr *a,
                                        const bb_expr *b, const bb_expr *at_a,
                                        const bb_expr *at_b) {
  bool last = fold == BB_MONOID_ARGMAX_LAST || fold == BB_MONOID_ARGMIN_LAST;
  const bb_expr *tied = op(program, last ? BB_X_MAX : BB_X_MIN, at_a, at_b);
  const bb_expr *less = op(program, BB_X_LT, a, b);
  const bb_expr *lower = greatest(fold) ? at_b : at_a, *upper = greatest(fold) ? at_a : at_b;
  return bb_expr_make(program, BB_X_SELECT, op(program, BB_X_EQ, a, b), tied,
                      bb_expr_make(program, BB_X_SELECT, less, lower, upper));
}

const bb_expr **bb_product_combine(bb_program *program, const bb_product *p) {
  const bb_expr **result = BB_NEW(program->arena, const bb_expr *, p->count);
  const bb_expr *a = NULL, *b = NULL; /* repaired sides; a payload's value was just before it */
  for (uint32_t j = 0; j < p->count; j++) {
    const bb_component *c = &p->component[j];
    const bb_expr *left = bb_expr_arg(program, BB_F32, p->own + j);
    const bb_expr *right = bb_expr_arg(program, BB_F32, p->renewed + j);
    if (c->payload) {
      result[j] = payload_of_winner(program, c->fold, a, b, left, right);
    } else {
      a = side(program, p, j, p->own, result);
      b = side(program, p, j, p->renewed, result);
      result[j] = fold_two(program, c->fold, a, b);
    }
    /* Empty values combine by themselves where nothing is repaired. */
    if (!c->uses && !c->payload) continue;
    uint64_t read = read_by(p, j);
    const bb_expr *left_empty = empty_test(program, p, p->own, read);
    const bb_expr *right_empty = empty_test(program, p, p->renewed, read);
    result[j] = bb_expr_make(program, BB_X_SELECT, right_empty, left, result[j]);
    result[j] = bb_expr_make(program, BB_X_SELECT, left_empty, right, result[j]);
  }
  return result;
}
