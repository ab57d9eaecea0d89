/* neighbour.c - LRN: elements over a root of the squares around them along the channels, as a sum of slices.
 */
#include "convert.h"
#include "formula.h"

#include <string.h>

enum { MOST_SIZE = 64 };

/* v with `before` and `after` channels of zeros. */
static bb_onnx_value *padded(const bb_onnx_node *n, bb_onnx_value *v, int64_t before,
                             int64_t after) {
  const int64_t more[2] = {before, after};
  const bb_extent *shape[BB_ONNX_RANK];
  bb_onnx_value *part[3];
  uint32_t count = 0;
  memcpy(shape, v->shape, v->rank * sizeof *shape);
  for (uint32_t i = 0; i < 2; i++) {
    if (i) part[count++] = v;
    shape[1] = bb_onnx_number(n->m, more[i]);
    if (more[i])
      part[count++] =
          bb_onnx_value_of_form(n->m, bb_expr_const(n->m->program, v->dtype, 0), v->rank, shape);
  }
  return bb_onnx_concat(n, count, part, 1);
}

void bb_onnx_neighbour_norm(bb_onnx_node *n) {
  bb_program *p = n->m->program;
  bb_onnx_value *x = n->in[0], *sum = NULL;
  int64_t size = bb_onnx_int(n, "size", 0), before = (size - 1) / 2;
  bb_onnx_want_float(n, x);
  if (x->rank < 2) bb_onnx_refuse(n, "input 0 has rank %u", x->rank);
  if (size < 1) bb_onnx_refuse(n, "size is %lld", (long long)size);
  int64_t channels = bb_extent_value(x->shape[1]);
  if (channels < 0 || size > MOST_SIZE) {
    bb_onnx_unsupported(n,
                        channels < 0 ? "channels whose number is known only at run time"
                                     : "a size of more than %d",
                        MOST_SIZE);
    return;
  }
  bb_onnx_value *wide = bb_onnx_cast(n, x, bb_onnx_fold_dtype(x->dtype));
  bb_onnx_value *square = bb_onnx_binary_map(n, BB_X_MUL, wide, wide);
  square = padded(n, square, before, size - 1 - before);
  for (int64_t i = 0; i < size; i++) {
    bb_onnx_value *part = bb_onnx_slice(n, square, 1, i, 1, channels);
    sum = sum ? bb_onnx_binary_map(n, BB_X_ADD, sum, part) : part;
  }
  bb_onnx_value *pair[2] = {wide, sum};
  const bb_expr *a = bb_onnx_arg(n, 0, wide), *b = bb_onnx_arg(n, 1, sum);
  double alpha = bb_onnx_float(n, "alpha", 1e-4), beta = bb_onnx_float(n, "beta", 0.75);
  b = f_add(p, f_mul(p, b, f_num(p, b, alpha / (double)size)),
            f_num(p, b, bb_onnx_float(n, "bias", 1)));
  bb_onnx_value *y = bb_onnx_map(n, f_div(p, a, f_pow(p, b, f_num(p, b, beta))), 2, pair);
  n->out[0] = bb_onnx_cast(n, y, x->dtype);
}
