/* fuse.h - the fusion algorithm (Blockbuster, section 4): rewrites a candidate and leaves
 * snapshots.
 */
#ifndef BB_FUSE_H
#define BB_FUSE_H

#include "../graph/program.h"

/* One rewrite, as it is reported after being applied. */
typedef struct bb_trace_event {
  uint32_t step;         /* 1, 2, ... */
  uint32_t rule;         /* number: 1..9, or as rules.def says */
  const char *rule_name; /* "fuse consecutive maps" */
  char variant;          /* 'a'.. or 0 */
  uint32_t depth;        /* 0: the root level */
  const char *level;     /* path of dims from the root, such as "M/N" */
  uint32_t count;        /* serials of the nodes that matched */
  const uint32_t *serial;
  bool snapshot; /* no rewrite: a snapshot was taken here */
} bb_trace_event;

typedef struct bb_fuse_options {
  bool no_extend;      /* stop after the first snapshot: rules without extension */
  bool peel;           /* unless no_extend: beside snapshots siblings by Rule 7 */
  bool naive;          /* the plain loop of the paper instead of work lists; same result */
  uint32_t stop_after; /* rewrites; 0: no limit */
  uint64_t disabled;   /* bit set of rule numbers */
  /* Asked before Rule 6 extends `map` over `level`; NULL: always. */
  bool (*may_extend)(void *user, const bb_graph *level, uint32_t map);
  /* After every rewrite and snapshot; `root` is the candidate's root as it is now. */
  void (*trace)(void *user, const bb_trace_event *event, const bb_graph *root);
  void *user;
  /* By rule number, BB_RULE_NUMBERS each: how often a rule was tried at a node, and how often it
   * was applied. NULL: not counted. */
  uint64_t *tries, *hits;
  uint32_t *applied; /* how many rewrites there were in all.  NULL: not wanted. */
} bb_fuse_options;

/* The name of the rule with this number; NULL: none has it. */
const char *bb_rule_name(uint32_t number);

/* Rewrites *root in place of the candidate (levels that others hold are copied first) and gives the
 * snapshots, oldest first, in the program's arena.  The last one is what *root has become, also
 * when stop_after ended the work early.  With `peel`, siblings follow it: in each, the first
 * iteration of a map of an earlier snapshot is peeled off and fused with what stands around it. */
uint32_t bb_fuse(bb_program *program, bb_graph **root, const bb_fuse_options *options,
                 bb_snapshot **snapshots);

/* Prints a block program in the paper's notation: forall, for, load, store. */
void bb_listing_print(bb_buffer *out, const bb_program *program, const bb_graph *root);

/* For someone who knows the Neptune paper: each repaired fold of `root` with g, h, the proofs and
 * the recurrence, and each chain of dependent folds that was not repaired with the reason. */
void bb_fuse_explain(bb_buffer *out, bb_program *program, bb_graph *root);

/* Why the nodes with these serials did not fuse in `root`: every rule tried with the condition
 * that failed, one line each. */
void bb_fuse_why(bb_buffer *out, bb_program *program, bb_graph *root, uint32_t serial_a,
                 uint32_t serial_b);

#endif
