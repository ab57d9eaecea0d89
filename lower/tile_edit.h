/* tile_edit.h - changing tile programs in place: walks, uses, and expressions that name tiles.
 *
 * A statement's expression counts its operands; to move expressions between statements they are
 * `named`: ARG BB_TILE_NAMED + t is tile t, the rest as in the statement.
 */
#ifndef BB_LOWER_TILE_EDIT_H
#define BB_LOWER_TILE_EDIT_H

#include "tile.h"

enum { BB_TILE_NAMED = 4096 };

typedef void bb_tile_visit(void *user, bb_tile_body *body, uint32_t at);
/* Every statement, those inside of one after it. */
void bb_tile_walk(bb_tile_body *body, bb_tile_visit *visit, void *user);

/* A statement that stands nowhere yet, and a copy of one with all that is inside. */
bb_tile_stmt *bb_tile_stmt_new(bb_tile_program *program, bb_tile_kind kind);
bb_tile_stmt *bb_tile_copy(bb_tile_program *program, const bb_tile_stmt *stmt);
/* At the end of a body, and before the statement that is at a place now. */
void bb_tile_push(bb_tile_program *program, bb_tile_body *body, bb_tile_stmt *stmt);
void bb_tile_insert(bb_tile_program *program, bb_tile_body *body, uint32_t at, bb_tile_stmt *stmt);
void bb_tile_remove(bb_tile_body *body, uint32_t at);

/* Of the statement and all inside it.  An accumulating product reads its result. */
bool bb_tile_reads(const bb_tile_stmt *stmt, uint32_t tile);
bool bb_tile_writes(const bb_tile_stmt *stmt, uint32_t tile);
static inline bool bb_tile_touches(const bb_tile_stmt *stmt, uint32_t tile) {
  return bb_tile_reads(stmt, tile) || bb_tile_writes(stmt, tile);
}
/* Statements of a body and all inside that write or read a tile; a LOOP reads what it merges. */
uint32_t bb_tile_writers(bb_tile_body *body, uint32_t tile);
uint32_t bb_tile_readers(bb_tile_body *body, uint32_t tile);
/* Of a body's own statements. */
bool bb_tile_has_product(const bb_tile_body *body);
/* Does a body load within a loop over single elements, as of a window, that is no task's?  A thread that does waits for memory in
 * each iteration. */
bool bb_tile_waits(const bb_tile_body *body);
/* Everywhere in the body. */
void bb_tile_rename(bb_tile_body *body, uint32_t from, uint32_t to);
/* Removes statements whose results nobody reads, and loops that have no others. */
void bb_tile_drop_dead(bb_tile_program *program);

/* The expression of a MAP or ANY, named; and the named expression that is a tile. */
const bb_expr *bb_tile_named(bb_tile_program *program, const bb_tile_stmt *stmt);
const bb_expr *bb_tile_name(bb_tile_program *program, uint32_t tile);
/* Gives a MAP or ANY a named expression. */
void bb_tile_set(bb_tile_program *program, bb_tile_stmt *stmt, const bb_expr *named);
/* A MAP on a tile of its own in registers, rows x cols (0: none), before the statement that is at a place now: its name. */
const bb_expr *bb_tile_map_before(bb_tile_program *program, bb_tile_body *body, uint32_t at,
                                  uint32_t rows, uint32_t cols, const bb_expr *named);
/* A named expression with another in the place of a tile; and does it name the tile at all? */
const bb_expr *bb_tile_replace(bb_tile_program *program, const bb_expr *named, uint32_t tile,
                               const bb_expr *with);
bool bb_tile_names(const bb_expr *named, uint32_t tile);
/* Is a named expression the tile, and nothing else? */
static inline bool bb_tile_is_name(const bb_expr *named, uint32_t tile) {
  return named->op == BB_X_ARG && named->index == BB_TILE_NAMED + tile;
}

static inline bool bb_tile_is_any_name(const bb_expr *named) {
  return named->op == BB_X_ARG && named->index >= BB_TILE_NAMED;
}
static inline uint32_t bb_tile_of_name(const bb_expr *name) {
  return name->index - BB_TILE_NAMED;
}

/* Does where a load's block lies depend on a variable? */
bool bb_tile_load_varies(const bb_tile_program *program, const bb_tile_stmt *load,
                         uint32_t variable);
static inline bool bb_tile_have_one_form(const bb_tile *a, const bb_tile *b) {
  return a->rows == b->rows && a->cols == b->cols && a->dtype == b->dtype;
}

/* A MAP that gives its operand as it is; the operand. */
bool bb_tile_is_copy(const bb_tile_stmt *stmt);
/* A MAP to a constant; the number. */
bool bb_tile_is_constant(const bb_tile_stmt *stmt, double *value);

/* tile_live.c.  The greatest sum of sizes, by tile, of what is needed at once in a body that runs once; a loop in it needs all that
 * it touches at the same time. */
uint32_t bb_tile_most_live(const bb_tile_program *program, const bb_tile_body *body,
                           const uint32_t *size);
/* tile_live.c.  The greatest sum of sizes, by tile, of what a body loads, or a loop within it. */
uint32_t bb_tile_most_loaded(const bb_tile_body *body, const uint32_t *size);
/* tile_live.c.  A vector, or a single element, that only what stands before statement `at` needs: in registers it makes room for the
 * loop there. */
bool bb_tile_is_early_vector(const bb_tile_program *program, const bb_tile_body *body, uint32_t at,
                             uint32_t tile);

/* A new tile like another, of a type. */
uint32_t bb_tile_like(bb_tile_program *program, uint32_t tile, bb_dtype dtype);
/* An index as an expression of tiles has it, where variables are numbered behind operands. */
const bb_expr *bb_tile_index_in_map(const bb_tile_program *program, bb_tile_index index);
/* A variable's value, an index, in all indices and expressions of a body. */
void bb_tile_fix(bb_tile_program *program, bb_tile_body *body, uint32_t variable,
                 bb_tile_index value);
bb_tile_index bb_tile_index_replace(const bb_tile_program *program, bb_tile_index index,
                                    uint32_t variable, bb_tile_index value);
/* One more extent, behind those there are: loops' variables are numbered one higher from now on. */
uint32_t bb_tile_add_extent(bb_tile_program *program, const char *name);

/* scales.c: constant factors of values that are only compared, folded and subtracted, behind that.  sparing: of blocks, and only where no
 * more elements of such are multiplied than before. */
void bb_tile_scales(bb_tile_program *program, bool sparing);
/* widen.c: tiles of 16 bits become f32, but for those that are loaded.  strict: what the program rounds to 16 bits is
 * rounded all the same. */
void bb_tile_widen(bb_tile_program *program, bool strict);
/* The same of those that lead to memory alone. */
void bb_tile_widen_results(bb_tile_program *program);

#endif
