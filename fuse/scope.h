/* scope.h - one level of a block program as the rules and the engine see it: the graph and what is
 * kept beside it while it is being rewritten.
 *
 * A scope keeps a topological order of its level, brought up to date after each rewrite from the
 * level's journal; an index of sibling maps (the users of one value); and, for the engine, the
 * heaps of nodes that still have to be looked at.  Rules read the graph and ask the questions
 * below; they edit the graph alone, and the scope follows.
 */
#ifndef BB_FUSE_SCOPE_H
#define BB_FUSE_SCOPE_H

#include "../graph/program.h"

typedef struct bb_scope bb_scope;

enum { BB_WAKES = 7 }; /* kinds of change */

/* A binary heap of nodes of one scope, least first in its topological order. */
typedef struct bb_heap {
  uint32_t count, capacity;
  uint32_t *at;
  uint32_t slots;
  uint32_t *slot; /* per node: 1 + its place in `at`; 0: not there */
} bb_heap;

/* What a scope knows of each node of its level. */
typedef struct bb_place {
  uint64_t label;             /* grows along the topological order; 0: has no place */
  uint32_t next, prev;        /* the order as a list */
  uint32_t forward, backward; /* epoch of the last walk that came by */
  uint32_t users;             /* the maps that use its values: a treap of siblings.c; 0: none */
  uint32_t peers : 25;        /* maps: in-ports fed by maps over the same dim */
  uint32_t nest : 6;          /* 1 + the op that a loop nest here stands around; 0: not known */
  bool constant : 1;          /* root: depends on constants only, so computed once at load */
  bb_scope *child;            /* maps: the level inside, once it was looked at */
} bb_place;

enum { BB_SCOPE_RULES = 11 };

/* Which rules may match where, as bit sets of their ranks in rules.def. */
typedef struct bb_answers {
  uint32_t kind[BB_NODE_MISC + 1]; /* anchored at a node of this kind */
  uint32_t wake[BB_WAKES];         /* answering to this kind of change (rule.h) */
  uint32_t nests;                  /* anchored at loop nests around one op */
  uint32_t op[BB_OP_COUNT + 1];    /* of those, the ones that want this op */
} bb_answers;

struct bb_scope {
  bb_arena *arena;
  bb_scope *older;  /* the scope made before this one, whether it is still of use or not */
  bb_scope *parent; /* NULL: the root level */
  uint32_t map;     /* the node of the parent's level that this is the inside of */
  uint32_t depth;
  bb_graph *graph;
  bb_journal journal;
  uint32_t capacity;
  bb_place *place;
  uint32_t first, last; /* of the order */
  uint32_t epoch;
  struct bb_siblings *siblings;
  bb_heap pending[BB_SCOPE_RULES]; /* by rank of the rule in rules.def */
  bb_heap children;                /* maps inside which something is pending */
  bb_heap extend, extend_children; /* the same for map extension */
  bool stale;                      /* the level changed since extension was last tried */
  const bb_answers *answers;       /* the engine's */
  uint32_t sibling_rule;           /* whose heap takes maps with a new neighbour; BB_NONE */
};

/* A scope of the level inside node `map` of the parent (of the root: no parent). */
bb_scope *bb_scope_create(bb_arena *arena, bb_scope *parent, uint32_t map, bb_graph *graph);
/* The level may be edited: nobody else holds it or a level around it.  `root` is the variable that
 * holds the root level. */
void bb_scope_own(bb_scope *scope, bb_graph **root);

/* Counts a link between two maps over one dim, or takes it away. */
void bb_scope_link(bb_scope *scope, uint32_t node, uint32_t src, bool linked);
/* Notes whether a new node of the root depends on constants only. */
void bb_scope_learn(bb_scope *scope, uint32_t node);

/* --- questions of rules --- */

static inline bool bb_scope_before(const bb_scope *scope, uint32_t a, uint32_t b) {
  return scope->place[a].label < scope->place[b].label;
}
/* Is there a path from one node to another?  With `indirect`, edges between the two do not
 * count. */
bool bb_scope_reaches(bb_scope *scope, uint32_t from, uint32_t to, bool indirect);
/* The last map before `map`, over the same dim, that uses `src` the same way. */
uint32_t bb_scope_sibling_before(const bb_scope *scope, uint32_t map, bb_value src, uint32_t level);
uint32_t bb_scope_sibling_after(const bb_scope *scope, uint32_t map, bb_value src, uint32_t level);
/* Does the node depend on constants only?  False inside maps: there nothing is known. */
static inline bool bb_scope_constant(const bb_scope *scope, uint32_t node) {
  return scope->place[node].constant;
}

/* --- the order (order.c) --- */

void bb_order_build(bb_scope *scope);
void bb_order_insert_after(bb_scope *scope, uint32_t node, uint32_t after); /* BB_NONE: first */
void bb_order_remove(bb_scope *scope, uint32_t node);
/* Makes src come before node.  Nodes that move leave and enter the heaps and the sibling index. */
void bb_order_edge(bb_scope *scope, uint32_t src, uint32_t node);

/* --- sibling maps (siblings.c) --- */

struct bb_siblings *bb_siblings_create(bb_arena *arena);
/* A map takes list `level` of a value, or does so no more. */
void bb_siblings_add(bb_scope *scope, uint32_t map, bb_value src, uint32_t level);
void bb_siblings_remove(bb_scope *scope, uint32_t map, bb_value src, uint32_t level);
/* Out of the index and back in, around a change of the map's place. */
void bb_siblings_lift(bb_scope *scope, uint32_t map);
void bb_siblings_drop(bb_scope *scope, uint32_t map);
/* The map after this one in the group has a new neighbour: it must be looked at again. */
void bb_siblings_wake(bb_scope *scope, uint32_t map, bb_value src, uint32_t level);

/* --- heaps (heap.c) --- */

void bb_heap_push(bb_scope *scope, bb_heap *heap, uint32_t node); /* nothing if there already */
void bb_heap_remove(bb_scope *scope, bb_heap *heap, uint32_t node);
uint32_t bb_heap_pop(bb_scope *scope, bb_heap *heap); /* BB_NONE: empty */
static inline bool bb_heap_has(const bb_heap *heap, uint32_t node) {
  return node < heap->slots && heap->slot[node];
}

#endif
