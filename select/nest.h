/* nest.h - inside select/: a snapshot as what its price depends on.
 *
 * A block program is walked once and turned into flat tables: loops, the block sizes that they have
 * in common, what is loaded, stored and computed where, and which values are alive together.  A
 * price for given block sizes is then a few passes over the tables (price.c).
 *
 * Block sizes belong to loops: a size is a class of loops that unbuffered edges tie together, since
 * an item has the size of the loop that took it out of its list.  A buffered edge ties nothing, but
 * for partial results, of which there is one for each block.
 */
#ifndef BB_SELECT_NEST_H
#define BB_SELECT_NEST_H

#include "../graph/program.h"

/* A snapshot with more is not priced. */
enum { BB_NEST_LOOPS = 64, BB_NEST_SIZES = 192 };

typedef struct bb_nest_size {
  bb_dim dim;
  bool whole; /* no loop cuts it: one block */
} bb_nest_size;

typedef struct bb_nest_loop {
  uint32_t parent; /* BB_NONE: at the top */
  uint32_t phase;  /* which loop at the top it is inside of, counted from 0 */
  uint32_t serial; /* of its map; BB_NONE: a reduction */
  bb_dim dim;
  uint32_t size; /* BB_NONE: an enumerated dim, one index a turn */
  bb_part part;
  bool grid;   /* one of the chain of loops at the top whose turns may run side by side */
  bool splits; /* right inside the grid, and folds everything that it gives: may be cut in chunks */
  double fold_cost; /* `splits`: operations an element to combine two parts */
} bb_nest_loop;

typedef enum bb_nest_kind {
  BB_NEST_DOT,
  BB_NEST_VECTOR,
  BB_NEST_SPECIAL,
  BB_NEST_LOAD,       /* from a tensor */
  BB_NEST_STORE,      /* to a tensor */
  BB_NEST_LIST_LOAD,  /* from a list that the same instance stored */
  BB_NEST_LIST_STORE, /* to such a list */
} bb_nest_kind;

/* Which neighbours of a block that is loaded are neighbours in memory. */
typedef enum bb_nest_run {
  BB_RUN_ANY, /* not known, or the block lies as it is read: constants */
  BB_RUN_ROW, /* those of a column, one in each row */
  BB_RUN_COL, /* those of a row */
  BB_RUN_NONE /* none: other axes lie between them */
} bb_nest_run;

/* amount (operations, or bytes) for each element of the item with these axes, once a turn of
 * `loop`. */
typedef struct bb_nest_term {
  bb_nest_kind kind;
  uint32_t loop;    /* the innermost around it; BB_NONE: at the top */
  uint32_t axis[3]; /* sizes, BB_NONE: no such axis; the third: what a dot contracts */
  double amount;
  bb_dtype dtype;
  uint64_t apart;  /* loops around it on which it does not depend: it is repeated in each turn */
  bb_nest_run run; /* LOAD */
  bool follows;    /* LOAD: a run that is whole is followed by the next one of the block */
  uint32_t
      before; /* LOAD, LIST_LOAD: 1 + the loop beside this one that loads or stores the same blocks before it; 0: none.  SPECIAL: that
               * computes the same */
  bool kept;  /* LIST_STORE: what is stored to a tensor, too */
  bool made;  /* DOT: its right operand is computed here, not loaded */
  bool shared; /* DOT: and others than products read that operand */
  bool adds;   /* DOT: to what the turn before gave */
  bool waits;  /* DOT: its left operand is made of what each turn of a loop loads in a wide type */
} bb_nest_term;

typedef enum bb_nest_room {
  BB_NEST_LOADED,   /* an item that was loaded */
  BB_NEST_STREAMED, /* one that is loaded in turns of a serial loop: in several stages */
  BB_NEST_PANELS, /* likewise, of a constant: a processor's products take it from where it lies, panel by panel */
  BB_NEST_COMPUTED,
  BB_NEST_LISTED, /* a list that stays in the instance */
  BB_NEST_ROOMS
} bb_nest_room;

/* Items that take equal room. */
typedef struct bb_nest_class {
  bb_nest_room room;
  uint32_t axis[2];
  double bytes;   /* of an element */
  uint64_t times; /* LISTED: loops whose turns each add an item */
} bb_nest_class;

typedef struct bb_nest_alive {
  uint32_t class;
  double count;
} bb_nest_alive;

/* What is alive together: the items of each kind of room, one kind after the other. */
typedef struct bb_nest_moment {
  const bb_nest_alive *alive;
  uint32_t until[BB_NEST_ROOMS]; /* where in `alive` a kind ends */
} bb_nest_moment;

typedef struct bb_nest {
  uint32_t sizes, loops, terms, classes, phases, moments;
  bb_nest_size *size;
  bb_nest_loop *loop;
  bb_nest_term *term;
  bb_nest_class *class;
  bb_nest_moment *moment; /* none has as much of everything as another */
  uint32_t folds;
  struct bb_nest_fold {
    uint32_t loop;
    uint32_t axis[2];
    double bytes;
  } * fold; /* accumulators of loops that split */
  /* A loop over single indices that may take several at once, the size of the blocks whose rows they then are, if these have all
   * places of a row, and the size that is how many; BB_NONE: there is none. */
  uint32_t joined, rows, together;
} bb_nest;

/* NULL: too many loops or sizes.  The nest lives in `arena`. */
bb_nest *bb_nest_create(const bb_program *program, const bb_graph *graph, bb_arena *arena);

#endif
