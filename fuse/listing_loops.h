/* listing_loops.h - which loops a value depends on, as bits by their depth. */
#ifndef BB_FUSE_LISTING_LOOPS_H
#define BB_FUSE_LISTING_LOOPS_H

#include "../graph/program.h"

static inline uint64_t bb_loop_bit(uint32_t depth) {
  return (uint64_t)1 << (depth & 63);
}

/* Of every out-port of a map that `depth` loops stand around, given those of its in-ports. */
void bb_listing_loops(const bb_program *program, const bb_graph *graph, uint32_t map,
                      const uint64_t *in, uint32_t depth, uint64_t *out);

#endif
