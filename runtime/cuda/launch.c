/* launch.c - launches for units of a Hopper GPU's own: tensor maps, arguments. */
#include "launch.h"

#include <string.h>

enum { MAP_BYTES = 128, ALIGN = 64, STEP = 16 };

/* --- arguments --- */

/* Parts of blocks, and counters. */
typedef struct room {
  int64_t tiles, splits;
  size_t parts, counters;
} room;

static room room_of(const bb_gpu_machine *m, const bb_gpu_way *k, const int64_t *extent) {
  room r = {.tiles = bb_gpu_value(m, &k->own.tiles, extent), .splits = 1};
  if (r.tiles < 0) r.tiles = 0;
  if (k->own.split) {
    r.splits = bb_gpu_value(m, &k->own.splits, extent);
    if (r.splits < 1) r.splits = 1;
    r.parts = (size_t)r.tiles * k->own.part;
    r.counters = (size_t)(r.tiles / r.splits) * sizeof(uint32_t);
  }
  if (k->own.counter) r.counters += sizeof(uint32_t);
  return r;
}

size_t bb_cuda_scratch(const bb_gpu_machine *m, const bb_gpu_way *k, const int64_t *extent,
                       size_t *counters) {
  room r = room_of(m, k, extent);
  *counters = r.counters;
  return r.parts;
}

/* Sizes, steps and box of a tensor map, innermost axis first. */
typedef struct map_shape {
  uint32_t rank;
  uint64_t size[BB_GPU_MAP_RANK + 1], step[BB_GPU_MAP_RANK + 1];
  uint32_t box[BB_GPU_MAP_RANK + 1];
} map_shape;

static map_shape shape_of(const bb_gpu_machine *m, const bb_gpu_map *map, const int64_t *extent) {
  map_shape s = {.rank = map->rank};
  for (uint32_t i = 0; i < s.rank; i++) {
    uint32_t from = map->rank - 1 - i;
    s.size[i] = (uint64_t)bb_gpu_value(m, &map->extent[from], extent);
    s.step[i] = 2 * (uint64_t)bb_gpu_value(m, &map->stride[from], extent);
    s.box[i] = map->box[from];
  }
  if (map->fold > 1) { /* 64 columns at a time, counted by an outermost axis */
    s.size[s.rank] = s.size[0] / 64;
    s.step[s.rank] = 128;
    s.box[s.rank++] = map->fold;
    s.size[0] = 64;
  }
  return s;
}

const char *bb_cuda_refusal(const bb_gpu_machine *m, const bb_gpu_way *k, const int64_t *extent,
                            const bb_gpu_pointer *view) {
  const char *why = NULL;
  for (uint32_t i = 0; i < k->own.maps; i++) {
    const bb_gpu_map *map = &k->own.map[i];
    map_shape s = shape_of(m, map, extent);
    if (view[map->view] % STEP) why = "an array does not begin at a multiple of 16 bytes";
    for (uint32_t a = 1; a < s.rank; a++)
      if (s.step[a] % STEP) why = "rows of an array are no multiple of 16 bytes apart";
    for (uint32_t a = 0; a < s.rank; a++)
      if (s.size[a] > UINT32_MAX) why = "an array's axis is too long";
  }
  for (uint32_t i = 0; i < k->extents; i++)
    if (extent[i] > INT32_MAX) why = "an extent is too large";
  return why;
}

static void encode(const bb_gpu_machine *m, const bb_gpu_map *map, const int64_t *extent,
                   bb_gpu_pointer data, char *to) {
  enum { F16 = 6, BF16 = 9, SWIZZLE_128 = 3, PROMOTE_256 = 3 };
  map_shape s = shape_of(m, map, extent);
  uint32_t ones[BB_GPU_MAP_RANK + 1] = {1, 1, 1, 1, 1, 1};
  bb_cuda_tensor_map made;
  int64_t reads = bb_gpu_value(m, &map->reads, extent);
  int code = m->driver->tensor_map(&made, map->bf16 ? BF16 : F16, s.rank, (void *)(uintptr_t)data,
                                   s.size, s.step + 1, s.box, ones, 0, SWIZZLE_128,
                                   reads > 1 ? PROMOTE_256 : 0, 0);
  bb_gpu_must(m->ctx, m->driver, code, "a tensor map");
  memcpy(to, &made, MAP_BYTES);
}

typedef struct arguments {
  char *data;
  size_t length;
} arguments;

static void put(arguments *a, const void *bytes, size_t length) {
  memcpy(a->data + a->length, bytes, length);
  a->length += length;
}

static arguments arguments_of(const bb_gpu_machine *m, const bb_gpu_way *k, const room *r,
                              const int64_t *extent, const bb_gpu_pointer *view, bb_arena *arena) {
  const bb_gpu_own *p = &k->own;
  uint32_t extents = k->extents;
  size_t most = (size_t)p->maps * MAP_BYTES + 8 * (p->pointers + 3u) + 4 * (extents + 2u);
  char *memory = bb_arena_alloc(arena, most + 2 * ALIGN);
  arguments a = {memory + ALIGN - (uintptr_t)memory % ALIGN, 0};
  for (uint32_t i = 0; i < p->maps; i++, a.length += MAP_BYTES)
    encode(m, &p->map[i], extent, view[p->map[i].view], a.data + a.length);
  for (uint32_t i = 0; i < p->pointers; i++) put(&a, &view[p->pointer[i]], 8);
  bb_gpu_pointer parts = m->scratch, counters = m->counters;
  if (p->split) {
    put(&a, &parts, 8);
    put(&a, &counters, 8);
    counters += (size_t)(r->tiles / r->splits) * sizeof(uint32_t);
  }
  if (p->counter) put(&a, &counters, 8);
  for (uint32_t i = 0; i <= extents; i++) {
    int32_t value = (int32_t)(i < extents ? extent[i] : r->tiles);
    put(&a, &value, 4);
  }
  uint32_t early = bb_gpu_past_spares(m, k, extent, view);
  put(&a, &early, 4);
  return a;
}

void bb_cuda_call(const bb_gpu_machine *m, const bb_gpu_way *k, const int64_t *extent,
                  const bb_gpu_pointer *view, bb_gpu_calls *calls) {
  const bb_gpu_own *p = &k->own;
  bb_arena *arena = bb_scratch(m->ctx);
  room r = room_of(m, k, extent);
  if (r.tiles > 0) {
    int64_t cluster = bb_gpu_value(m, &p->cluster, extent), blocks = r.tiles * cluster;
    arguments a = arguments_of(m, k, &r, extent, view, arena);
    if (p->persistent && blocks > m->processors) blocks = m->processors;
    int64_t mates = bb_gpu_value(m, &p->mates, extent);
    if (mates > 1 && blocks >= mates) {
      cluster = mates;
      blocks -= blocks % mates;
    }
    bb_gpu_call call = {.how = {.function = p->function,
                                .threads = p->threads,
                                .shared = p->shared,
                                .cluster = (uint32_t)cluster,
                                .early = m->past != NULL},
                        .blocks = (uint32_t)blocks};
    bb_gpu_past_note(m, k, extent, view);
    bb_gpu_add(m, calls, &call, a.data, a.length);
  }
  bb_scratch_end(arena);
}
