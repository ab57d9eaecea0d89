/* product.c - operators that are products of matrices: MatMul, Gemm, and FusedMatMul of com.microsoft, with
 * transpositions and a factor of its own.
 */
#include "convert.h"
#include "formula.h"

/* Labels of a contraction: batch axes count from the last one so that operands align. */
enum { LABEL_M = 100, LABEL_N, LABEL_K };

/* labels of [..., row, col], or of a vector. */
static void label_matrix(int64_t *labels, uint32_t rank, int64_t row, int64_t col) {
  for (uint32_t a = 0; a + 2 < rank; a++) labels[a] = rank - 3 - a;
  if (rank >= 2) labels[rank - 2] = row;
  if (rank >= 1) labels[rank - 1] = col;
}

/* Axis 0 behind the others but the last: [M, ..., K] to [..., M, K]. */
static bb_onnx_value *batch_last(const bb_onnx_node *n, bb_onnx_value *v) {
  int64_t perm[BB_ONNX_RANK];
  if (v->rank < 3) return v;
  for (uint32_t a = 0; a + 2 < v->rank; a++) perm[a] = a + 1;
  perm[v->rank - 2] = 0;
  perm[v->rank - 1] = v->rank - 1;
  return bb_onnx_transpose(n, v, perm);
}

bb_onnx_value *bb_onnx_product_of(const bb_onnx_node *n, bb_onnx_value *a, bool transpose_a,
                                  bb_onnx_value *b, bool transpose_b) {
  int64_t la[BB_ONNX_RANK], lb[BB_ONNX_RANK], lo[BB_ONNX_RANK];
  bb_onnx_same_dtype(n, 2, (bb_onnx_value *[]){a, b});
  if (!a->rank || !b->rank) bb_onnx_refuse(n, "an operand is a scalar");
  if (a->dtype == BB_BOOL) bb_onnx_refuse(n, "an operand is bool");
  transpose_a &= a->rank > 1;
  transpose_b &= b->rank > 1;
  label_matrix(la, a->rank, transpose_a ? LABEL_K : LABEL_M, transpose_a ? LABEL_M : LABEL_K);
  label_matrix(lb, b->rank, transpose_b ? LABEL_N : LABEL_K, transpose_b ? LABEL_K : LABEL_N);
  if (b->rank == 1) lb[0] = LABEL_K;
  uint32_t batch = (a->rank > b->rank ? a->rank : b->rank), rank = 0;
  for (uint32_t i = 2; i < batch; i++) lo[rank++] = batch - 1 - i;
  if (a->rank > 1) lo[rank++] = LABEL_M;
  if (b->rank > 1) lo[rank++] = LABEL_N;
  return bb_onnx_contract(n, a, b, la, lb, rank, lo);
}

static bb_onnx_value *scaled(const bb_onnx_node *n, bb_onnx_value *v, double factor) {
  bb_program *p = n->m->program;
  const bb_expr *x = bb_onnx_arg(n, 0, v);
  return factor == 1 ? v : bb_onnx_map(n, f_mul(p, x, f_num(p, x, factor)), 1, &v);
}

void bb_onnx_matmul(bb_onnx_node *n) {
  n->out[0] = bb_onnx_product_of(n, n->in[0], false, n->in[1], false);
}

void bb_onnx_fused_matmul(bb_onnx_node *n) {
  bb_onnx_value *a = n->in[0], *b = n->in[1];
  if (bb_onnx_int(n, "transBatchA", 0)) a = batch_last(n, a);
  if (bb_onnx_int(n, "transBatchB", 0)) b = batch_last(n, b);
  bb_onnx_value *product =
      bb_onnx_product_of(n, a, bb_onnx_int(n, "transA", 0), b, bb_onnx_int(n, "transB", 0));
  n->out[0] = scaled(n, product, bb_onnx_float(n, "alpha", 1));
}

void bb_onnx_gemm(bb_onnx_node *n) {
  bb_onnx_value *a = n->in[0], *b = n->in[1], *c = n->nin > 2 ? n->in[2] : NULL;
  if (a->rank != 2 || b->rank != 2) bb_onnx_refuse(n, "an operand is not a matrix");
  bb_onnx_value *y =
      bb_onnx_product_of(n, a, bb_onnx_int(n, "transA", 0), b, bb_onnx_int(n, "transB", 0));
  y = scaled(n, y, bb_onnx_float(n, "alpha", 1));
  double beta = bb_onnx_float(n, "beta", 1);
  if (c && beta != 0) { /* what 0 would multiply is left out, whatever it is */
    bb_onnx_same_dtype(n, 2, (bb_onnx_value *[]){y, c});
    const bb_extent *const *shape = y->shape;
    y = bb_onnx_binary_map(n, BB_X_ADD, y, scaled(n, c, beta));
    if (y->rank != 2 || y->shape[0] != shape[0] || y->shape[1] != shape[1])
      bb_onnx_refuse(n, "input 2 does not broadcast to the product");
  }
  n->out[0] = y;
}
