/* compile.h - fused programs compiled for a device.
 */
#ifndef BB_COMPILE_COMPILE_H
#define BB_COMPILE_COMPILE_H

#include "../../graph/program.h"

/* What tests and measurements ask of a GPU's kernels beside. */
typedef struct bb_compile_way {
  uint32_t way; /* 1 + the only way to cut results that is tried; 0: all, by weight */
  bool plain;   /* kernels of plain threads alone */
  bool warps;   /* kernels whose products are made by single warps, where others would be */
} bb_compile_way;

/* Fails the program's context.  way: NULL: nothing. */
bb_model *bb_compile(bb_program *program, const bb_compile_options *options,
                     const bb_compile_way *way);

#endif
