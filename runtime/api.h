/* api.h - what the files of the public calls share.
 */
#ifndef BB_API_H
#define BB_API_H

#include "cpu/cpu.h"
#include "driver.h"
#include "model/formula.h"

/* The largest run-time extent that programs are priced for. */
#define BB_MOST_EXTENT ((int64_t)1 << 40)

/* Passes what a buffer holds on to the caller's function; fails with BB_ERROR_IO if it gives up. */
void bb_api_flush(const bb_buffer *buffer, bb_write_function *write, void *user);

/* The graph of an id; NULL: there is none. */
bb_graph *bb_api_graph(const bb_program *program, bb_graph_id id);

/* What the options ask of bb_select(), for a program at stage PARTITION; in the program's arena. */
const bb_selection_options *bb_api_selection(bb_program *program, const bb_advance_options *options,
                                             const bb_choose_options *choose);
/* Takes a program from stage PARTITION to FUSED by prices, which are kept on disk. */
void bb_api_drive_selection(bb_program *program, bb_selection_options *selection,
                            bb_drive_options *drive);
/* The units that a program of arrays becomes one for: bb_drive_options.units.  machine: NULL: none is named. */
bb_units bb_api_units(bb_program *program, const char *machine);
/* Whether options->dim names an extent. */
bool bb_api_tells(const bb_advance_options *options, const char *name);
/* Run-time extents that follow from others, as far as the options do not tell them. */
typedef struct bb_followers {
  uint32_t symbols;
  const bb_formula *formula; /* by symbol; without terms: it does not */
  int64_t *value;            /* room for a value of each */
} bb_followers;
bb_followers bb_followers_of(bb_program *program, const bb_advance_options *options,
                             bb_arena *arena);
void bb_followers_settle(const bb_followers *followers, double *symbol);

/* The same from any stage, by prices of the options' machine; several programs where options->programs asks for them. */
void bb_api_drive_priced(bb_program *program, const bb_advance_options *options,
                         bb_drive_options *drive);
/* Takes a program to stage FUSED by what its kernels cost on a machine of that name; "": the one that BLOCKBUSTER_MACHINE
 * names, else this one. */
void bb_api_choose(bb_program *program, const char *machine);

/* A run by kernels.  Binding: as bb_drive_run() has it. */
typedef struct bb_kernel_run {
  bb_program *program;
  const bb_run_options *options;
  const int64_t *block;
  bb_binding *binding;
  bb_arena *arena;
  bb_cpu_counts *counts;
} bb_kernel_run;

/* Compiled for the CPU or a GPU; candidates that have none are interpreted.  False: there is no compiler, and
 * the options let it be interpreted. */
bool bb_run_kernels(const bb_kernel_run *run);
/* The binding's inputs and the options' extents become a session's; and its outputs, once it ran, the binding's. */
void bb_run_give(const bb_kernel_run *run, const bb_model *model, bb_session *session);
void bb_run_take(const bb_kernel_run *run, const bb_model *model, bb_session *session);
void bb_run_model(const bb_kernel_run *run, bb_model *model);
/* The inputs, outputs and run-time extents of a model as a program that has nothing else; not
 * deferred. */
bb_program *bb_model_arrays(bb_context *ctx, const bb_model *model);

/* Block sizes by dim, 0 where none is set, from a caller's settings, which are checked. */
int64_t *bb_api_blocks(const bb_program *program, uint32_t count, const bb_setting *setting,
                       bb_arena *arena);

/* Top-level loops of a graph. */
uint32_t bb_api_kernels(const bb_graph *graph);

#endif
