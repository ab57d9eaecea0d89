/* sets_parts.h - between sets.c, sets_bound.c and sets_node.c: what a question is worked on with. */
#ifndef BB_LOWER_SETS_PARTS_H
#define BB_LOWER_SETS_PARTS_H

#include "sets.h"

#include <isl/aff_type.h>
#include <isl/set.h>
#include <isl/val_type.h>

enum { BB_SETS_NONE = UINT32_MAX }; /* no node: there was no room, or a number is too large */

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

/* --- sets_node.c: nodes of the answer by index, those that are alike once --- */

bb_sets_node bb_sets_new_node(bb_sets_kind kind);
uint32_t bb_sets_put_node(bb_sets *s, const bb_sets_node *node);
uint32_t bb_sets_put_number(bb_sets *s, int64_t value);
/* MIN or MAX; of one value alone that value. */
uint32_t bb_sets_put_two(bb_sets *s, bb_sets_kind kind, uint32_t a, uint32_t b);
/* An expression of parameters, rounded down.  loose: what it is where it is negative does not matter. */
uint32_t bb_sets_put_floor(bb_sets *s, isl_aff *aff, bool loose);
/* Rounded up.  Negative ones are not told apart: no iteration is below 0. */
uint32_t bb_sets_put_ceiling(bb_sets *s, isl_aff *aff);
/* Its numerator, and `more`. */
uint32_t bb_sets_put_numerator(bb_sets *s, isl_aff *aff, int64_t more, int64_t *denominator);
/* One more, or one less: of a bound on one side, the bound beyond it on the other. */
uint32_t bb_sets_put_beyond(bb_sets *s, uint32_t at, int64_t by);
/* A whole number, of a size that leaves room.  Takes the value. */
bool bb_sets_whole(isl_val *value, int64_t *out);

#endif
