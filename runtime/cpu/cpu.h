/* cpu.h - programs as kernels on the CPU: emitted, compiled by the system's compiler, loaded, run.
 *
 * A plan has one kernel for each candidate of the program, shared where two come out alike, and the
 * reference kernels of misc nodes between them.  A candidate that has no tile program is interpreted, and
 * the log says why.  What comes out is the same bit for bit however many threads run.
 */
#ifndef BB_CPU_H
#define BB_CPU_H

#include "../../lower/schedule.h"
#include "../bind.h"
#include "pool.h"

typedef struct bb_cpu_options {
  uint32_t threads;     /* 0: as many as there are processors */
  bool exact;           /* everything in double, to be held against the interpreter in float64 */
  const int64_t *block; /* per dim, 0: the scheduler's choice; NULL: all */
  uint32_t loop_seed;   /* not 0: blocks drawn for each loop */
  bool meaning;         /* kernels by the tile interpreter: nothing is compiled */
  const char *folder;   /* sources and binaries stay there; NULL: the disk cache */
} bb_cpu_options;

typedef struct bb_cpu_counts {
  uint32_t fused, misc, interpreted; /* nodes */
  uint32_t kernels, sources;         /* candidates run as kernels; different ones */
  uint32_t variant;                  /* of the model's, which these are of */
} bb_cpu_counts;

typedef struct bb_cpu_plan bb_cpu_plan;

/* Requires stage FUSED.  Not deferred: the caller owns it; it dies before the program. */
bb_cpu_plan *bb_cpu_plan_make(bb_program *program, const bb_cpu_options *options);
void bb_cpu_plan_destroy(bb_cpu_plan *plan);
void bb_cpu_plan_count(const bb_cpu_plan *plan, bb_cpu_counts *counts);

/* Other threads from now on: 0 as many as there are processors. */
void bb_cpu_set_threads(bb_cpu_plan *plan, uint32_t threads);

/* --- a run: bytes in the dtypes of the program's tensors (exact: floats are doubles) --- */

/* Says what the run-time extents are; makes memory for everything but the caller's arrays. */
void bb_cpu_bind(bb_cpu_plan *plan, const int64_t *symbol);
/* Where an input is read or an output written; NULL: memory of the plan's own. */
void bb_cpu_set(bb_cpu_plan *plan, uint32_t tensor, void *data);
void *bb_cpu_get(const bb_cpu_plan *plan, uint32_t tensor);
size_t bb_cpu_bytes(const bb_cpu_plan *plan, uint32_t tensor);
/* Constants' kernels run in the first one. */
void bb_cpu_run(bb_cpu_plan *plan);

/* A whole run on a binding of the interpreter's: converts both ways. */
void bb_cpu_run_binding(bb_cpu_plan *plan, bb_binding *binding, bb_arena *arena);

/* --- parts --- */

/* What beside the source decides what is built: the compiler and its state on disk, its flags, the
 * device library, the processor.  Text in `arena`; fails with BB_ERROR_IO where there is no compiler. */
const char *bb_cpu_identity(bb_context *ctx, bb_arena *arena);
/* What a source includes: of the device library what it uses (device_library.h). */
#define BB_CPU_LIBRARY "bb_used.h"
/* Before kernels that stand in parts: which are compiled, all unless a compiler is told. */
#define BB_CPU_PARTS "#ifndef BB_FROM\n#define BB_FROM 0\n#define BB_TO INT32_MAX\n#endif\n"
/* Before each kernel of a source, and the end of this line: "0)", and so on.  "#endif" comes behind it. */
#define BB_CPU_PART "\n#if BB_HAS("
/* Compiles C (`length` characters and a NUL) into FOLDER/kernels.so, the source and what it includes beside it.  The
 * folder is there.  Long sources are compiled in parts, at once, wherever BB_CPU_PART stands; in which depends on the
 * source alone.
 * cache: the folder (kernel_cache.h) that has the objects of products, which all kernels share, or gets them.
 * Fails with BB_ERROR_IO, or _INTERNAL with what the compiler said. */
void bb_cpu_build(bb_context *ctx, const char *source, size_t length, const char *folder,
                  const char *cache);
/* A new folder in $TMPDIR or /tmp; the caller frees the name. */
char *bb_cpu_temporary_folder(bb_context *ctx);
/* Whether a file of this name belongs to a folder of compiled kernels. */
bool bb_cpu_folder_has(const char *name);
/* Takes away what was there only to be compiled. */
void bb_cpu_tidy_folder(const char *folder);
/* Takes away all such files, and the folder. */
void bb_cpu_remove_folder(const char *folder);
/* What a killed compilation left, a folder or a file: removed if it is this user's, and an hour old. */
void bb_cpu_remove_stale(const char *path);

/* Builds in `folder`, or takes it from the disk cache (NULL), and loads. */
typedef struct bb_cpu_module {
  void *handle;
} bb_cpu_module;
void bb_cpu_compile(bb_context *ctx, const char *source, size_t length, const char *folder,
                    bb_cpu_module *module);
void bb_cpu_unload(bb_cpu_module *module);

#endif
