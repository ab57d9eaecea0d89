/* api_select.c - the public calls about kernels that were chosen by price.
 */
#include "api.h"
#include "../graph/processor.h"
#include "../select/measure.h"
#include "compile/plan_make.h"
#include "compile/price_cache.h"
#include "gpu/gpu.h"
#include "variants.h"

#include <string.h>

enum {
  SYMBOL_GUESS = 1024,
  PROGRAMS = 4,
  FEW = 16 /* prices that are found as fast as read, where lowering is not asked */
};

/* Channels and maps from which a processor gains by halving the products of a convolution: of 32 a Zen 3 and a Zen 5 gain
 * nothing, of 48 a sixth of the time. */
enum { CHANNELS = 40 };

/* --- asking --- */

static const bb_machine *find_machine(bb_arena *arena, const char *name) {
  uint32_t number;
  const bb_gpu_api *gpu = bb_gpu_find_numbered(name, &number);
  if (gpu) return bb_gpu_describe(gpu, arena, number);
  if (bb_gpu_find_target(name)) return bb_gpu_suppose(arena, name);
  return bb_machine_find(arena, name);
}

bb_units bb_api_units(bb_program *program, const char *machine) {
  if (!machine || program->stage > BB_STAGE_ARRAY) return (bb_units){0};
  const bb_machine *m = find_machine(program->arena, machine);
  bool processor = strcmp(m->target, "cpu") == 0;
  bool tiles = strcmp(m->name, "host") == 0 && bb_processor_has_tiles();
  return (bb_units){.narrow = !processor,
                    .lines = processor,
                    .windows = processor,
                    .winograd = processor && !tiles ? CHANNELS : 0,
                    .bytes = bb_machine_dot_rate(m, BB_I32) > bb_machine_dot_rate(m, BB_F32)};
}

bool bb_api_tells(const bb_advance_options *options, const char *name) {
  for (uint32_t i = 0; i < options->dims; i++)
    if (strcmp(options->dim[i].name, name) == 0) return true;
  return false;
}

bb_followers bb_followers_of(bb_program *program, const bb_advance_options *options,
                             bb_arena *arena) {
  uint32_t symbols = program->symbols;
  bb_formula *formula = BB_NEW(arena, bb_formula, symbols + 1);
  for (uint32_t s = 0; s < symbols; s++)
    if (!bb_api_tells(options, program->symbol[s]))
      formula[s] = program->most[s] ? bb_formula_of_most(program, arena, s)
                                    : bb_formula_of_symbol(program, arena, s);
  return (bb_followers){symbols, formula, BB_NEW(arena, int64_t, symbols + 1)};
}

/* One may follow from another. */
void bb_followers_settle(const bb_followers *f, double *symbol) {
  int64_t value;
  bool changed = true;
  for (uint32_t round = 0; round < f->symbols && changed; round++) {
    changed = false;
    for (uint32_t s = 0; s < f->symbols; s++) f->value[s] = (int64_t)symbol[s];
    for (uint32_t s = 0; s < f->symbols; s++) {
      if (!f->formula[s].count || !bb_formula_value(&f->formula[s], f->value, &value)) continue;
      double now = value < 1 ? 1 : (double)value;
      changed |= now != symbol[s];
      symbol[s] = now;
    }
  }
}

static double *assume(bb_program *program, const bb_advance_options *options) {
  double *symbol = BB_NEW(program->arena, double, program->symbols);
  for (uint32_t s = 0; s < program->symbols; s++) symbol[s] = SYMBOL_GUESS;
  for (uint32_t i = 0; i < options->dims; i++) {
    const bb_setting *dim = &options->dim[i];
    uint32_t s = bb_symbol_find(program, dim->name);
    if (s == UINT32_MAX)
      bb_fail(program->ctx, BB_ERROR_ARGUMENT, "there is no run-time extent %s", dim->name);
    if (dim->value < 1 || dim->value > BB_MOST_EXTENT)
      bb_fail(program->ctx, BB_ERROR_ARGUMENT, "extent %s must be from 1 to 2^40, not %lld",
              dim->name, (long long)dim->value);
    symbol[s] = (double)dim->value;
  }
  bb_followers followers = bb_followers_of(program, options, program->arena);
  bb_followers_settle(&followers, symbol);
  return symbol;
}

const bb_selection_options *bb_api_selection(bb_program *program, const bb_advance_options *options,
                                             const bb_choose_options *choose) {
  if (program->stage > BB_STAGE_PARTITION)
    bb_fail(program->ctx, BB_ERROR_ARGUMENT,
            "the program is fused already: its kernels cannot be chosen anew");
  bb_selection_options *selection = BB_NEW(program->arena, bb_selection_options, 1);
  selection->machine = find_machine(program->arena, options->machine);
  selection->symbol = assume(program, options);
  selection->choose = choose;
  selection->rolling = options->fold != BB_FOLD_CHOSEN;
  if (program->stage == BB_STAGE_PARTITION) *selection = bb_drive_for_machine(program, selection);
  return selection;
}

void bb_api_drive_selection(bb_program *program, bb_selection_options *selection,
                            bb_drive_options *drive) {
  bb_context *ctx = program->ctx;
  bb_arena *scratch = bb_scratch(ctx);
  bb_price_key key = bb_price_key_of(program, selection, scratch);
  selection->known = bb_prices_recall(ctx, scratch, &key);
  drive->select = selection;
  bb_drive(program, BB_STAGE_FUSED, drive);
  uint32_t known = selection->known ? selection->known->count : 0;
  uint32_t least = selection->lowers ? 1 : FEW;
  if (program->selection->prices.count > known && program->selection->prices.count >= least)
    bb_prices_keep(ctx, scratch, &key, &program->selection->prices);
  bb_scratch_end(scratch);
}

void bb_api_drive_priced(bb_program *program, const bb_advance_options *options,
                         bb_drive_options *drive) {
  if (options->programs > 1) {
    bb_api_drive_variants(program, options, drive);
    return;
  }
  bb_drive(program, BB_STAGE_PARTITION, drive);
  bb_selection_options selection = *bb_api_selection(program, options, drive->choose);
  bb_api_drive_selection(program, &selection, drive);
}

void bb_api_choose(bb_program *program, const char *machine) {
  bb_advance_options options = {.version = BB_VERSION, .machine = machine};
  bb_drive_options drive = {.strict = program->strict, .units = bb_api_units(program, machine)};
  if (!*machine) options.programs = PROGRAMS; /* what a GPU runs is cut by extents at each launch */
  if (program->stage != BB_STAGE_FUSED) bb_api_drive_priced(program, &options, &drive);
}

const char *bb_machine_get_name(uint32_t index) {
  const bb_machine *machine = bb_machine_get(index);
  return machine ? machine->name : NULL;
}

typedef struct write_call {
  const char *machine;
  bool measure;
  bb_write_function *write;
  void *user;
} write_call;

static void write_body(bb_context *ctx, void *argument) {
  const write_call *call = argument;
  bb_arena *scratch = bb_scratch(ctx);
  bb_buffer out = {.arena = scratch};
  bb_machine_print(&out, call->measure ? bb_machine_measure(scratch)
                                       : find_machine(scratch, call->machine));
  bb_api_flush(&out, call->write, call->user);
  bb_scratch_end(scratch);
}

bb_status bb_machine_write(bb_context *context, const char *machine, bb_write_function *write,
                           void *user) {
  write_call call = {.machine = machine, .write = write, .user = user};
  return bb_protect(context, write_body, &call);
}

bb_status bb_machine_measure_and_write(bb_context *context, bb_write_function *write, void *user) {
  write_call call = {.measure = true, .write = write, .user = user};
  return bb_protect(context, write_body, &call);
}

typedef struct ceiling_call {
  const char *machine;
  bb_ceiling *ceiling;
} ceiling_call;

static const char *known_name(const char *name) {
  for (uint32_t i = 0; bb_machine_get(i); i++)
    if (strcmp(bb_machine_get(i)->name, name) == 0) return bb_machine_get(i)->name;
  return strcmp(name, "host") == 0 ? "host" : "measured";
}

static void ceiling_body(bb_context *ctx, void *argument) {
  const ceiling_call *call = argument;
  bb_arena *scratch = bb_scratch(ctx);
  const bb_machine *m = find_machine(scratch, call->machine);
  double dot = bb_machine_dot_rate(m, BB_F32), vector = bb_machine_vector_rate(m, BB_F32);
  *call->ceiling = (bb_ceiling){.machine = known_name(m->name),
                                .units = (uint32_t)m->units,
                                .bytes_per_second = m->memory_bandwidth,
                                .cache_bytes = m->cache_bytes,
                                .cache_per_second = m->cache_bandwidth,
                                .operations_per_second = m->units * (dot > vector ? dot : vector)};
  bb_scratch_end(scratch);
}

bb_status bb_machine_get_ceiling(bb_context *context, const char *machine, bb_ceiling *ceiling) {
  ceiling_call call = {machine, ceiling};
  return bb_protect(context, ceiling_body, &call);
}

/* --- facts --- */

static bb_way_info way_info(const bb_program *program, const bb_way *way) {
  const bb_price *price = &way->price;
  return (bb_way_info){.snapshot = way->snapshot,
                       .blocks = way->blocks,
                       .block = way->block,
                       .fold = way->fold == BB_NO_DIM ? NULL : bb_dim_get(program, way->fold)->name,
                       .parts = way->parts,
                       .seconds = price->seconds,
                       .memory_bytes = price->memory,
                       .cache_bytes = price->cache,
                       .dot = price->dot,
                       .vector = price->vector,
                       .special = price->special,
                       .repeated = price->repeated,
                       .instances = price->instances,
                       .waves = price->waves,
                       .launches = (uint32_t)price->launches,
                       .local_bytes = price->local,
                       .register_bytes = price->registers,
                       .bound = bb_bound_name(price->bound)};
}

bool bb_program_get_bill(const bb_program *program, uint32_t candidate, bb_bill_info *info) {
  if (candidate >= program->candidates || !program->candidate[candidate].bill) return false;
  const bb_bill *bill = program->candidate[candidate].bill;
  *info = (bb_bill_info){.chosen = way_info(program, &bill->best),
                         .has_second = bill->second.snapshot != BB_NONE,
                         .pieces = bill->pieces,
                         .again = bill->again,
                         .apart_seconds = bill->apart,
                         .joined_seconds = bill->joined};
  if (info->has_second) info->second = way_info(program, &bill->second);
  return true;
}

bool bb_program_get_selection(const bb_program *program, bb_selection_info *info) {
  const bb_selection_report *report = program->selection;
  if (!report) return false;
  *info = (bb_selection_info){.machine = report->machine->name,
                              .target = report->machine->target,
                              .units = (uint32_t)report->machine->units,
                              .seconds = report->seconds,
                              .pieces = report->pieces,
                              .considered = report->met,
                              .priced = report->priced,
                              .states = report->states,
                              .inexact = report->exact ? NULL : report->why};
  return true;
}

bool bb_program_get_assumed(const bb_program *program, uint32_t index, bb_setting *extent) {
  const bb_selection_report *report = program->selection;
  if (!report || index >= report->symbols) return false;
  *extent = (bb_setting){program->symbol[index], (int64_t)report->symbol[index]};
  return true;
}

/* --- tables --- */

typedef struct table_call {
  bb_program *program;
  const bb_table_options *options;
  void (*visit)(void *user, const bb_table_info *stretch);
  void *user;
} table_call;

static void visit_entry(const table_call *call, const bb_table_entry *entry, bb_arena *scratch) {
  bb_way_info *kernel = BB_NEW(scratch, bb_way_info, entry->kernels);
  for (uint32_t k = 0; k < entry->kernels; k++) kernel[k] = way_info(call->program, &entry->way[k]);
  bb_table_info info = {.from = (int64_t)entry->from,
                        .to = (int64_t)entry->to,
                        .seconds_from = entry->first,
                        .seconds_to = entry->last,
                        .beyond = entry->beyond,
                        .next_before = entry->next_before,
                        .next_beyond = entry->next_beyond,
                        .kernels = entry->kernels,
                        .kernel = kernel};
  call->visit(call->user, &info);
}

static void table_body(bb_context *ctx, void *argument) {
  const table_call *call = argument;
  const bb_table_options *o = call->options;
  bb_program *program = call->program;
  uint32_t symbol = bb_symbol_find(program, o->extent);
  if (o->version != BB_VERSION)
    bb_fail(ctx, BB_ERROR_ARGUMENT, "bb_table_options.version is not BB_VERSION");
  if (symbol == UINT32_MAX)
    bb_fail(ctx, BB_ERROR_ARGUMENT, "there is no run-time extent %s", o->extent);
  if (o->first < 1 || o->last < o->first || o->last > (int64_t)1 << 40)
    bb_fail(ctx, BB_ERROR_ARGUMENT, "a table goes from 1 or more to that or more");
  bb_arena *scratch = bb_scratch(ctx);
  const bb_selection_options *selection = bb_api_selection(program, o->advance, NULL);
  bb_table *table = bb_select_table(program, selection, symbol, o->first, o->last, scratch);
  for (uint32_t i = 0; i < table->entries; i++) visit_entry(call, &table->entry[i], scratch);
  bb_scratch_end(scratch);
}

bb_status bb_program_visit_table(bb_program *program, const bb_table_options *options,
                                 void (*visit)(void *user, const bb_table_info *stretch),
                                 void *user) {
  table_call call = {program, options, visit, user};
  bb_status status = bb_program_advance(program, BB_STAGE_PARTITION, options->advance);
  return status == BB_OK ? bb_protect(program->ctx, table_body, &call) : status;
}
