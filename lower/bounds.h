/* bounds.h - loops of a tile program bounded by the masks in them.
 *
 * Where a mask compares places affinely (causal, window, band, what lies beyond an extent, and
 * their unions and intersections), the blocks of a loop in which it holds everywhere are run
 * without it, in a stretch of their own; and the blocks in which it holds nowhere are left out,
 * where a proof shows that such a block leaves everything as it was.
 */
#ifndef BB_LOWER_BOUNDS_H
#define BB_LOWER_BOUNDS_H

#include "tile.h"

/* skip: blocks may be left out although NaNs or infinities in them would have been seen. */
void bb_tile_bound(bb_tile_program *program, bool skip);

/* One loop alone, of one stretch; `around`: by variable, the loops that it is within, and itself.
 * Whether it was cut.  *clean: the stretches that statements which stand twice have without masks,
 * in the later one of the two. */
bool bb_tile_bound_loop(bb_tile_program *program, bb_tile_loop *loop, const bb_tile_loop **around,
                        bool skip, uint32_t *clean);

/* Leaves iterations out of a loop that stands within one which was bounded, where they change
 * nothing in the stretches with masks: in the others they hold everywhere.  The loop has one
 * stretch and a constant step. */
void bb_tile_bound_inner(bb_tile_program *program, bb_tile_loop *loop);

/* bounds_ends.c: columns of a tile from some place on change nothing, in an iteration of such a
 * loop. */
typedef struct bb_tile_ends {
  uint32_t tile;      /* BB_NONE: there are no such columns */
  uint32_t stretches; /* of the loop around, in which that is so; 0: in all */
  /* the places of its first row and column, and the place of the first such column; in row r of it they begin at
   * reach + r, or before: reach NULL: that is not known */
  bb_tile_index at[2], end, reach;
} bb_tile_ends;
/* As masks say that end what each row takes, but do not begin it. */
bb_tile_ends bb_tile_find_ends(bb_tile_program *program, bb_tile_loop *loop);

/* bounds_data.c: where a mask is data, iterations that it leaves nothing to do are passed over at
 * run time. strips: the variable of loops whose statements are confined to stretches of the loop
 * around them; BB_NONE: there are none.  Gives a copy with statements of its own, or the program
 * where nothing was to be done, and in strict programs. */
const bb_tile_program *bb_tile_skip(bb_arena *arena, const bb_tile_program *program,
                                    uint32_t strips);

#endif
