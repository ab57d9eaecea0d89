/* inline.h - chains of elementwise statements as one. */
#ifndef BB_LOWER_INLINE_H
#define BB_LOWER_INLINE_H

#include "tile.h"

/* Joins chains of elementwise statements (inline.c says which), in place.  Keeps what the program means to the
 * last bit. */
void bb_tile_inline(bb_tile_program *program);

#endif
