/* func.c - the functional ops on items: strided operands in, a dense item out. */
#include "machine.h"

#include <math.h>
#include <string.h>

static _Noreturn void refuse(bb_run *run, const bb_node *node, const char *what) {
  bb_fail(run->ctx, BB_ERROR_INTERNAL, "%s: %s: %s", bb_run_place(run, node),
          bb_op_get(node->op)->name, what);
}

static double at(const bb_datum *item, int64_t r, int64_t c) {
  return item->data[r * item->row.stride + c * item->col.stride];
}

/* Whether a factor came out of sums that have no terms in this run. */
static bool of_nothing(bb_run *run, const bb_expr *terms) {
  if (!terms) return false;
  if (terms->op == BB_X_MUL) return of_nothing(run, terms->a[0]) || of_nothing(run, terms->a[1]);
  return bb_run_extent(run, terms->dim) == 0;
}

/* --- elementwise and broadcasts --- */

/* The union of the operands' axes; they must agree in length and place. */
static void take_axis(bb_run *run, const bb_node *node, bool has, bool seen, bb_span *out,
                      int64_t *out_start, bb_span in, int64_t start) {
  if (!has) return;
  if (seen && (out->length != in.length || *out_start != start))
    refuse(run, node, "operands are different blocks of an axis");
  *out = in;
  *out_start = start;
}

static void unite_shapes(bb_run *run, const bb_node *node, bb_instance_node *made) {
  bb_datum *out = made->out;
  out->row = out->col = (bb_span){1, 0};
  out->row_start = out->col_start = 0;
  bool row = false, col = false;
  for (uint32_t i = 0; i < node->nin; i++) {
    const bb_datum *in = made->in[i];
    bool has_row = in->type->item.row != BB_NO_DIM, has_col = in->type->item.col != BB_NO_DIM;
    take_axis(run, node, has_row, row, &out->row, &out->row_start, in->row, in->row_start);
    take_axis(run, node, has_col, col, &out->col, &out->col_start, in->col, in->col_start);
    row |= has_row;
    col |= has_col;
  }
}

static void run_broadcast(bb_run *run, const bb_node *node, bb_instance_node *made, bool multiply) {
  const bb_datum *a = made->in[0], *b = made->in[1];
  bb_datum *out = made->out;
  bb_dtype dtype = node->out[0].type->item.dtype;
  bool wraps = multiply && dtype == BB_I32, nothing = of_nothing(run, node->expr);
  /* An axis that b lacks has stride 0. */
  for (int64_t r = 0; r < out->row.length; r++) {
    const double *x = a->data + r * a->row.stride, *y = b->data + r * b->row.stride;
    double *z = out->data + r * out->col.length;
    int64_t dx = a->col.stride, dy = b->col.stride, n = out->col.length;
    if (nothing)
      for (int64_t c = 0; c < n; c++) z[c] = x[c * dx] * 0;
    else if (wraps)
      for (int64_t c = 0; c < n; c++) z[c] = bb_interp_times(dtype, x[c * dx], y[c * dy]);
    else if (dx == 1 && dy == 1 && multiply)
      for (int64_t c = 0; c < n; c++) z[c] = x[c] * y[c];
    else if (multiply)
      for (int64_t c = 0; c < n; c++) z[c] = x[c * dx] * y[c * dy];
    else
      for (int64_t c = 0; c < n; c++) z[c] = x[c * dx] + y[c * dy];
  }
  bb_settle(run, node, dtype, out->data, (size_t)(out->row.length * out->col.length), false);
}

static void run_elementwise(bb_run *run, const bb_node *node, bb_instance_node *made,
                            uint32_t depth) {
  bb_datum *out = made->out;
  unite_shapes(run, node, made);
  bb_datum_alloc(run->ctx, out, &run->stack[depth]);
  if (node->op == BB_OP_ELEMENTWISE)
    bb_formula_run(run, made->formula, node, made->in, out, depth);
  else
    run_broadcast(run, node, made,
                  node->op == BB_OP_MUL || node->op == BB_OP_ROW_SCALE ||
                      node->op == BB_OP_COL_SCALE);
  bb_count_operations(run, made->cost * (double)(out->row.length * out->col.length));
}

/* --- along the columns --- */

static void shape_of_rows(bb_datum *out, const bb_datum *in) {
  out->row = in->row;
  out->row_start = in->row_start;
  out->col = (bb_span){1, 0};
  out->col_start = 0;
}

static double fold_row(bb_op op, const bb_datum *in, int64_t r) {
  double value;
  bb_monoid_empty(bb_monoid_get(bb_monoid_of_row_op(op)), &value);
  value = bb_monoid_empty_held(in->type->item.dtype, value);
  for (int64_t c = 0; c < in->col.length; c++) {
    double x = at(in, r, c);
    switch (op) {
    case BB_OP_ROW_SUM: value += x; break;
    case BB_OP_ROW_PROD: value = bb_interp_times(in->type->item.dtype, value, x); break;
    case BB_OP_ROW_MAX: value = isnan(value) || value > x ? value : x; break;
    default: value = isnan(value) || value < x ? value : x;
    }
  }
  return value;
}

static void run_row_fold(bb_run *run, const bb_node *node, bb_instance_node *made, uint32_t depth) {
  const bb_datum *in = made->in[0];
  bb_datum *out = made->out;
  shape_of_rows(out, in);
  bb_datum_alloc(run->ctx, out, &run->stack[depth]);
  for (int64_t r = 0; r < in->row.length; r++) out->data[r] = fold_row(node->op, in, r);
  bb_settle(run, node, node->out[0].type->item.dtype, out->data, (size_t)in->row.length, true);
  bb_count_operations(run, made->cost * (double)(in->row.length * in->col.length));
}

static void run_row_argument(bb_run *run, const bb_node *node, bb_instance_node *made,
                             uint32_t depth) {
  const bb_datum *in = made->in[0];
  const bb_monoid *monoid = bb_monoid_get(bb_monoid_of_row_op(node->op));
  for (uint32_t o = 0; o < 2; o++) {
    shape_of_rows(&made->out[o], in);
    bb_datum_alloc(run->ctx, &made->out[o], &run->stack[depth]);
  }
  for (int64_t r = 0; r < in->row.length; r++) {
    double best[2];
    bb_monoid_empty(monoid, best);
    for (int64_t c = 0; c < in->col.length; c++)
      bb_monoid_combine(monoid, best, (double[2]){at(in, r, c), (double)(in->col_start + c)});
    made->out[0].data[r] = best[0];
    made->out[1].data[r] = best[1];
  }
  bb_count_operations(run, made->cost * (double)(in->row.length * in->col.length));
}

static void run_row_cumsum(bb_run *run, const bb_node *node, bb_instance_node *made,
                           uint32_t depth) {
  const bb_datum *in = made->in[0];
  bb_datum *out = made->out;
  bb_datum_shape(out, in);
  bb_datum_alloc(run->ctx, out, &run->stack[depth]);
  for (int64_t r = 0; r < in->row.length; r++) {
    double sum = 0;
    for (int64_t c = 0; c < in->col.length; c++)
      out->data[r * in->col.length + c] = sum += at(in, r, c);
  }
  size_t count = (size_t)(in->row.length * in->col.length);
  bb_settle(run, node, node->out[0].type->item.dtype, out->data, count, true);
  bb_count_operations(run, made->cost * (double)count);
}

/* A fold or a running fold of several components: one element at a time, as the monoid is written. */
static void run_components(bb_run *run, const bb_node *node, bb_instance_node *made,
                           uint32_t depth) {
  const bb_datum *in = made->in[0];
  bool scan = node->op != BB_OP_ROW_FOLD, before = node->op == BB_OP_ROW_SCAN_EXCLUSIVE;
  double total[BB_OP_RESULTS], term[BB_OP_RESULTS];
  for (uint32_t k = 0; k < node->nin; k++) {
    if (scan)
      bb_datum_shape(&made->out[k], made->in[k]);
    else
      shape_of_rows(&made->out[k], made->in[k]);
    bb_datum_alloc(run->ctx, &made->out[k], &run->stack[depth]);
  }
  for (int64_t r = 0; r < in->row.length; r++) {
    bb_monoid_empty(node->rows, total);
    for (int64_t c = 0; c < in->col.length; c++) {
      int64_t to = r * in->col.length + c;
      for (uint32_t k = 0; k < node->nin; k++) term[k] = at(made->in[k], r, c);
      for (uint32_t k = 0; before && k < node->nin; k++) made->out[k].data[to] = total[k];
      bb_monoid_combine(node->rows, total, term);
      for (uint32_t k = 0; scan && !before && k < node->nin; k++) made->out[k].data[to] = total[k];
    }
    for (uint32_t k = 0; !scan && k < node->nin; k++) made->out[k].data[r] = total[k];
  }
  size_t count = (size_t)(in->row.length * (scan ? in->col.length : 1));
  for (uint32_t k = 0; k < node->nin; k++)
    bb_settle(run, node, node->out[k].type->item.dtype, made->out[k].data, count, true);
  bb_count_operations(run, made->cost * node->nin * (double)(in->row.length * in->col.length));
}

/* --- products --- */

/* The operand with its columns side by side, copied only when they are not. */
static const double *packed(bb_run *run, const bb_datum *in, uint32_t depth, int64_t *row_stride) {
  if (in->col.stride == 1 || in->col.length <= 1) {
    *row_stride = in->row.stride;
    return in->data;
  }
  *row_stride = in->col.length;
  double *copy = bb_stack_alloc(&run->stack[depth], (size_t)(in->row.length * in->col.length));
  for (int64_t r = 0; r < in->row.length; r++)
    for (int64_t c = 0; c < in->col.length; c++) copy[r * in->col.length + c] = at(in, r, c);
  return copy;
}

enum { TILE = 4 };

/* TILE x TILE products at once; every sum runs over k in order, so tiling changes no result. */
static void dot_tile(const double *a, int64_t da, const double *b, int64_t db, int64_t inner,
                     double *out, int64_t dout) {
  const double *x[TILE], *y[TILE];
  double sum[TILE][TILE] = {{0}};
  for (int i = 0; i < TILE; i++) x[i] = a + i * da, y[i] = b + i * db;
  for (int64_t k = 0; k < inner; k++)
    for (int i = 0; i < TILE; i++)
      for (int j = 0; j < TILE; j++) sum[i][j] += x[i][k] * y[j][k];
  for (int i = 0; i < TILE; i++)
    for (int j = 0; j < TILE; j++) out[i * dout + j] = sum[i][j];
}

static double dot_one(const double *a, const double *b, int64_t inner) {
  double sum = 0;
  for (int64_t k = 0; k < inner; k++) sum += a[k] * b[k];
  return sum;
}

/* Of numbers of 32 bits, whose sums wrap. */
static double dot_wrapped(const double *a, const double *b, int64_t inner) {
  uint32_t sum = 0;
  for (int64_t k = 0; k < inner; k++) sum += (uint32_t)(int32_t)bb_interp_times(BB_I32, a[k], b[k]);
  return (int32_t)sum;
}

static void run_dot(bb_run *run, const bb_node *node, bb_instance_node *made, uint32_t depth) {
  const bb_datum *a = made->in[0], *b = made->in[1];
  bb_datum *out = made->out;
  if (a->col.length != b->col.length || a->col_start != b->col_start)
    refuse(run, node, "operands are different blocks of the contracted axis");
  out->row = a->row;
  out->row_start = a->row_start;
  out->col = b->row;
  out->col_start = b->row_start;
  bb_datum_alloc(run->ctx, out, &run->stack[depth]);
  bb_stack_mark mark = bb_stack_save(&run->stack[depth]);
  int64_t da, db, rows = a->row.length, cols = b->row.length, inner = a->col.length;
  bb_dtype dtype = node->out[0].type->item.dtype;
  const double *x = packed(run, a, depth, &da), *y = packed(run, b, depth, &db);
  for (int64_t r = 0; r < rows; r += TILE)
    for (int64_t c = 0; c < cols; c += TILE) {
      if (r + TILE <= rows && c + TILE <= cols && dtype != BB_I32) {
        dot_tile(x + r * da, da, y + c * db, db, inner, out->data + r * cols + c, cols);
        continue;
      }
      for (int64_t i = r; i < r + TILE && i < rows; i++)
        for (int64_t j = c; j < c + TILE && j < cols; j++)
          out->data[i * cols + j] =
              (dtype == BB_I32 ? dot_wrapped : dot_one)(x + i * da, y + j * db, inner);
    }
  bb_stack_restore(&run->stack[depth], mark);
  bb_settle(run, node, dtype, out->data, (size_t)(rows * cols), true);
  bb_count_operations(run, made->cost * (double)(rows * cols) * (double)inner);
}

static void run_outer(bb_run *run, const bb_node *node, bb_instance_node *made, uint32_t depth) {
  const bb_datum *a = made->in[0], *b = made->in[1];
  bb_datum *out = made->out;
  out->row = a->row;
  out->row_start = a->row_start;
  out->col = b->row;
  out->col_start = b->row_start;
  bb_dtype dtype = node->out[0].type->item.dtype;
  bool nothing = of_nothing(run, node->expr);
  bb_datum_alloc(run->ctx, out, &run->stack[depth]);
  for (int64_t r = 0; r < a->row.length; r++)
    for (int64_t c = 0; c < b->row.length; c++)
      out->data[r * b->row.length + c] =
          bb_interp_times(dtype, nothing ? 0 : at(a, r, 0), at(b, c, 0));
  size_t count = (size_t)(a->row.length * b->row.length);
  bb_settle(run, node, dtype, out->data, count, false);
  bb_count_operations(run, made->cost * (double)count);
}

/* A window with its axes exchanged: nothing moves. */
static void run_transpose(bb_instance_node *made) {
  const bb_datum *in = made->in[0];
  bb_datum *out = made->out;
  out->data = in->data;
  out->row = in->col;
  out->row_start = in->col_start;
  out->col = in->row;
  out->col_start = in->row_start;
}

void bb_run_func(bb_run *run, const bb_node *node, bb_instance_node *made, uint32_t depth) {
  switch (node->op) {
  case BB_OP_ELEMENTWISE:
  case BB_OP_ADD:
  case BB_OP_MUL:
  case BB_OP_ROW_SHIFT:
  case BB_OP_ROW_SCALE:
  case BB_OP_COL_SHIFT:
  case BB_OP_COL_SCALE: run_elementwise(run, node, made, depth); return;
  case BB_OP_ROW_SUM:
  case BB_OP_ROW_MAX:
  case BB_OP_ROW_MIN:
  case BB_OP_ROW_PROD: run_row_fold(run, node, made, depth); return;
  case BB_OP_ROW_ARGMAX:
  case BB_OP_ROW_ARGMIN:
  case BB_OP_ROW_ARGMAX_LAST:
  case BB_OP_ROW_ARGMIN_LAST: run_row_argument(run, node, made, depth); return;
  case BB_OP_ROW_CUMSUM: run_row_cumsum(run, node, made, depth); return;
  case BB_OP_ROW_FOLD:
  case BB_OP_ROW_SCAN:
  case BB_OP_ROW_SCAN_EXCLUSIVE: run_components(run, node, made, depth); return;
  case BB_OP_DOT: run_dot(run, node, made, depth); return;
  case BB_OP_OUTER: run_outer(run, node, made, depth); return;
  case BB_OP_TRANSPOSE: run_transpose(made); return;
  case BB_OP_COUNT: break;
  }
  refuse(run, node, "no such op");
}
