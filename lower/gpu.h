/* gpu.h - what the passes share that turn a plain tile program, as bb_schedule() makes it, into one
 * for a GPU.  Each pass keeps the meaning (bb_tile_interpret()) up to rounding, and can be run
 * alone.
 */
#ifndef BB_LOWER_GPU_H
#define BB_LOWER_GPU_H

#include "slice.h"
#include "tile_edit.h"

enum { BB_GPU_MASK_LOOPS = 16 };

/* What a marked loop's marks are of.  Its condition, named, and where its block lies; inverse: the mask holds where it does
 * not. */
typedef struct bb_gpu_mask {
  const bb_expr *condition;
  bb_tile_index at[2];
  bool inverse;
  uint32_t partly;    /* a view: whether the mask holds not everywhere */
  bb_tile_body *body; /* of the nest; its loops, for those around the marked one and for that */
  uint32_t loops, from[BB_GPU_MASK_LOOPS];
  bb_tile_index to[BB_GPU_MASK_LOOPS];
} bb_gpu_mask;

typedef struct bb_gpu {
  bb_tile_program *p;
  bb_context *ctx;
  bool strict;    /* narrowings are kept where the program has them */
  bool flat;      /* what bb_gpu_flat() does nothing for is refused */
  bool several;   /* what bb_rows_fill() does nothing for is refused */
  bool side;      /* results lie on their side (bb_gpu_side()) */
  uint32_t split; /* not 0: bb_gpu_split() into at most so many parts follows */
  bool warps; /* products are made by single warps, each of its rows, and waited for (sm_80); else
                   * by groups of four, and run by themselves (sm_90a) */
  uint32_t rows;   /* warps: of a group of four, 64 times some */
  uint32_t blocks; /* that share a processor; 0: one */
  uint32_t shared; /* warps: bytes that a block may have */
  /* Of bb_gpu_marks(): nests before the kernel's; by variable of a marked loop: its mask */
  bb_tile_body before;
  bb_gpu_mask *mask;
  /* Of bb_tile_make_slices() */
  uint32_t slices;
  bb_tile_index slice_of[BB_TILE_SLICES];
} bb_gpu;

_Noreturn void bb_gpu_refuse(const bb_gpu *g, const char *why);

/* gpu_simplify.c */
void bb_gpu_dissolve(bb_gpu *g);   /* loops of one iteration */
void bb_gpu_join(bb_gpu *g);       /* loops of nothing but a loop */
void bb_gpu_invariants(bb_gpu *g); /* maps alike in every iteration of a loop, before it */
void bb_gpu_clean(bb_gpu *g);      /* copies, chains of maps, what nobody reads */

/* gpu_shallow.c: the loop over blocks that a product of one block lacks */
void bb_gpu_shallow(bb_gpu *g);

/* gpu_axes.c: views of more axes than the copy engine takes, of fewer */
void bb_gpu_axes(bb_gpu *g);

/* gpu_flat.c: axes that lie one behind the other, blocks of rows of one of which are loaded and stored, as one.  False: there
 * are none */
bool bb_gpu_flat(bb_gpu *g);

/* gpu_marks.c: iterations that masks from memory leave nothing to do */
void bb_gpu_marks(bb_gpu *g);
void bb_gpu_unmask(bb_gpu *g); /* iterations in which their masks hold everywhere, without them */
/* behind bb_gpu_stretches(): which of them are asked for, and where loops begin */
void bb_gpu_settle_marks(bb_gpu *g);

/* gpu_algebra.c */
void bb_gpu_masks(bb_gpu *g); /* x = select(where, f, constant): x = f, and then the selection */
void bb_gpu_guards(
    bb_gpu *g); /* selections against an infinite bound, of the bound instead of the block */
void bb_gpu_sums(bb_gpu *g); /* products that are only added, in one accumulator */
void bb_gpu_powers(
    bb_gpu *g); /* exp as a power of two, factors of its argument with the constant */

/* gpu_large.c: numbers beside which others are equal or so far that exp of the difference is nothing: 24 bits of them count sixteens.
 * By tile, and of an expression over tiles: may there be any? */
#define BB_GPU_LARGE 0x1p27
const bool *bb_gpu_find_large(bb_gpu *g);
bool bb_gpu_may_be_large(const bb_expr *named, const bool *large);

/* gpu_once.c: what is alike along the rows of a block, once for each row */
void bb_gpu_once(bb_gpu *g);

/* gpu_fold.c, gpu_lazy.c */
void bb_gpu_factors(bb_gpu *g);  /* repairs that scale: the factor once, for all components */
void bb_gpu_lazy(bb_gpu *g);     /* repairs only where the pivot moved far */
void bb_gpu_partials(bb_gpu *g); /* sums in lanes' parts until they are read */

/* gpu_fill.c, gpu_stretch.c */
void bb_gpu_fills(bb_gpu *g);     /* fillings of what is that already */
void bb_gpu_stretches(bb_gpu *g); /* loops by where masks are true */

/* gpu_ends.c: masks compared with where columns of a row begin and end */
void bb_gpu_ends(bb_gpu *g);

/* gpu_place.c, gpu_grid.c */
void bb_gpu_orient(bb_gpu *g); /* operands of products lie as memory does */
void bb_gpu_hoist(bb_gpu *g, bb_tile_body *core, uint32_t *loop); /* loads out of the loop there */
void bb_gpu_place(bb_gpu *g); /* memories, orientation, roles, stages, under the budgets */

/* gpu_split.c */
void bb_gpu_split(bb_gpu *g); /* a placed program's folds, over the blocks of a cluster */

/* gpu_side.c */
void bb_gpu_side(bb_gpu *g); /* results whose rows are the columns of what warp groups make */

/* gpu_few.c */
/* All of that for results of few rows, with products by warps or, of what is loaded, by a warp
 * group. */
void bb_gpu_few(bb_gpu *g, bool by_group);

/* gpu_simplify.c */
void bb_gpu_prune(bb_gpu *g); /* tiles that no statement uses */

#endif
