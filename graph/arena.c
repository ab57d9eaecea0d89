/* arena.c - memory that is freed all at once, and text built in it. */
#include "context.h"

#include <stdio.h>
#include <string.h>

enum { ALIGN = 16, FIRST_CHUNK = 1 << 12, LARGEST_CHUNK = 1 << 20 };

typedef struct bb_chunk {
  struct bb_chunk *next;
  size_t size; /* of the whole chunk, header included */
} bb_chunk;

struct bb_arena {
  bb_context *ctx;
  bb_chunk *chunks; /* the one being filled first */
  char *at, *end;
  size_t next_chunk, bytes;
};

static size_t aligned(size_t size) {
  return (size + ALIGN - 1) & ~(size_t)(ALIGN - 1);
}

bb_arena *bb_arena_create(bb_context *ctx) {
  bb_arena *arena = bb_resize(ctx, NULL, 0, sizeof *arena);
  *arena = (bb_arena){.ctx = ctx, .next_chunk = FIRST_CHUNK, .bytes = sizeof *arena};
  return arena;
}

void bb_arena_destroy(bb_arena *arena) {
  if (!arena) return;
  bb_context *ctx = arena->ctx;
  for (bb_chunk *chunk = arena->chunks; chunk;) {
    bb_chunk *next = chunk->next;
    bb_resize(ctx, chunk, chunk->size, 0);
    chunk = next;
  }
  bb_resize(ctx, arena, sizeof *arena, 0);
}

static void destroy_arena(void *arena) {
  bb_arena_destroy(arena);
}

bb_arena *bb_scratch(bb_context *ctx) {
  bb_arena *arena = bb_arena_create(ctx);
  bb_defer(ctx, destroy_arena, arena);
  return arena;
}

void bb_scratch_end(bb_arena *arena) {
  bb_undefer(arena->ctx, arena);
  bb_arena_destroy(arena);
}

bb_context *bb_arena_context(const bb_arena *arena) {
  return arena->ctx;
}
size_t bb_arena_bytes(const bb_arena *arena) {
  return arena->bytes;
}

static bb_chunk *add_chunk(bb_arena *arena, size_t size) {
  bb_chunk *chunk = bb_resize(arena->ctx, NULL, 0, size);
  chunk->size = size;
  arena->bytes += size;
  return chunk;
}

void *bb_arena_alloc(bb_arena *arena, size_t size) {
  const size_t header = aligned(sizeof(bb_chunk));
  if (size > SIZE_MAX / 2) bb_fail(arena->ctx, BB_ERROR_MEMORY, "out of memory: %zu bytes", size);
  size = aligned(size ? size : 1);
  if (size <= (size_t)(arena->end - arena->at)) {
    void *memory = arena->at;
    arena->at += size;
    return memory;
  }
  if (size > LARGEST_CHUNK / 4 && arena->chunks) {
    /* A large object gets a chunk of its own, behind the one being filled. */
    bb_chunk *chunk = add_chunk(arena, header + size);
    chunk->next = arena->chunks->next;
    arena->chunks->next = chunk;
    return (char *)chunk + header;
  }
  size_t chunk_size = arena->next_chunk;
  if (chunk_size < header + size) chunk_size = header + size;
  bb_chunk *chunk = add_chunk(arena, chunk_size);
  chunk->next = arena->chunks;
  arena->chunks = chunk;
  arena->at = (char *)chunk + header + size;
  arena->end = (char *)chunk + chunk_size;
  if (arena->next_chunk < LARGEST_CHUNK) arena->next_chunk *= 2;
  return (char *)chunk + header;
}

void *bb_arena_array(bb_arena *arena, size_t count, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes))
    bb_fail(arena->ctx, BB_ERROR_MEMORY, "out of memory: %zu objects of %zu bytes", count, size);
  return bb_arena_alloc(arena, bytes);
}

void *bb_arena_grow(bb_arena *arena, void *array, uint32_t *capacity, size_t need, size_t size) {
  if (need <= *capacity) return array;
  if (need > UINT32_MAX / 2)
    bb_fail(arena->ctx, BB_ERROR_MEMORY, "out of memory: %zu objects", need);
  size_t grown = *capacity ? (size_t)*capacity * 2 : 4;
  if (grown < need) grown = need;
  void *memory = bb_arena_array(arena, grown, size);
  if (array && *capacity) memcpy(memory, array, *capacity * size);
  *capacity = (uint32_t)grown;
  return memory;
}

char *bb_arena_text(bb_arena *arena, const char *text, size_t length) {
  char *copy = bb_arena_alloc(arena, length + 1);
  if (length) memcpy(copy, text, length);
  return copy;
}

char *bb_arena_printf(bb_arena *arena, const char *format, ...) {
  bb_buffer buffer = {.arena = arena};
  va_list arguments;
  va_start(arguments, format);
  bb_put_vprintf(&buffer, format, arguments);
  va_end(arguments);
  return buffer.data;
}

/* Makes room for `more` bytes and a NUL. */
static void reserve(bb_buffer *buffer, size_t more) {
  size_t need = buffer->length + more + 1;
  if (need <= buffer->capacity) return;
  size_t capacity = buffer->capacity ? buffer->capacity * 2 : 64;
  if (capacity < need) capacity = need;
  char *data = bb_arena_alloc(buffer->arena, capacity);
  if (buffer->length) memcpy(data, buffer->data, buffer->length);
  buffer->data = data;
  buffer->capacity = capacity;
}

void bb_put_bytes(bb_buffer *buffer, const char *bytes, size_t length) {
  reserve(buffer, length);
  if (length) memcpy(buffer->data + buffer->length, bytes, length);
  buffer->length += length;
  buffer->data[buffer->length] = '\0';
}

void bb_put_vprintf(bb_buffer *buffer, const char *format, va_list arguments) {
  va_list again;
  va_copy(again, arguments);
  int length = vsnprintf(NULL, 0, format, again);
  va_end(again);
  if (length < 0) return;
  reserve(buffer, (size_t)length);
  vsnprintf(buffer->data + buffer->length, (size_t)length + 1, format, arguments);
  buffer->length += (size_t)length;
}

void bb_put(bb_buffer *buffer, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  bb_put_vprintf(buffer, format, arguments);
  va_end(arguments);
}
