/* launch.c - launches for units of a Hopper GPU's own: tensor maps, arguments. */
#include "launch.h"

#include <string.h>

enum { MAP_BYTES = 128, ALIGN = 64, STEP = 16 };

/* --- what follows from extents --- */

/* Rows of the last box, as tl::edge() has them (lower/device/sm90.cuh): boxes begin at multiples of theirs
 * (lower/emit_sm90_edge.c). */
static uint32_t beyond_boxes(uint64_t size, uint32_t box) {
  uint32_t left = (uint32_t)(size % box);
  return left ? (left + 7) / 8 * 8 : box;
}

static bb_gpu_box box_of(const bb_gpu_machine *m, const bb_gpu_map *map, const int64_t *extent) {
  bb_gpu_box s = {.rank = map->rank, .bf16 = map->bf16};
  for (uint32_t i = 0; i < s.rank; i++) {
    uint32_t from = map->rank - 1 - i;
    s.size[i] = (uint64_t)bb_gpu_value(m, &map->extent[from], extent);
    s.step[i] = 2 * (uint64_t)bb_gpu_value(m, &map->stride[from], extent);
    s.box[i] = map->box[from];
    if (map->edge == from + 1) s.box[i] = beyond_boxes(s.size[i], s.box[i]);
  }
  if (map->fold > 1) { /* 64 columns at a time, counted by an outermost axis */
    s.size[s.rank] = s.size[0] / 64;
    s.step[s.rank] = 128;
    s.box[s.rank++] = map->fold;
    s.size[0] = 64;
  }
  return s;
}

uint32_t bb_cuda_alone(const bb_gpu_own *own, uint32_t most) {
  uint32_t half = (most + BB_CUDA_OWN_SHARED) / 2;
  return own->persistent && own->resident > 1 && own->shared < half ? half : own->shared;
}

/* Blocks as they are launched: no more than there is room for where each takes tiles in turn, and in whole clusters. */
static void find_blocks(const bb_gpu_machine *m, bb_gpu_cut *c) {
  const bb_gpu_own *p = &c->way->own;
  int64_t cluster = bb_gpu_value(m, &p->cluster, c->extent), blocks = c->tiles * cluster;
  int64_t mates = bb_gpu_value(m, &p->mates, c->extent);
  uint32_t resident = bb_cuda_resident(m, c->way, c->extent);
  int64_t room = (int64_t)m->processors * resident;
  c->shared = resident < p->resident ? bb_cuda_alone(p, m->shared) : p->shared;
  if (p->persistent && blocks > room) blocks = room;
  if (mates > 1 && blocks >= mates) {
    cluster = mates;
    blocks -= blocks % mates;
  }
  c->blocks = (uint32_t)blocks;
  c->cluster = (uint32_t)cluster;
}

/* Parts of blocks are scratch. */
void bb_cuda_cut(const bb_gpu_machine *m, bb_gpu_cut *c) {
  const bb_gpu_own *p = &c->way->own;
  c->tiles = bb_gpu_value(m, &p->tiles, c->extent);
  c->splits = 1;
  c->blocks = 0;
  if (c->tiles < 0) c->tiles = 0;
  if (p->split) {
    c->splits = bb_gpu_value(m, &p->splits, c->extent);
    if (c->splits < 1) c->splits = 1;
    c->scratch = (size_t)c->tiles * p->part;
    c->counters = (size_t)(c->tiles / c->splits) * sizeof(uint32_t);
  }
  if (p->counter) c->counters += sizeof(uint32_t);
  if (!c->tiles) return;
  find_blocks(m, c);
  for (uint32_t i = 0; i < p->maps; i++) {
    c->map[i] = box_of(m, &p->map[i], c->extent);
    c->map[i].often = bb_gpu_value(m, &p->map[i].reads, c->extent) > 1;
  }
}

const char *bb_cuda_refusal(const bb_gpu_machine *m, const bb_gpu_way *k, const int64_t *extent,
                            const bb_gpu_pointer *view) {
  const char *why = NULL;
  for (uint32_t i = 0; i < k->own.maps; i++) {
    const bb_gpu_map *map = &k->own.map[i];
    bb_gpu_box s = box_of(m, map, extent);
    if (view[map->view] % STEP) why = "an array does not begin at a multiple of 16 bytes";
    for (uint32_t a = 1; a < s.rank; a++)
      if (s.step[a] % STEP) why = "rows of an array are no multiple of 16 bytes apart";
    for (uint32_t a = 0; a < s.rank; a++)
      if (s.size[a] > INT32_MAX) why = "an array's axis is too long";
  }
  for (uint32_t i = 0; i < k->extents; i++)
    if (extent[i] > INT32_MAX) why = "an extent is too large";
  return why;
}

/* --- tensor maps --- */

static bool same_box(const bb_gpu_box *a, const bb_gpu_box *b) {
  bool is = a->rank == b->rank && a->bf16 == b->bf16 && a->often == b->often;
  for (uint32_t i = 0; is && i < a->rank; i++)
    is = a->size[i] == b->size[i] && a->step[i] == b->step[i] && a->box[i] == b->box[i];
  return is;
}

/* The driver writes to multiples of 64 bytes. */
static void encode(const bb_gpu_machine *m, const bb_gpu_box *s, bb_gpu_pointer data,
                   bb_gpu_encoded *e) {
  enum { F16 = 6, BF16 = 9, SWIZZLE_128 = 3, PROMOTE_256 = 3 };
  if (e->known && e->data == data && same_box(&e->box, s)) return;
  const uint32_t ones[BB_GPU_MAP_RANK + 1] = {1, 1, 1, 1, 1, 1};
  bb_cuda_tensor_map made;
  e->known = false;
  int code = m->driver->tensor_map(&made, s->bf16 ? BF16 : F16, s->rank, (void *)(uintptr_t)data,
                                   s->size, s->step + 1, s->box, ones, 0, SWIZZLE_128,
                                   s->often ? PROMOTE_256 : 0, 0);
  bb_gpu_must(m->ctx, m->driver, code, "a tensor map");
  memcpy(e->map, &made, MAP_BYTES);
  e->box = *s;
  e->data = data;
  e->known = true;
}

/* --- arguments --- */

typedef struct arguments {
  char *data;
  size_t length;
} arguments;

static void put(arguments *a, const void *bytes, size_t length) {
  memcpy(a->data + a->length, bytes, length);
  a->length += length;
}

/* Which views may be read before earlier launches have ended; and, the last bit, whether it runs ahead. */
static uint32_t early_of(const bb_gpu_machine *m, const bb_gpu_cut *c, const bb_gpu_pointer *view) {
  uint32_t spared = bb_gpu_past_spares(m, c, view), reads = 0;
  for (uint32_t v = 0; v < c->way->views && v < BB_GPU_AHEAD; v++)
    if (!c->way->about[v].written) reads |= 1u << v;
  bool ahead = c->way->own.ahead && bb_gpu_past_lets(m, c, spared, reads);
  return spared | (uint32_t)ahead << BB_GPU_AHEAD;
}

static arguments arguments_of(const bb_gpu_machine *m, const bb_gpu_cut *c,
                              const bb_gpu_pointer *view, uint32_t early, bb_gpu_encoded *encoded,
                              bb_arena *arena) {
  const bb_gpu_own *p = &c->way->own;
  uint32_t extents = c->way->extents;
  size_t most = (size_t)p->maps * MAP_BYTES + 8 * (p->pointers + 3u) + 4 * (extents + 2u);
  char *memory = bb_arena_alloc(arena, most + 2 * ALIGN);
  arguments a = {memory + ALIGN - (uintptr_t)memory % ALIGN, 0};
  for (uint32_t i = 0; i < p->maps; i++) {
    encode(m, &c->map[i], view[p->map[i].view], &encoded[i]);
    put(&a, encoded[i].map, MAP_BYTES);
  }
  for (uint32_t i = 0; i < p->pointers; i++) {
    uint32_t v = p->pointer[i];
    bb_gpu_pointer at = c->way->about[v].scratch ? bb_gpu_list_at(m, c, v) : view[v];
    put(&a, &at, 8);
  }
  bb_gpu_pointer parts = m->scratch, counters = m->counters;
  if (p->split) {
    put(&a, &parts, 8);
    put(&a, &counters, 8);
    counters += (size_t)(c->tiles / c->splits) * sizeof(uint32_t);
  }
  if (p->counter) put(&a, &counters, 8);
  for (uint32_t i = 0; i <= extents; i++) {
    int32_t value = (int32_t)(i < extents ? c->extent[i] : c->tiles);
    put(&a, &value, 4);
  }
  put(&a, &early, 4);
  return a;
}

void bb_cuda_call(const bb_gpu_machine *m, const bb_gpu_cut *c, const bb_gpu_pointer *view,
                  bb_gpu_encoded *encoded, bb_gpu_calls *calls) {
  const bb_gpu_own *p = &c->way->own;
  if (!c->tiles) return;
  bb_arena *arena = bb_scratch(m->ctx);
  uint32_t early = early_of(m, c, view);
  arguments a = arguments_of(m, c, view, early, encoded, arena);
  bb_gpu_call call = {.how = {.function = p->function,
                              .threads = p->threads,
                              .shared = c->shared,
                              .cluster = c->cluster,
                              .early = m->past != NULL},
                      .blocks = c->blocks};
  bb_gpu_past_note(m, c, view, early >> BB_GPU_AHEAD);
  bb_gpu_add(m, calls, &call, a.data, a.length);
  bb_scratch_end(arena);
}
