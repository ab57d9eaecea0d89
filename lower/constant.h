/* constant.h - what a kernel makes of constants alone, in programs of its own that run once, at load.
 *
 * A part is a tile program that reads some of the kernel's views and writes one more, which the kernel
 * reads in place of what stood there.  Nothing is known of a device here but how its products
 * want an operand to lie (bb_panel_constants() asks the CPU's emitter).
 */
#ifndef BB_LOWER_CONSTANT_H
#define BB_LOWER_CONSTANT_H

#include "tile.h"

typedef struct bb_constant_part {
  bb_tile_program *tile;
  uint32_t *view; /* by view of `tile` but for the last: the kernel's */
  uint32_t made;  /* the kernel's view that is the last one of `tile` */
} bb_constant_part;

typedef struct bb_constant_parts {
  bb_arena *arena;      /* the caller's */
  const bool *constant; /* by view that the kernel had at first: it is there at load, and stays */
  uint32_t views;       /* that it had */
  uint32_t count, capacity;
  bb_constant_part *part;
} bb_constant_parts;

/* Takes out what costs more than reading it again: folds and products of constants.  What a part makes
 * is as it was to the last bit.  Keeps the laws of tile programs. */
void bb_part_constants(bb_tile_program *program, bb_constant_parts *parts);

/* Lays blocks of constants out as the CPU's products take them: views of panels (tile.h). */
void bb_panel_constants(bb_tile_program *program, bb_constant_parts *parts);

/* --- what both are made of --- */

/* Does an index depend on loops alone? */
bool bb_index_is_known(const bb_tile_program *program, bb_tile_index index);
/* Iterations of a loop with bounds that are numbers; 0: they are not, or it has none. */
int64_t bb_loop_known_trips(const bb_tile_loop *loop);
/* The view that a part makes, an item for each value of the variables of some loops; both programs get it. */
typedef struct bb_part_loop {
  const bb_tile_loop *loop;
  int64_t from, to, trips; /* from, from + step, ... below `to`, wherever the loops around are */
} bb_part_loop;
typedef struct bb_part_loops {
  uint32_t count;
  bb_part_loop loop[BB_TILE_RANK];
} bb_part_loops;
/* Those of `around`, the loops around a statement from the outermost on, that are `named`; false: the values of one are
 * not known, or the view would have more than BB_TILE_RANK axes with `rank` of its item. */
bool bb_part_find_loops(const bb_tile_program *program, const bb_tile_loop *const *around,
                        const bool *named, uint32_t count, uint32_t rank, bb_part_loops *loops);
/* A part without statements but for its loops, and the body inside them. */
bb_tile_program *bb_part_begin(bb_tile_program *program, const bb_part_loops *loops,
                               bb_tile_body **body);
/* The index of the item that belongs to an iteration of loop k. */
bb_tile_index bb_part_index(bb_tile_program *program, const bb_part_loops *loops, uint32_t k);
/* Numbers variables, tiles and views of a part from 0; adds it. */
void bb_part_end(bb_constant_parts *parts, bb_tile_program *part, uint32_t made);

#endif
