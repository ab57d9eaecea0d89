/* algebra_product.c - a product monoid as expressions: one element, two parts, the empty part. */
#include "algebra.h"
#include "algebra_normal.h"

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

/* --- differences of means ---
 *
 * A repair about a mean reads S/w - S'/w'.  Taken as it stands that is a difference of two rounded
 * numbers which may be large and near each other, multiplied by a count: it loses every digit.  If a
 * repair keeps the mean (S and w scale alike) then S'/w' is the mean of both parts' means weighted by
 * their repaired w, and for the part with mean S1/w1 beside one with S2/w2
 *   S1/w1 - S'/w' = (S1/w1 - S2/w2) * w2 / w'
 * whose error shrinks with the other part's weight. */

typedef struct replacement {
  const bb_expr *old, *with;
  bool found;
} replacement;

static const bb_expr *replaced(void *user, bb_program *program, const bb_expr *node,
                               const bb_expr *const a[3]) {
  replacement *r = user;
  r->found |= node == r->old;
  return node == r->old ? r->with : bb_expr_rebuild(program, node, a);
}

/* repair(S) * w = repair(w) * S */
static bool keeps_mean(bb_program *program, const bb_product *p, uint32_t s, uint32_t w) {
  bb_arena *scratch = bb_scratch(program->ctx);
  bb_algebra *al = bb_algebra_begin(program, scratch, p->chain.strict);
  bool keeps = bb_algebra_equal(
      al, op(program, BB_X_MUL, p->component[s].repair, bb_expr_arg(program, BB_F32, p->own + w)),
      op(program, BB_X_MUL, p->component[w].repair, bb_expr_arg(program, BB_F32, p->own + s)));
  bb_scratch_end(scratch);
  return keeps;
}

static const bb_expr *mean(bb_program *program, uint32_t base, uint32_t s, uint32_t w) {
  return op(program, BB_X_DIV, bb_expr_arg(program, BB_F32, base + s),
            bb_expr_arg(program, BB_F32, base + w));
}

static bool is_sum(const bb_component *c) {
  return c->fold == BB_MONOID_SUM && !c->payload;
}

/* The repair of one side: its own components at `mine`, the other side's at `other`, the renewed
 * ones as given. */
static const bb_expr *side(bb_program *program, const bb_product *p, uint32_t j, uint32_t mine,
                           uint32_t other, const bb_expr *const *renewed) {
  const bb_component *c = &p->component[j];
  const bb_expr *update = c->update, *with[MOST] = {NULL};
  uint32_t differences = p->renewed + p->count; /* ARGs that stand for them */
  for (uint32_t i = 0; i < p->count; i++) {
    with[p->own + i] = bb_expr_arg(program, BB_F32, mine + i);
    with[p->renewed + i] = renewed[i];
  }
  for (uint32_t s = 0; s < j; s++) {
    for (uint32_t w = 0; w < j; w++) {
      if (s == w || !(c->uses >> s & 1) || !(c->uses >> w & 1)) continue;
      if (!is_sum(&p->component[s]) || !is_sum(&p->component[w])) continue;
      const bb_expr *difference =
          op(program, BB_X_SUB, mean(program, p->own, s, w), mean(program, p->renewed, s, w));
      replacement r = {difference, bb_expr_arg(program, BB_F32, differences), false};
      const bb_expr *without = bb_expr_rewrite(program, update, replaced, &r);
      if (!r.found || !keeps_mean(program, p, s, w)) continue;
      const bb_expr *share =
          op(program, BB_X_DIV, side(program, p, w, other, mine, renewed), renewed[w]);
      const bb_expr *apart =
          op(program, BB_X_SUB, mean(program, mine, s, w), mean(program, other, s, w));
      with[differences++] = op(program, BB_X_MUL, apart, share);
      update = without;
    }
  }
  return bb_expr_substitute(program, update, differences, with);
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
      a = side(program, p, j, p->own, p->renewed, result);
      b = side(program, p, j, p->renewed, p->own, result);
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
