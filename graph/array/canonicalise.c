/* canonicalise.c - canonical forms: the rules in their order, the work list, and the calls that rules
 * edit with.
 *
 * Exporters spell one thing in many ways.  No operator is recognised as a whole: each rule is a
 * piece of algebra on one or two nodes, and the spellings meet at the fixed point.  Why it ends:
 * forward, gather, compose, merge shifts, refold and the slice rules remove a node; negate and reciprocal remove a
 * subtraction or division; quotient leaves one division fewer in an expression, which compose does not put back, as its
 * operands differ in rank; scale, weight scale and outward move a factor towards the outputs or into a constant; slice up moves a slice towards the inputs, join down and join contract a join towards
 * the outputs; turn brings a node closer to the inputs; keep order follows the reductions behind a node,
 * whose orders do not depend on it.
 */
#include "canon.h"

#include <string.h>

/* The order matters only for speed: what removes nodes comes first. */
static const struct {
  bb_canon_rule *apply;
  bb_exactness exactness; /* what it assumes of floating point */
} rules[] = {
    {bb_rule_tidy, BB_REASSOCIATING},
    {bb_rule_forward, BB_EXACT},
    {bb_rule_gather, BB_EXACT},
    {bb_rule_slice_source, BB_EXACT},
    {bb_rule_slice_slice, BB_EXACT},
    {bb_rule_slice_join, BB_EXACT},
    {bb_rule_join_down, BB_EXACT},
    {bb_rule_join_contract, BB_REASSOCIATING},
    {bb_rule_slice_up, BB_EXACT},
    {bb_rule_negate, BB_EXACT},
    {bb_rule_quotient, BB_EXACT},
    {bb_rule_reciprocal, BB_REASSOCIATING},
    {bb_rule_refold, BB_REASSOCIATING},
    {bb_rule_moments, BB_CANCELLING},
    {bb_rule_scale, BB_REASSOCIATING},
    {bb_rule_scale_form, BB_REASSOCIATING},
    {bb_rule_weight_scale, BB_REASSOCIATING},
    {bb_rule_weight_shift, BB_REASSOCIATING},
    {bb_rule_merge_shifts, BB_REASSOCIATING},
    {bb_rule_outward, BB_REASSOCIATING},
    {bb_rule_compose, BB_REASSOCIATING},
    {bb_rule_keep_order, BB_EXACT},
    {bb_rule_hide, BB_EXACT},
    {bb_rule_guard, BB_EXACT},
    {bb_rule_guard_row, BB_REASSOCIATING},
    {bb_rule_turn, BB_EXACT}, /* once the others are through: they look for nodes that it joins */
};
enum { RULES = sizeof rules / sizeof *rules };

/* --- the work list --- */

void bb_canon_queue(bb_canon *c, uint32_t node) {
  bb_ix_node *n = &c->ix->node[node];
  if (n->removed || n->queued) return;
  n->queued = true;
  BB_GROW(c->queue, c->work, c->capacity, (size_t)c->count + 1);
  c->work[c->count++] = node;
}

/* Of a value that very many nodes use, only the first users: a rule that depends on all uses looks
 * at their number first. */
void bb_canon_queue_users(bb_canon *c, uint32_t value) {
  uint32_t limit = 64;
  BB_IX_EACH_USE(c->ix, value, node, slot) {
    if (!limit--) break;
    bb_canon_queue(c, node);
  }
}

void bb_canon_queue_around(bb_canon *c, uint32_t node) {
  bb_canon_queue(c, node);
  for (uint32_t o = 0; o < c->ix->node[node].nout; o++)
    bb_canon_queue_users(c, c->ix->node[node].out[o]);
  for (uint32_t i = 0; i < c->ix->node[node].nin; i++)
    if (c->ix->node[node].in[i].value != BB_NONE)
      bb_canon_queue(c, bb_ix_producer(c->ix, c->ix->node[node].in[i].value));
}

static bool all_once(const bb_ix *ix, const bb_ix_node *node) {
  for (uint32_t i = 0; i < node->nin; i++)
    if (node->in[i].value == BB_NONE || !ix->value[node->in[i].value].once) return false;
  return node->nin > 0;
}

static void note_once(bb_canon *c, uint32_t node) {
  bool once = all_once(c->ix, &c->ix->node[node]);
  for (uint32_t o = 0; o < c->ix->node[node].nout; o++)
    c->ix->value[c->ix->node[node].out[o]].once = once;
}

static void set_terms(bb_canon *c, uint32_t node, uint32_t nin, const bb_term *in) {
  uint32_t *value = BB_NEW(c->scratch, uint32_t, nin);
  const uint32_t **index = BB_NEW(c->scratch, const uint32_t *, nin);
  for (uint32_t i = 0; i < nin; i++) value[i] = in[i].value, index[i] = in[i].index;
  bb_ix_set_operands(c->ix, node, nin, value, index);
  note_once(c, node);
  bb_canon_queue_around(c, node);
}

/* --- editing --- */

uint32_t bb_canon_elementwise(bb_canon *c, const char *name, const bb_expr *expr, uint32_t count,
                              const uint32_t *dim, uint32_t nin, const bb_term *in) {
  uint32_t out = bb_ix_add(c->ix, BB_IX_ELEMENTWISE, name, expr->dtype, 0, count, count, dim);
  bb_ix_node_of(c->ix, out)->expr = expr;
  set_terms(c, bb_ix_producer(c->ix, out), nin, in);
  return out;
}

uint32_t bb_canon_contract(bb_canon *c, const char *name, bb_dtype dtype, uint32_t rank,
                           uint32_t count, const uint32_t *dim, const bb_term *in) {
  uint32_t out = bb_ix_add(c->ix, BB_IX_CONTRACT, name, dtype, 0, rank, count, dim);
  set_terms(c, bb_ix_producer(c->ix, out), 2, in);
  return out;
}

uint32_t bb_canon_unary(bb_canon *c, const char *name, const bb_expr *expr, uint32_t value) {
  uint32_t rank = c->ix->value[value].rank, *index = BB_NEW(c->scratch, uint32_t, rank);
  for (uint32_t a = 0; a < rank; a++) index[a] = a;
  bb_term term = {value, index};
  return bb_canon_elementwise(c, name, expr, rank, c->ix->value[value].dim, 1, &term);
}

void bb_canon_set(bb_canon *c, uint32_t node, const bb_expr *expr, uint32_t nin,
                  const bb_term *in) {
  bb_ix_node *n = &c->ix->node[node];
  uint32_t had = n->nin, *old = BB_NEW(c->scratch, uint32_t, had);
  for (uint32_t i = 0; i < had; i++) old[i] = n->in[i].value;
  n->expr = expr;
  set_terms(c, node, nin, in);
  for (uint32_t i = 0; i < had; i++) {
    uint32_t maker = bb_ix_producer(c->ix, old[i]);
    bb_ix_sweep(c->ix, maker);
    bb_canon_queue_users(c, old[i]);
    if (!c->ix->node[maker].removed) bb_canon_queue(c, maker);
  }
}

void bb_canon_replace(bb_canon *c, uint32_t old, uint32_t with, const uint32_t *map,
                      uint32_t except) {
  bb_ix *ix = c->ix;
  uint32_t rank = ix->value[with].rank, *index = BB_NEW(c->scratch, uint32_t, rank);
  BB_IX_EACH_USE(ix, old, node, slot) {
    if (node == except) continue;
    for (uint32_t a = 0; a < rank; a++) index[a] = ix->node[node].in[slot].index[map ? map[a] : a];
    bb_ix_unuse(ix, node, slot);
    bb_ix_use(ix, node, slot, with, index);
    note_once(c, node);
    bb_canon_queue(c, node);
  }
  bb_canon_queue_around(c, bb_ix_producer(ix, with));
  bb_ix_sweep(ix, bb_ix_producer(ix, old));
}

/* --- reading --- */

bb_term bb_canon_term(const bb_canon *c, uint32_t node, uint32_t slot) {
  const bb_ix_operand *in = &c->ix->node[node].in[slot];
  return (bb_term){in->value, in->index};
}

uint32_t bb_canon_maker(const bb_canon *c, uint32_t node, uint32_t slot, bb_ix_op op) {
  uint32_t maker = bb_ix_producer(c->ix, c->ix->node[node].in[slot].value);
  return c->ix->node[maker].op == op ? maker : BB_NONE;
}

uint32_t bb_canon_axis_of(const bb_canon *c, uint32_t node, uint32_t slot, uint32_t index) {
  const bb_ix_operand *in = &c->ix->node[node].in[slot];
  for (uint32_t a = 0; a < c->ix->value[in->value].rank; a++)
    if (in->index[a] == index) return a;
  return BB_NONE;
}

bool bb_canon_only_user(const bb_canon *c, uint32_t value, uint32_t node) {
  uint32_t own = 0;
  for (uint32_t i = 0; i < c->ix->node[node].nin; i++)
    own += c->ix->node[node].in[i].value == value;
  return c->ix->value[value].uses == own;
}

bool bb_canon_same_term(const bb_canon *c, const bb_term *a, const bb_term *b) {
  if (a->value != b->value) return false;
  for (uint32_t x = 0; x < c->ix->value[a->value].rank; x++)
    if (a->index[x] != b->index[x]) return false;
  return true;
}

const bb_expr *bb_canon_scale(const bb_canon *c, uint32_t node) {
  const bb_ix_node *n = &c->ix->node[node];
  if (n->op != BB_IX_ELEMENTWISE || n->nin != 1 || !bb_dtype_is_float(n->expr->dtype)) return NULL;
  if (c->ix->value[n->in[0].value].rank != n->indices) return NULL;
  bb_program *p = c->program;
  const bb_expr *e = n->expr, *one = bb_expr_const(p, e->dtype, 1);
  if (e->op == BB_X_NEG && e->a[0]->op == BB_X_ARG) return bb_expr_const(p, e->dtype, -1);
  if (e->op != BB_X_MUL && e->op != BB_X_DIV) return NULL;
  if (e->a[0]->op == BB_X_ARG && e->a[0]->dtype == e->dtype && bb_canon_is_fixed(e->a[1]))
    return e->op == BB_X_MUL ? e->a[1] : bb_expr_make(p, BB_X_DIV, one, e->a[1], NULL);
  return NULL;
}

bool bb_canon_is_binary(const bb_expr *expr, bb_expr_op op, uint32_t *i, uint32_t *j) {
  if (expr->op != op || expr->a[0]->op != BB_X_ARG || expr->a[1]->op != BB_X_ARG) return false;
  *i = expr->a[0]->index, *j = expr->a[1]->index;
  return *i != *j;
}

/* --- the pass --- */

static bool rewrite(bb_canon *c, uint32_t node, size_t count) {
  bool done = false;
  c->scratch = bb_scratch(c->program->ctx);
  for (size_t r = 0; r < count && !done; r++)
    done = !c->ix->node[node].removed &&
           (!c->program->strict || bb_is_strict(rules[r].exactness)) && rules[r].apply(c, node);
  bb_scratch_end(c->scratch);
  c->scratch = c->queue;
  return done;
}

/* A rule that undid another's work would run for ever; none is known to, and a budget makes sure:
 * what is reached by then is right, if not canonical. */
static void run(bb_canon *c, size_t rules_tried) {
  uint64_t budget = 1000 + 200 * (uint64_t)c->ix->nodes;
  while (c->count && budget) {
    uint32_t node = c->work[--c->count];
    c->ix->node[node].queued = false;
    if (c->ix->node[node].removed) continue;
    while (budget && rewrite(c, node, rules_tried)) {
      budget--;
      bb_canon_queue_around(c, node);
    }
  }
  if (!budget) bb_log(c->program->ctx, BB_LOG_WARNING, "canonical forms: gave up before the end");
}

static void queue_all(bb_canon *c) {
  uint32_t *order, count = bb_ix_order(c->ix, c->queue, &order);
  while (count) bb_canon_queue(c, order[--count]); /* the first on top */
}

/* One use less may be what a rule waited for. */
static void released(void *user, uint32_t value) {
  bb_canon_queue(user, bb_ix_producer(((bb_canon *)user)->ix, value));
  bb_canon_queue_users(user, value);
}

void bb_array_canonicalise(bb_array *array) {
  bb_canon c = {.ix = array->index, .program = array->program};
  c.queue = c.scratch = bb_scratch(array->program->ctx);
  for (uint32_t i = 0; i < c.ix->nodes; i++) bb_ix_sweep(c.ix, i);
  uint32_t *order, count = bb_ix_order(c.ix, c.queue, &order);
  for (uint32_t i = 0; i < count; i++)
    if (c.ix->node[order[i]].op != BB_IX_SOURCE) note_once(&c, order[i]);
  c.ix->released = released;
  c.ix->released_user = &c;
  bb_canon_share(&c);
  for (size_t tried = RULES - 1; tried <= RULES; tried++) {
    do {
      queue_all(&c);
      run(&c, tried);
    } while (bb_canon_share(&c));
  }
  c.ix->released = NULL;
  bb_scratch_end(c.queue);
}
