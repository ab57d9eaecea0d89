/* rows.h - blocks of rows that several short rows of an image are.
 *
 * A product has the rows of one block at a time.  Where a block is a row of an image and that is short, its neighbours beside it are
 * rows of the same product: what it multiplies with comes once for all of them.
 */
#ifndef BB_LOWER_ROWS_H
#define BB_LOWER_ROWS_H

#include "tile.h"

/* Rows of an image fill blocks of so many rows, which stay as they are.  The copy engine brings them: their last axis is the tile's
 * columns.  False: there are none, or none that leave so much of a block empty. */
bool bb_rows_fill(bb_tile_program *program, uint32_t rows);

/* So many neighbouring iterations of a parallel loop, of which each has a row of an image, become one, and their blocks one with the
 * rows of all.  False: they cannot, and nothing changed. */
bool bb_rows_join(bb_tile_program *program, uint32_t variable, uint32_t together);

#endif
