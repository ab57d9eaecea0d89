/* past.c - where launches write that may not have ended: what may be read before they have. */
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

static bool is_left(const bb_gpu_way *way, uint32_t v) {
  return way->about[v].written && !way->about[v].scratch;
}

void bb_gpu_past_note(const bb_gpu_machine *m, const bb_gpu_cut *c, const bb_gpu_pointer *view,
                      bool ahead) {
  const bb_gpu_way *way = c->way;
  if (!m->past) return;
  if (!ahead) m->past->ranges = 0;
  m->past->known = true;
  for (uint32_t v = 0; v < way->views; v++) {
    if (!is_left(way, v)) continue;
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
  for (uint32_t v = 0; v < way->views && v < BB_GPU_AHEAD; v++) {
    if (way->about[v].written || way->about[v].scratch) continue;
    range read = range_of(c, v, view);
    bool free = true;
    for (uint32_t i = 0; i < m->past->ranges; i++)
      free &= read.to <= m->past->from[i] || m->past->to[i] <= read.from;
    if (free) early |= 1u << v;
  }
  return early;
}

/* What it writes has to be remembered beside what is. */
bool bb_gpu_past_lets(const bb_gpu_machine *m, const bb_gpu_cut *c, uint32_t spared,
                      uint32_t reads) {
  uint32_t ranges = 0;
  if (!m->past || !m->past->known) return false;
  for (uint32_t v = 0; v < c->way->views; v++) ranges += is_left(c->way, v);
  return (spared & reads) == reads && m->past->ranges + ranges <= BB_GPU_PAST;
}
