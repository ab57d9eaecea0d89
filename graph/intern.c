/* intern.c - hash-consing sets. */
#include "intern.h"

#include <xxhash.h>

bb_intern *bb_intern_create(bb_arena *arena, uint64_t (*hash)(const void *),
                            bool (*equal)(const void *, const void *)) {
  bb_intern *set = BB_NEW(arena, bb_intern, 1);
  *set = (bb_intern){.arena = arena, .hash = hash, .equal = equal};
  return set;
}

/* The slot that holds an equal object, or the empty one where it belongs. */
static uint32_t probe(const bb_intern *set, const void *object) {
  uint32_t mask = set->capacity - 1;
  uint32_t at = (uint32_t)set->hash(object) & mask;
  while (set->slot[at] && !set->equal(set->slot[at], object)) at = (at + 1) & mask;
  return at;
}

const void *bb_intern_find(const bb_intern *set, const void *object) {
  return set->capacity ? set->slot[probe(set, object)] : NULL;
}

static void grow(bb_intern *set) {
  bb_intern larger = *set;
  larger.capacity = set->capacity ? set->capacity * 2 : 8;
  larger.slot = BB_NEW(set->arena, const void *, larger.capacity);
  for (uint32_t i = 0; i < set->capacity; i++)
    if (set->slot[i]) larger.slot[probe(&larger, set->slot[i])] = set->slot[i];
  *set = larger;
}

void bb_intern_add(bb_intern *set, const void *object) {
  if ((set->count + 1) * 2 > set->capacity) grow(set);
  set->slot[probe(set, object)] = object;
  set->count++;
}

uint64_t bb_hash_bytes(const void *bytes, size_t length, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes, length, seed);
}
