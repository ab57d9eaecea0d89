/* safety_product.c - derived products of dependent folds, some of whose components are pairs.
 *
 * Component k of a product may be made of other exps than those that the product repairs: what a part
 * has is s * exp(e).  Its combine is read as an expression of pairs, so that the parts meet at the
 * greater exponent, and e becomes a component of its own, before s:
 *
 *   e' = max(e of both parts)        s' = combine's significand, times exp(its exponent - e')
 *
 * A pair stands for the same number whatever its exponent is, and the exponents fold with max: any
 * bracketing that was right stays so.  Where a component is made of others that are pairs too, its
 * exponent is no less than theirs.
 */
#include "safety_pair.h"

typedef struct scaling {
  bb_program *program;
  const bb_monoid *product;
  bb_safe_scaled *to;
  uint32_t count;                             /* components of the new monoid */
  uint32_t reads[BB_MONOID_COMPONENTS];       /* of each: whose exponents its own is made of */
  bb_safe_form arg[2 * BB_MONOID_COMPONENTS]; /* of the product's expressions */
} scaling;

static const bb_expr *exponent(const scaling *s, uint32_t k, uint32_t side) {
  return bb_expr_arg(s->program, s->to->dtype[k], side * s->count + s->to->exponent[k]);
}

static void place(scaling *s) {
  bb_safe_scaled *to = s->to;
  for (uint32_t k = 0; k < to->count; k++) {
    if (to->pair[k]) to->exponent[k] = s->count++;
    to->significand[k] = s->count++;
  }
  for (uint32_t k = 0; k < 2 * to->count; k++) {
    uint32_t own = k % to->count, side = k / to->count;
    bb_dtype dtype = s->product->component[own].dtype;
    uint32_t at = side * s->count + to->significand[own];
    s->arg[k].significand = bb_expr_arg(s->program, dtype, at);
    s->arg[k].exponent = to->pair[own] ? exponent(s, own, side) : NULL;
  }
}

/* Is the exponent one of those of the parts, or the greatest of some of them? */
static bool is_among_exponents(scaling *s, const bb_expr *e, uint32_t *reads) {
  if (e->op == BB_X_ARG) {
    uint32_t at = e->index % s->count;
    for (uint32_t k = 0; k < s->to->count; k++)
      if (s->to->pair[k] && s->to->exponent[k] == at) {
        *reads |= 1u << k;
        return true;
      }
    return false;
  }
  if (e->op == BB_X_CONST) return e->number == 0 || e->number == -INFINITY;
  if (e->op == BB_X_SELECT)
    return is_among_exponents(s, e->a[1], reads) && is_among_exponents(s, e->a[2], reads);
  return e->op == BB_X_MAX && is_among_exponents(s, e->a[0], reads) &&
         is_among_exponents(s, e->a[1], reads);
}

/* What the exponents of all components are made of; false: of more than exponents. */
static bool find_reads(scaling *s, const bb_safe_form *combined) {
  bb_safe_scaled *to = s->to;
  for (uint32_t k = 0; k < to->count; k++) {
    if (!combined[k].exponent) continue;
    if (!to->pair[k] || !is_among_exponents(s, combined[k].exponent, &s->reads[k])) return false;
    s->reads[k] |= 1u << k;
  }
  for (uint32_t round = 0; round < to->count; round++)
    for (uint32_t k = 0; k < to->count; k++)
      for (uint32_t j = 0; j < to->count; j++)
        if (s->reads[k] >> j & 1) s->reads[k] |= s->reads[j];
  for (uint32_t k = 0; k < to->count; k++) to->wide[k] = (s->reads[k] & (s->reads[k] - 1)) != 0;
  return true;
}

/* The greatest exponent that component k is made of, of one part or (side 2) of both. */
static const bb_expr *greatest(const scaling *s, uint32_t k, uint32_t side) {
  const bb_expr *top = NULL;
  for (uint32_t part = side == 2 ? 0 : side; part <= (side == 2 ? 1 : side); part++)
    for (uint32_t j = 0; j < s->to->count; j++) {
      if (!(s->reads[k] >> j & 1)) continue;
      const bb_expr *e = exponent(s, j, part);
      if (top && e->dtype != top->dtype) e = bb_expr_cast(s->program, top->dtype, e);
      top = top ? bb_expr_make(s->program, BB_X_MAX, top, e, NULL) : e;
    }
  return top;
}

static const bb_expr *typed(const scaling *s, bb_dtype dtype, const bb_expr *expr) {
  return expr->dtype == dtype ? expr : bb_expr_cast(s->program, dtype, expr);
}

static bb_monoid_component exponent_of(const scaling *s, uint32_t k) {
  const char *name = s->product->component[k].name;
  bb_dtype dtype = s->to->dtype[k];
  return (bb_monoid_component){.name = bb_arena_printf(s->program->arena, "e_%s", name),
                               .dtype = dtype,
                               .empty = -INFINITY,
                               .combine = typed(s, dtype, greatest(s, k, 2)),
                               .fold = BB_MONOID_MAX,
                               .repair = typed(s, dtype, greatest(s, k, 0))};
}

static bb_monoid_component significand_of(const scaling *s, uint32_t k,
                                          const bb_safe_form *combined) {
  const bb_monoid_component *own = &s->product->component[k];
  bb_monoid_component made = *own;
  bb_safe_form repaired = bb_safe_form_of(s->program, own->repair, 2 * s->to->count, s->arg);
  made.combine = combined->significand;
  made.repair = repaired.significand;
  if (s->to->pair[k]) {
    const bb_expr *top = typed(s, s->to->dtype[k], greatest(s, k, 2));
    made.combine = bb_safe_moved(s->program, combined, top);
    made.repair = bb_safe_moved(s->program, &repaired, exponent(s, k, 1));
    made.high = made.low >= 0 && made.low < made.high ? INFINITY : 0; /* any, or any of that sign */
    made.low = 0;
  }
  made.combine = typed(s, own->dtype, made.combine);
  made.repair = typed(s, own->dtype, made.repair);
  return made;
}

bool bb_safe_scale_product(bb_program *program, const bb_monoid *product, bb_safe_scaled *scaled) {
  scaling s = {.program = program, .product = product, .to = scaled};
  bb_safe_form combined[BB_MONOID_COMPONENTS];
  bb_monoid_component component[2 * BB_MONOID_COMPONENTS];
  const char *broken;
  place(&s);
  if (s.count > BB_MONOID_COMPONENTS) return false;
  for (uint32_t k = 0; k < scaled->count; k++)
    combined[k] = bb_safe_form_of(program, product->component[k].combine, 2 * scaled->count, s.arg);
  if (!find_reads(&s, combined)) return false;
  for (uint32_t k = 0; k < scaled->count; k++) {
    if (scaled->pair[k]) component[scaled->exponent[k]] = exponent_of(&s, k);
    component[scaled->significand[k]] = significand_of(&s, k, &combined[k]);
  }
  scaled->monoid =
      bb_monoid_try(program, product->name, s.count, component, product->proved, &broken);
  return scaled->monoid != NULL;
}
