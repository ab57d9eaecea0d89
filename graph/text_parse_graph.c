/* text_parse_graph.c - levels of block programs from text: nodes, maps, functional ops, reductions
 * and views.  Types that the text leaves out follow from the operands'; types that it gives are
 * taken as they are and left to the verifier.
 */
#include "text_form.h"

#include <string.h>

typedef struct level {
  bb_reader *r;
  bb_graph *graph;
  bb_table *names; /* of values: indices into value[] */
  uint32_t count, capacity;
  bb_value *value;
  bool root;
} level;

static const bb_value NOWHERE = {BB_NONE, 0};

/* What stands left of the equals sign. */
typedef struct definitions {
  const char *place;
  uint32_t count, capacity;
  const char **label;
} definitions;

/* --- values --- */

static bb_value read_value(level *l) {
  bb_reader *r = l->r;
  if (bb_read_accept(r, "none")) return NOWHERE;
  if (r->token.kind != BB_TOKEN_VALUE) bb_read_fail_expected(r, "a value such as %1");
  uint32_t found = bb_table_find(l->names, r->token.name, r->token.length);
  if (found == BB_NONE)
    bb_read_fail(r, r->token.start, "there is no value %s at this level", r->token.name);
  bb_read_next(r);
  return l->value[found];
}

static const bb_type *type_of(const level *l, bb_value value) {
  return value.node == BB_NONE ? NULL : bb_type_of(l->graph, value);
}

static void read_definition(level *l, definitions *d) {
  bb_reader *r = l->r;
  if (r->token.kind != BB_TOKEN_VALUE) bb_read_fail_expected(r, "a value such as %1");
  BB_GROW(r->scratch, d->label, d->capacity, (size_t)d->count + 1);
  d->label[d->count++] = r->token.name;
  if (bb_table_find(l->names, r->token.name, r->token.length) != BB_NONE)
    bb_read_fail(r, r->token.start, "%s is defined twice", r->token.name);
  bb_read_next(r);
}

/* Names the out-ports of a new node; a map without any may be called all the same, for its serial. */
static void define(level *l, const definitions *d, uint32_t node) {
  bb_reader *r = l->r;
  bb_node *n = l->graph->node[node];
  bool empty = n->kind == BB_NODE_MAP && n->nout == 0 && d->count == 1;
  if (n->nout != d->count && !empty)
    bb_read_fail(r, d->place, "%u names for a node with %u results", d->count, n->nout);
  bb_read_give_serial(r, n, d->count ? d->label[0] : NULL);
  for (uint32_t i = 0; i < n->nout; i++) {
    BB_GROW(r->scratch, l->value, l->capacity, (size_t)l->count + 1);
    if (!bb_table_add(l->names, d->label[i], strlen(d->label[i]), l->count))
      bb_read_fail(r, d->place, "%s is defined twice", d->label[i]);
    l->value[l->count++] = (bb_value){node, i};
  }
}

/* Operands: values, each perhaps with a list level. */
typedef struct operands {
  uint32_t count, capacity;
  bb_in *in; /* src and level */
} operands;

static void add_operand(level *l, operands *list, bb_value src, uint32_t at) {
  BB_GROW(l->r->scratch, list->in, list->capacity, (size_t)list->count + 1);
  list->in[list->count++] = (bb_in){.src = src, .level = at};
}

/* V or V[level] */
static void read_source(level *l, operands *list) {
  bb_reader *r = l->r;
  bb_value src = read_value(l);
  uint32_t at = BB_WHOLE;
  if (bb_read_accept(r, "[")) {
    at = bb_read_index(r, BB_WHOLE, "the list level");
    bb_read_expect(r, "]");
  }
  add_operand(l, list, src, at);
}

static operands read_operands(level *l, bool levels) {
  operands list = {0};
  bb_read_expect(l->r, "(");
  while (!bb_read_accept(l->r, ")")) {
    if (list.count) bb_read_expect(l->r, ",");
    if (levels)
      read_source(l, &list);
    else
      add_operand(l, &list, read_value(l), BB_WHOLE);
  }
  return list;
}

static uint32_t add_node(level *l, bb_kind kind, const operands *list, uint32_t nout) {
  uint32_t node = bb_node_add(l->graph, kind, list->count, nout);
  for (uint32_t i = 0; i < list->count; i++) {
    l->graph->node[node]->in[i].level = list->in[i].level;
    if (list->in[i].src.node != BB_NONE) bb_connect(l->graph, node, i, list->in[i].src);
  }
  return node;
}

/* [: type, ...]: false if none is given. */
static bool read_types(level *l, uint32_t node) {
  bb_node *n = l->graph->node[node];
  if (!bb_read_accept(l->r, ":")) return false;
  for (uint32_t i = 0; i < n->nout; i++) {
    if (i) bb_read_expect(l->r, ",");
    n->out[i].type = bb_read_type(l->r);
  }
  return true;
}

/* --- functional ops --- */

static void infer_func(level *l, const char *place, uint32_t node) {
  bb_node *n = l->graph->node[node];
  bb_item *in = BB_NEW(l->r->scratch, bb_item, n->nin), out[BB_OP_RESULTS];
  for (uint32_t i = 0; i < n->nin; i++) {
    const bb_type *type = type_of(l, n->in[i].src);
    if (!type || type->rank) bb_read_fail(l->r, place, "operand %u is not an item", i);
    in[i] = type->item;
  }
  const char *wrong = bb_op_infer(n->op, n->expr, n->nin, in, out);
  if (wrong) bb_read_fail(l->r, place, "%s", wrong);
  for (uint32_t i = 0; i < n->nout; i++)
    n->out[i].type = bb_type_make(l->r->program, out[i], 0, NULL);
}

static const bb_expr *no_operand(void *user, const char *name, size_t length) {
  (void)user, (void)name, (void)length;
  return NULL;
}

static uint32_t read_func(level *l, const char *place, bb_op op) {
  bb_read_next(l->r);
  const bb_monoid *monoid = bb_op_has_monoid(op) ? bb_read_monoid(l->r) : NULL;
  const bb_expr *wide = NULL;
  if (op == BB_OP_DOT && l->r->token.kind == BB_TOKEN_NAME)
    wide = bb_op_wide_sum(l->r->program, bb_read_dtype(l->r));
  operands list = read_operands(l, false);
  if (monoid && list.count != monoid->components)
    bb_read_fail(l->r, place, "%s has %u components", monoid->name, monoid->components);
  uint32_t node = add_node(l, BB_NODE_FUNC, &list, bb_op_results(op, list.count));
  l->graph->node[node]->op = op;
  l->graph->node[node]->rows = monoid;
  l->graph->node[node]->expr = wide;
  if (bb_op_scales(op) && bb_read_accept(l->r, "past"))
    l->graph->node[node]->expr = bb_read_expr(l->r, no_operand, NULL);
  if (!read_types(l, node)) infer_func(l, place, node);
  return node;
}

/* Names in an expression: operands in the order of their first use, or as listed. */
typedef struct operand_names {
  level *l;
  operands list;
  bool listed;
  bb_table *number; /* by label */
} operand_names;

static const bb_expr *argument(const operand_names *names, uint32_t operand) {
  const bb_type *type = type_of(names->l, names->list.in[operand].src);
  return bb_expr_arg(names->l->r->program, type ? type->item.dtype : BB_F32, operand);
}

static const bb_expr *look_up(void *user, const char *name, size_t length) {
  operand_names *names = user;
  level *l = names->l;
  uint32_t operand;
  if (names->listed && *name == '$' && length < 12) {
    char label[16];
    memcpy(label, name, length);
    label[length] = '\0';
    if (length < 2 || !bb_label_serial(label, &operand)) return NULL;
    return operand < names->list.count ? argument(names, operand) : NULL;
  }
  operand = bb_table_find(names->number, name, length);
  if (operand == BB_NONE && !names->listed) {
    uint32_t value = bb_table_find(l->names, name, length);
    if (value == BB_NONE) return NULL;
    operand = names->list.count;
    add_operand(l, &names->list, l->value[value], BB_WHOLE);
    bb_table_add(names->number, name, length, operand);
  }
  return operand == BB_NONE ? NULL : argument(names, operand);
}

static uint32_t read_elementwise(level *l, const char *place) {
  bb_reader *r = l->r;
  operand_names names = {.l = l, .number = bb_table_create(r->scratch)};
  bb_read_next(r);
  names.listed = bb_read_accept(r, "of");
  if (names.listed) names.list = read_operands(l, false);
  const bb_expr *expr = bb_read_expr(r, look_up, &names);
  uint32_t node = add_node(l, BB_NODE_FUNC, &names.list, 1);
  l->graph->node[node]->op = BB_OP_ELEMENTWISE;
  l->graph->node[node]->expr = expr;
  if (!read_types(l, node)) infer_func(l, place, node);
  return node;
}

/* --- reductions, views, misc --- */

static uint32_t read_reduce(level *l, const char *place, bb_reduce_mode mode) {
  bb_reader *r = l->r;
  bb_read_next(r);
  const bb_monoid *monoid = bb_read_monoid(r);
  operands list = read_operands(l, true);
  uint32_t node = add_node(l, BB_NODE_REDUCE, &list, list.count);
  bb_node *n = l->graph->node[node];
  n->monoid = monoid;
  n->reduce = mode;
  if (read_types(l, node)) return node;
  for (uint32_t i = 0; i < n->nin; i++) {
    const bb_type *type = type_of(l, n->in[i].src);
    bool fold = mode == BB_REDUCE_FOLD;
    if (!type || n->in[i].level >= type->rank)
      bb_read_fail(r, place, "operand %u has no such list level", i);
    n->out[i].type = fold ? bb_type_element(r->program, type, n->in[i].level) : type;
  }
  return node;
}

/* Sources of a view's pieces are operands of its node. */
typedef struct view_sources {
  level *l;
  operands list;
  bool listed;
  bb_table *number; /* by label */
} view_sources;

static uint32_t read_view_source(void *user, bb_reader *r) {
  view_sources *sources = user;
  if (sources->listed) {
    if (r->token.kind != BB_TOKEN_TENSOR) bb_read_fail_expected(r, "an operand such as &0");
    r->token.kind = BB_TOKEN_NUMBER;
    return bb_read_index(r, sources->list.count, "the operand");
  }
  const char *label = r->token.name;
  size_t length = r->token.length;
  bb_value value = read_value(sources->l);
  uint32_t operand = bb_table_find(sources->number, label, length);
  if (operand != BB_NONE) return operand;
  operand = sources->list.count;
  add_operand(sources->l, &sources->list, value, BB_WHOLE);
  bb_table_add(sources->number, label, length, operand);
  return operand;
}

static uint32_t read_view(level *l) {
  bb_reader *r = l->r;
  view_sources sources = {.l = l, .number = bb_table_create(r->scratch)};
  bb_read_next(r);
  sources.listed = bb_read_accept(r, "of");
  if (sources.listed) sources.list = read_operands(l, false);
  const bb_access *access = bb_read_index_access(r, read_view_source, &sources);
  uint32_t node = add_node(l, BB_NODE_VIEW, &sources.list, 1);
  l->graph->node[node]->access = access;
  if (!read_types(l, node)) bb_read_fail(r, r->token.start, "a view needs its type");
  return node;
}

/* Operands of misc nodes by their place in a list of values. */
typedef struct misc_operands {
  level *l;
  operands list;
} misc_operands;

static uint32_t read_misc_operand(void *user, bb_reader *r) {
  misc_operands *m = user;
  (void)r;
  add_operand(m->l, &m->list, read_value(m->l), BB_WHOLE);
  return m->list.count - 1;
}

static uint32_t read_misc(level *l, const definitions *d) {
  bb_reader *r = l->r;
  misc_operands m = {.l = l};
  bb_read_list numbers = {0};
  bb_read_next(r);
  const bb_misc *misc = bb_read_misc(r, read_misc_operand, &m, &numbers);
  uint32_t node = add_node(l, BB_NODE_MISC, &m.list, d->count);
  l->graph->node[node]->misc = misc;
  if (d->count && !read_types(l, node))
    bb_read_fail(r, r->token.start, "a misc node needs the types of its results");
  return node;
}

/* --- inputs and outputs of the root --- */

/* X[M,K], or X of join ... */
static void read_tensor_access(bb_reader *r, uint32_t *tensor, const bb_access **access) {
  const char *start = r->token.start;
  if (bb_read_accept(r, "none")) {
    *tensor = BB_NONE;
    bb_read_expect(r, "of");
  } else {
    *tensor = bb_read_tensor(r);
    if (!bb_read_accept(r, "of")) bb_read_from(r, start);
  }
  *access = bb_read_index_access(r, bb_read_tensor_source, NULL);
}

static uint32_t read_input(level *l) {
  bb_reader *r = l->r;
  bb_read_next(r);
  uint32_t node = bb_input_add(l->graph, NULL).node;
  bb_node *n = l->graph->node[node];
  read_tensor_access(r, &n->tensor, &n->access);
  if (!read_types(l, node)) bb_read_fail(r, r->token.start, "an input needs its type");
  return node;
}

static const char *read_origin(bb_reader *r) {
  if (!bb_read_accept(r, "@")) return NULL;
  const char *name = bb_read_name(r, "where the node came from");
  return bb_arena_text(r->program->arena, name, strlen(name));
}

/* An OUTPUT node of the level; value may be nowhere. */
static bb_node *add_output(level *l, bb_value value) {
  bb_graph *graph = l->graph;
  uint32_t node;
  if (value.node != BB_NONE) {
    node = bb_output_add(graph, value);
    return graph->node[node];
  }
  node = bb_node_add(graph, BB_NODE_OUTPUT, 1, 0);
  BB_GROW(graph->program->arena, graph->output, graph->output_capacity,
          (size_t)graph->noutputs + 1);
  graph->output[graph->noutputs++] = node;
  return graph->node[node];
}

/* output O[M,L] = V */
static void read_output(level *l) {
  bb_reader *r = l->r;
  uint32_t tensor;
  const bb_access *access;
  read_tensor_access(r, &tensor, &access);
  bb_read_expect(r, "=");
  bb_node *node = add_output(l, read_value(l));
  node->tensor = tensor;
  node->access = access;
  node->name = read_origin(r);
  bb_read_give_serial(r, node, NULL);
}

/* --- maps --- */

static void read_nodes(level *l, const char *end);

static level inner_level(level *outer, bb_graph *graph) {
  bb_reader *r = outer->r;
  return (level){.r = r, .graph = graph, .names = bb_table_create(r->scratch)};
}

/* (V [: type] = V[level], ...) */
static operands read_map_inputs(level *l, level *inner) {
  bb_reader *r = l->r;
  operands list = {0};
  bb_read_expect(r, "(");
  while (!bb_read_accept(r, ")")) {
    if (list.count) bb_read_expect(r, ",");
    definitions d = {.place = r->token.start};
    read_definition(inner, &d);
    bool typed = bb_read_accept(r, ":");
    const bb_type *type = typed ? bb_read_type(r) : NULL;
    bb_read_expect(r, "=");
    const char *place = r->token.start;
    read_source(l, &list);
    if (!typed) {
      const bb_in *in = &list.in[list.count - 1];
      type = type_of(l, in->src);
      if (!type || (in->level != BB_WHOLE && in->level >= type->rank))
        bb_read_fail(r, place, "the value has no such list level");
      if (in->level != BB_WHOLE) type = bb_type_element(r->program, type, in->level);
    }
    define(inner, &d, bb_input_add(inner->graph, type).node);
  }
  return list;
}

/* The type of a port that the text does not tell. */
static const bb_type *port_type(bb_reader *r, const char *place, const bb_out *out, bb_dim dim,
                                const bb_type *inner) {
  if (!inner) bb_read_fail(r, place, "the port needs its type");
  if (out->mode != BB_OUT_COLLECT) return inner;
  return bb_type_list(r->program, inner, (bb_level){dim, out->axis});
}

/* 1 + the number of the input that brings the first iteration's result. */
static uint32_t read_resumed(level *inner) {
  const char *place = inner->r->token.start;
  uint32_t node = read_value(inner).node;
  for (uint32_t i = 0; i < inner->graph->ninputs; i++)
    if (inner->graph->input[i] == node) return i + 1;
  bb_read_fail(inner->r, place, "a result resumes an input of its map");
}

/* One port behind yield. */
static void read_port(level *l, level *inner, uint32_t map) {
  bb_reader *r = l->r;
  const char *place = r->token.start;
  bb_dim dim = l->graph->node[map]->dim;
  bb_out out = {.mode = BB_OUT_COLLECT};
  if (bb_read_accept(r, "invariant")) out.mode = BB_OUT_INVARIANT;
  if (out.mode == BB_OUT_COLLECT && bb_read_accept(r, "fold")) {
    out.mode = BB_OUT_FOLD;
    if (!bb_read_accept(r, "none")) out.fold = bb_read_monoid(r);
    if (r->token.kind == BB_TOKEN_NUMBER)
      out.component = bb_read_index(r, 1u << BB_COMPONENT_BITS, "the component");
  }
  bb_value value = read_value(inner);
  const bb_type *type = type_of(inner, value);
  if (out.mode == BB_OUT_COLLECT) {
    if (type) out.axis = bb_level_default_axis(dim, &type->item, 0, NULL);
    if (bb_read_accept(r, "by")) out.axis = bb_read_axis(r);
  }
  if (bb_read_accept(r, "resumes")) out.resumes = read_resumed(inner);
  out.type = bb_read_accept(r, ":") ? bb_read_type(r) : port_type(r, place, &out, dim, type);
  uint32_t port = bb_out_add(l->graph, map, out.type);
  bb_out *made = &l->graph->node[map]->out[port];
  out.first = made->first;
  *made = out;
  bb_read_give_serial(r, add_output(inner, value), NULL);
}

static const bb_numbering *read_numbering(bb_reader *r) {
  bb_numbering *numbering = BB_NEW(r->program->arena, bb_numbering, 1);
  numbering->dim = bb_read_dim_list(r, &numbering->count);
  return numbering;
}

static uint32_t read_map(level *l) {
  bb_reader *r = l->r;
  const char *place = r->token.start;
  if (r->depth == BB_TEXT_DEPTH)
    bb_read_fail(r, place, "maps nested more than %d deep", BB_TEXT_DEPTH);
  r->depth++;
  bb_read_next(r);
  bb_dim dim = bb_read_dim(r);
  bb_part part = bb_read_accept(r, "first")   ? BB_PART_FIRST
                 : bb_read_accept(r, "rest")  ? BB_PART_REST
                 : bb_read_accept(r, "chunk") ? BB_PART_CHUNK
                                              : BB_PART_ALL;
  const bb_numbering *chunk = part == BB_PART_CHUNK ? read_numbering(r) : NULL;
  uint32_t block = bb_read_accept(r, "block") ? bb_read_index(r, BB_BLOCK_MOST, "the block") : 0;
  level inner = inner_level(l, bb_graph_create(r->program));
  operands list = read_map_inputs(l, &inner);
  uint32_t map = add_node(l, BB_NODE_MAP, &list, 0);
  l->graph->node[map]->dim = dim;
  l->graph->node[map]->part = part;
  l->graph->node[map]->block = block;
  l->graph->node[map]->chunk = chunk;
  l->graph->node[map]->inner = inner.graph;
  bb_read_expect(r, "{");
  read_nodes(&inner, "yield");
  while (!bb_read_is(r, "}")) {
    if (l->graph->node[map]->nout) bb_read_expect(r, ",");
    read_port(l, &inner, map);
  }
  bb_read_next(r);
  r->depth--;
  return map;
}

/* --- nodes --- */

static uint32_t read_node(level *l, const definitions *d) {
  bb_reader *r = l->r;
  const char *place = r->token.start;
  bb_op op;
  if (l->root && bb_read_is(r, "input")) return read_input(l);
  if (bb_read_is(r, "map")) return read_map(l);
  if (bb_read_is(r, "view")) return read_view(l);
  if (bb_read_is(r, "elementwise")) return read_elementwise(l, place);
  if (bb_read_is(r, "reduce")) return read_reduce(l, place, BB_REDUCE_FOLD);
  if (bb_read_is(r, "scan")) return read_reduce(l, place, BB_REDUCE_SCAN);
  if (bb_read_is(r, "scan_exclusive")) return read_reduce(l, place, BB_REDUCE_SCAN_EXCLUSIVE);
  if (bb_read_is(r, "misc")) return read_misc(l, d);
  bool known = r->token.kind == BB_TOKEN_NAME && bb_op_find(r->token.name, r->token.length, &op);
  if (!known) bb_read_fail_expected(r, "an op, map, reduce, scan, view or misc");
  return read_func(l, place, op);
}

/* Nodes up to and including the word or symbol `end`. */
static void read_nodes(level *l, const char *end) {
  bb_reader *r = l->r;
  while (!bb_read_accept(r, end)) {
    if (l->root && bb_read_accept(r, "output")) {
      read_output(l);
      continue;
    }
    definitions d = {.place = r->token.start};
    if (!bb_read_is(r, "map") && !bb_read_is(r, "misc")) { /* those may have no results */
      do read_definition(l, &d);
      while (bb_read_accept(r, ","));
      bb_read_expect(r, "=");
    }
    uint32_t node = read_node(l, &d);
    l->graph->node[node]->name = read_origin(r);
    define(l, &d, node);
  }
}

/* { nodes } */
bb_graph *bb_read_graph(bb_reader *r) {
  level l = {.r = r, .graph = bb_graph_create(r->program), .root = true};
  l.names = bb_table_create(r->scratch);
  r->graphs++;
  bb_read_expect(r, "{");
  read_nodes(&l, "}");
  return l.graph;
}
