/* lower_order.c - the order of the loops of an elementwise nest.
 *
 * A reduction or product loops over what it keeps, then over what it folds.  Elementwise nests before and behind
 * it are to become one with it, so that they take its order, whichever axis it folds along; the others
 * run over their axes as they are stored.
 */
#include "lower.h"

#include <string.h>

/* As an operand with all the indices was computed, element by element or as a product. */
static bool adopted_order(bb_lower *l, const bb_ix_node *node, uint32_t *key) {
  for (uint32_t i = 0; i < node->nin; i++) {
    const bb_placed *p = &l->placed[node->in[i].value];
    bb_ix_op op = p->made ? bb_ix_node_of(l->ix, node->in[i].value)->op : BB_IX_REDUCE;
    if (op != BB_IX_ELEMENTWISE && op != BB_IX_CONTRACT) continue;
    if (bb_ix_rank(l->ix, node->in[i].value) != node->indices) continue;
    for (uint32_t a = 0; a < node->indices; a++) key[node->in[i].index[a]] = p->level[a];
    return true;
  }
  return false;
}

/* The axes that a fold among the operands has, as it has them, then those that it was folded along. */
static bool order_of_fold(bb_lower *l, const bb_ix_node *node, uint32_t *key) {
  uint32_t i = 0;
  while (i < node->nin && !l->folded[node->in[i].value]) i++;
  if (i == node->nin) return false;
  const uint32_t *index = node->in[i].index, rank = bb_ix_rank(l->ix, node->in[i].value);
  for (uint32_t k = 0; k < node->indices; k++) key[k] = rank;
  for (uint32_t a = rank; a-- > 0;) key[index[a]] = a;
  return true;
}

/* As the products that alone use the result loop over it: over what they keep, then over their sum.  What is
 * computed at load is stored as it comes. */
static bool order_of_product(bb_lower *l, const bb_ix_node *node, uint32_t *key) {
  const uint32_t *order = NULL;
  if (l->ix->value[node->out[0]].once) return false;
  BB_IX_EACH_USE(l->ix, node->out[0], n, slot) {
    const bb_ix_node *user = &l->ix->node[n];
    if (user->op != BB_IX_CONTRACT) return false;
    if (order && memcmp(order, user->in[slot].index, node->indices * sizeof *order)) return false;
    order = user->in[slot].index;
  }
  if (order) memcpy(key, order, node->indices * sizeof *key);
  return order != NULL;
}

/* The loop of each index, so that the nests around a reduction can become one. */
uint32_t *bb_lower_loop_order(bb_lower *l, const bb_ix_node *node) {
  uint32_t *key = BB_NEW(l->scratch, uint32_t, node->indices);
  uint32_t *at = BB_NEW(l->scratch, uint32_t, node->indices);
  bool any = adopted_order(l, node, key) ||
             bb_ix_reduction_order(l->ix, node->out[0], l->scratch, key) ||
             order_of_fold(l, node, key) || order_of_product(l, node, key);
  for (uint32_t k = 0; k < node->indices; k++)
    for (uint32_t j = 0; j < node->indices; j++)
      at[k] += any ? key[j] < key[k] || (key[j] == key[k] && j < k) : j < k;
  return at;
}

/* The node with its loops in another order. */
bb_ix_node bb_lower_reordered(bb_lower *l, const bb_ix_node *node, const uint32_t *at) {
  bb_ix_node made = *node;
  uint32_t *dim = BB_NEW(l->scratch, uint32_t, node->indices);
  for (uint32_t k = 0; k < node->indices; k++) dim[at[k]] = node->dim[k];
  made.dim = dim;
  made.in = BB_NEW(l->scratch, bb_ix_operand, node->nin);
  for (uint32_t i = 0; i < node->nin; i++) {
    uint32_t rank = bb_ix_rank(l->ix, node->in[i].value);
    uint32_t *index = BB_NEW(l->scratch, uint32_t, rank);
    for (uint32_t a = 0; a < rank; a++) index[a] = at[node->in[i].index[a]];
    made.in[i] = node->in[i];
    made.in[i].index = index;
  }
  return made;
}
