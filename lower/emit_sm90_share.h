/* emit_sm90_share.h - what emit_sm90_share.c and emit_sm90_push.c say together: parts of a tuple that lie alike over the
 * threads, and what is computed of one element of their combination.
 *
 * Names in the code that is written: part_X[round][i] is what part i has of merged tile X at the element of that round,
 * all_X[round] what all parts have, combined, and one_X what a tile has at the element at hand.
 */
#ifndef BB_LOWER_EMIT_SM90_SHARE_H
#define BB_LOWER_EMIT_SM90_SHARE_H

#include "code.h"
#include "emit_sm90.h"

typedef struct bb_sharing {
  bb_cuda *e;
  const bb_tile_monoid *monoid;
  const uint32_t *merged;   /* tiles */
  const bb_cuda_list *list; /* what follows */
  uint32_t of;              /* the tile whose elements are shared: the first that is stored */
  uint32_t offset[BB_TILE_OPERANDS], count; /* of a thread's values, in a part */
  uint32_t lanes;                           /* threads that hold a part */
  const char *lane;                         /* this one of them */
  bool needed[BB_TILE_OPERANDS]; /* components that the list looks at, and those that these need */
} bb_sharing;

/* Of the outermost loop whose iterations leave parts. */
bb_sharing bb_sharing_begin(bb_cuda *e);

/* A loop over rounds: what is written between begin and end is its body, where e is the element that `element` says. */
typedef struct bb_sharing_rounds {
  uint32_t count;
  const char *element;
  bb_buffer *out, code;
} bb_sharing_rounds;
void bb_sharing_begin_rounds(bb_cuda *e, bb_sharing_rounds *r);
void bb_sharing_end_rounds(bb_cuda *e, bb_sharing_rounds *r);

const char *bb_sharing_name(const bb_sharing *s, uint32_t component);
/* Does a component have a value for every element of the shared tile, and not one for a row or column of them? */
bool bb_sharing_is_block(const bb_sharing *s, uint32_t component);
/* Which of a thread's values of a tile belongs to element e of tile `of`, as text. */
const char *bb_sharing_value(const bb_sharing *s, uint32_t tile, uint32_t of);
/* Declares part_X of needed components. */
void bb_sharing_put_parts(const bb_sharing *s, const bool *needed, uint32_t rounds, uint32_t parts);
/* part_X[round][0] = all of part_X[round][0], part_X[round][1], ...; `there`: which of them are, of part i, or NULL: all. */
void bb_sharing_put_tree(const bb_sharing *s, const bool *needed, uint32_t parts,
                         const char *there);
/* The components named FROM[0] NAME FROM[1], combined with those of `right`. */
void bb_sharing_put_combine(const bb_sharing *s, const bool *needed, const char *const left[2],
                            const char *const right[2]);
/* Is the tile one that is merged? */
bool bb_sharing_is_component(const bb_sharing *s, uint32_t tile);

/* How a tile's value at element e is called before what follows, NULL: it has none. */
typedef const char *bb_sharing_known(const bb_sharing *s, uint32_t tile);
/* Has a statement of what follows been done for all elements? */
typedef bool bb_sharing_done(const bb_sharing *s, const bb_tile_stmt *stmt);
/* What follows, at element e, but what is done (NULL: nothing is). */
void bb_sharing_put_following(const bb_sharing *s, bb_sharing_known *known, bb_sharing_done *done);

/* Combines what the warps left in `parts`, a value by one warp: `take` writes the code for what becomes of value e of
 * component k, part_X[round][0], and `begin` (or NULL) what comes before the first of them. */
typedef void bb_sharing_part(const bb_sharing *s, uint32_t k);
void bb_sharing_put_warps(const bb_sharing *s, bb_sharing_part *begin, bb_sharing_part *take);

/* emit_sm90_push.c: from what each block of a cluster has, or its warps left. */
void bb_cuda_push(const bb_sharing *s);

#endif
