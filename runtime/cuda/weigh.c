/* weigh.c - what a kernel's tiles cost at given extents: of several ways to cut the same results, one is the
 * cheapest for these.
 *
 * The tile program is walked as it would run, trips of loops for trips: operations of products, bytes that come to
 * blocks, and turns of serial loops, in which the one and the other wait for each other.  Processors take blocks in
 * turn, so the time is that of the processor that has most of them.  Only differences between ways of one kernel count.
 */
#include "launch.h"

#include "../../lower/emit_c_parts.h"

/* A Hopper processor's, as products of 4096 x 4096 with 1 to 4096 rows have it: operations a second by several warp groups,
 * by one, and by warps; bytes a second that reach it, for results on their side (gpu_few.c), and that are filled in beyond an
 * array's end; those that reach all, and different ones that do, from memory or, where they may have stayed there, from
 * the cache; elements a second that arithmetic beside products makes or folds; seconds for a turn of a loop, a launch, a
 * block until its first tile is there, one that persists until its results left, and a cluster's merge; bytes a second of parts that are merged. */
static const double GROUPS_RATE = 6.6e12, GROUP_RATE = 6e12, WARP_RATE = 2.4e12;
static const double BYTES = 150e9, FEW_BYTES = 75e9, BEYOND = 65e9;
static const double ALL_BYTES = 16e12, DIFFERENT = 4.4e12, CACHED = 6.5e12, CACHE = 40e6;
static const double ELEMENTS = 150e9, TURN = 30e-9;
static const double LAUNCH = 1.5e-6, BEGIN = 1.9e-6, AGAIN = 0.5e-6, MERGE = 1.5e-6, MERGED = 20e9;
enum { SHARED = 227 << 10, OWN_SHARED = 1 << 10, THREADS = 2048, REGISTERS = 64 << 10, HELD = 168 };

typedef struct work {
  const bb_tile_program *p;
  double *variable;
  double operations, bytes, turns, elements; /* elements: of blocks, by arithmetic */
  double beyond, merged;                     /* bytes */
} work;

static double value(const work *w, bb_tile_index index) {
  return (double)bb_tile_index_value(index, w->variable);
}

static void walk(work *w, const bb_tile_body *body, double times, uint32_t stretch);

static double elements_of(const work *w, uint32_t tile) {
  const bb_tile *t = &w->p->tile[tile];
  return (double)(t->rows ? t->rows : 1) * (t->cols ? t->cols : 1);
}

/* Of a load: those that are within the array. */
static double elements_within(const work *w, const bb_tile_stmt *s) {
  const bb_tile_view *view = &w->p->view[s->view];
  double within = 1;
  for (uint32_t i = 0; i < view->rank; i++) {
    double rest = value(w, view->extent[i]) - value(w, s->range[i].start), size = s->range[i].size;
    if (size > 0) within *= rest < 0 ? 0 : rest < size ? rest : size;
  }
  return within;
}

/* The iterations are all taken for the one in the middle. */
static void walk_loop(work *w, const bb_tile_loop *l, double times) {
  for (uint32_t k = 0; l->merge && k < l->merge->components; k++)
    w->merged += elements_of(w, l->merged[k]) * sizeof(float);
  for (uint32_t k = 0; k < l->stretches; k++) {
    double from = value(w, l->stretch[k].from), step = value(w, l->step);
    bb_tile_index to = l->stretch[k].to; /* NULL: one iteration */
    double trips = !to ? 1 : step > 0 ? (value(w, to) - from + step - 1) / step : 0;
    trips = (double)(int64_t)trips;
    if (trips < 1) continue;
    if (!l->parallel) w->turns += times * trips;
    w->variable[l->variable] = from + step * (double)(int64_t)(trips / 2);
    walk(w, &l->body, times * trips, l->stretches > 1 ? k : BB_NONE);
  }
}

static void walk(work *w, const bb_tile_body *body, double times, uint32_t stretch) {
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    if (s->stretches && stretch != BB_NONE && !(s->stretches >> stretch & 1)) continue;
    if (s->kind == BB_TILE_DOT || s->kind == BB_TILE_LOAD) {
      double elements = elements_of(w, s->result);
      double bytes = times * (double)bb_dtype_bytes(w->p->tile[s->result].dtype);
      if (s->kind == BB_TILE_DOT) {
        w->operations += times * 2 * elements * bb_c_depth(w->p, s);
      } else {
        w->bytes += bytes * elements;
        w->beyond += bytes * (elements - elements_within(w, s));
      }
    }
    if (s->kind == BB_TILE_MAP || s->kind == BB_TILE_FOLD)
      w->elements += times * elements_of(w, s->kind == BB_TILE_FOLD ? s->operand[0] : s->result);
    if (s->loop) walk_loop(w, s->loop, times);
    walk(w, &s->body, times, stretch);
  }
}

static double least(double a, double b) {
  return a < b ? a : b;
}

static double most(double a, double b) {
  return a > b ? a : b;
}

static double rounded_up(double a) {
  double whole = (double)(int64_t)a;
  return whole < a ? whole + 1 : whole;
}

/* Blocks of a kernel that a processor runs at once. */
static double together(const bb_sm90_launch *p) {
  double by_room = SHARED / (p->shared + OWN_SHARED), by_threads = THREADS / p->threads;
  double by_registers = REGISTERS / (HELD * p->threads);
  return p->persistent ? 1 : most(1, least(by_room, least(by_threads, by_registers)));
}

/* Of everything that is read, once. */
static double different_bytes(const work *w) {
  double sum = 0;
  for (uint32_t v = 0; v < w->p->views; v++) {
    const bb_tile_view *view = &w->p->view[v];
    double bytes = (double)bb_dtype_bytes(view->dtype);
    if (view->written) continue;
    for (uint32_t i = 0; i < view->rank; i++) bytes *= value(w, view->extent[i]);
    sum += bytes;
  }
  return sum;
}

double bb_cuda_weigh(const bb_gpu_machine *m, const bb_cuda_kernel *k, const int64_t *extent) {
  const bb_tile_program *tile = k->tile;
  bb_arena *scratch = bb_scratch(m->ctx);
  work w = {.p = tile, .variable = BB_NEW(scratch, double, tile->variables + 1)};
  for (uint32_t i = 0; i < tile->extents; i++) w.variable[i] = (double)extent[i];
  walk(&w, &tile->body, 1, BB_NONE);
  double different = different_bytes(&w);
  bb_scratch_end(scratch);
  double cluster = (double)bb_cuda_evaluate(m->ctx, k->plan.cluster, tile, extent);
  double blocks = (double)bb_cuda_evaluate(m->ctx, k->plan.tiles, tile, extent) * cluster;
  if (blocks < 1) return 0;
  double each = rounded_up(blocks / m->processors), rounds = rounded_up(each / together(&k->plan));
  double rate = tile->groups > 1 ? GROUPS_RATE : tile->groups ? GROUP_RATE : WARP_RATE;
  double loads = w.bytes / (tile->groups && !tile->registers ? FEW_BYTES : BYTES);
  double busy = most(w.operations / rate, loads) + w.elements / ELEMENTS + TURN * w.turns;
  double merge = cluster > 1 ? MERGE + w.merged / MERGED : 0;
  double reading = most(w.bytes / ALL_BYTES, different / (different > CACHE ? DIFFERENT : CACHED));
  double filling = w.beyond / BEYOND / blocks * each;
  double begin = k->plan.persistent ? BEGIN + AGAIN * (rounds - 1) : BEGIN * rounds;
  return LAUNCH + begin + merge + most(busy / blocks * each, reading) + filling;
}
