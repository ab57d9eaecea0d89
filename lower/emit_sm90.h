/* emit_sm90.h - what the files of the emitter for sm_90a share, which is the one for sm_80 and
 * later, too (emit_sm80.c).
 *
 * A kernel here is a nest of parallel loops over the grid, around them optionally a loop spread
 * over a cluster and one spread over warps, and in the innermost at most one serial loop: the core.
 * Its statements are put into lists, each a straight run of code: the first iteration, the others,
 * the last statements of a later stage; emit_sm90_order.c orders each list.
 */
#ifndef BB_LOWER_EMIT_SM90_H
#define BB_LOWER_EMIT_SM90_H

#include "emit.h"

enum { BB_CUDA_OPERANDS = 64 };            /* registers for the left operands of a warp's product */
enum { BB_CUDA_HALF_SHARED = 113 * 1024 }; /* bytes of each of two blocks on a processor */

typedef enum bb_layout {
  BB_LAYOUT_FRAGMENT, /* the accumulator of a product, and vectors beside it */
  BB_LAYOUT_LEFT,     /* a left operand: pairs of 16-bit elements */
  BB_LAYOUT_RIGHT,    /* a right operand of a warp's product: pairs along what is contracted */
  BB_LAYOUT_SPREAD,   /* so many threads a row, 8 neighbouring columns each in turn */
  BB_LAYOUT_SHARED
} bb_layout;

typedef struct bb_cuda_tile {
  bb_layout layout;
  const char *name;   /* in the source */
  uint32_t rt, ct;    /* tiles of 16 rows and 8 columns of a thread's warp */
  uint32_t registers; /* of a thread */
  bool wide;          /* each of them is two */
  uint32_t uses;      /* by statements, but those that are shared element by element */
  bool ring;          /* loaded by the copy engine */
  bool stands;        /* ring: loaded once before the serial loop, which reads it from there */
  bool early;         /* ring: its first buffers may be filled before earlier launches have ended */
  uint32_t parts;     /* ring: in so many parts of 64 rows, each for one warp group alone */
  uint32_t offset;    /* SHARED: bytes */
  uint32_t stride;    /* ring: bytes from one buffer to the next */
  uint32_t beside; /* ring: 1 + the tile whose buffers each lie right behind this one's; 0: none */
  bool behind;     /* it is such a one */
  bool late;       /* SHARED: made behind the serial loop, where what that loaded lay */
  bool mated;      /* ring: each block of a pair loads half of it, for both */
  bool pieces;     /* SHARED: made when it is stored, 64 columns at a time (emit_sm90_pieces.c) */
  bool flipped;    /* RIGHT: products read it transposed: contracted are its columns */
  bool added;      /* SHARED: it comes into the memory that a result leaves by, in pieces like it */
  uint32_t map;    /* ring, added: the tensor map that loads it */
  uint32_t edge;   /* ring: 1 + the map that loads it at the end of an array; 0: none */
} bb_cuda_tile;

typedef struct bb_cuda_map {
  uint32_t view, rows, cols; /* a box of 64 columns at most */
  bb_axis axis[BB_TILE_RANK];
  uint32_t box[BB_TILE_RANK];
  bool put;          /* of a warp's piece: 16 rows; of a view that is stored, or loaded in pieces */
  bool edge;         /* of as many rows as the array has beyond whole boxes */
  const char *reads; /* iterations of the grid's loops that read the same box: more than one make it
                      * worth a place in the L2 */
  /* 64 columns each, which an outermost axis of the map counts: one copy, not several */
  uint32_t fold;
  const char *name;
} bb_cuda_map;

typedef struct bb_cuda_list {
  uint32_t count;
  bb_tile_stmt *const *stmt;
} bb_cuda_list;

/* A statement of a list; `old` belongs to the iteration before; `when`: the condition, as text, that it runs on, NULL: always. */
typedef struct bb_cuda_item {
  const bb_tile_stmt *stmt;
  bool old;
  const char *when;
} bb_cuda_item;

enum { BB_CUDA_ITEMS = 192 }; /* of a list, at most */

/* What is done at one place of a list's code. */
typedef enum bb_cuda_act_kind {
  BB_ACT_ARRIVED, /* wait until a ring's tile is there */
  BB_ACT_RUN,     /* the statement; a product of a group is begun */
  BB_ACT_WAIT,    /* until at most `count` products are in flight */
  BB_ACT_PIN,     /* a product is done: its registers */
  BB_ACT_RELEASE, /* a ring's tile is no more needed */
  BB_ACT_BEHIND,  /* a tile of the iteration before is not, whose products have ended */
  BB_ACT_TAKE,    /* turns at the product unit */
  BB_ACT_PASS
} bb_cuda_act_kind;

typedef struct bb_cuda_act {
  bb_cuda_act_kind kind;
  uint32_t item, tile, count;
} bb_cuda_act;

typedef struct bb_cuda {
  const bb_tile_program *p;
  bb_context *ctx;
  bb_arena *arena;
  bb_buffer *out;
  uint32_t depth;
  uint32_t grids;
  const bb_tile_loop *grid[8], *cluster, *warps, *serial;
  const bb_tile_loop *split; /* the innermost over the grid, if its iterations are merged */
  const bb_tile_loop *pair;  /* of the grid: neighbours along it are clusters of two */
  bool leads; /* the second of them has an iteration of the serial loop before those of both */
  const bb_tile_body *core; /* the body within the spread loops: before, serial, after */
  /* of the core; behind the spread loops */
  bb_cuda_list before, after, after_warps, after_cluster, after_split;
  bb_cuda_list ending; /* behind `after`, part by part (emit_sm90_ending.c) */
  bb_cuda_tile *tile;
  uint32_t maps;
  bb_cuda_map map[16];
  uint32_t groups, threads, shared, stages, warp_count;
  bool copier, puts, exchange;
  const bb_tile_stmt *added; /* the load of the tile that is `added`; NULL: there is none */
  /* threads that copy: one for all tiles, or one for each (emit_sm90_copiers.c) */
  uint32_t copiers;
  bool marks;  /* the serial loop goes from one marked iteration to the next ... */
  bool begins; /* ... and begins at the first */
  bool ahead;  /* it may run beside earlier launches until it writes (emit_sm90_early.c) */
  bool lags;   /* products of the serial loop end while the next iteration's run */
  bool sm80;   /* products of warps, copies by all: no roles, tensor maps, clusters (emit_sm80.c) */
  uint32_t group; /* rows of a group that computes: 64, or on sm_80 a multiple */
  /* bytes of shared memory beside tiles: barriers and what threads tell each other */
  uint32_t sync;
  uint32_t resident;    /* blocks that a processor has registers for at once */
  uint32_t widest;      /* columns that a product has at most */
  uint32_t turns;       /* sm80: buffers of what the serial loop loads; 0: nothing */
  uint32_t most_shared; /* bytes that a block may have */
  uint32_t inbox;       /* where parts of other blocks come to */
  bool beside_tiles;    /* there lie no tiles: parts may come at any time */
  /* while code is written */
  const char **variable;     /* how each is called here */
  const char **old_variable; /* ... in statements of the iteration before */
  const char
      *step_name[8]; /* by loop of the grid: how its step is called; NULL: as it is computed */
  uint32_t copied;   /* not 0: of a copier, for tile copied - 1 alone */
  bool raw; /* 16 columns of each shared operand lie in raw_NAME, as a left operand's would */
  uint32_t single; /* not 0: statements are of element e of a block of so many column tiles */
  uint32_t part;   /* not 0: of so many of a thread's elements of blocks: number `part` of those */
} bb_cuda;

_Noreturn void bb_cuda_refuse(const bb_cuda *e, const bb_tile_stmt *stmt, const char *why);
void bb_cuda_line(bb_cuda *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* emit_sm90_plan.c: the nest, layouts, shared memory, tensor maps. */
void bb_cuda_plan(bb_cuda *e);
/* 1 + a load's map for the end of its array; 0: there is no room for another. */
uint32_t bb_cuda_add_edge(bb_cuda *e, const bb_tile_stmt *load);
bool bb_cuda_is_async(const bb_cuda *e, const bb_tile_stmt *stmt);

/* emit_sm90_expr.c */
/* An index, or another expression of arguments with names; NULL: e->variable. */
const char *bb_cuda_index(const bb_cuda *e, bb_tile_index index, const char *const *names);
/* How a view's pointer is called in the kernel's argument. */
const char *bb_cuda_view_name(const bb_cuda *e, uint32_t view);
/* A map's expression at element `element` of a fragment (text). */
const char *bb_cuda_value(const bb_cuda *e, const bb_tile_stmt *stmt, const bb_expr *expr,
                          const char *element, bb_layout layout, uint32_t ct);
/* How an element of a tile is called where the result's element is `element`. */
const char *bb_cuda_element(const bb_cuda *e, uint32_t tile, const char *element, bb_layout layout,
                            uint32_t ct, uint32_t rows, uint32_t cols);

/* emit_sm90_order.c: the code of a list; acts in the arena.  `lags`: the list's products are left
 * in flight, and those of the list before are waited for. */
bb_cuda_act *bb_cuda_order(bb_cuda *e, uint32_t count, const bb_cuda_item *item, bool turns,
                           bool lags, uint32_t *acts);

/* emit_sm90_stmt.c */
void bb_cuda_stmt(bb_cuda *e, const bb_tile_stmt *stmt);
/* The copy of a ring's tile, from `row` of it on: bb_cuda_load_bytes(). */
void bb_cuda_load(bb_cuda *e, const bb_tile_stmt *stmt, uint32_t row, const char *buffer,
                  const char *barrier);
/* `pairs` pairs of neighbours of a map's result, narrowed, as texts of u32; `format`: the first
 * one's element. */
void bb_cuda_pairs(bb_cuda *e, const bb_tile_stmt *stmt, bb_buffer *out, const char *format,
                   uint32_t pairs, uint32_t ct);
/* The offset of an element in a view, from the texts of its row and column; *inside: whether it
 * lies there. */
const char *bb_cuda_offset(bb_cuda *e, const bb_tile_stmt *stmt, const char *row, const char *col,
                           const char **inside);
/* Coordinates of a box, innermost first, each behind a comma. */
const char *bb_cuda_box_at(bb_cuda *e, const bb_tile_stmt *stmt, const char *row, const char *col);

/* emit_sm90_edge.c: rows beyond an array. */
void bb_cuda_find_edges(bb_cuda *e);
/* How many bytes a load brings, from `row` of its tile on, as text. */
const char *bb_cuda_load_bytes(const bb_cuda *e, const bb_tile_stmt *load, uint32_t row);
/* The map that loads it, as text, behind the line that says whether there is anything to load. */
const char *bb_cuda_box(bb_cuda *e, const bb_tile_stmt *load, uint32_t row);

/* emit_sm90_pieces.c: results of persistent blocks. */
void bb_cuda_find_added(bb_cuda *e);
void bb_cuda_find_pieces(bb_cuda *e);
/* Asks for the first pieces of what is added, before the serial loop. */
void bb_cuda_ask_added(bb_cuda *e);
uint32_t bb_cuda_pieces_bytes(const bb_tile *tile);
/* Are the pieces of an iteration of the grid's loops an odd number?  Then the next one's begin where these ended. */
bool bb_cuda_is_odd(const bb_cuda *e);
void bb_cuda_put_pieces(bb_cuda *e, const bb_tile_stmt *store);

static inline const bb_tile *bb_cuda_tile_of(const bb_cuda *e, uint32_t tile) {
  return &e->p->tile[tile];
}
/* A load by the copy engine, or on sm_80 by cp.async. */
static inline bool bb_cuda_is_copied(const bb_cuda *e, const bb_tile_stmt *stmt) {
  return stmt->kind == BB_TILE_LOAD && e->tile[stmt->result].ring;
}
/* What an element of a view is called in memory, and one of a tile in registers. */
const char *bb_cuda_type(bb_dtype dtype);
const char *bb_cuda_value_type(const bb_tile *tile);
/* One truth, which is no array of registers. */
static inline bool bb_cuda_is_truth(const bb_tile *tile) {
  return tile->dtype == BB_BOOL && !tile->rows && !tile->cols;
}
/* As functions of the device library name an element type of 16 bits. */
const char *bb_cuda_narrow(bb_dtype dtype);
/* The address of a shared tile's buffer. */
const char *bb_cuda_buffer(const bb_cuda *e, uint32_t tile);

/* emit_sm90_dot.c: a product of a group is begun; two, of one left operand, as one. */
void bb_cuda_async_dot(bb_cuda *e, const bb_tile_stmt *stmt);
void bb_cuda_both_dots(bb_cuda *e, const bb_tile_stmt *stmt, const bb_tile_stmt *second);
/* A warp's product; `then`: a line of code for when it has read the left operand, or NULL. */
void bb_cuda_warp_dot(bb_cuda *e, const bb_tile_stmt *stmt, const char *then);
/* The load of a right operand of such, to registers. */
void bb_cuda_load_right(bb_cuda *e, const bb_tile_stmt *load);
/* The wrappers of wgmma that the kernel, its code, calls. */
void bb_cuda_products(bb_cuda *e, const bb_buffer *kernel);

/* emit_sm90_beside.c: products of one left operand with two right ones, as one. */
void bb_cuda_find_beside(bb_cuda *e);
/* The product that one instruction may make together with `stmt`, a product; or NULL. */
const bb_tile_stmt *bb_cuda_second(const bb_cuda *e, const bb_tile_stmt *stmt);

/* emit_sm90_list.c: lists of the core, and their code in the warps that compute or in the
 * copier. */
typedef enum bb_cuda_place {
  BB_LIST_BEGIN,
  BB_LIST_STEADY,
  BB_LIST_JOIN,
  BB_LIST_END,
  BB_LIST_PLAIN
} bb_cuda_place;
/* Stretches of the serial loop that are one in the code; which of several is at hand, `part` says, as text. */
typedef struct bb_cuda_stretches {
  uint32_t first, count;
  const char *part;
} bb_cuda_stretches;
void bb_cuda_list_code(bb_cuda *e, bb_cuda_place place, bb_cuda_stretches stretches, bool copier);
/* May two stretches be one in the code?  They have the same statements, but for maps of what lies in registers. */
bool bb_cuda_may_be_one(const bb_cuda *e, uint32_t stretch, uint32_t other);
/* Behind a loop whose products lag: until they have ended, and what they read is released. */
void bb_cuda_end_lag(bb_cuda *e);
/* A list on its own: no products are in flight before or behind it. */
void bb_cuda_run_list(bb_cuda *e, const bb_cuda_list *list, bool copier);

/* emit_sm90_pairs.c */
void bb_cuda_find_mates(bb_cuda *e);
/* Is half of a mated tile half of its rows?  Else of its columns, lines of 64. */
bool bb_cuda_halves_rows(const bb_cuda *e, uint32_t tile);
/* The copy of a mated tile: of this block's half, or of both where it has no mate. */
void bb_cuda_load_half(bb_cuda *e, const bb_tile_stmt *stmt, const char *buffer,
                       const char *barrier);
/* A last argument of what releases a tile: ", mates" or nothing. */
const char *bb_cuda_mates(const bb_cuda *e, uint32_t tile);
/* Around the serial loop's begin, in the warps that compute: the first block of a pair passes over what comes for the second alone,
 * of tiles of a stage. */
void bb_cuda_pass_over(bb_cuda *e, uint32_t stage);
/* The loop's bounds for a copier, which goes through the iterations of both: how variables are called in them. */
const char **bb_cuda_names_of_both(bb_cuda *e);

/* emit_sm90_copiers.c: how many threads copy. */
void bb_cuda_find_copiers(bb_cuda *e);
/* Does the copier at hand load the tile?  Where no copier's code is written, as if there were one
 * for all. */
bool bb_cuda_copies(const bb_cuda *e, uint32_t tile);
/* The code of all of them. */
void bb_cuda_put_copiers(bb_cuda *e);

/* emit_sm90_marks.c: iterations that are marked. */
void bb_cuda_find_marks(bb_cuda *e);
/* A stretch of the serial loop as texts: the variable, where it begins and ends. */
typedef struct bb_cuda_stretch {
  const char *now, *first, *end;
} bb_cuda_stretch;
/* The line that says where the marks of its iterations begin, which the others ask for. */
void bb_cuda_put_marks(bb_cuda *e);
/* The first marked iteration of a stretch that is not `but` (NULL: any), and the next one; outside of the stretch: there is none. */
const char *bb_cuda_marked_first(const bb_cuda *e, const bb_cuda_stretch *stretch, const char *but);
const char *bb_cuda_marked_next(const bb_cuda *e, const bb_cuda_stretch *stretch);
/* Of a loop that may begin anywhere: where it does, how that is called, and the code that finds out. */
const char *bb_cuda_begin_name(const bb_cuda *e);
void bb_cuda_marked_begin(bb_cuda *e);

/* emit_sm90_early.c: whether a kernel may run ahead; where it begins, where a role does, and where one writes */
bool bb_cuda_may_run_ahead(const bb_cuda *e, const bb_tile_program *whole);
void bb_cuda_put_ahead(bb_cuda *e);
void bb_cuda_put_begin(bb_cuda *e);
void bb_cuda_put_write(bb_cuda *e);
/* emit_sm90_early.c: in the copier, before its loops: loads that need not wait for earlier
 * launches, and the wait. */
void bb_cuda_early(bb_cuda *e);

/* emit_sm90_core.c: the loops of a role. */
void bb_cuda_role(bb_cuda *e, bool copier);
/* How variables are called in a role: the grid's are members of `place`, the serial loop's is
 * `serial`. */
const char **bb_cuda_names_in(bb_cuda *e, const char *place, const char *serial);
/* How many iterations a loop has. */
const char *bb_cuda_trips(const bb_cuda *e, const bb_tile_loop *loop, const char *const *names);
/* How many iterations of the grid's loops load the same, in extents called as in the program. */
const char *bb_cuda_reads(const bb_cuda *e, const bb_tile_stmt *load);
/* How many iterations the grid's loops have, in extents called as `names` say. */
const char *bb_cuda_tiles(bb_cuda *e, const char **names);
/* How many blocks a launch has in a pair, 1 or 2, in extents called as `names` say. */
const char *bb_cuda_pair_size(bb_cuda *e, const char **names);
void bb_cuda_place_function(bb_cuda *e);

/* emit_sm80.c: what is said otherwise there.  All refuse what has no form on sm_80. */
void bb_cuda80_check(bb_cuda *e);
void bb_cuda80_begin(
    bb_cuda *e); /* copies of the list before the loop, and of its first iterations */
void bb_cuda80_turn(
    bb_cuda *e); /* an iteration's begin: its copies are there, a later one's are asked for */
bool bb_cuda80_turns(const bb_cuda *e, uint32_t tile); /* is it loaded in the serial loop? */
void bb_cuda80_arrived(bb_cuda *e, uint32_t tile);
void bb_cuda80_copies(bb_cuda *e, const bb_cuda_list *list); /* of the list behind the loop */
void bb_cuda80_dot(bb_cuda *e, const bb_tile_stmt *stmt);
void bb_cuda80_put(bb_cuda *e, const bb_tile_stmt *store);

/* emit_sm90_ending.c: what ends a block, part by part. */
void bb_cuda_find_ending(bb_cuda *e);
void bb_cuda_put_ending(bb_cuda *e);

/* emit_sm90_merge.c: behind a loop that is spread over warps or a cluster. */
void bb_cuda_merge(bb_cuda *e, const bb_tile_loop *loop);

/* emit_sm90_share.c: the same and what follows, where all threads can share that. */
bool bb_cuda_is_shared(const bb_cuda *e);
void bb_cuda_share(bb_cuda *e);
uint32_t bb_cuda_parts_in_memory(const bb_cuda *e); /* that a block holds at once */
uint32_t bb_cuda_part_bytes(bb_cuda *e);            /* that a part takes; 0: nothing is merged */

/* emit_sm90_push.c: do blocks of a cluster push their parts to each other? */
bool bb_cuda_pushes(const bb_cuda *e);
void bb_cuda_place_inbox(bb_cuda *e);
/* How many bytes come, said to the barrier that counts them. */
void bb_cuda_expect_parts(bb_cuda *e);

#endif
