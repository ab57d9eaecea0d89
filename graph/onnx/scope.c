/* scope.c - walks the nodes of a graph, of a function's body and of a branch: order, names, calls.
 *
 * ONNX asks for nodes in topological order; graphs that are not are put in order here, and those that
 * cannot be (a cycle) are refused.  Functions of the model are converted in place of their calls, with
 * names and opsets of their own.  Only what the outputs need is converted.
 */
#include "scope.h"

#include <string.h>

enum { INLINE_DEPTH = 64, NODE_LIMIT = 1 << 19 };

typedef Onnx__NodeProto *const *node_list;

/* --- names --- */

typedef struct name_entry {
  const char *name;
  bb_onnx_value *value; /* NULL: an optional input that was left out */
  uint32_t node;        /* in a table of producers */
} name_entry;

static uint64_t hash_name(const void *object) {
  const char *name = ((const name_entry *)object)->name;
  return bb_hash_bytes(name, strlen(name), 0);
}

static bool same_name(const void *a, const void *b) {
  return strcmp(((const name_entry *)a)->name, ((const name_entry *)b)->name) == 0;
}

static const name_entry *lookup(const bb_onnx_frame *frame, const char *name) {
  for (; frame; frame = frame->call ? NULL : frame->outer) {
    const name_entry *found = bb_intern_find(frame->names, &(name_entry){.name = name});
    if (found) return found;
  }
  return NULL;
}

static void define(bb_onnx *m, const bb_onnx_frame *frame, const char *name, bb_onnx_value *value) {
  name_entry *entry = BB_NEW(m->arena, name_entry, 1);
  *entry = (name_entry){.name = name, .value = value};
  if (bb_intern_find(frame->names, entry))
    bb_fail(m->ctx, BB_ERROR_INPUT, "value %s is defined twice", bb_onnx_quote(m->arena, name));
  bb_intern_add(frame->names, entry);
}

static const char *text_or_empty(const char *text) {
  return text ? text : "";
}

static const char *domain_of(const char *domain) {
  domain = text_or_empty(domain);
  return strcmp(domain, "ai.onnx") == 0 ? "" : domain;
}

/* What messages call a node: its name, or its first output's where it has none. */
static const char *node_label(bb_onnx *m, const Onnx__NodeProto *proto) {
  if (proto->name && proto->name[0]) return proto->name;
  for (size_t i = 0; i < proto->n_output; i++)
    if (proto->output[i][0]) return bb_arena_printf(m->program->arena, "-> %s", proto->output[i]);
  return "(unnamed)";
}

/* --- order --- */

typedef struct order {
  bb_onnx *m;
  node_list node;
  uint32_t count, done;
  bb_intern *producers;
  uint32_t *sorted; /* node numbers, producers first */
  uint8_t *state;   /* 0: not seen, 1: on the path, 2: sorted */
  bool *live;
} order;

static void note_producers(order *o, const bb_onnx_frame *frame) {
  bb_onnx *m = o->m;
  o->producers = bb_intern_create(m->arena, hash_name, same_name);
  for (uint32_t i = 0; i < o->count; i++)
    for (size_t k = 0; k < o->node[i]->n_output; k++) {
      if (!o->node[i]->output[k][0]) continue;
      name_entry *entry = BB_NEW(m->arena, name_entry, 1);
      *entry = (name_entry){.name = o->node[i]->output[k], .node = i};
      if (bb_intern_find(o->producers, entry) || bb_intern_find(frame->names, entry))
        bb_fail(m->ctx, BB_ERROR_INPUT, "node %s: its output %s is defined twice",
                bb_onnx_quote(m->arena, node_label(m, o->node[i])),
                bb_onnx_quote(m->arena, entry->name));
      bb_intern_add(o->producers, entry);
    }
}

typedef void visitor(order *o, uint32_t producer);

/* Calls visit for the producer of every value that the node reads, branches included. */
static void for_each_producer(order *o, const Onnx__NodeProto *proto, visitor *visit) {
  for (size_t i = 0; i < proto->n_input; i++) {
    const name_entry *found = bb_intern_find(o->producers, &(name_entry){.name = proto->input[i]});
    if (found) visit(o, found->node);
  }
  for (size_t i = 0; i < proto->n_attribute; i++) {
    const Onnx__GraphProto *graph = proto->attribute[i]->g;
    for (size_t k = 0; graph && k < graph->n_node; k++) for_each_producer(o, graph->node[k], visit);
    for (size_t k = 0; graph && k < graph->n_output; k++) {
      name_entry key = {.name = text_or_empty(graph->output[k]->name)};
      const name_entry *found = bb_intern_find(o->producers, &key);
      if (found) visit(o, found->node);
    }
  }
}

/* The path of a depth-first walk: producers of a node are pushed above it, so that it is met again,
 * to be sorted, when they are. */
typedef struct path {
  uint32_t count, capacity;
  uint32_t *node;
} path;

typedef struct walk {
  order order; /* first: visitors get the order */
  path path;
} walk;

static void push(order *o, uint32_t node) {
  walk *w = (walk *)o;
  if (o->state[node] == 2) return;
  if (o->state[node] == 1)
    bb_fail(o->m->ctx, BB_ERROR_INPUT,
            "node %s: its output leads back to its input: the graph has a cycle",
            bb_onnx_quote(o->m->arena, node_label(o->m, o->node[node])));
  BB_GROW(o->m->arena, w->path.node, w->path.capacity, w->path.count + 1);
  w->path.node[w->path.count++] = node;
}

static void sort_from(walk *w, uint32_t start) {
  order *o = &w->order;
  if (o->state[start]) return;
  push(o, start);
  while (w->path.count) {
    uint32_t top = w->path.node[w->path.count - 1];
    if (o->state[top] == 0) {
      o->state[top] = 1;
      for_each_producer(o, o->node[top], push);
      continue;
    }
    if (o->state[top] == 1) o->sorted[o->done++] = top;
    o->state[top] = 2;
    w->path.count--;
  }
}

static void mark(order *o, uint32_t producer) {
  o->live[producer] = true;
}

/* Sorts the nodes and marks those that the wanted values need. */
static order sort_nodes(bb_onnx *m, const bb_onnx_frame *frame, node_list node, size_t count,
                        size_t wanted, const char *const *want) {
  walk w = {.order = {.m = m, .node = node, .count = (uint32_t)count}};
  order *o = &w.order;
  o->sorted = BB_NEW(m->arena, uint32_t, count);
  o->state = BB_NEW(m->arena, uint8_t, count);
  o->live = BB_NEW(m->arena, bool, count);
  note_producers(o, frame);
  for (uint32_t i = 0; i < count; i++) sort_from(&w, i);
  for (size_t i = 0; i < wanted; i++) {
    const name_entry *found = bb_intern_find(o->producers, &(name_entry){.name = want[i]});
    if (found) o->live[found->node] = true;
  }
  for (uint32_t i = o->count; i-- > 0;)
    if (o->live[o->sorted[i]]) for_each_producer(o, o->node[o->sorted[i]], mark);
  return *o;
}

/* --- functions --- */

typedef struct function_entry {
  const char *domain, *name, *overload;
  const Onnx__FunctionProto *function;
} function_entry;

/* Fields that the installed schema may not know are kept as bytes: a string one, or NULL. */
static const char *unknown_text(bb_onnx *m, const ProtobufCMessage *message, uint32_t tag) {
  for (unsigned i = 0; i < message->n_unknown_fields; i++) {
    const ProtobufCMessageUnknownField *field = &message->unknown_fields[i];
    if (field->tag != tag || field->wire_type != PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED) continue;
    size_t skip = 0; /* the length stands in front of the text */
    while (skip < field->len && field->data[skip] & 0x80) skip++;
    skip += skip < field->len;
    return bb_arena_text(m->arena, (const char *)field->data + skip, field->len - skip);
  }
  return "";
}

enum { NODE_OVERLOAD = 8, FUNCTION_OVERLOAD = 13, FUNCTION_DEFAULTS = 11 };

static uint64_t hash_function(const void *object) {
  const function_entry *f = object;
  uint64_t hash = bb_hash_bytes(f->domain, strlen(f->domain), 0);
  hash = bb_hash_bytes(f->name, strlen(f->name), hash);
  return bb_hash_bytes(f->overload, strlen(f->overload), hash);
}

static bool same_function(const void *left, const void *right) {
  const function_entry *a = left, *b = right;
  return strcmp(a->domain, b->domain) == 0 && strcmp(a->name, b->name) == 0 &&
         strcmp(a->overload, b->overload) == 0;
}

static void note_functions(bb_onnx *m) {
  m->functions = bb_intern_create(m->arena, hash_function, same_function);
  for (size_t i = 0; i < m->model->n_functions; i++) {
    const Onnx__FunctionProto *f = m->model->functions[i];
    function_entry *entry = BB_NEW(m->arena, function_entry, 1);
    *entry = (function_entry){domain_of(f->domain), text_or_empty(f->name),
                              unknown_text(m, &f->base, FUNCTION_OVERLOAD), f};
    if (bb_intern_find(m->functions, entry))
      bb_fail(m->ctx, BB_ERROR_INPUT, "function %s is defined twice",
              bb_onnx_quote(m->arena, entry->name));
    bb_intern_add(m->functions, entry);
  }
}

static const Onnx__FunctionProto *function_of(bb_onnx *m, const bb_onnx_node *n) {
  function_entry key = {n->domain, text_or_empty(n->proto->op_type),
                        unknown_text(m, &n->proto->base, NODE_OVERLOAD), NULL};
  const function_entry *found = bb_intern_find(m->functions, &key);
  return found ? found->function : NULL;
}

/* Attributes with a default are a field that older schemas keep as bytes. */
static void note_defaults(bb_onnx *m, bb_onnx_frame *frame) {
  const ProtobufCMessage *base = &frame->function->base;
  frame->fallback = BB_NEW(m->arena, Onnx__AttributeProto *, base->n_unknown_fields);
  for (unsigned i = 0; i < base->n_unknown_fields; i++) {
    const ProtobufCMessageUnknownField *field = &base->unknown_fields[i];
    bool ours =
        field->tag == FUNCTION_DEFAULTS && field->wire_type == PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED;
    if (!ours) continue;
    size_t skip = 0;
    while (skip < field->len && field->data[skip] & 0x80) skip++;
    skip += skip < field->len;
    frame->fallback[frame->defaults++] =
        bb_onnx_unpack(m->program->arena, field->data + skip, field->len - skip,
                       &onnx__attribute_proto__descriptor);
  }
}

static void convert_nodes(bb_onnx *m, const bb_onnx_frame *frame, node_list node, size_t count,
                          size_t wanted, const char *const *want);

static void check_recursion(const bb_onnx_node *n, const Onnx__FunctionProto *function) {
  if (n->frame->depth >= INLINE_DEPTH) bb_onnx_refuse(n, "calls are nested too deeply");
  for (const bb_onnx_frame *f = n->frame; f; f = f->call ? f->call->frame : f->outer)
    if (f->function == function) bb_onnx_refuse(n, "the function calls itself");
}

static void inline_function(bb_onnx_node *n, const Onnx__FunctionProto *f) {
  bb_onnx *m = n->m;
  check_recursion(n, f);
  bb_onnx_frame *frame = BB_NEW(m->arena, bb_onnx_frame, 1);
  *frame = (bb_onnx_frame){.call = n,
                           .function = f,
                           .imports = f->n_opset_import,
                           .import = f->opset_import,
                           .names = bb_intern_create(m->arena, hash_name, same_name),
                           .depth = n->frame->depth + 1};
  note_defaults(m, frame);
  if (n->nin > f->n_input || n->nout > f->n_output)
    bb_onnx_refuse(n, "has more inputs or outputs than its function");
  for (uint32_t i = 0; i < f->n_input; i++)
    define(m, frame, f->input[i], i < n->nin ? n->in[i] : NULL);
  convert_nodes(m, frame, f->node, f->n_node, n->nout, (const char *const *)f->output);
  for (uint32_t i = 0; i < n->nout; i++) {
    const name_entry *found = lookup(frame, f->output[i]);
    if (!found || !found->value)
      bb_onnx_refuse(n, "its function does not define output %s",
                     bb_onnx_quote(m->arena, f->output[i]));
    n->out[i] = found->value;
  }
}

/* --- nodes --- */

static int64_t domain_version(const bb_onnx_frame *frame, const char *domain) {
  for (size_t i = 0; i < frame->imports; i++)
    if (strcmp(domain_of(frame->import[i]->domain), domain) == 0) return frame->import[i]->version;
  /* Exporters leave this one out; it has had one version ever since. */
  return strcmp(domain, "com.microsoft") == 0 ? 1 : -1;
}

static void bind_inputs(bb_onnx_node *n) {
  bb_onnx *m = n->m;
  const Onnx__NodeProto *proto = n->proto;
  n->nin = (uint32_t)proto->n_input;
  while (n->nin && !proto->input[n->nin - 1][0]) n->nin--;
  n->in = BB_NEW(m->arena, bb_onnx_value *, n->nin);
  for (uint32_t i = 0; i < n->nin; i++) {
    if (!proto->input[i][0]) continue;
    const name_entry *found = lookup(n->frame, proto->input[i]);
    if (!found)
      bb_onnx_refuse(n, "input %s is defined nowhere", bb_onnx_quote(m->arena, proto->input[i]));
    n->in[i] = found->value;
  }
  while (n->nin && !n->in[n->nin - 1]) n->nin--; /* absent arguments of a function */
}

static bool inputs_known(const bb_onnx_node *n) {
  for (uint32_t i = 0; i < n->nin; i++)
    if (n->in[i] && n->in[i]->unsupported) return false;
  return true;
}

static void check_arity(const bb_onnx_node *n) {
  const bb_onnx_row *row = n->row;
  if (n->nin > row->max_in)
    bb_onnx_refuse(n, "has %u inputs; it takes at most %u", n->nin, row->max_in);
  for (uint32_t i = 0; i < row->min_in; i++)
    if (i >= n->nin || !n->in[i]) bb_onnx_refuse(n, "input %u is missing", i);
  if (n->nout > row->max_out)
    bb_onnx_refuse(n, "has %u outputs; it gives at most %u", n->nout, row->max_out);
}

static void convert_known(bb_onnx_node *n) {
  n->row = bb_onnx_row_find(n->domain, text_or_empty(n->proto->op_type), n->version);
  if (!n->row) {
    bb_onnx_unsupported(n, NULL);
    return;
  }
  if (inputs_known(n)) {
    check_arity(n);
    n->row->convert(n);
    return;
  }
  for (uint32_t i = 0; i < n->nout; i++) {
    n->out[i] = BB_NEW(n->m->arena, bb_onnx_value, 1);
    *n->out[i] = (bb_onnx_value){.unsupported = true, .id = BB_NONE};
  }
}

static void define_outputs(bb_onnx_node *n) {
  for (uint32_t i = 0; i < n->nout; i++) {
    const char *name = n->proto->output[i];
    bb_onnx_value *v = n->out[i];
    if (!name[0]) continue;
    if (!v)
      bb_onnx_refuse(n, "output %u (%s) is not given by this operator here", i,
                     bb_onnx_quote(n->m->arena, name));
    if (!v->name) v->name = name;
    if (v->id != BB_NONE) {
      const char *label = bb_onnx_quote(n->m->arena, n->name);
      bb_onnx_check_shape(n->m, bb_arena_printf(n->m->arena, "node %s", label), v->dtype, v->rank,
                          v->shape);
      bb_array_value *made = &n->m->array->value[v->id];
      if (made->producer != BB_NONE && v->name == name) made->name = name;
    }
    define(n->m, n->frame, name, v);
  }
}

static void convert_node(bb_onnx *m, const bb_onnx_frame *frame, const Onnx__NodeProto *proto) {
  bb_onnx_node *n = BB_NEW(m->arena, bb_onnx_node, 1);
  *n = (bb_onnx_node){.m = m, .proto = proto, .frame = frame};
  n->name = node_label(m, proto);
  n->domain = domain_of(proto->domain);
  n->version = domain_version(frame, n->domain);
  if (++m->nodes > NODE_LIMIT)
    bb_onnx_refuse(n, "the model has too many nodes once functions are inlined");
  bind_inputs(n);
  n->nout = (uint32_t)proto->n_output;
  while (n->nout && !proto->output[n->nout - 1][0]) n->nout--;
  n->out = BB_NEW(m->arena, bb_onnx_value *, n->nout);
  const Onnx__FunctionProto *function = function_of(m, n);
  if (function) {
    inline_function(n, function);
  } else {
    if (n->version < 0) bb_onnx_refuse(n, "the model imports no opset of domain \"%s\"", n->domain);
    convert_known(n);
  }
  define_outputs(n);
}

static void convert_nodes(bb_onnx *m, const bb_onnx_frame *frame, node_list node, size_t count,
                          size_t wanted, const char *const *want) {
  order o = sort_nodes(m, frame, node, count, wanted, want);
  for (uint32_t i = 0; i < o.count; i++)
    if (o.live[o.sorted[i]]) convert_node(m, frame, node[o.sorted[i]]);
}

/* --- graphs --- */

static const char **output_names(bb_onnx *m, const Onnx__GraphProto *graph) {
  const char **name = BB_NEW(m->arena, const char *, graph->n_output);
  for (size_t i = 0; i < graph->n_output; i++) name[i] = text_or_empty(graph->output[i]->name);
  return name;
}

static void define_initializers(bb_onnx *m, const bb_onnx_frame *frame,
                                const Onnx__GraphProto *graph) {
  if (graph->n_sparse_initializer)
    bb_fail(m->ctx, BB_ERROR_INPUT, "initializer %s: sparse tensors are not read",
            bb_onnx_quote(m->arena, graph->sparse_initializer[0]->values
                                        ? graph->sparse_initializer[0]->values->name
                                        : ""));
  for (size_t i = 0; i < graph->n_initializer; i++) {
    const Onnx__TensorProto *t = graph->initializer[i];
    const char *name = text_or_empty(t->name);
    const char *where = bb_arena_printf(m->arena, "initializer %s", bb_onnx_quote(m->arena, name));
    define(m, frame, name, bb_onnx_value_of_tensor(m, name, t, where));
  }
}

void bb_onnx_inline_graph(bb_onnx_node *n, const Onnx__GraphProto *graph) {
  bb_onnx *m = n->m;
  if (n->frame->depth >= INLINE_DEPTH) bb_onnx_refuse(n, "branches are nested too deeply");
  bb_onnx_frame *frame = BB_NEW(m->arena, bb_onnx_frame, 1);
  *frame = (bb_onnx_frame){.outer = n->frame,
                           .imports = n->frame->imports,
                           .import = n->frame->import,
                           .names = bb_intern_create(m->arena, hash_name, same_name),
                           .depth = n->frame->depth + 1};
  define_initializers(m, frame, graph);
  if (graph->n_output != n->nout) bb_onnx_refuse(n, "its branch has %zu outputs", graph->n_output);
  const char **want = output_names(m, graph);
  convert_nodes(m, frame, graph->node, graph->n_node, graph->n_output, want);
  for (uint32_t i = 0; i < n->nout; i++) {
    const name_entry *found = lookup(frame, want[i]);
    if (!found || !found->value)
      bb_onnx_refuse(n, "its branch does not define output %s", bb_onnx_quote(m->arena, want[i]));
    n->out[i] = found->value;
  }
}

/* The element type and shape of a tensor that the model declares. */
static bb_onnx_value *declared(bb_onnx *m, const Onnx__ValueInfoProto *info, const char *what) {
  const char *name = text_or_empty(info->name);
  const char *where = bb_arena_printf(m->arena, "%s %s", what, bb_onnx_quote(m->arena, name));
  const Onnx__TypeProto *type = info->type;
  bb_dtype dtype;
  if (!type || type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE || !type->tensor_type)
    bb_fail(m->ctx, BB_ERROR_INPUT, "%s: is not declared as a tensor", where);
  int32_t data_type = type->tensor_type->elem_type;
  if (!bb_onnx_dtype(data_type, &dtype) || bb_onnx_dtype_widened(data_type))
    bb_fail(m->ctx, BB_ERROR_INPUT, "%s: tensors of %s are not read", where,
            bb_onnx_dtype_name(data_type));
  const Onnx__TensorShapeProto *shape = type->tensor_type->shape;
  if (!shape) return NULL;
  if (shape->n_dim > BB_ONNX_RANK)
    bb_fail(m->ctx, BB_ERROR_INPUT, "%s: rank %zu; at most %d is read", where, shape->n_dim,
            BB_ONNX_RANK);
  const bb_extent *extent[BB_ONNX_RANK];
  for (size_t i = 0; i < shape->n_dim; i++) {
    const Onnx__TensorShapeProto__Dimension *d = shape->dim[i];
    if (d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE) {
      if (d->dim_value < 0)
        bb_fail(m->ctx, BB_ERROR_INPUT, "%s: extent %lld is negative", where,
                (long long)d->dim_value);
      extent[i] = bb_onnx_number(m, d->dim_value);
    } else if (d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM &&
               d->dim_param && d->dim_param[0]) {
      extent[i] = bb_onnx_param_extent(m, d->dim_param);
    } else {
      extent[i] = bb_onnx_fresh(m, "D");
    }
  }
  bb_onnx_check_shape(m, where, dtype, (uint32_t)shape->n_dim, extent);
  bb_onnx_value *v = bb_onnx_value_new(m, dtype, (uint32_t)shape->n_dim, extent);
  v->name = bb_arena_text(m->program->arena, name, strlen(name));
  return v;
}

static void define_inputs(bb_onnx *m, const bb_onnx_frame *frame, const Onnx__GraphProto *graph) {
  bb_array *array = m->array;
  array->input = BB_NEW(m->program->arena, uint32_t, graph->n_input);
  for (size_t i = 0; i < graph->n_input; i++) {
    const char *name = text_or_empty(graph->input[i]->name);
    if (lookup(frame, name)) { /* an initializer with a declaration; or twice an input */
      bool again = lookup(frame, name)->value->id != BB_NONE;
      if (!again) continue;
    }
    bb_onnx_value *v = declared(m, graph->input[i], "graph input");
    if (!v)
      bb_fail(m->ctx, BB_ERROR_INPUT, "graph input %s: has no declared shape",
              bb_onnx_quote(m->arena, name));
    v->id = bb_array_value_add(array, v->name, v->dtype, v->rank, v->shape);
    array->value[v->id].is_input = true;
    define(m, frame, name, v);
    array->input[array->inputs++] = v->id;
  }
}

/* What the graph computes must be what it declares, as far as that is said in numbers. */
static void check_output(bb_onnx *m, const char *where, const bb_onnx_value *v,
                         const Onnx__ValueInfoProto *info) {
  const bb_onnx_value *d = info->type ? declared(m, info, "graph output") : NULL;
  if (!d) return;
  bool fits = d->dtype == v->dtype && d->rank == v->rank;
  for (uint32_t a = 0; fits && a < v->rank; a++)
    fits = bb_extent_value(d->shape[a]) < 0 || bb_extent_value(v->shape[a]) < 0 ||
           d->shape[a] == v->shape[a];
  if (!fits)
    bb_fail(m->ctx, BB_ERROR_INPUT, "%s: is declared %s %s but computed %s %s", where,
            bb_dtype_name(d->dtype), bb_onnx_shape_text(m, d), bb_dtype_name(v->dtype),
            bb_onnx_shape_text(m, v));
}

static void note_outputs(bb_onnx *m, const bb_onnx_frame *frame, const Onnx__GraphProto *graph) {
  bb_array *array = m->array;
  bb_arena *arena = m->program->arena;
  static const Onnx__NodeProto identity = ONNX__NODE_PROTO__INIT;
  array->output = BB_NEW(arena, uint32_t, graph->n_output);
  array->output_name = BB_NEW(arena, const char *, graph->n_output);
  for (size_t i = 0; i < graph->n_output; i++) {
    const char *name = text_or_empty(graph->output[i]->name);
    const char *where = bb_arena_printf(m->arena, "graph output %s", bb_onnx_quote(m->arena, name));
    const name_entry *found = lookup(frame, name);
    if (!found || !found->value) bb_fail(m->ctx, BB_ERROR_INPUT, "%s: is defined nowhere", where);
    for (size_t k = 0; k < i; k++)
      if (strcmp(array->output_name[k], name) == 0)
        bb_fail(m->ctx, BB_ERROR_INPUT, "%s: stands twice among the outputs", where);
    array->output_name[array->outputs] = bb_arena_text(arena, name, strlen(name));
    if (!found->value->unsupported) {
      bb_onnx_node n = {.m = m, .proto = &identity, .frame = frame, .name = name, .domain = ""};
      check_output(m, where, found->value, graph->output[i]);
      array->output[array->outputs] = bb_onnx_id(&n, found->value);
    }
    array->outputs++;
  }
}

void bb_onnx_import_graph(bb_onnx *m) {
  const Onnx__GraphProto *graph = m->model->graph;
  if (!graph->n_output) bb_fail(m->ctx, BB_ERROR_INPUT, "the graph has no outputs");
  note_functions(m);
  bb_onnx_frame *frame = BB_NEW(m->arena, bb_onnx_frame, 1);
  *frame = (bb_onnx_frame){.imports = m->model->n_opset_import,
                           .import = m->model->opset_import,
                           .names = bb_intern_create(m->arena, hash_name, same_name)};
  define_initializers(m, frame, graph);
  define_inputs(m, frame, graph);
  const char **want = output_names(m, graph);
  convert_nodes(m, frame, graph->node, graph->n_node, graph->n_output, want);
  note_outputs(m, frame, graph);
}
