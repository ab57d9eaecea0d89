/* cut.c - what launches of a way are at some extents, wherever its arrays lie: worked out once, and taken over by other steps of
 * the same kernel.
 */
#include "../cuda/launch.h"

#include <string.h>

int64_t bb_gpu_value(const bb_gpu_machine *m, const bb_formula *formula, const int64_t *extent) {
  int64_t value;
  if (!bb_formula_value(formula, extent, &value))
    bb_fail(m->ctx, BB_ERROR_INPUT, "a kernel's sizes are too large");
  return value;
}

static uint32_t larger(uint32_t a, uint32_t b) {
  return a > b ? a : b;
}

void bb_gpu_cut_begin(bb_context *ctx, const bb_gpu_ways *ways, bb_gpu_cut *c) {
  uint32_t extents = 0, views = 0, maps = 0, nests = 0;
  for (uint32_t i = 0; i < ways->count; i++) {
    const bb_gpu_way *w = &ways->way[i];
    extents = larger(extents, w->extents);
    views = larger(views, w->views);
    maps = larger(maps, w->is_own ? w->own.maps : 0);
    nests = larger(nests, w->plain.nests);
  }
  size_t numbers = (extents + 3 * (size_t)views) * sizeof(int64_t);
  *c = (bb_gpu_cut){.room_bytes = numbers + maps * sizeof *c->map + nests * sizeof *c->nest + 1};
  c->room = bb_resize(ctx, NULL, 0, c->room_bytes);
  c->extent = (int64_t *)(void *)c->room;
  c->offset = c->extent + extents;
  c->bytes = c->offset + views;
  c->list = c->bytes + views;
  c->map = (bb_gpu_box *)(void *)(c->room + numbers);
  c->nest = (bb_gpu_nest_cut *)(void *)(c->map + maps);
}

void bb_gpu_cut_end(bb_context *ctx, bb_gpu_cut *c) {
  if (c->room) bb_resize(ctx, c->room, c->room_bytes, 0);
  c->room = NULL;
}

void bb_gpu_cut_copy(bb_gpu_cut *to, const bb_gpu_cut *from) {
  bb_gpu_cut made = *from;
  made.room = to->room;
  made.extent = to->extent, made.offset = to->offset, made.bytes = to->bytes, made.list = to->list;
  made.map = to->map, made.nest = to->nest;
  *to = made;
  memcpy(to->room, from->room, to->room_bytes);
}

/* Where arrays begin depends on how they lie, which extents of all results tell. */
static void take_slice(const bb_gpu_machine *m, bb_gpu_cut *c) {
  const bb_gpu_slice *s = c->slice;
  for (uint32_t v = 0; v < c->way->views; v++) {
    int64_t by = s && s->by[v].count ? bb_gpu_value(m, &s->by[v], c->extent) : 0;
    if (__builtin_mul_overflow(c->from, by, &c->offset[v]))
      bb_fail(m->ctx, BB_ERROR_INPUT, "a kernel's sizes are too large");
  }
  if (s) c->extent[s->extent] = c->to - c->from;
}

void bb_gpu_cut_work_out(const bb_gpu_machine *m, bb_gpu_cut *c) {
  const bb_gpu_way *w = c->way;
  c->scratch = c->counters = 0;
  take_slice(m, c);
  for (uint32_t v = 0; v < w->views; v++)
    c->bytes[v] = w->about[v].scratch ? 0 : bb_gpu_value(m, &w->about[v].bytes, c->extent);
  if (w->is_own) bb_cuda_cut(m, c);
  c->lists = c->scratch = (size_t)bb_gpu_list_line((int64_t)c->scratch);
  if (w->plain.nests) bb_gpu_cut_plain(m, c);
}

bb_gpu_pointer bb_gpu_list_at(const bb_gpu_machine *m, const bb_gpu_cut *c, uint32_t view) {
  bb_gpu_pointer at = m->scratch + c->lists;
  for (uint32_t v = 0; v < view; v++) at += (uint64_t)c->list[v];
  return at;
}

void bb_gpu_cut_call(const bb_gpu_machine *m, const bb_gpu_cut *c, const bb_gpu_pointer *view,
                     bb_gpu_encoded *encoded, bb_gpu_calls *calls) {
  if (c->way->plain.nests) bb_gpu_call_plain(m, c, view, calls);
  if (c->way->is_own) bb_cuda_call(m, c, view, encoded, calls);
}
