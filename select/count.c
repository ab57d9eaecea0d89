/* count.c - the static cost of a block program: operations, and bytes over buffered edges.
 *
 * Every dim is one block, so that the numbers do not depend on block sizes: a loop over a blocked
 * dim runs once, on items as large as the tensors, and a loop over an enumerated dim runs once for
 * each index.  An item is loaded where a loop takes it out of its innermost list, and stored where
 * a loop puts it there.
 */
#include "select.h"

typedef struct counter {
  const bb_program *program;
  double guess; /* what a symbol counts as */
  double operations, buffered;
} counter;

static double extent_of(const counter *c, bb_dim dim) {
  const bb_extent *extent = bb_dim_get(c->program, dim)->extent;
  double value = (double)extent->factor;
  for (uint32_t i = 0; i < extent->count; i++) value *= c->guess;
  return value;
}

static double trips(const counter *c, bb_dim dim) {
  return bb_dim_get(c->program, dim)->blocked ? 1 : extent_of(c, dim);
}

static double item_elements(const counter *c, bb_item item) {
  double elements = 1;
  if (item.row != BB_NO_DIM) elements *= extent_of(c, item.row);
  if (item.col != BB_NO_DIM) elements *= extent_of(c, item.col);
  return elements;
}

static double item_bytes(const counter *c, const bb_type *type) {
  return item_elements(c, type->item) * bb_dtype_bytes(type->item.dtype);
}

/* Items in a value: how often its lists repeat the item. */
static double items(const counter *c, const bb_type *type) {
  double count = 1;
  for (uint32_t i = 0; i < type->rank; i++) count *= trips(c, type->level[i].dim);
  return count;
}

static double func_operations(const counter *c, const bb_graph *graph, const bb_node *node) {
  const bb_type *result = node->out[0].type;
  if (node->op == BB_OP_ELEMENTWISE)
    return bb_expr_cost(node->expr) * item_elements(c, result->item);
  double elements = item_elements(c, result->item);
  for (uint32_t p = 0; p < node->nin; p++) {
    double operand = item_elements(c, bb_type_of(graph, node->in[p].src)->item);
    if (operand > elements) elements = operand;
  }
  if (node->op == BB_OP_DOT) {
    bb_dim k = bb_type_of(graph, node->in[0].src)->item.col;
    elements = item_elements(c, result->item) * (k == BB_NO_DIM ? 1 : extent_of(c, k));
  }
  return bb_op_get(node->op)->cost * elements;
}

static void count_level(counter *c, const bb_graph *graph, double times, bool root);

static void count_reduce(counter *c, const bb_graph *graph, const bb_node *node, double times) {
  for (uint32_t p = 0; p < node->nin; p++) {
    const bb_type *type = bb_type_of(graph, node->in[p].src);
    double all = items(c, type);
    c->operations += times * all * item_elements(c, type->item);
    c->buffered += times * all * item_bytes(c, type);
    if (node->reduce != BB_REDUCE_FOLD) c->buffered += times * all * item_bytes(c, type);
  }
}

/* How many of a loop's iterations a map runs. */
static double iterations(const counter *c, const bb_node *map) {
  double all = trips(c, map->dim), first = all < 1 ? all : 1;
  for (uint32_t i = 0; i < bb_chunk_depth(map); i++) all /= trips(c, map->chunk->dim[i]);
  return map->part == BB_PART_FIRST ? first : map->part == BB_PART_REST ? all - first : all;
}

static void count_map(counter *c, const bb_node *node, double times) {
  const bb_graph *inner = node->inner;
  double inside = times * iterations(c, node);
  for (uint32_t p = 0; p < node->nin; p++) {
    bb_value element = {inner->input[p], 0};
    const bb_type *type = bb_type_of(inner, element);
    if (node->in[p].level != BB_WHOLE && type->rank == 0 &&
        bb_first_use(inner, element).node != BB_NONE)
      c->buffered += inside * item_bytes(c, type);
  }
  for (uint32_t p = 0; p < node->nout; p++) {
    const bb_type *type = bb_type_of(inner, bb_src(inner, inner->output[p], 0));
    if (node->out[p].mode == BB_OUT_COLLECT && type->rank == 0)
      c->buffered += inside * item_bytes(c, type);
    if (node->out[p].mode == BB_OUT_FOLD)
      c->operations += inside * items(c, type) * item_elements(c, type->item);
  }
  count_level(c, inner, inside, false);
}

/* A single item that a program's input or output holds. */
static void count_terminal(counter *c, const bb_graph *graph, const bb_node *node) {
  bool input = node->kind == BB_NODE_INPUT;
  const bb_type *type = input ? node->out[0].type : bb_type_of(graph, node->in[0].src);
  if (type->rank == 0) c->buffered += item_bytes(c, type);
}

static void count_level(counter *c, const bb_graph *graph, double times, bool root) {
  for (uint32_t i = 0; i < graph->count; i++) {
    const bb_node *node = graph->node[i];
    if (node->kind == BB_NODE_FUNC) c->operations += times * func_operations(c, graph, node);
    if (node->kind == BB_NODE_REDUCE) count_reduce(c, graph, node, times);
    if (node->kind == BB_NODE_MAP) count_map(c, node, times);
    if (root && (node->kind == BB_NODE_INPUT || node->kind == BB_NODE_OUTPUT))
      count_terminal(c, graph, node);
  }
}

void bb_count_graph(const bb_program *program, const bb_graph *graph, int64_t symbol_guess,
                    double *operations, double *buffered) {
  counter c = {.program = program, .guess = (double)symbol_guess};
  count_level(&c, graph, 1, true);
  *operations = c.operations;
  *buffered = c.buffered;
}
