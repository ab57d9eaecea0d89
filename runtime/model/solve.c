/* solve.c - run-time extents from the shapes of arrays: a product of symbols of which one is unknown. */
#include "solve.h"

#include <math.h>

/* The number whose power is value, or -1. */
static int64_t exact_root(int64_t value, uint32_t power) {
  if (power == 1 || value < 2) return value;
  int64_t root = llround(pow((double)value, 1.0 / power)), product = 1;
  for (uint32_t i = 0; i < power; i++)
    if (__builtin_mul_overflow(product, root, &product)) return -1;
  return product == value ? root : -1;
}

bb_solved bb_extent_solve(const bb_extent *extent, int64_t have, int64_t *symbol) {
  int64_t known = extent->factor;
  uint32_t unknown = UINT32_MAX, power = 0;
  for (uint32_t k = 0; k < extent->count; k++) {
    uint32_t s = extent->symbol[k];
    if (symbol[s] < 0) {
      if (power && s != unknown) return BB_SOLVED_OPEN;
      unknown = s;
      power++;
    } else if (__builtin_mul_overflow(known, symbol[s], &known)) {
      return BB_SOLVED_WRONG;
    }
  }
  if (power == 0) return known == have ? BB_SOLVED_AGREES : BB_SOLVED_WRONG;
  if (known == 0) return have == 0 ? BB_SOLVED_OPEN : BB_SOLVED_WRONG;
  int64_t root = have % known ? -1 : exact_root(have / known, power);
  if (root < 0) return BB_SOLVED_WRONG;
  symbol[unknown] = root;
  return BB_SOLVED_FOUND;
}
