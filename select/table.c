/* table.c - which kernels are cheapest at which value of a run-time extent.
 *
 * The program is selected at the first extent, at every doubling, and at the last; each different
 * outcome is a plan.  An entry of the table is a plan and where it holds: from left to right a plan is
 * kept as long as none of them is cheaper by more than a slack (else every change in the number of
 * waves would be an entry), and the extent after is where it is, for the first time, not; there the
 * cheapest plan takes over.
 */
#include "plans.h"

#include <math.h>

static const double SLACK = 0.05;

typedef struct tabler {
  bb_arena *arena;
  double *symbol;
  uint32_t varied; /* the symbol */
  bb_plans plans;
} tabler;

static double seconds_of(tabler *t, uint32_t plan, double extent) {
  t->symbol[t->varied] = extent;
  return bb_plans_seconds(&t->plans, plan, t->symbol);
}

/* The first, each doubling, and the last. */
static const double **points_of(const tabler *t, double first, double last, uint32_t symbols,
                                uint32_t *points) {
  uint32_t most = 2;
  for (double extent = first; extent < last; extent *= 2) most++;
  const double **point = BB_NEW(t->arena, const double *, most);
  for (double extent = first; *points == 0 || point[*points - 1][t->varied] < last; extent *= 2) {
    double *symbol = BB_NEW(t->arena, double, symbols);
    for (uint32_t i = 0; i < symbols; i++) symbol[i] = t->symbol[i];
    symbol[t->varied] = fmin(extent, last);
    point[(*points)++] = symbol;
  }
  return point;
}

static uint32_t cheapest(tabler *t, double extent, double *seconds) {
  uint32_t best = 0;
  *seconds = INFINITY;
  for (uint32_t i = 0; i < t->plans.count; i++) {
    double price = seconds_of(t, i, extent);
    if (price < *seconds) *seconds = price, best = i;
  }
  return best;
}

static bool holds(tabler *t, uint32_t plan, double extent) {
  double least;
  cheapest(t, extent, &least);
  return seconds_of(t, plan, extent) <= least * (1 + SLACK);
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
    const bb_plan *of = t->plans.plan[plan];
    *entry = (bb_table_entry){.from = from, .to = to, .first = seconds};
    entry->last = seconds_of(t, plan, to);
    entry->kernels = of->kernels;
    entry->way = BB_NEW(t->arena, bb_way, entry->kernels);
    for (uint32_t k = 0; k < entry->kernels; k++) entry->way[k] = of->kernel[k].way;
    from = to + 1;
    if (from > last) break;
    /* Both sides of the border. */
    uint32_t next = cheapest(t, from, &seconds);
    entry->beyond = seconds_of(t, plan, from);
    entry->next_before = seconds_of(t, next, to);
    entry->next_beyond = seconds;
  }
}

bb_table *bb_select_table(bb_program *program, const bb_selection_options *options, uint32_t symbol,
                          int64_t first, int64_t last, bb_arena *arena) {
  tabler t = {.arena = arena, .varied = symbol};
  t.symbol = BB_NEW(arena, double, program->symbols);
  for (uint32_t i = 0; i < program->symbols; i++) t.symbol[i] = options->symbol[i];
  uint32_t points = 0;
  const double **point = points_of(&t, (double)first, (double)last, program->symbols, &points);
  t.plans = bb_plans_start(program, options, points, point, arena);
  for (uint32_t i = 0; i < points; i++) bb_plans_add(&t.plans, point[i]);
  bb_table *table = BB_NEW(arena, bb_table, 1);
  *table = (bb_table){.symbol = symbol, .plans = t.plans.count, .slack = SLACK};
  fill(&t, table, (double)first, (double)last);
  return table;
}
