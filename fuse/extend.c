/* extend.c - bfs_extend of the paper: the first map, breadth first, that Rule 6 may extend; and the
 * same for Rule 7.
 */
#include "engine.h"

static bool try_node(bb_engine *engine, bb_scope *scope, uint32_t node) {
  bb_match match = {.scope = scope, .anchor = node, .partner = BB_NONE, .dim = BB_NO_DIM};
  const bb_fuse_options *options = engine->options;
  if (!bb_engine_try(engine, &bb_rule_extend_map, &match)) return false;
  if (options->may_extend && !options->may_extend(options->user, scope->graph, node)) return false;
  bb_engine_apply(engine, &bb_rule_extend_map, &match);
  return true;
}

enum { FINISHES = 1024 }; /* operands looked at between a map and an output */

static void list_maps(bb_scope *scope, uint32_t from, uint32_t *left) {
  const bb_node *node = bb_node_get(scope->graph, from);
  if (node->kind == BB_NODE_MAP) bb_heap_push(scope, &scope->extend, from);
  for (uint32_t i = 0; node->kind == BB_NODE_FUNC && *left && i < node->nin; i++, --*left)
    list_maps(scope, node->in[i].src.node, left);
}

/* Only outputs may follow an extended map, behind ops that finish its folds: what they come from is
 * all there is to try. */
static void list_candidates(bb_scope *scope) {
  const bb_graph *graph = scope->graph;
  for (uint32_t i = 0; i < graph->noutputs; i++) {
    uint32_t left = FINISHES;
    list_maps(scope, bb_src(graph, graph->output[i], 0).node, &left);
  }
  scope->stale = false;
}

static bool try_scope(bb_engine *engine, bb_scope *scope) {
  if (engine->options->naive) {
    for (uint32_t n = scope->first; n != BB_NONE; n = scope->place[n].next)
      if (try_node(engine, scope, n)) return true;
    return false;
  }
  if (scope->stale) list_candidates(scope);
  for (uint32_t n; (n = bb_heap_pop(scope, &scope->extend)) != BB_NONE;)
    if (try_node(engine, scope, n)) return true;
  return false;
}

bool bb_engine_extend(bb_engine *engine) {
  if (bb_engine_disabled(engine, &bb_rule_extend_map)) return false;
  bb_arena *scratch = bb_scratch(engine->ctx);
  bb_levels q = {.arena = scratch};
  bool found = false;
  bb_levels_add(&q, engine->top);
  for (uint32_t i = 0; i < q.count && !found; i++) {
    found = try_scope(engine, q.scope[i]);
    if (!found) bb_levels_add_inner(&q, engine, q.scope[i], &q.scope[i]->extend_children);
    /* What was queued and not looked at waits for the next time. */
    for (uint32_t k = i; found && k < q.count; k++) bb_engine_wake_extension(q.scope[k]);
  }
  bb_scratch_end(scratch);
  return found;
}

/* --- Rule 7 --- */

static bool peel_scope(bb_engine *engine, bb_scope *scope) {
  for (uint32_t n = scope->first; n != BB_NONE; n = scope->place[n].next) {
    bb_match match = {.scope = scope, .anchor = n, .partner = BB_NONE, .dim = BB_NO_DIM};
    if (!(bb_rule_peel_first_iteration.anchors >> bb_node_get(scope->graph, n)->kind & 1)) continue;
    if (!bb_engine_try(engine, &bb_rule_peel_first_iteration, &match)) continue;
    bb_engine_apply(engine, &bb_rule_peel_first_iteration, &match);
    return true;
  }
  return false;
}

bool bb_engine_peel(bb_engine *engine) {
  if (bb_engine_disabled(engine, &bb_rule_peel_first_iteration)) return false;
  bb_arena *scratch = bb_scratch(engine->ctx);
  bb_levels q = {.arena = scratch};
  bool found = false;
  bb_levels_add(&q, engine->top);
  for (uint32_t i = 0; i < q.count && !found; i++) {
    bb_scope *scope = q.scope[i];
    found = peel_scope(engine, scope);
    if (!found) bb_levels_add_inner(&q, engine, scope, NULL);
  }
  bb_scratch_end(scratch);
  return found;
}
