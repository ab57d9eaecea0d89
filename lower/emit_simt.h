/* emit_simt.h - CUDA C++ and HIP of any tile program, over lower/device/simt.cuh: a function for each nest.
 *
 * Tiles lie in registers, products go by shared memory, lists that pass between loops lie in the device's:
 * those that one nest alone uses once for each of its blocks.  No schedule of the tile program is obeyed
 * but which loops are spread, so there is nothing that this emitter refuses for want of room but tiles
 * too large for shared memory.
 */
#ifndef BB_LOWER_EMIT_SIMT_H
#define BB_LOWER_EMIT_SIMT_H

#include "emit_c.h"

/* Bytes of loads that a thread has registers for while they are on their way. */
enum { BB_SIMT_ASKED = 160 };

/* Indices are of the tile program's extents. */
typedef struct bb_simt_nest {
  uint32_t threads, shared; /* of a block; bytes */
  bb_tile_index tasks;      /* a block takes one after another, every so many-th */
  bb_tile_index own;        /* bytes of each block, in device memory */
  bool ahead;               /* it may run beside earlier launches until it writes ... */
  uint32_t reads;           /* ... where none of these views is written by them: a bit for each */
} bb_simt_nest;

/* The nests are launched one after the other: functions NAME_0, NAME_1, ...  Their argument is a structure
 * of 64-bit members: the extents; for each view where it begins, of scratch lists that are in no block's
 * own memory: of `list` bytes each; the blocks' own memory, its bytes for each block; the tasks; whether it runs ahead:
 * it lets the next launch begin at once, and waits for earlier ones only where it writes. */
typedef struct bb_simt_launch {
  uint32_t nests;
  const bb_simt_nest *nest;
  const bb_tile_index *list; /* by view: bytes of a scratch list; NULL: it is none */
} bb_simt_launch;

/* Appends to a source that begins with `#include "simt.cuh"`.  Fails with BB_ERROR_UNSUPPORTED. */
void bb_emit_simt(bb_buffer *out, const bb_tile_program *program, const char *name,
                  const bb_emit_options *options, bb_simt_launch *launch);

extern const char bb_device_simt[], bb_device_misc[],
    bb_device_pick[]; /* simt.cuh, misc.cuh, pick.cuh */
extern const char bb_device_simt_cuda[], bb_device_simt_hip[], bb_device_fragment[],
    bb_device_product[];

#endif
