/* schedule_op.c - functional ops as statements on tiles. */
#include "build.h"

#include <math.h>

/* --- elementwise --- */

typedef struct leaves {
  bb_build *b;
} leaves;

/* What a block program says of places becomes the tile program's variables. */
static const bb_expr *renamed(void *user, const bb_expr *leaf) {
  bb_build *b = ((leaves *)user)->b;
  bb_tile_index index = NULL;
  if (leaf->op == BB_X_EXTENT) index = bb_index_extent(b, leaf->dim);
  if (leaf->op == BB_X_SYMBOL) index = bb_index_symbol(b, leaf->index);
  if (leaf->op == BB_X_COORD && leaf->index >= BB_COORD_MAP) {
    uint32_t outward = leaf->index - BB_COORD_MAP;
    if (outward >= b->map_depth) bb_build_refuse(b, NULL, "a coordinate of no map");
    index = b->map[b->map_depth - 1 - outward]->element;
  }
  if (!index) return leaf;
  if (index->op == BB_X_CONST) return index;
  if (index->op != BB_X_ARG) bb_build_refuse(b, NULL, "a coordinate of a map over blocks");
  return bb_expr_arg(b->program, BB_I64, BB_TILE_VARIABLE + index->index);
}

/* A factor that came out of sums counts as 0 where they have no terms. */
static uint32_t factor(bb_build *b, const bb_node *node, uint32_t tile) {
  if (!node->expr) return tile;
  leaves l = {b};
  bb_program *p = b->program;
  bb_dtype dtype = b->tile->tile[tile].dtype;
  const bb_expr *terms = bb_expr_map_leaves(p, node->expr, renamed, &l);
  const bb_expr *none = bb_expr_make(p, BB_X_EQ, terms, bb_expr_const(p, BB_I64, 0), NULL);
  const bb_expr *zero = bb_expr_const(p, dtype, 0), *own = bb_expr_arg(p, dtype, 0);
  return bb_build_map(b, bb_expr_make(p, BB_X_SELECT, none, zero, own), 1, &tile);
}

/* Tiles may be wider than what they stand for: sums are.  The result is as the op says. */
static const bb_expr *expression_of(bb_build *b, const bb_node *node, const uint32_t *tile) {
  const bb_expr *operand[2];
  for (uint32_t i = 0; i < 2; i++)
    operand[i] = bb_expr_arg(b->program, b->tile->tile[tile[i]].dtype, i);
  return bb_expr_cast(b->program, node->out[0].type->item.dtype,
                      bb_op_expr(b->program, node->op, operand[0], operand[1]));
}

/* Operands that the expression does not read are left out, unless they give the result an axis. */
static uint32_t elementwise(bb_build *b, const bb_node *node, const uint32_t *tile) {
  if (node->op != BB_OP_ELEMENTWISE) {
    uint32_t both[2] = {tile[0], factor(b, node, tile[1])};
    return bb_build_map(b, expression_of(b, node, both), node->nin, both);
  }
  leaves l = {b};
  const bb_expr *expr = bb_expr_map_leaves(b->program, node->expr, renamed, &l);
  return bb_build_map(b, expr, node->nin, tile);
}

/* --- along the columns --- */

static void fold_columns(bb_build *b, const bb_node *node, uint32_t tile, bb_build_value *out) {
  const bb_monoid *monoid = bb_monoid_get(bb_monoid_of_row_op(node->op));
  const bb_build_loop *col = b->fact[tile].col;
  /* Places beyond the extent are not asked where indices are: the statement is told the limit. */
  tile = bb_tile_filled(b, tile, BB_AXIS_COL, bb_monoid_empty_of(monoid, 0));
  const bb_tile_fact *fact = &b->fact[tile];
  uint32_t depth = fact->depth;
  uint32_t result = bb_build_tile(b, b->tile->tile[tile].dtype, fact->row, NULL, depth);
  uint32_t second = BB_NONE;
  if (monoid->components == 2) second = bb_build_tile(b, BB_I64, b->fact[tile].row, NULL, depth);
  bb_tile_stmt *stmt = bb_build_stmt(b, depth, BB_TILE_FOLD);
  stmt->operands = 1;
  stmt->operand[0] = tile;
  stmt->result = result;
  stmt->second = second;
  stmt->monoid = monoid;
  stmt->axis = BB_AXIS_COL;
  out[0].tile = result;
  if (monoid->components != 2) return;
  stmt->at[1] = col->start;
  stmt->limit = col->limit;
  out[1].tile = second;
}

/* By a function of several components: tiles have one column (site.h), which is the fold of itself.  A
 * fold drops the axis; before an exclusive scan's only column stands nothing. */
static void step_columns(bb_build *b, const bb_node *node, const uint32_t *tile,
                         bb_build_value *out) {
  for (uint32_t k = 0; k < node->nin; k++) {
    const bb_tile_fact fact = b->fact[tile[k]];
    if (fact.col && fact.col->block != 1)
      bb_build_refuse(b, node, "columns that no loop takes one by one are folded");
    out[k].tile = tile[k];
    if (node->op == BB_OP_ROW_SCAN || !fact.col) continue;
    bool fold = node->op == BB_OP_ROW_FOLD;
    bb_dtype dtype = b->tile->tile[tile[k]].dtype;
    out[k].tile = bb_build_tile(b, dtype, fact.row, fold ? NULL : fact.col, fact.depth);
    if (!fold) {
      bb_build_constant(b, out[k].tile, fact.depth, bb_monoid_empty_of(node->rows, k));
      continue;
    }
    bb_tile_stmt *stmt = bb_build_stmt(b, fact.depth, BB_TILE_FOLD);
    stmt->operands = 1;
    stmt->operand[0] = tile[k];
    stmt->result = out[k].tile;
    stmt->monoid = bb_monoid_get(BB_MONOID_MAX);
    stmt->axis = BB_AXIS_COL;
  }
}

static uint32_t scan_columns(bb_build *b, const bb_node *node, uint32_t tile) {
  const bb_tile_fact *fact = &b->fact[tile];
  uint32_t depth = fact->depth;
  uint32_t result = bb_build_tile(b, b->tile->tile[tile].dtype, fact->row, fact->col, depth);
  bb_tile_stmt *stmt = bb_build_stmt(b, depth, BB_TILE_SCAN);
  stmt->operands = 1;
  stmt->operand[0] = tile;
  stmt->result = result;
  stmt->monoid = bb_monoid_get(BB_MONOID_SUM);
  stmt->axis = BB_AXIS_COL;
  stmt->before = node->op == BB_OP_ROW_SCAN_EXCLUSIVE;
  return result;
}

static uint32_t transpose(bb_build *b, uint32_t tile) {
  bb_tile_fact fact = b->fact[tile];
  uint32_t result = bb_build_tile(b, b->tile->tile[tile].dtype, fact.col, fact.row, fact.depth);
  bb_tile_stmt *stmt = bb_build_stmt(b, fact.depth, BB_TILE_TRANSPOSE);
  stmt->operands = 1;
  stmt->operand[0] = tile;
  stmt->result = result;
  b->fact[tile].chosen = true; /* what a load fills it with is known of the result, too */
  for (uint32_t axis = 0; axis < 2; axis++) {
    b->fact[result].known[axis] = fact.known[1 - axis];
    b->fact[result].fill[axis] = fact.fill[1 - axis];
  }
  return result;
}

/* --- products --- */

/* a b', over the columns of both; `into` is an accumulator, or BB_NONE. */
static uint32_t dot(bb_build *b, const bb_node *node, uint32_t x, uint32_t y, uint32_t into) {
  if (b->fact[x].col != b->fact[y].col)
    bb_build_refuse(b, node, "operands are different blocks of the contracted axis");
  x = bb_tile_filled(b, x, BB_AXIS_COL, 0);
  y = bb_tile_filled(b, y, BB_AXIS_COL, 0);
  const bb_tile_fact *left = &b->fact[x], *right = &b->fact[y];
  uint32_t depth = left->depth > right->depth ? left->depth : right->depth;
  const bb_build_loop *row = left->row, *col = right->row;
  if (into != BB_NONE) {
    depth = b->depth;
    bb_tile_shape(b, into, row, col);
  } else {
    into = bb_build_tile(b, bb_build_sum_dtype(node->out[0].type->item.dtype), row, col, depth);
  }
  bb_tile_stmt *stmt = bb_build_stmt(b, depth, BB_TILE_DOT);
  stmt->accumulate = into == b->into;
  stmt->operands = 2;
  stmt->operand[0] = x;
  stmt->operand[1] = y;
  stmt->transposed[1] = true;
  stmt->result = into;
  b->fact[into].known[0] = b->fact[into].known[1] = false;
  return into == b->into ? into : bb_tile_as(b, into, node->out[0].type->item.dtype);
}

/* rows a and rows b: b's rows lie along the columns of the result. */
static uint32_t outer(bb_build *b, const bb_node *node, uint32_t x, uint32_t y) {
  uint32_t across = transpose(b, y), both[2] = {factor(b, node, x), across};
  bb_dtype dtype = b->tile->tile[x].dtype;
  const bb_expr *product = bb_expr_make(b->program, BB_X_MUL, bb_expr_arg(b->program, dtype, 0),
                                        bb_expr_arg(b->program, b->tile->tile[y].dtype, 1), NULL);
  return bb_build_map(b, bb_expr_cast(b->program, node->out[0].type->item.dtype, product), 2, both);
}

void bb_schedule_func(bb_build *b, const bb_node *node, const bb_build_value *const *in,
                      bb_build_value *out) {
  uint32_t *tile = BB_NEW(b->arena, uint32_t, node->nin + 1);
  for (uint32_t i = 0; i < node->nin; i++) tile[i] = bb_value_tile(b, node, in[i]);
  switch (node->op) {
  case BB_OP_ROW_CUMSUM: out[0].tile = scan_columns(b, node, tile[0]); break;
  case BB_OP_DOT: out[0].tile = dot(b, node, tile[0], tile[1], b->into); break;
  case BB_OP_OUTER: out[0].tile = outer(b, node, tile[0], tile[1]); break;
  case BB_OP_TRANSPOSE: out[0].tile = transpose(b, tile[0]); break;
  case BB_OP_ROW_FOLD:
  case BB_OP_ROW_SCAN:
  case BB_OP_ROW_SCAN_EXCLUSIVE:
    if (bb_site_sums(node))
      out[0].tile = scan_columns(b, node, tile[0]);
    else
      step_columns(b, node, tile, out);
    break;
  default:
    if (bb_op_is_pointwise(node->op))
      out[0].tile = elementwise(b, node, tile);
    else
      fold_columns(b, node, tile[0], out);
  }
  for (uint32_t o = 0; o < node->nout; o++) {
    const bb_tile_fact *fact = &b->fact[out[o].tile];
    out[o].type = node->out[o].type;
    out[o].kind = BB_BUILD_TILE;
    out[o].depth = fact->depth;
    out[o].row = fact->row;
    out[o].col = fact->col;
  }
}
