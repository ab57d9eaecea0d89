/* table.c - which kernels are cheapest at which value of a run-time extent.
 *
 * The program is selected at the first extent, at every doubling, and at the last; each different
 * outcome is a plan.  An entry of the table is a plan and where it holds: from left to right a plan is
 * kept as long as none of them is cheaper by more than a slack (else every change in the number of
 * waves would be an entry), and the extent after is where it is, for the first time, not; there the
 * cheapest plan takes over.
 */
#include "quote.h"

#include <math.h>
#include <string.h>

static const double SLACK = 0.05;

typedef struct tabler {
  bb_program *program;
  bb_arena *arena;
  bb_selection_options options;
  double *symbol;
  uint32_t varied; /* the symbol */
  uint32_t plans, capacity;
  bb_plan **plan;
  bb_pricer pricer; /* at the extent last asked for */
} tabler;

/* --- plans --- */

static void plan_candidate(bb_quoter *quoter, const bb_candidate *candidate, bb_plan *plan) {
  bb_arena *scratch = bb_scratch(quoter->program->ctx);
  bb_flow *flow = bb_flow_create(quoter->program, candidate->graph, scratch);
  bb_pieces *pieces = bb_pieces_create(flow, scratch);
  bb_quoter_begin(quoter, pieces);
  bb_cover *cover =
      bb_cover_solve(scratch, pieces->count, pieces->cover, NULL, bb_quoter_price, quoter);
  for (uint32_t i = 0; i < cover->kernels; i++)
    if (!pieces->cover[cover->kernel[i].node[0]].group)
      bb_quoter_plan(quoter, &cover->kernel[i], plan);
  bb_scratch_end(scratch);
}

static bb_plan *plan_at(tabler *t, double extent) {
  bb_arena *scratch = bb_scratch(t->program->ctx);
  bb_plan *plan = BB_NEW(t->arena, bb_plan, 1);
  *plan = (bb_plan){.arena = t->arena};
  t->symbol[t->varied] = extent;
  bb_quoter *quoter = bb_quoter_create(t->program, &t->options, scratch);
  for (uint32_t i = 0; i < t->program->steps; i++) {
    uint32_t candidate = t->program->step[i].candidate;
    if (candidate != BB_NONE) plan_candidate(quoter, &t->program->candidate[candidate], plan);
  }
  bb_scratch_end(scratch);
  return plan;
}

static bool same_kernel(const struct bb_planned *a, const struct bb_planned *b) {
  if (a->way.snapshot != b->way.snapshot || a->way.fold != b->way.fold ||
      a->way.parts != b->way.parts || a->way.blocks != b->way.blocks || !a->nest || !b->nest ||
      a->nest->terms != b->nest->terms || a->nest->loops != b->nest->loops)
    return false;
  for (uint32_t i = 0; i < a->way.blocks; i++)
    if (a->way.block_dim[i] != b->way.block_dim[i] ||
        a->way.block[i].elements != b->way.block[i].elements)
      return false;
  return true;
}

static void add_plan(tabler *t, bb_plan *plan) {
  for (uint32_t i = 0; i < t->plans; i++) {
    uint32_t k = 0;
    if (t->plan[i]->kernels != plan->kernels) continue;
    while (k < plan->kernels && same_kernel(&t->plan[i]->kernel[k], &plan->kernel[k])) k++;
    if (k == plan->kernels) return;
  }
  BB_GROW(t->arena, t->plan, t->capacity, (size_t)t->plans + 1);
  t->plan[t->plans++] = plan;
}

/* --- prices of plans --- */

static double seconds_of(tabler *t, const bb_plan *plan, double extent) {
  bb_arena *scratch = bb_scratch(t->program->ctx);
  t->symbol[t->varied] = extent;
  t->pricer.dims = 0;
  const double *extents = bb_pricer_extents(&t->pricer);
  double seconds = 0;
  for (uint32_t i = 0; i < plan->kernels; i++) {
    const struct bb_planned *kernel = &plan->kernel[i];
    bb_price price = kernel->way.price;
    if (kernel->nest) {
      bb_pricing pricing = bb_pricing_bind(kernel->nest, t->pricer.machine, extents, scratch);
      bb_price_tiling(&pricing, &kernel->tiling, true, &price);
    }
    seconds += price.seconds;
  }
  bb_scratch_end(scratch);
  return seconds;
}

static uint32_t cheapest(tabler *t, double extent, double *seconds) {
  uint32_t best = 0;
  *seconds = INFINITY;
  for (uint32_t i = 0; i < t->plans; i++) {
    double price = seconds_of(t, t->plan[i], extent);
    if (price < *seconds) *seconds = price, best = i;
  }
  return best;
}

static bool holds(tabler *t, uint32_t plan, double extent) {
  double least;
  cheapest(t, extent, &least);
  return seconds_of(t, t->plan[plan], extent) <= least * (1 + SLACK);
}

/* The last extent up to which the plan was found to hold: steps grow, then the one that failed is halved
 * until two neighbours differ. */
static double last_of(tabler *t, uint32_t plan, double from, double most) {
  double good = from, step = 1;
  while (good < most) {
    double next = fmin(good + step, most);
    if (!holds(t, plan, next)) break;
    good = next;
    step = fmax(1, floor(good / 8));
  }
  double bad = fmin(good + step, most + 1);
  while (good < most && bad - good > 1) {
    double middle = floor((good + bad) / 2);
    if (holds(t, plan, middle))
      good = middle;
    else
      bad = middle;
  }
  return good;
}

static void fill(tabler *t, bb_table *table, double first, double last) {
  uint32_t capacity = 0;
  for (double from = first; from <= last;) {
    double seconds;
    uint32_t plan = cheapest(t, from, &seconds);
    double to = last_of(t, plan, from, last);
    BB_GROW(t->arena, table->entry, capacity, (size_t)table->entries + 1);
    bb_table_entry *entry = &table->entry[table->entries++];
    *entry = (bb_table_entry){.from = from, .to = to, .first = seconds};
    entry->last = seconds_of(t, t->plan[plan], to);
    entry->kernels = t->plan[plan]->kernels;
    entry->way = BB_NEW(t->arena, bb_way, entry->kernels);
    for (uint32_t k = 0; k < entry->kernels; k++) entry->way[k] = t->plan[plan]->kernel[k].way;
    from = to + 1;
    if (from > last) break;
    /* Both sides of the border. */
    uint32_t next = cheapest(t, from, &seconds);
    entry->beyond = seconds_of(t, t->plan[plan], from);
    entry->next_before = seconds_of(t, t->plan[next], to);
    entry->next_beyond = seconds;
  }
}

bb_table *bb_select_table(bb_program *program, const bb_selection_options *options, uint32_t symbol,
                          int64_t first, int64_t last, bb_arena *arena) {
  tabler t = {.program = program, .arena = arena, .options = *options, .varied = symbol};
  t.symbol = BB_NEW(arena, double, program->symbols);
  for (uint32_t i = 0; i < program->symbols; i++) t.symbol[i] = options->symbol[i];
  t.options.symbol = t.symbol;
  for (double extent = (double)first; extent < (double)last; extent *= 2)
    add_plan(&t, plan_at(&t, extent));
  add_plan(&t, plan_at(&t, (double)last));
  t.pricer = bb_pricer_create(program, options->machine, t.symbol, arena);
  bb_table *table = BB_NEW(arena, bb_table, 1);
  *table = (bb_table){.symbol = symbol, .plans = t.plans, .slack = SLACK};
  fill(&t, table, (double)first, (double)last);
  return table;
}
