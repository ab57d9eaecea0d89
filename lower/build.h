/* build.h - what the parts of the scheduler share: loops, values, and the statements being built.
 */
#ifndef BB_LOWER_BUILD_H
#define BB_LOWER_BUILD_H

#include "site.h"

typedef struct bb_build bb_build;

/* A loop of the tile program that is being built, and the body that it collects. */
typedef struct bb_build_loop {
  bb_dim dim;
  bool blocked;  /* `variable` is where the block starts; else an index */
  int64_t block; /* elements of an iteration */
  uint32_t variable, depth;
  bb_tile_index start;   /* first element: of an axis that the loop cuts into blocks */
  bb_tile_index element; /* number of the iteration: of a list with an element for each */
  bb_tile_index limit;   /* the dim's extent */
  bool clean;            /* blocks divide the extent, whatever it is */
  bool single;           /* one block holds the extent: there is no loop, and no frame */
  bool ghost;            /* an iteration runs even where there is none, on no element */
} bb_build_loop;

/* Where a value lies: a window on a view.  Each axis of the view starts somewhere; a slot says
 * which axis of the value runs along it, none where the window has one index there. */
enum { BB_SLOT_NONE = 255, BB_SLOT_ROW = 254, BB_SLOT_COL = 253 };
typedef struct bb_window {
  uint32_t view;
  bb_tile_index at[BB_TILE_RANK];
  uint8_t slot[BB_TILE_RANK]; /* a level of the value's type, or one of the above */
  struct bb_window_pad *pad;  /* of a view that is padded; else NULL */
} bb_window;

/* Where a window stands along an axis that is padded, besides at[]: places and taps of one axis meet in it, as they are
 * inside of it or outside together. */
typedef struct bb_window_pad {
  double fill;
  struct bb_window_reach {
    bb_tile_index from; /* NULL: at[] says it all */
    uint8_t slot[2];    /* levels whose elements ... */
    int64_t by[2];      /* ... are so far from each other */
    int64_t parts;      /* in an axis that was split by so many, from / parts ... */
    bool rest;          /* ... or what remains */
  } axis[BB_TILE_RANK];
} bb_window_pad;

typedef enum bb_build_kind { BB_BUILD_NOTHING, BB_BUILD_WINDOW, BB_BUILD_TILE } bb_build_kind;

typedef struct bb_build_value {
  const bb_type *type;
  bb_build_kind kind;
  uint32_t depth;                 /* it is there within the loop of this depth, once computed */
  const bb_build_loop *row, *col; /* the loops that cut the item's axes */
  uint32_t tile;
  bb_window window;
} bb_build_value;

/* What is known of a tile: where it was made, and what stands beyond the extents. */
typedef struct bb_tile_fact {
  bb_tile_stmt *load; /* the LOAD that made it, whose filling may still be chosen */
  bool chosen;        /* it was */
  const bb_build_loop *row, *col;
  bool known[2]; /* `fill` stands beyond the row extent, the col extent */
  double fill[2];
  uint32_t depth;
} bb_tile_fact;

/* One level of nesting: the loop (NULL: outside all) and what it holds so far. */
typedef struct bb_build_frame {
  bb_build_loop *loop;
  bb_tile_body body;
  uint32_t loads, load_capacity;
  struct bb_known_load {
    bb_window window;
    uint32_t tile;
  } * load;
} bb_build_frame;

enum { BB_BUILD_DEPTH = 64 };

/* All iterations of a spread loop would store the same into a view: the first one does. */
typedef struct bb_build_guard {
  uint32_t view;
  const bb_build_loop *loop;
} bb_build_guard;

struct bb_build {
  bb_program *program;
  bb_context *ctx;
  bb_arena *arena; /* the program's */
  bb_tile_program *tile;
  bb_kernel *kernel;
  bb_sites sites;
  uint32_t depth; /* of the innermost frame */
  uint32_t floor; /* statements stand no further out: the innermost loop of a spread nest */
  bb_build_frame frame[BB_BUILD_DEPTH];
  uint32_t arguments, argument_capacity;
  bb_kernel_argument *argument;
  uint32_t extents, extent_capacity, symbol_capacity, used_capacity;
  const bb_extent **extent;
  uint32_t *symbol;
  bool *used; /* by extent: something of the kernel depends on it */
  uint32_t facts, fact_capacity;
  bb_tile_fact *fact; /* by tile */
  uint32_t into;      /* the tile that the product at hand is added to; BB_NONE: it has its own */
  uint32_t singles, single_capacity;
  bb_build_loop *
      *single; /* loops that are none; equal ones are one, and cut what is loaded alike */
  uint32_t guards, guard_capacity;
  bb_build_guard *guard;
  uint32_t joins, join_capacity;
  struct bb_build_join { /* loops of which so many iterations may become one */
    uint32_t variable, together;
  } * join;
  uint32_t map_depth; /* enclosing maps */
  const bb_build_loop *map[BB_BUILD_DEPTH];
};

_Noreturn void bb_build_refuse(bb_build *b, const bb_node *node, const char *what);

/* --- integer expressions --- */
bb_tile_index bb_index_number(bb_build *b, int64_t value);
bb_tile_index bb_index_variable(bb_build *b, uint32_t variable);
bb_tile_index bb_index_add(bb_build *b, bb_tile_index x, bb_tile_index y);
bb_tile_index bb_index_times(bb_build *b, bb_tile_index x, bb_tile_index y);
/* The extent of a dim, a number where it is known. */
bb_tile_index bb_index_extent(bb_build *b, bb_dim dim);
bb_tile_index bb_index_size(bb_build *b, const bb_extent *extent);
bb_tile_index bb_index_symbol(bb_build *b, uint32_t symbol);

/* --- loops --- */
/* Opens a loop over a dim: statements go into it until bb_build_end(), which appends it to the body
 * outside.  part: as a map's. */
typedef struct bb_loop_options {
  int64_t block;
  bb_part part;
  bool counts; /* the variable counts elements of a list of partial results */
  bool parallel, spread;
  bool commutes;        /* what the iterations fold may be folded in another order */
  bool once;            /* one iteration runs even where the extent is 0 */
  bb_tile_index length; /* NULL: the dim's extent */
  bb_tile_index chunk;  /* part CHUNK: its number, of so many */
  int64_t chunks;
} bb_loop_options;
/* Opens a loop over a dim: what is built from now on stands in it, until it is closed. */
bb_build_loop *bb_build_begin(bb_build *b, bb_dim dim, const bb_loop_options *options);
void bb_build_end(bb_build *b, const bb_build_loop *loop, const bb_loop_options *options);
/* Which chunk of its loop a map of a chunk runs, and of how many: the maps around it that number them,
 * the outermost counting most. */
bb_tile_index bb_build_chunk(bb_build *b, const bb_node *node, int64_t *chunks);
/* The body at a depth, but never further out than a spread nest allows. */
uint32_t bb_build_place(const bb_build *b, uint32_t depth);
bb_tile_stmt *bb_build_stmt(bb_build *b, uint32_t depth, bb_tile_kind kind);
/* A condition that holds where the loops that an index depends on have that element; NULL: always. */
const bb_expr *bb_build_element_is_there(bb_build *b, bb_tile_index index);
/* The deepest loop that an index depends on. */
uint32_t bb_build_index_depth(const bb_build *b, bb_tile_index index);

/* --- values --- */
uint32_t bb_build_tile(bb_build *b, bb_dtype dtype, const bb_build_loop *row,
                       const bb_build_loop *col, uint32_t depth);
/* Gives a tile that was made without axes its axes. */
void bb_tile_shape(bb_build *b, uint32_t tile, const bb_build_loop *row, const bb_build_loop *col);
/* Where a window begins along an axis of its view. */
bb_tile_index bb_window_start(bb_build *b, const bb_window *window, uint32_t axis);
/* Element of a list, by the loop that iterates over `level`. */
bb_build_value bb_value_element(bb_build *b, const bb_node *node, const bb_build_value *list,
                                uint32_t level, const bb_build_loop *loop);
/* The loops further out that cut the items of a list are those of what is put there. */
void bb_value_know_cuts(bb_build_value *list, const bb_build_value *from);
/* Scratch memory for a value of a type. */
bb_build_value bb_value_scratch(bb_build *b, const bb_type *type, const uint32_t *tie);
/* The tile of an item: loaded if it lies in a view. */
uint32_t bb_value_tile(bb_build *b, const bb_node *node, const bb_build_value *value);
/* Do two values lie in the same memory? */
bool bb_value_same_place(bb_build *b, const bb_build_value *x, const bb_build_value *y);
void bb_value_store(bb_build *b, const bb_build_value *where, uint32_t tile, uint32_t depth);
/* Makes what stands beyond the extents of a tile's axis `fill`; gives the tile to be used. */
uint32_t bb_tile_filled(bb_build *b, uint32_t tile, bb_axis axis, double fill);

/* What sums of a type are held in. */
bb_dtype bb_build_sum_dtype(bb_dtype dtype);
/* A copy of another type; the tile itself if it has that. */
uint32_t bb_tile_as(bb_build *b, uint32_t tile, bb_dtype dtype);
/* result = expr of tiles, where it has to stand; a new tile with the axes of all operands. */
uint32_t bb_build_map(bb_build *b, const bb_expr *expr, uint32_t count, const uint32_t *tile);
void bb_build_map_into(bb_build *b, uint32_t result, uint32_t depth, const bb_expr *expr,
                       uint32_t count, const uint32_t *tile);
void bb_build_constant(bb_build *b, uint32_t result, uint32_t depth, double value);

/* Runs a body for each item of values of one shape, all lists iterated alike.  Of `joined` only the
 * first `length` elements (length NULL: all). */
typedef struct bb_nest {
  const uint32_t *tie;
  bool parallel; /* items are independent: spread over the grid where that is possible */
  bb_dim joined;
  bb_tile_index length;
} bb_nest;
typedef void bb_item_function(bb_build *b, void *user, uint32_t count, const bb_build_value *item);
void bb_each_item(bb_build *b, const bb_node *node, uint32_t count, const bb_build_value *value,
                  const bb_nest *nest, bb_item_function *function, void *user);
/* The same with a body that copies: `from` into the memory of `to`. */
void bb_value_copy(bb_build *b, const bb_node *node, const bb_build_value *to,
                   const bb_build_value *from, const bb_nest *nest);

/* --- schedule.c, schedule_op.c, schedule_fold.c, schedule_io.c --- */
/* A kernel at the block sizes that are given, or were chosen. */
const bb_kernel *bb_schedule_blocks(bb_program *program, const bb_graph *graph, const char *name,
                                    const bb_schedule_options *options);
void bb_schedule_func(bb_build *b, const bb_node *node, const bb_build_value *const *in,
                      bb_build_value *out);
/* acc = acc * term, tiles of a monoid's components; acc was made at `depth`. */
void bb_schedule_combine(bb_build *b, const bb_monoid *monoid, const uint32_t *acc,
                         const uint32_t *term);
double bb_monoid_empty_of(const bb_monoid *monoid, uint32_t component);

/* A product of dependent folds, rolling: what an iteration adds is computed with the earlier
 * components as they are after it, not with its own, and the accumulators are repaired to them first. */
typedef struct bb_renewal {
  const bb_monoid *monoid;
  const uint32_t *acc; /* tiles, by component */
  uint32_t *fresh;     /* what each is after this iteration, once known */
} bb_renewal;
bool bb_monoid_is_renewable(const bb_monoid *monoid);
/* Lowers the node that makes the term of a component: its value, which others read (`used`) or not, is
 * then the renewed component. */
void bb_schedule_renewed(bb_build *b, const bb_renewal *renewal, uint32_t component, bool used,
                         const bb_node *node, const bb_build_value *const *in, bb_build_value *out);
void bb_renewal_settle(bb_build *b, const bb_renewal *renewal);
void bb_schedule_reduce(bb_build *b, const bb_node *node, const bb_site_node *at,
                        const bb_build_value *const *in, const uint32_t *const *in_tie,
                        bb_build_value *out);
void bb_schedule_extents(bb_build *b, const bb_graph *graph);
/* A kernel that does nothing but bring the pieces of a joined input to one place writes each there at once.  False: it is
 * another kernel, and nothing was made. */
bool bb_schedule_joined_copy(bb_build *b, const bb_graph *graph, const uint32_t *tie);
bb_build_value bb_schedule_input(bb_build *b, const bb_node *node, const uint32_t *tie);
/* Where an output lies, if one window says it; else kind NOTHING, and bb_schedule_output() brings
 * the value there. */
bb_build_value bb_output_window(bb_build *b, const bb_node *node, const bb_type *type);
void bb_schedule_output(bb_build *b, const bb_node *node, const bb_build_value *value,
                        const uint32_t *tie);

#endif
