/* safe.c - kernels made safe, all of a program together.
 *
 * A local tensor may carry pairs if one kernel stores it and only kernels read it, each by itself: a
 * misc node and a view that joins several tensors or pads one read plain values.
 */
#include "select.h"

#include "../fuse/safety.h"

typedef struct users {
  bb_safety *safety;
  const bb_program *program;
  uint8_t *writers; /* by tensor, up to 2 */
  bool *plain;      /* read as plain values */
} users;

static void note_access(users *u, const bb_access *access, bool plain) {
  for (uint32_t i = 0; access && i < access->count; i++)
    if (plain || access->count > 1 || access->piece[i].padded)
      u->plain[access->piece[i].source] = true;
}

static void note_kernel(users *u, const bb_graph *graph) {
  for (uint32_t i = 0; i < graph->ninputs; i++)
    note_access(u, graph->node[graph->input[i]]->access, false);
  for (uint32_t i = 0; i < graph->noutputs; i++) {
    const bb_node *node = graph->node[graph->output[i]];
    note_access(u, node->access, false);
    if (u->writers[node->tensor] < 2) u->writers[node->tensor]++;
  }
}

static users find_users(const bb_program *program, bb_arena *scratch) {
  users u = {.program = program};
  u.writers = BB_NEW(scratch, uint8_t, program->tensors);
  u.plain = BB_NEW(scratch, bool, program->tensors);
  for (uint32_t i = 0; i < program->steps; i++) {
    const bb_step *step = &program->step[i];
    if (step->candidate != BB_NONE)
      note_kernel(&u, bb_candidate_runs(&program->candidate[step->candidate]));
    for (uint32_t k = 0; step->candidate == BB_NONE && k < step->nin; k++)
      note_access(&u, step->in[k], true);
  }
  return u;
}

static bool any_exp(bb_program *program) {
  for (uint32_t i = 0; i < program->candidates; i++)
    if (bb_graph_has_exp(program, bb_candidate_runs(&program->candidate[i]))) return true;
  return false;
}

/* The graph made safe; NULL: as it is; *refused: it cannot be. */
static bb_graph *made_safe(bb_program *program, bb_safety *safety, bb_graph *graph, bool *refused) {
  bb_arena *scratch = program->levels = bb_scratch(program->ctx);
  bb_graph *safe = bb_safety_make(safety, graph);
  *refused = !safe;
  safe = safe && safe != graph ? bb_graph_keep(safe) : NULL;
  program->levels = program->arena;
  bb_scratch_end(scratch);
  return safe;
}

static const char *explained(bb_program *program, bb_safety *safety, const bb_graph *graph) {
  bb_buffer out = {.arena = bb_scratch(program->ctx)};
  bb_safety_explain(safety, graph, &out);
  const char *lines =
      out.length ? bb_arena_printf(program->arena, "%.*s", (int)out.length, out.data) : NULL;
  bb_scratch_end(out.arena);
  return lines;
}

/* Only what runs is rebuilt together with its neighbours.  A snapshot that cannot be made safe gives way
 * to one that can: all of them compute the same, the earlier ones by plainer loops.  False: none can. */
static bool make_safe(bb_program *program, bb_safety *safety, bb_candidate *kernel) {
  bool refused;
  if (kernel->chosen == BB_NONE || kernel->chosen >= kernel->snapshots) {
    kernel->safe = made_safe(program, safety, kernel->graph, &refused);
    return !refused;
  }
  bb_snapshot *snapshot = &kernel->snapshot[kernel->chosen];
  kernel->exps = explained(program, safety, snapshot->graph);
  snapshot->safe = made_safe(program, safety, snapshot->graph, &refused);
  for (uint32_t k = kernel->snapshots; refused && k-- > 0;) {
    if (k == kernel->chosen) continue;
    bb_safety_learn(safety, kernel->snapshot[k].graph);
    bb_graph *safe = made_safe(program, safety, kernel->snapshot[k].graph, &refused);
    if (refused) continue;
    kernel->snapshot[k].safe = safe;
    kernel->exps = explained(program, safety, kernel->snapshot[k].graph);
    kernel->chosen = k;
    bb_log(program->ctx, BB_LOG_INFO, "%s: snapshot %u runs, being safe", kernel->name, k);
  }
  return !refused;
}

bool bb_make_kernels_safe(bb_program *program) {
  if (!any_exp(program)) return true;
  bb_arena *scratch = bb_scratch(program->ctx);
  bb_safety *safety = bb_safety_create(program, scratch);
  users u = find_users(program, scratch);
  uint32_t tensors = program->tensors;
  for (uint32_t t = 0; t < tensors; t++)
    if (program->tensor[t].role == BB_TENSOR_LOCAL && u.writers[t] == 1 && !u.plain[t])
      bb_safety_carry(safety, t);
  for (uint32_t i = 0; i < program->steps; i++)
    if (program->step[i].candidate != BB_NONE)
      bb_safety_learn(safety, bb_candidate_runs(&program->candidate[program->step[i].candidate]));
  bool safe = true;
  for (uint32_t i = 0; i < program->steps; i++)
    if (program->step[i].candidate != BB_NONE)
      safe &= make_safe(program, safety, &program->candidate[program->step[i].candidate]);
  bb_scratch_end(scratch);
  return safe;
}
