/* narrow_before_scale.c - Rule 13 (not in the paper): what is scaled or shifted, then narrowed for a product,
 * is narrowed first.
 *
 *   I1[K]     c                           I1[K]
 *     |       |                             |
 *   [ K: row_scale ]              [ K: elementwise f16 ]   c
 *          |                ==>             |              |
 *   [ K: elementwise f16 ]               [ K: row_scale ]--+
 *          |                                     |
 *     [ ..dot ]                              [ ..dot ]
 *
 * A model in 16 bits computes its softmax or its norm in float32, and casts to 16 bits for the product behind it.  The
 * cast would hide the scale from Rules 4, 5, 8, 10 and 11.  c stays as wide as it is (a sum's inverse lies outside
 * float16 soon); columns, which are parameters, are narrowed too, for Rule 10 multiplies them by the other operand.
 *
 * Conditions:
 * - the scaled value has no other use;
 * - all that uses the narrowed value is products, or scales and shifts on the way to such;
 * - the narrow type holds all that I1 may be: it has the wide one's exponents, or I1 has come from it, but for shifts, or is
 *   exps, which the repair keeps within it (fuse/scalar_fault.c);
 * - rows are shifted only if I1 has come from the narrow type: then narrowing it again loses nothing, and otherwise
 *   digits that the shift would have left.
 *
 * Widens: I1 is rounded where c I1 was, which is not any more.  Lowers: narrowing casts behind scales and shifts.
 * Near misses: a cast to float32; a cast whose result is an output; rows of float32 that are shifted; a stream of float32 that a norm brings
 * into float16.
 */
#include "nest.h"

#include <math.h>

enum {
  ROWS = 1 << BB_OP_ROW_SCALE | 1 << BB_OP_ROW_SHIFT,
  COLS = 1 << BB_OP_COL_SCALE | 1 << BB_OP_COL_SHIFT,
  SHIFTS = 1 << BB_OP_ROW_SHIFT | 1 << BB_OP_COL_SHIFT
};

typedef struct narrowing {
  bb_loops cast, scale;
  bb_loops widening; /* of I1, if `was_narrow` */
  bool was_narrow;
} narrowing;

/* Is it the cast of one operand, of floats, to fewer or more bytes? */
static bool casts(const bb_expr *expr, bool narrows) {
  if (expr->op != BB_X_CAST || expr->a[0]->op != BB_X_ARG) return false;
  bb_dtype from = expr->a[0]->dtype, to = expr->dtype;
  if (!bb_dtype_is_float(from) || !bb_dtype_is_float(to)) return false;
  size_t was = bb_dtype_bytes(from), is = bb_dtype_bytes(to);
  return narrows ? is < was : is > was;
}

/* Reads a mapped cast of one operand, whose maps iterate it as they collect. */
static bool read_cast(const bb_graph *graph, uint32_t node, bool narrows, bb_loops *cast) {
  const char *why;
  if (bb_loops_op(graph, node) != BB_OP_ELEMENTWISE ||
      !bb_loops_read(graph, node, BB_OP_ELEMENTWISE, cast, &why) || cast->operands != 1 ||
      cast->outputs != cast->depth || !casts(cast->expr, narrows))
    return false;
  for (uint32_t i = 0; i < cast->depth; i++)
    if (cast->operand[0].level[i] != 0) return false;
  return true;
}

/* Whether all uses of a value are products, or lead to them alone. */
static bool feeds_products(const bb_graph *graph, bb_value value, uint32_t depth) {
  bb_use use = bb_first_use(graph, value);
  if (use.node == BB_NONE) return false;
  for (; use.node != BB_NONE; use = bb_next_use(graph, use)) {
    bb_op op = bb_loops_op(graph, use.node);
    if (op == BB_OP_DOT) continue;
    bb_loops nest;
    const char *why;
    if (op == BB_OP_COUNT || !((ROWS | COLS) >> op & 1) || depth == 0 ||
        !bb_loops_read(graph, use.node, op, &nest, &why) ||
        !bb_value_equal(nest.operand[0].value, value) ||
        !feeds_products(graph, nest.result, depth - 1))
      return false;
  }
  return true;
}

/* An exp, or 0, or an exp under a condition: the repair of exps keeps those within float16. */
static bool is_exp(const bb_expr *expr) {
  switch (expr->op) {
  case BB_X_EXP: return true;
  case BB_X_CONST: return fabs(expr->number) <= 1;
  case BB_X_SELECT: return is_exp(expr->a[1]) && is_exp(expr->a[2]);
  default: return false;
  }
}

/* Are the elements of a value what an elementwise op makes of exps, in this level? */
static bool holds_exps(const bb_graph *graph, bb_value value) {
  const bb_node *node = bb_node_get(graph, value.node);
  while (node->kind == BB_NODE_MAP && node->out[value.port].mode == BB_OUT_COLLECT) {
    graph = node->inner;
    value = bb_src(graph, graph->output[value.port], 0);
    node = bb_node_get(graph, value.node);
  }
  return node->kind == BB_NODE_FUNC && node->op == BB_OP_ELEMENTWISE && is_exp(node->expr);
}

/* Has it come from a narrow type, but for shifts?  Those are by a mean or a maximum of such values: the difference fits where they do, and its digits
 * are theirs. */
static bool comes_from(const bb_graph *graph, bb_value value, bb_dtype narrow) {
  bb_loops nest;
  const char *why;
  bb_op op = bb_loops_op(graph, value.node);
  if (read_cast(graph, value.node, false, &nest)) return nest.expr->a[0]->dtype == narrow;
  return op != BB_OP_COUNT && SHIFTS >> op & 1 &&
         bb_loops_read(graph, value.node, op, &nest, &why) &&
         comes_from(graph, nest.operand[0].value, narrow);
}

static bool read(bb_match *match, narrowing *found) {
  const bb_graph *graph = match->scope->graph;
  if (!read_cast(graph, match->anchor, true, &found->cast))
    return bb_miss(match, "not a mapped cast to a narrower float");
  bb_value scaled = found->cast.operand[0].value;
  if (match->partner != BB_NONE && scaled.node != match->partner)
    return bb_miss(match, "the other node does not make the operand of the cast");
  bb_op op = bb_loops_op(graph, scaled.node);
  if (op == BB_OP_COUNT || !((ROWS | COLS) >> op & 1))
    return bb_miss(match, "the operand of the cast is not a mapped scale or shift");
  if (!bb_loops_read(graph, scaled.node, op, &found->scale, &match->why)) return false;
  const bb_loops *scale = &found->scale;
  if (scale->outputs != scale->depth || scale->depth != found->cast.depth)
    return bb_miss(match, "the maps of the cast are not those of the scale");
  for (uint32_t i = 0; i < scale->depth; i++)
    if (scale->operand[0].level[i] != 0)
      return bb_miss(match, "the operand is not collected as it is iterated");
  if (bb_next_use(graph, bb_first_use(graph, scaled)).node != BB_NONE)
    return bb_miss(match, "the scaled value has other uses");
  bb_dtype narrow = found->cast.expr->dtype;
  found->was_narrow = read_cast(graph, scale->operand[0].value.node, false, &found->widening) &&
                      found->widening.depth == scale->depth &&
                      found->widening.expr->a[0]->dtype == narrow;
  if (op == BB_OP_ROW_SHIFT && !found->was_narrow)
    return bb_miss(match, "rows are shifted that have more digits");
  if (!feeds_products(graph, found->cast.result, BB_LOOPS_DEPTH))
    return bb_miss(match, "the narrowed value is used by other than products");
  bb_value of = scale->operand[0].value;
  if (!bb_dtype_has_range(narrow, found->cast.expr->a[0]->dtype) &&
      !comes_from(graph, of, narrow) && !holds_exps(graph, of))
    return bb_miss(match, "what is scaled may be beyond what the narrow type holds");
  return true;
}

static bool match(bb_match *match) {
  narrowing found;
  if (!read(match, &found)) return false;
  return bb_hit(match, 0, 2, (uint32_t[]){found.scale.node, found.cast.node});
}

/* An operand of the scale, cast as its result was. */
static bb_value narrowed(bb_graph *graph, const narrowing *found, uint32_t operand) {
  bb_loops nest = found->scale;
  nest.op = BB_OP_ELEMENTWISE;
  nest.expr = found->cast.expr;
  nest.operands = 1;
  nest.operand[0] = found->scale.operand[operand];
  bb_loops_axes(graph, &nest, 0, nest.axis);
  bb_loops_keep(&nest, bb_loops_iterating(&nest, 0));
  return bb_loops_build(graph, &nest);
}

static void apply(bb_match *match) {
  bb_graph *graph = match->scope->graph;
  narrowing found;
  read(match, &found);
  bb_loops scale = found.scale;
  bool cols = COLS >> scale.op & 1;
  scale.operand[0].value =
      found.was_narrow ? found.widening.operand[0].value : narrowed(graph, &found, 0);
  if (cols &&
      bb_type_of(graph, scale.operand[1].value)->item.dtype == found.cast.expr->a[0]->dtype) {
    scale.operand[1].value = narrowed(graph, &found, 1);
    for (uint32_t i = 0; i < scale.depth; i++)
      if (scale.operand[1].level[i] != BB_WHOLE) scale.operand[1].level[i] = 0;
  }
  bb_replace_uses(graph, found.cast.result, bb_loops_build(graph, &scale));
  bb_loops_remove(graph, &found.cast);
  bb_loops_remove(graph, &found.scale);
  if (found.was_narrow && bb_first_use(graph, found.widening.result).node == BB_NONE)
    bb_loops_remove(graph, &found.widening);
}

const bb_rule bb_rule_narrow_before_scale = {
    .number = 13,
    .name = "narrow before scale",
    .exactness = BB_WIDENING,
    .lowers = "narrowing casts behind scales and shifts",
    .anchors = 1 << BB_NODE_MAP | 1 << BB_NODE_FUNC,
    .ops = 1 << BB_OP_ELEMENTWISE,
    .wakes = BB_WAKE_SOLE_USER,
    .match = match,
    .apply = apply,
};
