/* blockbuster.h - the public interface of libblockbuster.
 *
 * The library reads an array program (an ONNX model or a .bb text), converts it to a hierarchical
 * block program, fuses it by rewriting, and runs it.  The stages a program passes are the values
 * of bb_stage, in order.
 *
 * Ownership: every `create`, `read` or `open` call gives the caller an object that the matching
 * `destroy` releases.  Objects made from a context die before it.
 * Errors: every call that can fail returns a bb_status; bb_context_message() then gives one or
 * more lines that name the place (file, node, port).  On failure outputs are left untouched.
 * Threads: a context and all objects made from it are used by one thread at a time; different
 * contexts are independent.  The library keeps no global state, never exits and never aborts, and
 * writes nothing but through the log function.
 */
#ifndef BLOCKBUSTER_H
#define BLOCKBUSTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define BB_API __attribute__((visibility("default")))
#else
#define BB_API
#endif

/* Bytes of version: major * 10000 + minor * 100 + patch. */
#define BB_VERSION 100
BB_API uint32_t bb_version(void);

typedef enum bb_status {
  BB_OK = 0,
  BB_ERROR_MEMORY,      /* the allocator returned NULL */
  BB_ERROR_ARGUMENT,    /* the call itself was wrong */
  BB_ERROR_INPUT,       /* a file or model was refused */
  BB_ERROR_UNSUPPORTED, /* a model uses operators that have no rule and no reference kernel */
  BB_ERROR_IO,          /* the operating system refused to read or write */
  BB_ERROR_MISMATCH,    /* a comparison failed */
  BB_ERROR_INTERNAL     /* a verifier law was broken: a defect of the library */
} bb_status;

/* A static, lower-case phrase for a status. */
BB_API const char *bb_status_text(bb_status status);

/* Memory: `resize(user, NULL, 0, n)` allocates, `resize(user, p, old, 0)` frees and returns NULL,
 * otherwise it reallocates.  It may return NULL for n > 0; the library then fails cleanly. */
typedef struct bb_allocator {
  void *(*resize)(void *user, void *pointer, size_t old_size, size_t new_size);
  void *user;
} bb_allocator;

typedef enum bb_log_level { BB_LOG_ERROR, BB_LOG_WARNING, BB_LOG_INFO, BB_LOG_DEBUG } bb_log_level;
typedef void bb_log_function(void *user, bb_log_level level, const char *message);

typedef struct bb_context bb_context;

typedef struct bb_context_options {
  uint32_t version;       /* BB_VERSION */
  bb_allocator allocator; /* resize == NULL: the C library's */
  bb_log_function *log;   /* NULL: silent */
  void *log_user;
  bool verify; /* run the verifier after every stage and every rewrite */
} bb_context_options;

/* options may be NULL. */
BB_API bb_status bb_context_create(const bb_context_options *options, bb_context **context);
BB_API void bb_context_destroy(bb_context *context);

/* The message of the last failed call; "" if none.  Dies with the next call on the context. */
BB_API const char *bb_context_message(const bb_context *context);

#ifdef __cplusplus
}
#endif
#endif
