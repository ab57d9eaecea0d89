/* code_read.c - what launches need from its text, which may come from a file: every number is held against its bounds. */
#include "code.h"

#include "../model/json.h"

#include <string.h>

typedef struct reader {
  bb_json_source from;
  bb_arena *arena;
  const bb_plan *plan;
  const bb_gpu_code *code;
  bb_gpu_kernels *made;
} reader;

/* --- members --- */

static bool flag(const reader *r, const bb_json *object, const char *name) {
  return bb_json_member(&r->from, object, name, BB_JSON_BOOL)->number != 0;
}

static bb_formula formula(const reader *r, const bb_json *text, const char *name,
                          uint32_t variables) {
  bb_formula made;
  if (!text || text->kind != BB_JSON_TEXT ||
      !bb_formula_parse(r->arena, text->text, variables, &made))
    bb_json_refuse(&r->from, name);
  return made;
}

/* One that says something. */
static bb_formula value(const reader *r, const bb_json *object, const char *name,
                        uint32_t variables) {
  bb_formula made = formula(r, bb_json_get(object, name), name, variables);
  if (!made.count) bb_json_refuse(&r->from, name);
  return made;
}

/* null is BB_NONE. */
static const uint32_t *numbers(const reader *r, const bb_json *object, const char *name,
                               uint32_t most, uint32_t *count) {
  const bb_json *list = bb_json_member(&r->from, object, name, BB_JSON_LIST);
  uint32_t *made = BB_NEW(r->arena, uint32_t, list->count + 1);
  *count = 0;
  for (const bb_json *n = list->first; n; n = n->next)
    made[(*count)++] = n->kind == BB_JSON_NULL
                           ? BB_NONE
                           : (uint32_t)bb_json_whole(&r->from, n, name, 0, (int64_t)most - 1);
  return made;
}

/* --- ways --- */

static void read_map(const reader *r, const bb_json *json, const bb_gpu_way *way, bb_gpu_map *map) {
  enum { BOX = 256 };
  const bb_json *extents = bb_json_member(&r->from, json, "extents", BB_JSON_LIST);
  const bb_json *strides = bb_json_member(&r->from, json, "strides", BB_JSON_LIST);
  const uint32_t *box = numbers(r, json, "box", BOX + 1, &map->rank);
  if (map->rank < 1 || map->rank > BB_GPU_MAP_RANK || extents->count != map->rank ||
      strides->count != map->rank)
    bb_json_refuse(&r->from, "maps");
  map->view = bb_json_index(&r->from, json, "view", way->views);
  map->fold = bb_json_index(&r->from, json, "fold", BOX + 1);
  map->edge = bb_json_index(&r->from, json, "edge", map->rank + 1);
  map->bf16 = flag(r, json, "bf16");
  map->reads = value(r, json, "reads", way->extents);
  const bb_json *extent = extents->first, *stride = strides->first;
  for (uint32_t i = 0; i < map->rank; i++, extent = extent->next, stride = stride->next) {
    map->extent[i] = formula(r, extent, "extents", way->extents);
    map->stride[i] = formula(r, stride, "strides", way->extents);
    map->box[i] = box[i];
  }
  if (map->fold > 1 && map->rank == BB_GPU_MAP_RANK) bb_json_refuse(&r->from, "fold");
}

static void read_weight(const reader *r, const bb_json *json, uint32_t extents, bb_gpu_weight *w) {
  const bb_json *steps = bb_json_member(&r->from, json, "steps", BB_JSON_LIST);
  const bb_json *totals = bb_json_member(&r->from, json, "totals", BB_JSON_LIST);
  bb_formula *step = BB_NEW(r->arena, bb_formula, steps->count + 1);
  w->groups = bb_json_index(&r->from, json, "groups", UINT32_MAX);
  w->rows = bb_json_index(&r->from, json, "rows", UINT32_MAX);
  w->few = flag(r, json, "few");
  for (const bb_json *s = steps->first; s; s = s->next, w->steps++)
    step[w->steps] = formula(r, s, "steps", extents + w->steps);
  w->step = step;
  if (totals->count != BB_GPU_TOTALS) bb_json_refuse(&r->from, "totals");
  uint32_t i = 0;
  for (const bb_json *t = totals->first; t; t = t->next)
    w->total[i++] = formula(r, t, "totals", extents + w->steps);
}

/* Of a block: some. */
static uint32_t threads_of(const reader *r, const bb_json *json) {
  uint32_t threads = bb_json_index(&r->from, json, "threads", 1024 + 1);
  if (threads == 0) bb_json_refuse(&r->from, "threads");
  return threads;
}

static void read_slices(const reader *r, const bb_json *json, bb_gpu_way *way) {
  const bb_json *slices = bb_json_member(&r->from, json, "slices", BB_JSON_LIST);
  if (slices->count > BB_GPU_SLICES) bb_json_refuse(&r->from, "slices");
  for (const bb_json *s = slices->first; s; s = s->next) {
    bb_gpu_slice *slice = &way->own.slice[way->own.slices++];
    const bb_json *by = bb_json_member(&r->from, s, "by", BB_JSON_LIST);
    bb_formula *made = BB_NEW(r->arena, bb_formula, by->count + 1);
    slice->extent = bb_json_index(&r->from, s, "extent", way->extents);
    slice->step = bb_json_index(&r->from, s, "step", INT32_MAX);
    slice->by = made;
    if (!slice->step || by->count != way->views) bb_json_refuse(&r->from, "slices");
    for (const bb_json *b = by->first; b; b = b->next)
      *made++ = formula(r, b, "slices", way->extents);
  }
}

static void read_own(const reader *r, const bb_json *json, bb_gpu_way *way) {
  enum { MAPS = 16, MOST_BLOCKS = 32 };
  bb_gpu_own *own = &way->own;
  const bb_json *maps = bb_json_member(&r->from, json, "maps", BB_JSON_LIST);
  bb_gpu_map *map = BB_NEW(r->arena, bb_gpu_map, maps->count + 1);
  if (maps->count > MAPS) bb_json_refuse(&r->from, "maps");
  own->name = bb_json_member(&r->from, json, "function", BB_JSON_TEXT)->text;
  own->image = bb_json_index(&r->from, json, "image", r->made->images);
  own->threads = threads_of(r, json);
  own->shared = bb_json_index(&r->from, json, "shared", INT32_MAX);
  own->resident = bb_json_index(&r->from, json, "resident", MOST_BLOCKS);
  if (own->resident == 0) bb_json_refuse(&r->from, "resident");
  own->persistent = flag(r, json, "persistent");
  own->counter = flag(r, json, "counter");
  own->ahead = flag(r, json, "ahead");
  own->tiles = value(r, json, "tiles", way->extents);
  own->cluster = value(r, json, "cluster", way->extents);
  own->mates = value(r, json, "mates", way->extents);
  own->split = bb_json_get(json, "splits") != NULL;
  if (own->split) {
    own->splits = value(r, json, "splits", way->extents);
    own->part = bb_json_index(&r->from, json, "part", INT32_MAX);
  }
  own->pointer = numbers(r, json, "pointers", way->views, &own->pointers);
  for (uint32_t i = 0; i < own->pointers; i++)
    if (own->pointer[i] == BB_NONE) bb_json_refuse(&r->from, "pointers");
  for (const bb_json *m = maps->first; m; m = m->next) read_map(r, m, way, &map[own->maps++]);
  own->map = map;
  read_slices(r, json, way);
  read_weight(r, bb_json_member(&r->from, json, "weight", BB_JSON_OBJECT), way->extents,
              &own->weight);
}

static void read_plain(const reader *r, const bb_json *json, bb_gpu_way *way) {
  bb_gpu_plain *plain = &way->plain;
  const bb_json *nests = bb_json_member(&r->from, json, "nests", BB_JSON_LIST);
  const bb_json *lists = bb_json_member(&r->from, json, "lists", BB_JSON_LIST);
  bb_formula *list = BB_NEW(r->arena, bb_formula, lists->count + 1);
  plain->nest = BB_NEW(r->arena, bb_gpu_nest, nests->count + 1);
  if (r->made->plain == BB_NONE) bb_json_refuse(&r->from, "plain");
  for (const bb_json *n = nests->first; n; n = n->next) {
    bb_gpu_nest *nest = &plain->nest[plain->nests++];
    nest->name = bb_json_member(&r->from, n, "function", BB_JSON_TEXT)->text;
    nest->threads = threads_of(r, n);
    nest->shared = bb_json_index(&r->from, n, "shared", INT32_MAX);
    nest->ahead = flag(r, n, "ahead");
    nest->reads = bb_json_index(&r->from, n, "reads", UINT32_MAX);
    nest->tasks = value(r, n, "tasks", way->extents);
    nest->own = value(r, n, "own", way->extents);
  }
  if (lists->count != way->views) bb_json_refuse(&r->from, "lists");
  uint32_t i = 0;
  for (const bb_json *l = lists->first; l; l = l->next)
    list[i++] = formula(r, l, "lists", way->extents);
  plain->list = list;
}

static void read_way(const reader *r, const bb_json *json, bb_gpu_way *way) {
  way->extent = numbers(r, json, "extents", UINT32_MAX, &way->extents);
  way->view = numbers(r, json, "views", UINT32_MAX, &way->views);
  const bb_json *about = bb_json_member(&r->from, json, "about", BB_JSON_LIST);
  bb_gpu_view *view = BB_NEW(r->arena, bb_gpu_view, about->count + 1);
  if (about->count != way->views) bb_json_refuse(&r->from, "about");
  way->about = view;
  for (const bb_json *a = about->first; a; a = a->next, view++) {
    view->written = flag(r, a, "written");
    view->scratch = flag(r, a, "scratch");
    if (!view->scratch) view->bytes = value(r, a, "bytes", way->extents);
  }
  way->is_own = bb_json_get(json, "image") != NULL;
  if (way->is_own) read_own(r, json, way);
  if (!way->is_own || bb_json_get(json, "nests")) read_plain(r, json, way);
  for (uint32_t i = 0; i < way->own.maps; i++)
    if (way->about[way->own.map[i].view].scratch) bb_json_refuse(&r->from, "maps");
  for (uint32_t i = 0; i < way->own.pointers; i++) { /* what nests before it leave there */
    uint32_t v = way->own.pointer[i];
    if (way->about[v].scratch && (!way->plain.nests || !way->plain.list[v].count))
      bb_json_refuse(&r->from, "pointers");
  }
}

/* Every step gives each way what it takes. */
static void check_steps(const reader *r) {
  for (uint32_t i = 0; i < r->plan->steps; i++) {
    const bb_plan_step *step = &r->plan->step[i];
    if (step->kernel == BB_NONE) continue;
    const bb_gpu_ways *ways = &r->made->kernel[step->kernel];
    for (uint32_t k = 0; k < ways->count; k++) {
      const bb_gpu_way *w = &ways->way[k];
      for (uint32_t e = 0; e < w->extents; e++)
        if (w->extent[e] != BB_NONE && w->extent[e] >= step->extents)
          bb_json_refuse(&r->from, "extents");
      for (uint32_t v = 0; v < w->views; v++)
        if (w->view[v] == BB_NONE ? !w->about[v].scratch : w->view[v] >= step->arguments)
          bb_json_refuse(&r->from, "views");
    }
  }
}

/* --- the whole --- */

static void read_images(const reader *r, const bb_json *top) {
  bb_gpu_kernels *made = r->made;
  const bb_json *list = bb_json_member(&r->from, top, "images", BB_JSON_LIST);
  uint64_t *offset = BB_NEW(r->arena, uint64_t, list->count + 1);
  uint64_t *size = BB_NEW(r->arena, uint64_t, list->count + 1);
  for (const bb_json *i = list->first; i; i = i->next, made->images++) {
    if (i->kind != BB_JSON_LIST || i->count != 2) bb_json_refuse(&r->from, "images");
    int64_t at = bb_json_whole(&r->from, i->first, "images", 0, (int64_t)r->code->bytes);
    int64_t bytes =
        bb_json_whole(&r->from, i->first->next, "images", 0, (int64_t)r->code->bytes - at);
    if (at % BB_GPU_IMAGE_LINE || !bytes) bb_json_refuse(&r->from, "images");
    offset[made->images] = (uint64_t)at;
    size[made->images] = (uint64_t)bytes;
  }
  made->offset = offset;
  made->size = size;
  made->moves = bb_json_index(&r->from, top, "moves", made->images);
  made->plain =
      bb_json_get(top, "plain") ? bb_json_index(&r->from, top, "plain", made->images) : BB_NONE;
}

static void read_kernels(const reader *r, const bb_json *top) {
  bb_gpu_kernels *made = r->made;
  const bb_json *misc = bb_json_member(&r->from, top, "misc", BB_JSON_LIST);
  const bb_json *list = bb_json_member(&r->from, top, "kernels", BB_JSON_LIST);
  bool *runs = BB_NEW(r->arena, bool, r->plan->steps + 1);
  for (const bb_json *m = misc->first; m; m = m->next)
    runs[bb_json_whole(&r->from, m, "misc", 0, (int64_t)r->plan->steps - 1)] = true;
  for (uint32_t i = 0; i < r->plan->steps; i++)
    if (runs[i] && !r->plan->step[i].misc) bb_json_refuse(&r->from, "misc");
  made->misc = runs;
  if (list->count != r->plan->kernels) bb_json_refuse(&r->from, "kernels");
  made->kernel = BB_NEW(r->arena, bb_gpu_ways, list->count + 1);
  for (const bb_json *k = list->first; k; k = k->next) {
    bb_gpu_ways *ways = &made->kernel[made->kernels++];
    if (k->kind != BB_JSON_LIST || !k->count) bb_json_refuse(&r->from, "kernels");
    ways->way = BB_NEW(r->arena, bb_gpu_way, k->count + 1);
    for (const bb_json *w = k->first; w; w = w->next) read_way(r, w, &ways->way[ways->count++]);
  }
  check_steps(r);
}

bb_gpu_kernels *bb_gpu_code_read(bb_arena *arena, const bb_gpu_code *code, const bb_plan *plan) {
  bb_context *ctx = bb_arena_context(arena);
  reader r = {{ctx, "launches"}, arena, plan, code, BB_NEW(arena, bb_gpu_kernels, 1)};
  const char *error;
  size_t at;
  const bb_json *top = bb_json_parse(arena, code->text, code->length, &error, &at);
  if (!top) bb_fail(ctx, BB_ERROR_INPUT, "launches: %s at byte %zu", error, at);
  if (bb_json_whole(&r.from, bb_json_get(top, "version"), "version", 0, INT64_MAX) !=
      BB_GPU_CODE_VERSION)
    bb_fail(ctx, BB_ERROR_INPUT, "launches: version %s is not read, only %d",
            bb_json_get(top, "version")->text, BB_GPU_CODE_VERSION);
  r.made->target = bb_json_member(&r.from, top, "target", BB_JSON_TEXT)->text;
  read_images(&r, top);
  read_kernels(&r, top);
  return r.made;
}
