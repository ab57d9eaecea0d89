/* vector.h - scalars many at a time. */
#ifndef BB_LOWER_VECTOR_H
#define BB_LOWER_VECTOR_H

#include "tile.h"

/* Innermost parallel loops over scalars, which load, compute and store one element of each array, take vectors of them, in
 * place.  Before loops are placed, marked or turned around. */
void bb_tile_vectors(bb_tile_program *program);

#endif
