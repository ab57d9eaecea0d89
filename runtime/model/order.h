/* order.h - the first elements of a line, as the native kernel of picking (native_order.c) has them from loops (order_loops.c),
 * which are compiled for each instruction set.
 */
#ifndef BB_MODEL_ORDER_H
#define BB_MODEL_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint64_t
    bb_ranked; /* a rank above, the less the earlier it comes; the index below: no two are equal */

typedef struct bb_order_line {
  const void *line; /* dense floats, or 32-bit integers */
  bool floats, largest;
  size_t extent, kept; /* kept <= extent < 2^32 */
} bb_order_line;

/* The first `kept` of a line, sorted, somewhere in room for bb_order_room(). */
typedef const bb_ranked *bb_order_loops(const bb_order_line *l, bb_ranked *room);
bb_order_loops bb_order_loops_plain, bb_order_loops_avx2;

static inline size_t bb_order_room(size_t extent) {
  return 3 * extent + 1;
}

/* The best of the processor that this runs on. */
bb_order_loops *bb_order_loops_here(void);

/* The native kernel by loops that are given. */
struct bb_native_call;
bool bb_order_run(const struct bb_native_call *call, bb_order_loops *loops);

#endif
