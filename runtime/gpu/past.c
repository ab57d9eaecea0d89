/* past.c - where the launch before writes: what may be read before it has ended. */
#include "launch.h"

typedef struct range {
  bb_gpu_pointer from, to;
} range;

static range range_of(const bb_gpu_machine *m, const bb_gpu_view *view, const int64_t *extent,
                      bb_gpu_pointer begin) {
  return (range){begin, begin + (uint64_t)bb_gpu_value(m, &view->bytes, extent)};
}

void bb_gpu_past_unknown(const bb_gpu_machine *m) {
  if (m->past) m->past->known = false;
}

void bb_gpu_past_note(const bb_gpu_machine *m, const bb_gpu_way *way, const int64_t *extent,
                      const bb_gpu_pointer *view) {
  if (!m->past) return;
  m->past->known = true;
  m->past->ranges = 0;
  for (uint32_t v = 0; v < way->views; v++) {
    if (!way->about[v].written || way->about[v].scratch) continue;
    if (m->past->ranges == BB_GPU_PAST) {
      bb_gpu_past_unknown(m);
      return;
    }
    range wrote = range_of(m, &way->about[v], extent, view[v]);
    m->past->from[m->past->ranges] = wrote.from;
    m->past->to[m->past->ranges++] = wrote.to;
  }
}

uint32_t bb_gpu_past_spares(const bb_gpu_machine *m, const bb_gpu_way *way, const int64_t *extent,
                            const bb_gpu_pointer *view) {
  uint32_t early = 0;
  if (!m->past || !m->past->known) return 0;
  for (uint32_t v = 0; v < way->views && v < 32; v++) {
    if (way->about[v].written || way->about[v].scratch) continue;
    range read = range_of(m, &way->about[v], extent, view[v]);
    bool free = true;
    for (uint32_t i = 0; i < m->past->ranges; i++)
      free &= read.to <= m->past->from[i] || m->past->to[i] <= read.from;
    if (free) early |= 1u << v;
  }
  return early;
}
