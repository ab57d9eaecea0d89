/* indices.c - places that a kernel computes are stored in 32 bits where they are known to fit.
 *
 *     i = min(max(j, 0), 511)     y = Gather(x, i)     ==>     i = i32(min(max(j, 0), 511))
 *
 * Exporters write them in 64 bits.  As long as something else computes them they are written to memory once and read by
 * each operator that picks by them, and often there is one for each element that is picked: more bytes than those have.
 */
#include "lower.h"

#include <string.h>

/* Operators whose second operand holds places, of either type. */
static const char *const pickers[] = {"Gather", "GatherElements", "ScatterElements"};
enum { PICKERS = sizeof pickers / sizeof *pickers };

static bool picks_by(const bb_ix_node *node, uint32_t slot) {
  if (node->op != BB_IX_MISC || slot != 1 || node->misc->domain[0]) return false;
  for (uint32_t i = 0; i < node->misc->nin; i++)
    if (node->misc->in[i].absent) return false;
  for (uint32_t i = 0; i < PICKERS; i++)
    if (strcmp(node->misc->op, pickers[i]) == 0) return true;
  return false;
}

/* Do all that use the value pick by it? */
static bool is_for_picking(const bb_ix *ix, const bb_ix_value *v) {
  uint32_t node = v->first_node, slot = v->first_slot;
  while (node != BB_NONE && picks_by(&ix->node[node], slot)) {
    const bb_ix_operand *in = &ix->node[node].in[slot];
    node = in->next_node, slot = in->next_slot;
  }
  return v->uses && node == BB_NONE;
}

static bool fits(const bb_ix *ix, uint32_t value) {
  const bb_range r = bb_ix_range_of_value(ix, value);
  return r.least >= INT32_MIN && r.most <= INT32_MAX;
}

static void narrow_port(bb_ix *ix, bb_ix_node *node, uint32_t slot) {
  bb_misc *misc = BB_NEW(ix->arena, bb_misc, 1);
  bb_misc_port *in = BB_NEW(ix->arena, bb_misc_port, node->misc->nin);
  *misc = *node->misc;
  memcpy(in, misc->in, misc->nin * sizeof *in);
  in[slot].dtype = BB_I32;
  misc->in = in;
  node->misc = misc;
}

void bb_ix_narrow_indices(bb_ix *ix) {
  for (uint32_t i = 0; i < ix->nodes; i++) {
    bb_ix_node *node = &ix->node[i];
    if (node->removed || node->op != BB_IX_ELEMENTWISE) continue;
    bb_ix_value *v = &ix->value[node->out[0]];
    if (v->dtype != BB_I64 || !is_for_picking(ix, v) || !fits(ix, node->out[0])) continue;
    node->expr = bb_expr_cast(ix->program, BB_I32, node->expr);
    v->dtype = BB_I32;
    for (uint32_t user = v->first_node, slot = v->first_slot; user != BB_NONE;) {
      const bb_ix_operand *in = &ix->node[user].in[slot];
      narrow_port(ix, &ix->node[user], slot);
      user = in->next_node, slot = in->next_slot;
    }
  }
}
