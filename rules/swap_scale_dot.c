/* swap_scale_dot.c - Rule 4: linearity of matmul, swap scale and dot.
 *
 *   I1[K]     c                              I1[K]   I2[N][K]
 *     |       |                                 |     |
 *   [ K: row_scale ]      I2[N][K]           [ N: K: dot; sum ]    c
 *          |                 |        ==>            |             |
 *          +-----[ N: K: dot; sum ]               [ N: row_scale ]-+
 *                       |                                |
 *
 * diag(c) I1 I2 = diag(c) (I1 I2).  The product no longer waits for c, and the map of the scale runs
 * over the product's dims, where it meets what follows.  A product of K = 0 is 0 whatever c is: the new scale knows of
 * which sums c came (bb_node.expr).
 *
 * Conditions:
 * - c is the same for all maps of the scale: a scale that changes along the contraction is not a
 *   factor of the sum;
 * - the scaled value has no other use, for it is not computed any more (Rule 8 makes that so);
 * - the scale stands alone in its maps and the dot in its own, whose sums may be reductions behind
 *   the maps or folds in them; there may be several summed maps, and no output map at all.
 *
 * Reassociating.  Lowers: scales in front of products.
 * Near misses: c iterated by the contraction; a column scale; a scaled right operand; a second use.
 */
#include "nest.h"

bool bb_swap_scale_dot_reads(bb_match *match, bool alone, bb_scaled_product *found) {
  if (!bb_scaled_product_read(match, 0, 1 << BB_OP_ROW_SCALE, alone, found)) return false;
  if (bb_loops_iterating(&found->scale, 1))
    return bb_miss(match, "the scale changes along the loops of the product");
  return true;
}

static bool match(bb_match *match) {
  bb_scaled_product found;
  if (!bb_swap_scale_dot_reads(match, true, &found)) return false;
  return bb_hit(match, 0, 2, (uint32_t[]){found.scale.node, found.product.node});
}

static void apply(bb_match *match) {
  bb_graph *graph = match->scope->graph;
  bb_scaled_product found;
  bb_swap_scale_dot_reads(match, true, &found);
  bb_loops product = found.product;
  product.operand[0].value = found.scale.operand[0].value;
  bb_value result = bb_loops_build(graph, &product);
  const bb_expr *terms = bb_loops_terms(graph->program, &product, found.scale.expr);
  bb_value scaled = bb_loops_over_outputs(graph, &product, BB_OP_ROW_SCALE, result,
                                          found.scale.operand[1].value, 0, terms);
  bb_scaled_product_replace(graph, &found, scaled);
}

const bb_rule bb_rule_swap_scale_dot = {
    .number = 4,
    .name = "swap scale and dot",
    .exactness = BB_REASSOCIATING,
    .lowers = "scales in front of products",
    .anchors = 1 << BB_NODE_MAP | 1 << BB_NODE_FUNC,
    .ops = 1 << BB_OP_DOT,
    .wakes = BB_WAKE_SOLE_USER,
    .match = match,
    .apply = apply,
};
