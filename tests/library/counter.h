/* counter.h - an allocator that counts its calls and the bytes that live, and fails one of the calls. */
#ifndef TESTS_LIBRARY_COUNTER_H
#define TESTS_LIBRARY_COUNTER_H

#include <stdatomic.h>
#include <stdlib.h>

typedef struct counter {
  atomic_size_t calls, live;
  size_t fail_at; /* 0: never */
} counter;

/* As bb_allocator wants it; user: a counter. */
static inline void *count_resize(void *user, void *pointer, size_t old_size, size_t new_size) {
  counter *c = user;
  size_t calls = atomic_fetch_add(&c->calls, 1) + 1;
  if (new_size == 0) {
    atomic_fetch_sub(&c->live, old_size);
    free(pointer);
    return NULL;
  }
  if (calls == c->fail_at) return NULL;
  void *memory = realloc(pointer, new_size);
  if (memory) atomic_fetch_add(&c->live, new_size - old_size);
  return memory;
}

#endif
