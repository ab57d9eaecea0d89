/* inline.h - chains of elementwise statements as one. */
#ifndef BB_LOWER_INLINE_H
#define BB_LOWER_INLINE_H

#include "tile.h"

void bb_tile_inline(bb_tile_program *program);

#endif
