/* region.h - a region of a map as loops over channels take it (region_loops.c): what each bin takes of which rows and columns
 * is known, so that rows are weighed first, all columns of the region at once, and then columns.  The loops are compiled for
 * each instruction set.
 */
#ifndef BB_MODEL_REGION_H
#define BB_MODEL_REGION_H

#include <stdbool.h>
#include <stdint.h>

enum { BB_REGION_LANES = 8 }; /* columns at once */

/* Elements between which samples lie, and the part of each; of an average, one element in `at[0]` alone, each once a bin. */
typedef struct bb_region_tap {
  int32_t at[2];
  float part[2];
} bb_region_tap;

/* Of rows, or of columns. */
typedef struct bb_region_taps {
  int64_t bins;
  const int64_t *first; /* of bin b: tap[first[b]] .. tap[first[b + 1] - 1] */
  const bool *outside;  /* some of the bin's samples are outside the map */
  const bb_region_tap *tap;
} bb_region_taps;

typedef struct bb_region_look {
  bb_region_taps rows, columns;
  const float *map; /* of the first channel */
  float *to;
  int64_t channels, place, wide; /* place: elements of a channel of the map; wide: of its rows */
  int64_t from, count;           /* columns that are looked at */
  float *row;                    /* room for `wide` elements */
} bb_region_look;

typedef void bb_region_loops(const bb_region_look *l, bool max);
bb_region_loops bb_region_loops_plain, bb_region_loops_avx2, bb_region_loops_avx512;

/* The best of the processor that this runs on. */
bb_region_loops *bb_region_loops_here(void);

/* The native kernel by loops that are given. */
struct bb_native_call;
bool bb_region_run(const struct bb_native_call *call, bb_region_loops *loops);

#endif
