/* places.h - inside lower/: are a tile program's blocks of rows places along an axis, of which each is computed by itself?
 *
 * Then a block may have other places than those that it had, and rows beyond the last place may hold anything: what is computed
 * from them row by row is not stored.
 */
#ifndef BB_PLACES_H
#define BB_PLACES_H

#include "tile_edit.h"

/* What the rows of a tile are. */
typedef enum bb_rows_of {
  BB_ROWS_NOTHING, /* it has none, or all alike */
  BB_ROWS_PLACES,  /* places of the axis */
  BB_ROWS_OTHER    /* not places, so not to be stored or reduced as if they were */
} bb_rows_of;

typedef struct bb_places bb_places;
/* Whether a load or store that uses the loops takes a block of places as a pass wants it. */
typedef bool bb_takes_places(bb_places *p, const bb_tile_stmt *s, uint32_t tile);

struct bb_places {
  bb_tile_program *p;
  bb_takes_places *takes;
  uint32_t variable, inner; /* of the loops over places: one or two; else BB_NONE */
  uint32_t rows;            /* of the tiles; 0: not known yet */
  /* found: */
  bool good, changed;
  bb_rows_of *rows_in; /* by tile */
};

/* A parallel loop from 0 upwards, by steps of so many; 0: of any number. */
bool bb_loop_counts_up(const bb_tile_loop *loop, double step);

/* The parallel loops of nothing but a loop, outermost first, and the bodies that they stand in: `body` is the first of those. */
enum { BB_LOOP_NEST = 16 };
typedef struct bb_loop_nest {
  uint32_t count;
  bb_tile_body *body[BB_LOOP_NEST];
  bb_tile_loop *loop[BB_LOOP_NEST];
} bb_loop_nest;
bb_loop_nest bb_loops_of(bb_tile_body *body);

bb_places bb_places_start(bb_tile_program *program, bb_takes_places *takes);

/* Does an index or expression whose variables begin at `base` use the loops? */
bool bb_places_use(const bb_places *p, const bb_expr *e, uint32_t base);

/* Whether that is so of all statements of the loops' body. */
bool bb_are_places(bb_places *p, bb_tile_body *body);

#endif
