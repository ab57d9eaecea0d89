/* weigh.c - what a kernel's tiles cost at given extents: of several ways to cut the same results, one is the
 * cheapest for these.
 *
 * The tile program is walked as it would run, trips of loops for trips: operations of products and bytes that
 * come to blocks.  Processors take blocks in turn, so the time is that of the processor that has most of them.
 * Only differences between ways of one kernel count.
 */
#include "launch.h"

#include "../../lower/emit_c_parts.h"

/* A Hopper processor's, sustained: operations a second by warp groups and by warps, bytes a second that reach it;
 * bytes a second to all of them; and seconds for a launch, and for a block until its first tile is there. */
static const double GROUP_RATE = 5.4e12, WARP_RATE = 2.4e12, BYTES = 100e9, ALL_BYTES = 7e12;
static const double LAUNCH = 2.2e-6, BEGIN = 1.2e-6;
enum { SHARED = 227 << 10, OWN_SHARED = 1 << 10, THREADS = 2048, REGISTERS = 64 << 10, HELD = 168 };

typedef struct work {
  const bb_tile_program *p;
  double *variable;
  double operations, bytes;
} work;

static double value(const work *w, bb_tile_index index) {
  return (double)bb_tile_index_value(index, w->variable);
}

static void walk(work *w, const bb_tile_body *body, double times, uint32_t stretch);

/* The iterations are all taken for the one in the middle. */
static void walk_loop(work *w, const bb_tile_loop *l, double times) {
  for (uint32_t k = 0; k < l->stretches; k++) {
    double from = value(w, l->stretch[k].from), step = value(w, l->step);
    bb_tile_index to = l->stretch[k].to; /* NULL: one iteration */
    double trips = !to ? 1 : step > 0 ? (value(w, to) - from + step - 1) / step : 0;
    trips = (double)(int64_t)trips;
    if (trips < 1) continue;
    w->variable[l->variable] = from + step * (double)(int64_t)(trips / 2);
    walk(w, &l->body, times * trips, l->stretches > 1 ? k : BB_NONE);
  }
}

static void walk(work *w, const bb_tile_body *body, double times, uint32_t stretch) {
  for (uint32_t i = 0; i < body->count; i++) {
    const bb_tile_stmt *s = body->stmt[i];
    if (s->stretches && stretch != BB_NONE && !(s->stretches >> stretch & 1)) continue;
    if (s->kind == BB_TILE_DOT || s->kind == BB_TILE_LOAD) {
      const bb_tile *t = &w->p->tile[s->result];
      double elements = (double)(t->rows ? t->rows : 1) * (t->cols ? t->cols : 1);
      if (s->kind == BB_TILE_DOT)
        w->operations += times * 2 * elements * bb_c_depth(w->p, s);
      else
        w->bytes += times * elements * (double)bb_dtype_bytes(t->dtype);
    }
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

double bb_cuda_weigh(const bb_cuda_machine *m, const bb_cuda_kernel *k, const int64_t *extent) {
  const bb_tile_program *tile = k->kernel->tile;
  bb_arena *scratch = bb_scratch(m->ctx);
  work w = {.p = tile, .variable = BB_NEW(scratch, double, tile->variables + 1)};
  for (uint32_t i = 0; i < tile->extents; i++) w.variable[i] = (double)extent[i];
  walk(&w, &tile->body, 1, BB_NONE);
  bb_scratch_end(scratch);
  double blocks = (double)bb_cuda_evaluate(m->ctx, k->plan.tiles, tile, extent) *
                  (double)bb_cuda_evaluate(m->ctx, k->plan.cluster, tile, extent);
  if (blocks < 1) return 0;
  double each = rounded_up(blocks / m->processors), rounds = rounded_up(each / together(&k->plan));
  double rate = k->plan.threads > 128 ? GROUP_RATE : WARP_RATE;
  double busy = most(w.operations / blocks * each / rate, w.bytes / blocks * each / BYTES);
  return LAUNCH + BEGIN * rounds + most(busy, w.bytes / ALL_BYTES);
}
