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
 *
 * Maps around the loop that hold it and what follows it may be cut between the two phases, so that chunks
 * run side by side with those maps' iterations:
 *
 *   map M { a; map N { fold }; b }   becomes   map M { a; map N_chunks { map N chunk { fold } } }
 *                                              map M { a; reduce; b }
 *
 * where a is computed in both as far as they need it.
 */
#include "split_k.h"

#include <string.h>

enum {
  LEVELS = 12, /* of a tree: 2**12 chunks */
  DEEPEST = 60 /* maps around a loop that is split by itself */
};

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
  for (uint32_t i = 0; i < node->nout; i++) folds |= node->out[i].mode == BB_OUT_FOLD;
  return folds;
}

static void renumber(bb_graph *graph) {
  for (uint32_t i = 0; i < graph->count; i++) {
    bb_node *node = bb_node_get(graph, i);
    if (node->kind == BB_NODE_REMOVED) continue;
    node->serial = graph->program->serial++;
    if (node->kind == BB_NODE_MAP) renumber(bb_map_own(graph, i));
  }
}

/* A map like one of the same level, inside it new numbers. */
static uint32_t twin_map(bb_graph *graph, uint32_t map) {
  const bb_node *old = bb_node_get(graph, map);
  uint32_t twin = bb_node_add_like(graph, old);
  for (uint32_t i = 0; i < old->nin; i++) bb_connect(graph, twin, i, old->in[i].src);
  bb_node_get(graph, twin)->serial = graph->program->serial++;
  renumber(bb_map_own(graph, twin));
  return twin;
}

/* What a loop collects beside its folds is collected by a loop of its own: no chunk has the whole list. */
static void collect_apart(bb_graph *graph, uint32_t at) {
  uint32_t count = bb_node_get(graph, at)->nout, collects = 0;
  for (uint32_t i = 0; i < count; i++)
    collects += bb_node_get(graph, at)->out[i].mode == BB_OUT_COLLECT;
  if (!collects) return;
  uint32_t twin = twin_map(graph, at);
  for (uint32_t i = 0; i < count; i++)
    if (bb_node_get(graph, at)->out[i].mode == BB_OUT_COLLECT)
      bb_replace_uses(graph, (bb_value){at, i}, (bb_value){twin, i});
  for (uint32_t i = count; i-- > 0;) {
    bool collect = bb_node_get(graph, at)->out[i].mode == BB_OUT_COLLECT;
    bb_map_out_remove(graph, collect ? at : twin, i);
  }
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

/* The loop as maps over chunks beside it; value[]: what they give, before it is combined. */
static void add_chunks(splitter *s, bb_graph *graph, uint32_t at, bb_value *value) {
  bb_arena *scratch = bb_scratch(s->program->ctx);
  bb_node *loop = bb_node_get(graph, at);
  const bb_numbering *chunk = number_chunks(s, loop->dim);
  bb_value *in = BB_NEW(scratch, bb_value, loop->nin);
  for (uint32_t i = 0; i < loop->nin; i++) in[i] = loop->in[i].src;
  shift_level(bb_map_own(graph, at), (shift){s->program, 1, chunk->count});
  build(s, graph, loop, in, chunk, 0, value);
  bb_scratch_end(scratch);
}

static void replace_loop(bb_graph *graph, uint32_t at, const bb_value *value) {
  const bb_node *loop = bb_node_get(graph, at);
  for (uint32_t i = 0; i < loop->nout; i++) bb_replace_uses(graph, (bb_value){at, i}, value[i]);
  bb_node_remove(graph, at);
}

static void split_loop(splitter *s, bb_graph *graph, uint32_t at) {
  bb_arena *scratch = bb_scratch(s->program->ctx);
  const bb_node *loop = bb_node_get(graph, at);
  bb_value *value = BB_NEW(scratch, bb_value, loop->nout);
  add_chunks(s, graph, at, value);
  if (!s->tree) combine(graph, loop, value);
  replace_loop(graph, at, value);
  bb_scratch_end(scratch);
}

static void split_level(splitter *s, bb_graph *graph) {
  uint32_t count = graph->count;
  for (uint32_t i = 0; i < count; i++) {
    const bb_node *node = bb_node_get(graph, i);
    if (is_folded_loop(node)) {
      collect_apart(graph, i);
      split_loop(s, graph, i);
    } else if (node->kind == BB_NODE_MAP)
      split_level(s, bb_map_own(graph, i));
  }
}

bb_graph *bb_split_k(bb_program *program, bb_graph *graph, bb_fold_kind kind, uint32_t chunks) {
  if (kind != BB_FOLD_SPLIT_K && kind != BB_FOLD_TREE) return graph;
  splitter s = {.program = program, .tree = kind == BB_FOLD_TREE, .chunks = chunks};
  while (s.levels < LEVELS && 1u << s.levels < chunks) s.levels++;
  bb_graph *copy = bb_graph_copy(graph);
  if (!s.tree || s.levels) split_level(&s, copy);
  bb_graph_prune(copy);
  return copy;
}

/* --- two phases at the top --- */

/* The maps around a loop, outermost first, and the loop. */
typedef struct path {
  uint32_t count; /* maps around it */
  uint32_t node[DEEPEST + 1];
} path;

static bool find_loop(const bb_graph *graph, uint32_t serial, path *p) {
  for (uint32_t i = 0; i < graph->count; i++) {
    const bb_node *node = bb_node_get(graph, i);
    if (node->kind != BB_NODE_MAP) continue;
    p->node[p->count] = i;
    if (node->serial == serial) return true;
    if (p->count == DEEPEST) continue;
    p->count++;
    if (find_loop(node->inner, serial, p)) return true;
    p->count--;
  }
  return false;
}

static bb_graph *level_at(bb_graph *graph, const path *p, uint32_t top, uint32_t depth) {
  for (uint32_t i = 0; i < depth; i++) graph = bb_map_own(graph, i ? p->node[i] : top);
  return graph;
}

/* Which axis of an item a map around it cuts: an axis of its dim, if there is just one such map and one
 * such axis. */
static bb_axis cut_axis(const bb_item *item, bb_dim dim) {
  return item->row == dim ? BB_AXIS_ROW : item->col == dim ? BB_AXIS_COL : BB_AXIS_NONE;
}

/* Can the maps around the loop be cut behind it?  They must be nothing but loops of independent
 * iterations. */
static bool is_cut_well(const bb_graph *graph, const path *p) {
  uint64_t seen = 0;
  const bb_graph *level = graph;
  bb_dim dim[DEEPEST];
  for (uint32_t i = 0; i < p->count; i++) {
    const bb_node *map = bb_node_get(level, p->node[i]);
    if (map->part != BB_PART_ALL) return false;
    for (uint32_t o = 0; o < map->nout; o++)
      if (map->out[o].mode != BB_OUT_COLLECT) return false;
    for (uint32_t k = 0; k < i; k++)
      if (dim[k] == map->dim) seen |= UINT64_C(1) << k;
    dim[i] = map->dim;
    level = map->inner;
  }
  const bb_node *loop = bb_node_get(level, p->node[p->count]);
  for (uint32_t o = 0; o < loop->nout; o++) {
    const bb_item *item = &loop->out[o].type->item;
    if (loop->out[o].mode != BB_OUT_FOLD || loop->out[o].type->rank) return false;
    for (uint32_t k = 0; k < p->count; k++) {
      bool both = item->row == dim[k] && item->col == dim[k];
      if (both || ((seen >> k & 1) && cut_axis(item, dim[k]) != BB_AXIS_NONE)) return false;
    }
  }
  return true;
}

/* The maps around the loop give nothing but the partial results of its chunks; value[]: these, at the
 * top. */
static void make_local(splitter *s, bb_graph *root, const path *p, uint32_t top, bb_value *value) {
  for (uint32_t depth = 0; depth < p->count; depth++) {
    bb_graph *level = level_at(root, p, top, depth);
    uint32_t map = depth ? p->node[depth] : top;
    while (bb_node_get(level, map)->nout)
      bb_map_out_remove(level, map, bb_node_get(level, map)->nout - 1);
  }
  bb_graph *level = level_at(root, p, top, p->count);
  uint32_t at = p->node[p->count], count = bb_node_get(level, at)->nout;
  add_chunks(s, level, at, value);
  for (uint32_t depth = p->count; depth-- > 0;) {
    level = level_at(root, p, top, depth);
    uint32_t map = depth ? p->node[depth] : top;
    const bb_node *node = bb_node_get(level, map);
    for (uint32_t i = 0; i < count; i++) {
      const bb_item *item = &bb_type_of(node->inner, value[i])->item;
      value[i] = bb_map_collect(level, map, value[i], cut_axis(item, node->dim));
    }
  }
}

/* The partial results take the loop's place. */
static void make_global(bb_graph *root, const path *p, bb_value *value) {
  bb_graph *level = root;
  uint32_t at = p->node[p->count];
  uint32_t count = bb_node_get(level_at(root, p, p->node[0], p->count), at)->nout;
  for (uint32_t depth = 0; depth < p->count; depth++) {
    for (uint32_t i = 0; i < count; i++) value[i] = bb_map_in(level, p->node[depth], value[i], 0);
    level = bb_map_own(level, p->node[depth]);
  }
  combine(level, bb_node_get(level, at), value);
  replace_loop(level, at, value);
}

bb_graph *bb_split_loop(bb_program *program, bb_graph *graph, uint32_t serial, uint32_t chunks) {
  splitter s = {.program = program, .chunks = chunks};
  path p = {0};
  if (chunks <= 1 || !find_loop(graph, serial, &p)) return graph;
  bb_graph *copy = bb_graph_copy(graph);
  if (p.count == 0 || !is_cut_well(copy, &p)) {
    split_loop(&s, level_at(copy, &p, p.node[0], p.count), p.node[p.count]);
    return copy;
  }
  bb_arena *scratch = bb_scratch(program->ctx);
  const bb_graph *level = level_at(copy, &p, p.node[0], p.count);
  bb_value *value = BB_NEW(scratch, bb_value, bb_node_get(level, p.node[p.count])->nout);
  uint32_t local = twin_map(copy, p.node[0]);
  make_local(&s, copy, &p, local, value);
  make_global(copy, &p, value);
  bb_graph_prune(copy);
  bb_scratch_end(scratch);
  return copy;
}
