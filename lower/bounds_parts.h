/* bounds_parts.h - between bounds.c, bounds_idle.c and bounds_data.c. */
#ifndef BB_LOWER_BOUNDS_PARTS_H
#define BB_LOWER_BOUNDS_PARTS_H

#include "bounds.h"

enum { BB_BOUNDS_MASKS = 16 };

/* from <= variable < to; NULL: no bound.  none: empty. */
typedef struct bb_interval {
  bb_tile_index from, to;
  bool none;
} bb_interval;

/* A condition over the places of a tile that begins at `at`: where in the loop some, and all, of them
 * fulfil it. */
typedef struct bb_mask {
  const bb_expr *condition;
  bb_tile_index at[2];
  uint32_t rows, cols;
  bool inverse; /* it holds where the condition does not */
  bb_interval somewhere, everywhere;
} bb_mask;

typedef struct bb_bounds {
  bb_tile_program *p;
  bb_arena *scratch;
  bool skip;
  bb_tile_loop *loop;
  /* of the loop around it: statements that do not run in it are passed over; BB_NONE: none are */
  uint32_t stretch;
  uint32_t masks;
  bb_mask mask[BB_BOUNDS_MASKS];
} bb_bounds;

/* Does a statement of the loop's body run in the stretch that is looked at? */
bool bb_bounds_runs(const bb_bounds *b, const bb_tile_stmt *s);

/* The mask that a selection in a statement is, or NULL. */
const bb_mask *bb_bounds_find(const bb_bounds *b, const bb_tile_stmt *s, const bb_expr *condition);

/* Does an iteration in which the mask holds nowhere leave everything as it was? */
bool bb_bounds_idle(const bb_bounds *b, const bb_mask *mask);

#endif
