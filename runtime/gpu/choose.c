/* choose.c - which of a kernel's ways runs at some extents: the cheapest, or two of them, one behind the other.
 *
 * Blocks take tiles in rounds, and in the last one most processors may have none: of 448 equal tiles on 132 processors four rounds
 * make what fills three and a third.  So as many results as whole rounds make are one launch, and the others are another's, of tiles that
 * are smaller or whose folds are in parts, where both together weigh less than the cheapest way alone.
 */
#include "choose.h"

#include <math.h>

/* By which two launches have to weigh less than one: as much as weights are off by. */
static const double WORTH = 0.03;
/* What ways weigh more than the cheapest whose whole rounds are looked at. */
static const double NEAR = 0.1;

typedef struct choosing {
  const bb_gpu_machine *m;
  const bb_gpu_ways *ways;
  const bb_launch *launch;
  double *seconds; /* by way, for all results; INFINITY: it is refused, or none of its own units */
  double least;    /* of what is chosen */
  int64_t *extent;
  bb_gpu_choice *choice;
} choosing;

/* The step's extents as a way has them. */
void bb_gpu_way_extents(const bb_gpu_way *way, const bb_launch *launch, int64_t *extent) {
  for (uint32_t i = 0; i < way->extents; i++)
    extent[i] = way->extent[i] == BB_NONE ? 0 : launch->extent[way->extent[i]];
}

/* --- two --- */

/* Nothing of a launch's own stays with it that the other one has, too. */
static bool may_be_part(const bb_gpu_way *w) {
  return !w->own.split && !w->own.counter && !w->plain.nests;
}

static double weigh_slice(const choosing *c, const bb_gpu_way *way, const bb_gpu_slice *slice,
                          int64_t places) {
  bb_gpu_way_extents(way, c->launch, c->extent);
  c->extent[slice->extent] = places;
  return bb_cuda_weigh(c->m, way, c->extent);
}

/* Places that whole rounds make, 0: that is none, or all. */
static int64_t whole_rounds(const choosing *c, const bb_gpu_way *way, const bb_gpu_slice *slice) {
  const bb_gpu_own *own = &way->own;
  bb_gpu_way_extents(way, c->launch, c->extent);
  int64_t all = c->extent[slice->extent], steps = (all + slice->step - 1) / slice->step;
  int64_t tiles = bb_gpu_value(c->m, &own->tiles, c->extent);
  bool even = own->persistent && own->resident == 1 && steps > 0 && tiles % steps == 0 &&
              bb_gpu_value(c->m, &own->cluster, c->extent) == 1;
  if (!even) return 0;
  int64_t rounds = tiles / c->m->processors, each = tiles / steps;
  int64_t made = each ? rounds * c->m->processors / each : 0;
  return made < steps ? made * slice->step : 0;
}

/* Do slices of two ways cut the results along the same axis?  Equal steps in memory are of one. */
static bool same_cut(const choosing *c, const bb_gpu_way *a, const bb_gpu_slice *s,
                     const bb_gpu_way *b, const bb_gpu_slice *t) {
  bool same = true;
  int64_t *extent = c->extent;
  for (uint32_t v = 0; same && v < a->views; v++) {
    bool found = !a->about[v].written;
    for (uint32_t k = 0; !found && k < b->views; k++) {
      if (b->view[k] != a->view[v] || !b->about[k].written || !s->by[v].count || !t->by[k].count)
        continue;
      bb_gpu_way_extents(a, c->launch, extent);
      int64_t by = bb_gpu_value(c->m, &s->by[v], extent), all = extent[s->extent];
      bb_gpu_way_extents(b, c->launch, extent);
      found = by == bb_gpu_value(c->m, &t->by[k], extent) && all == extent[t->extent];
    }
    same = found;
  }
  return same;
}

/* The rest of the places by any other way. */
static void try_rest(choosing *c, const bb_gpu_way *first, const bb_gpu_slice *slice,
                     int64_t made) {
  bb_gpu_way_extents(first, c->launch, c->extent);
  int64_t all = c->extent[slice->extent];
  double begun = weigh_slice(c, first, slice, made) - bb_cuda_weigh_launch();
  for (uint32_t i = 0; i < c->ways->count; i++) {
    const bb_gpu_way *way = &c->ways->way[i];
    if (!isfinite(c->seconds[i]) || !may_be_part(way)) continue;
    for (uint32_t k = 0; k < way->own.slices; k++) {
      const bb_gpu_slice *rest = &way->own.slice[k];
      if (!same_cut(c, first, slice, way, rest)) continue;
      double seconds = begun + weigh_slice(c, way, rest, all - made);
      if (seconds >= c->least) continue;
      c->least = seconds;
      *c->choice = (bb_gpu_choice){2, {{first, slice, 0, made}, {way, rest, made, all}}};
    }
  }
}

static void try_two(choosing *c) {
  double near = c->least * (1 + NEAR);
  c->least *= 1 - WORTH;
  for (uint32_t i = 0; i < c->ways->count; i++) {
    const bb_gpu_way *way = &c->ways->way[i];
    if (c->seconds[i] > near || !may_be_part(way)) continue;
    for (uint32_t k = 0; k < way->own.slices; k++) {
      const bb_gpu_slice *slice = &way->own.slice[k];
      int64_t made = whole_rounds(c, way, slice);
      if (made > 0 && weigh_slice(c, way, slice, made) < c->least) try_rest(c, way, slice, made);
    }
  }
}

/* --- one --- */

/* The cheapest way of those that take the arrays as they lie. */
static void try_all(choosing *c, bb_gpu_pointer *view) {
  const char *why = "it has no way";
  const bb_gpu_way *best = NULL;
  for (uint32_t i = 0; i < c->ways->count; i++) {
    const bb_gpu_way *way = &c->ways->way[i];
    c->seconds[i] = INFINITY; /* what any other is preferred to */
    if (way->is_own) {
      bb_gpu_way_extents(way, c->launch, c->extent);
      bb_gpu_way_views(way, c->launch, view);
      const char *refused = bb_cuda_refusal(c->m, way, c->extent, view);
      if (refused) why = refused;
      if (refused) continue;
      c->seconds[i] = c->ways->count > 1 ? bb_cuda_weigh(c->m, way, c->extent) : 0;
    }
    if (best && c->seconds[i] >= c->least) continue;
    c->least = c->seconds[i];
    best = way;
  }
  if (!best)
    bb_fail(c->m->ctx, BB_ERROR_UNSUPPORTED, "%s does not run at these extents: %s",
            c->launch->name, why);
  *c->choice = (bb_gpu_choice){1, {{.way = best}}};
}

void bb_gpu_way_views(const bb_gpu_way *way, const bb_launch *launch, bb_gpu_pointer *view) {
  for (uint32_t i = 0; i < way->views; i++)
    view[i] = way->view[i] == BB_NONE ? 0 : (uintptr_t)launch->argument[way->view[i]];
}

void bb_gpu_choose(const bb_gpu_machine *m, const bb_gpu_ways *ways, const bb_launch *launch,
                   bb_gpu_choice *choice) {
  bb_arena *scratch = bb_scratch(m->ctx);
  uint32_t extents = 0, views = 0;
  for (uint32_t i = 0; i < ways->count; i++) {
    if (ways->way[i].extents > extents) extents = ways->way[i].extents;
    if (ways->way[i].views > views) views = ways->way[i].views;
  }
  choosing c = {.m = m, .ways = ways, .launch = launch, .choice = choice};
  c.seconds = BB_NEW(scratch, double, ways->count + 1);
  c.extent = BB_NEW(scratch, int64_t, extents + 1);
  try_all(&c, BB_NEW(scratch, bb_gpu_pointer, views + 1));
  if (choice->part[0].way->is_own && ways->count > 1) try_two(&c);
  bb_scratch_end(scratch);
}
