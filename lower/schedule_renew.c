/* schedule_renew.c - products of dependent folds, rolling from one block to the next.
 *
 * A tuple's combine takes what a block is by itself: its terms under its own earlier components r.  By the
 * repair h of each component, h(t, r, r') = what t would have been under r', the block's terms may as well
 * be made under r', the earlier components after this block:
 *
 *     r' = r f term             for what depends on nothing
 *     t' = h(t, r, r') f term'  where term' reads r' in place of the block's own
 *
 * which repairs one side in place of two, and lets a product be added to its accumulator.
 */
#include "build.h"

#include <math.h>

bool bb_monoid_is_renewable(const bb_monoid *monoid) {
  if (monoid->id != BB_MONOID_TUPLE) return false;
  for (uint32_t k = 0; k < monoid->components; k++) {
    const bb_monoid_component *c = &monoid->component[k];
    /* an index beside an extremum follows that, by no fold of its own */
    if (!c->repair || c->fold >= BB_MONOID_TUPLE || !bb_dtype_is_float(c->dtype)) return false;
    if (bb_monoid_get(c->fold)->components != 1) return false;
    for (uint32_t j = k; j < monoid->components; j++)
      if (bb_expr_uses_arg(c->repair, monoid->components + j)) return false;
  }
  return true;
}

/* Does the repair of another component read what component k was? */
static bool is_read(const bb_monoid *monoid, uint32_t k) {
  for (uint32_t j = 0; j < monoid->components; j++)
    if (j != k && bb_expr_uses_arg(monoid->component[j].repair, k)) return true;
  return false;
}

/* Is what a repair makes of nothing, whatever came after it, nothing again? */
static bool keeps_nothing(const bb_monoid *monoid, uint32_t k) {
  static const double later[] = {-0.75, 1.5};
  double argument[2 * BB_MONOID_COMPONENTS], empty = bb_monoid_empty_of(monoid, k);
  for (size_t s = 0; s < sizeof later / sizeof *later; s++) {
    for (uint32_t i = 0; i < monoid->components; i++) {
      argument[i] = bb_monoid_empty_of(monoid, i);
      argument[monoid->components + i] = later[s] * (i + 1);
    }
    double made = bb_expr_eval(monoid->component[k].repair, &(bb_expr_env){.arg = argument});
    if (made != empty && !(isnan(made) && isnan(empty))) return false;
  }
  return true;
}

/* The repair of component k; before the first block, where arithmetic would spoil it (a mean of no elements),
 * by selection. */
static const bb_expr *repair_of(bb_build *b, const bb_monoid *monoid, uint32_t k) {
  bb_program *p = b->program;
  const bb_expr *repair = monoid->component[k].repair, *nothing = NULL;
  if (keeps_nothing(monoid, k)) return repair;
  for (uint32_t i = 0; i < monoid->components; i++) {
    double empty = bb_monoid_empty_of(monoid, i);
    bb_dtype dtype = monoid->component[i].dtype;
    if (i == k || !bb_expr_uses_arg(repair, i)) continue;
    const bb_expr *was = bb_expr_arg(p, dtype, i);
    const bb_expr *is = isnan(empty)
                            ? bb_expr_make(p, BB_X_ISNAN, was, NULL, NULL)
                            : bb_expr_make(p, BB_X_EQ, was, bb_expr_const(p, dtype, empty), NULL);
    nothing = nothing ? bb_expr_make(p, BB_X_AND, nothing, is, NULL) : is;
  }
  if (!nothing) return repair;
  const bb_expr *own =
      bb_expr_cast(p, repair->dtype, bb_expr_arg(p, monoid->component[k].dtype, k));
  return bb_expr_make(p, BB_X_SELECT, nothing, own, repair);
}

/* result = expr, of the operands in the list that it reads. */
static void map_read(bb_build *b, uint32_t result, const bb_expr *expr, uint32_t count,
                     const uint32_t *tile) {
  const bb_expr *with[2 * BB_MONOID_COMPONENTS + 1] = {0};
  uint32_t operand[2 * BB_MONOID_COMPONENTS + 1], operands = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (!bb_expr_uses_arg(expr, i)) continue;
    with[i] = bb_expr_arg(b->program, b->tile->tile[tile[i]].dtype, operands);
    operand[operands++] = tile[i];
  }
  expr = bb_expr_substitute(b->program, expr, count, with);
  bb_dtype dtype = b->tile->tile[result].dtype;
  if (expr->dtype != dtype) expr = bb_expr_cast(b->program, dtype, expr);
  bb_build_map_into(b, result, b->depth, expr, operands, operand);
}

static bb_tile_body *body_of(bb_build *b) {
  return &b->frame[bb_build_place(b, b->depth)].body;
}

/* What was appended since there were `count` statements comes to stand before the last of those. */
static void move_before(bb_tile_body *body, uint32_t count) {
  bb_tile_stmt *moved = body->stmt[count - 1];
  for (uint32_t i = count; i < body->count; i++) body->stmt[i - 1] = body->stmt[i];
  body->stmt[body->count - 1] = moved;
}

void bb_schedule_renewed(bb_build *b, const bb_renewal *r, uint32_t k, bool used,
                         const bb_node *node, const bb_build_value *const *in,
                         bb_build_value *out) {
  uint32_t n = r->monoid->components, tile[2 * BB_MONOID_COMPONENTS + 1] = {0};
  const bb_monoid_component *c = &r->monoid->component[k];
  bool kept = used || is_read(r->monoid, k),
       product = node->op == BB_OP_DOT && c->fold == BB_MONOID_SUM;
  if (product && !kept) b->into = r->acc[k];
  bb_schedule_func(b, node, in, out);
  product = product && b->into == r->acc[k];
  b->into = BB_NONE;
  for (uint32_t i = 0; i < n; i++) {
    tile[i] = r->acc[i];
    tile[n + i] = r->fresh[i];
  }
  bb_tile_shape(b, r->acc[k], out->row, out->col);
  const bb_expr *repaired = repair_of(b, r->monoid, k);
  if (product) {
    bool same = repaired->op == BB_X_ARG && repaired->index == k;
    uint32_t made = body_of(b)->count;
    if (!same) map_read(b, r->acc[k], repaired, 2 * n, tile);
    if (!same) move_before(body_of(b), made);
    r->fresh[k] = r->acc[k];
    return;
  }
  bb_dtype dtype = b->tile->tile[r->acc[k]].dtype, both[2] = {dtype, dtype};
  uint32_t term = bb_tile_as(b, bb_value_tile(b, node, out), dtype);
  const bb_monoid *fold = bb_monoid_get(c->fold);
  const bb_expr *with[2] = {repaired, bb_expr_arg(b->program, dtype, 2 * n)};
  const bb_expr *expr = bb_monoid_expr(b->program, fold, 0, both);
  expr = bb_expr_substitute(b->program, expr, 2, with);
  tile[2 * n] = term;
  r->fresh[k] = kept ? bb_build_tile(b, dtype, out->row, out->col, b->depth) : r->acc[k];
  map_read(b, r->fresh[k], expr, 2 * n + 1, tile);
  if (kept) out->tile = bb_tile_as(b, r->fresh[k], node->out[0].type->item.dtype);
}

void bb_renewal_settle(bb_build *b, const bb_renewal *r) {
  for (uint32_t k = 0; k < r->monoid->components; k++)
    if (r->fresh[k] != r->acc[k])
      bb_build_map_into(b, r->acc[k], b->depth,
                        bb_expr_arg(b->program, b->tile->tile[r->acc[k]].dtype, 0), 1,
                        &r->fresh[k]);
}
