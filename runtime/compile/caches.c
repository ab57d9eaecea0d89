/* caches.c - finds the caches of a program: outputs that are an input with more behind it along an axis, as
 * exporters write keys and values of a decoder.  Both ends may then lie in one array with room to grow, and what it grows
 * by is made where it belongs: then nothing moves.
 */
#include "plan_make.h"

#include "../interp/interp.h"

/* The factored axis that axis `axis` of a shape is, and nothing else; false: there is none. */
static bool factored_axis(bb_program *program, const bb_extent *const *shape, const bb_tensor *t,
                          uint32_t axis, uint32_t *found) {
  uint32_t at = 0;
  for (uint32_t i = 0; i <= axis; i++) {
    const bb_extent *product = bb_extent_number(program, 1);
    uint32_t first = at;
    while (product != shape[i] && at < t->axes)
      product = bb_extent_multiply(program, product, program->dim[t->axis[at++]].extent);
    if (product != shape[i]) return false;
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
         same_shape(&misc->out[0], out) &&
         factored_axis(program, in->shape, in, cache->axis, &room[0].axis) &&
         factored_axis(program, out->shape, out, cache->axis, &room[1].axis);
}

/* Does every array begin where devices' kernels take arrays to begin, that stands behind some elements of the axis? */
static bool begins_well(bb_program *program, const bb_misc_port *port, uint32_t axis) {
  enum { WORD = 16 }; /* bytes: bb_device_class.align */
  const bb_extent *row = bb_extent_number(program, 1);
  for (uint32_t i = axis + 1; i < port->rank; i++)
    row = bb_extent_multiply(program, row, port->shape[i]);
  return row->factor * bb_dtype_bytes(port->dtype) % WORD == 0;
}

/* Is what comes behind as wide as the result, as far as is known before a run?  Else the step that joins them has to look first. */
static bool is_as_wide(const bb_misc_port *part, const bb_misc_port *whole, uint32_t axis) {
  bool same = part->rank == whole->rank;
  for (uint32_t i = 0; same && i < part->rank; i++)
    same = i == axis || part->shape[i] == whole->shape[i];
  return same;
}

/* All that comes behind, as one array that candidates make: it may be made in the output.  Nothing else can lie there before:
 * what was there has no elements so far out. */
static bool finds_fresh(bb_program *program, const bb_step *step, bb_plan_cache *cache,
                        bb_room *room) {
  const bb_misc *misc = step->misc;
  const bb_misc_port *port = &misc->in[1];
  cache->fresh = BB_NONE;
  if (misc->nin != 2 || step->nin != 2 || port->absent) return false;
  uint32_t tensor = step->in[1]->piece[0].source;
  const bb_tensor *t = &program->tensor[tensor];
  for (uint32_t i = 0; i < program->steps; i++)
    for (uint32_t k = 0; k < program->step[i].nout; k++)
      if (program->step[i].candidate == BB_NONE && program->step[i].out[k] == tensor) return false;
  if (t->role != BB_TENSOR_LOCAL || t->once || port->dtype != misc->out[0].dtype ||
      !bb_operand_is_whole(program, port, step->in[1]) ||
      !is_as_wide(port, &misc->out[0], cache->axis) || !begins_well(program, port, cache->axis) ||
      !factored_axis(program, port->shape, t, cache->axis, &room->axis))
    return false;
  cache->fresh = tensor;
  return true;
}

uint32_t bb_caches_find(bb_program *program, bb_arena *arena, bb_plan_cache *cache,
                        bb_room **room) {
  uint32_t count = 0;
  bb_room *all = BB_NEW(arena, bb_room, program->tensors + 1);
  for (uint32_t i = 0; i < program->steps; i++) {
    bb_room end[2] = {{true, 0, 2 * count}, {true, 0, 2 * count + 1}}, fresh = end[1];
    bb_plan_cache *made = &cache[count];
    if (!is_cache(program, &program->step[i], made, end) || all[made->input].given) continue;
    all[made->input] = end[0];
    all[made->output] = end[1];
    if (finds_fresh(program, &program->step[i], made, &fresh) && !all[made->fresh].given)
      all[made->fresh] = fresh;
    else
      made->fresh = BB_NONE;
    count++;
  }
  *room = all;
  return count;
}
