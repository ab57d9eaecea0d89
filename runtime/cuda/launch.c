/* launch.c - launch descriptions: expressions, tensor maps, arguments. */
#include "launch.h"

#include <string.h>

enum { MAP_BYTES = 128, ALIGN = 64, STEP = 16 };

/* --- expressions --- */

typedef struct reader {
  bb_context *ctx;
  const char *at, *text;
  const bb_tile_program *tile;
  const int64_t *extent;
  uint32_t depth;
} reader;

static int64_t read_sum(reader *r);

_Noreturn static void fail(const reader *r) {
  bb_fail(r->ctx, BB_ERROR_INTERNAL, "a launch's expression does not read: %s", r->text);
}

static bool accept(reader *r, char c) {
  while (*r->at == ' ') r->at++;
  if (*r->at != c) return false;
  r->at++;
  return true;
}

static void expect(reader *r, char c) {
  if (!accept(r, c)) fail(r);
}

static int64_t read_call(reader *r, bool least) {
  expect(r, '(');
  int64_t a = read_sum(r);
  expect(r, ',');
  int64_t b = read_sum(r);
  expect(r, ')');
  return least == (a < b) ? a : b;
}

static int64_t read_name(reader *r) {
  size_t length = 0;
  while (strchr("_0123456789", r->at[length])
             ? r->at[length] != '\0'
             : (r->at[length] | 32) >= 'a' && (r->at[length] | 32) <= 'z')
    length++;
  const char *name = r->at;
  r->at += length;
  if (length == 3 && memcmp(name, "min", 3) == 0) return read_call(r, true);
  if (length == 3 && memcmp(name, "max", 3) == 0) return read_call(r, false);
  for (uint32_t i = 0; i < r->tile->extents; i++)
    if (strlen(r->tile->variable[i]) == length && memcmp(r->tile->variable[i], name, length) == 0)
      return r->extent[i];
  fail(r);
}

static int64_t read_factor(reader *r) {
  if (++r->depth > 200) fail(r);
  int64_t value = 0;
  if (accept(r, '-')) {
    value = -read_factor(r);
  } else if (accept(r, '(')) {
    value = read_sum(r);
    expect(r, ')');
  } else if (*r->at >= '0' && *r->at <= '9') {
    while (*r->at >= '0' && *r->at <= '9') value = 10 * value + (*r->at++ - '0');
  } else {
    value = read_name(r);
  }
  r->depth--;
  return value;
}

static int64_t read_product(reader *r) {
  int64_t value = read_factor(r);
  for (;;) {
    if (accept(r, '*')) {
      value *= read_factor(r);
    } else if (accept(r, '/')) {
      int64_t by = read_factor(r);
      value = by ? value / by : 0;
    } else {
      return value;
    }
  }
}

static int64_t read_sum(reader *r) {
  int64_t value = read_product(r);
  for (;;) {
    if (accept(r, '+'))
      value += read_product(r);
    else if (accept(r, '-'))
      value -= read_product(r);
    else
      return value;
  }
}

int64_t bb_cuda_evaluate(bb_context *ctx, const char *text, const bb_tile_program *tile,
                         const int64_t *extent) {
  reader r = {.ctx = ctx, .at = text, .text = text, .tile = tile, .extent = extent};
  int64_t value = read_sum(&r);
  if (accept(&r, '\0')) return value;
  fail(&r);
}

static int64_t evaluate(const bb_gpu_machine *m, const bb_cuda_kernel *k, const char *text,
                        const int64_t *extent) {
  return bb_cuda_evaluate(m->ctx, text, k->tile, extent);
}

static int64_t index_of(bb_arena *arena, const bb_cuda_kernel *k, bb_tile_index index,
                        const int64_t *extent) {
  double *variable = BB_NEW(arena, double, k->tile->extents + 1);
  for (uint32_t i = 0; i < k->tile->extents; i++) variable[i] = (double)extent[i];
  return bb_tile_index_value(index, variable);
}

/* --- arguments --- */

/* Parts of blocks, and counters. */
typedef struct room {
  int64_t tiles, splits;
  size_t parts, counters;
} room;

static room room_of(const bb_gpu_machine *m, const bb_cuda_kernel *k, const int64_t *extent) {
  room r = {.tiles = evaluate(m, k, k->plan.tiles, extent), .splits = 1};
  if (r.tiles < 0) r.tiles = 0;
  if (k->plan.splits) {
    r.splits = evaluate(m, k, k->plan.splits, extent);
    if (r.splits < 1) r.splits = 1;
    r.parts = (size_t)r.tiles * k->plan.part;
    r.counters = (size_t)(r.tiles / r.splits) * sizeof(uint32_t);
  }
  if (k->plan.counter) r.counters += sizeof(uint32_t);
  return r;
}

size_t bb_cuda_scratch(const bb_gpu_machine *m, const bb_cuda_kernel *k, const int64_t *extent,
                       size_t *counters) {
  room r = room_of(m, k, extent);
  *counters = r.counters;
  return r.parts;
}

/* Sizes, steps and box of a tensor map, innermost axis first. */
typedef struct map_shape {
  uint32_t rank;
  uint64_t size[BB_SM90_RANK + 1], step[BB_SM90_RANK + 1];
  uint32_t box[BB_SM90_RANK + 1];
} map_shape;

static map_shape shape_of(bb_arena *arena, const bb_cuda_kernel *k, const bb_sm90_map *map,
                          const int64_t *extent) {
  map_shape s = {.rank = map->rank};
  for (uint32_t i = 0; i < s.rank; i++) {
    uint32_t from = map->rank - 1 - i;
    s.size[i] = (uint64_t)index_of(arena, k, map->extent[from], extent);
    s.step[i] = 2 * (uint64_t)index_of(arena, k, map->stride[from], extent);
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

const char *bb_cuda_refusal(const bb_gpu_machine *m, const bb_cuda_kernel *k, const int64_t *extent,
                            const bb_gpu_pointer *view) {
  bb_arena *arena = bb_scratch(m->ctx);
  const char *why = NULL;
  for (uint32_t i = 0; i < k->plan.maps; i++) {
    const bb_sm90_map *map = &k->plan.map[i];
    map_shape s = shape_of(arena, k, map, extent);
    if (view[map->view] % STEP) why = "an array does not begin at a multiple of 16 bytes";
    for (uint32_t a = 1; a < s.rank; a++)
      if (s.step[a] % STEP) why = "rows of an array are no multiple of 16 bytes apart";
    for (uint32_t a = 0; a < s.rank; a++)
      if (s.size[a] > UINT32_MAX) why = "an array's axis is too long";
  }
  for (uint32_t i = 0; i < k->tile->extents; i++)
    if (extent[i] > INT32_MAX) why = "an extent is too large";
  bb_scratch_end(arena);
  return why;
}

/* Is it a multiple of `by`, whatever the extents are? */
static bool divides(int64_t by, bb_tile_index x) {
  switch (x->op) {
  case BB_X_CONST: return (int64_t)x->number % by == 0;
  case BB_X_MUL: return divides(by, x->a[0]) || divides(by, x->a[1]);
  case BB_X_ADD:
  case BB_X_SUB: return divides(by, x->a[0]) && divides(by, x->a[1]);
  default: return false;
  }
}

bool bb_cuda_may_refuse(const bb_cuda_kernel *k, const bb_kernel_argument *argument) {
  bool good = true;
  for (uint32_t i = 0; i < k->plan.maps; i++) {
    const bb_sm90_map *map = &k->plan.map[i];
    good &= divides(STEP / 2, argument[map->view].offset);
    for (uint32_t a = 0; a + 1 < map->rank; a++) good &= divides(STEP / 2, map->stride[a]);
  }
  return !good;
}

static void encode(const bb_gpu_machine *m, const bb_cuda_kernel *k, const bb_sm90_map *map,
                   const int64_t *extent, bb_gpu_pointer data, bb_arena *arena, char *to) {
  enum { F16 = 6, BF16 = 9, SWIZZLE_128 = 3, PROMOTE_256 = 3 };
  map_shape s = shape_of(arena, k, map, extent);
  uint32_t ones[BB_SM90_RANK + 1] = {1, 1, 1, 1, 1, 1};
  bb_cuda_tensor_map made;
  bool bf16 = k->tile->view[map->view].dtype == BB_BF16;
  int64_t reads = evaluate(m, k, map->reads, extent);
  int code = m->driver->tensor_map(&made, bf16 ? BF16 : F16, s.rank, (void *)(uintptr_t)data,
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

static arguments arguments_of(const bb_gpu_machine *m, const bb_cuda_kernel *k, const room *r,
                              const int64_t *extent, const bb_gpu_pointer *view, bb_arena *arena) {
  const bb_sm90_launch *p = &k->plan;
  uint32_t extents = k->tile->extents;
  size_t most = (size_t)p->maps * MAP_BYTES + 8 * (p->pointers + 3u) + 4 * (extents + 2u);
  char *memory = bb_arena_alloc(arena, most + 2 * ALIGN);
  arguments a = {memory + ALIGN - (uintptr_t)memory % ALIGN, 0};
  for (uint32_t i = 0; i < p->maps; i++, a.length += MAP_BYTES)
    encode(m, k, &p->map[i], extent, view[p->map[i].view], arena, a.data + a.length);
  for (uint32_t i = 0; i < p->pointers; i++) put(&a, &view[p->pointer[i]], 8);
  bb_gpu_pointer parts = m->scratch, counters = m->counters;
  if (p->splits) {
    put(&a, &parts, 8);
    put(&a, &counters, 8);
    counters += (size_t)(r->tiles / r->splits) * sizeof(uint32_t);
  }
  if (p->counter) put(&a, &counters, 8);
  for (uint32_t i = 0; i <= extents; i++) {
    int32_t value = (int32_t)(i < extents ? extent[i] : r->tiles);
    put(&a, &value, 4);
  }
  uint32_t early = bb_gpu_past_spares(m, k->tile, extent, view);
  put(&a, &early, 4);
  return a;
}

void bb_cuda_call(const bb_gpu_machine *m, const bb_cuda_kernel *k, const int64_t *extent,
                  const bb_gpu_pointer *view, bb_gpu_calls *calls) {
  const bb_sm90_launch *p = &k->plan;
  bb_arena *arena = bb_scratch(m->ctx);
  room r = room_of(m, k, extent);
  if (r.tiles > 0) {
    int64_t cluster = evaluate(m, k, p->cluster, extent), blocks = r.tiles * cluster;
    arguments a = arguments_of(m, k, &r, extent, view, arena);
    if (p->persistent && blocks > m->processors) blocks = m->processors;
    int64_t mates = evaluate(m, k, p->mates, extent);
    if (mates > 1 && blocks >= mates) {
      cluster = mates;
      blocks -= blocks % mates;
    }
    bb_gpu_call call = {.function = k->function,
                        .blocks = (uint32_t)blocks,
                        .threads = p->threads,
                        .shared = p->shared,
                        .cluster = (uint32_t)cluster,
                        .early = m->past != NULL};
    bb_gpu_past_note(m, k->tile, extent, view);
    bb_gpu_add(m, calls, &call, a.data, a.length);
  }
  bb_scratch_end(arena);
}
