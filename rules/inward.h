/* inward.h - pulling a level into one of its maps: what rules 6 and 7 have in common.
 */
#ifndef BB_RULES_INWARD_H
#define BB_RULES_INWARD_H

#include "rule.h"

/* A level and the map X of it that the rest is to move into. */
typedef struct bb_inward {
  bb_scope *scope;
  bb_graph *graph, *inner;
  uint32_t x;
  bb_arena *scratch;
  bool *stays; /* by node of the level: it does not move; NULL until it is needed */
} bb_inward;

/* Inputs, outputs, what is computed at load, what only a root has, what makes a list that X iterates,
 * other loops that are peeled (their two parts stand side by side), and what is reachable from X: notes
 * that all this stays.  Nodes that already stay keep so, and what
 * is reachable from them. */
void bb_inward_find_staying(bb_inward *v);
/* Whether nothing but outputs is reachable from a map, through ops that finish what it folds. */
bool bb_inward_only_outputs_follow(const bb_graph *graph, const bb_node *map);
/* The two Y-maps, one outside the anchor and one inside, that could be fused if both stood inside; as a
 * match of variant 'a', 'b' or 'c'.  deep: or 'd', the inner one standing in further maps, which only outputs
 * follow. */
bool bb_inward_find_maps(bb_match *match, bool deep);
/* Moves everything that does not stay into X, which is owned. */
void bb_inward_move(bb_inward *v);

#endif
