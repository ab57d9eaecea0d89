/* safety_item.c - functional ops on pairs of items.
 */
#include "safety_pair.h"

enum { OPERANDS = 64 };

static bb_pair *new_pair(const bb_safe_level *level) {
  return BB_NEW(level->safety->arena, bb_pair, 1);
}

bb_pair *bb_safe_plain(bb_safe_level *level, bb_value value) {
  bb_pair *pair = new_pair(level);
  pair->significand = value;
  return pair;
}

static bb_item item_of(const bb_safe_level *level, bb_value value) {
  return bb_type_of(level->graph, value)->item;
}

/* --- elementwise ops --- */

static bool has_axes(bb_item item, bool row, bool col) {
  return (!row || item.row != BB_NO_DIM) && (!col || item.col != BB_NO_DIM);
}

/* Keeps an operand for an axis that the operands read lack. */
static void keep_axis(const bb_safe_level *level, uint32_t count, const bb_value *in, bool *keep,
                      bool row) {
  uint32_t found = BB_NONE;
  for (uint32_t i = 0; i < count; i++) {
    if (!has_axes(item_of(level, in[i]), row, !row)) continue;
    if (keep[i]) return;
    if (found == BB_NONE) found = i;
  }
  if (found != BB_NONE) keep[found] = true;
}

bb_value bb_safe_emit(bb_safe_level *level, const bb_expr *expr, uint32_t count, const bb_value *in,
                      bb_item item) {
  bb_program *program = level->safety->program;
  bool keep[OPERANDS] = {false};
  for (uint32_t i = 0; i < count; i++) keep[i] = bb_expr_uses_arg(expr, i);
  if (expr->op == BB_X_ARG) {
    bb_item own = item_of(level, in[expr->index]);
    if (own.row == item.row && own.col == item.col) return in[expr->index];
  }
  if (item.row != BB_NO_DIM) keep_axis(level, count, in, keep, true);
  if (item.col != BB_NO_DIM) keep_axis(level, count, in, keep, false);
  bb_value kept[OPERANDS];
  const bb_expr *with[OPERANDS] = {NULL};
  uint32_t kepts = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (!keep[i]) continue;
    with[i] = bb_expr_arg(program, item_of(level, in[i]).dtype, kepts);
    kept[kepts++] = in[i];
  }
  expr = bb_expr_substitute(program, expr, count, with);
  return bb_func_add(level->graph, BB_OP_ELEMENTWISE, expr, kepts, kept);
}

const bb_expr *bb_safe_sum_expr(bb_safe_level *level, uint32_t count, const bb_exponent *exponent,
                                uint32_t first, bb_value *in) {
  bb_program *p = level->safety->program;
  const bb_expr *sum = NULL;
  for (uint32_t i = 0; i < count; i++) {
    in[first + i] = exponent[i].value;
    bb_dtype dtype = item_of(level, exponent[i].value).dtype;
    const bb_expr *e = bb_expr_arg(p, dtype, first + i);
    double size = fabs(exponent[i].weight);
    if (size != 1) e = bb_expr_make(p, BB_X_MUL, bb_expr_const(p, dtype, size), e, NULL);
    bool minus = exponent[i].weight < 0;
    if (!sum)
      sum = minus ? bb_expr_make(p, BB_X_NEG, e, NULL, NULL) : e;
    else
      sum = bb_expr_make(p, minus ? BB_X_SUB : BB_X_ADD, sum, e, NULL);
  }
  return sum;
}

static bb_item union_of(const bb_safe_level *level, uint32_t count, const bb_value *in,
                        bb_dtype dtype) {
  bb_item item = {dtype, BB_NO_DIM, BB_NO_DIM};
  for (uint32_t i = 0; i < count; i++) {
    bb_item own = item_of(level, in[i]);
    if (own.row != BB_NO_DIM) item.row = own.row;
    if (own.col != BB_NO_DIM) item.col = own.col;
  }
  return item;
}

bb_value bb_safe_sum(bb_safe_level *level, uint32_t count, const bb_exponent *exponent) {
  bb_value in[OPERANDS];
  const bb_expr *sum = bb_safe_sum_expr(level, count, exponent, 0, in);
  return bb_safe_emit(level, sum, count, in, union_of(level, count, in, sum->dtype));
}

bb_value bb_safe_significand(bb_safe_level *level, bb_pair *pair, bb_item item) {
  if (!pair->ones) return pair->significand;
  bb_value in[BB_PAIR_EXPONENTS];
  for (uint32_t i = 0; i < pair->count; i++) in[i] = pair->exponent[i].value;
  pair->significand = bb_safe_emit(level, bb_expr_const(level->safety->program, item.dtype, 1),
                                   pair->count, in, item);
  pair->ones = false;
  return pair->significand;
}

/* What an expression of the pair makes of it is the expression of nothing but the pair. */
bb_value bb_safe_multiply_back(bb_safe_level *level, bb_pair *pair, bb_item item) {
  if (!pair->count) return pair->significand;
  if (pair->has_plain) return pair->plain;
  pair->plain = bb_safe_value_of(level, pair, item);
  pair->has_plain = true;
  return pair->plain;
}

bb_value bb_safe_widen(bb_safe_level *level, bb_pair *pair, bb_item item) {
  if (pair->has_wide) return pair->wide;
  bb_value in[BB_PAIR_EXPONENTS + 1];
  uint32_t first = pair->ones ? 0 : 1; /* which has all axes, as the exponents have where it is 1 */
  if (first) in[0] = pair->significand;
  const bb_expr *sum = bb_safe_sum_expr(level, pair->count, pair->exponent, first, in);
  if (!sum) sum = bb_expr_const(level->safety->program, BB_F32, 0);
  item.dtype = sum->dtype;
  pair->wide = bb_safe_emit(level, sum, first + pair->count, in, item);
  pair->has_wide = true;
  return pair->wide;
}

/* --- exponents that are constant along an axis --- */

static bool varies(const bb_safe_level *level, const bb_exponent *e, uint32_t axis) {
  bb_item item = item_of(level, e->value);
  return (axis == BB_NEED_COL ? item.col : item.row) != BB_NO_DIM;
}

static bb_value transpose(bb_safe_level *level, bb_value value) {
  return bb_func_add(level->graph, BB_OP_TRANSPOSE, NULL, 1, &value);
}

static bb_value make_largest(bb_safe_level *level, bb_value value, uint32_t axis) {
  if (axis == BB_NEED_COL) return bb_func_add(level->graph, BB_OP_ROW_MAX, NULL, 1, &value);
  bb_value turned = transpose(level, value);
  bb_value top = bb_func_add(level->graph, BB_OP_ROW_MAX, NULL, 1, &turned);
  return item_of(level, top).row == BB_NO_DIM ? top : transpose(level, top);
}

static bb_value largest_along(bb_safe_level *level, bb_value exponent, uint32_t axis) {
  for (uint32_t i = 0; i < level->tops; i++)
    if (level->top[i].axis == axis && bb_value_equal(level->top[i].exponent, exponent))
      return level->top[i].top;
  BB_GROW(level->safety->arena, level->top, level->top_capacity, (size_t)level->tops + 1);
  bb_value top = make_largest(level, exponent, axis);
  level->top[level->tops++] = (bb_safe_top){exponent, top, axis};
  return top;
}

bb_pair *bb_safe_level_out(bb_safe_level *level, bb_pair *pair, bb_item item, uint32_t axis) {
  bb_pair **known = axis == BB_NEED_COL ? &pair->along_col : &pair->along_row;
  bb_program *p = level->safety->program;
  bb_exponent varying[BB_PAIR_EXPONENTS];
  uint32_t count = 0;
  if (*known) return *known;
  bb_pair *flat = new_pair(level);
  *flat = (bb_pair){.ones = pair->ones, .significand = pair->significand};
  for (uint32_t i = 0; i < pair->count; i++)
    if (varies(level, &pair->exponent[i], axis))
      varying[count++] = pair->exponent[i];
    else
      flat->exponent[flat->count++] = pair->exponent[i];
  if (!count) return pair;
  bb_value exponent =
      count == 1 && varying[0].weight == 1 ? varying[0].value : bb_safe_sum(level, count, varying);
  bb_value top = largest_along(level, exponent, axis), in[3] = {exponent, top};
  bb_dtype dtype = item_of(level, exponent).dtype;
  const bb_expr *e = bb_expr_arg(p, dtype, 0), *m = bb_expr_arg(p, dtype, 1);
  const bb_expr *share =
      bb_expr_make(p, BB_X_EXP, bb_expr_make(p, BB_X_SUB, e, m, NULL), NULL, NULL);
  const bb_expr *none = bb_expr_make(p, BB_X_EQ, m, bb_expr_const(p, dtype, -INFINITY), NULL);
  const bb_expr *s = bb_expr_make(p, BB_X_SELECT, none, bb_expr_const(p, dtype, 0), share);
  if (s->dtype != item.dtype) s = bb_expr_cast(p, item.dtype, s);
  if (!pair->ones) {
    in[2] = pair->significand;
    s = bb_expr_make(p, BB_X_MUL, bb_expr_arg(p, item.dtype, 2), s, NULL);
  }
  flat->significand = bb_safe_emit(level, s, pair->ones ? 2 : 3, in, item);
  flat->ones = false;
  flat->exponent[flat->count++] = (bb_exponent){1, top, 0};
  return *known = flat;
}

/* --- ops --- */

static bb_pair *operand(const bb_safe_level *level, const bb_node *node, uint32_t port) {
  bb_value src = node->in[port].src;
  return &level->pair[src.node][src.port];
}

/* An operand of an op that logarithms must be plain for. */
static bb_pair *factor(bb_safe_level *level, const bb_node *node, uint32_t port) {
  bb_pair *pair = operand(level, node, port);
  if (!pair->logarithm) return pair;
  bb_item item = bb_type_of(level->old, node->in[port].src)->item;
  return bb_safe_plain(level, bb_safe_multiply_back(level, pair, item));
}

static bb_item old_item(const bb_safe_level *level, const bb_node *node, uint32_t port) {
  return bb_type_of(level->old, node->in[port].src)->item;
}

static bb_value same_op(bb_safe_level *level, const bb_node *node, const bb_value *in) {
  bb_value made = bb_func_add(level->graph, node->op, node->expr, node->nin, in);
  bb_node_get(level->graph, made.node)->serial = node->serial;
  bb_node_get(level->graph, made.node)->name = node->name;
  bb_node_get(level->graph, made.node)->rows = node->rows;
  return made;
}

/* Adds an exponent; equal ones cancel. */
static void add_exponent(bb_safe_level *level, bb_pair *pair, double weight, bb_value value) {
  for (uint32_t i = 0; i < pair->count; i++) {
    if (!bb_value_equal(pair->exponent[i].value, value)) continue;
    pair->exponent[i].weight += weight;
    if (pair->exponent[i].weight == 0) pair->exponent[i] = pair->exponent[--pair->count];
    return;
  }
  if (pair->count == BB_PAIR_EXPONENTS) {
    bb_value sum = bb_safe_sum(level, pair->count, pair->exponent);
    pair->exponent[0] = (bb_exponent){1, sum, 0};
    pair->count = 1;
  }
  pair->exponent[pair->count++] = (bb_exponent){weight, value, 0};
}

/* Where an operand's axes stand in the result. */
typedef enum turn { KEEP, TURN } turn;

static void add_exponents(bb_safe_level *level, bb_pair *to, const bb_pair *from, turn how) {
  for (uint32_t i = 0; i < from->count; i++) {
    bb_value value = from->exponent[i].value;
    bb_item item = item_of(level, value);
    bool axes = item.row != BB_NO_DIM || item.col != BB_NO_DIM;
    if (how == TURN && axes) value = transpose(level, value);
    add_exponent(level, to, from->exponent[i].weight, value);
  }
}

/* Varies one of the exponents along the columns: of each row by itself, or of all rows alike? */
static bool has_exponent(const bb_safe_level *level, const bb_pair *pair, bool rows) {
  for (uint32_t i = 0; i < pair->count; i++)
    if (varies(level, &pair->exponent[i], BB_NEED_COL) &&
        varies(level, &pair->exponent[i], BB_NEED_ROW) == rows)
      return true;
  return false;
}

/* Exponents of the columns alone, that all rows of one operand share, go over to the other. */
static void hand_over(bb_safe_level *level, bb_pair **from, bb_item item, bb_pair **to,
                      bb_item other) {
  bb_pair *less = new_pair(level), *more = new_pair(level);
  *less = (bb_pair){.significand = bb_safe_significand(level, *from, item)};
  *more = (bb_pair){.ones = (*to)->ones, .significand = (*to)->significand};
  add_exponents(level, more, *to, KEEP);
  for (uint32_t i = 0; i < (*from)->count; i++) {
    const bb_exponent *e = &(*from)->exponent[i];
    bool shared = varies(level, e, BB_NEED_COL) && !varies(level, e, BB_NEED_ROW);
    add_exponent(level, shared ? more : less, e->weight, e->value);
  }
  if (more->ones && !more->count) { /* all have cancelled */
    more->significand = bb_safe_significand(level, *to, other);
    more->ones = false;
  }
  *from = less;
  *to = more;
}

/* The exponents of a dot's two operands add up in each of its terms, and may make up for each other: the
 * greatest sum can be far below the sum of the greatest.  What scales the columns is brought beside the
 * other exponents of the columns, so that sums are what is compared.  Where both operands have exponents of their
 * rows' columns, each is relative to its own greatest, and terms far below the product of these are lost. */
static void join_columns(bb_safe_level *level, const bb_node *node, bb_pair **a) {
  bool shared[2], own[2];
  for (uint32_t p = 0; p < 2; p++) {
    shared[p] = has_exponent(level, a[p], false);
    own[p] = has_exponent(level, a[p], true);
  }
  if (own[0] && own[1]) return; /* what scales either belongs to the rows it stands beside */
  uint32_t from = own[0] || !own[1] ? 1 : 0;
  if (shared[from] && (own[1 - from] || shared[1 - from]))
    hand_over(level, &a[from], old_item(level, node, from), &a[1 - from],
              old_item(level, node, 1 - from));
}

/* Products: significands multiply, exponents add. */
static bb_pair *product(bb_safe_level *level, const bb_node *node) {
  bb_value in[2];
  bb_pair *a[2], *result = new_pair(level);
  for (uint32_t p = 0; p < 2; p++) a[p] = factor(level, node, p);
  if (node->op == BB_OP_DOT) join_columns(level, node, a);
  for (uint32_t p = 0; p < 2; p++) {
    bb_item item = old_item(level, node, p);
    if (node->op == BB_OP_DOT) a[p] = bb_safe_level_out(level, a[p], item, BB_NEED_COL);
    in[p] = bb_safe_significand(level, a[p], item);
  }
  result->significand = same_op(level, node, in);
  bool turned = node->op == BB_OP_DOT || node->op == BB_OP_OUTER;
  add_exponents(level, result, a[0], KEEP);
  add_exponents(level, result, a[1], turned ? TURN : KEEP);
  if (!result->count || !bb_safe_is_mended(level->safety, node, NULL)) return result;
  return bb_safe_plain(level, bb_safe_multiply_back(level, result, node->out[0].type->item));
}

/* Sums, minima and maxima along the columns, where the exponent is the same. */
static bb_pair *row_fold(bb_safe_level *level, const bb_node *node) {
  bb_item item = old_item(level, node, 0);
  bb_pair *a = bb_safe_level_out(level, factor(level, node, 0), item, BB_NEED_COL);
  bb_value in = bb_safe_significand(level, a, item);
  bb_pair *result = bb_safe_plain(level, same_op(level, node, &in));
  add_exponents(level, result, a, KEEP);
  return result;
}

static bool varies_along_columns(const bb_safe_level *level, const bb_pair *pair) {
  for (uint32_t i = 0; i < pair->count; i++)
    if (varies(level, &pair->exponent[i], BB_NEED_COL)) return true;
  return false;
}

/* Running sums: each has the greatest exponent so far, since what comes later may be beyond all of them. */
static bb_pair *row_scan(bb_safe_level *level, const bb_node *node) {
  bb_item item = old_item(level, node, 0);
  bb_pair *a = factor(level, node, 0);
  if (!varies_along_columns(level, a)) return row_fold(level, node);
  bb_value in[2] = {bb_safe_widen(level, a, item), bb_safe_significand(level, a, item)};
  bb_safe_member member = {BB_MONOID_SUM, 1, item.dtype, false};
  const bb_monoid *monoid = bb_safe_monoid(level->safety, item_of(level, in[0]).dtype, 1, &member);
  if (!monoid) {
    level->safety->refused = "a running sum and its exponent make no monoid";
    return row_fold(level, node);
  }
  bb_op op = node->op == BB_OP_ROW_CUMSUM ? BB_OP_ROW_SCAN : node->op;
  bb_value made = bb_row_fold_add(level->graph, op, monoid, in);
  bb_node_get(level->graph, made.node)->serial = node->serial;
  bb_pair *result = bb_safe_plain(level, (bb_value){made.node, 1});
  result->exponent[result->count++] = (bb_exponent){1, {made.node, 0}, 0};
  return result;
}

static bb_pair *transposed(bb_safe_level *level, const bb_node *node) {
  bb_pair *a = factor(level, node, 0), *result = new_pair(level);
  bb_value in = bb_safe_significand(level, a, old_item(level, node, 0));
  result->significand = same_op(level, node, &in);
  add_exponents(level, result, a, TURN);
  return result;
}

/* a + b as an expression. */
static bb_pair *addition(bb_safe_level *level, const bb_node *node) {
  bb_program *p = level->safety->program;
  bb_pair *a[2] = {operand(level, node, 0), operand(level, node, 1)};
  const bb_expr *of[2];
  for (uint32_t i = 0; i < 2; i++) of[i] = bb_expr_arg(p, old_item(level, node, i).dtype, i);
  const bb_expr *sum = bb_op_expr(p, node->op, of[0], of[1]);
  return bb_safe_expression(level, NULL, sum, 2, a, node->out[0].type);
}

static void on_plain_values(bb_safe_level *level, const bb_node *node, bb_pair **out) {
  bb_value *in = BB_NEW(level->safety->arena, bb_value, (size_t)node->nin + 1);
  for (uint32_t p = 0; p < node->nin; p++)
    in[p] = bb_safe_multiply_back(level, operand(level, node, p), old_item(level, node, p));
  bb_value made = same_op(level, node, in);
  for (uint32_t p = 0; p < node->nout; p++) out[p] = bb_safe_plain(level, (bb_value){made.node, p});
}

/* The exponent of a new pair where all that contracts it later does so along one axis. */
static bb_pair *settled(bb_safe_level *level, bb_pair *pair, uint32_t at, bb_item item) {
  bool varies = pair->count && !pair->logarithm;
  uint32_t need = varies ? bb_safe_need(level, (bb_value){at, 0}) : 0;
  if (need != BB_NEED_COL && need != BB_NEED_ROW) return pair;
  return bb_safe_level_out(level, pair, item, need);
}

/* The exponent that such a pair has is its operand's, if it is a cast: then others that want the operand settle
 * it but once. */
static bool is_cast(const bb_expr *expr) {
  return expr->op == BB_X_CAST && expr->a[0]->op == BB_X_ARG && bb_dtype_is_float(expr->dtype);
}

static void elementwise(bb_safe_level *level, const bb_node *node, uint32_t index, bb_pair **out) {
  bb_pair **a = BB_NEW(level->safety->arena, bb_pair *, (size_t)node->nin + 1);
  for (uint32_t p = 0; p < node->nin; p++) a[p] = operand(level, node, p);
  if (node->nin == 1 && is_cast(node->expr))
    a[0] = settled(level, a[0], index, old_item(level, node, 0));
  bb_pair *made = bb_safe_expression(level, node, node->expr, node->nin, a, node->out[0].type);
  out[0] = settled(level, made, index, node->out[0].type->item);
}

void bb_safe_func(bb_safe_level *level, const bb_node *node, uint32_t index, bb_pair **out) {
  bool pairs = false;
  for (uint32_t p = 0; p < node->nin; p++) pairs |= operand(level, node, p)->count > 0;
  if (!pairs && !bb_safe_has_unsafe(level->safety, node)) {
    on_plain_values(level, node, out);
    return;
  }
  switch (node->op) {
  case BB_OP_ELEMENTWISE: elementwise(level, node, index, out); return;
  case BB_OP_ADD:
  case BB_OP_ROW_SHIFT:
  case BB_OP_COL_SHIFT: out[0] = addition(level, node); return;
  case BB_OP_MUL:
  case BB_OP_ROW_SCALE:
  case BB_OP_COL_SCALE:
  case BB_OP_OUTER:
  case BB_OP_DOT: out[0] = product(level, node); return;
  case BB_OP_ROW_SUM:
  case BB_OP_ROW_MAX:
  case BB_OP_ROW_MIN: out[0] = row_fold(level, node); return;
  case BB_OP_ROW_CUMSUM: out[0] = row_scan(level, node); return;
  case BB_OP_ROW_SCAN:
  case BB_OP_ROW_SCAN_EXCLUSIVE:
    if (node->rows->id == BB_MONOID_SUM)
      out[0] = row_scan(level, node);
    else
      on_plain_values(level, node, out);
    return;
  case BB_OP_TRANSPOSE: out[0] = transposed(level, node); return;
  default: on_plain_values(level, node, out);
  }
}
