/* access.h - views: how a value is read out of a tensor or of other values without moving data.
 *
 * A source (a program tensor, or an operand of a VIEW node) has axes; an index gives for each axis
 * of the source, in order, where along it the view reads.  A piece is a source with an index.  A
 * view of several pieces joins them along one dim (concatenation), in order.  Strides follow from
 * the source's axes: the view itself is free of layout.  `take i` is a piece with a FIXED index and
 * `pack` a view of n pieces, each the element of an enumerated dim.
 *
 * The axes of an operand of a VIEW node are the levels of its type, outermost first.  When a dim
 * occurs twice, the k-th index over it (in the order of the source's axes) belongs to the k-th
 * level over it of the view's type, outermost first.
 * In a piece of a joined view, the index over the joined dim counts from the piece's begin: element
 * e of the joined dim, first <= e < first + length, reads e - first (DIM) or start + step * (e -
 * first) (RANGE); a piece without such an index (pack) has length 1.
 * A padded piece may reach beyond the axes of its source: its fill stands there.
 * The access of an OUTPUT reads the same way, backwards: it says where each element is stored.
 */
#ifndef BB_GRAPH_ACCESS_H
#define BB_GRAPH_ACCESS_H

#include "type.h"

typedef enum bb_index_kind {
  BB_INDEX_DIM,   /* the whole axis is this dim */
  BB_INDEX_FIXED, /* element `start` of the axis: it has no dim in the view (take) */
  BB_INDEX_RANGE, /* start, start + step, ...: dim has as many elements as the range */
  /* start + step * place + by * tap, of two dims: windows that may overlap.  No OUTPUT has one */
  BB_INDEX_WINDOW
} bb_index_kind;

typedef struct bb_index {
  bb_index_kind kind;
  bb_dim dim;          /* DIM, RANGE, WINDOW: of places */
  int64_t start, step; /* step may be negative, never 0 */
  bb_dim tap;          /* WINDOW: of what stands in a window, ... */
  int64_t by;          /* ... so far from each other */
} bb_index;

typedef struct bb_piece {
  uint32_t source;       /* VIEW: operand number; INPUT and OUTPUT: index of a program tensor */
  uint32_t rank;         /* axes of the source */
  const bb_index *index; /* one for each axis of the source */
  int64_t first;         /* where the piece begins along the joined dim */
  int64_t length;        /* and how much of it it covers; both unused for a single piece */
  bool padded;           /* indices may leave the axes, ... */
  double fill; /* ... where this stands, a number of the source's type; no OUTPUT has one */
} bb_piece;

typedef struct bb_access {
  bb_dim joined; /* BB_NO_DIM: one piece */
  uint32_t count;
  const bb_piece *piece;
} bb_access;

/* The dims that an index runs over: of a WINDOW the places, then the taps. */
static inline uint32_t bb_index_dims(const bb_index *index) {
  return index->kind == BB_INDEX_FIXED ? 0 : index->kind == BB_INDEX_WINDOW ? 2 : 1;
}
static inline bb_dim bb_index_dim(const bb_index *index, uint32_t k) {
  return k ? index->tap : index->dim;
}
static inline bool bb_index_over(const bb_index *index, bb_dim dim) {
  for (uint32_t k = 0; k < bb_index_dims(index); k++)
    if (bb_index_dim(index, k) == dim) return true;
  return false;
}
/* Do two indices run over one dim? */
static inline bool bb_index_meets(const bb_index *a, const bb_index *b) {
  for (uint32_t k = 0; k < bb_index_dims(a); k++)
    if (bb_index_over(b, bb_index_dim(a, k))) return true;
  return false;
}

bool bb_piece_has_windows(const bb_piece *piece);
bool bb_access_is_padded(const bb_access *access);
/* Is it the same number, bit for bit? */
bool bb_piece_same_fill(const bb_piece *a, const bb_piece *b);

/* Copies into the program's arena and interns, so that equal accesses are one pointer. */
const bb_access *bb_access_make(bb_program *program, const bb_access *access);

#endif
