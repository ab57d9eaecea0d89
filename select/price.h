/* price.h - inside select/: the seconds that a kernel takes on a machine, and why.
 *
 * A kernel is a snapshot with block sizes, a fold and a place for its loops.  The loops of the
 * chain at its top run side by side, an *instance* for each turn; the rest runs in turn inside an
 * instance. The fold of a loop right inside an instance is *rolling*, or split into parts: more
 * instances, and a second pass that combines their results.  For each pass
 *
 *   seconds = launch + waves (begin + the work of an instance) , or the time of memory or of the
 *             shared cache, whichever is longest, and a little of what hides behind it
 *
 * waves are instances over units, rounded up; the work of an instance is that of its products,
 * arithmetic, special functions and local memory, at once or in turn as the machine has it, and a
 * little for each turn of a loop.  Memory moves what is loaded once for the whole kernel if it
 * stays in the shared cache, else once for each time that instances which do not run together want
 * it.  Items that are alive together must fit the unit.
 */
#ifndef BB_SELECT_PRICE_H
#define BB_SELECT_PRICE_H

#include "bill.h"
#include "machine.h"
#include "nest.h"

/* A nest with the extents of its dims: what is priced. */
typedef struct bb_pricing {
  const bb_nest *nest;
  const bb_machine *machine;
  double *size_extent, *loop_extent;
  double *room;  /* by class of items, BB_PRICE_MANY each: scratch of the pricing at hand */
  uint64_t grid; /* loops whose turns may run side by side */
  bool stops;    /* kernels stop where an extent ends, along what runs side by side */
  bool holds;    /* blocks stream through registers: lists lie in memory */
  bool
      stays; /* a block that is all there is stays for the loop behind (lower/held.h, or the cache of a processor) */
  bool
      scalars; /* nothing has an axis: a block of a machine that copies blocks takes many at a time (lower/vector.h) */
  bool plain;  /* narrow products are made as wide ones are: their units have no schedule */
} bb_pricing;

/* extent: by dim of the program. */
bb_pricing bb_pricing_bind(const bb_nest *nest, const bb_machine *machine, const double *extent,
                           bb_arena *arena);

/* block: by size.  split: parts of the fold of loop `fold`; 1: rolling. */
typedef struct bb_tiling {
  double *block;
  uint32_t fold, split;
} bb_tiling;

/* force: a unit that is too small is no obstacle, but a price. */
void bb_price_tiling(const bb_pricing *pricing, const bb_tiling *tiling, bool force,
                     bb_price *price);

/* As many as are best asked for together. */
enum { BB_PRICE_MANY = 8 };

/* Tilings that differ in their blocks. */
typedef struct bb_tilings {
  uint32_t count;
  uint32_t
      stride; /* from a size's blocks to the next size's: 1, or BB_PRICE_MANY whatever the count */
  const double *block; /* by size, then by tiling */
  uint32_t fold, split;
} bb_tilings;

/* The seconds of each alone, in less time. */
void bb_price_seconds(const bb_pricing *pricing, const bb_tilings *tilings, bool force,
                      double *seconds);

/* Both of these, for an instruction set (price_points.c).  price: of the first; NULL: nobody asks. */
typedef void bb_price_points(const bb_pricing *pricing, const bb_tilings *tilings, bool force,
                             double *seconds, bb_price *price);
bb_price_points bb_price_points_plain, bb_price_points_avx2, bb_price_points_avx512;

/* Block sizes where a search may begin: those that were best for something alike.  close: as for
 * extents half or twice as large, of which these are nearly best, too; else it begins elsewhere as
 * well, as long as that takes few points. */
typedef struct bb_search_hint {
  const double *block; /* by size */
  bool close;
} bb_search_hint;

/* The cheapest block sizes for a loop's fold (BB_NONE: rolling alone) in parts; *second: the least
 * seconds met with other block sizes.  Descends along one size, then pairs of sizes, from the hint
 * or, where that is NULL, from several starts. */
bb_price bb_price_search(const bb_pricing *pricing, uint32_t fold, uint32_t split,
                         const bb_search_hint *hint, bool force, bb_arena *arena, bb_tiling *best,
                         double *second);
/* The same by trying all block sizes, for tests. */
bb_price bb_price_exhaust(const bb_pricing *pricing, uint32_t fold, uint32_t split, bb_arena *arena,
                          bb_tiling *best);

#endif
