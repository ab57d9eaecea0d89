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
enum { SEEN = 1 << 10, BITS = 4, IN_WORD = 64 / BITS, WORDS = 4 };

typedef struct axis {
  uint32_t choices, at;
  uint32_t word, shift; /* of a packed point: where it has the choice */
  uint32_t stride;      /* by which the places of neighbours differ */
  double choice[CHOICES];
} axis;

/* 1 + the choices of the sizes that have any. */
typedef struct packed {
  uint64_t word[WORDS];
} packed;

typedef struct search {
  const bb_pricing *pricing;
  bool force;
  uint32_t reach; /* choices to either side of the present one that are tried */
  uint32_t axes;
  axis *axis;
  bb_tiling point, *best;
  double seconds, second; /* of the best, and of the next */
  uint32_t points;        /* priced */
  packed now;             /* the point at hand */
  uint32_t place;         /* its number among all, where they are few */
  uint32_t words;         /* of a packed point */
  bool few;               /* points: each has a place of its own in `seen` */
  /* By place, points that were priced, else hashed: where another one lies, it is forgotten. */
  uint64_t *seen; /* packed, `words` each; 0: none */
  double *found;  /* their seconds */
  struct ahead {
    uint32_t count;
    packed point[BB_PRICE_MANY];
    double *block; /* by size, then by point */
    double seconds[BB_PRICE_MANY];
  } ahead; /* points that may be tried next, priced together */
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

/* Indices that a loop takes at once: shares of all that are as equal as can be, of few enough rows that a panel of what they share serves
 * them from a near cache. */
static void fill_together(const bb_pricing *pricing, uint32_t size, axis *a) {
  enum { SHARES = CHOICES - 2, MOST_ROWS = 256 };
  double extent = pricing->size_extent[size];
  double most = MOST_ROWS / pricing->size_extent[pricing->nest->rows];
  insert(a, 1);
  for (double shares = 1; pricing->stops && shares <= SHARES; shares++)
    if (ceil(extent / shares) <= most) insert(a, fmax(1, ceil(extent / shares)));
}

static void fill_axis(const bb_pricing *pricing, uint32_t size, axis *a) {
  double extent = pricing->size_extent[size];
  if (size == pricing->nest->together) {
    fill_together(pricing, size, a);
    return;
  }
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

/* Where points have the choices of each size; gives the words that they take: more than there are, if so. */
static uint32_t lay_out(search *s) {
  uint32_t cut = 0, stride = 1;
  for (uint32_t i = 0; i < s->axes; i++) {
    axis *a = &s->axis[i];
    if (a->choices < 2) continue;
    if (cut < WORDS * IN_WORD) a->word = cut / IN_WORD;
    a->shift = cut++ % IN_WORD * BITS;
    a->stride = stride;
    stride *= a->choices; /* of no use where points are many */
  }
  return cut ? (cut + IN_WORD - 1) / IN_WORD : 1;
}

/* Another choice of a size. */
static void move(search *s, axis *a, uint32_t at) {
  s->now.word[a->word] += (uint64_t)((int64_t)at - a->at) << a->shift;
  s->place += (at - a->at) * a->stride;
  a->at = at;
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
  s.now.word[0] = 1;
  s.words = lay_out(&s);
  if (s.words <= WORDS) {
    uint32_t points = all_points(&s);
    s.few = points <= SEEN;
    if (!s.few) points = SEEN;
    s.seen = BB_NEW(arena, uint64_t, (size_t)points * s.words);
    s.found = BB_NEW(arena, double, points);
    s.ahead.block = BB_NEW(arena, double, (size_t)axes *BB_PRICE_MANY);
  }
  return s;
}

/* Where the point at hand is seen, or would be. */
static uint32_t place_of(const search *s) {
  if (s->few) return s->place;
  uint64_t hash = 0;
  for (uint32_t i = 0; i < s->words; i++)
    hash = (hash ^ s->now.word[i]) * UINT64_C(0x9E3779B97F4A7C15);
  return (uint32_t)(hash >> 54);
}

/* Is it the point at hand? */
static bool is_now(const search *s, const uint64_t *word) {
  uint64_t differ = 0;
  for (uint32_t i = 0; i < s->words; i++) differ |= word[i] ^ s->now.word[i];
  return differ == 0;
}

static bool is_seen(const search *s, uint32_t place) {
  return is_now(s, &s->seen[(size_t)place * s->words]);
}

/* The point's place among those ahead; their count if it is not there. */
static uint32_t find_ahead(const search *s) {
  uint32_t i = 0;
  while (i < s->ahead.count && !is_now(s, s->ahead.point[i].word)) i++;
  return i;
}

/* The point may be tried before long, unless it was.  `ahead` has room for it. */
static void note_point(search *s) {
  struct ahead *a = &s->ahead;
  if (is_seen(s, place_of(s))) return;
  for (uint32_t i = 0; i < s->axes; i++)
    a->block[i * BB_PRICE_MANY + a->count] = s->axis[i].choice[s->axis[i].at];
  a->point[a->count++] = s->now;
}

static void price_ahead(search *s) {
  bb_tilings tilings = {.count = s->ahead.count,
                        .stride = BB_PRICE_MANY,
                        .block = s->ahead.block,
                        .fold = s->point.fold,
                        .split = s->point.split};
  bb_price_seconds(s->pricing, &tilings, s->force, s->ahead.seconds);
}

static double seconds_of(const search *s) {
  uint32_t at = s->seen ? find_ahead(s) : 0;
  if (at < s->ahead.count) return s->ahead.seconds[at];
  double seconds;
  bb_tilings one = {.count = 1,
                    .stride = 1,
                    .block = s->point.block,
                    .fold = s->point.fold,
                    .split = s->point.split};
  bb_price_seconds(s->pricing, &one, s->force, &seconds);
  return seconds;
}

static double try_point(search *s) {
  uint32_t place = s->seen ? place_of(s) : 0;
  if (s->seen && is_seen(s, place)) return s->found[place];
  for (uint32_t i = 0; i < s->axes; i++) s->point.block[i] = s->axis[i].choice[s->axis[i].at];
  double seconds = seconds_of(s);
  s->points++;
  bool same = memcmp(s->best->block, s->point.block, s->axes * sizeof(double)) == 0;
  if (seconds < s->seconds) {
    if (!same) s->second = s->seconds;
    s->seconds = seconds;
    memcpy(s->best->block, s->point.block, s->axes * sizeof(double));
  } else if (!same && seconds < s->second) {
    s->second = seconds;
  }
  if (!s->seen) return seconds;
  memcpy(&s->seen[(size_t)place * s->words], s->now.word, s->words * sizeof *s->seen);
  s->found[place] = seconds;
  return seconds;
}

/* Choices of a size in reach: from *first up to the result. */
static uint32_t in_reach(const search *s, uint32_t i, uint32_t *first) {
  const axis *a = &s->axis[i];
  *first = a->at > s->reach ? a->at - s->reach : 0;
  return a->choices < a->at + s->reach + 1 ? a->choices : a->at + s->reach + 1;
}

/* The choices of one size, and of those behind it that there is room for; gives the size up to which they are ahead. */
static uint32_t look_along(search *s, uint32_t i) {
  uint32_t first, last;
  s->ahead.count = 0;
  for (uint32_t from = i; s->seen && i < s->axes; i++) {
    axis *a = &s->axis[i];
    uint32_t old = a->at;
    last = in_reach(s, i, &first);
    if (i > from && s->ahead.count + (last - first) > BB_PRICE_MANY + 1) break;
    for (uint32_t c = first; c < last && s->ahead.count < BB_PRICE_MANY; c++) {
      if (c == old) continue;
      move(s, a, c);
      note_point(s);
    }
    move(s, a, old);
  }
  price_ahead(s);
  return i;
}

/* The best choice of one size in reach, others as they are. */
static bool improve_one(search *s, uint32_t i, double *seconds) {
  axis *a = &s->axis[i];
  uint32_t old = a->at, best = old, first, last = in_reach(s, i, &first);
  for (uint32_t c = first; c < last; c++) {
    if (c == old) continue;
    move(s, a, c);
    double price = try_point(s);
    if (price < *seconds * (1 - 1e-9)) *seconds = price, best = c;
  }
  move(s, a, best);
  return best != old;
}

static bool improve_each(search *s, double *seconds) {
  bool moved = false;
  uint32_t ahead = 0;
  for (uint32_t i = 0; i < s->axes; i++) {
    if (s->axis[i].choices < 2) continue;
    if (i >= ahead) ahead = look_along(s, i);
    if (!improve_one(s, i, seconds)) continue;
    moved = true;
    ahead = 0;
  }
  return moved;
}

enum { DOWN = 2 };

/* A step up, and the other so many down; or, of a negative number, back. */
static void move_pair(search *s, axis *a, axis *b, int down) {
  move(s, a, down < 0 ? a->at - 1 : a->at + 1);
  move(s, b, (uint32_t)((int)b->at - down));
}

/* The pairs from one on, each the number of the size that grows times all, and that of the other; gives the pair up to which
 * they are ahead. */
static uint32_t look_at_pairs(search *s, uint32_t pair) {
  s->ahead.count = 0;
  for (; s->seen && pair < s->axes * s->axes && s->ahead.count + DOWN <= BB_PRICE_MANY; pair++) {
    axis *a = &s->axis[pair / s->axes], *b = &s->axis[pair % s->axes];
    if (a == b || a->at + 1 >= a->choices) continue;
    for (uint32_t down = 1; down <= DOWN && b->at >= down; down++) {
      move_pair(s, a, b, (int)down);
      note_point(s);
      move_pair(s, a, b, -(int)down);
    }
  }
  price_ahead(s);
  return pair;
}

/* Is it cheaper with one size so many steps up and another so many down? */
static bool improves(search *s, axis *a, uint32_t up, axis *b, uint32_t down, double *seconds) {
  move(s, a, a->at + up);
  move(s, b, b->at - down);
  double price = try_point(s);
  if (price < *seconds * (1 - 1e-9)) {
    *seconds = price;
    return true;
  }
  move(s, a, a->at - up);
  move(s, b, b->at + down);
  return false;
}

/* One size a step up, another a step or two down.  Or, of a processor's work but products, the one many steps up and the other as many
 * down: lines that end with an array, or a page, may be worth what no longer part of them is. */
static bool improve_pair(search *s, uint32_t i, uint32_t j, double *seconds) {
  axis *a = &s->axis[i], *b = &s->axis[j];
  for (uint32_t down = 1; down <= DOWN; down++) {
    if (a->at + 1 >= a->choices || b->at < down) return false;
    if (improves(s, a, 1, b, down, seconds)) return true;
  }
  if (!s->pricing->stops || !s->pricing->stays) return false;
  for (uint32_t up = a->choices - 1 - a->at; up > 1; up--)
    if (improves(s, a, up, b, up < b->at ? up : b->at, seconds)) return true;
  return false;
}

/* The largest block is halved; false: each is as small as it can be. */
static bool halve(search *s) {
  axis *largest = NULL;
  for (uint32_t i = 0; i < s->axes; i++) {
    axis *a = &s->axis[i];
    if (a->at && (!largest || a->choice[a->at] > largest->choice[largest->at])) largest = a;
  }
  if (largest) move(s, largest, largest->at - 1);
  return largest != NULL;
}

/* The point, and where halving goes from there. */
static void look_down(search *s) {
  uint32_t at[BB_NEST_SIZES];
  s->ahead.count = 0;
  if (!s->seen) return;
  for (uint32_t i = 0; i < s->axes; i++) at[i] = s->axis[i].at;
  for (bool more = true; more && s->ahead.count < BB_PRICE_MANY; more = halve(s)) note_point(s);
  for (uint32_t i = 0; i < s->axes; i++) move(s, &s->axis[i], at[i]);
  price_ahead(s);
}

/* Starts where the tiles fit: the largest block is halved as long as they do not. */
static double fit(search *s) {
  double seconds = INFINITY;
  for (uint32_t turn = 0;; turn++) {
    if (turn % BB_PRICE_MANY == 0) look_down(s);
    seconds = try_point(s);
    if (seconds < INFINITY || !halve(s)) return seconds;
  }
}

static bool improve_pairs(search *s, double *seconds) {
  bool moved = false;
  uint32_t ahead = 0;
  for (uint32_t i = 0; !moved && i < s->axes; i++)
    for (uint32_t j = 0; j < s->axes; j++) {
      if (i * s->axes + j >= ahead) ahead = look_at_pairs(s, i * s->axes + j);
      if (i == j || !improve_pair(s, i, j, seconds)) continue;
      moved = true;
      ahead = 0;
    }
  return moved;
}

static void descend(search *s) {
  double seconds = fit(s);
  bool moved = true;
  for (uint32_t round = 0; moved && round < ROUNDS; round++) {
    moved = improve_each(s, &seconds);
    if (!moved && seconds < INFINITY) moved = improve_pairs(s, &seconds);
  }
}

/* The first choice of each size that is not below `block`, else the last. */
static void start_at(search *s, const double *block, double all) {
  for (uint32_t i = 0; i < s->axes; i++) {
    axis *a = &s->axis[i];
    uint32_t at = 0;
    while (at + 1 < a->choices && a->choice[at] < (block ? block[i] : all)) at++;
    move(s, a, at);
  }
  descend(s);
}

/* Whole blocks of what loops within the grid's run over, as few side by side as may be: what is loaded stays at hand only where each
 * of the loops that read it runs once, and no step leads there that is better by itself. */
static void start_whole(search *s) {
  const bb_nest *nest = s->pricing->nest;
  for (uint32_t i = 0; i < s->axes; i++) move(s, &s->axis[i], s->axis[i].choices - 1);
  for (uint32_t i = 0; i < nest->loops; i++)
    if (nest->loop[i].grid && nest->loop[i].size != BB_NONE)
      move(s, &s->axis[nest->loop[i].size], 0);
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
    for (; i < s.axes && s.axis[i].at + 1 == s.axis[i].choices; i++) move(&s, &s.axis[i], 0);
    if (i < s.axes) move(&s, &s.axis[i], s.axis[i].at + 1);
    if (i == s.axes) return price_of_best(&s);
  }
}
