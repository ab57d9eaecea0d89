/* nest.c - walks a block program and fills the tables that it is priced by.
 */
#include "nest_walk.h"

#include <string.h>

enum { PARTIALS = 4 };

/* What is known of a value while its level is walked. */
typedef struct known {
  enum { ABSENT, TENSOR, LIST, ITEM } place;
  uint32_t axis[2]; /* sizes of the axes whose lists were taken apart; BB_NONE: not yet, or none */
  uint64_t depends; /* loops in whose turns it differs */
  uint32_t class;   /* ITEM, LIST: where it is counted; BB_NONE: nowhere */
  bool owned;       /* by this level: its room is free after the last use */
  bool made;        /* ITEM: computed, and more than turned */
  bool waits; /* ITEM: a block that turns of a serial loop load in a wide type, or made of such */
  bb_nest_run run; /* TENSOR, LIST: of its blocks */
  bool follows;
  uint32_t
      loaded; /* TENSOR, LIST: 1 + the loop of this level that loaded or stored its blocks last; 0: none has */
  uint32_t
      before; /* ITEM: 1 + the loop beside this one that loaded or stored it before; 0: none has */
  uint32_t
      partials; /* LIST: levels of partial results, and the sizes of the loops that made them */
  struct {
    bb_dim dim;
    uint32_t size;
  } partial[PARTIALS];
} known;

/* --- one level --- */

typedef struct level {
  const bb_graph *graph;
  uint32_t nodes, *order, *place; /* place: by node, in the order */
  known **value;                  /* by node: its values */
  bool top;
} level;

static known *value_of(const level *l, bb_value value) {
  return &l->value[value.node][value.port];
}

/* Is place `at` the last at which the value is used? */
static bool dies_at(const level *l, bb_value value, uint32_t at) {
  for (bb_use u = bb_first_use(l->graph, value); u.node != BB_NONE; u = bb_next_use(l->graph, u))
    if (l->place[u.node] > at) return false;
  return true;
}

static void release(bb_nest_walker *w, const level *l, uint32_t n, uint32_t at) {
  const bb_node *node = l->graph->node[n];
  for (uint32_t p = 0; p < node->nin; p++) {
    known *value = value_of(l, node->in[p].src);
    if (!value->owned || !dies_at(l, node->in[p].src, at)) continue;
    bb_nest_leave_room(w, value->class);
    value->owned = false;
  }
}

/* A sum of products adds in place: the product itself takes no room and the addition no time. */
static bool is_summed(const bb_graph *graph, const bb_node *map, bb_value value) {
  bb_use u = bb_first_use(graph, value);
  if (!map || graph->node[value.node]->op != BB_OP_DOT || u.node == BB_NONE) return false;
  if (graph->node[u.node]->kind != BB_NODE_OUTPUT || bb_next_use(graph, u).node != BB_NONE)
    return false;
  for (uint32_t i = 0; i < graph->noutputs; i++)
    if (graph->output[i] == u.node)
      return map->out[i].mode == BB_OUT_FOLD && map->out[i].fold == bb_monoid_get(BB_MONOID_SUM);
  return false;
}

/* Does anything but products, with it on the right, read the value? */
static bool has_other_readers(const level *l, bb_value value) {
  for (bb_use u = bb_first_use(l->graph, value); u.node != BB_NONE; u = bb_next_use(l->graph, u)) {
    const bb_node *user = l->graph->node[u.node];
    if (user->kind != BB_NODE_FUNC || user->op != BB_OP_DOT || u.port != 1) return true;
  }
  return false;
}

static void tie_operands(bb_nest_walker *w, const level *l, const bb_node *node, uint32_t *axis) {
  for (uint32_t p = 0; p < node->nin; p++) {
    known *in = value_of(l, node->in[p].src);
    bb_nest_complete_axes(w, &bb_type_of(l->graph, node->in[p].src)->item, in->axis);
    axis[0] = bb_nest_unite(w, axis[0], in->axis[0]);
    axis[1] = bb_nest_unite(w, axis[1], in->axis[1]);
  }
}

/* Gives the sizes of the result's axes, and that of what is contracted or folded away. */
static uint32_t tie(bb_nest_walker *w, const level *l, const bb_node *node, uint32_t *axis) {
  axis[0] = axis[1] = BB_NONE;
  if (node->op == BB_OP_DOT || node->op == BB_OP_OUTER) {
    known *a = value_of(l, node->in[0].src), *b = value_of(l, node->in[1].src);
    bb_nest_complete_axes(w, &bb_type_of(l->graph, node->in[0].src)->item, a->axis);
    bb_nest_complete_axes(w, &bb_type_of(l->graph, node->in[1].src)->item, b->axis);
    axis[0] = a->axis[0], axis[1] = b->axis[0];
    return node->op == BB_OP_DOT ? bb_nest_unite(w, a->axis[1], b->axis[1]) : BB_NONE;
  }
  tie_operands(w, l, node, axis);
  if (node->op == BB_OP_TRANSPOSE) {
    uint32_t swap = axis[0];
    axis[0] = axis[1], axis[1] = swap;
    return BB_NONE;
  }
  const bb_item *item = &node->out[0].type->item;
  uint32_t folded = item->col == BB_NO_DIM ? axis[1] : BB_NONE;
  if (item->col == BB_NO_DIM) axis[1] = BB_NONE;
  if (item->row == BB_NO_DIM) axis[0] = BB_NONE;
  return folded;
}

static void walk_func(bb_nest_walker *w, const level *l, const bb_node *map, uint32_t n,
                      uint32_t at) {
  const bb_node *node = l->graph->node[n];
  const bb_item *item = &node->out[0].type->item;
  uint32_t axis[2], depth = tie(w, l, node, axis);
  uint64_t depends = node->op == BB_OP_ELEMENTWISE && bb_expr_uses_coord(node->expr) ? w->chain : 0;
  w->apart |= depends;
  if (node->op == BB_OP_DOT) w->apart |= value_of(l, node->in[1].src)->depends;
  for (uint32_t p = 0; p < node->nin; p++) depends |= value_of(l, node->in[p].src)->depends;
  bb_nest_complete_axes(w, item, axis);
  bool dot = node->op == BB_OP_DOT;
  bb_dtype dtype = dot ? bb_type_of(l->graph, node->in[0].src)->item.dtype : item->dtype;
  uint32_t before = 0;
  for (uint32_t p = 0; p < node->nin; p++)
    if (value_of(l, node->in[p].src)->before) before = value_of(l, node->in[p].src)->before;
  if (node->op == BB_OP_ELEMENTWISE) {
    bb_nest_add_expr(w, node->expr, axis, dtype, depends);
    bb_nest_note_special(w, node->expr, before);
  } else {
    bb_nest_add_term(w, dot ? BB_NEST_DOT : BB_NEST_VECTOR, axis, depth, bb_op_get(node->op)->cost,
                     dtype, depends);
  }
  bool waits = false, in_place = is_summed(l->graph, map, (bb_value){n, 0}), reused = false;
  for (uint32_t p = 0; p < node->nin && !dot; p++) waits |= value_of(l, node->in[p].src)->waits;
  if (dot && w->nest->terms) {
    bb_nest_term *term = &w->nest->term[w->nest->terms - 1];
    term->made = value_of(l, node->in[1].src)->made;
    term->shared = has_other_readers(l, node->in[1].src);
    term->waits = value_of(l, node->in[0].src)->waits;
    term->adds = in_place;
  }
  bool turned = node->op == BB_OP_TRANSPOSE;
  uint32_t class = bb_nest_class_of(w, BB_NEST_COMPUTED, axis, bb_dtype_bytes(item->dtype), 0);
  for (uint32_t p = 0; !dot && !reused && p < node->nin; p++) {
    known *in = value_of(l, node->in[p].src);
    reused = in->owned && in->class == class && dies_at(l, node->in[p].src, at);
    if (reused) in->owned = false;
  }
  for (uint32_t p = 0; p < node->nout; p++) {
    l->value[n][p] = (known){.place = ITEM,
                             .axis = {axis[0], axis[1]},
                             .depends = depends,
                             .class = in_place ? BB_NONE : class,
                             .owned = !in_place,
                             .made = !turned || value_of(l, node->in[0].src)->made,
                             .waits = waits};
    if (!in_place && !(reused && p == 0)) bb_nest_take_room(w, class);
  }
}

/* --- loops --- */

static uint32_t add_loop(bb_nest_walker *w, bb_dim dim, bb_part part, uint32_t serial) {
  bb_nest *nest = w->nest;
  bool blocked = bb_dim_get(w->program, dim)->blocked;
  BB_GROW(w->arena, nest->loop, w->loop_capacity, (size_t)nest->loops + 1);
  if (nest->loops + 1 >= BB_NEST_LOOPS) w->too_many = true;
  nest->loop[nest->loops] =
      (bb_nest_loop){.parent = w->around,
                     .phase = w->phase,
                     .serial = serial,
                     .dim = dim,
                     .size = blocked ? bb_nest_add_size(w, dim, false) : BB_NONE,
                     .part = part};
  return nest->loops++;
}

/* One element of a list, in a turn of `loop`; loads it once it is an item. */
static known element_of(bb_nest_walker *w, const bb_type *type, known *list, uint32_t strip,
                        uint32_t loop, bool used) {
  const bb_level *taken = &type->level[strip];
  known element = *list;
  uint32_t size = w->nest->loop[loop].size;
  element.owned = false;
  element.loaded = element.before = 0;
  element.class = list->place == LIST ? list->class : BB_NONE;
  element.depends |= (uint64_t)1 << loop;
  if (taken->axis == BB_AXIS_ROW) element.axis[0] = size;
  if (taken->axis == BB_AXIS_COL) element.axis[1] = size;
  for (uint32_t i = 0; taken->axis == BB_AXIS_NONE && i < list->partials; i++)
    if (list->partial[i].dim == taken->dim) bb_nest_unite(w, size, list->partial[i].size);
  if (type->rank > 1) return element;
  bool listed = list->place == LIST;
  bb_nest_complete_axes(w, &type->item, element.axis);
  element.place = ITEM;
  element.class = BB_NONE;
  element.partials = 0;
  if (!used) return element;
  double bytes = bb_dtype_bytes(type->item.dtype);
  bb_nest_add_term(w, listed ? BB_NEST_LIST_LOAD : BB_NEST_LOAD, element.axis, BB_NONE, bytes,
                   type->item.dtype, element.depends);
  if (!listed) bb_nest_set_run(w, list->run, list->follows);
  w->nest->term[w->nest->terms - 1].before = element.before = list->loaded;
  list->loaded = loop + 1;
  bool streamed = !w->nest->loop[loop].grid && !listed;
  bool block = type->item.row != BB_NO_DIM && type->item.col != BB_NO_DIM;
  bb_nest_room room = !streamed                          ? BB_NEST_LOADED
                      : block && list->run == BB_RUN_ANY ? BB_NEST_PANELS
                                                         : BB_NEST_STREAMED;
  element.class = bb_nest_class_of(w, room, element.axis, bytes, 0);
  element.owned = true;
  element.waits = streamed && block && bb_dtype_bytes(type->item.dtype) > 2;
  bb_nest_take_room(w, element.class);
  return element;
}

/* Who wants what a map gives: a tensor, or others in the same instance. */
typedef struct wanted {
  bool tensor, list;
} wanted;

static void walk_level(bb_nest_walker *w, level *l, const bb_node *map, const wanted *want);

static wanted wanted_of(const level *l, const wanted *want, bb_value value) {
  wanted result = {0};
  for (bb_use u = bb_first_use(l->graph, value); u.node != BB_NONE; u = bb_next_use(l->graph, u)) {
    if (l->graph->node[u.node]->kind != BB_NODE_OUTPUT || l->top) {
      result.tensor |= l->top;
      result.list |= !l->top;
      continue;
    }
    for (uint32_t i = 0; i < l->graph->noutputs; i++) {
      if (l->graph->output[i] != u.node) continue;
      result.tensor |= want[i].tensor;
      result.list |= want[i].list;
    }
  }
  return result;
}

static known collected(bb_nest_walker *w, const bb_node *map, uint32_t port, const known *inner,
                       const bb_type *type, wanted want, uint32_t loop, bool top) {
  known list = *inner;
  bb_axis axis = map->out[port].axis;
  double bytes = bb_dtype_bytes(type->item.dtype);
  uint32_t size = w->nest->loop[loop].size;
  list.owned = false;
  list.loaded = type->rank == 0 ? loop + 1 : 0;
  if (type->rank == 0) {
    list.class = BB_NONE;
    list.place = TENSOR;
    if (want.tensor)
      bb_nest_add_term(w, BB_NEST_STORE, inner->axis, BB_NONE, bytes, type->item.dtype,
                       inner->depends);
    if (want.list) {
      bb_nest_add_term(w, BB_NEST_LIST_STORE, inner->axis, BB_NONE, bytes, type->item.dtype,
                       inner->depends);
      w->nest->term[w->nest->terms - 1].kept = want.tensor;
      list.place = LIST;
      list.class = bb_nest_class_of(w, BB_NEST_LISTED, inner->axis, bytes, (uint64_t)1 << loop);
    }
  } else if (list.place == LIST && list.class != BB_NONE) {
    bb_nest_class class = w->nest->class[list.class];
    list.class = bb_nest_class_of(w, BB_NEST_LISTED, class.axis, class.bytes,
                                  class.times | (uint64_t)1 << loop);
  }
  if (top) list.place = TENSOR, list.class = BB_NONE;
  list.depends &= ~((uint64_t)1 << loop);
  if (axis == BB_AXIS_ROW) list.axis[0] = BB_NONE;
  if (axis == BB_AXIS_COL) list.axis[1] = BB_NONE;
  if (axis == BB_AXIS_NONE && size != BB_NONE && list.partials < PARTIALS) {
    list.partial[list.partials].dim = map->dim;
    list.partial[list.partials++].size = size;
  }
  return list;
}

/* Of what reads component k of either part: the rest has the axes of others, which are fewer. */
static double own_cost(const bb_expr *e, uint32_t k, uint32_t n) {
  if (!bb_expr_uses_arg(e, k) && !bb_expr_uses_arg(e, n + k)) return 0;
  double cost = bb_expr_cost(e);
  for (int i = 0; i < 3; i++)
    if (e->a[i]) cost += own_cost(e->a[i], k, n) - bb_expr_cost(e->a[i]);
  return cost;
}

/* A component that has a repair is renewed and then added to; of others both sides are combined. */
static double fold_cost(const bb_monoid *monoid, uint32_t component) {
  if (!monoid->component) return 1;
  const bb_monoid_component *c = &monoid->component[component];
  uint32_t n = monoid->components;
  return c->repair ? own_cost(c->repair, component, n) + 1 : own_cost(c->combine, component, n);
}

static void add_fold(bb_nest_walker *w, uint32_t loop, const known *value, bb_dtype dtype) {
  bb_nest *nest = w->nest;
  BB_GROW(w->arena, nest->fold, w->fold_capacity, (size_t)nest->folds + 1);
  nest->fold[nest->folds++] =
      (struct bb_nest_fold){loop, {value->axis[0], value->axis[1]}, (double)bb_dtype_bytes(dtype)};
}

/* The value that a map gives at a port, from the value inside. */
static known given(bb_nest_walker *w, const level *inside, const bb_node *map, uint32_t port,
                   wanted want, uint32_t loop, bool top) {
  bb_value value = bb_src(inside->graph, inside->graph->output[port], 0);
  const bb_type *type = bb_type_of(inside->graph, value);
  known *inner = value_of(inside, value);
  if (type->rank == 0) bb_nest_complete_axes(w, &type->item, inner->axis);
  if (map->out[port].mode == BB_OUT_COLLECT)
    return collected(w, map, port, inner, type, want, loop, top);
  known result = *inner;
  result.depends &= ~((uint64_t)1 << loop);
  result.owned = false;
  if (type->rank > 0 || inner->place != ITEM) return result;
  if (map->out[port].mode == BB_OUT_FOLD) {
    if (!is_summed(inside->graph, map, value))
      bb_nest_add_term(w, BB_NEST_VECTOR, inner->axis, BB_NONE,
                       fold_cost(map->out[port].fold, map->out[port].component), type->item.dtype,
                       inner->depends);
    add_fold(w, loop, inner, type->item.dtype);
  }
  result.class =
      bb_nest_class_of(w, BB_NEST_COMPUTED, inner->axis, bb_dtype_bytes(type->item.dtype), 0);
  return result;
}

/* Do the map's turns not need one another? */
static bool is_parallel(const bb_node *map) {
  for (uint32_t p = 0; p < map->nout; p++)
    if (map->out[p].mode == BB_OUT_FOLD || map->out[p].resumes) return false;
  return map->part == BB_PART_ALL;
}

static bool folds_all(const bb_node *map) {
  for (uint32_t p = 0; p < map->nout; p++)
    if (map->out[p].mode != BB_OUT_FOLD || map->out[p].type->rank > 0 || map->out[p].resumes)
      return false;
  return map->nout > 0 && map->part == BB_PART_ALL;
}

/* Is the node the only one of its level that computes anything? */
static bool is_alone(const bb_graph *graph, uint32_t n) {
  for (uint32_t i = 0; i < graph->count; i++) {
    bb_kind kind = graph->node[i]->kind;
    if (i != n && kind != BB_NODE_REMOVED && kind != BB_NODE_INPUT && kind != BB_NODE_OUTPUT)
      return false;
  }
  return true;
}

static bool in_grid(const bb_nest_walker *w, const level *l, uint32_t n) {
  if (!is_parallel(l->graph->node[n])) return false;
  if (l->top) return true;
  return w->nest->loop[w->around].grid && is_alone(l->graph, n);
}

/* Accumulators have room before the first turn; they fit one of the classes of the results. */
static void walk_map(bb_nest_walker *w, const level *l, const wanted *want, uint32_t n) {
  const bb_node *map = l->graph->node[n];
  bb_nest *nest = w->nest;
  uint32_t around = w->around, loop;
  uint64_t chain = w->chain;
  if (l->top) w->phase = nest->phases++;
  loop = add_loop(w, map->dim, map->part, map->serial);
  if (w->too_many) return;
  nest->loop[loop].grid = in_grid(w, l, n);
  nest->loop[loop].splits = folds_all(map) && (around == BB_NONE || nest->loop[around].grid);
  w->around = loop;
  w->chain |= (uint64_t)1 << loop;
  level inside = {.graph = map->inner};
  inside.value = BB_NEW(w->scratch, known *, map->inner->count);
  for (uint32_t p = 0; p < map->nin; p++) {
    bb_value source = map->in[p].src, input = {map->inner->input[p], 0};
    bool used = bb_first_use(map->inner, input).node != BB_NONE;
    known *value = BB_NEW(w->scratch, known, 1);
    *value = *value_of(l, source);
    value->owned = false;
    value->loaded = value->before = 0;
    if (map->in[p].level != BB_WHOLE)
      *value = element_of(w, bb_type_of(l->graph, source), value_of(l, source), map->in[p].level,
                          loop, used);
    inside.value[input.node] = value;
  }
  wanted *inner_want = BB_NEW(w->scratch, wanted, map->nout);
  for (uint32_t p = 0; p < map->nout; p++) {
    inner_want[p] = wanted_of(l, want, (bb_value){n, p});
    if (map->out[p].mode != BB_OUT_COLLECT) inner_want[p] = (wanted){.list = true};
  }
  walk_level(w, &inside, map, inner_want);
  if (w->too_many) return;
  for (uint32_t p = 0; p < map->nout; p++)
    l->value[n][p] = given(w, &inside, map, p, inner_want[p], loop, l->top);
  for (uint32_t p = 0; p < map->nin; p++) {
    known *value = inside.value[map->inner->input[p]];
    if (value->owned) bb_nest_leave_room(w, value->class);
  }
  w->around = around;
  w->chain = chain;
  for (uint32_t p = 0; p < map->nout; p++) {
    known *value = &l->value[n][p];
    value->owned = value->class != BB_NONE;
    bb_nest_take_room(w, value->class);
  }
}

/* A reduction that was not fused runs over a list in a loop of its own. */
static void walk_reduce(bb_nest_walker *w, const level *l, uint32_t n) {
  const bb_node *node = l->graph->node[n];
  uint32_t around = w->around;
  uint64_t chain = w->chain;
  const bb_type *type = bb_type_of(l->graph, node->in[0].src);
  uint32_t loop = add_loop(w, type->level[node->in[0].level].dim, BB_PART_ALL, BB_NONE);
  if (w->too_many) return;
  w->around = loop;
  w->chain |= (uint64_t)1 << loop;
  for (uint32_t p = 0; p < node->nin; p++) {
    known *list = value_of(l, node->in[p].src);
    type = bb_type_of(l->graph, node->in[p].src);
    known element = element_of(w, type, list, node->in[p].level, loop, true);
    bb_nest_complete_axes(w, &type->item, element.axis);
    bb_nest_add_term(w, BB_NEST_VECTOR, element.axis, BB_NONE,
                     p < node->monoid->components ? fold_cost(node->monoid, p) : 1,
                     type->item.dtype, element.depends);
    if (element.owned) bb_nest_leave_room(w, element.class);
    known *result = &l->value[n][p < node->nout ? p : 0];
    *result = element;
    result->depends &= ~((uint64_t)1 << loop);
    result->owned = false;
    result->class = BB_NONE;
    if (node->reduce != BB_REDUCE_FOLD) {
      bb_nest_add_term(w, BB_NEST_LIST_STORE, element.axis, BB_NONE,
                       bb_dtype_bytes(type->item.dtype), type->item.dtype, element.depends);
      *result = *list;
      result->owned = false;
    }
  }
  w->around = around;
  w->chain = chain;
  for (uint32_t p = 0; p < node->nout && node->reduce == BB_REDUCE_FOLD; p++) {
    known *result = &l->value[n][p < node->nin ? p : 0];
    const bb_item *item = &node->out[p].type->item;
    if (p >= node->nin) l->value[n][p] = *result, result = &l->value[n][p];
    if (node->out[p].type->rank > 0) continue;
    result->place = ITEM;
    bb_nest_complete_axes(w, item, result->axis);
    result->class =
        bb_nest_class_of(w, BB_NEST_COMPUTED, result->axis, bb_dtype_bytes(item->dtype), 0);
    result->owned = true;
    bb_nest_take_room(w, result->class);
  }
}

static void prepare(bb_nest_walker *w, level *l) {
  const bb_graph *g = l->graph;
  l->order = BB_NEW(w->scratch, uint32_t, g->live);
  l->place = BB_NEW(w->scratch, uint32_t, g->count);
  l->nodes = bb_topological_order(g, w->scratch, l->order);
  if (!l->value) l->value = BB_NEW(w->scratch, known *, g->count);
  for (uint32_t i = 0; i < l->nodes; i++) {
    uint32_t n = l->order[i];
    l->place[n] = i;
    if (g->node[n]->kind == BB_NODE_OUTPUT) l->place[n] = UINT32_MAX;
    if (l->value[n]) continue;
    l->value[n] = BB_NEW(w->scratch, known, g->node[n]->nout);
    for (uint32_t p = 0; p < g->node[n]->nout; p++)
      l->value[n][p] = (known){.place = TENSOR, .axis = {BB_NONE, BB_NONE}, .class = BB_NONE};
    if (l->top && g->node[n]->kind == BB_NODE_INPUT)
      l->value[n][0].run = bb_nest_run_of(w->program, g->node[n], &l->value[n][0].follows);
  }
}

static void walk_level(bb_nest_walker *w, level *l, const bb_node *map, const wanted *want) {
  const bb_graph *g = l->graph;
  prepare(w, l);
  for (uint32_t i = 0; i < l->nodes && !w->too_many; i++) {
    uint32_t n = l->order[i];
    switch (g->node[n]->kind) {
    case BB_NODE_FUNC: walk_func(w, l, map, n, i); break;
    case BB_NODE_MAP: walk_map(w, l, want, n); break;
    case BB_NODE_REDUCE: walk_reduce(w, l, n); break;
    default: continue;
    }
    release(w, l, n, i);
  }
  for (uint32_t i = 0; i < l->nodes && !w->too_many; i++) {
    uint32_t n = l->order[i];
    bool input = g->node[n]->kind == BB_NODE_INPUT;
    for (uint32_t p = 0; !input && p < g->node[n]->nout; p++)
      if (l->value[n][p].owned) bb_nest_leave_room(w, l->value[n][p].class);
  }
}

/* --- finishing --- */

static uint32_t compact(const bb_nest_walker *w, const uint32_t *number, uint32_t size) {
  return size == BB_NONE ? BB_NONE : number[bb_nest_find(w, size)];
}

/* Keeps one size for each class of them. */
static void compact_sizes(bb_nest_walker *w) {
  bb_nest *nest = w->nest;
  uint32_t *number = BB_NEW(w->scratch, uint32_t, nest->sizes), count = 0;
  for (uint32_t i = 0; i < nest->sizes; i++) {
    if (bb_nest_find(w, i) != i) continue;
    number[i] = count;
    nest->size[count++] = nest->size[i];
  }
  for (uint32_t i = 0; i < nest->loops; i++)
    nest->loop[i].size = compact(w, number, nest->loop[i].size);
  for (uint32_t i = 0; i < nest->terms; i++)
    for (int a = 0; a < 3; a++) nest->term[i].axis[a] = compact(w, number, nest->term[i].axis[a]);
  for (uint32_t i = 0; i < nest->classes; i++)
    for (int a = 0; a < 2; a++) nest->class[i].axis[a] = compact(w, number, nest->class[i].axis[a]);
  for (uint32_t i = 0; i < nest->folds; i++)
    for (int a = 0; a < 2; a++) nest->fold[i].axis[a] = compact(w, number, nest->fold[i].axis[a]);
  nest->sizes = count;
  w->too_many = count > BB_NEST_SIZES;
}

/* Items that are inputs or outputs of the program as they are: a load or a store each. */
static void walk_terminals(bb_nest_walker *w, const level *l) {
  const bb_graph *g = l->graph;
  for (uint32_t i = 0; i < g->count; i++) {
    const bb_node *node = g->node[i];
    bool input = node->kind == BB_NODE_INPUT;
    if (!input && node->kind != BB_NODE_OUTPUT) continue;
    const bb_type *type = input ? node->out[0].type : bb_type_of(g, node->in[0].src);
    if (type->rank > 0) continue;
    uint32_t axis[2] = {BB_NONE, BB_NONE};
    bb_nest_complete_axes(w, &type->item, axis);
    bb_nest_add_term(w, input ? BB_NEST_LOAD : BB_NEST_STORE, axis, BB_NONE,
                     bb_dtype_bytes(type->item.dtype), type->item.dtype, 0);
  }
}

bb_nest *bb_nest_create(const bb_program *program, const bb_graph *graph, bb_arena *arena) {
  bb_nest_walker w = {.program = program,
                      .arena = arena,
                      .scratch = bb_scratch(program->ctx),
                      .nest = BB_NEW(arena, bb_nest, 1),
                      .around = BB_NONE};
  w.nest->joined = w.nest->rows = w.nest->together = BB_NONE;
  level top = {.graph = graph, .top = true};
  walk_terminals(&w, &top);
  walk_level(&w, &top, NULL, NULL);
  if (!w.too_many) compact_sizes(&w);
  if (!w.too_many) bb_nest_find_joined(&w);
  if (!w.too_many) bb_nest_join_terms(&w);
  if (!w.too_many) bb_nest_keep_moments(&w);
  bb_scratch_end(w.scratch);
  return w.too_many ? NULL : w.nest;
}
