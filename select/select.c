/* select.c - candidates cut into the kernels that are cheapest together.
 *
 * A candidate is a flow of pieces (pieces.h).  Every convex set of pieces that fusion turns into one
 * loop nest is priced (choose.h), equal sets once; the cheapest cover (cover.h) becomes the program's
 * candidates, and each of them goes the way of bb_choose(), by price.
 */
#include "quote.h"

#include <math.h>
#include <string.h>

/* Of a candidate that was a kernel of a cover. */
typedef struct origin {
  uint32_t pieces, again;
  double apart, joined;
} origin;

typedef struct selector {
  bb_program *program;
  bb_arena *scratch;
  bb_quoter *quoter;
  uint32_t origin_capacity;
  origin *origin;               /* by candidate */
  uint32_t candidate, *made_of; /* by kernel: its candidate */
  uint32_t kernel_capacity, kernels;
  const bb_candidate *first; /* that was begun */
  const bb_choose_options *given;
  bb_selection_report report;
} selector;

static selector selector_start(bb_program *program, const bb_selection_options *options,
                               bb_arena *scratch) {
  selector s = {.program = program,
                .scratch = scratch,
                .given = options->choose,
                .report = {.machine = options->machine,
                           .symbols = program->symbols,
                           .symbol = options->symbol,
                           .exact = true}};
  s.quoter = bb_quoter_create(program, options, scratch);
  return s;
}

/* --- from a cover to candidates --- */

/* A node that a kernel computes again, and its copy. */
typedef struct copied {
  uint32_t node, copy, kernel;
} copied;

typedef struct splitting {
  const bb_pieces *pieces;
  bb_graph *graph;
  uint32_t *kernel; /* by node: the kernel that it is part of */
  uint32_t capacity;
  copied *copied;
  uint32_t copies, copy_capacity;
  bb_arena *scratch;
} splitting;

static void put_in_kernel(splitting *p, uint32_t n, uint32_t kernel) {
  BB_GROW(p->scratch, p->kernel, p->capacity, (size_t)n + 1);
  p->kernel[n] = kernel;
}

static void copy_node(splitting *p, uint32_t n, uint32_t kernel) {
  const bb_node *node = p->graph->node[n];
  uint32_t copy = bb_node_add_like(p->graph, node);
  for (uint32_t in = 0; in < node->nin; in++) bb_connect(p->graph, copy, in, node->in[in].src);
  put_in_kernel(p, copy, kernel);
  BB_GROW(p->scratch, p->copied, p->copy_capacity, (size_t)p->copies + 1);
  p->copied[p->copies++] = (copied){n, copy, kernel};
}

static void read_copy(splitting *p, const copied *c) {
  for (uint32_t out = 0; out < p->graph->node[c->node]->nout; out++) {
    bb_use next, u = bb_first_use(p->graph, (bb_value){c->node, out});
    for (; u.node != BB_NONE; u = next) {
      next = bb_next_use(p->graph, u);
      if (p->kernel[u.node] == c->kernel)
        bb_connect(p->graph, u.node, u.port, (bb_value){c->copy, out});
    }
  }
}

/* What a kernel computes again it gets copies of, which its nodes read: all copies are made of what is
 * there before any is read, for a copy may be of a node that will read one. */
static void copy_again(splitting *p, const bb_cover *cover) {
  const uint32_t *start = p->pieces->start;
  for (uint32_t i = 0; i < cover->kernels; i++) {
    const bb_cover_kernel *kernel = &cover->kernel[i];
    for (uint32_t j = 0; j < kernel->nodes; j++)
      for (uint32_t k = start[kernel->node[j]]; k < start[kernel->node[j] + 1]; k++)
        if (kernel->again[j]) copy_node(p, p->pieces->node[k], i);
  }
  for (uint32_t i = 0; i < p->copies; i++) read_copy(p, &p->copied[i]);
}

static bool is_read(const bb_node *node) {
  for (uint32_t p = 0; p < node->nout; p++)
    if (node->out[p].first.node != BB_NONE) return true;
  return false;
}

/* What only its copies are read of goes. */
static void remove_unread(splitting *p, const bb_cover *cover) {
  const bb_pieces *pieces = p->pieces;
  for (uint32_t i = cover->kernels; i-- > 0;) {
    const bb_cover_kernel *kernel = &cover->kernel[i];
    for (uint32_t j = kernel->nodes; j-- > 0;)
      for (uint32_t k = pieces->start[kernel->node[j] + 1]; k-- > pieces->start[kernel->node[j]];) {
        uint32_t n = pieces->node[k];
        if (kernel->again[j] || kernel->stored[j] || is_read(p->graph->node[n])) continue;
        bb_node_remove(p->graph, n);
      }
  }
}

/* live: set for the kernels that are left with something of their own. */
static void split(bb_program *program, const bb_pieces *pieces, const bb_cover *cover,
                  bb_arena *scratch, bb_carving *made, bool *live) {
  splitting p = {.pieces = pieces, .graph = pieces->flow->graph, .scratch = scratch};
  for (uint32_t n = 0; n < p.graph->count; n++) put_in_kernel(&p, n, BB_NONE);
  for (uint32_t i = 0; i < cover->kernels; i++)
    for (uint32_t j = 0; j < cover->kernel[i].nodes; j++) {
      uint32_t piece = cover->kernel[i].node[j];
      for (uint32_t k = pieces->start[piece]; k < pieces->start[piece + 1]; k++)
        if (!cover->kernel[i].again[j]) put_in_kernel(&p, pieces->node[k], i);
    }
  copy_again(&p, cover);
  remove_unread(&p, cover);
  bb_flow *flow = bb_flow_create(program, p.graph, scratch);
  uint32_t *group = BB_NEW(scratch, uint32_t, cover->kernels);
  for (uint32_t i = 0; i < flow->nodes; i++)
    if (bb_is_computed(flow->graph->node[flow->order[i]])) live[p.kernel[flow->order[i]]] = true;
  for (uint32_t i = 0; i < cover->kernels; i++)
    if (live[i]) group[i] = flow->groups++;
  for (uint32_t i = 0; i < flow->nodes; i++) {
    uint32_t n = flow->order[i];
    if (bb_is_computed(flow->graph->node[n])) flow->group[n] = group[p.kernel[n]];
  }
  bb_flow_carve(flow, made);
}

/* --- what a kernel is measured against --- */

/* The nodes of one kernel, its own ones, as a graph. */
typedef struct part {
  bb_quoter *quoter;
  const bb_cover_kernel *kernel;
  uint32_t nodes;
  uint32_t *node; /* by node of the part: the piece */
} part;

static double price_in_part(void *user, const bb_cover_kernel *kernel) {
  part *p = user;
  uint32_t node[2 * BB_COVER_WINDOW];
  if (kernel->nodes == p->nodes) return INFINITY;
  for (uint32_t i = 0; i < kernel->nodes; i++) node[i] = p->node[kernel->node[i]];
  bb_cover_kernel same = *kernel;
  same.node = node;
  return bb_quoter_price(p->quoter, &same);
}

static uint32_t place_in(const part *p, uint32_t piece) {
  for (uint32_t i = 0; i < p->nodes; i++)
    if (p->node[i] == piece) return i;
  return BB_NONE;
}

/* Seconds of the cheapest cover of a kernel's pieces without it. */
static double price_apart(selector *s, const bb_pieces *pieces, const bb_cover_kernel *kernel,
                          bb_arena *scratch) {
  part p = {.quoter = s->quoter, .kernel = kernel};
  p.node = BB_NEW(scratch, uint32_t, kernel->nodes);
  bb_cover_node *node = BB_NEW(scratch, bb_cover_node, kernel->nodes);
  for (uint32_t i = 0; i < kernel->nodes; i++)
    if (!kernel->again[i]) p.node[p.nodes++] = kernel->node[i];
  if (p.nodes < 2) return 0;
  for (uint32_t i = 0; i < p.nodes; i++) {
    const bb_cover_node *whole = &pieces->cover[p.node[i]];
    uint32_t *read = BB_NEW(scratch, uint32_t, whole->reads);
    node[i] = *whole;
    node[i].read = read;
    node[i].apart = NULL; /* they did share a kernel */
    node[i].reads = node[i].twins = 0;
    for (uint32_t r = 0; r < whole->reads; r++)
      if (place_in(&p, whole->read[r]) != BB_NONE)
        read[node[i].reads++] = place_in(&p, whole->read[r]);
    uint32_t *twin = BB_NEW(scratch, uint32_t, whole->twins);
    node[i].twin = twin;
    for (uint32_t t = 0; t < whole->twins; t++)
      if (place_in(&p, whole->twin[t]) != BB_NONE)
        twin[node[i].twins++] = place_in(&p, whole->twin[t]);
  }
  for (uint32_t i = 0, at = 0; i < kernel->nodes; i++)
    if (!kernel->again[i]) node[at++].kept = kernel->stored[i];
  return bb_cover_solve(scratch, p.nodes, node, NULL, price_in_part, &p)->cost;
}

static origin origin_of(selector *s, const bb_cover_kernel *kernel, double apart) {
  double joined = bb_quoter_price(s->quoter, kernel);
  s->quoter->met--; /* it was met before */
  origin o = {.pieces = kernel->nodes, .apart = apart, .joined = joined};
  for (uint32_t i = 0; i < kernel->nodes; i++) o.again += kernel->again[i];
  o.pieces -= o.again;
  return o;
}

static void cover_candidate(selector *s, const bb_candidate *candidate, bb_carving *made) {
  bb_program *program = s->program;
  bb_arena *scratch = bb_scratch(program->ctx);
  bb_spread_widening(candidate->graph);
  bb_flow *flow = bb_flow_create(program, candidate->graph, scratch);
  bb_pieces *pieces = bb_pieces_create(flow, scratch);
  bb_cover *cover = bb_quoter_solve(s->quoter, pieces, scratch);
  s->report.pieces += pieces->count;
  s->report.states += cover->states;
  if (!cover->exact && s->report.exact) s->report.exact = false, s->report.why = cover->why;
  origin *from = BB_NEW(scratch, origin, cover->kernels);
  bool *live = BB_NEW(scratch, bool, cover->kernels);
  for (uint32_t i = 0; i < cover->kernels; i++)
    from[i] = origin_of(s, &cover->kernel[i], price_apart(s, pieces, &cover->kernel[i], scratch));
  uint32_t at = made->candidates;
  split(program, pieces, cover, scratch, made, live);
  BB_GROW(s->scratch, s->origin, s->origin_capacity, made->candidates);
  for (uint32_t i = 0; i < cover->kernels; i++)
    if (live[i]) s->origin[at++] = from[i];
  bb_scratch_end(scratch);
}

/* --- the whole --- */

static void cut_candidates(selector *s) {
  bb_program *program = s->program;
  bb_carving made = bb_carving_start(program, "c");
  for (uint32_t i = 0; i < program->steps; i++) {
    const bb_step *step = &program->step[i];
    if (step->candidate != BB_NONE) {
      cover_candidate(s, &program->candidate[step->candidate], &made);
      continue;
    }
    BB_GROW(program->arena, made.step, made.step_capacity, (size_t)made.steps + 1);
    made.step[made.steps++] = *step;
  }
  bb_carving_install(program, &made);
  for (uint32_t i = 0; i < program->candidates; i++) {
    bb_absorb_transposes(program, program->candidate[i].graph);
    bb_orient_inputs(program, program->candidate[i].graph);
  }
}

/* Candidates come before the kernels that they become.  Choosing may start over, with the candidate that
 * came first. */
static void on_begin(void *user, const bb_candidate *candidate, const bb_candidate *same) {
  selector *s = user;
  const bb_program *program = s->program;
  if (candidate >= program->candidate && candidate < program->candidate + program->candidates) {
    s->candidate = (uint32_t)(candidate - program->candidate);
    if (!s->first) s->first = candidate;
    if (s->first == candidate) s->kernels = 0;
  } else {
    BB_GROW(s->scratch, s->made_of, s->kernel_capacity, (size_t)s->kernels + 1);
    s->made_of[s->kernels++] = s->candidate;
  }
  if (s->given && s->given->begin) s->given->begin(s->given->user, candidate, same);
}

static void finish_bills(selector *s) {
  bb_program *program = s->program;
  for (uint32_t i = 0; i < program->candidates; i++) {
    bb_candidate *kernel = &program->candidate[i];
    const origin *from = &s->origin[s->made_of[i]];
    bb_bill *bill = BB_NEW(program->arena, bb_bill, 1);
    *bill = *kernel->bill;
    bill->pieces = from->pieces;
    bill->again = from->again;
    bill->apart = from->apart;
    bill->joined = from->joined;
    kernel->bill = bill;
    if (!kernel->once) s->report.seconds += bill->best.price.seconds;
  }
}

void bb_select(bb_program *program, const bb_selection_options *options) {
  bb_arena *scratch = bb_scratch(program->ctx);
  selector s = selector_start(program, options, scratch);
  uint32_t searched = bb_ways_searches(s.quoter->quotes->pricer.ways);
  cut_candidates(&s);
  bb_pricer *pricer = bb_quoter_pricer(s.quoter);
  bb_quoter_ask(s.quoter, true);
  bb_choose_options choose = {.begin = on_begin, .user = &s, .pricer = pricer};
  if (s.given) choose.fuse = s.given->fuse;
  bb_choose(program, &choose);
  for (uint32_t i = 0; i < program->candidates; i++)
    bb_pricer_settle(pricer, &program->candidate[i]);
  bb_quoter_ask(s.quoter, false);
  bb_monoids_settle(program); /* not as what was priced came to be */
  finish_bills(&s);
  s.report.searches = bb_ways_searches(pricer->ways) - searched;
  s.report.met = s.quoter->met;
  s.report.priced = s.quoter->priced;
  bb_selection_report *report = BB_NEW(program->arena, bb_selection_report, 1);
  double *said = BB_NEW(program->arena, double, s.quoter->answers + 1u);
  if (s.quoter->answers) memcpy(said, s.quoter->answer, s.quoter->answers * sizeof *said);
  *report = s.report;
  report->prices = (bb_prices){s.quoter->answers, said};
  program->selection = report;
  bb_scratch_end(scratch);
}
