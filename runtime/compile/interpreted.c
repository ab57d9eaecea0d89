/* interpreted.c - candidates that have no kernel, in a compiled model: as steps that hold their block program
 * as text, and what runs those.
 *
 * A session reads the text into a context of its own, so that sessions of one model share nothing that
 * changes, and the program that was compiled may be destroyed.
 */
#include "plan_maker.h"

#include "../../graph/text.h"

#include <string.h>

/* --- making --- */

typedef struct sides {
  bool *read, *written;
} sides;

static bool is_all(const bb_access *access) {
  const bb_piece *piece = &access->piece[0];
  bool all = access->count == 1 && access->joined == BB_NO_DIM;
  for (uint32_t i = 0; all && i < piece->rank; i++) all = piece->index[i].kind == BB_INDEX_DIM;
  return all;
}

/* What it leaves of an array that it writes in part has to be there when all of it is stored: it is read, too. */
static sides sides_of(const bb_maker *m, const bb_graph *graph) {
  sides s = {BB_NEW(m->arena, bool, m->program->tensors + 1),
             BB_NEW(m->arena, bool, m->program->tensors + 1)};
  for (uint32_t i = 0; i < graph->ninputs; i++) {
    const bb_access *access = bb_node_get(graph, graph->input[i])->access;
    for (uint32_t k = 0; k < access->count; k++) s.read[access->piece[k].source] = true;
  }
  for (uint32_t i = 0; i < graph->noutputs; i++) {
    const bb_access *access = bb_node_get(graph, graph->output[i])->access;
    for (uint32_t k = 0; k < access->count; k++) {
      s.written[access->piece[k].source] = true;
      s.read[access->piece[k].source] |= !is_all(access);
    }
  }
  return s;
}

/* The candidate as a program of its own: what it reads are its inputs, constants among them, what it
 * writes its outputs; a tensor that is both is an output, and `once`. */
static const char *text_of(const bb_maker *m, bb_graph *graph, const sides *s) {
  bb_program alone = *m->program;
  alone.stage = BB_STAGE_BLOCK;
  alone.root = graph;
  alone.symbols = m->plan->extents;
  alone.tensor = BB_NEW(m->arena, bb_tensor, alone.tensors + 1);
  for (uint32_t t = 0; t < alone.tensors; t++) {
    bb_tensor *tensor = &alone.tensor[t];
    *tensor = m->program->tensor[t];
    tensor->name = "";
    tensor->data = NULL;
    tensor->role = s->written[t] ? BB_TENSOR_OUTPUT
                   : s->read[t]  ? BB_TENSOR_INPUT
                                 : BB_TENSOR_LOCAL;
    tensor->once = s->written[t] && s->read[t];
  }
  bb_buffer out = {.arena = m->arena};
  bb_text_print(&out, &alone, NULL);
  return out.data;
}

void bb_maker_interpreted(bb_maker *m, const bb_candidate *candidate, bb_plan_step *step) {
  bb_graph *graph = bb_candidate_runs(candidate);
  sides s = sides_of(m, graph);
  step->kernel = BB_NONE;
  step->program = text_of(m, graph, &s);
  bb_plan_operand *in = BB_NEW(m->arena, bb_plan_operand, m->program->tensors + 1);
  bb_plan_operand *out = BB_NEW(m->arena, bb_plan_operand, m->program->tensors + 1);
  for (uint32_t t = 0; t < m->program->tensors; t++) {
    if (s.read[t]) bb_maker_whole(m, t, &in[step->nin++]);
    if (s.written[t]) bb_maker_whole(m, t, &out[step->nout++]);
  }
  step->in = in;
  step->out = out;
}

/* --- running --- */

struct bb_interpreted {
  bb_program *program;
};

static bb_interpreted *open(bb_context *ctx, const char *text) {
  bb_program *program = bb_text_parse(ctx, "an interpreted step", text, strlen(text));
  bb_program_defer(program);
  bb_interpreted *step = BB_NEW(program->arena, bb_interpreted, 1);
  step->program = program;
  program->candidate = BB_NEW(program->arena, bb_candidate, 1);
  program->candidate[program->candidates++] =
      (bb_candidate){.name = "", .graph = program->root, .chosen = BB_NONE};
  bb_undefer(ctx, program);
  return step;
}

static void close(bb_interpreted *step) {
  bb_program_destroy(step->program);
}

static void run(bb_interpreted *step, bb_arena *arena, const int64_t *symbol,
                const bb_misc_value *in, bb_misc_value *out) {
  const bb_program *p = step->program;
  bb_interp_tensor *tensor = BB_NEW(arena, bb_interp_tensor, p->tensors + 1);
  for (uint32_t t = 0; t < p->tensors; t++)
    if (p->tensor[t].role == BB_TENSOR_INPUT || p->tensor[t].once) {
      tensor[t] = (bb_interp_tensor){in->data, (size_t)in->shape[0]};
      in++;
    }
  bb_interp_options options = {.symbol = symbol};
  bb_interp_step(p, &(bb_step){.candidate = 0}, &options, tensor, arena, NULL);
  for (uint32_t t = 0; t < p->tensors; t++)
    if (p->tensor[t].role == BB_TENSOR_OUTPUT) (out++)->data = tensor[t].data;
}

const bb_interpreter bb_interpreter_of_steps = {open, run, close};
