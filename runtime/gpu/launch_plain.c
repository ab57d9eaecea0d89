/* launch_plain.c - kernels of plain threads: one launch for each nest, one after the other. */
#include "launch.h"

#include <string.h>

/* Blocks that a processor is given at most: of those with memory of their own, fewer. */
enum { LINE = 256, PER_PROCESSOR = 32, PER_PROCESSOR_OWN = 4 };

static int64_t value(const bb_gpu_machine *m, const bb_gpu_plain *k, bb_tile_index index,
                     const int64_t *extent) {
  bb_arena *scratch = bb_scratch(m->ctx);
  double *variable = BB_NEW(scratch, double, k->tile->extents + 1);
  for (uint32_t i = 0; i < k->tile->extents; i++) variable[i] = (double)extent[i];
  int64_t number = bb_tile_index_value(index, variable);
  bb_scratch_end(scratch);
  return number;
}

typedef struct room {
  int64_t tasks, each, blocks;
} room;

static room room_of(const bb_gpu_machine *m, const bb_gpu_plain *k, const bb_simt_nest *nest,
                    const int64_t *extent) {
  room r = {value(m, k, nest->tasks, extent), value(m, k, nest->own, extent), 0};
  int64_t most = (int64_t)m->processors * (r.each ? PER_PROCESSOR_OWN : PER_PROCESSOR);
  r.blocks = r.tasks < most ? r.tasks : most;
  return r;
}

static size_t lists_of(const bb_gpu_machine *m, const bb_gpu_plain *k, const int64_t *extent) {
  size_t bytes = 0;
  for (uint32_t v = 0; v < k->tile->views; v++)
    if (k->plan.list[v]) bytes += (size_t)value(m, k, k->plan.list[v], extent);
  return bytes;
}

size_t bb_gpu_plain_scratch(const bb_gpu_machine *m, const bb_gpu_plain *k, const int64_t *extent) {
  size_t own = 0;
  for (uint32_t n = 0; n < k->plan.nests; n++) {
    room r = room_of(m, k, &k->plan.nest[n], extent);
    if ((size_t)(r.blocks * r.each) > own) own = (size_t)(r.blocks * r.each);
  }
  return lists_of(m, k, extent) + own;
}

/* The argument's members, all of 64 bits. */
static uint64_t *arguments_of(const bb_gpu_machine *m, const bb_gpu_plain *k, const int64_t *extent,
                              const bb_gpu_pointer *view, bb_arena *arena) {
  const bb_tile_program *tile = k->tile;
  uint64_t *word = BB_NEW(arena, uint64_t, tile->extents + tile->views + 5), *at = word;
  bb_gpu_pointer list = m->scratch;
  for (uint32_t i = 0; i < tile->extents; i++) *at++ = (uint64_t)extent[i];
  at++;
  for (uint32_t v = 0; v < tile->views; v++) {
    *at++ = k->plan.list[v] ? list : view[v];
    if (k->plan.list[v]) list += (uint64_t)value(m, k, k->plan.list[v], extent);
  }
  at++;
  *at = list;
  return word;
}

void bb_gpu_call_plain(const bb_gpu_machine *m, const bb_gpu_plain *k, const int64_t *extent,
                       const bb_gpu_pointer *view, bb_gpu_calls *calls) {
  const bb_tile_program *tile = k->tile;
  bb_arena *scratch = bb_scratch(m->ctx);
  uint64_t *word = arguments_of(m, k, extent, view, scratch);
  uint64_t *last = word + tile->extents + tile->views + 2;
  for (uint32_t n = 0; n < k->plan.nests; n++) {
    const bb_simt_nest *nest = &k->plan.nest[n];
    room r = room_of(m, k, nest, extent);
    if (r.blocks < 1) continue;
    last[1] = (uint64_t)r.each;
    last[2] = (uint64_t)r.tasks;
    bb_gpu_call call = {.function = k->function[n],
                        .blocks = (uint32_t)r.blocks,
                        .threads = nest->threads,
                        .shared = nest->shared,
                        .early = m->past != NULL};
    bb_gpu_past_note(m, tile, extent, view);
    bb_gpu_add(m, calls, &call, word, (size_t)((char *)(last + 3) - (char *)word));
  }
  bb_scratch_end(scratch);
}
