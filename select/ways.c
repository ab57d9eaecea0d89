/* ways.c - the search for the cheapest ways to run a nest, and what earlier ones found.
 *
 * A nest is told by two hashes of all that its price depends on.  They are trusted: a collision would be a wrong
 * price, which decides nothing but what is fast, and the tables themselves are long.
 */
#include "ways.h"
#include "../graph/intern.h"

#include <math.h>
#include <string.h>

enum { MOST_PARTS = 256, DOUBLINGS = 8, PATIENCE = 2, BUSY = 4 };

typedef struct known {
  uint64_t hash[2];
  bb_found_ways found;
} known;

struct bb_ways {
  const bb_machine *machine;
  bb_arena *arena;
  bb_intern *known;
  uint32_t searches;
};

static uint64_t known_hash(const void *object) {
  return ((const known *)object)->hash[0];
}

static bool known_equal(const void *left, const void *right) {
  const known *a = left, *b = right;
  return a->hash[0] == b->hash[0] && a->hash[1] == b->hash[1];
}

bb_ways *bb_ways_create(const bb_machine *machine, bb_arena *arena) {
  bb_ways *ways = BB_NEW(arena, bb_ways, 1);
  *ways = (bb_ways){.machine = machine, .arena = arena};
  ways->known = bb_intern_create(arena, known_hash, known_equal);
  return ways;
}

uint32_t bb_ways_searches(const bb_ways *ways) {
  return ways->searches;
}

/* --- the search --- */

typedef struct search {
  bb_ways *ways;
  const bb_ways_asked *asked;
  uint32_t point;
  bb_arena *scratch;
  bb_found_ways *found;
  /* What was best at the point before: by loop, the one after the last being none, and by doublings of its parts.  Without a
   * block: nothing yet. */
  bb_search_hint (*hint)[DOUBLINGS + 1];
} search;

static bb_search_hint *hint_of(const search *s, const bb_nest *nest, uint32_t fold,
                               uint32_t parts) {
  return &s->hint[fold == BB_NONE ? nest->loops : fold][__builtin_ctz(parts)];
}

/* Turns of the fold that is in parts. */
static double turns_of(const bb_pricing *pricing, const bb_tiling *tiling) {
  uint32_t size = pricing->nest->loop[tiling->fold].size;
  double turns = pricing->loop_extent[tiling->fold];
  return size == BB_NONE ? turns : ceil(turns / tiling->block[size]);
}

static void keep(const search *s, const bb_nest *nest, const bb_tiling *tiling,
                 const bb_price *price) {
  bb_found_ways *found = s->found;
  bb_arena *arena = s->ways->arena;
  bb_tiling kept = *tiling;
  kept.block = BB_NEW(arena, double, nest->sizes);
  if (nest->sizes) memcpy(kept.block, tiling->block, nest->sizes * sizeof *kept.block);
  BB_GROW(arena, found->way, found->capacity, (size_t)found->count + 1);
  found->way[found->count++] = (struct bb_found_way){s->point, kept, *price};
}

/* *like: block sizes of what is alike, or NULL; then those found. */
static bb_price search_one(search *s, const bb_pricing *pricing, uint32_t fold, uint32_t parts,
                           const double **like) {
  bb_search_hint *before = hint_of(s, pricing->nest, fold, parts), alike = {.block = *like};
  const bb_search_hint *hint = before->block ? before : *like ? &alike : NULL;
  bb_tiling tiling;
  double second;
  bb_price price =
      bb_price_search(pricing, fold, parts, hint, s->asked->force, s->scratch, &tiling, &second);
  s->ways->searches++;
  if (price.seconds == INFINITY) return price;
  *before = (bb_search_hint){.block = *like = tiling.block, .close = true};
  /* half as many parts do the same, and were tried */
  if (parts > 1 && 2 * turns_of(pricing, &tiling) <= parts) return price;
  keep(s, pricing->nest, &tiling, &price);
  return price;
}

/* Twice as many parts as long as that may help: units that would idle, and turns to share.  Units with so many turns are busy: parts are
 * searched for what is told of a kernel alone. */
static void search_splits(search *s, const bb_pricing *pricing, uint32_t fold, double least,
                          const double *like) {
  double turns = pricing->loop_extent[fold];
  uint32_t worse = 0;
  if (pricing->nest->loop[fold].size != BB_NONE) turns = ceil(turns / 16);
  for (uint32_t parts = 2; parts <= MOST_PARTS && parts <= turns && worse < PATIENCE; parts *= 2) {
    double seconds = search_one(s, pricing, fold, parts, &like).seconds;
    worse = seconds < least ? 0 : worse + 1;
    least = fmin(least, seconds);
  }
}

static void search_point(search *s, const bb_nest *nest) {
  const double *like = NULL;
  bb_pricing pricing =
      bb_pricing_bind(nest, s->ways->machine, s->asked->extent[s->point], s->scratch);
  pricing.plain |= s->asked->threads;
  bb_price rolling = search_one(s, &pricing, BB_NONE, 1, &like);
  if (s->asked->rolling || (s->asked->brief && rolling.waves >= BUSY)) return;
  for (uint32_t i = 0; i < nest->loops; i++)
    if (nest->loop[i].splits) search_splits(s, &pricing, i, rolling.seconds, like);
}

static void search_all(bb_ways *ways, const bb_nest *nest, const bb_ways_asked *asked,
                       bb_found_ways *found) {
  search s = {.ways = ways, .asked = asked, .found = found};
  s.scratch = bb_scratch(bb_arena_context(ways->arena));
  s.hint = bb_arena_alloc(s.scratch, (nest->loops + 1) * sizeof *s.hint);
  for (; s.point < asked->points; s.point++) search_point(&s, nest);
  bb_scratch_end(s.scratch);
}

/* --- what a price depends on --- */

typedef struct words {
  bb_arena *arena;
  uint64_t *word;
  uint32_t count, capacity;
} words;

static void put(words *w, uint64_t word) {
  BB_GROW(w->arena, w->word, w->capacity, (size_t)w->count + 1);
  w->word[w->count++] = word;
}

static void put_pair(words *w, uint32_t high, uint32_t low) {
  put(w, (uint64_t)high << 32 | low);
}

static void put_term(words *w, const bb_nest_term *t) {
  uint32_t flags = (uint32_t)(t->follows | t->kept << 1 | t->made << 2 | t->shared << 3 |
                              t->waits << 4 | t->adds << 5);
  put(w, (uint64_t)t->kind << 48 | (uint64_t)t->dtype << 40 | (uint64_t)t->run << 32 | flags);
  put_pair(w, t->loop, t->before);
  put_pair(w, t->axis[0], t->axis[1]);
  put(w, t->axis[2]);
  put(w, bb_bits_of(t->amount));
  put(w, t->apart);
}

static void put_room(words *w, const bb_nest *nest) {
  for (uint32_t i = 0; i < nest->classes; i++) {
    const bb_nest_class *c = &nest->class[i];
    put_pair(w, c->axis[0], c->axis[1]);
    put(w, c->room);
    put(w, bb_bits_of(c->bytes));
    put(w, c->times);
  }
  for (uint32_t i = 0; i < nest->moments; i++) {
    const bb_nest_moment *m = &nest->moment[i];
    for (uint32_t room = 0; room < BB_NEST_ROOMS; room++) put(w, m->until[room]);
    for (uint32_t k = 0; k < m->until[BB_NEST_ROOMS - 1]; k++) {
      put(w, m->alive[k].class);
      put(w, bb_bits_of(m->alive[k].count));
    }
  }
}

static void put_nest(words *w, const bb_nest *nest) {
  put_pair(w, nest->sizes, nest->loops);
  put_pair(w, nest->terms, nest->classes);
  put_pair(w, nest->phases, nest->moments);
  put(w, nest->folds);
  put_pair(w, nest->joined, nest->rows);
  for (uint32_t i = 0; i < nest->sizes; i++) put(w, nest->size[i].whole);
  for (uint32_t i = 0; i < nest->loops; i++) {
    const bb_nest_loop *l = &nest->loop[i];
    put_pair(w, l->parent, l->phase);
    put_pair(w, l->size, (uint32_t)l->part << 2 | (uint32_t)(l->grid << 1 | l->splits));
    put(w, bb_bits_of(l->fold_cost));
  }
  for (uint32_t i = 0; i < nest->terms; i++) put_term(w, &nest->term[i]);
  put_room(w, nest);
  for (uint32_t i = 0; i < nest->folds; i++) {
    put(w, nest->fold[i].loop);
    put_pair(w, nest->fold[i].axis[0], nest->fold[i].axis[1]);
    put(w, bb_bits_of(nest->fold[i].bytes));
  }
}

static void put_asked(words *w, const bb_nest *nest, const bb_ways_asked *asked) {
  put_pair(
      w, asked->points,
      (uint32_t)(asked->force | asked->threads << 1 | asked->rolling << 2 | asked->brief << 3));
  for (uint32_t p = 0; p < asked->points; p++) {
    const double *extent = asked->extent[p];
    for (uint32_t i = 0; i < nest->sizes; i++) put(w, bb_bits_of(extent[nest->size[i].dim]));
    for (uint32_t i = 0; i < nest->loops; i++) put(w, bb_bits_of(extent[nest->loop[i].dim]));
  }
}

static known *key_of(bb_ways *ways, const bb_nest *nest, const bb_ways_asked *asked, known *key) {
  words w = {.arena = bb_scratch(bb_arena_context(ways->arena))};
  put_nest(&w, nest);
  put_asked(&w, nest, asked);
  *key = (known){0};
  for (uint64_t i = 0; i < 2; i++)
    key->hash[i] = bb_hash_bytes(w.word, w.count * sizeof *w.word, i);
  bb_scratch_end(w.arena);
  return key;
}

const bb_found_ways *bb_ways_find(bb_ways *ways, const bb_nest *nest, const bb_ways_asked *asked) {
  known key;
  const known *found = bb_intern_find(ways->known, key_of(ways, nest, asked, &key));
  if (found) return &found->found;
  known *made = BB_NEW(ways->arena, known, 1);
  *made = key;
  search_all(ways, nest, asked, &made->found);
  bb_intern_add(ways->known, made);
  return &made->found;
}
