/* safety_fold.c - the tuple monoids of pairs: an exponent, and sums that it scales.
 *
 * The sum of pairs is the product monoid of the chain r = max c, s = sum exp(w (c - r)) v: each s is
 * renewed by exp(w (r - r')) when r grows.  It is derived and proved as any chain is (algebra.h), so
 * that a program made safe and one that subtracts a maximum by itself fold with the same monoid.
 */
#include "safety_pair.h"

#include "algebra.h"

/* The term of a member: exp(weight * (c - r)) * v; `v` NULL: 1. */
static const bb_expr *term(bb_program *p, double weight, const bb_expr *c, const bb_expr *r,
                           const bb_expr *v) {
  const bb_expr *e = bb_expr_make(p, BB_X_SUB, c, r, NULL);
  if (weight != 1) e = bb_expr_make(p, BB_X_MUL, bb_expr_const(p, BB_F32, weight), e, NULL);
  e = bb_expr_make(p, BB_X_EXP, e, NULL, NULL);
  return v ? bb_expr_make(p, BB_X_MUL, e, v, NULL) : e;
}

/* The first member of each weight that only sums exps has v = 1: a second one would be the same. */
static bool stands_alone(uint32_t i, const bb_safe_member *member) {
  if (!member[i].positive || member[i].fold != BB_MONOID_SUM) return false;
  for (uint32_t k = 0; k < i; k++)
    if (member[k].positive && member[k].fold == BB_MONOID_SUM &&
        member[k].weight == member[i].weight)
      return false;
  return true;
}

static const bb_product *derive(bb_program *p, uint32_t count, const bb_safe_member *member,
                                bb_arena *scratch) {
  bb_chain chain = {.elements = 1, .folds = count + 1};
  bb_chain_fold *fold = BB_NEW(scratch, bb_chain_fold, (size_t)count + 1);
  bb_range *range = BB_NEW(scratch, bb_range, (size_t)count + 1);
  for (uint32_t i = 0; i < count; i++) chain.elements += !stands_alone(i, member);
  const bb_expr *c = bb_expr_arg(p, BB_F32, 0), *r = bb_expr_arg(p, BB_F32, chain.elements);
  range[0] = BB_RANGE_ANY;
  fold[0] = (bb_chain_fold){.name = "e", .fold = BB_MONOID_MAX, .term = c};
  uint32_t element = 1;
  for (uint32_t i = 0; i < count; i++) {
    const bb_expr *v = NULL;
    if (!stands_alone(i, member)) {
      v = bb_expr_arg(p, BB_F32, element);
      range[element] = BB_RANGE_ANY;
      if (member[i].positive) range[element].lo = 0;
      element++;
    }
    fold[i + 1] = (bb_chain_fold){
        .name = "s", .fold = member[i].fold, .term = term(p, member[i].weight, c, r, v)};
  }
  chain.fold = fold;
  chain.range = range;
  return bb_product_derive(p, &chain);
}

/* An expression of the product's own and renewed components, of the tuple's element types. */
static const bb_expr *in_tuple(bb_program *p, const bb_product *product, const bb_dtype *dtype,
                               uint32_t k, const bb_expr *expr) {
  const bb_expr *with[2 * BB_PRODUCT_COMPONENTS + BB_PRODUCT_COMPONENTS] = {NULL};
  for (uint32_t j = 0; j < product->count; j++) {
    with[product->own + j] = bb_expr_arg(p, dtype[j], j);
    with[product->renewed + j] = bb_expr_arg(p, dtype[j], product->count + j);
  }
  expr = bb_expr_substitute(p, expr, product->renewed + product->count, with);
  return expr->dtype == dtype[k] ? expr : bb_expr_cast(p, dtype[k], expr);
}

/* Component j of one part, `mine` its first ARG in the tuple, renewed for the exponent `top`. */
static const bb_expr *renewed(bb_program *p, const bb_product *product, const bb_dtype *dtype,
                              uint32_t j, uint32_t mine, const bb_expr *top) {
  const bb_expr *with[3 * BB_PRODUCT_COMPONENTS] = {NULL};
  with[product->own] = bb_expr_arg(p, dtype[0], mine);
  with[product->own + j] = bb_expr_arg(p, dtype[j], mine + j);
  with[product->renewed] = top;
  const bb_expr *update = product->component[j].update;
  const bb_expr *made = bb_expr_substitute(p, update, product->renewed + product->count, with);
  return made->dtype == dtype[j] ? made : bb_expr_cast(p, dtype[j], made);
}

static const bb_expr *fold_two(bb_program *p, bb_monoid_id fold, const bb_expr *a,
                               const bb_expr *b) {
  bb_expr_op op = fold == BB_MONOID_SUM ? BB_X_ADD : fold == BB_MONOID_MAX ? BB_X_MAX : BB_X_MIN;
  return bb_expr_make(p, op, a, b, NULL);
}

/* Is component j of the part at `mine` as in the empty part? */
static const bb_expr *is_empty(bb_program *p, const bb_product *product, const bb_dtype *dtype,
                               uint32_t j, uint32_t mine) {
  const bb_expr *own = bb_expr_arg(p, dtype[j], mine + j);
  return bb_expr_make(p, BB_X_EQ, own, bb_expr_const(p, dtype[j], product->component[j].empty),
                      NULL);
}

/* Each component reads the exponent and itself: they may have different axes.  A sum of nothing is 0
 * at any exponent, an extremum of nothing is infinite and needs a selection. */
static const bb_expr *combine(bb_program *p, const bb_product *product, const bb_dtype *dtype,
                              uint32_t j) {
  uint32_t n = product->count;
  const bb_expr *e[2] = {bb_expr_arg(p, dtype[0], 0), bb_expr_arg(p, dtype[0], n)};
  const bb_expr *top = bb_expr_make(p, BB_X_MAX, e[0], e[1], NULL);
  if (j == 0) return top;
  const bb_expr *a = renewed(p, product, dtype, j, 0, top);
  const bb_expr *b = renewed(p, product, dtype, j, n, top);
  bb_monoid_id fold = product->component[j].fold;
  const bb_expr *both = fold_two(p, fold, a, b);
  if (fold == BB_MONOID_SUM) return both;
  const bb_expr *left = is_empty(p, product, dtype, j, 0);
  const bb_expr *right = is_empty(p, product, dtype, j, n);
  both = bb_expr_make(p, BB_X_SELECT, right, a, both);
  return bb_expr_make(p, BB_X_SELECT, left, b, both);
}

const bb_monoid *bb_safe_monoid(bb_safety *safety, bb_dtype exponent, uint32_t count,
                                const bb_safe_member *member) {
  bb_program *p = safety->program;
  if (count + 3 > BB_PRODUCT_COMPONENTS) return NULL;
  bb_arena *scratch = bb_scratch(p->ctx);
  const bb_product *product = derive(p, count, member, scratch);
  const bb_monoid *monoid = NULL;
  if (!product->refused && product->count == count + 1) {
    bb_dtype dtype[BB_PRODUCT_COMPONENTS] = {exponent};
    bb_monoid_component component[BB_PRODUCT_COMPONENTS];
    for (uint32_t i = 0; i < count; i++) dtype[i + 1] = member[i].dtype;
    for (uint32_t j = 0; j < product->count; j++) {
      const bb_component *c = &product->component[j];
      component[j] = (bb_monoid_component){.name = c->name,
                                           .dtype = dtype[j],
                                           .empty = c->empty,
                                           .combine = combine(p, product, dtype, j),
                                           .fold = c->fold,
                                           .repair = in_tuple(p, product, dtype, j, c->update),
                                           .low = c->range.lo,
                                           .high = c->range.hi};
    }
    monoid = bb_monoid_make(p, "product", product->count, component, true);
  }
  bb_scratch_end(scratch);
  return monoid;
}
