/* mates.h - blocks of neighbouring iterations of the grid: which iterations of a serial loop both go through. */
#ifndef BB_LOWER_MATES_H
#define BB_LOWER_MATES_H

#include "tile.h"

/* Of blocks at neighbouring iterations of `along`, which `around` are the loops around, outermost first: how many iterations of the
 * serial loop the later one goes through before those that both go through alike, none or one.  -1: theirs differ in another
 * way, or by more, or it is not known. */
int bb_mates_lead(const bb_tile_loop *serial, const bb_tile_loop *along,
                  const bb_tile_loop *const *around, uint32_t count);

#endif
