/* blockbuster_rt.h - the part of the public interface that runs compiled models.
 *
 * libblockbuster-rt has these calls and nothing else: it loads what `blockbuster compile -o DIR`
 * wrote and runs it, with no compiler on the machine.  libblockbuster has them too, and can make
 * models itself (blockbuster.h, which includes this header).
 *
 * A model is what was compiled: kernels, constants, the order of steps.  It never changes, so any
 * number of sessions may share it.  A session runs it: it knows where inputs and outputs lie, has
 * the memory for what passes between kernels, and its own threads.
 *
 *   bb_model_load    or  bb_model_open (blockbuster.h)       once
 *   bb_session_create                                        once for each thread that runs it
 *   bb_session_bind  inputs, outputs                         when they move or change shape
 *   bb_session_run                                           again and again
 *
 * Ownership: every `create`, `load` or `open` call gives the caller an object that the matching
 * `destroy` or `release` takes back.  Objects made from a context die before it, but a model, which
 * has no context.
 * Errors: every call that can fail returns a bb_status; bb_context_message() then gives one or more
 * lines that name the place (file, node, port).  On failure outputs are left untouched, unless it
 * says otherwise.  NULL for a path, a name, a list that is not empty, an array or a function that writes is an
 * ARGUMENT error where a call needs it; handles, and where results go, are not looked at.
 * Threads: a context and all objects made from it are used by one thread at a time; different
 * contexts are independent.  Models are used by any number of threads at once.  The library keeps
 * no global state, never exits and never aborts, and writes nothing but through the log
 * function.
 */
#ifndef BLOCKBUSTER_RT_H
#define BLOCKBUSTER_RT_H

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

/* Of this header, as major * 10000 + minor * 100 + patch: what the structs that a caller fills begin with.
 * bb_version() is that of the library, which may be newer. */
#define BB_VERSION 102
BB_API uint32_t bb_version(void);

typedef enum bb_status {
  BB_OK = 0,
  BB_ERROR_MEMORY,      /* the allocator returned NULL */
  BB_ERROR_ARGUMENT,    /* the call itself was wrong */
  BB_ERROR_INPUT,       /* a file or model was refused */
  BB_ERROR_UNSUPPORTED, /* a model uses operators that have no rule and no reference kernel */
  BB_ERROR_IO,          /* the operating system refused to read or write */
  BB_ERROR_MISMATCH,    /* a comparison failed */
  BB_ERROR_INTERNAL,    /* a verifier law was broken: a defect of the library */
  BB_ERROR_STOPPED      /* an observer ended the run */
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

/* A number by name: the elements in a block of a dim, or the value of a run-time extent. */
typedef struct bb_setting {
  const char *name;
  int64_t value;
} bb_setting;

/* --- models --- */

typedef struct bb_model bb_model;

/* Loads a folder that `blockbuster compile -o` or bb_model_save() wrote: reads the plan, maps
 * constants, loads the kernels, runs what depends on constants only.  Refused: a folder or file
 * that somebody but its owner could write, or whose owner is neither this user nor root; kernels
 * for another kind of machine (a GPU's: of another target); a plan that was cut short, was damaged,
 * or does not fit its files.  The folder must stay as it is while the model lives.  The model takes
 * memory from the context's allocator, which must then serve any thread that releases it.
 * Errors: IO, INPUT, UNSUPPORTED (the machine), MEMORY. */
BB_API bb_status bb_model_load(bb_context *context, const char *folder, bb_model **model);
/* The same on one device of several: "cuda:1" for the second of NVIDIA's GPUs; NULL, "cpu", "cuda":
 * the first of those that the folder is for.
 * Errors: those of bb_model_load(), ARGUMENT (it is for another kind; there is no such device). */
BB_API bb_status bb_model_load_on(bb_context *context, const char *folder, const char *device,
                                  bb_model **model);
/* One more owner; gives the model back.  Any thread. */
BB_API bb_model *bb_model_hold(bb_model *model);
/* One owner less; the last one destroys it.  NULL is ignored.  Any thread; sessions hold their
 * model. */
BB_API void bb_model_release(bb_model *model);

/* Types of elements. */
typedef enum bb_dtype {
  BB_F64,
  BB_F32,
  BB_F16,
  BB_BF16,
  BB_I64,
  BB_I32,
  BB_BOOL, /* a byte, 0 or 1 */
  BB_U32,
  BB_U16,
  BB_I16,
  BB_U8,
  BB_I8
} bb_dtype;

typedef enum bb_side { BB_INPUT, BB_OUTPUT } bb_side;

typedef struct bb_tensor_info {
  const char *name; /* the model's */
  bb_dtype dtype;
  uint32_t rank;
  const int64_t *shape;      /* -1 where it depends on run-time extents ... */
  const char *const *extent; /* ... which this says: "N", "2*N", "symbol(P)+symbol(S)"; else NULL */
} bb_tensor_info;

/* The calls below are for any thread; strings and arrays live as long as the model. */

/* False if there is no such tensor. */
BB_API bool bb_model_get_tensor(const bb_model *model, bb_side side, uint32_t index,
                                bb_tensor_info *info);
/* The index of an input or output by name; false if there is none. */
BB_API bool bb_model_find_tensor(const bb_model *model, bb_side side, const char *name,
                                 uint32_t *index);
/* Where the run-time extents have these values (those that follow from others may be left out), the
 * shape of an input or output, rank numbers.
 * Errors: ARGUMENT (no such tensor or extent, one that is missing), INPUT (sizes that cannot
 * be). */
BB_API bb_status bb_model_get_shape(bb_context *context, const bb_model *model, bb_side side,
                                    uint32_t index, uint32_t count, const bb_setting *extent,
                                    int64_t *shape);

typedef struct bb_extent_info {
  const char *name;
  bool follows; /* from the others: "symbol(P)+symbol(S)"; or a run tells it, by its data */
} bb_extent_info;

/* A run-time extent: index 0 and up; false beyond the last. */
BB_API bool bb_model_get_extent(const bb_model *model, uint32_t index, bb_extent_info *info);

typedef struct bb_model_info {
  const char *name;     /* of the model */
  const char *device;   /* "cpu", "cuda" or "hip" */
  const char *features; /* what the kernels expect of the machine, words between spaces */
  uint32_t inputs, outputs, extents, steps;
  uint32_t fused, misc; /* operators that run in kernels; as reference kernels: of variant 0 */
  /* steps of variant 0 that are kernels; different ones of all variants */
  uint32_t kernels, sources;
  uint64_t constant_bytes;
  bool cached; /* the kernels were there already: nothing was compiled */
} bb_model_info;

BB_API void bb_model_get_info(const bb_model *model, bb_model_info *info);

/* One of the programs that a model holds, all of which compute the same: each is the cheapest for
 * some values of the run-time extents.  A session runs the one for what is bound; constants, caches
 * and what was computed at load are shared. */
typedef struct bb_variant_info {
  uint32_t extents;
  const bb_setting *extent; /* what it was chosen for */
  uint32_t steps, kernels;  /* of a run; of those, kernels */
} bb_variant_info;

/* Index 0 and up; false beyond the last.  Where a model holds one program alone, that is variant
 * 0. */
BB_API bool bb_model_get_variant(const bb_model *model, uint32_t index, bb_variant_info *info);
/* Whether a step, as bb_model_get_step() counts, is part of a variant. */
BB_API bool bb_model_variant_has(const bb_model *model, uint32_t index, uint32_t step);
/* Values of an extent from `first` on; last: < 0: without end. */
typedef struct bb_extent_span {
  const char *name;
  int64_t first, last;
} bb_extent_span;
/* A region of the extents that the choice of a variant depends on. */
typedef struct bb_region_info {
  uint32_t variant;
  uint32_t extents; /* 0: there is one region alone */
  const bb_extent_span *extent;
} bb_region_info;

/* The table that a session looks into: index 0 and up, each combination of extents in one region;
 * false beyond the last. */
BB_API bool bb_model_get_region(const bb_model *model, uint32_t index, bb_region_info *info);
/* Which variant runs where the run-time extents have these values (those that follow from others
 * may be left out).
 * Errors: ARGUMENT (no such extent, one that is missing), INPUT (sizes that cannot be). */
BB_API bb_status bb_model_find_variant(bb_context *context, const bb_model *model, uint32_t count,
                                       const bb_setting *extent, uint32_t *index);

/* A step: a kernel, a reference kernel for an operator that has no other form, or, in models that
 * bb_program_compile() made, what has no kernel and is interpreted. */
typedef struct bb_step_info {
  const char *name;    /* "k0"; the model's name for a reference kernel */
  const char *listing; /* what was fused, as loops, loads and stores; NULL: a reference kernel */
  const char *op;      /* the operator of a reference kernel; else NULL */
  bool once;           /* ran when the model was loaded */
  uint32_t nodes;      /* operators that it stands for */
  uint32_t source;     /* steps with one number share their code; UINT32_MAX: no kernel */
} bb_step_info;

/* False beyond the last; in the order in which they run, those of all variants. */
BB_API bool bb_model_get_step(const bb_model *model, uint32_t index, bb_step_info *info);

/* --- sessions --- */

typedef struct bb_session bb_session;

/* What ran: an observer is called after every step of a run, in the thread that called
 * bb_session_run(). */
typedef struct bb_step_event {
  uint32_t step; /* as bb_model_get_step() counts */
  const char *name;
  double seconds;
  double bytes;      /* of the arrays that it reads and writes, each once; 0: a reference kernel */
  double operations; /* counted in additions; 0: a reference kernel */
} bb_step_event;
/* False ends the run: it fails with STOPPED, and outputs hold what was written so far.  It must not
 * call the library with the session or its context. */
typedef bool bb_step_observer(void *user, const bb_step_event *event);

/* The caller's threads: calls task(argument, 0) to task(argument, tasks - 1), at once where it can,
 * and returns when all of them have returned. */
typedef void bb_parallel_function(void *user, uint32_t tasks,
                                  void (*task)(void *argument, uint32_t number), void *argument);

typedef struct bb_session_options {
  uint32_t version; /* BB_VERSION */
  /* Threads of a run, the calling one among them; 0: one for each processor.  Results are the same
   * for any number. */
  uint32_t threads;
  bb_parallel_function *parallel; /* NULL: the session starts threads of its own */
  void *parallel_user;
  bb_step_observer *observe; /* NULL: none; a run then reads no clock */
  void *observe_user;
} bb_session_options;

/* A session belongs to the context, holds the model, and may outlive the caller's own hold of it.
 * options may be NULL.  Errors: ARGUMENT, MEMORY. */
BB_API bb_status bb_session_create(bb_context *context, bb_model *model,
                                   const bb_session_options *options, bb_session **session);
/* NULL is ignored. */
BB_API void bb_session_destroy(bb_session *session);

/* An array of the caller's.  It stays where it is, and is there, until it is bound to something
 * else or the session dies; the shape and strides are copied.  On a CPU any alignment does, that of
 * the element at least.  On a GPU the array lies where the model's device reaches it: others are
 * refused (bb_session_write() takes those of the processor's memory), unless they begin where the
 * one bound before did; one that begins at no multiple of 16 bytes costs a copy, too. */
typedef struct bb_tensor_view {
  bb_dtype dtype;
  uint32_t rank;
  const int64_t *shape;
  /* In elements; NULL: row-major and dense.  Others cost a copy in each run.  An output's are not
   * 0. */
  const int64_t *stride;
  void *data;
} bb_tensor_view;

/* Binds an input, or where an output goes.  Every input is bound before the first run; an output
 * that is not (or whose view is NULL) lies in memory of the session.  Inputs with other shapes are
 * bound one by one: what does not fit together is found by bb_session_prepare().  An output may
 * share storage with an input (a cache that grows in place: what is there as input, what is there
 * and more as output, with the strides of the whole): it is then written after the last step has
 * read the input.
 * Errors: ARGUMENT (the index, type, rank, shape or strides). */
BB_API bb_status bb_session_bind(bb_session *session, bb_side side, uint32_t index,
                                 const bb_tensor_view *view);
/* --- caches --- */

/* A cache: an output that is an input with more behind it along an axis ("past" and "present" of a
 * decoder's keys and values).  Both may lie in one array with room to grow: a run then writes what
 * is new behind what is there, and moves nothing. */
typedef struct bb_cache_info {
  uint32_t input, output; /* by index */
  uint32_t axis;
} bb_cache_info;

/* False beyond the last.  Any thread. */
BB_API bool bb_model_get_cache(const bb_model *model, uint32_t index, bb_cache_info *info);

/* Binds both ends of a cache to one array: `room` is all of it, of which the first `used` elements
 * along the cache's axis are there (0: none yet).  The output is as long as it comes out; after a
 * run, bb_session_get() says how long, which is what the next call gives as `used`.  The array
 * stays the caller's, who must keep it until the session dies or both ends are bound to something
 * else.  Strides may be any, but others than those of a row-major array (whose axes outside the
 * cache's may be further apart) cost a copy of what is there in each run.  Where the room does not
 * reach, bb_session_prepare() and bb_session_run() fail with INPUT and nothing is written.
 * Errors: ARGUMENT (there is no such cache, type, rank, `used`). */
BB_API bb_status bb_session_bind_cache(bb_session *session, uint32_t index,
                                       const bb_tensor_view *room, int64_t used);
/* Says of all caches at once, each where bb_session_bind_cache() bound it, that the first `used` elements of it are there: what
 * changes of them from token to token.  Errors: ARGUMENT (one was not bound so, or has no room for them); then none is
 * changed. */
BB_API bb_status bb_session_set_caches(bb_session *session, int64_t used);

/* Takes the memory that a run with these extents needs (those that follow from others left out),
 * and keeps it: runs with the same or smaller extents, arrays being bound likewise, then allocate
 * nothing, the first one included; reference kernels but gathers and joins, what is interpreted,
 * scratch of kernels behind an extent that a run tells, and a GPU's list of launches excepted.
 * Call it after inputs and outputs are bound, in any shape.
 * Errors: ARGUMENT (an extent that there is not, that a run tells, or one that is missing), INPUT
 * (sizes that cannot be), MEMORY. */
BB_API bb_status bb_session_reserve(bb_session *session, uint32_t count, const bb_setting *extent);

/* Says what a run-time extent is that no input's shape tells.  Errors: ARGUMENT (there is no such extent, or a run
 * tells it by its data). */
BB_API bb_status bb_session_set(bb_session *session, const char *extent, int64_t value);

/* Finds the run-time extents from the shapes of the inputs and lays out the memory that a run
 * needs; compiles nothing.  bb_session_run() does it where shapes changed since.  Afterwards shapes
 * of outputs are known; of one that is as long as data decides the largest it can be, until a run
 * has told its own.  Such an output lies in the session's memory: it cannot be bound.
 * Errors: ARGUMENT (an input is not bound, an extent not known), INPUT (shapes that do not fit,
 * named), MEMORY. */
BB_API bb_status bb_session_prepare(bb_session *session);
/* Which of the model's variants the extents of the last bb_session_prepare() or run have. */
BB_API uint32_t bb_session_get_variant(const bb_session *session);
/* The array of an input or output as it is bound, with the session's own memory where that is used.
 * Needs bb_session_prepare(), or a run; lives until the next of either, or bind.
 * Errors: ARGUMENT. */
BB_API bb_status bb_session_get(bb_session *session, bb_side side, uint32_t index,
                                bb_tensor_view *view);

/* The bytes that a run needs beside inputs, outputs and constants, after bb_session_prepare(): a
 * function of the run-time extents and the number of threads. */
BB_API size_t bb_session_workspace(const bb_session *session);
/* Memory of the caller's for that, for any extents that need no more; NULL: the session takes its
 * own.  Where it does not reach, a run fails with ARGUMENT.  One workspace serves sessions that do
 * not run at the same time. */
BB_API void bb_session_use_workspace(bb_session *session, void *memory, size_t bytes);

/* Runs the model on what is bound.  `stream`: NULL, always on a CPU: the call returns when outputs
 * are written.  On a GPU it may be a stream of the caller's (CUstream, hipStream_t; the default
 * stream by its name, CU_STREAM_LEGACY): the run follows what is in it, and the call returns as
 * soon as everything is in it; the next run may follow in the same stream, or in another once this
 * one has ended.  After the first run with given extents it allocates nothing and takes no lock
 * with one thread; on a GPU a second one in which nothing moved notes the launches, which then
 * start as one (a graph).  A stream that captures gets the launches one by one: call
 * bb_session_prepare() before, which takes the memory.  Runs that follow each other in a capture
 * with nothing between them, of whatever sessions, may run beside each other there, as far as none
 * reads what one before it writes; a lock is taken for that.
 * Errors: those of bb_session_prepare(), INPUT (data that an operator refuses, as an index out of
 * range), STOPPED; outputs may be written in part then. */
BB_API bb_status bb_session_run(bb_session *session, void *stream);
/* Returns when the last run in a stream of the caller's has ended.
 * Errors: INPUT (data that an operator refused in any run since the last such call), IO (the
 * device). */
BB_API bb_status bb_session_wait(bb_session *session);

/* Copies an array of the processor's memory, with any strides, into memory of the session's on its
 * device, and binds that as an input; the array is the caller's again when the call returns.  No
 * run is under way.
 * Errors: those of bb_session_bind(), MEMORY. */
BB_API bb_status bb_session_write(bb_session *session, uint32_t input, const bb_tensor_view *view);
/* Copies an input or output as bb_session_get() has it, row-major and dense, into the processor's
 * memory, after what runs in the stream of the last run.
 * Errors: ARGUMENT (shapes are not known yet; `bytes` are not those of the array). */
BB_API bb_status bb_session_read(bb_session *session, bb_side side, uint32_t index, void *data,
                                 size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
