/* emit.c - a model's kernels for a GPU as source: parsed, emitted, equal ones once, and what launches of them need.
 *
 * Each kernel for a device's own units is a source; all of plain threads, and those of misc nodes, are one together.
 */
#include "make.h"
#include "misc.h"

#include <string.h>

typedef struct texts {
  uint32_t count, capacity;
  bb_buffer *text;
} texts;

typedef struct making {
  bb_context *ctx;
  bb_arena *arena;
  bb_emit_options emission;
  texts own, plain; /* different ones so far */
  bb_buffer source; /* of plain kernels */
} making;

/* The number of an equal one, or of a new one at the end. */
static uint32_t place_of(bb_arena *arena, texts *all, const bb_buffer *source) {
  for (uint32_t i = 0; i < all->count; i++) {
    const bb_buffer *other = &all->text[i];
    if (other->length == source->length && memcmp(other->data, source->data, source->length) == 0)
      return i;
  }
  BB_GROW(arena, all->text, all->capacity, all->count + 1u);
  all->text[all->count] = *source;
  return all->count++;
}

static const uint32_t *numbers(bb_arena *arena, const uint32_t *from, uint32_t count) {
  uint32_t *kept = BB_NEW(arena, uint32_t, count + 1);
  if (count) memcpy(kept, from, count * sizeof *kept);
  return kept;
}

/* Under one name for all, to be compared, and then under its own; the name. */
static const char *put_plain(making *m, const bb_tile_program *tile, bb_simt_launch *plan) {
  bb_buffer alike = {.arena = m->arena};
  uint32_t before = m->plain.count;
  bb_emit_simt(&alike, tile, "k", &m->emission, plan);
  uint32_t number = place_of(m->arena, &m->plain, &alike);
  const char *name = bb_tile_describe(tile, bb_arena_printf(m->arena, "k%u", number), m->arena);
  if (number == before) bb_emit_simt(&m->source, tile, name, &m->emission, plan);
  return name;
}

static bb_gpu_way make_plain(making *m, const bb_tile_program *tile) {
  bb_simt_launch plan;
  const char *name = put_plain(m, tile, &plan);
  return bb_gpu_describe_plain(m->arena, tile, &plan, name);
}

/* Nests before a kernel for own units: what passes to that is an argument of both. */
static void make_before(making *m, const bb_tile_program *tile, bb_gpu_way *way) {
  bb_tile_program before = bb_tile_part(tile, 0, bb_tile_nests_before(tile));
  bb_simt_launch plan;
  if (!before.body.count) return;
  before.view = BB_NEW(m->arena, bb_tile_view, tile->views + 1);
  memcpy(before.view, tile->view, tile->views * sizeof *before.view);
  for (uint32_t v = 0; v < tile->views; v++) before.view[v].scratch = false;
  const char *name = put_plain(m, &before, &plan);
  bb_gpu_describe_before(m->arena, &before, &plan, name, way);
}

static bb_gpu_way make_own(making *m, bb_tile_program *tile, bb_gpu_units units) {
  bb_buffer source = {.arena = m->arena}, launch = {.arena = m->arena};
  bb_sm90_launch plan;
  bb_tile_program last = bb_tile_part(tile, bb_tile_nests_before(tile), tile->body.count);
  tile->name = bb_tile_describe(&last, "kernel", m->arena);
  if (units == BB_UNITS_WARPS)
    bb_emit_sm80(tile, m->emission.shared, &source, &launch, &plan);
  else
    bb_emit_sm90(tile, &source, &launch, &plan);
  bb_gpu_way way = bb_gpu_describe_own(m->arena, tile, &plan);
  way.own.image = place_of(m->arena, &m->own, &source);
  make_before(m, tile, &way);
  return way;
}

static void destroy_home(void *home) {
  bb_program_destroy(home);
}

static bb_gpu_way make_way(making *m, const bb_gpu_draft_way *from) {
  bb_tile_program *tile = bb_tile_parse(m->ctx, "a kernel", from->text, from->length);
  bb_defer(m->ctx, destroy_home, tile->home);
  bb_gpu_way way = from->units ? make_own(m, tile, from->units) : make_plain(m, tile);
  way.extent = numbers(m->arena, from->extent, from->extents);
  way.view = numbers(m->arena, from->view, from->views);
  bb_undefer(m->ctx, tile->home);
  bb_program_destroy(tile->home);
  return way;
}

static bb_gpu_ways make_ways(making *m, const bb_gpu_draft_ways *from) {
  bb_gpu_ways ways = {from->count, BB_NEW(m->arena, bb_gpu_way, from->count + 1)};
  for (uint32_t k = 0; k < from->count; k++) ways.way[k] = make_way(m, &from->way[k]);
  return ways;
}

static bool has_kernel(const bb_gpu_misc *misc, const char *name) {
  for (uint32_t k = 0; misc && k < BB_GPU_MISC_KERNELS; k++) {
    const char *own = bb_gpu_misc_kernel_of(misc, k)->name;
    if (own && strcmp(own, name) == 0) return true;
  }
  return false;
}

/* Of the first node alone that it runs. */
static void put_misc(bb_buffer *source, bb_gpu_misc *const *misc, uint32_t node) {
  for (uint32_t k = 0; k < BB_GPU_MISC_KERNELS; k++) {
    const bb_gpu_misc_kernel *kernel = bb_gpu_misc_kernel_of(misc[node], k);
    bool put = !kernel->name;
    for (uint32_t i = 0; !put && i < node; i++) put = has_kernel(misc[i], kernel->name);
    if (!put) bb_gpu_misc_put(source, kernel);
  }
}

static const bool *make_misc(making *m, const bb_plan *plan, bb_buffer *source) {
  bb_gpu_misc **misc = BB_NEW(m->arena, bb_gpu_misc *, plan->steps + 1);
  bool *runs = BB_NEW(m->arena, bool, plan->steps + 1);
  for (uint32_t i = 0; i < plan->steps; i++) {
    if (plan->step[i].misc) misc[i] = bb_gpu_misc_make(m->arena, plan, i);
    runs[i] = misc[i] != NULL;
    if (runs[i]) put_misc(source, misc, i);
  }
  return runs;
}

/* Does any node of the plan pick elements? */
static bool picks(making *m, const bb_plan *plan) {
  for (uint32_t i = 0; i < plan->steps; i++) {
    const bb_gpu_misc *misc = plan->step[i].misc ? bb_gpu_misc_make(m->arena, plan, i) : NULL;
    if (misc && bb_gpu_misc_picks(misc)) return true;
  }
  return false;
}

static const char *moves(bb_arena *arena) {
  bb_buffer source = {.arena = arena};
  bb_gpu_put_moves(&source);
  return source.data;
}

void bb_gpu_make(bb_context *ctx, const bb_gpu_target *target, const bb_gpu_draft *draft,
                 const bb_plan *plan, bb_arena *arena, bb_gpu_made *made) {
  making m = {.ctx = ctx, .arena = arena, .emission = {.shared = target->shared}};
  bb_buffer misc = {.arena = arena}, all = {.arena = arena};
  bb_gpu_kernels *kernels = BB_NEW(arena, bb_gpu_kernels, 1);
  m.source.arena = arena;
  *kernels = (bb_gpu_kernels){.target = bb_arena_text(arena, target->name, strlen(target->name)),
                              .kernels = draft->kernels,
                              .kernel = BB_NEW(arena, bb_gpu_ways, draft->kernels + 1)};
  for (uint32_t i = 0; i < draft->kernels; i++)
    kernels->kernel[i] = make_ways(&m, &draft->kernel[i]);
  kernels->misc = make_misc(&m, plan, &misc);
  *made = (bb_gpu_made){.kernels = kernels,
                        .owns = m.own.count,
                        .own = BB_NEW(arena, const char *, m.own.count + 1),
                        .moves = moves(arena)};
  for (uint32_t i = 0; i < m.own.count; i++) made->own[i] = m.own.text[i].data;
  bb_put(&all, "#include \"%s\"\n\n%s%s", picks(&m, plan) ? "pick.cuh" : "misc.cuh",
         misc.length ? misc.data : "", m.source.length ? m.source.data : "");
  kernels->images = kernels->moves = m.own.count;
  kernels->images++;
  kernels->plain = BB_NONE;
  if (!misc.length && !m.source.length) return;
  made->plain = all.data;
  kernels->plain = kernels->images++;
}
