/* sets_parts.h - between sets.c and sets_bound.c: what a question is worked on with. */
#ifndef BB_LOWER_SETS_PARTS_H
#define BB_LOWER_SETS_PARTS_H

#include "sets.h"

#include <isl/set.h>

/* Sets are of one dimension, k, over the parameters; all within the context. */
typedef struct bb_sets {
  isl_ctx *ctx;
  isl_set *context, *domain,
      *all;    /* of parameters; the loop's iterations; those that do anything */
  bool failed; /* something of isl's failed: nothing found out since is true */
  bb_sets_answer *answer;
} bb_sets;

/* Notes a failure. */
bool bb_sets_is(bb_sets *s, isl_bool truth);

/* The iterations that fulfil all lower (upper) bounds on k of some part of a set, whose parts are intervals; parts that
 * add nothing are left out.  Takes nothing. */
isl_set *bb_sets_side(bb_sets *s, isl_set *set, bool upper);

/* An interval, and those before and after it, which may bound it; NULL: there are none. */
typedef struct bb_sets_interval {
  isl_set *set, *before, *after;
} bb_sets_interval;

/* Its bounds as nodes of the answer.  choose: by conditions, where there are no simpler ones.  false: there are none
 * in few nodes. */
bool bb_sets_bound(bb_sets *s, const bb_sets_interval *interval, bool choose, bb_sets_stretch *out);
/* The same of all bounds that every part has: no iteration is outside. */
bool bb_sets_bound_around(bb_sets *s, isl_set *set, bb_sets_stretch *out);

#endif
