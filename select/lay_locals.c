/* lay_locals.c - arrays between candidates, with another order of axes.
 *
 * An image has its channels first, padded rows of any length, and is read in windows.  Its channels become the last axis, and
 * those of what is copied into it.
 */
#include "lay.h"
#include "pieces.h"

#include <string.h>

enum { LINE = 16 }; /* bytes at whose multiples rows begin */

/* Which axis of a tensor comes last; BB_NONE: as it is. */
typedef struct order {
  const bb_program *program;
  uint32_t tensors, *last;
  bool *fixed; /* bb_lay_find_fixed() */
} order;

static bool is_line(const order *o, const bb_tensor *tensor, uint32_t axis) {
  int64_t extent = bb_extent_value(bb_dim_get(o->program, tensor->axis[axis])->extent);
  return extent > 0 && extent * (int64_t)bb_dtype_bytes(tensor->dtype) % LINE == 0;
}

/* The axis of a piece that is whole rows or columns of the type; BB_NONE: neither is. */
static uint32_t lines_of(const order *o, const bb_node *input) {
  const bb_tensor *tensor = &o->program->tensor[input->tensor];
  const bb_piece *piece = &input->access->piece[0];
  for (uint32_t a = tensor->axes; a-- > 0;) {
    const bb_index *index = &piece->index[a];
    bool along = index->kind == BB_INDEX_DIM || (index->kind == BB_INDEX_RANGE && index->step == 1);
    if (along && bb_lay_axis_over(input->out[0].type, index->dim) != BB_AXIS_NONE &&
        is_line(o, tensor, a))
      return a;
  }
  return BB_NONE;
}

static void look_at_product(order *o, const bb_node *input) {
  const bb_type *type = input->out[0].type;
  const bb_access *access = input->access;
  bool block = type->item.row != BB_NO_DIM && type->item.col != BB_NO_DIM;
  if (!block || !access || access->joined != BB_NO_DIM || o->fixed[input->tensor]) return;
  uint32_t axis = lines_of(o, input);
  if (axis != BB_NONE && o->last[input->tensor] == BB_NONE) o->last[input->tensor] = axis;
}

static bool is_copied(const bb_graph *graph) {
  for (uint32_t i = 0; i < graph->count; i++) {
    const bb_node *node = bb_node_get(graph, i);
    if (bb_is_computed(node) && !bb_is_pointwise(node)) return false;
  }
  return true;
}

/* What is copied into a tensor whose last axis is another now. */
static void look_at_copy(order *o, const bb_graph *graph) {
  for (uint32_t k = 0; k < graph->noutputs; k++) {
    const bb_node *to = bb_node_get(graph, graph->output[k]);
    if (o->last[to->tensor] == BB_NONE) continue;
    bb_dim dim = o->program->tensor[to->tensor].axis[o->last[to->tensor]];
    for (uint32_t i = 0; i < graph->ninputs; i++) {
      const bb_access *access = bb_node_get(graph, graph->input[i])->access;
      for (uint32_t p = 0; access && p < access->count; p++) {
        const bb_piece *piece = &access->piece[p];
        const bb_tensor *from = &o->program->tensor[piece->source];
        if (o->fixed[piece->source] || o->last[piece->source] != BB_NONE) continue;
        for (uint32_t a = 0; a < piece->rank; a++)
          if (piece->index[a].kind == BB_INDEX_DIM && piece->index[a].dim == dim &&
              is_line(o, from, a))
            o->last[piece->source] = a;
      }
    }
  }
}

static void move_last(void *array, size_t size, uint32_t count, uint32_t axis, void *kept) {
  char *bytes = array;
  memcpy(kept, bytes + axis * size, size);
  memmove(bytes + axis * size, bytes + (axis + 1) * size, (count - 1 - axis) * size);
  memcpy(bytes + (count - 1) * size, kept, size);
}

static void turn_tensor(bb_program *program, bb_tensor *tensor, uint32_t axis) {
  bb_dim *dim = BB_NEW(program->arena, bb_dim, tensor->axes), kept;
  const bb_extent **shape = BB_NEW(program->arena, const bb_extent *, tensor->rank), *size;
  memcpy(dim, tensor->axis, tensor->axes * sizeof *dim);
  memcpy(shape, tensor->shape, tensor->rank * sizeof *shape);
  move_last(dim, sizeof *dim, tensor->axes, axis, &kept);
  move_last(shape, sizeof *shape, tensor->rank, axis, &size);
  tensor->axis = dim;
  tensor->shape = shape;
}

static void turn_access(const order *o, bb_program *program, bb_arena *scratch, bb_node *node) {
  const bb_access *access = node->access;
  bb_piece *piece = BB_NEW(scratch, bb_piece, access->count);
  bool any = false;
  for (uint32_t p = 0; p < access->count; p++) {
    piece[p] = access->piece[p];
    uint32_t axis = o->last[piece[p].source];
    if (axis == BB_NONE) continue;
    bb_index *index = BB_NEW(scratch, bb_index, piece[p].rank), kept;
    memcpy(index, piece[p].index, piece[p].rank * sizeof *index);
    move_last(index, sizeof *index, piece[p].rank, axis, &kept);
    piece[p].index = index;
    any = true;
  }
  bb_access turned = {.joined = access->joined, .count = access->count, .piece = piece};
  if (any) node->access = bb_access_make(program, &turned);
}

void bb_lay_locals(bb_program *program, bb_arena *scratch) {
  order o = {.program = program, .tensors = program->tensors};
  o.last = BB_NEW(scratch, uint32_t, o.tensors + 1);
  for (uint32_t t = 0; t < o.tensors; t++) o.last[t] = BB_NONE;
  o.fixed = bb_lay_find_fixed(program, scratch);
  for (uint32_t c = 0; c < program->candidates; c++) {
    const bb_graph *graph = program->candidate[c].graph;
    if (!bb_lay_has_product(graph)) continue;
    for (uint32_t i = 0; i < graph->ninputs; i++)
      look_at_product(&o, bb_node_get(graph, graph->input[i]));
  }
  for (uint32_t c = program->candidates; c-- > 0;)
    if (is_copied(program->candidate[c].graph)) look_at_copy(&o, program->candidate[c].graph);
  for (uint32_t c = 0; c < program->candidates; c++) {
    bb_graph *graph = program->candidate[c].graph;
    program->candidate[c].safe = NULL; /* it was made of arrays as they lay */
    for (uint32_t i = 0; i < graph->ninputs; i++)
      if (graph->node[graph->input[i]]->access)
        turn_access(&o, program, scratch, graph->node[graph->input[i]]);
    for (uint32_t i = 0; i < graph->noutputs; i++)
      if (graph->node[graph->output[i]]->access)
        turn_access(&o, program, scratch, graph->node[graph->output[i]]);
  }
  for (uint32_t t = 0; t < o.tensors; t++)
    if (o.last[t] != BB_NONE) turn_tensor(program, &program->tensor[t], o.last[t]);
}
