/* lower_scan.c - the block subgraphs of folds of several components and of running folds. */
#include "lower.h"

#include <string.h>

static void place_all(bb_lower *l, const bb_ix_node *node, const bb_value *out,
                      const bb_role *role) {
  for (uint32_t i = 0; i < node->nout; i++) bb_lower_place(l, node->out[i], out[i], role);
}

/* --- folds --- */

static void spread(bb_value first, uint32_t count, bb_value *out) {
  for (uint32_t i = 0; i < count; i++) out[i] = (bb_value){first.node, first.port + i};
}

static void fold_rows_body(bb_nest *nest, bb_graph *graph, const bb_value *in, bb_value *out) {
  const bb_ix_node *node = nest->user;
  bb_value made = node->monoid->id == BB_MONOID_SUM
                      ? bb_func_add(graph, BB_OP_ROW_SUM, NULL, 1, in)
                      : bb_row_fold_add(graph, BB_OP_ROW_FOLD, node->monoid, in);
  spread(made, node->nin, out);
}

static void fold_lists_body(bb_nest *nest, bb_graph *graph, const bb_value *in, bb_value *out) {
  const bb_ix_node *node = nest->user;
  bb_value partial[BB_MONOID_COMPONENTS];
  memcpy(partial, in, node->nin * sizeof *partial);
  uint32_t folds = node->indices - nest->loops;
  spread(bb_lower_fold_levels(nest->lower, graph, node->monoid, folds, partial, 0), node->nin, out);
}

/* Two nests: rows of blocks folded, a list for each loop that is left; the lists folded. */
void bb_lower_fold(bb_lower *l, bb_ix_node *node) {
  uint32_t rank = bb_ix_rank(l->ix, node->out[0]);
  bb_role *role = bb_lower_reduce_roles(l, node);
  bb_value partial[BB_MONOID_COMPONENTS], out[BB_MONOID_COMPONENTS];
  bb_nest rows = {.lower = l, .nin = node->nin, .nout = node->nin, .body = fold_rows_body};
  rows.user = node;
  bb_nest_loops(&rows, node->indices, node->dim, role);
  for (uint32_t k = rank; k < node->indices; k++) ((bb_axis *)rows.axis)[k] = BB_AXIS_NONE;
  rows.in = bb_nest_operands(l, node, role);
  bb_nest_build(&rows, l->root, partial);

  bb_nest lists = {.lower = l, .nin = node->nin, .nout = node->nin, .body = fold_lists_body};
  lists.user = node;
  bb_nest_loops(&lists, rank, node->dim, role);
  lists.in = BB_NEW(l->scratch, bb_nest_operand, node->nin);
  uint32_t *straight = BB_NEW(l->scratch, uint32_t, rank);
  for (uint32_t a = 0; a < rank; a++) straight[a] = a;
  for (uint32_t i = 0; i < node->nin; i++)
    lists.in[i] = bb_nest_in_order(l, partial[i], rank, straight, NULL);
  bb_nest_build(&lists, l->root, out);
  place_all(l, node, out, role);
}

/* --- running folds --- */

/* Inside the loops over the other axes: the folds of the blocks, what precedes each of them. */
static void offsets_body(bb_nest *nest, bb_graph *graph, const bb_value *in, bb_value *out) {
  const bb_ix_node *node = nest->user;
  spread(bb_reduce_add(graph, node->monoid, BB_REDUCE_SCAN_EXCLUSIVE, 0, node->nin, in), node->nin,
         out);
}

static void running_sum_body(bb_nest *nest, bb_graph *graph, const bb_value *in, bb_value *out) {
  bb_program *p = nest->lower->program;
  const bb_ix_node *node = nest->user;
  bb_value run = node->start ? bb_row_fold_add(graph, BB_OP_ROW_SCAN_EXCLUSIVE, node->monoid, in)
                             : bb_func_add(graph, BB_OP_ROW_CUMSUM, NULL, 1, in);
  bb_item item = bb_type_of(graph, run)->item;
  if (item.row != BB_NO_DIM) {
    out[0] = bb_func_add(graph, BB_OP_ROW_SHIFT, NULL, 2, (bb_value[]){run, in[1]});
    return;
  }
  const bb_expr *sum =
      bb_expr_make(p, BB_X_ADD, bb_expr_arg(p, item.dtype, 0), bb_expr_arg(p, item.dtype, 1), NULL);
  out[0] = bb_func_add(graph, BB_OP_ELEMENTWISE, sum, 2, (bb_value[]){run, in[1]});
}

/* What precedes the block, combined with the running fold inside it. */
static void running_body(bb_nest *nest, bb_graph *graph, const bb_value *in, bb_value *out) {
  const bb_ix_node *node = nest->user;
  uint32_t n = node->nin;
  bb_value part[2 * BB_MONOID_COMPONENTS];
  bb_dtype dtype[BB_MONOID_COMPONENTS];
  bb_op op = node->start ? BB_OP_ROW_SCAN_EXCLUSIVE : BB_OP_ROW_SCAN;
  memcpy(part, in + n, n * sizeof *part);
  spread(bb_row_fold_add(graph, op, node->monoid, in), n, part + n);
  for (uint32_t k = 0; k < n; k++) dtype[k] = bb_type_of(graph, part[n + k])->item.dtype;
  for (uint32_t k = 0; k < n; k++) {
    const bb_expr *expr = bb_monoid_expr(nest->lower->program, node->monoid, k, dtype);
    out[k] = bb_func_add(graph, BB_OP_ELEMENTWISE, expr, 2 * n, part);
  }
}

/* The node's indices with the running axis innermost, and their roles. */
typedef struct running {
  uint32_t rank;
  uint32_t *order; /* the node's index of each loop */
  uint32_t *dim, *straight;
  bb_role *role;
  bb_ix_node inner; /* the node over these indices */
} running;

static running order_loops(bb_lower *l, const bb_ix_node *node) {
  uint32_t rank = node->indices, n = 0;
  running r = {.rank = rank, .inner = *node};
  r.order = BB_NEW(l->scratch, uint32_t, rank);
  r.dim = BB_NEW(l->scratch, uint32_t, rank);
  r.straight = BB_NEW(l->scratch, uint32_t, rank);
  r.role = BB_NEW(l->scratch, bb_role, rank);
  uint32_t *place = BB_NEW(l->scratch, uint32_t, rank);
  for (uint32_t k = 0; k < rank; k++)
    if (k != node->at) r.order[n++] = k;
  r.order[rank - 1] = node->at;
  for (uint32_t k = 0; k < rank; k++) {
    r.dim[k] = node->dim[r.order[k]];
    r.straight[k] = k;
    place[r.order[k]] = k;
  }
  for (uint32_t i = 0; i < node->nin; i++) bb_lower_force(l, node->in[i].value);
  for (uint32_t k = rank - 1; k-- > 0;)
    if (bb_lower_blocked(l, r.dim[k])) {
      r.role[k] = BB_ROLE_ROW;
      break;
    }
  r.role[rank - 1] = BB_ROLE_COL;
  r.inner.dim = r.dim;
  r.inner.in = BB_NEW(l->scratch, bb_ix_operand, node->nin);
  for (uint32_t i = 0; i < node->nin; i++) {
    r.inner.in[i] = node->in[i];
    r.inner.in[i].index = BB_NEW(l->scratch, uint32_t, rank);
    for (uint32_t a = 0; a < rank; a++) r.inner.in[i].index[a] = place[node->in[i].index[a]];
  }
  return r;
}

/* Three nests: folds of rows of blocks; their exclusive running fold; running folds in the blocks,
 * each after what precedes its block. */
void bb_lower_scan(bb_lower *l, bb_ix_node *node) {
  running r = order_loops(l, node);
  uint32_t n = node->nin, last = r.rank - 1;
  bb_value total[BB_MONOID_COMPONENTS], before[BB_MONOID_COMPONENTS], out[BB_MONOID_COMPONENTS];
  bb_nest folds = {.lower = l, .nin = n, .nout = n, .body = fold_rows_body, .user = node};
  bb_nest_loops(&folds, r.rank, r.dim, r.role);
  ((bb_axis *)folds.axis)[last] = BB_AXIS_NONE;
  folds.in = bb_nest_operands(l, &r.inner, r.role);
  bb_nest_build(&folds, l->root, total);

  bb_nest offsets = {.lower = l, .nin = n, .nout = n, .body = offsets_body, .user = node};
  bb_nest_loops(&offsets, last, r.dim, r.role);
  offsets.in = BB_NEW(l->scratch, bb_nest_operand, n);
  for (uint32_t i = 0; i < n; i++)
    offsets.in[i] = bb_nest_in_order(l, total[i], last, r.straight, NULL);
  bb_nest_build(&offsets, l->root, before);

  bool sum = node->monoid->id == BB_MONOID_SUM;
  bb_nest run = {.lower = l, .nin = 2 * n, .nout = n, .user = node};
  run.body = sum ? running_sum_body : running_body;
  bb_nest_loops(&run, r.rank, r.dim, r.role);
  run.in = BB_NEW(l->scratch, bb_nest_operand, 2 * (size_t)n);
  for (uint32_t i = 0; i < n; i++) {
    run.in[i] = folds.in[i];
    run.in[n + i] = bb_nest_in_order(l, before[i], r.rank, r.straight, NULL);
  }
  bb_nest_build(&run, l->root, out);
  bb_role *role = BB_NEW(l->scratch, bb_role, r.rank);
  for (uint32_t k = 0; k < r.rank; k++) role[r.order[k]] = r.role[k];
  place_all(l, node, out, role);
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t k = 0; k < r.rank; k++) l->placed[node->out[i]].level[r.order[k]] = k;
}
