/* bounds_asking.h - between bounds_ask.c and bounds_answer.c: variables of the program as
 * parameters of sets.
 */
#ifndef BB_LOWER_BOUNDS_ASKING_H
#define BB_LOWER_BOUNDS_ASKING_H

#include "bounds_parts.h"

/* The value of index, or of iteration (index - from) / step. */
typedef struct bb_parameter {
  bb_tile_index index;
  int64_t from, step;
} bb_parameter;

struct bb_asking {
  const bb_bounds *b;
  bb_arena *arena;
  bb_parameter parameter[BB_SETS_PARAMETERS];
  uint32_t parameters;
  bool coarse;       /* divisions in conditions are not understood */
  bool over;         /* too long, or too many parameters */
  bool known;        /* a comparison has been understood */
  bb_buffer context; /* what is known of parameters */
};

/* What is asked of the loop's masks. */
const bb_sets_question *bb_asking_question(bb_asking *a, const bb_bounds *b, const bool *idle,
                                           uint32_t most);

#endif
