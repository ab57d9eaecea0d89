/* im2col.c - windows of few channels are brought together, so that a product sums along memory.
 *
 *     y[b,i,j,o] = sum over c, k, l of x[b,c,i+k,j+l] w[o,c,k,l]
 *     ==>   r[b,i,j,(c,k,l)] = x[b,c,i+k,j+l],   y[b,i,j,o] = sum over s of r[b,i,j,s] w[o,s]
 *
 * A product in blocks sums along one axis. Where none of those that it sums over is long enough - three colours, seven taps -
 * the copy is cheaper than products of a few elements each. Rows of it begin at multiples of 16 bytes, as what copies them asks:
 * taps more, of zeros.
 */
#include "lower.h"

#include <string.h>

/* BLOCK: what the units for products sum at once, of 16 bits; of a shorter sum the rest is nothing. */
enum { BLOCK = 16, LINE = 16, MOST_AXES = 8 };

static uint32_t class_of(bb_ix *ix, int64_t extent) {
  return bb_ix_class(ix, bb_extent_number(ix->program, extent));
}

static uint32_t axis_over(const bb_ix *ix, const bb_ix_operand *in, uint32_t index) {
  for (uint32_t a = 0; a < bb_ix_rank(ix, in->value); a++)
    if (in->index[a] == index) return a;
  return BB_NONE;
}

/* --- longer windows --- */

/* The view that makes `value`, of another operand, one of its axes over another class. */
static uint32_t made_anew(bb_ix *ix, uint32_t value, uint32_t operand, uint32_t axis,
                          uint32_t class, bb_arena *arena) {
  bb_ix_value v = ix->value[value];
  bb_ix_node node = *bb_ix_node_of(ix, value);
  uint32_t *dim = BB_NEW(arena, uint32_t, node.indices);
  for (uint32_t k = 0; k < node.indices; k++) dim[k] = k == axis ? class : node.dim[k];
  uint32_t made = bb_ix_add(ix, node.op, v.name, v.dtype, 1, v.rank, node.indices, dim);
  bb_ix_node *n = bb_ix_node_of(ix, made);
  n->at = node.at, n->start = node.start, n->step = node.step, n->by = node.by;
  n->expr = node.expr;
  bb_ix_use(ix, bb_ix_producer(ix, made), 0, operand, node.in[0].index);
  ix->value[made].once = v.once;
  return made;
}

/* The value with zeros behind an axis, up to `extent` elements; below the views of other axes where it has such. */
static uint32_t with_zeros(bb_ix *ix, uint32_t value, uint32_t axis, int64_t extent,
                           bb_arena *arena) {
  const bb_ix_node *node = bb_ix_node_of(ix, value);
  uint32_t class = class_of(ix, extent);
  bool pads = node->op == BB_IX_PAD;
  if (pads && node->at == axis && bb_expr_is_number(node->expr, 0))
    return made_anew(ix, value, node->in[0].value, axis, class, arena);
  bool other = node->op == BB_IX_WINDOWS ? axis != node->at && axis != node->at + 1
                                         : pads && axis != node->at;
  if (other) {
    uint32_t below = axis_over(ix, &node->in[0], axis);
    uint32_t operand = with_zeros(ix, node->in[0].value, below, extent, arena);
    return made_anew(ix, value, operand, axis, class, arena);
  }
  bb_ix_value v = ix->value[value];
  uint32_t *dim = BB_NEW(arena, uint32_t, v.rank), *index = BB_NEW(arena, uint32_t, v.rank);
  for (uint32_t a = 0; a < v.rank; a++) dim[a] = a == axis ? class : v.dim[a], index[a] = a;
  uint32_t made = bb_ix_add(ix, BB_IX_PAD, v.name, v.dtype, 1, v.rank, v.rank, dim);
  bb_ix_node *n = bb_ix_node_of(ix, made);
  n->at = axis;
  n->expr = bb_expr_const(ix->program, v.dtype, 0);
  bb_ix_use(ix, bb_ix_producer(ix, made), 0, value, index);
  ix->value[made].once = v.once;
  return made;
}

/* Windows with `more` taps along an axis of theirs; BB_NONE: it is none of taps. */
static uint32_t with_taps(bb_ix *ix, uint32_t value, uint32_t axis, int64_t more, bb_arena *arena) {
  const bb_ix_node *node = bb_ix_node_of(ix, value);
  if (node->op != BB_IX_WINDOWS || axis == node->at) return BB_NONE;
  uint32_t class = class_of(ix, bb_ix_length(ix, node->dim[axis]) + more), operand;
  bool taps = axis == node->at + 1;
  uint32_t below = axis_over(ix, &node->in[0], taps ? node->at : axis), from = node->in[0].value;
  if (taps) {
    int64_t extent = bb_ix_length(ix, bb_ix_axis(ix, from, below));
    if (extent < 0 || node->by < 0) return BB_NONE;
    operand = with_zeros(ix, from, below, extent + node->by * more, arena);
  } else {
    operand = with_taps(ix, from, below, more, arena);
  }
  return operand == BB_NONE ? BB_NONE : made_anew(ix, value, operand, axis, class, arena);
}

/* Longer windows see what is really there: zeros, instead, beyond the first `taps`, as an infinity times 0 is none. */
static uint32_t hidden_beyond(bb_ix *ix, uint32_t value, uint32_t axis, int64_t taps,
                              bb_arena *arena) {
  bb_program *p = ix->program;
  bb_ix_value v = ix->value[value];
  uint32_t *index = BB_NEW(arena, uint32_t, v.rank);
  for (uint32_t a = 0; a < v.rank; a++) index[a] = a;
  uint32_t made = bb_ix_add(ix, BB_IX_ELEMENTWISE, v.name, v.dtype, 1, v.rank, v.rank, v.dim);
  const bb_expr *inside = bb_expr_make(p, BB_X_LT, bb_expr_coord(p, BB_COORD_AXIS + axis),
                                       bb_expr_const(p, BB_I64, (double)taps), NULL);
  bb_ix_node_of(ix, made)->expr = bb_expr_make(p, BB_X_SELECT, inside, bb_expr_arg(p, v.dtype, 0),
                                               bb_expr_const(p, v.dtype, 0));
  bb_ix_use(ix, bb_ix_producer(ix, made), 0, value, index);
  ix->value[made].once = v.once;
  return made;
}

/* --- the copy --- */

/* A value stored in the order that place[] says, by axis, its last `sums` axes as one. */
static uint32_t in_rows(bb_ix *ix, const char *name, uint32_t value, const uint32_t *place,
                        uint32_t sums, uint32_t class, bb_arena *arena) {
  bb_ix_value v = ix->value[value];
  uint32_t *dim = BB_NEW(arena, uint32_t, v.rank), kept = v.rank - sums;
  for (uint32_t a = 0; a < v.rank; a++) dim[place[a]] = bb_ix_find(ix, v.dim[a]);
  bb_misc_port from = bb_ix_port(ix, v.dtype, v.rank, dim);
  dim[kept] = class;
  uint32_t made = bb_ix_copy_add(ix, name, from, bb_ix_port(ix, v.dtype, kept + 1, dim));
  bb_ix_use(ix, bb_ix_producer(ix, made), 0, value, place);
  ix->value[made].once = v.once;
  return made;
}

/* --- products --- */

typedef struct product {
  uint32_t node, rank, sums;
  uint32_t windows, weights; /* operands */
  uint32_t *order;           /* sums, as the weights have them */
  int64_t summed;            /* elements of all */
} product;

/* Of 16 bits, which products take by units of their own, that want long sums; others sum a few elements as fast as any. */
static bool is_narrow(bb_dtype dtype) {
  return dtype == BB_F16 || dtype == BB_BF16;
}

/* A product of windows with weights, in which no sum is long enough for a block but all together are. */
static bool is_short(bb_ix *ix, uint32_t at, product *p, bb_arena *arena) {
  const bb_ix_node *node = &ix->node[at];
  if (node->removed || node->op != BB_IX_CONTRACT) return false;
  *p = (product){.node = at, .rank = bb_ix_rank(ix, node->out[0]), .summed = 1};
  p->sums = node->indices - p->rank;
  p->windows = bb_ix_node_of(ix, node->in[0].value)->op == BB_IX_WINDOWS ? 0 : 1;
  p->weights = !p->windows;
  const bb_ix_operand *x = &node->in[p->windows], *w = &node->in[p->weights];
  if (bb_ix_node_of(ix, x->value)->op != BB_IX_WINDOWS || ix->value[x->value].once ||
      !ix->value[w->value].once || p->sums < 2 || bb_ix_rank(ix, x->value) > MOST_AXES ||
      !is_narrow(ix->value[x->value].dtype))
    return false;
  int64_t longest = bb_ix_length(ix, node->dim[bb_ix_product_axes(ix, node).sum]);
  p->order = BB_NEW(arena, uint32_t, p->sums);
  uint32_t n = 0;
  for (uint32_t a = 0; a < bb_ix_rank(ix, w->value); a++) {
    if (w->index[a] < p->rank) continue;
    int64_t extent = bb_ix_length(ix, node->dim[w->index[a]]);
    if (extent < 1 || extent > BLOCK || n == p->sums) return false;
    p->order[n++] = w->index[a];
    p->summed *= extent;
  }
  return n == p->sums && longest < BLOCK && p->summed >= BLOCK;
}

/* Taps that the innermost sum needs more, so that rows are multiples of 16 bytes. */
static int64_t taps_missing(bb_ix *ix, const product *p, bb_dtype dtype) {
  int64_t inner = bb_ix_length(ix, ix->node[p->node].dim[p->order[p->sums - 1]]), more = 0;
  while (p->summed / inner * (inner + more) * (int64_t)bb_dtype_bytes(dtype) % LINE) more++;
  return more;
}

/* Where the axes of an operand are stored: those of the result in its order, then the sums. */
static uint32_t *places(const bb_ix *ix, const product *p, const bb_ix_operand *in,
                        bb_arena *arena) {
  uint32_t rank = bb_ix_rank(ix, in->value), *place = BB_NEW(arena, uint32_t, rank);
  for (uint32_t a = 0; a < rank; a++) {
    uint32_t s = 0;
    for (uint32_t b = 0; in->index[a] < p->rank && b < rank; b++)
      place[a] += in->index[b] < in->index[a];
    if (in->index[a] < p->rank) continue;
    while (p->order[s] != in->index[a]) s++;
    place[a] = rank - p->sums + s;
  }
  return place;
}

static void sum_along_rows(bb_ix *ix, const product *p, bb_arena *arena) {
  bb_ix_node node = ix->node[p->node];
  bb_ix_value result = ix->value[node.out[0]];
  uint32_t value[2] = {node.in[0].value, node.in[1].value}, last = p->order[p->sums - 1];
  int64_t more = taps_missing(ix, p, ix->value[value[0]].dtype), summed = p->summed;
  uint32_t longer = BB_NONE;
  if (more)
    longer =
        with_taps(ix, value[p->windows], axis_over(ix, &node.in[p->windows], last), more, arena);
  if (longer != BB_NONE) {
    int64_t inner = bb_ix_length(ix, node.dim[last]);
    summed = summed / inner * (inner + more);
    value[p->windows] =
        hidden_beyond(ix, longer, axis_over(ix, &node.in[p->windows], last), inner, arena);
    value[p->weights] = with_zeros(ix, value[p->weights], axis_over(ix, &node.in[p->weights], last),
                                   inner + more, arena);
  }
  uint32_t class = class_of(ix, summed);
  uint32_t *dim = BB_NEW(arena, uint32_t, p->rank + 1);
  memcpy(dim, node.dim, p->rank * sizeof *dim);
  dim[p->rank] = class;
  uint32_t made =
      bb_ix_add(ix, BB_IX_CONTRACT, node.name, result.dtype, 2, p->rank, p->rank + 1, dim);
  for (uint32_t i = 0; i < 2; i++) {
    const bb_ix_operand *in = &node.in[i];
    uint32_t rank = bb_ix_rank(ix, in->value), *place = places(ix, p, in, arena);
    uint32_t *index = BB_NEW(arena, uint32_t, rank);
    for (uint32_t a = 0; a < rank; a++)
      if (in->index[a] < p->rank) index[place[a]] = in->index[a];
    index[rank - p->sums] = p->rank;
    uint32_t rows = in_rows(ix, node.name, value[i], place, p->sums, class, arena);
    bb_ix_use(ix, bb_ix_producer(ix, made), i, rows, index);
  }
  bb_ix_replace(ix, node.out[0], made, BB_NONE);
  bb_ix_sweep(ix, p->node);
}

void bb_ix_sum_along_rows(bb_ix *ix) {
  bb_arena *scratch = bb_scratch(ix->program->ctx);
  uint32_t nodes = ix->nodes;
  for (uint32_t i = 0; i < nodes && !ix->program->strict; i++) {
    product p;
    if (is_short(ix, i, &p, scratch)) sum_along_rows(ix, &p, scratch);
  }
  bb_scratch_end(scratch);
}
