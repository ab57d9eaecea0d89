/* swap_right_scale_dot.c - Rule 11 (not in the paper): a row scale of a product's right operand moves
 * out onto the columns of the result.
 *
 *           I2[N][K]   c[N]                           I1[K]   I2[N][K]      c[N]
 *              |        |                               |       |            |
 *   I1[K]   [ N: K: row_scale ]                       [ N: K: dot; sum ]  [ N: transpose ]
 *     |        |                       ==>                   |               |
 *   [ N: K: dot; sum ]                                       +-[ N: col_scale ]
 *            |                                                      |
 *
 * I1 (diag(c) I2)' = (I1 I2') diag(c).  Norms of keys and scales of quantised weights stand there.
 *
 * Conditions:
 * - c is the same for all maps that the product sums over;
 * - the scaled value has no other use, and is not a constant: that one is computed once, at load.
 *
 * Reassociating.  Lowers: row scales in front of products.
 * Near misses: c iterated by the contraction; a constant operand; a second use.
 */
#include "nest.h"

static bool reads(bb_match *match, bb_scaled_product *found) {
  if (!bb_scaled_product_read(match, 1, 1 << BB_OP_ROW_SCALE, true, found)) return false;
  const bb_loops *scale = &found->scale;
  for (uint32_t i = 0; i < scale->depth; i++) {
    if (scale->operand[1].level[i] == BB_WHOLE) continue;
    if (found->at[i] >= found->product.outputs)
      return bb_miss(match, "the scale changes along the contraction");
  }
  return true;
}

static bool match(bb_match *match) {
  bb_scaled_product found;
  if (!reads(match, &found)) return false;
  return bb_hit(match, 0, 2, (uint32_t[]){found.scale.node, found.product.node});
}

/* c as columns, its lists in the order of the loops that iterate them. */
static bb_value turned(bb_graph *graph, const bb_loops *scale) {
  bb_loops nest = *scale;
  nest.op = BB_OP_TRANSPOSE;
  nest.expr = NULL;
  nest.operands = 1;
  nest.operand[0] = scale->operand[1];
  bb_loops_axes(graph, &nest, 0, nest.axis);
  for (uint32_t i = 0; i < nest.depth; i++)
    if (nest.axis[i] == BB_AXIS_ROW) nest.axis[i] = BB_AXIS_COL;
  bb_loops_keep(&nest, bb_loops_iterating(&nest, 0));
  return bb_loops_build(graph, &nest);
}

static void apply(bb_match *match) {
  bb_graph *graph = match->scope->graph;
  bb_scaled_product found;
  reads(match, &found);
  bb_loops product = found.product;
  product.operand[1].value = found.scale.operand[0].value;
  uint32_t iterated = 0;
  for (uint32_t i = 0; i < found.scale.depth; i++)
    if (found.scale.operand[1].level[i] != BB_WHOLE) iterated |= (uint32_t)1 << found.at[i];
  bb_value c = turned(graph, &found.scale);
  bb_value result = bb_loops_build(graph, &product);
  const bb_expr *terms = bb_loops_terms(graph->program, &product, found.scale.expr);
  bb_value scaled =
      bb_loops_over_outputs(graph, &product, BB_OP_COL_SCALE, result, c, iterated, terms);
  bb_scaled_product_replace(graph, &found, scaled);
}

const bb_rule bb_rule_swap_right_scale_dot = {
    .number = 11,
    .name = "swap scale of right operand and dot",
    .exactness = BB_REASSOCIATING,
    .lowers = "row scales in front of products",
    .anchors = 1 << BB_NODE_MAP | 1 << BB_NODE_FUNC,
    .ops = 1 << BB_OP_DOT,
    .wakes = BB_WAKE_SOLE_USER,
    .match = match,
    .apply = apply,
};
