/* code.h - the kernels of a compiled model for a GPU: images of the driver's, and what launches of them need.
 *
 * A kernel has ways: functions that compute the same, for different extents and arrays.  Which one runs is found
 * out for each launch (prepare.c).  Everything about a way follows from its extents by formulas, so nothing here knows
 * programs.  The text form is launches.json of a compiled folder (code_read.c; made by code_write.c).
 */
#ifndef BB_GPU_CODE_H
#define BB_GPU_CODE_H

#include "../model/formula.h"
#include "../model/plan.h"
#include "driver.h"

/* Files of a folder: the text, and the images that it lists, one after the other from multiples of BB_GPU_IMAGE_LINE on. */
#define BB_GPU_LAUNCHES "launches.json"
#define BB_GPU_IMAGES "kernels.bin"
enum { BB_GPU_IMAGE_LINE = 64, BB_GPU_CODE_VERSION = 7, BB_GPU_MAP_RANK = 5 };

/* What a model for a GPU is loaded from. */
typedef struct bb_gpu_code {
  const char *text;
  size_t length;
  const char *images;
  size_t bytes;
  bool compiled; /* some of it just now, not found in a cache */
} bb_gpu_code;

/* An array that a way works on. */
typedef struct bb_gpu_view {
  bool written, scratch;
  bb_formula bytes; /* from its first element to its last */
} bb_gpu_view;

/* A tensor map: a box of a view, 64 columns wide, of 16-bit elements; outermost axis first. */
typedef struct bb_gpu_map {
  uint32_t view, rank,
      fold; /* fold: boxes side by side in one copy, counted by an outermost axis */
  bool bf16;
  bb_formula extent[BB_GPU_MAP_RANK], stride[BB_GPU_MAP_RANK]; /* strides in elements */
  uint32_t box[BB_GPU_MAP_RANK];
  uint32_t
      edge; /* 0, or 1 + an axis: of that the box has what the extent leaves beyond whole boxes, in eights */
  bb_formula reads; /* how many blocks read a box */
} bb_gpu_map;

/* What a way's tiles cost (cuda/weigh.c).  Each step's value is a variable behind the extents and the steps before it. */
enum {
  BB_GPU_OPERATIONS, /* of products */
  BB_GPU_BYTES,      /* that come to blocks */
  BB_GPU_TURNS,      /* of serial loops */
  BB_GPU_LONGEST,    /* turns of the grid's first block or its last, whichever has more */
  BB_GPU_ELEMENTS,   /* of blocks, by arithmetic */
  BB_GPU_BEYOND,     /* bytes of blocks that lie beyond arrays */
  BB_GPU_MERGED,     /* bytes */
  BB_GPU_DIFFERENT,  /* bytes that are read, each once */
  BB_GPU_TOTALS
};
typedef struct bb_gpu_weight {
  uint32_t steps;
  const bb_formula *step;
  bb_formula total[BB_GPU_TOTALS];
  uint32_t groups; /* warp groups that compute; 0: warps do */
  uint32_t rows;   /* of a warp, whose products are its own; 0: they are a group's */
  bool few;        /* results of few rows, on their side */
} bb_gpu_weight;

/* An extent that a launch may have less of, and makes that part of the results alone, of arrays that begin so much further on. */
typedef struct bb_gpu_slice {
  uint32_t extent; /* the way's */
  uint32_t step;   /* of which a tile has so many places */
  const bb_formula
      *by; /* by view: bytes from one place to the next; without terms: it is all there for any */
} bb_gpu_slice;
enum { BB_GPU_SLICES = 2 };

/* For units of the device's own: one function.  Its argument is a structure of: the maps; pointers to the views listed;
 * where it splits, memory for `part` bytes of every block and a zeroed counter for every group of `splits` of them; where
 * `counter`, one more zeroed counter; the extents as int; the number of tiles as int; and, a bit for each of the first 31 views,
 * which may be read before earlier launches have ended, the last one where it runs ahead (past.c). */
typedef struct bb_gpu_own {
  const char *name;
  uint32_t image, threads, shared, part;
  uint32_t
      resident; /* blocks that a processor has registers for at once, and memory where they persist */
  bool persistent, counter, split;
  bool ahead; /* it may run ahead, where all that it reads may be read so */
  bb_formula tiles, cluster, splits;
  bb_formula mates; /* blocks of a cluster that have a tile each, where `cluster` is 1 */
  uint32_t maps, pointers;
  const bb_gpu_map *map;
  const uint32_t *pointer; /* views */
  uint32_t slices;
  bb_gpu_slice slice[BB_GPU_SLICES];
  bb_gpu_weight weight;
  void *function; /* once it is loaded */
} bb_gpu_own;

typedef struct bb_gpu_nest {
  const char *name;
  uint32_t threads, shared;
  bb_formula tasks, own; /* own: bytes of each block, in device memory */
  bool ahead;            /* it may run ahead, where these views may be read so: a bit for each */
  uint32_t reads;
  void *function;
} bb_gpu_nest;

/* For plain threads: a function for each nest, one after the other, of the image of all of them (of a way for own units those
 * that run before its function; mostly none).  Their argument is a structure
 * of 64-bit members: the extents, and a zero; for each view where it begins, and a zero; the blocks' own memory, its bytes for
 * each block; the tasks; whether it runs ahead. */
typedef struct bb_gpu_plain {
  uint32_t nests;
  bb_gpu_nest *nest;
  const bb_formula *
      list; /* by view: bytes of a scratch list that is in no block's own memory; without terms: it is none.  NULL without nests */
} bb_gpu_plain;

typedef struct bb_gpu_way {
  bool is_own;
  uint32_t extents, views;
  const uint32_t *extent, *view; /* which of the step's each is; BB_NONE: not used; scratch */
  const bb_gpu_view *about;      /* by view */
  bb_gpu_own own;
  bb_gpu_plain plain;
} bb_gpu_way;

/* Those for own units first, then at most one for plain threads. */
typedef struct bb_gpu_ways {
  uint32_t count;
  bb_gpu_way *way;
} bb_gpu_ways;

typedef struct bb_gpu_kernels {
  const char *target;
  uint32_t images;
  const uint64_t *offset, *size; /* by image */
  uint32_t moves, plain;         /* images; plain: BB_NONE: there is none */
  const bool *misc; /* by step of the plan: it is a node that the image `plain` has a kernel for */
  uint32_t kernels;
  bb_gpu_ways *kernel;
} bb_gpu_kernels;

/* Fails the arena's context with BB_ERROR_INPUT where the text is wrong, or does not fit the plan or so many bytes of images.
 * Everything is in the arena. */
bb_gpu_kernels *bb_gpu_code_read(bb_arena *arena, const bb_gpu_code *code, const bb_plan *plan);

#endif
