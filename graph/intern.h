/* intern.h - hash-consing: one object for each distinct value, in a program's arena. */
#ifndef BB_GRAPH_INTERN_H
#define BB_GRAPH_INTERN_H

#include "context.h"

#include <string.h>

/* The hash stands beside the pointer: growing a set, and passing by an object that is another, do
 * not touch objects, which lie all over memory. */
typedef struct bb_intern_slot {
  uint64_t hash;
  const void *object; /* NULL: empty */
} bb_intern_slot;

/* An open-addressed set of pointers to objects of one kind. */
typedef struct bb_intern {
  bb_arena *arena;
  uint64_t (*hash)(const void *object);
  bool (*equal)(const void *a, const void *b);
  uint32_t count, capacity; /* capacity is 0 or a power of two */
  bb_intern_slot *slot;
} bb_intern;

bb_intern *bb_intern_create(bb_arena *arena, uint64_t (*hash)(const void *),
                            bool (*equal)(const void *, const void *));
/* The object equal to `object`, or NULL. */
const void *bb_intern_find(const bb_intern *set, const void *object);
/* Adds an object that is not in the set yet; it must live as long as the set. */
void bb_intern_add(bb_intern *set, const void *object);

/* A double as it is in memory: other than by ==, a NaN equals itself and 0 is not -0. */
static inline uint64_t bb_bits_of(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

/* A number whose bits depend on all of x's (splitmix64). */
static inline uint64_t bb_hash_number(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
  x = (x ^ x >> 27) * 0x94D049BB133111EBu;
  return x ^ x >> 31;
}

/* A 64-bit mix of plain bytes (XXH3); objects with padding hash their fields one by one. */
uint64_t bb_hash_bytes(const void *bytes, size_t length, uint64_t seed);

#endif
