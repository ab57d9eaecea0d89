/* scalar_walk.c - from the nodes of a block program to terms.
 *
 * A loop at depth d iterates with index variable d.  A list has a variable of its own for each of
 * its levels until a loop iterates it; a list that chunks an axis and the axis inside its items share
 * one variable, the index along the whole axis.
 */
#include "scalar_walk.h"

#include "../runtime/interp/interp.h"

#include <string.h>

enum { LEVELS = 16, CONSTANT_LIMIT = 1 << 16 };

/* A value: its term, and which variable belongs to each axis of its item and to each of its lists. */
typedef struct meaning {
  const bb_scalar *term;
  uint8_t row, col;
  uint8_t level[LEVELS];
} meaning;

typedef struct stored { /* in a local tensor */
  const bb_scalar *term;
} stored;

typedef struct occurrence {
  const bb_node *node;
  const bb_expr *expr;
  uint32_t exp;
} occurrence;

struct bb_scalar_walk {
  bb_program *program;
  bb_arena *arena;
  bb_scalars *terms;
  bb_intern *occurrences;
  uint32_t tensors;
  stored *stored;  /* by tensor */
  bb_range *range; /* of constants' data, by tensor */
  bool *range_known;
  uint32_t opaque; /* values of which nothing is known, so far */
};

typedef struct level {
  bb_scalar_walk *walk;
  const bb_graph *graph;
  uint32_t depth;  /* loops around */
  meaning **value; /* by node and port */
} level;

/* --- exps and where they stand --- */

static uint64_t occurrence_hash(const void *object) {
  const occurrence *o = object;
  uintptr_t key[2] = {(uintptr_t)o->node, (uintptr_t)o->expr};
  return bb_hash_bytes(key, sizeof key, 0);
}

static bool occurrence_equal(const void *a, const void *b) {
  const occurrence *x = a, *y = b;
  return x->node == y->node && x->expr == y->expr;
}

bb_scalar_walk *bb_scalar_walk_create(bb_program *program, bb_arena *arena) {
  bb_scalar_walk *w = BB_NEW(arena, bb_scalar_walk, 1);
  *w = (bb_scalar_walk){.program = program, .arena = arena, .tensors = program->tensors};
  w->terms = bb_scalars_create(program, arena);
  w->occurrences = bb_intern_create(arena, occurrence_hash, occurrence_equal);
  w->stored = BB_NEW(arena, stored, w->tensors);
  w->range = BB_NEW(arena, bb_range, w->tensors);
  w->range_known = BB_NEW(arena, bool, w->tensors);
  return w;
}

/* A level that two loops share is walked twice: an exp in it is as unsafe as the worse one. */
static void note_exp(bb_scalar_walk *w, const bb_node *node, const bb_expr *expr, uint32_t exp) {
  occurrence key = {node, expr, exp};
  const occurrence *found = bb_intern_find(w->occurrences, &key);
  if (found) {
    bb_exp *a = bb_exp_of(w->terms, found->exp), *b = bb_exp_of(w->terms, exp);
    if (a == b) return;
    if (!a->unsafe) a->unsafe = b->unsafe;
    a->mended &= b->mended;
    b->same = (uint32_t)(a - w->terms->exp);
    return;
  }
  occurrence *made = BB_NEW(w->arena, occurrence, 1);
  *made = key;
  bb_intern_add(w->occurrences, made);
}

const bb_exp *bb_scalar_walk_exp(bb_scalar_walk *w, const bb_node *node, const bb_expr *expr) {
  const occurrence *found = bb_intern_find(w->occurrences, &(occurrence){node, expr, 0});
  return found ? bb_exp_of(w->terms, found->exp) : NULL;
}

/* --- leaves --- */

static bb_range data_range(bb_scalar_walk *w, uint32_t tensor) {
  const bb_tensor *t = &w->program->tensor[tensor];
  uint32_t bytes = bb_dtype_bytes(t->dtype);
  size_t count = bytes ? t->bytes / bytes : 0;
  bb_range range = BB_RANGE_ANY;
  if (!t->data || count == 0 || count > CONSTANT_LIMIT) return range;
  bb_arena *scratch = bb_scratch(w->program->ctx);
  double *data = BB_NEW(scratch, double, count);
  bb_interp_load(t->dtype, t->data, count, data);
  range = (bb_range){.lo = INFINITY, .hi = -INFINITY, .nonzero = true};
  for (size_t i = 0; i < count; i++) {
    if (isnan(data[i])) range.lo = -INFINITY, range.hi = INFINITY;
    range.lo = fmin(range.lo, data[i]);
    range.hi = fmax(range.hi, data[i]);
    range.nonzero &= data[i] != 0 && !isnan(data[i]);
  }
  bb_scratch_end(scratch);
  return range;
}

static bb_range tensor_range(bb_scalar_walk *w, uint32_t tensor) {
  if (tensor >= w->tensors || w->program->tensor[tensor].role != BB_TENSOR_CONSTANT)
    return BB_RANGE_ANY;
  if (!w->range_known[tensor]) w->range[tensor] = data_range(w, tensor);
  w->range_known[tensor] = true;
  return w->range[tensor];
}

/* The variables of a value that is made from outside: one for each list, shared with its axis. */
static meaning lists_of(const bb_type *type) {
  meaning m = {.row = BB_VAR_LIST + LEVELS, .col = BB_VAR_LIST + LEVELS + 1};
  for (uint32_t i = 0; i < type->rank && i < LEVELS; i++) {
    m.level[i] = (uint8_t)(BB_VAR_LIST + type->rank - 1 - i);
    if (type->level[i].axis == BB_AXIS_ROW) m.row = m.level[i];
    if (type->level[i].axis == BB_AXIS_COL) m.col = m.level[i];
  }
  return m;
}

/* A value about which nothing is known but the variables it depends on. */
static void make_opaque(bb_scalar_walk *w, const bb_type *type, const meaning *like, bb_range range,
                        meaning *m) {
  uint8_t index[LEVELS + 2];
  bb_scalar leaf = {.dtype = type->item.dtype, .source = w, .range = range, .index = index};
  *m = like ? *like : lists_of(type);
  for (uint32_t i = 0; i < type->rank && i < LEVELS; i++) index[leaf.count++] = m->level[i];
  if (type->item.row != BB_NO_DIM) index[leaf.count++] = m->row;
  if (type->item.col != BB_NO_DIM) index[leaf.count++] = m->col;
  leaf.serial = ++w->opaque;
  m->term = bb_scalar_leaf(w->terms, &leaf);
}

/* The variable of the k-th list over a dim, outermost first. */
static uint32_t variable_of_dim(const bb_type *type, const meaning *m, bb_dim dim, uint32_t k) {
  for (uint32_t i = 0; i < type->rank && i < LEVELS; i++)
    if (type->level[i].dim == dim && k-- == 0) return m->level[i];
  return BB_VARS;
}

/* An element of a tensor, by the axes that the tensor has: however the input turns or nests them. */
static void mean_input(bb_scalar_walk *w, const bb_node *node, meaning *m) {
  const bb_type *type = node->out[0].type;
  *m = lists_of(type);
  uint8_t index[LEVELS];
  bb_scalar leaf = {.dtype = type->item.dtype,
                    .source = node->access,
                    .range = tensor_range(w, node->tensor),
                    .index = index};
  const bb_access *access = node->access;
  bool known = access && access->count == 1 && type->rank <= LEVELS;
  for (uint32_t a = 0; known && a < access->piece[0].rank; a++) {
    const bb_index *at = &access->piece[0].index[a];
    uint32_t k = 0;
    if (at->kind == BB_INDEX_FIXED) continue;
    for (uint32_t b = 0; b < a; b++)
      k += access->piece[0].index[b].kind != BB_INDEX_FIXED &&
           access->piece[0].index[b].dim == at->dim;
    uint32_t var = variable_of_dim(type, m, at->dim, k);
    known = var < BB_VARS && leaf.count < LEVELS;
    if (known) index[leaf.count++] = (uint8_t)var;
  }
  if (!known) {
    make_opaque(w, type, NULL, BB_RANGE_ANY, m);
    return;
  }
  if (node->tensor < w->tensors && w->stored[node->tensor].term) {
    const bb_scalar *from = w->stored[node->tensor].term;
    leaf.range = from->range;
    leaf.fault = from->fault;
    leaf.risks = from->risks;
    leaf.risk = from->risk;
  }
  m->term = bb_scalar_leaf(w->terms, &leaf);
}

/* --- functional nodes --- */

/* The operand with its axes' variables those of the node's other operands, where a loop did not
 * bind both to one. */
static const bb_scalar *aligned(bb_scalar_walk *w, const bb_type *type, const meaning *m,
                                uint8_t row, uint8_t col) {
  const bb_scalar *term = m->term;
  if (type->item.row != BB_NO_DIM) term = bb_scalar_substitute(w->terms, term, m->row, row);
  if (type->item.col != BB_NO_DIM && m->col != row)
    term = bb_scalar_substitute(w->terms, term, m->col, col);
  return term;
}

static double last_index(const bb_program *program, bb_dim dim) {
  int64_t extent = dim == BB_NO_DIM ? 1 : bb_extent_value(bb_dim_get(program, dim)->extent);
  return extent > 0 ? (double)(extent - 1) : 0x1p53;
}

typedef struct formula {
  level *l;
  const bb_node *node;
  const meaning *result;
  const bb_scalar **arg;
} formula;

static const bb_scalar *leaf_term(const formula *f, const bb_expr *expr) {
  bb_scalar_walk *w = f->l->walk;
  bb_item item = f->node->out[0].type->item;
  switch (expr->op) {
  case BB_X_CONST: return bb_scalar_number(w->terms, expr->dtype, expr->number);
  case BB_X_ARG: return f->arg[expr->index];
  case BB_X_COORD:
    if (expr->index == BB_COORD_ROW)
      return bb_scalar_index(w->terms, f->result->row, last_index(w->program, item.row));
    if (expr->index == BB_COORD_COL)
      return bb_scalar_index(w->terms, f->result->col, last_index(w->program, item.col));
    if (expr->index - BB_COORD_MAP < f->l->depth)
      return bb_scalar_index(w->terms, f->l->depth - 1 - (expr->index - BB_COORD_MAP), 0x1p53);
    break;
  case BB_X_EXTENT: {
    int64_t extent = bb_extent_value(bb_dim_get(w->program, expr->dim)->extent);
    if (extent >= 0) return bb_scalar_number(w->terms, expr->dtype, (double)extent);
    bb_scalar leaf = {
        .dtype = expr->dtype, .source = expr, .range = {1, 0x1p53, true, false, false}};
    return bb_scalar_leaf(w->terms, &leaf);
  }
  default: break;
  }
  bb_scalar leaf = {.dtype = expr->dtype, .source = expr, .range = BB_RANGE_ANY};
  return bb_scalar_leaf(w->terms, &leaf);
}

static const bb_scalar *expr_term(formula *f, const bb_expr *expr) {
  bb_scalar_walk *w = f->l->walk;
  bb_arena *scratch = bb_scratch(w->program->ctx);
  uint32_t count;
  const bb_expr **node = bb_expr_postorder(scratch, expr, &count);
  const bb_scalar **term = BB_NEW(scratch, const bb_scalar *, count);
  for (uint32_t i = 0; i < count; i++) {
    const bb_scalar *a[3] = {NULL, NULL, NULL};
    uint32_t arity = bb_expr_op_arity(node[i]->op);
    for (uint32_t k = 0; k < arity; k++) {
      uint32_t at = i;
      while (node[--at] != node[i]->a[k]) continue;
      a[k] = term[at];
    }
    term[i] = arity ? bb_scalar_apply(w->terms, node[i]->op, node[i]->dtype, a[0], a[1], a[2])
                    : leaf_term(f, node[i]);
    if (arity && term[i]->exp) note_exp(w, f->node, node[i], term[i]->exp);
  }
  const bb_scalar *result = term[count - 1];
  bb_scratch_end(scratch);
  return result;
}

/* The variables of the result's axes: those of the first operand that has the axis. */
static void take_axes(level *l, const bb_node *node, meaning *out) {
  out->row = BB_VAR_LIST + LEVELS;
  out->col = BB_VAR_LIST + LEVELS + 1;
  for (uint32_t p = node->nin; p-- > 0;) {
    const bb_value src = node->in[p].src;
    bb_item item = bb_type_of(l->graph, src)->item;
    if (item.row != BB_NO_DIM) out->row = l->value[src.node][src.port].row;
    if (item.col != BB_NO_DIM) out->col = l->value[src.node][src.port].col;
  }
}

static bb_expr_op binary_of(bb_op op) {
  return op == BB_OP_ADD || op == BB_OP_ROW_SHIFT || op == BB_OP_COL_SHIFT ? BB_X_ADD : BB_X_MUL;
}

static void mean_pointwise(level *l, const bb_node *node, meaning *out) {
  bb_scalar_walk *w = l->walk;
  take_axes(l, node, out);
  const bb_scalar **arg = BB_NEW(w->arena, const bb_scalar *, (size_t)node->nin + 1);
  for (uint32_t p = 0; p < node->nin; p++) {
    const bb_value src = node->in[p].src;
    arg[p] =
        aligned(w, bb_type_of(l->graph, src), &l->value[src.node][src.port], out->row, out->col);
  }
  formula f = {l, node, out, arg};
  out->term = node->op == BB_OP_ELEMENTWISE
                  ? expr_term(&f, node->expr)
                  : bb_scalar_apply(w->terms, binary_of(node->op), node->out[0].type->item.dtype,
                                    arg[0], arg[1], NULL);
}

/* a @ b.T, or the outer product: rows of both, and for a dot the sum over the columns they share. */
static void mean_product(level *l, const bb_node *node, meaning *out) {
  bb_scalar_walk *w = l->walk;
  const bb_type *type = node->out[0].type;
  const meaning *a = &l->value[node->in[0].src.node][node->in[0].src.port];
  const meaning *b = &l->value[node->in[1].src.node][node->in[1].src.port];
  *out = (meaning){.row = a->row, .col = b->row};
  bool apart = type->item.row == BB_NO_DIM || type->item.col == BB_NO_DIM || a->row != b->row;
  if (!apart || (node->op == BB_OP_DOT && (a->col == a->row || b->col == b->row))) {
    out->col = out->row == BB_VAR_LIST + LEVELS ? BB_VAR_LIST + LEVELS + 1 : BB_VAR_LIST + LEVELS;
    make_opaque(w, type, out, BB_RANGE_ANY, out);
    /* What it is made of may be faulty, and this product no better. */
    bb_scalar faulty = *out->term;
    faulty.fault = a->term->fault | b->term->fault;
    faulty.risks = a->term->risks ? a->term->risks : b->term->risks;
    faulty.risk = a->term->risks ? a->term->risk : b->term->risk;
    faulty.serial = ++w->opaque;
    out->term = bb_scalar_leaf(w->terms, &faulty);
    return;
  }
  const bb_scalar *right = b->term;
  if (node->op == BB_OP_DOT) right = bb_scalar_substitute(w->terms, right, b->col, a->col);
  out->term = bb_scalar_apply(w->terms, BB_X_MUL, type->item.dtype, a->term, right, NULL);
  if (node->op == BB_OP_DOT)
    out->term = bb_scalar_fold(w->terms, BB_SCALAR_PART, BB_MONOID_SUM, a->col, out->term);
}

static bb_monoid_id fold_of(bb_op op) {
  switch (op) {
  case BB_OP_ROW_MAX:
  case BB_OP_ROW_ARGMAX:
  case BB_OP_ROW_ARGMAX_LAST: return BB_MONOID_MAX;
  case BB_OP_ROW_MIN:
  case BB_OP_ROW_ARGMIN:
  case BB_OP_ROW_ARGMIN_LAST: return BB_MONOID_MIN;
  case BB_OP_ROW_PROD: return BB_MONOID_PROD;
  default: return BB_MONOID_SUM;
  }
}

static void mean_row_fold(level *l, const bb_node *node, meaning *out) {
  bb_scalar_walk *w = l->walk;
  const meaning *a = &l->value[node->in[0].src.node][node->in[0].src.port];
  bool scan = node->op == BB_OP_ROW_CUMSUM;
  *out = *a;
  out->term = bb_scalar_fold(w->terms, scan ? BB_SCALAR_SCAN : BB_SCALAR_PART, fold_of(node->op),
                             a->col, a->term);
  if (node->nout < 2) return;
  bb_range index = {.lo = 0, .hi = 0x1p53};
  make_opaque(w, node->out[1].type, a, index, &out[1]);
  /* Where the values compared overflow, the index is wrong. */
  bb_scalar_fold(w->terms, BB_SCALAR_PART, BB_MONOID_ARGMAX, a->col, a->term);
}

/* The basic monoid that folds a component by itself, or BB_MONOID_TUPLE. */
static bb_monoid_id plain_fold(const bb_monoid *monoid, uint32_t k) {
  if (!monoid->component) return monoid->components == 1 ? monoid->id : BB_MONOID_TUPLE;
  const bb_expr *combine = monoid->component[k].combine;
  bool own = bb_expr_op_arity(combine->op) == 2 && combine->a[0]->op == BB_X_ARG &&
             combine->a[1]->op == BB_X_ARG && combine->a[0]->index == k &&
             combine->a[1]->index == monoid->components + k;
  switch (own ? combine->op : BB_X_CONST) {
  case BB_X_ADD: return BB_MONOID_SUM;
  case BB_X_MUL: return BB_MONOID_PROD;
  case BB_X_MAX: return BB_MONOID_MAX;
  case BB_X_MIN: return BB_MONOID_MIN;
  default: return BB_MONOID_TUPLE;
  }
}

/* Components that are folded with others are not known, and wrong where an operand overflows. */
static void mean_components(level *l, const bb_node *node, meaning *out) {
  bb_scalar_walk *w = l->walk;
  bool scan = node->op != BB_OP_ROW_FOLD;
  for (uint32_t k = 0; k < node->nin; k++) {
    const meaning *in = &l->value[node->in[k].src.node][node->in[k].src.port];
    bb_monoid_id fold = plain_fold(node->rows, k);
    out[k] = *in;
    if (fold != BB_MONOID_TUPLE) {
      bb_scalar_kind kind = scan ? BB_SCALAR_SCAN : BB_SCALAR_PART;
      out[k].term = bb_scalar_fold(w->terms, kind, fold, in->col, in->term);
      continue;
    }
    make_opaque(w, node->out[k].type, in, BB_RANGE_ANY, &out[k]);
    bb_scalar_fold(w->terms, BB_SCALAR_PART, BB_MONOID_ARGMAX, in->col, in->term);
  }
}

static void mean_op(level *l, const bb_node *node, meaning *out) {
  switch (node->op) {
  case BB_OP_ELEMENTWISE:
  case BB_OP_ADD:
  case BB_OP_MUL:
  case BB_OP_ROW_SHIFT:
  case BB_OP_ROW_SCALE:
  case BB_OP_COL_SHIFT:
  case BB_OP_COL_SCALE: mean_pointwise(l, node, out); return;
  case BB_OP_DOT:
  case BB_OP_OUTER: mean_product(l, node, out); return;
  case BB_OP_TRANSPOSE:
    *out = l->value[node->in[0].src.node][node->in[0].src.port];
    out->row = l->value[node->in[0].src.node][node->in[0].src.port].col;
    out->col = l->value[node->in[0].src.node][node->in[0].src.port].row;
    return;
  case BB_OP_ROW_FOLD:
  case BB_OP_ROW_SCAN:
  case BB_OP_ROW_SCAN_EXCLUSIVE: mean_components(l, node, out); return;
  default: mean_row_fold(l, node, out);
  }
}

static void mean_func(level *l, const bb_node *node, meaning *out) {
  mean_op(l, node, out);
  if (node->op != BB_OP_ELEMENTWISE && out->term->exp)
    note_exp(l->walk, node, NULL, out->term->exp);
}

/* --- loops and reductions --- */

/* The least variable of lists that a value does not have. */
static uint32_t unused_variable(const meaning *m, const bb_type *type) {
  uint64_t used = m->term->free | 1ull << m->row | 1ull << m->col;
  for (uint32_t i = 0; i < type->rank && i < LEVELS; i++) used |= 1ull << m->level[i];
  uint32_t var = BB_VAR_LIST;
  while (var + 1 < BB_VAR_BOUND && used >> var & 1) var++;
  return var;
}

static void drop_level(meaning *m, uint32_t at) {
  memmove(m->level + at, m->level + at + 1, LEVELS - at - 1);
}

static void rename_variable(bb_scalars *t, meaning *m, const bb_type *type, uint32_t from,
                            uint32_t to) {
  m->term = bb_scalar_substitute(t, m->term, from, to);
  if (m->row == from) m->row = (uint8_t)to;
  if (m->col == from) m->col = (uint8_t)to;
  for (uint32_t i = 0; i < type->rank && i < LEVELS; i++)
    if (m->level[i] == from) m->level[i] = (uint8_t)to;
}

/* The fold over one level of a list, or in a loop over variable `var`. */
static const bb_scalar *folded(bb_scalar_walk *w, const bb_monoid *monoid, uint32_t component,
                               uint32_t var, const bb_scalar *body) {
  bb_monoid_id fold = monoid->component ? plain_fold(monoid, component) : monoid->id;
  if (monoid->component)
    return fold == BB_MONOID_TUPLE ? NULL
                                   : bb_scalar_fold(w->terms, BB_SCALAR_FOLD, fold, var, body);
  if (fold == BB_MONOID_ARGMAX || fold == BB_MONOID_ARGMAX_LAST) fold = BB_MONOID_MAX;
  if (fold == BB_MONOID_ARGMIN || fold == BB_MONOID_ARGMIN_LAST) fold = BB_MONOID_MIN;
  if (component > 0 || monoid->components > 2) return NULL;
  return bb_scalar_fold(w->terms, BB_SCALAR_FOLD, fold, var, body);
}

static void mean_unknown(level *l, const bb_node *node, meaning *out) {
  for (uint32_t p = 0; p < node->nout; p++)
    make_opaque(l->walk, node->out[p].type, NULL, BB_RANGE_ANY, &out[p]);
}

static void mean_reduce(level *l, const bb_node *node, meaning *out) {
  bb_scalar_walk *w = l->walk;
  for (uint32_t k = 0; k < node->nout; k++) {
    const meaning *in = &l->value[node->in[k].src.node][node->in[k].src.port];
    uint32_t at = node->in[k].level;
    if (bb_type_of(l->graph, node->in[k].src)->rank > LEVELS) {
      mean_unknown(l, node, out);
      return;
    }
    out[k] = *in;
    if (node->reduce != BB_REDUCE_FOLD && plain_fold(node->monoid, k) == BB_MONOID_TUPLE) {
      make_opaque(w, node->out[k].type, in, BB_RANGE_ANY, &out[k]);
      bb_scalar_fold(w->terms, BB_SCALAR_PART, BB_MONOID_ARGMAX, in->level[at], in->term);
      continue;
    }
    if (node->reduce != BB_REDUCE_FOLD) {
      out[k].term = bb_scalar_fold(w->terms, BB_SCALAR_SCAN, plain_fold(node->monoid, k),
                                   in->level[at], in->term);
      continue;
    }
    const bb_scalar *term = folded(w, node->monoid, k, in->level[at], in->term);
    drop_level(&out[k], at);
    if (term)
      out[k].term = term;
    else
      make_opaque(w, node->out[k].type, &out[k], BB_RANGE_ANY, &out[k]);
  }
}

static void walk_level(level *l);

static void mean_map(level *l, const bb_node *node, meaning *out) {
  bb_scalar_walk *w = l->walk;
  level in = {.walk = w, .graph = node->inner, .depth = l->depth + 1};
  uint32_t var = l->depth;
  in.value = BB_NEW(w->arena, meaning *, node->inner->count);
  for (uint32_t p = 0; p < node->nin; p++) {
    bb_value inner = {node->inner->input[p], 0};
    meaning *m = in.value[inner.node] = BB_NEW(w->arena, meaning, 1);
    const bb_type *type = bb_type_of(l->graph, node->in[p].src);
    *m = l->value[node->in[p].src.node][node->in[p].src.port];
    uint32_t at = node->in[p].level;
    if (at == BB_WHOLE) continue;
    if (type->rank > LEVELS) {
      make_opaque(w, bb_type_of(node->inner, inner), NULL, BB_RANGE_ANY, m);
      continue;
    }
    rename_variable(w->terms, m, type, m->level[at], var);
    drop_level(m, at);
  }
  walk_level(&in);
  for (uint32_t p = 0; p < node->nout; p++) {
    bb_value src = bb_src(node->inner, node->inner->output[p], 0);
    const bb_type *type = bb_type_of(node->inner, src);
    out[p] = in.value[src.node][src.port];
    if (node->out[p].mode == BB_OUT_COLLECT) {
      uint32_t binder = unused_variable(&out[p], type);
      rename_variable(w->terms, &out[p], type, var, binder);
      memmove(out[p].level + 1, out[p].level, LEVELS - 1);
      out[p].level[0] = (uint8_t)binder;
    } else if (node->out[p].mode == BB_OUT_FOLD) {
      const bb_scalar *term =
          folded(w, node->out[p].fold, node->out[p].component, var, out[p].term);
      if (term && node->part == BB_PART_ALL)
        out[p].term = term;
      else
        make_opaque(w, type, &out[p], BB_RANGE_ANY, &out[p]);
    }
  }
}

static void store_output(level *l, const bb_node *node) {
  bb_scalar_walk *w = l->walk;
  const bb_scalar *term = l->value[node->in[0].src.node][node->in[0].src.port].term;
  if (l->depth == 0 && node->tensor < w->tensors && term->fault)
    w->stored[node->tensor].term = term;
}

static void walk_level(level *l) {
  bb_scalar_walk *w = l->walk;
  bb_arena *scratch = bb_scratch(w->program->ctx);
  uint32_t *order = BB_NEW(scratch, uint32_t, (size_t)l->graph->live + 1);
  uint32_t count = bb_topological_order(l->graph, scratch, order);
  for (uint32_t i = 0; i < count; i++) {
    const bb_node *node = l->graph->node[order[i]];
    if (node->kind == BB_NODE_OUTPUT) {
      store_output(l, node);
      continue;
    }
    if (l->value[order[i]]) continue; /* an input of the level inside a map */
    meaning *out = l->value[order[i]] = BB_NEW(w->arena, meaning, (size_t)node->nout + 1);
    switch (node->kind) {
    case BB_NODE_INPUT: mean_input(w, node, out); break;
    case BB_NODE_FUNC: mean_func(l, node, out); break;
    case BB_NODE_MAP:
      if (l->depth < BB_VAR_LIST)
        mean_map(l, node, out);
      else
        mean_unknown(l, node, out);
      break;
    case BB_NODE_REDUCE: mean_reduce(l, node, out); break;
    default: mean_unknown(l, node, out);
    }
  }
  bb_scratch_end(scratch);
}

/* Was a faulty value stored in a tensor that the program reads? */
static bool reads_fault(const bb_scalar_walk *w, const bb_graph *root) {
  for (uint32_t i = 0; i < root->ninputs; i++) {
    uint32_t tensor = root->node[root->input[i]]->tensor;
    if (tensor < w->tensors && w->stored[tensor].term) return true;
  }
  return false;
}

bool bb_scalar_walk_concerns(const bb_scalar_walk *w, const bb_graph *root, bool exps) {
  return exps || reads_fault(w, root);
}

void bb_scalar_walk_graph(bb_scalar_walk *w, const bb_graph *root) {
  level l = {.walk = w, .graph = root};
  l.value = BB_NEW(w->arena, meaning *, root->count);
  walk_level(&l);
}
