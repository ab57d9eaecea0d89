/* api_print.c - the public calls that print: text, data, listings, drawings, explanations.
 */
#include "api.h"

#include "../graph/draw.h"
#include "../graph/text.h"

#include <string.h>

typedef struct print_call {
  const bb_program *program;
  const char *data_name;
  bb_graph_id id;
  const bb_draw_options *draw;
  bb_node_pair pair;
  bb_write_function *write;
  void *user;
  bool refused; /* write() gave up */
} print_call;

void bb_api_flush(const bb_buffer *buffer, bb_write_function *write, void *user) {
  bb_require(bb_arena_context(buffer->arena), (const void *)(uintptr_t)write,
             "the function that writes");
  if (buffer->length && !write(user, buffer->data, buffer->length))
    bb_fail(bb_arena_context(buffer->arena), BB_ERROR_IO, "the output could not be written");
}

bb_graph *bb_api_graph(const bb_program *program, bb_graph_id id) {
  if (program->stage == BB_STAGE_BLOCK) return program->root;
  if (program->stage < BB_STAGE_BLOCK || id.candidate >= program->candidates) return NULL;
  const bb_candidate *candidate = &program->candidate[id.candidate];
  if (id.snapshot == BB_SNAPSHOT_UNFUSED) return candidate->graph;
  if (id.snapshot == BB_SNAPSHOT_RUNS) return bb_candidate_runs(candidate);
  if (id.snapshot == BB_SNAPSHOT_CHOSEN) {
    if (candidate->chosen == BB_NONE) return candidate->graph;
    return candidate->snapshot[candidate->chosen].graph;
  }
  return id.snapshot < candidate->snapshots ? candidate->snapshot[id.snapshot].graph : NULL;
}

static bb_graph *graph_or_fail(const bb_program *program, bb_graph_id id) {
  bb_graph *graph = bb_api_graph(program, id);
  if (graph) return graph;
  if (program->stage == BB_STAGE_ARRAY)
    bb_fail(program->ctx, BB_ERROR_ARGUMENT, "an array program has no block graph yet");
  if (id.candidate >= program->candidates)
    bb_fail(program->ctx, BB_ERROR_ARGUMENT, "there is no candidate %u: the program has %u",
            id.candidate, program->candidates);
  bb_fail(program->ctx, BB_ERROR_ARGUMENT, "%s has no snapshot %u: it has %u",
          program->candidate[id.candidate].name, id.snapshot,
          program->candidate[id.candidate].snapshots);
}

static bb_buffer buffer_in(bb_context *ctx) {
  return (bb_buffer){.arena = bb_scratch(ctx)};
}

static void finish(const print_call *call, bb_buffer *buffer) {
  bb_api_flush(buffer, call->write, call->user);
  bb_scratch_end(buffer->arena);
}

static void text_body(bb_context *ctx, void *argument) {
  const print_call *call = argument;
  bb_buffer out = buffer_in(ctx);
  bb_text_print(&out, call->program, call->data_name);
  finish(call, &out);
}

bb_status bb_program_write_text(const bb_program *program, const char *data_name,
                                bb_write_function *write, void *user) {
  print_call call = {.program = program, .data_name = data_name, .write = write, .user = user};
  return bb_protect(program->ctx, text_body, &call);
}

static void pass_on(void *user, const void *bytes, size_t length) {
  print_call *call = user;
  if (length && !call->refused && !call->write(call->user, bytes, length)) call->refused = true;
}

static void data_body(bb_context *ctx, void *argument) {
  print_call *call = argument;
  bb_text_data(call->program, pass_on, call);
  if (call->refused) bb_fail(ctx, BB_ERROR_IO, "the data could not be written");
}

bb_status bb_program_write_data(const bb_program *program, bb_write_function *write, void *user) {
  print_call call = {.program = program, .write = write, .user = user};
  return bb_protect(program->ctx, data_body, &call);
}

static void listing_body(bb_context *ctx, void *argument) {
  const print_call *call = argument;
  bb_buffer out = buffer_in(ctx);
  bb_listing_print(&out, call->program, graph_or_fail(call->program, call->id));
  finish(call, &out);
}

static void repairs_body(bb_context *ctx, void *argument) {
  const print_call *call = argument;
  bb_buffer out = buffer_in(ctx);
  bb_fuse_explain(&out, (bb_program *)call->program, graph_or_fail(call->program, call->id));
  finish(call, &out);
}

bb_status bb_program_write_repairs(bb_program *program, bb_graph_id graph, bb_write_function *write,
                                   void *user) {
  print_call call = {.program = program, .id = graph, .write = write, .user = user};
  return bb_protect(program->ctx, repairs_body, &call);
}

bb_status bb_program_write_listing(const bb_program *program, bb_graph_id graph,
                                   bb_write_function *write, void *user) {
  print_call call = {.program = program, .id = graph, .write = write, .user = user};
  return bb_protect(program->ctx, listing_body, &call);
}

/* --- drawings --- */

static void check_draw(bb_context *ctx, const bb_draw_options *options) {
  if (options && options->version != BB_VERSION)
    bb_fail(ctx, BB_ERROR_ARGUMENT, "bb_draw_options.version is not BB_VERSION");
}

static const char *graph_title(const bb_program *program, bb_graph_id id, bb_arena *arena) {
  if (program->stage == BB_STAGE_BLOCK) return bb_arena_printf(arena, "%s: unfused", program->name);
  const bb_candidate *candidate = &program->candidate[id.candidate];
  uint32_t snapshot = id.snapshot == BB_SNAPSHOT_CHOSEN ? candidate->chosen : id.snapshot;
  if (snapshot >= candidate->snapshots)
    return bb_arena_printf(arena, "%s %s: unfused", program->name, candidate->name);
  return bb_arena_printf(arena, "%s %s: snapshot %u after %u rewrites%s", program->name,
                         candidate->name, snapshot, candidate->snapshot[snapshot].step,
                         snapshot == candidate->chosen ? ", chosen" : "");
}

static void draw_body(bb_context *ctx, void *argument) {
  const print_call *call = argument;
  bb_buffer out = buffer_in(ctx);
  check_draw(ctx, call->draw);
  /* A copy has no level that two maps share: every map is drawn with its own inside. */
  bb_graph *graph = bb_graph_copy(graph_or_fail(call->program, call->id));
  bb_picture picture = {.program = call->program, .graph = graph, .new_from = BB_NONE};
  if (call->draw) picture.collapse = call->draw->collapse;
  picture.title = call->draw && call->draw->title ? call->draw->title
                                                  : graph_title(call->program, call->id, out.arena);
  bb_draw(&out, &picture, call->draw && call->draw->drawing == BB_DRAW_JSON);
  finish(call, &out);
}

bb_status bb_program_write_drawing(const bb_program *program, bb_graph_id graph,
                                   const bb_draw_options *options, bb_write_function *write,
                                   void *user) {
  print_call call = {
      .program = program, .id = graph, .draw = options, .write = write, .user = user};
  return bb_protect(program->ctx, draw_body, &call);
}

/* --- a step --- */

typedef struct step_call {
  bb_program *program;
  uint32_t step;
  const bb_advance_options *advance;
  const bb_draw_options *draw;
  bb_write_function *write;
  void *user;
  bb_arena *arena;
  const char *label;  /* the candidate or kernel at hand */
  uint32_t serial;    /* the next node's number before the rewrite at hand */
  bb_picture picture; /* graph NULL: the step did not come yet */
} step_call;

static void step_begin(void *user, const bb_candidate *candidate, const bb_candidate *same) {
  step_call *call = user;
  (void)same;
  if (call->picture.graph) return;
  call->label = candidate->name;
  call->serial = call->program->serial;
}

/* No rewrite follows the step: its graph may be kept as it is. */
static void step_trace(void *user, const bb_trace_event *event, const bb_graph *root) {
  step_call *call = user;
  if (!event->snapshot && event->step == call->step) {
    uint32_t *marked = BB_NEW(call->arena, uint32_t, event->count);
    if (event->count) memcpy(marked, event->serial, event->count * sizeof *marked);
    const char *at = event->level && *event->level ? event->level : "the top";
    char variant[2] = {event->variant, 0};
    call->picture =
        (bb_picture){.program = call->program,
                     .graph = bb_graph_keep((bb_graph *)root),
                     .title = bb_arena_printf(call->arena, "%s %s: step %u, rule %u%s (%s) at %s",
                                              call->program->name, call->label, event->step,
                                              event->rule, variant, event->rule_name, at),
                     .marks = event->count,
                     .marked = marked,
                     .new_from = call->serial};
  }
  call->serial = call->program->serial;
}

static void step_body(bb_context *ctx, void *argument) {
  step_call *call = argument;
  const bb_advance_options *a = call->advance;
  bb_buffer out = buffer_in(ctx);
  check_draw(ctx, call->draw);
  if (call->program->stage != BB_STAGE_PARTITION)
    bb_fail(ctx, BB_ERROR_ARGUMENT, "a step is drawn from a program at stage partition");
  call->arena = out.arena;
  bb_fuse_options fuse = {.no_extend = a->no_extend,
                          .peel = a->peel,
                          .naive = a->naive,
                          .stop_after = call->step,
                          .disabled = a->disabled_rules,
                          .trace = step_trace,
                          .user = call};
  bb_choose_options choose = {.fuse = &fuse, .begin = step_begin, .user = call};
  bb_drive_options drive = {.choose = &choose, .strict = a->strict};
  if (call->step) bb_drive(call->program, BB_STAGE_FUSED, &drive);
  if (!call->picture.graph) bb_fail(ctx, BB_ERROR_ARGUMENT, "there is no step %u", call->step);
  call->picture.graph = bb_graph_copy((bb_graph *)call->picture.graph);
  if (call->draw) call->picture.collapse = call->draw->collapse;
  if (call->draw && call->draw->title) call->picture.title = call->draw->title;
  bb_draw(&out, &call->picture, call->draw && call->draw->drawing == BB_DRAW_JSON);
  bb_api_flush(&out, call->write, call->user);
  bb_scratch_end(out.arena);
}

bb_status bb_program_write_step(bb_program *program, uint32_t step,
                                const bb_advance_options *advance, const bb_draw_options *options,
                                bb_write_function *write, void *user) {
  static const bb_advance_options defaults = {.version = BB_VERSION};
  step_call call = {.program = program,
                    .step = step,
                    .advance = advance ? advance : &defaults,
                    .draw = options,
                    .write = write,
                    .user = user};
  return bb_protect(program->ctx, step_body, &call);
}

/* --- why --- */

static bool holds_serial(const bb_graph *graph, uint32_t serial) {
  for (uint32_t i = 0; i < graph->count; i++) {
    const bb_node *node = graph->node[i];
    if (node->kind == BB_NODE_REMOVED) continue;
    if (node->serial == serial) return true;
    if (node->kind == BB_NODE_MAP && holds_serial(node->inner, serial)) return true;
  }
  return false;
}

/* The latest graph that has both nodes: snapshots of a kernel, then the candidate it was part of. */
static bb_graph *graph_with(const bb_program *program, bb_node_pair pair) {
  if (program->stage == BB_STAGE_BLOCK) return program->root;
  for (uint32_t i = 0; i < program->candidates; i++) {
    const bb_candidate *c = &program->candidate[i];
    for (uint32_t s = c->snapshots + 1; s-- > 0;) {
      bb_graph *graph = s ? c->snapshot[s - 1].graph : c->graph;
      if (holds_serial(graph, pair.a) && holds_serial(graph, pair.b)) return graph;
    }
  }
  for (uint32_t i = 0; i < program->candidates; i++) {
    bb_graph *graph = program->candidate[i].origin;
    if (i > 0 && graph == program->candidate[i - 1].origin) continue;
    if (graph && holds_serial(graph, pair.a) && holds_serial(graph, pair.b)) return graph;
  }
  return NULL;
}

static const bb_candidate *candidate_with(const bb_program *program, uint32_t serial) {
  for (uint32_t i = 0; i < program->candidates; i++) {
    const bb_candidate *c = &program->candidate[i];
    for (uint32_t s = c->snapshots + 1; s-- > 0;)
      if (holds_serial(s ? c->snapshot[s - 1].graph : c->graph, serial)) return c;
  }
  return NULL;
}

/* Nodes that no graph has both of: apart, or gone. */
static void explain_apart(const bb_program *program, bb_node_pair pair, bb_buffer *out) {
  const bb_candidate *a = candidate_with(program, pair.a), *b = candidate_with(program, pair.b);
  if (!a || !b)
    bb_fail(program->ctx, BB_ERROR_ARGUMENT, "there is no node %u any more", a ? pair.b : pair.a);
  bb_put(out,
         "nodes %u and %u are in different candidates (%s and %s): a view, a misc node, a cut "
         "or data made at load stands between them\n",
         pair.a, pair.b, a->name, b->name);
}

static void why_body(bb_context *ctx, void *argument) {
  const print_call *call = argument;
  bb_buffer out = buffer_in(ctx);
  if (call->program->stage < BB_STAGE_BLOCK)
    bb_fail(ctx, BB_ERROR_ARGUMENT, "an array program has no block graph yet");
  bb_graph *graph = graph_with(call->program, call->pair);
  if (graph)
    bb_fuse_why(&out, (bb_program *)call->program, graph, call->pair.a, call->pair.b);
  else
    explain_apart(call->program, call->pair, &out);
  finish(call, &out);
}

bb_status bb_program_write_why(bb_program *program, bb_node_pair pair, bb_write_function *write,
                               void *user) {
  print_call call = {.program = program, .pair = pair, .write = write, .user = user};
  return bb_protect(program->ctx, why_body, &call);
}
