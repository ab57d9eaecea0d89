/* bill.h - what a kernel costs on a machine, and why: the words in which select/ reports.
 */
#ifndef BB_SELECT_BILL_H
#define BB_SELECT_BILL_H

#include "../graph/type.h"

/* What a pass over the machine waits for. */
typedef enum bb_bound {
  BB_BOUND_MEMORY,
  BB_BOUND_CACHE,
  BB_BOUND_LOCAL,
  BB_BOUND_DOT,
  BB_BOUND_VECTOR,
  BB_BOUND_SPECIAL,
  BB_BOUND_START /* launches, first tiles, turns of loops */
} bb_bound;

const char *bb_bound_name(bb_bound bound);

typedef struct bb_price {
  double seconds;              /* INFINITY: its tiles do not fit */
  double memory, cache;        /* bytes from and to them */
  double dot, vector, special; /* operations run, those repeated among them */
  double repeated;             /* of the time of operations, the share that is work done again */
  double instances, waves, launches;
  double local, registers; /* bytes of a unit's room */
  bb_bound bound;          /* of the longest pass */
} bb_price;

/* One way to run a kernel. */
typedef struct bb_way {
  uint32_t snapshot; /* BB_NONE: there is no such way */
  bool threads;      /* plain threads make its products: lowering has nothing else for it */
  uint32_t blocks;   /* block sizes: a dim may have several, for loops that are cut apart */
  struct bb_block_size *block;
  bb_dim *block_dim; /* by block size */
  /* the loop whose fold is split into parts; BB_NONE and 1: all fold rolling */
  uint32_t loop, parts;
  bb_dim fold;  /* that loop's dim */
  uint32_t map; /* and the serial of its map */
  bb_price price;
} bb_way;

/* Of one kernel. */
typedef struct bb_bill {
  bb_way best;
  bb_way second;   /* the cheapest with another snapshot, or another fold */
  uint32_t pieces; /* what it is made of: parts that could run as kernels of their own */
  uint32_t again;  /* pieces that it computes beside another kernel that does */
  /* Seconds of the cheapest cover of its pieces without this kernel (0: there is none), and of the
   * kernel in the same terms: before exps are made safe, which depends on what other kernels hand
   * on. */
  double apart, joined;
  const double *seconds; /* of the best way at each point that the pricer is asked about */
} bb_bill;

#endif
