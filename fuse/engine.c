/* engine.c - the fusion algorithm (Blockbuster, section 4).
 *
 *     rewrite every level, breadth first, until nothing matches; take a snapshot;
 *     extend one map (Rule 6), breadth first; again; until no map can be extended
 *
 * In a level the rule of highest priority that matches anywhere is applied, at its first anchor in
 * topological order.  The plain engine looks for it everywhere after each rewrite, as the paper
 * does; the other one looks only where a rewrite may have changed something, and finds the same.
 * Levels are first in, first out, maps of a level in topological order.  A pass over the levels is
 * repeated while it rewrites anything: a rewrite can make a match in a level around its own.
 * Where replicated work is unwanted, Rule 7 then makes a sibling of each snapshot.
 */
#include "engine.h"

#include "../graph/verify.h"

/* --- one rewrite --- */

bool bb_engine_try(bb_engine *engine, const bb_rule *rule, bb_match *match) {
  if (engine->options->tries) engine->options->tries[rule->number]++;
  match->count = 0;
  match->why = NULL;
  return rule->match(match);
}

/* The dims of the maps around a scope, outermost first, as "M/N". */
static void put_level(bb_buffer *out, const bb_scope *scope) {
  if (!scope->parent) return;
  put_level(out, scope->parent);
  const bb_graph *around = scope->parent->graph;
  bb_dim dim = bb_node_get(around, scope->map)->dim;
  bb_put(out, "%s%s", scope->parent->parent ? "/" : "", bb_dim_get(around->program, dim)->name);
}

/* Tells the caller of a rewrite; the nodes' serials were noted before it. */
static void report(bb_engine *engine, const bb_rule *rule, const bb_match *match,
                   const uint32_t *serial) {
  const bb_fuse_options *options = engine->options;
  if (!options->trace) return;
  bb_arena *scratch = bb_scratch(engine->ctx);
  bb_buffer level = {.arena = scratch};
  bb_put(&level, "%s", "");
  put_level(&level, match->scope);
  bb_trace_event event = {.step = (uint32_t)engine->steps,
                          .rule = rule->number,
                          .rule_name = rule->name,
                          .variant = match->variant,
                          .depth = match->scope->depth,
                          .level = level.data,
                          .count = match->count,
                          .serial = serial};
  options->trace(options->user, &event, *engine->root);
  bb_scratch_end(scratch);
}

/* Removes the in-port of the map around that feeds an input which a rewrite left without uses. */
static void prune_input(bb_scope *scope, uint32_t input) {
  bb_graph *graph = scope->graph;
  const bb_node *node = bb_node_get(graph, input);
  if (node->kind != BB_NODE_INPUT || node->out[0].first.node != BB_NONE) return;
  uint32_t port = 0;
  while (graph->input[port] != input) port++;
  bb_map_in_remove(scope->parent->graph, scope->map, port);
}

/* What no op in a level reads any more is not handed to it: from the rewrite's level outwards. */
static void prune_inputs(bb_scope *scope) {
  for (; scope->parent; scope = scope->parent)
    for (uint32_t i = 0; i < scope->journal.count; i++) {
      const bb_change change = scope->journal.change[i];
      if (change.kind == BB_CHANGE_UNLINKED) prune_input(scope, change.src.node);
    }
}

void bb_engine_apply(bb_engine *engine, const bb_rule *rule, bb_match *match) {
  bb_scope *scope = match->scope;
  uint32_t serial[BB_MATCH_NODES];
  for (uint32_t i = 0; i < match->count; i++)
    serial[i] = bb_node_get(scope->graph, match->node[i])->serial;
  if (engine->steps >= engine->budget)
    bb_fail(engine->ctx, BB_ERROR_INTERNAL, "rule %u (%s) is applied without end", rule->number,
            rule->name);
  bb_scope_own(scope, engine->root);
  rule->apply(match);
  prune_inputs(scope);
  engine->steps++;
  if (engine->options->hits) engine->options->hits[rule->number]++;
  bb_engine_settle_around(engine, scope);
  bb_verify_or_fail(engine->program, *engine->root, rule->name, false);
  report(engine, rule, match, serial);
}

/* --- one level --- */

static bool find_anywhere(bb_engine *engine, bb_scope *scope, const bb_rule *rule,
                          bb_match *match) {
  for (uint32_t n = scope->first; n != BB_NONE; n = scope->place[n].next) {
    if (!(rule->anchors >> bb_node_get(scope->graph, n)->kind & 1)) continue;
    *match = (bb_match){.scope = scope, .anchor = n, .partner = BB_NONE, .dim = BB_NO_DIM};
    if (bb_engine_try(engine, rule, match)) return true;
  }
  return false;
}

static bool find_waiting(bb_engine *engine, bb_scope *scope, uint32_t rank, bb_match *match) {
  for (uint32_t n; (n = bb_heap_pop(scope, &scope->pending[rank])) != BB_NONE;) {
    *match = (bb_match){.scope = scope, .anchor = n, .partner = BB_NONE, .dim = BB_NO_DIM};
    if (!bb_engine_try(engine, bb_rules[rank], match)) continue;
    bb_heap_push(scope, &scope->pending[rank], n); /* it may match once more */
    return true;
  }
  return false;
}

/* Applies the first rule that matches; false when none does. */
static bool rewrite(bb_engine *engine, bb_scope *scope) {
  for (uint32_t r = 0; r < bb_rule_count; r++) {
    const bb_rule *rule = bb_rules[r];
    bb_match match;
    if (bb_engine_disabled(engine, rule)) continue;
    if (engine->options->naive ? !find_anywhere(engine, scope, rule, &match)
                               : !find_waiting(engine, scope, r, &match))
      continue;
    bb_engine_apply(engine, rule, &match);
    return true;
  }
  return false;
}

/* --- all levels --- */

void bb_levels_add(bb_levels *levels, bb_scope *scope) {
  BB_GROW(levels->arena, levels->scope, levels->capacity, (size_t)levels->count + 1);
  levels->scope[levels->count++] = scope;
}

void bb_levels_add_inner(bb_levels *levels, bb_engine *engine, bb_scope *scope, bb_heap *waiting) {
  if (!waiting || engine->options->naive) {
    for (uint32_t n = scope->first; n != BB_NONE; n = scope->place[n].next)
      if (bb_node_get(scope->graph, n)->kind == BB_NODE_MAP)
        bb_levels_add(levels, bb_engine_enter(engine, scope, n));
    return;
  }
  for (uint32_t n; (n = bb_heap_pop(scope, waiting)) != BB_NONE;)
    bb_levels_add(levels, bb_engine_enter(engine, scope, n));
}

/* bfs_fuse_no_extend, once over the levels.  Did it rewrite anything? */
static bool pass(bb_engine *engine) {
  bb_arena *scratch = bb_scratch(engine->ctx);
  bb_levels q = {.arena = scratch};
  uint64_t before = engine->steps;
  bb_levels_add(&q, engine->top);
  for (uint32_t i = 0; i < q.count && !bb_engine_stopped(engine); i++) {
    while (!bb_engine_stopped(engine) && rewrite(engine, q.scope[i])) continue;
    bb_levels_add_inner(&q, engine, q.scope[i], &q.scope[i]->children);
  }
  bb_scratch_end(scratch);
  return engine->steps > before;
}

static void keep_snapshot(bb_engine *engine) {
  BB_GROW(engine->program->arena, engine->snapshot, engine->capacity,
          (size_t)engine->snapshots + 1);
  engine->snapshot[engine->snapshots++] = (bb_snapshot){.step = (uint32_t)engine->steps,
                                                        .graph = bb_graph_hold(*engine->root),
                                                        .operations = -1,
                                                        .buffered = -1};
}

static void take_snapshot(bb_engine *engine) {
  keep_snapshot(engine);
  bb_trace_event event = {.rule_name = "snapshot", .level = "", .snapshot = true};
  event.step = (uint32_t)engine->steps;
  const bb_fuse_options *options = engine->options;
  if (options->trace) options->trace(options->user, &event, *engine->root);
}

/* Levels outlive the engine: they must not write into its journals any more. */
static void detach(void *object) {
  bb_engine *engine = object;
  for (bb_scope *s = engine->newest; s; s = s->older)
    if (s->journal.graph->journal == &s->journal) s->journal.graph->journal = NULL;
}

/* Runs `work` with an engine on *root, and takes the engine off again. */
static void with_engine(bb_engine *engine, bb_graph **root, void (*work)(bb_engine *)) {
  engine->arena = bb_scratch(engine->ctx);
  engine->root = root;
  engine->newest = NULL;
  bb_defer(engine->ctx, detach, engine);
  engine->top = bb_engine_enter(engine, NULL, BB_NONE);
  work(engine);
  bb_undefer(engine->ctx, engine);
  detach(engine);
  bb_scratch_end(engine->arena);
}

static void fuse(bb_engine *engine) {
  do {
    while (!bb_engine_stopped(engine) && pass(engine)) continue;
    if (bb_engine_stopped(engine)) break;
    take_snapshot(engine);
  } while (!engine->options->no_extend && bb_engine_extend(engine));
  if (!engine->snapshots || engine->snapshot[engine->snapshots - 1].graph != *engine->root)
    keep_snapshot(engine);
}

/* A sibling of a snapshot. */
static void peel(bb_engine *engine) {
  if (!bb_engine_peel(engine)) return;
  while (!bb_engine_stopped(engine) && pass(engine)) continue;
  if (!bb_engine_stopped(engine)) take_snapshot(engine);
}

uint32_t bb_fuse(bb_program *program, bb_graph **root, const bb_fuse_options *options,
                 bb_snapshot **snapshots) {
  static const bb_fuse_options none;
  bb_arena *scratch = bb_scratch(program->ctx);
  bb_engine *engine = BB_NEW(scratch, bb_engine, 1);
  *engine = (bb_engine){.program = program,
                        .ctx = program->ctx,
                        .options = options ? options : &none,
                        .answers = bb_engine_answers(),
                        .budget = 1000 + 100 * (uint64_t)program->serial};
  with_engine(engine, root, fuse);
  bool peels = engine->options->peel && !engine->options->no_extend && !bb_engine_stopped(engine);
  uint32_t count = peels ? engine->snapshots : 0;
  for (uint32_t i = 0; i < count; i++) {
    bb_graph *fork = bb_graph_hold(engine->snapshot[i].graph);
    with_engine(engine, &fork, peel);
  }
  *snapshots = engine->snapshot;
  count = engine->snapshots;
  if (engine->options->applied) *engine->options->applied = (uint32_t)engine->steps;
  bb_scratch_end(scratch);
  return count;
}

const char *bb_rule_name(uint32_t number) {
  const bb_rule *others[] = {&bb_rule_extend_map, &bb_rule_peel_first_iteration};
  for (uint32_t i = 0; i < bb_rule_count; i++)
    if (bb_rules[i]->number == number) return bb_rules[i]->name;
  for (uint32_t i = 0; i < sizeof others / sizeof *others; i++)
    if (others[i]->number == number) return others[i]->name;
  return NULL;
}
