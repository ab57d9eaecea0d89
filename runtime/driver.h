/* driver.h - the road that a program takes, as one call for each side of it.
 */
#ifndef BB_DRIVER_H
#define BB_DRIVER_H

#include "../graph/program.h"
#include "../select/select.h"
#include "bind.h"

typedef struct bb_drive_options {
  uint32_t cuts;
  const bb_cut *cut;
  const bb_choose_options *choose;    /* NULL: defaults */
  const bb_selection_options *select; /* kernels are chosen by price; NULL: by counts */
  bb_fold_kind fold;
  uint32_t chunks;
  bool strict; /* only rewrites that bb_is_strict() */
  /* After every phase; may be NULL. */
  void (*phase)(void *user, const char *name, const bb_program *program);
  void *user;
} bb_drive_options;

/* Reads what lies in a file or in memory (bytes != NULL; `path` then is a name for messages).  The
 * program is the caller's (deferred while it is being built). */
bb_program *bb_drive_read(bb_context *ctx, const char *path, const void *bytes, size_t length);

/* Takes a program to `goal` through every stage before it, the verifier between them. */
void bb_drive(bb_program *program, bb_stage goal, const bb_drive_options *options);

/* Makes what the program's stage has to run safe (fuse/safety.h), if that is not done: to be called
 * before tensors are bound, for it may add some. */
void bb_drive_prepare(bb_program *program);

/* Runs the program as its stage has it: the unfused root, or the steps of its plan. */
void bb_drive_run(const bb_program *program, const bb_interp_options *options, bb_binding *binding,
                  bb_arena *arena, bb_interp_counts *counts);

#endif
