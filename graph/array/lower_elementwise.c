/* lower_elementwise.c - the block subgraph of an elementwise operator, unfused: one nest of maps at the root, or a
 * part of the nest that folds what it is computed from.
 */
#include "lower.h"

#include <string.h>

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

static const bb_expr *place_leaf(void *user, const bb_expr *leaf) {
  const bb_lower_places *at = user;
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

bb_value bb_lower_apply(bb_graph *graph, const bb_expr *expr, const bb_lower_places *at,
                        uint32_t count, const bb_value *in) {
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
  bb_lower_places at = {nest->lower, nest->loops, e->role, e->at};
  out[0] = bb_lower_apply(graph, e->expr, &at, nest->nin, in);
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
    if (!bb_lower_folds_rows(l, user)) { /* element by element in all but the lists that it folds */
      bb_role *kept = BB_NEW(l->scratch, bb_role, user->indices);
      if (!wanted_roles(l, user->out[0], kept, depth + 1))
        bb_lower_natural_roles(l, rank, user->dim, kept);
      for (uint32_t a = 0; a < v->rank; a++) role[a] = kept[index[a]];
      return true;
    }
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

bool bb_lower_wanted_roles(bb_lower *l, uint32_t value, bb_role *role) {
  return wanted_roles(l, value, role, 0);
}

void bb_lower_elementwise(bb_lower *l, bb_ix_node *node) {
  if (bb_lower_join_pending(l, node)) return;
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
