/* make.h - from the tile programs of a model's kernels to its code for a GPU: source, images, and what launches need. */
#ifndef BB_GPU_MAKE_H
#define BB_GPU_MAKE_H

#include "../../lower/emit.h"
#include "../../lower/emit_simt.h"
#include "../../lower/schedule.h"
#include "code.h"
#include "toolchain.h"

/* A way before it is source, as text: the programs can outlive what they were made from. */
typedef struct bb_gpu_draft_way {
  bb_gpu_units units; /* that it is for; none: for plain threads */
  const char *text;
  size_t length;
  uint32_t extents, views;
  const uint32_t *extent, *view; /* as in bb_gpu_way */
} bb_gpu_draft_way;

typedef struct bb_gpu_draft_ways {
  uint32_t count;
  const bb_gpu_draft_way *way;
} bb_gpu_draft_ways;

typedef struct bb_gpu_draft {
  uint32_t kernels;
  const bb_gpu_draft_ways *kernel;
} bb_gpu_draft;

/* --- emit.c --- */

/* Kernels with their source, and what launches of them need. */
typedef struct bb_gpu_made {
  bb_gpu_kernels *kernels; /* sizes of images are not known yet */
  uint32_t owns;           /* sources for own units, an image each: the first ones */
  const char **own;
  const char *plain; /* the source of all others; NULL: there are none */
  const char *moves; /* of those that every model has (move.h) */
} bb_gpu_made;

/* What a model's kernels and misc nodes become for a target; in `arena`. */
void bb_gpu_make(bb_context *ctx, const bb_gpu_target *target, const bb_gpu_draft *draft,
                 const bb_plan *plan, bb_arena *arena, bb_gpu_made *made);

/* --- describe_launch.c --- */

/* What launches of a tile program need that was emitted with such a plan, but for its nests before; everything in `arena`.
 * Extents and views are those of the
 * program. */
bb_gpu_way bb_gpu_describe_own(bb_arena *arena, const bb_tile_program *tile,
                               const bb_sm90_launch *plan);
/* Nests before such a launch, emitted as a program of their own in which what both know is no scratch. */
void bb_gpu_describe_before(bb_arena *arena, const bb_tile_program *tile,
                            const bb_simt_launch *plan, const char *name, bb_gpu_way *way);
/* name: of the source: a nest's function is NAME_0, NAME_1, ... */
bb_gpu_way bb_gpu_describe_plain(bb_arena *arena, const bb_tile_program *tile,
                                 const bb_simt_launch *plan, const char *name);
/* An expression of a launch's description as a formula of the program's extents.  Fails with BB_ERROR_INTERNAL where it is
 * none. */
bb_formula bb_gpu_launch_formula(bb_arena *arena, const char *text, const bb_tile_program *tile);
/* By which it takes arrays that begin at multiples of 16 bytes: numbers of elements that have to be multiples of 8, and might
 * not be; each once.  A constant among them is none, so then it takes no arrays at all.  argument: of each view. */
uint32_t bb_gpu_demands(bb_arena *arena, const bb_sm90_launch *plan,
                        const bb_kernel_argument *argument, const bb_tile_index **demand);

/* --- build.c --- */

/* Compiles the images, or finds them in the disk cache, and writes the text.  cache: as in bb_compile_options. */
bb_gpu_code *bb_gpu_build(bb_context *ctx, const bb_gpu_target *target, bb_gpu_made *made,
                          const bb_plan *plan, const char *cache, bb_arena *arena);

/* --- code_write.c --- */
void bb_gpu_code_write(bb_buffer *out, const bb_gpu_kernels *kernels, const bb_plan *plan);

#endif
