/* regions.c - a few programs that are together cheap at all values of some run-time extents.
 *
 * What is cheapest at one row and at a thousand differs in which values pass through memory and in block sizes, by
 * factors of three to twenty where blocks of one row meet many.  A program for each extent would be many; most of
 * them are cheap around theirs.  So: selection is asked at few points, which are far apart, the plans that it finds are
 * priced in many cells, and the few that serve all cells best are kept.
 */
#include "plans.h"

#include <math.h>

enum { MOST_AXES = 5, POINTS = 32, CELLS = 256 };
static const double LEAST_GAIN = 0.02; /* of the mean cell, by another program */
static const double SLACK =
    0.15; /* by which the program of a cell may be dearer than the cheapest of those taken */
static const double LITTLE = 20e-6; /* s: cells that take less hardly count */

/* Values of each range: a grid whose last axis moves fastest. */
typedef struct grid {
  uint32_t axes, nodes; /* nodes: of the grid */
  uint32_t count[MOST_AXES];
  double *value[MOST_AXES];
} grid;

static uint32_t doublings(const bb_symbol_range *range) {
  uint32_t count = 0;
  for (double value = range->first; value < range->last; value *= 2) count++;
  return count;
}

/* From the first to the last, the ratios between them as even as powers of two allow. */
static double *spread(const bb_symbol_range *range, uint32_t wanted, bb_arena *arena,
                      uint32_t *count) {
  uint32_t steps = doublings(range);
  *count = steps + 1 < wanted ? steps + 1 : wanted;
  double *value = BB_NEW(arena, double, *count);
  for (uint32_t i = 0; i < *count; i++)
    value[i] = *count == 1
                   ? range->last
                   : fmin(range->last, ldexp(range->first, (int)(i * steps / (*count - 1))));
  return value;
}

/* As fine as `most` nodes let it be. */
static grid grid_over(uint32_t ranges, const bb_symbol_range *range, uint32_t most,
                      bb_arena *arena) {
  grid g = {.axes = ranges, .nodes = 1};
  uint32_t each = 2;
  while (pow(each + 1, ranges) <= most && ranges) each++;
  for (uint32_t a = 0; a < ranges; a++) {
    g.value[a] = spread(&range[a], each, arena, &g.count[a]);
    g.nodes *= g.count[a];
  }
  return g;
}

typedef struct finder {
  const bb_region_options *options;
  bb_arena *arena;
  uint32_t symbols;
  bb_plans plans;
  const double **found_at; /* by plan */
  uint32_t *edge;          /* by axis: the plan where it is least and the others are not */
  grid cells;
  double *price;    /* by plan, then by cell */
  double *best;     /* by cell: of all plans */
  double *weight;   /* by cell; their sum is 1 */
  double *now;      /* by cell: of those that were taken */
  uint32_t *number; /* by plan: its place among those, or BB_NONE */
  uint32_t taken, *plan;
  uint32_t alone; /* the best of all plans, if it were the only one */
} finder;

/* The middle of a stretch that ends at a value of an axis. */
static double middle_of(const double *value, uint32_t at) {
  return at ? floor((value[at - 1] + 1 + value[at]) / 2) : value[at];
}

/* middle: of the cell that ends at the node. */
static double *symbols_at(const finder *f, const grid *g, uint32_t node, bool middle) {
  const bb_region_options *o = f->options;
  double *symbol = BB_NEW(f->arena, double, f->symbols + 1);
  for (uint32_t s = 0; s < f->symbols; s++) symbol[s] = o->selection->symbol[s];
  for (uint32_t a = g->axes; a-- > 0; node /= g->count[a]) {
    uint32_t at = node % g->count[a];
    symbol[o->range[a].symbol] = middle ? middle_of(g->value[a], at) : g->value[a][at];
  }
  if (o->settle) o->settle(o->user, symbol);
  return symbol;
}

/* The place of a middling value of an axis: blocks found for it serve longer ones, and pad shorter ones little. */
static uint32_t middling(const grid *g, uint32_t axis) {
  uint32_t at = g->count[axis] - 1;
  while (at > 0 && g->value[axis][at] > 1024 && g->value[axis][at - 1] >= 256) at--;
  return at;
}

/* The axis that is alone at its least value, the others being at a middling one; BB_NONE: not so, or nothing to be less
 * than. */
static uint32_t edge_of(const grid *g, uint32_t node) {
  uint32_t found = BB_NONE;
  for (uint32_t a = g->axes; a-- > 0; node /= g->count[a]) {
    uint32_t at = node % g->count[a];
    if (at == middling(g, a)) continue;
    if (at > 0 || found != BB_NONE) return BB_NONE;
    found = a;
  }
  return found;
}

static void find_plans(finder *f, bb_program *program) {
  grid points = grid_over(f->cells.axes, f->options->range, POINTS, f->arena);
  const double **symbol = BB_NEW(f->arena, const double *, points.nodes);
  for (uint32_t a = 0; a < points.axes; a++) f->edge[a] = BB_NONE;
  for (uint32_t i = 0; i < points.nodes; i++) symbol[i] = symbols_at(f, &points, i, false);
  f->found_at = BB_NEW(f->arena, const double *, points.nodes);
  f->plans = bb_plans_start(program, f->options->selection, points.nodes, symbol, f->arena);
  for (uint32_t i = 0; i < points.nodes; i++) {
    uint32_t before = f->plans.count, plan = bb_plans_add(&f->plans, symbol[i]);
    if (plan == before) f->found_at[plan] = symbol[i];
    if (edge_of(&points, i) != BB_NONE) f->edge[edge_of(&points, i)] = plan;
  }
}

/* Blocks divide what ends a cell, a power of two; the middle stands for what they do not. */
static void price_cells(finder *f) {
  uint32_t cells = f->cells.nodes, plans = f->plans.count;
  f->price = BB_NEW(f->arena, double, (size_t)cells *plans);
  f->best = BB_NEW(f->arena, double, cells);
  f->now = BB_NEW(f->arena, double, cells);
  for (uint32_t c = 0; c < cells; c++) {
    const double *end = symbols_at(f, &f->cells, c, false);
    const double *middle = symbols_at(f, &f->cells, c, true);
    f->best[c] = f->now[c] = INFINITY;
    for (uint32_t p = 0; p < plans; p++) {
      double seconds =
          (bb_plans_seconds(&f->plans, p, end) + bb_plans_seconds(&f->plans, p, middle)) / 2;
      f->price[(size_t)p * cells + c] = seconds;
      f->best[c] = fmin(f->best[c], seconds);
    }
  }
}

/* Cells are as far apart as extents are in ratio; what matters in a cell of microseconds is not its ratio. */
static void weigh_cells(finder *f) {
  uint32_t cells = f->cells.nodes;
  double sum = 0;
  f->weight = BB_NEW(f->arena, double, cells);
  for (uint32_t c = 0; c < cells; c++) sum += f->weight[c] = log1p(f->best[c] / LITTLE);
  for (uint32_t c = 0; c < cells; c++) f->weight[c] = sum > 0 ? f->weight[c] / sum : 1.0 / cells;
}

/* The geometric mean of how much longer than the best there is the cells take with what was taken and one more. */
static double mean_with(const finder *f, uint32_t plan) {
  uint32_t cells = f->cells.nodes;
  double sum = 0;
  for (uint32_t c = 0; c < cells; c++)
    sum += f->weight[c] * log(fmin(f->now[c], f->price[(size_t)plan * cells + c]) / f->best[c]);
  return exp(sum);
}

static uint32_t most_helpful(const finder *f, double *mean) {
  uint32_t best = BB_NONE;
  *mean = INFINITY;
  for (uint32_t p = 0; p < f->plans.count; p++) {
    double with = mean_with(f, p);
    if (best == BB_NONE || with < *mean) *mean = with, best = p;
  }
  return best;
}

static void take(finder *f, uint32_t plan) {
  uint32_t cells = f->cells.nodes;
  for (uint32_t c = 0; c < cells; c++)
    f->now[c] = fmin(f->now[c], f->price[(size_t)plan * cells + c]);
  f->number[plan] = f->taken;
  f->plan[f->taken++] = plan;
}

/* One row over many keys, no keys before many rows: what is least alone is taken first, up to half of all.  Prices
 * hide behind memory what a vector of rows costs of which one is there, and find a program for 16 rows or more as good
 * for one; measured, one's own is up to three times as fast. */
static void take_edges(finder *f) {
  for (uint32_t a = 0; a < f->cells.axes && f->taken < f->options->most / 2; a++)
    if (f->edge[a] != BB_NONE && f->number[f->edge[a]] == BB_NONE) take(f, f->edge[a]);
}

static void take_plans(finder *f) {
  double mean, next;
  f->number = BB_NEW(f->arena, uint32_t, f->plans.count);
  f->plan = BB_NEW(f->arena, uint32_t, f->plans.count);
  for (uint32_t p = 0; p < f->plans.count; p++) f->number[p] = BB_NONE;
  f->alone = most_helpful(f, &mean);
  take_edges(f);
  if (!f->taken) take(f, f->alone);
  mean = mean_with(f, f->plan[0]);
  while (f->taken < f->options->most && f->taken < f->plans.count) {
    uint32_t plan = most_helpful(f, &next);
    if (f->number[plan] != BB_NONE || next * (1 + LEAST_GAIN) > mean) break;
    take(f, plan);
    mean = next;
  }
}

/* How far from a cell a plan was found: doublings, over all axes. */
static double distance(const finder *f, uint32_t plan, uint32_t cell) {
  const grid *g = &f->cells;
  double sum = 0;
  for (uint32_t a = g->axes; a-- > 0; cell /= g->count[a])
    sum += fabs(
        log2(g->value[a][cell % g->count[a]] / f->found_at[plan][f->options->range[a].symbol]));
  return sum;
}

/* Of those taken that are next to the cheapest, the nearest: prices are no better than that. */
static uint32_t plan_of(const finder *f, uint32_t cell) {
  uint32_t nearest = BB_NONE;
  for (uint32_t i = 0; i < f->taken; i++) {
    uint32_t plan = f->plan[i];
    if (f->price[(size_t)plan * f->cells.nodes + cell] > f->now[cell] * (1 + SLACK)) continue;
    if (nearest == BB_NONE || distance(f, plan, cell) < distance(f, f->plan[nearest], cell))
      nearest = i;
  }
  return nearest;
}

/* Of those that have cells: the one that would do best without the others. */
static uint32_t best_alone(const finder *f, const uint32_t *cells) {
  uint32_t best = BB_NONE;
  double least = INFINITY;
  for (uint32_t i = 0; i < f->taken; i++) {
    const double *price = &f->price[(size_t)f->plan[i] * f->cells.nodes];
    double sum = 0;
    for (uint32_t c = 0; c < f->cells.nodes; c++) sum += f->weight[c] * log(price[c] / f->best[c]);
    if (!cells[i] || (best != BB_NONE && sum >= least)) continue;
    best = i;
    least = sum;
  }
  return best;
}

/* --- the table --- */

typedef struct table {
  grid grid;
  uint32_t *cell;
} table;

/* Of the axis: how many cells lie between neighbours along it. */
static uint32_t apart(const grid *g, uint32_t axis) {
  uint32_t cells = 1;
  for (uint32_t a = axis + 1; a < g->axes; a++) cells *= g->count[a];
  return cells;
}

/* Whether stretch i of an axis has in all cells what the next one has. */
static bool alike(const table *t, uint32_t axis, uint32_t i) {
  uint32_t step = apart(&t->grid, axis);
  for (uint32_t c = 0; c < t->grid.nodes; c++)
    if (c / step % t->grid.count[axis] == i && t->cell[c] != t->cell[c + step]) return false;
  return true;
}

/* Leaves stretch i out: the next one begins where it did. */
static void join(table *t, uint32_t axis, uint32_t i) {
  grid *g = &t->grid;
  uint32_t step = apart(g, axis), left = 0;
  for (uint32_t c = 0; c < g->nodes; c++)
    if (c / step % g->count[axis] != i) t->cell[left++] = t->cell[c];
  for (uint32_t k = i; k + 1 < g->count[axis]; k++) g->value[axis][k] = g->value[axis][k + 1];
  g->count[axis]--;
  g->nodes = left;
}

static void write_table(const finder *f, bb_regions *made) {
  table t = {.grid = f->cells, .cell = BB_NEW(f->arena, uint32_t, f->cells.nodes)};
  uint32_t *number = BB_NEW(f->arena, uint32_t, f->taken);
  const double **symbol = BB_NEW(f->arena, const double *, f->taken);
  for (uint32_t c = 0; c < f->cells.nodes; c++) number[plan_of(f, c)] = 1;
  uint32_t first = best_alone(f, number);
  for (uint32_t i = 0; i < f->taken; i++) {
    uint32_t next = i == 0 ? first : i <= first ? i - 1 : i;
    if (!number[next]) continue; /* others took all of its cells */
    symbol[made->count] = f->found_at[f->plan[next]];
    number[next] = made->count++;
  }
  for (uint32_t c = 0; c < f->cells.nodes; c++) t.cell[c] = number[plan_of(f, c)];
  bb_region_axis *axis = BB_NEW(f->arena, bb_region_axis, t.grid.axes + 1);
  for (uint32_t a = 0; a < t.grid.axes; a++) {
    for (uint32_t i = t.grid.count[a] - 1; i-- > 0;)
      if (alike(&t, a, i)) join(&t, a, i);
    if (t.grid.count[a] > 1)
      axis[made->axes++] =
          (bb_region_axis){f->options->range[a].symbol, t.grid.count[a], t.grid.value[a]};
  }
  made->symbol = symbol;
  made->axis = axis;
  made->cells = t.grid.nodes;
  made->cell = t.cell;
}

static void weigh(const finder *f, bb_regions *made) {
  double sum = 0;
  made->worst = 1;
  for (uint32_t c = 0; c < f->cells.nodes; c++) {
    double ratio = f->price[(size_t)f->alone * f->cells.nodes + c] / f->now[c];
    sum += f->weight[c] * log(ratio);
    made->worst = fmax(made->worst, ratio);
  }
  made->mean = exp(sum);
}

bb_regions *bb_select_regions(bb_program *program, const bb_region_options *options,
                              bb_arena *arena) {
  finder f = {.options = options, .arena = arena, .symbols = program->symbols};
  uint32_t axes = options->ranges < MOST_AXES ? options->ranges : MOST_AXES;
  f.edge = BB_NEW(arena, uint32_t, axes + 1);
  f.cells = grid_over(axes, options->range, CELLS, arena);
  find_plans(&f, program);
  price_cells(&f);
  weigh_cells(&f);
  take_plans(&f);
  bb_regions *made = BB_NEW(arena, bb_regions, 1);
  *made = (bb_regions){.quotes = f.plans.quotes};
  write_table(&f, made);
  weigh(&f, made);
  return made;
}
