/* cover.h - inside select/: the cheapest way to cut a graph into kernels, for any price.
 *
 * The graph is abstract: nodes in topological order, what each reads, and a function that prices a
 * kernel.  A cover gives every node a home: the homes are convex sets of nodes that reads connect, or a
 * value that two of them read alike, and a node that is `fixed` has one of its own.  A kernel is a home with, beside it, *cheap* nodes that
 * it computes again instead of reading them; those are wanted in two places, and have been computed
 * before, by another kernel.  A value is stored where its home is if it is `kept` or some kernel
 * reads it from memory.  The cost of a cover is the sum of its kernels' prices.  Covers that store what nobody reads are not looked
 * at, though a price may fall when more is stored.
 *
 * A home is *loose* if only values that its nodes could compute again, each for itself, hold it
 * together: it is several kernels that could share a load.  There may be very many, one for each
 * set of neighbours.  So a loose home is grown by a part at a time, and only as long as that saves
 * something against a kernel of its own for the part.  Parts that run the same loops are not loose:
 * there the value is loaded once for all of them.
 *
 * The cheapest cover is found by a dynamic program over down-sets of the partial order: a state is
 * the set of nodes whose homes have run, and which cheap ones of them were not stored.  It is exact
 * within stated bounds:
 *   - a kernel's nodes, and the nodes of a down-set beyond its first gap, lie within a window of 64
 *     in the order given (so the work grows with the graph);
 *   - a home has at most `most_nodes` nodes, or is a region of up to 64 with one entry and one exit;
 *   - a kernel computes at most `most_again` nodes again; where very many kernels were priced
 *     (BB_COVER_PRICED) one, where twice as many were it stores all that somebody else reads, all but
 *     one value, or what must be, and where four times as many were it computes nothing again;
 *   - at most `most_sets` homes begin at one node, few where the nodes before had very many kernels,
 *     and at most `most_states` states of one size are followed, the cheapest;
 *   - kernels wait for one another in very many ways: beyond BB_COVER_WORK tries, and a share of it for
 *     each node, few states are followed, and few ways from each.
 * Where one of the last two, or the window, cut something off, `exact` is false and `why` says
 * so.
 */
#ifndef BB_SELECT_COVER_H
#define BB_SELECT_COVER_H

#include "../graph/context.h"

typedef struct bb_cover_node {
  uint32_t reads; /* earlier nodes whose values it reads, each once */
  const uint32_t *read;
  const bool *apart; /* by read: the two never share a kernel; NULL: any may */
  uint32_t
      twins; /* earlier nodes that read what it reads, over the same loops: one load serves both */
  const uint32_t *twin;
  uint32_t group; /* nodes of different groups never share a kernel */
  uint32_t loops; /* nodes that run the same loops have the same number */
  bool fixed;     /* runs alone */
  bool cheap;     /* may be computed again where it is read */
  bool kept;      /* its value is stored, whoever reads it */
} bb_cover_node;

typedef struct bb_cover_kernel {
  uint32_t nodes;
  const uint32_t *node; /* ascending */
  const bool *again;    /* by place in node[]: its home is another kernel */
  const bool *stored;   /* by place in node[] */
  double price;
} bb_cover_kernel;

/* The price of a kernel; INFINITY: there is no such kernel.  A single node must have a price. */
typedef double bb_cover_price(void *user, const bb_cover_kernel *kernel);

typedef struct bb_cover_options {
  uint32_t most_nodes, most_again, most_sets, most_states; /* 0: the defaults below */
} bb_cover_options;

enum {
  BB_COVER_NODES = 9,
  BB_COVER_AGAIN = 2,
  BB_COVER_SETS = 4096,
  BB_COVER_PRICED = 1 << 13, /* and a share of it for each node */
  BB_COVER_STATES = 4096,
  BB_COVER_WORK = 1 << 21, /* kernels tried, a second or so */
  BB_COVER_WINDOW = 64
};
/* A part joins a loose home that is cheaper than the two apart by this share of their price. */
#define BB_COVER_SAVING (1.0 / 1024)

typedef struct bb_cover {
  double cost;
  uint32_t kernels; /* in an order in which they can run */
  const bb_cover_kernel *kernel;
  bool exact;
  const char *why;         /* not exact: which bound cut something off */
  uint32_t states, priced; /* down-sets reached, kernels priced */
} bb_cover;

/* The cover lives in `arena`.  options may be NULL. */
bb_cover *bb_cover_solve(bb_arena *arena, uint32_t nodes, const bb_cover_node *node,
                         const bb_cover_options *options, bb_cover_price *price, void *user);

/* --- between cover.c, cover_sets.c and cover_loose.c --- */

/* A set of nodes near a node `at`: bit 64 + k is node at + k, for -64 <= k < 64. */
typedef unsigned __int128 bb_near;
#define BB_NEAR_BIT(k) ((bb_near)1 << (64 + (k)))

/* The first k of a set, which has one. */
static inline int bb_near_first(bb_near set) {
  uint64_t before = (uint64_t)set;
  return before ? __builtin_ctzll(before) - 64 : __builtin_ctzll((uint64_t)(set >> 64));
}

/* A kernel that may be part of a cover; its sets are near `low`, the first node of its home. */
typedef struct bb_cover_choice {
  uint32_t low;
  uint64_t home; /* bit k: node low + k */
  bb_near again, stored, reads;
  double price;
} bb_cover_choice;

typedef struct bb_cover_sets {
  bb_arena *arena; /* where the choices live */
  uint32_t nodes;
  const bb_cover_node *node;
  bb_cover_options options;
  uint32_t *last_reader; /* by node, also of what is computed again from it; itself: none */
  uint32_t *readers;     /* by node, nodes + 1: where its readers begin in reader[] */
  uint32_t *reader;      /* ascending */
  bool *read_by_fixed;   /* by node: a fixed node or one of another group reads it */
  bool *again;           /* by node: may be computed again: cheap, and wanted twice */
  bb_cover_price *price;
  void *user;
  uint32_t choices, capacity;
  bb_cover_choice *choice;
  uint32_t *first; /* by node, nodes + 1: the choices that begin there */
  uint32_t priced;
  bool cut; /* most_sets was reached somewhere */
} bb_cover_sets;

/* The nodes low ... low + 63, bit k being node low + k. */
typedef struct bb_cover_window {
  bb_cover_sets *sets;
  uint32_t low, count;
  uint64_t allowed;                 /* may share a home with the first node */
  uint64_t before[BB_COVER_WINDOW]; /* what a node depends on, within the window */
  uint64_t after[BB_COVER_WINDOW];  /* what depends on it */
  uint64_t beside[BB_COVER_WINDOW]; /* what it reads, and what reads it */
  uint64_t joined[BB_COVER_WINDOW]; /* the same, and twins */
  uint64_t apart[BB_COVER_WINDOW]; /* what it reads or is read by, and never shares a kernel with */
  uint32_t homes, capacity;        /* connected and convex */
  struct bb_cover_home {
    uint64_t set;
    double
        price; /* with as little stored as can be, nothing computed again; INFINITY: no candidate */
  } * home;    /* smaller ones first */
} bb_cover_window;

/* Is the home loose?  Then *part is the part that it was grown by last, *copy the values that a
 * kernel of the part's own computes again; a home without such a part is none (*part: 0). */
bool bb_cover_is_loose(const bb_cover_window *w, uint64_t home, uint64_t *part, uint64_t *copy);

/* Fills choice[] and first[] with everything that can be a kernel and has a price. */
void bb_cover_enumerate(bb_cover_sets *sets);
/* The kernel that a choice is, its arrays in `room`. */
typedef struct bb_cover_room {
  uint32_t node[2 * BB_COVER_WINDOW];
  bool again[2 * BB_COVER_WINDOW], stored[2 * BB_COVER_WINDOW];
} bb_cover_room;
bb_cover_kernel bb_cover_describe(const bb_cover_choice *choice, bb_cover_room *room);

#endif
