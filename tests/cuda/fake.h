/* fake.h - what the parts of the tests' driver share.
 *
 * With FAKE_CUDA=host it stands in for a real one: memory of a device is out of the processor's reach but while a launch or a
 * copy works on it, what is put into a stream runs when somebody waits for it, streams capture, contexts are
 * current or not.  FAKE_DEVICES says how many devices there are (1).
 */
#ifndef FAKE_H
#define FAKE_H

#include "../../runtime/gpu/driver.h"

#define CALL __attribute__((visibility("default"))) int
/* One function, under the names that it has in CUDA and in HIP. */
#define BOTH(cuda, hip, arguments)                                                                 \
  CALL cuda arguments;                                                                             \
  CALL hip arguments __attribute__((alias(#cuda)));                                                \
  CALL cuda arguments

enum {
  FAKE_DEVICES = 4,
  FAKE_INVALID = 1,
  FAKE_MEMORY = 2,
  FAKE_CONTEXT = 201,
  FAKE_CAPTURED = 900
};

typedef struct fake_function {
  int (*run)(const void *call, int64_t many, int each, unsigned bytes,
             int cluster); /* NULL: it does nothing */
  size_t bytes;            /* of its argument */
} fake_function;

/* Something in a stream or a graph. */
typedef struct fake_work {
  struct fake_work *next;
  enum { FAKE_LAUNCH, FAKE_COPY, FAKE_SET } kind;
  const fake_function *function;
  unsigned blocks, threads, shared, cluster;
  void *to;
  const void *from; /* COPY: NULL: from `bytes` behind this */
  size_t size;
  int value;
  const struct fake_work
      *drawn; /* of a graph that is launched: where it is in the graph that was captured */
  _Alignas(64) char bytes[];
} fake_work;

typedef struct fake_stream fake_stream;

/* What FAKE_CUDA says. */
int fake_is(const char *what);
/* The device whose context is current on this thread; -1: none. */
int fake_current(void);

/* --- fake_memory.c --- */
/* Which device's memory this is; -1: no device's. */
int fake_owner(const void *memory);
/* A device's memory within reach, or out of it again; the caller holds the lock of all work. */
void fake_reach(int device, int open);

/* --- fake_stream.c --- */
/* Runs whatever waits on a device; the code of the first failure. */
int fake_finish(int device);
/* Whether this thread captures: what cannot be captured is refused then. */
int fake_capturing(void);
/* Puts work into a stream, or into what it captures.  The work is the stream's now. */
int fake_put(void *stream, fake_work *work);
fake_work *fake_new(int kind, size_t bytes);

#endif
