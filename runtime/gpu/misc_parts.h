/* misc_parts.h - what the files of misc nodes on a GPU share: a node, and a launch of it for given extents. */
#ifndef BB_GPU_MISC_PARTS_H
#define BB_GPU_MISC_PARTS_H

#include "misc.h"

enum {
  BB_GPU_AXES = 8,
  BB_GPU_SPATIAL = 6,
  BB_GPU_THREADS = 256,
  BB_GPU_SPAN = 4, /* BB_MISC_SPAN of misc.cuh */
  BB_GPU_RESULTS = 2
};

typedef enum bb_gpu_misc_kind {
  BB_GPU_GATHER,
  BB_GPU_ALONG,
  BB_GPU_POINTS,
  BB_GPU_SCATTER, /* points of an operand's copy are put, or added to */
  BB_GPU_CONVOLUTION,
  BB_GPU_JOIN,   /* one behind the other along an axis: moves alone */
  BB_GPU_APPEND, /* rows behind as many as another operand says */
  BB_GPU_TOP,    /* the first of each line in order */
  BB_GPU_PLACES, /* of elements that are not zero */
  BB_GPU_MOVE    /* the same elements under another shape: moves alone */
} bb_gpu_misc_kind;

struct bb_gpu_misc {
  const bb_plan *plan;
  const bb_plan_step *step;
  uint32_t number; /* of the step */
  bb_gpu_misc_kind kind;
  bb_gpu_misc_kernel kernel[BB_GPU_MISC_KERNELS];
  void *function[BB_GPU_MISC_KERNELS];
  const bb_gpu_mover *mover;
  uint32_t operands; /* those that are absent at the end left out */
};

/* An array as it lies. */
typedef struct bb_gpu_array {
  bb_gpu_pointer data;
  uint32_t rank;
  int64_t extent[BB_GPU_AXES], stride[BB_GPU_AXES];
} bb_gpu_array;

typedef struct bb_gpu_binding {
  const bb_gpu_machine *machine;
  const bb_gpu_misc *misc;
  const int64_t *symbol;
} bb_gpu_binding;

/* The argument of one of a node's kernels, how many threads have something to do, and the bytes that those of a block share. */
typedef struct bb_gpu_misc_call_of {
  int64_t threads;
  uint32_t shared, kernel; /* kernel: which of the node's */
  size_t bytes;
  union {
    _Alignas(16) char any[1];
    struct { /* as misc.cuh has them */
      bb_gpu_pointer data, index, out, fault;
      int64_t total, count, extent, inner;
    } gather;
    struct {
      bb_gpu_pointer data, index, out, fault;
      int64_t rows, run, spans, width, extent, data_step, index_step, step;
      int64_t again, turns, data_again, out_again, rank;
      int64_t shape[BB_GPU_AXES], data_steps[BB_GPU_AXES], index_steps[BB_GPU_AXES];
    } along;
    struct {
      bb_gpu_pointer data, index, out, fault;
      int64_t total, per_batch, depth, inner, extent[BB_GPU_AXES];
    } points;
    struct {
      bb_gpu_pointer with, index, out, fault;
      int64_t total, depth, inner, extent[BB_GPU_AXES];
    } scatter;
    struct {
      bb_gpu_pointer past, rows, length, out, fault;
      int64_t batch, heads, most, fresh, width, past_pitch, rows_pitch, out_pitch;
    } append;
    struct {
      bb_gpu_pointer data, weight, bias, out;
      int64_t total, groups, channels, maps, axes;
      int64_t in[BB_GPU_SPATIAL], places[BB_GPU_SPATIAL], kernel[BB_GPU_SPATIAL];
      int64_t stride[BB_GPU_SPATIAL], dilation[BB_GPU_SPATIAL], before[BB_GPU_SPATIAL];
    } window;
    struct { /* as pick.cuh has them */
      bb_gpu_pointer data, many, out, place, fault;
      int64_t lines, extent, inner, kept;
      uint64_t sign, infinity, ones, flip;
    } top;
    struct {
      bb_gpu_pointer data, out, counts, told;
      int64_t total, rank, span, most, counting;
      uint64_t mask;
      int64_t shape[BB_GPU_AXES];
    } places;
  } as;
} bb_gpu_misc_call_of;

_Noreturn void bb_gpu_misc_refuse(const bb_gpu_binding *binding, const char *why);
/* An attribute of the node. */
const bb_attribute *bb_gpu_attribute(const bb_misc *misc, const char *name);
int64_t bb_gpu_integer(const bb_misc *misc, const char *name, int64_t otherwise);

/* misc_pick.c: whether operands and results are such as the kernel takes; its template's types are in `arena`. */
const char *bb_gpu_pick_types(const bb_gpu_misc *misc, bb_arena *arena);
/* The same as bb_gpu_misc_bind(), but for `told` and `counts` of places, which are the caller's. */
bool bb_gpu_pick_bind(const bb_gpu_binding *binding, const bb_gpu_array *in,
                      const bb_gpu_array *out, bb_gpu_pointer fault, bb_gpu_misc_call_of *call);
/* Blocks that count places before they put them; 1: the one that does counts by itself. */
int64_t bb_gpu_pick_blocks(const bb_gpu_machine *machine, int64_t total);

/* misc_bind.c: what the kernel of a node is called with, operands and results lying so; `fault`: a word that bad
 * indices set.  False: the operands do not fit each other. */
bool bb_gpu_misc_bind(const bb_gpu_binding *binding, const bb_gpu_array *in,
                      const bb_gpu_array *out, bb_gpu_pointer fault, bb_gpu_misc_call_of *call);

#endif
