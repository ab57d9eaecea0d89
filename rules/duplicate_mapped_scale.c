/* duplicate_mapped_scale.c - Rule 8: duplicate a mapped scale (or shift).
 *
 *     I1[K]   c                      I1[K]    c
 *       |     |                        |\     |\
 *   [ K: row_scale ]        [ K: row_scale ] [ K: row_scale ]
 *       |       |      ==>         |               |
 *   [ ..dot ] [ ..dot ]        [ ..dot ]        [ ..dot ]
 *
 * Each product gets a scale of its own, so that Rule 4 can swap the two.  One application splits off
 * the last product in topological order; a value with n uses takes n - 1 of them.
 *
 * Conditions: every use of the value is a product in front of which Rule 4, 5 or 10 would take it
 * if that were its only use.  With any other use the copies would be work for nothing: the value
 * would have to be computed all the same.
 *
 * Exact.  Lowers: uses of scaled values beyond the first.
 * Near misses: a third use that is no product; a use as a right operand; a scale that changes along
 * the contraction of one of the products.
 */
#include "nest.h"

typedef bool reader(bb_match *match, bool alone, bb_scaled_product *found);

/* The rules that are made possible, by the op that they take. */
static reader *reader_of(bb_op op) {
  switch (op) {
  case BB_OP_ROW_SCALE: return bb_swap_scale_dot_reads;
  case BB_OP_ROW_SHIFT: return bb_swap_shift_dot_reads;
  case BB_OP_COL_SCALE:
  case BB_OP_COL_SHIFT: return bb_move_column_scale_reads;
  default: return NULL;
  }
}

static bool read_scale(bb_match *match, bb_loops *scale) {
  bb_op op = bb_loops_op(match->scope->graph, match->anchor);
  if (!reader_of(op)) return bb_miss(match, "not a mapped scale or shift");
  return bb_loops_read(match->scope->graph, match->anchor, op, scale, &match->why);
}

/* The use that is split off: the last in topological order, of at least two. */
static bool last_use(bb_match *match, const bb_loops *scale, bb_use *last) {
  bb_scope *scope = match->scope;
  bb_graph *graph = scope->graph;
  *last = bb_first_use(graph, scale->result);
  if (last->node == BB_NONE || bb_next_use(graph, *last).node == BB_NONE)
    return bb_miss(match, "the value has no second use");
  reader *reads = reader_of(scale->op);
  bool asked = match->partner == BB_NONE;
  for (bb_use u = *last; u.node != BB_NONE; u = bb_next_use(graph, u)) {
    bb_match product = {.scope = scope, .anchor = u.node, .partner = match->anchor};
    bb_scaled_product found;
    asked |= u.node == match->partner;
    if (!reads(&product, false, &found)) {
      match->why = product.why;
      return false;
    }
    if (bb_scope_before(scope, last->node, u.node)) *last = u;
  }
  return asked || bb_miss(match, "the other node does not use the value");
}

static bool match(bb_match *match) {
  bb_loops scale;
  bb_use last;
  if (!read_scale(match, &scale) || !last_use(match, &scale, &last)) return false;
  return bb_hit(match, 0, 2, (uint32_t[]){match->anchor, last.node});
}

static void apply(bb_match *match) {
  bb_graph *graph = match->scope->graph;
  bb_loops scale;
  bb_use last;
  read_scale(match, &scale);
  last_use(match, &scale, &last);
  bb_connect(graph, last.node, last.port, bb_loops_build(graph, &scale));
}

const bb_rule bb_rule_duplicate_mapped_scale = {
    .number = 8,
    .name = "duplicate mapped scale",
    .exactness = BB_EXACT,
    .lowers = "uses of scaled values beyond the first",
    .anchors = 1 << BB_NODE_MAP | 1 << BB_NODE_FUNC,
    .ops =
        1 << BB_OP_ROW_SCALE | 1 << BB_OP_ROW_SHIFT | 1 << BB_OP_COL_SCALE | 1 << BB_OP_COL_SHIFT,
    .wakes = BB_WAKE_OPERANDS,
    .match = match,
    .apply = apply,
};
