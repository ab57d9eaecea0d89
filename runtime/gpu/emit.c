/* emit.c - a model's kernels for a GPU as source: parsed, emitted, equal ones once.
 *
 * Each kernel for a device's own units is a source; all of plain threads, and those of misc nodes, are one together.
 */
#include "code.h"

#include "../../lower/emit.h"

#include <string.h>

typedef struct texts {
  uint32_t count, capacity;
  bb_buffer *text;
} texts;

typedef struct making {
  bb_context *ctx;
  bb_arena *arena;
  bb_gpu_made *made;
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

static void make_own(making *m, bb_gpu_made_way *w, const bb_tile_program *tile) {
  bb_buffer source = {.arena = m->arena}, launch = {.arena = m->arena};
  w->own.tile = tile;
  bb_emit_sm90(tile, &source, &launch, &w->own.plan);
  w->source = place_of(m->arena, &m->own, &source);
}

const char *bb_gpu_function(bb_arena *arena, uint32_t source, uint32_t nest) {
  return bb_arena_printf(arena, "k%u_%u", source, nest);
}

/* Under one name for all, to be compared, and then under its own. */
static void make_plain(making *m, bb_gpu_made_way *w, const bb_tile_program *tile) {
  bb_buffer alike = {.arena = m->arena};
  uint32_t before = m->plain.count;
  w->plain.tile = tile;
  bb_emit_simt(&alike, tile, "k", &m->emission, &w->plain.plan);
  w->source = place_of(m->arena, &m->plain, &alike);
  if (w->source == before)
    bb_emit_simt(&m->source, tile, bb_arena_printf(m->arena, "k%u", w->source), &m->emission,
                 &w->plain.plan);
}

static void make_way(making *m, const bb_gpu_way *from, bb_gpu_made_way *w) {
  bb_gpu_way *kept = BB_NEW(m->arena, bb_gpu_way, 1);
  *kept = *from;
  kept->text = NULL;
  kept->extent = numbers(m->arena, from->extent, from->extents);
  kept->view = numbers(m->arena, from->view, from->views);
  w->from = kept;
  const bb_tile_program *tile = bb_tile_parse(m->ctx, "a kernel", from->text, from->length);
  w->own.tile = w->plain.tile = tile;
  (from->own ? make_own : make_plain)(m, w, tile);
}

static void unmake(void *made) {
  bb_gpu_unmake(made);
}

/* Is one of the nodes before this one run by the same kernel? */
static bool is_put(const making *m, uint32_t node, const char *name) {
  for (uint32_t i = 0; i < node; i++) {
    const bb_gpu_misc *other = m->made->misc[i];
    const char *put = other ? bb_gpu_misc_kernel_of(other)->name : NULL;
    if (put && strcmp(put, name) == 0) return true;
  }
  return false;
}

static void make_misc(making *m, const bb_plan *plan, bb_buffer *source) {
  m->made->misc = BB_NEW(m->arena, bb_gpu_misc *, plan->steps + 1);
  for (uint32_t i = 0; i < plan->steps; i++) {
    if (plan->step[i].misc) m->made->misc[i] = bb_gpu_misc_make(m->arena, plan, i);
    if (!m->made->misc[i]) continue;
    const bb_gpu_misc_kernel *kernel = bb_gpu_misc_kernel_of(m->made->misc[i]);
    if (kernel->name && !is_put(m, i, kernel->name)) bb_gpu_misc_put(source, kernel);
  }
}

static const char *moves(bb_arena *arena) {
  bb_buffer source = {.arena = arena};
  bb_gpu_put_moves(&source);
  return source.data;
}

void bb_gpu_make(bb_context *ctx, const bb_gpu_target *target, const bb_gpu_code *code,
                 const bb_plan *plan, bb_arena *arena, bb_gpu_made *made) {
  making m = {.ctx = ctx, .arena = arena, .made = made, .emission = {.shared = target->shared}};
  bb_buffer misc = {.arena = arena}, all = {.arena = arena};
  m.source.arena = arena;
  *made = (bb_gpu_made){.steps = plan->steps};
  made->kernel = BB_NEW(arena, struct bb_gpu_made_ways, code->kernels + 1);
  bb_defer(ctx, unmake, made);
  for (uint32_t i = 0; i < code->kernels; i++, made->kernels++) {
    struct bb_gpu_made_ways *w = &made->kernel[made->kernels];
    w->way = BB_NEW(arena, bb_gpu_made_way, code->kernel[i].count + 1);
    w->count = code->kernel[i].count;
    for (uint32_t k = 0; k < w->count; k++) make_way(&m, &code->kernel[i].way[k], &w->way[k]);
  }
  make_misc(&m, plan, &misc);
  made->owns = m.own.count;
  made->own = BB_NEW(arena, const char *, m.own.count + 1);
  for (uint32_t i = 0; i < m.own.count; i++) made->own[i] = m.own.text[i].data;
  bb_put(&all, "#include \"misc.cuh\"\n\n%s%s", misc.length ? misc.data : "",
         m.source.length ? m.source.data : "");
  if (misc.length || m.source.length) made->plain = all.data;
  made->moves = moves(arena);
  bb_undefer(ctx, made);
}

/* Whatever was parsed until it failed. */
void bb_gpu_unmake(bb_gpu_made *made) {
  for (uint32_t i = 0; made->kernel && made->kernel[i].way; i++)
    for (uint32_t k = 0; k < made->kernel[i].count; k++) {
      const bb_tile_program *tile = made->kernel[i].way[k].plain.tile;
      if (tile) bb_program_destroy(tile->home);
    }
  made->kernel = NULL;
}
