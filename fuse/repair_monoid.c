/* repair_monoid.c - the product of a chain as a monoid of the program.
 *
 * Its components are the product's, then the values fixed over the loop that combine reads: fixed
 * ARGs of the chain, extents and symbols.  Each of those is a component of its own, of which any part
 * has the same.
 */
#include "repair.h"

#include <math.h>

enum { FAR = 200 }; /* ARGs that are renumbered go over here */

static bool is_constant(const bb_repair *r, const bb_expr *leaf) {
  if (leaf->op == BB_X_EXTENT || leaf->op == BB_X_SYMBOL) return true;
  return leaf->op == BB_X_ARG && leaf->index >= r->elements && leaf->index < r->product->own;
}

static bool find_constants(bb_repair *r, const bb_expr *expr) {
  uint32_t count;
  const bb_expr **node = bb_expr_postorder(r->arena, expr, &count);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t at = 0;
    if (!is_constant(r, node[i])) continue;
    while (at < r->constants && r->constant[at] != node[i]) at++;
    if (at == BB_REPAIR_CONSTANTS)
      return bb_repair_refuse(r, "the repair reads too many fixed values");
    if (at == r->constants) r->constant[r->constants++] = node[i];
  }
  return true;
}

static bb_dtype constant_dtype(const bb_repair *r, const bb_expr *constant) {
  for (uint32_t i = 0; i < r->leaves && constant->op == BB_X_ARG; i++)
    if (r->leaf[i].arg == constant->index) return r->leaf[i].item.dtype;
  return BB_F32;
}

/* --- expressions of the product as those of the monoid --- */

typedef struct shape {
  const bb_repair *r;
  uint32_t count;
  bb_dtype dtype[BB_PRODUCT_COMPONENTS + BB_REPAIR_CONSTANTS];
} shape;

static const bb_expr *constant_component(void *user, const bb_expr *leaf) {
  const shape *s = user;
  for (uint32_t i = 0; i < s->r->constants; i++) {
    uint32_t component = s->r->product->count + i;
    if (s->r->constant[i] == leaf)
      return bb_expr_arg(s->r->program, s->dtype[component], component);
  }
  return leaf;
}

/* Is all that is added up one of two arguments, times factors? */
static bool is_scaled(const bb_expr *x, uint32_t own, uint32_t other) {
  switch (x->op) {
  case BB_X_ARG: return x->index == own || x->index == other;
  case BB_X_ADD:
  case BB_X_SUB: return is_scaled(x->a[0], own, other) && is_scaled(x->a[1], own, other);
  case BB_X_MUL: return is_scaled(x->a[0], own, other) || is_scaled(x->a[1], own, other);
  case BB_X_SELECT: return is_scaled(x->a[1], own, other) && is_scaled(x->a[2], own, other);
  case BB_X_CAST:
  case BB_X_NEG:
  case BB_X_DIV: return is_scaled(x->a[0], own, other);
  default: return false;
  }
}

/* A component's part of combine or repair.  The chain's factors may be wider than the component, as those of a softmax in
 * f32 between products in f16: it keeps its type.  But not where it is moved by other sums: each step would round it. */
static const bb_expr *in_monoid(shape *s, uint32_t component, const bb_expr *expr) {
  bb_program *program = s->r->program;
  const bb_product *p = s->r->product;
  const bb_expr *with[BB_REPAIR_LEAVES + 3 * BB_PRODUCT_COMPONENTS] = {NULL};
  for (uint32_t j = 0; j < p->count; j++) {
    with[p->own + j] = bb_expr_arg(program, s->dtype[j], FAR + j);
    with[p->renewed + j] = bb_expr_arg(program, s->dtype[j], FAR + s->count + j);
  }
  expr = bb_expr_substitute(program, expr, p->renewed + p->count, with);
  expr = bb_expr_map_leaves(program, expr, constant_component, s);
  const bb_expr *near[FAR + 2 * (BB_PRODUCT_COMPONENTS + BB_REPAIR_CONSTANTS)] = {NULL};
  for (uint32_t j = 0; j < p->count; j++) {
    near[FAR + j] = bb_expr_arg(program, s->dtype[j], j);
    near[FAR + s->count + j] = bb_expr_arg(program, s->dtype[j], s->count + j);
  }
  expr = bb_expr_substitute(program, expr, FAR + s->count + p->count, near);
  bb_dtype dtype = s->dtype[component];
  bool keeps = expr->dtype != dtype && is_scaled(expr, component, s->count + component);
  return keeps ? bb_expr_cast(program, dtype, expr) : expr;
}

static bb_monoid_component constant_of(shape *s, uint32_t j) {
  bb_program *program = s->r->program;
  const bb_expr *constant = s->r->constant[j - s->r->product->count];
  const char *name = constant->op == BB_X_ARG ? s->r->product->chain.name[constant->index]
                                              : bb_arena_printf(s->r->arena, "n%u", j);
  const bb_expr *both[2] = {bb_expr_arg(program, s->dtype[j], j),
                            bb_expr_arg(program, s->dtype[j], s->count + j)};
  const bb_monoid *first = bb_monoid_get(BB_MONOID_FIRST);
  const bb_expr *either = bb_monoid_expr(program, first, 0, &s->dtype[j]);
  return (bb_monoid_component){.name = name,
                               .dtype = s->dtype[j],
                               .empty = NAN,
                               .combine = bb_expr_substitute(program, either, 2, both),
                               .fold = BB_MONOID_FIRST,
                               .repair = both[0]};
}

/* --- sums of no negative terms --- */

typedef struct floored {
  bb_dtype dtype;
  uint32_t own, renewed; /* ARGs of the component */
} floored;

static const bb_expr *floored_step(void *user, bb_program *p, const bb_expr *node,
                                   const bb_expr *const a[3]) {
  const floored *f = user;
  if (!a[0]) return node;
  const bb_expr *sum = node->op == BB_X_ADD ? node->a[0] : NULL;
  bool part = sum && sum->op == BB_X_ARG && (sum->index == f->own || sum->index == f->renewed);
  if (!part || node->a[1]->op != BB_X_MUL) return bb_expr_rebuild(p, node, a);
  const bb_expr *least = bb_expr_const(p, f->dtype, -bb_dtype_largest(f->dtype));
  return bb_expr_make(p, BB_X_ADD, a[0], bb_expr_make(p, BB_X_MAX, a[1], least, NULL), NULL);
}

/* What is added to a sum of squares to move it may be negative, by rounding at least.  Where both overflow
 * the sum did so first: it is infinite, and no number minus infinity. */
static const bb_expr *floor_moved(const bb_repair *r, uint32_t component, const bb_expr *expr) {
  const bb_component *c = &r->product->component[component];
  if (c->fold != BB_MONOID_SUM || !(c->range.lo >= 0) || c->payload) return expr;
  floored f = {bb_repair_dtype(r, component), r->product->own + component,
               r->product->renewed + component};
  return bb_expr_rewrite(r->program, expr, floored_step, &f);
}

/* A fold that reads more values of both tuples than an operator may would have no kernel. */
static bool is_readable(const bb_monoid_component *c, uint32_t count) {
  for (uint32_t j = 0; j < count; j++) {
    uint32_t reads = 0;
    for (uint32_t i = 0; i < 2 * count; i++) reads += bb_expr_uses_arg(c[j].combine, i);
    if (reads > BB_REPAIR_READS) return false;
  }
  return true;
}

bool bb_repair_monoid(bb_repair *r) {
  const bb_product *p = r->product;
  const bb_expr **combine = bb_product_combine(r->program, p);
  r->constants = 0;
  const bb_expr **update = BB_NEW(r->arena, const bb_expr *, p->count);
  for (uint32_t j = 0; j < p->count; j++) {
    combine[j] = floor_moved(r, j, bb_repair_numbers(r, combine[j]));
    update[j] = floor_moved(r, j, bb_repair_numbers(r, p->component[j].update));
    if (!find_constants(r, combine[j]) || !find_constants(r, update[j])) return false;
  }
  shape s = {.r = r, .count = p->count + r->constants};
  for (uint32_t j = 0; j < s.count; j++)
    s.dtype[j] =
        j < p->count ? bb_repair_dtype(r, j) : constant_dtype(r, r->constant[j - p->count]);
  bb_monoid_component *c = BB_NEW(r->arena, bb_monoid_component, s.count);
  for (uint32_t j = 0; j < p->count; j++)
    c[j] = (bb_monoid_component){.name = p->component[j].name,
                                 .dtype = s.dtype[j],
                                 .empty = p->component[j].empty,
                                 .combine = in_monoid(&s, j, combine[j]),
                                 .fold = p->component[j].fold,
                                 .repair = in_monoid(&s, j, update[j]),
                                 .low = p->component[j].range.lo,
                                 .high = p->component[j].range.hi};
  for (uint32_t j = p->count; j < s.count; j++) c[j] = constant_of(&s, j);
  if (!is_readable(c, s.count))
    return bb_repair_refuse(r, "its update reads more values than an operator of a kernel may");
  const char *broken;
  r->monoid = bb_monoid_try(r->program, "product", s.count, c, true, &broken);
  return r->monoid ? true
                   : bb_repair_refuse(r, bb_arena_printf(r->program->arena,
                                                         "the product is no monoid: %s", broken));
}
