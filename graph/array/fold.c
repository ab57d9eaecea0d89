/* fold.c - dead code: nodes whose results no output needs are marked removed. */
#include "array.h"

static void need(const bb_array *array, uint32_t value, bool *needed) {
  if (value != BB_NONE && array->value[value].producer != BB_NONE)
    needed[array->value[value].producer] = true;
}

static void remove_dead(bb_array *array) {
  bb_arena *scratch = bb_scratch(array->program->ctx);
  bool *needed = BB_NEW(scratch, bool, array->nodes);
  for (uint32_t o = 0; o < array->outputs; o++) need(array, array->output[o], needed);
  for (uint32_t i = array->nodes; i-- > 0;) {
    bb_array_node *node = &array->node[i];
    if (!needed[i]) node->removed = true;
    for (uint32_t k = 0; !node->removed && k < node->nin; k++) need(array, node->in[k], needed);
  }
  bb_scratch_end(scratch);
}

void bb_array_fold(bb_array *array) {
  remove_dead(array);
}
