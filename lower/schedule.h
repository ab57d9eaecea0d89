/* schedule.h - from a block program and block sizes to a tile program.
 *
 * A map becomes a loop over the starts of its blocks, an item a tile with the loops' block sizes, a
 * list that passes between loops a view: of a program tensor where it comes from or goes to one, else
 * scratch memory of the kernel.  What a block lies beyond its extent is filled, and masked with the
 * identity before anything is folded over it (bounds.h takes the masks away where they are true
 * everywhere).  Statements stand in the outermost loop that they depend on.
 */
#ifndef BB_LOWER_SCHEDULE_H
#define BB_LOWER_SCHEDULE_H

#include "tile.h"

/* An axis of a program tensor that may have room for more elements in memory than its extent: the
 * axes outside it are so much further apart. */
typedef struct bb_room {
  bool given;
  uint32_t axis;   /* of the tensor's, as factored */
  uint32_t number; /* whose value the kernel takes as an argument */
} bb_room;

enum { BB_ROOM = 1 << 24 }; /* bb_kernel.symbol from here on: a room by its number */

typedef struct bb_schedule_options {
  const int64_t
      *block; /* per dim of the program: elements in a block; 0, or NULL: by the dim's use */
  uint32_t loop_seed;   /* not 0: draw a block size for every loop that may differ from others */
  int64_t most;         /* not 0: no block that selection chose is larger */
  const int64_t *limit; /* per dim: the same; 0, or NULL: any size */
  bool raw;   /* for passes behind this one: expressions stay whole, and masks cut no loop */
  bool alike; /* loops are spread whose iterations make some values alike: each makes them again */
  bool
      tasks; /* copies of whole values are spread over all of their loops: there are many processors */
  uint32_t
      strips; /* not 0: for vectors of so many bytes, by an emitter that works off blocks between
                    * products in strips, if they are large (emit_c.h) */
  const bb_room *room; /* by tensor; NULL: none has any */
  bool
      rows; /* iterations over single indices become one, as many as selection wants, where they are rows of an image (rows.h) */
} bb_schedule_options;

/* What an argument of the kernel is: a program tensor, from some element on. */
typedef struct bb_kernel_argument {
  uint32_t tensor; /* BB_NONE: scratch */
  bb_tile_index offset;
} bb_kernel_argument;

typedef struct bb_kernel {
  bb_tile_program *tile;
  const bb_kernel_argument *argument; /* for each view */
  const bb_extent *const *extent;     /* for each of the tile program's extents: what it is ... */
  const uint32_t *symbol; /* ... or, where extent is NULL, the run-time scalar, or a room */
  const bool *
      used; /* by extent: something depends on it as the kernel is scheduled; passes for GPUs may use more */
} bb_kernel;

/* Everything is in the program's arena.  Fails the context with BB_ERROR_UNSUPPORTED, saying why,
 * where a snapshot has no tile program.  options may be NULL. */
const bb_kernel *bb_schedule(bb_program *program, const bb_graph *graph, const char *name,
                             const bb_schedule_options *options);

#endif
