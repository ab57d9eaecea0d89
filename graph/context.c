/* context.c - protected calls, deferred cleanups, messages and raw memory of a context. */
#include "context.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct bb_frame {
  jmp_buf target;
  struct bb_frame *outer;
  size_t deferred; /* depth of the cleanup stack at entry */
} bb_frame;

typedef struct bb_deferred {
  bb_cleanup *cleanup;
  void *object;
} bb_deferred;

static const char *const status_text[] = {
    [BB_OK] = "ok",
    [BB_ERROR_MEMORY] = "out of memory",
    [BB_ERROR_ARGUMENT] = "wrong call",
    [BB_ERROR_INPUT] = "input refused",
    [BB_ERROR_UNSUPPORTED] = "unsupported operators",
    [BB_ERROR_IO] = "input or output failed",
    [BB_ERROR_MISMATCH] = "results differ",
    [BB_ERROR_INTERNAL] = "internal error",
    [BB_ERROR_STOPPED] = "stopped by an observer",
};

uint32_t bb_version(void) {
  return BB_VERSION;
}

const char *bb_status_text(bb_status status) {
  size_t count = sizeof status_text / sizeof *status_text;
  return (size_t)status < count ? status_text[status] : "unknown status";
}

static void *libc_resize(void *user, void *pointer, size_t old_size, size_t new_size) {
  (void)user;
  (void)old_size;
  if (new_size == 0) {
    free(pointer);
    return NULL;
  }
  return realloc(pointer, new_size);
}

bb_status bb_context_create(const bb_context_options *options, bb_context **context) {
  if (!context || (options && options->version != BB_VERSION)) return BB_ERROR_ARGUMENT;
  bb_allocator allocator = {libc_resize, NULL};
  if (options && options->allocator.resize) allocator = options->allocator;
  bb_context *ctx = allocator.resize(allocator.user, NULL, 0, sizeof *ctx);
  if (!ctx) return BB_ERROR_MEMORY;
  *ctx = (bb_context){.allocator = allocator, .spare_most = 4 << 20};
  if (options) {
    ctx->log = options->log;
    ctx->log_user = options->log_user;
    ctx->verify = options->verify;
  }
  *context = ctx;
  return BB_OK;
}

/* Frees without the checks of bb_resize(); for use while unwinding. */
static void release(bb_context *ctx, void *pointer, size_t size) {
  if (pointer) ctx->allocator.resize(ctx->allocator.user, pointer, size, 0);
}

void bb_context_destroy(bb_context *ctx) {
  if (!ctx) return;
  bb_free_spare_chunks(ctx);
  release(ctx, ctx->message, ctx->message_size);
  release(ctx, ctx->deferred, ctx->deferred_capacity * sizeof(bb_deferred));
  ctx->allocator.resize(ctx->allocator.user, ctx, sizeof *ctx, 0);
}

const char *bb_context_message(const bb_context *ctx) {
  if (ctx->status == BB_OK) return "";
  return ctx->message ? ctx->message : bb_status_text(ctx->status);
}

static void clear_message(bb_context *ctx) {
  release(ctx, ctx->message, ctx->message_size);
  ctx->message = NULL;
  ctx->message_size = 0;
}

/* Runs cleanups down to `depth`.  Each is popped first, so that a cleanup sees a sound stack. */
static void run_deferred(bb_context *ctx, size_t depth) {
  while (ctx->deferred_count > depth) {
    bb_deferred last = ctx->deferred[--ctx->deferred_count];
    last.cleanup(last.object);
  }
}

bb_status bb_protect(bb_context *ctx, bb_body *body, void *argument) {
  bb_frame frame = {.outer = ctx->frame, .deferred = ctx->deferred_count};
  if (!ctx->frame) clear_message(ctx);
  ctx->status = BB_OK;
  ctx->frame = &frame;
  if (setjmp(frame.target) == 0) {
    body(ctx, argument);
    ctx->status = BB_OK; /* whatever failed under a bb_protect() of its own */
  }
  /* Read through ctx: locals changed since setjmp are indeterminate after a jump. */
  bb_frame *self = ctx->frame;
  run_deferred(ctx, self->deferred);
  ctx->frame = self->outer;
  return ctx->status;
}

static _Noreturn void unwind(bb_context *ctx, bb_status status) {
  ctx->status = status;
  if (!ctx->frame) abort(); /* a defect: library code ran outside bb_protect() */
  longjmp(ctx->frame->target, 1);
}

void bb_fail(bb_context *ctx, bb_status status, const char *format, ...) {
  va_list arguments, again;
  va_start(arguments, format);
  va_copy(again, arguments);
  int length = vsnprintf(NULL, 0, format, arguments);
  char *message = NULL;
  size_t size = length < 0 ? 0 : (size_t)length + 1;
  /* The old message may be an argument of the new one: format first, then replace. */
  if (size) message = ctx->allocator.resize(ctx->allocator.user, NULL, 0, size);
  if (message) vsnprintf(message, size, format, again);
  va_end(again);
  va_end(arguments);
  clear_message(ctx);
  ctx->message = message;
  ctx->message_size = message ? size : 0;
  unwind(ctx, status);
}

void bb_fail_again(bb_context *ctx, bb_status status) {
  unwind(ctx, status);
}

void bb_log(bb_context *ctx, bb_log_level level, const char *format, ...) {
  if (!ctx->log) return;
  char text[1024]; /* a log line is cut, never an error message */
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  ctx->log(ctx->log_user, level, text);
}

static _Noreturn void fail_memory(bb_context *ctx) {
  clear_message(ctx); /* bb_context_message() falls back to the status text */
  unwind(ctx, BB_ERROR_MEMORY);
}

void *bb_resize(bb_context *ctx, void *pointer, size_t old_size, size_t new_size) {
  if (new_size == 0) {
    release(ctx, pointer, old_size);
    return NULL;
  }
  char *memory = ctx->allocator.resize(ctx->allocator.user, pointer, old_size, new_size);
  if (!memory) fail_memory(ctx);
  if (new_size > old_size) memset(memory + old_size, 0, new_size - old_size);
  return memory;
}

void *bb_allocate(bb_context *ctx, size_t size) {
  void *memory = ctx->allocator.resize(ctx->allocator.user, NULL, 0, size);
  if (!memory) fail_memory(ctx);
  return memory;
}

void bb_defer(bb_context *ctx, bb_cleanup *cleanup, void *object) {
  if (ctx->deferred_count == ctx->deferred_capacity) {
    size_t capacity = ctx->deferred_capacity ? ctx->deferred_capacity * 2 : 16;
    void *grown = ctx->allocator.resize(ctx->allocator.user, ctx->deferred,
                                        ctx->deferred_capacity * sizeof(bb_deferred),
                                        capacity * sizeof(bb_deferred));
    if (!grown) {
      cleanup(object);
      fail_memory(ctx);
    }
    ctx->deferred = grown;
    ctx->deferred_capacity = capacity;
  }
  ctx->deferred[ctx->deferred_count++] = (bb_deferred){cleanup, object};
}

void bb_undefer(bb_context *ctx, void *object) {
  for (size_t i = ctx->deferred_count; i-- > 0;) {
    if (ctx->deferred[i].object != object) continue;
    memmove(&ctx->deferred[i], &ctx->deferred[i + 1],
            (ctx->deferred_count - i - 1) * sizeof(bb_deferred));
    ctx->deferred_count--;
    return;
  }
}
