/* view.h - one level of a block program as a graph of igraph, for questions about the whole of it.
 *
 * The view is a snapshot: it does not see later edits.  Vertices are the level's live nodes, an
 * edge goes from a node to each of its users.  Answers are by node index of the level.  Every call
 * may fail the context: when memory runs out, or when igraph finds a defect of its own.
 */
#ifndef BB_GRAPH_VIEW_H
#define BB_GRAPH_VIEW_H

#include "graph.h"

typedef struct bb_view bb_view;

/* Deferred: the view dies with the innermost bb_protect(), or earlier by bb_view_end(). */
bb_view *bb_view_create(const bb_graph *graph);
void bb_view_end(bb_view *view);

typedef enum bb_direction { BB_DOWNSTREAM, BB_UPSTREAM } bb_direction; /* to users, to operands */

/* reached[node]: can it be reached from one of the `count` nodes of `from`, those included?  It has
 * room for graph->count. */
void bb_view_reach(bb_view *view, uint32_t count, const uint32_t *from, bb_direction direction,
                   bool *reached);
/* Does every path between two nodes of the set stay inside it? */
bool bb_view_is_convex(bb_view *view, uint32_t count, const uint32_t *set);
/* dominator[node]: the last node that every path from the level's sources to it passes (UPSTREAM:
 * from it to the level's sinks, seen from the sinks); BB_NONE: there is none. */
void bb_view_dominators(bb_view *view, bb_direction direction, uint32_t *dominator);
/* False if there is a cycle; order has room for graph->live. */
bool bb_view_topological(bb_view *view, uint32_t *order);

/* Are two levels of one program, with all inside, isomorphic as labelled graphs?  An oracle for
 * bb_graph_equal(), which must agree; its time is not bounded well. */
bool bb_view_isomorphic(const bb_graph *a, const bb_graph *b);

#endif
