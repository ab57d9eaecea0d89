/* gpu_marks.h - between the files gpu_marks*.c. */
#ifndef BB_LOWER_GPU_MARKS_H
#define BB_LOWER_GPU_MARKS_H

#include "gpu.h"

/* Named conditions over scalars: that another holds nowhere in a block, or everywhere, for sure.  NULL: nothing is known. */
typedef struct bb_gpu_sure {
  const bb_expr *never, *always;
} bb_gpu_sure;

/* Of a named condition over a block of so many rows and columns; what it asks of vectors is added to the body.  Coordinates are
 * those of the block's first row and column. */
bb_gpu_sure bb_gpu_surely(bb_gpu *g, bb_tile_body *body, const bb_expr *named, uint32_t rows,
                          uint32_t cols);

#endif
