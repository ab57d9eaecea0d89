/* equal.c - are two block programs the same, up to node indices and serials?
 *
 * Nodes are paired in lockstep from inputs and outputs backwards; a pair must agree in everything
 * but its index, serial and origin.  The programs may be two: then dims and tensors agree by name and
 * content.  Linear in the size of the programs; recursion is as deep as maps nest.
 */
#include "text.h"

#include <stdlib.h>
#include <string.h>

/* Two levels being compared. */
typedef struct pairing {
  const bb_graph *a, *b;
  uint32_t *twin_of_a, *twin_of_b; /* by node; BB_NONE: not paired yet */
  uint32_t paired, waiting;
  bb_use *stack; /* pairs to look into: node of a, node of b */
} pairing;

static bool same_text(const char *a, const char *b) {
  return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_double(double a, double b) {
  return memcmp(&a, &b, sizeof a) == 0;
}

/* --- the tables of two programs --- */

static bool same_extent(const bb_program *p, const bb_extent *a, const bb_program *q,
                        const bb_extent *b) {
  if (p == q) return a == b;
  if (a->factor != b->factor || a->count != b->count) return false;
  for (uint32_t i = 0; i < a->count; i++)
    if (!same_text(p->symbol[a->symbol[i]], q->symbol[b->symbol[i]])) return false;
  return true;
}

static bool same_dim(const bb_program *p, bb_dim a, const bb_program *q, bb_dim b) {
  if (p == q || a >= p->dims || b >= q->dims) return a == b;
  const bb_dim_info *x = &p->dim[a], *y = &q->dim[b];
  return same_text(x->name, y->name) && x->blocked == y->blocked &&
         same_extent(p, x->extent, q, y->extent);
}

static bool same_tensor(const bb_program *p, uint32_t a, const bb_program *q, uint32_t b) {
  if (p == q || a >= p->tensors || b >= q->tensors) return a == b;
  const bb_tensor *x = &p->tensor[a], *y = &q->tensor[b];
  if (a != b || !same_text(x->name, y->name) || x->dtype != y->dtype || x->role != y->role)
    return false;
  if (x->axes != y->axes) return false;
  for (uint32_t i = 0; i < x->axes; i++)
    if (!same_dim(p, x->axis[i], q, y->axis[i])) return false;
  return true;
}

static bool same_type(const bb_program *p, const bb_type *a, const bb_program *q,
                      const bb_type *b) {
  if (p == q || !a || !b) return a == b;
  if (a->rank != b->rank || a->item.dtype != b->item.dtype) return false;
  if (!same_dim(p, a->item.row, q, b->item.row) || !same_dim(p, a->item.col, q, b->item.col))
    return false;
  for (uint32_t i = 0; i < a->rank; i++)
    if (a->level[i].axis != b->level[i].axis || !same_dim(p, a->level[i].dim, q, b->level[i].dim))
      return false;
  return true;
}

/* --- expressions --- */

static uint32_t place_of(const bb_expr *const *list, uint32_t count, const bb_expr *expr) {
  uint32_t low = 0, high = count;
  while (low + 1 < high) { /* sorted by id where it was made: see same_expr() */
    uint32_t middle = low + (high - low) / 2;
    if (list[middle]->id <= expr->id)
      low = middle;
    else
      high = middle;
  }
  return low;
}

static bool same_leaf(const bb_program *p, const bb_expr *a, const bb_program *q,
                      const bb_expr *b) {
  switch (a->op) {
  case BB_X_CONST: return same_double(a->number, b->number);
  case BB_X_EXTENT: return same_dim(p, a->dim, q, b->dim);
  case BB_X_SYMBOL: return same_text(p->symbol[a->index], q->symbol[b->index]);
  default: return a->index == b->index;
  }
}

static int by_id(const void *left, const void *right) {
  uint32_t a = (*(const bb_expr *const *)left)->id, b = (*(const bb_expr *const *)right)->id;
  return a < b ? -1 : a > b;
}

/* Expressions of two programs: equal ones have their nodes in one post-order. */
static bool same_expr_graph(const bb_program *p, const bb_expr *a, const bb_program *q,
                            const bb_expr *b, bb_arena *scratch) {
  uint32_t count, other;
  const bb_expr **left = bb_expr_postorder(scratch, a, &count);
  const bb_expr **right = bb_expr_postorder(scratch, b, &other);
  if (count != other) return false;
  /* twin[i] is what the i-th node of a, by id, is paired with. */
  const bb_expr **sorted = BB_NEW(scratch, const bb_expr *, count);
  const bb_expr **twin = BB_NEW(scratch, const bb_expr *, count);
  memcpy(sorted, left, count * sizeof *sorted);
  qsort(sorted, count, sizeof *sorted, by_id);
  for (uint32_t i = 0; i < count; i++) {
    const bb_expr *x = left[i], *y = right[i];
    if (x->op != y->op || x->dtype != y->dtype) return false;
    uint32_t arity = bb_expr_op_arity(x->op);
    if (arity == 0 && !same_leaf(p, x, q, y)) return false;
    for (uint32_t k = 0; k < arity; k++)
      if (twin[place_of(sorted, count, x->a[k])] != y->a[k]) return false;
    twin[place_of(sorted, count, x)] = y;
  }
  return true;
}

static bool same_expr(const bb_program *p, const bb_expr *a, const bb_program *q,
                      const bb_expr *b) {
  if (p == q || !a || !b) return a == b;
  bb_arena *scratch = bb_scratch(p->ctx);
  bool same = same_expr_graph(p, a, q, b, scratch);
  bb_scratch_end(scratch);
  return same;
}

/* --- accesses and misc --- */

static bool same_index(const bb_program *p, const bb_index *a, const bb_program *q,
                       const bb_index *b) {
  if (a->kind != b->kind) return false;
  for (uint32_t k = 0; k < bb_index_dims(a); k++)
    if (!same_dim(p, bb_index_dim(a, k), q, bb_index_dim(b, k))) return false;
  if (a->kind != BB_INDEX_DIM && a->start != b->start) return false;
  if (a->kind == BB_INDEX_WINDOW && a->by != b->by) return false;
  return bb_index_dims(a) == 0 || a->kind == BB_INDEX_DIM || a->step == b->step;
}

static bool same_access(const bb_program *p, const bb_access *a, const bb_program *q,
                        const bb_access *b, bool tensors) {
  if (p == q || !a || !b) return a == b;
  if (a->count != b->count || !same_dim(p, a->joined, q, b->joined)) return false;
  for (uint32_t i = 0; i < a->count; i++) {
    const bb_piece *x = &a->piece[i], *y = &b->piece[i];
    bool source = tensors ? same_tensor(p, x->source, q, y->source) : x->source == y->source;
    if (!source || x->rank != y->rank || !bb_piece_same_fill(x, y)) return false;
    if (a->joined != BB_NO_DIM && (x->first != y->first || x->length != y->length)) return false;
    for (uint32_t k = 0; k < x->rank; k++)
      if (!same_index(p, &x->index[k], q, &y->index[k])) return false;
  }
  return true;
}

static bool same_attribute(const bb_attribute *a, const bb_attribute *b) {
  if (a->kind != b->kind || !same_text(a->name, b->name) || a->count != b->count) return false;
  switch (a->kind) {
  case BB_ATTR_INT: return a->i == b->i;
  case BB_ATTR_FLOAT: return same_double(a->f, b->f);
  case BB_ATTR_TEXT: return same_text(a->text, b->text);
  case BB_ATTR_INTS: return !a->count || memcmp(a->ints, b->ints, a->count * sizeof *a->ints) == 0;
  case BB_ATTR_FLOATS:
    return !a->count || memcmp(a->floats, b->floats, a->count * sizeof *a->floats) == 0;
  }
  return false;
}

static bool same_ports(const bb_program *p, const bb_misc_port *a, const bb_program *q,
                       const bb_misc_port *b, uint32_t count) {
  if (!a || !b) return !a && !b;
  for (uint32_t i = 0; i < count; i++) {
    if (a[i].absent != b[i].absent) return false;
    if (a[i].absent) continue;
    if (a[i].dtype != b[i].dtype || a[i].rank != b[i].rank || a[i].axes != b[i].axes) return false;
    for (uint32_t k = 0; k < a[i].rank; k++)
      if (!same_extent(p, a[i].shape[k], q, b[i].shape[k])) return false;
    for (uint32_t k = 0; k < a[i].axes; k++)
      if (!same_dim(p, a[i].axis[k], q, b[i].axis[k])) return false;
  }
  return true;
}

static bool same_misc(const bb_program *p, const bb_misc *a, const bb_program *q,
                      const bb_misc *b) {
  if (!a || !b) return a == b;
  if (!same_text(a->domain, b->domain) || !same_text(a->op, b->op) || a->version != b->version ||
      a->count != b->count || a->nin != b->nin || a->nout != b->nout)
    return false;
  for (uint32_t i = 0; i < a->count; i++)
    if (!same_attribute(&a->attribute[i], &b->attribute[i])) return false;
  return same_ports(p, a->in, q, b->in, a->nin) && same_ports(p, a->out, q, b->out, a->nout);
}

/* --- monoids --- */

static bool same_component(const bb_program *p, const bb_monoid_component *a, const bb_program *q,
                           const bb_monoid_component *b) {
  return a->dtype == b->dtype && a->fold == b->fold && same_double(a->empty, b->empty) &&
         same_double(a->low, b->low) && same_double(a->high, b->high) &&
         same_expr(p, a->combine, q, b->combine) && same_expr(p, a->repair, q, b->repair);
}

static bool same_monoid(const bb_program *p, const bb_monoid *a, const bb_program *q,
                        const bb_monoid *b) {
  if (a == b) return true;
  if (p == q || !a || !b || !a->component || !b->component) return false;
  if (a->components != b->components) return false;
  for (uint32_t k = 0; k < a->components; k++)
    if (!same_component(p, &a->component[k], q, &b->component[k])) return false;
  return true;
}

/* --- nodes --- */

static bool same_out(const bb_program *p, const bb_out *a, const bb_program *q, const bb_out *b) {
  return same_type(p, a->type, q, b->type) && a->mode == b->mode && a->axis == b->axis &&
         same_monoid(p, a->fold, q, b->fold) && a->component == b->component &&
         a->resumes == b->resumes;
}

static bool same_map(const bb_program *p, const bb_node *a, const bb_program *q, const bb_node *b) {
  uint32_t chunks = bb_chunk_depth(a);
  if (!same_dim(p, a->dim, q, b->dim) || a->part != b->part || chunks != bb_chunk_depth(b))
    return false;
  for (uint32_t i = 0; i < chunks; i++)
    if (!same_dim(p, a->chunk->dim[i], q, b->chunk->dim[i])) return false;
  return true;
}

/* Everything but operands and what is inside a map. */
static bool same_node(const bb_program *p, const bb_node *a, const bb_program *q,
                      const bb_node *b) {
  if (a->kind != b->kind || a->nin != b->nin || a->nout != b->nout) return false;
  for (uint32_t i = 0; i < a->nout; i++)
    if (!same_out(p, &a->out[i], q, &b->out[i])) return false;
  for (uint32_t i = 0; i < a->nin; i++)
    if (a->in[i].level != b->in[i].level) return false;
  switch (a->kind) {
  case BB_NODE_INPUT:
  case BB_NODE_OUTPUT:
    return same_tensor(p, a->tensor, q, b->tensor) && same_access(p, a->access, q, b->access, true);
  case BB_NODE_FUNC:
    if (bb_op_has_monoid(a->op) && !same_monoid(p, a->rows, q, b->rows)) return false;
    return a->op == b->op && same_expr(p, a->expr, q, b->expr);
  case BB_NODE_MAP: return same_map(p, a, q, b);
  case BB_NODE_REDUCE: return same_monoid(p, a->monoid, q, b->monoid) && a->reduce == b->reduce;
  case BB_NODE_VIEW: return same_access(p, a->access, q, b->access, false);
  case BB_NODE_MISC: return same_misc(p, a->misc, q, b->misc);
  case BB_NODE_REMOVED: break;
  }
  return true;
}

/* --- pairing --- */

static bool pair(pairing *p, uint32_t a, uint32_t b) {
  if (a == BB_NONE || b == BB_NONE) return a == b;
  if (p->twin_of_a[a] != BB_NONE || p->twin_of_b[b] != BB_NONE) return p->twin_of_a[a] == b;
  const bb_node *x = p->a->node[a], *y = p->b->node[b];
  if (!same_node(p->a->program, x, p->b->program, y)) return false;
  if (x->kind == BB_NODE_MAP && !bb_graph_equal(x->inner, y->inner)) return false;
  p->twin_of_a[a] = b;
  p->twin_of_b[b] = a;
  p->paired++;
  p->stack[p->waiting++] = (bb_use){a, b};
  return true;
}

static bool pair_operands(pairing *p) {
  while (p->waiting) {
    bb_use top = p->stack[--p->waiting];
    const bb_node *x = p->a->node[top.node], *y = p->b->node[top.port];
    for (uint32_t i = 0; i < x->nin; i++) {
      bb_value u = x->in[i].src, v = y->in[i].src;
      if (u.port != v.port || !pair(p, u.node, v.node)) return false;
    }
  }
  return true;
}

/* Nodes that no output needs: paired from the last in topological order. */
static bool pair_rest(pairing *p, bb_arena *scratch) {
  uint32_t *a = BB_NEW(scratch, uint32_t, p->a->live), *b = BB_NEW(scratch, uint32_t, p->b->live);
  uint32_t n = bb_topological_order(p->a, scratch, a), m = bb_topological_order(p->b, scratch, b);
  while (p->paired < p->a->live) {
    while (n && p->twin_of_a[a[n - 1]] != BB_NONE) n--;
    while (m && p->twin_of_b[b[m - 1]] != BB_NONE) m--;
    if (!n || !m || !pair(p, a[n - 1], b[m - 1]) || !pair_operands(p)) return false;
  }
  return true;
}

static bool pair_all(pairing *p, bb_arena *scratch) {
  const bb_graph *a = p->a, *b = p->b;
  p->twin_of_a = BB_NEW(scratch, uint32_t, a->count);
  p->twin_of_b = BB_NEW(scratch, uint32_t, b->count);
  p->stack = BB_NEW(scratch, bb_use, a->live);
  memset(p->twin_of_a, 0xFF, a->count * sizeof *p->twin_of_a);
  memset(p->twin_of_b, 0xFF, b->count * sizeof *p->twin_of_b);
  for (uint32_t i = 0; i < a->ninputs; i++)
    if (!pair(p, a->input[i], b->input[i])) return false;
  for (uint32_t i = 0; i < a->noutputs; i++)
    if (!pair(p, a->output[i], b->output[i])) return false;
  return pair_operands(p) && (p->paired == a->live || pair_rest(p, scratch));
}

bool bb_graph_equal(const bb_graph *a, const bb_graph *b) {
  if (a == b) return true;
  if (a->live != b->live || a->ninputs != b->ninputs || a->noutputs != b->noutputs) return false;
  bb_arena *scratch = bb_scratch(a->program->ctx);
  pairing p = {.a = a, .b = b};
  bool equal = pair_all(&p, scratch);
  bb_scratch_end(scratch);
  return equal;
}
