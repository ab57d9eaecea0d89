/* pads.c - a join of a value with what is one number everywhere is the value, padded.
 *
 *     join(0, x, 0)   ==>   x[j - 1], and 0 where that is outside of x
 *
 * What is padded is read where it lies: nothing of it has to be brought together, nor the numbers be anywhere.
 */
#include "lower.h"

#include "../../runtime/interp/interp.h"

#include <math.h>
#include <string.h>

/* The number that every element of a constant is, bit for bit. */
static bool is_alike(const bb_array_value *v, double *number) {
  size_t size = bb_dtype_bytes(v->dtype);
  if (!v->data || v->bytes < size) return false;
  for (size_t at = size; at < v->bytes; at += size)
    if (memcmp(v->data, (const char *)v->data + at, size) != 0) return false;
  bb_interp_load(v->dtype, v->data, 1, number);
  return true;
}

/* The number that every element of a value is; false: it is not known to be one, or no double holds it. */
static bool is_number(const bb_ix *ix, uint32_t value, double *number) {
  const bb_ix_node *node = bb_ix_node_of(ix, value);
  if (node->op == BB_IX_ELEMENTWISE && node->nin == 1 && node->expr->op == BB_X_ARG)
    return is_number(ix, node->in[0].value, number);
  bool constant = node->op == BB_IX_ELEMENTWISE && node->nin == 0 && node->expr->op == BB_X_CONST;
  if (constant) *number = node->expr->number;
  if (!constant && (node->op != BB_IX_SOURCE || !is_alike(&ix->array->value[node->tensor], number)))
    return false;
  return ix->value[value].dtype != BB_I64 || fabs(*number) < 0x1p53;
}

/* The only operand of a join that is something else than one number, the same in all the others; BB_NONE: there is none such. */
static uint32_t padded_of(bb_ix *ix, const bb_ix_node *join, double *fill) {
  uint32_t found = BB_NONE;
  bool any = false;
  for (uint32_t i = 0; i < join->nin; i++) {
    double number;
    if (!is_number(ix, join->in[i].value, &number)) {
      if (found != BB_NONE || !bb_ix_follows(ix, &join->in[i], join->at)) return BB_NONE;
      found = i;
      continue;
    }
    if (any && (number != *fill || signbit(number) != signbit(*fill))) return BB_NONE;
    *fill = number;
    any = true;
  }
  return any ? found : BB_NONE;
}

static int64_t length_of(bb_ix *ix, const bb_ix_node *join, uint32_t slot) {
  const bb_ix_operand *in = &join->in[slot];
  for (uint32_t a = 0; a < bb_ix_rank(ix, in->value); a++)
    if (in->index[a] == join->at)
      return bb_extent_value(bb_ix_extent(ix, bb_ix_axis(ix, in->value, a)));
  return 1;
}

static void pad(bb_ix *ix, uint32_t at, uint32_t slot, double fill) {
  bb_ix_node join = ix->node[at];
  bb_ix_value v = ix->value[join.out[0]];
  int64_t before = 0;
  for (uint32_t i = 0; i < slot; i++) {
    int64_t length = length_of(ix, &join, i);
    if (length < 0) return;
    before += length;
  }
  uint32_t with = bb_ix_add(ix, BB_IX_PAD, join.name, v.dtype, 1, v.rank, join.indices, join.dim);
  bb_ix_node *made = bb_ix_node_of(ix, with);
  made->at = join.at;
  made->start = before;
  made->expr = bb_expr_const(ix->program, v.dtype, fill);
  bb_ix_use(ix, bb_ix_producer(ix, with), 0, join.in[slot].value, join.in[slot].index);
  ix->value[with].once = v.once;
  bb_ix_replace(ix, join.out[0], with, BB_NONE);
  bb_ix_sweep(ix, at);
}

void bb_ix_find_pads(bb_ix *ix) {
  uint32_t nodes = ix->nodes;
  for (uint32_t i = 0; i < nodes; i++) {
    double fill = 0;
    if (ix->node[i].removed || ix->node[i].op != BB_IX_JOIN) continue;
    uint32_t slot = padded_of(ix, &ix->node[i], &fill);
    if (slot != BB_NONE) pad(ix, i, slot, fill);
  }
}
