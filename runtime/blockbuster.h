/* blockbuster.h - the public interface of libblockbuster.
 *
 * The library reads an array program (an ONNX model or a .bb text), converts it to a hierarchical
 * block program, fuses it by rewriting, and runs it.  The stages a program passes are the values
 * of bb_stage, in order.
 *
 * This header has what makes programs; running compiled models stands in blockbuster_rt.h.
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

#include "blockbuster_rt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- programs --- */

typedef struct bb_program bb_program;

/* What a program is, in the order of the road it takes.  Every stage prints as text, and what is
 * printed is read back at the same stage. */
typedef enum bb_stage {
  BB_STAGE_ARRAY,     /* operators on whole arrays */
  BB_STAGE_BLOCK,     /* one unfused block program, with views and misc nodes */
  BB_STAGE_PARTITION, /* candidates for fusion, and misc nodes between them */
  BB_STAGE_FUSED      /* kernels, each with its snapshots, one of them chosen */
} bb_stage;

/* "array", "block", "partition" or "fused". */
BB_API const char *bb_stage_name(bb_stage stage);

/* Reads a program from a file: the text form if it begins with the word `blockbuster`, else an ONNX
 * model.  Data files that it refers to are looked up in its folder; they stay mapped until the
 * program is destroyed.  On success *program is the caller's, to be destroyed before the context.
 * Errors: IO (the file cannot be read), INPUT, UNSUPPORTED (all unsupported nodes in one message),
 * MEMORY. */
BB_API bb_status bb_program_read(bb_context *context, const char *path, bb_program **program);
/* The same from memory, which is not needed after the call.  `name` is for messages; its folder is
 * where data files are looked up. */
BB_API bb_status bb_program_parse(bb_context *context, const char *name, const void *bytes,
                                  size_t length, bb_program **program);
/* NULL is ignored. */
BB_API void bb_program_destroy(bb_program *program);
BB_API bb_stage bb_program_stage(const bb_program *program);

/* One application of a rule. */
typedef struct bb_rewrite {
  uint32_t step;         /* 1, 2, ... over the whole program */
  uint32_t rule;         /* its number; 0: no rewrite, a snapshot was taken */
  const char *rule_name; /* "Fuse Consecutive Maps" */
  char variant;          /* 'a', 'b', ... or 0 */
  const char *level;     /* the loops around, such as "M/N"; "" at the top */
  uint32_t nodes;        /* what matched, by stable number */
  const uint32_t *node;
} bb_rewrite;

/* Two nodes by stable number. */
typedef struct bb_node_pair {
  uint32_t a, b;
} bb_node_pair;

/* How the iterations of a folded loop are bracketed.  The results are equal up to rounding. */
typedef enum bb_fold_kind {
  BB_FOLD_CHOSEN, /* as its price says, kernel by kernel; ROLLING where kernels are chosen by counts */
  BB_FOLD_ROLLING, /* left to right */
  BB_FOLD_SPLIT_K, /* a local phase over chunks, a global one over their partial results */
  BB_FOLD_TREE     /* halves of halves, combined in pairs */
} bb_fold_kind;

enum { BB_FOLD_CHUNKS = 4096 }; /* at most */

/* Values that a run-time extent may have, by name. */
typedef struct bb_extent_range {
  const char *name;
  int64_t first, last; /* 1 <= first <= last */
} bb_extent_range;

enum { BB_PROGRAMS = 8 }; /* at most */

typedef struct bb_advance_options {
  uint32_t version; /* BB_VERSION */
  uint32_t cuts;    /* top-level nodes that must not share a candidate */
  const bb_node_pair *cut;
  bool no_extend; /* leave out map extension (Rule 6) */
  bool peel;      /* more snapshots: Rule 7 in the place of map extension */
  bool naive;     /* the plain loop of the paper: slower, the same result */
  /* Leave out rewrites that may cost more digits than sums in another order do: E[x^2] - mean^2 for
   * a variance, x W - mean (1 W) for (x - mean) W, narrowing casts moved behind a product, minimal
   * filters for convolutions.  To be given at every call for a program. */
  bool strict;
  uint32_t stop_after;     /* so many rewrites over the whole program; 0: no limit */
  uint64_t disabled_rules; /* bit r set: rule r is not tried */
  bb_fold_kind fold;       /* of the kernels chosen */
  uint32_t chunks;         /* SPLIT_K, TREE: 1 to BB_FOLD_CHUNKS; a tree has a power of two */
  /* Kernels are chosen by price on this machine: a name that bb_machine_get_name() gives, or a file
   * with a description; "host" is the one that this process runs on, as far as the system tells;
   * "cuda" and "hip" its first GPU of NVIDIA's or AMD's, as the driver describes it; what is
   * compiled for, such as "gfx942", one of which no more is known; "" for what BLOCKBUSTER_MACHINE
   * names, else "host".  NULL: by counts.  Prices are kept in the default folder of
   * bb_compile_options.cache, for the next equal program.  Constants that a model widens from 16
   * bits for products stay as they are where a program is taken on from its model for a GPU. */
  const char *machine;
  uint32_t dims; /* what run-time extents count as in prices, 1 to 2^40; others as 1024 */
  const bb_setting *dim;
  /* Several programs for several regions of run-time extents, at most so many (BB_PROGRAMS; 0 and
   * 1: one): extents that `dim` does not name and that do not follow from others are then any from
   * 1 to 4096, or in the range that is given. There are as many programs as make the mean region
   * 5 % faster each, by price; a compiled model holds all of them, and a session runs the one for
   * what is bound.  The program itself is the best of them alone.  Needs `machine`. */
  uint32_t programs;
  uint32_t ranges;
  const bb_extent_range *range;
  /* How often each rule was tried at a node and how often applied, by its number; BB_RULE_NUMBERS
   * each, added to.  NULL: not counted. */
  uint64_t *tries, *hits;
  /* Observers; each may be NULL.  They must not call the library with this context, except where
   * said.  phase: after every phase; it may print the program.  begin: before a candidate, then
   * each of its kernels, is fused; `same` is an earlier one that it equals (then no rewrites
   * follow), or NULL.  rewrite: after every rewrite and snapshot. */
  void (*phase)(void *user, const char *phase, const bb_program *program);
  void (*begin)(void *user, const char *candidate, const char *same);
  void (*rewrite)(void *user, const bb_rewrite *rewrite);
  void *user;
} bb_advance_options;

/* Takes the program to a stage, through all stages before it; does nothing if it is there or
 * beyond. options may be NULL.  After a failure other than ARGUMENT the program can only be
 * destroyed.
 * Errors: ARGUMENT (a cut names no node, chunks, there is no such machine or extent; with
 * `machine`, the program is fused already), INPUT (sizes that cannot be, a machine description that
 * is wrong), MEMORY, INTERNAL. */
BB_API bb_status bb_program_advance(bb_program *program, bb_stage stage,
                                    const bb_advance_options *options);

#define BB_RULE_NUMBERS 64 /* rules have numbers below it */

/* A rule of the fusion algorithm, index 0 and up in the order of priority; false beyond the last.
 * *assumes (may be NULL) receives what it assumes of floating point: it is "exact", "reassociates",
 * "widens" or "cancels"; strict programs are rewritten by the first two only. */
BB_API bool bb_rule_get(uint32_t index, uint32_t *number, const char **name, const char **assumes);

/* --- printing --- */

/* Receives output in pieces; returns false to give up, which makes the call fail with IO. */
typedef bool bb_write_function(void *user, const char *bytes, size_t length);

/* The text form.  data_name: how the text names the file with the large constants, which
 * bb_program_write_data() prints; NULL: all constants in full.  Allowed within the `phase`
 * observer. Errors: MEMORY, IO. */
BB_API bb_status bb_program_write_text(const bb_program *program, const char *data_name,
                                       bb_write_function *write, void *user);
/* Measures the processor that this process runs on and writes its description, named "measured":
 * what `machine` may then name as a file.  A few seconds, on all processors that the process may
 * use.
 * Errors: MEMORY (also: no threads), IO. */
BB_API bb_status bb_machine_measure_and_write(bb_context *context, bb_write_function *write,
                                              void *user);
BB_API bb_status bb_program_write_data(const bb_program *program, bb_write_function *write,
                                       void *user);

/* Which graph of a program: of a program at stage BLOCK its only one; after it that of a candidate
 * (a kernel at stage FUSED).  snapshot: 0 and up, or one of those below; RUNS is the
 * chosen one as it runs, with exps that cannot overflow to a wrong result. */
#define BB_SNAPSHOT_CHOSEN UINT32_MAX
#define BB_SNAPSHOT_UNFUSED (UINT32_MAX - 1)
#define BB_SNAPSHOT_RUNS (UINT32_MAX - 2)
typedef struct bb_graph_id {
  uint32_t candidate, snapshot;
} bb_graph_id;

/* A graph as loops, loads and stores in the notation of the paper.  Errors: ARGUMENT (no such
 * graph), MEMORY, IO. */
BB_API bb_status bb_program_write_listing(const bb_program *program, bb_graph_id graph,
                                          bb_write_function *write, void *user);

typedef enum bb_drawing { BB_DRAW_DOT, BB_DRAW_JSON } bb_drawing;

typedef struct bb_draw_options {
  uint32_t version; /* BB_VERSION */
  bb_drawing drawing;
  uint32_t collapse; /* maps at this depth and below are drawn closed; 0: none */
  const char *title; /* NULL: made from the names */
} bb_draw_options;

/* A graph for Graphviz, or as JSON.  Errors as above.  options may be NULL. */
BB_API bb_status bb_program_write_drawing(const bb_program *program, bb_graph_id graph,
                                          const bb_draw_options *options, bb_write_function *write,
                                          void *user);
/* The same of a candidate right after rewrite `step` (1 and up) of the whole program, with the
 * nodes that the rewrite made or changed marked.  The program is at stage PARTITION and goes to
 * FUSED; `advance` as for bb_program_advance().
 * Errors: ARGUMENT (there is no such step). */
BB_API bb_status bb_program_write_step(bb_program *program, uint32_t step,
                                       const bb_advance_options *advance,
                                       const bb_draw_options *options, bb_write_function *write,
                                       void *user);

/* How the dependent reductions of a graph were repaired: for each the chain, g and h, both proofs,
 * the recurrence and the combination of two parts (Neptune's notation); and the chains that were
 * not repaired, with the reason.
 * Errors: ARGUMENT (no such graph), MEMORY, IO. */
BB_API bb_status bb_program_write_repairs(bb_program *program, bb_graph_id graph,
                                          bb_write_function *write, void *user);

/* Why two nodes did not fuse: every rule tried, the condition that failed, a line each; or what
 * keeps them in different candidates.
 * Errors: ARGUMENT (a node is gone, as after a fusion, or never was), MEMORY, IO. */
BB_API bb_status bb_program_write_why(bb_program *program, bb_node_pair pair,
                                      bb_write_function *write, void *user);

/* --- facts --- */

typedef struct bb_program_info {
  const char *name; /* of the model */
  bb_stage stage;
  uint32_t inputs, outputs, constants;
  uint64_t constant_bytes;
  uint32_t nodes, misc;         /* operators (nodes of the top level); those that run as misc */
  uint32_t candidates, kernels; /* kernels: top-level loops of chosen snapshots, 0 before FUSED */
  uint32_t kernels_once;        /* of those, the ones that run at load */
} bb_program_info;

/* Strings live as long as the program. */
BB_API void bb_program_get_info(const bb_program *program, bb_program_info *info);

/* The hash of the unfused block program: equal for programs that differ in names and numbering
 * only.  32 hexadecimal digits and a NUL.  Errors: ARGUMENT (a program that was read at stage
 * PARTITION or later does not have it; at stage ARRAY there is none yet), MEMORY. */
BB_API bb_status bb_program_get_hash(const bb_program *program, char hash[33]);

typedef struct bb_candidate_info {
  const char *name;
  bool once;                           /* runs at load: depends on constants only */
  bool copies;                         /* moves data and does nothing else */
  uint32_t nodes;                      /* functions and reductions of what runs, inside loops too */
  uint32_t kernels, snapshots, chosen; /* chosen: BB_SNAPSHOT_CHOSEN before FUSED */
  bool safe; /* what runs differs from the chosen snapshot: BB_SNAPSHOT_RUNS */
  /* a line for each exp of the chosen snapshot, what became of it and why; NULL: it has none, or
   * the program was read at stage FUSED */
  const char *exps;
} bb_candidate_info;

/* False if there is no such candidate. */
BB_API bool bb_program_get_candidate(const bb_program *program, uint32_t index,
                                     bb_candidate_info *info);

typedef struct bb_snapshot_info {
  uint32_t step;     /* rewrites before it */
  double operations; /* counted with every dim in one block; < 0: not counted */
  double buffered;   /* bytes */
} bb_snapshot_info;

BB_API bool bb_program_get_snapshot(const bb_program *program, bb_graph_id graph,
                                    bb_snapshot_info *info);

/* How a kernel runs and what that costs on the machine it was chosen for. */
typedef struct bb_way_info {
  uint32_t snapshot;
  /* Block sizes, one for each loop or set of loops that is cut alike; the last one may be how many indices a loop over single ones takes
   * at once, as rows of one block. */
  uint32_t blocks;
  const struct bb_block_size {
    const char *dim;
    double elements;
  } * block;
  const char *fold; /* the loop whose fold is split; NULL: every fold rolls */
  uint32_t parts;   /* into so many parts; 1 */
  double seconds;
  double memory_bytes, cache_bytes; /* moved */
  double dot, vector, special;      /* operations run: products, arithmetic, exp and the like */
  double repeated;         /* of the time of operations, the share of work that is done again */
  double instances, waves; /* of the kernel on the units, in its longest pass */
  uint32_t launches;
  double local_bytes, register_bytes; /* of a unit's room */
  const char *bound; /* what it waits for: memory, cache, local, dot, vector, special or start */
} bb_way_info;

typedef struct bb_bill_info {
  bb_way_info chosen;
  bool has_second;
  bb_way_info second;   /* the cheapest with another snapshot or fold */
  uint32_t pieces;      /* what could run apart */
  uint32_t again;       /* more pieces: another kernel computes them too */
  double apart_seconds; /* the cheapest kernels for those pieces without this one; 0: one piece */
  /* This kernel in the same terms: before exps are made safe, which depends on its neighbours. */
  double joined_seconds;
} bb_bill_info;

/* False if there is no such kernel, or it was not chosen by price.  What it points to lives as long
 * as the program. */
BB_API bool bb_program_get_bill(const bb_program *program, uint32_t candidate, bb_bill_info *info);

typedef struct bb_selection_info {
  const char *machine, *target;
  uint32_t units;
  double seconds;      /* of all kernels that run every time, one after the other */
  uint32_t pieces;     /* parts that the candidates were cut into */
  uint32_t considered; /* kernels that a cover could have held */
  uint32_t priced;     /* those of them that differ in more than names */
  uint32_t states;     /* sets of pieces that the dynamic program reached */
  const char *inexact; /* which bound of the search cut something off; NULL: none did */
} bb_selection_info;

/* False if the program's kernels were not chosen by price. */
BB_API bool bb_program_get_selection(const bb_program *program, bb_selection_info *info);
/* What a run-time extent counted as: index 0 and up; false beyond the last. */
BB_API bool bb_program_get_assumed(const bb_program *program, uint32_t index, bb_setting *extent);

/* Where bb_advance_options.programs asks for several, a fused program holds them all, as
 * bb_model_get_variant() counts those of a model.  From here on what is told of the program, its
 * candidates, bills, selection and extents, is told of this one; at first it is the first.  What
 * compiles takes them all, what prints or interprets the program the one shown. False, and nothing
 * changed, beyond the last; a program alone is number 0. */
BB_API bool bb_program_show_variant(bb_program *program, uint32_t index);
/* As bb_model_get_region(), before it is compiled.  What it points to lives as long as the
 * program. */
BB_API bool bb_program_get_region(const bb_program *program, uint32_t index, bb_region_info *info);

/* A stretch of values of one run-time extent at which the same kernels are cheapest. */
typedef struct bb_table_info {
  int64_t from, to;
  double seconds_from, seconds_to; /* at both ends */
  /* At the border to the next stretch: this one at to + 1, the next at `to` and at to + 1; 0:
   * last. */
  double beyond, next_before, next_beyond;
  uint32_t kernels;
  const bb_way_info *kernel; /* those that run every time, in order */
} bb_table_info;

typedef struct bb_table_options {
  uint32_t version; /* BB_VERSION */
  const char *extent;
  int64_t first, last;               /* 1 <= first <= last */
  const bb_advance_options *advance; /* its machine must be given; dims for the other extents */
} bb_table_options;

/* Takes the program to stage PARTITION and calls visit for every stretch, ascending, without gaps:
 * a stretch ends where other kernels are cheaper by more than 5 % for the first time.
 * Errors: ARGUMENT (no such extent or machine, a wrong range, a program that is fused already), and
 * those of bb_program_advance(). */
BB_API bb_status bb_program_visit_table(bb_program *program, const bb_table_options *options,
                                        void (*visit)(void *user, const bb_table_info *stretch),
                                        void *user);

/* What a machine can do at most: bounds for what is measured on it. */
typedef struct bb_ceiling {
  const char *machine;
  uint32_t units;               /* that work at once */
  double bytes_per_second;      /* of its memory */
  double cache_bytes;           /* what fits into the cache that all units share ... */
  double cache_per_second;      /* ... moves at this rate */
  double operations_per_second; /* of all units, f32: the faster of products and arithmetic */
} bb_ceiling;
/* `machine` as in bb_advance_options.  Errors: those of
 * bb_machine_write(). */
BB_API bb_status bb_machine_get_ceiling(bb_context *context, const char *machine,
                                        bb_ceiling *ceiling);

/* The names of the machines that the library knows: index 0 and up; NULL beyond the last. */
BB_API const char *bb_machine_get_name(uint32_t index);
/* A machine's description, a field a line, as it is read from a file.  `machine` as in
 * bb_advance_options.  Errors: ARGUMENT (there is none), INPUT (the file is wrong), MEMORY, IO. */
BB_API bb_status bb_machine_write(bb_context *context, const char *machine,
                                  bb_write_function *write, void *user);

/* Calls visit for every kind of operator at the program's stage with how often it occurs, most
 * frequent first; `misc` marks those that run as misc.  Errors: MEMORY. */
BB_API bb_status bb_program_visit_ops(const bb_program *program,
                                      void (*visit)(void *user, const char *op, uint32_t count,
                                                    bool misc),
                                      void *user);
/* Calls visit for every misc node, in order; `node` is the model's name for it.  Errors: MEMORY. */
BB_API bb_status bb_program_visit_misc(const bb_program *program,
                                       void (*visit)(void *user, const char *node, const char *op),
                                       void *user);

/* --- arrays and running --- */

/* A set of named arrays, as a .npz file holds them. */
typedef struct bb_arrays bb_arrays;

typedef struct bb_array_view {
  const char *name;
  const char *type; /* numpy's: "<f4", "<f2", "<i8", "|b1", ...; bf16 is "|V2" */
  uint32_t rank;
  const int64_t *shape;
  size_t bytes;
  const void *data; /* row-major, contiguous, this machine's byte order */
} bb_array_view;

/* Reads a .npz or .npy file.  *arrays is the caller's.  Errors: IO, INPUT, MEMORY. */
BB_API bb_status bb_arrays_read(bb_context *context, const char *path, bb_arrays **arrays);
BB_API bb_status bb_arrays_create(bb_context *context, bb_arrays **arrays);
/* Copies the view.  Errors: ARGUMENT (unknown type, bytes that do not fit the shape), MEMORY. */
BB_API bb_status bb_arrays_add(bb_arrays *arrays, const bb_array_view *view);
/* False beyond the last; the view lives as long as the arrays. */
BB_API bool bb_arrays_get(const bb_arrays *arrays, uint32_t index, bb_array_view *view);
/* Writes a .npz under a temporary name, then renames it.  Errors: IO, MEMORY. */
BB_API bb_status bb_arrays_write(bb_arrays *arrays, const char *path);
BB_API void bb_arrays_destroy(bb_arrays *arrays);

/* --- compiled models; blockbuster_rt.h says how they are run --- */

typedef struct bb_compile_options {
  uint32_t version; /* BB_VERSION */
  /* The folder of kernels that were compiled before: only its owner can write it.  NULL:
   * $BLOCKBUSTER_CACHE, $XDG_CACHE_HOME/blockbuster or ~/.cache/blockbuster, the first that is set;
   * "": nothing is kept.  It is held under BLOCKBUSTER_CACHE_MB (512): what was used least lately
   * goes. */
  const char *cache;
  uint32_t blocks; /* block sizes of dims; others as the scheduler likes */
  const bb_setting *block;
  /* What the model runs on: NULL, "cpu", "cuda" or "hip", the first GPU there is of NVIDIA's or of
   * AMD's, or "cuda:1", another. A folder may also be for a GPU that need not be here: "sm_90a",
   * "sm_80", "gfx942" or alike. */
  const char *device;
} bb_compile_options;

/* Compiles a program for this machine's processor, or for a GPU, whose kernels NVRTC or hipRTC
 * compile: driver and compiler are loaded now (BLOCKBUSTER_CUDA, BLOCKBUSTER_NVRTC,
 * BLOCKBUSTER_HIP, BLOCKBUSTER_HIPRTC may name them).  One that is not at stage FUSED is taken
 * there first, its kernels chosen by price, as bb_program_advance() with the machine "" and 4
 * programs does, or with that of the device's name and one (several, made by bb_program_advance()
 * before, go into a GPU's model as well).  The system's C compiler (cc, or what BLOCKBUSTER_CC
 * names) does it, or the cache has it.  Constants are copied: the program may be destroyed.  What
 * has no kernel becomes a step that sessions interpret; a warning says which and why.  options may
 * be NULL. *model is the caller's, to be released.
 * Errors: UNSUPPORTED (arrays of more axes than a plan has; a C compiler that compiles nothing; no
 * driver, no compiler of a GPU's, no GPU, or one that is too old), ARGUMENT (no such device, or only a target), IO (no compiler, no
 * folder to work in), MEMORY (a device's, too). */
BB_API bb_status bb_program_compile(bb_program *program, const bb_compile_options *options,
                                    bb_model **model);
/* The same into a folder, to be loaded by bb_model_load() where there is no compiler: plan.json,
 * kernels.so, data.bin (constants), and kernels.c, to be read; for a GPU kernels.bin (images of the
 * driver's) and launches.json (what launches of them need) in the place of both.  The folder
 * appears when it is complete; one that is there is replaced if it is empty or a compiled model.
 * Nothing interprets there: UNSUPPORTED where something has no kernel, all of it in one message.
 * Errors: as above, ARGUMENT (the folder holds something else). */
BB_API bb_status bb_program_compile_to(bb_program *program, const bb_compile_options *options,
                                       const char *folder);
/* Writes the source of a program's kernels for a GPU that need not be here, with the device library
 * that it includes, into a folder, which is made: to be read, or to be compiled elsewhere.  target:
 * "sm_80", "sm_90a", "gfx90a", "gfx942" or alike. launches.json says of each kernel's function its
 * file, and what its blocks have: threads, and bytes of shared memory.
 * Errors: ARGUMENT (no such target, a program that is not at stage FUSED), IO. */
BB_API bb_status bb_program_write_kernels(bb_program *program, const char *target,
                                          const char *folder);
/* Everything at once: a model file (.onnx), a program (.bb) or a compiled folder; options as above,
 * for files.
 * Errors: those of bb_program_read(), bb_program_compile(), bb_model_load(). */
BB_API bb_status bb_model_open(bb_context *context, const char *path,
                               const bb_compile_options *options, bb_model **model);

typedef enum bb_run_mode {
  /* Kernels where the stage is FUSED and the run not float64; what has none, or everything where
   * there is no compiler, is interpreted, and the log says so. */
  BB_RUN_BEST,
  BB_RUN_INTERPRET, /* the yardstick: slow, exact about results and counts */
  BB_RUN_KERNELS /* a missing compiler is an error; a candidate without a kernel is interpreted */
} bb_run_mode;

typedef struct bb_run_options {
  uint32_t version; /* BB_VERSION */
  bool float64;     /* no rounding between operations */
  uint32_t blocks;  /* block sizes of dims; dims without one have 64 */
  const bb_setting *block;
  uint32_t symbols; /* run-time extents that no input's shape tells */
  const bb_setting *symbol;
  bb_run_mode mode;
  uint32_t threads; /* of kernels; 0: one for each processor.  The results are the same */
  /* what kernels run on: NULL, "cpu", "cuda" or "hip" (BB_ERROR_UNSUPPORTED, with the reason,
   * where there is no driver, no compiler or no fit GPU), "cuda:1" and so on */
  const char *device;
} bb_run_options;

typedef struct bb_run_counts {
  double operations, buffered_read, buffered_written; /* the last two in bytes; of kernels: 0 */
  /* Kernels: nodes that ran in them, as misc, or interpreted for lack of a kernel; how many kernels
   * ran, and how many different ones that is. */
  uint32_t fused, misc, interpreted, kernels, sources;
} bb_run_counts;

/* A finished run. */
typedef struct bb_result bb_result;

/* The run-time extents that the shapes of inputs tell, and those that follow from them: what the
 * extents of bb_advance_options.dim are, for kernels that are chosen for such inputs.  The program
 * is at stage BLOCK or later; inputs that are not there tell nothing.
 * Errors: ARGUMENT (the stage), INPUT (a shape that does not fit), MEMORY. */
BB_API bb_status bb_program_visit_extents(bb_program *program, const bb_arrays *inputs,
                                          void (*visit)(void *user, const bb_setting *extent),
                                          void *user);

/* Runs a program at stage BLOCK or later: at BLOCK the unfused program, after it the candidates,
 * from FUSED on their chosen snapshots, as kernels or interpreted as `mode` says.  Inputs are found
 * in `inputs` by name, and run-time extents follow from their shapes.  *result is the caller's, to
 * be destroyed before the program.  options may be NULL.
 * Errors: ARGUMENT (the stage, an unknown name), INPUT (an input is missing or does not fit), IO
 * (no compiler, no folder), MEMORY. */
BB_API bb_status bb_program_run(bb_program *program, const bb_arrays *inputs,
                                const bb_run_options *options, bb_result **result);
/* The same for a compiled model, which it holds; of the options, version, symbols and threads. */
BB_API bb_status bb_model_run(bb_context *context, bb_model *model, const bb_arrays *inputs,
                              const bb_run_options *options, bb_result **result);
/* What ran: kernels, or the interpreter. */
BB_API bool bb_result_by_kernels(const bb_result *result);
BB_API void bb_result_get_counts(const bb_result *result, bb_run_counts *counts);
/* Which of a model's programs ran, as bb_model_get_variant() counts; of what holds one alone, or
 * was interpreted: 0. */
BB_API uint32_t bb_result_get_variant(const bb_result *result);
/* The outputs; *arrays is the caller's.  Errors: MEMORY. */
BB_API bb_status bb_result_get_arrays(const bb_result *result, bb_arrays **arrays);
/* Compares every output with the array of its name in `want`: it passes where |a - b| <= tolerance
 * (1 + |b|) everywhere; tolerance < 0: by type, 1e-4 for f32.  A line of report for each output
 * goes to `write` (NULL: none).  Errors: MISMATCH (also where an array is missing), MEMORY, IO. */
BB_API bb_status bb_result_compare(const bb_result *result, const bb_arrays *want, double tolerance,
                                   bb_write_function *write, void *user);
BB_API void bb_result_destroy(bb_result *result);

#ifdef __cplusplus
}
#endif
#endif
