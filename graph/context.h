/* context.h - errors, memory and cleanup of one context; everything hangs from it.
 *
 * Library code does not return status codes.  It calls bb_fail(), which unwinds to the innermost
 * bb_protect() (as a protected call of Lua does), running the cleanups registered since in
 * reverse order.  Public entry points wrap their bodies in bb_protect().  So: memory comes from
 * an arena or is registered with bb_defer() *before* anything that can fail; a function never
 * holds an unregistered resource across a call that takes a bb_context or a bb_arena.
 */
#ifndef BB_GRAPH_CONTEXT_H
#define BB_GRAPH_CONTEXT_H

#include "blockbuster.h"
#include <stdarg.h>

typedef struct bb_arena bb_arena;

/* --- errors --- */

typedef void bb_body(bb_context *ctx, void *argument);

/* Runs body; returns BB_OK, or the status given to bb_fail() after all deferred cleanups of this
 * call have run.  Nests. */
bb_status bb_protect(bb_context *ctx, bb_body *body, void *argument);

/* Sets the context's message and unwinds.  Never returns. */
_Noreturn void bb_fail(bb_context *ctx, bb_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Fails where a call was given NULL for what it needs; `what` with its article. */
static inline void bb_require(bb_context *ctx, const void *given, const char *what) {
  if (!given) bb_fail(ctx, BB_ERROR_ARGUMENT, "%s is NULL", what);
}
/* Once more, with the message that is there: what failed under a bb_protect() of its own is its caller's failure, too. */
_Noreturn void bb_fail_again(bb_context *ctx, bb_status status);

/* A line for the caller's log function; nothing where there is none. */
void bb_log(bb_context *ctx, bb_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

typedef void bb_cleanup(void *object);

/* Registers cleanup(object) to run when the innermost bb_protect() ends, whether it fails or not.
 * If registering itself fails for lack of memory, cleanup(object) runs before unwinding. */
void bb_defer(bb_context *ctx, bb_cleanup *cleanup, void *object);

/* Withdraws the latest registration of object: its owner now is somebody else. */
void bb_undefer(bb_context *ctx, void *object);

/* --- memory --- */

/* Raw memory of the caller's allocator; zeroed; never NULL (unwinds instead).  Prefer arenas. */
void *bb_resize(bb_context *ctx, void *pointer, size_t old_size, size_t new_size);
void *bb_allocate(bb_context *ctx, size_t size); /* not zeroed */

/* An arena: memory that is freed all at once.  Not deferred: the caller owns it. */
bb_arena *bb_arena_create(bb_context *ctx);
void bb_arena_destroy(bb_arena *arena);

/* An arena that dies with the innermost bb_protect(), or earlier by bb_scratch_end(), unless
 * bb_undefer() gives it to somebody. */
bb_arena *bb_scratch(bb_context *ctx);
void bb_scratch_end(bb_arena *arena);

bb_context *bb_arena_context(const bb_arena *arena);
size_t bb_arena_bytes(const bb_arena *arena); /* what the arena holds, for statistics */
void bb_free_spare_chunks(bb_context *ctx);   /* what arenas that died left for the next ones */

/* Zeroed memory, aligned to 16 bytes. Never NULL. */
void *bb_arena_alloc(bb_arena *arena, size_t size);
char *bb_arena_text(bb_arena *arena, const char *text, size_t length); /* NUL-terminated copy */
char *bb_arena_printf(bb_arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* `count` zeroed objects of type T; fails cleanly when the size overflows. */
#define BB_NEW(arena, T, count) ((T *)bb_arena_array((arena), (count), sizeof(T)))
void *bb_arena_array(bb_arena *arena, size_t count, size_t size);

/* Makes room for at least `need` elements in a growing array that lives in an arena; returns the
 * array, perhaps moved (the old one stays readable but is stale), new elements zeroed. */
void *bb_arena_grow(bb_arena *arena, void *array, uint32_t *capacity, size_t need, size_t size);
static inline void *bb_arena_room(bb_arena *arena, void *array, uint32_t *capacity, size_t need,
                                  size_t size) {
  return need <= *capacity ? array : bb_arena_grow(arena, array, capacity, need, size);
}
#define BB_GROW(arena, array, capacity, need)                                                      \
  ((array) = bb_arena_room((arena), (array), &(capacity), (need), sizeof *(array)))

/* --- text being built --- */

typedef struct bb_buffer {
  bb_arena *arena;
  char *data; /* NUL-terminated once anything was put */
  size_t length, capacity;
} bb_buffer;

/* All append. */
void bb_put(bb_buffer *buffer, const char *format, ...) __attribute__((format(printf, 2, 3)));
void bb_put_integer(bb_buffer *buffer, int64_t value);
void bb_put_bytes(bb_buffer *buffer, const char *bytes, size_t length);
void bb_put_vprintf(bb_buffer *buffer, const char *format, va_list arguments);

enum { BB_CHUNK_SIZES = 9 }; /* of arenas: 4 KiB, 8 KiB, ... */

struct bb_context {
  bb_allocator allocator;
  bb_log_function *log;
  void *log_user;
  bool verify;
  bb_status status;
  char *message; /* of the caller's allocator; NULL: none, or no memory for one */
  size_t message_size;
  struct bb_frame *frame;       /* innermost bb_protect() */
  struct bb_deferred *deferred; /* a stack; frames remember their depth */
  size_t deferred_count, deferred_capacity;
  struct bb_chunk *spare[BB_CHUNK_SIZES]; /* of arenas that died, by size */
  /* tests set the bound to 0: every arena then asks the allocator */
  size_t spare_bytes, spare_most;
};

#endif
