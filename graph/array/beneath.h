/* beneath.h - what values were before they were widened or scaled, for products that take them as they were.
 *
 * An elementwise node made such a value; a join, a slice, windows and pads of it may have moved its elements since, and
 * are made again of what lies beneath.
 */
#ifndef BB_GRAPH_ARRAY_BENEATH_H
#define BB_GRAPH_ARRAY_BENEATH_H

#include "index.h"

/* What an elementwise node made its values from: an expression of its operands. */
typedef const bb_expr *bb_core(const bb_ix *ix, const bb_ix_node *node);

/* Axis a of the value beneath is axis[a] of the one above. */
typedef struct bb_beneath {
  uint32_t value; /* BB_NONE: not made yet */
  const uint32_t *axis;
} bb_beneath;

typedef struct bb_digging {
  bb_ix *ix;
  bb_arena *scratch;
  bb_core *core;
  uint32_t values;  /* that there were */
  bb_beneath *made; /* by value, of those */
} bb_digging;

enum { BB_BENEATH_DEPTH = 8 }; /* nodes looked through */

bb_digging bb_beneath_begin(bb_ix *ix, bb_core *core);
bool bb_moves_elements(bb_ix_op op);
/* Gives operand `slot` of one node, as it was beneath, to another with the same indices. */
void bb_beneath_use(bb_digging *d, uint32_t node, uint32_t to, uint32_t slot);

#endif
