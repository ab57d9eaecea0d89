/* engine.h - the inside of bb_fuse(): a program being rewritten. */
#ifndef BB_FUSE_ENGINE_H
#define BB_FUSE_ENGINE_H

#include "fuse.h"
#include "../rules/rule.h"

typedef struct bb_engine {
  bb_program *program;
  bb_context *ctx;
  bb_arena *arena; /* scopes; dies with the engine */
  bb_graph **root;
  const bb_fuse_options *options;
  bb_scope *top;    /* the scope of the root */
  bb_scope *newest; /* all scopes ever made, by `older` */
  bb_answers answers;
  uint64_t steps, budget;
  uint32_t snapshots, capacity;
  bb_snapshot *snapshot;
} bb_engine;

static inline bool bb_engine_stopped(const bb_engine *engine) {
  return engine->options->stop_after && engine->steps >= engine->options->stop_after;
}
static inline bool bb_engine_disabled(const bb_engine *engine, const bb_rule *rule) {
  if (engine->program->strict && !bb_is_strict(rule->exactness)) return true;
  return engine->options->disabled >> rule->number & 1;
}

/* --- scopes and what waits in them (worklist.c) --- */

/* What the rules are anchored at and answer to. */
bb_answers bb_engine_answers(void);

/* The scope inside a map, made if it is not there. */
bb_scope *bb_engine_enter(bb_engine *engine, bb_scope *parent, uint32_t map);
/* Brings a scope up to date with its journal and notes which nodes must be looked at again. */
void bb_engine_settle(bb_engine *engine, bb_scope *scope);
/* Settles the scopes around a rewrite, and wakes what looks into the maps around it. */
void bb_engine_settle_around(bb_engine *engine, bb_scope *scope);
/* The scope's nodes may have to be looked at for extension. */
void bb_engine_wake_extension(bb_scope *scope);

/* --- levels, breadth first (engine.c) --- */

typedef struct bb_levels {
  bb_arena *arena;
  uint32_t count, capacity;
  bb_scope **scope;
} bb_levels;

void bb_levels_add(bb_levels *levels, bb_scope *scope);
/* The maps of a scope inside which something waits, which `waiting`, a heap of the scope, holds;
 * all maps if it is NULL, and for the naive engine. */
void bb_levels_add_inner(bb_levels *levels, bb_engine *engine, bb_scope *scope, bb_heap *waiting);

/* --- rewriting (engine.c) --- */

/* Applies a match that was found. */
void bb_engine_apply(bb_engine *engine, const bb_rule *rule, bb_match *match);
bool bb_engine_try(bb_engine *engine, const bb_rule *rule, bb_match *match);

/* --- map extension (extend.c) --- */

/* Applies Rule 6 at the first opportunity, breadth first. */
bool bb_engine_extend(bb_engine *engine);
/* The same with Rule 7. */
bool bb_engine_peel(bb_engine *engine);

#endif
