/* launch_plain.c - kernels of plain threads: one launch for each nest, one after the other. */
#include "launch.h"

#include <string.h>

/* Blocks that a processor is given at most: of those with memory of their own, fewer. */
enum { LINE = 256, PER_PROCESSOR = 32, PER_PROCESSOR_OWN = 4 };

int64_t bb_gpu_value(const bb_gpu_machine *m, const bb_formula *formula, const int64_t *extent) {
  int64_t value;
  if (!bb_formula_value(formula, extent, &value))
    bb_fail(m->ctx, BB_ERROR_INPUT, "a kernel's sizes are too large");
  return value;
}

typedef struct room {
  int64_t tasks, each, blocks;
} room;

static room room_of(const bb_gpu_machine *m, const bb_gpu_nest *nest, const int64_t *extent) {
  room r = {bb_gpu_value(m, &nest->tasks, extent), bb_gpu_value(m, &nest->own, extent), 0};
  int64_t most = (int64_t)m->processors * (r.each ? PER_PROCESSOR_OWN : PER_PROCESSOR);
  r.blocks = r.tasks < most ? r.tasks : most;
  return r;
}

static size_t lists_of(const bb_gpu_machine *m, const bb_gpu_way *k, const int64_t *extent) {
  size_t bytes = 0;
  for (uint32_t v = 0; v < k->views; v++)
    if (k->plain.list[v].count) bytes += (size_t)bb_gpu_value(m, &k->plain.list[v], extent);
  return bytes;
}

size_t bb_gpu_plain_scratch(const bb_gpu_machine *m, const bb_gpu_way *k, const int64_t *extent) {
  size_t own = 0;
  for (uint32_t n = 0; n < k->plain.nests; n++) {
    room r = room_of(m, &k->plain.nest[n], extent);
    if ((size_t)(r.blocks * r.each) > own) own = (size_t)(r.blocks * r.each);
  }
  return lists_of(m, k, extent) + own;
}

/* The argument's members, all of 64 bits. */
static uint64_t *arguments_of(const bb_gpu_machine *m, const bb_gpu_way *k, const int64_t *extent,
                              const bb_gpu_pointer *view, bb_arena *arena) {
  uint64_t *word = BB_NEW(arena, uint64_t, k->extents + k->views + 5), *at = word;
  bb_gpu_pointer list = m->scratch;
  for (uint32_t i = 0; i < k->extents; i++) *at++ = (uint64_t)extent[i];
  at++;
  for (uint32_t v = 0; v < k->views; v++) {
    const bb_formula *bytes = &k->plain.list[v];
    *at++ = bytes->count ? list : view[v];
    if (bytes->count) list += (uint64_t)bb_gpu_value(m, bytes, extent);
  }
  at++;
  *at = list;
  return word;
}

void bb_gpu_call_plain(const bb_gpu_machine *m, const bb_gpu_way *k, const int64_t *extent,
                       const bb_gpu_pointer *view, bb_gpu_calls *calls) {
  bb_arena *scratch = bb_scratch(m->ctx);
  uint64_t *word = arguments_of(m, k, extent, view, scratch);
  uint64_t *last = word + k->extents + k->views + 2;
  for (uint32_t n = 0; n < k->plain.nests; n++) {
    const bb_gpu_nest *nest = &k->plain.nest[n];
    room r = room_of(m, nest, extent);
    if (r.blocks < 1) continue;
    last[1] = (uint64_t)r.each;
    last[2] = (uint64_t)r.tasks;
    bb_gpu_call call = {.how = {.function = nest->function,
                                .threads = nest->threads,
                                .shared = nest->shared,
                                .early = m->past != NULL},
                        .blocks = (uint32_t)r.blocks};
    bb_gpu_past_note(m, k, extent, view);
    bb_gpu_add(m, calls, &call, word, (size_t)((char *)(last + 3) - (char *)word));
  }
  bb_scratch_end(scratch);
}
