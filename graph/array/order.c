/* order.c - products, and sums of windows, give their axes in the order in which what they multiply has them.
 *
 *     p[h,t,s] = sum over d of q[t,h,d] k[s,d]              p[h,t,s] = sum over d of q[t,h,d] k[s,d]
 *     o[t,h,l] = sum over s of f(p)[h,t,s] v[s,l]    ==>    o[h,t,l] = sum over s of f(p)[h,t,s] v[s,l]
 *
 * The order in which a product was written says how its result is stored, which is for its reader to say here.  The
 * innermost of the axes that it keeps of its left operand are its rows: were they others than the operand was made in, or the
 * loops around them in another order, all of the operand would have to be in memory in between.  Of a copy that makes one axis of
 * several, too, only the order of those matters: what it is stored in is as its operand was made.
 */
#include "lower.h"

enum { LOOKED_AT = 32 }; /* nodes between two products, and operands of theirs */

typedef struct ordering {
  bb_ix *ix;
  bb_arena *scratch;
  bool
      padded; /* what is a product but for what it was padded or joined with counts, and windows of it */
  bool *tap;     /* by class: of windows */
  bool *ordered; /* by node: a sum of windows that has its product's order */
} ordering;

/* Is the value a product, or made of one element by element, or padded, or seen in windows?  Gives, for each axis of the value,
 * where it stands there, and the product. */
static const uint32_t *places_in_product(const ordering *o, uint32_t value, uint32_t *left,
                                         const bb_ix_node **product) {
  bb_ix *ix = o->ix;
  const bb_ix_node *node = bb_ix_node_of(ix, value);
  uint32_t rank = bb_ix_rank(ix, value), *place = BB_NEW(o->scratch, uint32_t, rank);
  if (ix->value[value].once || !*left) return NULL;
  --*left;
  for (uint32_t a = 0; a < rank; a++) place[a] = a;
  *product = node;
  if (node->op == BB_IX_CONTRACT || o->ordered[ix->value[value].node]) return place;
  bool seen = o->padded && node->op == BB_IX_WINDOWS;
  bool longer = o->padded && (node->op == BB_IX_PAD || node->op == BB_IX_JOIN);
  if (node->op != BB_IX_ELEMENTWISE && !longer && !seen) return NULL;
  for (uint32_t i = 0; i < node->nin; i++) {
    uint32_t has = bb_ix_rank(ix, node->in[i].value);
    if (has + seen != rank) continue;
    const uint32_t *inner = places_in_product(o, node->in[i].value, left, product);
    if (!inner) continue;
    for (uint32_t a = 0; a < has; a++) place[node->in[i].index[a]] = inner[a];
    if (seen) place[node->at + 1] = place[node->at];
    return place;
  }
  return NULL;
}

static uint32_t sides_of(bb_ix *ix, const bb_ix_node *node, uint32_t index) {
  return (uint32_t)bb_ix_follows(ix, &node->in[0], index) |
         (uint32_t)bb_ix_follows(ix, &node->in[1], index) << 1;
}

/* key: of each index of the product, by which those of the same operands stand in order; to: where each index comes to stand. */
static void sort_indices(bb_ix *ix, const bb_ix_node *node, uint32_t rank, const uint32_t *key,
                         uint32_t *to) {
  for (uint32_t i = 0; i < rank; i++) {
    uint32_t sides = sides_of(ix, node, i), before = 0, k = 0;
    for (uint32_t j = 0; j < rank; j++)
      before += sides_of(ix, node, j) == sides && (key[j] < key[i] || (key[j] == key[i] && j < i));
    while (sides_of(ix, node, k) != sides || before--) k++;
    to[i] = k;
  }
}

/* A value's axes in another order, for all who use it: number a becomes to[a]. */
static void rename_axes(const ordering *o, uint32_t value, const uint32_t *to) {
  bb_ix *ix = o->ix;
  bb_ix_value *v = &ix->value[value];
  uint32_t *axis = BB_NEW(ix->arena, uint32_t, v->rank);
  for (uint32_t a = 0; a < v->rank; a++) axis[to[a]] = v->dim[a];
  v->dim = axis;
  BB_IX_EACH_USE(ix, value, user, slot) {
    uint32_t *index = ix->node[user].in[slot].index, *old = BB_NEW(o->scratch, uint32_t, v->rank);
    for (uint32_t a = 0; a < v->rank; a++) old[a] = index[a];
    for (uint32_t a = 0; a < v->rank; a++) index[to[a]] = old[a];
  }
}

/* A node's result's axes and the indices behind them in another order: number i becomes to[i]. */
static void reorder(const ordering *o, uint32_t at, const uint32_t *to) {
  bb_ix *ix = o->ix;
  bb_ix_node *node = &ix->node[at];
  const bb_ix_value *v = &ix->value[node->out[0]];
  uint32_t *dim = BB_NEW(ix->arena, uint32_t, node->indices);
  for (uint32_t i = 0; i < node->indices; i++) dim[i < v->rank ? to[i] : i] = node->dim[i];
  node->dim = dim;
  for (uint32_t i = 0; i < node->nin; i++)
    for (uint32_t a = 0; a < bb_ix_rank(ix, node->in[i].value); a++)
      if (node->in[i].index[a] < v->rank) node->in[i].index[a] = to[node->in[i].index[a]];
  rename_axes(o, node->out[0], to);
}

/* Keys of the axes that operand `slot` has, as where it was made; not if the innermost of those that it alone has would be
 * no longer the rows that it was made in. */
static void take_order(const ordering *o, const bb_ix_node *node, uint32_t slot, uint32_t *key) {
  bb_ix *ix = o->ix;
  const bb_ix_node *product;
  const uint32_t rank = bb_ix_rank(ix, node->out[0]), *index = node->in[slot].index;
  uint32_t left = LOOKED_AT, row = BB_NONE, last = BB_NONE;
  const uint32_t *place = places_in_product(o, node->in[slot].value, &left, &product);
  if (!place) return;
  for (uint32_t a = 0; a < bb_ix_rank(ix, node->in[slot].value); a++) {
    if (index[a] >= rank || sides_of(ix, node, index[a]) != 1u << slot) continue;
    if (last == BB_NONE || place[a] > last) last = place[a];
  }
  row = bb_ix_product_axes(ix, product).row;
  if (row == BB_NONE || row != last) return;
  for (uint32_t a = 0; a < bb_ix_rank(ix, node->in[slot].value); a++)
    if (index[a] < rank) key[index[a]] = place[a];
}

static void order_product(const ordering *o, uint32_t at) {
  bb_ix *ix = o->ix;
  const bb_ix_node *node = &ix->node[at];
  uint32_t rank = bb_ix_rank(ix, node->out[0]);
  uint32_t *key = BB_NEW(o->scratch, uint32_t, rank), *to = BB_NEW(o->scratch, uint32_t, rank);
  bool moves = false;
  for (uint32_t i = 0; i < rank; i++) key[i] = i;
  for (uint32_t slot = 2; slot-- > 0;) take_order(o, node, slot, key); /* the left one says last */
  sort_indices(ix, node, rank, key, to);
  for (uint32_t i = 0; i < rank; i++) moves |= to[i] != i;
  if (moves) reorder(o, at, to);
}

/* Where number i comes to stand in the order of keys; equal ones stay as they are. */
static uint32_t rank_of(const uint32_t *key, uint32_t count, uint32_t i) {
  uint32_t before = 0;
  for (uint32_t j = 0; j < count; j++) before += key[j] < key[i] || (key[j] == key[i] && j < i);
  return before;
}

/* --- sums of windows --- */

static void order_sum(const ordering *o, uint32_t at) {
  bb_ix *ix = o->ix;
  const bb_ix_node *node = &ix->node[at], *product;
  uint32_t left = LOOKED_AT, rank = bb_ix_rank(ix, node->out[0]);
  uint32_t *key = BB_NEW(o->scratch, uint32_t, node->indices),
           *to = BB_NEW(o->scratch, uint32_t, rank);
  bool taps = node->nin == 1 && rank < node->indices &&
              o->tap[bb_ix_find(ix, node->dim[node->indices - 1])];
  const uint32_t *place = taps ? places_in_product(o, node->in[0].value, &left, &product) : NULL;
  if (!place) return;
  for (uint32_t a = 0; a < bb_ix_rank(ix, node->in[0].value); a++)
    key[node->in[0].index[a]] = place[a];
  for (uint32_t i = 0; i < rank; i++) to[i] = rank_of(key, rank, i);
  reorder(o, at, to);
  o->ordered[at] = true;
}

/* --- copies --- */

/* Axes of a copy's operand, and those of the copy that they become, whatever the others do: group k is the axes from first[k] to before
 * first[k + 1] of each. */
typedef struct grouping {
  uint32_t count, *first[2];
} grouping;

/* False: lengths that only a run tells are cut anew. */
static bool find_groups(bb_ix *ix, const bb_misc_port *from, const bb_misc_port *to, grouping *g) {
  const bb_misc_port *port[2] = {from, to};
  uint32_t at[2] = {0, 0};
  for (g->count = 0; at[0] < from->axes && at[1] < to->axes; g->count++) {
    bool same = bb_ix_find(ix, from->axis[at[0]]) == bb_ix_find(ix, to->axis[at[1]]);
    int64_t has[2] = {1, 1};
    for (int s = 0; s < 2; s++) {
      g->first[s][g->count] = at[s];
      int64_t extent = bb_ix_length(ix, port[s]->axis[at[s]++]);
      has[s] = same ? 1 : extent;
    }
    while (has[0] != has[1]) {
      int s = has[1] < has[0];
      if (has[s] < 1 || at[s] == port[s]->axes) return false;
      int64_t extent = bb_ix_length(ix, port[s]->axis[at[s]++]);
      if (extent < 1 || extent > has[!s] / has[s]) return false;
      has[s] *= extent;
    }
    if (has[0] < 1) return false;
  }
  for (int s = 0; s < 2; s++) g->first[s][g->count] = at[s];
  return at[0] == from->axes && at[1] == to->axes;
}

/* The port with its axes in the order of groups that number[] says; to[a]: where axis a comes to stand. */
static bb_misc_port moved_port(const ordering *o, const bb_misc_port *port, const grouping *g,
                               int side, const uint32_t *number, uint32_t *to) {
  uint32_t *axis = BB_NEW(o->scratch, uint32_t, port->axes), n = 0;
  for (uint32_t k = 0; k < g->count; k++)
    for (uint32_t a = g->first[side][number[k]]; a < g->first[side][number[k] + 1]; a++) {
      axis[n] = port->axis[a];
      to[a] = n++;
    }
  return bb_ix_port(o->ix, port->dtype, port->axes, axis);
}

/* A copy's axes, in the order in which the product has them that its operand is, or was made of: by the innermost of each group. */
static void order_copy(const ordering *o, uint32_t at) {
  bb_ix *ix = o->ix;
  bb_ix_node *node = &ix->node[at];
  const bb_misc_port *from = &node->misc->in[0], *to = &node->misc->out[0];
  const bb_ix_node *product;
  uint32_t left = LOOKED_AT, value = node->in[0].value, axes = from->axes, most = axes + to->axes;
  grouping g = {
      .first = {BB_NEW(o->scratch, uint32_t, most + 1), BB_NEW(o->scratch, uint32_t, most + 1)}};
  const uint32_t *place = places_in_product(o, value, &left, &product);
  if (!place || bb_ix_rank(ix, value) != axes || !find_groups(ix, from, to, &g)) return;
  uint32_t *key = BB_NEW(o->scratch, uint32_t, axes), *number = BB_NEW(o->scratch, uint32_t, most),
           *in = BB_NEW(o->scratch, uint32_t, axes), *out = BB_NEW(o->scratch, uint32_t, most),
           *last = BB_NEW(o->scratch, uint32_t, most);
  for (uint32_t a = 0; a < axes; a++) key[node->in[0].index[a]] = place[a];
  for (uint32_t k = 0; k < g.count; k++) last[k] = key[g.first[0][k + 1] - 1];
  for (uint32_t k = 0; k < g.count; k++) number[rank_of(last, g.count, k)] = k;
  bb_misc *misc = BB_NEW(ix->arena, bb_misc, 1);
  bb_misc_port *port = BB_NEW(ix->arena, bb_misc_port, 2);
  port[0] = moved_port(o, from, &g, 0, number, in);
  port[1] = moved_port(o, to, &g, 1, number, out);
  *misc = *node->misc;
  misc->in = port, misc->out = port + 1;
  node->misc = misc;
  for (uint32_t a = 0; a < axes; a++) node->in[0].index[a] = in[node->in[0].index[a]];
  rename_axes(o, node->out[0], out);
}

void bb_ix_order_products(bb_ix *ix, bool sums) {
  ordering o = {.ix = ix, .scratch = bb_scratch(ix->program->ctx)};
  o.tap = BB_NEW(o.scratch, bool, ix->dims);
  o.ordered = BB_NEW(o.scratch, bool, ix->nodes);
  uint32_t *order, count = bb_ix_order(ix, o.scratch, &order);
  for (uint32_t i = 0; i < count; i++)
    if (ix->node[order[i]].op == BB_IX_CONTRACT) order_product(&o, order[i]);
  o.padded = true;
  for (uint32_t i = 0; i < count; i++) {
    const bb_ix_node *node = &ix->node[order[i]];
    if (node->op == BB_IX_WINDOWS) o.tap[bb_ix_find(ix, node->dim[node->at + 1])] = true;
    if (sums && node->op == BB_IX_REDUCE) order_sum(&o, order[i]);
    if (node->op == BB_IX_MISC && bb_misc_is_copy(node->misc)) order_copy(&o, order[i]);
  }
  bb_scratch_end(o.scratch);
}
