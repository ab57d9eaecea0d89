/* options.c - the command line.  One table says which options there are, what they take, and which
 * subcommands know them; help is printed from it.
 */
#include "tool.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

const char *const command_name[COMMANDS] = {"convert", "fuse",  "select", "dot", "compile",
                                            "run",     "bench", "reduce", "info"};

static const char *const command_does[COMMANDS] = {
    [CONVERT] = "turn a model into a block program and write it as text",
    [FUSE] = "fuse a model into kernels; print snapshots, rewrites, reasons",
    [SELECT] = "choose kernels by price on a machine; print what each costs, and why",
    [DOT] = "draw a graph: dot, svg or png",
    [COMPILE] = "compile a model into a folder that runs without a compiler",
    [RUN] = "run a model on arrays and compare the outputs",
    [BENCH] = "time a model's kernels, beside what the machine can do at most",
    [REDUCE] = "find a small program that still fails, in a large one",
    [INFO] = "say what a model consists of and what runs unfused",
};

typedef enum option_id {
  O_HELP,
  O_OUTPUT,
  O_FOLDER,
  O_DUMP,
  O_QUIET,
  O_VERIFY,
  O_STAGE,
  O_JSON,
  O_LISTING,
  O_EXPLAIN,
  O_TRACE,
  O_WHY,
  O_STOP,
  O_DISABLE,
  O_CUT,
  O_NAIVE,
  O_NO_EXTEND,
  O_PEEL,
  O_FOLD,
  O_PRECISION,
  O_STATS,
  O_CANDIDATE,
  O_SNAPSHOT,
  O_STEP,
  O_UNFUSED,
  O_COLLAPSE,
  O_INPUTS,
  O_EXPECT,
  O_DEVICE,
  O_TOLERANCE,
  O_FLOAT64,
  O_BLOCK,
  O_SET,
  O_COUNTS,
  O_KERNELS,
  O_INTERPRET,
  O_TARGET,
  O_RUNS,
  O_NO_CACHE,
  O_COMMAND,
  O_THREADS,
  O_MACHINE,
  O_MEASURE,
  O_DIMS,
  O_RANGES,
  O_PROGRAMS,
  O_TABLE
} option_id;

enum {
  C = 1 << CONVERT,
  F = 1 << FUSE,
  S = 1 << SELECT,
  D = 1 << DOT,
  K = 1 << COMPILE,
  R = 1 << RUN,
  B = 1 << BENCH,
  X = 1 << REDUCE,
  I = 1 << INFO,
  ALL = C | F | S | D | K | R | B | X | I
};

static const struct row {
  option_id id;
  const char *name;
  char letter;
  const char *argument; /* NULL: takes none */
  unsigned commands;
  const char *help;
} table[] = {
    {O_OUTPUT, "output", 'o', "FILE", C | F | S | D | R | X | I,
     "write there instead of standard output"},
    {O_FOLDER, "output", 'o', "DIR", K, "the folder to make"},
    {O_STAGE, "stage", 0, "STAGE", C | D | R | I, "array, block, partition or fused"},
    {O_MACHINE, "machine", 0, "NAME", F | S | D | K | R | B | I,
     "choose kernels by price on this machine, a name or a file, or by \"counts\"; info alone: "
     "print it"},
    {O_DIMS, "dims", 0, "NAME=N,...", F | D | R | B | I,
     "run-time extents: to price for, of bench; others count as those of --inputs, else 1024"},
    {O_RANGES, "dims", 0, "NAME=N,...", S | K,
     "run-time extents: NAME=N, or NAME=A..B, which others are: 1..4096; programs for regions of "
     "them"},
    {O_PROGRAMS, "programs", 0, "N", S | K,
     "so many programs for regions of run-time extents at most; without: 4 where A..B is told, and "
     "of "
     "compile for a processor, else 1; 1: others count as 1024"},
    {O_TABLE, "table", 0, "NAME=A..B", S, "say what is cheapest for every value of an extent"},
    {O_MEASURE, "measure", 0, NULL, I,
     "without MODEL: measure this processor, print it as a machine"},
    {O_LISTING, "listing", 0, NULL, F, "print every snapshot as loops, loads and stores"},
    {O_EXPLAIN, "explain", 0, NULL, F, "derive and prove each repaired reduction, or say why not"},
    {O_TRACE, "trace", 0, NULL, F, "print every rewrite, and a summary of their rules"},
    {O_WHY, "why", 0, "A B", F, "say of two nodes why they did not fuse"},
    {O_STOP, "stop-after", 0, "N", F | D | K | R | B, "stop after N rewrites"},
    {O_DISABLE, "disable-rule", 0, "R", F | S | D | K | R | B | I,
     "do without a rule (repeatable)"},
    {O_CUT, "cut", 0, "A,B", F | S | D | K | R | B | I,
     "keep two top-level nodes apart (repeatable)"},
    {O_NO_EXTEND, "no-extend", 0, NULL, F | S | D | K | R | B | I, "do without map extension"},
    {O_PEEL, "peel", 0, NULL, F | S | D | K | R | B,
     "also try first iterations peeled off, for less work"},
    {O_FOLD, "fold", 0, "HOW", F | S | D | K | R | B,
     "fold all loops rolling, split-k=N or tree=N (chunks)"},
    {O_PRECISION, "precision", 0, "HOW", ALL, "fast, or strict: no rewrite that may lose digits"},
    {O_STATS, "stats", 0, NULL, F, "print how often each rule was tried and applied"},
    {O_NAIVE, "naive", 0, NULL, F, "use the plain loop of the paper; the result is the same"},
    {O_CANDIDATE, "candidate", 0, "NAME", F | D, "which candidate or kernel (name or number)"},
    {O_SNAPSHOT, "snapshot", 0, "K", D, "draw snapshot K; without: the chosen one"},
    {O_STEP, "step", 0, "K", D, "draw what rewrite K left, its nodes marked"},
    {O_UNFUSED, "unfused", 0, NULL, D | R, "take the program before fusion"},
    {O_COLLAPSE, "collapse", 0, "DEPTH", D, "draw maps at this depth closed (1: the outermost)"},
    {O_INPUTS, "inputs", 0, "FILE", R | B, "arrays to run on (.npz, .npy); bench: else drawn"},
    {O_EXPECT, "expect", 0, "FILE", R, "arrays to compare the outputs with"},
    {O_DEVICE, "device", 0, "NAME", K | R | B,
     "what runs the kernels: cpu, or a GPU: cuda (NVIDIA's) or hip (AMD's), cuda:1 the next"},
    {O_TOLERANCE, "tol", 0, "X", R, "|a - b| <= X (1 + |b|); without: by type, 1e-4 for f32"},
    {O_FLOAT64, "float64", 0, NULL, R, "compute in double precision throughout"},
    {O_BLOCK, "block", 0, "DIM=N,...", K | R | B, "elements in a block"},
    {O_SET, "set", 0, "NAME=N,...", R, "run-time extents that no input tells"},
    {O_COUNTS, "counts", 0, NULL, R,
     "print how many kernels ran; interpreted: operations and bytes"},
    {O_KERNELS, "kernels", 0, NULL, R, "kernels or nothing: a missing compiler is an error"},
    {O_INTERPRET, "interpret", 0, NULL, R, "no kernels: the interpreter, slow and exact"},
    {O_TARGET, "target", 0, "NAME", K,
     "what to compile for: cpu, or a GPU: sm_80, sm_90a, gfx942, ...: source; with --device, to "
     "run there"},
    {O_RUNS, "runs", 0, "N", B, "time N runs; without: as many as give a steady figure"},
    {O_NO_CACHE, "no-cache", 0, NULL, B, "compile anew, and keep nothing"},
    {O_COMMAND, "command", 0, "CMD", X,
     "a program fails if `sh -c CMD`, $1 its file, gives 0; without: if its kernels are wrong"},
    {O_THREADS, "threads", 0, "N", R | B, "threads of kernels; without: one for each processor"},
    {O_JSON, "json", 0, NULL, F | S | D | R | B | I, "print JSON (dot: beside the picture)"},
    {O_DUMP, "dump-phases", 0, "DIR", ALL, "write the program after every phase"},
    {O_VERIFY, "verify", 0, NULL, ALL, "run the verifier after every rewrite too"},
    {O_QUIET, "quiet", 'q', NULL, ALL, "no progress, no warnings"},
    {O_HELP, "help", 'h', NULL, ALL, "this text"},
};
enum { ROWS = sizeof table / sizeof *table };

void print_usage(FILE *to) {
  fprintf(to, "usage: blockbuster SUBCOMMAND MODEL [option...]\n\n"
              "MODEL is an ONNX model or a program in text form (.bb) at any stage;\n"
              "for run and bench also a folder that compile made.\n\n");
  for (command_id c = 0; c < COMMANDS; c++)
    fprintf(to, "  %-8s %s\n", command_name[c], command_does[c]);
  fprintf(to, "\nblockbuster SUBCOMMAND --help tells its options; blockbuster --version.\n"
              "Exit codes: 0 good, 1 the outputs differ, 2 wrong call, 3 the input was refused.\n");
}

static void print_help(command_id command) {
  printf("usage: blockbuster %s MODEL [option...]\n\n%s\n\n", command_name[command],
         command_does[command]);
  for (const struct row *row = table; row < table + ROWS; row++) {
    if (!(row->commands & (1u << command))) continue;
    char left[64];
    if (row->letter)
      snprintf(left, sizeof left, "-%c, --%s %s", row->letter, row->name,
               row->argument ? row->argument : "");
    else
      snprintf(left, sizeof left, "    --%s %s", row->name, row->argument ? row->argument : "");
    printf("  %-26s %s\n", left, row->help);
  }
}

/* --- values --- */

static bool wrong(const struct row *row, const char *value, const char *expected) {
  fprintf(stderr, "blockbuster: --%s %s: expected %s\n", row->name, value, expected);
  return false;
}

/* A whole number up to `most`, ending at `end`. */
static bool read_number(const char *text, char end, int64_t most, int64_t *number,
                        const char **rest) {
  char *stop;
  errno = 0;
  if (*text < '0' || *text > '9') return false;
  long long value = strtoll(text, &stop, 10);
  if (errno || value > most || (*stop != end && *stop != 0)) return false;
  if (end && *stop != end) return false;
  *number = value;
  *rest = *stop ? stop + 1 : stop;
  return true;
}

static bool whole_number(const struct row *row, const char *value, int64_t most, int64_t *number) {
  const char *rest;
  if (read_number(value, 0, most, number, &rest)) return true;
  char expected[64];
  snprintf(expected, sizeof expected, "a whole number up to %lld", (long long)most);
  return wrong(row, value, expected);
}

static bool node_pair(const struct row *row, const char *value, bb_node_pair *pair) {
  int64_t a, b;
  const char *rest;
  if (!read_number(value, ',', UINT32_MAX - 1, &a, &rest) ||
      !read_number(rest, 0, UINT32_MAX - 1, &b, &rest))
    return wrong(row, value, "two node numbers A,B");
  *pair = (bb_node_pair){(uint32_t)a, (uint32_t)b};
  return true;
}

/* N, or with `range` A..B; one number is both. */
static bool number_or_range(const char *text, bool range, int64_t *first, int64_t *last) {
  const char *rest;
  if (read_number(text, 0, INT64_MAX, first, &rest)) {
    *last = *first;
    return true;
  }
  return range && read_number(text, '.', INT64_MAX, first, &rest) && *rest == '.' &&
         read_number(rest + 1, 0, INT64_MAX, last, &rest) && *first < *last;
}

static bool is_set(const char *name, const bb_setting *list, uint32_t count,
                   const bb_extent_range *range, uint32_t ranges) {
  for (uint32_t i = 0; i < count; i++)
    if (strcmp(list[i].name, name) == 0) return true;
  for (uint32_t i = 0; i < ranges; i++)
    if (strcmp(range[i].name, name) == 0) return true;
  return false;
}

/* NAME=N,NAME=A..B: cut apart in place.  range: NULL: no ranges. */
static bool named_ranges(const struct row *row, char *value, bb_setting *list, uint32_t *count,
                         bb_extent_range *range, uint32_t *ranges) {
  for (char *next, *at = value; at; at = next) {
    next = strchr(at, ',');
    if (next) *next++ = 0;
    char *equals = strrchr(at, '=');
    int64_t first, last;
    if (!equals || equals == at || *count == MOST_SETTINGS || (range && *ranges == MOST_SETTINGS) ||
        !number_or_range(equals + 1, range != NULL, &first, &last))
      return wrong(row, at, range ? "NAME=N,NAME=A..B,..." : "NAME=N,NAME=N,...");
    *equals = 0;
    if (is_set(at, list, *count, range, range ? *ranges : 0))
      return wrong(row, at, "each name once");
    if (first == last)
      list[(*count)++] = (bb_setting){at, first};
    else
      range[(*ranges)++] = (bb_extent_range){at, first, last};
  }
  return true;
}

static bool named_numbers(const struct row *row, char *value, bb_setting *list, uint32_t *count) {
  return named_ranges(row, value, list, count, NULL, NULL);
}

static bool stage_named(const struct row *row, const char *value, int *stage) {
  for (int s = BB_STAGE_ARRAY; s <= BB_STAGE_FUSED; s++) {
    if (strcmp(value, bb_stage_name((bb_stage)s)) != 0) continue;
    *stage = s;
    return true;
  }
  return wrong(row, value, "array, block, partition or fused");
}

static bool rule_named(const struct row *row, const char *value, uint64_t *disabled) {
  int64_t wanted;
  uint32_t number;
  const char *name;
  const char *rest;
  if (!read_number(value, 0, 63, &wanted, &rest)) return wrong(row, value, "the number of a rule");
  for (uint32_t i = 0; bb_rule_get(i, &number, &name, NULL); i++) {
    if (number != (uint32_t)wanted) continue;
    *disabled |= (uint64_t)1 << wanted;
    return true;
  }
  return wrong(row, value, "the number of a rule");
}

/* rolling, split-k=N, tree or tree=N. */
static bool fold_named(const struct row *row, const char *value, settings *set) {
  const char *equals = strchr(value, '='), *rest;
  size_t length = equals ? (size_t)(equals - value) : strlen(value);
  bool split = length == 7 && memcmp(value, "split-k", 7) == 0;
  bool tree = length == 4 && memcmp(value, "tree", 4) == 0;
  int64_t chunks = 8; /* of a tree without a number */
  if (equals && !read_number(equals + 1, 0, BB_FOLD_CHUNKS, &chunks, &rest)) chunks = 0;
  set->fold = split ? BB_FOLD_SPLIT_K : tree ? BB_FOLD_TREE : BB_FOLD_ROLLING;
  set->chunks = (uint32_t)chunks;
  if (strcmp(value, "rolling") == 0 || ((tree || (split && equals)) && chunks > 0)) return true;
  return wrong(row, value, "rolling, split-k=N or tree=N, N from 1 to 4096");
}

static bool precision(const struct row *row, const char *value, bool *strict) {
  *strict = strcmp(value, "strict") == 0;
  return *strict || strcmp(value, "fast") == 0 || wrong(row, value, "fast or strict");
}

static bool tolerance(const struct row *row, const char *value, double *number) {
  char *stop;
  *number = strtod(value, &stop);
  return (*value && !*stop && *number >= 0) || wrong(row, value, "a number >= 0");
}

/* --why A B: two arguments, or one with a comma. */
static bool why(const struct row *row, settings *set, const char *value, int argc, char **argv) {
  int64_t a, b;
  const char *rest;
  set->why = true;
  if (strchr(value, ',')) return node_pair(row, value, &set->pair);
  if (optind >= argc || !whole_number(row, value, UINT32_MAX - 1, &a) ||
      !read_number(argv[optind], 0, UINT32_MAX - 1, &b, &rest))
    return wrong(row, value, "two node numbers A B");
  optind++;
  set->pair = (bb_node_pair){(uint32_t)a, (uint32_t)b};
  return true;
}

/* NAME=A..B */
static bool extent_range(const struct row *row, settings *set, char *value) {
  const char *rest;
  char *equals = strchr(value, '=');
  if (!equals || equals == value) return wrong(row, value, "NAME=A..B");
  *equals = 0;
  set->table = value;
  if (!read_number(equals + 1, '.', INT64_MAX, &set->table_first, &rest) || *rest != '.' ||
      !read_number(rest + 1, 0, INT64_MAX, &set->table_last, &rest))
    return wrong(row, equals + 1, "a range such as 1..4096");
  return true;
}

static bool apply(settings *set, const struct row *row, char *value, int argc, char **argv) {
  int64_t number = 0;
  switch (row->id) {
  case O_OUTPUT:
  case O_FOLDER: set->output = value; return true;
  case O_DUMP: set->dump = value; return true;
  case O_QUIET: return set->quiet = true;
  case O_VERIFY: return set->verify = true;
  case O_STAGE: return stage_named(row, value, &set->stage);
  case O_JSON: return set->json = true;
  case O_LISTING: return set->listing = true;
  case O_EXPLAIN: return set->explain = true;
  case O_TRACE: return set->trace = true;
  case O_WHY: return why(row, set, value, argc, argv);
  case O_STOP:
    if (!whole_number(row, value, UINT32_MAX, &number)) return false;
    if (number == 0) return wrong(row, value, "1 or more");
    set->stop_after = (uint32_t)number;
    return true;
  case O_DISABLE: return rule_named(row, value, &set->disabled);
  case O_CUT:
    if (set->cuts == MOST_CUTS) return wrong(row, value, "64 cuts at most");
    return node_pair(row, value, &set->cut[set->cuts++]);
  case O_NAIVE: return set->naive = true;
  case O_NO_EXTEND: return set->no_extend = true;
  case O_PEEL: return set->peel = true;
  case O_FOLD: return fold_named(row, value, set);
  case O_PRECISION: return precision(row, value, &set->strict);
  case O_STATS: return set->stats = true;
  case O_CANDIDATE: set->candidate = value; return true;
  case O_SNAPSHOT: return whole_number(row, value, UINT32_MAX - 2, &set->snapshot);
  case O_STEP: return whole_number(row, value, UINT32_MAX - 1, &set->step);
  case O_UNFUSED: return set->unfused = true;
  case O_COLLAPSE: return whole_number(row, value, 1000, &set->collapse);
  case O_INPUTS: set->inputs = value; return true;
  case O_EXPECT: set->expect = value; return true;
  case O_DEVICE: set->device = value; return true;
  case O_TOLERANCE: return tolerance(row, value, &set->tolerance);
  case O_FLOAT64: return set->float64 = true;
  case O_BLOCK: return named_numbers(row, value, set->block, &set->blocks);
  case O_SET: return named_numbers(row, value, set->symbol, &set->symbols);
  case O_COUNTS: return set->counts = true;
  case O_KERNELS: return set->kernels = true;
  case O_INTERPRET: return set->interpret = true;
  case O_TARGET: set->target = value; return true;
  case O_NO_CACHE: return set->no_cache = true;
  case O_COMMAND: set->run_command = value; return true;
  case O_RUNS:
    if (!whole_number(row, value, 2000, &number)) return false;
    if (number == 0) return wrong(row, value, "1 to 2000");
    set->runs = (uint32_t)number;
    return true;
  case O_THREADS:
    if (!whole_number(row, value, 256, &number)) return false;
    set->threads = (uint32_t)number;
    return true;
  case O_MEASURE: return set->measure = true;
  case O_MACHINE: set->machine = value; return true;
  case O_TABLE: return extent_range(row, set, value);
  case O_DIMS: return named_numbers(row, value, set->dim, &set->dims);
  case O_RANGES: return named_ranges(row, value, set->dim, &set->dims, set->range, &set->ranges);
  case O_PROGRAMS:
    if (!whole_number(row, value, BB_PROGRAMS, &number)) return false;
    if (number == 0) return wrong(row, value, "1 to 8");
    set->programs = (uint32_t)number;
    return true;
  case O_HELP: break;
  }
  return true;
}

/* --- the whole line --- */

/* getopt's tables for one subcommand. */
static void make_tables(command_id command, struct option *options, char *letters) {
  *letters++ = ':';
  for (const struct row *row = table; row < table + ROWS; row++) {
    if (!(row->commands & (1u << command))) continue;
    *options++ = (struct option){row->name, row->argument ? required_argument : no_argument, NULL,
                                 256 + (int)(row - table)};
    if (!row->letter) continue;
    *letters++ = row->letter;
    if (row->argument) *letters++ = ':';
  }
  *options = (struct option){0};
  *letters = 0;
}

static const struct row *row_of(command_id command, int found) {
  if (found >= 256) return &table[found - 256];
  for (const struct row *row = table; row < table + ROWS; row++)
    if (row->letter == found && row->commands & (1u << command)) return row;
  return NULL;
}

static bool wrong_call(const settings *set, int *code, const char *what, const char *which) {
  fprintf(stderr, "blockbuster %s: %s%s; see blockbuster %s --help\n", command_name[set->command],
          what, which, command_name[set->command]);
  *code = EXIT_WRONG_CALL;
  return false;
}

bool read_options(settings *set, int argc, char **argv, int *code) {
  struct option options[ROWS + 1];
  char letters[2 * ROWS + 2];
  set->stage = -1;
  set->snapshot = set->step = -1;
  set->tolerance = -1;
  make_tables(set->command, options, letters);
  opterr = 0;
  *code = EXIT_WRONG_CALL;
  for (int found; (found = getopt_long(argc, argv, letters, options, NULL)) != -1;) {
    if (found == '?') return wrong_call(set, code, "there is no option ", argv[optind - 1]);
    if (found == ':') return wrong_call(set, code, "a value is missing after ", argv[optind - 1]);
    const struct row *row = row_of(set->command, found);
    if (row->id == O_HELP) {
      print_help(set->command);
      *code = EXIT_GOOD;
      return false;
    }
    if (!apply(set, row, optarg, argc, argv)) return false;
  }
  if (set->measure && (optind < argc || set->machine))
    return wrong_call(set, code, "--measure goes without MODEL and --machine", "");
  if (optind == argc && set->command == INFO && (set->machine || set->measure)) return true;
  if (optind == argc) return wrong_call(set, code, "no MODEL was given", "");
  if (optind + 1 < argc)
    return wrong_call(set, code, "there is more than one MODEL: ", argv[optind + 1]);
  set->model = argv[optind];
  return true;
}
