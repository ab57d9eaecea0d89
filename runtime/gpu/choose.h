/* choose.h - which of a kernel's ways runs at some extents. */
#ifndef BB_GPU_CHOOSE_H
#define BB_GPU_CHOOSE_H

#include "../cuda/launch.h"
#include "../device.h"

enum { BB_GPU_PARTS = 2 };

/* A way, and the places of a slice that it makes (code.h); slice NULL: it makes all. */
typedef struct bb_gpu_part {
  const bb_gpu_way *way;
  const bb_gpu_slice *slice;
  int64_t from, to;
} bb_gpu_part;

/* Launches, one behind the other, that make all results. */
typedef struct bb_gpu_choice {
  uint32_t count;
  bb_gpu_part part[BB_GPU_PARTS];
} bb_gpu_choice;

/* A way at some extents, its own, of all results: INFINITY: it takes no arrays that lie so, or has no weight.  view[] of ways says which are
 * the same arrays. */
typedef struct bb_gpu_weighed {
  const bb_gpu_way *way;
  int64_t *extent;
  double seconds;
} bb_gpu_weighed;

/* Calls `two` for each two ways that together weigh less than the cheapest, by as much as weights are off by. */
typedef void bb_gpu_two(void *user, const bb_gpu_weighed *first, const bb_gpu_weighed *rest,
                        double seconds, const bb_gpu_choice *choice);
void bb_gpu_each_two(const bb_gpu_machine *machine, uint32_t count, const bb_gpu_weighed *all,
                     bb_gpu_two *two, void *user);

/* The cheapest of what takes the arrays as they lie, which begin at multiples of 16 bytes.  Fails with BB_ERROR_UNSUPPORTED where
 * no way does. */
void bb_gpu_choose(const bb_gpu_machine *machine, const bb_gpu_ways *ways, const bb_launch *launch,
                   bb_gpu_choice *choice);

/* A launch's extents and arrays as a way has them. */
void bb_gpu_way_extents(const bb_gpu_way *way, const bb_launch *launch, int64_t *extent);
void bb_gpu_way_views(const bb_gpu_way *way, const bb_launch *launch, bb_gpu_pointer *view);

#endif
