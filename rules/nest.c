/* nest.c - reading and building loop nests around one functional op. */
#include "nest.h"

static bool fail(const char **why, const char *what) {
  *why = what;
  return false;
}

/* --- reading --- */

/* The level need not be looked at: behind a map inside which all are summed there is but one. */
static bool sums(const bb_node *node) {
  return node->kind == BB_NODE_REDUCE && node->reduce == BB_REDUCE_FOLD && node->nin == 1 &&
         node->monoid == bb_monoid_get(BB_MONOID_SUM);
}

/* The sum over what a map collects, if that is the only use; else BB_NONE. */
static uint32_t sum_behind(const bb_graph *graph, uint32_t map) {
  bb_use use = bb_first_use(graph, (bb_value){map, 0});
  if (use.node == BB_NONE || bb_next_use(graph, use).node != BB_NONE) return BB_NONE;
  return sums(bb_node_get(graph, use.node)) ? use.node : BB_NONE;
}

/* Reads how map number `i` gives its result; the node in the level that does so. */
static bool read_result(const bb_graph *graph, uint32_t at, bb_loops *nest, uint32_t *tail,
                        const char **why) {
  const bb_out *out = &bb_node_get(graph, at)->out[0];
  uint32_t i = nest->depth;
  bool folded = out->mode == BB_OUT_FOLD, summed = folded;
  if (out->mode == BB_OUT_INVARIANT) return fail(why, "a map of the nest has an invariant result");
  if (folded && out->fold != bb_monoid_get(BB_MONOID_SUM))
    return fail(why, "the fold is not a sum");
  *tail = at;
  if (!folded) {
    uint32_t sum = sum_behind(graph, at);
    summed = sum != BB_NONE;
    if (summed) *tail = sum;
  }
  if (!summed && nest->outputs < i) return fail(why, "a summed map stands around one that is not");
  nest->axis[i] = out->axis;
  nest->folded[i] = folded;
  nest->outputs += !summed;
  return true;
}

/* Does a map of one result hold inputs and one chain of one or two nodes?  The first of them. */
static uint32_t only_node(const bb_graph *inner) {
  uint32_t others = inner->live - inner->ninputs - 1;
  uint32_t at = bb_src(inner, inner->output[0], 0).node;
  const bb_node *node = bb_node_get(inner, at);
  if (others == 2 && sums(node)) at = node->in[0].src.node, others--;
  node = bb_node_get(inner, at);
  bool nests = node->kind == BB_NODE_MAP || node->kind == BB_NODE_FUNC;
  return others == 1 && nests ? at : BB_NONE;
}

static uint32_t input_port(const bb_graph *inner, uint32_t input) {
  for (uint32_t i = 0; i < inner->ninputs; i++)
    if (inner->input[i] == input) return i;
  return BB_NONE;
}

/* Follows an operand of the op outwards through the maps of the nest, where nothing else can make it. */
static void read_operand(bb_graph *const *graph, const uint32_t *at, uint32_t depth, uint32_t port,
                         bb_operand *operand) {
  bb_value value = bb_src(graph[depth], at[depth], port);
  for (uint32_t i = depth; i-- > 0;) {
    uint32_t in = input_port(graph[i + 1], value.node);
    operand->level[i] = bb_node_get(graph[i], at[i])->in[in].level;
    value = bb_src(graph[i], at[i], in);
  }
  operand->value = value;
}

bb_op bb_loops_op(const bb_graph *graph, uint32_t node) {
  const bb_node *at = bb_node_get(graph, node);
  /* An op of a nest has two operands at most; so most maps need not be looked into. */
  while (at->kind == BB_NODE_MAP && at->nout == 1 && at->nin <= 2 && at->part == BB_PART_ALL) {
    graph = at->inner;
    node = only_node(graph);
    if (node == BB_NONE) return BB_OP_COUNT;
    at = bb_node_get(graph, node);
  }
  return at->kind == BB_NODE_FUNC ? at->op : BB_OP_COUNT;
}

bool bb_loops_read(const bb_graph *level, uint32_t node, bb_op op, bb_loops *nest,
                   const char **why) {
  if (bb_loops_op(level, node) != op) return fail(why, "not maps around that one op alone");
  bb_graph *graph[BB_LOOPS_DEPTH + 1] = {(bb_graph *)level};
  uint32_t at[BB_LOOPS_DEPTH + 1] = {node}, tail = node;
  *nest = (bb_loops){.node = node, .op = op};
  for (;; nest->depth++) {
    uint32_t i = nest->depth;
    const bb_node *here = bb_node_get(graph[i], at[i]);
    if (here->kind == BB_NODE_FUNC) break;
    if (i == BB_LOOPS_DEPTH) return fail(why, "the maps nest too deep");
    if (!read_result(graph[i], at[i], nest, i ? &(uint32_t){0} : &tail, why)) return false;
    nest->dim[i] = here->dim;
    graph[i + 1] = here->inner;
    at[i + 1] = only_node(here->inner);
  }
  const bb_node *func = bb_node_get(graph[nest->depth], at[nest->depth]);
  nest->result = (bb_value){tail, 0};
  nest->operands = func->nin;
  nest->expr = func->expr;
  for (uint32_t i = 0; i < func->nin && i < 2; i++)
    read_operand(graph, at, nest->depth, i, &nest->operand[i]);
  return true;
}

/* --- building --- */

/* A product with a vector gives a vector: what scales its rows or columns then multiplies it. */
static bb_op op_for(const bb_graph *graph, bb_op op, bb_value first) {
  bb_item item = bb_type_of(graph, first)->item;
  bool block = item.row != BB_NO_DIM && item.col != BB_NO_DIM;
  return block || (op != BB_OP_ROW_SCALE && op != BB_OP_COL_SCALE) ? op : BB_OP_MUL;
}

static bb_value build(bb_graph *graph, const bb_loops *nest, uint32_t i, const bb_value *in) {
  if (i == nest->depth)
    return bb_func_add(graph, op_for(graph, nest->op, in[0]), nest->expr, nest->operands, in);
  uint32_t map = bb_map_add(graph, nest->dim[i]);
  bb_graph *inner = bb_node_get(graph, map)->inner;
  bb_value below[2];
  for (uint32_t k = 0; k < nest->operands; k++)
    below[k] = bb_map_in(graph, map, in[k], nest->operand[k].level[i]);
  bb_value value = build(inner, nest, i + 1, below);
  const bb_monoid *sum = bb_monoid_get(BB_MONOID_SUM);
  if (i >= nest->outputs && nest->folded[i]) return bb_map_fold(graph, map, value, sum, 0);
  bb_value list = bb_map_collect(graph, map, value, nest->axis[i]);
  return i < nest->outputs ? list : bb_reduce_add(graph, sum, BB_REDUCE_FOLD, 0, 1, &list);
}

bb_value bb_loops_build(bb_graph *graph, const bb_loops *nest) {
  bb_value in[2] = {nest->operand[0].value, nest->operand[1].value};
  return build(graph, nest, 0, in);
}

void bb_loops_remove(bb_graph *graph, const bb_loops *nest) {
  if (nest->result.node != nest->node) bb_node_remove(graph, nest->result.node);
  bb_node_remove(graph, nest->node);
}

bb_value bb_loops_over_outputs(bb_graph *graph, const bb_loops *like, bb_op op, bb_value result,
                               bb_value other, uint32_t iterated, const bb_expr *terms) {
  bb_loops nest = *like;
  nest.expr = terms;
  nest.depth = like->outputs;
  nest.op = op;
  nest.operands = 2;
  nest.operand[0] = (bb_operand){.value = result};
  nest.operand[1] = (bb_operand){.value = other};
  for (uint32_t i = 0; i < nest.depth; i++)
    if (!(iterated >> i & 1)) nest.operand[1].level[i] = BB_WHOLE;
  return bb_loops_build(graph, &nest);
}

const bb_expr *bb_loops_terms(bb_program *program, const bb_loops *nest, const bb_expr *before) {
  const bb_expr *terms = before;
  for (uint32_t i = nest->outputs; i < nest->depth; i++) {
    const bb_expr *extent = bb_expr_extent(program, nest->dim[i]);
    if (extent->op == BB_X_CONST) continue;
    terms = terms ? bb_expr_make(program, BB_X_MUL, terms, extent, NULL) : extent;
  }
  return terms;
}

void bb_loops_keep(bb_loops *nest, uint32_t maps) {
  uint32_t kept = 0, outputs = 0;
  for (uint32_t i = 0; i < nest->depth; i++) {
    if (!(maps >> i & 1)) continue;
    nest->dim[kept] = nest->dim[i];
    nest->axis[kept] = nest->axis[i];
    nest->folded[kept] = nest->folded[i];
    for (uint32_t k = 0; k < nest->operands; k++)
      nest->operand[k].level[kept] = nest->operand[k].level[i];
    outputs += i < nest->outputs;
    kept++;
  }
  nest->depth = kept;
  nest->outputs = outputs;
}

uint32_t bb_loops_iterating(const bb_loops *nest, uint32_t operand) {
  uint32_t maps = 0;
  for (uint32_t i = 0; i < nest->depth; i++)
    if (nest->operand[operand].level[i] != BB_WHOLE) maps |= (uint32_t)1 << i;
  return maps;
}

void bb_loops_axes(const bb_graph *graph, const bb_loops *nest, uint32_t operand,
                   bb_axis axis[BB_LOOPS_DEPTH]) {
  const bb_type *type = bb_type_of(graph, nest->operand[operand].value);
  for (uint32_t i = 0; i < nest->depth; i++) {
    uint32_t level = nest->operand[operand].level[i];
    axis[i] = BB_AXIS_NONE;
    if (level == BB_WHOLE) continue;
    axis[i] = type->level[level].axis;
    type = bb_type_element(graph->program, type, level);
  }
}

/* --- a scale or shift in front of a product --- */

/* Pairs the maps of the scale with the product's maps that iterate what it collects.  Where one of the
 * scale's maps sums, it collects fewer lists than it has maps, and they do not pair. */
static bool pair_maps(bb_scaled_product *found) {
  const bb_operand *operand = &found->product.operand[found->side];
  uint32_t paired = 0;
  for (uint32_t i = 0; i < found->product.depth; i++) {
    if (operand->level[i] == BB_WHOLE) continue;
    if (operand->level[i] != 0 || paired == found->scale.depth) return false;
    found->at[paired++] = i;
  }
  return paired == found->scale.depth;
}

static bool iterates_as_it_collects(const bb_loops *scale) {
  for (uint32_t i = 0; i < scale->depth; i++)
    if (scale->operand[0].level[i] != 0) return false;
  return true;
}

/* What scales or shifts a narrow operand would scale or shift a wider product, and is too narrow for that; sums of the other
 * operand, by which a shift is taken out, are not as wide as the product. */
static const char *too_narrow(const bb_graph *graph, const bb_loops *product,
                              const bb_loops *scale) {
  if (!product->expr) return NULL;
  if (scale->op == BB_OP_ROW_SHIFT) return "the product is wider than what is shifted";
  if (scale->op != BB_OP_ROW_SCALE) return NULL;
  bb_dtype dtype = bb_type_of(graph, scale->operand[1].value)->item.dtype;
  return bb_dtype_bytes(dtype) < bb_dtype_bytes(product->expr->dtype)
             ? "the product is wider than the scale"
             : NULL;
}

/* What an operand is not, in words. */
static const char *not_this_op(uint32_t ops) {
  if (ops == 1 << BB_OP_ROW_SCALE) return "the operand of the product is not a mapped row scale";
  if (ops == 1 << BB_OP_ROW_SHIFT) return "the operand of the product is not a mapped row shift";
  return "the operand of the product is not a mapped column scale or shift";
}

bool bb_scaled_product_read(bb_match *match, uint32_t side, uint32_t ops, bool alone,
                            bb_scaled_product *found) {
  bb_graph *graph = match->scope->graph;
  if (bb_loops_op(graph, match->anchor) != BB_OP_DOT) return bb_miss(match, "not a product");
  if (!bb_loops_read(graph, match->anchor, BB_OP_DOT, &found->product, &match->why)) return false;
  const bb_loops *product = &found->product;
  found->side = side;
  if (product->depth == 0) return bb_miss(match, "the product is one block's, without a loop");
  bb_value scaled = product->operand[side].value;
  if (match->partner != BB_NONE && scaled.node != match->partner)
    return bb_miss(match, "the other node does not make that operand of the product");
  bb_op op = bb_loops_op(graph, scaled.node);
  if (!(ops >> op & 1)) return bb_miss(match, not_this_op(ops));
  if (!bb_loops_read(graph, scaled.node, op, &found->scale, &match->why)) return false;
  const bb_loops *scale = &found->scale;
  if (bb_value_equal(scaled, product->operand[!side].value))
    return bb_miss(match, "both operands of the product are this value");
  bb_use use = bb_first_use(graph, scaled);
  if (alone && bb_next_use(graph, use).node != BB_NONE)
    return bb_miss(match, "the operand has other uses");
  if (!iterates_as_it_collects(scale))
    return bb_miss(match, "the operand is not collected as it is iterated");
  if (!pair_maps(found)) return bb_miss(match, "the product iterates its operand in another order");
  if (bb_scope_constant(match->scope, scaled.node))
    return bb_miss(match, "the operand is computed once, at load");
  const char *narrow = too_narrow(graph, product, scale);
  if (narrow) return bb_miss(match, narrow);
  return true;
}

void bb_scaled_product_replace(bb_graph *graph, const bb_scaled_product *found, bb_value with) {
  bb_replace_uses(graph, found->product.result, with);
  bb_loops_remove(graph, &found->product);
  bb_loops_remove(graph, &found->scale);
}
