/* listing_loops.c - which of the loops around a map its results depend on: the indices that a buffer
 * needs in a listing. */
#include "listing_loops.h"

static const bb_expr *note_coord(void *user, const bb_expr *leaf) {
  uint64_t *maps = user;
  if (leaf->op == BB_X_COORD && leaf->index >= BB_COORD_MAP && leaf->index < BB_COORD_AXIS)
    *maps |= bb_loop_bit(leaf->index - BB_COORD_MAP);
  return leaf;
}

/* The loops that an expression's coordinates name, `depth` loops standing around it. */
static uint64_t coord_loops(const bb_program *program, const bb_expr *expr, uint32_t depth) {
  uint64_t inner = 0, loops = 0;
  if (!expr || !bb_expr_uses_coord(expr)) return 0;
  bb_expr_map_leaves((bb_program *)program, expr, note_coord, &inner);
  for (uint32_t k = 0; k < depth; k++)
    if (inner & bb_loop_bit(k)) loops |= bb_loop_bit(depth - 1 - k);
  return loops;
}

/* Of every node of a level, given those of its inputs; ports of a node are not told apart but for
 * maps. */
static void level_loops(const bb_program *program, const bb_graph *graph, uint32_t depth,
                        uint64_t **loops, bb_arena *scratch) {
  uint32_t *order = BB_NEW(scratch, uint32_t, (size_t)graph->live + 1);
  uint32_t count = bb_topological_order(graph, scratch, order);
  for (uint32_t k = 0; k < count; k++) {
    const bb_node *node = bb_node_get(graph, order[k]);
    if (node->kind == BB_NODE_INPUT) continue;
    uint64_t *own = loops[order[k]] = BB_NEW(scratch, uint64_t, (size_t)node->nout + 1);
    uint64_t *in = BB_NEW(scratch, uint64_t, (size_t)node->nin + 1), all = 0;
    for (uint32_t i = 0; i < node->nin; i++) {
      in[i] = loops[node->in[i].src.node][node->in[i].src.port];
      all |= in[i];
    }
    if (node->kind == BB_NODE_FUNC) all |= coord_loops(program, node->expr, depth);
    for (uint32_t i = 0; i < node->nout; i++) own[i] = all;
    if (node->kind == BB_NODE_MAP) bb_listing_loops(program, graph, order[k], in, depth, own);
  }
}

void bb_listing_loops(const bb_program *program, const bb_graph *graph, uint32_t map,
                      const uint64_t *in, uint32_t depth, uint64_t *out) {
  const bb_node *node = bb_node_get(graph, map);
  const bb_graph *inner = node->inner;
  bb_arena *scratch = bb_scratch(program->ctx);
  uint64_t **loops = BB_NEW(scratch, uint64_t *, inner->count);
  for (uint32_t i = 0; i < inner->ninputs; i++) {
    uint64_t *own = loops[inner->input[i]] = BB_NEW(scratch, uint64_t, 1);
    *own = in[i] | (node->in[i].level != BB_WHOLE ? bb_loop_bit(depth) : 0);
  }
  level_loops(program, inner, depth + 1, loops, scratch);
  for (uint32_t i = 0; i < inner->noutputs; i++) {
    bb_value src = bb_src(inner, inner->output[i], 0);
    out[i] = loops[src.node][src.port] & ~bb_loop_bit(depth);
    if (node->part == BB_PART_CHUNK) out[i] |= bb_loop_bit(depth) - 1; /* which chunk it is */
  }
  bb_scratch_end(scratch);
}
