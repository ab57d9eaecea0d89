/* tile.h - tile programs: the last device-independent form of a kernel.
 *
 * A tile program says what a kernel does with blocks of fixed size: loops over run-time extents,
 * loads and stores of tiles by affine index, products, elementwise expressions, folds.  Its meaning
 * is sequential: statement after statement, loop after loop; a tile is storage with a name, and a
 * statement replaces what it holds.  bb_tile_interpret() is that meaning.
 *
 * How a device runs it stands beside the statements as a *schedule*, which never changes the
 * meaning: where a tile lives (registers, registers laid out as a product's left operand, shared
 * memory in so many buffers), which warps a loop is spread over, in which pipeline stage a
 * statement runs, whether neighbouring iterations of the output loop overlap, which warp groups
 * copy and which compute.  An emitter that does not know a note ignores it: the same statements are
 * the kernels of every target.
 *
 * The text form is described in tile_parse.c.  A tile program lives in the arena of its home, a
 * bb_program that holds the tables of its expressions and symbols.
 */
#ifndef BB_LOWER_TILE_H
#define BB_LOWER_TILE_H

#include "../graph/program.h"

enum {
  BB_TILE_RANK = 32,
  BB_TILE_SIZE = 1 << 18,
  BB_TILE_OPERANDS = 16,
  BB_TILE_PANEL = 64,
  BB_TILE_VECTOR = 16
};
/* Launches are told of so many views, a bit each, whether launches before may still write there; the bit behind those: whether
 * it runs ahead of them. */
enum { BB_AHEAD = 31 };

/* In the expression of a MAP or ANY, ARG BB_TILE_VARIABLE + k is variable k. */
enum { BB_TILE_VARIABLE = BB_TILE_OPERANDS };

/* Integer expressions (i64): ARG k is variable k, an extent or the variable of an enclosing
 * loop. */
typedef const bb_expr *bb_tile_index;

/* An array in memory: an argument of the kernel, or scratch. */
typedef struct bb_tile_view {
  const char *name;
  bb_dtype dtype;
  uint32_t rank;
  bb_tile_index extent[BB_TILE_RANK];
  bool strided;                       /* else dense, row-major */
  bb_tile_index stride[BB_TILE_RANK]; /* in elements; the last is 1 where a tile is read along it */
  bool written;                       /* an output */
  bool scratch; /* no argument: memory of the kernel itself, for what passes between its loops.  One
                 * that a single outermost loop uses holds nothing from one iteration of the parallel
                 * loops around its uses to another: each may have its own */
  /* the last two axes are those of a block, and a load or store takes one from its begin; how
   * its elements lie in memory is the device's to say.  The last extent is a multiple of
   * bb_tile_panel() */
  bool panels;
  /* loads may begin before an axis, and single indices lie outside of one, where nothing is read.  Never written */
  bool padded;
} bb_tile_view;

/* Elements at whose multiples a block of panels ends: those of the longest vector where a last panel has as few as there are; else
 * all of one. */
static inline uint32_t bb_tile_panel(bb_dtype dtype) {
  return dtype == BB_F32 || dtype == BB_F64 ? BB_TILE_VECTOR : BB_TILE_PANEL;
}

typedef enum bb_tile_place {
  BB_PLACE_REGISTERS,
  BB_PLACE_LEFT,  /* registers, as the left operand of a product takes them */
  BB_PLACE_SHARED /* with the swizzle that the target's products want */
} bb_tile_place;

/* Storage.  rows or cols 0: it lacks that axis (a vector, a scalar). */
typedef struct bb_tile {
  const char *name;
  bb_dtype dtype;
  uint32_t rows, cols;
  bb_tile_place place;
  uint32_t buffers; /* SHARED: a ring of so many; 1 where nothing overlaps */
  bool partial;     /* each lane holds its part of a sum; whole once a map copies it elsewhere */
} bb_tile;

/* An axis that a tile lacks counts as one row, one column. */
static inline uint32_t bb_tile_rows(const bb_tile *tile) {
  return tile->rows ? tile->rows : 1;
}
static inline uint32_t bb_tile_cols(const bb_tile *tile) {
  return tile->cols ? tile->cols : 1;
}
/* As a number to weigh work with. */
static inline double bb_tile_elements(const bb_tile *tile) {
  return (double)bb_tile_rows(tile) * bb_tile_cols(tile);
}
/* Of 16-bit elements in shared memory: lines of 64 columns, of which the last may be empty in part. */
static inline uint32_t bb_tile_shared_bytes(const bb_tile *tile) {
  return tile->rows * ((tile->cols + 63) / 64 * 64) * 2;
}
static inline bool bb_tile_is_vector(const bb_tile *tile) {
  return !tile->rows != !tile->cols;
}
static inline bool bb_tile_is_block(const bb_tile *tile) {
  return tile->rows && tile->cols;
}

/* What loops that run apart are joined by: any associative combination of a tuple. */
typedef struct bb_tile_monoid {
  const char *name;
  uint32_t components;
  const double *empty;
  /* ARG k: component k of the left part; ARG components + k: right */
  const bb_expr *const *combine;
} bb_tile_monoid;

typedef enum bb_tile_kind {
  BB_TILE_LOAD,  /* result = view[...]; beyond the extents it is `pad` */
  BB_TILE_STORE, /* view[...] = operand 0; what is beyond the extents is left out */
  BB_TILE_MAP,   /* result = expr, element by element; operands that lack an axis repeat along it */
  BB_TILE_DOT,   /* result = a b, or += ; either transposed; an operand may be a vector */
  BB_TILE_TRANSPOSE,
  BB_TILE_FOLD, /* result = operand 0 folded along an axis by a monoid; by one of values and their
                * places, second = the places, -1 where there is none */
  BB_TILE_SCAN, /* result = prefixes of operand 0 along an axis by a monoid, inclusive ones unless `before` */
  BB_TILE_ANY,  /* result (a bool) = does expr hold anywhere? */
  BB_TILE_IF,   /* where operand 0 holds, body.  A device may ask for a part of the rows at a
                  * time: the body must be one that rows with a false answer may run too */
  BB_TILE_WHEN, /* if expr, a comparison of indices, holds: body.  One answer for all of the tile */
  BB_TILE_LOOP
} bb_tile_kind;

/* One index of a load or store. */
typedef struct bb_tile_range {
  bb_tile_index start;
  uint32_t size; /* 0: one index; else so many from start, along axis */
  bb_axis axis;
} bb_tile_range;

typedef enum bb_tile_spread {
  BB_SPREAD_NONE,    /* iterations follow each other */
  BB_SPREAD_GRID,    /* over the blocks of the grid */
  BB_SPREAD_CLUSTER, /* over the blocks of a cluster, which share their memories */
  BB_SPREAD_WARPS    /* over the warps of a block */
} bb_tile_spread;

/* A stretch of a serial loop: the variable takes from, from + step, ... below to, upwards or
 * downwards; without a `to` it takes `from`, once.  Statements may be confined to some stretches (a
 * mask where it is not true everywhere). */
typedef struct bb_tile_stretch {
  bb_tile_index from, to;
} bb_tile_stretch;

enum { BB_TILE_STRETCHES = 5 };

typedef struct bb_tile_stmt bb_tile_stmt;

typedef struct bb_tile_body {
  uint32_t count;
  bb_tile_stmt **stmt;
} bb_tile_body;

typedef struct bb_tile_loop {
  uint32_t variable;
  bool parallel; /* the iterations may run in any order, or at once */
  bool down;     /* from the last to the first; of a parallel loop: the better order */
  bool commutes; /* serial: its iterations may follow each other in another order */
  bb_tile_index step;
  uint32_t stretches; /* run in this order, each as `down` says */
  bb_tile_stretch stretch[BB_TILE_STRETCHES];
  bb_tile_body body;
  const bb_tile_monoid *merge; /* parallel: what iterations leave in merged[] is combined */
  uint32_t merged[BB_TILE_OPERANDS];
  /* serial: NULL, or by axis where the view `marks` says if an iteration has anything to do: one whose mark is 0 changes nothing and
   * is passed over (a device may run it all the same).  The last index is the variable / the step, no other has the variable */
  const bb_tile_index *marked;
  uint32_t marks;
  /* a first stretch of one iteration may be any other of the loop's, whose place it takes */
  bool anywhere;
  /* schedule */
  bb_tile_spread spread;
  bool persistent; /* GRID: a block takes one iteration after another ... */
  bool queue;      /* ... from a counter that all blocks share, else every so many-th */
  bool rotate;     /* the end of one iteration overlaps the begin of the next */
  bool pairs;      /* GRID: blocks of neighbouring iterations load together what both need */
} bb_tile_loop;

struct bb_tile_stmt {
  bb_tile_kind kind;
  uint32_t result; /* a tile; BB_NONE: STORE, IF, LOOP */
  uint32_t second; /* FOLD by a monoid of values and places: the tile of places; else BB_NONE */
  uint32_t operands, operand[BB_TILE_OPERANDS];
  uint32_t view;
  bb_tile_range range[BB_TILE_RANK];
  double pad;
  const bb_expr *expr; /* MAP, ANY: ARG k is operand k, ARG BB_TILE_VARIABLE + k variable k.
                        * WHEN: ARG k is variable k */
  bb_tile_index at[2]; /* MAP, ANY: where row 0 and col 0 of the result lie; NULL: not asked.  FOLD
                        * with `second`: the place of the operand's first row or col */
  bool transposed[2], accumulate;
  bool before; /* SCAN: prefixes are without the element itself */
  const bb_monoid *monoid;
  bb_axis axis;        /* FOLD, SCAN: the axis folded along */
  bb_tile_index limit; /* FOLD with `second`: places from here on are left out */
  bb_tile_body body;
  bb_tile_loop *loop;
  uint32_t stretches; /* within a loop of several: bit i, it runs in stretch i; 0: in all */
  /* schedule */
  uint32_t stage; /* runs so many iterations behind the statements of stage 0 */
};

/* Are neighbours along an axis of a view neighbours in memory? */
static inline bool bb_tile_is_unit(const bb_tile_view *view, uint32_t axis) {
  if (!view->strided) return axis + 1 == view->rank;
  return view->stride[axis]->op == BB_X_CONST && view->stride[axis]->number == 1;
}

/* Has a load or store two ranges along the rows of its tile?  Then the tile's rows are those of the first by those of the
 * second, and rows beyond all of them are beyond the extents. */
static inline bool bb_tile_has_two_rows(const bb_tile_stmt *stmt, uint32_t rank) {
  uint32_t ranges = 0;
  for (uint32_t i = 0; i < rank; i++)
    ranges += stmt->range[i].size && stmt->range[i].axis == BB_AXIS_ROW;
  return ranges > 1;
}
/* Rows that the ranges of a load or store have; 1: there is none along them. */
static inline uint32_t bb_tile_rows_taken(const bb_tile_stmt *stmt, uint32_t rank) {
  uint32_t rows = 1;
  for (uint32_t i = 0; i < rank; i++)
    if (stmt->range[i].size && stmt->range[i].axis == BB_AXIS_ROW) rows *= stmt->range[i].size;
  return rows;
}

typedef struct bb_tile_program {
  bb_program *home;
  const char *name;
  uint32_t views, view_capacity, tiles, tile_capacity, variables, variable_capacity;
  uint32_t monoids, monoid_capacity;
  uint32_t extents; /* run-time arguments: the first variables; symbols of the home by name */
  bb_tile_view *view;
  bb_tile *tile;
  const char **variable;
  const bb_tile_monoid **monoid;
  bb_tile_body body;
  /* schedule: the warp groups of a block */
  uint32_t groups;                      /* that compute; 0: the emitter's choice */
  uint32_t copier_registers, registers; /* a thread's; 0: as the compiler likes.  copier: 0: none */
  bool turns;                           /* computing groups alternate at the product unit */
} bb_tile_program;

/* Lives as long as its home, and is not registered there. */
bb_tile_program *bb_tile_create(bb_program *home, const char *name);
/* Expressions may also name an extent as a symbol, once it is one of the home's.  A name that is a
 * word of the text form, as i32 is, gets an underscore. */
uint32_t bb_tile_add_variable(bb_tile_program *program, const char *name, bool extent);
uint32_t bb_tile_add_view(bb_tile_program *program, const bb_tile_view *view);
uint32_t bb_tile_add(bb_tile_program *program, const bb_tile *tile);
void bb_tile_add_monoid(bb_tile_program *program, const bb_tile_monoid *monoid);
/* A statement at the end of a body; a LOOP has its loop. */
bb_tile_stmt *bb_tile_append(bb_tile_program *program, bb_tile_body *body, bb_tile_kind kind);
/* A name of the text form: plain, and none of its words. */
bool bb_tile_name_is_good(const char *name);

/* Parses and verifies; fails with BB_ERROR_INPUT and the place.  The caller owns the home that it
 * makes: bb_program_destroy(program->home). */
bb_tile_program *bb_tile_parse(bb_context *ctx, const char *path, const char *text, size_t length);
void bb_tile_print(bb_buffer *out, const bb_tile_program *program);
/* Same text up to what cannot be seen: two programs of one text are equal. */
bool bb_tile_equal(const bb_tile_program *a, const bb_tile_program *b);

/* NULL, or the first law that is broken, with the statement, in `scratch`. */
const char *bb_tile_verify(const bb_tile_program *program, bb_arena *scratch);

/* A name that says what a program does: PREFIX_dot3_fold_128x64 has three products, a fold, and
 * stores blocks of 128 rows and 64 columns first; a C identifier if the prefix is one. */
const char *bb_tile_describe(const bb_tile_program *program, const char *prefix, bb_arena *arena);

/* One statement, as the text has it, without its body. */
void bb_tile_print_head(bb_buffer *out, const bb_tile_program *program, const bb_tile_stmt *stmt);

/* --- launches --- */

/* How many statements of the body are launches of their own, before the kernel: where all are nests over the grid, all but the
 * last. */
uint32_t bb_tile_nests_before(const bb_tile_program *program);
/* The program of statements from..to-1 of the body, with everything else of the whole one. */
bb_tile_program bb_tile_part(const bb_tile_program *program, uint32_t from, uint32_t to);

/* --- the meaning --- */

/* Arrays are doubles, as the view's strides say.  `exact`: nothing is rounded to its dtype. */
typedef struct bb_tile_binding {
  const int64_t *extent; /* by variable below `extents` */
  double *const *view;   /* NULL where it is scratch */
  bool exact;
} bb_tile_binding;
void bb_tile_interpret(const bb_tile_program *program, const bb_tile_binding *binding);

/* An index, given the variables. */
int64_t bb_tile_index_value(bb_tile_index index, const double *variable);
/* Elements of a view, or of the storage that it needs when strided. */
size_t bb_tile_view_count(const bb_tile_program *program, uint32_t view, const int64_t *extent);

#endif
