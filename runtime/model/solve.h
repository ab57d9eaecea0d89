/* solve.h - run-time extents from the shapes of arrays. */
#ifndef BB_RUNTIME_MODEL_SOLVE_H
#define BB_RUNTIME_MODEL_SOLVE_H

#include "type.h"

/* Holds one extent against the length an array has there.  `symbol` has the values of symbols, -1
 * where none is known; one is found, and *progress set, when it is the only unknown.  False: they
 * cannot agree. */
bool bb_extent_solve(const bb_extent *extent, int64_t have, int64_t *symbol, bool *progress);

#endif
