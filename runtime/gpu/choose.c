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

/* --- two --- */

/* Nothing of a launch's own stays with it that the other one has, too. */
static bool may_be_part(const bb_gpu_weighed *w) {
  return isfinite(w->seconds) && !w->way->own.split && !w->way->own.counter && !w->way->plain.nests;
}

static double weigh_slice(const bb_gpu_machine *m, const bb_gpu_weighed *w,
                          const bb_gpu_slice *slice, int64_t places) {
  int64_t all = w->extent[slice->extent];
  w->extent[slice->extent] = places;
  double seconds = bb_cuda_weigh(m, w->way, w->extent);
  w->extent[slice->extent] = all;
  return seconds;
}

/* Places that whole rounds make, 0: that is none, or all. */
static int64_t whole_rounds(const bb_gpu_machine *m, const bb_gpu_weighed *w,
                            const bb_gpu_slice *slice) {
  const bb_gpu_own *own = &w->way->own;
  int64_t steps = (w->extent[slice->extent] + slice->step - 1) / slice->step;
  int64_t tiles = bb_gpu_value(m, &own->tiles, w->extent);
  bool even = own->persistent && own->resident == 1 && steps > 0 && tiles % steps == 0 &&
              bb_gpu_value(m, &own->cluster, w->extent) == 1;
  if (!even || tiles < steps) return 0;
  int64_t made = tiles / m->processors * m->processors / (tiles / steps);
  return made < steps ? made * slice->step : 0;
}

static int64_t step_of(const bb_gpu_machine *m, const bb_gpu_weighed *w, const bb_gpu_slice *s,
                       uint32_t view) {
  return s->by[view].count ? bb_gpu_value(m, &s->by[view], w->extent) : 0;
}

/* Do slices of two ways cut the results along the same axis?  Equal steps in memory are of one. */
static bool same_cut(const bb_gpu_machine *m, const bb_gpu_weighed *a, const bb_gpu_slice *s,
                     const bb_gpu_weighed *b, const bb_gpu_slice *t) {
  bool same = a->extent[s->extent] == b->extent[t->extent];
  for (uint32_t v = 0; same && v < a->way->views; v++) {
    if (!a->way->about[v].written) continue;
    int64_t by = step_of(m, a, s, v);
    same = false;
    for (uint32_t k = 0; k < b->way->views; k++)
      same |= b->way->about[k].written && b->way->view[k] == a->way->view[v] && by != 0 &&
              step_of(m, b, t, k) == by;
  }
  return same;
}

/* What the first leaves, by any of the other's slices. */
static void try_rest(const bb_gpu_machine *m, const bb_gpu_weighed *first,
                     const bb_gpu_weighed *rest, const bb_gpu_slice *slice, int64_t made,
                     double begun, double limit, bb_gpu_two *two, void *user) {
  int64_t all = first->extent[slice->extent];
  for (uint32_t k = 0; k < rest->way->own.slices; k++) {
    const bb_gpu_slice *other = &rest->way->own.slice[k];
    if (!same_cut(m, first, slice, rest, other)) continue;
    double seconds = begun + weigh_slice(m, rest, other, all - made);
    bb_gpu_choice choice = {2, {{first->way, slice, 0, made}, {rest->way, other, made, all}}};
    if (seconds < limit) two(user, first, rest, seconds, &choice);
  }
}

static void try_first(const bb_gpu_machine *m, uint32_t count, const bb_gpu_weighed *all,
                      const bb_gpu_weighed *first, double limit, bb_gpu_two *two, void *user) {
  for (uint32_t k = 0; k < first->way->own.slices; k++) {
    const bb_gpu_slice *slice = &first->way->own.slice[k];
    int64_t made = whole_rounds(m, first, slice);
    if (made == 0) continue;
    double begun = weigh_slice(m, first, slice, made) - bb_cuda_weigh_launch();
    for (uint32_t i = 0; i < count && begun < limit; i++)
      if (may_be_part(&all[i])) try_rest(m, first, &all[i], slice, made, begun, limit, two, user);
  }
}

void bb_gpu_each_two(const bb_gpu_machine *m, uint32_t count, const bb_gpu_weighed *all,
                     bb_gpu_two *two, void *user) {
  double least = INFINITY;
  for (uint32_t i = 0; i < count; i++) least = fmin(least, all[i].seconds);
  for (uint32_t i = 0; i < count && isfinite(least); i++)
    if (may_be_part(&all[i]) && all[i].seconds <= least * (1 + NEAR))
      try_first(m, count, all, &all[i], least * (1 - WORTH), two, user);
}

/* --- one --- */

void bb_gpu_way_extents(const bb_gpu_way *way, const bb_launch *launch, int64_t *extent) {
  for (uint32_t i = 0; i < way->extents; i++)
    extent[i] = way->extent[i] == BB_NONE ? 0 : launch->extent[way->extent[i]];
}

void bb_gpu_way_views(const bb_gpu_way *way, const bb_launch *launch, bb_gpu_pointer *view) {
  for (uint32_t i = 0; i < way->views; i++)
    view[i] = way->view[i] == BB_NONE ? 0 : (uintptr_t)launch->argument[way->view[i]];
}

typedef struct choosing {
  double least;
  bb_gpu_choice choice;
} choosing;

static void take(choosing *c, double seconds, const bb_gpu_choice *choice) {
  if (c->choice.count && seconds >= c->least) return;
  c->least = seconds;
  c->choice = *choice;
}

static void take_two(void *user, const bb_gpu_weighed *first, const bb_gpu_weighed *rest,
                     double seconds, const bb_gpu_choice *choice) {
  (void)first, (void)rest;
  take(user, seconds, choice);
}

/* Weighs a way at its launch's extents.  NULL, or why it does not take the arrays as they lie. */
static const char *weigh_way(const bb_gpu_machine *m, const bb_gpu_way *way,
                             const bb_launch *launch, bool alone, bb_arena *arena,
                             bb_gpu_weighed *w) {
  bb_gpu_pointer *view = BB_NEW(arena, bb_gpu_pointer, way->views + 1);
  bb_gpu_way_views(way, launch, view);
  const char *refused = bb_cuda_refusal(m, way, w->extent, view);
  if (!refused) w->seconds = alone ? 0 : bb_cuda_weigh(m, way, w->extent);
  return refused;
}

void bb_gpu_choose(const bb_gpu_machine *m, const bb_gpu_ways *ways, const bb_launch *launch,
                   bb_gpu_choice *choice) {
  bb_arena *scratch = bb_scratch(m->ctx);
  bb_gpu_weighed *all = BB_NEW(scratch, bb_gpu_weighed, ways->count + 1);
  const char *why = "it has no way";
  choosing c = {INFINITY, {0}};
  for (uint32_t i = 0; i < ways->count; i++) {
    const bb_gpu_way *way = &ways->way[i];
    all[i] = (bb_gpu_weighed){way, BB_NEW(scratch, int64_t, way->extents + 1), INFINITY};
    bb_gpu_way_extents(way, launch, all[i].extent);
    const char *refused =
        way->is_own ? weigh_way(m, way, launch, ways->count == 1, scratch, &all[i]) : NULL;
    if (refused)
      why = refused;
    else /* of plain threads: what any other is preferred to */
      take(&c, all[i].seconds, &(bb_gpu_choice){1, {{.way = way}}});
  }
  if (!c.choice.count)
    bb_fail(m->ctx, BB_ERROR_UNSUPPORTED, "%s does not run at these extents: %s", launch->name,
            why);
  if (ways->count > 1) bb_gpu_each_two(m, ways->count, all, take_two, &c);
  *choice = c.choice;
  bb_scratch_end(scratch);
}
