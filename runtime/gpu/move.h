/* move.h - elements from one layout to another on a GPU: kernels that every model has (lower/device/misc.cuh). */
#ifndef BB_GPU_MOVE_H
#define BB_GPU_MOVE_H

#include "../device.h"
#include "launch.h"

enum { BB_GPU_WORDS = 5 }; /* of 1, 2, 4, 8 and 16 bytes */

/* The functions of a loaded module, by size of what a thread moves. */
typedef struct bb_gpu_mover {
  void *function[BB_GPU_WORDS];
} bb_gpu_mover;

/* Their source. */
void bb_gpu_put_moves(bb_buffer *source);
void bb_gpu_find_moves(bb_context *ctx, const bb_gpu_driver *driver, void *module,
                       bb_gpu_mover *mover);
/* Adds the launches: none where nothing is moved, or everything is in its place. */
void bb_gpu_call_move(const bb_gpu_machine *machine, const bb_gpu_mover *mover, const bb_move *move,
                      bb_gpu_calls *calls);

#endif
