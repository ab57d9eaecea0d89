/* canonicalise.c - canonical forms, on the index form. */
#include "index.h"

void bb_array_canonicalise(bb_array *array) {
  bb_ix *ix = array->index;
  for (uint32_t i = 0; i < ix->nodes; i++) bb_ix_sweep(ix, i);
}
