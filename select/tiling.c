/* tiling.c - the block sizes that make a nest cheapest.
 *
 * Each size has a handful of choices: powers of two up to its extent, the extent, and where a tile may have
 * any size (a CPU) the share of a unit: 48 rows on two units are 24 each, not 32 and 16.  All sizes start as
 * small as they can be (so that the tiles fit if any do), all near some middle, or whole, the largest made smaller until
 * they fit; then one size at a time takes its best choice until none changes, then two at a time change
 * places, one larger and one smaller.
 */
#include "price.h"

#include <math.h>
#include <string.h>

/* A block of a product has so many rows and columns; one that streams through registers may have few, or of whole lines that are long. */
static const double LEAST = 16, LEAST_FEW = 4;

enum { CHOICES = 12, STARTS = 3, ROUNDS = 8 };
/* Where there is a hint: points that are enough, or choices away from a close one. */
enum { ENOUGH = 256, REACH = 2 };
/* Of the points that were priced: how many are kept at most, and the bits of a choice in a packed one. */
enum { SEEN = 1 << 10, BITS = 4, PACKED = 64 / BITS };

typedef struct axis {
  uint32_t choices, at;
  double choice[CHOICES];
} axis;

typedef struct search {
  const bb_pricing *pricing;
  bool force;
  uint32_t reach; /* choices to either side of the present one that are tried */
  uint32_t axes;
  axis *axis;
  bb_tiling point, *best;
  double seconds, second; /* of the best, and of the next */
  uint32_t points;        /* priced */
  bool few;               /* points: each has a place of its own in `seen` */
  struct seen { /* points that were priced, else hashed; where another one lies, it is forgotten */
    uint64_t point; /* 1 + its choices, packed; 0: none */
    double seconds;
  } * seen;
} search;

/* Choices ascend. */
static void insert(axis *a, double choice) {
  uint32_t at = a->choices;
  for (uint32_t i = 0; i < a->choices; i++)
    if (a->choice[i] == choice) return;
  for (; at && a->choice[at - 1] > choice; at--) a->choice[at] = a->choice[at - 1];
  a->choice[at] = choice;
  a->choices++;
}

/* Of so many elements that few of them have room beside what is made of them. */
static bool has_long_lines(const bb_pricing *pricing) {
  enum { LONG = 4096 };
  for (uint32_t i = 0; i < pricing->nest->sizes; i++)
    if (pricing->size_extent[i] > LONG) return true;
  return false;
}

static void fill_axis(const bb_pricing *pricing, uint32_t size, axis *a) {
  double extent = pricing->size_extent[size];
  bool few = pricing->holds || (pricing->stays && has_long_lines(pricing));
  if (!pricing->nest->size[size].whole)
    for (double block = few ? LEAST_FEW : LEAST; block < extent && block <= 1024; block *= 2)
      a->choice[a->choices++] = block;
  const bb_machine *m = pricing->machine;
  double share = ceil(extent / m->units);
  bool any = m->register_bytes == 0 && !pricing->nest->size[size].whole;
  bool large =
      a->choices > 0 && extent > (m->register_bytes == 0 && pricing->stays ? 1 << 16 : 8192);
  if (!large) a->choice[a->choices++] = fmax(1, extent);
  if (any && share > LEAST && share < extent && share <= 1024) insert(a, share);
}

/* How many points there are; more than are kept, if so. */
static uint32_t all_points(const search *s) {
  uint32_t points = 1;
  for (uint32_t i = 0; i < s->axes && points <= SEEN; i++) points *= s->axis[i].choices;
  return points;
}

static search search_start(const bb_pricing *pricing, uint32_t fold, uint32_t split, bool force,
                           bb_arena *arena, bb_tiling *best) {
  uint32_t axes = pricing->nest->sizes;
  search s = {.pricing = pricing, .force = force, .axes = axes, .best = best};
  s.axis = BB_NEW(arena, axis, axes);
  for (uint32_t i = 0; i < axes; i++) fill_axis(pricing, i, &s.axis[i]);
  s.point = (bb_tiling){BB_NEW(arena, double, axes), fold, split};
  *best = (bb_tiling){BB_NEW(arena, double, axes), fold, split};
  for (uint32_t i = 0; i < axes; i++) best->block[i] = s.axis[i].choice[0];
  s.seconds = s.second = INFINITY;
  if (axes <= PACKED) {
    uint32_t points = all_points(&s);
    s.few = points <= SEEN;
    s.seen = BB_NEW(arena, struct seen, s.few ? points : SEEN);
  }
  return s;
}

static struct seen *find_seen(const search *s, uint64_t *point) {
  uint32_t place = 0;
  *point = 1;
  for (uint32_t i = 0; i < s->axes; i++) {
    *point += (uint64_t)s->axis[i].at << i * BITS;
    place = place * s->axis[i].choices + s->axis[i].at;
  }
  return &s->seen[s->few ? place : *point * UINT64_C(0x9E3779B97F4A7C15) >> 54];
}

static double try_point(search *s) {
  uint64_t key = 0;
  struct seen *seen = s->seen ? find_seen(s, &key) : NULL;
  if (seen && seen->point == key) return seen->seconds;
  for (uint32_t i = 0; i < s->axes; i++) s->point.block[i] = s->axis[i].choice[s->axis[i].at];
  double seconds = bb_price_seconds(s->pricing, &s->point, s->force);
  s->points++;
  bool same = memcmp(s->best->block, s->point.block, s->axes * sizeof(double)) == 0;
  if (seconds < s->seconds) {
    if (!same) s->second = s->seconds;
    s->seconds = seconds;
    memcpy(s->best->block, s->point.block, s->axes * sizeof(double));
  } else if (!same && seconds < s->second) {
    s->second = seconds;
  }
  if (seen) *seen = (struct seen){key, seconds};
  return seconds;
}

/* The best choice of one size in reach, others as they are. */
static bool improve_one(search *s, uint32_t i, double *seconds) {
  axis *a = &s->axis[i];
  uint32_t old = a->at, best = old;
  for (uint32_t c = old > s->reach ? old - s->reach : 0; c < a->choices && c <= old + s->reach;
       c++) {
    if (c == old) continue;
    a->at = c;
    double price = try_point(s);
    if (price < *seconds * (1 - 1e-9)) *seconds = price, best = c;
  }
  a->at = best;
  return best != old;
}

/* Is it cheaper with one size so many steps up and another so many down? */
static bool improves(search *s, axis *a, uint32_t up, axis *b, uint32_t down, double *seconds) {
  a->at += up, b->at -= down;
  double price = try_point(s);
  if (price < *seconds * (1 - 1e-9)) {
    *seconds = price;
    return true;
  }
  a->at -= up, b->at += down;
  return false;
}

/* One size a step up, another a step or two down.  Or, of a processor's work but products, the one many steps up and the other as many
 * down: lines that end with an array, or a page, may be worth what no longer part of them is. */
static bool improve_pair(search *s, uint32_t i, uint32_t j, double *seconds) {
  axis *a = &s->axis[i], *b = &s->axis[j];
  for (uint32_t down = 1; down <= 2; down++) {
    if (a->at + 1 >= a->choices || b->at < down) return false;
    if (improves(s, a, 1, b, down, seconds)) return true;
  }
  if (!s->pricing->stops || !s->pricing->stays) return false;
  for (uint32_t up = a->choices - 1 - a->at; up > 1; up--)
    if (improves(s, a, up, b, up < b->at ? up : b->at, seconds)) return true;
  return false;
}

/* Starts where the tiles fit: the largest block is halved as long as they do not. */
static double fit(search *s) {
  double seconds = try_point(s);
  while (seconds == INFINITY) {
    axis *largest = NULL;
    for (uint32_t i = 0; i < s->axes; i++) {
      axis *a = &s->axis[i];
      if (a->at && (!largest || a->choice[a->at] > largest->choice[largest->at])) largest = a;
    }
    if (!largest) break;
    largest->at--;
    seconds = try_point(s);
  }
  return seconds;
}

static void descend(search *s) {
  double seconds = fit(s);
  bool moved = true;
  for (uint32_t round = 0; moved && round < ROUNDS; round++) {
    moved = false;
    for (uint32_t i = 0; i < s->axes; i++)
      if (s->axis[i].choices > 1) moved |= improve_one(s, i, &seconds);
    for (uint32_t i = 0; !moved && seconds < INFINITY && i < s->axes; i++)
      for (uint32_t j = 0; j < s->axes; j++)
        if (i != j) moved |= improve_pair(s, i, j, &seconds);
  }
}

/* The first choice of each size that is not below `block`, else the last. */
static void start_at(search *s, const double *block, double all) {
  for (uint32_t i = 0; i < s->axes; i++) {
    axis *a = &s->axis[i];
    for (a->at = 0; a->at + 1 < a->choices && a->choice[a->at] < (block ? block[i] : all);) a->at++;
  }
  descend(s);
}

/* Whole blocks of what loops within the grid's run over, as few side by side as may be: what is loaded stays at hand only where each
 * of the loops that read it runs once, and no step leads there that is better by itself. */
static void start_whole(search *s) {
  const bb_nest *nest = s->pricing->nest;
  for (uint32_t i = 0; i < s->axes; i++) s->axis[i].at = s->axis[i].choices - 1;
  for (uint32_t i = 0; i < nest->loops; i++)
    if (nest->loop[i].grid && nest->loop[i].size != BB_NONE) s->axis[nest->loop[i].size].at = 0;
  descend(s);
}

static bb_price price_of_best(const search *s) {
  bb_price price;
  bb_price_tiling(s->pricing, s->best, s->force, &price);
  return price;
}

bb_price bb_price_search(const bb_pricing *pricing, uint32_t fold, uint32_t split,
                         const bb_search_hint *hint, bool force, bb_arena *arena, bb_tiling *best,
                         double *second) {
  static const double start[STARTS] = {0, 64, 256};
  search s = search_start(pricing, fold, split, force, arena, best);
  uint32_t enough = !hint ? UINT32_MAX : hint->close ? 0 : ENOUGH;
  s.reach = hint && hint->close ? REACH : CHOICES;
  if (hint) start_at(&s, hint->block, 0);
  if (pricing->stays && s.points < enough) start_whole(&s); /* first: of equals, whole ones */
  for (uint32_t k = 0; k < STARTS && (s.points < enough || s.seconds == INFINITY); k++)
    start_at(&s, NULL, start[k]);
  *second = s.second;
  return price_of_best(&s);
}

bb_price bb_price_exhaust(const bb_pricing *pricing, uint32_t fold, uint32_t split, bb_arena *arena,
                          bb_tiling *best) {
  search s = search_start(pricing, fold, split, false, arena, best);
  while (true) {
    uint32_t i = 0;
    try_point(&s);
    for (; i < s.axes && ++s.axis[i].at == s.axis[i].choices; i++) s.axis[i].at = 0;
    if (i == s.axes) return price_of_best(&s);
  }
}
