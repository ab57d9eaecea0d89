/* tool.h - what the files of the program share.  The program knows the public header only.
 */
#ifndef BLOCKBUSTER_TOOL_H
#define BLOCKBUSTER_TOOL_H

#include <blockbuster.h>
#include <stdio.h>

/* Exit codes. */
enum { EXIT_GOOD = 0, EXIT_DIFFERENT = 1, EXIT_WRONG_CALL = 2, EXIT_REFUSED = 3 };

typedef enum command_id {
  CONVERT,
  FUSE,
  SELECT,
  DOT,
  COMPILE,
  RUN,
  BENCH,
  REDUCE,
  INFO,
  COMMANDS
} command_id;

enum { MOST_CUTS = 64, MOST_SETTINGS = 64 };

/* What the command line says; -1 or NULL where it says nothing. */
typedef struct settings {
  command_id command;
  const char *model; /* NULL: the command is about a machine */
  const char *output, *dump;
  const char *inputs, *expect, *device, *candidate, *machine, *target, *run_command;
  int stage;
  const char *table; /* the extent of --table */
  int64_t table_first, table_last;
  int64_t snapshot, step, collapse;
  double tolerance; /* < 0: by type */
  bool json, listing, explain, trace, naive, no_extend, peel, float64, unfused, quiet, verify,
      counts, stats, why, kernels, interpret, measure, strict, no_cache;
  bb_node_pair pair; /* of --why */
  uint32_t stop_after, cuts, blocks, symbols, dims, ranges, programs, threads, runs;
  uint64_t disabled;
  bb_fold_kind fold;
  uint32_t chunks;
  bb_node_pair cut[MOST_CUTS];
  bb_setting block[MOST_SETTINGS], symbol[MOST_SETTINGS], dim[MOST_SETTINGS];
  bb_extent_range range[MOST_SETTINGS]; /* of --dims */
} settings;

typedef struct tool {
  const settings *set;
  bb_context *context;
  bb_program *program; /* NULL: the model is */
  bb_model *model;     /* a compiled folder */
  double seconds;      /* to read it */
  bool progress;       /* a line of progress stands on the terminal */
  uint32_t extents;    /* that kernels are chosen for */
  bb_setting extent[MOST_SETTINGS];
} tool;

/* --- options.c --- */

/* Reads the command line after the subcommand.  Returns false when all is said (--help, or a wrong
 * call); *code is the exit code then. */
bool read_options(settings *set, int argc, char **argv, int *code);
void print_usage(FILE *to);
extern const char *const command_name[COMMANDS];

/* --- load.c --- */

/* The exit code for a status; prints the context's message. */
int report(tool *t, bb_status status);
/* Of a clock that only goes forward. */
double seconds_now(void);
/* Reads the model.  Each returns EXIT_GOOD or the exit code after reporting. */
int load(tool *t);
/* Takes the program to a stage, dumping phases and showing progress; observers of `more` (may be
 * NULL) are called too. */
int advance(tool *t, bb_stage stage, const bb_advance_options *more);
/* Kernels are from now on chosen for the extents that these inputs have. */
int expect_inputs(tool *t, const bb_arrays *inputs);
/* What the command line asks of the fusion. */
bb_advance_options advance_options(const settings *set);
/* That --machine names; NULL where it says nothing, or "counts": no prices. */
const char *priced_machine(const settings *set);
bool is_gpu(const char *device); /* of those that --device names */
/* The compiled model: the folder's, or the fused program's, compiled now.  To be released. */
int take_model(tool *t, bb_model **model);
/* The candidate that --candidate names, or the first that runs every time. */
bool find_candidate(tool *t, uint32_t *index);

/* --- output.c --- */

/* A file that appears under its name only when it is complete. */
typedef struct output {
  FILE *file;      /* standard output if the name is NULL */
  char *name;      /* where it goes in the end */
  char *temporary; /* where it is written; NULL: at `name` itself, a device or a pipe */
} output;

bool output_open(output *out, const char *name);
/* Closes and renames; removes instead if `good` is false.  False if that fails, or a write did, with a message; that of standard
 * output comes last of all (main.c). */
bool output_close(output *out, bool good);
bool write_to_file(void *user, const char *bytes, size_t length); /* user: FILE * */
/* The name with another ending: "a/b.svg", ".json" -> "a/b.json".  The caller frees it. */
char *with_ending(const char *name, const char *ending);
bool has_ending(const char *name, const char *ending);
/* Writes the program as text to `name` (NULL: standard output), large constants to a file beside. */
bb_status write_program(const bb_program *program, const char *name);
/* Draws dot text with Graphviz as a child process, which writes `name`; format: "svg", "png". */
bool run_graphviz(const char *dot, size_t length, const char *format, const char *name);
void put_json_text(FILE *to, const char *text);

/* --- select.c --- */

/* How a kernel runs and what that costs, as an object. */
void put_way_json(FILE *to, const bb_way_info *way);

/* Elements drawn for a run, the same every time: floats between -1 and 1, either truth,
 * integers 0, an index that every axis has.  The caller frees them; NULL: out of memory. */
void *draw_elements(bb_dtype dtype, size_t count);
/* As numpy's dtype.str has it, "<f4", but for bfloat16, "|V2". */
const char *numpy_type(bb_dtype dtype);
size_t element_bytes(bb_dtype dtype);

/* --- the subcommands --- */

int convert_main(tool *t);
int fuse_main(tool *t);
int select_main(tool *t);
int dot_main(tool *t);
int compile_main(tool *t);
int run_main(tool *t);
int bench_main(tool *t);
int reduce_main(tool *t);
int info_main(tool *t);

#endif
