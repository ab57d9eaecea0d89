/* variants.c - chooses programs for regions of run-time extents.
 *
 * Regions are kept on disk beside prices: a model that was selected before asks for nothing but the kernels of its few
 * programs.
 */
#include "variants.h"

#include "api.h"
#include "compile/plan_make.h"
#include "compile/price_cache.h"

#include <string.h>

enum { FIRST = 1, LAST = 4096 }; /* of an extent of which nothing is said */

bb_choice bb_choice_of(const bb_program *p) {
  return (bb_choice){p->candidates, p->steps, p->candidate, p->step, p->selection};
}

void bb_choice_install(bb_program *p, const bb_choice *choice) {
  p->candidates = choice->candidates;
  p->candidate = choice->candidate;
  p->steps = choice->steps;
  p->step = choice->step;
  p->selection = choice->selection;
}

/* --- ranges --- */

static bb_symbol_range range_of(bb_program *program, const bb_advance_options *options,
                                uint32_t symbol) {
  bb_symbol_range made = {symbol, FIRST, LAST};
  for (uint32_t i = 0; i < options->ranges; i++) {
    const bb_extent_range *range = &options->range[i];
    if (strcmp(range->name, program->symbol[symbol]) != 0) continue;
    if (range->first < 1 || range->last < range->first || range->last > BB_MOST_EXTENT)
      bb_fail(program->ctx, BB_ERROR_ARGUMENT,
              "extent %s: a range goes from 1 or more to that or more, 2^40 at most", range->name);
    made.first = (double)range->first;
    made.last = (double)range->last;
  }
  return made;
}

static bb_symbol_range *ranges_of(bb_program *program, const bb_advance_options *options,
                                  const bb_followers *followers, bb_arena *arena, uint32_t *count) {
  bb_symbol_range *range = BB_NEW(arena, bb_symbol_range, program->symbols + 1);
  for (uint32_t i = 0; i < options->ranges; i++)
    if (bb_symbol_find(program, options->range[i].name) == UINT32_MAX)
      bb_fail(program->ctx, BB_ERROR_ARGUMENT, "there is no run-time extent %s",
              options->range[i].name);
  *count = 0;
  for (uint32_t s = 0; s < followers->symbols; s++)
    if (!followers->formula[s].count && !bb_api_tells(options, program->symbol[s]))
      range[(*count)++] = range_of(program, options, s);
  return range;
}

/* --- kept on disk: as numbers in a row --- */

typedef struct row {
  uint32_t count, capacity;
  double *number;
  bb_arena *arena;
} row;

static void put(row *r, double number) {
  BB_GROW(r->arena, r->number, r->capacity, r->count + 1u);
  r->number[r->count++] = number;
}

bb_prices bb_regions_written(const bb_regions *regions, uint32_t symbols, bb_arena *arena) {
  row r = {.arena = arena};
  put(&r, regions->count);
  for (uint32_t i = 0; i < regions->count; i++)
    for (uint32_t s = 0; s < symbols; s++) put(&r, regions->symbol[i][s]);
  put(&r, regions->mean);
  put(&r, regions->worst);
  put(&r, regions->axes);
  for (uint32_t a = 0; a < regions->axes; a++) {
    put(&r, regions->axis[a].symbol);
    put(&r, regions->axis[a].stretches);
    for (uint32_t i = 0; i + 1 < regions->axis[a].stretches; i++)
      put(&r, regions->axis[a].limit[i]);
  }
  put(&r, regions->cells);
  for (uint32_t i = 0; i < regions->cells; i++) put(&r, regions->cell[i]);
  return (bb_prices){r.count, r.number};
}

/* The next number, 0 beyond the last; whole ones up to a limit. */
static double next(const bb_prices *kept, uint32_t *at) {
  return *at < kept->count ? kept->seconds[(*at)++] : 0;
}

static uint32_t next_whole(const bb_prices *kept, uint32_t *at, double most) {
  double number = next(kept, at);
  return number >= 0 && number <= most ? (uint32_t)number : 0;
}

static bb_regions *read_back(const bb_prices *kept, uint32_t symbols, bb_arena *arena) {
  uint32_t at = 0;
  bb_regions *r = BB_NEW(arena, bb_regions, 1);
  *r = (bb_regions){.count = next_whole(kept, &at, kept->count)};
  const double **symbol = BB_NEW(arena, const double *, r->count + 1);
  for (uint32_t i = 0; i < r->count; i++) {
    double *value = BB_NEW(arena, double, symbols + 1);
    for (uint32_t s = 0; s < symbols; s++) value[s] = next(kept, &at);
    symbol[i] = value;
  }
  r->mean = next(kept, &at);
  r->worst = next(kept, &at);
  r->axes = next_whole(kept, &at, symbols);
  bb_region_axis *axis = BB_NEW(arena, bb_region_axis, r->axes + 1);
  for (uint32_t a = 0; a < r->axes; a++) {
    axis[a].symbol = next_whole(kept, &at, symbols - 1.0);
    axis[a].stretches = next_whole(kept, &at, kept->count);
    double *limit = BB_NEW(arena, double, axis[a].stretches + 1);
    for (uint32_t i = 0; i + 1 < axis[a].stretches; i++) limit[i] = next(kept, &at);
    axis[a].limit = limit;
  }
  r->cells = next_whole(kept, &at, kept->count);
  uint32_t *cell = BB_NEW(arena, uint32_t, r->cells + 1);
  for (uint32_t i = 0; i < r->cells; i++) cell[i] = next_whole(kept, &at, r->count - 1.0);
  r->symbol = symbol;
  r->axis = axis;
  r->cell = cell;
  return at == kept->count && r->count ? r : NULL;
}

/* --- choosing --- */

static const bb_regions *find_regions(bb_program *program, const bb_region_options *options) {
  bb_context *ctx = program->ctx;
  bb_arena *arena = program->arena, *scratch = bb_scratch(ctx);
  bb_price_key key = bb_price_key_of(program, options->selection, scratch);
  bb_buffer text = {.arena = scratch};
  bb_put(&text, "regions %u", options->most);
  for (uint32_t i = 0; i < options->ranges; i++)
    bb_put(&text, " %u %a %a", options->range[i].symbol, options->range[i].first,
           options->range[i].last);
  bb_put(&text, "\n%.*s", (int)key.length, key.text);
  key = (bb_price_key){text.data, text.length};
  const bb_prices *kept = bb_prices_recall(ctx, scratch, &key);
  bb_regions *regions = kept ? read_back(kept, program->symbols, arena) : NULL;
  if (!regions) {
    regions = bb_select_regions(program, options, arena);
    bb_prices prices = bb_regions_written(regions, program->symbols, scratch);
    bb_prices_keep(ctx, scratch, &key, &prices);
  }
  bb_scratch_end(scratch);
  return regions;
}

/* A selection edits the graphs of candidates. */
static bb_choice copy_of(bb_program *program, const bb_choice *from) {
  bb_choice made = *from;
  made.candidate = BB_NEW(program->arena, bb_candidate, from->candidates + 1);
  for (uint32_t i = 0; i < from->candidates; i++) {
    made.candidate[i] = from->candidate[i];
    made.candidate[i].graph = bb_graph_copy(from->candidate[i].graph);
  }
  return made;
}

static void settle(void *user, double *symbol) {
  bb_followers_settle(user, symbol);
}

void bb_api_drive_variants(bb_program *program, const bb_advance_options *options,
                           bb_drive_options *drive) {
  bb_arena *arena = program->arena;
  bb_drive(program, BB_STAGE_PARTITION, drive);
  bb_selection_options selection = *bb_api_selection(program, options, drive->choose);
  bb_followers followers = bb_followers_of(program, options, arena);
  bb_region_options wanted = {.selection = &selection,
                              .most =
                                  options->programs < BB_PROGRAMS ? options->programs : BB_PROGRAMS,
                              .settle = settle,
                              .user = &followers};
  wanted.range = ranges_of(program, options, &followers, arena, &wanted.ranges);
  const bb_regions *regions = wanted.ranges ? find_regions(program, &wanted) : NULL;
  if (!regions || regions->count == 1) {
    if (regions) {
      selection.symbol = regions->symbol[0];
      selection.quotes = regions->quotes;
    }
    bb_api_drive_selection(program, &selection, drive);
    return;
  }
  struct bb_variants *variants = BB_NEW(arena, struct bb_variants, 1);
  bb_plan_table table = bb_plan_table_of(regions, arena);
  *variants = (struct bb_variants){regions, bb_plan_regions(&table, program->symbol, arena),
                                   BB_NEW(arena, bb_choice, regions->count)};
  bb_choice parts = bb_choice_of(program);
  for (uint32_t v = regions->count; v-- > 0;) { /* the first last: it stays */
    bb_choice copy = v ? copy_of(program, &parts) : parts;
    bb_choice_install(program, &copy);
    program->stage = BB_STAGE_PARTITION;
    selection.symbol = regions->symbol[v];
    selection.quotes = regions->quotes;
    bb_api_drive_selection(program, &selection, drive);
    variants->choice[v] = bb_choice_of(program);
  }
  program->variants = variants;
}

/* --- what the public asks --- */

bool bb_program_show_variant(bb_program *program, uint32_t index) {
  const struct bb_variants *v = program->variants;
  if (index >= (v ? v->regions->count : 1)) return false;
  if (v) bb_choice_install(program, &v->choice[index]);
  return true;
}

bool bb_program_get_region(const bb_program *program, uint32_t index, bb_region_info *info) {
  const struct bb_variants *v = program->variants;
  if (index >= (v ? v->regions->cells : 1)) return false;
  *info = v ? v->region[index] : (bb_region_info){0};
  return true;
}
