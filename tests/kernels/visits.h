/* visits.h - the blocks that loops of a tile program visit, and the masks that they ask there, counted by trying every
 * element.
 */
#ifndef BB_TESTS_KERNELS_VISITS_H
#define BB_TESTS_KERNELS_VISITS_H

#include "../../lower/tile.h"

/* Of serial loops in whose bodies masks stand. */
typedef struct bb_visits {
  uint64_t blocks;   /* visited */
  uint64_t idle;     /* of these: some mask holds nowhere in it */
  uint64_t held;     /* of these: all masks hold everywhere in it, and one is asked all the same */
  uint64_t left_off; /* of these: a mask that others ask is not asked */
} bb_visits;

/* Adds those of a program; extent: by variable below `extents`. */
void bb_visits_add(const bb_tile_program *program, const int64_t *extent, bb_visits *visits);

#endif
