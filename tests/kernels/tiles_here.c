/* tiles_here.c - in place of graph/processor.c: tiles are there, in memory (tiles_in_memory.h). */
#include "../../graph/processor.h"

bool bb_processor_has_tiles(void) {
#ifdef __AVX512BW__
  return true;
#else
  return false;
#endif
}

bool bb_processor_has_bytes(void) {
  return false;
}
