/* cpu_call.h - what passes between kernels of the CPU and who runs them. */
#ifndef BB_DEVICE_CPU_CALL_H
#define BB_DEVICE_CPU_CALL_H

#include <stdint.h>

/* What a kernel is called with: run-time extents, one pointer for each argument, and memory that all
 * its tasks share. */
typedef struct bb_cpu_call {
  const int64_t *extent;
  void *const *argument;
  char *shared;
} bb_cpu_call;

/* Nests run one after the other; the tasks of one nest in any order, each with memory of its own. */
typedef struct bb_cpu_nest {
  int64_t (*tasks)(const int64_t *extent);
  int64_t (*local_bytes)(const int64_t *extent);
  void (*run)(const bb_cpu_call *call, int64_t task, char *local);
} bb_cpu_nest;

typedef struct bb_cpu_kernel {
  uint32_t nests;
  const bb_cpu_nest *nest;
  int64_t (*shared_bytes)(const int64_t *extent);
} bb_cpu_kernel;

#endif
