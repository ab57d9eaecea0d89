/* nest_walk.h - inside nest*.c: the tables of a nest while they are filled.
 */
#ifndef BB_SELECT_NEST_WALK_H
#define BB_SELECT_NEST_WALK_H

#include "nest.h"

typedef struct bb_nest_walker {
  const bb_program *program;
  bb_arena *arena, *scratch;
  bb_nest *nest;
  uint32_t size_capacity, loop_capacity, term_capacity, class_capacity, moment_capacity,
      fold_capacity;
  uint32_t *up; /* by size: union-find */
  uint32_t up_capacity;
  uint16_t *alive; /* by class */
  bool risen;      /* more is alive than at any moment since something left */
  uint32_t alive_capacity;
  struct bb_nest_fill {
    uint32_t count;        /* of classes */
    const uint16_t *alive; /* by class */
    uint32_t total;        /* of all classes */
    uint64_t some;         /* bit c % 64: something of class c */
  } * moment;
  uint32_t around; /* the innermost loop */
  uint64_t chain;  /* it and those around it */
  uint32_t phase;
  bool too_many;
  uint64_t
      apart; /* loops whose turns cannot become one: right operands of products, or coordinates, differ along them */
  struct bb_nest_made { /* exponentials so far, and the loops that made them */
    uint32_t loop;
    const bb_expr *exp;
  } * made;
  uint32_t mades, made_capacity;
} bb_nest_walker;

/* A size of its own for a dim; whole: no loop cuts it. */
uint32_t bb_nest_add_size(bb_nest_walker *w, bb_dim dim, bool whole);
/* The size that stands for all that were united with this one. */
uint32_t bb_nest_find(const bb_nest_walker *w, uint32_t size);
/* Either may be BB_NONE: then the other. */
uint32_t bb_nest_unite(bb_nest_walker *w, uint32_t a, uint32_t b);
/* The sizes of an item's axes; an axis that no loop cut is whole. */
void bb_nest_complete_axes(bb_nest_walker *w, const bb_item *item, uint32_t *axis);

/* The class of items that take room alike; added if new. */
uint32_t bb_nest_class_of(bb_nest_walker *w, bb_nest_room room, const uint32_t *axis, double bytes,
                          uint64_t times);
/* One more item of a class is alive, or one less; BB_NONE: nothing. */
void bb_nest_take_room(bb_nest_walker *w, uint32_t class);
void bb_nest_leave_room(bb_nest_walker *w, uint32_t class);
/* The nest's moments, at the end of the walk, when sizes stay. */
void bb_nest_keep_moments(bb_nest_walker *w);

/* Work or traffic where the walk stands. */
void bb_nest_add_term(bb_nest_walker *w, bb_nest_kind kind, const uint32_t *axis, uint32_t depth,
                      double amount, bb_dtype dtype, uint64_t depends);
/* Of the blocks of an input at the top; *follows: a whole run is followed by the next one of its
 * block. */
bb_nest_run bb_nest_run_of(const bb_program *program, const bb_node *input, bool *follows);
/* Where the blocks of the load that was added last have neighbours. */
void bb_nest_set_run(bb_nest_walker *w, bb_nest_run run, bool follows);
void bb_nest_add_expr(bb_nest_walker *w, const bb_expr *expr, const uint32_t *axis, bb_dtype dtype,
                      uint64_t depends);
/* Right behind the term of the exponentials of an expression.  before: 1 + the loop beside this one that went over the blocks it reads, 0:
 * none did. */
void bb_nest_note_special(bb_nest_walker *w, const bb_expr *expr, uint32_t before);
/* The loop that may take several indices at once, at the end of the walk, when sizes stay. */
void bb_nest_find_joined(bb_nest_walker *w);
/* Arithmetic that runs alike becomes one term, at the end of the walk, when sizes stay: a price adds up every term for every
 * choice of block sizes. */
void bb_nest_join_terms(bb_nest_walker *w);

#endif
