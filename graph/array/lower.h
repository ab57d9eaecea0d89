/* lower.h - what the files of lowering share: from the index form to a block program.
 *
 * Every axis of a value in blocks has a role: the row or the column axis of its item, or a loop
 * over single elements.  A blocked dim in the role of a loop is read through an alias, an
 * enumerated dim of the same extent.
 */
#ifndef BB_GRAPH_ARRAY_LOWER_H
#define BB_GRAPH_ARRAY_LOWER_H

#include "index.h"

typedef enum bb_role { BB_ROLE_LOOP, BB_ROLE_ROW, BB_ROLE_COL } bb_role;

/* A value at the root of the block program. */
typedef struct bb_placed {
  bool made;
  bb_value src;
  bb_role *role;          /* of each axis */
  uint32_t *level;        /* of each axis, in src's type */
  bool turned;            /* the item's axes stand the other way round than `role` says */
  struct bb_placed *next; /* other ways to read the same value */
} bb_placed;

/* A fold whose partial results have been collected, but not folded yet: an elementwise op on the
 * result joins the nest of the fold. */
typedef struct bb_pending {
  bool is;
  bb_value partial[2]; /* ARGREDUCE: values and indices */
  uint32_t kept;       /* outer levels of the partials, in the order of the result's axes */
  uint32_t folds;      /* levels to fold, below them */
} bb_pending;

typedef struct bb_lower {
  bb_ix *ix;
  bb_program *program;
  bb_arena *scratch;
  bb_graph *root;
  bb_placed *placed;   /* by value: how it was computed; `next`: other readings */
  bb_pending *pending; /* by value */
  bool *folded;        /* by value: a reduction's result, or made of such only */
  bool *stored;        /* by value: an output has it already */
  bool *blocked;       /* by class */
  bb_dim *alias;       /* by class */
  uint32_t *tensor;    /* by array value: program tensor, BB_NONE */
  uint32_t *output;    /* program tensors of the outputs */
  uint32_t letters[2]; /* names given to dims without one: enumerated, blocked */
} bb_lower;

/* --- unit.c --- */

/* Gives vectors that are multiplied with blocks an axis of extent 1, and what is computed from
 * them. */
void bb_ix_add_units(bb_ix *ix);

/* --- alike.c --- */

/* Makes one dim of those along which products that read one operand alike have their own axes,
 * where extents are equal. */
void bb_ix_cut_alike(bb_ix *ix);
/* merge.c: axes that were cut for a few of their readers become whole again. */
void bb_ix_merge(bb_ix *ix);
/* im2col.c: products of windows that have too few channels for a block. */
void bb_ix_sum_along_rows(bb_ix *ix);
/* lines.c: products of windows that have few channels, or are of a padded image, see lines of them. */
void bb_ix_see_lines(bb_ix *ix);
/* pads.c: joins with what is one number become paddings. */
void bb_ix_find_pads(bb_ix *ix);
/* order.c: products give their axes in the order in which their operands were made, and so do sums of windows, if `sums`. */
void bb_ix_order_products(bb_ix *ix, bool sums);
/* narrow.c: products of what was widened from 16 bits, of 16 bits; `constants`: those too that are widened at load */
void bb_ix_multiply_narrow(bb_ix *ix, bool constants);
/* spread.c: what operators pick by without the axes that it is the same along */
void bb_ix_spread_less(bb_ix *ix);
/* indices.c: places that operators pick by, which a kernel computes, in 32 bits */
void bb_ix_narrow_indices(bb_ix *ix);
/* bytes.c: products of what was scaled from bytes, of integers */
void bb_ix_multiply_bytes(bb_ix *ix);
/* range.c: the least and the greatest that an expression of a node can be; infinite where nothing is known */
typedef struct bb_range {
  double least, most;
} bb_range;
bb_range bb_ix_range_of(const bb_ix *ix, const bb_ix_node *node, const bb_expr *expr);
bb_range bb_ix_range_of_value(const bb_ix *ix, uint32_t value);
/* Is it a constant of whole numbers? */
bool bb_ix_is_whole(const bb_array_value *value);
/* view_dims.c: windows and joins beside another axis over the dim of their own. */
void bb_ix_separate_view_dims(bb_ix *ix);

/* --- lower_dims.c: which dims are blocked, and their names --- */

void bb_lower_find_blocked(bb_lower *l);
bool bb_lower_blocked(bb_lower *l, uint32_t class);
/* The indices of a contraction that become axes of its items: rows of the left operand, of the
 * right one, and what is summed; BB_NONE: it has none (a sum it always has). */
typedef struct bb_product_axes {
  uint32_t row, col, sum;
} bb_product_axes;
bb_product_axes bb_ix_product_axes(bb_ix *ix, const bb_ix_node *node);
/* By class: cut into blocks because a product, a reduction or a scan runs along it. */
bool *bb_ix_blocked_by_operators(bb_ix *ix, bb_arena *arena);
/* The dim of a class in a role. */
bb_dim bb_lower_dim(bb_lower *l, uint32_t class, bb_role role);

/* --- lower_values.c: inputs, views, outputs --- */

void bb_lower_tensors(bb_lower *l);
/* The value with its axes in the given roles. */
bb_placed *bb_lower_fetch(bb_lower *l, uint32_t value, const bb_role *role);
/* The value in whatever roles it has; an input in natural ones. */
bb_placed *bb_lower_any(bb_lower *l, uint32_t value);
/* Records a computed value: roles by axis, levels in the order of its axes. */
void bb_lower_place(bb_lower *l, uint32_t value, bb_value src, const bb_role *role);
/* The last two blocked axes are row and column, the others loops. */
void bb_lower_natural_roles(bb_lower *l, uint32_t count, const uint32_t *dim, bb_role *role);
void bb_lower_view(bb_lower *l, bb_ix_node *node);
void bb_lower_misc(bb_lower *l, bb_ix_node *node);
void bb_lower_output(bb_lower *l, bb_ix_node *node);

/* --- lower_nest.c: nests of maps --- */

typedef struct bb_nest_operand {
  bb_value value;
  uint32_t loops;  /* of the nest */
  uint32_t *level; /* for each loop: the level of the operand's type, BB_NONE: it lacks it */
  bool turned;
} bb_nest_operand;

typedef struct bb_nest {
  bb_lower *lower;
  uint32_t loops;
  const bb_dim *dim;
  const bb_axis *axis;   /* of the collected level of each loop */
  const bb_monoid *fold; /* loops from `first_fold` on are folded as they close; may be NULL */
  uint32_t first_fold;
  uint32_t nin, nout;
  bb_nest_operand *in;
  /* Makes the innermost level's results out of its operands. */
  void (*body)(struct bb_nest *nest, bb_graph *graph, const bb_value *in, bb_value *out);
  void *user;
} bb_nest;

/* Builds the nest in graph; out[] receives its results there. */
void bb_nest_build(bb_nest *nest, bb_graph *graph, bb_value *out);
/* Operands of an index-form node, in roles by index of the node. */
bb_nest_operand bb_nest_operand_of(bb_lower *l, const bb_ix_node *node, uint32_t slot,
                                   const bb_role *role);
bb_nest_operand *bb_nest_operands(bb_lower *l, const bb_ix_node *node, const bb_role *role);
/* Sets the dims and collected axes of a nest's loops, by role. */
void bb_nest_loops(bb_nest *nest, uint32_t count, const uint32_t *class, const bb_role *role);
/* The operand of a nest for a value with the nest's loops as its axes, in its own order. */
bb_nest_operand bb_nest_in_order(bb_lower *l, bb_value src, uint32_t loops, const uint32_t *index,
                                 const uint32_t *level);

/* --- lower_order.c: the order of loops --- */

/* The loop that each index of an elementwise node gets. */
uint32_t *bb_lower_loop_order(bb_lower *l, const bb_ix_node *node);
/* The node with its indices in that order. */
bb_ix_node bb_lower_reordered(bb_lower *l, const bb_ix_node *node, const uint32_t *at);

/* --- lower_elementwise.c --- */

void bb_lower_elementwise(bb_lower *l, bb_ix_node *node);
/* Where the coordinates of an expression point once its indices are loops. */
typedef struct bb_lower_places {
  bb_lower *l;
  uint32_t loops;
  const bb_role *role;
  const uint32_t *at; /* the loop of each index; NULL: in their order */
} bb_lower_places;
/* The block op that an expression of items is. */
bb_value bb_lower_apply(bb_graph *graph, const bb_expr *expr, const bb_lower_places *at,
                        uint32_t count, const bb_value *in);
/* A nest that copies an operand, its axes in the order of the node's indices; own: their roles,
 * NULL: the natural ones. */
bb_placed *bb_lower_copy(bb_lower *l, const bb_ix_node *node, uint32_t slot, const bb_role *own);

/* --- lower_ops.c: contractions and reductions --- */

void bb_lower_contract(bb_lower *l, bb_ix_node *node);
void bb_lower_reduce(bb_lower *l, bb_ix_node *node);
/* An elementwise op on pending folds joins the nest that folds them; false: it has none, or cannot. */
bool bb_lower_join_pending(bb_lower *l, bb_ix_node *node);
/* Folds what is still pending of a value, in a nest of its own. */
void bb_lower_force(bb_lower *l, uint32_t value);

/* The roles in which the first user that has a wish reads a value's axes.  False: nobody has one. */
bool bb_lower_wanted_roles(bb_lower *l, uint32_t value, bb_role *role);
/* Does a reduction run along the innermost of its dims within items?  Along what is enumerated it runs from item to item. */
bool bb_lower_folds_rows(bb_lower *l, const bb_ix_node *node);
/* The operand's own row stays the row, if the result has it; else the last blocked axis is. */
bb_role *bb_lower_reduce_roles(bb_lower *l, const bb_ix_node *node);
/* Folds the lists left of partial results inside the loops over their axes; component `port`. */
bb_value bb_lower_fold_levels(bb_lower *l, bb_graph *graph, const bb_monoid *monoid, uint32_t folds,
                              bb_value *partial, uint32_t port);

/* --- lower_scan.c: folds of several components, running folds --- */

void bb_lower_fold(bb_lower *l, bb_ix_node *node);
void bb_lower_scan(bb_lower *l, bb_ix_node *node);

#endif
