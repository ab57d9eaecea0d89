/* unit.c - vectors that are multiplied with blocks get an axis of extent 1, and are blocks of one row.
 *
 *     s[g,n] = sum over d of q[g,d] k[g,n,d]    becomes    s[g,1,n] = sum over d of q[g,1,d] k[g,n,d]
 *
 * The index form knows no axis of extent 1, so that one query, one token or a batch of one is a vector.  Rules,
 * prices and schedules know products of blocks: what was written with one row is to become what a run-time
 * number of rows becomes where it is one.
 *
 * A contraction one of whose operands has no axis of its own asks for the axis.  What that operand is computed
 * from asks in its turn, back to where values come from memory; from there on all that is computed row by row
 * has it, up to where it would make a third axis of an item.  Memory is the same with the axis and without: sources
 * and outputs name it, everything else that meets the other kind reads through a view.
 */
#include "lower.h"

#include <string.h>

typedef struct units {
  bb_ix *ix;
  bb_arena *scratch;
  const bool *blocked; /* by class: products and reductions cut it into blocks */
  uint32_t class;      /* the axis */
  uint32_t *order, count;
  uint32_t *vector;   /* by node: the operand of a product that asks, or BB_NONE */
  bool *passes;       /* by node: it has the axis where its operands have it */
  bool *can, *wanted; /* by value: may have the axis; is asked to */
  uint32_t *with, *place,
      *row;      /* by value: the one with the axis, where in it; that one's only row */
  bool *rebuilt; /* by value: the one with the axis is what is computed */
  uint32_t *first_source, *next_source; /* by tensor, by node */
} units;

static bb_ix_node *node_at(const units *u, uint32_t node) {
  return &u->ix->node[node];
}

/* --- who may have it --- */

static uint32_t blocked_among(const units *u, uint32_t count, const uint32_t *dim) {
  uint32_t blocked = 0;
  for (uint32_t k = 0; k < count; k++) blocked += u->blocked[bb_ix_find(u->ix, dim[k])];
  return blocked;
}

/* Is it computed row by row, in items with room for the axis? */
static bool has_room(const units *u, const bb_ix_node *node) {
  switch (node->op) {
  case BB_IX_ELEMENTWISE:
  case BB_IX_REDUCE:
  case BB_IX_ARGREDUCE:
  case BB_IX_FOLD:
  case BB_IX_SCAN:
  case BB_IX_SLICE:
  case BB_IX_JOIN: return blocked_among(u, node->indices, node->dim) <= 1;
  default: return false;
  }
}

/* Does operand `slot` decide whether the node's result has the axis?  What is computed at load and what has fewer
 * axes than another operand repeats along it. */
static bool decides(const units *u, const bb_ix_node *node, uint32_t slot) {
  uint32_t most = 0;
  for (uint32_t i = 0; i < node->nin; i++)
    if (!u->ix->value[node->in[i].value].once && bb_ix_rank(u->ix, node->in[i].value) > most)
      most = bb_ix_rank(u->ix, node->in[i].value);
  uint32_t value = node->in[slot].value;
  return !u->ix->value[value].once && bb_ix_rank(u->ix, value) == most;
}

static bool deciders_can(const units *u, const bb_ix_node *node) {
  bool any = false;
  for (uint32_t i = 0; i < node->nin; i++) {
    if (!decides(u, node, i)) continue;
    if (!u->can[node->in[i].value]) return false;
    any = true;
  }
  return any;
}

/* The operand of a contraction without an axis of its own, if the other one has some. */
static uint32_t vector_of(const units *u, uint32_t at) {
  const bb_ix_node *node = node_at(u, at);
  uint32_t rank = bb_ix_rank(u->ix, node->out[0]), own[2] = {0, 0};
  for (uint32_t k = 0; k < rank; k++) {
    bool a = bb_ix_follows(u->ix, &node->in[0], k), b = bb_ix_follows(u->ix, &node->in[1], k);
    own[0] += a && !b;
    own[1] += b && !a;
  }
  if (!own[0] == !own[1]) return BB_NONE;
  uint32_t slot = own[0] ? 1 : 0;
  /* Rows of weights: the block's own axis stays the row, as it is for what the block is made of. */
  if (slot == 1 && u->ix->value[node->in[1].value].once) return BB_NONE;
  return slot;
}

static void find_candidates(units *u, uint32_t at) {
  const bb_ix_node *node = node_at(u, at);
  bool can = false;
  u->vector[at] = BB_NONE;
  if (node->op == BB_IX_CONTRACT && !u->ix->value[node->out[0]].once) {
    uint32_t slot = vector_of(u, at);
    if (slot != BB_NONE && u->can[node->in[slot].value]) u->vector[at] = slot;
    can = u->vector[at] != BB_NONE;
  }
  u->passes[at] = has_room(u, node) && deciders_can(u, node);
  switch (node->op) {
  case BB_IX_SOURCE:
  case BB_IX_MISC:
  case BB_IX_SLICE:
  case BB_IX_WINDOWS:
  case BB_IX_JOIN: can = true; break; /* it lies in memory */
  default: can |= u->passes[at]; break;
  }
  for (uint32_t o = 0; o < node->nout; o++) {
    const bb_ix_value *v = &u->ix->value[node->out[o]];
    /* An item of two axes is read through memory where it is to be a row. */
    u->can[node->out[o]] = can || v->once || blocked_among(u, v->rank, v->dim) > 1;
  }
}

static void ask(units *u, uint32_t at) {
  const bb_ix_node *node = node_at(u, at);
  bool asked = false;
  if (u->vector[at] != BB_NONE) u->wanted[node->in[u->vector[at]].value] = true;
  for (uint32_t o = 0; o < node->nout; o++)
    asked |= u->wanted[node->out[o]] && !u->ix->value[node->out[o]].once;
  for (uint32_t i = 0; asked && u->passes[at] && i < node->nin; i++)
    if (decides(u, node, i)) u->wanted[node->in[i].value] = true;
}

/* --- lists with one more --- */

static uint32_t *with_entry(const units *u, uint32_t count, const uint32_t *list, uint32_t at,
                            uint32_t entry) {
  uint32_t *longer = BB_NEW(u->scratch, uint32_t, (size_t)count + 1);
  for (uint32_t k = 0; k <= count; k++) longer[k] = k == at ? entry : list[k < at ? k : k - 1];
  return longer;
}

static uint32_t *shifted(const units *u, uint32_t count, const uint32_t *index, uint32_t at) {
  uint32_t *moved = BB_NEW(u->scratch, uint32_t, count);
  for (uint32_t a = 0; a < count; a++) moved[a] = index[a] + (index[a] >= at);
  return moved;
}

typedef struct shift {
  bb_program *program;
  uint32_t at;
} shift;

static const bb_expr *shift_coordinate(void *user, const bb_expr *leaf) {
  const shift *s = user;
  if (leaf->op != BB_X_COORD || leaf->index < BB_COORD_AXIS + s->at) return leaf;
  return bb_expr_coord(s->program, leaf->index + 1);
}

/* --- views --- */

/* Before the axis of a value that is cut into blocks. */
static uint32_t place_in(const units *u, uint32_t value) {
  const bb_ix_value *v = &u->ix->value[value];
  for (uint32_t a = v->rank; a-- > 0;)
    if (u->blocked[bb_ix_find(u->ix, v->dim[a])]) return a;
  return v->rank;
}

/* Storage of a tensor gets the axis, as number `axis`: all its readings take the one element along it. */
static void lengthen_storage(units *u, uint32_t tensor, uint32_t axis) {
  bb_ix *ix = u->ix;
  bb_ix_list *storage = &ix->storage[tensor];
  uint32_t count = storage->count + 1, *axes = BB_NEW(ix->arena, uint32_t, count);
  memcpy(axes, with_entry(u, storage->count, storage->at, axis, u->class), count * sizeof *axes);
  *storage = (bb_ix_list){.count = count, .at = axes};
  for (uint32_t s = u->first_source[tensor]; s != BB_NONE; s = u->next_source[s]) {
    bb_ix_node *source = node_at(u, s);
    bb_index *access = BB_NEW(ix->arena, bb_index, count);
    for (uint32_t a = 0; a < count; a++)
      if (a != axis) access[a] = source->access[a < axis ? a : a - 1];
    access[axis] = (bb_index){.kind = BB_INDEX_FIXED, .dim = BB_NO_DIM, .step = 1};
    source->access = access;
    source->rank = count;
  }
}

/* The axis of a source's tensor that axis `place` of its value reads. */
static uint32_t tensor_axis(const bb_ix_node *source, uint32_t place) {
  uint32_t a = 0, seen = 0;
  while (a < source->rank && (source->access[a].kind == BB_INDEX_FIXED || seen++ < place)) a++;
  return a;
}

/* A source that reads the tensor with the axis. */
static void add_to_source(units *u, uint32_t value, uint32_t place) {
  bb_ix *ix = u->ix;
  bb_ix_value v = ix->value[value];
  uint32_t tensor = node_at(u, v.node)->tensor, axis = 0, before = 0;
  const bb_ix_list *storage = &ix->storage[tensor];
  while (axis < storage->count && storage->at[axis] != u->class) axis++;
  if (axis == storage->count) {
    axis = tensor_axis(node_at(u, v.node), place);
    lengthen_storage(u, tensor, axis);
  }
  const bb_ix_node old = *node_at(u, v.node);
  for (uint32_t a = 0; a < axis; a++) before += old.access[a].kind != BB_INDEX_FIXED;
  uint32_t made = bb_ix_add(ix, BB_IX_SOURCE, v.name, v.dtype, 0, v.rank + 1, v.rank + 1,
                            with_entry(u, v.rank, v.dim, before, u->class));
  bb_ix_node *node = bb_ix_node_of(ix, made);
  bb_index *access = BB_NEW(ix->arena, bb_index, old.rank);
  memcpy(access, old.access, old.rank * sizeof *access);
  access[axis] = (bb_index){BB_INDEX_DIM, u->class, 0, 1};
  node->access = access;
  node->rank = old.rank;
  node->tensor = tensor;
  ix->value[made].once = v.once;
  u->with[value] = made;
  u->place[value] = before;
}

/* The value with the axis: of a source, another reading; else a view, a join of one piece. */
static void add_axis(units *u, uint32_t value) {
  bb_ix *ix = u->ix;
  bb_ix_value v = ix->value[value];
  uint32_t place = place_in(u, value), *own = BB_NEW(u->scratch, uint32_t, v.rank);
  if (u->with[value] != BB_NONE) return;
  if (node_at(u, v.node)->op == BB_IX_SOURCE) {
    add_to_source(u, value, place);
    return;
  }
  for (uint32_t a = 0; a < v.rank; a++) own[a] = a;
  uint32_t made = bb_ix_add(ix, BB_IX_JOIN, v.name, v.dtype, 1, v.rank + 1, v.rank + 1,
                            with_entry(u, v.rank, v.dim, place, u->class));
  bb_ix_node_of(ix, made)->at = place;
  bb_ix_use(ix, bb_ix_producer(ix, made), 0, value, shifted(u, v.rank, own, place));
  ix->value[made].once = v.once;
  u->with[value] = made;
  u->place[value] = place;
}

/* Its only row, for what is not computed by rows: a slice. */
static uint32_t only_row(units *u, uint32_t value) {
  bb_ix *ix = u->ix;
  bb_ix_value v = ix->value[value];
  if (u->row[value] != BB_NONE) return u->row[value];
  uint32_t *dim = with_entry(u, v.rank, v.dim, v.rank, u->class),
           *index = BB_NEW(u->scratch, uint32_t, (size_t)v.rank + 1);
  for (uint32_t a = 0; a <= v.rank; a++) index[a] = a < u->place[value] ? a : a - 1;
  index[u->place[value]] = v.rank;
  uint32_t made = bb_ix_add(ix, BB_IX_SLICE, v.name, v.dtype, 1, v.rank, v.rank + 1, dim);
  bb_ix_node *node = bb_ix_node_of(ix, made);
  node->at = v.rank, node->start = 0, node->step = 1;
  bb_ix_use(ix, bb_ix_producer(ix, made), 0, u->with[value], index);
  return u->row[value] = made;
}

/* --- nodes with one index more --- */

/* Where the axis stands among a node's indices: behind those that its operand has before it. */
static uint32_t place_by(const units *u, uint32_t at, uint32_t slot) {
  const bb_ix_node *node = node_at(u, at);
  const bb_ix_operand *in = &node->in[slot];
  uint32_t place = 0, most = node->nout ? bb_ix_rank(u->ix, node->out[0]) : node->indices;
  for (uint32_t a = 0; a < u->place[in->value]; a++)
    if (in->index[a] < most && in->index[a] + 1 > place) place = in->index[a] + 1;
  return place;
}

/* Operand `slot` of node `made` is that of node `at`, with the axis if `has`. */
static void use(units *u, uint32_t made, uint32_t to, uint32_t at, uint32_t slot, uint32_t place,
                bool has) {
  const bb_ix_operand *in = &node_at(u, at)->in[slot];
  uint32_t value = in->value, rank = bb_ix_rank(u->ix, value);
  uint32_t *index = shifted(u, rank, in->index, place);
  if (has) index = with_entry(u, rank, index, u->place[value], place);
  if (has)
    value = u->with[value];
  else if (u->rebuilt[value])
    value = only_row(u, value);
  bb_ix_use(u->ix, made, to, value, index);
}

/* Node `at` over one index more, its operands not set. */
static uint32_t rebuild(units *u, uint32_t at, uint32_t place) {
  bb_ix *ix = u->ix;
  const bb_ix_node old = *node_at(u, at);
  uint32_t *dim = with_entry(u, old.indices, old.dim, place, u->class);
  uint32_t made = bb_ix_node_add(ix, old.op, old.name, old.nin, old.indices + 1, dim);
  bb_ix_node *node = node_at(u, made);
  shift s = {ix->program, place};
  node->expr = old.expr ? bb_expr_map_leaves(ix->program, old.expr, shift_coordinate, &s) : NULL;
  node->monoid = old.monoid;
  node->at = old.at + (old.op != BB_IX_OUTPUT && old.at >= place);
  node->start = old.start, node->step = old.step;
  for (uint32_t o = 0; o < old.nout; o++) {
    const bb_ix_value v = ix->value[old.out[o]];
    uint32_t value = bb_ix_result(ix, made, v.dtype, v.rank + 1, dim);
    ix->value[value].once = v.once;
    u->with[old.out[o]] = value;
    u->place[old.out[o]] = place;
    u->rebuilt[old.out[o]] = true;
  }
  return made;
}

/* The operand of a node that has the axis, with the most axes; BB_NONE: none has it. */
static uint32_t leader(const units *u, uint32_t at) {
  const bb_ix_node *node = node_at(u, at);
  uint32_t best = BB_NONE;
  for (uint32_t i = 0; i < node->nin; i++)
    if (u->with[node->in[i].value] != BB_NONE &&
        (best == BB_NONE ||
         bb_ix_rank(u->ix, node->in[i].value) > bb_ix_rank(u->ix, node->in[best].value)))
      best = i;
  return best;
}

/* Pieces and components have the same axes, all of them. */
static bool is_uniform(bb_ix_op op) {
  return op == BB_IX_JOIN || op == BB_IX_FOLD || op == BB_IX_SCAN;
}

static void rebuild_by_rows(units *u, uint32_t at, uint32_t slot) {
  uint32_t place = place_by(u, at, slot), nin = node_at(u, at)->nin;
  bool uniform = is_uniform(node_at(u, at)->op);
  for (uint32_t i = 0; uniform && i < nin; i++) add_axis(u, node_at(u, at)->in[i].value);
  uint32_t made = rebuild(u, at, place);
  for (uint32_t i = 0; i < nin; i++)
    use(u, made, i, at, i, place, u->with[node_at(u, at)->in[i].value] != BB_NONE);
  if (node_at(u, at)->op == BB_IX_OUTPUT) {
    u->ix->output[node_at(u, at)->at] = made;
    bb_ix_unuse(u->ix, at, 0);
    node_at(u, at)->removed = true;
  }
}

/* The vector becomes the left operand, the axis its rows: behind what both operands have. */
static void rebuild_product(units *u, uint32_t at) {
  const bb_ix_operand *in = node_at(u, at)->in;
  uint32_t slot = u->vector[at], place = 0;
  while (bb_ix_follows(u->ix, &in[0], place) && bb_ix_follows(u->ix, &in[1], place)) place++;
  uint32_t made = rebuild(u, at, place);
  use(u, made, 0, at, slot, place, true);
  use(u, made, 1, at, 1 - slot, place, false);
}

/* Nodes that are not by rows read the only one. */
static void read_rows(units *u, uint32_t at) {
  for (uint32_t i = 0; i < node_at(u, at)->nin; i++) {
    const bb_ix_operand in = node_at(u, at)->in[i];
    if (in.value == BB_NONE || !u->rebuilt[in.value]) continue;
    bb_ix_unuse(u->ix, at, i);
    bb_ix_use(u->ix, at, i, only_row(u, in.value), in.index);
  }
}

/* Does the node go on with the axis that operand `slot` has?  What lies beside it, as keys beside new ones, gets
 * none for it. */
static bool goes_by_rows(const units *u, uint32_t at, uint32_t slot) {
  const bb_ix_node *node = node_at(u, at);
  if (slot == BB_NONE) return false;
  if (node->op == BB_IX_OUTPUT) return u->rebuilt[node->in[0].value];
  for (uint32_t i = 0; is_uniform(node->op) && i < node->nin; i++) {
    uint32_t value = node->in[i].value;
    if (u->with[value] == BB_NONE && !u->ix->value[value].once) return false;
  }
  return has_room(u, node);
}

static void go_on(units *u, uint32_t at) {
  uint32_t nout = node_at(u, at)->nout, slot = leader(u, at);
  if (u->vector[at] != BB_NONE)
    rebuild_product(u, at);
  else if (goes_by_rows(u, at, slot))
    rebuild_by_rows(u, at, slot);
  else
    read_rows(u, at);
  for (uint32_t o = 0; o < nout; o++)
    if (u->wanted[node_at(u, at)->out[o]]) add_axis(u, node_at(u, at)->out[o]);
}

/* --- the pass --- */

static void link_sources(units *u) {
  for (uint32_t i = 0; i < u->count; i++) {
    const bb_ix_node *node = node_at(u, u->order[i]);
    if (node->op != BB_IX_SOURCE) continue;
    u->next_source[u->order[i]] = u->first_source[node->tensor];
    u->first_source[node->tensor] = u->order[i];
  }
}

static uint32_t *nowhere(const units *u, uint32_t count) {
  uint32_t *list = BB_NEW(u->scratch, uint32_t, count);
  for (uint32_t i = 0; i < count; i++) list[i] = BB_NONE;
  return list;
}

void bb_ix_add_units(bb_ix *ix) {
  units u = {.ix = ix, .scratch = bb_scratch(ix->program->ctx)};
  bool any = false;
  u.blocked = bb_ix_blocked_by_operators(ix, u.scratch);
  u.count = bb_ix_order(ix, u.scratch, &u.order);
  u.vector = nowhere(&u, ix->nodes);
  u.passes = BB_NEW(u.scratch, bool, ix->nodes);
  u.can = BB_NEW(u.scratch, bool, ix->values);
  u.wanted = BB_NEW(u.scratch, bool, ix->values);
  u.rebuilt = BB_NEW(u.scratch, bool, ix->values);
  for (uint32_t i = 0; i < u.count; i++) find_candidates(&u, u.order[i]);
  for (uint32_t i = u.count; i-- > 0;) ask(&u, u.order[i]);
  for (uint32_t i = 0; i < u.count; i++) any |= u.vector[u.order[i]] != BB_NONE;
  if (any) {
    u.class = bb_ix_class(ix, bb_extent_number(ix->program, 1));
    u.with = nowhere(&u, ix->values);
    u.place = nowhere(&u, ix->values);
    u.row = nowhere(&u, ix->values);
    u.first_source = nowhere(&u, ix->array->values);
    u.next_source = nowhere(&u, ix->nodes);
    link_sources(&u);
    for (uint32_t i = 0; i < u.count; i++) go_on(&u, u.order[i]);
    for (uint32_t i = u.count; i-- > 0;) bb_ix_sweep(ix, u.order[i]);
  }
  bb_scratch_end(u.scratch);
}
