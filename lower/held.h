/* held.h - blocks that a loop leaves in their tile for the loops behind it. */
#ifndef BB_LOWER_HELD_H
#define BB_LOWER_HELD_H

#include "tile.h"

/* Loads of loops that follow each other in a task, of the same block wherever their variables are the same, give one
 * tile, and what a loop before them stores as that block is it.  In place. */
void bb_tile_hold(bb_tile_program *program);

/* Do such loads alone write a tile, those of several loops, or such a loop that stores it and loads of others?  Then a load for
 * the value of its loop's variable that the one before it had has nothing to do. */
bool bb_tile_is_held(const bb_tile_program *program, uint32_t tile);

/* The store of a tile that is held by loads behind it; NULL: it is not held, or is loaded first.  *alone: nothing but those loads
 * reads what is stored. */
const bb_tile_stmt *bb_tile_left_by(const bb_tile_program *program, uint32_t tile, bool *alone);
/* Does a load for which there is nothing to do still have to put its padding around what was stored? */
bool bb_tile_is_bare(const bb_tile_program *program, const bb_tile_stmt *load);

#endif
