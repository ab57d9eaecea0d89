/* expr.h - scalar expressions: what an elementwise op does to each element.
 *
 * An expression is a hash-consed tree of its program: equal expressions are one pointer.  Its
 * leaves are constants, arguments (the op's operands), run-time scalars and coordinates.  A
 * coordinate names an axis of the op's own item or an enclosing map by depth, never a dim, so
 * that a mask means the same wherever it is moved.
 */
#ifndef BB_GRAPH_EXPR_H
#define BB_GRAPH_EXPR_H

#include "type.h"

typedef enum bb_expr_op {
#define BB_EXPR(id, name, arity, cost, text) BB_X_##id,
#include "expr.def"
#undef BB_EXPR
  BB_X_COUNT
} bb_expr_op;

/* Where a coordinate points.
 * In a block program: BB_COORD_ROW and BB_COORD_COL are the global index along the item's axis
 * (block start plus place in the block); BB_COORD_MAP + k is the iteration index of the k-th
 * enclosing map, 0 the innermost, over an enumerated dim.
 * In an array program: BB_COORD_AXIS + k is the index along axis k of the op's output, counted from
 * the last axis (k = 0). */
enum { BB_COORD_ROW = 0, BB_COORD_COL = 1, BB_COORD_MAP = 16, BB_COORD_AXIS = 256 };

typedef struct bb_expr {
  bb_expr_op op;
  bb_dtype dtype; /* of the value; f32 also stands for "the working precision" */
  uint32_t id;    /* creation number: children are smaller */
  uint32_t index; /* ARG: operand; COORD: see above; SYMBOL: index of a run-time scalar */
  bb_dim dim;     /* EXTENT: the elements along this dim */
  double number;  /* CONST; integers and bools are exact up to 2^53 */
  const struct bb_expr *a[3];
  /* Facts, filled when the expression is made. */
  uint64_t args;      /* bit i: ARG i occurs; bit 63 also for every operand above */
  uint32_t arg_count; /* 1 + the largest ARG, 0 if none */
  uint32_t depth;     /* of the tree; a leaf has 1 */
  bool coord;         /* a COORD occurs */
  double cost;        /* sum of the costs in expr.def over the tree; repeated operands once */
} bb_expr;

/* Deeper trees are refused (BB_ERROR_INPUT), so that walks may recurse.  What joins nodes of a program leaves them apart
 * where they would be deeper than BB_EXPR_JOINED together: a chain of any length is cut into nodes, each step of joining
 * costs no more than that, and algebra on what was joined has room. */
enum { BB_EXPR_DEPTH = 1000, BB_EXPR_JOINED = 200 };

/* Leaves.  EXTENT: a dim whose extent is a number gives that number. */
const bb_expr *bb_expr_const(bb_program *program, bb_dtype dtype, double value);
const bb_expr *bb_expr_arg(bb_program *program, bb_dtype dtype, uint32_t operand);
const bb_expr *bb_expr_coord(bb_program *program, uint32_t which);
const bb_expr *bb_expr_extent(bb_program *program, bb_dim dim);
/* The same as a name where it is a number too: for algebra, never in a program. */
const bb_expr *bb_expr_extent_name(bb_program *program, bb_dim dim);
const bb_expr *bb_expr_symbol(bb_program *program, uint32_t symbol);
const bb_expr *bb_expr_cast(bb_program *program, bb_dtype dtype, const bb_expr *a);

/* Any operator by arity (unused operands NULL).  Folds constants and applies the identities that
 * are exact in floating point (x*1, x/1, --x, a*(1/b) is left alone); the result's dtype follows
 * from the operands. */
const bb_expr *bb_expr_make(bb_program *program, bb_expr_op op, const bb_expr *a, const bb_expr *b,
                            const bb_expr *c);

/* The expression with ARG i replaced by with[i] (NULL: kept), and if map is not NULL, remaining
 * arguments renumbered by map[i]. */
const bb_expr *bb_expr_substitute(bb_program *program, const bb_expr *expr, uint32_t count,
                                  const bb_expr *const *with);
/* Rebuilds bottom-up: leaf(user, leaf) gives each leaf's replacement. */
typedef const bb_expr *bb_expr_leaf(void *user, const bb_expr *leaf);
const bb_expr *bb_expr_map_leaves(bb_program *program, const bb_expr *expr, bb_expr_leaf *leaf,
                                  void *user);
/* With numbers for the names of extents that are numbers. */
const bb_expr *bb_expr_without_names(bb_program *program, const bb_expr *expr);

/* Facts. */
static inline bool bb_expr_is_number(const bb_expr *expr, double value) {
  return expr->op == BB_X_CONST && expr->number == value;
}
static inline bool bb_expr_may_join(const bb_expr *outer, const bb_expr *inner) {
  return inner->depth == 1 || outer->depth + inner->depth <= BB_EXPR_JOINED;
}
bool bb_expr_uses_arg(const bb_expr *expr, uint32_t operand);
bool bb_expr_uses_coord(const bb_expr *expr);
uint32_t bb_expr_arg_count(const bb_expr *expr);
double bb_expr_cost(const bb_expr *expr);
/* The same of what a kernel computes: each distinct part once, wherever it stands. */
double bb_expr_distinct_cost(bb_context *ctx, const bb_expr *expr);

/* The distinct nodes below and including `expr`, children first; count is set. The array is in
 * `scratch`; expr itself is the last. */
const bb_expr **bb_expr_postorder(bb_arena *scratch, const bb_expr *expr, uint32_t *count);

/* Makes an expression anew, operands first, each distinct node once: `step` says what becomes of a
 * node whose operands have become `a`. */
typedef const bb_expr *bb_expr_step(void *user, bb_program *program, const bb_expr *node,
                                    const bb_expr *const a[3]);
const bb_expr *bb_expr_rewrite(bb_program *program, const bb_expr *expr, bb_expr_step *step,
                               void *user);
/* The operator of `node` on the operands `a`; the node itself if they are its own. */
const bb_expr *bb_expr_rebuild(bb_program *program, const bb_expr *node, const bb_expr *const a[3]);

/* What evaluation needs besides the arguments. */
typedef struct bb_expr_env {
  const double *arg;
  double coord_row, coord_col;
  const int64_t *map_index;                      /* [0] innermost */
  const int64_t *axis_index;                     /* array programs: [0] the last axis */
  const int64_t *dim_extent;                     /* by dim */
  const double *symbol;                          /* run-time scalars by index */
  double (*round)(bb_dtype dtype, double value); /* NULL: everything in float64 */
} bb_expr_env;

/* One element, in double, by recursion over the tree (many elements: bb_expr_postorder() and
 * bb_expr_apply() on arrays); `round` is applied to every operation's result with its dtype.
 * Integer division and modulo by zero give 0 and never trap. */
double bb_expr_eval(const bb_expr *expr, const bb_expr_env *env);
/* One operator (no leaf) on values of its operands, not rounded. */
double bb_expr_apply(const bb_expr *expr, double a, double b, double c);

const char *bb_expr_op_name(bb_expr_op op);
uint32_t bb_expr_op_arity(bb_expr_op op);

/* Prints in the paper's notation, the names of arguments given by arg[]; total and parsable by
 * bb_expr_parse().  Infix operators carry no spaces; pow prints as a**b.  An extent of dim D prints
 * as extent(D), or, in a listing, as DD. */
typedef enum bb_expr_style { BB_EXPR_TEXT, BB_EXPR_LISTING } bb_expr_style;
void bb_expr_print(bb_buffer *out, const bb_program *program, const bb_expr *expr,
                   bb_expr_style style, uint32_t argc, const char *const *arg);

/* Parses BB_EXPR_TEXT up to a character that cannot continue an expression.  Arguments are looked
 * up by name with `lookup` (returns NULL: unknown).  On error returns NULL with *error set to a
 * static phrase and *text at the place. */
typedef const bb_expr *bb_expr_lookup(void *user, const char *name, size_t length);
typedef const bb_expr *bb_expr_parser(bb_program *program, const char **text, const char *end,
                                      bb_expr_lookup *lookup, void *user, const char **error);
bb_expr_parser bb_expr_parse;
/* The same where numbers count: those beside nothing but numbers are i64, not f32, which holds no
 * whole number beyond 2^24. */
bb_expr_parser bb_expr_parse_index;

#endif
