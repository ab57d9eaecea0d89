/* steps.h - a strided array, seen by other axes. */
#ifndef BB_MODEL_STEPS_H
#define BB_MODEL_STEPS_H

#include <stdbool.h>
#include <stdint.h>

/* Elements of an array with `axes` axes, in row-major order, are those of one with `rank` axes: step[i] says how far apart they lie
 * along axis i of that.  False: not evenly, or there are none, or not as many. */
bool bb_steps_by(uint32_t axes, const int64_t *extent, const int64_t *stride, uint32_t rank,
                 const int64_t *shape, int64_t *step);

#endif
