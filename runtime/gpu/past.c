/* past.c - where the launch before writes: what may be read before it has ended. */
#include "launch.h"

typedef struct range {
  bb_gpu_pointer from, to;
} range;

static range range_of(const bb_gpu_cut *c, uint32_t v, const bb_gpu_pointer *view) {
  return (range){view[v], view[v] + (uint64_t)c->bytes[v]};
}

void bb_gpu_past_unknown(const bb_gpu_machine *m) {
  if (m->past) m->past->known = false;
}

bool bb_gpu_past_same(const bb_gpu_past *a, const bb_gpu_past *b) {
  bool is = a->known == b->known && (!a->known || a->ranges == b->ranges);
  for (uint32_t i = 0; is && a->known && i < a->ranges; i++)
    is = a->from[i] == b->from[i] && a->to[i] == b->to[i];
  return is;
}

void bb_gpu_past_note(const bb_gpu_machine *m, const bb_gpu_cut *c, const bb_gpu_pointer *view) {
  const bb_gpu_way *way = c->way;
  if (!m->past) return;
  m->past->known = true;
  m->past->ranges = 0;
  for (uint32_t v = 0; v < way->views; v++) {
    if (!way->about[v].written || way->about[v].scratch) continue;
    if (m->past->ranges == BB_GPU_PAST) {
      bb_gpu_past_unknown(m);
      return;
    }
    range wrote = range_of(c, v, view);
    m->past->from[m->past->ranges] = wrote.from;
    m->past->to[m->past->ranges++] = wrote.to;
  }
}

uint32_t bb_gpu_past_spares(const bb_gpu_machine *m, const bb_gpu_cut *c,
                            const bb_gpu_pointer *view) {
  const bb_gpu_way *way = c->way;
  uint32_t early = 0;
  if (!m->past || !m->past->known) return 0;
  for (uint32_t v = 0; v < way->views && v < 32; v++) {
    if (way->about[v].written || way->about[v].scratch) continue;
    range read = range_of(c, v, view);
    bool free = true;
    for (uint32_t i = 0; i < m->past->ranges; i++)
      free &= read.to <= m->past->from[i] || m->past->to[i] <= read.from;
    if (free) early |= 1u << v;
  }
  return early;
}
