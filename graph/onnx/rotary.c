/* rotary.c - rotary position embedding: pairs of elements rotated by an angle per position. */
#include "convert.h"
#include "formula.h"

#include <string.h>

bb_onnx_value *bb_onnx_split_heads(const bb_onnx_node *n, bb_onnx_value *v, int64_t heads) {
  bb_onnx *m = n->m;
  const bb_extent *each = NULL;
  if (v->rank != 3)
    bb_onnx_refuse(n, "an operand of shape %s has not 3 axes", bb_onnx_shape_text(m, v));
  if (heads > 0) each = bb_extent_divide(m->program, v->shape[2], bb_onnx_number(m, heads));
  if (!each)
    bb_onnx_refuse(n, "%lld heads do not divide the last axis of %s", (long long)heads,
                   bb_onnx_shape_text(m, v));
  return bb_onnx_reshape(
      n, v, 4, (const bb_extent *[]){v->shape[0], v->shape[1], bb_onnx_number(m, heads), each});
}

bb_onnx_value *bb_onnx_swap_heads(const bb_onnx_node *n, bb_onnx_value *v) {
  return bb_onnx_transpose(n, v, (const int64_t[]){0, 2, 1, 3});
}

bb_onnx_value *bb_onnx_merge_heads(const bb_onnx_node *n, bb_onnx_value *v) {
  const bb_extent *width = bb_onnx_product(n->m, 2, v->shape + 2);
  return bb_onnx_reshape(n, v, 3, (const bb_extent *[]){v->shape[0], v->shape[1], width});
}

/* a*c - b*s, or with `turned` a*s + b*c. */
static bb_onnx_value *combine(const bb_onnx_node *n, bb_onnx_value *a, bb_onnx_value *b,
                              bb_onnx_value *cosine, bb_onnx_value *sine, bool turned) {
  bb_program *p = n->m->program;
  bb_onnx_value *v[4] = {a, b, cosine, sine};
  const bb_expr *x = bb_onnx_arg(n, 0, a), *y = bb_onnx_arg(n, 1, b);
  const bb_expr *c = bb_onnx_arg(n, 2, cosine), *s = bb_onnx_arg(n, 3, sine);
  const bb_expr *e =
      turned ? f_add(p, f_mul(p, x, s), f_mul(p, y, c)) : f_sub(p, f_mul(p, x, c), f_mul(p, y, s));
  return bb_onnx_map(n, e, 4, v);
}

/* Pairs are (x[i], x[i + half]). */
static bb_onnx_value *rotate_halves(const bb_onnx_node *n, bb_onnx_value *x, bb_onnx_value *cosine,
                                    bb_onnx_value *sine, int64_t half) {
  uint32_t last = x->rank - 1;
  bb_onnx_value *a = bb_onnx_slice(n, x, last, 0, 1, half),
                *b = bb_onnx_slice(n, x, last, half, 1, half);
  bb_onnx_value *part[2] = {combine(n, a, b, cosine, sine, false),
                            combine(n, a, b, cosine, sine, true)};
  return bb_onnx_concat(n, 2, part, last);
}

/* Pairs are (x[2i], x[2i + 1]): the axis is read as [half, 2]. */
static bb_onnx_value *rotate_neighbours(const bb_onnx_node *n, bb_onnx_value *x,
                                        bb_onnx_value *cosine, bb_onnx_value *sine, int64_t half) {
  bb_onnx *m = n->m;
  uint32_t last = x->rank - 1;
  const bb_extent *pair[BB_ONNX_RANK], *one[BB_ONNX_RANK];
  memcpy(pair, x->shape, x->rank * sizeof *pair);
  pair[last] = bb_onnx_number(m, half);
  pair[last + 1] = bb_onnx_number(m, 2);
  memcpy(one, pair, (x->rank + 1) * sizeof *one);
  one[last + 1] = bb_onnx_number(m, 1);
  bb_onnx_value *pairs = bb_onnx_reshape(n, x, x->rank + 1, pair), *part[2];
  for (int i = 0; i < 2; i++)
    part[i] = bb_onnx_reshape(n, bb_onnx_slice(n, pairs, last + 1, i, 1, 1), x->rank, pair);
  bb_onnx_value *a = part[0], *b = part[1];
  for (int i = 0; i < 2; i++)
    part[i] = bb_onnx_reshape(n, combine(n, a, b, cosine, sine, i), x->rank + 1, one);
  return bb_onnx_reshape(n, bb_onnx_concat(n, 2, part, last + 1), x->rank, x->shape);
}

bb_onnx_value *bb_onnx_rotate(const bb_onnx_node *n, bb_onnx_value *x, bb_onnx_value *cosine,
                              bb_onnx_value *sine, int64_t rotary, bool interleaved) {
  uint32_t last = x->rank - 1;
  int64_t size = bb_extent_value(x->shape[last]);
  if (size < 0) bb_onnx_refuse(n, "the head size is known only at run time");
  if (!rotary) rotary = size;
  bool fits = rotary > 0 && rotary % 2 == 0 && rotary <= size && cosine->rank && sine->rank &&
              bb_onnx_is_number(cosine->shape[cosine->rank - 1], rotary / 2) &&
              bb_onnx_is_number(sine->shape[sine->rank - 1], rotary / 2);
  if (!fits)
    bb_onnx_refuse(n, "%lld of %lld elements are to rotate by caches %s and %s", (long long)rotary,
                   (long long)size, bb_onnx_shape_text(n->m, cosine),
                   bb_onnx_shape_text(n->m, sine));
  bb_onnx_value *turned = bb_onnx_slice(n, x, last, 0, 1, rotary);
  turned = interleaved ? rotate_neighbours(n, turned, cosine, sine, rotary / 2)
                       : rotate_halves(n, turned, cosine, sine, rotary / 2);
  if (rotary == size) return turned;
  bb_onnx_value *rest = bb_onnx_slice(n, x, last, rotary, 1, size - rotary);
  return bb_onnx_concat(n, 2, (bb_onnx_value *[]){turned, rest}, last);
}

/* [B, S, half] with an axis for the heads: at 1 for [B, heads, S, D], at 2 for [B, S, heads, D]. */
static bb_onnx_value *beside_heads(const bb_onnx_node *n, bb_onnx_value *cache, bool heads_first) {
  const bb_extent *one = bb_onnx_number(n->m, 1), *const *s = cache->shape;
  if (cache->rank != 3)
    bb_onnx_refuse(n, "a cache of shape %s has not 3 axes", bb_onnx_shape_text(n->m, cache));
  const bb_extent *shape[4] = {s[0], heads_first ? one : s[1], heads_first ? s[1] : one, s[2]};
  return bb_onnx_reshape(n, cache, 4, shape);
}

/* Rotates [B, heads, S, D] or, with its heads split for the while, [B, S, heads * D]. */
static void rotate_heads(bb_onnx_node *n, bb_onnx_value *cosine, bb_onnx_value *sine) {
  bb_onnx_value *x = n->in[0];
  bool flat = x->rank == 3;
  int64_t rotary = bb_onnx_int(n, "rotary_embedding_dim", 0),
          heads = bb_onnx_int(n, "num_heads", 0);
  if (!flat && x->rank != 4) bb_onnx_refuse(n, "input 0 has rank %u", x->rank);
  if (flat && !heads && !rotary) { /* the caches tell the head size */
    const bb_extent *size =
        bb_extent_multiply(n->m->program, bb_onnx_number(n->m, 2), cosine->shape[2]);
    const bb_extent *count = bb_extent_divide(n->m->program, x->shape[2], size);
    heads = count ? bb_extent_value(count) : 0;
  }
  bb_onnx_value *split = flat ? bb_onnx_split_heads(n, x, heads) : x;
  bb_onnx_value *y =
      bb_onnx_rotate(n, split, bb_onnx_cast(n, beside_heads(n, cosine, !flat), x->dtype),
                     bb_onnx_cast(n, beside_heads(n, sine, !flat), x->dtype), rotary,
                     bb_onnx_int(n, "interleaved", 0));
  n->out[0] = flat ? bb_onnx_merge_heads(n, y) : y;
}

static void want_cache(const bb_onnx_node *n, const bb_onnx_value *cache, uint32_t rank) {
  if (cache->rank != rank)
    bb_onnx_refuse(n, "a cache of shape %s has not %u axes", bb_onnx_shape_text(n->m, cache), rank);
}

/* ai.onnx: x, cosines, sines, and positions if the caches are tables over them. */
void bb_onnx_rotary(bb_onnx_node *n) {
  bb_onnx_value *cosine = n->in[1], *sine = n->in[2], *position = n->nin > 3 ? n->in[3] : NULL;
  bb_onnx_want_float(n, n->in[0]);
  want_cache(n, cosine, position ? 2 : 3);
  want_cache(n, sine, position ? 2 : 3);
  if (position && position->rank != 2) bb_onnx_refuse(n, "the positions have not 2 axes");
  if (position) cosine = bb_onnx_gather_along(n, cosine, 0, position);
  if (position) sine = bb_onnx_gather_along(n, sine, 0, position);
  rotate_heads(n, cosine, sine);
}

/* The rows of a table for the positions 0, 1, ..., S - 1 after a first one; [1, S, half]. */
static bb_onnx_value *rows_from(const bb_onnx_node *n, bb_onnx_value *table, bb_onnx_value *first,
                                const bb_extent *sequence) {
  bb_program *p = n->m->program;
  int64_t start, length = bb_extent_value(sequence);
  if (bb_onnx_known_int(first, &start) && length > 0 && start >= 0) {
    bb_onnx_value *part = bb_onnx_slice(n, table, 0, start, 1, length);
    return bb_onnx_lead(n, part, 3);
  }
  bool one = bb_onnx_is_one(sequence);
  const bb_expr *at = one ? bb_expr_const(p, BB_I64, 0) : bb_expr_coord(p, BB_COORD_AXIS);
  const bb_extent *shape[2] = {bb_onnx_number(n->m, 1), sequence};
  bb_onnx_value *range = bb_onnx_value_of_form(n->m, at, 2, shape);
  first = bb_onnx_cast(n, bb_onnx_reshape(n, first, 0, NULL), BB_I64);
  return bb_onnx_gather_along(n, table, 0, bb_onnx_binary_map(n, BB_X_ADD, range, first));
}

/* com.microsoft: x, positions (or the first one), cosines, sines. */
void bb_onnx_ms_rotary(bb_onnx_node *n) {
  bb_onnx_value *x = n->in[0], *position = n->in[1], *cosine = n->in[2], *sine = n->in[3];
  bb_onnx_want_float(n, x);
  want_cache(n, cosine, 2);
  want_cache(n, sine, 2);
  if (bb_onnx_int(n, "is_packed_batching", 0)) {
    bb_onnx_unsupported(n, "packed batches");
    return;
  }
  if (x->rank < 3) bb_onnx_refuse(n, "input 0 has rank %u", x->rank);
  if (position->rank == 2) {
    cosine = bb_onnx_gather_along(n, cosine, 0, position);
    sine = bb_onnx_gather_along(n, sine, 0, position);
  } else {
    const bb_extent *sequence = x->shape[x->rank == 4 ? 2 : 1];
    cosine = rows_from(n, cosine, position, sequence);
    sine = rows_from(n, sine, position, sequence);
  }
  rotate_heads(n, cosine, sine);
}
