/* device.h - a GPU as a device of compiled models (runtime/device.h): what its parts share. */
#ifndef BB_GPU_DEVICE_H
#define BB_GPU_DEVICE_H

#include "../device.h"
#include "../cuda/launch.h"
#include "code.h"
#include "misc.h"

struct bb_device {
  bb_context *ctx;
  bb_arena *arena;
  bb_gpu_driver driver;
  uint32_t number;
  int device;
  void *context; /* the primary one; held while the device is open */
  bb_gpu_target target;
  bool overlaps; /* launches may begin before those before them have ended */
};

struct bb_module {
  bb_device *device;
  const bb_plan *plan;
  bb_arena *arena;
  bb_gpu_kernels *kernels;
  uint32_t images;
  void **image;       /* modules of the driver's */
  bb_gpu_misc **misc; /* by step of the plan; NULL: there is no kernel for it */
  bb_gpu_mover mover;
  bool compiled;
};

/* A launch of a graph. */
typedef struct bb_gpu_node {
  void *node; /* the driver's */
  bb_gpu_manner how;
  uint64_t version; /* of the calls that it is one of ... */
  uint32_t index;   /* ... and which */
} bb_gpu_node;

/* Launches of runs in these manners as a graph. */
typedef struct bb_gpu_graph {
  void *drawn, *ready; /* it, and what is launched of it; NULL: there is none ... */
  bool refused;        /* ... and will be none */
  uint64_t manners;    /* a number made of them */
  uint32_t nodes, room;
  bb_gpu_node *node;
  uint32_t seen; /* such runs, as far as they are counted */
  uint64_t when; /* the last one; 0: there was none */
} bb_gpu_graph;

/* A launch of a run. */
typedef struct bb_gpu_listed {
  const bb_gpu_calls *calls;
  uint32_t index;
} bb_gpu_listed;

enum { BB_GPU_GRAPHS = 8 };
typedef struct bb_gpu_graphs {
  enum { BB_GRAPH_RESTS, BB_GRAPH_IS_LISTED, BB_GRAPH_IS_DRAWN } state;
  void *stream; /* that they are drawn in */
  void *ready;  /* what was noted last; NULL: nothing */
  bb_gpu_graph kept[BB_GPU_GRAPHS];
  bb_gpu_graph whole;    /* of a run with something else than launches in it */
  bb_gpu_listed *listed; /* the launches of a run that is noted ... */
  uint32_t count, room;
  bool loose;        /* ... which has something else as well ... */
  bool moving;       /* ... and differs from the one before in what launches are called with */
  bool draws;        /* the one before had something else */
  uint64_t runs;     /* that were listed */
  uint64_t versions; /* of calls */
} bb_gpu_graphs;

struct bb_queue {
  bb_context *ctx;
  bb_device *device;
  void *own, *stream; /* streams: its own; that of the run */
  bool borrowed;      /* the run's is the caller's ... */
  bool capturing;     /* ... and captures */
  bool cannot_note;
  bb_gpu_graphs graphs;
  bb_gpu_pointer counters; /* zero between launches */
  size_t counter_bytes, wanted_counters;
  /* A word for each step: 1 + the element that it complains of; behind them all another one: how long its results turned out. */
  bb_gpu_pointer faults;
  uint32_t fault_words, wanted_faults;
  bb_prepared **last; /* by kernel of the module: of the last step of it that was met */
  uint32_t lasts;
  bb_gpu_calls moves;    /* of the move that is under way: its memory is kept */
  bb_gpu_calls captured; /* of the step that is captured: so is its memory */
};

/* The device's context is current between both, on whatever thread calls; a failure leaves it, too. */
void bb_gpu_enter(bb_device *device, bb_context *ctx);
void bb_gpu_leave(bb_device *device, bb_context *ctx);
/* Whether it is, as where the caller's thread has it: then there is no need of either. */
bool bb_gpu_is_current(const bb_device *device);

/* --- module.c --- */
bb_module *bb_gpu_load(bb_device *device, bb_context *ctx, const bb_code *code,
                       const bb_plan *plan);
void bb_gpu_unload(bb_module *module);
bool bb_gpu_compiled(const bb_module *module);
bool bb_gpu_runs(const bb_module *module, uint32_t step);

/* --- queue.c --- */
bb_queue *bb_gpu_queue_open(bb_device *device, bb_context *ctx, const bb_queue_options *options);
void bb_gpu_queue_close(bb_queue *queue);
void bb_gpu_queue_use(bb_queue *queue, bb_context *ctx, void *stream);
void bb_gpu_queue_wait(bb_queue *queue, bb_context *ctx);
uint32_t bb_gpu_queue_fault(bb_queue *queue, bb_context *ctx, int64_t *element);
int64_t bb_gpu_queue_told(bb_queue *queue, bb_context *ctx, uint32_t step);
void bb_gpu_copy(bb_queue *queue, bb_context *ctx, bb_way_of_copy way, void *to, const void *from,
                 size_t bytes);
void bb_gpu_move(bb_module *module, bb_queue *queue, bb_context *ctx, const bb_move *move);
/* Counters and faults, as many as launches want.  True: they lie elsewhere than before. */
bool bb_gpu_queue_equip(bb_queue *queue, bb_context *ctx);

/* --- graph.c --- */
bool bb_gpu_note(bb_queue *queue, bb_context *ctx, bool moving);
bool bb_gpu_note_end(bb_queue *queue, bb_context *ctx);
bool bb_gpu_replay(bb_queue *queue, bb_context *ctx);
/* A step's launches, which live as long as the queue: into the stream of the run, or into the graph. */
void bb_gpu_put(bb_queue *queue, bb_context *ctx, const bb_gpu_calls *calls, const char *name);
/* The stream for anything else.  False: it is to go nowhere: launches alone are listed. */
bool bb_gpu_loose(bb_queue *queue, void **stream);
/* What was begun is given up, by a run that failed. */
void bb_gpu_graphs_leave(bb_queue *queue);
/* There are none, and nothing is kept. */
void bb_gpu_graphs_end(bb_queue *queue);

/* --- captured.c --- */
/* What a stream captured last, and the number of its capture; NULL: nothing, several things, or the driver does not tell. */
void *bb_gpu_captured_last(const bb_gpu_driver *driver, void *stream, uint64_t *id);
/* Of the queue's stream, which captures: where launches write that may run beside the next one; and once that was captured, the
 * same of the one behind it. */
bb_gpu_past bb_gpu_captured_past(const bb_queue *queue);
void bb_gpu_captured_note(const bb_queue *queue, const bb_gpu_past *past);

/* --- prepare.c --- */
size_t bb_gpu_scratch(bb_module *module, bb_queue *queue, bb_context *ctx, const bb_launch *launch,
                      bb_prepared **prepared);
bool bb_gpu_prepare(bb_module *module, bb_queue *queue, bb_context *ctx, const bb_launch *launch,
                    bb_prepared *prepared, const bb_prepared *before);
void bb_gpu_forget(bb_prepared *prepared);
void bb_gpu_launch(bb_module *module, bb_queue *queue, bb_context *ctx, const bb_launch *launch,
                   bb_prepared *prepared);

#endif
