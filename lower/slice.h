/* slice.h - parts of a kernel's results that a launch may make alone.
 *
 * Where all that a tile program reads and writes along an extent lies where a loop over the grid stands, a launch for fewer
 * places of it, of arrays that begin so much further on, makes that part of the results and no other.  So two launches, of
 * different tiles, make all of them, one behind the other (runtime/gpu/choose.c).
 */
#ifndef BB_LOWER_SLICE_H
#define BB_LOWER_SLICE_H

#include "tile.h"

enum { BB_TILE_SLICES = 2 };

typedef struct bb_tile_slice {
  uint32_t extent; /* whose number is how many places are made */
  uint32_t step;   /* of which a tile has so many */
  uint32_t *axis; /* by view: which of its axes they lie along; BB_NONE: it is what it is for all */
} bb_tile_slice;

/* Those of a program, in its arena: extents that nothing else depends on, nor how arrays lie in memory.  Returns their number. */
uint32_t bb_tile_slices(const bb_tile_program *program, bb_tile_slice slice[BB_TILE_SLICES]);

/* Gives loops over the grid whose results may be cut extents of their own, for bb_tile_slices() to find.  of: by extent that is added, behind those
 * there were: what it is for all results, an extent or a number.  Returns how many were added. */
uint32_t bb_tile_make_slices(bb_tile_program *program, bb_tile_index of[BB_TILE_SLICES]);

#endif
