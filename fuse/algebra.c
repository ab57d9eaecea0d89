/* algebra.c - derivations remembered: equal folds, terms and facts are derived once. */
#include "algebra.h"

#include "../graph/intern.h"

#include <string.h>

/* What a derivation depends on, as bytes: fold kinds, terms (hash-consed: ids), ranges, length. */
typedef struct entry {
  uint64_t hash;
  size_t length;
  const unsigned char *key;
  const bb_product *product;
} entry;

static void put(bb_buffer *key, const void *bytes, size_t length) {
  bb_put_bytes(key, bytes, length);
}

static void put_expr(bb_buffer *key, const bb_expr *expr) {
  uint32_t id = expr ? expr->id + 1 : 0;
  put(key, &id, sizeof id);
}

static void put_range(bb_buffer *key, bb_range r) {
  put(key, &r.lo, sizeof r.lo);
  put(key, &r.hi, sizeof r.hi);
  unsigned char flags = (unsigned char)(r.nonzero | r.nan << 1 | r.infinite << 2);
  put(key, &flags, 1);
}

/* Names enter too: they are in the explanation. */
static void put_name(bb_buffer *key, const char *name) {
  put(key, name ? name : "", name ? strlen(name) + 1 : 1);
}

static entry key_of(bb_arena *arena, const bb_chain *chain) {
  bb_buffer key = {.arena = arena};
  uint32_t head[4] = {chain->elements, chain->fixed, chain->folds, chain->strict};
  put(&key, head, sizeof head);
  put_expr(&key, chain->length);
  for (uint32_t i = 0; i < chain->elements + chain->fixed; i++) {
    put_range(&key, chain->range ? chain->range[i] : BB_RANGE_ANY);
    put_name(&key, chain->name ? chain->name[i] : NULL);
  }
  for (uint32_t i = 0; i < chain->folds; i++) {
    uint32_t fold = chain->fold[i].fold;
    put(&key, &fold, sizeof fold);
    put_expr(&key, chain->fold[i].term);
    put_expr(&key, chain->fold[i].payload);
    put_name(&key, chain->fold[i].name);
  }
  return (entry){.hash = bb_hash_bytes(key.data, key.length, 0),
                 .length = key.length,
                 .key = (const unsigned char *)key.data};
}

static uint64_t entry_hash(const void *object) {
  return ((const entry *)object)->hash;
}
static bool entry_equal(const void *a, const void *b) {
  const entry *x = a, *y = b;
  return x->length == y->length && !memcmp(x->key, y->key, x->length);
}

const bb_product *bb_product_derive(bb_program *program, const bb_chain *chain) {
  if (!program->products)
    program->products = bb_intern_create(program->arena, entry_hash, entry_equal);
  entry *made = BB_NEW(program->arena, entry, 1);
  *made = key_of(program->arena, chain);
  const entry *found = bb_intern_find(program->products, made);
  if (found) return found->product;
  made->product = bb_product_derive_anew(program, chain);
  bb_intern_add(program->products, made);
  return made->product;
}

uint32_t bb_product_slots(const bb_program *program) {
  return program->products ? program->products->capacity : 0;
}

const bb_product *bb_product_at(const bb_program *program, uint32_t slot) {
  const entry *found = program->products->slot[slot].object;
  return found ? found->product : NULL;
}
