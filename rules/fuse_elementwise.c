/* fuse_elementwise.c - Rule 9: fuse consecutive elementwise operators.
 *
 *        |                    |
 *   [ f : elementwise ]       |
 *        |             ==>  [ g(f) : elementwise ]
 *   [ g : elementwise ]       |
 *        |                    |
 *
 * Conditions:
 * - g is the only user of f, else f would be computed twice or still be needed;
 * - g takes no other block, and its result has the axes of f's: else f would be evaluated for
 *   elements that it does not have, or a chain of named ops would close up into one that no other
 *   rule knows.  Longer chains merge when kernels are made;
 * - together they are not too deep to be walked: a chain of thousands stays in parts.
 *
 * Exact: the same operations on each element, each rounded as before.  Lowers: functional ops.
 * Near misses: f used twice; g(f, another block); a vector f in a block g.
 */
#include "rule.h"

static const bb_node *elementwise(const bb_graph *graph, uint32_t node) {
  const bb_node *n = bb_node_get(graph, node);
  return n->kind == BB_NODE_FUNC && n->op == BB_OP_ELEMENTWISE ? n : NULL;
}

static bool is_block(bb_item item) {
  return item.row != BB_NO_DIM && item.col != BB_NO_DIM;
}

/* Is `f` used by `g` alone? */
static bool only_user(const bb_graph *graph, uint32_t f, uint32_t g) {
  for (bb_use u = bb_first_use(graph, (bb_value){f, 0}); u.node != BB_NONE;
       u = bb_next_use(graph, u))
    if (u.node != g) return false;
  return true;
}

static bool takes(bb_match *match, uint32_t f) {
  const bb_graph *graph = match->scope->graph;
  const bb_node *g = elementwise(graph, match->anchor);
  if (!elementwise(graph, f)) return bb_miss(match, "the operand is not made by an elementwise op");
  if (!only_user(graph, f, match->anchor)) return bb_miss(match, "the operand has other users");
  bb_item from = bb_type_of(graph, (bb_value){f, 0})->item, to = g->out[0].type->item;
  if (from.row != to.row || from.col != to.col)
    return bb_miss(match, "the result has axes that the operand lacks");
  if (!bb_expr_may_join(g->expr, elementwise(graph, f)->expr))
    return bb_miss(match, "together they would be nested too deep");
  for (uint32_t i = 0; i < g->nin; i++)
    if (g->in[i].src.node != f && is_block(bb_type_of(graph, g->in[i].src)->item))
      return bb_miss(match, "the second op takes another block");
  return true;
}

static bool match(bb_match *match) {
  const bb_graph *graph = match->scope->graph;
  const bb_node *g = elementwise(graph, match->anchor);
  if (!g) return bb_miss(match, "not an elementwise op");
  match->why = match->partner == BB_NONE ? "the op has no operands"
                                         : "the other node does not make an operand";
  for (uint32_t i = 0; i < g->nin; i++) {
    uint32_t f = g->in[i].src.node;
    if (match->partner != BB_NONE && f != match->partner) continue;
    if (takes(match, f)) return bb_hit(match, 0, 2, (uint32_t[]){f, match->anchor});
  }
  return false;
}

/* Operands of the fused op: those of f, then those of g without f. */
static void apply(bb_match *match) {
  bb_graph *graph = match->scope->graph;
  bb_program *program = graph->program;
  uint32_t f = match->node[0], g = match->node[1];
  const bb_node *first = bb_node_get(graph, f), *second = bb_node_get(graph, g);
  bb_arena *scratch = bb_scratch(program->ctx);
  bb_value *in = BB_NEW(scratch, bb_value, (size_t)first->nin + second->nin);
  const bb_expr **with = BB_NEW(scratch, const bb_expr *, second->nin);
  uint32_t count = 0;
  for (; count < first->nin; count++) in[count] = first->in[count].src;
  for (uint32_t i = 0; i < second->nin; i++) {
    if (second->in[i].src.node == f) {
      with[i] = first->expr;
      continue;
    }
    in[count] = second->in[i].src;
    with[i] = bb_expr_arg(program, bb_type_of(graph, in[count])->item.dtype, count);
    count++;
  }
  const bb_expr *expr = bb_expr_substitute(program, second->expr, second->nin, with);
  bb_value fused = bb_func_add(graph, BB_OP_ELEMENTWISE, expr, count, in);
  bb_replace_uses(graph, (bb_value){g, 0}, fused);
  bb_node_remove(graph, g);
  bb_node_remove(graph, f);
  bb_scratch_end(scratch);
}

const bb_rule bb_rule_fuse_elementwise = {
    .number = 9,
    .name = "fuse consecutive elementwise",
    .exactness = BB_EXACT,
    .lowers = "functional ops",
    .anchors = 1 << BB_NODE_FUNC,
    .wakes = BB_WAKE_SOLE_USER,
    .match = match,
    .apply = apply,
};
