/* gpu_rolling.h - a loop's pivot: a maximum that others of its sums are relative to. */
#ifndef BB_LOWER_GPU_ROLLING_H
#define BB_LOWER_GPU_ROLLING_H

#include "gpu.h"

enum { BB_ROLLING_SUMS = 16 };

typedef struct bb_rolling {
  uint32_t r, fresh, term; /* fresh = max(r, term) */
  const bb_expr *factor;   /* named; what sums are scaled by when r becomes fresh */
  uint32_t scales, scaled[BB_ROLLING_SUMS];
} bb_rolling;

/* Of the loop at a place of a body; false: it has none of that form. */
bool bb_gpu_find_rolling(bb_gpu *g, bb_tile_body *outer, uint32_t loop, bb_rolling *rolling);

/* x = factor * tile + rest, of a named expression; NULL: zero.  False: it is not of that form. */
bool bb_gpu_split_factor(bb_gpu *g, const bb_expr *x, uint32_t tile, const bb_expr **factor,
                         const bb_expr **rest);

#endif
