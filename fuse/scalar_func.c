/* scalar_func.c - terms of functional nodes: expressions, products, folds along columns.
 */
#include "scalar_mean.h"

/* The operand with its axes' variables those of the node's other operands, where a loop did not
 * bind both to one. */
static const bb_scalar *aligned(bb_scalar_walk *w, const bb_type *type, const bb_meaning *m,
                                uint8_t row, uint8_t col) {
  const bb_scalar *term = m->term;
  if (type->item.row != BB_NO_DIM) term = bb_scalar_substitute(w->terms, term, m->row, row);
  if (type->item.col != BB_NO_DIM && m->col != row)
    term = bb_scalar_substitute(w->terms, term, m->col, col);
  return term;
}

static double last_index(const bb_program *program, bb_dim dim) {
  int64_t extent = dim == BB_NO_DIM ? 1 : bb_extent_value(bb_dim_get(program, dim)->extent);
  return extent > 0 ? (double)(extent - 1) : 0x1p53;
}

typedef struct formula {
  bb_mean_level *l;
  const bb_node *node;
  const bb_meaning *result;
  const bb_scalar **arg;
} formula;

static const bb_scalar *leaf_term(const formula *f, const bb_expr *expr) {
  bb_scalar_walk *w = f->l->walk;
  bb_item item = f->node ? f->node->out[0].type->item : (bb_item){0};
  switch (expr->op) {
  case BB_X_CONST: return bb_scalar_number(w->terms, expr->dtype, expr->number);
  case BB_X_ARG: return f->arg[expr->index];
  case BB_X_COORD:
    if (expr->index == BB_COORD_ROW)
      return bb_scalar_index(w->terms, f->result->row, last_index(w->program, item.row));
    if (expr->index == BB_COORD_COL)
      return bb_scalar_index(w->terms, f->result->col, last_index(w->program, item.col));
    if (expr->index - BB_COORD_MAP < f->l->depth)
      return bb_scalar_index(w->terms, f->l->depth - 1 - (expr->index - BB_COORD_MAP), 0x1p53);
    break;
  case BB_X_EXTENT: {
    int64_t extent = bb_extent_value(bb_dim_get(w->program, expr->dim)->extent);
    if (extent >= 0) return bb_scalar_number(w->terms, expr->dtype, (double)extent);
    bb_scalar leaf = {
        .dtype = expr->dtype, .source = expr, .range = {1, 0x1p53, true, false, false}};
    return bb_scalar_leaf(w->terms, &leaf);
  }
  default: break;
  }
  bb_scalar leaf = {.dtype = expr->dtype, .source = expr, .range = BB_RANGE_ANY};
  return bb_scalar_leaf(w->terms, &leaf);
}

static const bb_scalar *expr_term(formula *f, const bb_expr *expr) {
  bb_scalar_walk *w = f->l->walk;
  bb_arena *scratch = bb_scratch(w->program->ctx);
  uint32_t count;
  const bb_expr **node = bb_expr_postorder(scratch, expr, &count);
  const bb_scalar **term = BB_NEW(scratch, const bb_scalar *, count);
  for (uint32_t i = 0; i < count; i++) {
    const bb_scalar *a[3] = {NULL, NULL, NULL};
    uint32_t arity = bb_expr_op_arity(node[i]->op);
    for (uint32_t k = 0; k < arity; k++) {
      uint32_t at = i;
      while (node[--at] != node[i]->a[k]) continue;
      a[k] = term[at];
    }
    term[i] = arity ? bb_scalar_apply(w->terms, node[i]->op, node[i]->dtype, a[0], a[1], a[2])
                    : leaf_term(f, node[i]);
    if (arity && term[i]->exp && f->node) bb_mean_note_exp(w, f->node, node[i], term[i]->exp);
  }
  const bb_scalar *result = term[count - 1];
  bb_scratch_end(scratch);
  return result;
}

const bb_scalar *bb_mean_expr(bb_scalar_walk *w, const bb_expr *expr, const bb_scalar **arg) {
  bb_mean_level l = {.walk = w};
  formula f = {.l = &l, .arg = arg};
  return expr_term(&f, expr);
}

/* The variables of the result's axes: those of the first operand that has the axis. */
static void take_axes(bb_mean_level *l, const bb_node *node, bb_meaning *out) {
  out->row = BB_VAR_LIST + BB_MEAN_LEVELS;
  out->col = BB_VAR_LIST + BB_MEAN_LEVELS + 1;
  for (uint32_t p = node->nin; p-- > 0;) {
    const bb_value src = node->in[p].src;
    bb_item item = bb_type_of(l->graph, src)->item;
    if (item.row != BB_NO_DIM) out->row = l->value[src.node][src.port].row;
    if (item.col != BB_NO_DIM) out->col = l->value[src.node][src.port].col;
  }
}

static bb_expr_op binary_of(bb_op op) {
  return op == BB_OP_ADD || op == BB_OP_ROW_SHIFT || op == BB_OP_COL_SHIFT ? BB_X_ADD : BB_X_MUL;
}

static void mean_pointwise(bb_mean_level *l, const bb_node *node, bb_meaning *out) {
  bb_scalar_walk *w = l->walk;
  take_axes(l, node, out);
  const bb_scalar **arg = BB_NEW(w->arena, const bb_scalar *, (size_t)node->nin + 1);
  for (uint32_t p = 0; p < node->nin; p++) {
    const bb_value src = node->in[p].src;
    arg[p] =
        aligned(w, bb_type_of(l->graph, src), &l->value[src.node][src.port], out->row, out->col);
  }
  formula f = {l, node, out, arg};
  out->term = node->op == BB_OP_ELEMENTWISE
                  ? expr_term(&f, node->expr)
                  : bb_scalar_apply(w->terms, binary_of(node->op), node->out[0].type->item.dtype,
                                    arg[0], arg[1], NULL);
}

static bool may_be_pair(const bb_scalar *term) {
  return term->fault & (BB_FAULT_PAIR | BB_FAULT_HIGH | BB_FAULT_LOW);
}

/* a @ b.T, or the outer product: rows of both, and for a dot the sum over the columns they share. */
static void mean_product(bb_mean_level *l, const bb_node *node, bb_meaning *out) {
  bb_scalar_walk *w = l->walk;
  const bb_type *type = node->out[0].type;
  const bb_meaning *a = &l->value[node->in[0].src.node][node->in[0].src.port];
  const bb_meaning *b = &l->value[node->in[1].src.node][node->in[1].src.port];
  *out = (bb_meaning){.row = a->row, .col = b->row};
  if (may_be_pair(a->term) && may_be_pair(b->term)) bb_mean_note_pairs(w, node);
  bool apart = type->item.row == BB_NO_DIM || type->item.col == BB_NO_DIM || a->row != b->row;
  if (!apart || (node->op == BB_OP_DOT && (a->col == a->row || b->col == b->row))) {
    out->col = out->row == BB_VAR_LIST + BB_MEAN_LEVELS ? BB_VAR_LIST + BB_MEAN_LEVELS + 1
                                                        : BB_VAR_LIST + BB_MEAN_LEVELS;
    bb_mean_opaque(w, type, out, BB_RANGE_ANY, out);
    /* What it is made of may be faulty, and this product no better. */
    const bb_scalar *like =
        bb_scalar_apply(w->terms, BB_X_MUL, type->item.dtype, a->term, b->term, NULL);
    bb_scalar faulty = *out->term;
    faulty.fault = like->fault;
    faulty.risks = like->risks;
    faulty.risk = like->risk;
    faulty.serial = ++w->opaque;
    out->term = bb_scalar_leaf(w->terms, &faulty);
    return;
  }
  const bb_scalar *right = b->term;
  if (node->op == BB_OP_DOT) right = bb_scalar_substitute(w->terms, right, b->col, a->col);
  out->term = bb_scalar_apply(w->terms, BB_X_MUL, type->item.dtype, a->term, right, NULL);
  if (node->op == BB_OP_DOT)
    out->term = bb_scalar_fold(w->terms, BB_SCALAR_PART, BB_MONOID_SUM, a->col, out->term);
}

static bb_monoid_id fold_of(bb_op op) {
  switch (op) {
  case BB_OP_ROW_MAX:
  case BB_OP_ROW_ARGMAX:
  case BB_OP_ROW_ARGMAX_LAST: return BB_MONOID_MAX;
  case BB_OP_ROW_MIN:
  case BB_OP_ROW_ARGMIN:
  case BB_OP_ROW_ARGMIN_LAST: return BB_MONOID_MIN;
  case BB_OP_ROW_PROD: return BB_MONOID_PROD;
  default: return BB_MONOID_SUM;
  }
}

static void mean_row_fold(bb_mean_level *l, const bb_node *node, bb_meaning *out) {
  bb_scalar_walk *w = l->walk;
  const bb_meaning *a = &l->value[node->in[0].src.node][node->in[0].src.port];
  bool scan = node->op == BB_OP_ROW_CUMSUM;
  *out = *a;
  out->term = bb_scalar_fold(w->terms, scan ? BB_SCALAR_SCAN : BB_SCALAR_PART, fold_of(node->op),
                             a->col, a->term);
  if (node->nout < 2) return;
  bb_range index = {.lo = 0, .hi = 0x1p53};
  bb_mean_opaque(w, node->out[1].type, a, index, &out[1]);
  /* Where the values compared overflow, the index is wrong. */
  bb_scalar_fold(w->terms, BB_SCALAR_PART, BB_MONOID_ARGMAX, a->col, a->term);
}

bb_monoid_id bb_mean_plain_fold(const bb_monoid *monoid, uint32_t k) {
  if (!monoid->component) return monoid->components == 1 ? monoid->id : BB_MONOID_TUPLE;
  const bb_expr *combine = monoid->component[k].combine;
  bool own = bb_expr_op_arity(combine->op) == 2 && combine->a[0]->op == BB_X_ARG &&
             combine->a[1]->op == BB_X_ARG && combine->a[0]->index == k &&
             combine->a[1]->index == monoid->components + k;
  switch (own ? combine->op : BB_X_CONST) {
  case BB_X_ADD: return BB_MONOID_SUM;
  case BB_X_MUL: return BB_MONOID_PROD;
  case BB_X_MAX: return BB_MONOID_MAX;
  case BB_X_MIN: return BB_MONOID_MIN;
  default: return BB_MONOID_TUPLE;
  }
}

/* Components that are folded with others are not known, and wrong where an operand overflows. */
static void mean_components(bb_mean_level *l, const bb_node *node, bb_meaning *out) {
  bb_scalar_walk *w = l->walk;
  bb_scalar_kind kind = node->op == BB_OP_ROW_FOLD   ? BB_SCALAR_PART
                        : node->op == BB_OP_ROW_SCAN ? BB_SCALAR_SCAN
                                                     : BB_SCALAR_BEFORE;
  for (uint32_t k = 0; k < node->nin; k++) {
    const bb_meaning *in = &l->value[node->in[k].src.node][node->in[k].src.port];
    bb_monoid_id fold = bb_mean_plain_fold(node->rows, k);
    out[k] = *in;
    if (fold != BB_MONOID_TUPLE) {
      out[k].term = bb_scalar_fold(w->terms, kind, fold, in->col, in->term);
      continue;
    }
    bb_mean_opaque(w, node->out[k].type, in, BB_RANGE_ANY, &out[k]);
    bb_scalar_fold(w->terms, BB_SCALAR_PART, BB_MONOID_ARGMAX, in->col, in->term);
  }
}

static void mean_op(bb_mean_level *l, const bb_node *node, bb_meaning *out) {
  if (bb_op_is_pointwise(node->op)) {
    mean_pointwise(l, node, out);
    return;
  }
  switch (node->op) {
  case BB_OP_DOT:
  case BB_OP_OUTER: mean_product(l, node, out); return;
  case BB_OP_TRANSPOSE:
    *out = l->value[node->in[0].src.node][node->in[0].src.port];
    out->row = l->value[node->in[0].src.node][node->in[0].src.port].col;
    out->col = l->value[node->in[0].src.node][node->in[0].src.port].row;
    return;
  case BB_OP_ROW_FOLD:
  case BB_OP_ROW_SCAN:
  case BB_OP_ROW_SCAN_EXCLUSIVE: mean_components(l, node, out); return;
  default: mean_row_fold(l, node, out);
  }
}

void bb_mean_func(bb_mean_level *l, const bb_node *node, bb_meaning *out) {
  mean_op(l, node, out);
  if (node->op != BB_OP_ELEMENTWISE && out->term->exp)
    bb_mean_note_exp(l->walk, node, NULL, out->term->exp);
}
