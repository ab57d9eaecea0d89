/* listing_lines.h - what listings are written with: lines, loops, names of values and of memory. */
#ifndef BB_FUSE_LISTING_LINES_H
#define BB_FUSE_LISTING_LINES_H

#include "../graph/program.h"

/* A value as the listing calls it: a temporary, or a place in memory whose indices may be open. */
typedef struct bb_listed {
  bool temporary;
  const char *name; /* NULL: not made yet, or a buffer */
  uint32_t *buffer; /* number of the buffer; 0 until it is first mentioned */
  uint32_t slots;
  const char **slot; /* index of each list, outermost first; NULL: open */
  uint64_t loops;    /* the loops around that it depends on, by depth */
} bb_listed;

typedef struct bb_listing {
  bb_buffer *out;
  const bb_program *program;
  bb_arena *arena;
  uint32_t temporaries, buffers;
  uint32_t depth, capacity, dim_capacity;
  const char **loop; /* names of the loop variables around */
  bb_dim *loop_dim;
} bb_listing;

void bb_listing_indent(bb_listing *l);
/* The name of a place in memory, without its indices, and with them. */
void bb_listing_put_memory(bb_listing *l, const bb_listed *at);
void bb_listing_put_place(bb_listing *l, const bb_listed *at);
const char *bb_listing_temporary(bb_listing *l);
/* A line that opens a loop, whose variable is given; l->depth closes it.  map: whose loop it is;
 * NULL: a reduction's, over all of dim. */
const char *bb_listing_open(bb_listing *l, const char *keyword, bb_dim dim, const bb_node *map);
/* The place with its open index number `level` fixed. */
bb_listed bb_listing_fix(bb_listing *l, const bb_listed *at, uint32_t level, const char *index);
/* Memory for a value of this type that depends on the loops around as their bits say. */
bb_listed bb_listing_buffer(bb_listing *l, const bb_type *type, uint64_t loops);

#endif
