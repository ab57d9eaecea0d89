/* emit_c_lanes.h - loops over the taps of windows whose sums stay in registers: what is found of one (emit_c_lanes.c) and how it is
 * written (emit_c_lanes_put.c).
 */
#ifndef BB_LOWER_EMIT_C_LANES_H
#define BB_LOWER_EMIT_C_LANES_H

#include "emit_c_parts.h"

/* Vectors that are held at once; lanes of the narrowest; sums; iterations that are made straight. */
enum { BB_LANES_HELD = 8, BB_LANES_LEAST = 4, BB_LANES_SUMS = 4, BB_LANES_STRAIGHT = 8 };

/* What several lines read in a loop over taps: line q in iteration t what is number q * apart + t of it. */
typedef struct bb_c_lanes_shared {
  const bb_tile_stmt *load; /* NULL: there is nothing such */
  uint32_t apart, count;
  int64_t move; /* from one to the next, in elements */
} bb_c_lanes_shared;

typedef struct bb_c_lanes_found {
  bb_c *c;
  const bb_tile_loop *loop;
  bool turned;
  bool *inside;    /* by variable: of the loop, and of those in it */
  bool *made;      /* by tile: the loop makes it */
  bool *now;       /* likewise, so far */
  uint32_t *reads; /* by tile: of maps in the loop */
  /* by tile: the load in the loop that is read without a pointer to its window */
  const bb_tile_stmt **load;
  /* by tile: how far lines lie apart, where vectors are read from the place of the first; NULL: each from its own */
  const char **near;
  uint32_t sums, inner;                     /* inner: tiles that loops in the loop add to */
  uint32_t sum[BB_LANES_SUMS];              /* what passes from an iteration to the next */
  const bb_tile_stmt *start[BB_LANES_SUMS]; /* what each begins with */
  uint32_t lines, along;         /* of all that is made, or of a piece; 0 lines: it is one */
  uint32_t pieces;               /* of lines that lie apart where they are loaded */
  const char *reached;           /* of several: whether piece y is there */
  uint32_t most;                 /* vectors of a tile that are held at once */
  uint32_t width, vectors, held; /* lanes of a vector; vectors of a line; lines, at once */
  bool paired; /* all that is loaded is every other element: in another order until it is stored */
  bb_c_lanes_shared shared; /* of the loop that is written */
  bool counted;             /* how much is there is told by the run: `lines`, `along` */
  bool single;              /* all vectors of a line are held, the last one further in */
  const bb_tile_body *body;
  uint32_t at, end;          /* the loop; behind the last statement that goes with it */
  const bb_tile_stmt *store; /* the last of those; NULL: it is no store */
} bb_c_lanes_found;

static inline bool bb_c_is_lane_sum(const bb_c_lanes_found *l, uint32_t tile) {
  for (uint32_t i = 0; i < l->sums; i++)
    if (l->sum[i] == tile) return true;
  return false;
}

/* Between neighbours along the vectors, where a load goes; 0: it is not known. */
int64_t bb_c_lane_step(const bb_c_lanes_found *found, const bb_tile_stmt *load);
/* Whether the statement is such a loop, with what else is made in its registers. */
bool bb_c_find_lanes(bb_c *c, const bb_tile_body *body, uint32_t at, bb_c_lanes_found *found);

#endif
