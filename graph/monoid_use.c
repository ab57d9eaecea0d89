/* monoid_use.c - which tuples a program uses, and their order and names as it does. */
#include "monoid.h"

#include "array/array.h"
#include "op.h"
#include "program.h"

typedef struct search {
  const bb_program *program;
  uint32_t uses, *use; /* by number: BB_NONE, or how many are used before it */
} search;

static void use(search *s, const bb_monoid *monoid) {
  if (!monoid || !monoid->component) return;
  for (uint32_t i = 0; i < s->program->monoids; i++)
    if (s->program->monoid[i] == monoid && s->use[i] == BB_NONE) s->use[i] = s->uses++;
}

static void search_graph(search *s, const bb_graph *graph) {
  for (uint32_t i = 0; graph && i < graph->count; i++) {
    const bb_node *node = graph->node[i];
    if (node->kind == BB_NODE_REDUCE) use(s, node->monoid);
    if (node->kind == BB_NODE_FUNC && bb_op_has_monoid(node->op)) use(s, node->rows);
    if (node->kind != BB_NODE_MAP) continue;
    for (uint32_t p = 0; p < node->nout; p++) use(s, node->out[p].fold);
    search_graph(s, node->inner);
  }
}

static void search_candidate(search *s, const bb_candidate *c) {
  search_graph(s, c->graph);
  for (uint32_t k = 0; k < c->snapshots; k++) {
    search_graph(s, c->snapshot[k].graph);
    search_graph(s, c->snapshot[k].safe);
  }
}

static void search_program(search *s) {
  const bb_program *program = s->program;
  if (program->stage == BB_STAGE_ARRAY) {
    for (uint32_t i = 0; program->array && i < program->array->nodes; i++)
      if (!program->array->node[i].removed) use(s, program->array->node[i].monoid);
  } else if (program->stage == BB_STAGE_BLOCK) {
    search_graph(s, program->root);
  } else {
    for (uint32_t i = 0; i < program->candidates; i++) search_candidate(s, &program->candidate[i]);
  }
}

const uint32_t *bb_monoid_uses(const bb_program *program, bb_arena *arena) {
  search s = {.program = program, .use = BB_NEW(arena, uint32_t, program->monoids + 1)};
  for (uint32_t i = 0; i < program->monoids; i++) s.use[i] = BB_NONE;
  search_program(&s);
  return s.use;
}

void bb_monoids_settle(bb_program *program) {
  bb_arena *scratch = bb_scratch(program->ctx);
  const uint32_t *place = bb_monoid_uses(program, scratch);
  bb_monoid **before = BB_NEW(scratch, bb_monoid *, program->monoids + 1);
  uint32_t count = program->monoids, used = 0;
  for (uint32_t i = 0; i < count; i++) before[i] = program->monoid[i], used += place[i] != BB_NONE;
  for (uint32_t i = 0, rest = used; i < count; i++)
    program->monoid[place[i] == BB_NONE ? rest++ : place[i]] = before[i];
  program->monoids = 0; /* names are free as those before have them */
  while (program->monoids < count) {
    bb_monoid_name(program, program->monoid[program->monoids]);
    program->monoids++;
  }
  bb_scratch_end(scratch);
}
