/* verify.c - the laws of whole programs: tensors, stages, candidates, steps.  The laws themselves
 * are listed in law.def; those of levels are checked in verify_graph.c, of accesses in
 * verify_access.c, of array programs in verify_array.c.
 */
#include "verify_law.h"

#include <string.h>

static const char *const law_names[] = {
#define BB_LAW(id, name, text) [BB_LAW_##id] = name,
#include "law.def"
#undef BB_LAW
};

static const char *const law_texts[] = {
#define BB_LAW(id, name, text) [BB_LAW_##id] = text,
#include "law.def"
#undef BB_LAW
};

const char *bb_law_name(bb_law law) {
  return law_names[law];
}

/* --- messages --- */

static const char *dim_name(const bb_program *program, bb_dim dim) {
  return dim < program->dims ? program->dim[dim].name : "?";
}

static void put_node(bb_buffer *out, const bb_program *program, const bb_node *node) {
  bb_put(out, "node %u (", node->serial);
  switch (node->kind) {
  case BB_NODE_INPUT: bb_put(out, "input"); break;
  case BB_NODE_OUTPUT: bb_put(out, "output"); break;
  case BB_NODE_FUNC: bb_put(out, "%s", bb_op_get(node->op)->name); break;
  case BB_NODE_MAP: bb_put(out, "map over %s", dim_name(program, node->dim)); break;
  case BB_NODE_REDUCE: bb_put(out, "reduce %s", node->monoid ? node->monoid->name : "?"); break;
  case BB_NODE_VIEW: bb_put(out, "view"); break;
  case BB_NODE_MISC: bb_put(out, "misc %s", node->misc ? node->misc->op : "?"); break;
  case BB_NODE_REMOVED: bb_put(out, "removed"); break;
  }
  if (node->kind != BB_NODE_MAP && node->tensor < program->tensors)
    bb_put(out, " %s", program->tensor[node->tensor].name);
  if (node->name) bb_put(out, ", from %s", node->name);
  bb_put(out, ")");
}

bool bb_law_broken(bb_verifier *v, bb_law law, bb_place place, const char *format, ...) {
  bb_buffer out = {.arena = v->scratch};
  if (place.node) put_node(&out, v->program, place.node);
  if (place.text) bb_put(&out, "%s%s", place.node ? " " : "", place.text);
  if (place.node && place.port != BB_NONE)
    bb_put(&out, " port %s %u", place.out ? "out" : "in", place.port);
  bb_put(&out, ": law %s: ", law_names[law]);
  va_list arguments;
  va_start(arguments, format);
  bb_put_vprintf(&out, format, arguments);
  va_end(arguments);
  bb_put(&out, " (%s)", law_texts[law]);
  v->message = out.data;
  return false;
}

/* --- tensors --- */

static bool check_dims(bb_verifier *v) {
  const bb_program *program = v->program;
  for (bb_dim i = 0; i < program->dims; i++) {
    if (program->dim[i].extent) continue;
    const char *text = bb_arena_printf(v->scratch, "dim %s", program->dim[i].name);
    return bb_law_broken(v, BB_LAW_STAGE, (bb_place){.text = text}, "it has no extent");
  }
  return true;
}

static const bb_extent *product(const bb_program *program, uint32_t count,
                                const bb_extent *const *extent) {
  bb_program *tables = (bb_program *)program; /* interns extents: nothing that a reader sees */
  const bb_extent *all = bb_extent_number(tables, 1);
  for (uint32_t i = 0; i < count; i++) all = bb_extent_multiply(tables, all, extent[i]);
  return all;
}

static bool check_tensor(bb_verifier *v, const bb_tensor *tensor) {
  const bb_program *program = v->program;
  bb_place place = {.text = bb_arena_printf(v->scratch, "tensor %s", tensor->name)};
  const bb_extent **axis = BB_NEW(v->scratch, const bb_extent *, tensor->axes);
  for (uint32_t i = 0; i < tensor->axes; i++) {
    if (tensor->axis[i] >= program->dims)
      return bb_law_broken(v, BB_LAW_TENSOR_AXES, place, "axis %u has no dim", i);
    axis[i] = program->dim[tensor->axis[i]].extent;
  }
  for (uint32_t i = 0; i < tensor->rank; i++)
    if (!tensor->shape[i])
      return bb_law_broken(v, BB_LAW_TENSOR_AXES, place, "axis %u of the shape has no extent", i);
  const bb_extent *elements = product(program, tensor->rank, tensor->shape);
  if (elements != product(program, tensor->axes, axis))
    return bb_law_broken(v, BB_LAW_TENSOR_AXES, place,
                         "its dims hold another number of elements than its shape");
  if (tensor->role != BB_TENSOR_CONSTANT) return true;
  if (!tensor->data) return bb_law_broken(v, BB_LAW_TENSOR_ROLE, place, "a constant without data");
  int64_t count = bb_extent_value(elements);
  if (count < 0 || (uint64_t)count != tensor->bytes / bb_dtype_bytes(tensor->dtype) ||
      tensor->bytes % bb_dtype_bytes(tensor->dtype))
    return bb_law_broken(v, BB_LAW_TENSOR_DATA, place, "%zu bytes of data for %lld elements",
                         tensor->bytes, (long long)count);
  return true;
}

static bool check_tensors(bb_verifier *v) {
  if (!check_dims(v)) return false;
  for (uint32_t i = 0; i < v->program->tensors; i++)
    if (!check_tensor(v, &v->program->tensor[i])) return false;
  return true;
}

/* --- which tensors are stored --- */

/* Marks the tensors that a block program stores. */
static void mark_stored(const bb_program *program, const bb_graph *graph, bool *stored) {
  for (uint32_t i = 0; i < graph->noutputs; i++) {
    const bb_node *node = graph->node[graph->output[i]];
    for (uint32_t k = 0; node->access && k < node->access->count; k++)
      if (node->access->piece[k].source < program->tensors)
        stored[node->access->piece[k].source] = true;
  }
}

static bool check_outputs(bb_verifier *v, const bool *stored) {
  for (uint32_t i = 0; i < v->program->tensors; i++) {
    const bb_tensor *tensor = &v->program->tensor[i];
    if (tensor->role != BB_TENSOR_OUTPUT || stored[i]) continue;
    bb_place place = {.text = bb_arena_printf(v->scratch, "output %s", tensor->name)};
    return bb_law_broken(v, BB_LAW_OUTPUTS, place, "nothing stores it");
  }
  return true;
}

/* --- candidates and steps --- */

static bool check_candidate_graph(bb_verifier *v, const bb_graph *graph) {
  for (uint32_t i = 0; i < graph->count; i++) {
    const bb_node *node = graph->node[i];
    if (node->kind == BB_NODE_VIEW || node->kind == BB_NODE_MISC)
      return bb_law_broken(v, BB_LAW_CANDIDATE_KINDS, (bb_place){.node = node, .port = BB_NONE},
                           "it stands in a candidate");
  }
  return bb_verify_levels(v, graph);
}

static bool check_candidate(bb_verifier *v, const bb_candidate *candidate) {
  bb_place place = {.text = bb_arena_printf(v->scratch, "candidate %s", candidate->name)};
  bool fused = v->program->stage == BB_STAGE_FUSED;
  if (!candidate->graph) return bb_law_broken(v, BB_LAW_STAGE, place, "it has no graph");
  if (fused && (candidate->snapshots == 0 || candidate->chosen >= candidate->snapshots))
    return bb_law_broken(v, BB_LAW_CHOSEN, place, "%u snapshots, snapshot %u chosen",
                         candidate->snapshots, candidate->chosen);
  if (!check_candidate_graph(v, candidate->graph)) return false;
  for (uint32_t i = 0; i < candidate->snapshots; i++) {
    const bb_graph *graph = candidate->snapshot[i].graph;
    if (!graph) return bb_law_broken(v, BB_LAW_STAGE, place, "snapshot %u has no graph", i);
    bool before = graph == candidate->graph || (i && graph == candidate->snapshot[i - 1].graph);
    if (!before && !check_candidate_graph(v, graph)) return false;
    const bb_graph *safe = candidate->snapshot[i].safe;
    if (safe && !check_candidate_graph(v, safe)) return false;
  }
  return true;
}

typedef struct plan {
  bb_verifier *v;
  bool *stored; /* by tensor: bound by the caller, constant, or computed by now */
  bool *run;    /* by candidate */
} plan;

static bool is_there(const plan *p, const bb_access *access) {
  for (uint32_t k = 0; access && k < access->count; k++) {
    uint32_t source = access->piece[k].source;
    if (source >= p->v->program->tensors || !p->stored[source]) return false;
  }
  return true;
}

static bool check_run(plan *p, bb_place place, const bb_step *step) {
  const bb_program *program = p->v->program;
  if (step->candidate >= program->candidates)
    return bb_law_broken(p->v, BB_LAW_STEPS, place, "there is no candidate %u", step->candidate);
  if (p->run[step->candidate])
    return bb_law_broken(p->v, BB_LAW_STEPS, place, "candidate %u runs twice", step->candidate);
  p->run[step->candidate] = true;
  const bb_graph *graph = program->candidate[step->candidate].graph;
  for (uint32_t i = 0; i < graph->ninputs; i++) {
    const bb_node *input = graph->node[graph->input[i]];
    if (!is_there(p, input->access))
      return bb_law_broken(p->v, BB_LAW_STEP_ORDER, (bb_place){input, BB_NONE, false, place.text},
                           "its tensor is not there yet");
  }
  mark_stored(program, graph, p->stored);
  mark_stored(program, bb_candidate_runs(&program->candidate[step->candidate]), p->stored);
  return true;
}

static bool check_misc_step(plan *p, bb_place place, const bb_step *step) {
  if (!step->misc) return bb_law_broken(p->v, BB_LAW_STEPS, place, "it runs nothing");
  for (uint32_t i = 0; i < step->nin; i++)
    if (!is_there(p, step->in[i]))
      return bb_law_broken(p->v, BB_LAW_STEP_ORDER, place, "operand %u is not there yet", i);
  for (uint32_t i = 0; i < step->nout; i++)
    if (step->out[i] < p->v->program->tensors) p->stored[step->out[i]] = true;
  return true;
}

static bool check_plan(bb_verifier *v) {
  const bb_program *program = v->program;
  plan p = {.v = v};
  p.stored = BB_NEW(v->scratch, bool, program->tensors);
  p.run = BB_NEW(v->scratch, bool, program->candidates);
  for (uint32_t i = 0; i < program->tensors; i++)
    p.stored[i] =
        program->tensor[i].role == BB_TENSOR_INPUT || program->tensor[i].role == BB_TENSOR_CONSTANT;
  for (uint32_t i = 0; i < program->steps; i++) {
    const bb_step *step = &program->step[i];
    bb_place place = {.text = bb_arena_printf(v->scratch, "step %u", i)};
    bool holds =
        step->candidate == BB_NONE ? check_misc_step(&p, place, step) : check_run(&p, place, step);
    if (!holds) return false;
  }
  for (uint32_t i = 0; i < program->candidates; i++) {
    if (p.run[i]) continue;
    bb_place place = {.text =
                          bb_arena_printf(v->scratch, "candidate %s", program->candidate[i].name)};
    return bb_law_broken(v, BB_LAW_STEPS, place, "no step runs it");
  }
  return check_outputs(v, p.stored);
}

/* --- stages --- */

static bool check_block_stage(bb_verifier *v) {
  const bb_program *program = v->program;
  if (!program->root)
    return bb_law_broken(v, BB_LAW_STAGE, (bb_place){.text = "program"},
                         "a block program without its root");
  if (!bb_verify_levels(v, program->root)) return false;
  bool *stored = BB_NEW(v->scratch, bool, program->tensors);
  mark_stored(program, program->root, stored);
  return check_outputs(v, stored);
}

static bool check_program(bb_verifier *v) {
  const bb_program *program = v->program;
  if (program->stage == BB_STAGE_ARRAY) return check_dims(v) && bb_verify_array(v);
  if (!check_tensors(v)) return false;
  if (program->stage == BB_STAGE_BLOCK) return check_block_stage(v);
  for (uint32_t i = 0; i < program->candidates; i++)
    if (!check_candidate(v, &program->candidate[i])) return false;
  return check_plan(v);
}

/* --- entry points --- */

const char *bb_verify_graph(const bb_program *program, const bb_graph *root, bb_arena *scratch) {
  bb_verifier v = {.program = program, .scratch = scratch};
  bb_verify_levels(&v, root);
  return v.message;
}

const char *bb_verify_program(const bb_program *program, bb_arena *scratch) {
  bb_verifier v = {.program = program, .scratch = scratch};
  check_program(&v);
  return v.message;
}

void bb_verify_or_fail(const bb_program *program, const bb_graph *root, const char *after,
                       bool always) {
  bb_context *ctx = program->ctx;
  if (!ctx->verify && !always) return;
  bb_arena *scratch = bb_scratch(ctx);
  const char *broken = bb_verify_graph(program, root, scratch);
  if (broken) bb_fail(ctx, BB_ERROR_INTERNAL, "after %s: %s", after, broken);
  bb_scratch_end(scratch);
}
