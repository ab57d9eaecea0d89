/* kernels_test.c - a model's kernels: tile programs that keep the laws and survive their text, and the C
 * made of them, against the interpreter of block programs in float64, for several cuts into blocks
 * and numbers of threads.
 *
 * usage: kernels_test [--whole] [--bounded [--idle N] [--held N]] [--narrow] [--split-k N | --tree N | --machine NAME] MODEL
 *                     [ARRAYS.npz | NAME=EXTENT...]
 *   Arrays are drawn where no file gives them.  --bounded: no block is visited where a mask holds nowhere, and no mask asked where it
 *   holds everywhere, but for so many blocks (--idle, --held).  --narrow: values are rounded to 16 bits on the way.  --whole: one cut into blocks only, and nothing by the
 *   tile programs' meaning, which is slow.  --split-k, --tree: all folds are cut so; --machine: kernels,
 *   block sizes and folds are chosen by price, and a fold at least has to be cut.
 */
#include "../../runtime/cpu/plan.h"
#include "../../runtime/driver.h"
#include "visits.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct test {
  int argc;
  char **argv;
  bool whole, bounded, narrow;
  uint64_t idle, held; /* bounded: so many blocks may be visited in vain, and masked in vain */
  bb_drive_options drive;
  const char *machine;
  bb_program *program;
  bb_arena *arena;
  bb_binding binding;
  bb_interp_tensor *want; /* in float64 */
} test;

static void destroy_plan(void *plan) {
  bb_cpu_plan_destroy(plan);
}

/* --- inputs --- */

static int64_t *given_extents(const test *t) {
  int64_t *symbol = BB_NEW(t->arena, int64_t, t->program->symbols + 1);
  for (uint32_t s = 0; s < t->program->symbols; s++) {
    symbol[s] = -1;
    for (int i = 1; i < t->argc; i++) {
      size_t length = strlen(t->program->symbol[s]);
      if (strncmp(t->argv[i], t->program->symbol[s], length) == 0 && t->argv[i][length] == '=')
        symbol[s] = strtoll(t->argv[i] + length + 1, NULL, 10);
    }
  }
  return symbol;
}

static void draw_inputs(test *t) {
  bb_program *p = t->program;
  uint64_t state = 1;
  t->binding.symbol = given_extents(t);
  t->binding.tensor = BB_NEW(t->arena, bb_interp_tensor, p->tensors);
  for (uint32_t i = 0; i < p->tensors; i++) {
    bb_interp_tensor *made = &t->binding.tensor[i];
    if (p->tensor[i].role != BB_TENSOR_INPUT) continue;
    made->count = 1;
    for (uint32_t a = 0; a < p->tensor[i].axes; a++)
      made->count *=
          (size_t)bb_extent_bind(p, p->dim[p->tensor[i].axis[a]].extent, t->binding.symbol);
    made->data = BB_NEW(t->arena, double, made->count);
    for (size_t k = 0; k < made->count; k++) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      made->data[k] = (double)(float)((double)(int64_t)(state >> 11) / (double)(1ll << 52) - 1);
    }
  }
}

static void bind(test *t) {
  const char *npz = t->argc > 1 && !strchr(t->argv[1], '=') ? t->argv[1] : NULL;
  if (npz)
    bb_bind_inputs(t->program, bb_npz_read(t->arena, npz), NULL, t->arena, &t->binding);
  else
    draw_inputs(t);
}

/* --- tile programs --- */

/* They print, what is printed reads back to the same, and the laws hold (making a plan checks them). */
static void check_text(const test *t, const bb_cpu_plan *plan) {
  bb_context *ctx = t->program->ctx;
  for (uint32_t i = 0; i < plan->steps; i++) {
    if (!plan->step[i].kernel) continue;
    const bb_tile_program *tile = plan->step[i].kernel->tile;
    bb_buffer text = {.arena = bb_scratch(ctx)}, again = {.arena = text.arena};
    bb_tile_print(&text, tile);
    bb_tile_program *read = bb_tile_parse(ctx, "printed", text.data, text.length);
    bb_tile_print(&again, read);
    if (strcmp(text.data, again.data) != 0)
      bb_fail(ctx, BB_ERROR_MISMATCH, "another tile program is read than was printed:\n%s\n%s",
              text.data, again.data);
    bb_program_destroy(read->home);
    bb_scratch_end(text.arena);
  }
}

/* --- runs --- */

typedef struct way {
  const char *name;
  bb_cpu_options options;
} way;

static bb_cpu_plan *make(const test *t, const way *w) {
  bb_cpu_counts counts;
  bb_cpu_plan *plan = bb_cpu_plan_make(t->program, &w->options);
  bb_defer(t->program->ctx, destroy_plan, plan);
  check_text(t, plan);
  bb_cpu_plan_count(plan, &counts);
  if (counts.interpreted)
    bb_fail(t->program->ctx, BB_ERROR_MISMATCH, "%s: %u nodes have no kernel", w->name,
            counts.interpreted);
  return plan;
}

static void destroy(const test *t, bb_cpu_plan *plan) {
  bb_undefer(t->program->ctx, plan);
  bb_cpu_plan_destroy(plan);
}

static bb_interp_tensor *run(const test *t, bb_cpu_plan *plan) {
  bb_binding binding = {t->binding.symbol, BB_NEW(t->arena, bb_interp_tensor, t->program->tensors)};
  memcpy(binding.tensor, t->binding.tensor, t->program->tensors * sizeof *binding.tensor);
  for (int twice = 0; twice < 2; twice++) bb_cpu_run_binding(plan, &binding, t->arena);
  return binding.tensor;
}

/* What was drawn or read is in float32, and so is what kernels give unless they are exact. */
static void compare(const test *t, const way *w, const bb_interp_tensor *got,
                    const bb_interp_tensor *want, double tolerance) {
  const bb_program *p = t->program;
  for (uint32_t i = 0; i < p->tensors; i++) {
    if (p->tensor[i].role != BB_TENSOR_OUTPUT) continue;
    if (got[i].count != want[i].count)
      bb_fail(p->ctx, BB_ERROR_MISMATCH, "%s: %zu elements, not %zu", w->name, got[i].count,
              want[i].count);
    for (size_t k = 0; k < want[i].count; k++) {
      double a = got[i].data[k], b = want[i].data[k];
      if (a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= tolerance * (1 + fabs(b))) continue;
      bb_fail(p->ctx, BB_ERROR_MISMATCH, "%s: %s, element %zu: %.17g, not %.17g", w->name,
              p->tensor[i].name, k, a, b);
    }
  }
}

static void check_count(const test *t, const char *what, uint64_t count, uint64_t most) {
  if (count > most)
    bb_fail(t->program->ctx, BB_ERROR_MISMATCH, "%" PRIu64 " blocks are visited %s, not %" PRIu64,
            count, what, most);
}

/* Blocks in which a mask holds nowhere are not visited, and where all hold everywhere none is asked, in blocks of all these sizes;
 * in some of them masks are left off. */
static void check_bounded(const test *t) {
  const int64_t size[] = {64, 16, 4};
  bb_visits all = {0};
  int64_t *block = BB_NEW(t->arena, int64_t, t->program->dims + 1);
  int64_t *symbol = BB_NEW(t->arena, int64_t, t->program->symbols + 1);
  for (uint32_t s = 0; s < t->program->symbols; s++) /* so that blocks of 64 are some */
    symbol[s] = 2 * t->binding.symbol[s];
  for (uint32_t i = 0; i < sizeof size / sizeof *size; i++) {
    for (uint32_t d = 0; d < t->program->dims; d++) block[d] = size[i];
    way w = {"bounded", {.exact = true, .meaning = true, .block = block}};
    bb_cpu_plan *plan = make(t, &w);
    for (uint32_t k = 0; k < plan->steps; k++) {
      const bb_kernel *kernel = plan->step[k].kernel;
      if (!kernel) continue;
      const int64_t *extent = bb_launch_extents(t->program, kernel, symbol, t->arena);
      bb_visits_add(kernel->tile, extent, &all);
    }
    destroy(t, plan);
  }
  check_count(t, "where a mask holds nowhere", all.idle, t->idle);
  check_count(t, "with masks that hold everywhere", all.held, t->held);
  if (!all.left_off)
    bb_fail(t->program->ctx, BB_ERROR_MISMATCH, "no mask is left off where it holds");
}

/* However many threads run, the same bits come out. */
static void check_threads(const test *t, way w, double tolerance) {
  const uint32_t count[] = {1, 2, 7};
  bb_interp_tensor *one = NULL;
  bb_cpu_plan *plan = make(t, &w);
  for (uint32_t i = 0; i < 3; i++) {
    bb_cpu_set_threads(plan, count[i]);
    bb_interp_tensor *got = run(t, plan);
    compare(t, &w, got, t->want, tolerance);
    if (one) compare(t, &w, got, one, 0);
    one = got;
  }
  destroy(t, plan);
}

static void check_way(const test *t, const way *w) {
  bb_cpu_plan *plan = make(t, w);
  compare(t, w, run(t, plan), t->want, 1e-12);
  destroy(t, plan);
}

/* Blocks of one element, of sizes that divide nothing, larger than any extent, drawn for each loop. */
static void check_blocks(const test *t) {
  const int64_t size[] = {1, 3, 200};
  int64_t *block = BB_NEW(t->arena, int64_t, t->program->dims + 1);
  for (uint32_t i = 0; i < sizeof size / sizeof *size; i++) {
    for (uint32_t d = 0; d < t->program->dims; d++) block[d] = size[i];
    way w = {bb_arena_printf(t->arena, "blocks of %d", (int)size[i]), {.exact = true}};
    w.options.block = block;
    check_way(t, &w);
  }
  for (uint32_t seed = 1; seed <= 3; seed++) {
    way w = {bb_arena_printf(t->arena, "blocks of draw %u", seed), {.exact = true}};
    w.options.loop_seed = seed;
    check_way(t, &w);
    w.name = bb_arena_printf(t->arena, "draw %u by its meaning", seed);
    w.options.meaning = true;
    check_way(t, &w);
  }
}

/* By price, for the extents given. */
static const bb_selection_options *selection(test *t) {
  bb_program *p = t->program;
  bb_selection_options *made = BB_NEW(p->arena, bb_selection_options, 1);
  double *symbol = BB_NEW(p->arena, double, p->symbols);
  t->arena = p->arena;
  const int64_t *given = given_extents(t);
  for (uint32_t s = 0; s < p->symbols; s++) symbol[s] = (double)given[s];
  *made =
      (bb_selection_options){.machine = bb_machine_find(p->arena, t->machine), .symbol = symbol};
  return made;
}

static void check_cut(const test *t) {
  uint32_t cut = 0;
  for (uint32_t i = 0; i < t->program->candidates; i++)
    cut += t->program->candidate[i].bill->best.parts > 1;
  if (!cut) bb_fail(t->program->ctx, BB_ERROR_MISMATCH, "no fold is cheaper in parts");
}

static void body(bb_context *ctx, void *argument) {
  test *t = argument;
  t->program = bb_drive_read(ctx, t->argv[0], NULL, 0);
  bb_program_defer(t->program);
  if (t->machine) {
    bb_drive(t->program, BB_STAGE_BLOCK, &t->drive);
    t->drive.select = selection(t);
  }
  bb_drive(t->program, BB_STAGE_FUSED, &t->drive);
  if (t->machine) check_cut(t);
  t->arena = bb_scratch(ctx);
  bind(t);
  bb_binding all = {t->binding.symbol, BB_NEW(t->arena, bb_interp_tensor, t->program->tensors)};
  memcpy(all.tensor, t->binding.tensor, t->program->tensors * sizeof *all.tensor);
  bb_interp_options interpret = {.float64 = true, .symbol = all.symbol};
  bb_drive_run(t->program, &interpret, &all, t->arena, NULL);
  t->want = all.tensor;
  check_threads(t, (way){"in float64", {.exact = true}}, 1e-12);
  check_threads(t, (way){"in float32", {.exact = false}}, t->narrow ? 4e-2 : 1e-4);
  if (t->bounded) check_bounded(t);
  if (!t->whole) check_blocks(t);
  bb_scratch_end(t->arena);
  bb_undefer(ctx, t->program);
  bb_program_destroy(t->program);
}

static void complain(void *user, bb_log_level level, const char *message) {
  (void)user;
  if (level <= BB_LOG_WARNING) fprintf(stderr, "%s\n", message);
}

int main(int argc, char **argv) {
  test t = {argc - 1, argv + 1, .whole = false};
  for (; t.argc > 1 && strncmp(t.argv[0], "--", 2) == 0; t.argc--, t.argv++) {
    if (strcmp(t.argv[0], "--whole") == 0) {
      t.whole = true;
      continue;
    }
    if (strcmp(t.argv[0], "--narrow") == 0) {
      t.narrow = true;
      continue;
    }
    if (strcmp(t.argv[0], "--bounded") == 0) {
      t.bounded = true;
      continue;
    }
    if (strcmp(t.argv[0], "--machine") == 0) {
      t.machine = t.argv[1];
    } else if (strcmp(t.argv[0], "--idle") == 0) {
      t.idle = strtoull(t.argv[1], NULL, 10);
    } else if (strcmp(t.argv[0], "--held") == 0) {
      t.held = strtoull(t.argv[1], NULL, 10);
    } else {
      t.drive.fold = strcmp(t.argv[0], "--tree") == 0 ? BB_FOLD_TREE : BB_FOLD_SPLIT_K;
      t.drive.chunks = (uint32_t)strtoul(t.argv[1], NULL, 10);
    }
    t.argc--, t.argv++;
  }
  if (t.argc < 1) {
    fprintf(stderr, "usage: kernels_test [--whole] [--bounded [--idle N] [--held N]] [--narrow] "
                    "[--split-k N | --tree N "
                    "| --machine NAME] MODEL "
                    "[ARRAYS.npz | NAME=EXTENT...]\n");
    return 2;
  }
  bb_context *ctx;
  if (bb_context_create(&(bb_context_options){.version = BB_VERSION, .log = complain}, &ctx) !=
      BB_OK)
    return 1;
  bb_status status = bb_protect(ctx, body, &t);
  if (status != BB_OK) fprintf(stderr, "%s: %s\n", t.argv[0], bb_context_message(ctx));
  bb_context_destroy(ctx);
  return status != BB_OK;
}
