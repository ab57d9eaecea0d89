/* swap_shift_dot.c - Rule 5: linearity of matmul, swap shift and dot.
 *
 *   I1[K]     c                        I2[N][K]              I1[K]  I2[N][K]
 *     |       |                           |                    |      |
 *   [ K: row_shift ]   I2[N][K]     [ N: K: row_sum; sum ]   [ N: K: dot; sum ]
 *          |              |      ==>      |       c                  |
 *          +---[ N: K: dot; sum ]      [ N: outer ]                  |
 *                    |                        +-------[ N: add ]-----+
 *                                                          |
 *
 * (I1 + c 1') I2 = I1 I2 + c (1' I2).  The right operand arrives transposed, so its column sums are
 * row sums here.
 *
 * Conditions: those of Rule 4, and
 * - the right operand is a block, for outer takes two vectors of rows.
 * A map that iterates the right operand chunks its rows or nothing, as it must for the row sums: one that
 * chunks rows of the product chunks c, which has one number for each, and is refused as in Rule 4.
 *
 * Reassociating: c times the sums of I2 is taken from I1 I2 afterwards, which cancels digits when
 * c is large beside I1.  Lowers: shifts in front of products.
 * Near misses: c iterated by the contraction; a column shift; a second use.
 */
#include "nest.h"

bool bb_swap_shift_dot_reads(bb_match *match, bool alone, bb_scaled_product *found) {
  if (!bb_scaled_product_read(match, 0, 1 << BB_OP_ROW_SHIFT, alone, found)) return false;
  if (bb_loops_iterating(&found->scale, 1))
    return bb_miss(match, "the shift changes along the loops of the product");
  bb_item right = bb_type_of(match->scope->graph, found->product.operand[1].value)->item;
  if (right.row == BB_NO_DIM) return bb_miss(match, "the right operand is not a block");
  return true;
}

static bool match(bb_match *match) {
  bb_scaled_product found;
  if (!bb_swap_shift_dot_reads(match, true, &found)) return false;
  return bb_hit(match, 0, 2, (uint32_t[]){found.scale.node, found.product.node});
}

/* The sums of the right operand's rows: the product's nest, where it iterates that operand. */
static bb_value row_sums(bb_graph *graph, const bb_loops *product) {
  bb_loops sums = *product;
  sums.op = BB_OP_ROW_SUM;
  sums.operands = 1;
  sums.operand[0] = product->operand[1];
  for (uint32_t i = 0; i < sums.outputs; i++)
    if (sums.axis[i] == BB_AXIS_COL) sums.axis[i] = BB_AXIS_ROW;
  uint32_t summed = ((uint32_t)1 << sums.depth) - ((uint32_t)1 << sums.outputs);
  bb_loops_keep(&sums, bb_loops_iterating(&sums, 0) | summed);
  return bb_loops_build(graph, &sums);
}

/* c outer sums, over the product's output maps; c is the same everywhere. */
static bb_value outer(bb_graph *graph, const bb_loops *product, bb_value c, bb_value sums) {
  bb_loops nest = *product;
  nest.depth = nest.outputs;
  nest.op = BB_OP_OUTER;
  nest.expr = bb_loops_terms(graph->program, product, NULL);
  uint32_t iterated = bb_loops_iterating(product, 1);
  nest.operand[0] = (bb_operand){.value = c};
  nest.operand[1] = (bb_operand){.value = sums};
  for (uint32_t i = 0; i < nest.depth; i++) {
    nest.operand[0].level[i] = BB_WHOLE;
    nest.operand[1].level[i] = iterated >> i & 1 ? 0 : BB_WHOLE;
  }
  return bb_loops_build(graph, &nest);
}

static void apply(bb_match *match) {
  bb_graph *graph = match->scope->graph;
  bb_scaled_product found;
  bb_swap_shift_dot_reads(match, true, &found);
  bb_loops product = found.product;
  product.operand[0].value = found.scale.operand[0].value;
  bb_value sums = row_sums(graph, &product);
  bb_value shift = outer(graph, &product, found.scale.operand[1].value, sums);
  bb_value result = bb_loops_build(graph, &product);
  bb_value shifted =
      bb_loops_over_outputs(graph, &product, BB_OP_ADD, shift, result, UINT32_MAX, NULL);
  bb_scaled_product_replace(graph, &found, shifted);
}

const bb_rule bb_rule_swap_shift_dot = {
    .number = 5,
    .name = "swap shift and dot",
    .exactness = BB_CANCELLING,
    .lowers = "shifts in front of products",
    .anchors = 1 << BB_NODE_MAP | 1 << BB_NODE_FUNC,
    .ops = 1 << BB_OP_DOT,
    .wakes = BB_WAKE_SOLE_USER,
    .match = match,
    .apply = apply,
};
