/* affine.h - integer expressions of a tile program's variables as sums of multiples, for bounds of loops. */
#ifndef BB_LOWER_AFFINE_H
#define BB_LOWER_AFFINE_H

#include "tile.h"

enum { BB_AFFINE_TERMS = 6 };

typedef struct bb_affine {
  bool is; /* else the expression was no such sum */
  int64_t constant;
  uint32_t terms;
  struct {
    uint32_t variable;
    int64_t by;
  } term[BB_AFFINE_TERMS];
} bb_affine;

/* What is known of variables: those of loops begin at a constant and go in constant steps below a limit. */
typedef struct bb_affine_scope {
  bb_tile_program *p;
  const bb_tile_loop *const *loop; /* by variable; NULL: an extent */
} bb_affine_scope;

/* A number, a variable, and an index; one that is not affine gives what is not `is`. */
bb_affine bb_affine_number(int64_t value);
bb_affine bb_affine_variable(uint32_t variable);
bb_affine bb_affine_of(bb_tile_index index);
/* a + by * b */
bb_affine bb_affine_add(bb_affine a, int64_t by, bb_affine b);
bb_tile_index bb_affine_index(bb_tile_program *p, bb_affine a);
/* The greatest multiple of step not above a, as long as a is not negative. */
bb_tile_index bb_affine_floor(const bb_affine_scope *scope, bb_affine a, int64_t step);
/* As a sum, if it is one. */
bb_affine bb_affine_floor_sum(const bb_affine_scope *scope, bb_affine a, int64_t step);
/* Is an index a multiple of n, whatever extents are and wherever loops stand?  Variables of other loops are none. */
bool bb_affine_is_multiple(bb_tile_index index, int64_t n, const bb_tile_loop *const *loop,
                           uint32_t loops);
/* Is a <= b sure? */
bool bb_affine_at_most(const bb_affine_scope *scope, bb_affine a, bb_affine b);

#endif
