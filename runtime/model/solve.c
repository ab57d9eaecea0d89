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

bool bb_extent_solve(const bb_extent *extent, int64_t have, int64_t *symbol, bool *progress) {
  int64_t known = extent->factor;
  uint32_t unknown = UINT32_MAX, power = 0;
  for (uint32_t k = 0; k < extent->count; k++) {
    uint32_t s = extent->symbol[k];
    if (symbol[s] < 0) {
      if (power && s != unknown) return true; /* two unknowns: another axis may tell one */
      unknown = s;
      power++;
    } else if (__builtin_mul_overflow(known, symbol[s], &known)) {
      return false;
    }
  }
  if (power == 0) return known == have;
  if (known == 0) return have == 0;
  int64_t root = have % known ? -1 : exact_root(have / known, power);
  if (root < 0) return false;
  symbol[unknown] = root;
  *progress = true;
  return true;
}
