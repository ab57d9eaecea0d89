/* text_parse_stage.c - the root, candidates with their snapshots, and steps, from text. */
#include "text_form.h"

#include <string.h>

void bb_read_root(bb_reader *r) {
  if (r->program->root) bb_read_fail(r, r->token.start, "a program has one root");
  bb_read_next(r);
  r->program->root = bb_read_graph(r);
}

/* --- candidates --- */

static bb_snapshot read_snapshot(bb_reader *r) {
  bb_snapshot snapshot = {.operations = -1, .buffered = -1};
  snapshot.step = bb_read_index(r, UINT32_MAX, "the step");
  if (bb_read_accept(r, "operations")) snapshot.operations = bb_read_double(r);
  if (bb_read_accept(r, "buffered")) snapshot.buffered = bb_read_double(r);
  snapshot.graph = bb_read_graph(r);
  if (bb_read_accept(r, "safe")) snapshot.safe = bb_read_graph(r);
  return snapshot;
}

void bb_read_candidate(bb_reader *r) {
  bb_candidate candidate = {.chosen = BB_NONE};
  candidate.name = bb_read_kept(r, bb_read_name(r, "the name of a candidate"));
  candidate.once = bb_read_accept(r, "once");
  const char *place = r->token.start;
  if (bb_read_accept(r, "chosen"))
    candidate.chosen = bb_read_index(r, BB_NONE, "the snapshot chosen");
  bb_read_expect(r, "{");
  if (bb_read_accept(r, "graph")) candidate.graph = bb_read_graph(r);
  if (bb_read_accept(r, "exps"))
    candidate.exps = bb_read_kept(r, bb_read_name(r, "what became of exps"));
  uint32_t capacity = 0;
  while (bb_read_accept(r, "snapshot")) {
    bb_snapshot snapshot = read_snapshot(r);
    BB_GROW(r->program->arena, candidate.snapshot, capacity, (size_t)candidate.snapshots + 1);
    candidate.snapshot[candidate.snapshots++] = snapshot;
  }
  bb_read_expect(r, "}");
  if (candidate.chosen != BB_NONE && candidate.chosen >= candidate.snapshots)
    bb_read_fail(r, place, "there is no snapshot %u", candidate.chosen);
  bb_program *program = r->program;
  BB_GROW(program->arena, program->candidate, r->candidate_capacity,
          (size_t)program->candidates + 1);
  program->candidate[program->candidates++] = candidate;
}

/* --- steps --- */

typedef struct accesses {
  uint32_t count, capacity;
  const bb_access **item;
} accesses;

static uint32_t read_operand(void *user, bb_reader *r) {
  accesses *list = user;
  BB_GROW(r->program->arena, list->item, list->capacity, (size_t)list->count + 1);
  const bb_access *access = bb_read_index_access(r, bb_read_tensor_source, NULL);
  list->item[list->count] = access;
  return list->count++;
}

static void read_run(bb_reader *r, bb_step *step, accesses *in) {
  bb_read_expect(r, "run");
  step->candidate = bb_read_index(r, r->program->candidates, "the candidate");
  bb_read_expect(r, "(");
  while (!bb_read_accept(r, ")")) {
    if (in->count) bb_read_expect(r, ",");
    read_operand(in, r);
  }
}

void bb_read_step(bb_reader *r) {
  bb_program *program = r->program;
  bb_step step = {.candidate = BB_NONE};
  accesses in = {0};
  bb_read_list numbers = {0}, out = {0};
  if (bb_read_accept(r, "misc"))
    step.misc = bb_read_misc(r, read_operand, &in, &numbers);
  else
    read_run(r, &step, &in);
  bb_read_expect(r, "to");
  bb_read_expect(r, "(");
  while (!bb_read_accept(r, ")")) {
    if (out.count) bb_read_expect(r, ",");
    bb_read_list_add(r, &out, bb_read_accept(r, "none") ? BB_NONE : bb_read_tensor(r));
  }
  if (bb_read_accept(r, "@")) step.name = bb_read_kept(r, bb_read_name(r, "the name of a step"));
  uint32_t *tensors = BB_NEW(program->arena, uint32_t, out.count);
  if (out.count) memcpy(tensors, out.item, out.count * sizeof *tensors);
  step.nin = in.count;
  step.in = in.item;
  step.nout = out.count;
  step.out = tensors;
  BB_GROW(program->arena, program->step, r->step_capacity, (size_t)program->steps + 1);
  program->step[program->steps++] = step;
}
