/* forward.h - what is stored into a kernel's own memory and loaded again as the tile that it was. */
#ifndef BB_LOWER_FORWARD_H
#define BB_LOWER_FORWARD_H

#include "tile.h"

/* In place.  results: those of the kernel that it reads again are forwarded, too, as threads of a GPU want it.  Drops lists of scratch memory that
 * nobody reads then; now, room for a number for each view: what it is from now on, BB_NONE where it is dropped. */
void bb_tile_forward(bb_tile_program *program, bool results, uint32_t *now);

#endif
