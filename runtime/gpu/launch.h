/* launch.h - kernels of plain threads on a device. */
#ifndef BB_GPU_LAUNCH_H
#define BB_GPU_LAUNCH_H

#include "../../lower/emit_simt.h"
#include "../../lower/schedule.h"
#include "driver.h"

/* A launch for each nest. */
typedef struct bb_gpu_plain {
  const bb_kernel *kernel;
  bb_simt_launch plan;
  void **function; /* by nest */
} bb_gpu_plain;

typedef struct bb_gpu_machine {
  bb_context *ctx;
  const bb_gpu_driver *driver;
  int processors;
  uint32_t shared; /* bytes that a block may have */
  void *stream;
  bb_gpu_pointer scratch;
  bb_gpu_pointer counters; /* zero between launches: kernels leave them so */
} bb_gpu_machine;

/* Of the bytes that a block of a device may share, 0 where it does not tell, those that kernels ask for when they are
 * launched: the device library has a few of its own. */
static inline uint32_t bb_gpu_shared(uint32_t told) {
  enum { ANYWHERE = 48 * 1024, LIBRARY = 64 };
  return (told ? told : ANYWHERE) - LIBRARY;
}

/* A function of one argument, of so many blocks. */
void bb_gpu_start(const bb_gpu_machine *machine, void *function, int64_t blocks, uint32_t threads,
                  uint32_t shared, void *argument);

size_t bb_gpu_plain_scratch(const bb_gpu_machine *machine, const bb_gpu_plain *kernel,
                            const int64_t *extent);
/* view[]: where each begins. */
void bb_gpu_launch_plain(const bb_gpu_machine *machine, const bb_gpu_plain *kernel,
                         const int64_t *extent, const bb_gpu_pointer *view);

#endif
