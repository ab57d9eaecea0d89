/* attention.c - scores, masks, softmax and the weighted sum, from their definition; Attention of
 * ai.onnx, and FlexAttention of ai.onnx.preview.  Masks of coordinates are expressions, never tensors.
 */
#include "convert.h"
#include "formula.h"

#include <math.h>
#include <string.h>

/* Labels of the two products. */
enum { B, H, G, S, T, D };

/* [B, heads, S, D] with heads as [kv_heads, group]. */
static bb_onnx_value *in_groups(const bb_onnx_node *n, bb_onnx_value *v, const bb_extent *kv_heads,
                                const bb_extent *group) {
  const bb_extent *shape[5] = {v->shape[0], kv_heads, group, v->shape[2], v->shape[3]};
  return bb_onnx_reshape(n, v, 5, shape);
}

static bb_onnx_value *out_of_groups(const bb_onnx_node *n, bb_onnx_value *v,
                                    const bb_extent *heads) {
  const bb_extent *shape[4] = {v->shape[0], heads, v->shape[3], v->shape[4]};
  return bb_onnx_reshape(n, v, 4, shape);
}

/* How many query heads share a key head; NULL: each has its own. */
static const bb_extent *group_of(const bb_onnx_node *n, const bb_onnx_value *q,
                                 const bb_onnx_value *k) {
  const bb_extent *group = bb_extent_divide(n->m->program, q->shape[1], k->shape[1]);
  if (!group)
    bb_onnx_refuse(n, "heads of keys %s do not divide those of queries %s",
                   bb_onnx_shape_text(n->m, k), bb_onnx_shape_text(n->m, q));
  return bb_onnx_is_one(group) ? NULL : group;
}

/* [B, heads, S, T] */
static bb_onnx_value *score(const bb_onnx_node *n, bb_onnx_value *q, bb_onnx_value *k) {
  const bb_extent *group = group_of(n, q, k);
  if (!group)
    return bb_onnx_contract(n, q, k, (const int64_t[]){B, H, S, D}, (const int64_t[]){B, H, T, D},
                            4, (const int64_t[]){B, H, S, T});
  bb_onnx_value *grouped = in_groups(n, q, k->shape[1], group);
  bb_onnx_value *t =
      bb_onnx_contract(n, grouped, k, (const int64_t[]){B, H, G, S, D},
                       (const int64_t[]){B, H, T, D}, 5, (const int64_t[]){B, H, G, S, T});
  return out_of_groups(n, t, q->shape[1]);
}

/* weights [B, heads, S, T] times v [B, kv_heads, T, D] */
static bb_onnx_value *weigh(const bb_onnx_node *n, bb_onnx_value *weights, bb_onnx_value *v) {
  const bb_extent *group = group_of(n, weights, v);
  if (!group)
    return bb_onnx_contract(n, weights, v, (const int64_t[]){B, H, S, T},
                            (const int64_t[]){B, H, T, D}, 4, (const int64_t[]){B, H, S, D});
  bb_onnx_value *grouped = in_groups(n, weights, v->shape[1], group);
  bb_onnx_value *y =
      bb_onnx_contract(n, grouped, v, (const int64_t[]){B, H, G, S, T},
                       (const int64_t[]){B, H, T, D}, 5, (const int64_t[]){B, H, G, S, D});
  return out_of_groups(n, y, weights->shape[1]);
}

/* --- masks --- */

/* The scores where `kept` holds, -inf elsewhere; v[0] are the scores. */
static bb_onnx_value *keep(const bb_onnx_node *n, const bb_expr *kept, uint32_t count,
                           bb_onnx_value *const *v) {
  bb_program *p = n->m->program;
  const bb_expr *x = bb_onnx_arg(n, 0, v[0]);
  return bb_onnx_map(n, f_select(p, kept, x, f_num(p, x, -INFINITY)), count, v);
}

/* A mask shorter than the keys masks the rest. */
static bb_onnx_value *lengthen(const bb_onnx_node *n, bb_onnx_value *mask, const bb_extent *keys) {
  uint32_t last = mask->rank - 1;
  int64_t has = bb_extent_value(mask->shape[last]), want = bb_extent_value(keys);
  if (has < 0 || want < 0 || has == 1 || has >= want) return mask;
  const bb_extent *shape[BB_ONNX_RANK];
  memcpy(shape, mask->shape, mask->rank * sizeof *shape);
  shape[last] = bb_onnx_number(n->m, want - has);
  const bb_expr *hide =
      bb_expr_const(n->m->program, mask->dtype, mask->dtype == BB_BOOL ? 0 : -INFINITY);
  bb_onnx_value *part[2] = {mask, bb_onnx_value_of_form(n->m, hide, mask->rank, shape)};
  return bb_onnx_concat(n, 2, part, last);
}

static bb_onnx_value *apply_mask(const bb_onnx_node *n, bb_onnx_value *t, bb_onnx_value *mask) {
  if (!mask->rank || mask->rank > 4) bb_onnx_refuse(n, "the mask has rank %u", mask->rank);
  mask = lengthen(n, mask, t->shape[3]);
  bb_onnx_value *v[2] = {t, mask};
  if (mask->dtype == BB_BOOL) return keep(n, bb_onnx_arg(n, 1, mask), 2, v);
  if (!bb_dtype_is_float(mask->dtype))
    bb_onnx_refuse(n, "the mask is %s", bb_dtype_name(mask->stored));
  v[1] = bb_onnx_cast(n, mask, t->dtype);
  return bb_onnx_binary_map(n, BB_X_ADD, t, v[1]);
}

/* Both conditions; `kept` may be NULL: none yet. */
static const bb_expr *both(bb_program *p, const bb_expr *kept, const bb_expr *more) {
  return kept ? f_and(p, kept, more) : more;
}

/* The masks of coordinates: causal, window, keys that are there. */
static bb_onnx_value *apply_coordinates(const bb_onnx_node *n, bb_onnx_value *t,
                                        const bb_onnx_scores *s) {
  bb_program *p = n->m->program;
  const bb_expr *zero = bb_expr_const(p, BB_I64, 0), *kept = NULL;
  const bb_expr *row = bb_onnx_is_one(t->shape[2]) ? zero : bb_expr_coord(p, BB_COORD_AXIS + 1);
  const bb_expr *col = bb_onnx_is_one(t->shape[3]) ? zero : bb_expr_coord(p, BB_COORD_AXIS);
  bb_onnx_value *v[2] = {t, NULL};
  const bb_expr *length = NULL;
  if (s->length) {
    const bb_extent *one = bb_onnx_number(n->m, 1);
    const bb_extent *shape[4] = {s->length->shape[0], one, one, one};
    v[1] = bb_onnx_reshape(n, bb_onnx_cast(n, s->length, BB_I64), 4, shape);
    length = bb_onnx_arg(n, 1, v[1]);
    kept = f_lt(p, col, length);
  }
  const bb_expr *last = s->offset ? bb_onnx_tidy(n->m, f_add(p, row, s->offset)) : row;
  if (s->from_length)
    last = f_sub(p, f_add(p, row, length), bb_onnx_extent_expr(n->m, t->shape[2]));
  if (s->causal) kept = both(p, kept, f_le(p, col, last));
  if (s->left >= 0) {
    const bb_expr *first = f_sub(p, last, bb_expr_const(p, BB_I64, (double)s->left));
    kept = both(p, kept, f_le(p, first, col));
  }
  if (s->right >= 0)
    kept = both(p, kept, f_le(p, col, f_add(p, last, bb_expr_const(p, BB_I64, (double)s->right))));
  return kept ? keep(n, kept, s->length ? 2 : 1, v) : t;
}

/* sum + exp(sink), one sink for each head or for all. */
static bb_onnx_value *add_sink(const bb_onnx_node *n, bb_onnx_value *sum, bb_onnx_value *sink) {
  const bb_extent *one = bb_onnx_number(n->m, 1);
  if (sink->rank == 1 && sink->shape[0] == sum->shape[1])
    sink = bb_onnx_reshape(n, sink, 4, (const bb_extent *[]){one, sink->shape[0], one, one});
  else if (sink->rank)
    bb_onnx_refuse(n, "the sink %s is not one for each head", bb_onnx_shape_text(n->m, sink));
  bb_onnx_value *v[2] = {sum, bb_onnx_cast(n, sink, sum->dtype)};
  bb_program *p = n->m->program;
  return bb_onnx_map(n, f_add(p, bb_onnx_arg(n, 0, sum), f_exp(p, bb_onnx_arg(n, 1, v[1]))), 2, v);
}

/* exp / sum exp along the last axis.  Where a mask may leave a row empty, its weights are 0: the
 * scale of the row is selected, since 0 / 0 would be NaN.  A sink leaves no row empty. */
static bb_onnx_value *softmax(const bb_onnx_node *n, bb_onnx_value *x, bool may_be_empty,
                              bb_onnx_value *sink) {
  bb_program *p = n->m->program;
  const int64_t axis = x->rank - 1;
  if (!may_be_empty && !sink) return bb_onnx_softmax_of(n, x, x->rank - 1);
  bb_dtype dtype = x->dtype;
  x = bb_onnx_cast(n, x, bb_onnx_fold_dtype(dtype));
  bb_onnx_value *e = bb_onnx_map(n, f_exp(p, bb_onnx_arg(n, 0, x)), 1, &x);
  bb_onnx_value *sum = bb_onnx_reduce(n, BB_MONOID_SUM, e, 1, &axis, true);
  if (sink) sum = add_sink(n, sum, sink);
  const bb_expr *t = bb_onnx_arg(n, 0, sum), *zero = f_num(p, t, 0);
  const bb_expr *scale = f_div(p, f_num(p, t, 1), t);
  if (!sink) scale = f_select(p, f_eq(p, t, zero), zero, scale);
  bb_onnx_value *scaled = bb_onnx_map(n, scale, 1, &sum);
  return bb_onnx_cast(n, bb_onnx_binary_map(n, BB_X_MUL, e, scaled), dtype);
}

static void check_operands(const bb_onnx_node *n, const bb_onnx_scores *s) {
  const bb_onnx_value *q = s->q, *k = s->k, *v = s->v;
  bb_onnx_want_float(n, q);
  if (q->rank != 4 || k->rank != 4 || v->rank != 4)
    bb_onnx_refuse(n, "queries, keys and values have not 4 axes");
  bool fits = q->shape[0] == k->shape[0] && k->shape[0] == v->shape[0] &&
              q->shape[3] == k->shape[3] && k->shape[1] == v->shape[1] &&
              k->shape[2] == v->shape[2];
  if (!fits)
    bb_onnx_refuse(n, "queries %s, keys %s and values %s do not fit", bb_onnx_shape_text(n->m, q),
                   bb_onnx_shape_text(n->m, k), bb_onnx_shape_text(n->m, v));
}

/* What a graph of the model makes of v: as many elements of the same type. */
static bb_onnx_value *changed(const bb_onnx_node *n, const Onnx__GraphProto *graph,
                              bb_onnx_value *v) {
  bb_onnx_value *out;
  bb_onnx_inline_graph(n, graph, 1, &v, 1, &out);
  if (out->unsupported) return out;
  bool alike = out->dtype == v->dtype && out->rank == v->rank;
  for (uint32_t a = 0; alike && a < v->rank; a++)
    alike = bb_onnx_same_extent(n, out->shape[a], v->shape[a]);
  if (!alike)
    bb_onnx_refuse(n, "its branch makes %s%s of %s%s", bb_dtype_name(out->stored),
                   bb_onnx_shape_text(n->m, out), bb_dtype_name(v->stored),
                   bb_onnx_shape_text(n->m, v));
  return out;
}

void bb_onnx_attend(const bb_onnx_node *n, bb_onnx_scores *s) {
  bb_program *p = n->m->program;
  check_operands(n, s);
  bb_dtype dtype = s->q->dtype;
  bb_onnx_value *t = score(n, s->q, s->k);
  const bb_expr *x = bb_onnx_arg(n, 0, t);
  t = bb_onnx_map(n, f_mul(p, x, f_num(p, x, s->scale)), 1, &t);
  s->raw = s->capped = t;
  if (s->softcap > 0) {
    const bb_expr *cap = f_num(p, x, s->softcap);
    s->capped = t = bb_onnx_map(n, f_mul(p, f_tanh(p, f_div(p, x, cap)), cap), 1, &t);
  }
  if (s->mask) t = apply_mask(n, t, s->mask);
  t = apply_coordinates(n, t, s);
  if (t->rank != 4 || memcmp(t->shape, s->raw->shape, 4 * sizeof *t->shape) != 0)
    bb_onnx_refuse(n, "the mask does not broadcast to the scores %s",
                   bb_onnx_shape_text(n->m, s->raw));
  s->masked = t;
  bool wider = s->precision == BB_F64 || (s->precision == BB_F32 && dtype != BB_F64);
  if (wider) t = bb_onnx_cast(n, t, s->precision);
  if (s->change_scores) t = changed(n, s->change_scores, t);
  if ((s->out = t)->unsupported) return;
  /* A window lies beyond the keys for queries further on than these. */
  bool square = s->q->shape[2] == s->k->shape[2] && !s->offset;
  bool may_be_empty = s->mask || s->length || (s->left >= 0 && !square);
  t = softmax(n, t, may_be_empty, s->sink);
  if (s->change_weights) t = changed(n, s->change_weights, t);
  if ((s->out = t)->unsupported) return;
  s->weights = bb_onnx_cast(n, t, dtype);
  s->out = weigh(n, s->weights, s->v);
}

void bb_onnx_join_past(const bb_onnx_node *n, bb_onnx_scores *s, bb_onnx_value *keys,
                       bb_onnx_value *values) {
  const bb_onnx_value *past[2] = {keys, values};
  for (int i = 0; i < 2; i++)
    if (past[i]->rank != 4)
      bb_onnx_refuse(n, "a cache of shape %s has not 4 axes", bb_onnx_shape_text(n->m, past[i]));
  s->offset = bb_onnx_extent_expr(n->m, keys->shape[2]);
  s->k = bb_onnx_concat(n, 2, (bb_onnx_value *[]){keys, s->k}, 2);
  s->v = bb_onnx_concat(n, 2, (bb_onnx_value *[]){values, s->v}, 2);
}

/* --- Attention --- */

static double default_scale(const bb_onnx_node *n, const bb_onnx_value *q) {
  int64_t size = bb_extent_value(q->shape[3]);
  if (size <= 0) bb_onnx_refuse(n, "the head size is known only at run time");
  return bb_onnx_float(n, "scale", 1 / sqrt((double)size));
}

/* Of the softmax, as the node says. */
static bb_dtype precision_of(const bb_onnx_node *n, bb_dtype otherwise) {
  int64_t type = bb_onnx_int(n, "softmax_precision", 0);
  bb_dtype dtype = otherwise;
  if (type && (type < 0 || type > 64 || !bb_onnx_dtype((int32_t)type, &dtype)))
    bb_onnx_refuse(n, "softmax_precision is %s", bb_onnx_dtype_name((int32_t)type));
  return dtype;
}

static void give_outputs(bb_onnx_node *n, bb_onnx_scores *s, bool flat) {
  int64_t mode = bb_onnx_int(n, "qk_matmul_output_mode", 0);
  n->out[0] = flat ? bb_onnx_merge_heads(n, bb_onnx_swap_heads(n, s->out)) : s->out;
  if (n->nout > 1) n->out[1] = s->k;
  if (n->nout > 2) n->out[2] = s->v;
  if (n->nout < 4) return;
  if (mode < 0 || mode > 3) bb_onnx_refuse(n, "qk_matmul_output_mode is %lld", (long long)mode);
  bb_onnx_value *stage[] = {s->raw, s->capped, s->masked, s->weights};
  n->out[3] = stage[mode];
}

void bb_onnx_attention(bb_onnx_node *n) {
  bb_onnx_value *in[7] = {NULL};
  for (uint32_t i = 0; i < n->nin; i++) in[i] = n->in[i];
  bool flat = in[0]->rank == 3;
  bb_onnx_scores s = {.q = in[0], .k = in[1], .v = in[2], .mask = in[3], .length = in[6]};
  bb_onnx_same_dtype(n, 2, in);
  if (flat) {
    int64_t heads = bb_onnx_int(n, "q_num_heads", 0), kv_heads = bb_onnx_int(n, "kv_num_heads", 0);
    s.q = bb_onnx_swap_heads(n, bb_onnx_split_heads(n, s.q, heads));
    s.k = bb_onnx_swap_heads(n, bb_onnx_split_heads(n, s.k, kv_heads));
    s.v = bb_onnx_swap_heads(n, bb_onnx_split_heads(n, s.v, kv_heads));
  }
  if (s.q->rank != 4) bb_onnx_refuse(n, "input 0 has rank %u", s.q->rank);
  if (!in[4] != !in[5]) bb_onnx_refuse(n, "past_key and past_value come together");
  if (in[4] && s.length) bb_onnx_refuse(n, "nonpad_kv_seqlen does not go with a past");
  if (in[4]) bb_onnx_join_past(n, &s, in[4], in[5]);
  s.precision = precision_of(n, s.q->dtype);
  s.scale = default_scale(n, s.q);
  s.softcap = bb_onnx_float(n, "softcap", 0);
  s.causal = bb_onnx_int(n, "is_causal", 0);
  s.left = bb_onnx_int(n, "left_window_size", -1);
  s.right = bb_onnx_int(n, "right_window_size", -1);
  s.from_length = s.length != NULL;
  bb_onnx_attend(n, &s);
  give_outputs(n, &s, flat);
}

/* --- FlexAttention --- */

static const Onnx__GraphProto *graph_of(const bb_onnx_node *n, const char *name) {
  const Onnx__AttributeProto *attribute =
      bb_onnx_attribute(n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH);
  return attribute ? attribute->g : NULL;
}

void bb_onnx_flexible_attention(bb_onnx_node *n) {
  bb_onnx_scores s = {.q = n->in[0], .k = n->in[1], .v = n->in[2], .left = -1, .right = -1};
  bb_onnx_same_dtype(n, 3, n->in);
  if (s.q->rank != 4) bb_onnx_refuse(n, "input 0 has rank %u", s.q->rank);
  s.precision = precision_of(n, bb_onnx_fold_dtype(s.q->dtype));
  s.scale = default_scale(n, s.q);
  s.change_scores = graph_of(n, "score_mod");
  s.change_weights = graph_of(n, "prob_mod");
  bb_onnx_attend(n, &s);
  n->out[0] = s.out;
}
