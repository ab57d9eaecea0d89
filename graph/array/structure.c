/* structure.c - constants that equal a closed form of their coordinates become expressions.
 *
 * Looked at are constants that elementwise nodes read: masks, biases, scalars.  Every element is
 * compared; a form that misses one is not taken.  The forms, over the last two axes (row r, column
 * c) and equal along all axes before them, unless said otherwise:
 *
 *   one value
 *   a value where lo <= c - r <= hi (causal, window, band), or lo <= c <= hi, or lo <= r <= hi, or
 *     r / n == c / n (block diagonal), and another value elsewhere
 *   slope * (c - r), slope * c or -slope * |c - r| (ALiBi), a slope for each index of the axes
 *     before, perhaps with one value (-inf) where a pattern as above does not hold
 *
 * Whether a large finite negative number may become -inf is decided later, where its row is known
 * (canon_mask.c).
 */
#include "eval.h"

#include "../../runtime/interp/interp.h"

#include <math.h>
#include <string.h>

enum { ELEMENTS_MAX = 1 << 24 };

/* A constant as [outer][rows][cols]. */
typedef struct sheet {
  bb_array *array;
  bb_program *program;
  bb_arena *scratch;
  bb_dtype dtype;
  int64_t outer, rows, cols;
  const double *data;
} sheet;

static bool same_number(double a, double b) {
  return a == b || (isnan(a) && isnan(b));
}

/* --- patterns: sets of (row, column) --- */

typedef enum outline { BAND, COLUMNS, ROWS, BLOCKS } outline;

typedef struct pattern {
  outline shape;
  int64_t lo, hi; /* BLOCKS: lo is the size */
} pattern;

static int64_t position(outline shape, int64_t r, int64_t c) {
  return shape == BAND ? c - r : shape == COLUMNS ? c : r;
}

static bool inside(const pattern *p, int64_t r, int64_t c) {
  if (p->shape == BLOCKS) return r / p->lo == c / p->lo;
  int64_t x = position(p->shape, r, c);
  return p->lo <= x && x <= p->hi;
}

/* The least pattern of a shape that has all marked elements of the first sheet. */
static bool bounds(const sheet *s, const bool *mark, pattern *p) {
  bool any = false;
  for (int64_t r = 0; r < s->rows; r++)
    for (int64_t c = 0; c < s->cols; c++) {
      if (!mark[r * s->cols + c]) continue;
      int64_t x = position(p->shape, r, c);
      if (!any || x < p->lo) p->lo = x;
      if (!any || x > p->hi) p->hi = x;
      any = true;
    }
  if (p->shape == BLOCKS) {
    for (p->lo = 0; p->lo < s->cols && mark[p->lo];) p->lo++;
    return p->lo > 0 && p->lo < s->cols;
  }
  return any;
}

static bool find_pattern(const sheet *s, const bool *mark, pattern *p) {
  for (outline shape = BAND; shape <= BLOCKS; shape++) {
    *p = (pattern){.shape = shape};
    if ((s->rows == 1 && shape != COLUMNS) || !bounds(s, mark, p)) continue;
    bool all = true;
    for (int64_t i = 0; all && i < s->outer * s->rows * s->cols; i++) {
      int64_t at = i % (s->rows * s->cols);
      all = mark[i] == inside(p, at / s->cols, at % s->cols);
    }
    if (all) return true;
  }
  return false;
}

/* --- expressions --- */

static const bb_expr *integer(const sheet *s, int64_t value) {
  return bb_expr_const(s->program, BB_I64, (double)value);
}
static const bb_expr *column(const sheet *s) {
  return bb_expr_coord(s->program, BB_COORD_AXIS);
}
static const bb_expr *row(const sheet *s) {
  return bb_expr_coord(s->program, BB_COORD_AXIS + 1);
}
static const bb_expr *make(const sheet *s, bb_expr_op op, const bb_expr *a, const bb_expr *b) {
  return bb_expr_make(s->program, op, a, b, NULL);
}

/* a + shift <= b, written without negative numbers */
static const bb_expr *at_most(const sheet *s, const bb_expr *a, int64_t shift, const bb_expr *b) {
  if (shift > 0) a = make(s, BB_X_ADD, a, integer(s, shift));
  if (shift < 0) b = make(s, BB_X_ADD, b, integer(s, -shift));
  return make(s, BB_X_LE, a, b);
}

/* True inside the pattern; bounds that every element of the sheet meets are left out. */
static const bb_expr *pattern_expr(const sheet *s, const pattern *p) {
  if (p->shape == BLOCKS)
    return make(s, BB_X_EQ, make(s, BB_X_DIV, row(s), integer(s, p->lo)),
                make(s, BB_X_DIV, column(s), integer(s, p->lo)));
  int64_t least = p->shape == BAND ? 1 - s->rows : 0,
          most = p->shape == ROWS ? s->rows - 1 : s->cols - 1;
  const bb_expr *upper = NULL, *lower = NULL;
  if (p->shape == BAND) {
    if (p->hi < most) upper = at_most(s, column(s), -p->hi, row(s));
    if (p->lo > least) lower = at_most(s, row(s), p->lo, column(s));
  } else {
    const bb_expr *x = p->shape == ROWS ? row(s) : column(s);
    if (p->hi < most) upper = make(s, BB_X_LE, x, integer(s, p->hi));
    if (p->lo > least) lower = make(s, BB_X_LE, integer(s, p->lo), x);
  }
  if (upper && lower) return make(s, BB_X_AND, upper, lower);
  return upper ? upper : lower ? lower : bb_expr_const(s->program, BB_BOOL, 1);
}

static const bb_expr *number(const sheet *s, double value) {
  return bb_expr_const(s->program, s->dtype, value);
}

/* --- forms --- */

static bool is_one_value(const sheet *s, int64_t count) {
  for (int64_t i = 1; i < count; i++)
    if (!same_number(s->data[i], s->data[0])) return false;
  return true;
}

/* Marks what equals `value`. */
static bool *mark_value(const sheet *s, int64_t count, double value) {
  bool *mark = BB_NEW(s->scratch, bool, (size_t)count);
  for (int64_t i = 0; i < count; i++) mark[i] = same_number(s->data[i], value);
  return mark;
}

static bool *complement(const sheet *s, int64_t count, const bool *mark) {
  bool *rest = BB_NEW(s->scratch, bool, (size_t)count);
  for (int64_t i = 0; i < count; i++) rest[i] = !mark[i];
  return rest;
}

/* The pattern of the elements that are not marked, or the opposite of that of those that are. */
static const bb_expr *visible_expr(const sheet *s, int64_t count, const bool *hidden) {
  pattern p;
  if (find_pattern(s, complement(s, count, hidden), &p)) return pattern_expr(s, &p);
  if (!find_pattern(s, hidden, &p)) return NULL;
  return bb_expr_make(s->program, BB_X_NOT, pattern_expr(s, &p), NULL, NULL);
}

/* Two values; the lesser one is the hidden one. */
static const bb_expr *two_values(const sheet *s, int64_t count) {
  double a = s->data[0], b = a;
  for (int64_t i = 0; i < count && same_number(a, b); i++) b = s->data[i];
  for (int64_t i = 0; i < count; i++)
    if (!same_number(s->data[i], a) && !same_number(s->data[i], b)) return NULL;
  if (isnan(a) || isnan(b)) return NULL;
  double low = a < b ? a : b, high = a < b ? b : a;
  const bb_expr *visible = visible_expr(s, count, mark_value(s, count, low));
  if (!visible) return NULL;
  if (s->dtype == BB_BOOL) return visible;
  return bb_expr_make(s->program, BB_X_SELECT, visible, number(s, high), number(s, low));
}

typedef enum slope { OF_DISTANCE, OF_COLUMN, OF_ABSOLUTE, SLOPES } slope;

static double along(slope kind, int64_t r, int64_t c) {
  if (kind == OF_COLUMN) return (double)c;
  double distance = (double)(c - r);
  return kind == OF_DISTANCE ? distance : -fabs(distance);
}

/* The slope of each outer sheet, exact for every element that is not hidden; NULL: none. */
static double *find_slopes(const sheet *s, slope kind, const bool *hidden) {
  double *slopes = BB_NEW(s->scratch, double, (size_t)s->outer);
  for (int64_t o = 0; o < s->outer; o++) {
    const double *data = s->data + o * s->rows * s->cols;
    const bool *skip = hidden + o * s->rows * s->cols;
    bool found = false;
    for (int64_t i = 0; !found && i < s->rows * s->cols; i++) {
      double x = along(kind, i / s->cols, i % s->cols);
      found = !skip[i] && fabs(x) == 1;
      if (found) slopes[o] = data[i] / x;
    }
    for (int64_t i = 0; i < s->rows * s->cols; i++) {
      double x = along(kind, i / s->cols, i % s->cols);
      if (!skip[i] && bb_round_to(s->dtype, slopes[o] * x) != data[i]) return NULL;
    }
    if (!found) return NULL;
  }
  return slopes;
}

/* Marks -inf or one large negative number, if there is either; NaN is neither. */
static bool *mark_hidden(const sheet *s, int64_t count, double *value) {
  *value = 0;
  for (int64_t i = 0; i < count && *value == 0; i++)
    if (s->data[i] <= -1e4) *value = s->data[i];
  for (int64_t i = 0; i < count && *value != 0; i++)
    if (s->data[i] < *value) *value = s->data[i];
  return *value == 0 ? BB_NEW(s->scratch, bool, (size_t)count) : mark_value(s, count, *value);
}

/* A slope as an operand: the constant [.., 1, 1] of the sheet's slopes. */
static uint32_t slope_operand(const sheet *s, const bb_array_value *v, const double *slopes) {
  int64_t shape[BB_EVAL_RANK];
  for (uint32_t a = 0; a < v->rank; a++)
    shape[a] = a + 2 < v->rank ? bb_extent_value(v->shape[a]) : 1;
  size_t bytes = (size_t)s->outer * bb_dtype_bytes(s->dtype);
  void *data = bb_arena_alloc(s->program->arena, bytes);
  bb_interp_store(s->dtype, slopes, (size_t)s->outer, data);
  return bb_array_constant(s->array, v->name, s->dtype, v->rank, shape, data, bytes);
}

/* slope * (c - r) and its kin; *operand is the slopes' constant, BB_NONE for a single one. */
static const bb_expr *sloped(const sheet *s, int64_t count, const bb_array_value *v,
                             uint32_t *operand) {
  double low, *slopes = NULL;
  slope kind = OF_DISTANCE;
  if (!bb_dtype_is_float(s->dtype) || s->rows * s->cols < 2) return NULL;
  bool *hidden = mark_hidden(s, count, &low);
  const bb_expr *visible = low != 0 ? visible_expr(s, count, hidden) : NULL;
  if (low != 0 && !visible) return NULL;
  for (; kind < SLOPES && !slopes; kind++) slopes = find_slopes(s, kind, hidden);
  if (!slopes) return NULL;
  kind--;
  const bb_expr *x = column(s);
  if (kind != OF_COLUMN) x = make(s, BB_X_SUB, x, row(s));
  if (kind == OF_ABSOLUTE)
    x = bb_expr_make(s->program, BB_X_NEG, make(s, BB_X_ABS, x, NULL), NULL, NULL);
  *operand = s->outer == 1 ? BB_NONE : slope_operand(s, v, slopes);
  const bb_expr *factor =
      s->outer == 1 ? number(s, slopes[0]) : bb_expr_arg(s->program, s->dtype, 0);
  const bb_expr *value = make(s, BB_X_MUL, factor, bb_expr_cast(s->program, s->dtype, x));
  if (!visible) return value;
  return bb_expr_make(s->program, BB_X_SELECT, visible, value, number(s, low));
}

/* The closed form of a constant, or NULL. */
static const bb_expr *closed_form(bb_array *array, uint32_t value, uint32_t *operand) {
  bb_whole whole;
  const bb_array_value v = array->value[value];
  *operand = BB_NONE;
  if (!bb_eval_shape(array, value, &whole) || whole.count > ELEMENTS_MAX) return NULL;
  bb_arena *scratch = bb_scratch(array->program->ctx);
  sheet s = {.array = array, .program = array->program, .scratch = scratch, .dtype = v.dtype};
  const bb_expr *expr = NULL;
  if (bb_eval_constant(array, value, scratch, &whole)) {
    int64_t count = (int64_t)whole.count;
    s.data = whole.data;
    s.cols = whole.rank > 0 ? whole.shape[whole.rank - 1] : 1;
    s.rows = whole.rank > 1 ? whole.shape[whole.rank - 2] : 1;
    s.outer = count / (s.rows * s.cols);
    if (is_one_value(&s, count)) expr = number(&s, s.data[0]);
    if (!expr && s.cols > 1) expr = two_values(&s, count);
    if (!expr && s.rows > 1 && s.cols > 1) expr = sloped(&s, count, &v, operand);
  }
  bb_scratch_end(scratch);
  return expr;
}

/* --- the pass --- */

typedef struct form {
  bool tried;
  const bb_expr *expr; /* coordinates as of the constant, NULL: none */
  uint32_t operand;
} form;

/* Do the operands of an elementwise node, without number `without`, still give its result's shape? */
static bool gives_shape(const bb_array *array, const bb_array_node *node, uint32_t without) {
  const bb_array_value *out = &array->value[node->out[0]];
  for (uint32_t a = 0; a < out->rank; a++) {
    bool found = false;
    for (uint32_t k = 0; k < node->nin; k++) {
      const bb_array_value *in = &array->value[node->in[k]];
      if (k == without || out->rank - a > in->rank) continue;
      found |= in->shape[a + in->rank - out->rank] == out->shape[a];
    }
    if (!found) return false;
  }
  return true;
}

/* Puts a constant's form into the expression of a node that reads it.  Axes are counted from the
 * last one in both, so its coordinates stay as they are. */
static void inline_form(bb_array *array, bb_array_node *node, uint32_t slot, const form *f) {
  bb_program *p = array->program;
  const bb_expr **with = BB_NEW(p->arena, const bb_expr *, node->nin);
  uint32_t count = 0, own = 0;
  for (uint32_t k = 0; k < node->nin; k++) {
    if (k == slot && f->operand == BB_NONE) continue;
    uint32_t value = k == slot ? f->operand : node->in[k];
    own = k == slot ? count : own;
    with[k] = bb_expr_arg(p, array->value[value].dtype, count);
    node->in[count++] = value;
  }
  const bb_expr *argument = bb_expr_arg(p, array->value[node->out[0]].dtype, own);
  if (f->operand != BB_NONE) argument = with[slot];
  with[slot] = bb_expr_substitute(p, f->expr, 1, &argument);
  node->expr = bb_expr_substitute(p, node->expr, node->nin, with);
  node->nin = count;
}

static void inline_forms(bb_array *array, bb_array_node *node, form *forms, uint32_t values) {
  for (uint32_t k = node->nin; k-- > 0;) {
    uint32_t value = node->in[k];
    if (value >= values || !array->value[value].data || node->nin < 2) continue;
    form *f = &forms[value];
    if (!f->tried) f->expr = closed_form(array, value, &f->operand);
    f->tried = true;
    if (f->expr && gives_shape(array, node, k)) inline_form(array, node, k, f);
  }
}

void bb_array_structure(bb_array *array) {
  bb_arena *scratch = bb_scratch(array->program->ctx);
  uint32_t values = array->values;
  form *forms = BB_NEW(scratch, form, values);
  for (uint32_t i = 0; i < array->nodes; i++)
    if (!array->node[i].removed && array->node[i].op == BB_A_ELEMENTWISE)
      inline_forms(array, &array->node[i], forms, values);
  bb_scratch_end(scratch);
}
