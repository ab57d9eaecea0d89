/* model_cache.h - what programs became for a GPU, kept on disk for the next equal one.
 *
 * Once its kernels' images are kept, what takes the time of a compilation is to write each kernel in all its ways and weigh
 * which are worth their compilation.  An equal choice of kernels for an equal target becomes the same.
 */
#ifndef BB_MODEL_CACHE_H
#define BB_MODEL_CACHE_H

#include "kernel_cache.h"
#include "plan_make.h"

typedef struct bb_gpu_model {
  const char *plan; /* its text */
  size_t length;
  const bb_gpu_code *code;
} bb_gpu_model;

/* All that a model depends on, in `arena`, but for the compiler's version, as for images (gpu/compile.c).  Requires: stage FUSED, before the draft of it is made; a target in the options.
 * folder: as of bb_cache_get(). */
bb_cache_key bb_gpu_model_key(const bb_program *program, const bb_draft_options *options,
                              const char *folder, bb_arena *arena);

/* NULL: it is not there. */
const bb_gpu_model *bb_gpu_model_recall(bb_context *ctx, bb_arena *arena, const bb_cache_key *key);
void bb_gpu_model_keep(bb_context *ctx, bb_arena *arena, const bb_cache_key *key,
                       const bb_gpu_model *model);

#endif
