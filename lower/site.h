/* site.h - the levels of a block program, once for each place where they stand, with the block sizes
 * of their loops.
 *
 * Block sizes belong to loops, not to dims: a list that chunks an axis of its item is stored
 * unblocked and can be split anew.  Loops must agree only where a list has one element for each
 * block, partial results along a dim that the item lacks.
 */
#ifndef BB_LOWER_SITE_H
#define BB_LOWER_SITE_H

#include "schedule.h"

typedef struct bb_site bb_site;

typedef struct bb_site_node {
  uint32_t **tie; /* per out-port: of each level of its type */
  bb_site *inner; /* MAP */
  uint32_t loop;  /* MAP: its tie; see bb_site_block() */
} bb_site_node;

struct bb_site {
  const bb_graph *graph;
  uint32_t count;
  uint32_t *order;
  bb_site_node *node; /* by index */
};

typedef struct bb_sites {
  bb_program *program;
  bb_arena *arena;
  const bb_schedule_options *options;
  uint32_t ties, capacity;
  struct bb_tie *tie;
  bb_site *root;
} bb_sites;

/* Is it a running sum, which tiles have a step for? */
static inline bool bb_site_sums(const bb_node *node) {
  return bb_op_has_monoid(node->op) && node->op != BB_OP_ROW_FOLD &&
         node->rows->id == BB_MONOID_SUM;
}

void bb_sites_make(bb_sites *sites, const bb_graph *root);
/* Elements of one iteration of a loop, or of an element of a list of partial results. */
int64_t bb_site_block(bb_sites *sites, uint32_t tie);
/* A tie of its own, for a loop that no map is. */
uint32_t bb_site_tie(bb_sites *sites, bb_dim dim);

#endif
