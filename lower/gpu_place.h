/* gpu_place.h - what the parts share that place a tile program on a GPU: gpu_place.c,
 * gpu_registers.c, gpu_grid.c, gpu_pairs.c.
 */
#ifndef BB_LOWER_GPU_PLACE_H
#define BB_LOWER_GPU_PLACE_H

#include "gpu.h"

typedef struct bb_gpu_placer {
  bb_gpu *g;
  bb_tile_program *p;
  bb_tile_body *core; /* around the serial loop, or all there is */
  uint32_t at;        /* of the serial loop in it; count: none */
  bb_tile_loop *serial;
  uint32_t groups;
  bool staged;
  bool stands;   /* an operand stays where it was copied before the loop: one result a block */
  bool persists; /* a block takes several parts of the grid, one after the other */
  bool *loaded;
} bb_gpu_placer;

enum { BB_GPU_GROUP_ROWS = 64 }; /* of a warp group's product */

static inline uint32_t bb_gpu_group_rows(const bb_gpu_placer *placer) {
  return placer->g->warps ? placer->g->rows : BB_GPU_GROUP_ROWS;
}

/* gpu_registers.c.  Of a thread that computes, with what is no tile. */
uint32_t bb_gpu_registers_needed(const bb_gpu_placer *placer);
/* Beside them: a loop's values of columns come by threads' own loads, all in flight at once, each with its address and a test of whether
 * it is within the array.  What could as well stay in shared memory is not held where these want the room. */
uint32_t bb_gpu_registers_in_flight(const bb_gpu_placer *w);
/* Does it compute blocks by functions of many operations, as erf? */
bool bb_gpu_has_long(const bb_gpu_placer *placer);

/* gpu_grid.c.  Does the serial loop's length depend on a variable? */
bool bb_gpu_varies_with(const bb_gpu_placer *placer, uint32_t variable);
/* The loops around the core go over the grid: their order, and what blocks take one after the
 * other. */
void bb_gpu_schedule_grid(bb_gpu_placer *placer);
/* A loop over the grid, of a new variable. */
bb_tile_stmt *bb_gpu_loop_over(bb_gpu_placer *placer, bb_tile_index from, bb_tile_index to,
                               bb_tile_index step);

/* gpu_pairs.c: neighbours that load in pairs; where blocks are persistent, and where their loops have stages. */
void bb_gpu_pair_plain(bb_gpu_placer *placer);
void bb_gpu_pair_staged(bb_gpu_placer *placer);

#endif
