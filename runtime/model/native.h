/* native.h - reference kernels on elements as they lie in memory, without the way through doubles.
 *
 * Optional: one that does not know the case at hand says so, and the reference kernel runs
 * (interp/misc.h), which is also what it is held against.
 */
#ifndef BB_MODEL_NATIVE_H
#define BB_MODEL_NATIVE_H

#include "../device.h"
#include "plan.h"

typedef struct bb_native_array {
  bool absent;
  bb_dtype dtype;
  uint32_t rank;
  int64_t shape[8];
  void *data;   /* row-major; aligned to the element; dense, but for: */
  int64_t room; /* elements of `room_axis` that there is room for; 0: its extent */
  uint32_t room_axis;
  /* Of an operand of a kernel that steps: it lies as step[] says, elements from one to the next, those of its last axis side by side. */
  bool steps;
  int64_t step[8];
  bool constant; /* the same elements in every run of the model */
} bb_native_array;

/* What a kernel made of constant operands in its first run, of the memory of `ctx`; the lab frees it. */
typedef struct bb_native_kept {
  void *memory;
  size_t bytes;
} bb_native_kept;

typedef struct bb_native_call {
  bb_context *ctx; /* to fail: a message without the node's name */
  bb_arena *arena; /* memory that the next run finds again */
  const bb_misc *misc;
  uint32_t nin, nout;
  const bb_native_array *in, *out; /* results have their shapes; a result may lie over an operand */
  int64_t *told;                   /* for how long the results turn out, which have room for as many
                                    * as their shapes say; NULL: they are as long */
  bb_native_kept *kept;            /* of this step in this session; empty at first */
  const bb_device_class *class;    /* class->spread(queue, ...) shares work among threads */
  bb_queue *queue;
} bb_native_call;

/* False: not this case; nothing was written. */
typedef bool bb_native_kernel(const bb_native_call *call);

#define BB_NATIVE(domain, op, body) bb_native_kernel body;
#include "native.def"
#undef BB_NATIVE

bb_native_kernel *bb_native_find(const bb_misc *misc); /* NULL: there is none */
/* Does the operator's kernel step through operands whose rows lie anywhere? */
bool bb_native_steps(const bb_misc *misc);
/* Elements of axes from .. to - 1. */
static inline size_t bb_native_product(uint32_t from, uint32_t to, const int64_t *shape) {
  size_t count = 1;
  for (uint32_t i = from; i < to; i++) count *= (size_t)shape[i];
  return count;
}
int64_t bb_native_int(const bb_native_call *call, const char *name, int64_t otherwise);

/* Shares things 0 .. count - 1 among the threads of the run: each task has those from `from` to `to` - 1, of which `each` are worth a
 * task.  A task may not fail. */
typedef void bb_native_task(void *user, size_t from, size_t to, uint32_t thread);
void bb_native_share(const bb_native_call *call, size_t count, size_t each, bb_native_task *task,
                     void *user);

/* The instruction sets that loops of native kernels are compiled for; the best of them that this processor has. */
typedef enum bb_native_sets { BB_SET_PLAIN, BB_SET_AVX2, BB_SET_AVX512 } bb_native_sets;
bb_native_sets bb_native_set(void);

#endif
