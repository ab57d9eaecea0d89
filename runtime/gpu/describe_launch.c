/* describe_launch.c - what launches of a tile program need, as formulas of its extents. */
#include "describe.h"

#include "../../lower/emit.h"
#include "../../lower/slice.h"
#include "../compile/plan_make.h"
#include "launch.h"

#include <string.h>

_Static_assert((int)BB_AHEAD == (int)BB_GPU_AHEAD, "kernels are told what they ask for");
_Static_assert((int)BB_TILE_SLICES == (int)BB_GPU_SLICES, "there is room for all slices");

/* --- expressions of the emitter's, as terms --- */

typedef struct reader {
  bb_arena *arena;
  const char *at, *text;
  const bb_tile_program *tile;
  uint32_t depth, count, capacity;
  bb_term *term;
} reader;

static void read_sum(reader *r);

_Noreturn static void fail(const reader *r) {
  bb_fail(bb_arena_context(r->arena), BB_ERROR_INTERNAL, "a launch's expression does not read: %s",
          r->text);
}

static void put(reader *r, bb_term_op op, int64_t number) {
  BB_GROW(r->arena, r->term, r->capacity, r->count + 1u);
  r->term[r->count++] = (bb_term){op, number};
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

static void read_call(reader *r, bb_term_op op) {
  expect(r, '(');
  read_sum(r);
  expect(r, ',');
  read_sum(r);
  expect(r, ')');
  put(r, op, 0);
}

static bool is(const char *word, size_t length, const char *name) {
  return strlen(name) == length && memcmp(word, name, length) == 0;
}

static void read_name(reader *r) {
  size_t length = 0;
  while (strchr("_0123456789", r->at[length])
             ? r->at[length] != '\0'
             : (r->at[length] | 32) >= 'a' && (r->at[length] | 32) <= 'z')
    length++;
  const char *name = r->at;
  r->at += length;
  if (is(name, length, "min") || is(name, length, "max")) {
    read_call(r, name[1] == 'i' ? BB_T_MIN : BB_T_MAX);
    return;
  }
  uint32_t i = 0;
  while (i < r->tile->extents && !is(name, length, r->tile->variable[i])) i++;
  if (i == r->tile->extents) fail(r);
  put(r, BB_T_VARIABLE, i);
}

static void read_factor(reader *r) {
  if (++r->depth > 200) fail(r);
  if (accept(r, '-')) {
    read_factor(r);
    put(r, BB_T_NEG, 0);
  } else if (accept(r, '(')) {
    read_sum(r);
    expect(r, ')');
  } else if (*r->at >= '0' && *r->at <= '9') {
    int64_t value = 0;
    while (*r->at >= '0' && *r->at <= '9') value = 10 * value + (*r->at++ - '0');
    put(r, BB_T_NUMBER, value);
  } else {
    read_name(r);
  }
  r->depth--;
}

static void read_product(reader *r) {
  read_factor(r);
  for (;;) {
    bb_term_op op = accept(r, '*') ? BB_T_MUL : accept(r, '/') ? BB_T_DIV : BB_T_COUNT;
    if (op == BB_T_COUNT) return;
    read_factor(r);
    put(r, op, 0);
  }
}

static void read_sum(reader *r) {
  read_product(r);
  for (;;) {
    bb_term_op op = accept(r, '+') ? BB_T_ADD : accept(r, '-') ? BB_T_SUB : BB_T_COUNT;
    if (op == BB_T_COUNT) return;
    read_product(r);
    put(r, op, 0);
  }
}

bb_formula bb_gpu_launch_formula(bb_arena *arena, const char *text, const bb_tile_program *tile) {
  reader r = {.arena = arena, .at = text, .text = text, .tile = tile};
  read_sum(&r);
  if (!accept(&r, '\0')) fail(&r);
  return (bb_formula){r.count, r.term};
}

/* --- views --- */

static bb_formula formula(bb_arena *arena, const bb_tile_program *tile, bb_tile_index index) {
  return bb_formula_of(tile->home, arena, index);
}

/* From the first element to the last; 0 where there is none. */
static bb_tile_index bytes_of(const bb_tile_program *tile, const bb_tile_view *view) {
  bb_program *home = tile->home;
  bb_tile_index one = bb_expr_const(home, BB_I64, 1), last = one, dense = one, empty = NULL;
  for (uint32_t i = view->rank; i-- > 0;) {
    bb_tile_index size = view->extent[i], by = view->strided ? view->stride[i] : dense;
    bb_tile_index none = bb_expr_make(home, BB_X_LT, size, one, NULL);
    bb_tile_index steps = bb_expr_make(home, BB_X_SUB, size, one, NULL);
    last = bb_expr_make(home, BB_X_ADD, last, bb_expr_make(home, BB_X_MUL, steps, by, NULL), NULL);
    empty = empty ? bb_expr_make(home, BB_X_OR, empty, none, NULL) : none;
    dense = bb_expr_make(home, BB_X_MUL, dense, size, NULL);
  }
  bb_tile_index element = bb_expr_const(home, BB_I64, bb_dtype_bytes(view->dtype));
  bb_tile_index bytes = bb_expr_make(home, BB_X_MUL, last, element, NULL);
  if (!empty) return bytes;
  return bb_expr_make(home, BB_X_SELECT, empty, bb_expr_const(home, BB_I64, 0), bytes);
}

static bb_gpu_way way_of(bb_arena *arena, const bb_tile_program *tile, bool is_own) {
  bb_gpu_view *about = BB_NEW(arena, bb_gpu_view, tile->views + 1);
  for (uint32_t v = 0; v < tile->views; v++) {
    const bb_tile_view *view = &tile->view[v];
    about[v] = (bb_gpu_view){view->written, view->scratch, {0}};
    if (!view->scratch) about[v].bytes = formula(arena, tile, bytes_of(tile, view));
  }
  return (bb_gpu_way){
      .is_own = is_own, .extents = tile->extents, .views = tile->views, .about = about};
}

/* --- launches for units of a device's own --- */

static bb_gpu_map map_of(bb_arena *arena, const bb_tile_program *tile, const bb_sm90_map *from) {
  bb_gpu_map map = {.view = from->view,
                    .rank = from->rank,
                    .fold = from->fold,
                    .edge = from->edge,
                    .bf16 = tile->view[from->view].dtype == BB_BF16,
                    .reads = bb_gpu_launch_formula(arena, from->reads, tile)};
  for (uint32_t i = 0; i < from->rank; i++) {
    map.extent[i] = formula(arena, tile, from->extent[i]);
    map.stride[i] = formula(arena, tile, from->stride[i]);
    map.box[i] = from->box[i];
  }
  return map;
}

/* Bytes from one place of an axis to the next. */
static bb_formula step_of(bb_arena *arena, const bb_tile_program *tile, const bb_tile_view *view,
                          uint32_t axis) {
  bb_program *home = tile->home;
  bb_tile_index by = bb_expr_const(home, BB_I64, bb_dtype_bytes(view->dtype));
  for (uint32_t i = axis + 1; i < view->rank && !view->strided; i++)
    by = bb_expr_make(home, BB_X_MUL, by, view->extent[i], NULL);
  if (view->strided) by = bb_expr_make(home, BB_X_MUL, by, view->stride[axis], NULL);
  return formula(arena, tile, by);
}

static void describe_slices(bb_arena *arena, const bb_tile_program *tile, bb_gpu_own *own) {
  bb_tile_slice slice[BB_TILE_SLICES];
  own->slices = bb_tile_slices(tile, slice);
  for (uint32_t i = 0; i < own->slices; i++) {
    bb_formula *by = BB_NEW(arena, bb_formula, tile->views + 1);
    for (uint32_t v = 0; v < tile->views; v++)
      if (slice[i].axis[v] != BB_NONE)
        by[v] = step_of(arena, tile, &tile->view[v], slice[i].axis[v]);
    own->slice[i] = (bb_gpu_slice){slice[i].extent, slice[i].step, by};
  }
}

bb_gpu_way bb_gpu_describe_own(bb_arena *arena, const bb_tile_program *tile,
                               const bb_sm90_launch *plan) {
  bb_gpu_way way = way_of(arena, tile, true);
  bb_tile_program own = bb_tile_part(tile, bb_tile_nests_before(tile), tile->body.count);
  bb_gpu_map *map = BB_NEW(arena, bb_gpu_map, plan->maps + 1);
  uint32_t *pointer = BB_NEW(arena, uint32_t, plan->pointers + 1);
  for (uint32_t i = 0; i < plan->maps; i++) map[i] = map_of(arena, tile, &plan->map[i]);
  for (uint32_t i = 0; i < plan->pointers; i++) pointer[i] = plan->pointer[i];
  way.own = (bb_gpu_own){.name = bb_arena_text(arena, plan->kernel, strlen(plan->kernel)),
                         .threads = plan->threads,
                         .shared = plan->shared,
                         .part = plan->part,
                         .resident = plan->resident,
                         .persistent = plan->persistent,
                         .counter = plan->counter,
                         .ahead = plan->ahead,
                         .split = plan->splits != NULL,
                         .tiles = bb_gpu_launch_formula(arena, plan->tiles, tile),
                         .cluster = bb_gpu_launch_formula(arena, plan->cluster, tile),
                         .mates = bb_gpu_launch_formula(arena, plan->mates, tile),
                         .maps = plan->maps,
                         .pointers = plan->pointers,
                         .map = map,
                         .pointer = pointer,
                         .weight = bb_gpu_describe_weight(arena, &own, plan)};
  way.own.weight.rows = plan->rows;
  describe_slices(arena, &own, &way.own);
  if (plan->splits) way.own.splits = bb_gpu_launch_formula(arena, plan->splits, tile);
  return way;
}

void bb_gpu_describe_before(bb_arena *arena, const bb_tile_program *tile,
                            const bb_simt_launch *plan, const char *name, bb_gpu_way *way) {
  way->plain = bb_gpu_describe_plain(arena, tile, plan, name).plain;
  bb_formula *list = BB_NEW(arena, bb_formula, tile->views + 1);
  for (uint32_t v = 0; v < tile->views; v++)
    if (way->about[v].scratch) list[v] = formula(arena, tile, bytes_of(tile, &tile->view[v]));
  way->plain.list = list;
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

static uint32_t add_demand(bb_tile_index x, uint32_t count, bb_tile_index *demand) {
  enum { STEP = 8 };
  bool there = divides(STEP, x);
  for (uint32_t i = 0; i < count; i++) there |= demand[i] == x;
  if (!there) demand[count] = x;
  return count + !there;
}

uint32_t bb_gpu_demands(bb_arena *arena, const bb_sm90_launch *plan,
                        const bb_kernel_argument *argument, const bb_tile_index **demand) {
  bb_tile_index *all = BB_NEW(arena, bb_tile_index, plan->maps * BB_SM90_RANK + 1);
  uint32_t count = 0;
  for (uint32_t i = 0; i < plan->maps; i++) {
    const bb_sm90_map *map = &plan->map[i];
    count = add_demand(argument[map->view].offset, count, all);
    for (uint32_t a = 0; a + 1 < map->rank; a++) count = add_demand(map->stride[a], count, all);
  }
  *demand = all;
  return count;
}

/* --- launches of plain threads --- */

bb_gpu_way bb_gpu_describe_plain(bb_arena *arena, const bb_tile_program *tile,
                                 const bb_simt_launch *plan, const char *name) {
  bb_gpu_way way = way_of(arena, tile, false);
  bb_gpu_nest *nest = BB_NEW(arena, bb_gpu_nest, plan->nests + 1);
  bb_formula *list = BB_NEW(arena, bb_formula, tile->views + 1);
  for (uint32_t n = 0; n < plan->nests; n++)
    nest[n] = (bb_gpu_nest){.name = bb_arena_printf(arena, "%s_%u", name, n),
                            .threads = plan->nest[n].threads,
                            .shared = plan->nest[n].shared,
                            .tasks = formula(arena, tile, plan->nest[n].tasks),
                            .own = formula(arena, tile, plan->nest[n].own),
                            .ahead = plan->nest[n].ahead,
                            .reads = plan->nest[n].reads};
  for (uint32_t v = 0; v < tile->views; v++)
    if (plan->list[v]) list[v] = formula(arena, tile, plan->list[v]);
  way.plain = (bb_gpu_plain){plan->nests, nest, list};
  return way;
}
