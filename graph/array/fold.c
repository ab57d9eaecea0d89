/* fold.c - constant folding, and dead code.
 *
 * A node whose operands are constants is computed now if its result is small, or if it makes a mask
 * or an index out of small things: shapes, ranges, masks come from such chains.  What is larger (a
 * weight times its scale) is left alone and runs once when a program is loaded; so is what would be
 * rounded, that an expression or a run in float64 keeps every digit.
 */
#include "eval.h"

#include "../../runtime/interp/interp.h"

#include <float.h>
#include <math.h>

/* Elements of a result that is always folded; of one that is no weight, for masks and indices. */
enum { SMALL = 4096, MASK = 1 << 20 };

/* --- dead code --- */

static void need(const bb_array *array, uint32_t value, bool *needed) {
  if (value != BB_NONE && array->value[value].producer != BB_NONE)
    needed[array->value[value].producer] = true;
}

void bb_array_remove_dead(bb_array *array) {
  bb_arena *scratch = bb_scratch(array->program->ctx);
  bool *needed = BB_NEW(scratch, bool, array->nodes);
  for (uint32_t o = 0; o < array->outputs; o++) need(array, array->output[o], needed);
  for (uint32_t i = array->nodes; i-- > 0;) {
    bb_array_node *node = &array->node[i];
    bool tells = node->misc && bb_misc_tells(array->program, node->misc) != BB_NONE;
    if (!needed[i] && !tells) node->removed = true;
    for (uint32_t k = 0; !node->removed && k < node->nin; k++) need(array, node->in[k], needed);
  }
  bb_scratch_end(scratch);
}

/* --- folding --- */

/* Is the constant worth nothing but its pattern?  Masks are of integers or bools, or small. */
static bool is_light(const bb_array *array, uint32_t value, size_t count) {
  return count <= SMALL || !bb_dtype_is_float(array->value[value].dtype);
}

static bool may_fold(const bb_array *array, const bb_array_node *node, const bb_whole *out) {
  bool light = true;
  if (node->removed || node->op == BB_A_MISC || node->nout != 1) return false;
  for (uint32_t k = 0; k < node->nin; k++) {
    bb_whole in;
    if (!array->value[node->in[k]].data || !bb_eval_shape(array, node->in[k], &in)) return false;
    light &= is_light(array, node->in[k], in.count);
    if (in.count > MASK) return false;
  }
  return out->count <= (light ? MASK : SMALL);
}

/* Is it an exp that no float holds some of?  Such a one stays, for the repair of softmax to know it by. */
static bool is_beyond(bb_arena *scratch, const bb_array_node *node, const bb_whole *out) {
  bool exp = false, beyond = false;
  uint32_t count = 0;
  const bb_expr **part =
      node->op == BB_A_ELEMENTWISE ? bb_expr_postorder(scratch, node->expr, &count) : NULL;
  for (uint32_t i = 0; i < count; i++) exp |= part[i]->op == BB_X_EXP;
  for (size_t i = 0; exp && !beyond && i < out->count; i++)
    beyond = !(fabs(out->data[i]) >= FLT_MIN && fabs(out->data[i]) <= FLT_MAX);
  return beyond;
}

static void fold(bb_array *array, bb_array_node *node) {
  bb_whole out;
  if (node->op == BB_A_MISC || node->removed || !bb_eval_shape(array, node->out[0], &out) ||
      !may_fold(array, node, &out))
    return;
  bb_arena *scratch = bb_scratch(array->program->ctx);
  bb_whole *in = BB_NEW(scratch, bb_whole, node->nin);
  bool known = true;
  for (uint32_t k = 0; known && k < node->nin; k++)
    known = bb_eval_constant(array, node->in[k], scratch, &in[k]);
  if (known && bb_eval_node(array, node, in, scratch, &out) && !is_beyond(scratch, node, &out)) {
    bb_array_value *v = &array->value[node->out[0]];
    size_t bytes = out.count * bb_dtype_bytes(v->dtype);
    void *data = bb_arena_alloc(array->program->arena, bytes);
    bb_interp_store(v->dtype, out.data, out.count, data);
    v->data = data;
    v->bytes = bytes;
    v->producer = BB_NONE;
    node->removed = true;
  }
  bb_scratch_end(scratch);
}

void bb_array_fold(bb_array *array) {
  bb_array_remove_dead(array);
  for (uint32_t i = 0; i < array->nodes; i++) fold(array, &array->node[i]);
  bb_array_remove_dead(array);
}
