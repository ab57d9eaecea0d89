/* worklist.c - which nodes still have to be looked at: kept from the journals of the levels.
 *
 * A rule says what kinds of change can make it match anew (rule.h, BB_WAKE_*); each change in a
 * journal wakes the anchors it may concern, and no others.  This is enough because no rewrite changes
 * which of the nodes that it leaves alone reach each other: fusions contract edges, and companion
 * rules put new nodes where the old ones were.  A pair of maps that a path keeps apart is therefore kept
 * apart until one of the two is touched.
 */
#include "engine.h"

#include "../rules/nest.h"

static bool alive(const bb_scope *scope, uint32_t node) {
  return node != BB_NONE && scope->graph->node[node]->kind != BB_NODE_REMOVED;
}

static bool listed(const bb_engine *engine) {
  return !engine->options->naive;
}

/* --- waking --- */

/* Something waits in this scope: the levels around it lead there. */
static void lead_to(bb_scope *scope) {
  for (; scope->parent; scope = scope->parent)
    bb_heap_push(scope->parent, &scope->parent->children, scope->map);
}

void bb_engine_wake_extension(bb_scope *scope) {
  for (; scope->parent; scope = scope->parent)
    bb_heap_push(scope->parent, &scope->parent->extend_children, scope->map);
}

bb_answers bb_engine_answers(void) {
  bb_answers a = {0};
  for (uint32_t r = 0; r < bb_rule_count; r++) {
    const bb_rule *rule = bb_rules[r];
    uint32_t bit = (uint32_t)1 << r;
    for (uint32_t k = 0; k <= BB_NODE_MISC; k++)
      if (rule->anchors >> k & 1) a.kind[k] |= bit;
    for (uint32_t w = 0; w < BB_WAKES; w++)
      if (rule->wakes >> w & 1) a.wake[w] |= bit;
    if (!rule->ops) continue;
    a.nests |= bit;
    for (uint32_t op = 0; op <= BB_OP_COUNT; op++)
      if (rule->ops >> op & 1) a.op[op] |= bit;
  }
  return a;
}

/* The op that the node is a loop nest around; looking costs a walk through its levels. */
static bb_op nest_op(bb_scope *scope, uint32_t node) {
  bb_place *place = &scope->place[node];
  if (!place->nest) place->nest = 1 + bb_loops_op(scope->graph, node);
  return place->nest - 1;
}

/* The rules, as a bit set of ranks, that may match at a node and answer to any of `wakes`. */
static uint32_t answering(bb_scope *scope, uint32_t node, uint32_t wakes) {
  const bb_answers *a = scope->answers;
  uint32_t rules = 0;
  for (; wakes; wakes &= wakes - 1) rules |= a->wake[__builtin_ctz(wakes)];
  rules &= a->kind[scope->graph->node[node]->kind];
  if (rules & a->nests) rules &= ~a->nests | a->op[nest_op(scope, node)];
  return rules;
}

enum { EVERYTHING = (1 << BB_WAKES) - 1 };

/* Wakes a node for the rules that answer to any of `wakes`. */
static void wake(bb_scope *scope, uint32_t node, uint32_t wakes) {
  if (!alive(scope, node)) return;
  for (uint32_t rules = answering(scope, node, wakes); rules; rules &= rules - 1)
    bb_heap_push(scope, &scope->pending[__builtin_ctz(rules)], node);
}

_Static_assert(BB_OP_COUNT < 32, "sets of ops are bit sets");

/* The only node that uses a value, however often; else BB_NONE. */
static uint32_t sole_user(const bb_graph *graph, bb_value value) {
  bb_use use = bb_first_use(graph, value);
  uint32_t node = use.node;
  while (use.node != BB_NONE) {
    if (use.node != node) return BB_NONE;
    use = bb_next_use(graph, use);
  }
  return node;
}

/* Products have two operands: with more, nobody looks from here back to the operands. */
static void wake_operands(bb_scope *scope, uint32_t node) {
  if (!alive(scope, node)) return;
  const bb_node *at = bb_node_get(scope->graph, node);
  for (uint32_t i = 0; i < at->nin && at->nin <= 2; i++)
    wake(scope, at->in[i].src.node, BB_WAKE_OPERANDS);
}

static void wake_behind_from(bb_scope *scope, uint32_t node) {
  if (!alive(scope, node) || scope->place[node].forward == scope->epoch) return;
  scope->place[node].forward = scope->epoch;
  const bb_node *at = bb_node_get(scope->graph, node);
  if (at->kind != BB_NODE_FUNC && at->kind != BB_NODE_MAP) return;
  for (uint32_t p = 0; p < at->nout; p++) {
    if (at->kind == BB_NODE_MAP && at->out[p].mode != BB_OUT_FOLD) continue;
    for (bb_use u = at->out[p].first; u.node != BB_NONE; u = bb_next_use(scope->graph, u)) {
      if (bb_node_get(scope->graph, u.node)->kind == BB_NODE_FUNC)
        wake_behind_from(scope, u.node);
      else
        wake(scope, u.node, BB_WAKE_BEHIND);
    }
  }
}

/* A fold, or a function of one, changed: maps that wait for it are looked at again. */
static void wake_behind(bb_scope *scope, uint32_t node) {
  scope->epoch++;
  wake_behind_from(scope, node);
}

static void wake_link(bb_scope *scope, const bb_change *change) {
  bb_value src = change->src;
  wake(scope, change->node, BB_WAKE_USER | BB_WAKE_SIBLING);
  wake_operands(scope, change->node);
  wake_behind(scope, change->node);
  if (!alive(scope, src.node)) return;
  wake(scope, src.node, BB_WAKE_SOURCE);
  wake_operands(scope, src.node);
  if (src.port < bb_node_get(scope->graph, src.node)->nout)
    wake(scope, sole_user(scope->graph, src), BB_WAKE_SOLE_USER);
}

/* Something changed inside a map. */
static void wake_inside(bb_scope *scope, uint32_t map) {
  if (!alive(scope, map)) return;
  const bb_node *node = bb_node_get(scope->graph, map);
  scope->place[map].nest = 0;
  wake(scope, map, BB_WAKE_INSIDE);
  wake_operands(scope, map);
  wake_behind(scope, map);
  if (node->nout == 1) wake(scope, sole_user(scope->graph, (bb_value){map, 0}), BB_WAKE_INSIDE);
  bb_heap_push(scope, &scope->extend, map);
  bb_engine_wake_extension(scope);
}

/* --- settling --- */

/* A new node stands behind the last of its operands. */
static void place_node(bb_scope *scope, uint32_t node) {
  const bb_node *at = bb_node_get(scope->graph, node);
  const bb_place *place = scope->place;
  uint32_t after = BB_NONE;
  for (uint32_t i = 0; i < at->nin; i++) {
    uint32_t src = at->in[i].src.node;
    if (place[src].label && (after == BB_NONE || place[after].label < place[src].label))
      after = src;
  }
  bb_order_insert_after(scope, node, after);
  bb_scope_learn(scope, node);
}

static void settle_added(bb_scope *scope) {
  for (uint32_t i = 0; i < scope->journal.count; i++) {
    const bb_change *change = &scope->journal.change[i];
    scope->place[change->node].nest = 0;
    if (change->src.node != BB_NONE) scope->place[change->src.node].nest = 0;
    if (change->kind == BB_CHANGE_ADDED && alive(scope, change->node) &&
        !scope->place[change->node].label)
      place_node(scope, change->node);
  }
}

/* Follows a link or its end in the indexes. */
static void settle_link(bb_engine *engine, bb_scope *scope, const bb_change *change) {
  bool linked = change->kind == BB_CHANGE_LINKED;
  if (scope->graph->node[change->node]->dim != BB_NO_DIM) {
    bb_scope_link(scope, change->node, change->src.node, linked);
    if (linked)
      bb_siblings_add(scope, change->node, change->src, change->level);
    else
      bb_siblings_remove(scope, change->node, change->src, change->level);
    bb_siblings_wake(scope, change->node, change->src, change->level);
  }
  if (listed(engine)) wake_link(scope, change);
}

static bool is_linked(const bb_graph *graph, uint32_t node, bb_value src) {
  const bb_node *at = bb_node_get(graph, node);
  for (uint32_t i = 0; i < at->nin; i++)
    if (bb_value_equal(at->in[i].src, src)) return true;
  return false;
}

static void settle_edge(bb_scope *scope, const bb_change *change) {
  uint32_t src = change->src.node;
  if (!alive(scope, src) || !alive(scope, change->node)) return;
  if (bb_scope_before(scope, src, change->node)) return;
  if (is_linked(scope->graph, change->node, change->src)) bb_order_edge(scope, src, change->node);
}

static void settle_removed(bb_scope *scope, uint32_t node) {
  if (!scope->place[node].label) return;
  for (uint32_t r = 0; r < bb_rule_count; r++) bb_heap_remove(scope, &scope->pending[r], node);
  bb_heap_remove(scope, &scope->children, node);
  bb_heap_remove(scope, &scope->extend, node);
  bb_heap_remove(scope, &scope->extend_children, node);
  bb_order_remove(scope, node);
  scope->place[node].child = NULL;
}

/* Edits inside a map are written in its own scope's journal; the level around is told that there may
 * be some, whether or not a port of the map changes. */
static void settle_child(bb_engine *engine, bb_scope *scope, uint32_t node) {
  if (!alive(scope, node)) return;
  bb_scope *child = scope->place[node].child;
  if (!child || !child->journal.count) return;
  child->graph = scope->graph->node[node]->inner;
  bb_engine_settle(engine, child);
}

static void wake_children(bb_scope *scope, uint32_t node) {
  if (!alive(scope, node) || scope->graph->node[node]->kind != BB_NODE_MAP) return;
  bb_heap_push(scope, &scope->children, node);
  bb_heap_push(scope, &scope->extend_children, node);
}

static void wake_added(bb_scope *scope, uint32_t node) {
  wake(scope, node, EVERYTHING);
  wake_behind(scope, node);
  wake_children(scope, node);
}

void bb_engine_settle(bb_engine *engine, bb_scope *scope) {
  bb_journal *journal = &scope->journal;
  if (!journal->count) return;
  BB_GROW(scope->arena, scope->place, scope->capacity, (size_t)scope->graph->count + 1);
  settle_added(scope);
  for (uint32_t i = 0; i < journal->count; i++) {
    const bb_change *change = &journal->change[i];
    if (change->kind == BB_CHANGE_LINKED || change->kind == BB_CHANGE_UNLINKED)
      settle_link(engine, scope, change);
    else if (change->kind == BB_CHANGE_ADDED && listed(engine))
      wake_added(scope, change->node);
  }
  for (uint32_t i = 0; i < journal->count; i++)
    if (journal->change[i].kind == BB_CHANGE_LINKED) settle_edge(scope, &journal->change[i]);
  for (uint32_t i = 0; i < journal->count; i++) {
    const bb_change *change = &journal->change[i];
    if (change->kind == BB_CHANGE_REMOVED) settle_removed(scope, change->node);
    if (change->kind == BB_CHANGE_REMOVED) continue;
    settle_child(engine, scope, change->node);
    if (change->kind != BB_CHANGE_ADDED) settle_child(engine, scope, change->src.node);
  }
  for (uint32_t i = 0; i < journal->count; i++) {
    const bb_change *change = &journal->change[i];
    if (change->kind == BB_CHANGE_INSIDE && listed(engine)) wake_inside(scope, change->node);
  }
  scope->stale = true; /* extension looks into maps */
  journal->count = 0;
  lead_to(scope);
  bb_engine_wake_extension(scope);
}

void bb_engine_settle_around(bb_engine *engine, bb_scope *scope) {
  for (; scope; scope = scope->parent) bb_engine_settle(engine, scope);
}

/* --- entering --- */

static uint32_t sibling_rule(void) {
  for (uint32_t r = 0; r < bb_rule_count; r++)
    if (bb_rules[r]->wakes & BB_WAKE_SIBLING) return r;
  return BB_NONE;
}

/* Tries every rule at a node of a new scope: only where one matches now has the node to wait for it.
 * All rules while the node and what is around it are at hand: a long level is gone through once. */
static void look_at(bb_engine *engine, bb_scope *scope, uint32_t node) {
  uint32_t rules = answering(scope, node, EVERYTHING);
  for (uint32_t r = 0; r < bb_rule_count; r++) {
    bb_match match = {.scope = scope, .anchor = node, .partner = BB_NONE, .dim = BB_NO_DIM};
    if (!(rules >> r & 1) || bb_engine_disabled(engine, bb_rules[r])) continue;
    if (bb_engine_try(engine, bb_rules[r], &match)) bb_heap_push(scope, &scope->pending[r], node);
  }
}

static bb_scope *make_scope(bb_engine *engine, bb_scope *parent, uint32_t map, bb_graph *graph) {
  bb_scope *scope = bb_scope_create(engine->arena, parent, map, graph);
  scope->older = engine->newest;
  engine->newest = scope;
  scope->stale = true;
  scope->answers = &engine->answers;
  if (!listed(engine)) return scope;
  scope->sibling_rule = sibling_rule();
  for (uint32_t n = scope->first; n != BB_NONE; n = scope->place[n].next) {
    look_at(engine, scope, n);
    wake_children(scope, n);
  }
  lead_to(scope);
  bb_engine_wake_extension(scope);
  return scope;
}

bb_scope *bb_engine_enter(bb_engine *engine, bb_scope *parent, uint32_t map) {
  if (!parent) return make_scope(engine, NULL, BB_NONE, *engine->root);
  bb_graph *inner = bb_node_get(parent->graph, map)->inner;
  bb_scope *child = parent->place[map].child;
  if (!child) {
    child = make_scope(engine, parent, map, inner);
    parent->place[map].child = child;
  }
  child->graph = inner;
  bb_engine_settle(engine, child);
  return child;
}
