/* select.h - which kernels: partitions a block program into candidates and chooses a snapshot of
 * each.
 */
#ifndef BB_SELECT_H
#define BB_SELECT_H

#include "../fuse/fuse.h"
#include "../graph/program.h"
#include "bill.h"
#include "machine.h"

/* Two root nodes, by serial, that must not share a candidate. */
typedef struct bb_cut {
  uint32_t serial_a, serial_b;
} bb_cut;

/* Makes program->candidate and program->step from program->root: maximal convex candidates without
 * misc and views between them.  Values that cross a boundary become LOCAL tensors; views become the
 * accesses of the candidates' inputs, so that no data moves for them.  What depends on constants
 * only becomes candidates of its own that run once.  Requires: stage BLOCK.  Keeps: root, the
 * serials of its nodes.  Fails the context when a cut names no two root nodes. */
void bb_partition(bb_program *program, uint32_t cuts, const bb_cut *cut);

/* Lays arrays out as products read them, for machines that copy whole rows into a product's memory: constants whose
 * neighbours are neither in a row nor in a column of a product's blocks are copied at load, into LOCAL tensors, by
 * candidates of their own; arrays between candidates get another order of axes.  Requires and keeps: stage PARTITION. */
void bb_lay(bb_program *program);

typedef struct bb_choose_options {
  const bb_fuse_options *fuse; /* NULL: defaults; stop_after counts over all candidates */
  /* Called before a candidate (or, after its first snapshot, a kernel of it) is fused, so that the
   * trace that follows is known to be its own.  same: the one whose result it shares, else NULL.
   * May be NULL. */
  void (*begin)(void *user, const bb_candidate *candidate, const bb_candidate *same);
  void *user;
  struct bb_pricer *pricer; /* inside select/: snapshots are chosen by price; NULL: by counts */
} bb_choose_options;

/* Fuses every candidate and chooses what runs.  The rules without extension run on the whole
 * candidate; it is then split at the edges that stay buffered into kernels, one top-level map each,
 * which become the program's candidates, and each is fused on with extension.  Of its snapshots
 * the one with the fewest counted operations is chosen, then the fewest buffered bytes.  An
 * extension that would run a product again for every row block is not taken.  Equal candidates
 * (by hash, confirmed) are fused once.  Requires: stage PARTITION.  options may be NULL. */
void bb_choose(bb_program *program, const bb_choose_options *options);

/* Makes what the kernels run safe (fuse/safety.h), in the order in which they run; those that hand
 * each other exps beyond what a type holds hand on their exponents in tensors of their own.  False:
 * a kernel runs as it is, none of its snapshots having a form of pairs.  Part of bb_choose(). */
bool bb_make_kernels_safe(bb_program *program);

/* The prices of kernels, in the order in which a selection asked for them. */
typedef struct bb_prices {
  uint32_t count;
  const double *seconds;
} bb_prices;

/* Lives as long as the program. */
typedef struct bb_selection_options {
  const bb_machine *machine;
  const double *symbol;            /* by index, for every symbol: what the extents count as */
  const bb_choose_options *choose; /* as for bb_choose(); NULL: defaults */
  bool rolling;                    /* no fold is split: the caller cuts them all, or none */
  /* Has lowering a kernel for the machine's own units of products?  Asked of what would run, in this program; a
   * kernel that it has none for is priced by plain threads.  NULL: it always has. */
  bool (*lowers)(bb_program *program, const bb_graph *graph);
  /* Of an earlier selection of an equal program by equal options: it asks for the same ones, and
   * takes a small part of the time.  NULL: none. */
  const bb_prices *known;
  /* Of this program by these options, at several points (quote.h), asked in the place of `known`;
   * NULL: none. */
  struct bb_quotes *quotes;
} bb_selection_options;

/* What it took to select. */
typedef struct bb_selection_report {
  const bb_machine *machine;
  uint32_t symbols;     /* of the program, when it was selected */
  const double *symbol; /* what they counted as */
  double seconds;       /* of all kernels that run every time, one after the other */
  uint32_t pieces;      /* parts that the candidates were cut into */
  uint32_t met;         /* kernels that a cover could have held */
  uint32_t priced;      /* those of them that differ in more than names */
  uint32_t searches;    /* for block sizes */
  uint32_t states;      /* sets of pieces that the dynamic program reached */
  bool exact;           /* no bound of the cover's search cut anything off */
  const char *why;      /* not exact: which did */
  bb_prices prices;     /* as bb_selection_options.known */
} bb_selection_report;

/* The same from stage PARTITION to FUSED by price: cuts every candidate into pieces, finds the
 * cheapest cover of them by kernels, and of every kernel the cheapest snapshot, fold and block
 * sizes.  Sets the kernels' bills and program->selection. */
void bb_select(bb_program *program, const bb_selection_options *options);

/* A stretch of values of one extent at which the same kernels, in the same ways, are taken. */
typedef struct bb_table_entry {
  double from, to;
  double first, last; /* seconds at both ends */
  /* At the border to the next entry: its own seconds at to + 1, and the next entry's at `to` and at
   * to + 1.  The last entry: 0. */
  double beyond, next_before, next_beyond;
  uint32_t kernels;
  bb_way *way; /* by kernel that runs every time, in order */
} bb_table_entry;

typedef struct bb_table {
  uint32_t symbol; /* the extent */
  double slack;    /* an entry holds until another plan is cheaper by more than this share */
  uint32_t plans;  /* different outcomes that were compared */
  uint32_t entries;
  bb_table_entry *entry; /* ascending, without gaps */
} bb_table;

/* What is cheapest for every value of one symbol from `first` to `last`; the others as options say.
 * Requires: stage PARTITION.  Keeps: the program.  The table lives in `arena`. */
bb_table *bb_select_table(bb_program *program, const bb_selection_options *options, uint32_t symbol,
                          int64_t first, int64_t last, bb_arena *arena);

/* --- programs for regions of extents --- */

/* Values that a run-time extent may have. */
typedef struct bb_symbol_range {
  uint32_t symbol;
  double first, last; /* 1 <= first <= last */
} bb_symbol_range;

/* Extents in stretches: up to limit[0], up to limit[1], ..., beyond the last limit. */
typedef struct bb_region_axis {
  uint32_t symbol, stretches;
  const double *limit; /* stretches - 1, ascending */
} bb_region_axis;

/* A few programs, and which of them is cheapest where; the first is the best of them alone. */
typedef struct bb_regions {
  uint32_t count;
  const double *const *symbol; /* by program: the extents at which it is what selection finds */
  uint32_t axes;               /* without those on which nothing depends */
  const bb_region_axis *axis;
  uint32_t cells; /* combinations of stretches, the last axis moving fastest */
  const uint32_t *cell;
  /* How many times as long as with these programs the best of all programs alone would take: the
   * geometric mean over all cells, by weight, and the worst. */
  double mean, worst;
  /* for selections of these programs: bb_selection_options.quotes; NULL: none */
  struct bb_quotes *quotes;
} bb_regions;

typedef struct bb_region_options {
  const bb_selection_options *selection; /* its symbols: what extents without a range count as */
  uint32_t ranges;
  const bb_symbol_range *range;
  uint32_t most; /* programs, 1 or more */
  /* Fills in symbols that follow from others; NULL: there are none. */
  void (*settle)(void *user, double *symbol);
  void *user;
} bb_region_options;

/* Selects the program at points of a grid over the ranges, prices what was found in every cell of a
 * finer one, and takes programs one by one, each time the one that helps most over all cells, as
 * long as the mean cell gains more than 5 %; cells of less than 20 microseconds hardly count.
 * Ranges beyond the fifth count as `selection` says.  Requires: stage PARTITION.  Keeps: the
 * program.  The regions live in `arena`. */
bb_regions *bb_select_regions(bb_program *program, const bb_region_options *options,
                              bb_arena *arena);

/* The static cost used above, with every dim in one block: operations and bytes that cross
 * buffered edges.  Extents that are symbols count as `symbol_guess`. */
void bb_count_graph(const bb_program *program, const bb_graph *graph, int64_t symbol_guess,
                    double *operations, double *buffered);

#endif
