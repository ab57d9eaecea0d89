/* rule.h - what a substitution rule is (Blockbuster, section 3).
 *
 * A rule is a match and an apply.  Both work on one level of the program, wherever it lies.  A
 * match starts from an anchor node of the level; which one is part of the rule.  Rules do not choose
 * among anchors: the engine does.  rules.def lists the rules in their priority order.
 */
#ifndef BB_RULES_RULE_H
#define BB_RULES_RULE_H

#include "../fuse/scope.h"
#include "../graph/precision.h"

enum { BB_MATCH_NODES = 8 };

typedef struct bb_match {
  bb_scope *scope;
  uint32_t anchor;
  uint32_t partner; /* asked for: only a match with this other node; BB_NONE: any */
  bb_dim dim;       /* asked for: only maps over this dim; BB_NO_DIM: any */
  char variant;     /* 'a'... where the rule has several */
  uint32_t count;   /* nodes of the level that matched */
  uint32_t node[BB_MATCH_NODES];
  const char *why; /* no match: the first condition that failed */
} bb_match;

/* What a change in a level can make a rule match anew: which anchors the engine looks at again. */
enum {
  BB_WAKE_USER = 1,      /* the node whose in-port changed */
  BB_WAKE_SOURCE = 2,    /* the node whose uses changed */
  BB_WAKE_SOLE_USER = 4, /* the only use of a value, when the number of its uses changed */
  BB_WAKE_INSIDE = 8,    /* the map inside which something changed, and its only user */
  BB_WAKE_OPERANDS = 16, /* producers of the operands of a node that changed, if it has few */
  BB_WAKE_SIBLING = 32,  /* maps with a new neighbour among the users of a value */
  BB_WAKE_BEHIND = 64    /* maps that take a fold of the map, or a function of it, that changed */
};
_Static_assert(BB_WAKE_BEHIND == 1 << (BB_WAKES - 1), "BB_WAKES counts them");

typedef struct bb_rule {
  uint32_t number; /* the paper's; our additions from 10 on */
  const char *name;
  bb_exactness exactness; /* what it assumes of floating point */
  const char *lowers;     /* the measure that every application lowers: why it ends */
  uint32_t anchors;       /* bit set of bb_kind */
  uint32_t ops;           /* not 0: the anchor is a loop nest (nest.h) around one of these ops */
  uint32_t wakes;
  bool (*match)(bb_match *match);
  void (*apply)(bb_match *match); /* the scope's level is owned, and so are those around it */
} bb_rule;

/* In priority order; map extension is not among them. */
extern const bb_rule *const bb_rules[];
extern const uint32_t bb_rule_count;

/* Rule 6, which bfs_extend applies, and Rule 7, which replaces it where replicated work is
 * unwanted. */
extern const bb_rule bb_rule_extend_map;
extern const bb_rule bb_rule_peel_first_iteration;

/* For match functions: `return bb_miss(match, "...")`. */
static inline bool bb_miss(bb_match *match, const char *why) {
  match->why = why;
  return false;
}

static inline bool bb_hit(bb_match *match, char variant, uint32_t count, const uint32_t *node) {
  match->variant = variant;
  match->count = count;
  for (uint32_t i = 0; i < count; i++) match->node[i] = node[i];
  return true;
}

#endif
