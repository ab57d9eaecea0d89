/* held.h - blocks that a loop leaves in their tile for the loops behind it. */
#ifndef BB_LOWER_HELD_H
#define BB_LOWER_HELD_H

#include "tile.h"

/* Loads of loops that follow each other in a task, of the same block wherever their variables are the same, give one
 * tile.  In place. */
void bb_tile_hold(bb_tile_program *program);

/* Do such loads alone write a tile, those of several loops?  Then one for the value of its loop's variable that the load
 * before it had has nothing to do. */
bool bb_tile_is_held(const bb_tile_program *program, uint32_t tile);

#endif
