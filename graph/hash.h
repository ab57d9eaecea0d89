/* hash.h - the Merkle hash of a block program: XXH3-128 over ops, attributes, types and inputs.
 *
 * Positional: names, serials, node indices and the numbers of dims do not enter; dims count by the
 * order of first appearance together with their extents.  Equal hashes are confirmed by
 * bb_graph_equal() or by the hashed text, never trusted alone.
 */
#ifndef BB_GRAPH_HASH_H
#define BB_GRAPH_HASH_H

#include "program.h"

typedef struct bb_hash {
  uint64_t low, high;
} bb_hash;

/* Of a root level and all inside it, with the program's tensors that it reads and writes. */
bb_hash bb_hash_graph(const bb_program *program, const bb_graph *graph);
/* As 32 hexadecimal digits and a NUL. */
void bb_hash_text(bb_hash hash, char text[33]);

#endif
