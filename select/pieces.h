/* pieces.h - inside select/: a flow cut into the pieces that kernels are made of.
 *
 * A piece is what no cover takes apart: nodes that pass partial results, which have no tensor form;
 * and an elementwise map with the node that makes its operand, where that node has no other reader
 * and both run over the same lists (done apart, the value would be stored and loaded for nothing);
 * and what widens elements with who reads it;
 * and an exp of narrow floats with what makes its argument and what reads it.
 */
#ifndef BB_SELECT_PIECES_H
#define BB_SELECT_PIECES_H

#include "cover.h"
#include "flow.h"

typedef struct bb_pieces {
  const bb_flow *flow;
  uint32_t count;
  uint32_t *of;         /* by node: its piece; BB_NONE: it is no computation */
  uint32_t *start;      /* by piece, count + 1: into node[] */
  uint32_t *node;       /* the flow's nodes by piece, in topological order */
  bb_cover_node *cover; /* by piece: what the cover has to know */
} bb_pieces;

/* Loops without a fold or a product around functions of one element each. */
bool bb_is_pointwise(const bb_node *node);
/* Does the node convert elements to a wider type, and nothing else? */
bool bb_widens(const bb_graph *graph, uint32_t node);
/* In place: each reader of such a node makes it for itself (widening.c). */
void bb_spread_widening(bb_graph *graph);

bb_pieces *bb_pieces_create(const bb_flow *flow, bb_arena *arena);

/* What a kernel of pieces is, whatever its dims and tensors are called: kernels with equal keys
 * have equal prices. */
typedef struct bb_piece_key {
  uint32_t words, capacity;
  uint64_t *word;
} bb_piece_key;

typedef struct bb_keys bb_keys;
/* layouts: kernels differ, too, by how their inputs lie in memory. */
bb_keys *bb_keys_create(const bb_program *program, bool layouts, bb_arena *arena);
/* Another flow follows: what is known of nodes is forgotten, the numbers of equal nodes stay. */
void bb_keys_begin(bb_keys *keys, const bb_pieces *pieces);
/* The key of a kernel; it stays until the next call. */
const bb_piece_key *bb_keys_make(bb_keys *keys, const bb_cover_kernel *kernel);

/* The kernel as a block program of its own, for pricing: values that it reads from other kernels
 * are tensors that are there until bb_probe_end(). */
bb_graph *bb_probe_graph(const bb_pieces *pieces, const bb_cover_kernel *kernel);
typedef struct bb_probe {
  uint32_t tensors, serial;
} bb_probe;
bb_probe bb_probe_begin(const bb_program *program);
void bb_probe_end(bb_program *program, bb_probe probe);

#endif
