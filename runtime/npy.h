/* npy.h - one array in numpy's .npy format, in memory; npz.c is the archive around it. */
#ifndef BB_NPY_H
#define BB_NPY_H

#include "npz.h"

/* Parses a whole .npy file into array (all but its name); data is copied into `arena` in row-major
 * order and this machine's byte order.  Returns NULL, or what is wrong with it. */
const char *bb_npy_parse(bb_arena *arena, const uint8_t *bytes, size_t size, bb_npz_array *array);

/* Is this the beginning of a .npy file? */
bool bb_npy_has_magic(const uint8_t *bytes, size_t size);

/* Appends header and data. */
void bb_npy_print(bb_buffer *out, const bb_npz_array *array);

#endif
