/* describe.h - what the files that describe launches share. */
#ifndef BB_GPU_DESCRIBE_H
#define BB_GPU_DESCRIBE_H

#include "make.h"

bb_gpu_weight bb_gpu_describe_weight(bb_arena *arena, const bb_tile_program *tile,
                                     const bb_sm90_launch *plan);

#endif
