/* heads.c - Attention, MultiHeadAttention and GroupQueryAttention of com.microsoft: their ways of
 * packing queries, keys and values, their biases, masks, caches and rotary embedding; the rest is
 * attention.c.
 */
#include "convert.h"
#include "formula.h"

#include <math.h>
#include <string.h>

static double scale_of(const bb_onnx_node *n, const bb_onnx_value *q) {
  int64_t size = bb_extent_value(q->shape[3]);
  if (size <= 0) bb_onnx_refuse(n, "the head size is known only at run time");
  double scale = bb_onnx_float(n, "scale", 0);
  return scale != 0 ? scale : 1 / sqrt((double)size);
}

static bool refuse_operands(bb_onnx_node *n, uint32_t first, uint32_t last, const char *what) {
  for (uint32_t i = first; i <= last; i++) {
    if (!bb_onnx_operand(n, i)) continue;
    bb_onnx_unsupported(n, "%s", what);
    return true;
  }
  return false;
}

/* --- MultiHeadAttention --- */

/* [B, S, heads, parts, D]: one part, as [B, heads, S, D]. */
static bb_onnx_value *packed_part(const bb_onnx_node *n, bb_onnx_value *v, int64_t part) {
  const bb_extent *const *s = v->shape;
  bb_onnx_value *one = bb_onnx_slice(n, v, 3, part, 1, 1);
  return bb_onnx_swap_heads(
      n, bb_onnx_reshape(n, one, 4, (const bb_extent *[]){s[0], s[1], s[2], s[4]}));
}

/* What is added to one of queries, keys and values before the heads are split. */
static bb_onnx_value *biased(const bb_onnx_node *n, bb_onnx_value *v, bb_onnx_value *bias,
                             int64_t *start) {
  int64_t width = bb_extent_value(v->shape[2]),
          all = bias->rank == 1 ? bb_extent_value(bias->shape[0]) : -1;
  if (width < 0 || all < *start + width)
    bb_onnx_refuse(n, "the bias %s does not fit", bb_onnx_shape_text(n->m, bias));
  bb_onnx_value *part = bb_onnx_slice(n, bias, 0, *start, 1, width);
  *start += width;
  return bb_onnx_binary_map(n, BB_X_ADD, v, part);
}

static void split_operands(bb_onnx_node *n, bb_onnx_scores *s, int64_t heads, bb_onnx_value *bias) {
  bb_onnx_value *in[3] = {bb_onnx_operand(n, 0), bb_onnx_operand(n, 1), bb_onnx_operand(n, 2)},
                **to[3] = {&s->q, &s->k, &s->v};
  int64_t start = 0;
  for (int i = 0; i < 3; i++) {
    bb_onnx_value *v = in[i];
    if (v->rank == 3) {
      if (bias) v = biased(n, v, bias, &start);
      v = bb_onnx_swap_heads(n, bb_onnx_split_heads(n, v, heads));
    }
    *to[i] = v;
  }
}

/* Where a key is padding, a large negative number is added to its score. */
static bb_onnx_value *padding_bias(bb_onnx_node *n, bb_onnx_value *mask, bb_dtype dtype) {
  bb_program *p = n->m->program;
  const bb_extent *one = bb_onnx_number(n->m, 1), *const *s = mask->shape;
  double hidden = bb_onnx_float(n, "mask_filter_value", -10000);
  if (mask->rank != 2 && mask->rank != 3) {
    bb_onnx_unsupported(n, "a key padding mask of rank %u", mask->rank);
    return NULL;
  }
  const bb_extent *two[4] = {s[0], one, one, s[1]};
  const bb_extent *three[4] = {s[0], one, s[1], mask->rank == 3 ? s[2] : one};
  bb_onnx_value *v = bb_onnx_reshape(n, mask, 4, mask->rank == 2 ? two : three);
  const bb_expr *x = bb_onnx_arg(n, 0, v), *kept = f_lt(p, f_num(p, x, 0), x);
  const bb_expr *zero = bb_expr_const(p, dtype, 0);
  return bb_onnx_map(n, f_select(p, kept, zero, f_num(p, zero, hidden)), 1, &v);
}

/* Which keys are padding: how many are not, for each batch ([B]), or one flag for each key.  False:
 * reported as unsupported. */
static bool hide_padding(bb_onnx_node *n, bb_onnx_scores *s, bb_onnx_value *padding) {
  if (!padding) return true;
  if (padding->rank == 1 && padding->shape[0] == s->q->shape[0]) {
    s->length = padding;
    return true;
  }
  bb_onnx_value *added = padding_bias(n, padding, s->q->dtype);
  if (added) s->mask = s->mask ? bb_onnx_binary_map(n, BB_X_ADD, s->mask, added) : added;
  return added != NULL;
}

void bb_onnx_multi_head_attention(bb_onnx_node *n) {
  bb_onnx_value *q = bb_onnx_operand(n, 0), *padding = bb_onnx_operand(n, 4),
                *bias = bb_onnx_operand(n, 3);
  int64_t heads = bb_onnx_int(n, "num_heads", 0);
  bb_onnx_scores s = {
      .mask = bb_onnx_operand(n, 5), .left = -1, .right = -1, .precision = q->dtype};
  bb_onnx_value *past[2] = {bb_onnx_operand(n, 6), bb_onnx_operand(n, 7)};
  if (refuse_operands(n, 8, 9, "a cache that is shared by its two ends")) return;
  if (q->rank == 5) {
    if (bb_onnx_operand(n, 1) || bb_onnx_operand(n, 2) || bias)
      bb_onnx_refuse(n, "packed queries come alone");
    s.q = packed_part(n, q, 0);
    s.k = packed_part(n, q, 1);
    s.v = packed_part(n, q, 2);
  } else if (q->rank == 3 && bb_onnx_operand(n, 1) && bb_onnx_operand(n, 1)->rank == 5) {
    if (bb_onnx_operand(n, 2) || bias)
      bb_onnx_refuse(n, "packed keys come without values and bias");
    s.q = bb_onnx_swap_heads(n, bb_onnx_split_heads(n, q, heads));
    s.k = packed_part(n, bb_onnx_operand(n, 1), 0);
    s.v = packed_part(n, bb_onnx_operand(n, 1), 1);
  } else {
    if (q->rank != 3 || !bb_onnx_operand(n, 1) || !bb_onnx_operand(n, 2))
      bb_onnx_refuse(n, "queries, keys or values are missing");
    split_operands(n, &s, heads, bias);
  }
  if (!hide_padding(n, &s, padding)) return;
  if (!past[0] != !past[1]) bb_onnx_refuse(n, "past keys come with past values");
  if (past[0]) bb_onnx_join_past(n, &s, past[0], past[1]);
  s.scale = scale_of(n, s.q);
  s.causal = bb_onnx_int(n, "unidirectional", 0);
  bb_onnx_attend(n, &s);
  n->out[0] = bb_onnx_merge_heads(n, bb_onnx_swap_heads(n, s.out));
  if (n->nout > 1) n->out[1] = s.k;
  if (n->nout > 2) n->out[2] = s.v;
  if (n->nout > 3) n->out[3] = s.masked;
}

/* --- Attention: its operand is what queries, keys and values are computed from --- */

/* Where queries, keys and values end in the last axis of the product. */
static void part_widths(const bb_onnx_node *n, int64_t all, int64_t width[3]) {
  uint32_t count;
  const int64_t *given = bb_onnx_ints(n, "qkv_hidden_sizes", &count);
  int64_t left = all;
  if (given && count != 3) bb_onnx_refuse(n, "qkv_hidden_sizes has %u elements", count);
  for (int i = 0; i < 3; i++) {
    width[i] = given ? given[i] : all / 3;
    if (width[i] < 1 || width[i] > left)
      bb_onnx_refuse(n, "qkv_hidden_sizes does not fit the weights");
    left -= width[i];
  }
  if (left) bb_onnx_refuse(n, "queries, keys and values do not fill the weights");
}

/* Keys (0) or values (1) of a cache [2, B, heads, P, D]. */
static bb_onnx_value *half_of_cache(const bb_onnx_node *n, bb_onnx_value *cache, int64_t which) {
  if (cache->rank != 5 || !bb_onnx_is_number(cache->shape[0], 2))
    bb_onnx_refuse(n, "a cache %s is not keys and values", bb_onnx_shape_text(n->m, cache));
  return bb_onnx_reshape(n, bb_onnx_slice(n, cache, 0, which, 1, 1), 4, cache->shape + 1);
}

static bb_onnx_value *whole_cache(const bb_onnx_node *n, const bb_onnx_scores *s) {
  bb_onnx_value *half[2] = {bb_onnx_lead(n, s->k, 5), bb_onnx_lead(n, s->v, 5)};
  return bb_onnx_concat(n, 2, half, 0);
}

void bb_onnx_projected_attention(bb_onnx_node *n) {
  bb_onnx_value *x = n->in[0], *weights = n->in[1], *bias = bb_onnx_operand(n, 2),
                *past = bb_onnx_operand(n, 4);
  int64_t heads = bb_onnx_int(n, "num_heads", 0), start = 0, width[3];
  bb_onnx_value *part[3];
  bool shared = bb_onnx_int(n, "past_present_share_buffer", 0) || bb_onnx_operand(n, 6);
  if (shared || bb_onnx_int(n, "do_rotary", 0)) {
    bb_onnx_unsupported(n, shared ? "a cache that is shared by its two ends" : "do_rotary");
    return;
  }
  int64_t all = weights->rank == 2 ? bb_extent_value(weights->shape[1]) : -1;
  if (x->rank != 3 || all < 0)
    bb_onnx_refuse(n, "operands %s and %s are not [B, S, D] and a matrix of known width",
                   bb_onnx_shape_text(n->m, x), bb_onnx_shape_text(n->m, weights));
  part_widths(n, all, width);
  bb_onnx_value *product = bb_onnx_product_of(n, x, false, weights, false);
  if (bias) product = biased(n, product, bias, &start);
  start = 0;
  for (int i = 0; i < 3; i++) {
    part[i] = bb_onnx_slice(n, product, 2, start, 1, width[i]);
    part[i] = bb_onnx_swap_heads(n, bb_onnx_split_heads(n, part[i], heads));
    start += width[i];
  }
  bb_onnx_scores s = {.q = part[0],
                      .k = part[1],
                      .v = part[2],
                      .mask = bb_onnx_operand(n, 5),
                      .left = -1,
                      .right = -1,
                      .precision = x->dtype};
  if (!hide_padding(n, &s, bb_onnx_operand(n, 3))) return;
  if (past) bb_onnx_join_past(n, &s, half_of_cache(n, past, 0), half_of_cache(n, past, 1));
  s.scale = scale_of(n, s.q);
  s.causal = bb_onnx_int(n, "unidirectional", 0);
  bb_onnx_attend(n, &s);
  n->out[0] = bb_onnx_merge_heads(n, bb_onnx_swap_heads(n, s.out));
  if (n->nout > 1) n->out[1] = whole_cache(n, &s);
}

/* --- GroupQueryAttention --- */

/* Keys that are there, with the new ones, for each batch. */
static bb_onnx_value *lengths_of(const bb_onnx_node *n, const bb_onnx_value *q) {
  bb_program *p = n->m->program;
  bb_onnx_value *last = bb_onnx_operand(n, 5);
  int64_t count = last ? bb_onnx_count(last->rank, last->shape) : 0;
  const bb_extent *batch = q->shape[0];
  if (!last || (last->rank != 1 && count < 0)) bb_onnx_refuse(n, "a cache without lengths");
  if (last->rank != 1) last = bb_onnx_reshape(n, last, 1, &batch);
  if (last->shape[0] != batch)
    bb_onnx_refuse(n, "lengths %s do not fit", bb_onnx_shape_text(n->m, last));
  last = bb_onnx_cast(n, last, BB_I64);
  return bb_onnx_map(n, f_add(p, bb_onnx_arg(n, 0, last), bb_expr_const(p, BB_I64, 1)), 1, &last);
}

/* The new rows behind those that are there, wherever these end in each batch. */
static bb_onnx_value *append(const bb_onnx_node *n, bb_onnx_value *past, bb_onnx_value *rows,
                             bb_onnx_value *length) {
  bb_onnx *m = n->m;
  bool fits = past->rank == 4 && past->dtype == rows->dtype;
  for (uint32_t a = 0; fits && a < 4; a++) fits = a == 2 || past->shape[a] == rows->shape[a];
  if (!fits)
    bb_onnx_refuse(n, "a cache %s %s does not go with %s %s", bb_dtype_name(past->stored),
                   bb_onnx_shape_text(m, past), bb_dtype_name(rows->stored),
                   bb_onnx_shape_text(m, rows));
  if (bb_onnx_is_number(past->shape[2], 0)) return rows;
  const bb_expr *sum = f_add(m->program, bb_onnx_extent_expr(m, past->shape[2]),
                             bb_onnx_extent_expr(m, rows->shape[2]));
  const bb_extent *shape[4] = {rows->shape[0], rows->shape[1],
                               bb_onnx_expr_extent(m, bb_onnx_tidy(m, sum)), rows->shape[3]};
  bb_misc kernel = {.domain = "blockbuster", .op = "Append", .version = 1};
  bb_onnx_value *out = bb_onnx_value_new(m, rows->dtype, 4, shape);
  bb_onnx_misc_node(n, &kernel, 3, (bb_onnx_value *[]){past, rows, length}, 1, &out);
  return out;
}

/* The places of new rows, [B, S]: the last of those that are there. */
static bb_onnx_value *places(const bb_onnx_node *n, bb_onnx_value *length,
                             const bb_extent *sequence) {
  bb_program *p = n->m->program;
  const bb_extent *one = bb_onnx_number(n->m, 1);
  bb_onnx_value *column =
      bb_onnx_reshape(n, length, 2, (const bb_extent *[]){length->shape[0], one});
  const bb_expr *first = f_sub(p, bb_onnx_arg(n, 0, column), bb_onnx_extent_expr(n->m, sequence));
  bb_onnx_value *start = bb_onnx_map(n, first, 1, &column);
  bb_onnx_value *range = bb_onnx_value_of_form(n->m, bb_expr_coord(p, BB_COORD_AXIS), 1, &sequence);
  return bb_onnx_binary_map(n, BB_X_ADD, start, range);
}

/* Queries, keys and values beside each other in the last axis of one operand. */
static void unpack(bb_onnx_node *n, bb_onnx_value *packed, int64_t heads, int64_t kv_heads,
                   bb_onnx_value *part[3]) {
  int64_t width = bb_extent_value(packed->shape[2]), start = 0;
  if (width < 0 || width % (heads + 2 * kv_heads))
    bb_onnx_refuse(n, "%lld and %lld heads do not fit %s", (long long)heads, (long long)kv_heads,
                   bb_onnx_shape_text(n->m, packed));
  int64_t size = width / (heads + 2 * kv_heads);
  for (int i = 0; i < 3; i++) {
    int64_t length = size * (i ? kv_heads : heads);
    part[i] = bb_onnx_slice(n, packed, 2, start, 1, length);
    start += length;
  }
}

/* The angles of each position: those given, else 0, 1, ..., S - 1 from a fresh start. */
static bb_onnx_value *angles(const bb_onnx_node *n, bb_onnx_value *table, bb_onnx_value *position,
                             const bb_extent *sequence) {
  bb_program *p = n->m->program;
  const bb_extent *one = bb_onnx_number(n->m, 1), *line[2] = {one, sequence};
  int64_t length = bb_extent_value(sequence);
  if (table->rank != 2)
    bb_onnx_refuse(n, "a rotary cache of shape %s has not 2 axes", bb_onnx_shape_text(n->m, table));
  bb_onnx_value *rows;
  if (position) {
    rows = bb_onnx_gather_along(n, table, 0, position);
  } else if (length > 0) {
    rows = bb_onnx_lead(n, bb_onnx_slice(n, table, 0, 0, 1, length), 3);
  } else {
    bb_onnx_value *range = bb_onnx_value_of_form(n->m, bb_expr_coord(p, BB_COORD_AXIS), 2, line);
    rows = bb_onnx_gather_along(n, table, 0, range);
  }
  if (rows->rank != 3) bb_onnx_refuse(n, "the positions have not 2 axes");
  const bb_extent *shape[4] = {rows->shape[0], one, rows->shape[1], rows->shape[2]};
  return bb_onnx_reshape(n, rows, 4, shape);
}

/* Attributes and operands whose meaning is not converted. */
static bool beyond_group_query(bb_onnx_node *n) {
  if (refuse_operands(n, 12, 13, "quantized keys")) return true;
  const char *what = NULL;
  if (bb_onnx_int(n, "qk_output", 0) > 0) what = "an output of scores";
  if (bb_onnx_int(n, "sliding_window_cache", 0)) what = "a cache that drops keys";
  if (what) bb_onnx_unsupported(n, "%s", what);
  return what != NULL;
}

void bb_onnx_group_query_attention(bb_onnx_node *n) {
  bb_onnx_value *part[3] = {bb_onnx_operand(n, 0), bb_onnx_operand(n, 1), bb_onnx_operand(n, 2)};
  bb_onnx_value *cosine = bb_onnx_operand(n, 7), *sine = bb_onnx_operand(n, 8);
  int64_t heads = bb_onnx_int(n, "num_heads", 0), kv_heads = bb_onnx_int(n, "kv_num_heads", 0);
  int64_t window = bb_onnx_int(n, "local_window_size", -1);
  if (beyond_group_query(n)) return;
  if (heads < 1 || kv_heads < 1 || heads > 1 << 20 || kv_heads > 1 << 20)
    bb_onnx_refuse(n, "its numbers of heads are out of range");
  if (part[0]->rank != 3) bb_onnx_refuse(n, "input 0 has rank %u", part[0]->rank);
  if (!part[1] != !part[2]) bb_onnx_refuse(n, "keys come with values");
  if (!part[1]) unpack(n, part[0], heads, kv_heads, part);
  for (int i = 0; i < 3; i++)
    part[i] = bb_onnx_swap_heads(n, bb_onnx_split_heads(n, part[i], i ? kv_heads : heads));
  if (!bb_onnx_operand(n, 3) != !bb_onnx_operand(n, 4))
    bb_onnx_refuse(n, "past keys come with past values");
  bb_onnx_value *length = bb_onnx_operand(n, 3) ? lengths_of(n, part[0]) : NULL;
  if (bb_onnx_int(n, "do_rotary", 0)) {
    bb_onnx_value *position = bb_onnx_operand(n, 9);
    if (!position && length) position = places(n, length, part[0]->shape[2]);
    bool interleaved = bb_onnx_int(n, "rotary_interleaved", 0);
    if (!cosine || !sine) bb_onnx_refuse(n, "do_rotary needs both caches");
    bb_onnx_value *c = angles(n, cosine, position, part[0]->shape[2]);
    bb_onnx_value *s = angles(n, sine, position, part[0]->shape[2]);
    int64_t rotary = 2 * bb_extent_value(c->shape[3]);
    for (int i = 0; i < 2; i++) part[i] = bb_onnx_rotate(n, part[i], c, s, rotary, interleaved);
  }
  for (int i = 1; i < 3 && length; i++)
    part[i] = append(n, bb_onnx_operand(n, 2 + i), part[i], length);
  bb_onnx_scores s = {.q = part[0],
                      .k = part[1],
                      .v = part[2],
                      .causal = bb_onnx_int(n, "causal", 1) != 0,
                      .length = length,
                      .from_length = length != NULL,
                      .precision = part[0]->dtype,
                      .mask = bb_onnx_operand(n, 10),
                      .sink = bb_onnx_operand(n, 11)};
  if (!s.sink && bb_onnx_int(n, "smooth_softmax", 0) > 0)
    s.sink = bb_onnx_scalar(n->m, part[0]->dtype, 0);
  s.scale = scale_of(n, s.q);
  s.softcap = bb_onnx_float(n, "softcap", 0);
  s.left = window > 0 ? window - 1 : -1;
  s.right = -1;
  bb_onnx_attend(n, &s);
  n->out[0] = bb_onnx_merge_heads(n, bb_onnx_swap_heads(n, s.out));
  if (n->nout > 1) n->out[1] = s.k;
  if (n->nout > 2) n->out[2] = s.v;
}
