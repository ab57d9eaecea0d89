/* past.c - where the launch before writes: what may be read before it has ended. */
#include "launch.h"

typedef struct range {
  bb_gpu_pointer from, to;
} range;

/* All of a view, from its first element to its last. */
static range range_of(const bb_tile_program *tile, const int64_t *extent, bb_gpu_pointer begin,
                      const bb_tile_view *view) {
  bb_arena *scratch = bb_scratch(tile->home->ctx);
  double *variable = BB_NEW(scratch, double, tile->extents + 1);
  for (uint32_t i = 0; i < tile->extents; i++) variable[i] = (double)extent[i];
  uint64_t last = 0, step = 1;
  bool empty = false;
  for (uint32_t i = view->rank; i-- > 0;) {
    int64_t size = bb_tile_index_value(view->extent[i], variable);
    if (view->strided) step = (uint64_t)bb_tile_index_value(view->stride[i], variable);
    empty |= size < 1;
    last += (uint64_t)(size - 1) * step;
    if (!view->strided) step *= (uint64_t)size;
  }
  bb_scratch_end(scratch);
  return (range){begin, empty ? begin : begin + (last + 1) * bb_dtype_bytes(view->dtype)};
}

void bb_gpu_past_unknown(const bb_gpu_machine *m) {
  if (m->past) m->past->known = false;
}

void bb_gpu_past_note(const bb_gpu_machine *m, const bb_tile_program *tile, const int64_t *extent,
                      const bb_gpu_pointer *view) {
  if (!m->past) return;
  m->past->known = true;
  m->past->ranges = 0;
  for (uint32_t v = 0; v < tile->views; v++) {
    if (!tile->view[v].written || tile->view[v].scratch) continue;
    if (m->past->ranges == BB_GPU_PAST) {
      bb_gpu_past_unknown(m);
      return;
    }
    range wrote = range_of(tile, extent, view[v], &tile->view[v]);
    m->past->from[m->past->ranges] = wrote.from;
    m->past->to[m->past->ranges++] = wrote.to;
  }
}

uint32_t bb_gpu_past_spares(const bb_gpu_machine *m, const bb_tile_program *tile,
                            const int64_t *extent, const bb_gpu_pointer *view) {
  uint32_t early = 0;
  if (!m->past || !m->past->known) return 0;
  for (uint32_t v = 0; v < tile->views && v < 32; v++) {
    if (tile->view[v].written || tile->view[v].scratch) continue;
    range read = range_of(tile, extent, view[v], &tile->view[v]);
    bool free = true;
    for (uint32_t i = 0; i < m->past->ranges; i++)
      free &= read.to <= m->past->from[i] || m->past->to[i] <= read.from;
    if (free) early |= 1u << v;
  }
  return early;
}
