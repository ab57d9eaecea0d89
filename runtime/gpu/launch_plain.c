/* launch_plain.c - kernels of plain threads: one launch for each nest, one after the other. */
#include "launch.h"

/* Blocks that a processor is given at most: of those with memory of their own, fewer. */
enum { PER_PROCESSOR = 32, PER_PROCESSOR_OWN = 4 };

static bb_gpu_nest_cut nest_of(const bb_gpu_machine *m, const bb_gpu_nest *nest,
                               const int64_t *extent) {
  bb_gpu_nest_cut n = {bb_gpu_value(m, &nest->tasks, extent), bb_gpu_value(m, &nest->own, extent),
                       0};
  int64_t most = (int64_t)m->processors * (n.each ? PER_PROCESSOR_OWN : PER_PROCESSOR);
  n.blocks = n.tasks < most ? n.tasks : most;
  return n;
}

/* Lists, then the blocks' own memory. */
void bb_gpu_cut_plain(const bb_gpu_machine *m, bb_gpu_cut *c) {
  const bb_gpu_plain *p = &c->way->plain;
  size_t own = 0;
  for (uint32_t v = 0; v < c->way->views; v++) {
    c->list[v] = p->list[v].count ? bb_gpu_value(m, &p->list[v], c->extent) : 0;
    c->list[v] = bb_gpu_list_line(c->list[v]);
    c->scratch += (size_t)c->list[v];
  }
  for (uint32_t n = 0; n < p->nests; n++) {
    c->nest[n] = nest_of(m, &p->nest[n], c->extent);
    size_t bytes = (size_t)(c->nest[n].blocks * c->nest[n].each);
    if (bytes > own) own = bytes;
  }
  c->scratch += own;
}

/* The argument's members, all of 64 bits. */
static uint64_t *arguments_of(const bb_gpu_machine *m, const bb_gpu_cut *c,
                              const bb_gpu_pointer *view, bb_arena *arena) {
  const bb_gpu_way *k = c->way;
  uint64_t *word = BB_NEW(arena, uint64_t, k->extents + k->views + 6), *at = word;
  for (uint32_t i = 0; i < k->extents; i++) *at++ = (uint64_t)c->extent[i];
  at++;
  for (uint32_t v = 0; v < k->views; v++)
    *at++ = k->plain.list[v].count ? bb_gpu_list_at(m, c, v) : view[v];
  at++;
  *at = bb_gpu_list_at(m, c, k->views);
  return word;
}

void bb_gpu_call_plain(const bb_gpu_machine *m, const bb_gpu_cut *c, const bb_gpu_pointer *view,
                       bb_gpu_calls *calls) {
  const bb_gpu_way *k = c->way;
  bb_arena *scratch = bb_scratch(m->ctx);
  uint64_t *word = arguments_of(m, c, view, scratch);
  uint64_t *last = word + k->extents + k->views + 2;
  for (uint32_t n = 0; n < k->plain.nests; n++) {
    const bb_gpu_nest *nest = &k->plain.nest[n];
    const bb_gpu_nest_cut *is = &c->nest[n];
    if (is->blocks < 1) continue;
    last[1] = (uint64_t)is->each;
    last[2] = (uint64_t)is->tasks;
    bool ahead = nest->ahead && bb_gpu_past_lets(m, c, bb_gpu_past_spares(m, c, view), nest->reads);
    last[3] = ahead;
    bb_gpu_call call = {.how = {.function = nest->function,
                                .threads = nest->threads,
                                .shared = nest->shared,
                                .early = m->past != NULL},
                        .blocks = (uint32_t)is->blocks};
    bb_gpu_past_note(m, c, view, ahead);
    bb_gpu_add(m, calls, &call, word, (size_t)((char *)(last + 4) - (char *)word));
  }
  bb_scratch_end(scratch);
}
