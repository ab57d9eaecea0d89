/* caches.c - finds the caches of a program: outputs that are an input with more behind it along an axis, as
 * exporters write keys and values of a decoder.  Both ends may then lie in one array with room to grow.
 */
#include "plan_make.h"

#include "../interp/interp.h"

/* The factored axis that axis `axis` of the caller's shape is, and nothing else; false: there is none. */
static bool factored_axis(bb_program *program, const bb_tensor *t, uint32_t axis, uint32_t *found) {
  uint32_t at = 0;
  for (uint32_t i = 0; i <= axis; i++) {
    const bb_extent *product = bb_extent_number(program, 1);
    uint32_t first = at;
    while (product != t->shape[i] && at < t->axes)
      product = bb_extent_multiply(program, product, program->dim[t->axis[at++]].extent);
    if (product != t->shape[i]) return false;
    *found = first;
    if (i == axis) return at == first + 1;
  }
  return false;
}

static bool same_shape(const bb_misc_port *port, const bb_tensor *t) {
  bool same = port->rank == t->rank;
  for (uint32_t i = 0; same && i < t->rank; i++) same = port->shape[i] == t->shape[i];
  return same;
}

/* A step that brings a whole input and more together as a whole output. */
static bool is_cache(bb_program *program, const bb_step *step, bb_plan_cache *cache,
                     bb_room room[2]) {
  const bb_misc *misc = step->misc;
  if (step->candidate != BB_NONE || !misc->in || !misc->out || step->nin < 2 || step->nout != 1)
    return false;
  if (!bb_misc_joins(misc, &cache->axis) || misc->in[0].absent) return false;
  cache->input = step->in[0]->piece[0].source;
  cache->output = step->out[0];
  const bb_tensor *in = &program->tensor[cache->input], *out = &program->tensor[cache->output];
  return in->role == BB_TENSOR_INPUT && out->role == BB_TENSOR_OUTPUT &&
         bb_operand_is_whole(program, &misc->in[0], step->in[0]) && same_shape(&misc->in[0], in) &&
         same_shape(&misc->out[0], out) && factored_axis(program, in, cache->axis, &room[0].axis) &&
         factored_axis(program, out, cache->axis, &room[1].axis);
}

uint32_t bb_caches_find(bb_program *program, bb_arena *arena, bb_plan_cache *cache,
                        bb_room **room) {
  uint32_t count = 0;
  bb_room *all = BB_NEW(arena, bb_room, program->tensors + 1);
  for (uint32_t i = 0; i < program->steps; i++) {
    bb_room end[2] = {{true, 0, 2 * count}, {true, 0, 2 * count + 1}};
    bb_plan_cache *made = &cache[count];
    if (!is_cache(program, &program->step[i], made, end) || all[made->input].given) continue;
    all[made->input] = end[0];
    all[made->output] = end[1];
    count++;
  }
  *room = all;
  return count;
}
