/* merge.h - what the files of merging axes share (merge.c says what that is). */
#ifndef BB_GRAPH_ARRAY_MERGE_H
#define BB_GRAPH_ARRAY_MERGE_H

#include "lower.h"

/* Lists of numbers, one for each class. */
typedef struct bb_merge_cell {
  uint32_t item, next; /* next: + 1 */
} bb_merge_cell;

typedef struct bb_merge_lists {
  uint32_t *first; /* by class, + 1 */
  uint32_t classes, cells, cell_capacity;
  bb_merge_cell *cell;
} bb_merge_lists;

/* An operand with both as it was before they became one. */
typedef struct bb_merge_operand {
  uint32_t rank;
  const uint32_t *dim, *pair;
} bb_merge_operand;

/* A node that has both, and what its indices are. */
typedef struct bb_merge_site {
  uint32_t node;
  uint32_t *pair;  /* by index: the other one of the pair, BB_NONE: it is in none */
  uint32_t **axis; /* by operand: the other one of each axis's pair, likewise */
  uint32_t apart;  /* a reduction's kept index of a pair whose other one it folds; BB_NONE */
  uint32_t outer;  /* the outer class of that pair */
  bool keeps_outer;
  bool splits; /* a view that cuts the inner one of a pair: it stays, and the pair is cut for it */
  bool cut;    /* it keeps both (merge_cut.c) */
  bb_merge_operand *was; /* then: by operand; rank 0: it stays as it is */
} bb_merge_site;

enum { BB_MERGE_OUTERS = 16 }; /* more that views make of one another are left alone */

typedef struct bb_merger {
  bb_ix *ix;
  bb_arena *scratch, *attempt;    /* of the pass; of one pair of classes */
  bb_merge_lists nodes;           /* that have an index of a class */
  bb_merge_lists behind, before;  /* classes beside it in some axis that was cut */
  bb_merge_lists refused;         /* classes that it cannot be the outer part of one with */
  uint32_t *source, *next_source; /* by array value, by node, + 1: readings of a tensor */
  bb_merge_lists kept;            /* likewise, though nodes in the way kept both */
  uint32_t *seen, seen_capacity, attempts; /* by node: the last attempt that looked at it, ... */
  uint32_t *place, place_capacity;         /* ... and its site, + 1 */
  uint32_t *changed, changes, changed_capacity; /* nodes with a pair that is one class now */
  /* The pair at hand: the inner class, and the outer one with those that views make of it, a join and its parts. */
  uint32_t inner, outers, outer[BB_MERGE_OUTERS], whole[BB_MERGE_OUTERS];
  uint32_t count, capacity;
  bb_merge_site *site;
  bool cuts; /* nodes in the way keep both */
} bb_merger;

static inline int64_t bb_merge_extent(bb_ix *ix, uint32_t class) {
  return bb_extent_value(bb_ix_extent(ix, class));
}

/* Its number among the outer ones; their count: it is none. */
static inline uint32_t bb_merge_outer(const bb_merger *m, uint32_t class) {
  uint32_t o = 0;
  class = bb_ix_find(m->ix, class);
  while (o < m->outers && m->outer[o] != class) o++;
  return o;
}

static inline bool bb_merge_is_outer(const bb_merger *m, uint32_t class) {
  return bb_merge_outer(m, class) < m->outers;
}

static inline bool bb_merge_is_either(const bb_merger *m, uint32_t class) {
  return bb_ix_find(m->ix, class) == m->inner || bb_merge_is_outer(m, class);
}

/* Nodes are found by the classes of their axes. */
void bb_merge_list(bb_merger *m, uint32_t node);

/* --- merge_check.c --- */

/* Pairs the k-th axis over an outer class with the k-th over the inner one.  False: some have no other one. */
bool bb_merge_pair_axes(const bb_merger *m, uint32_t count, const uint32_t *dim, uint32_t *pair);
/* The axis of an operand that has one of a pair; BB_NONE: each pair whole, or none of it. */
uint32_t bb_merge_lone_axis(const bb_merger *m, const bb_ix_node *node, const bb_merge_site *s,
                            uint32_t slot);
/* Joins and slices along an outer class of what has the inner one, too: those that they make of it are outer ones.  False: too many,
 * or none that could be. */
bool bb_merge_add_outers(bb_merger *m, uint32_t node);
/* Looks at a node, which becomes a site if it has both; false: it is in the way. */
bool bb_merge_look_at(bb_merger *m, uint32_t node);

/* The site of a node in the attempt at hand; NULL: it is none. */
bb_merge_site *bb_merge_site_of(const bb_merger *m, uint32_t node);

/* --- merge_cut.c --- */

/* Sites that gain nothing by one class keep both, too.  False: what others read of them would have to be moved. */
bool bb_merge_settle_cuts(bb_merger *m);
/* Before anything changes: gives sites of one class what others keep cut, and notes what those read of the former. */
void bb_merge_join_operands(bb_merger *m);
/* Gives sites that keep both what others have as one now. */
void bb_merge_split_operands(bb_merger *m, const bb_merge_site *site);

/* --- merge_make.c --- */

/* The class that a pair is now. */
uint32_t bb_merge_whole(const bb_merger *m, uint32_t outer);
/* A value as it was with a pair that is one now, its axis `at`: elements of the inner one lie side by side. */
uint32_t bb_merge_split(bb_merger *m, uint32_t value, uint32_t at, uint32_t outer);
/* Makes one class of the pair at hand, at all sites. */
void bb_merge_make(bb_merger *m);

#endif
