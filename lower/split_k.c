/* split_k.c - chunks of folded loops.
 *
 *   map N (...) { ... yield fold m %t, ... }
 *
 * becomes, split over chunks,
 *
 *   %p = map N_chunks (...) { map N chunk [N_chunks] (...) { ... yield fold m %t } yield %p }
 *   reduce m(%p[0])
 *
 * and as a tree of 2**d chunks d maps over halves, one within the other, each folding the two results
 * of the one inside.
 */
#include "split_k.h"

#include <string.h>

enum { LEVELS = 12 }; /* of a tree: 2**12 chunks */

typedef struct splitter {
  bb_program *program;
  bool tree;
  uint32_t chunks;
  uint32_t levels; /* TREE */
} splitter;

/* --- the dims that number chunks --- */

/* An enumerated dim of this name and extent: kernels share them. */
static bb_dim find_dim(bb_program *program, const char *name, uint32_t extent) {
  bb_dim dim = bb_dim_find(program, name, strlen(name));
  if (dim != BB_NO_DIM && !program->dim[dim].blocked &&
      bb_extent_value(program->dim[dim].extent) == extent)
    return dim;
  return bb_dim_add(program, name, bb_extent_number(program, extent), false);
}

/* Dims for the chunks of a loop over dim, outermost first, in the program's memory. */
static const bb_numbering *number_chunks(splitter *s, bb_dim dim) {
  bb_arena *arena = s->program->arena;
  bb_numbering *numbering = BB_NEW(arena, bb_numbering, 1);
  numbering->count = s->tree ? s->levels : 1;
  bb_dim *list = BB_NEW(arena, bb_dim, numbering->count);
  if (!s->tree)
    list[0] = find_dim(s->program, bb_arena_printf(arena, "%s_chunks", s->program->dim[dim].name),
                       s->chunks);
  for (uint32_t i = 0; s->tree && i < s->levels; i++)
    list[i] = find_dim(s->program, bb_arena_printf(arena, "half_%u", i), 2);
  numbering->dim = list;
  return numbering;
}

/* --- coordinates of maps further out --- */

typedef struct shift {
  bb_program *program;
  uint32_t first, by; /* coordinates of maps from `first` on outward */
} shift;

static const bb_expr *shift_leaf(void *user, const bb_expr *leaf) {
  const shift *s = user;
  bool outer = leaf->op == BB_X_COORD && leaf->index >= BB_COORD_MAP + s->first &&
               leaf->index < BB_COORD_AXIS;
  return outer ? bb_expr_coord(s->program, leaf->index + s->by) : leaf;
}

static void shift_level(bb_graph *graph, shift s) {
  for (uint32_t i = 0; i < graph->count; i++) {
    bb_node *node = bb_node_get(graph, i);
    if (node->kind == BB_NODE_FUNC && node->expr && bb_expr_uses_coord(node->expr))
      node->expr = bb_expr_map_leaves(s.program, node->expr, shift_leaf, &s);
    if (node->kind == BB_NODE_MAP)
      shift_level(bb_map_own(graph, i), (shift){s.program, s.first + 1, s.by});
  }
}

/* --- one loop --- */

static bool is_folded_loop(const bb_node *node) {
  bool folds = false;
  if (node->kind != BB_NODE_MAP || node->part != BB_PART_ALL) return false;
  for (uint32_t i = 0; i < node->nout; i++) {
    folds |= node->out[i].mode == BB_OUT_FOLD;
    if (node->out[i].mode == BB_OUT_COLLECT) return false;
  }
  return folds;
}

/* The loop over one chunk, at the innermost level. */
static uint32_t add_chunk(bb_graph *graph, const bb_node *loop, const bb_value *in,
                          const bb_numbering *chunk) {
  uint32_t at = bb_node_add(graph, BB_NODE_MAP, 0, 0);
  bb_node *node = bb_node_get(graph, at);
  node->dim = loop->dim;
  node->part = BB_PART_CHUNK;
  node->block = loop->block;
  node->chunk = chunk;
  node->name = loop->name;
  node->inner = bb_graph_hold(loop->inner);
  for (uint32_t i = 0; i < loop->nin; i++) bb_in_add(graph, at, in[i], loop->in[i].level);
  for (uint32_t i = 0; i < loop->nout; i++) {
    uint32_t port = bb_out_add(graph, at, loop->out[i].type);
    bb_use unused = node->out[port].first;
    node->out[port] = loop->out[i];
    node->out[port].first = unused;
  }
  return at;
}

/* What leaves a map over chunks: the partial tuples listed, or (TREE) folded. */
static void leave(const splitter *s, bb_graph *graph, uint32_t map, const bb_node *loop,
                  bb_value *value) {
  for (uint32_t i = 0; i < loop->nout; i++) {
    const bb_out *out = &loop->out[i];
    if (out->mode == BB_OUT_INVARIANT)
      value[i] = bb_map_invariant(graph, map, value[i]);
    else if (s->tree)
      value[i] = bb_map_fold(graph, map, value[i], out->fold, out->component);
    else
      value[i] = bb_map_collect(graph, map, value[i], BB_AXIS_NONE);
  }
}

/* Maps over chunks from level `at` of the nest inward; value[] receives the results in graph. */
static void build(splitter *s, bb_graph *graph, const bb_node *loop, const bb_value *in,
                  const bb_numbering *chunk, uint32_t at, bb_value *value) {
  if (at == chunk->count) {
    uint32_t map = add_chunk(graph, loop, in, chunk);
    for (uint32_t i = 0; i < loop->nout; i++) value[i] = (bb_value){map, i};
    return;
  }
  bb_arena *scratch = bb_scratch(s->program->ctx);
  bb_value *inside = BB_NEW(scratch, bb_value, loop->nin);
  uint32_t map = bb_map_add(graph, chunk->dim[at]);
  for (uint32_t i = 0; i < loop->nin; i++) inside[i] = bb_map_in(graph, map, in[i], BB_WHOLE);
  build(s, bb_node_get(graph, map)->inner, loop, inside, chunk, at + 1, value);
  leave(s, graph, map, loop, value);
  bb_scratch_end(scratch);
}

/* The global phase: the partial tuples in order. */
static void combine(bb_graph *graph, const bb_node *loop, bb_value *value) {
  for (uint32_t i = 0; i < loop->nout; i++) {
    if (loop->out[i].mode != BB_OUT_FOLD) continue;
    const bb_monoid *fold = loop->out[i].fold;
    bb_value first = bb_reduce_add(graph, fold, BB_REDUCE_FOLD, 0, fold->components, &value[i]);
    for (uint32_t k = 0; k < fold->components; k++)
      value[i + k] = (bb_value){first.node, first.port + k};
    i += fold->components - 1;
  }
}

static void split_loop(splitter *s, bb_graph *graph, uint32_t at) {
  bb_arena *scratch = bb_scratch(s->program->ctx);
  bb_node *loop = bb_node_get(graph, at);
  const bb_numbering *chunk = number_chunks(s, loop->dim);
  bb_value *in = BB_NEW(scratch, bb_value, loop->nin);
  bb_value *value = BB_NEW(scratch, bb_value, loop->nout);
  for (uint32_t i = 0; i < loop->nin; i++) in[i] = loop->in[i].src;
  shift_level(bb_map_own(graph, at), (shift){s->program, 1, chunk->count});
  build(s, graph, loop, in, chunk, 0, value);
  if (!s->tree) combine(graph, loop, value);
  for (uint32_t i = 0; i < loop->nout; i++) bb_replace_uses(graph, (bb_value){at, i}, value[i]);
  bb_node_remove(graph, at);
  bb_scratch_end(scratch);
}

static void split_level(splitter *s, bb_graph *graph) {
  uint32_t count = graph->count;
  for (uint32_t i = 0; i < count; i++) {
    const bb_node *node = bb_node_get(graph, i);
    if (is_folded_loop(node))
      split_loop(s, graph, i);
    else if (node->kind == BB_NODE_MAP)
      split_level(s, bb_map_own(graph, i));
  }
}

bb_graph *bb_split_k(bb_program *program, bb_graph *graph, bb_fold_kind kind, uint32_t chunks) {
  if (kind == BB_FOLD_ROLLING) return graph;
  splitter s = {.program = program, .tree = kind == BB_FOLD_TREE, .chunks = chunks};
  while (s.levels < LEVELS && 1u << s.levels < chunks) s.levels++;
  bb_graph *copy = bb_graph_copy(graph);
  if (!s.tree || s.levels) split_level(&s, copy);
  return copy;
}
