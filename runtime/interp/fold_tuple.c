/* fold_tuple.c - two parts of a tuple combined: an expression for each component, over values whose
 * axes and lists differ from component to component.
 */
#include "machine.h"

#include <string.h>

/* A tuple compiled for a run. */
typedef struct bb_tuple {
  struct bb_tuple *next;
  const bb_monoid *monoid;
  const bb_formula *formula[BB_MONOID_COMPONENTS];
} bb_tuple;

static const bb_tuple *tuple_of(bb_run *run, const bb_monoid *monoid) {
  for (const bb_tuple *t = run->tuples; t; t = t->next)
    if (t->monoid == monoid) return t;
  bb_tuple *made = BB_NEW(run->scratch, bb_tuple, 1);
  *made = (bb_tuple){.next = run->tuples, .monoid = monoid};
  for (uint32_t k = 0; k < monoid->components; k++)
    made->formula[k] = bb_formula_compile(run, monoid->component[k].combine, true);
  return run->tuples = made;
}

/* An operand of combine seen from the value it helps to make: for each of that value's lists the
 * stride in the operand, 0 where the operand lacks the list. */
typedef struct operand {
  const bb_datum *value;
  int64_t stride[BB_INTERP_LEVELS];
} operand;

static void align(bb_run *run, const bb_monoid *monoid, const bb_datum *whole, operand *part) {
  const bb_type *a = whole->type, *b = part->value->type;
  uint32_t found = 0;
  for (uint32_t i = 0; i < a->rank; i++) {
    bool same = found < b->rank && a->level[i].dim == b->level[found].dim &&
                a->level[i].axis == b->level[found].axis;
    const bb_span *span = same ? &part->value->level[found] : NULL;
    part->stride[i] = same ? span->stride : 0;
    if (same && span->length != whole->level[i].length) found = b->rank; /* refused below */
    found += same;
  }
  bool row = b->item.row != BB_NO_DIM, col = b->item.col != BB_NO_DIM;
  if (found != b->rank || (row && part->value->row.length != whole->row.length) ||
      (col && part->value->col.length != whole->col.length))
    bb_fail(run->ctx, BB_ERROR_INTERNAL, "components combined by %s differ in shape", monoid->name);
}

/* The item of the operand that stands beside the item of the whole at these indices. */
static bb_datum item_at(const operand *part, uint32_t rank, const int64_t *index,
                        const bb_type *type) {
  bb_datum item = *part->value;
  item.type = type;
  for (uint32_t i = 0; i < rank; i++) item.data += index[i] * part->stride[i];
  return item;
}

static bool advance(const bb_datum *value, int64_t *index) {
  for (uint32_t i = value->type->rank; i-- > 0; index[i] = 0)
    if (++index[i] < value->level[i].length) return true;
  return false;
}

typedef struct work {
  bb_run *run;
  const bb_monoid *monoid;
  const bb_formula *formula;
  uint32_t args;
  operand *arg; /* NULL value: not read */
  bb_stack *stack;
} work;

/* The new value of one component, item by item, dense as `out` is. */
static void compute(const work *w, const bb_datum *out) {
  bb_datum item[2 * BB_MONOID_COMPONENTS], *in[2 * BB_MONOID_COMPONENTS];
  bb_type type[2 * BB_MONOID_COMPONENTS];
  int64_t index[BB_INTERP_LEVELS] = {0};
  if (bb_datum_count(w->run->ctx, out) == 0) return;
  size_t size = (size_t)(out->row.length * out->col.length);
  bb_datum slot = *out;
  bb_type own = {.item = out->type->item};
  slot.type = &own;
  do {
    for (uint32_t i = 0; i < w->args; i++) {
      in[i] = &item[i];
      if (!w->arg[i].value) continue;
      type[i] = (bb_type){.item = w->arg[i].value->type->item};
      item[i] = item_at(&w->arg[i], out->type->rank, index, &type[i]);
    }
    bb_formula_run_on(w->run, w->formula, NULL, in, &slot, w->stack, 0);
    slot.data += size;
  } while (advance(out, index));
}

void bb_fold_tuple(bb_run *run, const bb_monoid *monoid, bb_datum *const *acc,
                   bb_datum *const *term, bb_stack *stack) {
  const bb_tuple *tuple = tuple_of(run, monoid);
  uint32_t n = monoid->components;
  bb_stack_mark mark = bb_stack_save(stack);
  double *made[BB_MONOID_COMPONENTS];
  for (uint32_t k = 0; k < n; k++) {
    operand arg[2 * BB_MONOID_COMPONENTS];
    const bb_expr *combine = monoid->component[k].combine;
    for (uint32_t i = 0; i < 2 * n; i++) {
      arg[i].value = bb_expr_uses_arg(combine, i) ? (i < n ? acc[i] : term[i - n]) : NULL;
      if (arg[i].value) align(run, monoid, acc[k], &arg[i]);
    }
    bb_datum next = *acc[k];
    size_t count = bb_datum_count(run->ctx, acc[k]);
    made[k] = next.data = bb_stack_alloc(stack, count);
    work w = {run, monoid, tuple->formula[k], 2 * n, arg, stack};
    compute(&w, &next);
    bb_count_operations(run, bb_expr_cost(combine) * (double)count);
  }
  for (uint32_t k = 0; k < n; k++) {
    size_t count = bb_datum_count(run->ctx, acc[k]);
    if (count) memcpy(acc[k]->data, made[k], count * sizeof(double));
  }
  bb_stack_restore(stack, mark);
}
