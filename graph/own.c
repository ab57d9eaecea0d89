/* own.c - who holds a level: copies on write, and copies of what is kept. */
#include "program.h"

#include <string.h>

bb_graph *bb_graph_hold(bb_graph *graph) {
  graph->holders++;
  return graph;
}

static uint32_t *copy_list(bb_arena *arena, const uint32_t *list, uint32_t count) {
  uint32_t *copy = BB_NEW(arena, uint32_t, count);
  if (count) memcpy(copy, list, count * sizeof *copy);
  return copy;
}

/* A copy of one level; the levels inside get one more holder. */
static bb_graph *copy_level(bb_graph *graph) {
  bb_arena *arena = graph->program->levels;
  bb_graph *copy = BB_NEW(arena, bb_graph, 1);
  *copy = *graph;
  copy->arena = arena;
  copy->holders = 1;
  copy->capacity = graph->count;
  copy->input_capacity = graph->ninputs;
  copy->output_capacity = graph->noutputs;
  copy->input = copy_list(arena, graph->input, graph->ninputs);
  copy->output = copy_list(arena, graph->output, graph->noutputs);
  copy->node = BB_NEW(arena, bb_node *, graph->count);
  for (uint32_t i = 0; i < graph->count; i++) copy->node[i] = bb_node_copy(arena, graph->node[i]);
  return copy;
}

bb_graph *bb_graph_own(bb_graph **root) {
  if ((*root)->holders > 1) {
    bb_graph *copy = copy_level(*root);
    (*root)->holders--;
    (*root)->journal = NULL;
    if (copy->journal) copy->journal->graph = copy;
    *root = copy;
  }
  return *root;
}

bb_graph *bb_map_own(bb_graph *graph, uint32_t map) {
  bb_graph_note(graph, BB_CHANGE_INSIDE, map);
  return bb_graph_own(&graph->node[map]->inner);
}

bb_graph *bb_graph_copy(bb_graph *graph) {
  bb_graph *copy = copy_level(graph);
  copy->journal = NULL;
  for (uint32_t i = 0; i < copy->count; i++) {
    bb_node *node = copy->node[i];
    if (node->kind != BB_NODE_MAP) continue;
    node->inner->holders--;
    node->inner = bb_graph_copy(node->inner);
  }
  return copy;
}

static void renumber(bb_graph *graph) {
  for (uint32_t i = 0; i < graph->count; i++) {
    bb_node *node = bb_node_get(graph, i);
    node->serial = graph->program->serial++;
    if (node->kind == BB_NODE_MAP) renumber(node->inner);
  }
}

bb_graph *bb_graph_copy_anew(bb_graph *graph) {
  bb_graph *copy = bb_graph_copy(graph);
  renumber(copy);
  return copy;
}

/* --- keeping what a pass made --- */

/* Indices of nodes, once removed ones are left out. */
static uint32_t *live_places(bb_arena *scratch, const bb_graph *graph) {
  uint32_t *at = BB_NEW(scratch, uint32_t, graph->count), live = 0;
  for (uint32_t i = 0; i < graph->count; i++)
    at[i] = graph->node[i]->kind == BB_NODE_REMOVED ? BB_NONE : live++;
  return at;
}

static void move_place(uint32_t *node, const uint32_t *at) {
  if (*node != BB_NONE) *node = at[*node];
}

static bb_node *keep_node(bb_arena *arena, const bb_node *node, const uint32_t *at) {
  bb_node *copy = bb_node_copy(arena, node);
  for (uint32_t p = 0; p < copy->nin; p++) {
    move_place(&copy->in[p].src.node, at);
    move_place(&copy->in[p].next.node, at);
    move_place(&copy->in[p].prev.node, at);
  }
  for (uint32_t p = 0; p < copy->nout; p++) move_place(&copy->out[p].first.node, at);
  if (copy->kind != BB_NODE_MAP) return copy;
  copy->inner->holders--; /* the original's hold becomes the copy's */
  copy->inner = bb_graph_keep(copy->inner);
  return copy;
}

static uint32_t *keep_list(bb_arena *arena, const uint32_t *list, uint32_t count,
                           const uint32_t *at) {
  uint32_t *copy = copy_list(arena, list, count);
  for (uint32_t i = 0; i < count; i++) copy[i] = at[copy[i]];
  return copy;
}

bb_graph *bb_graph_keep(bb_graph *graph) {
  bb_arena *arena = graph->program->arena;
  if (graph->arena == arena) return graph;
  if (graph->kept) return bb_graph_hold(graph->kept);
  bb_arena *scratch = bb_scratch(graph->program->ctx);
  uint32_t *at = live_places(scratch, graph);
  bb_graph *copy = BB_NEW(arena, bb_graph, 1);
  *copy = (bb_graph){.program = graph->program,
                     .arena = arena,
                     .holders = 1,
                     .count = graph->live,
                     .live = graph->live,
                     .capacity = graph->live,
                     .ninputs = graph->ninputs,
                     .noutputs = graph->noutputs,
                     .input_capacity = graph->ninputs,
                     .output_capacity = graph->noutputs,
                     .node = BB_NEW(arena, bb_node *, graph->live),
                     .input = keep_list(arena, graph->input, graph->ninputs, at),
                     .output = keep_list(arena, graph->output, graph->noutputs, at)};
  graph->kept = copy;
  for (uint32_t i = 0; i < graph->count; i++)
    if (at[i] != BB_NONE) copy->node[at[i]] = keep_node(arena, graph->node[i], at);
  bb_scratch_end(scratch);
  return copy;
}
