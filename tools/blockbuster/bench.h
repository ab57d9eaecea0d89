/* bench.h - what a measurement of a model found, and how it is said.
 */
#ifndef BLOCKBUSTER_BENCH_H
#define BLOCKBUSTER_BENCH_H

#include "tool.h"

/* Seconds of repeated runs. */
typedef struct spread {
  uint32_t runs;
  double least, tenth, median, ninetieth; /* tenth: a tenth of the runs took less */
} spread;

typedef struct step_figures {
  bb_step_info info;
  spread time;
  double bytes, operations;
  double ceiling; /* the share of what the machine can do at most; 0: not known */
  bool runs;      /* part of the program that these extents have */
} step_figures;

typedef struct figures {
  bb_model_info model;
  const bb_model *of;
  uint32_t variant, variants;  /* which of its programs ran, and how many it has */
  uint32_t interpreted;        /* nodes */
  uint32_t threads;            /* 0: one for each processor */
  double read, compile, first; /* seconds: the model read and fused, compiled or loaded, run once */
  spread run;
  bb_ceiling ceiling;
  uint32_t extents;
  const bb_setting *extent;
  uint32_t steps;
  step_figures *step;
} figures;

void print_figures(const figures *f);
void print_figures_json(const figures *f);
uint32_t interpreted_nodes(const bb_model *model);
uint32_t programs_of(const bb_model *model); /* that it holds: 1 or more */
/* One line: a program of several, and what it was chosen for. */
void print_program(const bb_model *model, uint32_t variant);
/* Which of several programs runs where: regions as bb_model_get_region() or bb_program_get_region() gives them. */
typedef bool region_function(const void *of, uint32_t index, bb_region_info *info);
void print_regions(region_function *get, const void *of);
void print_nodes(const bb_model_info *model,
                 uint32_t interpreted); /* one line: what runs as what */

#endif
