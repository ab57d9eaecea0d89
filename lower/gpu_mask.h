/* gpu_mask.h - what conditions of masks say: comparisons that are affine in the coordinates, as linear forms
 * of a block's row and column and of loops' variables.
 */
#ifndef BB_LOWER_GPU_MASK_H
#define BB_LOWER_GPU_MASK_H

#include "affine.h"
#include "gpu.h"
#include "tile_edit.h"

/* A side of a comparison as row * by[0] + col * by[1] + rest; not `is`: it is none. */
typedef struct bb_mask_linear {
  bool is;
  int64_t by[2];
  bb_affine rest;
} bb_mask_linear;

/* A comparison, or its opposite, as 0 <= what is given. */
bb_mask_linear bb_mask_comparison(const bb_expr *comparison, bool holds);

/* A map tile = select(condition, tile, fill) by coordinates; the condition is named. */
typedef struct bb_mask_filling {
  const bb_expr *condition;
  uint32_t tile;
  double fill;
} bb_mask_filling;
bool bb_mask_fills(const bb_gpu *g, const bb_tile_stmt *s, bb_mask_filling *filling);

/* Does the condition say that d is not negative, in rows below their limit?  What stands in rows beyond is
 * left out where the tile is stored, or filled before anything is folded over rows. */
bool bb_mask_implies(const bb_affine_scope *scope, const bb_tile_stmt *s, const bb_expr *condition,
                     bb_mask_linear d);

/* The loops around a statement, by variable: none yet. */
static inline const bb_tile_loop **bb_mask_scope(const bb_gpu *g) {
  return BB_NEW(g->p->home->arena, const bb_tile_loop *, g->p->variables + 1);
}

#endif
