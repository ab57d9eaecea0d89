/* steps.c - a strided array, seen by other axes: from the innermost outwards, as many axes of one as of the other have as many
 * elements. */
#include "steps.h"

/* Axes before *at, until they make `together` elements, `stride` apart, or more. */
static bool take(uint32_t *at, const int64_t *shape, int64_t together, int64_t stride,
                 int64_t *step, int64_t *made) {
  while (*made < together) {
    if (*at == 0) return false;
    const int64_t count = shape[--*at];
    step[*at] = count == 1 ? 0 : stride * *made;
    if (__builtin_mul_overflow(*made, count, made)) return false;
  }
  return true;
}

bool bb_steps_by(uint32_t axes, const int64_t *extent, const int64_t *stride, uint32_t rank,
                 const int64_t *shape, int64_t *step) {
  uint32_t at = rank;
  for (uint32_t i = 0; i < axes; i++)
    if (extent[i] < 1) return false;
  for (uint32_t i = 0; i < rank; i++)
    if (shape[i] < 1) return false;
  for (uint32_t j = axes; j-- > 0;) {
    if (extent[j] == 1) continue;
    int64_t together = extent[j], made = 1;
    if (!take(&at, shape, together, stride[j], step, &made)) return false;
    /* an axis of several of the array's, which have to lie as one */
    for (uint32_t inner = j; made > together;) {
      do {
        if (j == 0) return false;
      } while (extent[--j] == 1);
      if (stride[j] != stride[inner] * together) return false;
      together *= extent[j];
      if (!take(&at, shape, together, stride[inner], step, &made)) return false;
    }
    if (made != together) return false;
  }
  while (at > 0) {
    if (shape[--at] != 1) return false;
    step[at] = 0;
  }
  return true;
}
