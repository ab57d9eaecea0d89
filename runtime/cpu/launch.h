/* launch.h - one kernel of the CPU, given what it works on. */
#ifndef BB_CPU_LAUNCH_H
#define BB_CPU_LAUNCH_H

#include "../../lower/device/cpu_call.h"
#include "cpu.h"

/* The run-time extents that a kernel is called with; 0 where a symbol is not known.  In `arena`. */
int64_t *bb_launch_extents(bb_program *program, const bb_kernel *kernel, const int64_t *symbol,
                           bb_arena *arena);

/* Bytes that a thread, and that all together, need while the kernel runs. */
void bb_launch_need(const bb_cpu_kernel *code, const int64_t *extent, size_t *local,
                    size_t *shared);

typedef struct bb_launch_memory {
  char *local; /* `each` bytes for each thread of the pool */
  size_t each;
  char *shared;
} bb_launch_memory;

/* data: by tensor of the program, floats as doubles where `exact`. */
void bb_launch(bb_pool *pool, const bb_program *program, const bb_kernel *kernel,
               const bb_cpu_kernel *code, const int64_t *extent, void *const *data, bool exact,
               const bb_launch_memory *memory);

/* The same by the meaning of the tile program, on doubles. */
void bb_launch_meaning(const bb_program *program, const bb_kernel *kernel, const int64_t *extent,
                       bb_interp_tensor *tensor, bool exact);

#endif
