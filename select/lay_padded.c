/* lay_padded.c - what windows see of a padded array is read where the array lies.
 *
 *     P[h,w] = x[h - 1, w - 1], else 0      then P[i + e, j + f]     ==>     x[i + e - 1, j + f - 1], else 0
 *
 * The flow of values has such an array brought together (flow.c).  A GPU's copy engine and its threads ask at no cost
 * whether an element is there, and the copy takes as long as a product does.
 */
#include "lay.h"

typedef struct reading {
  bb_program *program;
  bb_arena *scratch;
  const bool *fixed; /* bb_lay_find_fixed() */
  bool *gone;        /* by candidate */
} reading;

/* The levels of the copied value in the order of the axes of the tensor that holds it; NULL: it does not hold them one by one. */
static const bb_type *type_as_stored(const reading *r, const bb_node *output, const bb_type *type) {
  const bb_piece *piece = &output->access->piece[0];
  if (output->access->joined != BB_NO_DIM || piece->rank != type->rank) return NULL;
  bb_level *level = BB_NEW(r->scratch, bb_level, type->rank);
  for (uint32_t i = 0; i < piece->rank; i++) {
    if (piece->index[i].kind != BB_INDEX_DIM) return NULL;
    for (uint32_t k = 0; k < i; k++)
      if (level[k].dim == piece->index[i].dim) return NULL;
    level[i] = (bb_level){piece->index[i].dim, BB_AXIS_NONE};
  }
  return bb_type_make(r->program, (bb_item){type->item.dtype, BB_NO_DIM, BB_NO_DIM}, type->rank,
                      level);
}

/* Can lowering read so?  Taps are told one by one, and where blocks take every n-th place, the axis has a multiple of n. */
static bool can_read(const reading *r, const bb_piece *piece, const bb_type *type) {
  const bb_tensor *tensor = &r->program->tensor[piece->source];
  for (uint32_t i = 0; i < piece->rank; i++) {
    const bb_index *index = &piece->index[i];
    if (index->kind != BB_INDEX_RANGE && index->kind != BB_INDEX_WINDOW) continue;
    bool window = index->kind == BB_INDEX_WINDOW;
    if (window && bb_lay_axis_over(type, index->tap) != BB_AXIS_NONE) return false;
    if (bb_lay_axis_over(type, index->dim) == BB_AXIS_NONE || index->step == 1) continue;
    int64_t extent = bb_extent_value(bb_dim_get(r->program, tensor->axis[i])->extent);
    if (index->step < 1 || extent < 0 || extent % index->step || (window && index->by < 0))
      return false;
  }
  return true;
}

/* What a candidate reads of the copy, of what was copied; NULL: it cannot. */
static const bb_access *read_through(const reading *r, const bb_node *user, const bb_type *type,
                                     const bb_access *copied) {
  if (user->access->joined != BB_NO_DIM) return NULL;
  bb_piece outer = user->access->piece[0];
  outer.source = 0;
  const bb_access view = {.joined = BB_NO_DIM, .count = 1, .piece = &outer};
  const bb_access *made = bb_access_compose(r->program, r->scratch, &view, &type, &copied);
  if (!made || made->joined != BB_NO_DIM || !can_read(r, &made->piece[0], user->out[0].type))
    return NULL;
  return bb_access_make(r->program, made);
}

static bool names(const bb_access *access, uint32_t tensor) {
  for (uint32_t p = 0; access && p < access->count; p++)
    if (access->piece[p].source == tensor) return true;
  return false;
}

/* Gives those who read a tensor what was copied into it.  True: nobody reads it any more. */
static bool give_source(reading *r, uint32_t tensor, const bb_type *type, const bb_access *copied) {
  bool all = true;
  for (uint32_t c = 0; c < r->program->candidates; c++) {
    bb_graph *graph = r->program->candidate[c].graph;
    for (uint32_t i = 0; i < graph->ninputs; i++) {
      bb_node *user = graph->node[graph->input[i]];
      if (!names(user->access, tensor)) continue;
      /* A product asks for the order that a copy gives it. */
      bool apart = r->fixed[copied->piece[0].source] && bb_lay_has_product(graph);
      const bb_access *access = apart ? NULL : read_through(r, user, type, copied);
      all &= access != NULL;
      if (!access) continue;
      user->access = access;
      user->tensor = access->piece[0].source;
    }
  }
  return all;
}

static bool is_read_by_misc(const reading *r, uint32_t tensor) {
  for (uint32_t s = 0; s < r->program->steps; s++)
    for (uint32_t k = 0; k < r->program->step[s].nin; k++)
      if (names(r->program->step[s].in[k], tensor)) return true;
  return false;
}

/* A candidate that copies a padded array. */
static void look_at(reading *r, uint32_t c) {
  const bb_graph *graph = r->program->candidate[c].graph;
  if (!bb_graph_is_copy(graph)) return;
  const bb_node *input = bb_node_get(graph, graph->input[0]);
  const bb_node *output = bb_node_get(graph, graph->output[0]);
  const bb_access *access = input->access;
  if (!access || access->joined != BB_NO_DIM || !access->piece[0].padded || !output->access ||
      r->program->tensor[output->tensor].role != BB_TENSOR_LOCAL)
    return;
  const bb_type *type = type_as_stored(r, output, input->out[0].type);
  if (!type || is_read_by_misc(r, output->tensor)) return;
  r->gone[c] = give_source(r, output->tensor, type, access);
}

/* The program without the candidates that are gone. */
static void drop(const reading *r) {
  bb_program *program = r->program;
  bb_carving made = bb_carving_start(program, "c");
  uint32_t *number = BB_NEW(r->scratch, uint32_t, program->candidates + 1);
  for (uint32_t c = 0; c < program->candidates; c++) {
    if (r->gone[c]) continue;
    BB_GROW(program->arena, made.candidate, made.candidate_capacity, (size_t)made.candidates + 1);
    made.candidate[made.candidates] = program->candidate[c];
    number[c] = made.candidates++;
  }
  for (uint32_t s = 0; s < program->steps; s++) {
    bb_step step = program->step[s];
    if (step.candidate != BB_NONE && r->gone[step.candidate]) continue;
    if (step.candidate != BB_NONE) step.candidate = number[step.candidate];
    BB_GROW(program->arena, made.step, made.step_capacity, (size_t)made.steps + 1);
    made.step[made.steps++] = step;
  }
  bb_carving_install(program, &made);
}

void bb_lay_padded(bb_program *program, bb_arena *scratch) {
  reading r = {.program = program, .scratch = scratch};
  r.fixed = bb_lay_find_fixed(program, scratch);
  r.gone = BB_NEW(scratch, bool, program->candidates + 1);
  bool any = false;
  for (uint32_t c = 0; c < program->candidates; c++) {
    look_at(&r, c);
    any |= r.gone[c];
  }
  if (any) drop(&r);
}
