/* plan.h - what the parts of a plan share. */
#ifndef BB_CPU_PLAN_H
#define BB_CPU_PLAN_H

#include "../../lower/emit_c.h"
#include "cpu.h"
#include "launch.h"

/* How a step runs. */
typedef struct bb_cpu_step {
  const bb_step *step;
  const bb_kernel *kernel; /* NULL: interpreted, or misc */
  uint32_t source;         /* its number among the different ones */
  const bb_cpu_kernel *code;
  bool once;
  uint32_t nodes;
} bb_cpu_step;

struct bb_cpu_plan {
  bb_program *program;
  bb_context *ctx;
  bb_arena *arena;
  bb_cpu_options options;
  bb_emit_options emit;
  uint32_t steps;
  bb_cpu_step *step;
  bb_cpu_counts counts;
  bb_cpu_module module;
  bb_pool *pool;
  /* bound */
  int64_t *symbol;
  void **data; /* by tensor */
  void **own;  /* memory of the plan's, by tensor */
  size_t *bytes;
  char *local, *shared;
  size_t local_each, shared_size, local_size;
  bool prepared; /* what depends on constants only has run */
};

/* One step of a bound plan, those before it having run. */
void bb_cpu_run_step(bb_cpu_plan *plan, uint32_t step);

/* The graph of a step that is a candidate. */
const bb_graph *bb_cpu_graph_of(const bb_program *program, const bb_step *step);
size_t bb_cpu_element_bytes(const bb_cpu_plan *plan, bb_dtype dtype);
size_t bb_cpu_count_of(const bb_cpu_plan *plan, uint32_t tensor);
void *bb_cpu_align(void *pointer);

#endif
