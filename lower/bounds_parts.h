/* bounds_parts.h - between the files bounds*.c. */
#ifndef BB_LOWER_BOUNDS_PARTS_H
#define BB_LOWER_BOUNDS_PARTS_H

#include "bounds.h"
#include "sets.h"

/* A condition over the places of a tile that begins at `at`. */
typedef struct bb_mask {
  const bb_expr *condition;
  bb_tile_index at[2];
  uint32_t rows, cols;
  bool inverse;              /* it holds where the condition does not */
  bool clean;                /* it holds everywhere in the loop's clean stretches */
  const char *holds, *fails; /* where it may, as sets.h has it */
} bb_mask;

typedef struct bb_bounds {
  bb_tile_program *p;
  bb_arena *scratch;
  bool skip;
  bb_tile_loop *loop;
  /* by variable: the loop that it is of, while within; NULL: an extent */
  const bb_tile_loop **around;
  /* of the loop around it: statements that do not run in it are passed over; BB_NONE: none are */
  uint32_t stretch;
  uint32_t masks;
  bb_mask mask[BB_SETS_MASKS];
  uint32_t clean; /* stretches in which the masks marked so hold everywhere */
} bb_bounds;

/* Does a statement of the loop's body run in the stretch that is looked at? */
bool bb_bounds_runs(const bb_bounds *b, const bb_tile_stmt *s);

/* The mask that a selection in a statement is, or NULL. */
const bb_mask *bb_bounds_find(const bb_bounds *b, const bb_tile_stmt *s, const bb_expr *condition);

/* Does an iteration in which the mask holds nowhere leave everything as it was? */
bool bb_bounds_idle(const bb_bounds *b, const bb_mask *mask);

/* --- bounds_ask.c, bounds_answer.c: what is asked of sets, and what they answer --- */

/* Variables of the program as parameters of sets.  coarse: conditions on quotients and remainders
 * are not asked, so that there is an answer where one with them would take too long. */
typedef struct bb_asking bb_asking;
bb_asking *bb_asking_begin(const bb_bounds *b, bool coarse);

/* Sets where the mask holds and fails.  false: nothing of its condition is understood. */
bool bb_asking_mask(bb_asking *a, bb_mask *mask);

/* Stretches of the loop, at most so many; how many there are, 0: it stays as it is.  idle: by mask,
 * it may be skipped where that holds nowhere.  *clean: the stretches in which the masks marked so
 * hold everywhere.  *gave_up: there are none that could be found. */
uint32_t bb_asking_stretches(bb_asking *a, bb_bounds *b, const bool *idle, uint32_t most,
                             bb_tile_stretch *stretch, uint32_t *clean, bool *gave_up);

/* --- bounds.c --- */

/* Fills b->mask[] with those of the loop's body. */
void bb_bounds_find_masks(bb_bounds *b, bb_asking *a);
/* The stretches that masked statements are confined to: BB_NONE where those of one differ from
 * those of another. */
uint32_t bb_bounds_confined(const bb_tile_body *body);

#endif
