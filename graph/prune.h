/* prune.h - pruning one map; bb_graph_prune() of graph.h prunes a level. */
#ifndef BB_GRAPH_PRUNE_H
#define BB_GRAPH_PRUNE_H

#include "graph.h"

/* Removes ports of a map that nothing uses, and what nothing uses in the level inside it, unless
 * others hold that level. */
void bb_map_prune(bb_graph *graph, uint32_t map);

#endif
