/* emit_simt_parts.h - what the two parts of the plain emitter share. */
#ifndef BB_LOWER_EMIT_SIMT_PARTS_H
#define BB_LOWER_EMIT_SIMT_PARTS_H

#include "emit_c_parts.h"
#include "emit_simt.h"

typedef struct bb_simt {
  bb_c c; /* names, indices and expressions are those of C */
  uint32_t ty, tx, tv;
  uint32_t most_rows, most_cols; /* of the tiles in the nest at hand */
  bool products, scans,
      turns;            /* in the nest at hand: what goes by shared memory; turns: transpositions */
  bool waits;           /* bb_tile_waits() */
  bool alone;           /* it is known that few tasks are */
  bool ahead;           /* the nest may run beside earlier launches until it writes */
  uint32_t least_bytes; /* of an element that it loads or stores */
  uint32_t shared, most_shared; /* bytes, so far; at most */
  uint32_t *touches;            /* by view: statements of the nest that touch it */
  bool *computes;               /* by tile: others than stores read it */
  uint32_t variable;            /* of the serial loop whose body is being written */
} bb_simt;

/* So many of an axis's elements has a thread. */
static inline uint32_t bb_simt_parts(uint32_t size, uint32_t threads) {
  return size ? (size + threads - 1) / threads : 1;
}

/* emit_simt.c: an element in memory. */
const char *bb_simt_stored(const bb_simt *s, bb_dtype dtype);

/* emit_simt_stmt.c */
void bb_simt_body(bb_simt *s, const bb_tile_body *body);

#endif
