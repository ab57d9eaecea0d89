/* move_column_scale.c - Rule 10 (not in the paper): a column scale or shift of a product's left
 * operand moves into its right operand.
 *
 * (a) scale:  I1[K]     s[K]                     I2[N][K]   s[K]
 *               |        |                          |        |
 *             [ K: col_scale ]   I2[N][K]        [ N: K: col_scale ]     I1[K]
 *                    |             |      ==>            |                |
 *                    +---[ N: K: dot; sum ]              +---[ N: K: dot; sum ]
 *                               |                                     |
 *
 * (b) shift:  as above with        s[K]   I2[N][K]         I1[K]   I2[N][K]
 *             col_shift             |       |                |       |
 *                                 [ N: K: dot; sum ]       [ N: K: dot; sum ]
 *                                         |                       |
 *                                         +-----[ N: col_shift ]--+
 *
 * (I1 diag(s)) I2' = I1 (I2 diag(s))', and (I1 + 1 s) I2' = I1 I2' + 1 (s I2').  Norms multiply by a
 * gamma and add a beta along the columns, which would hide the row scale from Rule 4.  When s and the
 * right operand are constants the new operand (or the product s I2') is built at the root, through new
 * in-ports of the maps around, so that it is computed once, at load.
 *
 * Conditions: the moved value has no other use, and stands alone in its maps; what iterates s
 * iterates the right operand too: else the new operand would be larger than the old one.  Under a shift
 * the right operand is a block: a vector of sums has no columns to shift.
 *
 * Reassociating.  Lowers: column scales and shifts of left operands.
 * Near misses: s iterated by an output map that does not iterate the right operand; a second use.
 */
#include "nest.h"

bool bb_move_column_scale_reads(bb_match *match, bool alone, bb_scaled_product *found) {
  uint32_t ops = 1 << BB_OP_COL_SCALE | 1 << BB_OP_COL_SHIFT;
  if (!bb_scaled_product_read(match, 0, ops, alone, found)) return false;
  const bb_loops *scale = &found->scale;
  uint32_t right = bb_loops_iterating(&found->product, 1);
  for (uint32_t i = 0; i < scale->depth; i++) {
    if (scale->operand[1].level[i] == BB_WHOLE) continue;
    if (!(right >> found->at[i] & 1))
      return bb_miss(match, "the columns change where the right operand does not");
  }
  bb_item item = bb_type_of(match->scope->graph, found->product.operand[1].value)->item;
  if (scale->op == BB_OP_COL_SHIFT && item.row == BB_NO_DIM)
    return bb_miss(match, "the right operand is not a block: its product has no columns to shift");
  return true;
}

static bool match(bb_match *match) {
  bb_scaled_product found;
  if (!bb_move_column_scale_reads(match, true, &found)) return false;
  char variant = found.scale.op == BB_OP_COL_SCALE ? 'a' : 'b';
  return bb_hit(match, variant, 2, (uint32_t[]){found.scale.node, found.product.node});
}

/* --- at load --- */

/* One loop around an operand that is traced outwards: the maps around the level, innermost first. */
typedef struct origin {
  bb_scope *root;
  bb_value value;
  uint32_t depth;
  uint32_t level[BB_LOOPS_DEPTH];
} origin;

static bool find_origin(bb_scope *scope, bb_value value, origin *found) {
  *found = (origin){.value = value};
  for (; scope->parent; scope = scope->parent) {
    const bb_graph *graph = scope->graph;
    const bb_node *map = bb_node_get(scope->parent->graph, scope->map);
    uint32_t port = 0;
    while (port < graph->ninputs && graph->input[port] != found->value.node) port++;
    if (port == graph->ninputs || found->depth == BB_LOOPS_DEPTH) return false;
    found->level[found->depth++] = map->in[port].level;
    found->value = map->in[port].src;
  }
  found->root = scope;
  return bb_scope_constant(scope, found->value.node);
}

/* The axis of the result that a loop chunks, given those of the two operands. */
static bb_axis result_axis(bb_op op, bb_axis left, bb_axis right) {
  if (op != BB_OP_DOT) return left == BB_AXIS_NONE ? right : left;
  if (right == BB_AXIS_ROW) return BB_AXIS_COL;
  return left == BB_AXIS_ROW ? BB_AXIS_ROW : BB_AXIS_NONE; /* columns are summed: it gives terms */
}

/* The nest with the loops of the maps around its level in front, where one of them iterates an
 * operand; bit i of *around: map i around the level, innermost first, became a loop. */
static bool widen(bb_scope *scope, bb_loops *nest, uint32_t *around) {
  origin from[2];
  if (!find_origin(scope, nest->operand[0].value, &from[0]) ||
      !find_origin(scope, nest->operand[1].value, &from[1]))
    return false;
  bb_loops wide = *nest;
  wide.depth = 0;
  *around = 0;
  for (uint32_t i = from[0].depth; i-- > 0;) {
    if (from[0].level[i] == BB_WHOLE && from[1].level[i] == BB_WHOLE) continue;
    *around |= (uint32_t)1 << i;
    if (wide.depth + nest->depth >= BB_LOOPS_DEPTH) return false;
    bb_scope *at = scope;
    for (uint32_t up = 0; up < i; up++) at = at->parent;
    wide.dim[wide.depth] = bb_node_get(at->parent->graph, at->map)->dim;
    for (uint32_t k = 0; k < 2; k++) wide.operand[k].level[wide.depth] = from[k].level[i];
    wide.depth++;
  }
  uint32_t loops = wide.depth;
  for (uint32_t k = 0; k < 2; k++) wide.operand[k].value = from[k].value;
  for (uint32_t i = 0; i < nest->depth; i++, wide.depth++) {
    wide.dim[wide.depth] = nest->dim[i];
    wide.axis[wide.depth] = nest->axis[i];
    wide.folded[wide.depth] = nest->folded[i];
    for (uint32_t k = 0; k < 2; k++) wide.operand[k].level[wide.depth] = nest->operand[k].level[i];
  }
  bb_axis axis[2][BB_LOOPS_DEPTH];
  for (uint32_t k = 0; k < 2; k++) bb_loops_axes(from[0].root->graph, &wide, k, axis[k]);
  for (uint32_t i = 0; i < loops; i++) wide.axis[i] = result_axis(nest->op, axis[0][i], axis[1][i]);
  wide.outputs = nest->outputs + loops;
  *nest = wide;
  return true;
}

/* Brings a value of the root down to a scope. */
static bb_value bring_down(bb_scope *scope, bb_value value, uint32_t around) {
  if (!scope->parent) return value;
  value = bring_down(scope->parent, value, around >> 1);
  return bb_map_in(scope->parent->graph, scope->map, value, around & 1 ? 0 : BB_WHOLE);
}

/* Builds a nest at the root if its operands are constants, else in the level. */
static bb_value build_early(bb_scope *scope, bb_loops nest) {
  uint32_t around;
  if (!scope->parent || !widen(scope, &nest, &around)) return bb_loops_build(scope->graph, &nest);
  bb_scope *root = scope;
  while (root->parent) root = root->parent;
  return bring_down(scope, bb_loops_build(root->graph, &nest), around);
}

/* --- the two variants --- */

/* s as an operand of the product's maps. */
static bb_operand columns(const bb_scaled_product *found) {
  bb_operand s = {.value = found->scale.operand[1].value};
  for (uint32_t i = 0; i < found->product.depth; i++) s.level[i] = BB_WHOLE;
  for (uint32_t i = 0; i < found->scale.depth; i++)
    s.level[found->at[i]] = found->scale.operand[1].level[i];
  return s;
}

static bb_value move_scale(bb_scope *scope, const bb_scaled_product *found) {
  bb_loops product = found->product, moved = product;
  moved.op = BB_OP_COL_SCALE;
  moved.expr = found->scale.expr;
  moved.operand[0] = product.operand[1];
  moved.operand[1] = columns(found);
  bb_loops_axes(scope->graph, &moved, 0, moved.axis);
  uint32_t right = bb_loops_iterating(&product, 1);
  bb_loops_keep(&moved, right);
  moved.outputs = moved.depth;
  product.operand[0].value = found->scale.operand[0].value;
  product.operand[1].value = build_early(scope, moved);
  for (uint32_t i = 0; i < product.depth; i++)
    product.operand[1].level[i] = right >> i & 1 ? 0 : BB_WHOLE;
  return bb_loops_build(scope->graph, &product);
}

static bb_value move_shift(bb_scope *scope, const bb_scaled_product *found) {
  bb_loops product = found->product, shift = product;
  shift.operand[0] = columns(found);
  uint32_t right = bb_loops_iterating(&product, 1);
  uint32_t summed = ((uint32_t)1 << product.depth) - ((uint32_t)1 << product.outputs);
  bb_loops_keep(&shift, right | summed);
  product.operand[0].value = found->scale.operand[0].value;
  bb_value moved = build_early(scope, shift);
  bb_value result = bb_loops_build(scope->graph, &product);
  return bb_loops_over_outputs(scope->graph, &product, BB_OP_COL_SHIFT, result, moved, right, NULL);
}

static void apply(bb_match *match) {
  bb_scope *scope = match->scope;
  bb_scaled_product found;
  bb_move_column_scale_reads(match, true, &found);
  bb_value with =
      found.scale.op == BB_OP_COL_SCALE ? move_scale(scope, &found) : move_shift(scope, &found);
  bb_scaled_product_replace(scope->graph, &found, with);
}

const bb_rule bb_rule_move_column_scale = {
    .number = 10,
    .name = "move column scale into right operand",
    .exactness = BB_REASSOCIATING,
    .lowers = "column scales and shifts of left operands",
    .anchors = 1 << BB_NODE_MAP | 1 << BB_NODE_FUNC,
    .ops = 1 << BB_OP_DOT,
    .wakes = BB_WAKE_SOLE_USER,
    .match = match,
    .apply = apply,
};
