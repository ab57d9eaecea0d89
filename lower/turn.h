/* turn.h - blocks with rows for columns. */
#ifndef BB_LOWER_TURN_H
#define BB_LOWER_TURN_H

#include "tile.h"

/* Nests of loads, maps and stores alone take their blocks the other way round, in place, where that lies in memory so.
 * Does the last one?  Views of panels are left alone, and so is what asks, folds or multiplies. */
bool bb_tile_turn(bb_tile_program *program);

#endif
