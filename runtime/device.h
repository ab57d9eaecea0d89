/* device.h - what a device does for compiled models: the one interface between plans and machines.
 *
 * A device is opened once for a model; sessions have queues of it, in which launches follow each
 * other.  Nothing here knows programs: code comes as a file that the device's compiler made, a kernel
 * by number, what it works on as numbers and pointers into the device's memory.  What fails, fails the
 * context (graph/context.h).
 */
#ifndef BB_DEVICE_H
#define BB_DEVICE_H

#include "../graph/context.h"

typedef struct bb_device bb_device;
typedef struct bb_module bb_module; /* the loaded code of a model */
typedef struct bb_queue bb_queue;   /* CPU: threads.  GPU: a stream */

typedef struct bb_queue_options {
  uint32_t threads;               /* CPU; 0: one for each processor */
  bb_parallel_function *parallel; /* CPU: the caller's threads; NULL: the queue has its own */
  void *parallel_user;
} bb_queue_options;

typedef struct bb_launch {
  uint32_t kernel;       /* its number in the module */
  const int64_t *extent; /* the run-time extents of the kernel */
  void *const *argument; /* where each argument begins; NULL: scratch of the kernel */
  void *scratch;         /* so many bytes as `scratch` below said, aligned to 64 */
} bb_launch;

typedef struct bb_device_class {
  const char *name;   /* "cpu" */
  const char *binary; /* the name of the file with the code in a compiled folder: "kernels.so" */
  bool host; /* its memory is the processor's: copies and reference kernels work in place */

  bb_device *(*open)(bb_context *context);
  void (*close)(bb_device *device);
  /* What code made for this machine may use, words between spaces; in `arena`. */
  const char *(*features)(bb_device *device, bb_arena *arena);

  void *(*allocate)(bb_device *device, bb_context *context, size_t bytes);
  void (*release)(bb_device *device, void *memory, size_t bytes);
  /* In the order of the queue; either side may be the processor's memory. */
  void (*copy)(bb_queue *queue, bb_context *context, void *to, const void *from, size_t bytes);

  bb_module *(*load)(bb_device *device, bb_context *context, const char *path, uint32_t kernels);
  void (*unload)(bb_module *module);

  bb_queue *(*queue_open)(bb_device *device, bb_context *context, const bb_queue_options *options);
  void (*queue_close)(bb_queue *queue);
  /* The stream of the caller's that launches go to from now on; NULL: the device's default. */
  void (*queue_use)(bb_queue *queue, bb_context *context, void *stream);
  void (*queue_wait)(bb_queue *queue, bb_context *context);

  /* A device whose memory is the processor's: runs tasks 0 .. tasks - 1 of a function on the queue's
   * threads, numbered from 0. */
  void (*spread)(bb_queue *queue, int64_t tasks,
                 void (*task)(void *user, int64_t task, uint32_t thread), void *user);

  size_t (*scratch)(bb_module *module, const bb_queue *queue, uint32_t kernel,
                    const int64_t *extent);
  void (*launch)(bb_module *module, bb_queue *queue, bb_context *context, const bb_launch *launch);
} bb_device_class;

/* By name; NULL: there is none. */
const bb_device_class *bb_device_find(const char *name);
extern const bb_device_class bb_cpu_device;

#endif
