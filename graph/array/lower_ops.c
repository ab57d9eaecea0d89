/* lower_ops.c - the block subgraph of each operator, unfused (the paper's Table 2): one nest of
 * maps at the root, and for a reduction two, the second one folding what the first collected.
 */
#include "lower.h"

#include <string.h>

void bb_nest_loops(bb_nest *nest, uint32_t count, const uint32_t *class, const bb_role *role) {
  static const bb_axis axes[] = {BB_AXIS_NONE, BB_AXIS_ROW, BB_AXIS_COL};
  bb_dim *dim = BB_NEW(nest->lower->scratch, bb_dim, count);
  bb_axis *axis = BB_NEW(nest->lower->scratch, bb_axis, count);
  for (uint32_t k = 0; k < count; k++) {
    dim[k] = bb_lower_dim(nest->lower, class[k], role[k]);
    axis[k] = axes[role[k]];
  }
  nest->loops = count;
  nest->dim = dim;
  nest->axis = axis;
}

/* --- elementwise --- */

/* Operators that have a block op of their own (the paper's Table 1). */
static bb_op named_op(const bb_expr *expr, bb_graph *graph, uint32_t count, const bb_value *in,
                      bool *swapped) {
  if (count != 2 || (expr->op != BB_X_ADD && expr->op != BB_X_MUL)) return BB_OP_ELEMENTWISE;
  const bb_expr *a = expr->a[0], *b = expr->a[1];
  if (a->op != BB_X_ARG || b->op != BB_X_ARG || a->index == b->index) return BB_OP_ELEMENTWISE;
  bb_item x = bb_type_of(graph, in[0])->item, y = bb_type_of(graph, in[1])->item;
  bool add = expr->op == BB_X_ADD;
  *swapped = false;
  if (x.dtype != y.dtype || x.dtype != expr->dtype) return BB_OP_ELEMENTWISE;
  if (x.row == y.row && x.col == y.col) return add ? BB_OP_ADD : BB_OP_MUL;
  if (x.row == BB_NO_DIM || x.col == BB_NO_DIM) {
    bb_item other = x;
    x = y, y = other;
    *swapped = true;
  }
  if (x.row == BB_NO_DIM || x.col == BB_NO_DIM) return BB_OP_ELEMENTWISE;
  if (y.row == x.row && y.col == BB_NO_DIM) return add ? BB_OP_ROW_SHIFT : BB_OP_ROW_SCALE;
  if (y.col == x.col && y.row == BB_NO_DIM) return add ? BB_OP_COL_SHIFT : BB_OP_COL_SCALE;
  return BB_OP_ELEMENTWISE;
}

/* Where the coordinates of an expression point once its indices are loops. */
typedef struct places {
  bb_lower *l;
  uint32_t loops;
  const bb_role *role;
  const uint32_t *at; /* the loop of each index; NULL: in their order */
} places;

static const bb_expr *place_leaf(void *user, const bb_expr *leaf) {
  const places *at = user;
  bb_program *p = at->l->program;
  if (leaf->op == BB_X_SYMBOL) { /* the extent of a dim, where there is one of that extent */
    bb_dim dim = bb_dim_find(p, p->symbol[leaf->index], strlen(p->symbol[leaf->index]));
    bool plain = dim != BB_NO_DIM && p->dim[dim].extent->factor == 1 &&
                 p->dim[dim].extent->count == 1 && p->dim[dim].extent->symbol[0] == leaf->index;
    return plain ? bb_expr_extent(p, dim) : leaf;
  }
  if (leaf->op != BB_X_COORD || leaf->index < BB_COORD_AXIS) return leaf;
  uint32_t index = leaf->index - BB_COORD_AXIS;
  if (at->role[index] == BB_ROLE_ROW) return bb_expr_coord(p, BB_COORD_ROW);
  if (at->role[index] == BB_ROLE_COL) return bb_expr_coord(p, BB_COORD_COL);
  return bb_expr_coord(p, BB_COORD_MAP + at->loops - 1 - (at->at ? at->at[index] : index));
}

static bb_value apply(bb_graph *graph, const bb_expr *expr, const places *at, uint32_t count,
                      const bb_value *in) {
  bb_lower *l = at->l;
  expr = bb_expr_map_leaves(l->program, expr, place_leaf, (void *)at);
  bool swapped = false;
  bb_op op = named_op(expr, graph, count, in, &swapped);
  bb_value turned[2];
  if (swapped) turned[0] = in[1], turned[1] = in[0], in = turned;
  return bb_func_add(graph, op, op == BB_OP_ELEMENTWISE ? expr : NULL, count, in);
}

typedef struct elementwise {
  const bb_expr *expr;
  const bb_role *role;
  const uint32_t *at;
} elementwise;

static void elementwise_body(bb_nest *nest, bb_graph *graph, const bb_value *in, bb_value *out) {
  const elementwise *e = nest->user;
  places at = {nest->lower, nest->loops, e->role, e->at};
  out[0] = apply(graph, e->expr, &at, nest->nin, in);
}

/* Row and column as the widest computed operand has them, if it has `least` of them; the others follow. */
static bool adopt_roles(bb_lower *l, const bb_ix_node *node, uint32_t least, bb_role *role) {
  const bb_placed *widest = NULL;
  uint32_t most = least - 1, from = 0;
  for (uint32_t i = 0; i < node->nin; i++) {
    const bb_placed *p = &l->placed[node->in[i].value];
    uint32_t axes = 0;
    for (uint32_t a = 0; p->made && a < bb_ix_rank(l->ix, node->in[i].value); a++)
      axes += p->role[a] != BB_ROLE_LOOP;
    if (axes > most) widest = p, most = axes, from = i;
  }
  if (!widest) return false;
  for (uint32_t a = 0; a < bb_ix_rank(l->ix, node->in[from].value); a++)
    role[node->in[from].index[a]] = widest->role[a];
  return true;
}

/* The blocked indices that operands have: only these can be item axes. */
static uint32_t item_indices(bb_lower *l, const bb_ix_node *node, bool *can) {
  uint32_t count = 0;
  for (uint32_t k = 0; k < node->indices; k++) {
    for (uint32_t i = 0; i < node->nin && !can[k]; i++)
      can[k] = bb_ix_follows(l->ix, &node->in[i], k);
    can[k] &= bb_lower_blocked(l, node->dim[k]);
    count += can[k];
  }
  return count;
}

static bool wanted_roles(bb_lower *l, uint32_t value, bb_role *role, uint32_t depth);

/* The roles in which operand `slot` of a node is read: by a product or reduction, or through
 * elementwise nodes by a later one. */
static bool roles_of_use(bb_lower *l, const bb_ix_node *user, uint32_t slot, bb_role *role,
                         uint32_t depth) {
  const bb_ix_value *v = &l->ix->value[user->in[slot].value];
  const uint32_t *index = user->in[slot].index;
  if (user->op == BB_IX_ELEMENTWISE) {
    bb_role *outer = BB_NEW(l->scratch, bb_role, user->indices);
    if (!wanted_roles(l, user->out[0], outer, depth + 1)) return false;
    for (uint32_t a = 0; a < v->rank; a++) role[a] = outer[index[a]];
    return true;
  }
  if (bb_ix_reduces(user)) {
    uint32_t row = BB_NONE, rank = bb_ix_rank(l->ix, user->out[0]);
    for (uint32_t k = 0; k < rank; k++)
      if (bb_lower_blocked(l, user->dim[k])) row = k;
    for (uint32_t a = 0; a < v->rank; a++)
      role[a] = index[a] == user->indices - 1 ? BB_ROLE_COL
                : index[a] == row             ? BB_ROLE_ROW
                                              : BB_ROLE_LOOP;
    return true;
  }
  if (user->op != BB_IX_CONTRACT) return false;
  bb_product_axes axes = bb_ix_product_axes(l->ix, user);
  uint32_t own = slot == 0 ? axes.row : axes.col;
  for (uint32_t a = 0; a < v->rank; a++)
    role[a] = index[a] == axes.sum ? BB_ROLE_COL : index[a] == own ? BB_ROLE_ROW : BB_ROLE_LOOP;
  return true;
}

/* The roles of the first use that has any.  Only what no computed operand settles may choose its
 * item's axes. */
static bool wanted_roles(bb_lower *l, uint32_t value, bb_role *role, uint32_t depth) {
  if (depth == 8) return false;
  BB_IX_EACH_USE(l->ix, value, n, slot) {
    if (roles_of_use(l, &l->ix->node[n], slot, role, depth)) return true;
  }
  return false;
}

/* A vector of inputs alone: which axis would its first user want? */
static bb_role role_of_vector(bb_lower *l, const bb_ix_node *node, uint32_t index) {
  const bb_ix_value *v = &l->ix->value[node->out[0]];
  if (!v->uses) return BB_ROLE_COL;
  const bb_ix_node *user = &l->ix->node[v->first_node];
  uint32_t at = user->in[v->first_slot].index[index];
  if (user->op != BB_IX_ELEMENTWISE) return BB_ROLE_COL;
  for (uint32_t k = at + 1; k < user->indices; k++)
    if (bb_lower_blocked(l, user->dim[k])) return BB_ROLE_ROW;
  return BB_ROLE_COL;
}

static bb_role *elementwise_roles(bb_lower *l, const bb_ix_node *node) {
  bb_role *role = BB_NEW(l->scratch, bb_role, node->indices);
  bool *can = BB_NEW(l->scratch, bool, node->indices);
  uint32_t possible = item_indices(l, node, can), row = BB_NONE, col = BB_NONE;
  /* A block turned around costs more than a vector. */
  if (!adopt_roles(l, node, possible < 2 ? 1 : 2, role)) {
    bool wanted = wanted_roles(l, node->out[0], role, 0);
    for (uint32_t k = 0; k < node->indices; k++)
      if (!can[k]) role[k] = BB_ROLE_LOOP;
    if (!wanted) adopt_roles(l, node, 1, role);
  }
  for (uint32_t k = 0; k < node->indices; k++) {
    if (role[k] == BB_ROLE_ROW) row = k;
    if (role[k] == BB_ROLE_COL) col = k;
  }
  /* Fill the axes that no computed operand settles, innermost first. */
  for (uint32_t k = node->indices; k-- > 0;) {
    if (!can[k] || role[k] != BB_ROLE_LOOP) continue;
    if (possible == 1)
      role[k] = role_of_vector(l, node, k);
    else if (col == BB_NONE)
      role[col = k] = BB_ROLE_COL;
    else if (row == BB_NONE)
      role[row = k] = BB_ROLE_ROW;
  }
  return role;
}

static bool join_pending(bb_lower *l, bb_ix_node *node);

void bb_lower_elementwise(bb_lower *l, bb_ix_node *node) {
  if (join_pending(l, node)) return;
  for (uint32_t i = 0; i < node->nin; i++) bb_lower_force(l, node->in[i].value);
  const bb_role *role = elementwise_roles(l, node);
  const uint32_t *at = bb_lower_loop_order(l, node);
  bb_role *of_loop = BB_NEW(l->scratch, bb_role, node->indices);
  for (uint32_t k = 0; k < node->indices; k++) of_loop[at[k]] = role[k];
  bb_ix_node made = bb_lower_reordered(l, node, at);
  elementwise e = {node->expr, role, at};
  bb_nest nest = {.lower = l, .nin = node->nin, .nout = 1, .body = elementwise_body, .user = &e};
  bb_nest_loops(&nest, node->indices, made.dim, of_loop);
  nest.in = bb_nest_operands(l, &made, of_loop);
  bb_value out[2];
  bb_nest_build(&nest, l->root, out);
  bb_lower_place(l, node->out[0], out[0], role);
  for (uint32_t a = 0; a < node->indices; a++) l->placed[node->out[0]].level[a] = at[a];
}

bb_placed *bb_lower_copy(bb_lower *l, const bb_ix_node *node, uint32_t slot, const bb_role *own) {
  const bb_ix_operand *in = &node->in[slot];
  const bb_ix_value *v = &l->ix->value[in->value];
  uint32_t *dim = BB_NEW(l->scratch, uint32_t, v->rank);
  bb_role *role = BB_NEW(l->scratch, bb_role, v->rank);
  for (uint32_t a = 0; a < v->rank; a++) dim[in->index[a]] = bb_ix_axis(l->ix, in->value, a);
  bb_lower_natural_roles(l, v->rank, dim, role);
  for (uint32_t a = 0; own && a < v->rank; a++) role[in->index[a]] = own[a];
  bb_ix_node copy = {.op = BB_IX_ELEMENTWISE, .nin = 1, .indices = v->rank, .dim = dim};
  copy.in = BB_NEW(l->scratch, bb_ix_operand, 1);
  *copy.in = *in;
  elementwise e = {bb_expr_arg(l->program, v->dtype, 0), role, NULL};
  bb_nest nest = {.lower = l, .nin = 1, .nout = 1, .body = elementwise_body, .user = &e};
  bb_nest_loops(&nest, v->rank, dim, role);
  nest.in = bb_nest_operands(l, &copy, role);
  bb_value out[2];
  bb_nest_build(&nest, l->root, out);
  bb_placed *p = BB_NEW(l->scratch, bb_placed, 1);
  *p = (bb_placed){.made = true, .src = out[0]};
  p->role = BB_NEW(l->scratch, bb_role, v->rank);
  p->level = BB_NEW(l->scratch, uint32_t, v->rank);
  for (uint32_t a = 0; a < v->rank; a++)
    p->level[a] = in->index[a], p->role[a] = role[in->index[a]];
  return p;
}

/* --- contraction --- */

static void dot_body(bb_nest *nest, bb_graph *graph, const bb_value *in, bb_value *out) {
  (void)nest;
  out[0] = bb_func_add(graph, BB_OP_DOT, NULL, 2, in);
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
  bb_nest nest = {.lower = l, .nin = 2, .nout = 1, .body = dot_body};
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
  out[0] = bb_func_add(graph, bb_monoid_row_op(r->node->monoid->id), NULL, 1, in);
  if (nest->nout == 1) return;
  out[1] = (bb_value){out[0].node, 1};
  const bb_expr *index = flat_index(nest, r);
  if (index->op != BB_X_ARG) out[1] = bb_func_add(graph, BB_OP_ELEMENTWISE, index, 1, &out[1]);
}

bb_role *bb_lower_reduce_roles(bb_lower *l, const bb_ix_node *node) {
  uint32_t rank = bb_ix_rank(l->ix, node->out[0]), row = BB_NONE;
  bb_role *role = BB_NEW(l->scratch, bb_role, node->indices);
  for (uint32_t i = 0; i < node->nin; i++) bb_lower_force(l, node->in[i].value);
  const bb_placed *p = &l->placed[node->in[0].value];
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
  places at = {l, nest->loops, f->index_role, f->at};
  if (f->node) out[made++] = apply(graph, f->node->expr, &at, f->count, item);
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

static bool join_pending(bb_lower *l, bb_ix_node *node) {
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
