/* fold.c - monoids over whole values: what folded out-ports and reductions share. */
#include "machine.h"

#include <math.h>

/* Integers as kernels have them: those of 32 bits wrap.  What doubles cannot tell is refused; an infinity, or the least or
 * greatest number, is what an empty fold has. */
static void settle_integers(const bb_run *run, const bb_node *node, const char *name,
                            bb_dtype dtype, double *data, int64_t count, int64_t step) {
  double most = dtype == BB_I32 ? 0x1p31 : 0x1p53;
  if (dtype != BB_I32 && dtype != BB_I64) return;
  for (int64_t i = 0; i < count; i++, data += step) {
    if (fabs(*data) < most || isinf(*data) || fabs(*data) == 0x1p63) continue;
    if (!(fabs(*data) <= 0x1p53))
      bb_fail(run->ctx, BB_ERROR_UNSUPPORTED,
              "%s: a result is an integer beyond 2^53 that no double holds",
              node ? bb_run_place(run, node) : name);
    if (dtype == BB_I32) *data = (int32_t)(uint32_t)(int64_t)*data;
  }
}

void bb_settle(const bb_run *run, const bb_node *node, bb_dtype dtype, double *data, size_t count,
               bool accumulator) {
  if (!bb_dtype_is_float(dtype)) settle_integers(run, node, NULL, dtype, data, (int64_t)count, 1);
  if (run->options->float64 || dtype == BB_F64 || !bb_dtype_is_float(dtype)) return;
  if (dtype == BB_F32 || accumulator)
    for (size_t i = 0; i < count; i++) data[i] = (double)(float)data[i];
  else
    for (size_t i = 0; i < count; i++) data[i] = bb_round_to(dtype, data[i]);
}

/* --- acc = acc * term --- */

typedef struct combination {
  const bb_run *run;
  const bb_monoid *monoid;
  bool single; /* round to f32 */
  bb_dtype dtype;
} combination;

static void combine_row(void *user, double *acc, const double *term, int64_t count, int64_t da,
                        int64_t dt) {
  const combination *c = user;
  switch (c->monoid->id) {
  case BB_MONOID_SUM:
    for (int64_t i = 0; i < count; i++) acc[i * da] += term[i * dt];
    break;
  case BB_MONOID_PROD:
    for (int64_t i = 0; i < count; i++)
      acc[i * da] = bb_interp_times(c->dtype, acc[i * da], term[i * dt]);
    break;
  default:
    for (int64_t i = 0; i < count; i++) bb_monoid_combine(c->monoid, &acc[i * da], &term[i * dt]);
    return;
  }
  if (c->single)
    for (int64_t i = 0; i < count; i++) acc[i * da] = (double)(float)acc[i * da];
  settle_integers(c->run, NULL, c->monoid->name, c->dtype, acc, count, da);
}

enum { MOST_COMPONENTS = BB_MONOID_COMPONENTS };

/* The elements of a value side by side, in memory to be released by the caller. */
static const double *densified(bb_run *run, const bb_datum *value, bb_stack *stack) {
  bb_span level[BB_INTERP_LEVELS];
  bb_datum dense = {.type = value->type, .level = level};
  bb_datum_shape(&dense, value);
  bb_datum_alloc(run->ctx, &dense, stack);
  bb_datum_copy(&dense, value);
  return dense.data;
}

/* Accumulators are dense (they were allocated as such). */
static void combine_pairs(bb_run *run, const bb_monoid *monoid, bb_datum *const *acc,
                          bb_datum *const *term, bb_stack *stack) {
  const double *from[MOST_COMPONENTS];
  bb_stack_mark mark = bb_stack_save(stack);
  for (uint32_t k = 0; k < monoid->components; k++) from[k] = densified(run, term[k], stack);
  size_t count = bb_datum_count(run->ctx, acc[0]);
  for (size_t i = 0; i < count; i++) {
    double held[MOST_COMPONENTS], next[MOST_COMPONENTS];
    for (uint32_t k = 0; k < monoid->components; k++) {
      held[k] = acc[k]->data[i];
      next[k] = from[k][i];
    }
    bb_monoid_combine(monoid, held, next);
    for (uint32_t k = 0; k < monoid->components; k++) acc[k]->data[i] = held[k];
  }
  bb_stack_restore(stack, mark);
}

void bb_fold_combine(bb_run *run, const bb_monoid *monoid, bb_datum *const *acc,
                     bb_datum *const *term, bb_stack *stack) {
  if (monoid->components > MOST_COMPONENTS)
    bb_fail(run->ctx, BB_ERROR_INTERNAL, "monoid %s has too many components", monoid->name);
  for (uint32_t k = 0; k < monoid->components; k++)
    if (!bb_datum_same_shape(acc[k], term[k]) ||
        (!monoid->component && !bb_datum_same_shape(acc[0], acc[k])))
      bb_fail(run->ctx, BB_ERROR_INTERNAL, "values folded by %s differ in shape", monoid->name);
  if (monoid->component) {
    bb_fold_tuple(run, monoid, acc, term, stack);
    return;
  }
  if (monoid->components == 1) {
    bb_dtype dtype = acc[0]->type->item.dtype;
    combination c = {run, monoid,
                     !run->options->float64 && bb_dtype_is_float(dtype) && dtype != BB_F64, dtype};
    bb_datum_walk(acc[0], term[0], combine_row, &c);
  } else {
    combine_pairs(run, monoid, acc, term, stack);
  }
  bb_count_operations(run, (double)bb_datum_count(run->ctx, acc[0]));
}

void bb_fold_empty(const bb_monoid *monoid, bb_datum *const *acc) {
  double empty[MOST_COMPONENTS] = {0};
  bb_monoid_empty(monoid, empty);
  for (uint32_t k = 0; k < monoid->components && k < MOST_COMPONENTS; k++)
    bb_datum_fill(acc[k], bb_monoid_empty_held(acc[k]->type->item.dtype, empty[k]));
}

/* --- reductions --- */

/* Element i of level `level` of a list. `span` has room for the levels that stay. */
static bb_datum element_of(const bb_datum *list, uint32_t level, int64_t i, bb_span *span) {
  bb_datum element = *list;
  element.level = span;
  for (uint32_t from = 0, to = 0; from < list->type->rank; from++)
    if (from != level) span[to++] = list->level[from];
  element.data = list->data + i * list->level[level].stride;
  return element;
}

static void check_reduce(bb_run *run, const bb_node *node, const bb_instance_node *at) {
  if (!node->monoid || node->monoid->components > MOST_COMPONENTS ||
      node->nin != node->monoid->components || node->nout != node->nin)
    bb_run_refuse(run, node, "a reduction has one operand and one result for each component");
  for (uint32_t k = 0; k < node->nin; k++) {
    const bb_type *list = at->in[k]->type, *result = node->out[k].type;
    if (list->level[node->in[k].level].axis != BB_AXIS_NONE)
      bb_run_refuse(run, node, "the level folded chunks an axis of the item");
    if (result->rank + (node->reduce == BB_REDUCE_FOLD) != list->rank)
      bb_run_refuse(run, node, "the result has the wrong number of lists");
    if (at->in[k]->level[node->in[k].level].length != at->in[0]->level[node->in[0].level].length)
      bb_run_refuse(run, node, "the lists differ in length");
  }
}

/* dst and term: element i of the operands, as the elements' own type. */
static void take_elements(const bb_node *node, bb_datum *const *list, bb_datum *element,
                          const bb_type *type, bb_span (*span)[BB_INTERP_LEVELS], int64_t i) {
  for (uint32_t k = 0; k < node->nin; k++) {
    element[k] = element_of(list[k], node->in[k].level, i, span[k]);
    element[k].type = &type[k];
  }
}

static void pointers_to(bb_datum *values, uint32_t count, bb_datum **pointers) {
  for (uint32_t k = 0; k < count; k++) pointers[k] = &values[k];
}

static void run_fold(bb_run *run, const bb_node *node, bb_instance_node *at, const bb_type *type,
                     bb_stack *stack) {
  bb_span span[MOST_COMPONENTS][BB_INTERP_LEVELS];
  bb_datum element[MOST_COMPONENTS], *term[MOST_COMPONENTS], *acc[MOST_COMPONENTS];
  pointers_to(element, node->nin, term);
  pointers_to(at->out, node->nin, acc);
  int64_t length = at->in[0]->level[node->in[0].level].length;
  take_elements(node, at->in, element, type, span, 0);
  for (uint32_t k = 0; k < node->nin; k++) {
    bb_datum_shape(acc[k], term[k]);
    bb_datum_alloc(run->ctx, acc[k], stack);
    if (length) bb_datum_copy(acc[k], term[k]);
  }
  if (length == 0) bb_fold_empty(node->monoid, acc);
  for (int64_t i = 1; i < length; i++) {
    take_elements(node, at->in, element, type, span, i);
    bb_fold_combine(run, node->monoid, acc, term, stack);
  }
}

static void run_scan(bb_run *run, const bb_node *node, bb_instance_node *at, const bb_type *type,
                     bb_stack *stack) {
  bb_span span[MOST_COMPONENTS][BB_INTERP_LEVELS], out_span[MOST_COMPONENTS][BB_INTERP_LEVELS],
      acc_span[MOST_COMPONENTS][BB_INTERP_LEVELS];
  bb_datum element[MOST_COMPONENTS], slot[MOST_COMPONENTS], sum[MOST_COMPONENTS];
  bb_datum *term[MOST_COMPONENTS], *to[MOST_COMPONENTS], *acc[MOST_COMPONENTS],
      *out[MOST_COMPONENTS];
  pointers_to(element, node->nin, term);
  pointers_to(slot, node->nin, to);
  pointers_to(sum, node->nin, acc);
  pointers_to(at->out, node->nin, out);
  bool exclusive = node->reduce == BB_REDUCE_SCAN_EXCLUSIVE;
  for (uint32_t k = 0; k < node->nin; k++) {
    bb_datum_shape(out[k], at->in[k]);
    bb_datum_alloc(run->ctx, out[k], stack);
  }
  bb_stack_mark mark = bb_stack_save(stack);
  take_elements(node, at->in, element, type, span, 0);
  for (uint32_t k = 0; k < node->nin; k++) {
    sum[k] = (bb_datum){.type = &type[k], .level = acc_span[k]};
    bb_datum_shape(acc[k], term[k]);
    bb_datum_alloc(run->ctx, acc[k], stack);
  }
  bb_fold_empty(node->monoid, acc);
  int64_t length = at->in[0]->level[node->in[0].level].length;
  for (int64_t i = 0; i < length; i++) {
    take_elements(node, at->in, element, type, span, i);
    take_elements(node, out, slot, type, out_span, i);
    for (uint32_t k = 0; exclusive && k < node->nin; k++) bb_datum_copy(to[k], acc[k]);
    bb_fold_combine(run, node->monoid, acc, term, stack);
    for (uint32_t k = 0; !exclusive && k < node->nin; k++) bb_datum_copy(to[k], acc[k]);
  }
  bb_stack_restore(stack, mark);
}

static const bb_level *element_levels(const bb_type *list, uint32_t level, bb_level *kept) {
  for (uint32_t from = 0, to = 0; from < list->rank; from++)
    if (from != level) kept[to++] = list->level[from];
  return kept;
}

void bb_run_reduce(bb_run *run, const bb_node *node, bb_instance_node *at, uint32_t depth) {
  check_reduce(run, node, at);
  bb_type type[MOST_COMPONENTS]; /* of elements */
  bb_level level[MOST_COMPONENTS][BB_INTERP_LEVELS];
  for (uint32_t k = 0; k < node->nin; k++) {
    type[k] = (bb_type){.item = at->in[k]->type->item, .rank = at->in[k]->type->rank - 1};
    type[k].level = element_levels(at->in[k]->type, node->in[k].level, level[k]);
    bb_count_read(run, at->in[k]);
  }
  if (node->reduce == BB_REDUCE_FOLD)
    run_fold(run, node, at, type, &run->stack[depth]);
  else
    run_scan(run, node, at, type, &run->stack[depth]);
  for (uint32_t k = 0; k < node->nout; k++)
    if (at->out[k].type->rank) bb_count_written(run, &at->out[k]);
}
