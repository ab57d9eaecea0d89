/* lay.c - arrays laid out as products read them.
 *
 * What copies whole rows into a product's memory wants neighbours of a row to be neighbours in memory, and rows that begin
 * at multiples of 16 bytes.
 *
 * Constants: a convolution's weights have their taps last, and its products read channels, a tap at a time. The constant is
 * copied once, at load, into the order in which its candidate lists it: enumerated dims, rows, columns.
 *
 * Arrays between candidates: an image has its channels first, padded rows of any length, and is read in windows. Its
 * channels become the last axis, and those of what is copied into it.
 */
#include "flow.h"

#include <string.h>

typedef struct laid {
  const bb_access *access;
  const bb_type *type;
  uint32_t tensor;
} laid;

typedef struct layer {
  bb_program *program;
  bb_arena *scratch;
  bb_carving made;
  uint32_t count, capacity;
  laid *laid;
} layer;

static bb_axis axis_over(const bb_type *type, bb_dim dim) {
  for (uint32_t i = 0; i < type->rank; i++)
    if (type->level[i].dim == dim && type->level[i].axis != BB_AXIS_NONE)
      return type->level[i].axis;
  return BB_AXIS_NONE;
}

static bool has_dim_twice(const bb_type *type) {
  for (uint32_t i = 0; i < type->rank; i++)
    for (uint32_t k = 0; k < i; k++)
      if (type->level[i].dim == type->level[k].dim) return true;
  return false;
}

/* A block of a constant whose neighbours in memory are neither in a row nor in a column of it? */
static bool is_across(const bb_program *program, const bb_node *input) {
  const bb_tensor *tensor = &program->tensor[input->tensor];
  const bb_type *type = input->out[0].type;
  const bb_access *access = input->access;
  bool block = type->item.row != BB_NO_DIM && type->item.col != BB_NO_DIM;
  if (!block || !access || access->joined != BB_NO_DIM || tensor->axes == 0) return false;
  if (tensor->role != BB_TENSOR_CONSTANT && !tensor->once) return false;
  if (has_dim_twice(type)) return false;
  for (uint32_t a = 0; a < tensor->axes; a++) /* what windows see is several times what is there */
    if (access->piece[0].index[a].kind == BB_INDEX_WINDOW) return false;
  const bb_index *last = &access->piece[0].index[tensor->axes - 1];
  return last->kind == BB_INDEX_FIXED || axis_over(type, last->dim) == BB_AXIS_NONE;
}

static bool has_product(const bb_graph *graph) {
  for (uint32_t i = 0; i < graph->count; i++) {
    const bb_node *node = bb_node_get(graph, i);
    if (node->kind == BB_NODE_FUNC && node->op == BB_OP_DOT) return true;
    if (node->kind == BB_NODE_MAP && has_product(node->inner)) return true;
  }
  return false;
}

/* --- the copy --- */

/* The dims of the levels: enumerated ones, then the rows', then the columns'. */
static bb_dim *dims_of(const layer *l, const bb_type *type) {
  static const bb_axis axes[] = {BB_AXIS_NONE, BB_AXIS_ROW, BB_AXIS_COL};
  bb_dim *dim = BB_NEW(l->scratch, bb_dim, type->rank);
  uint32_t count = 0;
  for (int a = 0; a < 3; a++)
    for (uint32_t i = 0; i < type->rank; i++)
      if (type->level[i].axis == axes[a]) dim[count++] = type->level[i].dim;
  return dim;
}

static const bb_access *whole(const layer *l, const bb_type *type, uint32_t tensor) {
  const bb_dim *dim = dims_of(l, type);
  bb_index *index = BB_NEW(l->scratch, bb_index, type->rank);
  for (uint32_t i = 0; i < type->rank; i++) index[i] = (bb_index){BB_INDEX_DIM, dim[i], 0, 1};
  bb_piece piece = {.source = tensor, .rank = type->rank, .index = index};
  return bb_access_make(l->program, &(bb_access){.joined = BB_NO_DIM, .count = 1, .piece = &piece});
}

static uint32_t add_tensor(layer *l, const bb_type *type) {
  const bb_dim *axis = dims_of(l, type);
  const bb_extent **shape = BB_NEW(l->scratch, const bb_extent *, type->rank);
  for (uint32_t i = 0; i < type->rank; i++) shape[i] = bb_dim_get(l->program, axis[i])->extent;
  bb_tensor tensor = {.name = bb_arena_printf(l->scratch, "T%u", ++l->made.locals),
                      .dtype = type->item.dtype,
                      .role = BB_TENSOR_LOCAL,
                      .once = true,
                      .rank = type->rank,
                      .shape = shape,
                      .axes = type->rank,
                      .axis = axis};
  return bb_tensor_add(l->program, &tensor);
}

/* A loop for each level of the value, from number `level` on, around nothing. */
static bb_value copy_of(bb_graph *graph, bb_value value, const bb_type *type, uint32_t level) {
  bb_program *program = graph->program;
  if (level == type->rank) {
    const bb_expr *same = bb_expr_arg(program, type->item.dtype, 0);
    return bb_func_add(graph, BB_OP_ELEMENTWISE, same, 1, &value);
  }
  uint32_t map = bb_map_add(graph, type->level[level].dim);
  bb_value inner = bb_map_in(graph, map, value, 0);
  inner = copy_of(bb_map_own(graph, map), inner, type, level + 1);
  return bb_map_collect(graph, map, inner, type->level[level].axis);
}

static bb_graph *copying(const layer *l, const bb_node *input, uint32_t tensor) {
  const bb_type *type = input->out[0].type;
  bb_graph *graph = bb_graph_create(l->program);
  bb_value from = bb_input_add(graph, type);
  graph->node[from.node]->tensor = input->tensor;
  graph->node[from.node]->access = input->access;
  uint32_t to = bb_output_add(graph, copy_of(graph, from, type, 0));
  graph->node[to]->tensor = tensor;
  graph->node[to]->access = whole(l, type, tensor);
  return graph;
}

static uint32_t lay(layer *l, const bb_node *input) {
  const bb_type *type = input->out[0].type;
  for (uint32_t i = 0; i < l->count; i++)
    if (l->laid[i].access == input->access && l->laid[i].type == type) return l->laid[i].tensor;
  bb_carving *made = &l->made;
  bb_program *program = l->program;
  uint32_t tensor = add_tensor(l, type);
  BB_GROW(program->arena, made->candidate, made->candidate_capacity, (size_t)made->candidates + 1);
  made->candidate[made->candidates] =
      (bb_candidate){.name = bb_arena_printf(program->arena, "c%u", made->candidates),
                     .once = true,
                     .graph = copying(l, input, tensor),
                     .chosen = BB_NONE};
  made->candidates++;
  BB_GROW(l->scratch, l->laid, l->capacity, (size_t)l->count + 1);
  l->laid[l->count++] = (laid){input->access, type, tensor};
  return tensor;
}

/* --- candidates --- */

static void lay_inputs(layer *l, bb_graph *graph) {
  for (uint32_t i = 0; i < graph->ninputs; i++) {
    bb_node *input = graph->node[graph->input[i]];
    if (!is_across(l->program, input)) continue;
    uint32_t tensor = lay(l, input);
    input->tensor = tensor;
    input->access = whole(l, input->out[0].type, tensor);
  }
}

/* Does a step store what depends on constants only? */
static bool is_once(const bb_program *program, const bb_step *step) {
  if (step->candidate != BB_NONE) return program->candidate[step->candidate].once;
  for (uint32_t k = 0; k < step->nout; k++)
    if (program->tensor[step->out[k]].once) return true;
  return false;
}

static void add_step(layer *l, const bb_step *step) {
  bb_carving *made = &l->made;
  BB_GROW(l->program->arena, made->step, made->step_capacity, (size_t)made->steps + 1);
  made->step[made->steps] = *step;
  if (step->candidate != BB_NONE)
    made->step[made->steps].name = made->candidate[step->candidate].name;
  made->steps++;
}

/* The program's candidates behind those that lay constants out, whose steps stand behind the last one that runs once. */
static void follow(layer *l) {
  bb_program *program = l->program;
  bb_carving *made = &l->made;
  uint32_t first = made->candidates, before = 0;
  for (uint32_t i = 0; i < program->candidates; i++) {
    BB_GROW(program->arena, made->candidate, made->candidate_capacity,
            (size_t)made->candidates + 1);
    bb_candidate *candidate = &made->candidate[made->candidates];
    *candidate = program->candidate[i];
    candidate->name = bb_arena_printf(program->arena, "c%u", made->candidates++);
  }
  for (uint32_t i = 0; i < program->steps; i++)
    if (is_once(program, &program->step[i])) before = i + 1;
  for (uint32_t i = 0; i <= program->steps; i++) {
    for (uint32_t k = 0; i == before && k < first; k++) add_step(l, &(bb_step){.candidate = k});
    if (i == program->steps) break;
    bb_step step = program->step[i];
    if (step.candidate != BB_NONE) step.candidate += first;
    add_step(l, &step);
  }
  bb_carving_install(program, made);
}

/* --- arrays between candidates --- */

enum { LINE = 16 }; /* bytes at whose multiples rows begin */

/* Which axis of a tensor comes last; BB_NONE: as it is. */
typedef struct order {
  const bb_program *program;
  uint32_t tensors, *last;
  bool *fixed; /* its order is the program's, or a misc node's */
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
    if (along && axis_over(input->out[0].type, index->dim) != BB_AXIS_NONE && is_line(o, tensor, a))
      return a;
  }
  return BB_NONE;
}

static bool reads_dim_twice(const bb_piece *piece) {
  for (uint32_t a = 0; a < piece->rank; a++)
    for (uint32_t b = 0; b < a; b++)
      if (bb_index_meets(&piece->index[a], &piece->index[b])) return true;
  return false;
}

static void look_at_product(order *o, const bb_node *input) {
  const bb_type *type = input->out[0].type;
  const bb_access *access = input->access;
  bool block = type->item.row != BB_NO_DIM && type->item.col != BB_NO_DIM;
  if (!block || !access || access->joined != BB_NO_DIM || o->fixed[input->tensor]) return;
  uint32_t axis = lines_of(o, input);
  if (axis != BB_NONE && o->last[input->tensor] == BB_NONE) o->last[input->tensor] = axis;
}

/* Is every element made of those in its place? */
static bool is_pointwise(const bb_graph *graph) {
  for (uint32_t i = 0; i < graph->count; i++) {
    const bb_node *node = bb_node_get(graph, i);
    bool plain = node->kind != BB_NODE_REDUCE;
    if (node->kind == BB_NODE_FUNC)
      plain = node->op == BB_OP_ELEMENTWISE || node->op == BB_OP_ADD || node->op == BB_OP_MUL;
    for (uint32_t o = 0; node->kind == BB_NODE_MAP && o < node->nout; o++)
      plain &= node->out[o].mode == BB_OUT_COLLECT;
    if (!plain || (node->kind == BB_NODE_MAP && !is_pointwise(node->inner))) return false;
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

static void fix_those_of(order *o, const bb_access *access) {
  for (uint32_t p = 0; access && p < access->count; p++) o->fixed[access->piece[p].source] = true;
}

static void find_fixed(order *o) {
  const bb_program *program = o->program;
  for (uint32_t t = 0; t < o->tensors; t++) {
    const bb_tensor *tensor = &program->tensor[t];
    o->fixed[t] = tensor->role != BB_TENSOR_LOCAL || tensor->once || tensor->axes != tensor->rank;
  }
  for (uint32_t i = 0; i < program->steps; i++) {
    const bb_step *step = &program->step[i];
    if (step->candidate != BB_NONE) continue;
    for (uint32_t k = 0; k < step->nin; k++) fix_those_of(o, step->in[k]);
    for (uint32_t k = 0; k < step->nout; k++) o->fixed[step->out[k]] = true;
  }
  for (uint32_t c = 0; c < program->candidates; c++) {
    const bb_graph *graph = program->candidate[c].graph;
    for (uint32_t k = 0; k < graph->ninputs + graph->noutputs; k++) {
      uint32_t n = k < graph->ninputs ? graph->input[k] : graph->output[k - graph->ninputs];
      const bb_node *node = bb_node_get(graph, n);
      if (!node->access) o->fixed[node->tensor] = true;
      for (uint32_t p = 0; node->access && p < node->access->count; p++)
        if (reads_dim_twice(&node->access->piece[p]))
          o->fixed[node->access->piece[p].source] = true;
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

static void lay_locals(bb_program *program, bb_arena *scratch) {
  order o = {.program = program, .tensors = program->tensors};
  o.last = BB_NEW(scratch, uint32_t, o.tensors + 1);
  o.fixed = BB_NEW(scratch, bool, o.tensors + 1);
  for (uint32_t t = 0; t < o.tensors; t++) o.last[t] = BB_NONE;
  find_fixed(&o);
  for (uint32_t c = 0; c < program->candidates; c++) {
    const bb_graph *graph = program->candidate[c].graph;
    if (!has_product(graph)) continue;
    for (uint32_t i = 0; i < graph->ninputs; i++)
      look_at_product(&o, bb_node_get(graph, graph->input[i]));
  }
  for (uint32_t c = program->candidates; c-- > 0;)
    if (is_pointwise(program->candidate[c].graph)) look_at_copy(&o, program->candidate[c].graph);
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

/* --- both --- */

void bb_lay(bb_program *program) {
  layer l = {.program = program, .scratch = bb_scratch(program->ctx)};
  l.made = bb_carving_start(program, "c");
  for (uint32_t i = 0; i < program->candidates; i++) {
    bb_candidate *candidate = &program->candidate[i];
    if (!candidate->once && has_product(candidate->graph)) lay_inputs(&l, candidate->graph);
  }
  if (l.count) follow(&l);
  lay_locals(program, l.scratch);
  bb_scratch_end(l.scratch);
}
