/* scalar_walk.c - from the nodes of a block program to terms: sources, loops, reductions.
 *
 * A loop at depth d iterates with index variable d.  A list has a variable of its own for each of
 * its levels until a loop iterates it; a list that chunks an axis and the axis inside its items share
 * one variable, the index along the whole axis.
 */
#include "scalar_mean.h"

#include "../runtime/interp/interp.h"

#include <string.h>

enum { CONSTANT_LIMIT = 1 << 16 };

typedef struct occurrence {
  const bb_node *node;
  const bb_expr *expr;
  uint32_t exp;
} occurrence;

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
  w->stored = BB_NEW(arena, const bb_scalar *, w->tensors);
  return w;
}

/* A level that two loops share is walked twice: an exp in it is as unsafe as the worse one. */
void bb_mean_note_exp(bb_scalar_walk *w, const bb_node *node, const bb_expr *expr, uint32_t exp) {
  occurrence key = {node, expr, exp};
  const occurrence *found = bb_intern_find(w->occurrences, &key);
  if (found) {
    bb_exp *a = bb_exp_of(w->terms, found->exp), *b = bb_exp_of(w->terms, exp);
    if (a == b) return;
    if (!a->unsafe) a->unsafe = b->unsafe;
    a->mended &= b->mended;
    bb_exp_tie(w->terms, a, b);
    b->same = (uint32_t)(a - w->terms->exp);
    return;
  }
  occurrence *made = BB_NEW(w->arena, occurrence, 1);
  *made = key;
  bb_intern_add(w->occurrences, made);
}

const bb_exp *bb_scalar_walk_exp(bb_scalar_walk *w, const bb_node *node, const bb_expr *expr) {
  const occurrence *found = bb_intern_find(w->occurrences, &(occurrence){node, expr, 0});
  if (!found) return NULL;
  bb_exp *exp = bb_exp_of(w->terms, found->exp);
  bb_exp_settle(w->terms, exp);
  return exp;
}

/* In the place of the expression. */
static const bb_expr two_pairs;

void bb_mean_note_pairs(bb_scalar_walk *w, const bb_node *node) {
  occurrence key = {node, &two_pairs, 0};
  if (bb_intern_find(w->occurrences, &key)) return;
  occurrence *made = BB_NEW(w->arena, occurrence, 1);
  *made = key;
  bb_intern_add(w->occurrences, made);
}

bool bb_scalar_walk_joins_pairs(const bb_scalar_walk *w, const bb_node *node) {
  return bb_intern_find(w->occurrences, &(occurrence){node, &two_pairs, 0}) != NULL;
}

/* --- leaves --- */

/* Compilers make vectors of comparisons, and calls of fmin(). */
static bb_spread spread_of(const double *data, size_t count) {
  bb_spread s = {INFINITY, -INFINITY, true};
  bool number = true;
  for (size_t i = 0; i < count; i++) {
    s.least = data[i] < s.least ? data[i] : s.least;
    s.most = data[i] > s.most ? data[i] : s.most;
    number &= data[i] == data[i];
    s.nonzero &= data[i] != 0;
  }
  return number ? s : (bb_spread){-INFINITY, INFINITY, false};
}

/* Every walk over the program's graphs asks for the same. */
static bb_range data_range(bb_program *program, bb_tensor *t) {
  uint32_t bytes = bb_dtype_bytes(t->dtype);
  size_t count = bytes ? t->bytes / bytes : 0;
  if (!t->data || count == 0 || count > CONSTANT_LIMIT) return BB_RANGE_ANY;
  if (!t->spread) {
    bb_arena *scratch = bb_scratch(program->ctx);
    double *data = BB_NEW(scratch, double, count);
    bb_spread *spread = BB_NEW(program->arena, bb_spread, 1);
    bb_interp_load(t->dtype, t->data, count, data);
    *spread = spread_of(data, count);
    t->spread = spread;
    bb_scratch_end(scratch);
  }
  return (bb_range){.lo = t->spread->least, .hi = t->spread->most, .nonzero = t->spread->nonzero};
}

static bb_range tensor_range(bb_scalar_walk *w, uint32_t tensor) {
  if (tensor >= w->tensors || w->program->tensor[tensor].role != BB_TENSOR_CONSTANT)
    return BB_RANGE_ANY;
  return data_range(w->program, &w->program->tensor[tensor]);
}

/* The variables of a value that is made from outside: one for each list, shared with its axis. */
static bb_meaning lists_of(const bb_type *type) {
  bb_meaning m = {.row = BB_VAR_LIST + BB_MEAN_LEVELS, .col = BB_VAR_LIST + BB_MEAN_LEVELS + 1};
  for (uint32_t i = 0; i < type->rank && i < BB_MEAN_LEVELS; i++) {
    m.level[i] = (uint8_t)(BB_VAR_LIST + type->rank - 1 - i);
    if (type->level[i].axis == BB_AXIS_ROW) m.row = m.level[i];
    if (type->level[i].axis == BB_AXIS_COL) m.col = m.level[i];
  }
  return m;
}

/* A value about which nothing is known but the variables it depends on. */
void bb_mean_opaque(bb_scalar_walk *w, const bb_type *type, const bb_meaning *like, bb_range range,
                    bb_meaning *m) {
  uint8_t index[BB_MEAN_LEVELS + 2];
  bb_scalar leaf = {.dtype = type->item.dtype, .source = w, .range = range, .index = index};
  *m = like ? *like : lists_of(type);
  for (uint32_t i = 0; i < type->rank && i < BB_MEAN_LEVELS; i++) index[leaf.count++] = m->level[i];
  if (type->item.row != BB_NO_DIM) index[leaf.count++] = m->row;
  if (type->item.col != BB_NO_DIM) index[leaf.count++] = m->col;
  leaf.serial = ++w->opaque;
  m->term = bb_scalar_leaf(w->terms, &leaf);
}

/* The variable of the k-th list over a dim, outermost first. */
static uint32_t variable_of_dim(const bb_type *type, const bb_meaning *m, bb_dim dim, uint32_t k) {
  for (uint32_t i = 0; i < type->rank && i < BB_MEAN_LEVELS; i++)
    if (type->level[i].dim == dim && k-- == 0) return m->level[i];
  return BB_VARS;
}

/* An element of a tensor, by the axes that the tensor has: however the input turns or nests them. */
static void mean_input(bb_scalar_walk *w, const bb_node *node, bb_meaning *m) {
  const bb_type *type = node->out[0].type;
  *m = lists_of(type);
  uint8_t index[BB_MEAN_LEVELS];
  bb_scalar leaf = {.dtype = type->item.dtype,
                    .source = node->access,
                    .range = tensor_range(w, node->tensor),
                    .index = index};
  const bb_access *access = node->access;
  bool known =
      access && access->count == 1 && !access->piece[0].padded && type->rank <= BB_MEAN_LEVELS;
  for (uint32_t a = 0; known && a < access->piece[0].rank; a++) {
    const bb_index *at = &access->piece[0].index[a];
    for (uint32_t d = 0; known && d < bb_index_dims(at); d++) {
      uint32_t k = d && at->tap == at->dim;
      for (uint32_t b = 0; b < a; b++)
        for (uint32_t e = 0; e < bb_index_dims(&access->piece[0].index[b]); e++)
          k += bb_index_dim(&access->piece[0].index[b], e) == bb_index_dim(at, d);
      uint32_t var = variable_of_dim(type, m, bb_index_dim(at, d), k);
      known = var < BB_VARS && leaf.count < BB_MEAN_LEVELS;
      if (known) index[leaf.count++] = (uint8_t)var;
    }
  }
  if (!known) {
    bb_mean_opaque(w, type, NULL, BB_RANGE_ANY, m);
    return;
  }
  if (node->tensor < w->tensors && w->stored[node->tensor]) {
    const bb_scalar *from = w->stored[node->tensor];
    leaf.range = from->range;
    leaf.fault = from->fault;
    leaf.risks = from->risks;
    leaf.risk = from->risk;
  }
  m->term = bb_scalar_leaf(w->terms, &leaf);
}

/* --- loops and reductions --- */

/* The least variable of lists that a value does not have. */
static uint32_t unused_variable(const bb_meaning *m, const bb_type *type) {
  uint64_t used = m->term->free | 1ull << m->row | 1ull << m->col;
  for (uint32_t i = 0; i < type->rank && i < BB_MEAN_LEVELS; i++) used |= 1ull << m->level[i];
  uint32_t var = BB_VAR_LIST;
  while (var + 1 < BB_VAR_BOUND && used >> var & 1) var++;
  return var;
}

static void drop_level(bb_meaning *m, uint32_t at) {
  memmove(m->level + at, m->level + at + 1, BB_MEAN_LEVELS - at - 1);
}

static void rename_variable(bb_scalars *t, bb_meaning *m, const bb_type *type, uint32_t from,
                            uint32_t to) {
  m->term = bb_scalar_substitute(t, m->term, from, to);
  if (m->row == from) m->row = (uint8_t)to;
  if (m->col == from) m->col = (uint8_t)to;
  for (uint32_t i = 0; i < type->rank && i < BB_MEAN_LEVELS; i++)
    if (m->level[i] == from) m->level[i] = (uint8_t)to;
}

/* The fold over one level of a list, or in a loop over variable `var`. */
static const bb_scalar *folded(bb_scalar_walk *w, const bb_monoid *monoid, uint32_t component,
                               uint32_t var, const bb_scalar *body) {
  bb_monoid_id fold = monoid->component ? bb_mean_plain_fold(monoid, component) : monoid->id;
  if (!monoid->component && monoid->components > 1 && component == 0) /* else the index is wrong */
    bb_scalar_blame(w->terms, body, BB_FAULT_HIGH | BB_FAULT_LOW | BB_FAULT_ZERO,
                    "it is compared with others of its row");
  if (monoid->component)
    return fold == BB_MONOID_TUPLE ? NULL
                                   : bb_scalar_fold(w->terms, BB_SCALAR_FOLD, fold, var, body);
  if (fold == BB_MONOID_ARGMAX || fold == BB_MONOID_ARGMAX_LAST) fold = BB_MONOID_MAX;
  if (fold == BB_MONOID_ARGMIN || fold == BB_MONOID_ARGMIN_LAST) fold = BB_MONOID_MIN;
  if (component > 0 || monoid->components > 2) return NULL;
  return bb_scalar_fold(w->terms, BB_SCALAR_FOLD, fold, var, body);
}

static void mean_unknown(bb_mean_level *l, const bb_node *node, bb_meaning *out) {
  for (uint32_t p = 0; p < node->nout; p++)
    bb_mean_opaque(l->walk, node->out[p].type, NULL, BB_RANGE_ANY, &out[p]);
}

/* What one part has of a component: anything with its faults.  Sums of what is small are renewed by
 * factors of at most 1, and are as small. */
static const bb_scalar *part_of(bb_scalar_walk *w, const bb_monoid_component *component,
                                const bb_scalar *term) {
  bb_scalar part = {.dtype = component->dtype, .source = w, .range = BB_RANGE_ANY};
  if (component->low < component->high) {
    part.range.lo = component->low;
    part.range.hi = component->high;
    part.range.nonzero = component->low > 0 || component->high < 0;
  }
  part.fault = term->fault & ~(uint32_t)BB_FAULT_SMALL;
  part.risks = term->risks;
  part.risk = term->risk;
  part.serial = ++w->opaque;
  return bb_scalar_leaf(w->terms, &part);
}

/* Component k of a tuple, folded once: of that the faults are known.  Parts have several. */
static const bb_scalar *combined(bb_scalar_walk *w, const bb_monoid *monoid, uint32_t k,
                                 const bb_scalar *const *term) {
  const bb_scalar *part[2 * BB_MONOID_COMPONENTS] = {NULL};
  for (uint32_t i = 0; i < 2 * monoid->components; i++) {
    uint32_t j = i % monoid->components;
    if (bb_monoid_reads(monoid, k, j)) part[i] = part_of(w, &monoid->component[j], term[j]);
  }
  return bb_mean_expr(w, monoid->component[k].combine, part);
}

/* Is component k made of pairs?  The exps by which parts are renewed are none of the program's. */
static bool folds_pairs(const bb_monoid *monoid, uint32_t k, const bb_scalar *const *term) {
  for (uint32_t j = 0; j < monoid->components; j++)
    if (term[j]->fault & ~(uint32_t)BB_FAULT_SMALL && bb_monoid_reads(monoid, k, j)) return true;
  return false;
}

/* A fold of which no more is known than its faults; `term`: of all components.  `first`: the result of an
 * iteration that was peeled, or NULL. */
static void mean_fold(bb_scalar_walk *w, const bb_monoid *monoid, uint32_t k,
                      const bb_scalar *const *term, const bb_scalar *first, const bb_type *type,
                      bb_meaning *m) {
  const bb_scalar *from[2] = {monoid->component ? combined(w, monoid, k, term) : term[k], first};
  bb_mean_opaque(w, type, m, BB_RANGE_ANY, m);
  bb_scalar faulty = *m->term;
  for (uint32_t i = 0; i < 2 && from[i]; i++) {
    faulty.fault |= from[i]->fault;
    bb_scalar_inherit(w->terms, &faulty, from[i]);
  }
  if (monoid->component && !folds_pairs(monoid, k, term)) faulty.fault &= ~(uint32_t)BB_FAULT_PAIR;
  if (monoid->component && term[k]->fault & BB_FAULT_SMALL) {
    faulty.fault |= BB_FAULT_SMALL;
    bb_scalar_inherit(w->terms, &faulty, term[k]);
  }
  faulty.serial = ++w->opaque;
  m->term = bb_scalar_leaf(w->terms, &faulty);
}

static void mean_reduce(bb_mean_level *l, const bb_node *node, bb_meaning *out) {
  bb_scalar_walk *w = l->walk;
  const bb_scalar *all[BB_MONOID_COMPONENTS];
  for (uint32_t k = 0; k < node->nin; k++)
    all[k] = l->value[node->in[k].src.node][node->in[k].src.port].term;
  for (uint32_t k = 0; k < node->nout; k++) {
    const bb_meaning *in = &l->value[node->in[k].src.node][node->in[k].src.port];
    uint32_t at = node->in[k].level;
    if (bb_type_of(l->graph, node->in[k].src)->rank > BB_MEAN_LEVELS) {
      mean_unknown(l, node, out);
      return;
    }
    out[k] = *in;
    if (node->reduce != BB_REDUCE_FOLD && bb_mean_plain_fold(node->monoid, k) == BB_MONOID_TUPLE) {
      bb_mean_opaque(w, node->out[k].type, in, BB_RANGE_ANY, &out[k]);
      bb_scalar_fold(w->terms, BB_SCALAR_PART, BB_MONOID_ARGMAX, in->level[at], in->term);
      continue;
    }
    if (node->reduce != BB_REDUCE_FOLD) {
      bool before = node->reduce == BB_REDUCE_SCAN_EXCLUSIVE;
      out[k].term = bb_scalar_fold(w->terms, before ? BB_SCALAR_BEFORE : BB_SCALAR_SCAN,
                                   bb_mean_plain_fold(node->monoid, k), in->level[at], in->term);
      continue;
    }
    const bb_scalar *term = folded(w, node->monoid, k, in->level[at], in->term);
    drop_level(&out[k], at);
    if (term)
      out[k].term = term;
    else
      mean_fold(w, node->monoid, k, all, NULL, node->out[k].type, &out[k]);
  }
}

static void walk_level(bb_mean_level *l);

static void mean_map(bb_mean_level *l, const bb_node *node, bb_meaning *out) {
  bb_scalar_walk *w = l->walk;
  bb_mean_level in = {.walk = w, .graph = node->inner, .depth = l->depth + 1};
  uint32_t var = l->depth;
  in.value = BB_NEW(w->arena, bb_meaning *, node->inner->count);
  for (uint32_t p = 0; p < node->nin; p++) {
    bb_value inner = {node->inner->input[p], 0};
    bb_meaning *m = in.value[inner.node] = BB_NEW(w->arena, bb_meaning, 1);
    const bb_type *type = bb_type_of(l->graph, node->in[p].src);
    *m = l->value[node->in[p].src.node][node->in[p].src.port];
    uint32_t at = node->in[p].level;
    if (at == BB_WHOLE) continue;
    if (type->rank > BB_MEAN_LEVELS) {
      bb_mean_opaque(w, bb_type_of(node->inner, inner), NULL, BB_RANGE_ANY, m);
      continue;
    }
    rename_variable(w->terms, m, type, m->level[at], var);
    drop_level(m, at);
  }
  walk_level(&in);
  const bb_scalar **all = BB_NEW(w->arena, const bb_scalar *, (size_t)node->nout + 1);
  for (uint32_t p = 0; p < node->nout; p++) {
    bb_value src = bb_src(node->inner, node->inner->output[p], 0);
    all[p] = in.value[src.node][src.port].term;
  }
  for (uint32_t p = 0; p < node->nout; p++) {
    bb_value src = bb_src(node->inner, node->inner->output[p], 0);
    const bb_type *type = bb_type_of(node->inner, src);
    out[p] = in.value[src.node][src.port];
    if (node->out[p].mode == BB_OUT_COLLECT) {
      uint32_t binder = unused_variable(&out[p], type);
      rename_variable(w->terms, &out[p], type, var, binder);
      memmove(out[p].level + 1, out[p].level, BB_MEAN_LEVELS - 1);
      out[p].level[0] = (uint8_t)binder;
    } else if (node->out[p].mode == BB_OUT_FOLD) {
      const bb_scalar *term =
          folded(w, node->out[p].fold, node->out[p].component, var, out[p].term);
      const bb_in *first = node->out[p].resumes ? &node->in[node->out[p].resumes - 1] : NULL;
      if (term && node->part == BB_PART_ALL)
        out[p].term = term;
      else
        mean_fold(w, node->out[p].fold, node->out[p].component, &all[p - node->out[p].component],
                  first ? l->value[first->src.node][first->src.port].term : NULL, type, &out[p]);
    }
  }
}

static void store_output(bb_mean_level *l, const bb_node *node) {
  bb_scalar_walk *w = l->walk;
  const bb_scalar *term = l->value[node->in[0].src.node][node->in[0].src.port].term;
  if (l->depth == 0 && node->tensor < w->tensors && term->fault) w->stored[node->tensor] = term;
}

static void walk_level(bb_mean_level *l) {
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
    bb_meaning *out = l->value[order[i]] = BB_NEW(w->arena, bb_meaning, (size_t)node->nout + 1);
    switch (node->kind) {
    case BB_NODE_INPUT: mean_input(w, node, out); break;
    case BB_NODE_FUNC: bb_mean_func(l, node, out); break;
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
    if (tensor < w->tensors && w->stored[tensor]) return true;
  }
  return false;
}

bool bb_scalar_walk_concerns(const bb_scalar_walk *w, const bb_graph *root, bool exps) {
  return exps || reads_fault(w, root);
}

void bb_scalar_walk_graph(bb_scalar_walk *w, const bb_graph *root) {
  bb_mean_level l = {.walk = w, .graph = root};
  l.value = BB_NEW(w->arena, bb_meaning *, root->count);
  walk_level(&l);
}
