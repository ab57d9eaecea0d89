/* merge.h - what the fusion of two maps has in common, whether one feeds the other or not. */
#ifndef BB_RULES_MERGE_H
#define BB_RULES_MERGE_H

#include "rule.h"

/* Do both maps run all iterations? */
bool bb_both_whole(const bb_graph *graph, uint32_t a, uint32_t b);
/* Are both computed at load, or both at each run?  What is computed at load stays apart. */
bool bb_same_time(const bb_scope *scope, uint32_t a, uint32_t b);
/* Does the map collect, and does the other iterate, every value that passes from one to the other? */
bool bb_passes_elements(const bb_graph *graph, uint32_t from, uint32_t to, const char **why);
/* Makes one map of two over the same dim, which may be fused. */
void bb_merge_maps(bb_graph *graph, uint32_t first, uint32_t second);
/* The same, the first one staying: where `count` values inside the second are in the first now. */
void bb_merge_into_first(bb_graph *graph, uint32_t first, uint32_t second, uint32_t count,
                         bb_value *value);

#endif
