/* nbits.c - products with weights of few bits, packed in bytes, that share a scale block by block (com.microsoft). */
#include "convert.h"
#include "formula.h"

/* The two halves of each byte, the low one first: the last axis twice as long. */
static bb_onnx_value *halves(const bb_onnx_node *n, bb_onnx_value *v) {
  bb_program *p = n->m->program;
  const bb_expr *x = bb_onnx_arg(n, 0, v);
  const bb_extent *shape[BB_ONNX_RANK];
  bb_onnx_value *part[2] = {
      bb_onnx_map(n, bb_expr_make(p, BB_X_BITS, x, f_num(p, x, 15), NULL), 1, &v),
      bb_onnx_map(n, f_div(p, x, f_num(p, x, 16)), 1, &v)};
  for (uint32_t a = 0; a < v->rank; a++) shape[a] = v->shape[a];
  shape[v->rank] = bb_onnx_number(n->m, 1);
  for (int i = 0; i < 2; i++) part[i] = bb_onnx_reshape(n, part[i], v->rank + 1, shape);
  shape[v->rank - 1] = bb_onnx_product(
      n->m, 2, (const bb_extent *[]){v->shape[v->rank - 1], bb_onnx_number(n->m, 2)});
  return bb_onnx_reshape(n, bb_onnx_concat(n, 2, part, v->rank), v->rank, shape);
}

/* v in the given shape; refuses any other number of elements. */
static bb_onnx_value *shaped(const bb_onnx_node *n, bb_onnx_value *v, const char *what,
                             uint32_t rank, const int64_t *length) {
  const bb_extent *shape[BB_ONNX_RANK];
  for (uint32_t a = 0; a < rank; a++) shape[a] = bb_onnx_number(n->m, length[a]);
  if (bb_onnx_count(v->rank, v->shape) != bb_onnx_count(rank, shape))
    bb_onnx_refuse(n, "%s of shape %s do not fit its attributes", what,
                   bb_onnx_shape_text(n->m, v));
  return bb_onnx_reshape(n, v, rank, shape);
}

/* What stands for 0, [N, blocks, 1], in f32. */
static bb_onnx_value *zero_points(const bb_onnx_node *n, int64_t bits, int64_t rows,
                                  int64_t blocks) {
  bb_onnx_value *v = n->nin > 3 ? n->in[3] : NULL;
  if (!v) return bb_onnx_scalar(n->m, BB_F32, bits == 4 ? 8 : 128);
  if (v->stored == BB_U8 && bits == 4) {
    v = halves(n, shaped(n, v, "zero points", 2, (const int64_t[]){rows, (blocks + 1) / 2}));
    if (blocks % 2) v = bb_onnx_slice(n, v, 1, 0, 1, blocks);
  }
  return bb_onnx_cast(n, shaped(n, v, "zero points", 3, (const int64_t[]){rows, blocks, 1}),
                      BB_F32);
}

/* a [..., K] times weights [N, blocks, bytes of a block] transposed, plus a bias [N]. */
void bb_onnx_matmul_bits(bb_onnx_node *n) {
  bb_onnx_value *a = n->in[0], *w = n->in[1], *bias = n->nin > 5 ? n->in[5] : NULL;
  int64_t limit = (int64_t)1 << 30, bits = bb_onnx_int(n, "bits", 4);
  int64_t k = bb_onnx_int(n, "K", 0), rows = bb_onnx_int(n, "N", 0),
          size = bb_onnx_int(n, "block_size", 0);
  bool sane =
      k > 0 && rows > 0 && size > 0 && k < limit && rows < limit && size < limit && size % 2 == 0;
  if (!sane) bb_onnx_refuse(n, "K, N or block_size is out of range");
  if (bits != 4 && bits != 8) {
    bb_onnx_unsupported(n, "weights of %lld bits", (long long)bits);
    return;
  }
  if (n->nin > 4 && n->in[4]) {
    bb_onnx_unsupported(n, "an order of its columns");
    return;
  }
  bb_onnx_want_float(n, a);
  if (w->stored != BB_U8) bb_onnx_refuse(n, "weights of type %s", bb_dtype_name(w->stored));
  int64_t blocks = (k + size - 1) / size;
  w = shaped(n, w, "weights", 3, (const int64_t[]){rows, blocks, size * bits / 8});
  if (bits == 4) w = halves(n, w);
  w = bb_onnx_binary_map(n, BB_X_SUB, bb_onnx_cast(n, w, BB_F32),
                         zero_points(n, bits, rows, blocks));
  bb_onnx_value *scale = shaped(n, n->in[2], "scales", 3, (const int64_t[]){rows, blocks, 1});
  w = bb_onnx_binary_map(n, BB_X_MUL, w, bb_onnx_cast(n, scale, BB_F32));
  w = shaped(n, w, "weights", 2, (const int64_t[]){rows, blocks * size});
  if (blocks * size != k) w = bb_onnx_slice(n, w, 1, 0, 1, k);
  bb_onnx_value *y = bb_onnx_product_of(n, a, false, bb_onnx_cast(n, w, a->dtype), true);
  n->out[0] = bias ? bb_onnx_binary_map(n, BB_X_ADD, y, bias) : y;
}
