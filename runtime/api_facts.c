/* api_facts.c - the public calls that count what a program consists of.
 */
#include "api.h"

#include "../graph/array/array.h"
#include "../graph/hash.h"
#include "compile/plan_make.h"

#include <string.h>

uint32_t bb_api_kernels(const bb_graph *graph) {
  uint32_t maps = 0, others = 0;
  for (uint32_t i = 0; i < graph->count; i++) {
    bb_kind kind = graph->node[i]->kind;
    maps += kind == BB_NODE_MAP;
    others += kind == BB_NODE_FUNC || kind == BB_NODE_REDUCE;
  }
  return maps ? maps : others > 0; /* functions of single items need no loop but a kernel */
}

/* A copy that counts elements anew computes nothing. */
static bool is_misc(const bb_node *node) {
  return node->kind == BB_NODE_MISC && !bb_misc_is_copy(node->misc);
}

/* Does a reference kernel run in every run? */
static bool runs_as_misc(const bb_program *program, const bb_step *step) {
  if (step->candidate != BB_NONE) return false;
  return !bb_step_is_renaming(program, step) &&
         !(bb_misc_is_copy(step->misc) && program->tensor[step->out[0]].once);
}

static bool is_operator(const bb_node *node) {
  return node->kind == BB_NODE_FUNC || node->kind == BB_NODE_MAP || node->kind == BB_NODE_REDUCE ||
         is_misc(node);
}

static uint32_t operators(const bb_graph *graph) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < graph->count; i++) count += is_operator(graph->node[i]);
  return count;
}

/* Functions and reductions, those inside loops included. */
static uint32_t operations_inside(const bb_graph *graph) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < graph->count; i++) {
    const bb_node *node = graph->node[i];
    count += node->kind == BB_NODE_FUNC || node->kind == BB_NODE_REDUCE;
    if (node->kind == BB_NODE_MAP) count += operations_inside(node->inner);
  }
  return count;
}

static const bb_graph *chosen_graph(const bb_candidate *candidate) {
  if (candidate->chosen == BB_NONE) return candidate->graph;
  return candidate->snapshot[candidate->chosen].graph;
}

static void count_arrays(const bb_array *array, bb_program_info *info) {
  info->inputs = array->inputs;
  info->outputs = array->outputs;
  for (uint32_t i = 0; i < array->values; i++) {
    const bb_array_value *value = &array->value[i];
    if (!value->data) continue;
    info->constants++;
    info->constant_bytes += value->bytes;
  }
  for (uint32_t i = 0; i < array->nodes; i++) {
    if (array->node[i].removed) continue;
    info->nodes++;
    info->misc += array->node[i].op == BB_A_MISC;
  }
}

static void count_tensors(const bb_program *program, bb_program_info *info) {
  for (uint32_t i = 0; i < program->tensors; i++) {
    const bb_tensor *tensor = &program->tensor[i];
    info->inputs += tensor->role == BB_TENSOR_INPUT;
    info->outputs += tensor->role == BB_TENSOR_OUTPUT;
    if (tensor->role != BB_TENSOR_CONSTANT) continue;
    info->constants++;
    info->constant_bytes += tensor->bytes;
  }
}

static void count_root(const bb_graph *root, bb_program_info *info) {
  info->nodes = operators(root);
  for (uint32_t i = 0; i < root->count; i++) info->misc += is_misc(root->node[i]);
}

static void count_candidates(const bb_program *program, bb_program_info *info) {
  info->candidates = program->candidates;
  for (uint32_t i = 0; i < program->steps; i++)
    info->misc += runs_as_misc(program, &program->step[i]);
  info->nodes = info->misc;
  for (uint32_t i = 0; i < program->candidates; i++) {
    const bb_candidate *candidate = &program->candidate[i];
    info->nodes += operators(candidate->graph);
    if (program->stage < BB_STAGE_FUSED) continue;
    uint32_t kernels = bb_api_kernels(chosen_graph(candidate));
    info->kernels += kernels;
    if (candidate->once) info->kernels_once += kernels;
  }
}

void bb_program_get_info(const bb_program *program, bb_program_info *info) {
  *info = (bb_program_info){.name = program->name, .stage = program->stage};
  if (program->stage == BB_STAGE_ARRAY) {
    count_arrays(program->array, info);
    return;
  }
  count_tensors(program, info);
  if (program->stage == BB_STAGE_BLOCK)
    count_root(program->root, info);
  else
    count_candidates(program, info);
  /* Fusion merges operators: while the unfused program is at hand, they are counted there. */
  if (program->stage <= BB_STAGE_BLOCK || !program->root) return;
  info->nodes = operators(program->root);
  for (uint32_t i = 0; i < program->steps; i++)
    info->nodes +=
        runs_as_misc(program, &program->step[i]) && bb_misc_is_copy(program->step[i].misc);
}

/* Does every function in the graph pass its operand on? */
static bool only_copies(const bb_graph *graph) {
  for (uint32_t i = 0; i < graph->count; i++) {
    const bb_node *node = graph->node[i];
    if (node->kind == BB_NODE_REDUCE) return false;
    if (node->kind == BB_NODE_MAP && !only_copies(node->inner)) return false;
    if (node->kind != BB_NODE_FUNC || node->op == BB_OP_TRANSPOSE) continue;
    if (node->op != BB_OP_ELEMENTWISE || node->expr->op != BB_X_ARG) return false;
  }
  return true;
}

bool bb_program_get_candidate(const bb_program *program, uint32_t index, bb_candidate_info *info) {
  if (program->stage < BB_STAGE_PARTITION || index >= program->candidates) return false;
  const bb_candidate *candidate = &program->candidate[index];
  *info = (bb_candidate_info){.name = candidate->name,
                              .once = candidate->once,
                              .copies = only_copies(candidate->graph),
                              .nodes = operations_inside(chosen_graph(candidate)),
                              .kernels = bb_api_kernels(chosen_graph(candidate)),
                              .snapshots = candidate->snapshots,
                              .chosen = candidate->chosen,
                              .safe = bb_candidate_runs(candidate) != chosen_graph(candidate),
                              .exps = candidate->exps};
  return true;
}

bool bb_program_get_snapshot(const bb_program *program, bb_graph_id id, bb_snapshot_info *info) {
  if (program->stage < BB_STAGE_FUSED || id.candidate >= program->candidates) return false;
  const bb_candidate *candidate = &program->candidate[id.candidate];
  uint32_t at = id.snapshot == BB_SNAPSHOT_CHOSEN ? candidate->chosen : id.snapshot;
  if (at >= candidate->snapshots) return false;
  const bb_snapshot *snapshot = &candidate->snapshot[at];
  *info = (bb_snapshot_info){snapshot->step, snapshot->operations, snapshot->buffered};
  return true;
}

typedef struct hash_call {
  const bb_program *program;
  char *text;
} hash_call;

static void hash_body(bb_context *ctx, void *argument) {
  const hash_call *call = argument;
  const bb_program *program = call->program;
  if (program->stage < BB_STAGE_BLOCK || !program->root)
    bb_fail(ctx, BB_ERROR_ARGUMENT, "the program does not have its unfused block program");
  bb_hash_text(bb_hash_graph(program, program->root), call->text);
}

bb_status bb_program_get_hash(const bb_program *program, char hash[33]) {
  hash_call call = {program, hash};
  return bb_protect(program->ctx, hash_body, &call);
}

/* --- a histogram of operators --- */

typedef struct tally {
  const char *op;
  uint32_t count;
  bool misc;
} tally;

typedef struct tallies {
  bb_arena *arena;
  uint32_t count, capacity;
  tally *at;
} tallies;

static void add(tallies *t, const char *op, bool misc) {
  for (uint32_t i = 0; i < t->count; i++) {
    if (t->at[i].misc != misc || strcmp(t->at[i].op, op) != 0) continue;
    t->at[i].count++;
    return;
  }
  BB_GROW(t->arena, t->at, t->capacity, (size_t)t->count + 1);
  t->at[t->count++] = (tally){op, 1, misc};
}

static void tally_array(tallies *t, const bb_array *array) {
  static const char *const names[] = {
#define BB_ARRAY_OP(id, name, description) [BB_A_##id] = name,
#include "../graph/array/array.def"
#undef BB_ARRAY_OP
  };
  for (uint32_t i = 0; i < array->nodes; i++) {
    const bb_array_node *node = &array->node[i];
    if (node->removed) continue;
    bool misc = node->op == BB_A_MISC;
    add(t, misc ? node->misc->op : names[node->op], misc);
  }
}

static void tally_graph(tallies *t, const bb_graph *graph) {
  for (uint32_t i = 0; i < graph->count; i++) {
    const bb_node *node = graph->node[i];
    if (node->kind == BB_NODE_FUNC) add(t, bb_op_get(node->op)->name, false);
    if (node->kind == BB_NODE_REDUCE) add(t, "reduce", false);
    if (node->kind == BB_NODE_VIEW) add(t, "view", false);
    if (is_misc(node)) add(t, node->misc->op, true);
    if (node->kind == BB_NODE_MAP) {
      add(t, "map", false);
      tally_graph(t, node->inner);
    }
  }
}

typedef struct visit_call {
  const bb_program *program;
  void (*op)(void *user, const char *op, uint32_t count, bool misc);
  void (*misc)(void *user, const char *node, const char *op);
  void *user;
} visit_call;

static void sort_tallies(tallies *t) {
  for (uint32_t i = 1; i < t->count; i++)
    for (uint32_t j = i; j > 0 && t->at[j - 1].count < t->at[j].count; j--) {
      tally swap = t->at[j];
      t->at[j] = t->at[j - 1];
      t->at[j - 1] = swap;
    }
}

static void ops_body(bb_context *ctx, void *argument) {
  const visit_call *call = argument;
  const bb_program *program = call->program;
  tallies t = {.arena = bb_scratch(ctx)};
  if (program->stage == BB_STAGE_ARRAY) tally_array(&t, program->array);
  if (program->stage == BB_STAGE_BLOCK) tally_graph(&t, program->root);
  if (program->stage >= BB_STAGE_PARTITION) {
    for (uint32_t i = 0; i < program->candidates; i++)
      tally_graph(&t, chosen_graph(&program->candidate[i]));
    for (uint32_t i = 0; i < program->steps; i++)
      if (runs_as_misc(program, &program->step[i])) add(&t, program->step[i].misc->op, true);
  }
  sort_tallies(&t);
  for (uint32_t i = 0; i < t.count; i++)
    call->op(call->user, t.at[i].op, t.at[i].count, t.at[i].misc);
  bb_scratch_end(t.arena);
}

bb_status bb_program_visit_ops(const bb_program *program,
                               void (*visit)(void *user, const char *op, uint32_t count, bool misc),
                               void *user) {
  visit_call call = {.program = program, .op = visit, .user = user};
  return bb_protect(program->ctx, ops_body, &call);
}

static void misc_body(bb_context *ctx, void *argument) {
  const visit_call *call = argument;
  const bb_program *program = call->program;
  (void)ctx;
  if (program->stage == BB_STAGE_ARRAY) {
    for (uint32_t i = 0; i < program->array->nodes; i++) {
      const bb_array_node *node = &program->array->node[i];
      if (!node->removed && node->op == BB_A_MISC)
        call->misc(call->user, node->name ? node->name : "", node->misc->op);
    }
  } else if (program->stage == BB_STAGE_BLOCK) {
    for (uint32_t i = 0; i < program->root->count; i++) {
      const bb_node *node = program->root->node[i];
      if (is_misc(node)) call->misc(call->user, node->name ? node->name : "", node->misc->op);
    }
  } else {
    for (uint32_t i = 0; i < program->steps; i++) {
      const bb_step *step = &program->step[i];
      if (runs_as_misc(program, step))
        call->misc(call->user, step->name ? step->name : "", step->misc->op);
    }
  }
}

bb_status bb_program_visit_misc(const bb_program *program,
                                void (*visit)(void *user, const char *node, const char *op),
                                void *user) {
  visit_call call = {.program = program, .misc = visit, .user = user};
  return bb_protect(program->ctx, misc_body, &call);
}
