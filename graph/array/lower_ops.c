/* lower_ops.c - the block subgraphs of contractions and reductions, unfused (the paper's Table 2): one nest of
 * maps at the root, and for a reduction two, the second one folding what the first collected.
 */
#include "lower.h"

#include <string.h>

/* --- contraction --- */

static void dot_body(bb_nest *nest, bb_graph *graph, const bb_value *in, bb_value *out) {
  const bb_dtype *dtype = nest->user;
  bool wide = *dtype != bb_type_of(graph, in[0])->item.dtype;
  out[0] =
      bb_func_add(graph, BB_OP_DOT, wide ? bb_op_wide_sum(graph->program, *dtype) : NULL, 2, in);
}

/* Rows from the left operand, columns from the right one, the sum along both operands' columns. */
void bb_lower_contract(bb_lower *l, bb_ix_node *node) {
  bb_product_axes axes = bb_ix_product_axes(l->ix, node);
  bb_role *role = BB_NEW(l->scratch, bb_role, node->indices);
  bb_role *side[2];
  if (axes.row != BB_NONE) role[axes.row] = BB_ROLE_ROW;
  if (axes.col != BB_NONE) role[axes.col] = BB_ROLE_COL;
  for (int i = 0; i < 2; i++) {
    side[i] = BB_NEW(l->scratch, bb_role, node->indices);
    uint32_t own = i == 0 ? axes.row : axes.col;
    if (own != BB_NONE) side[i][own] = BB_ROLE_ROW;
    side[i][axes.sum] = BB_ROLE_COL;
  }
  role[axes.sum] = BB_ROLE_COL; /* the dim itself, not its alias, is looped over */
  bb_dtype dtype = l->ix->value[node->out[0]].dtype;
  bb_nest nest = {.lower = l, .nin = 2, .nout = 1, .body = dot_body, .user = &dtype};
  nest.fold = bb_monoid_get(BB_MONOID_SUM);
  nest.first_fold = bb_ix_rank(l->ix, node->out[0]);
  bb_nest_loops(&nest, node->indices, node->dim, role);
  nest.in = BB_NEW(l->scratch, bb_nest_operand, 2);
  for (uint32_t i = 0; i < 2; i++) nest.in[i] = bb_nest_operand_of(l, node, i, side[i]);
  bb_value out[2];
  bb_nest_build(&nest, l->root, out);
  bb_lower_place(l, node->out[0], out[0], role);
}

/* --- reductions --- */

typedef struct reduction {
  const bb_ix_node *node;
  uint32_t rank;
} reduction;

/* The index along all reduced axes, outer to inner, from the one along the innermost. */
static const bb_expr *flat_index(bb_nest *nest, const reduction *r) {
  bb_program *p = nest->lower->program;
  const bb_expr *index = NULL;
  uint32_t last = nest->loops - 1;
  for (uint32_t k = r->rank; k <= last; k++) {
    const bb_expr *here = k == last ? bb_expr_arg(p, BB_I64, 0)
                                    : bb_expr_coord(p, BB_COORD_MAP + nest->loops - 1 - k);
    const bb_expr *extent = bb_expr_extent(p, nest->dim[k]);
    if (index) index = bb_expr_make(p, BB_X_MUL, index, extent, NULL);
    index = index ? bb_expr_make(p, BB_X_ADD, index, here, NULL) : here;
  }
  return index;
}

static void reduce_body(bb_nest *nest, bb_graph *graph, const bb_value *in, bb_value *out) {
  const reduction *r = nest->user;
  if (!bb_lower_folds_rows(nest->lower, r->node)) {
    bb_dtype dtype = bb_type_of(graph, in[0])->item.dtype;
    const bb_expr *same = bb_expr_arg(nest->lower->program, dtype, 0);
    out[0] = bb_func_add(graph, BB_OP_ELEMENTWISE, same, 1, in);
    return;
  }
  out[0] = bb_func_add(graph, bb_monoid_row_op(r->node->monoid->id), NULL, 1, in);
  if (nest->nout == 1) return;
  out[1] = (bb_value){out[0].node, 1};
  const bb_expr *index = flat_index(nest, r);
  if (index->op != BB_X_ARG) out[1] = bb_func_add(graph, BB_OP_ELEMENTWISE, index, 1, &out[1]);
}

bool bb_lower_folds_rows(bb_lower *l, const bb_ix_node *node) {
  return bb_lower_blocked(l, node->dim[node->indices - 1]);
}

bb_role *bb_lower_reduce_roles(bb_lower *l, const bb_ix_node *node) {
  uint32_t rank = bb_ix_rank(l->ix, node->out[0]), row = BB_NONE;
  bb_role *role = BB_NEW(l->scratch, bb_role, node->indices);
  for (uint32_t i = 0; i < node->nin; i++) bb_lower_force(l, node->in[i].value);
  const bb_placed *p = &l->placed[node->in[0].value];
  if (!bb_lower_folds_rows(l, node)) {
    bb_lower_natural_roles(l, rank, node->dim, role);
    for (uint32_t a = 0; p->made && a < bb_ix_rank(l->ix, node->in[0].value); a++)
      if (node->in[0].index[a] < rank) role[node->in[0].index[a]] = p->role[a];
    return role;
  }
  for (uint32_t k = 0; k < rank; k++)
    if (bb_lower_blocked(l, node->dim[k])) row = k;
  for (uint32_t a = 0; p->made && a < bb_ix_rank(l->ix, node->in[0].value); a++)
    if (p->role[a] != BB_ROLE_LOOP && node->in[0].index[a] < rank) row = node->in[0].index[a];
  if (row != BB_NONE) role[row] = BB_ROLE_ROW;
  role[node->indices - 1] = BB_ROLE_COL;
  return role;
}

/* Axes of the loops that will be folded belong to no item: they list partial results. */
void bb_lower_reduce(bb_lower *l, bb_ix_node *node) {
  uint32_t value = node->out[0], rank = bb_ix_rank(l->ix, value);
  bb_role *role = bb_lower_reduce_roles(l, node);
  reduction r = {node, rank};
  bb_nest nest = {.lower = l, .nin = 1, .body = reduce_body, .user = &r};
  nest.nout = node->monoid->components;
  bb_nest_loops(&nest, node->indices, node->dim, role);
  for (uint32_t k = rank; k < node->indices; k++) ((bb_axis *)nest.axis)[k] = BB_AXIS_NONE;
  nest.in = bb_nest_operands(l, node, role);
  bb_pending *pending = &l->pending[value];
  *pending = (bb_pending){.is = true, .kept = rank, .folds = node->indices - rank};
  bb_nest_build(&nest, l->root, pending->partial);
  l->placed[value].role = role;
  l->folded[value] = true;
}

bb_value bb_lower_fold_levels(bb_lower *l, bb_graph *graph, const bb_monoid *monoid, uint32_t folds,
                              bb_value *partial, uint32_t port) {
  uint32_t parts = monoid->components;
  if (folds > 1) {
    bb_dim dim = bb_type_of(graph, partial[0])->level[0].dim;
    uint32_t map = bb_map_add(graph, dim);
    bb_value inner[BB_MONOID_COMPONENTS];
    for (uint32_t c = 0; c < parts; c++) inner[c] = bb_map_in(graph, map, partial[c], 0);
    bb_graph *inside = graph->node[map]->inner;
    bb_value folded = bb_lower_fold_levels(l, inside, monoid, folds - 1, inner, 0);
    for (uint32_t c = 0; c < parts; c++)
      partial[c] =
          bb_map_collect(graph, map, (bb_value){folded.node, folded.port + c}, BB_AXIS_NONE);
  }
  bb_value out = bb_reduce_add(graph, monoid, BB_REDUCE_FOLD, 0, parts, partial);
  out.port += port;
  return out;
}

/* A nest that folds pending values of one shape, and may go on with them. */
typedef struct folding {
  bb_ix_node *node;          /* the elementwise op on them, or NULL */
  const uint32_t *at;        /* with it: the loop of each of its indices */
  const bb_role *index_role; /* their roles */
  uint32_t count;            /* of operands; pending ones among them */
  const uint32_t *value;
  const uint32_t *first; /* operand i's first port of the nest */
  const bb_role *role;   /* of each loop */
  uint32_t results;
  const uint32_t *result; /* operands that are results of the nest too */
} folding;

static void folding_body(bb_nest *nest, bb_graph *graph, const bb_value *in, bb_value *out) {
  bb_lower *l = nest->lower;
  const folding *f = nest->user;
  bb_value *item = BB_NEW(l->scratch, bb_value, f->count);
  uint32_t made = 0;
  for (uint32_t i = 0; i < f->count; i++) {
    const bb_pending *pending = &l->pending[f->value[i]];
    item[i] = in[f->first[i]];
    if (!pending->is) continue;
    const bb_monoid *monoid = bb_ix_node_of(l->ix, f->value[i])->monoid;
    bb_value partial[2] = {in[f->first[i]], in[f->first[i] + monoid->components - 1]};
    item[i] =
        bb_lower_fold_levels(l, graph, monoid, pending->folds, partial, monoid->components - 1);
  }
  for (uint32_t r = 0; r < f->results; r++) out[made++] = item[f->result[r]];
  bb_lower_places at = {l, nest->loops, f->index_role, f->at};
  if (f->node) out[made++] = bb_lower_apply(graph, f->node->expr, &at, f->count, item);
}

bb_nest_operand bb_nest_in_order(bb_lower *l, bb_value src, uint32_t loops, const uint32_t *index,
                                 const uint32_t *level) {
  bb_nest_operand in = {.value = src, .loops = loops};
  in.level = BB_NEW(l->scratch, uint32_t, loops);
  for (uint32_t a = 0; a < loops; a++) in.level[index[a]] = level ? level[a] : a;
  return in;
}

/* Builds the nest: operands, then its results recorded. */
static void build_folding(bb_lower *l, folding *f, uint32_t loops, const uint32_t *dim,
                          const uint32_t *const *index) {
  bb_nest nest = {.lower = l, .body = folding_body, .user = f};
  uint32_t *first = BB_NEW(l->scratch, uint32_t, f->count);
  nest.in = BB_NEW(l->scratch, bb_nest_operand, 2 * (size_t)f->count);
  for (uint32_t i = 0; i < f->count; i++) {
    const bb_pending *pending = &l->pending[f->value[i]];
    first[i] = nest.nin;
    if (pending->is) {
      uint32_t parts = bb_ix_node_of(l->ix, f->value[i])->monoid->components;
      for (uint32_t c = 0; c < parts; c++)
        nest.in[nest.nin++] = bb_nest_in_order(l, pending->partial[c], loops, index[i], NULL);
      continue;
    }
    bb_role *want = BB_NEW(l->scratch, bb_role, loops);
    for (uint32_t a = 0; a < loops; a++) want[a] = f->role[index[i][a]];
    const bb_placed *p = bb_lower_fetch(l, f->value[i], want);
    nest.in[nest.nin] = bb_nest_in_order(l, p->src, loops, index[i], p->level);
    nest.in[nest.nin++].turned = p->turned;
  }
  f->first = first;
  nest.nout = f->results + (f->node != NULL);
  bb_nest_loops(&nest, loops, dim, f->role);
  bb_value *out = BB_NEW(l->scratch, bb_value, (size_t)nest.nout + 2);
  bb_nest_build(&nest, l->root, out);
  for (uint32_t r = 0; r < f->results; r++) {
    uint32_t value = f->value[f->result[r]];
    const uint32_t *at = index[f->result[r]];
    bb_role *role = BB_NEW(l->scratch, bb_role, loops);
    for (uint32_t a = 0; a < loops; a++) role[a] = f->role[at[a]];
    bb_lower_place(l, value, out[r], role);
    for (uint32_t a = 0; a < loops; a++) l->placed[value].level[a] = at[a];
    l->pending[value].is = false;
  }
  if (f->node) {
    bb_lower_place(l, f->node->out[0], out[f->results], f->index_role);
    memcpy(l->placed[f->node->out[0]].level, f->at, loops * sizeof *f->at);
    l->folded[f->node->out[0]] = true;
  }
}

void bb_lower_force(bb_lower *l, uint32_t value) {
  if (!l->pending[value].is) return;
  uint32_t rank = bb_ix_rank(l->ix, value), none = 0;
  uint32_t *index = BB_NEW(l->scratch, uint32_t, rank);
  for (uint32_t a = 0; a < rank; a++) index[a] = a;
  folding f = {.count = 1, .value = &value, .role = l->placed[value].role, .results = 1};
  f.result = &none;
  build_folding(l, &f, rank, l->ix->value[value].dim, (const uint32_t *const *)&index);
}

/* May the elementwise node stand in the nest that folds its pending operands?  All its operands are
 * folded values with all its indices, in the same roles. */
static bool joins(bb_lower *l, const bb_ix_node *node, bb_role *role) {
  bool any = false;
  for (uint32_t i = 0; i < node->nin; i++) {
    uint32_t value = node->in[i].value;
    if (!l->folded[value] || bb_ix_rank(l->ix, value) != node->indices) return false;
    if (!l->pending[value].is) continue;
    const bb_role *own = l->placed[value].role;
    for (uint32_t a = 0; a < node->indices; a++) {
      if (any && role[node->in[i].index[a]] != own[a]) return false;
      if (!any) role[node->in[i].index[a]] = own[a];
    }
    any = true;
  }
  return any;
}

/* The loops as the first pending operand has its axes. */
static uint32_t *order_of_pending(bb_lower *l, const bb_ix_node *node) {
  uint32_t i = 0, *at = BB_NEW(l->scratch, uint32_t, node->indices);
  while (!l->pending[node->in[i].value].is) i++;
  for (uint32_t a = 0; a < node->indices; a++) at[node->in[i].index[a]] = a;
  return at;
}

bool bb_lower_join_pending(bb_lower *l, bb_ix_node *node) {
  bb_role *role = BB_NEW(l->scratch, bb_role, node->indices),
          *of_loop = BB_NEW(l->scratch, bb_role, node->indices);
  if (!joins(l, node, role)) return false;
  uint32_t *value = BB_NEW(l->scratch, uint32_t, node->nin),
           *result = BB_NEW(l->scratch, uint32_t, node->nin);
  const uint32_t **index = BB_NEW(l->scratch, const uint32_t *, node->nin);
  folding f = {.node = node, .count = node->nin, .value = value, .role = of_loop, .result = result};
  f.at = order_of_pending(l, node);
  f.index_role = role;
  for (uint32_t k = 0; k < node->indices; k++) of_loop[f.at[k]] = role[k];
  bb_ix_node made = bb_lower_reordered(l, node, f.at);
  for (uint32_t i = 0; i < node->nin; i++) {
    value[i] = node->in[i].value;
    index[i] = made.in[i].index;
    bool seen = false;
    for (uint32_t k = 0; k < i; k++) seen |= value[k] == value[i];
    if (l->pending[value[i]].is && !seen && l->ix->value[value[i]].uses > 1)
      result[f.results++] = i;
  }
  build_folding(l, &f, node->indices, made.dim, index);
  return true;
}
