/* product.c - operators that are contractions: MatMul, Gemm, Einsum. */
#include "convert.h"
#include "formula.h"

#include <string.h>

/* Labels of a contraction: batch axes count from the last one so that operands align. */
enum { LABEL_M = 100, LABEL_N, LABEL_K };

/* labels of [..., row, col], or of a vector. */
static void label_matrix(int64_t *labels, uint32_t rank, int64_t row, int64_t col) {
  for (uint32_t a = 0; a + 2 < rank; a++) labels[a] = rank - 3 - a;
  if (rank >= 2) labels[rank - 2] = row;
  if (rank >= 1) labels[rank - 1] = col;
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
  if (bb_onnx_int(n, "transBatchA", 0) || bb_onnx_int(n, "transBatchB", 0)) {
    bb_onnx_unsupported(n, "transBatchA and transBatchB");
    return;
  }
  bb_onnx_value *product = bb_onnx_product_of(n, n->in[0], bb_onnx_int(n, "transA", 0), n->in[1],
                                              bb_onnx_int(n, "transB", 0));
  n->out[0] = scaled(n, product, bb_onnx_float(n, "alpha", 1));
}

void bb_onnx_gemm(bb_onnx_node *n) {
  bb_onnx_value *a = n->in[0], *b = n->in[1], *c = n->nin > 2 ? n->in[2] : NULL;
  if (a->rank != 2 || b->rank != 2) bb_onnx_refuse(n, "an operand is not a matrix");
  bb_onnx_value *y =
      bb_onnx_product_of(n, a, bb_onnx_int(n, "transA", 0), b, bb_onnx_int(n, "transB", 0));
  y = scaled(n, y, bb_onnx_float(n, "alpha", 1));
  if (c) {
    bb_onnx_same_dtype(n, 2, (bb_onnx_value *[]){y, c});
    const bb_extent *const *shape = y->shape;
    y = bb_onnx_binary_map(n, BB_X_ADD, y, scaled(n, c, bb_onnx_float(n, "beta", 1)));
    if (y->rank != 2 || y->shape[0] != shape[0] || y->shape[1] != shape[1])
      bb_onnx_refuse(n, "input 2 does not broadcast to the product");
  }
  n->out[0] = y;
}

/* --- Einsum --- */

/* The labels of one side's term, spaces removed; an ellipsis is expanded by rank. */
typedef struct term {
  uint32_t rank;
  int64_t label[BB_ONNX_RANK];
  bool ellipsis;
} term;

enum { LABEL_ELLIPSIS = 1000 }; /* + place counted from the last axis of the ellipsis */

static void add_label(const bb_onnx_node *n, term *t, int64_t label) {
  if (t->rank == BB_ONNX_RANK) bb_onnx_refuse(n, "an operand of the equation has too many axes");
  t->label[t->rank++] = label;
}

/* Parses one term up to a comma, an arrow or the end; `rank` is its operand's, or -1: the ellipsis
 * has `hidden` axes. */
static term parse_term(const bb_onnx_node *n, const char **at, int64_t rank, uint32_t hidden) {
  term t = {0};
  const char *p = *at;
  uint32_t letters = 0;
  for (const char *q = p; *q && *q != ',' && *q != '-'; q++)
    letters += (*q >= 'a' && *q <= 'z') || (*q >= 'A' && *q <= 'Z');
  if (rank >= 0 && rank < (int64_t)letters)
    bb_onnx_refuse(n, "the equation has more axes than an operand");
  if (rank >= 0) hidden = (uint32_t)rank - letters;
  for (; *p && *p != ',' && *p != '-'; p++) {
    if (*p == ' ') continue;
    bool letter = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z');
    if (letter) {
      add_label(n, &t, *p);
    } else if (strncmp(p, "...", 3) == 0 && !t.ellipsis) {
      t.ellipsis = true;
      for (uint32_t k = hidden; k-- > 0;) add_label(n, &t, LABEL_ELLIPSIS + k);
      p += 2;
    } else {
      bb_onnx_refuse(n, "the equation is not readable at '%s'", p);
    }
  }
  if (rank >= 0 && t.rank != (uint64_t)rank)
    bb_onnx_refuse(n, "the equation has %u axes for an operand of rank %lld", t.rank,
                   (long long)rank);
  *at = p;
  return t;
}

static bool has(const term *t, int64_t label) {
  for (uint32_t i = 0; i < t->rank; i++)
    if (t->label[i] == label) return true;
  return false;
}

/* Without an arrow: the ellipsis, then the letters that stand once, sorted. */
static term implicit_result(const bb_onnx_node *n, uint32_t count, const term *in) {
  term out = {0};
  for (int64_t k = BB_ONNX_RANK; k-- > 0;) {
    bool stands = has(&in[0], LABEL_ELLIPSIS + k) || (count > 1 && has(&in[1], LABEL_ELLIPSIS + k));
    if (stands) add_label(n, &out, LABEL_ELLIPSIS + k);
  }
  for (int64_t letter = 'A'; letter <= 'z'; letter++) {
    bool once = has(&in[0], letter) != (count > 1 && has(&in[1], letter));
    if (once) add_label(n, &out, letter);
  }
  return out;
}

static bool repeats(const term *t) {
  for (uint32_t i = 0; i < t->rank; i++)
    for (uint32_t k = 0; k < i; k++)
      if (t->label[i] == t->label[k]) return true;
  return false;
}

/* One operand: sums and a transpose. */
static bb_onnx_value *einsum_one(const bb_onnx_node *n, bb_onnx_value *v, const term *in,
                                 const term *out) {
  int64_t axes[BB_ONNX_RANK], perm[BB_ONNX_RANK];
  term left = {0};
  uint32_t count = 0;
  for (uint32_t a = 0; a < in->rank; a++) {
    if (has(out, in->label[a]))
      add_label(n, &left, in->label[a]);
    else
      axes[count++] = a;
  }
  if (count) v = bb_onnx_reduce(n, BB_MONOID_SUM, v, count, axes, false);
  for (uint32_t i = 0; i < out->rank; i++)
    for (uint32_t a = 0; a < left.rank; a++)
      if (left.label[a] == out->label[i]) perm[i] = a;
  return bb_onnx_transpose(n, v, perm);
}

void bb_onnx_einsum(bb_onnx_node *n) {
  const char *equation = bb_onnx_text(n, "equation", NULL), *p = equation;
  term in[2];
  if (!equation) bb_onnx_refuse(n, "attribute equation is missing");
  for (uint32_t i = 0; i < n->nin; i++) {
    in[i] = parse_term(n, &p, n->in[i]->rank, 0);
    bool more = *p == ',';
    if (more != (i + 1 < n->nin))
      bb_onnx_refuse(n, "the equation is for another number of operands");
    p += more;
  }
  uint32_t hidden = 0;
  for (uint32_t i = 0; i < n->nin; i++)
    for (uint32_t a = 0; a < in[i].rank; a++)
      if (in[i].label[a] >= LABEL_ELLIPSIS && in[i].label[a] - LABEL_ELLIPSIS >= hidden)
        hidden = (uint32_t)(in[i].label[a] - LABEL_ELLIPSIS) + 1;
  bool arrow = p[0] == '-' && p[1] == '>';
  if (*p && !arrow) bb_onnx_refuse(n, "the equation is not readable at '%s'", p);
  p += arrow ? 2 : 0;
  term out = arrow ? parse_term(n, &p, -1, hidden) : implicit_result(n, n->nin, in);
  if (*p) bb_onnx_refuse(n, "the equation is not readable at '%s'", p);
  for (uint32_t i = 0; i < out.rank; i++)
    if (!has(&in[0], out.label[i]) && (n->nin < 2 || !has(&in[1], out.label[i])))
      bb_onnx_refuse(n, "an axis of the equation's result stands in no operand");
  if (repeats(&out)) bb_onnx_refuse(n, "the equation's result names an axis twice");
  if (repeats(&in[0]) || (n->nin > 1 && repeats(&in[1]))) {
    bb_onnx_unsupported(n, "a diagonal (an operand names an axis twice)");
    return;
  }
  if (n->nin == 1) {
    n->out[0] = einsum_one(n, n->in[0], &in[0], &out);
    return;
  }
  bb_onnx_same_dtype(n, 2, n->in);
  n->out[0] =
      bb_onnx_contract(n, n->in[0], n->in[1], in[0].label, in[1].label, out.rank, out.label);
}
