/* emit.h - from a tile program to source that a person can read. */
#ifndef BB_LOWER_EMIT_H
#define BB_LOWER_EMIT_H

#include "tile.h"

/* CUDA C++ for sm_90a, over lower/device/sm90.cuh; compiles with nvcc and NVRTC.  `launch` receives, as
 * JSON, what a launch needs: threads, shared memory, the size of the grid and of a cluster as
 * expressions of the extents, and the kernel's arguments in order.  Fails with BB_ERROR_UNSUPPORTED and
 * the statement when the schedule asks for what this emitter cannot do, or more registers or shared
 * memory than there are. */
void bb_emit_sm90(const bb_tile_program *program, bb_buffer *source, bb_buffer *launch);

#endif
