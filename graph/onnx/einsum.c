/* einsum.c - Einsum: the equation read, then contractions of two operands at a time, from the left. */
#include "convert.h"

#include <string.h>

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

static uint32_t operands_with(uint32_t count, const term *in, int64_t label) {
  uint32_t found = 0;
  for (uint32_t i = 0; i < count; i++) found += has(&in[i], label);
  return found;
}

/* Without an arrow: the ellipsis, then the letters that stand once, sorted. */
static term implicit_result(const bb_onnx_node *n, uint32_t count, const term *in) {
  term out = {0};
  for (int64_t k = BB_ONNX_RANK; k-- > 0;)
    if (operands_with(count, in, LABEL_ELLIPSIS + k)) add_label(n, &out, LABEL_ELLIPSIS + k);
  for (int64_t letter = 'A'; letter <= 'z'; letter++)
    if (operands_with(count, in, letter) == 1) add_label(n, &out, letter);
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

/* What the product of the first operands keeps: the labels that the result or a later operand has. */
static term kept(const bb_onnx_node *n, const term *a, const term *b, uint32_t later,
                 const term *in, const term *out) {
  term t = {0};
  const term *side[] = {a, b};
  for (int s = 0; s < 2; s++)
    for (uint32_t i = 0; i < side[s]->rank; i++) {
      int64_t label = side[s]->label[i];
      if (!has(&t, label) && (has(out, label) || operands_with(later, in, label)))
        add_label(n, &t, label);
    }
  return t;
}

/* All operands' terms and the result's. */
static term parse_equation(const bb_onnx_node *n, const char *equation, term *in) {
  const char *p = equation;
  uint32_t hidden = 0;
  for (uint32_t i = 0; i < n->nin; i++) {
    in[i] = parse_term(n, &p, n->in[i]->rank, 0);
    bool more = *p == ',';
    if (more != (i + 1 < n->nin))
      bb_onnx_refuse(n, "the equation is for another number of operands");
    p += more;
    for (uint32_t a = 0; a < in[i].rank; a++)
      if (in[i].label[a] >= LABEL_ELLIPSIS && in[i].label[a] - LABEL_ELLIPSIS >= hidden)
        hidden = (uint32_t)(in[i].label[a] - LABEL_ELLIPSIS) + 1;
  }
  bool arrow = p[0] == '-' && p[1] == '>';
  if (*p && !arrow) bb_onnx_refuse(n, "the equation is not readable at '%s'", p);
  p += arrow ? 2 : 0;
  term out = arrow ? parse_term(n, &p, -1, hidden) : implicit_result(n, n->nin, in);
  if (*p) bb_onnx_refuse(n, "the equation is not readable at '%s'", p);
  return out;
}

void bb_onnx_einsum(bb_onnx_node *n) {
  const char *equation = bb_onnx_text(n, "equation", NULL);
  if (!equation) bb_onnx_refuse(n, "attribute equation is missing");
  term *in = BB_NEW(n->m->arena, term, n->nin);
  term out = parse_equation(n, equation, in);
  for (uint32_t i = 0; i < out.rank; i++)
    if (!operands_with(n->nin, in, out.label[i]))
      bb_onnx_refuse(n, "an axis of the equation's result stands in no operand");
  if (repeats(&out)) bb_onnx_refuse(n, "the equation's result names an axis twice");
  for (uint32_t i = 0; i < n->nin; i++)
    if (repeats(&in[i])) {
      bb_onnx_unsupported(n, "a diagonal (an operand names an axis twice)");
      return;
    }
  if (n->nin == 1) {
    n->out[0] = einsum_one(n, n->in[0], &in[0], &out);
    return;
  }
  bb_onnx_same_dtype(n, n->nin, n->in);
  bb_onnx_value *product = n->in[0];
  term have = in[0];
  for (uint32_t i = 1; i < n->nin; i++) {
    term next = i + 1 < n->nin ? kept(n, &have, &in[i], n->nin - i - 1, in + i + 1, &out) : out;
    product =
        bb_onnx_contract(n, product, n->in[i], have.label, in[i].label, next.rank, next.label);
    have = next;
  }
  n->out[0] = product;
}
