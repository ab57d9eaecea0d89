/* driver.h - the road that a program takes, as one call for each side of it: read, advance,
 * prepare, run.
 *
 * Who reads the code for the first time begins here: bb_drive() in driver.c calls every pass in
 * order, and the header of each pass says what it does.
 */
#ifndef BB_DRIVER_H
#define BB_DRIVER_H

#include "../graph/array/array.h"
#include "../graph/program.h"
#include "../select/select.h"
#include "bind.h"

typedef struct bb_drive_options {
  uint32_t cuts; /* pairs of top-level nodes that must not share a candidate */
  const bb_cut *cut;
  const bb_choose_options *choose;    /* of kernels by counts; NULL: defaults */
  const bb_selection_options *select; /* kernels are chosen by price; NULL: by counts */
  bb_fold_kind fold;                  /* how loops that fold are bracketed in what runs ... */
  uint32_t chunks;                    /* ... SPLIT_K and TREE: into so many chunks */
  bool strict;                        /* only rewrites that bb_is_strict() */
  bb_units units;                     /* that programs of arrays become ones for */
  /* After every phase, by the name that bb_drive() says; may be NULL. */
  void (*phase)(void *user, const char *name, const bb_program *program);
  void *user;
} bb_drive_options;

/* The options for a machine that is a GPU with units of its own for products: lowering is asked, and constants and
 * arrays between candidates are laid out as those units read them (bb_lay()).  Others are as given.  Requires and keeps: stage PARTITION. */
bb_selection_options bb_drive_for_machine(bb_program *program, const bb_selection_options *given);

/* Reads what lies in a file or in memory (bytes != NULL; `path` then is a name for messages): text,
 * which begins with the word `blockbuster`, at whatever stage it was printed, or ONNX, at stage
 * ARRAY.  The program is the caller's (deferred while it is being built).  Fails with IO, INPUT or
 * UNSUPPORTED and the file's name. */
bb_program *bb_drive_read(bb_context *ctx, const char *path, const void *bytes, size_t length);

/* Takes a program to `goal` through every stage before it, and to no other; the verifier runs after
 * each phase, and a law that is broken fails with INTERNAL.
 *
 *   to         phase      what happens
 *   BLOCK      simplify   constants folded, joins and gathers taken apart, masks as closed forms
 *              convert    axes factored into dims, forms made canonical, a nest for each operator
 *   PARTITION  partition  candidates: parts without misc nodes, between which values lie in memory
 *   FUSED      choose     each candidate rewritten (rules/), its dependent reductions repaired and its
 *                         exps made safe (fuse/), a snapshot and its block sizes chosen (select/), the
 *                         folds of what runs bracketed as `fold` says */
void bb_drive(bb_program *program, bb_stage goal, const bb_drive_options *options);

/* Makes what the program's stage has to run safe (fuse/safety.h), if that is not done: to be called
 * before tensors are bound, for it may add some. */
void bb_drive_prepare(bb_program *program);

/* Interprets the program as its stage has it: the unfused root, or the steps of its plan.  Inputs
 * and constants are bound; results come to be in `binding`, in memory of `arena`.  Kernels are run
 * by bb_run_kernels() (api.h) and, once compiled, by sessions (runtime/model/). */
void bb_drive_run(const bb_program *program, const bb_interp_options *options, bb_binding *binding,
                  bb_arena *arena, bb_interp_counts *counts);

#endif
