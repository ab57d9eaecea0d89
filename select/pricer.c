/* pricer.c - the cheapest way to run a kernel: over its snapshots, folds and block sizes.
 */
#include "choose.h"

#include "../fuse/safety.h"

#include <math.h>
#include <string.h>

bb_pricer bb_pricer_create(bb_program *program, const bb_machine *machine, const double *symbol,
                           bb_arena *arena) {
  return (bb_pricer){.program = program,
                     .machine = machine,
                     .symbol = symbol,
                     .symbols = program->symbols,
                     .arena = arena};
}

const double *bb_pricer_extents(bb_pricer *pricer) {
  const bb_program *program = pricer->program;
  BB_GROW(pricer->arena, pricer->extent, pricer->dim_capacity, program->dims);
  for (; pricer->dims < program->dims; pricer->dims++) {
    const bb_extent *extent = bb_dim_get(program, pricer->dims)->extent;
    double value = (double)extent->factor;
    for (uint32_t i = 0; i < extent->count; i++)
      if (extent->symbol[i] < pricer->symbols) value *= pricer->symbol[extent->symbol[i]];
    pricer->extent[pricer->dims] = value;
  }
  return pricer->extent;
}

/* --- ways --- */

/* The search for the cheapest way to run one kernel. */
typedef struct contest {
  bb_pricer *pricer;
  bb_arena *scratch;
  bool force;
  bb_way best, second; /* their sizes are in `scratch` */
} contest;

static bool same_plan(const bb_way *a, const bb_way *b) {
  return a->snapshot == b->snapshot && a->loop == b->loop && a->parts == b->parts;
}

/* The second differs from the best in more than block sizes. */
static void enter(contest *c, const bb_way *way) {
  if (way->price.seconds < c->best.price.seconds) {
    if (!same_plan(way, &c->best)) c->second = c->best;
    c->best = *way;
  } else if (!same_plan(way, &c->best) && way->price.seconds < c->second.price.seconds) {
    c->second = *way;
  }
}

static bb_way describe(const contest *c, uint32_t snapshot, const bb_nest *nest,
                       const bb_tiling *tiling, const bb_price *price) {
  bb_way way = {
      .snapshot = snapshot, .loop = tiling->fold, .parts = tiling->split, .price = *price};
  way.fold = tiling->fold == BB_NONE ? BB_NO_DIM : nest->loop[tiling->fold].dim;
  way.map = tiling->fold == BB_NONE ? BB_NONE : nest->loop[tiling->fold].serial;
  way.block = BB_NEW(c->scratch, struct bb_block_size, nest->sizes);
  way.block_dim = BB_NEW(c->scratch, bb_dim, nest->sizes);
  for (uint32_t i = 0; i < nest->sizes; i++) {
    bb_dim dim = nest->size[i].dim;
    if (nest->size[i].whole) continue;
    way.block_dim[way.blocks] = dim;
    way.block[way.blocks].dim = bb_dim_get(c->pricer->program, dim)->name;
    way.block[way.blocks++].elements = fmin(tiling->block[i], c->pricer->extent[dim]);
  }
  return way;
}

/* Turns of the fold that is in parts. */
static double turns_of(const bb_pricing *pricing, const bb_tiling *tiling) {
  uint32_t size = pricing->nest->loop[tiling->fold].size;
  double turns = pricing->loop_extent[tiling->fold];
  return size == BB_NONE ? turns : ceil(turns / tiling->block[size]);
}

/* Searches near the block sizes *near, unless these are NULL, and sets them. */
static double search_one(contest *c, uint32_t snapshot, const bb_pricing *pricing, uint32_t fold,
                         uint32_t parts, const double **near) {
  bb_tiling tiling;
  bb_price second;
  bb_price price =
      bb_price_search(pricing, fold, parts, *near, c->force, c->scratch, &tiling, &second);
  c->pricer->searches++;
  if (price.seconds == INFINITY) return INFINITY;
  *near = tiling.block;
  /* half as many parts do the same, and were tried */
  if (parts > 1 && 2 * turns_of(pricing, &tiling) <= parts) return price.seconds;
  bb_way way = describe(c, snapshot, pricing->nest, &tiling, &price);
  enter(c, &way);
  return price.seconds;
}

enum { MOST_PARTS = 256, PATIENCE = 2 };

/* Twice as many parts as long as that may help: units that would idle, and turns to share. */
static void search_splits(contest *c, uint32_t snapshot, const bb_pricing *pricing, uint32_t fold,
                          double least, const double *near) {
  double turns = pricing->loop_extent[fold];
  uint32_t worse = 0;
  if (pricing->nest->loop[fold].size != BB_NONE) turns = ceil(turns / 16);
  for (uint32_t parts = 2; parts <= MOST_PARTS && parts <= turns && worse < PATIENCE; parts *= 2) {
    double seconds = search_one(c, snapshot, pricing, fold, parts, &near);
    worse = seconds < least ? 0 : worse + 1;
    least = fmin(least, seconds);
  }
}

/* A snapshot too large for the tables is taken for what its counts say it is at least. */
static void enter_counted(contest *c, uint32_t snapshot, const bb_snapshot *s) {
  const bb_machine *m = c->pricer->machine;
  bb_way way = {
      .snapshot = snapshot, .loop = BB_NONE, .parts = 1, .fold = BB_NO_DIM, .map = BB_NONE};
  way.price = (bb_price){.memory = s->buffered,
                         .cache = s->buffered,
                         .vector = s->operations,
                         .instances = 1,
                         .waves = 1,
                         .launches = 1,
                         .bound = BB_BOUND_MEMORY};
  double work = s->operations / bb_machine_vector_rate(m, BB_F32);
  way.price.seconds = m->launch + m->begin + fmax(s->buffered / m->memory_unit_bandwidth, work);
  if (work > s->buffered / m->memory_unit_bandwidth) way.price.bound = BB_BOUND_VECTOR;
  enter(c, &way);
}

/* graph: the snapshot as it would run. */
static void search_snapshot(contest *c, uint32_t index, const bb_snapshot *s,
                            const bb_graph *graph) {
  bb_pricer *pricer = c->pricer;
  const double *extent = bb_pricer_extents(pricer);
  bb_nest *nest = bb_nest_create(pricer->program, graph, c->scratch);
  if (!nest) {
    if (c->force) enter_counted(c, index, s);
    return;
  }
  bb_pricing pricing = bb_pricing_bind(nest, pricer->machine, extent, c->scratch);
  const double *near = NULL;
  double rolling = search_one(c, index, &pricing, BB_NONE, 1, &near);
  for (uint32_t i = 0; i < nest->loops && !pricer->rolling; i++)
    if (nest->loop[i].splits) search_splits(c, index, &pricing, i, rolling, near);
}

static bb_way keep(const bb_way *way, bb_arena *arena) {
  bb_way kept = *way;
  kept.block = BB_NEW(arena, struct bb_block_size, way->blocks);
  kept.block_dim = BB_NEW(arena, bb_dim, way->blocks);
  for (uint32_t i = 0; i < way->blocks; i++) {
    kept.block[i] = way->block[i];
    kept.block_dim[i] = way->block_dim[i];
  }
  return kept;
}

/* A snapshot with safe exps, or NULL where it cannot have them; nobody is told why, and what is made takes
 * no numbers from the program's. */
static const bb_graph *safe_form(bb_pricer *pricer, bb_graph *graph) {
  if (pricer->plain) return graph;
  bb_program *program = pricer->program;
  bb_log_function *log = program->ctx->log;
  uint32_t serial = program->serial;
  program->ctx->log = NULL;
  const bb_graph *safe = bb_safety_alone(program, graph);
  program->ctx->log = log;
  program->serial = serial;
  return safe;
}

static contest contest_start(bb_pricer *pricer, bb_arena *scratch) {
  contest c = {.pricer = pricer, .scratch = scratch};
  c.best.price.seconds = c.second.price.seconds = INFINITY;
  c.best.snapshot = c.second.snapshot = BB_NONE;
  return c;
}

void bb_pricer_choose(bb_pricer *pricer, bb_candidate *kernel, bb_arena *arena) {
  bb_arena *scratch = bb_scratch(pricer->program->ctx);
  contest c = contest_start(pricer, scratch);
  for (int pass = 0; pass < 2 && c.best.snapshot == BB_NONE; pass++) {
    c.force = pass > 0;
    for (uint32_t i = 0; i < kernel->snapshots; i++) {
      bb_snapshot *s = &kernel->snapshot[i];
      const bb_graph *safe = safe_form(pricer, s->graph);
      if (safe || c.force) search_snapshot(&c, i, s, safe ? safe : s->graph);
    }
  }
  bb_bill *bill = BB_NEW(arena, bb_bill, 1);
  *bill = (bb_bill){.best = keep(&c.best, arena), .second = keep(&c.second, arena), .pieces = 1};
  kernel->chosen = c.best.snapshot;
  kernel->bill = bill;
  bb_scratch_end(scratch);
}

/* --- what runs --- */

static void set_blocks(bb_graph *graph, const bb_nest *nest, const double *block) {
  for (uint32_t i = 0; i < graph->count; i++) {
    bb_node *node = bb_node_get(graph, i);
    if (node->kind != BB_NODE_MAP) continue;
    for (uint32_t k = 0; k < nest->loops; k++)
      if (nest->loop[k].serial == node->serial && nest->loop[k].size != BB_NONE)
        node->block = (uint32_t)fmin(BB_BLOCK_MOST - 1, block[nest->loop[k].size]);
    set_blocks(bb_map_own(graph, i), nest, block);
  }
}

/* By size of the nest. */
static double *blocks_of(const bb_nest *nest, const bb_way *way, bb_arena *arena) {
  double *block = BB_NEW(arena, double, nest->sizes);
  for (uint32_t i = 0, at = 0; i < nest->sizes; i++)
    block[i] = nest->size[i].whole ? INFINITY : way->block[at++].elements;
  return block;
}

void bb_pricer_settle(bb_pricer *pricer, bb_candidate *kernel) {
  bb_program *program = pricer->program;
  bb_arena *scratch = bb_scratch(program->ctx);
  contest c = contest_start(pricer, scratch);
  bb_snapshot *s = &kernel->snapshot[kernel->chosen];
  const bb_graph *runs = bb_candidate_runs(kernel);
  const bb_nest *nest = bb_nest_create(program, runs, scratch);
  for (int pass = 0; pass < 2 && c.best.snapshot == BB_NONE; pass++) {
    c.force = pass > 0;
    search_snapshot(&c, kernel->chosen, s, runs);
  }
  bb_bill *bill = BB_NEW(program->arena, bb_bill, 1);
  *bill = *kernel->bill;
  /* The runner-up: another fold of what runs, or what was one when snapshots were compared. */
  bool other = bill->second.snapshot != kernel->chosen &&
               bill->second.price.seconds >= c.best.price.seconds &&
               bill->second.price.seconds < c.second.price.seconds;
  if (!other) bill->second = keep(&c.second, program->arena);
  bill->best = keep(&c.best, program->arena);
  kernel->bill = bill;
  s->safe = bb_graph_copy(bb_candidate_runs(kernel));
  if (nest) set_blocks(s->safe, nest, blocks_of(nest, &bill->best, scratch));
  bb_scratch_end(scratch);
}

void bb_pricer_plan(bb_pricer *pricer, const bb_candidate *kernel, bb_plan *plan) {
  const bb_way *best = &kernel->bill->best;
  BB_GROW(plan->arena, plan->kernel, plan->capacity, (size_t)plan->kernels + 1);
  struct bb_planned *planned = &plan->kernel[plan->kernels++];
  *planned = (struct bb_planned){.way = keep(best, plan->arena)};
  bb_graph *graph = kernel->snapshot[best->snapshot].graph;
  const bb_graph *safe = safe_form(pricer, graph);
  const bb_nest *nest = bb_nest_create(pricer->program, safe ? safe : graph, plan->arena);
  if (!nest) return;
  planned->nest = nest;
  planned->tiling = (bb_tiling){blocks_of(nest, best, plan->arena), best->loop, best->parts};
}
