/* solve.h - run-time extents from the shapes of arrays. */
#ifndef BB_RUNTIME_MODEL_SOLVE_H
#define BB_RUNTIME_MODEL_SOLVE_H

#include "type.h"

typedef enum bb_solved {
  BB_SOLVED_WRONG, /* they cannot agree */
  BB_SOLVED_AGREES,
  BB_SOLVED_FOUND, /* a symbol, the only one that was not known */
  BB_SOLVED_OPEN   /* other axes may tell more */
} bb_solved;

/* Holds one extent against the length an array has there.  `symbol` has the values of symbols, -1
 * where none is known. */
bb_solved bb_extent_solve(const bb_extent *extent, int64_t have, int64_t *symbol);

#endif
