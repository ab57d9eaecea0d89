/* graph.c - graphs of the model: initializers, inputs and outputs; branches converted in place. */
#include "scope.h"

#include <string.h>

enum { BRANCH_DEPTH = 64 };

static const char **output_names(bb_onnx *m, const Onnx__GraphProto *graph) {
  const char **name = BB_NEW(m->arena, const char *, graph->n_output);
  for (size_t i = 0; i < graph->n_output; i++) name[i] = bb_onnx_text_of(graph->output[i]->name);
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
    const char *name = bb_onnx_text_of(t->name);
    const char *where = bb_arena_printf(m->arena, "initializer %s", bb_onnx_quote(m->arena, name));
    bb_onnx_define(m, frame, name, bb_onnx_value_of_tensor(m, name, t, where));
  }
}

static bb_onnx_frame *frame_within(bb_onnx *m, const bb_onnx_frame *outer, uint32_t depth) {
  bb_onnx_frame *frame = BB_NEW(m->arena, bb_onnx_frame, 1);
  *frame = (bb_onnx_frame){.outer = outer,
                           .imports = outer->imports,
                           .import = outer->import,
                           .names = bb_onnx_names(m),
                           .depth = depth};
  return frame;
}

const bb_onnx_frame *bb_onnx_open_graph(const bb_onnx_node *n, const Onnx__GraphProto *graph,
                                        uint32_t inputs, uint32_t outputs) {
  if (n->frame->depth >= BRANCH_DEPTH) bb_onnx_refuse(n, "graphs are nested too deeply");
  if (graph->n_input != inputs)
    bb_onnx_refuse(n, "its graph has %zu inputs, not %u", graph->n_input, inputs);
  if (graph->n_output != outputs)
    bb_onnx_refuse(n, "its graph has %zu outputs, not %u", graph->n_output, outputs);
  bb_onnx_frame *frame = frame_within(n->m, n->frame, n->frame->depth + 1);
  define_initializers(n->m, frame, graph);
  return frame;
}

void bb_onnx_convert_graph(const bb_onnx_node *n, const bb_onnx_frame *opened,
                           const Onnx__GraphProto *graph, bb_onnx_value *const *in,
                           bb_onnx_value **out) {
  bb_onnx *m = n->m;
  bb_onnx_count_node(n);
  bb_onnx_frame *frame = frame_within(m, opened, opened->depth);
  for (size_t i = 0; i < graph->n_input; i++)
    bb_onnx_define(m, frame, bb_onnx_text_of(graph->input[i]->name), in[i]);
  const char **want = output_names(m, graph);
  bb_onnx_convert_nodes(m, frame, graph->node, graph->n_node, graph->n_output, want);
  for (size_t i = 0; i < graph->n_output; i++) {
    const bb_onnx_name *found = bb_onnx_lookup(frame, want[i]);
    if (!found || !found->value)
      bb_onnx_refuse(n, "its graph does not define output %s", bb_onnx_quote(m->arena, want[i]));
    out[i] = found->value;
  }
}

void bb_onnx_inline_graph(const bb_onnx_node *n, const Onnx__GraphProto *graph, uint32_t inputs,
                          bb_onnx_value *const *in, uint32_t outputs, bb_onnx_value **out) {
  bb_onnx_convert_graph(n, bb_onnx_open_graph(n, graph, inputs, outputs), graph, in, out);
}

/* How inputs and outputs of the declared type are held. */
static const Onnx__TypeProto__Tensor *declared_type(bb_onnx *m, const Onnx__ValueInfoProto *info,
                                                    const char *where, bb_dtype *dtype) {
  const Onnx__TypeProto *type = info->type;
  if (!type || type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE || !type->tensor_type)
    bb_fail(m->ctx, BB_ERROR_INPUT, "%s: is not declared as a tensor", where);
  int32_t data_type = type->tensor_type->elem_type;
  if (!bb_onnx_dtype(data_type, dtype))
    bb_fail(m->ctx, BB_ERROR_INPUT, "%s: tensors of %s are not read", where,
            bb_onnx_dtype_name(data_type));
  *dtype = bb_onnx_stored(data_type);
  return type->tensor_type;
}

/* The element type and shape of an input that the model declares; NULL: no shape. */
static bb_onnx_value *declared(bb_onnx *m, const Onnx__ValueInfoProto *info) {
  const char *name = bb_onnx_text_of(info->name);
  const char *where = bb_arena_printf(m->arena, "graph input %s", bb_onnx_quote(m->arena, name));
  bb_dtype dtype;
  const Onnx__TensorShapeProto *shape = declared_type(m, info, where, &dtype)->shape;
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

/* The input's elements in the type that they are computed in. */
static bb_onnx_value *computable(bb_onnx *m, const bb_onnx_frame *frame,
                                 const Onnx__ValueInfoProto *info, bb_onnx_value *v) {
  static const Onnx__NodeProto cast = ONNX__NODE_PROTO__INIT;
  bb_onnx_node n = {.m = m, .proto = &cast, .frame = frame, .name = v->name, .domain = ""};
  bb_dtype dtype;
  bb_onnx_dtype(info->type->tensor_type->elem_type, &dtype);
  if (dtype == v->dtype) return v;
  bb_onnx_value *wide = bb_onnx_cast(&n, v, dtype);
  wide->stored = v->dtype;
  wide->name = v->name;
  return wide;
}

static void define_inputs(bb_onnx *m, const bb_onnx_frame *frame, const Onnx__GraphProto *graph) {
  bb_array *array = m->array;
  array->input = BB_NEW(m->program->arena, uint32_t, graph->n_input);
  for (size_t i = 0; i < graph->n_input; i++) {
    const char *name = bb_onnx_text_of(graph->input[i]->name);
    if (bb_onnx_lookup(frame, name)) { /* an initializer with a declaration; or twice an input */
      bool again = bb_onnx_lookup(frame, name)->value->id != BB_NONE;
      if (!again) continue;
    }
    bb_onnx_value *v = declared(m, graph->input[i]);
    if (!v)
      bb_fail(m->ctx, BB_ERROR_INPUT, "graph input %s: has no declared shape",
              bb_onnx_quote(m->arena, name));
    v->id = bb_array_value_add(array, v->name, v->dtype, v->rank, v->shape);
    array->value[v->id].is_input = true;
    array->input[array->inputs++] = v->id;
    bb_onnx_define(m, frame, name, computable(m, frame, graph->input[i], v));
  }
}

/* Whether a shape is one that the model declares, as far as that is said in numbers. */
static bool shape_fits(const Onnx__TensorShapeProto *shape, const bb_onnx_value *v) {
  bool fits = shape->n_dim == v->rank;
  for (size_t a = 0; fits && a < shape->n_dim; a++) {
    bool number = shape->dim[a]->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
    int64_t value = bb_extent_value(v->shape[a]);
    fits = !number || value < 0 || value == shape->dim[a]->dim_value;
  }
  return fits;
}

static const char *shape_text(bb_onnx *m, const Onnx__TensorShapeProto *shape) {
  bb_buffer out = {.arena = m->arena};
  bb_put(&out, "[");
  for (size_t a = 0; a < shape->n_dim && a < BB_ONNX_RANK; a++) {
    const Onnx__TensorShapeProto__Dimension *d = shape->dim[a];
    bb_put(&out, "%s", a ? "," : "");
    if (d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE)
      bb_put(&out, "%lld", (long long)d->dim_value);
    else if (d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM)
      bb_put(&out, "%s", bb_onnx_quote(m->arena, bb_onnx_text_of(d->dim_param)));
    else
      bb_put(&out, "?");
  }
  bb_put(&out, "%s]", shape->n_dim > BB_ONNX_RANK ? ",..." : "");
  return out.data;
}

/* What the graph computes is what its nodes say; some exporters declare another shape.  Names that
 * only an output has say nothing: no input and no caller would tell what they are. */
static void check_output(bb_onnx *m, const char *where, const bb_onnx_value *v,
                         const Onnx__ValueInfoProto *info) {
  bb_dtype dtype;
  if (!info->type) return;
  const Onnx__TypeProto__Tensor *tensor = declared_type(m, info, where, &dtype);
  if (dtype != v->stored)
    bb_fail(m->ctx, BB_ERROR_INPUT, "%s: is declared %s but computed %s", where,
            bb_dtype_name(dtype), bb_dtype_name(v->stored));
  if (tensor->shape && !shape_fits(tensor->shape, v))
    bb_log(m->ctx, BB_LOG_WARNING, "%s: is declared %s but computed %s, which it is taken for",
           where, shape_text(m, tensor->shape), bb_onnx_shape_text(m, v));
}

static void note_outputs(bb_onnx *m, const bb_onnx_frame *frame, const Onnx__GraphProto *graph) {
  bb_array *array = m->array;
  bb_arena *arena = m->program->arena;
  static const Onnx__NodeProto identity = ONNX__NODE_PROTO__INIT;
  array->output = BB_NEW(arena, uint32_t, graph->n_output);
  array->output_name = BB_NEW(arena, const char *, graph->n_output);
  for (size_t i = 0; i < graph->n_output; i++) {
    const char *name = bb_onnx_text_of(graph->output[i]->name);
    const char *where = bb_arena_printf(m->arena, "graph output %s", bb_onnx_quote(m->arena, name));
    const bb_onnx_name *found = bb_onnx_lookup(frame, name);
    if (!found || !found->value) bb_fail(m->ctx, BB_ERROR_INPUT, "%s: is defined nowhere", where);
    for (size_t k = 0; k < i; k++)
      if (strcmp(array->output_name[k], name) == 0)
        bb_fail(m->ctx, BB_ERROR_INPUT, "%s: stands twice among the outputs", where);
    array->output_name[array->outputs] = bb_arena_text(arena, name, strlen(name));
    if (!found->value->unsupported) {
      bb_onnx_node n = {.m = m, .proto = &identity, .frame = frame, .name = name, .domain = ""};
      check_output(m, where, found->value, graph->output[i]);
      bb_onnx_value *v = bb_onnx_cast(&n, found->value, found->value->stored);
      array->output[array->outputs] = bb_onnx_id(&n, v);
    }
    array->outputs++;
  }
}

void bb_onnx_import_graph(bb_onnx *m) {
  const Onnx__GraphProto *graph = m->model->graph;
  if (!graph->n_output) bb_fail(m->ctx, BB_ERROR_INPUT, "the graph has no outputs");
  bb_onnx_note_functions(m);
  bb_onnx_frame *frame = BB_NEW(m->arena, bb_onnx_frame, 1);
  *frame = (bb_onnx_frame){.imports = m->model->n_opset_import,
                           .import = m->model->opset_import,
                           .names = bb_onnx_names(m)};
  define_initializers(m, frame, graph);
  define_inputs(m, frame, graph);
  const char **want = output_names(m, graph);
  bb_onnx_convert_nodes(m, frame, graph->node, graph->n_node, graph->n_output, want);
  note_outputs(m, frame, graph);
}
