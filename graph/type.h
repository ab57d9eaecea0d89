/* type.h - dims, items and types: what a value of a block program looks like.
 *
 * A dim is a class of split, not a loop variable: the query loop and the key loop of self-
 * attention both run over the same dim.  A *blocked* dim is cut into blocks; its index range
 * inside one block is an axis of an item.  A dim that is not blocked is *enumerated*: a list over
 * it has one element per index (batch, heads), and it is never an item axis.
 *
 * An item is a block (row and col axis), a row vector `rows` (one value per row: the result of
 * row_sum), a col vector (one value per column: a bias) or a scalar.  A type is a nest of lists,
 * outermost first, over an item.  Types are interned in their program: equal types are one
 * pointer.  (Blockbuster, section 2.1.)
 */
#ifndef BB_GRAPH_TYPE_H
#define BB_GRAPH_TYPE_H

#include "context.h"

enum {
#define BB_DTYPE(id, name, bytes, kind) +1
  BB_DTYPE_COUNT = 0
#include "dtype.def"
#undef BB_DTYPE
};

/* bb_dtype: blockbuster_rt.h */
const char *bb_dtype_name(bb_dtype dtype);
uint32_t bb_dtype_bytes(bb_dtype dtype);
bool bb_dtype_is_float(bb_dtype dtype);
/* The largest number of a float type. */
double bb_dtype_largest(bb_dtype dtype);
/* Has a float type the exponents of all numbers of another type, so that they lose nothing but digits? */
bool bb_dtype_has_range(bb_dtype dtype, bb_dtype of);
/* Held by arrays alone: such elements are moved, chosen and cast, and computed with as wider
 * ones. */
bool bb_dtype_is_stored(bb_dtype dtype);
/* A number as an element of a stored type: toward zero, its low bits; NaN gives 0. */
double bb_dtype_wrap(bb_dtype dtype, double value);
bool bb_dtype_parse(const char *name, size_t length, bb_dtype *dtype);

/* An index into its program's table of dims. */
typedef uint32_t bb_dim;
#define BB_NO_DIM UINT32_MAX

/* An extent is a product: a positive number times symbols (run-time extents).  Interned; an extent
 * that is no product (a sum of lengths) is a symbol of its own whose name says what it is. */
typedef struct bb_extent {
  int64_t factor;         /* >= 0; 0 only for an empty axis, then count == 0 */
  uint32_t count;         /* symbols, sorted by index */
  const uint32_t *symbol; /* indices into the program's table of symbols */
} bb_extent;

/* An extent that is a number, or a run-time symbol, which is added if it is new.  Equal extents of a program
 * are one pointer. */
const bb_extent *bb_extent_number(bb_program *program, int64_t value);
const bb_extent *bb_extent_symbol(bb_program *program, const char *name);
/* The index of a symbol (an extent or a run-time scalar) by name, added if new. */
uint32_t bb_symbol_index(bb_program *program, const char *name);
/* The same, UINT32_MAX if there is none. */
uint32_t bb_symbol_find(const bb_program *program, const char *name);
/* Whether its name is an expression of others, which it follows from. */
bool bb_symbol_follows(const bb_program *program, uint32_t symbol);
const bb_extent *bb_extent_multiply(bb_program *program, const bb_extent *a, const bb_extent *b);
/* a / b if that is exact for every value of the symbols, else NULL. */
const bb_extent *bb_extent_divide(bb_program *program, const bb_extent *a, const bb_extent *b);
/* The number, or -1 when it depends on symbols. */
int64_t bb_extent_value(const bb_extent *extent);
static inline bool bb_extent_is_one(const bb_extent *extent) {
  return bb_extent_value(extent) == 1;
}
/* The number once symbols have values (symbol_value[index]); fails the context on overflow. */
int64_t bb_extent_bind(bb_program *program, const bb_extent *extent, const int64_t *symbol_value);

typedef struct bb_dim_info {
  const char *name;        /* unique in the program, [A-Za-z_][A-Za-z0-9_]*; upper case by habit */
  const bb_extent *extent; /* elements along the dim */
  bool blocked;            /* cut into blocks; else enumerated, one index per list element */
} bb_dim_info;

/* Adds a dim; a name already taken gets a number appended.  name may be NULL. */
bb_dim bb_dim_add(bb_program *program, const char *name, const bb_extent *extent, bool blocked);
bb_dim bb_dim_find(const bb_program *program, const char *name, size_t length);
const bb_dim_info *bb_dim_get(const bb_program *program, bb_dim dim);

typedef enum bb_axis { BB_AXIS_NONE, BB_AXIS_ROW, BB_AXIS_COL } bb_axis;

/* row == BB_NO_DIM and col == BB_NO_DIM: a scalar; only one of them: a vector. */
typedef struct bb_item {
  bb_dtype dtype;
  bb_dim row, col;
} bb_item;

/* One list.  axis says which axis of the item this list chunks; NONE: an enumerated dim, or a
 * list of partial results along a dim that the item has no axis for (the terms of a sum). */
typedef struct bb_level {
  bb_dim dim;
  bb_axis axis;
} bb_level;

static inline bool bb_level_equal(bb_level a, bb_level b) {
  return a.dim == b.dim && a.axis == b.axis;
}

typedef struct bb_type {
  bb_item item;
  uint32_t rank;         /* number of lists; 0: unbuffered */
  const bb_level *level; /* outermost first */
} bb_type;

/* Equal types of a program are one pointer.  The levels are copied. */
const bb_type *bb_type_make(bb_program *program, bb_item item, uint32_t rank,
                            const bb_level *level);
/* The element of the list `level`: the type without that level. */
const bb_type *bb_type_element(bb_program *program, const bb_type *type, uint32_t level);
/* A list of `element`, its new level outermost. */
const bb_type *bb_type_list(bb_program *program, const bb_type *element, bb_level level);

#endif
