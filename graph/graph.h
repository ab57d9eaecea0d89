/* graph.h - one level of a block program: nodes, ports, edges, and how to edit them.
 *
 * A block program is a hierarchical directed acyclic graph (Blockbuster, section 2.1).  One
 * bb_graph is one level; a map node owns the level inside it.  Nodes are named by index in their
 * level; an index stays valid until the node is removed, and is not reused.  A node also has a
 * serial, its creation number in the program: it is the stable id of pictures and the tie-break of
 * the rules.  Node and port pointers stay valid until a port is added to that node.
 *
 * Levels are shared between snapshots.  Before editing a level, own it: bb_graph_own() at the
 * root and bb_map_own() on the way down give a level that nobody else holds (copy on write; node
 * indices and serials are kept).  Everything lives in the program's arena and dies with it.
 *
 * An edge is buffered exactly when its type is a list or it touches a program input or output:
 * derived (bb_edge_is_buffered), never stored.
 */
#ifndef BB_GRAPH_GRAPH_H
#define BB_GRAPH_GRAPH_H

#include "monoid.h"
#include "op.h"

#define BB_NONE UINT32_MAX
#define BB_WHOLE UINT32_MAX /* a map's in-port that gets the list as it is */

typedef struct bb_graph bb_graph;
struct bb_access;
struct bb_misc;

typedef enum bb_kind {
  BB_NODE_REMOVED,
  BB_NODE_INPUT,  /* 0 -> 1.  At the root: a view of a program tensor.  Inside: an in-port. */
  BB_NODE_OUTPUT, /* 1 -> 0.  At the root: a program tensor.  Inside: an out-port. */
  BB_NODE_FUNC,   /* functional op on items */
  BB_NODE_MAP,    /* a loop over one dim around an inner graph */
  BB_NODE_REDUCE, /* folds (or scans) one level of each operand with a monoid */
  BB_NODE_VIEW,   /* root only: renames, sub-ranges and joins whole values; moves no data */
  BB_NODE_MISC    /* root only: a reference kernel on whole values */
} bb_kind;

/* An out-port of a node of the level at hand. */
typedef struct bb_value {
  uint32_t node, port;
} bb_value;

/* An in-port of a node of the level at hand: who uses a value. */
typedef struct bb_use {
  uint32_t node, port;
} bb_use;

typedef struct bb_in {
  bb_value src;
  uint32_t level;    /* MAP: the list level iterated, or BB_WHOLE.  REDUCE: the level folded. */
  bb_use next, prev; /* the other uses of src; owned by graph.c */
} bb_in;

typedef enum bb_out_mode {
  BB_OUT_COLLECT,  /* a list over the map's dim, outermost, of the inner value */
  BB_OUT_FOLD,     /* the inner values folded by a monoid: Rule 3 put a reduction here */
  BB_OUT_INVARIANT /* equal in every iteration, stored once */
} bb_out_mode;

/* Which iterations a map runs.  Rule 7 peels the first one off: a map of its own makes the list
 * with that element alone, or the fold of one term, and the rest goes on from there.  A chunk:
 * enclosing maps over small enumerated dims number the chunks, the outermost dim counting most; of
 * C chunks number c has the iterations from c * count / C up to (c + 1) * count / C (it may have
 * none). */
typedef enum bb_part { BB_PART_ALL, BB_PART_FIRST, BB_PART_REST, BB_PART_CHUNK } bb_part;

/* The maps around a chunk that number it: their dims, outermost first. */
typedef struct bb_numbering {
  uint32_t count;
  const bb_dim *dim;
} bb_numbering;

enum { BB_COMPONENT_BITS = 24 };

typedef struct bb_out {
  const bb_type *type;
  /* Of maps only, from here on.  FOLD: the components stand in neighbouring ports, numbered from 0 */
  const bb_monoid *fold;
  uint32_t component : BB_COMPONENT_BITS;
  bb_out_mode mode : 4;
  bb_axis axis : 4; /* COLLECT: the axis of the new level */
  uint32_t resumes; /* REST: 1 + the in-port (whole) with the first iteration's result */
  bb_use first;     /* first use; owned by graph.c */
} bb_out;

typedef enum bb_reduce_mode {
  BB_REDUCE_FOLD,          /* list -> item */
  BB_REDUCE_SCAN,          /* list -> list of inclusive prefixes */
  BB_REDUCE_SCAN_EXCLUSIVE /* list -> list of exclusive prefixes, first the empty element */
} bb_reduce_mode;

/* Elements that an iteration takes, as selection chose them for what runs on one machine; 0:
 * whoever runs the loop chooses.  Loops that a list of partial results ties together have one. */
enum { BB_BLOCK_MOST = 1 << 30 };

/* A factor that a rule took out of sums scaled nothing where they have no terms, and must not spoil the empty sum: 0 times
 * an infinity is NaN.  `expr` of an op that scales is how many terms there were, a product of extents; NULL: one at least.
 * Where there is none, the factor - the second operand, OUTER's first - counts as 0.
 *
 * Little more than a cache line: a program is mostly nodes. */
typedef struct bb_node {
  bb_kind kind : 8;
  bb_op op : 8;              /* FUNC */
  bb_reduce_mode reduce : 8; /* REDUCE */
  bb_part part : 8;          /* MAP */
  uint32_t serial;
  uint32_t nin, nout;
  bb_in *in;
  bb_out *out;
  const char *name;  /* where it came from, for messages; not part of the program */
  bb_dim dim;        /* MAP */
  union {            /* by kind */
    uint32_t tensor; /* root INPUT, OUTPUT: index into the program's tensors */
    uint32_t block;  /* MAP over a blocked dim: see below */
  };
  union {                           /* by kind */
    const struct bb_access *access; /* root INPUT, OUTPUT, VIEW */
    const bb_numbering *chunk;      /* MAP, CHUNK */
    const bb_monoid *rows;          /* FUNC ROW_FOLD, ROW_SCAN, ROW_SCAN_EXCLUSIVE */
  };
  union {                       /* by kind */
    const bb_expr *expr;        /* FUNC: ELEMENTWISE; of one that scales, terms; of a wide DOT, 0 */
    const bb_monoid *monoid;    /* REDUCE */
    bb_graph *inner;            /* MAP: read it; edit it through bb_map_own() */
    const struct bb_misc *misc; /* MISC */
  };
} bb_node;

/* What was done to a level: an engine that keeps indexes of a level has its edits written down. */
typedef enum bb_change_kind {
  BB_CHANGE_ADDED,    /* node */
  BB_CHANGE_REMOVED,  /* node */
  BB_CHANGE_LINKED,   /* node became a use of src, iterating `level` */
  BB_CHANGE_UNLINKED, /* and is one no more */
  BB_CHANGE_INSIDE    /* the level inside node, a map, was given out to be edited */
} bb_change_kind;

typedef struct bb_change {
  bb_change_kind kind;
  uint32_t node;
  bb_value src;
  uint32_t level;
} bb_change;

typedef struct bb_journal {
  bb_arena *arena;
  bb_graph *graph; /* the level whose edits are written here */
  uint32_t count, capacity;
  bb_change *change;
} bb_journal;

struct bb_graph {
  bb_program *program;
  bb_arena *arena;     /* its nodes live there */
  bb_graph *kept;      /* bb_graph_keep(): what it was copied to */
  bb_journal *journal; /* NULL: edits are not written down; goes to the copy on copy on write */
  uint32_t holders;    /* how many maps, snapshots and roots hold this level */
  uint32_t count;      /* nodes ever added; walk 0..count-1, skipping BB_NODE_REMOVED */
  uint32_t live;       /* nodes not removed */
  uint32_t capacity;
  bb_node **node;
  uint32_t ninputs, noutputs; /* in port order of the enclosing map, or of the program */
  uint32_t input_capacity, output_capacity;
  uint32_t *input, *output; /* node indices */
};

/* --- building and editing; none of these checks types, the verifier does --- */

bb_graph *bb_graph_create(bb_program *program);

/* Adds a node; its in-ports are not connected, its out types NULL.  Returns its index. */
uint32_t bb_node_add(bb_graph *graph, bb_kind kind, uint32_t nin, uint32_t nout);
/* Adds a node like one of any level, with its serial, its types and a hold of the level inside it;
 * its in-ports are not connected. */
uint32_t bb_node_add_like(bb_graph *graph, const bb_node *like);
/* Removes a node without uses; its in-ports are disconnected. */
void bb_node_remove(bb_graph *graph, uint32_t node);

/* In-port `port` of a node takes the value from now on, or none; use lists follow. */
void bb_connect(bb_graph *graph, uint32_t node, uint32_t port, bb_value src);
void bb_disconnect(bb_graph *graph, uint32_t node, uint32_t port);
/* Whoever took the old value takes the other one. */
void bb_replace_uses(bb_graph *graph, bb_value old, bb_value with);

/* One more port, behind those that are there; its number. */
uint32_t bb_in_add(bb_graph *graph, uint32_t node, bb_value src, uint32_t level);
void bb_in_remove(bb_graph *graph, uint32_t node, uint32_t port); /* later ports move down */
uint32_t bb_out_add(bb_graph *graph, uint32_t node, const bb_type *type);
void bb_out_remove(bb_graph *graph, uint32_t node, uint32_t port); /* must have no uses */

/* --- convenience on top of the above --- */

/* Inputs and outputs of a level; appended to graph->input / graph->output. */
bb_value bb_input_add(bb_graph *graph, const bb_type *type);
uint32_t bb_output_add(bb_graph *graph, bb_value src);
/* A functional node; its out types follow from the operands'.  Fails the context if they do not
 * fit.  Gives port 0. */
bb_value bb_func_add(bb_graph *graph, bb_op op, const bb_expr *expr, uint32_t count,
                     const bb_value *in);
/* One of the ops along columns that have a monoid, an operand for each component. */
bb_value bb_row_fold_add(bb_graph *graph, bb_op op, const bb_monoid *monoid, const bb_value *in);
/* A reduction of level `level` of `count` lists. Gives port 0. */
bb_value bb_reduce_add(bb_graph *graph, const bb_monoid *monoid, bb_reduce_mode mode,
                       uint32_t level, uint32_t count, const bb_value *in);
/* An empty map over dim with an empty inner level, without ports. */
uint32_t bb_map_add(bb_graph *graph, bb_dim dim);
/* Adds an in-port and the inner INPUT node it feeds; gives the inner value.  An equal port (same
 * source, same level) is shared. The inner level must be owned. */
bb_value bb_map_in(bb_graph *graph, uint32_t map, bb_value src, uint32_t level);
/* Adds an out-port for an inner value; gives the outer value. `axis` for COLLECT: which axis of
 * the inner item this map's loop chunks. */
bb_value bb_map_collect(bb_graph *graph, uint32_t map, bb_value inner, bb_axis axis);
bb_value bb_map_fold(bb_graph *graph, uint32_t map, bb_value inner, const bb_monoid *monoid,
                     uint32_t component);
bb_value bb_map_invariant(bb_graph *graph, uint32_t map, bb_value inner);
/* Removes an in-port (whose inner INPUT has no uses) or an out-port (without uses) of a map.  The
 * last port takes its place, so that a map of many ports loses one in constant time; out-ports
 * keep their order where components of one fold stand side by side. */
void bb_map_in_remove(bb_graph *graph, uint32_t map, uint32_t port);
void bb_map_out_remove(bb_graph *graph, uint32_t map, uint32_t port);

/* --- moving nodes between levels --- */

/* Moves what `src` computes into `dst`: every node but its inputs and outputs, serials kept.
 * input[i], a value of dst, takes the place of the i-th input of src; output[i] receives the value
 * of dst that fed its i-th output.  The caller gives up its hold of src (others keep theirs). */
void bb_graph_splice(bb_graph *dst, bb_graph *src, const bb_value *input, bb_value *output);
/* A copy of a node that stands in no level yet; a level inside gets one more holder. */
bb_node *bb_node_copy(bb_arena *arena, const bb_node *node);
/* Moves a node whose in-ports are not connected and which has no uses; gives its new index. */
uint32_t bb_node_move(bb_graph *dst, bb_graph *src, uint32_t node);

/* Removes nodes and ports that nothing uses, in the levels inside too, but for those that others
 * hold. */
void bb_graph_prune(bb_graph *graph);

/* Writes a change of a node into the level's journal, if it has one. */
void bb_graph_note(bb_graph *graph, bb_change_kind kind, uint32_t node);

/* --- ownership of levels --- */

bb_graph *bb_graph_hold(bb_graph *graph);            /* one more holder: a snapshot */
bb_graph *bb_graph_own(bb_graph **root);             /* *root, replaced by a copy if shared */
bb_graph *bb_map_own(bb_graph *graph, uint32_t map); /* the inner level, likewise; graph is owned */
/* A deep copy that shares nothing with the original. */
bb_graph *bb_graph_copy(bb_graph *graph);
/* One of other nodes: with serials of their own. */
bb_graph *bb_graph_copy_anew(bb_graph *graph);

/* --- where levels live --- */

/* What a pass makes and does not keep need not stay: it sets program->levels to an arena of its
 * own, then copies what it keeps to the program's arena (levels that are there already stay), and
 * ends its own.  A level kept twice is copied once.  Removed nodes are left out, so that indices
 * change; their order does not.  The caller gives up its hold of the level for one of the
 * result. */
bb_graph *bb_graph_keep(bb_graph *graph);

/* --- reading --- */

static inline bb_node *bb_node_get(const bb_graph *graph, uint32_t node) {
  return graph->node[node];
}
/* Does the level nothing but hand its only input on?  copy.c */
bool bb_graph_is_copy(const bb_graph *graph);
/* A root INPUT or OUTPUT. */
static inline bool bb_node_has_tensor(const bb_node *node) {
  return node->kind != BB_NODE_MAP && node->tensor != BB_NONE;
}
static inline bb_value bb_src(const bb_graph *graph, uint32_t node, uint32_t port) {
  return graph->node[node]->in[port].src;
}
static inline const bb_type *bb_type_of(const bb_graph *graph, bb_value value) {
  return graph->node[value.node]->out[value.port].type;
}
static inline bool bb_value_equal(bb_value a, bb_value b) {
  return a.node == b.node && a.port == b.port;
}
/* Uses of a value, latest first:
 *   for (bb_use u = bb_first_use(g, v); u.node != BB_NONE; u = bb_next_use(g, u)) */
static inline bb_use bb_first_use(const bb_graph *graph, bb_value value) {
  return graph->node[value.node]->out[value.port].first;
}
static inline bb_use bb_next_use(const bb_graph *graph, bb_use use) {
  return graph->node[use.node]->in[use.port].next;
}
/* How many maps number the chunk that a map runs: none if it runs no chunk. */
static inline uint32_t bb_chunk_depth(const bb_node *map) {
  return map->part == BB_PART_CHUNK ? map->chunk->count : 0;
}
/* How many in-ports of its level take a value. */
uint32_t bb_use_count(const bb_graph *graph, bb_value value);
/* Functions and reductions, those in levels inside included. */
uint32_t bb_operator_count(const bb_graph *graph);
bool bb_edge_is_buffered(const bb_graph *graph, bb_use use);
/* The level's nodes in topological order: inputs first, then among ready nodes the least serial.
 * `order` has room for graph->live.  Returns how many were ordered: fewer than live means a
 * cycle. */
uint32_t bb_topological_order(const bb_graph *graph, bb_arena *scratch, uint32_t *order);

#endif
