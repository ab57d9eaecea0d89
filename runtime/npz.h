/* npz.h - arrays in files: .npy, and .npz, a zip of them, as numpy writes and reads them.
 */
#ifndef BB_NPZ_H
#define BB_NPZ_H

#include "../graph/context.h"

/* Element types.  bf16 has no numpy type of its own: ml_dtypes writes it as the void type V2. */
typedef enum bb_npy_type {
#define BB_NPY_TYPE(id, descr, bytes, kind) BB_NPY_##id,
#include "npy_type.def"
#undef BB_NPY_TYPE
  BB_NPY_TYPE_COUNT
} bb_npy_type;

typedef struct bb_npz_array {
  const char *name; /* without ".npy"; any bytes but NUL */
  bb_npy_type type;
  uint32_t rank;
  const int64_t *shape;
  size_t count, bytes;
  const void *data; /* row-major, this machine's byte order, aligned to 16 bytes */
} bb_npz_array;

typedef struct bb_npz {
  uint32_t count;
  bb_npz_array *array; /* in the file's order */
} bb_npz;

/* Reads a .npz, or a .npy as an archive of one array named after the file.  Everything is in
 * `arena`.  Fails with BB_ERROR_IO, or BB_ERROR_INPUT naming the file, the array and what is wrong
 * with it: anything but plain arrays of numbers, sizes that do not match, damaged archives. */
bb_npz *bb_npz_read(bb_arena *arena, const char *path);
/* The same from memory; `name` is for messages. */
bb_npz *bb_npz_parse(bb_arena *arena, const char *name, const void *data, size_t size);

/* Writes a .npz (stored, dated 1980-01-01: equal arrays give equal files) to a temporary name
 * beside `path`, then renames it. */
void bb_npz_write(bb_context *ctx, const char *path, const bb_npz *npz);

/* NULL: not there.  The last of several of one name, as numpy does. */
const bb_npz_array *bb_npz_find(const bb_npz *npz, const char *name);

char bb_npy_kind(bb_npy_type type); /* 'f', 'i', 'u' or 'b' */
size_t bb_npy_bytes(bb_npy_type type);
const char *bb_npy_name(bb_npy_type type); /* as numpy's dtype.str, "<f4" */

/* All elements as doubles (integers beyond 2^53 lose digits, as everywhere in the interpreter). */
void bb_npz_doubles(const bb_npz_array *array, double *out);

#endif
