/* grid.c - window functions and sampling grids: functions of coordinates.
 */
#include "convert.h"
#include "formula.h"

#include <math.h>

/* a0 - a1 cos(2 pi i / N) + a2 cos(4 pi i / N), N one less where the window is symmetric. */
void bb_onnx_window_function(bb_onnx_node *n) {
  static const double weight[][3] = {
      {0.5, 0.5, 0}, {25.0 / 46, 21.0 / 46, 0}, {0.42, 0.5, 0.08}}; /* by detail */
  const double *a = weight[n->row->detail];
  bb_program *p = n->m->program;
  bb_dtype dtype;
  const bb_expr *size = n->in[0]->rank ? NULL : bb_onnx_scalar_expr(n->in[0]);
  const bb_extent *extent = size ? bb_onnx_expr_extent(n->m, size) : NULL;
  if (!bb_onnx_dtype((int32_t)bb_onnx_int(n, "output_datatype", 1), &dtype))
    bb_onnx_refuse(n, "output_datatype is no type that is read");
  if (!extent) {
    bb_onnx_unsupported(n, "a length that is computed at run time");
    return;
  }
  bb_onnx_value *window = bb_onnx_value_new(n->m, BB_F32, 1, &extent);
  const bb_expr *place = bb_expr_cast(p, BB_F32, bb_onnx_index_along(n->m, window, 0));
  const bb_expr *length = bb_expr_cast(p, BB_F32, bb_onnx_extent_expr(n->m, extent));
  if (!bb_onnx_int(n, "periodic", 1)) length = f_sub(p, length, f_num(p, length, 1));
  const bb_expr *turn = f_div(p, f_mul(p, place, f_num(p, place, 2 * acos(-1))), length);
  const bb_expr *once = bb_expr_make(p, BB_X_COS, turn, NULL, NULL);
  const bb_expr *twice = bb_expr_make(p, BB_X_COS, f_mul(p, turn, f_num(p, turn, 2)), NULL, NULL);
  const bb_expr *y = f_sub(p, f_num(p, turn, a[0]), f_mul(p, once, f_num(p, turn, a[1])));
  if (a[2] != 0) y = f_add(p, y, f_mul(p, twice, f_num(p, turn, a[2])));
  n->out[0] = bb_onnx_value_of_form(n->m, bb_expr_cast(p, dtype, y), 1, &extent);
}

/* From -1 to 1 along an axis: at the centres of the outer elements, or at their outer edges. */
static const bb_expr *position(const bb_onnx_node *n, const bb_onnx_value *grid, uint32_t axis) {
  bb_program *p = n->m->program;
  const bb_expr *at = bb_expr_cast(p, grid->dtype, bb_onnx_index_along(n->m, grid, axis));
  const bb_expr *length =
      bb_expr_cast(p, grid->dtype, bb_onnx_extent_expr(n->m, grid->shape[axis]));
  const bb_expr *one = f_num(p, at, 1), *two = f_num(p, at, 2);
  if (bb_onnx_int(n, "align_corners", 0)) {
    if (bb_onnx_is_one(grid->shape[axis])) return f_neg(p, one);
    return f_sub(p, f_div(p, f_mul(p, at, two), f_sub(p, length, one)), one);
  }
  return f_sub(p, f_div(p, f_add(p, f_mul(p, at, two), one), length), one);
}

/* Each place of an image of the given size, [N, C, (D,) H, W], times an affine matrix: the last axis of the result
 * has as many coordinates as the image axes, the innermost first. */
void bb_onnx_affine_grid(bb_onnx_node *n) {
  bb_program *p = n->m->program;
  bb_onnx_value *theta = n->in[0], *size = n->in[1];
  bb_onnx_want_float(n, theta);
  if (!size->element) {
    bb_onnx_unsupported(n, "a size that is computed at run time");
    return;
  }
  uint32_t axes = size->elements > 2 ? size->elements - 2 : 0, rank = axes + 1;
  if (theta->rank != 3 || axes < 2 || axes > 3 || !bb_onnx_is_number(theta->shape[1], axes) ||
      !bb_onnx_is_number(theta->shape[2], axes + 1))
    bb_onnx_refuse(n, "theta of shape %s for a size of %u axes", bb_onnx_shape_text(n->m, theta),
                   size->elements);
  const bb_extent *shape[BB_ONNX_RANK], *one[BB_ONNX_RANK];
  shape[0] = one[0] = theta->shape[0];
  for (uint32_t i = 0; i < axes; i++) {
    shape[i + 1] = bb_onnx_expr_extent(n->m, size->element[i + 2]);
    one[i + 1] = bb_onnx_number(n->m, 1);
    if (!shape[i + 1]) bb_onnx_refuse(n, "axis %u of the size is negative", i + 2);
  }
  one[rank] = bb_onnx_number(n->m, 1);
  bb_onnx_value *part[3], *grid = bb_onnx_value_new(n->m, theta->dtype, rank, shape);
  for (uint32_t k = 0; k < axes; k++) {
    bb_onnx_value *row = bb_onnx_slice(n, theta, 1, k, 1, 1), *operand[5];
    for (uint32_t i = 0; i <= axes; i++)
      operand[i] = bb_onnx_reshape(n, bb_onnx_slice(n, row, 2, i, 1, 1), rank, one);
    const bb_expr *sum = bb_onnx_arg(n, axes, operand[axes]);
    for (uint32_t i = 0; i < axes; i++) {
      bb_onnx_value *place = bb_onnx_value_of_form(n->m, position(n, grid, axes - i), rank, shape);
      bb_onnx_value *pair[2] = {operand[i], place};
      operand[i] =
          bb_onnx_map(n, f_mul(p, bb_onnx_arg(n, 0, pair[0]), bb_onnx_arg(n, 1, pair[1])), 2, pair);
      sum = f_add(p, sum, bb_onnx_arg(n, i, operand[i]));
    }
    part[k] = bb_onnx_map(n, sum, axes + 1, operand);
    shape[rank] = one[rank];
    part[k] = bb_onnx_reshape(n, part[k], rank + 1, shape);
  }
  n->out[0] = bb_onnx_concat(n, axes, part, rank);
}
