/* evaluate.c - what array programs mean: each op over whole arrays, element by element. */
#include "arrays.h"
#include "../../runtime/interp/interp.h"

#include <string.h>

whole whole_new(bb_arena *arena, uint32_t rank, const int64_t *shape) {
  whole w = {.rank = rank, .count = 1};
  for (uint32_t i = 0; i < rank; i++) {
    w.shape[i] = shape[i];
    w.count *= (size_t)shape[i];
  }
  w.data = BB_NEW(arena, double, w.count + 1);
  return w;
}

/* The next index in row-major order; false after the last. */
static bool advance(uint32_t rank, const int64_t *shape, int64_t *index) {
  for (uint32_t i = rank; i-- > 0;) {
    if (++index[i] < shape[i]) return true;
    index[i] = 0;
  }
  return false;
}

static size_t offset(const whole *w, const int64_t *index) {
  size_t at = 0;
  for (uint32_t i = 0; i < w->rank; i++) at = at * (size_t)w->shape[i] + (size_t)index[i];
  return at;
}

/* The element that numpy's broadcasting reads at an index of rank `rank`. */
static double broadcast(const whole *w, uint32_t rank, const int64_t *index) {
  int64_t own[RANK_MAX];
  for (uint32_t i = 0; i < w->rank; i++) own[i] = w->shape[i] == 1 ? 0 : index[rank - w->rank + i];
  return w->data[offset(w, own)];
}

typedef struct evaluator {
  const array_case *made;
  const bb_array_node *node;
  const whole *in[16];
  whole *out;
  bb_arena *arena;
} evaluator;

static void elementwise(evaluator *e) {
  whole *out = e->out;
  double argument[16];
  int64_t index[RANK_MAX] = {0}, from_last[RANK_MAX] = {0};
  double symbol[SYMBOL_MAX];
  for (uint32_t i = 0; i < SYMBOL_MAX; i++) symbol[i] = (double)e->made->symbol[i];
  bb_expr_env env = {.arg = argument, .axis_index = from_last, .symbol = symbol};
  if (out->count == 0) return;
  size_t at = 0;
  do {
    for (uint32_t i = 0; i < e->node->nin; i++) argument[i] = broadcast(e->in[i], out->rank, index);
    for (uint32_t i = 0; i < out->rank; i++) from_last[i] = index[out->rank - 1 - i];
    out->data[at++] = bb_expr_eval(e->node->expr, &env);
  } while (advance(out->rank, out->shape, index));
}

/* Sums over every assignment of the labels, the last in a loop of its own: products are what takes long. */
static void contract(evaluator *e) {
  const int64_t *ints = e->node->ints;
  uint32_t rank[3] = {(uint32_t)ints[0], (uint32_t)ints[1], (uint32_t)ints[2]};
  const int64_t *label[3] = {ints + 3, ints + 3 + rank[0], ints + 3 + rank[0] + rank[1]};
  const whole *array[3] = {e->in[0], e->in[1], e->out};
  int64_t shape[2 * RANK_MAX] = {1}, index[2 * RANK_MAX] = {0};
  size_t step[3][2 * RANK_MAX] = {{0}}; /* from one element to the next along a label */
  uint32_t labels = 1;
  for (uint32_t k = 0; k < 3; k++) {
    size_t stride = 1;
    for (uint32_t i = rank[k]; i-- > 0;) {
      uint32_t l = (uint32_t)label[k][i];
      while (labels <= l) shape[labels++] = 1;
      if (array[k]->shape[i] == 1) continue;
      shape[l] = array[k]->shape[i];
      step[k][l] += stride;
      stride *= (size_t)array[k]->shape[i];
    }
  }
  uint32_t last = labels - 1;
  for (uint32_t l = 0; l < labels; l++)
    if (shape[l] == 0) return; /* there are no assignments */
  do {
    size_t at[3] = {0, 0, 0};
    for (uint32_t k = 0; k < 3; k++)
      for (uint32_t l = 0; l < last; l++) at[k] += (size_t)index[l] * step[k][l];
    const double *a = e->in[0]->data + at[0], *b = e->in[1]->data + at[1];
    double *out = e->out->data + at[2];
    for (size_t i = 0; i < (size_t)shape[last]; i++)
      out[i * step[2][last]] += a[i * step[0][last]] * b[i * step[1][last]];
  } while (advance(last, shape, index));
}

/* Folds along the axes that are marked; the others keep their place. */
static void reduce(evaluator *e) {
  const whole *in = e->in[0];
  bool keep = e->node->ints[0] != 0, folded[RANK_MAX] = {false};
  for (uint32_t i = 1; i < e->node->count; i++) folded[e->node->ints[i]] = true;
  double empty;
  bb_monoid_empty(e->node->monoid, &empty);
  empty = bb_monoid_empty_held(e->made->program->array->value[e->node->out[0]].dtype, empty);
  for (size_t i = 0; i < e->out->count; i++) e->out->data[i] = empty;
  int64_t index[RANK_MAX] = {0}, to[RANK_MAX];
  size_t at = 0;
  if (in->count == 0) return;
  do {
    uint32_t axes = 0;
    for (uint32_t i = 0; i < in->rank; i++) {
      if (!folded[i])
        to[axes++] = index[i];
      else if (keep)
        to[axes++] = 0;
    }
    bb_monoid_combine(e->node->monoid, &e->out->data[offset(e->out, to)], &in->data[at++]);
  } while (advance(in->rank, in->shape, index));
}

static void argreduce(evaluator *e) {
  const whole *in = e->in[0];
  uint32_t axis = (uint32_t)e->node->ints[0];
  size_t inner = 1, length = (size_t)in->shape[axis];
  for (uint32_t i = axis + 1; i < in->rank; i++) inner *= (size_t)in->shape[i];
  for (size_t i = 0; i < e->out->count; i++) {
    double best[2];
    bb_monoid_empty(e->node->monoid, best);
    for (size_t k = 0; k < length; k++) {
      double term[2] = {in->data[(i / inner * length + k) * inner + i % inner], (double)k};
      bb_monoid_combine(e->node->monoid, best, term);
    }
    e->out->data[i] = best[1];
  }
}

static void scan(evaluator *e) {
  const whole *in = e->in[0];
  uint32_t axis = (uint32_t)e->node->ints[0];
  bool exclusive = e->node->ints[1] != 0;
  size_t inner = 1, length = (size_t)in->shape[axis];
  for (uint32_t i = axis + 1; i < in->rank; i++) inner *= (size_t)in->shape[i];
  for (size_t i = 0; length && i < in->count / length; i++) {
    double sum;
    bb_monoid_empty(e->node->monoid, &sum);
    for (size_t k = 0; k < length; k++) {
      size_t at = (i / inner * length + k) * inner + i % inner;
      if (exclusive) e->out->data[at] = sum;
      bb_monoid_combine(e->node->monoid, &sum, &in->data[at]);
      if (!exclusive) e->out->data[at] = sum;
    }
  }
}

/* The ops that move elements: where does each one come from? */
static double moved(const evaluator *e, const int64_t *index) {
  const bb_array_node *n = e->node;
  const whole *in = e->in[0];
  int64_t from[RANK_MAX];
  memcpy(from, index, sizeof from);
  if (n->op == BB_A_BROADCAST) return broadcast(in, e->out->rank, index);
  if (n->op == BB_A_TRANSPOSE)
    for (uint32_t i = 0; i < in->rank; i++) from[n->ints[i]] = index[i];
  if (n->op == BB_A_SLICE) from[n->ints[0]] = n->ints[1] + n->ints[2] * index[n->ints[0]];
  if (n->op == BB_A_WINDOWS) {
    int64_t axis = n->ints[0], place = index[axis], tap = index[axis + 1];
    for (uint32_t i = (uint32_t)axis + 1; i < in->rank; i++) from[i] = index[i + 1];
    from[axis] = n->ints[1] + n->ints[2] * place + n->ints[3] * tap;
  }
  if (n->op == BB_A_PAD) {
    int64_t *at = &from[n->ints[0]];
    *at -= n->ints[1];
    if (*at < 0 || *at >= in->shape[n->ints[0]]) return n->expr->number;
  }
  if (n->op == BB_A_CONCAT) {
    int64_t *at = &from[n->ints[0]];
    uint32_t piece = 0;
    for (; *at >= e->in[piece]->shape[n->ints[0]]; piece++) *at -= e->in[piece]->shape[n->ints[0]];
    in = e->in[piece];
  }
  return in->data[offset(in, from)];
}

static void move(evaluator *e) {
  int64_t index[RANK_MAX] = {0};
  size_t at = 0;
  do e->out->data[at++] = moved(e, index);
  while (advance(e->out->rank, e->out->shape, index));
}

/* Operators without an array op mean what their reference kernels compute. */
/* The symbol's value, by the result that has an axis of so many elements. */
static int64_t told_by(const bb_array *array, const bb_array_node *node, uint32_t symbol,
                       const bb_misc_value *out) {
  for (uint32_t i = 0; i < node->nout; i++) {
    const bb_array_value *v = &array->value[node->out[i]];
    for (uint32_t k = 0; k < v->rank; k++)
      if (v->shape[k]->factor == 1 && v->shape[k]->count == 1 && v->shape[k]->symbol[0] == symbol)
        return out[i].shape[k];
  }
  return -1;
}

static void misc(const array_case *c, const bb_array_node *node, bb_arena *arena) {
  const bb_misc *misc = node->misc;
  bb_misc_kernel *kernel = bb_misc_find(misc);
  bb_misc_value in[16] = {{0}}, out[16] = {{0}};
  uint32_t told = bb_misc_tells(c->program, misc);
  bool tells = told != BB_NONE;
  if (!kernel) bb_fail(c->program->ctx, BB_ERROR_UNSUPPORTED, "no kernel for %s", misc->op);
  for (uint32_t i = 0; i < misc->nin && i < 16; i++) {
    if (misc->in[i].absent) continue;
    const whole *w = &c->value[node->in[i]];
    in[i] = (bb_misc_value){.dtype = misc->in[i].dtype, .rank = w->rank, .data = w->data};
    memcpy(in[i].shape, w->shape, w->rank * sizeof *w->shape);
  }
  for (uint32_t i = 0; i < misc->nout && i < 16; i++) { /* some take the shape from the program */
    const bb_array_value *v = &c->program->array->value[node->out[i]];
    out[i] = (bb_misc_value){.dtype = v->dtype, .rank = v->rank};
    for (uint32_t k = 0; k < v->rank && !tells; k++)
      out[i].shape[k] = bb_extent_bind(c->program, v->shape[k], c->symbol);
  }
  kernel(c->program->ctx, arena, misc, misc->nin, in, misc->nout, out);
  if (tells) {
    c->symbol[told] = told_by(c->program->array, node, told, out);
    bb_derive_symbols(c->program, c->program->symbols, c->symbol, arena);
  }
  for (uint32_t i = 0; i < node->nout; i++) {
    whole *w = &c->value[node->out[i]];
    *w = whole_new(arena, out[i].rank, out[i].shape);
    w->data = out[i].data;
  }
}

static void evaluate_node(evaluator *e) {
  switch (e->node->op) {
  case BB_A_ELEMENTWISE: elementwise(e); break;
  case BB_A_CONTRACT: contract(e); break;
  case BB_A_REDUCE: reduce(e); break;
  case BB_A_ARGREDUCE: argreduce(e); break;
  case BB_A_SCAN: scan(e); break;
  case BB_A_RESHAPE: memcpy(e->out->data, e->in[0]->data, e->out->count * sizeof(double)); break;
  default: move(e);
  }
}

void evaluate(const array_case *c, bb_arena *arena) {
  const bb_array *array = c->program->array;
  for (uint32_t i = 0; i < array->nodes; i++) {
    const bb_array_node *node = &array->node[i];
    if (node->removed) continue;
    if (node->op == BB_A_MISC) {
      misc(c, node, arena);
      continue;
    }
    evaluator e = {.made = c, .node = node, .arena = arena};
    for (uint32_t k = 0; k < node->nin; k++) e.in[k] = &c->value[node->in[k]];
    const bb_array_value *v = &array->value[node->out[0]];
    int64_t shape[RANK_MAX];
    for (uint32_t k = 0; k < v->rank; k++)
      shape[k] = bb_extent_bind(c->program, v->shape[k], c->symbol);
    e.out = &c->value[node->out[0]];
    *e.out = whole_new(arena, v->rank, shape);
    evaluate_node(&e);
  }
}
