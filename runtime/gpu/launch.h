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

/* Where the launch before this one writes.  Launches may begin before the one before them has ended (on devices where
 * that helps): every kernel waits for it by itself before it reads or writes what that one may have written or may
 * still read, and lets the next one begin only then.  So all launches but the one before have ended when a kernel
 * begins, and what that one does not write may be read at once. */
enum { BB_GPU_PAST = 8 };
typedef struct bb_gpu_past {
  bool known; /* false: it was not ours, or is not known to wait */
  uint32_t ranges;
  bb_gpu_pointer from[BB_GPU_PAST], to[BB_GPU_PAST];
} bb_gpu_past;

typedef struct bb_gpu_machine {
  bb_context *ctx;
  const bb_gpu_driver *driver;
  int processors;
  uint32_t shared; /* bytes that a block may have */
  void *stream;
  bb_gpu_pointer scratch;
  bb_gpu_pointer counters; /* zero between launches: kernels leave them so */
  bb_gpu_past *past;       /* NULL: a launch begins when those before it have ended */
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

/* past.c: the next launch follows something else than a kernel that was noted. */
void bb_gpu_forget(const bb_gpu_machine *machine);
/* A kernel is launched: where it writes.  view[]: where each begins. */
void bb_gpu_note(const bb_gpu_machine *machine, const bb_tile_program *tile, const int64_t *extent,
                 const bb_gpu_pointer *view);
/* Bit v: view v is read alone, and the launch before does not write there.  The first 32. */
uint32_t bb_gpu_early(const bb_gpu_machine *machine, const bb_tile_program *tile,
                      const int64_t *extent, const bb_gpu_pointer *view);

size_t bb_gpu_plain_scratch(const bb_gpu_machine *machine, const bb_gpu_plain *kernel,
                            const int64_t *extent);
/* view[]: where each begins. */
void bb_gpu_launch_plain(const bb_gpu_machine *machine, const bb_gpu_plain *kernel,
                         const int64_t *extent, const bb_gpu_pointer *view);

#endif
