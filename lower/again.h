/* again.h - what a statement computed already. */
#ifndef BB_LOWER_AGAIN_H
#define BB_LOWER_AGAIN_H

#include "tile.h"

/* Costly parts of expressions that a statement before has as its result are read there (again.c says which), in place.  Before chains
 * of statements are joined.  Keeps what the program means to the last bit. */
void bb_tile_share_again(bb_tile_program *program);

#endif
