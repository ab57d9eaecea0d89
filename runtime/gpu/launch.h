/* launch.h - launches on a device: what they are made of, and kernels of plain threads as such. */
#ifndef BB_GPU_LAUNCH_H
#define BB_GPU_LAUNCH_H

#include "code.h"
#include "driver.h"

/* How a function is launched: of a launch that a graph has, what stays. */
typedef struct bb_gpu_manner {
  void *function;
  uint32_t threads, shared; /* shared: bytes */
  uint32_t cluster;         /* blocks of one; 0: it is no kernel of clusters */
  bool early;               /* it may begin before the launch before it has ended */
} bb_gpu_manner;

/* A function of one argument. */
typedef struct bb_gpu_call {
  bb_gpu_manner how;
  uint32_t blocks;
  size_t argument, length; /* where it begins in the bytes of all, and its own */
} bb_gpu_call;

/* Launches in their order, ready to be issued again and again. */
typedef struct bb_gpu_calls {
  uint32_t count, capacity;
  bb_gpu_call *call;
  char *bytes; /* arguments */
  size_t used, room;
  uint64_t
      version; /* another one of a queue's where any of them is another; 0: they are not all there */
  uint64_t before; /* they were cleared: their version ... */
  uint32_t had;    /* ... and how many there were */
  bool differ;     /* one that was added since is another */
} bb_gpu_calls;

/* Where the launches write that may not have ended when the next one begins.  Launches may begin before the one before them
 * has ended (on devices where that helps): every kernel waits for it by itself before it writes, and before it reads what
 * such launches may have written.  Most wait at once, and let the next one begin only then: so all launches but that
 * one have ended.  What reads nothing that such launches write runs ahead: it lets the next one begin at once, beside which all of
 * them may run still.  Who waits for a launch waits for all before it, as that one did before it ended. */
enum { BB_GPU_PAST = 16, BB_GPU_AHEAD = 31 };
typedef struct bb_gpu_past {
  bool known; /* false: one was not ours, or is not known to wait */
  uint32_t ranges;
  bb_gpu_pointer from[BB_GPU_PAST], to[BB_GPU_PAST];
} bb_gpu_past;

/* The device, and what launches of a session have of it. */
typedef struct bb_gpu_machine {
  bb_context *ctx; /* the session's: to fail, and for memory */
  const bb_gpu_driver *driver;
  int processors;
  uint32_t shared; /* bytes that a block may have */
  bb_gpu_pointer scratch;
  bb_gpu_pointer counters; /* zero between launches: kernels leave them so */
  bb_gpu_past *past;       /* NULL: a launch begins when those before it have ended */
} bb_gpu_machine;

/* What a tensor map says but for where its array begins: sizes, steps in bytes and a box, innermost axis first. */
typedef struct bb_gpu_box {
  uint32_t rank;
  bool bf16, often; /* often: several blocks read a box */
  uint64_t size[BB_GPU_MAP_RANK + 1], step[BB_GPU_MAP_RANK + 1];
  uint32_t box[BB_GPU_MAP_RANK + 1];
} bb_gpu_box;

/* A tensor map as the driver made it: it is asked again only for another one. */
typedef struct bb_gpu_encoded {
  bool known;
  bb_gpu_pointer data;
  bb_gpu_box box;
  char map[sizeof(bb_cuda_tensor_map)];
} bb_gpu_encoded;

typedef struct bb_gpu_nest_cut {
  int64_t tasks, each, blocks; /* each: bytes of a block's own memory */
} bb_gpu_nest_cut;

/* Lists of scratch begin at multiples of what the widest loads want. */
enum { BB_GPU_LIST_LINE = 16 };
static inline int64_t bb_gpu_list_line(int64_t bytes) {
  return (bytes + BB_GPU_LIST_LINE - 1) / BB_GPU_LIST_LINE * BB_GPU_LIST_LINE;
}

/* What launches of a way are at some extents, wherever its arrays lie (cut.c). */
typedef struct bb_gpu_cut {
  const bb_gpu_way *way;
  size_t scratch, counters;         /* bytes */
  size_t lists;                     /* where lists begin in scratch */
  int64_t tiles, splits;            /* of a way for own units ... */
  uint32_t blocks, cluster, shared; /* ... as it is launched */
  const bb_gpu_slice *slice;        /* whose places from..to-1 it makes; NULL: it makes all */
  int64_t from, to;
  int64_t *extent;       /* the way's, of the slice where there is one */
  int64_t *offset;       /* by view: bytes to where a slice begins ... */
  int64_t *bytes;        /* ... from its first element to its last ... */
  int64_t *list;         /* ... or of a list in scratch */
  bb_gpu_box *map;       /* by map of a way for own units */
  bb_gpu_nest_cut *nest; /* by nest of one for plain threads */
  char *room;            /* for all of them */
  size_t room_bytes;
} bb_gpu_cut;

/* Of the bytes that a block of a device may share, 0 where it does not tell, those that kernels ask for when they are
 * launched: the device library has a few of its own. */
static inline uint32_t bb_gpu_shared(uint32_t told) {
  enum { ANYWHERE = 48 * 1024, LIBRARY = 64 };
  return (told ? told : ANYWHERE) - LIBRARY;
}

/* None are left. */
void bb_gpu_calls_clear(bb_gpu_calls *calls);
/* All are there. */
void bb_gpu_calls_settle(bb_gpu_calls *calls, uint64_t *versions);
/* Adds a launch, whose argument is copied. */
void bb_gpu_add(const bb_gpu_machine *machine, bb_gpu_calls *calls, const bb_gpu_call *call,
                const void *argument, size_t bytes);
/* Launches all of them.  Fails the context with what the driver says; name: of the step. */
void bb_gpu_issue(bb_context *ctx, const bb_gpu_driver *driver, const bb_gpu_calls *calls,
                  void *stream, const char *name);
/* Launches one: what the driver says. */
int bb_gpu_try(const bb_gpu_driver *driver, const bb_gpu_calls *calls, uint32_t call, void *stream);
/* Gives their memory back to the context that it is from. */
void bb_gpu_calls_end(bb_context *ctx, bb_gpu_calls *calls);

/* past.c: the next launch follows something else than a kernel that was noted. */
void bb_gpu_past_unknown(const bb_gpu_machine *machine);
/* A kernel is the launch before the next: where it writes.  view[]: where each begins.  ahead: it runs ahead. */
void bb_gpu_past_note(const bb_gpu_machine *machine, const bb_gpu_cut *cut,
                      const bb_gpu_pointer *view, bool ahead);
/* Bit v: view v is read alone, and launches that may run do not write there.  The first 31. */
uint32_t bb_gpu_past_spares(const bb_gpu_machine *machine, const bb_gpu_cut *cut,
                            const bb_gpu_pointer *view);
/* May a kernel run ahead that reads these views, bits, of those that are spared? */
bool bb_gpu_past_lets(const bb_gpu_machine *machine, const bb_gpu_cut *cut, uint32_t spared,
                      uint32_t reads);
bool bb_gpu_past_same(const bb_gpu_past *a, const bb_gpu_past *b);

/* The value of a formula of a way's extents; fails with BB_ERROR_INPUT where it is too large. */
int64_t bb_gpu_value(const bb_gpu_machine *machine, const bb_formula *formula,
                     const int64_t *extent);

/* cut.c: room for any of a kernel's ways. */
void bb_gpu_cut_begin(bb_context *ctx, const bb_gpu_ways *ways, bb_gpu_cut *cut);
void bb_gpu_cut_end(bb_context *ctx, bb_gpu_cut *cut);
/* All that follows, once the way, the slice and the extents of all are there. */
void bb_gpu_cut_work_out(const bb_gpu_machine *machine, bb_gpu_cut *cut);
void bb_gpu_cut_copy(bb_gpu_cut *to, const bb_gpu_cut *from);
/* Where a view's list begins; of view v = views: what is behind them. */
bb_gpu_pointer bb_gpu_list_at(const bb_gpu_machine *machine, const bb_gpu_cut *cut, uint32_t view);
/* Adds its launches, if there is anything to do.  view[]: where each begins; encoded[]: by map. */
void bb_gpu_cut_call(const bb_gpu_machine *machine, const bb_gpu_cut *cut,
                     const bb_gpu_pointer *view, bb_gpu_encoded *encoded, bb_gpu_calls *calls);

/* The same of nests of plain threads. */
void bb_gpu_cut_plain(const bb_gpu_machine *machine, bb_gpu_cut *cut);
void bb_gpu_call_plain(const bb_gpu_machine *machine, const bb_gpu_cut *cut,
                       const bb_gpu_pointer *view, bb_gpu_calls *calls);

#endif
