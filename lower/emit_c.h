/* emit_c.h - C source of kernels for the CPU.
 *
 * The source is written to be read: a function for each nest, a statement for each statement, loops
 * with their bounds; names are those of the tile program's numbering, none is a model's.  Extents are
 * arguments.
 */
#ifndef BB_LOWER_EMIT_C_H
#define BB_LOWER_EMIT_C_H

#include "schedule.h"

typedef struct bb_emit_options {
  bool exact; /* floats are doubles, and so are the arrays that are bound: for comparisons */
  /* of the processor that it is for; 0: 32.  What is right does not depend on it */
  uint32_t vector_bytes;
  bool tiles;      /* of the processor: bb_processor_has_tiles() */
  uint32_t shared; /* a GPU: bytes that a block may share; 0: as many as any has */
} bb_emit_options;

/* Appends the functions of a kernel and `const bb_cpu_kernel NAME`, without the include of the device
 * library.  Fails the context with BB_ERROR_UNSUPPORTED where the CPU has no form of a statement. */
void bb_emit_c(bb_buffer *out, const bb_tile_program *program, const char *name,
               const bb_emit_options *options);

/* Are there blocks that it works off in strips of rows, for vectors of so many bytes?  Those that a mask rules out
 * are left out; *ends: and so are the columns behind the last one that a mask leaves to a strip. */
bool bb_c_has_strips(const bb_tile_program *program, uint32_t vector_bytes, bool *ends);

/* The device tile library: files, NUL-terminated. */
extern const char bb_device_cpu[], bb_device_cpu_call[], bb_device_cpu_real[],
    bb_device_cpu_product[], bb_device_cpu_narrow[], bb_device_cpu_narrow_product[],
    bb_device_cpu_integer_product[], bb_device_cpu_byte_product[], bb_device_cpu_math[],
    bb_device_cpu_memory[], bb_device_cpu_tiles[], bb_device_cpu_lanes[], bb_device_cpu_beside[];

#endif
