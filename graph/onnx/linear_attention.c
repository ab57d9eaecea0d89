/* linear_attention.c - LinearAttention: a state of keys by values for each head, which tokens add to, one after the other, and read.
 *
 * Where a token only adds to the state, or all of it decays by one number first, what earlier tokens added counts by a number for each pair
 * of tokens: a result is then made of products of all tokens with all, however many they are.  Where a token corrects what it finds, or
 * each key's row decays by itself, tokens are taken one by one.
 */
#include "convert.h"
#include "formula.h"

#include <math.h>
#include <string.h>

enum { QUERY, KEY, VALUE, PAST, DECAY, RATE };
/* Axes: batch, heads with a state, queries that share one, tokens, tokens that are read, keys, values. */
enum { B, H, G, T, S, D, E };

typedef struct recurrence {
  bb_onnx_node *n;
  bb_onnx_value *q;     /* [B, H, G, T, D] */
  bb_onnx_value *k, *v; /* [B, H, T, D], [B, H, T, E] */
  bb_onnx_value *decay; /* its logarithm: [B, H, T, 1 or D]; NULL: none */
  bb_onnx_value *rate;  /* of corrections: [B, H or 1, T, 1]; NULL: what is found stays */
  bb_onnx_value *state; /* [B, H, D, E]; NULL: zeros */
  bb_onnx_value *out;   /* [B, H, G, T, E] */
} recurrence;

/* --- operands --- */

static void want_operand(const bb_onnx_node *n, uint32_t i, bool wanted) {
  if ((bb_onnx_operand(n, i) != NULL) != wanted)
    bb_onnx_refuse(n, "input %u %s", i, wanted ? "is missing" : "goes with another update_rule");
}

/* [B, T, heads * each] as [B, heads, T, each], computed in `dtype`. */
static bb_onnx_value *by_heads(const bb_onnx_node *n, uint32_t i, int64_t heads, bb_dtype dtype) {
  bb_onnx_value *v = n->in[i], *first = n->in[QUERY];
  bb_onnx_value *split = bb_onnx_split_heads(n, v, heads);
  if (!bb_onnx_same_extent(n, v->shape[0], first->shape[0]) ||
      !bb_onnx_same_extent(n, v->shape[1], first->shape[1]))
    bb_onnx_refuse(n, "input %u has shape %s, which does not fit input 0", i,
                   bb_onnx_shape_text(n->m, v));
  return bb_onnx_cast(n, bb_onnx_swap_heads(n, split), dtype);
}

static int64_t head_count(const bb_onnx_node *n, const char *name) {
  int64_t heads = bb_onnx_int(n, name, 0);
  if (heads < 1 || heads > 1 << 20) bb_onnx_refuse(n, "%s is %lld", name, (long long)heads);
  return heads;
}

static void read_past(recurrence *r, bb_onnx_value *past, bb_dtype dtype) {
  bb_onnx_node *n = r->n;
  const bb_extent *shape[4] = {r->k->shape[0], r->k->shape[1], r->k->shape[3], r->v->shape[3]};
  bool fits = past->rank == 4;
  for (uint32_t a = 0; fits && a < 4; a++) fits = bb_onnx_same_extent(n, past->shape[a], shape[a]);
  if (!fits)
    bb_onnx_refuse(n, "a state of shape %s does not fit the others",
                   bb_onnx_shape_text(n->m, past));
  r->state = bb_onnx_cast(n, past, dtype);
}

/* Where nothing is left of a state, how much less than that does not count: sums of such logarithms stay numbers, and near those
 * of others. */
static bb_onnx_value *bounded(const bb_onnx_node *n, bb_onnx_value *decay) {
  bb_program *p = n->m->program;
  const bb_expr *e = bb_onnx_arg(n, 0, decay);
  const double nothing = decay->dtype == BB_F64 ? -746 : -104; /* exp() of it is 0 */
  return bb_onnx_map(n, f_max(p, e, f_num(p, e, nothing)), 1, &decay);
}

static void read_operands(recurrence *r) {
  bb_onnx_node *n = r->n;
  bb_onnx *m = n->m;
  int64_t heads = head_count(n, "q_num_heads"), states = head_count(n, "kv_num_heads");
  const char *rule = bb_onnx_text(n, "update_rule", "gated_delta");
  bool delta = strcmp(rule, "delta") == 0 || strcmp(rule, "gated_delta") == 0;
  bool gated = strncmp(rule, "gated", 5) == 0;
  if (!delta && strcmp(rule, "linear") != 0 && strcmp(rule, "gated") != 0)
    bb_onnx_refuse(n, "update_rule is %s", bb_onnx_quote(m->arena, rule));
  if (heads % states)
    bb_onnx_refuse(n, "%lld heads do not share %lld states", (long long)heads, (long long)states);
  want_operand(n, DECAY, gated);
  want_operand(n, RATE, delta);
  bb_onnx_want_float(n, n->in[QUERY]);
  bb_onnx_same_dtype(n, 3, n->in);
  bb_dtype dtype = bb_onnx_fold_dtype(n->in[QUERY]->dtype);
  bb_onnx_value *q = by_heads(n, QUERY, heads, dtype);
  r->k = by_heads(n, KEY, states, dtype);
  r->v = by_heads(n, VALUE, states, dtype);
  if (!bb_onnx_same_extent(n, q->shape[3], r->k->shape[3]))
    bb_onnx_refuse(n, "queries and keys differ in size");
  const bb_extent *share = bb_onnx_number(m, heads / states);
  r->q = bb_onnx_reshape(
      n, q, 5, (const bb_extent *[]){q->shape[0], r->k->shape[1], share, q->shape[2], q->shape[3]});
  if (gated) r->decay = bounded(n, by_heads(n, DECAY, states, dtype));
  if (gated && !bb_onnx_is_one(r->decay->shape[3]) &&
      !bb_onnx_same_extent(n, r->decay->shape[3], r->k->shape[3]))
    bb_onnx_refuse(n, "a decay of shape %s fits neither heads nor keys",
                   bb_onnx_shape_text(m, n->in[DECAY]));
  if (delta) {
    bool one = n->in[RATE]->rank == 3 && bb_onnx_is_one(n->in[RATE]->shape[2]);
    r->rate = by_heads(n, RATE, one ? 1 : states, dtype);
    if (!bb_onnx_is_one(r->rate->shape[3]))
      bb_onnx_refuse(n, "a rate of shape %s is not one for each head",
                     bb_onnx_shape_text(m, n->in[RATE]));
  }
  if (bb_onnx_operand(n, PAST)) read_past(r, n->in[PAST], dtype);
}

/* --- one token after the other --- */

static bb_onnx_value *times(const bb_onnx_node *n, bb_onnx_value *a, bb_onnx_value *b) {
  return bb_onnx_binary_map(n, BB_X_MUL, a, b);
}

static bb_onnx_value *plus(const bb_onnx_node *n, bb_onnx_value *a, bb_onnx_value *b) {
  return a && b ? bb_onnx_binary_map(n, BB_X_ADD, a, b) : a ? a : b;
}

/* Of a logarithm, or of the difference of two (`less` NULL: none), in the type of states. */
static bb_onnx_value *exponential(const recurrence *r, bb_onnx_value *v, bb_onnx_value *less) {
  bb_program *p = r->n->m->program;
  bb_onnx_value *both[2] = {v, less};
  const bb_expr *e = bb_onnx_arg(r->n, 0, v);
  if (less) e = f_sub(p, e, bb_onnx_arg(r->n, 1, less));
  return bb_onnx_map(r->n, f_exp(p, bb_expr_cast(p, r->k->dtype, e)), less ? 2 : 1, both);
}

/* [B, H, 1, each] as [B, H, each, 1]. */
static bb_onnx_value *upright(const bb_onnx_node *n, bb_onnx_value *row) {
  const bb_extent *shape[4] = {row->shape[0], row->shape[1], row->shape[3], row->shape[2]};
  return bb_onnx_reshape(n, row, 4, shape);
}

/* What queries [B, H, G, T, D] find in the state. */
static bb_onnx_value *read_state(const recurrence *r, bb_onnx_value *q) {
  static const int64_t of_q[] = {B, H, G, T, D}, of_state[] = {B, H, D, E},
                       of_out[] = {B, H, G, T, E};
  return bb_onnx_contract(r->n, q, r->state, of_q, of_state, 5, of_out);
}

static bb_onnx_value *take_step(recurrence *r, int64_t at) {
  bb_onnx_node *n = r->n;
  bb_onnx_value *k = bb_onnx_slice(n, r->k, 2, at, 1, 1), *v = bb_onnx_slice(n, r->v, 2, at, 1, 1);
  if (r->decay && r->state) {
    bb_onnx_value *kept = exponential(r, bb_onnx_slice(n, r->decay, 2, at, 1, 1), NULL);
    r->state = times(n, r->state, upright(n, kept));
  }
  if (r->rate && r->state)
    v = bb_onnx_binary_map(n, BB_X_SUB, v, bb_onnx_product_of(n, k, false, r->state, false));
  if (r->rate) v = times(n, bb_onnx_slice(n, r->rate, 2, at, 1, 1), v);
  r->state = plus(n, r->state, times(n, upright(n, k), v));
  return read_state(r, bb_onnx_slice(n, r->q, 3, at, 1, 1));
}

static void take_steps(recurrence *r, int64_t count) {
  bb_onnx_value **out = BB_NEW(r->n->m->arena, bb_onnx_value *, count);
  for (int64_t i = 0; i < count; i++) out[i] = take_step(r, i);
  r->out = bb_onnx_concat(r->n, (uint32_t)count, out, 3);
}

/* --- all tokens at once --- */

/* [B, H, T, 1] with the tokens at one of five axes. */
static bb_onnx_value *along(const bb_onnx_node *n, bb_onnx_value *v, uint32_t axis) {
  const bb_extent *one = bb_onnx_number(n->m, 1),
                  *shape[5] = {v->shape[0], v->shape[1], one, one, one};
  shape[axis] = v->shape[2];
  return bb_onnx_reshape(n, v, 5, shape);
}

/* How much of what each token added is there for each later one; `until`: the sums of decays up to each token, NULL: all. */
static bb_onnx_value *pair_weights(const recurrence *r, bb_onnx_value *until) {
  static const int64_t of_q[] = {B, H, G, T, D}, of_k[] = {B, H, S, D}, of_pair[] = {B, H, G, T, S};
  bb_onnx_node *n = r->n;
  bb_program *p = n->m->program;
  bb_onnx_value *v[3] = {bb_onnx_contract(n, r->q, r->k, of_q, of_k, 5, of_pair)};
  const bb_expr *pair = bb_onnx_arg(n, 0, v[0]);
  const bb_expr *reader = bb_onnx_index_along(n->m, v[0], 3),
                *writer = bb_onnx_index_along(n->m, v[0], 4);
  if (until) {
    v[1] = along(n, until, 3);
    v[2] = along(n, until, 4);
    const bb_expr *since = f_sub(p, bb_onnx_arg(n, 1, v[1]), bb_onnx_arg(n, 2, v[2]));
    pair = f_mul(p, pair, f_exp(p, bb_expr_cast(p, pair->dtype, since)));
  }
  pair = f_select(p, f_le(p, writer, reader), pair, f_num(p, pair, 0));
  return bb_onnx_map(n, pair, until ? 3 : 1, v);
}

/* The state behind the last token; `decay`: of each, in the type of their sums. */
static void add_all(recurrence *r, bb_onnx_value *decay, bb_onnx_value *until) {
  static const int64_t of_k[] = {B, H, S, D}, of_v[] = {B, H, S, E}, of_state[] = {B, H, D, E};
  bb_onnx_node *n = r->n;
  bb_onnx_value *k = r->k;
  if (until) {
    bb_onnx_value *all = bb_onnx_reduce(n, BB_MONOID_SUM, decay, 1, (const int64_t[]){2}, true);
    k = times(n, k, exponential(r, all, until));
    if (r->state) r->state = times(n, r->state, exponential(r, all, NULL));
  }
  r->state = plus(n, r->state, bb_onnx_contract(n, k, r->v, of_k, of_v, 4, of_state));
}

/* Decays are summed as doubles: what counts is the difference of two sums, which grow with the number of tokens. */
static void take_all(recurrence *r) {
  static const int64_t of_pair[] = {B, H, G, T, S}, of_v[] = {B, H, S, E},
                       of_out[] = {B, H, G, T, E};
  bb_onnx_node *n = r->n;
  bb_onnx_value *decay = NULL, *until = NULL;
  if (r->decay) {
    decay = bb_onnx_cast(n, r->decay, BB_F64);
    uint32_t sums = bb_array_scan(n->m->array, n->name, bb_monoid_get(BB_MONOID_SUM),
                                  bb_onnx_id(n, decay), 2, false, false);
    until = bb_onnx_value_of_id(n->m, sums);
  }
  r->out = bb_onnx_contract(n, pair_weights(r, until), r->v, of_pair, of_v, 5, of_out);
  if (r->state) {
    bb_onnx_value *q = until ? times(n, r->q, exponential(r, along(n, until, 3), NULL)) : r->q;
    r->out = plus(n, r->out, read_state(r, q));
  }
  if (n->nout > 1) add_all(r, decay, until);
}

/* --- the operator --- */

/* [B, H, G, T, E], scaled, as [B, T, H * G * E] of the queries' type. */
static bb_onnx_value *result_of(const recurrence *r) {
  bb_onnx_node *n = r->n;
  bb_program *p = n->m->program;
  bb_onnx_value *y = r->out;
  int64_t size = bb_extent_value(r->q->shape[4]);
  double scale = bb_onnx_float(n, "scale", 0);
  if (scale == 0 && size < 1) bb_onnx_refuse(n, "the head size is known only at run time");
  if (scale == 0) scale = 1 / sqrt((double)size);
  const bb_extent *heads = bb_onnx_product(n->m, 2, y->shape + 1);
  const bb_extent *shape[4] = {y->shape[0], heads, y->shape[3], y->shape[4]};
  const bb_expr *x = bb_onnx_arg(n, 0, y);
  y = bb_onnx_reshape(n, bb_onnx_map(n, f_mul(p, x, f_num(p, x, scale)), 1, &y), 4, shape);
  return bb_onnx_cast(n, bb_onnx_merge_heads(n, bb_onnx_swap_heads(n, y)), n->in[QUERY]->dtype);
}

void bb_onnx_linear_attention(bb_onnx_node *n) {
  recurrence r = {.n = n};
  read_operands(&r);
  int64_t tokens = bb_extent_value(r.q->shape[3]);
  if (tokens == 0) bb_onnx_refuse(n, "there are no tokens");
  bool in_pairs = !r.rate && (!r.decay || bb_onnx_is_one(r.decay->shape[3]));
  if (!in_pairs && tokens < 0) {
    bb_onnx_unsupported(n, "tokens that are taken one by one, as many as only a run tells");
    return;
  }
  if (!in_pairs && tokens > BB_ONNX_STEPS) {
    bb_onnx_unsupported(n, "more than %d tokens that are taken one by one", BB_ONNX_STEPS);
    return;
  }
  if (in_pairs && tokens != 1)
    take_all(&r);
  else
    take_steps(&r, tokens);
  n->out[0] = result_of(&r);
  bb_onnx_value *past = bb_onnx_operand(n, PAST);
  if (n->nout > 1) n->out[1] = bb_onnx_cast(n, r.state, (past ? past : n->in[QUERY])->dtype);
}
