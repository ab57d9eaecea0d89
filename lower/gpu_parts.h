/* gpu_parts.h - a summing loop of a tile program, in parts that are merged. */
#ifndef BB_LOWER_GPU_PARTS_H
#define BB_LOWER_GPU_PARTS_H

#include "gpu_rolling.h"

typedef struct bb_parts {
  bb_gpu *g;
  bb_tile_body *core;
  uint32_t loop; /* the serial loop's place in it */
  bb_rolling rolling;
  bool pivots; /* sums are relative to rolling.r */
  uint32_t count, tile[BB_TILE_OPERANDS];
  uint32_t inside; /* statements of the core that every part runs */
  const bb_tile_monoid *monoid;
} bb_parts;

/* What the loop of `core` carries. */
void bb_parts_find_carried(bb_parts *q);
/* And how parts of it are joined.  Refuses a loop that carries what is no sum. */
void bb_parts_find(bb_parts *q);
/* Behind bb_gpu_partials(): sums that lanes hold in parts are made whole before the merge, which
 * then reads the whole ones. */
void bb_parts_settle(bb_parts *q);
/* A vector that is only turned behind the loop is turned before the merge: what stands behind it
 * then goes element by element. */
void bb_parts_turn(bb_parts *q);
/* Refuses statements behind the parts that read what these have, but for what is merged. */
void bb_parts_leave(const bb_parts *q);
/* The loop, over blocks of a cluster: as many parts as make about `fill` blocks of the grid, or
 * `fill_by_twos` where they are two, at most `most`. */
void bb_parts_split(bb_parts *q, int64_t fill, int64_t fill_by_twos, int64_t most);

/* gpu_side.c.  Tiles on their side: all of them; or those of results that the loop sums of products of loaded blocks, and what
 * stands behind it.  Refuses other loops. */
void bb_gpu_turn_all(bb_gpu *g);
void bb_gpu_turn_results(bb_parts *q);
/* Before that: statements of the core that stand before its loop, and that only those behind it read, go there. */
void bb_parts_defer(bb_gpu *g, bb_tile_body *core, uint32_t *loop);

/* Of indices. */
bb_tile_index bb_parts_number(const bb_parts *q, int64_t value);
bb_tile_index bb_parts_make(const bb_parts *q, bb_expr_op op, bb_tile_index a, bb_tile_index b);
/* Iterations of the loops over the grid. */
bb_tile_index bb_parts_grid_blocks(const bb_parts *q);
/* A parallel loop from 0, whose iterations leave parts. */
bb_tile_stmt *bb_parts_loop(bb_parts *q, bb_tile_index to, bb_tile_spread spread);

#endif
