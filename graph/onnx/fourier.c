/* fourier.c - DFT and STFT as products with the matrix of a transform, whose length has to be known as the model is read.
 *
 * A tensor of complex numbers has a last axis of their two parts; both are columns of one matrix, so that a transform is one
 * product that fuses like any other.
 */
#include "convert.h"
#include "formula.h"

#include <math.h>
#include <string.h>

enum { MOST_ELEMENTS = 1 << 24 }; /* of a matrix */

typedef struct transform {
  bb_onnx_node *n;
  int64_t length;        /* of the transform */
  int64_t rows, columns; /* of the operand that count, and of the result */
  int64_t parts, made;   /* 1: real numbers, 2: complex ones; of the operand and of the result */
  bool inverse, onesided;
} transform;

/* What part `from` of element `row` adds to part `to` of element `column`. */
static double weight(const transform *t, int64_t row, int64_t from, int64_t column, int64_t to) {
  double angle = 2 * acos(-1) * (double)(row * column % t->length) / (double)t->length;
  double scale = t->inverse ? 1.0 / (double)t->length : 1, turn = t->inverse ? 1 : -1;
  /* half a spectrum stands for the other half, too, but for what has no other side */
  if (t->inverse && t->onesided && row > 0 && 2 * row < t->length) scale *= 2;
  double value = from == to ? cos(angle) : turn * sin(angle) * (from ? -1 : 1);
  return scale * value;
}

/* Transforms that are alike, as in each step of a loop, have one matrix. */
typedef struct bb_onnx_matrix {
  transform of;
  bb_dtype dtype;
  bb_onnx_value *value;
  struct bb_onnx_matrix *next;
} bb_onnx_matrix;

static bool alike(const transform *a, const transform *b) {
  return a->length == b->length && a->rows == b->rows && a->columns == b->columns &&
         a->parts == b->parts && a->made == b->made && a->inverse == b->inverse &&
         a->onesided == b->onesided;
}

static bb_onnx_value *keep(const transform *t, bb_dtype dtype, bb_onnx_value *value) {
  bb_onnx *m = t->n->m;
  bb_onnx_matrix *made = BB_NEW(m->arena, bb_onnx_matrix, 1);
  *made = (bb_onnx_matrix){*t, dtype, value, m->matrices};
  m->matrices = made;
  return value;
}

/* [rows * parts, columns * made]; NULL: it is too large, which was reported. */
static bb_onnx_value *matrix(const transform *t, bb_dtype dtype) {
  bb_onnx *m = t->n->m;
  int64_t shape[2] = {t->rows * t->parts, t->columns * t->made};
  for (const bb_onnx_matrix *k = m->matrices; k; k = k->next)
    if (k->dtype == dtype && alike(&k->of, t)) return k->value;
  if (shape[0] > MOST_ELEMENTS / shape[1]) {
    bb_onnx_unsupported(t->n, "a transform of %lld elements", (long long)t->length);
    return NULL;
  }
  size_t count = (size_t)(shape[0] * shape[1]),
         size = dtype == BB_F64 ? sizeof(double) : sizeof(float), i = 0;
  void *data = bb_arena_alloc(m->program->arena, count * size);
  for (int64_t r = 0; r < shape[0]; r++)
    for (int64_t c = 0; c < shape[1]; c++, i++) {
      double value = weight(t, r / t->parts, r % t->parts, c / t->made, c % t->made);
      if (dtype == BB_F64)
        ((double *)data)[i] = value;
      else
        ((float *)data)[i] = (float)value;
    }
  uint32_t id = bb_array_constant(m->array, t->n->name, dtype, 2, shape, data, count * size);
  return keep(t, dtype, bb_onnx_value_of_id(m, id));
}

/* The sizes of a matrix for an operand of `extent` elements of so many parts. */
static void set_sizes(transform *t, int64_t extent, int64_t parts) {
  int64_t half = t->length / 2 + 1;
  bool to_real = t->inverse && t->onesided;
  int64_t used = to_real ? half : t->length;
  t->parts = parts;
  t->made = to_real ? 1 : 2;
  t->rows = extent < used ? extent : used;
  t->columns = t->onesided && !t->inverse ? half : t->length;
}

/* x [..., rows or more, parts] transformed along its last axis but one: [..., columns, made]; NULL: reported. */
static bb_onnx_value *transformed(const transform *t, bb_onnx_value *x) {
  bb_onnx_node *n = t->n;
  bb_onnx *m = n->m;
  const bb_extent *shape[BB_ONNX_RANK];
  uint32_t rank = x->rank;
  bb_dtype dtype = x->dtype, wide = bb_onnx_fold_dtype(dtype);
  bb_onnx_value *w = matrix(t, wide);
  if (!w) return NULL;
  x = bb_onnx_cast(n, bb_onnx_part(n, x, rank - 2, 0, t->rows, 1), wide);
  memcpy(shape, x->shape, rank * sizeof *shape);
  shape[rank - 2] = bb_onnx_number(m, t->rows * t->parts);
  bb_onnx_value *y = bb_onnx_product_of(n, bb_onnx_reshape(n, x, rank - 1, shape), false, w, false);
  shape[rank - 2] = bb_onnx_number(m, t->columns);
  shape[rank - 1] = bb_onnx_number(m, t->made);
  return bb_onnx_cast(n, bb_onnx_reshape(n, y, rank, shape), dtype);
}

/* v with its last axis but one put where `axis` is, and that in its place. */
static bb_onnx_value *exchanged(const bb_onnx_node *n, bb_onnx_value *v, uint32_t axis) {
  int64_t perm[BB_ONNX_RANK];
  for (uint32_t a = 0; a < v->rank; a++) perm[a] = a;
  perm[axis] = v->rank - 2;
  perm[v->rank - 2] = axis;
  return bb_onnx_transpose(n, v, perm);
}

/* How many parts the numbers of a tensor have. */
static int64_t parts_of(const bb_onnx_node *n, const bb_onnx_value *x) {
  int64_t parts = x->rank < 2 ? 0 : bb_extent_value(x->shape[x->rank - 1]);
  if (parts != 1 && parts != 2)
    bb_onnx_refuse(n, "input 0 has shape %s, whose last axis is not of 1 or 2 parts",
                   bb_onnx_shape_text(n->m, x));
  return parts;
}

/* An operand that is one number, or (absent) `otherwise`; false: only a run tells, which is reported. */
static bool known_number(bb_onnx_node *n, uint32_t i, const char *what, int64_t otherwise,
                         int64_t *number) {
  *number = otherwise;
  if (i >= n->nin || !n->in[i] || bb_onnx_known_int(n->in[i], number)) return true;
  bb_onnx_unsupported(n, "%s that is computed at run time", what);
  return false;
}

/* detail: whether the axis is an operand. */
void bb_onnx_fourier(bb_onnx_node *n) {
  bb_onnx_value *x = n->in[0];
  transform t = {.n = n};
  int64_t at, length;
  bb_onnx_want_float(n, x);
  int64_t parts = parts_of(n, x);
  t.inverse = bb_onnx_int(n, "inverse", 0) != 0;
  t.onesided = bb_onnx_int(n, "onesided", 0) != 0;
  if (!known_number(n, 2, "an axis", n->row->detail ? -2 : bb_onnx_int(n, "axis", 1), &at)) return;
  uint32_t axis = bb_onnx_axis(n, at, x->rank);
  if (axis + 1 == x->rank) bb_onnx_refuse(n, "axis %u is that of the parts", axis);
  int64_t extent = bb_extent_value(x->shape[axis]);
  if (extent < 0) {
    bb_onnx_unsupported(n, "an axis whose length is known only at run time");
    return;
  }
  if (t.onesided && !t.inverse && parts == 2)
    bb_onnx_refuse(n, "half a spectrum of complex numbers");
  if (!known_number(n, 1, "a length", t.inverse && t.onesided ? 2 * (extent - 1) : extent, &length))
    return;
  if (length < 1 || length > MOST_ELEMENTS)
    bb_onnx_refuse(n, "the length is %lld", (long long)length);
  t.length = length;
  set_sizes(&t, extent, parts);
  bb_onnx_value *y = transformed(&t, exchanged(n, x, axis));
  if (y) n->out[0] = exchanged(n, y, axis);
}

/* [B, frames, width, parts]: parts of a signal [B, L, parts] that begin `step` apart. */
static bb_onnx_value *frames_of(bb_onnx_node *n, bb_onnx_value *x, int64_t width, int64_t step) {
  bb_onnx *m = n->m;
  bb_program *p = m->program;
  const bb_expr *length = bb_onnx_extent_meaning(m, x->shape[1]);
  const bb_expr *over = bb_onnx_tidy_make(m, BB_X_SUB, length, f_num(p, length, (double)width));
  const bb_expr *steps = bb_onnx_tidy_make(m, BB_X_DIV, over, f_num(p, over, (double)step));
  if (over->op == BB_X_CONST && over->number < 0)
    bb_onnx_refuse(n, "a frame of %lld elements of a signal %s", (long long)width,
                   bb_onnx_shape_text(m, x));
  const bb_extent *shape[2] = {
      bb_onnx_expr_extent(m, bb_onnx_tidy_make(m, BB_X_ADD, steps, f_num(p, steps, 1))),
      bb_onnx_number(m, width)};
  const bb_onnx_value frame = {.dtype = BB_I64, .rank = 2, .shape = shape};
  const bb_expr *first =
      f_mul(p, bb_onnx_index_along(m, &frame, 0), f_num(p, length, (double)step));
  const bb_expr *at = f_add(p, first, bb_onnx_index_along(m, &frame, 1));
  return bb_onnx_gather_along(n, x, 1, bb_onnx_value_of_form(m, at, 2, shape));
}

/* Operands: a signal [B, L, parts] or [B, L], how far frames are apart, a window (absent: 1), their length (absent: the
 * window's). */
void bb_onnx_short_time(bb_onnx_node *n) {
  bb_onnx *m = n->m;
  bb_onnx_value *x = n->in[0], *window = n->nin > 2 ? n->in[2] : NULL;
  transform t = {.n = n};
  int64_t step, width, own = window && window->rank == 1 ? bb_extent_value(window->shape[0]) : -1;
  bb_onnx_want_float(n, x);
  if (x->rank == 2)
    x = bb_onnx_reshape(n, x, 3,
                        (const bb_extent *[]){x->shape[0], x->shape[1], bb_onnx_number(m, 1)});
  if (x->rank != 3) bb_onnx_refuse(n, "a signal of shape %s", bb_onnx_shape_text(m, x));
  int64_t parts = parts_of(n, x);
  if (!known_number(n, 1, "a step", 0, &step) || !known_number(n, 3, "a length", own, &width))
    return;
  if (window) bb_onnx_same_dtype(n, 2, (bb_onnx_value *[]){x, window});
  if (step < 1 || width < 1 || width > MOST_ELEMENTS || (window && own != width))
    bb_onnx_refuse(n, "frames of %lld elements, %lld apart, a window of %lld", (long long)width,
                   (long long)step, (long long)own);
  t.onesided = bb_onnx_int(n, "onesided", 1) != 0;
  if (t.onesided && parts == 2) bb_onnx_refuse(n, "half a spectrum of complex numbers");
  t.length = width;
  set_sizes(&t, width, parts);
  bb_onnx_value *frame = frames_of(n, x, width, step);
  if (window) {
    const bb_extent *shape[2] = {window->shape[0], bb_onnx_number(m, 1)};
    frame = bb_onnx_binary_map(n, BB_X_MUL, frame, bb_onnx_reshape(n, window, 2, shape));
  }
  n->out[0] = transformed(&t, frame);
}
