/* emit.h - from a tile program to source that a person can read. */
#ifndef BB_LOWER_EMIT_H
#define BB_LOWER_EMIT_H

#include "tile.h"

enum { BB_SM90_MAPS = 16, BB_SM90_RANK = 5 };

/* A tensor map of a launch: a box of a view, 64 columns wide, of 16-bit elements. */
typedef struct bb_sm90_map {
  /* fold: boxes side by side in one copy, counted by an outermost axis */
  uint32_t view, rank, fold;
  bb_tile_index extent[BB_SM90_RANK], stride[BB_SM90_RANK]; /* strides in elements */
  uint32_t box[BB_SM90_RANK];
  /* 0, or 1 + an axis: of that the box has what the extent leaves beyond whole boxes, in eights
   * (all of a box where it leaves nothing) */
  uint32_t edge;
  const char *reads; /* how many blocks read a box: if several, it is worth a place in the cache */
} bb_sm90_map;

/* What a launch needs (of sm_80, too: it has no maps).  Nests before the kernel (bb_tile_nests_before()) are launches of their
 * own, of plain threads, and no part of this one.  Expressions are C's, of integers, over the
 * extents' names, min and max.  The kernel's argument is a structure of: the maps; pointers to the
 * views listed; where `splits` says something, memory for `part` bytes of every block and a zeroed
 * counter for every group of `splits` of them; where `counter`, one more zeroed counter; the
 * extents as int; the number of tiles as int; and, a bit for each of the first 31 views, which may
 * be read before earlier launches have ended (0: none).  Where `ahead`, and all views that it reads may, bit BB_AHEAD may be
 * set as well: the launch runs beside earlier ones until it writes, and the next one beside it. */
typedef struct bb_sm90_launch {
  const char *kernel;
  uint32_t threads, shared;
  uint32_t rows; /* of a warp, whose products are its own; 0: they are a group's */
  uint32_t
      resident; /* blocks that a processor has registers for at once, and memory where they persist */
  bool persistent, counter, ahead;
  const char *tiles, *cluster, *splits; /* splits: NULL: none */
  const char *mates; /* blocks of a cluster that have a tile each, where `cluster` is 1 */
  uint32_t part;
  uint32_t maps, pointers;
  bb_sm90_map map[BB_SM90_MAPS];
  const uint32_t *pointer; /* views */
} bb_sm90_launch;

/* CUDA C++ for sm_90a, over lower/device/sm90.cuh; compiles with nvcc and NVRTC.  `launch`
 * receives, as JSON, what a launch needs: threads, shared memory, the size of the grid and of a
 * cluster as expressions of the extents, and the kernel's arguments in order; `plan` the same as a
 * structure in the arena of the program's home (NULL: not wanted).  Fails with BB_ERROR_UNSUPPORTED
 * and the statement when the schedule asks for what this emitter cannot do, or more registers or
 * shared memory than there are. */
void bb_emit_sm90(const bb_tile_program *program, bb_buffer *source, bb_buffer *launch,
                  bb_sm90_launch *plan);

/* The same for sm_80 and all later GPUs, over lower/device/sm80.cuh: products of single warps,
 * copies that one more warp asks for.  `shared`: bytes that a block may have.  The launch has no
 * maps, clusters or mates: views are pointers, which may begin anywhere.  Refuses loops over
 * clusters and warps, and what blocks do that take several tiles. */
void bb_emit_sm80(const bb_tile_program *program, uint32_t shared, bb_buffer *source,
                  bb_buffer *launch, bb_sm90_launch *plan);

extern const char bb_device_warp_cuda[], bb_device_warp[], bb_device_sm80[], bb_device_sm90[],
    bb_device_sm90_cuda[];             /* warp_cuda.cuh, ... */
extern const char bb_device_integer[]; /* integer.h, which the libraries of all devices include */

#endif
