/* schedule_fold.c - monoids over tiles, and reductions of lists. */
#include "build.h"

#include <math.h>

double bb_monoid_empty_of(const bb_monoid *monoid, uint32_t component) {
  double empty[BB_MONOID_COMPONENTS];
  bb_monoid_empty(monoid, empty);
  return empty[component];
}

typedef struct combination {
  uint32_t count;
  const bb_expr *expr[BB_MONOID_COMPONENTS];
  uint32_t operand[2 * BB_MONOID_COMPONENTS];
  bool done[BB_MONOID_COMPONENTS];
} combination;

/* Does a component that is still to be combined read component k of the left part? */
static bool is_read(const combination *c, uint32_t k) {
  for (uint32_t i = 0; i < c->count; i++)
    if (i != k && !c->done[i] && bb_expr_uses_arg(c->expr[i], k)) return true;
  return false;
}

static bool is_narrow(const bb_expr *e) {
  return e->dtype == BB_F16 || e->dtype == BB_BF16;
}

/* What rounds to a narrow float inside a formula of wide accumulators does not. */
static const bb_expr *widen(void *user, bb_program *p, const bb_expr *node,
                            const bb_expr *const a[3]) {
  bb_dtype dtype = *(const bb_dtype *)user;
  if (is_narrow(node) && node->op == BB_X_CONST) return bb_expr_const(p, dtype, node->number);
  if (is_narrow(node) && node->op == BB_X_CAST) return bb_expr_cast(p, dtype, a[0]);
  return bb_expr_rebuild(p, node, a);
}

/* A map takes the operands that its expression reads, and no more. */
static void combine_one(bb_build *b, const combination *c, uint32_t k, uint32_t result) {
  const bb_expr *with[2 * BB_MONOID_COMPONENTS] = {0};
  uint32_t operand[2 * BB_MONOID_COMPONENTS], count = 0;
  for (uint32_t i = 0; i < 2 * c->count; i++) {
    if (!bb_expr_uses_arg(c->expr[k], i)) continue;
    with[i] = bb_expr_arg(b->program, b->tile->tile[c->operand[i]].dtype, count);
    operand[count++] = c->operand[i];
  }
  const bb_expr *expr = bb_expr_substitute(b->program, c->expr[k], 2 * c->count, with);
  bb_dtype dtype = b->tile->tile[result].dtype;
  if (expr->dtype != dtype)
    expr = bb_expr_cast(b->program, dtype, bb_expr_rewrite(b->program, expr, widen, &dtype));
  bb_build_map_into(b, result, b->depth, expr, count, operand);
}

static void copy_tile(bb_build *b, uint32_t to, uint32_t from) {
  const bb_expr *same = bb_expr_arg(b->program, b->tile->tile[from].dtype, 0);
  bb_build_map_into(b, to, b->depth, same, 1, &from);
}

void bb_schedule_combine(bb_build *b, const bb_monoid *monoid, const uint32_t *acc,
                         const uint32_t *term) {
  combination c = {.count = monoid->components};
  bb_dtype dtype[BB_MONOID_COMPONENTS];
  for (uint32_t k = 0; k < c.count; k++) dtype[k] = b->tile->tile[acc[k]].dtype;
  for (uint32_t k = 0; k < c.count; k++) {
    c.expr[k] = bb_monoid_expr(b->program, monoid, k, dtype);
    c.operand[k] = acc[k];
    c.operand[c.count + k] = term[k];
  }
  /* In place where nobody reads the component any more; then what is left, beside the old ones. */
  for (bool progress = true; progress;) {
    progress = false;
    for (uint32_t k = 0; k < c.count; k++) {
      if (c.done[k] || is_read(&c, k)) continue;
      combine_one(b, &c, k, acc[k]);
      c.done[k] = progress = true;
    }
  }
  uint32_t beside[BB_MONOID_COMPONENTS];
  for (uint32_t k = 0; k < c.count; k++) {
    if (c.done[k]) continue;
    const bb_tile_fact *fact = &b->fact[acc[k]];
    beside[k] = bb_build_tile(b, dtype[k], fact->row, fact->col, b->depth);
    combine_one(b, &c, k, beside[k]);
  }
  for (uint32_t k = 0; k < c.count; k++)
    if (!c.done[k]) copy_tile(b, acc[k], beside[k]);
}

/* --- reductions of lists --- */

typedef struct reduction {
  const bb_node *node;
  uint32_t level; /* folded: of the operands' elements, once the outer levels are taken */
  uint32_t tie;   /* of that level */
  uint32_t *acc;  /* FOLD of lists of items: where the accumulators are left, else NULL */
} reduction;

static void make_accumulators(bb_build *b, const bb_node *node, const bb_build_value *list,
                              uint32_t *acc) {
  for (uint32_t k = 0; k < node->nin; k++) {
    acc[k] = bb_build_tile(b, list[k].type->item.dtype, list[k].row, list[k].col, b->depth);
    bb_build_constant(b, acc[k], b->depth, bb_monoid_empty_of(node->monoid, k));
  }
}

/* list[0 .. nin): lists of one level over items; slot[]: SCAN, where prefixes go. */
static void fold_list(bb_build *b, const reduction *r, const bb_build_value *list,
                      const bb_build_value *slot, uint32_t *acc) {
  const bb_node *node = r->node;
  make_accumulators(b, node, list, acc);
  bb_loop_options options = {.block = bb_site_block(&b->sites, r->tie)};
  options.counts = options.block > 1;
  bb_build_loop *loop = bb_build_begin(b, list[0].type->level[0].dim, &options);
  uint32_t term[BB_MONOID_COMPONENTS];
  bb_build_value to[BB_MONOID_COMPONENTS];
  for (uint32_t k = 0; k < node->nin; k++) {
    bb_build_value element = bb_value_element(b, node, &list[k], 0, loop);
    term[k] = bb_value_tile(b, node, &element);
    if (slot) to[k] = bb_value_element(b, node, &slot[k], 0, loop);
  }
  bool before = node->reduce == BB_REDUCE_SCAN_EXCLUSIVE;
  for (uint32_t k = 0; slot && before && k < node->nin; k++)
    bb_value_store(b, &to[k], acc[k], b->depth);
  bb_schedule_combine(b, node->monoid, acc, term);
  for (uint32_t k = 0; slot && !before && k < node->nin; k++)
    bb_value_store(b, &to[k], acc[k], b->depth);
  bb_build_end(b, loop, &options);
}

/* Takes the levels other than the one that is folded, outermost first. */
static void reduce_levels(bb_build *b, const reduction *r, const uint32_t *tie, uint32_t level,
                          const bb_build_value *list, const bb_build_value *result) {
  const bb_node *node = r->node;
  uint32_t n = node->nin, rank = list[0].type->rank;
  if (rank == 1) {
    uint32_t acc[BB_MONOID_COMPONENTS];
    fold_list(b, r, list, node->reduce == BB_REDUCE_FOLD ? NULL : result, acc);
    for (uint32_t k = 0; node->reduce == BB_REDUCE_FOLD && k < n; k++)
      bb_value_store(b, &result[k], acc[k], b->depth);
    return;
  }
  uint32_t take = level == 0 ? 1 : 0, of_result = node->reduce == BB_REDUCE_FOLD ? 0 : take;
  bool partial = list[0].type->level[take].axis == BB_AXIS_NONE;
  bb_loop_options options = {.block = bb_site_block(&b->sites, tie[take])};
  options.counts = partial && options.block > 1;
  bb_build_loop *loop = bb_build_begin(b, list[0].type->level[take].dim, &options);
  bb_build_value inner[2 * BB_MONOID_COMPONENTS];
  for (uint32_t k = 0; k < n; k++) {
    inner[k] = bb_value_element(b, node, &list[k], take, loop);
    inner[n + k] = bb_value_element(b, node, &result[k], of_result, loop);
  }
  uint32_t rest[BB_TILE_RANK + 1];
  for (uint32_t i = 0, j = 0; i < rank; i++)
    if (i != take) rest[j++] = tie[i];
  reduce_levels(b, r, rest, level ? level - 1 : 0, inner, inner + n);
  bb_build_end(b, loop, &options);
}

void bb_schedule_reduce(bb_build *b, const bb_node *node, const bb_site_node *at,
                        const bb_build_value *const *in, const uint32_t *const *in_tie,
                        bb_build_value *out) {
  uint32_t n = node->nin, level = node->in[0].level;
  if (n > BB_MONOID_COMPONENTS || n != node->monoid->components || node->nout != n)
    bb_build_refuse(b, node, "operands of a reduction are not the components of its monoid");
  bb_build_value list[BB_MONOID_COMPONENTS] = {{0}};
  for (uint32_t k = 0; k < n; k++) {
    list[k] = *in[k];
    if (list[k].type->rank > BB_TILE_RANK || node->in[k].level != level ||
        list[k].type->rank != list[0].type->rank)
      bb_build_refuse(b, node, "lists of different shapes are folded together");
  }
  reduction r = {.node = node, .level = level, .tie = in_tie[0][level]};
  if (node->reduce == BB_REDUCE_FOLD && list[0].type->rank == 1) {
    uint32_t acc[BB_MONOID_COMPONENTS];
    for (uint32_t k = 0; k < n; k++)
      if (list[k].type->item.row != BB_NO_DIM && !list[k].row)
        bb_build_refuse(b, node, "an item with an axis that no loop cuts");
    fold_list(b, &r, list, NULL, acc);
    for (uint32_t k = 0; k < n; k++)
      out[k] = (bb_build_value){.type = node->out[k].type,
                                .kind = BB_BUILD_TILE,
                                .depth = b->depth,
                                .row = list[k].row,
                                .col = list[k].col,
                                .tile = acc[k]};
    return;
  }
  for (uint32_t k = 0; k < n; k++) {
    if (out[k].kind == BB_BUILD_NOTHING)
      out[k] = bb_value_scratch(b, node->out[k].type, at->tie[k]);
    out[k].type = node->out[k].type;
    bb_value_know_cuts(&out[k], &list[k]);
  }
  reduce_levels(b, &r, in_tie[0], level, list, out);
}
