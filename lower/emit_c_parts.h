/* emit_c_parts.h - what the parts of the C emitter share. */
#ifndef BB_LOWER_EMIT_C_PARTS_H
#define BB_LOWER_EMIT_C_PARTS_H

#include "bounds.h"
#include "emit_c.h"

/* How a tile is held in C. */
typedef struct bb_c_tile {
  bool used;      /* in the nest at hand */
  bool window;    /* a pointer into a view where the block is whole, else into memory of its own */
  bool panels;    /* a pointer to a block of panels, always */
  bool packable;  /* it may become that, if the layout wants it so */
  bool narrow;    /* held as it is stored, in floats of 16 bits, which products widen */
  bool turned;    /* rows lie side by side: element (r, c) at c * pitch + r, else r * pitch + c */
  bool reused;    /* a product reads it again for each of several vectors */
  bool bundled;   /* products take it from a copy, its bundles (device/cpu_product.h) */
  bool columns;   /* of products by tiles it is b */
  bool deep_rows; /* those contract its rows */
  bool by_tiles;  /* such a product reads it, as the two before say */
  bool taken;     /* another tile takes its memory over */
  bool carried;   /* in the nest at hand it comes from the nest before, or is for the next */
  uint32_t over;  /* it lies in the memory of that tile; BB_NONE: in its own */
  uint32_t pitch; /* of its own memory */
  uint32_t writers, readers; /* statements */
  double loads;              /* how often it is loaded */
  double packs;   /* for tiles, for each product that reads it; less than 1: when loaded */
  int64_t offset; /* of its own memory, in that of the task */
  int64_t copy;   /* likewise of its bundles, or tiles */
} bb_c_tile;

/* Columns of a panel of f32 (device/cpu_product.h), as BB_VECTORS says. */
uint32_t bb_c_panel(uint32_t vector_bytes);

/* Classes of axes: 2 t is tile t's rows, 2 t + 1 its columns. */
typedef struct bb_c_axes {
  uint32_t *parent;
  bool *together; /* by axis that stands for a class: its elements know each other */
} bb_c_axes;
bb_c_axes bb_c_axes_find(bb_arena *arena, const bb_tile_program *program);
/* The axis that stands for the class, and how many elements an axis has; 0: the tile lacks it. */
uint32_t bb_c_axis(const bb_c_axes *axes, uint32_t axis);
void bb_c_axes_unite(bb_c_axes *axes, uint32_t a, uint32_t b);
uint32_t bb_c_axis_size(const bb_tile_program *program, uint32_t axis);

/* Where what is there of a class of axes begins, and the extent at which it ends. */
typedef struct bb_c_live {
  bb_tile_index start, extent; /* NULL: nothing is loaded or stored along it */
  bool never;                  /* several places, or one that is not always known */
  bool is;                     /* statements leave out what is beyond */
} bb_c_live;

/* A loop's body runs for one strip of some blocks after the other.  variable: where it begins;
 * BB_NONE: no block is cut. */
typedef struct bb_c_strips {
  uint32_t variable, size, count;
  uint32_t tiles;
  /* by tile, of so many: there is one for each strip, since several loops over strips have it */
  bool *passes;
  bb_tile_ends ends; /* in a strip; .tile BB_NONE: no block has an end in it */
} bb_c_strips;
const bb_tile_program *bb_c_strip(bb_arena *arena, const bb_tile_program *program,
                                  uint32_t vector_bytes, bb_c_strips *strips);

/* Neighbouring statements of the program's body that run as one: a loop that is spread, or what
 * stands between two of them.  A loop may become two nests. */
typedef struct bb_c_nest {
  uint32_t first, count;
  uint32_t loops; /* spread, one inside the other */
  const bb_tile_loop *loop[BB_TILE_OPERANDS];
  const bb_tile_body *body; /* what a task runs */
  uint32_t carried;         /* tiles that pass from a nest to the next, which has one loop more */
  const uint32_t *carry;
  bool takes;      /* it is that next one */
  uint32_t shared; /* of two nests of one loop: the loops that both have, 0 of others.  Lists that
                    * pass between them are there for each iteration of those */
} bb_c_nest;

/* A statement of a body. */
typedef struct bb_c_here {
  const bb_tile_body *body; /* NULL: it is not known */
  uint32_t at, stretch;     /* BB_NONE: the loop around it has one stretch */
} bb_c_here;

typedef struct bb_c {
  bb_buffer *out;
  const bb_tile_program *p;
  const char *name;
  const char *target; /* what refusals name; NULL: the CPU */
  bool exact;
  bool slow_division;    /* a dozen operations */
  uint32_t vector_bytes; /* of the processor that it is for */
  bool tiles;            /* likewise: it has units for products of tiles, and they may be used */
  bb_c_tile *tile;
  bb_c_strips strips;
  bb_c_axes axes;
  bb_c_live *live;         /* by axis that stands for a class */
  int64_t bytes;           /* of tiles, in a task's memory */
  int64_t panel;           /* where products keep a panel of an operand */
  uint32_t *home;          /* by view: the nest that alone uses it, BB_NONE: several */
  const bb_c_nest **apart; /* by view: the first of two nests that alone use it, NULL: others */
  uint32_t nest;           /* the one being emitted */
  bool *view;              /* by view: statements of that nest touch it */
  bb_c_here here;          /* what is being emitted */
  bool ends;               /* in a strip in which strips.ends hold, whose columns are `live` */
  /* Two strips at once (emit_c_pairs.c).  pair: they are what is being emitted; twins: tiles that there were before those of second strips,
   * 0: there are none; by tile of those: tile + twins is the same of the second strip. */
  bool pair, *twin;
  uint32_t twins;
  uint32_t indent;
  uint32_t temporaries;
} bb_c;

uint32_t bb_c_nests(const bb_c *c, bb_c_nest **nests);

_Noreturn void bb_c_refuse(const bb_c *c, const char *what);
void bb_c_line(bb_c *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* "float": of an element in a tile, and in a view; "f32": of functions of the library. */
const char *bb_c_element(const bb_c *c, bb_dtype dtype);
const char *bb_c_stored(const bb_c *c, bb_dtype dtype);
const char *bb_c_suffix(const bb_c *c, bb_dtype dtype);
/* A float that has 16 bits in memory, and 32 where it is computed with? */
bool bb_c_is_narrow(const bb_c *c, bb_dtype dtype);
/* "float": of an element of a tile as it is held. */
const char *bb_c_held(const bb_c *c, uint32_t tile);
/* Of loads and stores, which convert. */
const char *bb_c_memory_suffix(const bb_c *c, bb_dtype dtype);

/* Elements along a line that elementwise loops may work on: whole vectors, of which the end is not
 * asked for. */
uint32_t bb_c_whole(uint32_t along);

/* Declares, before a function's code, the extents that it names: from[0], ... */
void bb_c_declare_extents(const bb_c *c, bb_buffer *code, const char *from);

/* An index as a C expression. */
const char *bb_c_index(bb_c *c, bb_tile_index index);
/* Element (r, c) of a tile: `r` and `col` are C expressions. */
const char *bb_c_at(bb_c *c, uint32_t tile, const char *r, const char *col);
/* An expression over operands[] (C expressions); declares temporaries where values are used twice.
 * row, col: C expressions of the coordinates. */
const char *bb_c_expression(bb_c *c, const bb_expr *expr, const char *const *operand,
                            const char *row, const char *col);
/* As that: what an exp is taken of. */
const char *bb_c_exponent(bb_c *c, const bb_expr *expr, const char *const *operand, const char *row,
                          const char *col);
/* Is there one of a tile for each strip?  And what one takes in memory, in bytes and in
 * elements. */
bool bb_c_passes(const bb_c *c, uint32_t tile);
int64_t bb_c_tile_bytes(const bb_c *c, uint32_t tile);
int64_t bb_c_tile_elements(const bb_c *c, uint32_t tile);
/* Is the argument of an exp in the statement at hand at most 0, but for rounding, or NaN? */
bool bb_c_is_below(const bb_c *c, const bb_expr *exp);
bool bb_c_runs_in(const bb_tile_stmt *stmt, uint32_t stretch);
void bb_c_body(bb_c *c, const bb_tile_body *body);
void bb_c_body_in(bb_c *c, const bb_tile_body *body, uint32_t stretch);
/* What a WHEN asks. */
const char *bb_c_condition(bb_c *c, const bb_tile_stmt *stmt);
/* The line that opens one stretch of a loop. */
void bb_c_loop_head(bb_c *c, const bb_tile_loop *loop, uint32_t stretch);
void bb_c_load(bb_c *c, const bb_tile_stmt *load);
void bb_c_store(bb_c *c, const bb_tile_stmt *store);
void bb_c_loop(bb_c *c, const bb_tile_loop *loop);
/* Of a load or a store: whether its block is there as a whole, as a C condition, NULL: always; the same of axes that are not live
 * (no padded view's); the address of element (r, c); how many rows of it are there.  And the window that a load gives, where it is
 * whole. */
const char *bb_c_is_whole(bb_c *c, const bb_tile_stmt *move);
const char *bb_c_is_whole_but_live(bb_c *c, const bb_tile_stmt *move);
const char *bb_c_place(bb_c *c, const bb_tile_stmt *move, const char *r, const char *col);
const char *bb_c_rows_there(bb_c *c, const bb_tile_stmt *move);
void bb_c_point(bb_c *c, const bb_tile_stmt *load);
/* Are the rows of a load's or store's block those of two ranges that do not follow each other in memory?  Then it is done piece by
 * piece, and there is no window, nor one address of element (r, c). */
bool bb_c_is_in_pieces(const bb_c *c, const bb_tile_stmt *move);
/* How many pieces; 1: it is not done so.  And whether number y is inside the extents, which y, in the code, counts. */
uint32_t bb_c_pieces(bb_c *c, const bb_tile_stmt *move);
const char *bb_c_is_reached(bb_c *c, const bb_tile_stmt *move);
/* A loop whose sums stay in registers, with the statements that these begin with and some that follow: how many from the loop on;
 * 0: it is no such loop.  And whether a statement is what a sum of one begins with. */
uint32_t bb_c_lanes(bb_c *c, const bb_tile_body *body, uint32_t at);
bool bb_c_starts_lanes(bb_c *c, const bb_tile_body *body, uint32_t at);
/* MAP and ANY. */
void bb_c_map(bb_c *c, const bb_tile_stmt *stmt);
/* A MAP of so many rows, whole ones, whose element (r, c) goes to `to`. */
void bb_c_map_to(bb_c *c, const bb_tile_stmt *stmt, const char *to, const char *rows);
/* A MAP and the store of its result, which is the next statement, in one; false: they are no such pair. */
bool bb_c_map_and_store(bb_c *c, const bb_tile_stmt *made, const bb_tile_stmt *store);
/* A MAP and the fold of its result, which is the next statement, in one; false: they are no such
 * pair. */
bool bb_c_map_and_fold(bb_c *c, const bb_tile_stmt *stmt, const bb_tile_stmt *fold);
/* The same in units, which may run one by one beside something else; how many, a C expression; what stands before them; and the one
 * whose number is `unit`, which is for columns up to bb_c_unit_end(), another, in the order of their numbers. */
bool bb_c_has_units(const bb_c *c, const bb_tile_stmt *stmt, const bb_tile_stmt *fold);
const char *bb_c_units(bb_c *c, const bb_tile_stmt *stmt);
void bb_c_begin_units(bb_c *c, const bb_tile_stmt *fold);
void bb_c_put_unit(bb_c *c, const bb_tile_stmt *stmt, const bb_tile_stmt *fold);
const char *bb_c_unit_end(bb_c *c, const bb_tile_stmt *stmt, const char *unit);
/* Has a MAP an exp that the device library has vectors of? */
bool bb_c_has_exp(const bb_c *c, const bb_tile_stmt *stmt);
/* "sum": of functions of the library. */
const char *bb_c_monoid(const bb_c *c, const bb_monoid *monoid);

/* Finds what statements may leave out: c->axes, c->live. */
void bb_c_find_live(bb_c *c);
/* Do statements leave out what is beyond an extent along the axis?  And how many elements are
 * there, as a C expression; of a tile that lacks the axis: 1.  whole: in whole vectors, as
 * bb_c_whole(). */
bool bb_c_is_live(const bb_c *c, uint32_t tile, bb_axis axis);
/* Do masks, or an extent, leave out some along it in the strip at hand? */
bool bb_c_has_end(const bb_c *c, uint32_t tile, bb_axis axis);
const char *bb_c_count(bb_c *c, uint32_t tile, bb_axis axis);
/* Of an axis that strips are along, which is live, in the strip at hand or the next one; NULL: there is none. */
const char *bb_c_count_in_strip(bb_c *c, bool next);
const char *bb_c_whole_count(bb_c *c, uint32_t tile, bb_axis axis);

/* Forgets strips.ends if some statement, as tiles lie, cannot leave out what is behind them. */
void bb_c_settle_ends(bb_c *c);
/* Before the body of a loop over strips: how many columns of strips.ends.tile are left there, as a
 * C expression, and c->ends, until the body ends; NULL: all. */
const char *bb_c_begin_ends(bb_c *c, const bb_tile_body *body, uint32_t stretch);
/* The same of the next strip, whose columns are `next`: of two at once. */
const char *bb_c_next_end(bb_c *c);
/* How many columns of a product's left operand (as the device library has them) its first row takes, in the strip at hand, each next
 * row taking one more at most; NULL: all, up to the end. */
const char *bb_c_reach(bb_c *c, const bb_tile_stmt *dot);

/* Has it several rows and several columns?  Others lie the same way, turned or not. */
static inline bool bb_c_may_turn(const bb_tile *tile) {
  return tile->rows > 1 && tile->cols > 1;
}
/* Decides how tiles lie in memory: turned, pitch, window of c->tile[].  See emit_c_layout.c. */
void bb_c_lay_out(bb_c *c);
/* Decides whose memory tiles take over. */
void bb_c_share(bb_c *c);
/* The tile whose memory a tile lies in. */
uint32_t bb_c_owner(const bb_c *c, uint32_t tile);
/* Elements that each sum of a product runs over. */
uint32_t bb_c_depth(const bb_tile_program *program, const bb_tile_stmt *dot);
/* fresh: the result holds nothing yet that is to be added to. */
void bb_c_dot(bb_c *c, const bb_tile_stmt *dot, bool fresh);
/* May other work run beside a product (device/cpu_beside.h)?  And the line that begins one with so many units of it, and so many of work
 * on its rows. */
bool bb_c_may_be_beside(const bb_c *c, const bb_tile_stmt *dot);
void bb_c_begin_beside(bb_c *c, const bb_tile_stmt *dot, bool fresh, const char *units,
                       const char *followers);
/* Gives tiles of strips their twins, once all lie. */
void bb_c_find_twins(bb_c *c);
void bb_c_loop_over_strips(bb_c *c, const bb_tile_loop *loop, uint32_t stretch);
/* A product with a sweep behind it that runs beside, or one over what it makes, or both, in one; the last of their statements, or
 * `at`: they are no such. */
uint32_t bb_c_dot_and_sweeps(bb_c *c, const bb_tile_body *body, uint32_t at, uint32_t stretch,
                             bool fresh);
/* Between neighbouring rows of a tile as it is held (of a turned one: neighbouring columns); between rows; columns. */
const char *bb_c_pitch(const bb_c *c, uint32_t tile);
const char *bb_c_row_stride(const bb_c *c, uint32_t tile);
const char *bb_c_col_stride(const bb_c *c, uint32_t tile);

/* How often a loop's body runs, or about so. */
double bb_c_trips(const bb_tile_loop *loop);
/* Before tiles are laid out: finds .packs of each, as if all products were made by tiles. */
void bb_c_count_packs(bb_c *c);
/* What a product takes by tiles, in multiply-adds by vectors; INFINITY: they are not for it.  turned: so lie the result
 * and both operands. */
double bb_c_price_of_tiles(const bb_c *c, const bb_tile_stmt *dot, bool turned,
                           const bool lies_turned[2]);
/* After it: which operands are packed where they are loaded. */
void bb_c_choose_ahead(bb_c *c);
bool bb_c_is_ahead(const bb_c *c, uint32_t tile);
int64_t bb_c_ahead_bytes(const bb_c *c, uint32_t tile);
/* Is a product made by tiles? */
bool bb_c_is_by_tiles(const bb_c *c, const bb_tile_stmt *dot);
/* Where an operand is packed, behind the load of it. */
void bb_c_pack_ahead(bb_c *c, uint32_t tile);

#endif
