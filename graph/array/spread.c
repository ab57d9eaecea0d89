/* spread.c - what an operator picks by, or from, is not written out along axes that it is the same along.
 *
 *     i[b,h,m,n] = f(r[m,n])     y = GatherElements(x, i)     ==>     i[m,n] = f(r[m,n])     y = GatherElements(x, i)
 *
 * The operator wants its operands to have as many axes as it has, and exporters spread those that have fewer.  Its port keeps them
 * all; the value that comes there has those that it needs, and is read again along the others.
 */
#include "lower.h"

#include <string.h>

static bool steps_through(const bb_ix_node *node) {
  return node->op == BB_IX_MISC && node->nin == 2 && !node->misc->domain[0] &&
         strcmp(node->misc->op, "GatherElements") == 0;
}

static bool is_for_steps(const bb_ix *ix, uint32_t value) {
  BB_IX_EACH_USE(ix, value, user, slot)
  if (!steps_through(&ix->node[user])) return false;
  return ix->value[value].uses > 0;
}

/* Marks the indices that an operand or the expression follows; is there another? */
static bool find_needed(const bb_ix *ix, const bb_ix_node *node, bb_arena *scratch, bool *needed) {
  for (uint32_t i = 0; i < node->nin; i++)
    for (uint32_t a = 0; a < bb_ix_rank(ix, node->in[i].value); a++)
      needed[node->in[i].index[a]] = true;
  bb_ix_mark_coordinates(scratch, node->expr, needed);
  for (uint32_t k = 0; k < node->indices; k++)
    if (!needed[k]) return true;
  return false;
}

/* Where an operand is laid out its axes are told apart by their dims, and classes may share one: not if their extents differ. */
static bool may_go(bb_ix *ix, const bb_ix_node *node, const bool *needed) {
  for (uint32_t k = 0; k < node->indices; k++)
    for (uint32_t j = 0; j < node->indices && !needed[k]; j++)
      if (needed[j] && bb_ix_extent(ix, node->dim[k]) == bb_ix_extent(ix, node->dim[j]))
        return false;
  return true;
}

typedef struct renaming {
  bb_program *program;
  const uint32_t *to;
} renaming;

static const bb_expr *rename_coordinate(void *user, const bb_expr *leaf) {
  const renaming *r = user;
  if (leaf->op != BB_X_COORD || leaf->index < BB_COORD_AXIS) return leaf;
  return bb_expr_coord(r->program, BB_COORD_AXIS + r->to[leaf->index - BB_COORD_AXIS]);
}

/* The node without the indices that it does not need, and its uses without these axes. */
static void shrink(bb_ix *ix, uint32_t at, const bool *needed, bb_arena *scratch) {
  bb_ix_node *node = &ix->node[at];
  bb_ix_value *v = &ix->value[node->out[0]];
  uint32_t *to = BB_NEW(scratch, uint32_t, node->indices), rank = 0;
  for (uint32_t k = 0; k < node->indices; k++) to[k] = needed[k] ? rank++ : BB_NONE;
  uint32_t *dim = BB_NEW(ix->arena, uint32_t, rank);
  for (uint32_t k = 0; k < node->indices; k++)
    if (needed[k]) dim[to[k]] = node->dim[k];
  for (uint32_t i = 0; i < node->nin; i++)
    for (uint32_t a = 0; a < bb_ix_rank(ix, node->in[i].value); a++)
      node->in[i].index[a] = to[node->in[i].index[a]];
  BB_IX_EACH_USE(ix, node->out[0], user, slot) {
    uint32_t *index = ix->node[user].in[slot].index;
    for (uint32_t k = 0; k < node->indices; k++)
      if (needed[k]) index[to[k]] = index[k];
  }
  renaming r = {ix->program, to};
  node->expr = bb_expr_map_leaves(ix->program, node->expr, rename_coordinate, &r);
  node->dim = dim, node->indices = rank;
  v->dim = dim, v->rank = rank;
}

/* A node that only hands on its operand goes. */
static void forward(bb_ix *ix, uint32_t at) {
  const bb_ix_node *node = &ix->node[at];
  if (node->nin != 1 || node->expr->op != BB_X_ARG) return;
  uint32_t out = node->out[0], with = node->in[0].value, rank = bb_ix_rank(ix, with);
  const uint32_t *from = node->in[0].index;
  if (rank != node->indices || ix->value[with].dtype != ix->value[out].dtype) return;
  BB_IX_EACH_USE(ix, out, user, slot) {
    uint32_t *index = BB_NEW(ix->arena, uint32_t, rank);
    for (uint32_t a = 0; a < rank; a++) index[a] = ix->node[user].in[slot].index[from[a]];
    bb_ix_unuse(ix, user, slot);
    bb_ix_use(ix, user, slot, with, index);
  }
  bb_ix_sweep(ix, at);
}

void bb_ix_spread_less(bb_ix *ix) {
  bb_arena *scratch = bb_scratch(ix->program->ctx);
  for (uint32_t at = ix->nodes; at-- > 0;) {
    const bb_ix_node *node = &ix->node[at];
    if (node->removed || node->op != BB_IX_ELEMENTWISE || !is_for_steps(ix, node->out[0])) continue;
    bool *needed = BB_NEW(scratch, bool, node->indices + 1);
    if (!find_needed(ix, node, scratch, needed) || !may_go(ix, node, needed)) continue;
    shrink(ix, at, needed, scratch);
    forward(ix, at);
  }
  bb_scratch_end(scratch);
}
