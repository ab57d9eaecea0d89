/* schedule_parts.h - what the lowering of maps and that of their folded out-ports share: the values of a level,
 * and a map at work.
 */
#ifndef BB_LOWER_SCHEDULE_PARTS_H
#define BB_LOWER_SCHEDULE_PARTS_H

#include "build.h"

typedef struct level {
  const bb_site *site;
  bb_build_value **value; /* by node and port; set beforehand: where it is to lie */
  uint32_t **into;        /* by node and port: the accumulator that a sum is added to, or BB_NONE */
  const bb_renewal *renewal; /* of the fold around, or NULL */
  uint32_t *component;       /* by node: whose term it makes, or BB_NONE */
} level;

static inline bb_build_value *value_of(const level *l, bb_value v) {
  return &l->value[v.node][v.port];
}

typedef struct map {
  const bb_node *node;
  const bb_site_node *at;
  level *outer;
  level inner;
  uint32_t index; /* of the node in its level */
  bb_build_loop *loop;
  bb_loop_options options;
  uint32_t *acc;  /* by out-port: FOLD of items */
  uint32_t start; /* what stands in the body around before the loop */
} map;

static inline bb_value inner_source(const map *m, uint32_t port) {
  const bb_graph *graph = m->inner.site->graph;
  return bb_src(graph, graph->output[port], 0);
}

static inline bb_build_value *inner_result(const map *m, uint32_t port) {
  return value_of(&m->inner, inner_source(m, port));
}

static inline bb_build_value *result(const map *m, uint32_t port) {
  return &m->outer->value[m->index][port];
}

static inline const bb_build_value *resumed(const map *m, uint32_t port) {
  if (m->node->part != BB_PART_REST) return NULL;
  return value_of(m->outer, m->node->in[m->node->out[port].resumes - 1].src);
}

static inline bb_nest out_nest(const map *m, uint32_t port) {
  return (bb_nest){m->at->tie[port], false, BB_NO_DIM, NULL};
}

/* --- schedule_acc.c --- */

/* Makes the accumulator of a folded out-port, before the loop; of lists of items that loops further out
 * cut it begins in bb_schedule_begin_late(), once the loop has been lowered. */
void bb_schedule_begin_fold(bb_build *b, map *m, uint32_t port);
void bb_schedule_begin_late(bb_build *b, const map *m, uint32_t port);
/* Adds what an iteration made, for all components of a fold; gives how many there are. */
uint32_t bb_schedule_fold(bb_build *b, map *m, uint32_t port);
/* Which products, and sums of an inner map, are added to a sum where they are made; which terms are made renewed. */
void bb_schedule_add_terms(map *m);
void bb_schedule_renew_terms(bb_build *b, map *m);

#endif
