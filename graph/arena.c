/* arena.c - memory that is freed all at once, and text built in it.
 *
 * An arena is a list of chunks; the first holds the arena itself.  Chunks of the usual sizes (powers
 * of two) go back to the context, up to a bound, since most arenas are small and short-lived: the
 * next one finds its memory in the cache.  So memory is zeroed when it is handed out.
 */
#include "context.h"

#include <stdio.h>
#include <string.h>

/* The address sanitizer finds readers of memory that waits for the next arena. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BB_ADDRESS_SANITIZER
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define BB_ADDRESS_SANITIZER
#endif
#ifdef BB_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size) ((void)0)
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)0)
#endif

enum { ALIGN = 16, FIRST_CHUNK = 1 << 12, LARGEST_CHUNK = FIRST_CHUNK << (BB_CHUNK_SIZES - 1) };

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

_Static_assert(sizeof(bb_chunk) % ALIGN == 0 && sizeof(bb_arena) % ALIGN == 0,
               "what stands at the head of a chunk keeps the alignment");

static size_t aligned(size_t size) {
  return (size + ALIGN - 1) & ~(size_t)(ALIGN - 1);
}

/* --- chunks --- */

/* Which list of spare chunks has this size; BB_CHUNK_SIZES: none. */
static uint32_t size_class(size_t size) {
  uint32_t class = 0;
  while (class < BB_CHUNK_SIZES && (size_t)FIRST_CHUNK << class != size) class ++;
  return class;
}

static bb_chunk *take_chunk(bb_context *ctx, size_t size) {
  uint32_t class = size_class(size);
  bb_chunk *chunk = class < BB_CHUNK_SIZES ? ctx->spare[class] : NULL;
  if (chunk) {
    ASAN_UNPOISON_MEMORY_REGION(chunk, size);
    ctx->spare[class] = chunk->next;
    ctx->spare_bytes -= size;
  } else {
    chunk = bb_allocate(ctx, size);
  }
  chunk->size = size;
  return chunk;
}

static void give_chunk(bb_context *ctx, bb_chunk *chunk) {
  uint32_t class = size_class(chunk->size);
  if (class == BB_CHUNK_SIZES || ctx->spare_bytes + chunk->size > ctx->spare_most) {
    bb_resize(ctx, chunk, chunk->size, 0);
    return;
  }
  chunk->next = ctx->spare[class];
  ctx->spare[class] = chunk;
  ctx->spare_bytes += chunk->size;
  ASAN_POISON_MEMORY_REGION(chunk + 1, chunk->size - sizeof *chunk);
}

void bb_free_spare_chunks(bb_context *ctx) {
  for (uint32_t class = 0; class < BB_CHUNK_SIZES; class ++)
    for (bb_chunk *chunk; (chunk = ctx->spare[class]) != NULL;) {
      ctx->spare[class] = chunk->next;
      ASAN_UNPOISON_MEMORY_REGION(chunk, chunk->size);
      bb_resize(ctx, chunk, chunk->size, 0);
    }
  ctx->spare_bytes = 0;
}

/* --- arenas --- */

bb_arena *bb_arena_create(bb_context *ctx) {
  bb_chunk *chunk = take_chunk(ctx, FIRST_CHUNK);
  chunk->next = NULL;
  bb_arena *arena = (bb_arena *)(chunk + 1);
  *arena = (bb_arena){.ctx = ctx,
                      .chunks = chunk,
                      .at = (char *)(arena + 1),
                      .end = (char *)chunk + chunk->size,
                      .next_chunk = 2 * FIRST_CHUNK,
                      .bytes = chunk->size};
  return arena;
}

void bb_arena_destroy(bb_arena *arena) {
  if (!arena) return;
  bb_context *ctx = arena->ctx; /* the arena goes with its first chunk */
  for (bb_chunk *chunk = arena->chunks, *next; chunk; chunk = next) {
    next = chunk->next;
    give_chunk(ctx, chunk);
  }
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

/* Memory that is not zeroed; `size` is aligned. */
static void *take(bb_arena *arena, size_t size) {
  if (size <= (size_t)(arena->end - arena->at)) {
    void *memory = arena->at;
    arena->at += size;
    return memory;
  }
  bool large = size > LARGEST_CHUNK / 4; /* gets a chunk of its own, behind the one being filled */
  size_t chunk_size = arena->next_chunk;
  while (!large && chunk_size < sizeof(bb_chunk) + size) chunk_size *= 2;
  if (large) chunk_size = sizeof(bb_chunk) + size;
  bb_chunk *chunk = take_chunk(arena->ctx, chunk_size);
  arena->bytes += chunk_size;
  if (large) {
    chunk->next = arena->chunks->next;
    arena->chunks->next = chunk;
    return chunk + 1;
  }
  chunk->next = arena->chunks;
  arena->chunks = chunk;
  arena->at = (char *)(chunk + 1) + size;
  arena->end = (char *)chunk + chunk_size;
  if (arena->next_chunk < LARGEST_CHUNK) arena->next_chunk *= 2;
  return chunk + 1;
}

static size_t checked_size(const bb_arena *arena, size_t size) {
  if (size > SIZE_MAX / 2) bb_fail(arena->ctx, BB_ERROR_MEMORY, "out of memory: %zu bytes", size);
  return aligned(size ? size : 1);
}

static size_t product(const bb_arena *arena, size_t count, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes))
    bb_fail(arena->ctx, BB_ERROR_MEMORY, "out of memory: %zu objects of %zu bytes", count, size);
  return bytes;
}

void *bb_arena_alloc(bb_arena *arena, size_t size) {
  size = checked_size(arena, size);
  return memset(take(arena, size), 0, size);
}

void *bb_arena_array(bb_arena *arena, size_t count, size_t size) {
  return bb_arena_alloc(arena, product(arena, count, size));
}

/* Makes `old` bytes at `memory` into `new` ones, not zeroed: in place where they are the last that
 * the arena gave, else elsewhere. */
static void *extend(bb_arena *arena, void *memory, size_t old, size_t new) {
  old = old ? checked_size(arena, old) : 0;
  new = checked_size(arena, new);
  if (old && (char *)memory + old == arena->at && new - old <= (size_t)(arena->end - arena->at)) {
    arena->at += new - old;
    return memory;
  }
  void *grown = take(arena, new);
  if (old) memcpy(grown, memory, old);
  return grown;
}

void *bb_arena_grow(bb_arena *arena, void *array, uint32_t *capacity, size_t need, size_t size) {
  if (need <= *capacity) return array;
  if (need > UINT32_MAX / 2)
    bb_fail(arena->ctx, BB_ERROR_MEMORY, "out of memory: %zu objects", need);
  size_t grown = *capacity ? (size_t)*capacity * 2 : 4;
  if (grown < need) grown = need;
  size_t old = array ? *capacity * size : 0, new = product(arena, grown, size);
  char *memory = extend(arena, array, old, new);
  memset(memory + old, 0, new - old);
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
  buffer->data = extend(buffer->arena, buffer->data, buffer->capacity, capacity);
  buffer->capacity = capacity;
}

void bb_put_bytes(bb_buffer *buffer, const char *bytes, size_t length) {
  reserve(buffer, length);
  if (length) memcpy(buffer->data + buffer->length, bytes, length);
  buffer->length += length;
  buffer->data[buffer->length] = '\0';
}

/* Most texts fit where there is room already: they are formatted once. */
void bb_put_vprintf(bb_buffer *buffer, const char *format, va_list arguments) {
  va_list again;
  va_copy(again, arguments);
  reserve(buffer, 32);
  size_t room = buffer->capacity - buffer->length;
  int length = vsnprintf(buffer->data + buffer->length, room, format, arguments);
  if (length > 0 && (size_t)length >= room) {
    reserve(buffer, (size_t)length);
    vsnprintf(buffer->data + buffer->length, (size_t)length + 1, format, again);
  }
  va_end(again);
  if (length > 0) buffer->length += (size_t)length;
}

static void put_unsigned(bb_buffer *buffer, uint64_t value) {
  char digits[20], *first = digits + sizeof digits;
  do *--first = (char)('0' + value % 10);
  while (value /= 10);
  bb_put_bytes(buffer, first, (size_t)(digits + sizeof digits - first));
}

void bb_put_integer(bb_buffer *buffer, int64_t value) {
  if (value < 0) bb_put_bytes(buffer, "-", 1);
  put_unsigned(buffer, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

/* Nearly all that is printed is texts and whole numbers, which need no vsnprintf(); from the first
 * other conversion on it does the rest. */
void bb_put(bb_buffer *buffer, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  for (bool simple = true; simple;) {
    const char *percent = strchr(format, '%');
    size_t plain = percent ? (size_t)(percent - format) : strlen(format);
    bb_put_bytes(buffer, format, plain);
    format += plain;
    if (!percent) break;
    const char *text = format[1] == 's' ? va_arg(arguments, const char *) : NULL;
    switch (format[1]) {
    case 's': bb_put_bytes(buffer, text, strlen(text)); break;
    case 'u': put_unsigned(buffer, va_arg(arguments, unsigned)); break;
    case 'd': bb_put_integer(buffer, va_arg(arguments, int)); break;
    default: simple = false; continue;
    }
    format += 2;
  }
  if (*format) bb_put_vprintf(buffer, format, arguments);
  va_end(arguments);
}
