/* lay_constants.c - constants whose neighbours in memory are neither in a row nor in a column of the blocks that are read.
 *
 * A convolution's weights have their taps last, and its products read channels, a tap at a time.  Such a constant is copied
 * once, at load, into the order in which its candidate lists it: enumerated dims, rows, columns.
 */
#include "lay.h"

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

static bool has_dim_twice(const bb_type *type) {
  for (uint32_t i = 0; i < type->rank; i++)
    for (uint32_t k = 0; k < i; k++)
      if (type->level[i].dim == type->level[k].dim) return true;
  return false;
}

/* Of a constant, blocks or vectors whose neighbours in memory are neither in a row nor in a column of them? */
static bool is_across(const bb_program *program, const bb_node *input) {
  const bb_tensor *tensor = &program->tensor[input->tensor];
  const bb_type *type = input->out[0].type;
  const bb_access *access = input->access;
  bool scalar = type->item.row == BB_NO_DIM && type->item.col == BB_NO_DIM;
  if (scalar || !access || access->joined != BB_NO_DIM || tensor->axes == 0) return false;
  if (tensor->role != BB_TENSOR_CONSTANT && !tensor->once) return false;
  if (has_dim_twice(type)) return false;
  for (uint32_t a = 0; a < tensor->axes; a++) /* what windows see is several times what is there */
    if (access->piece[0].index[a].kind == BB_INDEX_WINDOW) return false;
  const bb_index *last = &access->piece[0].index[tensor->axes - 1];
  return last->kind == BB_INDEX_FIXED || bb_lay_axis_over(type, last->dim) == BB_AXIS_NONE;
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

void bb_lay_constants(bb_program *program, bb_arena *scratch) {
  layer l = {.program = program, .scratch = scratch};
  l.made = bb_carving_start(program, "c");
  for (uint32_t i = 0; i < program->candidates; i++) {
    bb_candidate *candidate = &program->candidate[i];
    if (!candidate->once) lay_inputs(&l, candidate->graph);
  }
  if (l.count) follow(&l);
}
