/* device.h - what a device does for compiled models: the one interface between plans and machines.
 *
 * A device is opened once for a model; sessions have queues of it, in which launches follow each
 * other.  Nothing here knows programs: code comes as a file that the device's compiler made, or as what a
 * compiler of the same process left in memory, a kernel by number, what it works on as numbers and pointers
 * into the device's memory.  What fails, fails the context (graph/context.h).  Members that say so may be NULL.
 */
#ifndef BB_DEVICE_H
#define BB_DEVICE_H

#include "../graph/context.h"

typedef struct bb_device bb_device;
typedef struct bb_module bb_module;     /* the loaded code of a model */
typedef struct bb_queue bb_queue;       /* CPU: threads.  GPU: a stream */
typedef struct bb_prepared bb_prepared; /* what a device works out of a launch once */
struct bb_plan;

typedef struct bb_queue_options {
  uint32_t threads;               /* CPU; 0: one for each processor */
  bb_parallel_function *parallel; /* CPU: the caller's threads; NULL: the queue has its own */
  void *parallel_user;
} bb_queue_options;

/* A step on the device. */
typedef struct bb_launch {
  const char *name;      /* of the step, for messages */
  uint32_t step;         /* its number in the plan */
  uint32_t kernel;       /* its number in the module; BB_NONE: a misc node that the module runs */
  const int64_t *extent; /* the run-time extents of the kernel */
  const int64_t *symbol; /* those of the plan */
  void *const *argument; /* where each argument begins; NULL: scratch of the kernel */
  void *const *data;     /* where each array of the plan begins */
  void *scratch;         /* so many bytes as `scratch` below said, aligned to 64 */
} bb_launch;

/* Where a model's code is: one of them, as the device wants it. */
typedef struct bb_code {
  const char *path;   /* of the first of `files` */
  const char *folder; /* with all of them */
  const void *memory; /* a device's own form, read while it is loaded (gpu/code.h) */
} bb_code;

enum { BB_CODE_FILES = 2 };

/* Elements from one layout to another, within the device's memory; strides in elements.  What lies in both places lies there
 * alike. */
typedef struct bb_move {
  void *to;
  const void *from;
  size_t element; /* bytes */
  uint32_t rank;
  const int64_t *extent, *to_stride, *from_stride;
} bb_move;

typedef enum bb_way_of_copy { BB_COPY_WITHIN, BB_COPY_IN, BB_COPY_OUT } bb_way_of_copy;

typedef struct bb_device_class {
  const char *name; /* "cpu" */
  /* The names of the files with the code in a compiled folder, "kernels.so"; NULL: no more. */
  const char *files[BB_CODE_FILES];
  bool host; /* its memory is the processor's: copies and reference kernels work in place */
  uint32_t
      align; /* where kernels take a caller's array to begin, in bytes; 0: wherever its elements may */
  int32_t dlpack; /* its number as a DLPack device */

  bb_device *(*open)(bb_context *context, uint32_t number);
  void (*close)(bb_device *device);
  /* What code made for this machine may use, words between spaces; in `arena`. */
  const char *(*features)(bb_device *device, bb_arena *arena);
  /* Whether it runs what needs such features.  NULL: where it has all the words. */
  bool (*serves)(bb_device *device, const char *needed);
  /* NULL, or why the device cannot reach memory that begins there.  May be NULL: it reaches all. */
  const char *(*unreachable)(bb_device *device, bb_context *context, const void *memory);

  void *(*allocate)(bb_device *device, bb_context *context, size_t bytes);
  void (*release)(bb_device *device, void *memory, size_t bytes);
  /* In the order of the queue.  What is copied from the processor's memory may change when the call returns;
   * what is copied there is there after queue_wait. */
  void (*copy)(bb_queue *queue, bb_context *context, bb_way_of_copy way, void *to, const void *from,
               size_t bytes);

  void (*move)(bb_module *module, bb_queue *queue, bb_context *context, const bb_move *move);

  /* The plan's features are the device's. */
  bb_module *(*load)(bb_device *device, bb_context *context, const bb_code *code,
                     const struct bb_plan *plan);
  void (*unload)(bb_module *module);
  /* Whether some of it was compiled just now, not found in a cache.  NULL: never. */
  bool (*compiled)(const bb_module *module);
  /* Whether it has a kernel for a step that is a misc node.  NULL: for none. */
  bool (*runs)(const bb_module *module, uint32_t step);

  bb_queue *(*queue_open)(bb_device *device, bb_context *context, const bb_queue_options *options);
  void (*queue_close)(bb_queue *queue);
  /* The stream of the caller's that launches go to from now on; NULL: the queue's own. */
  void (*queue_use)(bb_queue *queue, bb_context *context, void *stream);
  void (*queue_wait)(bb_queue *queue, bb_context *context);
  /* Waits as queue_wait does.  A step whose kernel met an index out of range since the last call, and which of the
   * indices, from 0, or, below 0, another operand that does not fit the results; BB_NONE: none.  NULL: kernels look at no
   * such operands. */
  uint32_t (*queue_fault)(bb_queue *queue, bb_context *context, int64_t *element);

  /* Waits as queue_wait does.  How long the results of a launched step turned out to be, which tells an extent.  NULL: the module
   * runs no such steps. */
  int64_t (*told)(bb_queue *queue, bb_context *context, uint32_t step);

  /* Runs tasks 0 .. tasks - 1 of a function on the queue's threads of the processor, numbered from 0. */
  void (*spread)(bb_queue *queue, int64_t tasks,
                 void (*task)(void *user, int64_t task, uint32_t thread), void *user);
  uint32_t (*threads)(const bb_queue *queue); /* how many these are */

  /* The bytes of scratch that a launch needs with these extents, whose arguments are offsets from where arrays
   * begin.  *prepared: NULL, or what an earlier call for the step made: is made, or used again, where the device
   * has `prepare`. */
  size_t (*scratch)(bb_module *module, bb_queue *queue, bb_context *context,
                    const bb_launch *launch, bb_prepared **prepared);
  /* Takes what launches of the queue share, after `scratch` of all steps of the session.  True: it lies elsewhere than
   * before, and all of them are to be prepared.  NULL: they share nothing. */
  bool (*equip)(bb_queue *queue, bb_context *context);
  /* Works out what follows from where arrays lie, and from the launch before this one in a run; `before` NULL: anything may be
   * there.  True: the one behind it is to be prepared, too.  NULL: nothing follows. */
  bool (*prepare)(bb_module *module, bb_queue *queue, bb_context *context, const bb_launch *launch,
                  bb_prepared *prepared, const bb_prepared *before);
  void (*forget)(bb_prepared *prepared); /* of a device with `prepare` */
  void (*launch)(bb_module *module, bb_queue *queue, bb_context *context, const bb_launch *launch,
                 bb_prepared *prepared);

  /* Between both, launches and copies within the device are noted, not run; `replay` runs what was noted last, again and
   * again.  moving: runs differ in what launches are called with, so that what is noted is worth it only where that can be
   * changed.  NULL, or false: this device, or the queue at this time, notes nothing.  note_end, false: nothing is noted. */
  bool (*note)(bb_queue *queue, bb_context *context, bool moving);
  bool (*note_end)(bb_queue *queue, bb_context *context);
  bool (*replay)(bb_queue *queue, bb_context *context);
} bb_device_class;

/* By name; NULL: there is none in this library. */
const bb_device_class *bb_device_find(const char *name);
extern const bb_device_class bb_cpu_device, bb_cuda_device, bb_hip_device;

#endif
