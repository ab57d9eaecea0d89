/* canon_gather.c - a gather at the coordinates of its own result is the value itself.
 *
 *     i = the coordinates a, b
 *     y = x[i[a,b,0], i[a,b,1]]          ==>        y = x
 *
 * Vectorised indexing, as exporters write it, names every element by a grid of coordinates. An axis of
 * x that is as long as the axis of y whose coordinate it is read at is that axis; one of extent 1 is
 * read at 0.
 */
#include "canon.h"

#include <string.h>

/* x, the indices and y of a gather, by the axes that the model has. */
typedef struct gather {
  const bb_misc_port *x, *index, *out;
  bool split;      /* the last axis of the indices lists one for each axis of x from `axis` on */
  uint32_t axis;   /* the first axis of x that the indices name */
  uint32_t before; /* the axis of y that is the first of the indices' */
} gather;

static int64_t attribute(const bb_misc *misc, const char *name) {
  for (uint32_t i = 0; i < misc->count; i++)
    if (!strcmp(misc->attribute[i].name, name)) return misc->attribute[i].i;
  return 0;
}

/* Is each axis longer than 1 one of storage? */
static bool is_plain(const bb_misc_port *port) {
  uint32_t longer = 0;
  for (uint32_t a = 0; a < port->rank; a++) longer += !bb_extent_is_one(port->shape[a]);
  return !port->absent && port->axes == longer;
}

static uint32_t storage_of(const bb_misc_port *port, uint32_t axis) {
  uint32_t at = 0;
  for (uint32_t a = 0; a < axis; a++) at += !bb_extent_is_one(port->shape[a]);
  return at;
}

static uint32_t axis_of(const bb_misc_port *port, uint32_t storage) {
  for (uint32_t a = 0;; a++)
    if (!bb_extent_is_one(port->shape[a]) && storage-- == 0) return a;
}

static bool is_gather(const bb_ix_node *node, gather *g) {
  const bb_misc *misc = node->misc;
  if (node->op != BB_IX_MISC || misc->domain[0] || node->nin != 2 || misc->nin != 2) return false;
  bool split = !strcmp(misc->op, "GatherND");
  if (!split && strcmp(misc->op, "Gather") != 0) return false;
  *g = (gather){.x = &misc->in[0], .index = &misc->in[1], .out = &misc->out[0], .split = split};
  int64_t axis = attribute(misc, split ? "batch_dims" : "axis");
  g->axis = (uint32_t)(axis < 0 ? axis + g->x->rank : axis);
  g->before = split ? 0 : g->axis;
  if (split && bb_extent_value(g->index->shape[g->index->rank - 1]) < 1) return false;
  return is_plain(g->x) && is_plain(g->index) && is_plain(g->out);
}

/* How many axes of x the indices name. */
static uint32_t named(const gather *g) {
  return g->split ? (uint32_t)bb_extent_value(g->index->shape[g->index->rank - 1]) : 1;
}

typedef struct fixing {
  bb_program *program;
  uint32_t coord, number;
} fixing;

static const bb_expr *fix(void *user, const bb_expr *leaf) {
  const fixing *f = user;
  bool is = leaf->op == BB_X_COORD && leaf->index == f->coord;
  return is ? bb_expr_const(f->program, BB_I64, f->number) : leaf;
}

/* The index number `n` of those that the indices list, by their maker's coordinates. */
static const bb_expr *index_of(bb_canon *c, uint32_t at, const gather *g, uint32_t n) {
  const bb_ix_operand *in = &c->ix->node[at].in[1];
  const bb_expr *expr = bb_ix_node_of(c->ix, in->value)->expr;
  for (uint32_t a = 0; g->split && a < bb_ix_rank(c->ix, in->value); a++) {
    if (axis_of(g->index, in->index[a]) != g->index->rank - 1) continue;
    fixing f = {c->program, BB_COORD_AXIS + a, n};
    expr = bb_expr_map_leaves(c->program, expr, fix, &f);
  }
  return bb_canon_expr(c->program, expr);
}

/* The axis of y whose coordinate the expression is, or BB_NONE. */
static uint32_t follows(const bb_canon *c, uint32_t at, const gather *g, const bb_expr *expr) {
  const bb_ix_operand *in = &c->ix->node[at].in[1];
  if (expr->op != BB_X_COORD || expr->index < BB_COORD_AXIS) return BB_NONE;
  return g->before + axis_of(g->index, in->index[expr->index - BB_COORD_AXIS]);
}

/* The axis of y that axis `a` of x is; false: there is none.  Of axes of extent 1 nothing is said. */
static bool place(bb_canon *c, uint32_t at, const gather *g, uint32_t a, uint32_t *axis) {
  uint32_t count = named(g), listed = g->index->rank - g->split;
  bool is_named = a >= g->axis && a < g->axis + count;
  if (!is_named) *axis = a < g->axis ? a : g->before + listed + a - g->axis - count;
  if (!is_named) return true;
  const bb_expr *expr = index_of(c, at, g, a - g->axis);
  if (bb_extent_is_one(g->x->shape[a])) return bb_expr_is_number(expr, 0);
  *axis = follows(c, at, g, expr);
  return *axis != BB_NONE && g->x->shape[a] == g->out->shape[*axis];
}

static bool can_unite(bb_ix *ix, uint32_t a, uint32_t b) {
  uint32_t p = bb_ix_find(ix, a), q = bb_ix_find(ix, b);
  return p == q ||
         (ix->dim[p].parts == 0 && ix->dim[q].parts == 0 && ix->dim[p].extent == ix->dim[q].extent);
}

bool bb_rule_gather(bb_canon *c, uint32_t at) {
  gather g;
  const bb_ix_node *node = &c->ix->node[at];
  if (!is_gather(node, &g)) return false;
  const bb_ix_node *maker = bb_ix_node_of(c->ix, node->in[1].value);
  if (maker->op != BB_IX_ELEMENTWISE || maker->nin > 0) return false;
  uint32_t *axis = BB_NEW(c->scratch, uint32_t, g.x->rank);
  bool *taken = BB_NEW(c->scratch, bool, g.out->rank);
  for (uint32_t a = 0; a < g.x->rank; a++) {
    if (!place(c, at, &g, a, &axis[a])) return false;
    if (bb_extent_is_one(g.x->shape[a])) continue;
    if (taken[axis[a]]) return false; /* a diagonal */
    taken[axis[a]] = true;
  }
  uint32_t x = node->in[0].value, y = node->out[0], rank = bb_ix_rank(c->ix, x);
  uint32_t *map = BB_NEW(c->scratch, uint32_t, rank);
  for (uint32_t a = 0; a < rank; a++) {
    map[a] = storage_of(g.out, axis[axis_of(g.x, node->in[0].index[a])]);
    if (!can_unite(c->ix, c->ix->value[x].dim[a], c->ix->value[y].dim[map[a]])) return false;
  }
  for (uint32_t a = 0; a < rank; a++)
    bb_ix_unite(c->ix, c->ix->value[x].dim[a], c->ix->value[y].dim[map[a]]);
  bb_canon_replace(c, y, x, map, BB_NONE);
  return true;
}
