/* plan_ways.c - which of the ways to make a kernel for a GPU are worth their compilation.
 *
 * A compiler takes a third of a second for each, and which one runs follows from what they are weighed at a run's extents
 * (cuda/weigh.c), or which two (gpu/choose.c).  So all are weighed here at extents all over what they may be, and of the sets of ways
 * of which one, or two, weigh as little as any of all, or nearly, at each of these, the one with the least source is made.
 */
#include "plan_maker.h"

#include "../../lower/schedule_gpu.h"
#include "../gpu/choose.h"

#include <math.h>
#include <string.h>

/* Values of each extent: so many from each power of two to the next, and those where another tile begins; longer arrays repeat
 * what there was before.  Powers of two alone would not do: which ways leave processors idle is seen beside them. */
enum { OCTAVES = 17, EACH = 16, VALUES = 2 * OCTAVES * EACH + 1, NODES = 1024 };
/* With more extents than so many the nodes lie too far apart to tell what is never needed: all ways are made. */
enum { MOST_AXES = 3 };
/* Of ways, each for whole rounds with each for the rest, by any of the slices of both. */
enum { MOST_PAIRS = BB_GPU_WAYS * BB_GPU_WAYS * BB_GPU_SLICES * BB_GPU_SLICES };
/* By which a way may weigh more than another that is left out for it: what the fastest one was found to be off by. */
static const double SLACK = 0.02;
/* Bytes of arrays that no device has room for. */
static const double NO_ROOM = 512e9;

/* Values of extents, some for each: a node of the grid is one of each. */
typedef struct grid {
  uint32_t axes, values, nodes; /* nodes: that are looked at, `apart` in their order */
  uint64_t apart;
  const uint32_t *symbol; /* by axis */
  int64_t value[VALUES];
} grid;

/* Sets of offers, as bits: one of those in `any`, or all of one of some sets, have to be there. */
typedef struct want {
  uint32_t any, sets;
  const uint32_t *set;
} want;

/* seconds: what each offer weighs at the node, INFINITY where it is none. */
typedef struct keeping {
  bb_maker *m;
  const bb_gpu_machine *machine;
  uint32_t count;
  bb_offer *offer;
  const grid *grid;
  uint32_t node;
  int64_t *symbol; /* by symbol: its value */
  double *seconds;
  bb_gpu_weighed *weighed; /* the same, for bb_gpu_each_two(), which says: */
  uint32_t pairs;
  uint32_t *pair;       /* offers, as bits ... */
  double *pair_seconds; /* ... and what they weigh together */
  uint32_t wanted, capacity;
  want *want;
} keeping;

/* --- what weights depend on --- */

static void note_symbol(const bb_plan *plan, uint32_t symbol, bool *is_axis) {
  const bb_formula *derived = &plan->derived[symbol];
  if (symbol >= plan->extents || is_axis[symbol]) return;
  is_axis[symbol] = derived->count == 0;
  for (uint32_t i = 0; i < derived->count; i++)
    if (derived->term[i].op == BB_T_VARIABLE)
      note_symbol(plan, (uint32_t)derived->term[i].number, is_axis);
}

static void note_formula(const bb_maker *m, const bb_offer *o, const bb_formula *formula,
                         bool *is_axis) {
  for (uint32_t i = 0; i < formula->count; i++) {
    if (formula->term[i].op != BB_T_VARIABLE || formula->term[i].number >= o->own.extents) continue;
    const bb_extent *e = o->extent[formula->term[i].number];
    for (uint32_t k = 0; k < e->count; k++) note_symbol(m->plan, e->symbol[k], is_axis);
  }
}

static void note_offer(const bb_maker *m, const bb_offer *o, bool *is_axis) {
  const bb_gpu_weight *w = &o->own.own.weight;
  note_formula(m, o, &o->own.own.tiles, is_axis);
  note_formula(m, o, &o->own.own.cluster, is_axis);
  for (uint32_t i = 0; i < w->steps; i++) note_formula(m, o, &w->step[i], is_axis);
  for (uint32_t i = 0; i < BB_GPU_TOTALS; i++) note_formula(m, o, &w->total[i], is_axis);
}

/* --- extents all over what they may be --- */

static void add_value(grid *g, int64_t value) {
  if (!g->values || g->value[g->values - 1] < value) g->value[g->values++] = value;
}

static void take_values(grid *g) {
  for (uint32_t octave = 0; octave < OCTAVES; octave++)
    for (uint32_t i = 0; i < EACH; i++) {
      int64_t value = ((int64_t)(EACH + i) << octave) / EACH;
      add_value(g, value);
      add_value(g, value + 1);
    }
  add_value(g, (int64_t)1 << OCTAVES);
}

static uint32_t common(uint64_t a, uint64_t b) {
  return (uint32_t)(b ? common(b, a % b) : a);
}

/* Of nodes beyond NODES some, all over it. */
static grid *grid_over(bb_maker *m, const bool *is_axis) {
  grid *g = BB_NEW(m->arena, grid, 1);
  uint32_t *symbol = BB_NEW(m->arena, uint32_t, m->plan->extents + 1);
  for (uint32_t s = 0; s < m->plan->extents; s++)
    if (is_axis[s]) symbol[g->axes++] = s;
  g->symbol = symbol;
  take_values(g);
  double all = pow(g->values, g->axes);
  g->apart = 1;
  g->nodes = (uint32_t)fmin(all, NODES);
  if (all > NODES) g->apart = (uint64_t)fmin(all / NODES, 1e15);
  while (common(g->apart, g->values) > 1) g->apart++;
  return g;
}

/* Those that follow from others, too.  Fails where these are no sizes. */
static void take_node(const keeping *k, const grid *g, uint32_t number) {
  uint64_t rest = number * g->apart;
  for (uint32_t s = 0; s < k->m->plan->symbols; s++) k->symbol[s] = -1;
  for (uint32_t a = 0; a < g->axes; a++, rest /= g->values)
    k->symbol[g->symbol[a]] = g->value[rest % g->values];
  bb_plan_derive(k->m->ctx, k->m->plan, k->symbol);
  for (uint32_t s = 0; s < k->m->plan->symbols; s++)
    if (k->symbol[s] < 0) k->symbol[s] = 1; /* nothing depends on it */
}

/* --- weights there --- */

static double bytes_of(const keeping *k, const bb_gpu_way *way, const int64_t *extent) {
  double bytes = 0;
  for (uint32_t v = 0; v < way->views; v++)
    if (!way->about[v].scratch)
      bytes += (double)bb_gpu_value(k->machine, &way->about[v].bytes, extent);
  return bytes;
}

/* Fails where sizes are too large. */
static double weigh(bb_context *ctx, const keeping *k, const bb_offer *o) {
  int64_t *extent = k->weighed[o - k->offer].extent;
  for (uint32_t e = 0; e < o->own.extents; e++)
    if (!bb_plan_extent(o->extent[e], k->symbol, &extent[e]))
      bb_fail(ctx, BB_ERROR_INPUT, "a kernel's sizes are too large");
  if (bytes_of(k, &o->own, extent) > NO_ROOM)
    bb_fail(ctx, BB_ERROR_INPUT, "a kernel's arrays are too large");
  return bb_cuda_weigh(k->machine, &o->own, extent);
}

static void note_two(void *user, const bb_gpu_weighed *first, const bb_gpu_weighed *rest,
                     double seconds, const bb_gpu_choice *choice) {
  keeping *k = user;
  (void)choice;
  k->pair[k->pairs] = 1u << (first - k->weighed) | 1u << (rest - k->weighed);
  k->pair_seconds[k->pairs++] = seconds;
}

static void weigh_all(bb_context *ctx, void *argument) {
  keeping *k = argument;
  take_node(k, k->grid, k->node);
  for (uint32_t i = 0; i < k->count; i++) {
    const bb_offer *o = &k->offer[i];
    k->seconds[i] = o->kept ? weigh(ctx, k, o) : INFINITY;
    k->weighed[i].seconds = k->seconds[i];
  }
  k->pairs = 0;
  bb_gpu_each_two(k->machine, k->count, k->weighed, note_two, k);
}

/* False: there are no such extents. */
static bool is_weighed(keeping *k, uint32_t node) {
  bb_context *ctx = k->m->ctx;
  k->node = node;
  bb_status status = bb_protect(ctx, weigh_all, k);
  if (status != BB_OK && status != BB_ERROR_INPUT) bb_fail_again(ctx, status);
  ctx->status = BB_OK;
  return status == BB_OK;
}

/* --- sets of ways --- */

static void add_want(keeping *k, uint32_t any, uint32_t sets, const uint32_t *set) {
  for (uint32_t i = 0; i < k->wanted; i++) {
    const want *w = &k->want[i];
    if (w->any == any && w->sets == sets && (!sets || memcmp(w->set, set, sets * sizeof *set) == 0))
      return;
  }
  uint32_t *copy = BB_NEW(k->m->arena, uint32_t, sets + 1);
  if (sets) memcpy(copy, set, sets * sizeof *set);
  BB_GROW(k->m->arena, k->want, k->capacity, k->wanted + 1u);
  k->want[k->wanted++] = (want){any, sets, copy};
}

static bool is_within(const bb_offer *a, const bb_offer *b) {
  for (uint32_t i = 0; i < a->demands; i++) {
    bool there = false;
    for (uint32_t k = 0; k < b->demands; k++) there |= a->demand[i] == b->demand[k];
    if (!there) return false;
  }
  return true;
}

/* Arrays that an offer refuses are another's that demands less of them.  So there has to be one for any that are taken by
 * one offer: among those that demand nothing which that one does not. */
static void want_for_any_arrays(keeping *k, double slack) {
  for (uint32_t i = 0; i < k->count; i++) {
    double least = INFINITY;
    uint32_t good = 0;
    if (!k->offer[i].kept) continue;
    for (uint32_t o = 0; o < k->count; o++)
      if (is_within(&k->offer[o], &k->offer[i])) least = fmin(least, k->seconds[o]);
    for (uint32_t o = 0; o < k->count; o++)
      if (is_within(&k->offer[o], &k->offer[i]) && k->seconds[o] <= least * (1 + slack) &&
          k->offer[o].kept)
        good |= 1u << o;
    add_want(k, good, 0, NULL);
  }
}

/* Where two launches are the cheapest: those two, others that weigh nearly as little, or one that does. */
static void want_two(keeping *k, double slack) {
  double least = INFINITY;
  uint32_t good = 0, sets = 0, *set = k->pair;
  for (uint32_t i = 0; i < k->pairs; i++) least = fmin(least, k->pair_seconds[i]);
  for (uint32_t i = 0; i < k->count; i++)
    if (k->seconds[i] <= least * (1 + slack)) good |= 1u << i;
  for (uint32_t i = 0; i < k->pairs; i++)
    if (k->pair_seconds[i] <= least * (1 + slack)) set[sets++] = k->pair[i];
  if (sets) add_want(k, good, sets, set);
}

static bool has(const want *w, uint32_t offers) {
  bool is = w->any & offers;
  for (uint32_t i = 0; i < w->sets && !is; i++) is = !(w->set[i] & ~offers);
  return is;
}

static bool has_all(const keeping *k, uint32_t offers) {
  for (uint32_t i = 0; i < k->wanted; i++)
    if (!has(&k->want[i], offers)) return false;
  return true;
}

/* That has one of each, with the least source. */
static uint32_t best_set(const keeping *k) {
  uint32_t best = 0;
  size_t least = SIZE_MAX;
  for (uint32_t offers = 1; offers < 1u << k->count; offers++) {
    size_t length = 0;
    for (uint32_t i = 0; i < k->count; i++)
      if (offers >> i & 1) length += k->offer[i].length;
    if (length >= least || !has_all(k, offers)) continue;
    least = length;
    best = offers;
  }
  return best;
}

static void take_extents(bb_maker *m, bb_offer *o) {
  const bb_extent **extent = BB_NEW(m->arena, const bb_extent *, o->own.extents + 1);
  for (uint32_t i = 0; i < o->own.extents; i++) extent[i] = bb_maker_extent(m, o->kernel, i);
  o->extent = extent;
}

/* Its arrays by the tensors that they are of. */
static void take_weighed(bb_maker *m, bb_offer *o, bb_gpu_weighed *w) {
  uint32_t *view = BB_NEW(m->arena, uint32_t, o->own.views + 1);
  for (uint32_t v = 0; v < o->own.views; v++) view[v] = o->kernel->argument[v].tensor;
  o->own.view = view;
  *w = (bb_gpu_weighed){&o->own, BB_NEW(m->arena, int64_t, o->own.extents + 1), INFINITY};
}

/* Neither those that are made already nor those that take no arrays at all. */
static void leave_out(bb_offer *offer, uint32_t number) {
  bb_offer *o = &offer[number];
  o->kept = true;
  for (uint32_t i = 0; i < o->demands; i++) o->kept &= o->demand[i]->op != BB_X_CONST;
  for (uint32_t i = 0; i < number; i++)
    if (offer[i].length == o->length && memcmp(offer[i].source, o->source, o->length) == 0)
      o->kept = false;
}

/* --- */

static bool is_same(const bb_offer *a, const bb_offer *b) {
  bool same = a->length == b->length && a->own.extents == b->own.extents &&
              a->demands == b->demands && memcmp(a->source, b->source, a->length) == 0;
  for (uint32_t i = 0; same && i < a->demands; i++) same = a->demand[i] == b->demand[i];
  for (uint32_t i = 0; same && i < a->own.extents; i++)
    same = a->kernel->extent[i] == b->kernel->extent[i] &&
           (a->kernel->extent[i] || a->kernel->symbol[i] == b->kernel->symbol[i]);
  return same;
}

/* Layers are alike: what was found out for the same kernel holds. */
static bool is_known(const bb_maker *m, uint32_t count, bb_offer *offer) {
  for (const bb_offers *before = m->offers; before; before = before->next) {
    bool same = before->count == count;
    for (uint32_t i = 0; same && i < count; i++) same = is_same(&before->offer[i], &offer[i]);
    for (uint32_t i = 0; same && i < count; i++) offer[i].kept = before->offer[i].kept;
    if (same) return true;
  }
  return false;
}

static void find_kept(bb_maker *m, const bb_gpu_machine *machine, uint32_t count, bb_offer *offer) {
  keeping k = {.m = m, .machine = machine, .count = count, .offer = offer};
  bool *is_axis = BB_NEW(m->arena, bool, m->plan->extents + 1);
  for (uint32_t i = 0; i < count; i++) {
    take_extents(m, &offer[i]);
    leave_out(offer, i);
    if (offer[i].kept) note_offer(m, &offer[i], is_axis);
  }
  const grid *g = k.grid = grid_over(m, is_axis);
  k.symbol = BB_NEW(m->arena, int64_t, m->plan->symbols + 1);
  k.seconds = BB_NEW(m->arena, double, count + 1);
  k.weighed = BB_NEW(m->arena, bb_gpu_weighed, count + 1);
  k.pair = BB_NEW(m->arena, uint32_t, MOST_PAIRS);
  k.pair_seconds = BB_NEW(m->arena, double, MOST_PAIRS);
  for (uint32_t i = 0; i < count; i++) take_weighed(m, &offer[i], &k.weighed[i]);
  for (uint32_t i = 0; i < g->nodes && g->axes <= MOST_AXES; i++) {
    if (!is_weighed(&k, i)) continue;
    want_for_any_arrays(&k, g->axes ? SLACK : 0);
    want_two(&k, g->axes ? SLACK : 0);
  }
  uint32_t best =
      k.wanted ? best_set(&k) : UINT32_MAX; /* of no extents that can be weighed at: any may run */
  for (uint32_t i = 0; i < count; i++) offer[i].kept &= best >> i & 1;
}

void bb_maker_keep(bb_maker *m, const bb_gpu_machine *machine, uint32_t count, bb_offer *offer) {
  if (is_known(m, count, offer)) return;
  find_kept(m, machine, count, offer);
  bb_offers *found = BB_NEW(m->arena, bb_offers, 1);
  bb_offer *copy = BB_NEW(m->arena, bb_offer, count + 1);
  if (count) memcpy(copy, offer, count * sizeof *copy);
  *found = (bb_offers){m->offers, count, copy};
  m->offers = found;
}
