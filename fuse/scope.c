/* scope.c - making scopes, and owning their levels. */
#include "scope.h"

/* Which nodes of the root depend on constants only. */
static bool all_constant(const bb_scope *scope, const bb_node *node) {
  for (uint32_t i = 0; i < node->nin; i++)
    if (!scope->place[node->in[i].src.node].constant) return false;
  return node->nin > 0;
}

static bool is_constant(const bb_scope *scope, const bb_node *node) {
  if (node->kind != BB_NODE_INPUT) return all_constant(scope, node);
  if (node->tensor == BB_NONE) return false;
  const bb_tensor *tensor = &scope->graph->program->tensor[node->tensor];
  return tensor->role == BB_TENSOR_CONSTANT || tensor->once;
}

void bb_scope_learn(bb_scope *scope, uint32_t node) {
  if (!scope->parent) scope->place[node].constant = is_constant(scope, scope->graph->node[node]);
}

void bb_scope_link(bb_scope *scope, uint32_t node, uint32_t src, bool linked) {
  const bb_graph *graph = scope->graph;
  bb_dim dim = graph->node[node]->dim;
  if (dim == BB_NO_DIM || graph->node[src]->dim != dim) return;
  scope->place[node].peers += linked ? 1 : -1;
}

static void add_links(bb_scope *scope) {
  for (uint32_t i = 0; i < scope->graph->count; i++) {
    const bb_node *node = scope->graph->node[i];
    if (node->kind != BB_NODE_MAP) continue;
    for (uint32_t p = 0; p < node->nin; p++) {
      bb_siblings_add(scope, i, node->in[p].src, node->in[p].level);
      bb_scope_link(scope, i, node->in[p].src.node, true);
    }
  }
}

bb_scope *bb_scope_create(bb_arena *arena, bb_scope *parent, uint32_t map, bb_graph *graph) {
  bb_scope *scope = BB_NEW(arena, bb_scope, 1);
  scope->arena = arena;
  scope->parent = parent;
  scope->map = map;
  scope->depth = parent ? parent->depth + 1 : 0;
  scope->graph = graph;
  scope->journal = (bb_journal){.arena = arena, .graph = graph};
  scope->sibling_rule = BB_NONE;
  BB_GROW(arena, scope->place, scope->capacity, (size_t)graph->count + 1);
  graph->journal = &scope->journal;
  bb_order_build(scope);
  for (uint32_t n = scope->first; n != BB_NONE; n = scope->place[n].next) bb_scope_learn(scope, n);
  scope->siblings = bb_siblings_create(arena);
  add_links(scope);
  return scope;
}

void bb_scope_own(bb_scope *scope, bb_graph **root) {
  if (!scope->parent) {
    scope->graph = bb_graph_own(root);
    return;
  }
  bb_scope_own(scope->parent, root);
  scope->graph = bb_map_own(scope->parent->graph, scope->map);
}
