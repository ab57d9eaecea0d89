/* schedule_gpu.c - the road from a block program to a tile program for a GPU, and the block sizes on it.
 *
 * Each pass is a rewriting of the tile program that keeps its meaning; the order matters where one makes
 * what another looks for:
 *
 *   dissolve, join           loops of one iteration, loops of nothing but a loop
 *   shallow                  a loop around a product whose depth is one block
 *   axes                     views of fewer axes
 *   flat                     axes one behind the other, as one that blocks of rows are cut from
 *   widen                    plain statements in f32
 *   marks                    iterations that masks from memory leave nothing to do, by a nest before the others
 *   clean                    one statement for each value
 *   sums                     products that are only added, in one accumulator
 *   masks, guards, fills     selections by coordinates apart from values, and no more of them than needed
 *   scales, powers           constant factors where they cost nothing
 *   invariants               what a loop makes alike in every iteration, before it
 *   factors                  what repairs scale by
 *   once, quotients          what rows of a block have in common; blocks multiplied in place of divided (divide.h)
 *   stretches                loops split by where masks hold
 *   side                     results whose rows are the columns of what warp groups make
 *   lazy, partials           folds as the loop's stretches let them be
 *   rows                     blocks of rows that several rows of an image fill
 *   ends                     masks as where a row's columns begin and end
 *   place                    memories, stages, roles, the grid
 *   split                    folds in parts, of which a cluster's blocks make one each; or
 *   slices                   extents that a launch may have less of (slice.h): threads that store parts have no registers for the
 *                            strides of arrays beside their extents
 */
#include "schedule_gpu.h"

#include "divide.h"
#include "gpu.h"
#include "rows.h"

#include <string.h>

enum { ROWS = 64 }; /* of a block, the least that warp groups multiply */

/* budget: what bb_gpu has of the target.  Returns that with what passes have found. */
static bb_gpu rewrite(bb_tile_program *tile, const bb_gpu *budget, bool few, bool by_group,
                      uint32_t split) {
  bb_gpu g = *budget;
  g.p = tile;
  g.ctx = tile->home->ctx;
  g.strict = tile->home->strict;
  g.split = split;
  bb_gpu_dissolve(&g);
  bb_gpu_join(&g);
  if (!few && !split && !g.warps) bb_gpu_shallow(&g);
  bb_gpu_axes(&g);
  bool flat = !few && bb_gpu_flat(&g);
  if (g.flat && !flat) bb_gpu_refuse(&g, "no axes that lie one behind the other");
  bb_tile_widen(tile, g.strict);
  if (!few) bb_gpu_marks(&g);
  bb_gpu_clean(&g);
  bb_gpu_sums(&g);
  bb_gpu_masks(&g);
  bb_gpu_guards(&g);
  bb_gpu_fills(&g);
  bb_tile_scales(tile, false);
  bb_gpu_powers(&g);
  bb_gpu_invariants(&g);
  bb_gpu_clean(&g);
  bb_gpu_factors(&g);
  bb_gpu_once(&g);
  bb_tile_divide(tile);
  if (few) {
    bb_gpu_few(&g, by_group);
  } else {
    if (g.side) bb_gpu_side(&g);
    bb_gpu_stretches(&g);
    bb_gpu_settle_marks(&g);
    bb_gpu_lazy(&g);
    bb_gpu_partials(&g);
    bb_gpu_unmask(&g);
    bool several = !g.warps && bb_rows_fill(tile, ROWS);
    if (g.several && !several) bb_gpu_refuse(&g, "no rows of an image that fill a block");
    bb_gpu_ends(&g);
    bb_gpu_place(&g);
    if (split)
      bb_gpu_split(&g);
    else if (!g.warps && !g.before.count)
      g.slices = bb_tile_make_slices(tile, g.slice_of);
  }
  for (uint32_t i = 0; i < g.before.count; i++)
    bb_tile_insert(tile, &tile->body, i, g.before.stmt[i]);
  bb_gpu_prune(&g);
  return g;
}

/* --- block sizes --- */

typedef struct sizes {
  int64_t rows, cols, folded, whole; /* whole: dims up to this extent are one block */
} sizes;

/* In order of preference: for results whose columns are cut into blocks, and for others, where each block
 * of what is folded has to bring enough work. */
static const sizes wide[] = {{128, 256, 64, 256}, {128, 128, 64, 256}, {128, 128, 64, 128},
                             {64, 128, 64, 128},  {128, 64, 64, 64},   {64, 64, 64, 64}};
static const sizes narrow[] = {{128, 128, 128, 256}, {128, 64, 64, 256}, {128, 128, 128, 128},
                               {64, 64, 64, 256},    {128, 64, 64, 64},  {64, 64, 64, 64}};
enum { TRIED = sizeof wide / sizeof *wide };
_Static_assert(TRIED == sizeof narrow / sizeof *narrow, "as many are tried of both");

/* A way to cut results into blocks of such sizes. */
typedef struct gpu_way {
  sizes cut;
  bool few;       /* of at most so many rows (gpu_few.c) */
  bool side;      /* on their side (gpu_side.c) */
  uint32_t split; /* not 0: folds in so many parts at most (gpu_split.c) */
} gpu_way;

enum { FEW = 8, GROUP_FOLDED = 128, MOST_PARTS = 8 };
static const sizes thinnest = {FEW, 64, 16, 256};

/* Way 0 is the first of `wide` or `narrow` for which there is room. */
static const gpu_way ways[] = {
    {{0}},
    /* Where tiles of the first choice would leave processors idle. */
    {{128, 128, 64, 128}},
    {{64, 128, 64, 128}},
    {{64, 64, 64, 64}},
    {{64, 64, 128, 128}},
    {{128, 128, 64, 128}, .split = MOST_PARTS},
    {{64, 128, 64, 128}, .split = MOST_PARTS},
    {{FEW, 64, 16, 256}, .few = true},
    {{16, 64, 16, 256}, .few = true},
    {{32, 64, 16, 256}, .few = true},
    {{64, 64, 16, 256}, .few = true},
    /* Columns that fill processors better in thirds of 576 or 768. */
    {{128, 192, 64, 192}},
    /* Rows that fill no tile of 128. */
    {{208, 128, 64, 128}, .side = true},
    {{152, 128, 64, 128}, .side = true},
    {{208, 64, 64, 128}, .side = true, .split = MOST_PARTS},
    {{152, 64, 64, 128}, .side = true, .split = MOST_PARTS},
};
_Static_assert(sizeof ways / sizeof *ways == BB_GPU_WAYS, "every way has its number");
/* Way 1 where columns are one block: tiles of half the rows, two of which share a processor.  They are as many as there are
 * processors at half the length, and where some take longer than others, more of them are evener. */
static const sizes half = {64, 64, 64, 256};
enum { HALF = 1 };

/* Where warps make the products of their own rows (bb_gpu.warps): also the rows of a group of four, and how many blocks share a
 * processor, each its registers and memory, so that one's begin, end and waits overlap the others' products.  Taller tiles of a warp
 * read less of the right operand for each product. */
typedef struct warp_sizes {
  sizes cut;
  uint32_t rows, blocks;
} warp_sizes;
static const warp_sizes warp_wide[] = {{{256, 128, 64, 128}, 128, 1},
                                       {{128, 128, 64, 128}, 128, 2},
                                       {{128, 128, 64, 128}, 128, 1},
                                       {{64, 128, 64, 128}, 64, 2},
                                       {{64, 64, 64, 64}, 64, 2}};
static const warp_sizes warp_narrow[] = {{{64, 128, 64, 256}, 64, 2},
                                         {{64, 128, 32, 256}, 64, 2},
                                         {{128, 128, 64, 256}, 64, 1},
                                         {{64, 128, 32, 256}, 64, 1},
                                         {{64, 64, 64, 64}, 64, 1}};
_Static_assert(BB_WARP_WAYS == sizeof warp_wide / sizeof *warp_wide &&
                   BB_WARP_WAYS == sizeof warp_narrow / sizeof *warp_narrow,
               "every way has its sizes");

/* What a kernel does with each dim. */
typedef struct uses {
  bool *folded, *cols; /* by dim: folded over; columns of results */
} uses;

static bool is_whole(const bb_program *program, bb_dim dim, int64_t most) {
  int64_t extent = bb_extent_value(program->dim[dim].extent);
  return extent > 0 && extent <= most;
}

/* Elements of which a block of rows is made, and one of columns or of what is folded: less than that is in vain. */
enum { ROW_GRAIN = 64, GRAIN = 32 };

static int64_t padded(int64_t extent, int64_t grain) {
  return (extent + grain - 1) / grain * grain;
}

static void find_folded(const bb_graph *graph, const uses *u) {
  for (uint32_t i = 0; i < graph->count; i++) {
    const bb_node *node = bb_node_get(graph, i);
    if (node->kind != BB_NODE_MAP) continue;
    for (uint32_t o = 0; o < node->nout; o++)
      u->folded[node->dim] |= node->out[o].mode == BB_OUT_FOLD;
    find_folded(node->inner, u);
  }
}

/* Are the columns of some result cut into blocks? */
static bool find_columns(const bb_program *program, const bb_graph *graph, const uses *u) {
  bool cut = false;
  for (uint32_t i = 0; i < graph->noutputs; i++) {
    const bb_type *type = bb_type_of(graph, bb_src(graph, graph->output[i], 0));
    if (type->item.col == BB_NO_DIM) continue;
    u->cols[type->item.col] = true;
    cut |= !is_whole(program, type->item.col, wide[0].whole);
  }
  return cut;
}

/* Which values of a level are made of a product's result: by node; given: those of its inputs, by number.  Is an operand of
 * some other product one of them? */
static bool find_chain(const bb_graph *graph, const bool *given, bool *made, bb_arena *arena) {
  uint32_t *order = BB_NEW(arena, uint32_t, graph->live + 1u);
  uint32_t count = bb_topological_order(graph, arena, order);
  bool chain = false;
  for (uint32_t i = 0; i < graph->ninputs; i++) made[graph->input[i]] = given[i];
  for (uint32_t k = 0; k < count; k++) {
    const bb_node *node = bb_node_get(graph, order[k]);
    if (node->kind == BB_NODE_INPUT) continue;
    bool is = node->kind == BB_NODE_FUNC && node->op == BB_OP_DOT, of = false;
    bool *in = BB_NEW(arena, bool, node->nin + 1u);
    for (uint32_t i = 0; i < node->nin; i++) of |= in[i] = made[node->in[i].src.node];
    chain |= is && of;
    if (node->kind == BB_NODE_MAP) {
      bool *inside = BB_NEW(arena, bool, node->inner->count + 1u);
      chain |= find_chain(node->inner, in, inside, arena);
      for (uint32_t o = 0; o < node->inner->noutputs; o++) is |= inside[node->inner->output[o]];
    }
    made[order[k]] = is || of;
  }
  return chain;
}

static bool has_chain(const bb_graph *graph) {
  bb_arena *scratch = bb_scratch(graph->program->ctx);
  bool *none = BB_NEW(scratch, bool, graph->ninputs + 1u);
  bool chain = find_chain(graph, none, BB_NEW(scratch, bool, graph->count + 1u), scratch);
  bb_scratch_end(scratch);
  return chain;
}

/* Is it the columns that are cut, as far as they can be: is all that is folded a product's? */
static bool is_wide(const bb_program *program, const bb_graph *graph, const uses *u) {
  bool cut = find_columns(program, graph, u);
  return cut || !has_chain(graph);
}

/* Have all results few rows, as far as that is known? */
static bool has_few_rows(const bb_program *program, const bb_graph *graph, const int64_t *given,
                         int64_t most, bool unknown) {
  for (uint32_t i = 0; i < graph->noutputs; i++) {
    bb_dim row = bb_type_of(graph, bb_src(graph, graph->output[i], 0))->item.row;
    if (row == BB_NO_DIM) return false;
    int64_t extent = bb_extent_value(program->dim[row].extent);
    bool few = (extent > 0 && extent <= most) || (given && given[row] > 0 && given[row] <= most) ||
               (unknown && extent <= 0);
    if (!few) return false;
  }
  return graph->noutputs > 0;
}

/* whole: blocks have all rows whatever there are of the dim: few columns of a product made on its side, or an axis that others lie
 * behind. */
static void size_blocks(const bb_program *program, const uses *u, const sizes *s,
                        const int64_t *given, bool whole, int64_t grain, int64_t *block) {
  for (uint32_t d = 0; d < program->dims; d++) {
    int64_t extent = bb_extent_value(program->dim[d].extent);
    bool row = !u->folded[d] && !u->cols[d];
    block[d] = u->folded[d] ? s->folded : u->cols[d] ? s->cols : s->rows;
    if (row && is_whole(program, d, s->rows) && !whole) block[d] = padded(extent, ROW_GRAIN);
    if (!row && is_whole(program, d, s->whole)) block[d] = padded(extent, grain);
    if (given && given[d] > 0) block[d] = given[d];
  }
}

/* --- */

typedef struct attempt {
  bb_program *program;
  const bb_graph *graph;
  const char *name;
  const int64_t *block;
  const bb_room *room;
  bool few, by_group;
  uint32_t split;
  bb_gpu budget;
  const bb_kernel *kernel;
} attempt;

/* Views that passes have added are no tensors. */
static const bb_kernel *with_scratch(bb_arena *arena, const bb_kernel *kernel, uint32_t views) {
  if (kernel->tile->views == views) return kernel;
  bb_kernel *made = BB_NEW(arena, bb_kernel, 1);
  bb_kernel_argument *argument = BB_NEW(arena, bb_kernel_argument, kernel->tile->views);
  memcpy(argument, kernel->argument, views * sizeof *argument);
  for (uint32_t i = views; i < kernel->tile->views; i++)
    argument[i] = (bb_kernel_argument){BB_NONE, NULL};
  *made = *kernel;
  made->argument = argument;
  return made;
}

/* Extents that passes have added are what those of the same results are. */
static const bb_kernel *with_slices(bb_program *program, const bb_kernel *kernel, const bb_gpu *g) {
  uint32_t all = kernel->tile->extents, before = all - g->slices;
  if (!g->slices) return kernel;
  bb_kernel *made = BB_NEW(program->arena, bb_kernel, 1);
  const bb_extent **extent = BB_NEW(program->arena, const bb_extent *, all);
  uint32_t *symbol = BB_NEW(program->arena, uint32_t, all);
  bool *used = BB_NEW(program->arena, bool, all);
  for (uint32_t i = 0; i < all; i++) {
    bb_tile_index of = i < before ? NULL : g->slice_of[i - before];
    bool number = of && of->op == BB_X_CONST;
    uint32_t from = of && !number ? of->index : i;
    extent[i] = number ? bb_extent_number(program, (int64_t)of->number) : kernel->extent[from];
    symbol[i] = number ? BB_NONE : kernel->symbol[from];
    used[i] = of || kernel->used[from];
  }
  *made = *kernel;
  made->extent = extent, made->symbol = symbol, made->used = used;
  return made;
}

static void try_blocks(bb_context *ctx, void *argument) {
  attempt *a = argument;
  (void)ctx;
  bb_schedule_options options = {.block = a->block, .raw = true, .tasks = true, .room = a->room};
  const bb_kernel *kernel = bb_schedule(a->program, a->graph, a->name, &options);
  uint32_t views = kernel->tile->views;
  bb_gpu done = rewrite(kernel->tile, &a->budget, a->few, a->by_group, a->split);
  a->kernel = with_slices(a->program, with_scratch(a->program->arena, kernel, views), &done);
}

/* Would blocks of so many rows be partly empty, though what other axes have could fill them? */
static bool are_short(const bb_program *program, const bb_graph *graph, int64_t rows) {
  for (uint32_t i = 0; i < graph->noutputs; i++) {
    const bb_type *type = bb_type_of(graph, bb_src(graph, graph->output[i], 0));
    bb_dim row = type->item.row;
    if (row == BB_NO_DIM || !is_whole(program, row, rows - 1)) return false;
    bool others = false;
    for (uint32_t k = 0; k < type->rank; k++)
      others |= type->level[k].dim != row && type->level[k].dim != type->item.col;
    if (!others) return false;
  }
  return graph->noutputs > 0;
}

/* In blocks of such sizes, that short axes fill together where they can. */
static bb_status try_sizes(bb_context *ctx, attempt *a, const uses *u, const sizes *s,
                           const int64_t *given, int64_t grain, int64_t *size) {
  a->budget.flat = !given && are_short(a->program, a->graph, s->rows);
  if (a->budget.flat) {
    size_blocks(a->program, u, s, NULL, true, grain, size);
    bb_status status = bb_protect(ctx, try_blocks, a);
    a->budget.flat = false;
    if (status != BB_ERROR_UNSUPPORTED) return status;
    ctx->status = BB_OK;
  }
  size_blocks(a->program, u, s, given, a->budget.side, grain, size);
  return bb_protect(ctx, try_blocks, a);
}

/* For results of few rows: by a warp group where that is possible, else by warps. */
static bb_status try_few(bb_context *ctx, attempt *a, const uses *u, const sizes *s,
                         int64_t *size) {
  sizes cut = *s;
  bb_status status = BB_ERROR_UNSUPPORTED;
  a->few = true;
  for (int by_group = 1; by_group >= 0 && status == BB_ERROR_UNSUPPORTED; by_group--) {
    cut.folded = by_group ? GROUP_FOLDED : s->folded;
    a->by_group = by_group;
    size_blocks(a->program, u, &cut, NULL, true, ROW_GRAIN, size);
    ctx->status = BB_OK;
    status = bb_protect(ctx, try_blocks, a);
  }
  a->few = false;
  return status;
}

const bb_kernel *bb_schedule_gpu(bb_program *program, const bb_graph *graph, const char *name,
                                 const int64_t *block, const bb_room *room) {
  bb_context *ctx = program->ctx;
  uses u = {BB_NEW(program->arena, bool, program->dims + 1),
            BB_NEW(program->arena, bool, program->dims + 1)};
  int64_t *size = BB_NEW(program->arena, int64_t, program->dims + 1);
  attempt a = {.program = program, .graph = graph, .name = name, .block = size, .room = room};
  const char *why = NULL; /* of the sizes that would be best */
  bb_status status = BB_ERROR_UNSUPPORTED;
  find_folded(graph, &u);
  const sizes *tried = is_wide(program, graph, &u) ? wide : narrow;
  if (has_few_rows(program, graph, block, FEW, false)) {
    for (uint32_t i = 0; i < 2 * TRIED; i++) {
      a.budget.flat = i < TRIED;
      a.budget.several = !a.budget.flat;
      size_blocks(program, &u, &tried[i % TRIED], NULL, a.budget.flat, GRAIN, size);
      if (bb_protect(ctx, try_blocks, &a) == BB_OK) return a.kernel;
      ctx->status = BB_OK;
    }
    a.budget.flat = a.budget.several = false;
    if (try_few(ctx, &a, &u, &thinnest, size) == BB_OK) return a.kernel;
    ctx->status = BB_OK;
  }
  for (uint32_t given = block ? 1 : 0;; given--) {
    for (uint32_t i = 0; i < TRIED; i++) {
      status = try_sizes(ctx, &a, &u, &tried[i], given ? block : NULL, GRAIN, size);
      if (status == BB_OK) return a.kernel;
      if (!why || status != BB_ERROR_UNSUPPORTED)
        why =
            bb_arena_text(program->arena, bb_context_message(ctx), strlen(bb_context_message(ctx)));
      ctx->status = BB_OK;
      if (status != BB_ERROR_UNSUPPORTED) bb_fail(ctx, status, "%s", why);
    }
    if (!given) break;
  }
  bb_fail(ctx, status, "%s", why);
}

bool bb_gpu_has_narrow_product(const bb_graph *graph) {
  for (uint32_t i = 0; i < graph->count; i++) {
    const bb_node *node = bb_node_get(graph, i);
    if (node->kind == BB_NODE_MAP && bb_gpu_has_narrow_product(node->inner)) return true;
    if (node->kind != BB_NODE_FUNC || node->op != BB_OP_DOT) continue;
    bb_dtype dtype = bb_type_of(graph, node->in[0].src)->item.dtype;
    if (dtype == BB_F16 || dtype == BB_BF16) return true;
  }
  return false;
}

const bb_kernel *bb_schedule_gpu_way(bb_program *program, const bb_graph *graph, const char *name,
                                     uint32_t number, const bb_room *room) {
  bb_context *ctx = program->ctx;
  const gpu_way *w = &ways[number];
  uses u = {BB_NEW(program->arena, bool, program->dims + 1),
            BB_NEW(program->arena, bool, program->dims + 1)};
  int64_t *size = BB_NEW(program->arena, int64_t, program->dims + 1);
  attempt a = {.program = program, .graph = graph, .name = name, .block = size, .room = room};
  if (!bb_gpu_has_narrow_product(graph))
    bb_fail(ctx, BB_ERROR_UNSUPPORTED, "no product of f16 or bf16");
  if (number == 0) return bb_schedule_gpu(program, graph, name, NULL, room);
  find_folded(graph, &u);
  bool cut = is_wide(program, graph, &u);
  if (!cut && !w->few && number != HALF)
    bb_fail(ctx, BB_ERROR_UNSUPPORTED, "columns that are one block");
  if (w->few && !has_few_rows(program, graph, NULL, w->cut.rows, true))
    bb_fail(ctx, BB_ERROR_UNSUPPORTED, "many rows");
  a.split = w->split;
  a.budget.side = w->side;
  a.budget.blocks = cut || w->few ? 0 : 2;
  bb_status status = w->few ? try_few(ctx, &a, &u, &w->cut, size)
                            : try_sizes(ctx, &a, &u, cut ? &w->cut : &half, NULL, GRAIN, size);
  if (status != BB_OK) bb_fail_again(ctx, status);
  return a.kernel;
}

const bb_kernel *bb_schedule_warps(bb_program *program, const bb_graph *graph, const char *name,
                                   uint32_t way, const int64_t *block, uint32_t shared,
                                   const bb_room *room) {
  bb_context *ctx = program->ctx;
  uses u = {BB_NEW(program->arena, bool, program->dims + 1),
            BB_NEW(program->arena, bool, program->dims + 1)};
  int64_t *size = BB_NEW(program->arena, int64_t, program->dims + 1);
  attempt a = {.program = program, .graph = graph, .name = name, .block = size, .room = room};
  bb_status status = BB_ERROR_UNSUPPORTED;
  const char *why = NULL; /* of the sizes that would be best */
  if (!bb_gpu_has_narrow_product(graph))
    bb_fail(ctx, BB_ERROR_UNSUPPORTED, "no product of f16 or bf16");
  find_folded(graph, &u);
  bool cut = is_wide(program, graph, &u);
  if (way > 0 && !cut) bb_fail(ctx, BB_ERROR_UNSUPPORTED, "columns that are one block");
  if (has_few_rows(program, graph, block, FEW, false))
    bb_fail(ctx, BB_ERROR_UNSUPPORTED, "few rows");
  for (uint32_t i = way; i < BB_WARP_WAYS && (i == way || way == 0); i++) {
    const warp_sizes *s = cut ? &warp_wide[i] : &warp_narrow[i];
    a.budget = (bb_gpu){.warps = true, .rows = s->rows, .blocks = s->blocks, .shared = shared};
    status = try_sizes(ctx, &a, &u, &s->cut, block, ROW_GRAIN, size);
    if (status == BB_OK) return a.kernel;
    if (!why || status != BB_ERROR_UNSUPPORTED)
      why = bb_arena_text(program->arena, bb_context_message(ctx), strlen(bb_context_message(ctx)));
    ctx->status = BB_OK;
    if (status != BB_ERROR_UNSUPPORTED) break;
  }
  bb_fail(ctx, status, "%s", why);
}
