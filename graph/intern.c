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
static bb_intern_slot *probe(const bb_intern *set, const void *object, uint64_t hash) {
  uint32_t mask = set->capacity - 1, at = (uint32_t)hash & mask;
  while (set->slot[at].object &&
         (set->slot[at].hash != hash || !set->equal(set->slot[at].object, object)))
    at = (at + 1) & mask;
  return &set->slot[at];
}

const void *bb_intern_find(const bb_intern *set, const void *object) {
  return set->capacity ? probe(set, object, set->hash(object))->object : NULL;
}

/* What moves to the larger table is all different. */
static void grow(bb_intern *set) {
  uint32_t capacity = set->capacity ? set->capacity * 2 : 8, mask = capacity - 1;
  bb_intern_slot *larger = BB_NEW(set->arena, bb_intern_slot, capacity);
  for (uint32_t i = 0; i < set->capacity; i++) {
    if (!set->slot[i].object) continue;
    uint32_t at = (uint32_t)set->slot[i].hash & mask;
    while (larger[at].object) at = (at + 1) & mask;
    larger[at] = set->slot[i];
  }
  set->capacity = capacity;
  set->slot = larger;
}

void bb_intern_add(bb_intern *set, const void *object) {
  if ((set->count + 1) * 2 > set->capacity) grow(set);
  uint64_t hash = set->hash(object);
  *probe(set, object, hash) = (bb_intern_slot){hash, object};
  set->count++;
}

uint64_t bb_hash_bytes(const void *bytes, size_t length, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes, length, seed);
}
