/* pricer.c - the cheapest way to run a kernel: over its snapshots, folds and block sizes.
 */
#include "choose.h"

#include "../fuse/safety.h"

#include <math.h>
#include <string.h>

bb_pricer bb_pricer_create(bb_program *program, const bb_machine *machine, uint32_t points,
                           const double *const *symbol, bb_arena *arena) {
  bb_pricer pricer = {.program = program,
                      .machine = machine,
                      .symbols = program->symbols,
                      .point = BB_NEW(arena, bb_point, points),
                      .points = points,
                      .arena = arena,
                      .ways = bb_ways_create(machine, arena)};
  for (uint32_t i = 0; i < points; i++) pricer.point[i].symbol = symbol[i];
  return pricer;
}

const double *bb_pricer_extents(bb_pricer *pricer, uint32_t point) {
  const bb_program *program = pricer->program;
  bb_point *p = &pricer->point[point];
  BB_GROW(pricer->arena, p->extent, p->dim_capacity, program->dims);
  for (; p->dims < program->dims; p->dims++) {
    const bb_extent *extent = bb_dim_get(program, p->dims)->extent;
    double value = (double)extent->factor;
    for (uint32_t i = 0; i < extent->count; i++)
      if (extent->symbol[i] < pricer->symbols) value *= p->symbol[extent->symbol[i]];
    p->extent[p->dims] = value;
  }
  return p->extent;
}

/* --- ways --- */

/* The search for the cheapest way to run one kernel at one point. */
typedef struct contest {
  bb_pricer *pricer;
  const double *extent; /* by dim */
  bb_arena *scratch;
  bool force;
  bool threads; /* the snapshot's products are made by plain threads, whatever they look like */
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
  bb_way way = {.snapshot = snapshot,
                .threads = c->threads,
                .loop = tiling->fold,
                .parts = tiling->split,
                .price = *price};
  way.fold = tiling->fold == BB_NONE ? BB_NO_DIM : nest->loop[tiling->fold].dim;
  way.map = tiling->fold == BB_NONE ? BB_NONE : nest->loop[tiling->fold].serial;
  way.block = BB_NEW(c->scratch, struct bb_block_size, nest->sizes);
  way.block_dim = BB_NEW(c->scratch, bb_dim, nest->sizes);
  for (uint32_t i = 0; i < nest->sizes; i++) {
    bb_dim dim = nest->size[i].dim;
    if (nest->size[i].whole || (i == nest->together && tiling->block[i] == 1)) continue;
    way.block_dim[way.blocks] = dim;
    way.block[way.blocks].dim = bb_dim_get(c->pricer->program, dim)->name;
    way.block[way.blocks++].elements = fmin(tiling->block[i], c->extent[dim]);
  }
  return way;
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

/* The same in contests that have no winner yet, or, unless forced, in all.  graph: the snapshot as it would run. */
static void search_snapshot(contest *c, uint32_t contests, bool force, bool threads, uint32_t index,
                            const bb_snapshot *s, const bb_graph *graph) {
  bb_pricer *pricer = c->pricer;
  bb_nest *nest = bb_nest_create(pricer->program, graph, c->scratch);
  uint32_t *at = BB_NEW(c->scratch, uint32_t, contests);
  const double **extent = BB_NEW(c->scratch, const double *, contests);
  bb_ways_asked asked = {.extent = extent,
                         .force = force,
                         .threads = threads,
                         .rolling = pricer->rolling,
                         .brief = pricer->plain};
  for (uint32_t i = 0; i < contests; i++) {
    if (force && !c[i].force) continue;
    if (!nest && force) enter_counted(&c[i], index, s);
    c[i].threads = threads;
    extent[asked.points] = c[i].extent;
    at[asked.points++] = i;
  }
  if (!nest) return;
  const bb_found_ways *found = bb_ways_find(pricer->ways, nest, &asked);
  for (uint32_t i = 0; i < found->count; i++) {
    const struct bb_found_way *f = &found->way[i];
    bb_way way = describe(&c[at[f->point]], index, nest, &f->tiling, &f->price);
    enter(&c[at[f->point]], &way);
  }
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
  bb_program *program = pricer->program;
  bb_log_function *log = program->ctx->log;
  uint32_t serial = program->serial;
  program->ctx->log = NULL;
  const bb_graph *safe = bb_safety_alone(program, graph);
  program->ctx->log = log;
  program->serial = serial;
  return safe;
}

/* What counts as what runs, or NULL where nothing does. */
static const bb_graph *counted_form(bb_pricer *pricer, bb_graph *graph) {
  return pricer->plain ? graph : safe_form(pricer, graph);
}

/* Has lowering only plain threads for it?  Asked of what a cover holds alone; anything else is taken for what its price says. */
static bool is_for_threads(bb_pricer *pricer, const bb_graph *runs) {
  return pricer->lowers && !pricer->lowers(pricer->user, runs);
}

/* One for each point that is asked about. */
static contest *contests_start(bb_pricer *pricer, bb_arena *scratch) {
  contest *c = BB_NEW(scratch, contest, pricer->points);
  for (uint32_t i = 0; i < pricer->points; i++) {
    c[i] = (contest){.pricer = pricer, .scratch = scratch};
    c[i].extent = bb_pricer_extents(pricer, pricer->first + i);
    c[i].best.price.seconds = c[i].second.price.seconds = INFINITY;
    c[i].best.snapshot = c[i].second.snapshot = BB_NONE;
  }
  return c;
}

/* Contests without a winner are held again by force; false: there are none. */
static bool by_force(contest *c, uint32_t contests) {
  bool any = false;
  for (uint32_t i = 0; i < contests; i++) any |= c[i].force = c[i].best.snapshot == BB_NONE;
  return any;
}

void bb_pricer_choose(bb_pricer *pricer, bb_candidate *kernel, bb_arena *arena) {
  bb_arena *scratch = bb_scratch(pricer->program->ctx);
  contest *c = contests_start(pricer, scratch);
  for (int force = 0; force < 2; force++) {
    if (force && !by_force(c, pricer->points)) break;
    for (uint32_t i = 0; i < kernel->snapshots; i++) {
      bb_snapshot *s = &kernel->snapshot[i];
      const bb_graph *counted = counted_form(pricer, s->graph), *safe = counted;
      if (!counted && !force) continue;
      if (pricer->lowers && pricer->plain) safe = safe_form(pricer, s->graph);
      bool threads = is_for_threads(pricer, safe ? safe : s->graph);
      search_snapshot(c, pricer->points, force, threads, i, s, counted ? counted : s->graph);
    }
  }
  double *seconds = BB_NEW(arena, double, pricer->points);
  for (uint32_t i = 0; i < pricer->points; i++) seconds[i] = c[i].best.price.seconds;
  bb_bill *bill = BB_NEW(arena, bb_bill, 1);
  *bill = (bb_bill){.best = keep(&c->best, arena),
                    .second = keep(&c->second, arena),
                    .pieces = 1,
                    .seconds = seconds};
  kernel->chosen = c->best.snapshot;
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
      else if (nest->loop[k].serial == node->serial && k == nest->joined &&
               block[nest->together] > 1)
        node->block = (uint32_t)fmin(BB_BLOCK_MOST - 1, block[nest->together]);
    set_blocks(bb_map_own(graph, i), nest, block);
  }
}

/* By size of the nest.  The last one may be how many indices a loop takes at once, which a way has where it is more than one. */
static double *blocks_of(const bb_nest *nest, const bb_way *way, bb_arena *arena) {
  double *block = BB_NEW(arena, double, nest->sizes);
  for (uint32_t i = 0, at = 0; i < nest->sizes; i++)
    block[i] = nest->size[i].whole                        ? INFINITY
               : i == nest->together && at == way->blocks ? 1
                                                          : way->block[at++].elements;
  return block;
}

static double bytes_of(const bb_pricing *pricing, double *block) {
  bb_price price;
  bb_price_tiling(pricing, &(bb_tiling){block, BB_NONE, 1}, true, &price);
  return price.cache;
}

/* Of kernels without products, pieces of what loops within the grid's run over are left to whoever runs those: how long they are
 * decides little that was priced, and a block that is chosen is all there is.  Such are chosen where less passes by them, other
 * blocks being as they are: how many rows fit beside each other is for whoever runs them, too. */
static void leave_pieces(const bb_pricer *pricer, const contest *c, const bb_nest *nest,
                         double *block) {
  bb_pricing pricing = bb_pricing_bind(nest, pricer->machine, c->extent, c->scratch);
  if (!pricing.holds || c->best.parts > 1) return;
  double *whole = BB_NEW(c->scratch, double, nest->sizes);
  memcpy(whole, block, nest->sizes * sizeof *whole);
  for (uint32_t i = 0; i < nest->loops; i++) {
    uint32_t size = nest->loop[i].size;
    if (!nest->loop[i].grid && size != BB_NONE && block[size] < pricing.size_extent[size])
      whole[size] = pricing.size_extent[size];
  }
  bool saves = bytes_of(&pricing, whole) < bytes_of(&pricing, block);
  for (uint32_t i = 0; i < nest->sizes; i++)
    if (whole[i] > block[i]) block[i] = saves ? whole[i] : 0;
}

void bb_pricer_settle(bb_pricer *pricer, bb_candidate *kernel) {
  bb_program *program = pricer->program;
  bb_arena *scratch = bb_scratch(program->ctx);
  contest *c = contests_start(pricer, scratch);
  bb_snapshot *s = &kernel->snapshot[kernel->chosen];
  const bb_graph *runs = bb_candidate_runs(kernel);
  const bb_nest *nest = bb_nest_create(program, runs, scratch);
  bool threads = is_for_threads(pricer, runs);
  for (int force = 0; force < 2; force++) {
    if (force && !by_force(c, 1)) break;
    search_snapshot(c, 1, force, threads, kernel->chosen, s, runs);
  }
  bb_bill *bill = BB_NEW(program->arena, bb_bill, 1);
  *bill = *kernel->bill;
  /* The runner-up: another fold of what runs, or what was one when snapshots were compared. */
  bool other = bill->second.snapshot != kernel->chosen &&
               bill->second.price.seconds >= c->best.price.seconds &&
               bill->second.price.seconds < c->second.price.seconds;
  if (!other) bill->second = keep(&c->second, program->arena);
  bill->best = keep(&c->best, program->arena);
  kernel->bill = bill;
  s->safe = bb_graph_copy(bb_candidate_runs(kernel));
  if (nest) {
    double *block = blocks_of(nest, &bill->best, scratch);
    leave_pieces(pricer, c, nest, block);
    set_blocks(s->safe, nest, block);
  }
  bb_scratch_end(scratch);
}

void bb_pricer_plan(bb_pricer *pricer, const bb_candidate *kernel, bb_plan *plan) {
  const bb_way *best = &kernel->bill->best;
  BB_GROW(plan->arena, plan->kernel, plan->capacity, (size_t)plan->kernels + 1);
  struct bb_planned *planned = &plan->kernel[plan->kernels++];
  *planned = (struct bb_planned){.way = keep(best, plan->arena)};
  bb_graph *graph = kernel->snapshot[best->snapshot].graph;
  const bb_graph *safe = counted_form(pricer, graph);
  const bb_nest *nest = bb_nest_create(pricer->program, safe ? safe : graph, plan->arena);
  if (!nest) return;
  planned->nest = nest;
  planned->tiling = (bb_tiling){blocks_of(nest, best, plan->arena), best->loop, best->parts};
}
